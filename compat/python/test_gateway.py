"""A strict gateway: the client asks for a plan where its query is refused, joins the rows, and fails where it fails in the
service."""

import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

from bolide import EMULATOR_KEY, Server

ITEMS = 20
# Queries over all partition keys, and their rows.
JOINED = {
    "SELECT VALUE c.n FROM c ORDER BY c.n": list(range(ITEMS)),
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 3": [17, 16, 15],
    "SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n": [0, 1, 2, 3],
    "SELECT VALUE COUNT(1) FROM c": [ITEMS],
    "SELECT VALUE SUM(c.n) FROM c": [sum(range(ITEMS))],
    "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk": [f"k{key}" for key in range(5)],
}


@pytest.fixture(scope="module", params=["1", "4"])
def strict(request):
    process = Server(extra=["--strict-gateway", "--partitions", request.param]).start()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def container(strict):
    with strict.client() as client:
        database = client.create_database("gateway-" + uuid.uuid4().hex)
        container = database.create_container("c", PartitionKey(path="/pk"))
        for n in range(ITEMS):
            container.create_item({"id": f"{n}", "pk": f"k{n % 5}", "n": n})
        yield container


@pytest.mark.parametrize("size", [None, 5])
@pytest.mark.parametrize("query", JOINED)
def test_rows_of_all_keys_are_joined_by_the_client(container, query, size):
    found = container.query_items(query, enable_cross_partition_query=True, max_item_count=size)
    assert list(found) == JOINED[query]


async def test_rows_of_all_keys_are_joined_by_the_asynchronous_client(strict, container):
    database = container.container_link.split("/")[1]
    async with CosmosClient(strict.endpoint, EMULATOR_KEY) as client:
        asynchronous = client.get_database_client(database).get_container_client(container.id)
        for query, expected in JOINED.items():
            assert [row async for row in asynchronous.query_items(query, max_item_count=5)] == expected, query


@pytest.mark.parametrize("query", JOINED)
def test_one_key_needs_no_plan(container, query):
    mine = [n for n in range(ITEMS) if n % 5 == 1]
    expected = {
        "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 3": mine[::-1][2:5],
        "SELECT VALUE COUNT(1) FROM c": [len(mine)],
        "SELECT VALUE SUM(c.n) FROM c": [sum(mine)],
        "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk": ["k1"],
    }
    assert list(container.query_items(query, partition_key="k1", max_item_count=2)) == expected.get(query, mine)


def test_plain_queries_and_lists_end_behind_a_full_page(container):
    for size in (4, 5, 20):
        pages = container.query_items("SELECT * FROM c", enable_cross_partition_query=True, max_item_count=size).by_page()
        assert sum(len(list(page)) for page in pages) == ITEMS
        assert len(list(container.read_all_items(max_item_count=size))) == ITEMS


@pytest.mark.parametrize("query", ["SELECT COUNT(1) AS n FROM c", "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk"])
def test_an_aggregate_without_value_is_refused_as_in_the_service(container, query):
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        list(container.query_items(query, enable_cross_partition_query=True))
    assert refusal.value.status_code == 400
    assert "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates" in str(refusal.value)
