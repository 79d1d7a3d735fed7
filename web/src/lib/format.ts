// SPDX-License-Identifier: Apache-2.0
// Numbers and times as a person reads them.
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return '–';
  let value = count;
  let unit = 0;
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${value >= 100 || unit === 0 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** The bytes of "512Mi", 1024 or "1Gi"; null for what is no size. */
export function parseSize(text: string | number | null | undefined): number | null {
  const match = /^(\d+)(Ki|Mi|Gi|Ti|Pi)?$/.exec(String(text ?? '').trim());
  if (!match) return null;
  return Number(match[1]) * 1024 ** (['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'].indexOf(match[2] ?? ''));
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return `${ms < 0.01 ? 0 : ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' });
const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

export function ago(time: string, now = Date.now()): string {
  const s = Math.round((Date.parse(time) - now) / 1000);
  if (Math.abs(s) < 5) return 'now';
  const [unit, size] = STEPS.find(([, step]) => Math.abs(s) >= step) ?? STEPS[3];
  return RELATIVE.format(Math.round(s / size), unit);
}

/** With a capital, as a sentence begins; a word that is a name, as idle_timeout_s or PORT, stays as it is. */
export const sentence = (text: string) => (/^[a-z]+[ ,]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);

// One is made once: toLocaleString() makes one at each call, which costs more than the row of a list that it is for.
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', hour12: false });
const FULL = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
export const clock = (time: string | number) => CLOCK.format(new Date(time));
export const fullTime = (time: string) => FULL.format(new Date(time));
export const plural = (count: number, one: string, many = `${one}s`) => `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
