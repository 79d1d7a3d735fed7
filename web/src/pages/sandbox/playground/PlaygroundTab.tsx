// SPDX-License-Identifier: Apache-2.0
// Code for a result: what it writes comes live, what it shows as figures, tables or HTML. HTML stands in a frame that has
// neither scripts nor this page's origin.
import { Code, Play } from 'lucide-react';
import { lazy, Suspense, useRef, useState } from 'react';

import { ApiError } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Execution, Sandbox } from '../../../api/schema';
import { stream, textOf } from '../../../api/stream';
import { Badge, Bones, Card, Empty, Note } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { Segments } from '../../../components/Field';
import { Output, useOutput } from '../../../components/Output';
import { bytes, duration } from '../../../lib/format';
import { remember, remembered } from '../../../lib/store';
import { text } from '../../../text/en';
import { NeedsRunning } from '../NeedsRunning';
import { Contexts } from './Contexts';
import { Rich, type Bundle } from './Rich';

const Editor = lazy(() => import('../files/Editor'));
type Language = 'python' | 'javascript' | 'shell';
const LANGUAGES: Language[] = ['python', 'javascript', 'shell'];

export default function PlaygroundTab({ sandbox }: { sandbox: Sandbox }) {
  return <NeedsRunning sandbox={sandbox} what={text.needs.playground}><Playground sandbox={sandbox} /></NeedsRunning>;
}

function Playground({ sandbox }: { sandbox: Sandbox }) {
  const [language, setLanguage] = useState<Language>(() => remembered<Language>('language', 'python'));
  const key = `code.${sandbox.id}.${language}`;
  const code = useRef('');
  const first = remembered(key, text.playground.samples[language]);
  code.current ||= first;
  const { chunks, append, clear } = useOutput();
  const [results, setResults] = useState<Bundle[]>([]);
  const [end, setEnd] = useState<Execution | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [stop, setStop] = useState<AbortController | null>(null);
  const [context, setContext] = useState('');

  const run = async () => {
    const control = new AbortController();
    clear();
    setResults([]);
    setEnd(null);
    setFault(null);
    setStop(control);
    remember(key, code.current);
    try {
      await stream('POST', sandboxPath(sandbox.id, '/executions'), { json: { language, code: code.current, context_id: context || undefined }, signal: control.signal }, ({ event, data }) => {
        if (event === 'stdout' || event === 'stderr') append(event, textOf(data));
        else if (event === 'result' && data.display) setResults((before) => [...before, data.display]);
        else if (event === 'end') { setEnd(data); if (data.results) setResults(data.results); }
      });
    } catch (error) {
      setFault(control.signal.aborted ? text.run.cancelled : error instanceof ApiError ? error.message : String(error));
    }
    setStop(null);
  };
  const choose = (next: string) => {
    remember('language', next);
    code.current = '';
    setLanguage(next as Language);
    setContext('');
  };
  return (
    <div className="stack">
      <div className="row wrap">
        <Segments label={text.playground.language} value={language} onText={choose} choices={LANGUAGES.map((one) => ({ value: one, label: text.playground.languages[one] }))} />
        <Contexts sandbox={sandbox} language={language} chosen={context} onChoose={setContext} />
        <span className="grow" />
        <span className="small muted">{text.playground.keys}</span>
        {stop ? <Button onClick={() => stop.abort()}>{text.cancel}</Button> : <Button kind="primary" icon={Play} onClick={() => void run()}>{text.run.button}</Button>}
      </div>
      <div className="code-box"><Suspense fallback={<Bones />}><Editor key={language} value={first} name={language} onChange={(now) => { code.current = now; }} onSave={() => void run()} saveKey="Mod-Enter" /></Suspense></div>
      {!end && !stop && !fault && chunks.length === 0 ? <Card><Empty icon={Code} title={text.playground.none}><p>{text.playground.noneAbout}</p></Empty></Card> : (
        <Card title={text.playground.result} actions={<Ending end={end} isBusy={stop !== null} />}>
          {fault && <div className="results"><Note tone="bad">{fault}</Note></div>}
          {chunks.length > 0 && <div style={{ maxHeight: '40vh', overflow: 'auto' }}><Output chunks={chunks} /></div>}
          {end?.error && <div className="results"><Note tone="bad"><strong>{end.error.type}</strong>: {end.error.message}<pre className="small" style={{ marginTop: 8 }}>{end.error.traceback}</pre></Note></div>}
          {results.length > 0 && <div className="results">{results.map((bundle, i) => <Rich key={i} bundle={bundle} />)}</div>}
          {end && end.artifacts && end.artifacts.length > 0 && <div className="results"><h3>{text.playground.artifacts}</h3><ul>{end.artifacts.map((one) => <li key={one.path} className="row"><code className="break">{one.path}</code><span className="small muted number">{bytes(one.size)}</span></li>)}</ul></div>}
        </Card>
      )}
    </div>
  );
}

function Ending({ end, isBusy }: { end: Execution | null; isBusy: boolean }) {
  if (!end) return isBusy ? <span className="spinner" role="status" aria-label={text.run.running} /> : null;
  return <span className="row small muted number"><Badge tone={end.status === 'succeeded' ? 'ok' : 'bad'}>{text.playground.statuses[end.status] ?? end.status}</Badge>{end.metrics && <>{duration(end.metrics.run_ms)} · {bytes(end.metrics.peak_memory_bytes)}</>}</span>;
}
