// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState, useSyncExternalStore } from 'react';
import { useSearchParams } from 'wouter';

/** The time, each so many seconds; all who ask for the same share a timer. */
const tickers = new Map<number, { now: number; watchers: Set<() => void> }>();

function tickerOf(seconds: number) {
  let ticker = tickers.get(seconds);
  if (!ticker) {
    const made = { now: Date.now(), watchers: new Set<() => void>() };
    setInterval(() => {
      made.now = Date.now();
      if (!document.hidden) made.watchers.forEach((act) => act());
    }, seconds * 1000);
    tickers.set(seconds, made);
    ticker = made;
  }
  return ticker;
}

export function useNow(seconds = 1): number {
  const ticker = tickerOf(seconds);
  return useSyncExternalStore((act) => { ticker.watchers.add(act); return () => { ticker.watchers.delete(act); }; }, () => ticker.now);
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
