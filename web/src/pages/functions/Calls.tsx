// SPDX-License-Identifier: Apache-2.0
// The calls of a function, the newest first; one that is opened shows what it said and answered.
import { useQuery } from '@tanstack/react-query';
import { History } from 'lucide-react';
import { Fragment, useState } from 'react';

import { call, part } from '../../api/client';
import type { Execution, ExecutionList } from '../../api/schema';
import { Ago, Badge, Card, Empty, Loaded, TableWrap, type Tone } from '../../components/Basics';
import { Button } from '../../components/Button';
import { duration } from '../../lib/format';
import { text } from '../../text/en';

const TONES: Record<Execution['status'], Tone> = { queued: 'info', running: 'info', succeeded: 'ok', failed: 'bad', timeout: 'bad', cancelled: '', lost: 'warn' };
const tookOf = (one: Execution) => (one.ended_at ? duration(Date.parse(one.ended_at) - Date.parse(one.created_at)) : '–');

export function Calls({ name }: { name: string }) {
  const [opened, setOpened] = useState('');
  const query = useQuery({ queryKey: ['executions', name], queryFn: ({ signal }) => call<ExecutionList>('GET', '/v1/executions', { query: { function: name, limit: 100 }, signal }) });
  return (
    <Card title={text.functions.history}>
      <Loaded query={query}>
        {({ executions }) => (executions.length === 0 ? <Empty icon={History} title={text.functions.noCalls}><p>{text.functions.noCallsAbout}</p></Empty> : (
          <TableWrap><table className="table">
            <thead><tr><th>{text.id}</th><th>{text.status}</th><th className="end">{text.templates.version}</th><th className="end">{text.jobs.took}</th><th>{text.functions.called}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
            <tbody>{executions.map((one) => (
              <Fragment key={one.id}>
                <tr>
                  <td className="mono nowrap">{one.id}</td><td><Badge tone={TONES[one.status]}>{text.playground.statuses[one.status] ?? one.status}</Badge></td>
                  <td className="end number">{one.version}</td><td className="end number nowrap">{tookOf(one)}</td><td><Ago time={one.created_at} /></td>
                  <td className="actions"><Button small aria-expanded={opened === one.id} onClick={() => setOpened(opened === one.id ? '' : one.id)}>{opened === one.id ? text.close : text.open}</Button></td>
                </tr>
                {opened === one.id && <tr><td colSpan={6}><Details id={one.id} /></td></tr>}
              </Fragment>
            ))}</tbody>
          </table></TableWrap>
        ))}
      </Loaded>
    </Card>
  );
}

function Details({ id }: { id: string }) {
  const query = useQuery({ queryKey: ['executions', 'one', id], queryFn: ({ signal }) => call<Execution>('GET', `/v1/executions/${part(id)}`, { signal }) });
  return (
    <Loaded query={query} bones={2}>
      {(one) => {
        const parts = [[text.functions.answer, one.error ? `${one.error.type}: ${one.error.message}` : JSON.stringify(one.result ?? null, null, 2)], ['stdout', one.stdout], ['stderr', one.stderr]] as const;
        return <div className="stack">{parts.filter(([, value]) => value).map(([label, value]) => <div key={label} className="stack tight"><h3>{label}</h3><pre className="output function-answer" tabIndex={0} role="region" aria-label={label}>{value}</pre></div>)}</div>;
      }}
    </Loaded>
  );
}
