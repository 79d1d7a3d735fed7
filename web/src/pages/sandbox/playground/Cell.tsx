// SPDX-License-Identifier: Apache-2.0
// Code and what came of it: what it writes comes live, what it shows as figures, tables or HTML.
import { Play, Trash2 } from 'lucide-react';
import { lazy, Suspense, useRef, useState } from 'react';

import { ApiError, part } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Execution, Sandbox } from '../../../api/schema';
import { stream, textOf } from '../../../api/stream';
import { Badge, Bones, Note } from '../../../components/Basics';
import { Button, IconButton } from '../../../components/Button';
import { Output, useOutput } from '../../../components/Output';
import { bytes, duration } from '../../../lib/format';
import { remember, remembered } from '../../../lib/store';
import { text } from '../../../text/en';
import { Rich, type Bundle } from './Rich';

const Editor = lazy(() => import('../files/Editor'));
export type Language = 'python' | 'javascript' | 'shell';

interface Props { sandbox: Sandbox; language: Language; context: string; number: number; store: string; sample: string; onDrop?: () => void }

export function Cell({ sandbox, language, context, number, store, sample, onDrop }: Props) {
  const [first] = useState(() => remembered(store, sample));
  const code = useRef(first);
  const { chunks, append, clear } = useOutput();
  const [results, setResults] = useState<Bundle[]>([]);
  const [end, setEnd] = useState<Execution | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [stop, setStop] = useState<AbortController | null>(null);

  const run = async () => {
    const control = new AbortController();
    clear();
    setResults([]);
    setEnd(null);
    setFault(null);
    setStop(control);
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
  return (
    <section className="card cell" aria-label={text.playground.cell(number)}>
      <header>
        <span className="grow row small muted"><span className="number">[{number}]</span>{!end && !stop && !fault && text.playground.keys}</span>
        <Ending end={end} isBusy={stop !== null} />
        {onDrop && <IconButton small label={text.playground.dropCell(number)} icon={Trash2} onClick={onDrop} />}
        {stop ? <Button small onClick={() => stop.abort()}>{text.cancel}</Button> : <Button small kind="primary" icon={Play} onClick={() => void run()}>{text.run.button}</Button>}
      </header>
      <div className="code-box"><Suspense fallback={<Bones />}><Editor value={first} name={language} onChange={(now) => { code.current = now; remember(store, now); }} onSave={() => void run()} saveKey="Mod-Enter" /></Suspense></div>
      {fault && <div className="results"><Note tone="bad">{fault}</Note></div>}
      {chunks.length > 0 && <div className="cell-output"><Output chunks={chunks} /></div>}
      {end?.error && <div className="results"><Note tone="bad"><strong>{end.error.type}</strong>: {end.error.message}<pre className="small" style={{ marginTop: 8 }}>{end.error.traceback}</pre></Note></div>}
      {results.length > 0 && <div className="results">{results.map((bundle, i) => <Rich key={i} bundle={bundle} />)}</div>}
      {end && end.artifacts && end.artifacts.length > 0 && <div className="results"><h3>{text.playground.artifacts}</h3><ul>{end.artifacts.map((one) => <li key={one.path} className="row wrap"><a href={`/v1/executions/${part(end.id)}/artifacts/${part(one.path)}`} download={one.path.split('/').at(-1)} className="mono break">{one.path}</a><span className="small muted number">{bytes(one.size)}</span></li>)}</ul></div>}
    </section>
  );
}

function Ending({ end, isBusy }: { end: Execution | null; isBusy: boolean }) {
  if (!end) return isBusy ? <span className="spinner" role="status" aria-label={text.run.running} /> : null;
  return <span className="row small muted number"><Badge tone={end.status === 'succeeded' ? 'ok' : 'bad'}>{text.playground.statuses[end.status] ?? end.status}</Badge>{end.metrics && <>{duration(end.metrics.run_ms)} · {bytes(end.metrics.peak_memory_bytes)}</>}</span>;
}
