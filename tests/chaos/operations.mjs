// SPDX-License-Identifier: Apache-2.0
// The random operations of a client. A sandbox belongs to one client, which does one thing at a time with it; so the
// model knows what each call must do.
import { until } from '../e2e/lib/wait.mjs';
import { digest, ROWS } from './model.mjs';

const SANDBOXES_MAX = 4; // of a client; one with a quota tries two more than that
const FILES_MAX = 12;
const PROCESSES_MAX = 8;
const PLACES = ['/workspace/agent_workspace', '/workspace/outputs'];
const NOT_SENT = ['ECONNREFUSED'];
export const DISK_FAILED = /^the disk failed and takes no more writes/;
const PROBE_BYTES = 600 * 1024; // more than a disk may grow by while the host has less than its reserve
const TROUBLE = [409, 500, 502, 503, 504, 507];

export class Client {
  constructor(world, owner, random) {
    Object.assign(this, { world, owner, random });
    this.mine = []; // of the model
    this.most = owner.limit ? owner.limit + 2 : SANDBOXES_MAX;
    this.count = 0;
  }

  get api() {
    return this.owner.api;
  }

  /**
   * One call. Returns the answer if it succeeded or has one of the expected statuses. Otherwise null, and unsure() has
   * told the model that it may have happened or not; that is an error of the product unless a fault was under way.
   */
  async call(name, sandbox, send, { expected = [], unsure = () => {} } = {}) {
    const began = this.world.now();
    let answer;
    try {
      answer = await send();
    } catch (error) {
      if (!NOT_SENT.includes(error.code)) unsure();
      if (!this.world.wasTroubled(began)) this.world.fault(`${name} of ${sandbox?.id}: ${error.message}, and nothing was done to the daemon`);
      this.world.note(`${name} ${sandbox?.id ?? ''}: ${error.code ?? error.message}`);
      return null;
    }
    this.count++;
    this.world.note(`${name} ${sandbox?.id ?? ''}: ${answer.status}`);
    if (answer.status < 300 || expected.includes(answer.status)) return answer;
    unsure();
    if (!TROUBLE.includes(answer.status) || !this.world.wasTroubled(began)) {
      this.world.fault(`${name} of ${sandbox?.id} (${[...(sandbox?.states ?? [])]}) is answered ${answer.status} ${answer.text.slice(0, 400)}`);
    }
    return null;
  }

  /** A verb that leads to a state. */
  async verb(sandbox, verb, after, also = []) {
    const before = [...sandbox.states];
    const unsure = () => sandbox.mayBe(...before, after, ...also);
    const send = () => (verb === 'delete' ? this.api.request('DELETE', `/v1/sandboxes/${sandbox.id}`) : this.api.verb(sandbox.id, verb));
    if (['stop', 'reset', 'delete', 'purge'].includes(verb)) sandbox.endRun();
    const isRun = this.startsRun(sandbox);
    const answer = await this.call(verb, sandbox, send, { unsure, expected: sandbox.hasRow ? [] : [404] });
    if (answer) sandbox.is(answer.status === 404 ? 'none' : after);
    if (answer && after === 'running' && isRun) sandbox.endRun();
    return answer;
  }

  startsRun(sandbox) {
    return !sandbox.states.has('running') && !sandbox.states.has('paused');
  }

  /** Something that uses the sandbox, and so wakes it. */
  async use(name, sandbox, send, { unsure = () => {}, ...options } = {}) {
    const isRun = this.startsRun(sandbox);
    const answer = await this.call(name, sandbox, send, {
      ...options,
      unsure: () => {
        sandbox.mayBe('running', 'stopped', 'error');
        unsure();
      },
    });
    if (answer) sandbox.is('running');
    if (answer && isRun) sandbox.endRun();
    return answer;
  }

  // --- after the disk of the host was full ---

  /** What runs can write again; a disk that failed meanwhile says so, and takes writes after a stop. */
  async useDisksAgain() {
    for (const sandbox of this.mine.filter((each) => each.mayHaveFailedDisk)) {
      if (sandbox.state === 'paused') await this.verb(sandbox, 'resume', 'running');
      if (sandbox.state === 'running') await this.useDiskAgain(sandbox).catch((error) => this.world.fault(`${sandbox.id} cannot use its disk again: ${error.message}`));
      sandbox.mayHaveFailedDisk = false;
    }
  }

  async useDiskAgain(sandbox) {
    const path = `${PLACES[0]}/probe`;
    const bytes = Buffer.alloc(PROBE_BYTES, 'probe');
    // The daemon lets disks grow again in its next round.
    const answer = await until(async () => {
      const put = await this.api.tryPut(sandbox.id, path, bytes);
      if (put.status < 300 || put.json.error.code === 'disk_failed') return put;
      throw new Error(`${put.status} ${put.text}`);
    }, { what: 'its disk takes writes, or failed' });
    if (answer.status < 300) return;
    await until(async () => DISK_FAILED.test((await this.api.get(sandbox.id)).error_message), { what: 'it says that its disk failed' });
    this.world.counts['disk that failed'] = (this.world.counts['disk that failed'] ?? 0) + 1;
    await this.verb(sandbox, 'stop', 'stopped');
  }

  // --- one each ---

  async create(sandbox) {
    const hadFiles = sandbox.states.has('deleted');
    const hadNone = sandbox.states.has('none');
    const before = [...sandbox.states];
    const label = String(this.random.integer(0, 1e9));
    const json = { id: sandbox.id, labels: { n: label }, resources: { memory: '128Mi', disk: '64Mi' }, network: { mode: 'none' } };
    const answer = await this.call('create', sandbox, () => this.api.request('POST', '/v1/sandboxes', { json }), {
      expected: this.owner.limit ? [429] : [],
      unsure: () => sandbox.mayBe(...before, 'running'),
    });
    sandbox.labels.add(label);
    if (hadNone) sandbox.emptyFiles(!hadFiles);
    if (answer?.status === 429) {
      const certain = this.world.model.of(this.owner).filter((each) => each.states.size > 1 || ROWS.includes(each.state)).length;
      if (certain < this.owner.limit) this.world.fault(`${sandbox.id} is refused with ${certain} sandboxes, of ${this.owner.limit} allowed: ${answer.text}`);
    } else if (answer) {
      sandbox.is('running');
      sandbox.labels = new Set([label]);
      sandbox.processes = [];
      sandbox.endRun();
    }
  }

  async put(sandbox) {
    const path = `${this.random.pick(PLACES)}/f${this.random.integer(1, FILES_MAX / 3)}`;
    const bytes = this.random.bytes(this.random.pick([0, 1, 700, 9000, 70_000]));
    const digests = sandbox.files.get(path) ?? new Set([null]);
    sandbox.files.set(path, digests);
    const wanted = digest(bytes);
    const answer = await this.use('put', sandbox, () => this.api.tryPut(sandbox.id, path, bytes), { unsure: () => digests.add(wanted) });
    if (answer) sandbox.files.set(path, new Set([wanted]));
  }

  async removeFile(sandbox) {
    const path = this.random.pick([...sandbox.files.keys()]);
    const digests = sandbox.files.get(path);
    const answer = await this.use('rm', sandbox, () => this.api.files('DELETE', sandbox.id, path), { unsure: () => digests.add(null), expected: digests.has(null) ? [404] : [] });
    if (answer) sandbox.files.set(path, new Set([null]));
  }

  /** Reads a file and compares; what it is, it stays. */
  async get(sandbox, path = this.random.pick([...sandbox.files.keys()])) {
    const digests = sandbox.files.get(path);
    const answer = await this.use('get', sandbox, () => this.api.files('GET', sandbox.id, path), { expected: digests.has(null) ? [404] : [] });
    if (!answer) return;
    const found = answer.status === 404 ? null : digest(answer.body);
    if (!digests.has(found)) this.world.fault(`${path} of ${sandbox.id} is ${found}, ${answer.body.length} bytes; possible is ${[...digests]}`);
    // What a disk shows that failed may be undone by its check.
    if (!sandbox.mayHaveFailedDisk) sandbox.files.set(path, new Set([found]));
  }

  async exec(sandbox) {
    const code = this.random.integer(0, 99);
    const answer = await this.use('exec', sandbox, () => this.api.tryExec(sandbox.id, { command: `echo ${code}; exit ${code}`, timeout_ms: 30_000 }));
    const isRight = !answer || (answer.json.exit_code === code && answer.json.stdout === `${code}\n`);
    if (!isRight && !(answer.json.exit_code === 137 && this.world.isTroubled)) this.world.fault(`exec in ${sandbox.id}: ${answer.text}, wanted ${code}`);
  }

  async background(sandbox) {
    const isLong = this.random.next() < 0.5;
    const code = this.random.integer(0, 99);
    const command = isLong ? 'exec sleep 86400' : `echo ${code}; exit ${code}`;
    const answer = await this.use('process', sandbox, () => this.api.tryExec(sandbox.id, { command, background: true }));
    if (answer) sandbox.processes.push({ id: answer.json.process.id, pid: answer.json.process.pid, isLong, code, run: sandbox.run });
  }

  async patch(sandbox) {
    const label = String(this.random.integer(0, 1e9));
    const answer = await this.call('patch', sandbox, () => this.api.patch(sandbox.id, { labels: { n: label } }), { unsure: () => sandbox.labels.add(label) });
    if (answer) sandbox.labels = new Set([label]);
  }

  async reset(sandbox) {
    sandbox.emptyFiles(false);
    const after = sandbox.state === 'running' || sandbox.state === 'paused' ? 'running' : 'stopped';
    if (await this.verb(sandbox, 'reset', after, ['stopped', 'error'])) sandbox.emptyFiles(true);
  }

  async purge(sandbox) {
    sandbox.emptyFiles(false);
    if (!(await this.verb(sandbox, 'purge', 'none', ['stopped', 'deleted']))) return;
    this.world.model.forget(sandbox);
    this.mine = this.mine.filter((each) => each !== sandbox);
    this.world.purged.add(sandbox.id);
  }

  async foreign() {
    const other = this.random.pick([...this.world.model.sandboxes.values()].filter((sandbox) => sandbox.owner !== this.owner).concat(null));
    if (!other) return;
    const answer = await this.call('foreign get', null, () => this.api.request('GET', `/v1/sandboxes/${other.id}`), { expected: [404] });
    if (answer && answer.status !== 404) this.world.fault(`${this.owner.name} sees ${other.id} of ${other.owner.name}`);
  }

  /** One random operation. */
  async step() {
    const isNew = this.mine.length === 0 || (this.mine.length < this.most && this.random.next() < 0.2);
    if (isNew) this.mine.push(this.world.model.add(this.random.id(), this.owner));
    const sandbox = isNew ? this.mine.at(-1) : this.random.pick(this.mine);
    await this.operate(sandbox);
  }

  /** One that makes sense in the state that the sandbox has. */
  async operate(sandbox) {
    if (this.random.next() < 0.03) return this.foreign();
    const state = sandbox.state ?? 'unsure';
    const use = { put: 6, exec: 3, background: sandbox.processes.length < PROCESSES_MAX ? 2 : 0, get: sandbox.files.size > 0 ? 4 : 0, removeFile: sandbox.files.size > 0 ? 1 : 0 };
    const weights = {
      running: { ...use, stop: 2, pause: this.world.instance.hasCgroups ? 2 : 0, reset: 1, patch: 2, delete: 1, purge: 1 },
      stopped: { ...use, start: 3, reset: 1, patch: 1, delete: 1, purge: 1 },
      error: { ...use, start: 3, purge: 1 },
      paused: { resume: 4, stop: 1, patch: 1, purge: 1, delete: 1 },
      deleted: { create: 3, purge: 1 },
      none: { create: 1 },
      unsure: { purge: 1, look: 3 },
    }[state];
    const name = this.random.weighted(weights);
    switch (name) {
      case 'start': return this.verb(sandbox, 'start', 'running', ['error']);
      case 'resume': return this.verb(sandbox, 'resume', 'running');
      case 'pause': return this.verb(sandbox, 'pause', 'paused');
      case 'stop': return this.verb(sandbox, 'stop', 'stopped');
      case 'delete': return this.verb(sandbox, 'delete', 'deleted', ['stopped']);
      case 'look': return this.look(sandbox);
      default: return this[name](sandbox);
    }
  }

  /** Asks for the row, which says which of the possible states it has. */
  async look(sandbox) {
    const answer = await this.call('look', sandbox, () => this.api.request('GET', `/v1/sandboxes/${sandbox.id}`), { expected: [404] });
    if (answer) this.world.compareRow(sandbox, answer.status === 200 ? answer.json : null);
  }
}
