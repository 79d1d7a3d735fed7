// SPDX-License-Identifier: Apache-2.0
// Ports one by one: who may see each, what opens it, who wakes its sandbox; and the forms with a path in front.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { accountOf } from './lib/account.mjs';
import { commandLine, speaks } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { makeToken, ownerApi } from './lib/owners.mjs';
import { openSocket, Previews } from './lib/preview.mjs';
import { startApp } from './lib/preview_app.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const ISSUER = 'https://id.example';
const secret = crypto.randomBytes(32);
const keysFile = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'preview-keys-')), 'keys.json');
fs.chmodSync(path.dirname(keysFile), 0o755);
fs.writeFileSync(keysFile, JSON.stringify({ keys: [{ kty: 'oct', kid: 'k', k: secret.toString('base64url') }] }), { mode: 0o600 });
if (process.env.E2E_USER) fs.chownSync(keysFile, accountOf(process.env.E2E_USER).uid, accountOf(process.env.E2E_USER).gid);

const { instance, api, finish } = await suite('previews_ports', { args: ['--jwt-issuer', ISSUER, '--jwt-audience', 'sandlot', '--jwt-keys', keysFile] });
const { ok, sandlot } = commandLine(instance);
const { owner } = (await api.request('GET', '/v1/tokens')).json.tokens[0];

/** A signed token of the owner, for a while. */
function signed(more = {}, key = secret) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: ISSUER, aud: 'sandlot', exp: Math.floor(Date.now() / 1000) + 600, org: owner.organization, sub: owner.user, scope: 'read', ...more };
  const text = `${part({ alg: 'HS256', kid: 'k' })}.${part(claims)}`;
  return `${text}.${crypto.createHmac('sha256', key).update(text).digest('base64url')}`;
}

async function withApp(body, port = 3000) {
  const sandbox = await api.create(body);
  await startApp(api, sandbox.id, { port });
  const previews = new Previews(api, sandbox);
  await until(async () => (await previews.request(port, '/')).text === 'hello', { what: 'the app answers' });
  return previews;
}

const previews = await withApp({ ports: [3000, { port: 3001, public: true }] });
await startApp(api, previews.id, { port: 3001 });
await until(async () => (await previews.request(3001, '/')).text === 'hello', { what: 'the second app answers' });
const stranger = (port, options) => previews.request(port, '/', { token: false, ...options });
const statusOf = async (id) => (await api.get(id)).status;

// What is said of a port -----------------------------------------------------------------------------

test('a port is a number, or an object where it is not like the others, and is told as it was said', async () => {
  const plain = await api.create({ ports: [3000, { port: 8080 }, { port: 8081, prefix: 'strip' }] });
  assert.deepEqual(plain.ports, [3000, 8080, 8081]);
  const { id, ports, previews: urls } = await api.create({ ports: [3000, { port: 8080, public: true, prefix: 'keep' }, { port: 8081, public: false }] });
  assert.deepEqual(ports, [3000, { port: 8080, public: true, prefix: 'keep' }, { port: 8081, public: false }]);
  assert.deepEqual(Object.keys(urls), ['3000', '8080', '8081']);
  assert.deepEqual((await api.get(id)).ports, ports);
  const again = await api.request('PATCH', `/v1/sandboxes/${id}`, { json: { ports } });
  assert.deepEqual(again.json.ports, ports, 'what was read can be written');
  const patched = await api.request('PATCH', `/v1/sandboxes/${id}/ports/3000`, { json: { public: true } });
  assert.equal(patched.status, 200, patched.text);
  assert.deepEqual(patched.json, { port: 3000, public: true, prefix: 'strip' });
  assert.deepEqual((await api.request('PATCH', `/v1/sandboxes/${id}/ports/8080`, { json: { prefix: 'strip' } })).json, { port: 8080, public: true, prefix: 'strip' });
  assert.deepEqual((await api.get(id)).ports, [{ port: 3000, public: true }, { port: 8080, public: true }, { port: 8081, public: false }]);
  assert.deepEqual((await api.request('PATCH', `/v1/sandboxes/${id}/ports/9`, { json: {} })).json, { port: 9, public: false, prefix: 'strip' }, 'one that had no preview');
  assert.equal((await api.get(id)).ports.at(-1), 9);
  await api.patch(id, { ports: Array.from({ length: 64 }, (_, i) => i + 1) });
  assertError(await api.request('PATCH', `/v1/sandboxes/${id}/ports/65`, { json: {} }), 409, /64 ports/);
  await api.patch(id, { ports });
  for (const bad of [{ public: 1 }, { public: null }, { prefix: 'cut' }, { prefix: true }, { port: 1 }]) assertError(await api.request('PATCH', `/v1/sandboxes/${id}/ports/3000`, { json: bad }), 400);
  for (const bad of [[{}], [{ port: 0 }], [{ port: 80, public: 'yes' }], [{ port: 80, prefix: '' }], [{ port: 80, name: 'x' }], [80, { port: 80 }]]) assertError(await api.request('PATCH', `/v1/sandboxes/${id}`, { json: { ports: bad } }), 400);
});

// Who gets in ----------------------------------------------------------------------------------------

test('a public port opens without a link, the private ones of the same sandbox do not', async () => {
  assert.equal((await stranger(3001)).text, 'hello');
  assert.equal((await stranger(3000)).status, 401);
  const open = await withApp({ private: false, ports: [3000, { port: 3001, public: false }] });
  assert.equal((await open.request(3000, '/', { token: false })).text, 'hello');
  assert.equal((await open.request(3001, '/', { token: false })).status, 401, 'private, although the sandbox is not');
});

test('the owner opens a port and closes it again, at once and for those who are inside', async () => {
  const mine = await withApp({ ports: [3000] });
  const open = async (is) => assert.equal((await api.request('PATCH', `/v1/sandboxes/${mine.id}/ports/3000`, { json: { public: is } })).status, 200);
  await open(true);
  const socket = await openSocket(mine, 3000, '');
  await open(false);
  assert.equal((await mine.request(3000, '/', { token: false })).status, 401);
  await until(() => socket.ended, { what: 'the WebSocket is cut' });
  const bob = await ownerApi(api, 'other', 'bob');
  assertError(await bob.request('PATCH', `/v1/sandboxes/${mine.id}/ports/3000`, { json: { public: true } }), 404);
  bob.disconnect();
});

test('a signed token opens it like one of ours, in either header, and does not reach the app', async () => {
  for (const headers of [{ authorization: `Bearer ${signed()}` }, { 'x-api-key': signed() }]) {
    const answer = await stranger(3000, { headers });
    assert.equal(answer.text, 'hello');
    for (const port of [3000, 3001]) {
      const seen = (await previews.request(port, '/echo', { token: false, headers })).json;
      assert.ok(!JSON.stringify(seen.raw).includes('eyJ'), `not even on ${port === 3001 ? 'a public' : 'a private'} port`);
    }
  }
});

test('what is no token of the owner opens nothing; what is none of ours is the app\'s', async () => {
  const theirs = await makeToken(api, { organization: 'other', user: 'bob', scopes: ['read'] });
  const blind = await makeToken(api, { ...owner, scopes: ['run'] });
  const wrong = {
    'a foreign signed token': signed({ sub: 'bob' }), 'an expired one': signed({ exp: Math.floor(Date.now() / 1000) - 600 }), 'one for somebody else': signed({ aud: 'else' }),
    'one of another key': signed({}, crypto.randomBytes(32)), 'one without the scope': signed({ scope: 'openid' }), 'the token of another owner': theirs.token, 'a token that may not look': blind.token,
  };
  for (const [what, token] of Object.entries(wrong)) {
    for (const headers of [{ authorization: `Bearer ${token}` }, { 'x-api-key': token }]) assert.equal((await stranger(3000, { headers })).status, 401, what);
  }
  const own = `Bearer ${signed({ iss: 'https://app.example' })}`;
  const app = (await previews.request(3001, '/echo', { token: false, headers: { authorization: own } })).json;
  assert.equal(app.headers.authorization, own, 'a signed token of the app passes');
  const both = (await previews.request(3000, '/echo', { token: false, headers: { authorization: own, 'x-api-key': signed() } })).json;
  assert.equal(both.headers.authorization, own);
  assert.equal(both.headers['x-api-key'], undefined);
  const foreign = (await previews.request(3001, '/echo', { token: false, headers: { 'x-api-key': signed({ sub: 'bob' }) } })).json;
  assert.equal(foreign.headers['x-api-key'], undefined, 'nor does one of ours, whoever\'s it is');
  assert.match(await previews.raw(`GET / HTTP/1.1\r\nHost: ${previews.host(3000)}\r\nX-API-Key: a\r\nX-API-Key: ${api.token}\r\n\r\n`), /^HTTP\/1.1 400 /, 'two of them');
});

test('a token of the owner opens a port that was not declared; to all others it is not there', async () => {
  await startApp(api, previews.id, { port: 3002 });
  await until(async () => (await previews.request(3002, '/')).text === 'hello', { what: 'the undeclared app answers its owner' });
  assert.equal((await stranger(3002, { headers: { authorization: `Bearer ${signed()}` } })).text, 'hello', 'by a signed token too');
  const theirs = await makeToken(api, { organization: 'other', user: 'bob', scopes: ['read'] });
  for (const headers of [{}, { 'x-api-key': theirs.token }, { cookie: 'sandlot_preview=slp_wrong' }]) {
    const [undeclared, silent] = await Promise.all([3002, 3999].map((port) => stranger(port, { headers })));
    assert.equal(undeclared.status, 401);
    assert.deepEqual(undeclared.body, silent.body, 'whether anything listens is not told');
  }
  const other = await makeToken(api, { ...owner, scopes: ['read'] });
  const socket = await openSocket(previews, 3002, `X-API-Key: ${other.token}\r\n`);
  assert.equal((await api.request('DELETE', `/v1/tokens/${other.id}`)).status, 204);
  await until(() => socket.ended, { what: 'the WebSocket of the revoked token is cut' });
});

test('who sends a token that opens nothing is told what is wrong with it, and no more', async () => {
  const theirs = await makeToken(api, { organization: 'other', user: 'bob', scopes: ['read'] });
  const blind = await makeToken(api, { ...owner, scopes: ['run'] });
  const absent = `s-01zzzzzzzzzzzzzzzzzzzzzzzz-3000.preview.localhost:${previews.port}`;
  for (const [token, reason] of [[theirs.token, /not a token of this preview's owner/], [blind.token, /scope read/], ['slt_wrong', /token is not valid/]]) {
    const headers = { authorization: `Bearer ${token}` };
    const [there, missing] = await Promise.all([stranger(3000, { headers }), stranger(3000, { headers, host: absent })]);
    assert.equal(there.json.error.code, 'preview_private');
    assert.match(there.json.error.message, reason);
    assert.deepEqual(missing.body, there.body, 'the same where there is no such sandbox');
  }
  assert.match((await stranger(3000)).json.error.message, /opens with a link/);
});

test('a WebSocket that a signed token opened ends when that expires, and not when others are revoked', async () => {
  // An expired one is good for a minute more, because clocks differ.
  const soon = Math.floor(Date.now() / 1000) - 60 + 8;
  const socket = await openSocket(previews, 3000, `Authorization: Bearer ${signed({ exp: soon })}\r\n`);
  const lasting = await openSocket(previews, 3000, `Authorization: Bearer ${signed()}\r\n`);
  const other = await makeToken(api, { ...owner, scopes: ['read'] });
  assert.equal((await api.request('DELETE', `/v1/tokens/${other.id}`)).status, 204);
  await until(() => socket.ended, { what: 'the WebSocket is cut' });
  assert.ok(!lasting.ended);
  lasting.close();
});

// Who wakes it ---------------------------------------------------------------------------------------

test('only who may see it wakes it: by a public port anybody, by a private one its owner', async () => {
  const { id, ...sandbox } = await api.create({ ports: [3000, { port: 3001, public: true }] });
  const mine = new Previews(api, { id, ...sandbox });
  const theirs = await makeToken(api, { organization: 'other', user: 'bob', scopes: ['read'] });
  const link = (await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: {} })).json;
  const cookie = `sandlot_preview=${new URL(link.url).searchParams.get('sandlot_link')}`;
  assert.equal((await api.verb(id, 'stop')).status, 200);
  const page = { accept: 'text/html' };
  const refused = [{}, page, { authorization: 'Bearer slt_wrong' }, { 'x-api-key': theirs.token }, { authorization: `Bearer ${theirs.token}`, ...page }, { authorization: `Bearer ${signed({ sub: 'bob' })}` },
    { 'x-api-key': signed({ exp: 1 }) }, { cookie: 'sandlot_preview=slp_wrong' }];
  for (const headers of refused) {
    for (const [host, target] of [[mine.host(3000), '/'], [`3000-${id}.preview.localhost:${mine.port}`, '/'], [`127.0.0.1:${mine.port}`, `/v1/sandboxes/${id}/preview/3000/`], [`localhost:${mine.port}`, `/api/sandbox/sessions/${id}/preview/`]]) {
      assert.equal((await mine.request(3000, target, { token: false, host, headers })).status, 401, JSON.stringify({ headers, host, target }));
    }
  }
  assert.equal((await mine.request(3000, '/', { token: false, headers: { cookie, origin: 'http://evil.example' } })).status, 403);
  assert.equal((await mine.request(3002, '/', { token: false, headers: { 'x-api-key': theirs.token, ...page } })).status, 401, 'a port that was not declared');
  assert.equal((await mine.request(3001, '/', { token: false, headers: page, method: 'HEAD' })).status, 503);
  assert.equal((await mine.request(3000, '/', { token: false, headers: page, host: `evil.example:${mine.port}` })).status, 421);
  assert.equal(await statusOf(id), 'stopped', 'nobody of them woke it');
  for (const headers of [{ authorization: `Bearer ${signed()}` }, { 'x-api-key': api.token }, { cookie }]) {
    assert.match((await mine.request(3000, '/', { token: false, headers: { ...headers, ...page } })).text, /Starting the sandbox|Waiting for the app/);
    await until(async () => (await statusOf(id)) === 'running', { what: `${Object.keys(headers)} wakes it` });
    assert.equal((await api.verb(id, 'stop')).status, 200);
  }
  assert.match((await mine.request(3001, '/', { token: false, headers: page })).text, /Starting the sandbox/);
  await until(async () => (await statusOf(id)) === 'running', { what: 'anybody wakes it by its public port' });
});

test('a wake that races with stop, delete or purge leaves nothing behind', async () => {
  for (const end of [(id) => api.verb(id, 'stop'), (id) => api.request('DELETE', `/v1/sandboxes/${id}`), (id) => api.verb(id, 'purge')]) {
    for (let i = 0; i < 3; i++) {
      const sandbox = await api.create({ ports: [{ port: 3000, public: true }] });
      const mine = new Previews(api, sandbox);
      await api.verb(sandbox.id, 'stop');
      const visits = Array.from({ length: 8 }, () => mine.request(3000, '/', { token: false, headers: { accept: 'text/html' } }));
      const ended = await end(sandbox.id);
      assert.ok(ended.status < 300, ended.text);
      for (const { status } of await Promise.all(visits)) assert.ok([401, 502, 503].includes(status), `${status}`);
      if (ended.status !== 200) assert.equal((await api.request('GET', `/v1/sandboxes/${sandbox.id}`)).status, 404, 'nothing comes back');
    }
  }
});

// By path --------------------------------------------------------------------------------------------

test('by path an app sees the path in front or not, as its port says, in both forms', async () => {
  const sandbox = await api.create({ ports: [{ port: 3000, prefix: 'keep' }, 3001] });
  for (const port of [3000, 3001]) await startApp(api, sandbox.id, { port });
  const mine = new Previews(api, sandbox);
  const host = `localhost:${mine.port}`;
  for (const port of [3000, 3001]) await until(async () => (await mine.request(port, '/')).text === 'hello', { what: `the app on ${port}` });
  const seen = async (target) => (await mine.request(3000, target, { host })).json;
  const v1 = (port) => `/v1/sandboxes/${sandbox.id}/preview/${port}`;
  const session = `/api/sandbox/sessions/${sandbox.id}/preview`;
  const stripped = await seen(`${v1(3001)}/echo?a=1`);
  assert.equal(stripped.url, '/echo?a=1');
  assert.equal(stripped.headers['x-forwarded-prefix'], v1(3001));
  // This app finds its own page below any path that ends with it.
  const kept = await seen(`${v1(3000)}/echo?a=1`);
  assert.equal(kept.url, `${v1(3000)}/echo?a=1`);
  assert.equal(kept.headers['x-forwarded-prefix'], undefined);
  assert.equal((await seen(`${session}/echo`)).url, `${session}/echo`, 'the first port');
  assert.equal((await mine.request(3000, '/echo')).json.url, '/echo', 'by name there is nothing to cut');
  const moved = await mine.request(3001, `${v1(3001)}/home`, { host });
  assert.equal(moved.headers.location, `${v1(3001)}/there`, 'a redirect stays below the path');
  assert.equal((await mine.request(3000, '/home')).headers.location, '/there', 'by name it is left alone');
});

test('by path a page has an origin of its own, and may read only what all may', async () => {
  const sandbox = await api.create({ ports: [3000, { port: 3001, public: true }] });
  for (const port of [3000, 3001]) await startApp(api, sandbox.id, { port });
  const mine = new Previews(api, sandbox);
  const ask = (port, options) => mine.request(port, `/v1/sandboxes/${sandbox.id}/preview/${port}/headers`, { host: `localhost:${mine.port}`, ...options });
  for (const port of [3000, 3001]) await until(async () => (await ask(port)).status === 200, { what: `the app on ${port}` });
  const closed = await ask(3000), open = await ask(3001, { token: false, headers: { origin: 'null' } });
  for (const { headers } of [closed, open]) assert.match(headers['content-security-policy'], /^sandbox (?!.*allow-same-origin)/);
  assert.equal(closed.headers['access-control-allow-origin'], undefined);
  assert.equal(open.headers['access-control-allow-origin'], '*');
});

test('by path what styles and scripts ask for at the root is found below the path, whatever the method', async () => {
  const sandbox = await api.create({ ports: [{ port: 3001, public: true }] });
  await startApp(api, sandbox.id, { port: 3001 });
  const mine = new Previews(api, sandbox);
  const [host, prefix] = [`localhost:${mine.port}`, `/v1/sandboxes/${sandbox.id}/preview/3001`];
  const from = (referer, options) => mine.request(3001, '/echo?a=1', { host, token: false, headers: { referer, origin: 'null' }, ...options });
  await until(async () => (await mine.request(3001, `${prefix}/`, { host })).text === 'hello', { what: 'the app' });
  for (const options of [{}, { method: 'POST', body: 'x' }]) {
    const { status, headers } = await from(`http://${host}${prefix}/main.js`, options);
    assert.deepEqual([status, headers.location, headers['access-control-allow-origin']], [307, `${prefix}/echo?a=1`, '*']);
  }
  assert.equal((await from(`http://evil.test${prefix}/main.js`)).status, 421);
  assert.equal((await from(`http://${host}/elsewhere`)).status, 421);
  assert.equal((await from(`http://${mine.host(3001)}/`, { host: mine.host(3001) })).status, 200, 'by name nothing is astray');
  const answer = await mine.request(3001, `${prefix}/echo`, { host, token: false });
  assert.equal(answer.headers['referrer-policy'], 'no-referrer-when-downgrade', 'so that they say where they are');
});

// The command line -------------------------------------------------------------------------------------

test('the command line says who may see a port, and opens it', async () => {
  const id = (await ok(['create', '-p', '3000', '-p', '3001:public,keep'])).trim();
  api.made.add(id);
  assert.deepEqual((await api.get(id)).ports, [3000, { port: 3001, public: true, prefix: 'keep' }]);
  assert.match(await ok(['open', id, '3000']), /^http:\/\/s-.*-3000\.preview\.localhost:\d+\/\?sandlot_link=slp_[\w-]{43}\n$/);
  assert.match(await ok(['open', '--public', id, '3000']), /^http:\/\/s-.*-3000\.preview\.localhost:\d+\n$/);
  assert.deepEqual((await api.get(id)).ports[0], { port: 3000, public: true });
  assert.match(await ok(['open', '--private', '--prefix', 'keep', id, '3000']), /sandlot_link=/);
  assert.deepEqual((await api.get(id)).ports[0], { port: 3000, public: false, prefix: 'keep' });
  speaks(await sandlot(['open', '--public', '--private', id, '3000']), /--public does not go with --private/);
  assert.match(await ok(['open', id, '9']), /-9\.preview.*sandlot_link=/, 'a port that nobody named before');
  assert.match(await ok(['open', '--public', id, '10']), /-10\.preview/);
  assert.deepEqual((await api.get(id)).ports.slice(-2), [9, { port: 10, public: true }]);
  speaks(await sandlot(['open', id, '0']), /port/);
  speaks(await sandlot(['create', '-p', '3000:open']), /public, private, keep or strip, not "open"/);
});

finish();
