// The TTL contract through the Node driver: T6, T9-T16, T26, T27.

import { afterEach, beforeEach, describe, test } from "node:test";
import assert from "node:assert/strict";
import { Decimal128, Double, Int32, Long, Timestamp } from "mongodb";
import { DAY, living, refused } from "./bolide.js";
import { client, collection, database, number, server, serveTests } from "./fixture.js";

serveTests("ttl");

const seconds = (instant) => new Date(instant * 1000);
const setDefault = (expireAfterSeconds) => collection.createIndex({ _ts: 1 }, { expireAfterSeconds });
const changeDefault = (expireAfterSeconds) => change("_ts_1", expireAfterSeconds);
const change = (name, expireAfterSeconds) =>
  database.command({ collMod: collection.collectionName, index: { name, expireAfterSeconds } });

/** Writes what `write` writes and returns the second it was written in. */
async function written(write) {
  await write();
  return server.now();
}

describe("T6: which ttl counts", () => {
  // [name, value of ttl, seconds of life in a collection with a default of 100]
  const table = [
    ["int32 20", new Int32(20), 20],
    ["int64 20", Long.fromNumber(20), 20],
    ["double 20.0", new Double(20), 20],
    ["int32 -1", new Int32(-1), undefined],
    ["int64 -1", Long.fromNumber(-1), undefined],
    ["double -1.0", new Double(-1), undefined],
    ["int32 2147483647", new Int32(2147483647), undefined],
    ["double 20.5", new Double(20.5), 100],
    ["int64 2147483649", Long.fromString("2147483649"), 100],
    ["double 2147483648", new Double(2147483648), 100],
    ["text", "20", 100],
    ["int32 0", new Int32(0), 100],
    ["double -0.0", new Double(-0), 100],
    ["int32 -5", new Int32(-5), 100],
    ["null", null, 100],
    ["decimal 20", Decimal128.fromString("20"), 100],
    ["true", true, 100],
    ["NaN", new Double(NaN), 100],
    ["infinity", new Double(Infinity), 100],
    ["array", [20], 100],
    ["document", { ttl: 20 }, 100],
    ["date", new Date(20), 100],
  ];
  for (const [name, ttl, lives] of table) {
    test(`T6 ttl ${name} lives ${lives ?? "on"}`, async () => {
      await setDefault(100);
      const start = await written(() => collection.insertOne({ _id: 1, ttl }));
      if (lives === undefined) {
        await server.advance(400 * DAY);
        assert.deepEqual(await living(collection), [1]);
      } else {
        await server.moveTo(start + lives - 5);
        assert.deepEqual(await living(collection), [1]);
        await server.moveTo(start + lives);
        assert.deepEqual(await living(collection), []);
      }
    });
  }

  test("T6 another case, a nested one, and none", async () => {
    await setDefault(100);
    const start = await written(() => collection.insertMany([{ _id: 1, TTL: 20 }, { _id: 2, a: { ttl: 20 } }, { _id: 3 }]));
    await server.moveTo(start + 95);
    assert.deepEqual(await living(collection), [1, 2, 3]);
    await server.moveTo(start + 100);
    assert.deepEqual(await living(collection), []);
  });

  test("T2 and T3 without a default, ttl has no effect; with -1 it counts", async () => {
    await collection.insertOne({ _id: 1, ttl: 20 });
    await server.advance(DAY);
    assert.deepEqual(await living(collection), [1]);
    await setDefault(-1);
    assert.deepEqual(await living(collection), []);
    await collection.insertMany([{ _id: 2, ttl: 20 }, { _id: 3 }]);
    await server.advance(DAY);
    assert.deepEqual(await living(collection), [3]);
  });
});

describe("T9-T13: changes", () => {
  test("T9 every write that changes something restarts the countdown", async () => {
    await setDefault(100);
    await collection.insertOne({ _id: 1, n: 0 });
    const writes = [
      () => collection.updateOne({ _id: 1 }, { $inc: { n: 1 } }),
      () => collection.replaceOne({ _id: 1 }, { n: 5 }),
      () => collection.findOneAndUpdate({ _id: 1 }, { $set: { n: 6 } }),
      () => collection.bulkWrite([{ updateMany: { filter: {}, update: { $set: { n: 7 } } } }]),
    ];
    for (const write of writes) {
      await server.advance(90);
      await write();
    }
    await server.advance(90);
    assert.equal((await collection.updateOne({ _id: 1 }, { $set: { n: 7 } })).matchedCount, 1);
    await collection.findOne({ _id: 1 });
    await server.advance(10);
    assert.deepEqual(await living(collection), []);
  });

  test("T11 and T13 a changed, dropped and restored default re-dates the living and revives no document", async () => {
    await setDefault(100);
    const start = await written(() => collection.insertOne({ _id: "dead" }));
    await server.moveTo(start + 50);
    await collection.insertOne({ _id: "young" });
    await server.moveTo(start + 100);
    await changeDefault(10_000);
    assert.deepEqual(await living(collection), ["young"]);
    await collection.dropIndex("_ts_1");
    assert.deepEqual(await living(collection), ["young"]);
    await server.advance(DAY);
    assert.deepEqual(await living(collection), ["young"]);
    await setDefault(500);
    assert.deepEqual(await living(collection), []);
    await changeDefault(1_000_000);
    assert.deepEqual(await living(collection), []);
  });
});

describe("T15: writes treat expired documents as not there", () => {
  beforeEach(async () => {
    await server.admin("POST", "purge", { paused: true });
    await setDefault(100);
    await collection.createIndex({ mail: 1 }, { unique: true });
    await collection.insertOne({ _id: 1, mail: "a@b" });
    await server.advance(100);
  });

  afterEach(async () => {
    await server.admin("POST", "purge", { paused: false });
  });

  test("T15 its _id and its unique values are free", async () => {
    await collection.insertOne({ _id: 1, mail: "other" });
    await collection.insertOne({ _id: 2, mail: "a@b" });
    assert.deepEqual(await living(collection), [1, 2]);
  });

  test("T15 updates and deletes match nothing, upserts insert", async () => {
    assert.equal((await collection.updateOne({ _id: 1 }, { $set: { n: 1 } })).matchedCount, 0);
    assert.equal((await collection.updateMany({}, { $set: { n: 1 } })).matchedCount, 0);
    assert.equal((await collection.deleteMany({})).deletedCount, 0);
    assert.equal(await collection.findOneAndUpdate({ _id: 1 }, { $set: { n: 1 } }), null);
    assert.equal(await collection.findOneAndDelete({ mail: "a@b" }), null);
    assert.equal((await collection.updateOne({ _id: 1 }, { $set: { n: 1 } }, { upsert: true })).upsertedId, 1);
    assert.deepEqual(await collection.findOne(), { _id: 1, n: 1 });
  });

  test("T15 a unique index ignores them", async () => {
    await collection.insertMany([{ _id: 2, mail: "x", key: 1 }]);
    await server.advance(100);
    await collection.insertMany([{ _id: 3, mail: "y", key: 1 }]);
    await collection.createIndex({ key: 1 }, { unique: true });
    assert.deepEqual(await living(collection), [3]);
  });

  test("T14 joins, facets, indexes and figures do not see them", async () => {
    const other = database.collection(`other${number}`);
    await other.insertOne({ _id: 1, mail: "a@b" });
    const [joined] = await other.aggregate([
      { $lookup: { from: collection.collectionName, localField: "mail", foreignField: "mail", as: "found" } },
    ]).toArray();
    assert.deepEqual(joined.found, []);
    const [facet] = await collection.aggregate([{ $facet: { all: [{ $count: "n" }] } }]).toArray();
    assert.deepEqual(facet.all, []);
    assert.deepEqual(await collection.find({ mail: "a@b" }).hint("mail_1").toArray(), []);
    const [stats] = await collection.aggregate([{ $collStats: { count: {}, storageStats: {} } }]).toArray();
    assert.deepEqual([stats.count, stats.storageStats.count], [0, 0]);
  });

  test("T16 what expires between two batches of a cursor is not sent", async () => {
    await collection.insertMany([1, 2, 3, 4, 5, 6].map((n) => ({ _id: n, mail: `${n}`, ttl: n > 4 ? 50 : -1 })));
    const cursor = collection.find({}, { batchSize: 2, sort: { _id: 1 } });
    assert.equal((await cursor.next())._id, 1);
    await server.advance(50);
    assert.deepEqual((await cursor.toArray()).map(({ _id }) => _id), [2, 3, 4]);
  });
});

describe("T26: the index on _ts", () => {
  test("T26 the reply counts, the list shows, a field of that name is the user's", async () => {
    const index = { key: { _ts: 1 }, name: "_ts_1", expireAfterSeconds: 10 };
    const create = () => database.command({ createIndexes: collection.collectionName, indexes: [index] });
    const counts = ({ createdCollectionAutomatically, numIndexesBefore, numIndexesAfter }) =>
      [createdCollectionAutomatically, numIndexesBefore, numIndexesAfter];
    assert.deepEqual(counts(await create()), [true, 1, 2]);
    assert.deepEqual(counts(await create()), [false, 2, 2]);
    assert.deepEqual((await collection.indexes())[1], { v: 2, ...index });
    await collection.insertOne({ _id: 1, _ts: "mine", ttl: -1 });
    assert.deepEqual(await collection.findOne(), { _id: 1, _ts: "mine", ttl: -1 });
    const changed = await changeDefault(30);
    assert.deepEqual([changed.expireAfterSeconds_old, changed.expireAfterSeconds_new], [10, 30]);
    await refused(85, () => collection.createIndex({ _ts: 1 }, { expireAfterSeconds: 11 }));
  });

  test("T6 T26 of five documents, those with a ttl of 20 outlive the collection's 10 s", async () => {
    await setDefault(10);
    const ttls = {
      double: new Double(20),
      int: new Int32(20),
      long: Long.fromNumber(20),
      fraction: new Double(20.5),
      tooLong: Long.fromString("2147483649"),
    };
    const documents = Object.entries(ttls).map(([_id, ttl]) => ({ _id, location: "Paris", ttl }));
    const start = await written(() => collection.insertMany(documents));
    assert.deepEqual(await living(collection), Object.keys(ttls).sort());
    await server.moveTo(start + 10);
    assert.deepEqual(await living(collection), ["double", "int", "long"]);
    await server.moveTo(start + 20);
    assert.deepEqual(await living(collection), []);
  });

  for (const value of [0, -2, 1.5, 2147483648, "10", NaN, true]) {
    test(`T26 expireAfterSeconds ${JSON.stringify(value)} (${typeof value}) is refused`, async () => {
      await refused(67, () => setDefault(value));
      assert.equal(await database.listCollections({ name: collection.collectionName }).hasNext(), false);
    });
  }

  test("T12 dropIndexes turns it off", async () => {
    await setDefault(100);
    await collection.insertOne({ _id: 1 });
    await collection.dropIndexes();
    await server.advance(DAY);
    assert.deepEqual(await living(collection), [1]);
  });
});

describe("T27: an index on a date", () => {
  const dates = (expireAfterSeconds, more = {}) => collection.createIndex({ at: 1 }, { expireAfterSeconds, ...more });

  test("T27 date plus seconds, to the millisecond; 0 means at the date", async () => {
    await dates(60);
    const now = await server.now();
    await collection.insertMany([{ _id: 1, at: seconds(now) }, { _id: 2, at: seconds(now + 30) }]);
    await server.moveTo(now + 60);
    assert.deepEqual(await living(collection), [2]);
    await change("at_1", 0);
    assert.deepEqual(await living(collection), []);
  });

  test("T27 what is not a date never expires, an array by its earliest date", async () => {
    await dates(0);
    const now = await server.now();
    const never = [null, "2020-01-01", 5, new Timestamp({ t: 1, i: 1 }), { at: new Date(0) }, [], ["x", 1], true];
    await collection.insertMany(never.map((at, n) => ({ _id: n, at })));
    await collection.insertOne({ _id: 100 });
    await collection.insertOne({ _id: 101, at: [seconds(now + DAY), "x", seconds(now + 60)] });
    await server.moveTo(now + 50);
    assert.deepEqual(await living(collection), [...never.keys(), 100, 101]);
    await server.moveTo(now + 60);
    assert.deepEqual(await living(collection), [...never.keys(), 100]);
  });

  test("T27 written already expired: inserted, and gone", async () => {
    await dates(0);
    const { insertedId } = await collection.insertOne({ _id: 1, at: new Date(0) });
    assert.equal(insertedId, 1);
    assert.deepEqual(await living(collection), []);
    const replaced = await collection.findOneAndUpdate(
      { _id: 1 }, { $set: { at: new Date(-1) } }, { upsert: true, returnDocument: "after" });
    assert.deepEqual(replaced, { _id: 1, at: new Date(-1) });
    assert.deepEqual(await living(collection), []);
  });

  test("T27 a partial filter limits it, a hidden index still counts, nested paths work", async () => {
    await dates(0, { partialFilterExpression: { kind: "short" }, hidden: true });
    await collection.createIndex({ "a.b": -1 }, { expireAfterSeconds: 0 });
    await collection.insertMany([
      { _id: 1, at: new Date(0), kind: "short" },
      { _id: 2, at: new Date(0), kind: "long" },
      { _id: 3, a: [{ b: 1 }, { b: new Date(0) }] },
    ]);
    assert.deepEqual(await living(collection), [2]);
    await collection.updateOne({ _id: 2 }, { $set: { kind: "short" } });
    assert.deepEqual(await living(collection), []);
  });

  test("T27 several rules: the earliest wins, and ttl -1 stops only the one of _ts", async () => {
    await setDefault(100);
    await dates(0);
    const now = await server.now();
    await collection.insertMany([
      { _id: 1, ttl: -1, at: seconds(now + 50) },
      { _id: 2, at: seconds(now + DAY) },
      { _id: 3, ttl: -1, at: seconds(now + 300) },
      { _id: 4, ttl: 20, at: seconds(now + 50) },
    ]);
    await server.moveTo(now + 40);
    assert.deepEqual(await living(collection), [1, 2, 3]);
    await server.moveTo(now + 60);
    assert.deepEqual(await living(collection), [2, 3]);
    await server.moveTo(now + 200);
    assert.deepEqual(await living(collection), [3]);
    await server.moveTo(now + 300);
    assert.deepEqual(await living(collection), []);
  });

  test("T13 a changed or dropped rule revives no document; collMod makes a rule of a plain index", async () => {
    await dates(10);
    const now = await server.now();
    await collection.insertMany([{ _id: 1, at: seconds(now) }, { _id: 2, at: seconds(now + 1000) }]);
    await server.moveTo(now + 100);
    await change("at_1", 100_000);
    assert.deepEqual(await living(collection), [2]);
    await collection.dropIndex("at_1");
    assert.deepEqual(await living(collection), [2]);
    await server.moveTo(now + 2000);
    await collection.createIndex({ at: 1 });
    assert.deepEqual(await living(collection), [2]);
    const changed = await change("at_1", 10);
    assert.deepEqual([changed.expireAfterSeconds_old, changed.expireAfterSeconds_new], [undefined, 10]);
    assert.deepEqual(await living(collection), []);
  });

  test("T27 compound, _id and bad values are refused as MongoDB does", async () => {
    await refused(67, () => collection.createIndex({ a: 1, b: 1 }, { expireAfterSeconds: 5 }));
    await refused(197, () => collection.createIndex({ _id: 1 }, { expireAfterSeconds: 5 }));
    for (const value of [-1, "5", NaN, 2147483648]) await refused(67, () => dates(value));
    await dates(5);
    await refused(85, () => dates(6));
    await refused(72, () => change("at_1", -1));
    await refused(72, () => change("_id_", 5));
    await refused(27, () => change("none", 5));
  });

  test("T27 ttlMonitorEnabled governs the purge, never visibility", async () => {
    const admin = client.db("admin");
    assert.equal((await admin.command({ setParameter: 1, ttlMonitorEnabled: false })).was, true);
    await dates(0);
    await collection.insertOne({ _id: 1, at: new Date(0) });
    assert.deepEqual(await living(collection), []);
    assert.equal((await admin.command({ getParameter: 1, ttlMonitorEnabled: 1 })).ttlMonitorEnabled, false);
    await admin.command({ setParameter: 1, ttlMonitorEnabled: true });
    assert.equal((await admin.command({ setParameter: 1, ttlMonitorSleepSecs: 1 })).was, 60);
  });
});
