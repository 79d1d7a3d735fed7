// SPDX-License-Identifier: Apache-2.0
// How every page of the console looks: without a flaw that axe knows, no wider than its window, and still, in both
// themes, from a telephone to a wall; and that the words and figures on it can be seen.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { Console } from './lib/console.mjs';
import { suite } from './lib/suite.mjs';

const full = process.env.E2E_FULL ? test : test.skip;
const { api, finish } = await suite('console_look', { width: 1 });
const browser = new Chromium();
after(() => browser.close());
const console = await Console.open(browser, `http://127.0.0.1:${api.port}`);
const { page } = console;
const made = {};

const TABS = ['', '/terminal', '/run', '/processes', '/files', '/files?path=/workspace/main.py', '/ports', '/network', '/snapshots', '/playground', '/events', '/settings'];
const dialog = async () => { await page.shows('document.querySelector(".dialog") !== null', true); };
const palette = async () => { await console.press('k', 2); await page.shows('document.activeElement?.getAttribute("role")', 'combobox'); };

/** Every page there is, with a dialog, the palette, a page that does not exist and one of a sandbox that does not. */
const pages = () => [
  '/', ['/?create=yes', dialog], '/templates', '/templates/host', '/projects', '/projects/shop', '/launches', '/functions', '/functions/greet', '/snapshots', '/jobs', '/host', '/quotas', '/audit',
  '/tokens', '/secrets', '/connect', '/nowhere', `/sandboxes/${'0'.repeat(26)}`, ...TABS.map((tab) => `/sandboxes/${made.id}${tab}`), ['/connect', palette],
];
const survey = (theme, width) => async () => {
  assert.deepEqual(await console.survey(pages(), { theme, width }), []);
  page.errors = page.errors.filter((error) => !error.includes('0'.repeat(26))); // the browser itself tells of each 404
  console.isCalm();
};

test('the page to sign in has no flaw and fits, in both themes and at three widths', async () => {
  await console.go('/');
  await console.says('Sign in to Sandlot');
  const flaws = [];
  for (const theme of ['dark', 'light']) for (const width of [320, 1280, 3840]) flaws.push(...await console.survey(['/templates'], { theme, width }));
  assert.deepEqual(flaws, []);
  await console.signIn(api.token);
  await console.says('No sandboxes yet');
  page.errors.length = 0; // the browser itself tells of each 401
});

test('dark and 1280 pixels wide every page is without a flaw, in its window and still', async () => {
  made.id = (await api.create({ name: 'web-preview', labels: { team: 'core' }, ports: [3000] })).id;
  await api.tryPut(made.id, '/workspace/main.py', 'print(6 * 7)\n');
  await api.request('POST', `/v1/sandboxes/${made.id}/snapshots`, { json: { name: 'one' } });
  await api.request('POST', `/v1/sandboxes/${made.id}/exec`, { json: { command: 'echo listening; sleep 100000', background: true } });
  await api.request('POST', '/v1/projects', { json: { name: 'shop' } });
  await api.request('PUT', '/v1/projects/shop/files', { query: { path: 'server.js' }, body: '// nothing\n' });
  await api.request('PUT', '/v1/functions/greet', { json: { language: 'python', code: 'def handler(event, context):\n    return event\n' } });
  await console.says('web-preview');
  await survey('dark', 1280)();
});
test('so it is light and 320 pixels wide', survey('light', 320));
for (const [theme, width] of [['light', 1280], ['dark', 320], ['dark', 3840], ['light', 3840]]) full(`so it is ${theme} and ${width} pixels wide`, survey(theme, width));

test('at 1280 pixels no figure is cut, and the list says whose each sandbox is and how old', async () => {
  await page.send('Emulation.setDeviceMetricsOverride', { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false });
  for (const path of ['/host', `/sandboxes/${made.id}`]) {
    await console.follow(path);
    await page.shows('document.querySelectorAll(".figure .value").length > 3 && [...document.querySelectorAll(".figure .value")].every((one) => one.innerText !== "–")', true);
    assert.deepEqual(await page.evaluate('[...document.querySelectorAll(".figure .value")].filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight).map((one) => one.innerText)'), [], path);
  }
  await console.follow('/');
  await page.shows('/^\\S+ · \\S/.test(document.querySelector(".sandbox-row .aside")?.innerText ?? "")', true);
  await page.send('Emulation.clearDeviceMetricsOverride');
});

test('at 320 pixels rows of a table are cards that hide nothing, and the tab that is shown is in sight', async () => {
  await page.send('Emulation.setDeviceMetricsOverride', { width: 320, height: 700, deviceScaleFactor: 1, mobile: true });
  await console.go('/tokens');
  await page.shows('document.querySelector(".table td[data-column=Expires]") !== null', true);
  assert.deepEqual(await page.evaluate('[...document.querySelectorAll(".table-wrap")].filter((one) => one.scrollWidth > one.clientWidth).length'), 0);
  assert.match(await page.evaluate('getComputedStyle(document.querySelector(".table td[data-column=Expires]"), "::before").content'), /attr\(data-column\)|Expires/);
  await console.go(`/sandboxes/${made.id}/settings`);
  await page.shows('(() => { const at = document.querySelector(".tabs [aria-current]")?.getBoundingClientRect(); return at !== undefined && at.left >= 0 && at.right <= 320; })()', true);
  await page.send('Emulation.clearDeviceMetricsOverride');
});

test('on a wall the page is enlarged and still no higher than its window', async () => {
  await page.send('Emulation.setDeviceMetricsOverride', { width: 3840, height: 2160, deviceScaleFactor: 1, mobile: false });
  await console.go(`/sandboxes/${made.id}/terminal`);
  await page.shows('document.querySelector(".empty") !== null', true);
  assert.ok(await page.evaluate('document.documentElement.scrollHeight') <= 2160);
  assert.ok(await page.evaluate('document.querySelector(".main").getBoundingClientRect().width') > 3000);
  await page.send('Emulation.clearDeviceMetricsOverride');
});

test('on a wall a menu opens at its button', async () => {
  for (const width of [2560, 3840]) {
    await page.send('Emulation.setDeviceMetricsOverride', { width, height: Math.round(width * 0.6), deviceScaleFactor: 1, mobile: false });
    await console.go('/connect');
    await console.click('button[aria-label^="Signed in as"]');
    await page.shows(`(() => { const [menu, button] = ['.menu', 'button[aria-label^="Signed in as"]'].map((one) => document.querySelector(one)?.getBoundingClientRect());
      return menu && [menu.right <= innerWidth, Math.abs(menu.right - button.right) < 20, menu.top - button.bottom > 0 && menu.top - button.bottom < 20]; })()`, [true, true, true]);
    if (process.env.E2E_SHOT) await page.screenshot(`${process.env.E2E_SHOT}-${width}.png`);
    await console.press('Escape');
  }
  await page.send('Emulation.clearDeviceMetricsOverride');
});

test('a terminal that is open is there in a window of another size', async () => {
  await console.go(`/sandboxes/${made.id}/terminal`);
  await console.button('New terminal');
  await page.shows('document.querySelector("[data-link]")?.dataset.link', 'live');
  for (const width of [320, 3840, 768]) {
    await page.send('Emulation.setDeviceMetricsOverride', { width, height: 700, deviceScaleFactor: 1, mobile: width < 500 });
    await console.go(`/sandboxes/${made.id}/terminal`);
    await page.shows('document.querySelector("[data-link]")?.dataset.link', 'live');
    console.isCalm();
  }
  await page.send('Emulation.clearDeviceMetricsOverride');
});

test('an address with a sign that means nothing is told as one that is not there', async () => {
  await console.go('/sandboxes/50%25');
  await page.shows('document.querySelector(".empty h2")?.innerText ?? document.body.innerText.slice(0, 100)', 'There is no such sandbox');
  page.errors.length = 0; // the browser itself tells of the 404
});

test('the borders of fields stand out from what is around them, three to one, in both themes', async () => {
  const faint = `(() => {
    const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((one) => one / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const around = (one) => { for (let at = one.parentElement; at; at = at.parentElement) { const { backgroundColor } = getComputedStyle(at); if (!backgroundColor.startsWith('rgba')) return backgroundColor; } };
    return [...document.querySelectorAll('.dialog .input:not(:focus), .sandbox-row input')].map((one) => { const [a, b] = [getComputedStyle(one).borderTopColor, around(one)].map(light); return { what: one.outerHTML.slice(0, 80), ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) }; });
  })()`;
  for (const theme of ['dark', 'light']) {
    await console.go('/?create=yes');
    await console.theme(theme);
    await page.shows('document.querySelectorAll(".dialog .input").length > 5 && document.querySelector(".sandbox-row input") !== null', true);
    const seen = await page.evaluate(faint);
    assert.ok(seen.length > 6);
    assert.deepEqual(seen.filter(({ ratio }) => ratio < 3), [], theme);
  }
});

test('who asks for less motion sees none: what would go on for ever happens once', async () => {
  await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-reduced-motion', value: 'reduce' }] });
  for (const path of ['/', '/docs/']) {
    await console.go(path);
    await page.shows('document.body !== null && document.querySelector("h1, .opblock-tag") !== null', true);
    const endless = await page.evaluate(`(() => {
      const add = (name) => { const one = document.createElement('div'); one.className = name; document.body.append(one); return one; };
      const moving = [...['bone', 'spinner', 'dot info', 'loading'].map(add), ...document.querySelectorAll('*')].filter((one) => { const { animationIterationCount, animationDuration } = getComputedStyle(one); return animationIterationCount !== '1' || !/^0?\\.?0*1m?s$/.test(animationDuration); });
      return moving.map((one) => one.className);
    })()`);
    assert.deepEqual(endless, [], path);
  }
  await page.send('Emulation.setEmulatedMedia', { features: [] });
});

test('a sandbox tells its owner, that it is ready, why it is awake, and how it ended before it ran again', async () => {
  await console.go(`/sandboxes/${made.id}`);
  await console.says('default / ');
  await console.says('Ready');
  await console.says('awake because');
  await console.lacks('Last end:');
  await api.life(made.id, 'stop');
  await console.says('The operator stopped it');
  await api.life(made.id, 'start');
  await console.says('Last end:');
  const { termination, last_termination: last } = await api.get(made.id);
  assert.equal(termination, null);
  assert.equal(last.reason, 'operator');
  await page.shows('[...document.querySelectorAll(".chart")].map((one) => one.getAttribute("aria-label").replace(/ .*limit /, " limit ")).filter((one) => one.includes("limit")).length', 3);
  console.isCalm();
});

test('a quota that is changed keeps what the form does not show, and the limit of projects', async () => {
  const { organization, user } = (await api.request('GET', '/v1/quotas')).json.quotas.find((quota) => quota.user);
  const path = `/v1/quotas/${organization}/${user}`;
  const before = await api.request('PUT', path, { json: { running: 50, projects: '3Gi', dangerous_commands: 'confirm' } });
  assert.equal(before.status, 200, before.text);
  await console.go('/quotas');
  await console.says('of 3 GiB');
  await console.click('.card:nth-of-type(2) button', 'Change');
  await console.fill('Running', '40');
  await console.click('.dialog footer button', 'Save');
  await page.shows('document.querySelector(".dialog") === null', true);
  await console.says('of 40');
  const { limits, dangerous_commands: danger } = (await api.request('GET', '/v1/quotas')).json.quotas.find((quota) => quota.user);
  assert.deepEqual([limits.running, limits.projects, danger], [40, '3Gi', 'confirm']);
  await api.request('DELETE', path);
  console.isCalm();
});

test('HTML that code shows has the colours of the theme', async () => {
  await console.theme('dark');
  await console.go(`/sandboxes/${made.id}/playground`);
  await page.shows('document.querySelector(".cm-content") !== null', true);
  await page.evaluate(`localStorage.setItem('sandlot.code.${made.id}.python', ${JSON.stringify(JSON.stringify('class Shown:\n    def _repr_html_(self):\n        return "<b>bold</b>"\n\nShown()\n'))}), 1`);
  await page.send('Page.reload');
  await page.shows('document.querySelector(".cm-content")?.innerText.includes("Shown")', true);
  await console.click('.tab-view button', 'Run');
  await page.shows('document.querySelector(".results iframe")?.srcdoc.includes("color-scheme:dark")', true);
  assert.doesNotMatch(await page.evaluate('document.querySelector(".results iframe").srcdoc'), /background:#fff/);
  console.isCalm();
});

test('the sandbox goes, and the browser leaves', async () => {
  await api.purge(made.id);
  for (const snapshot of (await api.request('GET', '/v1/snapshots')).json.snapshots) await api.request('DELETE', `/v1/snapshots/${snapshot.id}`);
  await api.request('DELETE', '/v1/functions/greet');
  await api.request('DELETE', '/v1/projects/shop');
  await browser.close();
});

finish();
