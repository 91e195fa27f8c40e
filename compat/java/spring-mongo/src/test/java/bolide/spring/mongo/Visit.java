// A visit, which expires a day after it began, and an hour after its last write.

package bolide.spring.mongo;

import java.time.Instant;
import org.springframework.data.annotation.Id;
import org.springframework.data.mongodb.core.index.Indexed;
import org.springframework.data.mongodb.core.mapping.Document;

/** `ttl` is the visit's own time to live, in seconds from its last write. */
@Document("visits")
public record Visit(@Id String id, @Indexed(expireAfter = "1d") Instant began, int pages, Integer ttl) {}
