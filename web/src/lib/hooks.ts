// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState, useSyncExternalStore } from 'react';
import { useSearchParams } from 'wouter';

import { whenStill } from './scrolling';

/** The time, each so many seconds; all who ask for the same share a timer. */
const tickers = new Map<number, { now: number; subscribe: (act: () => void) => () => void }>();

function tickerOf(seconds: number) {
  const found = tickers.get(seconds);
  if (found) return found;
  const watchers = new Set<() => void>();
  const made = { now: Date.now(), subscribe: (act: () => void) => { watchers.add(act); return () => { watchers.delete(act); }; } };
  const tell = () => watchers.forEach((act) => act());
  setInterval(() => {
    made.now = Date.now();
    if (!document.hidden) whenStill(tell);
  }, seconds * 1000);
  tickers.set(seconds, made);
  return made;
}

/** What something says at a time. It is asked each so many seconds, and only another answer draws anything anew. */
export function useTimed(say: (now: number) => string, seconds: number): string {
  const ticker = tickerOf(seconds);
  return useSyncExternalStore(ticker.subscribe, () => say(ticker.now));
}

/** A value of the address's query, and what sets it; an empty one is left out. */
export function useQueryValue(name: string): [string, (value: string) => void] {
  const [params, setParams] = useSearchParams();
  const set = (value: string) => setParams((before) => {
    const after = new URLSearchParams(before);
    if (value) after.set(name, value);
    else after.delete(name);
    return after;
  }, { replace: true });
  return [params.get(name) ?? '', set];
}

export function useTitle(title: string): void {
  useEffect(() => { document.title = title ? `${title} · Sandlot` : 'Sandlot'; }, [title]);
}

/** A value that follows another after a pause. */
export function useSettled<T>(value: T, ms = 250): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
