// SPDX-License-Identifier: Apache-2.0
// A fresh sandbox, `true` in it, gone. bwrap and crun are started by the probe and need no daemon; they
// get no HTTP, no state and (bwrap) no cgroup, seccomp or writable layer to make.
import { interleave, compare, ms, faster } from '../lib/stats.mjs'

export const letter = 'b'
export const needs = ['docker']
export const title = 'create, run true, delete'

const BWRAP = ['bwrap', '--unshare-all', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', 'true']
const PEERS = { bwrap: 'bwrap --unshare-all true', crun: 'crun run, same limits', docker: 'Docker API create+start+wait+delete' }

export async function run({ sandlot, docker, probe, peerProbe, bundle, scratch, rounds }) {
  const contenders = {
    async sandlot() {
      const made = await sandlot.http('POST /v1/sandboxes {}', 'POST /v1/sandboxes/{id}/exec {"argv":["true"]}', 'DELETE /v1/sandboxes/{id}')
      await sandlot.purge(made.id)
      return made.ms
    },
    bwrap: () => probe.spawn(...BWRAP),
    crun: () => peerProbe.spawn('crun', '--root', `${scratch}/crun`, '--cgroup-manager=cgroupfs', 'run', '--bundle', bundle, 'bench-{n}'),
    docker: async () => (await docker.http(`POST /containers/create ${docker.body('true')}`,
      'POST /containers/{id}/start', 'POST /containers/{id}/wait', 'DELETE /containers/{id}?v=1')).ms,
  }
  const found = await interleave(rounds(25, 6), contenders)
  return Object.entries(PEERS).map(([name, text]) => {
    const data = compare(found, 'sandlot', name, 'ms')
    const goal = name === 'bwrap' ? { goal: 'not longer', ok: data.ratio >= 1 } : {}
    return {
      what: 'create + exec `true` + delete over HTTP', sandlot: ms(data.sandlot.median), peer: `${text}: ${ms(data[name].median)}`,
      ratio: faster(data.ratio), ...goal, data,
    }
  })
}
