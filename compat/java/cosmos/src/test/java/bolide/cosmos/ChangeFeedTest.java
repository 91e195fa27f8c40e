// The change feed as a program reads it itself: both modes, from the beginning, from now, from a time and from a token, by key
// and by range of keys.

package bolide.cosmos;

import static bolide.cosmos.Account.KEY;
import static bolide.cosmos.Account.create;
import static bolide.cosmos.Account.item;
import static bolide.cosmos.Account.ts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(ints = {Account.ONE_RANGE, Account.SEVERAL_RANGES})
class ChangeFeedTest {
    private static final int KEYS = 12;

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

    /** Changes, and the token that goes on after them. */
    record Read(List<JsonNode> changes, String token) {
        List<String> ids() {
            return changes.stream().map(change -> change.get("id").asText()).sorted().toList();
        }
    }

    private static Read read(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<JsonNode> changes = new ArrayList<>();
        String token = null;
        for (FeedResponse<JsonNode> page : container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            changes.addAll(page.getResults());
            token = page.getContinuationToken();
        }
        return new Read(changes, token);
    }

    private static CosmosChangeFeedRequestOptions after(Read read) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(read.token());
    }

    private static void fill(CosmosContainer container, String prefix) {
        IntStream.range(0, KEYS).forEach(n -> create(container, item(prefix + n, "key" + n)));
    }

    private static List<String> names(String prefix) {
        return IntStream.range(0, KEYS).mapToObj(n -> prefix + n).sorted().toList();
    }

    @Test
    void latestVersionsFromTheBeginningAndOn() {
        CosmosContainer container = account.container(throughput, -1);
        fill(container, "a");
        var all = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()).setMaxItemCount(2);
        Read first = read(container, all);
        assertEquals(names("a"), first.ids());
        assertEquals(List.of(), read(container, after(first)).changes());

        container.upsertItem(item("a3", "key3").put("n", 1));
        container.deleteItem("a4", new PartitionKey("key4"), new CosmosItemRequestOptions());
        Read second = read(container, after(first));
        assertEquals(List.of("a3"), second.ids());
        assertEquals(1, second.changes().get(0).get("n").asInt());
        assertEquals(List.of(), read(container, after(second)).changes());
    }

    @Test
    void latestVersionsFromNowAndFromATime() {
        CosmosContainer container = account.container(throughput, null);
        fill(container, "a");
        account.server.advance(100);
        Instant between = Instant.ofEpochSecond(account.server.now());
        Read now = read(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()));
        assertEquals(List.of(), now.changes());
        account.server.advance(100);
        fill(container, "b");
        assertEquals(names("b"), read(container, after(now)).ids());
        var since = CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(between, FeedRange.forFullRange());
        assertEquals(names("b"), read(container, since).ids());
    }

    @Test
    void rangesOfKeysTogetherHoldEverythingAndAKeyItsOwn() {
        CosmosContainer container = account.container(throughput, null);
        fill(container, "a");
        List<FeedRange> ranges = container.getFeedRanges();
        assertEquals(throughput == Account.ONE_RANGE ? 1 : 4, ranges.size());
        List<String> found = new ArrayList<>();
        for (FeedRange range : ranges) {
            // As a program does that gives its ranges to others as texts.
            FeedRange parsed = FeedRange.fromString(range.toString());
            found.addAll(read(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(parsed)).ids());
        }
        assertEquals(names("a"), found.stream().sorted().toList());
        var one = FeedRange.forLogicalPartition(new PartitionKey("key7"));
        assertEquals(List.of("a7"), read(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(one)).ids());
    }

    private CosmosContainer withAllVersions() {
        CosmosContainerProperties definition = new CosmosContainerProperties(account.newName(), "/pk");
        definition.setDefaultTimeToLiveInSeconds(-1);
        definition.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(60)));
        CosmosContainer container = account.made(throughput, definition);
        var kept = container.read().getProperties().getChangeFeedPolicy();
        assertEquals(Duration.ofMinutes(60), kept.getRetentionDurationForAllVersionsAndDeletesPolicy());
        return container;
    }

    private static Read startingNow(CosmosContainer container) {
        var options = CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()).allVersionsAndDeletes();
        return read(container, options);
    }

    private static Read allAfter(CosmosContainer container, Read read) {
        return read(container, after(read).allVersionsAndDeletes());
    }

    @Test
    void allVersionsOfAnItemInTheirOrder() {
        CosmosContainer container = withAllVersions();
        Read start = startingNow(container);
        assertEquals(List.of(), start.changes());
        create(container, item("x").put("n", 0));
        container.replaceItem(item("x").put("n", 1), "x", KEY, new CosmosItemRequestOptions());
        container.patchItem("x", KEY, CosmosPatchOperations.create().set("/n", 2), ObjectNode.class);
        container.deleteItem("x", KEY, new CosmosItemRequestOptions());
        List<JsonNode> changes = allAfter(container, start).changes();
        assertEquals(List.of("create", "replace", "replace", "delete"), operations(changes));
        assertEquals(2, changes.get(2).get("current").get("n").asInt());
        assertFalse(changes.get(3).get("metadata").path("timeToLiveExpired").asBoolean());
        assertEquals(2, changes.get(3).get("previous").get("n").asInt());
    }

    @Test
    void t28AnExpiryIsADeleteOfThatInstantExactlyOnce() {
        CosmosContainer container = withAllVersions();
        account.server.pausePurge(true);
        Read start = startingNow(container);
        ObjectNode first = create(container, item("x").put("n", 1).put("ttl", 100));
        account.server.moveTo(ts(first) + 150);
        create(container, item("x").put("n", 2));
        Read seen = allAfter(container, start);
        assertEquals(List.of("create", "delete", "create"), operations(seen.changes()));
        JsonNode expiry = seen.changes().get(1);
        assertTrue(expiry.get("metadata").get("timeToLiveExpired").asBoolean());
        assertEquals(ts(first) + 100, expiry.get("metadata").get("crts").asLong());
        assertEquals(1, expiry.get("previous").get("n").asInt());
        assertEquals("x", expiry.get("metadata").path("id").asText("x"));

        account.server.pausePurge(false);
        account.server.admin("POST", "purge", "{\"now\":true}");
        assertEquals(List.of(), allAfter(container, seen).changes(), "the purge adds nothing");
        assertEquals(List.of("create", "delete", "create"), operations(allAfter(container, start).changes()));
    }

    private static List<String> operations(List<JsonNode> changes) {
        return changes.stream().map(change -> change.get("metadata").get("operationType").asText()).toList();
    }
}
