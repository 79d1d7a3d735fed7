// SPDX-License-Identifier: Apache-2.0
// sandlot logs of a whole sandbox: start commands and background processes together.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine, speaks } from './lib/cli.mjs';
import { processInfo } from './lib/proc.mjs';
import { hostProcesses, untilRunning } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-logs');
const { start, sandlot, ok, created } = commandLine(instance);

const sandbox = await api.create({ start: [{ name: 'web', command: 'echo web is up; echo web fails >&2; sleep 600' }] });
const { id } = sandbox;
const background = (await ok(['exec', '-d', id, '--', 'sh', '-c', 'printf "one\ntwo\nhalf"; sleep 600'])).trim();
await until(async () => /half/.test(await ok(['logs', id, background])) && /web is up/.test(await ok(['logs', id])), { what: 'both have written' });

test('logs of a sandbox are those of all its processes, with their names', async () => {
  const result = await sandlot(['logs', id]);
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(result.stdout.split('\n').sort(), ['', `${background.padEnd(6)} | half`, `${background.padEnd(6)} | one`, `${background.padEnd(6)} | two`, 'web    | web is up'].sort());
  assert.equal(result.stderr, 'web    | web fails\n');
});

test('logs of a member are its own, all of them and of one process', async () => {
  const own = await api.create({ start: 'echo outer; exec sleep 600', members: [{ role: 'cache', template: 'host', command: 'echo inner; exec sleep 600' }] });
  const lines = async (...args) => (await sandlot(['logs', ...args])).stdout;
  await until(async () => /outer/.test(await lines(own.id)), { what: 'both have written' });
  await until(async () => (await lines('--member', 'cache', own.id)) === 'cache  | inner\n', { what: 'the line of the member' });
  const { processes } = (await api.request('GET', `/v1/sandboxes/${own.id}/processes`, { query: { member: 'cache' } })).json;
  assert.equal(await lines('--member', 'cache', own.id, processes[0].id), 'inner\n');
  assert.doesNotMatch(await lines(own.id), /inner/);
  const none = await sandlot(['logs', '--member', 'database', own.id]);
  assert.notEqual(none.code, 0);
  assert.match(none.stderr, /has no member database/);
  await api.purge(own.id);
});

test('--grep finds lines of all processes, or of one, and nothing in them steers the terminal', async () => {
  assert.equal(await ok(['logs', '--grep', 'tw', id]), `${background.padEnd(6)} | two\n`);
  assert.equal((await ok(['logs', '-i', '--grep', 'WEB', id])).split('\n').length, 3);
  assert.equal(await ok(['logs', '--grep', 'WEB', id]), '');
  assert.equal(await ok(['logs', '-i', '--grep', 'web', id, background]), '');
  assert.match(await ok(['logs', '-t', '--grep', 'one', id, background]), /^\d{4}-\d\d-\d\dT\S+Z p\d+ +\| one\n$/);
  assert.equal(JSON.parse(await ok(['-o', 'json', 'logs', '--grep', 'fails', id])).matches[0].stream, 'stderr');
  const hostile = (await ok(['exec', '-d', id, '--', 'printf', 'a title \\033]0;gotcha\\007 & more?x=1 \\302\\233 end\\n'])).trim();
  await ok(['wait', id, hostile]);
  const found = await ok(['logs', '--grep', '& more?x=1', id]);
  assert.match(found, /a title .*end\n$/s);
  assert.doesNotMatch(found, /[\u0007\u001b\u009b]/);
  speaks(await sandlot(['logs', '-f', '--grep', 'x', id]), /--grep goes with/);
  speaks(await sandlot(['logs', '-i', id]), /--ignore-case goes with --grep/);
});

test('commands that somebody waited for are left out, and there with -a', async () => {
  const other = await created();
  assert.equal(await ok(['exec', other, '--', 'echo', 'seen']), 'seen\n');
  const name = (await ok(['exec', '-d', other, '--', 'echo', 'by itself'])).trim();
  await ok(['wait', other, name]);
  assert.equal(await ok(['logs', other]), `${name.padEnd(6)} | by itself\n`);
  assert.deepEqual((await ok(['logs', '-a', other])).trim().split('\n').map((line) => line.split('| ')[1]), ['seen', 'by itself']);
});

test('--tail shows the last lines of each process', async () => {
  assert.deepEqual((await ok(['logs', '--tail', '1', id, background])), 'half\n');
  assert.equal(await ok(['logs', '-n', '2', id, background]), 'two\nhalf\n');
  assert.match(await ok(['logs', '--tail', '1', id]), new RegExp(`^${background} +\\| half$`, 'm'));
  speaks(await sandlot(['logs', '--tail', '0', id]), /--tail takes from 1/);
});

test('lines of several processes come in the order of their times, -t shows these, --since leaves older ones out', async () => {
  const other = await created();
  // Each waits for the other, and a moment more than lines may share a time.
  const turn = (me, next) => `for i in 1 2 3; do until [ -e /tmp/${me}$i ]; do sleep 0.01; done; sleep 0.05; echo ${me}$i; sleep 0.05; touch /tmp/${next}$([ ${me} = b ] && echo $((i + 1)) || echo $i); done`;
  const [a, b] = [(await ok(['exec', '-d', other, '-c', turn('a', 'b')])).trim(), (await ok(['exec', '-d', other, '-c', turn('b', 'a')])).trim()];
  await ok(['exec', other, '--', 'touch', '/tmp/a1']);
  for (const name of [a, b]) await ok(['wait', other, name]);
  const plain = (await ok(['logs', other])).trim().split('\n');
  assert.deepEqual(plain.map((line) => line.split('| ')[1]), ['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
  const dated = (await ok(['logs', '-t', other])).trim().split('\n').map((line) => /^(\S+) +\| (\S+Z) (..)$/.exec(line));
  const times = dated.map(([, , time]) => Date.parse(time));
  assert.ok(times.every((time, i) => i === 0 || time > times[i - 1]), String(times));
  const since = dated[2][2];
  assert.equal(await ok(['logs', '--since', since, other]), plain.slice(2).map((line) => `${line}\n`).join(''));
  assert.equal(await ok(['logs', '--since', since, other, a]), 'a2\na3\n');
  assert.equal(await ok(['logs', '--since', since, '-n', '1', '-t', other, a]), `${dated[4][2]} a3\n`);
  assert.equal((await ok(['logs', '--since', '1h', other])).trim().split('\n').length, 6);
  assert.equal(await ok(['logs', '--since', '2100-01-01T00:00:00Z', other]), '');
  speaks(await sandlot(['logs', '--since', 'yesterday', other]), /--since takes how long ago/);
  const { text } = await api.request('GET', `/v1/sandboxes/${other}/processes/${a}/output`, { query: { follow: false }, headers: { accept: 'text/event-stream' } });
  assert.match(text, new RegExp(`^data: {"data":"a1\\\\n","at":"${dated[0][2]}"}$`, 'm'));
});

test('-f goes on with all of them, and with those that come later', async () => {
  const child = start(['logs', '-f', '--tail', '1', id]);
  await until(() => /web +\| web fails/.test(child.said), { what: 'what is there is shown' });
  const later = (await ok(['exec', '-d', id, '--', 'sh', '-c', 'echo later; sleep 600'])).trim();
  await until(() => new RegExp(`^${later} +\\| later$`, 'm').test(child.shown()), { what: 'a new process is followed' });
  await ok(['kill', id, later]);
  child.kill('SIGINT');
  assert.notEqual((await child.result).code, 0);
  assert.doesNotMatch(child.shown(), /\| one/);
});

test('-f ends when the sandbox has stopped', async () => {
  const other = await created();
  await ok(['exec', '-d', other, '--', 'sh', '-c', 'echo there; sleep 600']);
  const child = start(['logs', '-f', other]);
  await until(() => /there/.test(child.shown()), { what: 'it is followed' });
  await ok(['stop', other]);
  assert.equal((await child.result).code, 0);
});

test('what was written while no daemon was there has the time at which it was written', async () => {
  const other = await created();
  const name = (await ok(['exec', '-d', other, '--', 'sh', '-c', 'echo before; trap "echo away; exec sleep 4242" USR1; while :; do sleep 0.02; done'])).trim();
  await until(async () => /before/.test(await ok(['logs', other])), { what: 'it is ready' });
  const { pid } = await instance.initOf(other);
  const [main] = instance.sandboxProcesses().filter((info) => info.ppid === pid);
  await instance.crash();
  const crashed = Date.now();
  process.kill(main.pid, 'SIGUSR1');
  await untilRunning(instance, 'sleep 4242');
  await until(() => processInfo(pid).state === 'S', { what: 'the agent has read what there is' });
  const written = Date.now();
  await instance.start();
  await until(async () => /away/.test(await ok(['logs', other])), { what: 'the next daemon has it' });
  const [, time] = /^(\S+Z) away$/m.exec(await ok(['logs', '-t', other, name]));
  assert.ok(Date.parse(time) >= crashed && Date.parse(time) <= written, `${time} is between ${new Date(crashed).toISOString()} and ${new Date(written).toISOString()}`);
  assert.equal(hostProcesses(instance, 'sleep 4242').length, 1);
});

test('a line longer than any screen is cut into several, and no byte is lost', async () => {
  const other = await created();
  const name = (await ok(['exec', '-d', other, '--', 'sh', '-c', 'head -c 200000 /dev/zero | tr "\\0" x; echo'])).trim();
  await ok(['wait', other, name]);
  const lines = (await ok(['logs', other])).trim().split('\n').map((line) => line.replace(/^\S+ +\| /, ''));
  assert.equal(lines.join('').length, 200000);
  assert.ok(lines.every((line) => line.length <= 65536));
});

test('stats --since shows what a sandbox used, step by step', async () => {
  const past = async (...args) => JSON.parse(await ok(['-o', 'json', 'stats', '--since', ...args]));
  const { step_s, points } = await until(async () => { const found = await past('10m', id); return found.points.length > 0 && found; }, { what: 'there is a past' });
  assert.equal(step_s, 10);
  assert.ok(points[0].memory_bytes > 0);
  assert.match(await ok(['stats', '--since', '10m', id]), /^TIME +CPU% +MEMORY +DISK +RECEIVED\/S +SENT\/S\n\d{4}-\d\d-\d\dT\S+ +\d/);
  assert.equal((await past('20h', id)).step_s, 300);
  assert.deepEqual((await past('2999-01-01T00:00:00Z', id)).points, []);
  speaks(await sandlot(['stats', '--since', '1h']), /name it/);
  speaks(await sandlot(['stats', '--since', 'soon', id]), /since|time/i);
});

finish();
