// SPDX-License-Identifier: Apache-2.0
// Where code runs: in an interpreter of its own each time, or in one that keeps what was defined before.
import { useQuery } from '@tanstack/react-query';
import { EllipsisVertical, OctagonX, RotateCcw, Trash2 } from 'lucide-react';

import { call, part } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Context, ContextList, Sandbox } from '../../../api/schema';
import { IconButton } from '../../../components/Button';
import { Menu } from '../../../components/Menu';
import { attempt } from '../../../components/Toasts';
import { text } from '../../../text/en';

const NEW = 'new';
interface Props { sandbox: Sandbox; language: string; chosen: string; onChoose: (id: string) => void }

export function Contexts({ sandbox, language, chosen, onChoose }: Props) {
  const path = sandboxPath(sandbox.id, '/contexts');
  const query = useQuery({ queryKey: ['contexts', sandbox.id], queryFn: ({ signal }) => call<ContextList>('GET', path, { signal }), staleTime: 0 });
  const list = (query.data?.contexts ?? []).filter((context) => context.language === language && context.status !== 'ended');
  const current = list.find((context) => context.id === chosen);
  const choose = async (value: string) => {
    if (value !== NEW) { onChoose(value); return; }
    await attempt(async () => { const made = await call<Context>('POST', path, { json: { language } }); await query.refetch(); onChoose(made.id); });
  };
  const act = (verb: 'interrupt' | 'restart') => attempt(() => call('POST', `${path}/${part(chosen)}/${verb}`), text.contexts.done[verb]).then(() => query.refetch());
  const end = () => attempt(() => call('DELETE', `${path}/${part(chosen)}`), text.contexts.done.end).then(() => { onChoose(''); return query.refetch(); });
  if (language === 'shell') return null;
  return (
    <>
      <select className="input" style={{ width: 'auto' }} aria-label={text.contexts.label} value={current ? chosen : ''} onChange={(event) => void choose(event.target.value)}>
        <option value="">{text.contexts.fresh}</option>
        {list.map((context, i) => <option key={context.id} value={context.id}>{text.contexts.kept(i + 1)}</option>)}
        <option value={NEW}>{text.contexts.make}</option>
      </select>
      {current && <Menu trigger={<IconButton small label={text.contexts.actions} icon={EllipsisVertical} />} items={[
        { label: text.contexts.interrupt, icon: OctagonX, act: () => void act('interrupt') },
        { label: text.contexts.restart, icon: RotateCcw, act: () => void act('restart') },
        { label: text.contexts.end, icon: Trash2, bad: true, apart: true, act: () => void end() },
      ]} />}
    </>
  );
}
