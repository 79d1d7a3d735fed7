// SPDX-License-Identifier: Apache-2.0
// A real browser, driven over its debugging pipe: JSON messages that end with a NUL, no WebSocket and no driver.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { DEADLINE_MS, until, within } from './wait.mjs';

// As root it has to do without its own sandbox; it opens nothing here but what the tests serve.
const FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run', '--window-size=1000,640', '--remote-debugging-pipe'];

/** How long it may take to answer: so that what is tried until its deadline is tried more than once. */
const ANSWER_MS = DEADLINE_MS / 2;
/** What it says of an expression whose page was left meanwhile, and how often in a row that is believed. */
const LOST = /navigated or closed|context was destroyed|Promise was collected|Cannot find (default execution )?context/;
const LOST_MAX = 10;

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
    const complaints = fs.openSync(path.join(this.home, 'stderr'), 'w');
    this.child = spawn('chromium', [...FLAGS, ...flags, `--host-resolver-rules=MAP *.${domain} 127.0.0.1`, `--user-data-dir=${this.home}`, 'about:blank'], { stdio: ['ignore', 'ignore', complaints, 'pipe', 'pipe'], env: { ...process.env, HOME: this.home } });
    fs.closeSync(complaints);
    this.sent = 0;
    this.waiting = new Map();
    this.pages = new Map();
    this.over = null; // why it answers no more
    this.exited = new Promise((resolve) => {
      const gone = (why) => { this.fail(why); resolve(); };
      this.child.on('error', (error) => gone(`the browser cannot be started: ${error.message}`));
      this.child.on('exit', (code, signal) => gone(`the browser has ended with ${signal ?? code}: ${this.lastWords()}`));
    });
    process.on('exit', () => this.child.kill('SIGKILL'));
    let rest = '';
    this.child.stdio[3]?.on('error', () => {}); // its end says more
    this.child.stdio[4]?.setEncoding('utf8').on('data', (data) => {
      const messages = (rest + data).split('\0');
      rest = messages.pop();
      for (const message of messages) this.receive(JSON.parse(message));
    });
  }

  /** The end of what it wrote to its standard error. */
  lastWords() {
    try {
      return fs.readFileSync(path.join(this.home, 'stderr'), 'utf8').slice(-1000);
    } catch {
      return '';
    }
  }

  /** Rejects what waits for an answer: of all of it for good, or of one page, which is gone or crashed. */
  fail(why, sessionId = null) {
    if (sessionId === null) this.over ??= why;
    for (const [id, one] of this.waiting) {
      if (sessionId !== null && one.sessionId !== sessionId) continue;
      this.waiting.delete(id);
      one.reject(new Error(`${why}, asked for ${one.what}`));
    }
  }

  receive({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      if (method === 'Inspector.targetCrashed') this.fail('the page has crashed', sessionId);
      if (method === 'Target.detachedFromTarget') this.fail('the page is gone', params.sessionId);
      this.pages.get(sessionId)?.note(method, params);
      return;
    }
    const one = this.waiting.get(id);
    if (!one) return; // it was given up
    this.waiting.delete(id);
    if (error) one.reject(new Error(`${JSON.stringify(error)}, asked for ${one.what}`));
    else one.resolve(result);
  }

  /** Asks for something and waits for the answer, but not for ever: a page may hang, crash or be left. */
  async send(method, params = {}, sessionId = undefined, { timeout_ms = ANSWER_MS } = {}) {
    const what = `${method} ${JSON.stringify(params).slice(0, 300)}`;
    if (this.over) throw new Error(`${this.over}, asked for ${what}`);
    const id = ++this.sent;
    const answer = new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, sessionId, what });
      this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
    try {
      return await within(`the browser answers ${what}`, answer, timeout_ms);
    } finally {
      this.waiting.delete(id);
    }
  }

  /** A window of its own, which shares cookies with the others. */
  async open(url) {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    this.pages.set(sessionId, page);
    for (const part of ['Inspector', 'Page', 'Runtime', 'Log', 'Network']) await page.send(`${part}.enable`);
    if (url) await page.go(url);
    return page;
  }

  /** Ends it; once more does no harm. */
  async close() {
    this.fail('the browser is closed');
    this.child.kill('SIGKILL');
    await within('the browser ends', this.exited);
    // Its children leave a moment after it, and write until then.
    await until(() => spawnSync('rm', ['-rf', this.home]).status === 0, { what: 'the browser is gone' });
  }
}

class Page {
  constructor(browser, sessionId) {
    Object.assign(this, { browser, sessionId, errors: [], console: [], sockets: [], frames: 0, dialogs: [], onPaused: null, loaded: new Set() });
  }

  /** What the page complained about, what it wrote as errors to its console, where its WebSockets lead, and how much they heard. */
  note(method, params) {
    if (method === 'Page.javascriptDialogOpening') this.answer(params);
    if (method === 'Page.frameNavigated' && !params.frame.parentId) this.loaded.add(params.frame.loaderId);
    if (method === 'Fetch.requestPaused') this.onPaused?.(params);
    if (method === 'Network.webSocketCreated') this.sockets.push(params.url);
    if (method === 'Network.webSocketFrameReceived') this.frames++;
    if (method === 'Runtime.exceptionThrown') this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error') this.console.push(params.args.map(({ value, description }) => value ?? description).join(' '));
    if (method === 'Log.entryAdded' && params.entry.level === 'error') this.errors.push(`${params.entry.text} ${params.entry.url ?? ''}`);
  }

  /**
   * Takes a dialog away, which would hold up all else for ever: one that asks whether to leave the page, with what is not
   * saved in it, gets a yes; any other is a complaint.
   */
  answer({ type, message }) {
    const isLeaving = type === 'beforeunload';
    this.dialogs.push(type);
    if (!isLeaving) this.errors.push(`${type}: ${message}`);
    this.send('Page.handleJavaScriptDialog', { accept: isLeaving }).catch((error) => this.errors.push(error.message));
  }

  /** Asks again while the page that is on its way is not there yet: the browser has done nothing then. */
  async send(method, params, options) {
    for (const deadline = performance.now() + ANSWER_MS; ;) {
      try {
        return await this.browser.send(method, params, this.sessionId, options);
      } catch (error) {
        if (!error.message.includes('Not attached to an active page') || performance.now() > deadline) throw error;
      }
      await delay(10);
    }
  }

  /** Goes to another page. The browser answers while the one before is still there, which would take what is asked for next. */
  async go(url) {
    const { errorText, loaderId } = await this.send('Page.navigate', { url });
    assert.ok(!errorText, `${url}: ${errorText}`);
    if (loaderId) await until(() => this.loaded.has(loaderId), { every: 5, what: `the page before ${url} is gone` });
  }

  /** Brings it before others: what is hidden gets no frames, and its timers are slow. */
  front() { return this.send('Page.bringToFront'); }

  /**
   * The value of an expression, as if its user had asked for it; undefined while there is no page that could tell. One
   * that got lost with the page that was left is asked for again.
   */
  async evaluate(expression, options) {
    const ask = () => this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true }, options);
    let answer;
    for (let i = 0; !answer; i++) answer = await ask().catch((error) => { if (i === LOST_MAX || !LOST.test(error.message)) throw error; });
    return answer.exceptionDetails ? undefined : answer.result.value;
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
