// Hierarchical partition keys whose items lack levels: the SDK writes a missing level as {}, and computes the ranges of keys
// with it.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { BulkOperationType, ChangeFeedMode, ChangeFeedStartFrom, PartitionKeyKind } from "@azure/cosmos";
import { Server, refused } from "./bolide.js";

const ITEMS = [
  [["x", {}], { id: "first", a: "x" }],
  [["x", null], { id: "null", a: "x", b: null }],
  [["x", "y"], { id: "both", a: "x", b: "y" }],
  [[{}, "y"], { id: "second", b: "y" }],
  [[{}, {}], { id: "neither" }],
];

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const below = (prefix) =>
  ITEMS.filter(([key]) => same(key.slice(0, prefix.length), prefix))
    .map(([, { id }]) => id)
    .sort();

for (const partitions of ["1", "4"]) {
  describe(`${partitions} physical partition(s)`, () => {
    let server;
    let database;
    let number = 0;

    before(async () => {
      server = await Server.start("--partitions", partitions);
      database = (await server.client.databases.create({ id: "levels" })).database;
    });

    after(async () => {
      assert.equal(await server.stop(), 0);
    });

    async function make(...paths) {
      number += 1;
      const partitionKey = { paths, kind: PartitionKeyKind.MultiHash, version: 2 };
      return (await database.containers.create({ id: `c${number}`, partitionKey, defaultTtl: -1 })).container;
    }

    async function filled() {
      const container = await make("/a", "/b");
      for (const [, item] of ITEMS) assert.equal((await container.items.create(item)).statusCode, 201);
      return container;
    }

    const ids = (items) => items.map(({ id }) => id).sort();

    async function feed(container, key) {
      const iterator = container.items.getChangeFeedIterator({
        changeFeedMode: ChangeFeedMode.LatestVersion,
        changeFeedStartFrom: ChangeFeedStartFrom.Beginning(key),
      });
      const found = [];
      for (;;) {
        const page = await iterator.readNext();
        if (page.statusCode === 304) return ids(found);
        found.push(...page.result);
      }
    }

    test("created, replaced, patched and read under their own key alone", async () => {
      const container = await filled();
      for (const [own, item] of ITEMS) {
        assert.equal((await container.items.upsert({ ...item, n: 1 })).statusCode, 200);
        assert.equal((await container.item(item.id, own).replace({ ...item, n: 2 })).statusCode, 200);
        const patched = await container.item(item.id, own).patch([{ op: "incr", path: "/n", value: 1 }]);
        assert.equal(patched.resource.n, 3);
        for (const [key] of ITEMS) {
          const read = await container.item(item.id, key).read();
          assert.equal(read.statusCode, same(key, own) ? 200 : 404, `${item.id} under ${JSON.stringify(key)}`);
        }
      }
      await refused(400, () => container.item("first", ["x"]).delete());
    });

    test("queries and feeds by key and by prefix", async () => {
      const container = await filled();
      for (const key of [["x"], [{}], ...ITEMS.map(([key]) => key)]) {
        const expected = below(key);
        for (const text of ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.id"]) {
          const { resources } = await container.items.query(text, { partitionKey: key }).fetchAll();
          assert.deepEqual(ids(resources), expected, `${text} of ${JSON.stringify(key)}`);
        }
        assert.deepEqual(await feed(container, key), expected, `feed of ${JSON.stringify(key)}`);
      }
      const text = "SELECT * FROM c WHERE NOT IS_DEFINED(c.b)";
      assert.deepEqual(ids((await container.items.query(text).fetchAll()).resources), ["first", "neither"]);
    });

    test("batches, bulk and deletes", async () => {
      const container = await make("/a", "/b");
      const batch = [
        { operationType: BulkOperationType.Create, resourceBody: { id: "1", a: "x" } },
        { operationType: BulkOperationType.Read, id: "1" },
      ];
      const { result } = await container.items.batch(batch, ["x", {}]);
      assert.deepEqual(result.map(({ statusCode }) => statusCode), [201, 200]);
      const bulk = ITEMS.map(([partitionKey, resourceBody]) => ({
        operationType: BulkOperationType.Create,
        partitionKey,
        resourceBody,
      }));
      const answers = await container.items.executeBulkOperations(bulk);
      assert.deepEqual(answers.map(({ response }) => response?.statusCode), ITEMS.map(() => 201));
      assert.equal((await container.item("neither", [{}, {}]).delete()).statusCode, 204);
      await container.deleteAllItemsForPartitionKey(["x", {}]);
      assert.deepEqual(ids((await container.items.readAll().fetchAll()).resources), ["both", "null", "second"]);
    });

    test("one level that no item has, as Entity Framework makes it", async () => {
      const container = await make("/__partitionKey");
      for (const id of ["1", "2", "3"]) assert.equal((await container.items.create({ id })).statusCode, 201);
      assert.equal((await container.item("2", [{}]).read()).statusCode, 200);
      assert.equal((await container.item("2", undefined).read()).statusCode, 200);
      assert.equal((await container.item("2", [null]).read()).statusCode, 404);
      for (const options of [{ partitionKey: [{}] }, {}]) {
        const { resources } = await container.items.query("SELECT * FROM c ORDER BY c.id DESC", options).fetchAll();
        assert.deepEqual(resources.map(({ id }) => id), ["3", "2", "1"]);
      }
      assert.deepEqual(await feed(container, [{}]), ["1", "2", "3"]);
    });

    test("T14: an item without levels expires", async () => {
      const container = await make("/a", "/b");
      await container.items.create({ id: "1", a: "x", ttl: 5 });
      await server.advance(5);
      assert.equal((await container.item("1", ["x", {}]).read()).statusCode, 404);
      assert.deepEqual((await container.items.query("SELECT * FROM c", { partitionKey: ["x"] }).fetchAll()).resources, []);
    });
  });
}
