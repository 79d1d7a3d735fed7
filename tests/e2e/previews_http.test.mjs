// SPDX-License-Identifier: Apache-2.0
// HTTP through a preview as it may be spoken: the odd but legal, the large, the slow, many at a time, and what a hostile
// app does to its own clients at most.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { IS_SANITIZED } from './lib/instance.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Previews } from './lib/preview.mjs';
import { background, sayAs, startApp, startLiar } from './lib/preview_app.mjs';
import * as proc from './lib/proc.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('previews_http');
const MEBIBYTE = 2 ** 20;
const GROWTH = (IS_SANITIZED ? 512 : 32) * MEBIBYTE; // of the daemon, whatever passes through it

// Streams that both sides can make without keeping them: a cipher of zeros.
const STREAMS = `
const http = require('http'), crypto = require('crypto'), { pipeline, Readable } = require('stream');
function* zeros(n) { const block = Buffer.alloc(65536); for (; n > 0; n -= block.length) yield n >= block.length ? block : block.subarray(0, n); }
http.createServer((req, res) => {
  const n = Number(new URL(req.url, 'http://x').searchParams.get('n'));
  if (req.method === 'GET') return pipeline(Readable.from(zeros(n)), crypto.createCipheriv('aes-128-ctr', Buffer.alloc(16, 7), Buffer.alloc(16)), res, () => {});
  const hash = crypto.createHash('sha256'); let bytes = 0;
  req.on('data', (data) => { hash.update(data); bytes += data.length; }).on('end', () => res.end(JSON.stringify({ bytes, sha: hash.digest('hex') })));
}).listen(3002, '127.0.0.1');
`;

function* zeros(bytes) {
  const block = Buffer.alloc(65536);
  for (let left = bytes; left > 0; left -= block.length) yield left >= block.length ? block : block.subarray(0, left);
}
const cipher = () => crypto.createCipheriv('aes-128-ctr', Buffer.alloc(16, 7), Buffer.alloc(16));

const sandbox = await api.create({ ports: [3000, 3001, 3002] });
const { id } = sandbox;
const previews = new Previews(api, sandbox);
await startApp(api, id);
await startLiar(api, id);
await api.put(id, '/tmp/streams.js', STREAMS);
await background(api, id, ['node', '/tmp/streams.js']);
const get = (path, options) => previews.request(3000, path, options);
for (const port of [3000, 3001, 3002]) await until(async () => (await previews.request(port, '/')).status === 200, { what: `the app on ${port}` });

const head = (method, target, port, ...lines) => [`${method} ${target} HTTP/1.1`, `Host: ${previews.host(port)}`, `X-API-Key: ${api.token}`, ...lines].join('\r\n') + '\r\n\r\n';
const say = async (bytes, options) => { await sayAs(api, id, bytes); return previews.request(3001, '/', options); };

/** Opens a stream of events and gives what comes, as it comes. */
function listen(path) {
  const heard = { text: '', ended: false };
  const request = http.request({ host: '127.0.0.1', port: previews.port, path, headers: { host: previews.host(3000), 'x-api-key': api.token }, agent: false });
  request.on('response', (response) => response.on('data', (data) => { heard.text += data; }).on('error', () => {}).on('close', () => { heard.ended = true; }));
  request.on('error', () => {});
  request.end();
  heard.close = () => request.destroy();
  return heard;
}
const events = listen('/ticks'); // is open as long as the tests of this file last

// Odd but legal ----------------------------------------------------------------------------------------

test('answers without a body: HEAD, 204, 304, 205, and what says a length all the same', async () => {
  const asked = await get('/big?n=12345', { method: 'HEAD' });
  assert.deepEqual([asked.status, asked.headers['content-length'], asked.body.length], [200, '12345', 0]);
  assert.equal((await get('/nothing')).status, 204);
  const same = await say('HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 99\r\n\r\n');
  assert.deepEqual([same.status, same.headers.etag, same.body.length], [304, '"a"', 0]);
  assert.equal((await say('HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n')).status, 205);
  const chunked = await say('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', { method: 'HEAD' });
  assert.deepEqual([chunked.status, chunked.body.length], [200, 0]);
});

test('hints come before the answer, which is the one that counts', async () => {
  const hinted = await say('HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone');
  assert.deepEqual([hinted.status, hinted.text], [200, 'done']);
});

test('who waits for 100 Continue gets it from the app, and then the answer', async () => {
  const socket = net.connect(previews.port, '127.0.0.1');
  let text = '';
  socket.on('data', (data) => { text += data; });
  socket.write(head('POST', '/echo', 3000, 'Content-Length: 5', 'Expect: 100-continue', 'Connection: close'));
  await until(() => text.startsWith('HTTP/1.1 100 Continue\r\n\r\n'), { what: 'go on' });
  socket.write('hello');
  await until(() => text.includes('"bytes":5'), { what: 'the answer' });
  socket.destroy();
});

test('trailers pass in both directions, but for those that would change what a message means', async () => {
  const body = '5\r\nhello\r\n0\r\nX-Sum: 42\r\nX-API-Key: stolen\r\nContent-Length: 9\r\n\r\n';
  const answer = await previews.raw(head('POST', '/echo', 3000, 'Transfer-Encoding: chunked', 'Trailer: X-Sum', 'Connection: close') + body);
  assert.match(answer, /"trailers":\{"x-sum":"42"\}/);
  assert.equal((await get('/chunks')).trailers['x-sum'], '42');
});

test('an answer without a length lasts until its end, however its lines are written', async () => {
  assert.equal((await say('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it')).text, 'all of it');
  assert.equal((await say('HTTP/1.0 200 OK\r\n\r\nolder')).text, 'older');
  assert.equal((await say('HTTP/1.1 200\r\nContent-Length:2\r\n\r\nok')).text, 'ok', 'no reason, no space');
  assert.equal((await say('HTTP/1.1 299 Something Else\r\nContent-Length: 2\r\nX-Empty:\r\nX-After: 1\r\n\r\nok')).headers['x-after'], '1');
});

test('each of many cookies stays, in its order', async () => {
  const lines = Array.from({ length: 30 }, (_, i) => `Set-Cookie: c${i}=${'v'.repeat(100)}; Path=/`);
  const answer = await say(`HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`);
  assert.deepEqual(answer.headers['set-cookie'].map((line) => line.split('=')[0]), lines.map((_, i) => `c${i}`));
});

test('long lines pass up to 32 KiB of head and 8 KiB of address; more is refused with its name', async () => {
  const long = 'x'.repeat(12_000);
  assert.equal((await get('/echo', { headers: { 'x-long': long } })).json.headers['x-long'], long);
  await sayAs(api, id, `HTTP/1.1 200 OK\r\nX-Long: ${'y'.repeat(30_000)}\r\nContent-Length: 2\r\n\r\nok`);
  assert.match(await previews.raw(head('GET', '/', 3001, 'Connection: close')), /X-Long: y{30000}\r\n/);
  const target = `/echo?${'q'.repeat(8000)}`;
  assert.equal((await get(target)).json.url, target);
  assert.match(await previews.raw(head('GET', `/${'q'.repeat(9000)}`, 3000)), /^HTTP\/1.1 414 [\s\S]*target_too_long/);
  assert.match(await previews.raw(head('GET', '/', 3000, `X-Long: ${'x'.repeat(40_000)}`)), /^HTTP\/1.1 431 /);
});

test('an address with a host in it is refused, whichever host', async () => {
  for (const host of ['evil.example', previews.host(3000)]) assert.match(await previews.raw(head('GET', `http://${host}/`, 3000)), /^HTTP\/1.1 400 [\s\S]*bad_target/);
  assert.match(await previews.raw(head('OPTIONS', '*', 3000)), /^HTTP\/1.1 400 /);
});

test('an app that does not want to change the protocol says so, and the connection goes on', async () => {
  await sayAs(api, id, 'HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno');
  const refused = await previews.raw(head('GET', '/', 3001, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==') + head('GET', '/', 3001, 'Connection: close'));
  assert.deepEqual([...refused.matchAll(/HTTP\/1.1 (\d+)/g)].map((match) => match[1]), ['426', '426']);
});

test('ranges and conditions are the app\'s business, and pass', async () => {
  const { headers } = (await get('/echo', { headers: { range: 'bytes=0-1', 'if-none-match': '"a"', 'if-modified-since': 'Mon, 16 Nov 2026 07:00:00 GMT' } })).json;
  assert.deepEqual([headers.range, headers['if-none-match']], ['bytes=0-1', '"a"']);
  const part = await say('HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/10\r\nContent-Length: 2\r\n\r\nab');
  assert.deepEqual([part.status, part.headers['content-range'], part.text], [206, 'bytes 0-1/10', 'ab']);
});

test('what is compressed stays so: nothing is unpacked on the way', async () => {
  const bomb = zlib.gzipSync(Buffer.alloc(64 * MEBIBYTE));
  const answer = await say(Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`), bomb]).toString('latin1'));
  assert.equal(answer.headers['content-encoding'], 'gzip');
  assert.ok(answer.body.equals(bomb));
});

test('methods that few know pass as they are', async () => {
  for (const method of ['PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'REPORT']) assert.equal((await get('/echo', { method })).json.method, method);
});

// Large and slow ---------------------------------------------------------------------------------------

test('200 MB pass whole in each direction, and through memory that does not grow with them', async () => {
  const bytes = 200_000_000;
  const expected = crypto.createHash('sha256');
  const stream = cipher();
  for (const block of zeros(bytes)) expected.update(stream.update(block));
  const sha = expected.digest('hex');
  const before = proc.residentBytes(instance.daemon.pid);
  const up = await previews.request(3002, '/', { method: 'POST', body: Readable.from(zeros(bytes)).pipe(cipher()) });
  assert.deepEqual(JSON.parse(up.text), { bytes, sha });
  const down = crypto.createHash('sha256');
  let peak = 0;
  await new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port: previews.port, path: `/?n=${bytes}`, headers: { host: previews.host(3002), 'x-api-key': api.token }, agent: false });
    request.on('error', reject).on('response', (response) => response.on('data', (data) => { down.update(data); peak = Math.max(peak, proc.residentBytes(instance.daemon.pid)); }).on('end', resolve).on('error', reject)).end();
  });
  assert.equal(down.digest('hex'), sha);
  assert.ok(peak - before < GROWTH, `${(peak - before) / MEBIBYTE} MiB more`);
});

test('an app that floods a client who does not read is stopped, not kept in memory', async () => {
  const before = proc.residentBytes(instance.daemon.pid);
  const sockets = Array.from({ length: 20 }, () => net.connect(previews.port, '127.0.0.1').on('error', () => {}));
  for (const socket of sockets) {
    socket.pause();
    socket.write(head('GET', `/?n=${100 * MEBIBYTE}`, 3002));
  }
  // While they stand still, another is served all that it wants.
  for (let i = 0; i < 20; i++) assert.equal((await previews.request(3002, '/?n=1000000')).body.length, 1_000_000);
  assert.ok(proc.residentBytes(instance.daemon.pid) - before < GROWTH);
  for (const socket of sockets) socket.destroy();
});

test('an app that speaks slowly, falls silent or tears its connection harms its own answer only', async () => {
  await api.put(id, '/tmp/keep', '');
  await sayAs(api, id, 'HTTP/1.1 200 OK\r\nContent-Le');
  const silent = net.connect(previews.port, '127.0.0.1').on('error', () => {});
  silent.write(head('GET', '/', 3001));
  const slow = listen('/dribble');
  await until(() => slow.text === 'abcdef', { what: 'a letter at a time' });
  assert.equal((await get('/')).text, 'hello');
  assert.ok(!silent.destroyed);
  silent.destroy();
  await api.exec(id, 'rm /tmp/keep');
  slow.close();
  await assert.rejects(get('/tear'), /ECONNRESET|aborted|socket hang up/);
  assert.equal((await get('/')).text, 'hello');
});

test('10,000 frames through a WebSocket come back in order, and none is lost', async () => {
  const socket = net.connect(previews.port, '127.0.0.1');
  const chunks = [];
  socket.on('data', (data) => chunks.push(data));
  const all = () => Buffer.concat(chunks).toString('latin1');
  socket.write(head('GET', '/', 3000, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='));
  await until(() => all().includes('\r\n\r\n'), { what: 'the handshake' });
  const start = all().length;
  let sent = '';
  for (let i = 0; i < 10_000; i++) {
    const frame = `\x82\x84\0\0\0\0${String(i).padStart(4, '0')}`;
    sent += frame;
    socket.write(frame, 'latin1');
  }
  await until(() => all().length - start >= sent.length, { what: 'all of them' });
  assert.ok(all().slice(start) === sent);
  socket.destroy();
});

test('a page of another origin opens no WebSocket with the cookie of a link', async () => {
  const link = (await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: {} })).json;
  const cookie = `Cookie: sandlot_preview=${new URL(link.url).searchParams.get('sandlot_link')}`;
  const ask = (...lines) => previews.raw([`GET / HTTP/1.1`, `Host: ${previews.host(3000)}`, cookie, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', ...lines].join('\r\n') + '\r\n\r\n');
  for (const origin of ['http://evil.example', 'null', `http://s-${id}-3001.preview.localhost:${previews.port}`, `https://${previews.host(3000)}.evil.example`]) assert.match(await ask(`Origin: ${origin}`), /^HTTP\/1.1 403 /, origin);
});

// Where it leads -----------------------------------------------------------------------------------------

test('a preview leads into its sandbox only: what listens on the host is not there, what listens on ::1 inside is', async () => {
  let reached = 0;
  const servers = await Promise.all(['127.0.0.1', '::1'].map((host) => new Promise((resolve) => { const server = http.createServer((_, res) => { reached++; res.end('the host'); }).listen(0, host, () => resolve(server)); })));
  const ports = servers.map((server) => server.address().port);
  const other = await api.create({ ports: [...ports, 3000] });
  const theirs = new Previews(api, other);
  for (const port of ports) assert.match((await theirs.request(port, '/', { headers: { accept: 'text/html' } })).text, /Waiting for the app|Nothing answers/);
  assert.equal(reached, 0);
  for (const server of servers) server.close();
  await background(api, other.id, ['python3', '-m', 'http.server', '3000', '--bind', '::1', '--directory', '/etc']);
  await until(async () => (await theirs.request(3000, '/passwd')).status === 200, { what: 'the app on ::1' });
  assert.equal((await api.request('GET', `/v1/sandboxes/${id}/preview/3000/`)).status, 404, 'the API serves no preview');
});

test('two tenants with apps on the same port, both under load, never meet', async () => {
  const tenants = await Promise.all(['alice', 'bob'].map(async (user) => {
    const own = await ownerApi(api, 'acme', user);
    const one = await own.create({ ports: [3000] });
    await startApp(own, one.id, { name: `only for ${user}` });
    return { user, own, agent: new http.Agent({ keepAlive: true, maxSockets: 16 }), theirs: new Previews(own, one) };
  }));
  for (const { user, theirs } of tenants) await until(async () => (await theirs.request(3000, '/')).text === `only for ${user}`, { what: `the app of ${user}` });
  const rounds = 1000;
  const load = async ({ user, agent, theirs }) => {
    const secrets = Array.from({ length: rounds }, () => `${user}-${crypto.randomUUID()}`);
    await Promise.all(secrets.map(async (secret, i) => {
      if (i % 2) return assert.equal((await theirs.request(3000, '/', { agent })).text, `only for ${user}`);
      const { json } = await theirs.request(3000, `/echo?${secret}`, { agent, method: 'POST', body: secret, headers: { 'x-secret': secret, 'content-length': secret.length } });
      assert.deepEqual([json.url, json.headers['x-secret'], json.headers['x-forwarded-host'], json.sha], [`/echo?${secret}`, secret, theirs.host(3000), crypto.createHash('sha256').update(secret).digest('hex')]);
    }));
  };
  await Promise.all(tenants.map(load));
  // On one connection, a request for each in turn: the second is not led where the first was.
  const [alice, bob] = tenants;
  const turns = [alice, bob, alice, bob].map(({ own, theirs }, i) => `GET / HTTP/1.1\r\nHost: ${theirs.host(3000)}\r\nX-API-Key: ${own.token}\r\n${i === 3 ? 'Connection: close\r\n' : ''}\r\n`);
  assert.deepEqual([...(await previews.raw(turns.join(''))).matchAll(/only for (alice|bob)/g)].map((match) => match[1]), ['alice', 'bob', 'alice', 'bob']);
  const crossed = `GET / HTTP/1.1\r\nHost: ${alice.theirs.host(3000)}\r\nX-API-Key: ${alice.own.token}\r\n\r\nGET / HTTP/1.1\r\nHost: ${bob.theirs.host(3000)}\r\nX-API-Key: ${alice.own.token}\r\nConnection: close\r\n\r\n`;
  assert.deepEqual([...(await previews.raw(crossed)).matchAll(/HTTP\/1.1 (\d+)/g)].map((match) => match[1]), ['200', '401']);
  for (const { own, agent } of tenants) {
    agent.destroy();
    await purgeAll(own);
    own.disconnect();
  }
});

test('a stream of events that was opened first is open still', async () => {
  assert.ok(!events.ended);
  const { length } = events.text;
  assert.equal((await get('/tick')).status, 200);
  await until(() => events.text.length > length, { what: 'another event' });
  events.close();
});

finish();
