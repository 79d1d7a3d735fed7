// SPDX-License-Identifier: Apache-2.0
// What two hundred readers that never read do to everybody else: a quarter each of streaming execs, background
// processes that are followed, terminals, and execs that wait for one answer, all of commands that never stop writing.
import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { rss } from '../lib/host.mjs'
import { summary, ms, mib, times } from '../lib/stats.mjs'

export const letter = 'l'
export const needs = []
export const title = 'readers that never read'

const READERS = 200
const SANDBOXES = 4
const SETTLE_MS = 8000 // until pipes, windows and sockets are full
const EXECS = 400

/** Sends a request and never reads a byte of the answer. */
async function ignore(sandlot, lines, body) {
  const [host, port] = sandlot.address.split(':')
  const socket = net.connect(Number(port), host)
  socket.pause()
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  const head = [...lines, `Host: ${sandlot.address}`, `Authorization: Bearer ${sandlot.token}`]
  if (body) head.push('Content-Type: application/json', `Content-Length: ${body.length}`)
  socket.write(`${head.join('\r\n')}\r\n\r\n${body ?? ''}`)
  return socket
}

const KINDS = [
  (sandlot, id) => ignore(sandlot, [`POST /v1/sandboxes/${id}/exec HTTP/1.1`, 'Accept: text/event-stream'], '{"command":"yes"}'),
  (sandlot, id) => ignore(sandlot, [`POST /v1/sandboxes/${id}/exec HTTP/1.1`], '{"command":"cat /dev/zero"}'),
  async (sandlot, id) => {
    const { process } = await sandlot.json('POST', `/v1/sandboxes/${id}/exec`, { command: 'yes', background: true })
    return ignore(sandlot, [`GET /v1/sandboxes/${id}/processes/${process.id}/output HTTP/1.1`])
  },
  async (sandlot, id) => {
    const socket = await ignore(sandlot, [`GET /v1/sandboxes/${id}/terminal HTTP/1.1`, 'Connection: Upgrade', 'Upgrade: websocket',
      'Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`, 'Sec-WebSocket-Protocol: pty.v1'])
    await sleep(20)
    socket.write(Buffer.concat([Buffer.from([0x82, 0x84, 0, 0, 0, 0]), Buffer.from('yes\n')]))
    return socket
  },
]

export async function run({ sandlot, probe }) {
  const { id } = await sandlot.create()
  const request = `POST /v1/sandboxes/${id}/exec {"argv":["true"]}`
  const latencies = async () => (await probe.batch(sandlot.target, 1, Array(EXECS).fill(request))).ms
  await latencies()
  const quiet = summary(await latencies(), 'ms')
  const floods = []
  for (let i = 0; i < SANDBOXES; i++) floods.push((await sandlot.create()).id)
  const readers = []
  for (let i = 0; i < READERS; i++) readers.push(await KINDS[i % KINDS.length](sandlot, floods[i % SANDBOXES]))
  await sleep(SETTLE_MS)
  const flooded = summary(await latencies(), 'ms')
  const used = rss(sandlot.pid).peak
  for (const socket of readers) socket.destroy()
  for (const flood of [...floods, id]) await sandlot.purge(flood)
  const ratio = flooded.p99 / quiet.p99
  return [
    { what: `exec of \`true\` beside ${READERS} readers of floods that never read, 99th percentile`, sandlot: ms(flooded.p99), peer: `without them: ${ms(quiet.p99)}`,
      ratio: times(ratio), goal: '<= 3x', ok: ratio <= 3, data: { quiet, flooded, ratio } },
    { what: '... sandlotd (RSS)', sandlot: mib(used), goal: '< 64 MiB', ok: used < 64 * 2 ** 20, data: { used } },
  ]
}
