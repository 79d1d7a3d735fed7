// SPDX-License-Identifier: Apache-2.0
// The last figures of sandboxes that somebody looks at, for their sparklines. Reading them wakes nobody.
import { useEffect } from 'react';

import { store, useStore, type Store } from '../lib/store';
import { call } from './client';
import { sandboxPath } from './queries';
import type { Stats } from './schema';

export interface Sample { at: number; cpu: number; memory: number; memoryLimit: number; cpuLimit: number }
const KEPT = 40;
const EVERY_MS = 4000;
const AT_ONCE = 4;
const NONE: Sample[] = [];

const samples = new Map<string, Store<Sample[]>>();
const last = new Map<string, { at: number; usage_ms: number }>();

function storeOf(id: string): Store<Sample[]> {
  let found = samples.get(id);
  if (!found) samples.set(id, found = store<Sample[]>(NONE));
  return found;
}

export const useSamples = (id: string): Sample[] => useStore(storeOf(id));

/** Takes figures of a sandbox; its use of processors is what was used since the ones before. */
export function take(id: string, stats: Stats, at = Date.now()): void {
  const before = last.get(id);
  const usage_ms = stats.cpu.usage_ms ?? 0;
  last.set(id, { at, usage_ms });
  const cpu = before && at > before.at && usage_ms >= before.usage_ms ? (usage_ms - before.usage_ms) / (at - before.at) : 0;
  const sample = { at, cpu, memory: stats.memory.current_bytes ?? 0, memoryLimit: stats.memory.limit_bytes ?? 0, cpuLimit: stats.cpu.limit ?? 1 };
  storeOf(id).set((list) => [...list.slice(1 - KEPT), sample]);
}

/** Reads the figures of these sandboxes from time to time, a few at once. */
export function useSampler(ids: string[]): void {
  const key = ids.join(' ');
  useEffect(() => {
    const stop = new AbortController();
    const round = async () => {
      const queue = key ? key.split(' ') : [];
      const worker = async () => {
        for (let id = queue.shift(); id && !stop.signal.aborted; id = queue.shift()) {
          const one = id;
          await call<Stats>('GET', sandboxPath(one, '/stats'), { signal: stop.signal }).then((stats) => take(one, stats), () => {});
        }
      };
      if (!document.hidden) await Promise.all(Array.from({ length: AT_ONCE }, worker));
      if (!stop.signal.aborted) timer = setTimeout(() => void round(), EVERY_MS);
    };
    let timer = setTimeout(() => void round(), 50);
    return () => { stop.abort(); clearTimeout(timer); };
  }, [key]);
}
