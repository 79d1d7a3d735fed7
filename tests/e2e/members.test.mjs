// SPDX-License-Identifier: Apache-2.0
// Members: a database and a cache beside an application, in one network and with one workspace.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('members');

const PG = '/usr/lib/postgresql/15/bin';
/** PostgreSQL 15 of the host's packages, as a member that keeps its data in its durable directory. */
const database = {
  role: 'database', template: 'host', port: 5432, env: { POSTGRES_USER: 'app', POSTGRES_DB: 'shop' },
  resources: { memory: '256Mi' },
  command: `cd /volumes; [ -s pg/PG_VERSION ] || { echo "$POSTGRES_PASSWORD" >pw; ${PG}/initdb -N -D pg -U app --pwfile=pw -A scram-sha-256 >&2 && `
    + `echo "create database shop;" | ${PG}/postgres --single -D pg postgres; }; exec ${PG}/postgres -D pg -k /tmp -h 127.0.0.1`,
  health: { command: `${PG}/pg_isready -q` },
};
const cache = { role: 'cache', template: 'host', port: 6379, command: 'exec redis-server --port 6379 --bind 127.0.0.1 --dir /volumes --save ""', resources: { memory: '64Mi' } };

const member = async (id, role) => (await api.get(id)).members.find((one) => one.role === role);
const untilMember = (id, role, isSo, what) => until(async () => { const one = await member(id, role); return isSo(one) && one; }, { what: `${role} ${what}` });
const untilHealthy = (id, role) => untilMember(id, role, (one) => one.health === 'healthy', 'is healthy');
const exec = async (id, command, role) => {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, query: { member: role } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};

test('an application meets its database and its cache on 127.0.0.1', async () => {
  const made = await api.create({ members: [database, cache], start: 'psql -c "create table t (v text)" && echo up > /workspace/outputs/up; exec sleep 1000' });
  assert.deepEqual(made.members.map((one) => one.role).sort(), ['cache', 'database', 'primary']);
  await untilHealthy(made.id, 'database');
  await untilHealthy(made.id, 'cache');
  const seen = await exec(made.id, 'echo $DATABASE_URL; redis-cli -u $REDIS_URL ping');
  assert.match(seen.stdout, /^postgresql:\/\/app:[0-9a-f]{32}@127\.0\.0\.1:5432\/shop\nPONG\n$/);
  await until(async () => (await exec(made.id, 'cat /workspace/outputs/up')).stdout === 'up\n', { what: 'its start command ran after them' });
  await api.purge(made.id);
});

const query = async (id, sql, role) => (await exec(id, `psql -Atc "${sql}"`, role)).stdout.trim();
/** A sandbox with PostgreSQL and Redis in which a row was committed. */
const fullStack = async () => {
  const { id } = await api.create({ members: [database, cache] });
  await untilHealthy(id, 'database');
  await query(id, 'create table kept (v text)');
  await query(id, "insert into kept values ('committed')");
  return id;
};

test('a committed row survives stop and wake and kill -9 of everything, and is in a fork; a reset empties the database, a purge leaves nothing', async () => {
  const id = await fullStack();
  assert.equal((await api.life(id, 'stop')).status, 'stopped');
  assert.deepEqual((await api.get(id)).members.map((one) => one.status), ['stopped', 'stopped', 'stopped']);
  await api.life(id, 'start');
  await untilHealthy(id, 'database');
  assert.equal(await query(id, 'select v from kept'), 'committed');
  await instance.crash();
  await instance.start();
  await untilHealthy(id, 'database');
  assert.equal(await query(id, 'select v from kept'), 'committed');
  // The power fails: nobody was asked to end, and what was not synced would be lost with the system layer.
  await query(id, "insert into kept values ('late')");
  const { daemon } = instance;
  process.kill(instance.keeper.pid, 'SIGKILL');
  process.kill(daemon.pid, 'SIGKILL');
  await until(() => daemon.how, { what: 'the daemon is gone' });
  await instance.start();
  await api.life(id, 'start');
  await untilHealthy(id, 'database');
  assert.equal(await query(id, 'select v from kept order by v'), 'committed\nlate');
  const fork = await api.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} });
  assert.equal(fork.status, 201, fork.text);
  const [{ id: twin }] = fork.json.sandboxes;
  await untilHealthy(twin, 'database');
  await query(twin, 'delete from kept');
  assert.equal(await query(id, 'select count(*) from kept'), '2', 'the fork has a database of its own, with the rows');
  await api.purge(twin);
  await api.life(id, 'reset');
  await untilHealthy(id, 'database');
  assert.equal((await exec(id, 'psql -c "select v from kept"')).exit_code, 1);
  await api.purge(id);
});

/** The program that the catalogue puts beside packages of Debian, run with those of the host. */
const program = (name) => fs.readFileSync(new URL(`../../src/core/template/${name}.sh`, import.meta.url), 'utf8');
const catalogue = JSON.parse(fs.readFileSync(new URL('../../src/core/template/catalogue.json', import.meta.url), 'utf8'));
const healthOf = (name) => ({ command: catalogue.find((row) => row.name === name).health });

test('what the catalogue runs makes its database once, begins anew if that was cut short, and keeps odd names and passwords', async () => {
  const env = { POSTGRES_USER: 'o-ne', POSTGRES_DB: 'sh" op', POSTGRES_PASSWORD: "p'a $s\\" };
  const id = (await api.create({
    members: [{ role: 'database', port: 5432, env, command: `mkdir -p /volumes/postgresql.new/half\n${program('start_postgres')}`, health: healthOf('postgres15'), resources: { memory: '256Mi' } },
      { role: 'cache', port: 6379, env: { REDIS_PASSWORD: 'q"\\ $x' }, command: program('start_redis'), health: healthOf('redis7') }],
  })).id;
  await untilHealthy(id, 'database');
  await untilHealthy(id, 'cache');
  await exec(id, 'psql "$DATABASE_URL" -c "create table kept as select current_user, current_database()"');
  const redis = async (command) => (await exec(id, `REDISCLI_AUTH="$REDIS_PASSWORD" redis-cli ${command}`, 'cache')).stdout;
  assert.equal(await redis('set a 1'), 'OK\n');
  assert.match((await exec(id, 'redis-cli get a')).stdout, /^NOAUTH/);
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await untilHealthy(id, 'database');
  await untilHealthy(id, 'cache');
  assert.equal(await query(id, 'select * from kept'), 'o-ne|sh" op');
  assert.equal(await redis('get a'), '1\n');
  await api.purge(id);
});

test('the volumes that an image names begin with what it has there, and survive wake, kill -9 and delete, until a reset', async () => {
  const layer = [{ name: 'data', mode: 0o750, uid: 5 }, { name: 'data/seed', data: 'seed\n', mode: 0o640, uid: 6 }, { name: 'data/in' }, { name: 'data/link', type: 'symlink', target: 'seed' }];
  const config = { Cmd: ['sleep', '1000'], Volumes: { '/data/in': {}, '/data': {}, '/var/lib/db': {}, '/tmp': {}, '/proc/x': {}, '/a/../b': {} } };
  const put = await api.request('PUT', '/v1/templates/voluminous/archive', { body: layoutArchive(image([busybox(), layer], { config })), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  const json = { members: [{ role: 'backend', template: 'voluminous' }] };
  const { id } = await api.create(json);
  const out = async (command) => { const answer = await exec(id, command, 'backend'); assert.equal(answer.exit_code, 0, answer.stderr); return answer.stdout; };
  const fresh = 'seed\n5:750\n6:640\n/volumes/data/in\n/volumes/var/lib/db\n/tmp\n';
  const look = 'cat /data/link; stat -Lc %u:%a /data /data/seed; for i in /data/in /var/lib/db /tmp; do readlink -f $i; done';
  assert.equal(await out(look), fresh);
  await out('echo changed > /data/seed; echo row > /var/lib/db/row; echo inner > /data/in/row; head -c 3000000 /dev/zero > /var/lib/db/large; sync');
  const kept = async (when) => assert.equal(await out('cat /data/seed /var/lib/db/row /data/in/row'), 'changed\nrow\ninner\n', when);
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await kept('after a wake');
  await instance.crash();
  await instance.start();
  await kept('after kill -9 of the daemon');
  await until(async () => (await api.stats(id)).disk.used_bytes > 3_000_000, { what: 'they count as disk' });
  // The system layer goes, and the links with it.
  assert.equal((await api.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
  await api.create({ id, ...json });
  await kept('after a delete');
  // What somebody puts in the place of one is not removed.
  await out('rm /var/lib/db; mkdir /var/lib/db; echo mine > /var/lib/db/mine');
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await kept('after one was replaced');
  assert.equal(await out('cat /var/lib/.*/mine'), 'mine\n');
  await api.life(id, 'reset');
  assert.equal(await out(`${look}; ls /var/lib/db`), fresh, 'a reset begins anew');
  await api.purge(id);
});

test('exec, files, processes and stats take a member, and what a member is not is refused', async () => {
  const { id } = await api.create({ members: [{ role: 'cache', template: 'host', port: 6379, command: 'exec sleep 1000', health: { command: 'true' } }] });
  assert.equal((await exec(id, 'uname -n', 'cache')).stdout, 'cache\n');
  assert.equal((await exec(id, 'uname -n', 'primary')).stdout, 'sandbox\n');
  await exec(id, 'echo shared > /workspace/outputs/file; echo own > /tmp/own', 'cache');
  assert.equal((await exec(id, 'cat /workspace/outputs/file; cat /tmp/own')).stdout, 'shared\n');
  const on = (path, member) => api.request('GET', `/v1/sandboxes/${id}/${path}`, { query: { member } });
  assert.equal((await api.request('GET', `/v1/sandboxes/${id}/files`, { query: { path: '/tmp/own', member: 'cache' } })).text, 'own\n');
  assert.equal((await on('processes', 'cache')).json.processes[0].command, 'exec sleep 1000');
  assert.equal((await on('stats', 'cache')).status, 200);
  assert.equal(assertError(await on('stats', 'backend'), 404).code, 'member_not_found');
  const inner = (await member(id, 'cache')).id;
  assertError(await api.request('GET', `/v1/sandboxes/${inner}`), 404);
  assertError(await api.request('POST', `/v1/sandboxes/${inner}/purge`), 404);
  assert.ok(!(await api.all()).some((one) => one.id === inner), 'no list shows it');
  await api.purge(id);
});

test('a member whose process dies is run again, and the sandbox goes on', async () => {
  const { id } = await api.create({ members: [{ ...cache, health: { port: 6379, interval_ms: 100, retries: 1 } }] });
  await untilHealthy(id, 'cache');
  const { pid } = await api.request('GET', `/v1/sandboxes/${id}/processes`, { query: { member: 'cache' } }).then((answer) => answer.json.processes[0]);
  await exec(id, `kill -9 ${pid}`, 'cache');
  await untilMember(id, 'cache', (one) => one.status === 'restarting', 'is restarting');
  assert.equal((await api.get(id)).status, 'running');
  await untilMember(id, 'cache', (one) => one.status === 'running' && one.health === 'healthy', 'is healthy again');
  await api.purge(id);
});

test('what waits for a member that never becomes healthy waits, and the sandbox can be used', async () => {
  const { id } = await api.create({ members: [{ role: 'database', template: 'host', command: 'exec sleep 1000', health: { command: 'false' } }], start: 'exec sleep 1001' });
  assert.deepEqual((await api.get(id)).members.map((one) => [one.role, one.status, one.health]).sort(), [['database', 'running', 'starting'], ['primary', 'waiting', 'none']]);
  assert.equal((await exec(id, 'echo usable')).stdout, 'usable\n');
  await api.purge(id);
});

test('members that cannot be are 400 and leave nothing', async () => {
  const one = (role, more = {}) => ({ role, template: 'host', command: 'sleep 1', ...more });
  const refused = async (members, code = 'invalid_field') => assert.equal(assertError(await api.request('POST', '/v1/sandboxes', { json: { members } }), 400).code, code);
  await refused([one('database', { port: 5000 }), one('cache', { port: 5000 })], 'port_taken');
  await refused([one('database'), one('database')]);
  await refused([one('database', { depends_on: ['cache'] })]);
  await refused([one('database', { depends_on: ['cache'] }), one('cache', { depends_on: ['database'] })]);
  await refused([one('queue')]);
  await refused([{ role: 'database', template: 'host' }]);
  await refused([one('database', { health: { path: '/' } })]);
});

finish();
