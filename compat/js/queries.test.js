// The table of compat/queries.json through the JavaScript SDK, on one and on four physical partitions: as the SDK asks by
// default (the server answers whole), and with the two options that make it ask for a plan and merge rows itself.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Server, refused } from "./bolide.js";

const table = JSON.parse(readFileSync(new URL("../queries.json", import.meta.url), "utf8"));
const SYSTEM_PROPERTIES = new Set(["_rid", "_self", "_etag", "_attachments", "_ts"]);
const DIGITS = 9;
const PAGE = 2;
const MOST_PAGES = 100;

const WAYS = {
  whole: {},
  plan: { forceQueryPlan: true },
  control: { forceQueryPlan: true, enableQueryControl: true },
};

/** Without system properties, and with numbers as precise as every client can sum them. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "number") return Number(value.toPrecision(DIGITS));
  if (value === null || typeof value !== "object") return value;
  const members = Object.entries(value).filter(([name]) => !SYSTEM_PROPERTIES.has(name));
  return Object.fromEntries(members.sort().map(([name, inner]) => [name, plain(inner)]));
}

function assertRows(found, { rows, order }) {
  const texts = (list) => list.map((row) => JSON.stringify(plain(row)));
  const [left, right] = [texts(found), texts(rows)];
  if (order === "any") {
    left.sort();
    right.sort();
  }
  assert.deepEqual(left, right);
}

/** Why this way cannot run that query, if the table knows a reason. */
function hindrance(entry, way, partitions) {
  return entry.without?.[`js ${way}`] ?? (partitions > 1 ? entry.without?.[`js ${way}, several partitions`] : undefined);
}

async function makeShop(server) {
  const { database } = await server.client.databases.create({ id: "shop" });
  const { container } = await database.containers.create(table.container);
  for (const item of table.items) await container.items.create(item);
  return container;
}

for (const partitions of [1, 4]) {
  describe(`queries on ${partitions} partition(s)`, () => {
    let server;
    let shop;

    before(async () => {
      server = await Server.start("--partitions", String(partitions));
      shop = await makeShop(server);
    });

    after(async () => {
      assert.equal(await server.stop(), 0);
    });

    for (const [way, options] of Object.entries(WAYS)) {
      for (const entry of table.queries) {
        const skip = hindrance(entry, way, partitions);
        test(`${way}: ${entry.name}`, { skip }, async () => {
          const { resources } = await shop.items.query(entry, options).fetchAll();
          assertRows(resources, entry);
        });
        test(`${way}, page by page: ${entry.name}`, { skip }, async () => {
          const iterator = shop.items.query(entry, { ...options, maxItemCount: PAGE });
          const rows = [];
          for (let pages = 0; iterator.hasMoreResults(); pages += 1) {
            assert.ok(pages < MOST_PAGES, "the pages do not end");
            const { resources } = await iterator.fetchNext();
            assert.ok((resources ?? []).length <= PAGE, `${resources?.length} rows in a page of ${PAGE}`);
            rows.push(...(resources ?? []));
          }
          assertRows(rows, entry);
        });
      }
    }

    test("a new iterator goes on from a continuation token", async () => {
      for (const name of ["all items", "ORDER BY", "ORDER BY two keys", "JOIN", "DISTINCT VALUE", "GROUP BY"]) {
        const entry = table.queries.find((candidate) => candidate.name === name);
        assertRows(await resumed(shop, entry, {}), entry);
      }
    });

    test("a new iterator goes on from a token that the client made of several", async () => {
      for (const name of ["all items", "range", "JOIN", "EXISTS"]) {
        const entry = table.queries.find((candidate) => candidate.name === name);
        assertRows(await resumed(shop, entry, { enableQueryControl: true, forceQueryPlan: true }), entry);
      }
    });

    test("a bad query is refused, planned or not", async () => {
      for (const options of Object.values(WAYS)) {
        const error = await refused(400, () => shop.items.query("SELECT * FRM c", options).fetchAll());
        assert.match(JSON.stringify(error.body ?? error.message), /SC1001/);
      }
    });

    test("index metrics and query metrics", async () => {
      const asked = { populateIndexMetrics: true, populateQueryMetrics: true };
      const answer = await shop.items.query("SELECT * FROM c WHERE c.stock = 40", asked).fetchNext();
      assert.equal(answer.resources.length, 1);
      assert.match(JSON.stringify(answer.indexMetrics), /stock/);
      assert.match(JSON.stringify(answer.queryMetrics ?? answer.headers), /retrievedDocumentCount/);
    });
  });
}

/** All rows, with a new iterator for every page. */
async function resumed(shop, entry, options) {
  const rows = [];
  let continuationToken;
  for (let pages = 0; pages === 0 || continuationToken; pages += 1) {
    assert.ok(pages < MOST_PAGES, "the pages do not end");
    const iterator = shop.items.query(entry, { ...options, maxItemCount: PAGE, continuationToken });
    const answer = await iterator.fetchNext();
    rows.push(...(answer.resources ?? []));
    continuationToken = answer.continuationToken;
  }
  return rows;
}
