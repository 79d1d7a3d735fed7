// SPDX-License-Identifier: Apache-2.0
// One stream of events for all tabs of a browser: it has six connections to a server in all, and six tabs with a stream
// each would leave none to ask for anything. It runs in a worker that tabs share (events.worker.ts), or in the tab itself
// where there is no such worker. Figures (stats) are asked for only while somebody looks at them.
import { follow, type StreamEvent } from './stream';

/** What a tab says. `who`: as whom it is signed in; the stream of somebody else is not for it. */
export type Wish = { kind: 'join'; who: string; wantsStats: boolean } | { kind: 'leave' };
/** What it hears: events in the order in which they came, and how the connection is. */
export type Word = { kind: 'events'; events: StreamEvent[] } | { kind: 'state'; state: State } | { kind: 'tabs'; count: number } | { kind: 'out' };
export type State = 'connecting' | 'live' | 'lost';
export type Member = (word: Word) => void;

const TOPICS = ['sandbox', 'start', 'port', 'network', 'job', 'execution', 'project', 'member', 'pool', 'command'];

export function eventHub() {
  const members = new Map<Member, { wantsStats: boolean }>();
  let who = '';
  let hasStats = false;
  let stop: AbortController | null = null;
  let state: State = 'connecting';
  let lastId: string | null = null;
  let waiting: StreamEvent[] = [];

  const tell = (word: Word) => members.forEach((_, member) => member(word));
  /** What comes in one piece goes out in one. */
  const flush = () => {
    const events = waiting;
    waiting = [];
    const others = events.filter(({ event }) => event !== 'stats.sample');
    members.forEach(({ wantsStats }, member) => { const own = wantsStats ? events : others; if (own.length) member({ kind: 'events', events: own }); });
  };
  const close = () => {
    stop?.abort();
    stop = null;
  };
  const run = async () => {
    close();
    const control = new AbortController();
    stop = control;
    hasStats = [...members.values()].some(({ wantsStats }) => wantsStats);
    const onState = (now: State) => { if (stop === control && now !== state) tell({ kind: 'state', state: state = now }); };
    try {
      await follow('/v1/events', { query: { topics: [...TOPICS, ...(hasStats ? ['stats'] : [])].join() }, signal: control.signal, lastId, isShared: true, onState }, (event) => {
        if (stop !== control) return;
        lastId = event.id ?? lastId;
        if (waiting.push(event) === 1) setTimeout(flush, 0);
      });
    } catch {
      if (stop === control) { stop = null; tell({ kind: 'out' }); }
    }
  };
  return {
    join(member: Member, as: string, wantsStats: boolean) {
      const isNew = !members.has(member);
      members.set(member, { wantsStats });
      if (as !== who) { lastId = null; state = 'connecting'; close(); }
      who = as;
      const needsStats = [...members.values()].some((one) => one.wantsStats);
      if (!stop || needsStats !== hasStats) void run();
      if (isNew) member({ kind: 'state', state });
      if (isNew) tell({ kind: 'tabs', count: members.size });
      if (isNew && state === 'live') member({ kind: 'events', events: [{ id: null, event: 'following', data: {} }] });
    },
    leave(member: Member) {
      if (members.delete(member)) tell({ kind: 'tabs', count: members.size });
      if (members.size === 0) { lastId = null; state = 'connecting'; close(); }
    },
  };
}
