// SPDX-License-Identifier: Apache-2.0
// Small things without behaviour: states of a page, badges, facts, meters, times.
import { CircleAlert, Info, TriangleAlert, type LucideIcon } from 'lucide-react';
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode } from 'react';

import { ApiError, isUnreachable } from '../api/client';
import type { Sandbox } from '../api/schema';
import { ago, fullTime } from '../lib/format';
import { useTimed } from '../lib/hooks';
import { text } from '../text/en';
import { Button } from './Button';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | '';

export const Badge = ({ tone = '', title, children }: { tone?: Tone; title?: string; children: ReactNode }) => <span className={`badge ${tone}`} title={title}><span>{children}</span></span>;

export const TONES: Record<Sandbox['status'], Tone> = { creating: 'info', running: 'ok', paused: 'warn', stopped: '', error: 'bad' };

export const StatusLabel = ({ status }: { status: Sandbox['status'] }) => (
  <span className="row nowrap" style={{ gap: 9 }}><span className={`dot ${TONES[status] ?? ''}`} aria-hidden />{text.statuses[status] ?? status}</span>
);

export function Empty({ icon: Icon, title, children }: { icon: LucideIcon; title: string; children?: ReactNode }) {
  return <div className="empty"><div className="glyph"><Icon size={22} aria-hidden /></div><h2>{title}</h2>{children}</div>;
}

export const Bones = ({ count = 4 }: { count?: number }) => (
  <div className="bones" role="status" aria-label={text.loading}>{Array.from({ length: count }, (_, i) => <div key={i} className="bone" style={{ width: `${92 - (i * 17) % 50}%` }} />)}</div>
);

const NOTE_ICONS = { '': Info, warn: TriangleAlert, bad: CircleAlert };
export function Note({ tone = '', children }: { tone?: '' | 'warn' | 'bad'; children: ReactNode }) {
  const Icon = NOTE_ICONS[tone];
  return <div className={`note ${tone}`} role={tone === 'bad' ? 'alert' : undefined}><Icon size={16} aria-hidden /><div className="grow">{children}</div></div>;
}

/** What stands in the place of something that could not be read. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const said = error instanceof ApiError ? error : null;
  return (
    <div className="empty" role="alert">
      <div className="glyph"><CircleAlert size={22} className="bad" aria-hidden /></div>
      <h2>{isUnreachable(error) ? text.unreachable : said?.message ?? text.failed}</h2>
      {said?.remediation && <p>{said.remediation}</p>}
      {said?.requestId && <p className="small">{text.requestId} <code>{said.requestId}</code></p>}
      {retry && <Button onClick={retry}>{text.retry}</Button>}
    </div>
  );
}

/** Shows data once it is there, what is there meanwhile, and why it is not. */
export function Loaded<T>({ query, children, bones }: { query: { data: T | undefined; error: unknown; refetch: () => unknown }; children: (data: T) => ReactNode; bones?: number }) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return <Bones count={bones} />;
}

export const Card = ({ title, actions, children, className = '' }: { title?: ReactNode; actions?: ReactNode; children: ReactNode; className?: string }) => (
  <section className={`card ${className}`}>
    {title && <header><h2>{title}</h2>{actions}</header>}
    {children}
  </section>
);

export const Facts = ({ facts }: { facts: [string, ReactNode][] }) => (
  <dl className="facts">{facts.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
);

export const PageHead = ({ title, about, children }: { title: string; about?: string; children?: ReactNode }) => (
  <div className="page-head"><div className="grow"><h1>{title}</h1>{about && <p>{about}</p>}</div>{children}</div>
);

/** Tells each cell the name of its column, for places so narrow that a row is shown as a small card (components.css). */
function nameCells(box: HTMLElement): void {
  for (const table of box.querySelectorAll('table')) {
    const names = [...table.tHead?.rows[0]?.cells ?? []].map((cell) => cell.textContent ?? '');
    for (const row of table.tBodies[0]?.rows ?? []) [...row.cells].forEach((cell, i) => { cell.dataset.column = names[i] ?? ''; });
  }
}

/**
 * A table that may be wider than its place: it scrolls, and the keyboard reaches it while there is something to scroll.
 * In a very narrow place its rows are cards, unless it is slim: its few columns fit everywhere.
 */
export function TableWrap({ children, isSlim }: { children: ReactNode; isSlim?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [isWide, setWide] = useState(false);
  const measure = () => setWide(box.current !== null && box.current.scrollWidth > box.current.clientWidth);
  useLayoutEffect(() => { nameCells(box.current!); measure(); });
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    for (const child of box.current!.children) observer.observe(child);
    const rows = new MutationObserver(() => nameCells(box.current!));
    rows.observe(box.current!, { childList: true, subtree: true });
    return () => { observer.disconnect(); rows.disconnect(); };
  }, []);
  return <div className={isSlim ? 'table-wrap slim' : 'table-wrap'} ref={box} tabIndex={isWide ? 0 : undefined}>{children}</div>;
}

/** How much of a limit is used. */
export function Meter({ label, used, limit, plain }: { label: string; used: number; limit: number | null | undefined; plain?: boolean }) {
  if (!limit) return <div className="meter none" />;
  const share = limit ? Math.min(used / limit, 1) : 0;
  const tone = plain ? '' : share > 0.92 ? 'bad' : share > 0.75 ? 'warn' : '';
  return <div className={plain ? 'meter progress' : 'meter'} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(share * 100)}><div className={tone} style={{ width: `${Math.max(share * 100, share > 0 ? 1.5 : 0)}%` }} /></div>;
}

export function Ago({ time }: { time: string | null | undefined }) {
  const said = useTimed((now) => (time ? ago(time, now) : ''), 5);
  return time ? <time dateTime={time} title={fullTime(time)} className="nowrap">{said}</time> : <span className="muted">–</span>;
}
