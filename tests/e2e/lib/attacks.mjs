// SPDX-License-Identifier: Apache-2.0
// The programs of tests/attacks: built on the host, carried into a sandbox, run there, their lines read.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { REPOSITORY } from './instance.mjs';

export const USERS = ['root', 'sandbox'];

/** What a wall answers: refused, not there, read-only, or masked so that there is nothing in it. */
export const CLOSED = /^(EPERM|ENOSYS|EACCES|EROFS|ENOENT|ENODATA|ENOTDIR|EBUSY|EINVAL|ENXIO|ENODEV)$/;

export class Attacks {
  constructor(instance) {
    this.instance = instance;
    this.api = instance.api;
    this.built = new Map(); // name -> bytes of the program
  }

  build(name) {
    if (!this.built.has(name)) {
      const program = path.join(this.instance.home, `attack-${name}`);
      execFileSync('gcc', ['-O1', '-o', program, path.join(REPOSITORY, `tests/attacks/${name}.c`)], { stdio: ['ignore', 'ignore', 'inherit'] });
      this.built.set(name, fs.readFileSync(program));
    }
    return this.built.get(name);
  }

  /** Puts the program into a sandbox; its path there. */
  async carry(id, name) {
    const target = `/opt/attack-${name}`;
    await this.api.put(id, target, this.build(name), { query: { mode: '0755' } });
    return target;
  }

  /** Runs it; { lines: Map of what it tried to what came of it, result }. */
  async run(id, name, { args = [], user = 'sandbox', timeout_ms = 60_000 } = {}) {
    const program = await this.carry(id, name);
    const result = await this.api.exec(id, { argv: [program, ...args], user, timeout_ms });
    const lines = new Map(result.stdout.split('\n').filter(Boolean).map((line) => line.split('\t')));
    return { lines, result };
  }

  /** Every line of the program must be what a wall answers, but for those that `open` names. */
  async allClosed(id, name, { open = () => false, least = 1, ...options } = {}) {
    const { lines, result } = await this.run(id, name, options);
    const tried = [...lines].filter(([what]) => !open(what));
    assert.ok(tried.length >= least, `not proven: ${tried.length} attempts of ${name}: ${JSON.stringify(result)}`);
    assert.deepEqual(tried.filter(([, came]) => !CLOSED.test(came)), [], `${name} as ${options.user ?? 'sandbox'}`);
    return lines;
  }
}

/** A directory on the host that nobody inside may find, and whether it is still as it was. */
export class Canary {
  constructor(home) {
    this.dir = path.join(home, 'canary-of-the-host');
    this.file = path.join(this.dir, 'secret');
    fs.mkdirSync(this.dir, { mode: 0o777 });
    fs.chmodSync(this.dir, 0o777);
    fs.writeFileSync(this.file, 'host-canary-content\n', { mode: 0o666 });
    fs.chmodSync(this.file, 0o666);
    this.before = this.look();
  }

  look() {
    const entries = fs.readdirSync(this.dir).sort();
    const { ino, mode, uid, size } = fs.statSync(this.file);
    return JSON.stringify([entries, ino, mode, uid, size, fs.readFileSync(this.file, 'utf8')]);
  }

  assertUntouched() {
    assert.equal(this.look(), this.before);
  }
}
