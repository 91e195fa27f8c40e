"""Forecast, dry run and the guard against many expiries at once (T30)."""

import random
import time

import pytest
from azure.cosmos import PartitionKey, exceptions

from test_hold import path


def shown(server, container, query=""):
    status, answer = server.admin("GET", path("ttl", container) + query)
    assert status == 200, answer
    return answer


def populate(container, count, seed):
    """Items of all kinds of ttl; the largest is 600 seconds."""
    source = random.Random(seed)
    for number in range(count):
        item = {"id": str(number), "pk": str(number % 7), "padding": "x" * source.randrange(50)}
        kind = source.randrange(4)
        if kind:
            item["ttl"] = -1 if kind == 1 else source.randrange(1, 600)
        container.create_item(item)


@pytest.fixture
def spread(each_server):
    """A container with random items, on one and on four physical partitions."""
    with each_server.client() as client:
        database = client.create_database_if_not_exists("forecast")
        container = database.create_container(f"c{time.monotonic_ns()}", PartitionKey("/pk"), default_ttl=300)
        populate(container, 80, seed=5)
        yield each_server, database, container


def test_t30_the_forecast_is_what_happens(spread):
    server, _, container = spread
    before = shown(server, container, "?forecast=minute&count=11")
    forecast = before["forecast"]
    assert forecast["exact"] and len(forecast["intervals"]) == 11
    living = before["living"]
    for interval in forecast["intervals"]:
        server.clock.advance(60)
        now = shown(server, container)["living"]
        assert living["items"] - now["items"] == interval["items"]
        assert living["bytes"] - now["bytes"] == interval["bytes"]
        living = now
    assert forecast["later"]["items"] == 0 and forecast["never"] == living


@pytest.mark.parametrize("default_ttl", ["off", "-1", "1", "100", "150", "1000"])
def test_t30_the_dry_run_is_what_the_change_then_does(spread, default_ttl):
    server, database, container = spread
    server.clock.advance(120)
    dry_run = shown(server, container, "?defaultTtl=" + default_ttl)
    living = dry_run["living"]
    database.replace_container(
        container,
        PartitionKey("/pk"),
        default_ttl=None if default_ttl == "off" else int(default_ttl),
    )
    after = shown(server, container)["living"]
    assert dry_run["dryRun"]["exact"]
    assert dry_run["dryRun"]["livingThen"] == after
    assert dry_run["dryRun"]["expiringAtOnce"]["items"] == living["items"] - after["items"]
    assert dry_run["dryRun"]["expiringAtOnce"]["bytes"] == living["bytes"] - after["bytes"]


def test_t30_a_guarded_change_wants_to_be_confirmed(server, make_container, database, clock):
    container = make_container()
    for number in range(10):
        container.create_item({"id": str(number), "pk": "p"})
        clock.advance(10)
    status, answer = server.admin("PATCH", path("ttl", container), {"maxInstantExpiry": 0.2})
    assert status == 200 and answer["lifecycle"]["maxInstantExpiry"] == 0.2

    def change(default_ttl, **options):
        database.replace_container(container, PartitionKey("/pk"), default_ttl=default_ttl, **options)

    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        change(50)
    assert (caught.value.status_code, caught.value.sub_status) == (403, 9030)
    assert "6 of 10 living items" in str(caught.value)
    assert shown(server, container)["living"]["items"] == 10
    change(90)
    assert shown(server, container)["living"]["items"] == 8
    change(50, headers={"x-bolide-confirm-expiry": "true"})
    assert shown(server, container)["living"]["items"] == 4
