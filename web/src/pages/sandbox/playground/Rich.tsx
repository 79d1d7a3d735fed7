// SPDX-License-Identifier: Apache-2.0
// One thing that code showed: the richest of its forms that can be shown safely.
import { colour, theme } from '../../../app/theme';
import { useStore } from '../../../lib/store';
import { text } from '../../../text/en';

export type Bundle = Record<string, unknown>;

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Nothing in the frame may run or be fetched, whatever the frame's own rules would let through. */
const RULES = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; style-src \'unsafe-inline\'; font-src data:">';

export function Rich({ bundle }: { bundle: Bundle }) {
  const picture = PICTURES.find((type) => typeof bundle[type] === 'string');
  if (picture) return <div><img src={`data:${picture};base64,${String(bundle[picture]).replace(/\s/g, '')}`} alt={String(bundle['text/plain'] ?? text.playground.figure)} /></div>;
  if (typeof bundle['image/svg+xml'] === 'string') return <div><img src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(bundle['image/svg+xml'])}`} alt={text.playground.figure} /></div>;
  if (typeof bundle['text/html'] === 'string') return <Html source={bundle['text/html']} />;
  if (bundle['application/json'] !== undefined) return <pre className="output">{JSON.stringify(bundle['application/json'], null, 2)}</pre>;
  const plain = bundle['text/markdown'] ?? bundle['text/latex'] ?? bundle['text/plain'];
  return <pre className="output" style={{ borderRadius: 8 }}>{typeof plain === 'string' ? plain : JSON.stringify(bundle, null, 2)}</pre>;
}

/** HTML in the colours of the console, as long as it brings none of its own. */
function Html({ source }: { source: string }) {
  const scheme = useStore(theme);
  const style = `:root{color-scheme:${scheme}}body{font:14px system-ui,sans-serif;margin:10px;color:${colour('--text')};background:${colour('--sunken')}}table{border-collapse:collapse}td,th{padding:4px 10px;border-bottom:1px solid ${colour('--line-strong')};text-align:right}th{background:${colour('--hover')}}a{color:${colour('--link')}}`;
  return <iframe sandbox="" referrerPolicy="no-referrer" title={text.playground.html} srcDoc={`${RULES}<style>${style}</style>${source}`} />;
}
