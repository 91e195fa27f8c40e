"""The collation of a collection holds for whatever does not bring its own, `_id` included."""

import pytest
from pymongo.errors import DuplicateKeyError

CASELESS = {"locale": "en", "strength": 2}


@pytest.fixture
def caseless(database):
    made = database.create_collection("caseless", collation=CASELESS)
    made.insert_many([{"_id": "A", "word": "x"}, {"_id": "B", "word": "X"}, {"_id": "C", "word": "y"}])
    return made


def test_filters_and_distinct_follow_it(caseless):
    assert caseless.count_documents({"word": "X"}) == 2
    assert [row["_id"] for row in caseless.find({"word": {"$in": ["Y"]}})] == ["C"]
    assert len(caseless.distinct("word")) == 2
    assert caseless.update_many({"word": "X"}, {"$set": {"seen": True}}).modified_count == 2
    assert caseless.delete_many({"word": "Y"}).deleted_count == 1


def test_pipelines_and_sorts_follow_it(caseless):
    groups = caseless.aggregate([{"$match": {"word": "X"}}, {"$group": {"_id": "$word", "n": {"$sum": 1}}}])
    assert [row["n"] for row in groups] == [2]
    caseless.insert_one({"_id": "D", "word": "Z"})
    assert [row["word"].lower() for row in caseless.find().sort("word", 1)] == ["x", "x", "y", "z"]


def test_a_request_with_its_own_collation_follows_that(caseless):
    assert caseless.count_documents({"word": "X"}, collation={"locale": "simple"}) == 1
    assert caseless.distinct("word", collation={"locale": "simple"}) == ["X", "x", "y"]


def test_the_id_follows_it(caseless):
    assert caseless.find_one({"_id": "a"})["_id"] == "A"
    with pytest.raises(DuplicateKeyError):
        caseless.insert_one({"_id": "a"})
    assert caseless.update_one({"_id": "a"}, {"$set": {"seen": True}}).matched_count == 1
    assert caseless.replace_one({"_id": "b"}, {"word": "new"}, upsert=True).upserted_id is None
    assert caseless.delete_one({"_id": "c"}).deleted_count == 1
    assert caseless.count_documents({}) == 2


def test_indexes_inherit_it_and_say_so(caseless, database):
    caseless.create_index("word")
    caseless.create_index("exact", collation={"locale": "simple"})
    indexes = caseless.index_information()
    for name in ("_id_", "word_1"):
        assert {**indexes[name]["collation"], **CASELESS} == indexes[name]["collation"], name
    assert "collation" not in indexes["exact_1"]
    assert sorted(row["_id"] for row in caseless.find({"word": "X"}, hint="word_1")) == ["A", "B"]
    [listed] = database.list_collections(filter={"name": "caseless"})
    assert listed["options"]["collation"]["strength"] == 2
    assert listed["idIndex"]["collation"]["strength"] == 2


def test_a_unique_index_follows_it(caseless):
    caseless.create_index("key", unique=True, sparse=True)
    caseless.insert_one({"_id": 1, "key": "k"})
    with pytest.raises(DuplicateKeyError):
        caseless.insert_one({"_id": 2, "key": "K"})
