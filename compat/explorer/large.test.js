// A container of 100,000 items beside one of ten: pages of both cost the server the same.

import { execFileSync } from "node:child_process";
import { createWriteStream, readFileSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";

import { Session } from "./browser.mjs";

const SIZES = { small: 10, large: 100_000 };
const PAGES = ["", "/timeline", "/feed", "/holds", "/settings", "/query"];
const ATTEMPTS = 5;
/** A page has up to fifty rows, the small container ten. */
const RATIO = 5;
/** A dry run adds up the counters of every instant at which items expire: 100,000 of them there, ten here. */
const DRY_RUN_RATIO = 20;
/** What the background and a busy machine add to any answer. */
const NOISE_MS = 50;

async function fill(session, name, items) {
  const folder = await mkdtemp(join(tmpdir(), "bolide-large-"));
  const file = join(folder, "items.jsonl");
  const lines = createWriteStream(file);
  for (let n = 0; n < items; n++) {
    const item = { id: `item ${n}`, pk: `p${n % 100}`, n, kind: `kind ${n % 8}`, ttl: 600 + n * 300, text: "x".repeat(200) };
    lines.write(JSON.stringify(item) + "\n");
  }
  lines.end();
  await once(lines, "close");
  const tool = ["import", "--url", session.server.endpoint, "--file", file, "--partition-key", "/pk", `shop/${name}`];
  execFileSync(process.env.BOLIDE_BIN, tool, { stdio: "pipe" });
  await rm(folder, { recursive: true });
}

/** The processor time of a process so far, which does not depend on what else the machine does; elsewhere than on Linux the time. */
function spentMs(pid) {
  if (process.platform !== "linux") return performance.now();
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  }
  return nanoseconds / 1e6;
}

describe("the explorer over a large container", () => {
  let session, page, homeOfSmall;

  before(async () => {
    session = await Session.start();
    page = session.page;
    await session.signIn();
    await fill(session, "small", SIZES.small);
    homeOfSmall = await fetched("");
    await fill(session, "large", SIZES.large);
  });

  after(async () => {
    await session.stop();
    assert.deepEqual(session.complaints, []);
  });

  /** The best of a few attempts: what the server spends between the request and the last byte. */
  async function fetched(path) {
    let best = Infinity;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const began = spentMs(session.server.child.pid);
      const answer = await page.request.get(session.url(path));
      await answer.body();
      best = Math.min(best, spentMs(session.server.child.pid) - began);
      assert.equal(answer.status(), 200);
    }
    return best;
  }

  function compare(what, small, large, ratio = RATIO) {
    console.log(`${what}: ${small.toFixed(1)} ms of ten items, ${large.toFixed(1)} ms of 100,000`);
    assert.ok(large < small * ratio + NOISE_MS, `${large} ms instead of ${small} ms`);
  }

  /** The address of the first item that the list shows. */
  async function firstItem(container) {
    await session.open(`c/nosql/shop/${container}`);
    const address = await page.locator("td.id a").first().getAttribute("href");
    return address.replace("/_explorer/", "");
  }

  for (const tab of PAGES) {
    test(`shows ${tab || "its items"} as fast as of a small one`, async () => {
      compare(tab || "items", await fetched(`c/nosql/shop/small${tab}`), await fetched(`c/nosql/shop/large${tab}`));
    });
  }

  test("shows one of its items as fast as one of a small one", async () => {
    compare("item", await fetched(await firstItem("small")), await fetched(await firstItem("large")));
  });

  test("tells what another time to live would do", async () => {
    const dryRun = (container) => fetched(`c/nosql/shop/${container}/settings/dry-run?ttl=after&amount=10&unit=minutes`);
    compare("dry run", await dryRun("small"), await dryRun("large"), DRY_RUN_RATIO);
  });

  test("does not slow down the list of databases", async () => {
    compare("databases", homeOfSmall, await fetched(""));
  });

  test("counts them all, and goes on to the next page", async () => {
    await session.open("c/nosql/shop/large");
    await page.getByText("100,000").first().waitFor();
    await page.getByRole("link", { name: /next/i }).first().click();
    await page.getByRole("row", { name: /^item 60 / }).waitFor();
  });

  test("answers a query for the last of them", async () => {
    await session.open("c/nosql/shop/large/query");
    await page.locator("textarea").first().fill("SELECT TOP 1 c.n FROM c ORDER BY c.n DESC");
    await page.getByRole("button", { name: /^Run/ }).click();
    await page.getByText("99999").first().waitFor();
  });
});
