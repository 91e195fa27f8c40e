"""T13, T15, T22 across restarts: a clean stop and a kill -9 between expiry and purge, on the embedded store."""

import os

import pytest
from azure.cosmos import PartitionKey, exceptions

from bolide import Server

LONG = bool(os.environ.get("BOLIDE_LONG"))


def end(server, how):
    if how == "stop":
        server.stop()
    else:
        server.kill()


def ids(container):
    return sorted(item["id"] for item in container.read_all_items())


def reopened(server):
    server.start()
    return server.client().get_database_client("d")


@pytest.fixture
def server(tmp_path):
    """A server of this test's own, on disk."""
    process = Server(data=tmp_path / "data").start()
    yield process
    process.kill()


@pytest.mark.parametrize("how", ["stop", "kill -9"])
def test_t13_expired_items_stay_expired_and_living_ones_live(server, how):
    database = server.client().create_database("d")
    container = database.create_container("c", PartitionKey(path="/pk"), default_ttl=100)
    server.admin("POST", "purge", {"paused": True})
    stored = container.create_item({"id": "dies", "pk": "p"})
    container.create_item({"id": "own", "pk": "p", "ttl": 1000})
    container.create_item({"id": "stays", "pk": "p", "ttl": -1})
    server.clock.move_to(stored["_ts"] + 100)
    assert ids(container) == ["own", "stays"]
    before = server.clock.now()

    end(server, how)
    container = reopened(server).get_container_client("c")
    assert server.clock.now() >= before, "time never goes back"
    assert ids(container) == ["own", "stays"]

    # Raised after the restart: expiry is still final.
    server.client().get_database_client("d").replace_container(
        container, PartitionKey(path="/pk"), default_ttl=1_000_000)
    assert ids(container) == ["own", "stays"]
    container.create_item({"id": "dies", "pk": "p", "life": 2})

    end(server, how)
    container = reopened(server).get_container_client("c")
    assert ids(container) == ["dies", "own", "stays"]
    assert container.read_item("dies", "p")["life"] == 2


@pytest.mark.parametrize("how", ["stop", "kill -9"])
def test_t13_a_policy_change_before_the_restart_revives_nothing_after_it(server, how):
    database = server.client().create_database("d")
    container = database.create_container("c", PartitionKey(path="/pk"), default_ttl=100)
    server.admin("POST", "purge", {"paused": True})
    stored = container.create_item({"id": "dead", "pk": "p"})
    server.clock.move_to(stored["_ts"] + 50)
    container.create_item({"id": "young", "pk": "p"})
    server.clock.move_to(stored["_ts"] + 100)
    database.replace_container(container, PartitionKey(path="/pk"))

    end(server, how)
    database = reopened(server)
    container = database.get_container_client("c")
    assert "defaultTtl" not in container.read()
    assert ids(container) == ["young"]
    database.replace_container(container, PartitionKey(path="/pk"), default_ttl=1_000_000)
    assert ids(container) == ["young"]


def test_t15_unique_values_of_expired_items_are_free_after_a_kill(server):
    database = server.client().create_database("d")
    container = database.create_container(
        "c", PartitionKey(path="/pk"), default_ttl=100, unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
    stored = container.create_item({"id": "old", "pk": "p", "email": "a@b"})
    server.clock.move_to(stored["_ts"] + 100)
    server.kill()
    container = reopened(server).get_container_client("c")
    container.create_item({"id": "new", "pk": "p", "email": "a@b", "ttl": -1})
    server.kill()
    container = reopened(server).get_container_client("c")
    with pytest.raises(exceptions.CosmosResourceExistsError):
        container.create_item({"id": "third", "pk": "p", "email": "a@b"})


@pytest.mark.timeout(3600 if LONG else 300)
def test_every_acknowledged_write_survives_kill_9(server):
    database = server.client().create_database("d")
    container = database.create_container("c", PartitionKey(path="/pk"), default_ttl=-1)
    written = []
    for round_number in range(200 if LONG else 5):
        for number in range(20):
            name = f"{round_number}-{number}"
            container.create_item({"id": name, "pk": "p", "n": number})
            written.append(name)
        server.kill()
        container = reopened(server).get_container_client("c")
        assert ids(container) == sorted(written)
