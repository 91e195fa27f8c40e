"""Unauthenticated clients and users cannot fill the table of sessions, nor read or change credentials."""

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


def test_an_unauthenticated_client_gets_no_session(guarded, owner):
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


# What each role may do in its database, in another one and on the server; whatever is not named is refused.
ACTIONS = {
    "find": lambda db: db["c"].find_one(),
    "count": lambda db: db["c"].count_documents({}),
    "watch": lambda db: db["c"].watch().close(),
    "list collections": lambda db: db.list_collection_names(),
    "list indexes": lambda db: list(db["c"].list_indexes()),
    "statistics": lambda db: db.command("dbStats"),
    "insert": lambda db: db["c"].insert_one({"x": 2}),
    "update": lambda db: db["c"].update_many({"x": 2}, {"$set": {"y": 1}}, upsert=True),
    "delete": lambda db: db["c"].delete_many({"x": 2}),
    "transaction": lambda db: in_transaction(db),
    "index": lambda db: db["c"].create_index("x"),
    "create": lambda db: db.drop_collection(db.create_collection("made")),
    "out": lambda db: db["c"].aggregate([{"$out": "written"}]),
    "client bulk": lambda db: db.client.bulk_write([InsertOne({"x": 2}, namespace=f"{db.name}.c")]),
    "collMod": lambda db: db.command("collMod", "c", validationLevel="off"),
    "validate": lambda db: db.validate_collection("c"),
    "create user": lambda db: (db.command("createUser", "made", pwd="p", roles=["read"]), db.command("dropUser", "made")),
    "users": lambda db: db.command("usersInfo"),
}
SERVER_ACTIONS = {
    "all databases": lambda admin: admin.command("listDatabases", authorizedDatabases=False),
    "server status": lambda admin: admin.command("serverStatus"),
    "all commands": lambda admin: list(admin.aggregate([{"$currentOp": {"allUsers": True}}])),
    "parameter": lambda admin: admin.command("setParameter", 1, quiet=False),
    "watch everything": lambda admin: admin.client.watch().close(),
}
READING = {"find", "count", "watch", "list collections", "list indexes", "statistics"}
WRITING = READING | {"insert", "update", "delete", "transaction", "index", "create", "out", "client bulk"}
ADMINISTERING = {"list collections", "list indexes", "statistics", "index", "create", "collMod", "validate"}
ROLES = {
    "read": (READING, set(), set()),
    "readWrite": (WRITING, set(), set()),
    "dbAdmin": (ADMINISTERING, set(), set()),
    "userAdmin": ({"create user", "users"}, set(), set()),
    "readAnyDatabase": (READING, READING, {"all databases", "watch everything"}),
    "readWriteAnyDatabase": (WRITING, WRITING, {"all databases", "watch everything"}),
    "clusterMonitor": ({"statistics"}, {"statistics"}, {"all databases", "server status", "all commands"}),
    "root": (set(ACTIONS), set(ACTIONS), set(SERVER_ACTIONS)),
}


def in_transaction(db):
    with db.client.start_session() as session, session.start_transaction():
        db["c"].insert_one({"x": 2}, session=session)


@pytest.fixture(scope="module")
def shops(owner):
    for name in ("shop", "elsewhere"):
        owner[name]["c"].insert_one({"x": 1})


def tried(act, place):
    """Whether the server lets it happen; refusals have MongoDB's code and words."""
    try:
        act(place)
    except OperationFailure as failure:
        # A bulk over several collections tells its failure within another.
        refusal = getattr(failure, "error", failure)
        assert refusal.code == 13, refusal.details
        assert refusal.details["errmsg"].startswith("not authorized on "), refusal.details
        return False
    return True


@pytest.mark.parametrize("role", ROLES)
def test_a_role_allows_what_it_says_and_nothing_else(guarded, owner, shops, role):
    here, elsewhere, server = ROLES[role]
    home = "admin" if role.endswith("AnyDatabase") or role in ("clusterMonitor", "root") else "shop"
    owner.admin.command("createUser", role, pwd="secret", roles=[{"role": role, "db": home}])
    with connect(guarded, username=role, password="secret") as user:
        for places, acts, allowed in (
            (user["shop"], ACTIONS, here), (user["elsewhere"], ACTIONS, elsewhere), (user["admin"], SERVER_ACTIONS, server)):
            done = {name for name, act in acts.items() if tried(act, places)}
            assert done == allowed, f"{role} on {places.name}"
    owner.admin.command("dropUser", role)


def test_roles_and_users_end_for_clients_that_are_connected(guarded, owner, shops):
    owner["shop"].command("createUser", "ann", pwd="secret", roles=["readWrite"])
    with connect(guarded, username="ann", password="secret", authSource="shop", maxPoolSize=1) as ann:
        shop = ann["shop"]
        shop["c"].insert_many([{"n": n} for n in range(10)])
        assert ann.list_database_names() == ["shop"]
        cursor = shop["c"].find(batch_size=2)
        next(cursor)
        owner["shop"].command("revokeRolesFromUser", "ann", roles=["readWrite"])
        refused(13, lambda: list(cursor))
        refused(13, shop["c"].find_one)
        assert ann.list_database_names() == []
        owner["shop"].command("grantRolesToUser", "ann", roles=["read"])
        assert shop["c"].find_one() is not None
        refused(13, shop["c"].insert_one, {})
        refused(13, shop.command, "updateUser", "ann", pwd="mine")
        text = refused(13, shop.command, "createUser", "eve", pwd="hush-hush", roles=[])
        assert "hush" not in text and "not authorized on shop to execute command" in text
        owner["shop"].command("dropUser", "ann")
        refused(13, shop["c"].find_one)
    with pytest.raises(OperationFailure) as caught, connect(guarded, username="ann", password="secret", authSource="shop") as gone:
        gone["shop"]["c"].find_one()
    assert caught.value.code == 18
