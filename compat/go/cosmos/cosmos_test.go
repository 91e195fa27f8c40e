// Package cosmos tests Bolide through azcosmos, the SDK as it is published. TTL.md's rules are named by number.
package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"bolide/compat/server"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const day = server.Day

var (
	background = context.Background()
	// Writes answer with the item, so that its _ts is known.
	withContent = &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
	// The partition that the tests of one partition use.
	key = azcosmos.NewPartitionKeyString("p")
)

// fields of an item.
type fields map[string]any

// stored has the system properties of an item.
type stored struct {
	ID        string          `json:"id"`
	Timestamp int64           `json:"_ts"`
	TTL       json.RawMessage `json:"ttl"`
	N         int             `json:"n"`
	ETag      azcore.ETag     `json:"_etag"`
}

func client(t *testing.T, s *server.Server, policies ...policy.Policy) *azcosmos.Client {
	t.Helper()
	credential, err := azcosmos.NewKeyCredential(server.EmulatorKey)
	check(t, err)
	options := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{PerCallPolicies: policies}}
	client, err := azcosmos.NewClientWithKey("http://"+s.HTTP+"/", credential, options)
	check(t, err)
	t.Cleanup(client.Close)
	return client
}

func database(t *testing.T, client *azcosmos.Client, id string) *azcosmos.DatabaseClient {
	t.Helper()
	_, err := client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil)
	check(t, err)
	database, err := client.NewDatabase(id)
	check(t, err)
	return database
}

// properties of a container with partition key /pk and that default TTL; nil is none. The version is 2, because ReadManyItems
// of azcosmos 1.5 computes hashes of version 1 in a form of its own, by which every item lies in the first range.
func properties(id string, defaultTTL *int32) azcosmos.ContainerProperties {
	definition := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
	return azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: definition, DefaultTimeToLive: defaultTTL}
}

// container makes a container; with a throughput of more than 10,000 it has several ranges.
func container(t *testing.T, in *azcosmos.DatabaseClient, made azcosmos.ContainerProperties, throughput int32) *azcosmos.ContainerClient {
	t.Helper()
	var options *azcosmos.CreateContainerOptions
	if throughput > 0 {
		offer := azcosmos.NewManualThroughputProperties(throughput)
		options = &azcosmos.CreateContainerOptions{ThroughputProperties: &offer}
	}
	_, err := in.CreateContainer(background, made, options)
	check(t, err)
	container, err := in.NewContainer(made.ID)
	check(t, err)
	return container
}

// setDefault replaces the container's definition with another default TTL; nil removes it.
func setDefault(t *testing.T, container *azcosmos.ContainerClient, defaultTTL *int32) {
	t.Helper()
	answer, err := container.Read(background, nil)
	check(t, err)
	changed := *answer.ContainerProperties
	changed.DefaultTimeToLive = defaultTTL
	_, err = container.Replace(background, changed, nil)
	check(t, err)
}

func seconds(n int32) *int32 { return &n }

// item is its JSON, with partition key "p" unless more says otherwise.
func item(id string, more fields) []byte {
	all := fields{"id": id, "pk": "p"}
	for name, value := range more {
		all[name] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return text
}

func create(t *testing.T, container *azcosmos.ContainerClient, id string, more fields) stored {
	t.Helper()
	answer, err := container.CreateItem(background, key, item(id, more), withContent)
	check(t, err)
	return decoded(t, answer.Value)
}

func decoded(t *testing.T, text []byte) stored {
	t.Helper()
	var found stored
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return found
}

// lives tells whether an item exists; every way of reading must agree (T14).
func lives(t *testing.T, container *azcosmos.ContainerClient, id string) bool {
	t.Helper()
	_, err := container.ReadItem(background, key, id, nil)
	read := err == nil
	if !read {
		refused(t, http.StatusNotFound, err)
	}
	ways := map[string]bool{
		"query in the partition": slices.Contains(ids(t, container, key, "SELECT * FROM c"), id),
		"query over all":         slices.Contains(ids(t, container, azcosmos.NewPartitionKey(), "SELECT * FROM c"), id),
		"count":                  count(t, container, id) == 1,
		"readMany":               slices.Contains(many(t, container, id), id),
		"change feed":            slices.Contains(changed(t, container), id),
	}
	for way, found := range ways {
		if found != read {
			t.Errorf("%s: found by a read: %t, by %s: %t", id, read, way, found)
		}
	}
	return read
}

func ids(t *testing.T, container *azcosmos.ContainerClient, in azcosmos.PartitionKey, query string) []string {
	t.Helper()
	var found []string
	for _, row := range rows(t, container, in, query, nil) {
		found = append(found, decoded(t, row).ID)
	}
	return found
}

func rows(t *testing.T, container *azcosmos.ContainerClient, in azcosmos.PartitionKey, query string, options *azcosmos.QueryOptions) [][]byte {
	t.Helper()
	var found [][]byte
	for pages := container.NewQueryItemsPager(query, in, options); pages.More(); {
		page, err := pages.NextPage(background)
		check(t, err)
		found = append(found, page.Items...)
	}
	return found
}

func count(t *testing.T, container *azcosmos.ContainerClient, id string) int {
	t.Helper()
	found := rows(t, container, key, fmt.Sprintf("SELECT VALUE COUNT(1) FROM c WHERE c.id = %q", id), nil)
	if len(found) != 1 {
		t.Fatalf("%d rows of a count", len(found))
	}
	var number int
	check(t, json.Unmarshal(found[0], &number))
	return number
}

func many(t *testing.T, container *azcosmos.ContainerClient, wanted ...string) []string {
	t.Helper()
	var identities []azcosmos.ItemIdentity
	for _, id := range wanted {
		identities = append(identities, azcosmos.ItemIdentity{ID: id, PartitionKey: key})
	}
	answer, err := container.ReadManyItems(background, identities, nil)
	check(t, err)
	var found []string
	for _, text := range answer.Items {
		found = append(found, decoded(t, text).ID)
	}
	return found
}

// changed reads the change feed of a whole container from its beginning.
func changed(t *testing.T, container *azcosmos.ContainerClient) []string {
	t.Helper()
	items, _ := feed(t, container, &azcosmos.ChangeFeedOptions{FeedRange: &everything})
	var found []string
	for _, text := range items {
		found = append(found, decoded(t, text).ID)
	}
	return found
}

// check ends the test at an error that it does not expect.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that the server refused with that status, and returns the error.
func refused(t *testing.T, status int, err error) *azcore.ResponseError {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("expected %d, got %v", status, err)
	}
	if answer.StatusCode != status {
		t.Fatalf("expected %d, got %v", status, err)
	}
	return answer
}

func equal[T any](t *testing.T, what string, found, expected T) {
	t.Helper()
	left, right := fmt.Sprintf("%v", found), fmt.Sprintf("%v", expected)
	if left != right {
		t.Fatalf("%s: %s, and %s was expected", what, left, right)
	}
}
