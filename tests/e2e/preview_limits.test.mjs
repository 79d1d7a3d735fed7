// SPDX-License-Identifier: Apache-2.0
// How much of the previews one address and one sandbox may take, and that nobody else notices when they try for more.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import { test } from 'node:test';

import { Previews } from './lib/preview.mjs';
import { suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

const [SOURCE, SANDBOX, RATE] = [24, 12, 2];
const { api, finish } = await suite('preview-limits', {
  args: ['--preview-bind', '0.0.0.0:0', '--allow-plain', '--preview-source-connections', String(SOURCE), '--preview-sandbox-connections', String(SANDBOX), '--preview-rate', String(RATE), '--preview-timeout', '5'],
});

const APP = `require('http').createServer((req, res) => { if (req.url === '/hang') return; res.writeHead(200); res.write('hello'); if (req.url !== '/open') res.end(); }).listen(3000, '127.0.0.1')`;

async function startApp() {
  const sandbox = await api.create({ ports: [3000] });
  const previews = new Previews(api, sandbox);
  await api.request('POST', `/v1/sandboxes/${sandbox.id}/exec`, { json: { argv: ['node', '-e', APP], background: true } });
  await until(async () => (await previews.request(3000, '/')).text === 'hello', { what: 'the app answers' });
  return previews;
}

const [crowded, other] = [await startApp(), await startApp()];
const outside = Object.values(os.networkInterfaces()).flat().find((each) => each.family === 'IPv4' && !each.internal)?.address;

/** A connection on which an answer has begun and does not end. */
async function occupy(previews, localAddress = '127.0.0.1') {
  const socket = net.connect({ host: '127.0.0.1', port: previews.port, localAddress });
  socket.on('error', () => {});
  socket.write(`GET /open HTTP/1.1\r\nHost: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\n\r\n`);
  const [chunk] = await within('an answer', once(socket, 'data'));
  assert.match(chunk.toString(), /^HTTP\/1\.1 200/);
  return socket;
}

const leave = (sockets) => Promise.all(sockets.map((socket) => { socket.destroy(); return once(socket, 'close'); }));

test('a sandbox with enough visitors turns others away, and another sandbox does not', async () => {
  const visitors = await Promise.all(Array.from({ length: SANDBOX }, () => occupy(crowded)));
  const answer = await crowded.request(3000, '/');
  assert.equal(answer.status, 503);
  assert.equal(answer.json.error.code, 'preview_crowded');
  assert.equal(answer.json.error.retryable, true);
  assert.ok(Number(answer.headers['retry-after']) > 0);
  const page = await crowded.request(3000, '/', { headers: { accept: 'text/html' } });
  assert.deepEqual([page.status, page.headers['content-type']], [503, 'text/html; charset=utf-8']);
  assert.match(page.text, /Too many visitors/);
  assert.equal((await other.request(3000, '/')).text, 'hello');
  await leave(visitors.splice(0, 1));
  await until(async () => (await crowded.request(3000, '/')).status === 200, { what: 'there is room again' });
  await leave(visitors);
});

test('an app that does not answer is given up, as a page and as JSON, and one that is slow after that is not', async () => {
  const open = await occupy(other);
  const [answer, page] = await Promise.all([other.request(3000, '/hang'), other.request(3000, '/hang', { headers: { accept: 'text/html' } })]);
  assert.deepEqual([answer.status, answer.json.error.code, answer.json.error.retryable], [504, 'answer_timeout', true]);
  assert.match(answer.json.error.remediation, /--preview-timeout/);
  assert.deepEqual([page.status, page.headers['content-type']], [504, 'text/html; charset=utf-8']);
  assert.match(page.text, /The app does not answer/);
  assert.equal(open.destroyed || open.readableEnded, false, 'an answer that has begun may pause');
  await leave([open]);
});

test('strangers take no places of a sandbox', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: SANDBOX + 4 });
  const answers = await Promise.all(Array.from({ length: SANDBOX + 4 }, () => crowded.request(3000, '/', { token: false, agent })));
  assert.ok(answers.every((answer) => answer.status === 401), String(answers.map((answer) => answer.status)));
  agent.destroy();
});

test('an address with too many connections is told so, and another address is served', async () => {
  const holders = [...await Promise.all(Array.from({ length: SOURCE / 2 }, () => occupy(crowded))), ...await Promise.all(Array.from({ length: SOURCE / 2 }, () => occupy(other)))];
  const answer = await other.request(3000, '/');
  assert.equal(answer.status, 429);
  assert.equal(answer.json.error.code, 'too_many_connections');
  assert.ok(Number(answer.headers['retry-after']) > 0);
  const page = await other.request(3000, '/', { headers: { accept: 'text/html' } });
  assert.match(page.text, /Too many connections/);
  await leave(holders.splice(-1, 1));
  const socket = await until(() => occupy(other, '127.0.0.2'), { what: 'another address is served' });
  await leave([...holders, socket]);
  await until(async () => (await other.request(3000, '/')).status === 200, { what: 'the first address is served again' });
});

test('one address cannot take all places, however many connections it opens', async () => {
  const sockets = Array.from({ length: 300 }, () => net.connect(other.port, '127.0.0.1'));
  let open = 0;
  for (const socket of sockets) {
    socket.on('connect', () => { open++; });
    socket.on('error', () => {});
    socket.on('close', () => { open--; });
  }
  await until(() => open > 0 && open <= SOURCE + 64, { what: 'the rest is cut' });
  await leave([await occupy(other, '127.0.0.3')]);
  await leave(sockets.filter((socket) => !socket.destroyed));
});

test('an address that asks too fast has to wait, and no other has', async () => {
  assert.ok(outside, 'not proven: this machine has no address but loopback');
  const ask = (host, headers = {}) => new Promise((resolve, reject) => {
    const all = { host: other.host(3000), 'x-api-key': api.token, ...headers };
    const request = http.get({ host, port: other.port, path: '/', headers: all, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => { text += chunk; });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    request.on('error', reject);
  });
  let served = 0;
  let answer;
  do answer = await ask(outside); while (answer.status === 200 && served++ < 100_000);
  assert.equal(answer.status, 429);
  assert.ok(served >= 10 * RATE, `so many at once are served: ${served}`);
  assert.equal(JSON.parse(answer.text).error.code, 'too_many_requests');
  assert.ok(Number(answer.headers['retry-after']) > 0);
  for (let i = 0; i < 20 * RATE; i++) assert.equal((await ask('127.0.0.1')).status, 200);
  await until(async () => (await ask(outside)).status === 200, { every: 200, what: 'it is served again' });
  do answer = await ask(outside, { accept: 'text/html' }); while (answer.status === 200);
  assert.match(answer.text, /Too many requests/);
});

finish();
