// Mongoose: models with `expires`, indexes kept in step, documents, references, transactions.

import { after, before, beforeEach, describe, test } from "node:test";
import assert from "node:assert/strict";
import mongoose from "mongoose";
import { Server, living } from "./bolide.js";

const { Schema } = mongoose;

let server;
let connection;

before(async () => {
  server = await Server.start();
  connection = await mongoose.createConnection(server.uri(), { dbName: "odm" }).asPromise();
});

after(async () => {
  await connection.close();
  assert.equal(await server.stop(), 0);
});

/** A model whose collection and indexes are there. */
async function model(name, schema) {
  const made = connection.model(name, schema);
  await made.init();
  return made;
}

describe("TTL", () => {
  test("T27 a path with `expires` makes an index that expires", async () => {
    const schema = new Schema({ token: String, createdAt: { type: Date, expires: "1m" } });
    const Session = await model("Session", schema);
    const sessions = Session.collection;
    const index = (await sessions.indexes()).find(({ name }) => name === "createdAt_1");
    assert.equal(index.expireAfterSeconds, 60);
    const now = await server.now();
    const session = await Session.create({ token: "t", createdAt: new Date(now * 1000) });
    await Session.create({ token: "later", createdAt: new Date((now + 100) * 1000) });
    assert.equal((await Session.findOne({ token: "t" })).id, session.id);
    await server.moveTo(now + 60);
    assert.equal(await Session.findById(session.id), null);
    assert.equal(await Session.exists({ token: "t" }), null);
    assert.equal((await living(sessions)).length, 1);
  });

  test("T13 T27 syncIndexes replaces a changed rule and revives no document", async () => {
    const before = await model("Cache", new Schema({ at: { type: Date, expires: 10 } }));
    const now = await server.now();
    await before.create({ at: new Date(now * 1000) }, { at: new Date((now + 500) * 1000) });
    await server.moveTo(now + 10);
    connection.deleteModel("Cache");
    const schema = new Schema({ at: { type: Date, expires: 100 } }, { autoIndex: false });
    const changed = await model("Cache", schema);
    assert.deepEqual(await changed.syncIndexes(), ["at_1"]);
    const index = (await changed.collection.indexes()).find(({ name }) => name === "at_1");
    assert.equal(index.expireAfterSeconds, 100);
    assert.equal(await changed.countDocuments(), 1);
    await server.moveTo(now + 600);
    assert.equal(await changed.countDocuments(), 0);
  });

  test("T6 T26 the `_ts` index of a schema is the default, `ttl` of a document overrides it", async () => {
    const schema = new Schema({ name: String, ttl: Number });
    schema.index({ _ts: 1 }, { expireAfterSeconds: 100 });
    const Order = await model("Order", schema);
    const start = await server.now();
    await Order.create({ name: "short", ttl: 20 }, { name: "default" }, { name: "kept", ttl: -1 });
    const names = async () => (await Order.find().sort("name").lean()).map(({ name }) => name);
    await server.moveTo(start + 50);
    assert.deepEqual(await names(), ["default", "kept"]);
    const order = await Order.findOne({ name: "default" });
    order.name = "again";
    await order.save();
    await server.moveTo(start + 140);
    assert.deepEqual(await names(), ["again", "kept"]);
    await server.moveTo(start + 160);
    assert.deepEqual(await names(), ["kept"]);
    await assert.rejects(order.set("name", "dead").save(), mongoose.Error.DocumentNotFoundError);
  });

  test("T6 a ttl of 20 in each type of number outlives the collection's 10 s; what is no number of seconds does not", async () => {
    const { Double, Int32, BigInt: Int64 } = Schema.Types;
    const collection = "inserts";
    const typed = (type) => {
      const schema = new Schema({ _id: String, ttl: type }, { collection });
      schema.index({ _ts: 1 }, { expireAfterSeconds: 10 });
      return schema;
    };
    const [WithDouble, WithInt32, WithInt64] = [
      await model("WithDouble", typed(Double)), await model("WithInt32", typed(Int32)), await model("WithInt64", typed(Int64)),
    ];
    await WithDouble.create({ _id: "double", ttl: 20 }, { _id: "fraction", ttl: 20.5 });
    await WithInt32.create({ _id: "int", ttl: 20 });
    await WithInt64.create({ _id: "long", ttl: 20n }, { _id: "tooLong", ttl: 2147483649n });
    const start = await server.now();
    const types = await WithDouble.aggregate([{ $sort: { _id: 1 } }, { $project: { type: { $type: "$ttl" } } }]);
    assert.deepEqual(types.map(({ type }) => type), ["double", "double", "int", "long", "long"]);
    await server.moveTo(start + 10);
    assert.deepEqual(await living(WithDouble.collection), ["double", "int", "long"]);
    await server.moveTo(start + 20);
    assert.deepEqual(await living(WithDouble.collection), []);
  });
});

describe("documents", () => {
  let Author;
  let Book;

  before(async () => {
    Author = await model("Author", new Schema({ name: { type: String, unique: true, required: true } }));
    const author = { type: Schema.Types.ObjectId, ref: "Author" };
    const book = { title: String, tags: [String], author, pages: Number };
    Book = await model("Book", new Schema(book, { timestamps: true, optimisticConcurrency: true }));
  });

  beforeEach(async () => {
    await Promise.all([Author.deleteMany(), Book.deleteMany()]);
  });

  test("save, timestamps, versions", async () => {
    const book = await Book.create({ title: "One", tags: ["a"], pages: 10 });
    assert.ok(book.createdAt instanceof Date);
    const stale = await Book.findById(book.id);
    book.tags.push("b");
    book.pages = 11;
    await book.save();
    const found = await Book.findById(book.id).lean();
    assert.deepEqual([found.tags, found.pages, found.__v], [["a", "b"], 11, 1]);
    assert.deepEqual(found.createdAt, book.createdAt);
    stale.title = "Stale";
    await assert.rejects(stale.save(), mongoose.Error.VersionError);
    assert.equal((await book.deleteOne()).deletedCount, 1);
  });

  test("findOneAndUpdate with upsert, filters, lean, distinct, aggregate", async () => {
    const options = { upsert: true, returnDocument: "after" };
    const made = await Book.findOneAndUpdate({ title: "Two" }, { $inc: { pages: 5 } }, options);
    assert.deepEqual([made.title, made.pages], ["Two", 5]);
    assert.ok(made.createdAt instanceof Date);
    await Book.insertMany([{ title: "Three", pages: 7 }, { title: "Four", pages: 9 }]);
    const some = await Book.find({ pages: { $gte: 6 } }).sort("-pages").select("title -_id").lean();
    assert.deepEqual(some, [{ title: "Four" }, { title: "Three" }]);
    assert.deepEqual((await Book.distinct("title")).sort(), ["Four", "Three", "Two"]);
    const [sum] = await Book.aggregate([{ $group: { _id: null, pages: { $sum: "$pages" } } }]);
    assert.equal(sum.pages, 21);
    const titles = [];
    for await (const { title } of Book.find().sort("title").cursor({ batchSize: 1 })) titles.push(title);
    assert.deepEqual(titles, ["Four", "Three", "Two"]);
    assert.equal((await Book.updateMany({}, { $set: { tags: ["x"] } })).modifiedCount, 3);
    const written = await Book.bulkWrite([
      { updateOne: { filter: { title: "Two" }, update: { pages: 6 } } },
      { deleteOne: { filter: { title: "Three" } } },
    ]);
    assert.deepEqual([written.modifiedCount, written.deletedCount], [1, 1]);
  });

  test("populate", async () => {
    const author = await Author.create({ name: "Ada" });
    await Book.create({ title: "Notes", author });
    const book = await Book.findOne({ title: "Notes" }).populate("author");
    assert.equal(book.author.name, "Ada");
  });

  test("a taken unique value is E11000, a missing required one never leaves the client", async () => {
    await Author.create({ name: "Grace" });
    await assert.rejects(Author.create({ name: "Grace" }), (error) => {
      assert.deepEqual([error.code, error.keyPattern, error.keyValue], [11000, { name: 1 }, { name: "Grace" }]);
      return true;
    });
    await assert.rejects(Author.create({}), mongoose.Error.ValidationError);
  });

  test("transactions commit and abort", async () => {
    await connection.transaction(async (session) => {
      const author = new Author({ name: "Kept" });
      await author.save({ session });
      await new Book({ title: "Kept", author }).save({ session });
    });
    assert.equal(await Book.countDocuments({ title: "Kept" }), 1);
    const failing = connection.transaction(async (session) => {
      await Author.create([{ name: "Lost" }], { session });
      throw new Error("on purpose");
    });
    await assert.rejects(failing, /on purpose/);
    assert.equal(await Author.exists({ name: "Lost" }), null);
  });
});
