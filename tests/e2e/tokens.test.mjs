// SPDX-License-Identifier: Apache-2.0
// Tokens and tickets: made, shown once, used, revoked, expired; and what becomes of those who use them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError, raw } from './lib/client.mjs';
import { apiOf, makeToken, ORDINARY, ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';
import { openWebSocket } from './lib/websocket.mjs';

const { instance, api: admin, finish } = await suite('tokens');
const { ok, sandlot, json: cliJson } = commandLine(instance);
const secrets = []; // all that were given out: none may be found anywhere later

async function token(body) {
  const made = await makeToken(admin, body);
  secrets.push(made.token);
  return made;
}
const revoke = (id, api = admin) => api.request('DELETE', `/v1/tokens/${id}`);
const tokensOf = async (api) => (await api.request('GET', '/v1/tokens')).json.tokens;

const alice = await ownerApi(admin, 'acme', 'alice');
secrets.push(alice.token);
const { id: sandbox } = await alice.create();

test('a token is shown once, and looks as it should', async () => {
  const made = await token({ name: 'ci', organization: 'acme', user: 'ci', scopes: ['run', 'read'], expires_in_s: 3600 });
  assert.match(made.token, new RegExp(`^slt_${made.id}_[0-9a-f]{64}$`));
  assert.deepEqual(made.scopes, ['read', 'run']);
  assert.deepEqual(made.owner, { organization: 'acme', user: 'ci' });
  assert.equal(made.last_used_at, null);
  assert.equal(Date.parse(made.expires_at) - Date.parse(made.created_at), 3600_000);
  const { token: secret, ...rest } = made;
  const again = await admin.request('GET', `/v1/tokens/${made.id}`);
  assert.deepEqual(again.json, rest);
  assert.ok(!(await admin.request('GET', '/v1/tokens')).text.includes(secret.slice(-20)));
  const own = apiOf(admin, secret);
  assert.equal((await own.request('GET', '/v1/version')).status, 200);
  assert.ok((await admin.request('GET', `/v1/tokens/${made.id}`)).json.last_used_at);
  own.agent.destroy();
});

test('without words a token is its maker\'s, for all but administration, for ever', async () => {
  const made = await token({});
  assert.deepEqual(made.scopes, ORDINARY);
  assert.deepEqual(made.owner, { organization: 'default', user: 'admin' });
  assert.equal(made.expires_at, null);
  assert.equal(made.name, null);
});

test('a body that is wrong is 400 and makes nothing', async () => {
  const before = (await tokensOf(admin)).length;
  for (const json of [{ scopes: [] }, { scopes: ['root'] }, { scopes: 'read' }, { scopes: ['read', 7] }, { organization: '' }, { organization: '../x' }, { user: 'a b' }, { user: null },
    { name: 'a\nb' }, { name: '<b>' }, { expires_in_s: 0 }, { expires_in_s: -1 }, { expires_in_s: 1.5 }, { expires_in_s: 1e18 }, { id: 'mine' }, { token: 'slt_mine' }, { hash: 'x' }]) {
    assertError(await admin.request('POST', '/v1/tokens', { json }), 400);
  }
  assert.equal((await tokensOf(admin)).length, before);
});

test('one who is no administrator makes no token, not even a lesser one', async () => {
  const before = (await tokensOf(admin)).length;
  for (const json of [{}, { scopes: ['read'] }, { scopes: ['admin'] }, { organization: 'default', user: 'admin' }]) {
    assertError(await alice.request('POST', '/v1/tokens', { json }), 403);
  }
  assert.equal((await tokensOf(admin)).length, before);
});

test('the list is in pages, and everybody sees their own', async () => {
  const made = [];
  for (let i = 0; i < 5; i++) made.push((await token({ organization: 'pages', user: 'p' })).id);
  const own = await ownerApi(admin, 'pages', 'p', ['read']);
  const seen = [];
  let cursor;
  do {
    const page = (await own.request('GET', '/v1/tokens', { query: { limit: 2, cursor } })).json;
    assert.ok(page.tokens.length <= 2);
    seen.push(...page.tokens.map((one) => one.id));
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  assert.equal(seen.length, 6);
  for (const id of made) assert.ok(seen.includes(id));
  assert.ok((await tokensOf(admin)).length > 6);
  own.agent.destroy();
});

test('a revoked token is refused at once, also on a connection that was kept', async () => {
  const { id, token: secret } = await token({ organization: 'acme', user: 'alice' });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const own = apiOf(admin, secret);
  assert.equal((await own.request('GET', '/v1/sandboxes', { agent })).status, 200);
  const [socket] = Object.values(agent.freeSockets)[0];
  assert.equal((await revoke(id)).status, 204);
  assertError(await own.request('GET', '/v1/sandboxes', { agent }), 401);
  assert.equal(Object.values(agent.freeSockets)[0][0], socket, 'it was the same connection');
  assertError(await revoke(id), 404);
  agent.destroy();
  own.agent.destroy();
});

test('a token may revoke itself and is told so', async () => {
  const { id, token: secret } = await token({ organization: 'acme', user: 'alice', scopes: ['manage'] });
  const own = apiOf(admin, secret);
  assert.equal((await revoke(id, own)).status, 204);
  assertError(await revoke(id, own), 401);
  own.agent.destroy();
});

test('the first token cannot be revoked from outside', async () => {
  assert.equal(assertError(await revoke('admin'), 409).code, 'first_token');
  assert.equal((await admin.request('GET', '/v1/version')).status, 200);
});

/** Opens an event stream; resolves when its head is there. `over` resolves when it ends, however. */
async function openStream(api, route, options = {}) {
  const request = await new Promise((resolve, reject) => {
    const outgoing = api.open('GET', route, { agent: new http.Agent(), headers: { accept: 'text/event-stream' }, ...options }, (error, response) => (error ? reject(error) : resolve({ outgoing, response })));
  });
  const over = new Promise((resolve) => {
    request.response.on('close', resolve);
    request.response.on('error', resolve);
  });
  request.response.resume();
  return { status: request.response.statusCode, over, close: () => request.outgoing.destroy() };
}

test('what is served to a token ends when it is revoked: streams, waits, terminals; others go on', async () => {
  const { id, token: secret } = await token({ organization: 'acme', user: 'alice' });
  const own = apiOf(admin, secret);
  const process = (await alice.tryExec(sandbox, { command: 'sleep 3600', background: true })).json.process.id;
  const events = await openStream(own, `/v1/sandboxes/${sandbox}/events`);
  const output = await openStream(own, `/v1/sandboxes/${sandbox}/processes/${process}/output`);
  const watch = await openStream(own, `/v1/sandboxes/${sandbox}/files/watch`, { query: { path: '/workspace' } });
  const others = await openStream(alice, `/v1/sandboxes/${sandbox}/events`);
  assert.deepEqual([events, output, watch, others].map((one) => one.status), [200, 200, 200, 200]);
  const wait = own.request('GET', `/v1/sandboxes/${sandbox}/processes/${process}/wait`).then(() => 'answered', () => 'cut');
  const { socket } = await openWebSocket(own, `/v1/sandboxes/${sandbox}/terminal`);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  let othersEnded = false;
  others.over.then(() => { othersEnded = true; });
  assert.equal((await revoke(id)).status, 204);
  await within('the streams end', Promise.all([events.over, output.over, watch.over]));
  assert.equal(await within('the wait ends', wait), 'cut');
  assert.equal((await within('the terminal closes', closed)).code, 1008);
  assert.equal((await alice.request('GET', `/v1/sandboxes/${sandbox}`)).status, 200);
  assert.equal(othersEnded, false);
  others.close();
  own.agent.destroy();
  await alice.request('DELETE', `/v1/sandboxes/${sandbox}/processes/${process}`);
});

test('what is served to a token ends when it expires', async () => {
  const { token: secret, expires_at } = await token({ organization: 'acme', user: 'alice', expires_in_s: 8 });
  const own = apiOf(admin, secret);
  const events = await openStream(own, `/v1/sandboxes/${sandbox}/events`);
  const { socket } = await openWebSocket(own, `/v1/sandboxes/${sandbox}/terminal`);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  assert.equal(events.status, 200);
  await within('the stream ends', events.over);
  assert.equal((await within('the terminal closes', closed)).code, 1008);
  assert.ok(Date.now() >= Date.parse(expires_at), 'not before its time');
  assertError(await own.request('GET', '/v1/sandboxes'), 401);
  own.agent.destroy();
});

test('a token works over a restart of the daemon, and a revoked one does not', async () => {
  const kept = await token({ organization: 'acme', user: 'alice' });
  const gone = await token({ organization: 'acme', user: 'alice' });
  await revoke(gone.id);
  const port = admin.port;
  await instance.terminate();
  await instance.start(['--api-bind', `127.0.0.1:${port}`]);
  alice.disconnect();
  const own = apiOf(admin, kept.token);
  assert.equal((await own.request('GET', `/v1/sandboxes/${sandbox}`)).status, 200);
  assertError(await own.request('GET', '/v1/sandboxes', { token: gone.token }), 401);
  own.agent.destroy();
});

test('X-API-Key is the same token, and two that differ are 400', async () => {
  const other = await token({});
  assert.equal((await alice.request('GET', '/v1/sandboxes', { token: null, headers: { 'x-api-key': alice.token } })).status, 200);
  assert.equal((await alice.request('GET', '/v1/sandboxes', { headers: { 'x-api-key': alice.token } })).status, 200);
  assertError(await alice.request('GET', '/v1/sandboxes', { headers: { 'x-api-key': other.token } }), 400);
});

// Tickets ---------------------------------------------------------------------------------------

const EVENTS = `/v1/sandboxes/${sandbox}/events`;
const TERMINAL = `/v1/sandboxes/${sandbox}/terminal`;

async function ticketFor(route, api = alice) {
  const answer = await api.request('POST', '/v1/tickets', { json: { path: route } });
  assert.equal(answer.status, 201, answer.text);
  secrets.push(answer.json.ticket);
  const left = Date.parse(answer.json.expires_at) - Date.now();
  assert.ok(left > 30_000 && left <= 61_000, `${left} ms`);
  return answer.json.ticket;
}

test('a ticket opens one stream, once', async () => {
  const ticket = await ticketFor(EVENTS);
  const stream = await openStream(alice, EVENTS, { token: null, query: { ticket } });
  assert.equal(stream.status, 200);
  stream.close();
  assertError(await alice.request('GET', EVENTS, { token: null, query: { ticket } }), 401);
});

test('a ticket opens a terminal, as a browser does', async () => {
  const ticket = await ticketFor(TERMINAL);
  const headers = { origin: `http://127.0.0.1:${admin.port}` };
  const { socket } = await openWebSocket(alice, TERMINAL, { token: null, query: { ticket }, headers });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.close();
  await within('the terminal closes', closed);
  const { answer } = await openWebSocket(alice, TERMINAL, { token: null, query: { ticket } });
  assertError(answer, 401);
});

test('a ticket is for its path alone, for streams alone, and no more than its token', async () => {
  assertError(await alice.request('GET', EVENTS, { token: null, query: { ticket: await ticketFor(TERMINAL) } }), 401);
  const one = `/v1/sandboxes/${sandbox}`;
  assertError(await alice.request('GET', one, { token: null, query: { ticket: await ticketFor(one) } }), 401);
  assertError(await alice.request('GET', EVENTS, { token: null, query: { ticket: 'tkt_0' } }), 401);
  assertError(await alice.request('GET', EVENTS, { query: { ticket: await ticketFor(EVENTS) } }), 400);
  const reader = await ownerApi(admin, 'acme', 'alice', ['read']);
  const { answer } = await openWebSocket(reader, TERMINAL, { token: null, query: { ticket: await ticketFor(TERMINAL, reader) } });
  assertError(answer, 403);
  const bob = await ownerApi(admin, 'acme', 'bob');
  assertError(await bob.request('GET', EVENTS, { token: null, query: { ticket: await ticketFor(EVENTS, bob) } }), 404);
  reader.agent.destroy();
  bob.agent.destroy();
});

test('a ticket is worth nothing after its token is revoked', async () => {
  const { id, token: secret } = await token({ organization: 'acme', user: 'alice' });
  const own = apiOf(admin, secret);
  const ticket = await ticketFor(EVENTS, own);
  await revoke(id);
  assertError(await alice.request('GET', EVENTS, { token: null, query: { ticket } }), 401);
  own.agent.destroy();
});

test('a token in the query is refused, also beside a good one', async () => {
  for (const name of ['token', 'access_token', 'api_key']) {
    assertError(await alice.request('GET', EVENTS, { token: null, query: { [name]: alice.token } }), 401);
    assertError(await alice.request('GET', '/v1/sandboxes', { query: { [name]: alice.token } }), 401);
    const { answer } = await openWebSocket(alice, TERMINAL, { token: null, query: { [name]: alice.token } });
    assertError(answer, 401);
  }
});

// The command line ------------------------------------------------------------------------------

test('the command line makes, lists and revokes tokens', async () => {
  const made = await sandlot(['token', 'create', '--name', 'deploy', '--organization', 'acme', '--user', 'alice', '--scope', 'read', '--scope', 'manage', '--expires', '1h']);
  assert.equal(made.code, 0, made.stderr);
  const secret = made.stdout.trim();
  secrets.push(secret);
  assert.match(secret, /^slt_[0-9a-z]{26}_[0-9a-f]{64}$/);
  assert.ok(!made.stderr.includes(secret));
  const id = secret.split('_')[1];
  const listed = (await cliJson(['token', 'ls', '-o', 'json'])).tokens.find((one) => one.id === id);
  assert.deepEqual([listed.name, listed.scopes], ['deploy', ['read', 'manage']]);
  assert.match(await ok(['token', 'ls']), new RegExp(`${id} +deploy +acme +alice +read,manage`));
  const own = { SANDLOT_URL: `http://127.0.0.1:${admin.port}`, SANDLOT_TOKEN: secret };
  assert.ok((await ok(['ls', '-q'], { env: own })).includes(sandbox));
  assert.equal((await sandlot(['exec', sandbox, '--', 'true'], { env: own })).code, 77);
  assert.equal((await ok(['token', 'revoke', id])).trim(), id);
  assert.equal((await sandlot(['ls'], { env: own })).code, 77);
  assert.equal((await sandlot(['token', 'revoke', id])).code, 3);
  for (const args of [['token'], ['token', 'revoke'], ['token', 'make'], ['token', 'ls', 'x'], ['token', 'revoke', '../shutdown']]) assert.equal((await sandlot(args)).code, 2, args.join(' '));
});

// Strangers -------------------------------------------------------------------------------------

test('ten thousand wrong tokens are 429 for their source, and nobody else is disturbed', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16, localAddress: '127.0.0.9' });
  const statuses = { 401: 0, 429: 0 };
  let refused;
  const work = async () => {
    for (let i = 0; i < 10_000 / 16; i++) {
      const answer = await admin.request('GET', '/v1/sandboxes', { token: `slt_${i}`, agent });
      statuses[answer.status]++;
      if (answer.status === 429) refused = answer;
    }
  };
  const all = Promise.all(Array.from({ length: 16 }, work));
  const mine = await alice.request('GET', '/v1/sandboxes');
  assert.equal(mine.status, 200);
  await all;
  assert.equal(statuses[401] + statuses[429], 10_000);
  assert.ok(statuses[429] > 5000, JSON.stringify(statuses));
  assert.ok(Number(refused.headers['retry-after']) >= 1);
  assert.equal(refused.json.error.retryable, true);
  assertError(await admin.request('GET', '/v1/sandboxes', { token: 'slt_wrong' }), 401);
  assert.equal((await alice.request('GET', '/v1/sandboxes', { agent })).status, 200, 'a good token from that source');
  agent.destroy();
});

test('a stranger learns nothing from health, metrics, documentation or unknown methods', async () => {
  const stranger = { token: null };
  assert.equal((await admin.request('GET', '/healthz', stranger)).text, 'ok\n');
  assert.equal((await admin.request('GET', '/readyz', stranger)).text, 'ready\n');
  for (const route of ['/metrics', '/v1', '/v1/audit']) assertError(await admin.request('GET', route, stranger), [401, 404]);
  for (const method of ['OPTIONS', 'TRACE', 'BREW', 'PROPFIND']) {
    const answer = await raw(admin.port, `${method} /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nConnection: close\r\n\r\n`);
    assert.equal(answer.status, 405, method);
    assert.ok(!answer.text.includes(sandbox));
  }
});

test('no secret is found in the database, its log, the daemon\'s log, a command line or an environment', async () => {
  await alice.exec(sandbox, 'true');
  assert.ok(secrets.length > 10);
  const files = fs.readdirSync(instance.dataDir, { recursive: true }).map((name) => path.join(instance.dataDir, name))
    .filter((name) => fs.lstatSync(name).isFile() && path.basename(name) !== 'token' && fs.lstatSync(name).size < 2 ** 30); // disks are the sandboxes' own
  assert.ok(files.some((name) => name.endsWith('sandlot.db')) && files.some((name) => name.endsWith('sandlot.db-wal')), files.join());
  const tails = [admin.token, ...secrets].map((secret) => secret.slice(-24));
  for (const name of files) {
    const bytes = fs.readFileSync(name);
    for (const tail of tails) assert.ok(!bytes.includes(tail), `${name} holds a secret`);
  }
  for (const info of [instance.daemon, instance.keeper, ...instance.sandboxProcesses()]) {
    for (const tail of tails) {
      assert.ok(!proc.cmdline(info.pid).includes(tail));
      assert.ok(!proc.environ(info.pid).join('\n').includes(tail));
    }
  }
  for (const tail of tails) assert.ok(!instance.log().includes(tail));
  const dump = execFileSync('sqlite3', ['-readonly', path.join(instance.dataDir, 'state/sandlot.db'), 'SELECT id, hex(hash) FROM tokens'], { encoding: 'utf8' });
  assert.match(dump, /^admin\|[0-9A-F]{64}$/m);
});

test('the owners leave nothing behind', async () => {
  await purgeAll(alice);
  alice.agent.destroy();
});

finish();
