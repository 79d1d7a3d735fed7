// SPDX-License-Identifier: Apache-2.0
// What owners share: of each pool one owner takes all that it can get, and another owner and the operator are served
// as ever. The pools are small here, so that it takes few connections to fill them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import { after, test } from 'node:test';

import { Instance } from './lib/instance.mjs';
import { echoServer, nameServer } from './lib/outside.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Previews } from './lib/preview.mjs';
import * as proc from './lib/proc.mjs';
import { MI } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';

const API = 64, PREVIEWS = 32, EGRESS = 32, DOWNLOADS = 8, WORKERS = 16;
const names = await nameServer();
const echo = await echoServer();
const instance = new Instance('shares', { args: [
  '--api-connections', String(API), '--preview-connections', String(PREVIEWS), '--egress-connections', String(EGRESS),
  '--egress-lookups', '16', '--archive-downloads', String(DOWNLOADS), '--workers', String(WORKERS),
  '--resolver', `127.0.0.1:${names.port}`] });
after(async () => {
  await instance.shutdown();
  instance.destroy();
  names.close();
  echo.close();
});
await instance.start();

const admin = instance.api;
const bob = await ownerApi(admin, 'acme', 'bob');
const ann = await ownerApi(admin, 'acme', 'ann');
const open = new Set();

/** A connection that has sent this, from an address of the loopback; `text` is what came back. */
async function connection(bytes, { port = admin.port, from = '127.0.0.1', reads = true } = {}) {
  const socket = net.connect({ host: '127.0.0.1', port, localAddress: from });
  open.add(socket);
  socket.text = '';
  socket.on('error', () => {});
  socket.on('close', () => open.delete(socket));
  if (reads) socket.on('data', (data) => { socket.text = (socket.text + data.toString('latin1')).slice(0, 2000); });
  await within('a connection', once(socket, 'connect'));
  socket.write(bytes);
  return socket;
}

const head = (api, line, ...more) => `${[line, `Host: 127.0.0.1:${admin.port}`, `Authorization: Bearer ${api.token}`, ...more].join('\r\n')}\r\n\r\n`;
const status = (socket) => Number(/^HTTP\/1\.1 (\d+)/.exec(socket.text)?.[1]);
const answered = (sockets) => until(() => sockets.every((socket) => status(socket)), { what: 'all are answered' });
const times = (count) => Array.from({ length: count }, (_, i) => i);

/** As many of these connections as are needed until one is refused with this status; those before it were served. */
async function fill(most, expected, make) {
  const taken = [];
  for (let i = 0; i <= most; i++) {
    const socket = await make(i);
    await answered([socket]);
    if (status(socket) === expected) return taken;
    assert.equal(status(socket), 200, socket.text);
    taken.push(socket);
  }
  return assert.fail(`${taken.length} were served`);
}

async function leave() {
  for (const socket of open) socket.destroy();
  await until(() => open.size === 0, { what: 'all connections are closed' });
}

/** How long it takes, in ms. */
async function timed(fn) {
  const begun = performance.now();
  await fn();
  return performance.now() - begun;
}

// What somebody else's crowd may make of the usual time of a request. A machine that is busy with other things for some
// seconds is no fault of ours; waiting until the crowd has gone, or until a client gives up, takes longer than this.
const TIMES = 20, FLOOR_MS = 20_000;

/**
 * Does it while nobody is in its way, which gives its usual time. Returns a function that does it again and fails if
 * that takes far longer.
 */
async function usually(fn) {
  const usual = Math.max(await timed(fn), await timed(fn));
  return async () => {
    const took = await timed(fn);
    assert.ok(took <= Math.max(FLOOR_MS, TIMES * usual), `it takes ${took} ms, and ${usual} ms usually`);
  };
}

/** Whoever asks on a new connection is answered. */
async function served(...apis) {
  for (const api of apis) {
    api.disconnect();
    assert.equal((await api.request('GET', '/v1/sandboxes')).status, 200);
  }
}

const [mine, hers, own] = [await bob.create({ ports: [3000] }), await ann.create({ ports: [3000] }), await admin.create({ ports: [3000] })];

test('API connections: strangers who announce a body and send none of it are refused at once and keep nobody out', async () => {
  const others = await usually(() => served(ann, bob, admin));
  const stranger = (i) => connection(
    `POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\n${i % 4 < 2 ? '' : 'Authorization: Bearer slt_wrong\r\n'}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n`,
    { from: i % 2 ? '127.0.0.1' : '127.0.0.2' });
  for (const i of times(4)) {
    const socket = await stranger(i);
    await answered([socket]);
    assert.equal(status(socket), 401, socket.text);
  }
  // Of a crowd some are cut before they are read: how many depends on how fast they come.
  const crowd = await Promise.all(times(3 * API).map(stranger));
  await others();
  await until(() => crowd.every((socket) => status(socket) === 401 || socket.destroyed), { what: 'each is answered or was cut' });
  await leave();
});

test('API connections: strangers who send nothing at all give way', async () => {
  const others = await usually(() => served(ann, bob, admin));
  await Promise.all(times(3 * API).map((i) => connection('', { from: i % 2 ? '127.0.0.1' : '127.0.0.2' })));
  await others();
  await leave();
});

test('API connections: an owner has a quarter of them', async () => {
  const others = await usually(() => served(ann, admin));
  const taken = await fill(API, 429, () => connection(head(bob, `GET /v1/sandboxes/${mine.id}/events HTTP/1.1`)));
  assert.ok(taken.length <= API / 4, `${taken.length} of ${API}`);
  assert.ok(taken.length >= API / 4 - 2, `${taken.length} of ${API}`);
  await others();
  await leave();
  await until(async () => { bob.disconnect(); return (await bob.request('GET', '/v1/sandboxes')).status === 200; }, { what: 'there is room again' });
});

test('archive downloads: an owner has a quarter of them', async () => {
  const file = '/workspace/agent_workspace/large';
  for (const [api, { id }] of [[bob, mine], [ann, hers], [admin, own]]) await api.put(id, file, Buffer.alloc(16 * MI));
  const download = (api, id) => head(api, `GET /v1/sandboxes/${id}/files/archive?path=${file} HTTP/1.1`);
  const others = await usually(async () => {
    for (const [api, { id }] of [[ann, hers], [admin, own]]) assert.equal((await api.getArchive(id, file)).status, 200);
  });
  const taken = await fill(DOWNLOADS, 429, async () => {
    const socket = await connection(download(bob, mine.id));
    socket.once('data', () => socket.pause());
    return socket;
  });
  assert.equal(taken.length, DOWNLOADS / 4);
  await others();
  await leave();
});

test('archive uploads: an owner has a quarter of those who read them', async () => {
  const second = await bob.create();
  const upload = (api, id) => head(api, `PUT /v1/sandboxes/${id}/files/archive?path=/workspace/agent_workspace/in HTTP/1.1`, 'Content-Length: 100000');
  const others = await usually(async () => {
    for (const [api, { id }] of [[ann, hers], [admin, own]]) {
      const socket = await connection(upload(api, id));
      socket.write(Buffer.alloc(100_000)); // which is an archive without entries
      await answered([socket]);
      assert.equal(status(socket), 200, socket.text);
    }
  });
  // Its eighth of the threads is not enough for one sandbox to fill the pool.
  const sockets = await Promise.all(times(WORKERS / 2).map((i) => connection(upload(bob, [mine, second][i % 2].id))));
  await until(() => sockets.some((socket) => status(socket) === 429), { what: 'it has its share' });
  await others();
  await leave();
  await bob.purge(second.id);
});

const python = (api, id, code, extra = {}) => api.tryExec(id, { argv: ['python3', '-c', code], ...extra });

test('look-ups: an owner has a quarter of them', async () => {
  names.names = Object.fromEntries(times(40).map((i) => [`mute${i}.test`, null]));
  let round = 0;
  const others = await usually(async () => {
    for (const [api, { id }] of [[ann, hers], [admin, own]]) {
      const name = `found${round++}.test`; // a new one each time, which no cache has
      names.names[name] = '127.0.0.1';
      const found = await api.exec(id, { argv: ['python3', '-c', `import socket; print(len(socket.getaddrinfo('${name}', 80)) > 0)`], timeout_ms: 120_000 });
      assert.equal(found.stdout, 'True\n', found.stderr);
    }
  });
  const asking = await python(bob, mine.id, `import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server = [l.split()[1] for l in open('/etc/resolv.conf') if l.startswith('nameserver')][0]
n = 0
while True:
    for i in range(40):
        name = b''.join(struct.pack('B', len(l)) + l for l in (b'mute%d' % i, b'test')) + b'\\0'
        s.sendto(struct.pack('>6H', i, 0x100, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1), (server, 53))
    time.sleep(0.05)`, { background: true });
  assert.equal(asking.status, 201, asking.text);
  await until(() => names.asked.filter((name) => name.startsWith('mute')).length >= 4, { what: 'it asks' });
  await others();
  const waiting = new Set(names.asked.filter((name) => name.startsWith('mute')));
  assert.ok(waiting.size <= 16, `${waiting.size} names were asked for`);
  await bob.request('DELETE', `/v1/sandboxes/${mine.id}/processes/${asking.json.id}`);
});

test('connections of sandboxes: an owner has a quarter of them', async () => {
  names.names = { 'echo.test': '127.0.0.1' };
  const policy = { network: { mode: 'allowlist', allow: ['echo.test', `127.0.0.1:${echo.port}`] } };
  const dial = (count) => `import socket, time
kept = []
for i in range(${count}):
    try:
        one = socket.create_connection(('echo.test', ${echo.port}), 8)
        one.sendall(b'x')
        if one.recv(1): kept.append(one)
    except OSError: pass
open('/tmp/done', 'w').write(str(len(kept)))`;
  // Rules for addresses that are not public are the operator's to give.
  const trusted = (user) => ownerApi(admin, 'acme', user, ['admin']);
  const [many, other] = [await trusted('carl'), await trusted('dora')];
  const others = await usually(async () => {
    for (const api of [other, admin]) {
      const { id } = await api.create(policy);
      assert.equal((await api.exec(id, { argv: ['python3', '-c', `${dial(1)}\nprint(len(kept))`], timeout_ms: 120_000 })).stdout, '1\n');
      await api.purge(id);
    }
  });
  const sandboxes = await Promise.all(times(5).map(() => many.create(policy)));
  for (const { id } of sandboxes) await python(many, id, `${dial(EGRESS)}\ntime.sleep(600)`, { background: true });
  const taken = await Promise.all(sandboxes.map(({ id }) => until(async () => Number((await many.exec(id, 'cat /tmp/done')).stdout || NaN) + 1, { what: 'it has tried' })));
  const sum = taken.reduce((all, count) => all + count - 1, 0);
  assert.ok(sum <= EGRESS / 4, `${taken}`);
  assert.ok(sum >= EGRESS / 8, `${taken}`);
  await others();
  await Promise.all(sandboxes.map(({ id }) => many.purge(id)));
});

test('preview connections: those to one owner are a quarter of them', async () => {
  const APP = `require('http').createServer((req, res) => { res.writeHead(200); res.write('hello'); if (req.url !== '/open') res.end(); }).listen(3000, '127.0.0.1')`;
  const previews = [];
  for (const [api, sandbox] of [[bob, mine], [ann, hers], [admin, own]]) {
    const each = new Previews(api, sandbox);
    await api.request('POST', `/v1/sandboxes/${sandbox.id}/exec`, { json: { argv: ['node', '-e', APP], background: true } });
    await until(async () => (await each.request(3000, '/')).text === 'hello', { what: 'the app answers' });
    previews.push(each);
  }
  const [his, ...theirs] = previews;
  const others = await usually(async () => {
    for (const each of theirs) assert.equal((await each.request(3000, '/')).text, 'hello');
  });
  const taken = await fill(PREVIEWS, 503, () => connection(`GET /open HTTP/1.1\r\nHost: ${his.host(3000)}\r\nX-API-Key: ${bob.token}\r\n\r\n`, { port: his.port }));
  assert.ok(taken.length <= PREVIEWS / 4 && taken.length >= PREVIEWS / 4 - 2, `${taken.length}`);
  await others();
  await leave();
});

test('descriptors: with few of them all limits are lower, none is exceeded, and one owner does not take them all', async () => {
  const small = new Instance('shares-small', { wrapper: ['prlimit', '--nofile=1200:1200'], args: ['--workers', '16'] });
  try {
    await small.start();
    assert.match(small.log(), /1200 open files are allowed, fewer than full load may need \(\d+\): harmless for few sandboxes; else raise it \(ulimit -n\)/);
    const [crowd, other] = [await ownerApi(small.api, 'acme', 'crowd'), await ownerApi(small.api, 'acme', 'other')];
    const [one, two, three] = [await crowd.create(), await other.create(), await small.api.create()];
    const start = (api, { id }) => api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { argv: ['sleep', '600'], background: true } });
    const others = await usually(async () => {
      for (const [api, sandbox] of [[other, two], [small.api, three]]) {
        // A connection may be cut among strangers before its request is read; whoever comes again is served.
        await until(async () => { api.disconnect(); return (await start(api, sandbox)).status === 201; }, { what: 'a command is started' });
      }
    });
    let answer;
    let count = -1;
    do {
      answer = await start(crowd, one);
      count++;
    } while (answer.status === 201 && count < 500);
    assert.deepEqual([answer.status, answer.json.error.code], [429, 'too_many_processes'], `after ${count}`);
    await Promise.all(times(400).map((i) => connection('', { port: small.api.port, from: `127.0.0.${1 + (i % 3)}` })));
    await Promise.all(times(40).map(() => connection(`GET /v1/sandboxes/${one.id}/events HTTP/1.1\r\nHost: 127.0.0.1:${small.api.port}\r\nX-API-Key: ${crowd.token}\r\n\r\n`, { port: small.api.port })));
    await others();
    assert.ok(proc.descriptors(small.daemon.pid).length < 1200);
    assert.doesNotMatch(small.log(), /Too many open files/);
    await leave();
    await small.shutdown();
  } finally {
    small.destroy();
  }
});

test('running sandboxes: an owner has a quarter of what the descriptors allow, and the last are the operator\'s', async () => {
  const small = new Instance('shares-running', { wrapper: ['prlimit', '--nofile=1200:1200'], args: ['--workers', '16', '--log-level', 'debug'] });
  try {
    await small.start();
    const [, most] = /limits within 1200 open files: .*running sandboxes (\d+)/.exec(small.log()).map(Number);
    const before = proc.descriptors(small.daemon.pid).length;
    const make = (api) => api.request('POST', '/v1/sandboxes', { json: { network: { mode: 'allowlist', allow: ['example.com'] } } });
    /** As many as one gets. */
    async function take(api, expected) {
      const made = [];
      for (let answer; made.length <= most; made.push(answer.json)) {
        answer = await make(api);
        if (answer.status === 201) continue;
        assert.deepEqual([answer.status, answer.json.error.code], expected);
        return made;
      }
      return assert.fail(`${made.length} run`);
    }
    const other = await ownerApi(small.api, 'acme', 'other');
    const others = await usually(async () => {
      for (const api of [other, small.api]) {
        const { status, json } = await make(api);
        assert.equal(status, 201);
        await api.purge(json.id);
      }
    });
    const crowd = await ownerApi(small.api, 'acme', 'crowd0');
    const taken = await take(crowd, [429, 'too_many_running']);
    assert.equal(taken.length, Math.floor(most / 4));
    await others();
    // One that may not start is as it was, and does when there is a place.
    const [first, second] = taken;
    assert.equal((await crowd.life(first.id, 'stop')).status, 'stopped');
    const { json: third } = await make(crowd);
    assert.equal((await crowd.verb(first.id, 'start')).status, 429);
    assert.equal((await crowd.tryExec(first.id, 'true')).status, 429);
    assert.equal((await crowd.get(first.id)).status, 'stopped');
    for (const { id } of [second, third]) await crowd.purge(id);
    assert.equal(await crowd.out(first.id, 'echo woken'), 'woken\n');
    assert.equal((await make(crowd)).status, 201);
    // A new daemon counts those that it finds.
    await small.crash();
    await small.start();
    crowd.port = small.api.port;
    assert.equal((await make(crowd)).status, 429);
    // All owners together leave some to the operator.
    const theirs = most - Math.max(1, Math.floor(most / 16));
    let sum = taken.length;
    const crowds = await Promise.all(times(5).map((i) => ownerApi(small.api, 'acme', `crowd${i + 1}`)));
    for (const each of crowds) sum += (await take(each, [sum + taken.length <= theirs ? 429 : 503, 'too_many_running'])).length;
    assert.equal(sum, theirs);
    for (; sum < most; sum++) assert.equal((await make(small.api)).status, 201);
    assert.equal((await make(small.api)).status, 503);
    // Connections of clients count by themselves.
    for (const each of [small.api, other, crowd, ...crowds]) each.disconnect();
    await until(() => proc.descriptors(small.daemon.pid).length - before <= 5 * most, { what: `${most} sandboxes have five descriptors each` });
    assert.doesNotMatch(small.log(), /Too many open files/);
    await small.shutdown();
  } finally {
    small.destroy();
  }
});

test('descriptors: below a minimum the daemon does not start, and says how many it needs', async () => {
  const none = new Instance('shares-none', { wrapper: ['prlimit', '--nofile=256:256'] });
  const { code, said } = await none.refusal([]);
  none.destroy();
  assert.notEqual(code, 0);
  const [, needed] = /may have 256 open files \(RLIMIT_NOFILE\), and needs at least (\d+)/.exec(said) ?? assert.fail(said);
  assert.ok(Number(needed) > 256);
  assert.match(said, /LimitNOFILE/);
  assert.ok(!fs.existsSync(none.dataDir));
});
