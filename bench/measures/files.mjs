// SPDX-License-Identifier: Apache-2.0
// One big file in and out beside nginx, with curl as the client of both; many small ones beside tar.
// What was written is on its way to the disk while the next one is measured, so the file system is
// synced before each, outside of the clock.
import { spawn, spawnSync } from 'node:child_process'
import { createWriteStream, mkdirSync, rmSync, writeFileSync, statSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { interleave, summary, ms, mbs, mib, times } from '../lib/stats.mjs'
import { rss, resetPeak } from '../lib/host.mjs'
import { startNginx } from '../lib/nginx.mjs'

export const letter = 'g'
export const title = 'files'

const SMALL_FILES = 10000

const syncDisk = (dir) => spawnSync('sync', ['-f', dir])

async function makeBig(path, bytes) {
  const out = createWriteStream(path)
  const block = randomBytes(1 << 20)
  for (let left = bytes; left > 0; left -= block.length) {
    if (!out.write(block)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'close')
}

// Seconds that curl was busy with one transfer.
async function curl(...args) {
  const child = spawn('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code} %{time_total} %{size_upload} %{size_download}', ...args],
    { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = '', err = ''
  child.stdout.on('data', (data) => { out += data })
  child.stderr.on('data', (data) => { err += data })
  const [code] = await once(child, 'close')
  const [status, seconds, sent, received] = out.split(' ').map(Number)
  if (code !== 0 || status >= 400) throw new Error(`curl ${args.at(-1)}: status ${status}, exit ${code} ${err}`)
  return { seconds, bytes: Math.max(sent, received) }
}

// The first of each turn counts too: a transfer of a second has warmed up by itself.
function rateRow(what, { samples, first }) {
  const ours = summary([...first.sandlot, ...samples.sandlot], 'MB/s'), theirs = summary([...first.nginx, ...samples.nginx], 'MB/s')
  const ratio = ours.median / theirs.median
  const goal = Math.min(theirs.median / 3, 800)
  return { what, sandlot: mbs(ours.median), peer: `nginx: ${mbs(theirs.median)}`, ratio: times(ratio),
    goal: `>= ${mbs(goal)} (1/3 of nginx, at most 800)`, ok: ours.median >= goal, data: { sandlot: ours, nginx: theirs, ratio, goal } }
}

async function bigFile({ sandlot, nginx, scratch, rounds }) {
  const bytes = 2 ** 30
  const { id } = await sandlot.create()
  const big = `${scratch}/big`
  const auth = ['-H', `Authorization: Bearer ${sandlot.token}`]
  const url = `http://${sandlot.address}/v1/sandboxes/${id}/files?path=/workspace/agent_workspace/big`
  await makeBig(big, bytes)
  const transfer = async (...args) => {
    syncDisk(scratch)
    const { seconds, bytes: moved } = await curl(...args)
    if (moved !== bytes) throw new Error(`curl ${args.at(-1)}: moved ${moved} of ${bytes} bytes`)
    return bytes / 1e6 / seconds
  }
  const before = rss(sandlot.pid).now
  resetPeak(sandlot.pid)
  const up = await interleave(rounds(5, 2), {
    async sandlot() {
      await curl('-X', 'DELETE', ...auth, url).catch(() => {})
      return transfer('-T', big, ...auth, url)
    },
    async nginx() {
      rmSync(`${nginx.files}/big`, { force: true })
      return transfer('-T', big, `${nginx.url}/big`)
    },
  }, { block: 1 })
  const upPeak = rss(sandlot.pid).peak
  resetPeak(sandlot.pid)
  const down = await interleave(rounds(5, 2), {
    sandlot: () => transfer(...auth, url),
    nginx: () => transfer(`${nginx.url}/big`),
  }, { block: 1 })
  const downPeak = rss(sandlot.pid).peak, after = rss(sandlot.pid).now
  await sandlot.purge(id)
  await sandlot.settle()
  rmSync(big)
  rmSync(`${nginx.files}/big`)
  const memory = { before_bytes: before, peak_upload_bytes: upPeak, peak_download_bytes: downPeak, after_bytes: after }
  const rows = [rateRow('upload of 1 GiB (PUT)', up), rateRow('download of 1 GiB (GET)', down)]
  const grown = Math.max(upPeak, downPeak) - before
  rows.push({ what: 'sandlotd RSS before, at the peak of, after these transfers', sandlot: `${mib(before)}, ${mib(Math.max(upPeak, downPeak))}, ${mib(after)}`,
    goal: 'flat (+8 MiB)', ok: grown <= 8 << 20, data: memory })
  return rows
}

function makeTree(scratch) {
  const tree = `${scratch}/tree`
  for (let i = 0; i < SMALL_FILES; i++) {
    if (i % 100 === 0) mkdirSync(`${tree}/dir${i / 100}`, { recursive: true })
    writeFileSync(`${tree}/dir${Math.floor(i / 100)}/file${i}`, randomBytes(200 + (i * 37) % 3800))
  }
  const archive = `${scratch}/tree.tar`
  const made = spawnSync('tar', ['-C', tree, '-cf', archive, '.'])
  if (made.status !== 0) throw new Error(`tar: ${made.stderr}`)
  return archive
}

async function smallFiles({ sandlot, probe, scratch, rounds }) {
  const archive = makeTree(scratch)
  const { id } = await sandlot.create()
  const url = `http://${sandlot.address}/v1/sandboxes/${id}/files`
  const auth = ['-H', `Authorization: Bearer ${sandlot.token}`]
  // A new directory each time, and nothing is deleted in between: ext4 steps over every inode that was
  // deleted in the last minutes, which would take ten times as long as what is to be measured. For
  // the same reason tar's directories are spread over the disk as Sandlot's workspaces are.
  let used = 0
  const untar = `${scratch}/untar`
  mkdirSync(untar)
  spawnSync('chattr', ['+T', untar])
  const check = (dir) => {
    const found = Number(spawnSync('sh', ['-c', `find '${dir}' -type f | wc -l`], { encoding: 'utf8' }).stdout)
    if (found !== SMALL_FILES) throw new Error(`${dir} has ${found} files`)
  }
  const found = await interleave(rounds(6, 3), {
    async sandlot() {
      const place = `/workspace/agent_workspace/tree${used++}`
      await sandlot.json('POST', `/v1/sandboxes/${id}/files/mkdir`, { path: place })
      syncDisk(scratch)
      const { seconds } = await curl('-T', archive, ...auth, `${url}/archive?path=${place}`)
      check(`${sandlot.workspace(id)}${place.replace('/workspace', '')}`)
      return seconds * 1000
    },
    async tar() {
      const place = `${untar}/tree${used++}`
      mkdirSync(place)
      syncDisk(scratch)
      const took = await probe.spawn('tar', '-xf', archive, '-C', place)
      check(place)
      return took
    },
  }, { block: 1 })
  await sandlot.purge(id)
  const ours = summary([...found.first.sandlot, ...found.samples.sandlot], 'ms')
  const theirs = summary([...found.first.tar, ...found.samples.tar], 'ms')
  const ratio = ours.median / theirs.median
  return [{ what: `tar of ${SMALL_FILES.toLocaleString('en')} small files (${mib(statSync(archive).size)}), PUT and unpack`, sandlot: ms(ours.median),
    peer: `tar x: ${ms(theirs.median)}`, ratio: times(ratio), goal: '<= 2x', ok: ratio <= 2, data: { sandlot: ours, tar: theirs, ratio } }]
}

export async function run(context) {
  const nginx = await startNginx(context.undo, context.scratch)
  return [...await bigFile({ ...context, nginx }), ...await smallFiles(context)]
}
