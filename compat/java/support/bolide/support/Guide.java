// The programs of docs/guides/getting-started.md, compiled and run as they stand there; only addresses are changed.

package bolide.support;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;

public final class Guide {
    private static final Path PAGE = Path.of("../../../docs/guides/getting-started.md");

    private Guide() {}

    /** The block of that language that comes first after a heading of the page. */
    private static String block(String heading, String language) throws IOException {
        String page = Files.readString(PAGE);
        int start = page.indexOf("\n## " + heading + "\n");
        if (start < 0) {
            throw new AssertionError(PAGE + " has no heading " + heading);
        }
        Matcher found = Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL).matcher(page);
        if (!found.find(start)) {
            throw new AssertionError(PAGE + ": nothing in " + language + " after " + heading);
        }
        return found.group(1);
    }

    /** What the page says that the program of a section prints. */
    public static String expected(String heading) throws IOException {
        return block(heading, "text");
    }

    /** What the program of a section, a class `Start`, prints against that server. */
    public static String run(String heading, Server server, Path folder) throws Exception {
        String program = block(heading, "java")
            .replace("localhost:8081", server.address())
            .replace("localhost:10255", "localhost:" + server.mongoPort());
        Path source = Files.writeString(folder.resolve("Start.java"), program);
        String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        String[] arguments = {"-cp", classes, "-d", folder.toString(), source.toString()};
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments) != 0) {
            throw new AssertionError("the program of " + heading + " does not compile");
        }
        TrustStores.use(server.trustStore());
        PrintStream console = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()}, Guide.class.getClassLoader())) {
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            loader.loadClass("Start").getMethod("main", String[].class).invoke(null, (Object) new String[0]);
        } finally {
            System.setOut(console);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }
}
