"""T14, T16: queries right after a mass expiry, with the purge standing still, are exact: the same rows, the same charge
and the same metrics as after the purge."""

import time
import uuid

import pytest
from azure.cosmos import PartitionKey

from wire import Wire

LIVING = 40
DEAD = 400
PATIENCE_SECONDS = 60
POLICY = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/hidden/?"}, {"path": "/\"_etag\"/?"}],
    "compositeIndexes": [[{"path": "/k", "order": "ascending"}, {"path": "/n", "order": "ascending"}]],
    "fullTextIndexes": [{"path": "/text"}],
}

# Live items: n is 0, 11, 22, ... and k is "k0" to "k3"; only expired ones have "dead" and some words of their own.
NUMBERS = [11 * number for number in range(LIVING)]
EXPECTED = {
    "SELECT VALUE COUNT(1) FROM c": [LIVING],
    "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0": [LIVING],
    "SELECT VALUE COUNT(1) FROM c WHERE c.state = 'dead'": [0],
    "SELECT VALUE COUNT(1) FROM c WHERE c.state = 'dead' OR c.k = 'k1'": [LIVING // 4],
    "SELECT VALUE COUNT(1) FROM c WHERE NOT IS_DEFINED(c.state)": [LIVING],
    "SELECT VALUE COUNT(c.state) FROM c": [0],
    "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.list, 'shared')": [LIVING],
    "SELECT VALUE SUM(c.n) FROM c": [sum(NUMBERS)],
    "SELECT VALUE AVG(c.hidden) FROM c": [sum(NUMBERS) / LIVING],
    "SELECT VALUE MIN(c.n) FROM c": [0],
    "SELECT VALUE MAX(c.n) FROM c": [max(NUMBERS)],
    "SELECT DISTINCT VALUE c.k FROM c ORDER BY c.k": ["k0", "k1", "k2", "k3"],
    "SELECT DISTINCT VALUE c.state FROM c": [],
    "SELECT c.k, COUNT(1) AS n FROM c WHERE c.k = 'k2' GROUP BY c.k": [{"k": "k2", "n": LIVING // 4}],
    "SELECT c.state, COUNT(1) AS n FROM c GROUP BY c.state": [{"n": LIVING}],
    "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n": NUMBERS[:3],
    "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC": NUMBERS[:-4:-1],
    "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.k, c.n": [0, 44, 88],
    "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.hidden DESC": NUMBERS[:-4:-1],
    "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 2": NUMBERS[5:7],
    "SELECT VALUE c.n FROM c WHERE c.n > 20 AND c.n < 60 ORDER BY c.n": [22, 33, 44, 55],
    "SELECT VALUE c.n FROM c WHERE c.n IN (21, 22, 23)": [22],
    "SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE l FROM l IN c.list WHERE l = 'dead')": [0],
    "SELECT VALUE COUNT(1) FROM c JOIN l IN c.list": [LIVING],
    "SELECT VALUE EXISTS(SELECT VALUE l FROM l IN c.list) FROM c WHERE c.n = 22": [True],
    "SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.k, 'k')": [LIVING],
    "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'obituary')": [],
}


@pytest.fixture(scope="module")
def paused(each_server):
    status, body = each_server.admin("POST", "purge", {"paused": True})
    assert status == 200, body
    yield each_server
    each_server.admin("POST", "purge", {"paused": False})


def body(number):
    # Only every eleventh item is live; the expired ones are between them in every index.
    shared = {"id": f"{number}", "pk": f"{number % 7}", "n": number, "k": f"k{number // 11 % 4}", "hidden": number}
    if number % 11 == 0:
        return {**shared, "list": ["shared"], "text": "alive and well", "ttl": -1}
    return {**shared, "list": ["shared", "dead"], "text": "an obituary", "state": "dead"}


@pytest.fixture(scope="module")
def after_the_plague(paused):
    """A container in which ten of eleven items have just expired and none has been purged."""
    with paused.client() as client:
        database = client.create_database("expiry-" + uuid.uuid4().hex)
        container = database.create_container(
            "c", PartitionKey(path="/pk"), default_ttl=100, indexing_policy=POLICY,
            full_text_policy={"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]})
        last = [container.create_item(body(number)) for number in range(LIVING + DEAD)][-1]
        paused.clock.move_to(last["_ts"] + 100)
        yield container


def backlog(server, container):
    status, figures = server.admin("GET", f"ttl/{container.container_link.split('/')[1]}/{container.id}")
    assert status == 200
    return figures["backlog"]["items"]


def until_purged(server, container):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while backlog(server, container):
        assert time.monotonic() < deadline, "the purge does not end"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def answers(paused, after_the_plague):
    """Each query's answer before the purge and after it."""
    wire = Wire(paused, after_the_plague)
    assert backlog(paused, after_the_plague) == DEAD
    before = {query: wire.query(query) for query in EXPECTED}
    assert backlog(paused, after_the_plague) == DEAD, "nothing was purged meanwhile"
    paused.admin("POST", "purge", {"paused": False})
    until_purged(paused, after_the_plague)
    after = {query: wire.query(query) for query in EXPECTED}
    wire.close()
    return before, after


@pytest.mark.parametrize("query", EXPECTED)
def test_t14_exact_before_the_purge_and_after(answers, query):
    before, after = answers
    assert before[query].rows == EXPECTED[query]
    assert after[query].rows == EXPECTED[query]


@pytest.mark.parametrize("query", EXPECTED)
def test_t14_expired_items_are_neither_charged_for_nor_counted(answers, query):
    before, after = answers
    assert before[query].charge == after[query].charge
    assert before[query].metrics == after[query].metrics


def test_t14_scores_know_the_living_only(paused):
    """A word of expired items alone is as rare as if they had never existed, and so are lengths and counts."""
    policy = {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]}
    paused.admin("POST", "purge", {"paused": True})
    with paused.client() as client:
        database = client.create_database("scores-" + uuid.uuid4().hex)
        with_dead = database.create_container("a", PartitionKey(path="/pk"), default_ttl=-1, indexing_policy=POLICY,
                                              full_text_policy=policy)
        without = database.create_container("b", PartitionKey(path="/pk"), default_ttl=-1, indexing_policy=POLICY,
                                            full_text_policy=policy)
        texts = ["red apple", "red red wine from a far away country", "green apple pie", "wine and apple"]
        for number in range(50):
            last = with_dead.create_item({"id": f"d{number}", "pk": f"{number % 5}", "text": "wine " * 20, "ttl": 100})
        for number, text in enumerate(texts):
            for container in (with_dead, without):
                container.create_item({"id": f"{number}", "pk": f"{number % 3}", "text": text})
        paused.clock.move_to(last["_ts"] + 100)
        for words in ("'red', 'wine'", "'apple'", "'wine'"):
            query = f"SELECT TOP 4 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, {words})"
            found = [list(container.query_items(query, enable_cross_partition_query=True))
                     for container in (with_dead, without)]
            assert found[0] == found[1] and len(found[0]) == 4, words


def test_t16_filter_and_count_see_the_same_instant(paused):
    """Deadlines pass one by one; at each, every way of counting gives the same figure."""
    with paused.client() as client:
        database = client.create_database("instants-" + uuid.uuid4().hex)
        container = database.create_container("c", PartitionKey(path="/pk"), default_ttl=-1)
        stored = [container.create_item({"id": f"{n}", "pk": f"{n % 3}", "n": n, "ttl": 1000 + 10 * n}) for n in range(10)]
        wire = Wire(paused, container)
        for number, entry in enumerate(stored):
            paused.clock.move_to(entry["_ts"] + entry["ttl"])
            left = sum(other["_ts"] + other["ttl"] > paused.clock.now() for other in stored)
            assert left <= 10 - number - 1
            query = "SELECT COUNT(1) AS n, COUNT(c.n) AS m, COUNTIF(c.n >= 0) AS k, MIN(c.n) AS low FROM c WHERE c.n >= 0"
            row = wire.query(query).rows[0]
            assert (row["n"], row["m"], row["k"], row.get("low")) == (left, left, left, 10 - left if left else None)
            assert len(wire.query("SELECT * FROM c ORDER BY c.n").rows) == left
        wire.close()
