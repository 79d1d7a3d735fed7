// SPDX-License-Identifier: Apache-2.0
// Starts the contenders, runs the measures one after the other (inside each, contenders alternate),
// prints one table and writes JSON. Timings are not assertions: the exit status only tells whether
// everything could be measured.
import { writeFileSync, readdirSync, copyFileSync } from 'node:fs'
import os from 'node:os'
import { Undo, makeScratch, describeMachine, firstLine } from './lib/host.mjs'
import { Probe } from './lib/probe.mjs'
import { Sandlot } from './lib/sandlot.mjs'
import { Docker, makeBusybox, makeBundle, peerNamespace } from './lib/docker.mjs'

// In the order of the table; the one that makes and removes thousands of sandboxes comes last, since
// an ext4 without a journal is slow for a minute after it, for everybody.
const ORDER = ['create', 'cycle', 'exec', 'processor', 'burst', 'wake', 'pause', 'stream', 'terminal', 'execrate', 'flood', 'files', 'snapshot', 'image', 'dependencies', 'launch', 'pool', 'members', 'execution', 'egress', 'preview', 'console', 'idle']

function parseArguments(argv) {
  const options = { build: argv[0], results: argv[1], quick: false, only: null }
  for (let i = 2; i < argv.length; i++) {
    if (argv[i] === '--quick') options.quick = true
    else if (argv[i] === '--only' && argv[i + 1]) options.only = argv[++i].split(',')
    else throw new Error(`unknown argument ${argv[i]}; there are --quick and --only a,c`)
  }
  return options
}

async function loadMeasures(options) {
  const all = await Promise.all(ORDER.map((name) => import(`./measures/${name}.mjs`)))
  const unknown = options.only?.find((letter) => !all.some((measure) => measure.letter === letter))
  if (unknown) throw new Error(`--only: there is no ${unknown}, only ${all.map((measure) => measure.letter).sort().join(',')}`)
  return all.filter((measure) => options.only?.includes(measure.letter) ?? true)
}

async function startAll(undo, options, measures) {
  const scratch = makeScratch(undo)
  const program = `${options.results}/probe`
  const cgroup = `slbench-${process.pid}`
  const probe = new Probe(undo, program)
  const context = { undo, scratch, probe, rounds: (full, quick) => (options.quick ? quick : full) }
  undo.push('keep the logs', () => {
    for (const log of readdirSync(scratch).filter((name) => name.endsWith('.log'))) copyFileSync(`${scratch}/${log}`, `${options.results}/${log}`)
  })
  if (measures.some((measure) => measure.needs?.includes('docker'))) {
    const busybox = makeBusybox(scratch)
    context.peerProbe = new Probe(undo, program, peerNamespace())
    context.docker = await Docker.start(undo, scratch, busybox, cgroup, probe)
    context.bundle = makeBundle(scratch, busybox, cgroup)
  }
  context.sandlot = await Sandlot.start(undo, scratch, options.build, probe)
  return context
}

function versions({ docker, sandlot }) {
  const component = (name) => docker?.versions.Components?.find((c) => c.Name === name)?.Version
  return {
    sandlot: sandlot.version, docker: docker?.versions.Version, containerd: component('containerd'), runc: component('runc'),
    crun: firstLine('crun', '--version')?.replace(/^crun version /, ''), bwrap: firstLine('bwrap', '--version')?.replace(/^bubblewrap /, ''),
    nginx: firstLine('/usr/sbin/nginx', '-v')?.replace(/^.*nginx\//, ''), curl: firstLine('curl', '--version')?.split(' ')[1],
  }
}

const HEADINGS = { what: 'what', sandlot: 'Sandlot', peer: 'peer', ratio: 'ratio', goal: 'goal', ok: 'ok' }

function formatTable(rows) {
  const cell = (row, column) => (column === 'ok' ? { true: 'yes', false: '**no**' }[row.ok] : row[column]) ?? ''
  const lines = rows.map((row) => Object.keys(HEADINGS).map((column) => cell(row, column)))
  lines.unshift(Object.values(HEADINGS))
  const widths = Object.keys(HEADINGS).map((_, i) => Math.max(...lines.map((line) => line[i].length)))
  lines.splice(1, 0, widths.map((width) => '-'.repeat(width)))
  return lines.map((line) => `| ${line.map((text, i) => text.padEnd(widths[i])).join(' | ')} |`).join('\n')
}

function formatMachine(machine, v) {
  return `${machine.cores} cores (${machine.cpu}), ${machine.memory_gib} GiB, Linux ${machine.kernel}, ${machine.disk}; ` +
    `sandlot ${v.sandlot}, ${v.docker ? `docker ${v.docker} (containerd ${v.containerd}, runc ${v.runc}), ` : ''}crun ${v.crun}, bwrap ${v.bwrap}, ` +
    `nginx ${v.nginx}, curl ${v.curl}; load before the run ${machine.load_before.toFixed(1)}`
}

async function measureAll(context, measures) {
  const rows = []
  for (const measure of measures) {
    process.stderr.write(`${measure.letter}: ${measure.title} ...`)
    const start = Date.now()
    try {
      const found = await measure.run(context)
      rows.push(...found.map((row) => ({ id: measure.letter, ...row })))
      process.stderr.write(` ${((Date.now() - start) / 1000).toFixed(0)} s\n`)
    } catch (error) {
      if (context.undo.begun) throw error
      process.stderr.write(` failed: ${error.message}\n`)
      process.exitCode = 1
      rows.push({ id: measure.letter, what: measure.title, sandlot: 'not measured', peer: '', ratio: '', goal: '', ok: false, data: { error: error.message } })
    }
  }
  return rows.sort((a, b) => a.id.localeCompare(b.id))
}

async function main() {
  const options = parseArguments(process.argv.slice(2))
  const undo = new Undo()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, async () => {
      process.stderr.write(`\n${signal}: cleaning up\n`)
      await undo.run()
      process.exit(130)
    })
  }
  const machine = describeMachine()
  const started = new Date()
  try {
    const measures = await loadMeasures(options)
    const context = await startAll(undo, options, measures)
    const used = versions(context)
    const rows = await measureAll(context, measures)
    if (context.sandlot.service.ended !== null) throw new Error(`sandlotd ended (${context.sandlot.service.ended}) during the run`)
    const warnings = context.sandlot.log().split('\n').filter((line) => /"level":"(warning|error)"/.test(line))
    console.log(`\n${formatTable(rows)}\n\n${formatMachine(machine, used)}`)
    if (warnings.length > 0) console.error(`\nsandlotd logged ${warnings.length} warnings or errors; the last:\n${warnings.slice(-5).join('\n')}`)
    writeFileSync(`${options.results}/latest.json`, JSON.stringify({
      started_at: started.toISOString(), duration_s: (Date.now() - started) / 1000, quick: options.quick,
      machine: { ...machine, load_after: os.loadavg()[0] }, versions: used, warnings: warnings.length, rows,
    }, null, 1) + '\n')
    console.error(`\nAll samples: ${options.results}/latest.json`)
  } catch (error) {
    if (!undo.begun) console.error(`bench: ${error.stack}`)
    process.exitCode = 1
  } finally {
    await undo.run()
  }
}

await main()
