// SPDX-License-Identifier: Apache-2.0
// A value outside of React that components can watch.
import { useSyncExternalStore } from 'react';

export interface Store<T> { get(): T; set(value: T | ((before: T) => T)): void; subscribe(act: () => void): () => void }

export function store<T>(first: T): Store<T> {
  let value = first;
  const watchers = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      const after = typeof next === 'function' ? (next as (before: T) => T)(value) : next;
      if (Object.is(after, value)) return;
      value = after;
      watchers.forEach((act) => act());
    },
    subscribe(act) {
      watchers.add(act);
      return () => { watchers.delete(act); };
    },
  };
}

export const useStore = <T>(from: Store<T>): T => useSyncExternalStore(from.subscribe, from.get);

/** What a browser keeps for a person; an unreadable or missing value is the fallback. */
export function remembered<T>(key: string, fallback: T): T {
  try {
    const text = localStorage.getItem(`sandlot.${key}`);
    return text === null ? fallback : JSON.parse(text) as T;
  } catch {
    return fallback;
  }
}

export function remember(key: string, value: unknown): void {
  try {
    localStorage.setItem(`sandlot.${key}`, JSON.stringify(value));
  } catch { /* a full or forbidden store only means that it is not remembered */ }
}
