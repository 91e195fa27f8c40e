"""T28: all versions and deletes, an expiry as a delete as of its instant, exactly once; also over kill -9 and restart."""

import os
import random
import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions

from bolide import Server

MODE = {"mode": "AllVersionsAndDeletes"}
OPERATIONS = 100_000 if os.environ.get("BOLIDE_LONG") else 400
KILLS = 20


def make(client, minutes=10, **more):
    database = client.create_database_if_not_exists("versions")
    policy = {"retentionDuration": minutes} if minutes else None
    name = "c-" + uuid.uuid4().hex
    return database.create_container(
        name, PartitionKey(path="/pk"), default_ttl=-1, change_feed_policy=policy, **more)


@pytest.fixture
def container(each_server):
    with each_server.client() as client:
        yield make(client)


def read(container, size=3, **start):
    """All events, and where to go on."""
    start = start or {"start_time": "Now"}
    pages = container.query_items_change_feed(max_item_count=size, **MODE, **start).by_page()
    events = [event for page in pages for event in page]
    return events, container.client_connection.last_response_headers["etag"]


def short(event):
    """What happened, to which id, from which version to which."""
    data = event["metadata"]
    kind = "expire" if data.get("timeToLiveExpired") else data["operationType"]
    item = event["current"] or event["previous"]
    return kind, item["id"], event.get("previous", {}).get("n"), event["current"].get("n")


def test_t28_every_version_with_its_images(container):
    nothing, position = read(container)
    assert nothing == []
    created = container.create_item({"id": "a", "pk": "p", "n": 1})
    container.upsert_item({"id": "a", "pk": "p", "n": 2})
    patched = container.patch_item("a", "p", [{"op": "incr", "path": "/n", "value": 1}])
    container.delete_item("a", "p")
    events, _ = read(container, continuation=position)
    assert [short(event) for event in events] == [
        ("create", "a", None, 1), ("replace", "a", 1, 2), ("replace", "a", 2, 3), ("delete", "a", 3, None)]
    assert events[0]["current"] == created
    assert events[3]["previous"] == patched
    data = [event["metadata"] for event in events]
    assert [one["lsn"] for one in data] == sorted({one["lsn"] for one in data})
    assert [one.get("previousImageLSN") for one in data[1:]] == [one["lsn"] for one in data[:-1]]
    assert data[0]["crts"] == created["_ts"]
    assert (data[3]["id"], data[3]["partitionKey"]) == ("a", {"pk": "p"})
    assert not data[3]["timeToLiveExpired"]


@pytest.mark.parametrize("purged", [False, True], ids=["before the purge", "after the purge"])
def test_t28_an_expiry_is_a_delete_as_of_its_instant(container, each_server, purged):
    each_server.admin("POST", "purge", {"paused": True})
    position = read(container)[1]
    dying = container.create_item({"id": "a", "pk": "p", "n": 1, "ttl": 50})
    each_server.clock.move_to(dying["_ts"] + 70)
    later = container.create_item({"id": "b", "pk": "p", "n": 2})
    if purged:
        each_server.admin("POST", "purge", {"paused": False, "now": True})
    container.create_item({"id": "a", "pk": "p", "n": 3})
    events, position = read(container, continuation=position)
    assert [short(event) for event in events] == [
        ("create", "a", None, 1), ("expire", "a", 1, None), ("create", "b", None, 2), ("create", "a", None, 3)]
    data = events[1]["metadata"]
    assert data["operationType"] == "delete" and data["crts"] == dying["_ts"] + 50
    assert (data["id"], data["partitionKey"]) == ("a", {"pk": "p"})
    assert data["lsn"] == events[0]["metadata"]["lsn"] == data["previousImageLSN"]
    assert events[1]["previous"] == dying and later["_ts"] > data["crts"]
    each_server.admin("POST", "purge", {"paused": False})
    assert read(container, continuation=position)[0] == []


def test_t28_a_change_of_the_default_is_seen_as_it_kills(container, each_server):
    position = read(container)[1]
    written = container.create_item({"id": "a", "pk": "p", "n": 1})
    each_server.clock.move_to(written["_ts"] + 100)
    with each_server.client() as client:
        client.get_database_client("versions").replace_container(
            container, PartitionKey(path="/pk"), default_ttl=30,
            indexing_policy=container.read()["indexingPolicy"])
    events, _ = read(container, continuation=position)
    assert [short(event) for event in events] == [("create", "a", None, 1), ("expire", "a", 1, None)]
    assert events[1]["metadata"]["crts"] >= written["_ts"] + 100, "not before the rule was there"


def test_t28_what_is_older_than_the_retention_is_refused(container, each_server):
    position = read(container)[1]
    container.create_item({"id": "a", "pk": "p", "n": 1})
    each_server.clock.advance(601)
    with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
        read(container, continuation=position)
    assert refused.value.status_code == 400 and "retention" in refused.value.message


def test_t28_a_container_that_keeps_none_says_so(each_server):
    with each_server.client() as client:
        with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
            read(make(client, minutes=None))
    assert refused.value.status_code == 400 and "retentionDuration" in refused.value.message


def test_t28_by_partition_key_and_feed_range(container):
    ranges = list(container.read_feed_ranges())
    by_range = [read(container, feed_range=feed_range, start_time="Now")[1] for feed_range in ranges]
    by_key = read(container, partition_key="k3", start_time="Now")[1]
    for n in range(20):
        container.create_item({"id": str(n), "pk": f"k{n % 5}", "n": n})
        container.delete_item(str(n), f"k{n % 5}")
    found = [event for position in by_range for event in read(container, continuation=position)[0]]
    assert len(found) == 40
    of_key = [short(event)[:2] for event in read(container, continuation=by_key)[0]]
    assert of_key == [(kind, str(n)) for n in (3, 8, 13, 18) for kind in ("create", "delete")]


@pytest.mark.timeout(3600)
def test_t28_a_reader_loses_and_repeats_nothing_over_kills(tmp_path):
    """Random lives; the server is killed and the reader goes on with what it kept: the replay is what happened."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    server = Server(data=tmp_path / "data").start()
    try:
        container = make(server.client(), minutes=100_000)
        name = container.id
        position = read(container)[1]
        living, happened, seen = {}, {}, {}

        def expire(id, now):
            version, deadline = living.get(id, (None, None))
            if deadline and deadline <= now:
                happened.setdefault(id, []).append(("expire", id, version, None))
                del living[id]

        def look(size):
            events, position_now = read(container, size=size, continuation=position)
            for event in map(short, events):
                seen.setdefault(event[1], []).append(event)
            return position_now

        for n in range(OPERATIONS):
            server.clock.advance(rng.choice([0, 0, 1, 3, 10]))
            id, ttl = f"i{rng.randrange(12)}", rng.choice([None, 2, 5, 20])
            if rng.random() < KILLS / OPERATIONS:
                server.kill()
                server.start()
                container = server.client().get_database_client("versions").get_container_client(name)
            if id in living and rng.random() < 0.3:
                try:
                    container.delete_item(id, "p")
                    happened[id].append(("delete", id, living.pop(id)[0], None))
                except exceptions.CosmosResourceNotFoundError:
                    expire(id, float("inf"))
            else:
                item = container.upsert_item({"id": id, "pk": "p", "n": n, **({"ttl": ttl} if ttl else {})})
                expire(id, item["_ts"])
                old = living.get(id)
                told = ("replace" if old else "create", id, old and old[0], n)
                happened.setdefault(id, []).append(told)
                living[id] = (n, item["_ts"] + ttl if ttl else None)
            if rng.random() < 0.1:
                position = look(rng.choice([1, 3, 100]))
        server.clock.advance(100)
        for id in list(living):
            expire(id, server.clock.now())
        look(50)
        assert seen == happened
    finally:
        server.kill()
