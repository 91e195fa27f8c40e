// The README's way from nothing to a TTL in the browser, taken as it is written there. A step is a line that begins with a
// number; in it **bold** is something to click, and **bold** `code` a field and what to fill in.

import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";

import { Session } from "./browser.mjs";

const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const STEPS = README.split("\n").filter((line) => /^\d+\. /.test(line));
const ADDRESS = /<http:\/\/127\.0\.0\.1:8081\/_explorer\/([^>]*)>/;
const ACTION = /\*\*([^*]+)\*\*(?: `([^`]+)`)?/g;

describe("the README in a browser", () => {
  let session, page;

  before(async () => {
    session = await Session.start();
    page = session.page;
  });

  after(async () => {
    await session.stop();
    assert.deepEqual(session.complaints, []);
  });

  async function fill(name, value) {
    const exact = page.getByLabel(name, { exact: true });
    const field = (await exact.count()) === 1 ? exact : page.getByLabel(name);
    const isList = await field.evaluate((element) => element.tagName === "SELECT");
    await (isList ? field.selectOption(value) : field.fill(value));
  }

  async function follow(step) {
    const address = ADDRESS.exec(step);
    if (address) await session.open(address[1]);
    for (const [, name, value] of step.matchAll(ACTION)) {
      if (value !== undefined) await fill(name, value);
      else await page.getByRole("button", { name, exact: true }).or(page.getByRole("link", { name, exact: true })).first().click();
    }
  }

  test("has four steps", () => assert.equal(STEPS.length, 4));

  test("lets one in", async () => {
    await follow(STEPS[0]);
    await page.getByRole("heading", { name: "Databases" }).waitFor();
  });

  test("makes a container of a minute", async () => {
    await follow(STEPS[1]);
    await page.getByText("TTL 1 m").waitFor();
  });

  test("shows a countdown", async () => {
    await follow(STEPS[2]);
    const left = page.getByRole("row", { name: /^tea / }).locator(".left");
    const first = await left.textContent();
    assert.match(first, /^(1 m|[3-5]\d s)$/);
    await page.waitForFunction((before) => ![before, "expired"].includes(document.querySelector(".left").textContent), first);
  });

  test("moves the clock, and nothing is left", async () => {
    await follow(STEPS[3]);
    await page.getByText("Nothing lives here").waitFor();
  });
});
