"""Sorts and groups that exceed their memory use the disk, unless the request declines or the operator gives no space."""

import os

import pytest
from pymongo.errors import OperationFailure

from bolide import Server
from conftest import connect

MEMORY_MAX, OUT_OF_DISK_SPACE = 292, 14031
ROWS = 6_000


@pytest.fixture(scope="module", params=[None, 3_000_000], ids=["space", "too little space"])
def small(request, tmp_path_factory):
    """A server whose stages may keep a mebibyte, with five times as much in a collection; and its scratch space."""
    extra = ["--mongo-stage-memory", "1048576"]
    extra += ["--mongo-scratch-space", str(request.param)] if request.param else []
    data = tmp_path_factory.mktemp("small") / "data"
    server = Server(data=data, extra=extra).start()
    with connect(server) as client:
        rows = [{"_id": n, "k": n * 7919 % ROWS, "pad": "x" * 800} for n in range(ROWS)]
        client.db.rows.insert_many(rows)
        yield client.db, request.param, data
    server.stop()


def outcome(work):
    """What comes out, or the code of the refusal."""
    try:
        return list(work())
    except OperationFailure as failure:
        return failure.code


def test_a_sort_and_a_group_are_the_same_with_the_disk(small):
    database, space, data = small
    sort = [{"$sort": {"k": 1}}, {"$project": {"k": 1}}]
    group = [{"$group": {"_id": "$k", "rows": {"$push": "$$ROOT"}}}, {"$project": {"n": {"$size": "$rows"}}}]
    found = outcome(lambda: database.rows.find().sort("k", -1))
    sorted_rows = outcome(lambda: database.rows.aggregate(sort, batchSize=7))
    groups = outcome(lambda: database.rows.aggregate(group))
    if space:
        assert [found, sorted_rows, groups] == [OUT_OF_DISK_SPACE] * 3
        return
    assert [row["k"] for row in found] == list(reversed(range(ROWS)))
    assert [row["k"] for row in sorted_rows] == list(range(ROWS))
    assert sorted((row["_id"], row["n"]) for row in groups) == [(k, 1) for k in range(ROWS)]
    assert os.listdir(data / "scratch") == [], "files have no names that others could find"


def test_a_large_sort_goes_into_a_collection(small):
    database, space, _ = small
    work = [{"$sort": {"k": 1}}, {"$group": {"_id": None, "ids": {"$push": "$k"}}}, {"$out": "sorted"}]
    if space:
        assert outcome(lambda: database.rows.aggregate(work)) == OUT_OF_DISK_SPACE
        assert database.sorted.count_documents({}) == 0
    else:
        database.rows.aggregate(work)
        assert database.sorted.find_one()["ids"] == list(range(ROWS))


def test_who_declines_is_refused(small):
    database, _, _ = small
    for work in [
        lambda: database.rows.find(allow_disk_use=False).sort("k", 1),
        lambda: database.rows.aggregate([{"$sort": {"k": 1}}], allowDiskUse=False),
        lambda: database.rows.aggregate([{"$group": {"_id": "$pad", "all": {"$push": "$$ROOT"}}}], allowDiskUse=False),
    ]:
        assert outcome(work) == MEMORY_MAX
    assert len(outcome(lambda: database.rows.aggregate([{"$sort": {"k": 1}}, {"$limit": 5}], allowDiskUse=False))) == 5
