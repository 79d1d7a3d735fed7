// SPDX-License-Identifier: Apache-2.0
// Secrets that the server adds to requests of sandboxes; their values are never shown again.
import { useQueryClient } from '@tanstack/react-query';
import { Plus, Trash2, Vault } from 'lucide-react';
import { useState } from 'react';

import { ApiError, call, part } from '../../api/client';
import { useSecrets } from '../../api/queries';
import { ask } from '../../components/Ask';
import { Ago, Card, Empty, Loaded, Note, PageHead, TableWrap } from '../../components/Basics';
import { Button, IconButton } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { TextField } from '../../components/Field';
import { attempt } from '../../components/Toasts';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';

export function SecretsPage() {
  const query = useSecrets();
  const queries = useQueryClient();
  const [isMaking, setMaking] = useState(false);
  useTitle(text.nav.secrets);
  const reload = () => void queries.invalidateQueries({ queryKey: ['secrets'] });
  const remove = async (name: string) => {
    if (await ask({ title: text.secrets.removeTitle(name), about: text.secrets.removeAbout, confirm: text.verbs.delete, danger: true }) && await attempt(() => call('DELETE', `/v1/secrets/${part(name)}`))) reload();
  };
  return (
    <>
      <PageHead title={text.nav.secrets} about={text.secrets.about}><Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>{text.secrets.make}</Button></PageHead>
      <Card>
        <Loaded query={query}>
          {(list) => (list.length === 0 ? <Empty icon={Vault} title={text.secrets.none}><p>{text.secrets.noneAbout}</p></Empty> : (
            <TableWrap><table className="table">
              <thead><tr><th>{text.name}</th><th>{text.secrets.url}</th><th>{text.secrets.header}</th><th>{text.secrets.changed}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
              <tbody>{list.map((secret) => <tr key={secret.name}><td className="strong break">{secret.name}</td><td className="mono break">{secret.url}</td><td className="mono">{secret.header}</td><td><Ago time={secret.changed_at} /></td><td className="actions"><IconButton small label={text.secrets.removeTitle(secret.name)} icon={Trash2} onClick={() => void remove(secret.name)} /></td></tr>)}</tbody>
            </table></TableWrap>
          ))}
        </Loaded>
      </Card>
      {isMaking && <MakeDialog onClose={() => setMaking(false)} onMade={() => { reload(); setMaking(false); }} />}
    </>
  );
}

function MakeDialog({ onClose, onMade }: { onClose: () => void; onMade: () => void }) {
  const [form, setForm] = useState({ name: '', value: '', url: '', header: '' });
  const [fault, setFault] = useState<string | null>(null);
  const set = (key: keyof typeof form) => (value: string) => setForm((before) => ({ ...before, [key]: value }));
  const make = () => call('PUT', `/v1/secrets/${part(form.name.trim())}`, { json: { value: form.value, url: form.url.trim(), header: form.header.trim() || undefined } }).then(onMade, (error) => setFault(error instanceof ApiError ? error.message : String(error)));
  return (
    <Dialog title={text.secrets.make} about={text.secrets.makeAbout} open onClose={onClose} footer={<><Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="secret">{text.save}</Button></>}>
      <form id="secret" className="stack" onSubmit={(event) => { event.preventDefault(); void make(); }}>
        {fault && <Note tone="bad">{fault}</Note>}
        <TextField label={text.name} value={form.name} onText={set('name')} required placeholder="openai" mono hint={form.name && text.secrets.inside(form.name)} autoFocus />
        <TextField label={text.secrets.value} value={form.value} onText={set('value')} required type="password" autoComplete="new-password" mono />
        <TextField label={text.secrets.url} value={form.url} onText={set('url')} required placeholder="https://api.example.org" mono />
        <TextField label={text.secrets.header} value={form.header} onText={set('header')} placeholder="Authorization" mono />
      </form>
    </Dialog>
  );
}
