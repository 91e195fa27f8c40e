"""T13, T34: the machine's clock set back, or leaping, under a running server and between two runs of it.

The server runs with libfaketime, which adds an offset from a file to the wall clock it sees and leaves the boot-time clock
alone. The library comes from Debian's package of that name, unpacked into compat/.cache. Offsets stay below a quarter of
an hour where the SDK is used, because signatures are judged by the same wall clock; what was long ago is signed by hand.
"""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request
from email.utils import formatdate

import pytest
from azure.cosmos import PartitionKey, exceptions

from bolide import Server
from shown_time import LEASE_SECONDS, OFFSET_MOST_SECONDS, Sighting
from wire import ask, signed

DAY = 24 * 3600
CACHE = pathlib.Path(__file__).parent.parent / ".cache" / "faketime"


def faketime_library():
    """The library's path, fetched once; none where Debian's tools are missing."""
    pattern = str(CACHE / "**" / "libfaketime.so.1")
    if not glob.glob(pattern, recursive=True) and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        CACHE.mkdir(parents=True, exist_ok=True)
        for command in (["apt-get", "download", "libfaketime"], ["apt-get", "update"], ["apt-get", "download", "libfaketime"]):
            if not list(CACHE.glob("*.deb")):
                subprocess.run(command, cwd=CACHE, capture_output=True, timeout=300, check=False)
        for package in CACHE.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, CACHE], check=True, timeout=60)
    return next(iter(glob.glob(pattern, recursive=True)), None)


@pytest.fixture
def machine(tmp_path):
    """(server on disk, set_offset): the server believes the wall clock plus the offset."""
    library = faketime_library()
    if library is None:
        assert not os.environ.get("CI"), "libfaketime could not be fetched"
        pytest.skip("libfaketime could not be fetched: the machine's clock cannot be moved under the server")
    offset = tmp_path / "offset"

    def set_offset(seconds):
        # Replaced in one step, so that the server never reads half of it.
        fresh = tmp_path / "offset.new"
        fresh.write_text(f"{seconds:+d}s")
        fresh.replace(offset)

    set_offset(0)
    server = Server(data=tmp_path / "data", stopped_clock=False, environment={
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    })
    server.start()
    yield server, set_offset
    server.kill()


def started_at(server, seconds):
    """The environment of a server whose wall clock has an offset that stays, which needs no file to be read at each look."""
    file = "FAKETIME_TIMESTAMP_FILE"
    return {**{name: text for name, text in server.environment.items() if name != file}, "FAKETIME": f"{seconds:+d}s"}


def ids(server):
    container = server.client().get_database_client("d").get_container_client("c")
    return sorted(item["id"] for item in container.read_all_items())


def filled(server):
    """A container in which one item has just expired and another is live."""
    database = server.client().create_database("d")
    container = database.create_container("c", PartitionKey(path="/pk"), default_ttl=300)
    server.admin("POST", "purge", {"paused": True})
    stored = container.create_item({"id": "dies", "pk": "p"})
    container.create_item({"id": "stays", "pk": "p", "ttl": -1})
    server.clock.move_to(stored["_ts"] + 300)
    assert ids(server) == ["stays"]
    return container


@pytest.mark.parametrize("how", ["running", "stop", "kill -9"])
def test_t13_a_system_clock_set_back_revives_nothing(machine, how):
    server, set_offset = machine
    container = filled(server)
    before = server.clock.now()
    if how == "stop":
        server.stop()
    elif how == "kill -9":
        server.kill()
    set_offset(-800)
    if how != "running":
        server.start()
    assert server.clock.now() >= before, "time never goes back"
    assert ids(server) == ["stays"]

    # And it runs on: what is written now expires on time. The last of its minutes is left to a busy machine; to the second this is
    # shown where the clock stands still.
    container = server.client().get_database_client("d").get_container_client("c")
    stored = container.create_item({"id": "dies", "pk": "p"})
    assert stored["_ts"] >= before
    server.clock.move_to(stored["_ts"] + 240)
    assert ids(server) == ["dies", "stays"]
    server.clock.move_to(stored["_ts"] + 300)
    assert ids(server) == ["stays"]


def wait_for_log(server, words):
    """Waits until the log says it: no request causes the line."""
    for _ in range(1000):
        if any(words in line for line in list(server.output)):
            return
        time.sleep(0.01)
    raise AssertionError(f"never '{words}' in the log:\n" + "".join(server.output))


def is_suspect(server):
    """What the status says; the metric must say the same."""
    with urllib.request.urlopen(server.endpoint + "metrics", timeout=60) as answer:
        metric = "\nbolide_clock_suspect {}\n"
        page = answer.read().decode()
    status, body = server.admin("GET", "clock")
    assert status == 200
    assert metric.format(int(bool(body["suspect"]))) in page
    return bool(body["suspect"])


def backlog(server):
    return server.admin("GET", "ttl/d/c")[1]["backlog"]["items"]


@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_t34_a_leap_of_the_system_clock_is_suspect_until_an_operator_decides(machine, decision):
    server, set_offset = machine
    container = filled(server)
    container.create_item({"id": "soon", "pk": "p", "ttl": 3600})
    server.admin("POST", "purge", {"paused": False})
    purge_until_empty(server)
    assert not is_suspect(server)
    before = server.clock.now()
    set_offset(7 * DAY)
    assert is_suspect(server)
    assert server.clock.now() - before < 60, "time goes on with the boot-time clock"
    wait_for_log(server, "clock suspect")
    assert backlog(server) == 0, "nothing has died by the leap"
    status, body = server.admin("POST", "purge", {"now": True})
    assert (status, "suspect" in body["message"]) == (409, True), body
    assert server.admin("POST", "clock", {decision: True})[0] == 200
    if decision == "reject":
        set_offset(0)
    assert not is_suspect(server)
    wait_for_log(server, "the clock is trusted again")
    assert (server.clock.now() - before > 6 * DAY) == (decision == "accept")
    purge_until_empty(server)
    # The SDK's signatures are of today again.
    set_offset(0)
    assert ids(server) == (["stays"] if decision == "accept" else ["soon", "stays"])


def test_t34_a_leap_that_comes_back_by_itself_stays_suspect_and_says_so(machine):
    server, set_offset = machine

    def reason():
        assert is_suspect(server)
        return server.admin("GET", "clock")[1]["suspect"]["reason"]

    leapt = "while the server ran, the system clock leapt"
    set_offset(7 * DAY)
    assert reason() in (f"{leapt} 7 d ahead", f"{leapt} 6 d 23 h ahead")
    set_offset(0)
    assert reason() == f"{leapt} ahead, and it agrees with the time shown now"
    assert server.admin("POST", "clock", {"accept": True})[0] == 200
    assert not is_suspect(server)


def purge_until_empty(server):
    for _ in range(1000):
        if backlog(server) == 0:
            return
        time.sleep(0.01)
    raise AssertionError(server.admin("GET", "purge"))


def long_ago(server, kind, link, body, headers=None):
    """A POST that was signed sixty days ago."""
    date = formatdate(time.time() - 60 * DAY, usegmt=True)
    status, text = ask(
        server, "POST", f"/{link}/{kind}".replace("//", "/"),
        {**signed("POST", kind, link, date), **(headers or {})}, json.dumps(body))
    assert status == 201, text


@pytest.mark.parametrize("how", ["stop", "kill -9"])
@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_t34_a_start_sixty_days_late_hides_and_destroys_nothing_until_an_operator_decides(
    machine, tmp_path, decision, how
):
    running, _ = machine
    server = Server(data=tmp_path / "late", test_clock=False, environment=started_at(running, -60 * DAY))
    server.start()
    try:
        long_ago(server, "dbs", "", {"id": "d"})
        partition_key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        long_ago(server, "colls", "dbs/d", {"id": "c", "partitionKey": partition_key, "defaultTtl": 30 * DAY})
        for name, ttl in [("month", {}), ("quarter", {"ttl": 90 * DAY}), ("stays", {"ttl": -1})]:
            key = {"x-ms-documentdb-partitionkey": '["p"]'}
            long_ago(server, "docs", "dbs/d/colls/c", {"id": name, "pk": "p", **ttl}, key)
        assert not is_suspect(server)
        server.stop() if how == "stop" else server.kill()
        server.environment = started_at(running, 0)
        server.start()

        assert is_suspect(server)
        wait_for_log(server, "clock suspect")
        assert ids(server) == ["quarter", "stays"], "hidden by the wall clock"
        container = server.client().get_database_client("d").get_container_client("c")
        with pytest.raises(exceptions.CosmosResourceNotFoundError):
            container.read_item("month", "p")
        with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
            container.create_item({"id": "month", "pk": "p", "life": 2})
        assert (refused.value.status_code, "clock is suspect" in str(refused.value)) == (503, True)
        container.create_item({"id": "new", "pk": "p"})
        assert server.admin("POST", "purge", {"now": True})[0] == 409
        assert server.admin("GET", "purge")[1]["purgedItems"] == 0, "nothing is destroyed"

        assert server.admin("POST", "clock", {decision: True})[0] == 200
        assert not is_suspect(server)
        wait_for_log(server, "the clock is trusted again")
        if decision == "accept":
            purge_until_empty(server)
            assert server.admin("GET", "purge")[1]["purgedItems"] == 1
            assert ids(server) == ["new", "quarter", "stays"]
            container.create_item({"id": "month", "pk": "p", "life": 2})
        else:
            assert ids(server) == ["month", "new", "quarter", "stays"], "the rejected time never was"
    finally:
        server.kill()


def watched(server, seconds, since, faked=0):
    """Looks at the time again and again for so long: it never goes back. Returns the last look."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        look = Sighting(server, faked)
        assert look.shown >= since.shown, "time never goes back"
        since = look
        time.sleep(0.05)
    return since


@pytest.mark.timeout(300)
def test_t34_a_wall_clock_an_hour_ahead_for_ten_seconds_heals_at_nine_tenths_and_is_told_meanwhile(machine, tmp_path):
    running, set_offset = machine
    # The step is followed: two hours would make the clock suspect.
    server = Server(data=tmp_path / "hour", test_clock=False, extra=["--max-clock-jump", "7200"], environment=running.environment)
    server.start()
    try:
        first = Sighting(server)
        assert abs(first.offset) <= OFFSET_MOST_SECONDS
        set_offset(3600)
        wrong = watched(server, 10, first, faked=3600)
        assert abs(wrong.ahead) <= OFFSET_MOST_SECONDS + LEASE_SECONDS, "a step of an hour is followed"
        set_offset(0)

        begin = Sighting(server)
        assert begin.shown >= wrong.shown, "time never goes back"
        assert 3590 < begin.offset <= 3600 + OFFSET_MOST_SECONDS
        clock = server.admin("GET", "clock")[1]
        assert clock["suspect"] is None
        assert clock["offset"].endswith(" ahead of the system clock, slowing down until they agree"), clock
        assert 3590 < clock["offsetSeconds"] <= 3600 + OFFSET_MOST_SECONDS
        wait_for_log(server, "ahead of the system clock, slowing down until they agree")

        end = watched(server, 20, begin)
        least, most, advanced = end.before - begin.after, end.after - begin.before, end.shown - begin.shown
        # What was made up, by the server's own figures, which each look compares with the machine's clock: a tenth of what has
        # passed. At full rate it would be nothing, however slow the machine is.
        healed = begin.offset - end.offset
        assert 0.05 * least <= healed <= 0.1 * most + LEASE_SECONDS, "time that is ahead runs at nine tenths of the rate"
        assert advanced >= 0.9 * least - LEASE_SECONDS, "and never stands still"
        assert sum("slowing down" in line for line in server.output) == 1, "logged once"

        # A crash heals nothing and adds nothing.
        server.kill()
        server.start()
        again = Sighting(server)
        assert again.shown >= end.shown, "time never goes back"
        assert 3580 < again.offset <= begin.offset + OFFSET_MOST_SECONDS
        wait_for_log(server, "ahead of the system clock, slowing down until they agree")

        # The wall clock has caught up.
        set_offset(3600)
        healed = watched(server, 1, again, faked=3600)
        assert abs(healed.ahead) <= OFFSET_MOST_SECONDS + LEASE_SECONDS
        wait_for_log(server, "the store's time agrees with the system clock again")
    finally:
        server.kill()
