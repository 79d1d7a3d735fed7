// SPDX-License-Identifier: Apache-2.0
// The host is short of memory: whoever holds most goes first, and each end has its reason and numbers. No host has the
// reserve that this daemon is to keep, so that it is short all the time; the order among busy ones is tested in the unit
// tests of model/sandbox/memory_pressure.h, because it takes a host whose free memory nobody else changes.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { Instance } from './lib/instance.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Processes } from './lib/processes.mjs';
import { until } from './lib/wait.mjs';

const instance = new Instance('memory-pressure', { args: ['--memory-reserve', '1024Ti'] });
after(() => instance.destroy());
process.on('exit', () => instance.destroy());
await instance.start();
const [hog, neighbour] = [await ownerApi(instance.api, 'acme', 'hog'), await ownerApi(instance.api, 'acme', 'neighbour')];
const HELD = 200;

test('idle sandboxes of the owner who holds most are stopped before those of others, and say why; one in use stays', async () => {
  const large = await hog.create({ resources: { memory: '512Mi' } });
  const { id: holder } = (await hog.tryExec(large.id, { argv: ['python3', '-uc', `import time; held = bytearray(${HELD} << 20); print("held"); time.sleep(600)`], background: true })).json.process;
  await new Processes(hog).untilOutput(large.id, holder, 'held');
  // Only now, so that the one to go first is not the last to be idle on a slow machine.
  const small = await neighbour.create();
  const used = await neighbour.create();
  const inUse = neighbour.tryExec(used.id, { command: 'until test -e /tmp/done; do sleep 0.1; done; echo done', timeout_ms: 600_000 });
  const stopped = async (api, { id }) => until(async () => { const row = await api.get(id); return row.status === 'stopped' && row; }, { what: `${id} is stopped` });
  const [first, second] = [await stopped(hog, large), await stopped(neighbour, small)];
  for (const { termination } of [first, second]) assert.equal(termination.reason, 'memory_pressure');
  const [, held, ofOwner] = /this sandbox held (\d+), its owner (\d+) of a share of \d+/.exec(first.termination.detail) ?? assert.fail(first.termination.detail);
  assert.ok(Number(held) >= HELD && Number(ofOwner) >= Number(held), first.termination.detail);
  const order = instance.log().split('\n').filter((line) => line.includes('is stopped: the host had'));
  assert.ok(order.findIndex((line) => line.includes(large.id)) < order.findIndex((line) => line.includes(small.id)), order.join('\n'));
  assert.equal((await neighbour.get(used.id)).status, 'running');
  await neighbour.put(used.id, '/tmp/done', '');
  assert.equal((await inUse).json.stdout, 'done\n');
});

test('all that were stopped start again', async () => {
  for (const api of [hog, neighbour]) for (const { id } of await api.all()) assert.equal(await api.out(id, 'echo works'), 'works\n');
  await instance.shutdown();
});
