"""How expiry is defined through indexes: T26 (`_ts`), T27 (any date field), collMod, what is refused, and the monitor."""

import datetime
import time

import pytest
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.timestamp import Timestamp

from bolide import Server
from conftest import connect, expire_after, ids, refused


def create(collection, key, value, **more):
    index = {"key": key, "name": "ttl_index", "expireAfterSeconds": value, **more}
    return collection.database.command("createIndexes", collection.name, indexes=[index])


def change(collection, **index):
    return collection.database.command("collMod", collection.name, index=index)


def expire_of(collection, name):
    return collection.index_information()[name].get("expireAfterSeconds")


def test_t26_the_reply_has_true_figures(collection):
    reply = create(collection, {"_ts": 1}, 10)
    assert (reply["numIndexesBefore"], reply["numIndexesAfter"]) == (1, 2)
    assert reply["createdCollectionAutomatically"] is True
    reply = create(collection, {"_ts": 1}, 10)
    assert (reply["numIndexesBefore"], reply["numIndexesAfter"]) == (2, 2)
    assert not reply.get("createdCollectionAutomatically")


@pytest.mark.parametrize("value", [10, Int64(10), 10.0, -1, 2147483647], ids=repr)
def test_t26_accepted_defaults(collection, value):
    create(collection, {"_ts": 1}, value)
    assert expire_of(collection, "ttl_index") == int(value)


@pytest.mark.parametrize(
    "value", [0, -2, Int64(-1000), 1.5, -0.5, 2147483648.0, Int64(2147483648), "10", None, True, float("nan"), float("inf")],
    ids=repr)
def test_t26_refused_defaults(collection, clock, value):
    collection.insert_one({"_id": 1})
    assert refused(67, create, collection, {"_ts": 1}, value)
    assert list(collection.index_information()) == ["_id_"]
    clock.advance(100)
    assert ids(collection) == [1]


def test_t26_coll_mod_changes_the_default(collection, clock, settle):
    expire_after(collection, 100)
    collection.insert_one({"_id": 1})
    reply = change(collection, keyPattern={"_ts": 1}, expireAfterSeconds=1000)
    assert (reply["expireAfterSeconds_old"], reply["expireAfterSeconds_new"]) == (100, 1000)
    clock.advance(500)
    settle()
    assert ids(collection) == [1]
    change(collection, name="_ts_1", expireAfterSeconds=400)
    settle()
    assert ids(collection) == []
    assert expire_of(collection, "_ts_1") == 400


@pytest.mark.parametrize("drop", ["name", "key", "all"])
def test_t26_dropping_the_index_turns_expiry_off(collection, clock, settle, drop):
    expire_after(collection, 100)
    collection.insert_many([{"_id": 1}, {"_id": 2, "ttl": 50}])
    if drop == "all":
        collection.drop_indexes()
    else:
        collection.drop_index("_ts_1" if drop == "name" else [("_ts", 1)])
    clock.advance(1_000)
    settle()
    assert ids(collection) == [1, 2]


def test_t27_a_date_field(collection, clock, instant, settle):
    expire_after(collection, 60, "at")
    collection.insert_many([
        {"_id": "date", "at": instant()},
        {"_id": "later", "at": instant(100)},
        {"_id": "array", "at": [instant(1000), instant(), "text"]},
        {"_id": "array without dates", "at": ["text", 5]},
        {"_id": "empty array", "at": []},
        {"_id": "missing"},
        {"_id": "null", "at": None},
        {"_id": "number", "at": 5},
        {"_id": "string", "at": "2020-01-01"},
        {"_id": "timestamp", "at": Timestamp(5, 1)},
        {"_id": "nested", "at": {"date": instant(-1000)}},
    ])
    assert collection.estimated_document_count() == 11
    clock.advance(61)
    settle()
    assert "date" not in ids(collection) and "array" not in ids(collection)
    assert collection.estimated_document_count() == 9
    clock.advance(100)
    settle()
    assert "later" not in ids(collection)
    assert collection.estimated_document_count() == 8


def test_t27_the_date_itself_is_the_deadline_with_zero(collection, clock, instant, settle):
    expire_after(collection, 0, [("at", -1)])
    collection.insert_many([{"_id": 1, "at": instant(50)}, {"_id": 2, "at": instant(500)}])
    clock.advance(51)
    settle()
    assert ids(collection) == [2]


def test_t27_dotted_paths_and_descending(collection, clock, instant, settle):
    expire_after(collection, 10, [("a.b", -1)])
    collection.insert_many([
        {"_id": 1, "a": {"b": instant()}}, {"_id": 2, "a": [{"b": 5}, {"b": instant()}]}, {"_id": 3, "a": {"b": instant(500)}},
    ])
    clock.advance(11)
    settle()
    assert ids(collection) == [3]


def test_t27_a_document_written_expired_is_inserted_and_gone(collection, instant, settle):
    expire_after(collection, 10, "at")
    assert collection.insert_one({"_id": 1, "at": instant(-20)}).inserted_id == 1
    collection.insert_one({"_id": 2, "at": datetime.datetime(1900, 1, 1)})
    settle()
    assert ids(collection) == []
    collection.insert_one({"_id": 1})
    assert collection.find_one_and_update({"_id": 1}, {"$set": {"at": instant(-20)}}, return_document=True)["_id"] == 1
    settle()
    assert ids(collection) == [] and collection.estimated_document_count() == 0


def test_t27_a_partial_filter_limits_it(collection, clock, instant, settle):
    expire_after(collection, 10, "at", partialFilterExpression={"state": "done", "size": {"$gt": 5}})
    at = instant()
    collection.insert_many([
        {"_id": 1, "at": at, "state": "done", "size": 6}, {"_id": 2, "at": at, "state": "done", "size": 5},
        {"_id": 3, "at": at}, {"_id": 4, "at": at, "state": "open", "size": 9},
    ])
    clock.advance(11)
    settle()
    assert ids(collection) == [2, 3, 4]
    collection.update_one({"_id": 4}, {"$set": {"state": "done"}})
    settle()
    assert ids(collection) == [2, 3]


def test_t27_several_rules_the_earliest_wins(collection, clock, instant, settle):
    expire_after(collection, 1000)
    expire_after(collection, 100, "a")
    expire_after(collection, 0, "b")
    now = instant()
    collection.insert_many([
        {"_id": "a", "a": now}, {"_id": "b", "a": instant(5000), "b": instant(50)}, {"_id": "ts", "a": instant(5000)},
        {"_id": "own", "ttl": 20}, {"_id": "never", "ttl": -1}, {"_id": "never but a", "ttl": -1, "a": now},
    ])
    for step, gone in ((21, {"own"}), (31, {"b"}), (50, {"a", "never but a"}), (1000, {"ts"})):
        before = set(ids(collection))
        clock.advance(step)
        settle()
        assert before - set(ids(collection)) == gone
        assert collection.estimated_document_count() == len(ids(collection))
    assert ids(collection) == ["never"]


def test_t27_a_hidden_index_still_counts(collection, clock, instant, settle):
    expire_after(collection, 10, "at", hidden=True)
    collection.insert_one({"_id": 1, "at": instant()})
    clock.advance(11)
    settle()
    assert ids(collection) == []


def test_t27_coll_mod_makes_a_plain_index_expire(collection, clock, instant, settle):
    collection.create_index("at")
    collection.insert_many([{"_id": 1, "at": instant()}, {"_id": 2, "at": instant(1000)}, {"_id": 3}])
    clock.advance(100)
    settle()
    assert ids(collection) == [1, 2, 3]
    reply = change(collection, keyPattern={"at": 1}, expireAfterSeconds=50)
    assert "expireAfterSeconds_old" not in reply and reply["expireAfterSeconds_new"] == 50
    settle()
    assert ids(collection) == [2, 3] and collection.estimated_document_count() == 2


def test_t27_an_index_on_documents_that_are_there(collection, clock, instant, settle):
    collection.insert_many([{"_id": 1, "at": instant(-100)}, {"_id": 2, "at": instant(100)}, {"_id": 3, "at": "x"}])
    expire_after(collection, 10, "at")
    settle()
    assert ids(collection) == [2, 3] and collection.estimated_document_count() == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("10", "TTL index 'expireAfterSeconds' option must be numeric, but received a type of 'string"),
        (None, "must be numeric"),
        (True, "must be numeric"),
        (float("nan"), "TTL index 'expireAfterSeconds' option must not be NaN"),
        (Int64(2147483648), "TTL index 'expireAfterSeconds' must be within the range of a 32-bit integer"),
        (1e15, "must be within the range of a 32-bit integer"),
        (float("inf"), "must be within the range of a 32-bit integer"),
        (-1, "TTL index 'expireAfterSeconds' option cannot be less than 0"),
        (-1.5, "TTL index 'expireAfterSeconds' option cannot be less than 0"),
    ],
    ids=repr)
def test_t27_refused_values(collection, value, text):
    assert text in refused(67, create, collection, {"at": 1}, value)
    assert collection.database.list_collection_names() == [] or list(collection.index_information()) == ["_id_"]


@pytest.mark.parametrize("value", [0, 2147483647, Int64(5), 5.0, 5.9, -0.5, Decimal128("5.5")], ids=repr)
def test_t27_accepted_values_are_listed_as_int32(collection, value):
    create(collection, {"at": 1}, value)
    listed = expire_of(collection, "ttl_index")
    assert type(listed) is int and listed == int(float(str(value)))


def test_t27_refused_keys(collection):
    text = refused(67, create, collection, {"a": 1, "b": 1}, 10)
    assert "TTL indexes are single-field indexes, compound indexes do not support TTL" in text
    text = refused(197, create, collection, {"_id": 1}, 10)
    assert "The field 'expireAfterSeconds' is not valid for an _id index specification" in text
    assert "Index type 'wildcard' does not support the 'expireAfterSeconds' option" in refused(67, create, collection, {"$**": 1}, 10)


def test_t27_another_value_for_the_same_index_is_refused(collection):
    create(collection, {"at": 1}, 10)
    refused(85, create, collection, {"at": 1}, 11)
    assert expire_of(collection, "ttl_index") == 10


def test_t27_refused_coll_mods(collection):
    collection.create_index("at", expireAfterSeconds=10)
    collection.create_index([("a", 1), ("b", 1)])
    for code, index in (
        (72, {"name": "at_1", "keyPattern": {"at": 1}, "expireAfterSeconds": 5}),
        (72, {"expireAfterSeconds": 5}),
        (72, {"name": "at_1"}),
        (14, {"name": "at_1", "expireAfterSeconds": "5"}),
        (72, {"name": "at_1", "expireAfterSeconds": -1}),
        (72, {"name": "at_1", "expireAfterSeconds": Int64(2147483648)}),
        (72, {"name": "at_1", "expireAfterSeconds": float("nan")}),
        (27, {"name": "none", "expireAfterSeconds": 5}),
        (72, {"name": "_id_", "expireAfterSeconds": 5}),
        (72, {"name": "a_1_b_1", "expireAfterSeconds": 5}),
    ):
        refused(code, change, collection, **index)
    refused(26, change, collection.database["none"], name="at_1", expireAfterSeconds=5)
    assert expire_of(collection, "at_1") == 10


def test_t26_refused_coll_mods_of_the_default(collection):
    expire_after(collection, 10)
    for value in (0, -2, 1.5, Int64(2147483648)):
        with pytest.raises(Exception, match="_ts|expireAfterSeconds"):
            change(collection, name="_ts_1", expireAfterSeconds=value)
    change(collection, name="_ts_1", expireAfterSeconds=-1)
    assert expire_of(collection, "_ts_1") == -1


def test_t27_time_series_and_clustered_expiry_are_refused_by_name(database):
    for options in (
        {"timeseries": {"timeField": "at"}, "expireAfterSeconds": 10},
        {"clusteredIndex": {"key": {"_id": 1}, "unique": True}, "expireAfterSeconds": 10},
    ):
        with pytest.raises(Exception, match="(?i)time-?series|clustered"):
            database.command("create", "special", **options)


def until(condition):
    """Polls what the background does; a minute is for a machine that is busy."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_t27_the_monitor_parameters_govern_the_purge_and_not_what_is_seen():
    server = Server().start()
    try:
        with connect(server) as client:
            admin, collection = client.admin, client["monitor"]["coll"]
            figures = lambda: admin.command("serverStatus")["metrics"]["ttl"]
            assert admin.command({"setParameter": 1, "ttlMonitorEnabled": False})["was"] is True
            assert admin.command({"setParameter": 1, "ttlMonitorSleepSecs": 1})["was"] == 60
            assert admin.command({"getParameter": 1, "ttlMonitorSleepSecs": 1})["ttlMonitorSleepSecs"] == 1
            with pytest.raises(Exception, match="ttlMonitorSleepSecs"):
                admin.command({"setParameter": 1, "ttlMonitorSleepSecs": 0})
            expire_after(collection, 10)
            collection.insert_many([{"_id": number} for number in range(50)])
            server.clock.advance(11)
            assert ids(collection) == [] and figures()["deletedDocuments"] == 0
            assert server.admin("GET", "purge")[1]["paused"] is True
            before = figures()["passes"]
            admin.command({"setParameter": 1, "ttlMonitorEnabled": True})
            until(lambda: figures()["deletedDocuments"] == 50)
            until(lambda: figures()["passes"] > before)
            assert ids(collection) == []
        server.stop()
    finally:
        server.kill()
