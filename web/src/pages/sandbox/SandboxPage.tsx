// SPDX-License-Identifier: Apache-2.0
// One sandbox: a header with what can be done to it, and a tab for each way to look at or use it. Looking wakes nobody;
// tabs that use it ask for a click first if it does not run (NeedsRunning).
import { ChevronDown, ChevronRight, Code, Database, FolderTree, Globe, History, LayoutDashboard, ListTree, Plug, Settings, SquareTerminal, Camera, SearchX, type LucideIcon } from 'lucide-react';
import { lazy, Suspense, useEffect, useRef, type ComponentType } from 'react';
import { Link, useLocation } from 'wouter';

import { ApiError } from '../../api/client';
import { useDriver, useSandbox } from '../../api/queries';
import type { Sandbox } from '../../api/schema';
import { Badge, Bones, Empty, Loaded, Note, StatusLabel } from '../../components/Basics';
import { Button } from '../../components/Button';
import { CopyButton } from '../../components/Copy';
import { Menu } from '../../components/Menu';
import { nameOf, perform, verbItems, VERBS } from '../../components/verbs';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { IdleCountdown } from '../overview/SandboxRow';
import { lastEnd } from './lastEnd';
import './sandbox.css';

export interface TabProps { sandbox: Sandbox }
type Tab = { name: keyof typeof text.tabs; icon: LucideIcon; view: ComponentType<TabProps> };

const tab = (name: Tab['name'], icon: LucideIcon, load: () => Promise<{ default: ComponentType<TabProps> }>): Tab => ({ name, icon, view: lazy(load) });

const TABS: Tab[] = [
  tab('overview', LayoutDashboard, () => import('./overview/OverviewTab')),
  tab('terminal', SquareTerminal, () => import('./terminal/TerminalTab')),
  tab('run', ChevronRight, () => import('./run/RunTab')),
  tab('processes', ListTree, () => import('./processes/ProcessesTab')),
  tab('files', FolderTree, () => import('./files/FilesTab')),
  tab('ports', Plug, () => import('./ports/PortsTab')),
  tab('network', Globe, () => import('./network/NetworkTab')),
  tab('members', Database, () => import('./members/MembersTab')),
  tab('snapshots', Camera, () => import('./snapshots/SnapshotsTab')),
  tab('playground', Code, () => import('./playground/PlaygroundTab')),
  tab('events', History, () => import('./events/EventsTab')),
  tab('settings', Settings, () => import('./settings/SettingsTab')),
];

export function SandboxPage({ id, tab: name }: { id: string; tab: string }) {
  const query = useSandbox(id);
  useTitle(query.data ? nameOf(query.data) : id);
  if (query.error instanceof ApiError && query.error.status === 404) return <div className="card"><Empty icon={SearchX} title={text.sandbox.gone}><p>{text.sandbox.goneAbout}</p><code className="small break">{id}</code><Link href="/" className="button">{text.sandbox.all}</Link></Empty></div>;
  return <Loaded query={query} bones={6}>{(sandbox) => <View sandbox={sandbox} name={name} />}</Loaded>;
}

function View({ sandbox, name }: { sandbox: Sandbox; name: string }) {
  const chosen = TABS.find((one) => one.name === name) ?? TABS[0];
  const path = `/sandboxes/${encodeURIComponent(sandbox.id)}`;
  const tabs = useRef<HTMLElement>(null);
  // On a telephone the tab that is shown may be one of those beside the window.
  useEffect(() => { tabs.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }); }, [name]);
  return (
    <>
      <Header sandbox={sandbox} />
      <nav className="tabs" ref={tabs} aria-label={text.sandbox.tabs}>
        {TABS.filter(({ name: one }) => one !== 'members' || sandbox.members.length > 0 || one === chosen.name).map(({ name: one, icon: Icon }) => (
          <Link key={one} href={one === 'overview' ? path : `${path}/${one}`} aria-current={one === chosen.name ? 'page' : undefined}><Icon size={15} aria-hidden />{text.tabs[one]}</Link>
        ))}
      </nav>
      <div className="tab-view"><Suspense fallback={<Bones count={5} />}><chosen.view key={chosen.name} sandbox={sandbox} /></Suspense></div>
    </>
  );
}

function Header({ sandbox }: { sandbox: Sandbox }) {
  const [, go] = useLocation();
  const driver = useDriver();
  const main = VERBS.find((row) => (row.verb === 'start' || row.verb === 'resume' || row.verb === 'stop') && row.when.includes(sandbox.status));
  const after = (verb: string) => { if (verb === 'delete' || verb === 'purge') go('/'); };
  const end = lastEnd(sandbox);
  return (
    <div className="stack" style={{ marginBottom: 12 }}>
      <div className="page-head" style={{ marginBottom: 0 }}>
        <div className="grow stack tight">
          <div className="row wrap"><h1 className="break">{nameOf(sandbox)}</h1><Badge tone={sandbox.status === 'running' ? 'ok' : sandbox.status === 'error' ? 'bad' : sandbox.status === 'stopped' ? '' : 'warn'}><StatusLabel status={sandbox.status} /></Badge>{sandbox.status === 'running' && <Badge tone={sandbox.ready ? '' : 'warn'}>{sandbox.ready ? text.sandbox.ready : text.sandbox.notReady}</Badge>}{Object.entries(sandbox.labels).map(([key, value]) => <Badge key={key} title={`${key}=${value}`}>{key}={value}</Badge>)}</div>
          <div className="dotted small muted">
            <span className="row"><code className="muted">{sandbox.id}</code><CopyButton value={sandbox.id} label={text.sandbox.copyId} /></span>
            <span>{sandbox.template}</span><span>{[sandbox.owner.organization, sandbox.owner.user, sandbox.owner.project].filter(Boolean).join(' / ')}</span>
            {sandbox.status === 'running' && sandbox.idle_timeout_s !== null && <span className="row" style={{ gap: 5 }}>{text.sandbox.stopsIn} <IdleCountdown sandbox={sandbox} /></span>}
            {sandbox.status === 'running' && sandbox.awake_because && <span>{text.sandbox.awake} {sandbox.awake_because}</span>}
            {sandbox.status === 'running' && end && <span>{text.sandbox.lastEnd} {end.says}</span>}
          </div>
        </div>
        {main && <Button kind={main.verb === 'stop' ? 'plain' : 'primary'} icon={main.icon} onClick={() => void perform([sandbox], main.verb)}>{text.verbs[main.verb]}</Button>}
        <Menu trigger={<Button>{text.sandbox.more}<ChevronDown size={15} aria-hidden /></Button>} items={verbItems(sandbox, driver.data?.capabilities, after)} />
      </div>
      {sandbox.status === 'error' && sandbox.error_message && <Note tone="bad"><strong>{text.sandbox.startFailed}</strong> {sandbox.error_message}</Note>}
      {sandbox.status !== 'running' && end && <Note tone={end.isBad ? 'warn' : ''}>{end.says}</Note>}
      {sandbox.upgradable && <Note>{text.sandbox.upgradable}</Note>}
      {(sandbox.warnings ?? []).map((warning) => <Note key={warning} tone="warn">{warning}</Note>)}
    </div>
  );
}

