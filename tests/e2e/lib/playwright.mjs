// SPDX-License-Identifier: Apache-2.0
// Debian's browser, driven by playwright-core as a person drives it: by roles and names, and by the keyboard.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

import { DEADLINE_MS, within } from './wait.mjs';

// As root it has to do without its own sandbox; it opens nothing here but what the tests serve.
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];

/** A browser with one page at an address, signed in; what the page complains about gathers in page.complaints. */
export async function openPage(origin, token, options = {}) {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: [...ARGS, ...options.args ?? []], timeout: DEADLINE_MS });
  const close = browser.close.bind(browser);
  browser.close = () => within('the browser closes', close()); // as all of playwright's that have no timeout of their own
  const context = await within('the browser has a context', browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ignoreHTTPSErrors: Boolean(options.isForeign) }));
  context.setDefaultTimeout(DEADLINE_MS);
  const page = await within('the browser has a page', context.newPage());
  page.complaints = [];
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') page.complaints.push(`${message.text()} ${message.location().url}`); });
  if (token) {
    await page.goto(origin);
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    page.complaints.length = 0; // the browser itself tells of the 401 before
  }
  return { browser, context, page };
}

/** That nothing was complained about since the last time. */
export function isCalm(page) {
  assert.deepEqual(page.complaints.splice(0), []);
}

/** Looks at a page in a view (views.mjs). */
export async function look(page, { theme, width, height }) {
  if (page.isClosed()) return;
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: theme });
}
