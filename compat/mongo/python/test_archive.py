"""Archive before purge (T32) and the deletion record of collections: archived documents are those that PyMongo wrote."""

import datetime
import json
import subprocess
import urllib.request

import pytest
from bson import Binary, Decimal128, Int64, ObjectId, Timestamp, json_util
from pymongo.errors import OperationFailure

from bolide import EMULATOR_KEY, Server, binary
from conftest import connect, expire_after, ids, steer_purge

API = "?api=mongodb"


@pytest.fixture
def archiving(tmp_path):
    """A server with an archive; it purges when it is told to."""
    process = Server(data=tmp_path / "data", extra=["--archive-root", str(tmp_path / "archive")]).start()
    steer_purge(process, paused=True)
    yield process
    process.kill()


def wish(server, collection, **wishes):
    status, answer = server.admin("PATCH", f"ttl/db/{collection}{API}", wishes)
    assert status == 200, answer


def purge(server):
    """Purges everything that has expired, also beside the background purge."""
    steer_purge(server, paused=False)
    steer_purge(server, now=True)
    assert server.admin("GET", "purge")[1]["backlog"]["items"] == 0
    steer_purge(server, paused=True)


def lines(tmp_path):
    """The lines of the archive, file after file."""
    files = sorted((tmp_path / "archive" / "cold").iterdir())
    return [line for file in files for line in file.read_text().splitlines()]


def entries(server, log):
    request = urllib.request.Request(
        f"{server.endpoint}_bolide/log/{log}", headers={"Authorization": "Bearer " + EMULATOR_KEY})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return [json.loads(line) for line in answer.read().decode().splitlines()]


def test_t32_every_type_comes_out_of_the_archive_as_it_was(archiving, tmp_path):
    with connect(archiving) as client:
        collection = client.db.c
        expire_after(collection, 0, key="at")
        wish(archiving, "c", archive={"directory": "cold"})
        past = datetime.datetime(2020, 1, 2, 3, 4, 5, 678000)
        documents = [
            {"_id": ObjectId(), "at": past, "long": Int64(7), "int": 7, "double": 7.0, "nan": float("inf")},
            {"_id": {"a": 1, "b": "c"}, "at": past, "binary": Binary(b"\x00\xff", 5), "decimal": Decimal128("1.10")},
            {"_id": "ä\n\"", "at": [past, past], "time": Timestamp(5, 6), "null": None, "nested": [{"x": [1, []]}]},
        ]
        collection.insert_many([*documents, {"_id": 0, "at": "never"}])
        assert ids(collection) == [0], "expired when they are written"
        purge(archiving)
        archived = [loads(line) for line in lines(tmp_path)]
        assert {(line["rule"], line["index"]) for line in archived} == {("dateIndex", "at_1")}
        by_name = {json_util.dumps(line["_id"]): line["item"] for line in archived}
        for document in documents:
            back = by_name[json_util.dumps(document["_id"])]
            assert list(back.items()) == list(document.items())
            assert [type(value) for value in back.values()] == [type(value) for value in document.values()]


def loads(line):
    """A line, with the values of BSON in it as PyMongo reads them."""
    return json_util.loads(line, json_options=json_util.JSONOptions(tz_aware=False))


def test_t32_an_expired_document_in_the_way_is_archived_although_it_was_replaced(archiving, tmp_path):
    with connect(archiving) as client:
        collection = client.db.c
        expire_after(collection, 1000)
        wish(archiving, "c", archive={"directory": "cold"}, deletionRecord=True)
        collection.insert_one({"_id": 1, "life": 1})
        archiving.clock.advance(1000)
        collection.insert_one({"_id": 1, "life": 2})
        archiving.kill()
        archiving.start()
    with connect(archiving) as client:
        purge(archiving)
        assert [loads(line)["item"] for line in lines(tmp_path)] == [{"_id": 1, "life": 1}]
        assert list(client.db.c.find()) == [{"_id": 1, "life": 2}]
        (log,) = archiving.admin("GET", "log")[1]["logs"]
        assert [entry["event"] for entry in entries(archiving, log["log"])] == ["opened", "purged"]


def test_t31_t32_what_is_held_is_neither_archived_nor_recorded_before_its_lift(archiving, tmp_path):
    with connect(archiving) as client:
        collection = client.db.c
        expire_after(collection, 10)
        wish(archiving, "c", archive={"directory": "cold"}, deletionRecord=True, hold={"reason": "case 7"})
        collection.insert_one({"_id": 1})
        archiving.clock.advance(100)
        purge(archiving)
        assert ids(collection) == [1] and not (tmp_path / "archive" / "cold").exists()
        wish(archiving, "c", hold=None)
        assert ids(collection) == []
        purge(archiving)
        assert [loads(line)["_id"] for line in lines(tmp_path)] == [1]


def test_the_record_follows_a_rename_and_outlives_the_drop(archiving, tmp_path):
    with connect(archiving) as client:
        collection = client.db.c
        expire_after(collection, 10)
        wish(archiving, "c", deletionRecord=True, archive={"directory": "cold"})
        collection.insert_one({"_id": 1, "secret": "s3cret"})
        collection.rename("d")
        archiving.clock.advance(10)
        # A drop archives expired documents first, and so it is refused while nothing may be purged.
        with pytest.raises(OperationFailure) as refused:
            client.db.d.drop()
        assert refused.value.code == 96, refused.value.details
        steer_purge(archiving, paused=False)
        client.db.d.insert_one({"_id": 2})
        client.db.d.drop()
        (log,) = archiving.admin("GET", "log")[1]["logs"]
        assert (log["database"], log["container"], log["open"]) == ("db", "d", False)
        told = entries(archiving, log["log"])
        assert [entry["event"] for entry in told] == ["opened", "renamed", "purged", "dropped"]
        assert (told[2]["_id"], told[2]["rule"], told[3]["items"]) == ({"$numberInt": "1"}, "defaultTtl", 1)
        assert "s3cret" not in json.dumps(told)
        assert {loads(line)["container"] for line in lines(tmp_path)} == {"d"}, "a line may be there twice"
    archiving.stop()
    done = subprocess.run(
        [binary(), "verify-log", "--data", str(tmp_path / "data"), "--test-clock"],
        capture_output=True, text=True, timeout=60)
    assert (done.returncode, "(db/d): 4 entries" in done.stdout) == (0, True), done.stdout + done.stderr
