"""The nine cells again through the asynchronous client, which speaks over another HTTP library."""

import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

from bolide import EMULATOR_KEY
from test_ttl_truth_table import CELLS, DAY


@pytest.mark.parametrize("default, own, lives", CELLS)
async def test_t2_cell(server, clock, default, own, lives):
    async with CosmosClient(server.endpoint, EMULATOR_KEY) as client:
        database = await client.create_database("async-" + uuid.uuid4().hex)
        container = await database.create_container("c", PartitionKey(path="/pk"), default_ttl=default)
        body = {"id": "cell", "pk": "p", **({} if own is None else {"ttl": own})}
        stored = await container.create_item(body)
        if lives is None:
            clock.advance(400 * DAY)
            assert (await container.read_item("cell", "p"))["id"] == "cell"
        else:
            clock.move_to(stored["_ts"] + lives - 10)
            assert (await container.read_item("cell", "p"))["id"] == "cell"
            clock.move_to(stored["_ts"] + lives)
            with pytest.raises(exceptions.CosmosResourceNotFoundError):
                await container.read_item("cell", "p")
            assert [item async for item in container.query_items("SELECT * FROM c", partition_key="p")] == []
        await client.delete_database(database.id)
