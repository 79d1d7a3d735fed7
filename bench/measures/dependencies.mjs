// SPDX-License-Identifier: Apache-2.0
// 20 packages of npm for a sandbox: installed by npm from the registry of this machine's npm, then given to other sandboxes
// from the layer that came of it, until a command of theirs finds one of them.
import { existsSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import dns from 'node:dns/promises'
import { sleep } from '../lib/host.mjs'
import { summary, ms, times } from '../lib/stats.mjs'

export const letter = 't'
export const title = 'packages'

const PACKAGES = ['left-pad', 'is-odd', 'ms', 'semver', 'chalk', 'commander', 'debug', 'express', 'lodash', 'uuid', 'yargs', 'glob', 'rimraf', 'mkdirp', 'minimist', 'async', 'dayjs', 'axios', 'ws', 'zod']
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
const GOAL_MS = 100

/** The registry of npm, with rules for it: it may be at an address that is not public. */
async function findRegistry() {
  const url = new URL(execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8', cwd: '/tmp', stdio: ['ignore', 'pipe', 'ignore'] }).trim())
  const port = url.port || (url.protocol === 'https:' ? 443 : 80)
  const addresses = await dns.resolve4(url.hostname)
  const env = { npm_config_registry: url.href, ...(existsSync(CERTIFICATES) && { NODE_EXTRA_CA_CERTS: CERTIFICATES }) }
  return { env, network: { mode: 'allowlist', allow: [`${url.hostname}:${port}`, ...addresses.map((address) => `${address}:${port}`)] } }
}

async function settled(sandlot, id) {
  for (;;) {
    const found = await sandlot.json('GET', `/v1/sandboxes/${id}/dependencies`)
    if (found.status === 'succeeded') return
    if (!['queued', 'running'].includes(found.status)) throw new Error(`packages: ${found.status} ${found.error}`)
    await sleep(50)
  }
}

export async function run({ sandlot, rounds }) {
  const settings = await findRegistry()
  const first = [], second = []
  const make = async () => (await sandlot.json('POST', '/v1/sandboxes', settings)).id
  const install = async (id, body) => {
    const start = performance.now()
    await sandlot.http(`POST /v1/sandboxes/${id}/dependencies ${JSON.stringify({ node: PACKAGES, ...body })}`)
    await settled(sandlot, id)
    return performance.now() - start
  }
  for (let i = 0; i < rounds(3, 1); i++) {
    const id = await make()
    first.push(await install(id, { no_cache: true }))
    await sandlot.purge(id)
  }
  for (let i = 0; i < rounds(15, 5); i++) {
    const id = await make()
    second.push(await install(id, {}))
    const { stdout } = await sandlot.json('POST', `/v1/sandboxes/${id}/exec`, { command: 'node -p "require(\'left-pad\')(7, 3, 0)"' })
    if (stdout.trim() !== '007') throw new Error('the packages are not there')
    await sandlot.purge(id)
  }
  const ours = summary(second, 'ms'), theirs = summary(first, 'ms'), ratio = theirs.median / ours.median
  return [{ what: 'the same 20 packages of npm again', sandlot: ms(ours.median), peer: `the first time: ${ms(theirs.median)}`, ratio: times(ratio), goal: `< ${GOAL_MS} ms`, ok: ours.median < GOAL_MS, data: { second: ours, first: theirs, ratio } }]
}
