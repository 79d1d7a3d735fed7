// SPDX-License-Identifier: Apache-2.0
// What was done, by whom, and whether the log of it is whole.
import { useInfiniteQuery } from '@tanstack/react-query';
import { FileClock, ShieldCheck } from 'lucide-react';
import { useState } from 'react';

import { call } from '../../api/client';
import type { AuditPage as Page, AuditReport } from '../../api/schema';
import { may } from '../../api/session';
import { Ago, Badge, Bones, Card, Empty, Failure, Note, PageHead, TableWrap } from '../../components/Basics';
import { Button } from '../../components/Button';
import { SearchBox } from '../../components/Field';
import { complain } from '../../components/Toasts';
import { useQueryValue, useSettled, useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import '../overview/overview.css';
import './audit.css';

/** Hashes are there to be compared by programs. */
const shortened = (detail: string) => detail.replace(/(sha256:[0-9a-f]{8})[0-9a-f]+/g, '$1…');

export function AuditPage() {
  const [action, setAction] = useQueryValue('action');
  const [user, setUser] = useQueryValue('user');
  const filter = useSettled(`${action}\n${user}`);
  const [wantedAction, wantedUser] = filter.split('\n');
  const query = useInfiniteQuery({
    queryKey: ['audit', filter], initialPageParam: null as string | null, getNextPageParam: (page: Page) => page.next_cursor,
    queryFn: ({ pageParam, signal }) => call<Page>('GET', '/v1/audit', { query: { action: wantedAction, user: wantedUser, limit: 100, cursor: pageParam }, signal }),
  });
  const [report, setReport] = useState<AuditReport | null>(null);
  useTitle(text.nav.audit);
  const verify = () => call<AuditReport>('GET', '/v1/audit/verify').then(setReport, (error) => complain(error));
  const entries = query.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <>
      <PageHead title={text.nav.audit} about={text.audit.about}>{may('admin') && <Button icon={ShieldCheck} onClick={() => void verify()}>{text.audit.verify}</Button>}</PageHead>
      <div className="stack audit">
        {report && <Note tone={report.ok ? '' : 'bad'}>{report.ok ? text.audit.whole(report.entries) : text.audit.broken(report.flaw?.kind ?? '', report.flaw?.sequence ?? 0)} <code className="break">{report.head}</code></Note>}
        <div className="filters"><SearchBox label={text.audit.action} value={action} onText={setAction} /><SearchBox label={text.audit.user} value={user} onText={setUser} /></div>
        <Card>
          {query.error ? <Failure error={query.error} retry={() => void query.refetch()} /> : !query.data ? <Bones /> : entries.length === 0 ? <Empty icon={FileClock} title={text.audit.none}><p>{text.audit.noneAbout}</p></Empty> : (
            <TableWrap><table className="table">
              <thead><tr><th className="end">#</th><th>{text.audit.when}</th><th>{text.audit.who}</th><th>{text.audit.what}</th><th>{text.audit.object}</th><th>{text.audit.answer}</th><th>{text.audit.from}</th></tr></thead>
              <tbody>{entries.map((entry) => <tr key={entry.sequence}><td className="end number muted">{entry.sequence}</td><td><Ago time={entry.at} /></td><td className="nowrap">{[entry.organization, entry.user].filter(Boolean).join('/') || '–'}</td><td className="nowrap"><Badge>{entry.action}</Badge></td><td className="mono break object" title={entry.detail ?? undefined}>{entry.object}{entry.detail && <span className="muted"> {shortened(entry.detail)}</span>}</td><td><Badge tone={entry.status >= 400 ? 'bad' : 'ok'}>{entry.status}{entry.code ? ` ${entry.code}` : ''}</Badge></td><td className="mono">{entry.from}</td></tr>)}</tbody>
            </table></TableWrap>
          )}
        </Card>
        {query.hasNextPage && <div><Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>{text.more}</Button></div>}
      </div>
    </>
  );
}
