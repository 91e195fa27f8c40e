"""Legal holds (T31) as users of the SDK meet them: what a hold forbids is a 403 with substatus 9031 that tells the reason."""

import pytest
from azure.cosmos import PartitionKey, exceptions

from bolide import Server

FORBIDDEN, HELD = 403, 9031


def path(kind, container):
    link = container.container_link.split("/")
    return f"{kind}/{link[1]}/{link[3]}"


class Holds:
    """The admin API of one container's holds."""

    def __init__(self, server, container):
        self.server, self.container = server, container

    def call(self, method, kind, body=None, expected=200):
        status, answer = self.server.admin(method, path(kind, self.container), body)
        assert status == expected, answer
        return answer

    def hold(self, name, expected=200, reason="case 7"):
        body = {"id": name, "partitionKey": ["p"], "reason": reason}
        return self.call("PUT", "hold", body, expected)

    def lift(self, name, expected=200):
        return self.call("DELETE", "hold", {"id": name, "partitionKey": ["p"]}, expected)

    def listed(self):
        return [held["id"] for held in self.call("GET", "hold")["held"]]

    def hold_container(self, reason="case 8"):
        return self.call("PATCH", "ttl", {"hold": reason and {"reason": reason}})


@pytest.fixture
def paused_purge(server):
    """Expired items stay where they are."""
    assert server.admin("POST", "purge", {"paused": True})[0] == 200
    yield
    assert server.admin("POST", "purge", {"paused": False})[0] == 200


@pytest.fixture
def holds(server):
    return lambda container: Holds(server, container)


def alive(container, name):
    try:
        return container.read_item(name, "p")
    except exceptions.CosmosResourceNotFoundError:
        return None


def refused(call, *arguments, **options):
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        call(*arguments, **options)
    assert (caught.value.status_code, caught.value.sub_status) == (FORBIDDEN, HELD), caught.value
    return str(caught.value)


def changes(container, name):
    """Every way to change or delete an item."""
    body = {"id": name, "pk": "p", "n": 1}
    return {
        "replace": lambda: container.replace_item(name, body),
        "upsert": lambda: container.upsert_item(body),
        "patch": lambda: container.patch_item(name, "p", [{"op": "add", "path": "/n", "value": 1}]),
        "delete": lambda: container.delete_item(name, "p"),
        "by key": lambda: container.delete_all_items_by_partition_key("p"),
    }


def test_t31_a_held_item_outlives_its_rule_and_refuses_every_change(make_container, holds, clock, database):
    container = make_container(default_ttl=10)
    made = container.create_item({"id": "x", "pk": "p"})
    container.create_item({"id": "y", "pk": "p"})
    holds(container).hold("x")
    clock.advance(100)
    assert alive(container, "x") == made, "a hold is no new version"
    assert alive(container, "y") is None
    assert [item["id"] for item in container.read_all_items()] == ["x"]
    for name, change in changes(container, "x").items():
        assert "case 7" in refused(change), name
    batch = [("delete", ("x",), {}), ("create", ({"id": "z", "pk": "p"},), {})]
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        container.execute_item_batch(batch, partition_key="p")
    assert caught.value.status_code == FORBIDDEN and alive(container, "z") is None
    refused(database.delete_container, container)
    assert holds(container).listed() == ["x"]
    holds(container).lift("x")
    assert alive(container, "x") is None, "it was overdue"
    assert holds(container).listed() == []
    container.create_item({"id": "x", "pk": "p"})
    database.delete_container(container)


def test_t31_expired_items_cannot_be_held(make_container, holds, clock):
    container = make_container(default_ttl=10)
    container.create_item({"id": "x", "pk": "p"})
    clock.advance(10)
    holds(container).hold("x", expected=404)
    holds(container).hold("never was", expected=404)
    holds(container).lift("x", expected=404)


@pytest.mark.parametrize("then, lives", [(None, True), (-1, True), (500, True), (50, False)])
def test_t31_a_lifted_item_is_judged_by_the_rule_then_in_force(
    make_container, holds, clock, set_default, then, lives
):
    container = make_container(default_ttl=10)
    for name in ("x", "y"):
        container.create_item({"id": name, "pk": "p"})
    holds(container).hold("x")
    clock.advance(60)
    set_default(container, then)
    holds(container).lift("x")
    assert (alive(container, "x") is not None) == lives
    assert alive(container, "y") is None


def test_t31_in_a_held_container_nothing_expires_or_is_changed(
    make_container, holds, clock, database, set_default, paused_purge
):
    container = make_container(default_ttl=10)
    container.create_item({"id": "dead", "pk": "p"})
    clock.advance(5)
    made = container.create_item({"id": "x", "pk": "p"})
    clock.advance(5)
    assert holds(container).hold_container()["lifecycle"]["hold"] == {"reason": "case 8"}
    clock.advance(1000)
    assert alive(container, "x") == made and alive(container, "dead") is None
    for name, change in changes(container, "x").items():
        assert "case 8" in refused(change), name
    refused(database.delete_container, container)
    container.create_item({"id": "new", "pk": "p"})
    assert container.create_item({"id": "dead", "pk": "p"})["_etag"], "an expired item does not block its id (T15)"
    set_default(container, 500)
    assert alive(container, "x") == made, "rules may change, and wait"
    holds(container).hold_container(None)
    assert alive(container, "x") is None and alive(container, "new") is not None
    container.delete_item("new", "p")


@pytest.fixture
def server_on_disk(tmp_path):
    """A server of this test's own, on disk."""
    process = Server(data=tmp_path / "data").start()
    yield process
    process.kill()


@pytest.mark.parametrize("how", ["stop", "kill -9"])
def test_t31_holds_outlive_restarts_and_expired_items_stay_expired(server_on_disk, how):
    server = server_on_disk

    def restarted():
        server.stop() if how == "stop" else server.kill()
        server.start()
        database = server.client().get_database_client("db")
        return database, database.get_container_client("c"), database.get_container_client("whole")

    def set_defaults(seconds):
        for name in ("c", "whole"):
            database.replace_container(name, PartitionKey("/pk"), default_ttl=seconds)

    database = server.client().create_database("db")
    container = database.create_container("c", PartitionKey("/pk"), default_ttl=10)
    whole = database.create_container("whole", PartitionKey("/pk"), default_ttl=10)
    # The first one expires and is still stored when the hold is placed: the hold must not bring it back.
    server.admin("POST", "purge", {"paused": True})
    for place in (container, whole):
        place.create_item({"id": "dead", "pk": "p"})
    server.clock.advance(10)
    for place in (container, whole):
        place.create_item({"id": "x", "pk": "p"})
        place.create_item({"id": "y", "pk": "p"})
    Holds(server, container).hold("x")
    Holds(server, whole).hold_container()
    server.clock.advance(100)

    database, container, whole = restarted()
    assert [alive(container, name) is not None for name in ("dead", "x", "y")] == [False, True, False]
    assert [alive(whole, name) is not None for name in ("dead", "x", "y")] == [False, True, True]
    for place in (container, whole):
        for name, change in changes(place, "x").items():
            assert "case" in refused(change), name
        refused(database.delete_container, place)
    refused(server.client().delete_database, "db")
    assert Holds(server, container).listed() == ["x"]

    # The rules change during the holds, and the server restarts again.
    set_defaults(1_000_000)
    database, container, whole = restarted()
    assert [alive(container, name) is not None for name in ("dead", "x", "y")] == [False, True, False]
    assert [alive(whole, name) is not None for name in ("dead", "x", "y")] == [False, True, True]
    server.clock.advance(100)
    set_defaults(150)
    assert alive(container, "x") and alive(whole, "x") and alive(whole, "y")

    # Without the hold: the present rule, from each item's own `_ts`, which is 200 seconds ago.
    Holds(server, container).lift("x")
    Holds(server, whole).hold_container(None)
    set_defaults(1_000_000)
    for place in (container, whole):
        assert [alive(place, name) for name in ("dead", "x", "y")] == [None, None, None]
    database, container, whole = restarted()
    for place in (container, whole):
        assert [alive(place, name) for name in ("dead", "x", "y")] == [None, None, None]
        place.create_item({"id": "x", "pk": "p"})
        database.delete_container(place)
