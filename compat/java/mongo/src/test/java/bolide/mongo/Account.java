// A Bolide process with the MongoDB driver's client for it, by TLS.

package bolide.mongo;

import bolide.support.Server;
import bolide.support.TrustStores;
import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.Document;

/** One server, with a client that trusts its root alone. */
final class Account implements AutoCloseable {
    final Server server;
    final MongoClient client;
    final MongoDatabase database;
    private int collections;

    private Account(Server server) {
        this.server = server;
        this.client = MongoClients.create(settings(server, server).build());
        this.database = client.getDatabase("java");
    }

    static Account start(String... extra) {
        return on(Server.start(extra));
    }

    static Account on(Server server) {
        return new Account(server);
    }

    /** For clients of that server that trust the root of the second. */
    static MongoClientSettings.Builder settings(Server server, Server trusted) {
        String address = "mongodb://localhost:" + server.mongoPort() + "/?replicaSet=globaldb&tls=true";
        return MongoClientSettings.builder()
            .applyConnectionString(new ConnectionString(address))
            .applyToSslSettings(ssl -> ssl.context(TrustStores.context(trusted.trustStore())))
            .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(20, TimeUnit.SECONDS));
    }

    /** An empty collection. */
    MongoCollection<Document> collection() {
        collections += 1;
        return database.getCollection("c" + collections);
    }

    static Document document(Object id) {
        return new Document("_id", id);
    }

    static List<Object> ids(Iterable<Document> documents) {
        List<Object> found = new ArrayList<>();
        documents.forEach(document -> found.add(document.get("_id")));
        return found;
    }

    @Override
    public void close() {
        client.close();
        server.close();
    }
}
