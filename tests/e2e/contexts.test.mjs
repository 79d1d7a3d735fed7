// SPDX-License-Identifier: Apache-2.0
// Contexts: interpreters that keep their state between executions, also when code misbehaves in them.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('contexts');
const { id } = await api.create({});

const at = (context = '', verb = '') => `/v1/sandboxes/${id}/contexts${context && `/${context}`}${verb && `/${verb}`}`;
const make = async (json) => {
  const answer = await api.request('POST', at(), { json });
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
};
const python = await make({ language: 'python' });
const node = await make({ language: 'javascript' });
const look = async (context) => (await api.request('GET', at(context.id))).json;
const tryRun = (context, code, more = {}) => api.request('POST', `/v1/sandboxes/${id}/executions`, { json: { context_id: context.id, code, ...more } });
const wait = async (execution) => (await api.request('GET', `/v1/executions/${execution}`, { query: { wait_ms: 60000 } })).json;

async function run(context, code, more = {}) {
  const answer = await tryRun(context, code, more);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
const start = async (context, code, more = {}) => {
  const answer = await tryRun(context, code, { async: true, ...more });
  assert.equal(answer.status, 202, answer.text);
  return answer.json;
};

async function assertResult(context, code, result, more = {}) {
  const execution = await run(context, code, more);
  assert.deepEqual([execution.status, execution.error, execution.result, execution.state], ['succeeded', null, result, 'kept'], code);
  return execution;
}
async function assertFailed(context, code, type, { message = /./, status = 'failed', state = 'kept', ...more } = {}) {
  const execution = await run(context, code, more);
  assert.deepEqual([execution.status, execution.error?.type, execution.state], [status, type, state], JSON.stringify(execution));
  assert.match(execution.error.message, message);
  return execution;
}

// State ---------------------------------------------------------------------------------------

test('a context keeps what executions define, says what it is, and two share nothing', async () => {
  assert.deepEqual([python.language, python.status, python.state, python.starts, python.ended_at], ['python', 'idle', 'kept', 1, null]);
  const first = await assertResult(python, 'import os\nx = 41\ndef f(): return x + 1\nprint("out")\nos.getcwd()', '/workspace');
  assert.equal(first.stdout, 'out\n');
  assert.equal(first.context_id, python.id);
  assert.equal(first.process, python.process);
  const second = await assertResult(python, 'f()', 42, { language: 'python' });
  assert.equal(second.stdout, '');
  assert.deepEqual(second.results, [{ 'text/plain': '42' }]);
  await assertResult(python, '_ * 2', 84);
  const other = await make({ language: 'python', cwd: '/tmp', env: { MINE: 'yes' }, idle_timeout_s: 0 });
  await assertResult(other, 'import os\n[os.getcwd(), os.environ["MINE"], "x" in globals()]', ['/tmp', 'yes', false]);
  await assertResult(other, 'os.environ["ONCE"]', 'now', { env: { ONCE: 'now' } });
  await assertResult(other, 'os.environ.get("ONCE")', null);
  const listed = (await api.request('GET', at())).json.contexts;
  assert.deepEqual(listed.map((one) => one.id), [python.id, node.id, other.id]);
  assert.equal((await api.request('DELETE', at(other.id))).status, 204);
  assertError(await api.request('GET', at(other.id)), 404, new RegExp(other.id));
});

test('JavaScript keeps const, let, class and what awaits brought', async () => {
  await assertResult(node, 'const a = 4; let b = 5; class C { m() { return 7; } }\nconst later = await Promise.resolve(1);\nconsole.log("hi"); a + b', 9);
  await assertResult(node, 'b += 1; [a, b, new C().m(), later]', [4, 6, 7, 1]);
  await assertResult(node, 'const { basename } = await import("node:path"); basename("/x/y")', 'y');
  await assertResult(node, 'require("fs").existsSync("/workspace")', true);
  await assertFailed(node, 'function g() {\n  null.x;\n}\ng();', 'TypeError');
  await assertResult(node, 'a', 4);
});

test('a file of the sandbox runs in it, and what it writes to outputs is listed', async () => {
  await api.put(id, '/workspace/cell.py', 'loaded = 5\nopen("/workspace/outputs/a.txt", "w").write("abc")\nloaded');
  const execution = (await api.request('POST', `/v1/sandboxes/${id}/executions`, { json: { context_id: python.id, path: '/workspace/cell.py' } })).json;
  assert.deepEqual([execution.result, execution.artifacts.map((one) => [one.path, one.size])], [5, [['/workspace/outputs/a.txt', 3]]]);
  await assertResult(python, 'loaded', 5);
});

// Order ---------------------------------------------------------------------------------------

test('executions wait for their turn, in order; one that waits can be cancelled; too many are refused', async () => {
  const first = await start(python, 'import os, time\norder = [1]\nwhile not os.path.exists("/workspace/go"): time.sleep(0.01)');
  const second = await start(python, 'order.append(2)');
  const unwanted = await start(python, 'order.append("unwanted")');
  const third = await start(python, 'order.append(3)\norder');
  assert.equal((await look(python)).status, 'busy');
  assert.deepEqual([(await look(python)).waiting, (await look(python)).execution_id], [3, first.id]);
  assert.equal(unwanted.process, null);
  const cancelled = (await api.request('POST', `/v1/executions/${unwanted.id}/cancel`)).json;
  assert.deepEqual([cancelled.status, cancelled.state, cancelled.stdout], ['cancelled', 'kept', '']);
  const more = await Promise.all(Array.from({ length: 30 }, () => start(python, 'None')));
  assertError(await tryRun(python, '1'), 429, /wait/);
  const stream = await api.stream('GET', `/v1/executions/${third.id}/events`);
  await api.put(id, '/workspace/go', '');
  assert.deepEqual((await wait(third.id)).result, [1, 2, 3]);
  const events = [];
  for await (const event of stream.events()) events.push(event);
  assert.deepEqual(events.map((event) => event.event), ['start', 'result', 'result', 'end']);
  for (const one of [first, second, ...more]) assert.equal((await wait(one.id)).status, 'succeeded');
});

test('as a stream it tells its own output alone', async () => {
  await assertResult(python, 'print("of the one before")', null);
  const stream = await api.stream('POST', `/v1/sandboxes/${id}/executions`, { json: { context_id: python.id, code: 'import sys\nprint("one")\ndisplay("shown")\n7' } });
  const events = [];
  for await (const event of stream.events()) events.push(event);
  assert.deepEqual(events.map((event) => event.event), ['start', 'stdout', 'result', 'result', 'result', 'end']);
  assert.equal(events[1].data.text ?? events[1].data.data, 'one\n');
  assert.deepEqual([events[4].data, events[5].data.status, events[5].data.state], [{ result: 7 }, 'succeeded', 'kept']);
});

// Interrupts ----------------------------------------------------------------------------------

for (const [name, context, loop, asleep] of [['python', python, 'while True: pass', 'import time\ntime.sleep(3600)'], ['javascript', node, 'while (true);', 'await new Promise(() => {})']]) {
  test(`an interrupt ends what runs in ${name} and keeps the state; so do a timeout and a cancel`, async () => {
    await run(context, 'mine = 5');
    for (const code of [loop, asleep]) {
      const running = await start(context, code);
      await until(async () => (await look(context)).execution_id === running.id, { what: 'it runs' });
      const after = (await api.request('POST', at(context.id, 'interrupt'))).json;
      assert.deepEqual([after.status, after.state, after.starts], ['idle', 'kept', 1]);
      const interrupted = await wait(running.id);
      assert.deepEqual([interrupted.status, interrupted.state], ['cancelled', 'kept'], JSON.stringify(interrupted));
    }
    await assertFailed(context, loop, 'Timeout', { timeout_ms: 300, status: 'timeout' });
    const running = await start(context, loop);
    assert.equal((await api.request('POST', `/v1/executions/${running.id}/cancel`)).json.state, 'kept');
    await assertResult(context, 'mine', 5);
    assert.deepEqual((await api.request('POST', at(context.id, 'interrupt'))).json.state, 'kept');
  });
}

test('code that does not heed an interrupt is killed, and the state is lost, as is what waited', async () => {
  const stubborn = await make({ language: 'python' });
  await run(stubborn, 'x = 1');
  const running = await start(stubborn, 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass', { timeout_ms: 200 });
  const waiting = await start(stubborn, 'x');
  const ended = await wait(running.id);
  assert.deepEqual([ended.status, ended.state], ['timeout', 'lost']);
  const lost = await wait(waiting.id);
  assert.deepEqual([lost.status, lost.state], ['lost', 'lost']);
  assert.match(lost.error.message, /lost its state before it began/);
  assert.equal((await look(stubborn)).state, 'lost');
  await assertResult(stubborn, '"x" in globals()', false);
  assert.deepEqual([(await look(stubborn)).state, (await look(stubborn)).starts], ['kept', 2]);
  const again = (await api.request('POST', at(stubborn.id, 'restart'))).json;
  assert.deepEqual([again.status, again.starts], ['idle', 3]);
  await api.request('DELETE', at(stubborn.id));
});

// Bad input -----------------------------------------------------------------------------------

test('bad input is refused with the reason', async () => {
  assertError(await api.request('POST', at(), { json: { language: 'shell' } }), 400, /shell has no contexts/);
  assertError(await api.request('POST', at(), { json: {} }), 400, /language/);
  assertError(await api.request('POST', at(), { json: { language: 'python', cwd: '/nowhere' } }), 400, /nowhere/);
  assertError(await tryRun({ id: '0'.repeat(26) }, '1'), 404, /context/);
  assertError(await tryRun(python, '1', { language: 'javascript' }), 400, /language is javascript, but the context runs python/);
  assertError(await tryRun(python, '1', { event: {} }), 400, /event/);
  assertError(await tryRun(python, '1', { stdin: 'x' }), 400, /stdin/);
  assertError(await tryRun(python, '1', { cwd: '/tmp' }), 400, /cwd/);
  assertError(await api.request('POST', `/v1/sandboxes/${id}/executions`, { json: { context_id: python.id } }), 400, /code and path/);
  for (const verb of ['interrupt', 'restart']) assertError(await api.request('POST', at('0'.repeat(26), verb)), 404, /context/);
});

finish();
