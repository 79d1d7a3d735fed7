// SPDX-License-Identifier: Apache-2.0
// The next sandbox is built ahead, and disks with little on them are used again: whoever gets them
// notices nothing of it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('ahead');

const sample = await api.create();
const IS_IMAGE = sample.walls.disk === 'ext4_image';
const ofImages = { skip: IS_IMAGE ? false : `disks here are of the kind ${sample.walls.disk}` };
await api.purge(sample.id);

const spares = () => proc.entries(path.join(instance.dataDir, 'spares'));
const ahead = () => spares().filter((name) => name.startsWith('ahead-'));
const untilAhead = async () => {
  for (let i = 0; i < 2; i++) await api.purge((await api.create()).id);
  return until(() => ahead()[0], { what: 'one is built ahead' });
};
const shelf = (...names) => path.join(`/proc/${instance.keeper.pid}/root`, instance.dataDir, 'templates', ...names);
/** The name of a disk that is used again, by the number of its image; a new image may have the number of one that was removed. */
const usedAgain = (ino) => spares().find((name) => name.startsWith('used-') && proc.quiet(() => fs.statSync(path.join(instance.dataDir, 'spares', name)).ino, 0) === ino);
/** Purges one while there is room for another spare; the name of its disk among the spares, if that is used again, and how many blocks are free on it. */
const purgeForReuse = async (id) => {
  const { ino } = fs.statSync(path.join(instance.dataDir, 'workspaces', `${id}.img`));
  const others = await Promise.all(Array.from({ length: 6 }, () => api.create()));
  await api.purge(id);
  await until(() => proc.entries(shelf('leaving')).length === 0, { what: 'it is emptied or gone' });
  const name = usedAgain(ino);
  const free = name && fs.statfsSync(shelf('spares', name)).bfree;
  await Promise.all(others.map((other) => api.purge(other.id)));
  return { name, free };
};
const groupOf = async (id) => proc.groupsOf((await instance.initOf(id)).pid).find((name) => /^ahead-\d+$/.test(name)) ?? id;

test('a create takes over the one that was built ahead, and the next is begun', async () => {
  const name = await untilAhead();
  const { id } = await api.create();
  assert.equal(await groupOf(id), name);
  assert.ok(!spares().includes(name), 'its disk has an owner');
  assert.ok(fs.existsSync(path.join(instance.dataDir, 'workspaces', `${id}.${IS_IMAGE ? 'img' : 'home'}`)));
  await until(() => ahead().length === 1 && ahead()[0] !== name, { what: 'the next one' });
  assert.equal((await api.out(id, 'echo $((6*7)); hostname')).trim(), '42\nsandbox');
  await api.purge(id);
});

test('who asks for something else gets that', async () => {
  await untilAhead();
  const { id } = await api.create({ resources: { memory: '300Mi', pids: 99, disk: '100Mi' }, network: { mode: 'none' } });
  const { memory, pids, disk } = await api.stats(id);
  assert.deepEqual([memory.limit_bytes, pids.limit, disk.limit_bytes], [300 * 2 ** 20, 99, 100 * 2 ** 20]);
  const reached = await api.exec(id, { argv: ['python3', '-c', 'import socket; socket.create_connection(("192.0.2.1", 80), 2)'] });
  assert.match(reached.stderr, /unreachable/);
  await api.purge(id);
});

test('a workspace that was kept comes with its create, not another', async () => {
  const { id } = await api.create();
  await api.out(id, 'echo kept > /workspace/outputs/mark');
  await api.remove(id);
  await untilAhead();
  await api.create({ id });
  assert.equal(await api.out(id, 'cat /workspace/outputs/mark'), 'kept\n');
  await api.purge(id);
});

test('it is on no list and no request reaches it', async () => {
  const name = await untilAhead();
  assert.deepEqual((await api.all()).map((sandbox) => sandbox.id).filter((id) => id.startsWith('ahead')), []);
  assertError(await api.request('GET', `/v1/sandboxes/${name}`), [400, 404]);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { id: name } }), [400]);
});

test('it outlives the daemon, and the next daemon takes it', async () => {
  const name = await untilAhead();
  await instance.crash();
  await instance.start();
  assert.deepEqual(ahead(), [name]);
  const { id } = await api.create();
  assert.ok((await api.out(id, 'echo here')).includes('here'));
  await api.purge(id);
});

test('many creates at once each get one of their own', async () => {
  await untilAhead();
  const made = await Promise.all(Array.from({ length: 24 }, () => api.create()));
  const names = await Promise.all(made.map(async ({ id }) => {
    await api.out(id, `echo ${id} > /workspace/outputs/own; echo ${id} > /tmp/own`);
    return (await api.out(id, 'readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/user')).trim();
  }));
  assert.equal(new Set(names.flatMap((text) => text.split('\n'))).size, 24 * names[0].split('\n').length, 'namespaces');
  const own = await Promise.all(made.map(({ id }) => api.out(id, 'cat /workspace/outputs/own /tmp/own')));
  assert.deepEqual(own, made.map(({ id }) => `${id}\n${id}\n`));
  assert.equal(new Set(await Promise.all(made.map(({ id }) => groupOf(id)))).size, 24, 'groups');
  await Promise.all(made.map(({ id }) => api.purge(id)));
});

/** Requests straight to the keeper: six builds alike, each saying that `next` is the uid range to come; and their end. */
const BUILDS = `
import socket, struct, sys
BUILD, KILL, CLEAN, ALL = 2, 5, 12, 12
keeper = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
keeper.connect(sys.argv[1])
def ask(kind, n, parts=0):
    keeper.send(struct.pack('=6I27s64s5x4Q', kind, 50 + n, int(sys.argv[2]), parts, 0, 0, b'%026d' % n, b'sandbox', 64 << 20, 1000, 64, 64 << 20))
    result, = struct.unpack_from('i', keeper.recv(1 << 16))
    assert result == 0, (kind, n, result)
for n in range(6): ask(BUILD, n)
print('built', flush=True)
sys.stdin.read()
for n in range(6): ask(KILL, n); ask(CLEAN, n, ALL)
`;

test('nothing is built ahead in a uid range that somebody has', ofImages, async () => {
  await untilAhead();
  const { id } = await api.create();
  const mapOf = (pid) => proc.quiet(() => fs.readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/\s+/)[1], '');
  const base = mapOf((await instance.initOf(id)).pid);
  const python = spawn('python3', ['-c', BUILDS, path.join(instance.dataDir, 'run', 'keeper.sock'), `${(base - 1_000_000) / 65536}`], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(python.stdout, 'data');
  const inits = () => proc.descendants([instance.keeper.pid]).filter(({ pid }) => proc.isSandboxInit(pid));
  await until(() => inits().length >= 7 && inits().every(({ pid }) => mapOf(pid) !== '0'), { what: 'all are built' });
  assert.equal(inits().filter(({ pid }) => mapOf(pid) === base).length, 1);
  python.stdin.end();
  assert.deepEqual(await once(python, 'exit'), [0, null]);
  await api.purge(id);
});

test('a place for a spare that nobody fills is in nobody\'s way', ofImages, async () => {
  const ready = shelf('spares');
  await until(() => proc.entries(ready).length >= 16, { what: 'spares', timeout: 20_000 });
  fs.mkdirSync(path.join(ready, 'unfilled')); // as by a child that was killed before it mounted something there
  for (let i = 0; i < 10; i++) {
    await until(() => proc.entries(ready).length >= 8, { what: 'spares', timeout: 20_000 });
    await untilAhead();
  }
  fs.rmdirSync(path.join(ready, 'unfilled'));
});

test('a disk that is used again has nothing of who had it before', ofImages, async () => {
  const look = 'find / -xdev \\( -path /proc -o -path /sys -o -path /dev \\) -prune -o -printf "%p %M %U %G %s\\n" 2>/dev/null | grep -vE "^/(usr|etc)/" | sort';
  const { id: fresh } = await api.create();
  const before = await api.out(fresh, { command: look, user: 'root' });
  await until(() => spares().length >= 16, { what: 'spares', timeout: 20_000 });
  for (let i = 0; i < 24; i++) {
    const { id } = await api.create();
    assert.equal(await api.out(id, { command: look, user: 'root' }), before, `the disk of sandbox ${i}`);
    await api.out(id, {
      command: `for dir in /tmp /root /home/sandbox /workspace/outputs /workspace/project_files /var/lib/left; do
          mkdir -p $dir/left/deep && echo secret > $dir/left/deep/file && chmod 777 $dir && setfattr -n user.left -v 1 $dir/left 2>/dev/null || true; done
        rm -rf /srv; chown 1234 /workspace/outputs; ln -s / /workspace/left; mkfifo /tmp/fifo`,
      user: 'root',
    });
    await api.purge(id);
    await until(() => !proc.entries(path.join(instance.dataDir, 'workspaces')).includes(`${id}.img`), { what: 'its image' });
  }
  assert.ok(spares().some((name) => name.startsWith('used-')), `one was used again: ${spares()}`);
  await api.purge(fresh);
});

test('nor has it less room, however many files there were before', ofImages, async () => {
  const fresh = await until(() => proc.entries(shelf('spares')).find((name) => /^\d+-\d+$/.test(name)), { what: 'a new spare' });
  const { bfree } = fs.statfsSync(shelf('spares', fresh));
  let reused;
  for (let tries = 0; !reused?.name && tries < 5; tries++) {
    const { id } = await api.create();
    await api.out(id, "seq -f '/tmp/many/%g/deep' 2000 | xargs mkdir -p");
    await api.life(id, 'reset');
    reused = await purgeForReuse(id);
  }
  assert.ok(reused.name, 'not proven: none was used again');
  assert.equal(reused.free, bfree);
});

test('one that takes much of the host is not, though there is little on it', ofImages, async () => {
  const { id } = await api.create();
  const touch = 'import os\nfor i in range(120000): os.close(os.open(f"{i}", os.O_CREAT))';
  await api.out(id, `mkdir /workspace/outputs/many && cd /workspace/outputs/many && python3 -c '${touch}'`);
  execFileSync('sync', ['-f', shelf('disks', id)]); // the kernel writes the tables when it likes, and they count from then on
  await api.out(id, 'rm -r /workspace/outputs/many');
  assert.equal((await purgeForReuse(id)).name, undefined);
});

test('one with much on it is not', ofImages, async () => {
  const { id } = await api.create();
  await api.out(id, 'head -c 40M /dev/urandom > /tmp/much');
  const { ino } = fs.statSync(path.join(instance.dataDir, 'workspaces', `${id}.img`));
  await api.purge(id);
  await until(() => !usedAgain(ino) && proc.entries(path.join(instance.dataDir, 'trash')).length === 0, { what: 'it is gone' });
});

finish();
