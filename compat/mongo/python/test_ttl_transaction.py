"""Transactions: one snapshot and one instant; a document that expires before the commit is a conflict (T16)."""

import pytest
from pymongo.errors import OperationFailure

from conftest import expire_after, ids


@pytest.fixture
def mortal(collection):
    """Document 1 expires after a hundred seconds, document 2 never."""
    expire_after(collection, -1)
    collection.insert_many([{"_id": 1, "n": 0, "ttl": 100}, {"_id": 2, "n": 0}])
    return collection


def conflicted(error):
    assert error.code == 112, error.details
    assert error.has_error_label("TransientTransactionError")


@pytest.mark.parametrize("write", ["update", "replace", "delete", "find and modify"])
def test_t16_a_document_that_expires_before_the_commit_conflicts(mortal, client, clock, write):
    with client.start_session() as session:
        session.start_transaction()
        if write == "update":
            mortal.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        elif write == "replace":
            mortal.replace_one({"_id": 1}, {"n": 1, "ttl": -1}, session=session)
        elif write == "delete":
            mortal.delete_one({"_id": 1}, session=session)
        else:
            mortal.find_one_and_update({"_id": 1}, {"$set": {"n": 1}}, session=session)
        mortal.update_one({"_id": 2}, {"$set": {"n": 1}}, session=session)
        clock.advance(101)
        with pytest.raises(OperationFailure) as caught:
            session.commit_transaction()
        conflicted(caught.value)
    assert ids(mortal) == [2]
    assert mortal.find_one({"_id": 2})["n"] == 0, "nothing of the transaction is there"


def test_t16_the_retry_finds_the_document_gone(mortal, client, clock):
    seen = []

    def body(session):
        result = mortal.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        mortal.update_one({"_id": 2}, {"$inc": {"n": 1}}, session=session)
        seen.append(result.matched_count)
        if len(seen) == 1:
            clock.advance(101)

    with client.start_session() as session:
        session.with_transaction(body)
    assert seen == [1, 0]
    assert mortal.find_one({"_id": 2})["n"] == 1


def test_t16_a_transaction_sees_its_own_writes_and_others_do_not(mortal, client):
    with client.start_session() as session:
        session.start_transaction()
        mortal.insert_one({"_id": 3}, session=session)
        mortal.delete_one({"_id": 2}, session=session)
        assert [row["_id"] for row in mortal.find({}, session=session).sort("_id")] == [1, 3]
        assert ids(mortal) == [1, 2]
        session.abort_transaction()
        assert ids(mortal) == [1, 2]


def test_two_transactions_on_one_document_conflict(mortal, client):
    with client.start_session() as one, client.start_session() as two:
        one.start_transaction()
        two.start_transaction()
        mortal.update_one({"_id": 2}, {"$inc": {"n": 1}}, session=one)
        with pytest.raises(OperationFailure) as caught:
            mortal.update_one({"_id": 2}, {"$inc": {"n": 10}}, session=two)
            one.commit_transaction()
            two.commit_transaction()
        conflicted(caught.value)
        if one.in_transaction:
            one.commit_transaction()
    assert mortal.find_one({"_id": 2})["n"] == 1


def test_t15_a_transaction_inserts_over_an_expired_document(mortal, client, clock, settle):
    clock.advance(101)
    settle()
    with client.start_session() as session, session.start_transaction():
        mortal.insert_one({"_id": 1, "new": True}, session=session)
        assert mortal.find_one({"_id": 1}, session=session) == {"_id": 1, "new": True}
    assert mortal.find_one({"_id": 1}) == {"_id": 1, "new": True}
