"""The charges of commands, and the errors that PyMongo gets beyond a provisioned throughput. Budgets run on real time (T29)."""

import re
import uuid

import pytest
from pymongo.errors import BulkWriteError, OperationFailure

from bolide import Server
from conftest import connect


@pytest.fixture(scope="module")
def enforced():
    process = Server(extra=["--enforce-throughput"]).start()
    yield process
    process.stop()


def test_the_last_request_is_told_with_its_charge(server):
    # One connection, so that the previous command is ours.
    with connect(server, maxPoolSize=1) as client:
        database = client[uuid.uuid4().hex]
        database.coll.create_index("a")

        def last():
            statistics = database.command("getLastRequestStatistics")
            assert isinstance(statistics["RequestCharge"], float)
            return statistics["CommandName"], round(statistics["RequestCharge"], 2)

        database.coll.insert_one({"_id": 1, "a": 1})
        assert last() == ("insert", 5.1)
        list(database.coll.find({"_id": 1}))
        assert last() == ("find", 2.29)
        database.coll.update_one({"_id": 1}, {"$set": {"a": 2}})
        assert last() == ("update", 10.2)
        database.coll.delete_one({"_id": 1})
        assert last() == ("delete", 5.1)
        assert last() == ("delete", 5.1), "asking is no request"


def test_a_large_insert_stops_where_the_second_is_spent(enforced):
    with connect(enforced) as client:
        collection = client[uuid.uuid4().hex].coll
        collection.insert_one({"_id": -1})
        with pytest.raises(BulkWriteError) as refused:
            collection.insert_many({"_id": number} for number in range(5000))
        details = refused.value.details
        error = details["writeErrors"][0]
        assert error["code"] == 16500
        assert "Request rate is large" in error["errmsg"]
        assert re.search(r"RetryAfterMs=\d+,", error["errmsg"])
        assert 0 < details["nInserted"] == error["index"]


def test_a_refused_command_has_the_labels_by_which_drivers_repeat_it(enforced):
    with connect(enforced) as client:
        database = client[uuid.uuid4().hex]
        database.create_collection("coll")
        with pytest.raises(OperationFailure) as refused:
            for number in range(5000):
                # Run as it is: the driver repeats no such command.
                document = {"_id": number, "fill": "x" * 100_000}
                database.command({"insert": "coll", "documents": [document]})
        assert refused.value.code == 16500
        assert refused.value.details["codeName"] == "TooManyRequests"
        for label in ("SystemOverloadedError", "RetryableError"):
            assert refused.value.has_error_label(label)
        assert 0 < refused.value.details["baseBackoffMS"] <= 1000


def test_the_driver_waits_and_repeats_a_refused_write_by_itself(enforced):
    # By default it tries twice more, after a random part of the time that it is told.
    with connect(enforced, retryWrites=True, max_adaptive_retries=20) as client:
        collection = client[uuid.uuid4().hex].coll
        # More than three seconds' worth.
        for number in range(30):
            collection.insert_one({"_id": number, "fill": "x" * 100_000})
        assert collection.count_documents({}) == 30
