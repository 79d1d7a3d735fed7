// SPDX-License-Identifier: Apache-2.0
// Pictures of every page of the console for the guides: a daemon of its own with a few sandboxes
// (tests/e2e/lib/showcase.mjs), looked at in a real browser. They have 256 colours, so that they are small (python3-pil).
// Usage: screenshots.mjs [DIRECTORY] [NAME...]      (docs/pictures, all)
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { Chromium } from '../tests/e2e/lib/chromium.mjs';
import { Console } from '../tests/e2e/lib/console.mjs';
import { Instance } from '../tests/e2e/lib/instance.mjs';
import { showcase } from '../tests/e2e/lib/showcase.mjs';

const [target = 'docs/pictures', ...chosen] = process.argv.slice(2);
const SETTLE_MS = 9000; // for a few points in the charts
const SMALLER = 'import sys\nfrom PIL import Image\nImage.open(sys.argv[1]).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(sys.argv[1], optimize=True)\n';

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

async function command(console) {
  await console.fill('Command', 'python3 project/main.py project/days.json && df -h /workspace');
  await console.press('Enter');
  await console.says('exit 0');
}

async function terminal(console) {
  await console.button('New terminal');
  await console.page.shows('document.querySelector("[data-link]")?.dataset.link', 'live');
  await delay(1000);
  await console.type('cd project && ls -l && python3 main.py days.json');
  await console.press('Enter');
}

async function palette(console) {
  await console.press('k', 2);
  await console.page.shows('document.activeElement?.getAttribute("role")', 'combobox');
  await console.type('web');
}

const instance = new Instance('screenshots', {});
const browser = new Chromium();
try {
  await instance.start();
  const { web, agent, stack, launch } = await showcase(instance.api);
  const console = await Console.open(browser, `http://127.0.0.1:${instance.api.port}`);
  const { page } = console;
  const size = (width, height) => page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 500 });
  const picture = async (name) => {
    const file = path.join(target, `console-${name}.png`);
    await page.screenshot(file);
    execFileSync('/usr/bin/python3', ['-c', SMALLER, file]);
  };
  const wanted = (name) => chosen.length === 0 || chosen.includes(name);
  const at = `/sandboxes/${web.id}`;
  // Charts come last: by then they have a past.
  const PICTURES = [
    ['create', 'dark', '/?create=yes', 800], ['palette', 'dark', '/connect', 500, palette],
    ['files', 'dark', `${at}/files?path=/workspace/project/main.py`, 2500], ['terminal', 'dark', `${at}/terminal`, 2500, terminal],
    ['run', 'dark', `${at}/run`, 500, command], ['processes', 'dark', `${at}/processes`, 1500], ['ports', 'dark', `${at}/ports`, 1500],
    ['network', 'dark', `/sandboxes/${agent.id}/network`, 1500], ['members', 'dark', `/sandboxes/${stack.id}/members`, 2000], ['snapshots', 'dark', `${at}/snapshots`, 2000],
    ['notebook', 'dark', `${at}/playground`, 1000, (one) => figure(one, web.id)], ['events', 'dark', `${at}/events`, 1000], ['settings', 'dark', `${at}/settings`, 1000],
    ['templates', 'dark', '/templates', 500], ['template', 'dark', '/templates/small', 1000], ['projects', 'dark', '/projects', 500], ['project', 'dark', '/projects/shop', 1500],
    ['launches', 'dark', '/launches', 1500], ['launch', 'dark', `/launches/${launch.id}`, SETTLE_MS], ['functions', 'dark', '/functions', 500], ['function', 'dark', '/functions/greet', 1500],
    ['jobs', 'dark', '/jobs', 500], ['tokens', 'dark', '/tokens', 500], ['secrets', 'dark', '/secrets', 500], ['connect', 'dark', '/connect', 500], ['docs', 'dark', '/docs/', 3000],
    ['sandbox', 'dark', at, SETTLE_MS], ['sandboxes', 'dark', '/', SETTLE_MS],
    ['light', 'light', '/', SETTLE_MS], ['host', 'light', '/host', 2500], ['owners', 'light', '/quotas', 800], ['audit', 'light', '/audit', 800], ['all-snapshots', 'light', '/snapshots', 800],
    ['phone', 'dark', at, SETTLE_MS, null, [360, 720]],
  ];
  await size(1280, 800);
  await console.go('/');
  await console.says('Sign in to Sandlot');
  if (wanted('sign-in')) await picture('sign-in');
  await console.signIn(instance.api.token);
  let shown = '';
  for (const [name, theme, where, settle_ms, act, window = [1280, 800]] of PICTURES.filter(([one]) => wanted(one))) {
    await size(...window);
    if (theme !== shown) await console.theme(shown = theme);
    await console.go(where);
    await page.shows('(document.querySelector("h1") !== null || document.querySelector(".opblock-tag") !== null) && document.querySelector(".bone") === null', true);
    await act?.(console);
    await delay(settle_ms);
    await picture(name);
  }
  await instance.shutdown();
} finally {
  await browser.close();
  instance.destroy();
}
