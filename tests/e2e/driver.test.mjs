// SPDX-License-Identifier: Apache-2.0
// A daemon whose driver needs no keeper: sandlotd with the driver of the unit tests, whose sandboxes are played.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { Instance } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { until } from './lib/wait.mjs';

/** Starts the daemon with the driver that is played, and waits until it serves sandboxes. */
async function start(at) {
  const addressFile = path.join(at.dataDir, 'run/api.addr');
  const child = at.spawnDaemon(['--driver', 'fake'], fs.openSync(at.logFile, 'a'));
  const daemon = { pid: child.pid, start: proc.processInfo(child.pid)?.start, child };
  child.on('exit', (code, signal) => { daemon.how = { code, signal }; });
  at.daemon = daemon;
  const address = await until(() => daemon.how || /:(\d+)\n$/.exec(proc.quiet(() => fs.readFileSync(addressFile, 'utf8'), '')), { what: 'the daemon serves' });
  assert.ok(!daemon.how, `the daemon ended: ${at.log()}`);
  at.api.port = Number(address[1]);
  at.api.token = fs.readFileSync(path.join(at.dataDir, 'token'), 'utf8').trim();
  assert.equal((await at.api.request('GET', '/readyz', { token: null })).status, 200);
  return daemon;
}

async function end(at, daemon) {
  at.api.disconnect();
  process.kill(daemon.pid, 'SIGTERM');
  await until(() => daemon.how, { what: 'the daemon ends' });
  assert.deepEqual(daemon.how, { code: 0, signal: null }, at.log());
}

test('with a driver that needs no keeper, the daemon starts none and serves sandboxes', async () => {
  const at = new Instance('driver');
  after(() => at.destroy());
  at.daemonFile = path.join(at.build, 'tests/unit/sandlotd-fake');
  const daemon = await start(at);
  assert.deepEqual(proc.descendants([daemon.pid]), []);
  assert.ok(!fs.existsSync(path.join(at.dataDir, 'run/keeper.sock')));
  assert.notEqual(fs.statSync(`/proc/${daemon.pid}`).uid, 0, 'it gave up its privileges');

  const { drivers } = (await at.api.request('GET', '/v1/drivers')).json;
  assert.deepEqual(drivers.map(({ name, used }) => ({ name, used })), [{ name: 'fake', used: true }]);
  const created = await at.api.request('POST', '/v1/sandboxes', { json: { network: { mode: 'none' } } });
  assert.equal(created.status, 201, created.text);
  const { id } = created.json;
  for (const [verb, status] of [['pause', 'paused'], ['resume', 'running'], ['stop', 'stopped'], ['start', 'running']]) {
    const answer = await at.api.request('POST', `/v1/sandboxes/${id}/${verb}`);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.status, status);
  }

  // What the driver cannot do is refused with its name.
  const refused = await at.api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { argv: ['true'], isolate: true } });
  assert.equal(refused.json.error.code, 'unsupported_by_driver', refused.text);
  assert.match(refused.json.error.message, /the driver fake cannot/);
  await at.api.purge(id);
  await end(at, daemon);
});

test('the next daemon finds the same database, and still starts no keeper', async () => {
  const at = new Instance('driver-again');
  after(() => at.destroy());
  at.daemonFile = path.join(at.build, 'tests/unit/sandlotd-fake');
  await end(at, await start(at));
  const daemon = await start(at);
  assert.deepEqual(proc.descendants([daemon.pid]), []);
  await end(at, daemon);
  assert.doesNotMatch(at.log(), /keeper/);
});
