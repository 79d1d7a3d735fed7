// SPDX-License-Identifier: Apache-2.0
// A copy of a workspace of 200 MB in 10,000 files: as a snapshot and as a fork, which also starts the new sandbox, beside
// `cp -a` of the same files on the host. All three leave it in memory and the kernel writes it later, a snapshot at once.
// Before each of them a hundredth of the files is written anew, and all that is dirty goes to the disk.
// `cp -a` finds the files in memory. So do snapshots and forks after the first copy of a disk; for one more row all that the
// host's cache has of the disk is dropped first.
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
  const image = `${sandlot.data}/workspaces/${id}.img`
  let round = 0
  const clean = async () => {
    await sandlot.json('POST', `/v1/sandboxes/${id}/exec`, {
      command: `head -c ${(FILES / 100) * FILE_BYTES} /dev/urandom | split -b ${FILE_BYTES} -a 3 - d${1 + round++ % 100}/f; sync`,
      cwd: '/workspace/agent_workspace', timeout_ms: 60000,
    })
    spawnSync('sync', ['-f', scratch])
  }
  const snapshot = async () => {
    const { ms: took, id: made } = await sandlot.http(`POST /v1/sandboxes/${id}/snapshots {}`)
    await sandlot.json('DELETE', `/v1/snapshots/${made}`)
    return took
  }
  const found = await interleave(rounds(4, 2), {
    async snapshot() {
      await clean()
      return snapshot()
    },
    async cold() {
      await clean()
      spawnSync('dd', [`if=${image}`, 'iflag=nocache', 'count=0'])
      return snapshot()
    },
    async fork() {
      await clean()
      const { ms: took, body } = await sandlot.http(`POST /v1/sandboxes/${id}/fork {}`)
      await sandlot.purgeAll(JSON.parse(body).sandboxes.map((one) => one.id))
      return took
    },
    async cp() {
      await clean()
      return probe.spawn('cp', '-a', `${sandlot.workspace(id)}/agent_workspace`, `${copies}/${used++}`)
    },
  }, { block: 1 })
  await sandlot.purge(id)
  const of = (name) => summary([...found.first[name], ...found.samples[name]], 'ms')
  const theirs = of('cp')
  const row = (name, what, goal) => {
    const ours = of(name), ratio = theirs.median / ours.median
    return { what, sandlot: ms(ours.median), peer: `cp -a: ${ms(theirs.median)}`, ratio: times(ratio), ...goal && { goal: `>= ${goal}x`, ok: ratio >= goal }, data: { sandlot: ours, cp: theirs, ratio } }
  }
  return [
    row('snapshot', 'snapshot of 200 MB in 10,000 files', GOAL),
    row('cold', '... with nothing of it in the cache of the host'),
    row('fork', 'fork of the same, until it runs', GOAL),
  ]
}
