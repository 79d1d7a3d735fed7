// SPDX-License-Identifier: Apache-2.0
// What was dropped onto a page: files, and all files of directories with their paths below what was dropped.

export interface Dropped { path: string; file: File }

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((resolve, reject) => entry.file(resolve, reject));

/** A directory tells what is in it piece by piece, until a piece is empty. */
async function entriesOf(directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = directory.createReader();
  for (const all: FileSystemEntry[] = []; ;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}

async function below(entry: FileSystemEntry): Promise<Dropped[]> {
  if (entry.isFile) return [{ path: entry.fullPath.replace(/^\//, ''), file: await fileOf(entry as FileSystemFileEntry) }];
  const found: Dropped[] = [];
  for (const one of await entriesOf(entry as FileSystemDirectoryEntry)) found.push(...await below(one));
  return found;
}

/** To be called while the drop is told of: later a browser no longer says what it was. */
export function droppedFiles({ items, files }: DataTransfer): Promise<Dropped[]> {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.() ?? null);
  if (!entries.some((entry) => entry?.isDirectory)) return Promise.resolve(named(files));
  return Promise.all(entries.filter((entry) => entry !== null).map(below)).then((found) => found.flat());
}

/** Files that were chosen; one that was chosen with its directory has its path below that. */
export const named = (files: Iterable<File>): Dropped[] => [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
