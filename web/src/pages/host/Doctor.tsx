// SPDX-License-Identifier: Apache-2.0
// What `sandlot doctor` finds on the host: what is wrong first, with what mends it; what is well behind a click.
import { useQuery } from '@tanstack/react-query';
import { CircleAlert, CircleCheck, TriangleAlert } from 'lucide-react';

import { call } from '../../api/client';
import type { DoctorCheck, DoctorReport } from '../../api/schema';
import { Badge, Card, Loaded } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Copyable } from '../../components/Copy';
import { text } from '../../text/en';

const ICONS = { ok: CircleCheck, warn: TriangleAlert, fail: CircleAlert };
const TONES = { ok: 'ok', warn: 'warn', fail: 'bad' } as const;
const WEIGHT = { fail: 0, warn: 1, ok: 2 };

export function Doctor() {
  const query = useQuery({ queryKey: ['doctor'], queryFn: ({ signal }) => call<DoctorReport>('GET', '/v1/doctor', { signal }), staleTime: 0 });
  const checks = query.data?.checks ?? [];
  const problems = checks.filter((check) => check.status !== 'ok').sort((a, b) => WEIGHT[a.status] - WEIGHT[b.status]);
  const well = checks.filter((check) => check.status === 'ok');
  const tone = problems.length === 0 ? 'ok' : query.data?.ok ? 'warn' : 'bad';
  return (
    <Card title={text.doctor.title} actions={<>{query.data && <Badge tone={tone}>{problems.length === 0 ? text.doctor.isWell : text.doctor.problems(problems.length)}</Badge>}<Button small busy={query.isFetching} onClick={() => void query.refetch()}>{text.doctor.again}</Button></>}>
      <Loaded query={query}>
        {() => (
          <>
            {problems.map((check) => <Line key={check.name} check={check} />)}
            <details className="line"><summary className="small muted">{text.doctor.well(well.length)}</summary><div className="doctor-well">{well.map((check) => <Line key={check.name} check={check} />)}</div></details>
          </>
        )}
      </Loaded>
    </Card>
  );
}

function Line({ check: { name, status, fact, why, mend } }: { check: DoctorCheck }) {
  const Icon = ICONS[status];
  return (
    <div className="doctor-line">
      <Icon size={16} className={TONES[status]} aria-label={text.doctor.statuses[status]} />
      <div className="grow stack tight">
        <div><span className="strong">{name}</span> <span className="muted break">{fact}</span></div>
        {why && <p className="small break">{why}</p>}
        {mend && <Copyable value={mend} label={text.doctor.mend} />}
      </div>
    </div>
  );
}
