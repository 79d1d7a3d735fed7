// SPDX-License-Identifier: Apache-2.0
// An image of 100 MB from a registry on this machine: until it can be started, beside skopeo and umoci, which copy and
// unpack it, and beside docker pull. And creates from an image beside those from `host`.
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { execFileSync, spawnSync } from 'node:child_process'
import path from 'node:path'
import { freePort, sleep, startService, waitFor } from '../lib/host.mjs'
import { Sandlot } from '../lib/sandlot.mjs'
import { interleave, compare, summary, ms, mib, faster, times } from '../lib/stats.mjs'
import { busybox, image, layoutArchive } from '../../tests/e2e/lib/images.mjs'

export const letter = 'q'
export const needs = ['docker']
export const title = 'images'

const LAYERS = 4
const LAYER_BYTES = 66e6 // files of libraries become about 25 MB of gzip
const FILE_MAX = 8e6
const CREATE_GOAL = 1.2

/** Files of this machine's libraries, in lists for the layers. */
function* fileLists() {
  let list = [], bytes = 0
  const walk = function* (dir) {
    for (const entry of readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = path.join(dir, entry.name)
      if (entry.isDirectory()) yield* walk(file)
      else if (entry.isFile() && statSync(file).size <= FILE_MAX) yield file
    }
  }
  for (const file of walk('/usr/lib')) {
    list.push(file)
    bytes += statSync(file).size
    if (bytes < LAYER_BYTES) continue
    yield list
    list = []
    bytes = 0
  }
}

async function startRegistry(undo, dir) {
  const port = await freePort()
  writeFileSync(`${dir}/registry.yml`, `version: 0.1\nstorage: {filesystem: {rootdirectory: ${dir}/store}}\nhttp: {addr: "127.0.0.1:${port}"}\n`)
  startService(undo, 'docker-registry', ['docker-registry', 'serve', `${dir}/registry.yml`], `${dir}/registry.log`)
  await waitFor('the registry', async () => (await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => null))?.ok)
  return `127.0.0.1:${port}`
}

/** Makes the image and pushes it: what its layers take in the registry. */
function pushImage(dir, reference) {
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] }
  const umoci = (...args) => execFileSync('umoci', args, quiet)
  const lists = fileLists()
  umoci('init', '--layout', `${dir}/layout`)
  umoci('new', '--image', `${dir}/layout:v1`)
  for (let i = 0; i < LAYERS; i++) {
    const { value: files } = lists.next()
    if (!files) throw new Error('/usr/lib has too little for an image of 100 MB')
    writeFileSync(`${dir}/list`, files.map((file) => `${file.slice(1)}\n`).join(''))
    execFileSync('tar', ['-C', '/', '-T', `${dir}/list`, '-cf', `${dir}/layer.tar`], quiet)
    umoci('raw', 'add-layer', '--image', `${dir}/layout:v1`, `${dir}/layer.tar`)
    rmSync(`${dir}/layer.tar`)
  }
  execFileSync('skopeo', ['copy', '--quiet', '--dest-tls-verify=false', `oci:${dir}/layout:v1`, `docker://${reference}`], quiet)
  const blobs = `${dir}/layout/blobs/sha256`
  const bytes = readdirSync(blobs).reduce((sum, name) => sum + statSync(path.join(blobs, name)).size, 0)
  rmSync(`${dir}/layout`, { recursive: true })
  return bytes
}

async function pull(sandlot, reference) {
  const start = performance.now()
  await sandlot.json('POST', '/v1/templates', { name: 'bench', image: reference })
  for (;;) {
    const { status, error } = await sandlot.json('GET', '/v1/templates/bench')
    if (status === 'ready') break
    if (status !== 'building') throw new Error(`the pull is ${status}: ${JSON.stringify(error)}`)
    await sleep(5)
  }
  const took = performance.now() - start
  await sandlot.json('DELETE', '/v1/templates/bench')
  const { bytes } = await sandlot.json('POST', '/v1/templates/prune', {})
  if (!(bytes > LAYERS * LAYER_BYTES)) throw new Error(`only ${bytes} bytes were given back: the next pull would find layers`)
  await sandlot.settle()
  return took
}

async function pullRows({ sandlot, docker, probe, scratch, rounds, reference, bytes }) {
  let used = 0
  const clean = () => spawnSync('sync', ['-f', scratch])
  const found = await interleave(rounds(3, 1), {
    async sandlot() {
      clean()
      return pull(sandlot, reference)
    },
    async tools() {
      const dir = `${scratch}/tools${used++}`
      mkdirSync(dir)
      clean()
      const took = await probe.spawn('skopeo', 'copy', '--quiet', '--src-tls-verify=false', `docker://${reference}`, `oci:${dir}/layout:v1`) +
        await probe.spawn('umoci', 'unpack', '--image', `${dir}/layout:v1`, `${dir}/bundle`)
      rmSync(dir, { recursive: true })
      return took
    },
    async docker() {
      clean()
      const start = performance.now()
      const { body } = await docker.http(`POST /images/create?fromImage=${encodeURIComponent(reference)}`)
      const took = performance.now() - start
      if (/"error"/.test(body ?? '')) throw new Error(`docker pull: ${body.slice(-300)}`)
      await docker.http(`DELETE /images/${encodeURIComponent(reference)}?force=1`)
      return took
    },
  }, { block: 1 })
  const of = (name) => summary([...found.first[name], ...found.samples[name]], 'ms')
  const ours = of('sandlot')
  return [['tools', 'skopeo copy + umoci unpack'], ['docker', 'docker pull']].map(([name, peer]) => {
    const theirs = of(name), ratio = theirs.median / ours.median
    return { what: `pull and unpack of an image of ${mib(bytes)}`, sandlot: ms(ours.median), peer: `${peer}: ${ms(theirs.median)}`, ratio: faster(ratio), goal: 'faster', ok: ratio > 1, data: { sandlot: ours, [name]: theirs, ratio } }
  })
}

async function createRow({ sandlot, rounds }) {
  const put = await fetch(`http://${sandlot.address}/v1/templates/small/archive`, { method: 'PUT',
    headers: { authorization: `Bearer ${sandlot.token}`, 'content-type': 'application/x-tar' }, body: layoutArchive(image([busybox(), busybox().slice(0, 1), busybox().slice(0, 2)])) })
  if (!put.ok) throw new Error(await put.text())
  const make = async (body) => {
    const made = await sandlot.create(body)
    await sandlot.purge(made.id)
    return made.ms
  }
  const found = await interleave(rounds(25, 5), { image: () => make('{"template":"small"}'), host: () => make('{}') })
  const data = compare(found, 'image', 'host', 'ms'), ratio = 1 / data.ratio
  return { what: 'create from an image', sandlot: ms(data.image.median), peer: `from host: ${ms(data.host.median)}`, ratio: times(ratio), goal: `<= ${CREATE_GOAL}x`, ok: ratio <= CREATE_GOAL, data }
}

export async function run({ undo, sandlot, docker, probe, scratch, rounds }) {
  const dir = `${scratch}/registry`
  mkdirSync(dir)
  const registry = await startRegistry(undo, dir)
  const reference = `${registry}/bench/libraries:v1`
  const bytes = pushImage(dir, reference)
  const own = await Sandlot.start(undo, scratch, sandlot.build, probe, { name: 'images', args: ['--registry-plain', registry] })
  const rows = await pullRows({ sandlot: own, docker, probe, scratch, rounds, reference, bytes })
  rows.unshift(await createRow({ sandlot: own, rounds }))
  await own.stop()
  return rows
}
