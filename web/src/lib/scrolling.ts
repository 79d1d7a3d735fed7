// SPDX-License-Identifier: Apache-2.0
// While the page is scrolled its frames belong to that: what only tells figures anew waits until it is still.

/** So long after the last step of scrolling the page counts as still. */
const REST_MS = 150;
let last_ms = -Infinity;
let timer: ReturnType<typeof setTimeout> | undefined;
const waiting = new Set<() => void>();

// Of parts that scroll by themselves, as a log that is followed does all the time, the window hears nothing.
addEventListener('scroll', () => { last_ms = performance.now(); }, { passive: true });

function look(): void {
  const rest_ms = last_ms + REST_MS - performance.now();
  if (rest_ms > 0) {
    timer = setTimeout(look, rest_ms);
    return;
  }
  timer = undefined;
  const acts = [...waiting];
  waiting.clear();
  acts.forEach((act) => act());
}

/** Acts at once, or as soon as the page is still; an act that waits already does so once. */
export function whenStill(act: () => void): void {
  if (performance.now() - last_ms > REST_MS) {
    act();
    return;
  }
  waiting.add(act);
  timer ??= setTimeout(look, REST_MS);
}
