"""Expired is final (T13): no change of a rule, no restart and no crash brings a document back."""

import datetime

import pytest

from bolide import Server
from conftest import connect, expire_after, ids, steer_purge


def raise_default(collection):
    collection.database.command("collMod", collection.name, index={"name": "_ts_1", "expireAfterSeconds": 100_000})


def default_off_by_minus_one(collection):
    collection.database.command("collMod", collection.name, index={"name": "_ts_1", "expireAfterSeconds": -1})


def drop(collection):
    collection.drop_indexes()


def drop_and_create(collection):
    collection.drop_indexes()
    expire_after(collection, 100_000)
    expire_after(collection, 100_000, "at")


def raise_rule(collection):
    collection.database.command("collMod", collection.name, index={"name": "at_1", "expireAfterSeconds": 100_000})


def raise_both(collection):
    raise_default(collection)
    raise_rule(collection)


def raise_by_steps(collection):
    for seconds in (200, 20, 300, 100_000):
        for name in ("_ts_1", "at_1"):
            collection.database.command("collMod", collection.name, index={"name": name, "expireAfterSeconds": seconds})


CHANGES = [raise_both, raise_by_steps, drop, drop_and_create]


def fill(collection, now):
    """Documents that expire by the default, by their own ttl and by a date within 100 s, and one of each that does not."""
    at = lambda seconds: datetime.datetime.fromtimestamp(now + seconds, datetime.timezone.utc)
    expire_after(collection, 50)
    expire_after(collection, 50, "at")
    collection.create_index("key", unique=True)
    collection.insert_many([
        {"_id": "default", "key": 1},
        {"_id": "own", "ttl": 60, "key": 2},
        {"_id": "date", "ttl": -1, "at": at(0), "key": 3},
        {"_id": "date array", "ttl": -1, "at": [at(1000), at(0)], "key": 4},
        {"_id": "living", "ttl": -1, "at": at(100_000_000), "key": 5},
        {"_id": "undated", "ttl": -1, "key": 6},
    ])


def only_the_living(collection):
    assert ids(collection) == ["living", "undated"]
    assert collection.estimated_document_count() == 2
    for index in collection.index_information().keys() - {"_ts_1"}:  # that one has no entries to look through
        assert collection.count_documents({}, hint=index) == 2, index
    assert sorted(collection.distinct("key")) == [5, 6]
    assert [row["_id"] for row in collection.find({"key": {"$lt": 6}})] == ["living"]


@pytest.mark.parametrize("change", CHANGES)
def test_t13_a_changed_rule_revives_nothing(collection, clock, settle, change):
    fill(collection, clock.now())
    clock.advance(101)
    settle()
    only_the_living(collection)
    change(collection)
    only_the_living(collection)
    settle()
    only_the_living(collection)
    collection.insert_one({"_id": "date", "key": 3})
    assert ids(collection) == ["date", "living", "undated"]


def test_t13_each_rule_keeps_its_own_expired_documents(collection, clock, settle):
    fill(collection, clock.now())
    clock.advance(101)
    raise_default(collection)
    only_the_living(collection)
    raise_rule(collection)
    only_the_living(collection)
    default_off_by_minus_one(collection)
    settle()
    only_the_living(collection)


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("purge", ["dead", "purged"])
@pytest.mark.parametrize("change", CHANGES)
def test_t13_not_after_a_restart_either(tmp_path, change, purge, end):
    server = Server(data=tmp_path / "data").start()
    try:
        steer_purge(server, paused=True)
        with connect(server) as client:
            collection = client["final"]["coll"]
            fill(collection, server.clock.now())
            server.clock.advance(101)
            only_the_living(collection)
            change(collection)
            indexes = sorted(collection.index_information())
        getattr(server, end)()
        server.start()
        steer_purge(server, paused=True)
        with connect(server) as client:
            collection = client["final"]["coll"]
            only_the_living(collection)
            assert sorted(collection.index_information()) == indexes
            if purge == "purged":
                steer_purge(server, paused=False)
                steer_purge(server, now=True)
                only_the_living(collection)
            collection.insert_one({"_id": "default", "key": 2})
            assert ids(collection) == ["default", "living", "undated"]
        server.stop()
    finally:
        server.kill()
