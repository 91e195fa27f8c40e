// The program that docs/guides/getting-started.md shows to newcomers prints what the page says.

package bolide.cosmos;

import static org.junit.jupiter.api.Assertions.assertEquals;

import bolide.support.Guide;
import bolide.support.Server;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GuideTest {
    private static final String SECTION = "Java, azure-cosmos";

    @Test
    void theProgramPrintsWhatThePageSays(@TempDir Path folder) throws Exception {
        try (Server server = Server.start()) {
            assertEquals(Guide.expected(SECTION), Guide.run(SECTION, server, folder));
        }
    }
}
