// SPDX-License-Identifier: Apache-2.0
// A new function, or a new version of one.
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useRef, useState } from 'react';

import { ApiError, call, part } from '../../api/client';
import type { Function as Kept } from '../../api/schema';
import { Bones, Note } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { AreaField, Segments, TextField } from '../../components/Field';
import { fromPairs, pairs } from '../../lib/parse';
import { text } from '../../text/en';

const Editor = lazy(() => import('../sandbox/files/Editor'));
const LANGUAGES = ['python', 'javascript', 'shell'] as const;

export function DeployDialog({ before, onClose, onMade }: { before?: Kept; onClose: () => void; onMade: (made: Kept) => void }) {
  const [language, setLanguage] = useState<Kept['language']>(before?.language ?? 'python');
  const [form, setForm] = useState({ name: before?.name ?? '', handler: before?.handler ?? '', env: fromPairs(before?.env ?? {}), timeout_s: before?.timeout_ms ? String(before.timeout_ms / 1000) : '', memory: String(before?.resources?.memory ?? '') });
  const code = useRef(before?.code ?? text.functions.samples[language]);
  const [fault, setFault] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const queries = useQueryClient();
  const set = (key: keyof typeof form) => (value: string) => setForm((now) => ({ ...now, [key]: value }));
  const choose = (next: string) => {
    code.current = text.functions.samples[next as Kept['language']];
    setLanguage(next as Kept['language']);
  };
  const put = async () => {
    setBusy(true);
    setFault(null);
    // What this dialog does not show stays as the version before has it.
    const { imports, concurrency, template, network, dependencies, resources } = before ?? {};
    const limits = { ...resources, memory: form.memory.trim() || undefined };
    const json = { imports, concurrency, template, network, dependencies, language, code: code.current, handler: form.handler.trim() || undefined, env: pairs(form.env), timeout_ms: form.timeout_s.trim() ? Number(form.timeout_s) * 1000 : undefined, resources: Object.values(limits).some((one) => one !== undefined) ? limits : undefined };
    try {
      const made = await call<Kept>('PUT', `/v1/functions/${part(form.name.trim())}`, { json });
      await Promise.all(['functions', 'function'].map((key) => queries.invalidateQueries({ queryKey: [key] })));
      onMade(made);
    } catch (error) {
      setFault(error as ApiError);
      setBusy(false);
    }
  };
  return (
    <Dialog wide title={before ? text.functions.change(before.name) : text.functions.make} about={before ? text.functions.changeAbout : undefined} open onClose={onClose} footer={<><Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="deploy" busy={isBusy}>{text.functions.deploy}</Button></>}>
      <form id="deploy" className="stack" onSubmit={(event) => { event.preventDefault(); void put(); }}>
        {fault && <Note tone="bad">{fault.message}{fault.remediation && `. ${fault.remediation}`}</Note>}
        {!before && <TextField label={text.name} value={form.name} onText={set('name')} required autoFocus placeholder="hello" mono />}
        {!before && <div><Segments label={text.playground.language} value={language} onText={choose} choices={LANGUAGES.map((one) => ({ value: one, label: text.playground.languages[one] }))} /></div>}
        <div className="code-box"><Suspense fallback={<Bones />}><Editor key={language} value={before?.code ?? text.functions.samples[language]} name={language} onChange={(now) => { code.current = now; }} onSave={() => void put()} saveKey="Mod-Enter" /></Suspense></div>
        <div className="form-grid">
          <TextField label={text.functions.handler} value={form.handler} onText={set('handler')} placeholder="handler" mono />
          <TextField label={text.functions.timeoutField} value={form.timeout_s} onText={set('timeout_s')} placeholder="300" inputMode="decimal" />
          <TextField label={text.create.memory} value={form.memory} onText={set('memory')} placeholder="1Gi" />
        </div>
        <AreaField label={text.create.env} value={form.env} onText={set('env')} placeholder="NAME=value" hint={text.create.pairsHint} />
      </form>
    </Dialog>
  );
}
