"""Change streams through PyMongo (T28): collections, databases, the deployment; resumption; expiries."""

import pytest
from pymongo.errors import OperationFailure

from bolide import Server
from conftest import connect, expire_after, refused, steer_purge


def short(event):
    """`insert coll 1`; of an expiry `delete coll 1 expired`."""
    parts = [event["operationType"], event.get("ns", {}).get("coll"), event.get("documentKey", {}).get("_id")]
    parts.append("expired" if event.get("bolide") == {"expired": True} else None)
    return " ".join(str(part) for part in parts if part is not None)


def news(stream):
    """All events that there are, without waiting for more."""
    events = []
    while (event := stream.try_next()) is not None:
        events.append(event)
    return events


def told(stream):
    return [short(event) for event in news(stream)]


def test_t28_watch_tells_every_change_of_a_collection(collection):
    """It need not exist."""
    with collection.watch(max_await_time_ms=1) as stream:
        collection.insert_one({"_id": 1, "a": 1, "list": [1, 2, 3]})
        collection.update_one({"_id": 1}, {"$set": {"a": 2, "b.c": 3}, "$pop": {"list": 1}})
        collection.update_one({"_id": 1}, [{"$set": {"d": "$a"}}, {"$unset": "b"}])
        collection.replace_one({"_id": 1}, {"a": 4})
        collection.find_one_and_update({"_id": 1}, {"$inc": {"a": 1}})
        collection.update_one({"_id": 2}, {"$set": {"a": 1}}, upsert=True)
        collection.update_one({"_id": 2}, {"$set": {"a": 1}})
        collection.delete_many({})
        events = news(stream)
    assert [short(event) for event in events] == [
        "insert coll 1", "update coll 1", "update coll 1", "replace coll 1", "update coll 1", "insert coll 2",
        "delete coll 1", "delete coll 2",
    ]
    assert events[0]["fullDocument"] == {"_id": 1, "a": 1, "list": [1, 2, 3]}
    assert events[1]["updateDescription"] == {
        "updatedFields": {"a": 2, "b": {"c": 3}}, "removedFields": [],
        "truncatedArrays": [{"field": "list", "newSize": 2}],
    }
    assert events[2]["updateDescription"] == {"updatedFields": {"d": 2}, "removedFields": ["b"], "truncatedArrays": []}
    assert events[3]["fullDocument"] == {"_id": 1, "a": 4}
    assert all(event["ns"] == {"db": collection.database.name, "coll": "coll"} for event in events)
    tokens = [event["_id"]["_data"] for event in events]
    assert tokens == sorted(set(tokens))
    times = [event["clusterTime"] for event in events]
    assert times == sorted(times)


def test_t28_databases_and_the_deployment(client, database):
    database.drop_collection("coll")
    with database.watch(max_await_time_ms=1) as of_database, client.watch(max_await_time_ms=1) as of_all:
        database["a"].insert_one({"_id": 1})
        database["b"].insert_one({"_id": 2})
        database.client[database.name + "x"]["c"].insert_one({"_id": 3})
        database["a"].drop()
        client.drop_database(database.name + "x")
        database["b"].rename("d")
        assert told(of_database) == ["insert a 1", "insert b 2", "drop a", "rename b"]
        assert told(of_all) == [
            "insert a 1", "insert b 2", "insert c 3", "drop a", "drop c", "dropDatabase", "rename b",
        ]


def test_t28_an_expiry_is_a_delete_as_of_its_instant(collection, clock, settle):
    expire_after(collection, -1)
    with collection.watch(max_await_time_ms=1) as stream:
        start = stream.resume_token
        born = clock.now()
        collection.insert_many([{"_id": number, "ttl": number} for number in (30, 10, 20)])
        clock.advance(15)
        collection.insert_one({"_id": "between"})
        clock.advance(20)
        settle()
        collection.insert_one({"_id": 20, "again": True})
        events = news(stream)
    assert [short(event) for event in events] == [
        "insert coll 30", "insert coll 10", "insert coll 20", "delete coll 10 expired", "insert coll between",
        "delete coll 20 expired", "delete coll 30 expired", "insert coll 20",
    ]
    deaths = [event["wallTime"].timestamp() - born for event in events if "bolide" in event]
    assert [round(seconds) for seconds in deaths] == [10, 20, 30]
    with collection.watch(resume_after=start, max_await_time_ms=1) as stream:
        assert news(stream) == events, "also the tokens"


def test_t28_without_writes_the_expiry_is_told(collection, clock):
    expire_after(collection, 10)
    with collection.watch(max_await_time_ms=1) as stream:
        collection.insert_one({"_id": 1})
        assert told(stream) == ["insert coll 1"]
        clock.advance(11)
        assert told(stream) == ["delete coll 1 expired"]
        assert told(stream) == []


def test_t14_update_lookup_does_not_show_expired_documents(collection, clock, settle):
    expire_after(collection, -1)
    with collection.watch(full_document="updateLookup", max_await_time_ms=1) as stream:
        collection.insert_many([{"_id": 1, "ttl": 10}, {"_id": 2, "ttl": -1}])
        collection.update_many({}, {"$set": {"x": 1}})
        collection.update_one({"_id": 2}, {"$set": {"x": 2}})
        clock.advance(11)
        settle()
        found = [event.get("fullDocument") for event in news(stream) if event["operationType"] == "update"]
    assert found == [None, {"_id": 2, "ttl": -1, "x": 2}, {"_id": 2, "ttl": -1, "x": 2}]


def test_t28_images_of_what_expired(database, clock, settle):
    collection = database.create_collection("coll", changeStreamPreAndPostImages={"enabled": True})
    expire_after(collection, -1)
    with collection.watch(full_document_before_change="required", max_await_time_ms=1) as stream:
        collection.insert_one({"_id": 1, "ttl": 10})
        clock.advance(11)
        settle()
        assert [event.get("fullDocumentBeforeChange") for event in news(stream)] == [None, {"_id": 1, "ttl": 10}]
    other = database["other"]
    with other.watch(full_document_before_change="required", max_await_time_ms=1) as stream:
        other.insert_one({"_id": 1})
        assert short(stream.try_next()) == "insert other 1"
        other.delete_one({"_id": 1})
        with pytest.raises(OperationFailure) as caught:
            stream.try_next()
        assert caught.value.has_error_label("NonResumableChangeStreamError")


def test_t28_every_event_is_a_place_to_go_on(collection, clock):
    expire_after(collection, -1)
    with collection.watch(max_await_time_ms=1, batch_size=2) as stream:
        for number in range(4):
            collection.insert_one({"_id": number, "ttl": 5 * number + 5})
            clock.advance(6)
        collection.drop()
        events = news(stream)
        assert not stream.alive
    assert [short(event) for event in events][-2:] == ["drop coll", "invalidate"]
    for at, event in enumerate(events[:-1]):
        with collection.watch(resume_after=event["_id"], max_await_time_ms=1) as stream:
            assert news(stream) == events[at + 1:]
    refused(260, collection.watch, resume_after=events[-1]["_id"])
    with collection.watch(start_after=events[-1]["_id"], max_await_time_ms=1) as stream:
        collection.insert_one({"_id": "new"})
        assert told(stream) == ["insert coll new"]


def test_a_cut_or_changed_resume_token_is_refused(collection):
    with collection.watch(max_await_time_ms=1) as stream:
        collection.insert_one({"_id": 1})
        [event] = news(stream)
    token = event["_id"]["_data"]
    middle = len(token) // 2
    changed = token[:middle] + ("1" if token[middle] == "0" else "0") + token[middle + 1:]
    for damaged in (token[:-8], token[:-2], token[:-1], changed):
        for option in ("resume_after", "start_after"):
            refused(260, collection.watch, **{option: {"_data": damaged}})


def test_t28_transactions_are_told_when_they_commit(client, database):
    collection = database.create_collection("coll")
    with collection.watch(max_await_time_ms=1) as stream:
        with client.start_session() as session, session.start_transaction():
            collection.insert_one({"_id": 1}, session=session)
            collection.insert_one({"_id": 2}, session=session)
            collection.update_one({"_id": 1}, {"$set": {"x": 1}}, session=session)
            assert told(stream) == []
        assert sorted(told(stream)) == ["insert coll 1", "insert coll 2"]
        with client.start_session() as session:
            session.start_transaction()
            collection.delete_one({"_id": 1}, session=session)
            session.abort_transaction()
        assert told(stream) == []


def test_stages_behind_a_stream(collection):
    stages = [{"$match": {"operationType": {"$ne": "insert"}}}, {"$set": {"half": {"$divide": ["$documentKey._id", 2]}}}]
    with collection.watch(stages, max_await_time_ms=1) as stream:
        collection.insert_many([{"_id": number} for number in range(6)])
        collection.delete_many({"_id": {"$gte": 4}})
        assert [event["half"] for event in news(stream)] == [2, 2.5]
    with collection.watch([{"$project": {"_id": 0}}], max_await_time_ms=1) as stream:
        collection.insert_one({"_id": "x"})
        with pytest.raises(Exception, match="resume token"):
            stream.try_next()
    refused(20, collection.watch, [{"$sort": {"x": 1}}])


def test_t28_the_owner_turns_the_feed_off_and_the_next_stream_turns_it_on(collection, clock, server):
    path = f"ttl/{collection.database.name}/{collection.name}?api=mongodb"
    with collection.watch(max_await_time_ms=1) as stream:
        collection.insert_one({"_id": 1})
        assert told(stream) == ["insert coll 1"]
        token = stream.resume_token
    status, answer = server.admin("PATCH", path, {"historyMinutes": None})
    assert status == 400 and "is watched" in answer["message"], answer
    clock.advance(24 * 60 * 60 + 1)
    status, answer = server.admin("PATCH", path, {"historyMinutes": None})
    assert status == 200 and answer["lifecycle"]["historyMinutes"] is None, answer
    collection.insert_one({"_id": 2})
    with collection.watch(max_await_time_ms=1) as stream:
        collection.insert_one({"_id": 3})
        assert told(stream) == ["insert coll 3"]
    with pytest.raises(OperationFailure) as lost:
        collection.watch(resume_after=token, max_await_time_ms=1)
    assert lost.value.code == 286
    status, answer = server.admin("GET", path)
    assert answer["lifecycle"]["historyMinutes"] == 24 * 60


def test_t28_a_consumer_goes_on_after_the_server_was_killed(tmp_path):
    server = Server(data=str(tmp_path / "data")).start()
    try:
        steer_purge(server, paused=True)
        with connect(server) as client:
            collection = client["db"]["coll"]
            expire_after(collection, -1)
            collection.drop()
            with client["db"].watch(max_await_time_ms=1) as stream:
                start = stream.resume_token
                expire_after(collection, -1)
                collection.insert_many([{"_id": 1, "ttl": 1000}, {"_id": 2, "ttl": 2000}])
                client["db"]["gone"].insert_one({"_id": 3})
                client["db"]["gone"].drop()
                before = news(stream)
        server.kill()
        server.start()
        with connect(server) as client:
            database = client["db"]
            database["new"].insert_one({"_id": 4})
            server.clock.advance(1500)
            database["coll"].insert_one({"_id": 1, "again": True})
            with database.watch(resume_after=start, max_await_time_ms=1) as stream:
                events = news(stream)
            assert events[:len(before)] == before
            assert [short(event) for event in events] == [
                "insert coll 1", "insert coll 2", "insert gone 3", "drop gone", "insert new 4", "delete coll 1 expired",
                "insert coll 1",
            ]
            server.clock.advance(25 * 60 * 60)
            with pytest.raises(OperationFailure) as caught:
                database.watch(resume_after=start)
            assert caught.value.code == 286 and caught.value.has_error_label("NonResumableChangeStreamError")
    finally:
        server.kill()
