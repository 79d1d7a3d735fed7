// SPDX-License-Identifier: Apache-2.0
// Handlers that are kept under a name.
import { SquareFunction, Plus } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';

import { part } from '../../api/client';
import { useFunctions } from '../../api/queries';
import { Ago, Badge, Card, Empty, Loaded, PageHead, TableWrap } from '../../components/Basics';
import { Button } from '../../components/Button';
import { duration } from '../../lib/format';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { DeployDialog } from './DeployDialog';

export function FunctionsPage() {
  const query = useFunctions();
  const [isMaking, setMaking] = useState(false);
  const [, go] = useLocation();
  useTitle(text.nav.functions);
  return (
    <>
      <PageHead title={text.nav.functions} about={text.functions.about}><Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>{text.functions.make}</Button></PageHead>
      <Card>
        <Loaded query={query}>
          {(list) => (list.length === 0 ? <Empty icon={SquareFunction} title={text.functions.none}><p>{text.functions.noneAbout}</p></Empty> : (
            <TableWrap><table className="table">
              <thead><tr><th>{text.name}</th><th>{text.playground.language}</th><th className="end">{text.templates.version}</th><th>{text.functions.handler}</th><th className="end">{text.functions.timeout}</th><th>{text.functions.deployed}</th></tr></thead>
              <tbody>{list.map((one) => (
                <tr key={one.name}>
                  <td><Link href={`/functions/${part(one.name)}`} className="strong break">{one.name}</Link></td><td><Badge>{text.playground.languages[one.language]}</Badge></td>
                  <td className="end number">{one.version}</td><td className="mono break">{one.handler ?? '–'}</td><td className="end number nowrap">{duration(one.timeout_ms)}</td><td><Ago time={one.created_at} /></td>
                </tr>
              ))}</tbody>
            </table></TableWrap>
          ))}
        </Loaded>
      </Card>
      {isMaking && <DeployDialog onClose={() => setMaking(false)} onMade={(one) => go(`/functions/${part(one.name)}`)} />}
    </>
  );
}
