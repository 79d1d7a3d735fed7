// SPDX-License-Identifier: Apache-2.0
// The console as people really have it open: in many tabs at once, over a restart of the daemon, with a thousand sandboxes.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { Console } from './lib/console.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { api, instance, finish } = await suite('console_live', { width: 2 });
const browser = new Chromium();
after(() => browser.close());
const origin = `http://127.0.0.1:${api.port}`;
const console = await Console.open(browser, origin);
const { page } = console;
await console.signIn(api.token);
await console.says('No sandboxes yet');
page.errors.length = 0; // the browser itself tells of the 401 before

/** What a page has asked the server for. */
const asked = (of) => of.evaluate('performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname)');
const CHATTY = 'i=0; while :; do i=$((i + 1)); echo "line $i of the chatter"; sleep 0.02; done';
const made = {};

test('figures of the list come by the stream of events, and nobody asks for them', async () => {
  made.id = (await api.create({ name: 'chatty', idle_timeout_s: null })).id;
  await api.request('POST', `/v1/sandboxes/${made.id}/exec`, { json: { command: CHATTY, background: true, keep_awake: true } });
  await page.shows('document.querySelectorAll(".sandbox-row .cpu .spark path.area").length', 1);
  await page.shows('/\\d (KiB|MiB)/.test(document.querySelector(".sandbox-row .memory")?.innerText)', true);
  assert.deepEqual((await asked(page)).filter((path) => /\/stats|\/events/.test(path)), []);
  console.isCalm();
});

test('eight tabs side by side stay live, while each follows a log that never ends', async () => {
  const tabs = [console];
  for (let i = 1; i < 8; i++) tabs.push(await Console.open(browser, origin));
  for (const tab of tabs) await tab.go(`/sandboxes/${made.id}/processes`);
  // Only one of them is seen at a time, as with a person: each is brought to the front once.
  for (const tab of tabs) {
    await tab.page.send('Page.bringToFront');
    await tab.page.shows('/line \\d+ of the chatter/.test(document.querySelector(".output")?.innerText)', true);
  }
  for (const tab of tabs) await tab.go('/');
  const { id } = await api.create({ name: 'seen-by-all' });
  for (const tab of tabs) {
    await tab.page.send('Page.bringToFront');
    await tab.says('seen-by-all');
  }
  await api.purge(id);
  for (const tab of tabs) {
    await tab.page.send('Page.bringToFront');
    await tab.lacks('seen-by-all');
    tab.isCalm();
    if (tab !== console) await tab.page.send('Page.close');
  }
  await page.send('Page.bringToFront');
});

test('two tabs beside a daemon that restarts both say so, and go on: list, log and terminal', async () => {
  const other = await Console.open(browser, origin);
  await other.go(`/sandboxes/${made.id}/terminal`);
  await other.page.send('Page.bringToFront');
  await other.button('New terminal');
  await other.page.shows('document.querySelector("[data-link]")?.dataset.link', 'live');
  await console.go('/');
  await console.says('1 sandbox, 1 running');
  await instance.terminate();
  await console.says('Reconnecting');
  await other.says('Reconnecting');
  await other.page.shows('document.querySelector("[data-link]")?.dataset.link', 'lost');
  await instance.start(['--api-bind', `127.0.0.1:${api.port}`]);
  for (const tab of [console, other]) await tab.lacks('Reconnecting');
  await other.page.shows('document.querySelector("[data-link]")?.dataset.link', 'live');
  await other.page.evaluate('document.querySelector(".xterm-helper-textarea").focus(), 1');
  await other.type('echo "it is $((6 * 7))"');
  await other.press('Enter');
  await other.page.shows('document.querySelector(".xterm-rows")?.innerText.replaceAll("\\u00a0", " ").includes("it is 42")', true);
  await page.send('Page.bringToFront');
  await api.life(made.id, 'stop');
  await console.says('1 sandbox, 0 running');
  await other.says('This sandbox is stopped');
  await other.page.send('Page.close');
  page.errors.length = 0; // of the time without a server
});

test('a tab whose shared worker never answers is live by a stream of its own', async () => {
  const alone = await Console.open(browser, origin);
  await alone.page.send('Page.addScriptToEvaluateOnNewDocument', { source: 'SharedWorker = class { port = { postMessage() {} }; };' });
  await alone.go('/');
  await alone.page.send('Page.bringToFront');
  const { id } = await api.create({ name: 'seen-alone' });
  await alone.says('seen-alone');
  await api.purge(id);
  await alone.lacks('seen-alone');
  alone.isCalm();
  await alone.page.send('Page.close');
  await page.send('Page.bringToFront');
});

test('a tab of somebody who is signed out elsewhere says so by itself', async () => {
  const other = await Console.open(browser, origin);
  await other.go('/templates');
  await other.says('What sandboxes start from');
  await console.click('button[aria-label^="Signed in as"]');
  await console.button('Sign out');
  await console.says('Sign in to Sandlot');
  await other.says('Sign in to Sandlot');
  await other.page.send('Page.close');
  await console.signIn(api.token);
  await console.says('1 sandbox, 0 running');
  page.errors.length = 0; // the browser itself tells of each 401
});

test('of a thousand sandboxes only those in sight have rows; all are found, and the end of the list is reached', async () => {
  const list = [];
  const count = 1000;
  const one = (await api.get(made.id));
  for (let i = 0; i < count; i++) list.push({ ...one, id: `01m00000000000000000000${String(i).padStart(3, '0')}`.slice(0, 26).padEnd(26, '0'), name: `many-${i}`, status: 'stopped', created_at: new Date(Date.UTC(2026, 0, 1) + i * 1000).toISOString() });
  // Rows cost the daemon a disk each: the list is what it would answer. All else here is the daemon's.
  await page.send('Fetch.enable', { patterns: [{ urlPattern: '*/v1/sandboxes?*' }] });
  const body = Buffer.from(JSON.stringify({ sandboxes: list, next_cursor: null })).toString('base64');
  page.onPaused = ({ requestId }) => page.send('Fetch.fulfillRequest', { requestId, responseCode: 200, responseHeaders: [{ name: 'content-type', value: 'application/json' }], body });
  await console.go('/');
  await console.says('1,000 sandboxes, 0 running');
  assert.equal(await page.evaluate('document.querySelector("[role=table]").getAttribute("aria-rowcount")'), '1001');
  const rows = 'document.querySelectorAll(".sandbox-row:not(.head)").length';
  assert.ok(await page.evaluate(rows) < 80, `${await page.evaluate(rows)} rows`);
  const height = await page.evaluate('document.documentElement.scrollHeight');
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight), 1');
  await console.says('many-0\n');
  assert.ok(await page.evaluate(rows) < 80);
  assert.equal(await page.evaluate('document.documentElement.scrollHeight'), height, 'the page is as long as before');
  // What stays in sight is left alone: rows come and go, and none is moved or written anew.
  await page.evaluate(`window.touched = [], new MutationObserver((list) => touched.push(...list.map(({ type, target }) => type + ' of ' + target.className))).observe(document.querySelector('[role=table]'), { attributeFilter: ['style'], characterData: true, subtree: true }), 1`);
  const first = 'document.querySelector(".sandbox-row:not(.head) .name").innerText';
  for (let i = 1; i <= 10; i++) {
    const before = await page.evaluate(first);
    await page.evaluate('scrollBy(0, -600), 1');
    await until(async () => await page.evaluate(first) !== before, { what: 'other rows are there' });
  }
  assert.deepEqual(await page.evaluate('touched'), []);
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight), 1');
  await console.fill('Name, template, label=value', 'many-77');
  await page.shows(rows, 11);
  await console.says('many-777');
  await page.send('Fetch.disable');
  page.onPaused = null;
  console.isCalm();
});

test('the sandbox goes, and the browser leaves', async () => {
  await api.purge(made.id);
  await console.go('/');
  await console.says('No sandboxes yet');
  await browser.close();
});

finish();
