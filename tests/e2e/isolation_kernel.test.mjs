// SPDX-License-Identifier: Apache-2.0
// Attacks on the kernel and on namespaces, from inside, as root of the sandbox and as its user.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { Attacks, CLOSED, USERS } from './lib/attacks.mjs';
import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('isolation-kernel', { args: ['--templates', 'host,browser'] });
const attacks = new Attacks(instance);
const { id } = await api.create();
const { id: browser } = await api.create({ template: 'browser' });
const out = async (command, user = 'sandbox', sandbox = id) => (await api.out(sandbox, { command, user })).trim();

const KINDS = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'];
const KEPT_CAPS = 'CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE SYS_CHROOT SETFCAP';
const CAP_BITS = { CHOWN: 0, DAC_OVERRIDE: 1, FOWNER: 3, FSETID: 4, KILL: 5, SETGID: 6, SETUID: 7, SETPCAP: 8, NET_BIND_SERVICE: 10, SYS_CHROOT: 18, SETFCAP: 31 };

test('K01 no namespace is the host\'s, no uid of the host is mapped, no process of the host is visible', async () => {
  const init = await instance.initOf(id);
  for (const file of ['uid_map', 'gid_map']) {
    // As the host sees them: inside, a map names ids of whatever namespace is around it.
    const map = fs.readFileSync(`/proc/${init.pid}/${file}`, 'utf8').trim().split('\n').map((line) => line.trim().split(/\s+/).map(Number));
    assert.ok(map[0][0] === 0 && map[0][2] > 1000, `${file}: ${map}`);
    for (const [, outside] of map) assert.ok(outside >= 100_000, `${file}: ${map}`);
  }
  for (const user of USERS) {
    const names = (await out(`for n in ${KINDS.join(' ')}; do readlink /proc/self/ns/$n; done`, user)).split('\n');
    KINDS.forEach((kind, i) => assert.notEqual(names[i], proc.namespace('self', kind), kind));
    assert.ok(Number(await out('ls -d /proc/[0-9]* | wc -l', user)) < 10);
  }
});

test('K02 root inside has eleven capabilities, and nothing gives more rights, priority or limits', async () => {
  const caps = BigInt(`0x${/^CapBnd:\s*(\S+)/m.exec(await out('cat /proc/self/status', 'root'))[1]}`);
  const wanted = KEPT_CAPS.split(' ').reduce((bits, name) => bits | (1n << BigInt(CAP_BITS[name])), 0n);
  assert.equal(caps, wanted);
  for (const user of USERS) {
    // Root owns its securebits; they give it no capability that it does not have.
    await attacks.allClosed(id, 'privileges', { user, least: 20, open: (what) => what === 'securebits' || what.includes('huge') || what === 'lock 64 MiB' });
    const status = await out('cat /proc/self/status', user);
    for (const set of ['CapInh', 'CapAmb']) assert.match(status, new RegExp(`^${set}:\\s*0+$`, 'm'));
  }
  await out('cp /usr/bin/id /opt/as-root && chmod 6755 /opt/as-root && setcap cap_setuid+ep /opt/as-root 2>/dev/null; true', 'root');
  assert.equal(await out('/opt/as-root -u; /opt/as-root -g'), '1000\n1000');
});

test('K03, K04 calls that no sandbox needs are closed, by the native ABI and by every other', async () => {
  for (const sandbox of [id, browser]) {
    for (const user of USERS) {
      const { lines } = await attacks.run(sandbox, 'syscalls', { user });
      assert.ok(lines.size > 100, `not proven: ${lines.size}`);
      const loose = [...lines].filter(([what, came]) => what !== 'other ABIs' && !/^(EPERM|ENOSYS)$/.test(came));
      assert.deepEqual(loose, [], `as ${user}`);
      assert.ok(['0', String(128 + 11)].includes(lines.get('other ABIs')), lines.get('other ABIs'));
    }
  }
});

test('K05 sockets are unix, TCP, UDP, ping and routing netlink', async () => {
  const known = new Set();
  for (const type of [1, 2, 3, 5]) for (const what of [`socket 1 ${type} 0`, `socket 1 ${type} 1`, `pair 1 ${type}`]) known.add(what);
  for (const what of ['2 1 0', '2 1 6', '2 2 0', '2 2 17', '2 2 1', '10 1 0', '10 1 6', '10 2 0', '10 2 17', '10 2 58', '16 2 0', '16 3 0']) known.add(`socket ${what}`);
  for (const sandbox of [id, browser]) {
    for (const user of USERS) {
      const { lines } = await attacks.run(sandbox, 'sockets', { user });
      assert.deepEqual([...lines].filter(([what, came]) => came === 'done' && !known.has(what)), []);
      for (const what of ['socket 1 1 0', 'socket 2 1 6', 'socket 10 2 17', 'socket 16 3 0']) assert.equal(lines.get(what), 'done', what);
      assert.equal(lines.get('vsock with a high bit'), 'EPERM');
      assert.equal(lines.get('raw with high bits'), 'EPERM');
    }
  }
});

test('K06 the default profile makes no namespace; the browser profile makes three kinds, and nothing follows from that', async () => {
  for (const user of USERS) {
    const none = await attacks.run(id, 'namespaces', { user });
    assert.equal(none.lines.get('user namespaces at a time'), '0');
    assert.deepEqual([...none.lines].filter(([what, came]) => what !== 'user namespaces at a time' && !CLOSED.test(came)), []);
    const { lines } = await attacks.run(browser, 'namespaces', { user });
    for (const what of ['unshare user', 'clone user', 'clone pid', 'clone net', 'nested', 'nested root']) assert.equal(lines.get(what), 'done', what);
    for (const kind of ['mount', 'ipc', 'uts', 'cgroup', 'time']) {
      for (const how of ['unshare', 'unshare user and', 'clone', 'clone3']) assert.match(lines.get(`${how} ${kind}`), CLOSED, `${how} ${kind}`);
    }
    const nested = [...lines].filter(([what]) => what.startsWith('nested '));
    assert.ok(nested.length > 20, `not proven: ${nested.length}`);
    assert.deepEqual(nested.filter(([what, came]) => what !== 'nested root' && !CLOSED.test(came)), [], `as ${user}`);
    const most = Number(lines.get('user namespaces at a time'));
    assert.ok(most > 0 && most <= 64, `${most} user namespaces`);
  }
});

test('K07 a crash starts no handler on the host, whatever the limit of cores was set to', async () => {
  const pattern = '/proc/sys/kernel/core_pattern';
  const before = fs.readFileSync(pattern, 'utf8');
  const caught = path.join(instance.home, 'caught');
  const handler = path.join(instance.home, 'handler');
  fs.writeFileSync(handler, `#!/bin/sh\necho "$1" >> ${caught}\ncat >/dev/null\n`, { mode: 0o755 });
  const restore = () => fs.writeFileSync(pattern, before);
  process.on('exit', restore);
  fs.writeFileSync(pattern, `|${handler} %e`);
  try {
    for (const user of USERS) {
      for (const limit of ['0', '1', 'max']) {
        const { lines, result } = await attacks.run(id, 'crash', { args: [limit], user });
        assert.equal(lines.get('soft'), '1');
        assert.equal(lines.get('hard'), '1');
        assert.equal(lines.get('prlimit64'), 'done', 'it looks as if it had been done');
        assert.notEqual(result.exit_code, 0, JSON.stringify(result));
      }
    }
    // The same program on the host is caught: so a crash inside would have been.
    fs.writeFileSync(path.join(instance.home, 'on-the-host'), attacks.build('crash'), { mode: 0o755 });
    const { spawnSync } = await import('node:child_process');
    spawnSync(path.join(instance.home, 'on-the-host'), ['0']);
    await until(() => fs.readFileSync(caught, 'utf8').includes('on-the-host'), { what: 'the handler works' });
  } finally {
    restore();
    process.off('exit', restore);
  }
  assert.ok(!fs.readFileSync(caught, 'utf8').includes('attack'), fs.readFileSync(caught, 'utf8'));
  assert.equal(await out('find / -xdev -name "core*" -newer /opt/attack-crash -type f 2>/dev/null | head -1', 'root'), '');
});

test('K08 strace, gdb and tracing of own children work', async () => {
  assert.match(await out('strace -f -e trace=execve true 2>&1'), /execve\("\/usr\/bin\/true"/);
  assert.match(await out('gdb -batch -ex "starti" -ex "info registers rip" -ex continue /usr/bin/true 2>&1'), /rip +0x[0-9a-f]+[^]*exited normally/);
  assert.match(await out('strace -p 1 2>&1 || true', 'root'), /attach: .*(Operation not permitted)/);
});

test('K09 every process has filter and no_new_privs: after exec, terminal, upload and restart', async () => {
  const confined = async (sandbox, when) => {
    const init = await instance.initOf(sandbox);
    for (const info of [init, ...proc.descendants([init.pid])]) {
      assert.equal(proc.statusField(info.pid, 'Seccomp'), '2', `${when}: ${info.comm}`);
      assert.equal(proc.statusField(info.pid, 'NoNewPrivs'), '1', `${when}: ${info.comm}`);
      assert.notEqual(proc.statusField(info.pid, 'Uid').split(/\s+/)[0], '0', `${when}: ${info.comm}`);
    }
  };
  const { id: own } = await api.create();
  const stream = await api.execStream(own, 'echo up; sleep 600');
  await stream.events().next();
  await confined(own, 'exec');
  await api.put(own, '/tmp/file', 'x');
  await confined(own, 'upload');
  assert.match(await out('script -qc "cat /proc/self/status" /dev/null', 'sandbox', own), /Seccomp:\s*2/, 'in a terminal');
  await instance.crash();
  await instance.start();
  await confined(own, 'a new daemon');
  await api.life(own, 'stop');
  await api.life(own, 'start');
  await confined(own, 'restart');
  stream.close();
  await api.purge(own);
});

test('K10 whatever is rewritten inside, the next command has the same walls', async () => {
  const { id: own } = await api.create();
  await api.exec(own, { command: 'rm -rf /etc/* /var/* /home/* /root/* /run/* /opt/* 2>/dev/null; echo "root::0:0::/:/bin/sh" > /etc/passwd; ln -s / /var/empty; ln -s /proc /opt/proc; true', user: 'root' });
  for (const when of ['at once', 'after a restart']) {
    const status = await api.out(own, { argv: ['/usr/bin/cat', '/proc/self/status'] });
    assert.match(status, /^Seccomp:\s*2$/m, when);
    assert.match(status, /^NoNewPrivs:\s*1$/m, when);
    assert.equal((await api.exec(own, { argv: ['/usr/bin/head', '-c1', '/proc/kallsyms'], user: 'root' })).stdout, '', when);
    assert.equal((await api.exec(own, { argv: ['/usr/bin/ls', '/proc/bus'], user: 'root' })).stdout, '', when);
    if (when === 'at once') {
      await api.life(own, 'stop');
      await api.life(own, 'start');
    }
  }
  await api.purge(own);
});

test('K11 a user is a name or a number in range, and nothing else becomes uid 0', async () => {
  for (const user of ['4294967296', '-1', '4294967295', '0x0', 'root\n', '', ' 0', '00', '0 ', '+0', '1e3', 'nobody-there', '../root', 4294967296, -1, 1.5]) {
    const answer = await api.tryExec(id, { command: 'id -u', user });
    assertError(answer, [400, 422]);
  }
});

test('K12 names of variables are checked, and LD_PRELOAD is the command\'s affair', async () => {
  for (const env of [{ 'A=B': 'x' }, { '': 'x' }, { 'A\nB': 'x' }, { 'A\u0000': 'x' }, { A: 'x\u0000y' }, { A: 'x'.repeat(1 << 20) }]) {
    const answer = await api.tryExec(id, { command: 'true', env });
    assert.ok([400, 413, 422].includes(answer.status), `${answer.status} ${JSON.stringify(env).slice(0, 60)}`);
  }
  assert.equal((await api.out(id, { command: 'echo $LD_PRELOAD', env: { LD_PRELOAD: '/nothing.so' } })).trim(), '/nothing.so');
  const init = await instance.initOf(id);
  assert.match(fs.readFileSync(`/proc/${init.pid}/environ`, 'utf8'), /^CPUS=[0-9,]*\0$/);
});

test('K13 a working directory is inside the root, or refused', async () => {
  await out('ln -sfn /proc/self/root /tmp/root-link; mkdir -p /tmp/gone', 'root');
  for (const cwd of ['/proc/self/fd/7', '/proc/1/cwd', '/proc/1/root', '/tmp/root-link/../..', '/nowhere', 'relative', '/etc/passwd', '/tmp\u0000x']) {
    const answer = await api.tryExec(id, { argv: ['/usr/bin/ls', '-1', '/'], cwd });
    if (answer.status === 200 && answer.json.exit_code === 0) assert.ok(!answer.json.stdout.includes('boot'), cwd);
    else assert.ok(answer.status !== 500, `${cwd}: ${answer.text}`);
  }
});

test('K14 what belongs to the machine stays as it is', async () => {
  const host = fs.readFileSync('/proc/sys/kernel/hostname', 'utf8');
  for (const user of USERS) {
    for (const command of ['date -s @0', 'hostname evil', 'sysctl -w kernel.core_pattern=x', 'dmesg', 'mount -t tmpfs none /mnt', 'swapon /dev/zero', 'insmod /dev/null', 'umount /proc', 'losetup -f', 'ip link add dummy0 type dummy', 'ip link set lo down', 'nft list ruleset', 'tc qdisc add dev lo root netem delay 1s']) {
      const result = await api.exec(id, { command, user });
      assert.notEqual(result.exit_code, 0, `as ${user}: ${command}`);
    }
  }
  assert.equal(fs.readFileSync('/proc/sys/kernel/hostname', 'utf8'), host);
});

finish();
