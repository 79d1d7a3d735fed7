// SPDX-License-Identifier: Apache-2.0
import { interleave, compare, summary, median, ms, times } from '../lib/stats.mjs'

export const letter = 'f'
export const title = 'stop and wake'

export async function run({ sandlot, rounds }) {
  const { id } = await sandlot.create()
  const stops = []
  let mebibytes = 512
  const data = compare(await interleave(rounds(30, 8), {
    async wake() {
      stops.push((await sandlot.http(`POST /v1/sandboxes/${id}/stop`)).ms)
      return (await sandlot.http(`POST /v1/sandboxes/${id}/start`)).ms
    },
    async create() { // like none before it: a wake finds nothing that was built ahead either
      const made = await sandlot.create(`{"resources":{"memory":"${++mebibytes}Mi"}}`)
      await sandlot.purge(made.id)
      return made.ms
    },
  }), 'create', 'wake', 'ms')
  await sandlot.purge(id)
  return [{
    what: `wake of a stopped sandbox over HTTP (stop: ${ms(median(stops))})`, sandlot: ms(data.wake.median), peer: `create with nothing made ahead: ${ms(data.create.median)}`,
    ratio: times(data.ratio), goal: '<= 1.5x', ok: data.ratio <= 1.5, data: { ...data, stop: summary(stops, 'ms') },
  }]
}
