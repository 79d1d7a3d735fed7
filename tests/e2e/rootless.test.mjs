// SPDX-License-Identifier: Apache-2.0
// What holds for daemons that an ordinary user starts, where it is not what holds for root's.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { accountOf, lentTo } from './lib/account.mjs';
import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { DIFFERENCES } from './lib/differences.mjs';
import { Instance, program, REPOSITORY } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const account = accountOf(process.env.E2E_USER || 'sandlot-rootless');
const lent = lentTo(account);
const isLent = (uid) => lent.some(([first, count]) => uid >= first && uid < first + count);
const idsOf = (pid, field) => proc.statusField(pid, field).split(/\s+/).filter(Boolean).map(Number);

const { instance, api, finish } = await suite('rootless', { user: account.name, isDelegated: false });

/** As many processes as it can have, which wait; prints how many came about. */
const FORKS = `
import os, time
count = 0
try:
    while count < 500:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except BlockingIOError:
    pass
print(count)
`;

test('daemon and keeper are the user, without privilege, and the keeper is root of a user namespace of its own', () => {
  for (const { pid } of [instance.daemon, instance.keeper]) {
    assert.deepEqual(idsOf(pid, 'Uid'), Array(4).fill(account.uid));
    assert.deepEqual(idsOf(pid, 'Gid'), Array(4).fill(account.gid));
    assert.deepEqual(idsOf(pid, 'Groups'), []);
  }
  assert.equal(proc.statusField(instance.daemon.pid, 'CapPrm'), '0000000000000000');
  assert.equal(proc.statusField(instance.daemon.pid, 'NoNewPrivs'), '1');
  for (const kind of ['user', 'mnt', 'net']) assert.notEqual(proc.namespace(instance.keeper.pid, kind), proc.namespace('self', kind), kind);
  assert.match(fs.readFileSync(`/proc/${instance.keeper.pid}/uid_map`, 'utf8'), new RegExp(`^\\s*0\\s+${account.uid}\\s+1\\n`));
});

test('members run beside a sandbox in its network, keep their volumes over a stop, and count as it does', async () => {
  const server = { role: 'backend', template: 'host', port: 8000, command: 'echo start >> /volumes/starts; exec python3 -m http.server --bind 127.0.0.1 8000 --directory /volumes', health: { port: 8000, path: '/starts' } };
  const { id } = await api.create({ members: [server] });
  const healthy = () => until(async () => (await api.get(id)).members.some((one) => one.health === 'healthy'), { what: 'the member is healthy' });
  const starts = () => api.out(id, 'python3 -c "import os, urllib.request as u; print(u.urlopen(\'http://127.0.0.1:\' + os.environ[\'BACKEND_PORT\'] + \'/starts\').read().decode(), end=\'\')"');
  await healthy();
  assert.equal(await starts(), 'start\n');
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await healthy();
  assert.equal(await starts(), 'start\nstart\n');
  await api.purge(id);
});

test('a process of a sandbox has a uid that was lent, is not the user, and shares it with no other sandbox', async () => {
  const ids = (await Promise.all([api.create(), api.create()])).map((sandbox) => sandbox.id);
  const seen = new Set();
  for (const id of ids) {
    const { pid } = await instance.initOf(id);
    const [first] = fs.readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split('\n').map((line) => line.trim().split(/\s+/).map(Number));
    assert.equal(first[2], 1023);
    assert.ok(isLent(first[1]) && isLent(first[1] + 1023), `${first}`);
    assert.equal(idsOf(pid, 'Uid')[0], first[1]);
    assert.ok(!seen.has(first[1]));
    seen.add(first[1]);
    assert.equal(await api.out(id, { argv: ['id', '-u', 'nobody'], user: 'root' }), '65534\n');
    assert.equal(await api.out(id, { command: 'touch /tmp/f && chown nobody /tmp/f && stat -c %U /tmp/f', user: 'root' }), 'nobody\n');
    assert.notEqual((await api.exec(id, { command: 'chown 2000 /tmp/f', user: 'root' })).exit_code, 0, 'an id that it does not have');
  }
});

test('the limit of processes holds for all users of a sandbox together, and for no other sandbox', async () => {
  const [one, other] = await Promise.all([api.create({ resources: { pids: 40 } }), api.create({ resources: { pids: 40 } })]);
  const user = Number(await api.out(one.id, { argv: ['python3', '-c', FORKS] }));
  const root = Number(await api.out(one.id, { argv: ['python3', '-c', FORKS], user: 'root' }).catch(() => 0));
  assert.ok(user > 30 && user + root < 40, `${user} as the user and ${root} as root`);
  assert.ok(Number(await api.out(other.id, { argv: ['python3', '-c', FORKS] })) > 30);
});

test('walls tell which are missing without cgroups, and by what the others stand', async () => {
  const { walls } = await api.create();
  assert.deepEqual([walls.cpu, walls.memory, walls.disk], [null, null, null]);
  assert.equal(walls.pids, 'rlimit');
  for (const name of ['capabilities', 'filesystem', 'masked_paths', 'namespaces', 'network', 'no_new_privs', 'seccomp', 'user_namespace']) assert.ok(walls[name], name);
});

test('ls and stats show no limit that nothing enforces, and ls --removed calls what it shows a quota', async () => {
  const { ok } = commandLine(instance);
  const { id } = await api.create({ name: 'free', resources: { cpu: 1, memory: '128Mi', disk: '96Mi', pids: 77 } });
  assert.match(await ok(['ls']), new RegExp(`^${id} +free +running +host +- +- `, 'm'));
  const [heading, row] = (await ok(['stats', '-1', id])).trim().split('\n').map((line) => line.trim().split(/ {2,}/));
  const shown = (name) => row.filter((_, column) => heading[column] === name);
  assert.deepEqual(shown('CPUS'), ['-']);
  assert.deepEqual(shown('LIMIT'), ['-', '-', '77'], 'of memory and disk none; that of processes holds');
  await ok(['rm', id]);
  assert.match(await ok(['ls', '--removed']), /^REMOVED +NAME +QUOTA +AGE +SINCE/);
  await api.purge(id);
});

test('where something is mounted below /usr, a create says so, and doctor names it', async () => {
  const other = new Instance('rootless-usr', { user: account.name, isDelegated: false });
  const enter = ['unshare', '--mount', 'sh', '-c', 'mount --bind /usr/share/man /usr/share/man && exec "$@"', 'sh'];
  other.delegation = { enter, remove() {} };
  await other.start();
  try {
    const error = assertError(await other.api.request('POST', '/v1/sandboxes', { json: {} }), 503);
    assert.match(error.message, /\/usr cannot be shown without root: something is mounted in it/);
    assert.match(error.remediation, /sandlot doctor --host/);
    const sandlot = path.join(other.home, 'sandlot'); // where the user may go
    fs.copyFileSync(program('sandlot'), sandlot);
    const report = spawnSync(enter[0], [...enter.slice(1), ...account.become, sandlot, 'doctor', '--host'], { encoding: 'utf8' });
    assert.match(report.stdout, /FAIL overlayfs: \/usr\/share\/man is a mount of its own/);
  } finally {
    await other.shutdown();
    other.destroy();
  }
});

test('pause is refused with the reason and what to do instead, and changes nothing', async () => {
  const { id } = await api.create();
  const answer = await api.verb(id, 'pause');
  const error = assertError(answer, 409);
  assert.equal(error.code, 'pause_unavailable');
  assert.match(error.remediation, /stop/);
  assert.equal((await api.get(id)).status, 'running');
  assert.equal(await api.out(id, 'echo works'), 'works\n');
});

test('isolate is refused with the reason and what to do instead, and other commands run', async () => {
  const { id } = await api.create();
  const error = assertError(await api.tryExec(id, { command: 'true', isolate: true }), 503);
  assert.equal(error.code, 'isolate_unavailable');
  assert.match(error.remediation, /control groups/);
  assert.equal(await api.out(id, 'echo works'), 'works\n');
});

test('statistics count the processes of a sandbox', async () => {
  const { id } = await api.create();
  await api.exec(id, 'sleep 300 >/dev/null 2>&1 & python3 -c "sum(range(30000000))"');
  const stats = await api.stats(id);
  assert.ok(stats.cpu.usage_ms >= 20, JSON.stringify(stats));
  assert.ok(stats.pids.current >= 2 && stats.pids.current < 10, JSON.stringify(stats));
});

test('memory that nothing limits shows as it is on the host, the processors as the sandbox has them', async () => {
  const total = (text) => /^MemTotal:\s+(\d+) kB$/m.exec(text)[1];
  const { id } = await api.create({ resources: { memory: '64Mi', cpu: 1 } });
  assert.equal(total(await api.out(id, 'cat /proc/meminfo')), total(fs.readFileSync('/proc/meminfo', 'utf8')));
  assert.equal(await api.out(id, 'nproc; grep -c ^processor /proc/cpuinfo; ls /sys/fs/cgroup/unified'), '1\n1\n');
});

test('when all lent ids are taken a create says so and what to do, and a purge frees some', async () => {
  const all = lent.reduce((sum, [, count]) => sum + Math.floor(count / 1024), 0);
  const made = [];
  let refusal;
  while (!refusal && made.length <= all) {
    const answer = await api.request('POST', '/v1/sandboxes', { json: {} });
    if (answer.status === 201) made.push(answer.json.id);
    else refusal = answer;
    if (answer.status === 201) api.made.add(answer.json.id);
  }
  const error = assertError(refusal, 503);
  assert.equal(error.code, 'no_uid_range');
  assert.match(error.message, new RegExp(`${all}`));
  assert.match(error.remediation, /usermod --add-subuids/);
  await api.purge(made.pop());
  assert.equal(await api.out((await api.create()).id, 'echo works'), 'works\n');
});

finish();

test('where cgroups are delegated to the user, the limits of memory and processor hold, and pause works', async (t) => {
  const own = new Instance('delegated', { user: account.name, isDelegated: true });
  t.after(() => own.destroy());
  await own.start();
  const { id } = await own.api.create({ resources: { memory: '64Mi', cpu: 0.2, pids: 40 } });
  const hog = await own.api.exec(id, { argv: ['python3', '-c', 'x = bytearray(200 << 20)'] });
  assert.equal(hog.termination.reason, 'oom', JSON.stringify(hog));
  const quota = own.cgroups().filter((dir) => dir.endsWith(id)).flatMap((dir) => ['cpu.max', 'cpu.cfs_quota_us'].map((file) => proc.quiet(() => fs.readFileSync(path.join(dir, file), 'utf8'), ''))).join('');
  assert.match(quota, /^20000( 100000)?\n$/, 'a fifth of a processor');
  assert.ok(Number(await own.api.out(id, { argv: ['python3', '-c', FORKS] })) < 40);
  assert.equal((await own.api.life(id, 'pause')).status, 'paused');
  assert.equal((await own.api.life(id, 'resume')).status, 'running');
  assert.equal(await own.api.out(id, 'echo works'), 'works\n');
  await own.shutdown();
  await until(() => own.survivors().length === 0, { what: 'all is gone' });
  assert.deepEqual(own.cgroups(), []);
});

test('a user who allows no wall to be missing gets no sandbox without it', async (t) => {
  const strict = new Instance('strict', { user: account.name, isDelegated: false, args: ['--allow-missing='] });
  t.after(() => strict.destroy());
  await strict.start();
  const error = assertError(await strict.api.request('POST', '/v1/sandboxes', { json: {} }), 503);
  assert.equal(error.code, 'wall_missing');
  assert.deepEqual(await strict.api.all(), []);
  await strict.shutdown();
});

test('a user to whom no ids were lent is refused, and told the command that lends them', async () => {
  const other = new Instance('no-ids', { user: 'nobody' });
  try {
    const { code, said } = await other.refusal([]);
    assert.ok(code > 0, `${code}`);
    assert.match(said, /\/etc\/subuid/);
    assert.match(said, /try: sudo usermod --add-subuids (\d+)-\d+ --add-subgids \d+-\d+ nobody/);
    const first = Number(/--add-subuids (\d+)/.exec(said)[1]);
    assert.ok(!isLent(first) && first >= 100_000, `${first} is free`);
    assert.deepEqual(proc.entries(other.dataDir), [], 'nothing was made');
  } finally {
    other.destroy();
  }
});

test('the data directory of a user is where a user keeps data, made with all above it', async () => {
  const own = new Instance('data-home', { user: account.name });
  const env = { ...own.environment({ HOME: own.home }), SANDLOT_API_BIND: '127.0.0.1:0' };
  delete env.XDG_DATA_HOME;
  const [file, ...words] = [...account.become, own.daemonFile];
  const child = spawn(file, words, { stdio: 'ignore', cwd: own.home, env });
  own.dataDir = path.join(own.home, '.local/share/sandlot');
  own.daemon = { ...proc.processInfo(child.pid), child };
  child.on('exit', (code, signal) => { own.daemon.how = { code, signal }; });
  try {
    const address = await until(() => /:(\d+)\n$/.exec(fs.readFileSync(path.join(own.dataDir, 'run/api.addr'), 'utf8')), { what: 'it serves' });
    assert.equal(fs.statSync(path.join(own.home, '.local')).mode & 0o777, 0o700);
    assert.deepEqual([fs.statSync(path.join(own.dataDir, 'token'))].map(({ uid, mode }) => [uid, mode & 0o777]), [[account.uid, 0o600]]);
    own.api.port = Number(address[1]);
    own.api.token = fs.readFileSync(path.join(own.dataDir, 'token'), 'utf8').trim();
    await until(async () => (await own.api.request('GET', '/readyz', { token: null })).status === 200, { what: '/readyz' });
    own.keeper = own.findKeeper();
    await own.shutdown();
  } finally {
    own.destroy();
  }
});

test('each difference has a row in SECURITY.md, and each test that is left out for it exists', () => {
  const table = fs.readFileSync(path.join(REPOSITORY, 'SECURITY.md'), 'utf8').split('## Without root')[1]?.split('\n## ')[0] ?? '';
  const sources = proc.entries(path.join(REPOSITORY, 'tests/e2e')).filter((name) => name.endsWith('.test.mjs'))
    .map((name) => fs.readFileSync(path.join(REPOSITORY, 'tests/e2e', name), 'utf8')).join('\n').replaceAll("\\'", "'");
  // A family's names are made from a template, of which the part before its variable is looked for.
  const isThere = (name) => sources.includes(name instanceof RegExp ? name.source.split('\\')[0] : `test('${name}'`);
  for (const { what, tests } of DIFFERENCES) {
    assert.match(table, new RegExp(`^\\| ${what} \\|`, 'm'));
    for (const name of tests) assert.ok(isThere(name), `no test is called "${name}"`);
  }
});
