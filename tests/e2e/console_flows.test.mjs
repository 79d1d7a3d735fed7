// SPDX-License-Identifier: Apache-2.0
// What a person does with files, snapshots and settings of a sandbox, in the browser, by playwright.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import zlib from 'node:zlib';

import { isCalm, look, openPage } from './lib/playwright.mjs';
import { suite } from './lib/suite.mjs';
import { takeTurns } from './lib/views.mjs';
import { until } from './lib/wait.mjs';

const { api, finish } = await suite('console_flows', { width: 1 });
const origin = `http://127.0.0.1:${api.port}`;
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'flows-'));
const { browser, context, page } = await openPage(origin, api.token);
after(async () => { await browser.close(); fs.rmSync(home, { recursive: true, force: true }); });
takeTurns((view) => look(page, view));
const { id } = await api.create({ name: 'flows', idle_timeout_s: null });

const go = (tab) => page.goto(`${origin}/sandboxes/${id}/${tab}`);
const text = async (at) => (await api.files('GET', id, at)).text;
const exists = async (at) => (await api.request('HEAD', `/v1/sandboxes/${id}/files`, { query: { path: at } })).status === 200;
const tree = page.getByRole('region', { name: 'Files' });
const actions = (name) => page.getByRole('button', { name: `Actions of ${name}`, exact: true });
const confirm = (name) => page.getByRole('dialog').getByRole('button', { name, exact: true }).click();

/** A PNG of one colour: signature, header, one row for each line, end. */
function png(width, height, [r, g, b]) {
  const crcs = Array.from({ length: 256 }, (_, n) => { let c = n; for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1; return c >>> 0; });
  const crc = (data) => { let c = 0xffffffff; for (const byte of data) c = crcs[(c ^ byte) & 255] ^ (c >>> 8); return (c ^ 0xffffffff) >>> 0; };
  const chunk = (kind, data) => { const body = Buffer.concat([Buffer.from(kind), data]); const out = Buffer.alloc(body.length + 8); out.writeUInt32BE(data.length, 0); body.copy(out, 4); out.writeUInt32BE(crc(body), body.length + 4); return out; };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0); head.writeUInt32BE(height, 4); head[8] = 8; head[9] = 2;
  const row = Buffer.from([0, ...Array.from({ length: width }, () => [r, g, b]).flat()]);
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', zlib.deflateSync(Buffer.concat(Array(height).fill(row)))), chunk('IEND', Buffer.alloc(0))]);
}

/** Drops files onto something, as the window manager would. */
async function drop(target, files) {
  const transfer = await page.evaluateHandle((list) => {
    const data = new DataTransfer();
    for (const { name, content, size } of list) data.items.add(new File([content ?? new Uint8Array(size)], name));
    return data;
  }, files);
  await target.dispatchEvent('dragover', { dataTransfer: transfer });
  await target.dispatchEvent('drop', { dataTransfer: transfer });
}

test('a directory and a file are made, and files dropped onto the directory land in it', async () => {
  await go('files');
  await page.getByRole('button', { name: 'New directory' }).click();
  await page.getByLabel('Name').fill('dropped');
  await confirm('Make');
  await page.getByRole('button', { name: 'dropped', exact: true }).waitFor();
  await drop(page.getByRole('button', { name: 'dropped', exact: true }), [{ name: 'one.txt', content: 'one' }, { name: '<img src=x onerror=window.canary=1>', content: 'two' }]);
  await until(() => exists('/workspace/dropped/<img src=x onerror=window.canary=1>'), { what: 'both are there' });
  assert.equal(await text('/workspace/dropped/one.txt'), 'one');
  await page.getByRole('button', { name: 'dropped', exact: true }).click();
  await page.getByRole('button', { name: /^one\.txt/ }).waitFor();
  assert.equal(await page.evaluate(() => window.canary ?? null), null);
  isCalm(page);
});

test('a directory that is dropped is uploaded with all that is in it', async () => {
  fs.mkdirSync(path.join(home, 'site/css/none'), { recursive: true });
  fs.writeFileSync(path.join(home, 'site/index.html'), '<h1>site</h1>');
  fs.writeFileSync(path.join(home, 'site/css/a.css'), 'b {}');
  const client = await context.newCDPSession(page);
  const { x, y } = await tree.getByText('Drop files here').boundingBox();
  for (const type of ['dragEnter', 'dragOver', 'drop']) await client.send('Input.dispatchDragEvent', { type, x: x + 5, y: y + 5, data: { items: [], files: [path.join(home, 'site')], dragOperationsMask: 1 } });
  await until(() => exists('/workspace/dropped/site/css/a.css'), { what: 'what lies deepest is there' });
  await until(async () => await text('/workspace/dropped/site/index.html') === '<h1>site</h1>', { what: 'and the rest' });
  isCalm(page);
});

test('an upload tells how far it is, and is the file that was dropped', async () => {
  const client = await context.newCDPSession(page);
  await client.send('Network.enable');
  await client.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 150_000 });
  await drop(tree, [{ name: 'large.bin', size: 600_000 }]);
  await page.waitForFunction(() => { const now = Number(document.querySelector('.uploads [role="meter"]')?.getAttribute('aria-valuenow')); return now > 0 && now < 100; });
  await client.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await page.waitForFunction(() => document.querySelector('.uploads [role="meter"]') === null);
  const [found] = (await api.request('GET', `/v1/sandboxes/${id}/files/list`, { query: { path: '/workspace/dropped' } })).json.entries.filter(({ name }) => name === 'large.bin');
  assert.equal(found?.size, 600_000, 'what is dropped beside directories goes into the one that was chosen');
  isCalm(page);
});

test('a file is downloaded as it is, and a directory as a tar with all that is in it', async () => {
  await actions('one.txt').click();
  let [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Download', exact: true }).click()]);
  assert.equal(file.suggestedFilename(), 'one.txt');
  assert.equal(fs.readFileSync(await file.path(), 'utf8'), 'one');
  await actions('dropped').click();
  [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Download as tar' }).click()]);
  assert.equal(file.suggestedFilename(), 'dropped.tar');
  const names = execFileSync('tar', ['-tf', await file.path()], { encoding: 'utf8' });
  assert.match(names, /one\.txt/);
  assert.match(names, /large\.bin/);
  isCalm(page);
});

test('a file is renamed and deleted, after a question each', async () => {
  await actions('one.txt').click();
  await page.getByRole('menuitem', { name: 'Rename or move' }).click();
  await page.getByLabel('New path').fill('/workspace/dropped/first.txt');
  await confirm('Rename');
  await page.getByRole('button', { name: /^first\.txt/ }).waitFor();
  assert.equal(await text('/workspace/dropped/first.txt'), 'one');
  await actions('first.txt').click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await confirm('Delete');
  await page.getByRole('button', { name: /^first\.txt/ }).waitFor({ state: 'detached' });
  assert.equal(await exists('/workspace/dropped/first.txt'), false);
  page.complaints.length = 0; // the browser itself tells of the 404 of what was open
});

test('a file is edited with colours and saved by a key; what changed meanwhile is overwritten only after a question', async () => {
  await api.tryPut(id, '/workspace/main.py', 'def answer():\n    return 42\n');
  await go('files?path=/workspace/main.py');
  const editor = page.getByRole('textbox', { name: 'Editor of main.py' });
  await editor.click();
  await page.waitForFunction(() => new Set([...document.querySelectorAll('.cm-line span')].map((one) => getComputedStyle(one).color)).size > 2);
  await page.keyboard.press('Control+Home');
  await page.keyboard.type('# mine ');
  await page.getByText('Not saved').waitFor();
  await page.keyboard.press('Control+s');
  await page.getByText('main.py is saved').waitFor();
  assert.match(await text('/workspace/main.py'), /^# mine def answer/);
  await api.tryPut(id, '/workspace/main.py', 'somebody else\n');
  await editor.click();
  await page.keyboard.type('again ');
  await page.keyboard.press('Control+s');
  await page.getByRole('dialog', { name: 'The file has changed meanwhile' }).waitFor();
  await confirm('Cancel');
  assert.equal(await text('/workspace/main.py'), 'somebody else\n');
  await page.getByRole('button', { name: 'Save' }).click();
  await confirm('Overwrite');
  await until(async () => (await text('/workspace/main.py')).includes('again '), { what: 'it is overwritten' });
  await page.getByText('Not saved').waitFor({ state: 'hidden' });
  page.complaints.length = 0; // the browser itself tells of the 412
});

test('what is typed while a file is being saved is still not saved', async () => {
  await api.tryPut(id, '/workspace/slow.txt', '');
  await go('files?path=/workspace/slow.txt');
  let answer;
  await page.route('**/files?path=*slow.txt', async (route) => {
    if (route.request().method() === 'PUT') await new Promise((resolve) => { answer = resolve; });
    await route.continue();
  });
  await page.getByRole('textbox', { name: 'Editor of slow.txt' }).click();
  await page.keyboard.type('one');
  await page.keyboard.press('Control+s');
  await until(() => answer, { what: 'it is being saved' });
  await page.keyboard.type(' two');
  answer();
  await page.getByText('slow.txt is saved').waitFor();
  assert.equal(await text('/workspace/slow.txt'), 'one');
  await page.getByText('Not saved').waitFor();
  await page.unrouteAll({ behavior: 'wait' });
  await page.keyboard.press('Control+s');
  await until(async () => await text('/workspace/slow.txt') === 'one two', { what: 'the rest is saved' });
  await page.getByText('Not saved').waitFor({ state: 'hidden' });
  isCalm(page);
});

test('what is not saved is not lost by a click on another file', async () => {
  await api.tryPut(id, '/workspace/other.txt', 'other');
  await go('files?path=/workspace/main.py');
  await page.getByRole('textbox', { name: 'Editor of main.py' }).click();
  await page.keyboard.type('unsaved ');
  await page.getByText('Not saved').waitFor();
  await page.getByRole('button', { name: /^other\.txt/ }).click();
  await page.getByRole('dialog', { name: 'Leave without saving?' }).waitFor();
  await confirm('Cancel');
  await page.getByText('Not saved').waitFor();
  await page.getByRole('button', { name: /^other\.txt/ }).click();
  await confirm('Leave');
  await page.getByRole('textbox', { name: 'Editor of other.txt' }).waitFor();
  isCalm(page);
});

test('a picture is shown as one, a PDF in the browser’s own viewer, and what is neither can be downloaded', async () => {
  await api.tryPut(id, '/workspace/red.png', png(60, 40, [200, 30, 30]));
  await go('files?path=/workspace/red.png');
  await page.waitForFunction(() => { const one = document.querySelector('.viewer img'); return one?.complete && one.naturalWidth === 60 && one.naturalHeight === 40; });
  const pdf = '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n';
  await api.tryPut(id, '/workspace/paper.pdf', pdf);
  await go('files?path=/workspace/paper.pdf');
  const frame = page.locator('.viewer iframe');
  await frame.waitFor();
  assert.match(await frame.getAttribute('src'), /^blob:/);
  await until(() => page.frames().some((one) => one.url().startsWith('chrome-extension://')), { what: 'the viewer shows it' });
  isCalm(page);
  await api.tryPut(id, '/workspace/data.bin', Buffer.from([0, 1, 2, 255]));
  await go('files?path=/workspace/data.bin');
  await page.getByText('Not a text').waitFor();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()]);
  assert.deepEqual([...fs.readFileSync(await file.path())], [0, 1, 2, 255]);
  isCalm(page);
});

test('a snapshot is taken, what changed since is listed, one goes back to it, and undoes nothing else', async () => {
  await api.tryPut(id, '/workspace/kept.txt', 'before');
  await go('snapshots');
  await page.getByRole('button', { name: 'Take a snapshot' }).first().click();
  await page.getByLabel('Name').fill('before the change');
  await confirm('Take a snapshot');
  await page.getByRole('cell', { name: 'before the change' }).waitFor();
  await api.tryPut(id, '/workspace/kept.txt', 'after');
  await api.tryPut(id, '/workspace/new.txt', 'new');
  await page.getByRole('button', { name: 'Changes' }).click();
  await page.getByRole('heading', { name: 'Changed since before the change' }).waitFor();
  const row = (name) => page.getByRole('row').filter({ hasText: name });
  await row('/workspace/kept.txt').getByText('modified').waitFor();
  await row('/workspace/new.txt').getByText('added').waitFor();
  await page.getByLabel('Search in paths').fill('kept');
  await row('/workspace/new.txt').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Go back' }).click();
  await confirm('Go back');
  await page.getByText('The files are back').waitFor();
  assert.equal(await text('/workspace/kept.txt'), 'before');
  assert.equal(await exists('/workspace/new.txt'), false);
  page.complaints.length = 0;
});

test('a fork is another sandbox with the same files; a snapshot goes after a question', async () => {
  await go('snapshots');
  await page.getByRole('button', { name: 'Fork' }).click();
  await page.waitForURL((url) => /^\/sandboxes\/[0-9a-z]{26}$/.test(url.pathname) && !url.pathname.endsWith(id));
  const fork = new URL(page.url()).pathname.split('/').at(-1);
  api.made?.add(fork);
  assert.equal((await api.files('GET', fork, '/workspace/kept.txt')).text, 'before');
  await api.purge(fork);
  await page.goto(`${origin}/snapshots`);
  await page.getByRole('cell', { name: 'before the change' }).waitFor();
  await page.getByRole('button', { name: 'Delete the snapshot' }).click();
  await confirm('Delete');
  await page.getByText('No snapshots').waitFor();
  assert.deepEqual((await api.request('GET', '/v1/snapshots')).json.snapshots, []);
  page.complaints.length = 0; // a 404 of what is gone
});

test('settings are changed, and only those; what is refused says why beside the form', async () => {
  await go('settings');
  const before = await api.get(id);
  await page.getByLabel('Name', { exact: true }).fill('renamed');
  await page.getByLabel('Memory').fill('768Mi');
  await page.getByLabel('Stops when idle for (s)').fill('4321');
  await page.getByLabel('Labels').fill('team=core\nnote=<b>hostile</b>');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The settings are changed').waitFor();
  const after = await api.get(id);
  assert.deepEqual([after.name, after.resources.memory, after.idle_timeout_s, after.labels], ['renamed', '768Mi', 4321, { team: 'core', note: '<b>hostile</b>' }]);
  assert.deepEqual([after.resources.cpu, after.resources.disk, after.private, after.lifetime_s], [before.resources.cpu, before.resources.disk, before.private, before.lifetime_s]);
  await page.getByRole('heading', { name: 'renamed' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Save' }).isDisabled(), true);
  await page.getByLabel('Memory').fill('lots');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').filter({ hasText: 'resources.memory' }).waitFor();
  assert.equal((await api.get(id)).resources.memory, '768Mi');
  page.complaints.length = 0; // the browser itself tells of the 400
});

test('bulk actions of the list act on those that are chosen', async () => {
  const others = await Promise.all(['bulk-a', 'bulk-b'].map((name) => api.create({ name })));
  await page.goto(`${origin}/?q=bulk-`);
  for (const name of ['bulk-a', 'bulk-b']) await page.getByRole('checkbox', { name: `Choose ${name}` }).check();
  await page.getByText('2 chosen').waitFor();
  await page.getByRole('table', { name: 'Sandboxes' }).getByRole('button', { name: 'Stop' }).click();
  await until(async () => (await Promise.all(others.map(({ id: one }) => api.get(one)))).every(({ status }) => status === 'stopped'), { what: 'both are stopped' });
  assert.equal((await api.get(id)).status, 'running');
  for (const { id: one } of others) await api.purge(one);
  page.complaints.length = 0;
});

test('the sandbox goes, and the browser leaves', async () => {
  await api.purge(id);
  await browser.close();
});

finish();
