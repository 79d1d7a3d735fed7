// SPDX-License-Identifier: Apache-2.0
// The output of one command as it runs. The program and its bytes are the same for both: a pipe that is
// never empty, so what is measured is the way out.
import { interleave, summary, mbs, times } from '../lib/stats.mjs'

export const letter = 'i'
export const needs = ['docker']
export const title = 'streaming of output'

const FILE_BYTES = 10e6
const LINE = 'Compiling core/process.c: 0 errors, 0 warnings, and a line as long as lines of a build are.'
const make = `/bin/busybox yes "${LINE}" | /bin/busybox head -c ${FILE_BYTES} > /tmp/lines`
const write = (times) => `i=0; while [ $i -lt ${times} ]; do /bin/busybox cat /tmp/lines; i=$((i+1)); done`

async function dockerExec(docker, container, body) {
  return docker.probe.drain(docker.target, `POST /containers/${container}/exec ${JSON.stringify({ AttachStdout: true, AttachStderr: true, ...body })}`,
    'POST /exec/{id}/start {"Detach":false}')
}

export async function run({ sandlot, docker, probe, rounds }) {
  const repeats = rounds(50, 10)
  const bytes = repeats * FILE_BYTES
  const events = await probe.target(sandlot.address, `Authorization: Bearer ${sandlot.token}`, 'Accept: text/event-stream')
  const { id } = await sandlot.create()
  const container = await docker.create()
  const shell = (line) => ['/bin/busybox', 'sh', '-c', line]
  await sandlot.json('POST', `/v1/sandboxes/${id}/exec`, { argv: shell(make) })
  await dockerExec(docker, container.id, { Cmd: shell(make) })
  const rate = (done) => {
    if (done.bytes < bytes) throw new Error(`only ${done.bytes} of ${bytes} bytes came`)
    return bytes / 1e6 / (done.ms / 1000)
  }
  const { samples, first } = await interleave(rounds(5, 2), {
    sandlot: async () => rate(await probe.drain(events, `POST /v1/sandboxes/${id}/exec ${JSON.stringify({ argv: shell(write(repeats)) })}`)),
    docker: async () => rate(await dockerExec(docker, container.id, { Cmd: shell(write(repeats)) })),
  }, { block: 1 })
  await sandlot.purge(id)
  await docker.remove(container.id)
  // The first of each turn counts too: a stream of a second has warmed up by itself.
  const ours = summary([...first.sandlot, ...samples.sandlot], 'MB/s'), theirs = summary([...first.docker, ...samples.docker], 'MB/s')
  const ratio = ours.median / theirs.median
  return [{
    what: `${bytes / 1e6} MB of output of one exec, streamed`, sandlot: mbs(ours.median), peer: `Docker API exec, attached: ${mbs(theirs.median)}`,
    ratio: times(ratio), goal: '>= 3x', ok: ratio >= 3, data: { sandlot: ours, docker: theirs, ratio },
  }]
}
