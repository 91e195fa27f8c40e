"""T9-T13: what restarts, changes and ends a countdown, and that expired is final."""

import pytest

DAY = 24 * 3600


def test_t9_every_write_restarts_the_countdown(make_container, item_of, clock):
    container = make_container(100)
    item = item_of(container, "restarted")
    writes = {
        "create": lambda: item.create(n=0),
        "replace": lambda: item.replace(n=1),
        "upsert": lambda: item.upsert(n=2),
        "patch": lambda: item.patch({"op": "incr", "path": "/n", "value": 1}),
        "batch": lambda: container.execute_item_batch([("upsert", (item.body(n=4),))], "p")[0]["resourceBody"],
        "batch patch": lambda: container.execute_item_batch(
            [("patch", (item.name, [{"op": "set", "path": "/n", "value": 5}]))], "p")[0]["resourceBody"],
    }
    last = 0
    for name, write in writes.items():
        written = write()
        assert written["_ts"] > last, name
        last = written["_ts"]
        clock.move_to(last + 90)
        assert item.alive(), name
    clock.move_to(last + 100)
    assert not item.alive()


def test_t9_reads_and_queries_do_not_restart_it(make_container, item_of, clock):
    item = item_of(make_container(100), "only read")
    stored = item.create()
    for elapsed in (30, 60, 90):
        clock.move_to(stored["_ts"] + elapsed)
        assert item.alive()
        assert item.read()["_ts"] == stored["_ts"]
    clock.move_to(stored["_ts"] + 100)
    assert not item.alive()


def test_t10_ttl_is_changed_removed_and_stopped_by_ordinary_updates(make_container, item_of, clock):
    item = item_of(make_container(1000), "changing")
    stored = item.create(ttl=100)
    clock.move_to(stored["_ts"] + 50)
    stored = item.replace(ttl=300)
    clock.move_to(stored["_ts"] + 290)
    stored = item.replace()
    assert "ttl" not in stored
    clock.move_to(stored["_ts"] + 990)
    stored = item.patch({"op": "set", "path": "/ttl", "value": -1})
    clock.move_to(stored["_ts"] + 400 * DAY)
    assert item.alive()
    stored = item.patch({"op": "remove", "path": "/ttl"})
    clock.move_to(stored["_ts"] + 1000)
    assert not item.alive()


def test_t11_raising_and_lowering_the_default_re_dates_at_once(make_container, set_default, item_of, clock):
    container = make_container(100)
    items = [item_of(container, name) for name in ("a", "b", "c")]
    stored = [item.create() for item in items][0]
    own = item_of(container, "own")
    own.create(ttl=150)

    set_default(container, 1000)
    clock.move_to(stored["_ts"] + 140)
    assert all(item.alive() for item in items) and own.alive()
    clock.move_to(stored["_ts"] + 160)
    assert all(item.alive() for item in items)
    assert not own.alive(), "an own ttl does not follow the default"

    set_default(container, 120)
    assert not any(item.alive() for item in items), "lowered below their age: expired at once"


def test_t12_without_a_default_nothing_expires_and_it_counts_again_when_restored(
        make_container, set_default, item_of, clock):
    container = make_container(-1)
    item = item_of(container, "paused")
    stored = item.create(ttl=100)
    set_default(container, None)
    assert "defaultTtl" not in container.read()
    clock.move_to(stored["_ts"] + 500)
    assert item.alive(), "ttl has no effect while the default is off"
    set_default(container, -1)
    assert not item.alive(), "counted from _ts again"


def test_t12_off_differs_from_minus_one(make_container, item_of, clock):
    off, on = item_of(make_container(), "x"), item_of(make_container(-1), "x")
    off.create(ttl=50)
    stored = on.create(ttl=50)
    clock.move_to(stored["_ts"] + 50)
    assert off.alive()
    assert not on.alive()


@pytest.mark.parametrize("after", [10_000, -1, None], ids=repr)
def test_t13_what_expired_by_the_default_never_comes_back(make_container, set_default, item_of, clock, after):
    container = make_container(100)
    dead = item_of(container, "dead")
    stored = dead.create()
    clock.move_to(stored["_ts"] + 50)
    young = item_of(container, "young")
    young.create()
    clock.move_to(stored["_ts"] + 100)
    set_default(container, after)
    assert not dead.alive()
    assert young.alive()
    clock.advance(200)
    assert not dead.alive()
    assert young.alive()
    set_default(container, 1_000_000)
    assert not dead.alive()


@pytest.mark.parametrize("after", [10_000, None], ids=repr)
def test_t13_what_expired_by_its_own_ttl_never_comes_back(make_container, set_default, item_of, clock, after):
    container = make_container(-1)
    dead = item_of(container, "dead")
    stored = dead.create(ttl=100)
    clock.move_to(stored["_ts"] + 100)
    set_default(container, after)
    assert not dead.alive()
    set_default(container, -1)
    assert not dead.alive()


def test_t13_lowered_and_raised_within_one_second_still_kills(make_container, set_default, item_of, clock):
    container = make_container(1000)
    dead = item_of(container, "dead")
    stored = dead.create()
    clock.move_to(stored["_ts"] + 500)
    young = item_of(container, "young")
    young.create()
    for default in (100, 1000, 100, None, -1, 100, 1000):
        set_default(container, default)
    assert not dead.alive()
    assert young.alive()


def test_t13_an_item_created_in_an_expired_ones_place_lives_by_its_own_time(
        make_container, set_default, item_of, clock):
    container = make_container(100)
    item = item_of(container, "same id")
    stored = item.create(life=1)
    clock.move_to(stored["_ts"] + 100)
    second = item.create(life=2)
    set_default(container, 1000)
    clock.move_to(second["_ts"] + 900)
    assert item.read()["life"] == 2
    clock.move_to(second["_ts"] + 1000)
    assert not item.alive()
