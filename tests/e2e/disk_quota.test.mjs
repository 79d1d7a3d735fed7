// SPDX-License-Identifier: Apache-2.0
// Disks by project quota: each sandbox has a project of its own that nobody inside can leave, and the
// kernel has forgotten it when the sandbox is purged. What such disks have in common with images is in
// disk.test.mjs. Runs where temporary files are on ext4 or XFS mounted with prjquota, as `make vm` has it.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { Attacks, USERS } from './lib/attacks.mjs';
import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { MI, ulid } from './lib/values.mjs';
import { eachLimit, until } from './lib/wait.mjs';

/** The system call that no program of a minimal system makes: quotactl_fd(2), for projects. */
const QUOTACTL = `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(sys.argv[1], os.O_RDONLY)
def quotactl(command, id, buffer):
    return libc.syscall(443, fd, ctypes.c_uint((command << 8) | 2), ctypes.c_uint(id), buffer)
Q_GETNEXTQUOTA, Q_XQUOTAON, Q_XQUOTAOFF, Q_XGETQSTATV, ENFORCED = 0x800009, 0x5801, 0x5802, 0x5808, 32
`;
const python = (script) => execFileSync('python3', ['-c', QUOTACTL + script, os.tmpdir()], { encoding: 'utf8' });

const isEnforced = spawnSync('python3', ['-c', `${QUOTACTL}
state = ctypes.create_string_buffer(b'\\x01', 256)
sys.exit(0 if quotactl(Q_XGETQSTATV, 0, state) == 0 and state.raw[2] & ENFORCED else 1)`, os.tmpdir()]).status === 0;

/** Every project that the kernel counts something for or has a limit of. */
const projects = () => python(`
id, record = 0, ctypes.create_string_buffer(128)
while quotactl(Q_GETNEXTQUOTA, id, record) == 0:
    limit, _, space, file_limit, _, files = struct.unpack_from('6Q', record.raw)
    number, = struct.unpack_from('I', record.raw, 68)
    if number and (limit or space or file_limit or files): print(number)
    id = number + 1
`).split('\n').filter(Boolean).map(Number);

if (process.env.E2E_USER || !isEnforced) {
  const reason = isEnforced ? 'an ordinary user cannot set limits' : `the file system of ${os.tmpdir()} enforces no project quotas`;
  test('disks by project quota', { skip: reason }, () => {});
} else {
  await tests();
}

async function tests() {
  const { instance, api, finish } = await suite('disk-quota');
  const home = (id) => path.join(instance.dataDir, 'workspaces', `${id}.home`);
  const projectOf = (file) => Number(execFileSync('lsattr', ['-pd', file], { encoding: 'utf8' }).trim().split(/\s+/)[0]);

  test('it is a directory, without a mount or a loop device', async () => {
    const { id, walls } = await api.create({ resources: { disk: '64Mi' } });
    assert.equal(walls.disk, 'project_quota');
    assert.ok(fs.statSync(home(id)).isDirectory());
    assert.deepEqual(proc.mountLines(instance.keeper.pid, [`${instance.dataDir}/`]).filter((line) => line.includes(id) || line.includes('/loop')), []);
    assert.equal((await api.get(id)).walls.disk, 'project_quota');
    await api.purge(id);
  });

  test('all that a sandbox writes is of its project, whoever writes it and wherever', async () => {
    const { id } = await api.create();
    const places = ['/tmp', '/var/tmp', '/home/sandbox', '/workspace/outputs'];
    for (const user of USERS) await api.out(id, { command: places.map((place) => `mkdir -p ${place}/${user}/sub; echo x > ${place}/${user}/sub/file`).join('; '), user });
    await api.out(id, { command: 'echo changed >> /etc/profile; mv /etc/group /etc/moved; rm /etc/moved; chmod 700 /etc/passwd', user: 'root' });
    await api.put(id, '/workspace/agent_workspace/uploaded', 'x');
    await api.life(id, 'stop');
    await api.life(id, 'start');
    const project = projectOf(home(id));
    assert.ok(project > 0);
    const listed = execFileSync('sh', ['-c', `find '${home(id)}' ! -type l ! -type c -exec lsattr -pd {} +`], { encoding: 'utf8', maxBuffer: 64 * MI });
    const lines = listed.trim().split('\n').map((line) => line.trim().split(/\s+/));
    assert.ok(lines.length > 30, listed);
    assert.deepEqual(lines.filter(([number]) => Number(number) !== project), []);
    await api.purge(id);
  });

  test('nobody inside can leave the project or change its limit', async () => {
    const attacks = new Attacks(instance);
    const { id } = await api.create({ resources: { disk: '32Mi' } });
    const project = projectOf(home(id));
    for (const user of USERS) {
      const places = ['/tmp', '/workspace/outputs'];
      const { lines, result } = await attacks.run(id, 'project', { args: places, user });
      const tried = [...lines].filter(([what]) => !what.startsWith('project'));
      assert.equal(tried.length, 14, `not proven: ${JSON.stringify(result)}`);
      assert.deepEqual(tried.filter(([, came]) => came === 'done'), [], user);
      for (const place of places) for (const when of ['project', 'project afterwards']) assert.ok(['0', String(project)].includes(lines.get(`${when} ${place}`)), place);
      const after = execFileSync('sh', ['-c', `find '${home(id)}' -name attack -exec lsattr -pd {} +`], { encoding: 'utf8' }).trim().split('\n');
      assert.deepEqual(after.filter((line) => Number(line.trim().split(/\s+/)[0]) !== project), []);
      const { stdout } = await api.exec(id, { command: 'dd if=/dev/zero of=/tmp/attack/fill bs=1M count=64 2>&1; rm -r /tmp/attack /workspace/outputs/attack', user });
      assert.match(stdout, /No space left|Disk quota exceeded/);
    }
    await api.purge(id);
  });

  test('every sandbox has a project of its own, also one that takes the place of a purged one', async () => {
    const seen = new Set();
    const id = ulid();
    for (let i = 0; i < 5; i++) {
      await api.create({ id });
      await api.out(id, 'for n in $(seq 200); do echo x > /tmp/$n; done');
      seen.add(projectOf(home(id)));
      await api.purge(id);
    }
    const others = await eachLimit(Array.from({ length: 8 }), 8, async () => (await api.create()).id);
    for (const other of others) seen.add(projectOf(home(other)));
    assert.equal(seen.size, 13);
    await eachLimit(others, 8, (other) => api.purge(other));
  });

  test('the kernel forgets a project when its sandbox is purged', async () => {
    const { id } = await api.create();
    await api.out(id, 'echo x > /tmp/file');
    const project = projectOf(home(id));
    assert.ok(projects().includes(project), 'not proven: it is not counted');
    await api.life(id, 'stop');
    await api.purge(id);
    await until(() => !projects().includes(project), { what: 'it is gone' });
  });

  test('what a delete throws away is removed, and the workspace keeps its project', async () => {
    const { id } = await api.create({ resources: { disk: '64Mi' } });
    const project = projectOf(home(id));
    for (const isLongStopped of [false, true]) {
      await api.out(id, 'dd if=/dev/zero of=/var/tmp/fill bs=1M count=40; echo kept > /workspace/outputs/file');
      if (isLongStopped) {
        await api.life(id, 'stop');
        await delay(1000); // the keeper clears up once, soon after the end; a delete then has to make it do so again
      }
      await api.remove(id);
      await until(() => Number(execFileSync('du', ['-sm', home(id)], { encoding: 'utf8' }).split('\t')[0]) < 10, { what: 'the layer is removed' });
      await api.create({ id, resources: { disk: '64Mi' } });
      assert.equal(await api.out(id, 'cat /workspace/outputs/file; ls /var/tmp'), 'kept\n');
      assert.equal(projectOf(home(id)), project);
    }
    await api.purge(id);
  });

  test('where the quota is not enforced any more its sandbox does not start, unless no limits are wanted', async (t) => {
    const flags = (command) => python(`print(quotactl(${command}, 0, ctypes.byref(ctypes.c_uint(ENFORCED))))`).trim();
    const { id } = await api.create();
    await api.out(id, 'echo kept > /workspace/outputs/file');
    await api.life(id, 'stop');
    await instance.shutdown();
    try {
      if (flags('Q_XQUOTAOFF') !== '0') {
        t.skip('this file system cannot turn quotas off while it is mounted');
        return;
      }
      await instance.start();
      const refused = assertError(await api.verb(id, 'start'), 503);
      assert.equal(refused.code, 'wall_missing');
      assert.match(refused.message, /project quota/);
      await instance.shutdown();
      await instance.start(['--disk-limits=false']);
      assert.equal(await api.out(id, 'cat /workspace/outputs/file'), 'kept\n');
      await instance.shutdown();
    } finally {
      flags('Q_XQUOTAON');
      await instance.start();
    }
    assert.equal(await api.out(id, 'cat /workspace/outputs/file'), 'kept\n');
    assert.equal((await api.get(id)).walls.disk, 'project_quota');
    await api.purge(id);
  });

  finish();
}
