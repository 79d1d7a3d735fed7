// SPDX-License-Identifier: Apache-2.0
// A preview inside this page. Its address has a name of its own that only pages of this origin may frame, and needs no
// cookie, which browsers often keep from frames of another site. It is revoked when the view is closed.
import { ExternalLink, Monitor, RotateCw, Smartphone, Tablet, X } from 'lucide-react';
import { useEffect, useState } from 'react';

import { call, part } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { PreviewLink, Sandbox } from '../../../api/schema';
import { Card, Failure } from '../../../components/Basics';
import { IconButton } from '../../../components/Button';
import { text } from '../../../text/en';

const LIFE_S = 4 * 3600;
const WIDTHS = [{ name: text.ports.widths.desktop, icon: Monitor, width: '100%' }, { name: text.ports.widths.tablet, icon: Tablet, width: '768px' }, { name: text.ports.widths.phone, icon: Smartphone, width: '390px' }];

interface Props { sandbox: Sandbox; port: number; onVisit: () => void; onClose: () => void }

export function PreviewFrame({ sandbox, port, onVisit, onClose }: Props) {
  const [link, setLink] = useState<PreviewLink | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  const [width, setWidth] = useState('100%');
  const path = sandboxPath(sandbox.id, `/ports/${port}`);

  // The address is made anew for each turn: one that has expired or was revoked shows nothing.
  useEffect(() => {
    let made: Promise<PreviewLink> | null = null;
    let isOver = false;
    const make = async () => {
      await call('PATCH', path, { json: {} });
      return call<PreviewLink>('POST', `${path}/links`, { json: { expires_in_s: LIFE_S, frame_origin: location.origin } });
    };
    made = make();
    made.then((one) => { if (!isOver) { setLink(one); setFailure(null); } }, (error: unknown) => { if (!isOver) setFailure(error); });
    let id = '';
    made.then((one) => { id = one.id; }, () => undefined);
    const drop = () => { if (id) void fetch(`${path}/links/${part(id)}`, { method: 'DELETE', keepalive: true }).catch(() => undefined); };
    addEventListener('pagehide', drop); // leaving the console takes it back as well
    return () => { isOver = true; removeEventListener('pagehide', drop); setLink(null); void made?.then((one) => call('DELETE', `${path}/links/${part(one.id)}`)).catch(() => undefined); };
  }, [path, turn]);

  const reload = () => setTurn(turn + 1);
  return (
    <Card title={text.ports.preview(port)} actions={(
      <span className="row">
        {WIDTHS.map((one) => <IconButton key={one.name} small label={one.name} icon={one.icon} aria-pressed={width === one.width} onClick={() => setWidth(one.width)} />)}
        <IconButton small label={text.ports.reload} icon={RotateCw} onClick={reload} />
        <IconButton small label={text.ports.openTab} icon={ExternalLink} onClick={onVisit} />
        <IconButton small label={text.close} icon={X} onClick={onClose} />
      </span>
    )}>
      {failure ? <div className="body"><Failure error={failure} retry={reload} /></div> : (
        <div className="preview-stage">{link?.url && <iframe className="preview-frame" style={{ maxWidth: width }} src={link.url} title={text.ports.preview(port)} referrerPolicy="origin" allow="clipboard-write; fullscreen" sandbox="allow-scripts allow-forms allow-same-origin allow-popups allow-modals allow-downloads" />}</div>
      )}
    </Card>
  );
}
