// SPDX-License-Identifier: Apache-2.0
// The console in a real browser: how soon it shows something, how a list of a thousand scrolls, how fast a key is shown,
// what a tab keeps after many events, and what ten open consoles cost the daemon. All sandboxes run and are live.
import { readFileSync } from 'node:fs'
import { Chromium } from '../../tests/e2e/lib/chromium.mjs'
import { sleep, waitFor } from '../lib/host.mjs'
import { median, mib, ms, quantile, summary } from '../lib/stats.mjs'

export const letter = 's'
export const title = 'the console in a browser'

const FRAME_MS = 1000 / 60
const SCROLL_MS = 4000
/** A page of the same server that is over at once: what is still being done for one that is left delays the next. */
const BLANK = '/healthz'
const KEYS = 60
/** Of one sandbox that runs: a sample of its figures every two seconds. */
const SAMPLES_AN_HOUR = 1800

/** Before any script of a page: when the first row is there. */
const WATCH = `new MutationObserver((_, self) => { if (document.querySelector('.sandbox-row:not(.head)')) { window.shown_ms = performance.now(); self.disconnect(); } }).observe(document, { childList: true, subtree: true })`

/** In the page: scrolls to the end of the list, step by step; how long each frame took. */
const SCROLL = `new Promise((resolve) => {
  const times = []; const begin = performance.now(); let last = begin; const end = document.documentElement.scrollHeight - innerHeight;
  const frame = (now) => { times.push(now - last); last = now; const part = Math.min((now - begin) / ${SCROLL_MS}, 1); scrollTo(0, end * part); if (part < 1) requestAnimationFrame(frame); else resolve(times.slice(2)); };
  requestAnimationFrame(frame);
})`

/** In the page: from a key that arrives until the terminal has drawn something. */
const ECHO = `window.echoes = []; window.typed_ms = 0;
document.querySelector('.xterm-helper-textarea').addEventListener('input', () => { window.typed_ms = performance.now(); }, true);
new MutationObserver(() => { if (window.typed_ms) { window.echoes.push(performance.now() - window.typed_ms); window.typed_ms = 0; } }).observe(document.querySelector('.xterm-rows'), { childList: true, subtree: true, characterData: true }); 1`

const cpu_ms = (pid) => { const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' '); return (Number(fields[11]) + Number(fields[12])) * 10 }

class Tab {
  static async open(browser, sandlot, context) {
    const tab = new Tab()
    const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank', browserContextId: context })
    const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true })
    tab.send = (method, params) => browser.send(method, params, sessionId)
    tab.origin = `http://${sandlot.address}`
    for (const part of ['Page', 'Runtime', 'Network']) await tab.send(`${part}.enable`)
    await tab.send('Page.addScriptToEvaluateOnNewDocument', { source: WATCH })
    await tab.go('/docs/')
    await waitFor('a session', () => tab.evaluate(`fetch('/v1/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(JSON.stringify({ token: sandlot.token }))} }).then(({ ok }) => ok)`))
    return tab
  }

  go(path) { return this.send('Page.navigate', { url: `${this.origin}${path}` }) }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    return exceptionDetails ? undefined : result.value
  }

  /** Opens the list anew, from the network if it is cold; when its first row was there. */
  async firstRow(isCold) {
    if (isCold) await this.send('Network.clearBrowserCache')
    await this.go(BLANK)
    await waitFor('nothing to be shown', () => this.evaluate(`location.pathname === "${BLANK}" && document.readyState === "complete"`), 60000)
    await this.go('/')
    return waitFor('the first row', () => this.evaluate('location.pathname === "/" && window.shown_ms'), 60000)
  }

  async heap() {
    await this.send('HeapProfiler.collectGarbage')
    return (await this.send('Runtime.getHeapUsage')).usedSize
  }
}

async function paints(tab, rounds) {
  const found = { cold: [], warm: [] }
  for (let i = 0; i < rounds; i++) {
    found.cold.push(await tab.firstRow(true))
    found.warm.push(await tab.firstRow(false))
  }
  return found
}

async function echoes(tab, id) {
  await tab.go(`/sandboxes/${id}/terminal`)
  const press = `[...document.querySelectorAll('button')].find((one) => one.innerText.trim() === 'New terminal')?.click(), document.querySelector('[data-link]')?.dataset.link`
  await waitFor('a terminal', async () => (await tab.evaluate(press)) === 'live', 30000)
  await waitFor('a prompt', () => tab.evaluate('document.querySelector(".xterm-rows")?.innerText.trim() !== ""'), 30000)
  await sleep(500)
  await tab.evaluate(ECHO)
  await tab.evaluate('document.querySelector(".xterm-helper-textarea").focus(), 1')
  for (let i = 1; i <= KEYS; i++) {
    await tab.send('Input.insertText', { text: 'x' })
    await waitFor('the key', async () => (await tab.evaluate('window.echoes.length')) >= i, 10000)
  }
  return tab.evaluate('window.echoes')
}

/** Processor time of the daemon in a second. */
async function cost(sandlot, seconds) {
  const before = cpu_ms(sandlot.pid)
  await sleep(seconds * 1000)
  return (cpu_ms(sandlot.pid) - before) / seconds
}

export async function run({ sandlot, undo, rounds }) {
  const browser = new Chromium()
  undo.push('close the browser', () => browser.close())
  const ids = await sandlot.fill(10)
  try {
    return await measure(browser, sandlot, rounds, ids)
  } finally {
    await browser.close()
    await sandlot.purgeAll(ids)
    await sandlot.settle()
  }
}

/** What is made beside them is added to `ids`. */
async function measure(browser, sandlot, rounds, ids) {
  const count = rounds(1000, 100)
  const seconds = rounds(20, 5)
  const tab = await Tab.open(browser, sandlot)
  const few = await paints(tab, rounds(5, 2))
  const keys = await echoes(tab, ids[0])
  await tab.go(BLANK)
  ids.push(...await sandlot.fill(count - ids.length))
  const many = await paints(tab, rounds(3, 1))
  await sleep(5000)
  const frames = await tab.evaluate(SCROLL)
  const heap = [await tab.heap()]
  await sleep(seconds * 3000)
  heap.push(await tab.heap())
  await tab.send('Page.navigate', { url: 'about:blank' })
  await sleep(1000)
  const alone = await cost(sandlot, seconds)
  for (let i = 0; i < 10; i++) {
    const { browserContextId } = await browser.send('Target.createBrowserContext')
    await (await Tab.open(browser, sandlot, browserContextId)).firstRow(false)
  }
  await sleep(2000)
  const watched = await cost(sandlot, seconds)
  const dropped = frames.filter((time) => time > FRAME_MS * 1.5).length
  const paint = (found) => `${ms(median(found.warm))}; nothing cached: ${ms(median(found.cold))}`
  return [
    { what: 'console: first row of 10 sandboxes', sandlot: paint(few), data: { cold: summary(few.cold, 'ms'), warm: summary(few.warm, 'ms') } },
    { what: `... of ${count}, all running`, sandlot: paint(many), data: { cold: summary(many.cold, 'ms'), warm: summary(many.warm, 'ms') } },
    { what: `... its list scrolled to the end: frames dropped`, sandlot: `${dropped} of ${frames.length}; 99 % within ${ms(quantile(frames, 0.99))}`, data: summary(frames, 'ms') },
    { what: '... a key in the browser’s terminal until it is drawn', sandlot: ms(median(keys)), data: summary(keys, 'ms') },
    { what: `... heap of a tab after about ${Math.round(count * seconds * 1.5)} events, as ${Math.max(1, Math.round(count * seconds * 1.5 / SAMPLES_AN_HOUR))} sandboxes make in an hour`, sandlot: `${mib(heap[1])}; before: ${mib(heap[0])}`, data: { heap } },
    { what: '... ten open, in browsers of their own: processor time of the daemon in a second', sandlot: `${ms(watched)}; none open: ${ms(alone)}`, data: { alone, watched } },
  ]
}
