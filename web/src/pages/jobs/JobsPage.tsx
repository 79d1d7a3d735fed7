// SPDX-License-Identifier: Apache-2.0
// What outlasts a request: builds, pulls, backups.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ListChecks } from 'lucide-react';
import { Link } from 'wouter';

import { call, part } from '../../api/client';
import type { Job, JobList } from '../../api/schema';
import { Ago, Badge, Card, Empty, Loaded, Meter, PageHead, TableWrap, type Tone } from '../../components/Basics';
import { Button } from '../../components/Button';
import { attempt } from '../../components/Toasts';
import { duration, sentence } from '../../lib/format';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';

const TONES: Record<Job['state'], Tone> = { queued: 'info', running: 'info', succeeded: 'ok', failed: 'bad', cancelled: '', lost: 'warn' };
const isOpen = (job: Job) => job.state === 'queued' || job.state === 'running';

/** Where what a job is about is shown. */
const PAGES: Record<string, ((job: Job) => string) | undefined> = {
  launch: (job) => `/launches/${part(job.id)}`, template: (job) => `/templates/${part(job.target ?? '')}`,
};

function Target({ job }: { job: Job }) {
  const page = PAGES[job.kind];
  return page && job.target ? <Link href={page(job)} className="break">{job.target}</Link> : <>{job.target ?? '–'}</>;
}

const took = (job: Job) => (job.started_at && job.ended_at ? duration(Date.parse(job.ended_at) - Date.parse(job.started_at)) : '–');

export function JobsPage() {
  const queries = useQueryClient();
  const query = useQuery({ queryKey: ['jobs'], queryFn: ({ signal }) => call<JobList>('GET', '/v1/jobs', { query: { limit: 200 }, signal }), refetchInterval: ({ state }) => (state.data?.jobs.some(isOpen) ? 2000 : false) });
  useTitle(text.nav.jobs);
  const cancel = (id: string) => attempt(() => call('POST', `/v1/jobs/${part(id)}/cancel`)).then(() => queries.invalidateQueries({ queryKey: ['jobs'] }));
  return (
    <>
      <PageHead title={text.nav.jobs} about={text.jobs.about} />
      <Card>
        <Loaded query={query}>
          {({ jobs }) => (jobs.length === 0 ? <Empty icon={ListChecks} title={text.jobs.none}><p>{text.jobs.noneAbout}</p></Empty> : (
            <TableWrap><table className="table">
              <thead><tr><th>{text.kind}</th><th>{text.jobs.target}</th><th>{text.status}</th><th>{text.jobs.progress}</th><th>{text.created}</th><th className="end">{text.jobs.took}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
              <tbody>{jobs.map((job) => (
                <tr key={job.id}>
                  <td className="nowrap strong">{text.jobs.kinds[job.kind] ?? sentence(job.kind)}</td><td className="break"><Target job={job} /></td><td><Badge tone={TONES[job.state]}>{text.jobs.states[job.state]}</Badge></td>
                  <td className="break" style={{ minWidth: 160 }}>{job.error ? <span className="small bad">{sentence(job.error.message)}</span> : isOpen(job) && job.total_bytes ? <Meter plain label={text.jobs.progress} used={job.done_bytes} limit={job.total_bytes} /> : job.progress && <span className="small muted">{job.progress}</span>}</td>
                  <td><Ago time={job.created_at} /></td><td className="end number nowrap">{took(job)}</td>
                  <td className="actions">{isOpen(job) && <Button small onClick={() => void cancel(job.id)}>{text.cancel}</Button>}</td>
                </tr>
              ))}</tbody>
            </table></TableWrap>
          ))}
        </Loaded>
      </Card>
    </>
  );
}
