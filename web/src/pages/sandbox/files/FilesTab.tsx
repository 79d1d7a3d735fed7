// SPDX-License-Identifier: Apache-2.0
// Files: a tree on the left, the chosen one on the right. Things dropped onto a directory are uploaded into it.
import { useQueryClient } from '@tanstack/react-query';
import { FolderPlus, FilePlus2, FileQuestion, RefreshCw, Upload } from 'lucide-react';
import { useRef, useState } from 'react';

import { address, call } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Sandbox } from '../../../api/schema';
import { upload } from '../../../api/upload';
import { ask, askText } from '../../../components/Ask';
import { Empty } from '../../../components/Basics';
import { IconButton } from '../../../components/Button';
import { attempt } from '../../../components/Toasts';
import { Uploads } from '../../../components/Uploads';
import { droppedFiles, named, type Dropped } from '../../../lib/dropped';
import { useQueryValue } from '../../../lib/hooks';
import { text } from '../../../text/en';
import { NeedsRunning } from '../NeedsRunning';
import { FileView } from './FileView';
import { join, parentOf } from './paths';
import { Tree } from './Tree';

const ROOT = '/workspace';

export default function FilesTab({ sandbox }: { sandbox: Sandbox }) {
  return <NeedsRunning sandbox={sandbox} what={text.needs.files}><Files sandbox={sandbox} /></NeedsRunning>;
}

function Files({ sandbox }: { sandbox: Sandbox }) {
  const [root, setRoot] = useState(ROOT);
  const [path, setPath] = useQueryValue('path');
  const [folder, setFolder] = useState(ROOT);
  const [isOver, setOver] = useState(false);
  const queries = useQueryClient();
  const input = useRef<HTMLInputElement>(null);
  const isUnsaved = useRef(false);
  const id = sandbox.id;
  const refresh = (at?: string) => queries.invalidateQueries({ queryKey: at ? ['files', id, at] : ['files', id] });

  const send = async (files: Dropped[], into: string) => {
    for (const { path: name, file } of files) if (await attempt(() => upload(address(sandboxPath(id, '/files'), { path: join(into, name) }), file))) void refresh(into);
  };
  /** Opens a file, or none; what is not saved of the one before is not lost without a question. */
  const show = async (file: string) => {
    if (file !== path && isUnsaved.current && !await ask({ ...text.files.leave, danger: true })) return;
    setPath(file);
    if (file) setFolder(parentOf(file));
  };
  const make = async (kind: 'file' | 'dir') => {
    const name = await askText({ ...text.files.make[kind], about: text.files.makeIn(folder), confirm: text.files.makeButton, value: kind === 'file' ? 'untitled.txt' : 'folder', label: text.name });
    if (!name) return;
    const full = join(folder, name);
    const done = await attempt(() => (kind === 'dir' ? call('POST', sandboxPath(id, '/files/mkdir'), { json: { path: full } }) : call('PUT', sandboxPath(id, '/files'), { query: { path: full }, body: '', headers: { 'if-none-match': '*' } })));
    if (!done) return;
    void refresh();
    if (kind === 'file') await show(full);
  };
  return (
    <div className="split">
      <section
        className={isOver ? 'card drop' : 'card'} aria-label={text.tabs.files}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
        onDrop={(event) => { event.preventDefault(); setOver(false); const found = droppedFiles(event.dataTransfer); void attempt(async () => send(await found, folder)); }}
      >
        <header>
          <select className="input" style={{ flex: '1 1 60px', width: 60 }} aria-label={text.files.root} value={root} onChange={(event) => { setRoot(event.target.value); setFolder(event.target.value); }}>{[ROOT, '/', '/tmp', '/home'].map((one) => <option key={one}>{one}</option>)}</select>
          <span className="row" style={{ gap: 2 }}>
          <IconButton small label={text.files.upload} icon={Upload} onClick={() => input.current?.click()} />
          <IconButton small label={text.files.make.file.title} icon={FilePlus2} onClick={() => void make('file')} />
          <IconButton small label={text.files.make.dir.title} icon={FolderPlus} onClick={() => void make('dir')} />
          <IconButton small label={text.refresh} icon={RefreshCw} onClick={() => void refresh()} />
          </span>
          <input ref={input} type="file" multiple hidden aria-label={text.files.upload} onChange={(event) => { void send(named(event.target.files ?? []), folder); event.target.value = ''; }} />
        </header>
        <div className="scroll tree"><Tree sandbox={id} path={root} chosen={path} folder={folder} onFolder={setFolder} onFile={(file) => void show(file)} onDrop={(transfer, into) => { const found = droppedFiles(transfer); void attempt(async () => send(await found, into)); }} onGone={(gone) => { if (path === gone || path.startsWith(`${gone}/`)) { isUnsaved.current = false; setPath(''); } void refresh(); }} /></div>
        <Uploads />
        <div className="uploads small muted ellipsis">{text.files.dropHint(folder)}</div>
      </section>
      {path ? <FileView key={path} sandbox={id} path={path} unsaved={isUnsaved} onSaved={() => void refresh(parentOf(path))} /> : <section className="card" aria-label={text.files.view}><Empty icon={FileQuestion} title={text.files.none}><p>{text.files.noneAbout}</p></Empty></section>}
    </div>
  );
}
