"""Files that Azure's tools write and read: a JSON array of items, with what the service has put into them."""

import json
import subprocess
import uuid

import pytest

from bolide import Server, binary

ITEMS = [
    {"id": "1", "pk": "a", "long": 2**53 + 1, "longest": 2**63 - 1, "double": 0.1, "small": 5e-324, "list": [1, [], {}]},
    {"id": "2", "pk": "a", "text": "é 漢字 😀 \u0000 \" \\", "z": 1, "a": {"z": None, "b": True}},
    {"id": "3", "pk": None, "ttl": 3600},
]


def tool(server, *arguments, code=0):
    done = subprocess.run(
        [binary(), *map(str, arguments), "--url", server.endpoint], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def own(item):
    """An item without what the service owns, with its members in their order."""
    return json.dumps({name: value for name, value in item.items() if not name.startswith("_")})


@pytest.mark.parametrize("style", [{}, {"indent": 2}, {"separators": (",", ":")}], ids=["line", "indented", "dense"])
def test_an_array_of_the_service_is_imported_whole(server, database, make_container, tmp_path, style):
    """What the data migration tool writes: system properties of another account, any blanks, a mark before UTF-8."""
    container = make_container(default_ttl=-1)
    foreign = {"_rid": "x", "_self": "dbs/x", "_etag": '"0"', "_attachments": "attachments/", "_ts": 1}
    path = tmp_path / "items.json"
    path.write_text(json.dumps([{**item, **foreign} for item in ITEMS], ensure_ascii=False, **style), "utf-8-sig")
    name = f"{database.id}/{container.id}"
    told = tool(server, "import", name, "--file", path)
    assert "3 items" in told
    read = {item["id"]: item for item in container.read_all_items()}
    assert [own(read[item["id"]]) for item in ITEMS] == [own(item) for item in ITEMS]
    assert all(item["_ts"] > 1 and item["_rid"] != "x" for item in read.values())

    tool(server, "export", name, "--file", tmp_path / "out.json")
    exported = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert [json.dumps(item) for item in exported] == [json.dumps(item) for item in ITEMS]
    tool(server, "export", name, "--file", tmp_path / "system.json", "--system")
    system = json.loads((tmp_path / "system.json").read_text("utf-8"))
    assert {item["id"]: item for item in system} == read


def test_a_directory_makes_the_container_again(server, database, make_container, tmp_path):
    policy = {"indexingMode": "consistent", "includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]}
    unique = {"uniqueKeys": [{"paths": ["/mail"]}]}
    container = make_container(default_ttl=60, indexing_policy=policy, unique_key_policy=unique)
    for number in range(250):
        container.create_item({"id": str(number), "pk": f"p{number % 7}", "mail": str(number), "n": number})
    told = tool(server, "export", f"{database.id}/{container.id}", "--dir", tmp_path)
    assert "250 items" in told
    other = Server().start()
    try:
        tool(other, "import", "--dir", tmp_path)
        with other.client() as client:
            copy = client.get_database_client(database.id).get_container_client(container.id)
            ours, theirs = container.read(), copy.read()
            for member in ("partitionKey", "indexingPolicy", "uniqueKeyPolicy", "defaultTtl"):
                assert theirs[member] == ours[member], member
            strip = lambda items: sorted(own(item) for item in items)
            assert strip(copy.read_all_items()) == strip(container.read_all_items())
            other.clock.advance(60)
            assert list(copy.read_all_items()) == []
    finally:
        other.stop()


def test_expired_items_are_not_exported(server, database, make_container, clock, tmp_path):
    container = make_container(default_ttl=-1)
    container.create_item({"id": "dies", "pk": "a", "ttl": 10})
    container.create_item({"id": "lives", "pk": "a"})
    clock.advance(10)
    tool(server, "export", f"{database.id}/{container.id}", "--file", tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == '{"id":"lives","pk":"a"}\n'


def test_a_lone_file_makes_its_container_with_a_partition_key(server, client, tmp_path):
    name = "new-" + uuid.uuid4().hex
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "tenant": "t", "user": str(n % 3)}) + "\n" for n in range(10)))
    assert "--partition-key" in tool(server, "import", f"{name}/c", "--file", path, code=2)
    tool(server, "import", f"{name}/c", "--file", path, "--partition-key", "/tenant,/user")
    container = client.get_database_client(name).get_container_client("c")
    assert container.read()["partitionKey"]["paths"] == ["/tenant", "/user"]
    assert container.read_item("4", ["t", "1"])["id"] == "4"
