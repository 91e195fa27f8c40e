"""The change feed, latest version: where a reader may begin, what it follows, and which items are not in it (T14)."""

import uuid
from datetime import datetime, timezone

import pytest
from azure.cosmos import PartitionKey


@pytest.fixture
def container(each_server):
    with each_server.client() as client:
        database = client.create_database_if_not_exists("feed")
        yield database.create_container("c-" + uuid.uuid4().hex, PartitionKey(path="/pk"), default_ttl=-1)


def fill(container, count, first=0):
    for n in range(first, first + count):
        container.create_item({"id": f"{n:03}", "pk": f"k{n % 7}"})


def read(container, **start):
    """Everything there is, and where to go on."""
    pages = container.query_items_change_feed(max_item_count=3, **start).by_page()
    ids = [item["id"] for page in pages for item in page]
    return ids, container.client_connection.last_response_headers["etag"]


def names(count, first=0):
    return [f"{n:03}" for n in range(first, first + count)]


def test_from_the_beginning_each_living_item_once_at_its_latest_version(container, each_server):
    fill(container, 20)
    container.replace_item("003", {"id": "003", "pk": "k3", "n": 1})
    container.delete_item("004", "k4")
    ids, position = read(container, start_time="Beginning")
    assert sorted(ids) == sorted(set(names(20)) - {"004"}), "each once, no deletes"
    assert read(container, continuation=position)[0] == []
    fill(container, 5, first=20)
    assert sorted(read(container, continuation=position)[0]) == names(5, first=20)


def test_from_now_and_from_a_time(container, each_server):
    fill(container, 10)
    nothing, position = read(container, start_time="Now")
    assert nothing == []
    each_server.clock.advance(100)
    since = datetime.fromtimestamp(each_server.clock.now(), timezone.utc)
    # The second of the start time is not included.
    each_server.clock.advance(1)
    fill(container, 10, first=10)
    assert sorted(read(container, continuation=position)[0]) == names(10, first=10)
    assert sorted(read(container, start_time=since)[0]) == names(10, first=10)
    assert read(container, start_time=datetime.fromtimestamp(each_server.clock.now() + 1, timezone.utc))[0] == []


def test_t14_what_expired_before_it_was_read_is_not_in_it(container, each_server):
    each_server.admin("POST", "purge", {"paused": True})
    fill(container, 5)
    position = read(container, start_time="Beginning")[1]
    written = container.create_item({"id": "dies", "pk": "k1", "ttl": 50})
    container.create_item({"id": "lives", "pk": "k1"})
    each_server.clock.move_to(written["_ts"] + 50)
    assert read(container, continuation=position)[0] == ["lives"]
    assert sorted(read(container, start_time="Beginning")[0]) == sorted([*names(5), "lives"])
    each_server.admin("POST", "purge", {"paused": False})


def test_by_partition_key_and_by_feed_range(container):
    fill(container, 30)
    by_key = {key: read(container, start_time="Beginning", partition_key=f"k{key}")[0] for key in range(7)}
    for key, ids in by_key.items():
        assert ids == [name for name in names(30) if int(name) % 7 == key], "in the order of writing"
    ranges = list(container.read_feed_ranges())
    by_range = [read(container, start_time="Beginning", feed_range=feed_range)[0] for feed_range in ranges]
    assert sorted(id for ids in by_range for id in ids) == names(30), "every item in one range"
    of_key = container.feed_range_from_partition_key("k3")
    assert read(container, start_time="Beginning", feed_range=of_key)[0] == by_key[3]


def test_a_reader_goes_on_by_feed_range_while_others_write(container):
    fill(container, 10)
    ranges = list(container.read_feed_ranges())
    positions = [read(container, start_time="Beginning", feed_range=feed_range)[1] for feed_range in ranges]
    fill(container, 10, first=10)
    found = [read(container, continuation=position)[0] for position in positions]
    assert sorted(id for ids in found for id in ids) == names(10, first=10)
