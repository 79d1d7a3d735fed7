// SPDX-License-Identifier: Apache-2.0
// Members when something goes wrong beside them or in them, and in pauses and snapshots.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('members_failures');

/** Counts its starts where it lasts, and answers on its port while it runs. */
const SERVER = 'echo start >> /volumes/starts; sync; exec python3 -m http.server --bind 127.0.0.1 8000 --directory /volumes';
const server = { role: 'backend', template: 'host', port: 8000, command: SERVER, health: { port: 8000, path: '/starts', interval_ms: 100, retries: 1 } };

const member = async (id, role = 'backend') => (await api.get(id)).members.find((one) => one.role === role);
const untilMember = (id, isSo, what, role) => until(async () => { const one = await member(id, role); return isSo(one) && one; }, { what: `the member ${what}` });
const healthy = (id) => untilMember(id, (one) => one.health === 'healthy', 'is healthy');
const exec = async (id, command, role) => {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, query: { member: role } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};
const starts = async (id) => (await exec(id, 'wc -l < /volumes/starts', 'backend')).stdout.trim();
const make = async (json = {}) => { const { id } = await api.create({ members: [server], ...json }); await healthy(id); return id; };

test('a keeper that is killed takes members with their sandbox, and the next start has what they kept', async () => {
  const id = await make();
  const inits = await Promise.all([undefined, 'backend'].map((role) => instance.initOf(id, role)));
  const { daemon } = instance;
  process.kill(instance.keeper.pid, 'SIGKILL');
  await until(() => daemon.how, { what: 'the daemon leaves with its keeper' });
  await until(() => inits.every((one) => !proc.isAlive(one)), { what: 'sandbox and member end' });
  await instance.start();
  const { status, members } = await api.get(id);
  assert.deepEqual([status, ...members.map((one) => one.status)], ['stopped', 'stopped', 'stopped']);
  await api.life(id, 'start');
  await healthy(id);
  assert.equal(await starts(id), '2');
  await api.purge(id);
});

test('a sandbox that dies takes its members along; one of a member that dies goes on', async () => {
  const id = await make();
  const first = await instance.initOf(id, 'backend');
  process.kill(first.pid, 'SIGKILL');
  await until(() => !proc.isAlive(first), { what: 'the member dies' });
  await healthy(id);
  await until(async () => (await starts(id)) === '2', { what: 'it was started again' });
  assert.deepEqual([(await api.get(id)).status, (await api.get(id)).termination], ['running', null]);
  const [outer, second] = await Promise.all([instance.initOf(id), instance.initOf(id, 'backend')]);
  process.kill(outer.pid, 'SIGKILL');
  await until(() => !proc.isAlive(second), { what: 'the member ends with its sandbox' });
  const ended = await until(async () => { const one = await api.get(id); return one.status === 'stopped' && one.members.every(({ status }) => status === 'stopped') && one; }, { what: 'all of it is stopped' });
  assert.equal(ended.termination.reason, 'agent_lost');
  await api.life(id, 'start');
  await healthy(id);
  assert.equal(await starts(id), '3');
  await api.purge(id);
});

test('a member that could not start is stopped with its sandbox', async () => {
  const put = await api.request('PUT', '/v1/templates/side/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  const { id } = await api.create({ members: [{ role: 'cache', template: 'side', command: 'exec sleep 1000', restart: 'never' }] });
  await api.life(id, 'stop');
  const layers = path.join(instance.dataDir, 'layers'), aside = path.join(instance.home, 'aside');
  fs.mkdirSync(aside);
  const move = (from, to) => { for (const name of fs.readdirSync(from).filter((one) => !one.startsWith('.'))) fs.renameSync(path.join(from, name), path.join(to, name)); };
  move(layers, aside);
  await api.life(id, 'start');
  await untilMember(id, ({ status }) => status === 'error', 'cannot start', 'cache');
  move(aside, layers);
  await api.life(id, 'stop');
  assert.equal((await member(id, 'cache')).status, 'stopped');
  await api.life(id, 'start');
  await untilMember(id, ({ status }) => status === 'running', 'runs', 'cache');
  await api.purge(id);
});

test('a member that runs out of its memory is told as such, and the sandbox and its other processes go on', async () => {
  const id = await make({ members: [{ ...server, resources: { memory: '64Mi' } }] });
  const beside = (await api.tryExec(id, { command: 'exec sleep 1000', background: true })).json.process;
  const eaten = await exec(id, 'exec python3 -c "x = []\nwhile True: x.append(bytearray(1 << 20))"', 'backend');
  assert.equal(eaten.termination.reason, 'oom', JSON.stringify(eaten.termination));
  await healthy(id);
  const { status, termination } = await api.get(id);
  assert.deepEqual([status, termination], ['running', null]);
  const { processes } = (await api.request('GET', `/v1/sandboxes/${id}/processes`)).json;
  assert.equal(processes.find((one) => one.id === beside.id).status, 'running');
  await api.purge(id);
});

test('a start command of a member that runs out of memory has ended as oom, and a member without restart stays so', async () => {
  const { id } = await api.create({ members: [{ role: 'backend', template: 'host', restart: 'never', resources: { memory: '64Mi' }, command: 'exec python3 -c "x = []\nwhile True: x.append(bytearray(1 << 20))"' }] });
  await untilMember(id, (one) => one.status === 'exited', 'has ended');
  const { processes } = (await api.request('GET', `/v1/sandboxes/${id}/processes`, { query: { member: 'backend' } })).json;
  assert.equal(processes[0].termination.reason, 'oom', JSON.stringify(processes));
  assert.deepEqual([(await api.get(id)).status, (await exec(id, 'echo works')).stdout], ['running', 'works\n']);
  await api.purge(id);
});

test('a pause halts members, and a resume lets the same processes go on', async () => {
  const id = await make();
  await api.life(id, 'pause');
  assert.deepEqual((await api.get(id)).members.map((one) => [one.status, one.health]), [['paused', 'none'], ['paused', 'none']]);
  assert.equal(assertError(await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command: 'true' }, query: { member: 'backend' } }), 409).code, 'wrong_state');
  await api.life(id, 'resume');
  await healthy(id);
  assert.equal(await starts(id), '1');
  await instance.crash();
  await instance.start();
  await healthy(id);
  assert.equal(await starts(id), '1', 'nor does a crash of the daemon start anything again');
  await api.life(id, 'pause');
  await api.life(id, 'stop');
  assert.deepEqual((await api.get(id)).members.map((one) => one.status), ['stopped', 'stopped']);
  await api.purge(id);
});

test('a member that was healthy and is not any more says so, and is healthy again when it answers', async () => {
  const id = await make();
  await exec(id, 'mv /volumes/starts /volumes/away', 'backend');
  await untilMember(id, (one) => one.health === 'unhealthy' && one.status === 'running', 'is unhealthy');
  await exec(id, 'mv /volumes/away /volumes/starts', 'backend');
  await healthy(id);
  await api.purge(id);
});

test('a snapshot has the members too: a sandbox that is made of it, and a fork, have copies of their own', async () => {
  const id = await make();
  await api.put(id, '/workspace/kept', 'kept');
  const taken = await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
  assert.equal(taken.status, 201, taken.text);
  await healthy(id);
  const made = await api.create({ snapshot: taken.json.id });
  const inner = (await member(id)).id;
  const isCopy = async (copy) => {
    await healthy(copy);
    assert.equal((await api.read(copy, '/workspace/kept')).toString(), 'kept');
    assert.equal(await starts(copy), '2', 'it has what the member kept, and one more start');
    assert.equal((await exec(copy, 'wget -qO- http://$BACKEND_HOST:$BACKEND_PORT/starts')).stdout, 'start\nstart\n', 'it finds its own');
    assert.notEqual((await member(copy)).id, inner);
    await exec(copy, 'echo more >> /volumes/starts', 'backend');
    assert.equal(await starts(id), '1', 'and the first has not what the copy wrote');
    await api.life(copy, 'stop');
    await api.life(copy, 'start');
    await healthy(copy);
    await api.purge(copy);
  };
  await isCopy(made.id);
  const fork = await api.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} });
  assert.equal(fork.status, 201, fork.text);
  const [twin] = fork.json.sandboxes;
  assert.deepEqual(twin.members.map(({ role }) => role).sort(), ['backend', 'primary']);
  await isCopy(twin.id);
  await healthy(id);
  const back = await api.request('POST', `/v1/sandboxes/${id}/restore`, { json: { snapshot: taken.json.id } });
  assert.equal(back.status, 200, back.text);
  await healthy(id);
  assert.equal(await starts(id), '2', 'a restore brings back what members kept');
  assert.equal((await api.request('DELETE', `/v1/snapshots/${taken.json.id}`)).status, 204);
  await api.purge(id);
});

finish();
