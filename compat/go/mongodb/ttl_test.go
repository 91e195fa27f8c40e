package mongodb

import (
	"fmt"
	"testing"
	"time"

	"bolide/compat/server"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// never is the ttl of a document that does not expire.
const never = -1

func TestT2TruthTable(t *testing.T) {
	s := server.Start(t)
	in := client(t, s).Database("ttl")
	cells := []struct {
		// 0 is no index.
		defaultTTL int
		ttl        any
		seconds    int64
	}{
		{0, nil, never},
		{0, -1, never},
		{0, 100, never},
		{-1, nil, never},
		{-1, -1, never},
		{-1, 100, 100},
		{200, nil, 200},
		{200, -1, never},
		{200, 100, 100},
	}
	for number, cell := range cells {
		t.Run(fmt.Sprintf("default %d, ttl %v", cell.defaultTTL, cell.ttl), func(t *testing.T) {
			collection := in.Collection(fmt.Sprintf("c%d", number))
			if cell.defaultTTL != 0 {
				collection = expiring(t, in, collection.Name(), cell.defaultTTL)
			}
			document := bson.D{{"_id", 1}}
			if cell.ttl != nil {
				document = append(document, bson.E{Key: "ttl", Value: cell.ttl})
			}
			insert(t, collection, document)
			start := s.Now()
			if cell.seconds == never {
				s.Advance(400 * day)
				equal(t, "living", living(t, collection), []int{1})
				return
			}
			s.MoveTo(start + cell.seconds - 5)
			equal(t, "living before", living(t, collection), []int{1})
			s.MoveTo(start + cell.seconds)
			equal(t, "living then", living(t, collection), []int{})
		})
	}
}

// The program of TTL's documentation, for a collection: 30 days of its own, extended, turned off, 90 days by default, removed.
func TestOrders(t *testing.T) {
	s := server.Start(t)
	orders := expiring(t, client(t, s).Database("shop"), "orders", -1)
	order := func(more ...bson.E) bson.D { return append(bson.D{{"_id", 5}, {"value", 100}}, more...) }
	change := func(update bson.D) {
		t.Helper()
		done, err := orders.UpdateByID(background, 5, update)
		check(t, err)
		equal(t, "modified", done.ModifiedCount, int64(1))
	}
	lives := func(expected ...int) {
		t.Helper()
		equal(t, "living", living(t, orders), append([]int{}, expected...))
	}

	insert(t, orders, order(bson.E{Key: "ttl", Value: 30 * day}))
	s.Advance(30*day - 60)
	lives(5)
	change(bson.D{{"$set", bson.D{{"ttl", 60 * day}}}})
	s.Advance(60*day - 60)
	lives(5)
	change(bson.D{{"$set", bson.D{{"ttl", -1}}}})
	s.Advance(400 * day)
	lives(5)
	change(bson.D{{"$unset", bson.D{{"ttl", ""}}}})
	s.Advance(400 * day)
	lives(5)

	// 90 days by default: this one is older and expires at once; a new one gets its 90 days.
	setDefault(t, orders, 90*day)
	lives()
	insert(t, orders, order())
	s.Advance(90*day - 60)
	lives(5)
	s.Advance(60)
	lives()

	// No default: nothing expires any more, own ttl or not, and nothing expired returns.
	check(t, orders.Indexes().DropOne(background, "_ts_1"))
	lives()
	insert(t, orders, order(bson.E{Key: "ttl", Value: 5}))
	s.Advance(400 * day)
	lives(5)
}

// An own ttl that is no valid time to live is stored and ignored here (T6); the NoSQL API refuses it (T5).
func TestT6WhichTTLCounts(t *testing.T) {
	s := server.Start(t)
	in := client(t, s).Database("ttl")
	decimal, err := bson.ParseDecimal128("20")
	check(t, err)
	table := []struct {
		ttl     any
		seconds int64
	}{
		{int32(20), 20},
		{int64(20), 20},
		{20.0, 20},
		{int32(-1), never},
		{-1.0, never},
		{20.5, 100},
		{int64(2147483649), 100},
		{"20", 100},
		{0, 100},
		{-5, 100},
		{nil, 100},
		{decimal, 100},
		{true, 100},
	}
	for number, row := range table {
		collection := expiring(t, in, fmt.Sprintf("c%d", number), 100)
		insert(t, collection, bson.D{{"_id", 1}, {"ttl", row.ttl}})
		if row.seconds == never {
			s.Advance(400 * day)
			equal(t, fmt.Sprint(row.ttl), living(t, collection), []int{1})
			continue
		}
		s.Advance(row.seconds - 5)
		equal(t, fmt.Sprint(row.ttl), living(t, collection), []int{1})
		s.Advance(5)
		equal(t, fmt.Sprint(row.ttl), living(t, collection), []int{})
	}
}

func TestT9EveryChangeRestartsTheCountdown(t *testing.T) {
	s := server.Start(t)
	collection := expiring(t, client(t, s).Database("ttl"), "c", 100)
	insert(t, collection, bson.D{{"_id", 1}, {"n", 0}})
	increment := bson.D{{"$inc", bson.D{{"n", 1}}}}
	changes := []func() error{
		func() error { _, err := collection.UpdateByID(background, 1, increment); return err },
		func() error { _, err := collection.ReplaceOne(background, all, bson.D{{"n", 7}}); return err },
		func() error { return collection.FindOneAndUpdate(background, all, increment).Err() },
		func() error {
			model := mongo.NewUpdateManyModel().SetFilter(all).SetUpdate(increment)
			_, err := collection.BulkWrite(background, []mongo.WriteModel{model})
			return err
		},
	}
	for _, change := range changes {
		s.Advance(90)
		check(t, change())
	}
	s.Advance(90)
	// An update that changes nothing is no write.
	done, err := collection.UpdateByID(background, 1, bson.D{{"$set", bson.D{{"n", 9}}}})
	check(t, err)
	equal(t, "matched, modified", []int64{done.MatchedCount, done.ModifiedCount}, []int64{1, 0})
	equal(t, "living", living(t, collection), []int{1})
	s.Advance(10)
	equal(t, "living", living(t, collection), []int{})
}

func TestT10TheOwnTTLIsAnOrdinaryField(t *testing.T) {
	s := server.Start(t)
	collection := expiring(t, client(t, s).Database("ttl"), "c", 1000)
	insert(t, collection, bson.D{{"_id", 1}, {"ttl", 100}})
	changes := []struct {
		update  bson.D
		advance int64
	}{
		{bson.D{{"$set", bson.D{{"ttl", 300}}}}, 290},
		{bson.D{{"$unset", bson.D{{"ttl", ""}}}}, 990},
		{bson.D{{"$set", bson.D{{"ttl", -1}}}}, 400 * day},
		{bson.D{{"$unset", bson.D{{"ttl", ""}}}}, 990},
	}
	for _, change := range changes {
		changed, err := collection.UpdateByID(background, 1, change.update)
		check(t, err)
		equal(t, "modified", changed.ModifiedCount, int64(1))
		s.Advance(change.advance)
		equal(t, "living", living(t, collection), []int{1})
	}
	s.Advance(10)
	equal(t, "living", living(t, collection), []int{})
}

func TestT14NoOperationSeesTheExpiredBeforeThePurge(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	collection := expiring(t, client(t, s).Database("ttl"), "c", -1)
	_, err := collection.Indexes().CreateOne(background, mongo.IndexModel{Keys: bson.D{{"n", 1}}})
	check(t, err)
	for n := 1; n <= 6; n++ {
		insert(t, collection, bson.D{{"_id", n}, {"n", n}, {"ttl", []int{-1, 100}[n%2]}})
	}
	s.Advance(100)
	equal(t, "living", living(t, collection), []int{2, 4, 6})
	for n := 1; n <= 6; n++ {
		for _, filter := range []bson.D{{{"_id", n}}, {{"n", n}}, {{"ttl", 100}, {"n", n}}} {
			err := collection.FindOne(background, filter).Err()
			if lives := n%2 == 0 && len(filter) == 1; lives != (err == nil) {
				t.Fatalf("%v: %v", filter, err)
			}
		}
	}
	covered, err := collection.CountDocuments(background, bson.D{{"n", bson.D{{"$gte", 3}}}})
	check(t, err)
	equal(t, "counted by the index", covered, int64(2))
	group := bson.D{{"$group", bson.D{{"_id", nil}, {"sum", bson.D{{"$sum", "$n"}}}}}}
	cursor, err := collection.Aggregate(background, mongo.Pipeline{group})
	check(t, err)
	var sums []struct{ Sum int }
	check(t, cursor.All(background, &sums))
	equal(t, "sums", sums, []struct{ Sum int }{{12}})
}

func TestT11T12T13DefaultsRedateAtOnceAndReviveNothing(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	collection := expiring(t, client(t, s).Database("ttl"), "c", 100)
	insert(t, collection, bson.D{{"_id", 1}})
	s.Advance(50)
	insert(t, collection, bson.D{{"_id", 2}}, bson.D{{"_id", 3}, {"ttl", 2000}})
	s.Advance(50)
	for _, seconds := range []int{10_000, -1, 1_000_000} {
		setDefault(t, collection, seconds)
		equal(t, "living", living(t, collection), []int{2, 3})
	}
	s.Advance(500)
	setDefault(t, collection, 400)
	equal(t, "older than the default", living(t, collection), []int{3})
	check(t, collection.Indexes().DropOne(background, "_ts_1"))
	s.Advance(10_000)
	equal(t, "off", living(t, collection), []int{3})
	createTTLIndex(t, collection.Database(), "c", "_ts", -1)
	equal(t, "on again", living(t, collection), []int{})
}

func TestT13TheExpiredStayExpiredOverKill9(t *testing.T) {
	s := server.StartOnDisk(t)
	s.PausePurge()
	collection := expiring(t, client(t, s).Database("ttl"), "c", 100)
	insert(t, collection, bson.D{{"_id", 1}}, bson.D{{"_id", 2}, {"ttl", 1000}})
	s.Advance(100)
	equal(t, "living", living(t, collection), []int{2})
	s.Kill()
	s.StartAgain()
	// The pool of the old client has connections of the killed server, and collMod is no command that is sent twice.
	collection = client(t, s).Database("ttl").Collection("c")
	setDefault(t, collection, 100_000)
	equal(t, "living", living(t, collection), []int{2})
}

func TestT15TheExpiredStandInTheWayOfNothing(t *testing.T) {
	s := server.Start(t)
	s.PausePurge()
	collection := expiring(t, client(t, s).Database("ttl"), "c", -1)
	index := mongo.IndexModel{Keys: bson.D{{"key", 1}}, Options: options.Index().SetUnique(true)}
	_, err := collection.Indexes().CreateOne(background, index)
	check(t, err)
	for n := 1; n <= 4; n++ {
		insert(t, collection, bson.D{{"_id", n}, {"key", n}, {"ttl", []int{50, -1}[n/3]}})
	}
	s.Advance(50)
	equal(t, "living", living(t, collection), []int{3, 4})

	missed, err := collection.UpdateByID(background, 1, bson.D{{"$set", bson.D{{"x", 1}}}})
	check(t, err)
	equal(t, "matched", missed.MatchedCount, int64(0))
	gone, err := collection.DeleteMany(background, bson.D{{"_id", bson.D{{"$lt", 3}}}})
	check(t, err)
	equal(t, "deleted", gone.DeletedCount, int64(0))
	if err := collection.FindOneAndDelete(background, bson.D{{"_id", 2}}).Err(); err != mongo.ErrNoDocuments {
		t.Fatalf("found: %v", err)
	}
	_, err = collection.InsertOne(background, bson.D{{"_id", 9}, {"key", 3}})
	if !mongo.IsDuplicateKeyError(err) {
		t.Fatalf("the key of a living document was taken: %v", err)
	}
	insert(t, collection, bson.D{{"_id", 9}, {"key", 1}})
	upsert := options.UpdateOne().SetUpsert(true)
	made, err := collection.UpdateByID(background, 2, bson.D{{"$set", bson.D{{"key", 2}}}}, upsert)
	check(t, err)
	equal(t, "upserted", made.UpsertedCount, int64(1))
	equal(t, "living", living(t, collection), []int{2, 3, 4, 9})
}

func TestT16ABatchAfterADeadlineAndATransactionOverIt(t *testing.T) {
	s := server.Start(t)
	connected := client(t, s)
	collection := expiring(t, connected.Database("ttl"), "c", -1)
	for n := 1; n <= 6; n++ {
		insert(t, collection, bson.D{{"_id", n}, {"ttl", []int{-1, 50}[n/5]}})
	}
	session, err := connected.StartSession()
	check(t, err)
	defer session.EndSession(background)
	check(t, session.StartTransaction())
	within := mongo.NewSessionContext(background, session)
	_, err = collection.UpdateByID(within, 6, bson.D{{"$set", bson.D{{"seen", true}}}})
	check(t, err)

	cursor, err := collection.Find(background, all, options.Find().SetSort(bson.D{{"_id", 1}}).SetBatchSize(2))
	check(t, err)
	if !cursor.Next(background) {
		t.Fatal(cursor.Err())
	}
	s.Advance(50)
	var rest []int32
	for cursor.Next(background) {
		rest = append(rest, cursor.Current.Lookup("_id").Int32())
	}
	check(t, cursor.Err())
	equal(t, "the rest", rest, []int32{2, 3, 4})
	refused(t, 112, session.CommitTransaction(background))
	equal(t, "living", living(t, collection), []int{1, 2, 3, 4})
}

func TestT26TheIndexOnTsIsTheDefault(t *testing.T) {
	in := client(t, server.Start(t)).Database("ttl")
	for _, bad := range []any{0, -2, 1.5, int64(2147483648), "10"} {
		refused(t, 67, tryTTLIndex(in, "bad", "_ts", bad))
	}
	collection := in.Collection("c")
	model := mongo.IndexModel{Keys: bson.D{{"_ts", 1}}, Options: options.Index().SetExpireAfterSeconds(10)}
	name, err := collection.Indexes().CreateOne(background, model)
	check(t, err)
	equal(t, "name", name, "_ts_1")
	for _, expected := range []int32{10, 20} {
		setDefault(t, collection, int(expected))
		listed, err := collection.Indexes().ListSpecifications(background)
		check(t, err)
		equal(t, "indexes", len(listed), 2)
		equal(t, "expireAfterSeconds", *listed[1].ExpireAfterSeconds, expected)
	}
	insert(t, collection, bson.D{{"_id", 1}, {"_ts", "the user's"}})
	var found bson.M
	check(t, collection.FindOne(background, all).Decode(&found))
	equal(t, "a field of the user's", fmt.Sprint(found["_ts"]), "the user's")
	check(t, collection.Indexes().DropAll(background))
	listed, err := collection.Indexes().ListSpecifications(background)
	check(t, err)
	equal(t, "indexes", len(listed), 1)
}

func TestT27ARuleByDate(t *testing.T) {
	s := server.Start(t)
	in := client(t, s).Database("ttl")
	createTTLIndex(t, in, "c", "at", 0)
	collection, now := in.Collection("c"), s.Now()
	at := func(seconds int64) bson.DateTime { return bson.NewDateTimeFromTime(time.Unix(now+seconds, 0)) }
	insert(t, collection,
		bson.D{{"_id", 1}, {"at", at(50)}},
		bson.D{{"_id", 2}, {"at", bson.A{at(day), at(100)}}},
		bson.D{{"_id", 3}, {"at", "never"}},
		bson.D{{"_id", 4}, {"at", at(-1)}},
	)
	equal(t, "living", living(t, collection), []int{1, 2, 3})
	s.MoveTo(now + 50)
	equal(t, "living", living(t, collection), []int{2, 3})
	s.MoveTo(now + 100)
	equal(t, "living", living(t, collection), []int{3})
	check(t, collection.Indexes().DropOne(background, "at_1"))
	equal(t, "living", living(t, collection), []int{3})
}
