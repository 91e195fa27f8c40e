// A Bolide process and its test clock, for the suites of all JavaScript clients. Nothing sleeps for a deadline: time is
// moved, and stands still otherwise. The only waiting is for a process to become ready.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";

// The key every Cosmos emulator shares; Bolide accepts it while it listens on loopback only.
export const EMULATOR_KEY =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
export const DAY = 24 * 3600;
export const START_TIMEOUT_MS = 60_000;

/** One `bolide serve --test-clock` on free ports; each suite adds its own client. */
export class Process {
  constructor(child, addresses, folder) {
    this.child = child;
    this.endpoint = `http://${addresses.http}/`;
    this.mongo = addresses.mongo;
    this.folder = folder;
  }

  /**
   * In memory, or with `onDisk` in a temporary folder, where the certificate for TLS is found as well; with `running` the clock
   * is not stopped.
   */
  static async start({ onDisk = false, running = false, extra = [] } = {}) {
    const binary = process.env.BOLIDE_BIN;
    assert.ok(binary, "BOLIDE_BIN must name the server binary; `cargo xtask compat` sets it");
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("BOLIDE_")));
    const folder = onDisk ? await mkdtemp(join(tmpdir(), "bolide-")) : undefined;
    const place = onDisk ? ["--data", folder] : ["--memory"];
    const clock = running ? ["--test-clock"] : ["--test-clock", "--stopped-clock"];
    const child = spawn(binary, ["serve", ...place, ...clock, "--listen", "127.0.0.1:0", ...extra], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const server = new this(child, await announced(child), folder);
    await server.untilReady();
    return server;
  }

  async untilReady() {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (Date.now() < deadline) {
      const answer = await fetch(this.endpoint + "ready").catch(() => undefined);
      if (answer?.status === 200) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error("the server did not become ready");
  }

  /** SIGTERM; resolves to the exit code. */
  async stop() {
    const exited = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    const code = await exited;
    if (this.folder) await rm(this.folder, { recursive: true });
    return code;
  }

  async admin(method, path, body) {
    const answer = await fetch(this.endpoint + "_bolide/" + path, {
      method,
      headers: { authorization: "Bearer " + EMULATOR_KEY, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.status}`);
    return answer.json();
  }

  async now() {
    return (await this.admin("GET", "clock")).now;
  }

  async advance(seconds) {
    await this.admin("POST", "clock", { advanceSeconds: seconds });
  }

  /** Moves to an instant in Unix seconds, which must not lie in the past. */
  async moveTo(instant) {
    const distance = instant - (await this.now());
    assert.ok(distance >= 0, `the clock cannot go back by ${-distance} s; give the test more room`);
    if (distance > 0) await this.advance(distance);
  }
}

/** The addresses of both APIs, as the process prints them. */
function announced(child) {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error("the server announced no address:\n" + text)), START_TIMEOUT_MS);
    child.stdout.on("data", (chunk) => {
      text += chunk;
      const http = /AccountEndpoint=http:\/\/([^/]+)\//.exec(text);
      const mongo = /mongodb:\/\/(?:[^@\s]*@)?(127\.0\.0\.1:\d+)/.exec(text);
      if (http && mongo) {
        clearTimeout(timer);
        resolve({ http: http[1], mongo: mongo[1] });
      }
    });
    child.once("exit", (code) => {
      clearTimeout(timer);
      reject(new Error(`the server exited with ${code}:\n` + text));
    });
  });
}
