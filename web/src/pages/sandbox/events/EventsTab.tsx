// SPDX-License-Identifier: Apache-2.0
// What happened to this sandbox since the page was opened, and before it what the audit log has.
import { useQuery } from '@tanstack/react-query';
import { History } from 'lucide-react';

import { call } from '../../../api/client';
import { recent } from '../../../api/live';
import type { AuditPage, Sandbox } from '../../../api/schema';
import { Ago, Badge, Card, Empty, Loaded, type Tone } from '../../../components/Basics';
import { clock } from '../../../lib/format';
import { useStore } from '../../../lib/store';
import { text } from '../../../text/en';

const tone = (name: string): Tone => (/denied|failed|error|killed/.test(name) ? 'bad' : /running|opened|succeeded/.test(name) ? 'ok' : /stopped|waiting|paused/.test(name) ? 'warn' : '');

/** What an event tells beside its name, as text. */
function detail(data: Record<string, unknown>): string {
  return Object.entries(data).filter(([key, value]) => !['sandbox', 'at', 'status'].includes(key) && value !== null && value !== '').map(([key, value]) => `${key} ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(' · ');
}

/** Of an entry who, with what answer, and what; hashes are there to be compared by programs. */
const told = ({ user, status, detail: what }: AuditPage['entries'][number]) => [user, status, what?.replace(/\bargv=sha256:[0-9a-f]+/, '')].filter(Boolean).join(' · ');

export default function EventsTab({ sandbox }: { sandbox: Sandbox }) {
  const events = useStore(recent).filter(({ data }) => data.sandbox === sandbox.id);
  const query = useQuery({ queryKey: ['audit', sandbox.id], queryFn: ({ signal }) => call<AuditPage>('GET', '/v1/audit', { query: { object: sandbox.id, limit: 100 }, signal }) });
  return (
    <div className="grid two">
      <Card title={text.events.live}>
        {events.length === 0 ? <Empty icon={History} title={text.events.none}><p>{text.events.noneAbout}</p></Empty>
          : <ul className="event-list" tabIndex={0}>{events.map((event, i) => <li key={i} className="event-line"><span className="small muted number">{clock(event.at)}</span><span><Badge tone={tone(event.event)}>{event.event}</Badge></span><span className="small muted ellipsis" title={detail(event.data)}>{detail(event.data)}</span></li>)}</ul>}
      </Card>
      <Card title={text.events.audit}>
        <Loaded query={query}>
          {({ entries }) => (entries.length === 0 ? <p className="body muted">{text.events.noAudit}</p> : (
            <ul className="event-list" tabIndex={0}>{entries.map((entry) => <li key={entry.sequence} className="event-line"><span className="small muted"><Ago time={entry.at} /></span><span><Badge tone={entry.status >= 400 ? 'bad' : ''}>{entry.action}</Badge></span><span className="small muted ellipsis" title={told(entry)}>{told(entry)}</span></li>)}</ul>
          ))}
        </Loaded>
      </Card>
    </div>
  );
}
