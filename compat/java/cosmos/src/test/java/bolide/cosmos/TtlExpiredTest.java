// T13 to T16: expired items before and after the purge, also after kill -9 of the server.

package bolide.cosmos;

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

import bolide.support.Server;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(ints = {Account.ONE_RANGE, Account.SEVERAL_RANGES})
class TtlExpiredTest {
    private static Account account;

    @Parameter
    int throughput;

    private CosmosContainer container;
    private ObjectNode last;

    @BeforeAll
    static void start() {
        account = Account.start();
    }

    @AfterAll
    static void stop() {
        account.close();
    }

    /** Leaves an expired item "x" that is not purged. */
    @BeforeEach
    void expire() {
        account.server.pausePurge(true);
        container = account.container(throughput, 100);
        last = create(container, item("x").put("n", 1));
        account.server.moveTo(ts(last) + 100);
    }

    @Test
    void t14NoOperationSeesItWhetherOrNotItIsPurged() {
        for (boolean paused : new boolean[] {true, false}) {
            account.server.pausePurge(paused);
            assertFalse(isThere(container, "x"));
            var options = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange());
            assertEquals(List.of(), container.queryChangeFeed(options, ObjectNode.class).stream().toList());
            var values = container.queryItems("SELECT DISTINCT VALUE c.n FROM c", new CosmosQueryRequestOptions(), Integer.class);
            assertEquals(List.of(), values.stream().toList());
        }
    }

    @Test
    void t15CreateAndUpsertCreate() {
        assertEquals(201, container.createItem(item("x")).getStatusCode());
        account.server.advance(100);
        assertEquals(201, container.upsertItem(item("x")).getStatusCode());
        assertTrue(isThere(container, "x"));
    }

    @Test
    void t15ReplacePatchAndDeleteDoNotFindItWhateverTheCondition() {
        for (String etag : new String[] {null, last.get("_etag").asText(), "\"stale\""}) {
            var options = new CosmosItemRequestOptions().setIfMatchETag(etag);
            refused(404, () -> container.replaceItem(item("x"), "x", KEY, options));
            refused(404, () -> container.deleteItem("x", KEY, options));
        }
        refused(404, () -> container.patchItem("x", KEY, CosmosPatchOperations.create().set("/n", 2), ObjectNode.class));
    }

    @Test
    void t15ABatchAndABulkTreatItAsNotThere() {
        CosmosBatch reads = CosmosBatch.createCosmosBatch(KEY);
        reads.readItemOperation("x");
        assertEquals(404, container.executeCosmosBatch(reads).getResults().get(0).getStatusCode());
        CosmosBatch batch = CosmosBatch.createCosmosBatch(KEY);
        batch.createItemOperation(item("x"));
        batch.patchItemOperation("x", CosmosPatchOperations.create().set("/n", 2));
        var response = container.executeCosmosBatch(batch);
        assertTrue(response.isSuccessStatusCode(), response.getErrorMessage());
        assertEquals(201, response.getResults().get(0).getStatusCode());

        account.server.advance(100);
        Map<String, Integer> statuses = new HashMap<>();
        var deletes = List.of(CosmosBulkOperations.getDeleteItemOperation("x", KEY, "delete"));
        var creates = List.of(CosmosBulkOperations.getCreateItemOperation(item("x"), KEY, "create"));
        for (var operations : List.of(deletes, creates)) {
            container.<String>executeBulkOperations(operations)
                .forEach(done -> statuses.put(done.getOperation().getContext(), done.getResponse().getStatusCode()));
        }
        assertEquals(Map.of("delete", 404, "create", 201), statuses);
    }

    @Test
    void t15ItsUniqueValuesAreFreeAtOnce() {
        CosmosContainerProperties definition = new CosmosContainerProperties(account.newName(), "/pk");
        definition.setDefaultTimeToLiveInSeconds(100);
        definition.setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email")))));
        CosmosContainer unique = account.made(throughput, definition);
        ObjectNode first = create(unique, item("1").put("email", "a@b"));
        refused(409, () -> unique.createItem(item("2").put("email", "a@b")));
        account.server.moveTo(ts(first) + 100);
        create(unique, item("2").put("email", "a@b"));
        refused(409, () -> unique.createItem(item("3").put("email", "a@b")));
    }

    @Test
    void t16APageReadAfterADeadlineDoesNotBringTheExpired() {
        CosmosContainer pages = account.container(throughput, -1);
        ObjectNode stored = null;
        for (int n = 0; n < 6; n += 1) {
            stored = create(pages, item("" + n).put("ttl", n % 2 == 1 ? 100 : -1));
        }
        var options = new CosmosQueryRequestOptions().setPartitionKey(KEY);
        Iterable<FeedResponse<ObjectNode>> query =
            pages.queryItems("SELECT * FROM c", options, ObjectNode.class).iterableByPage(2);
        FeedResponse<ObjectNode> first = query.iterator().next();
        List<String> seen = ids(first.getResults());
        assertEquals(2, seen.size());
        account.server.moveTo(ts(stored) + 100);
        // A new iterator goes on, since this client reads ahead.
        Iterator<FeedResponse<ObjectNode>> rest = pages.queryItems("SELECT * FROM c", options, ObjectNode.class)
            .iterableByPage(first.getContinuationToken(), 2).iterator();
        List<ObjectNode> found = new java.util.ArrayList<>();
        rest.forEachRemaining(page -> found.addAll(page.getResults()));
        assertEquals(List.of("0", "2", "4").stream().filter(id -> !seen.contains(id)).toList(), ids(found));
    }

    @Test
    void t13WhatHasExpiredStaysSoOverKillNineAndAnotherDefault(@TempDir Path folder) {
        try (Account own = Account.on(Server.startIn(folder))) {
            own.server.pausePurge(true);
            CosmosContainer orders = own.container(throughput, 100);
            IntStream.range(0, 10).forEach(n -> create(orders, item("" + n, "k" + n)));
            ObjectNode gone = create(orders, item("gone"));
            own.server.moveTo(ts(gone) + 50);
            create(orders, item("young"));
            own.server.moveTo(ts(gone) + 100);
            setDefault(orders, 1_000_000);
            own.server.kill();
            own.server.restart();
            own.server.pausePurge(true);
            assertFalse(isThere(orders, "gone"));
            assertTrue(isThere(orders, "young"));
            var all = orders.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class);
            assertEquals(List.of("young"), ids(all.stream().toList()));
        }
    }
}
