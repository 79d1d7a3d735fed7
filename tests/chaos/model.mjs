// SPDX-License-Identifier: Apache-2.0
// What must be true. A call that was acknowledged leaves one possibility; one that was not, because its connection broke
// or a fault was under way, leaves what was before and what would be after. Looking resolves it: see observe().
import crypto from 'node:crypto';

export const digest = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');

/** Statuses of a row; besides, 'deleted' is a kept workspace without a row, and 'none' nothing at all. */
export const ROWS = ['running', 'paused', 'stopped', 'error'];

export class ModelSandbox {
  constructor(id, owner) {
    this.id = id;
    this.owner = owner;
    this.states = new Set(['none']);
    this.labels = new Set(); // what may be in labels.n
    this.files = new Map(); // path -> Set of digests, null for "is not there"
    this.processes = []; // { id, isLong, code, pid, run }
    this.isBeingLost = false;
    this.mayHaveFailedDisk = false; // the host's disk was full, and it may have a disk that takes no more writes
    this.run = 0; // counts its starts as far as we know: a process of an earlier one has ended
  }

  /** The one state it has, or null while there are several. */
  get state() {
    return this.states.size === 1 ? [...this.states][0] : null;
  }

  get hasRow() {
    return [...this.states].every((state) => ROWS.includes(state));
  }

  is(...states) {
    this.states = new Set(states);
    if (this.isBeingLost) this.#mayHaveStopped();
  }

  mayBe(...states) {
    for (const state of states) this.states.add(state);
    if (this.isBeingLost) this.#mayHaveStopped();
  }

  /** Its processes ended, with it or with a fault. */
  endRun() {
    this.run++;
  }

  /** The keeper or its agent was killed. Until that is over, what is seen to run may stop yet. */
  lose() {
    this.isBeingLost = true;
    this.#mayHaveStopped();
  }

  /** Before the next look, which tells what came of it. */
  endLoss() {
    if (this.isBeingLost) this.endRun();
    this.isBeingLost = false;
  }

  #mayHaveStopped() {
    if (this.states.has('running') || this.states.has('paused')) this.states.add('stopped');
  }

  /** Files below a path may be gone, or are. */
  emptyFiles(isSure) {
    for (const [path, digests] of this.files) {
      if (isSure) this.files.set(path, new Set([null]));
      else digests.add(null);
    }
  }

  /** What was seen; false if it could not be. */
  observe(state) {
    if (!this.states.has(state)) return false;
    this.is(state);
    return true;
  }
}

export class Model {
  constructor() {
    this.sandboxes = new Map();
    this.areBeingLost = false;
    this.isDiskFull = false;
  }

  add(id, owner) {
    const sandbox = new ModelSandbox(id, owner);
    sandbox.isBeingLost = this.areBeingLost;
    sandbox.mayHaveFailedDisk = this.isDiskFull;
    this.sandboxes.set(id, sandbox);
    return sandbox;
  }

  forget(sandbox) {
    this.sandboxes.delete(sandbox.id);
  }

  of(owner) {
    return [...this.sandboxes.values()].filter((sandbox) => sandbox.owner === owner);
  }

  /** The keeper was killed, and all that run with it. */
  loseAll() {
    this.areBeingLost = true;
    for (const sandbox of this.sandboxes.values()) sandbox.lose();
  }

  /** The disk of the host is full for a while. */
  fillDisk() {
    this.isDiskFull = true;
    for (const sandbox of this.sandboxes.values()) sandbox.mayHaveFailedDisk = true;
  }

  endLosses() {
    this.areBeingLost = false;
    this.isDiskFull = false;
    for (const sandbox of this.sandboxes.values()) sandbox.endLoss();
  }
}
