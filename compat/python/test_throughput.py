"""Request charges, offers, and what happens beyond a provisioned throughput. Budgets run on real time (T29): a test that
spends them waits only as long as the SDK itself decides to."""

import uuid

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties, documents, exceptions

from bolide import Server

PK = PartitionKey(path="/pk")
# Of an item that costs 50 units or more to write, so that a second is spent by few requests on the slowest machine.
LARGE = "x" * 100_000


@pytest.fixture(scope="module")
def enforced():
    process = Server(extra=["--enforce-throughput"]).start()
    yield process
    process.stop()


def impatient(server):
    """A client that leaves refusals to its caller."""
    policy = documents.ConnectionPolicy()
    policy.RetryOptions._max_retry_attempt_count = 0
    return server.client(connection_policy=policy)


def container_of(client, **offer):
    database = client.create_database(uuid.uuid4().hex)
    return database.create_container("c", PK, **offer)


def charge_of(client):
    return float(client.client_connection.last_response_headers["x-ms-request-charge"])


def spend(container):
    """Creates items until one is refused; returns the refusal."""
    for _ in range(1000):
        try:
            container.create_item({"id": uuid.uuid4().hex, "pk": "p", "fill": LARGE})
        except exceptions.CosmosHttpResponseError as error:
            assert error.status_code == 429, error
            return error
    raise AssertionError("nothing was refused")


def test_every_operation_tells_its_charge(client):
    container = container_of(client)
    assert charge_of(client) == 4.95
    item = {"id": "1", "pk": "p", "a": 1}
    container.create_item(item)
    created = charge_of(client)
    assert 5 < created < 6
    container.read_item("1", "p")
    assert charge_of(client) == 1
    container.replace_item("1", {**item, "a": 2})
    assert charge_of(client) == 10.2
    container.upsert_item({**item, "a": 2})
    assert charge_of(client) == 10
    container.patch_item("1", "p", [{"op": "set", "path": "/a", "value": 3}])
    assert charge_of(client) == 10.2
    list(container.query_items("SELECT * FROM c WHERE c.a = 3", partition_key="p"))
    assert 2.19 < charge_of(client) < 3
    list(container.query_items_change_feed(is_start_from_beginning=True))
    assert charge_of(client) >= 1
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as missing:
        container.read_item("2", "p")
    assert float(missing.value.headers["x-ms-request-charge"]) == 1
    results = container.execute_item_batch([("create", ({"id": "b", "pk": "p"},)), ("read", ("1",))], "p")
    assert [result["requestCharge"] for result in results] == [pytest.approx(5.3), 1]
    assert charge_of(client) == pytest.approx(6.3)
    container.delete_item("1", "p")
    assert charge_of(client) == created
    container.read()
    assert charge_of(client) == 2


def test_manual_throughput_is_read_and_replaced(client, refused):
    container = container_of(client, offer_throughput=500)
    assert container.get_throughput().offer_throughput == 500
    container.replace_throughput(50_000)
    assert container.get_throughput().offer_throughput == 50_000
    assert client.client_connection.last_response_headers["x-ms-request-charge"]
    # A hundredth of the most that there ever was is the least that there can be.
    refused(400, container.replace_throughput, 400)
    replaced = container.replace_throughput(500)
    assert replaced.offer_throughput == 500
    headers = client.client_connection.last_response_headers
    assert headers["x-ms-cosmos-min-throughput"] == "500"
    assert headers["x-ms-offer-replace-pending"] == "false"


def test_autoscale_is_read_and_replaced_and_does_not_become_manual_unasked(client, refused):
    asked = ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=10)
    container = container_of(client, offer_throughput=asked)
    shown = container.get_throughput()
    assert (shown.auto_scale_max_throughput, shown.auto_scale_increment_percent) == (4000, 10)
    container.replace_throughput(
        ThroughputProperties(auto_scale_max_throughput=7000, auto_scale_increment_percent=20)
    )
    shown = container.get_throughput()
    assert (shown.auto_scale_max_throughput, shown.auto_scale_increment_percent) == (7000, 20)
    refused(400, container.replace_throughput, 600)


def test_a_database_has_throughput_for_its_containers(client):
    database = client.create_database(uuid.uuid4().hex, offer_throughput=600)
    shared = database.create_container("shared", PK)
    own = database.create_container("own", PK, offer_throughput=400)
    assert database.get_throughput().offer_throughput == 600
    assert own.get_throughput().offer_throughput == 400
    offers = [offer["resource"] for offer in client.client_connection.ReadOffers()]
    assert shared.read()["_self"] not in offers and own.read()["_self"] in offers
    database.replace_throughput(700)
    assert database.get_throughput().offer_throughput == 700


def test_beyond_the_throughput_requests_are_refused_with_the_time_to_wait(enforced):
    with impatient(enforced) as client:
        refusal = spend(container_of(client, offer_throughput=400))
    assert refusal.sub_status == 3200
    assert 0 < int(refusal.headers["x-ms-retry-after-ms"]) <= 1000
    assert refusal.headers["x-ms-request-charge"] == "0.38"


def test_the_sdk_waits_as_told_and_succeeds(enforced):
    with enforced.client() as client:
        container = container_of(client, offer_throughput=400)
        # More than three seconds' worth.
        for number in range(30):
            container.create_item({"id": str(number), "pk": "p", "fill": LARGE})
        count = container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True)
        assert list(count) == [30]


def test_containers_without_throughput_share_their_databases(enforced):
    with impatient(enforced) as client:
        database = client.create_database(uuid.uuid4().hex, offer_throughput=400)
        first, second = database.create_container("a", PK), database.create_container("b", PK)
        own = database.create_container("own", PK, offer_throughput=400)
        # The second may turn between two requests; it cannot turn that often.
        for _ in range(20):
            spend(first)
            own.upsert_item({"id": "1", "pk": "p", "fill": ""})
            try:
                second.upsert_item({"id": "1", "pk": "p"})
            except exceptions.CosmosHttpResponseError as error:
                assert (error.status_code, error.sub_status) == (429, 3200)
                return
        raise AssertionError("the second container was never refused")
