// One server for all tests of a file, and for each test an unused collection.

import { after, before, beforeEach } from "node:test";
import assert from "node:assert/strict";
import { Server } from "./bolide.js";

export let server;
export let client;
export let database;
export let collection;
/** Of the test in its file: for names that no other test has. */
export let number = 0;

/** Says so for the file that calls it: `name` is that of its database. */
export function serveTests(name, options) {
  before(async () => {
    server = await Server.start(options);
    client = await server.client().connect();
    database = client.db(name);
  });

  after(async () => {
    await client.close();
    assert.equal(await server.stop(), 0);
  });

  beforeEach(() => {
    number += 1;
    collection = database.collection(`c${number}`);
  });
}
