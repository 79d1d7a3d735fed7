// SPDX-License-Identifier: Apache-2.0
// Requests through a preview beside the same requests through nginx: both pass them on to an nginx that serves a small
// file, ours inside a sandbox. Then one large file, what a thousand WebSockets that say nothing cost, and how long a
// request waits that wakes a sandbox, until its app answers.
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { freePort, privateMemory, startService, waitFor } from '../lib/host.mjs'
import { interleave, median, summary, mbs, ms, times } from '../lib/stats.mjs'

export const letter = 'o'
export const needs = []
export const title = 'previews'

const CONNECTIONS = 32
const SECONDS = 2
const BYTES = 2 ** 30
const SOCKETS = 1000

// The same for the sandbox and for the host.
const config = (dir, servers) => `
daemon off; worker_processes 1; pid ${dir}/pid; error_log ${dir}/error.log;
events { worker_connections 4096; }
http {
  access_log off; sendfile on; keepalive_requests 1000000;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`).join(' ')}
  ${servers}
}
`
const files = (dir, port) => `server { listen 127.0.0.1:${port}; root ${dir}/files; }`
const relay = (port, to) => `
  upstream app { server 127.0.0.1:${to}; keepalive ${2 * CONNECTIONS}; keepalive_requests 1000000; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; } }`
const fill = (dir) => `mkdir -p ${dir}/files && printf hello > ${dir}/files/small && truncate -s ${BYTES} ${dir}/files/large`
const nginx = (dir) => ['/usr/sbin/nginx', '-p', dir, '-c', `${dir}/nginx.conf`, '-e', `${dir}/error.log`]

const SILENT = `
import asyncio
async def serve(reader, writer):
    await reader.readuntil(b'\\r\\n\\r\\n')
    writer.write(b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n')
    await reader.read()
async def main():
    await (await asyncio.start_server(serve, '127.0.0.1', 3001, backlog=1024)).serve_forever()
asyncio.run(main())
`

const APP = `require('http').createServer((req, res) => res.end('hello')).listen(process.argv[1], '127.0.0.1')`

function output(program, ...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', (data) => { text += data })
    child.on('error', reject)
    child.on('close', (code) => (code === 0 ? resolve(text) : reject(new Error(`${program}: ${code}\n${text}`))))
  })
}

async function startPeer(undo, scratch) {
  const dir = `${scratch}/preview`
  const [app, front] = [await freePort(), await freePort()]
  mkdirSync(dir)
  await output('sh', '-c', fill(dir))
  for (const [name, servers] of [['app', files(dir, app)], ['front', relay(front, app)]]) {
    mkdirSync(`${dir}/${name}`)
    writeFileSync(`${dir}/${name}/nginx.conf`, config(`${dir}/${name}`, servers))
    startService(undo, `nginx (${name})`, nginx(`${dir}/${name}`), `${scratch}/nginx-${name}.log`)
  }
  return { address: `127.0.0.1:${front}`, headers: [] }
}

async function startOurs(sandlot) {
  const dir = '/tmp/web'
  const { id } = await sandlot.create(JSON.stringify({ ports: [3000, 3001], resources: { cpu: 2 } }))
  const exec = (body) => sandlot.json('POST', `/v1/sandboxes/${id}/exec`, body)
  await exec({ argv: ['sh', '-c', `${fill(dir)}; printf %s "$1" > ${dir}/nginx.conf; printf %s "$2" > /tmp/silent.py`, 'sh', config(dir, files(dir, 3000)), SILENT] })
  await exec({ argv: nginx(dir), background: true })
  await exec({ argv: ['python3', '/tmp/silent.py'], background: true })
  const { previews } = await sandlot.json('GET', `/v1/sandboxes/${id}`)
  const [host, silent] = ['3000', '3001'].map((port) => new URL(previews[port]).host)
  return { id, silent, address: `127.0.0.1:${host.split(':')[1]}`, headers: ['-H', `Host: ${host}`, '-H', `X-API-Key: ${sandlot.token}`] }
}

const curl = ({ address, headers }, path) => output('curl', '-sS', '-o', '/dev/null', '-w', '%{http_code} %{size_download} %{time_total}', ...headers, `http://${address}${path}`)

async function bulk(way) {
  const [status, bytes, seconds] = (await curl(way, '/large')).split(' ').map(Number)
  if (status !== 200 || bytes !== BYTES) throw new Error(`curl: status ${status}, ${bytes} of ${BYTES} bytes`)
  return BYTES / 1e6 / seconds
}

const UNITS = { us: 1e-3, ms: 1, s: 1e3 }

async function load({ address, headers }) {
  const text = await output('wrk', '-t1', `-c${CONNECTIONS}`, `-d${SECONDS}`, '--latency', ...headers, `http://${address}/small`)
  const [, value, unit] = text.match(/50%\s+([\d.]+)(us|ms|s)/)
  if (/Non-2xx|Socket errors/.test(text)) throw new Error(`wrk:\n${text}`)
  return { rate: Number(text.match(/Requests\/sec:\s+([\d.]+)/)[1]), p50: Number(value) * UNITS[unit] }
}

async function openSocket(sandlot, way) {
  const socket = net.connect(Number(way.address.split(':')[1]), '127.0.0.1')
  socket.write(`GET / HTTP/1.1\r\nHost: ${way.silent}\r\nX-API-Key: ${sandlot.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`)
  const [head] = await new Promise((resolve, reject) => { socket.once('data', (data) => resolve([data.toString()])); socket.once('error', reject) })
  if (!head.startsWith('HTTP/1.1 101')) throw new Error(`no WebSocket: ${head}`)
  return socket
}

async function socketBytes(sandlot, way) {
  const before = privateMemory(sandlot.pid)
  const sockets = []
  while (sockets.length < SOCKETS) sockets.push(...await Promise.all(Array.from({ length: 50 }, () => openSocket(sandlot, way))))
  await sleep(1000)
  const after = privateMemory(sandlot.pid)
  for (const socket of sockets) socket.destroy()
  return (after - before) / SOCKETS
}

// From the start of the app, on the host and by itself, to its answer.
async function startToByte() {
  const port = await freePort(), began = performance.now()
  const child = spawn('node', ['-e', APP, String(port)], { stdio: 'ignore' })
  try {
    await waitFor('the app', () => new Promise((resolve) => {
      http.get({ port, host: '127.0.0.1', agent: false }, (response) => response.resume().on('end', () => resolve(true))).on('error', () => setTimeout(resolve, 1, false))
    }))
    return performance.now() - began
  } finally {
    child.kill('SIGKILL')
  }
}

async function wakeToByte(sandlot, way) {
  await sandlot.http(`POST /v1/sandboxes/${way.id}/stop`)
  const [status, bytes, seconds] = (await curl(way, '/')).split(' ').map(Number)
  if (status !== 200 || bytes !== 5) throw new Error(`curl: status ${status}, ${bytes} bytes`)
  return seconds * 1000
}

async function wakes(sandlot, count) {
  const { id, previews } = await sandlot.json('POST', '/v1/sandboxes', { ports: [3000], start: `exec node -e "${APP}" 3000` })
  const { host } = new URL(previews['3000'])
  const way = { id, address: `127.0.0.1:${host.split(':')[1]}`, headers: ['-H', `Host: ${host}`, '-H', `X-API-Key: ${sandlot.token}`] }
  const { samples } = await interleave(count, { sandlot: () => wakeToByte(sandlot, way), host: startToByte }, { block: 1 })
  await sandlot.purge(id)
  return samples
}

export async function run({ undo, scratch, sandlot, rounds }) {
  const peer = await startPeer(undo, scratch), ours = await startOurs(sandlot)
  for (const way of [peer, ours]) await waitFor('a preview', async () => (await curl(way, '/small').catch(() => '')).startsWith('200 5 '))
  const memory = await socketBytes(sandlot, ours)
  const loads = await interleave(rounds(5, 2), { sandlot: () => load(ours), nginx: () => load(peer) }, { block: 1 })
  const bulks = await interleave(rounds(5, 2), { sandlot: () => bulk(ours), nginx: () => bulk(peer) }, { block: 1 })
  await sandlot.purge(ours.id)
  const woken = await wakes(sandlot, rounds(20, 5))
  const of = (name, key) => loads.samples[name].map((sample) => sample[key])
  const rate = median(of('sandlot', 'rate')) / median(of('nginx', 'rate'))
  const p50 = median(of('sandlot', 'p50')) / median(of('nginx', 'p50'))
  const large = median(bulks.samples.sandlot) / median(bulks.samples.nginx)
  const wake = median(woken.sandlot) / median(woken.host)
  const perSecond = (name) => `${median(of(name, 'rate')).toFixed(0)}/s`
  return [
    { what: `requests through a preview, ${CONNECTIONS} connections`, sandlot: perSecond('sandlot'), peer: `nginx as a proxy: ${perSecond('nginx')}`,
      ratio: times(rate), goal: '>= 0.6x', ok: rate >= 0.6, data: { sandlot: summary(of('sandlot', 'rate'), '/s'), nginx: summary(of('nginx', 'rate'), '/s'), ratio: rate } },
    { what: '... the median of their latencies', sandlot: ms(median(of('sandlot', 'p50'))), peer: `nginx as a proxy: ${ms(median(of('nginx', 'p50')))}`,
      ratio: times(p50), goal: '<= 1.5x', ok: p50 <= 1.5, data: { sandlot: summary(of('sandlot', 'p50'), 'ms'), nginx: summary(of('nginx', 'p50'), 'ms'), ratio: p50 } },
    { what: '1 GiB through a preview, one connection', sandlot: mbs(median(bulks.samples.sandlot)), peer: `nginx as a proxy: ${mbs(median(bulks.samples.nginx))}`,
      ratio: times(large), data: { ...bulks.samples, ratio: large } },
    { what: `an idle WebSocket through a preview, of ${SOCKETS}`, sandlot: `${(memory / 1024).toFixed(1)} KiB`, goal: '< 16 KiB', ok: memory < 16384, data: { bytes: memory } },
    { what: 'a request that wakes a sandbox, to the first byte of its app', sandlot: ms(median(woken.sandlot)), peer: `the app started on the host: ${ms(median(woken.host))}`,
      ratio: times(wake), data: { sandlot: summary(woken.sandlot, 'ms'), host: summary(woken.host, 'ms'), ratio: wake } },
  ]
}
