"""T29: the test clock. Only forward, only with the mode, only with the key; SDKs keep working after any jump."""

import time

from bolide import Server
from shown_time import OFFSET_MOST_SECONDS

YEAR = 365 * 24 * 3600


def test_t29_the_mode_is_shown_and_the_clock_moves_by_what_was_asked(server, clock):
    status, body = server.admin("GET", "clock")
    assert status == 200 and body["testClock"] is True and body["stopped"] is True
    before = clock.now()
    clock.advance(12345)
    assert clock.now() - before == 12345


def test_t29_a_years_jump_leaves_the_sdk_working(make_container, item_of, clock):
    container = make_container(YEAR)
    item = item_of(container, "one year")
    stored = item.create()
    started = time.monotonic()
    clock.move_to(stored["_ts"] + YEAR - 10)
    assert item.alive()
    clock.move_to(stored["_ts"] + YEAR)
    assert not item.alive()
    assert time.monotonic() - started < 60, "a year has not passed for real"
    assert item.create()["_ts"] >= stored["_ts"] + YEAR


def test_t29_it_never_goes_back(server, clock):
    before = clock.now()
    for body in ({"advanceSeconds": -1}, {"advanceSeconds": "10"}, {"advanceSeconds": 1.5}, {}, {"advanceSeconds": None}):
        status, answer = server.admin("POST", "clock", body)
        assert status == 400, (body, answer)
    assert clock.now() >= before


def test_t29_the_admin_api_is_never_open(server):
    for key in (None, "", "wrong"):
        for method, path, body in [("GET", "clock", None), ("GET", "status", None),
                                   ("POST", "clock", {"advanceSeconds": 10}), ("POST", "purge", {"paused": True})]:
            status, _ = server.admin(method, path, body, key=key)
            assert status in (401, 403), (method, path, key)


def test_t29_refused_when_the_mode_is_off():
    process = Server(test_clock=False).start()
    try:
        before = time.time()
        status, body = process.admin("GET", "clock")
        after = time.time()
        assert status == 200 and body["testClock"] is False and body["stopped"] is False
        # `now` is in whole seconds.
        assert before - OFFSET_MOST_SECONDS - 1 <= body["now"] <= after + OFFSET_MOST_SECONDS
        status, body = process.admin("POST", "clock", {"advanceSeconds": 10})
        assert 400 <= status < 500 and body["message"], (status, body)
    finally:
        process.stop()


def test_t29_an_advanced_store_refuses_to_open_without_the_mode(tmp_path):
    process = Server(data=tmp_path / "data").start()
    process.clock.advance(YEAR)
    advanced = process.clock.now()
    process.stop()

    without = Server(data=tmp_path / "data", test_clock=False)
    try:
        without.start()
        refused = False
    except RuntimeError as error:
        refused = "test" in str(error).lower() and "clock" in str(error).lower()
    finally:
        without.kill()
    assert refused, "a store that was advanced must say so"

    again = Server(data=tmp_path / "data").start()
    try:
        assert again.clock.now() >= advanced
    finally:
        again.stop()
