// SPDX-License-Identifier: Apache-2.0
// All owners there are, with what they have of what they may have; for administrators.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { listAll } from '../../api/client';
import type { Amounts, Quota } from '../../api/schema';
import { Badge, Card, Loaded, Meter, TableWrap } from '../../components/Basics';
import { Button } from '../../components/Button';
import { SearchBox } from '../../components/Field';
import { text } from '../../text/en';
import { amount, shown } from './amounts';

const COLUMNS: (keyof Amounts)[] = ['sandboxes', 'running', 'cpu', 'memory', 'disk'];
const nameOf = ({ organization, user }: Quota) => `${organization}/${user}`;

export function Owners({ onChange }: { onChange: (quota: Quota) => void }) {
  const query = useQuery({ queryKey: ['quotas', 'owners'], queryFn: ({ signal }) => listAll<Quota>('/v1/owners', 'owners', {}, signal) });
  const [search, setSearch] = useState('');
  return (
    <Card title={text.quotas.owners} actions={query.data && query.data.length > 8 && <SearchBox label={text.quotas.searchOwners} value={search} onText={setSearch} />}>
      <Loaded query={query}>
        {(list) => {
          const found = list.filter((quota) => nameOf(quota).toLowerCase().includes(search.toLowerCase()));
          return found.length === 0 ? <p className="body muted">{text.quotas.noOwner}</p> : (
            <TableWrap><table className="table">
              <thead><tr><th>{text.quotas.owner}</th>{COLUMNS.map((key) => <th key={key} className="end">{text.quotas.names[key]}</th>)}<th><span className="sr-only">{text.actions}</span></th></tr></thead>
              <tbody>{found.map((quota) => (
                <tr key={nameOf(quota)}>
                  <td className="strong break">{nameOf(quota)} {quota.is_set && <Badge tone="info">{text.quotas.isSet}</Badge>}</td>
                  {COLUMNS.map((key) => <Amount key={key} name={key} quota={quota} />)}
                  <td className="actions"><Button small aria-label={text.quotas.changeOf(nameOf(quota))} onClick={() => onChange(quota)}>{text.quotas.change}</Button></td>
                </tr>
              ))}</tbody>
            </table></TableWrap>
          );
        }}
      </Loaded>
    </Card>
  );
}

function Amount({ name, quota: { used, limits } }: { name: keyof Amounts; quota: Quota }) {
  const limit = amount(name, limits[name]);
  const value = amount(name, used[name]) ?? 0;
  return (
    <td className="end number nowrap" style={{ minWidth: 88 }}>
      {shown(name, used[name] ?? 0)}{limit !== null && <span className="muted"> / {shown(name, limits[name])}</span>}
      {limit !== null && <Meter label={text.quotas.names[name]} used={value} limit={limit} />}
    </td>
  );
}
