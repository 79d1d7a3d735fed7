// SPDX-License-Identifier: Apache-2.0
// What a program sees and may do inside a sandbox of the host template.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { quoted } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('inside');
const { id } = await api.create({ env: { FROM_SANDBOX: 'yes' } });
const out = async (command, user = 'sandbox') => (await api.out(id, { command, user })).trim();
const python = (code, user = 'sandbox', sandbox = id) => api.exec(sandbox, { argv: ['python3', '-c', code], user });
const attempt = (command, user = 'sandbox') => api.exec(id, { command, user });

/** The command must fail, for the user and for root inside alike. */
async function refused(command) {
  for (const user of ['sandbox', 'root']) {
    const result = await attempt(command, user);
    assert.notEqual(result.exit_code, 0, `as ${user}: ${command}: ${JSON.stringify(result)}`);
    assert.notEqual(result.exit_code, 127, `not proven, the program is missing: ${command}: ${result.stderr}`);
  }
}

// A canary on the host that nobody inside may see.
const canary = path.join(instance.home, 'canary');
fs.writeFileSync(canary, 'host-canary-content\n', { mode: 0o666 });

test('the default user is sandbox with uid and gid 1000', async () => {
  assert.equal(await out('whoami; id -u; id -g; id -un; id -gn'), 'sandbox\n1000\n1000\nsandbox\nsandbox');
  assert.equal(await out('id -G'), '1000', 'no other groups');
});

test('root inside is uid 0 with HOME=/root', async () => {
  assert.equal(await out('whoami; id -u; id -g; echo $HOME', 'root'), 'root\n0\n0\n/root');
});

test('home is /home/sandbox, writable and its own', async () => {
  assert.equal(await out('echo $HOME; echo x > ~/probe && cat ~/probe; stat -c %U:%G ~'), '/home/sandbox\nx\nsandbox:sandbox');
});

test('the working directory is /workspace', async () => {
  assert.equal(await out('pwd'), '/workspace');
  assert.equal(await out('pwd', 'root'), '/workspace');
});

test('the environment is small and made for the sandbox', async () => {
  const env = Object.fromEntries((await api.out(id, { argv: ['env', '-0'] })).split('\0').filter(Boolean).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
  assert.equal(env.HOME, '/home/sandbox');
  assert.equal(env.USER ?? 'sandbox', 'sandbox');
  assert.equal(env.FROM_SANDBOX, 'yes');
  assert.match(env.PATH, /(^|:)\/usr\/bin(:|$)/);
  for (const name of Object.keys(env)) assert.ok(!name.startsWith('SANDLOT_E2E'), `${name} leaked from the daemon`);
  assert.ok(!JSON.stringify(env).includes(instance.dataDir));
});

test('the workspace has its three directories, and the user may write in two of them', async () => {
  assert.equal(await out('ls -1 /workspace | sort'), 'agent_workspace\noutputs\nproject_files');
  assert.equal(await out('for d in agent_workspace outputs; do echo x > /workspace/$d/probe && cat /workspace/$d/probe && stat -c %U /workspace/$d/probe; done'), 'x\nsandbox\nx\nsandbox');
});

test('project_files is read-only, for root inside too', async () => {
  await refused('echo x > /workspace/project_files/probe');
  await refused('mkdir /workspace/project_files/probe');
  await refused('chmod 777 /workspace/project_files');
  assert.deepEqual(fs.readdirSync(path.join(instance.workspace(id), 'project_files')), []);
});

test('the hostname is not the one of the host and is in /etc/hosts', async () => {
  const name = await out('hostname');
  assert.notEqual(name, fs.readFileSync('/proc/sys/kernel/hostname', 'utf8').trim());
  assert.match(await out('cat /etc/hosts'), /127\.0\.0\.1\s.*localhost/);
  assert.match(await out('getent hosts "$(hostname)"'), /^(127\.|::1)/, 'the own name resolves');
});

test('only processes of the sandbox are visible and PID 1 is the agent', async () => {
  const lines = await api.processes(id);
  assert.ok(lines.length >= 1 && lines.length < 8, lines.join('\n'));
  assert.match(await out('cat /proc/1/comm'), /sandlot-a|init/);
  const pid = Number(await out('echo $$'));
  assert.ok(pid > 1 && pid < 1000, `pid ${pid}`);
  assert.equal((await attempt(`kill -0 ${instance.daemon.pid}`)).exit_code !== 0, true);
});

test('seven namespaces differ from those of the host and from those of another sandbox', async () => {
  const other = await api.create();
  const read = async (sandbox) => (await api.out(sandbox, 'for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done')).trim().split('\n');
  const [mine, theirs] = [await read(id), await read(other.id)];
  const host = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'].map((kind) => proc.namespace('self', kind));
  assert.equal(mine.length, 7);
  for (let i = 0; i < 7; i++) {
    assert.notEqual(mine[i], host[i]);
    assert.notEqual(mine[i], theirs[i]);
    assert.notEqual(theirs[i], host[i]);
  }
  await api.purge(other.id);
});

test('a later exec and a file call are in the same namespaces as the first', async () => {
  const command = 'for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done';
  assert.equal(await out(command), await out(command, 'root'));
});

test('the uid range is private: host root is not mapped and two sandboxes differ', async () => {
  const other = await api.create();
  const parse = (text) => text.trim().split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  const init = await instance.initOf(id);
  const otherInit = await instance.initOf(other.id);
  // As the host sees them: inside, a map names ids of whatever namespace is around it.
  for (const file of ['uid_map', 'gid_map']) {
    const mine = parse(fs.readFileSync(`/proc/${init.pid}/${file}`, 'utf8'));
    const theirs = parse(fs.readFileSync(`/proc/${otherInit.pid}/${file}`, 'utf8'));
    for (const [inside, outside, length] of [...mine, ...theirs]) {
      assert.ok(outside >= 100_000, `${file}: ${inside} ${outside} ${length}`);
      assert.ok(length <= 65536);
    }
    const covers = ([, a, n], [, b, m]) => a < b + m && b < a + n;
    assert.ok(!mine.some((one) => theirs.some((two) => covers(one, two))), `${file}: the ranges overlap`);
  }
  const owner = Number(proc.statusField(init.pid, 'Uid').split(/\s+/)[0]);
  assert.notEqual(owner, 0, 'PID 1 is not host root');
  await api.purge(other.id);
});

test('files made inside belong to the private range on the host', async () => {
  await out('echo x > /workspace/outputs/owned');
  await out('echo x > /workspace/outputs/owned-by-root', 'root');
  const base = Number(fs.readFileSync(`/proc/${(await instance.initOf(id)).pid}/uid_map`, 'utf8').split(/\s+/).filter(Boolean)[1]);
  const dir = path.join(instance.workspace(id), 'outputs');
  assert.equal(fs.statSync(path.join(dir, 'owned')).uid, base + 1000);
  assert.equal(fs.statSync(path.join(dir, 'owned-by-root')).uid, base);
});

test('only the loopback interface exists, and it is up', async () => {
  assert.deepEqual((await out('ls /sys/class/net 2>/dev/null || tail -n +3 /proc/net/dev | cut -d: -f1')).split(/\s+/), ['lo']);
  assert.equal(await out('tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "'), 'lo');
  const result = await python(`
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hi"), daemon=True).start()
print(socket.create_connection(server.getsockname()).recv(2).decode())`);
  assert.equal(result.stdout, 'hi\n', result.stderr);
});

test('the daemon on the host cannot be reached from inside', async () => {
  for (const address of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1']) {
    const result = await python(`
import socket
try:
    s = socket.create_connection((${JSON.stringify(address)}, ${api.port}), 5)
    s.sendall(b"GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
    print("heard", s.recv(100))
except OSError: print("refused")`);
    assert.equal(result.stdout, 'refused\n', `${address}: ${result.stderr}`);
  }
});

test('files of the host are not there', async () => {
  for (const hidden of [canary, instance.dataDir, process.cwd(), '/root/.bashrc', '/etc/shadow-', '/etc/ssh', '/boot/grub', '/var/lib/dpkg/status', '/var/log/dpkg.log']) {
    assert.equal((await attempt(`test -e ${quoted(hidden)}`, 'root')).exit_code, 1, `${hidden} is visible`);
  }
  const top = (await out('ls -1 /', 'root')).split('\n');
  for (const name of ['work', 'boot', 'lost+found', 'mnt/sandboxing']) assert.ok(!top.includes(name), top.join());
  assert.equal(await out('ls -A /root', 'root'), '');
  assert.equal(await out('ls -A /home', 'root'), 'sandbox');
  assert.equal(await out(`grep -rsl host-canary-content /tmp /var /run /home /root /mnt /srv /opt 2>/dev/null; true`, 'root'), '');
});

test('/etc holds no secret of the host', async () => {
  const shadow = fs.readFileSync('/etc/shadow', 'utf8');
  const inside = await attempt('cat /etc/shadow', 'root');
  assert.notEqual(inside.stdout, shadow);
  for (const line of shadow.split('\n').filter((entry) => /^[^:]+:\$/.test(entry))) assert.ok(!inside.stdout.includes(line.split(':')[1]));
  const passwd = await out('cat /etc/passwd');
  assert.match(passwd, /^root:[^:]*:0:0:[^:]*:\/root:/m);
  assert.match(passwd, /^sandbox:[^:]*:1000:1000:[^:]*:\/home\/sandbox:/m);
  assert.match(await out('cat /etc/group'), /^sandbox:[^:]*:1000:/m);
  assert.equal((await attempt('test -e /etc/machine-id && cmp -s /etc/machine-id /dev/null || true', 'root')).exit_code, 0);
  const machine = proc.quiet(() => fs.readFileSync('/etc/machine-id', 'utf8').trim(), '');
  if (machine) assert.ok(!(await attempt('cat /etc/machine-id', 'root')).stdout.includes(machine), 'the machine id of the host');
});

test('the system is read from the host but can be changed only in the own layer', async () => {
  await attempt('rm -f /usr/bin/xxd; echo mine > /usr/bin/e2e-probe; echo mine > /usr/local/e2e-probe; echo mine > /etc/e2e-probe; echo mine > /opt/e2e-probe', 'root');
  assert.equal(await out('cat /etc/e2e-probe /opt/e2e-probe'), 'mine\nmine');
  for (const file of ['/usr/local/e2e-probe', '/usr/bin/e2e-probe', '/etc/e2e-probe', '/opt/e2e-probe']) assert.equal(fs.existsSync(file), false, `${file} on the host`);
  assert.equal(fs.existsSync('/usr/bin/xxd'), true, 'the host still has it');
  const other = await api.create();
  assert.equal(await api.out(other.id, 'test -e /usr/bin/xxd && ! test -e /usr/local/e2e-probe && ! test -e /etc/e2e-probe && echo untouched'), 'untouched\n');
  await api.purge(other.id);
});

test('the user cannot write to the system', async () => {
  for (const target of ['/usr/bin/x', '/etc/x', '/bin/x', '/x', '/root/x', '/usr/local/x', '/var/x']) {
    assert.notEqual((await attempt(`echo x > ${target}`)).exit_code, 0, target);
  }
});

test('python3, node, git, perl and a shell run', async () => {
  assert.equal(await out('python3 -c "print(6*7)"'), '42');
  assert.equal(await out('node -e "console.log(6*7)"'), '42');
  assert.equal(await out('cd /tmp && git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l'), '1');
  assert.equal(await out('bash -c "echo \\$BASH_VERSION | wc -l"'), '1');
  assert.equal(await out(`python3 - <<'END'
import subprocess, tempfile, sqlite3, ssl, threading, multiprocessing
c = sqlite3.connect("/tmp/x.db"); c.execute("create table if not exists t(a)"); c.commit()
with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))
END`), '[1, 2]');
});

test('/tmp and /dev/shm are writable and private', async () => {
  const other = await api.create();
  for (const dir of ['/tmp', '/dev/shm', '/var/tmp']) {
    await out(`echo mine > ${dir}/private`);
    assert.equal((await api.exec(other.id, `test -e ${dir}/private`)).exit_code, 1, dir);
    assert.equal(fs.existsSync(`${dir}/private`), false, `${dir} of the host`);
  }
  assert.equal(await out('stat -c %a /tmp'), '1777');
  await api.purge(other.id);
});

test('devices are the harmless ones and work', async () => {
  assert.equal(await out('echo x > /dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; head -c 4 /dev/random | wc -c'), '4\n4\n4');
  assert.notEqual((await attempt('echo x > /dev/full')).exit_code, 0);
  const names = (await out('ls -1 /dev', 'root')).split('\n');
  const known = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'pts', 'shm', 'fd', 'stdin', 'stdout', 'stderr', 'mqueue', 'core', 'console'];
  assert.deepEqual(names.filter((name) => !known.includes(name)), []);
  assert.equal(await out('python3 -c "import os; m, s = os.openpty(); print(os.isatty(s))"'), 'True', 'a terminal can be opened');
});

test('mount, umount, unshare, mknod, chroot out, sethostname and settimeofday are refused', async () => {
  await refused('mount -t tmpfs none /mnt');
  await refused('mount --bind / /mnt');
  await refused('mount -o remount,rw /proc/sys');
  await refused('mount -o remount,rw /workspace/project_files');
  await refused('umount /proc');
  await refused('umount /workspace/project_files');
  await refused('mount -t proc proc /mnt');
  await refused('unshare -U true');
  await refused('unshare -m true');
  await refused('unshare -n true');
  await refused('unshare -Ur true');
  await refused('mknod /tmp/dev b 7 0');
  await refused('mknod /tmp/null c 1 3');
  await refused('hostname evil');
  await refused('date -s @0');
  await refused('dmesg');
  await refused('swapon /dev/zero');
  await refused('nsenter -t 1 -m true');
});

test('dangerous system calls are refused with EPERM or ENOSYS', async () => {
  const numbers = { bpf: 321, perf_event_open: 298, io_uring_setup: 425, userfaultfd: 323, keyctl: 250, add_key: 248, kexec_load: 246, init_module: 175, finit_module: 313, open_by_handle_at: 304, mount: 165, move_mount: 429, open_tree: 428, fsopen: 430, pivot_root: 155, setns: 308, reboot: 169, swapon: 167, iopl: 172, acct: 163, settimeofday: 164, quotactl: 179, fanotify_init: 300, pidfd_getfd: 438, process_madvise: 440 };
  for (const user of ['sandbox', 'root']) {
    const result = await python(`
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, number in ${JSON.stringify(numbers)}.items():
    ctypes.set_errno(0)
    value = libc.syscall(number, *[ctypes.c_long(0)] * 6)
    print(name, value, errno.errorcode.get(ctypes.get_errno(), "0"))`, user);
    assert.equal(result.exit_code, 0, result.stderr);
    const loose = result.stdout.trim().split('\n').filter((line) => !/ -1 (EPERM|ENOSYS)$/.test(line));
    assert.deepEqual(loose, [], `as ${user}`);
  }
});

test('new namespaces cannot be made with clone or clone3 either', async () => {
  const result = await python(`
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000):
    value = libc.syscall(56, ctypes.c_long(flag | 17), None, None, None, None)
    if value == 0: os._exit(0)
    print(value, errno.errorcode.get(ctypes.get_errno()))
    args = struct.pack("11Q", flag, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    value = libc.syscall(435, args, ctypes.c_long(len(args)))
    if value == 0: os._exit(0)
    print(value, errno.errorcode.get(ctypes.get_errno()))`, 'root');
  const lines = result.stdout.trim().split('\n');
  assert.equal(lines.length, 14, result.stdout + result.stderr);
  assert.deepEqual(lines.filter((line) => !/^-1 (EPERM|ENOSYS)$/.test(line)), []);
});

test('only unix, internet and route sockets exist, and no raw ones', async () => {
  const result = await python(`
import socket
for family in range(1, 46):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            socket.socket(family, kind, 0).close()
            print(family, kind)
        except OSError: pass`, 'root');
  const allowed = new Set(['1 1', '1 2', '1 3', '2 1', '2 2', '10 1', '10 2', '16 2', '16 3']); // raw on AF_UNIX is a datagram socket; netlink is route only
  assert.deepEqual(result.stdout.trim().split('\n').filter((line) => !allowed.has(line)), []);
});

test('kernel knobs are read-only and secrets of the kernel are masked', async () => {
  for (const file of ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger', '/proc/sys/net/ipv4/ip_forward', '/proc/irq/default_smp_affinity', '/sys/kernel/uevent_helper']) {
    const result = await attempt(`test -e ${file} || exit 3; echo 1 > ${file}`, 'root');
    assert.notEqual(result.exit_code, 0, file);
  }
  for (const file of ['/proc/kcore', '/proc/kallsyms', '/proc/keys', '/proc/slabinfo', '/proc/vmallocinfo', '/proc/iomem', '/proc/timer_list', '/proc/sched_debug', '/proc/kmsg']) {
    const result = await api.exec(id, { command: `head -c 100 ${file} | wc -c`, user: 'root', timeout_ms: 5000 });
    assert.ok(result.stdout.trim() === '0' || result.exit_code !== 0, `${file}: ${JSON.stringify(result)}`);
  }
  assert.equal(await out('ls -A /sys/firmware 2>/dev/null; ls -A /proc/scsi 2>/dev/null; ls -A /sys/kernel/debug 2>/dev/null; true', 'root'), '');
  assert.notEqual((await attempt('mkdir /sys/fs/cgroup/x', 'root')).exit_code, 0);
});

test('a masked file of /proc opens for reading alone, and the null device for writing too', async () => {
  const files = ['cmdline', 'interrupts', 'kallsyms', 'keys', 'modules', 'diskstats', 'zoneinfo', 'cgroups', 'vmstat'];
  for (const user of ['sandbox', 'root']) {
    const result = await python(`
import errno, os
for path in ['/proc/' + name for name in ${JSON.stringify(files)}] + ['/dev/null']:
    if not os.path.exists(path): continue
    os.close(os.open(path, os.O_RDONLY))
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        try:
            os.close(os.open(path, flags))
            print(path)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES): print(path, error)`, user);
    assert.equal(result.exit_code, 0, result.stderr);
    assert.equal(result.stdout, '/dev/null\n'.repeat(3), `as ${user}`);
  }
});

test('cpuinfo, meminfo and uptime are readable, as programs expect', async () => {
  for (const file of ['/proc/cpuinfo', '/proc/meminfo', '/proc/uptime', '/proc/stat', '/proc/loadavg', '/proc/self/status', '/proc/mounts']) {
    assert.ok(Number(await out(`cat ${file} | wc -c`)) > 0, file);
  }
});

test('every process has no_new_privs, a seccomp filter and, for the user, no capability', async () => {
  const status = await out('cat /proc/self/status');
  const field = (name) => new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(status)[1];
  assert.equal(field('NoNewPrivs'), '1');
  assert.equal(field('Seccomp'), '2');
  for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) assert.equal(field(name), '0000000000000000', name);
  const root = await out('cat /proc/self/status', 'root');
  assert.match(root, /^NoNewPrivs:\s*1$/m);
  assert.match(root, /^Seccomp:\s*2$/m);
  const caps = BigInt(`0x${/^CapBnd:\s*(\S+)/m.exec(root)[1]}`);
  const never = { DAC_READ_SEARCH: 2, NET_ADMIN: 12, NET_RAW: 13, SYS_MODULE: 16, SYS_RAWIO: 17, SYS_PTRACE: 19, SYS_ADMIN: 21, SYS_BOOT: 22, SYS_RESOURCE: 24, SYS_TIME: 25, MKNOD: 27, AUDIT_WRITE: 29, AUDIT_CONTROL: 30, MAC_ADMIN: 33, SYSLOG: 34, PERFMON: 38, BPF: 39 };
  for (const [name, bit] of Object.entries(never)) assert.equal((caps >> BigInt(bit)) & 1n, 0n, `CAP_${name} in the bounding set`);
  assert.match(root, /^CapAmb:\s*0+$/m);
  assert.match(root, /^CapInh:\s*0+$/m);
});

test('all processes on the host that belong to a sandbox are confined, also helpers of the agent', async () => {
  const streams = await Promise.all(Array.from({ length: 3 }, () => api.execStream(id, 'echo up; sleep 600')));
  for (const stream of streams) await stream.events().next();
  const init = await instance.initOf(id);
  for (const info of [init, ...proc.descendants([init.pid])]) {
    const label = `${info.pid} ${info.comm}`;
    assert.equal(proc.statusField(info.pid, 'NoNewPrivs'), '1', label);
    assert.equal(proc.statusField(info.pid, 'Seccomp'), '2', label);
    assert.notEqual(proc.statusField(info.pid, 'Uid').split(/\s+/)[0], '0', label);
  }
  for (const stream of streams) stream.close();
});

test('a setuid program gives nothing', async () => {
  await out('cp /usr/bin/id /opt/suid-id && chmod 4755 /opt/suid-id', 'root');
  assert.equal(await out('/opt/suid-id -u'), '1000');
});

test('PID 1 can be neither signalled, traced nor read', async () => {
  const init = await instance.initOf(id);
  for (const user of ['sandbox', 'root']) {
    await attempt('kill -9 1; kill -TERM 1; kill -STOP 1; kill -SEGV 1', user);
    assert.notEqual((await attempt('head -c 1 /proc/1/mem', user)).exit_code, 0);
    assert.notEqual((await attempt('cat /proc/1/environ | grep -q .', user)).exit_code, 0, 'its environment is closed or empty');
    const traced = await python('import ctypes; libc = ctypes.CDLL(None); print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0))', user);
    assert.equal(traced.stdout, '-1 -1\n');
    assert.notEqual((await attempt('ls /proc/1/fd/ >/dev/null && cat /proc/1/maps >/dev/null', user)).exit_code, 0);
  }
  assert.ok(proc.isAlive(init));
  assert.notEqual(proc.processInfo(init.pid).state, 'T');
  assert.equal(await out('echo fine'), 'fine');
});

test('a command inherits only its three descriptors', async () => {
  const result = await python('import os; print(sorted(int(f) for f in os.listdir("/proc/self/fd")))');
  assert.match(result.stdout, /^\[0, 1, 2(, 3)?\]\n$/, '3 is the directory being read');
  const shell = await out('ls -l /proc/self/fd | grep -v " 3 -> /proc" | tail -n +2');
  assert.ok(!shell.includes(instance.dataDir), shell);
});

test('own children can be traced and crash without a dump', async () => {
  const result = await python(`
import os, ctypes, signal
pid = os.fork()
if pid == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(7)
os.waitpid(pid, 0)
ctypes.CDLL(None).ptrace(17, pid, 0, 0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`);
  assert.equal(result.stdout, '7\n', result.stderr);
  const crashed = await attempt('cd /tmp && ulimit -c unlimited 2>/dev/null; (kill -SEGV $$) ; ls core* 2>/dev/null | wc -l');
  assert.ok(!/core/.test(crashed.stdout));
});

test('limits on open files exist and the soft one is usable', async () => {
  const [soft, hard] = (await out('ulimit -Sn; ulimit -Hn')).split('\n').map(Number);
  assert.ok(soft >= 1024 && hard >= soft && hard <= 1048576, `${soft} ${hard}`);
  assert.equal(await out('ulimit -Hc').then((text) => ['0', '1', '2'].includes(text)), true, 'core size: 0 or 1 byte (bash counts blocks)');
});

test('rewriting what can be rewritten inside changes no wall', async () => {
  const { id: own } = await api.create();
  await api.exec(own, { command: 'echo evil > /etc/ld.so.preload; echo "root::0:0::/:/bin/sh" > /etc/passwd; rm -rf /etc/nsswitch.conf; ln -sf /workspace /dev/null 2>/dev/null; rm -f /bin/sh 2>/dev/null; true', user: 'root' });
  const result = await api.exec(own, { argv: ['python3', '-c', 'print(open("/proc/self/status").read())'] });
  assert.match(result.stdout, /^NoNewPrivs:\s*1$/m);
  assert.match(result.stdout, /^Seccomp:\s*2$/m);
  assert.match(result.stdout, /^Uid:\s*1000\s/m);
  await api.life(own, 'stop');
  assert.match((await api.exec(own, { argv: ['cat', '/proc/self/status'] })).stdout, /^Seccomp:\s*2$/m);
  await api.purge(own);
});

test('replaced devices and links are made anew on start and nothing on the host is written', async () => {
  const { id: own } = await api.create();
  await api.exec(own, { command: 'rm -rf /etc/resolv.conf /etc/hosts /workspace/outputs /dev/null /dev/ptmx /proc /tmp 2>/dev/null; ln -s /proc/sys/kernel/core_pattern /etc/resolv.conf; ln -s /etc/passwd /etc/hosts; true', user: 'root' });
  await api.life(own, 'stop');
  await api.life(own, 'start');
  assert.equal(await api.out(own, 'echo x > /dev/null; test -c /dev/null && test -d /workspace/outputs && echo whole'), 'whole\n');
  await api.purge(own);
  await until(() => fs.readFileSync(canary, 'utf8') === 'host-canary-content\n');
});

finish();
