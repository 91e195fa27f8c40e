"""Commands as they are: PyMongo chooses the session, the number and the flags of what it sends, this leaves them alone."""

import itertools
import socket
import struct
import uuid

import bson
from bson.binary import Binary, UuidRepresentation
from bson.int64 import Int64

OP_MSG = 2013
HEADER = struct.Struct("<iiii")


class Line:
    """One connection; `command` answers with the server's document, errors included."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.mongo_port), timeout=60)
        self.numbers = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def command(self, database, command):
        body = struct.pack("<iB", 0, 0) + bson.encode({**command, "$db": database})
        self.socket.sendall(HEADER.pack(HEADER.size + len(body), next(self.numbers), 0, OP_MSG) + body)
        length, _, _, code = HEADER.unpack(self._read(HEADER.size))
        assert code == OP_MSG
        return bson.decode(self._read(length - HEADER.size)[5:])

    def _read(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            assert part, "the server has closed the connection"
            data += part
        return data


def session_id():
    """A new session, as commands name it."""
    return {"id": Binary.from_uuid(uuid.uuid4(), UuidRepresentation.STANDARD)}


def in_transaction(command, session, number, starts=False):
    """The command as a part of that transaction."""
    part = {**command, "lsid": session, "txnNumber": Int64(number), "autocommit": False}
    return {**part, "startTransaction": True} if starts else part
