"""Continuation tokens through the Python SDK: what a saved one may be used with, and what is refused."""

import base64
import json
import uuid

import pytest
from azure.cosmos import PartitionKey, exceptions

ITEMS = 30
PAGE = 4


@pytest.fixture(scope="module")
def filled(each_server):
    with each_server.client() as client:
        database = client.create_database("tokens-" + uuid.uuid4().hex)
        container = database.create_container("c", PartitionKey(path="/pk"), default_ttl=-1)
        for n in range(ITEMS):
            more = {"ttl": 100} if n % 5 == 4 else {}
            container.create_item({"id": str(n), "pk": f"p{n % 3}", "n": n, "g": n % 4, **more})
        yield container


def page_after(container, query, token, **more):
    more.setdefault("enable_cross_partition_query", True)
    pages = container.query_items(query, max_item_count=PAGE, **more).by_page(token)
    page = next(pages, None)
    if page is None:
        return [], None  # the SDK ends here, and keeps the token it was given
    return list(page), pages.continuation_token


def key(value):
    return {"partition_key": value, "enable_cross_partition_query": False}


def refuse(container, query, token, **more):
    assert token
    with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
        page_after(container, query, token, **more)
    assert refused.value.status_code == 400
    assert "Invalid Continuation Token" in refused.value.message


def saved(container, query, **more):
    """All rows, each page from the saved token of the one before; the query may depend on the page."""
    rows, token, pages = [], None, 0
    while pages == 0 or token:
        assert pages < 100, "the pages do not end"
        text = query(pages) if callable(query) else query
        page, token = page_after(container, text, token, **more)
        rows += page
        pages += 1
    return rows


@pytest.mark.parametrize("order", ["c.n", "c.n DESC", "c.g", "c.g DESC"])
def test_an_order_goes_on_from_a_saved_token(filled, order):
    query = f"SELECT VALUE c.n FROM c ORDER BY {order}"
    whole = list(filled.query_items(query, enable_cross_partition_query=True))
    assert len(whole) == ITEMS
    assert saved(filled, query) == whole


def test_the_filter_and_the_layout_of_an_ordered_query_may_change_between_pages(filled):
    rows = saved(filled, lambda page: f"SELECT VALUE c.n FROM c WHERE c.n > {page - 1} ORDER BY c.n")
    assert rows == list(range(ITEMS))
    rows = saved(filled, lambda page: "SELECT VALUE c.n\n" + " " * page + "FROM c -- a comment\nWHERE ((true)) ORDER BY c.n")
    assert rows == list(range(ITEMS))


def test_a_part_of_the_container_goes_on_from_its_own_token_alone(filled):
    query = "SELECT VALUE c.n FROM c WHERE c.n >= 0 ORDER BY c.n"
    first, token = page_after(filled, query, None, **key("p1"))
    more, _ = page_after(filled, query.replace(">= 0", "> 5"), token, **key("p1"))
    assert first + more == [n for n in range(ITEMS) if n % 3 == 1][:2 * PAGE]
    refuse(filled, query, token, **key("p2"))
    refuse(filled, query, token)


@pytest.mark.parametrize("query", ["SELECT * FROM c", "SELECT * FROM c WHERE c.n > 1", "SELECT TOP 20 * FROM c ORDER BY c.n",
                                   "SELECT DISTINCT VALUE c.n FROM c"])
def test_another_filter_of_any_other_query_is_refused(filled, query):
    _, token = page_after(filled, query, None, **key("p1"))
    other = query.replace("> 1", "> 2") if "WHERE" in query else query.replace("FROM c", "FROM c WHERE true")
    refuse(filled, other, token, **key("p1"))


@pytest.mark.parametrize("query, same", [
    ("SELECT * FROM c WHERE c.n > 1", "select  *\nfrom c where ((c.n > 1)) -- a comment"),
    ("SELECT TOP 20 * FROM c ORDER BY c.n", "select top 20 * from c order by c.n asc"),
    ("SELECT DISTINCT VALUE c.n FROM c", "SELECT DISTINCT VALUE\n c.n FROM c"),
    ("SELECT * FROM c OFFSET 1 LIMIT 9", "SELECT * FROM c offset 1 limit 9"),
])
def test_the_layout_of_every_query_may_change(filled, query, same):
    first, token = page_after(filled, query, None, **key("p1"))
    expected, _ = page_after(filled, query, token, **key("p1"))
    assert expected and first != expected
    assert page_after(filled, same, token, **key("p1"))[0] == expected


def test_a_parameter_is_part_of_the_query_unless_it_is_ordered(filled):
    def asked(query, value, token):
        return page_after(filled, query, token, **key("p1"), parameters=[{"name": "@n", "value": value}])

    query = "SELECT VALUE c.n FROM c WHERE c.n >= @n"
    _, token = asked(query, 0, None)
    assert len(asked(query, 0, token)[0]) == PAGE
    refuse(filled, query, token, **key("p1"), parameters=[{"name": "@n", "value": 1}])
    ordered = query + " ORDER BY c.n"
    first, token = asked(ordered, 0, None)
    assert first == [1, 4, 7, 10] and asked(ordered, 20, token)[0] == [22, 25, 28]


def test_a_token_is_of_its_order_and_of_its_container(filled, each_server):
    query = "SELECT VALUE c.n FROM c ORDER BY c.n"
    for scope in ({}, key("p1")):
        _, token = page_after(filled, query, None, **scope)
        for other in ("c.n DESC", "c.g", "c.n, c.g"):
            refuse(filled, query.replace("ORDER BY c.n", "ORDER BY " + other), token, **scope)
        with each_server.client() as client:
            database = client.create_database("tokens-" + uuid.uuid4().hex)
            elsewhere = database.create_container("c", PartitionKey(path="/pk"))
            elsewhere.create_item({"id": "1", "pk": "p1", "n": 1})
            refuse(elsewhere, query, token, **scope)


def damaged(token):
    """The token cut, and with one character changed."""
    middle = len(token) // 2
    yield token[:-8]
    yield token[:-1]
    yield token[:middle] + ("B" if token[middle] == "A" else "A") + token[middle + 1:]


@pytest.mark.parametrize("query", ["SELECT * FROM c WHERE c.n >= 0", "SELECT * FROM c WHERE c.n >= 0 ORDER BY c.n"])
def test_a_cut_or_changed_token_is_refused(filled, query):
    _, token = page_after(filled, query, None)
    for changed in damaged(token):
        refuse(filled, query, changed)


def test_a_cut_or_changed_token_of_a_list_is_refused(filled, each_server):
    with each_server.client() as client:
        database = client.create_database("tokens-" + uuid.uuid4().hex)
        for n in range(5):
            database.create_container(f"c{n}", PartitionKey(path="/pk"))

        def page_of(listing, token):
            pages = listing(max_item_count=2).by_page(token)
            return [entry["id"] for entry in next(pages)], pages.continuation_token

        for listing in (database.list_containers, filled.read_all_items, client.list_databases):
            first, token = page_of(listing, None)
            assert len(first) == 2 and page_of(listing, token)[0] != first
            for changed in damaged(token):
                with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
                    page_of(listing, changed)
                assert refused.value.status_code == 400
                assert "Invalid Continuation Token" in refused.value.message


@pytest.mark.parametrize("mode", ["LatestVersion", "AllVersionsAndDeletes"])
def test_a_cut_or_changed_token_of_a_change_feed_is_refused(each_server, mode):
    with each_server.client() as client:
        database = client.create_database("tokens-" + uuid.uuid4().hex)
        policy = {"retentionDuration": 10}
        container = database.create_container("c", PartitionKey(path="/pk"), change_feed_policy=policy)

        def read(**start):
            pages = container.query_items_change_feed(mode=mode, **start).by_page()
            events = [event for page in pages for event in page]
            return len(events), container.client_connection.last_response_headers["etag"]

        _, token = read(start_time="Now")
        container.create_item({"id": "1", "pk": "p"})
        assert read(continuation=token)[0] == 1
        # The server's token for each range of the container is within the client's own.
        outer = json.loads(base64.b64decode(token))
        for position in outer["continuation"]["continuation"]:
            given = position["token"]
            for changed in damaged(given.strip('"')):
                position["token"] = f'"{changed}"'
                text = base64.b64encode(json.dumps(outer).encode()).decode()
                with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
                    read(continuation=text)
                assert refused.value.status_code == 400
                assert "Invalid Continuation Token" in refused.value.message
            position["token"] = given


def test_t14_t16_nothing_comes_from_a_saved_token_that_has_expired_since(filled, each_server):
    """The last: it lets items expire."""
    first, token = page_after(filled, "SELECT VALUE c.n FROM c ORDER BY c.n", None)
    each_server.clock.advance(100)
    rows = list(first)
    while token:
        page, token = page_after(filled, "SELECT VALUE c.n FROM c WHERE c.n > 2 ORDER BY c.n", token)
        rows += page
    assert rows == list(range(PAGE)) + [n for n in range(PAGE, ITEMS) if n % 5 != 4]
