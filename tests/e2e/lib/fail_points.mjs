// SPDX-License-Identifier: Apache-2.0
// The fail points of a build with -Dfail_points=true (src/base/fail_point.h): a file below the data directory that
// the daemon, its keeper and the keeper's children map. A row of it is a point.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { BUILD_DIR, REPOSITORY } from './instance.mjs';

export const FAIL_BUILD_DIR = `${BUILD_DIR}-fail`;
const ROW_BYTES = 64;
const NAME_BYTES = 40;
const FIELDS = Object.fromEntries(['canFail', 'hits', 'action', 'skip', 'errnum', 'actedPid'].map((name, i) => [name, NAME_BYTES + 4 * i]));
const ACTIONS = { none: 0, crash: 1, stop: 2, fail: 3 };
export const ENOSPC = 28;

/** The names that the sources call, each with whether it can fail: the other half of the table. */
export function calledPoints() {
  const files = fs.readdirSync(path.join(REPOSITORY, 'src'), { recursive: true }).filter((name) => name.endsWith('.c') && !name.endsWith('fail_point.c'));
  return files.flatMap((name) => [...fs.readFileSync(path.join(REPOSITORY, 'src', name), 'utf8').matchAll(/\bfail_point(_check)?\("([^"]+)"/g)])
    .map(([, check, name]) => ({ name, canFail: check !== undefined }));
}

export class FailPoints {
  constructor(instance) {
    this.file = path.join(instance.dataDir, 'run/fail_points');
    // The directory is the daemon's to make; if it is there the first daemon finds its points too.
    fs.mkdirSync(path.dirname(this.file), { recursive: true, mode: 0o700 });
    if (instance.account) for (const dir of [instance.dataDir, path.dirname(this.file)]) fs.chownSync(dir, instance.account.uid, instance.account.gid);
  }

  rows() {
    const bytes = fs.readFileSync(this.file);
    return Array.from({ length: bytes.length / ROW_BYTES }, (_, i) => {
      const row = bytes.subarray(i * ROW_BYTES, (i + 1) * ROW_BYTES);
      const values = Object.fromEntries(Object.entries(FIELDS).map(([name, at]) => [name, row.readUInt32LE(at)]));
      return { name: row.subarray(0, NAME_BYTES).toString('latin1').replace(/\0.*$/s, ''), ...values, canFail: values.canFail === 1 };
    });
  }

  row(name) {
    return this.rows().find((row) => row.name === name) ?? assert.fail(`no fail point is called ${name}`);
  }

  /** At its next hit after `skip` others the point acts, once. */
  arm(name, action = 'crash', { skip = 0, errnum = ENOSPC } = {}) {
    const at = this.rows().findIndex((row) => row.name === name) * ROW_BYTES;
    assert.ok(at >= 0, `no fail point is called ${name}`);
    const fd = fs.openSync(this.file, 'r+');
    const put = (field, value) => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32LE(value);
      fs.writeSync(fd, bytes, 0, 4, at + FIELDS[field]);
    };
    put('skip', skip);
    put('errnum', errnum);
    put('actedPid', 0);
    put('action', ACTIONS[action]);
    fs.closeSync(fd);
  }

  disarm(name) {
    this.arm(name, 'none');
  }

  /** The pid of the process that acted at the point, as that process knows itself; 0 while the point is armed. */
  actedPid(name) {
    const row = this.row(name);
    return row.action === ACTIONS.none ? row.actedPid : 0;
  }
}
