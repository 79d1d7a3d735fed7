// SPDX-License-Identifier: Apache-2.0
// What runs beside a sandbox, and it itself: how each is, what it said, and commands in it.
import { useQuery } from '@tanstack/react-query';
import { Database, Globe, HardDrive, Server, Star, type LucideIcon } from 'lucide-react';

import { listAll } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Process, Sandbox } from '../../../api/schema';
import { Badge, Card, Empty, Loaded, Note, TableWrap, type Tone } from '../../../components/Basics';
import { Segments } from '../../../components/Field';
import { useQueryValue } from '../../../lib/hooks';
import { text } from '../../../text/en';
import { Log } from '../processes/Log';
import { Runner } from '../run/Runner';

type Member = Sandbox['members'][number];
const ICONS: Record<Member['role'], LucideIcon> = { primary: Star, frontend: Globe, backend: Server, database: Database, cache: HardDrive };
const TONES: Record<Member['status'], Tone> = { creating: 'info', waiting: 'info', running: 'ok', restarting: 'warn', exited: '', paused: 'warn', stopped: '', error: 'bad' };
const HEALTH_TONES: Record<Member['health'], Tone> = { none: '', starting: 'info', healthy: 'ok', unhealthy: 'bad' };

export default function MembersTab({ sandbox }: { sandbox: Sandbox }) {
  const [role, setRole] = useQueryValue('member');
  const [view, setView] = useQueryValue('show');
  if (sandbox.members.length === 0) return <div className="card"><Empty icon={Database} title={text.members.none}><p>{text.members.noneAbout}</p></Empty></div>;
  const chosen = sandbox.members.find((one) => one.role === role) ?? sandbox.members.find((one) => one.role !== 'primary') ?? sandbox.members[0];
  return (
    <div className="stack wide">
      <Card>
        <TableWrap><table className="table">
          <thead><tr><th>{text.members.role}</th><th>{text.facts.template}</th><th className="end">{text.ports.port}</th><th>{text.status}</th><th>{text.members.health}</th></tr></thead>
          <tbody>{sandbox.members.map((member) => <Row key={member.role} member={member} isChosen={member === chosen} onChoose={() => setRole(member.role)} />)}</tbody>
        </table></TableWrap>
      </Card>
      {chosen.error_message && <Note tone="bad">{chosen.error_message}</Note>}
      <div className="row wrap"><h2>{text.members.roles[chosen.role]}</h2><Segments label={text.members.show} value={view} onText={setView} choices={[{ value: '', label: text.members.logs }, { value: 'exec', label: text.tabs.run }]} /></div>
      {view === 'exec' ? <Commands key={chosen.role} sandbox={sandbox} member={chosen} /> : <Logs key={chosen.role} sandbox={sandbox} member={chosen} />}
    </div>
  );
}

function Row({ member, isChosen, onChoose }: { member: Member; isChosen: boolean; onChoose: () => void }) {
  const Icon = ICONS[member.role];
  return (
    <tr className={isChosen ? 'chosen' : undefined}>
      <td><button type="button" className="link row" aria-pressed={isChosen} onClick={onChoose}><Icon size={15} aria-hidden />{text.members.roles[member.role]}</button></td>
      <td className="break">{member.template}</td><td className="end number">{member.port ?? '–'}</td>
      <td><Badge tone={TONES[member.status]}>{text.members.statuses[member.status]}</Badge></td><td><Badge tone={HEALTH_TONES[member.health]}>{text.members.healths[member.health]}</Badge></td>
    </tr>
  );
}

/** A part of an app is a start command of the sandbox itself: its processes are those of that line. */
function partLine(sandbox: Sandbox, member: Member): string | undefined {
  const isPart = member.id === sandbox.id && member.role !== 'primary';
  return isPart ? sandbox.start?.find(({ name }) => name === member.role)?.command : undefined;
}

/** What its newest process said; looking needs no running sandbox. */
function Logs({ sandbox, member }: { sandbox: Sandbox; member: Member }) {
  const query = useQuery({
    queryKey: ['processes', sandbox.id, member.role], staleTime: 0, refetchInterval: 3000,
    queryFn: ({ signal }) => listAll<Process>(sandboxPath(sandbox.id, '/processes'), 'processes', { member: member.role }, signal),
  });
  const [picked, setPicked] = useQueryValue('process');
  const line = partLine(sandbox, member);
  return (
    <Loaded query={query}>
      {(all) => {
        const list = all.filter((one) => line === undefined || one.command === line).sort((a, b) => (a.started_at < b.started_at ? 1 : -1));
        const current = list.find((one) => one.id === picked) ?? list.find((one) => one.status === 'running') ?? list[0];
        if (!current) return <div className="card"><Empty icon={Server} title={text.processes.none}><p>{text.members.noLogs}</p></Empty></div>;
        return (
          <div className="stack member-log">
            {list.length > 1 && <select className="input" aria-label={text.tabs.processes} value={current.id} onChange={(event) => setPicked(event.target.value)}>{list.map((one) => <option key={one.id} value={one.id}>{`${one.id} ${one.command ?? one.argv.join(' ')}`}</option>)}</select>}
            <Log key={`${member.role} ${current.id}`} sandbox={sandbox} process={current} member={member.role} />
          </div>
        );
      }}
    </Loaded>
  );
}

function Commands({ sandbox, member }: { sandbox: Sandbox; member: Member }) {
  if (sandbox.status !== 'running' || member.status === 'stopped') return <div className="card"><Empty icon={Server} title={text.members.notRunning}><p>{text.needs.about(text.needs.run)}</p></Empty></div>;
  return <Runner sandbox={sandbox} member={member.role} />;
}
