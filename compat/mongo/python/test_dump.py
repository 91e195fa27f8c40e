"""Dumps as mongodump writes them, made and read with PyMongo's own BSON: imported, exported, the same to the byte."""

import datetime
import gzip
import os
import subprocess
import uuid

import bson
import bson.raw_bson
import pytest
from bson import json_util
from pymongo import ReadPreference

from bolide import binary

OID = bson.ObjectId("6917a1f2c0ffee0000000001")
DOCUMENTS = [
    {"_id": OID, "double": 0.1, "whole": 1.0, "negative zero": -0.0, "infinity": float("inf"), "nan": float("nan")},
    {"_id": 1, "int": 1, "least": -(2**31), "long": bson.Int64(1), "longest": bson.Int64(2**63 - 1)},
    {"_id": "text", "": "empty name", "unicode": "é 漢字 😀 \u0000 end", "dotted.name": 1, "$dollar": 2},
    {"_id": {"compound": [1, "x"], "b": None}, "nested": {"z": 1, "a": {"list": [[], {}, None, True, False]}}},
    {
        "_id": bson.Binary(b"\x00\xff", 0),
        "uuid": bson.Binary(uuid.UUID(int=7).bytes, 4),
        "old": bson.Binary(b"old", 2),
        "md5": bson.Binary(b"\x01" * 16, 5),
        "own": bson.Binary(b"own", 0x80),
    },
    {
        "_id": bson.Decimal128("1.10"),
        "decimal": bson.Decimal128("-9.999999999999999999999999999999999E+6144"),
        "nan": bson.Decimal128("NaN"),
        "timestamp": bson.Timestamp(4, 2),
        "empty": bson.Timestamp(0, 0),
    },
    {
        "_id": datetime.datetime(2026, 11, 15, tzinfo=datetime.timezone.utc),
        "before": datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc),
        "regex": bson.Regex("^a.*b$", "imsx"),
        "code": bson.Code("function () {}"),
        "scope": bson.Code("f(x)", {"x": 1}),
        "min": bson.MinKey(),
        "max": bson.MaxKey(),
        "ref": bson.DBRef("other", OID, "db"),
    },
]

METADATA = {
    "options": {"validator": {"never": {"$exists": False}}, "validationLevel": "strict", "validationAction": "error"},
    "indexes": [
        {"v": 2, "key": {"_id": 1}, "name": "_id_"},
        {"v": 2, "key": {"gone": 1}, "name": "gone_1", "expireAfterSeconds": 3600},
        {"v": 2, "key": {"int": 1, "long": -1}, "name": "int_1_long_-1", "unique": True, "sparse": True},
    ],
    "uuid": "0123456789abcdef0123456789abcdef",
    "collectionName": "all",
    "type": "collection",
}


def tool(server, *arguments, code=0):
    done = subprocess.run(
        [binary(), *map(str, arguments), "--url", server.endpoint], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def write_dump(folder, name, documents, metadata, packed=False):
    """A collection as mongodump leaves it."""
    os.makedirs(folder, exist_ok=True)
    opened, ending = (gzip.open, ".gz") if packed else (open, "")
    with opened(os.path.join(folder, f"{name}.bson{ending}"), "wb") as file:
        for document in documents:
            file.write(document if isinstance(document, bytes) else bson.encode(document))
    with opened(os.path.join(folder, f"{name}.metadata.json{ending}"), "wt") as file:
        file.write(json_util.dumps(metadata, json_options=json_util.CANONICAL_JSON_OPTIONS))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", ["bson", "jsonl", "json"])
def test_a_dump_comes_back_to_the_byte(server, client, database, tmp_path, packed, form):
    raw = [bson.encode(document) for document in DOCUMENTS]
    write_dump(tmp_path / "dump" / database.name, "all", raw, METADATA, packed)
    view = {"options": {"viewOn": "all", "pipeline": [{"$match": {"_id": 1}}]}, "indexes": [], "uuid": "", "type": "view"}
    with open(tmp_path / "dump" / database.name / "one.metadata.json", "w") as file:
        file.write(json_util.dumps(view))
    told = tool(server, "import", "--dir", tmp_path / "dump")
    assert f"{database.name}/all: {len(raw)} items" in told

    collection = database.get_collection("all", bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument))
    assert [document.raw for document in collection.find().sort("$natural", 1)] == raw
    assert [document["_id"] for document in database["one"].find()] == [1]
    made = {index["name"]: dict(index) for index in database["all"].list_indexes()}
    assert made["gone_1"]["expireAfterSeconds"] == 3600 and made["int_1_long_-1"]["unique"]

    more = ["--gzip"] if packed else []
    tool(server, "export", database.name, "--dir", tmp_path / "out", "--format", form, *more)
    folder, ending = tmp_path / "out" / database.name, ".gz" if packed else ""
    with open(folder / "all.metadata.json") as file:
        described = json_util.loads(file.read())
    assert described["options"] == METADATA["options"] and described["type"] == "collection"
    assert [index["name"] for index in described["indexes"]] == ["_id_", "gone_1", "int_1_long_-1"]
    assert described["uuid"] == collection_uuid(database, "all").hex()
    assert not os.path.exists(folder / f"one.{form}{ending}")
    with (gzip.open if packed else open)(folder / f"all.{form}{ending}", "rb") as file:
        text = file.read()
    assert documents_of(text, form) == raw

    client.drop_database(database.name)
    tool(server, "import", "--dir", tmp_path / "out")
    assert [document.raw for document in collection.find().sort("$natural", 1)] == raw


def documents_of(text, form):
    """What a file has, read with PyMongo's own code."""
    if form == "bson":
        return [document.raw for document in bson.decode_iter(text, bson.CodecOptions(bson.raw_bson.RawBSONDocument))]
    options = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, tz_aware=True, document_class=bson.SON)
    if form == "json":
        return [bson.encode(document) for document in json_util.loads(text.decode(), json_options=options)]
    return [bson.encode(json_util.loads(line, json_options=options)) for line in text.decode().splitlines()]


def collection_uuid(database, name):
    listed = database.command("listCollections", filter={"name": name}, read_preference=ReadPreference.PRIMARY)
    return bytes(listed["cursor"]["firstBatch"][0]["info"]["uuid"])


def test_what_is_there_is_replaced_or_refused(server, database, tmp_path):
    write_dump(tmp_path / database.name, "all", [{"_id": n, "n": n} for n in range(2500)], {"options": {}, "indexes": []})
    database["all"].insert_many([{"_id": 7, "old": True}, {"_id": -1, "other": True}])
    told = tool(server, "import", "--dir", tmp_path, "--mode", "insert", "--continue-on-error", code=1)
    assert "document 8 at byte " in told and "1 refused" in told
    assert database["all"].find_one({"_id": 7}) == {"_id": 7, "old": True}
    assert database["all"].count_documents({}) == 2501
    tool(server, "import", "--dir", tmp_path)
    assert database["all"].find_one({"_id": 7}) == {"_id": 7, "n": 7}
    assert database["all"].find_one({"_id": -1}) == {"_id": -1, "other": True}


def test_what_a_validator_or_an_index_refuses_is_told_by_its_place(server, database, tmp_path):
    metadata = {
        "options": {"validator": {"n": {"$type": "int"}}},
        "indexes": [{"v": 2, "key": {"n": 1}, "name": "n_1", "unique": True}],
    }
    documents = [{"_id": 1, "n": 1}, {"_id": 2, "n": "two"}, {"_id": 3, "n": 1}, {"_id": 4, "n": 4}]
    write_dump(tmp_path / database.name, "all", documents, metadata)
    told = tool(server, "import", "--dir", tmp_path, "--continue-on-error", code=1)
    first, second = len(bson.encode(documents[0])), len(bson.encode(documents[1]))
    assert f"document 2 at byte {first}: Document failed validation" in told
    assert f"document 3 at byte {first + second}: E11000" in told
    assert sorted(document["_id"] for document in database["all"].find()) == [1, 4]


def test_a_dump_that_is_cut_off_is_told(server, database, tmp_path):
    raw = bson.encode({"_id": 1}) + bson.encode({"_id": 2})[:-1]
    write_dump(tmp_path / database.name, "all", [raw], {"options": {}, "indexes": []})
    told = tool(server, "import", "--dir", tmp_path, code=2)
    assert "document 2 at byte 14: the file ends within it" in told
    assert database["all"].count_documents({}) == 1
