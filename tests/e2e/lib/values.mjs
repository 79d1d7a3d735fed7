// SPDX-License-Identifier: Apache-2.0
// Values and shapes that several files of tests need.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
export const MI = 1024 * 1024;
export const GI = 1024 * MI;

/** A fresh lower-case ULID. */
export function ulid() {
  let id = '';
  let time = Date.now();
  for (let i = 0; i < 10; i++) {
    id = ALPHABET[time % 32] + id;
    time = Math.floor(time / 32);
  }
  for (const byte of crypto.randomBytes(16)) id += ALPHABET[byte % 32];
  return id;
}

/** "256Mi", 268435456 -> 268435456 */
export function bytesOf(size) {
  if (typeof size === 'number') return size;
  const [, number, unit] = /^(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|Pi)?$/.exec(size) ?? assert.fail(`not a size: ${size}`);
  return Number(number) * ({ Ki: 1024, Mi: MI, Gi: GI, Ti: 1024 * GI }[unit] ?? 1);
}

/** A word for the shell. */
export const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

/** Permission bits, whether a document gives them as a number or as octal text. */
export const modeOf = (mode) => (typeof mode === 'number' ? mode : parseInt(mode, 8)) & 0o7777;

const isTime = (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) && !Number.isNaN(Date.parse(value));
const isTimeOrNull = (value) => value === null || isTime(value);
const isNumberOrNull = (value) => value === null || Number.isInteger(value);
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The number of a port, which may say more. */
const portOf = (port) => (isObject(port) ? port.port : port);

const isTermination = (value) => value === null || (isObject(value) && typeof value.reason === 'string');
const FIELDS = {
  id: (value) => /^[0-9a-z]{26}$/.test(value),
  name: (value) => value === null || /^[a-z][a-z0-9-]{0,39}$/.test(value),
  status: (value) => ['creating', 'running', 'paused', 'stopped', 'error'].includes(value),
  owner: (value) => isObject(value) && typeof value.organization === 'string' && typeof value.user === 'string' && (value.project === null || typeof value.project === 'string'),
  template: (value) => typeof value === 'string',
  driver: (value) => typeof value === 'string',
  resources: (value) => isObject(value) && typeof value.cpu === 'number' && bytesOf(value.memory) > 0 && bytesOf(value.disk) > 0 && Number.isInteger(value.pids),
  ports: (value) => Array.isArray(value) && value.every((port) => Number.isInteger(portOf(port))),
  labels: isObject,
  network: (value) => isObject(value) && ['none', 'allowlist', 'internet', 'learn'].includes(value.mode),
  idle_timeout_s: isNumberOrNull,
  lifetime_s: isNumberOrNull,
  private: (value) => typeof value === 'boolean',
  previews: (value) => isObject(value) && Object.values(value).every((url) => /^https?:\/\//.test(url)),
  created_at: isTime,
  started_at: isTimeOrNull,
  last_active_at: isTimeOrNull,
  expires_at: isTimeOrNull,
  termination: isTermination,
  last_termination: isTermination,
  error_message: (value) => value === null || typeof value === 'string',
  start: (value) => Array.isArray(value) && value.every((start) => typeof start.name === 'string' && typeof start.command === 'string' && start.cwd.startsWith('/') && start.env === undefined),
  upgradable: (value) => typeof value === 'boolean',
  job: (value) => value === null || /^[0-9a-z]{26}$/.test(value),
  security: (value) => ['strict', 'default', 'browser'].includes(value),
  ready: (value) => typeof value === 'boolean' || value === null,
  members: (value) => Array.isArray(value) && value.every((member) => typeof member.role === 'string' && typeof member.status === 'string'),
};

/** Exactly the promised fields, each of its type. Lists leave out the walls, and why it is awake. */
export function assertSandbox({ walls = null, awake_because: awake = null, ...sandbox }) {
  assert.ok(awake === null || typeof awake === 'string', `awake_because: ${awake}`);
  assert.deepEqual(Object.keys(sandbox).sort(), Object.keys(FIELDS).sort());
  if (walls !== null) for (const [name, how] of Object.entries(walls)) assert.ok(how === null || /^[a-z0-9_,]+$/.test(how), `${name}: ${how}`);
  for (const [name, isRight] of Object.entries(FIELDS)) {
    assert.ok(isRight(sandbox[name]), `${name} of a sandbox: ${JSON.stringify(sandbox[name])}`);
  }
  assert.deepEqual(Object.keys(sandbox.owner).filter((name) => name !== 'session').sort(), ['organization', 'project', 'user']);
  assert.deepEqual(Object.keys(sandbox.resources).sort(), ['cpu', 'disk', 'memory', 'pids']);
  assert.deepEqual(Object.keys(sandbox.previews).sort(), sandbox.ports.map((port) => String(portOf(port))).sort(), 'a preview for each port');
}
