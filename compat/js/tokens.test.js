// Continuation tokens through the JavaScript SDK: an ORDER BY over several ranges goes on from a saved token. With a plan
// the SDK puts a filter into each range's query and sends the token that the range gave for the page before.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { ChangeFeedMode, ChangeFeedStartFrom } from "@azure/cosmos";
import { Server, refused } from "./bolide.js";

const ITEMS = 30;
const MOST_PAGES = 100;
const CONTROL = { forceQueryPlan: true, enableQueryControl: true };

/** The token cut, and with one character changed. */
function damaged(token) {
  const middle = Math.floor(token.length / 2);
  const changed = token.slice(0, middle) + (token[middle] === "A" ? "B" : "A") + token.slice(middle + 1);
  return [token.slice(0, -8), token.slice(0, -1), changed];
}

async function refuse(call) {
  assert.match((await refused(400, call)).message, /Invalid Continuation Token/);
}

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
        // After a full window the SDK still returns a token.
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
        for (const continuationToken of damaged(first.continuationToken)) {
          await refuse(() => container.items.query(query, { maxItemCount: 4, continuationToken }).fetchNext());
        }
      }
    });

    /** One page of a query of one partition key, or of all, behind a token. */
    const page = (query, partitionKey, continuationToken, within = container) =>
      within.items.query(query, { partitionKey, maxItemCount: 2, continuationToken }).fetchNext();

    test("a token is of its order, its partition key and its container", async () => {
      const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
      const { database } = await server.client.databases.createIfNotExists({ id: "tokens" });
      const { container: other } = await database.containers.create({ id: "other", partitionKey: { paths: ["/pk"] } });
      await other.items.create({ id: "1", pk: "p1", n: 1 });
      for (const key of ["p1", undefined]) {
        const token = (await page(query, key)).continuationToken;
        for (const order of ["c.n DESC", "c.g", "c.n, c.g"]) {
          await refuse(() => page(query.replace("ORDER BY c.n", `ORDER BY ${order}`), key, token));
        }
        await refuse(() => page(query, "p2", token));
        if (key !== undefined) await refuse(() => page(query, undefined, token));
        await refuse(() => page(query, key, token, other));
      }
      await other.delete();
    });

    test("of a query without an order only the layout may change", async () => {
      for (const [query, same, changed] of [
        ["SELECT VALUE c.n FROM c WHERE c.n > 1", "select value c.n\nfrom c where ((c.n > 1))", "SELECT VALUE c.n FROM c WHERE c.n > 2"],
        ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c -- a comment", "SELECT VALUE c.n FROM c WHERE true"],
        ["SELECT TOP 20 VALUE c.n FROM c ORDER BY c.n", "select top 20 value c.n from c order by c.n asc", "SELECT TOP 20 VALUE c.n FROM c WHERE true ORDER BY c.n"],
        ["SELECT DISTINCT VALUE c.n FROM c", "SELECT  DISTINCT VALUE c.n FROM c", "SELECT DISTINCT VALUE c.n FROM c WHERE true"],
      ]) {
        const token = (await page(query, "p1")).continuationToken;
        const expected = (await page(query, "p1", token)).resources;
        assert.ok(expected.length > 0, query);
        assert.deepEqual((await page(same, "p1", token)).resources, expected, same);
        await refuse(() => page(changed, "p1", token));
      }
      const asked = (value) => ({ query: "SELECT VALUE c.n FROM c WHERE c.n >= @n", parameters: [{ name: "@n", value }] });
      const token = (await page(asked(0), "p1")).continuationToken;
      assert.equal((await page(asked(0), "p1", token)).resources.length, 2);
      await refuse(() => page(asked(1), "p1", token));
    });

    test("a cut or changed token of a list is refused", async () => {
      const { database } = await server.client.databases.createIfNotExists({ id: "lists" });
      for (const id of ["a", "b", "c"]) await database.containers.create({ id, partitionKey: { paths: ["/pk"] } });
      await server.client.databases.createIfNotExists({ id: "more" });
      for (const list of [database.containers, container.items, server.client.databases]) {
        const first = await list.readAll({ maxItemCount: 1 }).fetchNext();
        assert.equal(first.resources.length, 1);
        for (const continuationToken of damaged(first.continuationToken)) {
          await refuse(() => list.readAll({ maxItemCount: 1, continuationToken }).fetchNext());
        }
      }
      await database.delete();
    });

    test("a cut or changed token of the change feed is refused", async () => {
      const read = (changeFeedStartFrom) => {
        const options = { changeFeedMode: ChangeFeedMode.LatestVersion, changeFeedStartFrom };
        return container.items.getChangeFeedIterator(options).readNext();
      };
      const { continuationToken } = await read(ChangeFeedStartFrom.Now("p1"));
      // The server's token is within the client's own.
      const outer = JSON.parse(continuationToken);
      const given = outer.Continuation;
      assert.equal((await read(ChangeFeedStartFrom.Continuation(continuationToken))).statusCode, 304);
      for (const changed of damaged(given.replaceAll('"', ""))) {
        const token = JSON.stringify({ ...outer, Continuation: `"${changed}"` });
        await refuse(() => read(ChangeFeedStartFrom.Continuation(token)));
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
