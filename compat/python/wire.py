"""The protocol without an SDK: signed requests over http.client, for what an SDK would not send, or would slow down."""

import base64
import hashlib
import hmac
import http.client
import json
import time
import urllib.parse
from email.utils import formatdate

from bolide import EMULATOR_KEY


def signed(method, kind, link, date=None, key=EMULATOR_KEY):
    date = date or formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    signature = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    token = f"type=master&ver=1.0&sig={base64.b64encode(signature).decode()}"
    return {"x-ms-date": date, "authorization": urllib.parse.quote(token, safe=""), "x-ms-version": "2020-07-15"}


def connect(server, timeout=60):
    return http.client.HTTPConnection(urllib.parse.urlparse(server.endpoint).netloc, timeout=timeout)


def ask(server, method, path, headers, body=None):
    """One request on a connection of its own: status and body."""
    connection = connect(server)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Answer:
    """What came back for a query."""

    def __init__(self, status, headers, text, waited_ms):
        self.status = status
        self.headers = headers
        self.text = text
        # Until the answer's first bytes: it is whole before it is sent, and reading it is the client's own affair.
        self.waited_ms = waited_ms

    @property
    def body(self):
        return json.loads(self.text)

    @property
    def rows(self):
        assert self.status == 200, self.text
        return self.body["Documents"]

    @property
    def continuation(self):
        return self.headers.get("x-ms-continuation")

    @property
    def charge(self):
        return float(self.headers["x-ms-request-charge"])

    @property
    def metrics(self):
        """The query metrics, without the times: those are never the same twice."""
        pairs = (part.split("=") for part in self.headers["x-ms-documentdb-query-metrics"].split(";") if part)
        return {name: float(value) for name, value in pairs if not name.endswith("InMs")}


class Wire:
    """One kept-alive connection that queries one container."""

    def __init__(self, server, container, timeout=60):
        self.connection = connect(server, timeout)
        self.link = f"dbs/{container.container_link.split('/')[1]}/colls/{container.id}"

    def query(self, text, parameters=(), **headers):
        """Header names are given without their `x-ms-` and with underscores."""
        sent = {
            **signed("POST", "docs", self.link),
            "content-type": "application/query+json",
            "x-ms-documentdb-isquery": "true",
            "x-ms-documentdb-query-enablecrosspartition": "true",
            "x-ms-documentdb-populatequerymetrics": "true",
            **{"x-ms-" + name.replace("_", "-"): str(value) for name, value in headers.items()},
        }
        body = json.dumps({"query": text, "parameters": list(parameters)})
        started = time.perf_counter()
        self.connection.request("POST", f"/{self.link}/docs", body, sent)
        answer = self.connection.getresponse()
        waited_ms = (time.perf_counter() - started) * 1000
        return Answer(answer.status, answer.headers, answer.read(), waited_ms)

    def close(self):
        self.connection.close()
