// SPDX-License-Identifier: Apache-2.0
// Development servers as they come, looked at with a real browser, without TLS and with it: the page loads, and a change
// of a file in the sandbox reaches it through its WebSocket, without a reload. They need packages; see lib/framework.mjs.
// Vite's are always tried, Next with E2E_FULL: its packages alone are 400 MB.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';

import { authority } from './lib/certificates.mjs';
import { Chromium } from './lib/chromium.mjs';
import { installed, putApp } from './lib/framework.mjs';
import { Instance } from './lib/instance.mjs';
import { Previews } from './lib/preview.mjs';
import { background } from './lib/preview_app.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

// Names that development servers do not trust by themselves, as they do those below localhost.
const DOMAIN = 'preview.test';
const { api, finish } = await suite('previews_frameworks', { args: ['--preview-domain', DOMAIN] });
const DIR = '/workspace/agent_workspace/app';
const TEXT = 'document.querySelector("#text")?.textContent';
const ca = authority();
process.on('exit', ca.remove);
const browser = new Chromium({ domain: DOMAIN, authority: ca.file });
after(() => browser.close());

/** For whoever wants to see what the browser saw: a directory of pictures. */
const show = (page, name) => (process.env.E2E_SCREENSHOTS ? page.screenshot(path.join(process.env.E2E_SCREENSHOTS, `${name}.png`)) : undefined);

async function serve(api, name, archive, body, argvOf) {
  const sandbox = await api.create({ resources: { memory: '2Gi', cpu: 2, disk: '4Gi' }, env: { NEXT_TELEMETRY_DISABLED: '1' }, ...body });
  await putApp(api, sandbox.id, name, archive, DIR);
  await background(api, sandbox.id, ['sh', '-c', `cd ${DIR} && exec ${argvOf(sandbox.id)}`]);
  return new Previews(api, sandbox);
}

/** The address that its owner opens. */
async function linkTo(previews, port = 3000) {
  const made = await previews.api.request('POST', `/v1/sandboxes/${previews.id}/ports/${port}/links`, { json: {} });
  assert.equal(made.status, 201, made.text);
  return made.json.url;
}

/**
 * A change of a file shows up in the page, in which what a reload would lose is still there. It is saved again until
 * then: Next loses what changes between its page's first words and its subscription.
 */
async function assertHot({ api, id }, page, file, { from = 'first', to = 'second' } = {}) {
  await until(() => page.frames > 0, { what: 'the page listens for changes' });
  await page.evaluate('window.marker = "kept"');
  const text = (await api.read(id, `${DIR}/${file}`)).toString().replace(from, to);
  let saved = 0;
  await until(async () => {
    await api.put(id, `${DIR}/${file}`, `${text}// ${++saved}\n`);
    await page.shows(TEXT, to, { timeout_ms: 5000 });
    return true;
  }, { what: 'the change is seen' });
  assert.equal(await page.evaluate('window.marker'), 'kept', 'without a reload');
}

/** What the page complained about, but for what came before the app was there. */
const complaints = (page) => page.errors.filter((error) => !/favicon|status of 503/.test(error));

const vite = (...more) => () => `node_modules/.bin/vite --host 127.0.0.1 --port 3000 --strictPort ${more.join(' ')}`;

test('Vite by name, private: the link opens it, and a change arrives without a reload', async (t) => {
  const archive = await installed(t, 'vite');
  if (!archive) return;
  const previews = await serve(api, 'vite', archive, { ports: [3000] }, vite());
  const page = await browser.open(await linkTo(previews));
  await page.shows(TEXT, 'first');
  assert.equal(await page.evaluate('location.search'), '', 'the secret is not in the address');
  assert.equal(await page.evaluate('getComputedStyle(document.querySelector("h1")).color'), 'rgb(10, 90, 160)');
  await assertHot(previews, page, 'message.js');
  await show(page, 'vite');
  assert.deepEqual(complaints(page), []);
  const other = await browser.open(`http://3000-${previews.id}.${DOMAIN}:${previews.port}/`);
  await other.shows('document.querySelector("h1").textContent', 'This preview is private');
  await show(other, 'private');
});

test('Vite by name behind TLS, private: the link opens it, its cookie stays with https, and a change arrives over wss without a reload', async (t) => {
  const archive = await installed(t, 'vite');
  if (!archive) return;
  const { certificate, key } = ca.issue('previews', [`DNS:*.${DOMAIN}`]);
  const secure = new Instance('previews_frameworks_tls', { args: ['--preview-domain', DOMAIN, '--preview-tls-certificate', certificate, '--preview-tls-key', key] });
  try {
    await secure.start();
    const previews = await serve(secure.api, 'vite', archive, { ports: [3000] }, vite());
    const origin = `https://s-${previews.id}-3000.${DOMAIN}:${previews.port}`;
    const page = await browser.open(await linkTo(previews));
    await page.shows(TEXT, 'first');
    assert.equal(await page.evaluate('location.href'), `${origin}/`, 'the redirect leads to the same name, without the secret');
    const [cookie, ...more] = (await page.send('Network.getCookies')).cookies;
    assert.deepEqual([cookie.secure, cookie.httpOnly, more], [true, true, []]);
    await assertHot(previews, page, 'message.js');
    assert.ok(page.sockets.length > 0 && page.sockets.every((url) => url.startsWith(`${origin.replace('https', 'wss')}/`)), page.sockets.join(' '));
    assert.deepEqual(complaints(page), []);
    await secure.shutdown();
  } finally {
    secure.destroy();
  }
});

test('Vite by path with its base set: the port keeps the path, and a change arrives without a reload', async (t) => {
  const archive = await installed(t, 'vite');
  if (!archive) return;
  const prefix = (id) => `/v1/sandboxes/${id}/preview/3000/`;
  const previews = await serve(api, 'vite', archive, { ports: [{ port: 3000, public: true, prefix: 'keep' }] }, (id) => vite('--base', prefix(id))());
  const page = await browser.open(`http://localhost:${previews.port}${prefix(previews.id)}`);
  await page.shows(TEXT, 'first');
  await assertHot(previews, page, 'message.js');
});

// What the page itself asks for at the root is not: browsers do not say which page without an origin asks.
test('Vite by path that knows nothing of it: what modules and styles of its page import at the root is found', async (t) => {
  const archive = await installed(t, 'vite');
  if (!archive) return;
  const previews = await serve(api, 'vite', archive, { ports: [{ port: 3000, public: true }] }, vite());
  const files = {
    'index.html': '<link rel="stylesheet" href="plain.css"><h1 id="text"></h1><script type="module" src="main.js"></script>',
    'public/plain.css': '@import "/more.css";',
    'public/more.css': 'h1 { color: rgb(1, 2, 3) }',
  };
  for (const [name, text] of Object.entries(files)) await api.put(previews.id, `${DIR}/${name}`, text);
  const prefix = `/v1/sandboxes/${previews.id}/preview/3000/`;
  // Opened again until then: what tells a page to load again after a change does not reach one by path.
  const page = await until(async () => {
    const opened = await browser.open(`http://localhost:${previews.port}${prefix}`);
    await opened.shows(TEXT, 'first', { timeout_ms: 15_000 });
    return opened;
  }, { what: 'the page shows first' });
  await page.shows('getComputedStyle(document.querySelector("h1")).color', 'rgb(1, 2, 3)');
});

test('by path a page with relative addresses works, but has neither cookies nor storage, and reads nothing of its neighbours', async () => {
  const [own, neighbour] = [await api.create({ ports: [{ port: 3000, public: true }] }), await api.create({ ports: [3000] })];
  const files = { 'index.html': '<h1 id="text"></h1><script type="module" src="main.js"></script>', 'main.js': 'import { text } from "./part.js"; document.querySelector("#text").textContent = text + (await (await fetch("data.json")).json()).more;', 'part.js': 'export const text = "one";', 'data.json': '{"more":"two"}' };
  for (const { id } of [own, neighbour]) {
    for (const [name, text] of Object.entries(files)) await api.put(id, `/tmp/web/${name}`, text);
    await background(api, id, ['python3', '-m', 'http.server', '3000', '--bind', '127.0.0.1', '--directory', '/tmp/web']);
  }
  const previews = new Previews(api, own);
  const at = ({ id }) => `http://localhost:${previews.port}/v1/sandboxes/${id}/preview/3000/`;
  // The browser may see the neighbour: it has opened a link, and keeps the cookie.
  const link = new URL(await linkTo(new Previews(api, neighbour)));
  const theirs = await browser.open(at(neighbour) + link.search);
  await theirs.shows('document.querySelector("#text") !== null', true);
  const page = await browser.open(at(own));
  await page.shows(TEXT, 'onetwo');
  const attempt = (code) => page.evaluate(`(async () => { try { return String(await (async () => { ${code} })()); } catch (error) { return error.name; } })()`);
  assert.equal(await attempt('return localStorage.length'), 'SecurityError');
  assert.equal(await attempt('return document.cookie'), 'SecurityError');
  assert.equal(await attempt(`return (await fetch(${JSON.stringify(at(neighbour))}, { credentials: "include" })).status`), 'TypeError');
  assert.equal(await attempt(`const frame = document.createElement("iframe"); frame.src = ${JSON.stringify(at(neighbour))}; document.body.append(frame); await new Promise((done) => { frame.onload = done; }); return frame.contentDocument`), 'null');
});

test('a hostile page neither frames nor embeds answers of the API, nor keeps a window that it opened there', async () => {
  const { id } = await api.create({ ports: [{ port: 3000, public: true }] });
  await api.put(id, '/tmp/web/index.html', '<h1 id="text">hostile</h1>');
  await background(api, id, ['python3', '-m', 'http.server', '3000', '--bind', '127.0.0.1', '--directory', '/tmp/web']);
  const page = await browser.open(`http://3000-${id}.${DOMAIN}:${new Previews(api, await api.get(id)).port}/`);
  await page.shows(TEXT, 'hostile');
  const complaint = (text) => until(() => page.errors.some((error) => error.includes(text)), { what: `the browser refuses: ${text}` });
  for (const target of ['/openapi.json', '/v1/sandboxes']) {
    const at = JSON.stringify(`http://${api.host}:${api.port}${target}`);
    page.errors.length = 0;
    await page.evaluate(`{ const frame = document.createElement('iframe'); frame.src = ${at}; document.body.append(frame); }`);
    await complaint('frame-ancestors');
    await page.evaluate(`{ const script = document.createElement('script'); script.src = ${at}; document.body.append(script); }`);
    await complaint('ERR_BLOCKED_BY_RESPONSE');
    await page.evaluate(`window.opened = window.open(${at}); null`);
    await page.shows('opened.closed', true);
  }
});

test('Next by name, private: the page is compiled and hydrated, and a change arrives without a reload', { skip: !process.env.E2E_FULL && 'only with E2E_FULL' }, async (t) => {
  const archive = await installed(t, 'next');
  if (!archive) return;
  const previews = await serve(api, 'next', archive, { ports: [3000] }, () => 'node_modules/.bin/next dev -H 127.0.0.1 -p 3000');
  const page = await browser.open(await linkTo(previews));
  await page.shows(TEXT, 'first');
  await page.shows('Object.keys(document.querySelector("#text")).some((key) => key.startsWith("__react"))', true);
  await assertHot(previews, page, 'app/page.js');
  await show(page, 'next');
});

test('a browser that comes to a sandbox that sleeps sees it start, and then the app', async (t) => {
  const sandbox = await api.create({ ports: [3000, 3001] });
  const previews = new Previews(api, sandbox);
  const [url, other] = [await linkTo(previews), await linkTo(previews, 3001)];
  await api.verb(sandbox.id, 'stop');
  const page = await browser.open(url);
  await page.shows('/Starting the sandbox|Waiting for the app/.test(document.body.innerText)', true);
  await show(page, 'warming');
  await until(async () => (await api.get(sandbox.id)).status === 'running', { what: 'it wakes' });
  await api.put(sandbox.id, '/tmp/index.html', '<h1 id=text>awake</h1>');
  await background(api, sandbox.id, ['python3', '-m', 'http.server', '3000', '--bind', '127.0.0.1', '--directory', '/tmp']);
  await page.shows(TEXT, 'awake');
  const wrong = await browser.open(other);
  await wrong.shows('/Nothing answers|Waiting for the app/.test(document.body.innerText)', true);
  await show(wrong, 'wrong-port');
});

test('the browser leaves', () => browser.close());

finish();
