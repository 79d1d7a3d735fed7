// SPDX-License-Identifier: Apache-2.0
import { interleave, compare, ms, faster } from '../lib/stats.mjs'
import { waitFor } from '../lib/host.mjs'

export const letter = 'h'
export const needs = ['docker']
export const title = 'pause and resume'

function row(what, peer, found) {
  const data = compare(found, 'sandlot', 'docker', 'ms')
  return { what, sandlot: ms(data.sandlot.median), peer: `${peer}: ${ms(data.docker.median)}`, ratio: faster(data.ratio), data }
}

export async function run({ sandlot, docker, rounds }) {
  const { id } = await sandlot.create()
  const container = await docker.create()
  // Docker answers before it knows its own new state, and refuses the next request until it does.
  const isPaused = (paused) => waitFor('Docker to know its state', async () =>
    (await docker.http(`GET /containers/${container.id}/json`)).body.includes(`"Paused":${paused}`))
  // Each resume belongs to the pause before it, so it is timed there and sorted the same way after.
  const resumes = { sandlot: [], docker: [] }
  const block = 3
  const paused = await interleave(rounds(20, 6), {
    async sandlot() {
      const pause = await sandlot.http(`POST /v1/sandboxes/${id}/pause`)
      resumes.sandlot.push((await sandlot.http(`POST /v1/sandboxes/${id}/resume`)).ms)
      return pause.ms
    },
    async docker() {
      const pause = await docker.http(`POST /containers/${container.id}/pause`)
      await isPaused(true)
      resumes.docker.push((await docker.http(`POST /containers/${container.id}/unpause`)).ms)
      await isPaused(false)
      return pause.ms
    },
  }, { block })
  await sandlot.purge(id)
  await docker.remove(container.id)
  const isFirst = (_, i) => i % (block + 1) === 0
  const part = (keep) => Object.fromEntries(Object.entries(resumes).map(([name, all]) => [name, all.filter(keep)]))
  const resumed = { first: part(isFirst), samples: part((v, i) => !isFirst(v, i)) }
  return [row('pause over HTTP', 'Docker API pause', paused), row('resume over HTTP', 'Docker API unpause', resumed)]
}
