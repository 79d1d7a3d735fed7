// SPDX-License-Identifier: Apache-2.0
import { summary, median, quantile, ms } from '../lib/stats.mjs'

export const letter = 'd'
export const title = '100 creates by 8 clients'

const CREATES = 100
const CLIENTS = 8

export async function run({ sandlot, probe, rounds }) {
  const rates = [], p99s = [], latencies = []
  for (let round = -1; round < rounds(10, 4); round++) {
    const burst = await probe.batch(sandlot.target, CLIENTS, Array(CREATES).fill('POST /v1/sandboxes {}'))
    await sandlot.purgeAll(burst.ids)
    await sandlot.settle()
    if (round < 0) continue
    rates.push(CREATES / (burst.wallMs / 1000))
    p99s.push(quantile(burst.ms, 0.99))
    latencies.push(...burst.ms)
  }
  const rate = median(rates), p99 = median(p99s)
  return [
    { what: '100 creates by 8 parallel clients', sandlot: `${rate.toFixed(0)}/s`, goal: '>= 200/s', ok: rate >= 200, data: { sandlot: summary(rates, '1/s') } },
    { what: '... 99th percentile of one create', sandlot: ms(p99), goal: '< 100 ms', ok: p99 < 100,
      data: { sandlot: summary(p99s, 'ms'), latencies: summary(latencies, 'ms') } },
  ]
}
