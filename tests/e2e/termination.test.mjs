// SPDX-License-Identifier: Apache-2.0
// How processes end, and that the record says so: the same in the answer, in the stream and in the list.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import * as proc from './lib/proc.mjs';
import { Processes, assertTermination, collect, hostProcesses, numbered, untilRunning } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('termination');
const { id } = await api.create();
const ps = new Processes(api);
const gone = (words) => untilRunning(instance, words, 0);

/** Runs a command in all three ways; each must tell the same end. Returns the terminations. */
async function inAllWays(sandbox, body) {
  const result = await api.exec(sandbox, body);
  const streamed = numbered(await collect(await api.execStream(sandbox, body))).exit;
  const { id: p } = await ps.start(sandbox, body);
  const followed = (await ps.read(sandbox, p)).exit;
  const record = await ps.wait(sandbox, p);
  assert.deepEqual(followed, { exit_code: record.exit_code, duration_ms: record.duration_ms, termination: record.termination }, 'stream and record say the same');
  for (const one of [result, streamed, record]) assertTermination(one.termination);
  return [result, streamed, record];
}

/** A process with a follower of its output that has seen `up`. */
async function watched(sandbox, line, extra = {}) {
  const process = await ps.start(sandbox, { command: `echo up; ${line}`, ...extra });
  const stream = await ps.output(sandbox, process.id);
  const events = stream.events();
  const seen = [];
  while (!seen.some((event) => event.event === 'stdout')) seen.push((await within('up', events.next())).value);
  const exit = (async () => {
    for await (const event of events) seen.push(event);
    return numbered(seen).exit;
  })();
  exit.catch(() => {});
  return { id: process.id, exit: (what) => within(`the stream ends ${what}`, exit) };
}

for (const [body, code, reason, signal] of [
  [{ command: 'exit 0' }, 0, 'exited', null],
  [{ command: 'exit 3' }, 3, 'exited', null],
  [{ argv: ['false'] }, 1, 'exited', null],
  [{ command: 'kill -SEGV $$' }, 139, 'signal', 'SIGSEGV'],
  [{ command: 'kill -KILL $$' }, 137, 'signal', 'SIGKILL'],
  [{ argv: ['python3', '-c', 'import os; os.abort()'] }, 134, 'signal', 'SIGABRT'],
  [{ command: 'sleep 6401', timeout_ms: 200 }, 124, 'timeout', undefined],
  [{ command: 'exit 124', timeout_ms: 60_000 }, 124, 'exited', null],
  [{ command: 'exit 137' }, 137, 'exited', null],
]) {
  test(`${JSON.stringify(body)} is told as ${reason}${signal ? ` ${signal}` : ''} with ${code}, in every form`, async () => {
    for (const { exit_code: exitCode, termination } of await inAllWays(id, body)) {
      assert.equal(exitCode, code);
      assert.equal(termination.reason, reason);
      if (reason === 'timeout') assert.equal(termination.detail, `its timeout of ${body.timeout_ms} ms was over`);
      if (signal !== undefined) assert.equal(termination.signal, signal);
    }
    await gone('sleep 6401');
  });
}

// The kernel's limits -------------------------------------------------------------------------

const EATER = 'x = b"x" * (300 << 20)';

for (const [what, body] of [
  ['a program', { argv: ['python3', '-c', EATER] }],
  ['a program of a pipeline', { argv: ['bash', '-c', `set -o pipefail; python3 -c '${EATER}' | cat`] }],
  ['the child of a shell', { command: `python3 -c '${EATER}'; exit $?` }],
]) {
  test(`${what} that eats more memory than there is ends as oom, and the sandbox goes on`, async () => {
    const own = await api.create({ resources: { memory: '64Mi' } });
    const init = await instance.initOf(own.id);
    for (const { exit_code: exitCode, termination } of await inAllWays(own.id, body)) {
      assert.equal(termination.reason, 'oom', JSON.stringify(termination));
      assert.equal(exitCode, 137);
      assert.match(termination.detail, new RegExp(`^out of memory: .* at a limit of 64 MiB; to change it: sandlot update ${own.id} --memory SIZE$`));
    }
    const after = await api.exec(own.id, 'echo works');
    assert.equal(after.stdout, 'works\n');
    assert.equal(after.termination.reason, 'exited', 'what comes after is not blamed');
    assert.ok(proc.isAlive(init), 'it is the same sandbox');
    assert.equal((await api.get(own.id)).status, 'running');
    await api.purge(own.id);
  });
}

test('of two commands only the one that ran out of memory is told as oom', async () => {
  const own = await api.create({ resources: { memory: '64Mi' } });
  const calm = await ps.start(own.id, 'read line; exit 0');
  assert.equal((await api.exec(own.id, { argv: ['python3', '-c', EATER] })).termination.reason, 'oom');
  await ps.write(own.id, calm.id, '\n');
  const record = await ps.wait(own.id, calm.id);
  assert.equal(record.exit_code, 0);
  assert.equal(record.termination.reason, 'exited');
  await api.purge(own.id);
});

test('whom the kernel killed in one sandbox is not told of the next in its uid range', async () => {
  const rangeOf = async (id) => fs.readFileSync(`/proc/${(await instance.initOf(id)).pid}/uid_map`, 'utf8').trim();
  const last = await api.create({ resources: { memory: '64Mi' } });
  const range = await rangeOf(last.id);
  await ps.start(last.id, `cp $(readlink -f $(command -v python3)) /tmp/hush6408; /tmp/hush6408 -c '${EATER}'; touch /tmp/over; sleep 6408`);
  await until(async () => (await api.exec(last.id, 'test -e /tmp/over')).exit_code === 0, { what: 'the kernel has killed it' });
  await api.purge(last.id); // nobody has asked for its figures
  const next = await until(async () => {
    const { id } = await api.create({ resources: { memory: '64Mi' } });
    if (await rangeOf(id) === range) return id;
    await api.purge(id);
    return null;
  }, { what: 'one in its range' });
  process.kill((await instance.initOf(next)).pid, 'SIGKILL');
  const { termination: end } = await until(async () => { const record = await api.get(next); return record.status === 'stopped' && record; }, { what: 'its end is known' });
  assert.match(end.detail, /killed by signal 9/);
  assert.doesNotMatch(end.detail, /hush6408/);
  await api.purge(next);
});

test('a command that fails for want of processes ends as pids_limit', async () => {
  const own = await api.create({ resources: { pids: 64 } });
  const program = 'import os, sys\ntry:\n    while True:\n        if os.fork() == 0: os.execvp("sleep", ["sleep", "6402"])\nexcept OSError: sys.exit(11)';
  const { id: p } = await ps.start(own.id, { argv: ['python3', '-c', program] });
  const record = await within('its end', ps.wait(own.id, p));
  assert.equal(record.exit_code, 11);
  assert.equal(record.termination.reason, 'pids_limit');
  const count = hostProcesses(instance, 'sleep 6402').length;
  assert.ok(count > 30 && count <= 64, `${count} processes`);
  await ps.kill(own.id, p);
  await gone('sleep 6402');
  const after = await until(async () => (await api.tryExec(own.id, 'echo works')).json, { what: 'there is room again' });
  assert.equal(after.stdout, 'works\n');
  assert.equal(after.termination.reason, 'exited');
  await api.purge(own.id);
});

test('a fork bomb is bounded, ended by its timeout, and the sandbox goes on', async () => {
  const own = await api.create({ resources: { pids: 64 } });
  const init = await instance.initOf(own.id);
  const ns = proc.namespace(init.pid, 'pid');
  const inside = () => instance.sandboxProcesses().filter((info) => info.state !== 'Z' && proc.namespace(info.pid, 'pid') === ns);
  const call = within('its end', api.exec(own.id, { argv: ['bash', '-c', ':(){ :|:& };:; sleep 6403'], timeout_ms: 2000 }));
  let most = 0;
  let result = null;
  call.then((value) => { result = value; }, () => { result = {}; });
  await until(() => {
    most = Math.max(most, inside().length);
    return result;
  }, { every: 50, what: 'it is over' });
  result = await call;
  assert.ok(['timeout', 'pids_limit'].includes(result.termination.reason), JSON.stringify(result.termination));
  assert.notEqual(result.exit_code, 0);
  assert.ok(most > 16 && most <= 66, `at most ${most} processes at a time`);
  for (const process of await ps.list(own.id)) if (process.survivors > 0) await ps.kill(own.id, process.id);
  await until(() => inside().length === 1, { what: 'nothing of it is left but the agent' });
  assert.equal(await api.out(own.id, 'echo works'), 'works\n');
  assert.ok(proc.isAlive(init), 'it is the same sandbox');
  await api.purge(own.id);
});

test('a command that fails on a full disk ends as disk_full', async () => {
  const { id: own } = await api.create({ resources: { disk: '32Mi' } });
  const fill = 'dd if=/dev/zero of=/workspace/outputs/fill bs=1M count=200';
  const { id: p } = await ps.start(own, fill);
  const record = await within('its end', ps.wait(own, p));
  assert.equal(record.exit_code, 1);
  assert.equal(record.termination.reason, 'disk_full');
  await api.out(own, 'rm /workspace/outputs/fill');
  const result = await api.exec(own, fill);
  assert.match(result.stderr, /No space left|quota exceeded/);
  assert.equal(result.termination.reason, 'disk_full');
  const beside = await api.exec(own, 'echo no such thing >&2; exit 3');
  assert.equal(beside.termination.reason, 'exited', 'a command that wrote nothing did not fail for want of room');
  assert.match(beside.termination.detail, /full at its end/);
  await api.out(own, 'rm /workspace/outputs/fill');
  const fine = await api.exec(own, 'exit 1');
  assert.equal(fine.termination.reason, 'exited', 'what fails for another reason is not blamed on the disk');
  assert.equal(await api.out(own, 'echo works > /workspace/outputs/file; cat /workspace/outputs/file'), 'works\n');
  await api.purge(own);
});

// Ends from outside ---------------------------------------------------------------------------

test('a kill is told as killed to whoever follows', async () => {
  const process = await watched(id, 'sleep 6404 & sleep 6404');
  await ps.kill(id, process.id);
  const exit = await process.exit('after a kill');
  assert.equal(exit.exit_code, 137);
  assert.equal(exit.termination.reason, 'killed');
  assert.deepEqual(exit.termination, (await ps.get(id, process.id)).termination);
  await gone('sleep 6404');
});

test('a timeout is told at once to whoever follows', async () => {
  const process = await watched(id, 'exec sleep 6405', { timeout_ms: 800 });
  await gone('sleep 6405');
  assert.equal((await process.exit('after the timeout')).termination.reason, 'timeout');
});

for (const [verb, act] of [
  ['a stop', (own) => api.life(own, 'stop')],
  ['a reset', (own) => api.life(own, 'reset')],
  ['a delete', (own) => api.remove(own)],
  ['a purge', (own) => api.purge(own)],
]) {
  test(`${verb} of the sandbox ends all streams at once with reason operator`, async () => {
    const own = await api.create();
    const all = await Promise.all(Array.from({ length: 5 }, () => watched(own.id, 'exec sleep 6406')));
    const foreground = await api.execStream(own.id, 'echo up; exec sleep 6406');
    const collected = collect(foreground);
    collected.catch(() => {});
    await untilRunning(instance, 'sleep 6406', 6);
    await act(own.id);
    for (const process of all) assert.equal((await process.exit(`after ${verb}`)).termination.reason, 'operator');
    const last = (await within('the foreground stream ends', collected)).at(-1);
    assert.equal(last.event, 'exit');
    assert.equal(last.data.termination.reason, 'operator');
    assert.notEqual(last.data.exit_code, 0, 'no exit is invented');
    await gone('sleep 6406');
    if (verb === 'a stop') for (const process of all) assert.equal((await ps.get(own.id, process.id)).termination.reason, 'operator');
    await api.verb(own.id, 'purge');
  });
}

test('a wait is answered when the sandbox is stopped', async () => {
  const own = await api.create();
  const { id: p } = await ps.start(own.id, 'exec sleep 6407');
  const waiting = ps.wait(own.id, p);
  await untilRunning(instance, 'sleep 6407');
  await api.life(own.id, 'stop');
  assert.equal((await within('the answer', waiting)).termination.reason, 'operator');
  await api.purge(own.id);
});

test('a lifetime that is over ends streams with reason lifetime', async () => {
  const own = await api.create({ lifetime_s: 2 });
  const process = await watched(own.id, 'exec sleep 6408');
  const exit = await process.exit('after the lifetime');
  await gone('sleep 6408');
  assert.equal(exit.termination.reason, 'lifetime');
  assert.notEqual(exit.exit_code, 0);
  await api.verb(own.id, 'purge');
});

test('a silent process does not keep its sandbox awake, and ends with reason idle', async () => {
  const own = await api.create({ idle_timeout_s: 1 });
  const { id: p } = await ps.start(own.id, 'echo up; exec sleep 6409');
  await until(async () => (await api.get(own.id)).status === 'stopped', { what: 'it is stopped' });
  await gone('sleep 6409');
  const record = await ps.get(own.id, p);
  assert.equal(record.status, 'exited');
  assert.equal(record.termination.reason, 'idle');
  const seen = await ps.read(own.id, p);
  assert.equal(seen.stdout.toString(), 'up\n');
  assert.equal(seen.exit.termination.reason, 'idle');
  assert.equal((await api.get(own.id)).termination.reason, 'idle');
  assert.equal((await api.get(own.id)).status, 'stopped', 'looking at it wakes it not');
  await api.purge(own.id);
});

test('clients that are attached and processes that write keep a sandbox awake', async () => {
  const [followed, chatting, silent] = await Promise.all([1, 2, 3].map(() => api.create()));
  const process = await watched(followed.id, 'exec sleep 6410');
  await ps.start(chatting.id, 'while :; do echo tick; sleep 0.05; done');
  for (const { id: own } of [followed, chatting, silent]) assert.equal((await api.patch(own, { idle_timeout_s: 2 })).status, 200);
  // The silent one shows that its time has passed, twice.
  for (let round = 0; round < 2; round++) {
    const { id: p } = await ps.start(silent.id, 'exec sleep 6411');
    const ended = await until(async () => { const record = await ps.get(silent.id, p); return record.status === 'exited' && record; }, { every: 100, what: 'the silent one is idle' });
    assert.equal(ended.termination.reason, 'idle');
  }
  assert.equal((await api.get(followed.id)).status, 'running');
  assert.equal((await api.get(chatting.id)).status, 'running');
  assert.equal(hostProcesses(instance, 'sleep 6410').length, 1);
  await api.purge(followed.id);
  assert.equal((await process.exit('after the purge')).termination.reason, 'operator');
  await Promise.all([api.purge(chatting.id), api.purge(silent.id)]);
});

test('a sandbox whose first process is killed ends its streams at once with reason agent_lost', async () => {
  const own = await api.create();
  const all = await Promise.all(Array.from({ length: 3 }, () => watched(own.id, 'exec sleep 6412')));
  const init = await instance.initOf(own.id);
  process.kill(init.pid, 'SIGKILL');
  for (const one of all) {
    const exit = await one.exit('after the death of the agent');
    assert.equal(exit.termination.reason, 'agent_lost');
    assert.notEqual(exit.exit_code, 0, 'no exit is invented');
  }
  await gone('sleep 6412');
  await until(async () => (await api.get(own.id)).status !== 'running', { what: 'the daemon has noticed' });
  for (const one of all) assert.equal((await ps.get(own.id, one.id)).termination.reason, 'agent_lost');
  assert.equal((await api.get(own.id)).termination.reason, 'agent_lost');
  assert.equal(await api.out(own.id, 'echo works'), 'works\n');
  for (const one of all) assert.equal((await ps.get(own.id, one.id)).termination.reason, 'agent_lost', 'also after it was woken');
  await api.purge(own.id);
});

// What it cost --------------------------------------------------------------------------------

test('the processor time of a command is that of all it started', async () => {
  const burn = 'import time\nwhile time.process_time() < 0.4: pass';
  const line = `python3 -c '${burn}' & python3 -c '${burn}' & ( setsid sh -c "python3 -c '${burn}'; touch /tmp/burned" & ); wait; until test -e /tmp/burned; do sleep 0.05; done`;
  const { id: p } = await ps.start(id, line);
  const busy = await within('its end', ps.wait(id, p));
  assert.equal(busy.exit_code, 0);
  assert.ok(busy.termination.cpu_ms >= 3 * 380 && busy.termination.cpu_ms < 20_000, `${busy.termination.cpu_ms} ms`);
  const idle = await api.exec(id, 'sleep 0.5');
  assert.ok(idle.termination.cpu_ms > 0 && idle.termination.cpu_ms < 300, `${idle.termination.cpu_ms} ms`);
});

test('the peak of memory is that of the largest process, also of a child', async () => {
  const result = await api.exec(id, `python3 -c 'x = b"x" * (90 << 20)'; true`);
  assert.ok(result.termination.peak_memory_bytes >= 90 * MI && result.termination.peak_memory_bytes < 400 * MI, `${result.termination.peak_memory_bytes}`);
  const small = await api.exec(id, 'true');
  assert.ok(small.termination.peak_memory_bytes > 0 && small.termination.peak_memory_bytes < 60 * MI, `${small.termination.peak_memory_bytes}`);
});

test('without a network a command that says so is told the mode and how to change it; others are not', async () => {
  const { id } = await api.create({ network: { mode: 'none' } });
  const failed = await api.exec(id, 'curl -sS --max-time 20 https://example.org/');
  assert.notEqual(failed.exit_code, 0);
  assert.equal(failed.termination.detail, `its network has the mode none; to change that: sandlot egress ${id} --mode internet`);
  assert.equal((await api.exec(id, 'exit 3')).termination.detail, null);
  assert.equal((await api.exec(id, 'curl -sS --max-time 20 https://example.org/ || true')).termination.detail, null);
  await api.patch(id, { name: 'cut-off' });
  const said = await commandLine(instance).sandlot(['exec', id, '--', 'python3', '-c', 'import urllib.request as u; u.urlopen("http://example.org")']);
  assert.notEqual(said.code, 0);
  assert.match(said.stderr, new RegExp(`its network has the mode none; to change that: sandlot egress cut-off --mode internet`));
});

finish();
