"""TTL modes (T33) of collections: from a property, and expiry dates in documents."""

from conftest import expire_after, ids


def wish(server, collection, expected=200, **wishes):
    path = f"ttl/{collection.database.name}/{collection.name}?api=mongodb"
    status, answer = server.admin("PATCH", path, wishes)
    assert status == expected, answer
    return answer


def test_t33_documents_are_counted_from_a_property(server, collection, clock, settle):
    expire_after(collection, 100)
    assert wish(server, collection, ttlPropertyPath="/meta/created")["lifecycle"]["ttlPropertyPath"] == "/meta/created"
    now = clock.now()
    collection.insert_many([
        {"_id": 1, "meta": {"created": now - 40}},
        {"_id": 2, "meta": {"created": float(now - 40)}, "ttl": 50},
        {"_id": 3, "meta": {"created": now - 40}, "ttl": -1},
        {"_id": 4, "meta": {"created": "then"}},
        {"_id": 5, "meta": {"created": now - 100}},
    ])
    assert ids(collection) == [1, 2, 3, 4]
    for seconds, living in [(9, [1, 2, 3, 4]), (1, [1, 3, 4]), (50, [3, 4]), (40, [3])]:
        clock.advance(seconds)
        settle()
        assert ids(collection) == living
        assert collection.count_documents({}) == len(living)


def test_t33_documents_name_the_instant_of_their_expiry(server, collection, clock, instant, settle):
    collection.insert_one({"_id": 0, "gone": instant(5)})
    wish(server, collection, expireAtPath="/gone")
    collection.insert_many([
        {"_id": 1, "gone": instant(10)},
        {"_id": 2, "gone": clock.now() + 10, "ttl": -1},
        {"_id": 3, "gone": None},
        {"_id": 4, "gone": instant(-10)},
    ])
    assert ids(collection) == [0, 1, 2, 3]
    clock.advance(10)
    settle()
    assert ids(collection) == [0, 3], "documents written before the setting have no expiry date"
    collection.update_one({"_id": 0}, {"$set": {"n": 1}})
    settle()
    assert ids(collection) == [3]


def test_t33_sliding_is_refused_by_name(server, collection):
    collection.insert_one({"_id": 1})
    assert "sliding" in wish(server, collection, expected=400, sliding=True)["message"]
