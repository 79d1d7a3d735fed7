// SPDX-License-Identifier: Apache-2.0
// Ports: what listens in a sandbox and who listens there, what is told when that changes, and what a hostile
// sandbox can make of it.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError, parseEvents } from './lib/client.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Processes } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('ports');
const { ok } = commandLine(instance);
const ps = new Processes(api);
const path = (id) => `/v1/sandboxes/${id}/ports`;

async function list(id) {
  const answer = await api.request('GET', path(id));
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
const ports = async (id) => (await list(id)).ports;

/** Starts a program that listens on [[address, port], ...] and waits until it does; its process. */
async function listen(id, places, { user, before = '', command } = {}) {
  const script = `${before}
import socket, time
held = []
for address, port in ${JSON.stringify(places)}:
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ':' in address: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, port)); s.listen(); held.append(s)
print('ready', flush=True)
time.sleep(10000)
`;
  await api.put(id, '/tmp/listen.py', script);
  const process = await ps.start(id, { command: command ?? 'exec python3 /tmp/listen.py', user });
  await ps.untilOutput(id, process.id, 'ready');
  return process;
}

/** The events of a sandbox, as they come. */
class Events {
  constructor(response, request) {
    this.all = [];
    this.taken = 0;
    this.request = request;
    (async () => { for await (const event of parseEvents(response)) this.all.push(event); })().catch(() => {});
  }

  static open(id) {
    return new Promise((resolve, reject) => {
      const request = api.open('GET', `/v1/sandboxes/${id}/events`, { agent: new http.Agent() }, (error, response) => {
        if (error) return reject(error);
        assert.equal(response.statusCode, 200);
        return resolve(new Events(response, request));
      });
    });
  }

  /** The next event of a port, as "opened 3000". */
  async port() {
    for (;;) {
      await until(() => this.all.length > this.taken, { what: 'an event comes' });
      const { event, data } = this.all[this.taken++];
      if (event.startsWith('port.')) return { ...data, what: `${event.slice(5)} ${data.port}` };
    }
  }

  async next(what) {
    const event = await this.port();
    assert.equal(event.what, what);
    return event;
  }

  close() {
    this.request.destroy();
  }
}

// What is there ----------------------------------------------------------------------------------

test('a sandbox in which nothing listens has no ports, also with a way out', async () => {
  const { id } = await api.create();
  assert.deepEqual(await list(id), { ports: [], next_cursor: null, truncated: false });
  const { id: open } = await api.create({ network: { mode: 'internet' } });
  await api.out(open, 'true');
  assert.deepEqual(await list(open), { ports: [], next_cursor: null, truncated: false }, "the daemon's own sockets are not the sandbox's");
});

test('each port is told with its address, the program and the process, and whether one gets there', async () => {
  const { id } = await api.create({ ports: [3000, 3002], private: true });
  const places = [['127.0.0.1', 3000], ['0.0.0.0', 3001], ['::1', 3002], ['::', 3003], ['127.0.0.2', 3004]];
  const process = await listen(id, places);
  const found = await ports(id);
  assert.deepEqual(found.map((one) => [one.address, one.port]), places);
  assert.deepEqual(found.map((one) => one.reachable), [true, true, true, true, false]);
  for (const one of found) {
    assert.equal(one.command, 'python3');
    assert.equal(one.pid, process.pid);
    assert.equal(one.process, process.id);
    assert.equal(one.public, false);
  }
  const shown = found.filter((one) => one.preview_url);
  assert.deepEqual(shown.map((one) => one.port), [3000, 3002], 'those that its owner shows');
  assert.match(shown[0].preview_url, new RegExp(`^http://s-${id}-3000\\.preview\\.localhost:\\d+$`));
});

test('ports of a sandbox that is not private are public', async () => {
  const { id } = await api.create({ ports: [3000], private: false });
  await listen(id, [['0.0.0.0', 3000], ['0.0.0.0', 3001]]);
  assert.deepEqual((await ports(id)).map((one) => [one.port, one.public]), [[3000, true], [3001, false]]);
});

test('whoever listens is found: children, root, and those in a cell', async () => {
  const { id } = await api.create();
  const child = await listen(id, [['127.0.0.1', 4000]], { command: 'python3 /tmp/listen.py & wait' });
  const root = await listen(id, [['127.0.0.1', 4002]], { user: 'root' });
  const isolated = await ps.start(id, { command: 'exec python3 -m http.server 4004', isolate: true });
  await until(async () => (await ports(id)).length === 3, { what: 'the one in the cell listens' });
  const found = Object.fromEntries((await ports(id)).map((one) => [one.port, one]));
  assert.equal(found[4000].process, child.id);
  assert.notEqual(found[4000].pid, child.pid);
  assert.equal(found[4002].process, root.id);
  assert.equal(found[4002].pid, root.pid);
  assert.equal(found[4004].process, isolated.id);
});

test('whoever left its session is known by the process it came of, also when that has ended', async () => {
  const { id } = await api.create();
  const daemon = await listen(id, [['127.0.0.1', 4001]], { command: 'setsid -f python3 /tmp/listen.py; sleep 10000' });
  assert.equal((await ports(id))[0].process, daemon.id);
  const left = await ps.start(id, { command: "setsid -f python3 -m http.server 4003 >/dev/null 2>&1; true" });
  await until(async () => (await ports(id)).find((one) => one.port === 4003), { what: 'a port of one that was left behind' });
  assert.equal((await ports(id)).find((one) => one.port === 4003).process, left.id);
});

test('node too, on what it takes for all addresses', async () => {
  const { id } = await api.create();
  const process = await ps.start(id, { command: `exec node -e "require('http').createServer().listen(5000, () => console.log('ready'))"` });
  await ps.untilOutput(id, process.id, 'ready');
  const [one] = await ports(id);
  assert.deepEqual({ ...one, command: undefined }, { address: '::', port: 5000, pid: process.pid, command: undefined, process: process.id, reachable: true, preview_url: null, public: false });
  assert.match(one.command, /^(node|MainThread)$/);
});

test('several sockets at one place are one port', async () => {
  const { id } = await api.create();
  const reuse = 'import socket\nsocket.SO_REUSEADDR = socket.SO_REUSEPORT';
  await listen(id, [['127.0.0.1', 3000], ['127.0.0.1', 3000]], { before: reuse });
  assert.deepEqual((await ports(id)).map((one) => one.port), [3000]);
});

test('the list wakes nobody, and is no use of a sandbox', async () => {
  const { id } = await api.create();
  await listen(id, [['127.0.0.1', 3000]]);
  const before = (await api.get(id)).last_active_at;
  assert.equal((await ports(id)).length, 1);
  assert.equal((await api.get(id)).last_active_at, before);
  await api.life(id, 'stop');
  assert.deepEqual(await list(id), { ports: [], next_cursor: null, truncated: false });
  assert.equal((await api.get(id)).status, 'stopped');
});

test('ports of a paused sandbox are not known, and do not close', async () => {
  const { id } = await api.create();
  await listen(id, [['127.0.0.1', 3000]]);
  const events = await Events.open(id);
  await events.next('opened 3000');
  await api.life(id, 'pause');
  assertError(await api.request('GET', path(id)), 409);
  await api.life(id, 'resume');
  assert.equal((await ports(id)).length, 1);
  await listen(id, [['127.0.0.1', 3001]]);
  await events.next('opened 3001');
  events.close();
});

test('ports of another owner are 404', async () => {
  const { id } = await api.create();
  const stranger = await ownerApi(api, 'elsewhere', 'eve');
  assertError(await stranger.request('GET', path(id)), 404);
  stranger.disconnect();
});

test('sandlot ports prints a table', async () => {
  const { id } = await api.create({ ports: [3000], private: false });
  const { pid } = await listen(id, [['127.0.0.1', 3000], ['127.0.0.2', 3001], ['::1', 3002]]);
  const [heading, ...rows] = (await ok(['ports', id])).trimEnd().split('\n').map((line) => line.split(/ {2,}/));
  assert.deepEqual(heading, ['PORT', 'ADDRESS', 'PID', 'COMMAND', 'PROCESS', 'PREVIEW']);
  assert.deepEqual(rows.map((row) => row.slice(0, 4)), [['3000', '127.0.0.1', `${pid}`, 'python3'], ['3001', '127.0.0.2', `${pid}`, 'python3'], ['3002', '::1', `${pid}`, 'python3']]);
  assert.match(rows[0][5], /^http:\/\/s-.*-3000.* \(public\)$/);
  assert.deepEqual(rows.slice(1).map((row) => row[5]), ['not reachable from outside', '-']);
  assert.deepEqual(JSON.parse(await ok(['ports', '-o', 'json', id])), await list(id));
});

// What happens -----------------------------------------------------------------------------------

test('events tell of ports that are open, that open and that close, with who it is', async () => {
  const { id } = await api.create();
  const first = await listen(id, [['127.0.0.1', 3000]]);
  const events = await Events.open(id);
  assert.equal((await events.next('opened 3000')).process, first.id, 'one that was open before');
  const second = await listen(id, [['::1', 3001]]);
  const { at, ...event } = await events.next('opened 3001');
  assert.ok(Date.parse(at));
  assert.deepEqual(event, { what: 'opened 3001', sandbox: id, address: '::1', port: 3001, pid: second.pid, command: 'python3', process: second.id, reachable: true });
  const late = await Events.open(id);
  assert.deepEqual([(await late.port()).port, (await late.port()).port], [3000, 3001], 'who comes later hears of all');
  await ps.kill(id, first.id);
  for (const one of [events, late]) assert.equal((await one.next('closed 3000')).process, first.id);
  await listen(id, [['127.0.0.1', 3000]]);
  await events.next('opened 3000');
  events.close();
  late.close();
});

test('what is open closes with the sandbox, and events go on with its next start', async () => {
  const { id } = await api.create();
  await listen(id, [['127.0.0.1', 3000]]);
  const events = await Events.open(id);
  await events.next('opened 3000');
  await api.life(id, 'stop');
  await events.next('closed 3000');
  assert.equal((await api.get(id)).status, 'stopped', 'following wakes nobody');
  await listen(id, [['127.0.0.1', 3001]]);
  await events.next('opened 3001');
  events.close();
});

test('a port that a silent process opens late is told too', async () => {
  const { id } = await api.create();
  const events = await Events.open(id);
  const { id: process } = await ps.start(id, { command: 'sleep 4; exec python3 -m http.server 3000 2>/dev/null >/dev/null' });
  assert.equal((await events.next('opened 3000')).process, process);
  events.close();
});

test('nothing is looked at while nobody follows', async () => {
  const { id } = await api.create();
  await listen(id, [['127.0.0.1', 3000]]);
  const events = await Events.open(id);
  await events.next('opened 3000');
  events.close();
  // A helper would have taken a pid: those that are given out now are the commands' own.
  const pid = async () => Number(await api.out(id, 'echo $$'));
  await until(async () => {
    const first = await pid();
    await new Promise((resolve) => { setTimeout(resolve, 1200); });
    return await pid() - first <= 2;
  }, { what: 'nobody takes pids' });
});

// A hostile sandbox ------------------------------------------------------------------------------

test('names of programs cannot do harm', async () => {
  const { id } = await api.create();
  const before = `
import ctypes
ctypes.CDLL(None).prctl(15, b'a\\x1b[2J"\\\\\\n\\xff)\\xc3b', 0, 0, 0)`;
  await listen(id, [['127.0.0.1', 3000]], { before });
  const events = await Events.open(id);
  assert.equal((await ports(id))[0].command, 'a?[2J"\\??)?b');
  assert.equal((await events.next('opened 3000')).command, 'a?[2J"\\??)?b');
  assert.match(await ok(['ports', id]), /a\?\[2J"\\\?\?\)\?b/);
  events.close();
});

test('of thousands of ports some are told, and that there are more', async () => {
  const { id } = await api.create();
  const many = await ps.start(id, { user: 'root', command: `exec python3 -c "
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
try:
    for port in range(1024, 60000):
        s = socket.socket(); s.bind(('0.0.0.0', port)); s.listen(1); held.append(s)
except OSError: pass
print('ready', len(held), flush=True)
time.sleep(10000)"` });
  await ps.untilOutput(id, many.id, 'ready', 60_000);
  const count = Number(/ready (\d+)/.exec((await ps.read(id, many.id, { follow: false })).stdout)[1]);
  assert.ok(count > 1000, `it listens on ${count}`);
  const { ports: some, truncated } = await list(id);
  assert.equal(some.length, 128);
  assert.equal(truncated, true);
  assert.ok(some.every((one) => one.pid === many.pid && one.command === 'python3'));
  const events = await Events.open(id);
  const open = new Set();
  const follow = async () => {
    const [verb, port] = (await events.port()).what.split(' ');
    if (verb === 'opened') open.add(port);
    else assert.ok(open.delete(port), `${port} was closed and had not been opened`);
  };
  for (let i = 0; i < 128; i++) await follow();
  assert.equal(open.size, 128);
  await ps.kill(id, many.id);
  // A process that dies closes its ports one after the other, so others may be told of for a while.
  await listen(id, [['127.0.0.1', 61000]]);
  do await follow(); while (open.size !== 1 || !open.has('61000'));
  events.close();
});

test('one that does not answer keeps no other request of its owner waiting', async () => {
  const { id } = await api.create();
  const { pid } = await instance.initOf(id);
  let answered = 0;
  let asked;
  process.kill(pid, 'SIGSTOP');
  try {
    asked = Array.from({ length: 40 }, async () => {
      const answer = await api.request('GET', path(id), { agent: api.newAgent() });
      answered++;
      return answer;
    });
    for (let i = 0; i < 100; i++) assert.equal((await api.get(id)).status, 'running');
    assert.equal(answered, 0, 'these came first, and still wait');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  for (const answer of await Promise.all(asked)) assert.equal(answer.status, 200, answer.text);
});

test('who comes and goes while it is looked at is no trouble', async () => {
  const { id } = await api.create();
  // What is written has the ports looked at often, and each is there for a while.
  const storm = await ps.start(id, { command: `while :; do echo ready; python3 -c "
import socket, os, time
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
for i in range(20):
    if os.fork() == 0: os._exit(0)
time.sleep(0.1)
" ; done` });
  await ps.untilOutput(id, storm.id, 'ready');
  const events = await Events.open(id);
  for (let i = 0; i < 40; i++) {
    for (const one of await ports(id)) assert.ok(one.pid === null || one.command.length > 0);
  }
  await within('an event of the storm', events.port());
  events.close();
  assert.equal((await api.get(id)).status, 'running');
});

await finish();
