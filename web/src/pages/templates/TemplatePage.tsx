// SPDX-License-Identifier: Apache-2.0
// One template: what it gives its sandboxes, and the log of its build, live.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Hammer, Play, Trash2 } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';

import { call, part } from '../../api/client';
import { useTemplates } from '../../api/queries';
import type { Job, Template } from '../../api/schema';
import { follow, textOf } from '../../api/stream';
import { ask } from '../../components/Ask';
import { Ago, Badge, Card, Failure, Facts, Loaded, Meter, Note, PageHead } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Output, useOutput } from '../../components/Output';
import { attempt } from '../../components/Toasts';
import { ApiError } from '../../api/client';
import { bytes } from '../../lib/format';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { CreateDialog } from '../overview/CreateDialog';
import { TEMPLATE_TONES } from './TemplatesPage';
import './templates.css';

export function TemplatePage({ name }: { name: string }) {
  const query = useTemplates();
  useTitle(name);
  return <Loaded query={query}>{(list) => { const template = list.find((one) => one.name === name); return template ? <View template={template} /> : <Failure error={new ApiError(404, 'template_not_found', text.templates.gone(name), null, null)} />; }}</Loaded>;
}

function View({ template }: { template: Template }) {
  const [isCreating, setCreating] = useState(false);
  const [, go] = useLocation();
  const queries = useQueryClient();
  const path = `/v1/templates/${part(template.name)}`;
  const reload = () => queries.invalidateQueries({ queryKey: ['templates'] });
  const build = () => attempt(() => call('POST', `${path}/build`, { json: {} }), text.templates.building).then(reload);
  const cancel = () => attempt(() => call('POST', `${path}/cancel`)).then(reload);
  const remove = async () => {
    if (!await ask({ title: text.templates.removeTitle(template.name), about: text.templates.removeAbout, confirm: text.verbs.delete, danger: true })) return;
    if (await attempt(() => call('DELETE', path))) { await reload(); go('/templates'); }
  };
  const isOwn = template.source !== 'host' && template.source !== 'catalogue';
  return (
    <>
      <PageHead title={template.name} about={template.image ?? text.templates.sources[template.source]}>
        <Badge tone={TEMPLATE_TONES[template.status]}>{text.templates.statuses[template.status]}</Badge>
        {template.status === 'building' ? <Button onClick={() => void cancel()}>{text.cancel}</Button> : isOwn && <Button icon={Hammer} onClick={() => void build()}>{text.templates.rebuild}</Button>}
        {isOwn && <Button icon={Trash2} onClick={() => void remove()}>{text.verbs.delete}</Button>}
        <Button kind="primary" icon={Play} onClick={() => setCreating(true)}>{text.templates.start}</Button>
      </PageHead>
      <div className="stack wide">
        {template.error && <Note tone="bad">{template.error}</Note>}
        <Card title={text.sandbox.facts}><div className="body"><Facts facts={[
          [text.templates.source, text.templates.sources[template.source] ?? template.source], [text.templates.version, template.version || null], [text.templates.digest, template.digest && <code>{template.digest}</code>],
          [text.size, template.disk_bytes ? bytes(template.disk_bytes) : null], [text.templates.user, template.user], [text.templates.workdir, template.workdir], [text.facts.security, template.security],
          [text.tabs.ports, template.ports.length ? template.ports.map((port) => (typeof port === 'number' ? port : JSON.stringify(port))).join(', ') : null], [text.templates.languages, template.languages.join(', ')],
          [text.command, template.command.length ? <code>{[...template.entrypoint, ...template.command].join(' ')}</code> : null],
          [text.created, template.created_at && <Ago time={template.created_at} />], [text.templates.lastUsed, template.used_at && <Ago time={template.used_at} />],
        ]} /></div></Card>
        {template.job && template.status === 'building' && <Progress id={template.job} />}
        {template.job && <BuildLog key={template.job} path={`${path}/log`} />}
      </div>
      {isCreating && <CreateDialog template={template.name} onClose={() => setCreating(false)} onMade={(sandbox) => go(`/sandboxes/${part(sandbox.id)}`)} />}
    </>
  );
}

/** How far the job is; in bytes where there are any to be counted. */
function Progress({ id }: { id: string }) {
  const { data: job } = useQuery({ queryKey: ['jobs', id], queryFn: ({ signal }) => call<Job>('GET', `/v1/jobs/${part(id)}`, { signal }), refetchInterval: 1000, staleTime: 0 });
  return (
    <div className="card figure" role="status">
      <div className="row spread"><span className="row"><span className="spinner" aria-hidden />{job?.progress || text.jobs.states[job?.state ?? 'queued']}</span>{job?.total_bytes ? <span className="number small muted">{text.of(bytes(job.done_bytes), bytes(job.total_bytes))}</span> : null}</div>
      <div style={{ marginTop: 9 }}><Meter plain label={text.jobs.progress} used={job?.done_bytes ?? 0} limit={job?.total_bytes} /></div>
    </div>
  );
}

function BuildLog({ path }: { path: string }) {
  const { chunks, append } = useOutput();
  useEffect(() => {
    const stop = new AbortController();
    follow(path, { signal: stop.signal, last: ['end'] }, ({ event, data }) => {
      if (event === 'stdout') append('stdout', textOf(data));
      else if (event === 'cut') append('note', text.output.cut);
    }).catch(() => {});
    return () => stop.abort();
  }, [path, append]);
  return <Card title={text.templates.log}><div className="build-log"><Output chunks={chunks} empty={text.output.none} /></div></Card>;
}
