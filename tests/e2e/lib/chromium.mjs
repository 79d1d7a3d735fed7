// SPDX-License-Identifier: Apache-2.0
// A real browser, driven over its debugging pipe: JSON messages that end with a NUL, no WebSocket and no driver.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { DEADLINE_MS, until } from './wait.mjs';

// As root it has to do without its own sandbox; it opens nothing here but what the tests serve.
const FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run', '--window-size=1000,640', '--remote-debugging-pipe'];

/** Has whoever lives there believe in an authority; its certificate is in a file. */
function teach(home, authority) {
  const book = path.join(home, '.pki/nssdb');
  fs.mkdirSync(book, { recursive: true });
  execFileSync('certutil', ['-d', `sql:${book}`, '-N', '--empty-password']);
  execFileSync('certutil', ['-d', `sql:${book}`, '-A', '-t', 'C,,', '-n', 'tests', '-i', authority]);
}

export class Chromium {
  /** The names below a domain are this machine's. Whose certificates are good besides those that everybody knows: a file. More flags: a list. */
  constructor({ domain = 'preview.localhost', authority, flags = [] } = {}) {
    this.home = fs.mkdtempSync(path.join(os.tmpdir(), 'chromium-'));
    if (authority) teach(this.home, authority);
    this.child = spawn('chromium', [...FLAGS, ...flags, `--host-resolver-rules=MAP *.${domain} 127.0.0.1`, `--user-data-dir=${this.home}`, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: this.home } });
    this.exited = new Promise((resolve) => this.child.on('exit', resolve));
    this.sent = 0;
    this.waiting = new Map();
    this.pages = new Map();
    let rest = '';
    this.child.stdio[3].on('error', () => {});
    this.child.stdio[4].setEncoding('utf8').on('data', (data) => {
      const messages = (rest + data).split('\0');
      rest = messages.pop();
      for (const message of messages) this.receive(JSON.parse(message));
    });
  }

  receive({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      this.pages.get(sessionId)?.note(method, params);
      return;
    }
    const { resolve, reject } = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) reject(new Error(JSON.stringify(error)));
    else resolve(result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.sent;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** A window of its own, which shares cookies with the others. */
  async open(url) {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    this.pages.set(sessionId, page);
    for (const part of ['Page', 'Runtime', 'Log', 'Network']) await page.send(`${part}.enable`);
    if (url) await page.go(url);
    return page;
  }

  /** Ends it; once more does no harm. */
  async close() {
    this.child.kill('SIGKILL');
    await this.exited;
    // Its children leave a moment after it, and write until then.
    await until(() => spawnSync('rm', ['-rf', this.home]).status === 0, { what: 'the browser is gone' });
  }
}

class Page {
  constructor(browser, sessionId) {
    Object.assign(this, { browser, sessionId, errors: [], console: [], sockets: [], frames: 0, onPaused: null });
  }

  /** What the page complained about, what it wrote as errors to its console, where its WebSockets lead, and how much they heard. */
  note(method, params) {
    if (method === 'Fetch.requestPaused') this.onPaused?.(params);
    if (method === 'Network.webSocketCreated') this.sockets.push(params.url);
    if (method === 'Network.webSocketFrameReceived') this.frames++;
    if (method === 'Runtime.exceptionThrown') this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error') this.console.push(params.args.map(({ value, description }) => value ?? description).join(' '));
    if (method === 'Log.entryAdded' && params.entry.level === 'error') this.errors.push(`${params.entry.text} ${params.entry.url ?? ''}`);
  }

  send(method, params) { return this.browser.send(method, params, this.sessionId); }

  async go(url) {
    const { errorText } = await this.send('Page.navigate', { url });
    assert.ok(!errorText, `${url}: ${errorText}`);
  }

  /** The value of an expression, as if its user had asked for it; undefined while there is no page that could tell. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true });
    return exceptionDetails ? undefined : result.value;
  }

  /** Waits until an expression has a value. */
  shows(expression, value, { timeout_ms = DEADLINE_MS } = {}) {
    return until(async () => {
      const seen = await this.evaluate(expression);
      assert.deepEqual(seen, value, `${expression} in the browser; errors: ${JSON.stringify(this.errors.slice(-5))}; text: ${await this.evaluate('document.body.innerText.slice(0, 500)')}`);
      return true;
    }, { timeout_ms, every: 100, what: `the page shows ${value}` });
  }

  async screenshot(file) {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
    fs.writeFileSync(file, Buffer.from(data, 'base64'));
  }
}
