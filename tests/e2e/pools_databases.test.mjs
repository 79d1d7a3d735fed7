// SPDX-License-Identifier: Apache-2.0
// PostgreSQL 15 and Redis 7, as the catalogue runs them, in sandboxes that wait in a pool: whoever is given one finds the
// database made and answering, with what belongs to him alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sql } from './lib/database.mjs';
import { bringClients, bringPostgres, bringRedis } from './lib/services.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('pools_databases', { args: ['--pool-reserve', '0', '--memory-reserve', '0'], width: 4 });

const MEMBERS = [
  { role: 'database', template: 'postgres15', env: { POSTGRES_DB: 'shop' }, resources: { memory: '256Mi' } },
  { role: 'cache', template: 'redis7', resources: { memory: '64Mi' } },
];
const pool = async () => (await api.request('GET', '/v1/pools')).json.pools.find(({ template }) => template === 'stack');
const full = () => until(async () => { const { ready, size, warming } = await pool(); return ready === size && warming === 0; }, { what: 'the pool is full' });
const waiting = () => sql(instance, 'SELECT id FROM pooled WHERE state = 1 ORDER BY id').split('\n').filter(Boolean);
const query = (id, text) => api.out(id, `psql "$DATABASE_URL" -qAtc "${text}"`);
const redis = (id, words) => api.out(id, `redis-cli -u "$REDIS_URL" ${words}`);
/** The sandbox that waits, given to a create of this; what is asked of it is asked at once. */
async function claim(body = {}) {
  await full();
  const ids = waiting();
  const { hits } = await pool();
  const made = await api.create({ template: 'stack', ...body });
  assert.ok(ids.includes(made.id), 'it waited');
  assert.equal((await pool()).hits, hits + 1);
  return made;
}

await bringPostgres(api);
await bringRedis(api);
await bringClients(api, 'stack');
const patched = await api.request('PATCH', '/v1/templates/stack', { json: { members: MEMBERS, pool: { size: 2 } } });
assert.equal(patched.status, 200, patched.text);

test('the database is made and answers when a waiting sandbox is given away, and so does the cache', async () => {
  await full();
  const before = waiting();
  const logs = async (id) => (await api.request('GET', `/v1/sandboxes/${id}/processes/p1/output`, { query: { member: 'database', follow: 'false' } })).text;
  const made = await claim({ name: 'shop', env: { WORD: 'mine' }, network: { mode: 'none' } });
  assert.deepEqual(made.members.map(({ role, status, health }) => [role, status, health]).sort(), [['cache', 'running', 'healthy'], ['database', 'running', 'healthy'], ['primary', 'running', 'none']]);
  // No waiting and no second try: it has been ready all the time.
  assert.equal(await query(made.id, 'create table orders (n int); insert into orders values (1); select current_database(), count(*) from orders'), 'shop|1\n');
  assert.equal(await redis(made.id, 'set key value'), 'OK\n');
  assert.equal(await api.out(made.id, 'echo $WORD $PGDATABASE; hostname'), 'mine shop\nshop\n');
  assert.ok(Date.parse(made.created_at) > Date.parse(made.started_at), 'its servers began before it was asked for');
  assert.match(await logs(made.id), /database system is ready to accept connections/);
  assert.ok(!(await logs(made.id)).includes('FATAL'));
  assert.ok(before.includes(made.id));
  await api.life(made.id, 'stop');
  await api.life(made.id, 'start');
  await until(async () => (await query(made.id, 'select n from orders')) === '1\n', { what: 'the row is there after a wake' });
  assert.equal(await redis(made.id, 'get key'), 'value\n');
  await api.purge(made.id);
});

test('two have nothing of each other: rows, keys and passwords', async () => {
  const [one, two] = [await claim(), await claim()];
  await query(one.id, 'create table secrets (t text)');
  await redis(one.id, 'set secret of-one');
  const password = async ({ id }) => (await api.out(id, 'echo $PGPASSWORD')).trim();
  assert.match(await password(one), /^[0-9a-f]{32}$/);
  assert.notEqual(await password(one), await password(two));
  assert.equal(await query(two.id, "select to_regclass('secrets') is null"), 't\n');
  assert.equal(await redis(two.id, 'exists secret'), '0\n');
  const wrong = await api.exec(two.id, { command: 'psql -Atc "select 1"', env: { PGPASSWORD: await password(one) } });
  assert.notEqual(wrong.exit_code, 0);
  assert.match(wrong.stderr, /password authentication failed/);
  for (const { id } of [one, two]) await api.purge(id);
  const next = await claim();
  assert.equal(await query(next.id, "select to_regclass('secrets') is null"), 't\n');
  await api.purge(next.id);
});

test('after kill -9 of the daemon they wait on with their databases, and are given away as before', async () => {
  await full();
  const before = waiting();
  await instance.crash();
  await instance.start();
  await full();
  assert.deepEqual(waiting(), before);
  const made = await claim();
  assert.equal(await query(made.id, 'select 40 + 2'), '42\n');
  await api.purge(made.id);
});

test('another version of the database drains what waits, and what is given away then is new', async () => {
  await full();
  const stale = waiting();
  const changed = await api.request('PATCH', '/v1/templates/postgres15', { json: { env: { PGOPTIONS_NOTE: 'two' } } });
  assert.equal(changed.status, 200, changed.text);
  await until(() => waiting().every((id) => !stale.includes(id)), { what: 'what is stale is gone' });
  const made = await claim();
  assert.ok(!stale.includes(made.id));
  assert.equal(await query(made.id, 'select 1'), '1\n');
  await api.purge(made.id);
  assert.equal((await api.request('PATCH', '/v1/templates/stack', { json: { pool: { size: 0 } } })).status, 200);
  await until(() => sql(instance, 'SELECT id FROM pooled').trim() === '', { what: 'nothing waits' });
});

finish();
