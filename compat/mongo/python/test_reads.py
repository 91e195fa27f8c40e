"""What reads cost and what they refuse: distinct, count with a hint, indexes over long arrays."""

import pytest

from conftest import refused


def explained(database, command):
    return database.command("explain", command, verbosity="executionStats")["executionStats"]


def test_distinct_is_bounded_by_its_values_and_not_by_what_it_reads(collection):
    words = ["x" * 100] * 10_000
    for number in range(20):  # together more than fits into one answer
        collection.insert_one({"_id": number, "words": words})
    assert collection.distinct("words") == ["x" * 100]


def test_distinct_refuses_more_values_than_fit_into_an_answer(collection):
    for number in range(17):
        collection.insert_one({"_id": number, "word": f"{number:04}" + "x" * (1 << 20)})
    assert "16mb" in refused(17217, collection.distinct, "word")
    assert len(collection.distinct("word", {"_id": {"$lt": 10}})) == 10


def test_a_computed_document_larger_than_a_document_may_be_is_refused(collection):
    collection.insert_many([{"_id": number, "text": "x" * (1 << 20)} for number in range(60)])
    grown = [{"$group": {"_id": None, "all": {"$push": "$text"}}}]
    refused(10334, collection.aggregate, grown)
    assert list(collection.aggregate([*grown, {"$project": {"n": {"$size": "$all"}}}])) == [{"_id": None, "n": 60}]
    assert len(list(collection.find())) == 60, "a large answer comes in several replies"


@pytest.mark.parametrize("query", [{}, {"a": 1}], ids=repr)
def test_a_count_with_a_hint_to_no_index_is_refused(collection, database, query):
    collection.insert_many([{"_id": number, "a": 1} for number in range(20)])
    for hint in ("none_1", {"none": 1}):
        refused(2, database.command, "count", "coll", query=query, hint=hint)
    assert database.command("count", "coll", query=query, hint="_id_")["n"] == 20


ITEMS = 1_000


@pytest.fixture
def long_array(collection):
    """An index over two documents with a thousand keys each, and one with one key."""
    collection.create_index("a")
    collection.insert_many([
        {"_id": 1, "a": list(range(ITEMS))}, {"_id": 2, "a": list(range(ITEMS))}, {"_id": 3, "a": 5},
    ])
    return collection


@pytest.mark.parametrize(
    ("query", "keys"),
    [({"a": {"$gte": 0}}, 2 * ITEMS + 1), ({"a": {"$in": list(range(0, ITEMS, 2))}}, ITEMS), ({"a": {"$gte": ITEMS - 2}}, 4)],
    ids=["range", "points", "end"])
def test_a_document_with_many_keys_is_read_once(long_array, database, query, keys):
    found = sorted(row["_id"] for row in long_array.find(query, hint="a_1"))
    stats = explained(database, {"find": "coll", "filter": query, "hint": "a_1"})
    assert stats["nReturned"] == len(found) == stats["totalDocsExamined"]
    assert keys <= stats["totalKeysExamined"] <= keys + 1
    assert found == ([1, 2, 3] if query == {"a": {"$gte": 0}} else [1, 2])


def test_a_document_with_many_keys_is_written_once(long_array):
    result = long_array.update_many({"a": {"$gte": 0}}, {"$inc": {"seen": 1}})
    assert (result.matched_count, result.modified_count) == (3, 3)
    assert [row["seen"] for row in long_array.find()] == [1, 1, 1]
    assert long_array.delete_many({"a": {"$gt": 5}}).deleted_count == 2
