// SPDX-License-Identifier: Apache-2.0
// Sandboxes whose image is not there yet: who waits for it, who does not, and what becomes of them.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { busybox, image, registryServer } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { assertNothingRemains } from './lib/remains.mjs';
import { suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

const images = {};
const gates = new Map(); // by the digest that is held back
const registry = await registryServer(images, { answer: (request, response, at) => gates.get(at.split('/').at(-1))?.(response) });
const WORKERS = 8;
const { instance, api, finish } = await suite('pulls', { args: ['--registry', registry.host, '--registry-prefix', '', '--registry-plain', registry.host, '--workers', `${WORKERS}`] });
const { sandlot, ok } = commandLine(instance);
const base = busybox();

/** An image whose own layer the registry holds back until it is told; `fail` has it answer with an error instead. */
function heldBack(name, { config, files = [{ name: 'v', data: name }] } = {}) {
  const made = image([base, files], { config, compress: (data) => data });
  const { digest } = made.manifest.layers[1];
  const held = [];
  images[name] = made;
  gates.set(digest, (response) => held.push(response));
  const open = (go) => () => { gates.delete(digest); held.splice(0).forEach(go); };
  return {
    isAsked: () => held.length > 0,
    release: open((response) => response.writeHead(200, { 'content-length': made.blobs.get(digest).length }).end(made.blobs.get(digest))),
    fail: () => { gates.set(digest, (response) => response.writeHead(500).end()); held.splice(0).forEach((response) => response.writeHead(500).end()); },
  };
}

const ask = (json, { who = api, at = '', headers } = {}) => who.request('POST', `/v1/sandboxes${at}`, { json, headers });
const look = async (id, who = api) => (await who.request('GET', `/v1/sandboxes/${id}`)).json;
const jobOf = async (id) => (await api.request('GET', `/v1/jobs/${id}`)).json;
const isOver = async (id) => !['queued', 'running'].includes((await jobOf(id)).state);

/** Waits until a sandbox is no longer being created: what it is then. */
async function settled(id, who = api) {
  await until(async () => (await look(id, who)).status !== 'creating', { what: `${id} is made` });
  return look(id, who);
}

async function purge(...ids) {
  for (const id of ids) await api.purge(id);
}

/** One that is answered for before its image is there. */
async function createEarly(template, more = {}, options = {}) {
  const answer = await ask({ template, wait: false, ...more }, options);
  assert.equal(answer.status, 202, answer.text);
  assert.equal(answer.json.status, 'creating');
  assert.match(answer.json.job, /^[0-9a-z]{26}$/);
  (options.who ?? api).made.add(answer.json.id);
  return answer.json;
}

test('who does not wait is told of a sandbox that is being created, which runs when its image is there', async () => {
  const gate = heldBack('early:v1', { config: { Env: ['WHO=image'], ExposedPorts: { '8080/tcp': {} } } });
  const { id, job } = await createEarly('early:v1', { labels: { a: 'b' } });
  assert.deepEqual([(await jobOf(job)).kind, (await jobOf(job)).target], ['template', 'early:v1']);
  await until(gate.isAsked, { what: 'the layer is asked for' });
  const refused = assertError(await api.tryExec(id, { command: 'true' }), 503);
  assert.deepEqual([refused.code, refused.retryable], ['sandbox_creating', true]);
  assert.equal(assertError(await api.request('POST', `/v1/sandboxes/${id}/start`), 503).code, 'sandbox_creating');
  assert.equal((await api.request('PATCH', `/v1/sandboxes/${id}`, { json: { labels: { c: 'd' } } })).status, 200);
  assert.deepEqual((await api.request('GET', '/v1/sandboxes', { query: { status: 'creating' } })).json.sandboxes.map((one) => one.id), [id]);
  gate.release();
  const made = await settled(id);
  assert.deepEqual([made.status, made.job, made.ports, made.labels, made.error_message], ['running', null, [8080], { c: 'd' }, null]);
  assert.equal((await api.exec(id, { command: 'cat /v; echo $WHO' })).stdout, 'early:v1image\n');
  const again = await ask({ template: 'early:v1', wait: false });
  assert.deepEqual([again.status, again.json.status], [201, 'running'], 'an image that is there needs no wait');
  await purge(id, again.json.id);
});

test('a pull that fails ends as error with its reason, and a start tries again', async () => {
  const gate = heldBack('failing:v1');
  const { id, job } = await createEarly('failing:v1');
  await until(gate.isAsked, { what: 'the layer is asked for' });
  gate.fail();
  const failed = await settled(id);
  assert.equal(failed.status, 'error');
  assert.equal(failed.error_message, (await jobOf(job)).error.message);
  assert.match(failed.error_message, /answers 500/);
  assert.equal(assertError(await ask({ template: 'failing:v1' }), 503).code, 'registry_failed', 'who waits is told the same');
  gate.release();
  const asked = await api.request('POST', `/v1/sandboxes/${id}/start`);
  if (asked.status !== 200) assert.equal(assertError(asked, 503).code, 'sandbox_creating');
  assert.equal((await settled(id)).status, 'running');
  assert.equal((await api.exec(id, { command: 'cat /v' })).stdout, 'failing:v1');
  const none = await createEarly('none/such:v1');
  assert.match((await settled(none.id)).error_message, /none\/such/);
  await purge(id, none.id);
});

test('a job that is cancelled leaves no sandbox waiting; ensure makes it anew', async () => {
  const gate = heldBack('cancelled:v1');
  const { id, job } = await createEarly('cancelled:v1', { name: 'late' });
  await until(gate.isAsked, { what: 'the layer is asked for' });
  assert.equal((await api.request('POST', `/v1/jobs/${job}/cancel`)).status, 200);
  assert.match((await settled(id)).error_message, /was cancelled/);
  const body = { template: 'cancelled:v1', name: 'late' };
  gate.release();
  const ensured = await ask(body, { at: '/ensure' });
  assert.deepEqual([ensured.json.id, ensured.json.status], [id, 'running']);
  assert.equal((await api.exec(id, { command: 'cat /v' })).stdout, 'cancelled:v1');
  await purge(id);
});

test('ensure and Idempotency-Key find the one that is being created', async () => {
  const gate = heldBack('found:v1');
  const body = { template: 'found:v1', project: 'found', wait: false };
  const first = await ask(body, { at: '/ensure' });
  const second = await ask(body, { at: '/ensure' });
  assert.deepEqual([first.status, second.status, second.json.id], [202, 202, first.json.id]);
  const headers = { 'idempotency-key': 'pulls-1' };
  const keyed = await ask({ template: 'found:v1', wait: false }, { headers });
  const replayed = await ask({ template: 'found:v1', wait: false }, { headers });
  assert.deepEqual([keyed.status, replayed.status, replayed.json.id], [202, 202, keyed.json.id]);
  const waiting = ask({ template: 'found:v1', project: 'found' }, { at: '/ensure' });
  gate.release();
  assert.deepEqual([(await waiting).json.id, (await waiting).json.status], [first.json.id, 'running']);
  assert.equal((await settled(keyed.json.id)).status, 'running');
  await purge(first.json.id, keyed.json.id);
});

test('one that is being created is stopped, deleted and purged, and nothing of it stays', async () => {
  const gate = heldBack('removed:v1');
  const [stopped, deleted, purged] = [await createEarly('removed:v1'), await createEarly('removed:v1'), await createEarly('removed:v1')];
  assert.equal((await api.request('POST', `/v1/sandboxes/${stopped.id}/stop`)).json.status, 'stopped');
  assert.equal((await api.request('DELETE', `/v1/sandboxes/${deleted.id}`)).status, 204);
  await api.purge(purged.id);
  gate.release();
  await until(() => isOver(stopped.job), { what: 'the pull is over' });
  assert.equal((await look(stopped.id)).status, 'stopped', 'nobody asked for its start');
  for (const { id } of [deleted, purged]) assert.equal((await api.request('GET', `/v1/sandboxes/${id}`)).status, 404);
  assert.equal((await api.exec(stopped.id, { command: 'cat /v' })).stdout, 'removed:v1', 'a use makes it');
  await purge(stopped.id, deleted.id);
  await assertNothingRemains(instance, new Set());
});

test('a client that leaves cancels nothing', async () => {
  const gate = heldBack('left:v1');
  const request = http.request({ host: api.host, port: api.port, method: 'POST', path: '/v1/sandboxes', headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' } });
  request.on('error', () => {});
  request.end(JSON.stringify({ template: 'left:v1', name: 'left' }));
  await until(gate.isAsked, { what: 'the layer is asked for' });
  request.destroy();
  gate.release();
  const { id } = await until(async () => (await api.all()).find((one) => one.name === 'left'), { what: 'the sandbox is there' });
  assert.equal((await settled(id)).status, 'running');
  await purge(id);
});

test('a daemon that is killed in the middle goes on with it; one that is ended tells who waits', async () => {
  const gate = heldBack('killed:v1');
  const { id, job } = await createEarly('killed:v1');
  await until(gate.isAsked, { what: 'the layer is asked for' });
  await instance.crash();
  await instance.start();
  assert.deepEqual([(await look(id)).status, (await look(id)).job], ['creating', job]);
  const other = heldBack('ended:v1');
  const waiting = ask({ template: 'ended:v1' });
  await until(other.isAsked, { what: 'the one that waits has come as far as its image' });
  await instance.terminate();
  assert.equal(assertError(await waiting, 503).code, 'daemon_ending');
  other.release();
  gate.release();
  await instance.start();
  assert.equal((await settled(id)).status, 'running');
  assert.equal((await api.exec(id, { command: 'cat /v' })).stdout, 'killed:v1');
  await purge(id);
  await assertNothingRemains(instance, new Set());
});

test('a pull that ended while no daemon looked is found when one starts', async () => {
  const gate = heldBack('missed:v1');
  const { id, job } = await createEarly('missed:v1');
  await until(gate.isAsked, { what: 'the layer is asked for' });
  await instance.crash();
  const { sql } = await import('./lib/database.mjs');
  sql(instance, `UPDATE jobs SET state = 'failed', ended_at = 1, error_code = 'gone', error_kind = 'unavailable', error_message = 'the registry went away' WHERE id = '${job}'`);
  gate.release();
  await instance.start();
  const failed = await settled(id);
  assert.deepEqual([failed.status, failed.error_message], ['error', 'the registry went away']);
  await purge(id);
});

test('many that wait for an image hold no thread: their owner and others are served', async () => {
  const alice = await ownerApi(api, 'acme', 'alice');
  const bob = await ownerApi(api, 'acme', 'bob');
  const all = Array.from({ length: 4 }, (_, i) => heldBack(`slow${i}:v1`));
  // Far more than there are threads, of which an owner has a share.
  const waiting = Array.from({ length: 4 * WORKERS }, (_, i) => ask({ template: `slow${i % 4}:v1` }, { who: alice }));
  await until(() => all.every((gate) => gate.isAsked()), { what: 'all layers are asked for' });
  for (const who of [alice, bob]) {
    const mine = await within('another is created', who.create());
    assert.equal((await who.exec(mine.id, { command: 'echo served' })).stdout, 'served\n');
    await who.purge(mine.id);
  }
  all.forEach((gate) => gate.release());
  for (const { status, json, text } of await Promise.all(waiting)) {
    assert.equal(status, 201, text);
    alice.made.add(json.id);
    await alice.purge(json.id);
  }
  alice.disconnect();
  bob.disconnect();
});

test('an image by its reference is shown, changed, built again and removed by it', async () => {
  images['team/by/ref:v1'] = image([base, [{ name: 'v', data: '1' }]]);
  const reference = `${registry.host}/team/by/ref:v1`;
  const at = `/v1/templates/${encodeURIComponent(reference)}`;
  const { id } = await api.create({ template: reference });
  assert.deepEqual([(await api.request('GET', at)).json.name, (await api.request('GET', at)).json.version], [reference, 1]);
  assert.equal((await api.request('PATCH', at, { json: { env: { A: 'b' } } })).json.version, 2);
  assert.equal((await api.request('POST', `${at}/build`, { json: {} })).status, 202);
  await until(async () => (await api.request('GET', at)).json.status === 'ready', { what: 'it is built again' });
  assert.match((await api.request('GET', `${at}/log`, { query: { follow: 'false' } })).text, /fetching/);
  const exported = await api.request('GET', `${at}/archive`);
  assert.equal(exported.status, 200);
  assert.match(exported.headers['content-disposition'], /filename="[^"/:@]+"/);
  assert.equal(assertError(await api.request('DELETE', at), 409).code, 'template_in_use');
  const stranger = await ownerApi(api, 'acme', 'carol');
  assertError(await stranger.request('GET', at), 404);
  assertError(await stranger.request('DELETE', at), 404);
  stranger.disconnect();
  assertError(await api.request('PUT', `${at}/archive`, { body: Buffer.alloc(0), headers: { 'content-type': 'application/x-tar' } }), 400);
  await api.purge(id);
  assert.match(await ok(['template', 'show', reference]), /"version": 2/);
  assert.match(await ok(['template', 'log', reference]), /is ready, version 2/);
  await ok(['template', 'build', reference]);
  await ok(['template', 'rm', reference]);
  assertError(await api.request('GET', at), 404);
  for (const name of ['..%2F..%2Fv1', '%2e%2e', 'a%20b', '-x']) assertError(await api.request('GET', `/v1/templates/${name}`), 404);
});

test('the command line shows how far an image is, or does not wait; what cannot be made does not stay', async () => {
  const gate = heldBack('shown:v1');
  const id = (await ok(['create', '-t', 'shown:v1', '--no-wait'])).trim();
  assert.equal((await look(id)).status, 'creating');
  const running = sandlot(['run', '-t', 'shown:v1', '--', 'cat', '/v']);
  await until(async () => (await api.all()).length === 2, { what: 'the other sandbox is there' });
  await until(gate.isAsked, { what: 'the layer is asked for' });
  gate.release();
  const { stdout, stderr, code } = await running;
  assert.deepEqual([stdout, code], ['shown:v1', 0], stderr);
  await settled(id);
  await ok(['rm', '--purge', id]);
  for (const args of [['create', '-t', 'none/such:v1'], ['run', '-t', 'none/such:v1', '--', 'true']]) {
    const failed = await sandlot(args);
    assert.notEqual(failed.code, 0);
    assert.match(failed.stderr, /has no image none\/such/);
  }
  assert.deepEqual(await api.all(), []);
});

test('the registry closes', () => {
  registry.server.close();
  registry.server.closeAllConnections();
});

finish();
