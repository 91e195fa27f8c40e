"""What a feed of all versions and deletes must tell of one partition key (T28): a plain model that knows no server.

A client does not know everything: an operation that was never answered happened or did not, and the second in
which one happened is known within bounds. So the model keeps every world that may be. An answer rules out the worlds that
would have answered otherwise, an event of the feed those that would have told otherwise, and one must be left.
"""

from typing import NamedTuple

NEVER = float("inf")


class Operation(NamedTuple):
    kind: str
    id: str
    n: int
    # Absent means the container's default; in a patch, that it stays as it is.
    ttl: int | None


class Life(NamedTuple):
    n: int
    ttl: int | None
    deadline: float


class World(NamedTuple):
    # By id.
    living: dict
    # Events that the reader has not stored yet: (kind, id, n before, n after, time).
    untold: tuple


class Model:
    def __init__(self, default_ttl):
        self.default_ttl = default_ttl
        self.worlds = [World({}, ())]

    def answered(self, operation, answer, seconds):
        """The operation was carried out in one of these seconds and answered so; `None` is no answer at all."""
        worlds = [] if answer else list(self.worlds)
        for world in self.worlds:
            for second in seconds:
                after, predicted = self._carry_out(_expire(world, second), operation, second)
                if answer in (None, predicted):
                    worlds.append(after)
        self._keep(worlds, (operation, answer, seconds))

    def told(self, event, now):
        """The reader has stored this event, before `now`."""
        worlds = [_expire(world, now) for world in self.worlds]
        self._keep([world._replace(untold=rest) for world in worlds for rest in _without(world.untold, event)], event)

    def has_told_all(self, now):
        """Whether nothing that happened until `now` is left to tell."""
        return any(not _expire(world, now).untold for world in self.worlds)

    def _keep(self, worlds, said):
        distinct = {(frozenset(world.living.items()), world.untold): world for world in worlds}
        assert distinct, f"{said} cannot be after {self.worlds}"
        self.worlds = list(distinct.values())

    def _carry_out(self, world, operation, second):
        """The world afterwards, and the answer: a status, and the time of what was written."""
        kind, id, n, ttl = operation
        old = world.living.get(id)
        if kind == "create" and old:
            return world, (409, None)
        if kind in ("replace", "patch", "delete") and not old:
            return world, (404, None)
        before = old and old.n
        others = {other: life for other, life in world.living.items() if other != id}
        if kind == "delete":
            return World(others, (*world.untold, ("delete", id, before, None, second))), (200, None)
        if kind == "patch" and ttl is None:
            ttl = old.ttl
        seconds = self.default_ttl if ttl is None else ttl
        life = Life(n, ttl, NEVER if seconds == -1 else second + seconds)
        event = ("replace" if old else "create", id, before, n, second)
        return World({**others, id: life}, (*world.untold, event)), (200, second)


def _expire(world, now):
    """The world once everything that is due has expired."""
    dead = sorted((life.deadline, id) for id, life in world.living.items() if life.deadline <= now)
    if not dead:
        return world
    living = {id: life for id, life in world.living.items() if life.deadline > now}
    deaths = [("expire", id, world.living[id].n, None, deadline) for deadline, id in dead]
    return World(living, (*world.untold, *deaths))


def _without(untold, event):
    """What is left to tell after the event, if that may come next. Expiries of one instant have no order among themselves."""
    for at, other in enumerate(untold):
        if other == event:
            yield untold[:at] + untold[at + 1:]
            return
        if (other[0], other[4]) != ("expire", event[4]) or event[0] != "expire":
            return
