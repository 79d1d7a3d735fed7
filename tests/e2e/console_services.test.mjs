// SPDX-License-Identifier: Apache-2.0
// The pages of the console for what runs beside or without a sandbox of one's own: functions, members, pools.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { Console } from './lib/console.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { suite } from './lib/suite.mjs';
import { takeTurns } from './lib/views.mjs';
import { until } from './lib/wait.mjs';

const { api, finish } = await suite('console_services', { args: ['--pool-reserve', '0', '--memory-reserve', '0'], width: 1 });
const browser = new Chromium();
after(() => browser.close());
const console = await Console.open(browser, `http://127.0.0.1:${api.port}`);
const { page } = console;
takeTurns((view) => console.look(view));
await console.signIn(api.token);
await console.says('No sandboxes yet');
page.errors.length = 0; // the browser itself tells of the 401 before
const made = {};

test('a function is deployed, called with an event, and its calls are kept', async () => {
  await console.go('/functions');
  await console.says('No functions yet');
  await console.button('New function');
  await console.fill('Name', 'hello');
  await console.click('.dialog footer button', 'Deploy');
  await page.shows('location.pathname', '/functions/hello');
  await console.says('Nobody has called it');
  await console.fill('Event', '{"name": "<img src=x onerror=window.canary=1>"}');
  await console.click('.card button', 'Call');
  await page.shows('JSON.parse(document.querySelector(".function-answer")?.innerText ?? "null")', { hello: '<img src=x onerror=window.canary=1>' });
  await page.shows('document.querySelectorAll("tbody tr").length', 1);
  await console.click('tbody button', 'Open');
  await page.shows('document.querySelectorAll(".function-answer").length', 2);
  assert.equal((await api.request('GET', '/v1/executions', { query: { function: 'hello' } })).json.executions[0].status, 'succeeded');
  assert.equal(await page.evaluate('window.canary ?? null'), null);
  console.isCalm();
});

test('what is no JSON is not sent; a handler that raises says so; a new version takes over, the old one stays', async () => {
  await console.fill('Event', '{');
  await console.says('This is not JSON.');
  const put = await api.request('PUT', '/v1/functions/hello', { json: { language: 'python', code: 'def handler(event, context):\n    raise ValueError("not today")\n' } });
  assert.equal(put.status, 200, put.text);
  await console.go('/functions/hello');
  await console.says('Version 2, Python');
  await console.fill('Event', '{}');
  await console.click('.card button', 'Call');
  await console.says('not today');
  await console.go('/functions/hello?version=1');
  await console.says('Version 1, Python');
  await console.button('New version');
  await console.fill('Handler', 'handler');
  await console.click('.dialog footer button', 'Deploy');
  await console.says('Version 3, Python');
  await console.click('.card button', 'Call');
  await page.shows('JSON.parse(document.querySelector(".function-answer")?.innerText ?? "null")', { hello: 'you' });
  page.errors.length = 0; // the browser may tell of a call that failed
});

test('a sandbox shows its members with their health and log, and runs commands in one', async () => {
  const { id } = await api.create({ name: 'stack', members: [{ role: 'cache', template: 'host', port: 6379, command: 'echo "the cache is up"; exec sleep 1000', health: { command: 'true' } }] });
  made.id = id;
  await console.go(`/sandboxes/${id}/members`);
  await page.shows('[...document.querySelectorAll("tbody tr")].map((row) => row.innerText.replace(/\\s+/g, " ").trim()).find((row) => row.startsWith("Cache"))', 'Cache host 6379 running healthy');
  await page.shows('document.querySelector(".output")?.innerText.includes("the cache is up")', true);
  await console.click('.segments button', 'Run');
  await page.shows('document.querySelector("input[aria-label=Command]") !== null', true);
  await console.fill('Command', 'uname -n');
  await console.press('Enter');
  await page.shows('document.querySelector(".runs .output")?.innerText.trim()', 'cache');
  console.isCalm();
});

test('what becomes of a member is seen without asking; a sandbox without members says so', async () => {
  await api.life(made.id, 'stop');
  await page.shows('[...document.querySelectorAll("tbody tr")].every((row) => row.innerText.includes("stopped"))', true);
  const { id } = await api.create({ name: 'alone' });
  await console.go(`/sandboxes/${id}/members`);
  await console.says('No members');
  await api.purge(id);
  page.errors.length = 0; // a 404 of what is gone
});

test('the host page tells of a pool how many wait, and whether creates met one', async () => {
  const put = await api.request('PUT', '/v1/templates/warm/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  const sized = async (size) => assert.equal((await api.request('PATCH', '/v1/templates/warm', { json: { pool: { size } } })).status, 200);
  const pool = async () => (await api.request('GET', '/v1/pools')).json.pools.find(({ template }) => template === 'warm');
  await sized(1);
  await until(async () => (await pool()).ready === 1, { what: 'one waits' });
  const { id } = await api.create({ template: 'warm' });
  assert.equal((await pool()).hits, 1);
  await console.go('/host');
  await page.shows('[...document.querySelectorAll("tbody tr")].map((row) => row.innerText.replace(/\\s+/g, " ").trim()).find((row) => row.startsWith("warm"))', 'warm default/admin 1 of 1 1 0');
  await api.purge(id);
  await sized(0);
  await until(async () => (await api.request('GET', '/v1/pools')).json.draining === 0 && !(await pool()), { what: 'none waits any more' });
  assert.equal((await api.request('DELETE', '/v1/templates/warm')).status, 204);
  console.isCalm();
});

test('these pages have no flaw that axe knows, in both themes, and nothing sticks out at 320 pixels', async () => {
  await console.isFit(['/functions', '/functions/hello', `/sandboxes/${made.id}/members`, '/host']);
  console.isCalm();
});

test('a function goes after a question', async () => {
  await console.go('/functions/hello');
  await console.click('.page-head button', 'Delete');
  await console.click('.dialog footer button', 'Delete');
  await console.says('No functions yet');
  assert.equal((await api.request('GET', '/v1/functions/hello')).status, 404);
  await api.purge(made.id);
  await browser.close();
});

finish();
