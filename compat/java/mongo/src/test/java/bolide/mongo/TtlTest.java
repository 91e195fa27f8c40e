// Time to live through the MongoDB API: T2, T6, T9 to T16, T26, T27 and T28 with the clock moved.

package bolide.mongo;

import static bolide.mongo.Account.document;
import static bolide.mongo.Account.ids;
import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.set;
import static com.mongodb.client.model.Updates.unset;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import bolide.support.Server;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import com.mongodb.client.model.changestream.OperationType;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.bson.Document;
import org.bson.types.Decimal128;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TtlTest {
    private static final int DAY = Server.DAY;

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
        account.server.pausePurge(false);
        collection = account.collection();
    }

    /** The default of the collection by an index on the time of writing. */
    private static void setDefault(MongoCollection<Document> collection, Integer seconds) {
        if (seconds != null) {
            collection.createIndex(Indexes.ascending("_ts"), new IndexOptions().expireAfter(seconds.longValue(), TimeUnit.SECONDS));
        }
    }

    /** Whether a document exists; every way of reading must agree (T14). */
    private static boolean isThere(MongoCollection<Document> collection, String id) {
        boolean found = collection.find(eq("_id", id)).first() != null;
        assertEquals(found ? 1 : 0, collection.countDocuments(eq("_id", id)), "count");
        assertEquals(found, ids(collection.find()).contains(id), "all documents");
        assertEquals(found, ids(collection.aggregate(List.of(new Document("$match", eq("_id", id))))).contains(id), "aggregate");
        assertEquals(found, collection.distinct("_id", BsonValue.class).into(new ArrayList<>()).contains(new BsonString(id)), "distinct");
        return found;
    }

    /** The default of the collection, the ttl of the document, the seconds until the expiry; empty is absent and never. */
    @ParameterizedTest
    @CsvSource({",,", ",-1,", ",100,", "-1,,", "-1,-1,", "-1,100,100", "200,,200", "200,-1,", "200,100,100"})
    void t2EveryCell(Integer defaultTtl, Integer ttl, Integer lives) {
        setDefault(collection, defaultTtl);
        long written = account.server.now();
        collection.insertOne(ttl == null ? document("x") : document("x").append("ttl", ttl));
        account.server.moveTo(written + (lives == null ? 400L * DAY : lives - 1));
        assertTrue(isThere(collection, "x"));
        if (lives != null) {
            account.server.advance(1);
            assertFalse(isThere(collection, "x"));
        }
    }

    @Test
    void t6AnotherValueIsStoredAndTheDefaultApplies() {
        setDefault(collection, 100);
        Object[] others = {20.5, 2147483649L, "20", 0, -5, null, Decimal128.parse("20"), true, new Document()};
        for (int n = 0; n < others.length; n += 1) {
            collection.insertOne(document(n).append("ttl", others[n]));
        }
        collection.insertMany(List.of(document("int64").append("ttl", 50L), document("double").append("ttl", 50.0)));
        account.server.advance(50);
        assertEquals(others.length, collection.countDocuments());
        assertEquals(20.5, collection.find(eq("_id", 0)).first().get("ttl"));
        account.server.advance(50);
        assertEquals(0, collection.countDocuments());
    }

    @Test
    void t9EveryWriteThatChangesRestartsTheCountdown() {
        setDefault(collection, 100);
        List<Runnable> writes = List.of(
            () -> collection.insertOne(document("x").append("n", 0)),
            () -> collection.updateOne(eq("_id", "x"), inc("n", 1)),
            () -> collection.replaceOne(eq("_id", "x"), new Document("n", 2)),
            () -> collection.findOneAndUpdate(eq("_id", "x"), set("n", 3)),
            () -> collection.updateOne(eq("_id", "x"), set("n", 4), new UpdateOptions().upsert(true)));
        for (Runnable write : writes) {
            write.run();
            account.server.advance(99);
            assertTrue(isThere(collection, "x"));
        }
        assertEquals(0, collection.updateOne(eq("_id", "x"), set("n", 4)).getModifiedCount());
        account.server.advance(1);
        assertFalse(isThere(collection, "x"), "what changes nothing restarts nothing");
    }

    @Test
    void t10TtlIsChangedStoppedAndRemovedByOrdinaryUpdates() {
        setDefault(collection, 1000);
        collection.insertOne(document("x").append("ttl", 100));
        collection.updateOne(eq("_id", "x"), set("ttl", 300));
        account.server.advance(299);
        collection.updateOne(eq("_id", "x"), set("ttl", -1));
        account.server.advance(400L * DAY);
        collection.updateOne(eq("_id", "x"), unset("ttl"));
        account.server.advance(999);
        assertTrue(isThere(collection, "x"));
        account.server.advance(1);
        assertFalse(isThere(collection, "x"));
    }

    @Test
    void t11T12T13AChangeOfTheDefaultCountsAtOnceAndRevivesNothing() {
        setDefault(collection, 100);
        collection.insertOne(document("old"));
        account.server.advance(50);
        collection.insertOne(document("young"));
        account.server.advance(50);
        setDefaultAgain(10_000);
        assertFalse(isThere(collection, "old"));
        assertTrue(isThere(collection, "young"));
        collection.dropIndex(Indexes.ascending("_ts"));
        assertFalse(isThere(collection, "old"));
        account.server.advance(400L * DAY);
        assertTrue(isThere(collection, "young"), "without a default nothing expires");
        setDefault(collection, 100);
        assertFalse(isThere(collection, "young"));
    }

    private void setDefaultAgain(int seconds) {
        Document index = new Document("keyPattern", new Document("_ts", 1)).append("expireAfterSeconds", seconds);
        account.database.runCommand(new Document("collMod", collection.getNamespace().getCollectionName()).append("index", index));
    }

    @Test
    void t15WritesTreatTheExpiredAsNotThere() {
        account.server.pausePurge(true);
        setDefault(collection, 100);
        collection.createIndex(Indexes.ascending("email"), new IndexOptions().unique(true));
        collection.insertOne(document("x").append("email", "a@b"));
        account.server.advance(100);
        assertFalse(isThere(collection, "x"));
        assertEquals(0, collection.updateOne(eq("_id", "x"), set("n", 1)).getMatchedCount());
        assertEquals(0, collection.deleteOne(eq("_id", "x")).getDeletedCount());
        assertNull(collection.findOneAndReplace(eq("_id", "x"), new Document()));
        collection.insertOne(document("y").append("email", "a@b"));
        assertEquals("x", collection.replaceOne(eq("_id", "x"), new Document("email", "c@d"), new ReplaceOptions().upsert(true))
            .getUpsertedId().asString().getValue());
        assertThrows(MongoWriteException.class, () -> collection.insertOne(document("z").append("email", "a@b")));
    }

    @Test
    void t16EachBatchIsARequestAndATransactionHasOneTime() {
        setDefault(collection, -1);
        for (int n = 0; n < 10; n += 1) {
            collection.insertOne(document(n).append("ttl", n % 2 == 1 ? 100 : -1));
        }
        try (MongoCursor<Document> cursor = collection.find().sort(new Document("_id", 1)).batchSize(2).iterator();
            ClientSession session = account.client.startSession()) {
            session.startTransaction();
            assertEquals(10, collection.countDocuments(session));
            assertEquals(List.of(0, 1), List.of(cursor.next().get("_id"), cursor.next().get("_id")));
            account.server.advance(100);
            assertEquals(10, collection.countDocuments(session), "the time of the transaction");
            session.abortTransaction();
            List<Object> rest = new ArrayList<>();
            cursor.forEachRemaining(found -> rest.add(found.get("_id")));
            assertEquals(List.of(2, 4, 6, 8), rest);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -2, 2147483648L})
    void t26AnotherDefaultIsRefused(long seconds) {
        Document index = new Document("key", new Document("_ts", 1)).append("name", "ttl").append("expireAfterSeconds", seconds);
        Document command = new Document("createIndexes", collection.getNamespace().getCollectionName()).append("indexes", List.of(index));
        assertEquals(67, assertThrows(MongoCommandException.class, () -> account.database.runCommand(command)).getErrorCode());
    }

    @Test
    void t26TheDefaultIsListed() {
        setDefault(collection, 77);
        List<Document> indexes = collection.listIndexes().into(new ArrayList<>());
        assertTrue(indexes.stream().anyMatch(index -> Integer.valueOf(77).equals(index.get("expireAfterSeconds"))), indexes.toString());
        collection.dropIndexes();
        collection.insertOne(document("x"));
        account.server.advance(400L * DAY);
        assertTrue(isThere(collection, "x"));
    }

    @Test
    void t27AnIndexOnADate() {
        collection.createIndex(Indexes.ascending("at"), new IndexOptions().expireAfter(10L, TimeUnit.SECONDS));
        long now = account.server.now();
        collection.insertMany(List.of(
            document("soon").append("at", new Date((now + 100) * 1000)),
            document("array").append("at", List.of(new Date((now + 500) * 1000), new Date((now + 50) * 1000))),
            document("none").append("at", "text")));
        account.server.moveTo(now + 60);
        assertEquals(List.of("soon", "none"), ids(collection.find()));
        account.server.moveTo(now + 109);
        assertTrue(isThere(collection, "soon"));
        account.server.advance(1);
        assertEquals(List.of("none"), ids(collection.find()));
    }

    @Test
    void t28AnExpiryIsADeleteInTheChangeStream() {
        setDefault(collection, -1);
        collection.insertOne(document("first"));
        try (MongoCursor<ChangeStreamDocument<Document>> changes = collection.watch().iterator()) {
            collection.insertOne(document("x").append("ttl", 100));
            account.server.advance(100);
            collection.insertOne(document("x").append("n", 2));
            List<OperationType> seen = List.of(changes.next(), changes.next(), changes.next()).stream()
                .map(ChangeStreamDocument::getOperationType).toList();
            assertEquals(List.of(OperationType.INSERT, OperationType.DELETE, OperationType.INSERT), seen);
        }
    }

    @Test
    void t28AStreamThatWaitsHearsOfAnExpiryByDate() {
        collection.createIndex(Indexes.ascending("at"), new IndexOptions().expireAfter(10L, TimeUnit.SECONDS));
        try (MongoCursor<ChangeStreamDocument<Document>> changes = collection.watch().iterator()) {
            collection.insertOne(document("x").append("at", new Date(account.server.now() * 1000)));
            assertEquals(OperationType.INSERT, changes.next().getOperationType());
            account.server.advance(10);
            assertEquals(OperationType.DELETE, changes.next().getOperationType());
        }
    }

    @Test
    void t13WhatHasExpiredStaysSoOverKillNine(@TempDir Path folder) {
        try (Account own = Account.on(Server.startIn(folder))) {
            own.server.pausePurge(true);
            MongoCollection<Document> kept = own.collection();
            setDefault(kept, 100);
            kept.insertOne(document("x"));
            own.server.advance(50);
            kept.insertOne(document("young"));
            own.server.advance(50);
            own.server.kill();
            own.server.restart();
            own.server.pausePurge(true);
            assertEquals(List.of("young"), ids(kept.find()));
            kept.dropIndexes();
            assertEquals(List.of("young"), ids(kept.find()));
        }
    }
}
