// A walk through the explorer as a person would take it.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";

import { Session } from "./browser.mjs";

const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;

describe("the explorer", () => {
  let session, page;

  before(async () => {
    session = await Session.start();
    page = session.page;
  });

  after(async () => {
    await session.stop();
    assert.deepEqual(session.complaints, []);
  });

  test("shows the way in, and comes back where one wanted to go", async () => {
    await session.open("clock");
    await session.picture("sign-in");
    await page.getByLabel("Account key").fill("d3Jvbmc=");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("That is not a key of this account.").waitFor();
    await session.signIn();
    await page.getByText("Nothing here yet").first().waitFor();
  });

  test("makes a container with a time to live", async () => {
    await session.createContainer({ name: "carts", seconds: 600, history: 60 });
    await page.getByText("TTL 10 m").waitFor();
  });

  test("adds items, and each has its countdown", async () => {
    for (const [id, ttl] of [["anna", undefined], ["carla", -1], ["dora", 5400]]) {
      await session.createItem("nosql/shop/carts", { id, pk: "eu", total: id.length * 7, ...(ttl ? { ttl } : {}) });
      await page.getByText("Created.").waitFor();
    }
    const row = (id) => page.getByRole("row", { name: new RegExp(`^${id} `) });
    const left = row("anna").locator(".left");
    const first = await left.textContent();
    assert.match(first, /^9 m|^10 m/);
    await page.waitForFunction((before) => [...document.querySelectorAll(".left")].every((it) => it.textContent !== before), first);
    assert.match(await row("carla").textContent(), /never/);
    await session.picture("items");
  });

  test("an item whose time comes fades and is gone without a reload", async () => {
    // Its time passes for real: twenty seconds are enough for a busy machine to show it before.
    await session.createItem("nosql/shop/carts", { id: "ben", pk: "eu", ttl: 20 });
    await session.open("c/nosql/shop/carts");
    await page.getByRole("row", { name: /^ben / }).waitFor();
    await page.getByRole("row", { name: /^ben / }).waitFor({ state: "detached", timeout: 60_000 });
    await page.getByRole("row", { name: /^anna / }).waitFor();
  });

  test("the clock is moved, items vanish and the chart moves", async () => {
    await session.open("c/nosql/shop/carts/timeline?range=hour");
    const bars = () => page.locator(".histogram .bar:not(.empty)").evaluateAll((all) => all.map((bar) => bar.querySelector("rect.fill").getAttribute("x")));
    const earlier = await bars();
    assert.equal(earlier.length, 1);
    await session.picture("timeline-before");
    await session.advance(300);
    await session.open("c/nosql/shop/carts/timeline?range=hour");
    const later = await bars();
    assert.ok(Number(later[0]) < Number(earlier[0]), `${later} is nearer than ${earlier}`);
    await session.advance(300);
    await session.open("c/nosql/shop/carts");
    assert.equal(await page.getByRole("row", { name: /^anna / }).count(), 0);
    await page.getByRole("row", { name: /^carla / }).waitFor();
    await session.open("c/nosql/shop/carts/feed");
    assert.ok(await page.getByText("expired").count() >= 2);
    await session.picture("feed");
  });

  test("a dry run counts what would die, and then it does", async () => {
    for (let number = 0; number < 8; number += 1) {
      await session.createItem("nosql/shop/carts", { id: `old-${number}`, pk: "us" });
      await page.getByText("Created.").waitFor();
    }
    await session.server.advance(300);
    await session.open("c/nosql/shop/carts/settings");
    await page.getByLabel("How long").fill("4");
    await page.getByLabel("Unit").selectOption("minutes");
    await page.getByRole("button", { name: "Dry run" }).click();
    assert.equal(await page.locator("#verdict").getAttribute("data-expiring"), "8");
    await session.picture("dry-run", { fullPage: true });
    await page.getByRole("link", { name: "Items" }).click();
    assert.equal(await page.getByRole("row", { name: /^old-/ }).count(), 8);
    await page.goBack();
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("The time to live is changed").waitFor();
    await page.getByRole("link", { name: "Items" }).click();
    assert.equal(await page.getByRole("row", { name: /^old-/ }).count(), 0);
  });

  test("a query has rows, a charge and the use of the index", async () => {
    for (let number = 0; number < 5; number += 1) {
      await session.createItem("nosql/shop/carts", { id: `q${number}`, pk: "eu", price: number * 10, tags: ["a", number] });
    }
    await session.open("c/nosql/shop/carts/query");
    await page.getByLabel("SQL").fill("SELECT c.id, c.price FROM c WHERE c.price > 15 ORDER BY c.price DESC");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Index used").waitFor();
    assert.equal(await page.locator("ol.rows > li").count(), 3);
    assert.match(await page.locator(".measures").textContent(), /[0-9.]+ RU/);
    await session.picture("query");
    await page.getByLabel("SQL").fill("SELECT * FORM c");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("alert").waitFor();
    assert.equal((await page.getByLabel("SQL").inputValue()).trim(), "SELECT * FORM c");
  });

  test("wrong JSON is said with its line, and nothing is lost", async () => {
    await session.open("c/nosql/shop/carts?id=q1");
    await page.getByRole("link", { name: "q1" }).click();
    const editor = page.getByLabel("The item as JSON");
    await session.picture("item");
    const typed = `{\n  "id": "q1",\n  "pk": "eu",\n  "note": "an hour of work",,\n}`;
    await editor.fill(typed);
    await page.locator("#mistake").filter({ hasText: /JSON/ }).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Line 4, column").waitFor();
    assert.equal(await editor.inputValue(), typed);
    await session.picture("bad-json");
    await editor.fill(typed.replace(",,", ""));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    assert.match(await editor.inputValue(), /an hour of work/);
  });

  test("an item is deleted once it was asked for", async () => {
    const open = async () => {
      await session.open("c/nosql/shop/carts?id=q2");
      await page.getByRole("link", { name: "q2", exact: true }).click();
      await page.getByText("Delete this item").click();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("heading", { name: /^Delete .*q2.*\?$/ }).waitFor();
      await page.getByText("This cannot be undone.").waitFor();
    };
    await open();
    await session.picture("delete");
    await page.getByRole("link", { name: "Leave it as it is" }).click();
    await page.getByLabel("The item as JSON").waitFor();
    await open();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("Deleted.").waitFor();
    await session.open("c/nosql/shop/carts?id=q2");
    assert.equal(await page.getByRole("link", { name: "q2", exact: true }).count(), 0);
  });

  test("hostile ids, bodies and names stay text", async () => {
    const id = HOSTILE.replaceAll("/", "");
    await session.createItem("nosql/shop/carts", { id, pk: HOSTILE, [HOSTILE]: HOSTILE, html: "</textarea></pre><script>alert(3)</script>" });
    await page.getByText("Created.").waitFor();
    await session.open("c/nosql/shop/carts?key=" + encodeURIComponent(HOSTILE));
    await page.getByRole("link", { name: /onerror/ }).click();
    assert.match(await page.getByLabel("The item as JSON").inputValue(), /<\/textarea><\/pre><script>alert\(3\)/);
    await session.picture("hostile");
    await session.open("c/nosql/shop/carts/query");
    await page.getByLabel("SQL").fill("SELECT * FROM c WHERE CONTAINS(c.id, 'onerror')");
    await page.getByRole("button", { name: "Run" }).click();
    assert.equal(await page.locator("ol.rows > li").count(), 1);
    await session.createContainer({ database: "<b>bold", name: "<script>alert(4)<script>", seconds: 60 });
    await session.open("");
    assert.equal(await page.locator("img, main script, main b img").count(), 0);
    assert.deepEqual(session.complaints, []);
  });

  test("collections of the MongoDB API are queried and edited, too", async () => {
    await session.createContainer({ api: "MongoDB collection", database: "app", name: "sessions", seconds: 900 });
    for (const user of ["mia", "noah"]) {
      await session.createItem("mongodb/app/sessions", { user, seen: { $date: "2026-01-01T00:00:00Z" } });
      await page.getByText("Created.").waitFor();
    }
    assert.equal(await page.locator("[data-expiry]").count(), 2);
    await session.open("c/mongodb/app/sessions/query");
    await page.getByLabel("Filter").fill(`{"user": "mia"}`);
    await page.keyboard.press("Control+Enter");
    assert.match(await page.locator("ol.rows").textContent(), /mia/);
    assert.match(await page.locator(".measures").textContent(), /COLLSCAN/);
    await session.picture("mongodb-query");
    await session.open("c/mongodb/app/sessions");
    await page.locator("td.id a").first().click();
    const editor = page.getByLabel("The item as JSON");
    await editor.fill((await editor.inputValue()).replace("mia", "mila"));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    await session.advance(900);
    await session.open("c/mongodb/app/sessions");
    await page.getByText("Nothing lives here").waitFor();
  });

  test("the keyboard is enough", async () => {
    await session.open("");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the page");
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
    await session.picture("help", { fullPage: true });
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await page.getByRole("heading", { name: "Databases" }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator("nav.tabs").waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.getByRole("heading", { name: "Expiry timeline" }).waitFor();
  });

  test("a session that was signed out is over", async () => {
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Account key").waitFor();
    await session.open("clock");
    await page.getByLabel("Account key").waitFor();
  });
});
