// SPDX-License-Identifier: Apache-2.0
// Executions in trouble, and what they leave: input that no interpreter can run, memory that runs out, streams whose client
// goes away, networks that are not there.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertNothingRemains } from './lib/remains.mjs';
import { suite } from './lib/suite.mjs';
import { eachLimit, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('execution_trouble');
const { id } = await api.create({ resources: { memory: '256Mi' } });
const IN = `/v1/sandboxes/${id}/executions`;
const FRESH = '/v1/executions';

async function run(body, at = IN) {
  const answer = await api.request('POST', at, { json: body });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

const look = async (execution) => (await api.request('GET', `/v1/executions/${execution}`)).json;
const cancel = (execution) => api.request('POST', `/v1/executions/${execution}/cancel`);
const outcome = ({ status, error, result }) => [status, error?.type ?? null, result];

async function context(language) {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language } });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.id;
}

// Input ---------------------------------------------------------------------------------------

test('await stands on the outermost level of Python, in contexts and in scripts', async () => {
  const code = 'import asyncio\nasync def double(n):\n    await asyncio.sleep(0)\n    return n * 2\nasync with asyncio.Lock():\n    both = await asyncio.gather(double(1), double(2))\n[n async for n in aiter_of(both)]';
  const helper = 'async def aiter_of(values):\n    for value in values: yield value\n';
  assert.deepEqual(outcome(await run({ language: 'python', code: helper + code })), ['succeeded', null, [2, 4]]);
  const python = await context('python');
  assert.deepEqual(outcome(await run({ context_id: python, code: helper + code })), ['succeeded', null, [2, 4]]);
  assert.deepEqual(outcome(await run({ context_id: python, code: 'task = asyncio.ensure_future(double(21))\nNone' })), ['succeeded', null, null]);
  assert.deepEqual(outcome(await run({ context_id: python, code: 'await task' })), ['succeeded', null, 42], 'the loop stays');
  assert.deepEqual(outcome(await run({ context_id: python, code: 'await double(None)' })), ['failed', 'TypeError', null]);
  const task = 'import asyncio\nasync def late(n):\n    await asyncio.sleep(0)\n    return n\ntask = asyncio.create_task(late(3))\nasyncio.get_running_loop().call_soon(print, "called")\nawait task';
  for (const place of [{ language: 'python' }, { context_id: python }]) {
    const execution = await run({ ...place, code: task });
    assert.deepEqual([...outcome(execution), execution.stdout], ['succeeded', null, 3, 'called\n'], `what comes before the first await finds the loop: ${JSON.stringify(execution.error)}`);
    const failed = await run({ ...place, code: 'import asyncio\nmark = 1 / 0\nawait asyncio.sleep(0)' });
    assert.deepEqual([failed.error.type, failed.stderr], ['ZeroDivisionError', '']);
    assert.match(failed.error.traceback, /line 2, in <module>/);
    assert.doesNotMatch(failed.error.traceback, /asyncio|sandlot/);
  }
});

test('TypeScript keeps its state in a context, with its own lines in errors', async () => {
  const compiler = path.join(import.meta.dirname, '../../web/node_modules/typescript');
  for (const name of ['package.json', 'lib/typescript.js']) await api.put(id, `/workspace/node_modules/typescript/${name}`, fs.readFileSync(path.join(compiler, name)));
  const typescript = await context('typescript');
  assert.deepEqual(outcome(await run({ context_id: typescript, code: 'interface Pair { a: number; b?: string }\nenum Mood { Good = "good" }\nconst pair: Pair = { a: 20 };' })), ['succeeded', null, null]);
  assert.deepEqual(outcome(await run({ context_id: typescript, code: 'const twice = (n: number): number => n * 2;\n[twice(pair.a!) + 2, Mood.Good]' })), ['succeeded', null, [42, 'good']]);
  assert.deepEqual(outcome(await run({ context_id: typescript, code: 'await Promise.resolve<number>(7)' })), ['succeeded', null, 7]);
  const failed = await run({ context_id: typescript, code: 'type Unused = string;\n\nfunction fails(): never {\n  throw new RangeError("far");\n}\nfails();' });
  assert.deepEqual(outcome(failed), ['failed', 'RangeError', null]);
  assert.match(failed.error.traceback, /cell 4:4\b/);
  await api.exec(id, 'rm -r /workspace/node_modules');
});

test('code that is none of its language fails, says why, and spoils nothing', async () => {
  const shell = await run({ language: 'shell', code: 'if true; then\n  echo open' });
  assert.deepEqual([shell.status, shell.exit_code !== 0], ['failed', true]);
  assert.match(shell.stderr, /main\.sh.*(unexpected end|end of file)/);
  await api.put(id, '/workspace/latin.js', Buffer.from('exports.handler = () => "\xe4\xff";\n', 'latin1'));
  assert.deepEqual(outcome(await run({ language: 'javascript', path: '/workspace/latin.js', event: 1 })), ['succeeded', null, '\ufffd\ufffd'], 'as node reads such a file');
  await api.put(id, '/workspace/broken.js', Buffer.from([0xff, 0xfe, 0x00, 0x28]));
  assert.equal((await run({ language: 'javascript', path: '/workspace/broken.js' })).error.type, 'SyntaxError');
  const huge = await run({ language: 'javascript', code: 'exports.handler = () => Array(8).fill("x".repeat(1 << 27));', timeout_ms: 60000 });
  assert.equal(huge.status, 'failed', JSON.stringify(huge).slice(0, 500));
  assert.ok(['TooLarge', 'RangeError', 'OutOfMemory', 'Signal'].includes(huge.error.type), JSON.stringify(huge.error));
  const stopped = await run({ language: 'python', code: 'import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)', timeout_ms: 1000 });
  assert.deepEqual(outcome(stopped), ['timeout', 'Timeout', null]);
  assert.deepEqual(outcome(await run({ language: 'python', code: 'def handler(e): return "well"' })), ['succeeded', null, 'well']);
});

// Memory --------------------------------------------------------------------------------------

test('a handler that takes all memory says so, in a sandbox and in one of its own, and the next is well', async () => {
  const greedy = 'def handler(event):\n    kept = []\n    while True: kept.append(bytearray(16 << 20))';
  for (const [at, more] of [[IN, {}], [FRESH, { resources: { memory: '128Mi' } }]]) {
    assert.deepEqual(outcome(await run({ language: 'python', code: greedy, ...more }, at)).slice(0, 2), ['failed', 'OutOfMemory'], at);
    assert.deepEqual(outcome(await run({ language: 'python', code: 'def handler(event): return "well"', ...more }, at)), ['succeeded', null, 'well'], at);
  }
});

// Networks ------------------------------------------------------------------------------------

test('an execution or function without a network reaches nothing', async () => {
  const code = 'import socket\ndef handler(event):\n    try:\n        socket.create_connection(("192.0.2.1", 80), 5)\n        return "reached"\n    except OSError as error:\n        seen = type(error).__name__\n    try:\n        socket.getaddrinfo("example.com", 80)\n        return "resolved"\n    except OSError:\n        return seen';
  const alone = await run({ language: 'python', code, network: { mode: 'none' }, timeout_ms: 60000 }, FRESH);
  assert.equal(alone.status, 'succeeded', JSON.stringify(alone.error));
  assert.ok(!['reached', 'resolved'].includes(alone.result), alone.result);
  assert.equal((await api.request('PUT', '/v1/functions/cut-off', { json: { language: 'python', code, network: { mode: 'none' } } })).status, 200);
  assert.equal((await api.request('POST', '/v1/functions/cut-off/invoke', { json: {} })).json, alone.result);
});

// Streams -------------------------------------------------------------------------------------

test('a stream that is closed ends the execution or leaves it, as was asked', async () => {
  for (const [on_disconnect, then] of [['cancel', 'cancelled'], ['keep', 'running']]) {
    const stream = await api.stream('POST', IN, { json: { language: 'python', code: 'import time\nprint("on its way")\nopen("/workspace/go", "w")\nwhile True: time.sleep(60)', on_disconnect } });
    const events = stream.events()[Symbol.asyncIterator]();
    const { value: start } = await events.next();
    assert.deepEqual([start.event, start.data.status], ['start', 'running']);
    assert.deepEqual((await events.next()).value.data.data, 'on its way\n');
    stream.close();
    if (then === 'cancelled') await until(async () => (await look(start.data.id)).status === then, { what: 'it is cancelled' });
    else {
      const follow = await api.stream('GET', `/v1/executions/${start.data.id}/events`);
      for await (const event of follow.events()) if (event.event === 'stdout') break;
      follow.close();
      assert.equal((await look(start.data.id)).status, then);
      await cancel(start.data.id);
    }
  }
});

test('a stream goes on behind the event that the client saw last', async () => {
  await api.exec(id, 'mkfifo /workspace/turn /workspace/last');
  const code = 'print("one")\nopen("/workspace/turn").read()\nprint("two")\ndisplay("shown")\nopen("/workspace/last").read()\n3';
  const stream = await api.stream('POST', IN, { json: { language: 'python', code, on_disconnect: 'keep' } });
  let execution, seen;
  for await (const event of stream.events()) {
    execution ??= event.data.id;
    seen = event.id;
    if (event.event === 'stdout') break;
  }
  stream.close();
  await api.exec(id, 'echo > /workspace/turn');
  const rest = await api.stream('GET', `/v1/executions/${execution}/events`, { headers: { 'last-event-id': seen } });
  const events = [];
  for await (const { event, data } of rest.events()) {
    events.push([event, data.data ?? data.display?.['text/plain'] ?? data.result ?? null]);
    if (event === 'result' && data.display?.['text/plain'] === "'shown'") await api.exec(id, 'echo > /workspace/last');
  }
  assert.deepEqual(events, [['stdout', 'two\n'], ['result', "'shown'"], ['result', '3'], ['result', 3], ['end', 3]]);
});

// What is left --------------------------------------------------------------------------------

test('executions of all sorts leave nothing behind', async () => {
  const count = process.env.E2E_FULL ? 1000 : 120;
  const sorts = [
    { language: 'python', code: 'def handler(e): return e', event: 1 }, { language: 'python', code: 'raise SystemExit(3)' },
    { language: 'javascript', code: 'exports.handler = async () => 1;' }, { language: 'shell', code: 'sleep 3600 & echo x > /workspace/outputs/file' },
    { language: 'python', code: 'while True: pass', timeout_ms: 100 }, { language: 'python', code: 'import os\nos.fork()' },
  ];
  await eachLimit(Array.from({ length: count }, (_, i) => i), 4, async (i) => {
    const { status } = await run(sorts[i % sorts.length], FRESH);
    assert.ok(['succeeded', 'failed', 'timeout'].includes(status), status);
  });
  await assertNothingRemains(instance, new Set([id]));
});

finish();
