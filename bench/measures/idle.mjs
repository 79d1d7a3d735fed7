// SPDX-License-Identifier: Apache-2.0
// What sandboxes cost that do nothing: memory of the host, memory of the daemon, time of the next create.
//
// MemAvailable moves with every neighbour, so it is taken over three fillings, and beside it the sum of
// what only sandboxes make grow (unreclaimable slab, kernel stacks, page tables, per-cpu, anonymous);
// the larger of the two medians is reported.
//
// Before creates are timed among a thousand, all memory that a thousand need is taken and given back
// once: fresh guest memory from a hypervisor costs more than a create.
import { summary, median, mib, ms, times } from '../lib/stats.mjs'
import { memory, settleMemory, rss, sleep } from '../lib/host.mjs'

export const letter = 'e'
export const needs = ['docker']
export const title = 'idle sandboxes'

const FEW = 10
const MANY = 1000
const FILLING = 500

// What filling up took of the host's memory, per sandbox in bytes.
async function costOf(count, fill) {
  await settleMemory()
  const before = memory()
  const ids = await fill(count)
  await settleMemory()
  const after = memory()
  return {
    ids, available: (before.available - after.available) / count,
    parts: (after.kernel - before.kernel + after.anonymous - before.anonymous) / count,
  }
}

const larger = (costs) => Math.max(median(costs.map((cost) => cost.available)), median(costs.map((cost) => cost.parts)))

async function memoryRows({ sandlot, docker, rounds }) {
  const ours = [], theirs = [], daemon = []
  const containers = rounds(20, 8)
  // Libraries, caches and threads that one sandbox needs are not the price of the others.
  await sandlot.purgeAll(await sandlot.fill(20))
  await sandlot.settle()
  const daemonBefore = rss(sandlot.pid).now
  for (let i = 0; i < rounds(3, 1); i++) {
    const { ids, ...cost } = await costOf(FILLING, (count) => sandlot.fill(count))
    ours.push(cost)
    daemon.push(rss(sandlot.pid).now)
    await sandlot.purgeAll(ids)
    await sandlot.settle()
  }
  for (let i = 0; i < rounds(2, 1); i++) {
    const { ids, ...cost } = await costOf(containers, async (count) => {
      const made = []
      while (made.length < count) made.push((await docker.create()).id)
      return made
    })
    theirs.push(cost)
    for (const id of ids) await docker.remove(id)
  }
  const each = larger(ours), peer = larger(theirs), most = Math.max(...daemon)
  return [
    { what: `memory of an idle sandbox (${FILLING} alive)`, sandlot: mib(each), peer: `Docker, ${containers} containers: ${mib(peer)}`,
      ratio: `${times(peer / each)} less`, goal: '<= 1 MiB', ok: each <= 1 << 20, data: { sandlot_bytes: ours, docker_bytes: theirs, ratio: peer / each } },
    { what: `sandlotd with ${FILLING} sandboxes (RSS)`, sandlot: mib(most), goal: '< 40 MiB', ok: most < 40 * 2 ** 20,
      data: { rss_bytes: daemon, rss_before_bytes: daemonBefore } },
  ]
}

async function createRow({ sandlot, rounds }) {
  const cycles = rounds(3, 1), creates = rounds(40, 20)
  const few = [], crowded = []
  const measure = async (into) => {
    for (let i = 0; i < creates; i++) {
      const made = await sandlot.create()
      await sandlot.purge(made.id)
      into.push(made.ms)
      await sleep(5)
    }
  }
  const fillUp = async (count) => {
    const ids = []
    while (ids.length < count) ids.push(...await sandlot.fill(Math.min(250, count - ids.length)))
    return ids
  }
  await sandlot.purgeAll(await fillUp(MANY))
  await sandlot.settle()
  const base = await fillUp(FEW)
  for (let cycle = 0; cycle < cycles; cycle++) {
    await settleMemory(3000)
    await measure(few)
    const more = await fillUp(MANY - FEW)
    await settleMemory(3000)
    await measure(crowded)
    await sandlot.purgeAll(more)
    await sandlot.settle()
  }
  await sandlot.purgeAll(base)
  const ratio = median(crowded) / median(few)
  return { what: `create with ${MANY.toLocaleString('en')} sandboxes alive`, sandlot: ms(median(crowded)), peer: `with ${FEW} alive: ${ms(median(few))}`,
    ratio: times(ratio), goal: '<= 1.5x', ok: ratio <= 1.5, data: { crowded: summary(crowded, 'ms'), few: summary(few, 'ms'), ratio } }
}

export async function run(context) {
  return [...await memoryRows(context), await createRow(context)]
}
