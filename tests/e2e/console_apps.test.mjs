// SPDX-License-Identifier: Apache-2.0
// The pages of the console that make apps of files: projects and launches.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { Console } from './lib/console.mjs';
import { suite } from './lib/suite.mjs';
import { takeTurns } from './lib/views.mjs';
import { until } from './lib/wait.mjs';

const { api, finish } = await suite('console_apps', { width: 1 });
const browser = new Chromium();
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'upload-'));
after(async () => { await browser.close(); fs.rmSync(home, { recursive: true }); });
const console = await Console.open(browser, `http://127.0.0.1:${api.port}`);
const { page } = console;
takeTurns((view) => console.look(view));
await console.signIn(api.token);
await console.says('No sandboxes yet');
page.errors.length = 0; // the browser itself tells of the 401 before

const SERVER = "require('node:http').createServer((request, response) => response.end('hello')).listen(process.env.PORT, '127.0.0.1', () => console.log('the shop is open'));\n";
const CANARY = '"><img src=x onerror="window.canary=1">.js';
const made = {};

/** A file to be uploaded. */
function write(name, content) {
  fs.writeFileSync(path.join(home, name), content);
  return path.join(home, name);
}

const files = async () => (await api.request('GET', '/v1/projects/shop/files')).json.files.map((file) => file.path);

test('a project is made in the dialog, and several files are uploaded at once, whatever they are called', async () => {
  await console.go('/projects');
  await console.says('No projects yet');
  await console.button('New project');
  await console.fill('Name', 'shop');
  await console.fill('Environment', 'GREETING=hello');
  await console.button('Create');
  await page.shows('location.pathname', '/projects/shop');
  await console.says('No files yet');
  await console.choose('Upload files', [write('server.js', SERVER), write('notes.txt', 'some notes'), write(CANARY, '')]);
  await console.says('3 files');
  await console.says('notes.txt');
  assert.deepEqual((await files()).sort(), [CANARY, 'notes.txt', 'server.js'].sort());
  assert.deepEqual((await api.request('GET', '/v1/projects/shop')).json.defaults.environment_config.env_vars, { GREETING: 'hello' });
  assert.equal(await page.evaluate('window.canary ?? null'), null);
  console.isCalm();
});

test('a file is renamed and deleted, each after a question; what others upload is seen', async () => {
  await console.click('button', 'Actions of notes.txt');
  await console.button('Rename or move');
  await console.fill('New path', 'docs/notes.txt');
  await console.click('.dialog footer button', 'Rename');
  await console.says('docs/notes.txt');
  await console.click('button', `Actions of ${CANARY}`);
  await console.click('[role="menuitem"]', 'Delete');
  await console.click('.dialog footer button', 'Delete');
  await until(async () => (await files()).length === 2, { what: 'the file is gone' });
  assert.deepEqual(await files(), ['docs/notes.txt', 'server.js']);
  await api.request('PUT', '/v1/projects/shop/files', { query: { path: 'from-elsewhere.txt' }, body: 'x' });
  await console.says('from-elsewhere.txt');
  assert.equal(await page.evaluate('window.canary ?? null'), null);
  console.isCalm();
});

test('a file is downloaded as it is', async () => {
  const { files: list } = (await api.request('GET', '/v1/projects/shop/files')).json;
  const { id } = list.find((file) => file.path === 'server.js');
  const project = (await api.request('GET', '/v1/projects/shop')).json;
  await page.evaluate('HTMLAnchorElement.prototype.click = function () { window.fetched = [this.getAttribute("href"), this.download]; }, 1');
  await console.click('button', 'Actions of server.js');
  await console.button('Download');
  await page.shows('JSON.stringify(window.fetched)', JSON.stringify([`/v1/projects/${project.id}/files/${id}`, 'server.js']));
  assert.equal(await page.evaluate('fetch(window.fetched[0]).then((answer) => answer.text())'), SERVER);
  console.isCalm();
});

test('the report says what the files are, and what would keep them from running', async () => {
  await console.go('/projects/shop');
  await console.says('port 3000');
  await api.request('PUT', '/v1/projects/shop/files', { query: { path: 'sandlot.json' }, body: '{"frontend": false, "services": [], "backend": {"port": 3000}}' });
  await page.send('Page.reload');
  await console.says('backend.port: 3000, found was 3000 (sandlot.json)');
  await console.says('frontend: false, found was nothing (sandlot.json)');
  await api.request('DELETE', '/v1/projects/shop/files/sandlot.json');
  await page.shows('document.body.innerText.includes("sandlot.json")', false); // it moves what is below
  await console.button('Check the files');
  await page.shows('/It can be launched|Warning|Note/.test(document.body.innerText)', true);
  console.isCalm();
});

test('a launch goes through its eight stages before one’s eyes, to a preview', async () => {
  await console.click('.page-head button', 'Launch');
  await console.button('Start the launch');
  await page.shows('/^\\/launches\\/[0-9a-z]{26}$/.test(location.pathname)', true);
  made.launch = (await page.evaluate('location.pathname')).split('/').at(-1);
  await console.says('The app answers through its preview.');
  assert.equal(await page.evaluate('document.querySelectorAll(".steps > li").length'), 8);
  assert.equal(await page.evaluate('document.querySelectorAll(".steps > li.failed, .steps > li.pending, .steps > li.running").length'), 0);
  const launch = (await api.request('GET', `/v1/launches/${made.launch}`)).json;
  assert.equal(launch.status, 'succeeded');
  made.sandbox = launch.sandbox_id;
  await console.says(launch.preview_url);
  await console.click('.steps > li:nth-child(7) button[aria-expanded="false"]');
  await page.shows('document.querySelector(".steps > li:nth-child(7) .output")?.innerText.includes("node")', true);
  await page.send('Page.reload');
  await page.shows('document.querySelectorAll(".steps > li.complete").length > 3', true);
  console.isCalm();
});

test('a part of the app shows its own log, whatever else runs in the sandbox', async () => {
  const other = await api.request('POST', `/v1/sandboxes/${made.sandbox}/exec`, { json: { command: 'echo "something else"; exec sleep 1000', background: true } });
  assert.ok(other.status < 300, other.text);
  await console.go(`/sandboxes/${made.sandbox}/members`);
  await page.shows('document.querySelector(".member-log .output")?.innerText.includes("the shop is open")', true);
  assert.equal(await page.evaluate('document.querySelector(".member-log").innerText.includes("something else")'), false);
  await console.click('tbody button', 'Primary');
  await page.shows('document.querySelector(".member-log .output")?.innerText.includes("something else")', true);
  console.isCalm();
});

test('a launch that fails says in which stage and why, and journeys count both', async () => {
  await api.request('PUT', '/v1/projects/shop/files', { query: { path: 'server.js' }, body: 'this is no script (' });
  const begun = await api.request('POST', '/v1/launches', { json: { project: 'shop' } });
  assert.equal(begun.status, 202, begun.text);
  await console.go(`/launches/${begun.json.id}`);
  await console.says('A stage failed');
  await page.shows('document.querySelector(".steps > li.failed h3")?.innerText', 'Check the syntax');
  await console.says('Try again from here');
  await console.go('/launches');
  await console.says('50 %');
  await page.shows('document.querySelectorAll(".stage-dots").length', 2);
  await console.go('/launches?status=failed');
  await page.shows('document.querySelectorAll(".stage-dots").length', 1);
  console.isCalm();
});

test('these pages have no flaw that axe knows, in both themes, and nothing sticks out at 320 pixels', async () => {
  await console.isFit(['/projects', '/projects/shop', '/launches', `/launches/${made.launch}`]);
  console.isCalm();
});

test('a project that has a sandbox stays; without one it goes, after a question', async () => {
  const remove = async () => {
    await console.go('/projects/shop');
    await console.click('.page-head button', 'Delete');
    await console.says('Delete project shop?');
    await console.click('.dialog footer button', 'Delete');
  };
  await remove();
  await console.says('That did not work');
  page.errors.length = 0; // the browser itself tells of the 409
  await api.purge(made.sandbox);
  await remove();
  await console.says('No projects yet');
  assert.equal((await api.request('GET', '/v1/projects/shop')).status, 404);
  await browser.close();
});

finish();
