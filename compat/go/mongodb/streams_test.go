package mongodb

import (
	"context"
	"fmt"
	"testing"
	"time"

	"bolide/compat/server"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// event of a change stream.
type event struct {
	OperationType string `bson:"operationType"`
	DocumentKey   struct {
		ID int `bson:"_id"`
	} `bson:"documentKey"`
	Bolide struct{ Expired bool }
}

func (e event) String() string {
	text := fmt.Sprintf("%s %d", e.OperationType, e.DocumentKey.ID)
	if e.Bolide.Expired {
		text += " expired"
	}
	return text
}

// take returns the next events in few words.
func take(t *testing.T, stream *mongo.ChangeStream, count int) []string {
	t.Helper()
	within, stop := context.WithTimeout(background, time.Minute)
	defer stop()
	var told []string
	for len(told) < count {
		if !stream.Next(within) {
			t.Fatalf("after %v: %v", told, stream.Err())
		}
		var found event
		check(t, stream.Decode(&found))
		told = append(told, found.String())
	}
	return told
}

func watch(t *testing.T, collection *mongo.Collection, wanted *options.ChangeStreamOptionsBuilder) *mongo.ChangeStream {
	t.Helper()
	stream, err := collection.Watch(background, mongo.Pipeline{}, wanted.SetMaxAwaitTime(20*time.Millisecond))
	check(t, err)
	t.Cleanup(func() { _ = stream.Close(background) })
	return stream
}

func TestT28AnExpiryIsADeleteAsOfItsInstant(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	collection := expiring(t, client(t, s).Database("streams"), "c", -1)
	stream := watch(t, collection, options.ChangeStream())
	start := stream.ResumeToken()
	insert(t, collection, bson.D{{"_id", 1}, {"ttl", 10}})
	_, err := collection.UpdateByID(background, 1, bson.D{{"$set", bson.D{{"x", 1}}}})
	check(t, err)
	s.Advance(10)
	insert(t, collection, bson.D{{"_id", 1}, {"again", true}})
	expected := []string{"insert 1", "update 1", "delete 1 expired", "insert 1"}
	equal(t, "events", take(t, stream, 4), expected)
	if stream.TryNext(background) {
		t.Errorf("one more: %v", stream.Current)
	}
	equal(t, "from the start", take(t, watch(t, collection, options.ChangeStream().SetResumeAfter(start)), 4), expected)
}

// A stream that is open while the server is killed continues by itself where it was; so does one opened with its token.
func TestAStreamGoesOnOverKill9(t *testing.T) {
	s := server.StartOnDisk(t)
	s.PausePurge()
	collection := expiring(t, client(t, s).Database("streams"), "c", -1)
	stream := watch(t, collection, options.ChangeStream())
	insert(t, collection, bson.D{{"_id", 1}, {"ttl", 1000}}, bson.D{{"_id", 2}})
	equal(t, "before", take(t, stream, 1), []string{"insert 1"})
	token := stream.ResumeToken()
	s.Kill()
	s.StartAgain()
	s.Advance(1000)
	insert(t, collection, bson.D{{"_id", 3}})
	expected := []string{"insert 2", "delete 1 expired", "insert 3"}
	equal(t, "the open stream", take(t, stream, 3), expected)
	resumed := watch(t, collection, options.ChangeStream().SetResumeAfter(token))
	equal(t, "a resumed one", take(t, resumed, 3), expected)
}

func TestAChangedTokenAndOneOlderThanTheHistoryAreRefused(t *testing.T) {
	s := server.Start(t)
	collection := expiring(t, client(t, s).Database("streams"), "c", -1)
	stream := watch(t, collection, options.ChangeStream())
	insert(t, collection, bson.D{{"_id", 1}})
	equal(t, "event", take(t, stream, 1), []string{"insert 1"})
	var token struct {
		Data string `bson:"_data"`
	}
	check(t, bson.Unmarshal(stream.ResumeToken(), &token))
	cut := bson.D{{"_data", token.Data[:len(token.Data)-2]}}
	_, err := collection.Watch(background, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(cut))
	refused(t, 260, err)
	s.Advance(25 * 60 * 60)
	_, err = collection.Watch(background, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(stream.ResumeToken()))
	refused(t, 286, err)
}
