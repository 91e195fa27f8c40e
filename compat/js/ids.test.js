// The ids of compat/ids.json through the JavaScript SDK, which leaves '?' and other characters as they are in a path.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Server, refused } from "./bolide.js";

const table = JSON.parse(readFileSync(new URL("../ids.json", import.meta.url), "utf8"));

describe("ids", () => {
  let server;
  let container;

  before(async () => {
    server = await Server.start();
    const { database } = await server.client.databases.create({ id: "ids" });
    ({ container } = await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } }));
  });

  after(async () => {
    assert.equal(await server.stop(), 0);
  });

  const byId = async (id) => {
    const query = { query: "SELECT VALUE c.id FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: id }] };
    return (await container.items.query(query).fetchAll()).resources;
  };

  const unnamed = table.unnamed.js;
  for (const id of [...table.accepted, ...table.escaped].filter((id) => !(id in unnamed))) {
    test(`every operation: ${JSON.stringify(id).slice(0, 60)}`, async () => {
      assert.equal((await container.items.create({ id, pk: "p" })).resource.id, id);
      const item = container.item(id, "p");
      const read = await item.read();
      assert.deepEqual([read.statusCode, read.resource?.id], [200, id]);
      assert.match(read.headers["x-ms-request-duration-ms"], /^\d+\.\d{3}$/);
      assert.equal((await item.replace({ id, pk: "p", n: 1 })).statusCode, 200);
      assert.equal((await item.patch([{ op: "incr", path: "/n", value: 1 }])).resource.n, 2);
      assert.deepEqual(await byId(id), [id]);
      const batch = await container.items.batch([{ operationType: "Read", id }], "p");
      assert.deepEqual([batch.code, batch.result[0].resourceBody.id], [200, id]);
      assert.equal((await item.delete()).statusCode, 204);
      assert.equal((await item.read()).statusCode, 404);
    });
  }

  /** What a batch does with an item that no path names. */
  async function inBatches(id, make) {
    await make();
    assert.deepEqual(await byId(id), [id]);
    const replace = { operationType: "Replace", id, resourceBody: { id, pk: "p", n: 1 } };
    const batch = await container.items.batch([replace, { operationType: "Read", id }], "p");
    assert.deepEqual([batch.code, batch.result[1].resourceBody.n], [200, 1]);
    assert.equal((await container.items.batch([{ operationType: "Delete", id }], "p")).code, 200);
    assert.deepEqual(await byId(id), []);
  }

  for (const [id, reason] of Object.entries(unnamed)) {
    test(`${id}, ${reason}`, async () => {
      await inBatches(id, async () => {
        // Once the client takes it, the entry in the table is to be removed.
        await assert.rejects(container.items.create({ id, pk: "p" }), { message: "Id contains illegal chars." });
        const create = { operationType: "Create", resourceBody: { id, pk: "p" } };
        assert.equal((await container.items.batch([create], "p")).code, 200);
        await assert.rejects(async () => container.item(id, "p").read(), /Illegal characters/);
      });
    });
  }

  // URLs have no such last segment: it is what a browser goes up by.
  for (const id of table.dots) {
    test(`without a path of its own: ${id}`, async () => {
      await inBatches(id, async () => {
        await container.items.create({ id, pk: "p" });
        await assert.rejects(container.item(id, "p").read(), (error) => error.code === 401);
      });
    });
  }

  test("what no path can name is refused, by the SDK or by the server", async () => {
    for (const id of table.refused) {
      await assert.rejects(container.items.create({ id, pk: "p" }), (error) => /illegal/.test(error.message));
      const operation = { operationType: "Create", resourceBody: { id, pk: "p" } };
      const batch = await container.items.batch([operation], "p").catch((error) => error);
      assert.equal(batch.result?.[0]?.statusCode ?? batch.code, 400, JSON.stringify(batch));
    }
    assert.deepEqual((await container.items.readAll().fetchAll()).resources, []);
  });
});
