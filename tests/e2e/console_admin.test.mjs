// SPDX-License-Identifier: Apache-2.0
// What an administrator does in the browser: templates, tokens, secrets, owners and quotas, the audit log, the host; and
// all that matters with the keyboard alone.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive, registryServer } from './lib/images.mjs';
import { ORDINARY, makeToken } from './lib/owners.mjs';
import { isCalm, look, openPage } from './lib/playwright.mjs';
import { suite } from './lib/suite.mjs';
import { takeTurns } from './lib/views.mjs';
import { until } from './lib/wait.mjs';

const images = {};
const gates = new Map(); // by the digest that is held back
const registry = await registryServer(images, { answer: (request, response, at) => gates.get(at.split('/').at(-1))?.(response) });
const { api, finish } = await suite('console_admin', { width: 1, args: ['--registry', registry.host, '--registry-prefix', '', '--registry-plain', registry.host] });
const origin = `http://127.0.0.1:${api.port}`;
const { browser, page } = await openPage(origin, api.token);
after(async () => { await browser.close(); await registry.close(); });
takeTurns((view) => look(page, view));

const go = (path) => page.goto(`${origin}${path}`);
const dialog = page.getByRole('dialog');
const confirm = (name) => dialog.getByRole('button', { name, exact: true }).click();
const base = busybox();

/** An image whose own layer the registry sends in halves: the second when it is told to. */
function halved(name) {
  const made = image([base, [{ name: 'filling', data: Buffer.alloc(3 << 20, 7) }]], { compress: (data) => data });
  const { digest } = made.manifest.layers[1];
  const blob = made.blobs.get(digest);
  let rest;
  images[name] = made;
  gates.set(digest, (response) => {
    response.writeHead(200, { 'content-length': blob.length }).write(blob.subarray(0, blob.length / 2));
    rest = () => { gates.delete(digest); response.end(blob.subarray(blob.length / 2)); };
    return true;
  });
  return { isHalf: () => rest !== undefined, finish: () => rest() };
}

test('an image is fetched as a template, and the page shows how far that is', async () => {
  const pull = halved('tool:1');
  await go('/templates');
  await page.getByRole('button', { name: 'New template' }).click();
  await page.getByLabel('Name', { exact: true }).fill('tool');
  await page.getByLabel('Image', { exact: true }).fill(`${registry.host}/tool:1`);
  await confirm('Build');
  await page.waitForURL('**/templates/tool');
  await page.getByText('Building').first().waitFor();
  await until(pull.isHalf, { what: 'half of it is sent' });
  const meter = page.getByRole('meter', { name: 'Progress' });
  await meter.waitFor();
  await until(async () => { const now = Number(await meter.getAttribute('aria-valuenow')); return now > 0 && now < 100; }, { every: 200, what: 'the meter shows a part' });
  pull.finish();
  await page.getByText('Ready', { exact: true }).waitFor();
  await meter.waitFor({ state: 'detached' });
  assert.equal((await api.request('GET', '/v1/templates/tool')).json.status, 'ready');
  isCalm(page);
});

test('a Dockerfile is built with its log before one’s eyes, which is only ever text', async () => {
  const put = await api.request('PUT', '/v1/templates/base/archive', { body: layoutArchive(image([base])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  await go('/templates');
  await page.getByRole('button', { name: 'New template' }).click();
  await page.getByLabel('Name', { exact: true }).fill('built');
  await page.getByRole('button', { name: 'Dockerfile' }).click();
  await page.getByRole('textbox', { name: 'Dockerfile' }).fill('FROM base\nRUN echo "<img src=x onerror=window.canary=1>"; until [ -e /workspace/go ]; do sleep 0.1; done; echo the end of it\n');
  await confirm('Build');
  await page.waitForURL('**/templates/built');
  const log = page.getByLabel('Output');
  await log.getByText('<img src=x onerror=window.canary=1>').first().waitFor();
  assert.equal((await api.request('GET', '/v1/templates/built')).json.status, 'building', 'it is seen while it is built');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Failed').or(page.getByText('Not fetched')).first().waitFor();
  assert.equal(await page.evaluate(() => window.canary ?? null), null);
  isCalm(page);
});

test('a template goes after a question', async () => {
  for (const name of ['built', 'base', 'tool']) {
    await go(`/templates/${name}`);
    await page.getByRole('button', { name: 'Delete' }).click();
    await confirm('Delete');
    await page.waitForURL('**/templates');
    assertError(await api.request('GET', `/v1/templates/${name}`), 404);
  }
  await api.request('POST', '/v1/templates/prune', { json: {} });
  page.complaints.length = 0;
});

test('a token is shown once, does what its scopes say, and is nothing after it was revoked', async () => {
  await go('/tokens');
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByLabel('Name', { exact: true }).fill('for-a-script');
  await page.getByLabel('User').fill('ann');
  await page.getByLabel('Organization').fill('acme');
  await page.getByRole('checkbox', { name: /^run:/ }).uncheck();
  await confirm('Make the token');
  const secret = await dialog.getByRole('region', { name: 'Token' }).innerText();
  assert.match(secret, /^slt_/);
  const own = (method, path, more) => api.request(method, path, { token: secret, ...more });
  assert.deepEqual((await own('GET', '/v1/login')).json.scopes, ['read', 'files', 'manage']);
  assertError(await own('GET', '/v1/owners'), 403);
  await confirm('I have it');
  const row = page.getByRole('row').filter({ hasText: 'for-a-script' });
  await row.getByText('acme/ann').waitFor();
  assert.ok(!(await page.content()).includes(secret), 'it is nowhere in the page');
  await page.reload();
  await row.waitFor();
  assert.ok(!(await page.content()).includes(secret));
  await row.getByRole('button', { name: 'Revoke for-a-script' }).click();
  await confirm('Revoke');
  await row.waitFor({ state: 'detached' });
  assertError(await own('GET', '/v1/login'), 401);
  isCalm(page);
});

test('a secret is kept under its name, and its value is shown nowhere', async () => {
  await go('/secrets');
  await page.getByText('No secrets').waitFor();
  await page.getByRole('button', { name: 'New secret' }).click();
  await page.getByLabel('Name', { exact: true }).fill('model');
  await page.getByLabel('Value').fill('very-hidden-value');
  await page.getByLabel('Server', { exact: true }).fill('https://api.example.test');
  await page.getByLabel('Header').fill('X-Api-Key');
  await confirm('Save');
  await page.getByRole('cell', { name: 'https://api.example.test' }).waitFor();
  assert.ok(!(await page.content()).includes('very-hidden-value'));
  assert.deepEqual((await api.request('GET', '/v1/secrets')).json.secrets.map(({ name, header }) => [name, header]), [['model', 'X-Api-Key']]);
  await page.getByRole('button', { name: 'Delete model?' }).click();
  await confirm('Delete');
  await page.getByText('No secrets').waitFor();
  assert.deepEqual((await api.request('GET', '/v1/secrets')).json.secrets, []);
  isCalm(page);
});

test('an administrator sees all owners with what they have, and gives one a quota', async () => {
  const { id, token } = await makeToken(api, { organization: 'acme', user: 'bob', scopes: ORDINARY });
  const { json: sandbox } = await api.request('POST', '/v1/sandboxes', { json: {}, token });
  await go('/quotas');
  const row = page.getByRole('row').filter({ hasText: 'acme/bob' });
  await row.waitFor();
  assert.match((await row.innerText()).replace(/\s+/g, ' '), /^acme\/bob 1 1 1 1 GiB /);
  await row.getByRole('button', { name: 'Change the quotas of acme/bob' }).click();
  await page.getByLabel('Running').fill('4');
  await confirm('Save');
  await row.getByText('/ 4').waitFor();
  assert.equal((await api.request('GET', '/v1/quotas/acme/bob')).json.limits.running, 4);
  await row.getByRole('button', { name: 'Change the quotas of acme/bob' }).click();
  await confirm('Use the defaults');
  await page.getByRole('dialog').waitFor({ state: 'hidden' }); // rows behind it count for nobody
  await row.getByText('/ 4').waitFor({ state: 'detached' });
  assert.equal((await api.request('GET', '/v1/quotas/acme/bob')).json.is_set, false);
  await api.request('POST', `/v1/sandboxes/${sandbox.id}/purge`, { token });
  await api.request('DELETE', `/v1/tokens/${id}`);
  isCalm(page);
});

test('who is no administrator is offered nothing of that', async () => {
  const { id, token } = await makeToken(api, { organization: 'acme', user: 'bob', scopes: ORDINARY });
  const other = await openPage(origin, token);
  await other.page.goto(`${origin}/quotas`);
  await other.page.getByRole('heading', { name: 'acme/bob' }).waitFor();
  assert.equal(await other.page.getByRole('heading', { name: 'Owners', exact: true }).count(), 0);
  assert.equal(await other.page.getByRole('button', { name: 'Change' }).count(), 0);
  await other.page.goto(`${origin}/host`);
  await other.page.getByRole('heading', { name: 'State' }).waitFor();
  assert.equal(await other.page.getByRole('heading', { name: 'Doctor' }).count(), 0);
  isCalm(other.page);
  await other.browser.close();
  await api.request('DELETE', `/v1/tokens/${id}`);
});

test('the audit log is filtered, tells what was done, and its chain is verified', async () => {
  await go('/audit');
  await page.getByLabel('Action, such as sandbox.create').fill('token.revoke');
  await page.waitForFunction(() => { const rows = [...document.querySelectorAll('tbody tr')]; return rows.length > 0 && rows.every((row) => row.innerText.includes('token.revoke')); });
  assert.equal(new URL(page.url()).searchParams.get('action'), 'token.revoke', 'the filter stands in the address');
  await page.getByRole('button', { name: 'Verify the chain' }).click();
  await page.getByText(/The chain is whole: [\d,]+ entries/).waitFor();
  isCalm(page);
});

test('the host page tells what doctor finds, and what mends it', async () => {
  const { json } = await api.request('GET', '/v1/doctor');
  const problems = json.checks.filter(({ status }) => status !== 'ok');
  await go('/host');
  await page.getByRole('heading', { name: 'Doctor' }).waitFor();
  await page.getByText(problems.length === 0 ? 'Nothing is missing' : `${problems.length} problem`).first().waitFor();
  for (const { name, fact, mend } of problems) {
    const line = page.locator('.doctor-line').filter({ hasText: fact });
    await line.getByText(name, { exact: true }).waitFor();
    if (mend) await line.getByText(mend, { exact: true }).waitFor();
  }
  await page.getByText(`${json.checks.length - problems.length} checks found nothing wrong`).click();
  await page.locator('.doctor-well .doctor-line').getByText('kernel', { exact: true }).waitFor();
  isCalm(page);
});

test('with the keyboard alone one signs in, creates a sandbox, runs a command in it and removes it', async () => {
  const other = await openPage(origin, null);
  const { page: own } = other;
  await own.goto(origin);
  await own.getByLabel('Token').waitFor();
  assert.equal(await own.evaluate(() => document.activeElement?.tagName), 'INPUT', 'the field has the focus');
  const { keyboard } = own;
  await keyboard.type(api.token);
  await keyboard.press('Enter');
  await own.getByRole('heading', { name: 'Sandboxes', exact: true }).waitFor();

  /** Goes on with Tab until that has the focus, and that it can be seen there. */
  const reach = async (role, name) => {
    const target = own.getByRole(role, { name, exact: true }).first();
    await target.waitFor();
    for (let i = 0; i < 120; i++) {
      if (await target.evaluate((one) => one === document.activeElement)) break;
      await keyboard.press('Tab');
    }
    const focus = await target.evaluate((one) => ({ isIt: one === document.activeElement, outline: getComputedStyle(one).outlineStyle }));
    assert.ok(focus.isIt, `Tab reaches ${role} ${name}`);
    assert.notEqual(focus.outline, 'none', `the focus on ${role} ${name} is seen`);
  };
  await reach('button', 'New sandbox');
  await keyboard.press('Enter');
  await own.getByRole('dialog').waitFor();
  await keyboard.type('by-keys');
  await keyboard.press('Enter');
  await own.getByRole('heading', { name: 'by-keys' }).waitFor();
  await reach('link', 'Run');
  await keyboard.press('Enter');
  await reach('textbox', 'Command');
  await keyboard.type('echo $((6 * 7))');
  await keyboard.press('Enter');
  await own.getByText('exit 0').waitFor();
  assert.match(await own.locator('.runs .output').first().innerText(), /42/);
  await keyboard.press('Control+k');
  await own.getByRole('combobox', { name: 'A page, a sandbox, an action' }).waitFor();
  await keyboard.type('stop: by-keys');
  await keyboard.press('Enter');
  await until(async () => (await api.all()).find(({ name }) => name === 'by-keys')?.status === 'stopped', { what: 'it is stopped' });
  await reach('button', 'More');
  await keyboard.press('Enter');
  await own.getByRole('menu').waitFor();
  // The menu is seen a moment before its first entry has the focus.
  const entries = own.getByRole('menuitem');
  const hasFocus = (entry) => until(() => entry.evaluate((one) => one === document.activeElement), { what: 'the entry has the focus' });
  await hasFocus(entries.first());
  await keyboard.press('End');
  await hasFocus(entries.last());
  await keyboard.press('Enter');
  await own.getByRole('dialog').waitFor();
  await keyboard.type('purge');
  await keyboard.press('Enter');
  await until(async () => (await api.all()).every(({ name }) => name !== 'by-keys'), { what: 'it is gone' });
  await own.getByRole('heading', { name: 'Sandboxes', exact: true }).waitFor();
  await keyboard.press('Escape');
  await other.browser.close();
});

test('the browser leaves', async () => {
  await browser.close();
});

finish();
