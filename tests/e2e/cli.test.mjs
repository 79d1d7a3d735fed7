// SPDX-License-Identifier: Apache-2.0
// The command line client, as a person or a script uses it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine, speaks } from './lib/cli.mjs';
import { BUILD_DIR, Instance, program } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { assertSandbox } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli');
const { urlEnv, sandlot, ok, json, created } = commandLine(instance);
const COMMANDS = ['run', 'create', 'ls', 'inspect', 'exec', 'shell', 'attach', 'ps', 'logs', 'wait', 'kill', 'cp', 'start', 'stop', 'pause', 'resume', 'reset', 'rm', 'purge', 'stats', 'watch', 'doctor', 'version', 'shutdown', 'completion'];

test('run prints what the command prints and removes its sandbox', async () => {
  const before = (await api.all()).length;
  assert.equal(await ok(['run', '--', 'python3', '-c', 'print(6*7)']), '42\n');
  assert.equal((await api.all()).length, before);
  await until(() => proc.stored(path.join(instance.dataDir, 'workspaces')).length === before, { what: 'its workspace is gone too' });
});

test('run passes the exit code, stderr and stdin on', async () => {
  const result = await sandlot(['run', '--', 'sh', '-c', 'cat; echo err >&2; exit 37'], { input: 'typed' });
  assert.equal(result.code, 37);
  assert.equal(result.stdout, 'typed');
  assert.equal(result.stderr, 'err\n');
});

test('run passes on signals as 128+n and missing programs as 127', async () => {
  assert.equal((await sandlot(['run', '--', 'sh', '-c', 'kill -9 $$'])).code, 137);
  assert.equal((await sandlot(['run', '--', 'no-such-program'])).code, 127);
});

test('run passes binary output through unchanged', async () => {
  const result = await sandlot(['run', '--', 'python3', '-c', 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)']);
  assert.equal(result.code, 0, result.stderr);
  assert.ok(result.bytes.equals(Buffer.concat(Array(1000).fill(Buffer.from(Array.from({ length: 256 }, (_, i) => i))))));
});

test('run shows more output than the buffered answer would hold', async () => {
  const result = await sandlot(['run', '--', 'sh', '-c', 'head -c 20000000 /dev/zero']);
  assert.equal(result.code, 0, result.stderr);
  assert.equal(result.bytes.length, 20_000_000);
});

test('run that is interrupted removes its sandbox', async () => {
  const before = (await api.all()).length;
  const child = spawn(program('sandlot'), ['run', '--', 'sh', '-c', 'echo up; sleep 600'], { env: instance.environment(urlEnv()), stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  assert.equal((await api.all()).length, before + 1);
  child.kill('SIGINT');
  const code = await new Promise((resolve) => child.on('close', (status, signal) => resolve(signal ?? status)));
  assert.ok(code === 130 || code === 'SIGINT', `${code}`);
  await until(async () => (await api.all()).length === before, { what: 'the sandbox is gone' });
});

test('the client finds address and token through the data directory', async () => {
  assert.equal(await ok(['run', '--', 'echo', 'found'], { env: { SANDLOT_DATA_DIR: instance.dataDir } }), 'found\n');
});

test('create prints an id that works, and every option reaches the sandbox', async () => {
  const printed = (await ok(['create'])).trim();
  assert.match(printed, /\b[0-9a-z]{26}\b/);
  const [id] = /\b[0-9a-z]{26}\b/.exec(printed);
  api.made.add(id);
  assert.equal((await api.get(id)).status, 'running');
  const sandbox = await json(['create', '-o', 'json', '--memory', '128Mi', '--cpu', '0.5', '--pids', '77', '--env', 'A=b=c', '--env', 'X=', '--label', 'team=core', '--port', '8080', '--idle-timeout', '99']);
  api.made.add(sandbox.id);
  assertSandbox(sandbox);
  assert.equal(sandbox.resources.cpu, 0.5);
  assert.equal(sandbox.resources.memory, '128Mi');
  assert.equal(sandbox.resources.pids, 77);
  assert.deepEqual(sandbox.labels, { team: 'core' });
  assert.deepEqual(sandbox.ports, [8080]);
  assert.equal(sandbox.idle_timeout_s, 99);
  assert.equal(await api.out(sandbox.id, 'echo "$A[$X]"'), 'b=c[]\n');
});

test('ls shows sandboxes as a table and as JSON', async () => {
  const id = await created('--label', 'cli=ls');
  const table = await ok(['ls']);
  assert.match(table.split('\n')[0], /ID/i);
  assert.match(table, new RegExp(`${id}.*running`));
  const list = await json(['ls', '-o', 'json']);
  const rows = Array.isArray(list) ? list : list.sandboxes;
  assert.ok(rows.some((row) => row.id === id));
  for (const row of rows) assertSandbox(row);
});

test('ls lists more sandboxes than one page holds', async () => {
  const ids = await Promise.all(Array.from({ length: 60 }, async () => (await api.create({ resources: { memory: '64Mi' } })).id));
  const list = await json(['ls', '-o', 'json']);
  const rows = new Set((Array.isArray(list) ? list : list.sandboxes).map((row) => row.id));
  assert.deepEqual(ids.filter((id) => !rows.has(id)), []);
  await Promise.all(ids.map((id) => api.purge(id)));
});

test('inspect shows one sandbox', async () => {
  const id = await created();
  const sandbox = await json(['inspect', id, '-o', 'json']);
  assertSandbox(sandbox);
  assert.equal(sandbox.id, id);
  assert.match(await ok(['inspect', id]), new RegExp(id));
});

test('exec runs in a sandbox with its options and passes the exit code on', async () => {
  const id = await created();
  assert.equal(await ok(['exec', id, '--', 'echo', 'a b', '$HOME']), 'a b $HOME\n');
  assert.equal(await ok(['exec', '--user', 'root', '--workdir', '/usr', '--env', 'K=v', id, '--', 'sh', '-c', 'id -u; pwd; echo $K']), '0\n/usr\nv\n');
  assert.equal(await ok(['exec', '-i', id, '--', 'wc', '-c'], { input: 'x'.repeat(100_000) }), '100000\n');
  const failed = await sandlot(['exec', id, '--', 'sh', '-c', 'echo bad >&2; exit 9']);
  assert.equal(failed.code, 9);
  assert.equal(failed.stderr, 'bad\n');
});

test('exec passes flags behind the dashes to the command', async () => {
  const id = await created();
  assert.equal(await ok(['exec', id, '--', 'printf', '%s,', '--help', '-o', 'json', '--', '-x']), '--help,-o,json,--,-x,');
});

test('stop, start, pause, resume, reset, rm and purge do what they say', async () => {
  const id = await created();
  const status = async () => (await api.get(id)).status;
  await ok(['stop', id]);
  assert.equal(await status(), 'stopped');
  await ok(['start', id]);
  assert.equal(await status(), 'running');
  await ok(['pause', id]);
  assert.equal(await status(), 'paused');
  await ok(['resume', id]);
  assert.equal(await status(), 'running');
  await api.put(id, '/workspace/outputs/f', 'x');
  await ok(['reset', id]);
  assert.equal(await api.exists(id, '/workspace/outputs/f'), false);
  await api.put(id, '/workspace/outputs/f', 'x');
  await ok(['rm', id]);
  assert.equal((await api.request('GET', `/v1/sandboxes/${id}`)).status, 404);
  await ok(['purge', id]);
  await api.create({ id });
  assert.equal(await api.exists(id, '/workspace/outputs/f'), false);
});

test('rm and purge take several ids', async () => {
  const ids = await Promise.all([created(), created(), created()]);
  await ok(['rm', ...ids.slice(0, 2)]);
  await ok(['purge', ...ids]);
  for (const id of ids) assert.equal((await api.request('GET', `/v1/sandboxes/${id}`)).status, 404);
});

test('cp copies files into a sandbox and out, byte by byte, with their modes', async () => {
  const id = await created();
  const local = fs.mkdtempSync(path.join(instance.home, 'cp-'));
  const content = crypto.randomBytes(3_000_000);
  fs.writeFileSync(path.join(local, 'in'), content, { mode: 0o750 });
  fs.chmodSync(path.join(local, 'in'), 0o750);
  await ok(['cp', path.join(local, 'in'), `${id}:/workspace/agent_workspace/x`]);
  assert.ok((await api.read(id, '/workspace/agent_workspace/x')).equals(content));
  assert.equal(await api.out(id, 'stat -c %a /workspace/agent_workspace/x'), '750\n');
  await ok(['cp', `${id}:/workspace/agent_workspace/x`, path.join(local, 'out')]);
  assert.ok(fs.readFileSync(path.join(local, 'out')).equals(content));
  assert.equal(fs.statSync(path.join(local, 'out')).mode & 0o777, 0o750);
  await ok(['cp', path.join(local, 'in'), `${id}:/workspace/outputs/`]);
  assert.equal((await api.stat(id, '/workspace/outputs/in')).size, content.length, 'into a directory');
  await ok(['cp', `${id}:/workspace/outputs/in`, `${local}/`]);
});

test('cp copies directories both ways', async () => {
  const id = await created();
  const local = fs.mkdtempSync(path.join(instance.home, 'cp-'));
  fs.mkdirSync(path.join(local, 'tree/a/b'), { recursive: true });
  fs.writeFileSync(path.join(local, 'tree/a/b/file'), 'deep');
  fs.writeFileSync(path.join(local, 'tree/žluť\n'), 'odd');
  fs.writeFileSync(path.join(local, 'tree/tool'), '#!/bin/sh\n');
  fs.chmodSync(path.join(local, 'tree/tool'), 0o755);
  fs.symlinkSync('a/b/file', path.join(local, 'tree/link'));
  await ok(['cp', path.join(local, 'tree'), `${id}:/workspace/agent_workspace/tree`]);
  assert.equal(await api.out(id, 'cd /workspace/agent_workspace/tree && cat a/b/file link && stat -c %a tool && readlink link'), 'deepdeep755\na/b/file\n');
  await ok(['cp', `${id}:/workspace/agent_workspace/tree`, path.join(local, 'back')]);
  assert.equal(fs.readFileSync(path.join(local, 'back/a/b/file'), 'utf8'), 'deep');
  assert.equal(fs.readFileSync(path.join(local, 'back/žluť\n'), 'utf8'), 'odd');
  assert.equal(fs.readlinkSync(path.join(local, 'back/link')), 'a/b/file');
  assert.equal(fs.statSync(path.join(local, 'back/tool')).mode & 0o777, 0o755);
});

test('cp out of a hostile sandbox writes nothing outside of its target', async () => {
  const id = await created();
  const local = fs.mkdtempSync(path.join(instance.home, 'cp-'));
  fs.mkdirSync(path.join(local, 'victim'));
  await api.out(id, `mkdir -p /workspace/outputs/t && cd /workspace/outputs/t && ln -s ${local}/victim l && ln -s ../victim m`);
  await sandlot(['cp', `${id}:/workspace/outputs/t`, path.join(local, 't')]);
  await api.out(id, 'cd /workspace/outputs/t && rm l m && mkdir l m && echo evil > l/f && echo evil > m/f');
  await sandlot(['cp', `${id}:/workspace/outputs/t`, path.join(local, 't')]);
  assert.deepEqual(fs.readdirSync(path.join(local, 'victim')), []);
});

test('cp of what is not there says so', async () => {
  const id = await created();
  speaks(await sandlot(['cp', '/no/such/file', `${id}:/tmp/x`]), /\/no\/such\/file/);
  speaks(await sandlot(['cp', `${id}:/no/such/file`, '/tmp/sandlot-e2e-never']), /\/no\/such\/file|not (found|exist)/i);
  assert.equal(fs.existsSync('/tmp/sandlot-e2e-never'), false);
  speaks(await sandlot(['cp', 'a', 'b']), /sandbox|ID:|:/i);
});

test('stats shows numbers, and as JSON the document of the API', async () => {
  const id = await created('--memory', '128Mi');
  const stats = await json(['stats', id, '-o', 'json']);
  assert.deepEqual(Object.keys(stats), [id]);
  assert.equal(stats[id].memory.limit_bytes, 128 * 1024 * 1024);
  assert.match(await ok(['stats', id]), /mem/i);
});

test('doctor tells what it checked', async () => {
  const result = await sandlot(['doctor']);
  assert.ok([0, 1].includes(result.code), result.stderr);
  assert.match(result.stdout, /cgroup/i);
  assert.match(result.stdout, /user namespace|userns|overlay|seccomp/i);
  assert.match(result.stdout, /^ok {3}driver: native$/m);
  assert.ok(result.stdout.trim().split('\n').length >= 5, result.stdout);
});

test('doctor asks a daemon elsewhere about its host, which finds what it finds itself', async () => {
  const own = JSON.parse((await sandlot(['doctor', '--host', '-o', 'json'])).stdout).checks;
  const told = JSON.parse((await sandlot(['doctor', '--remote', '-o', 'json'])).stdout).checks;
  const { json } = await instance.api.request('GET', '/v1/doctor');
  assert.deepEqual(told.slice(0, own.length).map(({ name }) => name), own.map(({ name }) => name));
  // An ordinary user's daemon finds what that user would.
  if (!instance.account) assert.deepEqual(json.checks.map(({ name, status }) => [name, status]), own.map(({ name, status }) => [name, status.toLowerCase()]));
  assert.ok(json.checks.every(({ status, why }) => (why === null) === (status === 'ok')));
  const both = await sandlot(['doctor', '--host', '--remote']);
  assert.equal(both.code, 2, both.stderr);
});

test('doctor as JSON parses', async () => {
  const result = await sandlot(['doctor', '-o', 'json']);
  assert.doesNotThrow(() => JSON.parse(result.stdout), result.stdout + result.stderr);
});

test('version is one line with a number, with or without a daemon', async () => {
  assert.match(await ok(['version']), /\d+\.\d+\.\d+/);
  assert.match(await ok(['--version']), /\d+\.\d+\.\d+/);
  assert.match((await sandlot(['version'], { env: { SANDLOT_URL: 'http://127.0.0.1:1', SANDLOT_TOKEN: 'x' } })).stdout, /\d+\.\d+\.\d+/);
});

test('help lists every command, and each command has help of its own', async () => {
  for (const args of [['help'], ['--help'], ['-h']]) {
    const text = await ok(args);
    for (const command of COMMANDS) assert.match(text, new RegExp(`^\\s*${command}\\b`, 'm'), `${args}: ${command}`);
  }
  const [, first, others] = /\nstart here:\n([^]*?)\n\nall others:\n([^]*?)\n\n/.exec(await ok(['help']));
  const names = (text) => [...text.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
  assert.deepEqual(names(first), ['run', 'create', 'exec', 'shell', 'ls', 'rm', 'open', 'cp', 'logs']);
  assert.deepEqual(names(others), names(others).sort());
  assert.equal(new Set([...names(first), ...names(others)]).size, names(first).length + names(others).length);
  for (const command of COMMANDS) {
    const text = await ok([command, '--help']);
    assert.match(text, new RegExp(`sandlot ${command}`), command);
    assert.equal(await ok(['help', command]), text, command);
  }
});

test('completion is a script that the shell takes and that knows the commands', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = await ok(['completion', shell]);
    for (const command of COMMANDS) assert.ok(script.includes(command), `${shell}: ${command}`);
  }
  const script = await ok(['completion', 'bash']);
  const check = await new Promise((resolve) => {
    const child = spawn('bash', ['-c', `${script}\nCOMP_WORDS=(sandlot in); COMP_CWORD=1; f=$(complete -p sandlot | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $f sandlot in sandlot; printf '%s\\n' "\${COMPREPLY[@]}"`], { env: { ...process.env, PATH: `${BUILD_DIR}:${process.env.PATH}` }, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    child.stdout.on('data', (chunk) => { text += chunk; });
    child.stderr.on('data', (chunk) => { text += chunk; });
    child.on('close', (code) => resolve({ code, text }));
  });
  assert.equal(check.code, 0, check.text);
  assert.match(check.text, /^inspect\s*$/m);
  speaks(await sandlot(['completion', 'no-such-shell']), /bash/);
});

test('wrong usage names the mistake and points to help', async () => {
  const id = await created();
  for (const [args, word] of [
    [['no-such-command'], /no-such-command/], [['ls', '--no-such-flag'], /no-such-flag/], [['inspect'], /id|sandbox|argument|usage/i], [['ls', '-o', 'yaml'], /yaml|table|json/], [['create', '--memory'], /memory/],
    [['create', '--memory', 'lots'], /memory/], [['create', '--port', 'x'], /port/], [['create', '--env', 'NOEQUALS'], /env|NOEQUALS/], [['exec', id], /command|usage/i], [['run'], /command|usage/i], [['ls', 'extra'], /extra|argument|usage/i],
  ]) {
    const result = await sandlot(args);
    speaks(result, word);
    assert.ok(result.code > 0 && result.code < 126, `${args}: ${result.code}`);
  }
  const nothing = await sandlot([]);
  assert.match(nothing.stdout + nothing.stderr, /run|usage/i);
});

test('a sandbox that does not exist is named in the error', async () => {
  const nobody = '01arz3ndektsv4rrffq69g5fav';
  for (const args of [['inspect', nobody], ['exec', nobody, '--', 'true'], ['stop', nobody], ['rm', nobody], ['stats', nobody], ['cp', `${nobody}:/x`, 'y']]) speaks(await sandlot(args), new RegExp(nobody));
});

test('a wrong token and a daemon that is not there are told apart, with advice', async () => {
  speaks(await sandlot(['ls'], { env: { ...urlEnv(), SANDLOT_TOKEN: 'wrong' } }), /token|SANDLOT_TOKEN/i);
  speaks(await sandlot(['ls'], { env: { SANDLOT_URL: 'http://127.0.0.1:1', SANDLOT_TOKEN: 'x' } }), /127\.0\.0\.1:1|connect|running|sandlotd/i);
  speaks(await sandlot(['ls'], { env: { SANDLOT_URL: 'nonsense', SANDLOT_TOKEN: 'x' } }), /nonsense|URL/i);
  speaks(await sandlot(['ls'], { env: { SANDLOT_DATA_DIR: '/no/such/dir' } }), /\/no\/such\/dir|token|running/i);
});

test('a reader that goes away early does no harm', async () => {
  const child = spawn('sh', ['-c', `"${program('sandlot')}" run -- sh -c 'yes' | head -1`], { env: instance.environment(urlEnv()), stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk) => { text += chunk; });
  await within('the end of both', new Promise((resolve) => { child.on('close', resolve); }));
  assert.equal(text, 'y\n');
});

finish();

test('the shutdown command ends daemon, keeper and sandboxes', async () => {
  const second = new Instance('cli-shutdown');
  try {
    await second.start();
    await second.api.create();
    second.sandboxProcesses();
    const told = await ok(['shutdown'], { env: { SANDLOT_URL: `http://127.0.0.1:${second.api.port}`, SANDLOT_TOKEN: second.api.token } });
    assert.match(told, /no longer answers, and its sandboxes end with it; their files stay/);
    await until(() => second.daemon.how && second.survivors().length === 0, { what: 'everything has ended' });
    assert.deepEqual(second.daemon.how, { code: 0, signal: null });
    await second.start();
    const sandbox = await second.api.create();
    const own = second.sandboxProcesses().length;
    assert.ok(own > 0, sandbox.id);
    const said = await ok(['shutdown'], { env: { SANDLOT_DATA_DIR: second.dataDir } });
    assert.match(said, /and all sandboxes have ended; their files stay/);
    assert.deepEqual(second.survivors().filter(({ cmdline }) => cmdline !== ''), [], 'when the command is back, nothing runs but what is in the middle of its exit');
    await until(() => second.survivors().length === 0, { what: 'and that ends' });
  } finally {
    second.destroy();
  }
});
