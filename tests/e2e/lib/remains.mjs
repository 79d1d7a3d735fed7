// SPDX-License-Identifier: Apache-2.0
// What an instance holds of sandboxes that it should not know any more: after faults nothing may.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { sql } from './database.mjs';
import * as proc from './proc.mjs';
import { until } from './wait.mjs';

const ID = /(?<![0-9a-z])[0-9a-z]{26}(?![0-9a-z])/;

/**
 * The images of a data directory that loop devices of the host have open: "workspaces/ID.img". The kernel knows one that
 * was made without a name by its inode, "spares/#5 (deleted)"; that stays so if no file of the directory is this inode.
 */
export function loopFiles(dataDir) {
  const named = ['workspaces', 'snapshots', 'spares', 'trash', 'shredder'].flatMap((dir) => proc.entries(path.join(dataDir, dir)).map((name) => `${dir}/${name}`));
  const byInode = new Map(named.map((name) => [proc.quiet(() => fs.statSync(path.join(dataDir, name)).ino), name]));
  const files = proc.entries('/sys/block').filter((name) => name.startsWith('loop'))
    .map((name) => proc.quiet(() => fs.readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim(), ''));
  return files.filter((file) => file.startsWith(`${dataDir}/`)).map((file) => file.slice(dataDir.length + 1))
    .map((file) => byInode.get(Number(/#(\d+) \(deleted\)$/.exec(file)?.[1])) ?? file);
}

/** All that belongs to no sandbox in `known` (a Set of ids), by kind; kinds of which there is nothing are left out. */
export function remains(instance, known) {
  const { dataDir } = instance;
  const isStrange = (name) => ID.test(name) && !known.has(ID.exec(name)[0]);
  const inDir = (name) => proc.entries(path.join(dataDir, name));
  const places = [['workspaces', 'id'], ['sandboxes', 'id'], ['snapshots', 'sandbox'], ['processes', 'sandbox']];
  const ids = sql(instance, places.map(([table, column]) => `SELECT DISTINCT '${table}', ${column} FROM ${table}`).join(' UNION ALL ')).split('\n').map((line) => line.split('|'));
  const rows = (table) => ids.filter(([name, id]) => name === table && isStrange(id)).map(([, id]) => id);
  const loops = loopFiles(dataDir);
  const found = {
    'rows of workspaces': rows('workspaces'),
    'rows of sandboxes': rows('sandboxes'),
    'rows of snapshots': rows('snapshots'),
    'entries in snapshots/': inDir('snapshots'),
    'rows of processes': rows('processes'),
    'entries in sandboxes/': proc.stored(path.join(dataDir, 'sandboxes')).filter(isStrange),
    'entries in workspaces/': proc.stored(path.join(dataDir, 'workspaces')).filter(isStrange),
    'entries in state/logs/': inDir('state/logs').filter(isStrange),
    'entries in trash/': inDir('trash'),
    'entries in shredder/': inDir('shredder'),
    'spare disks that are not mounted': loops.length > 0 ? inDir('spares').filter((name) => !loops.includes(`spares/${name}`)) : [],
    'loop devices': loops.filter((file) => isStrange(file) || file.endsWith('(deleted)')),
    'cgroups': instance.cgroups().filter((group) => isStrange(path.basename(group))),
    'mounts on the host': proc.mountLines('self', [...instance.api.purged]),
  };
  return Object.fromEntries(Object.entries(found).filter(([, list]) => list.length > 0));
}

/**
 * Waits until the instance holds nothing but the known sandboxes, and runs just those of which the rows say so. What
 * is removed later (by a child that is started again after a second, say) has its time. unlisted() gives the ids of
 * others that run although no list has them, which is so of those of a pool.
 */
export async function assertNothingRemains(instance, known, unlisted = () => []) {
  await until(async () => {
    const others = unlisted();
    assert.deepEqual(remains(instance, new Set([...known, ...others])), {});
    const up = (await instance.api.all()).filter((row) => ['running', 'paused'].includes(row.status));
    assert.equal(instance.sandboxInits().length, up.length + others.length, `sandboxes that run; rows: ${JSON.stringify(up.map((row) => [row.id, row.status]))}`);
    return true;
  }, { what: 'nothing remains' });
}
