// MongoDB's connector for Kafka, its tasks driven as Kafka Connect drives them, without a broker: a source that copies what is
// there and tells changes, an expiry among them; a sink whose documents expire.

package bolide.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import bolide.support.Server;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.kafka.connect.sink.MongoSinkTask;
import com.mongodb.kafka.connect.source.MongoSourceTask;
import com.mongodb.kafka.connect.util.ResumeTokenUtils;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.stream.IntStream;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTaskContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;
import org.bson.BsonDocument;
import org.bson.Document;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ConnectorTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private Server server;
    private MongoClient client;
    private MongoCollection<Document> carts;

    @BeforeEach
    void start() {
        server = Server.start();
        client = MongoClients.create(address());
        client.getDatabase("shop").runCommand(
            Document.parse("{createIndexes: 'carts', indexes: [{key: {_ts: 1}, name: '_ts_1', expireAfterSeconds: -1}]}"));
        carts = client.getDatabase("shop").getCollection("carts");
    }

    @AfterEach
    void stop() {
        client.close();
        server.close();
    }

    private String address() {
        return "mongodb://127.0.0.1:" + server.mongoPort() + "/?replicaSet=globaldb";
    }

    private static Document cart(int id, int ttl) {
        return new Document("_id", id).append("ttl", ttl);
    }

    /** A source task, with the offset that Kafka Connect would keep for it. */
    private final class Source implements AutoCloseable {
        private final MongoSourceTask task = new MongoSourceTask();
        private final Queue<SourceRecord> waiting = new ArrayDeque<>();
        private Map<String, ?> offset;

        Source(Map<String, ?> offset) {
            this.offset = offset;
            OffsetStorageReader reader = stub(OffsetStorageReader.class, "offset", offset);
            task.initialize(stub(SourceTaskContext.class, "offsetStorageReader", reader));
            task.start(new HashMap<>(Map.of(
                "connection.uri", address(),
                "database", "shop",
                "collection", "carts",
                "startup.mode", "copy_existing",
                "poll.await.time.ms", "50")));
        }

        /** The next change: its operation and the id. */
        String next() {
            long deadline = System.nanoTime() + TIMEOUT.toNanos();
            while (waiting.isEmpty() && System.nanoTime() < deadline) {
                List<SourceRecord> records = task.poll();
                waiting.addAll(records == null ? List.of() : records);
            }
            SourceRecord record = waiting.remove();
            offset = record.sourceOffset();
            Document event = Document.parse((String) record.value());
            return event.getString("operationType") + " " + event.get("documentKey", Document.class).get("_id");
        }

        @Override
        public void close() {
            task.stop();
        }
    }

    @Test
    void t28ASourceCopiesThenTellsChangesAndExpiriesAndGoesOnWhereItWas() {
        carts.insertOne(cart(1, 10));
        Map<String, ?> offset;
        try (Source source = new Source(null)) {
            assertEquals("insert 1", source.next());
            carts.insertOne(cart(2, 20));
            assertEquals("insert 2", source.next());
            server.advance(10);
            assertEquals("delete 1", source.next());
            offset = source.offset;
        }
        server.advance(10);
        try (Source source = new Source(offset)) {
            assertEquals("delete 2", source.next());
        }
    }

    /** The connector reads the time out of the token to tell how far behind it is. */
    @Test
    void aTokenHasItsTimeWhereToolsReadIt() {
        try (var changes = carts.watch().cursor()) {
            carts.insertOne(cart(1, 10));
            BsonDocument token = changes.next().getResumeToken();
            assertEquals(server.now(), ResumeTokenUtils.getTimestampFromResumeToken(token).getTime());
        }
    }

    @Test
    void whatASinkWritesExpires() {
        MongoSinkTask task = new MongoSinkTask();
        task.initialize(stub(SinkTaskContext.class, "", null));
        task.start(new HashMap<>(Map.of(
            "connection.uri", address(),
            "database", "shop",
            "collection", "carts",
            "topics", "carts",
            "document.id.strategy", "com.mongodb.kafka.connect.sink.processor.id.strategy.ProvidedInValueStrategy")));
        task.put(IntStream.range(0, 3)
            .mapToObj(n -> new SinkRecord("carts", 0, null, null, null, Map.of("_id", n, "ttl", 10 + n), n))
            .toList());
        task.stop();
        List<Document> found = carts.find().into(new ArrayList<>());
        assertEquals(3, found.size());
        server.advance(11);
        found = carts.find().into(new ArrayList<>());
        assertEquals(1, found.size());
        assertTrue(found.get(0).getInteger("_id") == 2, found::toString);
    }

    /** A part of Kafka Connect that answers one question; nothing else of it is used. */
    private static <T> T stub(Class<T> type, String question, Object answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (proxy, method, arguments) -> method.getName().equals(question) ? answer : null));
    }
}
