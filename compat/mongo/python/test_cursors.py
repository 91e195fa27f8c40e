"""Cursors end with the collections they read, belong to their user, and stay on their side of a transaction."""

import pytest

from bolide import EMULATOR_KEY, Server
from conftest import connect, refused
from raw import Line, in_transaction, session_id


@pytest.fixture
def numbers(collection):
    collection.insert_many([{"_id": number} for number in range(30)])
    return collection


@pytest.mark.parametrize("change", ["dropped", "dropped and made again", "renamed away"])
@pytest.mark.parametrize("which", ["coll", "other"])
def test_a_cursor_ends_when_one_of_its_collections_is_another(numbers, database, which, change):
    database["other"].insert_many([{"_id": number} for number in range(100, 130)])
    cursor = numbers.aggregate([{"$unionWith": "other"}], batchSize=5)
    for _ in range(5):
        next(cursor)
    if change == "renamed away":
        database[which].rename("away")
    else:
        database[which].drop()
    if change == "dropped and made again":
        database[which].insert_one({"_id": 1000})
    refused(175, list, cursor)


def test_a_cursor_outlives_the_drop_of_a_collection_that_is_not_its_own(numbers, database):
    database["other"].insert_one({})
    cursor = numbers.find(batch_size=5)
    next(cursor)
    database["other"].drop()
    assert len(list(cursor)) == 29


def more(cursor):
    return {"getMore": cursor, "collection": "coll", "batchSize": 5}


def test_a_cursor_of_a_transaction_is_not_read_outside_of_it(server, database, numbers):
    name, session = database.name, session_id()
    find = {"find": "coll", "batchSize": 5}
    with Line(server) as line:
        inside = line.command(name, in_transaction(find, session, 1, starts=True))["cursor"]["id"]
        assert line.command(name, {**more(inside), "lsid": session})["code"] == 50740
        batch = line.command(name, in_transaction(more(inside), session, 1))["cursor"]["nextBatch"]
        assert [row["_id"] for row in batch] == [5, 6, 7, 8, 9], "the refusal cost it nothing"
        outside = line.command(name, {**find, "lsid": session})["cursor"]["id"]
        assert line.command(name, in_transaction(more(outside), session, 1))["code"] == 50741
        assert len(line.command(name, {**more(outside), "lsid": session})["cursor"]["nextBatch"]) == 5


@pytest.mark.parametrize("end", ["commitTransaction", "abortTransaction"])
def test_a_cursor_ends_with_its_transaction(server, database, numbers, end):
    name, session = database.name, session_id()
    with Line(server) as line:
        find = {"find": "coll", "batchSize": 5}
        cursor = line.command(name, in_transaction(find, session, 1, starts=True))["cursor"]["id"]
        assert line.command("admin", in_transaction({end: 1}, session, 1))["ok"] == 1
        assert line.command(name, {**more(cursor), "lsid": session})["code"] == 43


def test_a_cursor_is_closed_by_its_own_user_or_by_root():
    server = Server(extra=["--mongo-auth"]).start()
    try:
        with connect(server, username="bolide", password=EMULATOR_KEY) as owner:
            owner.admin.command("createUser", "joe", pwd="secret", roles=["readWriteAnyDatabase"])
            owner.admin.command("createUser", "ada", pwd="secret", roles=["root"])
            database = owner["shared"]
            database["coll"].insert_many([{"_id": number} for number in range(30)])
            cursor = database["coll"].find(batch_size=5)
            next(cursor)
            kill = {"killCursors": "coll", "cursors": [cursor.cursor_id]}
            with connect(server, username="joe", password="secret") as stranger:
                reply = stranger["shared"].command(kill)
                assert (reply["cursorsKilled"], reply["cursorsNotFound"]) == ([], [cursor.cursor_id])
                refused(13, stranger["shared"].command, more(cursor.cursor_id))
            assert len(list(cursor)) == 29
            cursor = database["coll"].find(batch_size=5)
            next(cursor)
            assert database.command({**kill, "cursors": [cursor.cursor_id]})["cursorsKilled"] == [cursor.cursor_id]
            cursor = database["coll"].find(batch_size=5)
            next(cursor)
            with connect(server, username="ada", password="secret") as root:
                reply = root["shared"].command({**kill, "cursors": [cursor.cursor_id]})
                assert reply["cursorsKilled"] == [cursor.cursor_id]
        server.stop()
    finally:
        server.kill()
