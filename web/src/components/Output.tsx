// SPDX-License-Identifier: Apache-2.0
// What commands write, as text: never as markup. The last part of much output is kept, and the view follows its end until
// somebody scrolls up.
import { memo, useCallback, useEffect, useRef, useState } from 'react';

import { pieces } from '../lib/ansi';
import { text } from '../text/en';

export interface Chunk { key: number; stream: 'stdout' | 'stderr' | 'note'; text: string }
const KEPT_CHARACTERS = 600_000;

/** Output that grows; what comes within a frame is shown at once. */
export function useOutput() {
  const [chunks, setChunks] = useState<Chunk[]>([]);
  const waiting = useRef<Chunk[]>([]);
  const made = useRef(0);
  const frame = useRef(0);
  const flush = useCallback(() => {
    frame.current = 0;
    const came = waiting.current;
    waiting.current = [];
    setChunks((before) => trimmed([...before, ...came]));
  }, []);
  const append = useCallback((stream: Chunk['stream'], added: string) => {
    const last = waiting.current.at(-1);
    if (last?.stream === stream) last.text += added;
    else waiting.current.push({ key: ++made.current, stream, text: added });
    if (!frame.current) frame.current = requestAnimationFrame(flush);
  }, [flush]);
  const clear = useCallback(() => { waiting.current = []; setChunks([]); }, []);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return { chunks, append, clear };
}

function trimmed(chunks: Chunk[]): Chunk[] {
  let total = chunks.reduce((sum, chunk) => sum + chunk.text.length, 0);
  let from = 0;
  while (total > KEPT_CHARACTERS && from < chunks.length - 1) total -= chunks[from++].text.length;
  const kept = from ? chunks.slice(from) : chunks;
  return kept[0]?.text.length > KEPT_CHARACTERS ? [{ ...kept[0], text: kept[0].text.slice(-KEPT_CHARACTERS) }, ...kept.slice(1)] : kept;
}

export function Output({ chunks, follow = true, search = '', empty }: { chunks: Chunk[]; follow?: boolean; search?: string; empty?: string }) {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => { if (follow && isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [chunks, follow]);
  const onScroll = () => { const view = box.current!; isAtEnd.current = view.scrollHeight - view.scrollTop - view.clientHeight < 30; };
  return (
    <pre className="output" ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label={text.output.label}>
      {chunks.length === 0 && empty ? <span className="muted">{empty}</span> : chunks.map((chunk) => <Piece key={chunk.key} chunk={chunk} search={search} />)}
    </pre>
  );
}

const Piece = memo(function Piece({ chunk, search }: { chunk: Chunk; search: string }) {
  const name = chunk.stream === 'stderr' ? 'stderr' : chunk.stream === 'note' ? 'muted' : undefined;
  return <span className={name}>{pieces(chunk.text).map((piece, i) => <span key={i} className={piece.marks || undefined}>{marked(piece.text, search)}</span>)}</span>;
});

/** The text with what was looked for marked. */
function marked(whole: string, search: string) {
  if (!search) return whole;
  const parts = whole.split(new RegExp(`(${search.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')})`, 'gi'));
  return parts.map((part, i) => (i % 2 ? <mark key={i}>{part}</mark> : part));
}

export const countMatches = (chunks: Chunk[], search: string) => (search ? chunks.reduce((sum, chunk) => sum + chunk.text.toLowerCase().split(search.toLowerCase()).length - 1, 0) : 0);
