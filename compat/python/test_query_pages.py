"""Pages of one query while the container changes between them: items that are live throughout come exactly once, none comes
twice, and none that had expired when its page was requested (T16)."""

import uuid

import pytest
from azure.cosmos import PartitionKey

COUNT = 60
PAGE = 7

# Name, query, and whether an item added meanwhile may appear.
QUERIES = {
    "scan": "SELECT c.id FROM c",
    "index range": "SELECT c.id FROM c WHERE c.n >= 0",
    "equality": "SELECT c.id FROM c WHERE c.same = 'x'",
    "several equalities": "SELECT c.id FROM c WHERE c.k IN ('a', 'b', 'c')",
    "intersection": "SELECT c.id FROM c WHERE c.same = 'x' AND c.n >= 0 AND c.k != 'z'",
    "element of an array": "SELECT c.id FROM c WHERE ARRAY_CONTAINS(c.list, 'l')",
    "order": "SELECT c.id FROM c ORDER BY c.n",
    "order, descending": "SELECT c.id FROM c ORDER BY c.n DESC",
    "order with ties": "SELECT c.id FROM c ORDER BY c.k",
    "order with ties, descending": "SELECT c.id FROM c ORDER BY c.k DESC",
    "composite order": "SELECT c.id FROM c ORDER BY c.k, c.n DESC",
    "composite order, backwards": "SELECT c.id FROM c ORDER BY c.k DESC, c.n",
    "order without an index": "SELECT c.id FROM c ORDER BY c.hidden",
    "order with a filter": "SELECT c.id FROM c WHERE c.same = 'x' ORDER BY c.n",
    "distinct": "SELECT DISTINCT c.id FROM c",
    "groups": "SELECT c.id FROM c GROUP BY c.id",
    "join": "SELECT c.id FROM c JOIN l IN c.list",
}
POLICY = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/hidden/?"}, {"path": "/\"_etag\"/?"}],
    "compositeIndexes": [[{"path": "/k", "order": "ascending"}, {"path": "/n", "order": "descending"}]],
}


@pytest.fixture(scope="module")
def shelf(each_server):
    """A database on each kind of server."""
    with each_server.client() as client:
        yield client.create_database("pages-" + uuid.uuid4().hex)


def item(number, ttl=-1):
    # Ten partition keys; three values of k, so that pages end within ties.
    return {"id": f"{number:04}", "pk": f"{number % 10}", "n": number, "k": "abc"[number % 3], "same": "x",
            "hidden": -number, "list": ["l"], "ttl": ttl}


@pytest.fixture
def container(shelf):
    made = shelf.create_container("c-" + uuid.uuid4().hex, PartitionKey(path="/pk"), default_ttl=-1,
                                  indexing_policy=POLICY)
    yield made
    shelf.delete_container(made)


def page_after(container, query, token):
    pages = container.query_items(query, max_item_count=PAGE, enable_cross_partition_query=True).by_page(token)
    page = next(pages, None)
    if page is None:
        return [], None  # the SDK ends here, and keeps the token it was given
    page = [row["id"] for row in page]
    assert len(page) <= PAGE
    return page, pages.continuation_token


@pytest.mark.parametrize("name", QUERIES)
def test_t16_pages_survive_inserts_deletes_and_expiry(container, each_server, name):
    query = QUERIES[name]
    # Even numbers at first, so that insertions can fall between; every tenth expires soon.
    stored = [container.create_item(item(number, 100 if number % 10 == 4 else -1)) for number in range(0, 2 * COUNT, 2)]
    doomed = {entry["id"] for entry in stored if entry["ttl"] == 100}
    original = {entry["id"] for entry in stored}
    deadline = max(entry["_ts"] for entry in stored) + 100

    seen, token = page_after(container, query, None)
    gone = set()
    turn = 0
    while token:
        turn += 1
        for number in (turn * 6 + 1, 2 * COUNT - turn * 6 - 1):
            container.upsert_item(item(number))
        # One that was seen and one that was not.
        unseen = sorted(original - set(seen) - gone - doomed)
        for victim in {seen[-1], *unseen[len(unseen) // 2:][:1]} & (original - gone - doomed):
            container.delete_item(victim, f"{int(victim) % 10}")
            gone.add(victim)
        if turn == 2:
            each_server.clock.move_to(deadline)
        page, token = page_after(container, query, token)
        if turn >= 2:
            assert not doomed & set(page), "an expired item was sent"
        assert not gone & set(page), "a deleted item was sent"
        seen += page
        assert turn < 10 * COUNT, "the pages do not end"
    assert len(seen) == len(set(seen)), "an item was sent twice"
    assert original - gone - doomed <= set(seen), "an item that lived throughout is missing"


@pytest.mark.parametrize("name", QUERIES)
def test_t16_pages_survive_rewrites(container, name):
    """Replacing items, without touching what the query looks at, neither hides nor doubles them."""
    query = QUERIES[name]
    for number in range(COUNT):
        container.create_item(item(number))
    seen, token = page_after(container, query, None)
    while token:
        for number in range(0, COUNT, 3):
            container.upsert_item({**item(number), "version": len(seen)})
        page, token = page_after(container, query, token)
        seen += page
    assert sorted(seen) == [f"{number:04}" for number in range(COUNT)]


def test_t16_the_order_holds_across_pages(container):
    for number in range(COUNT):
        container.create_item(item(number))
    for query, expected in {
        "SELECT VALUE c.n FROM c ORDER BY c.n": list(range(COUNT)),
        "SELECT VALUE c.n FROM c ORDER BY c.n DESC": list(range(COUNT))[::-1],
        "SELECT VALUE c.n FROM c ORDER BY c.hidden": list(range(COUNT))[::-1],
        "SELECT VALUE c.n FROM c WHERE c.n > 10 ORDER BY c.n OFFSET 5 LIMIT 20": list(range(16, 36)),
        "SELECT TOP 20 VALUE c.n FROM c ORDER BY c.n DESC": list(range(COUNT))[:-21:-1],
        "SELECT DISTINCT VALUE c.k FROM c ORDER BY c.k": ["a", "b", "c"],
    }.items():
        for size in (1, 6, 100):
            pages = container.query_items(query, max_item_count=size, enable_cross_partition_query=True).by_page()
            assert [row for page in pages for row in page] == expected, (query, size)


def test_an_own_ttl_that_passes_between_two_pages_of_an_order(container, each_server):
    """T16 where the token's own item expires: the next page begins after its position nevertheless."""
    last = [container.create_item(item(number, 100 if number == PAGE - 1 else -1)) for number in range(3 * PAGE)][-1]
    for query in ("SELECT c.id FROM c ORDER BY c.n", "SELECT c.id FROM c WHERE c.n >= 0"):
        first, token = page_after(container, query, None)
        if query.endswith("c.n"):
            assert first[-1] == f"{PAGE - 1:04}"
            each_server.clock.move_to(last["_ts"] + 100)
        rest = []
        while token:
            page, token = page_after(container, query, token)
            rest += page
        assert len(first + rest) == len(set(first + rest))
        assert {f"{number:04}" for number in range(3 * PAGE)} - {f"{PAGE - 1:04}"} <= set(first + rest)
