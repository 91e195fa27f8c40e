// The change feed through the JavaScript SDK: latest version, and all versions and deletes (T14, T28).

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { ChangeFeedMode, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom } from "@azure/cosmos";
import { Server, refused } from "./bolide.js";

const LATEST = ChangeFeedMode.LatestVersion;
const ALL = ChangeFeedMode.AllVersionsAndDeletes;

for (const partitions of ["1", "4"]) {
  describe(`${partitions} physical partition(s)`, () => {
    let server;
    let database;
    let number = 0;

    before(async () => {
      server = await Server.start("--partitions", partitions);
      database = (await server.client.databases.create({ id: "feed" })).database;
    });

    after(async () => {
      assert.equal(await server.stop(), 0);
    });

    async function make(minutes) {
      number += 1;
      const changeFeedPolicy = minutes && {
        retentionDuration: ChangeFeedRetentionTimeSpan.fromMinutes(minutes).getRetentionInMinutes(),
      };
      const definition = { id: `c${number}`, partitionKey: { paths: ["/pk"] }, defaultTtl: -1, changeFeedPolicy };
      return (await database.containers.create(definition)).container;
    }

    /** Reads until nothing is new; what there was, and where to go on. */
    async function read(container, changeFeedMode, changeFeedStartFrom) {
      const options = { maxItemCount: 3, changeFeedMode, changeFeedStartFrom };
      const iterator = container.items.getChangeFeedIterator(options);
      const found = [];
      for (;;) {
        const page = await iterator.readNext();
        if (page.statusCode === 304) return [found, page.continuationToken];
        assert.equal(page.statusCode, 200);
        found.push(...page.result);
      }
    }

    const goOn = (token) => ChangeFeedStartFrom.Continuation(token);

    function short({ current, metadata, previous }) {
      const kind = metadata.timeToLiveExpired ? "expire" : metadata.operationType;
      return [kind, (current?.id ? current : previous).id, previous?.n, current?.n];
    }

    test("latest version: from the beginning, from now, from a time, for a key", async () => {
      const container = await make();
      for (let n = 0; n < 12; n++) await container.items.create({ id: `${n}`, pk: `k${n % 4}` });
      const [nothing, now] = await read(container, LATEST, ChangeFeedStartFrom.Now());
      assert.deepEqual(nothing, []);
      await server.advance(100);
      const { resource } = await container.items.upsert({ id: "3", pk: "k3", n: 1 });
      await container.item("4", "k0").delete();
      const ids = ([items]) => items.map((item) => item.id).sort((a, b) => a - b);
      const all = ["0", "1", "2", "3", "5", "6", "7", "8", "9", "10", "11"];
      assert.deepEqual(ids(await read(container, LATEST, ChangeFeedStartFrom.Beginning())), all);
      assert.deepEqual(ids(await read(container, LATEST, goOn(now))), ["3"]);
      // The second of the start time is not included.
      const time = (second) => ChangeFeedStartFrom.Time(new Date(second * 1000));
      assert.deepEqual(ids(await read(container, LATEST, time(resource._ts - 1))), ["3"]);
      assert.deepEqual(ids(await read(container, LATEST, time(resource._ts))), []);
      assert.deepEqual(ids(await read(container, LATEST, ChangeFeedStartFrom.Beginning("k3"))), ["3", "7", "11"]);
    });

    test("T28 all versions and deletes, with an expiry as of its instant", async () => {
      const container = await make(10);
      let [nothing, position] = await read(container, ALL, ChangeFeedStartFrom.Now());
      const start = position;
      assert.deepEqual(nothing, []);
      const { resource: dying } = await container.items.create({ id: "a", pk: "p", n: 1, ttl: 50 });
      await container.items.create({ id: "b", pk: "p", n: 2 });
      await container.item("b", "p").replace({ id: "b", pk: "p", n: 3 });
      await container.item("b", "p").delete();
      await server.advance(70);
      await container.items.create({ id: "a", pk: "p", n: 4 });
      let events;
      [events, position] = await read(container, ALL, goOn(position));
      assert.deepEqual(events.map(short), [
        ["create", "a", undefined, 1],
        ["create", "b", undefined, 2],
        ["replace", "b", undefined, 3],
        ["delete", "b", 3, undefined],
        ["expire", "a", 1, undefined],
        ["create", "a", undefined, 4],
      ]);
      await server.admin("PATCH", `ttl/feed/${container.id}`, { previousImages: true });
      const asked = (await read(container, ALL, goOn(start)))[0].map(short);
      assert.deepEqual(asked[2], ["replace", "b", 2, 3]);
      assert.deepEqual(events[4].previous, dying);
      const { crts, operationType, id, partitionKey } = events[4].metadata;
      assert.deepEqual({ crts, operationType, id, partitionKey }, {
        crts: dying._ts + 50,
        operationType: "delete",
        id: "a",
        partitionKey: { pk: "p" },
      });
      assert.deepEqual((await read(container, ALL, goOn(position)))[0], []);
    });

    test("T28 of one key, from now only, and within the retention", async () => {
      const container = await make(10);
      const [, position] = await read(container, ALL, ChangeFeedStartFrom.Now("k1"));
      for (const pk of ["k1", "k2", "k1"]) await container.items.create({ pk, n: 1 });
      assert.equal((await read(container, ALL, goOn(position)))[0].length, 2);
      await server.advance(601);
      const error = await refused(400, () => read(container, ALL, goOn(position)));
      assert.match(error.message, /You must read the change feed from within the retention period\./);
      const none = await make();
      await refused(400, () => read(none, ALL, ChangeFeedStartFrom.Now()));
    });
  });
}
