// SPDX-License-Identifier: Apache-2.0
// Interpreters that wait for executions without a sandbox: each serves one, of one owner, and is gone.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { busybox, image, layoutArchive, python } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { eachLimit, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('runtime_pool');

async function run(body, as = api) {
  const answer = await as.request('POST', '/v1/executions', { json: body });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

const MARK = 'import builtins, os\ndef handler(e):\n    seen = getattr(builtins, "mark", None), os.path.exists("/workspace/mark")\n    builtins.mark = e\n    open("/workspace/mark", "w").write("x")\n    return [e, *seen, os.environ.get("X")]';

/** Runs until an interpreter had waited for it. */
const warm = (body, as = api) => until(async () => {
  const execution = await run(body, as);
  assert.equal(execution.status, 'succeeded', JSON.stringify(execution));
  return execution.metrics.start === 'warm' ? execution : null;
}, { what: 'an interpreter waits', every: 200 });

const waiting = () => instance.sandboxInits().length;

/** How many sandboxes have a process whose name begins so. */
const waitingOf = (name) => instance.sandboxInits().filter(({ pid }) => proc.descendants([pid]).some(({ comm }) => comm.startsWith(name))).length;

test('with the setting none each starts cold, and says so', async () => {
  for (let i = 0; i < 2; i++) assert.equal((await run({ language: 'python', code: '1' })).metrics.start, 'cold');
  await until(() => waiting() === 0, { what: 'nothing is left of them' });
  await instance.terminate();
  for (const bad of ['shell=1', 'python', 'python=65', 'auto=1', 'python@nothere=1']) {
    const { code, said } = await instance.refusal(['--runtime-pool', bad]);
    assert.notEqual(code, 0, bad);
    assert.match(said, /runtime-pool/);
  }
});

test('by itself a daemon has those wait that were asked for, from the second call on', async () => {
  instance.usual = [];
  await instance.start();
  assert.equal(waiting(), 0, 'nothing waits before anybody asked');
  assert.equal((await run({ language: 'python', code: '1' })).metrics.start, 'cold');
  await warm({ language: 'python', code: '1' });
  await warm({ language: 'javascript', code: 'exports.handler = () => 1;' });
  assert.equal((await run({ language: 'shell', code: 'true' })).metrics.start, 'cold');
  await eachLimit([...Array(24).keys()], 12, async () => assert.equal((await run({ language: 'python', code: '1' })).status, 'succeeded'));
  await until(() => waitingOf('python') === 4, { what: 'four wait of Python, of which there were not enough' });
  // On a busy machine node may have been asked for twice before one waited, so that one was not enough either.
  await until(() => waitingOf('node') >= 1, { what: 'at least one waits of node' });
});

test('an owner with many functions of all sorts does not cost the others those that wait for everybody', async () => {
  const greedy = await ownerApi(api, 'greedy', 'one');
  const modules = ['abc', 'base64', 'bisect', 'calendar', 'cmd', 'code', 'colorsys', 'copy', 'csv', 'difflib', 'dis', 'filecmp', 'fnmatch', 'getopt', 'glob', 'heapq'];
  for (const name of modules) {
    const answer = await greedy.request('PUT', `/v1/functions/of-${name}`, { json: { language: 'python', code: 'def handler(e): return 1', imports: [name] } });
    assert.equal(answer.status, 200, answer.text);
    const called = await greedy.request('POST', `/v1/functions/of-${name}/invoke`, { json: {} });
    assert.equal(called.json, 1, called.text);
  }
  await until(() => waiting() === 12, { what: 'as many wait as may wait that the setting does not name' });
  const other = await ownerApi(api, 'modest', 'one');
  assert.equal((await run({ language: 'javascript', code: 'exports.handler = () => 1;' }, other)).metrics.start, 'warm');
  assert.equal((await run({ language: 'python', code: '1' }, other)).metrics.start, 'warm');
});

test('one waits of an image of an owner, for that owner, and for the image as it is now', async () => {
  const eve = await ownerApi(api, 'images', 'eve');
  const snake = tar(python());
  const put = async (who, note) => {
    const layers = [snake, [...busybox(), { name: 'etc/note', data: note }]];
    const answer = await who.request('PUT', '/v1/templates/snake/archive', { body: layoutArchive(image(layers, { config: { Env: ['PATH=/bin', 'KEPT=yes'] }, compress: (data) => zlib.gzipSync(data, { level: 1 }) })), headers: { 'content-type': 'application/x-tar' } });
    assert.equal(answer.status, 200, answer.text);
  };
  await put(api, 'first');
  await put(eve, 'hers');
  const body = { language: 'python', template: 'snake', code: 'import os\ndef handler(e):\n    return [open("/etc/note").read(), os.environ["KEPT"]]' };
  for (const [who, note] of [[api, 'first'], [eve, 'hers'], [api, 'first']]) assert.deepEqual((await warm(body, who)).result, [note, 'yes']);
  await put(api, 'second');
  for (let i = 0; i < 2; i++) assert.deepEqual((await run(body)).result, ['second', 'yes'], 'none of the version before is given');
  assert.deepEqual((await warm(body)).result, ['second', 'yes']);
  assert.equal((await eve.request('DELETE', '/v1/templates/snake')).status, 204, 'what waits does not keep a template');
  const gone = await eve.request('POST', '/v1/executions', { json: body });
  assert.ok(gone.status >= 400 && gone.status < 500, gone.text);
});

test('a template without the interpreter says so each time, and nothing waits in vain', async () => {
  const answer = await api.request('PUT', '/v1/templates/bare/archive', { body: layoutArchive(image([busybox()], { config: { Env: ['PATH=/bin'] } })), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
  for (let i = 0; i < 3; i++) {
    const { status, error } = await run({ language: 'python', template: 'bare', code: '1' });
    assert.deepEqual([status, error.type], ['failed', 'LanguageMissing']);
  }
});

test('what an interpreter loads before its code comes does not count against its processor time, and its code does', async () => {
  await instance.terminate();
  await instance.start(['--runtime-pool', 'auto', '--cpu', '0.05']);
  const imports = ['json', 'traceback', 'asyncio', 'unittest', 'xml.dom.minidom', 'email.mime.text', 'http.client', 'sqlite3', 'ctypes', 'pydoc'];
  const read = (dir, name) => proc.quiet(() => fs.readFileSync(path.join(dir, name), 'utf8').trim(), '');
  const number = (text, name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
  /** Of the sandbox that waits: its quota, how often it was held back for that, and the quota that it used. */
  const figures = () => {
    const [throttled, usage, quota] = instance.cgroups().filter((dir) => /\/[0-9a-z]{26}$/.test(dir)).map((dir) => {
      const text = read(dir, 'cpu.stat');
      const used = number(text, 'usage_usec') || Number(read(dir, 'cpuacct.usage')) / 1000;
      return [number(text, 'nr_throttled'), used, parseInt(read(dir, 'cpu.max') || read(dir, 'cpu.cfs_quota_us'), 10)];
    }).reduce((sum, one) => sum.map((value, i) => Math.max(value, one[i] || 0)), [0, 0, 0]);
    return { throttled, used: usage / 5000, quota };
  };
  assert.equal((await api.request('PUT', '/v1/functions/loads', { json: { language: 'python', code: 'import time\ndef handler(e):\n    end = time.process_time() + 0.05\n    while time.process_time() < end: pass\n    return 1', imports } })).status, 200);
  const waiting = await until(() => {
    const found = figures();
    return found.quota === 5000 && found.used > 8 ? found : null;
  }, { what: 'an interpreter with its imports waits, with the limit of its sandbox' });
  assert.ok(waiting.throttled < waiting.used / 2, JSON.stringify(waiting));
  const called = await api.request('POST', '/v1/functions/loads/invoke', { json: {}, query: { async: 'true' } });
  await until(() => figures().throttled > waiting.throttled + 3, { what: 'its code is held back' });
  assert.equal((await api.request('GET', `/v1/executions/${called.json.id}`, { query: { wait_ms: '60000' } })).json.metrics.start, 'warm');
  assert.equal((await api.request('DELETE', '/v1/functions/loads')).status, 204);
});

test('interpreters wait, serve one execution each, and never two owners', async () => {
  await instance.terminate();
  await instance.start(['--templates', 'host,browser', '--runtime-pool', 'python=2,javascript=1,python@browser=1']);
  const eve = await ownerApi(api, 'other', 'eve');
  for (let i = 0; i < 4; i++) {
    const execution = await warm({ language: 'python', code: MARK, event: i, env: { X: 'y' } }, i % 2 ? eve : api);
    assert.deepEqual(execution.result, [i, null, false, 'y']);
    assert.equal(execution.sandbox_id, null);
  }
  assert.deepEqual((await warm({ language: 'javascript', code: 'exports.handler = async (e) => [e, process.env.X];', event: 1, env: { X: 'y' } })).result, [1, 'y']);
  assert.equal((await run({ language: 'python', code: '1', resources: { memory: '128Mi' } })).metrics.start, 'cold');
  assert.deepEqual(await api.all(), []);
});

test('one waits of a template that the setting names', async () => {
  assert.equal((await warm({ language: 'python', code: '6 * 7', template: 'browser' })).result, 42);
});

test('what a function imports is loaded before its code comes, for its calls alone', async () => {
  const invoke = (name) => until(async () => {
    const answer = await api.request('POST', `/v1/functions/${name}/invoke`, { json: {} });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }, { what: 'its imports were loaded ahead', every: 200 });
  const put = async (name, json) => assert.equal((await api.request('PUT', `/v1/functions/${name}`, { json })).status, 200);
  const ahead = 'import sys\nAHEAD = "xml.dom.minidom" in sys.modules\ndef handler(e):\n    return AHEAD';
  await put('reads', { language: 'python', code: ahead, imports: ['nothere', 'xml.dom.minidom'] });
  assert.equal(await invoke('reads'), true);
  const [{ id: called }] = (await api.request('GET', '/v1/executions', { query: { function: 'reads' } })).json.executions;
  await until(async () => {
    const again = (await api.request('POST', `/v1/executions/${called}/retry`)).json;
    assert.deepEqual([again.status, again.function], ['succeeded', 'reads']);
    return again.result;
  }, { what: 'a retry of a call finds its imports loaded', every: 200 });
  await put('packs', { language: 'javascript', code: 'const ahead = process.moduleLoadList.includes("NativeModule zlib");\nexports.handler = () => ahead;', imports: ['nothere', 'node:zlib'] });
  assert.equal(await invoke('packs'), true);
  assert.equal((await warm({ language: 'python', code: ahead })).result, false);
  await put('fails', { language: 'python', code: 'import nothere\ndef handler(e): pass', imports: ['nothere'] });
  const failed = await api.request('POST', '/v1/functions/fails/invoke', { json: {} });
  assert.equal(failed.status, 502);
  assert.match(failed.text, /ModuleNotFoundError/);
});

test('two interpreters that waited have nothing in common that programs take for their own', async () => {
  const python = `import os, random, sys, tempfile, threading, time, uuid
def handler(e):
    fds = [os.readlink("/proc/self/fd/%s" % n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/%s" % n)]
    environ = open("/proc/self/environ").read() + open("/proc/self/cmdline").read()
    return {"random": random.random(), "bytes": os.urandom(8).hex(), "uuid": str(uuid.uuid4()), "hash": hash("seed"), "name": next(tempfile._get_candidate_names()),
            "pid": os.getpid() == int(os.readlink("/proc/self")), "threads": threading.active_count(), "tasks": len(os.listdir("/proc/self/task")),
            "sockets": [one for one in fds if "socket" in one or "/" == one[:1] and not one.startswith(("/dev", "/proc"))], "now": time.time() * 1000,
            "given": "only-here" in environ, "seen": os.environ.get("SECRET"), "names": sorted(n for n in vars(sys.modules["main"]) if n == "left")}`;
  const javascript = 'exports.handler = () => ({ random: Math.random(), bytes: require("crypto").randomBytes(8).toString("hex"), uuid: require("crypto").randomUUID(), now: Date.now() });';
  for (const [language, code] of [['python', python], ['javascript', javascript]]) {
    const before = Date.now();
    const [one, two] = [(await warm({ language, code, env: { SECRET: 'only-here' } })).result, (await warm({ language, code, env: { SECRET: 'only-here' } })).result];
    for (const name of ['random', 'bytes', 'uuid', 'hash', 'name']) if (name in one) assert.notEqual(one[name], two[name], name);
    assert.ok(one.now >= before - 1000 && two.now >= one.now, 'the time is that of the call');
    if (language === 'python') {
      for (const seen of [one, two]) {
        assert.deepEqual([seen.pid, seen.threads, seen.tasks, seen.sockets, seen.names], [true, 1, 1, [], []]);
        assert.deepEqual([seen.given, seen.seen], [false, 'only-here'], 'a secret was not there while it waited');
      }
    }
  }
});

test('an interpreter that rehearsed has nothing of that, and a handler in it is called by its own request', async () => {
  const script = await warm({ language: 'python', code: 'import logging, os, sys\n[sorted(n for n in os.environ if n.startswith(("AWS_", "LAMBDA_", "_HANDLER"))), sys.modules["__main__"].__name__, len(logging.getLogger().handlers), "handler" in globals()]' });
  assert.deepEqual(script.result, [[], '__main__', 0, false]);
  const code = 'import logging, os\nlogging.getLogger().warning("seen")\ndef handler(event, context): return [context.aws_request_id, os.environ["AWS_LAMBDA_LOG_STREAM_NAME"] == context.log_stream_name, os.environ["_HANDLER"]]';
  const called = await warm({ language: 'python', code, event: 1 });
  assert.deepEqual(called.result, [called.id, true, 'main.handler']);
  assert.ok(called.stdout.includes(called.id) || called.stderr.includes(called.id), 'it logs as of this request');
});

test('of many that waited no two have anything in common, and each is new', async () => {
  const count = process.env.E2E_FULL ? 1000 : 16;
  const code = `import os, random, ssl, sys, tempfile, threading, uuid
def handler(e):
    numbers = [random.random(), random.randrange(1 << 60), random.SystemRandom().random(), hash("seed"), os.urandom(8).hex(), ssl.RAND_bytes(8).hex(), str(uuid.uuid4()), next(tempfile._get_candidate_names())]
    try:
        import numpy
        numbers.append(float(numpy.random.random()))
    except ImportError:
        pass
    fds = sorted(os.readlink("/proc/self/fd/" + n).split(":")[0] for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n))
    return {"numbers": numbers, "same": [os.getpid(), threading.active_count(), fds, os.getcwd(), sorted(os.environ), sorted(os.listdir("/tmp")), len(os.listdir("/proc/self/task"))]}`;
  const seen = [];
  await eachLimit(Array.from({ length: count }, (_, i) => i), 3, async () => seen.push((await warm({ language: 'python', code })).result));
  assert.equal(seen.length, count);
  for (let at = 0; at < seen[0].numbers.length; at++) assert.equal(new Set(seen.map(({ numbers }) => numbers[at])).size, count, `number ${at}`);
  for (const { same } of seen) assert.deepEqual(same, seen[0].same);
});

/** In a sandbox of its own, each of these ends as it should, and the next is well. */
const BAD = [
  ['python', 'def f(:\n    pass', 'failed', 'SyntaxError'],
  ['python', 'def handler(e):\n    while True: pass', 'timeout', 'Timeout', { timeout_ms: 500 }],
  ['python', 'def handler(e):\n    while True: print("y" * 99)', 'timeout', 'Timeout', { timeout_ms: 700 }],
  ['python', 'import os\ndef handler(e):\n    while True:\n        try: os.fork()\n        except OSError: pass', 'timeout', 'Timeout', { timeout_ms: 1500 }],
  ['python', 'import os\ndef handler(e): os._exit(0)', 'failed', 'Exit'],
  ['python', 'import os\ndef handler(e): os._exit(7)', 'failed', 'Exit'],
  ['python', 'import sys\ndef handler(e): sys.exit(0)', 'failed', 'SystemExit'],
  ['python', 'import os, signal\ndef handler(e): os.kill(os.getpid(), signal.SIGTERM)', 'failed', 'Signal'],
  ['python', 'import os, signal\ndef handler(e): os.kill(os.getpid(), signal.SIGKILL)', 'failed', 'Signal'],
  ['python', 'import os, sys\ndef handler(e):\n    os.close(1)\n    sys.stderr.close()\n    sys.stdout = None\n    return 1', 'succeeded', 1],
  ['python', 'import builtins, json, os, sys, time\ndef handler(e):\n    json.dumps = json.loads = os.write = os.listdir = os.times = time.process_time = builtins.len = None\n    return 2', 'succeeded', 2],
  ['python', 'import signal\nsignal.pause = None\nimport _signal\n_signal.pause = None\ndef handler(e): return 3', 'succeeded', 3],
  ['python', 'import threading\ndef spin():\n    while True: pass\ndef handler(e):\n    threading.Thread(target=spin).start()\n    return 4', 'succeeded', 4],
  ['python', 'import subprocess\ndef handler(e):\n    subprocess.Popen(["sh", "-c", "while :; do echo late; done"])\n    return 5', 'succeeded', 5],
  ['python', 'def handler(e): return "x" * (3 << 20)', 'failed', 'TooLarge'],
  ['python', 'def handler(e):\n    def f(): f()\n    f()', 'failed', 'RecursionError'],
  ['python', 'import signal, os\nsignal.signal(signal.SIGCHLD, lambda *_: 1 / 0)\ndef handler(e):\n    if os.fork() == 0: os._exit(0)\n    return 6', null, null],
  // Whoever finds the descriptor of results lies about this one call alone.
  ['python', 'import os\ndef handler(e):\n    for n in os.listdir("/proc/self/fd"):\n        try: os.write(int(n), b"{\\"result\\": nonsense\\n" + b"x" * 300000 + b"\\n{\\"result\\":\\"forged\\"}\\n{\\"done\\":{\\"cpu_us\\":-5,\\"memory\\":1e99,\\"outputs\\":\\"?\\"}}\\n")\n        except (OSError, ValueError): pass\n    while True: pass', null, null, { timeout_ms: 3000 }],
  ['javascript', 'const x = ;', 'failed', 'SyntaxError'],
  ['javascript', 'exports.handler = async () => { for (;;); };', 'timeout', 'Timeout', { timeout_ms: 500 }],
  ['javascript', 'exports.handler = async () => { Promise.reject(new Error("lost")); await new Promise((r) => setTimeout(r, 5000)); };', 'failed', 'Error'],
  ['javascript', 'exports.handler = async () => { await Promise.resolve().then(() => process.exit(0)); };', 'failed', 'Exit'],
  ['javascript', 'exports.handler = async () => { setInterval(() => console.log("late"), 1); return 7; };', 'succeeded', 7],
  ['javascript', 'JSON.stringify = JSON.parse = Buffer.from = require("fs").writeSync = Atomics.wait = null;\nexports.handler = () => 8;', 'succeeded', 8],
];

test('each misbehaviour in a sandbox of its own gives a clear result, and the next is not disturbed', async () => {
  for (const [language, code, status, outcome, more] of BAD) {
    const execution = await run({ language, code, event: 0, ...more });
    if (status) assert.deepEqual([execution.status, execution.status === 'succeeded' ? execution.result : execution.error.type], [status, outcome], `${code}: ${JSON.stringify(execution).slice(0, 2000)}`);
    const next = await run({ language, code: language === 'python' ? 'def handler(e): return "well"' : 'exports.handler = () => "well";' });
    assert.deepEqual([next.status, next.result, next.stdout], ['succeeded', 'well', ''], code);
  }
  assert.deepEqual(await api.all(), []);
});

test('files of a handler are artifacts also if it is answered before its interpreter ends', async () => {
  const wrote = await warm({ language: 'python', code: 'def handler(e):\n    open("/workspace/outputs/a.txt", "w").write("abc")\n    return 1' });
  assert.deepEqual(wrote.artifacts.map(({ path, size }) => [path, size]), [['/workspace/outputs/a.txt', 3]]);
  const node = await warm({ language: 'javascript', code: 'exports.handler = () => { require("fs").writeFileSync("/workspace/outputs/b", "b"); return 1; };' });
  assert.equal(node.artifacts.length, 1);
  const script = await warm({ language: 'python', code: 'import atexit\natexit.register(lambda: print("last", open("/workspace/outputs/late", "w").write("z")))\n6 * 7' });
  assert.deepEqual([script.result, script.stdout, script.artifacts.length], [42, 'last 1\n', 1]);
  assert.ok(wrote.metrics.peak_memory_bytes > 1 << 20 && wrote.metrics.cpu_ms >= 0);
});

test('one that waited runs out of time, fails and streams as any other', async () => {
  await warm({ language: 'python', code: '1' });
  const late = await run({ language: 'python', code: 'while True: pass', timeout_ms: 300 });
  assert.equal(late.status, 'timeout');
  const failed = await run({ language: 'python', code: 'def handler(e):\n    print("out")\n    1/0', event: 1 });
  assert.deepEqual([failed.status, failed.error.type, failed.stdout], ['failed', 'ZeroDivisionError', 'out\n']);
  const input = await warm({ language: 'python', code: 'import sys\nsys.stdin.read()', stdin: 'given' });
  assert.equal(input.result, 'given');
});

test('a daemon that is killed leaves none of them behind', async () => {
  await warm({ language: 'python', code: '1' });
  await instance.crash();
  await instance.start(['--runtime-pool', 'none']);
  await until(() => instance.sandboxInits().length === 0, { what: 'nothing waits any more' });
  assert.equal((await run({ language: 'python', code: '1' })).metrics.start, 'cold');
});

finish();
