"""Transactions as drivers end them: a commit whose answer was lost is sent again, to whichever process answers now."""

import time

import pytest

from bolide import Server
from conftest import ids
from raw import Line, in_transaction, session_id

COMMIT = {"commitTransaction": 1}


def insert(number):
    return {"insert": "coll", "documents": [{"_id": number}]}


def committed(line, session, number):
    """One insert in a transaction, committed."""
    assert line.command("bank", in_transaction(insert(number), session, number, starts=True))["n"] == 1
    assert line.command("admin", in_transaction(COMMIT, session, number))["ok"] == 1


def unknown(reply):
    assert reply["code"] == 251 and reply["errorLabels"] == ["TransientTransactionError"], reply


@pytest.fixture
def own_server(tmp_path):
    process = Server(data=tmp_path / "data").start()
    yield process
    process.kill()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_commit_is_repeated_after_a_crash(own_server, end):
    session = session_id()
    with Line(own_server) as line:
        line.command("bank", {"create": "coll"})
        committed(line, session, 1)
        assert line.command("admin", in_transaction(COMMIT, session, 1))["ok"] == 1
        assert line.command("bank", in_transaction(insert(2), session, 2, starts=True))["n"] == 1
    getattr(own_server, end)()
    own_server.start()
    with Line(own_server) as line:
        assert line.command("admin", in_transaction(COMMIT, session, 1))["ok"] == 1
        unknown(line.command("admin", in_transaction(COMMIT, session, 2)))
        unknown(line.command("admin", in_transaction(COMMIT, session_id(), 1)))
        found = line.command("bank", {"find": "coll"})["cursor"]["firstBatch"]
        assert found == [{"_id": 1}], "the first is there once, the second not at all"


def test_a_commit_is_repeated_after_its_session_has_ended(server, database):
    session = session_id()
    with Line(server) as line:
        line.command(database.name, {"create": "coll"})
        reply = line.command(database.name, in_transaction(insert(1), session, 1, starts=True))
        assert reply["n"] == 1
        assert line.command("admin", in_transaction(COMMIT, session, 1))["ok"] == 1
        assert line.command("admin", {"endSessions": [session]})["ok"] == 1
        assert line.command("admin", in_transaction(COMMIT, session, 1))["ok"] == 1
    assert ids(database["coll"]) == [1]


def test_an_aborted_transaction_is_not_committed_afterwards(server, database):
    session = session_id()
    with Line(server) as line:
        line.command(database.name, {"create": "coll"})
        line.command(database.name, in_transaction(insert(1), session, 1, starts=True))
        assert line.command("admin", in_transaction({"abortTransaction": 1}, session, 1))["ok"] == 1
        unknown(line.command("admin", in_transaction(COMMIT, session, 1)))
    assert ids(database["coll"]) == []


@pytest.mark.parametrize("write", ["insert", "upsert", "find and modify"])
@pytest.mark.parametrize("end", ["abort", "end of session", "commit"])
def test_a_collection_that_a_transaction_makes_stays_only_with_its_commit(client, database, write, end):
    made = database["made"]
    with client.start_session() as session:
        session.start_transaction()
        if write == "insert":
            made.insert_one({"_id": 1}, session=session)
        elif write == "upsert":
            made.update_one({"_id": 1}, {"$set": {"a": 1}}, upsert=True, session=session)
        else:
            made.find_one_and_update({"_id": 1}, {"$set": {"a": 1}}, upsert=True, session=session)
        assert made.find_one({}, session=session)["_id"] == 1
        if end == "abort":
            session.abort_transaction()
        elif end == "commit":
            session.commit_transaction()
    assert database.list_collection_names() == (["made"] if end == "commit" else [])
    assert ids(made) == ([1] if end == "commit" else [])


def test_t24_a_transaction_whose_client_vanishes_ends_by_itself(own_server):
    with Line(own_server) as line:
        line.command("bank", {"create": "coll"})
        line.command("admin", {"setParameter": 1, "transactionLifetimeLimitSeconds": 1})
    with Line(own_server) as vanishes:
        vanishes.command("bank", in_transaction(insert(1), session_id(), 1, starts=True))
    with Line(own_server) as line:
        until = time.monotonic() + 30
        while line.command("admin", {"serverStatus": 1})["transactions"]["currentOpen"] != 0:
            assert time.monotonic() < until, "it is open for 30 s, and should last 1 s"
