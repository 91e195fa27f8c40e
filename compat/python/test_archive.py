"""Archive before purge (T32) and the deletion record, as operators of an application meet them: files and lines."""

import hashlib
import json
import os
import subprocess
import time
import urllib.request

import pytest
from azure.cosmos import PartitionKey, exceptions

from bolide import EMULATOR_KEY, Server, binary


@pytest.fixture
def archiving(tmp_path):
    """A server with an archive."""
    process = Server(data=tmp_path / "data", extra=["--archive-root", str(tmp_path / "archive")]).start()
    yield process
    process.stop()


def wish(server, container, **wishes):
    status, answer = server.admin("PATCH", f"ttl/shop/{container}", wishes)
    assert status == 200, answer
    return answer


def told(server, container):
    status, answer = server.admin("GET", f"ttl/shop/{container}")
    assert status == 200, answer
    return answer


def purge(server):
    """Purges everything that has expired, also beside the background purge; the rest waits for its archive."""
    status, answer = server.admin("POST", "purge", {"now": True})
    assert status == 200, answer
    assert answer["backlog"]["items"] == 0 or waits(answer), answer
    return answer


def waits(status):
    return status["waitingForArchive"] == 1


def lines(place, directory):
    """The lines of the archive, file after file."""
    files = sorted((place / "archive" / directory).iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def export(server, container):
    request = urllib.request.Request(
        f"{server.endpoint}_bolide/ttl/shop/{container}/log", headers={"Authorization": "Bearer " + EMULATOR_KEY}
    )
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode(), answer.headers["x-bolide-log-head"], int(answer.headers["x-bolide-log-count"])


def verify(path, *more):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOLIDE_")}
    return subprocess.run(
        [binary(), "verify-log", str(path), *more], env=environment, capture_output=True, text=True, timeout=60
    )


def make(server, **more):
    database = server.client().create_database_if_not_exists("shop")
    return database.create_container("orders", PartitionKey(path="/customer"), **more)


def test_t32_what_expires_is_in_the_archive_before_it_is_purged(archiving, tmp_path):
    orders = make(archiving, default_ttl=3600)
    wish(archiving, "orders", archive={"directory": "orders"})
    order = orders.create_item({"id": "SO05", "customer": "ACME", "total": 12.5, "lines": [{"sku": "x"}]})
    orders.create_item({"id": "SO06", "customer": "ACME", "ttl": -1})
    archiving.clock.advance(3600)
    purge(archiving)
    (line,) = lines(tmp_path, "orders")
    assert (line["database"], line["container"]) == ("shop", "orders")
    assert (line["id"], line["partitionKey"], line["_ts"]) == ("SO05", ["ACME"], order["_ts"])
    assert (line["rule"], line["seconds"]) == ("defaultTtl", 3600)
    assert line["item"] == {name: value for name, value in order.items() if not name.startswith("_")}
    # Items from an archive can be written back.
    orders.upsert_item(line["item"])
    assert orders.read_item("SO05", "ACME")["total"] == 12.5


def test_t32_an_archive_that_cannot_be_written_stops_the_purge_and_loses_nothing(archiving, tmp_path):
    orders = make(archiving, default_ttl=60)
    wish(archiving, "orders", archive={"directory": "orders"})
    for number in range(20):
        orders.create_item({"id": str(number), "customer": "ACME"})
    directory = tmp_path / "archive" / "orders"
    directory.write_text("nothing can be written into a directory that is a file")
    archiving.clock.advance(60)
    assert waits(purge(archiving))
    answer = told(archiving, "orders")
    assert answer["archive"]["failure"]["error"].startswith("cannot write the archive"), answer
    assert answer["purge"]["backlog"]["items"] == 20
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        orders.read_item("7", "ACME")
    orders.create_item({"id": "7", "customer": "ACME", "new": True})
    directory.unlink()
    assert not waits(purge(archiving))
    archived = lines(tmp_path, "orders")
    assert sorted({int(line["id"]) for line in archived}) == list(range(20))
    assert not any("new" in line["item"] for line in archived)
    assert told(archiving, "orders")["purge"]["backlog"]["items"] == 0
    assert orders.read_item("7", "ACME")["new"]


@pytest.fixture
def small_volume(tmp_path):
    """(path, set_kib): a volume of its own below the archive's root, as large as it is said to be."""
    path = tmp_path / "archive" / "orders"
    path.mkdir(parents=True)

    def mount(options):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], capture_output=True, check=False)

    mounted = mount("size=64k")
    if mounted.returncode != 0:
        assert not os.environ.get("CI"), f"a volume could not be mounted: {mounted.stderr.decode()}"
        pytest.skip("only root may mount a volume; /dev/full stands for one in the server's own tests")
    yield path, lambda kib: mount(f"remount,size={kib}k").check_returncode()
    subprocess.run(["umount", path], check=True)


def metric(server, name):
    with urllib.request.urlopen(server.endpoint + "metrics", timeout=60) as answer:
        page = answer.read().decode().splitlines()
    (value,) = [line.split()[1] for line in page if line.startswith(name + " ")]
    return float(value)


def logged(server, words):
    for _ in range(1000):
        if any(words in line for line in list(server.output)):
            return
        time.sleep(0.01)
    raise AssertionError(f"never '{words}' in the log:\n" + "".join(server.output))


def test_t32_a_volume_that_gets_full_stops_that_purge_alone_until_there_is_room(small_volume, archiving, tmp_path):
    volume, set_kib = small_volume
    orders = make(archiving, default_ttl=60)
    shop = archiving.client().get_database_client("shop")
    others = shop.create_container("others", PartitionKey(path="/customer"), default_ttl=60)
    wish(archiving, "orders", archive={"directory": "orders"}, deletionRecord=True)
    wish(archiving, "others", archive={"directory": "others"})
    # The first ones fit, so that the volume gets full with lines that are there for good.
    for number in range(10):
        orders.create_item({"id": f"first {number}", "customer": "ACME", "text": "x" * 4000})
    archiving.clock.advance(60)
    purge(archiving)
    first = {line["id"] for line in lines(tmp_path, "orders")}
    assert len(first) == 10

    for number in range(40):
        orders.create_item({"id": f"second {number}", "customer": "ACME", "text": "y" * 4000})
        others.create_item({"id": str(number), "customer": "ACME"})
    archiving.clock.advance(60)
    assert waits(purge(archiving))
    assert told(archiving, "others")["purge"]["backlog"]["items"] == 0
    assert len(lines(tmp_path, "others")) == 40, "others go on"
    status = told(archiving, "orders")
    assert "No space left on device" in status["archive"]["failure"]["error"], status
    assert status["purge"]["backlog"]["items"] == 40
    assert metric(archiving, "bolide_archive_waiting_containers") == 1
    assert metric(archiving, "bolide_archive_failures_total") >= 1
    logged(archiving, "the purge of 'shop/orders' waits for its archive")
    assert {line["id"] for line in lines(tmp_path, "orders")} == first, "what did not fit was cut off"

    # Killed while it waits: nothing is lost, and it waits again.
    archiving.kill()
    archiving.start()
    logged(archiving, "the purge of 'shop/orders' waits for its archive")
    set_kib(1024)
    assert not waits(purge(archiving))
    logged(archiving, "the archive of 'shop/orders' is writable again")
    archived = lines(tmp_path, "orders")
    assert sorted(line["id"] for line in archived) == sorted(first | {f"second {number}" for number in range(40)})
    assert all(len(line["item"]["text"]) == 4000 for line in archived)
    assert metric(archiving, "bolide_archive_waiting_containers") == 0
    text, _, _ = export(archiving, "orders")
    assert sum(json.loads(line)["event"] == "purged" for line in text.splitlines()) == 50
    archiving.stop()
    archiving.start()


def test_t32_names_lead_nowhere_else(archiving, tmp_path):
    make(archiving, default_ttl=60)
    for name in ["..", "../data", "/tmp", "a/b", ".hidden", "", 7]:
        status, answer = archiving.admin("PATCH", "ttl/shop/orders", {"archive": {"directory": name}})
        assert (status, answer["code"]) == (400, "BadRequest"), answer
    assert [path.name for path in (tmp_path / "archive").iterdir()] == [".lock"], "nothing but the server's own lock"


def test_the_deletion_record_is_verified_and_tampering_is_found(archiving, tmp_path):
    orders = make(archiving, default_ttl=60)
    wish(archiving, "orders", deletionRecord=True)
    for number in range(5):
        orders.create_item({"id": f"order {number}", "customer": "ACME", "secret": "s3cret"})
    archiving.clock.advance(60)
    purge(archiving)
    text, head, count = export(archiving, "orders")
    assert (told(archiving, "orders")["deletionRecord"][0]["head"], count) == (head, 6)
    entries = [json.loads(line) for line in text.splitlines()]
    assert [entry["event"] for entry in entries] == ["opened"] + ["purged"] * 5
    assert [entry["id"] for entry in entries[1:]] == [f"order {number}" for number in range(5)]
    assert "s3cret" not in text

    # A reader can verify it without Bolide.
    previous = "0" * 64
    for line, entry in zip(text.splitlines(), entries):
        assert entry["previous"] == previous
        previous = hashlib.sha256(line.rpartition(',"hash":')[0].encode()).hexdigest()
        assert entry["hash"] == previous
    assert previous == head

    path = tmp_path / "record.jsonl"
    path.write_text(text)
    done = verify(path, "--head", head, "--count", str(count))
    assert done.returncode == 0, done.stderr
    assert "6 entries, all as they were written" in done.stdout
    path.write_text(text.replace("order 3", "order 9"))
    done = verify(path)
    assert (done.returncode, "line 5 was changed" in done.stderr) == (1, True), done.stderr
    path.write_text("".join(text.splitlines(keepends=True)[:4]))
    assert verify(path).returncode == 0, "a shorter one was whole once"
    assert verify(path, "--head", head).returncode == 1


def changed(text, **members):
    """The text of an entry with other members, written as the server would."""
    return json.dumps({**json.loads(text), **members}, separators=(",", ":"))


def with_fitting_hash(line):
    """A line as a forger changes it."""
    front = line.rpartition(',"hash":')[0]
    return f'{front},"hash":"{hashlib.sha256(front.encode()).hexdigest()}"}}'


def another_end(lines):
    """All lines from the fifth on, with another id in it and every hash made to fit."""
    made = lines[:4]
    for line in [lines[4].replace("order 3", "forged"), *lines[5:]]:
        made.append(with_fitting_hash(changed(line, previous=json.loads(made[-1])["hash"])))
    return made


TAMPERING = {
    "a changed id": (lambda own, other: [line.replace("order 2", "order 9") for line in own], "line 4 was changed"),
    "a changed time": (lambda own, other: own[:3] + [changed(own[3], expired="2020-01-01T00:00:00.000Z")] + own[4:],
                       "line 4 was changed"),
    "a changed line whose hash fits": (
        lambda own, other: own[:3] + [with_fitting_hash(changed(own[3], id="forged"))] + own[4:],
        "line 5 does not follow"),
    "a removed line": (lambda own, other: own[:3] + own[4:], "line 4 is entry 5, not entry 4"),
    "a removed first line": (lambda own, other: own[1:], "line 1 is entry 2, not entry 1"),
    "a removed last line": (lambda own, other: own[:-1], "there are 7 entries, and there were 8"),
    "a doubled line": (lambda own, other: own[:4] + [own[3]] + own[4:], "line 5 is entry 4, not entry 5"),
    "swapped lines": (lambda own, other: own[:3] + [own[4], own[3]] + own[5:], "line 4 is entry 5, not entry 4"),
    "a line of another container": (lambda own, other: own[:3] + [other[3]] + own[4:], "line 4 belongs to"),
    "an end of the forger's own": (lambda own, other: another_end(own), "was noted: it or a line before it was changed"),
}


def test_ten_kinds_of_tampering_are_detected(archiving, tmp_path):
    shop = archiving.client().create_database_if_not_exists("shop")
    for name in ("orders", "others"):
        container = shop.create_container(name, PartitionKey(path="/customer"), default_ttl=60)
        wish(archiving, name, deletionRecord=True)
        for number in range(7):
            container.create_item({"id": f"order {number}", "customer": "ACME"})
    archiving.clock.advance(60)
    purge(archiving)
    text, head, count = export(archiving, "orders")
    own, other = text.splitlines(), export(archiving, "others")[0].splitlines()
    path = tmp_path / "record.jsonl"

    def check(lines):
        path.write_text("".join(line + "\n" for line in lines))
        return verify(path, "--head", head, "--count", str(count))

    assert check(own).returncode == 0
    assert [with_fitting_hash(changed(line)) for line in own] == own, "the forger's tools are right"
    assert len(TAMPERING) == 10
    for kind, (tamper, words) in TAMPERING.items():
        done = check(tamper(own, other))
        assert done.returncode == 1, kind
        assert words in done.stderr, f"{kind}: {done.stderr}"
    path.write_text("".join(line + "\n" for line in another_end(own)))
    assert verify(path).returncode == 0, "only the head tells of a chain that was made anew"


def test_the_record_is_verified_where_it_lies_and_outlives_its_container(archiving, tmp_path):
    orders = make(archiving, default_ttl=60)
    wish(archiving, "orders", deletionRecord=True, archive={"directory": "orders"})
    orders.create_item({"id": "x", "customer": "ACME"})
    archiving.clock.advance(60)
    archiving.client().get_database_client("shop").delete_container("orders")
    status, answer = archiving.admin("GET", "log")
    assert status == 200
    (log,) = answer["logs"]
    assert (log["database"], log["container"], log["open"], log["count"]) == ("shop", "orders", False, 3)
    assert [line["id"] for line in lines(tmp_path, "orders")] == ["x"], "what had expired was archived by the drop"
    archiving.stop()
    done = subprocess.run(
        [binary(), "verify-log", "--data", str(tmp_path / "data"), "--test-clock"],
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "(shop/orders): 3 entries, all as they were written" in done.stdout
    archiving.start()
