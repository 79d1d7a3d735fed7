// SPDX-License-Identifier: Apache-2.0
// A database that is missing, empty, older or damaged beside workspaces: no file is lost, the daemon refuses to start and
// says what to do, and a backup brings everything back.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { Instance } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { until } from './lib/wait.mjs';

const instance = new Instance('state');
const { api, dataDir } = instance;
const { sandlot, ok } = commandLine(instance);
const FILE = '/workspace/canary';
const state = path.join(dataDir, 'state');
const database = path.join(state, 'sandlot.db');
const copies = path.join(instance.home, 'copies');
const offline = (...args) => ok(['restore', '--data-dir', dataDir, ...args], { env: {} });
const stored = () => proc.stored(path.join(dataDir, 'workspaces'));
const backups = () => proc.entries(path.join(state, 'backups')).filter((name) => name.endsWith('.db'));
const databaseFiles = () => proc.entries(state).filter((name) => name.startsWith('sandlot.db'));

after(() => instance.destroy());
process.on('exit', () => instance.destroy());

/** Files of the database, as they are, into a directory of the test; and back. */
function save(name) {
  fs.rmSync(path.join(copies, name), { recursive: true, force: true });
  fs.mkdirSync(path.join(copies, name), { recursive: true });
  for (const file of databaseFiles()) fs.copyFileSync(path.join(state, file), path.join(copies, name, file));
}

function put(name) {
  const { uid, gid } = fs.statSync(state);
  for (const file of databaseFiles()) fs.rmSync(path.join(state, file));
  for (const file of name ? proc.entries(path.join(copies, name)) : []) {
    fs.copyFileSync(path.join(copies, name, file), path.join(state, file));
    fs.chownSync(path.join(state, file), uid, gid);
  }
}

/** Whose the files of a sandbox are: the mark of its image, or the owner of its workspace. */
function ownerOf(id) {
  const dir = path.join(dataDir, 'workspaces');
  const image = path.join(dir, `${id}.img`);
  if (fs.existsSync(image)) return fs.statSync(image).gid;
  const home = path.join(dir, `${id}.home`, 'workspace');
  return fs.statSync(fs.existsSync(home) ? home : path.join(dir, id)).uid;
}

const made = {}; // id -> what its file holds
async function create(text) {
  const { id } = await api.create();
  await api.put(id, FILE, text);
  made[id] = text;
  return id;
}

/** All that were made are listed, and have their files. */
async function allAreThere(ids = Object.keys(made)) {
  assert.deepEqual((await api.all()).map((one) => one.id).sort(), [...ids].sort());
  for (const id of ids) assert.equal((await api.read(id, FILE)).toString(), made[id]);
}

/** A backup of now: the daemon writes one when it starts and there is none of this day. */
async function restartWithBackup() {
  await instance.terminate();
  fs.rmSync(path.join(state, 'backups'), { recursive: true, force: true });
  await instance.start();
  await until(() => backups().length === 1, { what: 'a backup is written' });
}

/** The daemon refuses, naming the file and both ways out; nothing on the disk has changed by that. */
async function refused(what, other) {
  const before = stored();
  const { code, signal, said } = await instance.refusal([]);
  assert.equal(signal, null);
  assert.ok(code > 0, `it started: ${said}`);
  assert.match(said, what);
  assert.ok(said.includes(database), said);
  assert.ok(said.includes(`sandlot restore --data-dir ${dataDir}`), said);
  assert.ok(said.includes(`--${other}`), said);
  assert.deepEqual(stored(), before);
  assert.equal(stored().length >= Object.keys(made).length, true);
}

let running, stopped;

before(async () => {
  await instance.start();
  running = await create('of one that runs');
  stopped = await create('of one that is stopped');
  await api.verb(stopped, 'stop');
  await restartWithBackup();
});

/** Half of its pages are overwritten: some of them are in use. */
function damage() {
  const fd = fs.openSync(database, 'r+');
  const pages = Math.floor(fs.fstatSync(fd).size / 4096);
  const garbage = Buffer.alloc(Math.ceil(pages / 2) * 4096, 0xa5);
  fs.writeSync(fd, garbage, 0, garbage.length, Math.floor(pages / 4) * 4096);
  fs.closeSync(fd);
}

const FAULTS = [
  { name: 'missing', spoil: () => put(null), what: /missing or empty/, other: 'accept' },
  { name: 'empty', spoil: () => { put(null); fs.writeFileSync(database, ''); }, what: /missing or empty/, other: 'accept' },
  { name: 'damaged', spoil: damage, what: /is damaged/, other: 'empty' },
  { name: 'no database at all', spoil: () => { put(null); fs.writeFileSync(database, 'this is not a database '.repeat(500)); }, what: /is damaged/, other: 'empty' },
];

for (const { name, spoil, what, other } of FAULTS) {
  test(`a database that is ${name} costs no file, and a backup brings everything back`, async () => {
    const keeper = instance.keeper.pid;
    await instance.terminate();
    spoil();
    await refused(what, other);
    await refused(what, other);
    assert.match(await offline(), /^restored \d+-\d{8}T\d{6}Z\.db$/m);
    await instance.start();
    assert.equal(instance.keeper.pid, keeper);
    await allAreThere();
    assert.deepEqual((await api.request('GET', '/v1/orphans')).json, { orphans: [], next_cursor: null });
    assert.equal(fs.existsSync(path.join(state, 'accept')), false);
    assert.ok(proc.entries(state).some((entry) => entry.startsWith('replaced-')));
    await instance.crash();
    await instance.start(); // and from now on it is the one
    await allAreThere();
  });
}

test('an older database is known, and what it does not know is kept, adopted or purged', async () => {
  await instance.terminate();
  save('older');
  await instance.start();
  const adopted = await create('to be adopted');
  const purged = await create('to be purged');
  const { json: old } = await api.tryExec(adopted, { command: 'echo of before', background: true });
  await instance.crash();
  put('older');
  await refused(/older than the workspaces/, 'accept');
  await offline('--accept');
  await instance.start();
  await allAreThere([running, stopped]);
  const { json } = await api.request('GET', '/v1/orphans');
  assert.deepEqual(json.orphans.map((one) => one.id).sort(), [adopted, purged].sort());
  const ranges = json.orphans.map((one) => one.location);
  for (const range of ranges) assert.match(range, /^uid range \d+$/);
  assert.equal(new Set(ranges).size, 2);
  assert.match(await ok(['ls', '--orphans']), new RegExp(adopted));
  assert.match(await ok(['doctor']).catch((error) => error.message), /orphans: 2, the first is/);

  // Neither its id nor its uid range is given to anybody.
  assertError(await api.request('POST', '/v1/sandboxes', { json: { id: adopted } }), 409, /is taken/);
  const others = await Promise.all([0, 1, 2].map(() => api.create()));
  const owners = [adopted, purged, ...others.map(({ id }) => id)].map(ownerOf);
  assert.equal(new Set(owners).size, owners.length, `${owners}`);
  for (const { id } of others) await api.purge(id);

  assert.equal((await ok(['adopt', '--owner', 'default/admin', adopted.slice(0, 25)])).trim(), adopted);
  assert.equal((await api.get(adopted)).status, 'stopped');
  assert.equal((await api.read(adopted, FILE)).toString(), 'to be adopted');
  const { process: next } = (await api.tryExec(adopted, { command: 'true', background: true })).json;
  assert.ok(Number(next.id.slice(1)) > Number(old.process.id.slice(1)), `${next.id} after ${old.process.id}, whose output is kept`);
  assertError(await api.request('POST', `/v1/orphans/${adopted}/adopt`, { json: {} }), 404, /there is no orphan/);

  // It takes a command to remove one.
  await instance.crash();
  await instance.start();
  assert.ok(stored().some((name) => name.includes(purged)));
  await ok(['purge', '--orphan', purged]);
  assert.ok(!stored().some((name) => name.includes(purged)));
  assert.deepEqual((await api.request('GET', '/v1/orphans')).json.orphans, []);
  delete made[purged];
  await allAreThere();
  const audit = (await api.request('GET', '/v1/audit', { query: { limit: 1000 } })).json.entries.map((one) => one.action);
  for (const action of ['state.accept', 'orphan.adopt', 'orphan.purge']) assert.ok(audit.includes(action), action);
});

test('without a database, once that is accepted, all that exists is an orphan and can be adopted', async () => {
  await instance.terminate();
  put(null);
  await refused(/missing or empty/, 'accept');
  await offline('--accept');
  await instance.start();
  const { json } = await api.request('GET', '/v1/orphans');
  assert.deepEqual(json.orphans.map((one) => one.id).sort(), Object.keys(made).sort());
  for (const id of Object.keys(made)) await ok(['adopt', id]);
  await allAreThere();
});

test('a data directory from before generations and marks opens with all it has, and gets its generation', async () => {
  await instance.terminate();
  for (const one of ['workspace_comes', 'workspace_goes', 'sandbox_comes', 'sandbox_goes']) sql(instance, `DROP TRIGGER generation_${one}`);
  sql(instance, 'DROP TABLE dependency_files; DROP TABLE launches; DROP TABLE pooled; DROP TABLE projects; DROP TABLE project_files; DROP INDEX sandboxes_tuple; ALTER TABLE sandboxes DROP COLUMN session; ALTER TABLE quotas DROP COLUMN projects_bytes; ALTER TABLE quotas DROP COLUMN danger; ALTER TABLE preview_links DROP COLUMN frame_origin; '
    + 'CREATE UNIQUE INDEX sandboxes_tuple ON sandboxes(organization, user, project) WHERE project IS NOT NULL; DROP TABLE contexts; DROP TABLE logins; DROP TABLE artifacts; DROP TABLE functions; DROP TABLE executions; DROP INDEX sandboxes_parent; ALTER TABLE sandboxes DROP COLUMN parent_id; ALTER TABLE sandboxes DROP COLUMN role; ALTER TABLE sandboxes DROP COLUMN members; ALTER TABLE sandboxes DROP COLUMN dependencies; DROP INDEX sandboxes_job; ALTER TABLE sandboxes DROP COLUMN job; DROP TABLE layer_files; ALTER TABLE quotas DROP COLUMN images_bytes; '
    + 'DROP TABLE snapshots; DROP TABLE build_cache; DROP TABLE builders; DROP TABLE templates; DROP TABLE layers; ALTER TABLE sandboxes DROP COLUMN image; DROP TABLE jobs; DROP TABLE reached; DROP TABLE generation; DROP TABLE clock; DROP INDEX sandboxes_name; ALTER TABLE sandboxes DROP COLUMN name; '
    + 'CREATE TABLE older (id TEXT PRIMARY KEY, organization TEXT NOT NULL, user TEXT NOT NULL, slot INTEGER NOT NULL UNIQUE, created_at INTEGER NOT NULL) WITHOUT ROWID; '
    + 'INSERT INTO older SELECT id, organization, user, row_number() OVER (), created_at FROM workspaces; DROP TABLE workspaces; '
    + 'ALTER TABLE older RENAME TO workspaces; CREATE INDEX workspaces_owner ON workspaces(organization, user); PRAGMA user_version = 11');
  const stamp = path.join(dataDir, 'workspaces/.generation');
  for (const rest of [stamp, path.join(state, 'unfinished'), path.join(state, 'backups')]) fs.rmSync(rest, { recursive: true });
  await instance.start();
  await allAreThere();
  assert.deepEqual((await api.request('GET', '/v1/orphans')).json.orphans, []);
  assert.match(fs.readFileSync(stamp, 'utf8'), /^generation \d+ durable \d+ boot /);
  assert.ok(backups().some((name) => name.startsWith('000000000000-')), 'a backup from before the migration');
});

test('a sandbox whose files are not there does not start with an empty workspace', async () => {
  const files = path.join(dataDir, 'workspaces'), aside = path.join(dataDir, 'aside');
  await api.life(stopped, 'stop');
  fs.mkdirSync(aside);
  const move = (from, to) => { for (const name of proc.entries(from).filter((each) => each.startsWith(stopped))) fs.renameSync(path.join(from, name), path.join(to, name)); };
  move(files, aside);
  for (const call of [() => api.verb(stopped, 'start'), () => api.tryExec(stopped, 'true')]) {
    const error = assertError(await call(), 409, /the workspace of sandbox \S+ is not there/);
    assert.equal(error.code, 'workspace_missing');
    assert.match(error.remediation, /mounted/);
  }
  assert.equal((await api.get(stopped)).status, 'error');
  move(aside, files);
  fs.rmSync(aside, { recursive: true });
  await allAreThere();
});

test('backups are listed by the daemon and offline, and restore refuses while a daemon runs', async () => {
  const { json } = await api.request('GET', '/v1/backups');
  assert.equal(json.failure, null);
  assert.deepEqual(json.backups.map((one) => one.name), backups());
  assert.deepEqual(JSON.parse(await offline('--list', '-o', 'json')).backups.map((one) => one.name), backups());
  const { code, stderr } = await sandlot(['restore', '--data-dir', dataDir], { env: {} });
  assert.equal(code, 4);
  assert.match(stderr, /a daemon runs on the data directory/);
  assert.match((await sandlot(['doctor'])).stdout, /backups: \d/);
  await allAreThere();
});

test('restore follows no link that the owner of a data directory has left there', async () => {
  await instance.terminate();
  const run = path.join(dataDir, 'run'), elsewhere = fs.mkdtempSync(path.join(instance.home, 'elsewhere-'));
  fs.renameSync(run, `${run}.aside`);
  fs.symlinkSync(elsewhere, run);
  assert.notEqual((await sandlot(['restore', '--data-dir', dataDir, '--accept'], { env: {} })).code, 0);
  assert.deepEqual(fs.readdirSync(elsewhere), []);
  fs.rmSync(run);
  fs.renameSync(`${run}.aside`, run);
  await instance.start();
});

test('a backup without room fails softly, and doctor says so', async () => {
  await instance.terminate();
  fs.rmSync(path.join(state, 'backups'), { recursive: true });
  await instance.start(['--disk-reserve', '1024Ti'], { isReady: false });
  await until(async () => (await api.request('GET', '/v1/backups')).json.failure, { what: 'the backup fails' });
  assert.match(instance.log(), /no backup of the state was written to \S+: too little room/);
  assert.match((await sandlot(['doctor'])).stdout, /backups: 0, and the last failed: too little room/);
  assert.deepEqual(proc.entries(path.join(state, 'backups')), []);
  await instance.terminate();
  await instance.start();
  await allAreThere();
});

test('in the end nothing is left', async () => {
  for (const id of Object.keys(made)) await api.purge(id);
  assert.deepEqual(stored(), []);
  assert.deepEqual(proc.entries(path.join(state, 'unfinished')).filter((name) => !name.startsWith('.')), []);
  await instance.shutdown();
  await until(() => instance.survivors().length === 0, { what: 'all is gone' });
  assert.deepEqual(instance.complaints(), []);
});
