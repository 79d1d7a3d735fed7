// SPDX-License-Identifier: Apache-2.0
// Every route of the document, times every kind of caller who may not: what each is answered, and that
// nothing came of it. A route that nobody has thought of here fails.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { image, layoutArchive, registryServer } from './lib/images.mjs';
import { makeToken, ORDINARY, ownerApi } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { until } from './lib/wait.mjs';
import { openWebSocket } from './lib/websocket.mjs';

const MINE = image([[{ name: 'a', data: 'mine' }]], { config: { Env: ['MINE=yes'] } });
const EVIL = image([[{ name: 'a', data: 'evil' }]], { config: { Env: ['EVIL=yes'] } });
const registry = await registryServer({ 'evil:v1': EVIL });
const { api: admin, finish } = await suite('authorization', { args: ['--registry-plain', registry.host] });
const NOBODY = '01arz3ndektsv4rrffq69g5fav';

const document = (await admin.request('GET', '/openapi.json', { token: null })).json;
const operations = Object.entries(document.paths).flatMap(([route, item]) =>
  Object.entries(item).map(([method, operation]) => ({ route, method: method.toUpperCase(), name: `${method.toUpperCase()} ${route}`, operation })));
const guarded = operations.filter(({ operation }) => operation.security.length > 0);
const OPEN = ['GET /healthz', 'GET /openapi.json', 'GET /readyz', 'POST /v1/login'];

// What is sent where a route wants a body or a parameter: good enough to be carried out.
const ONE = '/v1/sandboxes/{id}';
const PROCESS = `${ONE}/processes/{process}`;
const QUOTA = '/v1/quotas/{organization}';
const PROJECT = '/v1/projects/{project}';
const FILE = { path: '/workspace/canary' };
const RAW = { body: 'overwritten', headers: { 'content-type': 'application/octet-stream' } };
const REQUESTS = {
  'POST /e2b/{call}': { json: {} },
  'POST /e2b/data/{id}/envd/files': { query: FILE, ...RAW },
  'POST /mcp': { json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sandbox_list', arguments: {} } } },
  'POST /v1/sandboxes': { json: {} },
  'POST /v1/sandboxes/ensure': { json: { project: 'canary' } },
  'POST /v1/launches': { json: { project: NOBODY } },
  'POST /v1/launches/{launch}/retry': { json: {} },
  [`POST ${ONE}/launch`]: { json: {} },
  'POST /v1/tokens': { json: { organization: 'acme', user: 'alice' } },
  'POST /v1/tickets': { json: { path: '/v1/sandboxes/x/events' } },
  [`PUT ${QUOTA}`]: { json: { sandboxes: 0 } },
  [`PUT ${QUOTA}/{user}`]: { json: { sandboxes: 0 } },
  'POST /v1/orphans/{id}/adopt': { json: {} },
  'PUT /v1/secrets/{secret}': { json: { value: 'stolen', url: 'https://evil.test' } },
  'POST /v1/templates': { json: { name: 'own', image: `${registry.host}/evil:v1` } },
  'POST /v1/templates/{template}/build': { json: {} },
  'POST /v1/templates/prune': { json: { dry_run: true } },
  'PATCH /v1/templates/{template}': { json: { env: { EVIL: 'yes' } } },
  'PUT /v1/templates/{template}/archive': { body: layoutArchive(EVIL), headers: { 'content-type': 'application/x-tar' } },
  'PUT /v1/templates/{template}/files': { body: tar([{ name: 'evil', data: 'x' }]), headers: { 'content-type': 'application/x-tar' } },
  'POST /v1/projects': { json: { name: 'own' } },
  [`PATCH ${PROJECT}`]: { json: { labels: { stolen: 'yes' } } },
  [`POST ${PROJECT}/sandboxes`]: { json: {} },
  [`PUT ${PROJECT}/files`]: { query: { path: 'canary.txt' }, ...RAW },
  [`POST ${PROJECT}/files`]: { body: '--x\r\nContent-Disposition: form-data; name="f"; filename="canary.txt"\r\n\r\nstolen\r\n--x--\r\n', headers: { 'content-type': 'multipart/form-data; boundary=x' } },
  [`PATCH ${PROJECT}/files/{file}`]: { json: { path: 'stolen.txt' } },
  [`PUT ${PROJECT}/archive`]: { body: '', headers: { 'content-type': 'application/x-tar' } },
  [`POST ${ONE}/snapshots`]: { json: {} },
  [`POST ${ONE}/dependencies`]: { json: { node: ['stolen-package'] } },
  [`POST ${ONE}/restore`]: { json: { snapshot: NOBODY } },
  [`POST ${ONE}/fork`]: { json: {} },
  [`PATCH ${ONE}`]: { json: { labels: { stolen: 'yes' } } },
  [`POST ${ONE}/exec`]: { json: { command: 'echo stolen > /workspace/canary' } },
  [`POST ${ONE}/executions`]: { json: { language: 'shell', code: 'echo stolen > /workspace/canary' } },
  'PUT /v1/functions/{function}': { json: { language: 'shell', code: 'handler() { echo evil > "$RESULT"; }' } },
  'POST /v1/functions/{function}/invoke': { json: {} },
  'POST /v1/executions': { json: { language: 'shell', code: 'id -u > "$RESULT"' } },
  [`POST ${ONE}/contexts`]: { json: { language: 'python' } },
  [`POST ${PROCESS}/stdin`]: { json: { data: 'stolen\n' } },
  [`POST ${PROCESS}/signal`]: { json: { signal: 'SIGKILL' } },
  [`POST ${PROCESS}/resize`]: { json: { cols: 10, rows: 10 } },
  [`PATCH ${ONE}/ports/{port}`]: { json: { public: true } },
  [`POST ${ONE}/ports/{port}/links`]: { json: {} },
  [`POST ${ONE}/files/mkdir`]: { json: { path: '/workspace/stolen' } },
  [`POST ${ONE}/files/move`]: { json: { from: '/workspace/canary', to: '/workspace/stolen' } },
  [`GET ${ONE}/output/search`]: { query: { q: 'secret' } },
  [`GET ${ONE}/files`]: { query: FILE },
  [`HEAD ${ONE}/files`]: { query: FILE },
  [`PUT ${ONE}/files`]: { query: FILE, ...RAW },
  [`DELETE ${ONE}/files`]: { query: FILE },
  [`GET ${ONE}/files/list`]: { query: { path: '/workspace' } },
  [`GET ${ONE}/files/stat`]: { query: FILE },
  [`GET ${ONE}/files/watch`]: { query: { path: '/workspace' } },
  [`GET ${ONE}/files/archive`]: { query: { path: '/workspace' } },
  [`PUT ${ONE}/files/archive`]: { query: { path: '/workspace' }, ...RAW },
};

// Routes that name no object, or one that everybody has of their own: what another owner may see of them.
const COLLECTIONS = {
  'GET /e2b/{call}': ({ json }) => assert.deepEqual(json, []), // each call has the scope of its route: e2b.test.mjs
  'POST /e2b/{call}': ({ status }) => assert.equal(status, 201),
  'POST /mcp': ({ json }) => assert.deepEqual(json.result.structuredContent.sandboxes, []), // each tool has the scope of its route: mcp.test.mjs
  'GET /v1/version': () => {},
  'GET /v1/drivers': ({ json }) => assert.deepEqual(json.drivers.map((one) => Object.keys(one)), [['name', 'used', 'capabilities']]),
  'GET /v1/login': ({ json }, caller) => assert.deepEqual(json.owner, { organization: caller.organization, user: caller.user }),
  'GET /v1/logins': ({ json }) => assert.deepEqual(json.logins, []),
  'POST /v1/logout': ({ status }) => assert.equal(status, 204), // nobody's session is the token's
  'GET /v1/sandboxes': ({ json }) => assert.deepEqual(json.sandboxes.map((one) => one.id), []),
  'GET /v1/audit': ({ json }, caller) => assert.ok(json.entries.every((one) => one.organization === caller.organization)),
  'GET /v1/quotas': ({ json }, caller) => assert.ok(json.quotas.every((one) => one.organization === caller.organization && [null, caller.user].includes(one.user))),
  'GET /v1/secrets': ({ json }) => assert.deepEqual(json.secrets.filter((one) => one.url !== 'https://evil.test'), []),
  'PUT /v1/secrets/{secret}': ({ json }) => assert.equal(json.url, 'https://evil.test'), // one's own, of the same name
  'DELETE /v1/secrets/{secret}': ({ status }) => assert.equal(status, 204),
  'GET /v1/launches': ({ json }) => assert.deepEqual(json.launches, []),
  'GET /v1/launches/stats': ({ json }) => assert.equal(json.launches, 0),
  'GET /v1/jobs': ({ json }) => assert.deepEqual(json.jobs.filter((one) => one.target !== 'own'), []),
  'GET /v1/executions': ({ json }) => assert.deepEqual(json.executions.filter((one) => one.sandbox_id !== null), []),
  'GET /v1/functions': ({ json }) => assert.deepEqual(json.functions.filter((one) => one.name !== 'canary' || one.version !== 1), []),
  'PUT /v1/functions/{function}': async ({ json }, caller) => { // one's own, of the same name
    assert.equal(json.version, 1);
    assert.equal((await caller.api.request('DELETE', '/v1/functions/canary')).status, 204);
  },
  'GET /v1/executions/stats': ({ json }) => assert.deepEqual(json.stats.filter((one) => one.sandbox_id !== null), []),
  'POST /v1/executions': ({ json }) => assert.deepEqual([json.status, json.sandbox_id], ['succeeded', null]),
  'DELETE /v1/build-cache': ({ json }) => assert.deepEqual(json, { removed: 0 }),
  'GET /v1/templates': ({ json }) => assert.ok(json.templates.every((one) => one.shared || one.name === 'own')),
  'POST /v1/templates': ({ json }) => assert.equal(json.name, 'own'),
  // One's own, of the same name.
  'PUT /v1/templates/{template}/archive': async ({ json }, caller) => {
    assert.equal(json.env.EVIL, 'yes');
    assert.equal((await caller.api.request('DELETE', '/v1/templates/canary')).status, 204);
  },
  'PUT /v1/templates/{template}/files': ({ json }) => assert.equal(json.entries, 1), // of no template yet
  'GET /v1/projects': ({ json }) => assert.deepEqual(json.projects.filter((one) => !['own', 'canary'].includes(one.name)), []),
  'POST /v1/projects': async ({ json }, caller) => {
    assert.equal(json.owner.organization, caller.organization);
    assert.equal((await caller.api.request('DELETE', '/v1/projects/own')).status, 204);
  },
  'GET /v1/snapshots': ({ json }) => assert.deepEqual(json.snapshots, []),
  'GET /v1/tokens': ({ json }, caller) => assert.ok(json.tokens.every((one) => one.owner.organization === caller.organization && one.owner.user === caller.user)),
  'POST /v1/sandboxes': ({ json }, caller) => assert.equal(json.owner.organization, caller.organization),
  'POST /v1/sandboxes/ensure': ({ json }) => assert.notEqual(json.id, victim.sandbox),
  'POST /v1/tickets': ({ status }) => assert.equal(status, 201),
};
const ENDLESS = ['GET /v1/events']; // what others hear there: jobs.test.mjs
const IN_BODY = { 'POST /v1/launches': () => ({ json: { project: victim.project } }) }; // the object is named there
const ADMINISTRATIVE = ['GET /metrics', 'POST /v1/shutdown', 'GET /v1/doctor', 'GET /v1/owners', 'GET /v1/backups', 'POST /v1/backups', 'GET /v1/pools', 'GET /v1/orphans', 'POST /v1/templates/prune', 'POST /v1/projects/scrub', 'POST /v1/orphans/{id}/adopt', 'DELETE /v1/orphans/{id}', 'POST /v1/tokens', 'GET /v1/audit/verify', ...['GET', 'PUT', 'DELETE'].flatMap((method) => [`${method} ${QUOTA}`, `${method} ${QUOTA}/{user}`])];

let alice; // the victim's own API
const victim = {};
const callers = {};
const strangers = {};

before(async () => {
  alice = await ownerApi(admin, 'acme', 'alice');
  victim.sandbox = (await alice.create({ project: 'canary', labels: { mine: 'yes' }, ports: [3000] })).id;
  victim.token = (await makeToken(admin, { organization: 'acme', user: 'alice', name: 'canary' })).id;
  await alice.request('PUT', '/v1/secrets/canary', { json: { value: 'mine', url: 'https://api.test' } });
  await alice.request('PUT', '/v1/templates/canary/archive', { body: layoutArchive(MINE), headers: { 'content-type': 'application/x-tar' } });
  await alice.put(victim.sandbox, '/workspace/canary', 'untouched');
  victim.project = (await alice.request('GET', '/v1/projects/canary')).json.id;
  victim.file = (await alice.request('PUT', `/v1/projects/${victim.project}/files`, { query: { path: 'canary.txt' }, body: 'untouched' })).json.id;
  victim.launch = (await alice.request('POST', `/v1/sandboxes/${victim.sandbox}/launch`, { json: {} })).json.id;
  await until(async () => (await alice.request('GET', `/v1/launches/${victim.launch}`)).json.status === 'failed', { what: 'the launch of a project without an app' });
  victim.snapshot = (await alice.request('POST', `/v1/sandboxes/${victim.sandbox}/snapshots`, { json: {} })).json.id ?? NOBODY; // disks of some runs have none
  victim.job = (await admin.request('POST', '/v1/backups')).json.id; // which nobody but an administrator can have
  victim.login = (await admin.request('POST', '/v1/login', { json: { token: alice.token }, token: null })).json.id;
  victim.process = (await alice.tryExec(victim.sandbox, { command: 'sleep 3600', background: true })).json.process.id;
  victim.execution = (await alice.request('POST', `/v1/sandboxes/${victim.sandbox}/executions`, { json: { language: 'shell', code: 'exec sleep 3600', async: true } })).json.id;
  victim.context = (await alice.request('POST', `/v1/sandboxes/${victim.sandbox}/contexts`, { json: { language: 'python' } })).json.id;

  callers.revoked = await makeToken(admin, { organization: 'acme', user: 'alice' });
  assert.equal((await admin.request('DELETE', `/v1/tokens/${callers.revoked.id}`)).status, 204);
  callers.expired = await makeToken(admin, { organization: 'acme', user: 'alice', expires_in_s: 1 });
  await until(() => Date.now() > Date.parse(callers.expired.expires_at), { what: 'the token expires' });
  for (const scope of [...ORDINARY, 'admin']) {
    callers[`all but ${scope}`] = await makeToken(admin, { organization: 'acme', user: 'alice', scopes: ORDINARY.filter((one) => one !== scope) });
  }
  for (const [name, organization, user] of [['another organization', 'other', 'alice'], ['another user', 'acme', 'bob']]) {
    strangers[name] = { organization, user, api: await ownerApi(admin, organization, user) };
  }
});

const target = (route) => route.replace('{call}', 'sandboxes').replace('/v1/jobs/{id}', `/v1/jobs/${victim.job}`).replace('{launch}', victim.launch).replace('{project}', victim.project).replace('{file}', victim.file).replaceAll('{id}', victim.sandbox).replaceAll('{process}', victim.process).replaceAll('{token}', victim.token).replace('{login}', victim.login).replace('{port}', '3000').replace('{link}', victim.token).replace('{organization}', 'acme').replace('{user}', 'alice').replace('{secret}', 'canary').replace('{template}', 'canary').replace('{snapshot}', victim.snapshot).replace('{execution}', victim.execution).replace('{path}', 'canary').replace('{function}', 'canary').replace('{context}', victim.context);
const scopeOf = ({ operation }) => operation.security[0].bearer[0];

function send({ name, method, route, operation }, api, token) {
  assert.ok(REQUESTS[name] || !operation.requestBody, `${name} has a body, and the matrix does not know what to send`);
  const required = operation.parameters.filter((one) => one.in === 'query' && one.required).map((one) => one.name);
  for (const parameter of required) assert.ok(REQUESTS[name]?.query?.[parameter], `${name} needs ${parameter}, and the matrix does not know what to send`);
  return api.request(method, target(route), { ...REQUESTS[name], token });
}

/** All that a stranger could have changed, as its owner sees it. */
async function state() {
  const { last_active_at: ignored, ...sandbox } = await alice.get(victim.sandbox);
  const tokens = (await admin.request('GET', '/v1/tokens', { query: { limit: 1000 } })).json.tokens;
  return {
    sandbox,
    sandboxes: (await alice.all()).map((one) => one.id),
    processes: (await alice.request('GET', `/v1/sandboxes/${victim.sandbox}/processes`)).json.processes.map((one) => [one.id, one.status]),
    files: (await alice.listFiles(victim.sandbox, '/workspace', { depth: 2 })).entries.map((entry) => [entry.path, entry.size]),
    canary: (await alice.read(victim.sandbox, '/workspace/canary')).toString(),
    tokens: tokens.map((one) => one.id),
    logins: (await alice.request('GET', '/v1/logins')).json.logins.map((one) => one.id),
    secrets: (await alice.request('GET', '/v1/secrets')).json.secrets,
    launches: (await alice.request('GET', '/v1/launches')).json.launches.map((one) => [one.id, one.status]),
    templates: (await alice.request('GET', '/v1/templates')).json.templates,
    snapshots: (await alice.request('GET', '/v1/snapshots')).json.snapshots,
    projects: (await alice.request('GET', '/v1/projects')).json.projects,
    projectFiles: (await alice.request('GET', `/v1/projects/${victim.project}/files`)).json.files,
    executions: (await alice.request('GET', '/v1/executions')).json.executions,
    contexts: (await alice.request('GET', `/v1/sandboxes/${victim.sandbox}/contexts`)).json.contexts,
    functions: (await alice.request('GET', '/v1/functions')).json.functions,
    quotas: (await alice.request('GET', '/v1/quotas')).json.quotas.map((one) => one.limits),
  };
}

async function changesNothing(attempt) {
  const was = await state();
  for (const operation of guarded) await attempt(operation);
  assert.deepEqual(await state(), was);
}

test('the open routes are those four, and every other names one scope', () => {
  assert.deepEqual(operations.filter(({ operation }) => operation.security.length === 0).map(({ name }) => name).sort(), OPEN);
  for (const one of guarded) {
    assert.deepEqual(one.operation.security.map((way) => Object.values(way)), [[[scopeOf(one)]], [[scopeOf(one)]]], one.name);
    assert.ok([...ORDINARY, 'admin'].includes(scopeOf(one)), `${one.name}: ${scopeOf(one)}`);
    const changes = !['GET', 'HEAD'].includes(one.method) && !['POST /v1/tickets', 'POST /v1/logout', 'POST /mcp', 'POST /e2b/{call}', 'DELETE /e2b/{call}'].includes(one.name); // a ticket does what its token could, a tool what its route may
    assert.ok(!changes || scopeOf(one) !== 'read', `${one.name} changes something, and reading is not enough for it`);
  }
});

for (const [kind, tokenOf] of [
  ['no token', () => null],
  ['a token that is none', () => `slt_${NOBODY}_${'0'.repeat(64)}`],
  ['an expired token', () => callers.expired.token],
  ['a revoked token', () => callers.revoked.token],
]) {
  test(`every route with ${kind} is 401 and changes nothing`, async () => {
    await changesNothing(async (operation) => {
      const answer = await send(operation, admin, tokenOf());
      assert.equal(answer.status, 401, `${operation.name}: ${answer.status} ${answer.text}`);
      assert.equal(answer.headers['www-authenticate'], 'Bearer', operation.name);
    });
  });
}

test('every route with the owner\'s token that lacks only its scope is 403 and changes nothing', async () => {
  await changesNothing(async (operation) => {
    const answer = await send(operation, admin, callers[`all but ${scopeOf(operation)}`].token);
    assert.equal(answer.status, 403, `${operation.name}: ${answer.status} ${answer.text}`);
    // Clients of E2B read other words.
    if (operation.name.includes('/e2b/')) assert.match(answer.text, /the token has not the scope/, operation.name);
    else if (operation.method !== 'HEAD') assert.equal(answer.json.error.code, 'missing_scope', operation.name);
  });
});

test('start commands are commands: managing alone sets none, on any route, and can take them away', async () => {
  const { token } = callers['all but run'];
  const made = [];
  for (const start of ['echo stolen > /workspace/canary', [{ name: 'x', command: 'echo stolen > /workspace/canary' }]]) {
    for (const [method, route, json] of [['POST', '/v1/sandboxes', {}], ['POST', '/v1/sandboxes/ensure', { project: 'canary' }], ['POST', '/v1/sandboxes/ensure', { project: 'other' }], ['PATCH', `/v1/sandboxes/${victim.sandbox}`, {}]]) {
      const answer = await admin.request(method, route, { json: { ...json, start }, token });
      if (answer.status === 201) made.push(answer.json.id);
      assert.equal(assertError(answer, 403).code, 'missing_scope', `${method} ${route}`);
    }
  }
  assert.deepEqual(made, []);
  assert.deepEqual((await alice.get(victim.sandbox)).start, []);
  const { id } = await alice.create({ start: 'exec sleep 3600' });
  for (const [method, json] of [['PATCH', { labels: { a: 'b' } }], ['PATCH', { start: null }]]) assert.equal((await admin.request(method, `/v1/sandboxes/${id}`, { json, token })).status, 200);
  assert.deepEqual((await alice.get(id)).start, []);
  await alice.purge(id);
});

for (const kind of ['another organization', 'another user']) {
  test(`every route with a token of ${kind} finds nothing that is not its own, and changes nothing`, async () => {
    const caller = strangers[kind];
    await changesNothing(async (operation) => {
      if (ENDLESS.includes(operation.name)) return;
      const answer = await send(operation, caller.api, caller.api.token);
      const line = `${operation.name}: ${answer.status} ${answer.text.slice(0, 300)}`;
      if (ADMINISTRATIVE.includes(operation.name)) return assert.equal(answer.status, 403, line);
      if (IN_BODY[operation.name]) return assert.equal((await caller.api.request(operation.method, operation.route, IN_BODY[operation.name]())).status, 404, line);
      if (operation.route.includes('{') && !COLLECTIONS[operation.name]) return assert.equal(answer.status, 404, line);
      assert.ok(COLLECTIONS[operation.name], `${operation.name} names no object, and the matrix does not know what another may see`);
      assert.ok(answer.status < 300, line);
      await COLLECTIONS[operation.name](answer, caller);
      await purgeAll(caller.api);
    });
  });
}

test('a member is nobody\'s who has not its sandbox, on every route that takes one, and has no route of its own', async () => {
  const { id } = await alice.create({ members: [{ role: 'cache', template: 'host', command: 'exec sleep 3600' }] });
  const members = await until(async () => {
    const now = (await alice.get(id)).members;
    return now.every((one) => one.status === 'running') && now;
  }, { what: 'its members run' });
  const inner = members.find((one) => one.role === 'cache').id;
  const ask = ({ name, method, route }, api, sandbox, token = api.token) => api.request(method, target(route.replaceAll('{id}', sandbox)), { ...REQUESTS[name], query: { ...REQUESTS[name]?.query, member: 'cache' }, token });
  const routes = guarded.filter(({ operation }) => operation.parameters.some((one) => one.in === 'query' && one.name === 'member'));
  assert.ok(routes.length >= 20, `${routes.length} routes take a member`);
  for (const one of routes) {
    for (const { api } of Object.values(strangers)) assert.equal((await ask(one, api, id)).status, 404, one.name);
    assert.equal((await ask(one, alice, id, callers[`all but ${scopeOf(one)}`].token)).status, 403, one.name);
    assert.equal((await ask(one, alice, inner)).status, 404, `${one.name} by the id of the member`);
  }
  assert.deepEqual((await alice.get(id)).members.map((one) => [one.id, one.status]), members.map((one) => [one.id, one.status]));
  await alice.purge(id);
});

test('an administrator of another owner finds no sandbox of the victim either', async () => {
  for (const operation of guarded.filter(({ route }) => route.startsWith(ONE))) {
    const answer = await send(operation, admin, admin.token);
    assert.equal(answer.status, 404, `${operation.name}: ${answer.status} ${answer.text}`);
  }
  assert.ok(!(await admin.all()).some((one) => one.id === victim.sandbox));
});

test('what is everybody\'s is made and changed with the scope admin alone', async () => {
  const archive = REQUESTS['PUT /v1/templates/{template}/archive'];
  const route = '/v1/templates/everybodys';
  const { api } = strangers['another user'];
  for (const [method, path, more] of [['POST', '/v1/templates', { json: { name: 'everybodys', image: `${registry.host}/evil:v1`, shared: true } }], ['PUT', `${route}/archive`, { ...archive, query: { shared: true } }]]) assert.equal(assertError(await api.request(method, path, more), 403).code, 'missing_scope');
  assert.equal((await admin.request('PUT', `${route}/archive`, { ...archive, query: { shared: true } })).status, 200);
  for (const [method, path, more] of [['PATCH', route, { json: { env: { EVIL: 'more' } } }], ['DELETE', route], ['POST', `${route}/build`, { json: {} }], ['POST', `${route}/cancel`], ['GET', `${route}/log`]]) assert.equal(assertError(await api.request(method, path, more), 403).code, 'template_shared', `${method} ${path}`);
  assert.equal((await api.request('GET', route)).json.version, 1);
  assert.equal((await admin.request('DELETE', route)).status, 204);
});

test('a foreign object and one that never was get the same answer, on every route', async () => {
  const plain = (answer, ...names) => names.reduce((text, name) => text.replaceAll(name, 'X'), answer.text.replace(/"request_id":"[^"]*"/, ''));
  const { api } = strangers['another user'];
  for (const operation of guarded.filter(({ name, route }) => route.includes('{') && !COLLECTIONS[name])) {
    const request = { ...REQUESTS[operation.name] };
    const foreign = await api.request(operation.method, target(operation.route), request);
    const random = await api.request(operation.method, operation.route.replace(/\{(id|launch|token|login|snapshot|execution|project)\}/, NOBODY).replace('{process}', victim.process).replace('{file}', victim.file).replace('{context}', victim.context).replace('{port}', '3000').replace('{link}', victim.token).replace(/\{(organization|user|template|function)\}/g, 'nobody').replace('{path}', 'canary'), request);
    assert.equal(foreign.status, random.status, operation.name);
    assert.equal(plain(foreign, victim.sandbox, victim.project, victim.token, victim.login, victim.job, victim.snapshot, victim.launch, victim.execution, 'template canary', 'function canary'), plain(random, NOBODY, 'template nobody', 'function nobody'), operation.name);
  }
});

test('a process of another sandbox is not found through one\'s own', async () => {
  const { api } = strangers['another user'];
  const { id } = await api.create();
  for (const operation of guarded.filter(({ route }) => route.includes('{process}'))) {
    const answer = await api.request(operation.method, operation.route.replace('{id}', id).replace('{process}', victim.process), REQUESTS[operation.name]);
    assert.equal(answer.status, 404, `${operation.name}: ${answer.text}`);
  }
  await api.purge(id);
});

test('the owner comes from the token: a body that names one is 400', async () => {
  for (const json of [{ owner: { organization: 'other', user: 'x' } }, { organization: 'other' }, { user: 'root' }, { driver: 'none' }, { privileged: true }, { hostPath: '/' }, { status: 'running' }]) {
    assert.equal(assertError(await alice.request('POST', '/v1/sandboxes', { json }), 400).code, 'unknown_field');
    assert.equal(assertError(await alice.patch(victim.sandbox, json), 400).code, 'unknown_field');
  }
});

test('a terminal, ports and event streams of another are 404, also over a real handshake', async () => {
  for (const { api } of Object.values(strangers)) {
    assertError((await openWebSocket(api, `/v1/sandboxes/${victim.sandbox}/terminal`)).answer, 404);
    assertError((await openWebSocket(api, `/v1/sandboxes/${victim.sandbox}/ports/80/connect`, { protocol: 'tcp.v1' })).answer, 404);
    assertError(await api.request('GET', `/v1/sandboxes/${victim.sandbox}/events`, { headers: { accept: 'text/event-stream' } }), 404);
  }
});

test('a terminal or a port with a foreign Origin is 403, whoever asks', async () => {
  for (const origin of ['http://evil.example', 'null', `http://127.0.0.1:${admin.port + 1}`]) {
    assertError((await openWebSocket(alice, `/v1/sandboxes/${victim.sandbox}/terminal`, { headers: { origin } })).answer, 403);
    assertError((await openWebSocket(alice, `/v1/sandboxes/${victim.sandbox}/ports/80/connect`, { protocol: 'tcp.v1', headers: { origin } })).answer, 403);
  }
});

test('methods that change nothing change nothing: OPTIONS and TRACE are 405, HEAD is GET', async () => {
  const was = await state();
  for (const { route } of guarded) {
    for (const method of ['OPTIONS', 'TRACE']) {
      const answer = await alice.request(method, target(route));
      assert.equal(answer.status, 405, `${method} ${route}`);
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
    }
  }
  assert.deepEqual(await state(), was);
});

test('the owners leave nothing behind', async () => {
  for (const api of [alice, ...Object.values(strangers).map((one) => one.api)]) {
    await purgeAll(api);
    api.agent.destroy();
  }
});

test('the registry closes', () => {
  registry.server.close();
  registry.server.closeAllConnections();
});

finish();
