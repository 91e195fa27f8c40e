// A Bolide process with the SDK's clients for it, by TLS in the mode of the run, and the checks of the tests.

package bolide.cosmos;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import bolide.support.Server;
import bolide.support.TrustStores;
import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.function.Executable;

/** One server, with a client that trusts its root alone. */
final class Account implements AutoCloseable {
    static final int DAY = Server.DAY;
    /** The throughput of a container with one range of keys, and of one with several. */
    static final int ONE_RANGE = 400;
    static final int SEVERAL_RANGES = 20_000;
    static final PartitionKey KEY = new PartitionKey("p");
    static final ObjectMapper JSON = new ObjectMapper();

    final Server server;
    final CosmosClient client;
    final CosmosDatabase database;
    private final List<CosmosAsyncClient> asyncClients = new ArrayList<>();
    private int containers;

    private Account(Server server) {
        this.server = server;
        this.client = builder().buildClient();
        client.createDatabaseIfNotExists("java");
        this.database = client.getDatabase("java");
    }

    static Account start(String... extra) {
        return new Account(Server.start(extra));
    }

    static Account on(Server server) {
        return new Account(server);
    }

    /** Clients made by it trust this server's root. */
    CosmosClientBuilder builder() {
        TrustStores.use(server.trustStore());
        return Connection.in(new CosmosClientBuilder())
            .endpoint(server.endpoint())
            .key(Server.KEY)
            .consistencyLevel(ConsistencyLevel.SESSION)
            .contentResponseOnWriteEnabled(true);
    }

    CosmosAsyncClient asyncClient() {
        CosmosAsyncClient made = builder().buildAsyncClient();
        asyncClients.add(made);
        return made;
    }

    /** A new container of keys by {@code /pk}; null leaves the default TTL out. */
    CosmosContainer container(int throughput, Integer defaultTtl) {
        containers += 1;
        CosmosContainerProperties definition = new CosmosContainerProperties("c" + containers, "/pk");
        definition.setDefaultTimeToLiveInSeconds(defaultTtl);
        return made(throughput, definition);
    }

    CosmosContainer made(int throughput, CosmosContainerProperties definition) {
        database.createContainer(definition, ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(definition.getId());
    }

    /** An id that no other container of this database has. */
    String newName() {
        containers += 1;
        return "c" + containers;
    }

    @Override
    public void close() {
        client.close();
        asyncClients.forEach(CosmosAsyncClient::close);
        server.close();
    }

    /** An item of key "p". */
    static ObjectNode item(String id) {
        return item(id, "p");
    }

    static ObjectNode item(String id, String key) {
        return JSON.createObjectNode().put("id", id).put("pk", key);
    }

    static ObjectNode create(CosmosContainer container, ObjectNode item) {
        return container.createItem(item).getItem();
    }

    static long ts(ObjectNode stored) {
        return stored.get("_ts").asLong();
    }

    /** Whether an item of key "p" exists; every way of reading must agree (T14). */
    static boolean isThere(CosmosContainer container, String id) {
        SqlParameter parameter = new SqlParameter("@id", id);
        SqlQuerySpec byId = new SqlQuerySpec("SELECT * FROM c WHERE c.id = @id", parameter);
        SqlQuerySpec count = new SqlQuerySpec("SELECT VALUE COUNT(1) FROM c WHERE c.id = @id", parameter);
        var inKey = new CosmosQueryRequestOptions().setPartitionKey(KEY);
        var everywhere = new CosmosQueryRequestOptions();
        boolean read = status(() -> container.readItem(id, KEY, ObjectNode.class)) == 200;
        assertEquals(read, !rows(container, byId, inKey).isEmpty(), "query of one key");
        assertEquals(read, !rows(container, byId, everywhere).isEmpty(), "query of all keys");
        assertEquals(read ? 1 : 0, container.queryItems(count, everywhere, Integer.class).iterator().next(), "count");
        var many = container.readMany(List.of(new CosmosItemIdentity(KEY, id)), ObjectNode.class);
        assertEquals(read ? 1 : 0, many.getResults().size(), "read many");
        var all = container.readAllItems(KEY, ObjectNode.class).stream();
        assertEquals(read, all.anyMatch(item -> item.get("id").asText().equals(id)), "read all");
        return read;
    }

    static List<ObjectNode> rows(CosmosContainer container, SqlQuerySpec query, CosmosQueryRequestOptions options) {
        return container.queryItems(query, options, ObjectNode.class).stream().toList();
    }

    static List<String> ids(List<ObjectNode> items) {
        return items.stream().map(item -> item.get("id").asText()).sorted().toList();
    }

    /** 200, or the status of the refusal. */
    static int status(Executable call) {
        try {
            call.execute();
            return 200;
        } catch (CosmosException refusal) {
            return refusal.getStatusCode();
        } catch (Throwable error) {
            throw new AssertionError(error);
        }
    }

    /** Runs a call that must be refused with that status. */
    static CosmosException refused(int status, Executable call) {
        CosmosException refusal = assertThrows(CosmosException.class, call);
        assertEquals(status, refusal.getStatusCode(), refusal.getMessage());
        return refusal;
    }

    /** Replaces the container's definition with another default TTL; null takes it away. */
    static void setDefault(CosmosContainer container, Integer defaultTtl) {
        CosmosContainerProperties definition = container.read().getProperties();
        definition.setDefaultTimeToLiveInSeconds(defaultTtl);
        container.replace(definition);
    }
}
