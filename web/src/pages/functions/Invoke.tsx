// SPDX-License-Identifier: Apache-2.0
// Calls a function with an event: what it writes comes live, what it returned at the end.
import { useQueryClient } from '@tanstack/react-query';
import { Play } from 'lucide-react';
import { useState } from 'react';

import { ApiError, part } from '../../api/client';
import type { Execution, Function as Kept } from '../../api/schema';
import { stream, textOf } from '../../api/stream';
import { Badge, Card, Note } from '../../components/Basics';
import { Button } from '../../components/Button';
import { AreaField } from '../../components/Field';
import { Output, useOutput } from '../../components/Output';
import { bytes, duration } from '../../lib/format';
import { remember, remembered } from '../../lib/store';
import { text } from '../../text/en';

const faultOf = (event: string) => { try { JSON.parse(event); return null; } catch { return text.functions.notJson; } };

export function Invoke({ one }: { one: Kept }) {
  const key = `event.${one.name}`;
  const [event, setEvent] = useState(() => remembered(key, '{}'));
  const [end, setEnd] = useState<Execution | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [stop, setStop] = useState<AbortController | null>(null);
  const { chunks, append, clear } = useOutput();
  const queries = useQueryClient();

  const invoke = async () => {
    const control = new AbortController();
    clear();
    setEnd(null);
    setFault(null);
    setStop(control);
    remember(key, event);
    try {
      await stream('POST', `/v1/functions/${part(one.name)}/invoke`, { query: { version: one.version }, body: event, headers: { 'content-type': 'application/json' }, signal: control.signal }, ({ event: kind, data }) => {
        if (kind === 'stdout' || kind === 'stderr') append(kind, textOf(data));
        else if (kind === 'end') setEnd(data);
      });
    } catch (error) {
      setFault(control.signal.aborted ? text.run.cancelled : error instanceof ApiError ? error.message : String(error));
    }
    setStop(null);
    void queries.invalidateQueries({ queryKey: ['executions'] });
  };
  return (
    <Card title={text.functions.invoke} actions={stop ? <Button small onClick={() => stop.abort()}>{text.cancel}</Button> : <Button small kind="primary" icon={Play} disabled={faultOf(event) !== null} onClick={() => void invoke()}>{text.functions.invokeButton}</Button>}>
      <div className="body stack">
        <AreaField label={text.functions.event} value={event} onText={setEvent} fault={faultOf(event)} hint={text.functions.eventHint} />
        {stop && <span className="row"><span className="spinner" aria-hidden /><span role="status">{text.run.running}</span></span>}
        {fault && <Note tone="bad">{fault}</Note>}
        {end && <Ending end={end} />}
        {chunks.length > 0 && <div className="stack tight"><h3>{text.output.label}</h3><Output chunks={chunks} /></div>}
      </div>
    </Card>
  );
}

function Ending({ end }: { end: Execution }) {
  return (
    <div className="stack tight">
      <div className="row wrap"><h3 className="grow">{text.functions.answer}</h3><Badge tone={end.status === 'succeeded' ? 'ok' : 'bad'}>{text.playground.statuses[end.status] ?? end.status}</Badge>{end.metrics && <span className="small muted number">{duration(end.metrics.run_ms)} · {bytes(end.metrics.peak_memory_bytes)}</span>}</div>
      {end.error ? <Note tone="bad"><strong>{end.error.type}</strong>: {end.error.message}{end.error.traceback && <pre className="small" style={{ marginTop: 8 }}>{end.error.traceback}</pre>}</Note>
        : <pre className="output function-answer" tabIndex={0} role="region" aria-label={text.functions.answer}>{JSON.stringify(end.result ?? null, null, 2)}</pre>}
    </div>
  );
}
