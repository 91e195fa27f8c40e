// Continuation tokens through the JavaScript SDK: an ORDER BY over several ranges goes on from a saved token. With a plan
// the SDK puts a filter into each range's query and sends the token that the range gave for the page before.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { Server, refused } from "./bolide.js";

const ITEMS = 30;
const MOST_PAGES = 100;
const CONTROL = { forceQueryPlan: true, enableQueryControl: true };

for (const partitions of [1, 4]) {
  describe(`saved tokens on ${partitions} partition(s)`, () => {
    let server;
    let container;

    before(async () => {
      server = await Server.start("--partitions", String(partitions));
      const { database } = await server.client.databases.create({ id: "tokens" });
      const definition = { id: "c", partitionKey: { paths: ["/pk"] }, defaultTtl: -1 };
      ({ container } = await database.containers.create(definition));
      for (let n = 0; n < ITEMS; n += 1) {
        const more = n % 5 === 4 ? { ttl: 100 } : {};
        await container.items.create({ id: `${n}`, pk: `p${n % 9}`, n, g: n % 3, s: `s${n % 4}`, ...more });
      }
    });

    after(async () => {
      assert.equal(await server.stop(), 0);
    });

    /** All rows, a new iterator for each page; `between` may do something before each of them. */
    async function saved(query, options, between = async () => {}) {
      const rows = [];
      let continuationToken;
      for (let pages = 0; pages === 0 || continuationToken; pages += 1) {
        assert.ok(pages < MOST_PAGES, "the pages do not end");
        await between(pages);
        const text = typeof query === "function" ? query(pages) : query;
        const iterator = container.items.query(text, { ...options, maxItemCount: 4, continuationToken });
        const answer = await iterator.fetchNext();
        rows.push(...(answer.resources ?? []));
        // Behind a window that is full the SDK still hands out a token.
        continuationToken = iterator.hasMoreResults() ? answer.continuationToken : undefined;
      }
      return rows;
    }

    for (const order of ["c.n", "c.n DESC", "c.s", "c.g DESC"]) {
      test(`ORDER BY ${order}, merged by the client`, async () => {
        const query = `SELECT c.id, c.n FROM c WHERE c.n >= 0 ORDER BY ${order}`;
        const whole = (await container.items.query(query).fetchAll()).resources;
        assert.equal(whole.length, ITEMS);
        const rows = await saved(query, CONTROL);
        const ids = (list) => list.map((row) => row.id);
        // Ties have no order among ranges.
        if (order.startsWith("c.n")) assert.deepEqual(rows, whole);
        assert.deepEqual(ids(rows).sort(), ids(whole).sort());
      });
    }

    for (const query of [
      "SELECT TOP 11 c.id, c.n FROM c ORDER BY c.n",
      "SELECT c.id, c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 11",
      "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.id",
    ]) {
      test(`${query}, merged by the client`, async () => {
        const whole = (await container.items.query(query).fetchAll()).resources;
        assert.deepEqual(await saved(query, CONTROL), whole);
      });
    }

    test("the filter changes between two pages", async () => {
      const query = (page) => `SELECT VALUE c.n FROM c WHERE c.n > ${page - 1} ORDER BY c.n`;
      const rows = await saved(query, {});
      assert.deepEqual(rows, Array.from({ length: ITEMS }, (_, n) => n));
    });

    test("a cut or changed token is refused", async () => {
      for (const query of ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n", "SELECT DISTINCT VALUE c.n FROM c"]) {
        const first = await container.items.query(query, { maxItemCount: 4 }).fetchNext();
        const token = first.continuationToken;
        const changed = token.slice(0, 20) + (token[20] === "A" ? "B" : "A") + token.slice(21);
        for (const continuationToken of [token.slice(0, -8), token.slice(0, -1), changed]) {
          const iterator = container.items.query(query, { maxItemCount: 4, continuationToken });
          const error = await refused(400, () => iterator.fetchNext());
          assert.match(error.message, /Invalid Continuation Token/);
        }
      }
    });

    // The last: it lets items expire.
    test("T14, T16: nothing comes from a saved token that has expired since", async () => {
      const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
      const rows = await saved(query, CONTROL, async (page) => {
        if (page === 2) await server.advance(100);
      });
      const expired = (n) => n % 5 === 4;
      assert.deepEqual(rows.filter((n) => !expired(n)), [...Array(ITEMS).keys()].filter((n) => !expired(n)));
      assert.ok(rows.filter(expired).every((n) => n < 8), `${rows}`);
    });
  });
}
