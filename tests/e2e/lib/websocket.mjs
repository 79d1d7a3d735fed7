// SPDX-License-Identifier: Apache-2.0
// A WebSocket client that does what it is told, also what no honest client would, and checks what the
// server must keep to: unmasked frames, no reserved bits, whole UTF-8.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { EventEmitter, once } from 'node:events';

import { Answer, assertErrorShape, queryString } from './client.mjs';
import { DEADLINE_MS } from './wait.mjs';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

/**
 * Asks for a WebSocket. options: query, headers (undefined leaves one out), token (null for none), protocol (null
 * for none), reads (false: nothing is ever read). Returns { socket } or, when it was refused, { answer }.
 */
export function openWebSocket(api, path, { query, headers, token = api.token, protocol = 'pty.v1', reads = true } = {}) {
  const key = crypto.randomBytes(16).toString('base64');
  const wanted = {
    connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': key,
    'sec-websocket-protocol': protocol ?? undefined, authorization: token === null ? undefined : `Bearer ${token}`, ...headers,
  };
  for (const name of Object.keys(wanted)) if (wanted[name] === undefined) delete wanted[name];
  return new Promise((resolve, reject) => {
    const request = api.http.request({ host: api.host, port: api.port, path: path + queryString(query), headers: wanted, agent: api.newAgent() });
    request.setTimeout(DEADLINE_MS, () => request.destroy(new Error(`no answer to the handshake: ${path}`)));
    request.on('error', reject);
    request.on('upgrade', (response, socket, head) => {
      try {
        assert.equal(response.statusCode, 101);
        assert.equal(response.headers['sec-websocket-accept'], crypto.createHash('sha1').update(key + GUID).digest('base64'));
        assert.equal(response.headers['sec-websocket-protocol'], protocol ?? undefined);
        resolve({ socket: new WebSocketClient(socket, head, reads) });
      } catch (error) {
        socket.destroy();
        reject(error);
      }
    });
    request.on('response', (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        const answer = new Answer(response.statusCode, response.headers, Buffer.concat(chunks));
        try {
          if (answer.status >= 400) assertErrorShape(answer);
          resolve({ answer });
        } catch (error) {
          reject(error);
        }
      });
    });
    request.end();
  });
}

/** Events: message (isText, data), close ({ code, reason }; code 1006 when no close frame came), pong. */
export class WebSocketClient extends EventEmitter {
  #socket;
  #pending = Buffer.alloc(0);
  #parts = [];
  #opcode = 0;
  #close = { code: 1006, reason: '' };

  constructor(socket, head, reads) {
    super();
    this.#socket = socket;
    socket.setTimeout(0);
    socket.setNoDelay(true);
    socket.on('error', () => {}); // how it ended is told by close
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.emit('close', this.#close);
        resolve(this.#close);
      });
    });
    if (!reads) {
      socket.pause();
      return;
    }
    socket.on('end', () => socket.end());
    setImmediate(() => { // once whoever opened it listens
      if (head.length > 0) this.#feed(head);
      socket.on('data', (chunk) => this.#feed(chunk));
    });
  }

  pause() { this.#socket.pause(); }
  resume() { this.#socket.resume(); }
  destroy() { this.#socket.destroy(); }

  send(data) {
    const isText = typeof data === 'string';
    this.frame(isText ? OPCODE.text : OPCODE.binary, Buffer.from(data));
  }

  ping(data = '') { this.frame(OPCODE.ping, Buffer.from(data)); }

  /** Begins the closing handshake; `closed` tells its end. */
  close(code = 1000) {
    const body = Buffer.alloc(2);
    body.writeUInt16BE(code);
    this.frame(OPCODE.close, body);
    return this.closed;
  }

  frame(opcode, payload, { final = true, masked = true } = {}) {
    const size = payload.length < 126 ? 2 : payload.length < 65536 ? 4 : 10;
    const head = Buffer.alloc(size);
    head[0] = (final ? 128 : 0) | opcode;
    head[1] = (masked ? 128 : 0) | (size === 2 ? payload.length : size === 4 ? 126 : 127);
    if (size === 4) head.writeUInt16BE(payload.length, 2);
    if (size === 10) head.writeBigUInt64BE(BigInt(payload.length), 2);
    if (!masked) return this.#socket.write(Buffer.concat([head, payload]));
    const mask = crypto.randomBytes(4);
    const body = Buffer.from(payload);
    for (let i = 0; i < body.length; i++) body[i] ^= mask[i & 3];
    return this.#socket.write(Buffer.concat([head, mask, body]));
  }

  #feed(chunk) {
    this.#pending = this.#pending.length ? Buffer.concat([this.#pending, chunk]) : chunk;
    for (;;) {
      const frame = this.#next();
      if (!frame) return;
      this.#take(frame);
    }
  }

  #next() {
    const bytes = this.#pending;
    if (bytes.length < 2) return null;
    assert.equal(bytes[0] & 0x70, 0, 'reserved bits of a frame are 0');
    assert.equal(bytes[1] & 0x80, 0, 'a server does not mask');
    const short = bytes[1] & 127;
    const start = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (bytes.length < start) return null;
    const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
    if (bytes.length < start + length) return null;
    this.#pending = bytes.subarray(start + length);
    return { final: (bytes[0] & 128) !== 0, opcode: bytes[0] & 15, payload: bytes.subarray(start, start + length) };
  }

  #take({ final, opcode, payload }) {
    if (opcode === OPCODE.close) {
      this.#close = { code: payload.length >= 2 ? payload.readUInt16BE(0) : 1005, reason: payload.subarray(2).toString() };
      this.frame(OPCODE.close, payload.subarray(0, 2));
      this.#socket.end();
    } else if (opcode === OPCODE.ping) {
      this.frame(OPCODE.pong, payload);
    } else if (opcode === OPCODE.pong) {
      this.emit('pong', payload);
    } else {
      if (opcode !== OPCODE.continuation) this.#opcode = opcode;
      this.#parts.push(payload);
      if (!final) return;
      const data = Buffer.concat(this.#parts);
      this.#parts = [];
      const isText = this.#opcode === OPCODE.text;
      if (isText) assert.ok(Buffer.from(data.toString('utf8')).equals(data), 'a text message is UTF-8');
      this.emit('message', isText, data);
    }
  }
}

/** Waits for one event of a client, with a deadline. */
export async function nextEvent(client, name) {
  return once(client, name, { signal: AbortSignal.timeout(DEADLINE_MS) });
}
