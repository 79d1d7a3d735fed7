// SPDX-License-Identifier: Apache-2.0
// Handlers and cells, beside the interpreter alone on the host: in a fresh sandbox whose interpreter has waited, and in a
// context. A daemon of its own, since waiting interpreters are a setting of the daemon. Python is Debian's, as in the
// sandbox: a name may lead to a script that looks for one of several.
import { readFileSync, readdirSync } from 'node:fs'
import { compare, interleave, mib, ms, quantile, times } from '../lib/stats.mjs'
import { sleep, waitFor } from '../lib/host.mjs'
import { Sandlot } from '../lib/sandlot.mjs'

export const letter = 'y'
export const title = 'executions'

const WAITING = { python: 8, javascript: 4 }
const PYTHON = JSON.stringify({ language: 'python', code: 'def handler(event, context): pass' })
const NODE = JSON.stringify({ language: 'javascript', code: 'exports.handler = async () => {};' })

// An execution that an interpreter had waited for; others do not count, and the pool is given time after each.
async function warm(sandlot, body) {
  for (let tries = 0; tries < 50; tries++) {
    const done = await sandlot.http(`POST /v1/executions ${body}`)
    const { status, metrics } = JSON.parse(done.body)
    if (status !== 'succeeded') throw new Error(done.body)
    await sleep(250)
    if (metrics.start === 'warm') return done.ms
  }
  throw new Error('no interpreter waits')
}

async function cell(sandlot, id, context) {
  const done = await sandlot.http(`POST /v1/sandboxes/${id}/executions {"context_id":"${context}","code":"pass"}`)
  if (JSON.parse(done.body).status !== 'succeeded') throw new Error(done.body)
  return done.ms
}

function row(what, found, ours, peer, command, part) {
  const data = compare(found, ours, peer, 'ms')
  const share = data[ours].median / data[peer].median, tail = quantile(found.samples[ours], 0.99) / data[peer].median
  return { what, sandlot: `${ms(data[ours].median)}, 99th percentile ${ms(data[ours].p99)}`, peer: `\`${command}\` on the host: ${ms(data[peer].median)}`,
    ratio: times(share), goal: `<= ${times(part)}`, ok: share <= part, data: { ...data, tail } }
}

function descendants(pid) {
  const parents = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try { return [[Number(name), Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1].split(' ')[1])]] } catch { return [] }
  })
  const found = [pid]
  for (let i = 0; i < found.length; i++) found.push(...parents.filter(([, parent]) => parent === found[i]).map(([child]) => child))
  return found.slice(1)
}

const share = (pid) => { try { return parseInt(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]) * 1024 } catch { return 0 } }
const commandLine = (pid) => { try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8') } catch { return '' } }

// Their proportional share of memory, with that of their agents; before anything ran.
async function memoryRow(sandlot) {
  const waiting = () => descendants(sandlot.keeperPid()).filter((pid) => /^(python3|node)\0/.test(commandLine(pid)))
  const wanted = Object.values(WAITING).reduce((a, b) => a + b)
  await waitFor('waiting interpreters', () => waiting().length >= wanted, 60000)
  await sleep(1000)
  const of = (name) => { const all = waiting().filter((pid) => commandLine(pid).startsWith(`${name}\0`)).map(share); return all.reduce((a, b) => a + b, 0) / all.length }
  const python = of('python3'), node = of('node')
  return { what: 'memory of a waiting interpreter (PSS): Python; node', sandlot: `${mib(python)}; ${mib(node)}`, data: { python_bytes: python, node_bytes: node } }
}

export async function run({ undo, scratch, sandlot: { build }, probe, rounds }) {
  const setting = Object.entries(WAITING).map(([language, count]) => `${language}=${count}`).join(',')
  const sandlot = await Sandlot.start(undo, scratch, build, probe, { name: 'runtimes', args: ['--runtime-pool', setting] })
  const memory = await memoryRow(sandlot)
  const { id } = await sandlot.create()
  const context = (await sandlot.json('POST', `/v1/sandboxes/${id}/contexts`, { language: 'python' })).id
  const found = await interleave(rounds(20, 5), {
    fresh: () => warm(sandlot, PYTHON),
    live: () => cell(sandlot, id, context),
    node: () => warm(sandlot, NODE),
    python3: () => probe.spawn('/usr/bin/python3', '-c', 'pass'),
    coldNode: () => probe.spawn(process.execPath, '-e', '0'),
  })
  await sandlot.purge(id)
  await sandlot.stop()
  return [
    row('empty Python handler over HTTP, in a fresh sandbox', found, 'fresh', 'python3', 'python3 -c pass', 0.1),
    row('empty cell over HTTP, in a live context of Python', found, 'live', 'python3', 'python3 -c pass', 1 / 30),
    row('empty JavaScript handler over HTTP, in a fresh sandbox', found, 'node', 'coldNode', 'node -e 0', 0.2),
    memory,
  ]
}
