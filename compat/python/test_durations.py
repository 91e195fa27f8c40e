"""`x-ms-request-duration-ms` on every answer, errors too: decimal milliseconds."""

import re
import uuid

import pytest
from azure.core import MatchConditions
from azure.cosmos import CosmosClient, PartitionKey, exceptions

DURATION = re.compile(r"\d+\.\d{3}")
NAME = "x-ms-request-duration-ms"
WRONG_KEY = "d3JvbmcgYW5kIGxvbmcgZW5vdWdoIHRvIGJlIGEga2V5"


def test_every_answer_says_how_long_it_took(each_server):
    with each_server.client() as client:
        seen = []

        def asked(answer):
            """Reads the answer to its end and notes the header of the last one."""
            list(answer) if hasattr(answer, "by_page") else answer
            seen.append(client.client_connection.last_response_headers.get(NAME))

        database = client.create_database("durations-" + uuid.uuid4().hex)
        asked(database)
        container = database.create_container("c", PartitionKey(path="/pk"), default_ttl=-1)
        asked(container)
        item = {"id": "1", "pk": "p"}
        asked(container.create_item(item))
        asked(container.read_item("1", "p"))
        asked(container.upsert_item(item))
        asked(container.replace_item("1", item))
        asked(container.patch_item("1", "p", [{"op": "set", "path": "/n", "value": 1}]))
        asked(container.execute_item_batch([("read", ("1",))], "p"))
        asked(container.query_items("SELECT * FROM c", partition_key="p"))
        asked(container.query_items("SELECT * FROM c ORDER BY c.id", enable_cross_partition_query=True))
        asked(container.read_all_items())
        asked(container.query_items_change_feed(start_time="Beginning"))
        asked(container.read())
        asked(database.list_containers())
        asked(container.get_throughput())
        asked(container.delete_item("1", "p"))
        asked(database.delete_container(container))
        assert all(value and DURATION.fullmatch(value) for value in seen), seen


def test_every_error_says_how_long_it_took(each_server):
    with each_server.client() as client:
        database = client.create_database("durations-" + uuid.uuid4().hex)
        container = database.create_container("c", PartitionKey(path="/pk"))
        container.create_item({"id": "1", "pk": "p"})
        stale = {"etag": '"stale"', "match_condition": MatchConditions.IfNotModified}
        for status, call in [
            (400, lambda: container.create_item({"id": "2", "pk": "p", "ttl": 0})),
            (400, lambda: list(container.query_items("SELECT * FRM c", partition_key="p"))),
            (401, lambda: CosmosClient(each_server.endpoint, WRONG_KEY)),
            (404, lambda: container.read_item("none", "p")),
            (404, lambda: database.get_container_client("none").read()),
            (409, lambda: container.create_item({"id": "1", "pk": "p"})),
            (412, lambda: container.replace_item("1", {"id": "1", "pk": "p"}, **stale)),
        ]:
            with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
                call()
            assert refused.value.status_code == status
            assert DURATION.fullmatch(refused.value.headers[NAME]), status
