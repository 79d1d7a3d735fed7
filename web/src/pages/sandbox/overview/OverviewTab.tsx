// SPDX-License-Identifier: Apache-2.0
// What a sandbox is and uses.
import { ExternalLink } from 'lucide-react';
import { lazy, Suspense } from 'react';

import { useSamplesOf } from '../../../api/history';
import { useStats } from '../../../api/queries';
import type { Sample } from '../../../api/samples';
import type { Sandbox, Stats } from '../../../api/schema';
import { Ago, Badge, Bones, Card, Facts, Meter, TableWrap } from '../../../components/Basics';
import { bytes, duration } from '../../../lib/format';
import { text } from '../../../text/en';
import { explain } from '../lastEnd';

const Charts = lazy(() => import('./Charts'));

export default function OverviewTab({ sandbox }: { sandbox: Sandbox }) {
  const isOn = sandbox.status === 'running' || sandbox.status === 'paused';
  const samples = useSamplesOf(sandbox.id, isOn);
  const stats = useStats(sandbox.id, true, 30_000);
  const now = stats.data && merged(stats.data, isOn ? samples.at(-1) : undefined);
  return (
    <div className="stack wide">
      <Meters stats={now} />
      <Suspense fallback={<div className="charts-wait"><Bones count={3} /></div>}><Charts sandbox={sandbox} samples={samples} memoryLimit={stats.data?.memory.limit_bytes} diskLimit={stats.data?.disk.limit_bytes} /></Suspense>
      <div className="grid two">
        <Card title={text.sandbox.facts}><div className="body"><SandboxFacts sandbox={sandbox} /></div></Card>
        <div className="stack">
          {sandbox.start.length > 0 && <StartCommands sandbox={sandbox} />}
          {sandbox.walls && <Card title={text.sandbox.walls}><div className="body row wrap">{Object.entries(sandbox.walls).filter(([, value]) => value).map(([name, value]) => <Badge key={name} title={String(value)}>{name.replaceAll('_', ' ')}: {String(value).replaceAll('_', ' ')}</Badge>)}</div></Card>}
        </div>
      </div>
    </div>
  );
}

/** The figures as the last sample has them. */
const merged = (stats: Stats, sample: Sample | undefined): Stats => (sample ? { ...stats, memory: { ...stats.memory, current_bytes: sample.memory_bytes }, disk: { ...stats.disk, used_bytes: sample.disk_bytes }, pids: { ...stats.pids, current: sample.pids } } : stats);

function Meters({ stats }: { stats: Stats | undefined }) {
  if (!stats) return <div className="meters">{[text.stats.memory, text.stats.disk, text.stats.pids, text.stats.network].map((name) => <div key={name} className="card figure"><div className="small muted">{name}</div><div className="value number">–</div><Meter label={name} used={0} limit={1} /></div>)}</div>;
  const { memory, disk, pids, network } = stats;
  const rows: { name: string; value: string; most?: string; used?: number; limit?: number | null }[] = [
    { name: text.stats.memory, value: bytes(memory.current_bytes), most: bytes(memory.limit_bytes), used: memory.current_bytes, limit: memory.limit_bytes },
    { name: text.stats.disk, value: bytes(disk.used_bytes), most: bytes(disk.limit_bytes), used: disk.used_bytes, limit: disk.limit_bytes },
    { name: text.stats.pids, value: String(pids.current ?? 0), most: String(pids.limit ?? '–'), used: pids.current, limit: pids.limit },
    { name: text.stats.network, value: `↓ ${bytes(network.rx_bytes)}  ↑ ${bytes(network.tx_bytes)}` },
  ];
  return (
    <div className="meters">
      {rows.map(({ name, value, most, used, limit }) => (
        <div key={name} className="card figure"><div className="small muted">{name}</div><div className="value number">{value}{most && <span className="most">{text.ofAll(most)}</span>}</div>{used !== undefined && <Meter label={name} used={used} limit={limit} />}</div>
      ))}
    </div>
  );
}

function SandboxFacts({ sandbox }: { sandbox: Sandbox }) {
  const { owner, resources, network } = sandbox;
  const previews = Object.entries(sandbox.previews);
  return (
    <Facts facts={[
      [text.facts.owner, `${owner.organization}/${owner.user}`],
      [text.facts.project, owner.project],
      [text.facts.template, sandbox.template],
      [text.facts.driver, sandbox.driver],
      [text.facts.limits, text.facts.limitsOf(resources.cpu ?? 0, resources.memory ?? '', resources.disk ?? '', resources.pids ?? 0)],
      [text.facts.network, [text.networkModes[network.mode ?? 'internet'], ...(network.allow ?? [])].join(', ')],
      [text.facts.security, sandbox.security],
      [text.facts.previews, previews.length > 0 && <span className="stack tight">{previews.map(([port, url]) => <a key={port} href={url} target="_blank" rel="noreferrer" className="row">{port}<ExternalLink size={13} aria-hidden /><span className="sr-only">{text.newTab}</span></a>)}</span>],
      [text.facts.privacy, sandbox.private ? text.facts.private : text.facts.public],
      [text.facts.idle, sandbox.idle_timeout_s === null ? text.overview.never : duration(sandbox.idle_timeout_s * 1000)],
      [text.facts.lifetime, sandbox.lifetime_s === null ? text.overview.never : duration(sandbox.lifetime_s * 1000)],
      [text.facts.awake, sandbox.awake_because],
      [text.facts.created, <Ago time={sandbox.created_at} />],
      [text.facts.started, sandbox.started_at && <Ago time={sandbox.started_at} />],
      [text.facts.active, <Ago time={sandbox.last_active_at} />],
      [text.facts.expires, sandbox.expires_at && <Ago time={sandbox.expires_at} />],
      [text.facts.lastEnd, sandbox.last_termination && explain(sandbox.last_termination)],
    ]} />
  );
}

function StartCommands({ sandbox }: { sandbox: Sandbox }) {
  return (
    <Card title={text.sandbox.startCommands}>
      <TableWrap><table className="table">
        <thead><tr><th>{text.name}</th><th>{text.command}</th><th>{text.status}</th><th className="end">{text.sandbox.restarts}</th></tr></thead>
        <tbody>{sandbox.start.map((one) => (
          <tr key={one.name}><td>{one.name}</td><td className="mono break">{one.command}</td><td><Badge tone={one.status === 'running' ? 'ok' : one.status === 'waiting' ? 'warn' : ''} title={one.last_error ?? undefined}>{one.status}</Badge></td><td className="end number">{one.restarts}</td></tr>
        ))}</tbody>
      </table></TableWrap>
    </Card>
  );
}
