// SPDX-License-Identifier: Apache-2.0
// How programs reach this server: to be copied and run, with its address filled in.
import { Link } from 'wouter';
import { useState } from 'react';

import { useVersion } from '../../api/queries';
import { Card, Note, PageHead } from '../../components/Basics';
import { Copyable } from '../../components/Copy';
import { Segments } from '../../components/Field';
import { useTitle } from '../../lib/hooks';
import { text } from '../../text/en';
import { WAYS } from './ways';

export function ConnectPage() {
  const [name, setName] = useState(WAYS[0].name);
  const way = WAYS.find((one) => one.name === name) ?? WAYS[0];
  const version = useVersion();
  useTitle(text.nav.connect);
  return (
    <>
      <PageHead title={text.nav.connect} about={text.connect.about} />
      <div className="stack" style={{ maxWidth: 900 }}>
        <Note>{text.connect.token} <Link href="/tokens">{text.nav.tokens}</Link></Note>
        <div style={{ overflowX: 'auto' }}><Segments label={text.connect.way} value={name} onText={setName} choices={WAYS.map((one) => ({ value: one.name, label: one.name }))} /></div>
        <Card title={way.name}><div className="body stack">{way.steps(location.origin, version.data?.preview_url ?? '…').map(({ about, code }) => <div key={about} className="stack tight"><p className="muted">{about}</p><Copyable value={code} label={about} /></div>)}</div></Card>
      </div>
    </>
  );
}
