// A strict gateway: the SDK sends its query, is refused where rows must be joined, and goes on by a plan.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { Server } from "./bolide.js";

const ITEMS = 20;
const NUMBERS = [...Array(ITEMS).keys()];
// Queries over all partition keys, and their rows.
const QUERIES = {
  "SELECT VALUE c.n FROM c ORDER BY c.n": NUMBERS,
  "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 3": [17, 16, 15],
  "SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n": [0, 1, 2, 3],
  "SELECT VALUE COUNT(1) FROM c": [ITEMS],
  "SELECT VALUE SUM(c.n) FROM c": [NUMBERS.reduce((sum, n) => sum + n)],
  "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk": ["k0", "k1", "k2", "k3", "k4"],
  "SELECT COUNT(1) AS k FROM c": [{ k: ITEMS }],
  "SELECT c.pk, COUNT(1) AS k FROM c WHERE c.n < 4 AND c.pk = 'k1' GROUP BY c.pk": [{ pk: "k1", k: 1 }],
  "SELECT VALUE c.n FROM c WHERE c.n >= 19": [19],
};

for (const partitions of [1, 4]) {
  describe(`a strict gateway of ${partitions} partition(s)`, () => {
    let server;
    let container;

    before(async () => {
      server = await Server.start("--strict-gateway", "--partitions", String(partitions));
      const { database } = await server.client.databases.create({ id: "d" });
      ({ container } = await database.containers.create({ id: "c", partitionKey: "/pk" }));
      for (const n of NUMBERS) await container.items.create({ id: `${n}`, pk: `k${n % 5}`, n });
    });

    after(async () => {
      assert.equal(await server.stop(), 0);
    });

    for (const [query, expected] of Object.entries(QUERIES)) {
      for (const maxItemCount of [undefined, 5]) {
        test(`${query}, ${maxItemCount ?? "any number"} of rows in a page`, async () => {
          const { resources } = await container.items.query(query, { maxItemCount }).fetchAll();
          assert.deepEqual(resources, expected);
        });
      }
    }

    test("lists and plain queries end behind a full page", async () => {
      for (const maxItemCount of [4, 5, ITEMS]) {
        const listed = await container.items.readAll({ maxItemCount }).fetchAll();
        assert.equal(listed.resources.length, ITEMS);
        const queried = await container.items.query("SELECT * FROM c", { maxItemCount }).fetchAll();
        assert.equal(queried.resources.length, ITEMS);
      }
    });
  });
}
