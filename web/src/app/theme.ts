// SPDX-License-Identifier: Apache-2.0
// Dark or light: what the person chose, else what the system says.
import { remember, remembered, store } from '../lib/store';

export type Choice = 'system' | 'dark' | 'light';
const system = matchMedia('(prefers-color-scheme: light)');

export const themeChoice = store<Choice>(remembered<Choice>('theme', 'system'));
export const theme = store<'dark' | 'light'>('dark');

function apply() {
  const choice = themeChoice.get();
  theme.set(choice === 'system' ? (system.matches ? 'light' : 'dark') : choice);
  document.documentElement.dataset.theme = theme.get();
}

themeChoice.subscribe(() => { remember('theme', themeChoice.get()); apply(); });
system.addEventListener('change', apply);
apply();

/** Of a colour's variable (--accent), for what draws on a canvas. */
export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
