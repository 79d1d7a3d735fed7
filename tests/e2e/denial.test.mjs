// SPDX-License-Identifier: Apache-2.0
// What the seccomp profile refuses is told: which call, how often, to whom.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { Processes, collect, numbered } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('denial', { args: ['--templates', 'host,browser'] });
const { sandlot } = commandLine(instance);
const { id } = await api.create();
const ps = new Processes(api);

// Numbers that x86-64 and arm64 do not share, by name.
const NUMBERS = `
import ctypes, errno, os, platform, signal, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
N = ({'mount': 165, 'bpf': 321, 'unshare': 272, 'setns': 308, 'keyctl': 250, 'personality': 135, 'clone': 56, 'ptrace': 101, 'set_mempolicy': 238, 'mbind': 237}
     if platform.machine() == 'x86_64' else
     {'mount': 40, 'bpf': 280, 'unshare': 97, 'setns': 268, 'keyctl': 219, 'personality': 92, 'clone': 220, 'ptrace': 117, 'set_mempolicy': 237, 'mbind': 235})
N.update(io_uring_setup=425, clone3=435, no_such_call=800)
def call(name, *args):
    ctypes.set_errno(0)
    r = libc.syscall(N[name], *args)
    return 0 if r >= 0 else ctypes.get_errno()
`;
const python = (code) => ({ argv: ['python3', '-c', NUMBERS + code] });

for (const [what, code, call] of [
  ['mounts', 'call("mount", b"x", b"/mnt", b"tmpfs", 0, 0)', 'mount'],
  ['makes a user namespace', 'call("unshare", 0x10000000)', 'unshare'],
  ['clones into a new pid namespace', 'call("clone", 0x20000000 | 17, 0, 0, 0, 0)', 'clone'],
  ['enters a namespace', 'call("setns", 0, 0)', 'setns'],
  ['loads a bpf program', 'call("bpf", 5, 0, 0)', 'bpf'],
  ['wants io_uring', 'call("io_uring_setup", 8, 0)', 'io_uring_setup'],
  ['asks for keys', 'call("keyctl", 0, -3, 0)', 'keyctl'],
  ['opens a raw socket', 'ctypes.get_errno() if libc.socket(2, 3, 1) < 0 else 0', 'socket'],
  ['types into its terminal', 'ctypes.get_errno() if libc.ioctl(0, 0x5412, b"x") < 0 else 0', 'ioctl'],
]) {
  test(`to one that ${what} the refusal is explained, in every form`, async () => {
    const body = python(`r = ${code}\nsys.exit(r)`);
    const result = await api.exec(id, body);
    const streamed = numbered(await collect(await api.execStream(id, body))).exit;
    const { id: p } = await ps.start(id, body);
    const record = await ps.wait(id, p);
    for (const { exit_code: exitCode, termination } of [result, streamed, record]) {
      assert.equal(exitCode, 1, 'EPERM');
      assert.equal(termination.reason, 'exited');
      assert.deepEqual(termination.denied, [{ syscall: call, count: 1 }]);
      assert.equal(termination.profile, 'default');
      assert.equal(termination.detail, `the profile \`default\` refused ${call}(2) once`);
    }
  });
}

test('a refusal that costs a program nothing but speed is not taken for its failure', async () => {
  const { termination } = await api.exec(id, python('call("set_mempolicy", 0, 0, 0)\nsys.exit(3)'));
  assert.deepEqual(termination.denied, [{ syscall: 'set_mempolicy', count: 1 }]);
  assert.equal(termination.detail, null);
  const both = await api.exec(id, python('call("mbind", 0, 0, 0, 0, 0, 0)\ncall("bpf", 5, 0, 0)\nsys.exit(3)'));
  assert.equal(both.termination.detail, 'the profile `default` refused bpf(2) once');
});

test('root inside is refused the same, and told the same', async () => {
  const { termination } = await api.exec(id, { ...python('sys.exit(call("mount", b"x", b"/mnt", b"tmpfs", 0, 0))'), user: 'root' });
  assert.deepEqual(termination.denied, [{ syscall: 'mount', count: 1 }]);
});

test('counts are exact, over threads, children and sessions', async () => {
  const { termination } = await api.exec(id, python(`
def work():
    for _ in range(50): call("bpf", 5, 0, 0)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
if os.fork() == 0:
    os.setsid()
    for _ in range(7): call("mount", 0, 0, 0, 0, 0)
    os._exit(0)
os.wait()
sys.exit(1)`));
  assert.deepEqual(termination.denied, [{ syscall: 'bpf', count: 200 }, { syscall: 'mount', count: 7 }]);
  assert.equal(termination.detail, 'the profile `default` refused bpf(2) 200 times, mount(2) 7 times');
});

test('of a command that was refused nothing, nothing is told', async () => {
  for (const body of [{ argv: ['true'] }, { argv: ['false'] }, python('sys.exit(3)'), { command: 'cat /etc/shadow; kill -9 $$' }]) {
    const { termination } = await api.exec(id, body);
    assert.deepEqual(termination.denied, []);
    assert.equal(termination.profile, null);
    assert.equal(termination.detail, null);
  }
});

test('calls that the profile does not know, and clone3, are no refusals: a program falls back', async () => {
  const { exit_code: code, termination } = await api.exec(id, python('sys.exit(call("no_such_call") != errno.ENOSYS or call("clone3", 0, 0) != errno.ENOSYS)'));
  assert.equal(code, 0);
  assert.deepEqual(termination.denied, []);
});

test('each of several commands at a time is told its own', async () => {
  const ends = await Promise.all([0, 10, 20, 30].map((times) => api.exec(id, python(`[call("bpf", 5, 0, 0) for _ in range(${times})]`))));
  assert.deepEqual(ends.map(({ termination }) => termination.denied[0]?.count ?? 0), [0, 10, 20, 30]);
});

test('one that is traced is refused the same, and its tracer sees EPERM', async () => {
  const { stdout, termination } = await api.exec(id, python(`
pid = os.fork()
if pid == 0:
    call("ptrace", 0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(call("bpf", 5, 0, 0))
stops = 0
while True:
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status): break
    stops += 1
    call("ptrace", 24, pid, 0, 0)
print(os.WEXITSTATUS(status), stops >= 4)`));
  assert.equal(stdout, '1 True\n');
  assert.deepEqual(termination.denied, [{ syscall: 'bpf', count: 1 }]);
});

test('a signal that comes while a call waits does not make it count twice', async () => {
  const { stdout, termination } = await api.exec(id, python(`
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
print({call("bpf", 5, 0, 0) for _ in range(3000)})
signal.setitimer(signal.ITIMER_REAL, 0)`));
  assert.equal(stdout, '{1}\n');
  const { count } = termination.denied[0];
  // One may be lost to a signal in the very moment of its answer, and is then asked again.
  assert.ok(count >= 3000 && count <= 3010, `${count}`);
});

test('a sandbox that floods its agent with refused calls can be paused, resumed and used', async () => {
  const own = await api.create();
  const { id: p } = await ps.start(own.id, python(`
def work():
    while True: call("bpf", 5, 0, 0)
[threading.Thread(target=work, daemon=True).start() for _ in range(8)]
print("up", flush=True)
time.sleep(600)`));
  await until(async () => (await ps.get(own.id, p)).output_bytes > 0, { what: 'it is up' });
  for (let i = 0; i < 5; i++) {
    await api.life(own.id, 'pause');
    await api.life(own.id, 'resume');
    assert.equal((await api.exec(own.id, 'echo works')).stdout, 'works\n');
  }
  await ps.kill(own.id, p);
  const record = await ps.wait(own.id, p);
  assert.equal(record.termination.denied[0].syscall, 'bpf');
  await api.purge(own.id);
});

test('what was refused before a crash of the daemon is told after it', async () => {
  const { id: p } = await ps.start(id, { ...python('[call("bpf", 5, 0, 0) for _ in range(5)]; print("done", flush=True); sys.stdin.read(); sys.exit(call("mount", 0, 0, 0, 0, 0))'), stdin_open: true });
  const { id: ended } = await ps.start(id, python('sys.exit(call("keyctl", 0, -3, 0))'));
  await ps.wait(id, ended);
  await until(async () => (await ps.get(id, p)).output_bytes > 0, { what: 'it has called' });
  await instance.crash();
  await instance.start();
  assert.deepEqual((await ps.get(id, ended)).termination.denied, [{ syscall: 'keyctl', count: 1 }]);
  await ps.closeStdin(id, p);
  const record = await ps.wait(id, p);
  assert.deepEqual(record.termination.denied, [{ syscall: 'bpf', count: 5 }, { syscall: 'mount', count: 1 }]);
});

test('exec, wait and logs say it in one line when the command failed, and not when it succeeded', async () => {
  const failing = ['--', 'python3', '-c', `${NUMBERS}\n[call("mount", 0, 0, 0, 0, 0) for _ in range(3)]\nsys.exit(5)`];
  const fine = ['--', 'python3', '-c', `${NUMBERS}\ncall("io_uring_setup", 8, 0)`];
  const line = 'sandlot: the profile `default` refused mount(2) 3 times\n';
  assert.deepEqual(await pick(['exec', id, ...failing]), { code: 5, stdout: '', stderr: line });
  assert.deepEqual(await pick(['exec', '-i', id, ...failing], ''), { code: 5, stdout: '', stderr: line });
  assert.deepEqual(await pick(['exec', id, ...fine]), { code: 0, stdout: '', stderr: '' });
  const bad = (await sandlot(['exec', '-d', id, ...failing])).stdout.trim();
  const good = (await sandlot(['exec', '-d', id, ...fine])).stdout.trim();
  assert.deepEqual(await pick(['wait', id, bad]), { code: 5, stdout: '', stderr: line });
  assert.deepEqual(await pick(['wait', id, good]), { code: 0, stdout: '', stderr: '' });
  assert.deepEqual(await pick(['logs', id, bad]), { code: 0, stdout: '', stderr: line });
  assert.deepEqual(await pick(['logs', '-f', id, good]), { code: 0, stdout: '', stderr: '' });
});

test('the profile that is named is that of the template', async () => {
  const { id: browser } = await api.create({ template: 'browser' });
  const { exit_code: code, termination } = await api.exec(browser, python('call("unshare", 0x10000000); sys.exit(call("unshare", 0x20000))'));
  assert.equal(code, 1);
  assert.deepEqual(termination.denied, [{ syscall: 'unshare', count: 1 }], 'a user namespace is open to it, a mount namespace is not');
  assert.equal(termination.profile, 'browser');
  assert.equal(termination.detail, 'the profile `browser` refused unshare(2) once');
  await api.purge(browser);
});

async function pick(args, input) {
  const { code, stdout, stderr } = await sandlot(args, { input });
  return { code, stdout, stderr };
}

finish();
