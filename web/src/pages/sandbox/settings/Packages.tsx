// SPDX-License-Identifier: Apache-2.0
// Packages of Python and Node that a sandbox has beside its template.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { call } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Dependencies, Sandbox } from '../../../api/schema';
import { Badge, Card, Loaded, Note } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { SelectField, TextField } from '../../../components/Field';
import { attempt } from '../../../components/Toasts';
import { text } from '../../../text/en';

export function Packages({ sandbox }: { sandbox: Sandbox }) {
  const [kind, setKind] = useState('python');
  const [names, setNames] = useState('');
  const query = useQuery({
    queryKey: ['dependencies', sandbox.id], queryFn: ({ signal }) => call<Dependencies>('GET', sandboxPath(sandbox.id, '/dependencies'), { signal }),
    refetchInterval: ({ state }) => (state.data && ['queued', 'running'].includes(state.data.status) ? 1500 : false),
  });
  const add = () => attempt(async () => {
    await call('POST', sandboxPath(sandbox.id, '/dependencies'), { json: { [kind]: names.split(/[\s]+/).filter(Boolean) } });
    setNames('');
    await query.refetch();
  });
  return (
    <Card title={text.packages.title}>
      <div className="body stack">
        <form className="row wrap" style={{ alignItems: 'flex-end' }} onSubmit={(event) => { event.preventDefault(); void add(); }}>
          <SelectField label={text.kind} value={kind} onText={setKind} choices={[{ value: 'python', label: 'Python' }, { value: 'node', label: 'Node' }]} />
          <div className="grow"><TextField label={text.packages.names} value={names} onText={setNames} placeholder="requests numpy==2.1" mono /></div>
          <Button type="submit" kind="primary" disabled={!names.trim()}>{text.packages.install}</Button>
        </form>
        <Loaded query={query} bones={2}>
          {({ installed, status, error }) => {
            const all = [...Object.entries(installed?.python ?? {}), ...Object.entries(installed?.node ?? {})];
            return (
              <>
                {(status === 'queued' || status === 'running') && <div className="row"><span className="spinner" aria-hidden /><span role="status">{text.packages.installing}</span></div>}
                {error && <Note tone="bad">{error}</Note>}
                {all.length > 0 ? <div className="row wrap">{all.map(([name, version]) => <Badge key={name}>{name} {version}</Badge>)}</div> : <p className="small muted">{text.packages.none}</p>}
              </>
            );
          }}
        </Loaded>
      </div>
    </Card>
  );
}
