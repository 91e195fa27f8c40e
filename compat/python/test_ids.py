"""The ids of compat/ids.json through the Python SDK: what the service takes works in every operation."""

import json
import pathlib
import re

import pytest
from azure.cosmos import exceptions

TABLE = json.loads((pathlib.Path(__file__).parent.parent / "ids.json").read_text())
DURATION = re.compile(r"\d+\.\d{3}")


@pytest.fixture(scope="module")
def container(database):
    return database.create_container("ids", {"paths": ["/pk"], "kind": "Hash"})


def found(container, item_id):
    query = {"query": "SELECT VALUE c.id FROM c WHERE c.id = @id", "parameters": [{"name": "@id", "value": item_id}]}
    return list(container.query_items(**query, enable_cross_partition_query=True))


def write(container, operation, item):
    """The SDK itself refuses to write ids with '?', '#', line ends or a blank at the end, but not in a batch."""
    name = [item["id"]] if operation == "replace" else []
    try:
        return getattr(container, f"{operation}_item")(*name, item)
    except ValueError as error:
        assert str(error) in ("Id contains illegal chars.", "Id ends with a space or newline.")
        return container.execute_item_batch([(operation, (*name, item), {})], "p")[0]["resourceBody"]


@pytest.mark.parametrize("item_id", TABLE["accepted"] + TABLE["escaped"])
def test_every_operation(container, item_id):
    assert write(container, "create", {"id": item_id, "pk": "p"})["id"] == item_id
    headers = {}
    read = container.read_item(item_id, "p", response_hook=lambda given, _: headers.update(given))
    assert read["id"] == item_id
    assert DURATION.fullmatch(headers["x-ms-request-duration-ms"])
    assert write(container, "replace", {"id": item_id, "pk": "p", "n": 1})["n"] == 1
    operation = [{"op": "incr", "path": "/n", "value": 1}]
    assert container.patch_item(item_id, "p", operation)["n"] == 2
    assert write(container, "upsert", {"id": item_id, "pk": "p", "n": 7})["n"] == 7
    assert found(container, item_id) == [item_id]
    batch = container.execute_item_batch([("read", (item_id,), {})], "p")
    assert batch[0]["resourceBody"]["id"] == item_id
    container.delete_item(item_id, "p")
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as missing:
        container.read_item(item_id, "p")
    assert "Resource Not Found" in missing.value.message


@pytest.mark.parametrize("item_id", TABLE["dots"])
def test_without_a_path_of_its_own(container, item_id):
    """URLs have no such last segment: it is what a browser goes up by."""
    container.create_item({"id": item_id, "pk": "p"})
    assert found(container, item_id) == [item_id]
    # Once a client can name it, it belongs to the other ids of the table.
    with pytest.raises(exceptions.CosmosHttpResponseError) as unnamed:
        container.read_item(item_id, "p")
    assert unnamed.value.status_code == 401
    container.execute_item_batch([("delete", (item_id,), {})], "p")
    assert found(container, item_id) == []


@pytest.mark.parametrize("item_id", TABLE["refused"])
def test_what_no_path_can_name_is_refused(container, item_id):
    with pytest.raises((exceptions.CosmosHttpResponseError, ValueError)) as refused:
        container.create_item({"id": item_id, "pk": "p"})
    assert getattr(refused.value, "status_code", 400) == 400
    with pytest.raises(exceptions.CosmosBatchOperationError) as refused:
        container.execute_item_batch([("create", ({"id": item_id, "pk": "p"},), {})], "p")
    assert refused.value.operation_responses[0]["statusCode"] == 400
    assert found(container, item_id) == []
