// SPDX-License-Identifier: Apache-2.0
// Samples to numbers, numbers to text.
import { setTimeout as sleep } from 'node:timers/promises'

export function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b)
  if (sorted.length === 0) return NaN
  const at = (sorted.length - 1) * q
  const low = Math.floor(at)
  return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (at - low)
}

export const median = (samples) => quantile(samples, 0.5)

export function summary(samples, unit) {
  return {
    unit, n: samples.length, median: median(samples), p99: quantile(samples, 0.99),
    min: quantile(samples, 0), max: quantile(samples, 1), samples,
  }
}

const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2))
export const ms = (value) => `${digits(value)} ms`
export const mib = (bytes) => `${digits(bytes / 2 ** 20)} MiB`
export const mbs = (value) => `${value.toFixed(0)} MB/s`
export const times = (value) => `${digits(value)}x`
export const faster = (ratio) => (ratio >= 1 ? `${times(ratio)} faster` : `${times(1 / ratio)} slower`)

// Who runs after a heavy neighbour pays for the caches it left cold and for what it still does in the
// background. So contenders take turns in blocks: a short quiet time, one call that is kept apart
// (`first`), then those that count. Who begins moves on by one each round.
const QUIET_MS = 30

export async function interleave(rounds, contenders, { block = 3 } = {}) {
  const names = Object.keys(contenders)
  const samples = Object.fromEntries(names.map((name) => [name, []]))
  const first = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length]
      await sleep(QUIET_MS)
      first[name].push(await contenders[name]())
      for (let call = 0; call < block; call++) samples[name].push(await contenders[name]())
    }
  }
  return { samples, first }
}

// Ours beside theirs: what goes into the JSON of every row that compares.
export function compare(found, ours, theirs, unit) {
  const a = summary(found.samples[ours], unit), b = summary(found.samples[theirs], unit)
  return {
    [ours]: a, [theirs]: b, ratio: b.median / a.median, ratio_of_minima: b.min / a.min,
    first_of_a_block: { [ours]: summary(found.first[ours], unit), [theirs]: summary(found.first[theirs], unit),
      ratio: median(found.first[theirs]) / median(found.first[ours]) },
  }
}
