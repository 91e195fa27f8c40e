"""pytest plugin: runs PyMongo's own suite against Bolide.

The suite sets fail points and drops databases, so each xdist worker talks to a server of its own
(`BOLIDE_MONGO_PORTS`, comma separated). It reads the address from the environment at import.

Some tests ask for a secondary. There is none, and the driver looks for one for half a minute; here it gives up sooner.
"""

import os

from pymongo import common


def choose_server():
    ports = os.environ["BOLIDE_MONGO_PORTS"].split(",")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    os.environ["DB_IP"] = "127.0.0.1"
    os.environ["DB_PORT"] = ports[int(worker.removeprefix("gw")) % len(ports)]


choose_server()
common.SERVER_SELECTION_TIMEOUT = 10
