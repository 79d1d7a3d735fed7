// SPDX-License-Identifier: Apache-2.0
// One file: pictures and PDFs are shown, text is edited, and what is neither can be downloaded. What comes from a sandbox
// is shown as the type that its name says or not at all; HTML and scripts only ever as text.
import { Download, Save, Binary } from 'lucide-react';
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react';

import { address, ApiError, request } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import { ask } from '../../../components/Ask';
import { Badge, Bones, Empty, Failure } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { complain, say } from '../../../components/Toasts';
import { bytes } from '../../../lib/format';
import { text } from '../../../text/en';
import { baseOf, extensionOf } from './paths';

const Editor = lazy(() => import('./Editor'));
const PICTURES: Record<string, string> = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', svg: 'image/svg+xml', ico: 'image/x-icon', avif: 'image/avif', bmp: 'image/bmp' };
const TEXT_MAX = 2 * 1024 * 1024;
const SHOWN_MAX = 40 * 1024 * 1024;

type Content = { kind: 'text'; value: string; tag: string | null } | { kind: 'picture'; url: string } | { kind: 'pdf'; url: string } | { kind: 'other'; size: number };

async function load(sandbox: string, path: string, signal: AbortSignal): Promise<Content> {
  const at = { query: { path }, signal };
  const head = await request('HEAD', sandboxPath(sandbox, '/files'), at);
  const size = Number(head.headers.get('content-length') ?? 0);
  const extension = extensionOf(path);
  const picture = PICTURES[extension];
  if (picture || extension === 'pdf' ? size > SHOWN_MAX : size > TEXT_MAX) return { kind: 'other', size };
  const answer = await request('GET', sandboxPath(sandbox, '/files'), at);
  const data = await answer.arrayBuffer();
  if (picture) return { kind: 'picture', url: URL.createObjectURL(new Blob([data], { type: picture })) };
  if (extension === 'pdf') return { kind: 'pdf', url: URL.createObjectURL(new Blob([data], { type: 'application/pdf' })) };
  try {
    const value = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
    return value.includes('\0') ? { kind: 'other', size } : { kind: 'text', value, tag: answer.headers.get('etag') };
  } catch {
    return { kind: 'other', size };
  }
}

/** `unsaved` tells whoever shows it whether something in it is not saved. */
export function FileView({ sandbox, path, unsaved, onSaved }: { sandbox: string; path: string; unsaved: { current: boolean }; onSaved: () => void }) {
  const [content, setContent] = useState<Content | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isDirty, setDirty] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [turn, setTurn] = useState(0);
  const value = useRef('');
  const tag = useRef<string | null>(null);

  useEffect(() => {
    const stop = new AbortController();
    let url: string | undefined;
    setError(null);
    load(sandbox, path, stop.signal).then((came) => {
      if ('url' in came) url = came.url;
      if (came.kind === 'text') { value.current = came.value; tag.current = came.tag; }
      setDirty(false);
      setContent(came);
    }, (fault) => { if (!stop.signal.aborted) setError(fault); });
    return () => { stop.abort(); if (url) URL.revokeObjectURL(url); };
  }, [sandbox, path, turn]);

  useEffect(() => {
    unsaved.current = isDirty;
    if (!isDirty) return undefined;
    const hold = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', hold);
    return () => { unsaved.current = false; removeEventListener('beforeunload', hold); };
  }, [isDirty, unsaved]);

  const save = useCallback(async (isForced = false): Promise<void> => {
    setBusy(true);
    const sent = value.current;
    try {
      const answer = await request('PUT', sandboxPath(sandbox, '/files'), { query: { path }, body: sent, headers: { 'content-type': 'application/octet-stream', ...(tag.current && !isForced ? { 'if-match': tag.current } : {}) } });
      tag.current = answer.headers.get('etag') ?? (await request('HEAD', sandboxPath(sandbox, '/files'), { query: { path } })).headers.get('etag');
      setDirty(value.current !== sent); // it goes on being edited while it is sent
      say(text.files.saved(baseOf(path)));
      onSaved();
    } catch (fault) {
      if (!(fault instanceof ApiError && (fault.status === 412 || fault.status === 409))) complain(fault);
      else if (await ask({ title: text.files.conflict, about: text.files.conflictAbout, confirm: text.files.overwrite, danger: true })) await save(true);
    }
    setBusy(false);
  }, [sandbox, path, onSaved]);

  return (
    <section className="card" aria-label={text.files.view}>
      <header>
        <code className="grow ellipsis" title={path}>{path}</code>
        {isDirty && <Badge tone="warn">{text.files.dirty}</Badge>}
        <a className="button small" href={address(sandboxPath(sandbox, '/files'), { path })} download={baseOf(path)}><Download size={14} aria-hidden />{text.files.download}</a>
        {content?.kind === 'text' && <Button small kind="primary" icon={Save} busy={isBusy} disabled={!isDirty} onClick={() => void save()}>{text.save}</Button>}
      </header>
      {error ? <Failure error={error} retry={() => setTurn(turn + 1)} /> : <Shown content={content} path={path} onChange={(now) => { value.current = now; setDirty(true); }} onSave={() => void save()} />}
    </section>
  );
}

function Shown({ content, path, onChange, onSave }: { content: Content | null; path: string; onChange: (value: string) => void; onSave: () => void }) {
  if (!content) return <Bones />;
  if (content.kind === 'text') return <div className="viewer"><Suspense fallback={<Bones />}><Editor value={content.value} name={baseOf(path)} onChange={onChange} onSave={onSave} /></Suspense></div>;
  if (content.kind === 'picture') return <div className="viewer picture"><img src={content.url} alt={baseOf(path)} /></div>;
  if (content.kind === 'pdf') return <div className="viewer"><iframe src={content.url} title={baseOf(path)} /></div>;
  return <Empty icon={Binary} title={text.files.binary}><p>{text.files.binaryAbout(bytes(content.size))}</p></Empty>;
}
