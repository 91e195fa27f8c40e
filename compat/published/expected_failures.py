"""pytest plugin: holds a published suite to the two lists beside its pytest.ini.

A test named in expected-failures.txt must fail. If it passes, is skipped or does not exist, the run fails: the list
shrinks with the product and never hides anything else. A test named in client-races.txt runs again after the error that
is named there, and after no other: each such run is shown at the end. In expected-skips.txt stands how many tests of a file the suite
skips by itself; one more or fewer fails the run as well. At the end stands a table, one row per file.
"""

import os
import re

import pytest

COLUMNS = ("passed", "expected", "skipped", "failed")
EXPECTED = {}
SKIPS = {}
RACES = {}
RERUNS = 2


def read_expected(path):
    """{test id: reason}. A line is `file::Class::test  reason`; '#' starts a comment line."""
    expected = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(" ")
        if not reason.strip():
            raise pytest.UsageError(f"{path.name}: {name} has no reason")
        if name in expected:
            raise pytest.UsageError(f"{path.name}: {name} is listed twice")
        expected[name] = reason.strip()
    return expected


def read_skips(path):
    """{file: count}. A line is `file  count  reason`."""
    skips = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, count, _reason = line.split(None, 2)
            skips[name] = int(count)
    return skips


def read_races(path):
    """{test id: error}. A line is `file::Class::test | error | reason`."""
    races = {}
    if not path.exists():
        return races
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, error, _reason = line.split(" | ", 2)
            races[name] = error
    return races


def pytest_configure(config):
    RACES.update(read_races(config.inipath.with_name("client-races.txt")))
    EXPECTED.update(read_expected(config.inipath.with_name("expected-failures.txt")))
    SKIPS.update(read_skips(config.inipath.with_name("expected-skips.txt")))


def pytest_collection_modifyitems(items):
    for item in items:
        reason = EXPECTED.get(item.nodeid)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        error = RACES.get(item.nodeid)
        if error:
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, only_rerun=[re.escape(error)]))


class Table:
    """Counts per file, kept by the controlling process."""

    def __init__(self):
        self.outcomes = {}
        self.races = []

    def record(self, report):
        name = report.nodeid
        if report.outcome == "rerun":
            self.races.append(name)
            return
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
        """Listed tests that were not seen to fail, or not seen at all."""
        unseen = [name for name in RACES if name not in self.outcomes]
        return unseen + sorted(name for name in EXPECTED if self.outcomes.get(name) not in ("expected", "failed"))

    def other_skips(self):
        """Files in which more or fewer tests were skipped than are listed: {file: (found, listed)}."""
        found = {name: row["skipped"] for name, row in self.rows().items()}
        pairs = {name: (found.get(name, 0), SKIPS.get(name, 0)) for name in found | SKIPS}
        return {name: pair for name, pair in sorted(pairs.items()) if pair[0] != pair[1]}

    def differs(self):
        return bool(self.stale() or self.other_skips())


TABLE = Table()


def pytest_runtest_logreport(report):
    TABLE.record(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    complete = not session.config.option.keyword and os.environ.get("BOLIDE_PARTIAL") is None
    if "PYTEST_XDIST_WORKER" not in os.environ and complete and TABLE.differs() and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    write = terminalreporter.write_line
    total = dict.fromkeys(COLUMNS, 0)
    write("")
    write(f"{'published suite':<52}" + "".join(f"{name:>10}" for name in COLUMNS))
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
    for name in TABLE.races:
        write(f"CLIENT RACE {name}: {RACES[name]}")
    for name in TABLE.stale():
        write(f"STALE LINE  {name} ({TABLE.outcomes.get(name, 'not found')})")
    for name, (found, listed) in TABLE.other_skips().items():
        write(f"OTHER SKIPS {name}: {found}, and {listed} are listed")
