// A Bolide process with its MongoDB port, and the checks of TTL tests.

import { join } from "node:path";
import assert from "node:assert/strict";
import { MongoClient } from "mongodb";
import { DAY, EMULATOR_KEY, Process, START_TIMEOUT_MS } from "../../server.mjs";

export { DAY, EMULATOR_KEY };
export const USER = "bolide";

export class Server extends Process {
  get certificate() {
    return join(this.folder, "tls", "root.pem");
  }

  /** As the driver's own documentation writes it. */
  uri(options = "") {
    return `mongodb://${this.mongo}/?replicaSet=globaldb${options}`;
  }

  /** As Cosmos DB's portal prints it, but for the percent signs that Node's parser asks for around the name. */
  cosmosUri({ tls = false } = {}) {
    const secure = tls ? "ssl=true&" : "";
    const options = `${secure}replicaSet=globaldb&retrywrites=false&maxIdleTimeMS=120000&appName=%40${USER}%40`;
    return `mongodb://${USER}:${encodeURIComponent(EMULATOR_KEY)}@${this.mongo}/?${options}`;
  }

  client(options = {}) {
    return new MongoClient(this.uri(), { serverSelectionTimeoutMS: START_TIMEOUT_MS, ...options });
  }
}

/** The identifiers of live documents, in order; every way of reading must agree (T14). */
export async function living(collection) {
  const found = await collection.find({}, { projection: { _id: 1 } }).sort({ _id: 1 }).toArray();
  const ids = found.map((document) => document._id);
  const ways = {
    counted: await collection.countDocuments(),
    estimated: await collection.estimatedDocumentCount(),
    distinct: await collection.distinct("_id"),
    aggregated: (await collection.aggregate([{ $sort: { _id: 1 } }]).toArray()).map((document) => document._id),
    single: (await Promise.all(ids.map((_id) => collection.findOne({ _id })))).filter(Boolean).length,
  };
  assert.deepEqual(ways, {
    counted: ids.length,
    estimated: ids.length,
    distinct: ids,
    aggregated: ids,
    single: ids.length,
  });
  return ids;
}

/** Runs `call`, which must fail with that code of the server. */
export async function refused(code, call) {
  const error = await call().then(
    (answer) => assert.fail(`expected ${code}, got ${JSON.stringify(answer)}`),
    (error) => error,
  );
  assert.equal(error.code, code, String(error));
  return error;
}
