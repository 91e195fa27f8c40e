"""Continuation tokens through the Python SDK: what a saved one may be used with, and what is refused."""

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


@pytest.mark.parametrize("query", ["SELECT * FROM c WHERE c.n >= 0", "SELECT * FROM c WHERE c.n >= 0 ORDER BY c.n"])
def test_a_cut_or_changed_token_is_refused(filled, query):
    _, token = page_after(filled, query, None)
    for damaged in [token[:-8], token[:-1], token[:20] + ("B" if token[20] == "A" else "A") + token[21:]]:
        refuse(filled, query, damaged)


def test_t14_t16_nothing_comes_from_a_saved_token_that_has_expired_since(filled, each_server):
    """The last: it lets items expire."""
    first, token = page_after(filled, "SELECT VALUE c.n FROM c ORDER BY c.n", None)
    each_server.clock.advance(100)
    rows = list(first)
    while token:
        page, token = page_after(filled, "SELECT VALUE c.n FROM c WHERE c.n > 2 ORDER BY c.n", token)
        rows += page
    assert rows == list(range(PAGE)) + [n for n in range(PAGE, ITEMS) if n % 5 != 4]
