// SPDX-License-Identifier: Apache-2.0
// Floods of output and readers that never read: the daemon stays small and serves everybody else, nothing is dropped
// without being marked, and when it is over nothing is left.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IS_SANITIZED } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { Processes, collect, numbered } from './lib/processes.mjs';
import { census, growth, steady, suite } from './lib/suite.mjs';
import { Terminal } from './lib/terminal.mjs';
import { MI } from './lib/values.mjs';
import { eachLimit, until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('flood');
const ps = new Processes(api);
const MEMORY_MAX = 64 * MI;
const times = (count) => Array.from({ length: count }, (_, i) => i);

/** Asserts that nothing has grown since the census was taken. */
const back = (before, what) => until(() => {
  api.disconnect();
  assert.deepEqual(growth(before, census(instance)), {});
  return true;
}, { every: 200, what });

/** Looks at the daemon's memory until told to stop; returns the most there was. */
function watchMemory() {
  let most = 0;
  const timer = setInterval(() => { most = Math.max(most, proc.residentBytes(instance.daemon.pid)); }, 20);
  return () => {
    clearInterval(timer);
    return Math.max(most, proc.residentBytes(instance.daemon.pid));
  };
}

/** A sanitizer keeps freed memory aside, so there it says nothing. */
function assertSmall(bytes, most = MEMORY_MAX) {
  if (!IS_SANITIZED) assert.ok(bytes < most, `the daemon had ${(bytes / MI).toFixed(1)} MiB`);
}

test('floods through buffered execs are cut, said to be cut, and ended by their timeouts', async () => {
  const own = await api.create();
  const stop = watchMemory();
  const results = await Promise.all(times(6).map((i) => api.exec(own.id, { command: i % 2 ? 'yes' : 'cat /dev/zero', timeout_ms: 1500 })));
  for (const [i, result] of results.entries()) {
    assert.equal(result.truncated, true);
    assert.equal(result.termination.reason, 'timeout');
    const shown = result.stdout_base64 ? Buffer.from(result.stdout_base64, 'base64') : Buffer.from(result.stdout);
    assert.ok(shown.length > 1000);
    assert.ok(i % 2 ? /^(y\n)+y?$/.test(shown.toString()) : shown.every((byte) => byte === 0));
  }
  assertSmall(stop());
  await api.purge(own.id);
});

test('who follows a flood sees each byte or a cut in its place', async () => {
  const own = await api.create();
  const { id: p } = await ps.start(own.id, 'yes 0123456');
  const following = ps.read(own.id, p);
  await until(async () => (await ps.get(own.id, p)).output_bytes > 24 * MI, { every: 100, what: 'more was written than is kept' });
  await ps.kill(own.id, p);
  const seen = await within('the end of the stream', following);
  const { output_bytes: total } = await ps.get(own.id, p);
  assert.equal(seen.end, total);
  assert.equal(seen.exit.termination.reason, 'killed');
  const pattern = Buffer.from('0123456\n'.repeat(20_000));
  for (const run of seen.runs) {
    for (let at = 0; at < run.bytes.length; at += 100_000) {
      const piece = run.bytes.subarray(at, at + 100_000);
      const shift = (run.from + at) % 8;
      assert.ok(piece.equals(pattern.subarray(shift, shift + piece.length)), `the bytes from ${run.from + at}`);
    }
  }
  await api.purge(own.id);
});

test('a program on a terminal waits for its only reader', async () => {
  const own = await api.create();
  const terminal = await Terminal.open(api, own.id);
  await terminal.prompt();
  terminal.line('yes 0123456');
  await terminal.expect(/0123456/);
  terminal.socket.pause();
  const written = async () => (await ps.get(own.id, terminal.process)).output_bytes;
  let last = -1;
  await until(async () => { const now = await written(); const stands = now === last; last = now; return stands; }, { every: 500, what: 'nothing more is written' });
  terminal.socket.resume();
  await until(async () => (await written()) > last + MI, { every: 100, what: 'it goes on' });
  await api.purge(own.id);
});

test('of two readers of a terminal the one that slept is told what it missed', async () => {
  const own = await api.create();
  const terminal = await Terminal.open(api, own.id);
  await terminal.prompt();
  terminal.line('yes 0123456');
  await terminal.expect(/0123456/);
  const awake = await Terminal.open(api, own.id, { process: terminal.process });
  terminal.socket.pause();
  await until(async () => (await ps.get(own.id, terminal.process)).output_bytes > 24 * MI, { every: 100, what: 'more was written than is kept' });
  await ps.kill(own.id, terminal.process);
  terminal.socket.resume();
  await terminal.untilExit();
  const { output_bytes: total } = await ps.get(own.id, terminal.process);
  assert.equal(terminal.position, total, 'bytes and cuts together are all of it');
  assert.ok(terminal.cuts.length > 0);
  await awake.untilExit();
  await api.purge(own.id);
});

test('500 readers that never read cost the daemon less than a MiB for each three, others are served, and nothing stays', async () => {
  const floods = (await Promise.all(times(4).map(() => api.create()))).map((row) => row.id);
  const other = await api.create();
  for (const id of [...floods, other.id]) await api.exec(id, 'true');
  const before = await steady(instance);
  const stop = watchMemory();

  const execs = await Promise.all(times(60).map((i) => api.execStream(floods[i % 4], i % 2 ? 'yes' : 'cat /dev/zero')));
  const sources = await Promise.all(floods.map((id, i) => ps.start(id, i % 2 ? 'yes' : 'cat /dev/zero')));
  const followers = await Promise.all(times(380).map((i) => ps.output(floods[i % 4], sources[i % 4].id)));
  // Twelve shells that flood, each with five who look away.
  const shells = await Promise.all(times(12).map(async (i) => {
    const terminal = await Terminal.open(api, floods[i % 4]);
    await terminal.prompt();
    terminal.line(i % 2 ? 'yes' : 'cat /dev/zero');
    terminal.socket.pause();
    return { id: floods[i % 4], terminal };
  }));
  const lookers = await Promise.all(shells.flatMap(({ id, terminal }) => times(4).map(() => Terminal.open(api, id, { process: terminal.process }, { reads: false }))));
  for (const stream of [...execs, ...followers]) {
    assert.equal(stream.response.statusCode, 200);
    stream.response.pause();
  }
  assert.equal(execs.length + followers.length + shells.length + lookers.length, 500);
  await until(async () => (await ps.get(floods[0], sources[0].id)).output_bytes > 20 * MI, { every: 100, what: 'the flood has reached its bound' });
  const answered = await within('fifty execs of another sandbox', eachLimit(times(50), 4, (i) => api.out(other.id, `echo ${i}`)));
  assert.deepEqual(answered, times(50).map((i) => `${i}\n`));
  const most = stop();

  for (const stream of [...execs, ...followers]) stream.close();
  for (const { terminal } of shells) terminal.drop();
  for (const terminal of lookers) terminal.drop();
  await until(async () => {
    for (const id of floods) {
      const running = (await ps.list(id, { status: 'running' })).filter((process) => !process.background);
      assert.deepEqual(running.map((process) => process.id), [], 'who has no reader is cancelled');
    }
    return true;
  }, { every: 100, what: 'the foreground execs are cancelled' });
  await Promise.all(sources.map((source, i) => ps.kill(floods[i], source.id)));
  await Promise.all(shells.map(({ id, terminal }) => ps.kill(id, terminal.process)));
  await back(before, 'processes, descriptors, threads and cgroups are those of before');
  assertSmall(most, (500 / 3) * MI);
  await Promise.all([...floods, other.id].map((id) => api.purge(id)));
});

test('many short execs at 16 in parallel leave no process, descriptor, cgroup or thread behind', async () => {
  const own = await api.create();
  await eachLimit(times(32), 16, () => api.exec(own.id, { argv: ['true'] }));
  const before = await steady(instance);
  await eachLimit(times(process.env.E2E_FULL ? 1000 : 400), 16, async (i) => {
    if (i % 4 === 1) {
      const seen = numbered(await collect(await api.execStream(own.id, `echo ${i}`)));
      assert.equal(seen.stdout.toString(), `${i}\n`);
      assert.equal(seen.exit.exit_code, 0);
    } else if (i % 4 === 2) {
      const { id: p } = await ps.start(own.id, `exit ${i % 256}`);
      assert.equal((await ps.wait(own.id, p)).exit_code, i % 256);
    } else {
      assert.equal((await api.exec(own.id, `echo ${i}`)).stdout, `${i}\n`);
    }
  });
  await back(before, 'everything is as it was before');
  assert.deepEqual(await ps.list(own.id, { status: 'running' }), []);
  await api.purge(own.id);
});

test('two hundred starts and kills of whole trees leave nothing behind either', async () => {
  const own = await api.create();
  await api.exec(own.id, 'true');
  const before = await steady(instance);
  await eachLimit(times(200), 16, async () => {
    const { id: p } = await ps.start(own.id, '( setsid sleep 6601 >/dev/null 2>&1 & ); sleep 6601 & wait');
    await ps.kill(own.id, p);
  });
  await back(before, 'everything is as it was before');
  await api.purge(own.id);
});

test('threads that served all of that leave when there is nothing more to serve', async () => {
  const workers = () => proc.threadNames(instance.daemon.pid).filter((name) => name === 'http-worker').length;
  await until(() => workers() <= 4, { every: 200, what: 'two of the API and two of previews are left, who always wait' });
});

finish();
