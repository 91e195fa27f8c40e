// Containers' definitions through the JavaScript SDK: what is returned, what is refused, and geometry on a plane.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { GeospatialType, PartitionKeyKind } from "@azure/cosmos";
import { Server, refused } from "./bolide.js";

describe("definitions", () => {
  let server;
  let database;

  before(async () => {
    server = await Server.start("--partitions", "4");
    database = (await server.client.databases.create({ id: "definitions" })).database;
  });

  after(async () => {
    assert.equal(await server.stop(), 0);
  });

  test("a version that was not given is not shown, and keys are found all the same", async () => {
    for (const [id, version] of [["none", undefined], ["one", 1], ["two", 2]]) {
      const partitionKey = { paths: ["/pk"], kind: PartitionKeyKind.Hash };
      if (version !== undefined) partitionKey.version = version;
      const definition = { id, partitionKey, indexingPolicy: { indexingMode: "consistent" } };
      const { resource: created, container } = await database.containers.create(definition);
      const { resource: replaced } = await container.replace(created);
      const { resource: read } = await container.read();
      for (const shown of [created, replaced, read]) {
        assert.deepEqual(shown.partitionKey, partitionKey, id);
        assert.equal(shown.indexingPolicy.automatic, true);
      }
      // The client hashes keys by what it was shown, to find their ranges for bulk requests.
      const bulk = Array.from({ length: 40 }, (_, n) => ({
        operationType: "Create",
        partitionKey: `k${n}`,
        resourceBody: { id: `${n}`, pk: `k${n}` },
      }));
      const answers = await container.items.executeBulkOperations(bulk);
      assert.ok(answers.every(({ response }) => response?.statusCode === 201), id);
      for (let n = 0; n < 40; n++) assert.equal((await container.item(`${n}`, `k${n}`).read()).statusCode, 200);
    }
  });

  test("what the service refuses is refused in its words", async () => {
    for (const [path, position] of [["/id ds", 4], ["/a/*", 3], ["/a/", 3], ["/a.b", 2]]) {
      const definition = { id: "refused", partitionKey: { paths: [path] } };
      const error = await refused(400, () => database.containers.create(definition));
      const words = `The partition key component definition path '${path}' could not be accepted, failed near position '${position}'.`;
      assert.ok(error.message.includes(words), error.message);
    }
    const fullTextPolicy = (language) => ({ defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language }] });
    const made = { id: "text", partitionKey: { paths: ["/pk"] }, fullTextPolicy: fullTextPolicy("1033") };
    assert.deepEqual((await database.containers.create(made)).resource.fullTextPolicy, fullTextPolicy("1033"));
    await refused(400, () => database.containers.create({ ...made, id: "refused", fullTextPolicy: fullTextPolicy("1") }));
  });

  test("spatial indexes name their types and have no extent on the earth", async () => {
    const round = (id, index) => ({
      id,
      partitionKey: { paths: ["/pk"] },
      indexingPolicy: { spatialIndexes: [{ path: "/at/*", ...index }] },
    });
    await database.containers.create(round("round", { types: ["Point", "Polygon"] }));
    await refused(400, () => database.containers.create(round("refused", {})));
    const boundingBox = { xmin: 0, ymin: 0, xmax: 1, ymax: 1 };
    await refused(400, () => database.containers.create(round("refused", { types: ["Point"], boundingBox })));
  });

  test("geometry is measured on a plane, with an extent for each spatial index", async () => {
    const flat = (boundingBox) => ({
      id: "flat",
      partitionKey: { paths: ["/pk"] },
      geospatialConfig: { type: GeospatialType.Geometry },
      indexingPolicy: { spatialIndexes: [{ path: "/at/*", types: ["Point"], boundingBox }] },
    });
    await refused(400, () => database.containers.create(flat(undefined)));
    await refused(400, () => database.containers.create(flat({ xmin: 5, ymin: 0, xmax: 5, ymax: 1 })));
    const extent = { xmin: -1000, ymin: -1000, xmax: 1000, ymax: 1000 };
    const { container } = await database.containers.create(flat(extent));
    for (const [id, x, y] of [["a", 3, 4], ["b", 300, -400], ["c", 0, 0]]) {
      await container.items.create({ id, pk: id, at: { type: "Point", coordinates: [x, y] } });
    }
    const origin = "{'type':'Point','coordinates':[0,0]}";
    for (const [query, expected] of [
      [`SELECT VALUE ST_DISTANCE(c.at, ${origin}) FROM c ORDER BY c.id`, [5, 500, 0]],
      [`SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, ${origin}) < 6 ORDER BY c.id`, ["a", "c"]],
      ["SELECT VALUE COUNT(1) FROM c WHERE ST_ISVALID(c.at)", [3]],
      [`SELECT VALUE MAX(ST_DISTANCE(c.at, ${origin})) FROM c`, [500]],
    ]) {
      assert.deepEqual((await container.items.query(query).fetchAll()).resources, expected, query);
    }
  });
});
