// SPDX-License-Identifier: Apache-2.0
// Quotas: exactly as much as there is room for, whoever asks and however many at a time.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { commandLine } from './lib/cli.mjs';
import { makeToken, ORDINARY } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('quotas');
const { ok, sandlot } = commandLine(instance);

const ME = '/v1/quotas/default/admin';
const set = async (limits, path = ME) => {
  const answer = await api.request('PUT', path, { json: limits });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};
const clear = (path = ME) => api.request('DELETE', path);

async function tryCreate(json = {}, options = {}) {
  const answer = await api.request('POST', '/v1/sandboxes', { json, ...options });
  if (answer.status === 201) api.made.add(answer.json.id);
  return answer;
}

/** A size of the API as messages write it, with three digits: "1.5 GiB". */
function told(amount) {
  const [, digits, unit] = /^(\d+)(Ki|Mi|Gi|Ti|Pi)$/.exec(amount) ?? [];
  const units = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
  let [value, at] = [Number(digits), units.indexOf(unit)];
  for (; value >= 999.5; at += 1) value /= 1024;
  return unit ? `${Number(value.toPrecision(3))} ${units[at]}B` : amount;
}

/** 429 that says which quota, its limit and its use, and when to come back. */
function assertExceeded(answer, name, limit, used) {
  assertError(answer, 429);
  assert.equal(answer.json.error.code, 'quota_exceeded');
  assert.match(answer.json.error.message, new RegExp(`quota ${name} of .* limit ${told(limit)}, in use ${told(used)}$`));
  assert.ok(Number(answer.headers['retry-after']) > 0);
}

test('fifty parallel creates against a quota of ten make exactly ten', async () => {
  await set({ sandboxes: 10 });
  const answers = await Promise.all(Array.from({ length: 50 }, () => tryCreate()));
  assert.equal(answers.filter((answer) => answer.status === 201).length, 10);
  for (const answer of answers.filter(({ status }) => status !== 201)) assertExceeded(answer, 'sandboxes', 10, 10);
  assert.equal((await api.all()).length, 10);
  await api.remove((await api.all())[0].id);
  assert.equal((await tryCreate()).status, 201, 'there is room again');
  await purgeAll(api);
  await clear();
});

test('parallel wakes against a quota of running ones wake exactly as many, and exec is told why not', async () => {
  const ids = [];
  for (let i = 0; i < 8; i++) ids.push((await api.create()).id);
  await Promise.all(ids.map((id) => api.life(id, 'stop')));
  await set({ running: 3 });
  const answers = await Promise.all(ids.map((id) => api.request('POST', `/v1/sandboxes/${id}/start`)));
  assert.equal(answers.filter((answer) => answer.status === 200).length, 3);
  const rows = await api.all();
  assert.deepEqual(rows.map((row) => row.status).sort(), [...Array(3).fill('running'), ...Array(5).fill('stopped')], 'nobody is in error for that');
  const stopped = rows.find((row) => row.status === 'stopped');
  assertExceeded(await api.request('POST', `/v1/sandboxes/${stopped.id}/exec`, { json: { argv: ['true'] } }), 'running', 3, 3);
  assertExceeded(await api.ensure({ id: stopped.id }), 'running', 3, 3);
  assertExceeded(await tryCreate(), 'running', 3, 3);
  await api.life(rows.find((row) => row.status === 'running').id, 'stop');
  assert.equal(await api.out(stopped.id, 'echo woken'), 'woken\n');
  await clear();
  await purgeAll(api);
});

test('cpu, memory, disk and kept workspaces are counted', async () => {
  const resources = { cpu: 0.5, memory: '64Mi', disk: '100Mi' };
  for (const [limits, name, limit, used] of [
    [{ cpu: 1 }, 'cpu', '1', '1'],
    [{ memory: '128Mi' }, 'memory', '128Mi', '128Mi'],
    [{ disk: '250Mi' }, 'disk', '250Mi', '200Mi'],
    [{ workspaces: 2 }, 'workspaces', '2', '2'],
  ]) {
    await set(limits);
    await api.create({ resources });
    const { id } = await api.create({ resources });
    assertExceeded(await tryCreate({ resources }), name, limit, used);
    if (name === 'workspaces') {
      await api.remove(id);
      assertExceeded(await tryCreate({ resources }), name, limit, used);
      assert.equal((await tryCreate({ id, resources })).status, 201, 'its own workspace is there already');
    }
    await clear();
    await purgeAll(api);
  }
});

test('a PATCH cannot have more disk than the quota, however many come at a time', async () => {
  const made = [];
  for (let i = 0; i < 4; i++) made.push(await api.create({ resources: { disk: '100Mi' } }));
  await set({ disk: '500Mi' });
  const answers = await Promise.all(made.map(({ id }) => api.patch(id, { resources: { disk: '150Mi' } })));
  const refused = answers.filter((answer) => answer.status !== 200);
  assert.equal(refused.length, 2);
  for (const answer of refused) assertExceeded(answer, 'disk', '500Mi', '500Mi');
  const sizes = await Promise.all(made.map(async ({ id }) => [(await api.get(id)).resources.disk, (await api.stats(id)).disk.limit_bytes]));
  assert.deepEqual(sizes.map(([disk]) => disk).sort(), ['100Mi', '100Mi', '150Mi', '150Mi'], 'what is refused changes nothing');
  for (const [disk, limit] of sizes) assert.equal(limit, parseInt(disk, 10) * 1024 * 1024);
  assertExceeded(await api.patch(made[0].id, { resources: { disk: '60Gi' } }), 'disk', '500Mi', '500Mi');
  const smaller = await api.patch(made.find((_, i) => answers[i].status === 200).id, { resources: { disk: '100Mi' } });
  assert.equal(smaller.status, 200, smaller.text);
  const again = await api.patch(made.find((_, i) => answers[i].status !== 200).id, { resources: { disk: '150Mi' } });
  assert.equal(again.status, 200, 'what one gives back another may have');
  await clear();
  await purgeAll(api);
});

test('a kept workspace counts its disk until it is purged, also what is on it beyond a smaller limit', async () => {
  await set({ disk: '250Mi' });
  const kept = [];
  for (let i = 0; i < 2; i++) {
    const { id } = await api.create({ resources: { disk: '100Mi' } });
    await api.remove(id);
    kept.push(id);
  }
  assertExceeded(await tryCreate({ resources: { disk: '100Mi' } }), 'disk', '250Mi', '200Mi');
  await api.purge(kept[0]);
  const { id } = await api.create({ resources: { disk: '150Mi' } });
  await api.out(id, 'head -c 80M /dev/zero > /workspace/full && sync');
  assert.equal((await api.patch(id, { resources: { disk: '10Mi' } })).status, 200);
  const quota = (await api.request('GET', ME)).json;
  const used = parseInt(quota.used.disk, 10) / (quota.used.disk.endsWith('Ki') ? 1024 : 1);
  assert.ok(used >= 180, `${quota.used.disk}: the disk still holds 80 MiB`);
  assertExceeded(await tryCreate({ resources: { disk: '100Mi' } }), 'disk', '250Mi', quota.used.disk);
  await clear();
  await purgeAll(api);
});

test('creates in a minute are paced, and Retry-After says when the next may come', async () => {
  await set({ creates_per_minute: 2 });
  await api.create();
  await api.create();
  const answer = await tryCreate();
  assertExceeded(answer, 'creates_per_minute', 2, 2);
  assert.ok(Number(answer.headers['retry-after']) <= 30);
  await clear();
  await purgeAll(api);
});

test('the quota of an organization counts all its users, that of a user only him', async () => {
  const [{ token: ann }, { token: bob }] = await Promise.all(['ann', 'bob'].map((user) => makeToken(api, { organization: 'acme', user, scopes: ORDINARY })));
  await set({ sandboxes: 3 }, '/v1/quotas/acme');
  await set({ sandboxes: 2 }, '/v1/quotas/acme/ann');
  const made = [];
  const create = async (token) => {
    const answer = await api.request('POST', '/v1/sandboxes', { json: {}, token });
    if (answer.status === 201) made.push([token, answer.json.id]);
    return answer;
  };
  await create(ann);
  await create(ann);
  assertExceeded(await create(ann), 'sandboxes', 2, 2);
  await create(bob);
  assertExceeded(await create(bob), 'sandboxes', 3, 3);
  assert.equal((await tryCreate()).status, 201, 'other organizations have room');
  const own = (await api.request('GET', '/v1/quotas', { token: ann })).json.quotas;
  assert.deepEqual(own.map((quota) => [quota.organization, quota.user, quota.limits.sandboxes, quota.used.sandboxes]), [['acme', null, 3, 3], ['acme', 'ann', 2, 2]]);
  for (const path of ['/v1/quotas/acme', '/v1/quotas/acme/bob']) assertError(await api.request('GET', path, { token: bob }), 403);
  assertError(await api.request('PUT', '/v1/quotas/acme/bob', { json: {}, token: bob }), 403);
  assertError(await api.request('DELETE', '/v1/quotas/acme', { token: bob }), 403);
  for (const [token, id] of made) assert.equal((await api.request('POST', `/v1/sandboxes/${id}/purge`, { token })).status, 204);
  await clear('/v1/quotas/acme');
  await clear('/v1/quotas/acme/ann');
  await purgeAll(api);
});

test('an administrator lists all owners, page by page, with what they have', async () => {
  const users = ['zoe', 'yan', 'xia'];
  const tokens = [];
  for (const user of users) tokens.push(await makeToken(api, { organization: 'listed', user, scopes: ORDINARY }));
  const made = await api.request('POST', '/v1/sandboxes', { json: {}, token: tokens[0].token });
  assert.equal(made.status, 201, made.text);
  await set({ running: 3 }, '/v1/quotas/listed/yan');
  const seen = [];
  for (let cursor; ;) {
    const { status, json, text } = await api.request('GET', '/v1/owners', { query: { limit: 2, cursor } });
    assert.equal(status, 200, text);
    assert.ok(json.owners.length <= 2);
    seen.push(...json.owners);
    cursor = json.next_cursor;
    if (!cursor) break;
  }
  const names = seen.map(({ organization, user }) => `${organization}/${user}`);
  assert.deepEqual(names, [...new Set(names)].sort(), 'each once, by name');
  assert.ok(names.includes('default/admin') && !names.some((name) => name.startsWith('.')), names.join());
  const listed = Object.fromEntries(seen.filter(({ organization }) => organization === 'listed').map((one) => [one.user, one]));
  assert.deepEqual(Object.keys(listed), ['xia', 'yan', 'zoe']);
  assert.deepEqual([listed.zoe.used.sandboxes, listed.xia.used.sandboxes, listed.yan.limits.running, listed.yan.is_set], [1, 0, 3, true]);
  assertError(await api.request('GET', '/v1/owners', { query: { cursor: 'nonsense' } }), 400);
  assert.match(await ok(['quota', 'ls']), /^listed\/zoe +1 +1 /m);
  assert.equal((await api.request('POST', `/v1/sandboxes/${made.json.id}/purge`, { token: tokens[0].token })).status, 204);
  await clear('/v1/quotas/listed/yan');
  for (const { id } of tokens) await api.request('DELETE', `/v1/tokens/${id}`);
});

test('defaults come from the settings, and null lifts them', async () => {
  await instance.terminate();
  await instance.start(['--quota-user', 'sandboxes=1', '--quota-organization', 'sandboxes=2']);
  await api.create();
  assertExceeded(await tryCreate(), 'sandboxes', 1, 1);
  const quota = await set({ sandboxes: null });
  assert.deepEqual([quota.limits.sandboxes, quota.is_set], [null, true]);
  await api.create();
  assertExceeded(await tryCreate(), 'sandboxes', 2, 2);
  await clear();
  await purgeAll(api);
  await instance.terminate();
  await instance.start();
  const refused = await instance.refusal(['--quota-user', 'sandboxes=many']);
  assert.notEqual(refused.code, 0);
});

test('a purge works although every quota is used up', async () => {
  const { id } = await api.create();
  await api.remove(id);
  await set({ sandboxes: 0, running: 0, creates_per_minute: 0 });
  await api.purge(id);
  await clear();
});

test('what is no quota is refused', async () => {
  for (const json of [{ sandboxes: -1 }, { sandboxes: 1.5 }, { sandboxes: '1' }, { cpu: -1 }, { memory: 'x' }, { nonsense: 1 }]) {
    assertError(await api.request('PUT', ME, { json }), 400);
  }
  assertError(await api.request('PUT', '/v1/quotas/%20x', { json: {} }), 404);
  assertError(await clear(), 404);
  await set({});
  const limits = (await api.request('GET', ME)).json.limits;
  assert.deepEqual(Object.values(limits).filter((limit) => limit !== null), []);
  await clear();
});

test('the command line shows, sets and removes them, and the audit log tells who did', async () => {
  assert.match(await ok(['quota', 'set', 'acme/ann', 'running=5', 'memory=8Gi', 'cpu=2.5', 'disk=none']), /acme\/ann +memory +8 GiB +0 B/);
  assert.match(await ok(['quota', 'show', 'acme/ann']), /acme\/ann +cpu +2\.5 +0\n/);
  await ok(['quota', 'rm', 'acme/ann']);
  assert.match(await ok(['quota', 'show']), /default\/admin +sandboxes +- +0\n/);
  assert.equal((await sandlot(['quota', 'rm', 'acme/ann'])).code, 3);
  assert.equal((await sandlot(['quota', 'set', 'a/b/c', 'cpu=1'])).code, 2);
  assert.equal((await sandlot(['quota', 'nonsense'])).code, 2);
  const [entry] = (await api.request('GET', '/v1/audit', { query: { action: 'quota.user.set' } })).json.entries;
  assert.deepEqual([entry.status, entry.detail], [200, 'acme/ann']);
});

finish();
