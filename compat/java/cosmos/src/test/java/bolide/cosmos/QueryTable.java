// The table of compat/queries.json: one container, its items, and queries with the rows that each must give. The suites of all
// clients run the same table.

package bolide.cosmos;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ComputedProperty;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosFullTextIndex;
import com.azure.cosmos.models.CosmosFullTextPath;
import com.azure.cosmos.models.CosmosFullTextPolicy;
import com.azure.cosmos.models.CosmosVectorDataType;
import com.azure.cosmos.models.CosmosVectorDistanceFunction;
import com.azure.cosmos.models.CosmosVectorEmbedding;
import com.azure.cosmos.models.CosmosVectorEmbeddingPolicy;
import com.azure.cosmos.models.CosmosVectorIndexSpec;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.SpatialSpec;
import com.azure.cosmos.models.SpatialType;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

final class QueryTable {
    private static final JsonNode TABLE = load();
    private static final Set<String> SYSTEM_PROPERTIES = Set.of("_rid", "_self", "_etag", "_attachments", "_ts");
    /** Numbers as precise as every client can sum them. */
    private static final MathContext DIGITS = new MathContext(9);

    private QueryTable() {}

    /** A query, its rows, and whether their order counts. */
    record Entry(String name, SqlQuerySpec query, List<JsonNode> rows, boolean ordered, JsonNode without) {
        @Override
        public String toString() {
            return name;
        }

        void check(List<JsonNode> found) {
            assertEquals(texts(rows), texts(found), name);
        }

        private List<String> texts(List<JsonNode> list) {
            Stream<String> plain = list.stream().map(QueryTable::plain);
            return (ordered ? plain : plain.sorted()).toList();
        }
    }

    static List<Entry> queries() {
        return each(TABLE.get("queries"), QueryTable::entry);
    }

    static Entry named(String name) {
        return queries().stream().filter(entry -> entry.name().equals(name)).findFirst().orElseThrow();
    }

    private static Entry entry(JsonNode json) {
        List<SqlParameter> parameters =
            each(json.path("parameters"), found -> new SqlParameter(found.get("name").asText(), found.get("value")));
        SqlQuerySpec query = new SqlQuerySpec(json.get("query").asText(), parameters);
        boolean ordered = !json.path("order").asText().equals("any");
        return new Entry(json.get("name").asText(), query, each(json.get("rows"), row -> row), ordered, json.path("without"));
    }

    /** The table's container, filled. */
    static CosmosContainer fill(Account account, String id, int throughput) {
        JsonNode json = TABLE.get("container");
        CosmosContainerProperties definition = new CosmosContainerProperties(id, "/pk");
        definition.setIndexingPolicy(indexingPolicy(json.get("indexingPolicy")));
        definition.setComputedProperties(each(json.get("computedProperties"),
            property -> new ComputedProperty(property.get("name").asText(), property.get("query").asText())));
        CosmosVectorEmbeddingPolicy vectors = new CosmosVectorEmbeddingPolicy();
        vectors.setCosmosVectorEmbeddings(each(json.get("vectorEmbeddingPolicy").get("vectorEmbeddings"), QueryTable::embedding));
        definition.setVectorEmbeddingPolicy(vectors);
        JsonNode text = json.get("fullTextPolicy");
        definition.setFullTextPolicy(new CosmosFullTextPolicy()
            .setDefaultLanguage(text.get("defaultLanguage").asText())
            .setPaths(each(text.get("fullTextPaths"), path -> new CosmosFullTextPath()
                .setPath(path.get("path").asText())
                .setLanguage(path.get("language").asText()))));
        CosmosContainer container = account.made(throughput, definition);
        TABLE.get("items").forEach(item -> container.createItem((ObjectNode) item));
        return container;
    }

    private static IndexingPolicy indexingPolicy(JsonNode json) {
        return new IndexingPolicy()
            .setIncludedPaths(each(json.get("includedPaths"), path -> new IncludedPath(path.get("path").asText())))
            .setExcludedPaths(each(json.get("excludedPaths"), path -> new ExcludedPath(path.get("path").asText())))
            .setCompositeIndexes(each(json.get("compositeIndexes"), paths -> each(paths, QueryTable::compositePath)))
            .setSpatialIndexes(each(json.get("spatialIndexes"), spec -> new SpatialSpec()
                .setPath(spec.get("path").asText())
                .setSpatialTypes(List.of(SpatialType.POINT))))
            .setVectorIndexes(each(json.get("vectorIndexes"), index -> new CosmosVectorIndexSpec()
                .setPath(index.get("path").asText())
                .setType(index.get("type").asText())))
            .setCosmosFullTextIndexes(each(json.get("fullTextIndexes"),
                index -> new CosmosFullTextIndex().setPath(index.get("path").asText())));
    }

    private static CompositePath compositePath(JsonNode json) {
        String order = json.get("order").asText().toUpperCase(Locale.ROOT);
        return new CompositePath().setPath(json.get("path").asText()).setOrder(CompositePathSortOrder.valueOf(order));
    }

    private static CosmosVectorEmbedding embedding(JsonNode json) {
        String function = json.get("distanceFunction").asText().toUpperCase(Locale.ROOT);
        return new CosmosVectorEmbedding()
            .setPath(json.get("path").asText())
            .setDataType(CosmosVectorDataType.FLOAT32)
            .setDistanceFunction(CosmosVectorDistanceFunction.valueOf(function))
            .setEmbeddingDimensions(json.get("dimensions").asInt());
    }

    /** A row as text, without system properties and with its members in the order of their names. */
    private static String plain(JsonNode value) {
        if (value.isNumber()) {
            BigDecimal number = new BigDecimal(value.asText()).round(DIGITS);
            return (number.signum() == 0 ? BigDecimal.ZERO : number.stripTrailingZeros()).toPlainString();
        }
        if (value.isArray()) {
            return each(value, QueryTable::plain).toString();
        }
        if (!value.isObject()) {
            return value.toString();
        }
        TreeMap<String, String> members = new TreeMap<>();
        value.properties().stream()
            .filter(member -> !SYSTEM_PROPERTIES.contains(member.getKey()))
            .forEach(member -> members.put(member.getKey(), plain(member.getValue())));
        return members.toString();
    }

    private static <T> List<T> each(JsonNode array, Function<JsonNode, T> of) {
        return StreamSupport.stream(array.spliterator(), false).map(of).collect(Collectors.toList());
    }

    private static JsonNode load() {
        try {
            return Account.JSON.readTree(Path.of("../../queries.json").toFile());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
