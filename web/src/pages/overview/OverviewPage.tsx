// SPDX-License-Identifier: Apache-2.0
// All sandboxes, live. What is looked for stands in the address, so that a view can be shared and comes back.
import { Boxes, Plus, X } from 'lucide-react';
import { useCallback, useMemo, useState } from 'react';
import { useLocation } from 'wouter';

import { useStatsEvents } from '../../api/live';
import { useDriver, useSandboxes } from '../../api/queries';
import type { Sandbox } from '../../api/schema';
import { Button, IconButton } from '../../components/Button';
import { Empty, Loaded, PageHead } from '../../components/Basics';
import { SearchBox } from '../../components/Field';
import { perform, VERBS } from '../../components/verbs';
import { useQueryValue, useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { CreateDialog } from './CreateDialog';
import { ROW_HEIGHT, SandboxRow } from './SandboxRow';
import { useWindowed } from './useWindowed';
import './overview.css';

const STATUSES: Sandbox['status'][] = ['running', 'paused', 'stopped', 'creating', 'error'];
const ORDER = new Map(STATUSES.map((status, i) => [status, status === 'error' ? -2 : status === 'creating' ? -1 : i]));

/** Whether each word of a search is somewhere in what is known of a sandbox; k=v means a label. */
function fits(sandbox: Sandbox, words: string[]): boolean {
  const known = [sandbox.id, sandbox.name, sandbox.template, sandbox.owner.user, sandbox.owner.project, ...Object.entries(sandbox.labels).map(([key, value]) => `${key}=${value}`)].join(' ').toLowerCase();
  return words.every((word) => known.includes(word));
}

export function OverviewPage() {
  const query = useSandboxes();
  const [search, setSearch] = useQueryValue('q');
  const [status, setStatus] = useQueryValue('status');
  const [creating, setCreating] = useQueryValue('create');
  const [, go] = useLocation();
  useTitle(text.nav.sandboxes);

  const all = query.data ?? [];
  const counts = useMemo(() => new Map(STATUSES.map((name) => [name, all.filter((sandbox) => sandbox.status === name).length])), [all]);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = useMemo(() => all.filter((sandbox) => (!status || sandbox.status === status) && fits(sandbox, words))
    .sort((a, b) => ORDER.get(a.status)! - ORDER.get(b.status)! || (a.created_at < b.created_at ? 1 : -1)), [all, status, search]);

  return (
    <>
      <PageHead title={text.nav.sandboxes} about={query.data ? text.overview.counts(all.length, counts.get('running') ?? 0) : '\u00a0'}>
        <Button kind="primary" icon={Plus} onClick={() => setCreating('yes')}>{text.create.open}</Button>
      </PageHead>
      <div className="filters">
        <SearchBox label={text.overview.search} value={search} onText={setSearch} />
        <div className="row wrap" role="group" aria-label={text.overview.statusFilter}>
          {STATUSES.filter((name) => counts.get(name) || status === name).map((name) => (
            <Button key={name} small aria-pressed={status === name} onClick={() => setStatus(status === name ? '' : name)}>{text.statuses[name]} <span className="muted number">{counts.get(name)}</span></Button>
          ))}
        </div>
      </div>
      <div className="card">
        <Loaded query={query} bones={8}>
          {() => (all.length === 0
            ? <Empty icon={Boxes} title={text.overview.none}><p>{text.overview.noneAbout}</p><Button kind="primary" icon={Plus} onClick={() => setCreating('yes')}>{text.create.open}</Button></Empty>
            : shown.length === 0
              ? <Empty icon={Boxes} title={text.overview.noMatch}><p>{text.overview.noMatchAbout}</p><Button onClick={() => go('/')}>{text.overview.clear}</Button></Empty>
              : <List shown={shown} />)}
        </Loaded>
      </div>
      {creating && <CreateDialog onClose={() => setCreating('')} onMade={(sandbox) => go(`/sandboxes/${encodeURIComponent(sandbox.id)}`)} />}
    </>
  );
}

function List({ shown }: { shown: Sandbox[] }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const driver = useDriver();
  const { box, from, to } = useWindowed<HTMLDivElement>(shown.length, ROW_HEIGHT);
  const visible = shown.slice(from, to);
  useStatsEvents(visible.some((sandbox) => sandbox.status === 'running'));
  const picked = useMemo(() => shown.filter((sandbox) => chosen.has(sandbox.id)), [shown, chosen]);
  const isAll = picked.length === shown.length;

  const toggle = useCallback((id: string) => setChosen((before) => {
    const after = new Set(before);
    if (!after.delete(id)) after.add(id);
    return after;
  }), []);
  return (
    <div role="table" aria-label={text.nav.sandboxes} aria-rowcount={shown.length + 1} className="sandboxes">
      <div role="rowgroup">
        <div role="row" className="sandbox-row head" aria-rowindex={1}>
          <span role="columnheader"><input type="checkbox" aria-label={text.overview.chooseAll} checked={isAll} ref={(input) => { if (input) input.indeterminate = picked.length > 0 && !isAll; }} onChange={() => setChosen(new Set(isAll ? [] : shown.map((sandbox) => sandbox.id)))} /></span>
          {picked.length > 0 ? (
            <span role="columnheader" className="bulk">
              <span className="strong">{text.overview.chosen(picked.length)}</span>
              {VERBS.filter((row) => picked.some((sandbox) => row.when.includes(sandbox.status))).map((row) => (
                <Button key={row.verb} small icon={row.icon} className={row.bad ? 'bad' : ''} onClick={() => void perform(picked, row.verb).then((isDone) => { if (isDone) setChosen(new Set()); })}>{text.verbs[row.verb]}</Button>
              ))}
              <IconButton small label={text.overview.unchoose} icon={X} onClick={() => setChosen(new Set())} />
            </span>
          ) : text.overview.columns.map((column) => <span role="columnheader" key={column}>{column}</span>)}
        </div>
      </div>
      <div role="rowgroup" ref={box} className="rows" style={{ height: shown.length * ROW_HEIGHT }}>
        {visible.map((sandbox, i) => <SandboxRow key={sandbox.id} sandbox={sandbox} index={from + i + 2} isChosen={chosen.has(sandbox.id)} onChoose={toggle} capabilities={driver.data?.capabilities} />)}
      </div>
    </div>
  );
}
