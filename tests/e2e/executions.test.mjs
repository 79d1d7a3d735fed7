// SPDX-License-Identifier: Apache-2.0
// Executions: code that is run for its result, in each language, also when it misbehaves.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('executions');
const { id } = await api.create({});

const tryRun = (body, options = {}) => api.request('POST', `/v1/sandboxes/${id}/executions`, { json: body, ...options });

async function run(body) {
  const answer = await tryRun(body);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

const python = (code, more = {}) => run({ language: 'python', code, ...more });
const javascript = (code, more = {}) => run({ language: 'javascript', code, ...more });
const shell = (code, more = {}) => run({ language: 'shell', code, ...more });
const look = async (execution) => (await api.request('GET', `/v1/executions/${execution}`)).json;

async function context(language) {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language } });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.id;
}

/** It succeeded, with this result. */
function assertResult(execution, result) {
  assert.deepEqual([execution.status, execution.error, execution.result], ['succeeded', null, result]);
}

function assertFailed(execution, type, message = /./, status = 'failed') {
  assert.equal(execution.status, status, JSON.stringify(execution));
  assert.equal(execution.error.type, type);
  assert.match(execution.error.message, message);
  assert.equal(execution.result, null);
}

// Handlers ------------------------------------------------------------------------------------

test('a handler is called with the event and a context, and its result is apart from its output', async () => {
  const execution = await python(`
def handler(event, context):
    print("to stdout", event["a"])
    assert 0 < context.get_remaining_time_in_millis() <= 20000
    return {"sum": event["a"] + event["b"], "id": context.aws_request_id, "memory": context.memory_limit_in_mb, "name": context.function_name}
`, { event: { a: 1, b: 2 }, timeout_ms: 20000 });
  assertResult(execution, { sum: 3, id: execution.id, memory: '1024', name: 'handler' });
  assert.equal(execution.stdout, 'to stdout 1\n');
  assert.equal(execution.stderr, '');
  assert.deepEqual(Object.keys(execution.metrics).sort(), ['cpu_ms', 'peak_memory_bytes', 'queued_ms', 'run_ms', 'start_ms']);
  assert.ok(execution.metrics.start_ms > 0 && execution.metrics.peak_memory_bytes > 1_000_000);
  assert.equal(execution.termination.reason, 'exited');
  assert.deepEqual(execution.truncated, []);
});

test('a handler may be async, take the event alone, have another name, or stand in a file', async () => {
  assertResult(await python('import asyncio\nasync def handler(event):\n    await asyncio.sleep(0)\n    return event', { event: [1] }), [1]);
  assertResult(await python('def lambda_handler(event, context): return "x"', { event: {} }), 'x');
  assertResult(await python('def mine(): return 7', { handler: 'app.mine' }), 7);
  await api.put(id, '/workspace/app.py', 'import helper\ndef handler(e): return helper.double(e)\n');
  await api.put(id, '/workspace/helper.py', 'def double(x): return x * 2\n');
  assertResult(await run({ language: 'python', path: '/workspace/app.py', event: 4 }), 8);
});

test('a JavaScript handler is exported either way, and returns, promises or calls back', async () => {
  assertResult(await javascript('exports.handler = async (event, context) => ({ n: event.n + 1, id: context.awsRequestId.length });', { event: { n: 1 } }), { n: 2, id: 26 });
  assertResult(await javascript('export const handler = async (event) => event;', { event: 'e' }), 'e');
  assertResult(await javascript('import { basename } from "node:path";\nexport default (event) => basename(event);', { event: '/a/b' }), 'b');
  assertResult(await javascript('exports.handler = (event, context, callback) => { setImmediate(() => callback(null, event * 2)); };', { event: 21 }), 42);
  assertFailed(await javascript('exports.handler = (e, c, callback) => callback(new RangeError("no"));'), 'RangeError', /no/);
});

test('a shell handler gets the event as $1 and on standard input, and returns what it writes to $RESULT', async () => {
  const code = 'handler() {\n  read -r line\n  echo "out $1"\n  printf \'{"stdin":%s,"same":"%s"}\' "$line" "$([ "$line" = "$1" ] && echo yes)" > "$RESULT"\n}';
  const execution = await shell(code, { event: { a: 'b c' } });
  assertResult(execution, { stdin: { a: 'b c' }, same: 'yes' });
  assert.equal(execution.stdout, 'out {"a":"b c"}\n');
  assertResult(await shell('echo plain text > "$RESULT"'), 'plain text');
  const failed = await shell('echo gone >&2\nexit 3');
  assertFailed(failed, 'Exit', /exit code 3/);
  assert.deepEqual([failed.stderr, failed.exit_code], ['gone\n', 3]);
  assert.match((await shell('echo one\nnonsense-command')).stderr, /main\.sh: line 2: nonsense-command/);
});

// Scripts -------------------------------------------------------------------------------------

test('a script in JavaScript that awaits or imports has the value of its last expression too', async () => {
  for (const [code, value] of [
    ['await Promise.resolve(42)', 42],
    ['const x = await Promise.resolve(40); x + 2', 42],
    ['const x = await Promise.resolve(40);\n\nx + 2; \n', 42],
    ['import fs from "fs";\n6 * 7 // the answer', 42],
    ['const wait = (n) => new Promise((done) => setTimeout(done, 1, n));\nconst all = await Promise.all([1, 2].map(wait));\n\n({ all,\n  n: all.length })', undefined], // belongs to the line before, for all that is known
    ['const all = await Promise.all([1, 2]);\nObject.assign({ all },\n  { n: all.length });', { all: [1, 2], n: 2 }],
    ['const { EOL } = await import("node:os");\nif (EOL) {\n  console.log("in a block");\n}', undefined],
    ['import os from "node:os";\nfunction handlerless() { return 1 }\nclass A {}', undefined],
    ['await null;\nundefined', undefined],
  ]) {
    const execution = await run({ language: 'javascript', code });
    assert.equal(execution.status, 'succeeded', `${code}: ${JSON.stringify(execution.error)}`);
    assert.deepEqual(execution.result ?? undefined, value, code);
  }
  const failed = await run({ language: 'javascript', code: 'await null;\nconst x = 1;\nmissing + x' });
  assertFailed(failed, 'ReferenceError', /missing/);
  assert.match(failed.error.traceback, /:3\b/);
});

test('TypeScript runs with the compiler beside it, with its own lines in errors; without one it says what is missing', async () => {
  const typescript = (code, more) => run({ language: 'typescript', code, ...more });
  const handler = 'interface Event { name: string; n?: number }\n\ntype Answer = { hello: string };\nenum Mood { Good = "good" }\nexport const handler = async (event: Event): Promise<Answer> => {\n  const n = event.n!;\n  if (n === 13) throw new TypeError("unlucky");\n  return { hello: `${event.name} ${Mood.Good}` };\n};\n';
  assertFailed(await typescript(handler, { event: { name: 'Ada' } }), 'LanguageMissing', /install typescript or esbuild/);
  const compiler = path.join(import.meta.dirname, '../../web/node_modules/typescript');
  for (const name of ['package.json', 'lib/typescript.js']) await api.put(id, `/workspace/node_modules/typescript/${name}`, fs.readFileSync(path.join(compiler, name)));
  assertResult(await typescript(handler, { event: { name: 'Ada' } }), { hello: 'Ada good' });
  const failed = await typescript(handler, { event: { name: 'Ada', n: 13 } });
  assertFailed(failed, 'TypeError', /unlucky/);
  assert.match(failed.error.traceback, /main\.ts:7\b/);
  assertFailed(await typescript('const ok: number = 1;\nconst x: number = = 6;'), 'SyntaxError', /line 2/);
  assertResult(await typescript('type T = number;\nconst x: T = 6;\nx * 7'), 42);
  await api.put(id, '/workspace/lib/sum.ts', Buffer.from('export function sum(...ns: number[]): number { return ns.reduce((a, b) => a + b, 0); }\n'));
  await api.put(id, '/workspace/app.ts', Buffer.from('import { sum } from "./lib/sum";\nimport * as os from "node:os";\nexport const handler = (event: number[]) => [sum(...event), typeof os.EOL];\n'));
  assertResult(await run({ language: 'typescript', path: '/workspace/app.ts', event: [1, 2, 3] }), [6, 'string']);
  await api.exec(id, 'rm -r /workspace/node_modules /workspace/lib /workspace/app.ts');
});

test('a Java program gets the event as its argument and writes its result; without Java it says so', async () => {
  const program = 'public class Main {\n  public static void main(String[] args) throws Exception {\n    System.out.println("got " + args[0]);\n    if (args[0].equals("13")) throw new IllegalStateException("unlucky");\n    java.nio.file.Files.writeString(java.nio.file.Path.of(System.getenv("RESULT")), "{\\"event\\": " + args[0] + "}");\n  }\n}';
  const java = (code, more) => run({ language: 'java', code, ...more });
  if (fs.existsSync('/usr/bin/java')) {
    const execution = await java(program, { event: 12 });
    assertResult(execution, { event: 12 });
    assert.equal(execution.stdout, 'got 12\n');
    const failed = await java(program, { event: 13 });
    assertFailed(failed, 'Exit', /exit code 1/);
    assert.match(failed.stderr, /unlucky[^]*Main\.java:4/);
  }
  assertFailed(await java(program, { event: 1, env: { PATH: '/nowhere' } }), 'LanguageMissing', /java/);
});

test('code without a handler is a script with its own input, environment and directory; its last expression is its result', async () => {
  const execution = await python('import os, sys\nprint(sys.stdin.read(), os.getcwd(), __name__)\nos.environ["X"] * 2', { stdin: 'in', env: { X: 'x' }, cwd: '/tmp' });
  assertResult(execution, 'xx');
  assert.equal(execution.stdout, 'in /tmp __main__\n');
  assert.deepEqual(execution.results, [{ 'text/plain': "'xx'" }]);
  assertResult(await python('x = 1'), null);
  assertResult(await javascript('const a = 4;\na * 2'), 8);
  assertResult(await javascript('const a = await Promise.resolve(5);\nconsole.log(a);'), null);
});

test('a Python of another kind than the one that made Sandlot runs the same', async () => {
  // One that does not take code which was compiled ahead.
  const other = '#!/bin/sh\nshift\ntext=$1\nshift\nexec /usr/bin/python3 -c "import _frozen_importlib_external as loader\nloader.MAGIC_NUMBER = b\'another\'\n$text" "$@"\n';
  await api.request('PUT', `/v1/sandboxes/${id}/files`, { query: { path: '/workspace/other/python3', mode: '0755' }, body: other });
  const env = { PATH: '/workspace/other:/usr/bin:/bin' };
  assertResult(await python('import _frozen_importlib_external as loader\ndef handler(e): return [e, loader.MAGIC_NUMBER.decode()]', { event: 1, env }), [1, 'another']);
  const shown = await python('class Shown:\n    def _repr_html_(self): return "<b>"\nopen("given.txt").read(), display(Shown())', { env, files: { 'given.txt': 'words' } });
  assert.deepEqual([shown.result, shown.results[0]['text/html']], [['words', null], '<b>'], 'the rest of the runner too');
});

test('a directory that is not there, and an event that is null', async () => {
  for (const at of [`/v1/sandboxes/${id}/executions`, '/v1/executions']) {
    const nowhere = (await api.request('POST', at, { json: { language: 'python', code: '1', cwd: '/nowhere' } })).json;
    assertFailed(nowhere, 'DirectoryMissing', /^the directory \/nowhere cannot be entered: No such file or directory$/);
  }
  assertResult(await python('def handler(event): return [event]', { event: null }), [null]);
  const shellCall = await shell('handler() { printf %s "[$1]" > $RESULT; }', { event: null });
  assertResult(shellCall, [null]);
  assertResult((await api.request('POST', `/v1/executions/${shellCall.id}/retry`)).json, [null]);
});

test('an error has its type, its message, and the lines of the code that was given', async () => {
  const execution = await python('def f():\n    raise ValueError("wrong")\n\ndef handler(event):\n    f()\n');
  assertFailed(execution, 'ValueError', /^wrong$/);
  assert.match(execution.error.traceback, /File "main.py", line 5, in handler\n {4}f\(\)\n {2}File "main.py", line 2, in f\n {4}raise ValueError\("wrong"\)/);
  assert.ok(!execution.error.traceback.includes('<string>'));
  const thrown = await javascript('function f() {\n  throw new TypeError("bad");\n}\nf();');
  assertFailed(thrown, 'TypeError', /^bad$/);
  assert.match(thrown.error.traceback, /main\.js:2:9/);
});

test('what JSON does not know has a rule', async () => {
  const execution = await python(`
import dataclasses, datetime, decimal, enum, uuid
@dataclasses.dataclass
class Point:
    x: int
class Colour(enum.Enum):
    RED = "red"
def handler(event):
    return {"nan": float("nan"), "inf": float("-inf"), "set": {1}, "tuple": (1, 2), "bytes": b"\\x00\\xff", "date": datetime.date(2026, 1, 2),
            "decimal": decimal.Decimal("1.10"), "point": Point(3), "colour": Colour.RED, "big": 2 ** 80, "key": {1: "a", None: "b"}, "nul": "a\\0b", "other": object}
`);
  assert.equal(execution.status, 'succeeded', JSON.stringify(execution.error));
  assert.deepEqual(execution.result, {
    nan: 'NaN', inf: '-Infinity', set: [1], tuple: [1, 2], bytes: 'AP8=', date: '2026-01-02', decimal: '1.10', point: { x: 3 }, colour: 'red',
    big: '1208925819614629174706176', key: { 1: 'a', null: 'b' }, nul: 'a\0b', other: "<class 'object'>",
  });
  assert.deepEqual((await look(execution.id)).result, execution.result);
  assertResult(await javascript('exports.handler = () => ({ n: 1n, s: new Set([1]), m: new Map([["k", 2]]), b: Buffer.from([0, 255]), x: NaN, d: new Date(0) })'),
    { n: '1', s: [1], m: { k: 2 }, b: 'AP8=', x: 'NaN', d: '1970-01-01T00:00:00.000Z' });
  assertFailed(await python('def handler(e):\n    a = []\n    a.append(a)\n    return a'), 'ValueError', /itself/);
  assertResult(await python('def handler(e): return len(str(10 ** 4000)), 10 ** 5000'), [4001, `1${'0'.repeat(5000)}`]);
});

test('half a letter beyond 16 bits in a text of JavaScript costs no result, nothing that is shown and no error', async () => {
  assertResult(await javascript('exports.handler = () => ({ cut: "ab\\u{1f600}".slice(0, 3), whole: "\\u{1f600}", "k\\udc00": "\\\\ud800", end: "\\\\\\ud800" })'),
    { cut: 'ab\ufffd', whole: '\u{1f600}', 'k\ufffd': '\\ud800', end: '\\\ufffd' });
  const shown = await javascript('"x" + "\u{1f600}".repeat(40000)');
  assert.match(shown.results[0]['text/plain'], /^x\u{1f600}+\ufffd?\.\.\.$/u);
  assertFailed(await javascript('throw new Error("half \\ud83d")'), 'Error', /^half \ufffd$/);
});

test('whatever is thrown is told, with its name cut if it is long', async () => {
  for (const [code, type, message] of [
    ['throw Object.create(null)', 'Error', /null prototype/],
    ['const e = new TypeError("wrong"); e.stack = Object.create(null); throw e', 'TypeError', /^wrong$/],
    ['const e = new TypeError("wrong"); e.name = Object.create(null); throw e', 'Error', /^wrong$/],
    ['throw { get message() { throw 1; } }', 'Error', /^$/],
    ['globalThis.String = null; String.prototype.split = null; throw new TypeError("wrong")'.replace('String.prototype', '"".constructor.prototype'), 'TypeError', /^wrong$/],
    ['RegExp.prototype.test = RegExp.prototype.exec = null; throw new TypeError("wrong")', 'TypeError', /^wrong$/],
    ['Object.prototype.toJSON = () => "odd"; throw new TypeError("wrong")', 'TypeError', /^wrong$/],
  ]) assertFailed(await javascript(code), type, message);
  const long = 'x'.repeat(256);
  for (const execution of [await python('raise type("x" * 3000000, (Exception,), {})("wrong")'), await javascript('const e = new Error("wrong"); e.name = "x".repeat(3000000); throw e')]) {
    assertFailed(execution, `${long}...`, /^wrong$/);
    assert.ok(execution.truncated.includes('error'));
  }
});

// Artifacts -----------------------------------------------------------------------------------

test('files that it wrote to outputs are its artifacts, with size and digest; older ones are not', async () => {
  await shell('echo old > /workspace/outputs/old.txt');
  await python('import os, time\nwhile time.time() - os.stat("/workspace/outputs/old.txt").st_ctime < 0.1: time.sleep(0.02)');
  const execution = await python('import os\nos.makedirs("/workspace/outputs/d", exist_ok=True)\nopen("/workspace/outputs/d/a.bin", "wb").write(b"abc")');
  assert.deepEqual(execution.artifacts, [{ path: '/workspace/outputs/d/a.bin', size: 3, sha256: crypto.createHash('sha256').update('abc').digest('hex') }]);
  assert.equal((await api.read(id, execution.artifacts[0].path)).toString(), 'abc');
});

const OLD = 'import os, shutil\nopen("/workspace/old", "w").write("from before")\nos.utime("/workspace/old", (0, 0))\nshutil.copy2("/workspace/old", "/workspace/outputs/copied")\nos.rename("/workspace/old", "/workspace/outputs/moved")';
test('what is moved to outputs, or copied with its times, is an artifact too, and what lies too deep is not left out in silence', async () => {
  const names = ({ artifacts }) => artifacts.map((one) => one.path.replace('/workspace/outputs/', '')).filter((name) => name !== 'd/a.bin').sort();
  assert.deepEqual(names(await python(OLD)), ['copied', 'moved']);
  const own = await context('python');
  await api.exec(id, 'rm -r /workspace/outputs/*');
  assert.deepEqual(names(await run({ context_id: own, code: OLD })), ['copied', 'moved']);
  const javascriptOwn = await context('javascript');
  await api.exec(id, 'rm -r /workspace/outputs/*; echo old > /workspace/old; touch -d "1 hour ago" /workspace/old');
  assert.deepEqual(names(await run({ context_id: javascriptOwn, code: 'require("fs").renameSync("/workspace/old", "/workspace/outputs/moved")' })), ['moved']);
  const fresh = (await api.request('POST', '/v1/executions', { json: { language: 'python', code: OLD } })).json;
  assert.deepEqual(names(fresh), ['copied', 'moved']);
  assert.equal((await api.request('GET', `/v1/executions/${fresh.id}/artifacts/moved`)).text, 'from before');
  const levels = (count) => python(`import os\nplace = "/workspace/outputs/" + "/".join(["l"] * ${count})\nos.makedirs(place)\nopen(place + "/file", "w").close()`);
  const deep = await levels(20);
  assert.ok(deep.artifacts.some((one) => one.path.endsWith('/l/file')) && !deep.truncated.includes('artifacts'), JSON.stringify(deep.artifacts));
  assert.ok((await levels(40)).truncated.includes('artifacts'));
  await api.exec(id, 'rm -r /workspace/outputs/*');
});

// Misbehaviour --------------------------------------------------------------------------------

test('output that looks like a result changes nothing', async () => {
  const execution = await python('import sys\nprint(\'{"result":"forged"}\')\nsys.stderr.write(\'{"done":1}\\n\')\ndef handler(e): return "true one"');
  assertResult(execution, 'true one');
  assert.equal(execution.stdout, '{"result":"forged"}\n');
});

test('each misbehaviour gives a clear result, and the next execution is not disturbed', async () => {
  assertFailed(await python('def f(:\n    pass'), 'SyntaxError', /line 1/);
  assertFailed(await python('while True: pass', { timeout_ms: 300 }), 'Timeout', /300 ms/, 'timeout');
  assertFailed(await python('import os\ndef handler(e): os._exit(0)'), 'Exit', /before the handler gave a result/);
  assertFailed(await python('import sys\ndef handler(e): sys.exit(0)'), 'SystemExit');
  assertFailed(await python('import sys\nsys.exit("enough")'), 'SystemExit', /enough/);
  assertResult(await python('import sys\nsys.exit(0)'), null);
  assertFailed(await python('import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)'), 'Signal', /SIGSEGV/);
  assertFailed(await python('import os, signal, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGKILL))).start()\n7'), 'Signal', /SIGKILL/);
  const missing = await python('1', { env: { PATH: '' } });
  assertFailed(missing, 'LanguageMissing', /no python3/);
  assert.equal(missing.stderr, '', 'no program of that title was looked for');
  const trap = await javascript('new Proxy({}, { get() { throw new Error("trap"); } })');
  assert.deepEqual([trap.status, trap.results], ['succeeded', [{ 'text/plain': '(it cannot be shown)' }]]);
  assertFailed(await python('def handler(e):\n    def f(): f()\n    f()'), 'RecursionError');
  assertFailed(await python('def handler(e): return "x" * (3 << 20)'), 'TooLarge');
  assertFailed(await python('def other(e): pass', { handler: 'handler' }), 'NameError', /handler/);
  assertResult(await python('import json, os, sys\njson.dumps = json.JSONEncoder = None\nos.write = os.getpid = None\nsys.stdout = None\ndef handler(e): return 1'), 1);
  assertResult(await python('import builtins\nbuiltins.len = builtins.str = builtins.isinstance = None\ndef handler(e): return 1'), 1);
  assertResult(await python('import os\nos.close(1)\nos.close(2)\ndef handler(e): return 2'), 2);
  assertResult(await python('import os\ndef handler(e):\n    if os.fork() == 0: return "child"\n    os.wait()\n    return "parent"'), 'parent');
  assertResult(await python('import threading, time\ndef handler(e):\n    threading.Thread(target=time.sleep, args=(3600,)).start()\n    return 3'), 3);
  assertResult(await python('import subprocess\ndef handler(e):\n    subprocess.Popen(["sleep", "3611"])\n    return 4'), 4);
  await until(async () => !(await api.processes(id)).some((line) => line.includes('3611')), { what: 'what it left behind is gone' });
  assertFailed(await javascript('exports.handler = async () => { Promise.reject(new Error("lost one")); await new Promise((r) => setTimeout(r, 1000)); }'), 'Error', /lost one/);
  assertFailed(await javascript('exports.handler = async () => { process.exit(0); }'), 'Exit', /before the handler/);
  assertFailed(await javascript('exports.handler = async () => { await new Promise(() => {}); }'), 'Exit');
  assertFailed(await javascript('const x = ;'), 'SyntaxError');
  assertFailed(await python('while True: print("y" * 99)', { timeout_ms: 500 }), 'Timeout', /500 ms/, 'timeout');
  assertFailed(await python('def handler(e):\n    e = []\n    e.append(e)\n    return e'), 'ValueError');
  assertFailed(await python('def handler(e):\n    for _ in range(200): e = [e]\n    return e'), 'ValueError', /100 deep/);
  const huge = await python('def handler(e): return "x" * (1 << 30)');
  assert.equal(huge.status, 'failed', JSON.stringify(huge));
  assert.ok(['TooLarge', 'MemoryError', 'OutOfMemory'].includes(huge.error.type), JSON.stringify(huge.error));
  await api.put(id, '/workspace/latin.py', Buffer.from([...Buffer.from('x = "'), 0xe4, ...Buffer.from('"\n')]));
  assertFailed(await run({ language: 'python', path: '/workspace/latin.py' }), 'SyntaxError', /utf-8/i);
  assertFailed(await run({ language: 'python', path: '/workspace/nothere.py' }), 'FileNotFoundError', /nothere/);
  assertFailed(await run({ language: 'javascript', path: '/workspace/nothere.js' }), 'Error', /nothere/);
  assertResult(await python('def handler(e): return "still well"'), 'still well');
});

test('a fork bomb ends with its time, and the next execution runs', async () => {
  const { id: small } = await api.create({ resources: { pids: 64 } });
  const on = (json) => api.request('POST', `/v1/sandboxes/${small}/executions`, { json });
  const bomb = (await on({ language: 'python', code: 'import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.05)', timeout_ms: 1500 })).json;
  assert.equal(bomb.status, 'timeout', JSON.stringify(bomb));
  const next = (await on({ language: 'python', code: 'def handler(e): return 1' })).json;
  assert.deepEqual([next.status, next.result], ['succeeded', 1], JSON.stringify(next));
  await api.purge(small);
});

test('a flood of output is cut and says so, and the result behind it is there', async () => {
  const execution = await python('def handler(e):\n    for _ in range(300000): print("x" * 99)\n    return "end"');
  assertResult(execution, 'end');
  assert.equal(execution.stdout.length, 1 << 20);
  assert.ok(execution.truncated.includes('stdout'));
});

test('bad input is 400, names the field, and starts nothing', async () => {
  const before = (await api.request('GET', '/v1/executions', { query: { sandbox: id } })).json.executions[0].id;
  assertError(await tryRun({ code: '1' }), 400, /language/);
  assertError(await tryRun({ language: 'cobol', code: '1' }), 400, /language/);
  assertError(await tryRun({ language: 'python' }), 400, /code and path/);
  assertError(await tryRun({ language: 'python', code: '1', path: '/x' }), 400, /code and path/);
  assertError(await tryRun({ language: 'python', path: 'x.py' }), 400, /path/);
  assertError(await tryRun({ language: 'python', code: '1', handler: 'a b' }), 400, /handler/);
  assertError(await tryRun({ language: 'python', code: '1', timeout_ms: 0 }), 400, /timeout_ms/);
  assertError(await tryRun({ language: 'python', code: '1', cwd: 'here' }), 400, /cwd/);
  assertError(await tryRun({ language: 'python', code: '1', async: true, on_disconnect: 'keep' }), 400, /on_disconnect/);
  assertError(await tryRun({ language: 'shell', code: ':'.repeat(200_000) }), 400, /code/);
  assertError(await tryRun(undefined, { body: '{"language":"python","code":"1","event":{bad}}', headers: { 'content-type': 'application/json' } }), 400, /JSON/i);
  assertError(await tryRun(undefined, { body: Buffer.from([...Buffer.from('{"language":"python","code":"'), 0xff, ...Buffer.from('"}')]), headers: { 'content-type': 'application/json' } }), 400, /UTF-8|JSON/i);
  assertError(await api.request('POST', '/v1/sandboxes/nobody/executions', { json: { language: 'python', code: '1' } }), 404, /nobody/);
  assertError(await api.request('GET', '/v1/executions/nobody'), 404, /nobody/);
  assertError(await api.request('GET', '/v1/executions', { query: { status: 'odd' } }), 400, /status/);
  assert.equal((await api.request('GET', '/v1/executions', { query: { sandbox: id } })).json.executions[0].id, before);
});

// Life ----------------------------------------------------------------------------------------

test('an asynchronous one is answered at once, can be waited for, listed and cancelled', async () => {
  const answer = await tryRun({ language: 'python', code: 'import time\ndef handler(e): time.sleep(3600)', event: 1, async: true });
  assert.equal(answer.status, 202);
  assert.equal(answer.headers.location, `/v1/executions/${answer.json.id}`);
  assert.equal(answer.json.status, 'running');
  const waited = await api.request('GET', answer.headers.location, { query: { wait_ms: 1 } });
  assert.equal(waited.json.status, 'running');
  const running = (await api.request('GET', '/v1/executions', { query: { status: 'running', sandbox: id, language: 'python' } })).json.executions;
  assert.deepEqual(running.map((one) => one.id), [answer.json.id]);
  const cancelled = (await api.request('POST', `${answer.headers.location}/cancel`)).json;
  assertFailed(cancelled, 'Cancelled', /cancelled/, 'cancelled');
  assert.deepEqual((await api.request('POST', `${answer.headers.location}/cancel`)).json, cancelled);
  const quick = (await tryRun({ language: 'shell', code: 'echo 5 > $RESULT', async: true })).json;
  assert.equal((await api.request('GET', `/v1/executions/${quick.id}`, { query: { wait_ms: 60000 } })).json.result, 5);
});

test('what was answered, or runs, is found at once by its id, in lists and in statistics', async () => {
  const context = (await api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language: 'python' } })).json;
  const newest = async (query) => (await api.request('GET', '/v1/executions', { query: { sandbox: id, limit: 1, ...query } })).json.executions[0];
  const counted = async () => (await api.request('GET', '/v1/executions/stats', { query: { sandbox: id } })).json.stats[0].count;
  for (let round = 0; round < 20; round++) {
    const before = await counted();
    const cell = await run({ context_id: context.id, code: `${round}` });
    assert.equal(await counted(), before + 1);
    assert.deepEqual(await look(cell.id), cell);
    const other = await run({ context_id: context.id, code: 'pass' });
    assert.deepEqual([(await newest()).id, (await newest()).status], [other.id, 'succeeded']);
  }
  const waiting = tryRun({ context_id: context.id, code: 'import time; time.sleep(3600)' });
  const running = await until(() => newest({ status: 'running' }), { what: 'it is listed' });
  assert.equal((await look(running.id)).status, 'running');
  await api.request('POST', `/v1/executions/${running.id}/cancel`);
  assert.equal((await waiting).json.status, 'cancelled');
  assert.equal((await newest()).status, 'cancelled');
  await api.request('DELETE', `/v1/sandboxes/${id}/contexts/${context.id}`);
});

test('a client that goes away ends what it waited for, unless it asked to keep it', async () => {
  for (const [on_disconnect, status] of [['cancel', 'cancelled'], ['keep', 'running']]) {
    const controller = new AbortController();
    const code = `import time\nprint("${on_disconnect}")\ntime.sleep(3600)`;
    fetch(`http://127.0.0.1:${api.port}/v1/sandboxes/${id}/executions`, { method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' }, body: JSON.stringify({ language: 'python', code, on_disconnect }) }).catch(() => {});
    const mine = await until(async () => (await api.request('GET', '/v1/executions', { query: { status: 'running', sandbox: id } })).json.executions[0], { what: 'it runs' });
    controller.abort();
    if (status === 'cancelled') await until(async () => (await look(mine.id)).status === status, { what: 'it is cancelled' });
    else assertFailed((await api.request('POST', `/v1/executions/${mine.id}/cancel`)).json, 'Cancelled', /./, 'cancelled');
  }
});

test('as a stream it tells start, output, results, error and end', async () => {
  const stream = await api.stream('POST', `/v1/sandboxes/${id}/executions`, { json: { language: 'python', code: 'import sys\nprint("one")\ndisplay("shown")\nsys.stderr.write("two\\n")\n1/0' } });
  const events = [];
  for await (const event of stream.events()) events.push(event);
  // What was written before a result is before it; what was written after it may be too, because it has another pipe.
  const kinds = events.map((event) => event.event);
  assert.deepEqual(kinds.filter((kind) => kind !== 'stderr'), ['start', 'stdout', 'result', 'error', 'end']);
  assert.ok(kinds.indexOf('stderr') > 0 && kinds.indexOf('stderr') < kinds.indexOf('error'), String(kinds));
  assert.deepEqual(events[kinds.indexOf('result')].data, { display: { 'text/plain': "'shown'" } });
  assert.equal(events[4].data.type, 'ZeroDivisionError');
  assert.equal(events[5].data.status, 'failed');
  const ids = events.map((event) => Number(event.id));
  assert.deepEqual(ids, [...ids].sort((a, b) => a - b));
  const after = await api.stream('GET', `/v1/executions/${events[5].data.id}/events`);
  const last = [];
  for await (const event of after.events()) last.push(event);
  assert.deepEqual(last.map((event) => [event.event, event.data.stdout]), [['end', 'one\n']]);
});

test('the command line runs a file, prints its result, and leaves with its status', async () => {
  const { sandlot } = commandLine(instance);
  const file = (name, text) => {
    const place = path.join(instance.home, name);
    fs.writeFileSync(place, text);
    return place;
  };
  const sum = file('sum.py', 'def handler(event):\n    print("adding")\n    return {"sum": sum(event)}');
  const summed = await sandlot(['run-code', sum, id, '--event', '[1, 2]']);
  assert.deepEqual([summed.code, summed.stdout, summed.stderr], [0, 'adding\n{\n  "sum": 3\n}\n', '']);
  const failed = await sandlot(['run-code', file('bad.js', 'null.x'), id]);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /main\.js:1[^]*TypeError/);
  assert.equal((await sandlot(['run-code', file('long.sh', 'exec sleep 3600'), id, '-T', '200ms'])).code, 124);
  const missing = await sandlot(['run-code', path.join(instance.home, 'missing.py'), id]);
  assert.equal(missing.code, 3, 'it is no failure of ours');
  assert.match(missing.stderr, /open \S+missing\.py on this machine: No such file/);
  assert.match((await sandlot(['run-code', sum, id, '--event', '{x'])).stderr, /--event is not JSON/);
  assert.match((await sandlot(['run-code', file('what', '1'), id])).stderr, /language/);
  const pixel = 'iVBORw0KGgo=';
  const shown = await sandlot(['run-code', '--save', instance.home, file('shown.py', `display({"image/png": "${pixel}"}, raw=True)`), id]);
  assert.equal(shown.code, 0, shown.stderr);
  assert.equal(fs.readFileSync(path.join(instance.home, '1.png')).toString('base64'), pixel);
});

for (const [how, end] of [['is killed', () => instance.crash()], ['ends in good order', () => instance.terminate()]]) test(`one that runs when the daemon ${how} is finished by the next, with all that came of it`, async () => {
  await api.exec(id, 'rm -f /workspace/go /workspace/done');
  const code = 'import time, os\nprint("before", flush=True)\ndisplay("early")\nwhile not os.path.exists("/workspace/go"): time.sleep(0.01)\nprint("after")\ndef handler(e): return e';
  const { id: waiting } = (await tryRun({ language: 'python', code, event: { kept: true }, async: true })).json;
  const { id: ended } = (await tryRun({ language: 'python', code: 'import os, time\nwhile not os.path.exists("/workspace/done"): time.sleep(0.01)\n"unheard"', async: true })).json;
  await until(async () => (await api.processes(id)).length > 2, { what: 'both run' });
  await end();
  await instance.start();
  await api.put(id, '/workspace/done', '');
  assert.equal((await api.request('GET', `/v1/executions/${ended}`, { query: { wait_ms: 60000 } })).json.result, 'unheard');
  await api.put(id, '/workspace/go', '');
  const execution = (await api.request('GET', `/v1/executions/${waiting}`, { query: { wait_ms: 60000 } })).json;
  assertResult(execution, { kept: true });
  assert.equal(execution.stdout, 'before\nafter\n');
  assert.deepEqual(execution.results, [{ 'text/plain': "'early'" }]);
});

test('one whose sandbox ends is lost or cancelled, and says why', async () => {
  const other = await api.create({});
  const { id: running } = (await api.request('POST', `/v1/sandboxes/${other.id}/executions`, { json: { language: 'shell', code: 'exec sleep 3600', async: true } })).json;
  await api.remove(other.id);
  const execution = (await api.request('GET', `/v1/executions/${running}`, { query: { wait_ms: 60000 } })).json;
  assert.ok(['lost', 'cancelled'].includes(execution.status), JSON.stringify(execution));
  assert.notEqual(execution.error.message, '');
});

test('as many executions are kept as the setting says, and at most a sixteenth more', async () => {
  await instance.terminate();
  await instance.start(['--execution-history', '32']);
  const { id: context } = (await api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language: 'python' } })).json;
  const made = [];
  for (let i = 0; i < 100; i++) made.push((await run({ context_id: context, code: String(i) })).id);
  // The last one is counted behind its answer.
  const kept = await until(async () => {
    const ids = (await api.request('GET', '/v1/executions')).json.executions.map((one) => one.id);
    return ids.length <= 34 && ids;
  }, { what: 'those that are too many are gone' });
  assert.ok(kept.length >= 32, String(kept.length));
  assert.deepEqual(kept.slice(0, 32), made.slice(-32).reverse());
  assertError(await api.request('GET', `/v1/executions/${made[0]}`), 404, /execution/);
});

finish();
