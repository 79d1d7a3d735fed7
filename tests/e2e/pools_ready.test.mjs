// SPDX-License-Identifier: Apache-2.0
// What waits in a pool is ready when it is given away, not only when it was made; pools that are stuck hold no others;
// what drains them; and nothing of one who has had a sandbox is in the next.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { sql } from './lib/database.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('pools_ready', { args: ['--pool-reserve', '0', '--memory-reserve', '0'], width: 8 });
const { created } = commandLine(instance);

async function put(name) {
  const answer = await api.request('PUT', `/v1/templates/${name}/archive`, { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
}
async function patch(name, json) {
  const answer = await api.request('PATCH', `/v1/templates/${name}`, { json });
  assert.equal(answer.status, 200, answer.text);
}
const pools = async () => (await api.request('GET', '/v1/pools')).json;
const pool = async (name) => (await pools()).pools.find(({ template }) => template === name);
const untilPool = (name, is, what) => until(async () => { const one = await pool(name); return one && is(one) && one; }, { what: `${name}: ${what}` });
const untilFull = (name) => untilPool(name, ({ size, ready, warming }) => ready === size && warming === 0, 'it is full');
const rows = (text) => sql(instance, text).split('\n').filter(Boolean);
const waiting = () => rows('SELECT id FROM pooled WHERE state = 1 ORDER BY id');
async function drop(name) {
  await patch(name, { pool: { size: 0 } });
  await until(() => rows('SELECT id FROM pooled').length === 0, { what: 'nothing waits' });
  assert.equal((await api.request('DELETE', `/v1/templates/${name}`)).status, 204);
}
const claim = async (body) => {
  const { hits } = await pool(body.template);
  const made = await api.create(body);
  assert.equal((await pool(body.template)).hits, hits + 1, `${made.id} did not wait`);
  return made;
};

/** The one process of the instance's sandboxes whose command line has that in it. */
async function processWith(text) {
  const of = () => instance.sandboxProcesses().filter(({ pid, state }) => state !== 'Z' && proc.cmdline(pid).includes(text) && !proc.cmdline(pid).includes('/bin/sh'));
  return until(() => of().length === 1 && of()[0], { what: `one process runs ${text}` });
}
/** Until the daemon has heard of the end of what a waiting sandbox, or a member of it, runs by itself. */
const untilHeard = (id) => until(() => rows(`SELECT number FROM processes WHERE sandbox = '${id}' AND start <> '' AND ended_at > 0`).length > 0, { what: 'the end of its server is known' });

test('a waiting sandbox whose server dies is not given away, and another takes its place', async () => {
  await put('server');
  await patch('server', { start: 'exec httpd -f -p 127.0.0.1:8011', ready: { port: 8011 }, pool: { size: 1 } });
  await untilFull('server');
  const [ill] = waiting();
  process.kill((await processWith('httpd -f -p 127.0.0.1:8011')).pid, 'SIGKILL');
  await untilHeard(ill);
  const made = await api.create({ template: 'server' });
  assert.notEqual(made.id, ill);
  await until(() => !waiting().includes(ill), { what: 'it is gone' });
  await untilFull('server');
  const given = await claim({ template: 'server' });
  assert.equal(await api.out(given.id, 'http_proxy= wget -O - http://127.0.0.1:8011/ 2>&1 | grep -c 404'), '1\n', 'it answers');
  for (const { id } of [made, given]) await api.purge(id);
  await drop('server');
});

test('one whose server ends in good order does not wait as ready, and one whose work is done does', async () => {
  await put('server');
  const SERVE = 'httpd -p 127.0.0.1:8012; until [ -e /workspace/end ]; do sleep 0.1; done; kill $(pidof httpd)';
  await patch('server', { start: [{ name: 'app', command: SERVE }, { name: 'work', command: 'until [ -e /workspace/done ]; do sleep 0.1; done' }], ready: { port: 8012 }, pool: { size: 1 } });
  await untilFull('server');
  const [waits] = waiting();
  fs.writeFileSync(path.join(instance.workspace(waits), 'done'), '');
  await untilHeard(waits);
  await untilFull('server');
  assert.deepEqual(waiting(), [waits], 'it has done its work, and its server answers');
  fs.writeFileSync(path.join(instance.workspace(waits), 'end'), '');
  await untilPool('server', ({ ready }) => ready === 0, 'it is not ready any more');
  const made = await api.create({ template: 'server' });
  assert.notEqual(made.id, waits);
  await api.purge(made.id);
  await drop('server');
});

test('a pool whose sandboxes never become ready holds no other pool', async () => {
  for (const name of ['stuck', 'fine']) await put(name);
  await patch('stuck', { start: 'exec sleep 3600', ready: { port: 9 }, pool: { size: 3 } });
  await untilPool('stuck', ({ warming }) => warming === 2, 'two are being made');
  await patch('fine', { pool: { size: 2 } });
  await untilFull('fine');
  const { warming, ready } = await pool('stuck');
  assert.deepEqual([warming, ready], [2, 0], 'and no more of it are made');
  for (const name of ['stuck', 'fine']) await patch(name, { pool: { size: 0 } });
  for (const name of ['stuck', 'fine']) await drop(name);
});

test('a claim gives another disk limit, which holds and counts; one with less than is on the disk is created as ever', async () => {
  await put('disk');
  await patch('disk', { start: 'dd if=/dev/zero of=/workspace/data bs=1M count=24; sync; touch /workspace/up; exec sleep 3600', ready: { command: 'test -e /workspace/up' }, pool: { size: 1 } });
  await untilFull('disk');
  const waits = waiting();
  const small = await api.create({ template: 'disk', resources: { disk: '16Mi' } });
  assert.ok(!waits.includes(small.id));
  await api.purge(small.id);
  const { id } = await claim({ template: 'disk', resources: { disk: '64Mi' } });
  assert.deepEqual([id], waits);
  assert.equal((await api.stats(id)).disk.limit_bytes, 64 * MI);
  assert.deepEqual(rows(`SELECT disk_bytes FROM workspaces WHERE id = '${id}'`), [String(64 * MI)], 'a quota counts that much');
  assert.notEqual((await api.exec(id, 'dd if=/dev/zero of=/workspace/more bs=1M count=60')).exit_code, 0);
  await api.out(id, 'rm -f /workspace/more; dd if=/dev/zero of=/workspace/more bs=1M count=20');
  await api.purge(id);
  await untilFull('disk');
  const large = await claim({ template: 'disk', resources: { disk: '2Gi' } });
  assert.equal((await api.stats(large.id)).disk.limit_bytes, 2048 * MI);
  await api.purge(large.id);
  await drop('disk');
});

test('sandlot create --start-env has start commands begin anew with the environment', async () => {
  await put('env');
  await patch('env', { start: 'echo "started ${WORD:-bare}" >> /workspace/log; exec sleep 3600', ready: { command: 'test -e /workspace/log' }, pool: { size: 1 } });
  await untilFull('env');
  const id = await created('-t', 'env', '-e', 'WORD=new', '--start-env');
  await until(async () => (await api.out(id, 'cat /workspace/log')) === 'started bare\nstarted new\n', { what: 'it began anew' });
  await api.purge(id);
  await drop('env');
});

test('another build of the daemon drains what is stale, and so do the settings that sandboxes are built with', async () => {
  const { daemonFile } = instance;
  const again = async (args = []) => { await instance.terminate(); await instance.start(['--pool', 'host=1', ...args]); };
  const drains = async (what) => {
    await until(() => !waiting().includes(what), { what: `${what} is gone` });
    await untilFull('host');
    return waiting()[0];
  };
  instance.daemonFile = instance.copyPrograms();
  await again();
  await untilFull('host');
  let [waits] = waiting();
  await again();
  await untilFull('host');
  assert.deepEqual(waiting(), [waits], 'the same build goes on with it');
  fs.utimesSync(instance.daemonFile, new Date(), new Date());
  await again();
  waits = await drains(waits);
  await again(['--disk-limits=false']);
  waits = await drains(waits);
  await again(['--disk-limits=false', '--allow-missing', 'memory']);
  await drains(waits);
  instance.daemonFile = daemonFile;
  await instance.terminate();
  await instance.start();
  await until(() => waiting().length === 0, { what: 'nothing waits' });
});

test('when the host is short of memory all that wait go, and none is made', async () => {
  await instance.terminate();
  await instance.start(['--pool', 'host=2']);
  await untilFull('host');
  await instance.terminate();
  await instance.start(['--pool', 'host=2', '--memory-reserve', '1024Ti']);
  await until(() => rows('SELECT id FROM pooled').length === 0, { what: 'they are gone' });
  assert.equal((await pools()).held_because, 'the host is short of memory');
  assert.ok(!instance.log().includes('is stopped: the host had'), 'nobody else is stopped');
  await instance.terminate();
  await instance.start();
});

finish();
