package cosmos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"bolide/compat/server"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The client makes no plan of its own and asks for none: what spans several ranges is answered by the server.
func TestQueriesOverOneRangeAndSeveral(t *testing.T) {
	in := database(t, client(t, server.Start(t)), "data")
	for _, throughput := range []int32{400, 20000} {
		container := container(t, in, properties(fmt.Sprintf("c%d", throughput), nil), throughput)
		for n := range 30 {
			createIn(t, container, fmt.Sprintf("k%d", n%6), fmt.Sprintf("i%02d", n), fields{"n": n, "even": n%2 == 0})
		}
		all := azcosmos.NewPartitionKey()
		table := []struct {
			in       azcosmos.PartitionKey
			query    string
			expected []string
		}{
			{all, "SELECT VALUE COUNT(1) FROM c", []string{"30"}},
			{all, "SELECT VALUE SUM(c.n) FROM c WHERE c.even", []string{"210"}},
			{all, "SELECT VALUE c.n FROM c WHERE c.n >= 27 ORDER BY c.n DESC", []string{"29", "28", "27"}},
			{all, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 2", []string{"10", "11"}},
			{all, "SELECT DISTINCT VALUE c.even FROM c ORDER BY c.even", []string{"false", "true"}},
			{all, "SELECT c.even, COUNT(1) AS many FROM c WHERE c.even GROUP BY c.even", []string{`{"even":true,"many":15}`}},
			{azcosmos.NewPartitionKeyString("k1"), "SELECT TOP 2 VALUE c.id FROM c ORDER BY c.n", []string{`"i01"`, `"i07"`}},
		}
		for _, row := range table {
			t.Run(fmt.Sprintf("%d %s", throughput, row.query), func(t *testing.T) {
				var found []string
				for _, text := range rows(t, container, row.in, row.query, nil) {
					found = append(found, string(text))
				}
				equal(t, "rows", found, row.expected)
			})
		}
	}
}

func TestPagesParametersAndMetrics(t *testing.T) {
	in := database(t, client(t, server.Start(t)), "data")
	container := container(t, in, properties("c", nil), 20000)
	for n := range 20 {
		createIn(t, container, fmt.Sprintf("k%d", n%6), fmt.Sprintf("i%02d", n), fields{"n": n})
	}
	options := &azcosmos.QueryOptions{
		PageSizeHint:         3,
		PopulateIndexMetrics: true,
		QueryParameters:      []azcosmos.QueryParameter{{Name: "@least", Value: 10}},
	}
	var found []int
	token, query := "", "SELECT * FROM c WHERE c.n >= @least ORDER BY c.n"
	for {
		if token != "" {
			options.ContinuationToken = &token
		}
		// A new pager for each page: the token alone carries the position.
		page, err := container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), options).NextPage(background)
		check(t, err)
		if len(page.Items) > 3 || page.QueryMetrics == nil || page.IndexMetrics == nil || page.RequestCharge <= 0 {
			t.Fatalf("%d items, metrics %v %v, charge %f", len(page.Items), page.QueryMetrics, page.IndexMetrics, page.RequestCharge)
		}
		for _, text := range page.Items {
			found = append(found, decoded(t, text).N)
		}
		if page.ContinuationToken == nil {
			break
		}
		token = *page.ContinuationToken
	}
	equal(t, "rows", found, []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19})
	changed := token[:len(token)-4] + "AAAA"
	options.ContinuationToken = &changed
	_, err := container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), options).NextPage(background)
	refused(t, http.StatusBadRequest, err)
}

func TestPatchBatchAndConditions(t *testing.T) {
	in := database(t, client(t, server.Start(t)), "data")
	container := container(t, in, properties("c", nil), 20000)
	first := create(t, container, "x", fields{"n": 1})
	patch := azcosmos.PatchOperations{}
	patch.SetCondition("FROM c WHERE c.n = 1")
	patch.AppendIncrement("/n", 41)
	patch.AppendAdd("/list", []int{1})
	patch.AppendAdd("/list/-", 2)
	patch.AppendReplace("/list/0", 7)
	answer, err := container.PatchItem(background, key, "x", patch, withContent)
	check(t, err)
	var patched struct {
		N    int
		List []int
	}
	check(t, json.Unmarshal(answer.Value, &patched))
	equal(t, "patched", fmt.Sprint(patched), "{42 [7 2]}")
	_, err = container.PatchItem(background, key, "x", patch, nil)
	refused(t, http.StatusPreconditionFailed, err)

	stale := first.ETag
	_, err = container.ReplaceItem(background, key, "x", item("x", nil), &azcosmos.ItemOptions{IfMatchEtag: &stale})
	refused(t, http.StatusPreconditionFailed, err)
	fresh := decoded(t, answer.Value).ETag

	batch := container.NewTransactionalBatch(key)
	batch.CreateItem(item("a", fields{"n": 1}), nil)
	batch.UpsertItem(item("b", fields{"n": 2}), nil)
	batch.ReplaceItem("x", item("x", fields{"n": 3}), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &fresh})
	batch.ReadItem("x", nil)
	batch.DeleteItem("b", nil)
	done, err := container.ExecuteTransactionalBatch(background, batch, nil)
	check(t, err)
	equal(t, "success", done.Success, true)
	equal(t, "read within it", decoded(t, done.OperationResults[3].ResourceBody).N, 3)
	if done.OperationResults[0].ETag == azcore.ETag("") || done.RequestCharge <= 0 || done.SessionToken == "" {
		t.Errorf("etag, charge or session token is missing: %+v", done)
	}
	equal(t, "stored", ids(t, container, key, "SELECT * FROM c ORDER BY c.id"), []string{"a", "x"})

	batch = container.NewTransactionalBatch(key)
	batch.DeleteItem("a", nil)
	batch.CreateItem(item("x", nil), nil)
	equal(t, "as a whole", statuses(t, container, batch), []int32{http.StatusFailedDependency, http.StatusConflict})
	equal(t, "stored", ids(t, container, key, "SELECT * FROM c ORDER BY c.id"), []string{"a", "x"})
}

func TestReadManyOverSeveralRanges(t *testing.T) {
	s := server.Start(t)
	container := container(t, database(t, client(t, s), "data"), properties("c", seconds(-1)), 20000)
	var wanted []azcosmos.ItemIdentity
	for n := range 40 {
		in, id := fmt.Sprintf("k%d", n), fmt.Sprintf("i%02d", n)
		createIn(t, container, in, id, fields{"ttl": []int{-1, 10}[n%2]})
		wanted = append(wanted, azcosmos.ItemIdentity{ID: id, PartitionKey: azcosmos.NewPartitionKeyString(in)})
	}
	for _, expected := range []int{40, 20} {
		answer, err := container.ReadManyItems(background, wanted, nil)
		check(t, err)
		equal(t, "items", len(answer.Items), expected)
		s.Advance(10)
	}
}

func TestHierarchicalKeys(t *testing.T) {
	in := database(t, client(t, server.Start(t)), "data")
	made := azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
		Kind: azcosmos.PartitionKeyKindMultiHash, Version: 2, Paths: []string{"/tenant", "/user"},
	}}
	container := container(t, in, made, 20000)
	for n := range 12 {
		tenant, user := fmt.Sprintf("t%d", n%3), fmt.Sprintf("u%d", n)
		whole := azcosmos.NewPartitionKeyString(tenant).AppendString(user)
		_, err := container.CreateItem(background, whole, item(fmt.Sprint(n), fields{"tenant": tenant, "user": user}), nil)
		check(t, err)
	}
	_, err := container.ReadItem(background, azcosmos.NewPartitionKeyString("t1").AppendString("u4"), "4", nil)
	check(t, err)
	found := ids(t, container, azcosmos.NewPartitionKeyString("t1"), "SELECT * FROM c")
	slices.Sort(found)
	equal(t, "of one tenant", found, []string{"1", "10", "4", "7"})
}

func TestThroughput(t *testing.T) {
	s := server.Start(t, "--enforce-throughput")
	in := database(t, client(t, s), "data")
	container := container(t, in, properties("c", nil), 20000)
	changed := azcosmos.NewManualThroughputProperties(12000)
	answer, err := container.ReplaceThroughput(background, changed, nil)
	check(t, err)
	manual, _ := answer.ThroughputProperties.ManualThroughput()
	equal(t, "manual", manual, 12000)
	least := answer.MinThroughput
	if least == nil || *least > 12000 {
		t.Fatalf("the least throughput is %v", least)
	}
	autoscale := azcosmos.NewAutoscaleThroughputProperties(4000)
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: &autoscale}
	_, err = in.CreateContainer(background, properties("auto", nil), options)
	check(t, err)
	scaled, err := in.NewContainer("auto")
	check(t, err)
	offer, err := scaled.ReadThroughput(background, nil)
	check(t, err)
	most, _ := offer.ThroughputProperties.AutoscaleMaxThroughput()
	equal(t, "autoscale", most, 4000)
}
