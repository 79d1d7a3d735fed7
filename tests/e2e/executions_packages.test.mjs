// SPDX-License-Identifier: Apache-2.0
// Executions and functions without a sandbox that need something first: packages, by real pip and npm against a server of
// our own, and images of a registry that takes its time.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { busybox, image, python, registryServer } from './lib/images.mjs';
import { packageServer } from './lib/packages.mjs';
import { assertNothingRemains } from './lib/remains.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { until } from './lib/wait.mjs';

const server = await packageServer();
/** While `held` is a list, the registry keeps what it is asked for in it. */
let held = null;
const registry = await registryServer({ 'snake:1': image([tar(python()), busybox()], { config: { Env: ['PATH=/bin'] } }), 'slow:1': image([busybox()]) }, {
  answer: (request, response, pathname) => {
    if (!held || !pathname.includes('/manifests/')) return false;
    held.push(() => response.writeHead(404).end('{"errors":[]}'));
    return true;
  },
});
after(() => { server.close(); registry.close(); registry.server.closeAllConnections(); });
const { instance, api, finish } = await suite('executions_packages', { args: [...server.args, '--registry-plain', registry.host], width: 4 });

const run = (body, query) => api.request('POST', '/v1/executions', { json: body, query });
async function result(body) {
  const answer = await run(body);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.status, 'succeeded', answer.text);
  return answer.json.result;
}
const over = async (id) => (await api.request('GET', `/v1/executions/${id}`, { query: { wait_ms: '60000' } })).json;

const PYTHON = { language: 'python', code: 'import tiny_one\ndef handler(event):\n    return [tiny_one.word, event]', event: 7, dependencies: { python: ['tiny-one'] } };
const NODE = { language: 'javascript', code: 'const two = require("tiny-two");\nexports.handler = async (event) => [two.word, event];', event: 8, dependencies: { node: ['tiny-two'] } };

test('code finds the packages that it was asked for with, in both languages, and by the shell', async () => {
  assert.deepEqual(await result(PYTHON), ['one 1.1.0', 7]);
  assert.deepEqual(await result(NODE), ['two 2.1.0', 8]);
  assert.deepEqual(await result({ language: 'shell', code: 'handler() { tiny-one-tool > $RESULT; }', dependencies: { python: ['tiny-one'] } }), 'one 1.1.0');
  assert.deepEqual(await result({ ...PYTHON, dependencies: { python: ['tiny-one==1.0.0'] } }), ['one 1.0.0', 7]);
});

test('the next execution has them from the cache, and without a network', async () => {
  await server.unasked(async () => {
    assert.deepEqual(await result(PYTHON), ['one 1.1.0', 7]);
    assert.deepEqual(await result({ ...NODE, network: { mode: 'none' } }), ['two 2.1.0', 8]);
  });
});

test('one without them does not find them', async () => {
  const { json } = await run({ language: 'python', code: 'import tiny_one' });
  assert.deepEqual([json.status, json.error.type], ['failed', 'ModuleNotFoundError']);
});

test('a function has its packages in each call, and a retry has them too', async () => {
  const put = await api.request('PUT', '/v1/functions/packs', { json: { language: PYTHON.language, code: PYTHON.code, dependencies: PYTHON.dependencies } });
  assert.equal(put.status, 200, put.text);
  for (let i = 0; i < 2; i++) {
    const called = await api.request('POST', '/v1/functions/packs/invoke', { json: i });
    assert.deepEqual([called.status, called.json], [200, ['one 1.1.0', i]], called.text);
    const again = (await api.request('POST', `/v1/executions/${called.headers['sandlot-execution']}/retry`)).json;
    assert.deepEqual([again.status, again.result], ['succeeded', ['one 1.1.0', i]]);
  }
});

test('packages that cannot be had are said, and leave nothing', async () => {
  const body = { language: 'python', code: '1', dependencies: { python: ['nothere-at-all'] } };
  const error = assertError(await run(body), 422);
  assert.equal(error.code, 'dependencies_failed', JSON.stringify(error));
  assert.match(error.message, /nothere-at-all/);
});

test('an asynchronous one is answered while its packages come, runs when they are there, and can be cancelled before', async () => {
  await server.hold(async (isAsked) => {
    const body = { language: 'javascript', code: 'exports.handler = () => require("held-package/package.json").version;', dependencies: { node: ['held-package'] }, async: true };
    const [first, second] = [await run(body), await run({ ...body, code: 'exports.handler = () => 2;' })];
    for (const { status, json, text } of [first, second]) assert.deepEqual([status, json.status, json.started_at ?? null], [202, 'queued', null], text);
    await isAsked();
    assert.equal((await api.request('GET', `/v1/executions/${first.json.id}`)).json.status, 'queued');
    const queued = (await api.request('GET', '/v1/executions', { query: { status: 'queued' } })).json.executions.map(({ id }) => id);
    assert.deepEqual(queued.sort(), [first.json.id, second.json.id].sort());
    const cancelled = await api.request('POST', `/v1/executions/${second.json.id}/cancel`);
    assert.equal(cancelled.json.status, 'cancelled', cancelled.text);
    first.over = over(first.json.id);
    Object.assign(server, { first });
  });
  const done = await server.first.over;
  assert.deepEqual([done.status, done.result], ['succeeded', '1.0.0'], JSON.stringify(done));
  assert.ok(done.metrics.queued_ms >= 0);
});

test('an asynchronous one whose packages cannot be had fails with the reason', async () => {
  const answer = await run({ language: 'python', code: '1', dependencies: { python: ['nothere-either'] }, async: true });
  assert.equal(answer.status, 202, answer.text);
  const done = await over(answer.json.id);
  assert.deepEqual([done.status, done.error.type], ['failed', 'DependenciesFailed'], JSON.stringify(done));
  assert.match(done.error.message, /nothere-either/);
});

test('an asynchronous one is answered while its image comes, and runs in it', async () => {
  const answer = await run({ language: 'python', template: `${registry.host}/snake:1`, code: 'def handler(event): return event + 1', event: 41, async: true });
  assert.deepEqual([answer.status, answer.json.status], [202, 'queued'], answer.text);
  const done = await over(answer.json.id);
  assert.deepEqual([done.status, done.result], ['succeeded', 42], JSON.stringify(done));
});

test('as many are queued as an owner may have; one whose image is not to be had fails; those of a daemon that dies are lost', async () => {
  held = [];
  const body = { language: 'shell', template: `${registry.host}/slow:1`, code: 'true', async: true };
  const queued = [];
  for (let i = 0; i < 16; i++) queued.push(await run(body));
  assert.deepEqual(queued.map(({ json }) => json.status), Array(16).fill('queued'));
  assert.equal(assertError(await run(body), 429).code, 'too_many_queued');
  await until(() => held.length > 0, { what: 'the registry is asked' });
  for (const answer of held.splice(0)) answer();
  held = null;
  for (const { json } of queued) {
    const { status, error } = await over(json.id);
    assert.deepEqual([status, /slow/.test(error.message)], ['failed', true], JSON.stringify(error));
  }
  held = [];
  const { json: { id } } = await run(body);
  await until(() => held.length > 0, { what: 'the registry is asked' });
  await instance.crash();
  held = null;
  await instance.start();
  const lost = await over(id);
  assert.deepEqual([lost.status, lost.error.type, lost.error.message], ['lost', 'Lost', 'the daemon ended before it began']);
});

test('nothing of them is left', async () => {
  await assertNothingRemains(instance, new Set());
});

finish();
