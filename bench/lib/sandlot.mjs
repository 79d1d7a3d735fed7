// SPDX-License-Identifier: Apache-2.0
// A private sandlotd on a fresh data directory.
import { readFileSync, mkdirSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { startService, waitFor, logTail, sleep } from './host.mjs'
import { busybox, image, layoutArchive } from '../../tests/e2e/lib/images.mjs'

const readText = (path) => { try { return readFileSync(path, 'utf8').trim() } catch { return '' } }

export class Sandlot {
  static async start(undo, scratch, build, probe, { name = 'sandlot', args = [] } = {}) {
    const self = new Sandlot()
    const data = `${scratch}/${name}`
    // Both trees are walked by users that are not root.
    spawnSync('chmod', ['711', scratch])
    mkdirSync(data, { mode: 0o711 })
    self.data = data
    self.build = build
    self.service = startService(undo, 'sandlotd',
      [`${build}/sandlotd`, '--data-dir', data, '--api-bind', '127.0.0.1:0', '--preview-bind', '127.0.0.1:0', ...args],
      `${scratch}/${name === 'sandlot' ? 'sandlotd' : name}.log`)
    self.pid = self.service.pid
    undo.push('shut Sandlot down', () => self.stop())
    self.address = await waitFor('the address of sandlotd', () => {
      if (self.service.ended !== null) throw new Error(`sandlotd ended (${self.service.ended}):\n${logTail(self.service.log)}`)
      return readText(`${data}/run/api.addr`)
    })
    self.token = readText(`${data}/token`)
    self.probe = probe
    self.target = await probe.target(self.address, `Authorization: Bearer ${self.token}`)
    await waitFor('readiness of sandlotd', async () => (await fetch(`http://${self.address}/readyz`)).ok)
    self.version = (await self.json('GET', '/v1/version')).version
    return self
  }

  // The keeper outlives the daemon by design; this request ends both and every sandbox.
  async stop() {
    if (this.service.ended !== null || !this.token) return
    await this.json('POST', '/v1/shutdown')
    await this.service.wait(20000)
    await waitFor('the end of the keeper', () => this.keeperPid() === null)
  }

  // The workspace of a running sandbox: its disk is mounted where the keeper is.
  workspace(id) {
    return `/proc/${this.keeperPid()}/root${this.data}/templates/disks/${id}/home/workspace`
  }

  // The oldest of this name on our data directory; null if there is none.
  keeperPid() {
    const found = spawnSync('pgrep', ['-of', `sandlot-keeper ${this.data} `], { encoding: 'utf8' })
    return found.status === 0 ? Number(found.stdout) : null
  }

  async json(method, path, body) {
    const answer = await fetch(`http://${this.address}${path}`, {
      method, headers: { authorization: `Bearer ${this.token}`, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text ? JSON.parse(text) : null
  }

  http(...requests) { return this.probe.http(this.target, ...requests) }

  async create(body = '{}') { return this.http(`POST /v1/sandboxes ${body}`) }

  async purge(id) { await this.http(`POST /v1/sandboxes/${id}/purge`) }

  // Many at once, untimed; answers their ids.
  async fill(count, body = '{}') {
    const { ids } = await this.probe.batch(this.target, 8, Array(count).fill(`POST /v1/sandboxes ${body}`))
    return ids
  }

  async purgeAll(ids) {
    if (ids.length > 0) await this.probe.batch(this.target, 8, ids.map((id) => `POST /v1/sandboxes/${id}/purge`))
  }

  // Disk space is given back in the background; the next measure should not pay for it.
  async settle() {
    await waitFor('an empty trash', () => spawnSync('find', [`${this.data}/trash`, '-mindepth', '1', '-maxdepth', '1', '-print', '-quit'])
      .stdout.length === 0, 60000)
    await sleep(100)
  }

  log() { return readText(this.service.log) }
}

/** A template of busybox alone. */
export async function putTemplate(sandlot, name) {
  const answer = await fetch(`http://${sandlot.address}/v1/templates/${name}/archive`, { method: 'PUT',
    headers: { authorization: `Bearer ${sandlot.token}`, 'content-type': 'application/x-tar' }, body: layoutArchive(image([busybox()])) })
  if (!answer.ok) throw new Error(await answer.text())
}
