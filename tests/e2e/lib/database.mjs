// SPDX-License-Identifier: Apache-2.0
// The database file itself, for tests that change it behind the daemon's back.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';

/** Runs SQL on the file; what it prints, one line a row. */
export function sql(instance, text) {
  const { status, stdout, stderr } = spawnSync('sqlite3', ['-bail', path.join(instance.dataDir, 'state/sandlot.db'), text], { encoding: 'utf8' });
  assert.equal(status, 0, `sqlite3 ${text}: ${stderr}`);
  return stdout;
}

/** The same, and what else is to be done, while the daemon is stopped; it then finds the change. */
export async function sqlWhileStopped(instance, text, also = () => {}) {
  await instance.terminate();
  sql(instance, text);
  also();
  await instance.start();
}
