// SPDX-License-Identifier: Apache-2.0
// A person at a terminal: types, reads what is shown, resizes, goes away and comes back.
import assert from 'node:assert/strict';

import { assertTermination } from './processes.mjs';
import { within } from './wait.mjs';
import { openWebSocket } from './websocket.mjs';

export const CTRL = { C: '\x03', D: '\x04', U: '\x15', Z: '\x1a' };
const PROMPT = /[$#] $/;

export const terminalPath = (id) => `/v1/sandboxes/${id}/terminal`;

/** The refusal of a terminal: the answer to its handshake. */
export async function refusedTerminal(api, id, query, options) {
  const { answer, socket } = await openWebSocket(api, terminalPath(id), { query: { cols: 80, rows: 24, ...query }, ...options });
  socket?.destroy();
  assert.ok(answer, `a terminal with ${JSON.stringify(query)} was opened`);
  return answer;
}

export class Terminal {
  #waiters = new Set();
  #chunks = [];
  #mark = 0; // what expect() has not looked at yet begins here

  /** Opens a terminal, or attaches to one with { process, from }, and waits for its start message. */
  static async open(api, id, query = {}, options = {}) {
    const { socket, answer } = await openWebSocket(api, terminalPath(id), { query: { cols: 80, rows: 24, ...query }, ...options });
    assert.ok(socket, `refused: ${answer?.status} ${answer?.text}`);
    const terminal = new Terminal(socket);
    if (options.reads !== false) await terminal.#until(() => terminal.process, 'the start message');
    return terminal;
  }

  constructor(socket) {
    this.socket = socket;
    this.cuts = [];
    this.exit = null;
    this.closed = socket.closed;
    this.over = null; // the close, once it is there
    socket.on('message', (isText, data) => {
      try {
        if (isText) this.#control(JSON.parse(data.toString()));
        else this.#show(data);
      } catch (error) {
        this.failure = error;
      }
      this.#wake();
    });
    socket.on('close', (close) => {
      this.over = close;
      this.#wake();
    });
  }

  #show(data) {
    assert.ok(this.process, 'nothing is shown before the start message');
    assert.equal(this.exit, null, 'nothing is shown after the exit message');
    this.#chunks.push(data);
  }

  #control(message) {
    if (message.type === 'start') {
      assert.deepEqual(Object.keys(message).filter((key) => key !== 'modes').sort(), ['from', 'pid', 'process', 'type']);
      assert.equal(this.process, undefined, 'one start message');
      Object.assign(this, { process: message.process, pid: message.pid, from: message.from, modes: message.modes });
    } else if (message.type === 'cut') {
      assert.deepEqual(Object.keys(message).sort(), ['from', 'to', 'type']);
      assert.equal(message.from, this.position, 'a cut begins where the bytes end');
      this.cuts.push(message);
    } else {
      assert.equal(message.type, 'exit', JSON.stringify(message));
      assert.deepEqual(Object.keys(message).sort(), ['duration_ms', 'exit_code', 'termination', 'type']);
      assertTermination(message.termination);
      this.exit = message;
    }
  }

  /** The offset of the next byte. */
  get position() {
    return this.from + this.bytes.length + this.cuts.reduce((sum, cut) => sum + cut.to - cut.from, 0);
  }

  get bytes() {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }

  get text() {
    return this.bytes.toString('utf8');
  }

  type(text) {
    this.socket.send(Buffer.from(text));
  }

  /** A line and the Enter key. */
  line(text) {
    this.type(`${text}\r`);
  }

  control(message) {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  #wake() {
    for (const waiter of this.#waiters) waiter();
  }

  #until(probe, what) {
    const waiting = new Promise((resolve, reject) => {
      const waiter = () => {
        const value = this.failure ? null : probe();
        if (!value && !this.failure && !this.over) return;
        this.#waiters.delete(waiter);
        if (value) resolve(value);
        else reject(this.failure ?? new Error(`closed with ${this.over.code} ${this.over.reason} before ${what}`));
      };
      this.#waiters.add(waiter);
      waiter();
    });
    return within(what, waiting).catch((error) => {
      throw new Error(`${error.message}; shown: ${JSON.stringify(this.text.slice(-400))}`, { cause: error });
    });
  }

  /** Waits until the pattern is shown, after what earlier calls have found; returns the match. */
  async expect(pattern) {
    return this.#until(() => {
      const text = this.bytes.subarray(this.#mark).toString('utf8');
      const match = pattern.exec(text);
      if (match) this.#mark += Buffer.byteLength(text.slice(0, match.index + match[0].length));
      return match;
    }, `${pattern} is shown`);
  }

  prompt() {
    return this.expect(PROMPT);
  }

  /** Types a line and waits for the pattern and then for the next prompt. */
  async run(line, pattern) {
    this.line(line);
    const match = await this.expect(pattern);
    await this.prompt();
    return match;
  }

  untilBytes(count) {
    return this.#until(() => this.bytes.length >= count, `${count} bytes are shown`);
  }

  untilPosition(offset) {
    return this.#until(() => this.position >= offset, `offset ${offset} is reached (it is at ${this.position})`);
  }

  untilExit() {
    return this.#until(() => this.exit, 'the exit message');
  }

  /** The close of the connection: { code, reason }. */
  untilClosed() {
    return within('the close', this.closed);
  }

  /** As if the network were gone. */
  drop() {
    this.socket.destroy();
    return this.closed;
  }
}
