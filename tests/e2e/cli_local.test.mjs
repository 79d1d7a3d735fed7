// SPDX-License-Identifier: Apache-2.0
// The command line and the daemon of its own machine: how they find and trust each other, without an address given.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine, speaks } from './lib/cli.mjs';
import { Instance } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-local');
const { sandlot, ok, start } = commandLine(instance);
const env = { SANDLOT_DATA_DIR: instance.dataDir };
const socketFile = path.join(instance.dataDir, 'run/api.sock');

/** Listens where the daemon did, and keeps all that it is sent. */
async function stranger(where) {
  const heard = [], sockets = [];
  const server = net.createServer((socket) => { heard.push(''); sockets.push(socket); socket.on('data', (bytes) => { heard.push(bytes.toString()); socket.destroy(); }); socket.on('error', () => {}); });
  server.listen(where);
  await once(server, 'listening');
  const close = () => new Promise((resolve) => {
    server.close(resolve);
    for (const socket of sockets) socket.destroy(); // also of those who said nothing
  });
  return { heard, close };
}

test('everything that the command line does goes over the socket in the data directory', async () => {
  const id = JSON.parse(await ok(['create', '-o', 'json'], { env })).id;
  api.made.add(id);
  assert.equal(await ok(['exec', id, '--', 'echo', 'hello'], { env }), 'hello\n');
  fs.writeFileSync(path.join(instance.home, 'in'), 'x'.repeat(3_000_000));
  await ok(['cp', path.join(instance.home, 'in'), `${id}:/workspace/in`], { env });
  await ok(['cp', `${id}:/workspace/in`, path.join(instance.home, 'out')], { env });
  assert.equal(fs.statSync(path.join(instance.home, 'out')).size, 3_000_000);
  await api.out(id, 'nohup python3 -m http.server -b 127.0.0.1 3000 >/dev/null 2>&1 &');
  const child = start(['port-forward', id, '0:3000'], { env });
  const [, port] = await until(() => /^127\.0\.0\.1:(\d+) -> port 3000$/m.exec(child.shown()), { what: 'it listens' });
  // A fetch whose connection is refused at a bad moment may never end: it is asked again.
  await until(() => fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(10_000) }).then((answer) => answer.status === 200, () => false), { what: 'the WebSocket beneath passes bytes' });
  child.kill('SIGTERM');
  await child.result;
  const { entries } = (await api.request('GET', '/v1/audit', { query: { limit: 1000, object: id } })).json;
  assert.ok(entries.some((entry) => entry.action === 'sandbox.create' && entry.from === 'unix'), JSON.stringify(entries));
});

test('names that a sandbox chose do not steer the terminal they are shown on', async () => {
  const id = JSON.parse(await ok(['create', '-o', 'json'], { env })).id;
  api.made.add(id);
  const evil = '\u001b]0;title\u0007\u009b2J\u007f\u202ereversed\u2066';
  const steering = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;
  await ok(['exec', '-d', id, '--', 'sh', '-c', 'sleep 600; true', evil], { env });
  const shown = {};
  for (const args of [['ps', id], ['ps', '-o', 'json', id], ['ps', '--json', id], ['inspect', '-o', 'json', id]]) shown[args.join(' ')] = await ok(args, { env });
  const watches = [[], ['-o', 'json']].map((args) => start(['watch', ...args, id, '/workspace/outputs'], { env }));
  await until(async () => {
    await api.out(id, `touch "/workspace/outputs/$(printf '\\033[2J\\302\\2332J\\177\\342\\200\\256end')"`);
    return watches.every((child) => child.shown().includes('end'));
  }, { what: 'both report the file' });
  for (const child of watches) {
    child.kill('SIGTERM');
    await child.result;
    shown[child.spawnargs.join(' ')] = child.shown();
  }
  for (const [command, text] of Object.entries(shown)) assert.doesNotMatch(text, steering, `${command}: ${JSON.stringify(text)}`);
  // As JSON it is what it was, for programs.
  assert.ok(JSON.stringify(JSON.parse(shown[`ps -o json ${id}`])).includes(JSON.stringify(evil).slice(1, -1)));
  assert.match(JSON.parse(watches[1].shown().split('\n').find((line) => line.includes('end'))).path, /\u009b2J\u007f\u202eend$/);
});

test('the socket is for those who can read the token, and takes no other request than the port does', async () => {
  const { mode, uid } = fs.statSync(socketFile);
  assert.equal(mode & 0o777, 0o660);
  assert.equal(uid, fs.statSync(path.join(instance.dataDir, 'token')).uid);
  assert.equal(fs.statSync(path.dirname(socketFile)).mode & 0o777, 0o750);
  const ask = (headers, target = '/v1/sandboxes') => new Promise((resolve, reject) => {
    http.get({ socketPath: socketFile, path: target, headers }, (answer) => { answer.resume(); answer.on('end', () => resolve(answer.statusCode)); }).on('error', reject);
  });
  const authorization = `Bearer ${api.token}`;
  assert.equal(await ask({ host: 'localhost', authorization }), 200);
  assert.equal(await ask({ host: 'localhost' }), 401);
  assert.equal(await ask({ host: 'localhost', authorization: `Bearer slt_${'0'.repeat(64)}` }), 401);
  assert.equal(await ask({ host: 'evil.example', authorization }), 421);
  assert.equal(await ask({ host: 'localhost', origin: 'http://evil.example', authorization }), 403);
  // What names the socket's host does not name the port's.
  assert.equal((await api.request('GET', '/v1/sandboxes', { headers: { host: 'localhost' } })).status, 421);
});

test('after kill -9 of the daemon no token goes to whoever has its port', async () => {
  const { port } = api;
  const id = JSON.parse(await ok(['create', '-o', 'json'], { env })).id;
  api.made.add(id);
  const name = (await ok(['exec', '-d', id, '--', 'sh', '-c', 'echo one; until test -e /tmp/go; do sleep 0.05; done; echo two'], { env })).trim();
  const logs = start(['logs', '-f', id, name], { env });
  await until(() => logs.shown() === 'one\n', { what: 'it follows' });
  await instance.crash();
  const thief = await stranger({ port, host: '127.0.0.1' });
  try {
    for (const args of [['ls'], ['version'], ['run', '--', 'true'], ['doctor']]) {
      const result = await sandlot(args, { env });
      if (args[0] === 'ls' || args[0] === 'run') speaks(result, /not running.*start it with "\/.*\/sandlotd/s);
    }
    speaks(await sandlot(['ls'], { env: { ...env, SANDLOT_TOKEN: api.token } }), /not running/);
    assert.deepEqual(thief.heard, []);
    // Who names the port is asked for the token too: that of the file is for the socket.
    await sandlot(['ls'], { env: { ...env, SANDLOT_URL: `http://127.0.0.1:${port}` } });
    assert.ok(thief.heard.length > 0, 'it was asked');
    assert.doesNotMatch(thief.heard.join(''), /authorization/i);
  } finally {
    await thief.close();
  }
  await instance.start(['--api-bind', `127.0.0.1:${port}`]);
  await ok(['ls'], { env });
  await api.out(id, 'touch /tmp/go');
  const { code, stdout, stderr } = await logs.result;
  assert.deepEqual([code, stdout], [0, 'one\ntwo\n'], `what lasts finds the new daemon by the same socket: ${stderr}`);
});

test('a socket that others could have put there gets no token', async () => {
  const home = fs.mkdtempSync(path.join(instance.home, 'impostor-'));
  const run = path.join(home, 'run');
  fs.mkdirSync(run);
  fs.writeFileSync(path.join(home, 'token'), `${api.token}\n`, { mode: 0o600 });
  const thief = await stranger(path.join(run, 'api.sock'));
  const local = { env: { SANDLOT_DATA_DIR: home } };
  try {
    for (const [dir, mode] of [[run, 0o777], [run, 0o770], [home, 0o777]]) {
      fs.chmodSync(home, 0o755);
      fs.chmodSync(run, 0o755);
      fs.chmodSync(dir, mode);
      speaks(await sandlot(['ls'], local), new RegExp(`${dir} .*writ`));
    }
    fs.chmodSync(home, 0o755);
    fs.chownSync(run, 12345, 12345);
    speaks(await sandlot(['ls'], local), new RegExp(`${run} belongs to`));
    fs.rmSync(path.join(run, 'api.sock'));
    fs.chownSync(run, 0, 0);
    fs.symlinkSync(socketFile, path.join(run, 'api.sock'));
    speaks(await sandlot(['ls'], local), /not a socket/);
    assert.deepEqual(thief.heard, []);
  } finally {
    await thief.close();
  }
});

test('the token of one data directory is not sent to the daemon of another', async () => {
  const home = fs.mkdtempSync(path.join(instance.home, 'empty-'));
  const elsewhere = fs.mkdtempSync(path.join(instance.home, 'user-'));
  fs.mkdirSync(path.join(home, 'run'));
  fs.mkdirSync(path.join(elsewhere, 'sandlot'));
  fs.writeFileSync(path.join(elsewhere, 'sandlot/token'), `${api.token}\n`, { mode: 0o600 });
  const other = await stranger(path.join(home, 'run/api.sock'));
  await sandlot(['ls'], { env: { SANDLOT_DATA_DIR: home, XDG_DATA_HOME: elsewhere } });
  await other.close();
  assert.ok(other.heard.length > 0, 'it was asked');
  assert.doesNotMatch(other.heard.join(''), /authorization/i);
});

test('where no daemon is, the command line says which one it looked for', async () => {
  speaks(await sandlot(['ls'], { env: { SANDLOT_DATA_DIR: '/no/such/dir' } }), /\/no\/such\/dir.*SANDLOT_URL/s);
  speaks(await sandlot(['ls'], { env: { SANDLOT_DATA_DIR: '/no/such/dir', SANDLOT_TOKEN: api.token } }), /\/no\/such\/dir/);
});

test('a variable whose name is nearly one of ours is told, settings of the daemon and others are not', async () => {
  const said = async (names) => (await sandlot(['ls', '-q'], { env: { ...env, ...names } })).stderr;
  assert.equal(await said({ SANDLOT_TOKNE: 'x', SANDLOT_API_BIND: '127.0.0.1:1', SANDLOT_LOG_LEVEL: 'info', OTHER_TOKEN: 'x' }), 'sandlot: the variable SANDLOT_TOKNE is ignored; did you mean SANDLOT_TOKEN?\n');
  assert.equal(await said({ SANDLOT_ULR: 'http://127.0.0.1:1' }), 'sandlot: the variable SANDLOT_ULR is ignored; did you mean SANDLOT_URL?\n');
});

finish();

test('a token file that others can read or that holds no token of ours is refused', async () => {
  const other = new Instance('token-file');
  const file = path.join(other.dataDir, 'token');
  const good = `slt_${'0a'.repeat(32)}\n`;
  try {
    const give = (name) => other.account && fs.lchownSync(name, other.account.uid, other.account.gid);
    fs.mkdirSync(other.dataDir, { recursive: true });
    give(other.dataDir);
    for (const [text, mode, words] of [['hunter2\n', 0o600, /does not hold a token/], [good, 0o644, /can be used by others.*chmod 600/s], [good, 0o640, /can be used by others/]]) {
      fs.writeFileSync(file, text);
      fs.chmodSync(file, mode);
      give(file);
      const { code, said } = await other.refusal([]);
      assert.equal(code, 77, said);
      assert.match(said, words);
      assert.ok(said.includes(`${file} `) && said.includes(`rm ${file}`), said);
      assert.doesNotMatch(said, /hunter2|slt_0a/);
    }
    fs.rmSync(file);
    fs.symlinkSync('/etc/hostname', file);
    assert.match((await other.refusal([])).said, /is a symbolic link/);
  } finally {
    for (const info of proc.allProcesses()) if (info.comm === 'sandlot-keeper' && proc.cmdline(info.pid).includes(other.dataDir)) other.seen.set(info.pid, info.start);
    other.destroy();
  }
});
