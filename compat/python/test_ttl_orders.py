"""Orders with 30 and 90 days: every step checked with the clock moved."""

import pytest
from azure.cosmos import PartitionKey, exceptions

DAY = 24 * 3600
CUSTOMER = "CO18009186470"


@pytest.fixture
def orders(database):
    yield database.create_container(
        "orders", PartitionKey(path="/customerId"), default_ttl=-1, offer_throughput=20000)
    database.delete_container("orders")


def read(orders):
    return orders.read_item("SO05", CUSTOMER)


def gone(orders):
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        read(orders)
    return True


def new_order(orders, **more):
    return orders.create_item({"id": "SO05", "customerId": CUSTOMER, "value": 100, **more})


def test_container_and_throughput(orders):
    assert orders.read()["defaultTtl"] == -1
    assert orders.get_throughput().offer_throughput == 20000


def test_thirty_days(orders, clock):
    stored = new_order(orders, ttl=30 * DAY)
    clock.move_to(stored["_ts"] + 30 * DAY - 60)
    assert read(orders)["ttl"] == 30 * DAY
    clock.move_to(stored["_ts"] + 30 * DAY)
    assert gone(orders)


def test_the_read_item_with_another_ttl_is_replaced(orders, clock):
    new_order(orders, ttl=30 * DAY)
    clock.advance(10 * DAY)
    item = read(orders)
    item["ttl"] = 60 * 30 * 30
    stored = orders.replace_item("SO05", item)
    clock.move_to(stored["_ts"] + 60 * 30 * 30 - 60)
    assert read(orders)["ttl"] == 54000
    clock.move_to(stored["_ts"] + 60 * 30 * 30)
    assert gone(orders)


def test_ttl_removed_then_default_90_days_then_default_removed(orders, database, clock):
    new_order(orders, ttl=30 * DAY)
    item = read(orders)
    del item["ttl"]
    stored = orders.replace_item("SO05", item)
    clock.move_to(stored["_ts"] + 400 * DAY)
    assert "ttl" not in read(orders), "default -1 and no ttl: it stays"

    # 90 days by default: this one is 400 days old and expires at once; a new one gets its 90 days.
    key = PartitionKey(path="/customerId")
    database.replace_container(orders, key, default_ttl=90 * DAY)
    assert orders.read()["defaultTtl"] == 90 * DAY
    assert gone(orders)
    stored = new_order(orders)
    clock.move_to(stored["_ts"] + 90 * DAY - 60)
    assert read(orders)
    clock.move_to(stored["_ts"] + 90 * DAY)
    assert gone(orders)

    # Without a default nothing expires any more, own ttl or not; and no expired item returns.
    database.replace_container(orders, key)
    assert "defaultTtl" not in orders.read()
    assert gone(orders)
    new_order(orders, ttl=5)
    clock.advance(400 * DAY)
    assert read(orders)["ttl"] == 5
