// SPDX-License-Identifier: Apache-2.0
// The server: whether it can make sandboxes, what its driver can do, what is used of it, its backups and orphans.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ServerCog } from 'lucide-react';

import { call } from '../../api/client';
import { useDriver, useQuotas, useSandboxes, useVersion } from '../../api/queries';
import type { BackupList, OrphanList } from '../../api/schema';
import { may } from '../../api/session';
import { Ago, Badge, Card, Empty, Facts, Loaded, Note, PageHead, TableWrap } from '../../components/Basics';
import { Button } from '../../components/Button';
import { attempt } from '../../components/Toasts';
import { bytes, parseSize } from '../../lib/format';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { Capacity } from './Capacity';
import { Doctor } from './Doctor';
import { Pools } from './Pools';
import './host.css';

export function HostPage() {
  useTitle(text.nav.host);
  const version = useVersion();
  const driver = useDriver();
  const sandboxes = useSandboxes();
  const quotas = useQuotas();
  const ready = useQuery({ queryKey: ['ready'], refetchInterval: 5000, queryFn: async () => { const answer = await fetch('/readyz'); return { isReady: answer.ok, why: (await answer.text()).trim() }; } });
  const used = quotas.data?.find((quota) => quota.user === null)?.used;
  const running = (sandboxes.data ?? []).filter((sandbox) => sandbox.status === 'running');
  const promised = running.reduce((sum, sandbox) => sum + (parseSize(sandbox.resources.memory) ?? 0), 0);
  return (
    <>
      <PageHead title={text.nav.host} about={text.host.about} />
      <div className="stack wide host-cards">
        {ready.data && !ready.data.isReady && <Note tone="bad">{ready.data.why}</Note>}
        {may('admin') && <Capacity />}
        <Card title={text.host.state}>
          <div className="body stack wide">
            <Facts facts={[
              [text.host.ready, ready.data ? <Badge tone={ready.data.isReady ? 'ok' : 'bad'}>{ready.data.isReady ? text.host.isReady : text.host.notReady}</Badge> : '–'],
              [text.host.version, version.data?.version ?? '–'],
              [text.host.driver, driver.data?.name ?? '–'],
              [text.host.sandboxes, sandboxes.data ? text.overview.counts(sandboxes.data.length, running.length) : '–'],
              [text.host.memoryPromised, bytes(promised)],
              [text.host.cpuPromised, running.reduce((sum, sandbox) => sum + (sandbox.resources.cpu ?? 0), 0)],
              [text.host.disk, used?.disk ? bytes(parseSize(used.disk)) : '–'],
              [text.host.images, used?.images ? bytes(parseSize(used.images)) : '–'],
              [text.host.workspaces, used?.workspaces ?? '–'],
            ]} />
            <div className="stack tight">
              <h3 className="small muted">{text.host.capabilities}</h3>
              <div className="row wrap"><Loaded query={driver} bones={1}>{(one) => <>{Object.entries(one?.capabilities ?? {}).map(([name, has]) => <Badge key={name} tone={has ? 'ok' : ''}>{text.host.capability[name] ?? name}{has ? '' : ` · ${text.no}`}</Badge>)}</>}</Loaded></div>
            </div>
          </div>
        </Card>
        {may('admin') && <><Doctor /><Pools /><Backups /><Orphans /></>}
      </div>
    </>
  );
}

function Backups() {
  const queries = useQueryClient();
  const query = useQuery({ queryKey: ['backups'], queryFn: ({ signal }) => call<BackupList>('GET', '/v1/backups', { signal }) });
  const make = () => attempt(() => call('POST', '/v1/backups'), text.host.backupBegun).then(() => queries.invalidateQueries({ queryKey: ['backups'] }));
  return (
    <Card title={text.host.backups} actions={<Button small onClick={() => void make()}>{text.host.backUp}</Button>}>
      <Loaded query={query}>
        {({ backups, failure }) => (
          <TableWrap>
            {failure && <Note tone="bad">{failure}</Note>}
            <table className="table"><thead><tr><th>{text.host.backupName}</th><th>{text.host.written}</th><th className="end">{text.size}</th></tr></thead>
              <tbody>{[...backups].reverse().map((backup) => <tr key={backup.name}><td className="mono break">{backup.name}</td><td><Ago time={backup.written_at} /></td><td className="end number">{bytes(backup.bytes)}</td></tr>)}</tbody>
            </table>
          </TableWrap>
        )}
      </Loaded>
    </Card>
  );
}

function Orphans() {
  const query = useQuery({ queryKey: ['orphans'], queryFn: ({ signal }) => call<OrphanList>('GET', '/v1/orphans', { signal }) });
  return (
    <Card title={text.host.orphans}>
      <Loaded query={query}>
        {({ orphans }) => (orphans.length === 0 ? <Empty icon={ServerCog} title={text.host.noOrphans}><p>{text.host.noOrphansAbout}</p></Empty> : (
          <TableWrap><table className="table"><thead><tr><th>{text.id}</th><th>{text.kind}</th><th>{text.host.location}</th></tr></thead>
            <tbody>{orphans.map((orphan) => <tr key={orphan.id}><td className="mono">{orphan.id}</td><td>{orphan.kind}</td><td className="mono break">{orphan.location}</td></tr>)}</tbody></table></TableWrap>
        ))}
      </Loaded>
    </Card>
  );
}
