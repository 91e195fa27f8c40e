"""Fixtures: a server whose purge stands still, one database per test, and the ways to look at a collection.

Time moves through the admin API. `settle` comes in two kinds: one leaves the dead where they are, the other has them
purged; a test that uses it runs twice and must see the same.
"""

import datetime
import uuid

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from bolide import Server


def connect(server, **options):
    """A client with the options of a Cosmos connection string."""
    options.setdefault("serverSelectionTimeoutMS", 60_000)
    return MongoClient(
        f"mongodb://127.0.0.1:{server.mongo_port}/?replicaSet=globaldb&retrywrites=false&maxIdleTimeMS=120000&appName=@bolide@",
        **options,
    )


def steer_purge(server, **wish):
    status, body = server.admin("POST", "purge", wish)
    assert status == 200, body


@pytest.fixture(scope="session")
def server():
    """The server that most tests share. Nothing is purged until a test asks for it."""
    process = Server().start()
    steer_purge(process, paused=True)
    yield process
    process.stop()


@pytest.fixture(scope="session")
def client(server):
    with connect(server) as opened:
        yield opened


@pytest.fixture
def database(client):
    made = client["ttl_" + uuid.uuid4().hex]
    yield made
    client.drop_database(made.name)


@pytest.fixture
def collection(database):
    return database["coll"]


@pytest.fixture
def clock(server):
    return server.clock


@pytest.fixture
def instant(clock):
    """instant(5) is the server's time five seconds from now, as a date."""

    def make(seconds=0):
        return datetime.datetime.fromtimestamp(clock.now() + seconds, datetime.timezone.utc)

    return make


@pytest.fixture(params=["dead", "purged"])
def settle(request, server):
    """Called after the clock moved: expired documents are still stored, or are purged."""

    def run():
        if request.param == "purged":
            steer_purge(server, paused=False)
            steer_purge(server, now=True)
            steer_purge(server, paused=True)

    return run


def expire_after(collection, seconds, key="_ts", **options):
    """A TTL index; on `_ts` it is the collection's default (T26)."""
    return collection.create_index(key, expireAfterSeconds=seconds, **options)


def ids(collection, **more):
    return [document["_id"] for document in collection.find({}, sort=[("_id", 1)], **more)]


def refused(code, call, *arguments, **options):
    """Calls; the server must refuse with that code. Returns its text."""
    with pytest.raises(OperationFailure) as caught:
        call(*arguments, **options)
    assert caught.value.code == code, caught.value.details
    return caught.value.details["errmsg"]
