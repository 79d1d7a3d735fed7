// SPDX-License-Identifier: Apache-2.0
// A private dockerd (with its own containerd) and one image of busybox, made here: no registry.
// Also the same busybox as an OCI bundle for crun.
import { mkdirSync, writeFileSync, existsSync, symlinkSync, copyFileSync, readFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { startService, waitFor, logTail, removeCgroups, childrenOf } from './host.mjs'

// crun refuses a host with v1 controllers and a cgroup2 mount beside them, so peers see the host
// without that mount; and what dockerd would leave in /run, /opt and /etc/docker goes to memory
// that vanishes with its mount namespace.
export function peerNamespace() {
  const script = 'mount --make-rprivate /; ' +
    'if [ -e /sys/fs/cgroup/memory ] && mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi; ' +
    'for dir in /run /opt /etc/docker; do [ ! -d $dir ] || mount -t tmpfs tmpfs $dir; done; exec "$@"'
  return ['unshare', '--mount', 'sh', '-c', script, 'sh']
}

export function makeBusybox(scratch) {
  const root = `${scratch}/busybox`
  for (const dir of ['bin', 'proc', 'sys', 'dev', 'etc', 'tmp']) mkdirSync(`${root}/${dir}`, { recursive: true })
  copyFileSync('/bin/busybox', `${root}/bin/busybox`)
  for (const applet of ['sh', 'true', 'sleep', 'cat', 'ls']) symlinkSync('busybox', `${root}/bin/${applet}`)
  return root
}

// The limits every contender gets: those of a default sandbox.
const LIMITS = { memory: 1 << 30, pids: 1024, quota: 100000, period: 100000 }

export function makeBundle(scratch, root, cgroup) {
  const bundle = `${scratch}/bundle`
  mkdirSync(bundle)
  const made = spawnSync('crun', ['spec'], { cwd: bundle, encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`crun spec: ${made.stderr}`)
  const spec = JSON.parse(readFileSync(`${bundle}/config.json`, 'utf8'))
  spec.process.terminal = false
  spec.process.args = ['true']
  spec.root = { path: root, readonly: true }
  spec.linux.cgroupsPath = `/${cgroup}/crun`
  spec.linux.resources = {
    ...spec.linux.resources, memory: { limit: LIMITS.memory }, pids: { limit: LIMITS.pids },
    cpu: { quota: LIMITS.quota, period: LIMITS.period },
  }
  writeFileSync(`${bundle}/config.json`, JSON.stringify(spec))
  return bundle
}

export class Docker {
  static async start(undo, scratch, root, cgroup, probe) {
    const self = new Docker()
    const dir = `${scratch}/docker`
    const socket = `${dir}/docker.sock`
    mkdirSync(dir)
    writeFileSync(`${dir}/daemon.json`, '{}')
    const dockerd = ['/usr/sbin/dockerd', '/usr/bin/dockerd'].find((path) => existsSync(path)) ?? 'dockerd'
    undo.push('remove the cgroups of Docker', () => removeCgroups(cgroup))
    self.service = startService(undo, 'dockerd', [...peerNamespace(), dockerd, '--config-file', `${dir}/daemon.json`,
      '--data-root', `${dir}/root`, '--exec-root', `${dir}/exec`, '--pidfile', `${dir}/docker.pid`, '-H', `unix://${socket}`,
      '--iptables=false', '--ip6tables=false', '--bridge=none', '--storage-driver', 'overlay2',
      '--exec-opt', 'native.cgroupdriver=cgroupfs', '--cgroup-parent', `/${cgroup}`], `${scratch}/dockerd.log`)
    self.dir = dir
    self.probe = probe
    self.socket = socket
    await waitFor('dockerd', () => {
      if (self.service.ended !== null) throw new Error(`dockerd ended (${self.service.ended}):\n${logTail(self.service.log)}`)
      return spawnSync('curl', ['-sf', '--unix-socket', socket, 'http://d/_ping']).status === 0
    }, 60000)
    self.target = await probe.target(`unix:${socket}`)
    undo.push('remove the containers', () => self.#removeAll())
    const image = spawnSync('sh', ['-c', `tar -C '${root}' -c . | curl -sS --unix-socket '${socket}' -H 'Content-Type: application/x-tar' ` +
      `--data-binary @- 'http://d/images/create?fromSrc=-&repo=bench&tag=busybox'`], { encoding: 'utf8' })
    if (!image.stdout.includes('sha256:')) throw new Error(`docker import: ${image.stdout}${image.stderr}`)
    self.versions = JSON.parse((await self.http('GET /version')).body)
    return self
  }

  // Not through the probe, which may still be busy with the request that was interrupted.
  #removeAll() {
    const curl = (...args) => spawnSync('curl', ['-sf', '--unix-socket', this.socket, ...args], { encoding: 'utf8' })
    for (const { Id } of JSON.parse(curl('http://d/containers/json?all=1').stdout)) {
      const removed = curl('-X', 'DELETE', `http://d/containers/${Id}?force=1&v=1`)
      if (removed.status !== 0) throw new Error(`container ${Id} stays`)
    }
  }

  // dockerd, its containerd, the shims (all name our directory) and what runs in the containers.
  processes() {
    const ours = spawnSync('pgrep', ['-f', this.dir], { encoding: 'utf8' }).stdout.trim().split('\n').map(Number)
    return [...new Set(ours.flatMap((pid) => [pid, ...childrenOf(pid)]))]
  }

  http(...requests) { return this.probe.http(this.target, ...requests) }

  body(...cmd) {
    return JSON.stringify({ Image: 'bench:busybox', Cmd: cmd, HostConfig: {
      NetworkMode: 'none', Memory: LIMITS.memory, PidsLimit: LIMITS.pids, CpuQuota: LIMITS.quota, CpuPeriod: LIMITS.period } })
  }

  // create + start of a container that stays: {ms, id}
  create() { return this.http(`POST /containers/create ${this.body('sleep', '1000000')}`, 'POST /containers/{id}/start') }

  remove(id) { return this.http(`DELETE /containers/${id}?force=1&v=1`) }
}
