// SPDX-License-Identifier: Apache-2.0
// The ways in which people look at the console: both themes and three widths. The tests of a file take turns among them;
// `make test-full` runs the files again, each time beginning with another (E2E_VIEW), so that each flow was seen in all.
import { beforeEach } from 'node:test';

export const VIEWS = [
  { theme: 'dark', width: 1280, height: 800 }, { theme: 'light', width: 320, height: 700 }, { theme: 'dark', width: 3840, height: 2160 },
  { theme: 'light', width: 1280, height: 800 }, { theme: 'dark', width: 320, height: 700 }, { theme: 'light', width: 3840, height: 2160 },
];

/** Before each test of the file `look` is given the next view; it does nothing once its browser is gone. */
export function takeTurns(look) {
  let turn = Number(process.env.E2E_VIEW ?? 0);
  beforeEach(async (t) => {
    const view = VIEWS[turn++ % VIEWS.length];
    t.diagnostic?.(`looked at ${view.theme}, ${view.width} pixels wide`);
    await look(view);
  });
}
