"""Refusals of writes, and the report of many failures at once."""

import pytest
from pymongo.errors import BulkWriteError

from conftest import refused

STATEMENTS = {
    "insert": {"insert": "coll", "documents": [{"_id": 2}]},
    "update": {"update": "coll", "updates": [{"q": {}, "u": {"$set": {"a": 2}}}]},
    "delete": {"delete": "coll", "deletes": [{"q": {}, "limit": 1}]},
}


@pytest.fixture
def stored(collection):
    collection.insert_one({"_id": 1, "a": 1})
    return collection


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_an_unknown_option_is_refused(stored, database, statement):
    assert "mistake" in refused(40415, database.command, {**statement, "mistake": 1})
    assert list(stored.find()) == [{"_id": 1, "a": 1}]


@pytest.mark.parametrize("query", [{"_id": 1}, {"a": 1}], ids=repr)
def test_a_write_with_a_hint_to_no_index_is_refused(stored, query):
    for hint in ("none_1", [("none", 1)]):
        for write in (stored.delete_one, stored.delete_many, stored.find_one_and_delete):
            refused(2, write, query, hint=hint)
        for write in (stored.update_one, stored.update_many, stored.find_one_and_update):
            refused(2, write, query, {"$set": {"a": 2}}, hint=hint)
        refused(2, stored.replace_one, query, {"a": 2}, hint=hint)
    assert list(stored.find()) == [{"_id": 1, "a": 1}]
    assert stored.update_one(query, {"$set": {"seen": True}}, hint="_id_").modified_count == 1
    assert stored.delete_one(query, hint="_id_").deleted_count == 1


def test_many_long_failures_fit_into_one_reply(collection):
    same = "x" * 2_000  # told with each failure, that is more than a message holds
    with pytest.raises(BulkWriteError) as caught:
        collection.insert_many([{"_id": same} for _ in range(22_500)] + [{"_id": "last"}], ordered=False)
    details = caught.value.details
    assert details["nInserted"] == 2
    assert [error["index"] for error in details["writeErrors"]] == list(range(1, 22_500))
    assert {error["code"] for error in details["writeErrors"]} == {11000}
    assert details["writeErrors"][0]["keyValue"] == {"_id": same}
    assert details["writeErrors"][-1]["errmsg"] == ""
