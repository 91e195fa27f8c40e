"""Queries that cannot be answered: 400, quickly, with the service's code, the place in the text and the reason. Hostile
ones cost the server neither its memory nor its time."""

import json
import time
import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions

from test_server import MEBIBYTE, resident
from wire import Wire, signed

SECONDS = 40.0
LIMIT_MEBIBYTES = 64


@pytest.fixture(scope="module")
def target(server, database):
    container = database.create_container("refusals-" + uuid.uuid4().hex, PartitionKey(path="/pk"))
    for number in range(50):
        container.create_item({"id": f"{number}", "pk": "p", "n": number, "text": "a" * 200})
    return container


@pytest.fixture(scope="module")
def wire(server, target):
    opened = Wire(server, target)
    yield opened
    opened.close()


def refused(wire, query, parameters=(), **headers):
    """The message of a 400 that came soon enough."""
    started = time.perf_counter()
    answer = wire.query(query, parameters, **headers)
    taken = time.perf_counter() - started
    assert answer.status == 400, (answer.status, answer.text[:300])
    assert taken < SECONDS, f"{taken:.1f} s"
    assert answer.body["code"] == "BadRequest"
    return answer.body["message"]


def errors(message):
    """The list of errors that the service hides as JSON in its message."""
    start = message.index('{"errors"')
    return json.JSONDecoder().raw_decode(message[start:])[0]["errors"]


# Query, code, and where: start and end in UTF-16 units. None: the reason is about the whole.
BAD = {
    "an unclosed string": ("SELECT * FROM c WHERE c.a = 'oops", "SC1012", (28, 33)),
    "a stray character": ("SELECT # FROM c", "SC1010", (7, 8)),
    "an unknown function": ("SELECT VALUE NO_SUCH(c.a) FROM c", "SC2005", (13, 20)),
    "too few arguments": ("SELECT VALUE ABS() FROM c", "SC2050", (13, 18)),
    "too many arguments": ("SELECT VALUE ABS(1, 2) FROM c", "SC2050", (13, 22)),
    "no select": ("FROM c", "SC1001", (0, 4)),
    "an unclosed bracket": ("SELECT VALUE (1 FROM c", "SC1001", (16, 20)),
    "an unknown alias": ("SELECT VALUE x.a FROM c", "SC2001", (13, 14)),
    "an alias that FROM hides": ("SELECT VALUE c.a FROM c AS d", "SC2001", (13, 14)),
    "a star with JOIN": ("SELECT * FROM c JOIN t IN c.a", None, None),
    "LIMIT -1": ("SELECT * FROM c OFFSET 0 LIMIT -1", "SC1001", None),
    "OFFSET -1": ("SELECT * FROM c OFFSET -1 LIMIT 1", "SC1001", None),
    "TOP -1": ("SELECT TOP -1 * FROM c", "SC1001", (11, 12)),
    "OFFSET without LIMIT": ("SELECT * FROM c OFFSET 1", "SC1002", (24, 24)),
    "an aggregate in an aggregate": ("SELECT VALUE SUM(COUNT(1)) FROM c", "SC2101", None),
    "a column that is not grouped": ("SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.b", "SC2102", (7, 10)),
    "two columns of one name": ("SELECT c.a, c.b AS a FROM c", None, None),
    "ORDER BY an expression": ("SELECT * FROM c ORDER BY c.a + 1", 2206, None),
    "two statements": ("SELECT 1; SELECT 2", "SC1010", (8, 9)),
    "nothing at all": ("", "SC1002", (0, 0)),
    "a place behind a surrogate pair": ("SELECT '\U0001F600' + FROM c", "SC1001", (14, 18)),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_query_gets_400_with_code_and_place(wire, name):
    query, code, place = BAD[name]
    message = refused(wire, query)
    assert message.strip()
    if code is not None:
        first = errors(message)[0]
        assert first["code"] == code, first
        assert first["message"] and first["severity"] == "Error"
    if place is not None:
        assert (first["location"]["start"], first["location"]["end"]) == place, first


def test_the_sdk_raises_what_the_service_would_make_it_raise(target):
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        list(target.query_items("SELECT * FRM c", enable_cross_partition_query=True))
    assert caught.value.status_code == 400
    assert "SC1001" in str(caught.value) and "near 'FRM'" in str(caught.value)


def test_an_unknown_parameter_is_named(wire):
    assert "@missing" in refused(wire, "SELECT * FROM c WHERE c.a = @missing", [{"name": "@other", "value": 1}])


def test_parameters_that_cannot_be_counted_with(wire):
    for value in (-1, 1.5, "3", None, [], 2**32):
        refused(wire, "SELECT TOP @n * FROM c", [{"name": "@n", "value": value}])
        refused(wire, "SELECT * FROM c OFFSET 0 LIMIT @n", [{"name": "@n", "value": value}])


HOSTILE = {
    "1 MB of parentheses": "SELECT VALUE " + "(" * 500_000 + "1" + ")" * 500_000,
    "1 MB of open parentheses": "SELECT VALUE " + "(" * 1_000_000,
    "1 MB of brackets": "SELECT VALUE " + "[" * 500_000 + "]" * 500_000,
    "objects in objects": "SELECT VALUE " + '{"a":' * 150_000 + "1" + "}" * 150_000,
    "500,000 times NOT": "SELECT * FROM c WHERE " + "NOT " * 250_000 + "true",
    "minus after minus": "SELECT VALUE " + "- " * 500_000 + "1",
    "subqueries in subqueries": "SELECT VALUE " + "(SELECT VALUE " * 60_000 + "1" + ")" * 60_000,
    "a long path": "SELECT VALUE c" + ".a" * 500_000 + " FROM c",
    "a million terms": "SELECT VALUE 1" + "+1" * 500_000,
    "ternary after ternary": "SELECT VALUE " + "true?1:" * 120_000 + "1",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_huge_query_is_refused_quickly(server, wire, name):
    before = resident(server)
    refused(wire, HOSTILE[name])
    assert resident(server) - before < LIMIT_MEBIBYTES * MEBIBYTE
    assert wire.query("SELECT VALUE 1").rows == [1], "and the server goes on"


BOMBS = {
    "nested quantifiers": "SELECT VALUE RegexMatch(c.text, '((((a{1,100}){1,100}){1,100}){1,100}){1,100}x') FROM c",
    "a repetition too large": "SELECT VALUE RegexMatch(c.text, 'a{1000000000}') FROM c",
    "an unclosed group": "SELECT VALUE RegexMatch(c.text, '(((((') FROM c",
    "text times text": "SELECT VALUE REPLICATE(REPLICATE(REPLICATE('xxxxxxxxxx', 10000), 10000), 10000)",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_goes_off_harmlessly(server, wire, name):
    """Refused, or answered with nothing: but quickly, and without the memory that it asks for."""
    before, started = resident(server), time.perf_counter()
    answer = wire.query(BOMBS[name])
    taken = time.perf_counter() - started
    assert answer.status in (200, 400), answer.text[:300]
    assert taken < SECONDS, f"{taken:.1f} s"
    assert resident(server) - before < LIMIT_MEBIBYTES * MEBIBYTE
    assert wire.query("SELECT VALUE 1").rows == [1]


def test_a_regular_expression_that_backtracks_elsewhere_is_linear_here(wire):
    started = time.perf_counter()
    assert wire.query("SELECT VALUE COUNT(1) FROM c WHERE RegexMatch(c.text, '^(a+)+$')").rows == [50]
    assert wire.query("SELECT VALUE COUNT(1) FROM c WHERE RegexMatch(c.text, '^(a|aa)+b$')").rows == [0]
    assert time.perf_counter() - started < SECONDS


def test_a_bad_continuation_token_is_refused(wire, target):
    good = wire.query("SELECT * FROM c", max_item_count=5).continuation
    assert good
    ordered = wire.query("SELECT * FROM c ORDER BY c.n", max_item_count=5).continuation
    for token in ("nonsense", "{}", good[:-3], good + "A", "=" * 5000, ordered):
        assert "ontinuation" in refused(wire, "SELECT * FROM c", continuation=token)
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        next(target.query_items("SELECT * FROM c", partition_key="p").by_page("nonsense"))
    assert caught.value.status_code == 400


def test_a_bad_page_size_is_refused(wire):
    for size in ("-2", "x", "1.5"):
        refused(wire, "SELECT * FROM c", max_item_count=size)
    # -1 and 0 leave the size to the server.
    for size in ("-1", "0"):
        assert len(wire.query("SELECT * FROM c", max_item_count=size).rows) == 50


def test_bad_bodies(wire):
    for body in ("", "[]", "{}", '{"query": 5}', '{"query": "SELECT 1", "parameters": 5}',
                 '{"query": "SELECT 1", "parameters": [{"value": 1}]}'):
        wire.query("SELECT VALUE 1")  # the connection is in order
        assert raw(wire, body) == 400, body


def raw(wire, body):
    headers = {**signed("POST", "docs", wire.link), "content-type": "application/query+json",
               "x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true"}
    wire.connection.request("POST", f"/{wire.link}/docs", body, headers)
    answer = wire.connection.getresponse()
    answer.read()
    return answer.status


def test_a_user_defined_function_is_named_in_the_refusal(target, wire):
    target.scripts.create_user_defined_function({"id": "tax", "body": "function tax(n) { return n * 1.2; }"})
    assert [stored["id"] for stored in target.scripts.list_user_defined_functions()] == ["tax"]
    message = refused(wire, "SELECT VALUE udf.tax(c.n) FROM c")
    assert "tax" in message and "JavaScript" in message
    unknown = refused(wire, "SELECT VALUE udf.nobody(c.n) FROM c")
    assert "nobody" in unknown
