// SPDX-License-Identifier: Apache-2.0
// The machine: programs the bench starts, what it must undo at the end, and numbers from /proc.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, existsSync, readdirSync, rmdirSync, writeFileSync, openSync, closeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import os from 'node:os'
import net from 'node:net'

export { sleep }

// What was done is undone in the opposite order, once, whatever happens. Once it has begun nothing
// new is started (see Probe).
export class Undo {
  #steps = []
  #running = null

  get begun() { return this.#running !== null }

  push(what, step) { this.#steps.push({ what, step }) }

  run() {
    this.#running ??= this.#runAll()
    return this.#running
  }

  async #runAll() {
    while (this.#steps.length > 0) {
      const { what, step } = this.#steps.pop()
      try {
        await step()
      } catch (error) {
        console.error(`bench: could not ${what}: ${error.message}`)
        process.exitCode = 1
      }
    }
  }
}

// Everything lives below one directory on a real disk; /tmp may be memory.
export function makeScratch(undo) {
  const dir = mkdtempSync(`${process.env.BENCH_DIR ?? '/var/tmp'}/slbench.`)
  undo.push(`remove ${dir}`, () => rmSync(dir, { recursive: true, force: true }))
  return dir
}

// A long-running program in its own session, so that Ctrl-C reaches us alone and the order of
// ending is ours. Ended by its pid only.
export function startService(undo, name, argv, log) {
  const out = openSync(log, 'a')
  const child = spawn(argv[0], argv.slice(1), { detached: true, stdio: ['ignore', out, out] })
  closeSync(out)
  const service = { name, pid: child.pid, log, ended: null }
  const gone = new Promise((resolve) => {
    child.on('exit', (code, signal) => { service.ended = signal ?? code; resolve() })
    child.on('error', (error) => { service.ended = error.message; resolve() })
  })
  service.wait = async (ms) => {
    await Promise.race([gone, sleep(ms, undefined, { ref: false })])
    return service.ended !== null
  }
  service.stop = async (ms = 15000) => {
    if (service.ended !== null) return
    child.kill('SIGTERM')
    if (!await service.wait(ms)) {
      child.kill('SIGKILL')
      await service.wait(2000)
      throw new Error(`${name} (pid ${service.pid}) did not end by itself`)
    }
  }
  undo.push(`end ${name}`, () => service.stop())
  return service
}

export async function waitFor(what, probe, ms = 20000) {
  const deadline = Date.now() + ms
  for (;;) {
    const value = await probe()
    if (value) return value
    if (Date.now() > deadline) throw new Error(`${what}: not there after ${ms / 1000} s`)
    await sleep(20)
  }
}

export function logTail(path) {
  try { return readFileSync(path, 'utf8').trim().split('\n').slice(-8).join('\n') } catch { return '' }
}

export function firstLine(program, ...args) {
  const r = spawnSync(program, args, { encoding: 'utf8' })
  return r.error ? null : `${r.stdout}${r.stderr}`.trim().split('\n')[0]
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => { const { port } = server.address(); server.close(() => resolve(port)) })
  })
}

// ---- memory

const KB = 1024
export function memory() {
  const values = Object.fromEntries(readFileSync('/proc/meminfo', 'utf8').trim().split('\n')
    .map((line) => { const [name, value] = line.split(/:\s+/); return [name, parseInt(value) * KB] }))
  return {
    available: values.MemAvailable,
    kernel: values.SUnreclaim + values.KernelStack + values.PageTables + (values.Percpu ?? 0),
  }
}

// Waits until the kernel has stopped giving back what ended before; neighbours can keep it moving.
export async function settleMemory(ms = 8000) {
  const deadline = Date.now() + ms
  let last = memory().available
  while (Date.now() < deadline) {
    await sleep(500)
    const now = memory().available
    if (Math.abs(now - last) < 1 << 20) return now
    last = now
  }
  return last
}

export function rss(pid) {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name) => parseInt(text.match(new RegExp(`${name}:\\s+(\\d+)`))[1]) * KB
  return { now: field('VmRSS'), peak: field('VmHWM') }
}

// What would be free again if this process ended.
export function privateMemory(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return [...text.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+)/gm)].reduce((sum, match) => sum + Number(match[1]) * KB, 0)
  } catch { return 0 }
}

export function childrenOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  } catch { return [] }
}

// From here on VmHWM is the peak since this call.
export function resetPeak(pid) { writeFileSync(`/proc/${pid}/clear_refs`, '5') }

// ---- processor time

const TICK_MS = 10 // USER_HZ is 100 on every machine that we know

// What a process has used, in milliseconds: `own`, by its threads; `all`, with its children, those that it has
// reaped and, all the way down, those that live.
export function processorTime(pid) {
  let fields
  try { fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ') } catch { return { own: 0, all: 0 } }
  const [user, system, reapedUser, reapedSystem] = fields.slice(11, 15).map((ticks) => ticks * TICK_MS)
  const living = childrenOf(pid).reduce((sum, child) => sum + processorTime(child).all, 0)
  return { own: user + system, all: user + system + reapedUser + reapedSystem + living }
}

// ---- cgroups

// Removes the groups of this name (ours, with our pid in it) in every hierarchy, leaves first.
export function removeCgroups(name) {
  const remove = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      if (entry.isDirectory()) remove(`${dir}/${entry.name}`)
    }
    rmdirSync(dir)
  }
  for (const hierarchy of readdirSync('/sys/fs/cgroup')) {
    const dir = `/sys/fs/cgroup/${hierarchy}/${name}`
    if (existsSync(dir)) remove(dir)
  }
  if (existsSync(`/sys/fs/cgroup/${name}`)) remove(`/sys/fs/cgroup/${name}`)
}

export function describeMachine() {
  const memoryGiB = Math.round(os.totalmem() / 2 ** 30)
  return {
    cores: os.cpus().length, cpu: os.cpus()[0]?.model.replace(/\s+/g, ' ').trim() ?? 'unknown',
    memory_gib: memoryGiB, kernel: os.release(), load_before: os.loadavg()[0],
    disk: firstLine('findmnt', '-n', '-o', 'FSTYPE', '-T', process.env.BENCH_DIR ?? '/var/tmp'),
  }
}
