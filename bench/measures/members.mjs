// SPDX-License-Identifier: Apache-2.0
// An application with its PostgreSQL and its Redis, from nothing until a query of each is answered, and after a stop;
// beside the same programs on the host, and beside `docker-compose up` of them. All are polled alike, from a shell.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Compose } from '../lib/compose.mjs'
import { waitFor } from '../lib/host.mjs'
import { putTemplate } from '../lib/sandlot.mjs'
import { interleave, compare, summary, median, ms, times, faster } from '../lib/stats.mjs'

export const letter = 'x'
export const needs = ['docker']
export const title = 'members'

const PROGRAMS = ['postgres', 'redis'].map((name) => readFileSync(new URL(`../../src/core/template/start_${name}.sh`, import.meta.url), 'utf8'))
const BODY = JSON.stringify({ members: [
  { role: 'database', template: 'host', port: 5432, command: PROGRAMS[0], health: { command: 'pg_isready -q -h 127.0.0.1' } },
  { role: 'cache', template: 'host', port: 6379, command: PROGRAMS[1] },
] })
const UNTIL = (psql, redis) => `until ${psql} -qAtc "select 1" >/dev/null 2>&1 && ${redis} ping >/dev/null 2>&1; do sleep 0.01; done`
const READY = JSON.stringify({ command: UNTIL('psql', 'redis-cli') })

/** Until a process has ended: its exit status. */
const ended = (child) => new Promise((resolve) => { child.once('exit', resolve) })

/** The same on the host, as a user that is not root, on other ports. */
async function onHost(scratch) {
  const dir = mkdtempSync(`${scratch}/host-`)
  chmodSync(dir, 0o777)
  const env = { PATH: process.env.PATH, POSTGRES_PASSWORD: 'bench', PGPASSWORD: 'bench', PGUSER: 'postgres', PGHOST: '127.0.0.1', PGPORT: '15432', REDIS_PORT: '16379' }
  const run = (argv) => spawn('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', ...argv], { env, stdio: 'ignore', cwd: '/' })
  const began = performance.now()
  const servers = PROGRAMS.map((text, i) => {
    writeFileSync(`${dir}/start${i}`, text.replaceAll('/volumes', dir).replace('-k /tmp', `-k ${dir}`))
    return run(['sh', `${dir}/start${i}`])
  })
  await ended(run(['sh', '-c', UNTIL('psql', 'redis-cli -p 16379')]))
  const took = performance.now() - began
  for (const server of servers) {
    const end = ended(server)
    server.kill('SIGINT')
    await end
  }
  rmSync(dir, { recursive: true, force: true })
  return took
}

/** What takes the sandbox until both answer, beside Compose. */
async function composeRow({ sandlot, docker, scratch, rounds }, create) {
  const environment = { POSTGRES_PASSWORD: 'bench', PGPASSWORD: 'bench', PGUSER: 'postgres', PGHOST: '127.0.0.1' }
  const compose = new Compose(docker, scratch, { app: `${UNTIL('psql', 'redis-cli')}; touch /ready/up; exec sleep 1000`, database: PROGRAMS[0], cache: PROGRAMS[1] }, environment)
  const data = compare(await interleave(rounds(2, 1), { sandbox: create, compose: () => compose.measure() }, { block: 1 }), 'sandbox', 'compose', 'ms')
  compose.remove()
  return { what: 'create with PostgreSQL, Redis and an application until both answer it', sandlot: ms(data.sandbox.median),
    peer: `docker-compose up of the same: ${ms(data.compose.median)}`, ratio: faster(data.ratio), goal: '>= 1x', ok: data.ratio >= 1, data }
}

/**
 * The same from a pool: the database was made and runs. Beside it one that is made when it is asked for, of the same
 * template: both end with the same queries, asked by the programs of the database's own member.
 */
async function warmRow({ sandlot, rounds }) {
  await putTemplate(sandlot, 'stack')
  const members = JSON.parse(BODY).members
  const state = async () => (await sandlot.json('GET', '/v1/pools')).pools.find(({ template }) => template === 'stack')
  const pool = async (size) => {
    await sandlot.json('PATCH', '/v1/templates/stack', { members, pool: { size } })
    await waitFor(`a pool of ${size}`, async () => {
      const found = await state()
      return size ? found?.ready === size && found.warming === 0 : !found && (await sandlot.json('GET', '/v1/pools')).draining === 0
    }, 120000)
  }
  const answered = async (isWarm) => {
    await pool(isWarm ? 1 : 0)
    const before = await state()
    const made = await sandlot.create('{"template":"stack"}')
    const took = made.ms + (await sandlot.http(`POST /v1/sandboxes/${made.id}/exec?member=database ${READY}`)).ms
    if (isWarm && (await state()).hits !== before.hits + 1) throw new Error('it had not waited')
    await sandlot.purge(made.id)
    return took
  }
  const data = compare(await interleave(rounds(5, 2), { warm: () => answered(true), cold: () => answered(false) }, { block: 1 }), 'warm', 'cold', 'ms')
  await pool(0)
  return { what: '... that waited in a pool, until both answer the same queries', sandlot: ms(data.warm.median), peer: `made when asked for: ${ms(data.cold.median)}`, ratio: faster(data.ratio), data }
}

export async function run(context) {
  const { sandlot, scratch, rounds } = context
  const wakes = []
  const ready = async (id) => (await sandlot.http(`POST /v1/sandboxes/${id}/exec ${READY}`)).ms
  const data = compare(await interleave(rounds(3, 1), {
    async sandbox() {
      const made = await sandlot.create(BODY)
      const took = made.ms + await ready(made.id)
      await sandlot.http(`POST /v1/sandboxes/${made.id}/stop`)
      wakes.push((await sandlot.http(`POST /v1/sandboxes/${made.id}/start`)).ms + await ready(made.id))
      await sandlot.purge(made.id)
      return took
    },
    host: () => onHost(scratch),
  }), 'host', 'sandbox', 'ms')
  const create = async () => {
    const made = await sandlot.create(BODY)
    const took = made.ms + await ready(made.id)
    await sandlot.purge(made.id)
    return took
  }
  return [{
    what: `create with PostgreSQL and Redis beside it until both answer (after a stop: ${ms(median(wakes))})`, sandlot: ms(data.sandbox.median),
    peer: `the same programs on the host: ${ms(data.host.median)}`, ratio: times(data.ratio), goal: '<= 1.5x', ok: data.ratio <= 1.5, data: { ...data, wake: summary(wakes, 'ms') },
  }, await composeRow(context, create), await warmRow(context)]
}
