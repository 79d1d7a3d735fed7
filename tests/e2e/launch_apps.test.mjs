// SPDX-License-Identifier: Apache-2.0
// Apps as people write them (tests/e2e/apps), from their files to a preview: launched with packages of the registries
// that this machine uses, and looked at with a real browser where they have a page. Three of them are always tried, the
// others with E2E_FULL. Where the registry of Python cannot be reached, Debian's packages in the template serve if they
// are there. Those that cannot be had at all say so and are skipped.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { REPOSITORY } from './lib/instance.mjs';
import { Previews } from './lib/preview.mjs';
import { debianHas, registryAccess, pipIndex } from './lib/registry.mjs';
import { bringPostgres, bringRedis } from './lib/services.mjs';
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
const reached = { npm: await registryAccess('npm'), pip: await registryAccess('pip'), 'npm pip': await registryAccess('npm', 'pip') };
let browser;
after(() => browser?.close());

/** A project with the files of an app, and a sandbox of its own that reaches its registries. */
async function project({ name, needs, debian }) {
  const made = await api.request('POST', '/v1/projects', { json: { name } });
  assert.equal(made.status, 201, made.text);
  const sources = path.join(REPOSITORY, 'tests/e2e/apps', name);
  const put = await api.request('PUT', `/v1/projects/${name}/archive`, { body: execFileSync('tar', ['-C', sources, '-cf', '-', '.']), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  const sandbox = await api.request('POST', `/v1/projects/${name}/sandboxes`, { json: { ...accessOf({ needs, debian }), resources: { memory: '2Gi', cpu: 2, disk: '4Gi' } } });
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
    await page.shows(`/^change \\d+$/.test(${TEXT})`, true, { timeout_ms: 10_000 }); // also if it is late, and of an earlier save
    return true;
  }, { what: 'the change is seen' });
  assert.equal(await page.evaluate('window.marker'), 'kept', 'without a reload');
}

/**
 * name: a directory of tests/e2e/apps; needs: the registries of its packages; debian: the modules of Python that serve in
 * their place; framework and port: as they are detected; json: what `/` answers; hot: the file that is edited while a
 * browser looks at the page, once it is `ready`; always: without E2E_FULL too.
 */
const APPS = [
  { name: 'static', framework: 'static', port: 8080, page: true, always: true },
  { name: 'flask', needs: 'pip', debian: ['flask'], framework: 'flask', port: 5000, json: { made: 'flask' }, always: true },
  { name: 'vite-react', needs: 'npm', framework: 'vite', port: 5173, hot: 'src/App.jsx', always: true },
  { name: 'vite-vue', needs: 'npm', framework: 'vite', port: 5173, hot: 'src/App.vue' },
  { name: 'next', needs: 'npm', framework: 'next', port: 3000, hot: 'app/page.js', ready: HYDRATED },
  { name: 'express', needs: 'npm', framework: 'express', port: 3000, json: { made: 'express' } },
  { name: 'fastapi', needs: 'pip', debian: ['fastapi', 'uvicorn'], framework: 'fastapi', port: 8000, json: { made: 'fastapi' } },
  { name: 'django', needs: 'pip', debian: ['django'], framework: 'django', port: 8000, json: { made: 'django' } },
  { name: 'streamlit', needs: 'pip', debian: ['streamlit'], framework: 'streamlit', port: 8501, hot: 'app.py' },
];
const FULLSTACK = { name: 'fullstack', needs: 'npm pip' };

/** Network and variables of an app's sandbox; null if its packages cannot be had. */
function accessOf({ needs, debian }) {
  if (!needs) return {};
  return reached[needs] ?? (debian && debianHas(debian) ? { network: { mode: 'none' } } : null);
}

function skipOf(app) {
  if (!FULL && !app.always) return 'only with E2E_FULL';
  const missing = app.debian ? `, and Debian's packages of ${app.debian.join(' and ')} are not in the template` : '';
  return !accessOf(app) && `not proven: a registry of ${app.needs.replace(' ', ' or ')} cannot be reached from this machine${missing}`;
}

for (const app of APPS) {
  test(`${app.name} is launched, and answers through its preview`, { skip: skipOf(app) }, async () => {
    const sandbox = await project(app);
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

/** Waits until the page lists exactly these notes, and has counted as many. */
async function assertNotes(page, notes) {
  await page.shows('[...document.querySelectorAll("li")].map((one) => one.textContent)', notes);
  await page.shows('document.querySelector("#written").textContent', String(notes.length));
}

/** As somebody does who types into the form and presses the button. */
const write = (text) => `(() => {
  document.querySelector("input").value = ${JSON.stringify(text)};
  document.querySelector("button").click();
})()`;

test('a page of Vite with a backend of FastAPI, PostgreSQL and Redis writes rows and reads them, also after sleep', { skip: skipOf(FULLSTACK) }, async () => {
  await bringRedis(api);
  await bringPostgres(api);
  const sandbox = await project(FULLSTACK);
  const launched = await launch({ project: 'fullstack' });
  assert.deepEqual(launched.detection.parts.map(({ role, directory, framework, port }) => [role, directory, framework, port]), [['backend', 'backend', 'fastapi', 8000], ['frontend', 'frontend', 'vite', 5173]]);
  assert.deepEqual(launched.detection.services.map(({ name }) => name).sort(), ['postgres', 'redis']);
  assert.ok(launched.stages.every(({ status }) => status === 'complete'), JSON.stringify(launched.stages));
  const page = await open(launched);
  await page.shows(TEXT, 'first');
  await assertNotes(page, []);
  await page.evaluate(write('kept'));
  await assertNotes(page, ['kept']);
  assert.deepEqual((await answer(launched, '/api/notes')).json, { notes: ['kept'], written: 1 });
  await assertHot(page, sandbox, 'frontend/src/App.jsx');
  await assertNotes(page, ['kept']);
  assert.deepEqual(complaints(page), []);
  await page.go('about:blank');
  assert.equal((await api.verb(sandbox.id, 'stop')).status, 200);
  await until(async () => (await answer(launched, '/api/notes')).status === 200, { what: 'the backend after its sandbox woke' });
  const woken = await open(launched);
  await assertNotes(woken, ['kept']);
  await woken.evaluate(write('after sleep'));
  await assertNotes(woken, ['kept', 'after sleep']);
  assert.deepEqual(complaints(woken), []);
  await remove('fullstack', sandbox);
});

const PAGE = (word) => `require('node:http').createServer((q, s) => s.end(String(${word}))).listen(process.env.PORT, '127.0.0.1');\n`;
const PACKAGE = '{"name": "app", "version": "1.0.0", "dependencies": {"ms": "2.1.3"}}';
const PYTHON = `import os, itsdangerous
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(itsdangerous.__file__.encode())
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
`;
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const TRUST = { SSL_CERT_FILE: CERTIFICATES, REQUESTS_CA_BUNDLE: CERTIFICATES, PIP_CERT: CERTIFICATES };

/** Programs that install by their lock files, which they make themselves: files of an app, and the command for its lock. */
const INSTALLERS = [
  ...[['pnpm', 'pnpm-lock.yaml', 'npx --yes pnpm install --lockfile-only'], ['yarn', 'yarn.lock', 'YARN_NPM_REGISTRY_SERVER=$npm_config_registry YARN_NODE_LINKER=node-modules npx --yes yarn install && rm -rf node_modules'], ['bun', 'bun.lock', 'npx --yes bun install --lockfile-only']]
    .map(([manager, lock, command]) => ({ manager, lock, command, files: { 'package.json': PACKAGE, 'server.js': PAGE('require("ms")(60000)') }, shows: /^1m$/ })),
  { manager: 'uv', lock: 'uv.lock', command: 'uv lock', files: { 'pyproject.toml': '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["itsdangerous>=2"]\n' } },
  { manager: 'poetry', lock: 'poetry.lock', command: 'poetry lock', files: { 'pyproject.toml': `[tool.poetry]\nname = "app"\npackage-mode = false\n[tool.poetry.dependencies]\npython = ">=3.9,<4"\nitsdangerous = "^2"\n[[tool.poetry.source]]\nname = "simple"\nurl = "${pipIndex()}"\npriority = "primary"\n` } },
  { manager: 'pipenv', lock: 'Pipfile.lock', command: 'pipenv lock', files: { Pipfile: '[packages]\nitsdangerous = "*"\n' } },
];

test('pnpm, yarn, bun, uv, poetry and pipenv install what their lock files say', { skip: skipOf(FULLSTACK) }, async () => {
  const { network, env } = accessOf(FULLSTACK);
  const { id } = await api.create({ network, env: { ...env, ...TRUST, PATH: '/workspace/bin:/usr/bin:/bin' }, resources: { memory: '2Gi', cpu: 2, disk: '4Gi' } });
  const run = (command) => api.out(id, { command, timeout_ms: 300_000 });
  await run('cd /workspace && mkdir bin && python3 -m venv --system-site-packages --without-pip tools && tools/bin/python3 -m pip install -q uv poetry pipenv && ln -s /workspace/tools/bin/uv /workspace/tools/bin/poetry /workspace/tools/bin/pipenv bin/');
  for (const { manager, lock, command, files, shows = /^\/workspace\/app\/\.venv\// } of INSTALLERS) {
    await api.exec(id, `rm -rf ${APP} && mkdir ${APP}`);
    for (const [name, text] of Object.entries({ ...(!files['package.json'] && { 'main.py': PYTHON }), ...files })) await api.put(id, `${APP}/${name}`, text);
    await run(`cd ${APP} && ${command} && test -s ${lock}`);
    const launched = await launch({ sandbox: id });
    assert.equal(launched.detection.runtimes[0].package_manager, manager);
    assert.match((await answer(launched)).text, shows, manager);
  }
  await api.purge(id);
});

test('the browser leaves', () => browser?.close()); // it would keep its connections for a minute

finish();
