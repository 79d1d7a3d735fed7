// SPDX-License-Identifier: Apache-2.0
// The console shows a private preview inside itself, also where the browser keeps no cookies for frames of other sites;
// and it finds a line in what all processes of a sandbox wrote.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { Console } from './lib/console.mjs';
import { Previews } from './lib/preview.mjs';
import { background } from './lib/preview_app.mjs';
import { suite } from './lib/suite.mjs';
import { takeTurns } from './lib/views.mjs';
import { until } from './lib/wait.mjs';

const { api, finish } = await suite('console_previews', { width: 1 });
const browser = new Chromium({ flags: ['--test-third-party-cookie-phaseout'] });
after(() => browser.close());
const origin = `http://127.0.0.1:${api.port}`;
const console = await Console.open(browser, origin);
const { page } = console;
takeTurns((view) => console.look(view));
await console.signIn(api.token);
await console.says('No sandboxes yet');
page.errors.length = 0; // the browser itself tells of the 401 before

// A page with a script of its own, which asks for data twice: the second time with the cookie that the first has set. It
// says against frames all that an app can.
const APP = `
require('http').createServer((req, res) => {
  res.setHeader('x-frame-options', 'DENY');
  res.setHeader('content-security-policy', "frame-ancestors 'none'");
  if (req.url === '/main.js') { res.setHeader('content-type', 'text/javascript'); res.end('(async () => { await (await fetch("/data", { method: "POST" })).text(); parent.postMessage({ app: await (await fetch("/data")).text() }, "*"); })()'); }
  else if (req.url === '/data') { res.setHeader('set-cookie', 'visit=1; SameSite=Lax'); res.end('cookie ' + req.headers.cookie); }
  else { res.setHeader('content-type', 'text/html'); res.end('<h1>inside</h1><script src="/main.js"></script>'); }
}).listen(3000);
`;
const sandbox = await api.create({ name: 'shown', ports: [3000] });
await background(api, sandbox.id, ['node', '-e', APP]);
const previews = new Previews(api, sandbox);
await until(async () => (await previews.request(3000, '/')).status === 200, { what: 'the app answers' });
const links = async () => (await api.request('GET', `/v1/sandboxes/${sandbox.id}/ports/3000/links`)).json.links;
let frame;

test('a private preview is shown in the tab of ports, with its scripts, data and cookies', async () => {
  await console.go(`/sandboxes/${sandbox.id}/ports`);
  await page.evaluate('window.heard = [], addEventListener("message", ({ data, origin }) => data?.app && heard.push([data.app, origin])), 1');
  await console.button('Show here');
  await page.shows('window.heard[0]?.[0]', 'cookie visit=1');
  frame = await page.evaluate('document.querySelector("iframe.preview-frame").src');
  assert.match(frame, /^http:\/\/f-[0-9a-z]{52}\.preview\.localhost:\d+\/$/);
  assert.equal(await page.evaluate('window.heard[0][1]'), new URL(frame).origin);
  assert.deepEqual((await links()).map((link) => link.frame_origin), [origin]);
  console.isCalm();
});

test('its address opens in no window and in no page of another origin', async () => {
  const { host } = new URL(frame);
  const ask = (headers) => previews.request(3000, '/', { host, token: false, headers });
  const of = (dest, site, more) => ({ 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': dest, 'sec-fetch-site': site, ...more });
  const shown = await ask(of('iframe', 'cross-site', { referer: `${origin}/` }));
  assert.equal(shown.status, 200);
  assert.deepEqual([shown.headers['x-frame-options'], shown.headers['referrer-policy']], [undefined, 'same-origin']);
  assert.match(shown.headers['content-security-policy'], new RegExp(`frame-ancestors 'self' ${origin}$`));
  for (const headers of [of('iframe', 'cross-site', { referer: 'http://evil.test/' }), of('iframe', 'cross-site', { referer: `${origin}1/` }), of('iframe', 'same-site'), of('document', 'none'), of('document', 'cross-site'),
    { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image', 'sec-fetch-site': 'cross-site' }, { origin: 'http://evil.test' }]) assert.equal((await ask(headers)).status, 403, JSON.stringify(headers));
  assert.equal((await previews.request(3000, '/', { host: host.replace(/^f-./, 'f-!'), token: false })).status, 421);
  assert.equal((await previews.request(3000, '/', { host: host.replace(/^f-.{4}/, 'f-0000'), token: false })).status, 401);
});

test('it ends with the view of it', async () => {
  await console.button('Close');
  await until(async () => (await links()).length === 0, { what: 'the link is gone' });
  assert.equal((await previews.request(3000, '/', { host: new URL(frame).host, token: false })).status, 401);
  await console.button('Show here');
  await page.shows('window.heard[1]?.[0]', 'cookie visit=1');
  await console.go('/connect');
  await until(async () => (await links()).length === 0, { what: 'leaving the console takes the link back' });
  console.isCalm();
});

test('an origin is one and nothing else', async () => {
  for (const frame_origin of ['', '*', 'https://', 'https://a b', "https://a; script-src *", 'https://a/', 'https://a,b', 'ftp://a', 'https://A', 'null']) {
    const refused = await api.request('POST', `/v1/sandboxes/${sandbox.id}/ports/3000/links`, { json: { frame_origin } });
    assert.equal(refused.status, 400, frame_origin);
  }
});

test('a line is found in what all processes wrote, and leads to the output that it is in', async () => {
  await background(api, sandbox.id, ['sh', '-c', 'echo nothing of note']);
  const { id } = (await api.request('POST', `/v1/sandboxes/${sandbox.id}/exec`, { json: { argv: ['sh', '-c', 'echo before; echo the NEEDLE is here; echo after'], background: true } })).json.process;
  await console.go(`/sandboxes/${sandbox.id}/processes`);
  await console.fill('Search all output', 'needle');
  await page.shows('[...document.querySelectorAll(".pick code")].map((one) => one.innerText)', ['the NEEDLE is here']);
  await console.click('.pick', null);
  await page.shows('new URLSearchParams(location.search).get("process")', id);
  await page.shows('document.querySelector(".card [class*=output], pre")?.innerText.includes("before") ?? false', true);
  await console.fill('Search all output', 'nowhere to be found');
  await console.says('No line of any process has that text.');
  console.isCalm();
  await browser.close();
});

finish();
