"""T1-T3, T7, T8: when an item expires. All nine cells of the truth table, each checked just before and just after."""

import pytest

DAY = 24 * 3600
MAXIMUM = 2_147_483_647


# (default of the container, ttl of the item, seconds from _ts to expiry or None)
CELLS = [
    (None, None, None),
    (None, -1, None),
    (None, 100, None),
    (-1, None, None),
    (-1, -1, None),
    (-1, 100, 100),
    (200, None, 200),
    (200, -1, None),
    (200, 100, 100),
]


@pytest.mark.parametrize("default, own, lives", CELLS)
def test_t2_cell(make_container, item_of, clock, default, own, lives):
    container = make_container(default)
    item = item_of(container, "cell")
    stored = item.create(**({} if own is None else {"ttl": own}))
    assert stored.get("ttl") == own
    if lives is None:
        clock.advance(400 * DAY)
        assert item.alive()
    else:
        clock.move_to(stored["_ts"] + lives - 10)
        assert item.alive()
        clock.move_to(stored["_ts"] + lives)
        assert not item.alive()


def test_t2_own_ttl_longer_than_the_default_wins(make_container, item_of, clock):
    item = item_of(make_container(100), "longer")
    stored = item.create(ttl=300)
    clock.move_to(stored["_ts"] + 290)
    assert item.alive()
    clock.move_to(stored["_ts"] + 300)
    assert not item.alive()


def test_t1_expired_from_the_very_second_of_the_deadline(make_container, item_of, clock):
    item = item_of(make_container(1), "second")
    stored = item.create()
    clock.move_to(stored["_ts"] + 1)
    assert not item.alive()


def test_t3_a_new_container_has_no_default_and_the_ttl_is_stored_and_returned(make_container, item_of, clock):
    container = make_container()
    assert container.read().get("defaultTtl") is None
    item = item_of(container, "off")
    item.create(ttl=5)
    clock.advance(DAY)
    assert item.read()["ttl"] == 5


def test_t7_the_largest_ttl_means_not_yet(make_container, item_of, clock):
    inheriting = item_of(make_container(MAXIMUM), "inheriting")
    owning = item_of(make_container(-1), "owning")
    inheriting.create()
    owning.create(ttl=MAXIMUM)
    clock.advance(10 * 365 * DAY)
    assert inheriting.alive()
    assert owning.alive()


def test_t8_only_the_root_ttl_of_exactly_that_spelling_counts(make_container, item_of, clock):
    container = make_container(-1)
    for name, body in [("nested", {"more": {"ttl": 5}}), ("upper", {"TTL": 5}), ("mixed", {"Ttl": 0})]:
        item = item_of(container, name)
        item.create(**body)
        clock.advance(DAY)
        assert item.alive(), name


def test_t2_hierarchical_and_undefined_keys_expire_alike(database, clock):
    from azure.cosmos import PartitionKey, exceptions
    from azure.cosmos.partition_key import NonePartitionKeyValue

    deep = database.create_container("deep", PartitionKey(path=["/a", "/b"], kind="MultiHash"), default_ttl=50)
    flat = database.create_container("flat", PartitionKey(path="/pk"), default_ttl=50)
    deep.create_item({"id": "x", "a": "1", "b": None})
    last = flat.create_item({"id": "x"})
    assert deep.read_item("x", ["1", None])["id"] == "x"
    clock.move_to(last["_ts"] + 50)
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        deep.read_item("x", ["1", None])
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        flat.read_item("x", NonePartitionKeyValue)
