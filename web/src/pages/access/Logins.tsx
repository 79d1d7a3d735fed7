// SPDX-License-Identifier: Apache-2.0
// Browsers that are signed in; each can be signed out from here.
import { useQuery } from '@tanstack/react-query';
import { LogOut } from 'lucide-react';

import { call, listAll, part } from '../../api/client';
import type { Login } from '../../api/schema';
import { Ago, Badge, Card, Loaded, TableWrap } from '../../components/Basics';
import { IconButton } from '../../components/Button';
import { attempt } from '../../components/Toasts';
import { text } from '../../text/en';

const BROWSERS: [string, RegExp][] = [['Edge', /Edg\/(\d+)/], ['Opera', /OPR\/(\d+)/], ['Firefox', /Firefox\/(\d+)/], ['Chrome', /Chrome\/(\d+)/], ['Safari', /Version\/(\d+).*Safari/]];
const SYSTEMS: [string, RegExp][] = [['Android', /Android/], ['iOS', /iPhone|iPad/], ['macOS', /Mac OS X/], ['Windows', /Windows/], ['Linux', /Linux/]];

/** "Firefox 140, Linux" of what a browser says of itself; what says something else is shown as it is. */
function browserOf(agent: string): string {
  const [name, pattern] = BROWSERS.find(([, one]) => one.test(agent)) ?? [];
  if (!name || !pattern) return agent;
  return [`${name} ${pattern.exec(agent)![1]}`, SYSTEMS.find(([, one]) => one.test(agent))?.[0]].filter(Boolean).join(', ');
}

export function Logins() {
  const query = useQuery({ queryKey: ['logins'], queryFn: ({ signal }) => listAll<Login>('/v1/logins', 'logins', {}, signal) });
  const end = (id: string) => attempt(() => call('DELETE', `/v1/logins/${part(id)}`), text.logins.ended).then(() => query.refetch());
  return (
    <Card title={text.logins.title}>
      <Loaded query={query}>
        {(list) => (
          <TableWrap><table className="table">
            <thead><tr><th>{text.facts.owner}</th><th>{text.logins.browser}</th><th>{text.logins.from}</th><th>{text.tokens.lastUsed}</th><th>{text.expires}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
            <tbody>{list.map((login) => (
              <tr key={login.id}>
                <td className="nowrap">{login.owner.organization}/{login.owner.user} {login.current && <Badge tone="ok">{text.logins.current}</Badge>}</td>
                <td className="break" title={login.agent}>{browserOf(login.agent)}</td><td className="mono">{login.address}</td><td><Ago time={login.last_used_at} /></td><td><Ago time={login.expires_at} /></td>
                <td className="actions">{!login.current && <IconButton small label={text.logins.end} icon={LogOut} onClick={() => void end(login.id)} />}</td>
              </tr>
            ))}</tbody>
          </table></TableWrap>
        )}
      </Loaded>
    </Card>
  );
}
