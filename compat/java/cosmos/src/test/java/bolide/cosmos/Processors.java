// Change feed processors with short intervals, in this process and in one of their own that can be killed.

package bolide.cosmos;

import bolide.support.Server;
import bolide.support.TrustStores;
import bolide.support.Waiting;
import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;

final class Processors {
    static final Duration TIMEOUT = Duration.ofSeconds(60);
    /** After which a processor is said to stand still: many times as long as it needs. */
    static final Duration PATIENCE = Duration.ofSeconds(15);
    /**
     * How long a lease lasts. The client renews it after half of that, and a renewal that meets a checkpoint of its own loses the
     * lease: its last changes come again then.
     */
    static final Duration LONG_LEASES = Duration.ofSeconds(60);
    /** For tests in which another host takes them, and that bear with changes that come again because a renewal was late. */
    static final Duration SHORT_LEASES = Duration.ofSeconds(2);

    private Processors() {}

    /** What a processor reads, and in which of the two forms of leases it keeps its place. */
    enum Mode {
        LATEST_BY_RANGE_ID,
        LATEST,
        ALL_VERSIONS
    }

    /** A change as tests compare it: the operation (where the mode tells it), the id and `n`; an expiry is told from a delete. */
    static String told(ChangeFeedProcessorItem change) {
        var metadata = change.getChangeFeedMetaData();
        String operation = metadata == null || metadata.getOperationType() == null ? "" : metadata.getOperationType() + " ";
        boolean expired = metadata != null && metadata.isTimeToLiveExpired();
        JsonNode current = change.getCurrent();
        boolean gone = current == null || !current.has("id");
        JsonNode image = gone ? change.getPrevious() : current;
        return (expired ? "EXPIRY " : operation) + told(image);
    }

    static String told(JsonNode image) {
        return image.get("id").asText() + "=" + image.path("n").asInt();
    }

    static ChangeFeedProcessor build(CosmosAsyncDatabase database, String monitored, String leases, String host, Mode mode,
        Duration lasting, Consumer<String> seen) {
        ChangeFeedProcessorOptions options = new ChangeFeedProcessorOptions()
            .setFeedPollDelay(Duration.ofMillis(20))
            .setLeaseAcquireInterval(Duration.ofMillis(100))
            .setLeaseRenewInterval(lasting.dividedBy(2))
            .setLeaseExpirationInterval(lasting)
            .setLeasePrefix(mode.name())
            .setMaxItemCount(10);
        ChangeFeedProcessorBuilder builder = new ChangeFeedProcessorBuilder()
            .hostName(host)
            .feedContainer(database.getContainer(monitored))
            .leaseContainer(database.getContainer(leases))
            .options(options);
        Consumer<List<ChangeFeedProcessorItem>> all = changes -> changes.forEach(change -> seen.accept(told(change)));
        switch (mode) {
            case LATEST_BY_RANGE_ID -> {
                options.setStartFromBeginning(true);
                builder.handleChanges(changes -> changes.forEach(change -> seen.accept(told(change))));
            }
            case LATEST -> {
                options.setStartFromBeginning(true);
                builder.handleLatestVersionChanges(all);
            }
            case ALL_VERSIONS -> builder.handleAllVersionsAndDeletesChanges(all);
        }
        return builder.buildChangeFeedProcessor();
    }

    /** A processor in a Java process of its own, which tells each change on a line. */
    static final class Program implements AutoCloseable {
        final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
        private final Process process;

        Program(Server server, String database, String monitored, String leases, String host, Mode mode) {
            String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
            ProcessBuilder builder = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes,
                "-Djavax.net.ssl.trustStore=" + server.trustStore(),
                "-Djavax.net.ssl.trustStorePassword=" + TrustStores.PASSWORD,
                Processors.class.getName(), server.endpoint(), database, monitored, leases, host, mode.name());
            try {
                process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            Thread reader = new Thread(this::read, host);
            reader.setDaemon(true);
            reader.start();
        }

        private void read() {
            var input = new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8);
            try (BufferedReader lines = new BufferedReader(input)) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    seen.add(line);
                }
            } catch (IOException error) {
                // The pipe of a killed process ends so.
            }
        }

        /** SIGKILL: its leases stay as if it still had them. */
        void kill() {
            process.destroyForcibly();
            Waiting.until("the processor is killed", TIMEOUT, () -> !process.isAlive());
        }

        @Override
        public void close() {
            kill();
        }
    }

    /** Endpoint, database, monitored container, container of leases, host, mode; runs until it is killed. */
    public static void main(String[] arguments) throws InterruptedException {
        CosmosAsyncClient client = Connection.in(new CosmosClientBuilder())
            .endpoint(arguments[0])
            .key(Server.KEY)
            .contentResponseOnWriteEnabled(true)
            .buildAsyncClient();
        Consumer<String> tell = line -> {
            System.out.println(line);
            System.out.flush();
        };
        CosmosAsyncDatabase database = client.getDatabase(arguments[1]);
        Mode mode = Mode.valueOf(arguments[5]);
        build(database, arguments[2], arguments[3], arguments[4], mode, SHORT_LEASES, tell).start().block();
        Thread.currentThread().join();
    }
}
