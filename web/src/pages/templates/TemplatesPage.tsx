// SPDX-License-Identifier: Apache-2.0
// What sandboxes start from: cards, and a dialog that makes one of an image, packages or a Dockerfile.
import { useQueryClient } from '@tanstack/react-query';
import { Code, Cpu, Database, Layers, Package, Plus, type LucideIcon } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';

import { ApiError, call, part } from '../../api/client';
import { useTemplates } from '../../api/queries';
import type { Template } from '../../api/schema';
import { Ago, Badge, Empty, Loaded, Note, PageHead, type Tone } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { AreaField, SearchBox, Segments, TextField } from '../../components/Field';
import { bytes } from '../../lib/format';
import { useQueryValue, useTitle } from '../../lib/hooks';
import { lines } from '../../lib/parse';
import { text } from '../../text/en';
import './templates.css';

export const TEMPLATE_TONES: Record<Template['status'], Tone> = { available: '', building: 'info', ready: 'ok', error: 'bad' };

export function TemplatesPage() {
  const query = useTemplates();
  const [search, setSearch] = useQueryValue('q');
  const [isMaking, setMaking] = useState(false);
  const [, go] = useLocation();
  useTitle(text.nav.templates);
  return (
    <>
      <PageHead title={text.nav.templates} about={text.templates.about}><Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>{text.templates.make}</Button></PageHead>
      <div className="filters"><SearchBox label={text.templates.search} value={search} onText={setSearch} /></div>
      <Loaded query={query} bones={6}>
        {(list) => {
          const shown = list.filter((one) => `${one.name} ${one.image ?? ''}`.toLowerCase().includes(search.toLowerCase()));
          return shown.length === 0 ? <div className="card"><Empty icon={Layers} title={text.templates.none} /></div> : <ul className="grid">{shown.map((template) => <li key={template.name}><TemplateCard template={template} /></li>)}</ul>;
        }}
      </Loaded>
      {isMaking && <MakeDialog onClose={() => setMaking(false)} onMade={(name) => go(`/templates/${part(name)}`)} />}
    </>
  );
}

/** What a name or image tells of what is in it. */
const GLYPHS: [RegExp, LucideIcon][] = [[/^host$/, Cpu], [/postgres|mysql|maria|mongo|redis|valkey|sqlite/, Database], [/python|node|bun|deno|ruby|php|golang|rust|java|jdk/, Code]];
const glyphOf = ({ name, image }: Template) => (GLYPHS.find(([words]) => words.test(name) || words.test(image ?? '')) ?? [null, Package])[1];

function TemplateCard({ template }: { template: Template }) {
  const { name, status, image, source, languages } = template;
  const Glyph = glyphOf(template);
  return (
    <Link href={`/templates/${part(name)}`} className="card template-card">
      <div className="row"><span className="glyph"><Glyph size={16} aria-hidden /></span><h2 className="grow ellipsis">{name}</h2><Badge tone={TEMPLATE_TONES[status]}>{text.templates.statuses[status]}</Badge></div>
      <p className="small muted break">{image ?? text.templates.sources[source] ?? source}</p>
      {template.error && <p className="small bad break">{template.error}</p>}
      <div className="row wrap small muted">{template.disk_bytes > 0 && <span className="number">{bytes(template.disk_bytes)}</span>}{template.version > 0 && <span>v{template.version}</span>}{languages.map((one) => <Badge key={one}>{one}</Badge>)}{template.used_at && <span>{text.templates.used} <Ago time={template.used_at} /></span>}</div>
    </Link>
  );
}

type Source = 'image' | 'recipe' | 'dockerfile';

function MakeDialog({ onClose, onMade }: { onClose: () => void; onMade: (name: string) => void }) {
  const [source, setSource] = useState<Source>('image');
  const [form, setForm] = useState({ name: '', image: '', from: 'debian12', apt: '', pip: '', npm: '', run: '', dockerfile: 'FROM debian:12-slim\nRUN apt-get update\n' });
  const [fault, setFault] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const queries = useQueryClient();
  const set = (key: keyof typeof form) => (value: string) => setForm((before) => ({ ...before, [key]: value }));
  const words = (value: string) => value.split(/\s+/).filter(Boolean);

  const make = async () => {
    setBusy(true);
    setFault(null);
    const bodies: Record<Source, object> = { image: { image: form.image.trim() }, dockerfile: { dockerfile: form.dockerfile }, recipe: { recipe: { from: form.from.trim(), apt: words(form.apt), pip: words(form.pip), npm: words(form.npm), run: lines(form.run) } } };
    try {
      await call('POST', '/v1/templates', { json: { name: form.name.trim(), ...bodies[source] } });
      await queries.invalidateQueries({ queryKey: ['templates'] });
      onMade(form.name.trim());
    } catch (error) {
      setFault(error as ApiError);
    }
    setBusy(false);
  };
  return (
    <Dialog title={text.templates.make} open onClose={onClose} footer={<><Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="make" busy={isBusy}>{text.templates.build}</Button></>}>
      <form id="make" className="stack" onSubmit={(event) => { event.preventDefault(); void make(); }}>
        {fault && <Note tone="bad">{fault.message}{fault.remediation && `. ${fault.remediation}`}</Note>}
        <TextField label={text.name} value={form.name} onText={set('name')} required autoFocus placeholder="my-template" mono />
        <Segments label={text.templates.source} value={source} onText={(value) => setSource(value as Source)} choices={(['image', 'recipe', 'dockerfile'] as const).map((value) => ({ value, label: text.templates.sources[value] }))} />
        {source === 'image' && <TextField label={text.create.image} value={form.image} onText={set('image')} required placeholder="python:3.12-slim" mono />}
        {source === 'recipe' && <>
          <TextField label={text.templates.from} value={form.from} onText={set('from')} required mono />
          <div className="form-grid"><TextField label="apt" value={form.apt} onText={set('apt')} placeholder="git curl" mono /><TextField label="pip" value={form.pip} onText={set('pip')} placeholder="numpy" mono /><TextField label="npm" value={form.npm} onText={set('npm')} placeholder="typescript" mono /></div>
          <AreaField label={text.templates.run} value={form.run} onText={set('run')} placeholder="useradd dev" />
        </>}
        {source === 'dockerfile' && <AreaField label="Dockerfile" value={form.dockerfile} onText={set('dockerfile')} rows={9} />}
      </form>
    </Dialog>
  );
}
