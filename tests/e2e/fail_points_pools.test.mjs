// SPDX-License-Identifier: Apache-2.0
// Fail points (fail_points.test.mjs) of pools: what waits is the pool's or somebody's, whoever dies when.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sql } from './lib/database.mjs';
import { chosen, POOL_FAILURE, POOL_POINTS } from './lib/fail_point_lists.mjs';
import { failPointSuite, ok } from './lib/fail_point_suite.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { httpServer } from './lib/outside.mjs';
import { until } from './lib/wait.mjs';

const suite = await failPointSuite('fail-points-pools');
const { instance, api, points, processes, witness } = suite;

const rowsOf = (query) => sql(instance, query).split('\n').filter(Boolean);
const setPool = (json) => ok(api.request('PATCH', '/v1/templates/pooled', { json }));
/** What waits has its member with it, and nothing else belongs to no owner. */
const untilPooled = (size) => until(async () => {
  const { pools } = (await api.request('GET', '/v1/pools')).json;
  const ready = pools.find(({ template }) => template === 'pooled')?.ready ?? 0;
  const rows = rowsOf('SELECT id FROM pooled');
  return ready === size && rows.length === size && rowsOf("SELECT id FROM sandboxes WHERE organization = '.pool' AND parent_id IS NULL").join() === rows.join()
    && rowsOf("SELECT parent_id FROM sandboxes WHERE organization = '.pool' AND parent_id IS NOT NULL").sort().join() === rows.join();
}, { what: `${size} wait` });

/** Sandboxes and members of the pool, which stays from one test to the next. */
const waiting = () => rowsOf("SELECT id FROM sandboxes WHERE organization = '.pool'");
let hasPool = false;

async function makePool() {
  await ok(api.request('PUT', '/v1/templates/pooled/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } }));
  await setPool({
    start: [{ name: 'app', command: 'echo "started ${WORD:-bare}" >> /workspace/log; exec sleep 3600' }], ready: { command: 'test -e /workspace/log' }, pool: { size: 0 },
    members: [{ role: 'cache', template: 'pooled', command: 'exec sleep 3600', health: { command: 'true' } }],
  });
  hasPool = true;
}

async function removePool() {
  hasPool = false;
  await setPool({ pool: { size: 0 } });
  await untilPooled(0);
  await ok(api.request('DELETE', '/v1/templates/pooled'));
}

/** Afterwards there is what waits, and nothing else. */
async function withPool(size, act) {
  if (!hasPool) await makePool();
  try {
    await setPool({ pool: { size } });
    await untilPooled(size);
    await act();
  } catch (error) {
    for (const { name, action } of points.rows()) if (action) points.disarm(name);
    await removePool(); // so that a failure here is not one of all that follow
    throw error;
  }
  await suite.assertNothingRemains(waiting);
}

/** Of a pool nobody is told; those who have sandboxes are as after any death. */
async function recoverAll(point) {
  const died = await suite.recover(point);
  await suite.assertWitness(died);
  return died;
}

for (const point of chosen(POOL_POINTS.fill)) {
  test(`the filling of a pool, cut short at ${point}`, () => withPool(0, async () => {
    points.arm(point);
    await setPool({ pool: { size: 2 } });
    await recoverAll(point);
    await untilPooled(2);
  }));
}

for (const point of chosen(POOL_POINTS.drain)) {
  test(`the draining of a pool, cut short at ${point}`, () => withPool(2, async () => {
    points.arm(point);
    await setPool({ env: { OTHER: point } }); // another version
    await recoverAll(point);
    await untilPooled(2);
  }));
}

/** Asks for all that a claim can give, so that a cut leaves something to be done of each. */
const claimBody = (word, more = {}) => ({
  template: 'pooled', name: `claimed-${word}`, project: 'claims', session: word, env: { WORD: word }, start_env: true, resources: { memory: '300Mi', disk: '500Mi' },
  network: { mode: 'none', secrets: ['claim-key'] }, ...more,
});
const claimOf = (word, key) => api.request('POST', '/v1/sandboxes', { json: claimBody(word), headers: { 'idempotency-key': key } });
async function withClaims(act) {
  const server = await httpServer();
  await ok(api.request('POST', '/v1/projects', { json: { name: 'claims' } }));
  await ok(api.request('PUT', '/v1/projects/claims/files', { query: { path: 'kept.txt' }, body: 'of the project' }));
  await ok(api.request('PUT', '/v1/secrets/claim-key', { json: { url: `http://127.0.0.1:${server.port}`, value: 'hidden', header: 'X-Key', prefix: '' } }));
  try {
    await withPool(2, () => act(server));
  } finally {
    server.close();
    await api.request('DELETE', '/v1/secrets/claim-key');
    await api.request('DELETE', '/v1/projects/claims');
  }
}
/** It is all that was asked for, whoever died while it was given away. */
async function assertClaimed(id, word, server) {
  assert.equal(await api.out(id, 'echo $WORD; hostname; cat /workspace/project_files/kept.txt'), `${word}\nclaimed-${word}\nof the project`);
  assert.equal((await api.stats(id)).memory.limit_bytes, 300 << 20);
  assert.equal((await api.get(id)).resources.disk, '500Mi');
  await until(async () => /\bstarted \S+\n$/.exec(await api.out(id, 'cat /workspace/log'))?.[0] === `started ${word}\n`, { what: 'its start command runs with its environment' });
  await until(async () => (await processes.list(id)).filter(({ start, status }) => start === 'app' && status === 'running').length === 1, { what: 'it runs once' });
  await api.out(id, 'wget -q -O - http://claim-key.internal/asked');
  assert.equal(server.heads.at(-1).headers['x-key'], 'hidden');
  await until(async () => (await api.get(id)).members.every(({ role, health }) => role === 'primary' || health === 'healthy'), { what: 'its member is healthy' });
  assert.deepEqual((await api.get(id)).members.map(({ role, status }) => [role, status]).sort(), [['cache', 'running'], ['primary', 'running']]);
}

for (const [point, action] of chosen([...POOL_POINTS.claim.map((each) => [each, 'crash']), [POOL_FAILURE, 'fail']])) {
  test(`a create that is given a waiting sandbox, ${action === 'fail' ? 'failed' : 'cut short'} at ${point}`, () => withClaims(async (server) => {
    const word = point.replace(/\W/g, '-').replace(/_/g, '-');
    points.arm(point, action);
    const answer = await claimOf(word, `${action}-${point}`).catch(() => null);
    const died = action === 'crash' ? await recoverAll(point) : 'nobody';
    assert.ok(!answer || answer.status >= 500, answer?.text);
    const taken = (await api.all()).filter(({ id }) => id !== witness.id);
    assert.ok(taken.length <= 1 && taken.every(({ status }) => status === (died === 'keeper' ? 'stopped' : 'running')));
    const { json: { id } } = await ok(claimOf(word, `${action}-${point}`));
    if (taken.length > 0) assert.equal(id, taken[0].id, 'the key names what was given');
    await assertClaimed(id, word, server);
    await untilPooled(2);
    assert.ok(!rowsOf('SELECT id FROM pooled').includes(id));
    assert.deepEqual((await api.all()).map((one) => one.id).sort(), [id, witness.id].sort());
    await api.purge(id);
  }));
}

for (const point of chosen(POOL_POINTS.claim)) {
  test(`two creates at once that are given waiting sandboxes, cut short at ${point}`, () => withClaims(async (server) => {
    const claims = () => Promise.allSettled(['one', 'two'].map((word) => claimOf(word, `two-${point}-${word}`)));
    points.arm(point, 'crash', { skip: 1 });
    await claims();
    await recoverAll(point);
    const taken = (await api.all()).filter(({ id }) => id !== witness.id).map(({ id }) => id);
    const ids = (await claims()).map(({ value }) => value.json.id);
    assert.equal(new Set(ids).size, 2, 'each has its own');
    assert.ok(taken.every((id) => ids.includes(id)), `${taken} of ${ids}`);
    for (const [i, word] of ['one', 'two'].entries()) await assertClaimed(ids[i], word, server);
    await untilPooled(2);
    for (const id of ids) await api.purge(id);
  }));
}

test('the pool leaves nothing behind', async () => {
  if (hasPool) await removePool();
  await suite.assertNothingRemains();
});

suite.finish();
