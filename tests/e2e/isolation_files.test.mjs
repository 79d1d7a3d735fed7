// SPDX-License-Identifier: Apache-2.0
// Attacks on files: of the kernel, of the host, of the agent, of the next sandbox; from inside and through the API.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';

import { Attacks, Canary, USERS } from './lib/attacks.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { eachLimit, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('isolation-files');
const attacks = new Attacks(instance);
const canary = new Canary(instance.home);
const { id } = await api.create();
const out = async (command, user = 'sandbox', sandbox = id) => (await api.out(sandbox, { command, user })).trim();

const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty'];

/** Starts a program that goes on until it is closed, once it has said its first word. */
async function running(sandbox, argv, user = 'root') {
  const stream = await api.execStream(sandbox, { argv, user });
  const events = stream.events();
  let said = '';
  await events.next();
  const reading = (async () => {
    try {
      for await (const event of events) if (event.event === 'stdout') said += event.data.data;
    } catch { /* closed by us */ }
  })();
  return { said: () => said, close: async () => { stream.close(); await reading; } };
}

test('F01 to F03 knobs of the host cannot be written, its secrets not read, control groups not changed', async () => {
  // A word of our own, since a test of another file may change the pattern of the host meanwhile.
  const mark = `sandlot-e2e-${process.pid}`;
  for (const user of USERS) {
    await attacks.allClosed(id, 'knobs', { user, least: 70 });
    const { exit_code: written } = await api.exec(id, { command: `echo ${mark} > /proc/sys/kernel/core_pattern`, user });
    assert.notEqual(written, 0, `${user} wrote the pattern of cores`);
    const { lines } = await attacks.run(id, 'knobs', { args: ['walk'], user });
    assert.deepEqual([...lines.keys()], ['walked'], 'nothing below /proc and /sys can be opened for writing');
  }
  // Place, options, what follows them up to the dash, whether it is a device that everybody has: without the roots of mounts.
  const mounts = (await out(`awk '{ print $5, $6, $7, $4 ~ "/(${DEVICES.join('|')})$" }' /proc/self/mountinfo`)).split('\n').map((line) => line.split(' '));
  for (const [place, options, propagation, isDevice] of mounts) {
    const flags = options.split(',');
    assert.equal(propagation, '-', `${place} propagates: ${propagation}`);
    assert.ok(flags.includes('nosuid'), place);
    if (isDevice === '1') assert.ok(flags.includes('ro'), place);
    else if (!/^\/dev(\/pts)?$/.test(place)) assert.ok(flags.includes('nodev'), place);
  }
  assert.ok(mounts.some(([place, options]) => place === '/proc/sys' && options.startsWith('ro,')));
  assert.ok(!fs.readFileSync('/proc/sys/kernel/core_pattern', 'utf8').includes(mark));
});

test('F04 there is no way out of the root: mounts, chroot, /proc, sockets of the host, attributes of overlays', async (t) => {
  const name = `sandlot-e2e-${process.pid}`;
  const servers = [net.createServer(), net.createServer()];
  await Promise.all([[servers[0], `\0${name}`], [servers[1], path.join(canary.dir, '..', 'host.sock')]].map(([server, at]) => new Promise((up) => server.listen(at, up))));
  t.after(() => servers.forEach((server) => server.close()));
  let guests = 0;
  for (const server of servers) server.on('connection', () => guests++);
  const args = [canary.file, `@${name}`, path.join(instance.home, 'host.sock'), path.join(instance.dataDir, 'run/keeper.sock'), '/run/docker.sock', '/run/systemd/private'];
  for (const user of USERS) {
    const lines = await attacks.allClosed(id, 'escape', { args, user, least: 60, open: (what) => what === 'out of the chroot' || what === 'connect 0' });
    assert.equal(lines.get('connect 0'), 'ECONNREFUSED');
  }
  assert.equal(guests, 0);
  canary.assertUntouched();
});

test('F04 what is done to a file of the shared system stays in the sandbox: leases, locks, watches', async () => {
  const { id: other } = await api.create();
  const target = '/usr/bin/xxd';
  assert.equal(new Set((await out(`stat -c %d /usr /usr/bin ${target}`)).split('\n')).size, 1, 'it looks like one file system');
  const program = await attacks.carry(id, 'lease');
  const stream = await api.execStream(id, { argv: [program, target], user: 'root' });
  const events = stream.events();
  let said = '';
  while (!/watch\t/.test(said)) {
    const { value } = await events.next();
    if (value.event === 'stdout') said += value.data.data;
  }
  // Leases are for owners, and an ordinary user's daemon cannot make the host's files the sandbox's.
  assert.match(said, new RegExp(`lease\t${instance.account ? 'EACCES' : 'done'}\nlock\tdone\nwatch\tdone`), 'not proven');
  // A lease of the host's own inode would hold these up for three quarters of a minute.
  execFileSync('timeout', ['120', 'sh', '-c', `${target} -v 2>/dev/null; flock -n ${target} true`]);
  assert.equal((await api.exec(other, { command: `${target} -v; flock -n ${target} true`, timeout_ms: 120_000 })).exit_code, 0);
  // Its own look at the file is the only one that it sees.
  const own = (async () => {
    for await (const event of events) if (event.event === 'stdout' && event.data.data.includes('saw')) return 'seen';
    return 'ended';
  })();
  assert.equal(await Promise.race([own, api.exec(other, `${target} -v`).then(() => 'nothing')]), 'nothing');
  stream.close();
  await own.catch(() => {});
  await api.purge(other);
});

test('F05 every process inside has the descriptors it was given and no other', async () => {
  const listing = await out('for p in /proc/[0-9]*; do for f in $p/fd/*; do echo "$p $(readlink $f)"; done; done 2>/dev/null; ls -l /proc/self/fd | tail -n +2', 'root');
  for (const secret of [instance.dataDir, instance.home, 'keeper', 'sandlot.db', '.log']) assert.ok(!listing.includes(secret), `${secret}: ${listing}`);
  const init = await instance.initOf(id);
  const targets = proc.descriptorTargets(init.pid);
  for (const target of targets) assert.ok(/^(\/dev\/null|socket:|anon_inode:|\/|\/proc\/|pipe:)/.test(target) || /\/(meminfo|stat)-\d+ \(deleted\)$/.test(target), target);
  assert.equal((await api.out(id, { argv: ['python3', '-c', 'import os; print([f for f in range(3, 4096) if os.path.exists(f"/proc/self/fd/{f}")])'] })).trim(), '[]');
});

test('F06 the agent cannot be replaced or changed, nor taken over while it starts commands and helpers', async () => {
  const { id: own } = await api.create();
  const program = await attacks.carry(own, 'agent');
  const hunters = [];
  for (const user of USERS) {
    const stream = await api.execStream(own, { argv: [program, 'hunt'], user });
    let said = '';
    (async () => { try { for await (const event of stream.events()) if (event.event === 'stdout') said += event.data.data; } catch { /* closed */ } })();
    hunters.push({ stream, said: () => said });
  }
  await eachLimit(Array.from({ length: 300 }), 8, async (_, i) => {
    if (i % 3 === 0) await api.put(own, '/tmp/prey', 'x'.repeat(1000));
    else await api.exec(own, { argv: ['/usr/bin/true'], user: USERS[i % 2] });
  });
  for (const hunter of hunters) {
    assert.equal(hunter.said(), 'saw\t1\n', 'children of the agent were met, and nothing of them was opened or traced');
    hunter.stream.close();
  }
  await api.purge(own);
});

test('F07 a helper that is stopped from inside is ended, so that nobody waits for it', async () => {
  const { id: own } = await api.create();
  const ended = new Promise((resolve, reject) => {
    api.open('GET', `/v1/sandboxes/${own}/files/watch`, { query: { path: '/tmp' }, headers: { accept: 'text/event-stream' } }, (error, response) => {
      if (error) return reject(error);
      response.on('error', () => {}); // cut short, which is what we wait for
      response.resume();
      response.on('close', resolve);
    });
  });
  await until(async () => Number((await api.out(own, { command: 'grep -l sandlot-a /proc/[0-9]*/comm | wc -l', user: 'root' })).trim()) === 2, { what: 'the helper watches' });
  await api.out(own, { command: 'for f in $(grep -l sandlot-a /proc/[0-9]*/comm); do p=${f%/comm}; p=${p#/proc/}; test $p = 1 || kill -STOP $p; done', user: 'root' });
  await until(async () => Number((await api.out(own, { command: 'grep -l sandlot-a /proc/[0-9]*/comm | wc -l', user: 'root' })).trim()) === 1, { what: 'the helper is gone' });
  await ended;
  await api.purge(own);
});

test('F07 PID 1 can be neither traced, read, signalled nor slowed, and lives', async () => {
  const init = await instance.initOf(id);
  const limits = fs.readFileSync(`/proc/${init.pid}/limits`, 'utf8');
  const nice = () => fs.readFileSync(`/proc/${init.pid}/stat`, 'latin1').split(') ')[1].split(' ')[16];
  const calm = [nice(), fs.readFileSync(`/proc/${init.pid}/oom_score_adj`, 'utf8')];
  for (const user of USERS) {
    // Setting the limit of cores is answered with success and not done: the limits below say so.
    await attacks.allClosed(id, 'agent', { user, least: 70, open: (what) => what === 'prlimit 4' });
  }
  assert.ok(proc.isAlive(init));
  assert.ok(!['T', 't', 'Z'].includes(proc.processInfo(init.pid).state));
  assert.equal(fs.readFileSync(`/proc/${init.pid}/limits`, 'utf8'), limits);
  assert.deepEqual([nice(), fs.readFileSync(`/proc/${init.pid}/oom_score_adj`, 'utf8')], calm);
  assert.equal(await out('echo fine'), 'fine');
});

test('F08 device nodes are neither made nor changed, and nobody types into a terminal, with high bits or without', async () => {
  const look = () => DEVICES.map((name) => fs.statSync(`/dev/${name}`)).map(({ uid, gid, mode }) => [uid, gid, mode]);
  const before = look();
  for (const user of USERS) await attacks.allClosed(id, 'devices', { user, least: 80 });
  assert.deepEqual(look(), before, 'those of the host, which without root are the ones inside');
});

test('F09 a directory that is swapped for a link to the host a thousand times a second leads nobody there', async () => {
  const { id: own } = await api.create();
  const program = await attacks.carry(own, 'swap');
  const targets = [canary.dir, '/proc/1/root', '/'];
  const swappers = [];
  for (const [i, target] of targets.entries()) swappers.push(await running(own, [program, `/tmp/swapped${i}`, target]));
  const statuses = new Set();
  await eachLimit(Array.from({ length: process.env.E2E_FULL ? 10_000 : 3000 }), 16, async (_, i) => {
    const file = `/tmp/swapped${i % targets.length}/secret`;
    const answers = [
      () => api.tryPut(own, file, 'overwritten'),
      () => api.files('GET', own, file),
      () => api.request('GET', `/v1/sandboxes/${own}/files/list`, { query: { path: path.dirname(file) } }),
      () => api.files('DELETE', own, file),
      () => api.request('GET', `/v1/sandboxes/${own}/files/stat`, { query: { path: file } }),
    ];
    const answer = await answers[i % answers.length]();
    statuses.add(answer.status);
    assert.ok(!answer.text.includes('host-canary-content'), 'the canary was read');
  });
  for (const swapper of swappers) await swapper.close();
  for (const status of statuses) assert.ok([200, 201, 204, 400, 403, 404, 409].includes(status), `${[...statuses]}`);
  canary.assertUntouched();
  await api.purge(own);
});

test('F10 a path of the API is inside the root or refused', async () => {
  const shadow = fs.readFileSync('/etc/shadow', 'utf8');
  for (const target of ['../x', '/../../../../etc/shadow', '/proc/self/root/etc/shadow', '/proc/self/fd/3', '/proc/1/root/etc/shadow', '/proc/self/cwd/x', 'a\u0000b', `/${'a'.repeat(5000)}`, '', '/tmp/../../etc/shadow', Buffer.from('/tmp/%2e%2e%2f%2e%2e%2fetc/shadow')]) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      if (method !== 'GET' && String(target).includes('shadow')) continue;
      const answer = method === 'PUT' ? await api.tryPut(id, target, 'x') : await api.files(method, id, target);
      assert.ok(answer.status < 500, `${method} ${target}: ${answer.status}`);
      assert.ok(!answer.text.includes(shadow.split('\n')[0]), String(target));
    }
  }
  canary.assertUntouched();
});

test('F11 what is no plain file is refused or bounded, and nobody waits for it', async () => {
  await out('cd /tmp; mkfifo fifo; python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.bind(\'/tmp/sock\')"; truncate -s 8T sparse');
  for (const [target, statuses] of [['/tmp/fifo', [400, 409]], ['/tmp/sock', [400, 409]], ['/dev/zero', [400, 409]], ['/tmp', [400, 409]], ['/proc/kmsg', [400, 403, 404, 409]]]) {
    const answer = await api.files('GET', id, target);
    assert.ok(statuses.includes(answer.status), `${target}: ${answer.status}`);
  }
  const part = await api.files('GET', id, '/tmp/sparse', { headers: { range: 'bytes=0-99' } });
  assert.equal(part.status, 206);
  assert.equal(part.body.length, 100);
});

test('F13 links in the place of devices and of files that are made at a start write nothing on the host', async () => {
  const { id: own } = await api.create();
  await api.exec(own, { command: `rm -f /etc/resolv.conf /etc/hosts /etc/hostname; ln -s ${canary.file} /etc/resolv.conf; ln -s ${canary.file} /etc/hosts; ln -s ${canary.file} /etc/hostname; rm -rf /var/empty; ln -s / /var/empty; rm -rf /mnt; ln -s / /mnt; rm -rf /workspace/outputs 2>/dev/null; ln -sfn ${canary.dir} /workspace/outputs 2>/dev/null; rm -f /dev/null /dev/ptmx; true`, user: 'root' });
  await api.life(own, 'stop');
  await api.life(own, 'start');
  assert.equal((await api.out(own, { argv: ['stat', '-c', '%F %t %T', '/dev/null'] })).trim(), 'character special file 1 3');
  assert.equal((await api.exec(own, { argv: ['ls', '/proc/bus'], user: 'root' })).stdout, '');
  canary.assertUntouched();
  await api.purge(own);
  canary.assertUntouched();
});

test('F14 what is kept of a sandbox is written where nobody inside can plant a link, and a link is not followed there', async () => {
  const { id: own } = await api.create();
  const logs = path.join(instance.dataDir, 'state/logs', own);
  const said = async (text) => {
    const started = await api.request('POST', `/v1/sandboxes/${own}/exec`, { json: { command: `echo ${text}`, background: true } });
    if (started.status !== 201) return started.status;
    const ended = await api.request('GET', `/v1/sandboxes/${own}/processes/${started.json.process.id}/wait`);
    assert.equal(ended.status, 200, ended.text);
    return started.json.process.id;
  };
  // Under every name that a log has, wherever somebody inside can write.
  await api.out(own, { command: `for d in / /tmp /root /workspace /workspace/outputs /var/lib /var/log; do for n in 1 2 3 4 5 6 7 8 9; do ln -s ${canary.file} $d/$n-0; done; ln -s ${canary.dir} $d/${own}; ln -s ${canary.dir} $d/logs; ln -s ${canary.dir} $d/state; done 2>/dev/null; true`, user: 'root' });
  assert.match(await said('first'), /^p/);
  for (const dir of ['state', 'state/logs', `state/logs/${own}`, 'workspaces', 'sandboxes', 'trash', 'shredder', 'templates']) {
    const { uid, mode } = fs.lstatSync(path.join(instance.dataDir, dir));
    assert.equal(mode & 0o170077, 0o040000, `${dir} is a directory for its owner alone`);
    assert.ok(uid === 0 || uid === fs.statSync(`/proc/${instance.daemon.pid}`).uid, `${dir} belongs to ${uid}`);
  }
  for (const name of fs.readdirSync(logs)) assert.equal(fs.lstatSync(path.join(logs, name)).mode & 0o170077, 0o100000, name);
  canary.assertUntouched();

  // And if one were there all the same: in the place of the next log, of the directory, of the workspace.
  const next = Number((await said('second')).slice(1)) + 1;
  for (let i = 0; i < 5; i++) fs.symlinkSync(canary.file, path.join(logs, `${next + i}-0`));
  await said('third');
  fs.renameSync(logs, `${logs}.aside`);
  fs.symlinkSync(canary.dir, logs);
  await said('fourth');
  await api.life(own, 'stop');
  await api.life(own, 'start');
  await said('fifth');
  canary.assertUntouched();
  await api.purge(own);
  canary.assertUntouched();
  fs.rmSync(`${logs}.aside`, { recursive: true, force: true });
  fs.rmSync(logs, { force: true });
});

test('F15 a tree with links to /, a very deep one and odd names is removed, and only that', async () => {
  const { id: own } = await api.create();
  await api.out(own, { argv: ['python3', '-c', `
import os
os.chdir("/workspace/outputs")
for target in ("/", "${canary.dir}", "..", "/proc/self/root"): os.symlink(target, "to" + target.replace("/", "_"))
for name in (b"new\\nline", b"\\xff\\xfe", b"-rf", b"a" * 255, b" ", b"*"): open(name, "w").close()
for i in range(${process.env.E2E_FULL ? 20_000 : 5000}):
    os.mkdir("d"); os.chdir("d")
os.symlink("${canary.dir}", "out")
`], user: 'root', timeout_ms: 600_000 });
  await api.purge(own);
  await until(() => ['trash', 'shredder'].every((dir) => proc.entries(path.join(instance.dataDir, dir)).length === 0), { what: 'it is gone' });
  assert.ok(!fs.existsSync(path.join(instance.dataDir, 'workspaces', own)));
  canary.assertUntouched();
});

test('F16 nothing of a sandbox is left for the next one in its place', async () => {
  const secret = `secret-${process.pid}-${Date.now()}`;
  const first = await api.create({ env: { SECRET: secret } });
  await api.out(first.id, { command: `for d in /tmp /dev/shm /home/sandbox /workspace/outputs /var/tmp; do echo ${secret} > $d/kept; done; exec 9>/tmp/open; rm /tmp/open; echo ${secret} >&9; ipcmk -Q >/dev/null; sleep 600 & true` });
  const range = (await out('cat /proc/self/uid_map', 'root', first.id)).split(/\s+/)[1];
  await api.purge(first.id);
  const next = await Promise.all(Array.from({ length: 16 }, () => api.create()));
  const ranges = await Promise.all(next.map(async (sandbox) => (await out('cat /proc/self/uid_map', 'root', sandbox.id)).split(/\s+/)[1]));
  assert.ok(ranges.includes(range), `not proven: nobody has the range ${range} again: ${ranges}`);
  for (const sandbox of next) {
    const found = await api.exec(sandbox.id, { command: `grep -rsl ${secret} /tmp /dev/shm /home /workspace /var /run /root /etc 2>/dev/null; env | grep ${secret}; ipcs -q | grep 0x; pgrep sleep; truncate -s 4M /tmp/new; grep -c ${secret} /tmp/new`, user: 'root' });
    assert.equal(found.stdout.trim(), '0', JSON.stringify(found));
  }
  await Promise.all(next.map((sandbox) => api.purge(sandbox.id)));
});

test('F17 no other user of the host can walk into the data, and a setuid file from inside gives nothing there', async () => {
  await out('cp /usr/bin/id /workspace/outputs/suid && chmod 6755 /workspace/outputs/suid', 'root');
  const file = path.join(instance.workspace(id), 'outputs/suid');
  assert.ok(fs.statSync(file).uid >= 100_000, 'it belongs to nobody of the host');
  assert.equal(fs.statSync(instance.dataDir).mode & 0o007, 0);
  for (const dir of ['workspaces', 'sandboxes', 'state', 'trash']) {
    assert.throws(() => execFileSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'ls', path.join(instance.dataDir, dir)], { stdio: 'ignore' }), dir);
  }
  assert.throws(() => execFileSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'sh', '-c', file], { stdio: 'ignore' }), 'the file');
});

finish();
