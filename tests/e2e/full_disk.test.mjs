// SPDX-License-Identifier: Apache-2.0
// The disk of the host is full: nothing is destroyed, what was acknowledged stays, and everybody is told the truth. The
// data directory is on a small file system of its own.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { after, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError, parseEvents } from './lib/client.mjs';
import { busybox, image as makeImage, layoutArchive, registryServer } from './lib/images.mjs';
import { Instance } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { SmallDisk } from './lib/small_disk.mjs';
import { tar } from './lib/tar.mjs';
import { MI } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const RESERVE = 48 * MI;
const FULL = /the disk of the host is full/;

if (process.env.E2E_USER) test('the disk of the host is full', { skip: 'disks of an ordinary user are directories, on which the host refuses writes by itself' }, () => {});
else await tests();

async function tests() {
  const images = {};
  const registry = await registryServer(images);
  const instance = new Instance('full-disk', { args: ['--disk-reserve', String(RESERVE), '--registry', registry.host, '--registry-prefix', '', '--registry-plain', registry.host] });
  const { api } = instance;
  const { sandlot } = commandLine(instance);
  const disk = new SmallDisk(instance, 320);

  after(async () => {
    try {
      if (!instance.daemon?.how) await instance.shutdown();
    } finally {
      registry.close();
      instance.destroy(); // ends whatever a failed test has left, so that it can be unmounted
      await disk.remove();
      fs.rmSync(instance.home, { recursive: true, force: true });
    }
  });
  process.on('exit', () => {
    instance.destroy();
    spawnSync('umount', ['-l', disk.place]);
  });
  await instance.start();

  const image = (id) => path.join(instance.dataDir, 'workspaces', `${id}.img`);

  /** The loop device of the disk of a running sandbox: the keeper has that mounted at disks/<id>. */
  function loop(id) {
    const [line] = proc.mountLines(instance.keeper.pid, [`/disks/${id} `]);
    return path.basename(fs.readlinkSync(`/sys/dev/block/${line.split(' ')[2]}`));
  }

  /** Whoever has it mounted holds the lock of the file. */
  const unmounted = (id) => until(() => spawnSync('flock', ['-n', image(id), 'true']).status === 0, { what: `the disk of ${id} is unmounted` });

  /** Stops a sandbox and waits until its disk is unmounted. */
  async function stop(id) {
    assert.equal((await api.life(id, 'stop')).status, 'stopped');
    await unmounted(id);
  }

  /** The text of /readyz, which is no document. */
  async function readiness() {
    const answer = await fetch(`http://127.0.0.1:${api.port}/readyz`);
    return { status: answer.status, text: await answer.text() };
  }

  /** Runs fn while only so many bytes of the disk are free. */
  async function whileFull(left, fn) {
    disk.fill(left);
    try {
      return await fn();
    } finally {
      disk.empty();
      await until(async () => (await readiness()).status === 200, { what: 'there is room again' });
    }
  }

  function assertFull(answer) {
    const error = assertError(answer, 507, FULL);
    assert.equal(error.code, 'out_of_disk');
    assert.match(error.remediation, /purge/);
  }

  test('below the reserve nothing is created, started or uploaded; what runs goes on', async () => {
    const { id } = await api.create();
    const { id: stopped } = await api.create();
    await api.out(id, 'echo kept > /workspace/outputs/file');
    await stop(stopped);
    await whileFull(RESERVE / 2, async () => {
      assertFull(await api.request('POST', '/v1/sandboxes', { json: {} }));
      assertFull(await api.verb(stopped, 'start'));
      assertFull(await api.tryExec(stopped, 'true'));
      assert.equal((await api.get(stopped)).status, 'stopped');
      assertFull(await api.tryPut(id, '/workspace/outputs/file', 'new'));
      assertFull(await api.putArchive(id, '/workspace/outputs', tar([{ name: 'file', data: 'new' }])));
      assert.equal(await api.out(id, 'cat /workspace/outputs/file; echo small > /workspace/outputs/small'), 'kept\n');
      const { stdout, truncated } = await api.exec(id, "head -c 300000 /dev/zero | tr '\\0' x");
      assert.ok(truncated && stdout.length <= 32 * 1024, `${stdout.length} bytes of output are held, of which no more than memory takes`);
      const { status, text } = await readiness();
      assert.equal(status, 503);
      assert.match(text, FULL);
      assert.match((await sandlot(['doctor'])).stdout, /^FAIL ready: the disk of the host is full/m);
    });
    assert.equal(await api.out(stopped, 'echo woken'), 'woken\n');
    await api.purge(id);
    await api.purge(stopped);
  });

  test('disks are full inside before the host is, and grow again when there is room', async () => {
    const { id } = await api.create({ resources: { disk: '200Mi' } });
    const write = (name, count) => api.exec(id, `dd if=/dev/zero of=/workspace/outputs/${name} bs=1M count=${count} 2>&1`);
    const room = async () => Number(await api.out(id, "stat -f -c '%a * %S' /workspace | xargs expr"));
    await whileFull(RESERVE / 2, async () => {
      await until(async () => (await room()) < 8 * MI, { what: 'its disk is kept from growing' });
      assert.match((await write('fill', 40)).stdout, /No space left on device/);
      assert.ok(disk.free > 0, 'the host has room for what was taken');
      await api.out(id, 'sync');
    });
    await until(async () => (await room()) > 100 * MI, { what: 'its disk may grow' });
    assert.equal((await write('fill', 40)).exit_code, 0);
    await api.purge(id);
  });

  // Random bytes fill the disk when they are fetched, others when they are unpacked.
  const packed = (compress, ...items) => makeImage([busybox(), items], { compress });
  const stored = (data) => zlib.gzipSync(data, { level: 0 });
  const large = {
    'whose layers are large': packed(stored, { name: 'random', data: crypto.randomBytes(64 * MI) }),
    'that unpacks to much more': packed(zlib.gzipSync, { name: 'zeros', data: Buffer.alloc(64 * MI) }),
    'of very many small files': packed(zlib.gzipSync, ...Array.from({ length: 12000 }, (_, i) => ({ name: `${i}`, data: 'x'.repeat(4096) }))),
  };
  const ways = {
    fetched: async (made) => {
      images['large:v1'] = made;
      const { status, json } = await api.request('POST', '/v1/templates', { json: { name: 'large', image: 'large:v1' } });
      assert.equal(status, 202);
      const job = await until(async () => { const { json: now } = await api.request('GET', `/v1/jobs/${json.job}`); return now.ended_at && now; }, { what: 'its build ends' });
      assert.deepEqual([job.state, job.error.code], ['failed', 'out_of_disk']);
      assert.match(job.error.message, FULL);
      assert.notEqual((await api.request('GET', '/v1/templates/large')).json.status, 'ready');
      await api.request('DELETE', '/v1/templates/large');
    },
    imported: async (made) => assertFull(await api.request('PUT', '/v1/templates/large/archive', { body: layoutArchive(made), headers: { 'content-type': 'application/x-tar' } })),
  };
  for (const [what, made] of Object.entries(large)) {
    for (const [way, bring] of Object.entries(ways)) {
      test(`an image ${what} is ${way} only as far as the reserve, and nothing of it stays`, async () => {
        const beside = () => ['state/blobs', 'layers/.new'].flatMap((name) => fs.readdirSync(path.join(instance.dataDir, name)));
        await whileFull(RESERVE + 40 * MI, async () => {
          let least = disk.free;
          const watch = setInterval(() => { least = Math.min(least, disk.free); }, 1);
          await bring(made).finally(() => clearInterval(watch));
          assert.ok(least >= RESERVE, `${least} bytes were free at some time`);
          assert.deepEqual(beside(), []);
          await until(() => disk.free > RESERVE + 30 * MI, { what: 'what was written is gone' });
        });
        assert.equal((await api.request('GET', '/v1/templates/large')).status, 404);
      });
    }
  }

  test('starts on a full disk destroy nothing', async () => {
    const { id } = await api.create();
    await api.out(id, 'for i in $(seq 200); do echo $i > /workspace/outputs/$i; done');
    await stop(id);
    await whileFull(0, async () => {
      for (let i = 0; i < 4; i++) {
        assertFull(await api.verb(id, 'start'));
        assert.equal((await api.verb(id, 'stop')).status, 200);
        await unmounted(id);
      }
    });
    assert.equal(await api.out(id, 'cat /workspace/outputs/* | sort -n | md5sum; ls /workspace/outputs | wc -l'), `${crypto.createHash('md5').update(Array.from({ length: 200 }, (_, i) => `${i + 1}\n`).join('')).digest('hex')}  -\n200\n`);
    await api.purge(id);
  });

  test('what was acknowledged is there after a stop and a start with a full disk in between', async () => {
    const { id } = await api.create();
    const content = crypto.randomBytes(2 * MI);
    const files = ['/workspace/outputs/new', '/home/sandbox/new', '/workspace/outputs/old', '/workspace/outputs/packed'];
    await api.put(id, files[2], 'old');
    for (const file of files.slice(0, 3)) await api.put(id, file, content);
    assert.equal((await api.putArchive(id, '/workspace/outputs', tar([{ name: 'packed', data: content }]))).status, 200);
    assert.equal((await api.mkdir(id, '/workspace/outputs/directory')).status, 201);
    assert.equal((await api.move(id, files[0], '/workspace/outputs/directory/new')).status, 200);
    files[0] = '/workspace/outputs/directory/new';
    await whileFull(0, () => stop(id));
    for (const file of files) assert.ok((await api.read(id, file)).equals(content), file);
    await api.purge(id);
  });

  test('content that the host does not take gets no name, also where no reserve keeps it out', async () => {
    const { id } = await api.create();
    const [fresh, old] = ['/workspace/outputs/fresh', '/workspace/outputs/old'];
    await api.put(id, old, 'old');
    await instance.terminate();
    await instance.start(['--disk-reserve', '0']);
    disk.fill();
    const answers = [
      await api.tryPut(id, fresh, crypto.randomBytes(2 * MI)), await api.tryPut(id, old, crypto.randomBytes(2 * MI)),
      await api.putArchive(id, '/workspace/outputs', tar([{ name: 'old', data: crypto.randomBytes(2 * MI) }])),
    ];
    disk.empty();
    for (const answer of answers) assertError(answer, 507);
    const look = async () => {
      assertError(await api.files('GET', id, fresh), 404);
      assert.equal((await api.read(id, old)).toString(), 'old');
    };
    await look();
    await stop(id);
    await look();
    await api.purge(id);
    await instance.terminate();
    await instance.start();
  });

  test('a disk that could not be written to is checked and mended before it is mounted', async () => {
    const { id } = await api.create({ resources: { disk: '200Mi' } });
    await api.out(id, 'mkdir /workspace/outputs/d; echo kept > /workspace/outputs/d/file; sync');
    await whileFull(0, async () => {
      await api.exec(id, 'for i in $(seq 500); do mkdir -p /workspace/outputs/$i/x; done; sync');
      await stop(id);
    });
    execFileSync('debugfs', ['-w', '-R', 'set_super_value state 2', image(id)], { stdio: 'ignore' }); // "errors were met"
    assert.equal(await api.out(id, 'cat /workspace/outputs/d/file; echo more > /workspace/outputs/more'), 'kept\n');
    assert.match(instance.log(), new RegExp(`the disk of sandbox ${id} was checked and is in order`));
    await stop(id);
    assert.equal(spawnSync('e2fsck', ['-fn', image(id)]).status, 0);
    await api.purge(id);
  });

  test('one that cannot be mended is kept and named, and can be purged', async () => {
    const { id } = await api.create();
    await stop(id);
    const fd = fs.openSync(image(id), 'r+');
    fs.writeSync(fd, crypto.randomBytes(MI), 0, MI, 0);
    fs.closeSync(fd);
    const before = fs.statSync(image(id));
    for (const call of [() => api.verb(id, 'start'), () => api.tryExec(id, 'true')]) {
      const error = assertError(await call(), 409, new RegExp(`the disk of sandbox ${id} is not in order: e2fsck could not mend it`));
      assert.equal(error.code, 'disk_damaged');
      assert.match(error.remediation, /nothing of it was deleted: mend workspaces\/<id>\.img/);
    }
    const { status, error_message: message } = await api.get(id);
    assert.equal(status, 'error');
    assert.match(message, /e2fsck could not mend it .*workspaces\/<id>\.img/);
    assert.equal(fs.statSync(image(id)).ino, before.ino);
    assert.equal((await api.verb(id, 'purge')).status, 204);
    assert.ok(!fs.existsSync(image(id)));
  });

  test('a disk that ext4 gave up is told: by the sandbox, in an event, by doctor, in answers', async () => {
    const { id } = await api.create();
    await api.put(id, '/workspace/outputs/kept', 'kept');
    assert.equal(assertError(await api.mkdir(id, '/usr/new'), 403).code, 'read_only');
    const response = await new Promise((resolve, reject) => {
      api.open('GET', `/v1/sandboxes/${id}/events`, { headers: { accept: 'text/event-stream' }, agent: api.newAgent() }, (error, answer) => (error ? reject(error) : resolve(answer)));
    });
    fs.writeFileSync(`/sys/fs/ext4/${loop(id)}/trigger_fs_error`, 'test');
    for await (const { event, data } of parseEvents(response)) {
      if (event !== 'sandbox.disk_failed') continue;
      assert.equal(data.sandbox, id);
      break;
    }
    response.destroy();
    const failed = await api.get(id);
    assert.equal(failed.status, 'running');
    assert.match(failed.error_message, /takes no more writes.*stop and start/);
    assert.match((await sandlot(['doctor'])).stdout, new RegExp(`^warn sandboxes: 1 with an error: ${id}: the disk failed`, 'm'));
    const writes = [
      () => api.tryPut(id, '/workspace/outputs/file', 'x'), () => api.tryPut(id, '/home/sandbox/file', 'x'), () => api.mkdir(id, '/workspace/outputs/new'),
      () => api.files('DELETE', id, '/workspace/outputs/kept'), () => api.putArchive(id, '/workspace/outputs', tar([{ name: 'file', data: 'x' }])),
    ];
    for (const write of writes) assert.equal(assertError(await write(), 507, /the disk of the sandbox failed/).code, 'disk_failed');
    for (const file of ['/workspace/outputs/file', '/home/file']) {
      const error = assertError(await api.request('PUT', `/v1/sandboxes/${id}/files?path=${file}`, { body: 'x' }), 507, /the disk of the sandbox failed/);
      assert.equal(error.code, 'disk_failed');
      assert.match(error.remediation, /stop and start the sandbox/);
    }
    await stop(id);
    await api.put(id, '/workspace/outputs/file', 'x');
    assert.equal((await api.read(id, '/workspace/outputs/kept')).toString(), 'kept');
    assert.equal((await api.get(id)).error_message, null);
    assert.equal(assertError(await api.request('PUT', `/v1/sandboxes/${id}/files?path=/workspace/project_files/file`, { body: 'x' }), 403).code, 'read_only', 'which is meant to be');
    await api.purge(id);
  });

  for (const [what, remove] of [['a reset emptied', (id) => api.verb(id, 'reset')], ['was deleted', (id, file) => api.files('DELETE', id, file)]]) {
    test(`what ${what} is gone also when the disk fails right after it`, async () => {
      const { id } = await api.create();
      const file = '/workspace/outputs/file';
      await api.put(id, file, 'x');
      assert.ok((await remove(id, file)).status < 300);
      fs.writeFileSync(`/sys/fs/ext4/${loop(id)}/trigger_fs_error`, 'test');
      await stop(id);
      assertError(await api.files('GET', id, file), 404);
      await api.purge(id);
    });
  }

  test('on a full disk a stop and a purge are written down, and the daemon starts and serves', async () => {
    const [running, stopped, purged] = await Promise.all([api.create(), api.create(), api.create()]).then((all) => all.map(({ id }) => id));
    disk.fill();
    await stop(stopped);
    disk.fill();
    assert.equal((await api.verb(purged, 'purge')).status, 204);
    const statuses = async () => Object.fromEntries((await api.all()).map(({ id, status }) => [id, status]));
    assert.deepEqual(await statuses(), { [running]: 'running', [stopped]: 'stopped' });
    disk.fill();
    await instance.terminate();
    disk.fill();
    await instance.start([], { isReady: false });
    assert.deepEqual(await statuses(), { [running]: 'running', [stopped]: 'stopped' });
    assert.equal(await api.out(running, 'echo alive'), 'alive\n');
    await instance.shutdown();
    disk.fill();
    await instance.start([], { isReady: false });
    assert.match((await readiness()).text, FULL);
    assert.deepEqual(await statuses(), { [running]: 'stopped', [stopped]: 'stopped' });
    disk.fill();
    assert.equal((await api.verb(stopped, 'purge')).status, 204);
    disk.empty();
    await until(async () => (await readiness()).status === 200, { what: 'there is room again' });
    assert.equal(await api.out(running, 'echo alive'), 'alive\n');
    assert.equal(await api.out((await api.create()).id, 'echo alive'), 'alive\n');
  });
}
