// SPDX-License-Identifier: Apache-2.0
// The disk of a sandbox: what it writes anywhere counts against one limit of bytes and one of files,
// the limit can be changed, what is freed comes back, and no loop device or mount is left behind.
// All of it holds for images and for project quotas; what is so by nature of one of them is marked.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { busybox, image as imageOf, layoutArchive } from './lib/images.mjs';
import { Instance } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { spares, withoutNewSpares } from './lib/spares.mjs';
import { suite } from './lib/suite.mjs';
import { GI, MI, ulid } from './lib/values.mjs';
import { eachLimit, PATIENCE, until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('disk');

/** Everything in a sandbox that can be written to, but for /dev/shm, which is memory. */
const PLACES = ['/tmp', '/var/tmp', '/home/sandbox', '/root', '/workspace/agent_workspace', '/workspace/outputs'];

/** What an image says when it is full, and what a project quota of ext4 says. */
const FULL = /No space left on device|Disk quota exceeded/;

const sample = await api.create();
const IS_IMAGE = sample.walls.disk === 'ext4_image';
const ofImages = { skip: IS_IMAGE ? false : `disks here are of the kind ${sample.walls.disk}` };
await api.purge(sample.id);

const fill = (file, count = 1000) => `dd if=/dev/zero of=${file} bs=64k count=${count * 16} 2>&1`;
const image = (own, at = instance) => path.join(at.dataDir, 'workspaces', `${own}.img`);
const home = (own, at = instance) => path.join(at.dataDir, 'workspaces', `${own}.home`);

/** What the disk of a sandbox takes of the host's. */
const hostBytes = (own) => (IS_IMAGE ? fs.statSync(image(own)).blocks * 512
  : Number(execFileSync('du', ['-s', '-B1', home(own)], { encoding: 'utf8' }).split('\t')[0]));

/** The loop devices of an instance, by the files behind them. */
const loops = (at) => proc.entries('/sys/block').filter((name) => name.startsWith('loop'))
  .map((name) => proc.quiet(() => fs.readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim(), ''))
  .filter((file) => file.startsWith(`${at.dataDir}/`));

/** Bytes of all files below the places, as root inside counts them. */
async function written(own) {
  return Number((await api.out(own, { command: `cat ${PLACES.map((place) => `${place}/fill`).join(' ')} 2>/dev/null | wc -c`, user: 'root' })).trim());
}

test('all that a sandbox writes counts against one limit, for root too', async () => {
  const { id } = await api.create({ resources: { disk: '64Mi' } });
  for (const place of PLACES) {
    const before = await written(id);
    const result = await api.exec(id, { command: fill(`${place}/fill`, 13), user: 'root' });
    if (before + 13 * MI < 63 * MI) assert.equal(result.exit_code, 0, `${place}: ${result.stdout}`);
    else assert.match(result.stdout, FULL, place);
  }
  const bytes = await written(id);
  assert.ok(bytes > 60 * MI && bytes <= 64 * MI, `${bytes} bytes were written`);
  for (const place of PLACES) {
    for (const user of ['root', 'sandbox']) {
      if (place === '/root' && user === 'sandbox') continue;
      const more = await api.exec(id, { command: fill(`${place}/more-${user}`), user });
      assert.match(more.stdout, FULL, `${place} as ${user}`);
      await api.out(id, { command: `rm ${place}/more-${user}`, user });
    }
  }
  const upload = await api.tryPut(id, '/workspace/outputs/upload', Buffer.alloc(8 * MI));
  const full = assertError(upload, [507]);
  assert.match(full.message, /the sandbox's own disk is full/);
  assert.equal(full.retryable, false, 'nothing changes by itself');
  assert.ok(hostBytes(id) < 64 * MI + 32 * MI, `the disk takes ${hostBytes(id)} bytes`);
  await api.purge(id);
});

test('what others write does not count, and theirs is not full', async () => {
  const { id: full } = await api.create({ resources: { disk: '32Mi' } });
  const { id: other } = await api.create({ resources: { disk: '32Mi' } });
  assert.match((await api.exec(full, fill('/tmp/fill'))).stdout, FULL);
  await api.out(other, fill('/tmp/fill', 20));
  await eachLimit([full, other], 2, (id) => api.purge(id));
});

test('the number of files is limited, and one that has none left starts again', async () => {
  const { id } = await api.create({ resources: { disk: '2Gi' } });
  const { disk: before } = await api.stats(id);
  assert.ok(before.limit_files > 100_000, JSON.stringify(before));
  const script = `
import os
made = 0
try:
    for directory in range(1000):
        os.mkdir(f'/tmp/many-{directory}')
        for file in range(1000):
            os.mknod(f'/tmp/many-{directory}/{file}')
            made += 1
except OSError as error:
    print(made, error.strerror)
`;
  const [, made, why] = /^(\d+) (.*)\n$/.exec(await api.out(id, { argv: ['python3', '-c', script], timeout_ms: 300_000 * PATIENCE }));
  assert.match(why, FULL);
  const { disk: now } = await api.stats(id);
  assert.equal(now.files, now.limit_files);
  assert.ok(Number(made) > 0.98 * now.limit_files, `${made} of ${now.limit_files}`);
  const failed = await api.exec(id, 'echo x > /workspace/outputs/one-more');
  assert.equal(failed.termination.reason, 'disk_full');
  await api.life(id, 'stop');
  await until(() => !loops(instance).some((file) => file.includes(id)), { what: 'its disk is unmounted' });
  await api.life(id, 'start');
  await api.out(id, 'rm -r /tmp/many-0 && echo x > /workspace/outputs/one-more');
  await api.purge(id);
});

test('the figures tell what is used, of how much, and whether it is enforced', async () => {
  const { id } = await api.create({ resources: { disk: '64Mi' } });
  const { disk: empty } = await api.stats(id);
  assert.equal(empty.limit_bytes, 64 * MI);
  assert.equal(empty.enforced, true);
  assert.ok(empty.used_bytes < MI, 'next to nothing at first');
  await api.out(id, `${fill('/tmp/fill', 10)}; for n in 1 2 3 4 5; do : > /tmp/$n; done; sync`);
  const { disk: used } = await api.stats(id);
  assert.ok(used.used_bytes - empty.used_bytes >= 10 * MI && used.used_bytes - empty.used_bytes < 11 * MI, JSON.stringify(used));
  assert.ok(used.files - empty.files >= 6 && used.files - empty.files < 12, JSON.stringify(used));
  await api.life(id, 'stop');
  await until(() => !loops(instance).some((file) => file.includes(id)), { what: 'its disk is unmounted' });
  const { disk: stopped } = await api.stats(id);
  assert.ok(Math.abs(stopped.used_bytes - used.used_bytes) < MI, 'the same when it is stopped');
  assert.equal(stopped.enforced, true);
  await api.purge(id);
});

test('a PATCH changes the limit at once, of a running, paused or stopped sandbox', async () => {
  const { id } = await api.create({ resources: { disk: '32Mi' } });
  const resize = async (disk) => {
    const answer = await api.patch(id, { resources: { disk } });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.resources.disk, disk);
    assert.equal((await api.stats(id)).disk.limit_bytes, parseInt(disk, 10) * MI);
  };
  const room = async () => Number(await api.out(id, "df -B1 --output=avail /workspace | tail -n 1"));
  assert.match((await api.exec(id, fill('/tmp/a'))).stdout, FULL);
  await resize('96Mi');
  await api.out(id, fill('/tmp/b', 50));
  await api.life(id, 'pause');
  await resize('128Mi');
  await api.life(id, 'resume');
  await api.out(id, fill('/tmp/c', 30));
  await api.life(id, 'stop');
  await resize('192Mi');
  await api.life(id, 'start');
  await api.out(id, fill('/tmp/d', 50));
  await resize('100Mi');
  assert.equal(await room(), 0, 'smaller than what is on it: nothing more fits');
  assert.match((await api.exec(id, fill('/tmp/e', 1))).stdout, FULL);
  await api.out(id, 'rm /tmp/b /tmp/d && sync');
  assert.ok(await room() > 20 * MI, 'what is there can be removed');
  assertError(await api.patch(id, { resources: { disk: '1Ki' } }), [400, 422]);
  assertError(await api.patch(id, { resources: { memory: '1Ki' } }), [400, 422]);
  assertError(await api.patch(id, { resources: { disk: '65Gi' } }), [400]);
  assert.equal((await api.get(id)).resources.disk, '100Mi', 'what is refused changes nothing');
  await api.purge(id);
});

test('a disk of more than 64 GiB is refused, one of 64 GiB is not', async () => {
  const answer = await api.request('POST', '/v1/sandboxes', { json: { resources: { disk: '65Gi' } } });
  assertError(answer, [400]);
  assert.equal(answer.json.error.code, 'disk_too_large');
  const { id } = await api.create({ resources: { disk: '64Gi' } });
  assert.equal((await api.stats(id)).disk.limit_bytes, 64 * GI);
  await api.purge(id);
});

test('a full sandbox stops, starts, resets and runs commands', async () => {
  const { id } = await api.create({ resources: { disk: '32Mi' } });
  assert.match((await api.exec(id, fill('/tmp/fill'))).stdout, FULL);
  for (let i = 0; i < 3; i++) {
    await api.life(id, 'stop');
    if (i > 0) await until(() => !loops(instance).some((file) => file.includes(id)), { what: 'its disk is unmounted' });
    await api.life(id, 'start');
    assert.match(await api.out(id, 'ls -s /tmp/fill; cat /proc/uptime'), /fill/);
    assert.match((await api.exec(id, 'echo x > /workspace/outputs/x; dd if=/dev/zero of=/tmp/y bs=1M count=4')).stderr, FULL);
  }
  await api.life(id, 'reset');
  await api.out(id, fill('/tmp/fill', 20));
  await api.purge(id);
});

test('what is deleted inside comes back to the host', async () => {
  const { id } = await api.create({ resources: { disk: '256Mi' } });
  await api.out(id, `${fill('/workspace/outputs/fill', 100)}; sync`);
  await until(() => hostBytes(id) > 100 * MI, { what: 'it is on the disk of the host' });
  await api.out(id, 'rm /workspace/outputs/fill; sync');
  await until(() => hostBytes(id) < 40 * MI, { what: 'the disk is small again' });
  await api.out(id, `${fill('/var/tmp/fill', 100)}; sync`);
  await api.remove(id);
  await until(() => hostBytes(id) < 40 * MI, { what: 'the system layer of a deleted sandbox takes no room' });
  await api.purge(id);
  await until(() => !fs.existsSync(image(id)) && !fs.existsSync(home(id)), { what: 'the disk is gone' });
});

test('the workspace stays on its disk over stop, delete, crash of the daemon and death of the keeper', async () => {
  const at = new Instance('disk-life');
  after(() => at.destroy());
  await at.start();
  const { api: own } = at;
  const { id } = await own.create({ resources: { disk: '64Mi' } });
  const check = async (what, layer) => {
    assert.equal(await own.out(id, 'cat /workspace/agent_workspace/file'), 'kept\n', what);
    assert.equal((await own.exec(id, 'cat /var/tmp/file')).exit_code, layer ? 0 : 1, `${what}: the system layer`);
    assert.equal((await own.stats(id)).disk.enforced, true, what);
    assert.match((await own.exec(id, `${fill('/tmp/fill')}; rm /tmp/fill`)).stdout, FULL, what);
  };
  await own.out(id, 'echo kept | tee /workspace/agent_workspace/file > /var/tmp/file');
  await own.life(id, 'stop');
  await own.life(id, 'start');
  await check('stop and start', true);
  await at.crash();
  await at.start();
  await check('a crash of the daemon', true);
  process.kill(at.keeper.pid, 'SIGKILL');
  await until(() => at.daemon.how, { what: 'the daemon leaves when its keeper is gone' });
  await until(() => loops(at).length === 0, { what: 'no loop device outlives the keeper' });
  await at.startSupervised();
  await check('the death of the keeper', true);
  await own.remove(id);
  await own.create({ id, resources: { disk: '64Mi' } });
  await check('delete and create', false);
  await own.remove(id);
  await until(() => !loops(at).some((file) => file.includes(id)), { what: 'its disk is unmounted' });
  await at.terminate();
  await at.start();
  await own.create({ id, resources: { disk: '64Mi' } });
  await check('delete, restart and create', false);
  await own.purge(id);
  await own.create({ id, resources: { disk: '64Mi' } });
  assert.equal((await own.exec(id, 'cat /workspace/agent_workspace/file')).exit_code, 1, 'a purge leaves nothing');
  await own.purge(id);
  await at.shutdown();
  await until(() => loops(at).length === 0, { what: 'no loop device outlives a shutdown' });
});

test('a kill of the keeper in the middle of many creates and deletes leaves no loop device', async () => {
  const at = new Instance('disk-kill');
  after(() => at.destroy());
  await at.start();
  for (let round = 0; round < 3; round++) {
    const churn = Array.from({ length: 8 }, async () => {
      for (;;) {
        const answer = await at.api.request('POST', '/v1/sandboxes', { json: {} });
        if (answer.status !== 201) return;
        await at.api.request('DELETE', `/v1/sandboxes/${answer.json.id}`);
      }
    });
    await until(() => proc.entries(path.join(at.dataDir, 'workspaces')).length > 20 * (round + 1), { what: 'some were made' });
    process.kill(at.keeper.pid, 'SIGKILL');
    await Promise.allSettled(churn);
    await until(() => at.daemon.how, { what: 'the daemon leaves when its keeper is gone' });
    await until(() => loops(at).length === 0, { what: 'no loop device is left' });
    await at.startSupervised();
    const { id } = await at.api.create();
    assert.equal(await at.api.out(id, 'echo works'), 'works\n');
    await at.api.purge(id);
  }
  await at.shutdown();
  await until(() => loops(at).length === 0, { what: 'no loop device outlives a shutdown' });
});

test('a hundred lives leave as many loop devices and mounts as there were', async () => {
  // One may be built ahead, or none, and mounts of a few uid ranges are kept (ahead.test.mjs). A loop device does not tell: its file had no name when it was set up.
  const ahead = () => proc.entries(path.join(instance.dataDir, 'spares')).filter((name) => name.startsWith('ahead-')).length;
  const count = () => ({ loops: loops(instance).length - (IS_IMAGE ? ahead() : 0), mounts: proc.mountLines(instance.keeper.pid, [instance.dataDir]).filter((line) => !/\/ahead-\d+|\/lowers\/(root|usr)-\d+ /.test(line)).length });
  const settled = count();
  assert.equal(settled.loops > 0, IS_IMAGE, 'not proven: there are no spares to be counted');
  const lives = Array.from({ length: 100 }, (_, i) => i);
  await eachLimit(lives, 8, async (i) => {
    const { id } = await api.create({ resources: { disk: '32Mi' } });
    if (i % 3 === 0) await api.out(id, fill('/tmp/fill', 2));
    if (i % 4 === 0) { await api.life(id, 'stop'); await api.life(id, 'start'); }
    if (i % 2 === 0) await api.remove(id);
    await api.purge(id);
  });
  await until(() => {
    assert.deepEqual(count(), settled);
    return true;
  }, { every: 100, what: 'as many as before' });
  assert.deepEqual(proc.stored(path.join(instance.dataDir, 'workspaces')), []);
});

test('one that starts while its disk is still being unmounted waits for it', async () => {
  const { id } = await api.create({ resources: { disk: '64Mi' } });
  await api.out(id, 'echo kept > /workspace/outputs/file');
  for (let i = 0; i < 10; i++) {
    await api.life(id, 'stop');
    await new Promise((resolve) => { setTimeout(resolve, 290 + 2 * i); }); // around the moment when it leaves
    await api.life(id, 'start');
    assert.equal(await api.out(id, 'cat /workspace/outputs/file'), 'kept\n');
  }
  await api.purge(id);
});

test('a disk that takes long to leave holds up no other, and leaves although who unmounts it is killed', ofImages, async () => {
  const children = () => proc.descendants([instance.keeper.pid]).filter((info) => info.ppid === instance.keeper.pid && info.state !== 'Z' && !proc.isSandboxInit(info.pid));
  const mounted = (what) => proc.mountLines(instance.keeper.pid).filter((line) => line.includes(what)).length;
  const helpers = children().map(({ pid }) => pid);
  const { id } = await api.create({ resources: { disk: '256Mi' } });
  const { id: other } = await api.create();
  await api.out(id, 'echo kept > /workspace/outputs/file; mkdir /var/tmp/many; cd /var/tmp/many; seq 60000 | xargs touch');
  await api.remove(id);
  const child = await until(() => mounted('/unmounting/') === 1 && children().find(({ pid }) => !helpers.includes(pid)), { every: 1, what: 'a child removes what was thrown away' });
  process.kill(child.pid, 'SIGSTOP');
  await until(() => proc.processInfo(child.pid)?.state === 'T', { what: 'the child stands still' });
  assert.equal(mounted('/unmounting/'), 1, 'not proven: the child was done already');
  await api.remove(other);
  await until(() => mounted(other) === 0 && mounted('/unmounting/') === 1, { what: 'the disk of the other is unmounted' });
  process.kill(child.pid, 'SIGKILL');
  await until(() => mounted('/unmounting/') === 0 && mounted(id) === 0, { what: 'the disk is unmounted all the same' });
  await until(() => hostBytes(id) < 40 * MI, { what: 'what was thrown away is gone' });
  await api.create({ id });
  assert.equal(await api.out(id, 'cat /workspace/outputs/file; ls /var/tmp'), 'kept\n');
  await eachLimit([id, other], 2, (own) => api.purge(own));
});

test('one that stops starts again although as many disks leave as may at a time, and take long', ofImages, async () => {
  const children = () => proc.descendants([instance.keeper.pid]).filter((info) => info.ppid === instance.keeper.pid && info.state !== 'Z' && !proc.isSandboxInit(info.pid));
  const mounted = (what) => proc.mountLines(instance.keeper.pid).filter((line) => line.includes(what)).length;
  await until(() => mounted('/unmounting/') === 0, { what: 'no disk leaves' });
  const helpers = children().map(({ pid }) => pid);
  const slow = await eachLimit(Array(8).fill(), 4, async () => (await api.create({ resources: { disk: '256Mi' } })).id);
  const { id } = await api.create();
  await eachLimit(slow, 4, (own) => api.out(own, 'mkdir /var/tmp/many; cd /var/tmp/many; seq 30000 | xargs touch'));
  const removed = eachLimit(slow, 8, (own) => api.remove(own));
  /** Those that clear up give way to all others. */
  const clearsUp = ({ pid }) => !helpers.includes(pid) && proc.quiet(() => os.getPriority(pid) > os.getPriority(instance.keeper.pid), false);
  const stopped = await until(() => {
    const busy = children().filter(clearsUp);
    for (const { pid } of busy) proc.quiet(() => process.kill(pid, 'SIGSTOP'));
    return busy.length === 8 && busy.every(({ state }) => state === 'T') && busy;
  }, { every: 1, what: 'eight children stand still' });
  await removed;
  assert.equal(mounted('/unmounting/'), 8, 'not proven: a child was done already');
  await api.life(id, 'stop');
  await new Promise((resolve) => { setTimeout(resolve, 600); }); // its disk could have left by now
  await api.life(id, 'start').finally(() => stopped.forEach(({ pid }) => process.kill(pid, 'SIGCONT')));
  await until(() => mounted('/unmounting/') === 0, { what: 'all have left' });
  await eachLimit([...slow, id], 4, (own) => api.purge(own));
});

test('helpers of the keeper have neither its listener nor its lock, do not end it, and are replaced when they end', async () => {
  const helpers = () => proc.descendants([instance.keeper.pid]).filter((info) => info.ppid === instance.keeper.pid && info.state !== 'Z' && !proc.isSandboxInit(info.pid));
  const count = IS_IMAGE ? 5 : 4; // quotas need no disk pool
  const first = await until(() => (helpers().length === count ? helpers() : null), { what: 'the helpers are there: trash remover, disk trimmer, snapshot writer, netns pool, disk pool' });
  for (const { pid } of first) {
    const held = proc.descriptorTargets(pid).filter((target) => /keeper\.lock|socket:|eventpoll|signalfd|kmsg|cgroup/.test(target));
    if (proc.descriptorTargets(pid).some((target) => target.startsWith('net:'))) assert.match(held.join(), /^socket:\[\d+\],socket:\[\d+\]$/, 'the wirer passes networks on');
    else assert.deepEqual(held, []);
  }
  process.kill(instance.keeper.pid, 'SIGABRT'); // as one of them does that aborts
  for (const { pid } of first) process.kill(pid, 'SIGKILL');
  await until(() => helpers().length === count && !helpers().some(({ pid }) => first.some((old) => old.pid === pid)), { what: 'there are others' });
  const { id } = await api.create();
  await api.put(id, '/workspace/outputs/x', 'x');
  await api.purge(id);
  await until(() => proc.entries(path.join(instance.dataDir, 'trash')).length === 0 && proc.entries(path.join(instance.dataDir, 'spares')).length > (IS_IMAGE ? 8 : 0), { what: 'they work' });
});

test('a disk leaves although the keeper was out of descriptors when its time came', ofImages, async () => {
  const { pid } = instance.keeper;
  const limit = (most) => execFileSync('prlimit', ['--pid', String(pid), `--nofile=${most}:`]);
  const [, most] = /Max open files +(\d+)/.exec(fs.readFileSync(`/proc/${pid}/limits`, 'utf8'));
  const { id } = await api.create();
  await api.life(id, 'stop');
  limit(3); // those that it has it keeps
  await new Promise((resolve) => { setTimeout(resolve, 600); });
  limit(most);
  await until(() => !proc.mountLines(pid).some((line) => line.includes(id)), { what: 'its disk is unmounted' });
  await api.purge(id);
});

test('a new sandbox of a purged id finds nothing of the old one', async () => {
  const id = ulid();
  for (let i = 0; i < 5; i++) {
    await api.create({ id, resources: { disk: '32Mi' } });
    assert.equal(await api.out(id, 'find /workspace/*/ /tmp /var/tmp -type f'), '');
    await api.out(id, `echo secret-${i} | tee /tmp/a > /workspace/outputs/a`);
    await api.purge(id);
  }
});

test('limits can be off; workspaces from then stay as they are, and new ones get theirs', async () => {
  const at = new Instance('disk-off');
  after(() => at.destroy());
  await at.start(['--disk-limits=false']);
  const { id: old } = await at.api.create({ resources: { disk: '16Mi' } });
  await at.api.out(old, `${fill('/tmp/fill', 20)}; echo kept > /workspace/outputs/file`);
  assert.equal((await at.api.stats(old)).disk.enforced, false);
  assert.equal((await at.api.stats(old)).disk.limit_files, null);
  assert.deepEqual(loops(at), []);
  await at.terminate();
  await at.start();
  assert.equal(await at.api.out(old, 'cat /workspace/outputs/file'), 'kept\n');
  await at.api.life(old, 'stop');
  await at.api.life(old, 'start');
  assert.equal(await at.api.out(old, 'cat /workspace/outputs/file'), 'kept\n');
  assert.equal((await at.api.patch(old, { resources: { disk: '32Mi' } })).status, 200);
  const { id: limited } = await at.api.create({ resources: { disk: '16Mi' } });
  assert.match((await at.api.exec(limited, fill('/tmp/fill'))).stdout, FULL);
  await at.terminate();
  await at.start(['--disk-limits=false']);
  assert.match((await at.api.exec(limited, fill('/tmp/more', 20))).stdout, FULL, 'one that runs keeps its limit');
  assert.equal((await at.api.patch(limited, { resources: { disk: '24Mi' } })).status, 200);
  await at.api.out(limited, fill('/tmp/more', 20));
  await at.api.life(limited, 'stop');
  await at.api.life(limited, 'start');
  await at.api.out(limited, fill('/tmp/more', 20));
  assert.equal((await at.api.stats(limited)).disk.enforced, false);
  await eachLimit([old, limited], 2, (id) => at.api.purge(id));
  await at.shutdown();
});

test('without loop devices nothing is built, unless that wall may be missing or no limits are wanted', ofImages, async () => {
  const at = new Instance('disk-none');
  after(() => at.destroy());
  const hidden = path.join(at.home, 'hidden');
  fs.writeFileSync(hidden, `#!/bin/sh\nmount --bind /dev/null /dev/loop-control && exec "$@"\n`, { mode: 0o755 });
  at.wrapper = ['unshare', '--mount', hidden];
  await at.start();
  assert.match(at.log(), /disks of new sandboxes will have no limit/);
  assert.equal(assertError(await at.api.request('POST', '/v1/sandboxes', { json: {} }), 503).code, 'wall_missing');
  await at.shutdown();
  for (const args of [['--allow-missing', 'disk'], ['--disk-limits=false']]) {
    await at.start(args);
    const { id, walls } = await at.api.create();
    assert.equal(walls.disk, null);
    assert.equal((await at.api.stats(id)).disk.enforced, false);
    assert.equal(await at.api.out(id, 'echo works'), 'works\n');
    await at.api.purge(id);
    await at.shutdown();
  }
});

test('when the host has less than its reserve nothing is created', async () => {
  const at = new Instance('disk-reserve');
  after(() => at.destroy());
  await at.start(['--disk-reserve', '1024Ti'], { isReady: false });
  const answer = await at.api.request('POST', '/v1/sandboxes', { json: {} });
  assertError(answer, [507]);
  assert.deepEqual(proc.stored(path.join(at.dataDir, 'workspaces')), []);
  assert.deepEqual(await at.api.all(), []);
  await at.shutdown();
});

test('an image that a crash of the host left behind unclean is mended by its journal', ofImages, async () => {
  const { id } = await api.create({ resources: { disk: '64Mi' } });
  await api.out(id, 'mkdir /workspace/outputs/d; echo kept > /workspace/outputs/d/file; sync; echo lost > /workspace/outputs/late');
  const copy = path.join(instance.home, 'copy.img');
  execFileSync('cp', ['--sparse=always', image(id), copy]); // what the disk holds at this moment
  await api.life(id, 'stop');
  await until(() => !loops(instance).some((file) => file.includes(id)), { what: 'its disk is unmounted' });
  fs.renameSync(copy, image(id));
  await api.life(id, 'start');
  assert.equal(await api.out(id, 'cat /workspace/outputs/d/file'), 'kept\n');
  await api.purge(id);
});

test('a disk that is a spare again has forgotten its owner, also after a crash of the host', ofImages, async () => {
  const { id } = await api.create();
  await api.out(id, 'echo secret > /workspace/outputs/secret; sync');
  const spare = await withoutNewSpares(instance, async () => {
    await api.create();
    const before = spares(instance);
    await api.purge(id);
    return until(() => spares(instance).find((name) => !before.includes(name) && proc.mountLines(instance.keeper.pid, [`/spares/${name} `]).length > 0), { what: 'its disk is a spare' });
  });
  const copy = path.join(instance.home, 'spare.img');
  execFileSync('cp', ['--sparse=always', path.join(instance.dataDir, 'spares', spare), copy]); // what the disk holds at this moment
  assert.ok(spawnSync('e2fsck', ['-fp', copy]).status < 4, 'not proven: the copy is no whole file system');
  assert.equal(execFileSync('debugfs', ['-R', 'ls -p /home/workspace/outputs', copy], { encoding: 'utf8', stdio: 'pipe' }).includes('secret'), false);
});

/** What df inside says of the disk: its size is the limit, and what is used and what is left make it up. */
async function dfShows(id, limit) {
  for (const place of ['/workspace', '/', '/tmp']) {
    const [size, used, available] = (await api.out(id, `df -B1 ${place} | awk 'END { print $2, $3, $4 }'`)).split(' ').map(Number);
    assert.equal(size, used + available, place);
    assert.ok(size <= limit && size > 0.9 * limit, `${place}: ${size}`);
  }
}

test('df shows the limit of the disk as its size', async () => {
  const { id } = await api.create({ resources: { disk: '1Gi' } });
  await dfShows(id, GI);
  assert.match(await api.out(id, 'df -h /workspace'), /^Filesystem +Size +Used Avail Use% Mounted on\n\S+ +(1\.0G|9\d\dM|10\d\dM) .* \/workspace\n$/);
  assert.match(await api.out(id, 'df -i /workspace'), /IFree/);
  assert.deepEqual([(await api.exec(id, 'df /nowhere')).exit_code, (await api.exec(id, 'df /tmp')).exit_code], [1, 0], 'its exit code is that of df');
  await api.purge(id);
});

test('df shows the new limit at once when it is changed, also after a start, and in a sandbox that got a used disk', async () => {
  const { id } = await api.create({ resources: { disk: '1Gi' } });
  for (const [disk, limit] of [['2Gi', 2 * GI], ['512Mi', 512 * MI]]) {
    assert.equal((await api.request('PATCH', `/v1/sandboxes/${id}`, { json: { resources: { disk } } })).status, 200);
    await dfShows(id, limit);
  }
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await dfShows(id, 512 * MI);
  await api.purge(id);
  if (!IS_IMAGE) return;
  await withoutNewSpares(instance, async () => {
    const taken = [];
    const isSpare = (inode) => spares(instance).some((name) => proc.quiet(() => fs.statSync(path.join(instance.dataDir, 'spares', name)).ino) === inode);
    // A disk is kept as a spare only while one is lacking: each round takes one more.
    const inode = await until(async () => {
      taken.push((await api.create()).id);
      const discarded = (await api.create({ resources: { disk: '512Mi' } })).id;
      const { ino } = fs.statSync(image(discarded));
      await api.purge(discarded);
      return (await until(() => isSpare(ino), { timeout_ms: 2000 }).catch(() => false)) && ino;
    }, { what: 'a discarded disk is a spare' });
    // Others may be taken first; the one with this file gets it in the end.
    const heir = await until(async () => {
      taken.push((await api.create({ resources: { disk: '256Mi' } })).id);
      return fs.statSync(image(taken.at(-1))).ino === inode && taken.at(-1);
    }, { what: 'a sandbox gets that disk' });
    await dfShows(heir, 256 * MI);
    await eachLimit(taken, 4, (one) => api.purge(one));
  });
});

test("the df of an image shows what is left of the limit, whatever it says of the disk's size", async () => {
  const { status } = await api.request('PUT', '/v1/templates/small/archive', { body: layoutArchive(imageOf([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(status, 200);
  const { id } = await api.create({ template: 'small', resources: { disk: '256Mi' } });
  for (const place of ['/', '/workspace']) {
    const [, , used, available] = (await api.out(id, `/bin/busybox df -k ${place}`)).trim().split('\n').at(-1).split(/ +/);
    assert.ok(available * 1024 <= 256 * MI && available * 1024 > 200 * MI, `${place}: ${available} KiB`);
    assert.ok(used * 1024 < MI, `${place}: ${used} KiB used`);
  }
  await api.purge(id);
  assert.equal((await api.request('DELETE', '/v1/templates/small')).status, 204);
});

finish();
