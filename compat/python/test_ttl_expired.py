"""T14-T16, T18: expired items in every operation, before any purge has run."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey, exceptions


@pytest.fixture(autouse=True)
def purge_paused(server):
    """While the purge is paused, only the gate can hide expired items."""
    status, body = server.admin("POST", "purge", {"paused": True})
    assert status == 200, body
    yield
    server.admin("POST", "purge", {"paused": False})


@pytest.fixture
def dead(make_container, item_of, clock):
    """An item that has just expired, and its last live version."""
    item = item_of(make_container(100), "dead")
    item.last = item.create(n=1)
    clock.move_to(item.last["_ts"] + 100)
    return item


def test_t14_no_way_of_looking_sees_it(dead):
    assert not dead.alive()


def test_t14_a_query_on_ts_does_not_see_it(make_container, item_of, clock):
    container = make_container(100)
    first = item_of(container, "first").create()
    clock.move_to(first["_ts"] + 60)
    second = item_of(container, "second").create()

    def found():
        return [item["id"] for item in container.query_items(
            "SELECT * FROM c WHERE c._ts >= @since", enable_cross_partition_query=True,
            parameters=[{"name": "@since", "value": first["_ts"]}])]

    assert sorted(found()) == ["first", "second"]
    clock.move_to(first["_ts"] + 100)
    assert found() == ["second"]
    clock.move_to(second["_ts"] + 100)
    assert found() == []


def test_t14_a_batch_read_does_not_see_it(dead):
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        dead.container.execute_item_batch([("read", (dead.name,))], "p")
    assert caught.value.status_code == 404


def test_t15_create_succeeds_with_201(dead):
    statuses = []
    dead.container.create_item(dead.body(n=2), raw_response_hook=lambda answer: statuses.append(
        answer.http_response.status_code))
    assert statuses[-1] == 201
    assert dead.read()["n"] == 2
    assert dead.read()["_rid"] != dead.last["_rid"], "another item, not the old one revived"


def test_t15_upsert_creates_with_201(dead):
    statuses = []
    dead.container.upsert_item(dead.body(n=2), raw_response_hook=lambda answer: statuses.append(
        answer.http_response.status_code))
    assert statuses[-1] == 201


def test_t15_replace_patch_delete_answer_404(dead, refused):
    refused(404, dead.replace, n=2)
    refused(404, dead.patch, {"op": "set", "path": "/n", "value": 2})
    refused(404, dead.delete)
    assert not dead.alive()


def test_t15_if_match_answers_404_not_412(dead, refused):
    current = {"etag": dead.last["_etag"], "match_condition": MatchConditions.IfNotModified}
    stale = {"etag": '"no-such-etag"', "match_condition": MatchConditions.IfNotModified}
    for condition in (current, stale):
        refused(404, dead.container.replace_item, dead.name, dead.body(), **condition)
        refused(404, dead.patch, {"op": "set", "path": "/n", "value": 2}, **condition)
        refused(404, dead.delete, **condition)


def test_t15_a_conditional_patch_answers_404_not_412(dead, refused):
    refused(404, dead.patch, {"op": "set", "path": "/n", "value": 2}, filter_predicate="from c where c.n = 99")


def test_t15_a_batch_behaves_the_same(dead):
    for operation in [("replace", (dead.name, dead.body())), ("delete", (dead.name,)),
                      ("patch", (dead.name, [{"op": "set", "path": "/n", "value": 2}]))]:
        with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
            dead.container.execute_item_batch([operation], "p")
        assert caught.value.status_code == 404, operation
    results = dead.container.execute_item_batch([
        ("create", (dead.body(n=2),)),
        ("replace", (dead.name, dead.body(n=3))),
    ], "p")
    assert [result["statusCode"] for result in results] == [201, 200]
    assert dead.read()["n"] == 3


def test_t15_its_unique_key_values_are_free_at_once(database, clock):
    container = database.create_container(
        "unique", PartitionKey(path="/pk"), default_ttl=100,
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
    first = container.create_item({"id": "1", "pk": "p", "email": "a@b"})
    with pytest.raises(exceptions.CosmosResourceExistsError):
        container.create_item({"id": "2", "pk": "p", "email": "a@b"})
    container.create_item({"id": "2", "pk": "another partition", "email": "a@b"})
    clock.move_to(first["_ts"] + 100)
    container.create_item({"id": "2", "pk": "p", "email": "a@b"})
    with pytest.raises(exceptions.CosmosResourceExistsError):
        container.create_item({"id": "3", "pk": "p", "email": "a@b"})


def test_t15_a_living_item_keeps_its_unique_value_when_the_expired_one_is_purged(server, database, clock):
    container = database.create_container(
        "taken over", PartitionKey(path="/pk"), default_ttl=100,
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
    first = container.create_item({"id": "old", "pk": "p", "email": "a@b"})
    clock.move_to(first["_ts"] + 100)
    container.create_item({"id": "new", "pk": "p", "email": "a@b", "ttl": -1})
    server.admin("POST", "purge", {"paused": False})
    clock.advance(1000)
    assert [item["id"] for item in container.read_all_items()] == ["new"]
    with pytest.raises(exceptions.CosmosResourceExistsError):
        container.create_item({"id": "third", "pk": "p", "email": "a@b"})


def test_t16_pages_after_a_deadline_do_not_bring_expired_items(make_container, clock):
    container = make_container(-1)
    for number in range(6):
        last = container.create_item({"id": f"{number}", "pk": "p", "ttl": 100 if number % 2 else -1})
    pages = container.query_items("SELECT * FROM c", partition_key="p", max_item_count=2).by_page()
    seen = [item["id"] for item in next(pages)]
    assert len(seen) == 2
    clock.move_to(last["_ts"] + 100)
    rest = [item["id"] for page in pages for item in page]
    assert sorted(rest) == sorted(name for name in ("0", "2", "4") if name not in seen)


def usage(container):
    """documentsCount and documentsSize of the quota header."""
    headers = {}
    container.read(populate_quota_info=True, response_hook=lambda sent, _: headers.update(sent))
    pairs = (part.split("=") for part in headers["x-ms-resource-usage"].split(";") if part)
    return {name: float(value) for name, value in pairs}


def test_t18_figures_exclude_expired_items_from_that_instant(make_container, item_of, clock):
    container = make_container(100)
    for number in range(10):
        last = item_of(container, f"short {number}").create(filler="x" * 1000)
    long = item_of(container, "long").create(ttl=500)
    assert usage(container)["documentsCount"] == 11
    clock.move_to(last["_ts"] + 100)
    assert usage(container)["documentsCount"] == 1
    clock.move_to(long["_ts"] + 500)
    assert usage(container)["documentsCount"] == 0


def test_t18_the_admin_figures_agree(server, database, make_container, item_of, clock):
    container = make_container(100)
    last = [item_of(container, f"{number}").create() for number in range(5)][-1]
    item_of(container, "kept").create(ttl=-1)
    path = f"ttl/{database.id}/{container.id}"
    status, before = server.admin("GET", path)
    assert status == 200
    clock.move_to(last["_ts"] + 100)
    status, after = server.admin("GET", path)
    assert (before["living"]["items"], before["backlog"]["items"]) == (6, 0)
    assert (after["living"]["items"], after["backlog"]["items"]) == (1, 5)
