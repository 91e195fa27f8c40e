// A Bolide process, its test clock, and the questions TTL tests ask. Nothing sleeps for a deadline: time is moved.

import { spawn } from "node:child_process";
import assert from "node:assert/strict";
import { CosmosClient } from "@azure/cosmos";

// The key every Cosmos emulator shares; Bolide accepts it while it listens on loopback only.
export const EMULATOR_KEY =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
export const DAY = 24 * 3600;
const START_TIMEOUT_MS = 20_000;

export class Server {
  constructor(child, endpoint) {
    this.child = child;
    this.endpoint = endpoint;
    this.client = new CosmosClient({ endpoint, key: EMULATOR_KEY });
  }

  static async start(...extra) {
    const binary = process.env.BOLIDE_BIN;
    assert.ok(binary, "BOLIDE_BIN must name the server binary; `cargo xtask compat js` sets it");
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("BOLIDE_")));
    const child = spawn(binary, ["serve", "--memory", "--test-clock", "--listen", "127.0.0.1:0", ...extra], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const port = await announcedPort(child);
    const server = new Server(child, `http://127.0.0.1:${port}/`);
    await server.untilReady();
    return server;
  }

  async untilReady() {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (Date.now() < deadline) {
      const answer = await fetch(this.endpoint + "ready").catch(() => undefined);
      if (answer?.status === 200) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error("the server did not become ready");
  }

  /** SIGTERM; resolves to the exit code. */
  async stop() {
    this.client.dispose();
    const exited = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    return exited;
  }

  async admin(method, path, body) {
    const answer = await fetch(this.endpoint + "_bolide/" + path, {
      method,
      headers: { authorization: "Bearer " + EMULATOR_KEY, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.status}`);
    return answer.json();
  }

  async now() {
    return (await this.admin("GET", "clock")).now;
  }

  async advance(seconds) {
    await this.admin("POST", "clock", { advanceSeconds: seconds });
  }

  /** Moves to an instant in Unix seconds, which must not lie in the past. */
  async moveTo(instant) {
    const distance = instant - (await this.now());
    assert.ok(distance >= 0, `the clock cannot go back by ${-distance} s; give the test more room`);
    if (distance > 0) await this.advance(distance);
  }
}

function announcedPort(child) {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error("the server announced no address:\n" + text)), START_TIMEOUT_MS);
    child.stdout.on("data", (chunk) => {
      text += chunk;
      const found = /https?:\/\/(?:127\.0\.0\.1|localhost):(\d+)/.exec(text);
      if (found) {
        clearTimeout(timer);
        resolve(found[1]);
      }
    });
    child.once("exit", (code) => {
      clearTimeout(timer);
      reject(new Error(`the server exited with ${code}:\n` + text));
    });
  });
}

/** Whether an item lives; every way of looking must say the same (T14). */
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
