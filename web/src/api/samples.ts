// SPDX-License-Identifier: Apache-2.0
// The last figures of each sandbox that runs, as events bring them while somebody looks. Nothing is asked for, and nobody woken.
import { store, useStore, type Store } from '../lib/store';
import { onEvent } from './live';
import type { StatsHistory } from './schema';

/** An event has what a point of the past has, and how many processes there are. */
export type Sample = StatsHistory['points'][number] & { pids: number };

/** Forty points, two seconds apart, are what a sparkline shows. */
const KEPT = 40;
const NONE: Sample[] = [];
const samples = new Map<string, Store<Sample[]>>();

function storeOf(id: string): Store<Sample[]> {
  let found = samples.get(id);
  if (!found) samples.set(id, found = store<Sample[]>(NONE));
  return found;
}

export const useSamples = (id: string): Sample[] => useStore(storeOf(id));

onEvent(({ event, data }) => {
  if (event === 'stats.sample') storeOf(data.sandbox).set((list) => [...list.slice(1 - KEPT), data as Sample]);
  else if (event === 'sandbox.deleted' || event === 'sandbox.purged') samples.delete(data.sandbox);
  else if (event === 'sandbox.stopped') storeOf(data.sandbox).set(NONE);
});
