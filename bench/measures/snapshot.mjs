// SPDX-License-Identifier: Apache-2.0
// A copy of a workspace of 200 MB in 10,000 files: as a snapshot, which is on the disk when it is answered, and as a
// fork, which also starts the new sandbox, beside `cp -a` of the same files on the host, which leaves them in memory.
import { mkdirSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { interleave, summary, ms, times } from '../lib/stats.mjs'

export const letter = 'p'
export const title = 'snapshots'

const FILES = 10000
const FILE_BYTES = 20000
const GOAL = 5

export async function run({ sandlot, probe, scratch, rounds }) {
  const { id } = await sandlot.create()
  const made = await sandlot.json('POST', `/v1/sandboxes/${id}/exec`, {
    command: `for d in $(seq 100); do mkdir d$d; head -c ${(FILES / 100) * FILE_BYTES} /dev/urandom | split -b ${FILE_BYTES} -a 3 - d$d/f; done; find . -type f | wc -l; sync`,
    cwd: '/workspace/agent_workspace', timeout_ms: 300000,
  })
  if (Number(made.stdout) !== FILES) throw new Error(`${made.stdout} files were made: ${made.stderr}`)
  const copies = `${scratch}/copies`
  let used = 0
  mkdirSync(copies)
  const clean = () => spawnSync('sync', ['-f', scratch])
  const found = await interleave(rounds(4, 2), {
    async snapshot() {
      clean()
      const { ms: took, id: snapshot } = await sandlot.http(`POST /v1/sandboxes/${id}/snapshots {}`)
      await sandlot.json('DELETE', `/v1/snapshots/${snapshot}`)
      return took
    },
    async fork() {
      clean()
      const { ms: took, body } = await sandlot.http(`POST /v1/sandboxes/${id}/fork {}`)
      await sandlot.purgeAll(JSON.parse(body).sandboxes.map((one) => one.id))
      return took
    },
    async cp() {
      clean()
      return probe.spawn('cp', '-a', `${sandlot.workspace(id)}/agent_workspace`, `${copies}/${used++}`)
    },
  }, { block: 1 })
  await sandlot.purge(id)
  const of = (name) => summary([...found.first[name], ...found.samples[name]], 'ms')
  const theirs = of('cp')
  const row = (name, what) => {
    const ours = of(name), ratio = theirs.median / ours.median
    return { what, sandlot: ms(ours.median), peer: `cp -a: ${ms(theirs.median)}`, ratio: times(ratio), goal: `>= ${GOAL}x`, ok: ratio >= GOAL, data: { sandlot: ours, cp: theirs, ratio } }
  }
  return [row('snapshot', 'snapshot of 200 MB in 10,000 files'), row('fork', 'fork of the same, until it runs')]
}
