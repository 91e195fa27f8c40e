// T2: every cell of the truth table, for items written by every kind of write, in containers of one range and of several.

package bolide.cosmos;

import static bolide.cosmos.Account.DAY;
import static bolide.cosmos.Account.KEY;
import static bolide.cosmos.Account.isThere;
import static bolide.cosmos.Account.item;
import static bolide.cosmos.Account.ts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(ints = {Account.ONE_RANGE, Account.SEVERAL_RANGES})
class TtlTruthTableTest {
    private static Account account;

    @Parameter
    int throughput;

    @BeforeAll
    static void start() {
        account = Account.start();
    }

    @AfterAll
    static void stop() {
        account.close();
    }

    /** The default of the container, the ttl of the item, and the seconds from `_ts` to the expiry; empty is absent and never. */
    @ParameterizedTest
    @CsvSource({",,", ",-1,", ",100,", "-1,,", "-1,-1,", "-1,100,100", "200,,200", "200,-1,", "200,100,100"})
    void t2EveryCell(Integer defaultTtl, Integer ttl, Integer lives) {
        CosmosContainer container = account.container(throughput, defaultTtl);
        List<ObjectNode> written = List.of(created(container, ttl), batched(container, ttl), bulked(container, ttl));
        for (ObjectNode stored : written) {
            assertEquals(ttl, stored.has("ttl") ? (Integer) stored.get("ttl").asInt() : null);
            assertEquals(ts(written.get(0)), ts(stored), "the clock stands still");
        }
        if (lives == null) {
            account.server.advance(400 * DAY);
        } else {
            account.server.moveTo(ts(written.get(0)) + lives - 1);
        }
        written.forEach(stored -> assertTrue(isThere(container, stored.get("id").asText())));
        if (lives != null) {
            account.server.advance(1);
            written.forEach(stored -> assertFalse(isThere(container, stored.get("id").asText())));
        }
    }

    private static ObjectNode withTtl(String id, Integer ttl) {
        ObjectNode item = item(id);
        return ttl == null ? item : item.put("ttl", ttl);
    }

    private static ObjectNode created(CosmosContainer container, Integer ttl) {
        return container.createItem(withTtl("created", ttl)).getItem();
    }

    private static ObjectNode batched(CosmosContainer container, Integer ttl) {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(KEY);
        batch.upsertItemOperation(withTtl("batched", ttl));
        return container.executeCosmosBatch(batch).getResults().get(0).getItem(ObjectNode.class);
    }

    private static ObjectNode bulked(CosmosContainer container, Integer ttl) {
        var operation = CosmosBulkOperations.getCreateItemOperation(withTtl("bulked", ttl), KEY);
        container.executeBulkOperations(List.of(operation)).forEach(done -> assertEquals(201, done.getResponse().getStatusCode()));
        return container.readItem("bulked", KEY, ObjectNode.class).getItem();
    }
}
