"""T4, T5, T25: what is accepted, what is refused, and that a refusal changes nothing."""

import pytest
from azure.cosmos import PartitionKey, exceptions

TOO_LARGE = 2_147_483_648
BAD_DEFAULTS = [0, -2, -10, 1.5, "10", TOO_LARGE, True, {}, []]
BAD_TTLS = [0, -10, -2, None, 1.5, "x", "10", TOO_LARGE, True, {}, []]
NO_INDEX = {"indexingMode": "none", "automatic": False}


def shown(value):
    return repr(value)


@pytest.mark.parametrize("value", BAD_DEFAULTS, ids=shown)
def test_t4_bad_default_is_refused_on_create_and_nothing_is_made(database, refused, value):
    refused(400, database.create_container, "refused", PartitionKey(path="/pk"), default_ttl=value)
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        database.get_container_client("refused").read()


@pytest.mark.parametrize("value", BAD_DEFAULTS, ids=shown)
def test_t4_bad_default_is_refused_on_replace_and_the_old_one_stays(make_container, set_default, refused, value):
    container = make_container(77)
    refused(400, set_default, container, value)
    assert container.read()["defaultTtl"] == 77


@pytest.mark.parametrize("value", [-1, 1, 20.0, 2_147_483_647], ids=shown)
def test_t4_good_default_is_accepted_and_echoed(make_container, value):
    assert make_container(value).read()["defaultTtl"] == value


def test_t4_analytical_ttl_is_stored_and_echoed(make_container):
    assert make_container(analytical_storage_ttl=-1).read()["analyticalStorageTtl"] == -1


@pytest.mark.parametrize("default", [None, -1, 1000], ids=shown)
@pytest.mark.parametrize("value", BAD_TTLS, ids=shown)
def test_t5_bad_item_ttl_is_refused_on_every_write(make_container, item_of, refused, default, value):
    container = make_container(default)
    item = item_of(container, "bad")
    error = refused(400, item.create, ttl=value)
    assert "ttl" in error.message and "2147483647" in error.message
    refused(400, item.upsert, ttl=value)
    assert list(container.read_all_items()) == []

    before = item.create(ttl=500, kept=True)
    refused(400, item.replace, ttl=value)
    refused(400, item.upsert, ttl=value)
    refused(400, item.patch, {"op": "set", "path": "/ttl", "value": value})
    refused(400, item.patch, {"op": "add", "path": "/ttl", "value": value})
    assert item.read() == before


@pytest.mark.parametrize("value", BAD_TTLS, ids=shown)
def test_t5_bad_item_ttl_fails_its_operation_and_the_whole_batch(make_container, value):
    container = make_container(-1)
    batch = [
        ("create", ({"id": "good", "pk": "p"},)),
        ("create", ({"id": "bad", "pk": "p", "ttl": value},)),
        ("upsert", ({"id": "after", "pk": "p"},)),
    ]
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        container.execute_item_batch(batch, partition_key="p")
    assert caught.value.status_code == 400
    assert caught.value.error_index == 1
    assert [result["statusCode"] for result in caught.value.operation_responses] == [424, 400, 424]
    assert list(container.read_all_items()) == []


@pytest.mark.parametrize("operation", ["replace", "patch", "upsert"])
def test_t5_bad_ttl_in_a_batch_update_changes_nothing(make_container, item_of, operation):
    container = make_container(-1)
    item = item_of(container, "kept")
    before = item.create(ttl=500)
    update = {
        "replace": ("replace", ("kept", item.body(ttl=0))),
        "upsert": ("upsert", (item.body(ttl=0),)),
        "patch": ("patch", ("kept", [{"op": "incr", "path": "/ttl", "value": -500}])),
    }[operation]
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        container.execute_item_batch([update], partition_key="p")
    assert caught.value.status_code == 400
    assert item.read() == before


def test_t5_a_patch_that_leads_to_a_bad_ttl_is_refused(make_container, item_of, refused):
    item = item_of(make_container(-1), "patched")
    before = item.create(ttl=10)
    refused(400, item.patch, {"op": "incr", "path": "/ttl", "value": -10})
    refused(400, item.patch, {"op": "incr", "path": "/ttl", "value": 0.5})
    refused(400, item.patch, {"op": "add", "path": "/other", "value": 0}, {"op": "move", "from": "/other", "path": "/ttl"})
    assert item.read() == before


@pytest.mark.parametrize("value", [-1, 1000, 20.0, 2_147_483_647], ids=shown)
def test_t5_good_item_ttl_comes_back_as_it_was_sent(make_container, item_of, value):
    item = item_of(make_container(-1), "good")
    item.create(ttl=value)
    read = item.read()["ttl"]
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize("default", [-1, 100], ids=shown)
def test_t25_a_default_and_indexing_mode_none_exclude_each_other_on_create(database, refused, default):
    refused(400, database.create_container, "none", PartitionKey(path="/pk"),
            indexing_policy=NO_INDEX, default_ttl=default)


@pytest.mark.parametrize("default", [-1, 100], ids=shown)
def test_t25_and_on_replace_both_ways(database, make_container, refused, default):
    unindexed = make_container(indexing_policy=NO_INDEX)
    refused(400, database.replace_container, unindexed, PartitionKey(path="/pk"),
            indexing_policy=NO_INDEX, default_ttl=default)
    assert "defaultTtl" not in unindexed.read()

    expiring = make_container(default)
    refused(400, database.replace_container, expiring, PartitionKey(path="/pk"),
            indexing_policy=NO_INDEX, default_ttl=default)
    assert expiring.read()["indexingPolicy"]["indexingMode"] == "consistent"
    # Without the default, mode none is fine.
    database.replace_container(expiring, PartitionKey(path="/pk"), indexing_policy=NO_INDEX)
    assert expiring.read()["indexingPolicy"]["indexingMode"] == "none"
