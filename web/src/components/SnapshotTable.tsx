// SPDX-License-Identifier: Apache-2.0
import { Trash2 } from 'lucide-react';
import type { ReactNode } from 'react';

import { call, part } from '../api/client';
import type { Snapshot } from '../api/schema';
import { bytes } from '../lib/format';
import { text } from '../text/en';
import { ask } from './Ask';
import { Ago, Badge, TableWrap } from './Basics';
import { IconButton } from './Button';
import { attempt } from './Toasts';

interface Props { list: Snapshot[]; onGone: () => void; actions: (snapshot: Snapshot) => ReactNode; origin?: (snapshot: Snapshot) => ReactNode }

export function SnapshotTable({ list, onGone, actions, origin }: Props) {
  const remove = async (snapshot: Snapshot) => {
    if (await ask({ title: text.snapshots.removeTitle(snapshot.name ?? snapshot.id), about: text.snapshots.removeAbout, confirm: text.verbs.delete, danger: true }) && await attempt(() => call('DELETE', `/v1/snapshots/${part(snapshot.id)}`), text.snapshots.removed)) onGone();
  };
  return (
    <TableWrap><table className="table">
      <thead><tr><th>{text.name}</th>{origin && <th>{text.snapshots.of}</th>}<th>{text.facts.template}</th><th className="end">{text.size}</th><th>{text.created}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
      <tbody>{list.map((snapshot) => (
        <tr key={snapshot.id}>
          <td><div className="strong break">{snapshot.name ?? snapshot.id} {snapshot.checkpoint && <Badge tone="info">{text.snapshots.checkpoint}</Badge>}</div></td>
          {origin && <td>{origin(snapshot)}</td>}
          <td>{snapshot.template}</td><td className="end number">{bytes(snapshot.size)}</td><td><Ago time={snapshot.created_at} /></td>
          <td className="actions"><span className="row" style={{ justifyContent: 'flex-end' }}>{actions(snapshot)}<IconButton small label={text.snapshots.remove} icon={Trash2} onClick={() => void remove(snapshot)} /></span></td>
        </tr>
      ))}</tbody>
    </table></TableWrap>
  );
}
