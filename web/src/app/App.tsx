// SPDX-License-Identifier: Apache-2.0
// Who is not signed in sees the sign-in page; all others the page of the address, inside the shell. Pages that not
// everybody opens are fetched when they are.
import { QueryClientProvider } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, type ComponentType } from 'react';
import { Route, Switch } from 'wouter';
import { SearchX } from 'lucide-react';

import { startLive } from '../api/live';
import { client } from '../api/queries';
import { lookUp, session } from '../api/session';
import { Asker } from '../components/Ask';
import { Bones, Empty } from '../components/Basics';
import { Toasts } from '../components/Toasts';
import { unescaped } from '../lib/parse';
import { useStore } from '../lib/store';
import { OverviewPage } from '../pages/overview/OverviewPage';
import { SignInPage } from '../pages/sign_in/SignInPage';
import { text } from '../text/en';
import { Boundary } from './Boundary';
import { Shell } from './Shell';
import './theme';

/** A page that is fetched when it is first shown. */
function later<K extends string>(load: () => Promise<Record<K, ComponentType<any>>>, name: K) {
  return lazy(() => load().then((module) => ({ default: module[name] })));
}

const SandboxPage = later(() => import('../pages/sandbox/SandboxPage'), 'SandboxPage');
const HostPage = later(() => import('../pages/host/HostPage'), 'HostPage');
const TemplatesPage = later(() => import('../pages/templates/TemplatesPage'), 'TemplatesPage');
const TemplatePage = later(() => import('../pages/templates/TemplatePage'), 'TemplatePage');
const ProjectsPage = later(() => import('../pages/projects/ProjectsPage'), 'ProjectsPage');
const ProjectPage = later(() => import('../pages/projects/ProjectPage'), 'ProjectPage');
const LaunchesPage = later(() => import('../pages/launches/LaunchesPage'), 'LaunchesPage');
const LaunchPage = later(() => import('../pages/launches/LaunchPage'), 'LaunchPage');
const FunctionsPage = later(() => import('../pages/functions/FunctionsPage'), 'FunctionsPage');
const FunctionPage = later(() => import('../pages/functions/FunctionPage'), 'FunctionPage');
const SnapshotsPage = later(() => import('../pages/snapshots/SnapshotsPage'), 'SnapshotsPage');
const JobsPage = later(() => import('../pages/jobs/JobsPage'), 'JobsPage');
const TokensPage = later(() => import('../pages/access/TokensPage'), 'TokensPage');
const SecretsPage = later(() => import('../pages/access/SecretsPage'), 'SecretsPage');
const QuotasPage = later(() => import('../pages/access/QuotasPage'), 'QuotasPage');
const AuditPage = later(() => import('../pages/audit/AuditPage'), 'AuditPage');
const ConnectPage = later(() => import('../pages/connect/ConnectPage'), 'ConnectPage');

export function App() {
  return (
    <QueryClientProvider client={client}>
      <Gate />
      <Asker />
      <Toasts />
    </QueryClientProvider>
  );
}

function Gate() {
  const now = useStore(session);
  const isIn = now.state === 'in';
  useEffect(() => { if (now.state === 'unknown') void lookUp(); }, [now.state]);
  useEffect(() => {
    if (now.state !== 'unreachable') return undefined;
    const timer = setInterval(() => void lookUp(), 1500);
    return () => clearInterval(timer);
  }, [now.state]);
  const who = isIn ? JSON.stringify(now.identity) : '';
  useEffect(() => (who ? startLive(client, who, () => void lookUp()) : client.clear()), [who]);

  if (now.state === 'unknown') return null;
  if (now.state === 'unreachable') return <div className="sign-in"><Empty icon={SearchX} title={text.unreachable}><p>{text.reconnecting}</p><span className="spinner" /></Empty></div>;
  if (now.state === 'out') return <SignInPage />;
  return <Shell><Boundary><Suspense fallback={<Bones count={6} />}><Pages /></Suspense></Boundary></Shell>;
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={OverviewPage} />
      <Route path="/sandboxes" component={OverviewPage} />
      <Route path="/sandboxes/:id/:tab?">{(params) => <SandboxPage key={params.id} id={unescaped(params.id)} tab={params.tab ?? 'overview'} />}</Route>
      <Route path="/templates" component={TemplatesPage} />
      <Route path="/templates/:name">{(params) => <TemplatePage name={unescaped(params.name)} />}</Route>
      <Route path="/projects" component={ProjectsPage} />
      <Route path="/projects/:id">{(params) => <ProjectPage key={params.id} id={unescaped(params.id)} />}</Route>
      <Route path="/launches" component={LaunchesPage} />
      <Route path="/launches/:id">{(params) => <LaunchPage key={params.id} id={unescaped(params.id)} />}</Route>
      <Route path="/functions" component={FunctionsPage} />
      <Route path="/functions/:name">{(params) => <FunctionPage key={params.name} name={unescaped(params.name)} />}</Route>
      <Route path="/snapshots" component={SnapshotsPage} />
      <Route path="/jobs" component={JobsPage} />
      <Route path="/host" component={HostPage} />
      <Route path="/tokens" component={TokensPage} />
      <Route path="/secrets" component={SecretsPage} />
      <Route path="/quotas" component={QuotasPage} />
      <Route path="/audit" component={AuditPage} />
      <Route path="/connect" component={ConnectPage} />
      <Route><Empty icon={SearchX} title={text.noPage}><p>{text.noPageAbout}</p></Empty></Route>
    </Switch>
  );
}
