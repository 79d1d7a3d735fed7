// SPDX-License-Identifier: Apache-2.0
// Interpreters that wait for executions without a sandbox: each serves one, of one owner, and is gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

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

test('without the setting each starts cold, and says so', async () => {
  assert.equal((await run({ language: 'python', code: '1' })).metrics.start, 'cold');
});

test('interpreters wait, serve one execution each, and never two owners', async () => {
  await instance.terminate();
  await instance.start(['--runtime-pool', 'python=2,javascript=1,python@host=1']);
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
  assert.equal((await warm({ language: 'python', code: '6 * 7', template: 'host' })).result, 42);
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
  await instance.start();
  await until(() => instance.sandboxInits().length === 0, { what: 'nothing waits any more' });
  assert.equal((await run({ language: 'python', code: '1' })).metrics.start, 'cold');
});

finish();
