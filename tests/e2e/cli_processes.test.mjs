// SPDX-License-Identifier: Apache-2.0
// Processes from the command line: started, listed, followed, fed, waited for and ended.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { test } from 'node:test';

import { commandLine, speaks } from './lib/cli.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-processes');
const { start, sandlot, ok, json, created, crash } = commandLine(instance);

const detached = async (id, line, ...options) => (await ok(['exec', '-d', ...options, id, '-c', line])).trim();
const onHost = (marker) => instance.sandboxProcesses().filter((info) => proc.cmdline(info.pid) === marker && info.state !== 'Z');
/** What was killed is on its way out when the call returns; nothing may stay. */
const gone = (...markers) => until(() => markers.every((marker) => onHost(marker).length === 0), { what: `${markers} have ended` });

/** The client has asked and waits: it has not run for a while. */
async function atRest(child) {
  const switches = () => /voluntary_ctxt_switches:\s*(\d+)/.exec(fs.readFileSync(`/proc/${child.pid}/status`, 'latin1'))[1];
  let last = '';
  let times = 0;
  await until(() => {
    const now = switches();
    times = now === last ? times + 1 : 0;
    last = now;
    return times >= 15;
  }, { what: 'the client waits' });
}

const sum = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');

test('exec -d leaves a command running, and ps, logs and wait know it by the name it prints', async () => {
  const id = await created();
  const name = await detached(id, 'echo out; echo err >&2; read line; exit 3', '-i');
  assert.match(name, /^p\d+$/);
  const [heading, row] = (await ok(['ps', id])).split('\n');
  assert.match(heading, /PROCESS +PID +STATUS +AGE +EXIT +COMMAND/);
  assert.match(row, new RegExp(`^${name} +\\d+ +running +\\d+[smh] +- +echo out`));
  assert.equal(await ok(['ps', '-q', id]), `${name}\n`);
  await until(async () => (await ok(['logs', id, name])) === 'out\n', { what: 'it has printed' });
  assert.equal((await sandlot(['logs', id, name])).stderr, 'err\n');
  const waiting = start(['wait', id, name]);
  await ok(['attach', id, name], { input: 'line\n' }).catch(() => {});
  const { code, stdout, stderr } = await waiting.result;
  assert.deepEqual({ code, stdout, stderr }, { code: 3, stdout: '', stderr: '' });
  assert.equal(await ok(['ps', '-q', id]), '');
  assert.equal(await ok(['ps', '-aq', id]), `${name}\n`);
  assert.match(await ok(['ps', '-a', id]), new RegExp(`${name} +\\d+ +exited +\\S+ +3 `));
});

test('ps as JSON is what the API says', async () => {
  const id = await created();
  const name = await detached(id, 'sleep 600');
  const { processes } = await json(['ps', '--json', id]);
  assert.equal(processes.length, 1);
  assert.equal(processes[0].id, name);
  assert.equal(processes[0].status, 'running');
  assert.equal((await json(['exec', '-d', '--json', id, 'true'])).process.background, true);
  await ok(['kill', id, name]);
});

test('a process is found by its pid too', async () => {
  const id = await created();
  await detached(id, 'echo found; exec sleep 600');
  const [{ pid, id: name }] = (await json(['ps', '--json', id])).processes;
  await until(async () => (await ok(['logs', id, String(pid)])) === 'found\n', { what: 'its output' });
  await ok(['kill', id, String(pid)]);
  assert.equal((await sandlot(['wait', id, name])).code, 137);
});

test('wait ends with 0, 3, 137 and 124 as the process did', async () => {
  const id = await created();
  for (const [line, code, ...options] of [['exit 0', 0], ['exit 3', 3], ['kill -9 $$', 137], ['sleep 600', 124, '--timeout', '200ms']]) {
    assert.equal((await sandlot(['wait', id, await detached(id, line, ...options)])).code, code, line);
  }
});

test('exec -i ends with 0, 3 and 137 as the command did', async () => {
  const id = await created();
  for (const [line, code] of [['exit 0', 0], ['exit 3', 3], ['kill -9 $$', 137]]) {
    assert.equal((await sandlot(['exec', '-i', id, '-c', line], { input: '' })).code, code, line);
  }
});

test('logs shows bytes as they are, from where it is told, and its exit code is its own', async () => {
  const id = await created();
  const name = await detached(id, `python3 -c "import os; os.write(1, bytes(range(256)) * 100)"; exit 5`);
  assert.equal((await sandlot(['wait', id, name])).code, 5);
  const whole = Buffer.concat(Array(100).fill(Buffer.from(Array.from({ length: 256 }, (_, i) => i))));
  assert.ok((await sandlot(['logs', id, name])).bytes.equals(whole));
  const followed = await sandlot(['logs', '-f', id, name]);
  assert.equal(followed.code, 0);
  assert.ok(followed.bytes.equals(whole));
  assert.ok((await sandlot(['logs', '--from', '25000', id, name])).bytes.equals(whole.subarray(25_000)));
  assert.equal((await sandlot(['logs', '--from', '25600', id, name])).bytes.length, 0);
  speaks(await sandlot(['logs', '--from', '99999999', id, name]), /\S/);
});

test('logs marks what is no longer kept and shows the rest', async () => {
  const id = await created();
  const name = await detached(id, 'head -c 40000000 /dev/zero; echo the end');
  assert.equal((await sandlot(['wait', id, name])).code, 0);
  const result = await sandlot(['logs', id, name]);
  const [, from, to] = /MiB of output are no longer kept: bytes (\d+) to (\d+)/.exec(result.stderr) ?? assert.fail(result.stderr);
  assert.equal(result.bytes.length + Number(to) - Number(from), 40_000_008);
  assert.equal(result.bytes.subarray(-8).toString(), 'the end\n');
});

test('logs -f shows every line once over a crash of the daemon, and says that it was lost', async () => {
  const id = await created();
  const name = await detached(id, 'for i in $(seq 1 100); do echo line $i; echo other $i >&2; sleep 0.03; done');
  const logs = start(['logs', '-f', id, name]);
  await until(() => logs.shown().includes('line 20\n'), { what: 'it follows' });
  await crash();
  const { code, stdout, stderr } = await logs.result;
  assert.equal(code, 0, stderr);
  const numbers = Array.from({ length: 100 }, (_, i) => i + 1);
  assert.equal(stdout, numbers.map((n) => `line ${n}\n`).join(''));
  assert.deepEqual([...stderr.matchAll(/^other (\d+)$/gm)].map(([, n]) => Number(n)), numbers);
  assert.equal(stderr.match(/connection .* is lost/g)?.length, 1, stderr);
});

test('exec goes on over a restart of the daemon: every line once, its own exit code, one run', async () => {
  const id = await created();
  const line = 'echo run >> /workspace/runs; echo first; until [ -e /workspace/go ]; do sleep 0.05; done; echo last; echo other >&2; exit 7';
  const exec = start(['exec', id, '-c', line]);
  await until(() => exec.shown().includes('first\n'), { what: 'it runs' });
  const { port } = api;
  await instance.terminate();
  await instance.start(['--api-bind', `127.0.0.1:${port}`]);
  await ok(['exec', id, '-c', 'touch /workspace/go']);
  const { code, stdout, stderr } = await exec.result;
  assert.equal(code, 7, stderr);
  assert.equal(stdout, 'first\nlast\n');
  assert.equal(stderr.match(/connection .* is lost/g)?.length, 1, stderr);
  assert.match(stderr, /^other$/m);
  assert.doesNotMatch(stderr, /run it again/);
  assert.equal(await ok(['exec', id, '-c', 'cat /workspace/runs']), 'run\n');
});

test('wait asks again after a restart of the daemon', async () => {
  const id = await created();
  const name = await detached(id, 'read line; exit 7', '-i');
  const waiting = start(['wait', id, name]);
  await atRest(waiting);
  await crash();
  await sandlot(['attach', id, name], { input: 'go on\n' });
  assert.equal((await waiting.result).code, 7);
});

test('kill ends a process and all that it started', async () => {
  const id = await created();
  const name = await detached(id, 'sleep 7341 & setsid sleep 7342 & wait');
  await until(() => onHost('sleep 7341').length === 1 && onHost('sleep 7342').length === 1, { what: 'the tree is there' });
  assert.equal(await ok(['kill', id, name]), `${name}\n`);
  await gone('sleep 7341', 'sleep 7342');
  assert.equal((await sandlot(['wait', id, name])).code, 137);
});

test('kill --main-only spares what it started; ps shows that and kill ends it', async () => {
  const id = await created();
  const name = await detached(id, 'sleep 7343 & wait');
  await until(() => onHost('sleep 7343').length === 1, { what: 'the child is there' });
  await ok(['kill', '--main-only', id, name]);
  assert.equal((await sandlot(['wait', id, name])).code, 137);
  assert.equal(onHost('sleep 7343').length, 1);
  assert.match(await ok(['ps', id]), new RegExp(`${name} .*exited, 1 left`));
  await ok(['kill', id, name]);
  await gone('sleep 7343');
});

test('kill -s sends the signal, by any of its names', async () => {
  const id = await created();
  for (const signal of ['INT', 'SIGINT', '2']) {
    const name = await detached(id, 'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.05; done');
    await until(async () => (await ok(['logs', id, name])).startsWith('ready'), { what: 'the trap is set' });
    await ok(['kill', '-s', signal, id, name]);
    assert.equal((await sandlot(['wait', id, name])).code, 9, signal);
    assert.match(await ok(['logs', id, name]), /caught/);
  }
  const ended = await detached(id, 'true');
  await sandlot(['wait', id, ended]);
  assert.notEqual((await sandlot(['kill', '-s', 'INT', id, ended])).code, 0);
  const name = await detached(id, 'sleep 600');
  assert.notEqual((await sandlot(['kill', '-s', 'NONSENSE', id, name])).code, 0);
  await ok(['kill', id, name]);
});

test('kill takes several and goes on after one that is not there', async () => {
  const id = await created();
  const names = await Promise.all([detached(id, 'sleep 600'), detached(id, 'sleep 600')]);
  const result = await sandlot(['kill', id, names[0], 'p9999', names[1]]);
  assert.equal(result.code, 3);
  assert.equal(result.stdout, `${names[0]}\n${names[1]}\n`);
  assert.match(result.stderr, /p9999/);
  await until(async () => (await ok(['ps', '-q', id])) === '', { what: 'both have ended' });
});

test('exec -i passes a megabyte through unchanged', async () => {
  const id = await created();
  const input = crypto.randomBytes(MI);
  const result = await sandlot(['exec', '-i', id, 'cat'], { input });
  assert.equal(result.code, 0, result.stderr);
  assert.equal(result.bytes.length, input.length);
  assert.equal(sum(result.bytes), sum(input));
});

test('exec -i holds input back while the command does not read, and loses none of it', async () => {
  const id = await created();
  const input = crypto.randomBytes(8 * MI);
  const result = await sandlot(['exec', '-i', id, '-c', 'sleep 1; sha256sum'], { input });
  assert.equal(result.stdout, `${sum(input)}  -\n`, result.stderr);
});

test('exec -i is a conversation: each line is there before the next is written', async () => {
  const id = await created();
  const child = start(['exec', '-i', id, '-c', 'while read line; do echo "got $line"; done; echo end; exit 4'], { input: 'open' });
  for (const word of ['one', 'two', 'three']) {
    child.stdin.write(`${word}\n`);
    await until(() => child.shown().endsWith(`got ${word}\n`), { what: `the answer to ${word}` });
  }
  child.stdin.end();
  const { code, stdout } = await child.result;
  assert.equal(code, 4);
  assert.equal(stdout, 'got one\ngot two\ngot three\nend\n');
});

test('exec -i ends with its command, whatever of the input is left', async () => {
  const id = await created();
  const child = start(['exec', '-i', id, '-c', 'head -c 3; exit 6'], { input: 'open' });
  child.stdin.write('abcdef');
  const { code, stdout } = await child.result;
  assert.equal(code, 6);
  assert.equal(stdout, 'abc');
});

test('exec -i that is interrupted ends the command and all that it started', async () => {
  const id = await created();
  const child = start(['exec', '-i', id, '-c', 'echo up; sleep 7351 & sleep 7352'], { input: 'open' });
  await until(() => child.shown() === 'up\n' && onHost('sleep 7351').length === 1, { what: 'it runs' });
  child.kill('SIGINT');
  assert.equal((await child.result).code, 130);
  await gone('sleep 7351', 'sleep 7352');
});

test('exec -i whose reader goes away ends the command', async () => {
  const id = await created();
  const child = start(['exec', '-i', id, '-c', 'echo up; exec yes 7353'], { input: 'open' });
  await until(() => child.shown().includes('7353'), { what: 'it prints' });
  child.stdout.destroy();
  assert.equal((await child.result).code, 141);
  await gone('yes 7353');
});

test('exec -i goes on over a crash of the daemon', async () => {
  const id = await created();
  const child = start(['exec', '-i', id, '-c', 'for i in $(seq 1 60); do echo $i; sleep 0.03; done; cat; exit 8'], { input: 'open' });
  await until(() => child.shown().includes('\n10\n'), { what: 'it runs' });
  await crash();
  child.stdin.end('typed later\n');
  const { code, stdout, stderr } = await child.result;
  assert.equal(code, 8, stderr);
  assert.equal(stdout, `${Array.from({ length: 60 }, (_, i) => `${i + 1}\n`).join('')}typed later\n`);
});

test('attach goes on with the output and passes lines on', async () => {
  const id = await created();
  const name = await detached(id, 'echo before; while read line; do echo "got $line"; done; exit 5', '-i');
  const child = start(['attach', id, name], { input: 'open' });
  child.stdin.write('hello\n');
  await until(() => child.shown() === 'before\ngot hello\n', { what: 'the answer' });
  child.kill('SIGINT');
  const left = await child.result;
  assert.equal(left.code, 130);
  assert.match(left.stderr, new RegExp(`sandlot attach ${id} ${name}`));
  const again = await sandlot(['attach', id, name], { input: 'again\n' });
  assert.equal(again.code, 5);
  assert.equal(again.stdout, 'before\ngot hello\ngot again\n');
});

test('exec -d without -i has an empty input', async () => {
  const id = await created();
  const name = await detached(id, 'cat; exit 2');
  assert.equal((await sandlot(['wait', id, name])).code, 2);
});

test('exec -t without -i shows what a terminal would and needs none itself', async () => {
  const id = await created();
  const result = await sandlot(['exec', '-t', id, '-c', 'test -t 0 && test -t 1 && echo yes; exit 3']);
  assert.equal(result.code, 3);
  assert.equal(result.stdout, 'yes\r\n');
});

test('what needs a terminal says so where there is none', async () => {
  const id = await created();
  speaks(await sandlot(['exec', '-it', id, 'sh']), /not a terminal[^]*leave -t out/);
  speaks(await sandlot(['shell', id]), /not a terminal[^]*exec -i/);
  const name = await detached(id, 'sleep 600', '-t');
  speaks(await sandlot(['attach', id, name]), /not a terminal[^]*logs/);
  await ok(['kill', id, name]);
});

test('a process that does not exist is named in the error', async () => {
  const id = await created();
  for (const command of ['logs', 'wait', 'attach']) {
    const result = await sandlot([command, id, 'p9999']);
    speaks(result, /p9999/);
    assert.equal(result.code, 3);
  }
  for (const command of ['logs', 'wait', 'attach', 'kill']) assert.equal((await sandlot([command, id, '../x'])).code, 2, command);
});

test('what lasts is told at once that there is no daemon', async () => {
  const env = { SANDLOT_URL: 'http://127.0.0.1:1', SANDLOT_TOKEN: 'x' };
  const nobody = '01arz3ndektsv4rrffq69g5fav';
  for (const args of [['logs', '-f', nobody, 'p1'], ['wait', nobody, 'p1'], ['attach', nobody, 'p1'], ['exec', '-i', nobody, 'cat']]) {
    const result = await sandlot(args, { env });
    assert.equal(result.code, 75);
    assert.match(result.stderr, /cannot reach/);
  }
});

test('a stopped sandbox lists its processes without being woken', async () => {
  const id = await created();
  const name = await detached(id, 'sleep 600');
  await ok(['stop', id]);
  assert.equal((await api.get(id)).status, 'stopped');
  assert.equal(await ok(['ps', '-q', id]), '');
  assert.match(await ok(['ps', '-a', id]), new RegExp(`${name} .*exited .*operator`));
  assert.equal((await api.get(id)).status, 'stopped');
});

finish();
