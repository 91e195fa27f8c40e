"""Views: every command sees the collections behind them, and invalid ones are refused when they are created."""

import pytest

from conftest import refused


@pytest.fixture
def source(database):
    """Three documents, and another collection with words for two of them."""
    database["other"].insert_many([{"_id": 1, "word": "one"}, {"_id": 2, "word": "two"}])
    database["source"].insert_many([{"_id": number} for number in (1, 2, 3)])
    return database["source"]


def view(database, name, on, *stages):
    return database.create_collection(name, viewOn=on, pipeline=list(stages))


def look_up(name, *stages):
    return {"$lookup": {"from": name, "localField": "_id", "foreignField": "_id", "as": "found", "pipeline": list(stages)}}


WORDS = [{"_id": 1, "found": ["one"]}, {"_id": 2, "found": ["two"]}, {"_id": 3, "found": []}]


def words(rows):
    """What `look_up` has found for each."""
    return sorted(({"_id": row["_id"], "found": [one["word"] for one in row["found"]]} for row in rows), key=lambda row: row["_id"])


def test_every_read_of_a_view_sees_the_collections_it_looks_into(source, database):
    joined = view(database, "joined", "source", look_up("other"))
    assert words(joined.find()) == WORDS
    assert words(joined.find({}, batch_size=1)) == WORDS
    assert words(joined.aggregate([])) == WORDS
    assert words([joined.find_one({"found.word": "two"})]) == WORDS[1:2]
    assert joined.count_documents({"found": {"$ne": []}}) == 2
    assert database.command("count", "joined", query={"found": {"$ne": []}})["n"] == 2
    assert joined.distinct("found.word") == ["one", "two"]
    union = view(database, "union", "source", {"$unionWith": "other"})
    assert union.count_documents({}) == 5 and len(list(union.find())) == 5


def test_a_pipeline_within_a_lookup_sees_its_own_collections(source):
    inner = [{"$match": {"$expr": {"$eq": ["$_id", "$$id"]}}}, look_up("other")]
    outer = {"$lookup": {"from": "source", "let": {"id": "$_id"}, "pipeline": inner, "as": "same"}}
    assert words(row["same"][0] for row in source.aggregate([outer])) == WORDS


def test_pipelines_within_union_and_facet_see_their_collections(source, database):
    union = {"$unionWith": {"coll": "source", "pipeline": [look_up("other")]}}
    assert words(source.aggregate([{"$match": {"_id": 0}}, union])) == WORDS
    view(database, "joined", "source", look_up("other"))
    [facet] = source.aggregate([{"$facet": {"plain": [look_up("other")], "view": [look_up("joined")]}}])
    assert words(facet["plain"]) == WORDS
    assert words(row["found"][0] for row in facet["view"]) == WORDS


def test_views_upon_views_that_look_into_views(source, database):
    view(database, "words", "other", {"$match": {"_id": {"$gt": 1}}})
    joined = view(database, "joined", "source", look_up("words"))
    assert words(joined.find()) == [{"_id": 1, "found": []}, *WORDS[1:]]
    upper = view(database, "upper", "joined", {"$match": {"_id": 2}})
    assert words(upper.find()) == words(upper.aggregate([])) == WORDS[1:2]
    third = view(database, "third", "source", {"$match": {"_id": 2}}, {"$unionWith": "upper"})
    assert sorted("found" in row for row in third.find()) == [False, True]


def test_a_view_shows_what_its_collections_hold_now(source, database):
    joined = view(database, "joined", "source", look_up("other"))
    assert joined.count_documents({"found": []}) == 1
    database["other"].insert_one({"_id": 3, "word": "three"})
    assert joined.count_documents({"found": []}) == 0
    database["other"].drop()
    assert joined.count_documents({"found": []}) == 3


@pytest.mark.parametrize("stage", [{"$out": "written"}, {"$merge": "written"}], ids=repr)
def test_a_view_never_writes(source, database, stage):
    refused(167, view, database, "writer", "source", stage)
    harmless = view(database, "harmless", "source")
    refused(167, database.command, "collMod", "harmless", viewOn="source", pipeline=[stage])
    assert harmless.count_documents({}) == 3
    assert not {"writer", "written"} & set(database.list_collection_names())


def test_a_wrong_pipeline_is_refused_when_the_view_is_made(source, database):
    refused(40324, view, database, "wrong", "source", {"$nope": 1})
    refused(40324, view, database, "wrong", "source", {"$lookup": {"from": "other", "pipeline": [{"$nope": 1}], "as": "a"}})
    view(database, "harmless", "source")
    refused(40324, database.command, "collMod", "harmless", viewOn="source", pipeline=[{"$nope": 1}])
    assert "wrong" not in database.list_collection_names()


def test_views_that_look_into_views_are_read_so_many_times_at_most(source, database, client):
    view(database, "v0", "source")
    for number in range(1, 19):  # the last one would read the first 3^18 times
        view(database, f"v{number}", "source", *[{"$unionWith": f"v{number - 1}"}] * 3)
    refused(165, database["v18"].find_one, {}, max_time_ms=20_000)
    assert database["v2"].count_documents({}) == 3 * (1 + 3 + 9)
    assert client.admin.command("ping")["ok"] == 1


LOOKS = {
    "view on": lambda name: (name, []),
    "lookup": lambda name: ("source", [look_up(name)]),
    "union": lambda name: ("source", [{"$unionWith": name}]),
    "facet": lambda name: ("source", [{"$facet": {"all": [look_up(name)]}}]),
    "within a lookup": lambda name: ("source", [look_up("other", look_up(name))]),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_view_never_looks_into_itself(source, database, look):
    on, stages = look("second")
    view(database, "first", on, *stages)  # what it looks into may come later
    refused(5, view, database, "second", "first")
    on, stages = look("first")
    refused(5, view, database, "second", on, *stages)
    view(database, "second", "source")
    refused(5, database.command, "collMod", "second", viewOn=on, pipeline=stages)
    assert len(list(database["second"].find())) == 3
    on, stages = look("self")
    refused(5, view, database, "self", on, *stages)
