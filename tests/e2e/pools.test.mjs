// SPDX-License-Identifier: Apache-2.0
// Warm pools: sandboxes that were made before they were asked for, given away once, with all that a create asks for.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { httpServer } from './lib/outside.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Processes } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { ulid } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('pools', { args: ['--pool-reserve', '0', '--memory-reserve', '0', '--ready-timeout', '4'], width: 8 });
const { sandlot, ok } = commandLine(instance);
const processes = new Processes(api);

async function put(name, layers = [busybox()], who = api) {
  const answer = await who.request('PUT', `/v1/templates/${name}/archive`, { body: layoutArchive(image(layers)), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
}
async function patch(name, json, who = api) {
  const answer = await who.request('PATCH', `/v1/templates/${name}`, { json });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
const pools = async () => (await api.request('GET', '/v1/pools')).json;
const pool = async (name) => (await pools()).pools.find(({ template }) => template === name);
const untilPool = (name, is, what) => until(async () => { const one = await pool(name); return one && is(one) && one; }, { what: `${name}: ${what}` });
const untilFull = (name) => untilPool(name, ({ size, ready, warming }) => ready === size && warming === 0, 'it is full');
const waiting = () => sql(instance, 'SELECT id FROM pooled WHERE state = 1 ORDER BY id').split('\n').filter(Boolean);
/** A create that is given a waiting sandbox. */
async function claim(body, who = api) {
  const { hits } = await untilPool(body.template, ({ ready }) => ready > 0, 'one is ready');
  const made = await who.create(body);
  assert.equal((await pool(body.template)).hits, hits + 1, `${made.id} did not wait`);
  return made;
}
const START = { name: 'app', command: 'echo "started ${WORD:-bare}" >> /workspace/log; exec sleep 3600' };

await put('app');
await patch('app', { start: [START], ready: { command: 'test -e /workspace/log' }, pool: { size: 2 } });

test('a pool is filled with sandboxes that are ready and in no list of anybody', async () => {
  const { owner, size, ready, warming, error } = await untilFull('app');
  assert.deepEqual([owner, size, ready, warming, error], [{ organization: 'default', user: 'admin' }, 2, 2, 0, null]);
  const ids = waiting();
  assert.equal(ids.length, 2);
  assert.deepEqual(await api.all(), []);
  for (const id of ids) {
    for (const [method, path] of [['GET', ''], ['POST', '/exec'], ['GET', '/files?path=/'], ['DELETE', ''], ['POST', '/purge'], ['GET', '/processes']]) {
      assertError(await api.request(method, `/v1/sandboxes/${id}${path}`, method === 'POST' ? { json: path === '/exec' ? { command: 'true' } : {} } : {}), 404);
    }
  }
  const { used } = (await api.request('GET', '/v1/quotas/default/admin')).json;
  assert.deepEqual([used.sandboxes, used.running, used.workspaces], [0, 0, 0]);
  assert.match(await ok(['pool', 'ls']), /app +default\/admin +2 +2 +0/);
});

test('a pool that asks for more than there is room for is listed, and says so to its owner too', async () => {
  const ann = await ownerApi(api, 'room', 'ann');
  for (const name of ['room-1', 'room-2']) await put(name, [busybox()], ann);
  await patch('room-1', { pool: { size: 9 } }, ann);
  await patch('room-2', { pool: { size: 3 } }, ann);
  const [first, second] = [await pool('room-1'), await pool('room-2')];
  assert.deepEqual([first.size, second.size], [8, 0]);
  assert.match(first.error, /asks for 9, and there is room for 8: all pools together have 32 at most \(--pool-max\), and those of one owner a quarter/);
  assert.match(second.error, /asks for 3, and there is room for 0/);
  const { misses } = second;
  await ann.purge((await ann.create({ template: 'room-2' })).id);
  assert.equal((await pool('room-2')).misses, misses + 1);
  await patch('room-1', { pool: { size: 1 } }, ann);
  assert.deepEqual([(await pool('room-1')).error, (await pool('room-2')).error, (await pool('room-2')).size], [null, null, 3]);
  for (const name of ['room-1', 'room-2']) await patch(name, { pool: { size: 0 } }, ann);
  assert.equal((await pool('room-1'))?.size ?? 0, 0);
});

test('a pool is listed from the moment it is asked for, and not from the moment it is ended', async () => {
  await put('listed');
  for (const size of [1, 2, 0, 1, 0]) {
    await patch('listed', { pool: { size } });
    assert.equal((await pool('listed'))?.size ?? 0, size);
  }
});

test('a create is given one, ready, with what it asks for; another takes its place', async () => {
  await untilFull('app');
  const { hits } = await pool('app');
  const body = { template: 'app', name: 'warm', env: { WORD: 'mine' }, labels: { team: 'a' }, ports: [8080], project: 'shop', idle_timeout_s: 77, lifetime_s: 7777, private: false, resources: { memory: '256Mi', cpu: 0.5, pids: 50 }, network: { mode: 'allowlist', allow: ['a.example.org'] } };
  const made = await claim(body);
  const { id, status, ready, name, labels, idle_timeout_s: idle, lifetime_s: lifetime, private: isPrivate, resources, network, owner, template, start } = made;
  assert.deepEqual([status, ready, name, labels, idle, lifetime, isPrivate, owner.project, template], ['running', true, 'warm', { team: 'a' }, 77, 7777, false, 'shop', 'app']);
  assert.deepEqual([resources.memory, resources.cpu, resources.pids, network.mode, network.allow], ['256Mi', 0.5, 50, 'allowlist', ['a.example.org']]);
  assert.deepEqual(start.map((one) => [one.name, one.status, one.process]), [['app', 'running', 'p1']]);
  assert.equal(await api.out(id, 'echo $WORD; hostname; cat /workspace/log'), 'mine\nwarm\nstarted bare\n', 'env reaches new processes, and the start command was there before');
  assert.equal((await api.stats(id)).memory.limit_bytes, 256 << 20);
  assert.ok(Date.parse(made.created_at) >= Date.parse(made.started_at));
  assert.deepEqual((await api.all()).map((one) => one.id), [id]);
  const full = await untilFull('app');
  assert.equal(full.hits, hits + 1);
  const { text: figures } = await api.request('GET', '/metrics');
  for (const [figure, value] of [['size', 2], ['ready', 2], ['hits_total', full.hits], ['misses_total', full.misses]]) {
    assert.ok(figures.includes(`sandlot_pool_${figure}{template="app",organization="default",user="admin"} ${value}\n`), figures);
  }
  assertError(await api.request('POST', '/v1/sandboxes', { json: { template: 'app', name: 'warm' } }), 409);
  assert.equal((await untilFull('app')).ready, 2, 'one that could not be given away waits on');
  await api.life(id, 'stop');
  assert.equal((await api.life(id, 'start')).status, 'running');
  assert.equal(await api.out(id, 'echo $WORD; tail -n 1 /workspace/log'), 'mine\nstarted mine\n');
  await api.purge(id);
});

test('start_env runs the start commands anew with the environment', async () => {
  const { id } = await claim({ template: 'app', env: { WORD: 'new' }, start_env: true });
  await until(async () => (await api.out(id, 'cat /workspace/log')) === 'started bare\nstarted new\n', { what: 'it began anew' });
  const [start] = (await api.get(id)).start;
  assert.deepEqual([start.status, start.restarts], ['running', 0]);
  assert.equal((await processes.list(id)).filter(({ start: by, status }) => by === 'app' && status === 'running').length, 1);
  await api.purge(id);
});

test('what a waiting sandbox cannot become is created as ever', async () => {
  await untilFull('app');
  const ids = waiting();
  const made = await api.create({ template: 'app', id: ulid() });
  assert.equal(made.status, 'running');
  const snapshot = await api.request('POST', `/v1/sandboxes/${made.id}/snapshots`, { json: {} });
  assert.equal(snapshot.status, 201, snapshot.text);
  await api.remove(made.id);
  for (const body of [{ template: 'app', id: made.id }, { snapshot: snapshot.json.id }]) {
    const other = await api.create(body);
    assert.ok(!ids.includes(other.id));
    assert.equal(other.status, 'running');
    await api.purge(other.id);
  }
  assert.equal((await api.request('DELETE', `/v1/snapshots/${snapshot.json.id}`)).status, 204);
  assert.deepEqual(waiting().slice(0, 2), ids.slice(0, 2));
});

test('an idempotency key is answered with the sandbox that was given', async () => {
  await untilFull('app');
  const ids = waiting();
  const headers = { 'idempotency-key': `key-${process.pid}` };
  const [first, second] = [await api.request('POST', '/v1/sandboxes', { json: { template: 'app' }, headers }), await api.request('POST', '/v1/sandboxes', { json: { template: 'app' }, headers })];
  assert.ok(ids.includes(first.json.id));
  assert.equal(second.json.id, first.json.id);
  assert.equal(sql(instance, "SELECT object FROM replays WHERE \"key\" LIKE 'key-%'").trim(), first.json.id);
  await api.purge(first.json.id);
});

test('ensure takes one too, once for a project', async () => {
  await untilFull('app');
  const ids = waiting();
  const first = await api.ensure({ template: 'app', project: 'one' });
  assert.ok(ids.includes(first.json.id));
  await untilFull('app');
  // Of many at once those that find all waiting ones being looked at may make one: there is one in the end all the same.
  const answers = await Promise.all(['one', 'two', 'two', 'two', 'two'].map((project) => api.ensure({ template: 'app', project })));
  const [again, ...made] = answers.map(({ json }) => json.id);
  assert.equal(again, first.json.id);
  assert.equal(new Set(made).size, 1, JSON.stringify(answers.map(({ json }) => json)));
  await untilFull('app');
  for (const id of [again, made[0]]) await api.purge(id);
});

test('many at once never share one, nor is one lost', async () => {
  await patch('app', { pool: { size: 4 } });
  await untilFull('app');
  const made = await Promise.all(Array.from({ length: 16 }, (_, i) => api.create({ template: 'app', env: { MINE: String(i) } })));
  assert.equal(new Set(made.map(({ id }) => id)).size, 16);
  for (const [i, { id }] of made.entries()) assert.equal(await api.out(id, 'echo $MINE'), `${i}\n`);
  await Promise.all(made.map(({ id }) => api.purge(id)));
  await untilFull('app');
  assert.equal(waiting().length, 4);
  await patch('app', { pool: { size: 2 } });
  await until(() => waiting().length === 2, { what: 'the surplus is gone' });
});

test('a new version of the template drains what is stale, and none of it is given away', async () => {
  await untilFull('app');
  const stale = waiting();
  await patch('app', { env: { VERSION: 'two' } });
  const made = await api.create({ template: 'app' });
  assert.ok(!stale.includes(made.id));
  assert.equal(await api.out(made.id, 'echo $VERSION'), 'two\n');
  await until(() => waiting().every((id) => !stale.includes(id)) && sql(instance, `SELECT count(*) FROM sandboxes WHERE id IN (${stale.map((id) => `'${id}'`).join()})`).trim() === '0', { what: 'stale ones are gone' });
  assert.equal(await api.out((await claim({ template: 'app' })).id, 'echo $VERSION'), 'two\n');
});

test('another owner has no part in it: neither the pool, nor what was in it', async () => {
  const other = await ownerApi(api, 'acme', 'other');
  await put('app', [busybox()], other);
  const ids = waiting();
  const made = await other.create({ template: 'app' });
  assert.ok(!ids.includes(made.id));
  assert.equal(made.start.length, 0);
  await other.purge(made.id);
  assertError(await other.request('GET', '/v1/pools'), 403);
});

test('a quota counts when one is given away', async () => {
  const owner = await ownerApi(api, 'quota', 'one');
  await put('mine', [busybox()], owner);
  await patch('mine', { pool: { size: 2 } }, owner);
  assert.equal((await api.request('PUT', '/v1/quotas/quota/one', { json: { sandboxes: 1 } })).status, 200);
  await untilPool('mine', ({ ready }) => ready === 2, 'is full in spite of the quota');
  const first = await owner.create({ template: 'mine' });
  assertError(await owner.request('POST', '/v1/sandboxes', { json: { template: 'mine' } }), 429);
  await untilPool('mine', ({ ready }) => ready === 2, 'is full again');
  await owner.purge(first.id);
  await patch('mine', { pool: { size: 0 } }, owner);
  await until(async () => !(await pool('mine')), { what: 'the pool is gone' });
  assert.equal((await owner.request('DELETE', '/v1/templates/mine')).status, 204);
  await api.request('DELETE', '/v1/quotas/quota/one');
});

test('a template whose sandboxes do not become ready has an error that its owner is told, and creates work', async () => {
  const [stream, foreign] = await Promise.all([api, await ownerApi(api, 'acme', 'deaf')].map((who) => who.stream('GET', '/v1/events', { query: { topics: 'pool' } })));
  const told = [], overheard = [];
  for (const [one, list] of [[stream, told], [foreign, overheard]]) (async () => { for await (const event of one.events()) list.push(event); })().catch(() => {});
  await put('broken');
  await patch('broken', { start: [{ name: 'app', command: 'exit 1' }], ready: { port: 8080 }, pool: { size: 1 } });
  const { ready } = await untilPool('broken', ({ error }) => error !== null, 'it has an error');
  assert.equal(ready, 0);
  const made = await api.create({ template: 'broken' });
  assert.deepEqual([made.status, made.ready], ['running', false]);
  await api.purge(made.id);
  await patch('broken', { pool: { size: 0 } });
  await until(() => told.some(({ event }) => event === 'pool.failed'), { what: 'an event' });
  const { data } = told.find(({ event }) => event === 'pool.failed');
  assert.deepEqual([data.template, data.size], ['broken', 1]);
  assert.match(data.error, /^it (did not become ready in time|ended before it was ready)$/);
  const readyEvents = () => told.filter((one) => one.event === 'pool.ready' && one.data.template === 'app').length;
  await untilFull('app');
  const before = readyEvents();
  const given = await claim({ template: 'app' });
  await until(() => readyEvents() > before, { what: 'the next one is told' });
  assert.ok(!overheard.some(({ event }) => event.startsWith('pool.')));
  for (const each of [stream, foreign]) each.close();
  await api.purge(given.id);
});

test('a waiting sandbox that ends is replaced', async () => {
  await untilFull('app');
  const before = waiting();
  for (const { pid } of instance.sandboxInits()) process.kill(pid, 'SIGKILL');
  await until(() => !waiting().some((id) => before.includes(id)), { what: 'they are gone' });
  await untilFull('app');
});

test('after kill -9 of the daemon the ready ones wait on, the others are gone, and none is lost', async () => {
  await untilFull('app');
  const before = waiting();
  await patch('app', { pool: { size: 3 } });
  await instance.crash();
  await instance.start();
  await untilFull('app');
  assert.ok(before.every((id) => waiting().includes(id)), `${before} are not all in ${waiting()}`);
  const { id } = await claim({ template: 'app' });
  assert.equal(await api.out(id, 'echo $VERSION; cat /workspace/log'), 'two\nstarted bare\n');
  await api.purge(id);
});

test('with the keeper all that wait end, and others take their place', async () => {
  await untilFull('app');
  const before = waiting();
  process.kill(instance.keeper.pid, 'SIGKILL');
  await until(() => instance.daemon.how, { what: 'the daemon leaves because its keeper has' });
  await instance.startSupervised();
  await untilFull('app');
  assert.ok(!before.some((id) => waiting().includes(id)));
  assert.equal((await claim({ template: 'app' })).ready, true);
});

test('another setting drains what is stale', async () => {
  await untilFull('app');
  const before = waiting();
  await instance.terminate();
  await instance.start(['--pids', '777', '--pool', 'host=1']);
  await until(() => before.every((id) => !waiting().includes(id)), { what: 'stale ones are gone' });
  await untilFull('app');
  await untilFull('host');
  const other = await ownerApi(api, 'acme', 'somebody');
  const made = await claim({ template: 'host' }, other);
  assert.deepEqual([made.owner.organization, made.resources.pids], ['acme', 777]);
  assert.equal(await other.out(made.id, 'id -un; hostname'), 'sandbox\nsandbox\n');
  await other.purge(made.id);
});

test('secrets and rules of the new owner hold at once', async () => {
  const server = await httpServer();
  const secret = await api.request('PUT', '/v1/secrets/pool-key', { json: { url: `http://127.0.0.1:${server.port}`, value: 'hidden', header: 'X-Key', prefix: '' } });
  assert.equal(secret.status, 200, secret.text);
  const { id } = await claim({ template: 'host', network: { mode: 'none', secrets: ['pool-key'] } });
  await api.out(id, 'curl -s http://pool-key.internal/asked');
  assert.equal(server.heads.at(-1).headers['x-key'], 'hidden');
  await api.exec(id, 'curl -s http://c.example.org/ || true');
  const { denials } = (await api.request('GET', `/v1/sandboxes/${id}/network`)).json;
  assert.ok(denials.some(({ target }) => target.includes('c.example.org')), JSON.stringify(denials));
  await api.purge(id);
  await api.request('DELETE', '/v1/secrets/pool-key');
  server.close();
});

test('without memory to spare no pool is filled, and creates work', async () => {
  await instance.terminate();
  await instance.start(['--pool-reserve', '1024Ti', '--pool', 'host=1']);
  await until(async () => (await pools()).held_because === 'the host is short of memory', { what: 'it is held' });
  await until(() => waiting().length === 0, { what: 'stale ones are gone' });
  const made = await api.create();
  assert.equal(made.status, 'running');
  await untilPool('host', ({ misses, warming, ready }) => misses === 1 && warming === 0 && ready === 0, 'it was missed');
  await api.purge(made.id);
  await patch('app', { pool: { size: 0 } });
  await instance.terminate();
  await instance.start();
});

finish();
