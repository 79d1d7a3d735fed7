// SPDX-License-Identifier: Apache-2.0
// Uploads with their progress, which fetch cannot tell.
import { store, useStore } from '../lib/store';
import { ApiError } from './client';

export interface Upload { key: number; name: string; size: number; sent: number }
const uploads = store<Upload[]>([]);
let made = 0;

/** What is under way. */
export const useUploads = () => useStore(uploads);

/** Puts a file where that address says. */
export function upload(url: string, file: File): Promise<void> {
  const key = ++made;
  uploads.set((before) => [...before, { key, name: file.name, size: file.size, sent: 0 }]);
  return new Promise<void>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', url);
    request.upload.onprogress = ({ loaded }) => uploads.set((before) => before.map((one) => (one.key === key ? { ...one, sent: loaded } : one)));
    request.onload = () => {
      if (request.status < 300) { resolve(); return; }
      const error = (() => { try { return JSON.parse(request.responseText).error; } catch { return {}; } })();
      reject(new ApiError(request.status, error.code ?? '', error.message ?? request.statusText, error.remediation ?? null, error.request_id ?? null));
    };
    request.onerror = () => reject(new ApiError(0, 'unreachable', 'The server cannot be reached', null, null));
    request.send(file);
  }).finally(() => uploads.set((before) => before.filter((one) => one.key !== key)));
}
