// SPDX-License-Identifier: Apache-2.0
// One launch as steps from top to bottom, each with what it says while it does; at the end the preview, or why there is none.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Ban, ExternalLink, RotateCcw } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';

import { call, part } from '../../api/client';
import { sandboxPath, useProjects } from '../../api/queries';
import type { Launch, PreviewLink } from '../../api/schema';
import { follow } from '../../api/stream';
import { Ago, Badge, Card, Facts, Loaded, Note, PageHead } from '../../components/Basics';
import { Button } from '../../components/Button';
import { attempt } from '../../components/Toasts';
import { sentence } from '../../lib/format';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { Findings } from './Findings';
import { LAUNCH_TONES, tookOf } from './LaunchTable';
import { Parts } from './Parts';
import { Steps, type Logs } from './Steps';
import './launches.css';

type Stage = Launch['stages'][number];
interface StageEvent extends Partial<Stage> { stage: string; log?: string }
const KEPT_LINES = 2000;

export function LaunchPage({ id }: { id: string }) {
  const query = useQuery({ queryKey: ['launch', id], queryFn: ({ signal }) => call<Launch>('GET', `/v1/launches/${part(id)}`, { signal }) });
  useTitle(text.launches.launch);
  return <Loaded query={query} bones={8}>{(launch) => <View launch={launch} />}</Loaded>;
}

/** What the stages say, from the first line on; the launch in the cache is kept as they tell. */
function useLogs(id: string): Logs {
  const [logs, setLogs] = useState<Logs>({});
  const queries = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    const key = ['launch', id];
    setLogs({});
    follow(`/v1/launches/${part(id)}/events`, { signal: stop.signal, last: ['end'] }, ({ event, data }) => {
      if (event === 'end') { queries.setQueryData(key, data); return; }
      const { stage, log, ...change } = data as StageEvent;
      if (log !== undefined) setLogs((before) => ({ ...before, [stage]: [...(before[stage] ?? []), log].slice(-KEPT_LINES) }));
      if (change.status) queries.setQueryData<Launch>(key, (launch) => (launch?.status === 'running' ? { ...launch, stages: launch.stages.map((one) => (one.stage === stage ? { ...one, ...change } : one)) } : launch));
    }).catch(() => {}); // its log is gone: the stages themselves are known
    return () => stop.abort();
  }, [id, queries]);
  return logs;
}

function View({ launch }: { launch: Launch }) {
  const logs = useLogs(launch.id);
  const projects = useProjects();
  const [, go] = useLocation();
  const path = `/v1/launches/${part(launch.id)}`;
  const retry = (from?: string) => attempt(async () => { const next = await call<Launch>('POST', `${path}/retry`, { json: { from } }); go(`/launches/${part(next.id)}`); });
  const cancel = () => attempt(() => call('POST', `${path}/cancel`));
  return (
    <>
      <PageHead title={text.launches.title(launch.id)} about={text.launches.statusAbout[launch.status]}>
        <Badge tone={LAUNCH_TONES[launch.status]}>{text.launches.statuses[launch.status]}</Badge>
        {launch.status === 'running' ? <Button icon={Ban} onClick={() => void cancel()}>{text.cancel}</Button> : <Button icon={RotateCcw} onClick={() => void retry()}>{text.launches.again}</Button>}
        {launch.preview_url && <OpenPreview launch={launch} />}
      </PageHead>
      <div className="launch-columns">
        <div className="stack">
          {launch.error && (
            <Note tone="bad">
              <strong>{sentence(launch.error.message)}</strong>{launch.error.remediation && <p>{sentence(launch.error.remediation)}</p>}
              {launch.error.lines && launch.error.lines.length > 0 && <pre className="small" style={{ marginTop: 8 }}>{launch.error.lines.join('\n')}</pre>}
            </Note>
          )}
          <Card title={text.launches.stages}><Steps launch={launch} logs={logs} onRetry={(stage) => void retry(stage)} /></Card>
        </div>
        <div className="stack">
          <Card title={text.sandbox.facts}><div className="body"><Facts facts={[
            [text.facts.project, launch.project && <Link href={`/projects/${part(launch.project)}`}>{projects.data?.find(({ id }) => id === launch.project)?.name ?? text.launches.itsProject}</Link>],
            [text.snapshots.of, <Link href={`/sandboxes/${part(launch.sandbox_id)}`} className="mono break wide">{launch.sandbox_id}</Link>],
            [text.ports.address, launch.preview_url && <code className="break wide">{launch.preview_url}</code>],
            [text.launches.begun, <Ago time={launch.created_at} />], [text.jobs.took, tookOf(launch)],
          ]} /></div></Card>
          {launch.detection && <Card title={text.launches.detection}><div className="body"><Parts detection={{ overrides: [], ...launch.detection }} /></div></Card>}
          {launch.findings.length > 0 && <Card title={text.launches.findings}><div className="body"><Findings findings={launch.findings} /></div></Card>}
        </div>
      </div>
    </>
  );
}

/** Opens the preview by a link that is made at that moment: previews are private as a rule. */
function OpenPreview({ launch }: { launch: Launch }) {
  const port = Number(/-(\d+)\./.exec(launch.preview_url ?? '')?.[1] ?? 0);
  const visit = async () => {
    const tab = open('about:blank', '_blank');
    if (tab) tab.opener = null;
    const done = await attempt(async () => {
      const url = port ? (await call<PreviewLink>('POST', sandboxPath(launch.sandbox_id, `/ports/${port}/links`), { json: { expires_in_s: 3600 } })).url! : launch.preview_url!;
      if (tab) tab.location.href = url;
    });
    if (!done) tab?.close();
  };
  return <Button kind="primary" icon={ExternalLink} onClick={() => void visit()}>{text.launches.open}</Button>;
}
