// SPDX-License-Identifier: Apache-2.0
// The HTTP client of the tests. node:http rather than fetch, because the tests need to set Host, to
// see how a connection ends and to send bodies that fetch would refuse.
import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';

import * as document from './document.mjs';
import { DEADLINE_MS } from './wait.mjs';

/** Connections that are kept for the next request leave long before the daemon closes them, which may be when that is sent. */
const KEPT = { keepAlive: true, maxSockets: 128, timeout: 5000 };
const ERROR_KEYS = ['code', 'message', 'remediation', 'request_id', 'retryable'];

export class Answer {
  constructor(status, headers, body) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  get text() {
    return this.body.toString('utf8');
  }

  get json() {
    try {
      return JSON.parse(this.text);
    } catch (error) {
      throw new Error(`not JSON (status ${this.status}): ${this.text.slice(0, 300)}`, { cause: error });
    }
  }
}

/** Percent-encodes a path for ?path=; a Buffer is taken byte by byte, so it may be any bytes. */
export function encodePath(path) {
  if (!Buffer.isBuffer(path)) return encodeURIComponent(path);
  return [...path].map((b) => `%${b.toString(16).padStart(2, '0')}`).join('');
}

export function queryString(query = {}) {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodePath(value instanceof Buffer ? value : String(value))}`);
  return pairs.length ? `?${pairs.join('&')}` : '';
}

/** Until a request takes more, or is over. */
function drained(request) {
  return new Promise((resolve) => {
    const go = () => { request.off('drain', go).off('close', go); resolve(); };
    request.on('drain', go).on('close', go);
  });
}

export class Api {
  /** tls: options of node's, such as { ca }, for a daemon that speaks it. */
  constructor({ host = '127.0.0.1', port, token, secrets = [], tls = null }) {
    this.tls = tls;
    this.http = tls ? https : http;
    this.host = host;
    this.port = port;
    this.token = token;
    this.secrets = secrets; // strings that no answer may contain
    this.made = new Set(); // ids of sandboxes that were answered and may have to be purged
    this.purged = new Set(); // ids of those that were
    this.agent = this.newAgent(KEPT);
  }

  newAgent(options = {}) {
    return new this.http.Agent({ ...this.tls, ...options });
  }

  /** Drops idle connections, so that the daemon's descriptors can be counted. */
  disconnect() {
    this.agent.destroy();
    this.agent = this.newAgent(KEPT);
  }

  headers(extra = {}) {
    return { authorization: `Bearer ${this.token}`, ...extra };
  }

  /**
   * One request. options: headers, json (sent as application/json), body (string, Buffer or async
   * iterable), query, token (null for none), signal, timeout_ms. An undefined header is left out.
   */
  request(method, path, options = {}) {
    return new Promise((resolve, reject) => {
      this.open(method, path, options, (error, response) => {
        if (error) return reject(error);
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          if (!response.complete) return reject(new Error('the answer was cut short'));
          try {
            resolve(this.#checked(method, path, options, new Answer(response.statusCode, response.headers, Buffer.concat(chunks))));
          } catch (flaw) {
            reject(flaw); // thrown from here it would be nobody's
          }
        });
        response.on('aborted', () => reject(new Error('the answer was cut short')));
      });
    });
  }

  /** Starts a request and calls back with the response while its body is still to come. */
  open(method, path, options, callback) {
    const { json, body, query, token = this.token, signal, timeout_ms = DEADLINE_MS } = options;
    let payload = body;
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    if (json !== undefined) {
      payload = JSON.stringify(json);
      headers['content-type'] = 'application/json';
    }
    Object.assign(headers, options.headers);
    for (const name of Object.keys(headers)) if (headers[name] === undefined) delete headers[name];
    if (typeof payload === 'string' || Buffer.isBuffer(payload)) {
      payload = Buffer.from(payload);
      if (headers['transfer-encoding'] === undefined) headers['content-length'] ??= payload.length;
    } else if (payload === undefined && ['POST', 'PUT', 'PATCH'].includes(method)) {
      headers['content-length'] ??= 0;
    }
    const request = this.http.request(
      { host: this.host, port: this.port, method, path: path + queryString(query), headers, agent: options.agent ?? this.agent, signal },
      (response) => {
        try {
          document.checkHead(method, path, options, { status: response.statusCode, headers: response.headers });
        } catch (flaw) {
          return callback(response.destroy() && flaw); // thrown from here it would be nobody's
        }
        response.checkEvent = (event) => document.checkEvent(method, path, event); // for parseEvents
        callback(null, response);
      },
    );
    request.setTimeout(timeout_ms, () => request.destroy(new Error(`no answer within ${timeout_ms} ms: ${method} ${path}`)));
    request.on('error', (error) => callback(error));
    if (payload !== undefined && !Buffer.isBuffer(payload)) {
      (async () => {
        try {
          for await (const chunk of payload) {
            if (request.destroyed) return;
            if (!request.write(chunk)) await drained(request);
          }
          request.end();
        } catch (error) {
          request.destroy(error);
        }
      })();
    } else {
      request.end(payload);
    }
    return request;
  }

  #checked(method, path, options, answer) {
    for (const secret of this.secrets) {
      assert.ok(!answer.body.includes(secret), `an answer shows ${secret}: ${answer.text.slice(0, 300)}`);
    }
    // A probe gets a line of text, also when it is refused.
    // Behind the door for programs of E2B a failure has that protocol's words; before it, ours.
    const isE2b = path.startsWith('/e2b/') && answer.status >= 400 && answer.json.message;
    const words = /^\/e2b\/data\/[^/]+\/envd\/\w+\./.test(path) ? /^[a-z_]+$/ : new RegExp(`^${answer.status}$`); // a call of Connect has a word
    if (isE2b) assert.deepEqual([Object.keys(answer.json), words.test(answer.json.code)], [['code', 'message'], true], answer.text);
    else if (answer.status >= 400 && answer.body.length > 0 && !['/readyz', '/mcp'].includes(path)) assertErrorShape(answer);
    if (answer.status === 201 || answer.status === 200) this.#remember(answer);
    document.checkBody(method, path, answer);
    return answer;
  }

  #remember(answer) {
    if (!String(answer.headers['content-type']).startsWith('application/json') || answer.body.length > 100_000) return;
    try {
      const id = JSON.parse(answer.text)?.id;
      if (typeof id === 'string' && /^[0-9a-z]{26}$/.test(id)) this.made.add(id);
    } catch { /* not a document: the test that reads it will say so */ }
  }

  // Sandboxes ---------------------------------------------------------------------------------

  async create(body = {}) {
    const answer = await this.request('POST', '/v1/sandboxes', { json: body });
    assert.equal(answer.status, 201, `create: ${answer.text}`);
    return answer.json;
  }

  ensure(body = {}) {
    return this.request('POST', '/v1/sandboxes/ensure', { json: body });
  }

  async get(id) {
    const answer = await this.request('GET', `/v1/sandboxes/${id}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  async list(query = {}) {
    const answer = await this.request('GET', '/v1/sandboxes', { query });
    assert.equal(answer.status, 200, answer.text);
    assert.ok(Array.isArray(answer.json.sandboxes), answer.text);
    return answer.json;
  }

  /** All sandboxes over all pages. */
  async all(query = {}) {
    const found = [];
    let cursor;
    do {
      const page = await this.list({ limit: 100, ...query, cursor });
      found.push(...page.sandboxes);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
    return found;
  }

  patch(id, body) {
    return this.request('PATCH', `/v1/sandboxes/${id}`, { json: body });
  }

  /** start, stop, pause, resume, reset; returns the sandbox as it is afterwards. */
  async life(id, verb) {
    const answer = await this.verb(id, verb);
    assert.equal(answer.status, 200, `${verb}: ${answer.text}`);
    return this.get(id);
  }

  verb(id, verb) {
    return this.request('POST', `/v1/sandboxes/${id}/${verb}`);
  }

  async remove(id) {
    const answer = await this.request('DELETE', `/v1/sandboxes/${id}`);
    assert.equal(answer.status, 204, answer.text);
    assert.equal(answer.body.length, 0);
  }

  async purge(id) {
    const answer = await this.verb(id, 'purge');
    assert.ok([200, 204].includes(answer.status), `purge: ${answer.status} ${answer.text}`);
  }

  async stats(id) {
    const answer = await this.request('GET', `/v1/sandboxes/${id}/stats`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  // Exec --------------------------------------------------------------------------------------

  tryExec(id, body, options = {}) {
    const json = typeof body === 'string' ? { command: body } : body;
    const own_ms = Number.isSafeInteger(json?.timeout_ms) ? Math.min(Math.max(json.timeout_ms, 0), 10 * DEADLINE_MS) : 0;
    return this.request('POST', `/v1/sandboxes/${id}/exec`, { timeout_ms: DEADLINE_MS + own_ms, ...options, json });
  }

  async exec(id, body, options) {
    const answer = await this.tryExec(id, body, options);
    assert.equal(answer.status, 200, `exec: ${answer.status} ${answer.text.slice(0, 500)}`);
    return answer.json;
  }

  /** Standard output of a command that must succeed. */
  async out(id, body) {
    const result = await this.exec(id, body);
    assert.equal(result.exit_code, 0, `exec ${JSON.stringify(body)}: ${JSON.stringify(result)}`);
    return result.stdout;
  }

  /** The command lines of all processes in the sandbox. */
  async processes(id, user = 'root') {
    const command = 'for f in /proc/[0-9]*/cmdline; do tr "\\0" " " <"$f"; echo; done 2>/dev/null';
    return (await this.out(id, { command, user })).split('\n').map((line) => line.trim()).filter(Boolean);
  }

  /** An event stream: { events(): async iterator, close(), response }. Each event: { id, event, data } with data parsed. */
  stream(method, path, { headers, ...options } = {}) {
    return new Promise((resolve, reject) => {
      const request = this.open(method, path, { ...options, headers: { accept: 'text/event-stream', ...headers }, agent: this.newAgent() }, (error, response) => {
        if (error) return reject(error);
        resolve({ response, close: () => request.destroy(), events: () => parseEvents(response) });
      });
    });
  }

  /** Exec as an event stream. */
  execStream(id, body, headers = {}) {
    return this.stream('POST', `/v1/sandboxes/${id}/exec`, { json: typeof body === 'string' ? { command: body } : body, headers });
  }

  // Files -------------------------------------------------------------------------------------

  files(method, id, path, { query, ...options } = {}) {
    return this.request(method, `/v1/sandboxes/${id}/files`, { query: { path, ...query }, ...options });
  }

  tryPut(id, path, body, { query, headers, ...options } = {}) {
    return this.files('PUT', id, path, { query, body, headers: { 'content-type': 'application/octet-stream', ...headers }, ...options });
  }

  async put(id, path, body, options) {
    const answer = await this.tryPut(id, path, body, options);
    assert.ok([200, 201, 204].includes(answer.status), `put ${path}: ${answer.status} ${answer.text}`);
    return answer;
  }

  async read(id, path, headers) {
    const answer = await this.files('GET', id, path, { headers });
    assert.equal(answer.status, 200, `read ${path}: ${answer.text.slice(0, 300)}`);
    return answer.body;
  }

  async stat(id, path) {
    const answer = await this.request('GET', `/v1/sandboxes/${id}/files/stat`, { query: { path } });
    assert.equal(answer.status, 200, `stat ${path}: ${answer.text}`);
    return answer.json;
  }

  async exists(id, path) {
    const answer = await this.request('GET', `/v1/sandboxes/${id}/files/stat`, { query: { path } });
    assert.ok([200, 404].includes(answer.status), `stat ${path}: ${answer.text}`);
    return answer.status === 200;
  }

  async listFiles(id, path, query = {}) {
    const answer = await this.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path, ...query } });
    assert.equal(answer.status, 200, `list ${path}: ${answer.text.slice(0, 300)}`);
    return answer.json;
  }

  mkdir(id, path) {
    return this.request('POST', `/v1/sandboxes/${id}/files/mkdir`, { json: { path } });
  }

  move(id, from, to) {
    return this.request('POST', `/v1/sandboxes/${id}/files/move`, { json: { from, to } });
  }

  putArchive(id, path, body, type = 'application/x-tar') {
    return this.request('PUT', `/v1/sandboxes/${id}/files/archive`, { query: { path }, body, headers: { 'content-type': type } });
  }

  getArchive(id, path) {
    return this.request('GET', `/v1/sandboxes/${id}/files/archive`, { query: { path } });
  }
}

/** Checks the error document: just the five promised keys, each of its type. */
export function assertErrorShape(answer) {
  assert.match(String(answer.headers['content-type']), /^application\/json/, `an error is JSON: ${answer.text.slice(0, 200)}`);
  const document = answer.json;
  assert.deepEqual(Object.keys(document), ['error'], answer.text);
  const { error } = document;
  assert.deepEqual(Object.keys(error).filter((key) => key !== 'confirm').sort(), ERROR_KEYS, answer.text);
  assert.equal('confirm' in error, error.code === 'confirmation_required', answer.text);
  assert.match(error.code, /^[a-z][a-z0-9_]*$/, answer.text);
  assert.equal(typeof error.message, 'string');
  assert.ok(error.message.length > 0, answer.text);
  assert.equal(typeof error.retryable, 'boolean');
  assert.ok(error.remediation === null || typeof error.remediation === 'string', answer.text);
  assert.equal(typeof error.request_id, 'string');
  assert.ok(error.request_id.length > 0, answer.text);
  if (answer.headers['x-request-id'] !== undefined) assert.equal(answer.headers['x-request-id'], error.request_id);
}

/** Asserts an error with one of the statuses (and, if given, a message that matches). */
export function assertError(answer, statuses, message) {
  const wanted = [statuses].flat();
  assert.ok(wanted.includes(answer.status), `expected ${wanted.join(' or ')}, got ${answer.status}: ${answer.text.slice(0, 400)}`);
  assertErrorShape(answer);
  if (message) assert.match(answer.json.error.message, message);
  return answer.json.error;
}

/** Events of a text/event-stream response, as they arrive. */
export async function* parseEvents(response) {
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const event = {};
      const data = [];
      for (const line of block.split('\n')) {
        if (line.startsWith(':')) continue;
        const [, name, value] = /^([a-z]+): ?(.*)$/s.exec(line) ?? assert.fail(`not an SSE line: ${line}`);
        if (name === 'data') data.push(value);
        else event[name] = value;
      }
      if (data.length === 0) continue;
      event.data = JSON.parse(data.join('\n'));
      response.checkEvent?.(event);
      yield event;
    }
  }
  assert.equal(text, '', 'the stream ended inside an event');
}

export const eventBytes = (event) =>
  event.data.data_base64 !== undefined ? Buffer.from(event.data.data_base64, 'base64') : Buffer.from(event.data.data, 'utf8');

/** Sends bytes on a fresh connection and returns all that comes back until it is closed, or what there was at the deadline. */
export function raw(port, bytes, { host = '127.0.0.1', end = false } = {}) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, host);
    const chunks = [];
    const finish = (closed) => {
      socket.destroy();
      const text = Buffer.concat(chunks).toString('latin1');
      resolve({ closed, text, status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0), answers: (text.match(/^HTTP\/1\.[01] \d{3}/gm) ?? []).length });
    };
    const timer = setTimeout(() => finish(false), DEADLINE_MS);
    socket.on('connect', () => (end ? socket.end(bytes) : socket.write(bytes)));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', (error) => {
      if (['ECONNRESET', 'EPIPE'].includes(error.code)) return;
      clearTimeout(timer);
      reject(error);
    });
    socket.on('close', () => {
      clearTimeout(timer);
      finish(true);
    });
  });
}
