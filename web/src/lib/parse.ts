// SPDX-License-Identifier: Apache-2.0
// What people type into forms, and addresses.

/** Lines that are not empty. */
export const lines = (text: string) => text.split('\n').map((line) => line.trim()).filter(Boolean);

/** NAME=value, one a line. */
export const pairs = (text: string) => Object.fromEntries(lines(text).map((line) => {
  const at = line.indexOf('=');
  return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1)];
}));

export const fromPairs = (map: Record<string, string>) => Object.entries(map).map(([key, value]) => `${key}=${value}`).join('\n');

/** A part of an address as what it stands for; one that stands for nothing, as it is. */
export function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
