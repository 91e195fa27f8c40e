"""Fixtures: one server for the session, one database per test module, containers on demand."""

import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions

from bolide import Server


@pytest.fixture(scope="session")
def server():
    process = Server().start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def split_server():
    """A server whose containers have four physical partitions each."""
    process = Server(extra=["--partitions", "4"]).start()
    yield process
    process.stop()


@pytest.fixture(scope="session", params=["server", "split_server"], ids=["one", "four"])
def each_server(request):
    """The server with one physical partition per container, then the one with four."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def client(server):
    with server.client() as opened:
        yield opened


@pytest.fixture(scope="module")
def database(client):
    return client.create_database("ttl-" + uuid.uuid4().hex)


@pytest.fixture
def clock(server):
    return server.clock


@pytest.fixture
def make_container(database):
    """make_container(default_ttl=..., **more) -> a new container with partition key /pk."""

    def make(default_ttl=None, **more):
        more.setdefault("partition_key", PartitionKey(path="/pk"))
        return database.create_container("c-" + uuid.uuid4().hex, default_ttl=default_ttl, **more)

    return make


@pytest.fixture
def set_default(database):
    """set_default(container, n) replaces the container's definition with default TTL n (None = off)."""

    def change(container, default_ttl):
        properties = container.read()
        return database.replace_container(
            container,
            partition_key=PartitionKey(path=properties["partitionKey"]["paths"][0]),
            indexing_policy=properties["indexingPolicy"],
            default_ttl=default_ttl,
        )

    return change


class Item:
    """One item of one container, by id, with the checks of TTL tests."""

    def __init__(self, container, name, pk="p"):
        self.container = container
        self.name = name
        self.pk = pk

    def body(self, **more):
        return {"id": self.name, "pk": self.pk, **more}

    def create(self, **more):
        return self.container.create_item(self.body(**more))

    def upsert(self, **more):
        return self.container.upsert_item(self.body(**more))

    def replace(self, **more):
        return self.container.replace_item(self.name, self.body(**more))

    def patch(self, *operations, **options):
        return self.container.patch_item(self.name, self.pk, list(operations), **options)

    def delete(self, **options):
        return self.container.delete_item(self.name, self.pk, **options)

    def read(self):
        return self.container.read_item(self.name, self.pk)

    def alive(self):
        """Whether the item is live; every way of reading must agree (T14)."""
        by_read = True
        try:
            self.read()
        except exceptions.CosmosResourceNotFoundError:
            by_read = False
        ways = {
            "read": by_read,
            "list": any(item["id"] == self.name for item in self.container.read_all_items()),
            "query": bool(list(self.container.query_items(
                "SELECT * FROM c WHERE c.id = @id",
                parameters=[{"name": "@id", "value": self.name}],
                partition_key=self.pk,
            ))),
            "cross query": any(item["id"] == self.name for item in self.container.query_items(
                "SELECT * FROM c", enable_cross_partition_query=True)),
            "read many": bool(list(self.container.read_items([(self.name, self.pk), ("no such item", self.pk)]))),
        }
        assert len(set(ways.values())) == 1, f"the ways to look disagree: {ways}"
        return by_read


@pytest.fixture
def item_of():
    return Item


@pytest.fixture
def refused():
    """refused(status, call, *args) calls and returns the error, which must carry that status."""

    def check(status, call, *arguments, **options):
        with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
            call(*arguments, **options)
        assert caught.value.status_code == status, caught.value
        return caught.value

    return check
