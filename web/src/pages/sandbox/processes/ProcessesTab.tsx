// SPDX-License-Identifier: Apache-2.0
// Processes that run or ended, with their kept output: followed live, searched, signalled. Looking needs no running sandbox.
import { ListTree } from 'lucide-react';

import { useProcesses } from '../../../api/queries';
import type { Process, Sandbox } from '../../../api/schema';
import { Ago, Badge, Empty, Loaded } from '../../../components/Basics';
import { Segments } from '../../../components/Field';
import { useQueryValue } from '../../../lib/hooks';
import { text } from '../../../text/en';
import { commandOf, Log, stateOf } from './Log';

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

function Pick({ process, isChosen, onChoose }: { process: Process; isChosen: boolean; onChoose: () => void }) {
  const { tone, label } = stateOf(process);
  return (
    <button type="button" className="pick" aria-pressed={isChosen} onClick={onChoose}>
      <code className="ellipsis">{commandOf(process) || text.processes.nameless}</code>
      <span className="row small muted"><Badge tone={tone}>{label}</Badge><span>{process.id}</span>{process.pty && <span>{text.tabs.terminal.toLowerCase()}</span>}<span className="grow" /><Ago time={process.started_at} /></span>
    </button>
  );
}
