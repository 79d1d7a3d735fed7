// SPDX-License-Identifier: Apache-2.0
import { interleave, compare, ms, faster } from '../lib/stats.mjs'

export const letter = 'a'
export const needs = ['docker']
export const title = 'create until running'

export async function run({ sandlot, docker, rounds }) {
  const data = compare(await interleave(rounds(25, 5), {
    async sandlot() {
      const made = await sandlot.create()
      await sandlot.purge(made.id)
      return made.ms
    },
    async docker() {
      const made = await docker.create()
      await docker.remove(made.id)
      return made.ms
    },
  }), 'sandlot', 'docker', 'ms')
  return [{
    what: 'create over HTTP until running, nothing pre-warmed', sandlot: ms(data.sandlot.median),
    peer: `Docker API create+start, no network: ${ms(data.docker.median)}`, ratio: faster(data.ratio),
    goal: '>= 60x', ok: data.ratio >= 60, data,
  }]
}
