// SPDX-License-Identifier: Apache-2.0
// Copies of a sandbox's files: made, gone back to, forked from; and what has changed since.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Camera, GitFork, RotateCcw, Undo2 } from 'lucide-react';
import { useState } from 'react';
import { useLocation } from 'wouter';

import { call } from '../../../api/client';
import { place } from '../../../api/live';
import { sandboxPath, useSnapshots } from '../../../api/queries';
import type { ChangeList, Fork, Sandbox, Snapshot } from '../../../api/schema';
import { ask, askText } from '../../../components/Ask';
import { Badge, Card, Empty, Loaded, type Tone } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { SearchBox } from '../../../components/Field';
import { SnapshotTable } from '../../../components/SnapshotTable';
import { attempt, say } from '../../../components/Toasts';
import { bytes } from '../../../lib/format';
import { text } from '../../../text/en';

const KINDS: Record<string, Tone> = { added: 'ok', modified: 'warn', deleted: 'bad' };

export default function SnapshotsTab({ sandbox }: { sandbox: Sandbox }) {
  const query = useSnapshots(sandbox.id);
  const queries = useQueryClient();
  const [since, setSince] = useState<Snapshot | null>(null);
  const [, go] = useLocation();
  const reload = () => queries.invalidateQueries({ queryKey: ['snapshots'] });

  const make = async () => {
    const name = await askText({ title: text.snapshots.make, about: text.snapshots.makeAbout, confirm: text.snapshots.makeButton, value: text.snapshots.nameOf(new Date()), label: text.name });
    if (name && await attempt(() => call('POST', sandboxPath(sandbox.id, '/snapshots'), { json: { name } }), text.snapshots.made)) void reload();
  };
  const fork = () => attempt(async () => {
    const { sandboxes } = await call<Fork>('POST', sandboxPath(sandbox.id, '/fork'), { json: { count: 1 } });
    sandboxes.forEach((one) => place(queries, one.id, one));
    say(text.snapshots.forked);
    go(`/sandboxes/${encodeURIComponent(sandboxes[0].id)}`);
  });
  const restore = async (snapshot: Snapshot) => {
    if (await ask({ title: text.snapshots.restoreTitle(snapshot.name ?? snapshot.id), about: text.snapshots.restoreAbout, confirm: text.snapshots.restore, danger: true })) await attempt(() => call('POST', sandboxPath(sandbox.id, '/restore'), { json: { snapshot: snapshot.id } }), text.snapshots.restored);
  };
  const undo = async () => { if (await ask({ title: text.snapshots.undo, about: text.snapshots.undoAbout, confirm: text.snapshots.undo, danger: true })) await attempt(() => call('POST', sandboxPath(sandbox.id, '/undo')), text.snapshots.undone); };
  return (
    <div className="stack wide">
      <Card title={text.tabs.snapshots} actions={<>
        {query.data?.some((one) => one.checkpoint) && <Button small icon={Undo2} onClick={() => void undo()}>{text.snapshots.undo}</Button>}
        <Button small icon={GitFork} onClick={() => void fork()}>{text.snapshots.fork}</Button>
        <Button small kind="primary" icon={Camera} onClick={() => void make()}>{text.snapshots.makeButton}</Button>
      </>}>
        <Loaded query={query}>
          {(list) => (list.length === 0 ? <Empty icon={Camera} title={text.snapshots.none}><p>{text.snapshots.noneAbout}</p></Empty>
            : <SnapshotTable list={list} onGone={() => void reload()} actions={(snapshot) => <><Button small onClick={() => setSince(snapshot)}>{text.snapshots.changes}</Button><Button small icon={RotateCcw} onClick={() => void restore(snapshot)}>{text.snapshots.restore}</Button></>} />)}
        </Loaded>
      </Card>
      <Changes sandbox={sandbox} since={since} onAll={() => setSince(null)} />
    </div>
  );
}

function Changes({ sandbox, since, onAll }: { sandbox: Sandbox; since: Snapshot | null; onAll: () => void }) {
  const query = useQuery({ queryKey: ['changes', sandbox.id, since?.id ?? ''], queryFn: ({ signal }) => call<ChangeList>('GET', sandboxPath(sandbox.id, '/changes'), { query: { since: since?.id, limit: 1000 }, signal }), staleTime: 0 });
  const [search, setSearch] = useState('');
  return (
    <Card title={since ? text.snapshots.changedSince(since.name ?? since.id) : text.snapshots.changed} actions={<>{since && <Button small onClick={onAll}>{text.snapshots.sinceCreated}</Button>}<Button small onClick={() => void query.refetch()}>{text.refresh}</Button></>}>
      <Loaded query={query}>
        {({ changes, next_cursor }) => {
          const shown = changes.filter((change) => (change.path ?? '').toLowerCase().includes(search.toLowerCase()));
          return changes.length === 0 ? <p className="body muted">{text.snapshots.unchanged}</p> : (
            <>
              <div style={{ padding: '12px 16px 0' }}><SearchBox label={text.snapshots.searchChanges} value={search} onText={setSearch} /></div>
              <div className="table-wrap slim" style={{ maxHeight: 420, overflowY: 'auto' }} tabIndex={0} role="region" aria-label={text.snapshots.changed}><table className="table">
                <thead><tr><th>{text.kind}</th><th>{text.path}</th><th className="end">{text.size}</th></tr></thead>
                <tbody>{shown.slice(0, 1000).map((change, i) => <tr key={change.path ?? i}><td><Badge tone={KINDS[change.kind]}>{text.snapshots.kinds[change.kind]}</Badge></td><td className="mono break">{change.path ?? text.files.unreadable}</td><td className="end number">{bytes(change.size)}</td></tr>)}</tbody>
              </table></div>
              {next_cursor && <p className="body small muted">{text.snapshots.moreChanges}</p>}
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}
