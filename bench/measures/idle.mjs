// SPDX-License-Identifier: Apache-2.0
// What sandboxes cost that do nothing: memory of the host, memory of the daemon, time of the next create.
//
// MemAvailable moves with every neighbour. So it is taken over three fillings, and beside it the sum of the
// parts: what the kernel holds (unreclaimable slab, stacks, page tables, per-cpu) and what the
// processes hold privately. Of our two medians the larger is reported; Docker's, of few containers,
// would drown in the noise of the first, so it is the second.
//
// Before creates are timed among a thousand, all memory that a thousand need is taken and given back
// once: fresh guest memory from a hypervisor costs more than a create.
import { summary, median, mib, ms, times } from '../lib/stats.mjs'
import { memory, settleMemory, rss, privateMemory, childrenOf, sleep } from '../lib/host.mjs'

export const letter = 'e'
export const needs = ['docker']
export const title = 'idle sandboxes'

const FEW = 10
const MANY = 1000
const FILLING = 500

// What filling up took of the host's memory, per sandbox in bytes.
async function costOf(count, fill, processesOf) {
  const privateSum = () => processesOf().reduce((sum, pid) => sum + privateMemory(pid), 0)
  await settleMemory()
  const before = memory(), privateBefore = privateSum()
  const ids = await fill(count)
  await settleMemory()
  const after = memory()
  const kernel = (after.kernel - before.kernel) / count, processes = (privateSum() - privateBefore) / count
  return { ids, available: (before.available - after.available) / count, parts: kernel + processes, kernel, processes }
}

const medianOf = (costs, name) => median(costs.map((cost) => cost[name]))

async function memoryRows({ sandlot, docker, rounds }) {
  const ours = [], theirs = [], daemon = []
  const containers = rounds(20, 8)
  const keeper = sandlot.keeperPid()
  // Libraries, caches and threads that one sandbox needs are not the price of the others.
  await sandlot.purgeAll(await sandlot.fill(20))
  await sandlot.settle()
  const daemonBefore = rss(sandlot.pid).now
  for (let i = 0; i < rounds(3, 1); i++) {
    const { ids, ...cost } = await costOf(FILLING, (count) => sandlot.fill(count),
      () => [sandlot.pid, keeper, ...childrenOf(keeper)])
    ours.push(cost)
    daemon.push(rss(sandlot.pid).now)
    await sandlot.purgeAll(ids)
    await sandlot.settle()
  }
  for (let i = 0; i < rounds(3, 1); i++) {
    const { ids, ...cost } = await costOf(containers, async (count) => {
      const made = []
      while (made.length < count) made.push((await docker.create()).id)
      return made
    }, () => docker.processes())
    theirs.push(cost)
    for (const id of ids) await docker.remove(id)
  }
  const each = Math.max(medianOf(ours, 'available'), medianOf(ours, 'parts'))
  const peer = medianOf(theirs, 'parts'), most = Math.max(...daemon)
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
