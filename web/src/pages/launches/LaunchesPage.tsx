// SPDX-License-Identifier: Apache-2.0
// How launches went: the journeys of the last time, and statistics of their stages.
import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { Rocket } from 'lucide-react';
import { useState } from 'react';
import { useLocation } from 'wouter';

import { call, part } from '../../api/client';
import type { LaunchStats } from '../../api/schema';
import { Badge, Bones, Card, Loaded, Meter, PageHead, TableWrap } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Segments } from '../../components/Field';
import { duration } from '../../lib/format';
import { useQueryValue, useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { LaunchDialog } from './LaunchDialog';
import { LaunchTable } from './LaunchTable';
import './launches.css';

const STATUSES = ['', 'running', 'succeeded', 'failed'] as const;

export function LaunchesPage() {
  const [status, setStatus] = useQueryValue('status');
  const [isLaunching, setLaunching] = useState(false);
  const [days, setDays] = useState('30');
  const stats = useQuery({ queryKey: ['launches', 'stats', days], queryFn: ({ signal }) => call<LaunchStats>('GET', '/v1/launches/stats', { query: { days }, signal }), placeholderData: keepPreviousData });
  const [, go] = useLocation();
  useTitle(text.nav.launches);
  return (
    <>
      <PageHead title={text.nav.launches} about={text.launches.about}><Button kind="primary" icon={Rocket} onClick={() => setLaunching(true)}>{text.launches.start}</Button></PageHead>
      {/* The list stands below: shown before the statistics are there, it would move. */}
      {stats.isPending ? <Bones count={14} /> : (
        <div className="stack wide">
          <Journeys query={stats} days={days} onDays={setDays} />
          <div className="stack">
            <div><Segments label={text.status} value={status} onText={setStatus} choices={STATUSES.map((one) => ({ value: one, label: one ? text.launches.statuses[one] : text.all }))} /></div>
            <LaunchTable status={status} />
          </div>
        </div>
      )}
      {isLaunching && <LaunchDialog onClose={() => setLaunching(false)} onBegun={(launch) => go(`/launches/${part(launch.id)}`)} />}
    </>
  );
}

/** What became of all launches of a while, and of each stage. */
function Journeys({ query, days, onDays }: { query: UseQueryResult<LaunchStats>; days: string; onDays: (days: string) => void }) {
  return (
    <Card title={text.launches.journeys} actions={<Segments label={text.launches.window} value={days} onText={onDays} choices={text.launches.windows} />}>
      <Loaded query={query}>
        {(stats) => (stats.launches === 0 ? <p className="body muted">{text.launches.noJourneys}</p> : (
          <>
            <div className="body journey-figures">
              {([[text.launches.rate, stats.success_rate === null ? '–' : `${Math.round(stats.success_rate * 100)} %`], [text.launches.statuses.succeeded, stats.succeeded], [text.launches.statuses.failed, stats.failed], [text.launches.statuses.cancelled, stats.cancelled], [text.launches.statuses.running, stats.running]] as const).map(([name, value]) => <div key={name}><div className="small muted">{name}</div><div className="value number">{value}</div></div>)}
            </div>
            <TableWrap><table className="table">
              <thead><tr><th>{text.launches.stage}</th><th>{text.launches.completed}</th><th className="end">{text.launches.statuses.failed}</th><th className="end">{text.launches.half}</th><th className="end">{text.launches.most}</th></tr></thead>
              <tbody>{stats.stages.map((one) => (
                <tr key={one.stage}>
                  <td>{text.launches.names[one.stage] ?? one.stage}</td>
                  <td style={{ minWidth: 90 }}><span className="row"><span className="number">{one.completed}</span><span className="grow"><Meter plain label={text.launches.names[one.stage] ?? one.stage} used={one.completed} limit={stats.launches} /></span></span></td>
                  <td className="end number">{one.failed > 0 ? <span className="bad">{one.failed}</span> : 0}</td><td className="end number nowrap">{duration(one.p50_ms)}</td><td className="end number nowrap">{duration(one.p95_ms)}</td>
                </tr>
              ))}</tbody>
            </table></TableWrap>
            {Object.keys(stats.causes).length > 0 && <div className="body row wrap"><span className="small muted">{text.launches.causes}</span>{Object.entries(stats.causes).map(([cause, count]) => <Badge key={cause} tone="bad">{cause} × {count}</Badge>)}</div>}
          </>
        ))}
      </Loaded>
    </Card>
  );
}
