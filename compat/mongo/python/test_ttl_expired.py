"""Expired documents do not exist for any command, purged or not: T14, T15, T16."""

import pytest
from pymongo import ASCENDING, DeleteOne, InsertOne, ReturnDocument, UpdateOne
from pymongo.errors import DuplicateKeyError

from conftest import expire_after, ids

LIVING = [3, 4, 5]


def mortality(rule, number, instant):
    """The fields that let documents 0, 1 and 2 expire within ten seconds and the others not, by each kind of rule."""
    dies = number < 3
    if rule == "date":
        return {"ttl": -1, "at": instant(10 if dies else 1_000_000)}
    if rule == "default":
        return {} if dies else {"ttl": -1}
    return {"ttl": 10 if dies else -1}


@pytest.fixture(params=["own ttl", "default", "date"])
def half_dead(request, collection, clock, instant, settle):
    """Documents 0 to 5 in three kinds of index; 0, 1 and 2 have expired."""
    expire_after(collection, 10 if request.param == "default" else -1)
    if request.param == "date":
        expire_after(collection, 0, "at")
    collection.create_index([("group", 1), ("number", 1)])
    collection.create_index("key", unique=True)
    collection.create_index("words")
    collection.insert_many([
        {
            "_id": number, "number": number, "group": number % 2, "key": f"k{number}", "words": ["all", f"w{number}"],
            "next": number + 1, **mortality(request.param, number, instant),
        }
        for number in range(6)
    ])
    clock.advance(11)
    settle()
    return collection


def aggregate(collection, *stages, **options):
    return list(collection.aggregate(list(stages), **options))


def test_t14_find_and_its_options(half_dead):
    every = {"group": {"$gte": 0}}
    assert ids(half_dead) == LIVING
    assert [row["_id"] for row in half_dead.find().sort("_id", -1)] == LIVING[::-1]
    assert [row["_id"] for row in half_dead.find().sort("number", 1).limit(2)] == [3, 4]
    assert [row["_id"] for row in half_dead.find().sort("_id", 1).skip(1)] == [4, 5]
    for hint in ("_id_", "group_1_number_1", "key_1", "words_1", [("$natural", 1)], [("$natural", -1)]):
        assert sorted(row["_id"] for row in half_dead.find(every).hint(hint)) == LIVING, hint
    assert [row["number"] for row in half_dead.find(every, {"_id": 0, "number": 1, "group": 1}).sort("number")] == LIVING
    assert half_dead.find_one({"_id": 1}) is None
    assert half_dead.find_one({"key": "k1"}) is None
    assert half_dead.find_one({"words": "w1"}) is None
    assert list(half_dead.find({"$or": [{"_id": 0}, {"key": "k1"}, {"words": "w2"}]})) == []


def test_t14_every_kind_of_index(collection, clock, settle):
    """Made before and after the expiry."""
    kinds = {
        "text": ([("word", "text")], {}, {"$text": {"$search": "word"}}),
        "sphere": (
            [("place", "2dsphere")], {}, {"place": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}),
        "hashed": ([("hash", "hashed")], {}, {"hash": 1}),
        "wildcard": ([("some.$**", 1)], {}, {"some.thing": {"$gte": 0}}),
        "sparse": ([("sparse", 1)], {"sparse": True}, {"sparse": {"$gt": 0}}),
        "partial": ([("part", 1)], {"partialFilterExpression": {"part": {"$gt": 0}}}, {"part": {"$gt": 0}}),
        "compound": ([("hash", 1), ("part", -1)], {}, {"hash": 1, "part": {"$gt": 0}}),
    }
    expire_after(collection, -1)
    later = [name for position, name in enumerate(kinds) if position % 2]
    for name, (key, options, _) in kinds.items():
        if name not in later:
            collection.create_index(key, name=name, **options)
    collection.insert_many([
        {
            "_id": number, "word": f"word w{number}", "place": {"type": "Point", "coordinates": [number, 0]}, "hash": 1,
            "some": {"thing": number}, "sparse": 1, "part": 1, "ttl": 10 if number < 3 else -1,
        }
        for number in range(6)
    ])
    clock.advance(11)
    settle()
    for name in later:
        key, options, _ = kinds[name]
        collection.create_index(key, name=name, **options)
    for name, (_, _, query) in kinds.items():
        hinted = {} if name in ("text", "sphere") else {"hint": name}
        assert sorted(row["_id"] for row in collection.find(query, **hinted)) == LIVING, name
        used = collection.find(query, **hinted).explain()["queryPlanner"]["winningPlan"]
        assert name in str(used), "the index is what is tested"


def test_t14_counts_and_distinct(half_dead, database):
    assert half_dead.count_documents({}) == 3
    assert half_dead.count_documents({"group": 0}) == 1
    assert half_dead.estimated_document_count() == 3
    assert database.command("count", "coll")["n"] == 3
    assert database.command("count", "coll", query={"group": 0}, hint="group_1_number_1")["n"] == 1
    assert half_dead.distinct("number") == LIVING
    assert sorted(half_dead.distinct("words")) == ["all", "w3", "w4", "w5"]
    assert half_dead.distinct("key", {"group": 0}) == ["k4"]


def test_t14_statistics(half_dead, database):
    stats = database.command("collStats", "coll")
    assert stats["count"] == 3
    assert database.command("dbStats")["objects"] == 3
    storage = aggregate(half_dead, {"$collStats": {"count": {}, "storageStats": {}}})[0]
    assert storage["count"] == 3 and storage["storageStats"]["count"] == 3
    assert database.command("validate", "coll")["nrecords"] == 3


def test_t14_aggregation(half_dead):
    assert aggregate(half_dead, {"$group": {"_id": None, "n": {"$sum": 1}, "least": {"$min": "$number"}}}) == [
        {"_id": None, "n": 3, "least": 3}
    ]
    assert aggregate(half_dead, {"$match": {"group": 0}}, {"$count": "n"}) == [{"n": 1}]
    assert sorted(row["_id"] for row in aggregate(half_dead, {"$sample": {"size": 10}})) == LIVING
    assert aggregate(half_dead, {"$sort": {"number": 1}}, {"$limit": 1}, {"$project": {"number": 1}}) == [
        {"_id": 3, "number": 3}
    ]
    facets = {"all": [{"$count": "n"}], "even": [{"$match": {"group": 0}}, {"$project": {"_id": 1}}]}
    assert aggregate(half_dead, {"$facet": facets}) == [{"all": [{"n": 3}], "even": [{"_id": 4}]}]
    assert aggregate(half_dead, {"$unwind": "$words"}, {"$sortByCount": "$words"}, {"$limit": 1}) == [
        {"_id": "all", "count": 3}
    ]


def test_t14_joins_do_not_see_expired_documents(half_dead, database):
    orders = database["orders"]
    orders.insert_many([{"_id": number, "of": number, "start": 0} for number in range(6)])
    plain = {"$lookup": {"from": "coll", "localField": "of", "foreignField": "_id", "as": "found"}}
    found = aggregate(orders, plain, {"$match": {"found": {"$ne": []}}}, {"$sort": {"_id": 1}})
    assert [row["_id"] for row in found] == LIVING
    inner = [{"$match": {"$expr": {"$eq": ["$number", "$$of"]}}}]
    nested = {"$lookup": {"from": "coll", "let": {"of": "$of"}, "pipeline": inner, "as": "found"}}
    found = aggregate(orders, nested, {"$match": {"found": {"$ne": []}}}, {"$sort": {"_id": 1}})
    assert [row["_id"] for row in found] == LIVING
    walk = {"from": "coll", "startWith": "$start", "connectFromField": "next", "connectToField": "_id", "as": "path"}
    assert aggregate(orders, {"$match": {"_id": 0}}, {"$graphLookup": walk})[0]["path"] == []
    walk["startWith"] = {"$literal": 3}
    reached = aggregate(orders, {"$match": {"_id": 0}}, {"$graphLookup": walk})[0]["path"]
    assert sorted(row["_id"] for row in reached) == LIVING
    union = aggregate(orders, {"$match": {"_id": 0}}, {"$unionWith": {"coll": "coll", "pipeline": []}}, {"$count": "n"})
    assert union == [{"n": 4}]


def test_t14_out_and_merge_leave_out_expired_documents(half_dead, database):
    aggregate(half_dead, {"$project": {"number": 1}}, {"$out": "copy"})
    assert ids(database["copy"]) == LIVING
    database["target"].insert_one({"_id": 3, "old": True})
    aggregate(half_dead, {"$project": {"number": 1}}, {"$merge": "target"})
    assert ids(database["target"]) == LIVING
    assert database["target"].find_one({"_id": 3}) == {"_id": 3, "old": True, "number": 3}


def test_t14_a_merge_into_an_expired_document_inserts(half_dead, database):
    database["source"].insert_many([{"_id": 0, "fresh": True}, {"_id": 3, "fresh": True}])
    aggregate(database["source"], {"$merge": {"into": "coll", "whenMatched": "merge", "whenNotMatched": "insert"}})
    assert half_dead.find_one({"_id": 0}) == {"_id": 0, "fresh": True}
    assert half_dead.find_one({"_id": 3})["number"] == 3


def test_t14_explain_counts_the_living_alone(half_dead, database):
    for query, examined in (({}, 3), ({"group": 0}, 1), ({"key": "k1"}, 0), ({"_id": 1}, 0)):
        plan = database.command("explain", {"find": "coll", "filter": query}, verbosity="executionStats")
        stats = plan["executionStats"]
        assert stats["nReturned"] == examined, query
        assert stats["totalDocsExamined"] == examined, query
        assert stats["totalKeysExamined"] <= examined + 1, query


def test_t15_ids_and_unique_values_are_free(half_dead):
    half_dead.insert_one({"_id": 0, "key": "k1"})
    assert half_dead.find_one({"key": "k1"})["_id"] == 0
    with pytest.raises(DuplicateKeyError):
        half_dead.insert_one({"_id": 0, "key": "other"})
    with pytest.raises(DuplicateKeyError):
        half_dead.insert_one({"_id": 100, "key": "k1"})
    half_dead.update_one({"_id": 3}, {"$set": {"key": "k2"}})
    with pytest.raises(DuplicateKeyError):
        half_dead.update_one({"_id": 4}, {"$set": {"key": "k2"}})
    with pytest.raises(DuplicateKeyError):
        half_dead.insert_one({"_id": 101, "key": "k5"})
    half_dead.insert_one({"_id": 102, "key": "k3"})


def test_t15_the_new_document_stays_when_the_expired_one_is_purged(half_dead, settle, clock):
    half_dead.insert_one({"_id": 1, "key": "k1", "ttl": -1, "new": True})
    half_dead.insert_one({"_id": 200, "key": "k2", "ttl": -1})
    clock.advance(1)
    settle()
    assert half_dead.find_one({"key": "k1"})["new"]
    assert half_dead.find_one({"_id": 1})["new"]
    assert half_dead.find_one({"key": "k2"})["_id"] == 200
    assert half_dead.estimated_document_count() == 5


def test_t15_updates_and_deletes_find_nothing(half_dead):
    for dead in range(3):
        assert half_dead.update_one({"_id": dead}, {"$set": {"a": 1}}).matched_count == 0
        assert half_dead.replace_one({"key": f"k{dead}"}, {"a": 1}).matched_count == 0
        assert half_dead.delete_one({"_id": dead}).deleted_count == 0
        assert half_dead.find_one_and_update({"_id": dead}, {"$set": {"a": 1}}) is None
        assert half_dead.find_one_and_replace({"number": dead}, {"a": 1}) is None
        assert half_dead.find_one_and_delete({"words": f"w{dead}"}) is None
    assert half_dead.update_many({}, {"$set": {"a": 1}}).matched_count == 3
    assert half_dead.delete_many({}).deleted_count == 3
    assert half_dead.estimated_document_count() == 0


def test_t15_an_upsert_on_an_expired_document_inserts(half_dead):
    result = half_dead.update_one({"_id": 0}, {"$set": {"a": 1}, "$setOnInsert": {"new": True}}, upsert=True)
    assert (result.matched_count, result.upserted_id) == (0, 0)
    assert half_dead.find_one({"_id": 0}) == {"_id": 0, "a": 1, "new": True}
    result = half_dead.replace_one({"_id": 1}, {"b": 1, "key": "k1"}, upsert=True)
    assert result.upserted_id == 1
    found = half_dead.find_one_and_update(
        {"_id": 2}, {"$inc": {"number": 7}, "$set": {"key": "k2"}}, upsert=True, return_document=ReturnDocument.AFTER)
    assert found == {"_id": 2, "number": 7, "key": "k2"}
    assert half_dead.estimated_document_count() == 6


def test_t15_a_bulk_treats_expired_documents_as_absent(half_dead):
    result = half_dead.bulk_write([
        InsertOne({"_id": 0, "key": "k0"}),
        UpdateOne({"_id": 1}, {"$set": {"key": "k1"}}, upsert=True),
        UpdateOne({"_id": 2}, {"$set": {"a": 1}}),
        DeleteOne({"_id": 2}),
    ])
    assert (result.inserted_count, result.upserted_count, result.matched_count, result.deleted_count) == (1, 1, 0, 0)


def test_t15_a_bulk_over_collections_treats_expired_documents_as_absent(half_dead, client):
    namespace = f"{half_dead.database.name}.{half_dead.name}"
    result = client.bulk_write([
        InsertOne({"_id": 0, "key": "k0"}, namespace=namespace),
        UpdateOne({"_id": 1}, {"$set": {"key": "k1"}}, upsert=True, namespace=namespace),
        UpdateOne({"_id": 2}, {"$set": {"a": 1}}, namespace=namespace),
        DeleteOne({"_id": 2}, namespace=namespace),
    ])
    assert (result.inserted_count, result.upserted_count, result.matched_count, result.deleted_count) == (1, 1, 0, 0)


def test_t15_a_unique_index_build_ignores_expired_documents(collection, clock, settle):
    expire_after(collection, -1)
    collection.insert_many([{"_id": 1, "a": 1, "ttl": 10}, {"_id": 2, "a": 1}])
    with pytest.raises(DuplicateKeyError):
        collection.create_index("a", unique=True)
    clock.advance(11)
    settle()
    collection.create_index("a", unique=True)
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 3, "a": 1})


@pytest.fixture
def ninety(collection):
    """Ninety documents of which every third expires after ten seconds."""
    expire_after(collection, -1)
    collection.insert_many([{"_id": number, "ttl": 10 if number % 3 == 0 else -1} for number in range(90)])
    return collection


def test_t16_a_cursor_does_not_send_what_has_expired_since(ninety, clock, settle):
    for options in ({}, {"sort": [("_id", ASCENDING)]}, {"hint": "_id_"}):
        cursor = ninety.find({}, batch_size=10, **options)
        first = [next(cursor)["_id"] for _ in range(10)]
        clock.advance(11)
        settle()
        rest = [row["_id"] for row in cursor]
        assert all(number % 3 for number in rest), options
        assert sorted(set(first + rest)) == sorted(first + rest), "nothing is sent twice"
        assert {number for number in range(90) if number % 3} <= set(first + rest), "nothing living is left out"
        ninety.delete_many({})
        ninety.insert_many([{"_id": number, "ttl": 10 if number % 3 == 0 else -1} for number in range(90)])


def test_t16_pipelines_drop_expired_documents_and_keep_what_they_computed(ninety, clock, settle):
    plain = ninety.aggregate([{"$match": {"_id": {"$gte": 0}}}, {"$project": {"ttl": 1}}], batchSize=10)
    groups = ninety.aggregate([{"$group": {"_id": {"$mod": ["$_id", 30]}, "n": {"$sum": 1}}}], batchSize=5)
    for cursor, many in ((plain, 10), (groups, 5)):
        for _ in range(many):
            next(cursor)
    clock.advance(11)
    settle()
    assert all(row["_id"] % 3 for row in plain)
    assert all(row["n"] == 3 for row in groups), "a group stands as it was counted"
    assert ninety.estimated_document_count() == 60
