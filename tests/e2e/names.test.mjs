// SPDX-License-Identifier: Apache-2.0
// Names that people give sandboxes: they stand wherever an id may.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';

import { commandLine, speaks } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { program } from './lib/instance.mjs';
import { ownerApi } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { ulid } from './lib/values.mjs';

const { instance, api, finish } = await suite('names');
const { ok, json, sandlot } = commandLine(instance);

afterEach(() => (instance.daemon.how || api.made.size === 0 ? undefined : purgeAll(api)));

test('a name is answered and stands for the id in every path', async () => {
  const { id, name } = await api.create({ name: 'web' });
  assert.equal(name, 'web');
  assert.equal((await api.get('web')).id, id);
  assert.equal((await api.list()).sandboxes[0].name, 'web');
  assert.equal(await api.out('web', 'echo hello'), 'hello\n');
  await api.put('web', '/workspace/a.txt', 'text');
  assert.equal((await api.read(id, '/workspace/a.txt')).toString(), 'text');
  assert.equal((await api.life('web', 'stop')).status, 'stopped');
  assert.equal((await api.life('web', 'start')).status, 'running');
  await api.purge('web');
  assertError(await api.request('GET', '/v1/sandboxes/web'), 404, /no sandbox/);
  assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404, /no sandbox/);
});

test('the host name inside is the name, also of one that was built ahead, and else sandbox', async () => {
  for (const name of ['web', 'db-1', null]) {
    const sandbox = await api.create({ name });
    assert.equal(await api.out(sandbox.id, 'hostname'), `${name ?? 'sandbox'}\n`);
    assert.match(await api.out(sandbox.id, { command: `bash -ic 'echo "\${PS1@P}"'` }), new RegExp(`sandbox@${name ?? 'sandbox'}:`));
  }
});

test('a name is given, changed and taken away, and the host name follows', async () => {
  const { id, name } = await api.create();
  assert.equal(name, null);
  assert.equal((await api.patch(id, { name: 'first' })).json.name, 'first');
  assert.equal((await api.patch('first', { name: 'second' })).json.name, 'second');
  assertError(await api.request('GET', '/v1/sandboxes/first'), 404, /no sandbox/);
  assert.equal((await api.patch('second', { labels: {} })).json.name, 'second', 'what a PATCH does not name stays');
  assert.equal(await api.out('second', 'hostname'), 'second\n');
  await api.life('second', 'stop');
  assert.equal(await api.out('second', 'hostname'), 'second\n');
  assert.equal((await api.patch('second', { name: null })).json.name, null);
});

test('a name is taken once for each owner, and free again when its sandbox is deleted', async () => {
  const { id } = await api.create({ name: 'web' });
  const other = await api.create();
  const refused = await api.request('POST', '/v1/sandboxes', { json: { name: 'web' } });
  assertError(refused, 409, /has the name web already/);
  assert.match(refused.text, new RegExp(id));
  assertError(await api.patch(other.id, { name: 'web' }), 409, /has the name web already/);
  assert.equal((await api.get(other.id)).name, null);
  assert.equal((await api.patch('web', { name: 'web' })).status, 200, 'its own name is no conflict');
  await api.remove('web');
  assert.equal((await api.patch(other.id, { name: 'web' })).json.name, 'web');
});

test('ensure finds the sandbox of a name, or makes it', async () => {
  const first = await api.ensure({ name: 'web' });
  assert.equal(first.status, 201, first.text);
  const second = await api.ensure({ name: 'web' });
  assert.equal(second.status, 200, second.text);
  assert.equal(second.json.id, first.json.id);
});

test('names of other owners lead nowhere', async () => {
  await api.create({ name: 'web' });
  const eve = await ownerApi(api, 'other', 'eve');
  assertError(await eve.request('GET', '/v1/sandboxes/web'), 404, /no sandbox/);
  assertError(await eve.verb('web', 'purge'), 404, /no sandbox/);
  const own = await eve.create({ name: 'web' });
  assert.equal((await eve.get('web')).id, own.id);
  await eve.purge('web');
  eve.disconnect();
});

test('what is no name is refused', async () => {
  const bad = ['', 'Web', '1web', '-web', 'web_1', 'web.1', 'wéb', 'a'.repeat(41), `a${ulid().slice(1)}`, 'a b', 'a/b', 'a\n'];
  for (const name of bad) assertError(await api.request('POST', '/v1/sandboxes', { json: { name } }), 400, /field name/);
  const sandbox = await api.create({ name: 'a'.repeat(40) });
  assert.equal((await api.get('a'.repeat(40))).id, sandbox.id);
});

test('the audit log names the id, also where the path had the name', async () => {
  const { id } = await api.create({ name: 'web' });
  await api.out('web', 'true');
  const { entries } = (await api.request('GET', '/v1/audit', { query: { object: id } })).json;
  assert.ok(entries.some((entry) => entry.action === 'exec.run'), JSON.stringify(entries.map((entry) => entry.action)));
});

test('filters of lists take the name, and the id also of a sandbox that is gone', async (t) => {
  const { id } = await api.create({ name: 'web' });
  const other = await api.create();
  const language = { code: 'print(1)', language: 'python' };
  for (const sandbox of [id, other.id]) assert.equal((await api.request('POST', `/v1/sandboxes/${sandbox}/executions`, { json: language })).status, 200);
  const taken = await api.request('POST', '/v1/sandboxes/web/snapshots', { json: {} });
  const list = async (route, key, query, more) => {
    const answer = await api.request('GET', route, { query: { ...query, ...more } });
    assert.equal(answer.status, 200, answer.text);
    return answer.json[key];
  };
  const lists = [['/v1/executions', 'executions'], ['/v1/executions/stats', 'stats'], ['/v1/launches', 'launches'], ['/v1/snapshots', 'snapshots']];
  const byId = {};
  for (const [route, key] of lists) {
    byId[route] = await list(route, key, { sandbox: id });
    assert.deepEqual(await list(route, key, { sandbox: 'web' }), byId[route], route);
    assertError(await api.request('GET', route, { query: { sandbox: 'nobody' } }), 404, /no sandbox nobody/);
    assertError(await api.request('GET', route, { query: { sandbox: 'No Name' } }), 400, /sandbox/);
  }
  assert.deepEqual(byId['/v1/executions'].map((one) => one.sandbox_id), [id]);
  assert.equal(byId['/v1/executions/stats'][0].count, 1);
  if (taken.status === 201) assert.deepEqual(byId['/v1/snapshots'].map((one) => one.sandbox_id), [id]);
  else t.diagnostic(`not proven of snapshots: ${taken.text}`);
  const { process } = (await api.tryExec('web', { command: 'true', background: true })).json;
  await api.request('DELETE', `/v1/sandboxes/web/processes/${process.id}`);
  const audit = (object) => list('/v1/audit', 'entries', { object });
  const sequences = async (object) => (await audit(object)).map((entry) => entry.sequence);
  assert.ok((await audit('web')).some((entry) => entry.action === 'sandbox.create'));
  assert.deepEqual(await sequences('web'), await sequences(id));
  assert.deepEqual(await sequences(`web/${process.id}`), await sequences(`${id}/${process.id}`));
  const eve = await ownerApi(api, 'other', 'eve');
  for (const [route] of lists) assertError(await eve.request('GET', route, { query: { sandbox: 'web' } }), 404, /no sandbox web/);
  eve.disconnect();
  if (taken.status === 201) await api.request('DELETE', `/v1/snapshots/${taken.json.id}`);
  await api.purge('web');
  assert.deepEqual((await list('/v1/executions', 'executions', { sandbox: id })).map((one) => one.id), byId['/v1/executions'].map((one) => one.id));
});

test('commands take the name, the beginning or the end of an id, the exact name first', async () => {
  const sandbox = await json(['create', '-o', 'json', '--name', 'web']);
  api.made.add(sandbox.id);
  assert.match(await ok(['ls']), /^ID +NAME .*\n.* web /);
  assert.equal(await ok(['exec', 'web', '--', 'hostname']), 'web\n');
  assert.equal(JSON.parse(await ok(['inspect', '-o', 'json', sandbox.id.slice(-8)])).id, sandbox.id);
  assert.equal(JSON.parse(await ok(['inspect', '-o', 'json', sandbox.id.slice(0, 24)])).id, sandbox.id);
  const other = `web${ulid().slice(3)}`;
  await api.create({ id: other });
  assert.equal(JSON.parse(await ok(['inspect', '-o', 'json', 'web'])).id, sandbox.id);
  assert.equal(JSON.parse(await ok(['inspect', '-o', 'json', other.slice(0, 8)])).id, other);
  speaks(await sandlot(['inspect', 'nobody']), /no sandbox with the name "nobody"/);
  speaks(await sandlot(['create', '--name', 'Web']), /name/);
});

test('a refusal is told with the name that was given', async () => {
  const { id } = await api.create({ name: 'frozen' });
  await ok(['pause', 'frozen']);
  assert.equal((await sandlot(['exec', 'frozen', '--', 'true'])).stderr, 'sandlot: sandbox frozen is paused and cannot be used now\n  → resume it first: sandlot resume frozen\n');
  assert.match((await sandlot(['exec', id, '--', 'true'])).stderr, new RegExp(`sandbox ${id} is paused`));
  await ok(['rm', '--purge', 'frozen']);
});

test('cp, the filter of the audit log and completions take names, also long ones with dashes', async (t) => {
  const name = `my-app-${'x'.repeat(33)}`;
  const { id } = await api.create({ name });
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'names-'));
  t.after(() => fs.rmSync(dir, { recursive: true }));
  fs.writeFileSync(path.join(dir, 'note'), 'text');
  await ok(['cp', path.join(dir, 'note'), `${name}:`]);
  await ok(['cp', `${name}:note`, path.join(dir, 'copy')]);
  assert.equal(fs.readFileSync(path.join(dir, 'copy'), 'utf8'), 'text');
  const entries = (object) => json(['audit', 'ls', '-o', 'json', '--object', object]);
  const byId = (await entries(id)).entries.map((entry) => entry.sequence);
  assert.ok(byId.length > 0);
  assert.deepEqual((await entries(name)).entries.map((entry) => entry.sequence), byId);
  assert.deepEqual((await entries(id.slice(-8))).entries.map((entry) => entry.sequence), byId);
  assert.deepEqual((await entries('nothing.has_this')).entries, []);
  assert.deepEqual((await ok(['ls', '-q', '--names'])).split('\n').filter(Boolean), [id, name]);
  assert.equal(await ok(['ls', '-q']), `${id}\n`);
  const complete = async (...words) => {
    const script = `${await ok(['completion', 'bash'])}
      COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _sandlot; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const env = instance.environment({ SANDLOT_URL: `http://127.0.0.1:${api.port}`, SANDLOT_TOKEN: api.token, PATH: `${path.dirname(program('sandlot'))}:${process.env.PATH}` });
    return (await promisify(execFile)('bash', ['-c', script], { env })).stdout.trim();
  };
  assert.equal(await complete('sandlot', 'inspect', 'my-'), name);
  assert.equal(await complete('sandlot', 'cp', 'my-'), name);
  const { process: job } = (await api.tryExec(name, { command: 'sleep 600', background: true })).json;
  assert.equal(await complete('sandlot', 'logs', name, 'p'), job.id);
});

test('a preview by path takes the name with a token of its owner, and tells strangers nothing', async () => {
  const { id, previews } = await api.create({ name: 'web', ports: [3000], start: 'python3 -m http.server 3000' });
  const { port } = new URL(previews[3000]);
  const get = (token, name) => new Promise((resolve, reject) => {
    const headers = { host: `localhost:${port}`, ...(token && { authorization: `Bearer ${token}` }) };
    http.get({ host: '127.0.0.1', port, path: `/v1/sandboxes/${name}/preview/3000/`, headers }, (answer) => resolve(answer.resume().statusCode)).on('error', reject);
  });
  assert.equal(await get(api.token, 'web'), 200);
  assert.equal(await get(api.token, id), 200);
  assert.equal(await get(null, 'web'), 401);
  assert.equal(await get(api.token, 'nobody'), 401);
  const eve = await ownerApi(api, 'other', 'eve');
  assert.equal(await get(eve.token, 'web'), 401);
  eve.disconnect();
});

finish();
