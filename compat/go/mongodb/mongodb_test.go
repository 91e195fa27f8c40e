// Package mongodb tests Bolide through the MongoDB Go driver, as it is published. TTL.md's rules are named by number.
package mongodb

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"bolide/compat/server"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const day = server.Day

var (
	background = context.Background()
	all        = bson.D{}
)

func client(t *testing.T, s *server.Server) *mongo.Client {
	t.Helper()
	return connect(t, options.Client().ApplyURI("mongodb://"+s.Mongo+"/?replicaSet=globaldb"))
}

func connect(t *testing.T, wanted *options.ClientOptions) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(wanted)
	check(t, err)
	t.Cleanup(func() { _ = client.Disconnect(background) })
	return client
}

// expiring makes a collection whose default TTL is that (T26).
func expiring(t *testing.T, in *mongo.Database, name string, seconds int) *mongo.Collection {
	t.Helper()
	createTTLIndex(t, in, name, "_ts", seconds)
	return in.Collection(name)
}

// createTTLIndex makes it by command: -1 is a value that the driver's options cannot hold.
func createTTLIndex(t *testing.T, in *mongo.Database, name, field string, seconds any) {
	t.Helper()
	check(t, tryTTLIndex(in, name, field, seconds))
}

func tryTTLIndex(in *mongo.Database, name, field string, seconds any) error {
	index := bson.D{{"key", bson.D{{field, 1}}}, {"name", field + "_1"}, {"expireAfterSeconds", seconds}}
	return in.RunCommand(background, bson.D{{"createIndexes", name}, {"indexes", bson.A{index}}}).Err()
}

func setDefault(t *testing.T, collection *mongo.Collection, seconds int) {
	t.Helper()
	index := bson.D{{"name", "_ts_1"}, {"expireAfterSeconds", seconds}}
	command := bson.D{{"collMod", collection.Name()}, {"index", index}}
	check(t, collection.Database().RunCommand(background, command).Err())
}

func insert(t *testing.T, collection *mongo.Collection, documents ...bson.D) {
	t.Helper()
	_, err := collection.InsertMany(background, documents)
	check(t, err)
}

// living returns the ids of live documents; every way of reading must agree (T14).
func living(t *testing.T, collection *mongo.Collection) []int {
	t.Helper()
	found := ids(t, collection)
	number, err := collection.CountDocuments(background, all)
	check(t, err)
	equal(t, "countDocuments", number, int64(len(found)))
	estimate, err := collection.EstimatedDocumentCount(background)
	check(t, err)
	equal(t, "estimatedDocumentCount", estimate, int64(len(found)))
	var distinct []int
	check(t, collection.Distinct(background, "_id", all).Decode(&distinct))
	equal(t, "distinct", len(distinct), len(found))
	rows, err := collection.Aggregate(background, mongo.Pipeline{{{"$count", "n"}}})
	check(t, err)
	var counted []struct{ N int }
	check(t, rows.All(background, &counted))
	sum := 0
	for _, row := range counted {
		sum += row.N
	}
	equal(t, "$count", sum, len(found))
	return found
}

func ids(t *testing.T, collection *mongo.Collection) []int {
	t.Helper()
	cursor, err := collection.Find(background, all, options.Find().SetSort(bson.D{{"_id", 1}}))
	check(t, err)
	var documents []struct {
		ID int `bson:"_id"`
	}
	check(t, cursor.All(background, &documents))
	found := []int{}
	for _, document := range documents {
		found = append(found, document.ID)
	}
	return found
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that the server refused with that code.
func refused(t *testing.T, code int, err error) {
	t.Helper()
	var told mongo.ServerError
	if !errors.As(err, &told) || !told.HasErrorCode(code) {
		t.Fatalf("expected the code %d, got %v", code, err)
	}
}

func equal[T any](t *testing.T, what string, found, expected T) {
	t.Helper()
	left, right := fmt.Sprintf("%v", found), fmt.Sprintf("%v", expected)
	if left != right {
		t.Fatalf("%s: %s, and %s was expected", what, left, right)
	}
}
