// SPDX-License-Identifier: Apache-2.0
// How many execs of `true` one sandbox does in a second, asked by few and by many.
import { interleave, summary, faster } from '../lib/stats.mjs'

export const letter = 'k'
export const needs = ['docker']
export const title = 'execs per second'

const perSecond = (value) => `${value.toFixed(0)}/s`

export async function run({ sandlot, docker, probe, rounds }) {
  const { id } = await sandlot.create()
  const container = await docker.create()
  const dockerExec = [`POST /containers/${container.id}/exec {"Cmd":["true"],"AttachStdout":true,"AttachStderr":true}`,
    'POST /exec/{id}/start {"Detach":false}', 'GET /exec/{id}/json']
  const rate = async (target, clients, count, request) => count / ((await probe.batch(target, clients, Array(count).fill(request))).wallMs / 1000)
  const rows = []
  for (const [clients, count, peers] of [[1, 400, 20], [8, 1600, 40], [64, 3200, 0]]) {
    const contenders = { sandlot: () => rate(sandlot.target, clients, count, `POST /v1/sandboxes/${id}/exec {"argv":["true"]}`) }
    if (peers > 0) contenders.docker = () => rate(docker.target, clients, peers, dockerExec)
    const { samples } = await interleave(rounds(5, 2), contenders, { block: 1 })
    const data = { sandlot: summary(samples.sandlot, '1/s') }
    const row = { what: `execs of \`true\` by ${clients} client${clients > 1 ? 's' : ''}`, sandlot: perSecond(data.sandlot.median), data }
    if (peers > 0) {
      data.docker = summary(samples.docker, '1/s')
      data.ratio = data.sandlot.median / data.docker.median
      row.peer = `Docker API exec: ${perSecond(data.docker.median)}`
      row.ratio = faster(data.ratio)
    }
    rows.push(row)
  }
  await sandlot.purge(id)
  await docker.remove(container.id)
  return rows
}
