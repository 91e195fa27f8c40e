package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bolide/compat/server"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// shop makes a database whose documents expire in each way (T6, T26, T27), an expired document in each collection, and a view.
//
//	carts: 3600 seconds by default; 1 has 60 of its own, 2 the default, 3 stays
//	seen:  an hour after a date, which 1 has now and 2 two hours ago
func shop(t *testing.T, s *server.Server) *mongo.Database {
	t.Helper()
	s.PausePurge()
	in := client(t, s).Database("shop")
	index(t, in, "carts", bson.D{{"key", bson.D{{"_ts", 1}}}, {"name", "_ts_1"}, {"expireAfterSeconds", 3600}})
	insert(t, in.Collection("carts"), bson.D{{"_id", 4}, {"ttl", 10}})
	s.Advance(10)
	insert(t, in.Collection("carts"),
		bson.D{{"_id", 1}, {"ttl", 60}, {"items", bson.A{"tea", bson.D{{"cup", int64(2)}}}}},
		bson.D{{"_id", 2}, {"price", 0.5}},
		bson.D{{"_id", 3}, {"ttl", -1}},
	)
	index(t, in, "seen", bson.D{{"key", bson.D{{"at", 1}}}, {"name", "at_1"}, {"expireAfterSeconds", 3600}})
	index(t, in, "seen", bson.D{{"key", bson.D{{"mail", 1}}}, {"name", "mail_1"}, {"unique", true},
		{"partialFilterExpression", bson.D{{"mail", bson.D{{"$exists", true}}}}}})
	at := func(seconds int64) bson.DateTime { return bson.NewDateTimeFromTime(time.Unix(s.Now()+seconds, 0)) }
	insert(t, in.Collection("seen"), bson.D{{"_id", 1}, {"at", at(0)}, {"mail", "a"}}, bson.D{{"_id", 2}, {"at", at(-7200)}})
	rule := bson.D{{"$jsonSchema", bson.D{{"required", bson.A{"_id"}}}}}
	check(t, in.RunCommand(background, bson.D{{"create", "checked"}, {"validator", rule}}).Err())
	check(t, in.CreateView(background, "dear", "carts", mongo.Pipeline{{{"$match", bson.D{{"price", bson.D{{"$gt", 0}}}}}}}))
	return in
}

// everything returns all that a restore of the database must bring back.
func everything(t *testing.T, in *mongo.Database) string {
	t.Helper()
	var text strings.Builder
	for _, name := range []string{"carts", "seen", "checked"} {
		fmt.Fprintln(&text, name, stored(t, in.Collection(name)), described(t, in.Collection(name)))
	}
	fmt.Fprintln(&text, "dear", stored(t, in.Collection("dear")))
	listed, err := in.ListCollectionSpecifications(background, bson.D{{"name", bson.D{{"$in", bson.A{"checked", "dear"}}}}})
	check(t, err)
	for _, collection := range listed {
		fmt.Fprintln(&text, collection.Name, collection.Type, collection.Options)
	}
	return text.String()
}

// countdowns checks that restored documents expire as their rules say: by `_ts` from the restore on, by date as ever.
func countdowns(t *testing.T, s *server.Server, in *mongo.Database) {
	t.Helper()
	for _, step := range []struct {
		seconds     int64
		carts, seen string
	}{{59, "[1 2 3]", "[1]"}, {1, "[2 3]", "[1]"}, {3539, "[2 3]", "[1]"}, {1, "[3]", "[]"}, {400 * day, "[3]", "[]"}} {
		s.Advance(step.seconds)
		numbers := func(name string) string {
			found := []int32{}
			for _, document := range stored(t, in.Collection(name)) {
				found = append(found, document.Lookup("_id").Int32())
			}
			return fmt.Sprint(found)
		}
		equal(t, "carts", numbers("carts"), step.carts)
		equal(t, "seen", numbers("seen"), step.seen)
	}
}

func TestT14ADumpHasTheLivingAndARestoreBringsThemBack(t *testing.T) {
	s := server.Start(t)
	in, folder := shop(t, s), t.TempDir()
	before := everything(t, in)
	run(t, "mongodump", uri(s), "--db=shop", "--out="+folder)
	dumped := run(t, "bsondump", "--quiet", filepath.Join(folder, "shop", "carts.bson"))
	equal(t, "the documents of the dump", strings.Count(dumped, "\n"), 3)
	if strings.Contains(dumped, `"_id":{"$numberInt":"4"}`) {
		t.Fatalf("the dump has an expired document: %s", dumped)
	}
	check(t, in.Drop(background))
	run(t, "mongorestore", uri(s), folder)
	equal(t, "everything", everything(t, in), before)
	countdowns(t, s, in)
}

func TestAnArchiveIsRestoredUnderAnotherNameByTLSWithThePassword(t *testing.T) {
	s := server.Start(t)
	in, folder := shop(t, s), t.TempDir()
	root, err := s.RootCertificate()
	check(t, err)
	ca, archive := filepath.Join(folder, "root.pem"), filepath.Join(folder, "shop.archive.gz")
	check(t, os.WriteFile(ca, root, 0o600))
	// The connection string of Cosmos DB.
	secured := []string{
		"--uri=mongodb://bolide:" + url.QueryEscape(server.EmulatorKey) + "@" + s.Mongo + "/?ssl=true&replicaSet=globaldb&retrywrites=false",
		"--sslCAFile=" + ca,
		"--archive=" + archive,
		"--gzip",
	}
	run(t, "mongodump", append(secured, "--db=shop")...)
	run(t, "mongorestore", append(secured, "--nsFrom=shop.*", "--nsTo=copy.*")...)
	copied := client(t, s).Database("copy")
	for _, name := range []string{"carts", "seen", "checked"} {
		equal(t, name, stored(t, copied.Collection(name)), stored(t, in.Collection(name)))
		equal(t, "indexes of "+name, described(t, copied.Collection(name)), described(t, in.Collection(name)))
	}
	countdowns(t, s, copied)
}

// Existing documents are kept, and reported; with --drop they are replaced.
func TestARestoreOverWhatIsThere(t *testing.T) {
	s := server.Start(t)
	in, folder := shop(t, s), t.TempDir()
	run(t, "mongodump", uri(s), "--db=shop", "--collection=carts", "--query={\"price\": {\"$gt\": 0}}", "--out="+folder)
	insert(t, in.Collection("carts"), bson.D{{"_id", 9}})
	_, told, err := try(t, "mongorestore", uri(s), folder)
	check(t, err)
	if !strings.Contains(told, "0 document(s) restored successfully. 1 document(s) failed to restore") || !strings.Contains(told, "E11000") {
		t.Fatal(told)
	}
	equal(t, "documents", len(ids(t, in.Collection("carts"))), 4)
	run(t, "mongorestore", uri(s), "--drop", folder)
	equal(t, "documents", len(ids(t, in.Collection("carts"))), 1)
}

// The tools of Bolide and those of MongoDB read each other's files.
func TestDumpsAreExchangedWithBolidesOwnTools(t *testing.T) {
	s := server.Start(t)
	in := shop(t, s)
	before := stored(t, in.Collection("carts"))
	theirs, ours := t.TempDir(), t.TempDir()
	bolide := func(arguments ...string) {
		t.Helper()
		command := exec.Command(os.Getenv("BOLIDE_BIN"), append(arguments, "--url", "http://"+s.HTTP)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("bolide %v: %v\n%s", arguments, err, output)
		}
	}
	run(t, "mongodump", uri(s), "--db=shop", "--collection=carts", "--out="+theirs)
	bolide("export", "shop/carts", "--format", "bson", "--dir", ours)
	for _, folder := range []string{theirs, ours} {
		output := run(t, "bsondump", "--quiet", "--type=json", filepath.Join(folder, "shop", "carts.bson"))
		equal(t, "documents", strings.Count(output, "\n"), 3)
	}
	check(t, in.Drop(background))
	bolide("import", "--dir", theirs)
	equal(t, "what bolide imported", stored(t, in.Collection("carts")), before)
	check(t, in.Drop(background))
	run(t, "mongorestore", uri(s), ours)
	equal(t, "what mongorestore restored", stored(t, in.Collection("carts")), before)
	equal(t, "indexes", len(described(t, in.Collection("carts"))), 2)
}

func TestExportAndImport(t *testing.T) {
	s := server.Start(t)
	in, folder := shop(t, s), t.TempDir()
	file := filepath.Join(folder, "carts.json")
	run(t, "mongoexport", uri(s), "--db=shop", "--collection=carts", "--sort={\"_id\": 1}", "--jsonFormat=canonical", "--out="+file)
	before := stored(t, in.Collection("carts"))
	_, err := in.Collection("carts").DeleteMany(background, all)
	check(t, err)
	run(t, "mongoimport", uri(s), "--db=shop", "--collection=carts", "--file="+file)
	equal(t, "documents", stored(t, in.Collection("carts")), before)

	// A change restarts the countdown, and a ttl from a table of text counts as well.
	table := filepath.Join(folder, "carts.csv")
	check(t, os.WriteFile(table, []byte("_id,ttl\n1,30\n7,20\n"), 0o600))
	run(t, "mongoimport", uri(s), "--db=shop", "--collection=carts", "--type=csv", "--headerline", "--mode=merge", "--file="+table)
	rows := run(t, "mongoexport", uri(s), "--quiet", "--db=shop", "--collection=carts", "--type=csv", "--fields=_id,ttl", "--sort={\"_id\": 1}")
	equal(t, "as a table", rows, "_id,ttl\n1,30\n2,\n3,-1\n7,20\n")
	s.Advance(20)
	rows = run(t, "mongoexport", uri(s), "--quiet", "--db=shop", "--collection=carts", "--fields=_id", "--sort={\"_id\": 1}")
	equal(t, "without the expired", rows, "{\"_id\":1}\n{\"_id\":2}\n{\"_id\":3}\n")
	s.Advance(10)
	rows = run(t, "mongoexport", uri(s), "--quiet", "--db=shop", "--collection=carts", "--fields=_id", "--sort={\"_id\": 1}")
	equal(t, "without the expired", rows, "{\"_id\":2}\n{\"_id\":3}\n")
}

func TestFiguresAndFiles(t *testing.T) {
	s := server.Start(t)
	shop(t, s)
	var rows map[string]map[string]string
	stat := run(t, "mongostat", uri(s), "--quiet", "--json", "--rowcount=2", "1")
	lines := strings.Split(strings.TrimSpace(stat), "\n")
	check(t, json.Unmarshal([]byte(lines[len(lines)-1]), &rows))
	for host, row := range rows {
		if row["conn"] == "" || row["insert"] == "" || row["res"] == "" {
			t.Fatalf("%s: %v", host, row)
		}
	}
	equal(t, "hosts", len(rows), 1)
	if top := run(t, "mongotop", uri(s), "--quiet", "--json", "--rowcount=1", "1"); !strings.Contains(top, "shop.carts") {
		t.Fatal(top)
	}

	folder := t.TempDir()
	from, to := filepath.Join(folder, "from"), filepath.Join(folder, "to")
	check(t, os.WriteFile(from, []byte(strings.Repeat("0123456789", 60_000)), 0o600))
	run(t, "mongofiles", uri(s), "--db=files", "--local="+from, "put", "tea")
	run(t, "mongofiles", uri(s), "--db=files", "--local="+to, "get", "tea")
	sent, err := os.ReadFile(from)
	check(t, err)
	got, err := os.ReadFile(to)
	check(t, err)
	if !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes came back, and not those %d that were sent", len(got), len(sent))
	}
}

// The server has no oplog: the tool reports that and writes nothing that looks like a whole dump.
func TestAnOplogIsRefused(t *testing.T) {
	s := server.Start(t)
	shop(t, s)
	_, told, err := try(t, "mongodump", uri(s), "--oplog", "--out="+t.TempDir())
	if err == nil || !strings.Contains(told, "oplog") {
		t.Fatalf("%v: %s", err, told)
	}
}
