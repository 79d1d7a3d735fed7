// SPDX-License-Identifier: Apache-2.0
// Taking all there is: every kind of thing that the kernel counts has a limit for each sandbox, and what one takes
// is not missing to another.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { Attacks } from './lib/attacks.mjs';
import { ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI } from './lib/values.mjs';
import { alone, eachLimit, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('isolation-resources');
const attacks = new Attacks(instance);
const LIMITS = { memory: '128Mi', pids: 200 };

/** How many of a kind the program got. */
async function take(id, kind, user = 'sandbox') {
  const { lines, result } = await attacks.run(id, 'exhaust', { args: [kind], user });
  return { count: Number(lines.get(kind)), result };
}

/** The same, and it keeps them until it is closed. */
async function hold(id, kind, user = 'sandbox') {
  const program = await attacks.carry(id, 'exhaust');
  const stream = await api.execStream(id, { argv: [program, kind, 'hold'], user });
  const events = stream.events();
  let event;
  do event = (await events.next()).value; while (event.event !== 'stdout');
  return { count: Number(event.data.data.split('\t')[1]), close: () => stream.close() };
}

const healthy = async (id) => assert.equal((await api.out(id, { argv: ['echo', 'fine'] })).trim(), 'fine');

test('R01 processes stop at the limit, fork works afterwards, and zombies are reaped', async () => {
  const { id } = await api.create({ resources: LIMITS });
  const { count } = await take(id, 'forks');
  assert.ok(count > 100 && count < 200, `${count} forks`);
  await until(async () => Number((await api.out(id, 'ls -d /proc/[0-9]* | wc -l')).trim()) < 10, { what: 'they are gone' });
  await api.out(id, { argv: ['python3', '-c', 'import os\nfor i in range(150):\n    if os.fork() == 0:\n        os.fork(); os._exit(0)\n    os.wait()'] });
  await until(async () => (await api.out(id, 'cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z "; true')).trim() === '0', { what: 'no zombie is left' });
  await healthy(id);
  await api.purge(id);
});

test('R02 memory of every kind stops at the limit, and the host does not notice', async () => {
  const { id } = await api.create({ resources: LIMITS });
  const init = await instance.initOf(id);
  for (const kind of ['anonymous', 'shared', 'memfd', 'pipes', 'unix-buffers', 'tcp-buffers', 'tmpfs', 'sysv-memory']) {
    const { count, result } = await take(id, kind);
    // Either the kernel refused at some point, or it ended the program for want of memory.
    assert.ok(result.termination.reason === 'oom' || count < 10_000_000, `${kind}: ${JSON.stringify(result)}`);
    const { memory } = await api.stats(id);
    assert.ok(memory.peak_bytes <= 128 * MI + MI, `${kind}: ${JSON.stringify(memory)}`);
    assert.ok(proc.isAlive(init), `${kind}: PID 1 was not the victim`);
    await healthy(id);
  }
  await api.purge(id);
});

test('R03 /dev/shm has a size and a number of files', async () => {
  const { id } = await api.create({ resources: LIMITS });
  const { count: mebibytes } = await take(id, 'tmpfs');
  assert.ok(mebibytes > 0 && mebibytes <= 32, `${mebibytes} MiB`);
  await api.out(id, 'rm -f /dev/shm/*');
  const { count: files } = await take(id, 'tmpfs-inodes');
  assert.ok(files > 100 && files <= 16384, `${files} files`);
  await healthy(id);
  await api.purge(id);
});

test('R04 each kind of object has a limit for each sandbox', () => alone('counters', async () => {
  const most = { ptys: 64, inotify: 8192, epoll: 65536, timers: 4096, signals: 4096, shm: 32768, sem: 1024, sems: 32, msg: 512, mq: 256, mappings: 1 << 20, locked: 128, keys: 0, aio: 0 };
  for (const [kind, limit] of Object.entries(most)) {
    const { id } = await api.create();
    for (const user of ['root', 'sandbox']) {
      const { count, result } = await take(id, kind, user);
      assert.ok(count <= limit, `${kind} as ${user}: ${count}`);
      assert.equal(result.exit_code, 0, `${kind}: ${JSON.stringify(result)}`);
    }
    await healthy(id);
    await api.purge(id);
  }
}));

test('R04 the limits are those of the sandbox, not of each of its users', () => alone('counters', async () => {
  const { id } = await api.create();
  const first = await hold(id, 'timers', 'root');
  const { count } = await take(id, 'timers', 'sandbox');
  assert.ok(first.count > 1000, `${first.count}`);
  assert.ok(count < 200, `another user got ${count} more`);
  first.close();
  await api.purge(id);
}));

/** While one sandbox holds all that it can have of a kind, another gets as many as one that is alone. */
async function assertApart(kind) {
  const [lonely, greedy, other] = await Promise.all([api.create(), api.create(), api.create()]);
  const { count: share } = await take(lonely.id, kind);
  const held = await hold(greedy.id, kind, 'root');
  assert.ok(share > 0 && held.count >= share - 50, `not proven: ${kind}: ${share} ${held.count}`);
  const { count } = await take(other.id, kind);
  assert.ok(count >= share - 50, `${kind}: ${share} alone, ${count} while another has ${held.count}`);
  held.close();
  await Promise.all([lonely, greedy, other].map((sandbox) => api.purge(sandbox.id)));
}

test('R05 what one sandbox takes is not missing to another: what its namespaces hold', async () => {
  for (const kind of ['ptys', 'sem', 'msg']) await assertApart(kind);
});

test('R05 what one sandbox takes is not missing to another: what the kernel counts for each user', async () => {
  await alone('counters', async () => {
    for (const kind of ['inotify', 'timers', 'signals', 'mq', 'locked']) await assertApart(kind);
  });
});

test('R08 many commands that leave something running end with their main process', async () => {
  const { id } = await api.create({ resources: { pids: 2048, memory: '512Mi' } });
  const before = proc.descriptorNames(instance.daemon.pid).length;
  await eachLimit(Array.from({ length: process.env.E2E_FULL ? 1000 : 300 }), 8, async (_, i) => {
    const result = await api.exec(id, { argv: ['sh', '-c', `sleep 86400 & echo ${i}`] });
    assert.equal(result.stdout, `${i}\n`);
  });
  await api.out(id, 'pkill sleep; true');
  await until(() => {
    api.disconnect();
    return proc.descriptorNames(instance.daemon.pid).length <= before + 2;
  }, { what: 'the daemon has no more descriptors than before' });
  await api.purge(id);
});

test('R09 a timeout ends all that a command became: deaf, stopped, forked twice, in another session', async () => {
  const { id } = await api.create();
  const evasive = `
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
for i in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if i == 0: os.kill(os.getpid(), signal.SIGSTOP)
            while True: time.sleep(1)
        os._exit(0)
while True: time.sleep(1)`;
  const result = await api.exec(id, { argv: ['python3', '-c', evasive, 'evasive-e2e'], timeout_ms: 1500, user: 'root' });
  assert.equal(result.termination.reason, 'timeout', JSON.stringify(result));
  await until(async () => !(await api.processes(id)).some((line) => line.includes('evasive-e2e')), { what: 'nobody is left' });
  await api.purge(id);
});

test('R10 eighty slow listings of one sandbox keep waiting neither others, nor its owner elsewhere, nor its end', async () => {
  const slow = await api.create();
  const [own, stranger] = [await api.create(), await ownerApi(api, 'elsewhere', 'stranger')];
  await api.out(slow.id, { argv: ['python3', '-c', 'import os\nos.mkdir("/tmp/many")\nfor i in range(10000): os.mknod(f"/tmp/many/{i}")'] });
  // So slow that eight of them are under way at a time also where the daemon itself has to wait for a processor.
  await api.patch(slow.id, { resources: { cpu: 0.01 } });
  const init = await instance.initOf(slow.id);
  const helpers = () => proc.descendants([init.pid]);
  const listings = Array.from({ length: 80 }, async () => (await api.request('GET', `/v1/sandboxes/${slow.id}/files/list`, { query: { path: '/tmp/many', limit: 10_000 } })).status);
  await until(() => helpers().length === 8, { every: 5, what: 'its helpers are busy' });
  await api.life(slow.id, 'pause'); // from here on they are as slow as can be
  const busy = helpers().map(({ pid }) => pid);
  assert.ok(busy.length > 0 && busy.length <= 8, `${busy.length} helpers: the rest holds none`);

  await healthy(own.id);
  await api.put(own.id, '/tmp/here', 'too');
  const { id } = await stranger.create();
  assert.equal((await stranger.out(id, { argv: ['echo', 'fine'] })).trim(), 'fine');
  assert.deepEqual((await stranger.listFiles(id, '/tmp')).entries, []);
  await stranger.purge(id);
  stranger.disconnect();
  assert.deepEqual(helpers().map(({ pid }) => pid), busy, 'not proven: the listings went on');
  await api.purge(slow.id);
  assert.equal((await Promise.all(listings)).length, 80, 'every one is answered');
  await api.purge(own.id);
});

test('R11 memory that belongs to no process does not end the sandbox, however harmless its processes make themselves look', async () => {
  const { id } = await api.create({ resources: LIMITS });
  const init = await instance.initOf(id);
  assert.equal((await take(id, 'sysv-memory', 'root')).count, 64, 'half of its memory, in MiB');
  assert.equal((await take(id, 'tmpfs', 'root')).count, 32, 'a quarter');
  for (let round = 0; round < 3; round++) {
    // Small, and as unlikely a victim as they can make themselves.
    const greedy = ['pipes', 'unix-buffers', 'pipes', 'anonymous'].map((kind) => `echo 0 > /proc/self/oom_score_adj; exec /opt/attack-exhaust ${kind}`);
    const results = await Promise.all(greedy.map((command) => api.exec(id, { command, user: 'root', timeout_ms: 120_000 })));
    assert.ok(results.some(({ termination }) => termination.reason === 'oom'), `not proven: ${JSON.stringify(results)}`);
    assert.ok(proc.isAlive(init), 'PID 1 was not the victim');
  }
  assert.equal((await api.get(id)).status, 'running');
  await healthy(id);
  await api.put(id, '/tmp/still', 'works');
  assert.equal(fs.readFileSync(`/proc/${init.pid}/oom_score_adj`, 'utf8').trim(), '0');
  await api.purge(id);
});

test('R13 tens of thousands of sockets and flows are missing to nobody else', async () => {
  const tracked = () => Number(proc.quiet(() => fs.readFileSync('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'), '0'));
  const [greedy, other] = await Promise.all([api.create({ resources: { memory: '512Mi' }, network: { mode: 'internet' } }), api.create({ network: { mode: 'internet' } })]);
  const { count: share } = await take(other.id, 'flows');
  const before = tracked();
  const held = [];
  for (let i = 0; i < 8 && held.reduce((sum, { count }) => sum + count, 0) < 50_000; i++) held.push(await hold(greedy.id, 'flows'));
  const taken = held.reduce((sum, { count }) => sum + count, 0);
  assert.ok(taken >= 50_000 || held.at(-1).count < share, `not proven: ${taken} of 50000, and no limit was met`);
  assert.ok(tracked() < before + 1000, `the host tracks ${tracked() - before} flows more`);
  assert.ok((await take(other.id, 'flows')).count >= share - 50, 'the neighbour has as many as before');
  await healthy(other.id);
  for (const { close } of held) close();
  await healthy(greedy.id);
  await Promise.all([greedy, other].map(({ id }) => api.purge(id)));
});

/**
 * Long names, so that the memory of the daemon shows that it does not hold them all; `make test-full` takes a million. They
 * are links to one file for each 50,000, because ext4 takes no more links than that. And a tree,
 * deeper than a path is long.
 */
const NAMES = process.env.E2E_FULL ? 1_000_000 : 100_000;
const NAME_LENGTH = 250;
const MANY_FILES = `
import os
os.mkdir("/tmp/many"); os.chdir("/tmp/many")
for i in range(${NAMES}):
    name = f"{i:0${NAME_LENGTH}d}"
    if i % 50000: os.link(first, name)
    else:
        first = name
        os.mknod(name)
os.mkdir("/tmp/deep"); os.chdir("/tmp/deep")
for i in range(${process.env.E2E_FULL ? 10_000 : 5000}): os.mkdir("d"); os.chdir("d")
print(sum(1 for _ in os.scandir("/tmp/many")))`;

test('R15 a directory of many entries is listed in pages, and a deep tree is walked', async () => {
  const { id } = await api.create({ resources: { memory: '512Mi', disk: '4Gi', cpu: 2 } });
  const { stdout } = await api.exec(id, { argv: ['python3', '-c', MANY_FILES], timeout_ms: 600_000 });
  assert.equal(Number(stdout), NAMES, 'not proven: not all names could be made');
  const resident = proc.residentBytes(instance.daemon.pid);
  let page = await api.listFiles(id, '/tmp/many', { limit: 100 });
  const seen = new Set(page.entries.map((entry) => entry.name));
  assert.equal(seen.size, 100);
  page = await api.listFiles(id, '/tmp/many', { limit: 100, cursor: page.next_cursor });
  assert.ok(page.entries.length === 100 && !page.entries.some((entry) => seen.has(entry.name)), 'the next page has others');
  assert.ok(proc.residentBytes(instance.daemon.pid) < resident + Math.min(32 * MI, (NAMES * NAME_LENGTH) / 2), 'the daemon does not hold them all');
  const answer = await api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: '/tmp/deep', depth: 10_000 } });
  assert.ok(answer.status < 500, answer.text.slice(0, 200));
  assert.equal((await api.files('DELETE', id, '/tmp/deep', { query: { recursive: 'true' } })).status, 204);
  await healthy(id);
  await api.purge(id);
});

finish();
