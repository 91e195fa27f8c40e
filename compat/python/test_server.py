"""The server as a process, from outside: signals, and peers that misbehave. It must answer 4xx or close, stay
small and stay alive."""

import base64
import json
import os
import re
import resource
import signal
import socket
import subprocess
import time
import urllib.parse
from email.utils import formatdate

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from bolide import Server, binary
from wire import ask, signed

MEBIBYTE = 1 << 20
CONNECTIONS = 10_000


@pytest.fixture
def own(tmp_path):
    process = Server(data=tmp_path / "data", test_clock=False).start()
    yield process
    process.kill()


def resident(server, figure="VmRSS"):
    """Resident memory of the process, in bytes; as `VmHWM` the most that it was."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(figure + ":"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no " + figure)


def test_sigterm_drains_and_exits_0(own):
    own.client().create_database("d")
    own.process.send_signal(signal.SIGTERM)
    assert own.process.wait(timeout=60) == 0


def figures(server):
    """The samples of the metrics page that have labels for operations: name, operation and outcome to value."""
    page = ask(server, "GET", "/metrics", {})[1].decode()
    pattern = r'^(\w+)\{api="nosql",operation="(\w+)"(?:,outcome="(\w+)")?\} (\S+)$'
    return {(name, operation, outcome): float(value)
            for name, operation, outcome, value in re.findall(pattern, page, re.MULTILINE)}


def test_the_metrics_add_up_to_what_the_sdk_was_told(own):
    container = own.client().create_database("d").create_container("c", PartitionKey(path="/pk"))
    charges = 0.0
    for number in range(3):
        container.create_item({"id": str(number), "pk": "p"})
        container.read_item(str(number), "p")
        charges += float(container.client_connection.last_response_headers["x-ms-request-charge"])
    with pytest.raises(CosmosResourceNotFoundError) as missing:
        container.read_item("none", "p")
    charges += float(missing.value.headers["x-ms-request-charge"])
    list(container.query_items("SELECT * FROM c", partition_key="p"))
    found = figures(own)
    requests = "bolide_requests_total"
    assert found[requests, "CreateItem", "ok"] == 3
    assert found[requests, "ReadItem", "ok"] == 3
    assert found[requests, "ReadItem", "not_found"] == 1
    assert found[requests, "QueryItems", "ok"] >= 1
    assert found["bolide_request_duration_seconds_count", "ReadItem", ""] == 4
    assert found["bolide_request_units_total", "ReadItem", ""] == pytest.approx(charges)


def test_a_data_folder_has_one_owner(own):
    second = Server(data=own.data, test_clock=False)
    with pytest.raises(RuntimeError) as caught:
        second.start()
    second.kill()
    assert str(own.data) in str(caught.value) or "lock" in str(caught.value).lower()


def test_the_shared_key_is_refused_on_an_open_address():
    ended = subprocess.run([binary(), "serve", "--memory", "--listen", "0.0.0.0:0"],
                           capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "key" in (ended.stderr + ended.stdout).lower()


@pytest.fixture
def docs(server, client):
    """Path and link of a container to shoot at."""
    database = client.create_database_if_not_exists("hostile")
    database.create_container_if_not_exists("c", PartitionKey(path="/pk"))
    return "/dbs/hostile/colls/c/docs", "dbs/hostile/colls/c"


BODIES = {
    "not JSON": (b"{", 400),
    "not an object": (b"[1]", 400),
    "a number": (b"7", 400),
    "empty": (b"", 400),
    "trailing bytes": (b'{"id":"a","pk":"p"} x', 400),
    "invalid UTF-8": (b'{"id":"a","pk":"\xff"}', 400),
    "a lone surrogate": (b'{"id":"a","pk":"\\ud800"}', 400),
    "a number too large": (b'{"id":"a","pk":"p","n":1e400}', 400),
    "10,000 arrays deep": (b'{"id":"a","pk":"p","n":' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400),
    "10,000 objects deep": (b'{"id":"a","pk":"p","n":' + b'{"n":' * 10_000 + b"1" + b"}" * 10_000 + b"}", 400),
    "binary JSON cut short": (b"\x80\xef\xff\xff\xff\xff\xff\xff\xff\xff", 400),
    "3 MB": (b'{"id":"a","pk":"p","n":"' + b"x" * 3_000_000 + b'"}', 413),
    "no id": (b'{"pk":"p"}', 400),
    "another key": (b'{"id":"a","pk":"q"}', 400),
}


@pytest.mark.parametrize("name", BODIES)
def test_bad_bodies_are_refused(server, docs, name):
    body, expected = BODIES[name]
    headers = {**signed("POST", "docs", docs[1]), "x-ms-documentdb-partitionkey": '["p"]'}
    status, text = ask(server, "POST", docs[0], headers, body)
    assert status == expected
    answer = json.loads(text)
    assert answer["code"] and answer["message"]


def test_bad_requests_get_a_clear_answer(server, docs):
    path, link = docs
    good = signed("GET", "docs", link)
    hour = time.time() - 3600
    cases = [
        (401, "GET", path, {}),
        (401, "GET", path, {**good, "authorization": "nonsense"}),
        (401, "GET", path, signed("GET", "docs", link, key=base64.b64encode(b"x" * 64).decode())),
        (401, "GET", path, signed("GET", "docs", "dbs/other/colls/c")),
        (403, "GET", path, signed("GET", "docs", link, date=formatdate(hour, usegmt=True))),
        (404, "GET", "/no/such/route", signed("GET", "no/such", "route")),
        (400, "GET", path + "/x", {**signed("GET", "docs", link + "/docs/x"), "x-ms-documentdb-partitionkey": "not JSON"}),
    ]
    for expected, method, where, headers in cases:
        status, text = ask(server, method, where, headers)
        assert status == expected, (expected, status, where, text)
        assert json.loads(text)["message"], where
    status, _ = ask(server, "GET", path, {**good, "x-huge": "x" * 200_000})
    assert status in (400, 431)


def test_garbage_on_the_socket_is_closed_or_answered(server):
    port = urllib.parse.urlparse(server.endpoint).port
    for garbage in (b"\x00" * 1000, b"\x16\x03\x01\x02\x00" * 50, b"GET / HTTP/9.9\r\n\r\n",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 500, b"POST / HTTP/1.1\r\ncontent-length: -5\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            try:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except TimeoutError:
                raise
            except OSError:
                pass  # closed in our face: fine
    assert ask(server, "GET", "/ready", {})[0] == 200


@pytest.mark.timeout(600)
def test_ten_thousand_idle_and_dribbling_connections_leave_it_answering_and_small():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CONNECTIONS + 2000:
        assert not os.environ.get("CI"), f"{hard} files may be open here"
        pytest.skip(f"{hard} files may be open here (ulimit -Hn), {CONNECTIONS} connections need more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, CONNECTIONS + 2000), hard))
    server = Server(test_clock=False, extra=["--max-unauthenticated-connections", str(CONNECTIONS + 100)]).start()
    port = urllib.parse.urlparse(server.endpoint).port
    open_connections = []
    try:
        for number in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            if number % 2:
                connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow:")
            open_connections.append(connection)
        assert ask(server, "GET", "/ready", {})[0] == 200
        with server.client() as client:
            client.create_database("alive")
        assert resident(server) < 300 * MEBIBYTE
    finally:
        for connection in open_connections:
            connection.close()
    assert ask(server, "GET", "/ready", {})[0] == 200
    server.stop()
