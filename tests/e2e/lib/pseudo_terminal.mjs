// SPDX-License-Identifier: Apache-2.0
// A person in front of a terminal: a program on a pseudo-terminal, what it shows, what is typed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';

import { until } from './wait.mjs';

const DRIVER = path.join(path.dirname(fileURLToPath(import.meta.url)), 'pseudo_terminal.py');

export class Terminal {
  constructor(argv, { env = process.env, cols = 80, rows = 24 } = {}) {
    this.bytes = [];
    this.seen = 0; // of the text: what was expected already
    this.states = [];
    this.code = undefined;
    this.driver = spawn('python3', [DRIVER, String(cols), String(rows), ...argv], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.driver.stdin.on('error', () => {});
    readline.createInterface({ input: this.driver.stdout }).on('line', (line) => this.heard(JSON.parse(line)));
  }

  heard({ output, state, exit }) {
    if (output !== undefined) this.bytes.push(Buffer.from(output, 'base64'));
    if (state !== undefined) this.states.push(state);
    if (exit !== undefined) this.code = exit;
  }

  order(order) {
    this.driver.stdin.write(`${JSON.stringify(order)}\n`);
  }

  get text() {
    return Buffer.concat(this.bytes).toString();
  }

  type(keys) {
    this.order({ type: Buffer.from(keys).toString('base64') });
  }

  resize(cols, rows) {
    this.order({ resize: [cols, rows] });
  }

  signal(number) {
    this.order({ signal: number });
  }

  /** The terminal's window is closed. */
  hangup() {
    this.order({ hangup: true });
  }

  /** The flags of the terminal, as tcgetattr gives them: before the program, after it, and now. */
  get before() {
    return this.states[0];
  }

  get after() {
    return this.states.at(-1);
  }

  async state() {
    const before = this.states.length;
    this.order({ state: true });
    await until(() => this.states.length > before, { what: 'the state of the terminal' });
    return this.states.at(-1);
  }

  /** Waits until what is shown after the last match matches. */
  async expect(pattern) {
    const match = await until(() => pattern.exec(this.text.slice(this.seen)), { what: 'it shows the text' }).catch(() =>
      assert.fail(`${pattern} was not shown (exit ${this.code}) in: ${JSON.stringify(this.text.slice(this.seen).slice(-600))}`));
    this.seen += match.index + match[0].length;
    return match;
  }

  /** Types a line and waits for a word that only its execution prints. */
  async run(line, pattern) {
    this.type(`${line}\r`);
    return this.expect(pattern);
  }

  async exit() {
    await until(() => this.code !== undefined, { what: `the program ends; shown: ${JSON.stringify(this.text.slice(-300))}` });
    return this.code;
  }

  end() {
    this.driver.kill('SIGKILL');
  }
}
