"""Every clause of the query language through the SDK, on one and on four physical partitions: the table of queries.py,
asked in every way that the SDK has."""

import uuid

import pytest
from azure.cosmos.aio import CosmosClient

from bolide import EMULATOR_KEY
from queries import PARTITION_KEYS, QUERIES, TABLE, assert_rows, make_shop, plain, run

ALL = QUERIES["all items"]
BOUNDED_PAGES = (1, 5)


@pytest.fixture(scope="module")
def shop(each_server):
    with each_server.client() as client:
        yield make_shop(client.create_database("shop-" + uuid.uuid4().hex))


def test_the_items_lie_in_several_partitions_where_there_are_several(shop, each_server):
    ranges = list(shop.read_feed_ranges())
    filled = [found for found in (run(shop, ALL, feed_range=part) for part in ranges) if found]
    if "--partitions" in each_server.arguments:
        assert (len(ranges), len(filled) > 1) == (4, True)
    else:
        assert len(ranges) == 1


@pytest.mark.parametrize("name", QUERIES)
def test_the_table(shop, name):
    assert_rows(run(shop, QUERIES[name]), QUERIES[name])


@pytest.mark.parametrize("size", BOUNDED_PAGES)
@pytest.mark.parametrize("name", QUERIES)
def test_the_table_page_by_page(shop, name, size):
    """Each page is asked for by the token of the one before, as a new query would."""
    entry = QUERIES[name]
    rows, token, pages = [], None, 0
    while pages == 0 or token:
        iterator = shop.query_items(entry["query"], parameters=entry.get("parameters"), max_item_count=size,
                                    enable_cross_partition_query=True).by_page(token)
        page = next(iterator, None)
        if page is None:
            break
        rows += (found := list(page))
        assert len(found) <= size
        token = iterator.continuation_token
        pages += 1
        assert pages <= 3 * len(TABLE["items"]) + 3, "the pages do not end"
    assert_rows(rows, entry)


async def test_the_table_through_the_asynchronous_client(shop, each_server):
    database = shop.container_link.split("/")[1]
    async with CosmosClient(each_server.endpoint, EMULATOR_KEY) as client:
        container = client.get_database_client(database).get_container_client(shop.id)
        for entry in QUERIES.values():
            rows = [row async for row in container.query_items(entry["query"], parameters=entry.get("parameters"))]
            assert_rows(rows, entry)


@pytest.mark.parametrize("pk", PARTITION_KEYS)
def test_one_partition_key_at_a_time(shop, pk):
    mine = [item for item in TABLE["items"] if item["pk"] == pk]
    by_price = sorted(mine, key=lambda item: item["price"])
    cases = {
        "SELECT VALUE c.id FROM c ORDER BY c.price": [item["id"] for item in by_price],
        "SELECT TOP 1 VALUE c.id FROM c ORDER BY c.price DESC": [by_price[-1]["id"]],
        "SELECT VALUE COUNT(1) FROM c": [len(mine)],
        "SELECT VALUE SUM(c.stock) FROM c": [sum(item["stock"] for item in mine)],
        "SELECT DISTINCT VALUE c.pk FROM c": [pk],
        "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk": [{"pk": pk, "n": len(mine)}],
    }
    for query, expected in cases.items():
        assert list(shop.query_items(query, partition_key=pk)) == expected, query


def test_the_feed_ranges_together_hold_every_row_once(shop):
    ranges = list(shop.read_feed_ranges())
    for name in ("all items", "JOIN", "EXISTS", "parameters", "the partition key in the filter"):
        rows = [row for part in ranges for row in run(shop, QUERIES[name], feed_range=part)]
        assert_rows(rows, QUERIES[name])
    counts = [run(shop, QUERIES["COUNT"], feed_range=part)[0] for part in ranges]
    assert sum(counts) == len(TABLE["items"])


def test_select_star_gives_whole_items(shop):
    found = run(shop, {"query": "SELECT * FROM c"})
    assert sorted(plain(found), key=lambda item: item["id"]) == plain(TABLE["items"])
    assert all({"_rid", "_self", "_etag", "_ts"} <= item.keys() for item in found)
    assert all("shout" not in item for item in found), "computed properties are not part of an item"


def test_top_without_an_order_gives_so_many(shop):
    known = {item["id"] for item in TABLE["items"]}
    for query in ("SELECT TOP 5 VALUE c.id FROM c", "SELECT VALUE c.id FROM c OFFSET 3 LIMIT 5"):
        rows = run(shop, {"query": query})
        assert len(set(rows)) == 5 and set(rows) <= known, query


def test_a_query_without_from_gives_one_row(shop):
    assert run(shop, {"query": "SELECT VALUE 1 + 1"}) == [2]
    assert run(shop, {"query": "SELECT 'a' AS b, [1, null] AS c"}) == [{"b": "a", "c": [1, None]}]


def test_the_current_time_is_one_per_request(shop):
    query = "SELECT VALUE {\"now\": GetCurrentTimestamp(), \"text\": GetCurrentDateTime()} FROM c"
    rows = run(shop, {"query": query}, partition_key="north")
    assert len(rows) > 1
    assert len({row["now"] for row in rows}) == 1
    assert all(row["text"].endswith("Z") for row in rows)
