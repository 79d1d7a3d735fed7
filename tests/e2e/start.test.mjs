// SPDX-License-Identifier: Apache-2.0
// Start commands: run whenever the sandbox starts, again when they fail, and never twice at a time.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Processes, hostProcesses, untilRunning } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('start');
const ps = new Processes(api);
const running = (words) => hostProcesses(instance, words);

/** How the start command of a sandbox fares; the first one, if it has several. */
const fares = async (id, name) => (await api.get(id)).start.find((start) => name === undefined || start.name === name);
const untilFares = (id, isSo, what) => until(async () => { const start = await fares(id); return isSo(start) && start; }, { what });
const untilStatus = (id, status) => untilFares(id, (start) => start.status === status, `its start command is ${status}`);

let lastNap = 40_000;
/** A command that does nothing and can be told from all others on the host. */
const nap = () => `sleep ${++lastNap}`;
const asExec = (line) => `exec ${line}`;

const loop = (await api.create({ start: 'exit 4' })).id;

test('a new sandbox runs it as a kept process that is marked', async () => {
  const line = 'echo here $PWD $WORD; exec sleep 39001';
  const made = await api.create({ start: line, env: { WORD: 'word' } });
  assert.equal(made.start.length, 1);
  const { status, process, restarts, last_termination: end, ...rest } = made.start[0];
  assert.deepEqual([status, process, restarts, end], ['running', 'p1', 0, null]);
  assert.deepEqual(rest, { name: 'main', command: line, cwd: '/workspace', last_error: null, next_try_at: null, last_ended_at: null, last_exit_code: null });
  await ps.untilOutput(made.id, 'p1', 'here /workspace word\n');
  await untilRunning(instance, 'sleep 39001');
  const record = await ps.get(made.id, 'p1');
  assert.deepEqual([record.start, record.restarts, record.background, record.user, record.command], ['main', 0, true, 'sandbox', line]);
  const other = await ps.start(made.id, 'true');
  assert.equal(other.start, null, 'what users start is not marked');
  const listed = (await api.all()).find((sandbox) => sandbox.id === made.id);
  assert.deepEqual(listed.start, made.start);
});

test('several have names, directories and environments of their own, which nobody is shown', async () => {
  const made = await api.create({ start: [{ name: 'web', command: 'pwd; echo $A; exec sleep 39002', cwd: '/tmp', env: { A: 'secret-1' } }, { name: 'worker', command: 'exec sleep 39003' }] });
  assert.deepEqual(made.start.map((start) => [start.name, start.status]), [['web', 'running'], ['worker', 'running']]);
  assert.ok(!JSON.stringify(made).includes('secret-1'));
  await ps.untilOutput(made.id, made.start[0].process, '/tmp\nsecret-1\n');
  await Promise.all([untilRunning(instance, 'sleep 39002'), untilRunning(instance, 'sleep 39003')]);
  await api.purge(made.id);
});

test('it runs once after each start: by hand, by use, and after a reset; a pause leaves it as it is', async () => {
  const words = nap();
  const { id } = await api.create({ start: asExec(words) });
  const [first] = await until(() => running(words).length === 1 && running(words), { what: 'it runs' });
  await api.life(id, 'pause');
  await api.life(id, 'resume');
  assert.deepEqual(running(words).map((info) => info.pid), [first.pid]);
  await api.life(id, 'stop');
  assert.deepEqual([(await fares(id)).status, running(words).length], ['stopped', 0]);
  await api.life(id, 'start');
  await untilRunning(instance, words);
  await api.life(id, 'stop');
  assert.equal(await api.out(id, 'echo used'), 'used\n');
  await untilRunning(instance, words);
  await api.life(id, 'reset');
  await untilRunning(instance, words);
  await until(async () => (await api.request('GET', `/v1/sandboxes/${id}/processes`)).json.processes.every((record) => record.pid), { what: 'the daemon knows what runs' });
  const tries = (await ps.list(id)).filter((record) => record.start);
  assert.deepEqual(tries.map((record) => record.restarts), [0, 0, 0, 0], 'none of these is a restart');
  assert.equal(tries.filter((record) => record.status === 'running').length, 1);
});

test('one that fails is run again, after pauses that double; a loop of that is seen, and told as events', async () => {
  const { id } = await api.create();
  const said = [];
  const request = api.open('GET', `/v1/sandboxes/${id}/events`, {}, (error, response) => { if (!error) response.on('data', (chunk) => said.push(chunk.toString())); });
  request.on('error', () => {});
  await until(() => said.join('').includes('event: status'), { what: 'the stream is open' });
  assert.equal((await api.patch(id, { start: 'echo try >>/workspace/tries; exit 7' })).status, 200);
  const third = await untilFares(id, (start) => start.status === 'waiting' && start.restarts >= 2, 'it was restarted twice');
  assert.deepEqual([third.last_exit_code, third.last_termination.reason], [7, 'exited']);
  request.destroy();
  const events = [...said.join('').matchAll(/event: start\.waiting\ndata: (.*)\n/g)].map((match) => JSON.parse(match[1]));
  const pauses = events.slice(0, 3).map((event) => Math.round((Date.parse(event.next_try_at) - Date.parse(event.at)) / 1000));
  assert.deepEqual(pauses, [1, 2, 4]);
  assert.deepEqual(events.slice(0, 3).map((event) => [event.name, event.status, event.restarts, event.last_exit_code, event.last_reason]), [0, 1, 2].map((count) => ['main', 'waiting', count, 7, 'exited']));
  assert.match(said.join(''), /event: start\.running\ndata: .*"restarts":1/);
  const records = await ps.list(id); // the next try may have come meanwhile
  assert.ok(records.length >= 3);
  assert.deepEqual(records.map((record) => record.restarts), records.map((_, i) => i));
  assert.match((await api.read(id, '/workspace/tries')).toString(), /^(try\n){3,}$/);
  await api.purge(id);
});

test('while it is paused nothing is run again; that is made up for when it goes on', async () => {
  const { id } = await api.create({ start: 'exit 1' });
  // The next try may be faster than the pause; each is farther off than the one before.
  const planned = await until(async () => {
    await untilStatus(id, 'waiting');
    await api.life(id, 'pause');
    const now = await fares(id);
    if (now.status === 'waiting') return now;
    await api.life(id, 'resume');
    return null;
  }, { what: 'it is paused between two tries' });
  await until(() => Date.now() > Date.parse(planned.next_try_at) + 100, { what: 'the time of the next try has passed' });
  const { status, restarts } = await fares(id);
  assert.deepEqual([status, restarts], ['waiting', planned.restarts]);
  await api.life(id, 'resume');
  await untilFares(id, (start) => start.restarts > restarts, 'it was run again');
  await api.purge(id);
});

test('what a failed one leaves behind is ended before it is run again', async () => {
  const words = nap();
  const { id } = await api.create({ start: `${words} & exit 1` });
  await untilFares(id, (start) => start.restarts >= 1 && start.status === 'waiting', 'it was restarted');
  await untilRunning(instance, words, 0);
  await api.purge(id);
});

test('a directory that is not there yet is a failure like others', async () => {
  const words = nap();
  const { id } = await api.create({ start: [{ name: 'app', command: asExec(words), cwd: '/workspace/app' }] });
  const start = await untilStatus(id, 'waiting');
  assert.deepEqual([start.last_error, start.process, start.last_termination], ['the directory /workspace/app cannot be entered: No such file or directory', null, null]);
  await api.mkdir(id, '/workspace/app');
  await untilRunning(instance, words);
  assert.equal((await untilStatus(id, 'running')).last_error, null, 'that is over');
  await api.purge(id);
});

test('an error that is too long for its place is told in an event all the same', async () => {
  const { id } = await api.create();
  const said = [];
  const request = api.open('GET', `/v1/sandboxes/${id}/events`, {}, (error, response) => { if (!error) response.on('data', (chunk) => said.push(chunk)); });
  request.on('error', () => {});
  const heard = () => Buffer.concat(said).toString();
  await until(() => heard().includes('event: status'), { what: 'the stream is open' });
  // In one of the two the end of the text is in the middle of a character.
  const names = ['a', 'ab'].map((name) => ({ name, command: 'true', cwd: `/${name}${'/ää'.repeat(100)}` }));
  assert.equal((await api.patch(id, { start: names })).status, 200);
  const errors = () => heard().split('\n').filter((line) => /^data: .*"status":"waiting"/.test(line)).map((line) => JSON.parse(line.slice(6)));
  for (const { name, cwd } of names) await until(() => errors().some((event) => event.name === name && event.last_error.includes(cwd.slice(0, 50))), { what: `the event of ${name}` });
  request.destroy();
  await api.purge(id);
});

test('a sandbox without room for it says so, also as an event, and runs it when there is', async () => {
  const words = nap();
  const { id } = await api.create({ resources: { pids: 16 } });
  const crowd = await ps.start(id, { command: `exec python3 -c "
import os, time
try:
    while os.fork(): pass
except OSError: print('full', flush=True)
time.sleep(10000)"` });
  await ps.untilOutput(id, crowd.id, 'full');
  const said = [];
  const request = api.open('GET', `/v1/sandboxes/${id}/events`, {}, (error, response) => { if (!error) response.on('data', (chunk) => said.push(chunk.toString())); });
  request.on('error', () => {});
  await until(() => said.join('').includes('event: status'), { what: 'the stream is open' });
  assert.equal((await api.patch(id, { start: asExec(words) })).status, 200);
  const start = await untilStatus(id, 'waiting');
  assert.match(start.last_error, /^the sandbox has no room for another process: /);
  await until(() => said.join('').includes('event: start.waiting'), { what: 'the event' });
  assert.equal(JSON.parse(/event: start\.waiting\ndata: (.*)\n/.exec(said.join(''))[1]).last_error, start.last_error);
  request.destroy();
  await ps.kill(id, crowd.id);
  await untilRunning(instance, words);
  await api.purge(id);
});

test('one that ends with status 0 is left alone until the next start', async () => {
  const { id } = await api.create({ start: 'echo once >>/workspace/runs' });
  const start = await untilStatus(id, 'exited');
  assert.deepEqual([start.last_exit_code, start.next_try_at, start.restarts], [0, null, 0]);
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await untilStatus(id, 'exited');
  assert.equal((await api.read(id, '/workspace/runs')).toString(), 'once\n'.repeat(2));
});

test('who kills it means it: it stays away until the next start, also one that waits for its next try', async () => {
  const words = nap();
  const { id } = await api.create({ start: asExec(words) });
  await untilRunning(instance, words);
  await ps.kill(id, (await fares(id)).process);
  assert.equal((await untilStatus(id, 'killed')).next_try_at, null);
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await untilRunning(instance, words);
  assert.equal((await ps.signal(id, (await fares(id)).process, { signal: 'SIGTERM' })).status, 204);
  const again = await untilFares(id, (start) => start.restarts === 1 && start.status === 'running', 'a signal that is no kill is a failure');
  assert.equal(again.last_termination.signal, 'SIGTERM');
  const failing = (await api.create({ start: 'exit 1' })).id;
  await ps.kill(failing, (await untilStatus(failing, 'waiting')).process);
  assert.equal((await fares(failing)).status, 'killed');
});

test('PATCH replaces what changed, at once; the rest goes on', async () => {
  const [kept, old, fresh] = [nap(), nap(), nap()];
  const { id } = await api.create({ start: [{ name: 'kept', command: asExec(kept) }, { name: 'other', command: asExec(old) }] });
  const [before] = await until(() => running(kept).length === 1 && running(old).length === 1 && running(kept), { what: 'both run' });
  const changed = await api.patch(id, { start: [{ name: 'kept', command: asExec(kept) }, { name: 'other', command: asExec(fresh) }] });
  assert.deepEqual(changed.json.start.map((start) => [start.name, start.status]), [['kept', 'running'], ['other', 'running']]);
  await Promise.all([untilRunning(instance, old, 0), untilRunning(instance, fresh)]);
  assert.deepEqual(running(kept).map((info) => info.pid), [before.pid]);
  assert.deepEqual((await api.patch(id, { start: null })).json.start, []);
  await Promise.all([untilRunning(instance, kept, 0), untilRunning(instance, fresh, 0)]);
  await api.life(id, 'stop');
  assert.equal((await api.patch(id, { start: asExec(fresh) })).json.start[0].status, 'stopped');
  assert.equal(running(fresh).length, 0);
  await api.life(id, 'start');
  await untilRunning(instance, fresh);
  await api.purge(id);
});

test('what is no start command is refused, and says what is wrong', async () => {
  const one = { name: 'a', command: 'true' };
  for (const [start, message] of [
    ['', /field start must be from 1 to 16384 bytes long/], ['x'.repeat(16385), /start must be from/], [7, /start must be a string, or an array/],
    [Array(9).fill(one), /at most 8/], [['x'], /array of objects/], [[{ name: 'a' }], /start\[0\]\.command is missing/], [[{ command: 'true' }], /start\[0\]\.name is missing/],
    [[one, one], /has a name twice/], [[{ ...one, name: 'a"b' }], /start\[0\]\.name/], [[{ ...one, cwd: 'here' }], /start\[0\]\.cwd must be an absolute path/],
    [[{ ...one, env: { 'A B': '1' } }], /start\[0\]\.env/], [[{ ...one, more: 1 }], /unknown field start\[0\]\.more/],
  ]) assertError(await api.request('POST', '/v1/sandboxes', { json: { start } }), 400, message);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { start: null } }), 400);
});

test('it is no use: a sandbox whose start command talks all the time stops when it is idle', async () => {
  const { id } = await api.create({ start: 'while :; do echo talk; sleep 0.1; done', idle_timeout_s: 2 });
  const stopped = await until(async () => { const sandbox = await api.get(id); return sandbox.status === 'stopped' && sandbox; }, { what: 'it stops' });
  assert.equal(stopped.termination.reason, 'idle');
  await api.patch(id, { idle_timeout_s: null });
  await api.out(id, 'true');
  assert.equal((await fares(id)).status, 'running');
  await api.purge(id);
});

test('another owner neither sees nor changes it, and has the same names', async () => {
  const other = await ownerApi(api, 'acme', 'ann');
  const [mine, theirs] = [nap(), nap()];
  const { id } = await api.create({ start: [{ name: 'web', command: asExec(mine) }] });
  const made = await other.create({ start: [{ name: 'web', command: asExec(theirs) }] });
  await Promise.all([untilRunning(instance, mine), untilRunning(instance, theirs)]);
  assertError(await other.patch(id, { start: null }), 404);
  assertError(await other.request('DELETE', `/v1/sandboxes/${id}/processes/p1`), 404);
  assert.deepEqual([running(mine).length, made.start[0].status], [1, 'running']);
  await other.purge(made.id);
  assert.deepEqual([running(mine).length, running(theirs).length], [1, 0]);
});

test('the command line makes it and shows it', async () => {
  const words = nap();
  const { created, ok } = commandLine(instance);
  const id = await created('--start', asExec(words));
  await untilRunning(instance, words);
  assert.match(await ok(['ps', id]), new RegExp(`p1 .*running.*\\[main\\] exec ${words}`));
  const shown = await ok(['inspect', id]);
  assert.match(shown, new RegExp(`^start\\.main\\.command +exec ${words}$`, 'm'));
  assert.match(shown, /^start\.main\.status +running$/m);
  assert.match(shown, /^start\.main\.last_error +-$/m);
});

test('of one that fails again and again the last tries are remembered', async () => {
  await untilFares(loop, (start) => start.restarts >= 4 && start.status === 'waiting', 'it was restarted four times');
  const tries = await ps.list(loop);
  assert.deepEqual(tries.map((record) => record.restarts).slice(-4), tries.map((record) => record.restarts), 'four at most');
  assert.equal(tries.at(-1).restarts, (await fares(loop)).restarts);
});

test('a daemon that crashes leaves it in peace; what died meanwhile is run again, and nothing twice', async () => {
  const [steady, dying] = [nap(), nap()];
  const [going, dies, loops, done, killed] = await Promise.all([asExec(steady), asExec(dying), 'exit 5', 'true', asExec(nap())].map((start) => api.create({ start })));
  const [[before], [victim]] = await Promise.all([steady, dying].map((words) => until(() => running(words).length === 1 && running(words), { what: `${words} runs` })));
  await untilFares(loops.id, (start) => start.restarts >= 2 && start.status === 'waiting', 'it loops');
  await untilStatus(done.id, 'exited');
  await ps.kill(killed.id, 'p1');
  await untilStatus(killed.id, 'killed');
  await instance.crash();
  process.kill(victim.pid, 'SIGKILL');
  await instance.start();
  await until(async () => (await fares(dies.id)).restarts === 1 && running(dying).length === 1, { what: 'what died runs again' });
  assert.notEqual(running(dying)[0].pid, victim.pid);
  assert.deepEqual(running(steady).map((info) => info.pid), [before.pid]);
  assert.deepEqual([(await fares(going.id)).status, (await fares(going.id)).restarts], ['running', 0]);
  await untilFares(loops.id, (start) => start.restarts >= 3, 'it goes on where it was');
  assert.equal((await fares(done.id)).status, 'exited');
  assert.equal((await fares(killed.id)).status, 'killed');
  // Supervised as before: its end is noticed.
  process.kill(before.pid, 'SIGKILL');
  await until(async () => (await fares(going.id)).restarts === 1 && running(steady).length === 1, { what: 'it is run again by the new daemon' });
});

test('crash upon crash there is never more than one', async () => {
  const words = nap();
  const { id } = await api.create({ start: `echo x >>/workspace/runs; ${asExec(words)}` });
  await untilRunning(instance, words);
  for (let i = 0; i < 3; i++) {
    const [victim] = running(words);
    process.kill(victim.pid, 'SIGKILL');
    await instance.crash();
    await instance.start();
    await until(() => running(words).length === 1 && running(words)[0].pid !== victim.pid, { what: 'one runs again' });
  }
  assert.equal((await api.read(id, '/workspace/runs')).toString(), 'x\n'.repeat(4));
});

test('a change that is cut short by a crash is carried out by the next daemon', async () => {
  const specs = Array.from({ length: 8 }, () => nap());
  const { id } = await api.create({ start: asExec(specs[0]) });
  await untilRunning(instance, specs[0]);
  for (const [round, words] of specs.slice(1).entries()) {
    const patch = api.patch(id, { start: asExec(words) }).catch(() => {}); // it may have no answer
    await new Promise((resolve) => { setTimeout(resolve, round); }); // so that the crash comes elsewhere each time
    await Promise.all([instance.crash(), patch]);
    await instance.start();
    const { command } = await fares(id);
    await until(() => specs.every((other) => running(other).length === (asExec(other) === command ? 1 : 0)), { what: `${command} runs, and nothing else` });
  }
});

test('what a change that was written down before a crash has replaced or taken out does not run', async () => {
  const [old, fresh, gone, other] = [nap(), nap(), nap(), nap()];
  const changed = (await api.create({ start: asExec(old) })).id;
  const emptied = (await api.create({ start: asExec(gone) })).id;
  const surroundings = (await api.create({ start: [{ name: 'main', command: `exec sleep $NAP`, env: { NAP: other.slice(6) } }] })).id;
  await Promise.all([old, gone, other].map((words) => untilRunning(instance, words)));
  await instance.crash();
  const write = (id, start) => `UPDATE sandboxes SET start = '${JSON.stringify(start)}' WHERE id = '${id}';`;
  const nextNap = nap();
  sql(instance, write(changed, [{ name: 'main', command: asExec(fresh) }]) + write(emptied, [])
    + write(surroundings, [{ name: 'main', command: 'exec sleep $NAP', env: { NAP: nextNap.slice(6) } }]));
  await instance.start();
  await Promise.all([untilRunning(instance, fresh), untilRunning(instance, nextNap), ...[old, gone, other].map((words) => untilRunning(instance, words, 0))]);
  assert.deepEqual([(await fares(changed)).status, (await fares(changed)).restarts], ['running', 0]);
  assert.equal((await ps.list(emptied)).at(-1).termination.reason, 'killed');
});

finish();
