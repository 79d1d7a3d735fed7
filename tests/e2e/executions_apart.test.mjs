// SPDX-License-Identifier: Apache-2.0
// Interpreters that loaded modules ahead, and owners who run code at the same time: what one has of sockets, files,
// threads, processes and random numbers is nobody else's, and works as if it had been loaded when the code came.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive, python } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { assertNothingRemains } from './lib/remains.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { ulid } from './lib/values.mjs';
import { eachLimit, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('executions_apart', { runtimePool: 'auto,python=3,javascript=2', width: 4 });
const alice = await ownerApi(api, 'alice', 'one');
const bob = await ownerApi(api, 'bob', 'two');

async function run(body, as = api, where = '/v1/executions') {
  const answer = await as.request('POST', where, { json: body });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/** A module that does when it is loaded all that makes an interpreter unfit to be forked. */
const LOADED = `import asyncio, atexit, os, random, select, signal, socket, subprocess, sys, tempfile, threading, uuid

print("printed while it was loaded")
print("and told as an error", file=sys.stderr)
PID = os.getpid()
ENVIRONMENT = dict(os.environ)
os.chdir("/tmp")
os.environ["SET_BY_MODULE"] = "yes"

# Sockets and pipes
left, right = socket.socketpair()
server = socket.create_server(("127.0.0.1", 0))
reader, writer = os.pipe()
poll = select.epoll()
poll.register(right, select.EPOLLIN)

# Files
log = open("/tmp/loaded.log", "w+")
log.write("begun\\n")
log.flush()
unnamed = tempfile.TemporaryFile()
unnamed.write(b"held")
unnamed.seek(0)

# Threads and locks
ticks = 0
stop = threading.Event()
lock = threading.Lock()
def tick():
    global ticks
    while not stop.wait(0.001):
        with lock:
            ticks += 1
thread = threading.Thread(target=tick, daemon=True)
thread.start()

# Child processes
child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
if os.fork() == 0:
    os._exit(0)
os.wait()

# Random numbers
generator = random.Random()
first = [random.random(), generator.random(), os.urandom(8).hex(), str(uuid.uuid4()), next(tempfile._get_candidate_names()), hash("seed")]

# Event loops and signals
loop = asyncio.new_event_loop()
caught = []
signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(number))
atexit.register(lambda: log.write("over"))
`;
/** Says what it finds of all that, having used each. */
const HANDLER = `import loaded, os, random, signal, socket, sys, threading
AHEAD = "loaded" in sys.modules and loaded.PID == os.getpid()
def handler(event):
    loaded.left.sendall(event.encode())
    ready = loaded.poll.poll(1)
    echo = loaded.right.recv(99).decode()
    with socket.create_connection(loaded.server.getsockname()) as one:
        other, _ = loaded.server.accept()
        other.sendall(event.encode())
        other.close()
        answer = one.recv(99).decode()
    os.write(loaded.writer, event.encode())
    loaded.log.write(event + "\\n")
    loaded.log.seek(0)
    loaded.child.stdin.write(event.encode())
    loaded.child.stdin.close()
    os.kill(os.getpid(), signal.SIGUSR1)
    before = loaded.ticks
    while loaded.ticks == before:
        pass
    print("said", event)
    return {
        "ahead": loaded.PID == os.getpid(), "echo": [echo, answer, os.read(loaded.reader, 99).decode(), len(ready)], "file": [loaded.log.read(), loaded.unnamed.read().decode(), os.listdir("/tmp")],
        "threads": [loaded.thread.is_alive(), threading.active_count(), len(os.listdir("/proc/self/task"))], "lock": loaded.lock.acquire(timeout=5),
        "child": [loaded.child.stdout.read().decode(), loaded.child.wait(), os.getppid() >= 0], "caught": loaded.caught == [signal.SIGUSR1],
        "loop": loaded.loop.run_until_complete(loaded.asyncio.sleep(0, "ran")), "directory": os.getcwd(),
        "environment": [loaded.ENVIRONMENT.get("SECRET"), os.environ.get("SECRET"), os.environ.get("SET_BY_MODULE")],
        "random": loaded.first + [random.random(), loaded.generator.random()]}`;

async function putSnake(who) {
  const layers = [tar(python(['json', 'traceback', 'resource', 'asyncio', 'ast', 'uuid', 'tempfile', 'subprocess', 'socket', 'select', 'signal', 'random', 'atexit', 'threading', 'encodings.idna'])), [...busybox(), { name: 'usr/lib/python3.11/loaded.py', data: LOADED }]];
  const body = layoutArchive(image(layers, { config: { Env: ['PATH=/bin'] }, compress: (data) => zlib.gzipSync(data, { level: 1 }) }));
  const answer = await who.request('PUT', '/v1/templates/snake/archive', { body, headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
  const put = await who.request('PUT', '/v1/functions/uses', { json: { language: 'python', template: 'snake', imports: ['loaded'], code: HANDLER, env: { SECRET: 'of-the-call' } } });
  assert.equal(put.status, 200, put.text);
}

test('modules that open sockets, files, threads, child processes and seeds when they are loaded work in each call, and no two share any of it', async () => {
  for (const who of [alice, bob]) await putSnake(who);
  const seen = [];
  /** A call that found its modules loaded ahead; what others find is the same but for that. */
  const call = async (who, word) => {
    const answer = await who.request('POST', '/v1/functions/uses/invoke', { json: word });
    assert.equal(answer.status, 200, answer.text);
    const { random, ...same } = answer.json;
    seen.push(random);
    assert.deepEqual(same, {
      ahead: true, echo: [word, word, word, 1], file: [`begun\n${word}\n`, 'held', ['loaded.log']], threads: [true, 2, 2], lock: true, child: [word, 0, true], caught: true, loop: 'ran',
      directory: same.directory, environment: [same.environment[0], 'of-the-call', 'yes'],
    });
    const execution = (await who.request('GET', `/v1/executions/${answer.headers['sandlot-execution']}`)).json;
    if (execution.metrics.start !== 'warm') return null;
    // It waited without the environment of the call, and what was printed then is nobody's.
    assert.equal(same.environment[0], null);
    assert.equal(execution.stdout, `said ${word}\n`, JSON.stringify(execution));
    return execution;
  };
  for (let i = 0; i < 3; i++) {
    await until(() => call(alice, `alice-${i}`), { what: 'an interpreter had loaded it', every: 200 });
    await until(() => call(bob, `bob-${i}`), { what: 'an interpreter had loaded it', every: 200 });
  }
  await eachLimit(['a', 'b', 'c', 'd', 'e', 'f'], 3, (word, i) => call(i % 2 ? alice : bob, word));
  for (let at = 0; at < seen[0].length; at++) assert.equal(new Set(seen.map((numbers) => numbers[at])).size, seen.length, `random number ${at}: ${JSON.stringify(seen)}`);
});

test('a module that ends its interpreter, or leaves it broken, costs its own calls alone', async () => {
  const modules = { exits: 'import os\nos._exit(3)', raises: 'raise RuntimeError("while it was loaded")', hides: 'import sys\nsys.stdout = sys.stderr = None\nimport builtins\nbuiltins.print = None', waits: 'import time\ntime.sleep(3600)' };
  const files = Object.entries(modules).map(([name, data]) => ({ name: `usr/lib/python3.11/of_${name}.py`, data }));
  const layers = [tar(python()), [...busybox(), ...files]];
  const put = await alice.request('PUT', '/v1/templates/broken/archive', { body: layoutArchive(image(layers, { config: { Env: ['PATH=/bin'] }, compress: (data) => zlib.gzipSync(data, { level: 1 }) })), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  for (const [name, wanted] of [['exits', 'Exit'], ['raises', 'RuntimeError'], ['hides', null], ['waits', 'Timeout']]) {
    const function_ = { language: 'python', template: 'broken', imports: [`of_${name}`], code: `import of_${name}\ndef handler(event): return event`, timeout_ms: name === 'waits' ? 1000 : 60000 };
    assert.equal((await alice.request('PUT', `/v1/functions/${name}`, { json: function_ })).status, 200);
    for (let i = 0; i < 3; i++) {
      const answer = await alice.request('POST', `/v1/functions/${name}/invoke`, { json: i });
      const { status, error, result } = (await alice.request('GET', `/v1/executions/${answer.headers['sandlot-execution']}`)).json;
      if (wanted) assert.equal(error?.type, wanted, `${name}: ${answer.text}`);
      else assert.deepEqual([status, result], ['succeeded', i]);
      assert.deepEqual((await run({ language: 'python', template: 'broken', code: 'def handler(e): return "well"' }, alice)).result, 'well');
    }
    assert.equal((await alice.request('DELETE', `/v1/functions/${name}`)).status, 204);
  }
});

test('executions of several owners at the same time never share an interpreter, nor anything that one of them leaves', async () => {
  const MARKS = {
    python: `import builtins, os, socket, sys, time, uuid
def handler(event):
    seen = [getattr(builtins, "owner", None), getattr(sys, "owner", None), os.environ.get("OWNER_SEEN"), os.path.exists("/tmp/owner"), os.path.exists("/workspace/owner"), os.path.exists("/dev/shm/owner")]
    builtins.owner = sys.owner = os.environ["OWNER_SEEN"] = event["owner"]
    builtins.token = getattr(builtins, "token", None) or str(uuid.uuid4())
    for place in ("/tmp/owner", "/workspace/owner", "/dev/shm/owner"):
        open(place, "w").write(event["owner"])
    time.sleep(0.02)
    kept = {open(place).read() for place in ("/tmp/owner", "/workspace/owner", "/dev/shm/owner")} | {builtins.owner, sys.owner, os.environ["OWNER_SEEN"]}
    return {"seen": seen, "kept": list(kept), "token": builtins.token, "given": os.environ.get("GIVEN"), "pids": sum(name.isdigit() for name in os.listdir("/proc"))}`,
    javascript: `const fs = require("fs");
exports.handler = async (event) => {
  const places = ["/tmp/owner", "/workspace/owner", "/dev/shm/owner"];
  const seen = [globalThis.owner ?? null, process.owner ?? null, process.env.OWNER_SEEN ?? null, ...places.map((place) => fs.existsSync(place))];
  globalThis.owner = process.owner = process.env.OWNER_SEEN = event.owner;
  globalThis.token ??= require("crypto").randomUUID();
  for (const place of places) fs.writeFileSync(place, event.owner);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const kept = new Set([...places.map((place) => fs.readFileSync(place, "utf8")), globalThis.owner, process.owner, process.env.OWNER_SEEN]);
  return { seen, kept: [...kept], token: globalThis.token, given: process.env.GIVEN, pids: fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)).length };
};`,
  };
  const owners = { alice, bob, admin: api };
  const tokens = new Set();
  let warm = 0;
  const jobs = Array.from({ length: process.env.E2E_FULL ? 600 : 72 }, (_, i) => [Object.keys(owners)[i % 3], i % 4 === 3 ? 'javascript' : 'python', i]);
  await eachLimit(jobs, 6, async ([owner, language, i]) => {
    const word = `${owner}-${i}`;
    const execution = await run({ language, code: MARKS[language], event: { owner: word }, env: { GIVEN: word } }, owners[owner]);
    assert.equal(execution.status, 'succeeded', JSON.stringify(execution));
    const { seen, kept, token, given } = execution.result;
    assert.deepEqual([seen, kept, given], [[null, null, null, false, false, false], [word], word]);
    assert.ok(!tokens.has(token), 'an interpreter ran twice');
    tokens.add(token);
    warm += execution.metrics.start === 'warm' ? 1 : 0;
    for (const [other, who] of Object.entries(owners)) if (other !== owner) assertError(await who.request('GET', `/v1/executions/${execution.id}`), 404);
  });
  assert.equal(tokens.size, jobs.length);
  assert.ok(warm > 0, 'some had waited');
});

test('contexts of two owners know nothing of each other, also with one id in the place of another', async () => {
  const made = {};
  for (const [name, who] of Object.entries({ alice, bob })) {
    const { id } = await who.create({ name: 'notebook' });
    const { id: context } = (await who.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language: 'python' } })).json;
    made[name] = { who, id, context };
  }
  await eachLimit(Array.from({ length: 24 }, (_, i) => ['alice', 'bob'][i % 2]), 6, async (name) => {
    const { who, id, context } = made[name];
    const execution = await run({ context_id: context, code: `import builtins\nbuiltins.mine = getattr(builtins, "mine", set()) | {${JSON.stringify(name)}}\nsorted(builtins.mine)` }, who, `/v1/sandboxes/${id}/executions`);
    assert.deepEqual([execution.status, execution.result], ['succeeded', [name]], JSON.stringify(execution));
  });
  assertError(await alice.request('POST', `/v1/sandboxes/${made.alice.id}/executions`, { json: { context_id: made.bob.context, code: '1' } }), 404);
  assertError(await alice.request('POST', `/v1/sandboxes/${made.bob.id}/executions`, { json: { context_id: made.bob.context, code: '1' } }), 404);
  for (const verb of ['interrupt', 'restart']) assertError(await alice.request('POST', `/v1/sandboxes/${made.alice.id}/contexts/${made.bob.context}/${verb}`), 404);
  for (const { who, id } of Object.values(made)) await who.purge(id);
});

test('an execution that is sent twice with one key runs twice, each is found at once, and the key stays free for a sandbox', async () => {
  const headers = { 'idempotency-key': `key-${ulid()}` };
  const ids = [];
  for (let i = 0; i < 2; i++) {
    const answer = await alice.request('POST', '/v1/executions', { json: { language: 'python', code: 'def handler(e): return 1' }, headers });
    const found = await alice.request('GET', `/v1/executions/${answer.json.id}`);
    assert.deepEqual([answer.json.status, found.status, found.json.status], ['succeeded', 200, 'succeeded']);
    ids.push(answer.json.id);
    const late = await alice.request('POST', '/v1/executions', { json: { language: 'python', code: 'def handler(e): return 1', async: true }, headers });
    assert.equal(late.status, 202);
    assert.equal((await alice.request('GET', `/v1/executions/${late.json.id}`)).status, 200);
    ids.push(late.json.id);
  }
  assert.equal(new Set(ids).size, 4);
  const made = await alice.request('POST', '/v1/sandboxes', { json: {}, headers });
  assert.equal(made.status, 201, made.text);
  await alice.purge(made.json.id);
});

test('when nothing waits any more, nothing of all of them is left', async () => {
  for (const who of [alice, bob]) {
    assert.equal((await who.request('DELETE', '/v1/functions/uses')).status, 204);
    for (const name of who === alice ? ['snake', 'broken'] : ['snake']) assert.equal((await who.request('DELETE', `/v1/templates/${name}`)).status, 204);
  }
  await instance.terminate();
  instance.usual = ['--runtime-pool', 'none'];
  await instance.start();
  await assertNothingRemains(instance, new Set());
});

finish();
