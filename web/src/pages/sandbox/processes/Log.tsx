// SPDX-License-Identifier: Apache-2.0
// The kept output of one process, of the sandbox or of a member: followed live, searched; and signals to it.
import { OctagonX } from 'lucide-react';
import { useEffect, useState } from 'react';

import { call, part } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Process, Sandbox } from '../../../api/schema';
import { follow, textOf } from '../../../api/stream';
import { Badge, type Tone } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { Check, SearchBox } from '../../../components/Field';
import { Menu } from '../../../components/Menu';
import { countMatches, Output, useOutput } from '../../../components/Output';
import { attempt, complain } from '../../../components/Toasts';
import { bytes, duration } from '../../../lib/format';
import { text } from '../../../text/en';
import { explain } from '../lastEnd';

export const commandOf = (process: Process) => process.command ?? process.argv.join(' ');
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGKILL'];

export function stateOf(process: Process): { tone: Tone; label: string } {
  if (process.status === 'running') return { tone: 'ok', label: text.processes.runs };
  const reason = process.termination?.reason;
  if (reason && reason !== 'exited') return { tone: 'warn', label: reason };
  return { tone: process.exit_code === 0 ? '' : 'bad', label: text.run.exit(process.exit_code ?? 0) };
}

export function Log({ sandbox, process, member, searched = '' }: { sandbox: Sandbox; process: Process; member?: string; searched?: string }) {
  const { chunks, append, clear } = useOutput();
  const [isFollowing, setFollowing] = useState(true);
  const [search, setSearch] = useState(searched);
  const path = sandboxPath(sandbox.id, `/processes/${part(process.id)}`);

  useEffect(() => {
    const stop = new AbortController();
    clear();
    follow(`${path}/output`, { query: { member }, signal: stop.signal, last: ['exit'], canPoll: true }, ({ event, data }) => {
      if (event === 'stdout' || event === 'stderr') append(event, textOf(data));
      else if (event === 'cut') append('note', text.output.cut);
    }).catch((error) => complain(error));
    return () => stop.abort();
  }, [path, member, append, clear]);

  const signal = (name: string) => attempt(() => call('POST', `${path}/signal`, { query: { member }, json: { signal: name } }), text.processes.signalled(name));
  const { tone, label } = stateOf(process);
  return (
    <section className="card" aria-label={text.output.label}>
      <header>
        <code className="ellipsis grow" title={commandOf(process)}>{commandOf(process)}</code>
        <Badge tone={tone} title={process.termination ? explain(process.termination) : undefined}>{label}</Badge>
        <span className="small muted number">{[process.pid && `pid ${process.pid}`, process.user, bytes(process.output_bytes), process.duration_ms !== null && duration(process.duration_ms)].filter(Boolean).join(' · ')}</span>
        {process.status === 'running' && <Menu trigger={<Button small icon={OctagonX}>{text.processes.signal}</Button>} items={SIGNALS.map((name) => ({ label: name, bad: name === 'SIGKILL', act: () => void signal(name) }))} />}
      </header>
      <header>
        <SearchBox className="grow" label={text.output.search} value={search} onText={setSearch} />
        {search && <span className="small muted number">{text.output.matches(countMatches(chunks, search))}</span>}
        <Check label={text.output.follow} checked={isFollowing} onCheck={setFollowing} />
      </header>
      <Output chunks={chunks} follow={isFollowing} search={search} empty={text.output.none} />
    </section>
  );
}
