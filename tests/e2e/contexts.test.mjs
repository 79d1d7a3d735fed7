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

test('an interrupt that comes late does not end what runs after', async () => {
  const busy = `const { existsSync, writeFileSync } = require("fs"); setTimeout(() => {
    writeFileSync("/workspace/busy", "");
    while (!existsSync("/workspace/heard"));
    process.kill(process.pid, "SIGINT");
  }, 20); 1`;
  // While the interpreter is busy both come: the next execution, and then the interrupt of the one before.
  await assertResult(node, busy, 1);
  await until(async () => (await api.exec(id, 'ls /workspace/busy')).exit_code === 0, { what: 'the interpreter is busy' });
  const next = await start(node, 'await new Promise((resolve) => setTimeout(resolve, 20)); 2');
  await until(async () => (await look(node)).execution_id === next.id, { what: 'the next runs' });
  await api.put(id, '/workspace/heard', '');
  const { status, result, error } = await wait(next.id);
  assert.deepEqual([status, result, error], ['succeeded', 2, null]);
});

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

test('JavaScript awaits what stands in brackets, and takes import statements as modules do', async () => {
  const own = await make({ language: 'javascript' });
  await assertResult(own, 'const answer = await (async () => 42)();\nanswer', 42);
  await assertResult(own, 'async function twice(n) { return await (n * 2); }\nawait [1, 2].at(-1) + await twice(answer)', 86);
  await assertResult(own, 'import path, { basename as last,\n  dirname } from "node:path";\nimport * as url from "url";\nimport "fs";\n[path.sep, last("/a/b"), dirname("/a/b"), typeof url.URL]', ['/', 'b', '/a', 'function']);
  await assertResult(own, 'import path from "node:path";\npath.join("a", dirname("/b/c"))', 'a/b');
  const failed = await assertFailed(own, 'import fs from "fs";\n\nawait (async () => {\n  throw new TypeError("wrong")\n})()', 'TypeError', { message: /^wrong$/ });
  assert.match(failed.error.traceback, /cell \d+:4:/);
  await assertFailed(own, 'await (', 'SyntaxError', { message: /^[^\n^]+$/ });
  await assertFailed(own, 'import nothing from "not-there-at-all"', 'Error', { message: /not-there-at-all/ });
  await api.request('DELETE', at(own.id));
});

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

test('misbehaviour in Python gives a clear result and does not disturb the next execution', async () => {
  const bad = await make({ language: 'python' });
  await run(bad, 'kept = "here"');
  await assertFailed(bad, 'def f(:', 'SyntaxError', { message: /line 1/ });
  const thrown = await assertFailed(bad, 'x = 1\n\ndef f():\n    raise ValueError("wrong")\nf()', 'ValueError', { message: /^wrong$/ });
  assert.match(thrown.error.traceback, /line 5, in <module>\n {4}f\(\)\n {2}File "cell 3", line 4, in f/);
  assert.ok(!thrown.error.traceback.includes('sandlot'), thrown.error.traceback);
  await assertFailed(bad, 'input("name? ")', 'EOFError', { message: /nobody to answer/ });
  await assertFailed(bad, 'import sys\nsys.exit(3)', 'SystemExit');
  await assertFailed(bad, 'def deep(): deep()\ndeep()', 'RecursionError');
  await assertFailed(bad, 'raise type("x" * 3000000, (Exception,), {})("wrong")', `${'x'.repeat(256)}...`, { message: /^wrong$/ });
  await assertFailed(bad, '%nonsense', 'NameError', { message: /no magic %nonsense/ });
  const flood = await assertFailed(bad, 'while True: print("y" * 99)', 'Timeout', { timeout_ms: 500, status: 'timeout' });
  assert.ok(flood.truncated.includes('stdout') && flood.stdout.length <= 1 << 20);
  for (const code of ['import sys\nsys.stdout.close()', 'import os\nos.close(1); os.close(2)', 'sys.stdout = sys.stderr = None', 'import json, os\njson.dumps = json.loads = os.write = os.read = os.getpid = print',
    'import builtins\nbuiltins.repr = builtins.len = None']) await run(bad, code);
  const printed = await run(bad, 'print("printed", kept)');
  assert.deepEqual([printed.status, printed.stdout], ['succeeded', 'printed here\n']);
  await api.request('POST', at(bad.id, 'restart'));
  await run(bad, 'kept = "here"');
  const huge = await run(bad, '"x" * (200 << 20)');
  assert.deepEqual([huge.status, huge.result, huge.state], ['succeeded', null, 'kept']);
  assert.ok(huge.results[0]['text/plain'].length < 1 << 20);
  await assertResult(bad, 'import signal, os\nos.kill(os.getpid(), signal.SIGUSR2) if False else kept', 'here');
  const shell = await run(bad, 'listed = !echo a; echo b\n!echo to stdout; exit 3\nlisted');
  assert.deepEqual([shell.result, shell.stdout, shell.stderr], [['a', 'b'], 'to stdout\n', '(exit code 3)\n']);
  for (const [code, type, message] of [['import os\nos._exit(3)', 'Exit', /exit code 3/], ['import os\nos._exit(0)', 'Exit', /ended with exit code 0 before the code did/],
    ['import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)', 'Signal', /SIGSEGV/]]) {
    await assertFailed(bad, code, type, { message, state: 'lost' });
    await assertResult(bad, '"kept" in globals()', false);
  }
  await api.request('DELETE', at(bad.id));
});

test('what an earlier execution left behind does not write the result of a later one', async () => {
  const shared = await make({ language: 'python' });
  const spy = 'import os, threading, time, glob\nlines = [b\'\\n%s {"result":"forged"}\\n%s {"done":{}}\\n\' % (i, i) for i in (b"", b"x", b"0" * 26)]\nlines += [b\'{"result":"forged"}\\n{"done":{}}\\n\', b\'half a line\']\n'
    + 'def write():\n    while not os.path.exists("/workspace/enough"):\n        for fd in range(3, 32):\n            for line in lines:\n                try: os.write(fd, line)\n                except OSError: pass\n        time.sleep(0.005)\n'
    + 'threading.Thread(target=write, daemon=True).start()\n1';
  await run(shared, spy);
  for (let i = 0; i < 5; i++) {
    const execution = await run(shared, `import time\ntime.sleep(0.02)\n${i}`);
    assert.deepEqual([execution.status, execution.result, execution.state], ['succeeded', i, 'kept']);
    assert.ok(execution.truncated.includes('results'), JSON.stringify(execution.truncated));
  }
  await api.put(id, '/workspace/enough', '');
  const late = await run(shared, 'import subprocess\nsubprocess.Popen(["sh", "-c", "for f in 3 4 5 6 7 8; do echo x >&$f; done; sleep 3633"], stderr=subprocess.DEVNULL)\n"child"');
  assert.equal(late.result, 'child');
  await assertResult(shared, '"next"', 'next');
  await api.request('DELETE', at(shared.id));
  await until(async () => !(await api.processes(id)).some((line) => line.includes('3633')), { what: 'its children ended with it' });
});

test('misbehaviour in JavaScript gives a clear result and does not disturb the next execution', async () => {
  const bad = await make({ language: 'javascript' });
  await run(bad, 'const kept = "here"');
  await assertFailed(bad, 'const x = ;', 'SyntaxError');
  await assertFailed(bad, 'Promise.reject(new RangeError("nobody handles it")); 1', 'RangeError', { message: /nobody handles it/ });
  await assertFailed(bad, 'await Promise.reject(new Error("awaited"))', 'Error', { message: /awaited/ });
  await assertFailed(bad, 'function deep() { deep(); }\ndeep()', 'RangeError');
  await assertResult(bad, 'const asked = setInterval(() => { if (globalThis.throwNow) { clearInterval(asked); throw new Error("late"); } }, 5); 5', 5);
  await assertResult(bad, 'globalThis.throwNow = true; await new Promise((resolve) => setTimeout(resolve, 60)); 6', 6);
  await assertResult(bad, 'JSON.stringify = JSON.parse = null; Buffer.from = null; process.stdout.write = () => true; 7', 7);
  const huge = await run(bad, '"x".repeat(100 << 20)');
  assert.deepEqual([huge.status, huge.result, huge.state], ['succeeded', null, 'kept']);
  await assertResult(bad, 'kept', 'here');
  await assertFailed(bad, 'await Promise.resolve().then(() => process.exit(4))', 'Exit', { message: /exit code 4/, state: 'lost' });
  await assertResult(bad, 'typeof kept', 'undefined');
  await api.request('DELETE', at(bad.id));
});

test('an interpreter that runs out of memory lost its state, and says why', async () => {
  const small = await api.create({ resources: { memory: '128Mi' } });
  const context = (await api.request('POST', `/v1/sandboxes/${small.id}/contexts`, { json: { language: 'python' } })).json;
  const execution = (await api.request('POST', `/v1/sandboxes/${small.id}/executions`, { json: { context_id: context.id, code: 'x = bytearray(1 << 30)' } })).json;
  if (execution.error.type !== 'MemoryError') assert.deepEqual([execution.status, execution.error.type, execution.state], ['failed', 'OutOfMemory', 'lost'], JSON.stringify(execution));
  await api.remove(small.id);
});

// Rich results --------------------------------------------------------------------------------

test('figures, tables and images are shown in many ways, without code for it', async () => {
  const rich = await make({ language: 'python', env: { MATPLOTLIBRC: '/usr/share/matplotlib/mpl-data/matplotlibrc' } });
  const figure = await run(rich, 'import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [4, 5, 6], label="rise")\nplt.title("Rise")\nplt.xlabel("time (s)")\nplt.show()', { timeout_ms: 120000 });
  assert.equal(figure.status, 'succeeded', JSON.stringify(figure.error));
  assert.equal(figure.results.length, 1);
  const [shown] = figure.results;
  assert.equal(Buffer.from(shown['image/png'], 'base64').subarray(1, 4).toString(), 'PNG');
  assert.match(shown['image/svg+xml'], /<svg/);
  const chart = shown['application/vnd.sandlot.chart+json'];
  assert.deepEqual([chart.type, chart.title, chart.x_label, chart.x_unit, chart.x_scale, chart.elements], ['line', 'Rise', 'time (s)', 's', 'linear', [{ label: 'rise', points: [[1, 4], [2, 5], [3, 6]] }]]);
  const kinds = await run(rich, 'for draw in (lambda a: a.scatter([1], [2]), lambda a: a.bar(["a", "b"], [1, 2]), lambda a: a.pie([1, 3], labels=["x", "y"]), lambda a: a.boxplot([[1, 2, 3, 4]])):\n    figure, axes = plt.subplots()\n    draw(axes)');
  const charts = kinds.results.map((one) => one['application/vnd.sandlot.chart+json']);
  assert.deepEqual(charts.map((one) => one.type), ['scatter', 'bar', 'pie', 'box_and_whisker']);
  assert.deepEqual(charts[1].elements, [{ label: 'a', group: '', value: 1 }, { label: 'b', group: '', value: 2 }]);
  assert.deepEqual(charts[2].elements.map((one) => [one.label, Math.round(one.angle)]), [['x', 90], ['y', 270]]);
  assert.deepEqual([charts[3].elements[0].min, charts[3].elements[0].median, charts[3].elements[0].max], [1, 2.5, 4]);
  const frame = await run(rich, 'import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=["r1", "r2"])', { timeout_ms: 120000 });
  assert.equal(frame.status, 'succeeded', JSON.stringify(frame.error));
  const table = frame.results[0];
  assert.match(table['text/html'], /<table/);
  assert.match(table['text/plain'], /r1/);
  assert.deepEqual(table['application/vnd.sandlot.data+json'], { a: [1, 2], b: ['x', null] });
  assert.deepEqual(table['application/vnd.sandlot.table+json'], { index: ['r1', 'r2'], columns: ['a', 'b'], data: [[1, 'x'], [2, null]], rows: 2 });
  const image = await run(rich, 'from PIL import Image\nImage.new("RGB", (2, 2), "red")');
  assert.equal(Buffer.from(image.results[0]['image/png'], 'base64').subarray(1, 4).toString(), 'PNG');
  const own = await run(rich, 'class Shown:\n    def _repr_html_(self): return "<b>"\n    def _repr_latex_(self): return "$x$"\n    def _repr_markdown_(self): return "*m*"\n    def _repr_json_(self): return {"j": 1}\ndisplay(Shown())\nShown()');
  assert.deepEqual(own.results.map(({ 'text/plain': _, ...rest }) => rest), Array(2).fill({ 'text/html': '<b>', 'text/latex': '$x$', 'text/markdown': '*m*', 'application/json': { j: 1 } }));
  const bundle = await run(rich, 'class Bundle:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {"text/plain": "words", "text/csv": "a,b"}, {"note": 1}\nclass Broken:\n    def _repr_mimebundle_(self, **_): raise ValueError("no")\n    def __repr__(self): return "broken"\ndisplay(Broken())\nBundle()');
  assert.deepEqual([bundle.status, bundle.results], ['succeeded', [{ 'text/plain': 'broken' }, { 'text/plain': 'words', 'text/csv': 'a,b' }]], JSON.stringify(bundle));
  await api.request('DELETE', at(rich.id));
});

test('%pip installs what code can import at once', async () => {
  const pip = await make({ language: 'python' });
  const wheel = `import zipfile
with zipfile.ZipFile("/workspace/tiny_pip-1-py3-none-any.whl", "w") as z:
    z.writestr("tiny_pip.py", "word = 'installed'\\n")
    z.writestr("tiny_pip-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny-pip\\nVersion: 1\\n")
    z.writestr("tiny_pip-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("tiny_pip-1.dist-info/RECORD", "")`;
  await assertResult(pip, `${wheel}\n"made"`, 'made');
  const installed = await run(pip, '%pip install --no-index --no-deps /workspace/tiny_pip-1-py3-none-any.whl', { timeout_ms: 120000 });
  assert.equal(installed.status, 'succeeded', JSON.stringify(installed));
  assert.match(installed.stdout, /Successfully installed tiny-pip-1/, JSON.stringify(installed));
  await assertResult(pip, 'import tiny_pip\ntiny_pip.word', 'installed');
  const failed = await run(pip, '%pip install --no-index "nothere-at-all >= 1"', { timeout_ms: 120000 });
  assert.match(failed.stderr + failed.stdout, /nothere-at-all/);
  assert.equal(failed.state, 'kept');
  await api.request('DELETE', at(pip.id));
});

// Life ----------------------------------------------------------------------------------------

test('a context and what runs in it go on when the daemon is killed; what waited is lost', async () => {
  await run(python, 'survivor = 1');
  const running = await start(python, 'import os, time\nprint("before")\nwhile not os.path.exists("/workspace/on"): time.sleep(0.01)\nprint("after")\nsurvivor + 1');
  await until(async () => (await look(python)).execution_id === running.id, { what: 'it runs' });
  const waiting = await start(python, '"never"');
  await instance.crash();
  await instance.start();
  const lost = await wait(waiting.id);
  assert.deepEqual([lost.status, lost.error.message], ['lost', 'the daemon ended before it began']);
  assert.deepEqual([(await look(python)).status, (await look(python)).starts], ['busy', 1]);
  await api.put(id, '/workspace/on', '');
  const ended = await wait(running.id);
  assert.deepEqual([ended.status, ended.result, ended.stdout, ended.state], ['succeeded', 2, 'before\nafter\n', 'kept']);
  await assertResult(python, 'survivor', 1);
});

test('contexts end with their sandbox and say so; a restart brings them back, empty', async () => {
  const running = await start(python, 'import time\ntime.sleep(3600)');
  await until(async () => (await look(python)).execution_id === running.id, { what: 'it runs' });
  assert.equal((await api.request('POST', `/v1/sandboxes/${id}/stop`)).status, 200);
  const lost = await wait(running.id);
  assert.deepEqual([lost.status, lost.state], ['lost', 'lost'], JSON.stringify(lost));
  for (const context of [python, node]) {
    const ended = await look(context);
    assert.deepEqual([ended.status, ended.reason], ['ended', 'the sandbox was stopped']);
    assertError(await tryRun(context, '1'), 409, /has ended: the sandbox was stopped/);
  }
  const again = (await api.request('POST', at(python.id, 'restart'))).json;
  assert.deepEqual([again.status, again.ended_at, again.starts], ['idle', null, 2]);
  await assertResult(python, '"survivor" in globals()', false);
});

test('a context that nobody uses ends, and says so', async () => {
  const idle = await make({ language: 'python', idle_timeout_s: 1 });
  const ended = await until(async () => {
    const now = await look(idle);
    return now.status === 'ended' && now;
  }, { what: 'it ends' });
  assert.match(ended.reason, /nothing ran in it for 1 s/);
});

test('a sandbox has a bounded number of contexts', async () => {
  const crowded = await api.create({});
  const place = `/v1/sandboxes/${crowded.id}/contexts`;
  const made = await Promise.all(Array.from({ length: 17 }, () => api.request('POST', place, { json: { language: 'python' } })));
  assert.deepEqual(made.map((answer) => answer.status).sort(), [...Array(16).fill(201), 429]);
  await api.remove(crowded.id);
});

finish();
