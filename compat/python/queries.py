"""The table of `compat/queries.json`: one container, its items, and queries with the rows that each must give.

The same table is run by the Python, JavaScript and Rust suites, against one and against several physical partitions.
"""

import json
import pathlib

from azure.cosmos import PartitionKey

TABLE = json.loads(pathlib.Path(__file__).parent.with_name("queries.json").read_text(encoding="utf-8"))
QUERIES = {entry["name"]: entry for entry in TABLE["queries"]}
PARTITION_KEYS = sorted({item["pk"] for item in TABLE["items"]})

SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_attachments", "_ts")
DIGITS = 9


def make_shop(database):
    """The table's container, filled."""
    definition = TABLE["container"]
    container = database.create_container(
        definition["id"],
        PartitionKey(path="/pk"),
        indexing_policy=definition["indexingPolicy"],
        computed_properties=definition["computedProperties"],
        vector_embedding_policy=definition["vectorEmbeddingPolicy"],
        full_text_policy=definition["fullTextPolicy"],
    )
    for item in TABLE["items"]:
        container.create_item(item)
    return container


def run(container, entry, **options):
    """All rows of a query of the table."""
    if "partition_key" not in options and "feed_range" not in options:
        options["enable_cross_partition_query"] = True
    return list(container.query_items(entry["query"], parameters=entry.get("parameters"), **options))


def assert_rows(found, entry):
    """Exactly the expected rows; in their order where the query asks for one."""
    found, expected = plain(found), plain(entry["rows"])
    if entry["order"] == "any":
        found, expected = sorted(found, key=_text), sorted(expected, key=_text)
    assert found == expected


def plain(value):
    """Without system properties, and with numbers as precise as every client can sum them."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if name not in SYSTEM_PROPERTIES}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value


def _text(value):
    return json.dumps(value, sort_keys=True)
