"""The time that a server shows, compared with the machine's (T34)."""

import time
import urllib.request

# What shown time may be from the machine's: a restart within a boot adds a tenth of a second, `_ts` and `ttl` count in seconds.
OFFSET_MOST_SECONDS = 1.0
# How long shown time may stand still for a pending commit, beside the above.
LEASE_SECONDS = 2.0


class Sighting:
    """The server's time, and the machine's before and after it was asked for.

    `faked` is what the wall clock that the server sees is ahead of the machine's.
    """

    def __init__(self, server, faked=0):
        before = time.time()
        with urllib.request.urlopen(server.endpoint + "metrics", timeout=60) as answer:
            page = answer.read().decode()
        self.before, self.after = before + faked, time.time() + faked
        figures = dict(line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
        self.shown = float(figures["bolide_time_seconds"])
        self.offset = float(figures["bolide_clock_offset_seconds"])
        # The server says how far it is, and says the truth.
        possible = (self.shown - self.after - 0.002, self.shown - self.before + 0.002)
        assert possible[0] <= self.offset <= possible[1], (self.offset, possible)

    @property
    def ahead(self):
        """By how much the server's time is certainly ahead of the machine's; negative if it is behind."""
        return max(self.shown - self.after, 0) + min(self.shown - self.before, 0)
