// SPDX-License-Identifier: Apache-2.0
// Files that come with an execution: written before its code runs, in every language, in order, and bounded.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { commandLine } from './lib/cli.mjs';
import { suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('execution_files');
const { id } = await api.create({});
const BYTES = Buffer.from([0, 255, 10, 0, 128]);
const GIVEN = { files: { 'data/in.txt': "größer '$1' \\n\n", '/tmp/deep/er/x': '' }, files_base64: { '-raw': BYTES.toString('base64') } };
const SEEN = { text: GIVEN.files['data/in.txt'], empty: '', raw: BYTES.toString('hex') };

const tryRun = (json, at = `/v1/sandboxes/${id}/executions`) => api.request('POST', at, { json });
async function run(json, at) {
  const answer = await tryRun(json, at);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

const CODE = {
  python: 'def handler(e):\n    return {"text": open("data/in.txt").read(), "empty": open("/tmp/deep/er/x").read(), "raw": open("-raw", "rb").read().hex()}',
  javascript: 'const fs = require("fs"); exports.handler = () => ({ text: fs.readFileSync("data/in.txt", "utf8"), empty: fs.readFileSync("/tmp/deep/er/x", "utf8"), raw: fs.readFileSync("-raw").toString("hex") });',
  shell: 'handler() { python3 -c \'import json; print(json.dumps({"text": open("data/in.txt").read(), "empty": open("/tmp/deep/er/x").read(), "raw": open("-raw", "rb").read().hex()}))\' > $RESULT; }',
};

for (const [language, code] of Object.entries(CODE)) {
  test(`${language}: files are there before the code runs, in a sandbox and without one`, async () => {
    for (const at of [undefined, '/v1/executions']) {
      const execution = await run({ language, code, ...GIVEN }, at);
      assert.deepEqual([execution.status, execution.result], ['succeeded', SEEN], JSON.stringify(execution));
    }
  });

  test(`${language}: a file that cannot be written is its error, and no code runs`, async () => {
    const execution = await run({ language, code: language === 'shell' ? 'echo ran' : language === 'python' ? 'print("ran")' : 'console.log("ran")', files: { '/proc/none': 'x' } });
    assert.equal(execution.status, 'failed');
    assert.equal(execution.stdout, '');
    assert.match(execution.stderr + execution.error.message, /\/proc\/none/);
  });
}

test('they belong to the user of the code, and replace what is there', async () => {
  const owner = await run({ language: 'python', code: 'import os\n[os.stat("mine.txt").st_uid == os.getuid(), open("mine.txt").read()]', files: { 'mine.txt': 'one' } });
  assert.deepEqual(owner.result, [true, 'one']);
  assert.equal((await run({ language: 'python', code: 'open("mine.txt").read()', files: { 'mine.txt': '2' } })).result, '2');
});

for (const language of ['python', 'javascript']) {
  test(`a context of ${language} writes them when it is their turn`, async () => {
    const context = (await api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language } })).json;
    const read = language === 'python' ? 'open("turn").read()' : 'fs.readFileSync("turn", "utf8")';
    const wait = language === 'python' ? 'import os, time\nwhile not os.path.exists("go"): time.sleep(0.01)\n' : 'while (!fs.existsSync("go"));\n';
    await run({ context_id: context.id, code: read, files: { turn: 'first' } });
    const busy = (await tryRun({ context_id: context.id, code: wait + read, async: true })).json;
    const next = (await tryRun({ context_id: context.id, code: read, files: { turn: 'second' }, async: true })).json;
    await api.put(id, '/workspace/go', '');
    const result = async (execution) => (await api.request('GET', `/v1/executions/${execution.id}`, { query: { wait_ms: 60000 } })).json.result;
    assert.deepEqual([await result(busy), await result(next)], ['first', 'second']);
    const refused = await run({ context_id: context.id, code: '1', files: { '/proc/none': 'x' } });
    assert.deepEqual([refused.status, refused.state], ['failed', 'kept']);
    await run({ context_id: context.id, code: language === 'python' ? 'os.remove("go")' : 'fs.unlinkSync("go")' });
  });
}

test('what is wrong with them is refused, and names the field', async () => {
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`f${i}`, '']));
  for (const [body, pattern] of [[{ files: { '': 'x' } }, /files/], [{ files: { 'a/': 'x' } }, /files/], [{ files: { [`/${'x'.repeat(5000)}`]: 'x' } }, /files/],
    [{ files: { a: 1 } }, /files/], [{ files: [] }, /files/], [{ files: many }, /files/], [{ files_base64: { a: 'x' } }, /files_base64/], [{ files_base64: { a: '?' } }, /files_base64/]]) {
    assertError(await tryRun({ language: 'python', code: '1', ...body }), 400, pattern);
  }
  assertError(await tryRun({ language: 'python', code: '1', files: { a: 'x'.repeat(1 << 20) } }), 413, /1 MiB/);
  assertError(await tryRun({ language: 'shell', code: 'true', files: { a: 'x'.repeat(200000) } }), 400, /files/);
});

test('a retry has them again, and the command line sends its own', async () => {
  const first = await run({ language: 'python', code: 'open("again").read()', files: { again: 'same' } });
  const again = await api.request('POST', `/v1/executions/${first.id}/retry`);
  assert.equal(again.json.result, 'same', again.text);
  const { sandlot } = commandLine(instance);
  const local = (name, data) => { const place = path.join(instance.home, name); fs.writeFileSync(place, data); return place; };
  const code = local('read.py', 'import sys\nprint(open("in.csv").read(), open("/tmp/raw.bin", "rb").read().hex())');
  const ran = await sandlot(['run-code', code, '-f', local('in.csv', 'a,b'), '--file', `${local('raw', BYTES)}:/tmp/raw.bin`]);
  assert.deepEqual([ran.code, ran.stdout, ran.stderr], [0, `a,b ${BYTES.toString('hex')}\n`, '']);
  assert.match((await sandlot(['run-code', code, '-f', '/nowhere'])).stderr, /nowhere/);
  assert.match((await sandlot(['run-code', code, '-f', ':x'])).stderr, /--file :x must name a file/);
});

finish();
