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
import { compile } from './lib/programs.mjs';
import { withoutNewSpares } from './lib/spares.mjs';
import { suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

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
const mountArea = (...names) => path.join(`/proc/${instance.keeper.pid}/root`, instance.dataDir, 'templates', ...names);
/** The name of a disk that is used again, by the number of its image; a new image may have the number of one that was removed. */
const usedAgain = (ino) => spares().find((name) => name.startsWith('used-') && proc.quiet(() => fs.statSync(path.join(instance.dataDir, 'spares', name)).ino, 0) === ino);
/** Purges one while there is room for another spare; the name of its disk among the spares, if that is used again, and how many blocks are free on it. */
const purgeForReuse = async (id) => {
  const { ino } = fs.statSync(path.join(instance.dataDir, 'workspaces', `${id}.img`));
  return withoutNewSpares(instance, async () => {
    const others = await Promise.all(Array.from({ length: 6 }, () => api.create()));
    await api.purge(id);
    await until(() => proc.entries(mountArea('unmounting')).length === 0, { what: 'it is emptied or gone' });
    const name = usedAgain(ino);
    const free = name && fs.statfsSync(mountArea('spares', name)).bfree;
    await Promise.all(others.map((other) => api.purge(other.id)));
    return { name, free };
  });
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

/** What a v2 group says of whose it is, as an operator would ask; null if it does not. */
const ownerOf = (group) => {
  const roots = [...instance.cgroupRoots].filter((root) => fs.existsSync(path.join(root, group, 'cgroup.type')) || fs.existsSync(path.join(root, group, 'cgroup.events')));
  const script = 'import os, sys\ntry: print(os.getxattr(sys.argv[1], sys.argv[2]).decode())\nexcept OSError: pass';
  return execFileSync('python3', ['-c', script, path.join(roots[0], group), instance.account ? 'user.sandlot.sandbox' : 'trusted.sandlot.sandbox'], { encoding: 'utf8' }).trim() || null;
};

test('a group that was made before its sandbox had an id says whose it is from then on', async () => {
  const name = await untilAhead();
  assert.equal(ownerOf(name), null);
  const { id } = await api.create();
  assert.equal(await groupOf(id), name);
  assert.equal(ownerOf(name), id);
  const other = await api.create({ resources: { memory: '300Mi' } });
  assert.equal(ownerOf(await groupOf(other.id)), other.id);
  await Promise.all([api.purge(id), api.purge(other.id)]);
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

test('of uid ranges that nobody runs in the keeper holds a few, and one that it let go is as good as new', async () => {
  const KEPT = 32 + 2; // the one that is built ahead, and a namespace for the one after it
  const held = () => [proc.mountLines(instance.keeper.pid).filter((line) => /\/lowers\/(root|usr)-\d+ /.test(line)).length / 2, proc.descriptorTargets(instance.keeper.pid).filter((target) => target.startsWith('user:[')).length];
  for (let round = 0; round < 2; round++) {
    const all = await Promise.all(Array.from({ length: 48 }, () => api.create()));
    assert.ok(held()[0] >= 48, 'those that run have theirs');
    assert.equal(await api.out(all.at(-1).id, 'id -u; stat -c %u /usr/bin/env /etc/passwd'), '1000\n0\n0\n');
    await Promise.all(all.map(({ id }) => api.purge(id)));
    await until(() => held().every((count) => count <= KEPT), { what: `the keeper holds ${held()} and at most ${KEPT}` });
  }
});

test('nothing is built ahead in a uid range that somebody has', ofImages, async () => {
  await untilAhead();
  const { id } = await api.create();
  const mapOf = (pid) => proc.quiet(() => fs.readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/\s+/)[1], '');
  const base = mapOf((await instance.initOf(id)).pid);
  const program = compile('keeper_builds', path.join(instance.home, 'keeper_builds'));
  const builder = spawn(program, [path.join(instance.dataDir, 'run', 'keeper.sock'), `${(base - 1_000_000) / 65536}`], { stdio: ['pipe', 'pipe', 'inherit'] });
  await within('its builds', once(builder.stdout, 'data'));
  const inits = () => proc.descendants([instance.keeper.pid]).filter(({ pid }) => proc.isSandboxInit(pid));
  await until(() => inits().length >= 7 && inits().every(({ pid }) => mapOf(pid) !== '0'), { what: 'all are built' });
  assert.equal(inits().filter(({ pid }) => mapOf(pid) === base).length, 1);
  builder.stdin.end();
  assert.deepEqual(await within('their end', once(builder, 'exit')), [0, null]);
  await api.purge(id);
});

test('a place for a spare that nobody fills is in nobody\'s way', ofImages, async () => {
  const ready = mountArea('spares');
  await until(() => proc.entries(ready).length >= 16, { what: 'spares' });
  fs.mkdirSync(path.join(ready, 'unfilled')); // as by a child that was killed before it mounted something there
  for (let i = 0; i < 10; i++) {
    await until(() => proc.entries(ready).length >= 8, { what: 'spares' });
    await untilAhead();
  }
  fs.rmdirSync(path.join(ready, 'unfilled'));
});

test('a disk that is used again has nothing of who had it before', ofImages, async () => {
  const look = 'find / -xdev \\( -path /proc -o -path /sys -o -path /dev \\) -prune -o -printf "%p %M %U %G %s\\n" 2>/dev/null | grep -vE "^/(usr|etc)/" | sort';
  const { id: fresh } = await api.create();
  const before = await api.out(fresh, { command: look, user: 'root' });
  await until(() => spares().length >= 16, { what: 'spares' });
  await withoutNewSpares(instance, async () => {
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
  });
  await api.purge(fresh);
});

test('nor has it less room, however many files there were before', ofImages, async () => {
  const isNew = (name) => /^\d+-\d+$/.test(name);
  const takers = [];
  // All of the pool may be disks that were used before: it makes new ones when those are taken.
  const fresh = await until(async () => {
    const found = proc.entries(mountArea('spares')).find(isNew);
    if (!found && takers.length < 32) takers.push((await api.create()).id);
    return found;
  }, { what: 'a new spare' });
  const { bfree } = fs.statfsSync(mountArea('spares', fresh));
  const { id } = await api.create();
  await api.out(id, "seq -f '/tmp/many/%g/deep' 2000 | xargs mkdir -p");
  await api.life(id, 'reset');
  const reused = await purgeForReuse(id);
  assert.ok(reused.name, 'not proven: it was not used again');
  assert.equal(reused.free, bfree);
  for (const taker of takers) await api.purge(taker);
});

test('one that takes much of the host is not, though there is little on it', ofImages, async () => {
  const { id } = await api.create();
  const touch = 'import os\nfor i in range(120000): os.close(os.open(f"{i}", os.O_CREAT))';
  await api.out(id, `mkdir /workspace/outputs/many && cd /workspace/outputs/many && python3 -c '${touch}'`);
  execFileSync('sync', ['-f', mountArea('disks', id)]); // the kernel writes the tables when it likes, and they count from then on
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
