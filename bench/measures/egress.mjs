// SPDX-License-Identifier: Apache-2.0
// A download from inside a sandbox beside the same one on the host: curl from nginx, over loopback. What
// is measured is the relay of the daemon, which has to take each byte in and send it on.
import { spawnSync } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { interleave, summary, mbs, times } from '../lib/stats.mjs'
import { startNginx } from '../lib/nginx.mjs'

export const letter = 'n'
export const title = 'egress'

const BYTES = 2 ** 30
const PROXY = 'http://127.0.0.1:61080'

function rate(text) {
  const [status, seconds, bytes] = text.split(' ').map(Number)
  if (status !== 200 || bytes !== BYTES) throw new Error(`curl: status ${status}, ${bytes} of ${BYTES} bytes`)
  return BYTES / 1e6 / seconds
}

export async function run({ undo, scratch, sandlot, rounds }) {
  const dir = `${scratch}/egress`
  mkdirSync(dir)
  const nginx = await startNginx(undo, dir)
  const file = `${nginx.files}/zeros`
  writeFileSync(file, '')
  truncateSync(file, BYTES) // a hole: the disk has no part in it
  const { id } = await sandlot.create(JSON.stringify({ resources: { cpu: 2 }, network: { mode: 'allowlist', allow: [nginx.url.replace('http://', '')] } }))
  const argv = ['curl', '-sS', '-o', '/dev/null', '-w', '%{http_code} %{time_total} %{size_download}', '--noproxy', '', `${nginx.url}/zeros`]
  const { samples, first } = await interleave(rounds(8, 3), {
    sandlot: async () => rate((await sandlot.json('POST', `/v1/sandboxes/${id}/exec`, { argv: [...argv, '-x', PROXY] })).stdout),
    direct: async () => rate(spawnSync(argv[0], argv.slice(1), { encoding: 'utf8' }).stdout),
  }, { block: 1 })
  await sandlot.purge(id)
  const ours = summary([...first.sandlot, ...samples.sandlot], 'MB/s'), theirs = summary([...first.direct, ...samples.direct], 'MB/s')
  const ratio = ours.median / theirs.median
  return [{ what: '1 GiB out of the internet, one connection', sandlot: mbs(ours.median), peer: `without a sandbox: ${mbs(theirs.median)}`,
    ratio: times(ratio), goal: '>= 0.5x', ok: ratio >= 0.5, data: { sandlot: ours, direct: theirs, ratio } }]
}
