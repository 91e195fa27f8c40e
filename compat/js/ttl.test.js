// The TTL contract through the JavaScript SDK: T2 (all nine cells), T3-T5, T9-T16, T25.

import { after, before, beforeEach, describe, test } from "node:test";
import assert from "node:assert/strict";
import { DAY, Server, alive, refused, setDefault } from "./bolide.js";

const TOO_LARGE = 2147483648;
const BAD_DEFAULTS = [0, -2, -10, 1.5, "10", TOO_LARGE, true, {}, []];
const BAD_TTLS = [0, -10, -2, null, 1.5, "x", "10", TOO_LARGE, true, {}, []];
const NO_INDEX = { indexingMode: "none", automatic: false };

let server;
let database;
let number = 0;

before(async () => {
  server = await Server.start();
  database = (await server.client.databases.create({ id: "ttl" })).database;
});

after(async () => {
  assert.equal(await server.stop(), 0);
});

async function make(defaultTtl, more = {}) {
  number += 1;
  const definition = { id: `c${number}`, partitionKey: { paths: ["/pk"] }, ...more };
  if (defaultTtl !== undefined) definition.defaultTtl = defaultTtl;
  return (await database.containers.create(definition)).container;
}

async function create(container, id, more = {}) {
  return (await container.items.create({ id, pk: "p", ...more })).resource;
}

describe("T2: the truth table", () => {
  // [default of the container, ttl of the item, seconds from _ts to expiry]
  const cells = [
    [undefined, undefined, undefined],
    [undefined, -1, undefined],
    [undefined, 100, undefined],
    [-1, undefined, undefined],
    [-1, -1, undefined],
    [-1, 100, 100],
    [200, undefined, 200],
    [200, -1, undefined],
    [200, 100, 100],
  ];
  for (const [defaultTtl, ttl, lives] of cells) {
    test(`T2 default ${defaultTtl}, ttl ${ttl}: ${lives ?? "never"}`, async () => {
      const container = await make(defaultTtl);
      const stored = await create(container, "cell", ttl === undefined ? {} : { ttl });
      assert.equal(stored.ttl, ttl);
      if (lives === undefined) {
        await server.advance(400 * DAY);
        assert.ok(await alive(container, "cell"));
      } else {
        await server.moveTo(stored._ts + lives - 10);
        assert.ok(await alive(container, "cell"));
        await server.moveTo(stored._ts + lives);
        assert.ok(!(await alive(container, "cell")));
      }
    });
  }
});

describe("T4, T5, T25: what is refused", () => {
  for (const value of BAD_DEFAULTS) {
    test(`T4 defaultTtl ${JSON.stringify(value)} is refused on create and replace`, async () => {
      await refused(400, () => database.containers.create({ id: "bad", partitionKey: "/pk", defaultTtl: value }));
      await refused(404, () => database.container("bad").read());
      const container = await make(77);
      await refused(400, () => setDefault(container, value));
      assert.equal((await container.read()).resource.defaultTtl, 77);
    });
  }

  test("T4 null means off, on create and on replace", async () => {
    const container = await make(null);
    assert.equal((await container.read()).resource.defaultTtl, undefined);
    await setDefault(container, 50);
    await setDefault(container, null);
    assert.equal((await container.read()).resource.defaultTtl, undefined);
  });

  for (const value of BAD_TTLS) {
    test(`T5 item ttl ${JSON.stringify(value)} is refused on every write`, async () => {
      const container = await make(-1);
      const bad = { id: "bad", pk: "p", ttl: value };
      const error = await refused(400, () => container.items.create(bad));
      assert.match(error.body.message, /ttl.*2147483647/s);
      await refused(400, () => container.items.upsert(bad));
      assert.equal((await container.items.readAll().fetchAll()).resources.length, 0);

      const before = await create(container, "bad", { ttl: 500 });
      await refused(400, () => container.item("bad", "p").replace(bad));
      await refused(400, () => container.item("bad", "p").patch([{ op: "set", path: "/ttl", value }]));
      assert.deepEqual((await container.item("bad", "p").read()).resource, before);
    });

    test(`T5 item ttl ${JSON.stringify(value)} fails its operation in batch and bulk`, async () => {
      const container = await make();
      const operations = [
        { operationType: "Create", resourceBody: { id: "good", pk: "p" } },
        { operationType: "Create", resourceBody: { id: "bad", pk: "p", ttl: value } },
      ];
      const batch = await container.items.batch(operations, "p");
      assert.deepEqual(batch.result.map((result) => result.statusCode), [424, 400]);
      assert.equal((await container.items.readAll().fetchAll()).resources.length, 0);

      const bulk = await container.items.executeBulkOperations(
        operations.map((operation) => ({ ...operation, partitionKey: "p" })),
      );
      assert.deepEqual(bulk.map((result) => result.response?.statusCode ?? result.error?.code), [201, 400]);
      const stored = (await container.items.readAll().fetchAll()).resources;
      assert.deepEqual(stored.map((item) => item.id), ["good"]);
    });
  }

  test("T25 a default and indexing mode none exclude each other, on create and on replace", async () => {
    for (const defaultTtl of [-1, 100]) {
      const bad = { id: "bad", partitionKey: "/pk", indexingPolicy: NO_INDEX, defaultTtl };
      await refused(400, () => database.containers.create(bad));
      const expiring = await make(defaultTtl);
      const { resource } = await expiring.read();
      await refused(400, () => expiring.replace({ ...resource, indexingPolicy: NO_INDEX }));
      const unindexed = await make(undefined, { indexingPolicy: NO_INDEX });
      await refused(400, () => setDefault(unindexed, defaultTtl));
    }
  });
});

describe("T9-T13: changes", () => {
  test("T9 every write restarts the countdown, a read does not", async () => {
    const container = await make(100);
    const item = container.item("x", "p");
    const writes = [
      () => container.items.create({ id: "x", pk: "p", n: 0 }),
      () => item.replace({ id: "x", pk: "p", n: 1 }),
      () => container.items.upsert({ id: "x", pk: "p", n: 2 }),
      () => item.patch([{ op: "incr", path: "/n", value: 1 }]),
      async () => {
        const operation = { operationType: "Upsert", resourceBody: { id: "x", pk: "p", n: 3 } };
        const { result } = await container.items.batch([operation], "p");
        return { resource: result[0].resourceBody };
      },
      async () => {
        const operation = { operationType: "Upsert", partitionKey: "p", resourceBody: { id: "x", pk: "p", n: 4 } };
        const [result] = await container.items.executeBulkOperations([operation]);
        return { resource: result.response.resourceBody };
      },
    ];
    let last = 0;
    for (const write of writes) {
      const { resource } = await write();
      assert.ok(resource._ts > last);
      last = resource._ts;
      await server.moveTo(last + 90);
      assert.ok(await alive(container, "x"));
    }
    await server.moveTo(last + 100);
    assert.ok(!(await alive(container, "x")));
  });

  test("T10 ttl is changed, removed and stopped by ordinary updates", async () => {
    const container = await make(1000);
    const item = container.item("x", "p");
    await create(container, "x", { ttl: 100 });
    let { resource } = await item.replace({ id: "x", pk: "p", ttl: 300 });
    await server.moveTo(resource._ts + 290);
    ({ resource } = await item.replace({ id: "x", pk: "p" }));
    await server.moveTo(resource._ts + 990);
    ({ resource } = await item.patch([{ op: "set", path: "/ttl", value: -1 }]));
    await server.moveTo(resource._ts + 400 * DAY);
    ({ resource } = await item.patch([{ op: "remove", path: "/ttl" }]));
    await server.moveTo(resource._ts + 1000);
    assert.ok(!(await alive(container, "x")));
  });

  test("T11 and T13 the default raised, lowered, removed, restored: re-dates at once, revives nothing", async () => {
    const container = await make(100);
    const dead = await create(container, "dead");
    await server.moveTo(dead._ts + 50);
    const young = await create(container, "young");
    await server.moveTo(dead._ts + 100);
    for (const value of [10_000, undefined, -1, 1_000_000]) {
      await setDefault(container, value);
      assert.ok(!(await alive(container, "dead")), `default ${value}`);
      assert.ok(await alive(container, "young"), `default ${value}`);
    }
    await server.moveTo(young._ts + 500);
    await setDefault(container, 400);
    assert.ok(!(await alive(container, "young")), "lowered below its age");
    await setDefault(container, 1_000_000);
    assert.ok(!(await alive(container, "young")));
  });

  test("T12 off differs from -1, and stored ttl values count again when it is restored", async () => {
    const container = await make(-1);
    const stored = await create(container, "x", { ttl: 100 });
    await setDefault(container, undefined);
    await server.moveTo(stored._ts + 500);
    assert.ok(await alive(container, "x"));
    await setDefault(container, -1);
    assert.ok(!(await alive(container, "x")));
  });
});

describe("T14-T16: what expired means", () => {
  let container;
  let item;
  let last;

  beforeEach(async () => {
    await server.admin("POST", "purge", { paused: true });
    container = await make(100);
    item = container.item("x", "p");
    last = await create(container, "x", { n: 1 });
    await server.moveTo(last._ts + 100);
  });

  test("T14 no request finds it, though it is not purged yet", async () => {
    assert.ok(!(await alive(container, "x")));
  });

  test("T15 create and upsert create, with 201", async () => {
    assert.equal((await container.items.create({ id: "x", pk: "p" })).statusCode, 201);
    await server.advance(100);
    assert.equal((await container.items.upsert({ id: "x", pk: "p" })).statusCode, 201);
  });

  test("T15 replace, patch, delete and If-Match answer 404", async () => {
    const conditions = [undefined, { accessCondition: { type: "IfMatch", condition: last._etag } },
      { accessCondition: { type: "IfMatch", condition: '"stale"' } }];
    for (const options of conditions) {
      await refused(404, () => item.replace({ id: "x", pk: "p" }, options));
      await refused(404, () => item.patch([{ op: "set", path: "/n", value: 2 }], options));
      await refused(404, () => item.delete(options));
    }
  });

  test("T15 a batch and a bulk treat it as not there", async () => {
    const read = await container.items.batch([{ operationType: "Read", id: "x" }], "p");
    assert.deepEqual(read.result.map((result) => result.statusCode), [404]);
    const bulk = await container.items.executeBulkOperations([
      { operationType: "Delete", id: "x", partitionKey: "p" },
      { operationType: "Create", resourceBody: { id: "x", pk: "p", n: 2 } , partitionKey: "p" },
    ]);
    assert.deepEqual(bulk.map((result) => result.response?.statusCode ?? result.error?.code), [404, 201]);
  });

  test("T15 its unique-key values are free at once", async () => {
    const unique = await make(100, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
    const first = await create(unique, "1", { email: "a@b" });
    await refused(409, () => unique.items.create({ id: "2", pk: "p", email: "a@b" }));
    await server.moveTo(first._ts + 100);
    await create(unique, "2", { email: "a@b" });
    await refused(409, () => unique.items.create({ id: "3", pk: "p", email: "a@b" }));
  });

  test("T16 a page fetched after a deadline does not bring expired items", async () => {
    const pages = await make(-1);
    let stored;
    for (let n = 0; n < 6; n += 1) stored = await create(pages, `${n}`, { ttl: n % 2 ? 100 : -1 });
    const iterator = pages.items.query("SELECT * FROM c", { partitionKey: "p", maxItemCount: 2 });
    const seen = (await iterator.fetchNext()).resources.map((found) => found.id);
    await server.moveTo(stored._ts + 100);
    const rest = [];
    while (iterator.hasMoreResults()) {
      rest.push(...((await iterator.fetchNext()).resources ?? []).map((found) => found.id));
    }
    assert.deepEqual(rest.sort(), ["0", "2", "4"].filter((id) => !seen.includes(id)));
  });
});
