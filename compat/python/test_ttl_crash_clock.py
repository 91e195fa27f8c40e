"""T1, T13, T34: the store's time after crashes, on the machine's own clock: twenty times kill -9 and restart under load.

Nothing here waits for a deadline, and no margin is shorter than what a busy machine needs: each request is judged by the time
before it and after it, by the server's clock and by the machine's.

By the server's clock an answer is exact: an item is there if the time shown before the request and after it is before `_ts + ttl`,
and gone if both are not. By the machine's clock shown time may be ahead by at most a second, and behind by what a pending
commit takes, because time stands still meanwhile, for a lease at most.
"""

import random
import threading
import time

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import PartitionKey, exceptions

from bolide import Server
from shown_time import LEASE_SECONDS, OFFSET_MOST_SECONDS, Sighting

KILLS = 20
WRITERS = 2
# How long a run of the server lasts: so that all of them fit into a minute, starts included.
RUN_SECONDS = 0.6
# Some expire within the run that wrote them, some a few runs later, some after the end.
TTLS = [1, 2, 3, 5, 8, 13, 21, 600]


class Load:
    """Items that were acknowledged, and what was seen of them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        # Name and deadline.
        self.written = []
        self.there = self.gone = 0
        self.ahead_most = 0.0

    def write(self, container, writer, run, ended):
        """Creates items until the server is gone."""
        number = 0
        while not ended.is_set():
            name, ttl = f"{run}-{writer}-{number}", TTLS[number % len(TTLS)]
            number += 1
            before = time.time()
            try:
                stored = container.create_item({"id": name, "pk": name, "ttl": ttl})
            except AzureError:
                assert ended.wait(20), "a write failed although the server was not killed"
                return
            after = time.time()
            # `_ts` is the machine's time, too, in whole seconds.
            assert stored["_ts"] <= after + OFFSET_MOST_SECONDS, "an item was written in the future"
            assert stored["_ts"] + 1 >= before - OFFSET_MOST_SECONDS - LEASE_SECONDS, "an item was written in the past"
            with self.lock:
                self.written.append((name, stored["_ts"] + ttl))

    def look(self, server, container, name, deadline):
        """Reads one item and judges the answer."""
        before = Sighting(server)
        try:
            container.read_item(name, name)
            there = True
        except exceptions.CosmosResourceNotFoundError:
            there = False
        after = Sighting(server)
        seen = f"{name}, to expire at {deadline}, there: {there}, shown {before.shown} to {after.shown}"
        assert before.shown <= after.shown, "time never goes back"
        if there:
            assert before.shown < deadline, seen
            assert before.before < deadline + OFFSET_MOST_SECONDS + LEASE_SECONDS, f"shown too long: {seen}, {before.before}"
            self.there += 1
        else:
            assert after.shown >= deadline, seen
            assert after.after >= deadline - OFFSET_MOST_SECONDS, f"gone too early: {seen}, {after.after}"
            self.gone += 1
        # Ahead is never excused.
        self.ahead_most = max(self.ahead_most, before.ahead, after.ahead)
        assert self.ahead_most <= OFFSET_MOST_SECONDS, seen

    def some(self):
        with self.lock:
            return self.random.choice(self.written) if self.written else None


def opened(server):
    # A server that was killed does not come back on its port: no retry would help.
    client = server.client(retry_total=0, retry_connect=0, retry_read=0, retry_status=0)
    return client.get_database_client("d").get_container_client("c")


def run_and_kill(server, load, run):
    """One run of the server under load, ended by kill -9."""
    container = opened(server)
    ended, failures = threading.Event(), []

    def write(writer):
        try:
            load.write(container, writer, run, ended)
        except BaseException as error:  # raised by the test: an error in a thread would be lost
            failures.append(error)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    until, looks = time.monotonic() + RUN_SECONDS, 0
    while time.monotonic() < until or looks == 0:
        item = load.some()
        if item is None:
            time.sleep(0.01)
            continue
        load.look(server, container, *item)
        looks += 1
    server.kill()
    ended.set()
    for writer in writers:
        writer.join(timeout=60)
        assert not writer.is_alive()
    assert not failures, failures


@pytest.mark.timeout(600)
def test_t34_twenty_kills_under_load_leave_time_and_expiry_with_the_machine(tmp_path):
    seed = random.randrange(2**32)
    server, load = Server(data=tmp_path / "data", test_clock=False).start(), Load(seed)
    try:
        server.client().create_database("d").create_container("c", PartitionKey(path="/pk"), default_ttl=-1)
        begun, last = time.monotonic(), Sighting(server).shown
        for run in range(KILLS):
            run_and_kill(server, load, run)
            server.start()
            first = Sighting(server)
            assert first.shown >= last, "time never goes back, not over a crash either"
            last = first.shown
        seconds = time.monotonic() - begun
        # No commit is pending any more: shown time is the machine's.
        until = time.monotonic() + 20
        while abs(Sighting(server).ahead) > OFFSET_MOST_SECONDS and time.monotonic() < until:
            assert Sighting(server).ahead <= OFFSET_MOST_SECONDS
        end = Sighting(server)
        assert abs(end.ahead) <= OFFSET_MOST_SECONDS, (end.shown, end.before, end.after)
        container = opened(server)
        for name, deadline in load.random.sample(load.written, min(150, len(load.written))):
            load.look(server, container, name, deadline)
        print(f"{KILLS} kills in {seconds:.0f} s, {len(load.written)} items written, seen {load.there} times there and {load.gone} times gone, "
              f"shown time at most {load.ahead_most:.3f} s ahead, {end.ahead:+.3f} s at the end (seed {seed})")
        assert load.there > KILLS and load.gone > KILLS, "there was something to see"
    finally:
        server.kill()
