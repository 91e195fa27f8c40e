"""The big tier, run by `cargo xtask test --long`: a million items, many kills.

Skipped otherwise; the rules themselves are all proven in seconds by the other files.
"""

import os
import statistics
import time

import pytest
from azure.cosmos import PartitionKey

from bolide import Server
from test_ttl_expired import usage

pytestmark = [
    pytest.mark.skipif(not os.environ.get("BOLIDE_LONG"), reason="the long tier: cargo xtask test --long"),
    pytest.mark.timeout(3600),
]

MANY = 1_000_000
BATCH = 100
KEY = PartitionKey(path="/pk")


@pytest.fixture
def server(tmp_path):
    process = Server(data=tmp_path / "data", extra=["--durability", "buffered"]).start()
    yield process
    process.kill()


def fill(container, count):
    for start in range(0, count, BATCH):
        pk = f"p{start % 10_000}"
        operations = [("upsert", ({"id": f"{number}", "pk": pk},)) for number in range(start, min(start + BATCH, count))]
        container.execute_item_batch(operations, partition_key=pk)


def seconds_to_change(database, container, default_ttl):
    started = time.perf_counter()
    database.replace_container(container, KEY, default_ttl=default_ttl)
    return time.perf_counter() - started


def test_t11_a_change_of_the_default_costs_the_same_for_ten_items_and_for_a_million(server):
    database = server.client().create_database("d")
    few = database.create_container("few", KEY, default_ttl=1_000_000)
    many = database.create_container("many", KEY, default_ttl=1_000_000)
    fill(few, 10)
    fill(many, MANY)
    assert usage(many)["documentsCount"] == MANY

    times = {few: [], many: []}
    for turn in range(20):
        for container, taken in times.items():
            taken.append(seconds_to_change(database, container, 2_000_000 + turn))
    small, large = (statistics.median(taken) for taken in times.values())
    assert large < 3 * small + 0.005, f"10 items: {small * 1000:.2f} ms, {MANY} items: {large * 1000:.2f} ms"

    # T18: one change expires all of them, and the count is exact at once.
    server.clock.advance(1000)
    assert usage(many)["documentsCount"] == MANY
    assert seconds_to_change(database, many, 500) < 3 * small + 0.05
    assert usage(many)["documentsCount"] == 0
    assert list(many.query_items("SELECT * FROM c", enable_cross_partition_query=True, max_item_count=10)) == []
