// SPDX-License-Identifier: Apache-2.0
// Answers have a bound: pages in bytes as well as in entries, commands in lists, and all that lies in the daemon's memory
// for an owner who does not read it.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError, queryString } from './lib/client.mjs';
import { IS_SANITIZED } from './lib/instance.mjs';
import { ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { Processes } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { PATIENCE, until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('answers', { args: ['--answer-memory', '64Mi', '--exec-output-max', '8Mi'] });
const { ok } = commandLine(instance);
const { id } = await api.create({ resources: { disk: '512Mi' } });
const ps = new Processes(api);
const PAGE_MAX = MI + 4096; // and what is around the entries
const FILES = 3000;

const DEEP = `/workspace/${Array(12).fill('d'.repeat(250)).join('/')}`;

await api.out(id, { argv: ['python3', '-c', `import os
for part in "${DEEP}".split("/")[2:]:
    os.mkdir(part); os.chdir(part)
for i in range(${FILES}): os.mknod("%04d" % i + "n" * 251)`] });

/** Sends a request and reads nothing of its answer but the beginning. */
async function leaveUnread(method, target, { body, token = api.token } = {}) {
  const text = body ? JSON.stringify(body) : '';
  const socket = net.connect({ port: api.port, host: '127.0.0.1' });
  const begun = new Promise((resolve, reject) => {
    socket.once('data', (chunk) => { socket.pause(); resolve(chunk.toString('latin1')); });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed before an answer')));
  });
  socket.write(`${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nX-API-Key: ${token}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
  const head = await within('the beginning of an answer', begun);
  socket.on('error', () => {});
  return { socket, status: Number(head.split(' ')[1]) };
}

// First, because what answers took before is used again.
test('what large answers took is given back soon after the last of them', { skip: IS_SANITIZED && 'its heap is not that of the C library' }, async () => {
  const resident = () => proc.residentBytes(instance.daemon.pid);
  const list = () => api.request('GET', '/v1/audit', { query: { limit: 1000 } });
  const eachRefused = async () => { for (let i = 0; i < 125; i++) await api.request('DELETE', '/v1/tokens/none'); };
  await Promise.all(Array.from({ length: 8 }, eachRefused));
  await until(async () => (await list()).json.entries.length === 1000, { what: 'a long list' });
  const before = resident();
  let most = before;
  for (let round = 0; round < 3; round++) {
    await Promise.all(Array.from({ length: 32 }, list));
    most = Math.max(most, resident());
  }
  assert.ok(most - before > 16 * MI, `not proven: ${((most - before) / MI).toFixed(1)} MiB more`);
  await until(() => resident() < before + (most - before) / 3, { timeout_ms: 20_000 * PATIENCE, what: 'two thirds of it are given back' });
});

test('a listing of names as long as they can be stays below the bound and has everything once', async () => {
  const found = [];
  let cursor;
  let pages = 0;
  do {
    const answer = await api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: DEEP, limit: FILES, cursor } });
    assert.equal(answer.status, 200, answer.text.slice(0, 300));
    assert.ok(answer.body.length <= PAGE_MAX, `${answer.body.length} bytes`);
    found.push(...answer.json.entries.map((entry) => entry.name.slice(0, 4)));
    cursor = answer.json.next_cursor;
    pages++;
  } while (cursor);
  assert.deepEqual(found, Array.from({ length: FILES }, (_, i) => String(i).padStart(4, '0')));
  assert.ok(pages > 5, `not proven: ${pages} pages`);
});

test('forty listings that nobody reads cost the daemon little', async () => {
  const before = proc.residentBytes(instance.daemon.pid);
  const target = `/v1/sandboxes/${id}/files/list${queryString({ path: DEEP, limit: FILES })}`;
  const unread = [];
  for (let i = 0; i < 40; i++) unread.push(await leaveUnread('GET', target));
  const grown = proc.residentBytes(instance.daemon.pid) - before;
  assert.ok(unread.some(({ status }) => status === 200));
  for (const { status } of unread) assert.ok([200, 429].includes(status), String(status));
  if (!IS_SANITIZED) assert.ok(grown < 96 * MI, `${(grown / MI).toFixed(1)} MiB more`);
  for (const { socket } of unread) socket.destroy();
});

test('sandboxes with much to say about themselves share no page that is larger than the bound', async () => {
  const labels = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`l${i}`, '"'.repeat(250)]));
  const allow = Array.from({ length: 200 }, (_, i) => `a${i}.${Array(3).fill('b'.repeat(60)).join('.')}.example`);
  const made = [];
  for (let i = 0; i < 20; i++) made.push((await api.create({ labels, network: { mode: 'allowlist', allow } })).id);
  const found = [];
  let cursor;
  let pages = 0;
  do {
    const answer = await api.request('GET', '/v1/sandboxes', { query: { limit: 1000, cursor } });
    assert.ok(answer.body.length <= PAGE_MAX, `${answer.body.length} bytes`);
    found.push(...answer.json.sandboxes.map((sandbox) => sandbox.id));
    cursor = answer.json.next_cursor;
    pages++;
  } while (cursor);
  assert.deepEqual(found.sort(), [id, ...made].sort());
  assert.ok(pages > 1, 'not proven: all fit on one page');
  for (const one of made) await api.purge(one);
});

test('a list has the beginning of a long command, a process more of it, and pages have each once', async () => {
  const long = Array.from({ length: 9 }, (_, i) => String(i).repeat(100_000));
  const started = [];
  for (let i = 0; i < 12; i++) started.push(await ps.start(id, { argv: ['true', 'x', ...long] }));
  for (const { id: p } of started) await ps.wait(id, p);
  const answer = await ps.tryList(id);
  assert.equal(answer.status, 200);
  assert.ok(answer.body.length < 100_000, `${answer.body.length} bytes`);
  for (const process of answer.json.processes) {
    assert.equal(process.command_truncated, true);
    assert.deepEqual(process.argv.slice(0, 2), ['true', 'x']);
    assert.ok(long[0].startsWith(process.argv[2]) && process.argv.length === 3, `${process.argv.length}`);
  }
  const whole = await ps.tryGet(id, started[0].id);
  assert.ok(whole.body.length < 100_000 && whole.body.length > 50_000, `${whole.body.length} bytes`);
  assert.equal(whole.json.process.command_truncated, true);

  const found = [];
  let cursor;
  do {
    const page = await ps.tryList(id, { limit: 5, cursor });
    assert.ok(page.json.processes.length <= 5);
    found.push(...page.json.processes.map((process) => process.id));
    cursor = page.json.next_cursor;
  } while (cursor);
  assert.deepEqual(found, started.map((process) => process.id));
  for (const query of [{ limit: 0 }, { limit: 1001 }, { cursor: 'p1' }, { cursor: '-1' }]) assertError(await ps.tryList(id, query), 400);
  assert.deepEqual((await ok(['ps', '-aq', id])).trim().split('\n'), found);
});

test('a short command is told whole', async () => {
  const { id: p } = await ps.start(id, 'echo short');
  await ps.wait(id, p);
  const listed = (await ps.list(id)).find((process) => process.id === p);
  assert.deepEqual([listed.command, listed.command_truncated], ['echo short', false]);
  assert.deepEqual(listed, await ps.get(id, p));
});

test('who reads nothing is refused more, alone, and until the answers are gone', async () => {
  const bob = await ownerApi(api, 'acme', 'bob');
  const big = { body: { argv: ['head', '-c', '7000000', '/dev/zero'] } };
  const unread = [];
  const target = `/v1/sandboxes/${id}/exec`;
  await until(async () => {
    const one = await leaveUnread('POST', target, big);
    unread.push(one);
    return one.status === 429;
  }, { what: 'a refusal' });
  assert.ok(unread.length > 1 && unread.length < 12, `${unread.length} answers`);
  const refused = await api.request('GET', `/v1/sandboxes/${id}`);
  assertError(refused, 429);
  assert.equal(refused.json.error.code, 'too_much_unread');
  assert.ok(refused.json.error.retryable && Number(refused.headers['retry-after']) > 0);
  assertError(await api.request('PUT', '/v1/quotas/default/nobody', { json: {} }), 429);
  assert.equal((await api.verb(id, 'stop')).status, 200, 'what has a short answer and may set matters right is served');
  assert.equal((await bob.request('GET', '/v1/sandboxes')).status, 200, 'others are served');
  assert.equal((await bob.request('GET', '/openapi.json', { token: '' })).status, 200);
  for (const { socket } of unread) socket.destroy();
  await until(async () => (await api.request('GET', `/v1/sandboxes/${id}`)).status === 200, { what: 'there is room again' });
  bob.disconnect();
});

finish();
