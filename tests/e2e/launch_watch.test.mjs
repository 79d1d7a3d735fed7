// SPDX-License-Identifier: Apache-2.0
// `sandlot launch --watch`: edits of a directory reach the running app.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { Chromium } from './lib/chromium.mjs';
import { commandLine } from './lib/cli.mjs';
import { installed } from './lib/framework.mjs';
import { REPOSITORY } from './lib/instance.mjs';
import { Launches } from './lib/launches.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('launch-watch', { width: 4 });
const { start, sandlot } = commandLine(instance);
const launches = new Launches(api);
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'watch-'));
after(() => fs.rmSync(home, { recursive: true, force: true }));

/** A directory with these files. */
function directory(name, files) {
  for (const [file, text] of Object.entries(files)) write(path.join(home, name), file, text);
  return path.join(home, name);
}
function write(dir, file, text) {
  fs.mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
  fs.writeFileSync(path.join(dir, file), text);
}

/** The command under way; what it has said so far. */
function watch(dir) {
  const child = start(['launch', '--watch', dir]);
  const says = (text) => until(() => child.said.includes(text), { what: `it says ${text}` });
  return { child, says };
}
const newest = async (name) => (await api.request('GET', '/v1/launches', { query: { project: name, limit: 1 } })).json.launches[0];
const shows = (launched, text, at) => until(async () => (await launches.page(launched, at)).includes(text), { what: `the preview shows ${text}` });
const files = async (name) => (await api.request('GET', `/v1/projects/${name}/files`)).json.files.map((one) => one.path);

test('edits, new directories and removals reach the preview; node_modules and .git do not; Ctrl-C leaves the app', async () => {
  const dir = directory('page', { 'index.html': 'first', 'old/gone.txt': 'x', 'single.txt': 'x' });
  const { child, says } = watch(dir);
  await says('watching');
  const launched = await newest('page');
  launches.assertRuns(launched);
  assert.match(child.shown(), /^http/);
  write(dir, 'index.html', 'second');
  await says('synced index.html (6 B)');
  await shows(launched, 'second');
  write(dir, 'deep/er/new.txt', 'new one');
  await says('synced deep/er/new.txt');
  await shows(launched, 'new one', '/deep/er/new.txt');
  // As editors do: another file takes its name.
  write(dir, '.index.html.tmp', 'third');
  fs.renameSync(path.join(dir, '.index.html.tmp'), path.join(dir, 'index.html'));
  await says('synced index.html (5 B)');
  await shows(launched, 'third');
  fs.rmSync(path.join(dir, 'old'), { recursive: true });
  fs.rmSync(path.join(dir, 'single.txt'));
  await says('removed single.txt');
  await until(async () => (await api.exec(launched.sandbox_id, 'ls -A /workspace/app/old /workspace/app/single.txt 2>/dev/null')).stdout === '', { what: 'they are gone' });
  write(dir, 'node_modules/x/index.js', 'x');
  write(dir, '.git/HEAD', 'x');
  write(dir, 'last.txt', 'x');
  await says('synced last.txt');
  assert.deepEqual((await files('page')).sort(), ['deep/er/new.txt', 'index.html', 'last.txt']);
  assert.doesNotMatch(child.said, /node_modules|\.git/);
  assert.equal((await newest('page')).id, launched.id, 'nothing was launched again');
  child.kill('SIGINT');
  assert.equal((await child.result).code, 130);
  assert.equal(await launches.page(launched), 'third');
  await launches.remove(launched, 'page');
});

test('an edit of a Vite app shows in the browser at once, without a reload', async (t) => {
  const archive = await installed(t, 'vite');
  if (!archive) return;
  const sources = path.join(REPOSITORY, 'tests/e2e/apps/vite');
  const dir = directory('hot', { 'sandlot.json': '{"frontend": {"install": "test -x node_modules/.bin/vite"}}', ...Object.fromEntries(fs.readdirSync(sources).map((name) => [name, fs.readFileSync(path.join(sources, name), 'utf8')])) });
  assert.equal((await api.request('POST', '/v1/projects', { json: { name: 'hot' } })).status, 201);
  const made = await api.request('POST', '/v1/projects/hot/sandboxes', { json: { resources: { memory: '2Gi', disk: '4Gi' } } });
  const put = await api.request('PUT', `/v1/sandboxes/${made.json.id}/files/archive`, { query: { path: '/workspace/app' }, body: fs.createReadStream(archive, { highWaterMark: 1 << 20 }), headers: { 'content-type': 'application/x-tar' } });
  assert.ok(put.status < 300, put.text);
  const { child, says } = watch(dir);
  await says('watching');
  const launched = await newest('hot');
  launches.assertRuns(launched);
  assert.equal(launched.sandbox_id, made.json.id);
  const browser = new Chromium();
  try {
    const page = await browser.open(/http\S+/.exec(child.shown())[0]);
    const text = 'document.querySelector("#text")?.textContent';
    await page.shows(text, 'first');
    await until(() => page.frames > 0, { what: 'the page listens for changes' });
    await page.evaluate('window.marker = "kept"');
    for (const word of ['second', 'third']) {
      write(dir, 'message.js', `export const text = '${word}';\n`);
      await page.shows(text, word);
    }
    assert.equal(await page.evaluate('window.marker'), 'kept');
    assert.deepEqual([...page.errors, ...page.console].filter((error) => !/favicon/.test(error)), []);
  } finally {
    await browser.close();
  }
  assert.equal((await newest('hot')).id, launched.id, 'nothing was launched again');
  child.kill('SIGINT');
  await child.result;
  await launches.remove(launched, 'hot');
});

test('a launch again makes the project what the directory is now, and leaves what came otherwise', async () => {
  const dir = directory('again', { 'index.html': 'first', 'old.txt': 'x', 'name/deep.txt': 'x', 'taken.txt': 'x' });
  assert.equal((await sandlot(['launch', dir])).code, 0);
  await launches.upload('again', { 'mine.txt': 'uploaded', 'taken.txt': 'uploaded over it' });
  for (const gone of ['old.txt', 'name', 'taken.txt']) fs.rmSync(path.join(dir, gone), { recursive: true });
  write(dir, 'name', 'a file now');
  const again = await sandlot(['launch', dir]);
  assert.equal(again.code, 0, again.stderr);
  assert.deepEqual([...again.stderr.matchAll(/removed (.*)$/gm)].map(([, name]) => name).sort(), ['name/deep.txt', 'old.txt'], again.stderr);
  assert.deepEqual((await files('again')).sort(), ['index.html', 'mine.txt', 'name', 'taken.txt']);
  const launched = await newest('again');
  assert.equal((await api.exec(launched.sandbox_id, 'cd /workspace/app && ls && cat name')).stdout, 'index.html\nmine.txt\nname\ntaken.txt\na file now');
  const before = (await api.request('GET', '/v1/projects/again')).json;
  assert.equal(before.files, 4);
  const empty = path.join(home, 'empty');
  fs.mkdirSync(empty);
  const refused = await sandlot(['launch', '--project', 'again', empty]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /the directory has no files/);
  assert.equal((await files('again')).length, 4, 'a directory without files takes nothing away');
  await launches.remove(launched, 'again');
});

test('a change of packages or of a backend launches again, also one that mends an app that failed', async () => {
  const server = (text) => `require('node:http').createServer((q, s) => s.end(${JSON.stringify(text)})).listen(process.env.PORT);\n`;
  const dir = directory('server', { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': 'let a = = 1;' });
  const { child, says } = watch(dir);
  await says('watching');
  assert.match(child.said, /SyntaxCheck: .*server\.js:1/);
  write(dir, 'server.js', server('mended'));
  await until(async () => (await newest('server')).status === 'succeeded', { what: 'the launch succeeds' });
  await shows(await newest('server'), 'mended');
  const before = await newest('server');
  write(dir, 'package.json', '{"scripts":{"start":"node other.js"}}');
  write(dir, 'other.js', server('other'));
  await until(async () => { const now = await newest('server'); return now.id !== before.id && now.status === 'succeeded'; }, { what: 'it is launched again' });
  await shows(await newest('server'), 'other');
  child.kill('SIGTERM');
  await child.result;
  await launches.remove(before, 'server');
});

finish();
