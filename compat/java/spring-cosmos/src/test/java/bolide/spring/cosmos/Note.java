// A note with a version, so that no writer overwrites what another has written meanwhile.

package bolide.spring.cosmos;

import com.azure.spring.data.cosmos.core.mapping.Container;
import com.azure.spring.data.cosmos.core.mapping.PartitionKey;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;

@Container(containerName = "notes", timeToLive = -1)
public class Note {
    @Id
    @PartitionKey
    private String id;
    private String text;
    @Version
    private String _etag;

    public Note() {}

    Note(String id, String text) {
        this.id = id;
        this.text = text;
    }

    public String getId() {
        return id;
    }

    public void setId(String id) {
        this.id = id;
    }

    public String getText() {
        return text;
    }

    public void setText(String text) {
        this.text = text;
    }

    public String get_etag() {
        return _etag;
    }

    public void set_etag(String etag) {
        this._etag = etag;
    }
}
