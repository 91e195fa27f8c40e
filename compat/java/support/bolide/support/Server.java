// A Bolide process and its test clock, for the suites of all Java clients. Nothing sleeps for a deadline: time is moved, and
// stands still otherwise. The only waiting is for a process to become ready.

package bolide.support;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One {@code bolide serve --test-clock --stopped-clock} on ports of the system's choice, in memory or in a folder. */
public final class Server implements AutoCloseable {
    /** The key every Cosmos emulator shares; Bolide accepts it while it listens on loopback only. */
    public static final String KEY =
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    public static final int DAY = 24 * 3600;

    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final Pattern HTTP = Pattern.compile("AccountEndpoint=http://127\\.0\\.0\\.1:(\\d+)/");
    private static final Pattern MONGO = Pattern.compile("mongodb://(?:[^@\\s]*@)?127\\.0\\.0\\.1:(\\d+)");
    private static final Pattern NOW = Pattern.compile("\"now\"\\s*:\\s*(\\d+)");
    /** Admin calls go by plain HTTP, so that what is tested stays the only client that speaks TLS. */
    private static final HttpClient HTTP_CLIENT =
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(TIMEOUT).build();

    private final List<String> arguments;
    private Process process;
    private int port;
    private int mongoPort;
    private Path trustStore;

    private Server(List<String> arguments) {
        this.arguments = arguments;
    }

    /** In memory, with more arguments for {@code bolide serve}. */
    public static Server start(String... extra) {
        return launched(List.of("--memory"), extra);
    }

    /** In that folder, whose root certificate outlives restarts. */
    public static Server startIn(Path data, String... extra) {
        return launched(List.of("--data", data.toString()), extra);
    }

    private static Server launched(List<String> place, String... extra) {
        List<String> arguments = new ArrayList<>(List.of("serve", "--test-clock", "--stopped-clock"));
        arguments.addAll(place);
        arguments.addAll(Arrays.asList(extra));
        Server server = new Server(arguments);
        server.launch();
        server.trustStore = TrustStores.of(server.rootCertificate());
        return server;
    }

    private void launch() {
        String binary = System.getenv("BOLIDE_BIN");
        if (binary == null) {
            throw new IllegalStateException("BOLIDE_BIN must name the server binary; `cargo xtask compat java` sets it");
        }
        List<String> command = new ArrayList<>(List.of(binary));
        command.addAll(arguments);
        // Ports of the system's choice the first time, and the same ones after a restart, as clients expect.
        command.addAll(List.of("--listen", "127.0.0.1:" + port, "--mongo-listen", "127.0.0.1:" + mongoPort));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().keySet().removeIf(name -> name.startsWith("BOLIDE_"));
        try {
            process = builder.start();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        CompletableFuture<Boolean> announced = new CompletableFuture<>();
        Thread reader = new Thread(() -> read(process, announced), "bolide-output");
        reader.setDaemon(true);
        reader.start();
        if (!announced.completeOnTimeout(false, TIMEOUT.toSeconds(), TimeUnit.SECONDS).join()) {
            kill();
            throw new IllegalStateException("the server announced no address");
        }
        Waiting.until("the server is ready", TIMEOUT, this::isReady);
    }

    /** Reads the pipe to its end, or a chatty server would block on it. */
    private void read(Process started, CompletableFuture<Boolean> announced) {
        var input = new InputStreamReader(started.getInputStream(), StandardCharsets.UTF_8);
        try (BufferedReader lines = new BufferedReader(input)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Matcher mongo = MONGO.matcher(line);
                if (mongo.find()) {
                    mongoPort = Integer.parseInt(mongo.group(1));
                }
                Matcher http = HTTP.matcher(line);
                if (http.find()) {
                    port = Integer.parseInt(http.group(1));
                    announced.complete(true);
                }
            }
        } catch (IOException error) {
            // The pipe of a killed process ends so.
        }
        announced.complete(false);
    }

    private boolean isReady() {
        try {
            return call("GET", "ready", null).statusCode() == 200;
        } catch (IOException error) {
            return false;
        }
    }

    private HttpResponse<String> call(String method, String path, String body) throws IOException {
        var publisher =
            body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/" + path))
            .timeout(TIMEOUT)
            .header("Authorization", "Bearer " + KEY)
            .header("Content-Type", "application/json")
            .method(method, publisher)
            .build();
        try {
            return HTTP_CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** One call of the admin API, which must succeed: the body of the answer. */
    public String admin(String method, String path, String body) {
        try {
            HttpResponse<String> answer = call(method, "_bolide/" + path, body);
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(method + " " + path + ": " + answer.statusCode() + " " + answer.body());
            }
            return answer.body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The certificate that clients by TLS should trust, PEM: a running server provides it without a key. */
    public String rootCertificate() {
        try {
            return call("GET", "_explorer/emulator.pem", null).body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A trust store with the root of this server and nothing else. */
    public Path trustStore() {
        return trustStore;
    }

    /** The NoSQL API by TLS. */
    public String endpoint() {
        return "https://" + address() + "/";
    }

    /** Host and port of the NoSQL API. */
    String address() {
        return "localhost:" + port;
    }

    public int mongoPort() {
        return mongoPort;
    }

    /** The time of the test clock, in Unix seconds. */
    public long now() {
        Matcher found = NOW.matcher(admin("GET", "clock", null));
        if (!found.find()) {
            throw new IllegalStateException("the clock tells no time");
        }
        return Long.parseLong(found.group(1));
    }

    public void advance(long seconds) {
        admin("POST", "clock", "{\"advanceSeconds\":" + seconds + "}");
    }

    /** Moves to an instant in Unix seconds, which must not lie in the past. */
    public void moveTo(long instant) {
        long distance = instant - now();
        if (distance < 0) {
            throw new IllegalStateException("the clock cannot go back by " + -distance + " s; give the test more room");
        }
        if (distance > 0) {
            advance(distance);
        }
    }

    /** Leaves expired items where they are, or has them purged again. */
    public void pausePurge(boolean paused) {
        admin("POST", "purge", "{\"paused\":" + paused + "}");
    }

    /** Sends SIGKILL, so that the server cannot clean up. */
    public void kill() {
        process.destroyForcibly();
        await();
    }

    /** The same server again, on the ports it had. */
    public void restart() {
        if (process.isAlive()) {
            throw new IllegalStateException("the server still runs");
        }
        launch();
    }

    /** SIGTERM: drains and must exit with 0. A server that was killed is stopped already. */
    @Override
    public void close() {
        if (!process.isAlive()) {
            return;
        }
        process.destroy();
        await();
        if (process.exitValue() != 0) {
            throw new IllegalStateException("exit code " + process.exitValue() + " after SIGTERM");
        }
    }

    private void await() {
        try {
            if (!process.waitFor(TIMEOUT.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new IllegalStateException("the server did not stop");
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
