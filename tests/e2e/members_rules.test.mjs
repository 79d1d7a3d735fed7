// SPDX-License-Identifier: Apache-2.0
// What is said of members and holds: what they show, when they are unhealthy, whom they wait for, when they are run
// again, and what they may use.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { busybox, image, registryServer } from './lib/images.mjs';
import { suite } from './lib/suite.mjs';
import { MI, quoted } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const images = { 'library/postgres:15-alpine': image([busybox()]), 'library/python:3.12.4-slim': image([busybox()]) };
const registry = await registryServer(images);
after(() => { registry.server.close(); registry.server.closeAllConnections(); });
const { api, finish } = await suite('members_rules', { args: ['--registry-plain', registry.host], width: 8 });

const member = async (id, role) => (await api.get(id)).members.find((one) => one.role === role);
const untilMember = (id, role, isSo, what) => until(async () => { const one = await member(id, role); return isSo(one) && one; }, { what: `${role} ${what}` });
const exec = async (id, command, role) => {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, query: { member: role } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};
const SLEEP = 'exec sleep 3600';

test('each member shows all that it is, its runtime as a word', async () => {
  const made = await api.create({
    start: SLEEP,
    members: [{ role: 'database', template: `${registry.host}/library/postgres:15-alpine`, command: SLEEP, port: 5433, health: { command: 'true' } },
      { role: 'backend', template: `${registry.host}/library/python:3.12.4-slim`, command: SLEEP, depends_on: [] }],
  });
  await untilMember(made.id, 'database', ({ health }) => health === 'healthy', 'is healthy');
  const { members } = await api.get(made.id);
  const backend = members.find(({ role }) => role === 'backend');
  const database = members.find(({ role }) => role === 'database');
  const primary = members.find(({ role }) => role === 'primary');
  assert.deepEqual(members, [
    { id: made.id, role: 'primary', template: 'host', runtime_type: 'host', port: null, status: 'running', health: 'none', error_message: null },
    { id: backend.id, role: 'backend', template: `${registry.host}/library/python:3.12.4-slim`, runtime_type: 'python312', port: null, status: 'running', health: 'none', error_message: null },
    { id: database.id, role: 'database', template: `${registry.host}/library/postgres:15-alpine`, runtime_type: 'postgres15', port: 5433, status: 'running', health: 'healthy', error_message: null },
  ].sort((a, b) => members.findIndex(({ role }) => role === a.role) - members.findIndex(({ role }) => role === b.role)));
  assert.equal(new Set([primary, backend, database].map(({ id }) => id)).size, 3);
  await api.purge(made.id);
});

test('a port with a preview may be that of a member; two on one port are refused', async () => {
  const frontend = { role: 'frontend', command: 'exec python3 -m http.server --bind 127.0.0.1 3000', port: 3000, depends_on: [] };
  const portsOf = async (json) => {
    const made = await api.create(json);
    await api.purge(made.id);
    return Object.fromEntries(made.members.map(({ role, port }) => [role, port]));
  };
  assert.deepEqual(await portsOf({ ports: [3000], members: [frontend] }), { primary: null, frontend: 3000 });
  assert.deepEqual(await portsOf({ ports: [3000, 8000], members: [frontend] }), { primary: 8000, frontend: 3000 });
  for (const other of [{ role: 'primary', port: 3000 }, { role: 'backend', command: SLEEP, port: 3000 }, { role: 'backend', command: SLEEP, health: { port: 3000 } }]) {
    const answer = await api.request('POST', '/v1/sandboxes', { json: { ports: [3000], members: [frontend, other] } });
    assert.deepEqual([answer.status, answer.json.error.code], [400, 'port_taken'], answer.text);
  }
});

test('a member that is never healthy is unhealthy after its time, which is told, and its sandbox goes on', async () => {
  const stream = await api.stream('GET', '/v1/events', { query: { topics: 'member' } });
  const told = [];
  (async () => { for await (const event of stream.events()) told.push(event); })().catch(() => {});
  const { id } = await api.create({ members: [{ role: 'backend', command: SLEEP, health: { port: 8001, interval_ms: 100, start_period_ms: 300 } }] });
  await untilMember(id, 'backend', ({ health }) => health === 'unhealthy', 'is unhealthy');
  await until(() => told.some(({ event, data }) => event === 'member.unhealthy' && data.sandbox === id && data.member === 'backend'), { what: 'it is told' });
  assert.equal((await member(id, 'backend')).status, 'running');
  assert.equal((await exec(id, 'echo goes on')).stdout, 'goes on\n');
  await exec(id, 'setsid python3 -m http.server --bind 127.0.0.1 8001 >/dev/null 2>&1 &', 'backend');
  await until(() => told.some(({ event, data }) => event === 'member.healthy' && data.sandbox === id), { what: 'it is healthy when it answers' });
  stream.close();
  await api.purge(id);
});

test('a member has the time that it was given to answer over HTTP, and nobody else waits for it', async () => {
  // Notes each question, and answers when it is told to.
  const APP = `import http.server, os, time
class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked", file=open("/workspace/outputs/asked", "a"), flush=True)
        while not os.path.exists("/workspace/outputs/go"): time.sleep(0.05)
        self.send_response(200)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", 8002), App).serve_forever()`;
  const slow = { role: 'backend', command: `exec python3 -c ${quoted(APP)}`, health: { port: 8002, path: '/up', interval_ms: 100, timeout_ms: 60_000 } };
  const { id } = await api.create({ members: [slow] });
  const asked = async () => (await exec(id, 'cat /workspace/outputs/asked')).stdout;
  await until(async () => (await asked()) === 'asked\n', { what: 'it is asked' });
  const other = await api.create({ members: [{ role: 'backend', command: 'exec python3 -m http.server --bind 127.0.0.1 8003', health: { port: 8003, path: '/' } }] });
  await untilMember(other.id, 'backend', ({ health }) => health === 'healthy', 'is healthy');
  assert.deepEqual([await asked(), (await member(id, 'backend')).health], ['asked\n', 'starting'], 'it is still waited for');
  await api.life(id, 'pause');
  await api.life(id, 'resume');
  await exec(id, 'touch /workspace/outputs/go');
  await untilMember(id, 'backend', ({ health }) => health === 'healthy', 'is healthy');
  for (const one of [id, other.id]) await api.purge(one);
});

test('what a member runs is asked for as soon as it ends and when it runs again, however seldom else', async () => {
  const serve = (port) => ({ command: `exec python3 -m http.server --bind 127.0.0.1 ${port}`, health: { port, interval_ms: 3_600_000 } });
  const { id } = await api.create({ members: [{ role: 'cache', restart: 'never', ...serve(8004) }, { role: 'backend', ...serve(8005), depends_on: [] }] });
  for (const role of ['cache', 'backend']) {
    await untilMember(id, role, ({ health }) => health === 'healthy', 'is healthy');
    const { processes: [{ pid }] } = (await api.request('GET', `/v1/sandboxes/${id}/processes`, { query: { member: role } })).json;
    await exec(id, `kill -9 ${pid}`, role);
  }
  await untilMember(id, 'cache', ({ status, health }) => status === 'exited' && health === 'unhealthy', 'has ended and is unhealthy');
  await until(async () => {
    const { processes } = (await api.request('GET', `/v1/sandboxes/${id}/processes`, { query: { member: 'backend' } })).json;
    return processes.length > 1 && (await member(id, 'backend')).health === 'healthy';
  }, { what: 'the other runs again and is healthy' });
  await api.purge(id);
});

test('depends_on says who waits for whom: nobody, or one that is healthy only now', async () => {
  const stream = await api.stream('GET', '/v1/events', { query: { topics: 'member' } });
  const told = [];
  (async () => { for await (const event of stream.events()) told.push(event); })().catch(() => {});
  const { id } = await api.create({
    start: `touch /workspace/outputs/started; ${SLEEP}`,
    members: [{ role: 'primary', depends_on: [] },
      { role: 'cache', command: SLEEP, health: { command: 'test -e /workspace/outputs/go', interval_ms: 100 } },
      { role: 'backend', command: `touch /workspace/outputs/after; ${SLEEP}`, depends_on: ['cache'], health: { command: 'test -e /workspace/outputs/after' } }],
  });
  await until(async () => (await exec(id, 'ls /workspace/outputs')).stdout === 'started\n', { what: 'the sandbox waits for nobody' });
  const { members } = await api.get(id);
  assert.deepEqual(members.map(({ role, status, health }) => `${role} ${status} ${health}`).sort(), ['backend waiting starting', 'cache running starting', 'primary running none']);
  await exec(id, 'touch /workspace/outputs/go');
  await untilMember(id, 'backend', ({ status, health }) => status === 'running' && health === 'healthy', 'runs');
  const order = () => told.filter(({ event, data }) => data.sandbox === id && event === 'member.healthy').map(({ event, data }) => `${event} ${data.member}`);
  await until(() => order().includes('member.healthy backend'), { what: 'both are told' });
  assert.deepEqual(order(), ['member.healthy cache', 'member.healthy backend']);
  stream.close();
  await api.purge(id);
});

test('restart: always runs again what ends with 0, on-failure and never do not, and on-failure what fails', async () => {
  const counts = (role, code) => `echo run >> /workspace/outputs/${role}; exit ${code}`;
  const { id } = await api.create({
    members: [{ role: 'cache', command: counts('cache', 0), restart: 'always' }, { role: 'backend', command: counts('backend', 0) },
      { role: 'database', command: counts('database', 7), restart: 'never' }, { role: 'frontend', command: counts('frontend', 7), depends_on: [] }],
  });
  const runs = async (role) => Number((await exec(id, `cat /workspace/outputs/${role} 2>/dev/null | wc -l`)).stdout);
  for (const role of ['cache', 'frontend']) await until(async () => (await runs(role)) >= 2, { what: `${role} runs again` });
  for (const role of ['backend', 'database']) {
    await untilMember(id, role, ({ status }) => status === 'exited', 'has ended');
    assert.equal(await runs(role), 1);
  }
  await api.purge(id);
});

test('a member has limits of its own of processor, memory and processes', async () => {
  const { id } = await api.create({ resources: { pids: 200 }, members: [{ role: 'backend', command: SLEEP, resources: { cpu: 0.25, memory: '96Mi', pids: 20 } }] });
  const stats = (role) => api.request('GET', `/v1/sandboxes/${id}/stats`, { query: { member: role } }).then(({ json }) => json);
  const { cpu, memory, pids } = await stats('backend');
  assert.deepEqual([cpu.limit, memory.limit_bytes, pids.limit], [0.25, 96 * MI, 20]);
  assert.equal((await stats('primary')).pids.limit, 200);
  const FORK = 'python3 - <<E\nimport os\nn = 0\ntry:\n  while n < 60:\n    if os.fork() == 0: os.execvp("sleep", ["sleep", "60"])\n    n += 1\nexcept OSError: pass\nprint(n)\nE\npkill sleep; true';
  const made = Number((await exec(id, FORK, 'backend')).stdout);
  assert.ok(made < 20, `${made} processes in a member that may have 20`);
  assert.ok(Number((await exec(id, FORK)).stdout) === 60, 'the sandbox has its own limit');
  // With a quarter of a processor work takes at least about four times as long, however idle the host is.
  const BURN = 'python3 - <<E\nimport time\nt, p = time.monotonic(), time.process_time()\nwhile time.process_time() - p < 0.4: pass\nprint(time.monotonic() - t)\nE';
  const seconds = Number((await exec(id, BURN, 'backend')).stdout);
  assert.ok(seconds > 0.8, `0.4 s of the processor took ${seconds} s`);
  await api.purge(id);
});

finish();
