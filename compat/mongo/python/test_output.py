"""`$out` and `$merge`: the validator, the unique keys and the rules of expiry of their target hold for what they write."""

import pytest

from conftest import expire_after, ids, refused


@pytest.fixture
def source(database):
    return database["source"]


def run(source, *stages, **options):
    return list(source.aggregate(list(stages), **options))


MERGES = {
    "merge": {"$merge": "target"},
    "replace": {"$merge": {"into": "target", "whenMatched": "replace"}},
    "pipeline": {"$merge": {"into": "target", "whenMatched": [{"$set": {"number": "$$new.number"}}]}},
    "out": {"$out": "target"},
}


@pytest.mark.parametrize("stored", [[], [{"_id": 1, "number": 7}]], ids=["inserted", "changed"])
@pytest.mark.parametrize("stage", MERGES.values(), ids=MERGES)
def test_the_validator_of_the_target_holds(source, database, stage, stored):
    target = database.create_collection("target", validator={"number": {"$type": "int"}})
    if stored:
        target.insert_many(stored)
    source.insert_one({"_id": 1, "number": "text"})
    refused(121, run, source, stage)
    assert list(target.find()) == stored
    run(source, stage, bypassDocumentValidation=True)
    assert list(target.find()) == [{"_id": 1, "number": "text"}]
    source.update_one({"_id": 1}, {"$set": {"number": 8}})
    run(source, stage)
    assert list(target.find()) == [{"_id": 1, "number": 8}]


def test_out_keeps_the_options_and_indexes_of_what_it_replaces(source, database):
    target = database.create_collection("target", validator={"number": {"$gt": 0}}, collation={"locale": "en", "strength": 2})
    target.create_index("key", unique=True)
    target.create_index([("a", 1), ("b", -1)], name="both", partialFilterExpression={"a": {"$gt": 1}})
    indexes, options = target.index_information(), target.options()
    source.insert_many([{"_id": number, "key": number, "number": 1} for number in range(1, 4)])
    run(source, {"$out": "target"})
    assert target.index_information() == indexes and target.options() == options
    assert ids(target) == [1, 2, 3]
    assert [row["_id"] for row in target.find({"key": 2}, hint="key_1")] == [2]
    assert database.list_collection_names(filter={"name": {"$regex": "^tmp"}}) == []


def test_a_duplicate_unique_key_fails_out_and_leaves_the_target(source, database):
    target = database["target"]
    target.create_index("key", unique=True)
    target.insert_one({"_id": "old", "key": 1})
    source.insert_many([{"_id": 1, "key": 2}, {"_id": 2, "key": 2}])
    text = refused(11000, run, source, {"$out": "target"})
    assert "target" in text and "key_1" in text
    assert list(target.find()) == [{"_id": "old", "key": 1}]
    assert sorted(database.list_collection_names()) == ["source", "target"], "what was staged is gone"


def test_t26_t27_what_out_writes_expires_by_the_rules_of_the_target(source, database, clock, instant, settle):
    target = database["target"]
    expire_after(target, 100)
    expire_after(target, 0, "at")
    source.insert_many([
        {"_id": "default"}, {"_id": "own", "ttl": 20}, {"_id": "date", "ttl": -1, "at": instant(50)}, {"_id": "never", "ttl": -1},
    ])
    run(source, {"$out": "target"})
    for step, living in ((21, ["date", "default", "never"]), (30, ["default", "never"]), (50, ["never"])):
        clock.advance(step)
        settle()
        assert ids(target) == living
        assert target.estimated_document_count() == len(living)
    assert ids(source) == ["date", "default", "never", "own"], "the source has no rules"


def test_t26_what_merge_writes_expires_by_the_rules_of_the_target(source, database, clock, settle):
    target = database["target"]
    expire_after(target, 100)
    target.insert_one({"_id": 1})
    source.insert_many([{"_id": 1, "fresh": True}, {"_id": 2, "ttl": 20}])
    clock.advance(60)
    run(source, {"$merge": "target"})
    clock.advance(60)
    settle()
    assert ids(target) == [1], "T9: changed by the merge, it lives longer; its own ttl ended the other"
    clock.advance(41)
    settle()
    assert ids(target) == []


@pytest.mark.parametrize("name", ["x$y", ".x", "x\0y"], ids=repr)
def test_a_name_that_no_command_can_say_is_no_target(source, database, name):
    source.insert_one({"_id": 1})
    for stage in ({"$out": name}, {"$merge": name}, {"$merge": {"into": name}}, {"$out": {"db": database.name, "coll": name}}):
        refused(73, run, source, stage)
    refused(73, run, source, {"$out": {"db": "a$b", "coll": "fine"}})
    assert database.list_collection_names() == ["source"]
