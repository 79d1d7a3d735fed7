// SPDX-License-Identifier: Apache-2.0
// One function: its code in each version, a call of it with what it says and answers, and the calls that were made.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Trash2, Upload } from 'lucide-react';
import { useState } from 'react';
import { useLocation } from 'wouter';

import { call, part } from '../../api/client';
import type { ExecutionStats, Function as Kept, FunctionList } from '../../api/schema';
import { ask } from '../../components/Ask';
import { Ago, Badge, Card, Facts, Loaded, PageHead } from '../../components/Basics';
import { Button } from '../../components/Button';
import { attempt } from '../../components/Toasts';
import { duration } from '../../lib/format';
import { useQueryValue, useTitle } from '../../lib/hooks';
import { fromPairs } from '../../lib/parse';
import { text } from '../../text/en';
import { Calls } from './Calls';
import { DeployDialog } from './DeployDialog';
import { Invoke } from './Invoke';
import './functions.css';

export function FunctionPage({ name }: { name: string }) {
  const [version, setVersion] = useQueryValue('version');
  const path = `/v1/functions/${part(name)}`;
  const query = useQuery({ queryKey: ['function', name, version], queryFn: ({ signal }) => call<Kept>('GET', path, { query: { version }, signal }) });
  useTitle(name);
  return <Loaded query={query} bones={6}>{(one) => <View one={one} version={version} onVersion={setVersion} />}</Loaded>;
}

function View({ one, version, onVersion }: { one: Kept; version: string; onVersion: (version: string) => void }) {
  const [isDeploying, setDeploying] = useState(false);
  const [, go] = useLocation();
  const queries = useQueryClient();
  const path = `/v1/functions/${part(one.name)}`;
  const versions = useQuery({ queryKey: ['function', one.name, 'versions'], queryFn: ({ signal }) => call<FunctionList>('GET', `${path}/versions`, { signal }) });
  const remove = async () => {
    if (!await ask({ title: text.functions.removeTitle(one.name), about: text.functions.removeAbout, confirm: text.verbs.delete, danger: true })) return;
    if (await attempt(() => call('DELETE', path), text.functions.removed(one.name))) {
      go('/functions');
      void queries.invalidateQueries({ queryKey: ['functions'] });
    }
  };
  return (
    <>
      <PageHead title={one.name} about={text.functions.versionOf(one.version, text.playground.languages[one.language])}>
        <select className="input" style={{ width: 'auto' }} aria-label={text.templates.version} value={version} onChange={(event) => onVersion(event.target.value)}>
          <option value="">{text.functions.latest}</option>
          {(versions.data?.functions ?? []).map((each) => <option key={each.version} value={each.version}>{text.functions.number(each.version)}</option>)}
        </select>
        <Button icon={Trash2} onClick={() => void remove()}>{text.verbs.delete}</Button>
        <Button kind="primary" icon={Upload} onClick={() => setDeploying(true)}>{text.functions.newVersion}</Button>
      </PageHead>
      <div className="stack wide">
        <div className="grid two">
          <Invoke one={one} />
          <div className="stack">
            <Card title={text.functions.code}><pre className="output function-code" tabIndex={0} role="region" aria-label={text.functions.code}>{one.code}</pre></Card>
            <Card title={text.sandbox.facts}><div className="body"><FactsOf one={one} /></div></Card>
          </div>
        </div>
        <Calls name={one.name} />
      </div>
      {isDeploying && <DeployDialog before={one} onClose={() => setDeploying(false)} onMade={() => { setDeploying(false); onVersion(''); }} />}
    </>
  );
}

function FactsOf({ one }: { one: Kept }) {
  const stats = useQuery({ queryKey: ['executions', 'stats', one.name], queryFn: ({ signal }) => call<ExecutionStats>('GET', '/v1/executions/stats', { query: { function: one.name }, signal }) });
  const [count] = stats.data?.stats ?? [];
  const env = fromPairs(one.env ?? {});
  return (
    <Facts facts={[
      [text.functions.handler, one.handler && <code>{one.handler}</code>], [text.functions.timeout, one.timeout_ms && duration(one.timeout_ms)], [text.functions.concurrency, one.concurrency],
      [text.facts.template, one.template], [text.create.memory, one.resources?.memory as string | undefined], [text.functions.imports, one.imports?.join(', ')], [text.create.env, env && <pre>{env}</pre>],
      [text.functions.deployed, <Ago time={one.created_at} />],
      [text.functions.calls, count && <span className="row wrap"><span className="number">{text.functions.counted(count.count, duration(count.p50_ms), duration(count.p95_ms))}</span>{count.failures > 0 && <Badge tone="bad">{text.functions.failures(count.failures)}</Badge>}</span>],
    ]} />
  );
}
