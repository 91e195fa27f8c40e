package cosmos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bolide/compat/server"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// never is the ttl of an item that does not expire.
const never = -1

func TestT2TruthTable(t *testing.T) {
	s := server.Start(t)
	in := database(t, client(t, s), "ttl")
	cells := []struct {
		defaultTTL *int32
		ttl        any
		seconds    int64
	}{
		{nil, nil, never},
		{nil, -1, never},
		{nil, 100, never},
		{seconds(-1), nil, never},
		{seconds(-1), -1, never},
		{seconds(-1), 100, 100},
		{seconds(200), nil, 200},
		{seconds(200), -1, never},
		{seconds(200), 100, 100},
	}
	for _, throughput := range []int32{400, 20000} {
		for number, cell := range cells {
			name := fmt.Sprintf("throughput %d, cell %d, ttl %v lives %d", throughput, number, cell.ttl, cell.seconds)
			t.Run(name, func(t *testing.T) {
				made := properties(fmt.Sprintf("c%d-%d", throughput, number), cell.defaultTTL)
				container := container(t, in, made, throughput)
				more := fields{}
				if cell.ttl != nil {
					more["ttl"] = cell.ttl
				}
				kept := create(t, container, "cell", more)
				if cell.seconds == never {
					s.Advance(400 * day)
					equal(t, "lives", lives(t, container, "cell"), true)
					return
				}
				s.MoveTo(kept.Timestamp + cell.seconds - 10)
				equal(t, "lives before", lives(t, container, "cell"), true)
				s.MoveTo(kept.Timestamp + cell.seconds)
				equal(t, "lives then", lives(t, container, "cell"), false)
			})
		}
	}
}

func TestT4BadDefaultsAreRefused(t *testing.T) {
	in := database(t, client(t, server.Start(t)), "ttl")
	kept := container(t, in, properties("kept", seconds(77)), 0)
	for _, bad := range []int32{0, -2, -2147483648} {
		_, err := in.CreateContainer(background, properties("bad", seconds(bad)), nil)
		refused(t, http.StatusBadRequest, err)
		_, err = kept.Replace(background, properties("kept", seconds(bad)), nil)
		refused(t, http.StatusBadRequest, err)
	}
	answer, err := kept.Read(background, nil)
	check(t, err)
	equal(t, "default", *answer.ContainerProperties.DefaultTimeToLive, 77)
}

func TestT5BadItemTTLsAreRefused(t *testing.T) {
	in := database(t, client(t, server.Start(t)), "ttl")
	values := []string{"0", "-10", "-2", "null", "1.5", `"x"`, `"10"`, "2147483648", "true", "{}", "[]"}
	for number, value := range values {
		t.Run(value, func(t *testing.T) {
			// It holds whether or not there is a default.
			defaults := []*int32{nil, seconds(-1)}
			container := container(t, in, properties(fmt.Sprintf("c%d", number), defaults[number%2]), 0)
			bad := item("bad", fields{"ttl": json.RawMessage(value)})
			_, err := container.CreateItem(background, key, bad, nil)
			if told := refused(t, http.StatusBadRequest, err).Error(); !strings.Contains(told, "2147483647") {
				t.Errorf("it does not say what is accepted: %s", told)
			}
			_, err = container.UpsertItem(background, key, bad, nil)
			refused(t, http.StatusBadRequest, err)
			batch := container.NewTransactionalBatch(key)
			batch.CreateItem(item("good", nil), nil)
			batch.CreateItem(bad, nil)
			equal(t, "batch", statuses(t, container, batch), []int32{http.StatusFailedDependency, http.StatusBadRequest})
			equal(t, "stored", len(ids(t, container, key, "SELECT * FROM c")), 0)

			create(t, container, "bad", fields{"ttl": 500})
			_, err = container.ReplaceItem(background, key, "bad", bad, nil)
			refused(t, http.StatusBadRequest, err)
			patch := azcosmos.PatchOperations{}
			patch.AppendSet("/ttl", json.RawMessage(value))
			_, err = container.PatchItem(background, key, "bad", patch, nil)
			refused(t, http.StatusBadRequest, err)
			answer, err := container.ReadItem(background, key, "bad", nil)
			check(t, err)
			equal(t, "ttl", string(decoded(t, answer.Value).TTL), "500")
		})
	}
}

func TestT9EveryWriteRestartsTheCountdownAndNoReadDoes(t *testing.T) {
	s := server.Start(t)
	in := database(t, client(t, s), "ttl")
	container := container(t, in, properties("c", seconds(100)), 0)
	writes := []func() ([]byte, error){
		func() ([]byte, error) {
			answer, err := container.CreateItem(background, key, item("x", nil), withContent)
			return answer.Value, err
		},
		func() ([]byte, error) {
			answer, err := container.ReplaceItem(background, key, "x", item("x", fields{"n": 1}), withContent)
			return answer.Value, err
		},
		func() ([]byte, error) {
			answer, err := container.UpsertItem(background, key, item("x", fields{"n": 2}), withContent)
			return answer.Value, err
		},
		func() ([]byte, error) {
			patch := azcosmos.PatchOperations{}
			patch.AppendIncrement("/n", 1)
			answer, err := container.PatchItem(background, key, "x", patch, withContent)
			return answer.Value, err
		},
		func() ([]byte, error) {
			batch := container.NewTransactionalBatch(key)
			batch.UpsertItem(item("x", fields{"n": 4}), nil)
			options := &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true}
			answer, err := container.ExecuteTransactionalBatch(background, batch, options)
			if err != nil {
				return nil, err
			}
			return answer.OperationResults[0].ResourceBody, nil
		},
	}
	var last int64
	for _, write := range writes {
		text, err := write()
		check(t, err)
		written := decoded(t, text)
		if written.Timestamp <= last {
			t.Fatalf("_ts %d after %d", written.Timestamp, last)
		}
		last = written.Timestamp
		s.MoveTo(last + 90)
		equal(t, "lives", lives(t, container, "x"), true)
	}
	s.MoveTo(last + 100)
	equal(t, "lives", lives(t, container, "x"), false)
}

func TestT10TheOwnTTLIsAnOrdinaryProperty(t *testing.T) {
	s := server.Start(t)
	in := database(t, client(t, s), "ttl")
	container := container(t, in, properties("c", seconds(1000)), 0)
	patched := func(path string, value any) stored {
		patch := azcosmos.PatchOperations{}
		if value == nil {
			patch.AppendRemove(path)
		} else {
			patch.AppendSet(path, value)
		}
		answer, err := container.PatchItem(background, key, "x", patch, withContent)
		check(t, err)
		return decoded(t, answer.Value)
	}
	create(t, container, "x", fields{"ttl": 100})
	s.MoveTo(patched("/ttl", 300).Timestamp + 290)
	s.MoveTo(patched("/ttl", nil).Timestamp + 990)
	s.MoveTo(patched("/ttl", -1).Timestamp + 400*day)
	last := patched("/ttl", nil)
	s.MoveTo(last.Timestamp + 990)
	equal(t, "lives", lives(t, container, "x"), true)
	s.MoveTo(last.Timestamp + 1000)
	equal(t, "lives", lives(t, container, "x"), false)
}

func TestT11T13ADefaultRedatesAtOnceAndRevivesNothing(t *testing.T) {
	s := server.Start(t)
	in := database(t, client(t, s), "ttl")
	container := container(t, in, properties("c", seconds(100)), 20000)
	old := create(t, container, "old", nil)
	s.MoveTo(old.Timestamp + 50)
	young := create(t, container, "young", nil)
	s.MoveTo(old.Timestamp + 100)
	for _, value := range []*int32{seconds(10_000), nil, seconds(-1), seconds(1_000_000)} {
		setDefault(t, container, value)
		equal(t, "old", lives(t, container, "old"), false)
		equal(t, "young", lives(t, container, "young"), true)
	}
	s.MoveTo(young.Timestamp + 500)
	setDefault(t, container, seconds(400))
	equal(t, "young, older than the new default", lives(t, container, "young"), false)
	setDefault(t, container, seconds(1_000_000))
	equal(t, "young, once expired", lives(t, container, "young"), false)
}

func TestT12OffDiffersFromMinusOne(t *testing.T) {
	s := server.Start(t)
	in := database(t, client(t, s), "ttl")
	container := container(t, in, properties("c", seconds(-1)), 0)
	kept := create(t, container, "x", fields{"ttl": 100})
	setDefault(t, container, nil)
	s.MoveTo(kept.Timestamp + 500)
	equal(t, "off", lives(t, container, "x"), true)
	setDefault(t, container, seconds(-1))
	equal(t, "on again", lives(t, container, "x"), false)
}

func TestT13TheExpiredStayExpiredOverKill9(t *testing.T) {
	s := server.StartOnDisk(t)
	s.PausePurge()
	in := database(t, client(t, s), "ttl")
	container := container(t, in, properties("c", seconds(100)), 20000)
	gone := create(t, container, "gone", nil)
	create(t, container, "stays", fields{"ttl": 1000})
	s.MoveTo(gone.Timestamp + 100)
	equal(t, "gone", lives(t, container, "gone"), false)
	s.Kill()
	s.StartAgain()
	setDefault(t, container, seconds(100_000))
	equal(t, "gone", lives(t, container, "gone"), false)
	equal(t, "stays", lives(t, container, "stays"), true)
}

func TestT14NoOperationSeesTheExpiredBeforeThePurge(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	in := database(t, client(t, s), "ttl")
	for _, throughput := range []int32{400, 20000} {
		container := container(t, in, properties(fmt.Sprintf("c%d", throughput), seconds(-1)), throughput)
		var last stored
		for n := range 6 {
			last = create(t, container, fmt.Sprint(n), fields{"n": n, "ttl": []int{-1, 100}[n%2]})
		}
		s.MoveTo(last.Timestamp + 100)
		for n := range 6 {
			equal(t, fmt.Sprintf("item %d lives", n), lives(t, container, fmt.Sprint(n)), n%2 == 0)
		}
		table := []struct{ query, row string }{
			{"SELECT VALUE COUNT(1) FROM c", "3"},
			{"SELECT VALUE SUM(c.n) FROM c", "6"},
			{"SELECT VALUE MAX(c.n) FROM c", "4"},
			{"SELECT VALUE AVG(c.n) FROM c WHERE c.n > 0", "3"},
			{"SELECT VALUE COUNT(1) FROM c WHERE c.n = 5", "0"},
		}
		for _, wanted := range table {
			for _, reach := range []azcosmos.PartitionKey{key, azcosmos.NewPartitionKey()} {
				found := rows(t, container, reach, wanted.query, nil)
				equal(t, "rows of "+wanted.query, len(found), 1)
				equal(t, wanted.query, string(found[0]), wanted.row)
			}
		}
		equal(t, "distinct", len(rows(t, container, key, "SELECT DISTINCT VALUE c.ttl FROM c", nil)), 1)
	}
}

func TestT15WritesTreatTheExpiredAsNotThere(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	in := database(t, client(t, s), "ttl")
	container := container(t, in, properties("c", seconds(100)), 0)
	expired := create(t, container, "x", nil)
	s.MoveTo(expired.Timestamp + 100)
	stale := expired.ETag
	for _, options := range []*azcosmos.ItemOptions{nil, {IfMatchEtag: &stale}} {
		_, err := container.ReplaceItem(background, key, "x", item("x", nil), options)
		refused(t, http.StatusNotFound, err)
		patch := azcosmos.PatchOperations{}
		patch.AppendSet("/n", 2)
		_, err = container.PatchItem(background, key, "x", patch, options)
		refused(t, http.StatusNotFound, err)
		_, err = container.DeleteItem(background, key, "x", options)
		refused(t, http.StatusNotFound, err)
	}
	batch := container.NewTransactionalBatch(key)
	batch.ReadItem("x", nil)
	equal(t, "batch", statuses(t, container, batch), []int32{http.StatusNotFound})

	answer, err := container.CreateItem(background, key, item("x", nil), nil)
	check(t, err)
	equal(t, "create", answer.RawResponse.StatusCode, http.StatusCreated)
	s.Advance(100)
	answer, err = container.UpsertItem(background, key, item("x", nil), nil)
	check(t, err)
	equal(t, "upsert", answer.RawResponse.StatusCode, http.StatusCreated)
}

func TestT15UniqueKeyValuesAreFreeAtOnce(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	made := properties("c", seconds(100))
	made.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}}}
	container := container(t, database(t, client(t, s), "ttl"), made, 0)
	first := create(t, container, "1", fields{"email": "a@b"})
	_, err := container.CreateItem(background, key, item("2", fields{"email": "a@b"}), nil)
	refused(t, http.StatusConflict, err)
	s.MoveTo(first.Timestamp + 100)
	create(t, container, "2", fields{"email": "a@b"})
}

func TestT16APageAfterADeadlineLeavesOutTheExpired(t *testing.T) {
	s := server.Start(t)
	container := container(t, database(t, client(t, s), "ttl"), properties("c", seconds(-1)), 0)
	var last stored
	for n := range 6 {
		last = create(t, container, fmt.Sprint(n), fields{"ttl": []int{-1, 100}[n%2]})
	}
	pages := container.NewQueryItemsPager("SELECT * FROM c", key, &azcosmos.QueryOptions{PageSizeHint: 2})
	var seen, rest []string
	for pages.More() {
		page, err := pages.NextPage(background)
		check(t, err)
		for _, text := range page.Items {
			id := decoded(t, text).ID
			if len(seen) < 2 {
				seen = append(seen, id)
			} else {
				rest = append(rest, id)
			}
		}
		s.MoveTo(last.Timestamp + 100)
	}
	slices.Sort(rest)
	expected := slices.DeleteFunc([]string{"0", "2", "4"}, func(id string) bool { return slices.Contains(seen, id) })
	equal(t, "after the deadline", rest, expected)
}

// statuses runs a batch and returns the status of each operation.
func statuses(t *testing.T, container *azcosmos.ContainerClient, batch azcosmos.TransactionalBatch) []int32 {
	t.Helper()
	answer, err := container.ExecuteTransactionalBatch(background, batch, nil)
	check(t, err)
	var found []int32
	for _, result := range answer.OperationResults {
		found = append(found, result.StatusCode)
	}
	return found
}
