// SPDX-License-Identifier: Apache-2.0
// Snapshots of all sandboxes, also of those that are gone.
import { useQueryClient } from '@tanstack/react-query';
import { Camera, Play } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';

import { part } from '../../api/client';
import { useSandboxes, useSnapshots } from '../../api/queries';
import { Card, Empty, Loaded, PageHead } from '../../components/Basics';
import { Button } from '../../components/Button';
import { SnapshotTable } from '../../components/SnapshotTable';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { CreateDialog } from '../overview/CreateDialog';

export function SnapshotsPage() {
  const query = useSnapshots();
  const { data: sandboxes = [] } = useSandboxes();
  const queries = useQueryClient();
  const [from, setFrom] = useState<string | null>(null);
  const [, go] = useLocation();
  useTitle(text.nav.snapshots);
  const origin = (id: string) => {
    const sandbox = sandboxes.find((one) => one.id === id);
    return sandbox ? <Link href={`/sandboxes/${part(id)}`}>{sandbox.name ?? id}</Link> : <span className="muted mono">{id}</span>;
  };
  return (
    <>
      <PageHead title={text.nav.snapshots} about={text.snapshots.about} />
      <Card>
        <Loaded query={query}>
          {(list) => (list.length === 0 ? <Empty icon={Camera} title={text.snapshots.none}><p>{text.snapshots.noneAnywhere}</p></Empty>
            : <SnapshotTable list={list} onGone={() => void queries.invalidateQueries({ queryKey: ['snapshots'] })} origin={(snapshot) => origin(snapshot.sandbox_id)} actions={(snapshot) => <Button small icon={Play} onClick={() => setFrom(snapshot.id)}>{text.snapshots.start}</Button>} />)}
        </Loaded>
      </Card>
      {from && <CreateDialog snapshot={from} onClose={() => setFrom(null)} onMade={(sandbox) => go(`/sandboxes/${part(sandbox.id)}`)} />}
    </>
  );
}
