"""Hierarchical partition keys whose items lack levels. The SDK writes a missing level as {} where it is given the key, and as
null where it takes the key out of an item; null is another key, so items are made here in batches, which name theirs."""

import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions

ITEMS = {
    "first": (["x", {}], {"a": "x"}),
    "null": (["x", None], {"a": "x", "b": None}),
    "both": (["x", "y"], {"a": "x", "b": "y"}),
    "second": ([{}, "y"], {"b": "y"}),
    "neither": ([{}, {}], {}),
}


def below(*prefix):
    return sorted(name for name, (key, _) in ITEMS.items() if key[: len(prefix)] == list(prefix))


@pytest.fixture
def make(each_server):
    with each_server.client() as client:
        database = client.create_database_if_not_exists("levels")

        def make(*paths):
            key = PartitionKey(path=list(paths), kind="MultiHash")
            return database.create_container("c-" + uuid.uuid4().hex, key, default_ttl=-1)

        yield make


@pytest.fixture
def container(make):
    container = make("/a", "/b")
    for name, (key, body) in ITEMS.items():
        container.execute_item_batch([("create", ({"id": name, **body},))], partition_key=key)
    return container


def ids(items):
    return sorted(item["id"] for item in items)


def test_items_are_found_under_their_own_key_alone(container):
    for name, (own, _) in ITEMS.items():
        for key, _ in ITEMS.values():
            if key == own:
                assert container.read_item(name, key)["id"] == name
            else:
                with pytest.raises(exceptions.CosmosResourceNotFoundError):
                    container.read_item(name, key)


def test_queries_and_feeds_by_key_prefix_and_feed_range(container):
    prefixes = [["x"], [{}], ["x", {}], ["x", None], [{}, "y"], [{}, {}]]
    for prefix in prefixes:
        expected = below(*prefix)
        query = "SELECT * FROM c WHERE IS_DEFINED(c.id)"
        assert ids(container.query_items(query, partition_key=prefix)) == expected, prefix
        feed_range = container.feed_range_from_partition_key(prefix)
        assert ids(container.query_items(query, feed_range=feed_range)) == expected, prefix
        feed = container.query_items_change_feed(feed_range=feed_range, start_time="Beginning")
        assert ids(feed) == expected, prefix
        ordered = container.query_items("SELECT * FROM c ORDER BY c.id DESC", feed_range=feed_range)
        assert [item["id"] for item in ordered] == expected[::-1], prefix
    everywhere = container.query_items("SELECT * FROM c WHERE NOT IS_DEFINED(c.b)", enable_cross_partition_query=True)
    assert ids(everywhere) == ["first", "neither"]


def test_upserts_and_replaces_in_batches(container):
    for name, (key, body) in ITEMS.items():
        upserted = {"id": name, "n": 1, **body}
        answers = container.execute_item_batch([
            ("upsert", (upserted,)), ("replace", (name, {**upserted, "n": 2})), ("read", (name,)),
        ], partition_key=key)
        assert [answer["statusCode"] for answer in answers] == [200, 200, 200], name
        assert answers[2]["resourceBody"]["n"] == 2, name
    assert ids(container.read_all_items()) == sorted(ITEMS), "nothing was made beside them"


def test_patch_delete_and_delete_by_key(container):
    for name, (key, _) in ITEMS.items():
        patched = container.patch_item(name, key, [{"op": "set", "path": "/n", "value": 1}])
        assert patched["n"] == 1, name
    container.delete_item("neither", [{}, {}])
    assert ids(container.query_items("SELECT * FROM c", partition_key=[{}])) == ["second"]
    container.delete_all_items_by_partition_key(["x", {}])
    assert ids(container.query_items("SELECT * FROM c", partition_key=["x"])) == ["both", "null"]


def test_a_key_taken_out_of_an_item_says_null_which_is_another_key(container):
    with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
        container.create_item({"id": "new", "a": "x"})
    assert (refused.value.status_code, refused.value.sub_status) == (400, 1001)


def test_t14_items_without_levels_expire(make, each_server):
    container = make("/a", "/b")
    container.execute_item_batch([("create", ({"id": "1", "a": "x", "ttl": 5},))], partition_key=["x", {}])
    assert container.read_item("1", ["x", {}])["ttl"] == 5
    each_server.clock.advance(5)
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        container.read_item("1", ["x", {}])
    assert ids(container.query_items("SELECT * FROM c", partition_key=["x"])) == []


def test_one_level_that_no_item_has(make):
    """Entity Framework's containers: `MultiHash` with one path."""
    container = make("/__partitionKey")
    assert container.read()["partitionKey"] == {"paths": ["/__partitionKey"], "kind": "MultiHash", "version": 2}
    for n in range(5):
        container.execute_item_batch([("create", ({"id": f"{n}", "n": n},))], partition_key=[{}])
    assert container.read_item("3", [{}])["n"] == 3
    feed_range = container.feed_range_from_partition_key([{}])
    for scope in ({"partition_key": [{}]}, {"feed_range": feed_range}, {"enable_cross_partition_query": True}):
        found = container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n DESC", **scope)
        assert list(found) == [4, 3, 2, 1, 0], scope
    assert ids(container.query_items_change_feed(feed_range=feed_range, start_time="Beginning")) == list("01234")
    container.delete_all_items_by_partition_key([{}])
    assert list(container.read_all_items()) == []
