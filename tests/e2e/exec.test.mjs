// SPDX-License-Identifier: Apache-2.0
// Running commands: the buffered answer and the event stream.
import { IS_SANITIZED } from './lib/instance.mjs';
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';

import { assertError, eventBytes } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { eachLimit, until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('exec');
const { id } = await api.create({ env: { BASE: 'base', SHARED: 'sandbox' } });
const isRunning = async (words) => (await api.processes(id)).some((line) => line.includes(words) && !line.includes('/cmdline'));

async function collect(stream) {
  const events = [];
  for await (const event of stream.events()) events.push(event);
  return events;
}

const bytesOfEvents = (events, name) => Buffer.concat(events.filter((event) => event.event === name).map(eventBytes));

// The buffered form ---------------------------------------------------------------------------

test('a shell line runs and every field of the answer is there', async () => {
  const result = await api.exec(id, { command: 'echo out; echo err >&2; exit 3' });
  assert.deepEqual(Object.keys(result).sort(), ['duration_ms', 'exit_code', 'stderr', 'stdout', 'termination', 'truncated']);
  assert.equal(result.exit_code, 3);
  assert.equal(result.stdout, 'out\n');
  assert.equal(result.stderr, 'err\n');
  assert.equal(result.truncated, false);
  assert.ok(typeof result.duration_ms === 'number' && result.duration_ms > 0);
  assert.deepEqual(Object.keys(result.termination).sort(), ['cpu_ms', 'denied', 'detail', 'peak_memory_bytes', 'profile', 'reason', 'signal']);
  assert.equal(result.termination.reason, 'exited');
  assert.equal(result.termination.signal, null);
  assert.equal(result.termination.detail, null);
});

test('a shell line is read by a shell: pipes, variables, globs, several lines', async () => {
  assert.equal(await api.out(id, 'printf "b\\na\\n" | sort | tr "\\n" " "; x=5; echo $((x*2))\necho /etc/pass*'), 'a b 10\n/etc/passwd\n');
});

test('argv runs as given, without a shell', async () => {
  assert.equal(await api.out(id, { argv: ['printf', '%s|', 'a b', '$HOME', '*', '', 'é', '-n', '"'] }), 'a b|$HOME|*||é|-n|"|');
});

test('argv takes an absolute program or one from PATH', async () => {
  assert.equal(await api.out(id, { argv: ['/usr/bin/id', '-u'] }), '1000\n');
  assert.equal(await api.out(id, { argv: ['id', '-u'] }), '1000\n');
  await api.put(id, '/workspace/outputs/bin/mytool', '#!/bin/sh\necho tool $1\n', { query: { mode: '0755' } });
  assert.equal(await api.out(id, { argv: ['mytool', 'x'], env: { PATH: '/workspace/outputs/bin:/usr/bin:/bin' } }), 'tool x\n');
});

test('both command and argv, or neither, is 400', async () => {
  assertError(await api.tryExec(id, { command: 'true', argv: ['true'] }), 400, /command|argv/);
  assertError(await api.tryExec(id, {}), 400, /command|argv/);
  assertError(await api.tryExec(id, { argv: [] }), 400, /argv/);
});

test('cwd is where the command runs', async () => {
  assert.equal(await api.out(id, { command: 'pwd', cwd: '/usr' }), '/usr\n');
  assert.equal(await api.out(id, { argv: ['pwd'], cwd: '/workspace/agent_workspace' }), '/workspace/agent_workspace\n');
});

test('a cwd that is missing, a file, or closed to the user is 400 and names it', async () => {
  assertError(await api.tryExec(id, { command: 'true', cwd: '/no/such/dir' }), 400, /cwd|\/no\/such\/dir/);
  assertError(await api.tryExec(id, { command: 'true', cwd: '/etc/passwd' }), 400, /cwd|directory/);
  assertError(await api.tryExec(id, { command: 'true', cwd: '/root' }), 400, /cwd|\/root/);
  assert.equal(await api.out(id, { command: 'pwd', cwd: '/root', user: 'root' }), '/root\n');
});

test('a cwd through links of /proc stays inside the sandbox or is refused', async () => {
  await api.exec(id, 'ln -sfn /proc/self/root /tmp/link; mkdir -p /tmp/gone');
  for (const cwd of ['/proc/self/fd/7', '/proc/1/cwd', '/proc/1/root', '/tmp/link', '/proc/self/root', '/proc/self/fd/3', '/proc/thread-self/cwd']) {
    const answer = await api.tryExec(id, { command: 'ls -d /work /boot 2>/dev/null; ls ../../../../etc/passwd >/dev/null && grep -c ^sandbox: ../../../../etc/passwd', cwd, user: 'root' });
    if (answer.status === 200) assert.doesNotMatch(answer.json.stdout, /work|boot/, `${cwd}: ${answer.text}`);
    else assertError(answer, 400);
  }
});

test('env is added to that of the sandbox and wins over it', async () => {
  assert.equal(await api.out(id, { command: 'echo "$BASE $SHARED $OWN"', env: { SHARED: 'exec', OWN: 'a b\nc' } }), 'base exec a b\nc\n');
  assert.equal(await api.out(id, 'echo "[$OWN]"'), '[]\n', 'and is gone with the command');
});

test('the environment of a command cannot reach the agent', async () => {
  await api.exec(id, { command: 'true', env: { LD_PRELOAD: '/tmp/evil.so', LD_LIBRARY_PATH: '/tmp', IFS: 'x', BASH_ENV: '/tmp/evil' } });
  assert.equal(await api.out(id, 'echo "[$LD_PRELOAD$BASH_ENV]"'), '[]\n');
});

test('user takes root, sandbox and numbers', async () => {
  for (const [user, uid] of [['root', 0], ['sandbox', 1000], ['0', 0], ['1000', 1000], ['1001', 1001]]) {
    const answer = await api.tryExec(id, { command: 'id -u', user });
    assert.equal(answer.status, 200, `${user}: ${answer.text}`);
    assert.equal(answer.json.stdout, `${uid}\n`, user);
  }
});

test('a user that overflows, is negative, padded, in hex, empty or unknown is 400', async () => {
  for (const user of ['4294967296', '-1', '0x0', 'root\n', '', ' 0', '00', '0 ', '+0', '4294967295', '65536', '1e3', 'nobody-like-this', 'root:root', '../root', 'r'.repeat(5000), 4294967296, -1, 1.5, true, null, [], {}]) {
    if (user === null) continue;
    const answer = await api.tryExec(id, { command: 'id -u', user });
    assertError(answer, 400, /user/);
  }
});

test('a line for uid 0 in the sandbox\'s own passwd gives nobody root by name', async () => {
  const own = await api.create();
  await api.out(own.id, { command: 'echo "evil:x:0:0::/:/bin/sh" >> /etc/passwd; sed -i "s/^sandbox:x:1000/sandbox:x:0/" /etc/passwd', user: 'root' });
  assert.equal(await api.out(own.id, { argv: ['id', '-u'], user: 'sandbox' }), '1000\n');
  const answer = await api.tryExec(own.id, { argv: ['id', '-u'], user: 'evil' });
  assertError(answer, 400);
  await api.purge(own.id);
});

test('stdin reaches the command and ends', async () => {
  assert.equal(await api.out(id, { command: 'cat; echo end', stdin: 'line 1\nžluť\n' }), 'line 1\nžluť\nend\n');
  assert.equal(await api.out(id, { command: 'cat | wc -c', stdin: '' }), '0\n');
  assert.equal(await api.out(id, { command: 'cat | wc -c' }), '0\n', 'without stdin it is at its end at once');
  assert.equal(await api.out(id, { argv: ['wc', '-c'], stdin: 'x'.repeat(700_000) }), '700000\n');
});

test('stdin that nobody reads does not hold up the answer', async () => {
  const result = await within('exec', api.exec(id, { command: 'exec 0<&-; echo done', stdin: 'x'.repeat(700_000) }));
  assert.equal(result.stdout, 'done\n');
});

test('exit codes from 0 to 255 pass', async () => {
  for (const code of [0, 1, 2, 42, 127, 128, 254, 255]) {
    const result = await api.exec(id, `exit ${code}`);
    assert.equal(result.exit_code, code);
    assert.equal(result.termination.reason, 'exited');
  }
});

test('a signal is told with its name and as 128+n', async () => {
  for (const [name, number] of [['KILL', 9], ['TERM', 15], ['SEGV', 11], ['ABRT', 6], ['HUP', 1]]) {
    const result = await api.exec(id, { argv: ['sh', '-c', `kill -${name} $$`] });
    assert.equal(result.exit_code, 128 + number, name);
    assert.equal(result.termination.reason, 'signal', name);
    assert.ok([`SIG${name}`, name, number].includes(result.termination.signal), JSON.stringify(result.termination));
  }
});

test('a program that does not exist is 127, one that cannot be run 126, and the reason is on stderr', async () => {
  const missing = await api.exec(id, { argv: ['no-such-program'] });
  assert.equal(missing.exit_code, 127);
  assert.equal(missing.stderr, 'sandlot: there is no program "no-such-program" in the sandbox\n');
  assert.equal((await api.exec(id, { argv: ['/etc/passwd'] })).stderr, 'sandlot: cannot run /etc/passwd: Permission denied\n');
  assert.equal((await api.exec(id, { argv: ['/no/such/program'] })).exit_code, 127);
  assert.equal((await api.exec(id, 'no-such-program')).exit_code, 127);
  assert.equal((await api.exec(id, { argv: ['/etc/passwd'] })).exit_code, 126);
  assert.equal((await api.exec(id, { argv: ['/etc'] })).exit_code, 126);
});

test('output that is not UTF-8 comes as base64, the rest as text', async () => {
  const result = await api.exec(id, { argv: ['python3', '-c', 'import sys; sys.stdout.buffer.write(bytes(range(256))); sys.stderr.write("text")'] });
  assert.equal(result.exit_code, 0);
  assert.deepEqual(Buffer.from(result.stdout_base64, 'base64'), Buffer.from(Array.from({ length: 256 }, (_, i) => i)));
  assert.ok(result.stdout === undefined || result.stdout === null || result.stdout === '', 'not both');
  assert.equal(result.stderr, 'text');
  assert.equal(result.stderr_base64, undefined);
  const other = await api.exec(id, { argv: ['python3', '-c', 'import sys; sys.stderr.buffer.write(b"\\xff\\x00")'] });
  assert.deepEqual(Buffer.from(other.stderr_base64, 'base64'), Buffer.from([255, 0]));
});

test('a NUL, control characters and characters beyond 16 bits come through as text', async () => {
  const text = 'a\0b\x1b[31m\r\n\t\u007f"\\ 😀 \u2028 é';
  const answer = await api.tryExec(id, { argv: ['cat'], stdin: text.replace('\0', '') });
  assert.equal(answer.json.stdout, text.replace('\0', ''));
  const zero = await api.exec(id, "printf 'a\\000b'");
  assert.deepEqual(zero.stdout_base64 ? Buffer.from(zero.stdout_base64, 'base64') : Buffer.from(zero.stdout), Buffer.from('a\0b'));
});

test('characters split over several writes are put together', async () => {
  const result = await api.exec(id, { argv: ['python3', '-uc', 'import os, time\nfor b in "é😀ž".encode() * 50: os.write(1, bytes([b]))'] });
  assert.equal(result.stdout, 'é😀ž'.repeat(50));
});

test('bytes that only look like UTF-8 are not text', async () => {
  for (const hex of ['c0af', 'eda080', 'f4908080', 'ff', 'c3', 'f09f98', '80']) {
    const result = await api.exec(id, { argv: ['python3', '-c', `import sys; sys.stdout.buffer.write(bytes.fromhex("${hex}"))`] });
    assert.equal(Buffer.from(result.stdout_base64 ?? '', 'base64').toString('hex'), hex);
  }
});

test('ten MiB of output are cut, said to be cut, and the command runs to its end', async () => {
  const before = proc.residentBytes(instance.daemon.pid);
  const result = await api.exec(id, { command: 'head -c 10485760 /dev/zero | tr "\\0" a; echo err >&2; touch /tmp/finished; exit 5' });
  assert.equal(result.truncated, true);
  assert.equal(result.exit_code, 5);
  assert.ok(result.stdout.length > 1000 && result.stdout.length < 10485760, `${result.stdout.length}`);
  assert.match(result.stdout, /^a+$/);
  assert.equal(result.stderr, 'err\n');
  assert.equal((await api.exec(id, 'test -e /tmp/finished')).exit_code, 0);
  assert.ok(proc.residentBytes(instance.daemon.pid) - before < 64 * MI);
});

test('a flood of output is bounded in the daemon while others are served', async () => {
  const flood = api.exec(id, { command: 'yes', timeout_ms: 2000 });
  for (let i = 0; i < 10; i++) assert.equal(await api.out(id, 'echo quick'), 'quick\n');
  const result = await flood;
  assert.equal(result.truncated, true);
  assert.equal(result.termination.reason, 'timeout');
});

test('a timeout ends the command and all it started, with reason timeout and exit code 124', async () => {
  const result = await within('exec', api.exec(id, { command: 'echo before; sleep 4711 & sleep 4711', timeout_ms: 1500 }));
  assert.equal(result.exit_code, 124);
  assert.equal(result.termination.reason, 'timeout');
  assert.equal(result.stdout, 'before\n', 'what was printed before is there');
  assert.ok(result.duration_ms >= 1490, `${result.duration_ms}`);
  await until(async () => !(await isRunning('sleep 4711')), { what: 'no child of it is left' });
});

test('a timeout also ends what ignores SIGTERM, stops itself or changes its session', async () => {
  for (const command of ["trap '' TERM INT HUP; while :; do sleep 0.1; done", 'kill -STOP $$; sleep 4712', 'setsid sleep 4712 & wait']) {
    const result = await within(command, api.exec(id, { command, timeout_ms: 300 }));
    assert.equal(result.exit_code, 124, command);
    assert.equal(result.termination.reason, 'timeout', command);
  }
});

test('a command faster than its timeout is not touched by it', async () => {
  const result = await api.exec(id, { command: 'exit 124', timeout_ms: 20_000 });
  assert.equal(result.exit_code, 124);
  assert.equal(result.termination.reason, 'exited');
});

test('a child that keeps stdout open does not hold up the answer', async () => {
  const result = await within('exec', api.exec(id, 'sleep 4713 & echo started'));
  assert.equal(result.stdout, 'started\n');
  assert.equal(result.exit_code, 0);
});

test('two hundred such orphans leave no descriptor or thread in the daemon', async () => {
  const own = await api.create();
  await api.exec(own.id, 'true');
  const before = [proc.descriptors(instance.daemon.pid).length, proc.threads(instance.daemon.pid)];
  await eachLimit(Array.from({ length: 200 }), 8, () => api.exec(own.id, 'sleep 600 & true'));
  await until(() => proc.descriptors(instance.daemon.pid).length <= before[0] + 8 && proc.threads(instance.daemon.pid) <= before[1] + 8, { what: 'back to where it was (but for our connections)' });
  await api.purge(own.id);
});

test('time, CPU and memory of a command are measured', async () => {
  const idle = await api.exec(id, 'sleep 0.3');
  assert.ok(idle.duration_ms >= 300, `${idle.duration_ms}`);
  assert.ok(idle.termination.cpu_ms < 250, `${idle.termination.cpu_ms}`);
  const busy = await api.exec(id, { argv: ['python3', '-c', 'import time\nx = bytearray(60 << 20)\nwhile time.process_time() < 0.3: pass'] });
  assert.ok(busy.termination.cpu_ms >= 290 && busy.termination.cpu_ms < 10_000, `${busy.termination.cpu_ms}`);
  assert.ok(busy.termination.peak_memory_bytes >= 60 * MI && busy.termination.peak_memory_bytes < 400 * MI, `${busy.termination.peak_memory_bytes}`);
  // Until it runs its program it is the agent, which is large with a sanitizer.
  assert.ok(idle.termination.peak_memory_bytes > 0 && idle.termination.peak_memory_bytes < (IS_SANITIZED ? 512 : 60) * MI, `${idle.termination.peak_memory_bytes}`);
});

test('fifty parallel commands keep their output apart', async () => {
  const results = await Promise.all(Array.from({ length: 50 }, (_, i) => api.exec(id, `for n in 1 2 3; do echo ${i}; echo e${i} >&2; done; exit ${i}`)));
  results.forEach((result, i) => {
    assert.equal(result.stdout, `${i}\n`.repeat(3));
    assert.equal(result.stderr, `e${i}\n`.repeat(3));
    assert.equal(result.exit_code, i);
  });
});

test('three hundred commands in a row all answer', async () => {
  await eachLimit(Array.from({ length: 300 }), 4, async (_, i) => assert.equal((await api.exec(id, { argv: ['true'] })).exit_code, 0, `${i}`));
});

test('many arguments and a long one work, more than the system takes are 400', async () => {
  assert.equal(await api.out(id, { command: 'printf "%s\\n" "$0" >/dev/null; echo ok' }), 'ok\n');
  assert.equal(await api.out(id, { argv: ['sh', '-c', 'echo $#', 'sh', ...Array.from({ length: 2000 }, (_, i) => `${i}`)] }), '2000\n');
  assert.equal(await api.out(id, { argv: ['sh', '-c', 'printf %s "$1" | wc -c', 'sh', 'x'.repeat(100_000)] }), '100000\n');
  const answer = await api.tryExec(id, { argv: ['true', 'x'.repeat(300_000)] });
  if (answer.status === 200) assert.equal(answer.json.exit_code, 126, answer.text);
  else assertError(answer, [400, 413]);
});

test('a client that goes away ends its buffered command', async () => {
  const controller = new AbortController();
  const call = api.tryExec(id, { command: 'sleep 4714' }, { signal: controller.signal, agent: new http.Agent() });
  call.catch(() => {});
  await until(() => isRunning('sleep 4714'), { what: 'the command runs' });
  controller.abort();
  await assert.rejects(call);
  await until(async () => !(await isRunning('sleep 4714')), { what: 'the command is ended' });
});

test('each of 20 clients that go away at once takes its command along', async () => {
  const streams = await Promise.all(Array.from({ length: 20 }, () => api.execStream(id, 'echo up; sleep 4715')));
  for (const stream of streams) await stream.events().next();
  for (const stream of streams) stream.close();
  await until(async () => !(await isRunning('sleep 4715')), { what: 'all commands are ended' });
});

// The event stream ----------------------------------------------------------------------------

test('the stream has start, stdout, stderr and exit with increasing ids', async () => {
  const stream = await api.execStream(id, 'echo one; echo two >&2; exit 7');
  assert.equal(stream.response.statusCode, 200);
  assert.match(stream.response.headers['content-type'], /^text\/event-stream/);
  const events = await collect(stream);
  assert.equal(events[0].event, 'start');
  assert.equal(events.at(-1).event, 'exit');
  assert.equal(events.filter((event) => event.event === 'start').length, 1);
  assert.equal(events.filter((event) => event.event === 'exit').length, 1);
  assert.deepEqual([...new Set(events.map((event) => event.event))].sort(), ['exit', 'start', 'stderr', 'stdout']);
  const ids = events.map((event) => Number(event.id));
  assert.ok(ids.every((number, i) => Number.isInteger(number) && (i === 0 || number > ids[i - 1])), ids.join());
  assert.equal(bytesOfEvents(events, 'stdout').toString(), 'one\n');
  assert.equal(bytesOfEvents(events, 'stderr').toString(), 'two\n');
  const { data } = events.at(-1);
  assert.equal(data.exit_code, 7);
  assert.equal(data.termination.reason, 'exited');
  assert.ok(typeof data.duration_ms === 'number');
});

test('output arrives while the command runs', async () => {
  const stream = await api.execStream(id, 'echo first; until test -e /tmp/go-on; do sleep 0.02; done; echo second');
  const events = stream.events();
  const seen = [];
  for (;;) {
    const { value } = await within('the first output', events.next());
    seen.push(value.event);
    if (value.event === 'stdout') {
      assert.equal(eventBytes(value).toString(), 'first\n');
      break;
    }
  }
  assert.deepEqual(seen, ['start', 'stdout']);
  await api.put(id, '/tmp/go-on', '');
  const rest = [];
  for await (const event of events) rest.push(event);
  assert.equal(bytesOfEvents(rest, 'stdout').toString(), 'second\n');
  assert.equal(rest.at(-1).event, 'exit');
});

test('a stream of many MiB is complete and in order', async () => {
  const events = await collect(await api.execStream(id, { argv: ['python3', '-c', 'import sys\nfor i in range(700000): sys.stdout.write("%09d\\n" % i)'] }));
  const bytes = bytesOfEvents(events, 'stdout');
  assert.equal(bytes.length, 7_000_000);
  const lines = bytes.toString('latin1').split('\n');
  assert.ok(lines.slice(0, -1).every((line, i) => Number(line) === i));
  assert.equal(events.at(-1).data.exit_code, 0);
});

test('binary output streams as base64 and split characters are whole again', async () => {
  const events = await collect(await api.execStream(id, { argv: ['python3', '-uc', 'import os, time\nos.write(1, b"\\xff\\x00")\nfor b in "é😀".encode() * 20:\n  os.write(1, bytes([b])); time.sleep(0.001)'] }));
  assert.deepEqual(bytesOfEvents(events, 'stdout'), Buffer.concat([Buffer.from([255, 0]), Buffer.from('é😀'.repeat(20))]));
});

test('newlines and SSE-like text in the output are data, not events', async () => {
  const events = await collect(await api.execStream(id, "printf 'event: exit\\ndata: {}\\n\\nid: 9\\r\\r\\n: ping\\n'"));
  assert.equal(bytesOfEvents(events, 'stdout').toString(), 'event: exit\ndata: {}\n\nid: 9\r\r\n: ping\n');
  assert.equal(events.filter((event) => event.event === 'exit').length, 1);
});

test('a stream tells of timeouts, signals and missing programs in its exit event', async () => {
  const last = async (body) => (await collect(await api.execStream(id, body))).at(-1);
  const late = await last({ command: 'sleep 4716', timeout_ms: 200 });
  assert.equal(late.event, 'exit');
  assert.equal(late.data.exit_code, 124);
  assert.equal(late.data.termination.reason, 'timeout');
  const killed = await last('kill -9 $$');
  assert.equal(killed.data.exit_code, 137);
  assert.equal(killed.data.termination.reason, 'signal');
  const missing = await last({ argv: ['no-such-program'] });
  assert.equal(missing.data.exit_code, 127);
});

test('a bad request for a stream is an ordinary error', async () => {
  for (const body of [{}, { command: 'x', argv: ['x'] }, { command: 'true', cwd: '/no/such/dir' }, { command: 'true', user: '-1' }]) {
    const answer = await api.tryExec(id, body, { headers: { accept: 'text/event-stream' } });
    assertError(answer, 400);
  }
});

test('a client that closes its stream ends the command', async () => {
  const stream = await api.execStream(id, 'echo up; sleep 4717');
  await stream.events().next();
  await until(() => isRunning('sleep 4717'), { what: 'the command runs' });
  stream.close();
  await until(async () => !(await isRunning('sleep 4717')), { what: 'the command is ended' });
});

test('a client that never reads slows its own command only, in bounded memory', async () => {
  const before = proc.residentBytes(instance.daemon.pid);
  const streams = await Promise.all(Array.from({ length: 10 }, () => api.execStream(id, 'yes 0123456789abcdef0123456789abcdef')));
  for (const stream of streams) stream.response.pause();
  const start = Date.now();
  while (Date.now() - start < 1000) assert.equal(await api.out(id, 'echo quick'), 'quick\n');
  const grown = proc.residentBytes(instance.daemon.pid) - before;
  for (const stream of streams) stream.close();
  // A sanitizer keeps freed memory aside, so there it says nothing.
  if (!IS_SANITIZED) assert.ok(grown < 48 * MI, `the daemon grew by ${grown} bytes`);
  await until(async () => !(await isRunning('yes 0123')), { what: 'the commands are ended' });
});

test('Accept: application/json gives the buffered form', async () => {
  const answer = await api.tryExec(id, 'echo x', { headers: { accept: 'application/json' } });
  assert.match(answer.headers['content-type'], /^application\/json/);
  assert.equal(answer.json.stdout, 'x\n');
});

test('a stopped sandbox is woken by a stream', async () => {
  const own = await api.create();
  await api.life(own.id, 'stop');
  const events = await collect(await api.execStream(own.id, 'echo awake'));
  assert.equal(bytesOfEvents(events, 'stdout').toString(), 'awake\n');
  await api.purge(own.id);
});

test('a stop under a stream ends it with an exit event', async () => {
  const own = await api.create();
  const stream = await api.execStream(own.id, 'echo up; sleep 600');
  const events = stream.events();
  await events.next();
  await api.life(own.id, 'stop');
  let last;
  await within('the end of the stream', (async () => { for await (const event of events) last = event; })());
  assert.equal(last.event, 'exit');
  assert.notEqual(last.data.exit_code, 0);
  await api.purge(own.id);
});

test('commands that run side by side in two sandboxes do not meet', async () => {
  const [a, b] = await Promise.all([api.create(), api.create()]);
  await api.exec(a.id, 'setsid sleep 4718 >/dev/null 2>&1 </dev/null &');
  assert.ok(!(await api.processes(b.id)).some((line) => line.includes('sleep 4718')));
  await Promise.all([api.purge(a.id), api.purge(b.id)]);
});

finish();
