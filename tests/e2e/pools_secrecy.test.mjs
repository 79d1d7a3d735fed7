// SPDX-License-Identifier: Apache-2.0
// Sandboxes of a pool that serves everybody: nothing of one owner is visible to the next, neither beside him, nor in the
// one that takes the place of his, nor through the API. What looks for traces is shown to find each of them first.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('pools_secrecy', { args: ['--pool', 'host=1', '--pool-reserve', '0', '--memory-reserve', '0'], width: 4 });

const TRACES = fs.readFileSync(new URL('programs/traces.py', import.meta.url), 'utf8');
const WORD = `trace${process.pid}word`;
const BACKWARDS = [...WORD].reverse().join('');

const pool = async () => (await api.request('GET', '/v1/pools')).json.pools.find(({ template }) => template === 'host');
const full = () => until(async () => { const one = await pool(); return one.ready === 1 && one.warming === 0 && one; }, { what: 'one waits' });
const waiting = () => sql(instance, 'SELECT id FROM pooled WHERE state = 1').trim();
/** A create that is given the sandbox that waits. */
async function claim(who, body = {}) {
  await full();
  const waits = waiting();
  const made = await who.create(body);
  assert.equal(made.id, waits, 'it waited');
  return made.id;
}
const firstUid = async (who, id) => (await who.out(id, 'cat /proc/self/uid_map')).trim().split(/\s+/)[1];
/** What of the word is there, as root of the sandbox sees it, and its user, who alone may look into the user's processes. */
async function look(who, id) {
  const found = {};
  for (const user of ['root', 'sandbox']) {
    const answer = await who.exec(id, { argv: ['python3', '-c', TRACES, 'look', BACKWARDS], user, timeout_ms: 120_000 });
    assert.equal(answer.exit_code, 0, answer.stderr);
    for (const [kind, places] of Object.entries(JSON.parse(answer.stdout))) (found[kind] ??= []).push(...places);
  }
  return found;
}

/** All that the API tells an owner, as text. */
async function all(who, id) {
  const paths = ['', '/processes', '/network', '/ports', '/stats', '/contexts', '/files/list?path=/workspace', '/processes/p1', '/processes/p1/output?follow=false', '/processes/p2/output?follow=false']
    .map((each) => `/v1/sandboxes/${id}${each}`);
  const lists = ['/v1/sandboxes', '/v1/executions', '/v1/snapshots', '/v1/secrets', '/v1/projects', '/v1/functions', '/v1/templates', '/v1/audit', '/v1/jobs', '/v1/quotas', '/v1/launches', '/v1/tokens'];
  const answers = await Promise.all([...paths, ...lists].map((each) => who.request('GET', each)));
  assert.ok(answers.filter(({ status }) => status === 200).length > lists.length, answers.map(({ status }) => status).join());
  return answers.map(({ text }) => text).join('\n');
}

const alice = await ownerApi(api, 'alice', 'first');
const bob = await ownerApi(api, 'bob', 'second');

test('nothing of one owner is visible to the next: files, environment, keys, shared memory, processes, logs', async () => {
  const first = await claim(alice, { name: `of-${WORD}`, project: `project-${WORD}`, env: { TRACE: WORD }, labels: { trace: WORD }, network: { mode: 'allowlist', allow: [`${WORD}.example.org`] } });
  const started = await alice.request('POST', `/v1/sandboxes/${first}/exec`, { json: { argv: ['python3', '-c', TRACES, 'leave', BACKWARDS], background: true } });
  assert.equal(started.status, 201, started.text);
  const printed = async () => (await alice.request('GET', `/v1/sandboxes/${first}/processes/${started.json.process.id}/output?follow=false`)).text;
  await until(async () => (await printed()).includes(`printed ${WORD}`), { what: 'the traces are there' });
  await alice.exec(first, { command: `for d in /root /etc /run /opt /usr/local /var/lib; do echo ${WORD} > $d/by-root; done; curl -s http://${WORD}.refused.example.org/ || true`, user: 'root' });
  const context = await alice.request('POST', `/v1/sandboxes/${first}/contexts`, { json: { language: 'python' } });
  const ran = await alice.request('POST', `/v1/sandboxes/${first}/executions`, { json: { context_id: context.json.id, code: `kept = "${WORD}"; print(kept); kept` } });
  assert.equal(ran.json.result, WORD);

  // Who owns them finds them all, so that to find none means something; keys nobody may have.
  const own = await look(alice, first);
  const kinds = ['attributes', 'descriptors', 'environment', 'files', 'message queue', 'port', 'process cmdline', 'process environ', 'sockets', 'system v msg', 'system v sem', 'system v shm'];
  assert.deepEqual(Object.keys(own).sort(), kinds, JSON.stringify(own));
  assert.ok(own.files.length > 10, own.files.join());
  assert.ok((await all(alice, first)).includes(WORD));

  const second = await claim(bob);
  assert.deepEqual(await look(bob, second), {}, 'of one that waited while the first had his');
  const range = await firstUid(alice, first);
  await alice.purge(first);
  // The place on the host that was the first's is taken again: the same users, and what is pooled of namespaces and disks.
  const others = [];
  await until(async () => {
    const other = await claim(bob);
    others.push(other);
    assert.deepEqual(await look(bob, other), {}, 'of one that was made after the first was gone');
    return await firstUid(bob, other) === range;
  }, { what: 'one has the place of the first' });
  assert.deepEqual(await look(bob, second), {});
  for (const id of [second, others.at(-1)]) assert.ok(!(await all(bob, id)).includes(WORD));
  for (const id of [second, ...others]) await bob.purge(id);
});

test('what waits has nothing of those who came before, on disk or in the database', async () => {
  await full();
  const id = waiting();
  const columns = sql(instance, `SELECT * FROM sandboxes WHERE id = '${id}'`);
  assert.ok(!columns.includes(WORD), columns);
  const logs = path.join(instance.dataDir, 'state/logs');
  const files = fs.readdirSync(logs, { recursive: true }).map((name) => path.join(logs, name)).filter((name) => fs.statSync(name).isFile());
  assert.deepEqual(files.filter((name) => fs.readFileSync(name).includes(WORD)), [], 'no log of what was purged is left');
  assertError(await bob.request('GET', `/v1/sandboxes/${id}`), 404);
});

test('each way round, and with one owner after another of the same organization', async () => {
  const carol = await ownerApi(api, 'alice', 'third');
  for (const [one, next] of [[bob, alice], [alice, carol]]) {
    const first = await claim(one, { env: { TRACE: WORD } });
    await one.out(first, `echo ${WORD} > /workspace/left; echo ${WORD} > /tmp/left; ipcmk -M 4096 >/dev/null`);
    const second = await claim(next);
    assert.deepEqual(await look(next, second), {});
    assertError(await next.request('GET', `/v1/sandboxes/${first}`), 404);
    assertError(await next.request('POST', `/v1/sandboxes/${first}/exec`, { json: { command: 'true' } }), 404);
    await one.purge(first);
    await next.purge(second);
  }
});

finish();
