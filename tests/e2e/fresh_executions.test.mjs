// SPDX-License-Identifier: Apache-2.0
// Executions without a sandbox: each has a fresh one, which is gone afterwards with all that belonged to it.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { eachLimit, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('fresh_executions');

const tryRun = (body, options = {}, as = api) => as.request('POST', '/v1/executions', { json: body, ...options });
const look = async (execution) => (await api.request('GET', `/v1/executions/${execution}`)).json;
const cancel = async (execution) => (await api.request('POST', `/v1/executions/${execution}/cancel`)).json;

async function run(body, options = {}, as = api) {
  const answer = await tryRun(body, options, as);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/** Rows and directories of sandboxes that there are, whoever can see them. */
const remains = () => [...fs.readdirSync(path.join(instance.dataDir, 'sandboxes')), ...fs.readdirSync(path.join(instance.dataDir, 'state', 'logs'))].filter((name) => /^[0-9a-z]{26}$/.test(name));
const nothingIsLeft = () => until(() => remains().length === 0, { what: 'the sandboxes of executions are gone' });

test('code runs in a sandbox of its own, of which nothing stays', async () => {
  const execution = await run({ language: 'python', code: 'import os\ndef handler(event, context):\n    os.system("echo left > /workspace/left")\n    return [event["a"], os.listdir("/workspace")]', event: { a: 1 } });
  assert.deepEqual([execution.status, execution.sandbox_id, execution.process], ['succeeded', null, null]);
  assert.equal(execution.result[0], 1);
  assert.ok(execution.metrics.queued_ms > 0);
  const other = await run({ language: 'shell', code: 'ls /workspace > "$RESULT"' });
  assert.ok(!String(other.result).includes('left'), other.result);
  assert.deepEqual((await look(execution.id)).result, execution.result);
  assert.deepEqual(await api.all(), []);
  await nothingIsLeft();
});

test('its limits and its network are those that were asked for', async () => {
  const execution = await run({ language: 'python', code: 'def handler(e, c): return [c.memory_limit_in_mb, open("/proc/meminfo").readline().split()[1]]', resources: { memory: '128Mi' }, network: { mode: 'none' } });
  assert.deepEqual(execution.result, ['128', String(128 * 1024)]);
  assertError(await tryRun({ language: 'python', code: '1', resources: { memory: 1 } }), 400, /memory/);
  assertError(await tryRun({ language: 'python', code: '1', template: 'nothing-of-that-name' }), 400, /template|image/);
  assertError(await tryRun({ language: 'python' }), 400, /code and path/);
  await nothingIsLeft();
});

test('artifacts are copied before the sandbox goes, and are there as long as the execution', async () => {
  const code = 'import os\nos.makedirs("/workspace/outputs/d")\nopen("/workspace/outputs/d/a.bin", "wb").write(b"abc" * 1000)\nopen("/workspace/outputs/b.txt", "w").write("b")\nos.truncate(os.open("/workspace/outputs/huge", os.O_CREAT | os.O_RDWR), 100 << 20)';
  const execution = await run({ language: 'python', code });
  const sha256 = crypto.createHash('sha256').update('abc'.repeat(1000)).digest('hex');
  const of = (name) => execution.artifacts.find((one) => one.path === `/workspace/outputs/${name}`);
  assert.deepEqual([of('d/a.bin'), of('huge').sha256, execution.truncated], [{ path: '/workspace/outputs/d/a.bin', size: 3000, sha256 }, null, ['artifacts']]);
  await nothingIsLeft();
  const read = (name, as = api) => as.request('GET', `/v1/executions/${execution.id}/artifacts/${encodeURIComponent(name)}`);
  const copy = await read('d/a.bin');
  assert.deepEqual([copy.status, copy.headers['sandlot-artifact-source'], copy.headers.etag, copy.text], [200, 'copy', `"${sha256}"`, 'abc'.repeat(1000)]);
  assert.equal((await read('/workspace/outputs/b.txt')).text, 'b');
  for (const way of ['d/a.bin', 'workspace/outputs/d/a.bin', of('d/a.bin').path])
    assert.equal((await api.request('GET', `/v1/executions/${execution.id}/artifacts/${way}`)).text, 'abc'.repeat(1000), way);
  assertError(await read('huge'), 404, /artifact/);
  assertError(await read('../../etc/passwd'), 404, /artifact/);
  assertError(await read('b.txt', await ownerApi(api, 'other', 'eve')), 404, /execution/);
  const held = await api.create({});
  const inside = (await api.request('POST', `/v1/sandboxes/${held.id}/executions`, { json: { language: 'shell', code: 'echo -n mine > /workspace/outputs/c' } })).json;
  const file = await api.request('GET', `/v1/executions/${inside.id}/artifacts/c`);
  assert.deepEqual([file.headers['sandlot-artifact-source'], file.text], ['sandbox', 'mine']);
  await api.purge(held.id);
  assertError(await api.request('GET', `/v1/executions/${inside.id}/artifacts/c`), 404, /sandbox/);
});

test('one that is asynchronous, cancelled, out of time or streamed leaves no sandbox either', async () => {
  const answer = await tryRun({ language: 'python', code: 'import time\ndef handler(e): time.sleep(3600)', event: 1, async: true });
  assert.deepEqual([answer.status, answer.json.status, answer.headers.location], [202, 'running', `/v1/executions/${answer.json.id}`]);
  assert.equal((await cancel(answer.json.id)).status, 'cancelled');
  assert.equal((await run({ language: 'javascript', code: 'for (;;);', timeout_ms: 300 })).status, 'timeout');
  const stream = await api.stream('POST', '/v1/executions', { json: { language: 'python', code: 'print("x" * 100)\nprint("y")\n7' } });
  const events = [];
  for await (const event of stream.events()) events.push(event);
  assert.deepEqual(events.map((event) => event.event).filter((kind, at, all) => kind !== all[at - 1]), ['start', 'stdout', 'result', 'end']);
  assert.equal(events.filter((event) => event.event === 'stdout').map((event) => event.data.data).join(''), `${'x'.repeat(100)}\ny\n`);
  assert.equal(events.at(-1).data.result, 7);
  await nothingIsLeft();
});

test('a client that goes away takes the execution and its sandbox along', async () => {
  const controller = new AbortController();
  fetch(`http://127.0.0.1:${api.port}/v1/executions`, { method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' }, body: JSON.stringify({ language: 'shell', code: 'exec sleep 3600', on_disconnect: 'cancel' }) }).catch(() => {});
  const mine = await until(async () => (await api.request('GET', '/v1/executions', { query: { status: 'running' } })).json.executions[0], { what: 'it runs' });
  controller.abort();
  await until(async () => (await look(mine.id)).status === 'cancelled', { what: 'it is cancelled' });
  await nothingIsLeft();
});

test('it counts as a running sandbox of its owner, and no longer when it has answered', async () => {
  const admin = api;
  const bob = await ownerApi(admin, 'acme', 'bob');
  assert.equal((await admin.request('PUT', '/v1/quotas/acme/bob', { json: { running: 1 } })).status, 200);
  const { id } = (await tryRun({ language: 'shell', code: 'exec sleep 3600', async: true }, {}, bob)).json;
  assertError(await tryRun({ language: 'shell', code: 'true' }, {}, bob), 429, /quota/);
  assertError(await api.request('GET', `/v1/executions/${id}`), 404, /execution/); // it is bob's
  assert.equal((await bob.request('POST', `/v1/executions/${id}/cancel`)).json.status, 'cancelled');
  for (let i = 0; i < 3; i++) assert.equal((await run({ language: 'shell', code: 'true' }, {}, bob)).status, 'succeeded');
  await nothingIsLeft();
});

test('many at once and one after another leave nothing behind, and none finds what another left', async () => {
  const count = process.env.E2E_FULL ? 1000 : 100;
  const numbers = Array.from({ length: count }, (_, i) => i);
  const code = 'import os\ndef handler(e):\n    seen = os.path.exists("/workspace/mark")\n    open("/workspace/mark", "w").write(str(e))\n    return [e, seen]';
  await eachLimit(numbers, 8, async (i) => {
    const execution = await run({ language: 'python', code, event: i });
    assert.deepEqual(execution.result, [i, false], JSON.stringify(execution));
  });
  await nothingIsLeft();
});

test('one that runs when the daemon is killed is lost, and its sandbox is removed by the next', async () => {
  const { id } = (await tryRun({ language: 'shell', code: 'exec sleep 3600', async: true })).json;
  assert.equal(remains().length > 0, true);
  await instance.crash();
  await instance.start();
  const execution = await look(id);
  assert.deepEqual([execution.status, execution.error.type], ['lost', 'Lost']);
  assert.match(execution.error.message, /daemon ended/);
  await nothingIsLeft();
});

test('what is older than may be kept goes by itself, with the copies of its artifacts, also of an owner who runs nothing more', async () => {
  let dormant = await ownerApi(api, 'other', 'dormant');
  const { id, artifacts } = await run({ language: 'shell', code: 'echo kept for a while > /workspace/outputs/note' }, {}, dormant);
  const blob = () => fs.readdirSync(path.join(instance.dataDir, 'state', 'artifacts'), { recursive: true }).some((name) => name.replaceAll('/', '').includes(artifacts[0].sha256));
  assert.equal(blob(), true);
  await nothingIsLeft();
  await instance.terminate();
  await instance.start(['--execution-keep', '3']);
  dormant = await ownerApi(api, 'other', 'dormant');
  const young = await run({ language: 'python', code: '"young"' });
  await until(async () => (await dormant.request('GET', `/v1/executions/${id}`)).status === 404, { what: 'the old one is forgotten' });
  await until(() => !blob(), { what: 'its artifact is gone' });
  await until(async () => (await api.request('GET', '/v1/executions')).json.executions.length === 0, { what: 'the younger one is forgotten too' });
  assertError(await api.request('GET', `/v1/executions/${young.id}`), 404, /execution/);
  await instance.terminate();
  await instance.start();
});

test('the command line waits for one that was left running, gets its files, lists, cancels and runs again', async () => {
  const { sandlot, ok, json } = commandLine(instance);
  const directory = path.join(instance.home, 'got');
  const code = 'import base64\nprint("said")\nopen("/workspace/outputs/a b", "w").write("content")\ndisplay({"image/png": base64.b64encode(b"image").decode(), "text/plain": "image"}, raw=True)\n{"n": 1}';
  const id = (await ok(['run-code', '-d', '-l', 'python', '-'], { input: code })).trim();
  const { code: status, stdout, stderr } = await sandlot(['execution', 'wait', id]);
  assert.deepEqual([status, stdout], [0, 'said\n{\n  "n": 1\n}\n']);
  assert.match(stderr, new RegExp(`artifact: /workspace/outputs/a b \\(7 B\\)\n.*sandlot execution get ${id} /workspace/outputs/a b`));
  assert.equal(await ok(['execution', 'get', id, 'a b', '-']), 'content');
  fs.mkdirSync(directory);
  // A link that an earlier copy brought out of a sandbox, say.
  fs.writeFileSync(path.join(instance.home, 'own'), 'own');
  fs.symlinkSync(path.join(instance.home, 'own'), path.join(directory, 'a b'));
  await ok(['execution', 'get', id, '/workspace/outputs/a b'], { cwd: directory });
  assert.equal(fs.readFileSync(path.join(directory, 'a b'), 'utf8'), 'content');
  assert.equal(fs.readFileSync(path.join(instance.home, 'own'), 'utf8'), 'own');
  assert.ok(fs.lstatSync(path.join(directory, 'a b')).isFile());
  const inner = path.join(directory, 'inner');
  fs.mkdirSync(inner);
  await ok(['execution', 'get', id, 'a b', inner]);
  assert.equal(fs.readFileSync(path.join(inner, 'a b'), 'utf8'), 'content');
  const none = await sandlot(['execution', 'get', id, 'none'], { cwd: directory });
  assert.deepEqual([none.code, fs.existsSync(path.join(directory, 'none'))], [3, false]);
  const saved = path.join(directory, 'new');
  await ok(['run-code', '-l', 'python', '--save', saved, '-'], { input: code });
  assert.equal(fs.readFileSync(path.join(saved, '1.png'), 'utf8'), 'image');
  const slow = (await ok(['run-code', '-d', '-l', 'python', '-'], { input: 'import time\ntime.sleep(3600)' })).trim();
  assert.match(await ok(['execution', 'ls', '--status', 'running']), new RegExp(slow));
  assert.equal(await ok(['execution', 'cancel', slow]), `${slow} cancelled\n`);
  assert.equal((await sandlot(['execution', 'wait', slow])).code, 1);
  assert.match(await ok(['execution', 'retry', id]), /^said\n\{/);
  const shown = await json(['execution', 'show', id]);
  assert.deepEqual([shown.id, shown.result], [id, { n: 1 }]);
  assert.ok((await json(['execution', 'ls', '-n', '2', '--language', 'python', '-o', 'json'])).executions.length === 2);
});

test('the command line runs a file in a sandbox of its own', async () => {
  const { sandlot } = commandLine(instance);
  const place = path.join(instance.home, 'sum.py');
  fs.writeFileSync(place, 'def handler(event):\n    print("adding")\n    return {"sum": sum(event)}');
  const summed = await sandlot(['run-code', place, '--event', '[1, 2]']);
  assert.deepEqual([summed.code, summed.stdout, summed.stderr], [0, 'adding\n{\n  "sum": 3\n}\n', '']);
  await nothingIsLeft();
});

finish();
