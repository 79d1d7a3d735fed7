// SPDX-License-Identifier: Apache-2.0
// Handlers and cells, beside the interpreter alone on the host: in a fresh sandbox whose interpreter has waited, and in a
// context; how many calls there are in a second; and what a first figure costs. A daemon of its own, since waiting
// interpreters are a setting of the daemon. Python is Debian's, as in the sandbox: a name may lead to a script that looks
// for one of several. Docker runs a busybox, which is less than an interpreter.
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { compare, faster, interleave, mib, ms, quantile, summary, times } from '../lib/stats.mjs'
import { sleep, waitFor } from '../lib/host.mjs'
import { Sandlot } from '../lib/sandlot.mjs'

export const letter = 'y'
export const needs = ['docker']
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

function row(what, found, ours, peer, command, part, tailPart) {
  const data = compare(found, ours, peer, 'ms')
  const share = data[ours].median / data[peer].median, tail = quantile(found.samples[ours], 0.99) / data[peer].median
  return { what, sandlot: `${ms(data[ours].median)}, 99th percentile ${ms(data[ours].p99)}`, peer: `\`${command}\` on the host: ${ms(data[peer].median)}`,
    ratio: `${times(share)}, 99th ${times(tail)}`, goal: `<= ${times(part)}${tailPart ? `, ${times(tailPart)}` : ''}`, ok: share <= part && (!tailPart || tail <= tailPart), data: { ...data, tail } }
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

// How many calls of one function there are in a second, by so many clients; interpreters that wait are soon used up.
async function rateRows(sandlot, docker, probe, rounds) {
  const rate = async (target, clients, count, ...request) => count / ((await probe.batch(target, clients, Array(count).fill(request.length > 1 ? request : request[0]))).wallMs / 1000)
  const perSecond = (value) => `${value.toFixed(1)}/s`
  await sandlot.json('PUT', '/v1/functions/empty', JSON.parse(PYTHON))
  const container = [`POST /containers/create ${docker.body('true')}`, 'POST /containers/{id}/start', 'POST /containers/{id}/wait', 'DELETE /containers/{id}?v=1']
  const rows = []
  for (const [clients, count, peers] of [[1, 60, 4], [8, 160, 8], [64, 256, 0]]) {
    const contenders = { sandlot: () => rate(sandlot.target, clients, count, 'POST /v1/functions/empty/invoke {}') }
    if (peers > 0) contenders.docker = () => rate(docker.target, clients, peers, ...container)
    const { samples } = await interleave(rounds(3, 1), contenders, { block: 1 })
    const data = { sandlot: summary(samples.sandlot, '1/s') }
    const row = { what: `calls of an empty Python function by ${clients} client${clients > 1 ? 's' : ''}, each in a fresh sandbox`, sandlot: perSecond(data.sandlot.median), data }
    if (peers > 0) {
      data.docker = summary(samples.docker, '1/s')
      row.peer = `Docker API create+start+wait+delete of \`true\`: ${perSecond(data.docker.median)}`
      row.ratio = faster(data.sandlot.median / data.docker.median)
    }
    rows.push(row)
  }
  return rows
}

// Another script costs nothing while it waits: it is a row, and the interpreter is everybody's.
async function scriptsRow(sandlot) {
  const held = () => descendants(sandlot.keeperPid()).reduce((sum, pid) => sum + share(pid), 0)
  const before = held(), count = 50
  for (let i = 0; i < count; i++) await sandlot.json('PUT', `/v1/functions/other-${i}`, JSON.parse(PYTHON))
  await sleep(2000)
  const each = Math.max(0, held() - before) / count
  return { what: 'memory of all sandboxes for one function more (PSS)', sandlot: mib(each), data: { bytes: each } }
}

const FIGURE = 'import matplotlib\nmatplotlib.use("Agg")\nimport matplotlib.pyplot as plt\ndef handler(event, context):\n    plt.plot([1, 2, 3])\n    plt.savefig("/tmp/a.png")\n    return open("/tmp/a.png", "rb").read(4)[1:].decode()'

// A first figure, by a function whose imports were loaded ahead, and by the host's Python.
async function figureRow(sandlot, probe, rounds) {
  if (spawnSync('/usr/bin/python3', ['-c', 'import matplotlib']).status !== 0) return []
  await sandlot.json('PUT', '/v1/functions/figure', { language: 'python', code: FIGURE, imports: ['matplotlib.pyplot', 'matplotlib.backends.backend_agg'] })
  const figure = async () => {
    for (let tries = 0; tries < 30; tries++) {
      await sleep(3000)
      const done = await sandlot.http('POST /v1/functions/figure/invoke {}')
      const [{ id }] = (await sandlot.json('GET', '/v1/executions?function=figure&limit=1')).executions
      if ((await sandlot.json('GET', `/v1/executions/${id}`)).metrics.start === 'warm') return done.ms
    }
    throw new Error('no interpreter waits with matplotlib')
  }
  const code = `exec(${JSON.stringify(`${FIGURE}\nhandler(0, 0)`)})` // the probe takes no newline
  const found = await interleave(rounds(5, 2), { figure, host: () => probe.spawn('/usr/bin/python3', '-c', code) }, { block: 1 })
  const data = compare(found, 'figure', 'host', 'ms')
  return [{ what: 'first figure of matplotlib, by a function whose imports were loaded ahead', sandlot: ms(data.figure.median), peer: `the same by python3 on the host: ${ms(data.host.median)}`, ratio: times(data.figure.median / data.host.median), data }]
}

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

export async function run({ undo, scratch, sandlot: { build }, docker, probe, rounds }) {
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
  const more = [await scriptsRow(sandlot), ...await rateRows(sandlot, docker, probe, rounds), ...await figureRow(sandlot, probe, rounds)]
  await sandlot.stop()
  return [
    row('empty Python handler over HTTP, in a fresh sandbox', found, 'fresh', 'python3', 'python3 -c pass', 0.1, 0.25),
    row('empty cell over HTTP, in a live context of Python', found, 'live', 'python3', 'python3 -c pass', 1 / 30),
    row('empty JavaScript handler over HTTP, in a fresh sandbox', found, 'node', 'coldNode', 'node -e 0', 0.2),
    memory,
    ...more,
  ]
}
