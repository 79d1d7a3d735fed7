// SPDX-License-Identifier: Apache-2.0
// Processes that run or ended, with their kept output: followed live, searched, signalled. Looking needs no running sandbox.
import { ListTree, OctagonX } from 'lucide-react';
import { useEffect, useState } from 'react';

import { call, part } from '../../../api/client';
import { sandboxPath, useProcesses } from '../../../api/queries';
import type { Process, Sandbox } from '../../../api/schema';
import { follow, textOf } from '../../../api/stream';
import { Ago, Badge, Empty, Loaded, type Tone } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { Check, SearchBox, Segments } from '../../../components/Field';
import { Menu } from '../../../components/Menu';
import { attempt, complain } from '../../../components/Toasts';
import { countMatches, Output, useOutput } from '../../../components/Output';
import { bytes, duration } from '../../../lib/format';
import { useQueryValue } from '../../../lib/hooks';
import { text } from '../../../text/en';
import { explain } from '../lastEnd';

const commandOf = (process: Process) => process.command ?? process.argv.join(' ');
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGKILL'];

export default function ProcessesTab({ sandbox }: { sandbox: Sandbox }) {
  const query = useProcesses(sandbox.id);
  const [chosen, setChosen] = useQueryValue('process');
  const [kind, setKind] = useQueryValue('show');
  return (
    <Loaded query={query}>
      {(all) => {
        const list = all.filter((process) => (kind ? process.status === kind : true)).sort((a, b) => Number(b.status === 'running') - Number(a.status === 'running') || (a.started_at < b.started_at ? 1 : -1));
        const current = all.find((process) => process.id === chosen) ?? list[0];
        if (all.length === 0) return <div className="card"><Empty icon={ListTree} title={text.processes.none}><p>{text.processes.noneAbout}</p></Empty></div>;
        return (
          <div className="split">
            <section className="card" aria-label={text.tabs.processes}>
              <header><Segments label={text.processes.show} value={kind} onText={setKind} choices={[{ value: '', label: text.all }, { value: 'running', label: text.processes.running }, { value: 'exited', label: text.processes.ended }]} /></header>
              <div className="scroll">{list.map((process) => <Pick key={process.id} process={process} isChosen={process.id === current?.id} onChoose={() => setChosen(process.id)} />)}{list.length === 0 && <p className="muted" style={{ padding: 16 }}>{text.processes.noMatch}</p>}</div>
            </section>
            {current && <Log key={`${sandbox.id} ${current.id}`} sandbox={sandbox} process={current} />}
          </div>
        );
      }}
    </Loaded>
  );
}

function stateOf(process: Process): { tone: Tone; label: string } {
  if (process.status === 'running') return { tone: 'ok', label: text.processes.runs };
  const reason = process.termination?.reason;
  if (reason && reason !== 'exited') return { tone: 'warn', label: reason };
  return { tone: process.exit_code === 0 ? '' : 'bad', label: text.run.exit(process.exit_code ?? 0) };
}

function Pick({ process, isChosen, onChoose }: { process: Process; isChosen: boolean; onChoose: () => void }) {
  const { tone, label } = stateOf(process);
  return (
    <button type="button" className="pick" aria-pressed={isChosen} onClick={onChoose}>
      <code className="ellipsis">{commandOf(process) || text.processes.nameless}</code>
      <span className="row small muted"><Badge tone={tone}>{label}</Badge><span>{process.id}</span>{process.pty && <span>{text.tabs.terminal.toLowerCase()}</span>}<span className="grow" /><Ago time={process.started_at} /></span>
    </button>
  );
}

function Log({ sandbox, process }: { sandbox: Sandbox; process: Process }) {
  const { chunks, append, clear } = useOutput();
  const [isFollowing, setFollowing] = useState(true);
  const [search, setSearch] = useState('');
  const path = sandboxPath(sandbox.id, `/processes/${part(process.id)}`);

  useEffect(() => {
    const stop = new AbortController();
    clear();
    follow(`${path}/output`, { signal: stop.signal, last: ['exit'] }, ({ event, data }) => {
      if (event === 'stdout' || event === 'stderr') append(event, textOf(data));
      else if (event === 'cut') append('note', text.output.cut);
    }).catch((error) => complain(error));
    return () => stop.abort();
  }, [path, append, clear]);

  const signal = (name: string) => attempt(() => call('POST', `${path}/signal`, { json: { signal: name } }), text.processes.signalled(name));
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
