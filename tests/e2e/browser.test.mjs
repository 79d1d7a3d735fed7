// SPDX-License-Identifier: Apache-2.0
// The browser that other tests drive never makes them wait for ever: whatever it does not answer is an error that says
// what was asked for.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { until, within } from './lib/wait.mjs';

const ASKS = '<h1>asks</h1><input autofocus><script>onbeforeunload = (event) => event.preventDefault();</script>';
const server = http.createServer((request, response) => response.setHeader('content-type', 'text/html').end(request.url === '/asks' ? ASKS : `<h1>${request.url}</h1>`));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = new Chromium();
after(async () => { await browser.close(); server.close(); });
const page = await browser.open(`${origin}/first`);
const title = 'document.querySelector("h1")?.innerText';

test('a page that asks whether to leave it is left', async () => {
  await page.go(`${origin}/asks`);
  await page.shows(title, 'asks');
  for (const type of ['mousePressed', 'mouseReleased']) await page.send('Input.dispatchMouseEvent', { type, x: 20, y: 20, button: 'left', clickCount: 1 });
  await page.go(`${origin}/second`);
  await page.shows(title, '/second');
  assert.deepEqual(page.dialogs.splice(0), ['beforeunload']);
  assert.deepEqual(page.errors, []);
});

test('any other dialog goes away, and is a complaint', async () => {
  await page.evaluate('alert("out of nowhere"), 1');
  assert.deepEqual(page.errors.splice(0), ['alert: out of nowhere']);
});

test('what is not answered is given up, and the next is asked in peace', async () => {
  await assert.rejects(page.send('Runtime.evaluate', { expression: 'new Promise(() => {})', awaitPromise: true }, { timeout_ms: 300 }), /longer than 300 ms: the browser answers Runtime.evaluate .*new Promise/);
  assert.equal(await page.evaluate('6 * 7'), 42);
});

test('an expression whose page is left before it has a value is asked for again in the next', async () => {
  const asked = page.evaluate(`new Promise((resolve) => { if (location.pathname === '/third') resolve(location.pathname); })`);
  await page.go(`${origin}/third`);
  assert.equal(await asked, '/third');
});

test('a page that crashes or is closed rejects what waits for it, at once', async () => {
  for (const end of ['Page.crash', 'Page.close']) {
    const other = await browser.open(`${origin}/other`);
    const waiting = assert.rejects(other.send('Runtime.evaluate', { expression: 'new Promise(() => {})', awaitPromise: true }), /page (has crashed|is gone)|closed/);
    const ended = other.send(end).catch(() => {}); // one that has crashed does not answer to that
    await within(`it is rejected after ${end}`, waiting, 30_000);
    await ended;
  }
  assert.equal(await page.evaluate('6 * 7'), 42, 'the others go on');
});

test('of a browser that is gone all is an error that says why, and closing it works as often as one likes', async () => {
  const other = new Chromium();
  const its = await other.open(`${origin}/other`);
  const waiting = assert.rejects(its.evaluate('new Promise(() => {})'), /has ended with SIGKILL.*asked for Runtime.evaluate/s);
  other.child.kill('SIGKILL');
  await within('it is rejected', waiting, 30_000);
  await assert.rejects(its.evaluate('1'), /has ended with SIGKILL/);
  for (let i = 0; i < 2; i++) await other.close();
  assert.ok(!fs.existsSync(other.home));
});

test('the browser leaves', async () => {
  await browser.close();
  await until(() => browser.child.exitCode !== null || browser.child.signalCode !== null, { what: 'its process is gone' });
});
