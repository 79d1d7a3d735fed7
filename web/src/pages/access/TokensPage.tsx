// SPDX-License-Identifier: Apache-2.0
// Tokens. The secret of a new one is shown once.
import { useQueryClient } from '@tanstack/react-query';
import { KeyRound, Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';

import { ApiError, call, part } from '../../api/client';
import { useTokens } from '../../api/queries';
import type { Token } from '../../api/schema';
import { may } from '../../api/session';
import { ask } from '../../components/Ask';
import { Ago, Badge, Card, Empty, Loaded, Note, PageHead, TableWrap } from '../../components/Basics';
import { Button, IconButton } from '../../components/Button';
import { Copyable } from '../../components/Copy';
import { Dialog } from '../../components/Dialog';
import { Check, SelectField, TextField } from '../../components/Field';
import { attempt } from '../../components/Toasts';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { Logins } from './Logins';

const SCOPES = ['read', 'run', 'files', 'manage', 'admin'] as const;

export function TokensPage() {
  const query = useTokens();
  const queries = useQueryClient();
  const [isMaking, setMaking] = useState(false);
  useTitle(text.nav.tokens);
  const reload = () => void queries.invalidateQueries({ queryKey: ['tokens'] });
  const revoke = async (token: Token) => {
    if (await ask({ title: text.tokens.revokeTitle(token.name ?? token.id), about: text.tokens.revokeAbout, confirm: text.tokens.revoke, danger: true }) && await attempt(() => call('DELETE', `/v1/tokens/${part(token.id)}`), text.tokens.revoked)) reload();
  };
  return (
    <>
      <PageHead title={text.nav.tokens} about={text.tokens.about}><Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>{text.tokens.make}</Button></PageHead>
      <div className="stack wide">
      <Card>
        <Loaded query={query}>
          {(list) => (list.length === 0 ? <Empty icon={KeyRound} title={text.tokens.none} /> : (
            <TableWrap><table className="table">
              <thead><tr><th>{text.name}</th><th>{text.facts.owner}</th><th>{text.tokens.scopes}</th><th>{text.created}</th><th>{text.tokens.lastUsed}</th><th>{text.expires}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
              <tbody>{list.map((token) => (
                <tr key={token.id}>
                  <td className="break"><span className="strong">{token.name ?? token.id}</span></td><td className="break">{token.owner.organization}/{token.owner.user}</td>
                  <td><span className="row wrap" style={{ gap: 4 }}>{token.scopes.map((scope) => <Badge key={scope} tone={scope === 'admin' ? 'warn' : ''}>{scope}</Badge>)}</span></td>
                  <td><Ago time={token.created_at} /></td><td><Ago time={token.last_used_at} /></td><td>{token.expires_at ? <Ago time={token.expires_at} /> : <span className="muted">{text.overview.never}</span>}</td>
                  <td className="actions"><IconButton small label={text.tokens.revokeOf(token.name ?? token.id)} icon={Trash2} onClick={() => void revoke(token)} /></td>
                </tr>
              ))}</tbody>
            </table></TableWrap>
          ))}
        </Loaded>
      </Card>
      {!query.isPending && <Logins />}
      </div>
      {isMaking && <MakeDialog onClose={() => setMaking(false)} onMade={reload} />}
    </>
  );
}

function MakeDialog({ onClose, onMade }: { onClose: () => void; onMade: () => void }) {
  const [form, setForm] = useState({ name: '', user: '', organization: '', life: '' });
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set(['read', 'run', 'files', 'manage']));
  const [secret, setSecret] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const set = (key: keyof typeof form) => (value: string) => setForm((before) => ({ ...before, [key]: value }));
  const toggle = (scope: string, on: boolean) => setScopes((before) => { const after = new Set(before); if (on) after.add(scope); else after.delete(scope); return after; });
  const make = async () => {
    try {
      const made = await call<Token & { token: string }>('POST', '/v1/tokens', { json: { name: form.name.trim() || undefined, user: form.user.trim() || undefined, organization: form.organization.trim() || undefined, scopes: SCOPES.filter((scope) => scopes.has(scope)), expires_in_s: form.life ? Number(form.life) : undefined } });
      setSecret(made.token);
      onMade();
    } catch (error) {
      setFault(error instanceof ApiError ? error.message : String(error));
    }
  };
  if (secret) return <Dialog title={text.tokens.made} about={text.tokens.once} open onClose={onClose} footer={<Button kind="primary" onClick={onClose}>{text.tokens.haveIt}</Button>}><Copyable value={secret} label={text.signIn.token} /></Dialog>;
  return (
    <Dialog title={text.tokens.make} open onClose={onClose} footer={<><Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="token" disabled={scopes.size === 0}>{text.tokens.makeButton}</Button></>}>
      <form id="token" className="stack" onSubmit={(event) => { event.preventDefault(); void make(); }}>
        {fault && <Note tone="bad">{fault}</Note>}
        <TextField label={text.name} value={form.name} onText={set('name')} placeholder={text.tokens.nameHint} hint={text.tokens.nameRule} autoFocus />
        <div className="form-grid">
          {may('admin') && <><TextField label={text.tokens.organization} value={form.organization} onText={set('organization')} placeholder={text.tokens.own} /><TextField label={text.tokens.user} value={form.user} onText={set('user')} placeholder={text.tokens.own} /></>}
          <SelectField label={text.expires} value={form.life} onText={set('life')} choices={text.tokens.lives} />
        </div>
        <fieldset style={{ border: 0, padding: 0, margin: 0 }} className="stack tight"><legend className="small strong">{text.tokens.scopes}</legend>{SCOPES.map((scope) => <Check key={scope} label={text.tokens.scopeNames[scope]} checked={scopes.has(scope)} onCheck={(on) => toggle(scope, on)} />)}</fieldset>
      </form>
    </Dialog>
  );
}
