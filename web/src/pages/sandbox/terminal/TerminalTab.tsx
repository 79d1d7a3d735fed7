// SPDX-License-Identifier: Apache-2.0
// Terminals. Each is a process of the sandbox, so the tabs are whatever terminals run there: they are there again after
// a reload, and in another browser.
import { Plus, SquareTerminal, X } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';

import { call, part } from '../../../api/client';
import { sandboxPath, useProcesses } from '../../../api/queries';
import type { Sandbox } from '../../../api/schema';
import { Bones, Empty, Loaded } from '../../../components/Basics';
import { Button, IconButton } from '../../../components/Button';
import { attempt } from '../../../components/Toasts';
import { text } from '../../../text/en';
import { NeedsRunning } from '../NeedsRunning';

const TerminalView = lazy(() => import('./TerminalView'));

export default function TerminalTab({ sandbox }: { sandbox: Sandbox }) {
  return <NeedsRunning sandbox={sandbox} what={text.needs.terminal}><Terminals key={sandbox.started_at} sandbox={sandbox} /></NeedsRunning>;
}

/** One that is open here, and has a process as soon as the server has said which. */
interface Open { key: string; process: string | null }

function Terminals({ sandbox }: { sandbox: Sandbox }) {
  const query = useProcesses(sandbox.id, 5000);
  const [fresh, setFresh] = useState<Open[]>([]);
  const [chosen, setChosen] = useState('');
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());

  const running = (query.data ?? []).filter((one) => one.pty && one.status === 'running').sort((a, b) => (a.started_at < b.started_at ? -1 : 1)).map((one) => one.id);
  const own = new Set(fresh.map((one) => one.process));
  const list: Open[] = [...running.filter((id) => !own.has(id)).map((id) => ({ key: id, process: id })), ...fresh].filter((one) => !closed.has(one.key));
  const current = list.find((one) => one.key === chosen) ?? list[0];

  const open = () => {
    const key = `new-${Date.now()}`;
    setFresh((before) => [...before, { key, process: null }]);
    setChosen(key);
  };
  const close = (one: Open) => {
    setClosed((before) => new Set(before).add(one.key));
    setFresh((before) => before.filter((other) => other.key !== one.key));
    if (one.process) {
      setClosed((before) => new Set(before).add(one.process!));
      void attempt(() => call('DELETE', sandboxPath(sandbox.id, `/processes/${part(one.process!)}`)).catch((error) => { if (error.status !== 404) throw error; }));
    }
  };

  return (
    <div className="card fill">
      {list.length > 0 && <div className="terminal-tabs" role="group" aria-label={text.terminal.list}>
        {list.map((one, i) => (
          <span key={one.key} className="terminal-tab" data-chosen={one.key === current?.key}>
            <button type="button" aria-pressed={one.key === current?.key} onClick={() => setChosen(one.key)}>{text.terminal.number(i + 1)}{one.process && <span className="muted"> {one.process}</span>}</button>
            <IconButton small label={text.terminal.close(i + 1)} icon={X} onClick={() => close(one)} />
          </span>
        ))}
        <IconButton small label={text.terminal.open} icon={Plus} onClick={open} />
      </div>}
      <Loaded query={query}>
        {() => (current ? (
          <Suspense fallback={<Bones />}>
            {list.map((one) => (
              <TerminalView key={one.key} sandbox={sandbox.id} process={one.process} isShown={one.key === current.key}
                onStart={(process) => setFresh((before) => before.map((other) => (other.key === one.key ? { ...other, process } : other)))} />
            ))}
          </Suspense>
        ) : <Empty icon={SquareTerminal} title={text.terminal.none}><p>{text.terminal.noneAbout}</p><Button kind="primary" icon={Plus} onClick={open}>{text.terminal.open}</Button></Empty>)}
      </Loaded>
    </div>
  );
}
