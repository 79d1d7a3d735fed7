// SPDX-License-Identifier: Apache-2.0
export const join = (folder: string, name: string) => (folder.endsWith('/') ? `${folder}${name}` : `${folder}/${name}`);
export const parentOf = (path: string) => path.slice(0, Math.max(path.lastIndexOf('/'), 1));
export const baseOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);
export const extensionOf = (path: string) => (/\.([^./]+)$/.exec(baseOf(path))?.[1] ?? '').toLowerCase();
