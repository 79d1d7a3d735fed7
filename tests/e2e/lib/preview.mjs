// SPDX-License-Identifier: Apache-2.0
// A client of previews: names that lead to the preview listener, and raw sockets where a test must say
// exactly what goes over the wire.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import net from 'node:net';

import { Answer } from './client.mjs';
import { DEADLINE_MS, until } from './wait.mjs';

export class Previews {
  constructor(api, sandbox) {
    this.api = api;
    this.id = sandbox.id;
    this.port = Number(new URL(Object.values(sandbox.previews)[0]).port);
  }

  host(port) { return `s-${this.id}-${port}.preview.localhost:${this.port}`; }

  /** Options: headers, host, token (true: the owner's), body, method, agent. */
  request(port, path, { headers = {}, host = this.host(port), token = true, body, method = 'GET', agent = false } = {}) {
    return new Promise((resolve, reject) => {
      const all = { host, ...(token ? { 'x-api-key': this.api.token } : {}), ...headers };
      const request = this.api.http.request({ ...this.api.tls, servername: host.split(':')[0], host: '127.0.0.1', port: this.port, path, method, headers: all, agent }, (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const answer = new Answer(response.statusCode, response.headers, Buffer.concat(chunks));
          answer.trailers = response.trailers;
          resolve(answer);
        });
      });
      request.on('error', reject);
      if (body && typeof body.pipe === 'function') body.pipe(request);
      else request.end(body);
    });
  }

  /** Sends bytes as they are, and gives all that came back until the connection ended. */
  raw(bytes, { halfClose = false } = {}) {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host: '127.0.0.1', port: this.port, allowHalfOpen: true });
      const chunks = [];
      socket.setTimeout(DEADLINE_MS, () => socket.destroy(new Error(`no end; so far: ${Buffer.concat(chunks).toString('latin1').slice(0, 300)}`)));
      socket.on('data', (chunk) => chunks.push(chunk));
      socket.on('error', reject);
      socket.on('end', () => { socket.end(); resolve(Buffer.concat(chunks).toString('latin1')); });
      socket.write(bytes);
      if (halfClose) socket.end();
    });
  }
}

/** A WebSocket that is open; `ended` when it is cut. Header: more lines of its request. */
export async function openSocket(previews, port, header) {
  const socket = net.connect(previews.port, '127.0.0.1');
  const one = { ended: false, close: () => socket.destroy() };
  let text = '';
  socket.on('data', (data) => { text += data.toString('latin1'); });
  socket.on('close', () => { one.ended = true; });
  socket.on('error', () => {});
  socket.write(`GET / HTTP/1.1\r\nHost: ${previews.host(port)}\r\n${header}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${crypto.randomBytes(16).toString('base64')}\r\n\r\n`);
  await until(() => text.includes('\r\n\r\n'), { what: 'the handshake' });
  assert.match(text, /^HTTP\/1.1 101 /);
  return one;
}
