// SPDX-License-Identifier: Apache-2.0
// What an owner may have, and has.
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { ApiError, call, part } from '../../api/client';
import { useQuotas } from '../../api/queries';
import type { Amounts, Quota } from '../../api/schema';
import { may } from '../../api/session';
import { Badge, Card, Loaded, Meter, Note, PageHead } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { TextField } from '../../components/Field';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { amount, shown, SIZES } from './amounts';
import { Owners } from './Owners';

const KEYS: (keyof Amounts)[] = ['sandboxes', 'running', 'workspaces', 'cpu', 'memory', 'disk', 'images', 'projects', 'creates_per_minute'];

export function QuotasPage() {
  const query = useQuotas();
  const [edited, setEdited] = useState<Quota | null>(null);
  useTitle(text.nav.quotas);
  return (
    <>
      <PageHead title={text.nav.quotas} about={may('admin') ? text.quotas.aboutAll : text.quotas.about} />
      <div className="stack wide">
      <Loaded query={query}>
        {(list) => (
          <div className="grid two">
            {list.map((quota) => (
              <Card key={`${quota.organization}/${quota.user}`} title={quota.user ? `${quota.organization}/${quota.user}` : text.quotas.organization(quota.organization)} actions={<>{quota.is_set && <Badge tone="info">{text.quotas.isSet}</Badge>}{may('admin') && <Button small onClick={() => setEdited(quota)}>{text.quotas.change}</Button>}</>}>
                <div className="body quota">{KEYS.map((key) => (
                  <div key={key}>
                    <div className="small muted">{text.quotas.names[key]}</div>
                    <div className="number"><span className="strong">{shown(key, quota.used[key] ?? 0)}</span> <span className="small muted">{quota.limits[key] == null ? text.quotas.noLimit : text.ofAll(shown(key, quota.limits[key]))}</span></div>
                    {quota.limits[key] != null && <Meter label={text.quotas.names[key]} used={amount(key, quota.used[key]) ?? 0} limit={amount(key, quota.limits[key])} />}
                  </div>
                ))}</div>
              </Card>
            ))}
          </div>
        )}
      </Loaded>
      {may('admin') && <Owners onChange={setEdited} />}
      </div>
      {edited && <ChangeDialog quota={edited} onClose={() => setEdited(null)} />}
    </>
  );
}

function ChangeDialog({ quota, onClose }: { quota: Quota; onClose: () => void }) {
  const [form, setForm] = useState<Record<string, string>>(Object.fromEntries(KEYS.map((key) => [key, quota.limits[key] == null ? '' : String(quota.limits[key])])));
  const [fault, setFault] = useState<string | null>(null);
  const queries = useQueryClient();
  const path = `/v1/quotas/${part(quota.organization)}${quota.user ? `/${part(quota.user)}` : ''}`;
  const finish = (work: Promise<unknown>) => work.then(() => { void queries.invalidateQueries({ queryKey: ['quotas'] }); onClose(); }, (error) => setFault(error instanceof ApiError ? error.message : String(error)));
  // What is left out becomes the default: this form does not show what becomes of dangerous commands, and leaves it.
  const kept = quota.is_set ? { dangerous_commands: quota.dangerous_commands } : {};
  const save = () => finish(call('PUT', path, { json: { ...kept, ...Object.fromEntries(KEYS.filter((key) => form[key].trim()).map((key) => [key, SIZES.has(key) ? form[key].trim() : Number(form[key])])) } }));
  return (
    <Dialog title={text.quotas.changeTitle(quota.user ? `${quota.organization}/${quota.user}` : quota.organization)} about={text.quotas.changeAbout} open onClose={onClose}
      footer={<>{quota.is_set && <Button onClick={() => void finish(call('DELETE', path))}>{text.quotas.defaults}</Button>}<Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="quota">{text.save}</Button></>}>
      <form id="quota" className="stack" onSubmit={(event) => { event.preventDefault(); void save(); }}>
        {fault && <Note tone="bad">{fault}</Note>}
        <div className="form-grid">{KEYS.map((key) => <TextField key={key} label={text.quotas.names[key]} value={form[key]} onText={(value) => setForm((before) => ({ ...before, [key]: value }))} placeholder="∞" />)}</div>
      </form>
    </Dialog>
  );
}
