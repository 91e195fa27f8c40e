// Keys of several levels: whole, by prefix, in batches, bulk, change feeds and many reads at once.

package bolide.cosmos;

import static bolide.cosmos.Account.JSON;
import static bolide.cosmos.Account.ids;
import static bolide.cosmos.Account.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(ints = {Account.ONE_RANGE, Account.SEVERAL_RANGES})
class HierarchicalKeysTest {
    private static final int ITEMS = 24;

    private static Account account;

    @Parameter
    int throughput;

    private CosmosContainer container;

    @BeforeAll
    static void start() {
        account = Account.start();
    }

    @AfterAll
    static void stop() {
        account.close();
    }

    private static ObjectNode item(int n) {
        return JSON.createObjectNode().put("id", "i" + n).put("tenant", "t" + n % 3).put("user", "u" + n % 4).put("session", n);
    }

    private static PartitionKey key(int n) {
        return new PartitionKeyBuilder().add("t" + n % 3).add("u" + n % 4).add(n).build();
    }

    private static List<String> where(java.util.function.IntPredicate wanted) {
        return IntStream.range(0, ITEMS).filter(wanted).mapToObj(n -> "i" + n).sorted().toList();
    }

    @BeforeEach
    void fill() {
        PartitionKeyDefinition levels = new PartitionKeyDefinition()
            .setPaths(List.of("/tenant", "/user", "/session"))
            .setKind(PartitionKind.MULTI_HASH)
            .setVersion(PartitionKeyDefinitionVersion.V2);
        CosmosContainerProperties definition = new CosmosContainerProperties(account.newName(), levels);
        definition.setDefaultTimeToLiveInSeconds(-1);
        container = account.made(throughput, definition);
        List<CosmosItemOperation> creates = IntStream.range(0, ITEMS)
            .mapToObj(n -> CosmosBulkOperations.getCreateItemOperation(item(n), key(n))).toList();
        container.executeBulkOperations(creates).forEach(done -> assertEquals(201, done.getResponse().getStatusCode()));
    }

    @Test
    void itemsByTheirWholeKey() {
        assertEquals(item(5).get("session"), container.readItem("i5", key(5), ObjectNode.class).getItem().get("session"));
        container.upsertItem(item(5).put("more", true), key(5), new CosmosItemRequestOptions());
        container.deleteItem("i6", key(6), new CosmosItemRequestOptions());
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key(7));
        batch.readItemOperation("i7");
        batch.upsertItemOperation(item(7).put("more", true));
        assertTrue(container.executeCosmosBatch(batch).isSuccessStatusCode());
        assertEquals(List.of("i5", "i7"), query("SELECT * FROM c WHERE c.more", new CosmosQueryRequestOptions()));
    }

    @Test
    void queriesByPrefix() {
        PartitionKey tenant = new PartitionKeyBuilder().add("t1").build();
        PartitionKey user = new PartitionKeyBuilder().add("t1").add("u2").build();
        assertEquals(where(n -> n % 3 == 1), query("SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(tenant)));
        assertEquals(where(n -> n % 3 == 1 && n % 4 == 2), query("SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(user)));
        assertEquals(where(n -> n == 10), query("SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(key(10))));
        var ordered = container.queryItems("SELECT VALUE c.session FROM c ORDER BY c.session DESC",
            new CosmosQueryRequestOptions().setPartitionKey(tenant), Integer.class).stream().toList();
        assertEquals(List.of(22, 19, 16, 13, 10, 7, 4, 1), ordered);
        assertEquals(where(n -> n % 3 == 2), query("SELECT * FROM c WHERE c.tenant = 't2'", new CosmosQueryRequestOptions()));
    }

    @Test
    void feedsByPrefixAndByWholeKey() {
        PartitionKey user = new PartitionKeyBuilder().add("t0").add("u3").build();
        if (Connection.IS_DIRECT) {
            // The client finds no address for a part of a key, and asks no server.
            assertEquals(1001, refused(400, () -> changes(FeedRange.forLogicalPartition(user))).getSubStatusCode());
        } else {
            assertEquals(where(n -> n % 3 == 0 && n % 4 == 3), changes(FeedRange.forLogicalPartition(user)));
        }
        assertEquals(where(n -> n == 3), changes(FeedRange.forLogicalPartition(key(3))));
        assertEquals(where(n -> true), changes(FeedRange.forFullRange()));
    }

    @Test
    void manyItemsAtOnce() {
        List<CosmosItemIdentity> wanted = IntStream.of(1, 2, 3, 20).mapToObj(n -> new CosmosItemIdentity(key(n), "i" + n)).toList();
        assertEquals(List.of("i1", "i2", "i20", "i3"), ids(container.readMany(wanted, ObjectNode.class).getResults()));
        assertEquals(List.of("i4"), ids(container.readAllItems(key(4), ObjectNode.class).stream().toList()));
    }

    @Test
    void aKeyWithANullLevel() {
        PartitionKey nullLevel = new PartitionKeyBuilder().add("t9").add((String) null).add(1).build();
        ObjectNode item = JSON.createObjectNode().put("id", "null").put("tenant", "t9").putNull("user").put("session", 1);
        container.createItem(item, nullLevel, new CosmosItemRequestOptions());
        assertEquals("null", container.readItem("null", nullLevel, ObjectNode.class).getItem().get("id").asText());
        // The client sends null for a level that an item lacks, which is another key than the item's.
        ObjectNode missing = JSON.createObjectNode().put("id", "missing").put("tenant", "t9");
        assertEquals(1001, refused(400, () -> container.createItem(missing)).getSubStatusCode());
        PartitionKey tenant = new PartitionKeyBuilder().add("t9").build();
        assertEquals(List.of("null"), query("SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(tenant)));
    }

    private List<String> query(String text, CosmosQueryRequestOptions options) {
        return ids(container.queryItems(text, options, ObjectNode.class).stream().toList());
    }

    private List<String> changes(FeedRange range) {
        var options = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range);
        return ids(container.queryChangeFeed(options, ObjectNode.class).stream().toList());
    }
}
