// SPDX-License-Identifier: Apache-2.0
// Processes: started in the background, listed, waited for, written to, signalled, ended with all they started.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import http from 'node:http';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { Processes, collect, hostProcesses, numbered, untilRunning } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('processes');
const { id } = await api.create();
const ps = new Processes(api);
const running = (words) => hostProcesses(instance, words);
const gone = (words) => untilRunning(instance, words, 0);
/** For the shell: starts the words as a daemon would start itself, in a session of its own and nobody's child. */
const daemonised = (words) => `( setsid ${words} </dev/null >/dev/null 2>&1 & )`;

// Start, list, inspect, wait ------------------------------------------------------------------

test('a background command is answered with its record while it runs', async () => {
  const process = await ps.start(id, { argv: ['sleep', '6101'] });
  assert.equal(process.command, null);
  assert.deepEqual(process.argv, ['sleep', '6101']);
  assert.equal(process.cwd, '/workspace');
  assert.equal(process.user, 'sandbox');
  assert.equal(process.background, true);
  assert.equal(process.pty, false);
  assert.equal(process.status, 'running');
  assert.equal(process.survivors, 0);
  assert.equal(process.stdin_open, true);
  assert.equal(process.output_bytes, 0);
  assert.equal(process.timeout_ms, null);
  await untilRunning(instance, 'sleep 6101');
  assert.equal(proc.statusField(running('sleep 6101')[0].pid, 'NSpid').split(/\s+/).at(-1), String(process.pid), 'the pid is that inside the sandbox');
  assert.deepEqual(await ps.get(id, process.id), process);
  assert.deepEqual(await ps.get(id, process.pid), process, 'the pid names it as well');
  await ps.kill(id, process.id);
  assert.deepEqual(running('sleep 6101'), []);
});

test('a shell line, a directory, an environment, a user and a timeout are those of the record', async () => {
  const process = await ps.start(id, { command: 'echo "$PWD $WORD $(id -u)"', cwd: '/usr', env: { WORD: 'there' }, user: 'root', timeout_ms: 60_000 });
  assert.equal(process.command, 'echo "$PWD $WORD $(id -u)"');
  assert.deepEqual(process.argv, ['/bin/sh', '-c', process.command]);
  assert.equal(process.cwd, '/usr');
  assert.equal(process.user, 'root');
  assert.equal(process.timeout_ms, 60_000);
  const ended = await ps.wait(id, process.id);
  assert.equal(ended.exit_code, 0);
  assert.equal((await ps.read(id, process.id)).stdout.toString(), '/usr there 0\n');
});

test('what cannot be started is an error or a process with exit code 127, and leaves nothing running', async () => {
  assertError(await ps.tryStart(id, { command: 'true', cwd: '/no/such/dir' }), 400, /cwd|\/no\/such\/dir/);
  assertError(await ps.tryStart(id, { command: 'true', user: '-1' }), 400, /user/);
  const answer = await ps.tryStart(id, { argv: ['no-such-program'] });
  if (answer.status === 201) assert.equal((await ps.wait(id, answer.json.process.id)).exit_code, 127);
  else assertError(answer, 400, /no-such-program/);
  assert.ok(!(await ps.list(id, { status: 'running' })).some((process) => process.argv[0] === 'no-such-program'));
});

test('the record of an ended process says how, when and with what it ended', async () => {
  const { id: p } = await ps.start(id, 'echo out; echo err >&2; exit 5');
  const process = await ps.wait(id, p);
  assert.equal(process.status, 'exited');
  assert.equal(process.exit_code, 5);
  assert.equal(process.output_bytes, 8);
  assert.equal(process.termination.reason, 'exited');
  assert.equal(process.termination.signal, null);
  assert.ok(Date.parse(process.ended_at) >= Date.parse(process.started_at));
  assert.ok(process.duration_ms > 0, `${process.duration_ms}`);
  assert.deepEqual(await ps.get(id, p), process);
});

test('several run at once, are listed oldest first and filtered by status', async () => {
  const own = await api.create();
  const started = [];
  for (let i = 0; i < 8; i++) started.push((await ps.start(own.id, { argv: ['sleep', `61${50 + i}`] })).id);
  assert.deepEqual((await ps.list(own.id)).map((process) => process.id), started);
  await ps.kill(own.id, started[2]);
  await ps.kill(own.id, started[5]);
  assert.deepEqual((await ps.list(own.id, { status: 'running' })).map((process) => process.id), started.filter((_, i) => i !== 2 && i !== 5));
  assert.deepEqual((await ps.list(own.id, { status: 'exited' })).map((process) => process.id), [started[2], started[5]]);
  assert.deepEqual((await ps.list(own.id)).map((process) => process.id), started);
  for (const status of ['zombie', '', 'Running']) assertError(await ps.tryList(own.id, { status }), 400, /status/);
  await api.purge(own.id);
});

test('a foreground command is listed while it runs', async () => {
  const call = api.exec(id, 'touch /tmp/listed; until test -e /tmp/unlisted; do sleep 0.02; done; echo over');
  await until(() => api.exists(id, '/tmp/listed'), { what: 'it runs' });
  const process = await ps.find(id, '/tmp/unlisted');
  assert.equal(process.background, false);
  assert.equal(process.status, 'running');
  await api.put(id, '/tmp/unlisted', '');
  assert.equal((await call).stdout, 'over\n');
});

test('wait holds until the end, answers many, and gives up after its time', async () => {
  const { id: p } = await ps.start(id, 'read line; exit 6');
  const early = await ps.tryWait(id, p, { timeout_ms: 50 });
  assert.equal(early.status, 200, early.text);
  assert.equal(early.json.process.status, 'running');
  const waits = Array.from({ length: 20 }, () => ps.wait(id, p));
  await ps.write(id, p, 'go\n');
  for (const process of await within('all of them', Promise.all(waits))) assert.equal(process.exit_code, 6);
  assert.equal((await within('an ended one', ps.wait(id, p))).exit_code, 6);
  for (const timeout_ms of ['-1', 'x', '1.5', '']) assertError(await ps.tryWait(id, p, { timeout_ms }), 400, /timeout_ms/);
});

test('a client that stops waiting harms nothing', async () => {
  const { id: p } = await ps.start(id, { argv: ['sleep', '6102'] });
  const controller = new AbortController();
  const call = api.request('GET', ps.path(id, p, '/wait'), { signal: controller.signal, agent: new http.Agent() });
  call.catch(() => {});
  await untilRunning(instance, 'sleep 6102');
  controller.abort();
  await assert.rejects(call);
  assert.equal((await ps.get(id, p)).status, 'running');
  await ps.kill(id, p);
});

test('a TCP server runs in the background and serves commands of the foreground', async () => {
  const server = await ps.start(id, { argv: ['python3', '-u', '-m', 'http.server', '8123', '--bind', '127.0.0.1'], cwd: '/etc' });
  const fetchIt = { argv: ['python3', '-c', 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8123/hostname").read().decode().strip())'] };
  await until(async () => (await api.exec(id, fetchIt)).stdout === 'sandbox\n', { every: 100, what: 'it serves' });
  assert.match((await ps.read(id, server.id, { follow: false })).stderr.toString(), /GET \/hostname/, 'and its log is its output');
  await ps.kill(id, server.id);
  assert.notEqual((await api.exec(id, fetchIt)).exit_code, 0);
});

// Standard input ------------------------------------------------------------------------------

test('what is written reaches the command piece by piece, and close is the end of it', async () => {
  const { id: p } = await ps.start(id, 'while read line; do echo "<$line>"; done; echo end');
  await ps.write(id, p, 'one\n');
  await ps.untilOutput(id, p, '<one>');
  await ps.write(id, p, 'žluť\ntwo');
  await ps.write(id, p, ' and a half\n');
  await ps.untilOutput(id, p, '<two and a half>');
  assert.equal((await ps.get(id, p)).stdin_open, true);
  await ps.closeStdin(id, p);
  assert.equal((await ps.wait(id, p)).exit_code, 0);
  assert.equal((await ps.read(id, p)).stdout.toString(), '<one>\n<žluť>\n<two and a half>\nend\n');
});

test('bytes of any kind arrive as they are', async () => {
  const bytes = crypto.randomBytes(300_000);
  const { id: p } = await ps.start(id, { argv: ['sha256sum'] });
  for (let at = 0; at < bytes.length; at += 50_000) await ps.write(id, p, bytes.subarray(at, at + 50_000), at + 50_000 >= bytes.length);
  await ps.wait(id, p);
  assert.equal((await ps.read(id, p)).stdout.toString().split(' ')[0], crypto.createHash('sha256').update(bytes).digest('hex'));
});

test('standard input is open only if it was not given or was asked to stay open', async () => {
  const given = await ps.start(id, { argv: ['cat'], stdin: 'all of it' });
  assert.equal(given.stdin_open, false);
  assert.equal((await ps.wait(id, given.id)).exit_code, 0);
  assert.equal((await ps.read(id, given.id)).stdout.toString(), 'all of it');
  const none = await ps.start(id, { argv: ['cat'], stdin_open: false });
  assert.equal((await within('cat', ps.wait(id, none.id))).output_bytes, 0);
  const both = await ps.start(id, { argv: ['cat'], stdin: 'first ', stdin_open: true });
  assert.equal(both.stdin_open, true);
  await ps.write(id, both.id, 'second', true);
  await ps.wait(id, both.id);
  assert.equal((await ps.read(id, both.id)).stdout.toString(), 'first second');
});

test('input that nobody reads is refused when it is too much, and what was taken arrives', async () => {
  const { id: p } = await ps.start(id, 'until test -e /tmp/drink; do sleep 0.02; done; wc -c');
  const chunk = 'x'.repeat(200_000);
  let taken = 0;
  const refused = await until(async () => {
    const answer = await ps.stdin(id, p, { data: chunk });
    if (answer.status !== 204) return answer;
    taken += chunk.length;
    assert.ok(taken < 200e6, 'the daemon keeps input without a bound');
    return null;
  }, { every: 0, what: 'a refusal' });
  const error = assertError(refused, 429);
  assert.equal(error.code, 'stdin_full');
  assert.equal(error.retryable, true);
  assert.equal((await ps.get(id, p)).stdin_open, true);
  await api.put(id, '/tmp/drink', '');
  await until(async () => (await ps.stdin(id, p, { data: 'y', close: true })).status === 204, { what: 'there is room again' });
  await ps.wait(id, p);
  assert.equal((await ps.read(id, p)).stdout.toString().trim(), String(taken + 1));
});

test('writing to input that is closed, or to what has ended, is a conflict', async () => {
  const { id: p } = await ps.start(id, 'cat >/dev/null; sleep 6103');
  await ps.closeStdin(id, p);
  await until(async () => !(await ps.get(id, p)).stdin_open, { what: 'the record says so' });
  assert.equal(assertError(await ps.stdin(id, p, { data: 'late' }), 409).code, 'stdin_closed');
  await ps.kill(id, p);
  assert.equal(assertError(await ps.stdin(id, p, { data: 'late' }), 409).code, 'process_ended');
});

// Signals and ends ----------------------------------------------------------------------------

test('signals are named in three ways and reach the main process', async () => {
  const { id: p } = await ps.start(id, "trap 'echo INT' INT; trap 'echo USR1' USR1; trap 'echo HUP' HUP; echo ready; while :; do sleep 0.01; done");
  await ps.untilOutput(id, p, 'ready');
  for (const [signal, shown] of [['SIGINT', 'INT'], ['USR1', 'USR1'], [1, 'HUP']]) {
    assert.equal((await ps.signal(id, p, signal)).status, 204);
    await ps.untilOutput(id, p, `${shown}\n`);
  }
  assert.equal((await ps.signal(id, p, 'SIGTERM')).status, 204);
  const process = await ps.wait(id, p);
  assert.equal(process.exit_code, 143);
  assert.equal(process.termination.reason, 'signal');
  assert.equal(process.termination.signal, 'SIGTERM');
  assert.equal(assertError(await ps.signal(id, p, 'SIGTERM'), 409).code, 'process_ended');
});

test('a signal reaches the main process alone, or with kill_tree all that it started', async () => {
  const line = 'sleep 6104 & sleep 6104 & wait';
  const alone = await ps.start(id, line);
  await untilRunning(instance, 'sleep 6104', 2);
  assert.equal((await ps.signal(id, alone.id, { signal: 'SIGTERM' })).status, 204);
  const ended = await ps.wait(id, alone.id);
  assert.equal(ended.termination.signal, 'SIGTERM');
  assert.equal(running('sleep 6104').length, 2, 'its children live on');
  assert.equal((await ps.get(id, alone.id)).survivors, 2);
  await ps.kill(id, alone.id);
  await gone('sleep 6104');
  const all = await ps.start(id, line);
  await untilRunning(instance, 'sleep 6104', 2);
  assert.equal((await ps.signal(id, all.id, { signal: 'TERM', kill_tree: true })).status, 204);
  await gone('sleep 6104');
  assert.equal((await ps.wait(id, all.id)).survivors, 0);
});

test('SIGKILL takes the tree along unless told otherwise', async () => {
  const line = 'sleep 6105 & wait';
  const tree = await ps.start(id, line);
  await untilRunning(instance, 'sleep 6105');
  assert.equal((await ps.signal(id, tree.id, 'SIGKILL')).status, 204);
  const process = await ps.wait(id, tree.id);
  assert.equal(process.exit_code, 137);
  assert.equal(process.termination.signal, 'SIGKILL');
  await gone('sleep 6105');
  const alone = await ps.start(id, line);
  await untilRunning(instance, 'sleep 6105');
  assert.equal((await ps.signal(id, alone.id, { signal: 9, kill_tree: false })).status, 204);
  await ps.wait(id, alone.id);
  assert.equal(running('sleep 6105').length, 1);
  await ps.kill(id, alone.id);
  await gone('sleep 6105');
});

test('SIGSTOP stops and SIGCONT goes on', async () => {
  const { id: p } = await ps.start(id, { argv: ['sleep', '6106'] });
  await untilRunning(instance, 'sleep 6106');
  assert.equal((await ps.signal(id, p, 'SIGSTOP')).status, 204);
  await until(() => running('sleep 6106')[0]?.state === 'T', { what: 'it is stopped' });
  assert.equal((await ps.get(id, p)).status, 'running');
  assert.equal((await ps.signal(id, p, 'CONT')).status, 204);
  await until(() => running('sleep 6106')[0]?.state === 'S', { what: 'it goes on' });
  await ps.kill(id, p);
});

test('kill ends the process and all it started before it answers', async () => {
  const { id: p } = await ps.start(id, `trap '' TERM INT HUP; ${daemonised('sleep 6107')}; sleep 6107 & sleep 6107`);
  await untilRunning(instance, 'sleep 6107', 3);
  await ps.kill(id, p);
  assert.deepEqual(running('sleep 6107').filter(proc.isAlive), []);
  const process = await ps.get(id, p);
  assert.equal(process.status, 'exited');
  assert.equal(process.exit_code, 137);
  assert.equal(process.termination.reason, 'killed');
  assert.equal(process.termination.signal, 'SIGKILL');
  assert.equal(process.survivors, 0);
  await ps.kill(id, p);
  assert.deepEqual(await ps.get(id, p), process, 'a second kill changes nothing');
});

test('kill with kill_tree=false ends the main process alone, and a second kill what it left', async () => {
  const { id: p } = await ps.start(id, `${daemonised('sleep 6108')}; sleep 6108 & wait`);
  await untilRunning(instance, 'sleep 6108', 2);
  await ps.kill(id, p, { kill_tree: false });
  const process = await ps.get(id, p);
  assert.equal(process.status, 'exited');
  assert.equal(process.termination.reason, 'killed');
  await until(async () => (await ps.get(id, p)).survivors === 2, { what: 'two survivors' });
  assert.equal(running('sleep 6108').length, 2);
  await ps.kill(id, p);
  await gone('sleep 6108');
  await until(async () => (await ps.get(id, p)).survivors === 0, { what: 'none' });
  assert.equal((await ps.get(id, p)).termination.reason, 'killed');
});

test('a daemon that a foreground command left lives on, is listed, and can be ended', async () => {
  const result = await api.exec(id, `${daemonised('sleep 6109')}; echo left`);
  assert.equal(result.stdout, 'left\n');
  assert.equal(result.exit_code, 0);
  await untilRunning(instance, 'sleep 6109');
  const process = await ps.find(id, 'sleep 6109');
  assert.equal(process.status, 'exited');
  assert.equal(process.background, false);
  assert.equal(process.exit_code, 0);
  assert.equal(process.termination.reason, 'exited');
  assert.equal(process.survivors, 1);
  await ps.kill(id, process.id);
  await gone('sleep 6109');
});

test('survivors that end by themselves are no longer counted', async () => {
  await api.exec(id, `${daemonised("sh -c 'until test -e /tmp/leave; do sleep 0.02; done'")}; true`);
  const process = await ps.find(id, '/tmp/leave');
  assert.ok(process.survivors >= 1, JSON.stringify(process));
  await api.put(id, '/tmp/leave', '');
  await until(async () => {
    const answer = await ps.tryGet(id, process.id);
    return answer.status === 404 || answer.json.process.survivors === 0;
  }, { what: 'none is left' });
});

test('a timeout ends what daemonised itself too, in foreground and background', async () => {
  const line = `${daemonised('sleep 6110')}; sleep 6110`;
  const result = await api.exec(id, { command: line, timeout_ms: 400 });
  assert.equal(result.exit_code, 124);
  assert.equal(result.termination.reason, 'timeout');
  await gone('sleep 6110');
  const { id: p } = await ps.start(id, { command: line, timeout_ms: 400 });
  const process = await ps.wait(id, p);
  assert.equal(process.exit_code, 124);
  assert.equal(process.termination.reason, 'timeout');
  await gone('sleep 6110');
});

test('a timeout with kill_tree false ends the main process alone', async () => {
  const { id: p } = await ps.start(id, { command: `${daemonised('sleep 6111')}; exec sleep 6112`, timeout_ms: 2000, kill_tree: false });
  assert.equal((await ps.wait(id, p)).termination.reason, 'timeout');
  await gone('sleep 6112');
  assert.equal(running('sleep 6111').length, 1);
  assert.equal((await ps.get(id, p)).survivors, 1);
  await ps.kill(id, p);
  await gone('sleep 6111');
});

for (const [what, command] of [
  ['ignores every signal it can', "trap '' TERM INT HUP QUIT USR1 USR2 PIPE; while :; do sleep 0.05; done"],
  ['stops itself', 'kill -STOP $$; sleep 6113'],
  ['stops its child', 'sleep 6113 & kill -STOP $!; wait'],
  ['is the parent of a zombie', 'exec python3 -c "import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(6113)"'],
  ['starts a new daemon again and again', 'while :; do setsid sleep 6113 & sleep 0.02; done'],
  ['replaces itself by its child again and again', `exec python3 -c "import os, time\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid(); time.sleep(0.01)"`],
]) {
  test(`a process that ${what} is ended by its timeout`, async () => {
    const before = instance.sandboxProcesses().length;
    const { id: p } = await ps.start(id, { command, timeout_ms: 500 });
    const process = await within('its end', ps.wait(id, p));
    if (!what.startsWith('replaces')) {
      assert.equal(process.termination.reason, 'timeout');
      assert.equal(process.exit_code, 124);
    } else {
      await ps.kill(id, p); // its main process ended by itself, which is no business of a timeout
    }
    await gone('sleep 6113');
    await until(() => instance.sandboxProcesses().length <= before, { what: 'nothing of it is left, not even a zombie' });
  });
}

test('an exec ends when its main process ends although an orphan holds its output', async () => {
  const line = 'setsid sleep 6114 & echo main; exit 4';
  const result = await within('the buffered answer', api.exec(id, line));
  assert.equal(result.stdout, 'main\n');
  assert.equal(result.exit_code, 4);
  const events = await within('the stream', collect(await api.execStream(id, line)));
  assert.equal(numbered(events).stdout.toString(), 'main\n');
  assert.equal(events.at(-1).data.exit_code, 4);
  const { id: p } = await ps.start(id, line);
  assert.equal((await within('wait', ps.wait(id, p))).exit_code, 4);
  assert.equal((await within('the output', ps.read(id, p))).exit.exit_code, 4);
  await untilRunning(instance, 'sleep 6114', 3);
  for (const process of await ps.list(id)) if (process.argv.join(' ').includes('sleep 6114')) await ps.kill(id, process.id);
  await gone('sleep 6114');
});

// Clients that go away ------------------------------------------------------------------------

/** Starts a foreground exec and cuts its connection once the words run. */
async function abandon(body, words, isStream, count = 1) {
  if (isStream) {
    const stream = await api.execStream(id, body);
    const events = stream.events();
    const start = (await events.next()).value;
    await untilRunning(instance, words, count);
    stream.close();
    await events.return?.();
    return start.data.process;
  }
  const controller = new AbortController();
  const call = api.tryExec(id, body, { signal: controller.signal, agent: new http.Agent() });
  call.catch(() => {});
  await untilRunning(instance, words, count);
  const { id: p } = await ps.find(id, words);
  controller.abort();
  await assert.rejects(call);
  return p;
}

for (const isStream of [false, true]) {
  const form = isStream ? 'streamed' : 'buffered';
  const n = isStream ? 1 : 0;

  test(`a client that goes away ends its ${form} command with its tree`, async () => {
    await abandon({ command: `${daemonised(`sleep 612${n}`)}; sleep 612${n}` }, `sleep 612${n}`, isStream, 2);
    await gone(`sleep 612${n}`);
    await until(async () => !(await ps.list(id, { status: 'running' })).some((process) => process.argv.join(' ').includes(`sleep 612${n}`)), { what: 'it is not listed as running' });
  });

  test(`with on_disconnect keep a ${form} command goes on and its end is known`, async () => {
    const words = `sleep 0.612${n}`; // long enough to be seen by who looks for it on a busy host
    const p = await abandon({ command: `until test -e /tmp/kept${n}; do ${words}; done; exit 8`, on_disconnect: 'keep' }, words, isStream).catch((error) => error);
    assert.equal(typeof p, 'string', `${p?.stack}`);
    assert.equal((await ps.get(id, p)).status, 'running');
    await api.put(id, `/tmp/kept${n}`, '');
    const process = await ps.wait(id, p);
    assert.equal(process.exit_code, 8);
    assert.equal(process.termination.reason, 'exited');
  });
}

test('a background process minds neither the end of its client nor that of a reader of its output', async () => {
  const { id: p } = await ps.start(id, 'echo up; sleep 6124');
  api.disconnect();
  const stream = await ps.output(id, p);
  await stream.events().next();
  stream.close();
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  assert.equal((await ps.get(id, p)).status, 'running');
  assert.equal(running('sleep 6124').length, 1);
  await ps.kill(id, p);
});

// Bad input -----------------------------------------------------------------------------------

test('a process that does not exist is 404 on every route', async () => {
  for (const p of ['p999999', '999999', 'p4294967295']) {
    const answers = [
      await ps.tryGet(id, p), await ps.tryWait(id, p), await ps.tryKill(id, p), await ps.stdin(id, p, { data: 'x' }),
      await ps.signal(id, p, 'SIGINT'), await ps.resize(id, p, { cols: 80, rows: 24 }), (await ps.output(id, p)).answer,
    ];
    for (const answer of answers) assert.equal(assertError(answer, 404).code, 'process_not_found');
  }
});

test('what is no name of a process is refused', async () => {
  for (const p of ['p', 'px', 'p-1', 'p0', 'p01', 'P1', '-1', '0', '1.5', 'p1x', '18446744073709551617', 'p18446744073709551617', '%00', 'p1%00', '..%2f', '%ff']) {
    assertError(await ps.tryGet(id, p), [400, 404]);
    assertError(await ps.tryKill(id, p), [400, 404]);
  }
  assertError(await ps.tryGet(id, '1'), 404, undefined); // the agent is nobody's process
  assertError(await ps.tryKill(id, '1'), 404);
  assert.equal(await api.out(id, 'echo works'), 'works\n');
});

test('bad bodies and queries are 400, name their field, and change nothing', async () => {
  const { id: p } = await ps.start(id, { argv: ['sleep', '6125'] });
  const before = await ps.get(id, p);
  for (const signal of ['SIGFOO', '', 'SIG', 'SIGINT ', 0, -1, 65, 1000, 1.5, true, [], {}]) assertError(await ps.signal(id, p, { signal }), 400, /signal/);
  assertError(await ps.signal(id, p, {}), 400, /signal/);
  assertError(await ps.signal(id, p, { signal: 'SIGTERM', kill_tree: 'yes' }), 400, /kill_tree/);
  assertError(await ps.signal(id, p, { signal: 'SIGTERM', surplus: 1 }), 400, /surplus/);
  for (const size of [{ cols: 0, rows: 24 }, { cols: 80, rows: 0 }, { cols: 1001, rows: 24 }, { cols: 80, rows: -1 }, { cols: 1.5, rows: 24 }, { cols: '80', rows: 24 }, { cols: 80 }, { rows: 24 }, {}]) {
    assertError(await ps.resize(id, p, size), 400, /cols|rows/);
  }
  for (const body of [{ data: 'x', data_base64: 'eA==' }, { data_base64: 'not base64!' }, { data_base64: 'eA=' }, { data: 5 }, { data: 'x', close: 'yes' }, { data: 'x', surplus: 1 }, {}]) assertError(await ps.stdin(id, p, body), 400);
  for (const query of [{ from: -1 }, { from: 'x' }, { from: '1.5' }, { from: 1000 }, { from: '18446744073709551616' }, { follow: 'maybe' }, { lastEventId: 'x' }, { lastEventId: '-1' }, { lastEventId: '1000' }]) {
    const { status, answer } = await ps.output(id, p, query);
    assert.equal(status, 400, `${JSON.stringify(query)}: ${answer?.text}`);
    assertError(answer, 400, /from|follow|Last-Event-ID/i);
  }
  assertError(await ps.tryKill(id, p, { kill_tree: 'maybe' }), 400, /kill_tree/);
  assertError(await api.request('POST', ps.path(id, p, '/stdin'), { body: 'x', headers: { 'content-type': 'text/plain' } }), [400, 415]);
  assert.deepEqual(await ps.get(id, p), before);
  assert.equal(running('sleep 6125').length, 1);
  await ps.kill(id, p);
});

test('bad fields of exec are 400, name themselves, and start nothing', async () => {
  const before = (await ps.list(id)).length;
  const line = { command: 'sleep 6126' };
  for (const [body, field] of [
    [{ background: 'yes' }, /background/], [{ background: 1 }, /background/], [{ pty: true }, /pty|background/], [{ background: true, pty: 'x' }, /pty/],
    [{ background: true, pty: true, cols: 0 }, /cols/], [{ background: true, pty: true, cols: 1001 }, /cols/], [{ background: true, pty: true, rows: -1 }, /rows/], [{ background: true, pty: true, rows: '24' }, /rows/],
    [{ background: true, stdin_open: 'x' }, /stdin_open/], [{ kill_tree: 'x' }, /kill_tree/], [{ on_disconnect: 'maybe' }, /on_disconnect/], [{ on_disconnect: true }, /on_disconnect/],
    [{ background: true, timeout_ms: 0 }, /timeout_ms/], [{ background: true, stdin: 'x', stdin_base64: 'eA==' }, /stdin/],
  ]) assertError(await api.tryExec(id, { ...line, ...body }), 400, field);
  assert.equal((await ps.list(id)).length, before);
  assert.deepEqual(running('sleep 6126'), []);
});

test('a process without a terminal cannot be resized', async () => {
  const { id: p } = await ps.start(id, { argv: ['sleep', '6127'] });
  assert.equal(assertError(await ps.resize(id, p, { cols: 100, rows: 30 }), 409).code, 'not_a_terminal');
  await ps.kill(id, p);
});

test('processes of one sandbox are not found in another, and there is no way without a token', async () => {
  const [mine, other] = [await api.create(), await api.create()];
  const process = await ps.start(mine.id, { argv: ['sleep', '6128'] });
  for (const p of [process.id, process.pid]) {
    for (const answer of [await ps.tryGet(other.id, p), await ps.tryKill(other.id, p), await ps.signal(other.id, p, 'SIGKILL'), await ps.stdin(other.id, p, { data: 'x' })]) {
      assert.equal(assertError(answer, 404).code, 'process_not_found');
    }
  }
  assert.deepEqual(await ps.list(other.id), []);
  assert.equal(assertError(await ps.tryGet('0'.repeat(26), process.id), 404).code, 'sandbox_not_found');
  for (const [method, tail] of [['GET', ''], ['DELETE', ''], ['GET', '/output'], ['GET', '/wait'], ['POST', '/signal']]) {
    assertError(await api.request(method, ps.path(mine.id, process.id, tail), { token: null }), 401);
  }
  assert.equal(running('sleep 6128').length, 1);
  await Promise.all([api.purge(mine.id), api.purge(other.id)]);
});

// What is kept --------------------------------------------------------------------------------

test('records and output stay readable after a stop and another start, and go with a purge', async () => {
  const own = await api.create();
  const done = await ps.start(own.id, 'echo kept; exit 3');
  const ended = await ps.wait(own.id, done.id);
  const cut = await ps.start(own.id, 'echo begun; exec sleep 6129');
  await ps.untilOutput(own.id, cut.id, 'begun');
  await api.life(own.id, 'stop');
  const check = async (status) => {
    assert.deepEqual(await ps.get(own.id, done.id), ended);
    const stopped = await ps.get(own.id, cut.id);
    assert.equal(stopped.status, 'exited');
    assert.equal(stopped.termination.reason, 'operator');
    assert.equal(stopped.survivors, 0);
    assert.deepEqual((await ps.list(own.id)).map((process) => process.id), [done.id, cut.id]);
    assert.deepEqual(await ps.list(own.id, { status: 'running' }), []);
    const replay = await ps.read(own.id, done.id);
    assert.equal(replay.stdout.toString(), 'kept\n');
    assert.equal(replay.exit.exit_code, 3);
    assert.equal((await ps.read(own.id, cut.id)).exit.termination.reason, 'operator');
    assert.equal((await ps.wait(own.id, cut.id)).id, cut.id);
    for (const answer of [await ps.stdin(own.id, cut.id, { data: 'x' }), await ps.signal(own.id, cut.id, 'INT')]) assert.equal(assertError(answer, 409).code, 'process_ended');
    assert.equal((await api.get(own.id)).status, status);
  };
  await check('stopped');
  await api.life(own.id, 'start');
  await check('running');
  const next = await ps.start(own.id, 'true');
  assert.ok(![done.id, cut.id].includes(next.id), 'names are not used twice');
  await ps.wait(own.id, next.id);
  await api.purge(own.id);
  assert.equal(assertError(await ps.tryGet(own.id, done.id), 404).code, 'sandbox_not_found');
  await until(() => execFileSync('find', [instance.dataDir, '-name', `*${own.id}*`, '-print']).length === 0, { what: 'nothing of it is on the disk' });
});

test('of ended processes the last 64 are kept, of running ones all', async () => {
  const own = await api.create();
  const first = await ps.start(own.id, { argv: ['sleep', '6130'] });
  const ids = [];
  for (let i = 0; i < 70; i++) {
    const { id: p } = await ps.start(own.id, { command: `echo ${i}` });
    await ps.wait(own.id, p);
    ids.push(p);
  }
  assert.deepEqual((await ps.list(own.id, { status: 'exited' })).map((process) => process.id), ids.slice(-64));
  assert.equal(assertError(await ps.tryGet(own.id, ids[0]), 404).code, 'process_not_found');
  assert.equal((await ps.read(own.id, ids.at(-1))).stdout.toString(), '69\n');
  assert.equal((await ps.read(own.id, ids.at(-64))).stdout.toString(), '6\n');
  assert.equal((await ps.get(own.id, first.id)).status, 'running');
  await api.purge(own.id);
});

test('a paused sandbox tells of its processes and freezes them', async () => {
  const own = await api.create();
  const { id: p } = await ps.start(own.id, 'while :; do echo tick; sleep 0.01; done');
  await ps.untilOutput(own.id, p, 'tick');
  await api.life(own.id, 'pause');
  const then = (await ps.get(own.id, p)).output_bytes;
  assert.equal((await ps.list(own.id)).length, 1);
  assert.equal((await api.get(own.id)).status, 'paused', 'looking wakes nobody');
  await api.life(own.id, 'resume');
  await until(async () => (await ps.get(own.id, p)).output_bytes > then + 10, { what: 'it ticks on' });
  await api.purge(own.id);
});

finish();
