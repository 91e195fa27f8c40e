// Charges, offers, and requests beyond a provisioned throughput. Budgets run on real time; only the SDK waits.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { CosmosClient } from "@azure/cosmos";
import { EMULATOR_KEY } from "../server.mjs";
import { Server, refused } from "./bolide.js";

// Of an item that costs 50 units or more to write.
const LARGE = "x".repeat(100_000);

let server;

before(async () => {
  server = await Server.start("--enforce-throughput");
});

after(async () => {
  assert.equal(await server.stop(), 0);
});

async function make(client, id, throughput) {
  const { database } = await client.databases.create({ id });
  return (await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] }, throughput })).container;
}

test("every operation tells its charge", async () => {
  const container = await make(server.client, "charges", 4000);
  const created = await container.items.create({ id: "1", pk: "p", a: 1 });
  assert.ok(created.requestCharge > 5 && created.requestCharge < 6, created.requestCharge);
  assert.equal((await container.item("1", "p").read()).requestCharge, 1);
  assert.equal((await container.item("1", "p").replace({ id: "1", pk: "p", a: 2 })).requestCharge, 10.2);
  const page = await container.items.query("SELECT * FROM c", { partitionKey: "p" }).fetchNext();
  assert.ok(page.requestCharge > 2.19, page.requestCharge);
  assert.equal((await container.item("1", "p").delete()).requestCharge, created.requestCharge);
  assert.equal((await container.item("1", "p").read()).requestCharge, 1);
});

test("an offer is replaced; its kind only by a header", async () => {
  const container = await make(server.client, "offers", 400);
  const { offer, resource } = await container.readOffer();
  resource.content.offerThroughput = 1500;
  await offer.replace(resource);
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 1500);
  resource.content.offerAutopilotSettings = { maxThroughput: 4000 };
  await refused(400, () => offer.replace(resource));
  await offer.replace(resource, {
    initialHeaders: { "x-ms-cosmos-migrate-offer-to-autopilot": "true" },
  });
  assert.equal((await container.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 4000);
});

test("beyond the throughput a request is refused with the time to wait", async () => {
  const client = new CosmosClient({
    endpoint: server.endpoint,
    key: EMULATOR_KEY,
    connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } },
  });
  const container = await make(client, "refused", 400);
  const attempts = Array.from({ length: 30 }, (_, n) => container.items.create({ id: `${n}`, pk: "p", fill: LARGE }));
  const outcomes = await Promise.allSettled(attempts);
  const refusal = outcomes.find((outcome) => outcome.status === "rejected")?.reason;
  assert.equal(refusal?.code, 429);
  assert.equal(refusal.substatus, 3200);
  const wait = Number(refusal.headers["x-ms-retry-after-ms"]);
  assert.ok(wait > 0 && wait <= 10_000, refusal.headers["x-ms-retry-after-ms"]);
  client.dispose();
});

test("the SDK waits as told and succeeds", async () => {
  const container = await make(server.client, "waits", 400);
  for (let n = 0; n < 25; n++) await container.items.create({ id: `${n}`, pk: "p", fill: LARGE });
  const { resources } = await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
  assert.deepEqual(resources, [25]);
});
