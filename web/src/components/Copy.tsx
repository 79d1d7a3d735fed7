// SPDX-License-Identifier: Apache-2.0
import { Check, Copy as CopyIcon } from 'lucide-react';
import { useState } from 'react';

import { text } from '../text/en';
import { IconButton } from './Button';
import { complain } from './Toasts';

/** Where a page came over plain HTTP from another machine, browsers have no clipboard for it but this old way. */
async function put(value: string): Promise<void> {
  if (navigator.clipboard) { await navigator.clipboard.writeText(value); return; }
  const field = document.createElement('textarea');
  field.value = value;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  if (!isDone) throw new Error(text.copyFailed);
}

export function CopyButton({ value, label = text.copy }: { value: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await put(value);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch (error) {
      complain(error, text.copyFailed);
    }
  };
  return <IconButton label={label} icon={isDone ? Check : CopyIcon} small onClick={() => void copy()} />;
}

/** Something to be copied and run. */
export const Copyable = ({ value, label }: { value: string; label?: string }) => (
  <div className="copyable"><pre tabIndex={0} role="region" aria-label={label ?? text.copy}>{value}</pre><CopyButton value={value} /></div>
);
