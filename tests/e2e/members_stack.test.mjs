// SPDX-License-Identifier: Apache-2.0
// A whole stack, an application with PostgreSQL 15 and Redis 7 as the catalogue runs them, through all that may happen to
// a sandbox. Each visit of the application is a row of one and a count of the other: `visit` says how many there are.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import * as proc from './lib/proc.mjs';
import { remains } from './lib/remains.mjs';
import { bringPostgres, bringRedis } from './lib/services.mjs';
import { suite } from './lib/suite.mjs';
import { quoted } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('members_stack', { width: 4, user: null, canReboot: true });

const APP = `import http.server, os, subprocess
def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0 or "rror" in done.stdout:
        raise ValueError(done.stdout + done.stderr)
    return done.stdout.strip()
class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            rows = run("psql", "-qAt", "-c", "create table if not exists visits (n serial)", "-c", "insert into visits default values", "-c", "select count(*) from visits")
            self.send_response(200)
            body = rows + " " + run("redis-cli", "-u", os.environ["REDIS_URL"], "incr", "visits")
        except ValueError as error:
            self.send_response(503)
            body = str(error)
        self.end_headers()
        self.wfile.write(body.encode())
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), App).serve_forever()`;
const database = { role: 'database', template: 'postgres15', env: { POSTGRES_DB: 'shop' }, resources: { memory: '256Mi' } };
const cache = { role: 'cache', template: 'redis7', resources: { memory: '64Mi' } };
const STACK = { start: [{ name: 'app', command: `exec python3 -c ${quoted(APP)}` }], ports: [8000], members: [database, cache] };

const exec = async (id, command, role) => {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, query: { member: role } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};
/** How many rows and counts there are, this visit among them; when the application serves and both answer it. */
const visit = (id) => until(async () => {
  const { exit_code: code, stdout, stderr } = await exec(id, 'curl -sSf http://127.0.0.1:8000/');
  assert.equal(code, 0, stderr);
  return stdout.split(' ').map(Number);
}, { what: 'the application answers', every: 100 });
const member = async (id, role) => (await api.get(id)).members.find((one) => one.role === role);
const statuses = async (id) => Object.fromEntries((await api.get(id)).members.map(({ role, status }) => [role, status]));
const all = (status) => ({ primary: status, database: status, cache: status });
const untilHealthy = (id) => until(async () => (await api.get(id)).members.every(({ role, health, status }) => role === 'primary' || (health === 'healthy' && status === 'running')), { what: 'both servers are healthy' });
const initsOf = (id) => Promise.all([undefined, 'database', 'cache'].map((role) => instance.initOf(id, role)));

await bringPostgres(api);
await bringRedis(api);
const { id } = await api.create(STACK);

test('created, the application finds both servers, and each member says what it is', async () => {
  assert.deepEqual(await visit(id), [1, 1]);
  const { members } = await api.get(id);
  assert.deepEqual(members.map(({ role, template, runtime_type: type, port, status, health }) => [role, template, type, port, status, health]).sort(), [
    ['cache', 'redis7', 'redis7', 6379, 'running', 'healthy'], ['database', 'postgres15', 'postgres15', 5432, 'running', 'healthy'], ['primary', 'host', 'host', 8000, 'running', 'none']]);
  assert.match((await exec(id, 'psql -Atc "show server_version"')).stdout, /^15\./);
  assert.match((await exec(id, 'redis-cli -u $REDIS_URL info server')).stdout, /redis_version:7\./);
});

test('a pause, a stop and a crash of the daemon keep what was committed', async () => {
  const inits = await initsOf(id);
  await api.life(id, 'pause');
  assert.deepEqual(await statuses(id), all('paused'));
  await api.life(id, 'resume');
  assert.deepEqual(await visit(id), [2, 2]);
  await instance.crash();
  await instance.start();
  assert.deepEqual(await visit(id), [3, 3]);
  assert.ok(inits.every((init) => proc.isAlive(init)), 'neither ended anything');
  await api.life(id, 'stop');
  assert.deepEqual(await statuses(id), all('stopped'));
  assert.ok(inits.every((init) => !proc.isAlive(init)));
  assert.equal((await exec(id, 'echo woken')).stdout, 'woken\n');
  assert.deepEqual(await visit(id), [4, 4], 'use wakes all of it');
});

test('a member that is killed comes back with what it had, and the sandbox goes on', async () => {
  for (const [role, wanted] of [['cache', [5, 5]], ['database', [6, 6]]]) {
    const [own, killed] = await Promise.all([instance.initOf(id), instance.initOf(id, role)]);
    process.kill(killed.pid, 'SIGKILL');
    await until(async () => (await instance.initOf(id, role).catch(() => killed)).pid !== killed.pid, { what: `the ${role} was started anew` });
    await untilHealthy(id);
    assert.deepEqual(await visit(id), wanted, `after the ${role} died`);
    assert.ok(proc.isAlive(own));
    const { status, termination } = await api.get(id);
    assert.deepEqual([status, termination], ['running', null]);
  }
});

test('a database that runs out of memory says so, and has all its rows afterwards', async () => {
  const { termination } = await exec(id, 'exec dd if=/dev/zero of=/dev/null bs=500M count=1', 'database');
  assert.equal(termination.reason, 'oom', JSON.stringify(termination));
  await untilHealthy(id);
  assert.deepEqual(await visit(id), [7, 7]);
  assert.equal((await api.get(id)).status, 'running');
});

test('after a reboot of the host nothing runs, and a wake brings all of it back', async () => {
  const inits = await initsOf(id);
  await instance.reboot();
  assert.ok(inits.every((init) => !proc.isAlive(init)));
  assert.deepEqual(await statuses(id), all('stopped'));
  assert.deepEqual(await visit(id), [8, 8]);
  await untilHealthy(id);
  // One that was stopped at that time is as it was, too.
  await api.life(id, 'stop');
  await instance.reboot();
  assert.deepEqual(await visit(id), [9, 9]);
});

test('a snapshot and a fork have rows and counts of their own, with the passwords', async () => {
  const taken = await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
  assert.equal(taken.status, 201, taken.text);
  assert.deepEqual(await visit(id), [10, 10]);
  const copy = await api.create({ snapshot: taken.json.id });
  assert.deepEqual(await visit(copy.id), [10, 10]);
  const fork = await api.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} });
  assert.equal(fork.status, 201, fork.text);
  const [twin] = fork.json.sandboxes;
  assert.deepEqual(await visit(twin.id), [11, 11]);
  assert.deepEqual(await visit(id), [11, 11]);
  const env = async (one) => (await exec(one, 'env | grep -E "^(PG|REDIS|DATABASE|CACHE)" | sort')).stdout;
  assert.equal(await env(twin.id), await env(id));
  const back = await api.request('POST', `/v1/sandboxes/${id}/restore`, { json: { snapshot: taken.json.id } });
  assert.equal(back.status, 200, back.text);
  assert.deepEqual(await visit(id), [10, 10], 'a restore brings back both');
  for (const one of [copy, twin]) await api.purge(one.id);
  assert.equal((await api.request('DELETE', `/v1/snapshots/${taken.json.id}`)).status, 204);
});

test('a delete keeps the databases for a sandbox of the same id, also if their password is made up anew', async () => {
  const url = async () => (await exec(id, 'echo $DATABASE_URL')).stdout;
  const before = await url();
  await api.remove(id);
  assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404);
  await api.create({ id, ...STACK });
  assert.notEqual(await url(), before);
  assert.deepEqual(await visit(id), [11, 11]);
});

test('a reset empties both, and they work', async () => {
  await api.life(id, 'reset');
  assert.deepEqual(await visit(id), [1, 1]);
});

test('one that never becomes healthy holds up neither the application nor what it does not need', async () => {
  const never = { role: 'backend', template: 'redis7', command: 'exec sleep 10000', port: 9000, health: { command: 'false', interval_ms: 100, retries: 1, start_period_ms: 200 }, resources: { memory: '64Mi' } };
  const made = await api.create({ ...STACK, members: [database, cache, never] });
  await until(async () => (await member(made.id, 'backend')).health === 'unhealthy', { what: 'it is unhealthy' });
  assert.deepEqual(await visit(made.id), [1, 1]);
  assert.deepEqual(await statuses(made.id), { ...all('running'), backend: 'running' });
  await api.life(made.id, 'stop');
  assert.deepEqual(await statuses(made.id), { ...all('stopped'), backend: 'stopped' });
  await api.purge(made.id);
});

test('a purge leaves nothing of any of them', async () => {
  const ids = [id, ...(await api.get(id)).members.map((one) => one.id)];
  await api.purge(id);
  await until(() => {
    assert.deepEqual(remains(instance, new Set()), {});
    assert.equal(sql(instance, `SELECT count(*) FROM sandboxes WHERE id IN (${ids.map((one) => `'${one}'`).join()})`).trim(), '0');
    return true;
  }, { what: 'nothing remains' });
  const names = fs.readdirSync(instance.dataDir, { recursive: true }).filter((name) => ids.some((one) => path.basename(name).includes(one)));
  assert.deepEqual(names, []);
});

finish();
