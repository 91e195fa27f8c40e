"""Indexing policies through the SDK: what they include, and a change that is made while queries go on."""

import time
import uuid

import pytest
from azure.cosmos import PartitionKey

from wire import Wire

PROGRESS = "x-ms-documentdb-collection-index-transformation-progress"
COUNT = 2000
KEY = PartitionKey(path="/pk")
PATIENCE_SECONDS = 60


def progress(container):
    headers = {}
    container.read(populate_quota_info=True, response_hook=lambda sent, _: headers.update(sent))
    return int(headers[PROGRESS])


def until_built(container):
    """Reads the progress until it is whole; it never goes back."""
    deadline, last = time.monotonic() + PATIENCE_SECONDS, 0
    while time.monotonic() < deadline:
        now = progress(container)
        assert last <= now <= 100
        if now == 100:
            return
        last = now
        time.sleep(0.005)
    raise AssertionError(f"the index stands at {last} %")


@pytest.fixture
def filled(database):
    container = database.create_container(
        "index-" + uuid.uuid4().hex, KEY, default_ttl=-1,
        indexing_policy={"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]})
    for start in range(0, COUNT, 100):
        pk = f"{start // 100}"
        container.execute_item_batch(
            [("create", ({"id": f"{n}", "pk": pk, "a": n, "b": n, "k": f"{n % 7}"},)) for n in range(start, start + 100)],
            partition_key=pk)
    return container


def loaded(wire, query, rows):
    answer = wire.query(query)
    assert len(answer.rows) == rows, query
    return answer.metrics["retrievedDocumentCount"]


def test_a_policy_is_changed_while_queries_go_on(server, database, filled):
    wire = Wire(server, filled)
    assert progress(filled) == 100
    assert loaded(wire, "SELECT * FROM c WHERE c.a = 77", 1) == 1
    assert loaded(wire, "SELECT * FROM c WHERE c.b = 77", 1) == COUNT

    database.replace_container(filled, KEY, default_ttl=-1, indexing_policy={
        "includedPaths": [{"path": "/b/?"}, {"path": "/k/?"}], "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [[{"path": "/k", "order": "ascending"}, {"path": "/b", "order": "descending"}]]})
    # Whatever the progress: every answer is right, and writes are seen at once.
    for number in range(20):
        filled.upsert_item({"id": f"new {number}", "pk": "new", "a": -1, "b": COUNT + number, "k": "new"})
        assert wire.query("SELECT VALUE COUNT(1) FROM c WHERE c.b >= 1990").rows == [10 + number + 1]
        assert wire.query("SELECT VALUE COUNT(1) FROM c WHERE c.a = 77").rows == [1]
        assert wire.query("SELECT TOP 1 VALUE c.b FROM c ORDER BY c.b DESC").rows == [COUNT + number]
    until_built(filled)
    assert loaded(wire, "SELECT * FROM c WHERE c.b = 77", 1) == 1
    assert loaded(wire, "SELECT * FROM c WHERE c.a = 77", 1) == COUNT + 20
    assert loaded(wire, "SELECT TOP 3 * FROM c ORDER BY c.k, c.b DESC", 3) <= 4
    assert wire.query("SELECT VALUE COUNT(1) FROM c").rows == [COUNT + 20]
    wire.close()


def test_a_change_that_changes_no_term_is_whole_at_once(database, filled):
    policy = filled.read()["indexingPolicy"]
    database.replace_container(filled, KEY, default_ttl=1000, indexing_policy=policy)
    assert progress(filled) == 100


def test_deleting_and_expiring_while_an_index_is_built(server, database, filled):
    last = filled.upsert_item({"id": "doomed", "pk": "doomed", "b": 5, "ttl": 100})
    database.replace_container(filled, KEY, default_ttl=-1, indexing_policy={
        "includedPaths": [{"path": "/*"}], "excludedPaths": []})
    filled.delete_item("5", "0")
    server.clock.move_to(last["_ts"] + 100)
    wire = Wire(server, filled)
    assert wire.query("SELECT * FROM c WHERE c.b = 5").rows == []
    until_built(filled)
    assert loaded(wire, "SELECT * FROM c WHERE c.b = 5", 0) == 0
    assert wire.query("SELECT VALUE COUNT(1) FROM c WHERE c.b >= 0").rows == [COUNT - 1]
    wire.close()


def test_the_policies_that_the_service_knows_are_kept(database):
    policy = {
        "indexingMode": "consistent", "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/secret/*"}, {"path": "/list/[]/x/?"}, {"path": "/\"_etag\"/?"}],
        "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
        "spatialIndexes": [{"path": "/place/*", "types": ["Point", "LineString", "Polygon", "MultiPolygon"]}],
    }
    container = database.create_container("kept-" + uuid.uuid4().hex, KEY, indexing_policy=policy)
    stored = container.read()["indexingPolicy"]
    assert {name: stored[name] for name in policy} == policy


def test_without_an_index_every_query_still_answers(server, database):
    container = database.create_container("none-" + uuid.uuid4().hex, KEY,
                                          indexing_policy={"indexingMode": "none", "automatic": False})
    for number in range(30):
        container.create_item({"id": f"{number}", "pk": "p", "n": number % 10})
    wire = Wire(server, container)
    assert wire.query("SELECT VALUE COUNT(1) FROM c WHERE c.n = 3").rows == [3]
    assert wire.query("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC").rows == [9, 9]
    assert wire.query("SELECT VALUE c.id FROM c WHERE c.id = '7'").rows == ["7"]
    wire.close()
