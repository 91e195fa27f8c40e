// Debezium's connector for MongoDB in its embedded engine, without a broker: a snapshot, then changes, an expiry among them, over
// kill -9 of the server.

package bolide.debezium;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import bolide.support.Server;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Updates;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.bson.Document;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DebeziumTest {
    private static final long TIMEOUT_SECONDS = 60;

    @TempDir
    Path folder;

    /** A running connector and the changes that it has told: the operation and the id. */
    private static final class Connector implements AutoCloseable {
        private final BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        private final CompletableFuture<String> ended = new CompletableFuture<>();
        private final DebeziumEngine<ChangeEvent<String, String>> engine;

        Connector(Server server, Path folder) {
            Properties properties = new Properties();
            properties.putAll(Map.of(
                "name", "bolide",
                "connector.class", "io.debezium.connector.mongodb.MongoDbConnector",
                "mongodb.connection.string", "mongodb://127.0.0.1:" + server.mongoPort() + "/?replicaSet=globaldb",
                "topic.prefix", "bolide",
                "collection.include.list", "shop.carts",
                "offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore",
                "offset.storage.file.filename", folder.resolve("offsets").toString(),
                "offset.flush.interval.ms", "0"));
            properties.putAll(Map.of(
                "tombstones.on.delete", "false",
                "converter.schemas.enable", "false",
                "poll.interval.ms", "20"));
            engine = DebeziumEngine.create(Json.class)
                .using(properties)
                .notifying(change -> seen.add(told(change)))
                .using((success, message, error) -> ended.complete(success ? "well" : message))
                .build();
            Thread thread = new Thread(engine, "debezium");
            thread.setDaemon(true);
            thread.start();
        }

        private static String told(ChangeEvent<String, String> change) {
            Document value = Document.parse(change.value());
            return value.getString("op") + " " + Document.parse(change.key()).getString("id");
        }

        /** As many changes as are expected: a snapshot tells them in no order. */
        List<String> next(int count) throws InterruptedException {
            TreeSet<String> found = new TreeSet<>();
            for (int n = 0; n < count; n += 1) {
                String change = seen.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                found.add(change == null ? "nothing" : change);
            }
            return List.copyOf(found);
        }

        @Override
        public void close() throws IOException {
            engine.close();
            assertEquals("well", ended.orTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS).join());
            assertTrue(seen.isEmpty(), () -> "nothing is told twice: " + seen);
        }
    }

    @Test
    void t28ASnapshotIsFollowedByChangesAndExpiriesOverKillNineOfTheServer() throws Exception {
        try (Server server = Server.startIn(folder.resolve("data"));
            MongoClient client = MongoClients.create("mongodb://127.0.0.1:" + server.mongoPort() + "/?replicaSet=globaldb")) {
            client.getDatabase("shop").runCommand(
                Document.parse("{createIndexes: 'carts', indexes: [{key: {_ts: 1}, name: '_ts_1', expireAfterSeconds: -1}]}"));
            MongoCollection<Document> carts = client.getDatabase("shop").getCollection("carts");
            carts.insertMany(List.of(cart(1), cart(2).append("ttl", 100)));
            try (Connector connector = new Connector(server, folder)) {
                assertEquals(List.of("r 1", "r 2"), connector.next(2));
                carts.insertOne(cart(3).append("ttl", 10));
                assertEquals(List.of("c 3"), connector.next(1));
                carts.updateOne(Filters.eq("_id", 1), Updates.set("paid", true));
                assertEquals(List.of("u 1"), connector.next(1));
                server.advance(10);
                assertEquals(List.of("d 3"), connector.next(1));
            }
            server.kill();
            server.restart();
            server.advance(90);
            carts.insertOne(cart(4));
            try (Connector connector = new Connector(server, folder)) {
                assertEquals(List.of("d 2"), connector.next(1));
                assertEquals(List.of("c 4"), connector.next(1));
            }
        }
    }

    private static Document cart(int id) {
        return new Document("_id", id);
    }
}
