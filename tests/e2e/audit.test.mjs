// SPDX-License-Identifier: Apache-2.0
// The audit log: who did what, that no request escapes it, that it survives, and that tampering shows.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { commandLine } from './lib/cli.mjs';
import { sql, sqlWhileStopped } from './lib/database.mjs';
import { makeToken, ORDINARY } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { ulid } from './lib/values.mjs';

const { instance, api, finish } = await suite('audit');
const { sandlot } = commandLine(instance);

const entries = async (query = {}) => (await api.request('GET', '/v1/audit', { query: { limit: 1000, ...query } })).json.entries;
const report = async (query = {}) => (await api.request('GET', '/v1/audit/verify', { query })).json;
const newest = async (query) => (await entries(query))[0];

const TRIGGERS = ['audit_grows_at_its_end', 'audit_is_not_changed', 'audit_is_not_cut'];

/** As somebody who knows about the triggers. */
const tamper = (text, also) => sqlWhileStopped(instance, `${TRIGGERS.map((name) => `DROP TRIGGER IF EXISTS ${name};`).join('')}${text}`, also);

test('a request that changes something is in the log before it is answered: who, what, which, from where, how it ended', async () => {
  const answer = await api.request('POST', '/v1/sandboxes', { json: {}, headers: { 'x-request-id': 'audit-test-1' } });
  const { id } = answer.json;
  api.made.add(id);
  const entry = await newest({ action: 'sandbox.create' });
  assert.deepEqual(
    { ...entry, sequence: 0, at: '', hash: '' },
    { sequence: 0, at: '', organization: 'default', user: 'admin', token: 'admin', action: 'sandbox.create', object: id, status: 201, code: null, from: '127.0.0.1', request_id: 'audit-test-1', detail: '', hash: '' },
  );
  assert.match(entry.hash, /^[0-9a-f]{64}$/);
  assert.ok(Math.abs(Date.parse(entry.at) - Date.now()) < 60_000);
  await api.purge(id);
  assert.equal((await newest({ object: id })).action, 'sandbox.purge');
});

test('reads are not in the log, and every kind of change is', async () => {
  const { id } = await api.create();
  const before = (await newest()).sequence;
  await api.get(id);
  await api.all();
  assert.equal((await newest()).sequence, before);
  await api.exec(id, 'true');
  await api.put(id, '/tmp/a file', 'x');
  await api.request('POST', `/v1/sandboxes/${id}/files/mkdir`, { json: { path: '/tmp/dir' } });
  await api.request('POST', `/v1/sandboxes/${id}/files/move`, { json: { from: '/tmp/a file', to: '/tmp/b' } });
  await api.files('DELETE', id, '/tmp/b');
  await api.patch(id, { labels: { a: 'b' } });
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await api.remove(id);
  const made = (await entries({ object: id })).filter((entry) => entry.sequence > before).reverse();
  assert.deepEqual(made.map(({ action, status, detail }) => [action, status, detail.replace(/argv=.*/, 'argv')]), [
    ['exec.run', 200, 'argv'],
    ['file.write', 201, 'path=/tmp/a file'],
    ['file.mkdir', 201, 'path=/tmp/dir'],
    ['file.move', 200, 'from=/tmp/a file to=/tmp/b'],
    ['file.delete', 204, 'path=/tmp/b'],
    ['sandbox.update', 200, ''],
    ['sandbox.stop', 200, ''],
    ['sandbox.start', 200, ''],
    ['sandbox.delete', 204, ''],
  ]);
  await api.purge(id);
});

test('a command is in the log as a hash, not as its text, unless the operator says otherwise', async () => {
  const { id } = await api.create();
  await api.exec(id, { argv: ['echo', 'a secret'] });
  const hash = crypto.createHash('sha256').update('echo\0a secret\0').digest('hex');
  assert.equal((await newest({ action: 'exec.run' })).detail, `argv=sha256:${hash}`);
  await instance.terminate();
  await instance.start(['--audit-exec', 'text']);
  await api.exec(id, { argv: ['echo', 'no secret'] });
  assert.equal((await newest({ action: 'exec.run' })).detail, 'argv=echo no secret');
  await instance.terminate();
  await instance.start();
  assert.match((await instance.refusal(['--audit-exec', 'loud'])).said, /audit-exec must be hash or text/);
  await api.purge(id);
});

test('what was refused is in the log too, with its reason', async () => {
  const id = ulid();
  assertError(await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { argv: ['true'] } }), 404);
  const entry = await newest({ object: id });
  assert.deepEqual([entry.action, entry.status, entry.code], ['exec.run', 404, 'sandbox_not_found']);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { nonsense: 1 } }), 400);
  assert.equal((await newest({ action: 'sandbox.create' })).status, 400);
});

test('wrong tokens are in the log, but not without end, and without what they were', async () => {
  const wrong = `slt_${crypto.randomBytes(20).toString('hex')}`;
  for (let i = 0; i < 50; i++) {
    await Promise.all(Array.from({ length: 10 }, () => api.request('GET', '/v1/sandboxes', { token: i % 2 ? wrong : null })));
  }
  const refused = await entries({ action: 'authenticate' });
  assert.ok(refused.length > 0 && refused.length < 400, `${refused.length} entries`);
  assert.deepEqual([refused[0].status, refused[0].user, refused[0].from], [401, null, '127.0.0.1']);
  assert.ok(!JSON.stringify(await entries()).includes(wrong));
});

test('an acknowledged change is in the log after kill -9', async () => {
  const { id } = await api.create();
  for (let i = 0; i < 20; i++) await api.patch(id, { labels: { n: String(i) } });
  await instance.crash();
  await instance.start();
  const made = await entries({ object: id });
  assert.equal(made.filter((entry) => entry.action === 'sandbox.update').length, 20);
  assert.deepEqual((await report()).flaw, null);
  await api.purge(id);
});

test('pages follow one another without a gap', async () => {
  const all = await entries();
  const paged = [];
  for (let cursor; ;) {
    const page = (await api.request('GET', '/v1/audit', { query: { limit: 7, cursor } })).json;
    paged.push(...page.entries);
    cursor = page.next_cursor;
    if (!cursor || paged.length >= all.length) break;
  }
  assert.deepEqual(paged.slice(0, all.length).map((entry) => entry.sequence), all.map((entry) => entry.sequence));
  for (const query of [{ limit: 0 }, { limit: 1001 }, { cursor: 'x' }, { cursor: '-1' }]) {
    assertError(await api.request('GET', '/v1/audit', { query }), 400);
  }
  assertError(await api.request('GET', '/v1/audit/verify', { query: { head: '12:zz' } }), 400);
});

test('an organization reads its own log and no other, and does not verify', async () => {
  const { token, id: tokenId } = await makeToken(api, { organization: 'acme', user: 'ann', scopes: ORDINARY });
  const { token: colleague } = await makeToken(api, { organization: 'acme', user: 'bob', scopes: ['read'] });
  assertError(await api.request('POST', '/v1/sandboxes', { json: { nonsense: 1 }, token }), 400);
  for (const reader of [token, colleague]) {
    const seen = (await api.request('GET', '/v1/audit', { token: reader })).json.entries;
    assert.deepEqual(seen.map((entry) => [entry.organization, entry.user, entry.action]), [['acme', 'ann', 'sandbox.create']]);
  }
  assertError(await api.request('GET', '/v1/audit', { token, query: { organization: 'default' } }), 403);
  assertError(await api.request('GET', '/v1/audit/verify', { token }), 403);
  assert.deepEqual([(await newest({ organization: 'acme' })).user, (await newest({ organization: 'acme' })).token], ['ann', tokenId]);
  assert.equal((await newest({ action: 'token.create' })).user, 'admin');
  assertError(await api.request('POST', '/v1/sandboxes', { json: {}, token: colleague }), 403);
  const denied = await newest({ organization: 'acme', user: 'bob' });
  assert.deepEqual([denied.action, denied.status, denied.code], ['sandbox.create', 403, 'missing_scope']);
});

test('the command line lists and verifies', async () => {
  const list = await sandlot(['audit', 'ls', '-n', '3']);
  assert.equal(list.code, 0, list.stderr);
  assert.equal(list.stdout.trim().split('\n').length, 4);
  const verified = await sandlot(['audit', 'verify']);
  assert.equal(verified.code, 0, verified.stderr);
  assert.match(verified.stdout, /^the audit log is whole: \d+ entries\nhead {2}\d+:[0-9a-f]{64}\n$/);
  assert.equal((await sandlot(['audit', 'nonsense'])).code, 2);
});

test('SQL on the file cannot change or delete an entry', async () => {
  for (const text of ['UPDATE audit SET status = 0', 'DELETE FROM audit', 'DELETE FROM audit_anchor', 'UPDATE audit_anchor SET sequence = 1']) {
    assert.throws(() => sql(instance, text), /audit log/);
  }
  assert.equal((await report()).ok, true);
});

test('a changed entry is named', async () => {
  const { head } = await report();
  const bad = Number(head.split(':')[0]) - 5;
  await tamper(`CREATE TABLE saved AS SELECT * FROM audit; UPDATE audit SET user = 'somebody else' WHERE sequence = ${bad}`);
  const found = await report();
  assert.deepEqual([found.ok, found.flaw], [false, { kind: 'changed', sequence: bad }]);
  const verified = await sandlot(['audit', 'verify']);
  assert.equal(verified.code, 1);
  assert.match(verified.stdout, new RegExp(`BROKEN: entry ${bad} `));
  await tamper(`UPDATE audit SET user = (SELECT user FROM saved WHERE saved.sequence = audit.sequence) WHERE sequence = ${bad}; DROP TABLE saved`);
  assert.equal((await report({ head })).ok, true);
});

test('entries that were deleted in the middle, and a clever cut of the end, are found', async () => {
  const { head } = await report();
  const last = Number(head.split(':')[0]);
  await tamper(`CREATE TABLE saved AS SELECT * FROM audit; DELETE FROM audit WHERE sequence IN (${last - 4}, ${last - 3})`);
  assert.deepEqual((await report()).flaw, { kind: 'missing', sequence: last - 4 });
  const cut = `DELETE FROM audit WHERE sequence >= ${last - 4}; UPDATE sqlite_sequence SET seq = ${last - 5} WHERE name = 'audit'`;
  await tamper(cut);
  assert.equal((await report({ head })).ok, true, 'what lies in the ring comes back');
  await tamper(cut, () => fs.rmSync(path.join(instance.dataDir, 'state/audit.ring')));
  assert.deepEqual((await report()).flaw, null, 'a rewritten end is only found by who noted the head');
  assert.equal((await report({ head })).ok, false);
});

finish();
