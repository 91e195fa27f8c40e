"""A write whose filter names an `_id` and more: the whole filter counts, in every kind of write.

Optimistic locks (`{_id, version}`) and locks by upsert stand on this.
"""

import pytest
from pymongo import DeleteOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

from conftest import connect

STORED = {"_id": 5, "version": 2}
OLD_VERSION = {"_id": 5, "version": 1}


@pytest.fixture(params=["plain", "retryable", "transaction"])
def stored(request, server, collection):
    """One document, and the options of a write: sent plainly, with a number by which it may be repeated, or in a transaction."""
    collection.insert_one(STORED)
    if request.param == "plain":
        yield collection, {}
        return
    with connect(server, retryWrites=request.param == "retryable") as client, client.start_session() as session:
        if request.param == "transaction":
            session.start_transaction()
        yield client[collection.database.name][collection.name], {"session": session}


def test_an_update_misses_a_document_that_only_has_the_id(stored):
    collection, options = stored
    for update in ({"$set": {"seen": True}}, [{"$set": {"seen": True}}], {"$inc": {"version": 0}}):
        for write in (collection.update_one, collection.update_many):
            result = write(OLD_VERSION, update, **options)
            assert (result.matched_count, result.modified_count, result.upserted_id) == (0, 0, None)
    assert collection.replace_one(OLD_VERSION, {"seen": True}, **options).matched_count == 0
    assert collection.find_one({}, **options) == STORED


def test_a_delete_misses_a_document_that_only_has_the_id(stored):
    collection, options = stored
    assert collection.delete_one(OLD_VERSION, **options).deleted_count == 0
    assert collection.delete_many(OLD_VERSION, **options).deleted_count == 0
    assert collection.find_one({}, **options) == STORED


@pytest.mark.parametrize("after", [False, True])
def test_find_and_modify_does_not_hand_out_a_document_that_only_has_the_id(stored, after):
    collection, options = stored
    assert collection.find_one_and_update(OLD_VERSION, {"$inc": {"version": 1}}, return_document=after, **options) is None
    assert collection.find_one_and_replace(OLD_VERSION, {"seen": True}, return_document=after, **options) is None
    assert collection.find_one_and_delete(OLD_VERSION, **options) is None
    assert collection.find_one({}, **options) == STORED


def test_a_bulk_counts_only_what_the_whole_filter_meets(stored):
    collection, options = stored
    result = collection.bulk_write([
        UpdateOne(OLD_VERSION, {"$inc": {"version": 1}}), ReplaceOne(OLD_VERSION, {}), DeleteOne(OLD_VERSION),
        UpdateOne(STORED, {"$inc": {"version": 1}}),
    ], **options)
    assert (result.matched_count, result.modified_count, result.deleted_count) == (1, 1, 0)
    assert collection.find_one({}, **options) == {"_id": 5, "version": 3}


def test_of_two_who_change_one_version_one_wins(collection):
    collection.insert_one(STORED)
    won = [collection.update_one(STORED, {"$inc": {"version": 1}}).matched_count for _ in range(2)]
    assert won == [1, 0]


UPSERTS = {
    "update one": lambda collection, **options: collection.update_one(OLD_VERSION, {"$set": {"mine": 1}}, **options),
    "update many": lambda collection, **options: collection.update_many(OLD_VERSION, {"$set": {"mine": 1}}, **options),
    "replace one": lambda collection, **options: collection.replace_one(OLD_VERSION, {"mine": 1}, **options),
    "find and update":
        lambda collection, **options: collection.find_one_and_update(OLD_VERSION, {"$set": {"mine": 1}}, **options),
    "find and replace": lambda collection, **options: collection.find_one_and_replace(OLD_VERSION, {"mine": 1}, **options),
}


@pytest.mark.parametrize("upsert", UPSERTS.values(), ids=UPSERTS)
def test_an_upsert_that_meets_the_id_alone_is_a_duplicate(stored, upsert):
    collection, options = stored
    with pytest.raises(OperationFailure) as caught:
        upsert(collection, upsert=True, **options)
    assert isinstance(caught.value, DuplicateKeyError), caught.value.details
    assert caught.value.details["keyPattern"] == {"_id": 1} and caught.value.details["keyValue"] == {"_id": 5}
    if not options.get("session") or not options["session"].in_transaction:
        assert list(collection.find()) == [STORED]


def test_an_upsert_in_a_bulk_that_meets_the_id_alone_is_a_duplicate(collection):
    collection.insert_one(STORED)
    with pytest.raises(BulkWriteError) as caught:
        collection.bulk_write([UpdateOne(OLD_VERSION, {"$set": {"mine": 1}}, upsert=True)])
    assert [error["code"] for error in caught.value.details["writeErrors"]] == [11000]
    assert list(collection.find()) == [STORED]
