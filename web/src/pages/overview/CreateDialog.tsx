// SPDX-License-Identifier: Apache-2.0
// What a new sandbox is to be: each field may stay empty, then the server's default holds.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { ApiError, call } from '../../api/client';
import { place } from '../../api/live';
import { useSnapshots, useTemplates } from '../../api/queries';
import type { Sandbox } from '../../api/schema';
import { Note } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { AreaField, SelectField, TextField } from '../../components/Field';
import { lines, pairs } from '../../lib/parse';
import { text } from '../../text/en';

interface Form { name: string; template: string; image: string; snapshot: string; cpu: string; memory: string; disk: string; ports: string; mode: string; allow: string; env: string; labels: string; idle: string; start: string }
const BLANK: Form = { name: '', template: 'host', image: '', snapshot: '', cpu: '', memory: '', disk: '', ports: '', mode: '', allow: '', env: '', labels: '', idle: '', start: '' };
const IMAGE = ' image';
const SNAPSHOT = ' snapshot';

/** The body of the request; what is empty is left out. */
function bodyOf(form: Form): Record<string, unknown> {
  const number = (value: string) => (value.trim() ? Number(value) : undefined);
  const some = <T extends object>(value: T) => (Object.values(value).some((one) => one !== undefined) ? value : undefined);
  const ports = form.ports.split(/[\s,]+/).filter(Boolean).map(Number);
  return {
    name: form.name.trim() || undefined,
    template: form.template === IMAGE ? form.image.trim() : form.template === SNAPSHOT ? undefined : form.template,
    snapshot: form.template === SNAPSHOT ? form.snapshot : undefined,
    resources: some({ cpu: number(form.cpu), memory: form.memory.trim() || undefined, disk: form.disk.trim() || undefined }),
    ports: ports.length ? ports : undefined,
    network: form.mode ? { mode: form.mode, ...(form.mode === 'none' ? {} : { allow: lines(form.allow) }) } : undefined,
    env: form.env.trim() ? pairs(form.env) : undefined,
    labels: form.labels.trim() ? pairs(form.labels) : undefined,
    idle_timeout_s: form.idle === 'never' ? null : number(form.idle),
    start: form.start.trim() || undefined,
    wait: false,
  };
}

export function CreateDialog({ onClose, onMade, template, snapshot }: { onClose: () => void; onMade: (sandbox: Sandbox) => void; template?: string; snapshot?: string }) {
  const [form, setForm] = useState<Form>({ ...BLANK, template: snapshot ? SNAPSHOT : template ?? 'host', snapshot: snapshot ?? '' });
  const templates = useTemplates();
  const snapshots = useSnapshots();
  const queries = useQueryClient();
  const set = (key: keyof Form) => (value: string) => setForm((before) => ({ ...before, [key]: value }));
  const create = useMutation({
    mutationFn: () => call<Sandbox>('POST', '/v1/sandboxes', { json: bodyOf(form) }),
    onSuccess: (sandbox) => { place(queries, sandbox.id, sandbox); onMade(sandbox); },
  });
  const names = [...new Set((templates.data ?? [{ name: 'host', status: 'ready' as const }]).filter((one) => one.status !== 'error').map((one) => one.name))];
  const choices = [
    ...names.map((name) => ({ value: name, label: text.create.template(name, templates.data?.find((one) => one.name === name)?.status) })),
    { value: IMAGE, label: text.create.anImage },
    ...(snapshots.data?.length ? [{ value: SNAPSHOT, label: text.create.aSnapshot }] : []),
  ];
  const error = create.error instanceof ApiError ? create.error : null;

  return (
    <Dialog
      title={text.create.title} open onClose={onClose}
      footer={<><Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="create" busy={create.isPending}>{text.create.button}</Button></>}
    >
      <form id="create" className="stack" onSubmit={(event) => { event.preventDefault(); create.mutate(); }}>
        {error && <Note tone="bad">{error.message}{error.remediation && <span className="muted">. {error.remediation}</span>}</Note>}
        <div className="form-grid">
          <TextField label={text.create.name} value={form.name} onText={set('name')} placeholder={text.create.nameHint} maxLength={40} autoFocus />
          <SelectField label={text.create.templateLabel} value={form.template} choices={choices} onText={set('template')} />
        </div>
        {form.template === IMAGE && <TextField label={text.create.image} value={form.image} onText={set('image')} placeholder="python:3.12-slim" mono required />}
        {form.template === SNAPSHOT && <SelectField label={text.create.snapshot} value={form.snapshot} onText={set('snapshot')} choices={[{ value: '', label: '–' }, ...(snapshots.data ?? []).map((one) => ({ value: one.id, label: `${one.name ?? one.id} (${one.template})` }))]} />}
        <div className="form-grid three">
          <TextField label={text.create.cpu} value={form.cpu} onText={set('cpu')} placeholder="1" inputMode="decimal" />
          <TextField label={text.create.memory} value={form.memory} onText={set('memory')} placeholder="1Gi" />
          <TextField label={text.create.disk} value={form.disk} onText={set('disk')} placeholder="2Gi" />
        </div>
        <div className="form-grid three">
          <SelectField label={text.create.network} value={form.mode} onText={set('mode')} choices={[{ value: '', label: text.create.networkDefault }, ...(['internet', 'allowlist', 'none'] as const).map((mode) => ({ value: mode, label: text.networkModes[mode] }))]} />
          <TextField label={text.create.ports} value={form.ports} onText={set('ports')} placeholder="3000, 8080" />
          <SelectField label={text.create.idle} value={form.idle} onText={set('idle')} choices={text.create.idleChoices} />
        </div>
        {form.mode === 'allowlist' && <AreaField label={text.create.allow} value={form.allow} onText={set('allow')} placeholder={'api.example.com\n*.example.org:443'} hint={text.create.allowHint} />}
        <details>
          <summary className="muted small">{text.create.more}</summary>
          <div className="stack" style={{ paddingTop: 12 }}>
            <AreaField label={text.create.env} value={form.env} onText={set('env')} placeholder="NAME=value" hint={text.create.pairsHint} />
            <AreaField label={text.create.labels} value={form.labels} onText={set('labels')} placeholder="team=core" hint={text.create.pairsHint} />
            <TextField label={text.create.start} value={form.start} onText={set('start')} placeholder="npm start" hint={text.create.startHint} mono />
          </div>
        </details>
      </form>
    </Dialog>
  );
}
