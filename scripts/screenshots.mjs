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

/** Two cells of which the second shows a table, with what the first defined. */
async function figure({ page }, id) {
  const keep = (name, value) => page.evaluate(`localStorage.setItem('sandlot.${name}', ${JSON.stringify(JSON.stringify(value))}), 1`);
  const { id: context } = (await instance.api.request('POST', `/v1/sandboxes/${id}/contexts`, { json: { language: 'python' } })).json;
  await keep(`code.${id}.python`, 'days = {"Monday": (3.5, 9.1), "Tuesday": (4.0, 11.8), "Wednesday": (2.8, 12.4)}\nlen(days)\n');
  await keep(`code.${id}.python.1`, 'class Table:\n    def _repr_html_(self):\n        rows = "".join(f"<tr><td>{d}</td><td>{a}</td><td>{b}</td></tr>" for d, (a, b) in days.items())\n        return f"<table><tr><th>Day</th><th>Low</th><th>High</th></tr>{rows}</table>"\n\nTable()\n');
  await keep(`cells.${id}.python`, [0, 1]);
  await keep(`context.${id}.python`, context);
  await page.send('Page.reload');
  await page.shows('document.querySelectorAll(".cell .cm-content").length', 2);
  await page.shows('document.querySelector("select[aria-label=\\"Where it runs\\"]")?.value', context);
  for (const cell of [1, 2]) {
    await page.evaluate(`document.querySelectorAll('.cell')[${cell - 1}].querySelector('.button.primary').click(), 1`);
    await page.shows('document.querySelectorAll(".cell .badge.ok").length', cell);
  }
}

const instance = new Instance('screenshots', {});
const browser = new Chromium();
try {
  await instance.start();
  const { web, launch } = await showcase(instance.api);
  const console = await Console.open(browser, `http://127.0.0.1:${instance.api.port}`);
  const { page } = console;
  await page.send('Emulation.setDeviceMetricsOverride', { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false });
  await console.signIn(instance.api.token);
  const at = `/sandboxes/${web.id}`;
  const PICTURES = [
    ['console-sandboxes', 'dark', '/', SETTLE_MS],
    ['console-sandbox', 'dark', at, SETTLE_MS],
    ['console-files', 'dark', `${at}/files?path=/workspace/project/main.py`, 2500],
    ['console-launch', 'dark', `/launches/${launch.id}`, SETTLE_MS],
    ['console-notebook', 'dark', `${at}/playground`, 1000],
    ['console-docs', 'dark', '/docs/', 3000],
    ['console-light', 'light', '/', SETTLE_MS],
    ['console-host', 'light', '/host', 2500],
  ];
  let shown = '';
  for (const [name, theme, where, settle_ms] of PICTURES) {
    if (theme !== shown) await console.theme(shown = theme);
    await console.go(where);
    await page.shows('(document.querySelector("h1") !== null || document.querySelector(".opblock-tag") !== null) && document.querySelector(".bone") === null', true);
    if (name === 'console-notebook') await figure(console, web.id);
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
