// SPDX-License-Identifier: Apache-2.0
// What a program sees of its machine is what it has: processors, memory and processes of its sandbox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';

import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const MI = 1024 * 1024;
const HOST_CPUS = os.availableParallelism();
const { instance, api, finish } = await suite('machine');
const small = (await api.create({ resources: { cpu: 0.5, memory: '64Mi', pids: 60 } })).id;
const middle = (await api.create({ resources: { cpu: 1, memory: '256Mi', pids: 100 } })).id;
const large = (await api.create({ resources: { cpu: 2, memory: '512Mi' } })).id;
const machines = [[small, 1, 64 * MI], [middle, 1, 256 * MI], [large, Math.min(2, HOST_CPUS), 512 * MI]];
const out = async (id, command, user = 'sandbox') => (await api.out(id, { command, user })).trim();

/** /proc/meminfo as bytes by name. */
function parseMeminfo(text) {
  return Object.fromEntries([...text.matchAll(/^(\S+): +(\d+) kB$/gm)].map(([, name, kb]) => [name, Number(kb) * 1024]));
}
const meminfo = async (id) => parseMeminfo(await out(id, 'cat /proc/meminfo'));

/** The lines of /proc/stat as numbers by label. */
function parseStat(text) {
  return Object.fromEntries(text.split('\n').map((line) => line.split(/\s+/)).map(([name, ...values]) => [name, values.map(Number)]));
}

/** Where the sandbox has its group of a controller, and the file there that is named for v1 or v2. */
async function limitOf(id, controller, v1, v2) {
  const base = '/sys/fs/cgroup';
  return out(id, `cat ${base}/${controller}/${v1} 2>/dev/null || cat ${base}/unified/${v2} 2>/dev/null || cat ${base}/${v2}`);
}

test('nproc, python and node count as many processors as the limit needs', async () => {
  for (const [id, cpus] of machines) {
    assert.equal(await out(id, 'nproc'), String(cpus));
    assert.equal(await out(id, 'python3 -c "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"'), `${cpus} ${cpus}`);
    assert.equal(await out(id, 'node -p "const os = require(\'os\'); [os.cpus().length, os.availableParallelism()].join()"'), `${cpus},${cpus}`);
    assert.equal(await out(id, 'getconf _NPROCESSORS_ONLN'), String(cpus));
  }
});

test('/proc/cpuinfo, /proc/stat and /sys agree with that', async () => {
  for (const [id, cpus] of machines) {
    assert.equal(await out(id, 'grep -c ^processor /proc/cpuinfo'), String(cpus));
    assert.equal(await out(id, 'grep -cE "^cpu[0-9]+ " /proc/stat'), String(cpus));
    assert.equal(await out(id, 'cat /sys/devices/system/cpu/online'), cpus > 1 ? `0-${cpus - 1}` : '0');
    assert.equal(await out(id, 'cat /sys/devices/system/cpu/present'), cpus > 1 ? `0-${cpus - 1}` : '0');
    assert.match(await out(id, 'lscpu'), new RegExp(`^CPU\\(s\\): +${cpus}$`, 'm'));
  }
});

test('a number of a processor on which it may run is a possible one', async () => {
  const possible = fs.readFileSync('/sys/devices/system/cpu/possible', 'utf8').trim();
  for (const [id] of machines) assert.equal(await out(id, 'cat /sys/devices/system/cpu/possible'), possible);
});

test('sandboxes of one processor are spread over the processors of the host', async () => {
  const ids = await Promise.all(Array.from({ length: HOST_CPUS * 3 }, async () => (await api.create({ resources: { cpu: 1 } })).id));
  const bound = await Promise.all(ids.map((id) => out(id, 'taskset -pc $$ | sed "s/.*: //"')));
  const counts = new Map();
  for (const list of bound) counts.set(list, (counts.get(list) ?? 0) + 1);
  assert.equal([...counts.values()].reduce((sum, n) => sum + n), ids.length);
  // Those above are bound as well, so the even share may be off by what they have.
  if (HOST_CPUS > 1) assert.ok(counts.size === HOST_CPUS && Math.max(...counts.values()) <= 3 + 2, JSON.stringify([...counts]));
  await Promise.all(ids.map((id) => api.purge(id)));
});

test('/proc/meminfo, free, top, python and node tell the memory of the sandbox', async () => {
  for (const [id, , bytes] of machines) {
    const memory = await meminfo(id);
    assert.equal(memory.MemTotal, bytes);
    assert.ok(memory.MemFree > 0 && memory.MemFree < bytes, JSON.stringify(memory));
    assert.ok(memory.MemAvailable >= memory.MemFree && memory.MemAvailable <= bytes, JSON.stringify(memory));
    assert.equal(memory.SwapTotal, 0);
    const [, total, used, free] = /^Mem: +(\d+) +(\d+) +(\d+)/m.exec(await out(id, 'free -b')).map(Number);
    assert.equal(total, bytes);
    assert.ok(used > 0 && used + free <= bytes, `${used} ${free}`);
    assert.match(await out(id, 'top -b -n1'), new RegExp(`^MiB Mem : +${bytes / MI}\\.0 total`, 'm'));
    assert.equal(await out(id, 'python3 -c "print(int(open(\'/proc/meminfo\').readline().split()[1]) * 1024)"'), String(bytes));
  }
  assert.equal(await out(middle, 'node -p "require(\'os\').totalmem()"'), String(256 * MI));
  assert.equal(await out(middle, 'node -p "process.constrainedMemory()"'), String(256 * MI));
});

test('control groups tell the limits, where programs look for them', async () => {
  for (const [id, cpu, bytes, pids] of [[small, 0.5, 64 * MI, 60], [middle, 1, 256 * MI, 100]]) {
    assert.equal(await limitOf(id, 'memory', 'memory.limit_in_bytes', 'memory.max'), String(bytes));
    assert.equal(await limitOf(id, 'pids', 'pids.max', 'pids.max'), String(pids));
    const quota = await limitOf(id, 'cpu', 'cpu.cfs_quota_us', 'cpu.max');
    assert.equal(Number(quota.split(' ')[0]), cpu * 100_000, quota);
    assert.ok(Number(await limitOf(id, 'pids', 'pids.current', 'pids.current')) >= 2);
    assert.ok(Number(await limitOf(id, 'memory', 'memory.usage_in_bytes', 'memory.current')) > 0);
  }
});

test('every group that /proc/self/cgroup names lies below a mount that shows it', async () => {
  const names = await out(middle, 'cat /proc/self/cgroup');
  const mounts = (await out(middle, 'grep " - cgroup" /proc/self/mountinfo')).split('\n').map((line) => line.split(' - '))
    .map(([head, tail]) => ({ root: head.split(' ')[3], point: head.split(' ')[4], options: head.split(' ')[5], type: tail.split(' ')[0], controllers: tail.split(' ')[2] }));
  assert.ok(mounts.length >= 1);
  for (const mount of mounts) {
    assert.equal(mount.root, '/', 'it begins at the root of its own namespace');
    for (const option of ['ro', 'nosuid', 'nodev', 'noexec']) assert.ok(mount.options.split(',').includes(option), `${mount.point}: ${mount.options}`);
    const line = names.split('\n').map((text) => text.split(':')).find(([, controllers]) => (mount.type === 'cgroup2' ? controllers === '' : controllers && mount.controllers.split(',').includes(controllers.split(',')[0])));
    assert.ok(line, `${mount.point} in ${names}`);
    assert.equal((await api.exec(middle, `cat ${mount.point}${line[2]}/cgroup.procs ${mount.point}${line[2]}/cgroup.threads 2>/dev/null | grep -qw $$`)).exit_code, 0, `the shell is in ${mount.point}${line[2]}`);
  }
});

test('no file of a control group can be written, nor a group made, moved or removed, also as root', async () => {
  const files = (await out(middle, 'find /sys/fs/cgroup -type f')).split('\n');
  assert.ok(files.length > 20, `not proven: ${files.length} files`);
  assert.deepEqual(files.filter((file) => file.endsWith('/release_agent')), []);
  for (const user of ['sandbox', 'root']) {
    const tried = `import os
for at, dirs, files in os.walk("/sys/fs/cgroup"):
    for name in files:
        for flags in (os.O_WRONLY, os.O_RDWR):
            try: print("open", at, name, os.open(at + "/" + name, flags))
            except OSError: pass
        try: print("chmod", at, name, os.chmod(at + "/" + name, 0o666))
        except OSError: pass
    for what in (lambda: os.mkdir(at + "/x"), lambda: os.chmod(at, 0o777), lambda: os.chown(at, 0, 0), lambda: os.rename(at, at + "2"), lambda: os.rmdir(at)):
        try: print("directory", at, what())
        except OSError: pass`;
    assert.equal((await api.out(middle, { argv: ['python3', '-c', tried], user })), '', `as ${user}`);
  }
  assert.equal(await limitOf(middle, 'memory', 'memory.limit_in_bytes', 'memory.max'), String(256 * MI));
});

test('nothing of another sandbox is visible in the control groups or in /sys', async () => {
  for (const id of [small, middle]) {
    const tree = await out(id, 'find /sys; grep " - cgroup" /proc/self/mountinfo; cat /proc/self/cgroup', 'root');
    for (const other of [small, middle, large]) assert.ok(!tree.includes(other), `${id} sees ${other}`);
    assert.ok(!tree.includes('/..'), 'no mount begins above its group');
  }
  const processes = Number(await out(small, 'cat /sys/fs/cgroup/pids/cgroup.procs /sys/fs/cgroup/cgroup.procs 2>/dev/null | wc -l'));
  assert.ok(processes >= 2 && processes < 10, `its own processes only: ${processes}`);
});

test('the files are read-only, as is all of /sys', async () => {
  for (const user of ['sandbox', 'root']) {
    for (const file of ['/proc/meminfo', '/proc/stat', '/proc/cpuinfo', '/sys/devices/system/cpu/online']) {
      for (const command of [`echo x >> ${file}`, `chmod 666 ${file}`, `rm -f ${file}`, `mv ${file} /tmp/`, `truncate -s 0 ${file}`]) {
        const result = await api.exec(middle, { command, user });
        assert.notEqual(result.exit_code, 0, `as ${user}: ${command}`);
      }
    }
    assert.notEqual((await api.exec(middle, { command: 'mkdir /sys/x || umount /sys || umount /proc/meminfo', user })).exit_code, 0);
  }
  assert.equal((await meminfo(middle)).MemTotal, 256 * MI);
});

test('memory that a process allocates is used at the next look', async () => {
  const before = await meminfo(small);
  const stream = await api.execStream(small, { argv: ['python3', '-u', '-c', 'held = b"x" * (30 << 20); print("up"); import time; time.sleep(600)'] });
  const events = stream.events();
  while ((await events.next()).value.event !== 'stdout');
  const during = await meminfo(small);
  const taken = before.MemFree - during.MemFree;
  assert.ok(taken >= 30 * MI && taken < 50 * MI, `${taken}`);
  assert.ok(during.AnonPages - before.AnonPages >= 29 * MI, JSON.stringify(during));
  stream.close();
  await until(async () => (await meminfo(small)).MemFree - during.MemFree >= 29 * MI, { what: 'it is free again' });
});

test('a program that keeps the files open sees them change', async () => {
  const result = await api.exec(middle, {
    argv: ['python3', '-c', `
import os, time
memory, stat = os.open("/proc/meminfo", os.O_RDONLY), os.open("/proc/stat", os.O_RDONLY)
def free(): return int(os.pread(memory, 65536, 0).split()[4])
def busy(): return sum(int(os.pread(stat, 65536, 0).split()[i]) for i in (1, 3))
free_then, busy_then = free(), busy()
held = b"x" * (40 << 20)
deadline = time.monotonic() + 60
while (free_then - free() < 39 << 10 or busy() - busy_then < 20) and time.monotonic() < deadline: pass
print((free_then - free()) >> 10, busy() - busy_then)`],
    timeout_ms: 120_000,
  });
  const [mib, ticks] = result.stdout.split(' ').map(Number);
  assert.ok(mib >= 39 && mib < 60, result.stdout + result.stderr);
  assert.ok(ticks >= 20 && ticks < 2000, result.stdout);
});

test('many readers at once all read whole files', async () => {
  const result = await api.exec(large, {
    argv: ['python3', '-c', `
import os, re
def look():
    for i in range(200):
        memory, stat = open("/proc/meminfo").read(), open("/proc/stat").read()
        assert memory.startswith("MemTotal:         524288 kB\\n") and memory.endswith(" kB\\n"), memory
        assert all(re.fullmatch(r"[A-Za-z_()]+: +\\d+ kB", line) for line in memory.splitlines()), memory
        assert stat.startswith("cpu  ") and re.search(r"\\nsoftirq( 0)+\\n$", stat), stat
children = []
for i in range(8):
    pid = os.fork()
    if pid == 0:
        try: look()
        except BaseException as error: print(error); os._exit(1)
        os._exit(0)
    children.append(pid)
print(sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))`],
    timeout_ms: 60_000,
  });
  assert.equal(result.stdout, '0\n', result.stderr);
});

test('/proc/stat counts the time of the sandbox, and boot is the host\'s', async () => {
  const then = parseStat(await out(middle, 'cat /proc/stat'));
  await out(middle, 'python3 -c "import time\nwhile time.process_time() < 0.5: pass"');
  const now = parseStat(await out(middle, 'cat /proc/stat'));
  const busy = (stat) => stat.cpu[0] + stat.cpu[2];
  assert.ok(busy(now) - busy(then) >= 49 && busy(now) - busy(then) < 500, `${busy(then)} ${busy(now)}`);
  assert.ok(now.cpu[3] >= then.cpu[3]);
  assert.ok(now.processes[0] > then.processes[0]);
  const host = Number(/^btime (\d+)$/m.exec(fs.readFileSync('/proc/stat', 'utf8'))[1]);
  assert.ok(Math.abs(now.btime[0] - host) <= 1);
});

test('top and ps show sane values', async () => {
  const top = await out(middle, 'top -b -n1');
  const [, us, sy, id] = /^%Cpu\(s\): *([\d.]+) us, *([\d.]+) sy, *[\d.]+ ni, *([\d.]+) id/m.exec(top).map(Number);
  assert.ok(us + sy + id > 95 && us + sy + id <= 100.2, top);
  assert.match(top, /^Tasks: +\d total/m);
  const started = await out(middle, 'date -d "$(ps -o lstart= -p $$)" +%s; date +%s');
  const [start, now] = started.split('\n').map(Number);
  assert.ok(now - start >= -3 && now - start < 60, started);
});

test('the view is the same after stop and start, pause and resume, and a crash of the daemon', async () => {
  const { id } = await api.create({ resources: { cpu: 1, memory: '128Mi' } });
  const check = async (when) => {
    assert.equal((await meminfo(id)).MemTotal, 128 * MI, when);
    assert.equal(await out(id, 'nproc'), '1', when);
  };
  await check('new');
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await check('started again');
  await api.life(id, 'pause');
  await api.life(id, 'resume');
  await check('resumed');
  await instance.crash();
  await instance.start();
  await check('with the next daemon');
  await api.purge(id);
});

test('an idle sandbox is not woken, also when it keeps the files open', async () => {
  const { id } = await api.create();
  await out(id, 'cat /proc/meminfo /proc/stat');
  const stream = await api.execStream(id, { argv: ['python3', '-u', '-c', 'held = open("/proc/stat"); held.read(); print("up"); import time; time.sleep(600)'] });
  const events = stream.events();
  while ((await events.next()).value.event !== 'stdout');
  const init = await instance.initOf(id);
  const wakes = () => Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/${init.pid}/status`, 'utf8'))[1]);
  let last = -1;
  let since = Date.now();
  await until(() => {
    const now = wakes();
    if (now !== last) since = Date.now();
    last = now;
    return Date.now() - since > 2000;
  }, { every: 100, what: 'the agent sleeps' });
  stream.close();
  await api.purge(id);
});

finish();
