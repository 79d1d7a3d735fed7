// SPDX-License-Identifier: Apache-2.0
// `make chaos`: CHAOS_SECONDS of random operations under faults, by the seed CHAOS_SEED, which it prints. CHAOS_FAULTS
// names some of the faults (a part of the name is enough), separated by commas.
import { FAULTS } from './faults.mjs';
import { chaos } from './world.mjs';

const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32));
const seconds = Number(process.env.CHAOS_SECONDS ?? 120);
const words = (process.env.CHAOS_FAULTS ?? '').split(',').filter(Boolean);
const faults = Object.keys(FAULTS).filter((name) => words.length === 0 || words.some((word) => name.includes(word)));

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
console.log(`chaos: CHAOS_SEED=${seed} CHAOS_SECONDS=${seconds}; ${faults.join(', ')}`);
try {
  await chaos({ seed, seconds, faults });
  console.log('chaos: nothing was lost and nothing is left');
} catch (error) {
  console.error(`chaos: failed with CHAOS_SEED=${seed}\n${error.stack}`);
  process.exitCode = 1;
}
