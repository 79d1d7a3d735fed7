// SPDX-License-Identifier: Apache-2.0
// Idempotency-Key: a create that is sent again makes nothing new.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { makeToken, ORDINARY } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { ulid } from './lib/values.mjs';

const { instance, api, finish } = await suite('idempotency');

const newKey = () => crypto.randomUUID();

async function create(key, json = {}, options = {}) {
  const answer = await api.request('POST', '/v1/sandboxes', { json, headers: { 'idempotency-key': key }, ...options });
  if (answer.status === 201 && !options.token) api.made.add(answer.json.id);
  return answer;
}

test('fifty parallel creates with one key make one sandbox and get the same answer', async () => {
  const key = newKey();
  const before = (await api.all()).length;
  const answers = await Promise.all(Array.from({ length: 50 }, () => create(key, { labels: { a: 'b' } })));
  assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201]);
  assert.equal(new Set(answers.map((answer) => answer.text)).size, 1);
  assert.equal((await api.all()).length, before + 1);
  assert.equal(answers.filter((answer) => answer.headers['idempotency-replayed']).length, 49);
  await purgeAll(api);
});

test('the answer is the same later, whatever has become of the sandbox, and whatever the order of the body', async () => {
  const key = newKey();
  const first = await create(key, { labels: { a: '1', b: '2' }, private: true });
  await api.exec(first.json.id, 'true');
  await api.life(first.json.id, 'stop');
  const second = await create(key, { private: true, labels: { b: '2', a: '1' } });
  assert.equal(second.text, first.text);
  assert.equal(second.headers['idempotency-replayed'], 'true');
  await purgeAll(api);
});

test('a key that was used for another body is 422, also while the first is under way', async () => {
  const key = newKey();
  await create(key, { labels: { a: 'b' } });
  const other = await create(key, { labels: { a: 'c' } });
  assertError(other, 422);
  assert.equal(other.json.error.code, 'idempotency_key_reused');
  const fresh = newKey();
  const both = await Promise.all(Array.from({ length: 10 }, (_, i) => create(fresh, { labels: { n: String(i % 2) } })));
  assert.deepEqual([...new Set(both.map((answer) => answer.status))].sort(), [201, 422]);
  assert.equal(new Set(both.filter((answer) => answer.status === 201).map((answer) => answer.json.id)).size, 1);
  await purgeAll(api);
});

test('an error is not remembered', async () => {
  const key = newKey();
  const project = `project-${ulid()}`;
  const { id } = await api.create({ project });
  assertError(await create(key, { project }), 409);
  await api.purge(id);
  assert.equal((await create(key, { project })).status, 201);
  await purgeAll(api);
});

test('parallel creates with one key that fail all fail with the same error', async () => {
  const project = `project-${ulid()}`;
  await api.create({ project });
  const key = newKey();
  const answers = await Promise.all(Array.from({ length: 20 }, () => create(key, { project })));
  assert.deepEqual([...new Set(answers.map((answer) => `${answer.status} ${answer.json.error.code}`))], ['409 project_has_sandbox']);
  await purgeAll(api);
});

test('a key is its owner\'s', async () => {
  const key = newKey();
  const { token } = await makeToken(api, { organization: 'acme', user: 'ann', scopes: ORDINARY });
  const mine = await create(key);
  const theirs = await create(key, {}, { token });
  assert.equal(theirs.status, 201);
  assert.notEqual(theirs.json.id, mine.json.id);
  assert.equal((await api.request('POST', `/v1/sandboxes/${theirs.json.id}/purge`, { token })).status, 204);
  await purgeAll(api);
});

test('the answer survives a crash of the daemon', async () => {
  const key = newKey();
  const first = await create(key);
  await instance.crash();
  await instance.start();
  assert.equal((await create(key)).text, first.text);
  assert.equal((await api.all()).length, 1);
  await purgeAll(api);
});

test('a create that was done but never answered is found, not done again', async () => {
  const key = newKey();
  const first = await create(key);
  await instance.terminate();
  sql(instance, `UPDATE replays SET answer = NULL WHERE key = '${key}'`); // as if it had been killed before
  await instance.start();
  const second = await create(key);
  assert.deepEqual([second.status, second.json.id], [201, first.json.id]);
  assert.equal((await api.all()).length, 1);
  await purgeAll(api);
});

test('a create that was cut short is done by the next try, under the same id', async () => {
  const key = newKey();
  const first = await create(key);
  await purgeAll(api);
  await instance.terminate();
  sql(instance, `UPDATE replays SET answer = NULL WHERE key = '${key}'`);
  await instance.start();
  const second = await create(key);
  assert.deepEqual([second.status, second.json.id], [201, first.json.id]);
  assert.equal((await api.get(first.json.id)).status, 'running');
  await purgeAll(api);
});

test('what is no key is refused', async () => {
  for (const key of ['', ' ', 'a b', 'x'.repeat(256)]) assertError(await create(key), 400);
  assert.equal((await create('x'.repeat(255))).status, 201);
  await purgeAll(api);
});

finish();
