// SPDX-License-Identifier: Apache-2.0
// Apps as people write them (tests/e2e/apps), from their files to a preview: launched with packages of the registries
// that this machine uses, and looked at with a real browser where they have a page. Three of them are always tried, the
// others with E2E_FULL. Where no registry can be reached, those that need one say so and are skipped.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { REPOSITORY } from './lib/instance.mjs';
import { Previews } from './lib/preview.mjs';
import { registryAccess } from './lib/registry.mjs';
import { suite } from './lib/suite.mjs';
import { DEADLINE_MS, PATIENCE, until } from './lib/wait.mjs';

const FULL = Boolean(process.env.E2E_FULL);
const DOMAIN = 'preview.test'; // names that development servers do not trust by themselves
const APP = '/workspace/app';
const TEXT = 'document.querySelector("#text, h1")?.textContent';
/** Whether React has taken over what the server made: an edit before that is a mismatch to it. */
const HYDRATED = 'Object.keys(document.querySelector("#text")).some((key) => key.startsWith("__react"))';
const TIMEOUTS = { install_s: 900 * PATIENCE, backend_s: 300, frontend_s: 300 };
const { api, finish } = await suite('launch_apps', { width: 2, args: ['--preview-domain', DOMAIN] });
const access = await registryAccess();
let browser;
after(() => browser?.close());

/** A project with the files of an app, and a sandbox of its own that reaches the registries. */
async function project(name) {
  const made = await api.request('POST', '/v1/projects', { json: { name } });
  assert.equal(made.status, 201, made.text);
  const sources = path.join(REPOSITORY, 'tests/e2e/apps', name);
  const put = await api.request('PUT', `/v1/projects/${name}/archive`, { body: execFileSync('tar', ['-C', sources, '-cf', '-', '.']), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  const sandbox = await api.request('POST', `/v1/projects/${name}/sandboxes`, { json: { ...access, resources: { memory: '2Gi', cpu: 2, disk: '4Gi' } } });
  assert.equal(sandbox.status, 201, sandbox.text);
  return sandbox.json;
}

async function launch(body) {
  const begun = await api.request('POST', '/v1/launches', { json: { timeouts: TIMEOUTS, ...body } });
  assert.equal(begun.status, 202, begun.text);
  let found;
  await until(async () => (found = (await api.request('GET', `/v1/launches/${begun.json.id}`)).json).status !== 'running', { what: 'the end of the launch', every: 200, timeout_ms: 10 * DEADLINE_MS });
  assert.equal(found.status, 'succeeded', JSON.stringify(found.error ?? found.stages));
  return found;
}

async function remove(name, { id }) {
  await api.purge(id);
  assert.equal((await api.request('DELETE', `/v1/projects/${name}`)).status, 204);
}

/** What the preview of a launch answers. */
async function answer(launched, at = '/') {
  const url = new URL(at, launched.preview_url);
  const previews = new Previews(api, (await api.request('GET', `/v1/sandboxes/${launched.sandbox_id}`)).json);
  return previews.request(0, url.pathname, { host: url.host });
}

const portOf = (launched) => launched.detection.parts.at(-1).port;

/** Opens the preview as its owner does, by a link. */
async function open(launched) {
  browser ??= new Chromium({ domain: DOMAIN });
  const made = await api.request('POST', `/v1/sandboxes/${launched.sandbox_id}/ports/${portOf(launched)}/links`, { json: {} });
  assert.equal(made.status, 201, made.text);
  return browser.open(made.json.url);
}

const complaints = (page) => [...page.errors, ...page.console].filter((error) => !/favicon/.test(error));

/** A change of a file shows up in the page, in which what a reload would lose is still there. */
async function assertHot(page, { id }, file) {
  await until(() => page.frames > 0, { what: 'the page listens for changes' });
  await page.evaluate('window.marker = "kept"');
  const text = (await api.read(id, `${APP}/${file}`)).toString();
  assert.ok(text.includes('first'));
  let saved = 0;
  await until(async () => {
    // Next loses what changes between its page's first words and its subscription, so another change is made then.
    await api.put(id, `${APP}/${file}`, text.replace('first', `change ${++saved}`));
    await page.shows(TEXT, `change ${saved}`, { timeout_ms: 10_000 });
    return true;
  }, { what: 'the change is seen' });
  assert.equal(await page.evaluate('window.marker'), 'kept', 'without a reload');
}

/**
 * name: a directory of tests/e2e/apps; framework and port: as they are detected; json: what `/` answers; hot: the file
 * that is edited while a browser looks at the page, once it is `ready`; always: without E2E_FULL too.
 */
const APPS = [
  { name: 'static', framework: 'static', port: 8080, page: true, always: true },
  { name: 'flask', framework: 'flask', port: 5000, json: { made: 'flask' }, always: true },
  { name: 'vite-react', framework: 'vite', port: 5173, hot: 'src/App.jsx', always: true },
  { name: 'vite-vue', framework: 'vite', port: 5173, hot: 'src/App.vue' },
  { name: 'next', framework: 'next', port: 3000, hot: 'app/page.js', ready: HYDRATED },
  { name: 'express', framework: 'express', port: 3000, json: { made: 'express' } },
  { name: 'fastapi', framework: 'fastapi', port: 8000, json: { made: 'fastapi' } },
  { name: 'django', framework: 'django', port: 8000, json: { made: 'django' } },
  { name: 'streamlit', framework: 'streamlit', port: 8501, hot: 'app.py' },
];
const skipOf = ({ name, always }) => (!FULL && !always ? 'only with E2E_FULL' : !access && name !== 'static' ? 'not proven: no registry can be reached from this machine' : false);

for (const app of APPS) {
  test(`${app.name} is launched, and answers through its preview`, { skip: skipOf(app) }, async () => {
    const sandbox = await project(app.name);
    const launched = await launch({ project: app.name });
    assert.deepEqual(launched.detection.parts.map(({ framework, port }) => [framework, port]), [[app.framework, app.port]]);
    assert.match(launched.preview_url, new RegExp(`^http://s-${sandbox.id}-${app.port}\\.${DOMAIN}:\\d+$`));
    const seen = await answer(launched);
    assert.equal(seen.status, 200, seen.text);
    if (app.json) assert.deepEqual(seen.json, app.json);
    if (app.page || app.hot) {
      const page = await open(launched);
      await page.shows(TEXT, 'first');
      if (app.ready) await page.shows(app.ready, true);
      if (app.hot) await assertHot(page, sandbox, app.hot);
      assert.deepEqual(complaints(page), []);
    }
    if (app.name === 'vite-react') await launchByPath(sandbox);
    await remove(app.name, sandbox);
  });
}

/** The same app by path, in a launch of its own: its base is the path, which the proxy keeps. */
async function launchByPath(sandbox) {
  const shown = await api.request('PATCH', `/v1/sandboxes/${sandbox.id}/ports/5173`, { json: { public: true } });
  assert.equal(shown.status, 200, shown.text);
  await api.put(sandbox.id, `${APP}/src/App.jsx`, fs.readFileSync(path.join(REPOSITORY, 'tests/e2e/apps/vite-react/src/App.jsx')));
  const launched = await launch({ project: 'vite-react', preview: 'path' });
  const base = `/api/sandbox/sessions/${sandbox.id}/preview/`;
  assert.equal(new URL(launched.preview_url).pathname, base);
  assert.equal(launched.stages[3].status, 'skipped', 'its packages are there');
  const page = await browser.open(launched.preview_url);
  await page.shows(TEXT, 'first');
  assert.equal(await page.evaluate('document.querySelector("script[src]").getAttribute("src").slice(0, 45)'), base.slice(0, 45));
  await assertHot(page, sandbox, 'src/App.jsx');
  assert.deepEqual(complaints(page), []);
}

test('the browser leaves', () => browser?.close()); // it would keep its connections for a minute

finish();
