// The shell: Cosmos DB's connection string, the TTL of its documentation, and what people type first.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { Server, USER } from "./bolide.js";
import { Shell } from "./shell.js";

const INSERTS = {
  double: "Double(20)",
  int: "NumberInt(20)",
  long: "NumberLong(20)",
  fraction: "20.5",
  tooLong: 'NumberLong("2147483649")',
};

let server;
let shell;

before(async () => {
  server = await Server.start({ onDisk: true, extra: ["--mongo-auth"] });
});

after(async () => {
  assert.equal(await server.stop(), 0);
});

describe("over TLS, with user and key", () => {
  before(async () => {
    shell = await Shell.open(server.cosmosUri({ tls: true }), "--tlsCAFile", server.certificate);
  });

  after(async () => {
    await shell.close();
  });

  test("the connection is authenticated, and the replica set is globaldb", async () => {
    const status = await shell.value("db.runCommand({connectionStatus: 1})");
    assert.equal(status.authInfo.authenticatedUsers[0].user, USER);
    assert.equal((await shell.value("db.hello()")).setName, "globaldb");
    assert.match(await shell.type("db.version()"), /\d+\.\d+\.\d+/);
  });

  test("T6 and T26 of five documents, those with a ttl of 20 outlive the collection's 10 s", async () => {
    await shell.type("use mission");
    // The helper prints the name alone; the server's answer is checked beside it, for indexes that are new and that are not.
    const create = async (key) => {
      const index = `{key: ${key}, name: "${key}", expireAfterSeconds: 10}`;
      const reply = await shell.value(`db.runCommand({createIndexes: "seen", indexes: [${index}]})`);
      return [reply.createdCollectionAutomatically, reply.numIndexesBefore, reply.numIndexesAfter, reply.ok];
    };
    assert.deepEqual(await create("{_ts: 1}"), [true, 1, 2, 1]);
    assert.deepEqual(await create("{_ts: 1}"), [false, 2, 2, 1]);
    assert.deepEqual(await create("{at: 1}"), [false, 2, 3, 1]);
    assert.match(await shell.type('db.coll.createIndex({"_ts":1}, {expireAfterSeconds: 10})'), /_ts_1/);
    assert.deepEqual(await shell.value("db.coll.getIndexes()"), [
      { v: 2, key: { _id: 1 }, name: "_id_" },
      { v: 2, key: { _ts: 1 }, name: "_ts_1", expireAfterSeconds: 10 },
    ]);

    const start = (await server.now()) + 1;
    await server.moveTo(start);
    for (const [id, ttl] of Object.entries(INSERTS)) {
      const answer = await shell.type(`db.coll.insertOne({_id: "${id}", location: "Paris", ttl: ${ttl}})`);
      assert.match(answer, /acknowledged: true/);
    }
    const written = await server.now();
    const left = () => shell.value("db.coll.find().toArray().map((document) => document._id).sort()");
    assert.deepEqual(await left(), Object.keys(INSERTS).sort());
    await server.moveTo(written + 10);
    assert.deepEqual(await left(), ["double", "int", "long"]);
    assert.equal(await shell.value("db.coll.countDocuments()"), 3);
    await server.moveTo(written + 20);
    assert.deepEqual(await left(), []);
    assert.equal(await shell.value("db.coll.estimatedDocumentCount()"), 0);
  });

  test("T26 the index of the default is listed, changed and dropped", async () => {
    await shell.type("use rules");
    await shell.type("db.coll.createIndex({_ts: 1}, {expireAfterSeconds: 10})");
    const index = { v: 2, key: { _ts: 1 }, name: "_ts_1", expireAfterSeconds: 10 };
    assert.deepEqual((await shell.value("db.coll.getIndexes()")).find(({ name }) => name === "_ts_1"), index);
    const changed = await shell.value(
      'db.runCommand({collMod: "coll", index: {keyPattern: {_ts: 1}, expireAfterSeconds: 100}})',
    );
    assert.equal(changed.expireAfterSeconds_old, 10);
    assert.equal(changed.expireAfterSeconds_new, 100);
    await shell.type('db.coll.insertOne({_id: "x"})');
    await shell.type('db.coll.dropIndex("_ts_1")');
    await server.advance(500);
    assert.equal(await shell.value("db.coll.countDocuments()"), 1);
    assert.equal((await shell.value("db.coll.getIndexes()")).length, 1);
  });

  test("T27 metrics.ttl grows with what is purged", async () => {
    await shell.type("use sessions");
    await shell.type("db.sessions.createIndex({at: 1}, {expireAfterSeconds: 0})");
    const before = await shell.value("db.serverStatus().metrics.ttl");
    await shell.type("db.sessions.insertMany([{at: new Date(0)}, {at: new Date(1)}, {at: null}])");
    assert.equal(await shell.value("db.sessions.countDocuments()"), 1);
    await server.admin("POST", "purge", { now: true });
    const grown = await shell.value("db.serverStatus().metrics.ttl");
    assert.ok(grown.deletedDocuments >= before.deletedDocuments + 2, JSON.stringify([before, grown]));
    assert.ok(grown.passes > before.passes, JSON.stringify([before, grown]));
  });

  test("show dbs and show collections", async () => {
    await shell.type("use shop");
    await shell.type('db.beers.insertOne({_id: 1, name: "Pils"})');
    await shell.type('db.createCollection("wines")');
    assert.match(await shell.type("show dbs"), /^shop\s/m);
    assert.match(await shell.type("show collections"), /beers\s+wines/);
    assert.match(await shell.type("show tables"), /beers\s+wines/);
    assert.match(await shell.type("show users"), /\[|user/);
  });

  test("find, sort, limit, it and the helpers of a collection", async () => {
    await shell.type("use pages");
    await shell.type("db.n.insertMany(Array.from({length: 45}, (_, n) => ({_id: n, even: n % 2 === 0})))");
    assert.match(await shell.type("db.n.find().sort({_id: -1}).limit(2)"), /_id: 44.*_id: 43/s);
    assert.match(await shell.type("db.n.find()"), /Type "it" for more/);
    assert.match(await shell.type("it"), /_id: 20/);
    assert.equal(await shell.value("db.n.find({even: true}).skip(20).toArray().length"), 3);
    assert.equal(await shell.value("db.n.countDocuments({even: false})"), 22);
    assert.deepEqual(await shell.value('db.n.distinct("even").length'), 2);
    assert.equal(await shell.value("db.n.stats().count"), 45);
    assert.equal(await shell.value("db.n.aggregate([{$match: {even: true}}, {$count: 'n'}]).toArray()[0].n"), 23);
    const updated = await shell.value("db.n.updateMany({even: true}, {$inc: {hits: 1}})");
    assert.deepEqual([updated.matchedCount, updated.modifiedCount], [23, 23]);
    assert.equal((await shell.value("db.n.deleteMany({_id: {$gte: 40}})")).deletedCount, 5);
    assert.match(await shell.type("db.n.insertOne({_id: 1})"), /E11000 duplicate key error collection: pages\.n/);
    assert.match(await shell.type("db.n.drop()"), /true/);
    assert.equal((await shell.value("db.dropDatabase()")).ok, 1);
  });

  test("stats, explain and validate", async () => {
    await shell.type("use figures");
    await shell.type("db.n.insertMany([{_id: 1}, {_id: 2}, {_id: 3}])");
    assert.equal((await shell.value("db.stats()")).objects, 3);
    assert.match(await shell.type("db.n.find({_id: 3}).explain()"), /queryPlanner/);
    assert.equal((await shell.value("db.n.validate()")).valid, true);
  });

  test("a session with a transaction", async () => {
    await shell.type("use bank");
    await shell.type('db.accounts.insertMany([{_id: "a", sum: 10}, {_id: "b", sum: 0}])');
    await shell.type("session = db.getMongo().startSession(); accounts = session.getDatabase('bank').accounts");
    await shell.type("session.startTransaction()");
    await shell.type('accounts.updateOne({_id: "a"}, {$inc: {sum: -5}})');
    await shell.type('accounts.updateOne({_id: "b"}, {$inc: {sum: 5}})');
    assert.equal(await shell.value('db.accounts.findOne({_id: "b"}).sum'), 0);
    await shell.type("session.commitTransaction()");
    assert.equal(await shell.value('db.accounts.findOne({_id: "b"}).sum'), 5);
  });
});

test("plain, with user and key; a wrong key is refused", async () => {
  const plain = await Shell.open(server.cosmosUri());
  assert.equal((await plain.value("db.runCommand({ping: 1})")).ok, 1);
  await plain.close();
  const wrong = server.cosmosUri().replace(/:[^:@]+@/, ":wrong@");
  await assert.rejects(Shell.open(wrong), /Authentication failed/);
});
