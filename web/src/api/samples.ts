// SPDX-License-Identifier: Apache-2.0
// The last figures of each sandbox that runs, as events bring them while somebody looks. Nothing is asked for, and nobody woken.
import { useSyncExternalStore } from 'react';

import { whenStill } from '../lib/scrolling';
import { store, type Store } from '../lib/store';
import { onEvent } from './live';
import type { StatsHistory } from './schema';

/** An event has what a point of the past has, and how many processes there are. */
export type Sample = StatsHistory['points'][number] & { pids: number };

/** Forty points, two seconds apart, are what a sparkline shows. */
const KEPT = 40;
const NONE: Sample[] = [];
const samples = new Map<string, Store<Sample[]> & { watch: (act: () => void) => () => void }>();

function storeOf(id: string) {
  const found = samples.get(id);
  if (found) return found;
  const made = store<Sample[]>(NONE);
  const own = { ...made, watch: (act: () => void) => made.subscribe(() => whenStill(act)) };
  samples.set(id, own);
  return own;
}

export function useSamples(id: string): Sample[] {
  const { watch, get } = storeOf(id);
  return useSyncExternalStore(watch, get);
}

onEvent(({ event, data }) => {
  if (event === 'stats.sample') storeOf(data.sandbox).set((list) => [...list.slice(1 - KEPT), data as Sample]);
  else if (event === 'sandbox.deleted' || event === 'sandbox.purged') samples.delete(data.sandbox);
  else if (event === 'sandbox.stopped') storeOf(data.sandbox).set(NONE);
});
