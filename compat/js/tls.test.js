// TLS with a client that trusts one root and nothing else: with --use-openssl-ca Node takes its roots from OpenSSL's files and not
// from its own list, which NODE_EXTRA_CA_CERTS would only add to. That is decided when a process starts, so the client is one.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import assert from "node:assert/strict";
import { EMULATOR_KEY, Process } from "../server.mjs";

const CLIENT = `
  import { CosmosClient } from "@azure/cosmos";
  const [endpoint, key] = process.argv.slice(1);
  const client = new CosmosClient({ endpoint, key, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
  const { database } = await client.databases.createIfNotExists({ id: "tls" });
  const { container } = await database.containers.createIfNotExists({ id: "c", partitionKey: "/pk", defaultTtl: 60 });
  await container.items.upsert({ id: "1", pk: "p" });
  const { resource } = await container.item("1", "p").read();
  const account = await client.getDatabaseAccount();
  console.log(JSON.stringify({ id: resource.id, endpoint: account.resource.writableLocations[0].databaseAccountEndpoint }));
  client.dispose();
`;

/** Runs the client against an endpoint, trusting that file alone. */
function client(endpoint, trusted) {
  const env = { ...process.env, SSL_CERT_FILE: trusted, SSL_CERT_DIR: "/nonexistent" };
  delete env.NODE_EXTRA_CA_CERTS;
  const run = ["--use-openssl-ca", "--input-type=module", "--eval", CLIENT, endpoint, EMULATOR_KEY];
  return spawnSync(process.execPath, run, { cwd: import.meta.dirname, env, encoding: "utf8", timeout: 60_000 });
}

test("the SDK connects by TLS when it trusts our root, and only then", async () => {
  const server = await Process.start({ onDisk: true, extra: ["--tls-name", "db.example.org"] });
  const other = await Process.start({ onDisk: true });
  try {
    const port = new URL(server.endpoint).port;
    const [root, anotherRoot] = [server, other].map(({ folder }) => join(folder, "tls", "root.pem"));
    for (const host of ["localhost", "127.0.0.1"]) {
      const endpoint = `https://${host}:${port}/`;
      const trusting = client(endpoint, root);
      assert.equal(trusting.status, 0, trusting.stderr);
      assert.deepEqual(JSON.parse(trusting.stdout), { id: "1", endpoint }, "the account echoes https");
    }
    const stranger = client(`https://localhost:${port}/`, anotherRoot);
    assert.notEqual(stranger.status, 0);
    assert.match(stranger.stderr, /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY|self-signed certificate|unable to verify/);
    const downloaded = await fetch(server.endpoint + "_explorer/emulator.pem");
    assert.equal(downloaded.status, 200);
    assert.match(await downloaded.text(), /^-----BEGIN CERTIFICATE-----/);
  } finally {
    assert.equal(await server.stop(), 0);
    assert.equal(await other.stop(), 0);
  }
});
