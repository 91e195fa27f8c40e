package cosmos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bolide/compat/server"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// everything is the feed range of a whole container; the client spreads it over the physical partitions.
var everything = azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

// feed reads until there is nothing new, and returns the position then.
func feed(t *testing.T, container *azcosmos.ContainerClient, options *azcosmos.ChangeFeedOptions) ([][]byte, string) {
	t.Helper()
	var found [][]byte
	at := *options
	for {
		page, err := container.ReadChangeFeed(background, &at)
		check(t, err)
		at.Continuation = &page.ContinuationToken
		if page.Count == 0 {
			return found, page.ContinuationToken
		}
		found = append(found, page.Items...)
	}
}

func news(t *testing.T, container *azcosmos.ContainerClient, after string) ([]string, string) {
	t.Helper()
	items, position := feed(t, container, &azcosmos.ChangeFeedOptions{Continuation: &after})
	var found []string
	for _, text := range items {
		found = append(found, decoded(t, text).ID)
	}
	slices.Sort(found)
	return found, position
}

func TestChangeFeedOfOneRangeAndOfSeveral(t *testing.T) {
	s := server.Start(t)
	in := database(t, client(t, s), "feed")
	for _, throughput := range []int32{400, 20000} {
		t.Run(fmt.Sprint(throughput), func(t *testing.T) {
			container := container(t, in, properties(fmt.Sprintf("c%d", throughput), seconds(-1)), throughput)
			for n := range 20 {
				createIn(t, container, fmt.Sprintf("k%d", n%5), fmt.Sprintf("i%02d", n), nil)
			}
			pages := &azcosmos.ChangeFeedOptions{FeedRange: &everything, MaxItemCount: 3}
			items, position := feed(t, container, pages)
			equal(t, "items", len(items), 20)

			ranges, err := container.ReadFeedRanges(background, nil)
			check(t, err)
			sum := 0
			for _, each := range ranges {
				part, _ := feed(t, container, &azcosmos.ChangeFeedOptions{FeedRange: &each})
				sum += len(part)
			}
			equal(t, "items of all ranges", sum, 20)

			found, position := news(t, container, position)
			equal(t, "nothing new", len(found), 0)
			createIn(t, container, "k1", "new", nil)
			createIn(t, container, "k2", "brief", fields{"ttl": 10})
			s.Advance(10)
			// The feed shows the latest versions of live items: expired ones are left out (T14).
			found, _ = news(t, container, position)
			equal(t, "new", found, []string{"new"})
		})
	}
}

func TestChangeFeedFromATime(t *testing.T) {
	s := server.Start(t)
	container := container(t, database(t, client(t, s), "feed"), properties("c", nil), 20000)
	create(t, container, "before", nil)
	s.Advance(60)
	start := time.Unix(s.Now(), 0)
	s.Advance(60)
	create(t, container, "after", nil)
	options := &azcosmos.ChangeFeedOptions{FeedRange: &everything, StartFrom: &start}
	items, _ := feed(t, container, options)
	equal(t, "items", len(items), 1)
	equal(t, "id", decoded(t, items[0]).ID, "after")
}

// A reader that outlasts a kill -9 of the server continues from its token, and misses no acknowledged change.
func TestChangeFeedReaderOverKill9(t *testing.T) {
	s := server.StartOnDisk(t)
	container := container(t, database(t, client(t, s), "feed"), properties("c", seconds(-1)), 20000)
	reader, stop := context.WithCancel(background)
	defer stop()
	seen := make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follow(reader, container, seen)
	}()
	const before, after = 50, 50
	missing := map[string]bool{}
	for n := range before {
		id := fmt.Sprintf("before%02d", n)
		createIn(t, container, fmt.Sprintf("k%d", n%7), id, nil)
		missing[id] = true
	}
	delete(missing, <-seen)
	s.Kill()
	s.StartAgain()
	for n := range after {
		id := fmt.Sprintf("after%02d", n)
		createIn(t, container, fmt.Sprintf("k%d", n%7), id, nil)
		missing[id] = true
	}
	for len(missing) > 0 {
		select {
		case id := <-seen:
			delete(missing, id)
		case <-time.After(time.Minute):
			t.Fatalf("the reader misses %v", missing)
		}
	}
	stop()
	<-ended
	if len(seen) > 0 {
		t.Errorf("%d items came twice, such as %s", len(seen), <-seen)
	}
}

// follow reads a feed until it is told to stop; while the server is away it asks again from the token that it has.
func follow(until context.Context, container *azcosmos.ContainerClient, seen chan<- string) {
	options := azcosmos.ChangeFeedOptions{FeedRange: &everything, MaxItemCount: 5}
	for until.Err() == nil {
		page, err := container.ReadChangeFeed(until, &options)
		if err == nil {
			options.Continuation = &page.ContinuationToken
			for _, text := range page.Items {
				var found stored
				if json.Unmarshal(text, &found) == nil {
					seen <- found.ID
				}
			}
		}
		if err != nil || page.Count == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func createIn(t *testing.T, container *azcosmos.ContainerClient, in, id string, more fields) {
	t.Helper()
	all := fields{"pk": in}
	for name, value := range more {
		all[name] = value
	}
	_, err := container.CreateItem(background, azcosmos.NewPartitionKeyString(in), item(id, all), nil)
	check(t, err)
}

// allVersions asks for the feed of all versions and deletes, and for containers that keep one. The client has no option for
// either; policies can add the headers.
type allVersions struct{}

func (allVersions) Do(request *policy.Request) (*http.Response, error) {
	raw := request.Raw()
	switch {
	case raw.Method == http.MethodGet && strings.HasSuffix(raw.URL.Path, "/docs") && raw.Header.Get("A-IM") != "":
		raw.Header.Set("A-IM", "Full-Fidelity Feed")
		raw.Header.Set("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")
		if raw.Header.Get("If-None-Match") == "" {
			raw.Header.Set("If-None-Match", "*")
		}
	case raw.Method == http.MethodPost && strings.HasSuffix(raw.URL.Path, "/colls"):
		if err := keepHistory(request); err != nil {
			return nil, err
		}
	}
	return request.Next()
}

// keepHistory adds a change feed policy to the definition of a new container.
func keepHistory(request *policy.Request) error {
	text, err := io.ReadAll(request.Raw().Body)
	if err != nil {
		return err
	}
	definition := fields{}
	if err := json.Unmarshal(text, &definition); err != nil {
		return err
	}
	definition["changeFeedPolicy"] = fields{"retentionDuration": 60}
	if text, err = json.Marshal(definition); err != nil {
		return err
	}
	return request.SetBody(streaming.NopCloser(bytes.NewReader(text)), "application/json")
}

func TestT28AnExpiryIsADeleteAsOfItsInstant(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	container := container(t, database(t, client(t, s, allVersions{}), "feed"), properties("c", seconds(-1)), 20000)
	_, position := feed(t, container, &azcosmos.ChangeFeedOptions{FeedRange: &everything})
	create(t, container, "x", fields{"n": 1, "ttl": 10})
	create(t, container, "y", fields{"n": 1})
	_, err := container.DeleteItem(background, key, "y", nil)
	check(t, err)
	s.Advance(10)
	create(t, container, "x", fields{"n": 2})
	items, position := feed(t, container, &azcosmos.ChangeFeedOptions{Continuation: &position})
	expected := []string{"create x", "create y", "delete y of 1", "delete x of 1 expired", "create x"}
	equal(t, "versions", versions(t, items), expected)
	items, _ = feed(t, container, &azcosmos.ChangeFeedOptions{Continuation: &position})
	equal(t, "exactly once", len(items), 0)
}

// versions are the entries of a feed of all versions in few words.
func versions(t *testing.T, items [][]byte) []string {
	t.Helper()
	var told []string
	for _, text := range items {
		var entry struct {
			Current, Previous stored
			Metadata          struct {
				OperationType     string `json:"operationType"`
				TimeToLiveExpired bool   `json:"timeToLiveExpired"`
			}
		}
		check(t, json.Unmarshal(text, &entry))
		line := entry.Metadata.OperationType + " " + entry.Current.ID
		if entry.Metadata.OperationType == "delete" {
			line = fmt.Sprintf("delete %s of %d", entry.Previous.ID, entry.Previous.N)
		}
		if entry.Metadata.TimeToLiveExpired {
			line += " expired"
		}
		told = append(told, line)
	}
	return told
}
