// SPDX-License-Identifier: Apache-2.0
// A key typed into a shell until the terminal shows it.
import { interleave, median, quantile, summary, ms, faster } from '../lib/stats.mjs'

export const letter = 'j'
export const needs = ['docker']
export const title = 'keys in a terminal'

const KEYS = 200

export async function run({ sandlot, docker, probe, rounds }) {
  const { id } = await sandlot.create()
  const container = await docker.create()
  const keys = { sandlot: [], docker: [] }
  const typed = async (name, target, request) => {
    const times = await probe.keys(target, KEYS, request)
    keys[name].push(...times)
    return median(times)
  }
  await interleave(rounds(5, 2), {
    sandlot: () => typed('sandlot', sandlot.target, `GET /v1/sandboxes/${id}/terminal?cols=80&rows=24`),
    async docker() {
      const made = await docker.http(`POST /containers/${container.id}/exec {"Cmd":["sh"],"Tty":true,"AttachStdin":true,"AttachStdout":true,"AttachStderr":true}`)
      return typed('docker', docker.target, `POST /exec/${made.id}/start {"Detach":false,"Tty":true}`)
    },
  }, { block: 1 })
  await sandlot.purge(id)
  await docker.remove(container.id)
  const data = { sandlot: summary(keys.sandlot, 'ms'), docker: summary(keys.docker, 'ms') }
  data.ratio = data.docker.median / data.sandlot.median
  const tails = [quantile(keys.sandlot, 0.99), quantile(keys.docker, 0.99)]
  return [
    { what: 'a key in a terminal until it is shown', sandlot: ms(data.sandlot.median), peer: `Docker API exec with a TTY: ${ms(data.docker.median)}`,
      ratio: faster(data.ratio), goal: '< 2 ms', ok: data.sandlot.median < 2, data },
    { what: '... 99th percentile', sandlot: ms(tails[0]), peer: `Docker: ${ms(tails[1])}`, ratio: faster(tails[1] / tails[0]) },
  ]
}
