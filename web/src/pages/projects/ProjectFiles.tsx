// SPDX-License-Identifier: Apache-2.0
// The files of a project: several are uploaded at once with their progress, an archive in one go; each can be downloaded,
// moved and removed.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Download, EllipsisVertical, FileUp, PackageOpen, PencilLine, Trash2, Upload } from 'lucide-react';
import { useRef, useState } from 'react';

import { address, call, listAll, part } from '../../api/client';
import type { Project, ProjectFile, ProjectImport } from '../../api/schema';
import { upload } from '../../api/upload';
import { ask, askText } from '../../components/Ask';
import { Ago, Card, Empty, Loaded, TableWrap } from '../../components/Basics';
import { Button, IconButton } from '../../components/Button';
import { SearchBox } from '../../components/Field';
import { Menu } from '../../components/Menu';
import { attempt, say } from '../../components/Toasts';
import { Uploads } from '../../components/Uploads';
import { droppedFiles, named, type Dropped } from '../../lib/dropped';
import { bytes } from '../../lib/format';
import { text } from '../../text/en';

const SHOWN = 500;
const ARCHIVES = '.tar,.tar.gz,.tgz,.zip';

/** So many are uploaded at a time: a browser has six connections to a server, and the page wants some itself. */
const AT_A_TIME = 4;

export function ProjectFiles({ project }: { project: Project }) {
  const path = `/v1/projects/${part(project.id)}`;
  const query = useQuery({ queryKey: ['projectFiles', project.id], queryFn: ({ signal }) => listAll<ProjectFile>(`${path}/files`, 'files', {}, signal) });
  const queries = useQueryClient();
  const chosen = useRef<HTMLInputElement>(null);
  const archive = useRef<HTMLInputElement>(null);
  const [search, setSearch] = useState('');
  const [isOver, setOver] = useState(false);
  const refresh = () => Promise.all(['projectFiles', 'project', 'projects', 'detection'].map((key) => queries.invalidateQueries({ queryKey: [key] })));

  const send = async (files: Dropped[]) => {
    let count = 0;
    const rest = files.values();
    const worker = async () => { for (const { path: name, file } of rest) if (await attempt(() => upload(address(`${path}/files`, { path: name }), file))) count++; };
    await Promise.all(Array.from({ length: AT_A_TIME }, worker));
    if (count) say(text.projects.uploaded(count));
    await refresh();
  };
  const unpack = async (file: File) => {
    await attempt(async () => { const { files } = await call<ProjectImport>('PUT', `${path}/archive`, { body: file }); say(text.projects.uploaded(files)); });
    await refresh();
  };
  const move = async (file: ProjectFile) => {
    const to = await askText({ title: text.files.rename, about: file.path, confirm: text.files.renameButton, value: file.path, label: text.files.newPath });
    if (to && to !== file.path && await attempt(() => call('PATCH', `${path}/files/${part(file.id)}`, { json: { path: to } }))) await refresh();
  };
  const remove = async (file: ProjectFile) => {
    if (!await ask({ title: text.files.removeTitle(file.path), about: text.projects.removeFile, confirm: text.verbs.delete, danger: true })) return;
    if (await attempt(() => call('DELETE', `${path}/files/${part(file.id)}`), text.files.removed(file.path))) await refresh();
  };
  const fetchFile = (file: ProjectFile) => {
    const link = document.createElement('a');
    link.href = `${path}/files/${part(file.id)}`;
    link.download = file.path.split('/').at(-1)!;
    link.click();
  };
  const items = (file: ProjectFile) => [
    { label: text.files.download, icon: Download, act: () => fetchFile(file) },
    { label: text.files.rename, icon: PencilLine, act: () => void move(file) },
    { label: text.verbs.delete, icon: Trash2, bad: true, apart: true, act: () => void remove(file) },
  ];

  return (
    <section
      className={isOver ? 'drop project-files' : 'project-files'} aria-label={text.tabs.files}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(event) => { event.preventDefault(); setOver(false); const found = droppedFiles(event.dataTransfer); void attempt(async () => send(await found)); }}
    >
      <Card title={text.tabs.files} actions={<>
        <Button small icon={PackageOpen} onClick={() => archive.current?.click()}>{text.projects.unpack}</Button>
        <Button small kind="primary" icon={Upload} onClick={() => chosen.current?.click()}>{text.files.upload}</Button>
        <input ref={chosen} type="file" multiple hidden aria-label={text.files.upload} onChange={(event) => { void send(named(event.target.files ?? [])); event.target.value = ''; }} />
        <input ref={archive} type="file" hidden accept={ARCHIVES} aria-label={text.projects.unpack} onChange={(event) => { const [file] = event.target.files ?? []; if (file) void unpack(file); event.target.value = ''; }} />
      </>}>
        <Loaded query={query}>
          {(files) => (files.length === 0 ? <Empty icon={FileUp} title={text.projects.empty}><p>{text.projects.emptyAbout}</p></Empty> : (
            <>
              <div className="body"><SearchBox label={text.projects.searchFiles} value={search} onText={setSearch} /></div>
              <FileTable files={files.filter((file) => file.path.toLowerCase().includes(search.toLowerCase()))} items={items} />
            </>
          ))}
        </Loaded>
        <Uploads />
        <div className="uploads small muted">{text.projects.dropHint}</div>
      </Card>
    </section>
  );
}

function FileTable({ files, items }: { files: ProjectFile[]; items: (file: ProjectFile) => Parameters<typeof Menu>[0]['items'] }) {
  if (files.length === 0) return <p className="body muted">{text.projects.noMatch}</p>;
  return (
    <TableWrap isSlim>
      <table className="table">
        <thead><tr><th>{text.path}</th><th className="end">{text.size}</th><th className="wide-only">{text.kind}</th><th className="wide-only">{text.projects.uploadedAt}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
        <tbody>{files.slice(0, SHOWN).map((file) => (
          <tr key={file.id}>
            <td className="mono break">{file.path}</td><td className="end number nowrap">{bytes(file.size)}</td><td className="small muted wide-only">{file.mime_type}</td><td className="wide-only"><Ago time={file.created_at} /></td>
            <td className="actions"><Menu trigger={<IconButton small label={text.files.actions(file.path)} icon={EllipsisVertical} />} items={items(file)} /></td>
          </tr>
        ))}</tbody>
      </table>
      {files.length > SHOWN && <p className="body small muted">{text.projects.moreFiles(SHOWN)}</p>}
    </TableWrap>
  );
}
