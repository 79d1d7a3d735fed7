// SPDX-License-Identifier: Apache-2.0
// Runs commands in a sandbox, or a member of it, and shows what they write while they do, with their end. What was run
// before comes back with the arrow keys.
import { Play, SquareChevronRight, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';

import { ApiError } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Sandbox, Termination } from '../../../api/schema';
import { stream, textOf } from '../../../api/stream';
import { Badge, Empty } from '../../../components/Basics';
import { Button, IconButton } from '../../../components/Button';
import { Output, useOutput } from '../../../components/Output';
import { duration } from '../../../lib/format';
import { remember, remembered } from '../../../lib/store';
import { text } from '../../../text/en';
import { explain } from '../lastEnd';

const KEPT = 50;
interface Job { key: number; command: string; user: string }

export function Runner({ sandbox, member }: { sandbox: Sandbox; member?: string }) {
  const store = `history.${sandbox.id}${member ? `.${member}` : ''}`;
  const [history, setHistory] = useState<string[]>(() => remembered(store, []));
  const [command, setCommand] = useState('');
  const [user, setUser] = useState('');
  const [jobs, setJobs] = useState<Job[]>([]);
  const at = useRef(-1);

  const run = () => {
    const line = command.trim();
    if (!line) return;
    const kept = [line, ...history.filter((one) => one !== line)].slice(0, KEPT);
    setHistory(kept);
    remember(store, kept);
    setJobs((before) => [{ key: Date.now(), command: line, user }, ...before].slice(0, 20));
    setCommand('');
    at.current = -1;
  };
  const recall = (event: React.KeyboardEvent, by: number) => {
    const next = Math.max(-1, Math.min(at.current + by, history.length - 1));
    if (next === at.current) return;
    event.preventDefault();
    at.current = next;
    setCommand(history[next] ?? '');
  };
  return (
    <div className="card">
      <form className="prompt" onSubmit={(event) => { event.preventDefault(); run(); }}>
        <input className="input" aria-label={text.run.command} placeholder={text.run.hint} value={command} autoFocus autoComplete="off" autoCapitalize="off" spellCheck={false} onChange={(event) => setCommand(event.target.value)}
          onKeyDown={(event) => { if (event.key === 'ArrowUp') recall(event, 1); if (event.key === 'ArrowDown') recall(event, -1); }} />
        <select className="input" style={{ flex: '0 0 130px' }} aria-label={text.run.user} value={user} onChange={(event) => setUser(event.target.value)}><option value="">sandbox</option><option value="root">root</option></select>
        <Button kind="primary" type="submit" icon={Play} disabled={!command.trim()}>{text.run.button}</Button>
      </form>
      {jobs.length === 0 ? <Empty icon={SquareChevronRight} title={text.run.none}><p>{history.length ? text.run.noneWithHistory : text.run.noneAbout}</p></Empty>
        : <ul className="runs">{jobs.map((job) => <Run key={job.key} sandbox={sandbox.id} member={member} job={job} onDrop={() => setJobs((before) => before.filter((one) => one.key !== job.key))} />)}</ul>}
    </div>
  );
}

interface End { exit_code: number; duration_ms: number; termination: Termination | null }

function Run({ sandbox, member, job, onDrop }: { sandbox: string; member?: string; job: Job; onDrop: () => void }) {
  const { chunks, append } = useOutput();
  const [end, setEnd] = useState<End | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const stop = useRef<AbortController>(undefined);

  useEffect(() => {
    const control = new AbortController();
    stop.current = control;
    const go = () => stream('POST', sandboxPath(sandbox, '/exec'), { query: { member }, json: { command: job.command, user: job.user || undefined }, signal: control.signal }, ({ event, data }) => {
      if (event === 'stdout' || event === 'stderr') append(event, textOf(data));
      else if (event === 'cut') append('note', text.output.cut);
      else if (event === 'exit') setEnd(data);
    }).catch((error) => { if (!control.signal.aborted) setFault(error instanceof ApiError ? error.message : String(error)); });
    const timer = setTimeout(() => void go(), 0);
    return () => { clearTimeout(timer); control.abort(); };
  }, [sandbox, member, job, append]);

  const isOver = end !== null || fault !== null;
  return (
    <li>
      <div className="run-head">
        <code className="ellipsis" title={job.command}><span className="muted">$ </span>{job.command}</code>
        {end ? <><Badge tone={end.exit_code === 0 ? 'ok' : 'bad'} title={end.termination ? explain(end.termination) : undefined}>{end.termination && end.termination.reason !== 'exited' ? explain(end.termination) : text.run.exit(end.exit_code)}</Badge><span className="small muted number nowrap">{duration(end.duration_ms)}</span></>
          : fault === null && <><span className="spinner" role="status" aria-label={text.run.running} /><Button small onClick={() => { stop.current?.abort(); setFault(text.run.cancelled); }}>{text.cancel}</Button></>}
        {isOver && <IconButton small label={text.run.drop} icon={X} onClick={onDrop} />}
      </div>
      {(chunks.length > 0 || fault) && <Output chunks={fault ? [...chunks, { key: -1, stream: 'stderr', text: fault }] : chunks} />}
    </li>
  );
}
