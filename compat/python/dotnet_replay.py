"""Replays recorded exchanges of the .NET client against a server, and judges the answers.

`../dotnet/exchanges.json` has what Microsoft.Azure.Cosmos 3.64.0 sent and answers that it took. Resource ids, etags, tokens and
times of the recording are replaced by those that the server has given in this run; an answer must then have the recorded status
and substatus, at least the recorded headers, the same members with values of the same types, and the same rows in any order.
Bodies of batches are HybridRow: read here by a decoder of its own, so that the server's codec does not judge itself.
"""

import json
import pathlib
import struct
import urllib.parse
import zlib
from collections import Counter

from wire import connect, signed

RECORDING = pathlib.Path(__file__).parent.parent / "dotnet" / "exchanges.json"
# Members whose values the server makes: what a recorded one is in this run is learnt from the answers.
LEARNT = {"_rid", "_self", "_etag", "_token", "resource", "offerResourceId"}
# Headers whose values are learnt in the same way.
LEARNT_HEADERS = ("etag", "x-ms-continuation")
# The recording server told the progress of index builds unasked; the client asks for it where it reads it.
UNASKED_HEADER = "x-ms-documentdb-collection-index-transformation-progress"
# Members whose values are other ones in each run and that no request repeats.
VOLATILE = {"_ts", "_lsn", "databaseAccountEndpoint"}

# Items that the program wrote before this part without being recorded.
UNRECORDED = {
    "query: ORDER BY n, pages of 5": [{"id": f"q{n}", "pk": f"q{n % 3}", "n": n} for n in range(12)],
}

RESULT = ("statusCode", "subStatusCode"), ("eTag", "resourceBody")
SPARSE_RESULT = {5: "retryAfterMilliseconds", 6: "requestCharge"}


def parts():
    return json.loads(RECORDING.read_text())


class Replay:
    """The recording against one server; `known` has what the recorded values are in this run."""

    def __init__(self, server):
        self.server = server
        self.known = {}
        # The session token of each range of a container that was given last: the recording counted other commits than this server does.
        self.sessions = {}
        self.token = None
        self.connection = connect(server)

    def part(self, recorded):
        """Replays one part; what is wrong, a line each."""
        self.token = None
        for item in UNRECORDED.get(recorded["name"], []):
            self._create(item)
        found = []
        for number, exchange in enumerate(recorded["exchanges"]):
            status, headers, body = self._ask(exchange)
            wrong = self._judge(exchange, status, headers, body)
            title = f"{number} {exchange['method']} {exchange['path']}"
            found += [f"{title}: {line}" for line in wrong]
        return found

    def _create(self, item):
        headers = signed("POST", "docs", "dbs/d/colls/c") | {"x-ms-documentdb-partitionkey": json.dumps([item["pk"]])}
        self.connection.request("POST", "/dbs/d/colls/c/docs", json.dumps(item), headers)
        answer = self.connection.getresponse()
        assert answer.status == 201, answer.read()
        answer.read()

    def _ask(self, exchange):
        path = self._now(exchange["path"])
        kind, link = _signed_link(path)
        headers = signed(exchange["method"], kind, link)
        if self.token is not None:
            headers["authorization"] = urllib.parse.quote(self.token, safe="")
        headers |= {name: self._now(value) for name, value in exchange["headers"].items()}
        if "x-ms-session-token" in headers:
            known_range = _range(path, headers.pop("x-ms-session-token"))
            headers |= {"x-ms-session-token": self.sessions[known_range]} if known_range in self.sessions else {}
        body = exchange["body"]
        if isinstance(body, dict):
            body = bytes.fromhex(body["hex"])
        elif body is not None:
            body = self._now(body).encode()
        self.connection.request(exchange["method"], path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def _now(self, text):
        """A recorded text with the values of this run. Longer ones first: a resource id is the beginning of others."""
        for recorded in sorted(self.known, key=len, reverse=True):
            if recorded in text:
                text = text.replace(recorded, self.known[recorded])
        return text

    def _judge(self, exchange, status, headers, body):
        wrong = []
        if status != exchange["status"]:
            return [f"status {status}, recorded {exchange['status']}: {body[:300]!r}"]
        recorded = exchange["answer_headers"] or {}
        if recorded.get("x-ms-substatus") != headers.get("x-ms-substatus"):
            wrong.append(f"substatus {headers.get('x-ms-substatus')}, recorded {recorded.get('x-ms-substatus')}")
        wrong += [f"no header {name}" for name in recorded if name not in headers and name != UNASKED_HEADER]
        if "x-ms-session-token" in headers:
            self.sessions[_range(exchange["path"], headers["x-ms-session-token"])] = headers["x-ms-session-token"]
        for name in LEARNT_HEADERS:
            if name in recorded and name in headers:
                self._learn(recorded[name], headers[name])
        return wrong + self._judge_body(exchange["answer"], body)

    def _judge_body(self, recorded, body):
        if isinstance(recorded, dict):
            return self._compare(results(bytes.fromhex(recorded["hex"])), results(body), "result")
        if recorded is None:
            return [f"a body where none was recorded: {body[:100]!r}"] if body else []
        return self._compare(json.loads(recorded), json.loads(body), "body")

    def _compare(self, recorded, now, where):
        if _type(recorded) != _type(now):
            return [f"{where} is {_type(now)}, recorded {_type(recorded)}"]
        if isinstance(recorded, dict):
            wrong = [f"{where} has {name!r}" for name in now.keys() - recorded.keys()]
            wrong += [f"{where} has no {name!r}" for name in recorded.keys() - now.keys()]
            for name in recorded.keys() & now.keys():
                inside = f"{where}.{name}"
                if name in LEARNT and isinstance(recorded[name], str):
                    if isinstance(now[name], str):
                        self._learn(recorded[name], now[name])
                        if name == "_token":
                            self.token = now[name]
                    else:
                        wrong.append(f"{inside} is {_type(now[name])}")
                elif name not in VOLATILE:
                    wrong += self._compare(recorded[name], now[name], inside)
            return wrong
        if isinstance(recorded, list):
            return self._compare_rows(recorded, now, where)
        return []

    def _compare_rows(self, recorded, now, where):
        """Rows in any order: paired by what they have besides values of the run."""
        if len(recorded) != len(now):
            return [f"{where} has {len(now)} rows, recorded {len(recorded)}"]
        left = Counter(_stable(row) for row in recorded)
        left.subtract(Counter(_stable(row) for row in now))
        wrong = [f"{where} has {-count} too many of {row}" for row, count in left.items() if count < 0]
        if wrong:
            return wrong
        by_key = {}
        for row in now:
            by_key.setdefault(_stable(row), []).append(row)
        for number, row in enumerate(recorded):
            wrong += self._compare(row, by_key[_stable(row)].pop(0), f"{where}[{number}]")
        return wrong

    def _learn(self, recorded, now):
        self.known[recorded] = now


def _range(path, token):
    """The container that a path is in, and the range of it that a session token is of."""
    return tuple(path.split("/")[:5]), token.split(":")[0]


def _stable(row):
    """A row without the values that belong to a run."""
    if isinstance(row, dict):
        kept = {name: json.loads(_stable(value)) for name, value in row.items() if name not in LEARNT | VOLATILE | {"eTag"}}
        return json.dumps(kept, sort_keys=True)
    if isinstance(row, list):
        return json.dumps([json.loads(_stable(value)) for value in row])
    return json.dumps(row)


def _type(value):
    if isinstance(value, bool) or value is None or isinstance(value, (str, dict, list)):
        return type(value).__name__
    return "number"


def _signed_link(path):
    """Resource type and link of a path, as a client signs them; resource ids alone and in lower case."""
    names = [urllib.parse.unquote(name) for name in path.split("?")[0].strip("/").split("/") if name]
    if not names:
        return "", ""
    is_feed = len(names) % 2 == 1
    kind = names[-1] if is_feed else names[-2]
    link = names[:-1] if is_feed else names
    is_by_id = len(link) > 1 and (link[0] == "offers" or link[1].endswith("=="))
    return kind, link[-1].lower() if is_by_id else "/".join(link)


def results(stream):
    """The results of a HybridRow answer as objects, with their bodies parsed."""
    rows = [_row(row, RESULT, SPARSE_RESULT) for row in _records(stream)]
    for row in rows:
        if "resourceBody" in row:
            row["resourceBody"] = json.loads(row["resourceBody"])
    return rows


def _records(stream):
    assert stream[:10] == bytes.fromhex("81f0d8ff7f010a000000"), stream[:40]
    stream = stream[10:]
    while stream:
        assert stream[:5] == bytes.fromhex("81f1d8ff7f"), stream[:20]
        length, checksum = struct.unpack("<iI", stream[5:13])
        row, stream = stream[13 : 13 + length], stream[13 + length :]
        assert zlib.crc32(row) == checksum
        yield row


def _row(row, schema, sparse):
    fixed, variable = schema
    presence, at, values = row[5], 6, {}
    for bit, name in enumerate(fixed + variable):
        if not presence >> bit & 1:
            continue
        if name in fixed:
            values[name], at = struct.unpack_from("<i", row, at)[0], at + 4
        else:
            length, at = _varuint(row, at)
            values[name], at = row[at : at + length].decode(), at + length
    while at < len(row):
        code, (token, at) = row[at], _varuint(row, at + 1)
        form = {11: "<I", 16: "<d"}[code]
        values[sparse[token]], at = struct.unpack_from(form, row, at)[0], at + struct.calcsize(form)
    return values


def _varuint(row, at):
    value = shift = 0
    while True:
        byte = row[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at
