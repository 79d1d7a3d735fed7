// SPDX-License-Identifier: Apache-2.0
// Amounts of quotas: sizes and numbers.
import type { Amounts } from '../../api/schema';
import { bytes, parseSize } from '../../lib/format';

export const SIZES = new Set<keyof Amounts>(['memory', 'disk', 'images', 'projects']);
export const shown = (key: keyof Amounts, value: unknown) => (value === null || value === undefined ? '∞' : SIZES.has(key) ? bytes(parseSize(value as string)) : String(value));
export const amount = (key: keyof Amounts, value: unknown) => (value === null || value === undefined ? null : SIZES.has(key) ? parseSize(value as string) : Number(value));
