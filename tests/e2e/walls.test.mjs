// SPDX-License-Identifier: Apache-2.0
// Which walls a sandbox has is told, and where the host lacks one nothing is built unless the operator said so.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { Instance } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('walls');
const NAMES = ['agent', 'capabilities', 'core_dumps', 'cpu', 'disk', 'filesystem', 'keyring', 'masked_paths', 'memory', 'namespaces', 'network', 'no_new_privs', 'pids', 'seccomp', 'user_namespace'];

test('a running sandbox names its walls, and they are what the host sees', async () => {
  const created = await api.create();
  const { id, walls } = await api.get(created.id);
  assert.deepEqual(Object.keys(walls).sort(), NAMES);
  assert.deepEqual(created.walls, walls);
  const init = await instance.initOf(id);
  assert.equal(walls.seccomp, 'default');
  assert.equal(proc.statusField(init.pid, 'Seccomp'), '2');
  assert.equal(walls.no_new_privs, 'set');
  assert.equal(proc.statusField(init.pid, 'NoNewPrivs'), '1');
  const caps = BigInt(`0x${proc.statusField(init.pid, 'CapBnd')}`).toString(2).replaceAll('0', '').length;
  assert.equal(walls.capabilities, `${caps}_kept`);
  const kinds = { cgroup: 'cgroup', ipc: 'ipc', mount: 'mnt', network: 'net', pid: 'pid', uts: 'uts' };
  assert.equal(walls.namespaces, Object.keys(kinds).join(','));
  for (const kind of [...Object.values(kinds), 'user']) assert.notEqual(proc.namespace(init.pid, kind), proc.namespace('self', kind), kind);
  assert.match(fs.readFileSync(`/proc/${init.pid}/limits`, 'utf8'), /^Max core file size +1 +1 /m);
  assert.equal(walls.core_dumps, 'held_off');
  if (instance.account) assert.equal(walls.disk, null);
  else assert.match(walls.disk, /^(ext4_image|project_quota)$/);
  const groups = fs.readFileSync(`/proc/${init.pid}/cgroup`, 'utf8');
  for (const [name, without] of [['memory', null], ['cpu', null], ['pids', 'rlimit']]) {
    if (instance.hasCgroups) assert.match(walls[name], /^cgroup_v[12]$/);
    else assert.equal(walls[name], without, name);
    if (walls[name] === 'cgroup_v1') assert.match(groups, new RegExp(`^\\d+:([a-z,]*,)?${name}(,[a-z,]*)?:.*(${id}|ahead-\\d+)`, 'm'));
  }
  await api.purge(id);
});

test('they are told again by a new daemon, and not of one that does not run', async () => {
  const { id, walls } = await api.create();
  await instance.crash();
  await instance.start();
  assert.deepEqual((await api.get(id)).walls, walls);
  assert.equal((await api.life(id, 'stop')).walls, null);
  assert.deepEqual((await api.life(id, 'start')).walls, walls);
  assert.deepEqual((await api.list()).sandboxes.find((sandbox) => sandbox.id === id).walls, walls);
  await api.purge(id);
});

test('who creates a sandbox chooses among the templates that are offered, and no profile', async () => {
  for (const body of [{ template: 'browser' }, { template: 'unconfined' }, { template: 'host ' }, { profile: 'browser' }, { seccomp: 'unconfined' }, { privileged: true }, { walls: {} }]) {
    assertError(await api.request('POST', '/v1/sandboxes', { json: body }), 400);
  }
});

/** A command line that takes the memory controller away: the mount of its hierarchy on v1; on v2 by a root that was not given it. */
const FORGET_MEMORY = fs.existsSync('/sys/fs/cgroup/memory/tasks')
  ? ['unshare', '-m', 'sh', '-c', 'umount /sys/fs/cgroup/memory && exec "$0" "$@"']
  : ['sh', '-ec', `
      top=/sys/fs/cgroup/walls-$$
      mkdir $top $top/root $top/root/daemon
      echo +cpu +pids > $top/cgroup.subtree_control
      echo $$ > $top/root/cgroup.procs
      exec unshare -C -m sh -ec 'umount /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; echo $$ > /sys/fs/cgroup/daemon/cgroup.procs; exec "$0" "$@"' "$0" "$@"`];

function withoutMemory(t, args) {
  const other = new Instance('walls-missing', { args, wrapper: FORGET_MEMORY });
  t.after(() => {
    other.destroy();
    const top = `/sys/fs/cgroup/walls-${other.daemon.pid}`;
    for (const dir of [...proc.cgroupDirs(top).reverse(), top]) proc.quiet(() => fs.rmdirSync(dir));
  });
  return other;
}

test('where a wall is missing every build is refused, with its name and what to do', async (t) => {
  const other = withoutMemory(t, []);
  await other.start();
  const error = assertError(await other.api.request('POST', '/v1/sandboxes', { json: {} }), 503, /wall memory/);
  assert.equal(error.code, 'wall_missing');
  assert.match(error.remediation, /cgroup/);
  await other.shutdown();
});

test('unless the operator allowed it by name; then the sandbox says so', async (t) => {
  const other = withoutMemory(t, ['--allow-missing', 'memory']);
  await other.start();
  const { id, walls } = await other.api.create();
  assert.equal(walls.memory, null);
  assert.match(walls.pids, /^cgroup_v/);
  assert.equal((await other.api.out(id, 'echo fine')).trim(), 'fine');
  assert.match(other.log(), /no wall memory/);
  await other.shutdown();
});

test('what no sandbox can be built without cannot be allowed to be missing', async (t) => {
  const other = new Instance('walls-refused');
  t.after(() => other.destroy());
  for (const list of ['user_namespace', 'namespaces', 'all', 'memory,nothing']) {
    const { code, said } = await other.refusal(['--allow-missing', list]);
    assert.equal(code, 2, said);
    assert.match(said, /wall/);
  }
  assert.equal((await other.refusal(['--templates', 'unconfined'])).code, 2);
});

finish();
