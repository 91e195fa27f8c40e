"""pytest plugin: runs the published suite against Bolide and holds it to expected-failures.txt.

- Each xdist worker talks to a server of its own (`BOLIDE_ENDPOINTS`, comma separated), because the suite asserts on
  session tokens and counts that another worker's writes would move.
- Tests that set a tiny timeout and demand that it fires run with the server far away: each worker's relay delays
  answers while a connection to its second port (`BOLIDE_DISTANCES`) is held.
- Some parameters contain a random UUID, made anew by every worker; a test's id has a fixed text in its place, so that
  workers agree on what there is to run and the list can name it.
- Two of the tests replace a method of the client and put it back only if they pass; it is put back for them, so that
  one test's failure does not become another's.
- A test named in expected-failures.txt must fail. If it passes, is skipped or does not exist, the run fails: the list
  shrinks with the product and never hides anything else.
"""

import os
import pathlib
import re
import socket

import pytest

EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
COLUMNS = ("passed", "expected", "skipped", "failed")
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


def read_expected():
    """{test id: reason}. A line is `file::Class::test  reason`; '#' starts a comment line."""
    expected = {}
    for line in pathlib.Path(__file__).with_name("expected-failures.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(" ")
        if not reason.strip():
            raise pytest.UsageError(f"expected-failures.txt: {name} has no reason")
        if name in expected:
            raise pytest.UsageError(f"expected-failures.txt: {name} is listed twice")
        expected[name] = reason.strip()
    return expected


choose_endpoint()
EXPECTED = read_expected()


def pytest_make_parametrize_id(val):
    return UUID.sub("uuid", val) if isinstance(val, str) else None


def pytest_collection_modifyitems(items):
    for item in items:
        reason = EXPECTED.get(item.nodeid)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


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


class Table:
    """Counts per file, kept by the controlling process."""

    def __init__(self):
        self.outcomes = {}

    def record(self, report):
        name = report.nodeid
        if hasattr(report, "wasxfail") and report.outcome == "skipped":
            outcome = "expected"
        elif report.failed:
            outcome = "failed"
        elif report.skipped:
            outcome = "skipped"
        elif report.when == "call":
            outcome = "passed"
        else:
            return
        if self.outcomes.get(name) != "failed":
            self.outcomes[name] = outcome

    def rows(self):
        files = {}
        for name, outcome in sorted(self.outcomes.items()):
            row = files.setdefault(name.split("::")[0], dict.fromkeys(COLUMNS, 0))
            row[outcome] += 1
        return files

    def stale(self):
        """Listed tests that were not seen to fail."""
        return sorted(name for name in EXPECTED if self.outcomes.get(name) not in ("expected", "failed"))


TABLE = Table()


def pytest_runtest_logreport(report):
    TABLE.record(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    complete = not session.config.option.keyword and os.environ.get("BOLIDE_PARTIAL") is None
    if "PYTEST_XDIST_WORKER" not in os.environ and complete and TABLE.stale() and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    write = terminalreporter.write_line
    total = dict.fromkeys(COLUMNS, 0)
    write("")
    write(f"{'published suite of azure-cosmos':<52}" + "".join(f"{name:>10}" for name in COLUMNS))
    for name, row in TABLE.rows().items():
        write(f"{name:<52}" + "".join(f"{row[column]:>10}" for column in COLUMNS))
        for column in COLUMNS:
            total[column] += row[column]
    write(f"{'all':<52}" + "".join(f"{total[column]:>10}" for column in COLUMNS))
    ran = total["passed"] + total["expected"] + total["failed"]
    if ran:
        write(f"passing: {100 * total['passed'] / ran:.1f} % of the {ran} that ran")
    for name, outcome in sorted(TABLE.outcomes.items()):
        if outcome == "failed":
            write(f"UNEXPECTED  {name}")
    for name in TABLE.stale():
        write(f"STALE LINE  {name} ({TABLE.outcomes.get(name, 'not found')})")
