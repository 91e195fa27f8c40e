"""Every recorded exchange of the .NET client is answered as that client needs it (see dotnet_replay.py)."""

import re

import pytest

from bolide import Server
from dotnet_replay import Replay, parts

# Where the server answers otherwise than when the exchanges were recorded: what the part's name begins with, the difference, why.
# A row that nothing needs fails the test, as a difference does that has no row.
DIFFERENCES = [
    ("", r"partitionKey has no 'version'", "a version that the definition does not name is not added"),
    ("", r"(writ|read)ableLocations has 1 too many", "the region has the name that the emulator gives its own"),
    ("", r"no header x-ms-(cosmos-)?item-l?lsn", "sent where the answer is about an item"),
    ("batch: if-none-match", r"status 207, recorded 200", "the service answers 207 where an item was not modified"),
    ("hierarchical key: levels missing", r"status 201, recorded 400", "keys with missing levels are accepted now"),
]


@pytest.fixture(scope="module")
def found():
    """What is wrong with the answers to each part, and the rows of DIFFERENCES that were needed."""
    process = Server().start()
    try:
        replay, needed, wrong = Replay(process), set(), {}
        for part in parts():
            lines = replay.part(part)
            rows = [(line, _row(part["name"], line)) for line in lines]
            needed |= {row for _, row in rows if row is not None}
            wrong[part["name"]] = [line for line, row in rows if row is None]
        return wrong, needed
    finally:
        process.kill()


def _row(name, line):
    for number, (beginning, difference, _) in enumerate(DIFFERENCES):
        if name.startswith(beginning) and re.search(difference, line):
            return number
    return None


def test_every_exchange_was_recorded():
    recorded = parts()
    assert len(recorded) == 39
    assert sum(len(part["exchanges"]) for part in recorded) == 206


@pytest.mark.parametrize("name", [part["name"] for part in parts()])
def test_a_recorded_part_is_answered_as_the_client_needs(found, name):
    wrong, _ = found
    assert wrong[name] == []


def test_every_known_difference_is_one(found):
    _, needed = found
    assert [row for number, row in enumerate(DIFFERENCES) if number not in needed] == []
