// SPDX-License-Identifier: Apache-2.0
// Files: a tree on the left, the chosen one on the right. Things dropped onto a directory are uploaded into it.
import { useQueryClient } from '@tanstack/react-query';
import { FolderPlus, FilePlus2, FileQuestion, RefreshCw, Upload } from 'lucide-react';
import { useRef, useState } from 'react';

import { address, call } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { Sandbox } from '../../../api/schema';
import { upload } from '../../../api/upload';
import { askText } from '../../../components/Ask';
import { Empty } from '../../../components/Basics';
import { IconButton } from '../../../components/Button';
import { attempt } from '../../../components/Toasts';
import { Uploads } from '../../../components/Uploads';
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
  const id = sandbox.id;
  const refresh = (at?: string) => queries.invalidateQueries({ queryKey: at ? ['files', id, at] : ['files', id] });

  const send = async (files: Iterable<File>, into: string) => {
    for (const file of files) if (await attempt(() => upload(address(sandboxPath(id, '/files'), { path: join(into, file.name) }), file))) void refresh(into);
  };
  const make = async (kind: 'file' | 'dir') => {
    const name = await askText({ ...text.files.make[kind], about: text.files.makeIn(folder), confirm: text.files.makeButton, value: kind === 'file' ? 'untitled.txt' : 'folder', label: text.name });
    if (!name) return;
    const full = join(folder, name);
    const done = await attempt(() => (kind === 'dir' ? call('POST', sandboxPath(id, '/files/mkdir'), { json: { path: full } }) : call('PUT', sandboxPath(id, '/files'), { query: { path: full }, body: '', headers: { 'if-none-match': '*' } })));
    if (!done) return;
    void refresh();
    if (kind === 'file') setPath(full);
  };
  return (
    <div className="split">
      <section
        className={isOver ? 'card drop' : 'card'} aria-label={text.tabs.files}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
        onDrop={(event) => { event.preventDefault(); setOver(false); void send(event.dataTransfer.files, folder); }}
      >
        <header>
          <select className="input" style={{ flex: '1 1 90px', width: 'auto' }} aria-label={text.files.root} value={root} onChange={(event) => { setRoot(event.target.value); setFolder(event.target.value); }}>{[ROOT, '/', '/tmp', '/home'].map((one) => <option key={one}>{one}</option>)}</select>
          <IconButton small label={text.files.upload} icon={Upload} onClick={() => input.current?.click()} />
          <IconButton small label={text.files.make.file.title} icon={FilePlus2} onClick={() => void make('file')} />
          <IconButton small label={text.files.make.dir.title} icon={FolderPlus} onClick={() => void make('dir')} />
          <IconButton small label={text.refresh} icon={RefreshCw} onClick={() => void refresh()} />
          <input ref={input} type="file" multiple hidden aria-label={text.files.upload} onChange={(event) => { void send([...event.target.files ?? []], folder); event.target.value = ''; }} />
        </header>
        <div className="scroll tree"><Tree sandbox={id} path={root} chosen={path} folder={folder} onFolder={setFolder} onFile={(file) => { setPath(file); setFolder(parentOf(file)); }} onDropFiles={(files, into) => void send(files, into)} onGone={(gone) => { if (path === gone || path.startsWith(`${gone}/`)) setPath(''); void refresh(); }} /></div>
        <Uploads />
        <div className="uploads small muted ellipsis">{text.files.dropHint(folder)}</div>
      </section>
      {path ? <FileView key={path} sandbox={id} path={path} onSaved={() => void refresh(parentOf(path))} /> : <section className="card" aria-label={text.files.view}><Empty icon={FileQuestion} title={text.files.none}><p>{text.files.noneAbout}</p></Empty></section>}
    </div>
  );
}
