// SPDX-License-Identifier: Apache-2.0
// What a sandbox used: what the server remembers of it, and what its events tell from then on. Nothing is asked for twice.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';

import { call } from './client';
import { onEvent, useStatsEvents } from './live';
import { sandboxPath } from './queries';
import type { Sample } from './samples';
import type { StatsHistory } from './schema';

export type Point = StatsHistory['points'][number];
export type Window = 'now' | 'hour' | 'day';

/** How long each is. */
export const WINDOW_MS: Record<Window, number> = { now: 10 * 60_000, hour: 60 * 60_000, day: 24 * 60 * 60_000 };
const KEPT = 1800;

/** The samples that come while somebody looks. */
export function useSamplesOf(id: string, isOn: boolean): Sample[] {
  const [samples, setSamples] = useState<Sample[]>([]);
  useStatsEvents(isOn);
  useEffect(() => {
    if (!isOn) return undefined;
    return onEvent(({ event, data }) => { if (event === 'stats.sample' && data.sandbox === id) setSamples((before) => [...before, data as Sample].slice(-KEPT)); });
  }, [id, isOn]);
  return samples;
}

/** The points of a while up to now; where it did not run there is a null. */
export function useHistory(id: string, window: Window, samples: Sample[]): (Point | null)[] {
  const kept = window === 'day' ? 'day' : 'hour';
  const query = useQuery({ queryKey: ['history', id, kept], queryFn: ({ signal }) => call<StatsHistory>('GET', sandboxPath(id, '/stats/history'), { query: { window: kept }, signal }), staleTime: 0 });
  return useMemo(() => joined(query.data, samples, window), [query.data, samples, window]);
}

function joined(history: StatsHistory | undefined, samples: Sample[], window: Window): (Point | null)[] {
  const past = history?.points ?? [];
  const last = past.length ? Date.parse(past.at(-1)!.at) : 0;
  const all: Point[] = [...past, ...samples.filter((sample) => Date.parse(sample.at) > last)];
  const from = window === 'now' && all.length ? Date.parse(all.at(-1)!.at) - WINDOW_MS.now : 0;
  const gap_ms = (history?.step_s ?? 10) * 2500;
  const points: (Point | null)[] = [];
  for (const point of all) {
    const at = Date.parse(point.at);
    if (at < from) continue;
    const before = points.at(-1);
    if (before && at - Date.parse(before.at) > gap_ms) points.push(null);
    points.push(point);
  }
  return points;
}
