// SPDX-License-Identifier: Apache-2.0
// What the console shows of a sandbox's use and network: charts that begin with the past, and an allowlist that is learnt.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { Console } from './lib/console.mjs';
import { httpServer, nameServer } from './lib/outside.mjs';
import { suite } from './lib/suite.mjs';
import { takeTurns } from './lib/views.mjs';

const names = await nameServer();
const { api, finish } = await suite('console_network', { args: ['--resolver', `127.0.0.1:${names.port}`], width: 1 });
const web = await httpServer();
names.names = { 'ok.test': '127.0.0.1', 'other.test': '127.0.0.1' };
const browser = new Chromium();
after(() => browser.close());
const console = await Console.open(browser, `http://127.0.0.1:${api.port}`);
const { page } = console;
takeTurns((view) => console.look(view));
await console.signIn(api.token);
await console.says('No sandboxes yet');
page.errors.length = 0; // the browser itself tells of the 401 before
const { id } = await api.create({ name: 'learner', network: { mode: 'allowlist', allow: [`127.0.0.1:${web.port}`, `ok.test:${web.port}`] } });
const policy = async () => (await api.get(id)).network;
const ask = (name) => api.exec(id, { argv: ['curl', '-s', '-m', '20', `http://${name}:${web.port}/`] });

test('charts are drawn of what the server remembers and tells, without asking again and again', async () => {
  await console.go(`/sandboxes/${id}`);
  const label = 'document.querySelector(".chart[aria-label^=Memory]")?.getAttribute("aria-label") ?? ""';
  await page.shows(`/^Memory, now [0-9]/.test(${label})`, true);
  const asked = (path) => page.evaluate(`performance.getEntriesByType("resource").filter(({ name }) => name.includes(${JSON.stringify(path)})).length`);
  assert.equal(await asked('/stats/history?window=hour'), 1);
  await console.button('Day');
  await page.shows('performance.getEntriesByType("resource").some(({ name }) => name.includes("/stats/history?window=day"))', true);
  await page.shows(`/^Memory, now [0-9]/.test(${label})`, true);
  console.isCalm();
});

test('what was refused is allowed by a click, and the form of the policy knows', async () => {
  await ask('other.test');
  await console.go(`/sandboxes/${id}/network`);
  await console.says(`other.test:${web.port}`);
  await console.button(`Allow other.test:${web.port}`);
  await page.shows(`document.querySelector("textarea")?.value.includes("other.test:${web.port}")`, true);
  assert.ok((await policy()).allow.includes(`other.test:${web.port}`));
  console.isCalm();
});

test('an allowlist is learnt: all is open for a while, then only what was reached', async () => {
  await ask('ok.test');
  await console.button('Learn');
  await console.says('All of the internet is open');
  assert.equal((await policy()).mode, 'internet');
  await console.says(`ok.test:${web.port}`);
  await page.shows('/^Allow only [1-9]/.test([...document.querySelectorAll("button")].map((one) => one.innerText).find((one) => one.startsWith("Allow only")) ?? "")', true);
  const name = await page.evaluate('[...document.querySelectorAll("button")].map((one) => one.innerText).find((one) => one.startsWith("Allow only"))');
  await console.button(name);
  await console.says('To learn an allowlist');
  const { mode, allow } = await policy();
  assert.equal(mode, 'allowlist');
  assert.ok(allow.includes(`ok.test:${web.port}`), JSON.stringify(allow));
  console.isCalm();
});

test('these pages have no flaw that axe knows, in both themes, and nothing sticks out at 320 pixels', async () => {
  await console.isFit([`/sandboxes/${id}`, `/sandboxes/${id}/network`, `/sandboxes/${id}/ports`]);
  await api.purge(id);
  await browser.close();
  for (const server of [web, names]) await server.close();
});

finish();
