// SPDX-License-Identifier: Apache-2.0
// Directories, each listed when it is opened.
import { useQuery } from '@tanstack/react-query';
import { ChevronDown, ChevronRight, Download, EllipsisVertical, File as FileIcon, Folder, FolderOpen, Link2, PencilLine, Trash2 } from 'lucide-react';
import { useState } from 'react';

import { address, call, listAll } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import type { File as Entry } from '../../../api/schema';
import { ask, askText } from '../../../components/Ask';
import { IconButton } from '../../../components/Button';
import { Menu } from '../../../components/Menu';
import { attempt } from '../../../components/Toasts';
import { bytes } from '../../../lib/format';
import { text } from '../../../text/en';
import { parentOf } from './paths';

interface Props { sandbox: string; path: string; chosen: string; folder: string; onFolder: (path: string) => void; onFile: (path: string) => void; onDrop: (transfer: DataTransfer, into: string) => void; onGone: (path: string) => void }

const SHOWN = 500;
const order = (a: Entry, b: Entry) => Number(b.type === 'dir') - Number(a.type === 'dir') || (a.name ?? '').localeCompare(b.name ?? '');

export function Tree(props: Props) {
  const { sandbox, path } = props;
  const [limit, setLimit] = useState(SHOWN);
  const { data, error } = useQuery({ queryKey: ['files', sandbox, path], queryFn: ({ signal }) => listAll<Entry>(sandboxPath(sandbox, '/files/list'), 'entries', { path }, signal), staleTime: 5000 });
  if (error) return <p className="small bad" style={{ padding: '4px 8px' }}>{error.message}</p>;
  if (!data) return <p className="small muted" style={{ padding: '4px 8px' }}>{text.loading}</p>;
  if (data.length === 0) return <p className="small muted" style={{ padding: '4px 8px' }}>{text.files.empty}</p>;
  const sorted = [...data].sort(order);
  return (
    <ul>
      {sorted.slice(0, limit).map((entry, i) => <Node key={entry.path ?? entry.path_base64 ?? i} entry={entry} {...props} />)}
      {sorted.length > limit && <li><button type="button" className="tree-row muted" onClick={() => setLimit(limit + SHOWN * 4)}>{text.files.more(sorted.length - limit)}</button></li>}
    </ul>
  );
}

function Node({ entry, ...props }: Props & { entry: Entry }) {
  const { chosen, folder, onFolder, onFile, onDrop } = props;
  const [isOpen, setOpen] = useState(() => chosen.startsWith(`${entry.path}/`));
  const { path } = entry;
  if (path === undefined) return <li><span className="tree-row muted" title={text.files.notText}><FileIcon size={15} aria-hidden />{text.files.unreadable}</span></li>;
  const isDir = entry.type === 'dir';
  const Icon = isDir ? (isOpen ? FolderOpen : Folder) : entry.type === 'symlink' ? Link2 : FileIcon;
  const isCurrent = isDir ? folder === path : chosen === path;
  return (
    <li
      onDrop={isDir ? (event) => { event.preventDefault(); event.stopPropagation(); onDrop(event.dataTransfer, path); } : undefined}
      onDragOver={isDir ? (event) => event.preventDefault() : undefined}
    >
      <div className="row" style={{ gap: 0 }}>
        <button type="button" className="tree-row" aria-expanded={isDir ? isOpen : undefined} aria-current={isCurrent ? 'true' : undefined} title={entry.target ? `${path} → ${entry.target}` : path}
          onClick={() => { if (isDir) { setOpen(!isOpen); onFolder(path); } else onFile(path); }}>
          {isDir ? (isOpen ? <ChevronDown size={13} aria-hidden /> : <ChevronRight size={13} aria-hidden />) : <span style={{ width: 13 }} />}
          <Icon size={15} aria-hidden /><span className="ellipsis">{entry.name}</span>{!isDir && <span className="size number">{bytes(entry.size)}</span>}
        </button>
        <Actions {...props} entry={entry} path={path} />
      </div>
      {isDir && isOpen && <Tree {...props} path={path} />}
    </li>
  );
}

function Actions({ sandbox, entry, path, onGone, onFile }: Props & { entry: Entry }) {
  const isDir = entry.type === 'dir';
  const rename = async () => {
    const to = await askText({ title: text.files.rename, about: path, confirm: text.files.renameButton, value: path, label: text.files.newPath });
    if (to && to !== path && await attempt(() => call('POST', sandboxPath(sandbox, '/files/move'), { json: { from: path, to } }))) { onGone(path); if (!isDir) onFile(to); }
  };
  const remove = async () => {
    if (!await ask({ title: text.files.removeTitle(entry.name ?? ''), about: isDir ? text.files.removeDir : text.files.removeFile, confirm: text.verbs.delete, danger: true })) return;
    if (await attempt(() => call('DELETE', sandboxPath(sandbox, '/files'), { query: { path, recursive: isDir || undefined } }), text.files.removed(entry.name ?? ''))) onGone(path);
  };
  const download = () => {
    const link = document.createElement('a');
    link.href = address(sandboxPath(sandbox, isDir ? '/files/archive' : '/files'), { path });
    link.download = isDir ? `${entry.name}.tar` : entry.name ?? '';
    link.click();
  };
  return (
    <Menu trigger={<IconButton small label={text.files.actions(entry.name ?? '')} icon={EllipsisVertical} />} items={[
      { label: isDir ? text.files.downloadTar : text.files.download, icon: Download, act: download },
      { label: text.files.rename, icon: PencilLine, act: () => void rename() },
      { label: text.verbs.delete, icon: Trash2, bad: true, apart: true, act: () => void remove(), disabled: parentOf(path) === '/' },
    ]} />
  );
}
