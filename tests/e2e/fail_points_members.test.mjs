// SPDX-License-Identifier: Apache-2.0
// Fail points (fail_points.test.mjs) of a sandbox with members, which is cut short in the middle of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sql } from './lib/database.mjs';
import { chosen, MEMBER_POINTS } from './lib/fail_point_lists.mjs';
import { afterKeeper, failPointSuite, ok } from './lib/fail_point_suite.mjs';
import { until } from './lib/wait.mjs';

const suite = await failPointSuite('fail-points-members');
const { instance, api, points } = suite;

const MEMBERS = ['cache', 'backend'].map((role) => ({ role, command: 'exec sleep 3600', resources: { memory: '64Mi' } }));
const inMember = (id, role, command) => ok(api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, query: { member: role } })).then(({ json }) => json.stdout);
/** They are what their sandbox is, each once, with what it kept. */
async function assertMembers(id, { isNew = false } = {}) {
  const state = await until(async () => {
    const { status, members } = await api.get(id);
    return members.every((one) => one.status === status) && { status, members };
  }, { what: `${id} and its members are alike` });
  assert.deepEqual(state.members.map(({ role }) => role).sort(), ['backend', 'cache', 'primary']);
  assert.equal(sql(instance, `SELECT count(*) FROM sandboxes WHERE parent_id = '${id}'`).trim(), '2');
  if (state.status !== 'running') return;
  for (const { role } of MEMBERS) {
    assert.equal(await inMember(id, role, 'cat /volumes/kept 2>/dev/null || true'), isNew ? '' : `${id}\n`);
    await until(async () => (await ok(api.request('GET', `/v1/sandboxes/${id}/processes`, { query: { member: role } }))).json.processes.filter(({ start, status }) => start === role && status === 'running').length === 1, { what: `the ${role} runs once` });
  }
}
async function keepInMembers(id) {
  for (const { role } of MEMBERS) await inMember(id, role, `echo ${id} > /volumes/kept; sync`);
}
async function wakeMembers(id, options) {
  const { status } = await api.get(id);
  if (status !== 'running') await api.life(id, status === 'paused' ? 'resume' : 'start');
  await assertMembers(id, options);
}
const OF_MEMBERS = {
  create: { before: null, after: 'running', act: (id) => api.request('POST', '/v1/sandboxes', { json: { id, members: MEMBERS } }), check: (id) => assertMembers(id, { isNew: true }), again: async (id) => { await ok(api.ensure({ id, members: MEMBERS })); await wakeMembers(id, { isNew: true }); } },
  start: { before: 'stopped', after: 'running', failed: 'error', again: wakeMembers },
  stop: { before: 'running', after: 'stopped', again: wakeMembers },
  pause: { before: 'running', after: 'paused', again: wakeMembers },
  resume: { before: 'paused', after: 'running', again: wakeMembers },
  reset: { before: 'running', after: 'running', also: 'stopped', check: () => {}, again: async (id) => { await ok(api.verb(id, 'reset')); await wakeMembers(id, { isNew: true }); } },
  delete: { before: 'running', after: 'deleted', also: 'stopped', act: (id) => api.request('DELETE', `/v1/sandboxes/${id}`), again: async (id) => { await ok(api.ensure({ id, members: MEMBERS })); await wakeMembers(id); } },
  purge: { before: 'running', after: null, also: ['stopped', 'deleted'], again: async (id) => { if (await suite.stateOf(id)) await api.purge(id); } },
  snapshot: { before: 'running', after: 'running', act: (id) => api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} }), again: async (id) => { await wakeMembers(id); await suite.dropSnapshots(id); } },
  fork: { before: 'running', after: 'running', act: (id) => api.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} }), check: (id) => suite.purgeForks(id), again: async (id) => { await wakeMembers(id); await suite.purgeForks(id); } },
};
async function cutMembers(operation, id, point, skip) {
  if (operation.before) await keepInMembers(id);
  if (operation.before === 'stopped') await api.life(id, 'stop');
  if (operation.before === 'paused') await api.life(id, 'pause');
  points.arm(point, 'crash', { skip });
  const answer = await operation.act(id).catch(() => null);
  const died = await suite.recover(point);
  const isAcknowledged = answer !== null && answer.status < 300;
  const allowed = isAcknowledged ? [operation.after] : [operation.before, operation.after, operation.failed, operation.also].flat();
  const state = await suite.stateOf(id);
  assert.ok(allowed.map(died === 'keeper' ? afterKeeper : (same) => same).includes(state), `${id} is ${state}, ${isAcknowledged ? 'acknowledged' : 'not acknowledged'}, ${died} died`);
  await suite.assertWitness(died);
  if (['running', 'stopped', 'paused'].includes(state)) await operation.check(id);
  await operation.again(id);
}

for (const [name, list] of Object.entries(MEMBER_POINTS)) {
  const operation = { act: (id) => api.verb(id, name), check: assertMembers, ...OF_MEMBERS[name] };
  for (const [point, skip] of chosen(list, 'members')) {
    test(`${name} of a sandbox with members, cut short at ${point}`, async () => {
      const id = await suite.prepare(operation.before && 'running', { members: MEMBERS });
      try {
        await cutMembers(operation, id, point, skip);
      } finally {
        points.disarm(point);
        await api.verb(id, 'purge').catch(() => {});
        api.purged.add(id);
      }
      await suite.assertNothingRemains();
    });
  }
}

suite.finish();
