// SPDX-License-Identifier: Apache-2.0
// One daemon on a data directory of its own: start, stop, crash, start again; who its processes are.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { accountOf, Delegation } from './account.mjs';
import { Api } from './client.mjs';
import * as document from './document.mjs';
import * as proc from './proc.mjs';
import { until } from './wait.mjs';

export const REPOSITORY = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');
export const BUILD_DIR = path.resolve(REPOSITORY, process.env.BUILD_DIR ?? 'build');
export const IS_SANITIZED = /asan|tsan|ubsan|msan/.test(BUILD_DIR);
export const program = (name) => path.join(BUILD_DIR, name);

// An agent's own words reach nobody; that it has ended does.
const REPORT = /ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|LeakSanitizer: detected|runtime error: |Assertion .* failed|stack smashing detected|free\(\): |malloc\(\): |double free|first process exited with status/;

export class Instance {
  /**
   * args: settings of every daemon that is started; wrapper: a command line that execs it; tls: as of Api; build: where
   * the programs are. It is started by user (root if there is none), in cgroups of that user's own if they are delegated.
   * canReboot: of root's; see reboot().
   */
  constructor(name, { args = [], runtimePool = 'none', wrapper = [], tls = null, build = BUILD_DIR, user = process.env.E2E_USER, isDelegated = user && process.env.E2E_DELEGATED, canReboot = false } = {}) {
    this.name = name;
    this.args = args;
    // Interpreters that wait would be counted among what tests leave behind; null: as a daemon has them by itself.
    this.usual = runtimePool ? ['--runtime-pool', runtimePool] : [];
    this.wrapper = wrapper;
    this.build = build;
    this.account = user ? accountOf(user) : null;
    this.hasCgroups = !user || Boolean(isDelegated);
    this.marker = `SANDLOT_E2E=${name}-${process.pid}-${crypto.randomBytes(4).toString('hex')}`;
    // The daemon makes its data directory itself; the parent lets an unprivileged daemon through.
    this.home = fs.mkdtempSync(path.join(os.tmpdir(), `sandlot-e2e-${name}-`));
    fs.chmodSync(this.home, 0o755);
    if (user) fs.chownSync(this.home, this.account.uid, this.account.gid);
    this.daemonFile = user ? this.copyPrograms() : path.join(build, 'sandlotd');
    this.delegation = isDelegated ? new Delegation(path.basename(this.home), this.account) : null;
    this.dataDir = path.join(this.home, 'data');
    this.bootFile = path.join(this.home, 'boot_id');
    if (canReboot) this.wrapper = this.withBoots();
    this.logFile = path.join(this.home, 'daemon.log');
    this.daemon = null; // { pid, start, child, exited }
    this.keeper = null; // { pid, start }
    this.seen = new Map(); // every process ever seen in the tree: pid -> start
    this.api = new Api({ port: 0, token: '', secrets: [this.dataDir], tls });
  }

  /** To where the user may go, which the build directory may not be; the path of sandlotd there. */
  copyPrograms() {
    const [daemon] = ['sandlotd', 'sandlot-keeper', 'sandlot-agent'].map((name) => {
      const copy = path.join(this.home, name);
      fs.copyFileSync(path.join(this.build, name), copy);
      return copy;
    });
    return daemon;
  }

  /**
   * Puts the data directory on an ext4 of its own, of so many bytes, before the first start: small, and without project
   * quotas whatever the host has.
   */
  mountDisk(bytes) {
    const disk = path.join(this.home, 'disk');
    fs.mkdirSync(this.dataDir);
    fs.writeFileSync(disk, '');
    fs.truncateSync(disk, bytes);
    for (const [file, ...args] of [['mkfs.ext4', '-q', '-b', '4096', '-m', '0', disk], ['mount', '-o', 'loop', disk, this.dataDir]]) {
      const { status, stderr } = spawnSync(file, args, { encoding: 'utf8' });
      assert.equal(status, 0, `${file} ${args.join(' ')}: ${stderr}`);
    }
    this.hasDisk = true;
    if (this.account) fs.chownSync(this.dataDir, this.account.uid, this.account.gid);
  }

  environment(extra = {}) {
    const env = { ...process.env, SANDLOT_PREVIEW_BIND: '127.0.0.1:0', ...extra };
    for (const name of ['SANDLOT_DATA_DIR', 'SANDLOT_URL', 'SANDLOT_TOKEN', 'SANDLOT_API_BIND', 'NODE_TEST_CONTEXT']) delete env[name];
    const [name, value] = this.marker.split('=');
    return { ...env, [name]: value, ...extra };
  }

  /** Spawns the daemon and waits until it is ready, or only serves; args are added to its command line. */
  async start(args = [], { isReady = true } = {}) {
    assert.ok(fs.existsSync(this.daemonFile), `${this.daemonFile} is not built: run make first`);
    const addressFile = path.join(this.dataDir, 'run/api.addr');
    const isServed = () => proc.quiet(() => fs.statSync(addressFile).size > 0, false);
    if (isServed()) fs.rmSync(addressFile); // of one that was killed
    const child = this.spawnDaemon(args, fs.openSync(this.logFile, 'a'));
    const info = proc.processInfo(child.pid);
    const daemon = { pid: child.pid, start: info?.start, child };
    daemon.exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })));
    daemon.exited.then((how) => { daemon.how = how; });
    this.daemon = daemon;
    await until(() => daemon.how || isServed(), { what: `the daemon writes ${addressFile}` });
    assert.ok(!daemon.how, `the daemon ended at once: ${JSON.stringify(daemon.how)}\n${this.log().slice(-3000)}`);
    const address = await until(() => daemon.how || /^(https:\/\/)?127\.0\.0\.1:(\d+)( sha256\S+)?\n$/.exec(fs.readFileSync(addressFile, 'utf8')), { what: `api.addr has an address; log: ${this.log().slice(-500)}` });
    assert.ok(!daemon.how, `the daemon ended while it started: ${JSON.stringify(daemon.how)}\n${this.log().slice(-3000)}`);
    this.api.port = Number(address[2]);
    this.api.token = fs.readFileSync(path.join(this.dataDir, 'token'), 'utf8').trim();
    this.api.disconnect();
    await until(async () => daemon.how || (await this.api.request('GET', isReady ? '/readyz' : '/healthz', { token: null })).status === 200, { what: '/readyz' });
    assert.ok(!daemon.how, `the daemon ended before it was ready: ${JSON.stringify(daemon.how)}\n${this.log().slice(-3000)}`);
    await document.load(async () => (await this.api.request('GET', '/openapi.json', { token: null })).json);
    this.keeper = this.findKeeper();
    this.cgroupRoots = new Set(proc.descriptorTargets(this.keeper.pid).filter((target) => target.startsWith('/sys/fs/cgroup/')));
    assert.equal(this.cgroupRoots.size > 0, this.hasCgroups, 'not proven: the keeper holds no cgroup that can be watched');
    return this;
  }

  /**
   * As a supervisor does: starts the daemon, and again when it leaves before it is ready, because its keeper died just
   * then, say. One that neither leaves nor becomes ready is an error.
   */
  async startSupervised(args = []) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.start(args);
      } catch (error) {
        if (!this.daemon.how || attempt === 5) throw error;
      }
    }
  }

  /** Starts a daemon that is expected to refuse; returns its exit code and what it said. */
  async refusal(args) {
    const file = path.join(this.home, 'refusal.log');
    const output = fs.openSync(file, 'w');
    const child = this.spawnDaemon(args, output);
    fs.closeSync(output);
    let how;
    child.on('exit', (code, signal) => { how = { code, signal }; });
    try {
      await until(() => how, { what: `sandlotd ${args.join(' ')} ends` });
    } finally {
      if (!how) process.kill(child.pid, 'SIGKILL');
    }
    return { ...how, said: fs.readFileSync(file, 'utf8') };
  }

  spawnDaemon(args, output) {
    const command = [this.daemonFile, '--data-dir', this.dataDir, '--api-bind', '127.0.0.1:0', ...this.usual, ...this.args, ...args];
    const [file, ...rest] = [...(this.delegation?.enter ?? []), ...(this.account?.become ?? []), ...this.wrapper, ...command];
    return spawn(file, rest, { stdio: ['ignore', output, output], cwd: this.home, env: this.environment({ HOME: this.account?.home ?? os.homedir() }) });
  }

  /** The keeper of this instance: it may have been re-parented, so it is known by what it carries. */
  findKeeper() {
    const mine = (info) =>
      info.ppid === this.daemon?.pid || proc.environ(info.pid).includes(this.marker) || proc.cmdline(info.pid).includes(this.dataDir) ||
      proc.descriptorTargets(info.pid).some((target) => target.startsWith(this.dataDir));
    const found = proc.allProcesses().filter((info) => info.comm === 'sandlot-keeper' && info.state !== 'Z' && !proc.isSandboxInit(info.pid) && mine(info));
    const roots = found.filter((info) => !found.some((other) => other.pid === info.ppid));
    assert.equal(roots.length, 1, `one keeper: ${JSON.stringify(found)}`);
    return roots[0];
  }

  /** All processes of the instance but daemon and keeper: what sandboxes are made of. */
  sandboxProcesses() {
    const roots = [this.daemon?.pid, this.keeper?.pid].filter(Boolean);
    const found = proc.descendants(roots);
    for (const info of found) this.seen.set(info.pid, info.start);
    return found;
  }

  /** The first processes of sandboxes that somebody owns: not that of the one built ahead, whose disk is still a spare. */
  sandboxInits() {
    const isAhead = (pid) => proc.groupsOf(pid).some((name) => /^ahead-\d+$/.test(name) && fs.existsSync(path.join(this.dataDir, 'spares', name)));
    return this.sandboxProcesses().filter((info) => info.state !== 'Z' && proc.isSandboxInit(info.pid) && !isAhead(info.pid));
  }

  /** The host's view of the init of a sandbox, or of its member, found by its PID namespace. */
  async initOf(id, member) {
    const answer = await this.api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { argv: ['readlink', '/proc/self/ns/pid'], user: 'root' }, query: { member } });
    assert.equal(answer.json.exit_code, 0, answer.text);
    const ns = answer.json.stdout.trim();
    const found = this.sandboxProcesses().filter((info) => proc.isSandboxInit(info.pid) && proc.namespace(info.pid, 'pid') === ns);
    assert.equal(found.length, 1, `one init in ${ns}`);
    return found[0];
  }

  /** The workspace of a running sandbox: a directory, or as the keeper sees its image, which is mounted nowhere else on the host. */
  workspace(id) {
    const places = [id, `${id}.home/workspace`].map((name) => path.join(this.dataDir, 'workspaces', name));
    const directory = places.find((place) => fs.existsSync(place));
    if (directory) return directory;
    return path.join(`/proc/${this.keeper.pid}/root`, this.dataDir, 'templates/disks', id, 'home/workspace');
  }

  /** A command line that execs a daemon for which the kernel's number of this boot is ours to say. */
  withBoots() {
    fs.writeFileSync(this.bootFile, `${crypto.randomUUID()}\n`);
    const script = path.join(this.home, 'with_boots');
    fs.writeFileSync(script, `#!/bin/sh\nmount --bind ${this.bootFile} /proc/sys/kernel/random/boot_id && exec "$@"\n`, { mode: 0o755 });
    return ['unshare', '--mount', script];
  }

  /** As when the power fails: all processes at once, and what is in memory alone; then another boot, and the daemon. */
  async reboot(args = []) {
    const all = [this.daemon, this.keeper, ...this.sandboxProcesses()];
    for (const signal of ['SIGSTOP', 'SIGKILL']) {
      for (const info of [...all, ...this.sandboxProcesses()]) if (proc.isAlive(info)) proc.quiet(() => process.kill(info.pid, signal));
    }
    await until(() => this.survivors().length === 0, { what: 'all processes are gone' });
    await until(() => {
      for (const group of this.cgroups().sort((a, b) => b.length - a.length)) fs.rmdirSync(group);
      return this.cgroups().length === 0;
    }, { what: 'all cgroups are gone' });
    for (const name of fs.readdirSync(path.join(this.dataDir, 'run'))) fs.rmSync(path.join(this.dataDir, 'run', name), { recursive: true });
    fs.writeFileSync(this.bootFile, `${crypto.randomUUID()}\n`);
    return this.start(args);
  }

  /** kill -9 of the daemon alone, as a crash would end it. */
  async crash() {
    this.sandboxProcesses();
    process.kill(this.daemon.pid, 'SIGKILL');
    await this.daemon.exited;
  }

  async terminate() {
    this.sandboxProcesses();
    process.kill(this.daemon.pid, 'SIGTERM');
    const how = await until(() => this.daemon.how, { what: 'the daemon ends after SIGTERM' });
    assert.deepEqual(how, { code: 0, signal: null }, this.log().slice(-2000));
  }

  /** POST /v1/shutdown: the end of daemon, keeper and sandboxes. */
  async shutdown() {
    this.sandboxProcesses();
    const answer = await this.api.request('POST', '/v1/shutdown');
    assert.ok([200, 202, 204].includes(answer.status), `shutdown: ${answer.status} ${answer.text}`);
    this.api.disconnect();
    const how = await until(() => this.daemon.how, { what: 'the daemon ends after shutdown' });
    assert.deepEqual(how, { code: 0, signal: null }, this.log().slice(-2000));
  }

  /** What is still running of all that was ever seen. */
  survivors() {
    const known = [...this.seen].map(([pid, start]) => ({ pid, start }));
    for (const info of [this.daemon, this.keeper]) if (info) known.push(info);
    return known.filter(proc.isAlive).map((info) => ({ ...proc.processInfo(info.pid), cmdline: proc.cmdline(info.pid) }));
  }

  /** The cgroups of the instance: its own roots, as the keeper holds them, and all below. */
  cgroups() {
    return [...this.cgroupRoots].filter((root) => fs.existsSync(root)).flatMap((root) => [root, ...proc.cgroupDirs(root)]);
  }

  log() {
    return proc.quiet(() => fs.readFileSync(this.logFile, 'utf8'), '');
  }

  /** The files of the state directory, without links, as paths. */
  stateFiles() {
    const dir = path.join(this.dataDir, 'state');
    return fs.readdirSync(dir, { recursive: true }).map((name) => path.join(dir, name))
      .filter((name) => proc.quiet(() => fs.lstatSync(name).isFile(), false));
  }

  /** What a sanitizer, an assertion or the C library complained about, in any log of the instance. */
  complaints() {
    const logs = [this.logFile];
    for (const dir of ['', 'log', 'logs', 'run']) {
      for (const name of proc.entries(path.join(this.dataDir, dir))) if (name.endsWith('.log')) logs.push(path.join(this.dataDir, dir, name));
    }
    return logs.flatMap((file) => {
      const lines = proc.quiet(() => fs.readFileSync(file, 'utf8'), '').split('\n');
      const first = lines.findIndex((line) => REPORT.test(line));
      return first < 0 ? [] : [lines.slice(first, first + 40).join('\n')];
    });
  }

  /** Last resort, so that a failed test leaves nothing on the machine: by pid, only what is ours. */
  destroy() {
    this.api.agent.destroy();
    for (const info of [this.daemon, this.keeper]) {
      if (info && proc.isAlive(info)) proc.quiet(() => process.kill(info.pid, 'SIGKILL'));
    }
    for (const info of this.survivors()) proc.quiet(() => process.kill(info.pid, 'SIGKILL'));
    // One whose daemon did not come as far as to be ready was never noted.
    for (const { pid, comm } of proc.allProcesses()) {
      if (comm === 'sandlot-keeper' && proc.cmdline(pid).includes(` ${this.dataDir} `)) proc.quiet(() => process.kill(pid, 'SIGKILL'));
    }
    this.delegation?.remove();
    if (this.hasDisk) spawnSync('umount', ['-l', this.dataDir]);
    this.hasDisk = false;
    // By rm, because a test may leave a tree that is too deep for node's own.
    if (!process.env.E2E_KEEP) spawnSync('rm', ['-rf', this.home]);
  }
}
