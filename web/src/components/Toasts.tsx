// SPDX-License-Identifier: Apache-2.0
// Short messages about what was done, or why it was not.
import { CircleAlert, CircleCheck, X } from 'lucide-react';

import { ApiError } from '../api/client';
import { store, useStore } from '../lib/store';
import { text } from '../text/en';
import { IconButton } from './Button';

interface Toast { id: number; kind: 'ok' | 'bad'; title: string; detail?: string | null }

const toasts = store<Toast[]>([]);
let made = 0;

const drop = (id: number) => toasts.set((before) => before.filter((one) => one.id !== id));

function show(kind: Toast['kind'], title: string, detail?: string | null) {
  const id = ++made;
  toasts.set((before) => [...before.slice(-3), { id, kind, title, detail }]);
  setTimeout(() => drop(id), kind === 'ok' ? 3500 : 9000);
}

export const say = (title: string, detail?: string) => show('ok', title, detail);

export function complain(error: unknown, title: string = text.failed) {
  const detail = error instanceof ApiError ? [error.message, error.remediation].filter(Boolean).join('. ') : error instanceof Error ? error.message : String(error);
  show('bad', title, detail);
}

/** Does something, and says so if it fails. Whether it was done. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
    if (done) say(done);
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

export function Toasts() {
  const list = useStore(toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {list.map(({ id, kind, title, detail }) => (
        <div key={id} className={`toast ${kind}`}>
          {kind === 'ok' ? <CircleCheck size={17} className="ok" aria-hidden /> : <CircleAlert size={17} className="bad" aria-hidden />}
          <div className="grow break"><div className="strong">{title}</div>{detail && <div className="small muted">{detail}</div>}</div>
          <IconButton label={text.close} icon={X} small onClick={() => drop(id)} />
        </div>
      ))}
    </div>
  );
}
