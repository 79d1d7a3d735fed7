// SPDX-License-Identifier: Apache-2.0
// Creates that are given a sandbox of a pool: bare, and with all that a create may ask for; what a waiting one holds of
// memory; and what filling a pool costs those who run commands meanwhile.
import { summary, median, quantile, ms, mib, times, faster } from '../lib/stats.mjs'
import { memory, settleMemory, privateMemory, childrenOf, sleep } from '../lib/host.mjs'
import { putTemplate } from '../lib/sandlot.mjs'

export const letter = 'w'
export const needs = ['docker']
export const title = 'warm pools'

const SIZE = 16
const BARE = '{"template":"warm"}'
const LOADED = JSON.stringify({ template: 'warm', env: { A: '1', B: '2' }, labels: { team: 'bench' }, resources: { memory: '700Mi', cpu: 0.7, pids: 500 },
  network: { mode: 'allowlist', allow: ['a.example.org', 'b.example.org'], secrets: ['bench-key'] } })

async function prepare(sandlot) {
  await putTemplate(sandlot, 'warm')
  await sandlot.json('PUT', '/v1/secrets/bench-key', { url: 'https://api.example.org', value: 'x' })
}

const setPool = (sandlot, size, more = {}) => sandlot.json('PATCH', '/v1/templates/warm', { pool: { size }, ...more })
const poolOf = async (sandlot) => (await sandlot.json('GET', '/v1/pools')).pools.find(({ template }) => template === 'warm')

async function untilFull(sandlot, size = SIZE) {
  for (;;) {
    const pool = await poolOf(sandlot)
    if ((pool?.ready ?? 0) === size) return pool
    await sleep(50)
  }
}

async function claims(sandlot, body, count) {
  await untilFull(sandlot)
  await sleep(300)
  const ids = [], samples = []
  for (let i = 0; i < count; i++) {
    const made = await sandlot.create(body)
    ids.push(made.id)
    samples.push(made.ms)
  }
  await sandlot.purgeAll(ids)
  return samples
}

async function containers(docker, count) {
  const samples = []
  for (let i = 0; i < count; i++) {
    const made = await docker.create()
    await docker.remove(made.id)
    samples.push(made.ms)
  }
  return samples
}

async function claimRows({ sandlot, docker, rounds }) {
  const bare = [], loaded = [], theirs = []
  const { hits } = await untilFull(sandlot)
  await claims(sandlot, BARE, 2)
  for (let round = 0; round < rounds(10, 3); round++) {
    bare.push(...await claims(sandlot, BARE, SIZE / 2))
    loaded.push(...await claims(sandlot, LOADED, SIZE / 2))
    theirs.push(...await containers(docker, 3))
  }
  const after = await untilFull(sandlot)
  if (after.hits - hits !== bare.length + loaded.length + 2) throw new Error('not all were given a waiting sandbox')
  const ratio = median(loaded) / median(bare), before = median(theirs) / median(bare)
  return [
    { what: 'create over HTTP that is given a waiting sandbox', sandlot: ms(median(bare)), goal: '< 1 ms', ok: median(bare) < 1, data: { sandlot: summary(bare, 'ms') } },
    { what: '... beside a container', sandlot: ms(median(bare)), peer: `Docker API create+start, no network: ${ms(median(theirs))}`, ratio: faster(before),
      goal: '>= 150x', ok: before >= 150, data: { docker: summary(theirs, 'ms'), ratio: before } },
    { what: '... with environment, limits, labels, rules and a secret', sandlot: ms(median(loaded)), peer: `bare: ${ms(median(bare))}`, ratio: times(ratio),
      goal: '<= 1.5x', ok: ratio <= 1.5, data: { sandlot: summary(loaded, 'ms'), ratio } },
  ]
}

async function memoryRow({ sandlot }) {
  const keeper = sandlot.keeperPid(), full = childrenOf(keeper).length
  await setPool(sandlot, 0)
  await untilFull(sandlot, 0)
  // Those that waited are removed one by one, and would be taken back by a pool that wants them again.
  while (childrenOf(keeper).length > full - SIZE + 2) await sleep(50)
  await sandlot.settle()
  await settleMemory()
  const ofTree = (pid) => childrenOf(pid).reduce((sum, child) => sum + ofTree(child), privateMemory(pid))
  const before = memory(), there = new Set(childrenOf(keeper))
  await setPool(sandlot, SIZE)
  await untilFull(sandlot)
  await settleMemory()
  const available = (before.available - memory().available) / SIZE
  const kernel = (memory().kernel - before.kernel) / SIZE
  // Each sandbox is a child of the keeper, with all that runs in it. What daemon and keeper hold besides may shrink meanwhile.
  const processes = childrenOf(keeper).filter((pid) => !there.has(pid)).reduce((sum, pid) => sum + ofTree(pid), 0) / SIZE
  // Neighbours move what is available; what our processes hold is ours.
  const each = Math.max(available, processes + kernel, processes)
  return { what: 'memory of a waiting sandbox, with a shell that sleeps', sandlot: mib(each), data: { sandlot_bytes: { available, processes, kernel } } }
}

async function execs(sandlot, id, goesOn) {
  const samples = []
  while (goesOn(samples.length)) samples.push((await sandlot.http(`POST /v1/sandboxes/${id}/exec {"argv":["true"]}`)).ms)
  return samples
}

async function refillRow({ sandlot, rounds }) {
  const { id } = await sandlot.create('{}')
  await execs(sandlot, id, (count) => count < 50)
  const quiet = await execs(sandlot, id, (count) => count < rounds(2000, 500))
  let isFull = false
  await setPool(sandlot, SIZE, { env: { VERSION: String(Date.now()) } })
  const filling = untilFull(sandlot).then(async () => { await sleep(1500); await untilFull(sandlot); isFull = true })
  const busy = await execs(sandlot, id, () => !isFull)
  await filling
  await sandlot.purge(id)
  const [before, meanwhile] = [quantile(quiet, 0.99), quantile(busy, 0.99)]
  return { what: '99th percentile of an exec while a pool is filled', sandlot: ms(meanwhile), peer: `otherwise: ${ms(before)}`, ratio: times(meanwhile / before),
    goal: '<= 1.5x', ok: meanwhile / before <= 1.5, data: { filling: summary(busy, 'ms'), quiet: summary(quiet, 'ms') } }
}

export async function run(context) {
  const { sandlot } = context
  await prepare(sandlot)
  await setPool(sandlot, SIZE, { start: 'exec sleep infinity' })
  const rows = [...await claimRows(context), await memoryRow(context), await refillRow(context)]
  await setPool(sandlot, 0)
  await untilFull(sandlot, 0)
  return rows
}
