// A cart that Spring Data keeps in a container of its own: an hour after the last write it expires, unless it says otherwise.

package bolide.spring.cosmos;

import com.azure.spring.data.cosmos.core.mapping.Container;
import com.azure.spring.data.cosmos.core.mapping.PartitionKey;
import com.fasterxml.jackson.annotation.JsonInclude;
import org.springframework.data.annotation.Id;

@Container(containerName = "carts", ru = "20000", timeToLive = 3600)
public class Cart {
    @Id
    private String id;
    @PartitionKey
    private String owner;
    private int total;
    /** Without one the property is left out: the API refuses null. */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    private Integer ttl;

    public Cart() {}

    Cart(String id, String owner, int total, Integer ttl) {
        this.id = id;
        this.owner = owner;
        this.total = total;
        this.ttl = ttl;
    }

    public String getId() {
        return id;
    }

    public void setId(String id) {
        this.id = id;
    }

    public String getOwner() {
        return owner;
    }

    public void setOwner(String owner) {
        this.owner = owner;
    }

    public int getTotal() {
        return total;
    }

    public void setTotal(int total) {
        this.total = total;
    }

    public Integer getTtl() {
        return ttl;
    }

    public void setTtl(Integer ttl) {
        this.ttl = ttl;
    }
}
