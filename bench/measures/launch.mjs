// SPDX-License-Identifier: Apache-2.0
// The Vite app of the tests (tests/e2e/apps/vite-react) from its files to a page that answers: launched in a new sandbox,
// launched again after an edit, launched in another new sandbox with the packages that the first installed, and woken from
// sleep; beside the same steps typed in a shell on the host, with an npm that has nothing in its cache either, and with one
// that has. In each round the app has another version, so that no layer is there of its packages. And the upload of 1,000
// files of a project, beside cp -r.
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import dns from 'node:dns/promises'
import http from 'node:http'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { sleep } from '../lib/host.mjs'
import { summary, ms, times } from '../lib/stats.mjs'

export const letter = 'r'
export const title = 'launches'

const APP = path.resolve(import.meta.dirname, '../../tests/e2e/apps/vite-react')
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
const POLL_MS = 10
const FILES = 1000
const VERSION = '"version": "0.0.0"'

function output(file, ...args) {
  const { stdout, status, stderr } = spawnSync(file, args, { encoding: 'utf8', cwd: '/tmp' })
  if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

async function findRegistry() {
  const url = new URL(output('npm', 'config', 'get', 'registry'))
  const port = url.port || (url.protocol === 'https:' ? 443 : 80)
  const addresses = await dns.resolve4(url.hostname)
  return { env: { npm_config_registry: url.href, ...(existsSync(CERTIFICATES) && { NODE_EXTRA_CA_CERTS: CERTIFICATES }) },
    network: { mode: 'allowlist', allow: [url.hostname, ...addresses].map((host) => `${host}:${port}`) } }
}

/** Asks until the page is there: its status is below 500. */
async function answered(options) {
  for (const end = performance.now() + 300_000; performance.now() < end;) {
    const status = await new Promise((resolve) => {
      const request = http.get({ host: '127.0.0.1', agent: false, ...options }, (response) => { response.resume(); resolve(response.statusCode) })
      request.on('error', () => resolve(0))
    })
    if (status > 0 && status < 500) return
    await sleep(POLL_MS)
  }
  throw new Error('nothing answers')
}

/** How long it takes, in milliseconds. */
async function clock(work) {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** The app in a version of its own: a directory below scratch. */
function makeApp(scratch, round) {
  const app = `${scratch}/app-${round}`
  cpSync(APP, app, { recursive: true })
  for (const name of ['package.json', 'package-lock.json']) {
    const text = readFileSync(`${app}/${name}`, 'utf8')
    if (!text.includes(VERSION)) throw new Error(`${name} has no ${VERSION}`)
    writeFileSync(`${app}/${name}`, text.replaceAll(VERSION, `"version": "0.0.${round + 1}"`))
  }
  return app
}

// On the host --------------------------------------------------------------------------------------------

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

class Host {
  constructor(scratch, undo) {
    this.dir = `${scratch}/host-app`
    this.cache = `${scratch}/host-npm`
    undo.push('end the app on the host', () => this.end())
  }

  async start() {
    const port = await freePort()
    this.child = spawn('sh', ['-c', `exec npm run dev -- --host 127.0.0.1 --port ${port} --strictPort`], { cwd: this.dir, detached: true, stdio: 'ignore' })
    this.exited = once(this.child, 'exit')
    await answered({ port, path: '/', headers: { host: `localhost:${port}` } })
  }

  async end() {
    if (!this.child) return
    try { process.kill(-this.child.pid, 'SIGKILL') } catch { /* it is gone */ }
    await this.exited
    this.child = null
  }

  cold(app) {
    rmSync(this.cache, { recursive: true, force: true })
    return this.cached(app)
  }

  /** With what npm has in its cache. */
  cached(app) {
    rmSync(this.dir, { recursive: true, force: true })
    return clock(async () => {
      cpSync(app, this.dir, { recursive: true })
      const install = spawn('npm', ['ci', '--no-audit', '--no-fund'], { cwd: this.dir, stdio: 'ignore', env: { ...process.env, npm_config_cache: this.cache } })
      const [code] = await once(install, 'exit')
      if (code !== 0) throw new Error('npm ci fails on the host')
      await this.start()
    })
  }

  async again() {
    await this.end()
    return clock(() => this.start())
  }
}

// In a sandbox --------------------------------------------------------------------------------------------

class Launched {
  constructor(sandlot, access, app, name) { Object.assign(this, { sandlot, access, app, name }) }

  async make() {
    await this.sandlot.json('POST', '/v1/projects', { name: this.name })
    this.upload()
  }

  upload() { output(`${this.sandlot.build}/sandlot`, '--url', `http://${this.sandlot.address}`, '--token', this.sandlot.token, 'project', 'upload', this.name, `${this.app}/.`) }

  async launch() {
    const begun = await this.sandlot.json('POST', '/v1/launches', { project: this.name, timeouts: { install_s: 600, frontend_s: 300 } })
    for (;;) {
      this.found = await this.sandlot.json('GET', `/v1/launches/${begun.id}`)
      if (this.found.status === 'succeeded') return
      if (this.found.status !== 'running') throw new Error(`launch: ${JSON.stringify(this.found.error)}`)
      await sleep(POLL_MS)
    }
  }

  /** How long each stage of the launch took. */
  stages() { return Object.fromEntries(this.found.stages.map(({ stage, duration_ms }) => [stage, duration_ms])) }

  /** With the create of its sandbox. */
  cold() {
    return clock(async () => {
      const made = await this.sandlot.json('POST', `/v1/projects/${this.name}/sandboxes`, { ...this.access, resources: { memory: '2Gi', cpu: os.cpus().length, disk: '4Gi' } })
      this.id = made.id
      await this.launch()
    })
  }

  /** Until the layer of its packages is there, which is made when the launch is over. */
  async layered() {
    for (;;) {
      const { jobs } = await this.sandlot.json('GET', '/v1/jobs?kind=dependencies')
      const failed = jobs.find(({ state }) => !['queued', 'running', 'succeeded'].includes(state))
      if (failed) throw new Error(`no layer of the packages: ${failed.error?.message}`)
      if (jobs.length > 0 && jobs.every(({ state }) => state === 'succeeded')) return
      await sleep(POLL_MS)
    }
  }

  async again(round) {
    const answer = await fetch(`http://${this.sandlot.address}/v1/projects/${this.name}/files?path=src/edited.js`, { method: 'PUT', headers: { authorization: `Bearer ${this.sandlot.token}` }, body: `export const round = ${round};\n` })
    if (!answer.ok) throw new Error(await answer.text())
    return clock(() => this.launch())
  }

  async wake() {
    await this.sandlot.json('POST', `/v1/sandboxes/${this.id}/stop`)
    const url = new URL(this.found.preview_url)
    return clock(() => answered({ port: url.port, path: '/', headers: { host: url.host, 'x-api-key': this.sandlot.token } }))
  }

  async remove() {
    await this.sandlot.purge(this.id)
    await this.sandlot.json('DELETE', `/v1/projects/${this.name}`)
  }
}

async function launches({ sandlot, scratch, undo, rounds }) {
  const access = await findRegistry(), host = new Host(scratch, undo)
  const found = { cold: [], cached: [], again: [], wake: [], hostCold: [], hostCached: [], hostAgain: [] }, stages = []
  for (let round = 0; round < rounds(5, 1); round++) {
    const files = makeApp(scratch, round)
    const app = new Launched(sandlot, access, files, `bench-${round}`), other = new Launched(sandlot, access, files, `other-${round}`)
    await app.make()
    await other.make()
    found.hostCold.push(await host.cold(files))
    await host.end()
    found.hostCached.push(await host.cached(files))
    await host.end()
    found.cold.push(await app.cold())
    stages.push(app.stages())
    await app.layered()
    found.cached.push(await other.cold())
    await other.remove()
    // After the others: a launch does not know what a process has loaded that came with a wake, and starts it anew.
    for (let i = 0; i < 3; i++) found.again.push(await app.again(`${round}${i}`))
    for (let i = 0; i < 3; i++) {
      found.hostAgain.push(await host.again())
      await host.end()
      found.wake.push(await app.wake())
    }
    await app.remove()
  }
  const all = Object.fromEntries(Object.entries(found).map(([name, samples]) => [name, summary(samples, 'ms')]))
  const overhead = all.cold.median / all.hostCold.median, gain = all.cold.median / all.again.median
  const cached = all.cold.median / all.cached.median
  const wake = all.wake.median / all.hostAgain.median
  return [
    { what: 'launch of a Vite app: sandbox, npm ci, start', sandlot: ms(all.cold.median), peer: `in a shell on the host: ${ms(all.hostCold.median)}`, ratio: times(overhead), goal: '< 1.1x', ok: overhead < 1.1, data: { launch: all.cold, stages, host: all.hostCold, ratio: overhead } },
    { what: 'launch of it in another new sandbox, its packages copied from the layer of the first', sandlot: ms(all.cached.median), peer: `the first: ${ms(all.cold.median)}; on the host with what npm has in its cache: ${ms(all.hostCached.median)}`, ratio: `${times(cached)} faster`, goal: '>= 5x faster than the first', ok: cached >= 5, data: { cached: all.cached, host: all.hostCached, gain: cached } },
    { what: 'launch of it again after an edit, packages there, Vite left running', sandlot: ms(all.again.median), peer: `the first: ${ms(all.cold.median)}`, ratio: `${times(gain)} faster`, goal: '>= 5x faster than the first', ok: gain >= 5, data: { again: all.again, gain } },
    { what: 'a request that wakes it with its app', sandlot: ms(all.wake.median), peer: `Vite started on the host: ${ms(all.hostAgain.median)}`, ratio: times(wake), data: { wake: all.wake, host: all.hostAgain, ratio: wake } },
  ]
}

// Files --------------------------------------------------------------------------------------------

async function uploads({ sandlot, scratch, rounds }) {
  const from = `${scratch}/thousand`
  for (let i = 0; i < FILES; i++) {
    mkdirSync(`${from}/d${i % 20}`, { recursive: true })
    writeFileSync(`${from}/d${i % 20}/f${i}.js`, `export const value = ${i};\n`.repeat(40))
  }
  const ours = [], copies = []
  for (let round = 0; round < rounds(10, 3); round++) {
    const name = `thousand-${round}`
    await sandlot.json('POST', '/v1/projects', { name })
    ours.push(await clock(() => output(`${sandlot.build}/sandlot`, '--url', `http://${sandlot.address}`, '--token', sandlot.token, 'project', 'upload', name, `${from}/.`)))
    const { files } = await sandlot.json('GET', `/v1/projects/${name}`)
    if (files !== FILES) throw new Error(`${files} files arrived`)
    await sandlot.json('DELETE', `/v1/projects/${name}`)
    copies.push(await clock(() => output('cp', '-r', from, `${scratch}/copy-${round}`)))
    rmSync(`${scratch}/copy-${round}`, { recursive: true })
  }
  const data = { upload: summary(ours, 'ms'), cp: summary(copies, 'ms') }, ratio = data.upload.median / data.cp.median
  return [{ what: `upload of ${FILES.toLocaleString('en')} files into a project by \`sandlot project upload\``, sandlot: ms(data.upload.median), peer: `cp -r: ${ms(data.cp.median)}`, ratio: times(ratio), data: { ...data, ratio } }]
}

export const run = async (context) => [...await launches(context), ...await uploads(context)]
