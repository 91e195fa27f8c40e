// `x-ms-request-duration-ms` on every answer, errors too: decimal milliseconds.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { ChangeFeedMode, ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";
import { Server, refused } from "./bolide.js";

const NAME = "x-ms-request-duration-ms";
const DURATION = /^\d+\.\d{3}$/;
const WRONG_KEY = "d3JvbmcgYW5kIGxvbmcgZW5vdWdoIHRvIGJlIGEga2V5";

for (const partitions of ["1", "4"]) {
  describe(`durations on ${partitions} physical partition(s)`, () => {
    let server;
    let database;
    let container;

    before(async () => {
      server = await Server.start("--partitions", partitions);
      database = (await server.client.databases.create({ id: "durations" })).database;
      container = (await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } })).container;
    });

    after(async () => {
      assert.equal(await server.stop(), 0);
    });

    test("every answer says how long it took", async () => {
      const item = () => container.item("1", "p");
      const feed = { changeFeedMode: ChangeFeedMode.LatestVersion, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() };
      for (const ask of [
        () => container.items.create({ id: "1", pk: "p" }),
        () => item().read(),
        () => container.items.upsert({ id: "1", pk: "p", n: 1 }),
        () => item().replace({ id: "1", pk: "p", n: 2 }),
        () => item().patch([{ op: "incr", path: "/n", value: 1 }]),
        () => container.items.batch([{ operationType: "Read", id: "1" }], "p"),
        () => container.items.query("SELECT * FROM c", { partitionKey: "p" }).fetchNext(),
        () => container.items.query("SELECT * FROM c").fetchNext(),
        () => container.items.readAll().fetchNext(),
        () => container.items.getChangeFeedIterator(feed).readNext(),
        () => container.read(),
        () => database.containers.readAll().fetchNext(),
        () => database.containers.create({ id: "other", partitionKey: { paths: ["/pk"] } }),
        () => item().delete(),
        () => database.container("other").delete(),
      ]) {
        assert.match(String((await ask()).headers[NAME]), DURATION, String(ask));
      }
    });

    test("every error says how long it took", async () => {
      await container.items.create({ id: "2", pk: "p" });
      const stale = { accessCondition: { type: "IfMatch", condition: '"stale"' } };
      for (const [status, ask] of [
        [400, () => container.items.create({ id: "3", pk: "p", ttl: 0 })],
        [400, () => container.items.query("SELECT * FRM c", { partitionKey: "p" }).fetchNext()],
        [404, () => database.container("none").read()],
        [404, () => container.item("none", "p").delete()],
        [409, () => container.items.create({ id: "2", pk: "p" })],
        [412, () => container.item("2", "p").replace({ id: "2", pk: "p" }, stale)],
      ]) {
        assert.match(String((await refused(status, ask)).headers[NAME]), DURATION, `${status}: ${ask}`);
      }
      assert.match((await container.item("none", "p").read()).headers[NAME], DURATION);
      const stranger = new CosmosClient({ endpoint: server.endpoint, key: WRONG_KEY });
      const error = await refused(401, () => stranger.database("durations").read());
      assert.match(String(error.headers[NAME]), DURATION);
      stranger.dispose();
    });
  });
}
