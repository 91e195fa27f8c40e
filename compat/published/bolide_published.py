"""pytest plugin: runs the published suite against Bolide.

- Each xdist worker talks to a server of its own (`BOLIDE_ENDPOINTS`, comma separated), because the suite asserts on
  session tokens and counts that another worker's writes would move.
- Tests that set a tiny timeout and demand that it fires run with the server far away: each worker's relay delays
  answers while a connection to its second port (`BOLIDE_DISTANCES`) is held.
- Some parameters contain a random UUID, made anew by every worker; a test's id has a fixed text in its place, so that
  workers agree on what there is to run and the list can name it.
- Two of the tests replace a method of the client and put it back only if they pass; it is put back for them, so that
  one test's failure does not become another's.
"""

import os
import re
import socket

import pytest

EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


# Tests of tiny timeouts. Faster than a millisecond, Python's sockets cannot measure.
FAR = {
    "test_client_request_timeout_when_connection_retry_configuration_specified",
    "test_point_operation_read_timeout",
    "test_client_level_read_timeout_on_queries_and_point_operations",
    "test_policy_level_read_timeout_on_queries_and_point_operations",
}


def own(variable):
    """This worker's part of a comma separated variable."""
    parts = os.environ[variable].split(",")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return parts[int(worker.removeprefix("gw")) % len(parts)]


def choose_endpoint():
    """The suite reads its account from the environment at import, so this must happen before."""
    os.environ["ACCOUNT_HOST"] = own("BOLIDE_ENDPOINTS")
    os.environ["ACCOUNT_KEY"] = EMULATOR_KEY


choose_endpoint()


def pytest_make_parametrize_id(val):
    return UUID.sub("uuid", val) if isinstance(val, str) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if item.name not in FAR:
        return (yield)
    with socket.create_connection(("127.0.0.1", int(own("BOLIDE_DISTANCES"))), timeout=10) as held:
        assert held.recv(1) == b"."
        return (yield)


@pytest.fixture(autouse=True)
def the_client_as_it_was():
    """Puts back what a test that failed halfway has replaced."""
    from azure.cosmos._execution_context.base_execution_context import _QueryExecutionContextBase as base

    kept = base.__next__
    yield
    base.__next__ = kept
