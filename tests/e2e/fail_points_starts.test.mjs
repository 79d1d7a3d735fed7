// SPDX-License-Identifier: Apache-2.0
// Fail points (fail_points.test.mjs) of what the daemon does by itself: when it starts, undoes a create, and notes the
// end of a sandbox.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chosen, ONLY, OWN_END, STARTS, UNDONE_CREATE } from './lib/fail_point_lists.mjs';
import { AGENT, failPointSuite, ok } from './lib/fail_point_suite.mjs';
import * as proc from './lib/proc.mjs';
import { ulid } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const suite = await failPointSuite('fail-points-starts');
const { instance, api, points } = suite;
const create = (id) => api.request('POST', '/v1/sandboxes', { json: { id, start: [{ name: 'app', command: 'exec sleep 3600' }] } });

/** Starts the daemon with the point armed; it, or the keeper that it starts, dies there; then starts it again. */
async function startCutShort(target, board, point) {
  board.arm(point);
  const start = target.start().catch(() => {}); // it may not come as far as to be ready
  const pid = await until(() => board.actedPid(point), { what: `${point} is reached` });
  if (pid === target.daemon.pid) {
    await until(() => target.daemon.how, { what: 'the daemon dies' });
    assert.equal(target.daemon.how.code, 99, target.log().slice(-1000));
  } else {
    await until(() => target.daemon.how, { what: 'the daemon leaves because its keeper has' });
  }
  await start;
  await target.startSupervised();
}

const killKeeper = async () => {
  process.kill(instance.keeper.pid, 'SIGKILL');
  await until(() => instance.daemon.how, { what: 'the daemon leaves because its keeper has' });
  await until(() => !proc.isAlive(instance.keeper), { what: 'the kernel has ended the keeper' });
};

/** before: what the next daemon finds; the rest as above. */
const BEFORE = {
  'with sandboxes that run': { before: () => instance.crash() },
  'without a keeper': { before: killKeeper, isKeeperGone: true },
  'with a create that was cut short': {
    before: async () => {
      points.arm('run.driver_started');
      await create(ulid()).catch(() => {});
      await until(() => instance.daemon.how, { what: 'the daemon dies' });
    },
  },
  'with a purge that was cut short': {
    before: async () => {
      const id = await suite.prepare('running');
      points.arm('purge.marked');
      await api.verb(id, 'purge').catch(() => {});
      await until(() => instance.daemon.how, { what: 'the daemon dies' });
      api.purged.add(id);
    },
  },
};

for (const [name, list] of Object.entries(STARTS)) {
  const { before, isKeeperGone } = BEFORE[name];
  for (const point of chosen(list)) {
    test(`a start ${name}, cut short at ${point}`, async () => {
      const { id } = await api.create();
      await api.put(id, `${AGENT}/kept`, id);
      await before();
      await startCutShort(instance, points, point);
      const expected = isKeeperGone ? 'stopped' : 'running';
      assert.equal((await api.get(id)).status, expected);
      await suite.assertWitness(isKeeperGone ? 'keeper' : 'daemon');
      await suite.assertKept(id);
      await api.purge(id);
      await suite.assertNothingRemains();
    });
  }
}

for (const point of chosen(UNDONE_CREATE)) {
  test(`the undoing of a create that failed, cut short at ${point}`, async () => {
    const id = ulid();
    points.arm('run.before_row', 'fail');
    points.arm(point);
    await assert.rejects(create(id));
    assert.equal(await suite.recover(point), 'daemon');
    assert.equal(await suite.stateOf(id), null);
    await ok(create(id));
    await api.purge(id);
    await suite.assertNothingRemains();
  });
}

test('the note that a sandbox ended by itself, cut short at settle.link_closed', { skip: ONLY && ONLY !== OWN_END }, async () => {
  const id = await suite.prepare('running');
  const init = await instance.initOf(id);
  points.arm(OWN_END);
  process.kill(init.pid, 'SIGKILL');
  assert.equal(await suite.recover(OWN_END), 'daemon');
  assert.equal(await suite.stateOf(id), 'stopped');
  await suite.assertKept(id);
  await api.purge(id);
  await suite.assertNothingRemains();
});

suite.finish();
