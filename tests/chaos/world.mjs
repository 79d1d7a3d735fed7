// SPDX-License-Identifier: Apache-2.0
// A daemon on a small file system of its own, with a supervisor, owners, clients and faults; and the comparison of all
// of it with the model.
import assert from 'node:assert/strict';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

import { sql } from '../e2e/lib/database.mjs';
import { Instance, IS_SANITIZED } from '../e2e/lib/instance.mjs';
import { ownerApi } from '../e2e/lib/owners.mjs';
import * as proc from '../e2e/lib/proc.mjs';
import { assertNothingRemains, loopFiles } from '../e2e/lib/remains.mjs';
import { growth, settle, steady } from '../e2e/lib/suite.mjs';
import { MI } from '../e2e/lib/values.mjs';
import { eachLimit, until } from '../e2e/lib/wait.mjs';
import { FAULTS } from './faults.mjs';
import { Model } from './model.mjs';
import { Client, DISK_FAILED } from './operations.mjs';
import { Random } from './random.mjs';

const DISK_BYTES = 768 * MI;
const DISK_RESERVE = '32Mi';
const GROWTH_MAX = 48 * MI; // of the daemon's memory; its pools and caches have their size by then
const KEEPER_GROWTH_MAX = 8 * MI; // of the keeper's, which has neither
const NOTES = 20_000;
const WIDTH = 32;
const RANGES_KEPT = 32; // uid ranges of which the keeper keeps the user namespace while nobody runs in them
const WORKERS = 64;
const TABLES = ['sandboxes', 'workspaces', 'processes', 'preview_links'];

export class World {
  /** faults: names of FAULTS. */
  constructor({ seed, faults = Object.keys(FAULTS), log = () => {} }) {
    Object.assign(this, { seed, faults, log });
    this.random = new Random(seed);
    this.model = new Model();
    this.purged = new Set();
    this.flaws = [];
    this.notes = [];
    this.trouble = 0; // faults that are not yet recovered from
    this.lastTrouble = -1;
    this.counts = {};
  }

  // --- beginning and end ---

  async open() {
    this.instance = new Instance('chaos', { args: ['--disk-reserve', DISK_RESERVE, '--memory-reserve', '0', '--workers', String(WORKERS)] });
    this.instance.mountDisk(DISK_BYTES);
    await this.instance.start();
    await this.makeOwners();
    this.baseline = await this.measure();
    this.supervise();
  }

  /** By owners of two organizations; one has a quota. */
  async makeOwners() {
    const { api } = this.instance;
    const names = [['red', 'ann', 0], ['red', 'bob', 4], ['blue', 'ann', 0]];
    this.owners = [];
    for (const [organization, user, limit] of names) {
      if (limit) await api.request('PUT', `/v1/quotas/${organization}/${user}`, { json: { sandboxes: limit } });
      this.owners.push({ name: `${organization}/${user}`, limit, api: await ownerApi(api, organization, user) });
    }
    // One with a quota is alone with it, so that it knows when there must be room.
    this.clients = this.owners.flatMap((owner) => (owner.limit ? [owner] : [owner, owner])).map((owner) => new Client(this, owner, this.random.branch()));
  }

  /** Starts the daemon again whenever it has ended, until close(). */
  supervise() {
    this.supervisor = (async () => {
      for (;;) {
        await this.instance.daemon.exited;
        if (this.isClosing) return;
        await this.instance.startSupervised();
        for (const owner of this.owners) owner.api.port = this.instance.api.port;
        this.restarts = (this.restarts ?? 0) + 1;
      }
    })();
    this.supervisor.catch((error) => this.fault(`the daemon cannot be started again: ${error.message}`));
  }

  close() {
    this.isClosing = true;
    for (const owner of this.owners ?? []) owner.api.agent.destroy();
    this.instance.destroy();
  }

  // --- what happened ---

  now() {
    return performance.now();
  }

  get isTroubled() {
    return this.trouble > 0;
  }

  /** Whether a fault was under way at any time since then. */
  wasTroubled(since) {
    return this.isTroubled || this.lastTrouble >= since;
  }

  note(text) {
    this.notes.push(`${(this.now() / 1000).toFixed(3)} ${text}`);
    if (this.notes.length > NOTES) this.notes.shift();
  }

  /** Something that must not be. The run ends, but the clients finish what they are at. */
  fault(text) {
    this.note(`FLAW ${text}`);
    this.flaws.push(text);
  }

  // --- the run ---

  /** Operations and faults for so many seconds, and until each fault was met once. */
  async play(seconds) {
    const end = Date.now() + seconds * 1000;
    for (let round = 1; (Date.now() < end || round <= this.faults.length) && this.flaws.length === 0; round++) {
      this.mayGoOn = true;
      const working = Promise.all(this.clients.map((client) => this.work(client)));
      await delay(this.random.integer(100, 800));
      await this.hurt();
      this.mayGoOn = false;
      await working;
      await this.recovered();
      if (this.flaws.length === 0) await this.compare(this.clients.filter(() => this.random.next() < 0.3));
      this.trouble = 0;
      this.lastTrouble = this.now();
    }
  }

  async work(client) {
    while (this.mayGoOn && this.flaws.length === 0) {
      try {
        await client.step();
      } catch (error) {
        this.fault(`${error.stack}`);
      }
      await delay(this.isTroubled ? 5 : 0); // a daemon that is not there refuses as fast as we ask
    }
  }

  async hurt() {
    // Each once before any comes again, so that a short run meets all.
    if (!this.toCome?.length) this.toCome = [...this.faults];
    const [name] = this.toCome.splice(this.random.integer(0, this.toCome.length - 1), 1);
    this.trouble++;
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    this.note(`FAULT ${name}`);
    await FAULTS[name](this, this.random);
    await delay(this.random.integer(0, 300)); // clients meet what it left
  }

  /** Until the daemon serves sandboxes again. */
  async recovered() {
    await until(async () => {
      if (this.flaws.length > 0) return true;
      if (this.instance.daemon.how) return false;
      const answer = await this.instance.api.request('GET', '/readyz', { token: null });
      return answer.status === 200 && proc.isAlive(this.instance.keeper);
    }, { what: 'the daemon is back' }).catch((error) => this.fault(`${error.message}\n${this.instance.log().slice(-2000)}`));
  }

  // --- comparing ---

  /** A row (null: 404) with the model, which knows more afterwards. */
  compareRow(sandbox, row) {
    const states = [...sandbox.states];
    if (row === null) {
      const possible = states.filter((state) => ['deleted', 'none'].includes(state));
      if (possible.length === 0) this.fault(`${sandbox.id} is gone; it was ${states}`);
      else sandbox.is(...possible);
      return;
    }
    // A create that cannot be undone on a full disk is undone when there is room: see compare().
    if (row.status === 'creating' && this.isTroubled) return;
    if (!sandbox.observe(row.status)) this.fault(`${sandbox.id} is ${row.status} (${row.error_message}, ${JSON.stringify(row.termination)}); possible is ${states}`);
    if (!sandbox.labels.has(row.labels.n)) this.fault(`${sandbox.id} has the label ${row.labels.n}; possible is ${[...sandbox.labels]}`);
    sandbox.labels = new Set([row.labels.n]);
    if (row.status !== 'error' && row.error_message && !(DISK_FAILED.test(row.error_message) && sandbox.mayHaveFailedDisk)) this.fault(`${sandbox.id} is ${row.status}, and says ${row.error_message}`);
  }

  /** All rows of all owners; files and processes of what the given clients have. */
  async compare(thorough) {
    this.model.endLosses();
    for (const owner of this.owners) {
      await until(async () => {
        const rows = new Map((await owner.api.all()).map((row) => [row.id, row]));
        if ([...rows.values()].some((row) => row.status === 'creating')) return false;
        // One that lost its agent is noticed a little later.
        for (const sandbox of this.model.of(owner)) if (sandbox.states.has('stopped') && rows.get(sandbox.id)?.status === 'running' && (await this.isDead(owner, sandbox))) return false;
        for (const id of rows.keys()) if (!this.model.sandboxes.has(id)) this.fault(`${owner.name} has ${id}, which nobody made`);
        for (const sandbox of this.model.of(owner)) this.compareRow(sandbox, rows.get(sandbox.id) ?? null);
        if (owner.limit && rows.size > owner.limit) this.fault(`${owner.name} has ${rows.size} sandboxes, of ${owner.limit} allowed`);
        return true;
      }, { what: 'rows can be compared' }).catch((error) => this.fault(error.message));
    }
    this.trouble = 0; // from here on everything must work
    this.lastTrouble = this.now();
    await Promise.all(this.clients.map((client) => client.useDisksAgain()));
    for (const client of thorough) {
      for (const sandbox of client.mine) await this.compareInside(client, sandbox);
    }
  }

  /** Whether one whose row says running has no first process any more. */
  async isDead(owner, sandbox) {
    const answer = await owner.api.tryExec(sandbox.id, { command: 'true', timeout_ms: 5000 });
    return answer.status !== 200 || answer.json.exit_code !== 0;
  }

  async compareInside(client, sandbox) {
    if (sandbox.state === 'paused') await client.verb(sandbox, 'resume', 'running');
    if (!['running', 'stopped', 'error'].includes(sandbox.state)) return;
    for (const path of sandbox.files.keys()) await client.get(sandbox, path);
    const answer = await client.call('processes', sandbox, () => client.api.request('GET', `/v1/sandboxes/${sandbox.id}/processes`));
    const listed = new Map((answer?.json.processes ?? []).map((process) => [process.id, process]));
    for (const known of sandbox.processes) this.compareProcess(sandbox, known, listed.get(known.id));
  }

  compareProcess(sandbox, known, found) {
    const what = `process ${known.id} of ${sandbox.id}`;
    if (!found) return this.fault(`${what} is not listed`);
    if (known.isLong && known.run === sandbox.run && (found.status !== 'running' || found.pid !== known.pid)) this.fault(`${what} should run on as ${known.pid}: ${JSON.stringify(found)}`);
    if (known.isLong && known.run !== sandbox.run && sandbox.state === 'stopped' && found.status === 'running') this.fault(`${what} runs in a sandbox that does not`);
    const codes = known.run === sandbox.run ? [known.code] : [known.code, 137, 143]; // a stop or fault may have come first
    if (!known.isLong && found.status === 'exited' && !codes.includes(found.exit_code)) this.fault(`${what} ended with ${found.exit_code}, not ${known.code}`);
    return undefined;
  }

  // --- the end ---

  /** Everything is purged and the machine holds what it held. */
  async finish() {
    await this.compare(this.clients);
    const ids = [...this.model.sandboxes.values()];
    await eachLimit(ids, 4, async (sandbox) => {
      const answer = await sandbox.owner.api.verb(sandbox.id, 'purge');
      if (![200, 204, 404].includes(answer.status)) this.fault(`purge of ${sandbox.id} is answered ${answer.status} ${answer.text}`);
      this.purged.add(sandbox.id);
    });
    for (const id of this.purged) this.instance.api.purged.add(id);
    await assertNothingRemains(this.instance, new Set());
    let now;
    // What is built ahead may just be exchanged: then there are two of it for a moment.
    await until(async () => {
      now = await this.measure();
      assert.equal(JSON.stringify(growth(this.baseline.census, now.census), null, 1), '{}');
      return true;
    }, { every: 200, what: 'nothing has grown' });
    for (const table of TABLES) assert.equal(sql(this.instance, `SELECT count(*) FROM ${table}`), '0\n', `rows of ${table}`);
    if (!IS_SANITIZED) assert.ok(now.memory - this.baseline.memory < GROWTH_MAX, `the daemon has ${now.memory} bytes, at first ${this.baseline.memory}`);
    if (!IS_SANITIZED) assert.ok(now.keeperMemory - this.baseline.keeperMemory < KEEPER_GROWTH_MAX, `the keeper has ${now.keeperMemory} bytes, at first ${this.baseline.keeperMemory}`);
    assert.equal((await this.instance.api.request('GET', '/v1/audit/verify')).json.ok, true, 'the audit log is whole');
    assert.deepEqual(this.instance.complaints(), []);
    this.isClosing = true;
    await this.instance.shutdown();
    await until(() => {
      assert.deepEqual(this.instance.survivors(), []);
      assert.deepEqual(this.instance.cgroups(), []);
      assert.deepEqual(loopFiles(this.instance.dataDir), []);
      return true;
    }, { what: 'all is gone' });
  }

  /**
   * What there is, at rest. First so many sandboxes are used at once as the clients ever have: what is pooled, and what
   * the keeper keeps for each uid range, then has its size, whichever keeper this is.
   */
  async measure() {
    const { api, dataDir } = this.instance;
    const ids = (await Promise.all(Array.from({ length: WIDTH }, () => api.create({ resources: { memory: '128Mi', disk: '64Mi' } })))).map((sandbox) => sandbox.id);
    await eachLimit(ids, 8, async (id) => {
      await api.put(id, '/tmp/warm', 'warm');
      await api.verb(id, 'stop');
      await api.exec(id, 'true');
      await api.purge(id);
      api.purged.add(id);
    });
    for (const owner of this.owners) owner.api.disconnect();
    await settle(this.instance);
    const now = await steady(this.instance);
    // A keeper has a copy of all mounts that the host had when it started.
    now['mounts of the keeper'] = now['mounts of the keeper'].filter((line) => line.includes(dataDir));
    // How many workers there are is how many were needed at once, up to their limit.
    assert.ok(now['threads of the daemon'].length < WORKERS + 32 + 8 * os.cpus().length, `the daemon has ${now['threads of the daemon'].length} threads`);
    delete now['threads of the daemon'];
    // Whether one more range is kept depends on whether the sandbox that is built ahead is in one of those that were idle.
    const isOfRange = (name) => name.startsWith('user:[');
    const ranges = now['descriptors of the keeper'].filter(isOfRange).length;
    assert.ok(ranges <= RANGES_KEPT + 1, `the keeper keeps ${ranges} user namespaces`);
    for (const kind of ['descriptors of the keeper', 'namespaces']) now[kind] = now[kind].filter((name) => !isOfRange(name));
    return { census: now, memory: proc.residentBytes(this.instance.daemon.pid), keeperMemory: proc.residentBytes(this.instance.keeper.pid) };
  }

  report() {
    const faults = Object.entries(this.counts).map(([name, count]) => `${count} x ${name}`).join(', ');
    const calls = (this.clients ?? []).reduce((sum, client) => sum + client.count, 0);
    return `seed ${this.seed}: ${calls} operations answered, ${this.restarts ?? 0} restarts; ${faults || 'no faults'}`;
  }
}

/** A whole run. Throws, with the seed and what happened last, if anything was not as it must be. */
export async function chaos({ seed, seconds, faults, log = console.log }) {
  const world = new World({ seed, faults, log });
  process.on('exit', () => world.instance && !world.isDone && world.close());
  try {
    await world.open();
    await world.play(seconds);
    if (world.flaws.length === 0) await world.finish();
    log(world.report());
    assert.deepEqual(world.flaws, [], 'nothing is other than the model says');
  } catch (error) {
    const flawed = world.notes.filter((note) => note.includes('FAULT') || world.flaws.some((flaw) => flaw.includes(/[0-9a-z]{26}/.exec(note)?.[0] ?? '?')));
    log(`${world.report()}\nlast of all:\n${world.notes.slice(-60).join('\n')}\nof what is wrong:\n${flawed.slice(-200).join('\n')}\nlog of the daemon:\n${world.instance.log().slice(-3000)}`);
    throw error;
  } finally {
    world.close();
    world.isDone = true;
  }
}
