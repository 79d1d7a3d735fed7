// SPDX-License-Identifier: Apache-2.0
// Ordinary users of the host, who start daemons without root, and cgroups that belong to them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import * as proc from './proc.mjs';

/** The account of that name: { name, uid, gid, home, become: the words that make a command its own }. */
export function accountOf(name) {
  const line = fs.readFileSync('/etc/passwd', 'utf8').split('\n').find((text) => text.startsWith(`${name}:`));
  assert.ok(line, `not proven: there is no user ${name}; scripts/user.sh rootless makes it`);
  const [, , uid, gid, , home] = line.split(':');
  return { name, uid: Number(uid), gid: Number(gid), home, become: ['setpriv', '--reuid', uid, '--regid', gid, '--clear-groups'] };
}

/** The ranges [first, count] that /etc/subuid lends to an account. */
export const lentTo = (account) =>
  fs.readFileSync('/etc/subuid', 'utf8').split('\n').map((line) => line.split(':')).filter(([name]) => name === account.name).map(([, first, count]) => [Number(first), Number(count)]);

/** A group in each hierarchy that has to do with limits, given to an account as a service manager would. */
export class Delegation {
  constructor(name, account) {
    const roots = fs.readFileSync('/proc/self/mounts', 'utf8').split('\n').map((line) => line.split(' '))
      .filter(([, , type, options]) => type === 'cgroup2' || (type === 'cgroup' && /\b(memory|cpu|pids)\b/.test(options.replace('cpuacct', ''))));
    this.dirs = roots.map(([, root]) => path.join(root, name));
    for (const dir of this.dirs) {
      fs.mkdirSync(dir);
      const files = ['', 'cgroup.procs', 'cgroup.threads', 'cgroup.subtree_control', 'tasks'].map((file) => path.join(dir, file));
      for (const file of files.filter((each) => fs.existsSync(each))) fs.chownSync(file, account.uid, account.gid);
    }
    /** Words before a command that start it in these groups. */
    this.enter = ['sh', '-c', `for dir in ${this.dirs.join(' ')}; do echo $$ > $dir/cgroup.procs; done; exec "$@"`, 'sh'];
  }

  remove() {
    for (const dir of this.dirs) {
      for (const group of [...proc.cgroupDirs(dir).reverse(), dir]) proc.quiet(() => fs.rmdirSync(group));
    }
  }
}
