// The looks of the explorer, in light and in dark, with realistic data. The pictures are artefacts for people; with
// BOLIDE_PICTURE=1 the README's picture is taken again.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { copyFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Session } from "./browser.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));

/** Items whose expiries make a picture: written in waves, so that they expire in waves. */
async function fill(session) {
  const { page, server } = session;
  await session.createContainer({ name: "sessions", seconds: 3600 });
  await session.createContainer({ name: "orders", seconds: 86400 * 30 });
  await session.createContainer({ api: "MongoDB collection", database: "app", name: "audit", seconds: 86400 * 7 });
  await session.open("keys");
  const csrf = await page.locator("input[name=csrf]").first().inputValue();
  const cities = ["Lisbon", "Oslo", "Graz", "Porto", "Turin", "Ghent"];
  const put = (path, item) =>
    page.evaluate(([path, csrf, text]) => fetch(path, { method: "POST", body: new URLSearchParams({ csrf, text }) }), [path, csrf, JSON.stringify(item)]);
  for (let wave = 0; wave < 30; wave += 1) {
    const many = Math.round(4 + 18 * Math.sin(wave / 5) ** 2);
    for (let number = 0; number < many; number += 1) {
      await put("/_explorer/c/nosql/shop/sessions/new", { id: `s-${wave}-${number}`, pk: `user-${number % 7}`, city: cities[(wave + number) % 6], cart: { total: (wave * number) % 97 } });
    }
    await put("/_explorer/c/nosql/shop/orders/new", { id: `o-${wave}`, pk: "eu", total: wave * 3.5, ttl: 86400 * (1 + wave) });
    await put("/_explorer/c/mongodb/app/audit/new", { event: "login", user: `user-${wave % 5}` });
    await server.advance(100);
  }
}

for (const scheme of ["light", "dark"]) {
  describe(`in ${scheme}`, () => {
    let session;

    before(async () => {
      session = await Session.start(scheme);
      await session.open("");
      await session.picture(`${scheme}-sign-in`);
      await session.signIn();
      await fill(session);
    });

    after(async () => {
      await session.stop();
      assert.deepEqual(session.complaints, []);
    });

    test("every page can be looked at", async () => {
      const pages = {
        home: "",
        items: "c/nosql/shop/sessions",
        timeline: "c/nosql/shop/sessions/timeline?range=hour",
        month: "c/nosql/shop/orders/timeline",
        feed: "c/nosql/shop/sessions/feed",
        holds: "c/nosql/shop/sessions/holds",
        settings: "c/nosql/shop/sessions/settings",
        collection: "c/mongodb/app/audit",
        clock: "clock",
        purge: "purge",
        users: "users",
        keys: "keys",
        new: "new",
      };
      for (const [name, path] of Object.entries(pages)) {
        const answer = await session.open(path);
        assert.equal(answer.status(), 200, path);
        await session.picture(`${scheme}-${name}`);
      }
      await session.page.setViewportSize({ width: 420, height: 860 });
      await session.open("c/nosql/shop/sessions/timeline?range=hour");
      const wide = await session.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, "nothing hangs over the edge of a small screen");
      await session.picture(`${scheme}-small`);
      await session.page.setViewportSize({ width: 1280, height: 860 });
    });

    if (scheme !== "light") return;

    test("the picture of the README", async () => {
      await session.page.setViewportSize({ width: 1200, height: 720 });
      await session.open("c/nosql/shop/sessions/timeline?range=hour");
      await session.picture("readme");
      const made = join(HERE, "..", ".cache", "explorer", "readme.png");
      assert.ok((await stat(made)).size < 200 * 1024, "small enough to be kept");
      if (process.env.BOLIDE_PICTURE) await copyFile(made, join(HERE, "..", "..", "docs", "explorer.png"));
    });
  });
}
