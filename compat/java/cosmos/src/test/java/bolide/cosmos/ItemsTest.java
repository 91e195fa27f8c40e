// Items by the synchronous client: conditions, patches, batches, bulk, ids, keys of every type, many reads at once.

package bolide.cosmos;

import static bolide.cosmos.Account.JSON;
import static bolide.cosmos.Account.KEY;
import static bolide.cosmos.Account.create;
import static bolide.cosmos.Account.ids;
import static bolide.cosmos.Account.item;
import static bolide.cosmos.Account.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(ints = {Account.ONE_RANGE, Account.SEVERAL_RANGES})
class ItemsTest {
    private static final CosmosItemRequestOptions OPTIONS = new CosmosItemRequestOptions();
    private static final int MANY = 250;

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

    private CosmosContainer container() {
        return account.container(throughput, null);
    }

    @Test
    void anItemIsCreatedReadReplacedUpsertedAndDeleted() {
        CosmosContainer container = container();
        var created = container.createItem(item("x").put("n", 1));
        assertEquals(201, created.getStatusCode());
        assertTrue(created.getRequestCharge() > 0);
        assertFalse(created.getSessionToken().isEmpty());
        assertFalse(created.getActivityId().isEmpty());
        refused(409, () -> container.createItem(item("x")));
        assertEquals(created.getItem(), container.readItem("x", KEY, ObjectNode.class).getItem());
        var replaced = container.replaceItem(item("x").put("n", 2), "x", KEY, OPTIONS);
        assertEquals(200, replaced.getStatusCode());
        assertNotEquals(created.getETag(), replaced.getETag());
        assertEquals(201, container.upsertItem(item("y")).getStatusCode());
        assertEquals(200, container.upsertItem(item("y").put("n", 3)).getStatusCode());
        assertEquals(204, container.deleteItem("x", KEY, OPTIONS).getStatusCode());
        refused(404, () -> container.readItem("x", KEY, ObjectNode.class));
        refused(404, () -> container.deleteItem("x", KEY, OPTIONS));
    }

    @Test
    void conditionsAreHeld() {
        CosmosContainer container = container();
        var first = container.createItem(item("x"));
        var unchanged = new CosmosItemRequestOptions().setIfNoneMatchETag(first.getETag());
        assertEquals(304, container.readItem("x", KEY, unchanged, ObjectNode.class).getStatusCode());
        var same = new CosmosItemRequestOptions().setIfMatchETag(first.getETag());
        container.replaceItem(item("x").put("n", 1), "x", KEY, same);
        refused(412, () -> container.replaceItem(item("x").put("n", 2), "x", KEY, same));
        refused(412, () -> container.deleteItem("x", KEY, same));
        refused(412, () -> container.upsertItem(item("x"), same));
        var patch = new CosmosPatchItemRequestOptions();
        patch.setFilterPredicate("FROM c WHERE c.n = 7");
        refused(412, () -> container.patchItem("x", KEY, CosmosPatchOperations.create().set("/n", 8), patch, ObjectNode.class));
    }

    @Test
    void aWriteMayLeaveTheItemOutOfTheAnswer() {
        CosmosContainer container = container();
        var quiet = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        var created = container.createItem(item("x"), KEY, quiet);
        assertEquals(201, created.getStatusCode());
        assertNull(created.getItem());
        assertFalse(created.getETag().isEmpty());
    }

    @Test
    void everyPatchOperation() {
        CosmosContainer container = container();
        create(container, item("x").put("n", 1).put("old", "gone").set("list", JSON.createArrayNode().add("a")));
        var patch = CosmosPatchOperations.create()
            .add("/list/0", "first").set("/made", true).replace("/pk2", "x").increment("/n", 2).increment("/n", 0.5);
        refused(400, () -> container.patchItem("x", KEY, patch, ObjectNode.class));
        var good = CosmosPatchOperations.create()
            .add("/list/0", "first").set("/made", true).remove("/old").increment("/n", 2).increment("/n", 0.5)
            .move("/made", "/moved");
        ObjectNode patched = container.patchItem("x", KEY, good, ObjectNode.class).getItem();
        assertEquals("[\"first\",\"a\"]", patched.get("list").toString());
        assertEquals(3.5, patched.get("n").asDouble());
        assertTrue(patched.get("moved").asBoolean());
        assertFalse(patched.has("old") || patched.has("made"));
    }

    @Test
    void aBatchIsDoneWholeOrNotAtAll() {
        CosmosContainer container = container();
        create(container, item("old").put("n", 1));
        CosmosBatch good = CosmosBatch.createCosmosBatch(KEY);
        good.createItemOperation(item("new"));
        good.upsertItemOperation(item("other"));
        good.replaceItemOperation("old", item("old").put("n", 2));
        good.readItemOperation("old");
        good.patchItemOperation("old", CosmosPatchOperations.create().increment("/n", 1));
        good.deleteItemOperation("other");
        var done = container.executeCosmosBatch(good);
        assertTrue(done.isSuccessStatusCode());
        assertEquals(List.of(201, 201, 200, 200, 200, 204), done.getResults().stream().map(one -> one.getStatusCode()).toList());
        assertEquals(2, done.getResults().get(3).getItem(ObjectNode.class).get("n").asInt());
        assertTrue(done.getRequestCharge() > 0);

        CosmosBatch bad = CosmosBatch.createCosmosBatch(KEY);
        bad.createItemOperation(item("more"));
        bad.replaceItemOperation("old", item("old"), new CosmosBatchItemRequestOptions().setIfMatchETag("\"stale\""));
        var failed = container.executeCosmosBatch(bad);
        assertFalse(failed.isSuccessStatusCode());
        assertEquals(412, failed.getStatusCode());
        assertEquals(List.of(424, 412), failed.getResults().stream().map(one -> one.getStatusCode()).toList());
        assertEquals(List.of("new", "old"), ids(container.readAllItems(KEY, ObjectNode.class).stream().toList()));
    }

    @Test
    void bulkReachesEveryRangeAndTellsEachOperation() {
        CosmosContainer container = container();
        Stream<CosmosItemOperation> creates = IntStream.range(0, MANY).mapToObj(n ->
            CosmosBulkOperations.getCreateItemOperation(item("i" + n, "k" + n % 50).put("n", n), new PartitionKey("k" + n % 50)));
        assertEquals(Map.of(201, MANY), statuses(container, creates.toList()));
        Stream<CosmosItemOperation> others = IntStream.range(0, MANY).mapToObj(n -> {
            PartitionKey key = new PartitionKey("k" + n % 50);
            return switch (n % 5) {
                case 0 -> CosmosBulkOperations.getCreateItemOperation(item("i" + n, "k" + n % 50), key);
                case 1 -> CosmosBulkOperations.getUpsertItemOperation(item("i" + n, "k" + n % 50), key);
                case 2 -> CosmosBulkOperations.getReplaceItemOperation("i" + n, item("i" + n, "k" + n % 50), key);
                case 3 -> CosmosBulkOperations.getPatchItemOperation("i" + n, key, CosmosPatchOperations.create().increment("/n", 1));
                default -> CosmosBulkOperations.getDeleteItemOperation("i" + n, key);
            };
        });
        assertEquals(Map.of(409, MANY / 5, 200, MANY / 5 * 3, 204, MANY / 5), statuses(container, others.toList()));
        var count = container.queryItems("SELECT VALUE COUNT(1) FROM c", new CosmosQueryRequestOptions(), Integer.class);
        assertEquals(MANY / 5 * 4, count.iterator().next());
    }

    private static Map<Integer, Integer> statuses(CosmosContainer container, List<CosmosItemOperation> operations) {
        Map<Integer, Integer> counts = new TreeMap<>();
        container.executeBulkOperations(operations).forEach(done -> {
            assertNull(done.getException());
            counts.merge(done.getResponse().getStatusCode(), 1, Integer::sum);
        });
        return counts;
    }

    @Test
    void manyItemsAreReadAtOnce() {
        CosmosContainer container = container();
        List<CosmosItemIdentity> wanted = new ArrayList<>();
        Set<String> expected = new TreeSet<>();
        for (int n = 0; n < 60; n += 1) {
            create(container, item("i" + n, "k" + n % 7));
            wanted.add(new CosmosItemIdentity(new PartitionKey("k" + n % 7), "i" + n));
            expected.add("i" + n);
        }
        wanted.add(new CosmosItemIdentity(KEY, "missing"));
        var found = container.readMany(wanted, ObjectNode.class);
        assertEquals(List.copyOf(expected), ids(found.getResults()));
        assertTrue(found.getRequestCharge() > 0);
        var keys = List.of(new PartitionKey("k1"), new PartitionKey("k2"), new PartitionKey("none"));
        var ofKeys = container.readManyByPartitionKeys(keys, ObjectNode.class).stream().toList();
        assertEquals(expected.stream().filter(id -> Set.of(1, 2).contains(Integer.parseInt(id.substring(1)) % 7)).toList(), ids(ofKeys));
    }

    @Test
    void keysOfEveryType() {
        CosmosContainer container = container();
        Map<PartitionKey, JsonNode> keys = Map.of(
            new PartitionKey("text"), JSON.valueToTree("text"),
            new PartitionKey(""), JSON.valueToTree(""),
            new PartitionKey(1.5), JSON.valueToTree(1.5),
            new PartitionKey(7), JSON.valueToTree(7),
            new PartitionKey(true), JSON.valueToTree(true),
            new PartitionKey(null), JSON.nullNode());
        keys.forEach((key, value) -> {
            container.createItem(JSON.createObjectNode().put("id", "x").set("pk", value), key, OPTIONS);
            assertEquals(value, container.readItem("x", key, ObjectNode.class).getItem().get("pk"));
        });
        container.createItem(JSON.createObjectNode().put("id", "x"), PartitionKey.NONE, OPTIONS);
        assertEquals("x", container.readItem("x", PartitionKey.NONE, ObjectNode.class).getItem().get("id").asText());
        var all = container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class).stream().toList();
        assertEquals(keys.size() + 1, all.size());
    }

    @Test
    void allItemsOfAKeyAreDeletedAtOnce() {
        CosmosContainer container = container();
        IntStream.range(0, 10).forEach(n -> create(container, item("i" + n, "k" + n % 2)));
        container.deleteAllItemsByPartitionKey(new PartitionKey("k0"), OPTIONS);
        var left = container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class).stream().toList();
        assertEquals(List.of("i1", "i3", "i5", "i7", "i9"), ids(left));
    }

    static Stream<String> acceptedIds() throws IOException {
        JsonNode table = JSON.readTree(Path.of("../../ids.json").toFile());
        JsonNode unnamed = table.path("unnamed").path("java");
        return Stream.of("accepted", "escaped")
            .flatMap(list -> StreamSupport.stream(table.get(list).spliterator(), false))
            .map(JsonNode::asText)
            .filter(id -> !unnamed.has(id));
    }

    @ParameterizedTest
    @MethodSource("acceptedIds")
    void idsWorkInEveryOperation(String id) {
        CosmosContainer container = container();
        create(container, item(id));
        assertEquals(id, container.readItem(id, KEY, ObjectNode.class).getItem().get("id").asText());
        container.replaceItem(item(id).put("n", 1), id, KEY, OPTIONS);
        container.patchItem(id, KEY, CosmosPatchOperations.create().increment("/n", 1), ObjectNode.class);
        assertEquals(2, container.readMany(List.of(new CosmosItemIdentity(KEY, id)), ObjectNode.class).getResults().get(0).get("n").asInt());
        container.deleteItem(id, KEY, OPTIONS);
        refused(404, () -> container.readItem(id, KEY, ObjectNode.class));
    }

    @Test
    void aContainerIsListedReadAndDeletedWithItsItems() {
        CosmosContainer container = container();
        create(container, item("x"));
        assertTrue(account.database.readAllContainers().stream().map(CosmosContainerProperties::getId).anyMatch(container.getId()::equals));
        container.delete();
        refused(404, container::read);
        refused(404, () -> container.readItem("x", KEY, ObjectNode.class));
    }
}
