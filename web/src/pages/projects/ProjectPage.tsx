// SPDX-License-Identifier: Apache-2.0
// One project: its files, what a launch of it would find, its sandboxes, and how launches of it went.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Archive, Boxes, Rocket, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';

import { call, part } from '../../api/client';
import { useSandboxes } from '../../api/queries';
import type { Project } from '../../api/schema';
import { ask } from '../../components/Ask';
import { Ago, Badge, Card, Empty, Facts, Loaded, PageHead, StatusLabel } from '../../components/Basics';
import { Button } from '../../components/Button';
import { attempt } from '../../components/Toasts';
import { nameOf } from '../../components/verbs';
import { bytes } from '../../lib/format';
import { useTitle } from '../../lib/hooks';
import { fromPairs } from '../../lib/parse';
import { text } from '../../text/en';
import { LaunchDialog } from '../launches/LaunchDialog';
import { LaunchTable } from '../launches/LaunchTable';
import { ProjectFiles } from './ProjectFiles';
import { Report } from './Report';
import './projects.css';

export function ProjectPage({ id }: { id: string }) {
  const query = useQuery({ queryKey: ['project', id], queryFn: ({ signal }) => call<Project>('GET', `/v1/projects/${part(id)}`, { signal }) });
  useTitle(query.data?.name ?? id);
  return <Loaded query={query} bones={6}>{(project) => <View project={project} />}</Loaded>;
}

function View({ project }: { project: Project }) {
  const [isLaunching, setLaunching] = useState(false);
  const [, go] = useLocation();
  const queries = useQueryClient();
  const path = `/v1/projects/${part(project.id)}`;
  const remove = async () => {
    if (!await ask({ title: text.projects.removeTitle(project.name), about: text.projects.removeAbout, confirm: text.verbs.delete, danger: true })) return;
    if (await attempt(() => call('DELETE', path), text.projects.removed(project.name))) {
      go('/projects');
      void queries.invalidateQueries({ queryKey: ['projects'] });
    }
  };
  return (
    <>
      <PageHead title={project.name} about={`${text.projects.files(project.files)}, ${bytes(project.bytes)}`}>
        <a className="button" href={`${path}/archive`} download={`${project.name}.tar`}><Archive size={16} aria-hidden />{text.files.downloadTar}</a>
        <Button icon={Trash2} onClick={() => void remove()}>{text.verbs.delete}</Button>
        <Button kind="primary" icon={Rocket} onClick={() => setLaunching(true)}>{text.launches.start}</Button>
      </PageHead>
      <div className="stack wide">
        <div className="project-columns">
          <ProjectFiles project={project} />
          <div className="stack">
            <Report project={project} />
            <Card title={text.sandbox.facts}><div className="body"><FactsOf project={project} /></div></Card>
            <Sandboxes name={project.name} />
          </div>
        </div>
        <LaunchTable title={text.projects.launches} project={project.id} />
      </div>
      {isLaunching && <LaunchDialog project={project.name} onClose={() => setLaunching(false)} onBegun={(launch) => go(`/launches/${part(launch.id)}`)} />}
    </>
  );
}

function FactsOf({ project }: { project: Project }) {
  const { defaults, owner, labels } = project;
  const env = fromPairs(defaults.environment_config?.env_vars ?? {});
  return (
    <Facts facts={[
      [text.id, <code>{project.id}</code>],
      [text.facts.owner, `${owner.organization}/${owner.user}`],
      [text.projects.template, defaults.environment_type],
      [text.packages.title, defaults.environment_config?.packages?.join(', ')],
      [text.create.env, env && <pre>{env}</pre>],
      [text.tabs.ports, defaults.ports?.join(', ')],
      [text.create.labels, Object.keys(labels).length > 0 && <span className="row wrap">{Object.entries(labels).map(([key, value]) => <Badge key={key}>{key}={value}</Badge>)}</span>],
      [text.created, <Ago time={project.created_at} />],
      [text.secrets.changed, <Ago time={project.updated_at} />],
    ]} />
  );
}

function Sandboxes({ name }: { name: string }) {
  const query = useSandboxes();
  const list = (query.data ?? []).filter((sandbox) => sandbox.owner.project === name);
  return (
    <Card title={text.nav.sandboxes}>
      {list.length === 0 ? <Empty icon={Boxes} title={text.projects.noSandboxes}><p>{text.projects.noSandboxesAbout}</p></Empty>
        : <ul>{list.map((sandbox) => <li key={sandbox.id} className="line row spread"><Link href={`/sandboxes/${part(sandbox.id)}`} className="ellipsis">{nameOf(sandbox)}</Link><StatusLabel status={sandbox.status} /></li>)}</ul>}
    </Card>
  );
}
