// SPDX-License-Identifier: Apache-2.0
// The one stream of events of a tab. What it tells of sandboxes is read again and put into the queries' cache, so that
// pages are right without asking; after a cut everything is read anew.
import type { QueryClient } from '@tanstack/react-query';

import { store } from '../lib/store';
import { ApiError, call, part } from './client';
import type { Sandbox } from './schema';
import { follow, type StreamEvent } from './stream';

export interface LiveEvent extends StreamEvent { at: number }

export const connection = store<'connecting' | 'live' | 'lost'>('connecting');
/** The last events, the newest first, for those who want to show them. */
export const recent = store<LiveEvent[]>([]);
const KEPT = 500;
/** So many at once are cheaper to read as a whole list. */
const SINGLES = 12;

const watchers = new Set<(event: StreamEvent) => void>();
export function onEvent(act: (event: StreamEvent) => void): () => void {
  watchers.add(act);
  return () => { watchers.delete(act); };
}

/** Puts a sandbox, or that it is gone, into the list and its own place. */
export function place(client: QueryClient, id: string, sandbox: Sandbox | null): void {
  client.setQueryData<Sandbox[]>(['sandboxes'], (list) => {
    if (!list) return list;
    const others = list.filter((one) => one.id !== id);
    return sandbox ? [...others, sandbox].sort((a, b) => (a.id < b.id ? -1 : 1)) : others;
  });
  if (sandbox) client.setQueryData(['sandbox', id], sandbox);
  else client.removeQueries({ queryKey: ['sandbox', id] });
}

async function refresh(client: QueryClient, ids: string[]): Promise<void> {
  if (ids.length > SINGLES) {
    await client.invalidateQueries({ queryKey: ['sandboxes'] });
    return;
  }
  await Promise.all(ids.map(async (id) => {
    try {
      place(client, id, await call<Sandbox>('GET', `/v1/sandboxes/${part(id)}`));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) place(client, id, null);
    }
  }));
}

/** Which queries an event of that topic makes stale. */
const STALE: Record<string, string[]> = { job: ['jobs', 'templates', 'backups', 'launches'], execution: ['executions'], project: ['projects', 'project', 'projectFiles', 'detection'] };

/** After these there is nothing to be read of a sandbox. */
const GONE = new Set(['sandbox.deleted', 'sandbox.purged']);

export function startLive(client: QueryClient): () => void {
  const stop = new AbortController();
  const changed = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wasLost = false;

  const flush = () => {
    timer = undefined;
    const ids = [...changed];
    changed.clear();
    void refresh(client, ids);
  };
  const take = (event: StreamEvent) => {
    watchers.forEach((act) => act(event));
    const [topic] = event.event.split('.');
    if (event.event === 'missed' || (event.event === 'following' && wasLost)) void client.invalidateQueries();
    if (event.event === 'following') wasLost = false;
    if (topic === 'stats') return;
    for (const key of STALE[topic] ?? []) void client.invalidateQueries({ queryKey: [key] });
    if (GONE.has(event.event)) {
      changed.delete(event.data.sandbox);
      place(client, event.data.sandbox, null);
    } else if ((topic === 'sandbox' || topic === 'start' || topic === 'member') && event.data.sandbox && event.event !== 'sandbox.progress') {
      changed.add(event.data.sandbox);
      timer ??= setTimeout(flush, 80);
    }
    if (event.event !== 'following') recent.set((before) => [{ ...event, at: event.data.at ? Date.parse(event.data.at) : Date.now() }, ...before].slice(0, KEPT));
  };

  const run = async () => {
    while (!stop.signal.aborted) {
      try {
        await follow('/v1/events', { signal: stop.signal, onState: (state) => { wasLost ||= state === 'lost'; connection.set(state === 'connecting' && wasLost ? 'lost' : state); } }, take);
      } catch {
        return; // signed out: the session's store says so
      }
    }
  };
  void run();
  return () => { stop.abort(); clearTimeout(timer); };
}
