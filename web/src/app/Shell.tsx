// SPDX-License-Identifier: Apache-2.0
// What is around every page: navigation, where one is, the palette, the theme, and whether the server is there.
import { LogOut, Menu as MenuIcon, Monitor, Moon, Search, Sun, UserRound } from 'lucide-react';
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';

import { connection } from '../api/live';
import { useSandbox, useVersion } from '../api/queries';
import { session, signOut } from '../api/session';
import { IconButton } from '../components/Button';
import { Menu } from '../components/Menu';
import { attempt } from '../components/Toasts';
import icon from '../icon.svg';
import { unescaped } from '../lib/parse';
import { useStore } from '../lib/store';
import { text } from '../text/en';
import { PLACES } from './navigation';
import { themeChoice, type Choice } from './theme';

const Palette = lazy(() => import('./palette/Palette').then((module) => ({ default: module.Palette })));
const THEMES: [Choice, typeof Sun][] = [['system', Monitor], ['dark', Moon], ['light', Sun]];

export function Shell({ children }: { children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  const [hasPalette, setPalette] = useState(false);
  const [path] = useLocation();
  const main = useRef<HTMLElement>(null);
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setPalette((before) => !before);
      }
      if (event.key === 'Escape') setOpen(false);
    };
    addEventListener('keydown', onKey, true);
    return () => removeEventListener('keydown', onKey, true);
  }, []);

  return (
    <div className="shell">
      <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>{text.skip}</a>
      <Side isOpen={isOpen} />
      {isOpen && <div className="scrim" onClick={() => setOpen(false)} />}
      <div style={{ minWidth: 0 }}>
        <header className="bar">
          <IconButton className="menu-button" label={text.menu} icon={MenuIcon} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} />
          <Crumbs path={path} />
          <button type="button" className="palette-button" onClick={() => setPalette(true)}><Search size={15} aria-hidden /><span>{text.palette.open}</span><kbd aria-hidden>Ctrl K</kbd></button>
          <ThemeMenu />
          <UserMenu />
        </header>
        <Connection />
        <main className="main" id="main" ref={main} tabIndex={-1}>{children}</main>
      </div>
      {hasPalette && <Suspense><Palette onClose={() => setPalette(false)} /></Suspense>}
    </div>
  );
}

function Side({ isOpen }: { isOpen: boolean }) {
  const [path] = useLocation();
  const version = useVersion();
  const isAt = (place: string) => (place === '/' ? path === '/' || path.startsWith('/sandboxes') : path.startsWith(place));
  return (
    <nav className={isOpen ? 'side open' : 'side'} aria-label={text.nav.label}>
      <Link href="/" className="brand"><img src={icon} alt="" />Sandlot</Link>
      {PLACES.map(({ title, places }) => (
        <div key={title}>
          {title && <h2>{title}</h2>}
          {places.map(({ path: to, label, icon: Icon, outside }) => (outside
            ? <a key={to} className="nav" href={to}><Icon size={17} aria-hidden />{label}</a>
            : <Link key={to} className="nav" href={to} aria-current={isAt(to) ? 'page' : undefined}><Icon size={17} aria-hidden />{label}</Link>))}
        </div>
      ))}
      <div className="end small muted" style={{ paddingInline: 10 }}>{version.data && text.version(version.data.version)}</div>
    </nav>
  );
}

function Crumbs({ path }: { path: string }) {
  const [, area = '', id] = path.split('/');
  const place = PLACES.flatMap(({ places }) => places).find((one) => one.path === `/${area}`) ?? PLACES[0].places[0];
  return (
    <div className="crumbs">
      {id ? <><Link href={place.path}>{place.label}</Link><span aria-hidden>/</span>{area === 'sandboxes' ? <SandboxCrumb id={unescaped(id)} /> : <span aria-current="page" className="ellipsis">{unescaped(id)}</span>}</>
        : <span aria-current="page">{place.label}</span>}
    </div>
  );
}

function SandboxCrumb({ id }: { id: string }) {
  const { data } = useSandbox(id);
  return <span aria-current="page" className="ellipsis">{data?.name ?? id}</span>;
}

function Connection() {
  const state = useStore(connection);
  return state === 'lost' ? <div className="banner" role="status"><span className="spinner" aria-hidden />{text.reconnecting}</div> : null;
}

function ThemeMenu() {
  const choice = useStore(themeChoice);
  const [, Icon] = THEMES.find(([name]) => name === choice)!;
  return <Menu trigger={<IconButton label={text.theme.label} icon={Icon} />} items={THEMES.map(([name, icon]) => ({ label: text.theme[name], icon, act: () => themeChoice.set(name) }))} />;
}

function UserMenu() {
  const now = useStore(session);
  const name = now.state === 'in' ? `${now.identity.owner.organization}/${now.identity.owner.user}` : '';
  return <Menu trigger={<IconButton label={text.signedInAs(name)} icon={UserRound} />} items={[{ label: name, act: () => {}, disabled: true }, { label: text.signOut, icon: LogOut, apart: true, act: () => void attempt(signOut) }]} />;
}
