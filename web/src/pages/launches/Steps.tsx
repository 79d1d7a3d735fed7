// SPDX-License-Identifier: Apache-2.0
// The stages of a launch, one below the other. The one that runs and the one that failed show what they said.
import { Check, CircleDashed, Minus, RotateCcw, X, type LucideIcon } from 'lucide-react';
import { useMemo, useState } from 'react';

import type { Launch } from '../../api/schema';
import { Button } from '../../components/Button';
import { Output } from '../../components/Output';
import { duration } from '../../lib/format';
import { text } from '../../text/en';

type Stage = Launch['stages'][number];
export type Logs = Record<string, string[]>;
const ICONS: Record<Stage['status'], LucideIcon | null> = { pending: CircleDashed, running: null, complete: Check, failed: X, skipped: Minus };

export function Steps({ launch, logs, onRetry }: { launch: Launch; logs: Logs; onRetry: (stage: string) => void }) {
  return <ol className="steps">{launch.stages.map((stage) => <Step key={stage.stage} stage={stage} lines={logs[stage.stage]} isOver={launch.status !== 'running'} onRetry={() => onRetry(stage.stage)} />)}</ol>;
}

function Step({ stage, lines, isOver, onRetry }: { stage: Stage; lines?: string[]; isOver: boolean; onRetry: () => void }) {
  const [wish, setWish] = useState<boolean | null>(null);
  const chunks = useMemo(() => (lines?.length ? [{ key: 0, stream: 'stdout' as const, text: `${lines.join('\n')}\n` }] : []), [lines]);
  const Icon = ICONS[stage.status];
  const isOpen = wish ?? (stage.status === 'running' || stage.status === 'failed');
  return (
    <li className={stage.status} aria-current={stage.status === 'running' ? 'step' : undefined}>
      <span className="mark" aria-hidden>{Icon ? <Icon size={15} /> : <span className="spinner" />}</span>
      <div className="grow stack tight">
        <div className="row wrap">
          <h3 className="grow">{text.launches.names[stage.stage] ?? stage.stage}</h3>
          <span className="small muted number">{text.launches.states[stage.status]}{stage.duration_ms !== null && stage.status !== 'skipped' && ` · ${duration(stage.duration_ms)}`}</span>
          {isOver && stage.status === 'failed' && <Button small icon={RotateCcw} onClick={onRetry}>{text.launches.from}</Button>}
          {chunks.length > 0 && <Button small kind="ghost" aria-expanded={isOpen} onClick={() => setWish(!isOpen)}>{isOpen ? text.launches.hideLog : text.launches.showLog(lines!.length)}</Button>}
        </div>
        <p className="small muted">{text.launches.abouts[stage.stage]}</p>
        {stage.error && <p className="small bad break">{stage.error}</p>}
        {isOpen && chunks.length > 0 && <Output chunks={chunks} />}
      </div>
    </li>
  );
}
