// SPDX-License-Identifier: Apache-2.0
// What listens in a sandbox, who may see it, links to share, and a view of it. A private one opens in a tab of its own by
// a link that is made at that moment, and here by a frame that only this origin may show (PreviewFrame).
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ExternalLink, Eye, Link2, Plug, Trash2 } from 'lucide-react';
import { useState } from 'react';

import { call } from '../../../api/client';
import { sandboxPath, usePorts } from '../../../api/queries';
import type { Port, PreviewLink, PreviewLinks, Sandbox } from '../../../api/schema';
import { Ago, Card, Empty, Loaded, TableWrap } from '../../../components/Basics';
import { Button, IconButton } from '../../../components/Button';
import { Copyable } from '../../../components/Copy';
import { Dialog } from '../../../components/Dialog';
import { Check, SelectField } from '../../../components/Field';
import { attempt } from '../../../components/Toasts';
import { text } from '../../../text/en';
import { PreviewFrame } from './PreviewFrame';

interface Row { port: number; listens: Port | null; url: string | null; isPublic: boolean }

/** Ports that listen or have a preview, each once. */
function rowsOf(sandbox: Sandbox, listening: Port[]): Row[] {
  const declared = new Map(sandbox.ports.map((one) => (typeof one === 'number' ? [one, !sandbox.private] : [one.port, one.public ?? !sandbox.private])));
  const numbers = new Set([...declared.keys(), ...listening.map((one) => one.port)]);
  return [...numbers].sort((a, b) => a - b).map((port) => {
    const listens = listening.find((one) => one.port === port) ?? null;
    return { port, listens, url: sandbox.previews[port] ?? listens?.preview_url ?? null, isPublic: listens?.public ?? declared.get(port) ?? false };
  });
}

export default function PortsTab({ sandbox }: { sandbox: Sandbox }) {
  const isOn = sandbox.status === 'running';
  const query = usePorts(sandbox.id, isOn);
  const [shared, setShared] = useState<number | null>(null);
  const [shown, setShown] = useState<number | null>(null);
  const queries = useQueryClient();
  const rows = rowsOf(sandbox, query.data?.ports ?? []);

  const change = (port: number, isPublic: boolean) => attempt(() => call('PATCH', sandboxPath(sandbox.id, `/ports/${port}`), { json: { public: isPublic } })).then(() => { void queries.invalidateQueries({ queryKey: ['ports', sandbox.id] }); void queries.invalidateQueries({ queryKey: ['sandbox', sandbox.id] }); });
  const visit = async (row: Row) => {
    const tab = open('about:blank', '_blank');
    if (tab) tab.opener = null;
    const done = await attempt(async () => {
      const url = row.isPublic && row.url ? row.url : (await call<PreviewLink>('POST', sandboxPath(sandbox.id, `/ports/${row.port}/links`), { json: { expires_in_s: 3600 } })).url!;
      if (tab) tab.location.href = url;
    });
    if (!done) tab?.close();
  };
  return (
    <div className="stack wide">
      <Card>
        {rows.length === 0 ? <Empty icon={Plug} title={isOn ? text.ports.none : text.ports.noneStopped}><p>{text.ports.noneAbout}</p></Empty> : (
          <TableWrap><table className="table">
            <thead><tr><th>{text.ports.port}</th><th>{text.ports.listens}</th><th>{text.ports.access}</th><th>{text.ports.address}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
            <tbody>{rows.map((row) => (
              <tr key={row.port}>
                <td className="strong number">{row.port}</td>
                <td>{row.listens ? <span className="row"><span className="dot ok" aria-hidden /><code className="ellipsis">{row.listens.command ?? text.ports.something}</code><span className="small muted nowrap">{row.listens.address}{row.listens.reachable ? '' : ` · ${text.ports.unreachable}`}</span></span> : <span className="muted">{text.ports.nothing}</span>}</td>
                <td><Check label={text.ports.public} checked={row.isPublic} onCheck={(checked) => void change(row.port, checked)} /></td>
                <td>{row.url ? <code className="clip" title={row.url}>{row.url}</code> : <span className="muted">{text.ports.noPreview}</span>}</td>
                <td className="actions"><span className="row" style={{ justifyContent: 'flex-end' }}>
                  <Button small icon={ExternalLink} onClick={() => void visit(row)}>{text.open}</Button>
                  <Button small icon={Link2} onClick={() => setShared(row.port)}>{text.ports.share}</Button>
                  <Button small icon={Eye} aria-pressed={shown === row.port} onClick={() => setShown(shown === row.port ? null : row.port)}>{text.ports.show}</Button>
                </span></td>
              </tr>
            ))}</tbody>
          </table></TableWrap>
        )}
      </Card>
      {shown !== null && <PreviewFrame key={shown} sandbox={sandbox} port={shown} onVisit={() => void visit(rows.find((row) => row.port === shown) ?? { port: shown, listens: null, url: null, isPublic: false })} onClose={() => setShown(null)} />}
      {shared !== null && <ShareDialog sandbox={sandbox} port={shared} onClose={() => setShared(null)} />}
    </div>
  );
}

function ShareDialog({ sandbox, port, onClose }: { sandbox: Sandbox; port: number; onClose: () => void }) {
  const path = sandboxPath(sandbox.id, `/ports/${port}/links`);
  const query = useQuery({ queryKey: ['links', sandbox.id, port], queryFn: ({ signal }) => call<PreviewLinks>('GET', path, { signal }) });
  const [life, setLife] = useState('86400');
  const [made, setMade] = useState<string | null>(null);
  const make = () => attempt(async () => { setMade((await call<PreviewLink>('POST', path, { json: { expires_in_s: Number(life) } })).url ?? null); void query.refetch(); });
  const revoke = (id: string) => attempt(() => call('DELETE', `${path}/${encodeURIComponent(id)}`), text.ports.revoked).then(() => query.refetch());
  return (
    <Dialog title={text.ports.shareTitle(port)} about={text.ports.shareAbout} open onClose={onClose}>
      <div className="row" style={{ alignItems: 'flex-end' }}><div className="grow"><SelectField label={text.ports.life} value={life} onText={setLife} choices={text.ports.lives} /></div><Button kind="primary" onClick={() => void make()}>{text.ports.make}</Button></div>
      {made && <div className="stack tight"><Copyable value={made} label={text.ports.link} /><p className="small muted">{text.ports.once}</p></div>}
      <Loaded query={query}>{({ links }) => (links.length === 0 ? <p className="small muted">{text.ports.noLinks}</p> : (
        <table className="table"><thead><tr><th>{text.ports.link}</th><th>{text.expires}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead><tbody>{links.map((link) => <tr key={link.id}><td className="mono">{link.id}{link.frame_origin && <div className="small muted">{text.ports.framedBy(link.frame_origin)}</div>}</td><td><Ago time={link.expires_at} /></td><td className="actions"><IconButton small label={text.ports.revoke} icon={Trash2} onClick={() => void revoke(link.id)} /></td></tr>)}</tbody></table>
      ))}</Loaded>
    </Dialog>
  );
}
