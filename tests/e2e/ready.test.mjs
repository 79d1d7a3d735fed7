// SPDX-License-Identifier: Apache-2.0
// Ready checks: a sandbox says when it is ready, by a command or a port that its template names.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('ready', { args: ['--ready-timeout', '60'], width: 4 });
const { sandlot } = commandLine(instance);

async function put(name, options) {
  const made = await api.request('PUT', `/v1/templates/${name}/archive`, { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(made.status, 200, made.text);
  const answer = await api.request('PATCH', `/v1/templates/${name}`, { json: options });
  assert.equal(answer.status, 200, answer.text);
}
const untilReady = (id, is = true) => until(async () => (await api.get(id)).ready === is, { what: `ready is ${is}` });

test('a sandbox without a check is ready as soon as it runs, and not when it is stopped', async () => {
  const made = await api.create();
  assert.equal(made.ready, true);
  assert.equal((await api.life(made.id, 'stop')).ready, false);
  assert.equal((await api.all()).find(({ id }) => id === made.id).ready, false);
  assert.equal((await api.life(made.id, 'start')).ready, true);
});

test('with a command it is ready when that succeeds; the create does not wait for it, and an event tells', async () => {
  await put('by-command', { ready: { command: 'test -e /workspace/up' } });
  const { id, status, ready } = await api.create({ template: 'by-command' });
  assert.deepEqual([status, ready], ['running', false]);
  const events = await api.stream('GET', `/v1/sandboxes/${id}/events`);
  const waited = sandlot(['wait', id, '--ready']);
  await api.put(id, '/workspace/up', '');
  for await (const { event } of events.events()) if (event === 'sandbox.ready') break;
  events.close();
  assert.equal((await api.get(id)).ready, true);
  assert.equal((await waited).code, 0);
  const answer = await sandlot(['--json', 'wait', id, '--ready']);
  assert.equal(JSON.parse(answer.stdout).ready, true);
});

test('with a port it is ready when that is listened on; each start asks anew, and so does the next daemon', async () => {
  await put('by-port', { ready: { port: 8080 }, start: [{ name: 'web', command: 'while ! test -e /workspace/go; do sleep 0.05; done; exec busybox httpd -f -p 8080' }] });
  const { id, ready } = await api.create({ template: 'by-port' });
  assert.equal(ready, false);
  await api.put(id, '/workspace/go', '');
  await untilReady(id);
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await untilReady(id);
  await instance.crash();
  await instance.start();
  await untilReady(id);
  await api.out(id, 'rm /workspace/go');
  await api.life(id, 'stop');
  assert.equal((await api.life(id, 'start')).ready, false);
});

test('one that does not become ready is left as it is; who waits is told', async () => {
  await put('never', { ready: { command: 'sleep 0.1; false' } });
  const { id } = await api.create({ template: 'never' });
  const gaveUp = await sandlot(['wait', id, '--ready', '--timeout', '1s']);
  assert.notEqual(gaveUp.code, 0);
  assert.match(gaveUp.stderr, /has not become ready/);
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  await api.life(id, 'stop');
  const stopped = await sandlot(['wait', id, '--ready']);
  assert.match(stopped.stderr, /is stopped/);
  assert.match((await sandlot(['wait', id])).stderr, /name a process, or say --ready/);
});

test('a command as a ready check needs the scope that runs commands', async () => {
  const admin = await ownerApi(api, 'acme', 'ready');
  const few = await ownerApi(api, 'acme', 'ready', ['read', 'manage']);
  const made = await admin.request('PUT', '/v1/templates/mine/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(made.status, 200, made.text);
  assertError(await few.request('PATCH', '/v1/templates/mine', { json: { ready: { command: 'true' } } }), 403);
  await admin.request('DELETE', '/v1/templates/mine');
});

finish();
