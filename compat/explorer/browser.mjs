// Debian's Chromium, driven by Playwright, and a signed-in page of a Bolide of one's own.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

import { EMULATOR_KEY, Process } from "../server.mjs";

const CACHE = join(dirname(fileURLToPath(import.meta.url)), "..", ".cache", "explorer");

/** Returns the path of Chromium; installs it once where Debian's tools are available. */
function executable() {
  const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const found = () => places.find((place) => existsSync(place));
  if (!found()) {
    for (const words of [["install"], ["update"], ["install"]]) {
      const rest = words[0] === "install" ? ["-y", "--no-install-recommends", "chromium"] : [];
      if (!found()) spawnSync("apt-get", [...words, ...rest], { stdio: "ignore", timeout: 300_000 });
    }
  }
  const path = found();
  assert.ok(path, "Chromium is not installed and could not be: apt-get install chromium");
  return path;
}

/** A server, a browser, and a page in one colour scheme. Every error that the page logs is a failure. */
export class Session {
  static async start(colorScheme = "light", extra = []) {
    const session = new Session();
    session.server = await Process.start({ running: true, extra });
    session.browser = await chromium.launch({ executablePath: executable(), args: ["--no-sandbox"] });
    const context = await session.browser.newContext({ colorScheme, viewport: { width: 1280, height: 860 } });
    context.setDefaultTimeout(60_000);
    session.page = await context.newPage();
    session.complaints = [];
    session.page.on("pageerror", (error) => session.complaints.push(`error: ${error.message}`));
    session.page.on("console", (message) => {
      const expected = /status of (400|401|404|409)/.test(message.text());
      if (message.type() === "error" && !expected) session.complaints.push(`console: ${message.text()}`);
    });
    session.page.on("dialog", (dialog) => {
      session.complaints.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    session.page.on("request", (request) => {
      if (!request.url().startsWith(session.server.endpoint)) session.complaints.push(`elsewhere: ${request.url()}`);
    });
    return session;
  }

  async stop() {
    await this.browser.close();
    await this.server.stop();
  }

  url(path = "") {
    return this.server.endpoint + "_explorer/" + path;
  }

  async open(path) {
    return this.page.goto(this.url(path));
  }

  async signIn() {
    await this.open("");
    await this.page.getByLabel("Account key").fill(EMULATOR_KEY);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.getByRole("heading", { name: "Databases" }).waitFor();
  }

  async createContainer({ api = "NoSQL container", database = "shop", name, key = "/pk", seconds, history }) {
    await this.open("new");
    await this.page.getByLabel(api).check();
    await this.page.getByLabel("Database", { exact: true }).fill(database);
    await this.page.getByLabel("Name", { exact: true }).fill(name);
    if (api.startsWith("NoSQL")) await this.page.getByLabel(/Partition key path/).fill(key);
    await this.page.getByLabel(/After the last write/).check();
    await this.page.getByLabel("How long").fill(String(seconds));
    await this.page.getByLabel("Unit").selectOption("seconds");
    if (history) await this.page.getByLabel(/Keep all versions/).fill(String(history));
    await this.page.getByRole("button", { name: "Create" }).click();
    await this.page.getByRole("status").getByText("Created.").waitFor();
  }

  async createItem(container, item) {
    await this.open(`c/${container}/new`);
    await this.page.getByLabel("The item as JSON").fill(typeof item === "string" ? item : JSON.stringify(item, null, 2));
    await this.page.getByRole("button", { name: "Create" }).click();
  }

  async advance(seconds) {
    await this.open("clock");
    await this.page.getByLabel("Seconds").fill(String(seconds));
    await this.page.getByRole("button", { name: "Advance", exact: true }).click();
    await this.page.getByText("This cannot be undone.").waitFor();
    await this.page.getByRole("button", { name: "Move the clock" }).click();
    await this.page.getByText("The clock was moved forward.").waitFor();
  }

  /** Keeps a picture as an artefact, for people. */
  async picture(name, options = {}) {
    await mkdir(CACHE, { recursive: true });
    await this.page.screenshot({ path: join(CACHE, `${name}.png`), ...options });
  }
}
