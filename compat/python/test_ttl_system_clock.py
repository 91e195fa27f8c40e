"""T13, T34: the machine's clock set back, or leaping, under a running server and between two runs of it.

The server runs with libfaketime, which adds an offset from a file to the wall clock it sees and leaves the monotonic clock
alone. The library comes from Debian's package of that name, unpacked into compat/.cache. Offsets stay below a quarter of
an hour where the SDK is used, because signatures are judged by the same wall clock.
"""

import glob
import os
import pathlib
import shutil
import subprocess

import pytest
from azure.cosmos import PartitionKey

from bolide import Server

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
    server = Server(data=tmp_path / "data", environment={
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    })
    server.start()
    yield server, set_offset
    server.kill()


def ids(server):
    container = server.client().get_database_client("d").get_container_client("c")
    return sorted(item["id"] for item in container.read_all_items())


def filled(server):
    """A container in which one item has just died and another lives."""
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

    # And it runs on: what is written now dies on time.
    container = server.client().get_database_client("d").get_container_client("c")
    stored = container.create_item({"id": "dies", "pk": "p"})
    assert stored["_ts"] >= before
    server.clock.move_to(stored["_ts"] + 299)
    assert ids(server) == ["dies", "stays"]
    server.clock.move_to(stored["_ts"] + 300)
    assert ids(server) == ["stays"]


def test_t34_a_leap_of_the_system_clock_is_suspect_until_an_operator_decides(machine):
    server, set_offset = machine
    filled(server)
    before = server.clock.now()
    set_offset(7 * 24 * 3600)
    status, body = server.admin("GET", "clock")
    assert status == 200 and body["suspect"], body
    assert body["now"] - before < 60, "time goes on with the monotonic clock"
    assert server.admin("POST", "clock", {"reject": True})[0] == 200
    set_offset(0)
    assert not server.admin("GET", "clock")[1]["suspect"]
    assert ids(server) == ["stays"]
