"""Two processes hammer one `_id` and one unique value around the instants of their expiry.

The parent moves the clock past everybody's deadline again and again; each stretch between two moves is a life. `state`
is even while a life lasts and odd while the clock moves, so a process knows of each of its requests in which life it
began and ended. From all answers together: one insert at most succeeds in a life, no acknowledged update is missing
or counted twice, and what was written in one life is never seen in a later one.
"""

import collections
import datetime
import multiprocessing
import time

import pytest
from pymongo import MongoClient, ReturnDocument
from pymongo.errors import DuplicateKeyError

from conftest import expire_after

LIVES = 25
LIFE_SECONDS = 100
PROCESSES = 2
ROUNDS_PER_LIFE = 6

Answer = collections.namedtuple("Answer", "what kind began ended token counter")


def hammer(port, database, rule, worker, first, state, rounds, answers):
    """One process: inserts, updates and reads until the state is negative, and hands over its answers."""
    kept = []
    with MongoClient(f"mongodb://127.0.0.1:{port}/?replicaSet=globaldb") as client:
        target = client[database]["race"]
        while state.value >= 0:
            number = rounds[worker]
            kind = "_id" if number % 2 else "key"
            same = {kind: "same"}
            token = f"{worker}:{number}"

            def keep(what, ask):
                began = state.value
                found = ask(began)
                if found is not None:
                    kept.append(Answer(what, kind, began, state.value, found["token"], found["counter"]))

            def insert(began):
                document = {"_id": token, "key": token, **same, "token": token, "counter": 0}
                if rule == "date":
                    deadline = first + (began // 2 + 1) * LIFE_SECONDS
                    document["at"] = datetime.datetime.fromtimestamp(deadline, datetime.timezone.utc)
                try:
                    target.insert_one(document)
                except DuplicateKeyError:
                    return None
                return document

            keep("insert", insert)
            keep("update", lambda _: target.find_one_and_update(
                same, {"$inc": {"counter": 1}}, return_document=ReturnDocument.AFTER))
            keep("read", lambda _: target.find_one(same))
            rounds[worker] = number + 1
    answers.put(kept)


def wait_for_rounds(rounds, processes):
    """Until every process has gone through some more rounds."""
    wanted = [number + ROUNDS_PER_LIFE for number in rounds]
    deadline = time.monotonic() + 60
    while any(number < enough for number, enough in zip(rounds, wanted)):
        assert time.monotonic() < deadline and all(process.is_alive() for process in processes)
        time.sleep(0.001)


@pytest.mark.parametrize("rule", ["_ts", "date"])
@pytest.mark.parametrize("purge", ["paused", "running"])
def test_t15_one_id_and_one_unique_value_around_their_expiry(server, database, clock, rule, purge):
    target = database["race"]
    expire_after(target, LIFE_SECONDS) if rule == "_ts" else expire_after(target, 0, "at")
    target.create_index("key", unique=True)
    context = multiprocessing.get_context("spawn")
    state, rounds, answers = context.Value("q", 0), context.Array("q", PROCESSES), context.Queue()
    first = clock.now()
    processes = [
        context.Process(
            target=hammer, args=(server.mongo_port, database.name, rule, worker, first, state, rounds, answers))
        for worker in range(PROCESSES)
    ]
    server.admin("POST", "purge", {"paused": purge == "paused"})
    try:
        for process in processes:
            process.start()
        for life in range(LIVES):
            wait_for_rounds(rounds, processes)
            state.value = 2 * life + 1
            clock.move_to(max(first + (life + 1) * LIFE_SECONDS, clock.now() + (LIFE_SECONDS + 1 if rule == "_ts" else 0)))
            state.value = 2 * life + 2
        wait_for_rounds(rounds, processes)
        state.value = -1
        kept = [answer for _ in processes for answer in answers.get(timeout=60)]
    finally:
        state.value = -1
        server.admin("POST", "purge", {"paused": True})
        for process in processes:
            process.join(timeout=60)
    check(kept)
    clock.advance(2 * LIFE_SECONDS + 1)
    assert target.estimated_document_count() == 0 and list(target.find()) == []


def check(kept):
    certain = lambda answer: answer.began == answer.ended and answer.began % 2 == 0
    inserts = collections.Counter(
        (answer.began, answer.kind) for answer in kept if answer.what == "insert" and certain(answer))
    assert len(inserts) > LIVES // 2, "too few inserts fell into a life to say anything"
    assert set(inserts.values()) == {1}, f"more than one insert in a life: {inserts}"

    counters = collections.defaultdict(list)
    for answer in kept:
        if answer.what == "update":
            counters[answer.token].append(answer.counter)
    assert len(counters) > LIVES // 2
    for token, found in counters.items():
        assert sorted(found) == list(range(1, len(found) + 1)), f"updates of {token} are lost or doubled: {sorted(found)}"

    born = {answer.token: answer.ended for answer in kept if answer.what == "insert" and certain(answer)}
    for answer in kept:
        if answer.what != "insert" and answer.token in born:
            assert answer.began <= born[answer.token] + 1, f"revived: {answer}, born in {born[answer.token]}"
