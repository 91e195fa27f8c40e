// A Bolide process with an account client for it, and the checks of TTL tests.

import assert from "node:assert/strict";
import { CosmosClient } from "@azure/cosmos";
import { DAY, EMULATOR_KEY, Process } from "../server.mjs";

export { DAY };

export class Server extends Process {
  constructor(...made) {
    super(...made);
    this.client = new CosmosClient({ endpoint: this.endpoint, key: EMULATOR_KEY });
  }

  static async start(...extra) {
    return super.start({ extra });
  }

  async stop() {
    this.client.dispose();
    return super.stop();
  }
}

/** Whether an item is live; every way of reading must agree (T14). */
export async function alive(container, id, pk = "p") {
  const read = (await container.item(id, pk).read()).statusCode === 200;
  const listed = (await container.items.readAll().fetchAll()).resources.some((item) => item.id === id);
  const query = { query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: id }] };
  const queried = (await container.items.query(query, { partitionKey: pk }).fetchAll()).resources.length > 0;
  const planned = (await container.items.query(query, { forceQueryPlan: true }).fetchAll()).resources.length > 0;
  assert.deepEqual({ listed, queried, planned }, { listed: read, queried: read, planned: read });
  return read;
}

/** Runs `call`, which must be refused with that status. */
export async function refused(status, call) {
  const error = await call().then(
    (answer) => assert.fail(`expected ${status}, got ${answer?.statusCode ?? "success"}`),
    (error) => error,
  );
  assert.equal(error.code, status, error.message ?? String(error));
  return error;
}

/** Replaces the container's definition with another default TTL; undefined removes it. */
export async function setDefault(container, defaultTtl) {
  const { resource } = await container.read();
  const { id, partitionKey, indexingPolicy } = resource;
  const definition = { id, partitionKey, indexingPolicy };
  if (defaultTtl !== undefined) definition.defaultTtl = defaultTtl;
  return container.replace(definition);
}
