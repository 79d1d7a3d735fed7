// SPDX-License-Identifier: Apache-2.0
// What is launched, and what is known better than can be found out.
import { useState } from 'react';

import { ApiError, call } from '../../api/client';
import { useProjects } from '../../api/queries';
import type { Launch } from '../../api/schema';
import { Note } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { AreaField, SelectField, TextField } from '../../components/Field';
import { pairs } from '../../lib/parse';
import { text } from '../../text/en';

interface Form { project: string; template: string; env: string; backend: string; frontend: string; install_s: string }

function bodyOf(form: Form): Record<string, unknown> {
  const command = (line: string) => (line.trim() ? { command: line.trim() } : undefined);
  return {
    project: form.project,
    template: form.template.trim() || undefined,
    env: form.env.trim() ? pairs(form.env) : undefined,
    backend: command(form.backend),
    frontend: command(form.frontend),
    timeouts: form.install_s.trim() ? { install_s: Number(form.install_s) } : undefined,
  };
}

export function LaunchDialog({ project, onClose, onBegun }: { project?: string; onClose: () => void; onBegun: (launch: Launch) => void }) {
  const projects = useProjects();
  const [form, setForm] = useState<Form>({ project: project ?? '', template: '', env: '', backend: '', frontend: '', install_s: '' });
  const [fault, setFault] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const set = (key: keyof Form) => (value: string) => setForm((before) => ({ ...before, [key]: value }));
  const names = (projects.data ?? []).map((one) => one.name);
  const chosen = form.project || names[0] || '';

  const begin = async () => {
    setBusy(true);
    setFault(null);
    try {
      onBegun(await call<Launch>('POST', '/v1/launches', { json: bodyOf({ ...form, project: chosen }) }));
    } catch (error) {
      setFault(error as ApiError);
      setBusy(false);
    }
  };
  return (
    <Dialog title={text.launches.start} about={text.launches.startAbout} open onClose={onClose} footer={<><Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="launch" busy={isBusy} disabled={!chosen}>{text.launches.button}</Button></>}>
      <form id="launch" className="stack" onSubmit={(event) => { event.preventDefault(); void begin(); }}>
        {fault && <Note tone="bad">{fault.message}{fault.remediation && `. ${fault.remediation}`}</Note>}
        {projects.data?.length === 0 && <Note>{text.launches.noProject}</Note>}
        <div className="form-grid">
          <SelectField label={text.facts.project} value={chosen} onText={set('project')} choices={(names.length ? names : [chosen]).map((name) => ({ value: name, label: name || '–' }))} />
          <TextField label={text.facts.template} value={form.template} onText={set('template')} placeholder="host" hint={text.launches.templateHint} mono />
        </div>
        <AreaField label={text.create.env} value={form.env} onText={set('env')} placeholder="NAME=value" hint={text.create.pairsHint} />
        <details>
          <summary className="muted small">{text.launches.better}</summary>
          <div className="stack" style={{ paddingTop: 12 }}>
            <TextField label={text.launches.backendCommand} value={form.backend} onText={set('backend')} placeholder="node server.js" hint={text.launches.commandHint} mono />
            <TextField label={text.launches.frontendCommand} value={form.frontend} onText={set('frontend')} placeholder="npm run dev" hint={text.launches.commandHint} mono />
            <TextField label={text.launches.installTime} value={form.install_s} onText={set('install_s')} placeholder="120" inputMode="numeric" />
          </div>
        </details>
      </form>
    </Dialog>
  );
}
