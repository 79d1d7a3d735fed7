// SPDX-License-Identifier: Apache-2.0
// What uses a sandbox is behind a click while it does not run: nobody wakes one by looking around.
import { Moon } from 'lucide-react';
import { useState, type ReactNode } from 'react';

import type { Sandbox } from '../../api/schema';
import { Empty } from '../../components/Basics';
import { Button } from '../../components/Button';
import { perform, VERBS } from '../../components/verbs';
import { text } from '../../text/en';

export function NeedsRunning({ sandbox, what, children }: { sandbox: Sandbox; what: string; children: ReactNode }) {
  const [isBusy, setBusy] = useState(false);
  if (sandbox.status === 'running') return <>{children}</>;
  const row = VERBS.find(({ verb, when }) => (verb === 'start' || verb === 'resume') && when.includes(sandbox.status));
  const wake = async () => { setBusy(true); await perform([sandbox], row!.verb); setBusy(false); };
  return (
    <div className="card">
      <Empty icon={Moon} title={text.needs.title(text.statuses[sandbox.status].toLowerCase())}>
        <p>{text.needs.about(what)}</p>
        {row && <Button kind="primary" icon={row.icon} busy={isBusy} onClick={() => void wake()}>{text.verbs[row.verb]}</Button>}
      </Empty>
    </div>
  );
}
