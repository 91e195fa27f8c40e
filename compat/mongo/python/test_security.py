"""What strangers and users cannot do: fill the table of sessions, read or change credentials."""

import pytest
from pymongo import InsertOne
from pymongo.errors import OperationFailure

from bolide import EMULATOR_KEY, Server
from conftest import connect, refused


@pytest.fixture(scope="module")
def guarded():
    """A server that asks for a user and a key."""
    process = Server(extra=["--mongo-auth"]).start()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def owner(guarded):
    with connect(guarded, username="bolide", password=EMULATOR_KEY) as opened:
        yield opened


def sessions(client):
    return client.admin.command("serverStatus")["logicalSessionRecordCache"]["activeSessionsCount"]


def test_a_stranger_gets_no_session(guarded, owner):
    before = sessions(owner)
    with connect(guarded) as stranger:
        opened = [stranger.start_session() for _ in range(100)]
        for session in opened:
            stranger.admin.command("ping", session=session)
        refused(13, stranger.admin.command, "serverStatus")
        assert sessions(owner) == before
    for session in [owner.start_session() for _ in range(3)]:
        owner.admin.command("ping", session=session)
    assert sessions(owner) == before + 3, "the figure counts"


SECRET = {"from": "system.users", "localField": "a", "foreignField": "b", "as": "found"}
WALK = {"from": "system.users", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "found"}
USERS = {"db": "admin", "coll": "system.users"}
READS = {
    "find": lambda admin: admin["system.users"].find_one(),
    "count": lambda admin: admin["system.users"].count_documents({"user": "joe"}),
    "count by command": lambda admin: admin.command("count", "system.users", query={"user": "joe"}),
    "distinct": lambda admin: admin["system.users"].distinct("credentials"),
    "aggregate": lambda admin: list(admin["system.users"].aggregate([])),
    "lookup": lambda admin: list(admin["harmless"].aggregate([{"$lookup": SECRET}])),
    "graph": lambda admin: list(admin["harmless"].aggregate([{"$graphLookup": WALK}])),
    "union": lambda admin: list(admin["harmless"].aggregate([{"$unionWith": "system.users"}])),
    "facet": lambda admin: list(admin["harmless"].aggregate([{"$facet": {"a": [{"$lookup": SECRET}]}}])),
    "view": lambda admin: admin["joe_view"].find_one(),
    "explain": lambda admin: admin.command(
        "explain", {"find": "system.users", "filter": {"user": "joe"}}, verbosity="executionStats"),
}
WRITES = {
    "insert": lambda admin: admin["system.users"].insert_one({"user": "mallory"}),
    "update": lambda admin: admin["system.users"].update_one({"user": "joe"}, {"$set": {"user": "mallory"}}),
    "delete": lambda admin: admin["system.users"].delete_many({}),
    "find and modify": lambda admin: admin["system.users"].find_one_and_delete({"user": "joe"}),
    "bulk": lambda admin: admin["system.users"].bulk_write([InsertOne({"user": "mallory"})]),
    "client bulk": lambda admin: admin.client.bulk_write([InsertOne({"user": "mallory"}, namespace="admin.system.users")]),
    "merge": lambda admin: list(admin["harmless"].aggregate([{"$merge": {"into": USERS}}])),
    "out": lambda admin: list(admin["harmless"].aggregate([{"$out": USERS}])),
    "ttl index": lambda admin: admin["system.users"].create_index("_ts", expireAfterSeconds=1),
    "collMod": lambda admin: admin.command("collMod", "system.users", validator={"a": 1}),
    "rename": lambda admin: admin["system.users"].rename("mine"),
    "rename onto": lambda admin: admin["harmless"].rename("system.users", dropTarget=True),
    "drop": lambda admin: admin.command("drop", "system.users"),
    "drop the database": lambda admin: admin.command("dropDatabase"),
}


@pytest.fixture(scope="module")
def joe(guarded, owner):
    """A user, and a collection beside the users to come from."""
    owner.admin.command("createUser", "joe", pwd="secret", roles=["root"])
    owner.admin["harmless"].insert_one({"a": 1})
    with connect(guarded, username="joe", password="secret") as opened:
        yield opened


def logs_in(guarded):
    with connect(guarded, username="joe", password="secret") as again:
        assert again.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": "joe", "db": "admin"}]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_credentials_are_not_read(joe, read):
    if read is READS["view"]:
        try:
            joe.admin.create_collection("joe_view", viewOn="system.users")
        except OperationFailure:
            return  # refused when it is made: just as good
    with pytest.raises(OperationFailure) as caught:
        read(joe.admin)
    assert caught.value.code in (13, 73), caught.value.details


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_users_are_changed_by_their_own_commands_only(guarded, joe, write):
    with pytest.raises(OperationFailure):
        write(joe.admin)
    guarded.clock.advance(1000)
    logs_in(guarded)
    assert len(joe.admin.command("usersInfo")["users"]) == 1
