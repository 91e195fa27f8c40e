"""TTL modes other than a countdown from the last write (T33), as users of the SDK meet them."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.cosmos import PartitionKey, exceptions

from test_hold import path
from wire import connect, signed

KEEP = {"headers": {"x-bolide-keep-expiry": "true"}}


def wish(server, container, **wishes):
    status, answer = server.admin("PATCH", path("ttl", container), wishes)
    assert status == 200, answer
    return answer["lifecycle"]


def figures(server, container):
    status, answer = server.admin("GET", path("ttl", container))
    assert status == 200, answer
    return answer["living"]["items"], answer["backlog"]["items"]


def left(answer):
    """The seconds that an answer says are left."""
    seconds = answer.get_response_headers().get("x-bolide-ttl-remaining")
    return None if seconds is None else int(seconds)


def alive(container, name):
    """Whether an item is there, by a look that is no read of it."""
    query = "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, @id)"
    parameters = [{"name": "@id", "value": name}]
    return bool(list(container.query_items(query, parameters=parameters, partition_key="p")))


@pytest.fixture
def make_based(database):
    """make_based(path, default_ttl) -> a container whose items say from when on they are counted."""

    def make(property_path, default_ttl):
        name = "c-" + uuid.uuid4().hex
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        definition = {"id": name, "partitionKey": key, "ttlPropertyPath": property_path, "defaultTtl": default_ttl}
        database.client_connection.CreateContainer(database.database_link, definition)
        return database.get_container_client(name)

    return make


def test_t33_answers_tell_the_seconds_left(make_container, clock):
    container = make_container(default_ttl=100)
    assert left(container.create_item({"id": "x", "pk": "p"})) == 100
    clock.advance(30)
    assert left(container.read_item("x", "p")) == 70
    assert left(container.upsert_item({"id": "x", "pk": "p", "ttl": 50})) == 50
    assert left(container.replace_item("x", {"id": "x", "pk": "p", "ttl": -1})) is None
    assert left(container.read_item("x", "p")) is None
    assert left(make_container().create_item({"id": "x", "pk": "p", "ttl": 5})) is None


def test_t33_a_write_may_keep_the_old_deadline(make_container, clock):
    container = make_container(default_ttl=100)
    body = {"id": "x", "pk": "p", "n": 0}
    first = container.create_item(body)
    writes = {
        "replace": lambda: container.replace_item("x", body, **KEEP),
        "upsert": lambda: container.upsert_item(body, **KEEP),
        "patch": lambda: container.patch_item("x", "p", [{"op": "incr", "path": "/n", "value": 1}], **KEEP),
    }
    expected, stamp = 100, first["_ts"]
    for name, write in writes.items():
        clock.advance(20)
        expected -= 20
        written = write()
        assert left(written) == expected, name
        assert written["_ts"] == stamp + 20, "it is a write all the same"
        stamp += 20
    container.execute_item_batch([("upsert", (body,), {})], partition_key="p", **KEEP)
    assert left(container.read_item("x", "p")) == expected
    clock.advance(expected - 1)
    assert alive(container, "x")
    clock.advance(1)
    assert not alive(container, "x")
    assert left(container.upsert_item(body, **KEEP)) == 100, "an expired item has nothing to keep"


@pytest.mark.parametrize(
    "own, created, lives",
    [
        (None, -40, 60),
        (50, -40, 10),
        (-1, -40, None),
        (None, 40, 140),
        (None, None, 100),
        (None, "text", 100),
        (7, None, 7),
    ],
)
def test_t33_a_property_takes_the_place_of_ts(make_based, clock, server, own, created, lives):
    container = make_based("/meta/created", 100)
    assert container.read()["ttlPropertyPath"] == "/meta/created"
    now = clock.now()
    item = {"id": "x", "pk": "p", "meta": {}}
    if created is not None:
        item["meta"]["created"] = created if isinstance(created, str) else now + created
    if own is not None:
        item["ttl"] = own
    made = container.create_item(item)
    assert (left(made), made["_ts"]) == (lives, now)
    if lives is None:
        clock.advance(10_000)
        assert alive(container, "x")
        return
    clock.advance(lives - 1)
    assert alive(container, "x") and figures(server, container)[0] == 1
    clock.advance(1)
    assert not alive(container, "x") and figures(server, container)[0] == 0


def test_t33_a_replaced_definition_keeps_the_property(make_based, set_default, clock):
    container = make_based("/created", 100)
    set_default(container, 200)
    assert container.read()["ttlPropertyPath"] == "/created"
    assert left(container.create_item({"id": "x", "pk": "p", "created": clock.now() - 50})) == 150


def test_t33_an_item_written_after_its_end_is_inserted_and_gone(make_based, clock):
    container = make_based("/created", 100)
    gone = container.create_item({"id": "x", "pk": "p", "created": clock.now() - 100})
    assert left(gone) == 0
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        container.read_item("x", "p")
    container.create_item({"id": "x", "pk": "p"})


def test_t33_items_may_name_the_instant_of_their_expiry(make_container, server, clock):
    container = make_container()
    assert wish(server, container, expireAtPath="/gone")["expireAtPath"] == "/gone"
    now = clock.now()
    container.create_item({"id": "seconds", "pk": "p", "gone": now + 10})
    container.create_item({"id": "never", "pk": "p", "gone": "some day"})
    clock.advance(9)
    assert alive(container, "seconds")
    clock.advance(1)
    assert not alive(container, "seconds") and alive(container, "never")
    container.replace_item("never", {"id": "never", "pk": "p", "gone": "1999-12-31T23:59:59Z"})
    assert not alive(container, "never")


def test_t33_reads_renew_an_item_and_change_nothing(make_container, server, clock):
    container = make_container(default_ttl=10)
    wish(server, container, sliding=True)
    made = {name: container.create_item({"id": name, "pk": "p"}) for name in ("read", "many", "looked at")}
    for _ in range(5):
        clock.advance(6)
        assert container.read_item("read", "p") == made["read"]
        assert len(list(container.read_items([("many", "p"), ("read", "p")]))) == 2
        list(container.read_all_items())
        list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
    assert not alive(container, "looked at")
    assert figures(server, container)[0] == 2
    changes = container.query_items_change_feed(is_start_from_beginning=True)
    assert sorted(change["id"] for change in changes) == ["many", "read"]
    clock.advance(9)
    assert alive(container, "read") and alive(container, "many")
    clock.advance(1)
    assert figures(server, container)[0] == 0


READS = 10_000
CONNECTIONS = 50
SECONDS = 10


def test_t33_many_readers_renew_an_item_with_bounded_writes(make_container, server, clock):
    """Ten thousand reads over many connections: what they write is bounded by the seconds, not by the reads."""
    container = make_container(default_ttl=5)
    wish(server, container, sliding=True)
    container.create_item({"id": "x", "pk": "p"})
    link = f"dbs/{container.container_link.split('/')[1]}/colls/{container.id}/docs/x"
    headers = {**signed("GET", "docs", link), "x-ms-documentdb-partitionkey": '["p"]'}
    connections = [connect(server) for _ in range(CONNECTIONS)]

    def read(connection):
        for _ in range(READS // CONNECTIONS // SECONDS):
            connection.request("GET", "/" + link, headers=headers)
            answer = connection.getresponse()
            answer.read()
            assert (answer.status, answer.headers["x-bolide-ttl-remaining"]) == (200, "5")

    def store():
        status, answer = server.admin("GET", "status")
        assert status == 200, answer
        return answer["store"]

    began, before = clock.now(), store()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in range(SECONDS):
            clock.advance(1)
            list(pool.map(read, connections))
    seconds, after = clock.now() - began, store()
    for connection in connections:
        connection.close()
    # One touch in each second; the rest is the clock's lease and whatever the background does meanwhile.
    assert after["commits"] - before["commits"] <= 4 * (seconds + 1)
    # A read before a touch is durable waits for it in a job of its own.
    assert after["jobs"] - before["jobs"] <= CONNECTIONS * (seconds + 1)
    assert alive(container, "x"), "and it lives, long after its first five seconds"


def test_t33_settings_that_cannot_be_made_are_refused(make_container, server, database):
    container = make_container()
    for wishes in ({"sliding": "yes"}, {"expireAtPath": "gone"}, {"ttlPropertyPath": "/created"}):
        status, answer = server.admin("PATCH", path("ttl", container), wishes)
        assert status == 400, answer
        assert next(iter(wishes)) in answer["message"]
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        database.client_connection.CreateContainer(
            database.database_link,
            {"id": "bad", "partitionKey": PartitionKey("/pk"), "ttlPropertyPath": "created"},
        )
    assert caught.value.status_code == 400 and "ttlPropertyPath" in str(caught.value)
