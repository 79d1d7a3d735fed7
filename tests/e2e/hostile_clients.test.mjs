// SPDX-License-Identifier: Apache-2.0
// Clients that are slow, leave at any moment, or come in numbers: others are served meanwhile, and nothing
// of them stays.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';

import { IS_SANITIZED } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { MI, ulid } from './lib/values.mjs';
import { eachLimit, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('hostile_clients');
const { id } = await api.create();
const AGENT = '/workspace/agent_workspace';
const init = await instance.initOf(id);
const isQuiet = () => proc.descendants([init.pid]).length === 0;
const fresh = () => `${AGENT}/${ulid()}`;

const head = (line, ...more) => `${[line, `Host: 127.0.0.1:${api.port}`, `Authorization: Bearer ${api.token}`, ...more].join('\r\n')}\r\n\r\n`;
const files = (path, sandbox = id) => `/v1/sandboxes/${sandbox}/files?path=${encodeURIComponent(path)}`;

/** A connection that sends these bytes and then does as it is told; `ended` resolves when the server ends it. */
function client(bytes, { reads = true } = {}) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(api.port, '127.0.0.1');
    socket.text = '';
    socket.received = 0;
    socket.ended = new Promise((done) => { socket.on('close', done); });
    socket.on('error', (error) => (['ECONNRESET', 'EPIPE'].includes(error.code) ? undefined : reject(error)));
    socket.on('connect', () => {
      socket.write(bytes);
      resolve(socket);
    });
    if (!reads) return;
    socket.on('data', (chunk) => {
      socket.received += chunk.length;
      if (socket.text.length < 1000) socket.text += chunk.toString('latin1');
    });
  });
}

async function served(times = 10) {
  for (let i = 0; i < times; i++) assert.equal((await api.request('GET', `/v1/sandboxes/${id}`)).status, 200);
}

/** Sends a byte now and then until the server has had enough. */
async function dribble(socket) {
  const timer = setInterval(() => socket.write('x'), 500);
  await socket.ended;
  clearInterval(timer);
}

// Begun here, since it takes longer than all the rest.
const slow = await api.create();
const slowFile = fresh();
const slowBodies = Promise.all([
  client(head(`PUT ${files(slowFile, slow.id)} HTTP/1.1`, 'Content-Length: 1000000')),
  client(head(`PUT ${files(slowFile, slow.id)} HTTP/1.1`, 'Transfer-Encoding: chunked') + 'fffff\r\n'),
  client(head('POST /v1/sandboxes HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 10000') + '{"labels":{"a":"'),
  client(head(`PUT /v1/sandboxes/${slow.id}/files/archive?path=${slowFile}-dir HTTP/1.1`, 'Content-Length: 1000000')),
].map((opened) => opened.then(async (socket) => {
  await dribble(socket);
  return socket.text;
})));

test('two thousand clients that never finish their headers keep nobody waiting and are cut', async () => {
  const many = await eachLimit(Array.from({ length: 2000 }), 100, () => client('GET /v1/sandboxes HTTP/1.1\r\nHost: '));
  const timer = setInterval(() => many.forEach((socket) => socket.writable && socket.write('x')), 2000);
  await served();
  await api.out(id, 'true');
  await Promise.all(many.map((socket) => socket.ended));
  clearInterval(timer);
  await served();
});

test('clients that do not read cost little, keep nobody waiting, and leave nothing', async () => {
  const file = fresh();
  await api.put(id, file, Buffer.alloc(8 * MI));
  const before = proc.residentBytes(instance.daemon.pid);
  const stalled = await eachLimit(Array.from({ length: 100 }), 20, () => client(head(`GET ${files(file)} HTTP/1.1`), { reads: false }));
  await served();
  const grown = proc.residentBytes(instance.daemon.pid) - before;
  assert.ok(grown < (IS_SANITIZED ? 256 : 64) * MI, `the daemon grew by ${grown / MI} MiB`);
  for (const socket of stalled) socket.resetAndDestroy();
  await until(isQuiet, { what: 'the helpers end' });
});

const ARCHIVE = tar([{ name: 'f', data: crypto.randomBytes(300_000) }]);
const BODY = crypto.randomBytes(300_000);
const STAGES = {
  'an upload': () => Buffer.concat([Buffer.from(head(`PUT ${files(fresh())} HTTP/1.1`, `Content-Length: ${BODY.length}`)), BODY]),
  'an upload in chunks': () => Buffer.concat([Buffer.from(head(`PUT ${files(fresh())} HTTP/1.1`, 'Transfer-Encoding: chunked') + `${BODY.length.toString(16)}\r\n`), BODY, Buffer.from('\r\n0\r\n\r\n')]),
  'an archive going in': () => Buffer.concat([Buffer.from(head(`PUT /v1/sandboxes/${id}/files/archive?path=${fresh()} HTTP/1.1`, `Content-Length: ${ARCHIVE.length}`)), ARCHIVE]),
  'an exec': () => Buffer.from(head(`POST /v1/sandboxes/${id}/exec HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 24') + '{"command":"sleep 3600"}'),
};

for (const [name, request] of Object.entries(STAGES)) {
  test(`resets at every stage of ${name} leave no half result and no process`, async () => {
    const whole = request();
    await eachLimit(Array.from({ length: 20 }, (_, i) => Math.floor((whole.length * (i + 1)) / 20)), 5, async (length) => {
      const socket = await client(whole.subarray(0, length));
      await new Promise((sent) => { socket.write('', sent); });
      socket.resetAndDestroy();
    });
    await until(isQuiet, { what: 'commands and helpers end' });
    const sizes = (await api.out(id, { command: `find ${AGENT} -type f -size -600 -printf '%s\\n' | sort -u`, user: 'root' })).split('\n').filter(Boolean);
    assert.ok(sizes.every((size) => size === '300000'), `sizes: ${sizes}`);
    assert.equal(await api.out(id, { command: `find ${AGENT} -name '.*' | wc -l`, user: 'root' }), '0\n', 'no temporary file');
  });
}

const ANSWERS = {
  'a download': (file) => head(`GET ${files(file)} HTTP/1.1`),
  'an archive coming out': (file) => head(`GET /v1/sandboxes/${id}/files/archive?path=${file} HTTP/1.1`),
  'a stream': () => head(`POST /v1/sandboxes/${id}/exec HTTP/1.1`, 'Accept: text/event-stream', 'Content-Type: application/json', 'Content-Length: 17') + '{"command":"yes"}',
  'a stream that follows': () => head(`GET /v1/sandboxes/${id}/events HTTP/1.1`),
};

for (const [name, request] of Object.entries(ANSWERS)) {
  test(`resets at every stage of ${name} end what fed it`, async () => {
    const file = fresh();
    await api.put(id, file, Buffer.alloc(4 * MI));
    await eachLimit(Array.from({ length: 16 }, (_, i) => i * 200_000), 4, async (length) => {
      const socket = await client(request(file));
      if (!name.includes('follows')) await until(() => socket.received >= length, { what: `${length} bytes` });
      socket.resetAndDestroy();
    });
    // What streamed is a process that outlives its reader; it waits for one, and is ended here.
    for (const process of (await api.request('GET', `/v1/sandboxes/${id}/processes?status=running`)).json.processes) await api.request('DELETE', `/v1/sandboxes/${id}/processes/${process.id}`);
    await until(isQuiet, { what: 'commands and helpers end' });
    await served(1);
  });
}

test('archives that are cut short do not make the daemon grow', async () => {
  const file = fresh();
  await api.put(id, file, Buffer.alloc(4 * MI));
  const cut = (count) => eachLimit(Array.from({ length: count }), 8, async () => {
    const socket = await client(head(`GET /v1/sandboxes/${id}/files/archive?path=${file} HTTP/1.1`));
    await until(() => socket.received > 0, { every: 1, what: 'the first bytes' });
    socket.resetAndDestroy();
    await socket.ended;
  });
  await cut(100);
  const before = proc.residentBytes(instance.daemon.pid);
  await cut(200);
  const grown = proc.residentBytes(instance.daemon.pid) - before;
  assert.ok(IS_SANITIZED || grown < 20 * MI, `200 cut downloads cost ${grown / MI} MiB`);
});

/** Processor time of the daemon so far, in seconds. */
function processorTime() {
  const stat = fs.readFileSync(`/proc/${instance.daemon.pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

test('a want of descriptors stops nobody who asks something, spins nowhere, and passes', async () => {
  const [uid, gid] = ['Uid', 'Gid'].map((name) => Number(proc.statusField(instance.daemon.pid, name).split(/\s+/)[0]));
  const limit = (value) => execFileSync('prlimit', ['--pid', String(instance.daemon.pid), `--nofile=${value}`], { uid, gid }); // only its own user may
  const normal = /Max open files\s+(\d+)\s+(\d+)/.exec(fs.readFileSync(`/proc/${instance.daemon.pid}/limits`, 'latin1'));
  api.disconnect();
  limit(`${proc.descriptors(instance.daemon.pid).length + 40}:${normal[2]}`);
  try {
    const idle = await eachLimit(Array.from({ length: 300 }), 50, () => client('GET / HTTP/1.1\r\n'));
    const before = processorTime();
    for (let i = 0; i < 10; i++) {
      api.disconnect();
      assert.equal((await api.request('GET', `/v1/sandboxes/${id}`)).status, 200);
    }
    assert.ok(processorTime() - before < 2, 'no busy loop');
    for (const socket of idle) socket.destroy();
  } finally {
    limit(`${normal[1]}:${normal[2]}`);
  }
  await served();
  const complaints = instance.log().split('\n').filter((line) => line.includes('cannot accept'));
  assert.ok(complaints.length >= 1 && complaints.length < 5, `logged ${complaints.length} times`);
});

test('bodies that come byte by byte are cut, and nothing of them stays', async () => {
  const answers = await slowBodies;
  for (const text of answers) assert.doesNotMatch(text, /^HTTP\/1\.1 2/);
  assert.equal(await api.exists(slow.id, slowFile), false);
  await served(1);
});

finish();
