// SPDX-License-Identifier: Apache-2.0
// Ports of a sandbox as ports of this machine: real protocols through `sandlot port-forward`, and the WebSocket
// beneath it, used as it should and should not be.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import crypto from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

import { commandLine, speaks } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { makeToken, ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { Processes } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';
import { nextEvent, openWebSocket } from './lib/websocket.mjs';

const { instance, api, finish } = await suite('port-forward');
const { start, sandlot } = commandLine(instance);
const ps = new Processes(api);
const END = '{"type":"end"}';
const sha256 = (data) => crypto.createHash('sha256').update(data).digest('hex');

// Servers for any protocol. What a test wants to know of them they print.
const SERVER = `
import hashlib, os, socket, struct, sys, threading
def digest(c):
    hash, size = hashlib.sha256(), 0
    while data := c.recv(1 << 16):
        hash.update(data); size += len(data)
    return hash.hexdigest(), size
def hashes(c):  # answers with the hash of all that came, once it has ended
    c.sendall(digest(c)[0].encode())
def ends_first(c):  # says something and ends, but reads on
    c.sendall(b'bye'); c.shutdown(socket.SHUT_WR)
    print('got', *digest(c), flush=True)
def echoes(c):
    while data := c.recv(1 << 16): c.sendall(data)
def pours(c):  # as much as it can
    sent, block = 0, bytes(1 << 16)
    try:
        while sent < 64 << 20:
            sent += c.send(block); print('sent', sent, flush=True)
    except OSError: print('broken', flush=True)
def resets(c):
    c.recv(1); c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
def tells(c):  # how its client left
    print('here', flush=True)
    try: print('left', 'ended' if not c.recv(1) else 'said', flush=True)
    except OSError as e: print('left', e.strerror, flush=True)
def ignores(c):  # never reads
    print('ignoring', flush=True); threading.Event().wait()
def ends_and_ignores(c):
    c.shutdown(socket.SHUT_WR); ignores(c)
def serve(address, port, function):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((address, port)); s.listen(256)
    def handle(c):
        try: function(c)
        except OSError as e: print('failed', e.strerror, flush=True)
        finally: c.close()
    def run():
        while True: threading.Thread(target=handle, args=(s.accept()[0],), daemon=True).start()
    threading.Thread(target=run).start()
for i, word in enumerate(['hashes', 'ends_first', 'echoes', 'pours', 'resets', 'tells', 'ignores', 'ends_and_ignores']):
    serve('127.0.0.1', 7000 + i, globals()[word])
serve('::1', 7100, echoes)
print('ready', flush=True)
`;
const [HASHES, ENDS_FIRST, ECHOES, POURS, RESETS, TELLS, IGNORES, ENDS_AND_IGNORES] = [7000, 7001, 7002, 7003, 7004, 7005, 7006, 7007];
const ECHOES_V6 = 7100;

async function serve(id) {
  await api.put(id, '/workspace/server.py', SERVER);
  const process = await ps.start(id, { command: 'exec python3 /workspace/server.py' });
  await ps.untilOutput(id, process.id, 'ready');
  return process;
}
const { id } = await api.create();
const server = await serve(id);
const said = async () => (await ps.read(id, server.id, { follow: false })).stdout.toString();
const untilSaid = (words) => until(async () => words.test(await said()), { what: `the server says ${words}` });

const running = [];
after(() => { for (const child of running) child.kill('SIGKILL'); });

/** Forwards ports ("0:7000"); the child, with `local`: ports of this machine by those of the sandbox. */
async function forward(ports, { sandbox = id, options = [], ...rest } = {}) {
  const child = start(['port-forward', ...options, sandbox, ...ports], rest);
  running.push(child);
  const line = /^(.*):(\d+) -> port (\d+)$/gm;
  await until(() => child.exitCode !== null || [...child.shown().matchAll(line)].length === ports.length, { what: 'it listens' });
  child.local = Object.fromEntries([...child.shown().matchAll(line)].map(([, , local, port]) => [port, Number(local)]));
  child.end = async () => {
    child.kill('SIGINT');
    return child.result;
  };
  return child;
}

/** The processes that carry its connections. */
const carriers = (child) => proc.descendants([child.pid]).filter((pid) => pid !== child.pid);

function dial(port, { host = '127.0.0.1', allowHalfOpen = true } = {}) {
  const socket = net.connect({ port, host, allowHalfOpen });
  socket.chunks = [];
  socket.on('error', (error) => { socket.failure = error.code; });
  socket.ended = new Promise((resolve) => { socket.on('close', () => resolve(Buffer.concat(socket.chunks))); });
  socket.on('data', (chunk) => socket.chunks.push(chunk));
  return socket;
}

/** Sends all, ends, and returns what comes back. */
async function converse(port, data, options) {
  const socket = dial(port, options);
  socket.end(data);
  const answer = await within('the end of a connection', socket.ended);
  assert.equal(socket.failure, undefined);
  return answer;
}

// From the command line --------------------------------------------------------------------------

test('a web server is there as if it were local', async () => {
  await api.put(id, '/workspace/page.txt', 'from inside');
  const web = await ps.start(id, { command: 'cd /workspace && exec python3 -m http.server 8000' });
  const child = await forward(['0:8000', `0:${HASHES}`]);
  assert.deepEqual(Object.keys(child.local), [`${HASHES}`, '8000']);
  await until(async () => (await api.request('GET', `/v1/sandboxes/${id}/ports`)).json.ports.some((one) => one.port === 8000), { what: 'it listens' });
  for (let i = 0; i < 3; i++) {
    const response = await new Promise((resolve, reject) => { http.get({ port: child.local[8000], path: '/page.txt' }, resolve).on('error', reject); });
    assert.equal(response.statusCode, 200);
    assert.equal((await response.toArray()).join(''), 'from inside');
  }
  assert.equal((await converse(child.local[HASHES], 'x')).toString(), sha256('x'), 'the other port too');
  await child.end();
  await ps.kill(id, web.id);
});

test('each side may end before the other', async () => {
  const child = await forward([`0:${HASHES}`, `0:${ENDS_FIRST}`]);
  const data = crypto.randomBytes(3 * MI);
  assert.equal((await converse(child.local[HASHES], data)).toString(), sha256(data));
  assert.equal((await converse(child.local[HASHES], '')).toString(), sha256(''));
  const socket = dial(child.local[ENDS_FIRST]);
  await within('the end of the other side', once(socket, 'end'));
  assert.equal(Buffer.concat(socket.chunks).toString(), 'bye');
  socket.end(data);
  await socket.ended;
  await untilSaid(new RegExp(`got ${sha256(data)} ${data.length}`));
  await child.end();
  assert.equal(child.said, '');
});

test('100 MiB pass each way at once, unchanged', async () => {
  const child = await forward([`0:${ECHOES}`]);
  const socket = net.connect({ port: child.local[ECHOES], allowHalfOpen: true });
  const [sent, received] = [crypto.createHash('sha256'), crypto.createHash('sha256')];
  let bytes = 0;
  socket.on('data', (chunk) => { received.update(chunk); bytes += chunk.length; });
  const ended = once(socket, 'end');
  for (let i = 0; i < 100; i++) {
    const block = crypto.randomBytes(MI);
    sent.update(block);
    if (!socket.write(block)) await once(socket, 'drain');
  }
  socket.end();
  await within('all of it', ended);
  assert.equal(bytes, 100 * MI);
  assert.equal(received.digest('hex'), sent.digest('hex'));
  await child.end();
});

test('100 connections at once', async () => {
  const child = await forward([`0:${HASHES}`]);
  const answers = await Promise.all(Array.from({ length: 100 }, async (_, i) => {
    const data = Buffer.alloc(10_000 + i, i);
    return (await converse(child.local[HASHES], data)).toString() === sha256(data);
  }));
  assert.ok(answers.every(Boolean));
  await until(() => carriers(child).length === 0, { what: 'each leaves when all is said' });
  await child.end();
  assert.equal(child.said, '');
});

test('redis, which knows nothing of it', async () => {
  const redis = await ps.start(id, { command: 'exec redis-server --port 6379 --save "" --dir /tmp' });
  await ps.untilOutput(id, redis.id, 'Ready to accept connections');
  const child = await forward(['0:6379']);
  const cli = async (...words) => (await promisify(execFile)('redis-cli', ['-p', `${child.local[6379]}`, ...words])).stdout.trim();
  assert.equal(await cli('set', 'key', 'value'), 'OK');
  assert.equal(await cli('get', 'key'), 'value');
  assert.match(await cli('--pipe-timeout', '1', 'info', 'server'), /redis_version/);
  await child.end();
  await ps.kill(id, redis.id);
});

test('a server on ::1 is found, and a local port can be on another address', async () => {
  const child = await forward([`0:${ECHOES_V6}`], { options: ['--address', '::1'] });
  assert.match(child.shown(), /^\[::1\]:\d+ -> port 7100$/m);
  for (let i = 0; i < 10; i++) assert.equal((await converse(child.local[ECHOES_V6], 'hello', { host: '::1' })).toString(), 'hello');
  const refused = dial(child.local[ECHOES_V6]);
  await refused.ended;
  assert.equal(refused.failure, 'ECONNREFUSED', 'it is on no other');
  await child.end();
});

test('without another number the local port is the same', async () => {
  const child = await forward([`${ECHOES}`]);
  assert.equal(child.local[ECHOES], ECHOES);
  const taken = await sandlot(['port-forward', id, `${ECHOES}`]);
  speaks(taken, /cannot listen on 127\.0\.0\.1 port 7002: Address already in use[^]*0:7002/);
  await child.end();
});

test('a port that nobody listens on resets the connection, and one line says why', async () => {
  const child = await forward(['0:5999', `0:${ECHOES}`]);
  const socket = dial(child.local[5999]);
  await within('the end', socket.ended);
  assert.equal(socket.failure, 'ECONNRESET');
  await until(() => child.said.includes('\n'), { what: 'a line' });
  assert.match(child.said, /^sandlot: port 5999: nothing answers on port 5999 of sandbox [0-9a-z]{26}: Connection refused; start the app.*\n$/);
  assert.equal((await converse(child.local[ECHOES], 'still there')).toString(), 'still there');
  await child.end();
});

test('a reset inside is a reset here, and the other way round', async () => {
  const child = await forward([`0:${RESETS}`, `0:${TELLS}`]);
  const socket = dial(child.local[RESETS]);
  socket.write('x');
  await within('the end', socket.ended);
  assert.equal(socket.failure, 'ECONNRESET');
  const other = dial(child.local[TELLS]);
  await untilSaid(/here/);
  other.resetAndDestroy();
  await untilSaid(/left Connection reset by peer/);
  await child.end();
  assert.equal(child.said, '', 'neither is a failure');
});

test('whoever resets a connection whose app does not read is let go', async () => {
  const child = await forward([`0:${IGNORES}`, `0:${ENDS_AND_IGNORES}`]);
  const sockets = [IGNORES, IGNORES, ENDS_AND_IGNORES, ENDS_AND_IGNORES].map((port) => dial(child.local[port]));
  for (const socket of sockets) {
    for (let i = 0; i < 64; i++) socket.write(Buffer.alloc(MI));
  }
  const waiting = () => sockets.reduce((sum, socket) => sum + socket.writableLength, 0);
  let last = -1;
  await until(() => { // nothing more goes
    const stands = waiting() === last;
    last = waiting();
    return stands && carriers(child).length === sockets.length;
  }, { every: 1000, what: 'the app is full' });
  assert.ok(last > 0);
  for (const socket of sockets) socket.resetAndDestroy();
  await until(() => carriers(child).length === 0, { what: 'nobody carries anything' });
  await child.end();
  assert.equal(child.said, '');
});

test('the first connection wakes a stopped sandbox', async () => {
  const { id: sleeper } = await api.create();
  await api.life(sleeper, 'stop');
  const child = await forward(['0:8000'], { sandbox: sleeper });
  assert.equal((await api.get(sleeper)).status, 'stopped', 'listening alone does not');
  const socket = dial(child.local[8000]);
  await socket.ended;
  assert.equal(socket.failure, 'ECONNRESET', 'nothing listens yet');
  assert.equal((await api.get(sleeper)).status, 'running');
  await child.end();
});

test('Ctrl-C ends it, with all connections, without a word', async () => {
  const child = await forward([`0:${ECHOES}`]);
  const sockets = Array.from({ length: 5 }, () => dial(child.local[ECHOES], { allowHalfOpen: false }));
  for (const socket of sockets) {
    socket.write('hello');
    await once(socket, 'data');
  }
  const busy = carriers(child);
  assert.ok(busy.length >= 5);
  const { signal, code, stderr } = await child.end();
  assert.ok(signal === 'SIGINT' || code === 130, `${signal} ${code}`);
  assert.equal(stderr, '');
  await Promise.all(sockets.map((socket) => within('the end', socket.ended)));
  await until(() => busy.every((pid) => !proc.cmdline(pid).includes('port-forward')), { what: 'nobody is left' });
});

test('what it cannot do it says', async () => {
  speaks(await sandlot(['port-forward', id, 'http']), /"http" is no port[^]*LOCAL:PORT/);
  speaks(await sandlot(['port-forward', id, '0']), /"0" is no port/);
  speaks(await sandlot(['port-forward', id, 'x:80']), /"x:80" is no port/);
  speaks(await sandlot(['port-forward', id, '080']), /"080" is no port/);
  speaks(await sandlot(['port-forward', id, '1:65536']), /"1:65536" is no port/);
  speaks(await sandlot(['port-forward', '--address', 'example.com', id, '0:80']), /"example\.com" is no address[^]*127\.0\.0\.1/);
  speaks(await sandlot(['port-forward', id]), /too few arguments/);
  const stranger = await makeToken(api, { organization: 'elsewhere', user: 'eve' });
  speaks(await sandlot(['port-forward', id, '0:80'], { env: { SANDLOT_URL: `http://127.0.0.1:${api.port}`, SANDLOT_TOKEN: stranger.token } }), /there is no sandbox|not found/i);
});

test('who does not read holds the other side up, however long, and loses nothing', async () => {
  const child = await forward([`0:${POURS}`]);
  const socket = net.connect({ port: child.local[POURS], allowHalfOpen: true });
  await once(socket, 'connect');
  socket.pause();
  const sent = async () => Number(/.*sent (\d+)/s.exec(await said())?.[1] ?? 0);
  let last = -1;
  await until(async () => { // it stands still
    const now = await sent();
    const stands = now > 0 && now === last;
    last = now;
    return stands;
  }, { every: 1000, what: 'the server waits' });
  assert.ok(last < 40 * MI, `buffers hold ${last} bytes`);
  let bytes = 0;
  socket.on('data', (chunk) => { bytes += chunk.length; }).resume();
  await within('all of it', once(socket, 'end'));
  assert.equal(bytes, 64 * MI);
  socket.destroy();
  await child.end();
});

// The WebSocket ----------------------------------------------------------------------------------

const connectPath = (port, sandbox = id) => `/v1/sandboxes/${sandbox}/ports/${port}/connect`;
const open = (port, options) => openWebSocket(api, connectPath(port), { protocol: 'tcp.v1', ...options });

test('binary frames are bytes, and a text frame ends a direction', async () => {
  const { socket } = await open(HASHES);
  const messages = [];
  socket.on('message', (isText, data) => messages.push([isText, data.toString()]));
  socket.send(Buffer.from('hello '));
  socket.send(Buffer.from('world'));
  socket.send(END);
  await until(() => messages.length === 2, { what: 'an answer and its end' });
  assert.deepEqual(messages, [[false, sha256('hello world')], [true, END]]);
  assert.equal((await socket.close()).code, 1000);
});

test('what is no message of it ends it', async () => {
  for (const messages of [['hello'], ['{"type":"resize"}'], ['[]'], [END, END], [END, Buffer.from('more')]]) {
    const { socket } = await open(IGNORES);
    for (const message of messages) socket.send(message);
    assert.equal((await within('the close', socket.closed)).code, 1008, `${messages}`);
  }
});

test('a client that leaves resets the connection inside', async () => {
  const count = async (words) => (await said()).split(words).length;
  const [here, left] = [await count('here'), await count('left Connection reset')];
  const { socket } = await open(TELLS);
  await until(async () => await count('here') > here, { what: 'it is there' });
  socket.destroy();
  await until(async () => await count('left Connection reset') > left, { what: 'the reset inside' });
});

test('an app that does not read stops the client, and the daemon does not grow', async () => {
  const { socket } = await open(IGNORES);
  const block = Buffer.alloc(32 * 1024);
  const before = proc.residentBytes(instance.daemon.pid);
  let sent = 0;
  while (sent < 64 * MI && socket.frame(2, block)) sent += block.length;
  for (let i = 0; i < 500; i++) socket.frame(2, block); // into this process's own queue
  await said(); // the daemon has had its turn
  assert.ok(proc.residentBytes(instance.daemon.pid) - before < 24 * MI);
  socket.destroy();
});

test('refusals: no port, nothing there, no WebSocket, another protocol, another owner', async () => {
  assertError((await open('0')).answer, 400);
  assertError((await open('65536')).answer, 400);
  assert.equal(assertError((await open(5999)).answer, 503).code, 'port_closed');
  assertError(await api.request('GET', connectPath(HASHES)), 426);
  assertError((await open(HASHES, { protocol: 'pty.v1' })).answer, 400);
  const stranger = await ownerApi(api, 'elsewhere', 'eve');
  assertError((await openWebSocket(stranger, connectPath(HASHES), { protocol: 'tcp.v1' })).answer, 404);
  stranger.disconnect();
  const reader = await ownerApi(api, 'default', 'reader', ['read']);
  assertError((await openWebSocket(reader, connectPath(HASHES), { protocol: 'tcp.v1' })).answer, 403);
  reader.disconnect();
});

test('a ticket opens one', async () => {
  const { json } = await api.request('POST', '/v1/tickets', { json: { path: connectPath(ECHOES) } });
  const { socket } = await open(ECHOES, { token: null, query: { ticket: json.ticket } });
  socket.send(Buffer.from('hello'));
  assert.equal((await nextEvent(socket, 'message'))[1].toString(), 'hello');
  socket.destroy();
});

test('revoking a token cuts its connections', async () => {
  const { organization, user } = (await api.get(id)).owner;
  const token = await makeToken(api, { organization, user, scopes: ['run'] });
  const { socket } = await open(ECHOES, { token: token.token });
  socket.send(Buffer.from('hello'));
  await nextEvent(socket, 'message');
  assert.equal((await api.request('DELETE', `/v1/tokens/${token.id}`)).status, 204);
  assert.equal((await within('the close', socket.closed)).code, 1008);
});

test('connections end with their sandbox, whatever the client does with its end', async () => {
  // A socket that this network namespace does not list is of another one.
  const foreign = () => proc.descriptorNames(instance.daemon.pid).filter((name) => /^socket:\[\d+\]$/.test(name));
  for (const verb of ['stop', 'purge', 'kill']) {
    const { id: doomed } = await api.create();
    const { id: app } = await serve(doomed);
    const before = new Set(foreign());
    const added = () => foreign().filter((name) => !before.has(name)).length;
    const opened = await Promise.all([ECHOES, ENDS_AND_IGNORES, IGNORES].map(async (port) => (await openWebSocket(api, connectPath(port, doomed), { protocol: 'tcp.v1' })).socket));
    opened[2].send(END); // of the last one nobody reads, and we have nothing more to say
    await ps.untilOutput(doomed, app, 'ignoring\nignoring'); // one of the servers has ended its side, and we do not
    await until(() => added() === opened.length, { what: 'all are connected' });
    if (verb === 'kill') process.kill((await instance.initOf(doomed)).pid, 'SIGKILL');
    else assert.ok((await api.verb(doomed, verb)).status < 300);
    await until(() => added() === 0, { what: 'no socket of its network is left, though no client has left' });
    for (const socket of opened) assert.equal((await within('the close', socket.closed)).code, 1011, verb);
  }
});

test('each is an entry of the audit log', async () => {
  await until(async () => {
    const { json } = await api.request('GET', '/v1/audit', { query: { limit: 100 } });
    return json.entries.some((entry) => entry.action === 'port.connect');
  }, { what: 'an entry' });
});

test('a sandbox is not idle while somebody is connected', async () => {
  const { id: used } = await api.create();
  await serve(used);
  const { socket } = await openWebSocket(api, connectPath(ECHOES, used), { protocol: 'tcp.v1' });
  assert.ok(socket);
  assert.equal((await api.patch(used, { idle_timeout_s: 1 })).status, 200);
  const { id: idle } = await api.create({ idle_timeout_s: 1 });
  const status = async (one) => (await api.get(one)).status;
  await until(async () => await status(idle) === 'stopped', { what: 'the other is stopped' });
  assert.equal(await status(used), 'running');
  socket.destroy();
  await until(async () => await status(used) === 'stopped', { what: 'it is stopped' });
});

await finish();
