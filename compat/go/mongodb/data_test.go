package mongodb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"bolide/compat/server"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestTypedDocumentsCursorsAndBulkWrites(t *testing.T) {
	type order struct {
		ID    int       `bson:"_id"`
		Lines []string  `bson:"lines"`
		Made  time.Time `bson:"made"`
	}
	collection := client(t, server.Start(t)).Database("data").Collection("orders")
	var models []mongo.WriteModel
	for n := range 250 {
		made := order{ID: n, Lines: []string{fmt.Sprint(n)}, Made: time.Unix(int64(n), 0).UTC()}
		models = append(models, mongo.NewInsertOneModel().SetDocument(made))
	}
	models = append(models, mongo.NewDeleteManyModel().SetFilter(bson.D{{"_id", bson.D{{"$gte", 200}}}}))
	done, err := collection.BulkWrite(background, models)
	check(t, err)
	equal(t, "inserted, deleted", []int64{done.InsertedCount, done.DeletedCount}, []int64{250, 50})
	cursor, err := collection.Find(background, all, options.Find().SetBatchSize(7).SetSort(bson.D{{"_id", -1}}))
	check(t, err)
	var orders []order
	check(t, cursor.All(background, &orders))
	equal(t, "orders", len(orders), 200)
	equal(t, "the first", fmt.Sprint(orders[0]), "{199 [199] 1970-01-01 00:03:19 +0000 UTC}")
}

func TestTransactionsAreWholeOrNotAtAll(t *testing.T) {
	connected := client(t, server.Start(t))
	collection := connected.Database("data").Collection("c")
	insert(t, collection, bson.D{{"_id", 0}})
	session, err := connected.StartSession()
	check(t, err)
	defer session.EndSession(background)
	_, err = session.WithTransaction(background, func(within context.Context) (any, error) {
		_, err := collection.InsertOne(within, bson.D{{"_id", 1}})
		return nil, err
	})
	check(t, err)
	check(t, session.StartTransaction())
	_, err = collection.InsertOne(mongo.NewSessionContext(background, session), bson.D{{"_id", 2}})
	check(t, err)
	check(t, session.AbortTransaction(background))
	equal(t, "living", living(t, collection), []int{0, 1})
}

func TestCompressors(t *testing.T) {
	s := server.Start(t)
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		wanted := options.Client().ApplyURI("mongodb://" + s.Mongo + "/?replicaSet=globaldb").SetCompressors([]string{name})
		collection := connect(t, wanted).Database("data").Collection(name)
		insert(t, collection, bson.D{{"_id", 1}, {"text", strings.Repeat("x", 10_000)}})
		equal(t, name, living(t, collection), []int{1})
	}
}

func TestTLSWithTheRootOfTheServerAndOnlyThen(t *testing.T) {
	s, other := server.Start(t), server.Start(t)
	_, port, _ := strings.Cut(s.Mongo, ":")
	trusting := func(host string, trusted *server.Server, selection time.Duration) *mongo.Client {
		pem, err := trusted.RootCertificate()
		check(t, err)
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			t.Fatalf("no certificate in %s", pem)
		}
		wanted := options.Client().ApplyURI("mongodb://" + host + ":" + port + "/?replicaSet=globaldb&tls=true")
		wanted.SetAuth(options.Credential{Username: "bolide", Password: server.EmulatorKey})
		wanted.SetTLSConfig(&tls.Config{RootCAs: roots}).SetServerSelectionTimeout(selection)
		return connect(t, wanted)
	}
	for number, host := range []string{"localhost", "127.0.0.1"} {
		collection := trusting(host, s, time.Minute).Database("tls").Collection("c")
		_, err := collection.InsertOne(background, bson.D{{"_id", number}})
		check(t, err)
	}
	err := trusting("localhost", other, 10*time.Second).Ping(background, nil)
	if err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Fatalf("another server's root must not do: %v", err)
	}
}
