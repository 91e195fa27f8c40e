"""Session tokens and LSNs through the SDK: each range counts its own commits (decision 0027)."""

import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions

TOKEN = "x-ms-session-token"
# The headers with the position of the range, and those of the item's last write.
OF_RANGE = ["lsn", "x-ms-cosmos-llsn", "x-ms-quorum-acked-lsn", "x-ms-cosmos-quorum-acked-llsn", "x-ms-global-committed-lsn"]
OF_ITEM = ["x-ms-item-lsn", "x-ms-cosmos-item-llsn"]
# How many more writes each of the four ranges gets.
COUNTS = [1, 5, 20, 60]


@pytest.fixture
def client(split_server):
    with split_server.client(consistency_level="Session") as opened:
        yield opened


@pytest.fixture
def containers(client):
    """The container of the test, and one to which others write."""
    database = client.create_database("sessions-" + uuid.uuid4().hex)
    return tuple(database.create_container(name, PartitionKey(path="/pk")) for name in ("mine", "other"))


def shown(container):
    """The range and the LSN of the last answer."""
    headers = container.client_connection.last_response_headers
    text, lsn = headers[TOKEN].split(":-1#")
    assert headers["lsn"] == lsn
    return int(text), int(lsn)


def keys_of_ranges(container):
    """A partition key of each of the four ranges."""
    keys = {}
    for n in range(200):
        container.upsert_item({"id": "first", "pk": f"k{n}"})
        keys.setdefault(shown(container)[0], f"k{n}")
        if len(keys) == 4:
            return [keys[number] for number in range(4)]
    raise AssertionError(f"only ranges {sorted(keys)} have keys")


def test_a_session_over_four_ranges_reads_what_it_wrote_and_every_token_is_accepted(containers):
    mine, other = containers
    keys, tokens = keys_of_ranges(mine), []
    for number, (key, count) in enumerate(zip(keys, COUNTS, strict=True)):
        mine.read_item("first", key)
        begun = shown(mine)[1]
        for n in range(1, count + 1):
            other.upsert_item({"id": "x", "pk": "x"})
            mine.upsert_item({"id": f"{n}", "pk": key})
            assert shown(mine) == (number, begun + n), "own and foreign writes in turn"
        tokens.append(f"{number}:-1#{begun + count}")
    # The client sends what it has seen of each range with each of these.
    for key, count in zip(keys, COUNTS, strict=True):
        assert mine.read_item(f"{count}", key)["pk"] == key
        mine.execute_item_batch([("read", ("first",))], key)
        with pytest.raises(exceptions.CosmosResourceNotFoundError) as missing:
            mine.read_item("none", key)
        assert missing.value.sub_status in (None, 0)
        rows = list(mine.query_items("SELECT VALUE c.id FROM c WHERE c.id != 'first'", partition_key=key))
        assert len(rows) == count
    listed = list(mine.query_items("SELECT VALUE c.id FROM c", enable_cross_partition_query=True))
    assert len(listed) > sum(COUNTS)
    assert len(list(mine.query_items_change_feed(start_time="Beginning"))) == len(listed)
    together = ",".join(tokens)
    for key in keys:
        for token in [*tokens, together]:
            mine.read_item("first", key, session_token=token)
            list(mine.query_items("SELECT * FROM c", partition_key=key, session_token=token))
    # The same number is in the future of a range with fewer writes.
    ahead = "0:-1#" + tokens[3].split("#")[1]
    with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
        mine.read_item("first", keys[0], session_token=ahead)
    assert (refused.value.status_code, refused.value.sub_status) == (404, 1002)


def test_a_point_read_shows_the_lsn_of_the_items_last_write_and_those_of_its_range(containers):
    mine, other = containers
    key = keys_of_ranges(mine)[1]
    answer = mine.upsert_item({"id": "early", "pk": key})
    number, written = shown(mine)
    for n in range(5):
        mine.upsert_item({"id": f"{n}", "pk": key})
        other.upsert_item({"id": f"{n}", "pk": key})
    for name, item_lsn in [("early", written), ("4", written + 5)]:
        mine.read_item(name, key)
        assert shown(mine) == (number, written + 5), "of the range alone"
        headers = mine.client_connection.last_response_headers
        assert [headers[header] for header in OF_RANGE] == [str(written + 5)] * len(OF_RANGE)
        assert [headers[header] for header in OF_ITEM] == [str(item_lsn)] * len(OF_ITEM)
    mine.replace_item("early", {**answer, "n": 1})
    assert shown(mine) == (number, written + 6)
    mine.read_item("early", key)
    headers = mine.client_connection.last_response_headers
    assert [headers[header] for header in OF_ITEM] == [str(written + 6)] * len(OF_ITEM)


def test_the_estimated_lag_of_a_reader_counts_its_own_range_alone(containers):
    mine, other = containers
    keys = keys_of_ranges(mine)
    mine.read_item("first", keys[2])
    feed_range = mine.feed_range_from_partition_key(keys[2])

    def read(**start):
        pages = mine.query_items_change_feed(feed_range=feed_range, max_item_count=1, **start).by_page()
        items = next(pages, None)
        return list(items or []), mine.client_connection.last_response_headers

    position = read(start_time="Now")[1]["etag"]
    for n in range(100):
        other.upsert_item({"id": f"{n}", "pk": "x"})
    mine.create_item({"id": "pending", "pk": keys[2]})
    for n in range(200):
        other.upsert_item({"id": f"{n}", "pk": "x"})

    def lag():
        items, headers = read(continuation=position)
        assert [item["id"] for item in items] == ["pending"]
        return int(headers[TOKEN].split("#")[1]) - items[0]["_lsn"] + 1

    assert lag() == 1, "one new item, and 300 writes elsewhere"
    for n in range(4):
        mine.create_item({"id": f"more{n}", "pk": keys[2]})
        mine.upsert_item({"id": "neighbour", "pk": keys[1]})
    assert lag() == 5
