// SPDX-License-Identifier: Apache-2.0
// The events of a tab, from the stream that all tabs share (hub.ts). What they tell of sandboxes is read again and put
// into the queries' cache, so that pages are right without asking; after a cut everything is read anew.
import type { QueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';

import { store } from '../lib/store';
import { ApiError, call, listAll, part } from './client';
import { eventHub, type State, type Wish, type Word } from './hub';
import type { Sandbox } from './schema';
import { setCrowded, type StreamEvent } from './stream';

export interface LiveEvent extends StreamEvent { at: number }

export const connection = store<State>('connecting');
/** The last events, the newest first, for those who want to show them. */
export const recent = store<LiveEvent[]>([]);
const KEPT = 500;
/** So many at once are cheaper to read as a whole list. */
const SINGLES = 12;
/** So many tabs may hold a connection each besides the one that they share. */
const TABS = 3;
/** So long the worker that tabs share may take to answer, before a tab does without it. */
const ANSWER_MS = 5000;

const watchers = new Set<(event: StreamEvent) => void>();
export function onEvent(act: (event: StreamEvent) => void): () => void {
  watchers.add(act);
  return () => { watchers.delete(act); };
}

/** What was placed while a list of sandboxes was being read: it is newer than what that list says. */
const placed = new Map<string, Sandbox | null>();
let readings = 0;

const withPlaced = (list: Sandbox[], id: string, sandbox: Sandbox | null) => {
  const others = list.filter((one) => one.id !== id);
  return sandbox ? [...others, sandbox].sort((a, b) => (a.id < b.id ? -1 : 1)) : others;
};

/** All sandboxes. Events that come while the list is on its way are not undone by it. */
export async function readSandboxes(signal: AbortSignal): Promise<Sandbox[]> {
  readings++;
  try {
    let list = await listAll<Sandbox>('/v1/sandboxes', 'sandboxes', {}, signal);
    placed.forEach((sandbox, id) => { list = withPlaced(list, id, sandbox); });
    return list;
  } finally {
    if (--readings === 0) placed.clear();
  }
}

/** Puts a sandbox, or that it is gone, into the list and its own place. */
export function place(client: QueryClient, id: string, sandbox: Sandbox | null): void {
  if (readings > 0) placed.set(id, sandbox);
  client.setQueryData<Sandbox[]>(['sandboxes'], (list) => list && withPlaced(list, id, sandbox));
  if (sandbox) client.setQueryData(['sandbox', id], sandbox);
  else client.removeQueries({ queryKey: ['sandbox', id] });
}

/** Sandboxes whose end was told and nothing after it: an answer that was on its way then does not bring them back. */
const ended = new Set<string>();

async function refresh(client: QueryClient, ids: string[]): Promise<void> {
  if (ids.length > SINGLES) {
    await client.invalidateQueries({ queryKey: ['sandboxes'] });
    return;
  }
  await Promise.all(ids.map(async (id) => {
    try {
      const sandbox = await call<Sandbox>('GET', `/v1/sandboxes/${part(id)}`);
      if (!ended.has(id)) place(client, id, sandbox);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) place(client, id, null);
    }
  }));
}

/** Which queries an event of that topic makes stale. */
const STALE: Record<string, string[]> = { job: ['jobs', 'templates', 'backups', 'launches'], execution: ['executions'], project: ['projects', 'project', 'projectFiles', 'detection'] };

/** After these there is nothing to be read of a sandbox. */
const GONE = new Set(['sandbox.deleted', 'sandbox.purged']);

/** How many parts of this tab look at figures. */
let lookers = 0;
let tellWish = () => {};

/** As long as it is on and the tab is seen, figures of what runs come as `stats.sample`. */
export function useStatsEvents(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return undefined;
    lookers++;
    tellWish();
    return () => { lookers--; tellWish(); };
  }, [isOn]);
}

type Say = (wish: Wish) => void;

function openOwnHub(hear: (word: Word) => void): Say {
  const hub = eventHub();
  return (wish) => (wish.kind === 'join' ? hub.join(hear, wish.who, wish.wantsStats) : hub.leave(hear));
}

/** Says what this tab wants to whoever holds the stream; a function that says so. */
function openHub(hear: (word: Word) => void): Say {
  if (typeof SharedWorker === 'undefined') return openOwnHub(hear);
  const { port } = new SharedWorker(new URL('./events.worker.ts', import.meta.url), { type: 'module', name: 'sandlot-events' });
  let say: Say = (wish) => port.postMessage(wish);
  let last: Wish = { kind: 'leave' };
  // A worker answers who joins at once. One that ends with its last page, just as this one comes, never does.
  const timer = setTimeout(() => {
    port.onmessage = null;
    say({ kind: 'leave' });
    say = openOwnHub(hear);
    say(last);
  }, ANSWER_MS);
  port.onmessage = ({ data }: MessageEvent<Word>) => { clearTimeout(timer); hear(data); };
  return (wish) => say(last = wish);
}

/** Keeps the cache right until it is told to stop. `who`: as whom one is signed in. */
export function startLive(client: QueryClient, who: string, onSignedOut: () => void): () => void {
  const changed = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isGone = false;
  let isFirst = true;
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
    if (topic === 'stats') return;
    if (event.event === 'missed' || (event.event === 'following' && wasLost)) void client.invalidateQueries();
    // What was read of them before the stream was there may lack what happened in between.
    else if (event.event === 'following' && isFirst) for (const key of ['sandboxes', 'sandbox']) void client.invalidateQueries({ queryKey: [key] });
    if (event.event === 'following') { wasLost = false; isFirst = false; return; }
    for (const key of STALE[topic] ?? []) void client.invalidateQueries({ queryKey: [key] });
    if (GONE.has(event.event)) {
      changed.delete(event.data.sandbox);
      ended.add(event.data.sandbox);
      place(client, event.data.sandbox, null);
    } else if ((topic === 'sandbox' || topic === 'start' || topic === 'member') && event.data.sandbox && event.event !== 'sandbox.progress') {
      ended.delete(event.data.sandbox);
      changed.add(event.data.sandbox);
      timer ??= setTimeout(flush, 80);
    }
    recent.set((before) => [{ ...event, at: event.data.at ? Date.parse(event.data.at) : Date.now() }, ...before].slice(0, KEPT));
  };

  const say = openHub((word) => {
    if (isGone) return;
    if (word.kind === 'events') word.events.forEach(take);
    else if (word.kind === 'out') onSignedOut();
    else if (word.kind === 'tabs') setCrowded(word.count > TABS);
    else {
      wasLost ||= word.state === 'lost';
      connection.set(word.state === 'connecting' && connection.get() === 'lost' ? 'lost' : word.state);
    }
  });
  tellWish = () => say({ kind: 'join', who, wantsStats: lookers > 0 && !document.hidden });
  const leave = () => say({ kind: 'leave' });
  const back = () => tellWish();
  // A hidden tab kept a row of what was purged, once, for a reason not found yet. When it is seen it reads its list anew.
  const seen = () => {
    tellWish();
    if (!document.hidden) void client.invalidateQueries({ queryKey: ['sandboxes'] });
  };
  tellWish();
  addEventListener('pagehide', leave);
  addEventListener('pageshow', back);
  document.addEventListener('visibilitychange', seen);
  return () => {
    isGone = true;
    tellWish = () => {};
    clearTimeout(timer);
    leave();
    removeEventListener('pagehide', leave);
    removeEventListener('pageshow', back);
    document.removeEventListener('visibilitychange', seen);
  };
}
