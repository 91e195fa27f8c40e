// Session tokens and LSNs through the JavaScript SDK: each range counts its own commits (decision 0027).

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { ConsistencyLevel, CosmosClient } from "@azure/cosmos";
import { EMULATOR_KEY } from "../server.mjs";
import { Server, refused } from "./bolide.js";

const TOKEN = "x-ms-session-token";
// The headers with the position of the range, and those of the item's last write.
const OF_RANGE = [
  "lsn",
  "x-ms-cosmos-llsn",
  "x-ms-quorum-acked-lsn",
  "x-ms-cosmos-quorum-acked-llsn",
  "x-ms-global-committed-lsn",
];
const OF_ITEM = ["x-ms-item-lsn", "x-ms-cosmos-item-llsn"];
// How many more writes each of the four ranges gets.
const COUNTS = [1, 5, 20, 60];

/** The range and the LSN that an answer shows, equal in all headers. */
function shown({ headers }) {
  const [range, lsn] = headers[TOKEN].split(":-1#");
  for (const name of OF_RANGE) assert.equal(headers[name], lsn, name);
  return [Number(range), Number(lsn)];
}

function itemLsn({ headers }) {
  const [lsn, other] = OF_ITEM.map((name) => Number(headers[name]));
  assert.equal(lsn, other);
  return lsn;
}

describe("sessions over four ranges", () => {
  let server;
  let client;
  let database;
  let number = 0;

  const account = () => ({
    endpoint: server.endpoint,
    key: EMULATOR_KEY,
    consistencyLevel: ConsistencyLevel.Session,
  });

  before(async () => {
    server = await Server.start("--partitions", "4");
    client = new CosmosClient(account());
    database = (await client.databases.create({ id: "sessions" })).database;
  });

  after(async () => {
    client.dispose();
    assert.equal(await server.stop(), 0);
  });

  /** The container of the test, one to which others write, and a partition key of each of its four ranges. */
  async function containers() {
    number += 1;
    const make = async (name) =>
      (await database.containers.create({ id: `${name}${number}`, partitionKey: { paths: ["/pk"] } })).container;
    const [mine, other] = [await make("mine"), await make("other")];
    const keys = [];
    for (let n = 0; n < 200 && Object.keys(keys).length < 4; n += 1) {
      const [range] = shown(await mine.items.upsert({ id: "first", pk: `k${n}` }));
      keys[range] ??= `k${n}`;
    }
    assert.equal(Object.keys(keys).length, 4, "a key of each range");
    return { mine, other, keys };
  }

  test("a session reads what it wrote, and every token is accepted", async () => {
    const { mine, other, keys } = await containers();
    const tokens = [];
    for (const [range, key] of keys.entries()) {
      const [, begun] = shown(await mine.item("first", key).read());
      for (let n = 1; n <= COUNTS[range]; n += 1) {
        await other.items.upsert({ id: "x", pk: "x" });
        const written = await mine.items.upsert({ id: `${n}`, pk: key });
        assert.deepEqual(shown(written), [range, begun + n], "own and foreign writes in turn");
      }
      tokens.push(`${range}:-1#${begun + COUNTS[range]}`);
    }
    // The client sends what it has seen of each range with each of these.
    for (const [range, key] of keys.entries()) {
      assert.equal((await mine.item(`${COUNTS[range]}`, key).read()).resource.pk, key);
      const missing = await mine.item("none", key).read();
      assert.deepEqual([missing.statusCode, missing.substatus ?? 0], [404, 0]);
      const query = "SELECT VALUE c.id FROM c WHERE c.id != 'first'";
      const { resources } = await mine.items.query(query, { partitionKey: key }).fetchAll();
      assert.equal(resources.length, COUNTS[range]);
      for (const sessionToken of [...tokens, tokens.join(",")]) {
        assert.equal((await mine.item("first", key).read({ sessionToken })).statusCode, 200);
        const options = { partitionKey: key, sessionToken };
        assert.ok((await mine.items.query("SELECT * FROM c", options).fetchAll()).resources.length > 0);
      }
    }
    const written = COUNTS.reduce((one, more) => one + more);
    const { resources } = await mine.items.query("SELECT VALUE c.id FROM c", { forceQueryPlan: true }).fetchAll();
    assert.ok(resources.length > written);
    // The same number is in the future of a range with fewer writes. By default the client asks again without a token; the one
    // that does not look for other endpoints shows the answer.
    const direct = new CosmosClient({ ...account(), connectionPolicy: { enableEndpointDiscovery: false } });
    const ahead = direct.database("sessions").container(mine.id);
    const sessionToken = `0:-1#${tokens[3].split("#")[1]}`;
    const read = await ahead.item("first", keys[0]).read({ sessionToken });
    assert.deepEqual([read.statusCode, read.substatus], [404, 1002]);
    const options = { partitionKey: keys[0], sessionToken };
    const error = await refused(404, () => ahead.items.query("SELECT * FROM c", options).fetchAll());
    assert.equal(error.substatus, 1002);
    direct.dispose();
  });

  test("a point read shows the LSN of the item's last write, and those of its range", async () => {
    const { mine, other, keys } = await containers();
    const pk = keys[1];
    const made = await mine.items.upsert({ id: "early", pk });
    const [range, written] = shown(made);
    assert.equal(itemLsn(made), written);
    for (let n = 0; n < 5; n += 1) {
      await mine.items.upsert({ id: `${n}`, pk });
      await other.items.upsert({ id: `${n}`, pk });
    }
    for (const [id, lsn] of [["early", written], ["4", written + 5]]) {
      const read = await mine.item(id, pk).read();
      assert.deepEqual([shown(read), itemLsn(read)], [[range, written + 5], lsn], "of the range alone");
    }
    await mine.item("early", pk).replace({ id: "early", pk, n: 1 });
    const read = await mine.item("early", pk).read();
    assert.deepEqual([shown(read), itemLsn(read)], [[range, written + 6], written + 6]);
  });
});
