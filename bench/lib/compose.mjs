// SPDX-License-Identifier: Apache-2.0
// `docker compose up` of services on the private engine. They share one network namespace, as members do, because the
// engine has no bridge; and their programs are the host's, mounted read-only, as those of the template host are.
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { sleep } from './host.mjs'

const run = promisify(execFile)
const HOST = ['/usr', '/etc', '/lib', '/lib64'].filter((dir) => existsSync(dir)).map((dir) => `${dir}:${dir}:ro`)

export class Compose {
  /** services: name -> program of sh. The one named `app` is up when it has made the file /ready/up. */
  constructor(docker, scratch, services, environment) {
    this.dir = mkdtempSync(`${scratch}/compose-`)
    this.up = `${this.dir}/ready/up`
    this.socket = docker.socket
    this.services = services
    const of = ([name]) => [name, {
      image: 'bench:busybox', user: '65534:65534', environment, command: ['/usr/bin/sh', `/programs/${name}`],
      volumes: [...HOST, `${this.dir}:/programs:ro`, `${this.dir}/ready:/ready`, `${this.dir}/data-${name}:/volumes`, `${this.dir}/tmp-${name}:/tmp`],
      network_mode: name === 'app' ? 'none' : 'service:app',
    }]
    for (const [name, program] of Object.entries(services)) writeFileSync(`${this.dir}/${name}`, program)
    writeFileSync(`${this.dir}/docker-compose.yml`, JSON.stringify({ version: '2.4', services: Object.fromEntries(Object.entries(services).map(of)) }))
    chmodSync(this.dir, 0o755)
  }

  #compose(...argv) { return run('docker-compose', ['-p', 'bench', '-f', `${this.dir}/docker-compose.yml`, ...argv], { env: { ...process.env, DOCKER_HOST: `unix://${this.socket}` } }) }

  /** From nothing until the application says that all answer; then everything goes. */
  async measure() {
    const dirs = ['ready', ...Object.keys(this.services).flatMap((name) => [`data-${name}`, `tmp-${name}`])].map((name) => `${this.dir}/${name}`)
    await run('rm', ['-rf', ...dirs])
    await run('mkdir', ['-m', '777', ...dirs])
    const began = performance.now()
    await this.#compose('up', '-d', '--no-build')
    while (!existsSync(this.up)) {
      if (performance.now() - began > 120000) throw new Error(`not up: ${(await this.#compose('logs', '--no-color', '--tail', '4')).stdout.slice(-1500)}`)
      await sleep(2)
    }
    const took = performance.now() - began
    await this.#compose('down', '-v', '-t', '1')
    return took
  }

  remove() { rmSync(this.dir, { recursive: true, force: true }) }
}
