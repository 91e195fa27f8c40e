"""A Bolide process and its test clock, as the tests see them.

Nothing here sleeps for a deadline: time is moved through the admin API, and by nothing else: the clock stands still, so that no
test is too slow for the second it counts on. The only waiting is for a process to become ready, which is polled.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

# The key every Cosmos emulator shares; Bolide accepts it while it listens on loopback only.
EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
START_TIMEOUT_SECONDS = 60
# For one answer, and for a process that was told to end.
ANSWER_TIMEOUT_SECONDS = 60
ADDRESS = re.compile(r"https?://(?:127\.0\.0\.1|localhost):(\d+)")
MONGO_ADDRESS = re.compile(r"mongodb://(?:[^@\s]*@)?127\.0\.0\.1:(\d+)")


def binary():
    path = os.environ.get("BOLIDE_BIN")
    if not path:
        raise RuntimeError("BOLIDE_BIN must name the server binary; `cargo xtask compat python` sets it")
    return path


class Server:
    """One `bolide serve` on a free port. `data=None` keeps everything in memory."""

    def __init__(self, data=None, test_clock=True, stopped_clock=True, extra=(), environment=None):
        self.data = data
        self.environment = environment or {}
        self.arguments = ["serve", "--listen", "127.0.0.1:0"]
        self.arguments += ["--data", str(data)] if data else ["--memory"]
        self.arguments += ["--test-clock"] if test_clock else []
        self.arguments += ["--stopped-clock"] if test_clock and stopped_clock else []
        self.arguments += list(extra)
        self.process = None
        self.endpoint = None
        self.mongo_port = None
        self.output = []

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BOLIDE_")}
        environment.update(self.environment)
        self.endpoint = None
        self.output = []
        self.process = subprocess.Popen(
            [binary(), *self.arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        announced = threading.Event()
        threading.Thread(target=self._listen, args=(self.process, announced), daemon=True).start()
        if not announced.wait(START_TIMEOUT_SECONDS) or self.endpoint is None:
            self.kill()
            raise RuntimeError("the server announced no address:\n" + "".join(self.output))
        self._wait_until_ready()
        return self

    def _listen(self, process, announced):
        for line in process.stdout:
            self.output.append(line)
            mongo = MONGO_ADDRESS.search(line)
            if mongo:
                self.mongo_port = int(mongo.group(1))
            found = ADDRESS.search(line)
            if found and self.endpoint is None:
                self.endpoint = f"http://127.0.0.1:{found.group(1)}/"
                announced.set()
        announced.set()

    def _wait_until_ready(self):
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(self.endpoint + "ready", timeout=20) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.002)
        raise RuntimeError("the server did not become ready:\n" + "".join(self.output))

    def stop(self):
        """SIGTERM: drains and must exit 0."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=ANSWER_TIMEOUT_SECONDS)
        assert code == 0, f"exit code {code} after SIGTERM:\n" + "".join(self.output)

    def kill(self):
        """Sends SIGKILL, so that the process cannot clean up."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=ANSWER_TIMEOUT_SECONDS)

    def client(self, **options):
        from azure.cosmos import CosmosClient  # here: the MongoDB suites start servers without it

        return CosmosClient(self.endpoint, EMULATOR_KEY, **options)

    def admin(self, method, path, body=None, key=EMULATOR_KEY):
        """One call of the admin API: (status, parsed JSON or None)."""
        request = urllib.request.Request(
            self.endpoint + "_bolide/" + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        if key is not None:
            request.add_header("Authorization", "Bearer " + key)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_SECONDS) as answer:
                return answer.status, _parsed(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _parsed(error.read())

    @property
    def clock(self):
        return Clock(self)


def _parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


class Clock:
    """The server's test clock (T29)."""

    def __init__(self, server):
        self.server = server

    def now(self):
        status, body = self.server.admin("GET", "clock")
        assert status == 200, body
        return body["now"]

    def advance(self, seconds):
        """Moves the clock, and returns the time then."""
        status, body = self.server.admin("POST", "clock", {"advanceSeconds": seconds})
        assert status == 200, body
        return body["now"]

    def move_to(self, instant):
        """Moves to `instant`, in Unix seconds; it must not lie in the past."""
        distance = instant - self.now()
        assert distance >= 0, f"the clock cannot go back by {-distance} s; give the test more room"
        if distance:
            self.advance(distance)
