// T5 and T9 to T13: refused values, restarts of the countdown, and the effects of changes of `ttl` and of the default.

package bolide.cosmos;

import static bolide.cosmos.Account.DAY;
import static bolide.cosmos.Account.JSON;
import static bolide.cosmos.Account.KEY;
import static bolide.cosmos.Account.create;
import static bolide.cosmos.Account.ids;
import static bolide.cosmos.Account.isThere;
import static bolide.cosmos.Account.item;
import static bolide.cosmos.Account.refused;
import static bolide.cosmos.Account.setDefault;
import static bolide.cosmos.Account.ts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(ints = {Account.ONE_RANGE, Account.SEVERAL_RANGES})
class TtlChangesTest {
    private static final CosmosItemRequestOptions OPTIONS = new CosmosItemRequestOptions();

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

    @ParameterizedTest
    @ValueSource(strings = {"0", "-10", "-2", "null", "1.5", "\"10\"", "2147483648", "true", "{}", "[]"})
    void t5ABadTtlIsRefusedByEveryWrite(String text) throws JsonProcessingException {
        JsonNode value = JSON.readTree(text);
        CosmosContainer container = account.container(throughput, -1);
        ObjectNode bad = item("bad").set("ttl", value);
        assertTrue(refused(400, () -> container.createItem(bad)).getMessage().contains("2147483647"));
        refused(400, () -> container.upsertItem(bad));
        assertEquals(List.of(), container.readAllItems(KEY, ObjectNode.class).stream().toList());

        ObjectNode before = create(container, item("bad").put("ttl", 500));
        refused(400, () -> container.replaceItem(bad, "bad", KEY, OPTIONS));
        refused(400, () -> container.patchItem("bad", KEY, CosmosPatchOperations.create().set("/ttl", value), ObjectNode.class));
        assertEquals(before, container.readItem("bad", KEY, ObjectNode.class).getItem());

        CosmosBatch batch = CosmosBatch.createCosmosBatch(KEY);
        batch.createItemOperation(item("good"));
        batch.upsertItemOperation(bad);
        var results = container.executeCosmosBatch(batch).getResults();
        assertEquals(List.of(424, 400), results.stream().map(result -> result.getStatusCode()).toList());

        List<Integer> statuses = new ArrayList<>();
        var operations = List.of(
            CosmosBulkOperations.getCreateItemOperation(item("good"), KEY, "0"),
            CosmosBulkOperations.getUpsertItemOperation(bad, KEY, "1"));
        container.<String>executeBulkOperations(operations)
            .forEach(done -> statuses.add(done.getResponse().getStatusCode()));
        assertEquals(List.of(201, 400), statuses.stream().sorted().toList());
        assertEquals(List.of("bad", "good"), ids(container.readAllItems(KEY, ObjectNode.class).stream().toList()));
    }

    @Test
    void t5AnIntegerWithAFractionOfZeroIsAnInteger() {
        CosmosContainer container = account.container(throughput, -1);
        ObjectNode stored = create(container, item("x").put("ttl", 20.0));
        account.server.moveTo(ts(stored) + 19);
        assertTrue(isThere(container, "x"));
        account.server.advance(1);
        assertFalse(isThere(container, "x"));
    }

    @Test
    void t9EveryWriteRestartsTheCountdownAndAReadDoesNot() {
        CosmosContainer container = account.container(throughput, 100);
        List<Supplier<ObjectNode>> writes = List.of(
            () -> container.createItem(item("x").put("n", 0)).getItem(),
            () -> container.replaceItem(item("x").put("n", 1), "x", KEY, OPTIONS).getItem(),
            () -> container.upsertItem(item("x").put("n", 2)).getItem(),
            () -> container.patchItem("x", KEY, CosmosPatchOperations.create().increment("/n", 1), ObjectNode.class).getItem(),
            () -> {
                CosmosBatch batch = CosmosBatch.createCosmosBatch(KEY);
                batch.replaceItemOperation("x", item("x").put("n", 4));
                return container.executeCosmosBatch(batch).getResults().get(0).getItem(ObjectNode.class);
            },
            () -> {
                var operation = CosmosBulkOperations.getUpsertItemOperation(item("x").put("n", 5), KEY);
                container.executeBulkOperations(List.of(operation)).forEach(done -> assertEquals(200, done.getResponse().getStatusCode()));
                return container.readItem("x", KEY, ObjectNode.class).getItem();
            });
        long last = 0;
        for (int n = 0; n < writes.size(); n += 1) {
            ObjectNode stored = writes.get(n).get();
            assertEquals(n, stored.get("n").asInt());
            assertTrue(ts(stored) > last);
            last = ts(stored);
            account.server.moveTo(last + 99);
            assertTrue(isThere(container, "x"));
        }
        account.server.advance(1);
        assertFalse(isThere(container, "x"));
    }

    @Test
    void t10TtlIsChangedRemovedAndStoppedByOrdinaryUpdates() {
        CosmosContainer container = account.container(throughput, 1000);
        create(container, item("x").put("ttl", 100));
        ObjectNode stored = container.replaceItem(item("x").put("ttl", 300), "x", KEY, OPTIONS).getItem();
        account.server.moveTo(ts(stored) + 299);
        stored = container.replaceItem(item("x"), "x", KEY, OPTIONS).getItem();
        account.server.moveTo(ts(stored) + 999);
        var stop = CosmosPatchOperations.create().set("/ttl", -1);
        stored = container.patchItem("x", KEY, stop, ObjectNode.class).getItem();
        account.server.moveTo(ts(stored) + 400 * DAY);
        var again = CosmosPatchOperations.create().remove("/ttl");
        stored = container.patchItem("x", KEY, again, ObjectNode.class).getItem();
        account.server.moveTo(ts(stored) + 999);
        assertTrue(isThere(container, "x"));
        account.server.advance(1);
        assertFalse(isThere(container, "x"));
    }

    @Test
    void t11AChangeOfTheDefaultCountsAtOnceAndT13RevivesNothing() {
        CosmosContainer container = account.container(throughput, 100);
        ObjectNode old = create(container, item("old"));
        account.server.moveTo(ts(old) + 50);
        ObjectNode young = create(container, item("young"));
        account.server.moveTo(ts(old) + 100);
        for (Integer value : new Integer[] {10_000, null, -1, 1_000_000}) {
            setDefault(container, value);
            assertEquals(value, container.read().getProperties().getDefaultTimeToLiveInSeconds());
            assertFalse(isThere(container, "old"), "default " + value);
            assertTrue(isThere(container, "young"), "default " + value);
        }
        account.server.moveTo(ts(young) + 500);
        setDefault(container, 400);
        assertFalse(isThere(container, "young"), "the default is below its age");
        setDefault(container, 1_000_000);
        assertFalse(isThere(container, "young"));
    }

    @Test
    void t12OffDiffersFromMinusOneAndStoredTtlCountsAgainLater() {
        CosmosContainer container = account.container(throughput, -1);
        ObjectNode stored = create(container, item("x").put("ttl", 100));
        setDefault(container, null);
        account.server.moveTo(ts(stored) + 500);
        assertTrue(isThere(container, "x"));
        setDefault(container, -1);
        assertFalse(isThere(container, "x"));
    }
}
