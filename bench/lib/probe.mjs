// SPDX-License-Identifier: Apache-2.0
// The script's end of bench/probe/probe.c: one command at a time, one line each way.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export class Probe {
  #child
  #lines
  #undo

  // With a prefix (say, unshare -m ...) the probe and what it spawns live inside of that.
  constructor(undo, program, prefix = []) {
    const argv = [...prefix, program]
    this.#undo = undo
    this.#child = spawn(argv[0], argv.slice(1), { detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdin.on('error', () => {})
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
    this.pid = this.#child.pid
    undo.push('end the probe', () => { this.#child.stdin.end() })
  }

  async #ask(...fields) {
    if (this.#undo.begun) throw new Error('interrupted')
    this.#child.stdin.write(fields.join('\t') + '\n')
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('the probe ended')
    const [word, ...rest] = value.split('\t')
    if (word !== 'ok') throw new Error(`probe: ${rest.join(' ')}`)
    return rest
  }

  async target(address, ...headers) { return Number((await this.#ask('target', address, ...headers))[0]) }

  // Requests one after the other on the kept connection: {ms, id, body}. Any status >= 400 throws.
  async http(target, ...requests) {
    const [ns, statuses, id, body] = await this.#ask('http', target, ...requests)
    const bad = statuses.split(',').findIndex((status) => Number(status) >= 400)
    if (bad >= 0) throw new Error(`${requests[bad]}: ${statuses} ${body}`)
    return { ms: Number(ns) / 1e6, id, body }
  }

  // The same with a last answer of any length, which is counted as it comes: {ms, bytes} on the wire.
  async drain(target, ...requests) {
    const [ns, status, bytes] = await this.#ask('drain', target, ...requests)
    if (Number(status) >= 400) throw new Error(`${requests.at(-1)}: ${status}`)
    return { ms: Number(ns) / 1e6, bytes: Number(bytes) }
  }

  // Keys typed one after the other into a fresh terminal, each until it is shown: [ms, ...].
  async keys(target, count, request) {
    const [ns] = await this.#ask('keys', target, count, request)
    return ns.split(',').map((v) => Number(v) / 1e6)
  }

  // Requests shared out among parallel clients: {wallMs, ms: [...], ids: [...]}. One that is a list is
  // done one after the other and timed as a whole.
  async batch(target, clients, requests) {
    const [wall, failures, ns, ids, body] = await this.#ask('batch', target, clients, ...requests.map((request) => [request].flat().join('\x1e')))
    if (Number(failures) > 0) throw new Error(`${failures} of ${requests.length} failed (${requests[0]}): ${body}`)
    return { wallMs: Number(wall) / 1e6, ms: ns.split(',').map((v) => Number(v) / 1e6), ids: ids.split(',').filter(Boolean) }
  }

  // A program from vfork until reaped: milliseconds.
  async spawn(...argv) {
    const [ns, status] = await this.#ask('spawn', ...argv)
    if (status !== '0') throw new Error(`${argv.join(' ')}: exit status ${status}`)
    return Number(ns) / 1e6
  }
}
