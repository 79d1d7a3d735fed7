// SPDX-License-Identifier: Apache-2.0
// A data directory on a small file system of its own, which a test can fill to the last byte.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { until } from './wait.mjs';

/**
 * Lets a file grow until only so many bytes of its file system are free. Blocks are taken without writing to them; the
 * last ones in smaller parts, because tables of the file system count too.
 */
export function fillDisk(file, left = 0) {
  fs.closeSync(fs.openSync(file, 'a'));
  for (let part = 1; ;) {
    const { bavail, bsize } = fs.statfsSync(file);
    const size = Math.floor((bavail * bsize - left) / part / 4096) * 4096;
    if (size <= 0) return;
    if (spawnSync('fallocate', ['-o', String(fs.statSync(file).size), '-l', String(size), file]).status !== 0) part *= 2;
  }
}

export class SmallDisk {
  /** Makes one of that many MiB for an instance that was not started yet; only root can. */
  constructor(instance, mebibytes) {
    this.place = path.join(instance.home, 'small');
    this.file = path.join(instance.home, 'small.img');
    fs.mkdirSync(this.place);
    execFileSync('truncate', ['-s', `${mebibytes}M`, this.file]);
    execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', this.file]);
    execFileSync('mount', ['-o', 'loop', this.file, this.place]);
    instance.dataDir = path.join(this.place, 'data');
    instance.api.secrets = [instance.dataDir];
  }

  get free() {
    const { bavail, bsize } = fs.statfsSync(this.place);
    return bavail * bsize;
  }

  /** Fills it until only so many bytes are free, once what was thrown away is gone. */
  fill(left = 0) {
    fillDisk(path.join(this.place, 'fill'), left);
  }

  empty() {
    fs.rmSync(path.join(this.place, 'fill'), { force: true });
  }

  async remove() {
    await until(() => spawnSync('umount', [this.place]).status === 0, { what: `${this.place} is unmounted` });
  }
}
