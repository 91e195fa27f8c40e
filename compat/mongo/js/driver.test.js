// What applications do with the Node driver: documents, cursors, bulk writes, sessions, transactions, compression.

import { beforeEach, describe, test } from "node:test";
import assert from "node:assert/strict";
import {
  Binary, BSON, BSONRegExp, Code, Decimal128, Double, Int32, Long, MaxKey, MinKey, MongoClient, ObjectId, Timestamp,
  UUID,
} from "mongodb";
import { EMULATOR_KEY, Server, USER, refused } from "./bolide.js";
import { client, collection, database, number, server, serveTests } from "./fixture.js";

const { EJSON } = BSON;

serveTests("driver", { extra: ["--mongo-test-commands"] });

const range = (count) => Array.from({ length: count }, (_, n) => n);

describe("documents", () => {
  test("inserted, found, updated, replaced, deleted", async () => {
    const { insertedId } = await collection.insertOne({ name: "Pils", tags: ["pale"], stock: { left: 5 } });
    assert.ok(insertedId instanceof ObjectId);
    assert.deepEqual(await collection.findOne({ tags: "pale", "stock.left": { $gt: 4 } }), {
      _id: insertedId,
      name: "Pils",
      tags: ["pale"],
      stock: { left: 5 },
    });
    const push = { tags: { $each: ["cold", "old"], $slice: -2 } };
    const update = { $set: { name: "Lager" }, $push: push, $inc: { "stock.left": -1 } };
    const updated = await collection.updateOne({ _id: insertedId }, update);
    assert.deepEqual([updated.matchedCount, updated.modifiedCount, updated.upsertedId], [1, 1, null]);
    const expected = { _id: insertedId, name: "Lager", tags: ["cold", "old"], stock: { left: 4 } };
    assert.deepEqual(await collection.findOne(), expected);
    assert.equal((await collection.updateOne({ _id: insertedId }, { $set: { name: "Lager" } })).modifiedCount, 0);
    assert.equal((await collection.replaceOne({ _id: insertedId }, { n: 1 })).modifiedCount, 1);
    const upsert = { upsert: true };
    const upserted = await collection.updateOne({ _id: "new", kind: "x" }, { $setOnInsert: { n: 7 } }, upsert);
    assert.equal(upserted.upsertedId, "new");
    assert.deepEqual(await collection.findOne({ _id: "new" }), { _id: "new", kind: "x", n: 7 });
    assert.equal((await collection.deleteMany({ n: { $in: [1, 7] } })).deletedCount, 2);
    assert.equal(await collection.findOne(), null);
  });

  test("an _id alone does not make a match", async () => {
    await collection.insertOne({ _id: 1, version: 1 });
    const missed = await collection.updateOne({ _id: 1, version: 0 }, { $inc: { version: 1 } });
    assert.deepEqual([missed.matchedCount, missed.modifiedCount], [0, 0]);
    assert.equal((await collection.deleteOne({ _id: 1, version: 0 })).deletedCount, 0);
    assert.equal(await collection.findOneAndUpdate({ _id: 1, version: 0 }, { $inc: { version: 1 } }), null);
    const upsert = () => collection.updateOne({ _id: 1, version: 0 }, { $inc: { version: 1 } }, { upsert: true });
    await refused(11000, upsert);
  });

  test("every BSON type comes back as it was sent", async () => {
    const document = {
      _id: new UUID(),
      double: new Double(1),
      int: new Int32(7),
      long: Long.fromString("9007199254740993"),
      decimal: Decimal128.fromString("1.10"),
      date: new Date(-1),
      binary: new Binary(Buffer.from([0, 255]), 5),
      regex: new BSONRegExp("^a.b$", "im"),
      code: new Code("x => x"),
      timestamp: new Timestamp({ t: 3, i: 4 }),
      minimum: new MinKey(),
      maximum: new MaxKey(),
      nothing: null,
      nested: { list: [1, "two", { three: [[]] }], empty: {} },
      text: "a\u0000b ü 🍺",
    };
    await collection.insertOne(document);
    const exact = { promoteValues: false, promoteLongs: false, bsonRegExp: true };
    const found = await collection.findOne({}, exact);
    const canonical = (value) => EJSON.stringify(value, { relaxed: false });
    for (const name of Object.keys(document).filter((name) => name !== "nested")) {
      assert.equal(canonical(found[name]), canonical(document[name]), name);
    }
    assert.deepEqual((await collection.findOne()).nested, document.nested);
  });

  test("findOneAnd... give the document before or after", async () => {
    await collection.insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 2 }]);
    assert.deepEqual(await collection.findOneAndUpdate({ n: 1 }, { $inc: { n: 10 } }), { _id: 1, n: 1 });
    const after = { returnDocument: "after", sort: { n: -1 }, projection: { _id: 0 } };
    assert.deepEqual(await collection.findOneAndUpdate({}, { $mul: { n: 2 } }, after), { n: 22 });
    const upsert = { upsert: true, returnDocument: "after" };
    assert.deepEqual(await collection.findOneAndReplace({ _id: 3 }, { n: 3 }, upsert), { _id: 3, n: 3 });
    assert.deepEqual(await collection.findOneAndDelete({ _id: 3 }), { _id: 3, n: 3 });
    assert.equal(await collection.findOneAndDelete({ _id: 3 }), null);
  });

  test("array filters, positions and pipelines as updates", async () => {
    await collection.insertOne({ _id: 1, grades: [{ g: 80, s: 1 }, { g: 90, s: 2 }], total: 0 });
    await collection.updateOne({ "grades.g": 90 }, { $set: { "grades.$.s": 5 } });
    await collection.updateOne({}, { $inc: { "grades.$[low].s": 1 } }, { arrayFilters: [{ "low.g": { $lt: 85 } }] });
    await collection.updateOne({}, [{ $set: { total: { $sum: "$grades.s" } } }]);
    assert.deepEqual(await collection.findOne(), { _id: 1, grades: [{ g: 80, s: 2 }, { g: 90, s: 5 }], total: 7 });
  });

  test("a duplicate _id and a duplicate unique key are told apart", async () => {
    await collection.createIndex({ mail: 1 }, { unique: true });
    await collection.insertOne({ _id: 1, mail: "a@b" });
    const same = await refused(11000, () => collection.insertOne({ _id: 1 }));
    assert.deepEqual([same.keyPattern, same.keyValue], [{ _id: 1 }, { _id: 1 }]);
    const taken = await refused(11000, () => collection.insertOne({ _id: 2, mail: "a@b" }));
    assert.deepEqual([taken.keyPattern, taken.keyValue], [{ mail: 1 }, { mail: "a@b" }]);
    assert.match(taken.message, /E11000 duplicate key error collection: driver\.c\d+ index: mail_1 dup key: \{ mail: "a@b" \}/);
  });
});

describe("cursors", () => {
  beforeEach(async () => {
    await collection.insertMany(range(500).map((n) => ({ _id: n, group: n % 7 })));
  });

  test("batches, sort, skip, limit, projection, hint", async () => {
    const ids = (await collection.find().batchSize(33).toArray()).map(({ _id }) => _id);
    assert.deepEqual(ids, range(500));
    const page = { sort: { _id: -1 }, skip: 1, limit: 2, projection: { group: 0 } };
    const some = await collection.find({ group: 3 }, page).toArray();
    assert.deepEqual(some, [{ _id: 486 }, { _id: 479 }]);
    await collection.createIndex({ group: 1, _id: 1 });
    assert.equal((await collection.find({ group: 2 }).hint("group_1__id_1").toArray()).length, 72);
    const seen = [];
    for await (const { _id } of collection.find({}, { batchSize: 2, limit: 5 })) seen.push(_id);
    assert.deepEqual(seen, range(5));
  });

  test("a cursor that is closed early is gone on the server", async () => {
    const cursor = collection.find({}, { batchSize: 2 });
    await cursor.next();
    const { id } = cursor;
    await cursor.close();
    await refused(43, () => database.command({ getMore: id, collection: collection.collectionName }));
  });

  test("aggregate: group, lookup, unwind, facet, out", async () => {
    const groups = await collection.aggregate([
      { $match: { _id: { $lt: 14 } } },
      { $group: { _id: "$group", ids: { $push: "$_id" }, sum: { $sum: "$_id" } } },
      { $sort: { _id: 1 } },
      { $limit: 2 },
    ]).toArray();
    assert.deepEqual(groups, [{ _id: 0, ids: [0, 7], sum: 7 }, { _id: 1, ids: [1, 8], sum: 9 }]);
    const names = database.collection(`names${number}`);
    await names.insertMany([{ _id: 0, name: "zero" }, { _id: 1, name: "one" }]);
    const joined = await collection.aggregate([
      { $match: { _id: 8 } },
      { $lookup: { from: names.collectionName, localField: "group", foreignField: "_id", as: "name" } },
      { $unwind: "$name" },
      { $project: { _id: 0, name: "$name.name" } },
    ]).toArray();
    assert.deepEqual(joined, [{ name: "one" }]);
    const [facet] = await collection.aggregate([
      { $facet: { count: [{ $count: "n" }], top: [{ $sort: { _id: -1 } }, { $limit: 1 }] } },
    ]).toArray();
    assert.deepEqual(facet, { count: [{ n: 500 }], top: [{ _id: 499, group: 2 }] });
    await collection.aggregate([{ $match: { group: 6 } }, { $out: `out${number}` }]).toArray();
    assert.equal(await database.collection(`out${number}`).countDocuments(), 71);
    assert.deepEqual(await collection.distinct("group", { _id: { $lt: 3 } }), [0, 1, 2]);
  });

  test("explain names the index", async () => {
    await collection.createIndex({ group: 1 });
    const plan = JSON.stringify(await collection.find({ group: 3 }).explain("executionStats"));
    assert.match(plan, /"indexName":"group_1"/);
    assert.match(plan, /"nReturned":71/);
  });
});

describe("bulk writes", () => {
  const operations = [
    { insertOne: { document: { _id: 1 } } },
    { insertOne: { document: { _id: 1 } } },
    { updateOne: { filter: { _id: 1 }, update: { $set: { seen: true } } } },
    { replaceOne: { filter: { _id: 2 }, replacement: { two: 2 }, upsert: true } },
    { deleteOne: { filter: { _id: 9 } } },
  ];

  test("ordered: stops at the first error", async () => {
    const error = await refused(11000, () => collection.bulkWrite(operations));
    assert.deepEqual([error.result.insertedCount, error.writeErrors.length, error.writeErrors[0].index], [1, 1, 1]);
    assert.deepEqual(await collection.find().toArray(), [{ _id: 1 }]);
  });

  test("unordered: everything else is done", async () => {
    const error = await refused(11000, () => collection.bulkWrite(operations, { ordered: false }));
    const { insertedCount, modifiedCount, upsertedCount } = error.result;
    assert.deepEqual([insertedCount, modifiedCount, upsertedCount], [1, 1, 1]);
    const stored = await collection.find().sort({ _id: 1 }).toArray();
    assert.deepEqual(stored, [{ _id: 1, seen: true }, { _id: 2, two: 2 }]);
  });

  test("many documents, split by the driver", async () => {
    const many = await collection.insertMany(range(5000).map((n) => ({ n })), { ordered: false });
    assert.equal(many.insertedCount, 5000);
    assert.equal(await collection.countDocuments({ n: { $gte: 2500 } }), 2500);
  });

  test("over several collections in one command", async () => {
    const other = `other${number}`;
    const result = await client.bulkWrite([
      { namespace: collection.namespace, name: "insertOne", document: { _id: 1, n: 1 } },
      { namespace: `driver.${other}`, name: "insertOne", document: { _id: 1 } },
      { namespace: collection.namespace, name: "updateMany", filter: {}, update: { $inc: { n: 1 } } },
      { namespace: `driver.${other}`, name: "deleteMany", filter: {} },
    ]);
    assert.deepEqual(
      [result.insertedCount, result.matchedCount, result.modifiedCount, result.deletedCount],
      [2, 1, 1, 1],
    );
  });
});

describe("sessions", () => {
  test("a transaction is seen whole, after its commit", async () => {
    const other = database.collection(`other${number}`);
    await collection.insertOne({ _id: 1, sum: 10 });
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await collection.updateOne({ _id: 1 }, { $inc: { sum: -4 } }, { session });
        await other.insertOne({ _id: 1, sum: 4 }, { session });
        assert.equal((await collection.findOne({ _id: 1 }, { session })).sum, 6);
        assert.equal((await collection.findOne({ _id: 1 })).sum, 10);
        assert.equal(await other.countDocuments(), 0);
      }),
    );
    assert.deepEqual([(await collection.findOne()).sum, (await other.findOne()).sum], [6, 4]);
  });

  test("an aborted transaction leaves nothing", async () => {
    await collection.insertOne({ _id: 1 });
    const session = client.startSession();
    session.startTransaction();
    await collection.insertOne({ _id: 2 }, { session });
    await collection.deleteOne({ _id: 1 }, { session });
    await session.abortTransaction();
    await session.endSession();
    assert.deepEqual(await collection.find().toArray(), [{ _id: 1 }]);
  });

  test("of two transactions on one document, the later gets a conflict to retry", async () => {
    await collection.insertOne({ _id: 1, n: 0 });
    const [first, second] = [client.startSession(), client.startSession()];
    first.startTransaction();
    second.startTransaction();
    await collection.findOne({ _id: 1 }, { session: second });
    await collection.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: first });
    await first.commitTransaction();
    const error = await refused(112, async () => {
      await collection.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: second });
      await second.commitTransaction();
    });
    assert.ok(error.hasErrorLabel("TransientTransactionError"));
    await Promise.all([first.endSession(), second.endSession()]);
    assert.equal((await collection.findOne()).n, 1);
  });

  test("concurrent increments in transactions all count", async () => {
    await collection.insertOne({ _id: 1, n: 0 });
    await Promise.all(range(8).map(() =>
      client.withSession((session) =>
        session.withTransaction(async () => {
          const { n } = await collection.findOne({ _id: 1 }, { session });
          await collection.updateOne({ _id: 1 }, { $set: { n: n + 1 } }, { session });
        }),
      ),
    ));
    assert.equal((await collection.findOne()).n, 8);
  });

  test("T16 a document that expires before the commit is a conflict", async () => {
    await collection.createIndex({ at: 1 }, { expireAfterSeconds: 0 });
    const now = await server.now();
    await collection.insertOne({ _id: 1, at: new Date((now + 100) * 1000) });
    const session = client.startSession();
    session.startTransaction();
    await collection.updateOne({ _id: 1 }, { $set: { seen: true } }, { session });
    await server.moveTo(now + 100);
    const error = await refused(112, () => session.commitTransaction());
    assert.ok(error.hasErrorLabel("TransientTransactionError"));
    await session.endSession();
    assert.equal(await collection.countDocuments(), 0);
  });

  test("a write whose answer was lost is retried and done once", async () => {
    await collection.insertOne({ _id: 1, n: 0 });
    const fail = (data, mode) => client.db("admin").command({ configureFailPoint: "failCommand", mode, data });
    await fail({ failCommands: ["update"], closeConnection: true }, { times: 1 });
    assert.equal((await collection.updateOne({ _id: 1 }, { $inc: { n: 1 } })).modifiedCount, 1);
    await fail({ failCommands: ["insert"], errorCode: 91, errorLabels: ["RetryableWriteError"] }, { times: 1 });
    await collection.insertOne({ _id: 2 });
    assert.equal((await collection.findOne({ _id: 1 })).n, 1);
  });

  test("the same statement twice gives the recorded answer", async () => {
    const command = () => ({
      findAndModify: collection.collectionName,
      query: { _id: 1 },
      update: { $inc: { n: 1 } },
      upsert: true,
      new: true,
      txnNumber: Long.fromNumber(1),
    });
    // A client of its own: the driver numbers the writes of the sessions it keeps.
    const own = server.client();
    await own.withSession(async (session) => {
      const first = await own.db("driver").command(command(), { session });
      const again = await own.db("driver").command(command(), { session });
      assert.deepEqual([first.value, again.value], [{ _id: 1, n: 1 }, { _id: 1, n: 1 }]);
    });
    await own.close();
    assert.equal((await collection.findOne()).n, 1);
  });
});

describe("connections", () => {
  for (const compressor of ["zlib", "snappy"]) {
    test(`compressed with ${compressor}`, async () => {
      const compressed = await server.client({ compressors: [compressor] }).connect();
      const own = compressed.db("driver").collection(`c${number}`);
      const crossed = async () => {
        const { network } = await compressed.db("admin").command({ serverStatus: 1 });
        return Number(network.bytesIn) + Number(network.bytesOut);
      };
      const before = await crossed();
      await own.insertMany(range(200).map((n) => ({ _id: n, text: "repeat ".repeat(1000) })));
      assert.equal((await own.find().toArray()).length, 200);
      // 1.4 MB in each direction without compression.
      assert.ok((await crossed()) - before < 700_000);
      await compressed.close();
    });
  }

  test("the profile of a single server takes a direct connection", async () => {
    const direct = new MongoClient(`mongodb://${server.mongo}/?directConnection=true`);
    assert.equal((await direct.db("admin").command({ ping: 1 })).ok, 1);
    await direct.close();
  });

  for (const mechanism of ["SCRAM-SHA-1", "SCRAM-SHA-256"]) {
    test(`${mechanism} with the account's key, and with a user of its own`, async (context) => {
      const guarded = await Server.start({ extra: ["--mongo-auth"] });
      const clients = [];
      context.after(async () => {
        await Promise.all(clients.map((one) => one.close()));
        assert.equal(await guarded.stop(), 0);
      });
      const connect = (options) => {
        clients.push(guarded.client(options));
        return clients.at(-1);
      };
      const as = (username, password, authSource = "admin") =>
        connect({ auth: { username, password }, authMechanism: mechanism, authSource });
      const owner = as(USER, EMULATOR_KEY);
      await owner.db("app").command({ createUser: "writer", pwd: "secret", roles: ["readWrite"] });
      await owner.db("app").collection("c").insertOne({ _id: 1 });
      const writer = as("writer", "secret", "app");
      assert.equal(await writer.db("app").collection("c").countDocuments(), 1);
      await refused(18, () => as("writer", "wrong", "app").db("app").command({ ping: 1 }));
      await refused(13, () => connect({}).db("app").collection("c").findOne());
    });
  }
});

describe("collections and databases", () => {
  test("created, listed, renamed, dropped", async () => {
    const db = client.db(`names${number}`);
    await db.createCollection("a", { validator: { n: { $type: "int" } } });
    await refused(48, () => db.command({ create: "a", validator: {} }));
    await refused(121, () => db.collection("a").insertOne({ n: "one" }));
    await db.renameCollection("a", "b");
    assert.deepEqual((await db.listCollections().toArray()).map(({ name }) => name), ["b"]);
    assert.ok((await client.db().admin().listDatabases()).databases.some(({ name }) => name === db.databaseName));
    await db.createCollection("view", { viewOn: "b", pipeline: [{ $match: { n: 1 } }] });
    await db.collection("b").insertMany([{ n: new Int32(1) }, { n: new Int32(2) }]);
    assert.equal((await db.collection("view").find().toArray()).length, 1);
    assert.equal(await db.dropCollection("b"), true);
    assert.equal(await db.dropDatabase(), true);
  });

  test("indexes are made, listed, hidden and dropped", async () => {
    const names = await collection.createIndexes([
      { key: { a: 1, b: -1 } },
      { key: { "$**": 1 } },
      { key: { c: "hashed" } },
      { key: { text: "text" } },
      { key: { place: "2dsphere" } },
      { key: { d: 1 }, partialFilterExpression: { d: { $gt: 5 } }, name: "partial" },
    ]);
    assert.deepEqual(names, ["a_1_b_-1", "$**_1", "c_hashed", "text_text", "place_2dsphere", "partial"]);
    assert.equal((await collection.listIndexes().toArray()).length, 7);
    await database.command({ collMod: collection.collectionName, index: { name: "partial", hidden: true } });
    assert.equal((await collection.indexes()).find(({ name }) => name === "partial").hidden, true);
    await collection.dropIndex("partial");
    await collection.dropIndexes();
    assert.deepEqual((await collection.indexes()).map(({ name }) => name), ["_id_"]);
  });

  test("an unknown command and an unknown operator are refused by name", async () => {
    assert.match((await refused(59, () => database.command({ noSuchThing: 1 }))).message, /noSuchThing/);
    assert.match((await refused(2, () => collection.find({ a: { $nope: 1 } }).toArray())).message, /\$nope/);
    assert.match((await refused(40324, () => collection.aggregate([{ $nope: 1 }]).toArray())).message, /\$nope/);
  });
});
