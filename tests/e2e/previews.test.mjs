// SPDX-License-Identifier: Apache-2.0
// Previews: a port of a sandbox under a name of its own. Who gets in, what passes through in both directions,
// and what a hostile app or client cannot do.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { openSocket, Previews } from './lib/preview.mjs';
import { sayAs, startApp, startLiar } from './lib/preview_app.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('previews');

const sandbox = await api.create({ ports: [3000, 3001, 3002] });
const { id } = sandbox;
const previews = new Previews(api, sandbox);
const get = (path, options) => previews.request(3000, path, options);
const mine = (options) => ({ host: previews.host(3000), 'x-api-key': api.token, ...options });

await startApp(api, id);
await startLiar(api, id);
await until(async () => (await get('/')).text === 'hello', { what: 'the app answers' });

// Who gets in --------------------------------------------------------------------------------------

test('a private preview opens with the token of its owner, and with nothing else', async () => {
  assert.equal((await get('/')).text, 'hello');
  assert.equal((await get('/', { token: false, headers: { authorization: `Bearer ${api.token}` } })).text, 'hello');
  for (const headers of [{}, { 'x-api-key': 'slt_wrong' }, { authorization: 'Bearer slt_wrong' }, { cookie: 'sandlot_preview=wrong' }]) {
    const answer = await get('/', { token: false, headers });
    assert.equal(answer.status, 401);
    assert.equal(answer.json.error.code, 'preview_private');
  }
});

test('who comes without a cookie is told that a link has to be kept, and who wants the API that it is elsewhere', async () => {
  const remedy = async (headers) => (await get('/', { token: false, headers })).json.error.remediation;
  assert.match(await remedy({}), /its cookie did not come back: curl -L -c cookies LINK$/);
  assert.match(await remedy({ cookie: 'sandlot_preview=wrong' }), /sandlot open ID PORT$/);
  const { code, stderr } = await commandLine(instance).sandlot(['ls'], { env: { SANDLOT_URL: `http://127.0.0.1:${previews.port}`, SANDLOT_TOKEN: api.token } });
  assert.notEqual(code, 0);
  assert.match(stderr, /Here are previews, .* and not the API\.?\n.*--api-bind/);
});

test('one that is not there looks like one that may not be seen', async () => {
  const [strange, foreign] = await Promise.all([
    get('/', { token: false, host: `s-01zzzzzzzzzzzzzzzzzzzzzzzz-3000.preview.localhost:${previews.port}` }), get('/', { token: false })]);
  assert.equal(strange.status, 401);
  assert.deepEqual(strange.body, foreign.body);
});

test('a browser sees a page, not JSON', async () => {
  const answer = await get('/', { token: false, headers: { accept: 'text/html,*/*' } });
  assert.equal(answer.status, 401);
  assert.match(answer.headers['content-type'], /^text\/html/);
  assert.match(answer.text, /This preview is private/);
  assert.match(answer.headers['content-security-policy'], /^default-src 'none'/, 'on the origin of an app');
});

test('a link becomes a cookie of that name alone, opens that port alone, expires and can be revoked', async () => {
  const made = await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: { expires_in_s: 60 } });
  assert.equal(made.status, 201, made.text);
  const url = new URL(made.json.url);
  assert.equal(url.host, previews.host(3000));
  const opened = await get(`/page?a=1&${url.search.slice(1)}&b=2`, { token: false });
  assert.equal(opened.status, 302);
  assert.equal(opened.headers.location, '/page?a=1&b=2');
  const [cookie] = opened.headers['set-cookie'];
  assert.match(cookie, /^sandlot_preview=slp_[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
  const headers = { cookie: `x=1; ${cookie.split(';')[0]}` };
  assert.equal((await get('/', { token: false, headers })).text, 'hello');
  assert.equal((await previews.request(3001, '/', { token: false, headers })).status, 401, 'another port');
  assert.equal((await get('/', { token: false, headers: { ...headers, origin: 'http://evil.example' } })).status, 403, 'another origin');
  for (const [scheme, status] of [['http', 200], ['https', 200], ['ftp', 403]]) assert.equal((await get('/', { token: false, headers: { ...headers, origin: `${scheme}://${previews.host(3000)}` } })).status, status, `${scheme}: our own, or that of a proxy in front`);
  const listed = await api.request('GET', `/v1/sandboxes/${id}/ports/3000/links`);
  assert.deepEqual(listed.json.links.map((link) => link.id), [made.json.id]);
  assert.equal(listed.json.links[0].url, undefined);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  assert.equal((await get('/', { token: false, headers, agent })).status, 200);
  assert.equal((await api.request('DELETE', `/v1/sandboxes/${id}/ports/3000/links/${made.json.id}`)).status, 204);
  assert.equal((await get('/', { token: false, headers, agent })).status, 401, 'also on a connection that is open');
  agent.destroy();
  assert.equal((await api.request('DELETE', `/v1/sandboxes/${id}/ports/3000/links/${made.json.id}`)).status, 404);
  assert.equal((await api.request('POST', `/v1/sandboxes/${id}/ports/0/links`, { json: {} })).status, 400);
  assert.equal((await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: { expires_in_s: 0 } })).status, 400);
});

test('a link leads nowhere else, leaves nothing of itself behind, and opens declared ports only', async () => {
  const made = await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: {} });
  const link = new URL(made.json.url).search.slice(1);
  const secret = link.split('=')[1];
  for (const [target, location] of Object.entries({
    [`//evil.example/?${link}`]: '/evil.example/', [`/\\evil.example/?${link}`]: '/evil.example/', [`/?${link}`]: '/',
    [`/?x${link}&${link}`]: `/?x${link}`, [`/?a=${'b'.repeat(3000)}&${link}`]: `/?a=${'b'.repeat(3000)}`,
  })) {
    const opened = await get(target, { token: false });
    assert.equal(opened.status, 302, target);
    assert.equal(opened.headers.location, location);
  }
  const cookie = `sandlot_preview=${secret}`;
  // Who is let in anyway is redirected too: the app is not to see the secret, nor the page to show it to others.
  assert.equal((await get(`/echo?${link}`)).status, 302, 'with a token');
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  assert.equal((await get('/echo', { token: false, headers: { cookie }, agent })).status, 200);
  assert.equal((await get(`/echo?${link}`, { token: false, headers: { cookie }, agent })).status, 302, 'on a connection that is open');
  agent.destroy();
  assert.equal((await get('/', { token: false, headers: { cookie: `sandlot_preview=tossed; ${cookie}` } })).text, 'hello', 'behind a cookie that a neighbour set');
  const tossed = Array.from({ length: 200 }, (_, i) => `sandlot_preview=slp_${String(i).padStart(43, 'x')}; `).join('');
  assert.equal((await get('/', { token: false, headers: { cookie: tossed + cookie } })).text, 'hello', 'behind as many as a browser keeps');
  assert.equal((await get('/', { token: false, headers: { cookie: tossed } })).status, 401);
  for (const site of ['cross-site', 'same-site']) {
    assert.equal((await get('/', { token: false, headers: { cookie, 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' } })).status, 403, site);
    assert.equal((await get('/', { token: false, headers: { cookie, 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' } })).status, 200, site);
  }
  assertError(await api.request('POST', `/v1/sandboxes/${id}/ports/3999/links`, { json: {} }), 404);
  const brief = await api.create({ ports: [3000] });
  const other = await api.request('POST', `/v1/sandboxes/${brief.id}/ports/3000/links`, { json: {} });
  await api.patch(brief.id, { ports: [] });
  assert.equal((await new Previews(api, brief).request(3000, `/${new URL(other.json.url).search}`, { token: false })).status, 401, 'a port that is declared no more');
});

test('a link that opens nothing any more does not reach the app that something else opens', async () => {
  const made = await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: {} });
  const link = new URL(made.json.url).search.slice(1);
  assert.equal((await api.request('DELETE', `/v1/sandboxes/${id}/ports/3000/links/${made.json.id}`)).status, 204);
  assert.equal((await get(`/echo?${link}`, { token: false })).status, 401);
  const seen = await get(`/echo?a=1&${link}`, { headers: { referer: `http://${previews.host(3000)}/?${link}` } });
  assert.equal(seen.json.url, '/echo?a=1');
  assert.doesNotMatch(seen.text, /sandlot_link/);
  const page = await get(`/echo?${link}&a=1`, { headers: { accept: 'text/html' } });
  assert.deepEqual([page.status, page.headers.location, page.headers['set-cookie']], [302, '/echo?a=1', undefined], 'nor its scripts');
});

test('a WebSocket is cut when what opened it is revoked: a link, a token, or that all may see it', async () => {
  const open = await api.create({ ports: [3000], private: false });
  await startApp(api, open.id);
  const theirs = new Previews(api, open);
  await until(async () => (await theirs.request(3000, '/', { token: false })).text === 'hello', { what: 'the public app' });
  const link = (await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: {} })).json;
  const { owner } = (await api.request('GET', '/v1/tokens')).json.tokens[0];
  const token = (await api.request('POST', '/v1/tokens', { json: { ...owner, scopes: ['read'] } })).json;
  const sockets = {
    link: await openSocket(previews, 3000, `Cookie: sandlot_preview=${new URL(link.url).searchParams.get('sandlot_link')}\r\n`),
    token: await openSocket(previews, 3000, `X-API-Key: ${token.token}\r\n`),
    public: await openSocket(theirs, 3000, ''), stays: await openSocket(previews, 3000, `X-API-Key: ${api.token}\r\n`),
  };
  const cut = async (name, method, path, options) => {
    const answer = await api.request(method, path, options);
    assert.ok(answer.status < 300, answer.text);
    await until(() => sockets[name].ended, { what: `the WebSocket of ${name} is cut` });
  };
  await cut('link', 'DELETE', `/v1/sandboxes/${id}/ports/3000/links/${link.id}`);
  assert.ok(!sockets.token.ended && !sockets.public.ended);
  await cut('token', 'DELETE', `/v1/tokens/${token.id}`);
  assert.ok(!sockets.public.ended);
  await cut('public', 'PATCH', `/v1/sandboxes/${open.id}`, { json: { private: true } });
  assert.ok(!sockets.stays.ended);
});

test('a public one opens to anybody, but only its declared ports', async () => {
  const open = await api.create({ ports: [3000], private: false });
  await startApp(api, open.id);
  const theirs = new Previews(api, open);
  await until(async () => (await theirs.request(3000, '/', { token: false })).text === 'hello', { what: 'the public app' });
  assert.equal((await theirs.request(3001, '/', { token: false })).status, 401);
  assert.equal((await theirs.request(3001, '/', { token: false, headers: { 'x-api-key': 'slt_wrong' } })).status, 401, 'a port that was not declared');
  // Two apps on the same port never meet.
  const both = await Promise.all([get('/echo'), theirs.request(3000, '/echo')]);
  assert.deepEqual(both.map((answer) => answer.json.headers['x-forwarded-host']), [previews.host(3000), theirs.host(3000)]);
});

test('names are exact', async () => {
  const { port } = previews;
  for (const host of [`S-${id.toUpperCase()}-3000.PREVIEW.LOCALHOST:${port}`, `3000-${id}.preview.localhost:${port}`, `s-${id}-3000.preview.localhost`]) {
    assert.equal((await get('/', { host })).text, 'hello', host);
  }
  for (const host of [`s-${id}-03000.preview.localhost`, `s-${id}-65536.preview.localhost`, `s-${id}-0.preview.localhost`, `s-${id}-3000.preview.localhost.evil.com`,
    `x.s-${id}-3000.preview.localhost`, `s-${id}-3000.preview.localhost.`, `s-${id}.preview.localhost`, `s-${id}-3000-1.preview.localhost`, `-3000.preview.localhost`, 'evil.com', '127.0.0.1:1']) {
    assert.equal((await get('/', { host })).status, 421, host);
  }
  assert.match(await previews.raw('GET / HTTP/1.1\r\n\r\n'), /^HTTP\/1.1 400 /);
  assert.match(await previews.raw(`GET / HTTP/1.1\r\nHost: a\r\nHost: ${previews.host(3000)}\r\n\r\n`), /^HTTP\/1.1 400 /);
  assert.match(await previews.raw(`GET http://evil.com/ HTTP/1.1\r\nHost: ${previews.host(3000)}\r\n\r\n`), /^HTTP\/1.1 400 /);
});

test('the form with a path leads there too, without its prefix, and shares no origin', async () => {
  const host = `127.0.0.1:${previews.port}`;
  const answer = await get(`/v1/sandboxes/${id}/preview/3000/echo?x=1`, { host });
  assert.equal(answer.json.url, '/echo?x=1');
  assert.equal(answer.json.headers['x-forwarded-prefix'], `/v1/sandboxes/${id}/preview/3000`);
  assert.match(answer.headers['content-security-policy'], /^sandbox (?!.*allow-same-origin)/);
  assert.equal((await get(`/v1/sandboxes/${id}/preview/3000/echo`, { host, headers: { cookie: 'session=1' } })).json.headers.cookie, undefined, 'cookies of a shared host');
  assert.equal((await get(`/v1/sandboxes/${id}/preview/3000/headers`, { host })).headers['set-cookie'], undefined);
  assert.equal((await get(`/api/sandbox/sessions/${id}/preview?_rsc=1`, { host })).text, 'hello');
  assert.equal((await get(`/v1/sandboxes/${id}/preview/30000x/`, { host })).status, 421);
  assert.equal((await get('/echo', { host })).status, 421);
  assert.equal((await get(`/v1/sandboxes/${id}/preview/3000/echo`, { host, token: false })).status, 401);
});

// What passes --------------------------------------------------------------------------------------

test('the app sees itself as localhost, rebuilt claims, and none of our credentials', async () => {
  const { headers, raw } = (await get('/echo', { headers: { origin: `http://${previews.host(3000)}`, referer: `http://${previews.host(3000)}/page?q`, cookie: 'a=1; sandlot_preview=secret; b=2',
    authorization: `Bearer ${api.token}`, 'x-forwarded-for': '6.6.6.6', forwarded: 'for=6.6.6.6', 'x-real-ip': '6.6.6.6', connection: 'close, X-Drop', 'x-drop': '1', te: 'gzip', 'x-kept': 'yes' } })).json;
  assert.equal(headers.host, 'localhost:3000');
  assert.equal(headers.origin, 'http://localhost:3000');
  assert.equal(headers.referer, 'http://localhost:3000/page?q');
  assert.equal(headers.cookie, 'a=1; b=2');
  assert.equal(headers['x-forwarded-for'], '127.0.0.1');
  assert.equal(headers['x-forwarded-host'], previews.host(3000));
  assert.equal(headers['x-forwarded-proto'], 'http');
  assert.equal(headers['x-kept'], 'yes');
  assert.ok(!JSON.stringify(raw).includes(api.token), 'the token');
  for (const name of ['authorization', 'x-api-key', 'forwarded', 'x-real-ip', 'x-drop', 'te']) assert.equal(headers[name], undefined, name);
  // A credential that is the app's own passes.
  assert.equal((await get('/echo', { headers: { authorization: 'Basic dTpw' } })).json.headers.authorization, 'Basic dTpw');
  assert.equal((await get('/echo', { headers: { origin: 'http://elsewhere.example' } })).json.headers.origin, 'http://elsewhere.example');
});

test('what reaches beyond its page is taken out of answers, the rest stays', async () => {
  const { headers } = await get('/headers');
  assert.deepEqual(headers['set-cookie'], ['a=1; Path=/x', 'b=2; HttpOnly']);
  assert.equal(headers['x-mine'], 'kept');
  assert.equal(headers['access-control-allow-origin'], `http://${previews.host(3000)}`);
  for (const name of ['strict-transport-security', 'clear-site-data', 'alt-svc', 'service-worker-allowed', 'x-accel-redirect']) assert.equal(headers[name], undefined, name);
  assert.equal((await get('/moved')).headers.location, `http://${previews.host(3000)}/there?x=1`);
  assert.equal((await get('/away')).headers.location, 'http://169.254.169.254/latest', 'passed on, not followed');
});

test('bodies of every size and framing arrive whole in both directions', async () => {
  for (const bytes of [0, 1, 65535, 65536, 5_000_000]) {
    const body = crypto.randomBytes(bytes);
    const sha = crypto.createHash('sha256').update(body).digest('hex');
    assert.equal((await get('/echo', { method: 'POST', body, headers: { 'content-length': bytes } })).json.sha, sha, `${bytes} with a length`);
    assert.equal((await get('/echo', { method: 'PUT', body: Readable.from([body]) })).json.sha, sha, `${bytes} in chunks`);
    assert.equal((await get(`/big?n=${bytes}`)).body.length, bytes);
  }
  const chunks = await get('/chunks');
  assert.equal(chunks.text, 'onetwo');
  assert.equal(chunks.trailers['x-sum'], '42');
  assert.equal((await get('/nothing')).status, 204);
  const head = await get('/big?n=1000', { method: 'HEAD' });
  assert.equal(head.headers['content-length'], '1000');
  assert.equal(head.body.length, 0);
  assert.match(await previews.raw(`GET /chunks HTTP/1.0\r\nHost: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\n\r\n`), /\r\n\r\nonetwo$/);
});

test('one connection serves many requests, also when they come at once', async () => {
  const one = `GET /echo?%d HTTP/1.1\r\nHost: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\n`;
  const all = Array.from({ length: 20 }, (_, i) => one.replace('%d', i) + (i === 19 ? 'Connection: close\r\n\r\n' : '\r\n')).join('');
  const urls = [...(await previews.raw(all)).matchAll(/"url":"\/echo\?(\d+)"/g)].map((match) => Number(match[1]));
  assert.deepEqual(urls, Array.from({ length: 20 }, (_, i) => i));
});

test('a stream comes as it is written, and the app learns that its client left', async () => {
  const request = http.request({ host: '127.0.0.1', port: previews.port, path: '/events', headers: mine() });
  request.end();
  const first = await new Promise((resolve, reject) => { request.on('response', (response) => response.once('data', resolve)); request.on('error', reject); });
  assert.equal(first.toString(), 'data: first\n\n');
  request.destroy();
  await until(async () => (await get('/left')).text === 'true', { what: 'the app sees it' });
});

test('a WebSocket passes with its subprotocol and origin, in both directions, until one side ends', async () => {
  const key = crypto.randomBytes(16).toString('base64');
  const head = (extra) => `GET /hmr?token=x HTTP/1.1\r\nHost: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Protocol: vite-hmr\r\n${extra}\r\n`;
  const socket = net.connect(previews.port, '127.0.0.1');
  let text = '';
  socket.on('data', (data) => { text += data.toString('latin1'); });
  socket.write(head(`Origin: http://${previews.host(3000)}\r\n`));
  await until(() => text.includes('\r\n\r\n'), { what: 'the handshake' });
  assert.match(text, /^HTTP\/1.1 101 /);
  assert.match(text, /sec-websocket-protocol: vite-hmr\r\n/i);
  assert.match(text, /x-origin: http:\/\/localhost:3000\r\n/i);
  const sent = crypto.randomBytes(300_000).toString('hex');
  text = '';
  socket.write(sent);
  await until(() => text.length === sent.length, { what: 'all bytes come back' });
  assert.ok(text === sent);
  const ended = new Promise((resolve) => socket.on('end', resolve));
  socket.end();
  await ended;
});

// Hostile clients and apps -----------------------------------------------------------------------------

test('what two parsers might read differently is refused', async () => {
  const head = `Host: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\n`;
  const bad = {
    'length and chunks': `POST /echo HTTP/1.1\r\n${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `POST /echo HTTP/1.1\r\n${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
    'a signed length': `POST /echo HTTP/1.1\r\n${head}Content-Length: +5\r\n\r\nhello`,
    'a folded line': `GET / HTTP/1.1\r\n${head}X-A: b\r\n c\r\n\r\n`,
    'a bare line feed': `GET / HTTP/1.1\n${head}\r\n`,
    'a space before the colon': `GET / HTTP/1.1\r\n${head}X-A : b\r\n\r\n`,
    'a NUL': `GET / HTTP/1.1\r\n${head}X-A: b\0c\r\n\r\n`,
    'a coding that is unknown': `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: gzip\r\n\r\n`,
    'two codings': `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
    'trailers that just fit': `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n0\r\nX: ${'a'.repeat(8189)}\r\n\r\n`,
    'a chunk without a size': `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    'no HTTP at all': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(bad)) assert.match(await previews.raw(bytes), /^HTTP\/1.1 400 /, what);
  assert.match(await previews.raw(`GET / HTTP/1.1\r\n${head}X-A: ${'a'.repeat(40_000)}\r\n\r\n`), /^HTTP\/1.1 431 /);
  assert.match(await previews.raw(`CONNECT a:1 HTTP/1.1\r\n${head}\r\n`), /^HTTP\/1.1 4/);
  assert.match(await previews.raw(`TRACE / HTTP/1.1\r\n${head}\r\n`), /^HTTP\/1.1 405 /);
  assert.match(await previews.raw(`GET / HTTP/1.1\r\n${head}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n`), /^HTTP\/1.1 501 /);
});

test('an app that answers with nonsense harms its own answer only', async () => {
  const say = async (bytes) => { await sayAs(api, id, bytes); return previews.request(3001, '/').catch((error) => error); };
  const bad = {
    'length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!',
    'no status': 'hello there\r\n\r\n',
    'a NUL': 'HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 0\r\n\r\n',
    'an unasked change of protocol': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nfoo',
    'a head without end': `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(70_000)}\r\n\r\n`,
    'only hints': 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1000),
    'nothing': '',
  };
  for (const [what, bytes] of Object.entries(bad)) assert.equal((await say(bytes)).status, 502, what);
  assert.ok((await say('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')) instanceof Error, 'cut, because the answer had begun');
  assert.ok((await say('HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort')) instanceof Error, 'a short answer does not look whole');
  assert.equal((await say(`HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n\r\nevil`)).status, 304, 'has no body, whatever it says');
  assert.ok((await say(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ${'a'.repeat(8189)}\r\n\r\n`)) instanceof Error, 'trailers that are too long');
  const hint = await say('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil');
  assert.equal(hint.text, 'ok', 'what it says too much reaches nobody');
  assert.equal((await say('HTTP/1.0 200 Fine\r\n\r\nuntil the end')).text, 'until the end');
  assert.equal((await get('/')).text, 'hello');
});

test('nothing on a port is said so', async () => {
  const wait = await previews.request(3002, '/', { headers: { accept: 'text/html' } });
  assert.ok([502, 503].includes(wait.status));
  assert.match(wait.text, /Nothing answers on this port|Waiting for the app/);
});

// Waking -------------------------------------------------------------------------------------------

test('1,000 requests at one that sleeps start it once; curiosity and strangers do not wake it', async () => {
  const sleeper = await api.create({ ports: [3000] });
  const theirs = new Previews(api, sleeper);
  assert.equal((await api.verb(sleeper.id, 'stop')).status, 200);
  const status = async () => (await api.request('GET', `/v1/sandboxes/${sleeper.id}`)).json.status;
  assert.equal((await theirs.request(3000, '/', { token: false })).status, 401);
  assert.equal((await theirs.request(3000, '/favicon.ico')).status, 503);
  assert.equal((await theirs.request(3000, '/', { method: 'HEAD' })).status, 503);
  assert.equal(await status(), 'stopped');
  const requests = Array.from({ length: 1000 }, () => theirs.request(3000, '/'));
  await until(async () => (await status()) === 'running', { what: 'it wakes' });
  const started = (await api.request('GET', `/v1/sandboxes/${sleeper.id}`)).json.started_at;
  await startApp(api, sleeper.id);
  const answers = await Promise.all(requests);
  assert.deepEqual([...new Set(answers.map((answer) => `${answer.status} ${answer.text}`))], ['200 hello']);
  assert.equal((await api.request('GET', `/v1/sandboxes/${sleeper.id}`)).json.started_at, started);
});

test('a browser gets a page that reloads itself while a sandbox starts', async () => {
  const sleeper = await api.create({ ports: [3000] });
  const theirs = new Previews(api, sleeper);
  await api.verb(sleeper.id, 'stop');
  const page = await theirs.request(3000, '/', { headers: { accept: 'text/html' } });
  assert.equal(page.status, 503);
  assert.match(page.text, /http-equiv=refresh.*Starting the sandbox/s);
  await until(async () => (await api.request('GET', `/v1/sandboxes/${sleeper.id}`)).json.status === 'running', { what: 'it wakes' });
  assert.match((await theirs.request(3000, '/', { headers: { accept: 'text/html' } })).text, /Waiting for the app/);
});

test('a paused one goes on', async () => {
  assert.equal((await api.verb(id, 'pause')).status, 200);
  assert.equal((await get('/')).text, 'hello');
});

finish();
