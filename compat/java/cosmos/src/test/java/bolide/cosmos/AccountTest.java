// Beyond single items: throughput, diagnostics, sessions, users with resource tokens, TLS, HTTP/2, direct mode, and
// the asynchronous client.

package bolide.cosmos;

import static bolide.cosmos.Account.KEY;
import static bolide.cosmos.Account.ONE_RANGE;
import static bolide.cosmos.Account.SEVERAL_RANGES;
import static bolide.cosmos.Account.create;
import static bolide.cosmos.Account.item;
import static bolide.cosmos.Account.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import bolide.support.Server;
import bolide.support.TrustStores;
import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.Http2ConnectionConfig;
import com.azure.cosmos.ThrottlingRetryOptions;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosPermissionRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PermissionMode;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;

class AccountTest {
    private static Account account;

    @BeforeAll
    static void start() {
        account = Account.start();
    }

    @AfterAll
    static void stop() {
        account.close();
    }

    @Test
    void throughputIsReadReplacedAndScaled() {
        CosmosContainer container = account.container(ONE_RANGE, -1);
        var read = container.readThroughput();
        assertEquals(ONE_RANGE, read.getProperties().getManualThroughput());
        assertTrue(read.getMinThroughput() > 0);
        container.replaceThroughput(ThroughputProperties.createManualThroughput(1000));
        assertEquals(1000, container.readThroughput().getProperties().getManualThroughput());

        var scaled = new CosmosContainerProperties(account.newName(), "/pk");
        account.database.createContainer(scaled, ThroughputProperties.createAutoscaledThroughput(4000));
        CosmosContainer autoscaled = account.database.getContainer(scaled.getId());
        assertEquals(4000, autoscaled.readThroughput().getProperties().getAutoscaleMaxThroughput());

        account.client.createDatabase("shared", ThroughputProperties.createManualThroughput(600));
        var shared = account.client.getDatabase("shared");
        assertEquals(600, shared.readThroughput().getProperties().getManualThroughput());
        shared.createContainer("c", "/pk");
        refused(400, () -> shared.getContainer("c").readThroughput());
    }

    @Test
    void requestsBeyondTheThroughputAreRetriedAndThenRefused() {
        try (Account limited = Account.start("--enforce-throughput")) {
            CosmosContainer container = limited.container(ONE_RANGE, null);
            var operations = IntStream.range(0, 300)
                .mapToObj(n -> CosmosBulkOperations.getCreateItemOperation(item("i" + n, "k" + n), new PartitionKey("k" + n)));
            container.executeBulkOperations(operations.toList())
                .forEach(done -> assertEquals(201, done.getResponse().getStatusCode()));
            var impatient = limited.builder()
                .throttlingRetryOptions(new ThrottlingRetryOptions().setMaxRetryAttemptsOnThrottledRequests(0));
            try (CosmosClient client = impatient.buildClient()) {
                CosmosContainer same = client.getDatabase("java").getContainer(container.getId());
                var all = new CosmosQueryRequestOptions();
                CosmosException refusal = assertThrows(CosmosException.class, () -> {
                    while (true) {
                        same.queryItems("SELECT * FROM c ORDER BY c.pk", all, ObjectNode.class).stream().count();
                    }
                });
                assertEquals(429, refusal.getStatusCode());
                assertTrue(refusal.getRetryAfterDuration().compareTo(Duration.ZERO) > 0);
            }
        }
    }

    @Test
    void diagnosticsTellOfEveryRequest() {
        CosmosContainer container = account.container(SEVERAL_RANGES, -1);
        var response = container.createItem(item("x"));
        assertTrue(response.getDuration().compareTo(Duration.ZERO) > 0);
        String told = response.getDiagnostics().toString();
        assertTrue(told.contains("\"statusCode\":201"), told);
        var context = response.getDiagnostics().getDiagnosticsContext();
        assertEquals(201, context.getStatusCode());
        assertEquals(response.getRequestCharge(), context.getTotalRequestCharge(), 0.001F);
        CosmosException refusal = refused(404, () -> container.readItem("none", KEY, ObjectNode.class));
        assertEquals(0, refusal.getSubStatusCode());
        assertTrue(refusal.getDiagnostics().toString().contains("404"));
        assertTrue(refusal.getRequestCharge() > 0);
    }

    @ParameterizedTest
    @ValueSource(ints = {ONE_RANGE, SEVERAL_RANGES})
    void aSessionReadsWhatAnotherClientHasWritten(int throughput) {
        CosmosContainer container = account.container(throughput, null);
        try (CosmosClient other = account.builder().buildClient()) {
            CosmosContainer elsewhere = other.getDatabase("java").getContainer(container.getId());
            for (int n = 0; n < 12; n += 1) {
                PartitionKey key = new PartitionKey("k" + n);
                String token = container.createItem(item("x", "k" + n).put("n", n)).getSessionToken();
                var options = new CosmosItemRequestOptions().setSessionToken(token);
                assertEquals(n, elsewhere.readItem("x", key, options, ObjectNode.class).getItem().get("n").asInt());
                var query = new CosmosQueryRequestOptions().setSessionToken(token).setPartitionKey(key);
                assertEquals(1, elsewhere.queryItems("SELECT * FROM c", query, ObjectNode.class).stream().count());
            }
        }
    }

    @Test
    void aResourceTokenReadsAndWritesNothing() {
        CosmosContainer container = account.container(ONE_RANGE, null);
        create(container, item("x"));
        account.database.createUser(new CosmosUserProperties().setId("reader"));
        CosmosPermissionProperties permission = new CosmosPermissionProperties().setId("read").setPermissionMode(PermissionMode.READ)
            .setContainerName(container.getId());
        var made = account.asyncClient().getDatabase("java").getUser("reader")
            .createPermission(permission, new CosmosPermissionRequestOptions()).block().getProperties();
        TrustStores.use(account.server.trustStore());
        try (CosmosClient reader = Connection.in(new CosmosClientBuilder()).endpoint(account.server.endpoint())
            .resourceToken(made.getToken()).buildClient()) {
            CosmosContainer seen = reader.getDatabase("java").getContainer(container.getId());
            assertEquals("x", seen.readItem("x", KEY, ObjectNode.class).getItem().get("id").asText());
            refused(403, () -> seen.deleteItem("x", KEY, new CosmosItemRequestOptions()));
        }
    }

    @Test
    void onlyAClientThatTrustsTheRootConnects() {
        try (Server stranger = Server.start()) {
            TrustStores.use(stranger.trustStore());
            CosmosClientBuilder distrusting =
                Connection.in(new CosmosClientBuilder()).endpoint(account.server.endpoint()).key(Server.KEY);
            Throwable refusal = assertThrows(RuntimeException.class, distrusting::buildClient);
            assertTrue(causes(refusal).contains("unable to find valid certification path"), causes(refusal));
        }
        try (CosmosClient trusting = account.builder().buildClient()) {
            assertEquals("java", trusting.getDatabase("java").read().getProperties().getId());
        }
    }

    private static String causes(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            text.append(cause).append('\n');
        }
        return text.toString();
    }

    @Test
    void http2() {
        var gateway = new GatewayConnectionConfig().setHttp2ConnectionConfig(new Http2ConnectionConfig().setEnabled(true));
        CosmosContainer container = account.container(SEVERAL_RANGES, 100);
        try (CosmosClient client = account.builder().gatewayMode(gateway).buildClient()) {
            CosmosContainer same = client.getDatabase("java").getContainer(container.getId());
            var operations = IntStream.range(0, 200)
                .mapToObj(n -> CosmosBulkOperations.getCreateItemOperation(item("i" + n, "k" + n), new PartitionKey("k" + n)));
            same.executeBulkOperations(operations.toList()).forEach(done -> assertEquals(201, done.getResponse().getStatusCode()));
            var all = same.queryItems("SELECT * FROM c ORDER BY c.id", new CosmosQueryRequestOptions(), ObjectNode.class);
            assertEquals(200, all.stream().count());
            account.server.advance(100);
            assertEquals(0, all.stream().count());
        }
    }

    @Test
    void theAsynchronousClient() {
        CosmosContainer container = account.container(SEVERAL_RANGES, -1);
        CosmosAsyncContainer same = account.asyncClient().getDatabase("java").getContainer(container.getId());
        Flux.range(0, 100)
            .flatMap(n -> same.createItem(item("i" + n, "k" + n).put("n", n).put("ttl", n < 50 ? 100 : -1)), 16)
            .blockLast();
        // The client adds up the sums of the ranges as floating-point numbers.
        assertEquals(4950.0, same.queryItems("SELECT VALUE SUM(c.n) FROM c", Double.class).blockFirst());
        var operations = Flux.range(0, 10).map(n -> CosmosBulkOperations.getDeleteItemOperation("i" + n, new PartitionKey("k" + n)));
        same.executeBulkOperations(operations).doOnNext(done -> assertEquals(204, done.getResponse().getStatusCode())).blockLast();
        assertEquals(90, same.queryItems("SELECT VALUE COUNT(1) FROM c", Integer.class).blockFirst());
        account.server.advance(100);
        assertEquals(50, same.queryItems("SELECT VALUE COUNT(1) FROM c", Integer.class).blockFirst());
        assertEquals(404, same.readItem("i20", new PartitionKey("k20"), ObjectNode.class)
            .map(found -> found.getStatusCode())
            .onErrorResume(CosmosException.class, refusal -> reactor.core.publisher.Mono.just(refusal.getStatusCode())).block());
        var pages = same.queryItems("SELECT * FROM c ORDER BY c.n", ObjectNode.class).byPage(7).collectList().block();
        assertFalse(pages.isEmpty());
        assertEquals(50, pages.stream().mapToInt(page -> page.getResults().size()).sum());
    }

    @Test
    void allConsistencyLevelsRead() {
        CosmosContainer container = account.container(SEVERAL_RANGES, null);
        create(container, item("x"));
        for (ConsistencyLevel level : ConsistencyLevel.values()) {
            try (CosmosClient client = account.builder().consistencyLevel(level).buildClient()) {
                CosmosContainer same = client.getDatabase("java").getContainer(container.getId());
                assertEquals("x", same.readItem("x", KEY, ObjectNode.class).getItem().get("id").asText(), level.name());
                assertEquals(1, same.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class).stream().count());
                refused(404, () -> same.readItem("y", KEY, ObjectNode.class));
            }
        }
    }

    @Test
    void directModeThatIsOffIsRefusedWithTheNameOfTheSetting() {
        try (Server without = Server.start("--direct", "off")) {
            TrustStores.use(without.trustStore());
            CosmosException refusal = assertThrows(CosmosException.class, () -> {
                try (CosmosClient direct =
                    new CosmosClientBuilder().endpoint(without.endpoint()).key(Server.KEY).directMode().buildClient()) {
                    direct.createDatabaseIfNotExists("java");
                    direct.getDatabase("java").createContainerIfNotExists("c", "/pk");
                    direct.getDatabase("java").getContainer("c").readItem("x", KEY, ObjectNode.class);
                }
            });
            assertEquals(400, refusal.getStatusCode(), refusal.getMessage());
            assertTrue(refusal.getMessage().contains("gatewayMode"), refusal.getMessage());
        }
    }
}
