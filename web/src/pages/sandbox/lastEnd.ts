// SPDX-License-Identifier: Apache-2.0
import type { Sandbox, Termination } from '../../api/schema';
import { text } from '../../text/en';

const EXPECTED = new Set(['exited', 'idle', 'killed', 'operator', 'lifetime']);

/** Why it ended the last time, in words; it may run again since then. */
export function lastEnd(sandbox: Sandbox): { says: string; isBad: boolean } | null {
  const termination = sandbox.last_termination as Termination | null;
  if (!termination?.reason) return null;
  return { says: explain(termination), isBad: !EXPECTED.has(termination.reason) };
}

export function explain({ reason, signal, detail }: NonNullable<Termination>): string {
  return [text.reasons[reason ?? ''] ?? reason ?? '', signal, detail].filter(Boolean).join(' · ');
}
