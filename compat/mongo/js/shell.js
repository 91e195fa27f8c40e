// mongosh as a person uses it: one process, lines typed into it, answers read from it.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ANSWER_TIMEOUT_MS = 60_000;
const MONGOSH = createRequire(import.meta.url).resolve("mongosh/bin/mongosh.js");

export class Shell {
  /** Connects; the home folder is a new one, so that no user's settings and history are read or changed. */
  static async open(uri, ...options) {
    const shell = new Shell();
    shell.home = await mkdtemp(join(tmpdir(), "mongosh-"));
    shell.child = spawn(process.execPath, [MONGOSH, uri, "--quiet", "--norc", ...options], {
      env: { PATH: process.env.PATH, HOME: shell.home, NO_COLOR: "1" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    shell.text = "";
    shell.number = 0;
    for (const stream of [shell.child.stdout, shell.child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (chunk) => {
        shell.text += chunk;
        shell.heard?.();
      });
    }
    shell.exited = new Promise((resolve) => shell.child.once("exit", resolve));
    await shell.type("disableTelemetry()");
    return shell;
  }

  /** Types one line and returns what the shell printed for it. */
  async type(line) {
    this.number += 1;
    const mark = `answered-${this.number}`;
    this.text = "";
    // The mark is put together by the shell, so that an echo of the input is no answer.
    this.child.stdin.write(`${line}\nprint("answered-" + ${this.number})\n`);
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer to ${line}:\n${this.text}`)), ANSWER_TIMEOUT_MS);
      this.heard = () => {
        if (!this.text.includes(mark)) return;
        clearTimeout(timer);
        resolve();
      };
      this.exited.then((code) => {
        clearTimeout(timer);
        reject(new Error(`mongosh exited with ${code}:\n${this.text}`));
      });
      this.heard();
    });
    return this.text.slice(0, this.text.indexOf(mark));
  }

  /** The value of an expression. */
  async value(expression) {
    const text = await this.type(`print("<" + "json>" + EJSON.stringify(${expression}) + "</" + "json>")`);
    const found = /<json>(.*?)<\/json>/s.exec(text);
    if (!found) throw new Error(`no value of ${expression}:\n${text}`);
    return found[1] === "undefined" ? undefined : JSON.parse(found[1]);
  }

  async close() {
    this.child.stdin.end("exit\n");
    await this.exited;
    await rm(this.home, { recursive: true });
  }
}
