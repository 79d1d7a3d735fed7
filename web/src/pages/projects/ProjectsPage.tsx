// SPDX-License-Identifier: Apache-2.0
// Sets of files that sandboxes share: a list, and a dialog that makes one.
import { useQueryClient } from '@tanstack/react-query';
import { FolderKanban, Plus } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';

import { ApiError, call, part } from '../../api/client';
import { useProjects, useTemplates } from '../../api/queries';
import type { Project } from '../../api/schema';
import { Ago, Badge, Empty, Loaded, Note, PageHead } from '../../components/Basics';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { AreaField, SearchBox, SelectField, TextField } from '../../components/Field';
import { bytes } from '../../lib/format';
import { useQueryValue, useTitle } from '../../lib/hooks';
import { pairs } from '../../lib/parse';
import { text } from '../../text/en';
import './projects.css';

export function ProjectsPage() {
  const query = useProjects();
  const [search, setSearch] = useQueryValue('q');
  const [isMaking, setMaking] = useState(false);
  const [, go] = useLocation();
  useTitle(text.nav.projects);
  const make = <Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>{text.projects.make}</Button>;
  return (
    <>
      <PageHead title={text.nav.projects} about={text.projects.about}>{make}</PageHead>
      <Loaded query={query} bones={6}>
        {(list) => {
          if (list.length === 0) return <div className="card"><Empty icon={FolderKanban} title={text.projects.none}><p>{text.projects.noneAbout}</p></Empty></div>;
          const shown = list.filter((one) => one.name.toLowerCase().includes(search.toLowerCase()));
          return (
            <>
              <div className="filters"><SearchBox label={text.projects.search} value={search} onText={setSearch} /></div>
              {shown.length === 0 ? <div className="card"><Empty icon={FolderKanban} title={text.projects.noMatch} /></div> : <ul className="grid">{shown.map((project) => <li key={project.id}><ProjectCard project={project} /></li>)}</ul>}
            </>
          );
        }}
      </Loaded>
      {isMaking && <MakeDialog onClose={() => setMaking(false)} onMade={(project) => go(`/projects/${part(project.name)}`)} />}
    </>
  );
}

function ProjectCard({ project }: { project: Project }) {
  const { name, defaults, files, labels } = project;
  return (
    <Link href={`/projects/${part(project.name)}`} className="card project-card">
      <div className="row"><span className="glyph"><FolderKanban size={16} aria-hidden /></span><h2 className="grow ellipsis">{name}</h2></div>
      <p className="small muted number">{text.projects.files(files)} · {bytes(project.bytes)}</p>
      <div className="row wrap small muted">{defaults.environment_type && <Badge>{defaults.environment_type}</Badge>}{Object.entries(labels).map(([key, value]) => <Badge key={key}>{key}={value}</Badge>)}<span>{text.projects.changed} <Ago time={project.updated_at} /></span></div>
    </Link>
  );
}

function MakeDialog({ onClose, onMade }: { onClose: () => void; onMade: (project: Project) => void }) {
  const [form, setForm] = useState({ name: '', template: '', env: '', labels: '' });
  const [fault, setFault] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const templates = useTemplates();
  const queries = useQueryClient();
  const set = (key: keyof typeof form) => (value: string) => setForm((before) => ({ ...before, [key]: value }));
  const names = [...new Set((templates.data ?? []).map((one) => one.name))];

  const make = async () => {
    setBusy(true);
    setFault(null);
    const env = pairs(form.env);
    const defaults = { environment_type: form.template || undefined, environment_config: Object.keys(env).length ? { env_vars: env } : undefined };
    try {
      const project = await call<Project>('POST', '/v1/projects', { json: { name: form.name.trim(), labels: pairs(form.labels), defaults } });
      await queries.invalidateQueries({ queryKey: ['projects'] });
      onMade(project);
    } catch (error) {
      setFault(error as ApiError);
      setBusy(false);
    }
  };
  return (
    <Dialog title={text.projects.make} about={text.projects.makeAbout} open onClose={onClose} footer={<><Button onClick={onClose}>{text.cancel}</Button><Button kind="primary" type="submit" form="make-project" busy={isBusy}>{text.create.button}</Button></>}>
      <form id="make-project" className="stack" onSubmit={(event) => { event.preventDefault(); void make(); }}>
        {fault && <Note tone="bad">{fault.message}{fault.remediation && `. ${fault.remediation}`}</Note>}
        <div className="form-grid">
          <TextField label={text.name} value={form.name} onText={set('name')} required autoFocus placeholder="my-app" maxLength={63} mono />
          <SelectField label={text.projects.template} value={form.template} onText={set('template')} choices={[{ value: '', label: text.create.networkDefault }, ...names.map((name) => ({ value: name, label: name }))]} />
        </div>
        <AreaField label={text.create.env} value={form.env} onText={set('env')} placeholder="NAME=value" hint={text.create.pairsHint} />
        <AreaField label={text.create.labels} value={form.labels} onText={set('labels')} placeholder="team=core" hint={text.create.pairsHint} />
      </form>
    </Dialog>
  );
}
