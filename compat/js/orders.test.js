// Orders with 30 and 90 days: every step checked with the clock moved.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { DAY, Server } from "./bolide.js";

const CUSTOMER = "CO18009186470";

let server;
let orders;

before(async () => {
  server = await Server.start();
  const { database } = await server.client.databases.create({ id: "shop" });
  ({ container: orders } = await database.containers.create({
    id: "orders",
    partitionKey: { paths: ["/customerId"] },
    defaultTtl: -1,
    throughput: 20000,
  }));
});

after(async () => {
  assert.equal(await server.stop(), 0);
});

const order = () => orders.item("SO05", CUSTOMER);
const status = async () => (await order().read()).statusCode;

test("orders: own ttl, changed, removed; default set and removed", async () => {
  const offer = await orders.readOffer();
  assert.equal(offer.resource.content.offerThroughput, 20000);

  // 30 days of its own.
  let { resource } = await orders.items.create({ id: "SO05", customerId: CUSTOMER, value: 100, ttl: 30 * DAY });
  await server.moveTo(resource._ts + 30 * DAY - 60);
  assert.equal(await status(), 200);
  await server.moveTo(resource._ts + 30 * DAY);
  assert.equal(await status(), 404);

  // Read, change its ttl, replace.
  await orders.items.create({ id: "SO05", customerId: CUSTOMER, value: 100, ttl: 30 * DAY });
  await server.advance(10 * DAY);
  ({ resource } = await order().read());
  resource.ttl = 60 * 30 * 30;
  ({ resource } = await order().replace(resource));
  await server.moveTo(resource._ts + 60 * 30 * 30 - 60);
  assert.equal(await status(), 200);
  await server.moveTo(resource._ts + 60 * 30 * 30);
  assert.equal(await status(), 404);
  ({ resource } = await orders.items.create({ id: "SO05", customerId: CUSTOMER, value: 100, ttl: 60 * 30 * 30 }));

  // Remove its ttl, replace: the default -1 applies, it stays.
  ({ resource } = await order().read());
  delete resource.ttl;
  ({ resource } = await order().replace(resource));
  await server.moveTo(resource._ts + 400 * DAY);
  assert.equal(await status(), 200);

  // 90 days by default: this one is older and expires at once; a new one gets its 90 days.
  const definition = { id: "orders", partitionKey: { paths: ["/customerId"] } };
  await orders.replace({ ...definition, defaultTtl: 90 * DAY });
  assert.equal(await status(), 404);
  ({ resource } = await orders.items.create({ id: "SO05", customerId: CUSTOMER, value: 100 }));
  await server.moveTo(resource._ts + 90 * DAY - 60);
  assert.equal(await status(), 200);
  await server.moveTo(resource._ts + 90 * DAY);
  assert.equal(await status(), 404);

  // No default: nothing expires any more, own ttl or not, and no expired item returns.
  await orders.replace(definition);
  assert.equal((await orders.read()).resource.defaultTtl, undefined);
  assert.equal(await status(), 404);
  await orders.items.create({ id: "SO05", customerId: CUSTOMER, value: 100, ttl: 5 });
  await server.advance(400 * DAY);
  assert.equal((await order().read()).resource.ttl, 5);
});
