"""Holds (T31) and guarded changes (T30) through the MongoDB API: refused with 20 IllegalOperation and the reason."""

import pytest
from bson import ObjectId
from bson.json_util import RELAXED_JSON_OPTIONS, dumps
from pymongo import InsertOne, ReplaceOne
from pymongo.errors import BulkWriteError

import json

from bolide import Server
from conftest import connect, expire_after, ids, refused, steer_purge

ILLEGAL_OPERATION = 20


class Holds:
    """The admin API of one collection."""

    def __init__(self, server, collection):
        self.server = server
        self.path = f"{collection.database.name}/{collection.name}?api=mongodb"

    def call(self, method, kind, body=None, expected=200):
        status, answer = self.server.admin(method, f"{kind}/{self.path}", body)
        assert status == expected, answer
        return answer

    def named(self, name):
        return json.loads(dumps({"_id": name}, json_options=RELAXED_JSON_OPTIONS))

    def hold(self, name, expected=200):
        return self.call("PUT", "hold", {**self.named(name), "reason": "case 7"}, expected)

    def lift(self, name, expected=200):
        return self.call("DELETE", "hold", self.named(name), expected)

    def listed(self):
        return [held["_id"] for held in self.call("GET", "hold")["held"]]

    def hold_collection(self, reason="case 8"):
        return self.call("PATCH", "ttl", {"hold": reason and {"reason": reason}})


@pytest.fixture
def holds(server, collection):
    made = Holds(server, collection)
    yield made
    # The fixture of the database drops it, and a hold would forbid that.
    if collection.name in collection.database.list_collection_names():
        made.hold_collection(None)
        for held in made.call("GET", "hold")["held"]:
            made.call("DELETE", "hold", {"_id": held["_id"]})


@pytest.fixture
def running_purge(server):
    steer_purge(server, paused=False)
    yield
    steer_purge(server, paused=True)


def write_refused(call, *arguments):
    assert "case" in refused(ILLEGAL_OPERATION, call, *arguments)


@pytest.mark.parametrize("name", [1, "x", ObjectId(), {"a": 1, "b": "c"}], ids=repr)
def test_t31_a_held_document_outlives_its_rules_and_refuses_every_change(
    collection, holds, clock, instant, settle, name
):
    expire_after(collection, 100)
    expire_after(collection, 0, key="at")
    document = {"_id": name, "at": instant(10), "n": 1}
    collection.insert_many([document, {"_id": "free", "at": instant(10)}])
    stored = collection.find_one({"_id": name})
    holds.hold(name)
    clock.advance(1000)
    settle()
    assert collection.find_one({"_id": name}) == stored
    assert collection.count_documents({}) == 1 and collection.estimated_document_count() == 1
    write_refused(collection.update_one, {"_id": name}, {"$set": {"n": 2}})
    write_refused(collection.update_many, {}, {"$inc": {"n": 2}})
    write_refused(collection.replace_one, {"_id": name}, {"n": 2})
    write_refused(collection.delete_one, {"_id": name})
    write_refused(collection.delete_many, {})
    write_refused(collection.find_one_and_delete, {"_id": name})
    write_refused(collection.find_one_and_update, {"_id": name}, {"$set": {"n": 2}})
    collection.update_one({"_id": name}, {"$set": {"n": 1}})  # Changes nothing, so it is no write (T9).
    with pytest.raises(BulkWriteError) as caught:
        collection.bulk_write([InsertOne({"_id": 2}), ReplaceOne({"_id": name}, {"n": 2})])
    assert caught.value.details["writeErrors"][0]["code"] == ILLEGAL_OPERATION
    write_refused(collection.drop)
    write_refused(collection.database.client.drop_database, collection.database.name)
    write_refused(collection.rename, "elsewhere")
    write_refused(lambda: list(collection.database["other"].aggregate([{"$out": collection.name}])))
    assert collection.find_one({"_id": name}) == stored
    assert holds.listed() == [holds.named(name)["_id"]]
    holds.lift(name)
    assert collection.find_one({"_id": name}) is None, "it was overdue"
    settle()
    assert collection.count_documents({"_id": name}) == 0 and holds.listed() == []


def test_t31_a_transaction_that_writes_a_held_document_is_refused(client, collection, holds):
    collection.insert_many([{"_id": 1}, {"_id": 2}])
    holds.hold(1)
    with client.start_session() as session, session.start_transaction():
        collection.update_one({"_id": 2}, {"$set": {"n": 1}}, session=session)
        write_refused(lambda: collection.delete_one({"_id": 1}, session=session))
        session.abort_transaction()
    with client.start_session() as session:
        session.start_transaction()
        collection.delete_one({"_id": 2}, session=session)
        holds.hold(2)
        write_refused(session.commit_transaction)
    assert ids(collection) == [1, 2]


def test_t31_an_expired_document_cannot_be_held(collection, holds, clock, settle):
    expire_after(collection, 10)
    collection.insert_one({"_id": 1})
    clock.advance(10)
    settle()
    holds.hold(1, expected=404)
    holds.lift(1, expected=404)


def test_t31_in_a_held_collection_nothing_expires_or_is_changed(collection, holds, clock, instant, settle):
    expire_after(collection, 0, key="at")
    collection.insert_many([{"_id": "dead", "at": instant(5)}, {"_id": "x", "at": instant(50)}])
    clock.advance(10)
    holds.hold_collection()
    clock.advance(100)
    settle()
    assert ids(collection) == ["x"]
    write_refused(collection.update_one, {"_id": "x"}, {"$set": {"n": 2}})
    write_refused(collection.delete_many, {})
    write_refused(collection.drop)
    write_refused(collection.rename, "elsewhere")
    collection.insert_one({"_id": "new", "at": instant(-50)})
    assert ids(collection) == ["new", "x"], "nothing expires, not even when it is written"
    holds.hold_collection(None)
    assert ids(collection) == []
    settle()
    collection.insert_one({"_id": "dead"})
    assert ids(collection) == ["dead"]


def test_t31_nothing_takes_the_place_of_what_is_held(collection, holds):
    """Replacing a held collection, or overwriting one of its documents, is refused."""
    database = collection.database
    collection.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": 1}])
    other = database["other"]
    other.insert_many([{"_id": 1, "n": 2}])
    holds.hold(1)

    def check(held):
        write_refused(lambda: other.rename(collection.name, dropTarget=True))
        write_refused(lambda: other.aggregate([{"$out": collection.name}]))
        write_refused(lambda: other.aggregate([{"$merge": {"into": collection.name, "whenMatched": "replace"}}]))
        assert list(collection.find(sort=[("_id", 1)])) == [{"_id": 1, "n": 1}, {"_id": 2, "n": 1}]
        assert ids(other) == [1], "nor was the other one lost"
        assert holds.listed() == held

    check([1])
    holds.hold_collection()
    check([1])
    holds.hold_collection(None)
    check([1])
    holds.lift(1)
    # Without the hold it is replaced like any other, and the collection with its name then is not held.
    other.rename(collection.name, dropTarget=True)
    assert list(collection.find()) == [{"_id": 1, "n": 2}] and holds.listed() == []
    collection.delete_one({"_id": 1})


@pytest.mark.parametrize("seconds, lives", [(1000, True), (50, False)])
def test_t31_a_lifted_document_is_judged_by_the_rule_then_in_force(collection, holds, clock, running_purge, seconds, lives):
    expire_after(collection, 10)
    collection.insert_many([{"_id": "x"}, {"_id": "y"}])
    holds.hold("x")
    clock.advance(60)
    index = {"keyPattern": {"_ts": 1}, "expireAfterSeconds": seconds}
    collection.database.command("collMod", collection.name, index=index)
    assert ids(collection) == ["x"]
    # While the purge stands still, this lift would wait for what the rule has left: 503.
    holds.lift("x")
    assert ids(collection) == (["x"] if lives else [])


@pytest.mark.parametrize("how", ["stop", "kill -9"])
def test_t31_holds_outlive_restarts_and_another_name_before_them(tmp_path, how):
    server = Server(data=tmp_path / "data").start()
    try:
        with connect(server) as client:
            server.admin("POST", "purge", {"paused": True})
            for name in ("first", "whole"):
                expire_after(client.db[name], 10)
                client.db[name].insert_one({"_id": "dead"})
            server.clock.advance(10)
            for name in ("first", "whole"):
                client.db[name].insert_many([{"_id": "x"}, {"_id": "y"}])
            # The collection that is held later was renamed before.
            client.db.first.rename("c")
            Holds(server, client.db.c).hold("x")
            Holds(server, client.db.whole).hold_collection()
        server.clock.advance(100)
        server.stop() if how == "stop" else server.kill()
        server.start()
        with connect(server) as client:
            one, whole = client.db.c, client.db.whole
            assert (ids(one), ids(whole)) == (["x"], ["x", "y"])
            for place in (one, whole):
                write_refused(place.update_one, {"_id": "x"}, {"$set": {"n": 2}})
                write_refused(place.delete_one, {"_id": "x"})
                write_refused(place.rename, "elsewhere")
                write_refused(place.drop)
            write_refused(client.drop_database, "db")
            assert Holds(server, one).listed() == ["x"]
            server.admin("POST", "purge", {"paused": False})
            Holds(server, one).lift("x")
            Holds(server, whole).hold_collection(None)
            assert (ids(one), ids(whole)) == ([], [])
            one.rename("elsewhere")
            client.drop_database("db")
        server.stop()
    finally:
        server.kill()


def test_t30_a_guarded_change_wants_to_be_confirmed(collection, holds, clock):
    expire_after(collection, 1000)
    for number in range(10):
        collection.insert_one({"_id": number})
        clock.advance(10)
    assert holds.call("PATCH", "ttl", {"maxInstantExpiry": 0.2})["defaultTtl"] == 1000

    def change(seconds, **more):
        index = {"keyPattern": {"_ts": 1}, "expireAfterSeconds": seconds}
        collection.database.command("collMod", collection.name, index=index, **more)

    text = refused(ILLEGAL_OPERATION, change, 50)
    assert "6 of 10 living items" in text and "bolideConfirmExpiry" in text
    assert collection.count_documents({}) == 10
    change(90)
    assert collection.count_documents({}) == 8
    change(50, bolideConfirmExpiry=True)
    assert collection.count_documents({}) == 4
    refused(ILLEGAL_OPERATION, expire_after, collection, 0, key="at")


def test_t30_forecast_and_dry_run_of_a_collection(collection, holds, clock, instant):
    expire_after(collection, 0, key="at")
    collection.insert_many([{"_id": n, "at": instant(30 * n)} for n in range(1, 7)] + [{"_id": 0}])
    holds.path += "&forecast=minute&count=3&defaultTtl=20"
    clock.advance(30)
    told = holds.call("GET", "ttl")
    assert [interval["items"] for interval in told["forecast"]["intervals"]] == [2, 2, 1]
    assert [told["forecast"][name]["items"] for name in ("overdue", "later", "never")] == [1, 0, 1]
    assert told["dateRules"] == [{"index": "at_1", "expireAfterSeconds": 0, "inForce": True}]
    expire_after(collection, 20)
    assert told["dryRun"]["livingThen"]["items"] == collection.count_documents({}) == 0
    holds.path = holds.path.split("&")[0]
