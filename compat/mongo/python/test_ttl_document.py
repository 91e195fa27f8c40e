"""A document's own `ttl` beside the collection's default: T6, T9, T10, T12 and the README's five inserts."""

import pytest
from bson.decimal128 import Decimal128
from bson.int64 import Int64

from conftest import expire_after, ids


def test_t6_the_five_inserts(collection, clock, settle):
    expire_after(collection, 10)
    collection.insert_many([
        {"_id": 1, "location": "Paris", "ttl": 20.0},
        {"_id": 2, "location": "Paris", "ttl": 20},
        {"_id": 3, "location": "Paris", "ttl": Int64(20)},
        {"_id": 4, "location": "Paris", "ttl": 20.5},
        {"_id": 5, "location": "Paris", "ttl": Int64(2147483649)},
    ])
    assert ids(collection) == [1, 2, 3, 4, 5]
    clock.advance(12)
    settle()
    assert ids(collection) == [1, 2, 3]
    clock.advance(9)
    settle()
    assert ids(collection) == []
    assert collection.estimated_document_count() == 0


HONOURED = [1000, Int64(1000), 1000.0, 2147483647, 2147483647.0, -1, Int64(-1), -1.0]
IGNORED = [
    20.5, Int64(2147483649), Int64(-2147483649), 2147483648.0, 1e300, "1000", 0, 0.0, -0.0, Int64(0), -5, -2.0, None, True,
    Decimal128("1000"), float("nan"), float("inf"), [1000], {"ttl": 1000}, {}, b"1000",
]


def test_t6_each_type_of_ttl(collection, clock, settle):
    expire_after(collection, 100)
    values = HONOURED + IGNORED
    collection.insert_many([{"_id": number, "ttl": value} for number, value in enumerate(values)])
    collection.insert_many([
        {"_id": 1001}, {"_id": 1002, "TTL": 1000}, {"_id": 1003, "Ttl": -1}, {"_id": 1004, "nested": {"ttl": 1000}},
    ])
    assert collection.count_documents({}) == len(values) + 4
    clock.advance(101)
    settle()
    assert [values[number] for number in ids(collection)] == HONOURED


@pytest.mark.parametrize("value", [20.0, 20, Int64(20), 20.5, Int64(2147483649), "20", -5, None, Decimal128("20")], ids=repr)
def test_t6_a_ttl_is_stored_and_returned_as_it_came(collection, value):
    collection.insert_one({"_id": 1, "ttl": value})
    found = collection.find_one({"_id": 1})["ttl"]
    assert found == value and type(found) is type(value)


def test_t3_without_a_default_a_ttl_has_no_effect(collection, clock, settle):
    collection.insert_one({"_id": 1, "ttl": 10})
    clock.advance(1_000)
    settle()
    assert ids(collection) == [1]


def test_t2_a_default_of_minus_one_leaves_only_own_ttls(collection, clock, settle):
    expire_after(collection, -1)
    collection.insert_many([{"_id": 1}, {"_id": 2, "ttl": 10}, {"_id": 3, "ttl": -1}, {"_id": 4, "ttl": 20.5}])
    clock.advance(11)
    settle()
    assert ids(collection) == [1, 3, 4]


REAL = {
    "set": {"$set": {"a": 2}},
    "pipeline": [{"$set": {"a": 2}}],
    "inc": {"$inc": {"a": 1}},
    "push": {"$push": {"list": 1}},
    "unset": {"$unset": {"a": ""}},
    "replacement": {"a": 2},
}
NOTHING = {
    "set": {"$set": {"a": 1}},
    "pipeline": [{"$set": {"a": 1}}],
    "inc": {"$inc": {"a": 0}},
    "unset": {"$unset": {"none": ""}},
    "max": {"$max": {"a": 0}},
    "add to set": {"$addToSet": {"set": 1}},
    "replacement": {"a": 1, "set": [1]},
}


def apply(collection, update):
    if isinstance(update, dict) and not any(name.startswith("$") for name in update):
        return collection.replace_one({"_id": 1}, update)
    return collection.update_one({"_id": 1}, update)


@pytest.mark.parametrize("update", REAL.values(), ids=REAL)
def test_t9_a_write_restarts_the_countdown(collection, clock, update):
    expire_after(collection, 100)
    collection.insert_one({"_id": 1, "a": 1, "set": [1]})
    clock.advance(60)
    assert apply(collection, update).modified_count == 1
    clock.advance(60)
    assert ids(collection) == [1]
    clock.advance(41)
    assert ids(collection) == []


@pytest.mark.parametrize("update", NOTHING.values(), ids=NOTHING)
def test_t9_an_update_that_changes_nothing_restarts_nothing(collection, clock, update):
    expire_after(collection, 100)
    collection.insert_one({"_id": 1, "a": 1, "set": [1]})
    clock.advance(60)
    result = apply(collection, update)
    assert (result.matched_count, result.modified_count) == (1, 0)
    clock.advance(41)
    assert ids(collection) == []


def test_t9_find_and_modify_counts_like_an_update(collection, clock):
    expire_after(collection, 100)
    collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 1}])
    clock.advance(60)
    collection.find_one_and_update({"_id": 1}, {"$set": {"a": 2}})
    collection.find_one_and_update({"_id": 2}, {"$set": {"a": 1}})
    list(collection.find())
    clock.advance(60)
    assert ids(collection) == [1]


def test_t10_a_ttl_is_changed_like_any_field(collection, clock, settle):
    expire_after(collection, 100)
    collection.insert_many([{"_id": 1, "ttl": 50}, {"_id": 2, "ttl": -1}, {"_id": 3}])
    collection.update_one({"_id": 1}, {"$unset": {"ttl": ""}})
    collection.update_one({"_id": 2}, {"$set": {"ttl": 20}})
    collection.update_one({"_id": 3}, {"$set": {"ttl": -1}})
    clock.advance(60)
    settle()
    assert ids(collection) == [1, 3]
    clock.advance(60)
    settle()
    assert ids(collection) == [3]


def test_t26_a_field_called_ts_is_the_users_own(collection, clock, instant):
    expire_after(collection, 100)
    collection.insert_many([{"_id": 1, "_ts": 5}, {"_id": 2, "_ts": instant(-1000)}, {"_id": 3}])
    assert ids(collection) == [1, 2, 3]
    assert collection.find_one({"_ts": 5})["_id"] == 1
    assert "_ts" not in collection.find_one({"_id": 3})
    clock.advance(101)
    assert ids(collection) == []
