// SPDX-License-Identifier: Apache-2.0
import { useQuery } from '@tanstack/react-query';
import { Rocket } from 'lucide-react';
import { Link } from 'wouter';

import { call, part } from '../../api/client';
import { useProjects } from '../../api/queries';
import type { Launch, LaunchList } from '../../api/schema';
import { Ago, Badge, Card, Empty, Loaded, TableWrap, type Tone } from '../../components/Basics';
import { duration } from '../../lib/format';
import { text } from '../../text/en';
import './launches.css';

export const LAUNCH_TONES: Record<Launch['status'], Tone> = { running: 'info', succeeded: 'ok', failed: 'bad', cancelled: '' };
export const tookOf = (launch: Launch) => (launch.ended_at ? duration(Date.parse(launch.ended_at) - Date.parse(launch.created_at)) : '–');

/** Launches, the newest first: all, or those of a project, or with a status. */
export function LaunchTable({ title, project, status }: { title?: string; project?: string; status?: string }) {
  const query = useQuery({ queryKey: ['launches', project ?? '', status ?? ''], queryFn: ({ signal }) => call<LaunchList>('GET', '/v1/launches', { query: { project, status, limit: 200 }, signal }) });
  const projects = useProjects();
  const nameOf = (id: string | null) => projects.data?.find((one) => one.id === id)?.name ?? id;
  return (
    <Card title={title}>
      <Loaded query={query}>
        {({ launches }) => (launches.length === 0 ? <Empty icon={Rocket} title={text.launches.none}><p>{text.launches.noneAbout}</p></Empty> : (
          <TableWrap><table className="table">
            <thead><tr><th>{text.launches.launch}</th>{!project && <th>{text.facts.project}</th>}<th>{text.status}</th><th>{text.launches.stages}</th><th className="end">{text.jobs.took}</th><th>{text.launches.begun}</th></tr></thead>
            <tbody>{launches.map((launch) => (
              <tr key={launch.id}>
                <td><Link href={`/launches/${part(launch.id)}`} className="mono nowrap">{launch.id}</Link></td>
                {!project && <td className="break">{launch.project ? <Link href={`/projects/${part(launch.project)}`}>{nameOf(launch.project)}</Link> : <Link href={`/sandboxes/${part(launch.sandbox_id)}`}>{text.launches.ofSandbox}</Link>}</td>}
                <td><Badge tone={LAUNCH_TONES[launch.status]}>{text.launches.statuses[launch.status]}</Badge></td>
                <td><span className="stage-dots" role="img" aria-label={launch.stages.map((one) => `${text.launches.names[one.stage] ?? one.stage}: ${text.launches.states[one.status]}`).join(', ')}>{launch.stages.map((one) => <span key={one.stage} className={one.status} />)}</span>{launch.error && <div className="small bad break">{text.launches.names[launch.error.stage ?? ''] ?? ''} {launch.error.code}</div>}</td>
                <td className="end number nowrap">{tookOf(launch)}</td><td><Ago time={launch.created_at} /></td>
              </tr>
            ))}</tbody>
          </table></TableWrap>
        ))}
      </Loaded>
    </Card>
  );
}
