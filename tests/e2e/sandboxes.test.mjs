// SPDX-License-Identifier: Apache-2.0
// Sandboxes and their life cycle.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, test } from 'node:test';

import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { GI, MI, assertSandbox, bytesOf, quoted, ulid } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('sandboxes');
const NOBODY = '01arz3ndektsv4rrffq69g5fav';
const OUTPUTS = '/workspace/outputs';
const AGENT = '/workspace/agent_workspace';

/** Starts something in the sandbox that stays; returns when it runs. */
async function leaveRunning(id, command) {
  await api.out(id, { command: `setsid sh -c ${quoted(command)} </dev/null >/dev/null 2>&1 &` });
}

const diskEntries = (id) => ['sandboxes', 'workspaces'].filter((dir) => proc.stored(path.join(instance.dataDir, dir)).some((name) => name.includes(id)));

afterEach(() => (instance.daemon.how || api.made.size === 0 ? undefined : purgeAll(api)));

// Create --------------------------------------------------------------------------------------

test('create with an empty object makes a running sandbox with all defaults', async () => {
  const before = Date.now();
  const sandbox = await api.create({});
  assertSandbox(sandbox);
  assert.equal(sandbox.status, 'running');
  assert.deepEqual(sandbox.owner, { organization: 'default', user: 'admin', project: null });
  assert.equal(sandbox.template, 'host');
  assert.equal(sandbox.driver, 'native');
  assert.equal(sandbox.resources.cpu, 1);
  assert.equal(bytesOf(sandbox.resources.memory), GI);
  assert.equal(bytesOf(sandbox.resources.disk), 2 * GI);
  assert.equal(sandbox.resources.pids, 1024);
  assert.deepEqual(sandbox.labels, {});
  assert.deepEqual(sandbox.network, { mode: 'internet' });
  assert.equal(sandbox.idle_timeout_s, 2100);
  assert.equal(sandbox.lifetime_s, null);
  assert.equal(sandbox.private, true);
  assert.equal(sandbox.expires_at, null);
  assert.equal(sandbox.termination, null);
  assert.equal(sandbox.error_message, null);
  for (const name of ['created_at', 'started_at', 'last_active_at']) {
    const time = Date.parse(sandbox[name]);
    assert.ok(time >= before - 1000 && time <= Date.now() + 1000, `${name}: ${sandbox[name]}`);
  }
});

test('create with no body at all is the same as with an empty object', async () => {
  const answer = await api.request('POST', '/v1/sandboxes');
  assert.equal(answer.status, 201, answer.text);
  assertSandbox(answer.json);
  assert.equal(answer.headers['content-type'].split(';')[0], 'application/json');
});

test('create with every field gives every field back', async () => {
  const id = ulid();
  const body = {
    id, template: 'host', project: 'everything', resources: { cpu: 0.5, memory: '256Mi', disk: '1Gi', pids: 64 },
    env: { GREETING: 'hello', EMPTY: '', UNICODE: 'žluť ☃' }, ports: [3000, 8080], labels: { team: 'core', stage: 'test' }, network: { mode: 'none' },
    idle_timeout_s: 600, lifetime_s: 3600, private: false, members: [],
  };
  const before = Date.now();
  const sandbox = await api.create(body);
  assertSandbox(sandbox);
  assert.equal(sandbox.id, id);
  assert.deepEqual(sandbox.owner, { organization: 'default', user: 'admin', project: 'everything' });
  assert.deepEqual({ ...sandbox.resources, memory: bytesOf(sandbox.resources.memory), disk: bytesOf(sandbox.resources.disk) }, { cpu: 0.5, memory: 256 * MI, disk: GI, pids: 64 });
  assert.deepEqual(sandbox.ports, [3000, 8080]);
  assert.deepEqual(sandbox.labels, body.labels);
  assert.equal(sandbox.network.mode, 'none');
  assert.equal(sandbox.idle_timeout_s, 600);
  assert.equal(sandbox.lifetime_s, 3600);
  assert.equal(sandbox.private, false);
  assert.match(sandbox.previews['8080'], new RegExp(`^http://s-${id}-8080\\.preview\\.localhost(:\\d+)?/?$`));
  assert.ok(Math.abs(Date.parse(sandbox.expires_at) - before - 3600_000) < 10_000, sandbox.expires_at);
  const { last_active_at: a, ...rest } = sandbox;
  const { last_active_at: b, ...again } = await api.get(id);
  assert.deepEqual(again, rest, 'get shows what create answered');
  assert.equal(await api.out(id, 'printf "%s|%s|%s" "$GREETING" "$EMPTY" "$UNICODE"'), 'hello||žluť ☃');
});

test('an allowlist is kept as it was given', async () => {
  const network = { mode: 'allowlist', allow: ['example.com', '*.example.org', '10.1.0.0/16'] };
  const { id } = await api.create({ network });
  assert.deepEqual((await api.get(id)).network, network);
});

test('sizes are numbers of bytes or strings with Ki, Mi, Gi', async () => {
  for (const [memory, bytes] of [[256 * MI, 256 * MI], ['262144Ki', 256 * MI], ['256Mi', 256 * MI], ['1Gi', GI], [String(256 * MI), 256 * MI]]) {
    const sandbox = await api.create({ resources: { memory } });
    assert.equal(bytesOf(sandbox.resources.memory), bytes, JSON.stringify(memory));
    assert.equal((await api.stats(sandbox.id)).memory.limit_bytes, bytes);
    await api.purge(sandbox.id);
  }
});

test('a partly given resource leaves the other defaults', async () => {
  const { resources } = await api.create({ resources: { pids: 99 } });
  assert.equal(resources.pids, 99);
  assert.equal(resources.cpu, 1);
  assert.equal(bytesOf(resources.memory), GI);
});

test('ids that the daemon chooses differ and sort by time', async () => {
  const ids = [];
  for (let i = 0; i < 5; i++) {
    const { id } = await api.create();
    ids.push(id);
    await until(() => true, { every: 2 });
  }
  assert.equal(new Set(ids).size, 5);
  const times = ids.map((id) => id.slice(0, 10));
  assert.deepEqual([...times].sort(), times);
});

test('a second create with the same id is 409 and leaves the first as it was', async () => {
  const { id } = await api.create({ labels: { first: 'yes' } });
  await api.put(id, `${AGENT}/mine`, 'precious');
  const error = assertError(await api.request('POST', '/v1/sandboxes', { json: { id, labels: { first: 'no' } } }), 409);
  assert.match(error.message, new RegExp(id));
  assert.deepEqual((await api.get(id)).labels, { first: 'yes' });
  assert.equal((await api.read(id, `${AGENT}/mine`)).toString(), 'precious');
  await api.life(id, 'stop');
  assertError(await api.request('POST', '/v1/sandboxes', { json: { id } }), 409);
});

test('a second live sandbox for the same project is 409, another project is fine', async () => {
  const { id } = await api.create({ project: 'one-of-a-kind' });
  const taken = await api.request('POST', '/v1/sandboxes', { json: { project: 'one-of-a-kind' } });
  assertError(taken, 409);
  assert.equal(taken.json.error.code, 'project_has_sandbox');
  assert.ok(taken.json.error.message.includes(id), 'it names the sandbox that is there');
  await api.create({ project: 'another-kind' });
  await api.purge(id);
  await api.create({ project: 'one-of-a-kind' });
});

test('ids of wrong form are 400 and create nothing', async () => {
  const before = (await api.all()).length;
  for (const id of ['', 'x', 'A'.repeat(26), '../../../etc/passwd/0000000', `${ulid()}0`, ulid().slice(1), `${ulid().slice(0, 25)}/`, `${ulid().slice(0, 25)}\n`, `${ulid().slice(0, 24)}é`, 5, null, [], {}]) {
    if (id === null) continue;
    assertError(await api.request('POST', '/v1/sandboxes', { json: { id } }), 400, /id/);
  }
  assert.equal((await api.all()).length, before);
});

// Read ----------------------------------------------------------------------------------------

test('ids that do not exist or cannot exist are 404 or 400 everywhere', async () => {
  for (const id of [NOBODY, 'x', 'A'.repeat(26), '..', '%2e%2e', '%00', `${'0'.repeat(26)}%0a`, 'a'.repeat(5000), '%ff%fe', "1'%20or%20'1'='1"]) {
    for (const [method, tail] of [['GET', ''], ['DELETE', ''], ['PATCH', ''], ['POST', '/start'], ['POST', '/stop'], ['POST', '/pause'], ['POST', '/resume'], ['POST', '/reset'], ['POST', '/purge'], ['GET', '/stats'], ['POST', '/exec']]) {
      const json = { PATCH: {}, POST: tail === '/exec' ? { command: 'true' } : undefined }[method];
      assertError(await api.request(method, `/v1/sandboxes/${id}${tail}`, { json }), id === NOBODY ? 404 : [400, 404]);
    }
  }
});

test('the list holds each sandbox once and filters by status, template, project and label', async () => {
  const tag = ulid();
  const one = await api.create({ labels: { tag, kind: 'a' }, project: `p-${tag}` });
  const two = await api.create({ labels: { tag, kind: 'b' } });
  await api.life(two.id, 'stop');
  const ids = async (query) => (await api.all(query)).map((sandbox) => sandbox.id).sort();
  assert.deepEqual(await ids({ label: `tag=${tag}` }), [one.id, two.id].sort());
  assert.deepEqual(await ids({ label: 'kind=a' }), [one.id]);
  assert.deepEqual(await ids({ label: `tag=${tag}`, status: 'stopped' }), [two.id]);
  assert.deepEqual(await ids({ label: `tag=${tag}`, status: 'running' }), [one.id]);
  assert.deepEqual(await ids({ project: `p-${tag}` }), [one.id]);
  assert.deepEqual(await ids({ label: `tag=${tag}`, template: 'host' }), [one.id, two.id].sort());
  assert.deepEqual(await ids({ template: 'nothing-like-it' }), []);
  assert.deepEqual(await ids({ label: 'tag=nothing-like-it' }), []);
  for (const sandbox of (await api.list({ label: `tag=${tag}` })).sandboxes) assertSandbox(sandbox);
  const everything = await ids({});
  assert.equal(new Set(everything).size, everything.length);
});

test('a list comes in pages of the asked size until the cursor is null', async () => {
  const tag = ulid();
  const made = await Promise.all(Array.from({ length: 7 }, () => api.create({ labels: { page: tag } })));
  const found = [];
  let cursor;
  let pages = 0;
  do {
    const page = await api.list({ label: `page=${tag}`, limit: 3, cursor });
    assert.ok(page.sandboxes.length <= 3);
    found.push(...page.sandboxes.map((sandbox) => sandbox.id));
    cursor = page.next_cursor;
    pages++;
  } while (cursor !== null);
  assert.equal(pages, 3);
  assert.deepEqual(found.sort(), made.map((sandbox) => sandbox.id).sort());
  assert.equal((await api.list({ label: `page=${tag}`, limit: 7 })).next_cursor, null, 'a full last page has no successor');
});

test('a sandbox that appears or goes between two pages disturbs no other', async () => {
  const tag = ulid();
  const made = (await Promise.all(Array.from({ length: 6 }, () => api.create({ labels: { page: tag } })))).map((sandbox) => sandbox.id);
  const first = await api.list({ label: `page=${tag}`, limit: 3 });
  const seen = first.sandboxes.map((sandbox) => sandbox.id);
  await api.purge(seen.at(-1));
  await api.create({ labels: { page: tag } });
  const rest = await api.all({ label: `page=${tag}`, limit: 3, cursor: undefined });
  assert.equal(rest.length, 6);
  const second = await api.list({ label: `page=${tag}`, limit: 10, cursor: first.next_cursor });
  const after = second.sandboxes.map((sandbox) => sandbox.id);
  for (const id of made) assert.equal(seen.includes(id) !== after.includes(id), true, `${id} is on one page`);
});

test('bad list parameters are 400', async () => {
  for (const query of [{ limit: 0 }, { limit: -1 }, { limit: 'x' }, { limit: '1e3' }, { limit: 99999999999 }, { cursor: 'no such cursor!' }, { status: 'flying' }, { label: 'nokey' }]) {
    assertError(await api.request('GET', '/v1/sandboxes', { query }), 400);
  }
  assertError(await api.request('GET', '/v1/sandboxes?limit=1&limit=2'), 400);
});

// Change --------------------------------------------------------------------------------------

test('PATCH changes timeouts, labels, ports, privacy and network, each alone', async () => {
  const { id } = await api.create({ labels: { old: '1' } });
  const patched = async (change) => {
    const answer = await api.patch(id, change);
    assert.equal(answer.status, 200, answer.text);
    assertSandbox(answer.json);
    const { last_active_at: a, ...now } = await api.get(id);
    const { last_active_at: b, ...said } = answer.json;
    assert.deepEqual(now, said);
    return now;
  };
  assert.equal((await patched({ idle_timeout_s: 77 })).idle_timeout_s, 77);
  const timed = await patched({ lifetime_s: 1234 });
  assert.equal(timed.lifetime_s, 1234);
  assert.ok(timed.expires_at);
  assert.deepEqual((await patched({ labels: { new: '2' } })).labels, { new: '2' });
  const ported = await patched({ ports: [4000] });
  assert.deepEqual(ported.ports, [4000]);
  assert.deepEqual(Object.keys(ported.previews), ['4000']);
  assert.equal((await patched({ private: false })).private, false);
  assert.equal((await patched({ network: { mode: 'none' } })).network.mode, 'none');
  const last = await patched({});
  assert.equal(last.idle_timeout_s, 77, 'what is not named stays');
  assert.deepEqual(last.labels, { new: '2' });
  const unlimited = await patched({ lifetime_s: null });
  assert.equal(unlimited.lifetime_s, null);
  assert.equal(unlimited.expires_at, null);
});

test('PATCH works on a stopped sandbox without waking it', async () => {
  const { id } = await api.create();
  await api.life(id, 'stop');
  const answer = await api.patch(id, { labels: { asleep: 'yes' } });
  assert.equal(answer.status, 200);
  assert.equal(answer.json.status, 'stopped');
  assert.deepEqual((await api.get(id)).labels, { asleep: 'yes' });
});

test('PATCH of what cannot be changed is 400 and changes nothing at all', async () => {
  const { id } = await api.create({ labels: { a: '1' } });
  const before = await api.get(id);
  for (const change of [{ id: ulid() }, { status: 'stopped' }, { owner: {} }, { template: 'host' }, { driver: 'native' }, { created_at: before.created_at }, { labels: { a: '2' }, nonsense: 1 }, { labels: { a: '2' }, ports: [0] }]) {
    assertError(await api.patch(id, change), 400);
  }
  assert.deepEqual((await api.get(id)).labels, { a: '1' });
  assert.deepEqual((await api.get(id)).ports, before.ports);
});

test('ensure creates once with 201 and then answers 200 with the same sandbox', async () => {
  const id = ulid();
  const first = await api.ensure({ id, labels: { a: 'b' } });
  assert.equal(first.status, 201, first.text);
  assertSandbox(first.json);
  const second = await api.ensure({ id, labels: { a: 'b' } });
  assert.equal(second.status, 200, second.text);
  assert.equal(second.json.id, id);
  assert.equal(second.json.created_at, first.json.created_at);
});

test('ensure wakes a stopped sandbox', async () => {
  const { id } = await api.create();
  await api.put(id, `${AGENT}/kept`, 'here');
  await api.life(id, 'stop');
  const answer = await api.ensure({ id });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.status, 'running');
  assert.equal((await api.read(id, `${AGENT}/kept`)).toString(), 'here');
});

test('ensure for a project finds the live sandbox of that project', async () => {
  const project = `project-${ulid()}`;
  const first = await api.ensure({ project });
  assert.equal(first.status, 201, first.text);
  const second = await api.ensure({ project });
  assert.equal(second.status, 200, second.text);
  assert.equal(second.json.id, first.json.id);
});

test('fifty parallel ensures of one project make one sandbox, and wake it when it is stopped', async () => {
  const project = `project-${ulid()}`;
  const crowd = () => Promise.all(Array.from({ length: 50 }, () => api.ensure({ project })));
  const made = await crowd();
  assert.equal(new Set(made.map((answer) => answer.json.id)).size, 1);
  assert.equal(made.filter((answer) => answer.status === 201).length, 1);
  const { id } = made[0].json;
  await api.life(id, 'stop');
  const woken = await crowd();
  assert.deepEqual([...new Set(woken.map((answer) => `${answer.status} ${answer.json.id} ${answer.json.status}`))], [`200 ${id} running`]);
  assert.equal((await api.all()).filter((sandbox) => sandbox.owner.project === project).length, 1);
  await api.purge(id);
});

test('twenty parallel ensures of one id make one sandbox', async () => {
  const id = ulid();
  const answers = await Promise.all(Array.from({ length: 20 }, () => api.ensure({ id })));
  assert.equal(answers.filter((answer) => answer.status === 201).length, 1, answers.map((answer) => answer.status).join());
  assert.equal(answers.filter((answer) => answer.status === 200).length, 19);
  assert.equal((await api.exec(id, 'true')).exit_code, 0);
});

// Life cycle ----------------------------------------------------------------------------------

test('stop ends all processes, and start brings the sandbox back', async () => {
  const { id } = await api.create();
  await leaveRunning(id, 'sleep 3600');
  await until(async () => (await api.processes(id)).some((line) => line.includes('sleep 3600')), { what: 'the process runs' });
  const init = await instance.initOf(id);
  const members = proc.descendants([init.pid]).concat(init);
  assert.ok(members.length >= 2);
  const stopped = await api.life(id, 'stop');
  assertSandbox(stopped);
  assert.equal(stopped.status, 'stopped');
  assert.equal(stopped.termination.reason, 'operator');
  assert.deepEqual(members.filter(proc.isAlive), [], 'no process is left on the host');
  const started = await api.life(id, 'start');
  assert.equal(started.status, 'running');
  assert.ok(Date.parse(started.started_at) >= Date.parse(stopped.started_at ?? 0));
  assert.ok(!(await api.processes(id)).some((line) => line.includes('sleep 3600')), 'the old process is not back');
});

test('stop gives a process the chance to end by itself', async () => {
  const { id } = await api.create();
  await leaveRunning(id, `trap 'echo bye > ${OUTPUTS}/goodbye; exit 0' TERM; echo up > ${OUTPUTS}/up; while :; do sleep 0.05; done`);
  await until(() => api.exists(id, `${OUTPUTS}/up`), { what: 'the process runs' });
  await api.life(id, 'stop');
  assert.equal((await api.read(id, `${OUTPUTS}/goodbye`)).toString(), 'bye\n');
});

test('stop is bounded also when a process ignores SIGTERM or is stopped itself', async () => {
  const { id } = await api.create();
  await leaveRunning(id, `trap '' TERM; echo up > ${OUTPUTS}/up; while :; do sleep 0.05; done`);
  await leaveRunning(id, `kill -STOP $$`);
  await until(() => api.exists(id, `${OUTPUTS}/up`), { what: 'the process runs' });
  const stopped = await within('stop', api.life(id, 'stop'));
  assert.equal(stopped.status, 'stopped');
});

test('start and stop, pause and resume may be repeated', async () => {
  const { id } = await api.create();
  assert.equal((await api.life(id, 'start')).status, 'running');
  assert.equal((await api.life(id, 'resume')).status, 'running');
  assert.equal((await api.life(id, 'pause')).status, 'paused');
  assert.equal((await api.life(id, 'pause')).status, 'paused');
  assert.equal((await api.life(id, 'resume')).status, 'running');
  assert.equal((await api.life(id, 'stop')).status, 'stopped');
  assert.equal((await api.life(id, 'stop')).status, 'stopped');
  assert.equal((await api.life(id, 'start')).status, 'running');
  assert.equal((await api.life(id, 'start')).status, 'running');
});

test('the answer of each life cycle call is the sandbox in its new state', async () => {
  const { id } = await api.create();
  for (const [verb, status] of [['pause', 'paused'], ['resume', 'running'], ['stop', 'stopped'], ['start', 'running'], ['reset', 'running']]) {
    const answer = await api.verb(id, verb);
    assert.equal(answer.status, 200, `${verb}: ${answer.text}`);
    assertSandbox(answer.json);
    assert.equal(answer.json.id, id);
    assert.equal(answer.json.status, status, verb);
  }
});

test('pause freezes every process, resume lets it go on', async () => {
  const { id } = await api.create();
  await leaveRunning(id, `i=0; while :; do i=$((i+1)); echo $i > ${OUTPUTS}/n.new; mv ${OUTPUTS}/n.new ${OUTPUTS}/n; done`);
  await until(() => api.exists(id, `${OUTPUTS}/n`), { what: 'the counter runs' });
  const init = await instance.initOf(id);
  const busy = proc.descendants([init.pid]);
  const ticks = () => busy.map((info) => proc.quiet(() => fs.readFileSync(`/proc/${info.pid}/stat`, 'latin1').split(') ').at(-1).split(' ').slice(11, 15).join('+'), '')).join();
  const paused = await api.life(id, 'pause');
  assert.equal(paused.status, 'paused');
  const first = ticks();
  const start = Date.now();
  await until(() => Date.now() - start > 300, { what: 'time passes' });
  assert.equal(ticks(), first, 'no process used any CPU time while paused');
  assert.equal((await api.life(id, 'resume')).status, 'running');
  const now = Number((await api.read(id, `${OUTPUTS}/n`)).toString());
  await until(async () => Number((await api.read(id, `${OUTPUTS}/n`)).toString()) > now, { what: 'the counter grows again' });
});

test('exec and files on a paused sandbox are 409 and leave it paused', async () => {
  const { id } = await api.create();
  await api.put(id, `${OUTPUTS}/x`, 'x');
  await api.life(id, 'pause');
  const error = assertError(await within('exec', api.tryExec(id, 'true')), 409);
  assert.match(`${error.message} ${error.remediation}`, /paused|resume/);
  assertError(await within('read', api.files('GET', id, `${OUTPUTS}/x`)), 409);
  assertError(await within('write', api.tryPut(id, `${OUTPUTS}/y`, 'y')), 409);
  assert.equal((await api.get(id)).status, 'paused');
  await api.life(id, 'resume');
  assert.equal((await api.exec(id, 'true')).exit_code, 0);
  assert.equal(await api.exists(id, `${OUTPUTS}/y`), false);
});

test('a paused sandbox can be stopped, deleted, purged', async () => {
  const [a, b, c] = await Promise.all([api.create(), api.create(), api.create()]);
  for (const { id } of [a, b, c]) await api.life(id, 'pause');
  assert.equal((await api.life(a.id, 'stop')).status, 'stopped');
  await api.remove(b.id);
  await api.purge(c.id);
});

test('pause of a stopped sandbox is 409', async () => {
  const { id } = await api.create();
  await api.life(id, 'stop');
  assertError(await api.verb(id, 'pause'), 409);
  assert.equal((await api.get(id)).status, 'stopped');
});

test('workspace and writable layer survive stop and start', async () => {
  const { id } = await api.create();
  await api.out(id, { command: `echo w > ${AGENT}/w; echo o > ${OUTPUTS}/o; echo h > /home/sandbox/h` });
  await api.out(id, { command: 'echo e > /etc/mine; mkdir -p /opt/deep; echo u > /opt/deep/u; rm /etc/hostname 2>/dev/null; true', user: 'root' });
  await api.life(id, 'stop');
  await api.life(id, 'start');
  assert.equal(await api.out(id, `cat ${AGENT}/w ${OUTPUTS}/o /home/sandbox/h /etc/mine /opt/deep/u`), 'w\no\nh\ne\nu\n');
});

test('what root installs in /opt survives stop and start and is gone after reset', async () => {
  const { id } = await api.create();
  await api.out(id, { command: 'mkdir -p /opt/bin && printf "#!/bin/sh\\necho tool\\n" > /opt/bin/e2e-tool && chmod 755 /opt/bin/e2e-tool', user: 'root' });
  await api.life(id, 'stop');
  assert.equal(await api.out(id, '/opt/bin/e2e-tool'), 'tool\n');
  await api.life(id, 'reset');
  assert.equal(await api.exists(id, '/opt/bin/e2e-tool'), false);
});

test('exec wakes a stopped sandbox', async () => {
  const { id } = await api.create();
  await api.life(id, 'stop');
  assert.equal(await api.out(id, 'echo awake'), 'awake\n');
  assert.equal((await api.get(id)).status, 'running');
});

test('every file call wakes a stopped sandbox', async () => {
  const { id } = await api.create();
  await api.put(id, `${AGENT}/f`, 'content');
  const calls = {
    read: () => api.files('GET', id, `${AGENT}/f`), write: () => api.tryPut(id, `${AGENT}/g`, 'x'), head: () => api.files('HEAD', id, `${AGENT}/f`),
    stat: () => api.request('GET', `/v1/sandboxes/${id}/files/stat`, { query: { path: `${AGENT}/f` } }),
    list: () => api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: AGENT } }),
    mkdir: () => api.mkdir(id, `${AGENT}/d`), move: () => api.move(id, `${AGENT}/g`, `${AGENT}/h`), archive: () => api.getArchive(id, AGENT), remove: () => api.files('DELETE', id, `${AGENT}/h`),
  };
  for (const [name, call] of Object.entries(calls)) {
    await api.life(id, 'stop');
    const answer = await call();
    assert.ok(answer.status < 300, `${name}: ${answer.status} ${answer.text}`);
    assert.equal((await api.get(id)).status, 'running', `${name} wakes it`);
  }
});

test('reading a sandbox, its list entry and its statistics wakes nobody', async () => {
  const { id } = await api.create();
  await api.life(id, 'stop');
  await api.get(id);
  await api.list();
  await api.request('GET', `/v1/sandboxes/${id}/stats`);
  assert.equal((await api.get(id)).status, 'stopped');
});

test('fifty parallel execs at a stopped sandbox start it once', async () => {
  const { id } = await api.create();
  await api.life(id, 'stop');
  const results = await Promise.all(Array.from({ length: 50 }, () => api.out(id, 'readlink /proc/self/ns/pid')));
  assert.equal(new Set(results).size, 1, 'all ran in one PID namespace');
});

test('reset empties agent_workspace, outputs and the writable layer, keeps project_files, and a running sandbox runs on', async () => {
  const { id } = await api.create({ env: { KEPT: 'yes' }, labels: { l: '1' } });
  await api.out(id, { command: `mkdir -p ${AGENT}/a/b ${OUTPUTS}/c; echo x > ${AGENT}/a/b/x; echo y > ${OUTPUTS}/c/y; echo z > ${AGENT}/.hidden; echo h > /home/sandbox/h` });
  await api.out(id, { command: 'echo e > /etc/mine; rm /etc/passwd; echo u > /opt/u', user: 'root' });
  fs.writeFileSync(path.join(instance.workspace(id), 'project_files/p'), 'p\n'); // read-only inside
  const before = await api.get(id);
  const after = await api.life(id, 'reset');
  assert.equal(after.status, 'running');
  assert.deepEqual(after.labels, before.labels);
  assert.equal(after.created_at, before.created_at);
  assert.equal((await api.listFiles(id, AGENT)).entries.length, 0);
  assert.equal((await api.listFiles(id, OUTPUTS)).entries.length, 0);
  for (const gone of ['/etc/mine', '/opt/u', '/home/sandbox/h']) assert.equal(await api.exists(id, gone), false, `${gone} is gone`);
  assert.match(await api.out(id, 'cat /etc/passwd'), /^sandbox:/m, 'a removed system file is back');
  assert.equal((await api.read(id, '/workspace/project_files/p')).toString(), 'p\n');
  assert.equal(await api.out(id, `echo new > ${AGENT}/new && stat -c %U ${AGENT} && echo $KEPT`), 'sandbox\nyes\n');
});

test('reset ends the processes of before', async () => {
  const { id } = await api.create();
  await leaveRunning(id, 'sleep 3601');
  await api.life(id, 'reset');
  assert.ok(!(await api.processes(id)).some((line) => line.includes('sleep 3601')));
});

test('reset of a stopped sandbox leaves it stopped, and of a paused one ends in a state that it names', async () => {
  const { id } = await api.create();
  await api.put(id, `${AGENT}/f`, 'x');
  await api.life(id, 'stop');
  assert.equal((await api.life(id, 'reset')).status, 'stopped');
  assert.equal(await api.exists(id, `${AGENT}/f`), false);
  await api.life(id, 'pause');
  const answer = await api.verb(id, 'reset');
  assert.ok([200, 409].includes(answer.status), answer.text);
});

test('reset follows no link that the sandbox planted', async () => {
  const canary = path.join(instance.home, 'canary');
  fs.mkdirSync(path.join(canary, 'dir'), { recursive: true });
  fs.writeFileSync(path.join(canary, 'dir/file'), 'alive');
  fs.chmodSync(canary, 0o777);
  const { id } = await api.create();
  await api.out(id, { command: `ln -s / ${AGENT}/root; ln -s ${canary} ${AGENT}/canary; ln -s ../../.. ${OUTPUTS}/up; ln -s ${canary}/dir/file ${OUTPUTS}/f`, user: 'root' });
  await api.out(id, { command: `d=${AGENT}; for i in $(seq 300); do d=$d/d; mkdir "$d"; done; mkdir -p ${AGENT}/shut && chmod 0 ${AGENT}/shut` });
  await api.life(id, 'reset');
  assert.equal((await api.listFiles(id, AGENT)).entries.length, 0);
  assert.equal((await api.listFiles(id, OUTPUTS)).entries.length, 0);
  assert.equal(fs.readFileSync(path.join(canary, 'dir/file'), 'utf8'), 'alive');
  await api.purge(id);
  assert.equal(fs.readFileSync(path.join(canary, 'dir/file'), 'utf8'), 'alive');
});

test('delete ends the sandbox and keeps its workspace for the next create with that id', async () => {
  const { id } = await api.create();
  await api.put(id, `${AGENT}/kept`, 'still here');
  await api.out(id, { command: 'echo e > /etc/mine', user: 'root' });
  const init = await instance.initOf(id);
  await api.remove(id);
  assert.equal(proc.isAlive(init), false);
  assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404);
  assertError(await api.tryExec(id, 'true'), 404);
  assertError(await api.verb(id, 'start'), 404);
  assertError(await api.request('DELETE', `/v1/sandboxes/${id}`), 404);
  assert.ok(!(await api.all()).some((sandbox) => sandbox.id === id));
  await api.create({ id });
  assert.equal((await api.read(id, `${AGENT}/kept`)).toString(), 'still here');
  assert.equal(await api.out(id, `echo more >> ${AGENT}/kept && cat ${AGENT}/kept`), 'still heremore\n', 'the files still belong to its user');
});

test('a stopped sandbox can be deleted', async () => {
  const { id } = await api.create();
  await api.life(id, 'stop');
  await api.remove(id);
  assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404);
});

test('purge removes everything of a running and of a stopped sandbox', async () => {
  for (const stop of [false, true]) {
    const { id } = await api.create();
    await api.put(id, `${AGENT}/secret`, 'x');
    if (stop) await api.life(id, 'stop');
    await api.purge(id);
    assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404);
    await until(() => diskEntries(id).length === 0, { what: 'no directory is left' });
    assertError(await api.verb(id, 'purge'), 404);
    await api.create({ id });
    assert.equal(await api.exists(id, `${AGENT}/secret`), false);
    await api.purge(id);
  }
});

test('purge after delete removes the workspace', async () => {
  const { id } = await api.create();
  await api.put(id, `${AGENT}/secret`, 'x');
  await api.remove(id);
  assert.ok(diskEntries(id).includes('workspaces'), 'the workspace is kept by delete');
  await api.purge(id);
  await until(() => diskEntries(id).length === 0, { what: 'no directory is left' });
  await api.create({ id });
  assert.equal(await api.exists(id, `${AGENT}/secret`), false);
});

test('a tree of odd names, deep directories and closed modes can be purged', async () => {
  const { id } = await api.create();
  await api.out(id, {
    command: `cd ${AGENT} && python3 -c '
import os
for name in [b"new\\nline", b"\\xff\\xfe", b"-rf", b" ", b"a" * 255]:
    os.mkdir(name); open(os.path.join(name, b"f"), "w").close(); os.chmod(name, 0)
for i in range(2000):
    os.mkdir("d"); os.chdir("d")
'`,
  });
  await within('purge', api.purge(id));
  await until(() => diskEntries(id).length === 0, { what: 'no directory is left' });
});

test('a secret of a purged sandbox is found in no later one', async () => {
  const { id } = await api.create();
  await api.out(id, `for d in /tmp /dev/shm ${AGENT} ${OUTPUTS} /home/sandbox; do echo top-secret-word > $d/secret; done`);
  await api.purge(id);
  for (let i = 0; i < 4; i++) {
    const next = await api.create();
    assert.equal(await api.out(next.id, { command: 'grep -rsl top-secret-word /tmp /dev/shm /workspace /home /root /var /etc /run /opt /srv 2>/dev/null; true', user: 'root' }), '');
  }
});

test('an idle sandbox is stopped and says so', async () => {
  const { id } = await api.create({ idle_timeout_s: 1 });
  await api.put(id, `${AGENT}/f`, 'x');
  const stopped = await until(async () => {
    const now = await api.get(id);
    return now.status === 'stopped' && now;
  }, { every: 200, what: 'the idle sandbox stops' });
  assert.equal(stopped.termination.reason, 'idle');
  assert.equal((await api.read(id, `${AGENT}/f`)).toString(), 'x', 'it wakes with its files');
});

test('a running command keeps an idle sandbox awake', async () => {
  const { id } = await api.create({ idle_timeout_s: 1 });
  const result = await api.exec(id, 'sleep 4; echo done');
  assert.equal(result.stdout, 'done\n');
});

test('the lifetime of a sandbox ends it and says so', async () => {
  const { id } = await api.create({ lifetime_s: 1 });
  const ended = await until(async () => {
    const answer = await api.request('GET', `/v1/sandboxes/${id}`);
    return (answer.status === 404 || answer.json.status !== 'running') && answer;
  }, { every: 200, what: 'the sandbox ends' });
  if (ended.status === 200) assert.equal(ended.json.termination.reason, 'lifetime');
});

test('last_active_at moves with use', async () => {
  const { id, last_active_at: before } = await api.create();
  await until(async () => {
    await api.exec(id, 'true');
    return Date.parse((await api.get(id)).last_active_at) > Date.parse(before);
  }, { what: 'it moves' });
});

// Limits and statistics -----------------------------------------------------------------------

test('statistics have every field and plausible numbers', async () => {
  const { id } = await api.create({ resources: { memory: '128Mi', pids: 50, cpu: 0.5, disk: '64Mi' } });
  await api.out(id, `head -c 3000000 /dev/urandom > ${AGENT}/blob; python3 -c 'sum(range(3000000))'`);
  const stats = await api.stats(id);
  const shape = { cpu: ['limit', 'usage_ms'], disk: ['enforced', 'files', 'limit_bytes', 'limit_files', 'output_bytes', 'used_bytes'], memory: ['current_bytes', 'limit_bytes', 'peak_bytes'], network: ['rx_bytes', 'tx_bytes'], pids: ['current', 'limit'] };
  assert.deepEqual(Object.fromEntries(Object.entries(stats).sort().map(([name, part]) => [name, Object.keys(part).sort()])), shape);
  for (const [name, part] of Object.entries(stats)) {
    for (const [field, value] of Object.entries(part)) assert.ok(field === 'enforced' ? value === true : typeof value === 'number' && value >= 0, `${name}.${field}: ${value}`);
  }
  assert.equal(stats.memory.limit_bytes, 128 * MI);
  assert.ok(stats.memory.peak_bytes >= stats.memory.current_bytes, JSON.stringify(stats.memory));
  assert.ok(stats.memory.peak_bytes > MI && stats.memory.peak_bytes <= 129 * MI, JSON.stringify(stats.memory));
  assert.equal(stats.pids.limit, 50);
  assert.ok(stats.pids.current >= 1 && stats.pids.current < 10, JSON.stringify(stats.pids));
  assert.equal(stats.cpu.limit, 0.5);
  assert.ok(stats.cpu.usage_ms > 20 && stats.cpu.usage_ms < 60_000, JSON.stringify(stats.cpu));
  assert.equal(stats.disk.limit_bytes, 64 * MI);
  assert.ok(stats.disk.used_bytes >= 3_000_000 && stats.disk.used_bytes < 20_000_000, JSON.stringify(stats.disk));
  assert.ok(stats.disk.files >= 1);
});

test('statistics of a stopped sandbox are answered too', async () => {
  const { id } = await api.create();
  await api.life(id, 'stop');
  const stats = await api.stats(id);
  assert.equal(stats.pids.current, 0);
  assert.equal(stats.memory.current_bytes, 0);
  assert.equal(stats.memory.limit_bytes, GI);
});

test('a command that takes more memory than the limit is ended, sandbox and daemon live on', async () => {
  const { id } = await api.create({ resources: { memory: '96Mi' } });
  const init = await instance.initOf(id);
  const result = await api.exec(id, { argv: ['python3', '-c', 'x = []\nwhile True: x.append(bytearray(8 << 20))'], timeout_ms: 120_000 });
  assert.notEqual(result.exit_code, 0);
  assert.equal(result.termination.reason, 'oom', JSON.stringify(result));
  assert.equal(await api.out(id, 'echo alive'), 'alive\n');
  assert.ok(proc.isAlive(init), 'PID 1 was not the victim');
  assert.ok((await api.stats(id)).memory.peak_bytes <= 97 * MI);
});

test('memory in /dev/shm and /tmp counts against the limit', async () => {
  const { id } = await api.create({ resources: { memory: '96Mi' } });
  await api.exec(id, { command: 'head -c 300M /dev/zero > /dev/shm/fill', timeout_ms: 120_000 });
  assert.ok((await api.stats(id)).memory.current_bytes <= 97 * MI);
  const back = await until(async () => {
    await api.life(id, 'stop');
    return (await api.exec(id, 'echo alive')).stdout === 'alive\n';
  }, { what: 'the sandbox works after a restart' });
  assert.ok(back);
});

test('a fork bomb ends at the limit of processes, and the sandbox is usable after it', async () => {
  const { id } = await api.create({ resources: { pids: 40 } });
  const count = Number(await api.out(id, {
    argv: ['python3', '-c', `
import os, time, signal
children = []
try:
    while len(children) < 500:
        pid = os.fork()
        if pid == 0:
            time.sleep(60); os._exit(0)
        children.append(pid)
except BlockingIOError:
    pass
print(len(children))
for pid in children: os.kill(pid, signal.SIGKILL)
for pid in children: os.waitpid(pid, 0)`],
  }));
  assert.ok(count >= 20 && count < 40, `${count} children`);
  assert.equal(await api.out(id, 'echo alive'), 'alive\n');
});

test('a command that met the limit of processes is told its number, and what changes it', async () => {
  const { id } = await api.create({ name: 'crowded', resources: { pids: 30 } });
  const { exit_code, termination } = await api.exec(id, { command: 'for i in $(seq 60); do sleep 600 & done; exit 3', timeout_ms: 120_000 });
  assert.notEqual(exit_code, 0);
  assert.equal(termination.reason, 'pids_limit');
  assert.match(termination.detail, /^the limit of processes, 30, was hit \d+ times? while it ran; to change it: sandlot update crowded --pids N$/);
});

test('a full sandbox still answers: exec says why, stop and purge work', async () => {
  const { id } = await api.create({ resources: { pids: 20 } });
  await api.exec(id, { command: 'for i in $(seq 40); do setsid sleep 600 </dev/null >/dev/null 2>&1 & done', timeout_ms: 120_000 });
  const answer = await within('exec', api.tryExec(id, { command: 'true', timeout_ms: 5000 }));
  assert.ok(answer.status === 200 || (answer.status >= 400 && answer.status < 600), answer.text);
  assert.equal((await within('stop', api.life(id, 'stop'))).status, 'stopped');
  assert.equal(await api.out(id, 'echo alive'), 'alive\n');
});

test('the CPU limit holds', async () => {
  const { id } = await api.create({ resources: { cpu: 0.2 } });
  const share = Number(await api.out(id, {
    argv: ['python3', '-c', `
import time
wall, cpu = time.monotonic(), time.process_time()
while time.monotonic() - wall < 1.5: pass
print((time.process_time() - cpu) / (time.monotonic() - wall))`],
  }));
  assert.ok(share < 0.45, `share of a core: ${share}`);
});

test('zombies of orphans are reaped by PID 1', async () => {
  const { id } = await api.create();
  await api.out(id, { command: 'for i in $(seq 100); do (setsid true </dev/null >/dev/null 2>&1 &) ; done' });
  await until(async () => !(await api.out(id, 'cat /proc/[0-9]*/stat 2>/dev/null | cut -d" " -f3; true')).includes('Z'), { what: 'no zombies' });
});

// Concurrency ---------------------------------------------------------------------------------

test('of forty parallel creates with one id one wins and the others are 409', async () => {
  const id = ulid();
  const answers = await Promise.all(Array.from({ length: 40 }, () => api.request('POST', '/v1/sandboxes', { json: { id } })));
  const statuses = answers.map((answer) => answer.status);
  assert.equal(statuses.filter((status) => status === 201).length, 1, statuses.join());
  assert.equal(statuses.filter((status) => status === 409).length, 39, statuses.join());
  assert.equal((await api.all()).filter((sandbox) => sandbox.id === id).length, 1);
  const before = instance.sandboxInits().length;
  await api.purge(id);
  await until(() => instance.sandboxInits().length === before - 1, { what: 'one init less' });
});

test('sixty parallel creates give sixty sandboxes with uid ranges of their own', async () => {
  const made = await Promise.all(Array.from({ length: 60 }, () => api.create()));
  assert.equal(new Set(made.map((sandbox) => sandbox.id)).size, 60);
  const maps = await Promise.all(made.map(({ id }) => api.out(id, 'cat /proc/self/uid_map')));
  assert.equal(new Set(maps.map((map) => map.trim().split(/\s+/)[1])).size, 60);
  await Promise.all(made.map(({ id }) => api.purge(id)));
});

test('parallel deletes of one sandbox: one wins, the others are 404 or 409', async () => {
  const { id } = await api.create();
  const answers = await Promise.all(Array.from({ length: 30 }, () => api.request('DELETE', `/v1/sandboxes/${id}`)));
  const statuses = answers.map((answer) => answer.status);
  assert.equal(statuses.filter((status) => status === 204).length, 1, statuses.join());
  assert.ok(statuses.every((status) => [204, 404, 409].includes(status)), statuses.join());
});

/** A download may also be cut, so that a short answer never looks like a whole one. */
const cuttable = (call) => call.catch((error) => {
  assert.match(error.code ?? error.message, /cut short|ECONNRESET/);
  return { status: 404 };
});

test('exec, files and life cycle calls racing with delete or purge end cleanly', async () => {
  for (let round = 0; round < 6; round++) {
    const { id } = await api.create();
    const calls = [];
    for (let i = 0; i < 8; i++) {
      calls.push(api.tryExec(id, { command: 'echo x', timeout_ms: 10_000 }), api.tryPut(id, `${AGENT}/f${i}`, 'x'), cuttable(api.files('GET', id, '/etc/passwd')));
    }
    calls.push(api.verb(id, 'stop'), api.verb(id, 'start'), api.verb(id, 'pause'), api.verb(id, 'resume'), api.patch(id, { labels: { a: 'b' } }));
    const end = round % 2 ? api.verb(id, 'purge') : api.request('DELETE', `/v1/sandboxes/${id}`);
    calls.push(api.tryExec(id, 'true'), api.verb(id, 'start'));
    for (const answer of await within('the race', Promise.all(calls))) {
      assert.ok([200, 201, 204, 404, 409].includes(answer.status), `${answer.status} ${answer.text}`);
    }
    assert.ok([200, 204, 409].includes((await end).status), (await end).text);
    if ((await end).status === 409) await api.purge(id);
    assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404);
    assertError(await api.tryExec(id, 'true'), 404);
  }
});

test('an exec that runs while its sandbox is deleted is answered', async () => {
  const { id } = await api.create();
  const running = api.tryExec(id, 'touch /tmp/started; sleep 600');
  await until(() => api.exists(id, '/tmp/started'), { what: 'the command runs' });
  await api.remove(id);
  const answer = await within('the exec', running);
  if (answer.status === 200) {
    assert.notEqual(answer.json.exit_code, 0);
    assert.notEqual(answer.json.termination.reason, 'exited');
  } else assertError(answer, [404, 409]);
});

test('a sandbox that is stopped under a running exec answers it truthfully', async () => {
  const { id } = await api.create();
  const running = api.tryExec(id, 'touch /tmp/started; sleep 600');
  await until(() => api.exists(id, '/tmp/started'), { what: 'the command runs' });
  await api.life(id, 'stop');
  const answer = await within('the exec', running);
  if (answer.status === 200) assert.notEqual(answer.json.exit_code, 0);
  else assertError(answer, 409);
});

test('a storm of life cycle calls leaves each sandbox in a state that works', async () => {
  const ids = (await Promise.all(Array.from({ length: 4 }, () => api.create()))).map((sandbox) => sandbox.id);
  const verbs = ['start', 'stop', 'pause', 'resume', 'reset', 'start', 'stop', 'resume'];
  await Promise.all(ids.flatMap((id) => Array.from({ length: 16 }, async (_, i) => {
    const answer = await api.verb(id, verbs[i % verbs.length]);
    assert.ok([200, 409].includes(answer.status), `${answer.status} ${answer.text}`);
  })));
  for (const id of ids) {
    if ((await api.get(id)).status === 'paused') await api.life(id, 'resume');
    assert.equal(await api.out(id, 'echo fine'), 'fine\n');
  }
});

test('a background process that works or is marked keeps its sandbox awake; a silent one and start commands do not', async () => {
  const busy = 'while :; do :; done';
  const make = async (body, exec) => {
    const sandbox = await api.create({ idle_timeout_s: 2, ...body });
    if (exec) assert.equal((await api.tryExec(sandbox.id, { background: true, ...exec })).status, 201);
    return sandbox;
  };
  const [working, marked, silent, starting] = await Promise.all([
    make({}, { command: busy }), make({}, { command: 'sleep 3600', keep_awake: true }), make({}, { command: 'sleep 3600' }), make({ start: busy })]);
  const isLater = async ({ id, last_active_at: then }) => Date.parse((await api.get(id)).last_active_at) > Date.parse(then) + 2000;
  for (const one of [silent, starting]) await until(async () => (await api.get(one.id)).status === 'stopped', { what: 'an idle sandbox is stopped' });
  for (const one of [working, marked]) await until(() => isLater(one), { what: 'its process counts as use' });
  assert.equal((await api.get(silent.id)).awake_because, null);
  assert.match((await api.get(working.id)).awake_because, /^process p1 uses \d+% of a core$/);
  assert.equal((await api.get(marked.id)).awake_because, 'process p1 is to keep it awake');
  assert.equal((await api.get(working.id)).status, 'running');
  assert.equal((await api.patch(working.id, { idle_timeout_s: null })).json.awake_because, 'it has no idle timeout');
  assertError(await api.tryExec(working.id, { command: 'true', keep_awake: true }), 400, /keep_awake/);
});

finish();
