// Package tools tests Bolide through MongoDB's own tools, as they are published: mongodump, mongorestore, mongoexport, mongoimport,
// bsondump, mongostat, mongotop and mongofiles. They are built from the module that go.mod pins.
package tools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"bolide/compat/server"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	module = "github.com/mongodb/mongo-tools"
	day    = server.Day
)

var (
	background = context.Background()
	all        = bson.D{}

	// built is where the tools of this run are, and buildOnce holds what each needs to be built.
	built     string
	buildOnce sync.Map
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "mongo-tools")
	if err != nil {
		panic(err)
	}
	built = folder
	status := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

// program builds a tool, once, and returns where it is. Go keeps what it has compiled, so the next run only links.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(built, name)
	build, _ := buildOnce.LoadOrStore(name, sync.OnceValue(func() error {
		output, err := exec.Command("go", "build", "-o", path, module+"/"+name+"/main").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	}))
	check(t, build.(func() error)())
	return path
}

// run runs a tool, which must succeed, and returns what it wrote to its standard output.
func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	output, told, err := try(t, name, arguments...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, told)
	}
	return output
}

// try runs a tool and returns its standard output, what it told of its progress, and an error unless it succeeded.
func try(t *testing.T, name string, arguments ...string) (output, told string, err error) {
	t.Helper()
	command := exec.Command(program(t, name), arguments...)
	var out, progress bytes.Buffer
	command.Stdout, command.Stderr = &out, &progress
	err = command.Run()
	return out.String(), progress.String(), err
}

func uri(s *server.Server) string { return "--uri=mongodb://" + s.Mongo + "/?replicaSet=globaldb" }

func client(t *testing.T, s *server.Server) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.Mongo + "/?replicaSet=globaldb"))
	check(t, err)
	t.Cleanup(func() { _ = client.Disconnect(background) })
	return client
}

func insert(t *testing.T, collection *mongo.Collection, documents ...bson.D) {
	t.Helper()
	_, err := collection.InsertMany(background, documents)
	check(t, err)
}

func index(t *testing.T, in *mongo.Database, name string, specification bson.D) {
	t.Helper()
	check(t, in.RunCommand(background, bson.D{{"createIndexes", name}, {"indexes", bson.A{specification}}}).Err())
}

// stored returns the documents in the order of their ids, byte for byte.
func stored(t *testing.T, collection *mongo.Collection) []bson.Raw {
	t.Helper()
	cursor, err := collection.Find(background, all, options.Find().SetSort(bson.D{{"_id", 1}}))
	check(t, err)
	documents := []bson.Raw{}
	check(t, cursor.All(background, &documents))
	return documents
}

func ids(t *testing.T, collection *mongo.Collection) []string {
	t.Helper()
	found := []string{}
	for _, document := range stored(t, collection) {
		found = append(found, document.Lookup("_id").String())
	}
	return found
}

// described returns what listIndexes tells of each index, in the order of their names.
func described(t *testing.T, collection *mongo.Collection) []bson.Raw {
	t.Helper()
	cursor, err := collection.Indexes().List(background)
	check(t, err)
	indexes := []bson.Raw{}
	check(t, cursor.All(background, &indexes))
	byName := func(one, other bson.Raw) int {
		return strings.Compare(one.Lookup("name").StringValue(), other.Lookup("name").StringValue())
	}
	slices.SortFunc(indexes, byName)
	return indexes
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, what string, found, expected T) {
	t.Helper()
	left, right := fmt.Sprintf("%v", found), fmt.Sprintf("%v", expected)
	if left != right {
		t.Fatalf("%s:\n%s, and\n%s was expected", what, left, right)
	}
}
