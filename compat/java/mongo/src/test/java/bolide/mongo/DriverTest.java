// The synchronous driver: documents, cursors, bulk writes, sessions, transactions, change streams, retries, TLS and passwords.

package bolide.mongo;

import static bolide.mongo.Account.document;
import static bolide.mongo.Account.ids;
import static com.mongodb.client.model.Filters.and;
import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gt;
import static com.mongodb.client.model.Filters.in;
import static com.mongodb.client.model.Filters.lt;
import static com.mongodb.client.model.Filters.regex;
import static com.mongodb.client.model.Updates.combine;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.push;
import static com.mongodb.client.model.Updates.set;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import bolide.support.Server;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoCompressor;
import com.mongodb.MongoCredential;
import com.mongodb.MongoException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.model.Accumulators;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.BulkWriteOptions;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.Projections;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import com.mongodb.client.model.changestream.FullDocument;
import com.mongodb.client.model.changestream.OperationType;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.bson.BsonDocument;
import org.bson.Document;
import org.bson.UuidRepresentation;
import org.bson.types.Decimal128;
import org.bson.types.ObjectId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DriverTest {
    private static Account account;

    private MongoCollection<Document> collection;

    @BeforeAll
    static void start() {
        account = Account.start();
    }

    @AfterAll
    static void stop() {
        account.close();
    }

    @BeforeEach
    void collection() {
        collection = account.collection();
    }

    private void fill(int count) {
        collection.insertMany(IntStream.range(0, count).mapToObj(n -> document(n).append("n", n).append("kind", "k" + n % 3)).toList());
    }

    @Test
    void documentsOfEveryTypeComeBackAsTheyWere() {
        Document stored = document(new ObjectId())
            .append("text", "größe 🚀").append("int", 7).append("long", 1L << 40).append("double", 1.5)
            .append("decimal", Decimal128.parse("1.10")).append("date", new Date(1_700_000_000_123L)).append("none", null)
            .append("list", List.of(1, "two", new Document("three", 3))).append("truth", true);
        collection.insertOne(stored);
        assertEquals(stored, collection.find().first());
        var uuids = collection.withCodecRegistry(com.mongodb.MongoClientSettings.getDefaultCodecRegistry());
        assertNotNull(uuids.find(eq("text", "größe 🚀")).first());
        try (MongoClient client = MongoClients.create(
            Account.settings(account.server, account.server).uuidRepresentation(UuidRepresentation.STANDARD).build())) {
            UUID id = UUID.randomUUID();
            var same = client.getDatabase("java").getCollection(collection.getNamespace().getCollectionName());
            same.insertOne(document(id));
            assertEquals(id, same.find(eq("_id", id)).first().get("_id"));
        }
    }

    @Test
    void documentsAreFoundUpdatedAndDeleted() {
        fill(30);
        assertEquals(List.of(29, 26), ids(collection.find(eq("kind", "k2")).sort(Sorts.descending("n")).limit(2)));
        assertEquals(List.of(5, 6), ids(collection.find(and(gt("n", 4), lt("n", 7))).projection(Projections.include("_id"))));
        assertEquals(3, collection.countDocuments(in("n", 1, 2, 3)));
        assertEquals(30, collection.estimatedDocumentCount());
        assertEquals(10, collection.countDocuments(regex("kind", "^K1", "i")));
        assertEquals(10, collection.updateMany(eq("kind", "k1"), combine(inc("n", 100), push("seen", "x"))).getModifiedCount());
        Document before = collection.findOneAndUpdate(eq("_id", 1), set("kind", "other"));
        assertEquals("k1", before.getString("kind"));
        assertEquals(9, collection.deleteMany(eq("kind", "k1")).getDeletedCount());
        assertEquals(11000, assertThrows(MongoWriteException.class, () -> collection.insertOne(document(0))).getError().getCode());
    }

    @Test
    void cursorsGoThroughBatches() {
        fill(1000);
        List<Object> seen = ids(collection.find().sort(Sorts.ascending("n")).batchSize(7));
        assertEquals(IntStream.range(0, 1000).boxed().toList(), seen);
        try (MongoCursor<Document> cursor = collection.find().batchSize(2).iterator()) {
            cursor.next();
            assertNotNull(cursor.getServerCursor());
        }
    }

    @Test
    void pipelines() {
        fill(30);
        var sums = collection.aggregate(List.of(
            Aggregates.match(gt("n", 2)),
            Aggregates.group("$kind", Accumulators.sum("sum", "$n"), Accumulators.max("most", "$n")),
            Aggregates.sort(Sorts.ascending("_id")))).into(new ArrayList<>());
        assertEquals(List.of(135, 144, 153), sums.stream().map(sum -> sum.getInteger("sum")).toList());
        collection.aggregate(List.of(Aggregates.match(eq("kind", "k0")), Aggregates.out("out"))).toCollection();
        assertEquals(10, account.database.getCollection("out").countDocuments());
    }

    @Test
    void bulkWrites() {
        var result = collection.bulkWrite(List.of(
            new InsertOneModel<>(document(1)), new InsertOneModel<>(document(2)),
            new UpdateOneModel<>(eq("_id", 1), set("n", 1)), new ReplaceOneModel<>(eq("_id", 2), new Document("n", 2)),
            new DeleteOneModel<>(eq("_id", 1))));
        assertEquals(2, result.getInsertedCount());
        assertEquals(2, result.getModifiedCount());
        assertEquals(1, result.getDeletedCount());
        var failed = assertThrows(MongoBulkWriteException.class, () -> collection.bulkWrite(
            List.of(new InsertOneModel<>(document(2)), new InsertOneModel<>(document(3))), new BulkWriteOptions().ordered(false)));
        assertEquals(1, failed.getWriteErrors().size());
        assertEquals(1, failed.getWriteResult().getInsertedCount());
    }

    @Test
    void indexesAreMadeListedAndDropped() {
        String name = collection.createIndex(Indexes.compoundIndex(Indexes.ascending("a"), Indexes.descending("b")));
        assertEquals("a_1_b_-1", name);
        collection.createIndex(Indexes.ascending("unique"), new IndexOptions().unique(true).sparse(true));
        assertEquals(3, collection.listIndexes().into(new ArrayList<>()).size());
        collection.dropIndex(name);
        assertEquals(2, collection.listIndexes().into(new ArrayList<>()).size());
    }

    @Test
    void aTransactionIsCommittedWholeOrNotAtAll() {
        fill(3);
        try (ClientSession session = account.client.startSession()) {
            session.startTransaction();
            collection.insertOne(session, document("a"));
            collection.updateOne(session, eq("_id", 0), set("n", 100));
            assertNull(collection.find(eq("_id", "a")).first(), "not seen outside");
            assertNotNull(collection.find(session, eq("_id", "a")).first());
            session.commitTransaction();
            assertEquals(100, collection.find(eq("_id", 0)).first().getInteger("n"));

            session.startTransaction();
            collection.deleteMany(session, new Document());
            session.abortTransaction();
            assertEquals(4, collection.countDocuments());
            assertEquals("done", session.withTransaction(() -> {
                collection.insertOne(session, document("b"));
                return "done";
            }));
            assertEquals(5, collection.countDocuments());
        }
    }

    @Test
    void ofTwoTransactionsThatWriteOneDocumentTheSecondConflicts() {
        fill(1);
        try (ClientSession one = account.client.startSession(); ClientSession two = account.client.startSession()) {
            one.startTransaction();
            two.startTransaction();
            collection.updateOne(one, eq("_id", 0), inc("n", 1));
            MongoException conflict =
                assertThrows(MongoException.class, () -> collection.updateOne(two, eq("_id", 0), inc("n", 1)));
            assertEquals(112, conflict.getCode());
            assertTrue(conflict.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL));
            one.commitTransaction();
        }
    }

    @Test
    void sessionsReadTheirOwnWrites() {
        try (ClientSession session = account.client.startSession()) {
            for (int n = 0; n < 20; n += 1) {
                collection.insertOne(session, document(n));
                assertEquals(n + 1, collection.countDocuments(session));
            }
            assertNotNull(session.getOperationTime());
        }
    }

    @Test
    void aChangeStreamTellsEveryChangeAndResumes() {
        BsonDocument token;
        try (var changes = collection.watch().fullDocument(FullDocument.UPDATE_LOOKUP).cursor()) {
            fill(2);
            collection.updateOne(eq("_id", 1), set("n", 7));
            collection.deleteOne(eq("_id", 0));
            List<ChangeStreamDocument<Document>> seen = List.of(changes.next(), changes.next(), changes.next(), changes.next());
            assertEquals(List.of(OperationType.INSERT, OperationType.INSERT, OperationType.UPDATE, OperationType.DELETE),
                seen.stream().map(ChangeStreamDocument::getOperationType).toList());
            assertEquals(7, seen.get(2).getUpdateDescription().getUpdatedFields().getInt32("n").getValue());
            assertEquals(7, seen.get(2).getFullDocument().getInteger("n"));
            token = seen.get(1).getResumeToken();
        }
        try (var resumed = collection.watch().resumeAfter(token).cursor()) {
            assertEquals(OperationType.UPDATE, resumed.next().getOperationType());
            assertEquals(OperationType.DELETE, resumed.next().getOperationType());
            assertNull(resumed.tryNext());
        }
    }

    @Test
    void readsWritesAndStreamsGoOnAfterKillNine(@TempDir Path folder) {
        try (Account own = Account.on(Server.startIn(folder))) {
            MongoCollection<Document> kept = own.collection();
            kept.insertOne(document("before"));
            try (var changes = kept.watch().cursor()) {
                kept.insertOne(document("seen"));
                assertEquals("seen", changes.next().getDocumentKey().getString("_id").getValue());
                own.server.kill();
                own.server.restart();
                kept.insertOne(document("after"));
                assertEquals("after", changes.next().getDocumentKey().getString("_id").getValue());
            }
            assertEquals(List.of("before", "seen", "after"), ids(kept.find()));
        }
    }

    @Test
    void onlyAClientThatTrustsTheRootConnects() {
        try (Server stranger = Server.start()) {
            var distrusting = Account.settings(account.server, stranger)
                .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(10, TimeUnit.SECONDS));
            try (MongoClient client = MongoClients.create(distrusting.build())) {
                var refusal = assertThrows(MongoTimeoutException.class, () -> client.listDatabaseNames().first());
                assertTrue(refusal.getMessage().contains("unable to find valid certification path"), refusal.getMessage());
            }
        }
    }

    @Test
    void thePasswordOfAUserIsTheKey() {
        try (Server guarded = Server.start("--mongo-auth")) {
            MongoCredential right = MongoCredential.createCredential("bolide", "admin", Server.KEY.toCharArray());
            MongoCredential wrong = MongoCredential.createCredential("bolide", "admin", "wrong".toCharArray());
            try (MongoClient client = MongoClients.create(Account.settings(guarded, guarded).credential(right).build())) {
                client.getDatabase("java").getCollection("c").insertOne(document(1));
            }
            try (MongoClient client = MongoClients.create(Account.settings(guarded, guarded).credential(wrong).build())) {
                assertThrows(MongoException.class, () -> client.getDatabase("java").getCollection("c").insertOne(document(2)));
            }
        }
    }

    @Test
    void compressedMessages() {
        var settings = Account.settings(account.server, account.server).compressorList(List.of(MongoCompressor.createZlibCompressor()));
        try (MongoClient client = MongoClients.create(settings.build())) {
            var same = client.getDatabase("java").getCollection(collection.getNamespace().getCollectionName());
            same.insertMany(IntStream.range(0, 100).mapToObj(n -> document(n).append("text", "x".repeat(1000))).toList());
            assertEquals(100, ids(same.find()).size());
        }
    }

    @Test
    void collectionsAndDatabasesAreListedAndDropped() {
        fill(1);
        String name = collection.getNamespace().getCollectionName();
        assertTrue(account.database.listCollectionNames().into(new ArrayList<>()).contains(name));
        assertTrue(account.client.listDatabaseNames().into(new ArrayList<>()).contains("java"));
        collection.drop();
        assertFalse(account.database.listCollectionNames().into(new ArrayList<>()).contains(name));
        assertThrows(MongoCommandException.class, () -> account.database.runCommand(new Document("noSuchCommand", 1)));
    }
}
