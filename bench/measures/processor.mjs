// SPDX-License-Identifier: Apache-2.0
// The processor time that all processes of Sandlot spend together on one create + purge and on one exec.
// Building ahead cannot hide it, and neighbours disturb it less than latency. Work that the kernel does in its
// own threads (removing network namespaces, writing to disk) is in no process and so not in it.
import { processorTime } from '../lib/host.mjs'
import { ms, times } from '../lib/stats.mjs'

export const letter = 'm'
export const title = 'processor time of a create and of an exec'

const PARTS = ['daemon', 'keeper', 'children']

// The daemon; the keeper's own loop; and the keeper's children, alive or reaped: builds, agents with their
// commands, helpers.
function spent(sandlot) {
  const daemon = processorTime(sandlot.pid), keeper = processorTime(sandlot.keeperPid())
  return { daemon: daemon.all, keeper: keeper.own, children: keeper.all - keeper.own }
}

async function costOf(sandlot, rounds, work) {
  const before = spent(sandlot)
  for (let i = 0; i < rounds; i++) await work()
  await sandlot.settle()
  const after = spent(sandlot)
  const parts = Object.fromEntries(PARTS.map((part) => [part, (after[part] - before[part]) / rounds]))
  return { unit: 'ms', n: rounds, ...parts, sum: PARTS.reduce((sum, part) => sum + parts[part], 0) }
}

const split = (cost) => PARTS.map((part) => `${part} ${ms(cost[part])}`).join(', ')

export async function run({ sandlot, probe, rounds }) {
  const cycle = async () => sandlot.purge((await sandlot.create()).id)
  const count = rounds(300, 60)
  for (let i = 0; i < 20; i++) await cycle()
  await sandlot.settle()
  const create = await costOf(sandlot, count, cycle)
  const { id } = await sandlot.create()
  const request = `POST /v1/sandboxes/${id}/exec {"argv":["true"]}`
  await sandlot.http(request)
  const exec = await costOf(sandlot, count, () => sandlot.http(request))
  await sandlot.purge(id)
  const before = processorTime(probe.pid)
  for (let i = 0; i < count; i++) await probe.spawn('true')
  const after = processorTime(probe.pid)
  const plain = (after.all - after.own - before.all + before.own) / count
  return [
    { what: 'processor time of one create + purge', sandlot: ms(create.sum), peer: split(create), goal: '<= 8 ms', ok: create.sum <= 8, data: create },
    { what: 'processor time of one exec of `true`', sandlot: ms(exec.sum), peer: `${split(exec)}; \`true\` alone: ${ms(plain)}`,
      ratio: times(exec.sum / plain), data: { ...exec, plain } },
  ]
}
