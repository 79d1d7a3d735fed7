// SPDX-License-Identifier: Apache-2.0
// Pictures of the console for the guides: a daemon of its own with a few sandboxes (tests/e2e/lib/showcase.mjs), looked at
// in a real browser. Usage: screenshots.mjs [DIRECTORY]      (docs/pictures)
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { Chromium } from '../tests/e2e/lib/chromium.mjs';
import { Console } from '../tests/e2e/lib/console.mjs';
import { Instance } from '../tests/e2e/lib/instance.mjs';
import { showcase } from '../tests/e2e/lib/showcase.mjs';

const target = process.argv[2] ?? 'docs/pictures';
const SETTLE_MS = 9000; // for a few points in the charts

const instance = new Instance('screenshots', {});
const browser = new Chromium();
try {
  await instance.start();
  const { web } = await showcase(instance.api);
  const console = await Console.open(browser, `http://127.0.0.1:${instance.api.port}`);
  const { page } = console;
  await page.send('Emulation.setDeviceMetricsOverride', { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false });
  await console.signIn(instance.api.token);
  const at = `/sandboxes/${web.id}`;
  const PICTURES = [
    ['console-sandboxes', 'dark', '/', SETTLE_MS],
    ['console-sandbox', 'dark', at, SETTLE_MS],
    ['console-files', 'dark', `${at}/files?path=/workspace/project/main.py`, 2500],
    ['console-light', 'light', '/', SETTLE_MS],
  ];
  let shown = '';
  for (const [name, theme, where, settle_ms] of PICTURES) {
    if (theme !== shown) await console.theme(shown = theme);
    await console.go(where);
    await page.shows('document.querySelector("h1") !== null && document.querySelector(".bone") === null', true);
    await delay(settle_ms);
    await page.screenshot(path.join(target, `${name}.png`));
  }
  await console.theme('dark');
  await console.go(`${at}/terminal`);
  await console.button('New terminal');
  await page.shows('document.querySelector("[data-link]")?.dataset.link', 'live');
  await delay(1000);
  await console.type('cd project && ls -l && python3 main.py days.json');
  await console.press('Enter');
  await delay(2500);
  await page.screenshot(path.join(target, 'console-terminal.png'));
  await instance.shutdown();
} finally {
  await browser.close();
  instance.destroy();
}
