// The table of compat/queries.json through the Java SDK, on one range of keys and on four: the client asks for the server's plan
// and merges what the ranges answer. Within one key it keeps the plan of the first query and asks for none again.

package bolide.cosmos;

import static bolide.cosmos.Account.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(ints = {1, 4})
class QueriesTest {
    private static final int PAGE = 2;
    private static final int MOST_PAGES = 100;

    private static Account account;
    private static CosmosContainer inOneRange;
    private static CosmosContainer inFourRanges;

    @Parameter
    int ranges;

    @BeforeAll
    static void start() {
        account = Account.start();
        inOneRange = QueryTable.fill(account, "one", Account.ONE_RANGE);
        inFourRanges = QueryTable.fill(account, "four", Account.SEVERAL_RANGES);
        assertEquals(1, inOneRange.getFeedRanges().size());
        assertEquals(4, inFourRanges.getFeedRanges().size());
    }

    @AfterAll
    static void stop() {
        account.close();
    }

    private CosmosContainer shop() {
        return ranges == 1 ? inOneRange : inFourRanges;
    }

    static Stream<QueryTable.Entry> table() {
        return QueryTable.queries().stream();
    }

    /** Leaves out what the table says that this client cannot run, with its reason. */
    private void assumePossible(QueryTable.Entry entry) {
        JsonNode everywhere = entry.without().path("java");
        JsonNode reason = ranges == 1 ? everywhere : entry.without().path("java, several partitions");
        assumeTrue(everywhere.isMissingNode() && reason.isMissingNode(), reason.asText(everywhere.asText()));
    }

    @ParameterizedTest
    @MethodSource("table")
    void allRows(QueryTable.Entry entry) {
        assumePossible(entry);
        entry.check(rows(entry.query(), new CosmosQueryRequestOptions()));
    }

    @ParameterizedTest
    @MethodSource("table")
    void pageByPage(QueryTable.Entry entry) {
        assumePossible(entry);
        List<JsonNode> found = new ArrayList<>();
        int pages = 0;
        var query = shop().queryItems(entry.query(), new CosmosQueryRequestOptions(), JsonNode.class);
        for (FeedResponse<JsonNode> page : query.iterableByPage(PAGE)) {
            assertTrue(page.getResults().size() <= PAGE, "rows in a page: " + page.getResults().size());
            found.addAll(page.getResults());
            pages += 1;
            assertTrue(pages <= MOST_PAGES, "the pages do not end");
        }
        entry.check(found);
    }

    @ParameterizedTest
    @ValueSource(strings = {"all items", "range", "ORDER BY", "ORDER BY two keys", "JOIN", "EXISTS"})
    void aNewIteratorGoesOnFromAToken(String name) {
        QueryTable.Entry entry = QueryTable.named(name);
        List<JsonNode> found = new ArrayList<>();
        String token = null;
        for (int pages = 0; pages == 0 || token != null; pages += 1) {
            assertTrue(pages <= MOST_PAGES, "the pages do not end");
            var query = shop().queryItems(entry.query(), new CosmosQueryRequestOptions(), JsonNode.class);
            Iterator<FeedResponse<JsonNode>> page = query.iterableByPage(token, PAGE).iterator();
            FeedResponse<JsonNode> first = page.next();
            found.addAll(first.getResults());
            token = first.getContinuationToken();
        }
        entry.check(found);
    }

    @Test
    void theFeedRangesTogetherHoldEverything() {
        List<JsonNode> found = new ArrayList<>();
        for (FeedRange range : shop().getFeedRanges()) {
            found.addAll(rows(new SqlQuerySpec("SELECT VALUE c.id FROM c"), new CosmosQueryRequestOptions().setFeedRange(range)));
        }
        List<JsonNode> all = rows(new SqlQuerySpec("SELECT VALUE c.id FROM c"), new CosmosQueryRequestOptions());
        assertEquals(texts(all), texts(found));
    }

    @Test
    void withinOneKeyTheSecondQueryOfAKindAsksForNoPlan() {
        for (String key : List.of("north", "south", "north")) {
            var options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey(key));
            var query = new SqlQuerySpec("SELECT VALUE c.pk FROM c WHERE c.stock > 0 ORDER BY c.name");
            List<JsonNode> found = rows(query, options);
            assertTrue(!found.isEmpty() && found.stream().allMatch(value -> value.asText().equals(key)), key);
        }
    }

    @Test
    void aBadQueryIsRefused() {
        var refusal = refused(400, () -> rows(new SqlQuerySpec("SELECT * FRM c"), new CosmosQueryRequestOptions()));
        assertTrue(refusal.getMessage().contains("SC1001"), refusal.getMessage());
    }

    @Test
    void queryAndIndexMetrics() {
        var options = new CosmosQueryRequestOptions().setQueryMetricsEnabled(true).setIndexMetricsEnabled(true);
        var query = shop().queryItems("SELECT * FROM c WHERE c.stock = 40", options, JsonNode.class);
        FeedResponse<JsonNode> page = query.iterableByPage().iterator().next();
        assertEquals(1, page.getResults().size());
        assertTrue(page.getRequestCharge() > 0);
        String told = page.getCosmosDiagnostics().toString();
        assertTrue(told.contains("retrievedDocumentCount"), told);
        assertTrue(told.contains("stock"), told);
        assertNotNull(page.getActivityId());
    }

    private List<JsonNode> rows(SqlQuerySpec query, CosmosQueryRequestOptions options) {
        return shop().queryItems(query, options, JsonNode.class).stream().toList();
    }

    private static List<String> texts(List<JsonNode> values) {
        return values.stream().map(JsonNode::toString).sorted().toList();
    }
}
