// SPDX-License-Identifier: Apache-2.0
// What can be changed of a sandbox while it lives. Only what was changed is sent.
import { useState } from 'react';

import { ApiError } from '../../../api/client';
import { useChange } from '../../../api/queries';
import type { Sandbox } from '../../../api/schema';
import { Card, Note } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { AreaField, Check, TextField } from '../../../components/Field';
import { say } from '../../../components/Toasts';
import { fromPairs, pairs } from '../../../lib/parse';
import { text } from '../../../text/en';
import { Packages } from './Packages';

const formOf = (sandbox: Sandbox) => ({
  name: sandbox.name ?? '', labels: fromPairs(sandbox.labels), isPrivate: sandbox.private,
  idle: sandbox.idle_timeout_s === null ? '' : String(sandbox.idle_timeout_s), lifetime: sandbox.lifetime_s === null ? '' : String(sandbox.lifetime_s),
  cpu: String(sandbox.resources.cpu ?? ''), memory: sandbox.resources.memory ?? '', disk: sandbox.resources.disk ?? '', pids: String(sandbox.resources.pids ?? ''),
});

export default function SettingsTab({ sandbox }: { sandbox: Sandbox }) {
  const before = formOf(sandbox);
  const [form, setForm] = useState(before);
  const change = useChange(sandbox.id);
  const set = (key: keyof typeof form) => (value: string) => setForm((now) => ({ ...now, [key]: value }));
  const number = (value: string) => (value.trim() === '' ? null : Number(value));

  const save = () => {
    const body: Record<string, unknown> = {};
    if (form.name !== before.name) body.name = form.name.trim() || null;
    if (form.labels !== before.labels) body.labels = pairs(form.labels);
    if (form.isPrivate !== before.isPrivate) body.private = form.isPrivate;
    if (form.idle !== before.idle) body.idle_timeout_s = number(form.idle);
    if (form.lifetime !== before.lifetime) body.lifetime_s = number(form.lifetime);
    const resources: Record<string, unknown> = {};
    if (form.cpu !== before.cpu) resources.cpu = Number(form.cpu);
    if (form.memory !== before.memory) resources.memory = form.memory.trim();
    if (form.disk !== before.disk) resources.disk = form.disk.trim();
    if (form.pids !== before.pids) resources.pids = Number(form.pids);
    if (Object.keys(resources).length) body.resources = resources;
    change.mutate(body, { onSuccess: () => say(text.settings.saved) });
  };
  const isChanged = JSON.stringify(form) !== JSON.stringify(before);
  return (
    <div className="grid two">
      <Card title={text.tabs.settings} actions={<Button small kind="primary" disabled={!isChanged} busy={change.isPending} onClick={save}>{text.save}</Button>}>
        <form className="body stack" onSubmit={(event) => { event.preventDefault(); save(); }}>
          {change.error && <Note tone="bad">{change.error.message}{change.error instanceof ApiError && change.error.remediation && <span className="muted">. {change.error.remediation}</span>}</Note>}
          <TextField label={text.create.name} value={form.name} onText={set('name')} maxLength={40} hint={text.settings.nameHint} />
          <div className="form-grid">
            <TextField label={text.settings.idle} value={form.idle} onText={set('idle')} inputMode="numeric" hint={text.settings.emptyNever} />
            <TextField label={text.settings.lifetime} value={form.lifetime} onText={set('lifetime')} inputMode="numeric" hint={text.settings.emptyNever} />
          </div>
          <div className="form-grid">
            <TextField label={text.create.cpu} value={form.cpu} onText={set('cpu')} inputMode="decimal" />
            <TextField label={text.create.memory} value={form.memory} onText={set('memory')} />
            <TextField label={text.create.disk} value={form.disk} onText={set('disk')} />
            <TextField label={text.stats.pids} value={form.pids} onText={set('pids')} inputMode="numeric" />
          </div>
          <AreaField label={text.create.labels} value={form.labels} onText={set('labels')} hint={text.create.pairsHint} />
          <Check label={text.settings.private} checked={form.isPrivate} onCheck={(checked) => setForm((now) => ({ ...now, isPrivate: checked }))} />
        </form>
      </Card>
      <Packages sandbox={sandbox} />
    </div>
  );
}
