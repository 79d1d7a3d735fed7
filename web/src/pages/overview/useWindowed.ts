// SPDX-License-Identifier: Apache-2.0
// Of a long list of rows with one height: which are near what the window shows. The others are empty space.
import { useEffect, useRef, useState } from 'react';

const MARGIN = 12; // rows above and below, so that a fast scroll shows no gap

export function useWindowed<T extends HTMLElement>(count: number, rowHeight: number) {
  const box = useRef<T>(null);
  const [range, setRange] = useState({ from: 0, to: Math.min(count, 40) });
  useEffect(() => {
    const measure = () => {
      if (!box.current) return;
      const place = box.current.getBoundingClientRect();
      const height = place.height / Math.max(count, 1) || rowHeight; // on a wall the page is enlarged
      const from = Math.max(0, Math.floor(-place.top / height) - MARGIN);
      const to = Math.min(count, Math.ceil((innerHeight - place.top) / height) + MARGIN);
      setRange((before) => (before.from === from && before.to === to ? before : { from: Math.min(from, count), to: Math.max(to, Math.min(count, 1)) }));
    };
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => { removeEventListener('scroll', measure); removeEventListener('resize', measure); };
  }, [count, rowHeight]);
  return { box, from: Math.min(range.from, count), to: Math.min(range.to, count) };
}
