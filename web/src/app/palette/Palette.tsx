// SPDX-License-Identifier: Apache-2.0
// Ctrl-K: pages, sandboxes and actions by a few letters of their names.
import { Box, Moon, Play, Plus, Square, Sun, TerminalSquare, type LucideIcon } from 'lucide-react';
import { Dialog } from 'radix-ui';
import { useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';

import { act, useSandboxes } from '../../api/queries';
import { attempt } from '../../components/Toasts';
import { text } from '../../text/en';
import { PLACES } from '../navigation';
import { theme, themeChoice } from '../theme';

interface Entry { label: string; detail?: string; icon: LucideIcon; run: () => void }
const SHOWN = 40;

export function Palette({ onClose }: { onClose: () => void }) {
  const [, go] = useLocation();
  const [words, setWords] = useState('');
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const { data: sandboxes = [] } = useSandboxes();

  const entries = useMemo<Entry[]>(() => [
    ...PLACES.flatMap(({ places }) => places).map(({ path, label, icon, outside }) => ({ label, icon, run: () => { if (outside) location.href = path; else go(path); } })),
    { label: text.create.title, icon: Plus, run: () => go('/?create=yes') },
    { label: text.palette.theme, icon: theme.get() === 'dark' ? Sun : Moon, run: () => themeChoice.set(theme.get() === 'dark' ? 'light' : 'dark') },
    ...sandboxes.flatMap((sandbox) => {
      const name = sandbox.name ?? sandbox.id;
      const path = `/sandboxes/${encodeURIComponent(sandbox.id)}`;
      const own: Entry[] = [{ label: name, detail: `${text.statuses[sandbox.status]} · ${sandbox.template}`, icon: Box, run: () => go(path) }, { label: `${text.tabs.terminal}: ${name}`, icon: TerminalSquare, run: () => go(`${path}/terminal`) }];
      if (sandbox.status === 'stopped') own.push({ label: `${text.verbs.start}: ${name}`, icon: Play, run: () => void attempt(() => act(sandbox, 'start')) });
      if (sandbox.status === 'running') own.push({ label: `${text.verbs.stop}: ${name}`, icon: Square, run: () => void attempt(() => act(sandbox, 'stop')) });
      return own;
    }),
  ], [sandboxes, go]);

  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter((entry) => parts.every((part) => `${entry.label} ${entry.detail ?? ''}`.toLowerCase().includes(part))).slice(0, SHOWN);
  const chosen = Math.min(at, found.length - 1);
  const run = (entry: Entry | undefined) => { if (entry) { onClose(); entry.run(); } };
  const move = (by: number) => {
    const next = (chosen + by + found.length) % Math.max(found.length, 1);
    setAt(next);
    list.current?.children[next]?.scrollIntoView({ block: 'nearest' });
  };
  const onKey = (event: React.KeyboardEvent) => {
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
    else if (event.key === 'Enter') run(found[chosen]);
    else return;
    event.preventDefault();
  };

  return (
    <Dialog.Root open onOpenChange={(isOpen) => { if (!isOpen) onClose(); }}>
      <Dialog.Portal>
        <Dialog.Overlay className="scrim" />
        <Dialog.Content className="palette" aria-describedby={undefined}>
          <Dialog.Title className="sr-only">{text.palette.open}</Dialog.Title>
          <input
            role="combobox" aria-expanded aria-controls="palette-list" aria-activedescendant={found[chosen] ? `palette-${chosen}` : undefined} aria-label={text.palette.hint}
            placeholder={text.palette.hint} value={words} autoFocus spellCheck={false} onKeyDown={onKey} onChange={(event) => { setWords(event.target.value); setAt(0); }}
          />
          {found.length === 0 ? <p className="none">{text.palette.none}</p> : (
            <ul id="palette-list" role="listbox" aria-label={text.palette.open} ref={list}>
              {found.map((entry, i) => (
                <li key={`${entry.label} ${i}`} id={`palette-${i}`} role="option" aria-selected={i === chosen} onMouseMove={() => setAt(i)} onClick={() => run(entry)}>
                  <entry.icon size={16} aria-hidden /><span className="grow ellipsis">{entry.label}</span>{entry.detail && <span className="small muted nowrap">{entry.detail}</span>}
                </li>
              ))}
            </ul>
          )}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
