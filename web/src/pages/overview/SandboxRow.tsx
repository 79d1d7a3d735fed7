// SPDX-License-Identifier: Apache-2.0
import { EllipsisVertical } from 'lucide-react';
import { memo } from 'react';
import { Link } from 'wouter';

import { useSamples } from '../../api/samples';
import type { Sandbox } from '../../api/schema';
import { Ago, Badge, StatusLabel } from '../../components/Basics';
import { IconButton } from '../../components/Button';
import { Menu } from '../../components/Menu';
import { Sparkline } from '../../components/Sparkline';
import { nameOf, verbItems } from '../../components/verbs';
import { bytes, duration, parseSize } from '../../lib/format';
import { useTimed } from '../../lib/hooks';
import { text } from '../../text/en';

export const ROW_HEIGHT = 60;

/** `onChoose` is the same for all rows, and always: a row is drawn anew only when it says something else. */
interface Props { sandbox: Sandbox; index: number; isChosen: boolean; onChoose: (id: string) => void; capabilities?: Record<string, boolean> }

export const SandboxRow = memo(function SandboxRow({ sandbox, index, isChosen, onChoose, capabilities }: Props) {
  const { id, status, template, owner, labels } = sandbox;
  const name = nameOf(sandbox);
  const tags = Object.entries(labels);
  return (
    <div role="row" className={isChosen ? 'sandbox-row chosen' : 'sandbox-row'} aria-rowindex={index} style={{ top: (index - 2) * ROW_HEIGHT }}>
      <span role="cell"><input type="checkbox" aria-label={text.overview.choose(name)} checked={isChosen} onChange={() => onChoose(id)} /></span>
      <span role="cell" className="who">
        <Link href={`/sandboxes/${encodeURIComponent(id)}`} className={sandbox.name ? 'name ellipsis' : 'name mono ellipsis'} title={id}>{name}</Link>
        <span className="under"><StatusLabel status={status} />{status === 'error' && sandbox.error_message && <span className="bad ellipsis" title={sandbox.error_message}>{sandbox.error_message}</span>}<span className="aside ellipsis">{[owner.user, owner.project].filter(Boolean).join(' / ')} · <Ago time={sandbox.created_at} /></span></span>
      </span>
      <span role="cell" className="template stack tight"><span className="ellipsis" title={template}>{template}</span>{tags.length > 0 && <span className="row labels">{tags.slice(0, 2).map(([key, value]) => <Badge key={key} title={`${key}=${value}`}>{key}={value}</Badge>)}{tags.length > 2 && <span className="small muted">+{tags.length - 2}</span>}</span>}</span>
      <span role="cell" className="owner"><span className="ellipsis">{owner.user}</span>{owner.project && <span className="small muted ellipsis">{owner.project}</span>}</span>
      <Figures sandbox={sandbox} />
      <span role="cell" className="idle"><IdleCountdown sandbox={sandbox} /></span>
      <span role="cell" className="age muted"><Ago time={sandbox.created_at} /></span>
      <span role="cell" className="more"><Menu trigger={<IconButton label={text.overview.actions(name)} icon={EllipsisVertical} />} items={verbItems(sandbox, capabilities)} /></span>
    </div>
  );
});

function Figures({ sandbox }: { sandbox: Sandbox }) {
  const samples = useSamples(sandbox.id);
  const now = samples.at(-1);
  if (sandbox.status !== 'running') return <><span role="cell" className="cpu muted">–</span><span role="cell" className="memory muted">–</span></>;
  return (
    <>
      <span role="cell" className="cpu"><Sparkline values={samples.map((sample) => sample.cpu)} top={sandbox.resources.cpu ?? 1} label={text.stats.cpu} /><span className="number small">{now ? `${Math.round(now.cpu * 100)} %` : ''}</span></span>
      <span role="cell" className="memory"><Sparkline values={samples.map((sample) => sample.memory_bytes)} top={parseSize(sandbox.resources.memory) ?? 1} label={text.stats.memory} /><span className="number small">{now ? bytes(now.memory_bytes) : ''}</span></span>
    </>
  );
}

/** How long until it is stopped as idle, if nobody uses it. */
export function IdleCountdown({ sandbox }: { sandbox: Sandbox }) {
  const end = sandbox.idle_timeout_s === null ? null : Date.parse(sandbox.last_active_at) + sandbox.idle_timeout_s * 1000;
  const isOn = sandbox.status === 'running' && end !== null;
  const left = useTimed((now) => (!isOn ? '' : end > now ? duration(Math.floor((end - now) / 1000) * 1000) : text.overview.soon), 1);
  const isNear = useTimed((now) => (isOn && end - now < 60_000 ? 'yes' : ''), 1);
  if (sandbox.status !== 'running') return <span className="muted">–</span>;
  if (!isOn) return <span className="muted">{text.overview.never}</span>;
  return <span className={isNear ? 'number warn' : 'number'} title={text.overview.idleTitle}>{left}</span>;
}
