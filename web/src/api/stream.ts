// SPDX-License-Identifier: Apache-2.0
// Server-sent events read with fetch: unlike an EventSource it tells why a stream was refused, and can send a body.
import { ApiError, request, type Options } from './client';

export interface StreamEvent { id: string | null; event: string; data: any }

/** Cuts a stream of text into events; give() takes what has come. */
function parser(give: (event: StreamEvent) => void) {
  let rest = '';
  let id: string | null = null;
  return (text: string) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      let event = 'message';
      let data = '';
      for (const line of block.split('\n')) {
        if (line.startsWith('id: ')) id = line.slice(4);
        else if (line.startsWith('event: ')) event = line.slice(7);
        else if (line.startsWith('data: ')) data += line.slice(6);
      }
      if (data) give({ id, event, data: JSON.parse(data) });
    }
  };
}

/** A page that is left may be kept by the browser for its back button: its streams must not hold connections meanwhile. */
let leaving = new AbortController();
addEventListener('pagehide', () => { leaving.abort(); leaving = new AbortController(); });

/** Reads one answer to its end. Whether there was a stream at all: false for 204, after which nothing comes. */
export async function stream(method: string, path: string, options: Options, give: (event: StreamEvent) => void): Promise<boolean> {
  const signal = options.signal ? AbortSignal.any([options.signal, leaving.signal]) : leaving.signal;
  const answer = await request(method, path, { ...options, signal, headers: { accept: 'text/event-stream', ...options.headers } });
  if (answer.status === 204 || !answer.body) return false;
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  const feed = parser(give);
  for (;;) {
    let chunk;
    try {
      chunk = await reader.read();
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ApiError(0, 'unreachable', 'The stream was cut', null, null, true);
    }
    if (chunk.done) return true;
    feed(decoder.decode(chunk.value, { stream: true }));
  }
}

const wait = (ms: number, signal: AbortSignal) => new Promise<void>((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
});

/** Ends the requests that follow something, which then go on in the manner that is due now. */
const followers = new Set<AbortController>();
const turn = () => followers.forEach((one) => one.abort());

/** A browser has six connections to a server. Where there are many tabs, they ask from time to time instead of holding one each. */
let isCrowded = false;
export function setCrowded(now: boolean): void {
  if (now === isCrowded) return;
  isCrowded = now;
  turn();
}

const isHidden = () => typeof document !== 'undefined' && document.hidden;
if (typeof document !== 'undefined') document.addEventListener('visibilitychange', () => { if (document.hidden) turn(); });
const seen = (signal: AbortSignal) => new Promise<void>((resolve) => {
  document.addEventListener('visibilitychange', () => resolve(), { once: true, signal });
  signal.addEventListener('abort', () => resolve(), { once: true });
});

export interface Follow {
  query?: Options['query'];
  signal: AbortSignal;
  /** Names of events after which nothing comes. */
  last?: string[];
  /** The id of an event after which to begin. */
  lastId?: string | null;
  /** All tabs have it together. */
  isShared?: boolean;
  /** It may be read without being followed (follow=false). */
  canPoll?: boolean;
  onState?: (state: 'connecting' | 'live' | 'lost') => void;
}

/**
 * Follows a stream over cuts and restarts of the server: each time it goes on after the last event that came. What is
 * shared (isShared) is held; all else rests while the tab is not seen, and is read from time to time where tabs are many and it can be (canPoll).
 */
export async function follow(path: string, { query, signal, last = [], lastId = null, isShared = false, canPoll = false, onState }: Follow, give: (event: StreamEvent) => void): Promise<void> {
  let isOver = false;
  for (let pause = 500; !signal.aborted && !isOver; pause = Math.min(pause * 2, 8000)) {
    while (!isShared && isHidden() && !signal.aborted) await seen(signal);
    const control = new AbortController();
    if (!isShared) followers.add(control);
    const isPolled = canPoll && isCrowded;
    try {
      onState?.('connecting');
      const headers: Record<string, string> = lastId ? { 'last-event-id': lastId } : {};
      const came = await stream('GET', path, { query: isPolled ? { ...query, follow: false } : query, signal: AbortSignal.any([signal, control.signal]), headers }, (event) => {
        lastId = event.id ?? lastId;
        pause = 500;
        onState?.('live');
        if (last.includes(event.event)) isOver = true;
        give(event);
      });
      if (!came && !isPolled) return;
    } catch (error) {
      if (signal.aborted) return;
      if (!control.signal.aborted && error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    } finally {
      followers.delete(control);
    }
    if (isOver) return;
    if (control.signal.aborted) continue;
    if (isPolled) pause = 500;
    else onState?.('lost');
    await wait(pause, signal);
  }
}

/** The text of an output event, whose bytes may not be UTF-8. */
export function textOf(data: { data?: string; data_base64?: string }): string {
  if (data.data !== undefined) return data.data;
  const bytes = Uint8Array.from(atob(data.data_base64 ?? ''), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}
