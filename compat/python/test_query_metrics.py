"""What a query says about its own work: query metrics, index metrics, charge. They count the living entries it touched,
so a query that an index serves reports little, and one that is not served reports the container."""

import base64
import json
import uuid
from urllib.parse import unquote

import pytest
from azure.cosmos import PartitionKey

from wire import Wire

COUNT = 300
PER_KIND = 10
FIGURES = ("retrievedDocumentCount", "retrievedDocumentSize", "outputDocumentCount", "outputDocumentSize",
           "indexUtilizationRatio")
TIMES = ("totalExecutionTimeInMs", "queryCompileTimeInMs", "indexLookupTimeInMs", "documentLoadTimeInMs",
         "VMExecutionTimeInMs", "writeOutputTimeInMs")


@pytest.fixture(scope="module")
def filled(server, database):
    container = database.create_container(
        "metrics-" + uuid.uuid4().hex, PartitionKey(path="/pk"),
        indexing_policy={"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/hidden/?"}, {"path": "/\"_etag\"/?"}],
                         "compositeIndexes": [[{"path": "/kind", "order": "ascending"}, {"path": "/n", "order": "descending"}]]})
    for number in range(COUNT):
        container.create_item({"id": f"{number}", "pk": f"{number % 5}", "n": number, "kind": f"k{number // PER_KIND}",
                               "hidden": number, "filler": "x" * 500})
    return container


@pytest.fixture(scope="module")
def wire(server, filled):
    opened = Wire(server, filled)
    yield opened
    opened.close()


def test_metrics_come_only_when_asked_for(filled):
    headers = filled.client_connection

    def sent(**options):
        rows = list(filled.query_items("SELECT * FROM c WHERE c.n = 7", enable_cross_partition_query=True, **options))
        assert len(rows) == 1
        return headers.last_response_headers

    assert "x-ms-documentdb-query-metrics" not in sent()
    assert "x-ms-cosmos-index-utilization" not in sent()
    text = sent(populate_query_metrics=True)["x-ms-documentdb-query-metrics"]
    names = [part.split("=")[0] for part in text.split(";") if part]
    assert set(FIGURES + TIMES) <= set(names), text
    assert all(float(part.split("=")[1]) >= 0 for part in text.split(";") if part)
    assert sent(populate_index_metrics=True)["x-ms-cosmos-index-utilization"]


# Query, rows, and how many items it may load.
WORK = {
    "SELECT * FROM c WHERE c.n = 7": (1, 1),
    "SELECT * FROM c WHERE c.kind = 'k3'": (PER_KIND, PER_KIND),
    "SELECT * FROM c WHERE c.kind IN ('k3', 'k4')": (2 * PER_KIND, 2 * PER_KIND),
    "SELECT * FROM c WHERE c.n >= 290": (10, 10),
    "SELECT * FROM c WHERE c.n >= 290 OR c.n < 5": (15, 15),
    "SELECT * FROM c WHERE c.kind = 'k3' AND c.n > 35": (4, PER_KIND),
    "SELECT * FROM c WHERE STARTSWITH(c.kind, 'k1')": (11 * PER_KIND, 11 * PER_KIND),
    "SELECT * FROM c WHERE c.kind LIKE 'k2%'": (11 * PER_KIND, 11 * PER_KIND),
    "SELECT * FROM c WHERE NOT IS_DEFINED(c.n)": (0, 0),
    "SELECT TOP 5 * FROM c ORDER BY c.n": (5, 6),
    "SELECT TOP 5 * FROM c ORDER BY c.n DESC": (5, 6),
    "SELECT TOP 5 * FROM c ORDER BY c.kind, c.n DESC": (5, 6),
    "SELECT TOP 5 * FROM c ORDER BY c.kind DESC, c.n": (5, 6),
    "SELECT TOP 5 * FROM c WHERE c.n > 100 ORDER BY c.n": (5, 6),
    "SELECT * FROM c ORDER BY c.n OFFSET 10 LIMIT 5": (5, 16),
    "SELECT TOP 5 * FROM c": (5, 6),
    "SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'k3'": (1, 0),
    "SELECT VALUE COUNT(1) FROM c": (1, 0),
    "SELECT * FROM c WHERE c.hidden = 7": (1, COUNT),
    "SELECT * FROM c WHERE c.n = 7 AND c.hidden = 7": (1, 1),
    "SELECT * FROM c WHERE c.hidden = 7 OR c.n = 8": (2, COUNT),
}


@pytest.mark.parametrize("query", WORK)
def test_the_work_is_in_proportion_to_what_matches(wire, query):
    rows, loaded = WORK[query]
    answer = wire.query(query, max_item_count=1000)
    assert len(answer.rows) == rows
    assert answer.metrics["outputDocumentCount"] == rows
    assert answer.metrics["retrievedDocumentCount"] <= loaded, answer.metrics
    if rows == loaded:
        assert answer.metrics["retrievedDocumentCount"] == loaded, answer.metrics


def test_the_charge_grows_with_the_work(wire):
    def charge(query):
        return wire.query(query, max_item_count=1000).charge

    point = charge("SELECT * FROM c WHERE c.n = 7")
    some = charge("SELECT * FROM c WHERE c.n < 30")
    scan = charge("SELECT * FROM c WHERE c.hidden = 7")
    assert 0 < point < some < charge("SELECT * FROM c")
    nothing = charge("SELECT * FROM c WHERE c.n = -1")
    assert scan - nothing > 5 * (point - nothing) > 0, "a scan costs what it reads, not what it finds"


def test_sizes_are_those_of_the_answer(wire):
    answer = wire.query("SELECT * FROM c WHERE c.kind = 'k3'")
    assert answer.metrics["outputDocumentSize"] >= PER_KIND * 500
    assert answer.metrics["retrievedDocumentSize"] >= PER_KIND * 500
    small = wire.query("SELECT VALUE c.n FROM c WHERE c.kind = 'k3'")
    assert small.metrics["outputDocumentSize"] < 100
    assert small.metrics["retrievedDocumentSize"] == answer.metrics["retrievedDocumentSize"] or \
        small.metrics["retrievedDocumentCount"] == 0


def index_metrics(wire, query):
    header = wire.query(query, cosmos_populateindexmetrics="true").headers["x-ms-cosmos-index-utilization"]
    return json.loads(base64.b64decode(header))


def test_index_metrics_name_what_was_used_and_what_would_help(wire):
    used = index_metrics(wire, "SELECT * FROM c WHERE c.n = 7")
    assert set(used) >= {"UtilizedSingleIndexes", "PotentialSingleIndexes", "UtilizedCompositeIndexes",
                         "PotentialCompositeIndexes"}
    assert ["/n/?"] == [entry["IndexSpec"] for entry in used["UtilizedSingleIndexes"]]
    missing = index_metrics(wire, "SELECT * FROM c WHERE c.hidden = 7")
    assert missing["UtilizedSingleIndexes"] == []
    assert ["/hidden/?"] == [entry["IndexSpec"] for entry in missing["PotentialSingleIndexes"]]
    composite = index_metrics(wire, "SELECT * FROM c ORDER BY c.kind, c.n DESC")
    assert [["/kind ASC", "/n DESC"]] == [entry["IndexSpecs"] for entry in composite["UtilizedCompositeIndexes"]]
    wanted = index_metrics(wire, "SELECT * FROM c ORDER BY c.n, c.pk")
    assert [["/n ASC", "/pk ASC"]] == [entry["IndexSpecs"] for entry in wanted["PotentialCompositeIndexes"]]


def test_index_metrics_in_the_second_form(wire):
    answer = wire.query("SELECT * FROM c WHERE c.n = 7", **{"cosmos_populateindexmetrics_V2": "true"})
    told = json.loads(unquote(answer.headers["x-ms-cosmos-index-utilization"]))
    assert set(told) >= {"UtilizedIndexes", "PotentialIndexes"}
    assert "/n/?" in json.dumps(told["UtilizedIndexes"])
