// SPDX-License-Identifier: Apache-2.0
// The disk pool of a keeper: spares that are ready for the next sandboxes.
import path from 'node:path';

import * as proc from './proc.mjs';
import { until } from './wait.mjs';

/** The names of all spares: new ones, used ones (used-N), and those of sandboxes that are built ahead. */
export const spares = (instance) => proc.entries(path.join(instance.dataDir, 'spares'));

/**
 * Runs fn while nobody makes new spares. So the pool lacks what creates have taken from it, and a disk that is discarded
 * is used again, if it is one that may be. A new spare is named after the process that made it.
 */
export async function withoutNewSpares(instance, fn) {
  const takers = [];
  // All of the pool may be disks that were used before: new ones are made when those are taken.
  const maker = await until(async () => {
    const found = spares(instance).map((name) => proc.processInfo(Number(/^(\d+)-\d+$/.exec(name)?.[1]))).find((info) => info?.ppid === instance.keeper.pid);
    if (!found && takers.length < 32) takers.push((await instance.api.create()).id);
    return found;
  }, { what: 'a new spare' });
  process.kill(maker.pid, 'SIGSTOP');
  try {
    return await fn();
  } finally {
    proc.quiet(() => process.kill(maker.pid, 'SIGCONT'));
    for (const taker of takers) await instance.api.purge(taker);
  }
}
