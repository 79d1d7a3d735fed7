// SPDX-License-Identifier: Apache-2.0
// Sandboxes that wait for a create: how many there are to be, how many there are, and how often one was there in time.
import { useQuery } from '@tanstack/react-query';
import { Flame } from 'lucide-react';

import { call } from '../../api/client';
import type { PoolList } from '../../api/schema';
import { Badge, Card, Empty, Loaded, Meter, Note, TableWrap } from '../../components/Basics';
import { text } from '../../text/en';

export function Pools() {
  const query = useQuery({ queryKey: ['pools'], queryFn: ({ signal }) => call<PoolList>('GET', '/v1/pools', { signal }), refetchInterval: 5000 });
  return (
    <Card title={text.pools.title} actions={query.data && query.data.draining > 0 && <Badge tone="warn">{text.pools.draining(query.data.draining)}</Badge>}>
      <Loaded query={query}>
        {({ pools, held_because }) => (pools.length === 0 ? <Empty icon={Flame} title={text.pools.none}><p>{text.pools.noneAbout}</p></Empty> : (
          <>
            {held_because && <div className="body"><Note tone="warn">{text.pools.held(held_because)}</Note></div>}
            <TableWrap><table className="table">
              <thead><tr><th>{text.pools.template}</th><th>{text.pools.owner}</th><th>{text.pools.ready}</th><th className="end">{text.pools.hits}</th><th className="end">{text.pools.misses}</th></tr></thead>
              <tbody>{pools.map((pool) => (
                <tr key={`${pool.template} ${pool.owner?.organization ?? ''} ${pool.owner?.user ?? ''}`}>
                  <td><div className="strong break">{pool.template}</div>{pool.error && <div className="small bad break">{pool.error}</div>}</td>
                  <td className="break">{pool.owner ? `${pool.owner.organization}/${pool.owner.user}` : text.pools.everybody}</td>
                  <td style={{ minWidth: 130 }}><span className="row"><span className="number nowrap">{text.of(String(pool.ready), String(pool.size))}</span><span className="grow"><Meter plain label={text.pools.ready} used={pool.ready} limit={pool.size} /></span></span>{pool.warming > 0 && <span className="small muted">{text.pools.warming(pool.warming)}</span>}</td>
                  <td className="end number">{pool.hits}</td><td className="end number">{pool.misses}</td>
                </tr>
              ))}</tbody>
            </table></TableWrap>
          </>
        ))}
      </Loaded>
    </Card>
  );
}
