// Change streams through the Node driver and Mongoose: T28.

import { test } from "node:test";
import assert from "node:assert/strict";
import mongoose from "mongoose";
import { client, collection, server, serveTests } from "./fixture.js";

serveTests("watch");

const short = (event) =>
  [event.operationType, event.documentKey?._id, event.bolide?.expired ? "expired" : undefined]
    .filter((part) => part !== undefined)
    .join(" ");

/** The next `count` events. */
async function take(stream, count) {
  const events = [];
  while (events.length < count) events.push(await stream.next());
  return events;
}

test("T28: an expiry is a delete that says so, and every token is a place to go on", async () => {
  await collection.createIndex({ _ts: 1 }, { expireAfterSeconds: -1 });
  const stream = collection.watch([], { maxAwaitTimeMS: 50 });
  assert.equal(await stream.tryNext(), null);
  await collection.insertOne({ _id: 1, ttl: 10 });
  await collection.updateOne({ _id: 1 }, { $set: { x: 1 } });
  await server.advance(11);
  await collection.insertOne({ _id: 1, again: true });
  const events = await take(stream, 4);
  assert.deepEqual(events.map(short), ["insert 1", "update 1", "delete 1 expired", "insert 1"]);
  assert.deepEqual(events[1].updateDescription.updatedFields, { x: 1 });
  await stream.close();
  const resumed = collection.watch([], { resumeAfter: events[1]._id, maxAwaitTimeMS: 50 });
  assert.deepEqual((await take(resumed, 2)).map(short), ["delete 1 expired", "insert 1"]);
  await resumed.close();
});

test("a cut or changed resume token is refused", async () => {
  const stream = collection.watch([], { maxAwaitTimeMS: 50 });
  assert.equal(await stream.tryNext(), null);
  await collection.insertOne({ _id: 1 });
  const [event] = await take(stream, 1);
  await stream.close();
  const token = event._id._data;
  const middle = Math.floor(token.length / 2);
  const changed = token.slice(0, middle) + (token[middle] === "0" ? "1" : "0") + token.slice(middle + 1);
  for (const _data of [token.slice(0, -8), token.slice(0, -2), token.slice(0, -1), changed]) {
    for (const option of ["resumeAfter", "startAfter"]) {
      const resumed = collection.watch([], { [option]: { _data }, maxAwaitTimeMS: 50 });
      await assert.rejects(resumed.tryNext(), (error) => error.code === 260);
      await resumed.close();
    }
  }
});

test("a stream over the deployment shows what its stages leave", async () => {
  const stream = client.watch([{ $match: { "ns.coll": collection.collectionName } }], { maxAwaitTimeMS: 50 });
  assert.equal(await stream.tryNext(), null);
  const [event] = await Promise.all([stream.next(), collection.insertOne({ _id: "x" })]);
  assert.equal(short(event), "insert x");
  await stream.close();
});

test("a stream ends with its collection", async () => {
  const stream = collection.watch([], { maxAwaitTimeMS: 50 });
  await stream.tryNext();
  await collection.insertOne({ _id: 1 });
  await collection.drop();
  assert.deepEqual((await take(stream, 3)).map(short), ["insert 1", "drop", "invalidate"]);
  await stream.close();
});

test("T28: Mongoose watches a model", async () => {
  const connection = await mongoose.createConnection(server.uri(), { dbName: "mongoose" }).asPromise();
  try {
    const Thing = connection.model("Thing", new mongoose.Schema({ _id: Number, name: String, ttl: Number }));
    await Thing.createCollection();
    await Thing.collection.createIndex({ _ts: 1 }, { expireAfterSeconds: -1 });
    const stream = Thing.watch([], { maxAwaitTimeMS: 50, hydrate: true, fullDocument: "updateLookup" });
    const seen = [];
    const enough = new Promise((resolve, reject) => {
      stream.on("error", reject);
      stream.on("change", (event) => {
        seen.push(event);
        if (seen.length === 3) resolve();
      });
    });
    await new Promise((resolve) => stream.once("ready", resolve));
    await Thing.create({ _id: 1, name: "a", ttl: 10 });
    await Thing.updateOne({ _id: 1 }, { name: "b" });
    await server.advance(11);
    await enough;
    assert.deepEqual(seen.map(short), ["insert 1", "update 1", "delete 1 expired"]);
    await stream.close();
  } finally {
    await connection.close();
  }
});
