// SPDX-License-Identifier: Apache-2.0
// The console in a browser, used as a person does: by what things are called, with the mouse and the keyboard.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';

import { DEADLINE_MS, until } from './wait.mjs';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const KEYS = { Enter: 13, Escape: 27, ArrowDown: 40, ArrowUp: 38, Tab: 9 };

/** In the page: what is seen, fits a selector and has that name. */
const FIND = `((selector, name) => [...document.querySelectorAll(selector)].find((one) => {
  if (!one.checkVisibility()) return false;
  const label = one.getAttribute('aria-label') ?? (one.labels?.[0] ?? one).innerText;
  return name === null || (label ?? '').trim() === name;
}))`;

/** In each page, from its first moment: what moved by itself, and how far, as browsers count it. */
const SHIFTS = `window.shifts = []; new PerformanceObserver((list) => {
  for (const { value, hadRecentInput, sources } of list.getEntries()) if (!hadRecentInput) window.shifts.push({ value, moved: sources.map(({ node }) => (node?.outerHTML ?? node?.textContent ?? '').slice(0, 120)) });
}).observe({ type: 'layout-shift', buffered: true });`;
/** So much of a page may move by itself, as a share of the window times a share of the way: the line below which browsers call it good is 0.1. */
const SHIFT_MAX = 0.05;

export class Console {
  /** Of an address such as http://127.0.0.1:9090, in a window of the browser. */
  static async open(browser, origin) {
    const console = new Console();
    console.origin = origin;
    console.page = await browser.open();
    await console.page.send('Page.addScriptToEvaluateOnNewDocument', { source: SHIFTS });
    return console;
  }

  go(path) { return this.page.go(`${this.origin}${path}`); }

  /** Goes to another page of it without loading it anew. */
  follow(path) { return this.page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)}), 1`); }

  /** Waits until the page has these words. */
  says(words) { return this.page.shows(`document.body.innerText.includes(${JSON.stringify(words)})`, true); }
  lacks(words) { return this.page.shows(`document.body.innerText.includes(${JSON.stringify(words)})`, false); }

  /** Where something is, once it is there, in its place and may be used. */
  place(selector, name) {
    const probe = `(() => { const one = ${FIND}(${JSON.stringify(selector)}, ${JSON.stringify(name)}); if (!one || one.disabled) return null;
      one.scrollIntoView({ block: 'nearest', inline: 'nearest' }); const { x, y, width, height } = one.getBoundingClientRect(); const [left, top] = [x + width / 2, y + height / 2];
      const hit = document.elementFromPoint(left, top); return hit && (one.contains(hit) || hit.contains(one)) ? [left, top] : null; })()`;
    return until(() => this.page.evaluate(probe), { every: 60, what: `there is ${selector} ${name ?? ''}; errors: ${JSON.stringify(this.page.errors)}` });
  }

  async click(selector, name = null) {
    const [x, y] = await this.place(selector, name);
    for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased']) await this.page.send('Input.dispatchMouseEvent', { type, x, y, button: type === 'mouseMoved' ? 'none' : 'left', clickCount: type === 'mouseMoved' ? 0 : 1 });
  }

  button(name) { return this.click('button, a, [role="menuitem"]', name); }

  /** Types into what has the focus. */
  type(text) { return this.page.send('Input.insertText', { text }); }

  async press(key, modifiers = 0) {
    const code = KEYS[key] ?? key.toUpperCase().charCodeAt(0);
    const event = { key, modifiers, windowsVirtualKeyCode: code, code: KEYS[key] ? key : `Key${key.toUpperCase()}`, text: key === 'Enter' ? '\r' : undefined };
    await this.page.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
    await this.page.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined });
  }

  async fill(label, text) {
    await this.click('input, textarea', label);
    await this.page.evaluate('document.activeElement.select?.(), 1');
    await this.type(text);
  }

  /** Gives files of this machine to an input for files, as its dialog would. */
  async choose(label, files) {
    await this.page.shows(`document.querySelector(${JSON.stringify(`input[type="file"][aria-label="${label}"]`)}) !== null`, true);
    const { result } = await this.page.send('Runtime.evaluate', { expression: `document.querySelector(${JSON.stringify(`input[type="file"][aria-label="${label}"]`)})` });
    await this.page.send('DOM.setFileInputFiles', { objectId: result.objectId, files });
  }

  /**
   * That nothing on these pages is a flaw to axe or sticks out sideways: dark in a usual window and light on a telephone,
   * with E2E_FULL each way in both.
   */
  async isFit(paths) {
    const flaws = [];
    const ways = process.env.E2E_FULL ? [['dark', 1280], ['light', 1280], ['dark', 320], ['light', 320]] : [['dark', 1280], ['light', 320]];
    for (const [theme, width] of ways) {
      await this.page.send('Emulation.setDeviceMetricsOverride', { width, height: 800, deviceScaleFactor: 1, mobile: width < 500 });
      await this.go('/');
      await this.theme(theme);
      for (const path of paths) {
        await this.go(path);
        await this.page.shows('document.querySelector("h1") !== null && document.querySelector(".bone") === null', true);
        for (const flaw of await this.flaws()) flaws.push(`${theme} ${width} ${path} ${flaw}`);
        const wide = await this.page.evaluate('document.documentElement.scrollWidth');
        if (wide > width) flaws.push(`${theme} ${path} is ${wide} pixels wide, not ${width}`);
      }
    }
    await this.page.send('Emulation.clearDeviceMetricsOverride');
    assert.deepEqual(flaws, []);
  }

  /**
   * What is wrong with these pages in a theme and at a width, each reached without loading the console anew: flaws that
   * axe knows, what sticks out sideways, what moves by itself. A page is a path, or a path and what is done there.
   */
  async survey(pages, { theme, width }) {
    const flaws = [];
    await this.page.front();
    await this.page.send('Emulation.setDeviceMetricsOverride', { width, height: Math.round(width < 500 ? width * 2 : width * 0.6), deviceScaleFactor: 1, mobile: width < 500 });
    await this.theme(theme);
    for (const [path, act] of pages.map((one) => [one].flat())) {
      const say = (what) => flaws.push(`${theme} ${width} ${path}${act ? ` ${act.name}` : ''}: ${what}`);
      await this.page.evaluate('window.shifts.length = 0, 1');
      await this.follow(path);
      await this.page.shows('document.querySelector("h1, .empty") !== null && document.querySelector(".bone, .charts-wait") === null', true);
      await act?.();
      await this.page.shows('document.getAnimations().some((one) => one.playState === "running" && one.effect.getTiming().iterations !== Infinity)', false);
      await this.page.evaluate('new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve, 0)); })'); // what measures itself has done so
      for (const flaw of await this.flaws()) say(flaw);
      const wide = await this.page.evaluate('document.documentElement.scrollWidth');
      if (wide > width) say(`it is ${wide} pixels wide`);
      const shifts = await this.page.evaluate('window.shifts');
      if (shifts.reduce((sum, { value }) => sum + value, 0) > SHIFT_MAX) say(`it moves by itself: ${JSON.stringify(shifts)}`);
    }
    await this.page.send('Emulation.clearDeviceMetricsOverride');
    return flaws;
  }

  async signIn(token) {
    await this.go('/');
    await this.fill('Token', token);
    await this.button('Sign in');
  }

  async theme(name) {
    await this.page.evaluate(`localStorage.setItem('sandlot.theme', '"${name}"'), 1`);
    await this.page.send('Page.reload');
    await this.page.shows('document.documentElement.dataset.theme', name);
  }

  /** Looks at it in a view (views.mjs): the theme is the system's then, whichever was chosen before. */
  async look({ theme, width, height }) {
    if (this.page.browser.over) return;
    await this.page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    await this.page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
    await this.page.evaluate('localStorage.removeItem("sandlot.theme"), 1');
  }

  /** What axe finds against the rules of WCAG 2.2 A and AA, as "rule: element". */
  async flaws() {
    if (!await this.page.evaluate('"axe" in window')) await this.page.evaluate(`${fs.readFileSync(AXE, 'utf8')}; 1`);
    return this.page.evaluate(`axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations'] })
      .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? ''))))`, { timeout_ms: DEADLINE_MS });
  }

  /**
   * That nothing was complained about since the last time. A sandbox may be gone when the list asks for what it has just
   * heard of: the list takes it out, and the browser writes the 404 down by itself.
   */
  isCalm() {
    const gone = /status of 404 .*\/v1\/sandboxes\/[0-9a-z]{26}$/;
    assert.deepEqual(this.page.errors.splice(0).filter((error) => !gone.test(error)), []);
    assert.deepEqual(this.page.console.splice(0), []);
  }
}
