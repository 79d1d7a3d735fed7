// SPDX-License-Identifier: Apache-2.0
import { interleave, compare, ms, faster } from '../lib/stats.mjs'

export const letter = 'a'
export const needs = ['docker']
export const title = 'create until running'

export async function run({ sandlot, docker, rounds }) {
  let mebibytes = 512
  const make = async (body) => {
    const made = await sandlot.create(body)
    await sandlot.purge(made.id)
    return made.ms
  }
  const found = await interleave(rounds(25, 5), {
    sandlot: () => make(),
    other: () => make(`{"resources":{"memory":"${++mebibytes}Mi"}}`), // like none before it, so nothing of it is built ahead
    async docker() {
      const made = await docker.create()
      await docker.remove(made.id)
      return made.ms
    },
  })
  const row = (what, contender, goal) => {
    const data = compare(found, contender, 'docker', 'ms')
    return {
      what, sandlot: ms(data[contender].median), peer: `Docker API create+start, no network: ${ms(data.docker.median)}`, ratio: faster(data.ratio),
      ...(goal && { goal: `>= ${goal}x`, ok: data.ratio >= goal }), data,
    }
  }
  return [
    row('create over HTTP until running, like the one before', 'sandlot', 60),
    row('... unlike any before, so that nothing of it was made ahead', 'other'),
  ]
}
