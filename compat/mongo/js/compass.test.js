// The requests of MongoDB Compass: its own layer between the windows and the driver, as it is published, without the windows.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "mongodb-data-service";
import { parseSchema } from "mongodb-schema";
import { Server } from "./bolide.js";

const NS = "shop.carts";
/** As the window "Explain" asks. */
const EXPLAIN = { explainVerbosity: "allPlansExecution" };

let server;
let compass;

/** As the windows show it: numbers of BSON are numbers, and undefined values are absent. */
const plain = (value) => JSON.parse(JSON.stringify(value));

before(async () => {
  server = await Server.start();
  const silent = { debug() {}, info() {}, warn() {}, error() {}, fatal() {}, mongoLogId: (id) => id };
  compass = await connect({
    connectionOptions: { connectionString: server.uri() },
    productName: "compass",
    logger: silent,
  });
  await compass.createIndex(NS, { _ts: 1 }, { name: "_ts_1", expireAfterSeconds: 100 });
  await compass.createIndex(NS, { at: 1 }, { name: "at_1", expireAfterSeconds: 3600 });
});

after(async () => {
  await compass.disconnect();
  assert.equal(await server.stop(), 0);
});

test("the server, its databases, collections and indexes are shown", async () => {
  const instance = await compass.instance();
  assert.equal(instance.build.version.split(".").length, 3);
  assert.equal(instance.isLocalAtlas, false);
  assert.deepEqual((await compass.listDatabases()).map(({ name }) => name), ["shop"]);
  const collections = await compass.listCollections("shop");
  assert.deepEqual(collections.map(({ name, type }) => [name, type]), [["carts", "collection"]]);
  const indexes = await compass.indexes(NS);
  assert.deepEqual(
    indexes.map(({ name, properties, extra }) => [name, properties.includes("ttl"), extra.expireAfterSeconds]),
    [
      ["_id_", false, undefined],
      ["_ts_1", true, 100],
      ["at_1", true, 3600],
    ],
  );
  assert.equal(await compass.isListSearchIndexesSupported(NS), false);
  assert.ok((await compass.currentOp()).inprog.length > 0);
  assert.ok(NS in (await compass.top()).totals);
});

test("documents, plans, schema and previews are of the living", async () => {
  await compass.insertMany(NS, [{ _id: 1, ttl: 60 }, { _id: 2, at: new Date(0) }, { _id: 3, ttl: -1, tags: ["a"] }]);
  assert.deepEqual((await compass.find(NS, {}, { sort: { _id: 1 } })).map(({ _id }) => _id), [1, 3]);
  await server.advance(60);
  assert.deepEqual((await compass.find(NS, {}, {})).map(({ _id }) => _id), [3]);
  assert.equal(await compass.count(NS, {}), 1);
  assert.equal(await compass.estimatedCount(NS), 1);
  const stats = await compass.collectionStats("shop", "carts");
  assert.deepEqual([stats.document_count, stats.index_count], [1, 3]);
  assert.equal((await compass.databaseStats("shop")).document_count, 1);

  const filter = { at: { $gt: new Date(1) } };
  assert.match(JSON.stringify(await compass.explainFind(NS, filter, {}, EXPLAIN)), /"indexName":"at_1"/);
  const grouped = [{ $match: filter }, { $group: { _id: null, n: { $sum: 1 } } }];
  assert.match(JSON.stringify(await compass.explainAggregate(NS, grouped, {}, EXPLAIN)), /"indexName":"at_1"/);
  const schema = await parseSchema(await compass.sample(NS, { size: 100 }, {}));
  assert.deepEqual(schema.fields.map(({ name }) => name), ["_id", "tags", "ttl"]);

  const { changes } = await compass.previewUpdate(NS, {}, { $set: { n: 1 } });
  const document = { _id: 3, ttl: -1, tags: ["a"] };
  assert.deepEqual(plain(changes), [{ before: document, after: { ...document, n: 1 } }]);
  assert.equal((await compass.findOneAndUpdate(NS, { _id: 3 }, { $inc: { n: 1 } }, { returnDocument: "after" })).n, 1);
});

test("rules, views and names are changed, and all is dropped", async () => {
  await compass.updateCollection(NS, { validator: { n: { $gte: 0 } }, validationLevel: "moderate" });
  const { validation } = await compass.collectionInfo("shop", "carts");
  assert.deepEqual(plain(validation), { validator: { n: { $gte: 0 } }, validationAction: "error", validationLevel: "moderate" });
  await compass.createView("dear", NS, [{ $match: { n: { $gt: 0 } } }], {});
  await compass.dropIndex(NS, "at_1");
  await compass.renameCollection(NS, "kept");
  const names = (await compass.listCollections("shop")).map(({ name }) => name).sort();
  assert.deepEqual(names.filter((name) => !name.startsWith("system.")), ["dear", "kept"]);
  assert.equal(await compass.dropDatabase("shop"), true);
  assert.deepEqual(await compass.listDatabases(), []);
});
