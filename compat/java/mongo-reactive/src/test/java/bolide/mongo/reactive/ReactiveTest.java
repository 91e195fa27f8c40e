// The reactive driver: documents, cursors with back-pressure, transactions, change streams and time to live, by TLS.

package bolide.mongo.reactive;

import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Updates.inc;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import bolide.support.Server;
import bolide.support.TrustStores;
import bolide.support.Waiting;
import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoWriteException;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import com.mongodb.reactivestreams.client.ClientSession;
import com.mongodb.reactivestreams.client.MongoClient;
import com.mongodb.reactivestreams.client.MongoClients;
import com.mongodb.reactivestreams.client.MongoCollection;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.bson.Document;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

class ReactiveTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private static Server server;
    private static MongoClient client;
    private static int collections;

    private MongoCollection<Document> collection;

    @BeforeAll
    static void start() {
        server = Server.start();
        client = MongoClients.create(MongoClientSettings.builder()
            .applyConnectionString(new ConnectionString("mongodb://localhost:" + server.mongoPort() + "/?replicaSet=globaldb&tls=true"))
            .applyToSslSettings(ssl -> ssl.context(TrustStores.context(server.trustStore())))
            .build());
    }

    @AfterAll
    static void stop() {
        client.close();
        server.close();
    }

    @BeforeEach
    void collection() {
        collections += 1;
        collection = client.getDatabase("reactive").getCollection("c" + collections);
    }

    private static <T> T one(Publisher<T> publisher) {
        return Mono.from(publisher).block(TIMEOUT);
    }

    private static Document document(Object id) {
        return new Document("_id", id);
    }

    private long count() {
        return one(collection.countDocuments());
    }

    @Test
    void documentsAreWrittenFoundAndRefused() {
        one(collection.insertMany(IntStream.range(0, 500).mapToObj(n -> document(n).append("n", n)).toList()));
        assertEquals(1, one(collection.updateOne(eq("_id", 7), inc("n", 1))).getModifiedCount());
        assertEquals(8, one(collection.find(eq("_id", 7)).first()).getInteger("n"));
        assertEquals(1, one(collection.deleteOne(eq("_id", 7))).getDeletedCount());
        assertThrows(MongoWriteException.class, () -> one(collection.insertOne(document(8))));
        assertEquals(499, count());
    }

    @Test
    void aCursorReadsNoMoreThanIsAskedFor() {
        one(collection.insertMany(IntStream.range(0, 500).mapToObj(ReactiveTest::document).toList()));
        var found = Flux.from(collection.find().sort(new Document("_id", 1)).batchSize(10));
        assertEquals(List.of(0, 1, 2), found.take(3).map(one -> one.getInteger("_id")).collectList().block(TIMEOUT));
        AtomicInteger sum = new AtomicInteger();
        found.limitRate(5).doOnNext(one -> sum.addAndGet(one.getInteger("_id"))).blockLast(TIMEOUT);
        assertEquals(499 * 500 / 2, sum.get());
    }

    @Test
    void aTransactionIsCommittedOrAborted() {
        one(collection.insertOne(document("before")));
        try (ClientSession session = one(client.startSession())) {
            session.startTransaction();
            one(collection.insertOne(session, document("a")));
            assertEquals(1, count());
            Mono.from(session.commitTransaction()).block(TIMEOUT);
            assertEquals(2, count());
            session.startTransaction();
            one(collection.deleteMany(session, new Document()));
            Mono.from(session.abortTransaction()).block(TIMEOUT);
            assertEquals(2, count());
        }
    }

    @Test
    void t26T28DocumentsExpireAndTheChangeStreamTells() {
        one(collection.createIndex(Indexes.ascending("_ts"), new IndexOptions().expireAfter(100L, TimeUnit.SECONDS)));
        ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
        Disposable watching = Flux.from(collection.watch()).map(ReactiveTest::told).subscribe(seen::add);
        Waiting.until("the stream is open", TIMEOUT, () -> {
            one(collection.insertOne(new Document("probe", true)));
            return !seen.isEmpty();
        });
        one(collection.insertMany(List.of(document("x"), document("stays").append("ttl", -1))));
        server.advance(100);
        assertEquals(1, count());
        Waiting.until("the expiry is told", TIMEOUT, () -> seen.contains("delete x"));
        server.advance(400L * Server.DAY);
        assertEquals(1, count());
        watching.dispose();
    }

    private static String told(ChangeStreamDocument<Document> change) {
        var id = change.getDocumentKey().get("_id");
        return change.getOperationType().getValue() + " " + (id.isString() ? id.asString().getValue() : id);
    }
}
