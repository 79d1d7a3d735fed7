// SPDX-License-Identifier: Apache-2.0
// Commands that are kept apart from the rest of their sandbox.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { Processes, collect, hostProcesses, numbered, untilRunning } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('isolate', { args: ['--templates', 'host,browser'] });
const { sandlot } = commandLine(instance);
const { id } = await api.create();
const ps = new Processes(api);

const apart = (body) => ({ isolate: true, ...(typeof body === 'string' ? { command: body } : body) });
const run = (body, extra = {}) => api.exec(id, { ...apart(body), ...extra });
const says = async (line, extra) => (await run(line, extra)).stdout;
const gone = (words) => untilRunning(instance, words, 0);

test('it sees its own processes and nobody else', async () => {
  const { id: other } = await ps.start(id, 'exec sleep 7101');
  await untilRunning(instance, 'sleep 7101', 1);
  assert.equal(await says('echo /proc/[0-9]*'), '/proc/1 /proc/2\n');
  assert.equal((await run('pkill -9 sleep; kill -9 -1')).exit_code, 1, 'there is nobody to kill but its own PID 1');
  assert.equal(hostProcesses(instance, 'sleep 7101').length, 1);
  await ps.kill(id, other);
});

for (const user of ['sandbox', 'root']) {
  test(`two isolated commands of ${user} can neither see nor signal nor trace each other`, async () => {
    const { id: one } = await ps.start(id, { ...apart('echo $$; exec sleep 7102'), user });
    await untilRunning(instance, 'sleep 7102', 1);
    const [host] = hostProcesses(instance, 'sleep 7102');
    const [, outer, inner] = proc.statusField(host.pid, 'NSpid').split(/\s+/).map(Number);
    assert.equal(inner, 2, 'as it sees itself');
    assert.equal(await says('echo /proc/[0-9]*', { user }), '/proc/1 /proc/2\n');
    const { stdout } = await run({ argv: ['python3', '-c', `
import os, ctypes
for pid in range(3, 400):
    if pid == os.getpid(): continue
    try: os.kill(pid, 9); print('killed', pid)
    except ProcessLookupError: pass
libc = ctypes.CDLL(None, use_errno=True)
print(libc.ptrace(16, ${outer}, 0, 0), os.path.exists('/proc/${outer}'))`] }, { user });
    assert.equal(stdout, '-1 False\n');
    assert.ok(proc.isAlive(host), 'the other goes on');
    await ps.kill(id, one);
  });
}

test('its /tmp is empty, its own, and gone with it', async () => {
  await api.exec(id, 'echo theirs > /tmp/theirs');
  assert.equal(await says('ls -A /tmp; echo mine > /tmp/mine; cat /tmp/mine; stat -c %a /tmp'), 'mine\n1777\n');
  assert.equal(await says('ls -A /tmp'), '');
  assert.equal((await api.exec(id, 'ls /tmp')).stdout, 'theirs\n');
});

test('its /tmp has a limit of bytes and of files', async () => {
  const own = await api.create({ resources: { memory: '1Gi' } });
  const { stdout } = await api.exec(own.id, apart({ argv: ['python3', '-c', `
import errno, os
n = 0
try:
    with open('/tmp/big', 'wb', 0) as f:
        while True: n += f.write(b'x' * (1 << 20))
except OSError as e: print(errno.errorcode[e.errno], n <= 256 << 20)
os.unlink('/tmp/big')
try:
    for n in range(100000): open('/tmp/%d' % n, 'w').close()
except OSError as e: print(errno.errorcode[e.errno], n < 65536)`] }));
  assert.equal(stdout, 'ENOSPC True\nENOSPC True\n');
  await api.purge(own.id);
});

test('it can write to the workspace and to nothing else of the disk, as root too', async () => {
  const line = 'for d in / /etc /usr /home/sandbox /root /var/tmp /opt /workspace/project_files /dev /sys; do touch $d/x 2>/dev/null && echo $d; done; echo ws > /workspace/ws && cat /workspace/ws';
  assert.equal(await says(line), 'ws\n');
  assert.equal(await says(line, { user: 'root' }), 'ws\n');
  assert.equal((await api.exec(id, 'cat /workspace/ws; touch /home/sandbox/x && echo ok')).stdout, 'ws\nok\n', 'for the others nothing changed');
});

test('it shares no memory, queue or semaphore with others', async () => {
  const make = `
import ctypes
libc = ctypes.CDLL(None)
print(libc.shmget(0x5a5a, 4096, 0o1666), libc.msgget(0x5a5a, 0o1666), libc.semget(0x5a5a, 1, 0o1666))
open('/dev/shm/common', 'w').close()`;
  const look = `
import ctypes, os
libc = ctypes.CDLL(None)
print(libc.shmget(0x5a5a, 4096, 0), libc.msgget(0x5a5a, 0), libc.semget(0x5a5a, 1, 0), os.listdir('/dev/shm'))`;
  assert.match((await api.exec(id, { argv: ['python3', '-c', make] })).stdout, /^\d+ \d+ \d+\n$/);
  assert.match((await api.exec(id, { argv: ['python3', '-c', look] })).stdout, /^\d+ \d+ \d+ \['common'\]\n$/);
  assert.equal((await run({ argv: ['python3', '-c', look] })).stdout, '-1 -1 -1 []\n');
});

test('terminals of others are not in its /dev/pts', async () => {
  const { id: p } = await ps.start(id, { command: 'exec sleep 7103', pty: true });
  await untilRunning(instance, 'sleep 7103', 1);
  assert.match((await api.exec(id, 'ls /dev/pts')).stdout, /^0$/m);
  assert.equal(await says('ls /dev/pts'), 'ptmx\n');
  assert.equal((await run({ argv: ['python3', '-c', 'import os; m, s = os.openpty(); print(os.ttyname(s))'] })).stdout, '/dev/pts/0\n');
  await ps.kill(id, p);
});

test('what is masked, the view of its machine, limits, users, network and name are those of the sandbox', async () => {
  const line = 'for f in cmdline keys kallsyms iomem interrupts; do wc -c < /proc/$f; done; ls -A /proc/acpi 2>/dev/null; grep MemTotal /proc/meminfo; grep -c ^processor /proc/cpuinfo; nproc; ulimit -a; id; hostname; ip -br addr 2>/dev/null || cat /proc/net/dev | wc -l; grep -E "Cap|NoNewPrivs|Seccomp:" /proc/self/status; cat /sys/fs/cgroup/memory*/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; readlink /proc/self/ns/net /proc/self/ns/user /proc/self/ns/uts /proc/self/ns/cgroup';
  for (const user of ['sandbox', 'root']) assert.equal(await says(line, { user }), (await api.exec(id, { command: line, user })).stdout, user);
  const spaces = 'readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/ipc';
  const mine = (await says(spaces)).split('\n');
  const theirs = (await api.exec(id, spaces)).stdout.split('\n');
  for (let i = 0; i < 3; i++) assert.notEqual(mine[i], theirs[i]);
});

test('limits of shared memory are those of the sandbox, and nobody sets them, as root neither', async () => {
  const line = 'cd /proc/sys/kernel; cat shmall msgmni sem; (echo 1 > shmall) 2>&1 | grep -o Read-only; df --output=size /dev/shm | tail -n 1';
  const { stdout } = await api.exec(id, { command: line, user: 'root' });
  assert.match(stdout, /Read-only\n +\d+\n$/);
  assert.equal(await says(line, { user: 'root' }), stdout);
});

test('nobody in it meddles with its PID 1, and nobody outside with what it holds', async () => {
  const meddle = (pid) => `
import os, resource
def attempt(f):
    try: f(); return 'done'
    except OSError as e: return e.strerror
print([attempt(f) for f in (lambda: resource.prlimit(${pid}, resource.RLIMIT_NOFILE, (9, 9)), lambda: os.sched_setaffinity(${pid}, {0}), lambda: os.setpriority(os.PRIO_PROCESS, ${pid}, 19))])
print([attempt(f) for f in (lambda: open('/proc/${pid}/mem', 'rb'), lambda: open('/proc/${pid}/oom_score_adj', 'w'), lambda: os.listdir('/proc/${pid}/fd'), lambda: os.readlink('/proc/${pid}/exe'))])`;
  const refused = (n) => `['${Array(n).fill('Operation not permitted').join("', '")}']`;
  const closed = "['Permission denied', 'Permission denied', 'Permission denied', 'Permission denied']";
  assert.equal((await run({ argv: ['python3', '-c', meddle(1)] }, { user: 'root' })).stdout, `${refused(3)}\n${closed}\n`);
  const { id: p } = await ps.start(id, apart('exec sleep 7109'));
  await untilRunning(instance, 'sleep 7109', 1);
  const [{ pid }] = hostProcesses(instance, 'sleep 7109');
  const warden = proc.statusField(proc.statusField(pid, 'PPid'), 'NSpid').split(/\s+/)[1];
  const { stdout } = await api.exec(id, { argv: ['python3', '-c', meddle(warden)], user: 'root' });
  assert.equal(stdout.split('\n')[1], closed);
  await ps.kill(id, p);
});

test('all that it started ends with it', async () => {
  const { exit_code: code } = await run('(setsid sleep 7104 >/dev/null 2>&1 &); setsid sleep 7104 >/dev/null 2>&1 & until pgrep -c sleep | grep -q 2; do :; done; exit 6');
  assert.equal(code, 6);
  await gone('sleep 7104');
  const { id: p } = await ps.start(id, apart('sleep 7105 & exit 0'));
  const record = await ps.wait(id, p);
  assert.equal(record.survivors, 0);
  assert.equal(record.isolated, true);
  await gone('sleep 7105');
});

for (const [what, body, code, reason, signal] of [
  ['an exit code', apart('exit 3'), 3, 'exited', null],
  ['a signal', apart('kill -SEGV $$'), 139, 'signal', 'SIGSEGV'],
  ['a timeout', { ...apart('sleep 7106 & sleep 7106'), timeout_ms: 300 }, 124, 'timeout', undefined],
  ['a program that is not there', apart({ argv: ['/no/such'] }), 127, 'exited', null],
]) {
  test(`${what} is told as ever, in every form`, async () => {
    const { id: p } = await ps.start(id, body);
    for (const one of [await api.exec(id, body), numbered(await collect(await api.execStream(id, body))).exit, await ps.wait(id, p)]) {
      assert.equal(one.exit_code, code, JSON.stringify(one));
      assert.equal(one.termination.reason, reason);
      if (signal !== undefined) assert.equal(one.termination.signal, signal);
    }
    await gone('sleep 7106');
  });
}

test('a directory that it cannot enter is the same error as ever', async () => {
  const answer = await api.tryExec(id, { ...apart('true'), cwd: '/no/such' });
  assert.equal(answer.status, 400);
  assert.equal(answer.json.error.code, 'cwd_not_found');
});

test('input, output, environment and a large argument reach it', async () => {
  const word = 'x'.repeat(100_000);
  const { stdout, stderr } = await run({ argv: ['sh', '-c', 'cat; echo $A >&2; echo ${#1}', 'sh', word], stdin: 'in\n', env: { A: 'b' } });
  assert.deepEqual([stdout, stderr], ['in\n100000\n', 'b\n']);
});

test('one in the background is fed, signalled and killed', async () => {
  const { id: p } = await ps.start(id, { ...apart('trap "echo usr1; exit 9" USR1; echo up; while read line; do echo got $line; done'), stdin_open: true });
  await ps.write(id, p, 'a\n');
  await until(async () => (await ps.read(id, p, { follow: false })).stdout.toString() === 'up\ngot a\n', { what: 'it has read' });
  assert.equal((await ps.signal(id, p, { signal: 'SIGUSR1' })).status, 204);
  assert.equal((await ps.wait(id, p)).exit_code, 9);
  assert.equal((await ps.read(id, p)).stdout.toString(), 'up\ngot a\nusr1\n');
  const { id: q } = await ps.start(id, apart('sleep 7107 & exec sleep 7107'));
  await untilRunning(instance, 'sleep 7107', 2);
  await ps.kill(id, q);
  assert.equal((await ps.wait(id, q)).termination.reason, 'killed');
  await gone('sleep 7107');
});

test('a terminal works in it', async () => {
  const { id: p } = await ps.start(id, { ...apart('test -t 0 && test -t 1 && stty size && exit 4'), pty: true, cols: 91, rows: 17 });
  assert.equal((await ps.wait(id, p)).exit_code, 4);
  assert.match((await ps.read(id, p)).stdout.toString(), /17 91/);
});

test('what the profile refuses is refused there, and told', async () => {
  const { termination, stderr } = await run('unshare -U true; unshare -m true; exit 1');
  assert.match(stderr, /not permitted/);
  assert.deepEqual(termination.denied, [{ syscall: 'unshare', count: 2 }]);
});

test('its profile is that of the sandbox', async () => {
  const { id: browser } = await api.create({ template: 'browser' });
  const { termination } = await api.exec(browser, apart('unshare -U true && unshare -m true; exit 1'));
  assert.deepEqual(termination.denied, [{ syscall: 'unshare', count: 1 }]);
  assert.equal(termination.profile, 'browser');
  await api.purge(browser);
});

test('memory and processes count against the sandbox', async () => {
  const own = await api.create({ resources: { memory: '64Mi' } });
  const { exit_code: code, termination } = await api.exec(own.id, apart({ argv: ['python3', '-c', 'x = b"x" * (300 << 20)'] }));
  assert.equal(code, 137);
  assert.equal(termination.reason, 'oom');
  assert.equal((await api.exec(own.id, 'echo works')).stdout, 'works\n');
  await api.purge(own.id);
});

test('it is paused and resumed with its sandbox, outlives the daemon, and ends with the sandbox', async () => {
  const own = await api.create();
  const { id: p } = await ps.start(own.id, { ...apart('echo up; read line; echo $line; exit 5'), stdin_open: true });
  const { id: q } = await ps.start(own.id, apart('exec sleep 7108'));
  await untilRunning(instance, 'sleep 7108', 1);
  await api.life(own.id, 'pause');
  await api.life(own.id, 'resume');
  await instance.crash();
  await instance.start();
  await ps.write(own.id, p, 'after\n');
  assert.equal((await ps.wait(own.id, p)).exit_code, 5);
  assert.equal((await ps.read(own.id, p)).stdout.toString(), 'up\nafter\n');
  assert.equal((await ps.get(own.id, q)).isolated, true);
  await api.life(own.id, 'stop');
  await gone('sleep 7108');
  assert.equal((await ps.get(own.id, q)).termination.reason, 'operator');
  assert.equal((await api.exec(own.id, apart('echo woken'))).stdout, 'woken\n');
  await api.purge(own.id);
});

test('a stop gives it the time to end by itself', async () => {
  const own = await api.create();
  const { id: p } = await ps.start(own.id, apart('trap "echo bye > /workspace/bye; exit 0" TERM; echo up; while :; do sleep 0.05; done'));
  await until(async () => (await ps.get(own.id, p)).output_bytes > 0, { what: 'it is up' });
  await api.life(own.id, 'stop');
  assert.equal((await api.exec(own.id, 'cat /workspace/bye')).stdout, 'bye\n');
  await api.purge(own.id);
});

test('a sandbox that spoils the places of a cell only spoils its own', async () => {
  const own = await api.create();
  await api.exec(own.id, { command: 'rm -rf /tmp; ln -s /workspace /tmp', user: 'root' });
  const answer = await api.tryExec(own.id, apart('true'));
  assert.match(assertError(answer, 422).message, /\/tmp/);
  assert.equal((await api.exec(own.id, 'echo works')).stdout, 'works\n');
  await api.purge(own.id);
});

test('while a cell is built nobody inside sees anything of the host', async () => {
  const own = await api.create();
  const { id: spy } = await ps.start(own.id, { user: 'root', argv: ['python3', '-u', '-c', `
import os, select, sys
# The workspace's own path is in every mountinfo; what the keeper has mounted must not be.
home = bytes.fromhex('${Buffer.from(instance.dataDir).toString('hex')}')
telling = {'cmdline': home, 'environ': home, 'exe': home, 'cwd': home, 'root': home, 'mountinfo': home + b'/templates', 'net/unix': b'keeper.sock'}
seen, found = set(), set()
print('up')
while not select.select([0], [], [], 0)[0]:
    for pid in os.listdir('/proc'):
        if not pid.isdigit() or int(pid) <= 2: continue
        seen.add(pid)
        for name, word in telling.items():
            path = '/proc/%s/%s' % (pid, name)
            try: text = os.readlink(path).encode() if name in ('cwd', 'root', 'exe') else open(path, 'rb').read()
            except OSError: continue
            if word in text: found.add(name)
print(len(seen) > 40, sorted(found))`], stdin_open: true });
  await until(async () => (await ps.get(own.id, spy)).output_bytes > 0, { what: 'it looks' });
  for (let i = 0; i < 60; i++) await api.exec(own.id, apart('true'));
  await ps.closeStdin(own.id, spy);
  await ps.wait(own.id, spy);
  assert.equal((await ps.read(own.id, spy)).stdout.toString(), 'up\nTrue []\n');
  await api.purge(own.id);
});

test('many at a time', async () => {
  const ends = await Promise.all(Array.from({ length: 24 }, (_, i) => run(`echo ${i} > /tmp/x; cat /tmp/x`)));
  assert.deepEqual(ends.map(({ stdout }) => stdout), Array.from({ length: 24 }, (_, i) => `${i}\n`));
});

test('sandlot exec --isolate does it, plain, with -i and with -d', async () => {
  const list = ['--', 'sh', '-c', 'echo /proc/[0-9]*'];
  assert.equal((await sandlot(['exec', '--isolate', id, ...list])).stdout, '/proc/1 /proc/2\n');
  assert.equal((await sandlot(['exec', '-i', '--isolate', id, '--', 'cat'], { input: 'fed' })).stdout, 'fed');
  const name = (await sandlot(['exec', '-d', '--isolate', id, ...list])).stdout.trim();
  assert.equal((await sandlot(['wait', id, name])).code, 0);
  assert.equal((await sandlot(['logs', id, name])).stdout, '/proc/1 /proc/2\n');
});

finish();
