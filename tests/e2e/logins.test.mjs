// SPDX-License-Identifier: Apache-2.0
// Sessions of browsers: begun with a token or a link, for all that the token may, from the console's own pages alone.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { makeToken, ownerApi } from './lib/owners.mjs';
import { Previews } from './lib/preview.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';
import { openWebSocket } from './lib/websocket.mjs';

const { instance, api: admin, finish } = await suite('logins', { width: 2 });
const { ok, json: cliJson } = commandLine(instance);
const OWN = { 'sec-fetch-site': 'same-origin' };
const secrets = [];

/** Signs in and gives { cookie, name, login, attributes }. */
async function signIn(token, headers = {}) {
  const answer = await admin.request('POST', '/v1/login', { json: { token }, token: null, headers });
  assert.equal(answer.status, 201, answer.text);
  return { login: answer.json, ...cookieOf(answer) };
}

function cookieOf(answer) {
  const [pair, ...attributes] = answer.headers['set-cookie'][0].split('; ');
  secrets.push(pair.split('=')[1]);
  return { cookie: pair, name: pair.split('=')[0], attributes };
}

/** A request as a page of the console makes it, or another with other headers. */
const browse = (session, method, route, { headers = OWN, ...options } = {}) =>
  admin.request(method, route, { token: null, ...options, headers: { cookie: session.cookie, ...headers } });

const alice = await ownerApi(admin, 'acme', 'alice');
const { id: sandbox } = await alice.create({ ports: [8000] });

test('a cookie is had for a token, and does what the token does and no more', async () => {
  const session = await signIn(alice.token, { 'user-agent': 'Test/1.0 (é)' });
  assert.equal(session.name, `sandlot_session_${admin.port}`);
  assert.deepEqual(session.attributes.sort(), ['HttpOnly', 'Max-Age=604800', 'Path=/', 'SameSite=Strict']);
  assert.deepEqual(session.login.owner, { organization: 'acme', user: 'alice' });
  assert.equal(session.login.address, '127.0.0.1');
  assert.match(session.login.agent, /^Test\/1\.0 \(\?+\)$/);
  assert.equal((await browse(session, 'GET', `/v1/sandboxes/${sandbox}`)).json.id, sandbox);
  assert.equal((await browse(session, 'PATCH', `/v1/sandboxes/${sandbox}`, { json: { labels: { by: 'browser' } } })).status, 200);
  assert.equal((await browse(session, 'POST', `/v1/sandboxes/${sandbox}/exec`, { json: { command: 'echo hi' } })).json.stdout, 'hi\n');
  assert.equal(assertError(await browse(session, 'POST', '/v1/tokens', { json: {} }), 403).code, 'missing_scope');
  const who = (await browse(session, 'GET', '/v1/login')).json;
  assert.deepEqual({ owner: who.owner, login: who.login }, { owner: session.login.owner, login: session.login.id });
  assert.equal((await alice.request('GET', '/v1/login')).json.login, null);
  const entries = (await alice.request('GET', '/v1/audit', { query: { action: 'login.create' } })).json.entries;
  assert.equal(entries[0].object, session.login.id);
});

test('what is no token signs nobody in, and is counted and noted as anywhere else', async () => {
  for (const json of [{ token: 'slt_wrong' }, { code: 'tkt_wrong' }]) assertError(await admin.request('POST', '/v1/login', { json, token: null }), 401);
  for (const json of [{}, { token: alice.token, code: 'x' }, { token: 1 }]) assertError(await admin.request('POST', '/v1/login', { json, token: null }), 400);
  assertError(await admin.request('GET', '/v1/sandboxes', { token: null, headers: { cookie: `sandlot_session_${admin.port}=sls_${'0'.repeat(64)}` } }), 401);
  assertError(await admin.request('GET', '/v1/sandboxes', { token: null, headers: { cookie: `sandlot_session_${admin.port}=${alice.token}` } }), 401);
  const blind = await makeToken(admin, { organization: 'acme', user: 'alice', scopes: ['run'] });
  assert.equal(assertError(await admin.request('POST', '/v1/login', { json: { token: blind.token }, token: null }), 403).code, 'missing_scope');
});

test('a cookie counts only for requests of our own pages', async () => {
  const session = await signIn(alice.token);
  const change = { json: { labels: { stolen: 'yes' } } };
  const own = `http://127.0.0.1:${admin.port}`;
  for (const headers of [{}, { 'sec-fetch-site': 'none' }, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'cross-site' },
    { origin: 'http://evil.test' }, { origin: `http://127.0.0.1:${admin.port + 1}` }, { origin: `http://localhost:${admin.port}` }, { origin: 'null' }]) {
    assert.equal(assertError(await browse(session, 'PATCH', `/v1/sandboxes/${sandbox}`, { ...change, headers }), 403).code, 'foreign_origin', JSON.stringify(headers));
  }
  for (const headers of [{ 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'cross-site' }]) {
    assert.equal(assertError(await browse(session, 'GET', `/v1/sandboxes/${sandbox}`, { headers }), 403).code, 'foreign_origin');
  }
  for (const headers of [{ 'sec-fetch-site': 'none' }, {}]) assert.equal((await browse(session, 'GET', `/v1/sandboxes/${sandbox}`, { headers })).status, 200);
  assert.equal((await browse(session, 'PATCH', `/v1/sandboxes/${sandbox}`, { json: { labels: {} }, headers: { origin: own } })).status, 200);
  assert.deepEqual((await alice.get(sandbox)).labels, {});
  // A header that a page cannot have sent weighs more.
  assertError(await browse(session, 'GET', '/v1/sandboxes', { headers: { ...OWN, authorization: 'Bearer slt_wrong' } }), 401);
});

test('terminals and event streams take the cookie, and are cut with the session', async () => {
  const session = await signIn(alice.token);
  const other = await signIn(alice.token);
  const origin = `http://127.0.0.1:${admin.port}`;
  const terminal = `/v1/sandboxes/${sandbox}/terminal`;
  const open = (headers) => openWebSocket(admin, terminal, { token: null, headers: { cookie: session.cookie, ...headers } });
  for (const headers of [{}, { origin: 'http://evil.test' }, { origin: `http://localhost:${admin.port}` }]) assertError((await open(headers)).answer, 403);
  const { socket } = await open({ origin });
  assert.ok(socket);
  const stream = await new Promise((resolve, reject) => {
    admin.open('GET', '/v1/events', { token: null, headers: { cookie: session.cookie, ...OWN }, agent: admin.newAgent() }, (error, response) => (error ? reject(error) : resolve(response)));
  });
  assert.equal(stream.statusCode, 200);
  const ended = new Promise((resolve) => { stream.on('close', resolve); stream.on('error', resolve); stream.resume(); });
  const listed = (await alice.request('GET', '/v1/logins')).json.logins;
  assert.ok([session, other].every(({ login }) => listed.some((one) => one.id === login.id && !one.current)));
  assert.equal((await browse(session, 'GET', '/v1/logins')).json.logins.find((one) => one.current).id, session.login.id);
  assert.equal((await alice.request('DELETE', `/v1/logins/${session.login.id}`)).status, 204);
  await within('the stream and the terminal are cut', Promise.all([ended, socket.closed]));
  assertError(await browse(session, 'GET', '/v1/sandboxes'), 401);
  assert.equal((await browse(other, 'GET', '/v1/sandboxes')).status, 200);
  assert.equal(assertError(await alice.request('DELETE', `/v1/logins/${session.login.id}`), 404).code, 'login_not_found');
});

test('whoever signs out is out', async () => {
  const session = await signIn(alice.token);
  assertError(await browse(session, 'POST', '/v1/logout', { headers: {} }), 403);
  const answer = await browse(session, 'POST', '/v1/logout');
  assert.equal(answer.status, 204);
  assert.match(answer.headers['set-cookie'][0], new RegExp(`^${session.name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict$`));
  assertError(await browse(session, 'GET', '/v1/sandboxes'), 401);
});

test('a session ends with its token: revoked, or expired', async () => {
  const made = await makeToken(admin, { organization: 'acme', user: 'alice' });
  const session = await signIn(made.token);
  assert.equal(session.login.token, made.id);
  assert.equal((await browse(session, 'GET', '/v1/sandboxes')).status, 200);
  assert.equal((await admin.request('DELETE', `/v1/tokens/${made.id}`)).status, 204);
  assertError(await browse(session, 'GET', '/v1/sandboxes'), 401);
  const short = await makeToken(admin, { organization: 'acme', user: 'alice', expires_in_s: 2 });
  const brief = await signIn(short.token);
  assert.equal(brief.login.expires_at, short.expires_at);
  await until(() => Date.now() > Date.parse(short.expires_at), { what: 'the token expires' });
  assert.equal(assertError(await browse(brief, 'GET', '/v1/sandboxes'), 401).code, 'session_over');
});

test('another owner sees and ends no session but their own; an administrator all', async () => {
  const session = await signIn(alice.token);
  const bob = await ownerApi(admin, 'acme', 'bob');
  assert.deepEqual((await bob.request('GET', '/v1/logins')).json.logins, []);
  assertError(await bob.request('DELETE', `/v1/logins/${session.login.id}`), 404);
  assert.ok((await admin.request('GET', '/v1/logins')).json.logins.some((one) => one.id === session.login.id));
  bob.agent.destroy();
});

test('a link signs one browser in, once; sandlotd and the command line print one', async () => {
  const printed = /(http:\S+\/login\?code=\S+)/.exec(instance.log());
  assert.ok(printed, 'the daemon prints a link when it starts');
  const link = (await ok(['console'])).trim();
  assert.match(link, new RegExp(`^http://127\\.0\\.0\\.1:${admin.port}/login\\?code=tkt_[0-9a-f]{64}$`));
  for (const one of [printed[1], link]) {
    const { pathname, search } = new URL(one);
    const follow = (headers) => admin.request('GET', pathname + search, { token: null, headers });
    assert.equal(assertError(await follow({ 'sec-fetch-site': 'cross-site' }), 403).code, 'foreign_origin');
    const answer = await follow({ 'sec-fetch-site': 'none', accept: 'text/html' });
    assert.equal(answer.status, 303, answer.text);
    assert.equal(answer.headers.location, '/');
    const session = cookieOf(answer);
    const who = (await browse(session, 'GET', '/v1/login')).json;
    assert.deepEqual([who.token, who.scopes], ['admin', ['admin']]);
    assert.equal((await follow({ accept: 'text/html' })).headers.location, '/login#expired');
    assertError(await follow({}), 401);
    // What a thief could do with it ends with it.
    assert.equal(assertError(await browse(session, 'POST', '/v1/tickets', { json: { path: '/login' } }), 403).code, 'needs_token');
    assert.equal((await browse(session, 'POST', '/v1/tickets', { json: { path: '/v1/events' } })).status, 201);
  }
  const { ticket } = (await alice.request('POST', '/v1/tickets', { json: { path: '/login' } })).json;
  assert.equal((await admin.request('POST', '/v1/login', { json: { code: ticket }, token: null })).json.owner.user, 'alice');
  const sessions = (await cliJson(['console', 'ls', '-o', 'json'])).logins;
  assert.ok(sessions.length > 2);
  assert.equal((await ok(['console', 'end', sessions.at(-1).id])).trim(), sessions.at(-1).id);
});

test('the cookie opens no preview, and no app in a sandbox gets to see it', async () => {
  const session = await signIn(alice.token);
  const echo = 'from http.server import *\nclass H(BaseHTTPRequestHandler):\n def do_GET(s):\n  s.send_response(200); s.end_headers(); s.wfile.write(str(s.headers).encode())\nHTTPServer(("", 8000), H).serve_forever()';
  await alice.put(sandbox, '/workspace/echo.py', echo);
  await alice.tryExec(sandbox, { command: 'python3 /workspace/echo.py', background: true });
  const previews = new Previews(alice, await alice.get(sandbox));
  const headers = { cookie: `${session.cookie}; __Host-${session.cookie}; mine=1`, ...OWN };
  for (const token of [false, true]) {
    const answer = await until(async () => {
      const one = await previews.request(8000, '/', { token, headers });
      return (!token || one.status === 200) && one;
    }, { what: 'the app answers its owner' });
    assert.equal(answer.status === 200, token, answer.text);
    assert.ok(!answer.text.includes('sls_'), answer.text);
    if (token) assert.match(answer.text, /cookie: mine=1\n/i);
  }
});

test('sessions outlast a restart of the daemon, and no secret of them is stored', async () => {
  const session = await signIn(alice.token);
  const before = await signIn(admin.token);
  const { port } = admin; // which is in the name of the cookie
  await instance.terminate();
  await instance.start(['--api-bind', `127.0.0.1:${port}`]);
  assert.equal((await browse(session, 'GET', '/v1/sandboxes')).status, 200);
  assert.equal((await browse(before, 'GET', '/v1/version')).status, 200);
  for (const name of fs.readdirSync(path.join(instance.dataDir, 'state'))) {
    const file = path.join(instance.dataDir, 'state', name);
    if (!fs.statSync(file).isFile()) continue;
    const bytes = fs.readFileSync(file);
    for (const secret of secrets.filter((one) => one)) assert.ok(!bytes.includes(secret), `${name} has a secret`);
  }
});

test('the owners leave nothing behind', async () => {
  await purgeAll(alice);
  alice.agent.destroy();
});

finish();
