// SPDX-License-Identifier: Apache-2.0
// Processes that run or ended, with their kept output: followed live, searched, signalled. Looking needs no running sandbox.
import { useQuery } from '@tanstack/react-query';
import { ListTree } from 'lucide-react';
import { useDeferredValue } from 'react';

import { call } from '../../../api/client';
import { sandboxPath, useProcesses } from '../../../api/queries';
import type { OutputMatches, Process, Sandbox } from '../../../api/schema';
import { Ago, Badge, Empty, Loaded, Note } from '../../../components/Basics';
import { SearchBox, Segments } from '../../../components/Field';
import { useQueryValue } from '../../../lib/hooks';
import { text } from '../../../text/en';
import { commandOf, Log, stateOf } from './Log';

export default function ProcessesTab({ sandbox }: { sandbox: Sandbox }) {
  const query = useProcesses(sandbox.id);
  const [chosen, setChosen] = useQueryValue('process');
  const [kind, setKind] = useQueryValue('show');
  const [search, setSearch] = useQueryValue('search');
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
              <header><SearchBox className="grow" label={text.output.searchAll} value={search} onText={setSearch} /></header>
              {search ? <Matches sandbox={sandbox} search={search} processes={all} current={current?.id} onChoose={setChosen} /> : <div className="scroll">{list.map((process) => <Pick key={process.id} process={process} isChosen={process.id === current?.id} onChoose={() => setChosen(process.id)} />)}{list.length === 0 && <p className="muted" style={{ padding: 16 }}>{text.processes.noMatch}</p>}</div>}
            </section>
            {current && <Log key={`${sandbox.id} ${current.id} ${search}`} sandbox={sandbox} process={current} searched={search} />}
          </div>
        );
      }}
    </Loaded>
  );
}

/** Lines of all processes that have a text, as the server found them; a line leads to the output that it is in. */
function Matches({ sandbox, search, processes, current, onChoose }: { sandbox: Sandbox; search: string; processes: Process[]; current: string | undefined; onChoose: (process: string) => void }) {
  const q = useDeferredValue(search);
  const query = useQuery({ queryKey: ['output', sandbox.id, q], queryFn: ({ signal }) => call<OutputMatches>('GET', sandboxPath(sandbox.id, '/output/search'), { query: { q, ignore_case: true, limit: 200 }, signal }) });
  return (
    <Loaded query={query}>
      {({ matches, truncated }) => (
        <div className="scroll">
          {matches.map((match) => {
            const process = processes.find((one) => one.id === match.process);
            return (
              <button key={`${match.process} ${match.stream} ${match.offset}`} type="button" className="pick" aria-pressed={match.process === current} onClick={() => onChoose(match.process)}>
                <code className={match.stream === 'stderr' ? 'ellipsis bad' : 'ellipsis'}>{match.line}</code>
                <span className="row small muted"><span>{match.process}</span><span className="ellipsis grow">{process ? commandOf(process) : ''}</span>{match.at && <Ago time={match.at} />}</span>
              </button>
            );
          })}
          {matches.length === 0 && <p className="muted" style={{ padding: 16 }}>{text.output.noMatch}</p>}
          {truncated && <div className="body"><Note>{text.output.more}</Note></div>}
        </div>
      )}
    </Loaded>
  );
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
