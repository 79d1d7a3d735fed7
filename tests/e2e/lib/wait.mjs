// SPDX-License-Identifier: Apache-2.0
// Waiting for something to become true, with a deadline: the tests never sleep and hope.
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** How many times as long as usual things may take: a machine may be an emulated one. */
export const PATIENCE = Number(process.env.E2E_PATIENCE ?? 1);

/**
 * How long anything may take. A deadline is there only to end what hangs: no test says how fast something is, so one
 * that is generous on a busy machine serves all of them.
 */
export const DEADLINE_MS = 120_000 * PATIENCE;

/**
 * Calls probe() until it returns something truthy and returns that. A probe that throws counts as
 * "not yet"; after the deadline its last error (or `what`) is thrown.
 */
export async function until(probe, { timeout_ms = DEADLINE_MS, every = 20, what = 'condition' } = {}) {
  const deadline = performance.now() + timeout_ms;
  let last;
  for (;;) {
    try {
      last = undefined;
      const value = await within(what, probe(), deadline - performance.now());
      if (value) return value;
    } catch (error) {
      last = error;
    }
    // A probe with no time left would only say so, in place of what the last one saw.
    if (performance.now() + every > deadline) {
      const reason = last ? `: ${last.message}` : '';
      throw new Error(`not true within ${timeout_ms} ms: ${what}${reason}`, { cause: last });
    }
    await delay(every);
  }
}

/** Rejects when the promise takes longer than that; used where a hang is the failure looked for. */
export async function within(what, promise, timeout_ms = DEADLINE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${Math.round(timeout_ms)} ms: ${what}`)), Math.max(timeout_ms, 1));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs fn while no other run of the tests on this machine does so under that name. Daemons on one host have
 * the same uid ranges, so what the kernel counts for each user their sandboxes have together.
 */
export async function alone(name, fn) {
  const server = net.createServer();
  await until(() => new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(`\0sandlot-e2e-${name}`, () => resolve(true));
  }), { timeout_ms: 10 * DEADLINE_MS, every: 200, what: `nobody else is at ${name}` });
  try {
    return await fn();
  } finally {
    server.close();
  }
}

/** Runs fn over items, at most `width` at a time, and returns the results in order. */
export async function eachLimit(items, width, fn) {
  const results = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const i = next++;
      results[i] = await fn(items[i], i);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}
