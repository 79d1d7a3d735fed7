// SPDX-License-Identifier: Apache-2.0
// Sandboxes that wait in a pool together with their members, and how much of the processor those that wait get.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('pools_members', { args: ['--pool-reserve', '0', '--memory-reserve', '0'], width: 8 });
const { ok } = commandLine(instance);

async function put(name, who = api) {
  const answer = await who.request('PUT', `/v1/templates/${name}/archive`, { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
}
async function patch(name, json, who = api) {
  const answer = await who.request('PATCH', `/v1/templates/${name}`, { json });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
const pool = async (name) => (await api.request('GET', '/v1/pools')).json.pools.find(({ template }) => template === name);
const untilPool = (name, is, what) => until(async () => { const one = await pool(name); return one && is(one) && one; }, { what: `${name}: ${what}` });
const untilFull = (name) => untilPool(name, ({ size, ready, warming }) => ready === size && warming === 0, 'it is full');
const rows = (text) => sql(instance, text).split('\n').filter(Boolean);
const waiting = () => rows('SELECT id FROM pooled WHERE state = 1 ORDER BY id');
const membersOf = (id) => rows(`SELECT id FROM sandboxes WHERE parent_id = '${id}' ORDER BY id`);
const out = async (id, command, role, who = api) => {
  const answer = await who.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, query: { member: role } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json.stdout;
};

/** The part of the processor that the cgroup of a process is given beside others, of those without a group of their own. */
function weightOf(pid) {
  const groups = fs.readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n').map((line) => line.split(':'));
  const v1 = groups.find(([, controllers]) => controllers.split(',').includes('cpu'));
  const [[, , at]] = v1 ? [v1] : groups.filter(([number]) => number === '0');
  const mounts = fs.readFileSync('/proc/mounts', 'utf8').split('\n').map((line) => line.split(' '));
  const [, root] = mounts.find(([, , type, options]) => (v1 ? type === 'cgroup' && options?.split(',').includes('cpu') : type === 'cgroup2'));
  return Number(fs.readFileSync(`${root}${at}/${v1 ? 'cpu.shares' : 'cpu.weight'}`, 'utf8')) / (v1 ? 1024 : 100);
}
const weights = () => instance.sandboxInits().map(({ pid }) => weightOf(pid));

// It takes its port for a database's, so a password is made up for it, which it writes down when it first starts.
const SERVE = '[ -e /volumes/password ] || echo "$POSTGRES_PASSWORD" > /volumes/password; echo start >> /volumes/starts; exec httpd -f -p 127.0.0.1:5432 -h /volumes';
const database = { role: 'database', template: 'side', port: 5432, command: SERVE, env: { POSTGRES_DB: 'shop' }, resources: { memory: '200Mi' }, health: { port: 5432 } };
const START = 'echo "started ${WORD:-bare} $PGDATABASE" >> /workspace/log; exec sleep 3600';

await put('side');
await put('stack');

test('a template has members, which sandboxes get that ask for none, and shows them', async () => {
  const shown = await patch('stack', { members: [database] });
  assert.deepEqual(shown.members, [{ ...database, resources: { memory: '200Mi' } }]);
  const { id, members } = await api.create({ template: 'stack' });
  assert.deepEqual(members.map(({ role, template }) => [role, template]).sort(), [['database', 'side'], ['primary', 'stack']]);
  await api.purge(id);
  for (const other of [[], [{ role: 'cache', template: 'side', command: 'exec sleep 1000' }]]) {
    const made = await api.create({ template: 'stack', members: other });
    assert.deepEqual(made.members.map(({ role }) => role).filter((role) => role !== 'primary'), other.map(({ role }) => role));
    await api.purge(made.id);
  }
  assertError(await api.request('PATCH', '/v1/templates/stack', { json: { members: [{ role: 'primary', command: 'true' }] } }), 400);
  assertError(await api.request('PATCH', '/v1/templates/stack', { json: { members: [{ role: 'queue' }] } }), 400);
  await ok(['template', 'update', 'stack', '--member', JSON.stringify({ ...database, env: { POSTGRES_DB: 'cli' } })]);
  assert.equal((await api.request('GET', '/v1/templates/stack')).json.members[0].env.POSTGRES_DB, 'cli');
});

test('they wait with their members healthy, in the background; whoever is given one finds them so, as theirs', async () => {
  await patch('stack', { members: [database], start: START, pool: { size: 1 } });
  await untilFull('stack');
  const [waits] = waiting();
  const [inner] = membersOf(waits);
  assert.deepEqual(weights(), [1 / 16, 1 / 16], 'both are in the background');
  const owner = () => rows(`SELECT organization || '/' || "user" FROM sandboxes WHERE id IN ('${waits}', '${inner}')`);
  assert.deepEqual(owner(), ['.pool/.pool', '.pool/.pool']);
  const inits = instance.sandboxInits();
  const body = { template: 'stack', name: 'shop', env: { WORD: 'mine' }, resources: { memory: '300Mi' }, network: { mode: 'allowlist', allow: ['a.example.org'] } };
  const made = await api.create(body);
  assert.equal(made.id, waits);
  assert.deepEqual(made.members.map(({ id, role, status, health }) => [id, role, status, health]).sort(), [[inner, 'database', 'running', 'healthy'], [waits, 'primary', 'running', 'none']].sort());
  assert.ok(inits.every((init) => proc.isAlive(init)), 'none was made anew');
  for (const init of inits) assert.equal(weightOf(init.pid), 1, 'they are as any other');
  assert.deepEqual(owner(), ['default/admin', 'default/admin']);
  assert.equal(await out(waits, 'cat /volumes/starts', 'database'), 'start\n');
  const password = (await out(waits, 'cat /volumes/password', 'database')).trim();
  assert.match(password, /^[0-9a-f]{32}$/);
  assert.equal(await out(waits, 'echo $WORD $DATABASE_URL $PGPASSWORD; hostname; cat /workspace/log'), `mine postgresql://postgres:${password}@127.0.0.1:5432/shop ${password}\nshop\nstarted bare shop\n`);
  assert.equal(await out(waits, 'echo $POSTGRES_PASSWORD', 'database'), `${password}\n`, 'a start after this has the same');
  const limit = async (member) => (await api.request('GET', `/v1/sandboxes/${waits}/stats`, { query: { member } })).json.memory.limit_bytes >> 20;
  assert.deepEqual([await limit('primary'), await limit('database')], [300, 200]);
  const { used } = (await api.request('GET', '/v1/quotas/default/admin')).json;
  assert.deepEqual([used.sandboxes, used.running, used.memory], [1, 1, '500Mi']);
  // The rules hold in a member: it has the way out of its sandbox.
  await out(waits, 'nc -w 2 b.example.org 80 < /dev/null || true', 'database');
  await until(async () => (await api.request('GET', `/v1/sandboxes/${waits}/network`)).json.denials.some(({ target }) => target.includes('b.example.org')), { what: 'the connection of the member is refused' });
  await untilFull('stack');
  const next = await api.create({ template: 'stack' });
  assert.notEqual(await out(next.id, 'cat /volumes/password', 'database'), `${password}\n`, 'nothing of one is in the next');
  await api.life(waits, 'stop');
  await api.life(waits, 'start');
  await until(async () => (await api.get(waits)).members.every(({ health }) => health !== 'starting'), { what: 'it is healthy after a wake' });
  assert.equal(await out(waits, 'echo $PGPASSWORD'), `${password}\n`);
  for (const { id } of [made, next]) await api.purge(id);
});

test('a create that names the same members is given them too, with the limits that it says; others are made as ever', async () => {
  await untilFull('stack');
  const [waits] = waiting();
  const hits = async () => (await pool('stack')).hits;
  const before = await hits();
  const other = await api.create({ template: 'stack', members: [{ ...database, env: { POSTGRES_DB: 'other' } }] });
  assert.notEqual(other.id, waits);
  assert.match(await out(other.id, 'echo $DATABASE_URL'), /\/other\n$/);
  const none = await api.create({ template: 'stack', members: [] });
  assert.deepEqual([none.members, await hits()], [[], before]);
  const same = await api.create({ template: 'stack', members: [{ ...database, resources: { memory: '150Mi' } }], env: { WORD: 'new' }, start_env: true });
  assert.deepEqual([same.id, await hits()], [waits, before + 1]);
  assert.equal((await api.request('GET', `/v1/sandboxes/${waits}/stats`, { query: { member: 'database' } })).json.memory.limit_bytes, 150 << 20);
  await until(async () => (await out(waits, 'cat /workspace/log')) === 'started bare shop\nstarted new shop\n', { what: 'the start command began anew' });
  for (const { id } of [other, none, same]) await api.purge(id);
});

test('a quota counts members when they are given away, and one that is too small leaves them waiting', async () => {
  const owner = await ownerApi(api, 'quota', 'two');
  await put('side', owner);
  await put('stack', owner);
  assert.equal((await api.request('PUT', '/v1/quotas/quota/two', { json: { memory: '1100Mi' } })).status, 200);
  await patch('stack', { pool: { size: 0 } });
  await until(() => waiting().length === 0, { what: 'the other pool is gone' });
  await patch('stack', { members: [database], start: START, pool: { size: 1 } }, owner);
  await until(() => waiting().length === 1, { what: 'one waits' });
  const [waits] = waiting();
  assertError(await owner.request('POST', '/v1/sandboxes', { json: { template: 'stack', resources: { memory: '1000Mi' } } }), 429);
  assert.deepEqual([waiting(), weights()], [[waits], [1 / 16, 1 / 16]], 'it waits on, as before');
  assert.equal((await owner.create({ template: 'stack', resources: { memory: '300Mi' } })).id, waits);
  await owner.purge(waits);
  await patch('stack', { pool: { size: 0 } }, owner);
  await until(() => rows('SELECT id FROM pooled').length === 0, { what: 'nothing waits' });
  for (const name of ['stack', 'side']) assert.equal((await owner.request('DELETE', `/v1/templates/${name}`)).status, 204);
  await api.request('DELETE', '/v1/quotas/quota/two');
  await patch('stack', { pool: { size: 1 } });
});

test('after kill -9 of the daemon they wait on with their members, still in the background', async () => {
  await untilFull('stack');
  const [waits] = waiting();
  const inits = instance.sandboxInits();
  await instance.crash();
  await instance.start();
  await untilFull('stack');
  assert.deepEqual([waiting(), weights()], [[waits], [1 / 16, 1 / 16]]);
  const { id } = await api.create({ template: 'stack' });
  assert.equal(id, waits);
  assert.ok(inits.every((init) => proc.isAlive(init)));
  await api.purge(id);
});

test('another version of the template of a member drains what is stale', async () => {
  await untilFull('stack');
  const stale = waiting();
  await patch('side', { env: { VERSION: 'two' } });
  const made = await api.create({ template: 'stack' });
  assert.ok(!stale.includes(made.id));
  await until(() => !waiting().some((id) => stale.includes(id)), { what: 'what is stale is gone' });
  await untilFull('stack');
  const given = await api.create({ template: 'stack' });
  assert.equal(await out(given.id, 'echo $VERSION', 'database'), 'two\n');
  for (const { id } of [made, given]) await api.purge(id);
});

test('members of the template host wait too', async () => {
  await patch('stack', { members: [{ role: 'backend', template: 'host', port: 8123, command: 'exec python3 -m http.server 8123 --bind 127.0.0.1', health: { port: 8123 } }] });
  await untilPool('stack', ({ error, ready, warming }) => error || (ready === 1 && warming === 0), 'it is full, or says why not');
  const [waits] = waiting();
  const made = await api.create({ template: 'stack' });
  assert.deepEqual([made.id, made.members.map(({ role, health }) => `${role} ${health}`).sort()], [waits, ['backend healthy', 'primary none']]);
  await api.purge(made.id);
});

test('a pool whose members never become healthy, or have no template, says so, and creates work', async () => {
  await patch('stack', { members: [{ role: 'cache', template: 'nowhere.example/none', command: 'exec sleep 1000' }] });
  const { error } = await untilPool('stack', (one) => one.error !== null, 'it has an error');
  assert.match(error, /nowhere/);
  await patch('stack', { members: [{ ...database, command: 'exec sleep 1000' }] });
  await untilPool('stack', ({ warming, ready }) => warming === 1 && ready === 0, 'one is being made');
  const made = await api.create({ template: 'stack' });
  assert.equal(made.status, 'running');
  await api.purge(made.id);
  await patch('stack', { members: [], pool: { size: 0 } });
  await until(() => rows('SELECT id FROM pooled').length === 0, { what: 'nothing waits' });
});

finish();
