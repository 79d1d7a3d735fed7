// SPDX-License-Identifier: Apache-2.0
// Processes over crashes and restarts of the daemon: they never notice, no byte of theirs is lost or doubled, and
// each end is told exactly once.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { Counter, Processes, chatty, hostProcesses, numbered, untilRunning } from './lib/processes.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { Terminal } from './lib/terminal.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('restart-processes');
const ps = new Processes(api);
const sha256 = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');
const running = (words) => hostProcesses(instance, words);
const gone = (words) => untilRunning(instance, words, 0);
const HANG_UP = /ECONNRESET|ECONNREFUSED|EPIPE|socket hang up|cut short|aborted|inside an event/;

async function again() {
  await instance.crash();
  await instance.start();
}

/** Reads the output of a process through any number of crashes, each time from where it stopped. */
class Follower {
  constructor(id, p) {
    this.counter = new Counter();
    this.connections = 0;
    this.failure = null;
    this.done = this.#run(id, p);
    this.done.catch((error) => { this.failure = error; });
  }

  untilPast(offset) {
    return until(() => {
      if (this.failure) throw this.failure;
      return this.counter.at > offset || this.counter.exit;
    }, { what: `output goes on after ${offset}` });
  }

  async #run(id, p) {
    while (!this.counter.exit) {
      const { port } = api;
      try {
        const stream = await ps.output(id, p, { lastEventId: this.counter.lastId });
        if (stream.status === 503) continue; // it serves already, but does not know its sandboxes yet
        assert.equal(stream.status, 200, stream.answer?.text);
        this.connections++;
        for await (const event of stream.events()) this.counter.take(event);
      } catch (error) {
        if (!HANG_UP.test(`${error.code} ${error.message}`)) throw error;
        await until(() => api.port !== port, { what: 'another daemon is there' });
      }
    }
    return this.counter.result();
  }
}

/** At full size fifty. */
const CRASHES = process.env.E2E_FULL ? 50 : 20;

test('many crashes in the middle of a chatty command lose no byte, double none, and its exit is told once', async () => {
  const { id } = await api.create();
  const seed = crypto.randomInt(2 ** 31);
  const process = await ps.start(id, chatty({ seed, file: '/tmp/crash.sum', pause_s: 0.016, burst: 500 }));
  const init = await instance.initOf(id);
  const [main] = instance.sandboxProcesses().filter((info) => proc.cmdline(info.pid).includes('/tmp/crash.sum'));
  assert.ok(main, 'it runs');
  const follower = new Follower(id, process.id);
  for (let round = 0; round < CRASHES; round++) {
    const { at } = follower.counter;
    // Every other time it dies before its first reader is back.
    if (round % 2) await follower.untilPast(at);
    await again();
    assert.ok(proc.isAlive(main), `it lives in round ${round}`);
    if (round % 10 === 0) {
      const record = await ps.get(id, process.id);
      assert.equal(record.pid, process.pid);
      assert.equal(record.status, 'running');
      assert.equal(record.started_at, process.started_at);
    }
  }
  assert.ok(proc.isAlive(init));
  await ps.closeStdin(id, process.id);
  const seen = await within(`the exit (seed ${seed})`, follower.done);
  assert.equal(seen.exit.exit_code, 7);
  assert.deepEqual(seen.cuts, []);
  assert.equal(`${sha256(seen.stdout)} ${sha256(seen.stderr)}`, (await api.read(id, '/tmp/crash.sum')).toString(), `seed ${seed}`);
  assert.equal((await ps.output(id, process.id, { lastEventId: seen.lastId })).status, 204, 'and is not told again');
  await again();
  const replay = await ps.replay(id, process.id);
  assert.equal(replay.filter((event) => event.event === 'exit').length, 1);
  assert.deepEqual(numbered(replay).bytes, seen.bytes);
  const record = await ps.get(id, process.id);
  assert.equal(record.output_bytes, seen.end);
  assert.deepEqual({ exit_code: record.exit_code, duration_ms: record.duration_ms, termination: record.termination }, seen.exit);
  assert.deepEqual((await ps.list(id)).map((one) => one.id), [process.id]);
  await api.purge(id);
});

test('an orderly restart ends streams without an exit, and they go on where they stopped', async () => {
  const { id } = await api.create();
  const { id: p } = await ps.start(id, chatty({ seed: 5, file: '/tmp/orderly.sum', pause_s: 0.004, burst: 5000 }));
  const follower = new Follower(id, p);
  for (let round = 0; round < 3; round++) {
    const { at } = follower.counter;
    await follower.untilPast(at);
    await instance.terminate();
    assert.equal(follower.counter.exit, null, 'the end of the daemon is no exit of the command');
    await instance.start();
  }
  await ps.closeStdin(id, p);
  const seen = await within('the exit', follower.done);
  assert.equal(`${sha256(seen.stdout)} ${sha256(seen.stderr)}`, (await api.read(id, '/tmp/orderly.sum')).toString());
  await api.purge(id);
});

test('clients that wait for a process do not hold up the end of the daemon, and the process goes on', async () => {
  const { id } = await api.create();
  const { id: p } = await ps.start(id, 'sleep 4711');
  const waits = Array.from({ length: 10 }, () => ps.tryWait(id, p, { timeout_ms: 600_000 }).catch((error) => error));
  await ps.get(id, p);
  await instance.terminate();
  for (const answer of await within('all waits end with the daemon', Promise.all(waits))) {
    if (!answer.status) assert.match(`${answer.code} ${answer.message}`, HANG_UP);
    else assert.notEqual(answer.json?.status, 'exited', 'the end of the daemon is no end of the process');
  }
  await instance.start();
  assert.equal((await ps.get(id, p)).status, 'running');
  assert.equal(running('sleep 4711').length, 1);
  await api.purge(id);
});

test('ten processes of two sandboxes are all there after a crash, each with its own output', async () => {
  const ids = [(await api.create()).id, (await api.create()).id];
  const started = [];
  for (let i = 0; i < 10; i++) started.push({ id: ids[i % 2], i, process: await ps.start(ids[i % 2], `echo begin ${i}; while read line; do echo "${i} $line"; done; exit ${i}`) });
  for (const { id, process } of started) await ps.untilOutput(id, process.id, 'begin');
  await again();
  for (const { id, process, i } of started) {
    assert.equal((await ps.get(id, process.id)).pid, process.pid);
    await ps.write(id, process.id, 'after\n', true);
    const seen = await ps.read(id, process.id);
    assert.equal(seen.stdout.toString(), `begin ${i}\n${i} after\n`);
    assert.equal(seen.exit.exit_code, i);
  }
  const fresh = await ps.start(ids[0], 'true');
  assert.ok(!started.some((one) => one.id === ids[0] && one.process.id === fresh.id), 'no name is used twice');
  await purgeAll(api);
});

test('standard input, signals and the end of input work after a restart', async () => {
  const { id } = await api.create();
  const cat = await ps.start(id, { argv: ['cat'] });
  await ps.write(id, cat.id, 'one ');
  await ps.untilOutput(id, cat.id, 'one ');
  await again();
  assert.equal((await ps.get(id, cat.id)).stdin_open, true);
  await ps.write(id, cat.id, 'two');
  await ps.closeStdin(id, cat.id);
  assert.equal((await ps.wait(id, cat.id)).exit_code, 0);
  assert.equal((await ps.read(id, cat.id)).stdout.toString(), 'one two');
  const closed = await ps.start(id, 'cat; sleep 6301');
  await ps.closeStdin(id, closed.id);
  await untilRunning(instance, 'sleep 6301');
  await again();
  assert.equal(assertError(await ps.stdin(id, closed.id, { data: 'x' }), 409).code, 'stdin_closed');
  assert.equal((await ps.signal(id, closed.id, { signal: 'SIGTERM', kill_tree: true })).status, 204);
  assert.equal((await ps.wait(id, closed.id)).termination.signal, 'SIGTERM');
  await gone('sleep 6301');
  await api.purge(id);
});

test('a timeout is kept by whichever daemon is there when it is due, and by the next if none is', async () => {
  const { id } = await api.create();
  const late = await ps.start(id, { command: '( setsid sleep 6302 >/dev/null 2>&1 & ); exec sleep 6302', timeout_ms: 3000 });
  const missed = await ps.start(id, { command: 'exec sleep 6303', timeout_ms: 300 });
  const start = Date.now();
  await instance.crash();
  await until(() => Date.now() > start + 500, { what: 'the second is due' });
  await instance.start();
  const second = await within('the end of the second', ps.wait(id, missed.id));
  assert.equal(second.termination.reason, 'timeout');
  assert.equal(second.exit_code, 124);
  await gone('sleep 6303');
  const first = await within('the end of the first', ps.wait(id, late.id));
  assert.equal(first.termination.reason, 'timeout');
  assert.equal(first.timeout_ms, 3000);
  assert.ok(first.duration_ms >= 2900, `${first.duration_ms}`);
  await gone('sleep 6302');
  await api.purge(id);
});

test('a process that ended while no daemon was there is told of afterwards, with its last words', async () => {
  const { id } = await api.create();
  const fine = await ps.start(id, 'echo early; sleep 0.6304; echo late; exit 9');
  const shot = await ps.start(id, 'sleep 0.6305; kill -SEGV $$');
  await instance.crash();
  await gone('sleep 0.6304');
  await gone('sleep 0.6305');
  await until(() => !instance.sandboxProcesses().some((info) => info.state !== 'Z' && /0\.630[45]/.test(proc.cmdline(info.pid))), { what: 'both have ended' });
  await instance.start();
  const record = await ps.wait(id, fine.id);
  assert.equal(record.exit_code, 9);
  assert.equal(record.termination.reason, 'exited');
  const replay = await ps.replay(id, fine.id);
  assert.equal(numbered(replay).stdout.toString(), 'early\nlate\n');
  assert.equal(replay.filter((event) => event.event === 'exit').length, 1);
  assert.equal((await ps.wait(id, shot.id)).termination.signal, 'SIGSEGV');
  await again();
  assert.deepEqual(await ps.get(id, fine.id), record, 'and the next daemon says the same');
  await api.purge(id);
});

test('a foreground command whose daemon crashed ends or is ended, and leaks nothing', async () => {
  const { id } = await api.create();
  const line = '( setsid sleep 2.6306 >/dev/null 2>&1 & ); sleep 2.6306; echo end';
  const buffered = api.tryExec(id, line).catch((error) => error);
  const stream = await api.execStream(id, line);
  const counter = new Counter();
  const events = stream.events();
  counter.take((await events.next()).value);
  stream.response.on('error', () => {});
  await untilRunning(instance, 'sleep 2.6306', 4);
  await instance.crash();
  assert.ok((await within('the client hears of it', buffered)) instanceof Error);
  await instance.start();
  await until(() => running('sleep 2.6306').length === 0, { what: 'no process of it is left' });
  await until(async () => (await ps.list(id, { status: 'running' })).length === 0, { what: 'none is listed as running' });
  const answer = await ps.tryGet(id, counter.start.process);
  if (answer.status === 200) {
    for (const event of await within('its output', ps.replay(id, counter.start.process, { lastEventId: counter.lastId }))) counter.take(event);
    assert.ok(counter.exit, 'what is still known of it has an end');
  } else {
    assertError(answer, 404);
  }
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  await api.purge(id);
});

test('a daemon that a foreground command left is listed after a crash and can be ended', async () => {
  const { id } = await api.create();
  await api.exec(id, '( setsid sleep 6307 >/dev/null 2>&1 & ); true');
  await untilRunning(instance, 'sleep 6307');
  await again();
  const process = await ps.find(id, 'sleep 6307');
  assert.equal(process.status, 'exited');
  assert.equal(process.survivors, 1);
  await ps.kill(id, process.id);
  await gone('sleep 6307');
  await api.purge(id);
});

test('two crashes while a sandbox is paused neither wake nor harm its processes', async () => {
  const { id } = await api.create();
  const { id: p, pid } = await ps.start(id, 'i=0; while :; do echo $i; i=$((i+1)); sleep 0.005; done');
  await ps.untilOutput(id, p, '5\n');
  await api.life(id, 'pause');
  const bytes = (await ps.get(id, p)).output_bytes;
  for (let round = 0; round < 2; round++) {
    await again();
    assert.equal((await api.get(id)).status, 'paused');
    const record = await ps.get(id, p);
    assert.equal(record.status, 'running');
    assert.equal(record.pid, pid);
    assert.equal((await api.get(id)).status, 'paused', 'looking wakes nobody');
  }
  await api.life(id, 'resume');
  await until(async () => (await ps.get(id, p)).output_bytes > bytes + 100, { what: 'it goes on' });
  await ps.kill(id, p);
  const text = (await ps.read(id, p)).stdout.toString();
  text.split('\n').slice(0, -1).forEach((line, i) => assert.equal(line, String(i)));
  await api.purge(id);
});

test('a shell in a terminal outlives a crash and is attached to again with what it has shown', async () => {
  const { id } = await api.create();
  const first = await Terminal.open(api, id);
  await first.prompt();
  await first.run('word=kept; echo be""fore', /before/);
  await again();
  const close = await first.untilClosed();
  assert.equal(first.exit, null, 'the end of the daemon is no exit of the shell');
  assert.notEqual(close.code, 1000);
  const second = await Terminal.open(api, id, { process: first.process, from: first.position });
  assert.equal(second.from, first.position);
  await second.run('echo "<$word>"', /<kept>/);
  second.line('exit 4');
  assert.equal((await second.untilExit()).exit_code, 4);
  const whole = await Terminal.open(api, id, { process: first.process, from: 0 });
  await whole.untilExit();
  assert.deepEqual(whole.bytes, Buffer.concat([first.bytes, second.bytes]));
  await api.purge(id);
});

test('a sandbox that dies while no daemon is there ends its processes with that record', async () => {
  const { id } = await api.create();
  const { id: p } = await ps.start(id, 'echo up; sleep 6308');
  await ps.untilOutput(id, p, 'up');
  const init = await instance.initOf(id);
  await instance.crash();
  process.kill(init.pid, 'SIGKILL');
  await gone('sleep 6308');
  await instance.start();
  const record = await until(async () => {
    const now = await ps.get(id, p);
    return now.status === 'exited' && now;
  }, { what: 'the record has an end' });
  assert.equal(record.termination.reason, 'agent_lost');
  assert.equal(record.survivors, 0);
  const seen = await ps.read(id, p);
  assert.equal(seen.stdout.toString(), 'up\n');
  assert.equal(seen.exit.termination.reason, 'agent_lost');
  await api.purge(id);
});

finish();
