// SPDX-License-Identifier: Apache-2.0
// Snapshots, restores and forks: all files of a sandbox as they were at one moment, for whoever made them, also
// after the sandbox is gone; nothing half-made, nothing left behind, nobody else's.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { Instance } from './lib/instance.mjs';
import { ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI, ulid } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('snapshots');

const sample = await api.create();
const IS_IMAGE = sample.walls.disk === 'ext4_image';
const ofImages = { skip: IS_IMAGE ? false : `disks here are of the kind ${sample.walls.disk}` };
await api.purge(sample.id);

const AGENT = '/workspace/agent_workspace';
const made = new Set();

async function take(id, body = {}, own = api) {
  const answer = await own.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: body });
  assert.equal(answer.status, 201, answer.text);
  made.add(answer.json.id);
  return answer.json;
}

const drop = async (id, own = api) => assert.equal((await own.request('DELETE', `/v1/snapshots/${id}`)).status, 204);
const list = async (query = {}, own = api) => (await own.request('GET', '/v1/snapshots', { query })).json.snapshots;
const restore = (id, snapshot) => api.request('POST', `/v1/sandboxes/${id}/restore`, { json: { snapshot } });
const files = () => proc.entries(path.join(instance.dataDir, 'snapshots')).sort();
const statusOf = async (id, process) => (await api.request('GET', `/v1/sandboxes/${id}/processes/${process}`)).json.process.status;
const sh = (id, command, user = 'root') => api.out(id, { command, user });

/** What tells two trees apart: names, owners, modes, contents, as root inside sees them. */
const TREE = `cd / && find etc var/lib home workspace -xdev \\( -path workspace/project_files -o -name hostname -o -name hosts -o -name resolv.conf \\) -prune -o -printf '%y %m %U:%G %s %p %l\\n' | sort; cat /etc/made ${AGENT}/deep/file`;

test('a disk that is no image has no snapshots, and that is said', { skip: IS_IMAGE }, async () => {
  const { id } = await api.create();
  assert.equal(assertError(await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} }), 400).code, 'no_snapshots');
  assert.deepEqual(await list(), []);
});

test('a new sandbox of a snapshot has the files of that moment, with their owners and modes', ofImages, async () => {
  const { id } = await api.create({ env: { COLOUR: 'red' }, labels: { team: 'search' }, ports: [3000], resources: { memory: '300Mi', pids: 99 } });
  await sh(id, `echo of the system > /etc/made; chmod 4711 /etc/made; rm /etc/issue; mkdir -p ${AGENT}/deep; chown 1000:1000 ${AGENT}/deep; ln -s ../x ${AGENT}/deep/link`);
  await api.exec(id, { command: `printf 'first\\n' > ${AGENT}/deep/file; chmod 640 ${AGENT}/deep/file` });
  const before = await sh(id, TREE);
  const snapshot = await take(id, { name: 'before the change' });
  assert.equal(snapshot.sandbox_id, id);
  assert.equal(snapshot.name, 'before the change');
  assert.ok(snapshot.size > 0 && snapshot.size < 64 * MI, `${snapshot.size}`);
  await sh(id, `echo second > ${AGENT}/deep/file; rm /etc/made`);

  const copy = await api.create({ snapshot: snapshot.id, env: { SHAPE: 'round' }, resources: { pids: 77 } });
  assert.equal(await sh(copy.id, TREE), before);
  assert.equal((await sh(copy.id, 'ls /etc/issue 2>&1 || true')).includes('No such file'), true);
  assert.equal(await api.out(copy.id, 'echo $COLOUR $SHAPE'), 'red round\n');
  assert.equal(copy.resources.memory, '300Mi');
  assert.equal(copy.resources.pids, 77);
  assert.deepEqual(copy.labels, { team: 'search' });
  // It can write everywhere that its source can, as root and as a user, also after a stop.
  await sh(copy.id, `echo own >> /etc/made; mkdir /etc/own; chown 5:6 /etc/own; mv ${AGENT}/deep ${AGENT}/moved`);
  await api.exec(copy.id, { command: `echo own >> ${AGENT}/moved/file` });
  await api.life(copy.id, 'stop');
  assert.equal(await sh(copy.id, `cat /etc/made ${AGENT}/moved/file; stat -c %u:%g /etc/own`), 'of the system\nown\nfirst\nown\n5:6\n');
  assert.equal(await sh(id, `cat ${AGENT}/deep/file`), 'second\n');

  await api.purge(id);
  const late = await api.create({ snapshot: snapshot.id });
  assert.equal(await sh(late.id, TREE), before);
  await drop(snapshot.id);
  assert.equal(await sh(late.id, TREE), before);
  assert.deepEqual(files(), []);
  for (const one of [copy.id, late.id]) await api.purge(one);
});

test('a copy of a copy is a copy, and its disk is given to nobody else as it is', ofImages, async () => {
  const { id } = await api.create();
  await sh(id, `echo one > ${AGENT}/one`);
  let last = id;
  const all = [id];
  for (let i = 0; i < 3; i++) {
    const snapshot = await take(last);
    last = (await api.create({ snapshot: snapshot.id })).id;
    all.push(last);
    await sh(last, `echo ${i} >> ${AGENT}/one; chown 1000 ${AGENT}/one`);
    await drop(snapshot.id);
  }
  assert.equal(await sh(last, `cat ${AGENT}/one; stat -c %u ${AGENT}/one`), 'one\n0\n1\n2\n1000\n');
  for (const one of all) await api.purge(one);
  // Disks of purged ones may be used again: none of them may be one that maps uids.
  const next = await Promise.all(Array.from({ length: 6 }, () => api.create()));
  for (const one of next) assert.equal(await sh(one.id, `echo x > /etc/x; chown 7 /etc/x; stat -c %u /etc/x; ls ${AGENT}`), '7\n');
  for (const one of next) await api.purge(one.id);
});

test('writers wait for a moment and go on; a stopped, a paused and a running sandbox all have snapshots', ofImages, async () => {
  const { id } = await api.create();
  const { json } = await api.tryExec(id, { command: `i=0; while true; do i=$((i+1)); echo $i > ${AGENT}/n.new; mv ${AGENT}/n.new ${AGENT}/n; done`, background: true });
  const count = async () => Number(await api.out(id, `cat ${AGENT}/n 2>/dev/null || echo 0`));
  await until(async () => (await count()) > 100, { what: 'it writes' });
  const running = await take(id);
  const then = await count();
  await until(async () => (await count()) > then, { what: 'it goes on' });
  assert.equal((await api.get(id)).status, 'running');
  assert.equal(await statusOf(id, json.process.id), 'running');
  await api.life(id, 'pause');
  const paused = await take(id);
  assert.equal((await api.get(id)).status, 'paused');
  await api.life(id, 'resume');
  await api.life(id, 'stop');
  const stopped = await take(id);
  assert.equal((await api.get(id)).status, 'stopped');
  const numbers = [];
  for (const snapshot of [running, paused, stopped]) {
    const copy = await api.create({ snapshot: snapshot.id });
    numbers.push(Number(await api.out(copy.id, `cat ${AGENT}/n`)));
    await api.purge(copy.id);
    await drop(snapshot.id);
  }
  assert.ok(numbers[0] > 0 && numbers[0] <= numbers[1] && numbers[1] <= numbers[2], numbers.join(' '));
  await api.purge(id);
});

test('a restore gives all files back, also into a sandbox that runs, and from a fork\'s snapshot', ofImages, async () => {
  const { id } = await api.create();
  await sh(id, `echo good > ${AGENT}/state; echo good > /etc/state`);
  const snapshot = await take(id);
  await sh(id, `rm -rf ${AGENT}/* /etc/state; echo bad > /etc/bad`);
  const { json } = await api.tryExec(id, { command: 'sleep 3600', background: true });
  const answer = await restore(id, snapshot.id);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.status, 'running');
  assert.equal(await sh(id, `cat ${AGENT}/state /etc/state; ls /etc/bad 2>&1 || true`), "good\ngood\nls: cannot access '/etc/bad': No such file or directory\n");
  assert.notEqual(await statusOf(id, json.process.id), 'running');
  await sh(id, `echo worse > ${AGENT}/state`);
  await api.life(id, 'stop');
  assert.equal((await restore(id, snapshot.id)).json.status, 'stopped');
  assert.equal(await sh(id, `cat ${AGENT}/state`), 'good\n');
  // Of another uid range: that of a copy.
  const copy = await api.create({ snapshot: snapshot.id });
  await sh(copy.id, `echo copy > ${AGENT}/state`);
  const other = await take(copy.id);
  assert.equal((await restore(id, other.id)).status, 200);
  assert.equal(await sh(id, `cat ${AGENT}/state; echo more >> ${AGENT}/state; cat ${AGENT}/state`), 'copy\ncopy\nmore\n');
  await drop(snapshot.id);
  assert.equal(assertError(await restore(id, snapshot.id), 404).code, 'snapshot_not_found');
  assert.equal(await sh(id, `cat ${AGENT}/state`), 'copy\nmore\n');
  await drop(other.id);
  for (const one of [id, copy.id]) await api.purge(one);
  assert.deepEqual(files(), []);
});

test('a fork makes as many as are asked for, each on its own, and leaves no snapshot', ofImages, async () => {
  const { id } = await api.create({ name: 'origin', labels: { kind: 'source' } });
  await api.exec(id, { command: `echo shared > ${AGENT}/file` });
  const answer = await api.request('POST', `/v1/sandboxes/${id}/fork`, { json: { count: 3 } });
  assert.equal(answer.status, 201, answer.text);
  assert.equal(answer.json.sandboxes.length, 3);
  assert.deepEqual(answer.json.errors, []);
  for (const [i, one] of answer.json.sandboxes.entries()) {
    assert.equal(one.status, 'running');
    assert.equal(one.name, null);
    assert.deepEqual(one.labels, { kind: 'source' });
    await api.exec(one.id, { command: `echo ${i} >> ${AGENT}/file` });
  }
  for (const [i, one] of answer.json.sandboxes.entries()) assert.equal(await api.out(one.id, `cat ${AGENT}/file`), `shared\n${i}\n`);
  assert.equal(await api.out(id, `cat ${AGENT}/file`), 'shared\n');
  assert.deepEqual(await list(), []);
  assert.deepEqual(files(), []);
  for (const count of [0, 17, 'two']) assertError(await api.request('POST', `/v1/sandboxes/${id}/fork`, { json: { count } }), 400);
  for (const one of [...answer.json.sandboxes.map((each) => each.id), id]) await api.purge(one);
});

test('a fork that finds no room for all says so, and what was made stays', ofImages, async () => {
  const admin = api;
  const own = await ownerApi(admin, 'forkers', 'ann');
  const { id } = await own.create();
  assert.equal((await admin.request('PUT', '/v1/quotas/forkers/ann', { json: { sandboxes: 2 } })).status, 200);
  const answer = await own.request('POST', `/v1/sandboxes/${id}/fork`, { json: { count: 3 } });
  assert.equal(answer.status, 201, answer.text);
  assert.equal(answer.json.sandboxes.length, 1);
  assert.deepEqual(answer.json.errors.map((error) => error.code), ['quota_exceeded', 'quota_exceeded']);
  assert.equal(assertError(await own.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} }), 429).code, 'quota_exceeded');
  for (const one of [answer.json.sandboxes[0].id, id]) await own.purge(one);
});

test('snapshots count in the disk quota, and give it back', ofImages, async () => {
  const own = await ownerApi(api, 'takers', 'ann');
  const { id } = await own.create({ resources: { disk: '64Mi' } });
  await own.exec(id, { command: `head -c 20M /dev/urandom > ${AGENT}/big` });
  assert.equal((await api.request('PUT', '/v1/quotas/takers/ann', { json: { disk: '100Mi' } })).status, 200);
  const snapshot = await take(id, {}, own);
  assert.ok(snapshot.size >= 20 * MI, `${snapshot.size}`);
  const refused = await own.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
  assert.equal(assertError(refused, 429).code, 'quota_exceeded');
  assert.equal(files().length, 1);
  await drop(snapshot.id, own);
  await drop((await take(id, {}, own)).id, own);
  await own.purge(id);
});

test('what does not fit is refused, and lists have pages', ofImages, async () => {
  const { id } = await api.create();
  const all = [];
  for (let i = 0; i < 3; i++) all.push((await take(id, { name: `n${i}` })).id);
  assert.deepEqual((await list({ sandbox: id })).map((one) => one.id), all);
  assert.deepEqual((await list({ sandbox: ulid() })), []);
  const first = (await api.request('GET', '/v1/snapshots', { query: { limit: 2 } })).json;
  assert.equal(first.snapshots.length, 2);
  assert.deepEqual((await list({ limit: 2, cursor: first.next_cursor })).map((one) => one.id), [all[2]]);
  assert.equal((await api.request('GET', `/v1/snapshots/${all[0]}`)).json.name, 'n0');
  assertError(await api.request('GET', `/v1/snapshots/${ulid()}`), 404);
  assertError(await api.request('GET', '/v1/snapshots', { query: { sandbox: 'X' } }), 400);
  assertError(await api.request('GET', '/v1/snapshots', { query: { sandbox: 'x' } }), 404, /no sandbox x/);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { snapshot: all[0], template: 'host' } }), 400);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { snapshot: ulid() } }), 404);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { snapshot: '../../etc/passwd' } }), 400);
  const stranger = await ownerApi(api, 'strangers', 'eve');
  assertError(await stranger.request('POST', '/v1/sandboxes', { json: { snapshot: all[0] } }), 404);
  assertError(await stranger.request('DELETE', `/v1/snapshots/${all[0]}`), 404);
  const kept = await api.create();
  await api.remove(kept.id);
  assert.equal(assertError(await api.request('POST', '/v1/sandboxes', { json: { id: kept.id, snapshot: all[0] } }), 409).code, 'workspace_exists');
  await api.purge(kept.id);
  fs.unlinkSync(path.join(instance.dataDir, 'snapshots', `${all[1]}.img`));
  const lost = assertError(await api.request('POST', '/v1/sandboxes', { json: { snapshot: all[1] } }), 409);
  assert.equal(lost.code, 'snapshot_missing');
  assert.ok(lost.message.includes(all[1]));
  for (const one of all) await drop(one);
  await api.purge(id);
});

test('a disk that stayed frozen because keeper and copier were killed together is thawed by the next keeper', ofImages, async () => {
  const at = new Instance('snapshots-frozen');
  after(() => at.destroy());
  await at.start();
  const { id } = await at.api.create();
  await at.api.exec(id, { command: `echo kept > ${AGENT}/file; sync` });
  const disk = path.join(`/proc/${at.keeper.pid}/root`, at.dataDir, 'templates/disks', id);
  assert.equal(spawnSync('fsfreeze', ['--freeze', disk]).status, 0);
  process.kill(at.keeper.pid, 'SIGKILL');
  await until(() => at.daemon.how, { what: 'the daemon leaves when its keeper is gone' });
  await at.startSupervised();
  assert.equal(await at.api.out(id, `cat ${AGENT}/file; echo more > ${AGENT}/more; sync; cat ${AGENT}/more`), 'kept\nmore\n');
  await at.api.purge(id);
  await at.shutdown();
});

const MARK = 'trusted.sandlot.late';
const xattr = (what, ...args) => spawnSync('python3', ['-c', `import os, sys; ${what}`, ...args], { encoding: 'utf8' });
const isMarked = (file) => xattr(`sys.exit(${JSON.stringify(MARK)} not in os.listxattr(sys.argv[1]))`, file).status === 0;
/** The mark of a copy that is on its way to the disk says how many bytes of data it has. */
const mark = (file, bytes) => assert.equal(xattr(`os.setxattr(sys.argv[1], ${JSON.stringify(MARK)}, int(sys.argv[2]).to_bytes(8, "little"))`, file, `${bytes}`).status, 0);

test('a snapshot comes to the disk a moment later; what a failure of power has torn by then is used no more', ofImages, async () => {
  const at = new Instance('snapshots-torn');
  after(() => at.destroy());
  await at.start();
  const { id } = await at.api.create();
  await at.api.exec(id, { command: `echo kept > ${AGENT}/file` });
  const [whole, torn] = [await take(id, {}, at.api), await take(id, {}, at.api)];
  const file = (one) => path.join(at.dataDir, 'snapshots', `${one.id}.img`);
  for (const one of [whole, torn]) await until(() => !isMarked(file(one)), { what: 'the snapshot is on the disk' });
  await at.shutdown();
  mark(file(whole), 4096);
  mark(file(torn), 64 * MI); // more than there is
  await at.start();
  await until(() => !isMarked(file(whole)), { what: 'the next keeper brings it to the disk' });
  assert.deepEqual(proc.entries(path.join(at.dataDir, 'snapshots')), [`${whole.id}.img`]);
  const copy = await at.api.create({ snapshot: whole.id });
  assert.equal(await at.api.out(copy.id, `cat ${AGENT}/file`), 'kept\n');
  assert.equal(assertError(await at.api.request('POST', '/v1/sandboxes', { json: { snapshot: torn.id } }), 409).code, 'snapshot_missing');
  for (const one of [whole, torn]) await drop(one.id, at.api);
  for (const one of [copy.id, id]) await at.api.purge(one);
  await at.shutdown();
});

finish();
