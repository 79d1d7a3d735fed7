// SPDX-License-Identifier: Apache-2.0
// Beside Docker, two floors: the same program started without any sandbox, and an empty request.
import { interleave, compare, summary, ms, times, faster } from '../lib/stats.mjs'

export const letter = 'c'
export const needs = ['docker']
export const title = 'exec in a running sandbox'

export async function run({ sandlot, docker, probe, rounds }) {
  const { id } = await sandlot.create()
  const container = await docker.create()
  const found = await interleave(rounds(30, 8), {
    sandlot: async () => (await sandlot.http(`POST /v1/sandboxes/${id}/exec {"argv":["true"]}`)).ms,
    async docker() {
      const done = await docker.http(`POST /containers/${container.id}/exec {"Cmd":["true"],"AttachStdout":true,"AttachStderr":true}`,
        'POST /exec/{id}/start {"Detach":false}', 'GET /exec/{id}/json')
      const { Running, ExitCode } = JSON.parse(done.body)
      if (Running || ExitCode !== 0) throw new Error(`docker exec: ${done.body}`)
      return done.ms
    },
    plain: () => probe.spawn('true'),
    http: async () => (await sandlot.http('GET /healthz')).ms,
  })
  await sandlot.purge(id)
  await docker.remove(container.id)
  const data = compare(found, 'sandlot', 'docker', 'ms')
  const plain = compare(found, 'sandlot', 'plain', 'ms')
  const what = 'exec of `true` over HTTP in a running sandbox', ours = ms(data.sandlot.median)
  return [
    { what, sandlot: ours, peer: `Docker API exec create+start+inspect: ${ms(data.docker.median)}`, ratio: faster(data.ratio),
      goal: '>= 30x', ok: data.ratio >= 30, data: { ...data, http_floor: summary(found.samples.http, 'ms') } },
    { what, sandlot: ours, peer: `\`true\` without any sandbox: ${ms(plain.plain.median)}`, ratio: times(1 / plain.ratio), data: plain },
  ]
}
