// SPDX-License-Identifier: Apache-2.0
// What can be done to a sandbox, when, and what is asked before.
import { CirclePause, CirclePlay, Play, RotateCcw, Square, Trash2, Flame, type LucideIcon } from 'lucide-react';

import { act, type Verb } from '../api/queries';
import type { Sandbox } from '../api/schema';
import { text } from '../text/en';
import { ask } from './Ask';
import type { Item } from './Menu';
import { attempt } from './Toasts';

interface Row { verb: Verb; icon: LucideIcon; when: Sandbox['status'][]; bad?: boolean; asks?: boolean; capability?: 'freeze' }

export const VERBS: Row[] = [
  { verb: 'start', icon: Play, when: ['stopped', 'error'] },
  { verb: 'resume', icon: CirclePlay, when: ['paused'] },
  { verb: 'stop', icon: Square, when: ['running', 'paused'] },
  { verb: 'pause', icon: CirclePause, when: ['running'], capability: 'freeze' },
  { verb: 'reset', icon: RotateCcw, when: ['running', 'stopped', 'error'], asks: true },
  { verb: 'delete', icon: Trash2, when: ['running', 'paused', 'stopped', 'error', 'creating'], asks: true, bad: true },
  { verb: 'purge', icon: Flame, when: ['running', 'paused', 'stopped', 'error'], asks: true, bad: true },
];

export const nameOf = (sandbox: { id: string; name: string | null }) => sandbox.name ?? sandbox.id;

/** Asks where that is due, acts, and says what went wrong. Whether it was done. */
export async function perform(sandboxes: Sandbox[], verb: Verb): Promise<boolean> {
  const row = VERBS.find((one) => one.verb === verb)!;
  const fitting = sandboxes.filter((sandbox) => row.when.includes(sandbox.status));
  if (fitting.length === 0) return false;
  const what = fitting.length === 1 ? nameOf(fitting[0]) : text.count(fitting.length);
  if (row.asks) {
    const { title, about } = text.questions[verb as 'reset' | 'delete' | 'purge'];
    if (!await ask({ title: title(what), about, confirm: text.verbs[verb], danger: row.bad, word: verb === 'purge' ? text.questions.word : undefined })) return false;
  }
  const done = await Promise.all(fitting.map((sandbox) => attempt(() => act(sandbox, verb), fitting.length === 1 ? text.done[verb](what) : undefined)));
  return done.every(Boolean);
}

/** The verbs that fit now, as items of a menu. */
export function verbItems(sandbox: Sandbox, capabilities?: Record<string, boolean>, after?: (verb: Verb) => void): Item[] {
  return VERBS.filter((row) => row.when.includes(sandbox.status) && (!row.capability || capabilities?.[row.capability] !== false)).map((row) => ({
    label: text.verbs[row.verb], icon: row.icon, bad: row.bad, apart: row.verb === 'reset' || row.verb === 'delete',
    act: () => void perform([sandbox], row.verb).then((isDone) => { if (isDone) after?.(row.verb); }),
  }));
}
