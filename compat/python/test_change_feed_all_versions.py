"""T28: all versions and deletes, an expiry as a delete as of its instant, exactly once; also over kill -9 and restart."""

import os
import random
import uuid
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import PartitionKey, exceptions

from bolide import Server
from feed_model import Model, Operation

MODE = {"mode": "AllVersionsAndDeletes"}


def make(client, minutes=10, default_ttl=-1):
    database = client.create_database_if_not_exists("versions")
    policy = {"retentionDuration": minutes} if minutes else None
    name = "c-" + uuid.uuid4().hex
    return database.create_container(
        name, PartitionKey(path="/pk"), default_ttl=default_ttl, change_feed_policy=policy)


def ask_for_images(server, name):
    """Has replaced items come with the version before; deletes always do."""
    assert server.admin("PATCH", f"ttl/versions/{name}", {"previousImages": True})[0] == 200


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


def test_t28_every_version_with_its_images(container, each_server):
    nothing, position = read(container)
    assert nothing == []
    created = container.create_item({"id": "a", "pk": "p", "n": 1})
    container.upsert_item({"id": "a", "pk": "p", "n": 2})
    patched = container.patch_item("a", "p", [{"op": "incr", "path": "/n", "value": 1}])
    container.delete_item("a", "p")
    events, _ = read(container, continuation=position)
    assert [short(event) for event in events] == [
        ("create", "a", None, 1), ("replace", "a", None, 2), ("replace", "a", None, 3), ("delete", "a", 3, None)]
    ask_for_images(each_server, container.id)
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
    assert refused.value.status_code == 400
    assert "You must read the change feed from within the retention period." in refused.value.message


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


OPERATIONS = 100_000 if os.environ.get("BOLIDE_LONG") else 400
KILLS = 20
KEYS = ["k0", "k1", "k2", "k3"]
KINDS = ["create", "upsert", "upsert", "replace", "patch", "patch", "delete"]
DEFAULT_TTL = 8


def draw(rng, n):
    return Operation(rng.choice(KINDS), f"i{rng.randrange(6)}", n, rng.choice([None, None, -1, 2, 5, 20]))


def carry_out(container, key, operation):
    """The answer: a status, and the time of what was written; none from a server that was killed."""
    kind, id, n, ttl = operation
    item = {"id": id, "pk": key, "n": n, **({"ttl": ttl} if ttl else {})}
    changes = [{"op": "set", "path": f"/{name}", "value": item[name]} for name in ("n", "ttl") if name in item]
    ways = {
        "create": lambda: container.create_item(item),
        "upsert": lambda: container.upsert_item(item),
        "replace": lambda: container.replace_item(id, item),
        "patch": lambda: container.patch_item(id, key, changes),
        "delete": lambda: container.delete_item(id, key),
    }
    try:
        written = ways[kind]()
    except exceptions.CosmosHttpResponseError as error:
        return error.status_code, None
    except AzureError:
        return None
    return 200, written and written["_ts"]


class Reader:
    """A consumer that stores its position now and then, and crashes: it reads again what it has read since."""

    def __init__(self, position, rng):
        self.position, self.rng = position, rng
        self.stored = []

    def look(self, container, death=0.2):
        size = self.rng.choice([1, 3, 100])
        read = []

        def store():
            self.position = container.client_connection.last_response_headers["etag"]
            self.stored += read
            read.clear()

        for page in container.query_items_change_feed(max_item_count=size, continuation=self.position, **MODE).by_page():
            read += page
            if self.rng.random() < death:
                return
            if self.rng.random() < 0.5:
                store()
        store()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("partitions", ["1", "4"])
def test_t28_a_reader_loses_and_repeats_nothing_over_kills(tmp_path, partitions):
    """Random lives under several keys; server and reader are killed, also in the middle of something, and the reader goes
    on with what it stored: what it has read is what happened, in order for each key."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    rounds = OPERATIONS // len(KEYS)
    kills = set(rng.sample(range(rounds), KILLS))
    server = Server(data=tmp_path / "data", extra=["--partitions", partitions]).start()
    with ThreadPoolExecutor(len(KEYS) + 1) as pool:
        try:
            name = make(server.client(), minutes=100_000, default_ttl=DEFAULT_TTL).id
            ask_for_images(server, name)

            def connect():
                # The reader has a client of its own: it finds its position in the headers of the last answer. None tries
                # again what a killed server has not answered.
                clients = [server.client(retry_total=0, retry_connect=0, retry_read=0) for _ in range(2)]
                return [client.get_database_client("versions").get_container_client(name) for client in clients]

            container, feed = connect()
            reader = Reader(read(feed)[1], random.Random(seed))
            models = {key: Model(DEFAULT_TTL) for key in KEYS}
            unanswered = 0

            def compare(now):
                for event in reader.stored:
                    key = (event["current"] or event["previous"])["pk"]
                    models[key].told((*short(event), event["metadata"]["crts"]), now)
                reader.stored.clear()

            for number in range(rounds):
                before = server.clock.advance(rng.choice([0, 0, 1, 3, 6]))
                operations = [draw(rng, number) for _ in KEYS]
                running = [pool.submit(carry_out, container, *one) for one in zip(KEYS, operations)]
                looking = pool.submit(reader.look, feed) if rng.random() < 0.2 else None
                if number in kills:
                    # At any moment, until all are answered. The clock may tick between the question and the kill.
                    wait(running, timeout=rng.random() * 0.02)
                    latest = server.clock.now() + 1
                    server.kill()
                answers = [future.result() for future in running]
                if looking and looking.exception() and number not in kills:
                    raise looking.exception()
                if number in kills:
                    server.start()
                    container, feed = connect()
                    unanswered += answers.count(None)
                else:
                    assert None not in answers
                    latest = server.clock.now()
                for key, operation, answer in zip(KEYS, operations, answers):
                    models[key].answered(operation, answer, range(before, latest + 1))
                compare(server.clock.now())
            assert unanswered, "some kill must meet an operation"
            now = server.clock.advance(100)
            reader.look(feed, death=0)
            compare(server.clock.now())
            assert all(model.has_told_all(now) for model in models.values())
        finally:
            server.kill()
