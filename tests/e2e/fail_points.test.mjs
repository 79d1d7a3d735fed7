// SPDX-License-Identifier: Apache-2.0
// Every fail point (src/base/fail_point.h): an operation is cut in two there by the death of the process that does
// it. Afterwards what was acknowledged is there, what was not is there as a whole or not at all, nothing is left of
// what is not, and the operation works. Runs on the build that `make` keeps beside the ordinary one for this.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { sql } from './lib/database.mjs';
import { calledPoints, FAIL_BUILD_DIR, FailPoints } from './lib/fail_points.mjs';
import { busybox, image, layoutArchive, registryServer } from './lib/images.mjs';
import { Instance } from './lib/instance.mjs';
import { Processes } from './lib/processes.mjs';
import * as proc from './lib/proc.mjs';
import { httpServer } from './lib/outside.mjs';
import { assertNothingRemains, loopFiles } from './lib/remains.mjs';
import { bringRedis } from './lib/services.mjs';
import { tar } from './lib/tar.mjs';
import { MI, ulid } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const AGENT = '/workspace/agent_workspace';
// Started by root in every run: an ordinary user's daemon has neither disks of its own nor, without cgroups, pauses.
const images = {};
const registry = await registryServer(images);
after(() => { registry.server.close(); registry.server.closeAllConnections(); });
const instance = new Instance('fail-points', { build: FAIL_BUILD_DIR, args: ['--disk-reserve', '32Mi', '--pool-reserve', '0', '--registry-plain', registry.host], user: null });
instance.mountDisk(1024 * MI); // on which disks are images, so that the points of images are passed
const points = new FailPoints(instance);
after(() => instance.destroy());
process.on('exit', () => instance.destroy());
await instance.start();
const { api } = instance;
const processes = new Processes(api);
const reached = new Set(); // points that a process died at
const failed = new Set(); // points that were made to fail

/** One that no operation touches: what a fault does to others. */
const witness = await api.create({ labels: { role: 'witness' } });
await api.put(witness.id, `${AGENT}/kept`, 'of the witness');

// --- what the operations have in common ---

/** A sandbox of the operation's own, in a state: null (there is none), deleted, running, stopped or paused. */
async function prepare(state, body = {}) {
  const id = ulid();
  if (state === null) return id;
  await api.create({ id, ...body });
  await api.put(id, `${AGENT}/kept`, id);
  if (state === 'deleted') await processes.wait(id, (await processes.start(id, 'echo kept with the workspace')).id);
  if (state === 'deleted') await api.remove(id);
  else if (state !== 'running') await api.life(id, state === 'paused' ? 'pause' : 'stop');
  return id;
}

/** Its status, `deleted` if only the workspace is there, null if nothing is. */
async function stateOf(id) {
  const answer = await api.request('GET', `/v1/sandboxes/${id}`);
  if (answer.status === 200) return answer.json.status;
  assert.equal(answer.status, 404, answer.text);
  return sql(instance, `SELECT id FROM workspaces WHERE id = '${id}'`) === '' ? null : 'deleted';
}

async function assertKept(id) {
  if ((await api.get(id)).status === 'paused') await api.life(id, 'resume');
  assert.equal((await api.read(id, `${AGENT}/kept`)).toString(), id);
}

const ok = async (promise) => {
  const answer = await promise;
  assert.ok([200, 201, 204].includes(answer.status), `${answer.status} ${answer.text}`);
  return answer;
};
/** A disk that was left frozen would take none. */
async function assertWrites(id) {
  if ((await api.get(id)).status === 'paused') await api.life(id, 'resume');
  await api.put(id, `${AGENT}/written`, id);
  await api.out(id, 'sync');
}
const snapshotsOf = async (id) => (await api.request('GET', '/v1/snapshots', { query: { sandbox: id } })).json.snapshots;
async function dropSnapshots(id) {
  for (const one of await snapshotsOf(id)) await ok(api.request('DELETE', `/v1/snapshots/${one.id}`));
}
async function assertCopy(snapshot, id) {
  const copy = await api.create({ snapshot });
  assert.equal((await api.read(copy.id, `${AGENT}/kept`)).toString(), id);
  await api.purge(copy.id);
}
async function purgeForks(id) {
  for (const one of await api.all()) {
    if (one.id !== id && one.id !== witness.id) await api.purge(one.id);
  }
}
const bringTemplate = (id) => ok(api.request('PUT', '/v1/templates/pruned/archive', { body: layoutArchive(image([busybox(), [{ name: 'mark', data: id }]])), headers: { 'content-type': 'application/x-tar' } }));
const dropTemplate = () => ok(api.request('DELETE', '/v1/templates/pruned'));
const prune = () => api.request('POST', '/v1/templates/prune', { json: {} });
const put = (id) => api.tryPut(id, `${AGENT}/up/file`, Buffer.alloc(300_000, id));
const change = (id) => api.patch(id, { labels: { changed: id }, resources: { disk: '128Mi' } });
const background = (id) => processes.tryStart(id, `echo started; echo ${id}`);

// Templates of an operation's own: of a registry, of an archive, of a recipe, of a snapshot.
const mark = (id) => [busybox(), [{ name: 'mark', data: id }]];
const named = (id) => `t-${id}`;
const ask = (id, source) => ok(api.request('POST', '/v1/templates', { json: { name: named(id), ...source } }).then((answer) => ({ ...answer, status: answer.status === 202 ? 200 : answer.status })));
const settled = (id) => until(async () => {
  const { status, json } = await api.request('GET', `/v1/templates/${named(id)}`);
  return status === 404 ? { status: null } : ['ready', 'error'].includes(json.status) && json;
}, { what: `${named(id)} is settled`, timeout_ms: 60_000 });
/** The same for the one who asked, whom the death of the daemon cuts off. */
async function settledOrCut(id) {
  const { error } = await until(async () => {
    const { status, json, error } = await api.request('GET', `/v1/templates/${named(id)}`).catch((thrown) => ({ error: thrown }));
    return error ? { error } : status === 404 ? {} : ['ready', 'error'].includes(json.status) && {};
  }, { what: `${named(id)} is settled`, timeout_ms: 60_000 });
  if (error) throw error;
}
const dropNamed = async (...names) => {
  for (const name of names) assert.ok([204, 404].includes((await api.request('DELETE', `/v1/templates/${name}`)).status));
};
/** Whatever was cut: a template that is ready is whole, and one that is not says why or is not there. */
async function assertWhole(id, isAcknowledged, answer, wanted = id) {
  const { status, error } = await settled(id);
  if (status === 'error') assert.ok(error, 'it says why');
  if (status !== 'ready') return;
  const copy = await api.create({ template: named(id) });
  assert.equal(await api.out(copy.id, 'cat /mark'), wanted);
  await api.purge(copy.id);
}
const inLayers = () => fs.readdirSync(path.join(instance.dataDir, 'layers')).filter((name) => !name.startsWith('.'));
const inBlobs = () => proc.entries(path.join(instance.dataDir, 'state/blobs'));
/** Makes it, uses it, and removes it with all that it brought: then nothing of what was cut short is left either. */
async function makeAndForget(id, make, others = []) {
  await dropNamed(named(id));
  await make();
  assert.equal((await settled(id)).status, 'ready');
  await assertWhole(id, true);
  await dropNamed(named(id), ...others);
  await ok(api.request('DELETE', '/v1/build-cache'));
  await ok(prune());
  assert.deepEqual(inLayers(), []);
  await until(() => inBlobs().length === 0, { what: `no blob is left: ${inBlobs()}` });
}
const fromRegistry = (id) => ask(id, { image: `${registry.host}/${id}:v1` });
const bringBase = () => ok(api.request('PUT', '/v1/templates/cut-base/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } }));
const fromRecipe = (id) => ask(id, { recipe: { from: 'cut-base', run: [`printf ${id} > /mark`] } });
const exported = () => api.request('GET', '/v1/templates/pruned/archive', { binary: true });
async function fromSnapshot(id) {
  const [{ id: snapshot }] = await snapshotsOf(id);
  return ask(id, { snapshot });
}

const putKept = (id) => api.request('PUT', `/v1/projects/p-${id}/files`, { query: { path: 'kept.txt' }, body: id });
const dropProject = (id) => api.request('DELETE', `/v1/projects/p-${id}`);
const projectFiles = async (id) => (await ok(api.request('GET', `/v1/projects/p-${id}/files`))).json.files.map((one) => one.path);
async function makeProject(id) {
  await ok(api.request('POST', '/v1/projects', { json: { name: `p-${id}` } }));
  await ok(putKept(id));
}
function uploadForm(id) {
  const parts = [['a.txt', 'a'], ['b/c.txt', id]].map(([name, text]) => `--x\r\nContent-Disposition: form-data; name="f"; filename="${name}"\r\n\r\n${text}\r\n`);
  return api.request('POST', `/v1/projects/p-${id}/files`, { body: `${parts.join('')}--x--\r\n`, headers: { 'content-type': 'multipart/form-data; boundary=x' } });
}
/** Rows and disk are equal: nothing is to be repaired, and every file can be read. */
async function assertProject(id) {
  const { blobs_removed: blobs, links_made: links, links_removed: strays, missing } = (await ok(api.request('POST', '/v1/projects/scrub'))).json;
  assert.deepEqual([blobs, links, strays, missing], [0, 0, 0, 0]);
  for (const file of await projectFiles(id)) await ok(api.request('GET', `/v1/projects/p-${id}/files/${encodeURIComponent(file)}`));
}

/**
 * before, after: the state; act: the call; again: the same as somebody would do it now, which must work; check: what
 * else must be true, given whether the call was acknowledged. failed: the state after an answer that says that it failed.
 */
const OPERATIONS = {
  create: { before: null, after: 'running', act: (id) => api.request('POST', '/v1/sandboxes', { json: { id, start: [{ name: 'app', command: 'exec sleep 3600' }] } }), again: (id) => ok(api.ensure({ id })) },
  // It is there from the answer on, and runs when its image is there, whoever died meanwhile.
  'create that does not wait': {
    before: null, after: ['creating', 'running'],
    prepare: (id) => { images[`${id}:v1`] = image([busybox(), [{ name: 'v', data: id }]]); },
    act: (id) => api.request('POST', '/v1/sandboxes', { json: { id, template: `${registry.host}/${id}:v1`, wait: false } }),
    again: async (id) => {
      await ok(api.ensure({ id, template: `${registry.host}/${id}:v1` }));
      assert.equal(await api.out(id, 'cat /v'), id);
    },
  },
  // Only a create that finds one built ahead that fits takes it over: those before it, which are alike, see to that.
  'create that takes over one built ahead': {
    before: null, after: 'running',
    act: async (id) => {
      for (let attempt = 1; ; attempt++) {
        await until(() => proc.entries(path.join(instance.dataDir, 'spares')).length > 0, { what: 'there is a spare disk' });
        const answer = await OPERATIONS.create.act(id);
        if (answer.status >= 300 || points.actedPid('build.ahead_handed_over') || attempt === 30) return answer;
        await api.purge(id);
      }
    },
    again: (id) => ok(api.ensure({ id })),
  },
  'create with a key': {
    before: null, after: 'running',
    act: (id) => api.request('POST', '/v1/sandboxes', { json: { id }, headers: { 'idempotency-key': id } }),
    again: async (id) => assert.equal((await ok(OPERATIONS['create with a key'].act(id))).json.id, id),
  },
  'create on a kept workspace': { before: 'deleted', after: 'running', act: (id) => api.request('POST', '/v1/sandboxes', { json: { id } }), again: async (id) => { await ok(api.ensure({ id })); await assertKept(id); } },
  start: { before: 'stopped', after: 'running', failed: 'error', act: (id) => api.verb(id, 'start'), again: async (id) => { await ok(api.verb(id, 'start')); await assertKept(id); } },
  'start within a quota': {
    before: 'stopped', after: 'running', failed: 'error',
    prepare: () => ok(api.request('PUT', '/v1/quotas/default/admin', { json: { running: 2 } })),
    act: (id) => api.verb(id, 'start'),
    again: async (id) => { await ok(api.verb(id, 'start')); await assertKept(id); await ok(api.request('DELETE', '/v1/quotas/default/admin')); },
  },
  // Its disk has left its place by then, and is mounted anew.
  'start after long': {
    before: 'stopped', after: 'running', failed: 'error',
    prepare: (id) => until(() => !loopFiles(instance.dataDir).includes(`workspaces/${id}.img`), { what: 'its disk has left' }),
    act: (id) => api.verb(id, 'start'), again: async (id) => { await ok(api.verb(id, 'start')); await assertKept(id); },
  },
  stop: { before: 'running', after: 'stopped', act: (id) => api.verb(id, 'stop'), again: async (id) => { await assertKept(id); await ok(api.verb(id, 'stop')); } },
  pause: { before: 'running', after: 'paused', act: (id) => api.verb(id, 'pause'), again: async (id) => { await assertKept(id); await ok(api.verb(id, 'pause')); await assertKept(id); } },
  resume: { before: 'paused', after: 'running', act: (id) => api.verb(id, 'resume'), again: assertKept },
  // Its files are emptied or not, but a reset that was cut short claims to run only if it was begun in vain.
  reset: { before: 'running', after: 'running', failed: 'stopped', also: 'stopped', act: (id) => api.verb(id, 'reset'), again: (id) => ok(api.verb(id, 'reset')) },
  'reset of a stopped one': { before: 'stopped', after: 'stopped', prepare: (id) => OPERATIONS['start after long'].prepare(id), act: (id) => api.verb(id, 'reset'), again: (id) => ok(api.verb(id, 'reset')) },
  delete: { before: 'running', after: 'deleted', also: 'stopped', act: (id) => api.request('DELETE', `/v1/sandboxes/${id}`), again: async (id) => { await ok(api.ensure({ id })); await assertKept(id); await api.remove(id); } },
  // Once it has begun to take files away, a purge is carried through; what is still there before that is whole.
  purge: { before: 'running', after: null, also: ['stopped', 'deleted'], act: (id) => api.verb(id, 'purge'), check: assertKept, again: async (id) => { if (await stateOf(id)) await api.purge(id); } },
  // A discarded disk is used again only while the pool lacks one: others are made and purged until that is so.
  'purge of a disk that is used again': {
    before: 'running', after: null,
    act: async (id) => {
      const answer = await api.verb(id, 'purge');
      await until(async () => {
        if (points.actedPid('disk.refurnished')) return true;
        const others = await Promise.all(Array.from({ length: 4 }, () => api.create()));
        await Promise.all(others.map((other) => api.purge(other.id)));
        return false;
      }, { every: 100, what: 'a disk is used again' });
      return answer;
    },
    again: async (id) => assert.equal(await stateOf(id), null),
  },
  'purge of a kept workspace': {
    before: 'deleted', after: null,
    prepare: (id) => until(() => !loopFiles(instance.dataDir).includes(`workspaces/${id}.img`), { what: 'its disk has left' }),
    act: (id) => api.verb(id, 'purge'), again: async (id) => { if (await stateOf(id)) await api.purge(id); },
  },
  // What is kept of it is whole, and the sandbox goes on: its disk is not left frozen.
  snapshot: {
    before: 'running', after: 'running', act: (id) => api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} }),
    check: async (id, isAcknowledged) => {
      await assertWrites(id);
      const list = await snapshotsOf(id);
      if (isAcknowledged) assert.equal(list.length, 1);
      for (const one of list) await assertCopy(one.id, id);
    },
    again: async (id) => {
      const { json } = await ok(OPERATIONS.snapshot.act(id));
      await assertCopy(json.id, id);
      await dropSnapshots(id);
    },
  },
  'removal of a snapshot': {
    before: 'running', after: 'running', prepare: (id) => ok(OPERATIONS.snapshot.act(id)),
    act: async (id) => api.request('DELETE', `/v1/snapshots/${(await snapshotsOf(id))[0].id}`),
    check: async (id) => { for (const one of await snapshotsOf(id)) await assertCopy(one.id, id); },
    again: dropSnapshots,
  },
  // It has the files of before or those of the snapshot, never half of either.
  restore: {
    before: 'running', after: 'running', also: 'stopped', prepare: (id) => ok(OPERATIONS.snapshot.act(id)),
    act: async (id) => {
      await api.put(id, `${AGENT}/newer`, 'than the snapshot');
      return api.request('POST', `/v1/sandboxes/${id}/restore`, { json: { snapshot: (await snapshotsOf(id))[0].id } });
    },
    check: async (id, isAcknowledged) => {
      await assertKept(id);
      if (isAcknowledged) assert.equal(await api.exists(id, `${AGENT}/newer`), false);
    },
    again: async (id) => {
      await ok(OPERATIONS.restore.act(id));
      assert.equal(await api.exists(id, `${AGENT}/newer`), false);
      await assertKept(id);
      await dropSnapshots(id);
    },
  },
  // A layer that is being removed is used by nothing, and is removed or made anew, never half.
  prune: {
    before: 'running', after: 'running',
    // What other operations left unused goes first, so that what is counted is this template's.
    prepare: async (id) => { await ok(prune()); await bringTemplate(id); await dropTemplate(); },
    act: prune,
    check: () => until(() => sql(instance, 'SELECT count(*) FROM layer_files WHERE gone').trim() === '0', { what: 'the removal is carried through' }),
    again: async (id) => {
      await bringTemplate(id);
      const copy = await api.create({ template: 'pruned' });
      assert.equal((await api.exec(copy.id, { command: 'cat /mark' })).stdout, id);
      await api.purge(copy.id);
      await dropTemplate();
      assert.equal((await ok(prune())).json.layers, 2);
      assert.deepEqual(fs.readdirSync(path.join(instance.dataDir, 'layers')).filter((name) => !name.startsWith('.')), []);
    },
  },
  // The job goes on with the next daemon; what was fetched and unpacked by then is used, or goes.
  'pull of an image': {
    before: null, after: null,
    prepare: (id) => { images[`${id}:v1`] = image(mark(id)); },
    act: async (id) => { const answer = await fromRegistry(id); await settledOrCut(id); return answer; },
    check: assertWhole,
    again: (id) => makeAndForget(id, () => fromRegistry(id)),
  },
  'unpacking of an archive': {
    before: null, after: null,
    act: (id) => api.request('PUT', `/v1/templates/${named(id)}/archive`, { body: layoutArchive(image(mark(id))), headers: { 'content-type': 'application/x-tar' } }),
    check: assertWhole,
    again: (id) => makeAndForget(id, () => ok(OPERATIONS['unpacking of an archive'].act(id))),
  },
  build: {
    before: null, after: null, prepare: bringBase,
    act: async (id) => { const answer = await fromRecipe(id); await settledOrCut(id); return answer; },
    check: assertWhole,
    again: (id) => makeAndForget(id, () => fromRecipe(id), ['cut-base']),
  },
  'template of a snapshot': {
    before: null, after: null,
    prepare: async (id) => {
      await bringBase();
      await api.create({ id, template: 'cut-base' });
      await api.out(id, { command: `printf ${id} > /mark`, user: 'root' });
      await ok(OPERATIONS.snapshot.act(id));
      await api.purge(id);
    },
    act: async (id) => { const answer = await fromSnapshot(id); await settledOrCut(id); return answer; },
    check: assertWhole,
    again: async (id) => {
      const [{ id: snapshot }] = await snapshotsOf(id);
      await dropNamed(named(id));
      await ask(id, { snapshot });
      await settled(id);
      await ok(api.request('DELETE', `/v1/snapshots/${snapshot}`));
      await assertWhole(id, true);
      await dropNamed(named(id), 'cut-base');
      await ok(prune());
      assert.deepEqual(inLayers(), []);
      await until(() => inBlobs().length === 0, { what: 'no blob is left' });
    },
  },
  // What was sent for a build is a layer or nothing; a builder that it was unpacked in is gone.
  'files of a build': {
    before: null, after: null,
    act: (id) => api.request('PUT', '/v1/templates/cut-files/files', { body: tar([{ name: 'mark', data: id }]), headers: { 'content-type': 'application/x-tar' } }),
    again: async (id) => {
      const { json } = await ok(OPERATIONS['files of a build'].act(id));
      await bringBase();
      await makeAndForget(id, () => ask(id, { dockerfile: 'FROM cut-base\nCOPY mark /mark\n', files_digest: json.files_digest }), ['cut-base']);
      assert.equal(sql(instance, 'SELECT count(*) FROM builders').trim(), '0');
    },
  },
  // Whoever asked gets the whole of it or an answer that breaks off; what was packed for it goes.
  export: {
    before: null, after: null, prepare: bringTemplate,
    act: exported,
    check: (id, isAcknowledged, answer) => assert.ok(!isAcknowledged || answer.status === 200),
    again: async () => {
      assert.equal((await exported()).status, 200);
      await dropTemplate();
      await ok(prune());
      assert.deepEqual(inLayers(), []);
      await until(() => inBlobs().length === 0, { what: 'no blob is left' });
    },
  },
  fork: {
    before: 'running', after: 'running', act: (id) => api.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} }),
    check: async (id) => { await assertWrites(id); await purgeForks(id); },
    again: async (id) => {
      const { json } = await ok(OPERATIONS.fork.act(id));
      assert.equal((await api.read(json.sandboxes[0].id, `${AGENT}/kept`)).toString(), id);
      await purgeForks(id);
      assert.deepEqual(await snapshotsOf(id), []);
    },
  },
  change: {
    before: 'running', after: 'running', act: change,
    check: async (id, isAcknowledged) => {
      const { labels, resources } = await api.get(id);
      assert.equal(labels.changed === id, resources.disk === '128Mi', 'all of it or nothing');
      if (isAcknowledged) assert.equal(labels.changed, id);
    },
    again: async (id) => { await ok(change(id)); await assertKept(id); },
  },
  // The next daemon begins the launch anew; of a member that its sandbox did not name yet nothing is left.
  'launch that adds a member': {
    before: 'running', after: 'running',
    prepare: async (id) => { await bringRedis(api); await api.put(id, '/workspace/app/index.html', id); },
    act: (id) => api.request('POST', `/v1/sandboxes/${id}/launch`, { json: { services: ['redis'] }, headers: { accept: 'text/event-stream' } }),
    check: async (id) => {
      const find = async () => (await ok(api.request('GET', '/v1/launches', { query: { sandbox: id } }))).json.launches;
      await until(async () => (await find()).every(({ status }) => status !== 'running'), { what: 'the launch is over', timeout_ms: 60_000 });
      assert.deepEqual((await find()).map(({ status }) => status), ['succeeded']);
      assert.equal(sql(instance, `SELECT count(*) FROM sandboxes WHERE parent_id = '${id}'`), '1\n');
    },
    again: async (id) => assert.match((await ok(OPERATIONS['launch that adds a member'].act(id))).text, /event: ?end\ndata:.*"status":"succeeded"/),
  },
  process: {
    before: 'running', after: 'running', act: background,
    check: async (id, isAcknowledged, answer) => {
      const list = await processes.list(id);
      assert.ok(list.length <= 1);
      if (isAcknowledged) assert.equal(list[0]?.id, answer.json.process.id);
      if (list.length === 0) return;
      const [{ id: number }] = list;
      const { exit_code: code } = await processes.wait(id, number);
      if (isAcknowledged) assert.equal(code, 0);
      const text = (await api.request('GET', processes.path(id, number, '/output'), { headers: { accept: 'text/plain' } })).text;
      if (code === 0) assert.ok(text.includes('started') && text.includes(id), text);
    },
    again: async (id) => processes.wait(id, (await ok(background(id))).json.process.id),
  },
  'files of a project': {
    before: null, after: null, prepare: makeProject,
    act: (id) => uploadForm(id),
    check: async (id, isAcknowledged) => {
      const files = await projectFiles(id);
      assert.deepEqual(files.filter((name) => name !== 'kept.txt'), isAcknowledged || files.length > 1 ? ['a.txt', 'b/c.txt'] : []);
      await assertProject(id);
    },
    again: async (id) => { await ok(uploadForm(id)); await assertProject(id); await ok(dropProject(id)); },
  },
  'removal of a file': {
    before: null, after: null, prepare: makeProject,
    act: (id) => api.request('DELETE', `/v1/projects/p-${id}/files/kept.txt`),
    check: assertProject,
    again: async (id) => { await ok(putKept(id)); await ok(dropProject(id)); },
  },
  'move of a file': {
    before: null, after: null, prepare: makeProject,
    act: (id) => api.request('PATCH', `/v1/projects/p-${id}/files/kept.txt`, { json: { path: 'moved/there.txt' } }),
    check: async (id) => { assert.equal((await projectFiles(id)).length, 1); await assertProject(id); },
    again: async (id) => { await ok(putKept(id)); await ok(dropProject(id)); },
  },
  'removal of a project': {
    before: null, after: null, prepare: makeProject,
    act: dropProject,
    check: async (id, isAcknowledged) => {
      const { status } = await api.request('GET', `/v1/projects/p-${id}`);
      if (isAcknowledged) assert.equal(status, 404);
      if (status === 200) await assertProject(id);
      else assert.deepEqual(fs.readdirSync(path.join(instance.dataDir, 'state/projects')), []);
    },
    again: async (id) => { await api.request('POST', '/v1/projects', { json: { name: `p-${id}` } }); await ok(putKept(id)); await ok(dropProject(id)); },
  },
  upload: {
    before: 'running', after: 'running', act: put,
    check: async (id, isAcknowledged) => {
      const wanted = Buffer.alloc(300_000, id);
      const found = await api.exists(id, `${AGENT}/up/file`);
      if (isAcknowledged) assert.ok(found);
      if (found) assert.ok((await api.read(id, `${AGENT}/up/file`)).equals(wanted), 'the whole file');
      if (await api.exists(id, `${AGENT}/up`)) {
        await until(async () => { assert.deepEqual((await api.listFiles(id, `${AGENT}/up`)).entries.map((entry) => entry.name), found ? ['file'] : []); return true; }, { what: 'no draft is left' });
      }
    },
    again: (id) => ok(put(id)),
  },
};

/** Who acted at the point, and starts again what is dead of daemon and keeper. */
async function recover(point) {
  const pid = await until(() => points.actedPid(point), { what: `${point} is reached` });
  reached.add(point);
  if (pid === instance.daemon.pid) {
    assert.deepEqual(await until(() => instance.daemon.how, { what: 'the daemon dies' }), { code: 99, signal: null });
    await instance.startSupervised();
    return 'daemon';
  }
  if (pid !== instance.keeper.pid) return 'child';
  await until(() => !proc.isAlive(instance.keeper), { what: 'the keeper dies' });
  await until(() => instance.daemon.how, { what: 'the daemon leaves because its keeper has' });
  await instance.startSupervised();
  return 'keeper';
}

/** With the keeper all sandboxes end. */
const afterKeeper = (state) => (['running', 'paused'].includes(state) ? 'stopped' : state);

async function assertWitness(died) {
  const expected = died === 'keeper' ? 'stopped' : 'running';
  assert.equal((await api.get(witness.id)).status, expected);
  assert.equal((await api.read(witness.id, `${AGENT}/kept`)).toString(), 'of the witness');
}

/** Does the operation with the point armed; what is true afterwards is checked. */
async function cut(name, point, action = 'crash') {
  const operation = OPERATIONS[name];
  const id = await prepare(operation.before);
  try {
    await operation.prepare?.(id);
    await cutOne(operation, id, point, action);
  } finally {
    points.disarm(point);
    // So that a failure here is not one of all that follow.
    await api.verb(id, 'purge').catch(() => {});
    api.purged.add(id);
    await api.read(witness.id, `${AGENT}/kept`).catch(() => {}); // which wakes it
  }
}

async function cutOne(operation, id, point, action) {
  points.arm(point, action);
  const answer = await operation.act(id).catch((error) => {
    assert.match(error.code ?? error.message, /ECONNRESET|ECONNREFUSED|EPIPE|socket hang up|cut short/);
    return null;
  });
  const died = action === 'crash' ? await recover(point) : 'nobody';
  assert.ok(points.actedPid(point), `${point} is reached`);
  if (action === 'fail') failed.add(point);
  const isAcknowledged = answer !== null && answer.status < 300;
  if (!isAcknowledged && answer) assert.ok([500, 502, 503, 507].includes(answer.status), `${answer.status} ${answer.text}`);
  const allowed = isAcknowledged ? [operation.after].flat() : [operation.before, operation.after, operation.failed, operation.also].flat();
  const state = await stateOf(id);
  assert.ok(allowed.map(died === 'keeper' ? afterKeeper : (same) => same).includes(state), `${id} is ${state}, ${isAcknowledged ? 'acknowledged' : `not acknowledged (${answer?.status})`}, ${died} died`);
  await assertWitness(died);
  if (['running', 'stopped', 'paused'].includes(state) || (operation.before === null && operation.after === null)) await operation.check?.(id, isAcknowledged, answer);
  await operation.again(id);
}

const BUILD = ['build.groups_made', 'build.child_cloned', 'build.network_sent', 'build.begun', 'build.link_sent', 'build.groups_joined', 'build.disk_opened', 'build.storage_prepared', 'build.root_entered', 'build.network_joined', 'build.confined'];
const RUN = ['run.driver_started', 'run.agent_met', 'run.prepared', 'run.before_row', 'run.row_written', 'run.commands_started'];
const END = ['end.agent_asked', 'end.driver_stopped', 'end.link_closed', 'kill.reaped', 'kill.groups_empty', 'kill.groups_removed'];
const AUDIT = ['audit.entry_kept', 'audit.entries_written', 'audit.entries_dropped'];

/** Which points an operation passes; each is crashed at. */
const CRASHES = {
  create: ['create.row_written', 'create.row_committed', ...RUN, 'build.begun', 'build.link_sent', 'build.confined', 'disk.pool_disk_moved', 'disk.pool_disk_named', 'disk.pool_disk_linked', ...AUDIT],
  'create that does not wait': ['create.row_committed', 'late_create.image_taken', 'run.driver_started', 'run.row_written'],
  'create that takes over one built ahead': ['build.ahead_handed_over'],
  'create with a key': ['create.key_reserved', 'create.row_committed', 'run.row_written', 'create.key_answered'],
  'create on a kept workspace': ['create.row_committed', 'run.driver_started', 'run.row_written', 'build.storage_prepared'],
  start: ['start.claimed', ...RUN, ...BUILD],
  'start within a quota': ['start.claim_written', 'run.driver_started'],
  'start after long': ['disk.mounted'],
  stop: [...END, 'stop.before_row', 'stop.row_written', 'disk.cleared_up', 'disk.unmounted'],
  pause: ['pause.freezer_written', 'pause.before_row', 'pause.row_written'],
  resume: ['pause.freezer_written', 'pause.before_row', 'pause.row_written'],
  reset: ['end.driver_stopped', 'reset.row_written', 'clean.layer_discarded', 'clean.cleaned', 'reset.cleaned', 'run.row_written'],
  'reset of a stopped one': ['clean.layer_discarded', 'clean.cleaned', 'reset.cleaned'],
  delete: [...END.slice(1), 'clean.cleaned', 'delete.cleaned', 'delete.row_deleted'],
  purge: ['kill.groups_removed', 'purge.marked', 'disk.let_go', 'disk.thrown_away', 'clean.cleaned', 'purge.cleaned', 'purge.logs_removed', 'purge.rows_half_deleted', 'purge.rows_deleted', 'disk.unmounted'],
  'purge of a disk that is used again': ['disk.refurnished'],
  'purge of a kept workspace': ['purge.held', 'purge.cleaned', 'purge.rows_deleted', 'trash.in_shredder'],
  snapshot: ['snapshot.row_written', 'snapshot.frozen', 'snapshot.copied', 'snapshot.written', 'snapshot.taken'],
  prune: ['collect.marked', 'collect.dropped', 'trash.in_shredder'],
  'removal of a snapshot': ['snapshot.hidden', 'snapshot.dropped'],
  restore: ['restore.row_written', 'snapshot.loaded', 'snapshot.placed'],
  'pull of an image': ['blob.synced', 'layer.begun', 'layer.unpacked', 'layer.renamed', 'layer.stacked', 'template.made', 'template.kept'],
  'files of a build': ['run.agent_met', 'capture.packed', 'layer.unpacked', 'layer.renamed', 'layer.stacked'],
  'unpacking of an archive': ['blob.synced', 'layer.begun', 'layer.unpacked', 'layer.renamed', 'layer.stacked'],
  build: ['layer.begun', 'capture.packed', 'layer.unpacked', 'layer.renamed', 'template.kept'],
  'template of a snapshot': ['blob.synced', 'capture.packed', 'layer.unpacked', 'layer.renamed'],
  export: ['blob.synced', 'export.packed'],
  fork: ['snapshot.mounted', 'snapshot.taken', 'snapshot.loaded', 'snapshot.mapped', 'snapshot.placed', 'snapshot.dropped'],
  change: ['change.resized', 'change.row_written'],
  'launch that adds a member': ['member.rows_added'],
  process: ['process.log_opened', 'process.row_inserted', 'process.sent', 'process.end_claimed', 'process.end_written', 'process.end_reported'],
  'files of a project': ['project.content_written', 'project.rows_written', 'project.linked'],
  'removal of a file': ['project.file_deleted'],
  'move of a file': ['project.file_moved'],
  'removal of a project': ['project.set_aside', 'project.row_deleted'],
  upload: ['upload.opened', 'upload.received', 'upload.written'],
};

/** Where a step can also be made to fail, as on a full disk. */
const FAILURES = {
  create: ['create.row_written', 'run.before_row'],
  'create on a kept workspace': ['create.row_written', 'run.before_row'],
  start: ['run.before_row', 'build.groups_made', 'build.disk_opened', 'build.storage_prepared', 'build.root_entered', 'build.network_joined'],
  'start after long': ['disk.mounted'],
  stop: ['stop.before_row'],
  pause: ['pause.before_row'],
  resume: ['pause.before_row'],
  reset: ['clean.cleaned', 'reset.cleaned'],
  delete: ['clean.cleaned'],
  purge: ['clean.cleaned', 'purge.cleaned', 'purge.rows_half_deleted'],
  process: ['process.log_opened'],
  snapshot: ['snapshot.frozen'],
  restore: ['snapshot.loaded'],
  fork: ['snapshot.loaded'],
};

const ONLY = process.env.FAIL_POINT; // one operation or point alone, to look at it
const known = new Set([witness.id]);

for (const [name, list] of Object.entries(CRASHES)) {
  for (const point of list.filter((each) => !ONLY || each === ONLY || name === ONLY)) {
    test(`${name}, cut short at ${point}`, async () => {
      await cut(name, point);
      await assertNothingRemains(instance, known);
    });
  }
}

for (const [name, list] of Object.entries(FAILURES)) {
  for (const point of list.filter((each) => !ONLY || each === ONLY || name === ONLY)) {
    test(`${name}, failed at ${point}`, async () => {
      await cut(name, point, 'fail');
      await assertNothingRemains(instance, known);
    });
  }
}

// --- what the daemon does by itself ---

/** Starts the daemon with the point armed; it, or the keeper that it starts, dies there; then starts it again. */
async function startCutShort(target, board, point) {
  board.arm(point);
  const start = target.start().catch(() => {}); // it may not come as far as to be ready
  const pid = await until(() => board.actedPid(point), { what: `${point} is reached` });
  reached.add(point);
  if (pid === target.daemon.pid) {
    await until(() => target.daemon.how, { what: 'the daemon dies' });
    assert.equal(target.daemon.how.code, 99, target.log().slice(-1000));
  } else {
    await until(() => target.daemon.how, { what: 'the daemon leaves because its keeper has' });
  }
  await start;
  await target.startSupervised();
}

const killKeeper = async () => {
  process.kill(instance.keeper.pid, 'SIGKILL');
  await until(() => instance.daemon.how, { what: 'the daemon leaves because its keeper has' });
  await until(() => !proc.isAlive(instance.keeper), { what: 'the kernel has ended the keeper' });
};

/** before: what the next daemon finds; the rest as above. */
const STARTS = {
  'with sandboxes that run': { before: () => instance.crash(), points: ['daemon.server_opened', 'reconcile.link_made', 'reconcile.adopted', 'reconcile.rows_settled', 'reconcile.strangers_dropped'] },
  'without a keeper': { before: killKeeper, isKeeperGone: true, points: ['daemon.keeper_started', 'keeper.disks_opened', 'keeper.groups_swept', 'reconcile.lost_row_written'] },
  'with a create that was cut short': {
    before: async () => {
      points.arm('run.driver_started');
      await OPERATIONS.create.act(ulid()).catch(() => {});
      await until(() => instance.daemon.how, { what: 'the daemon dies' });
    },
    points: ['reconcile.unfinished_stopped', 'reconcile.unfinished_cleaned'],
  },
  'with a purge that was cut short': {
    before: async () => {
      const id = await prepare('running');
      points.arm('purge.marked');
      await OPERATIONS.purge.act(id).catch(() => {});
      await until(() => instance.daemon.how, { what: 'the daemon dies' });
      api.purged.add(id);
    },
    points: ['reconcile.purge_cleaned'],
  },
};

for (const [name, { before, points: list, isKeeperGone }] of Object.entries(STARTS)) {
  for (const point of list.filter((each) => !ONLY || each === ONLY)) {
    test(`a start ${name}, cut short at ${point}`, async () => {
      const { id } = await api.create();
      await api.put(id, `${AGENT}/kept`, id);
      await before();
      await startCutShort(instance, points, point);
      const expected = isKeeperGone ? 'stopped' : 'running';
      assert.equal((await api.get(id)).status, expected);
      await assertWitness(isKeeperGone ? 'keeper' : 'daemon');
      await assertKept(id);
      await api.purge(id);
      await assertNothingRemains(instance, known);
    });
  }
}

for (const point of ['create.undo_stopped', 'create.undo_cleaned'].filter((each) => !ONLY || each === ONLY)) {
  test(`the undoing of a create that failed, cut short at ${point}`, async () => {
    const id = ulid();
    points.arm('run.before_row', 'fail');
    points.arm(point);
    await assert.rejects(OPERATIONS.create.act(id));
    assert.equal(await recover(point), 'daemon');
    assert.equal(await stateOf(id), null);
    await ok(OPERATIONS.create.act(id));
    await api.purge(id);
    await assertNothingRemains(instance, known);
  });
}

// --- a sandbox with members: cut short in the middle of them ---

const MEMBERS = ['cache', 'backend'].map((role) => ({ role, command: 'exec sleep 3600', resources: { memory: '64Mi' } }));
const inMember = (id, role, command) => ok(api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, query: { member: role } })).then(({ json }) => json.stdout);
/** They are what their sandbox is, each once, with what it kept. */
async function assertMembers(id, { isNew = false } = {}) {
  const state = await until(async () => {
    const { status, members } = await api.get(id);
    return members.every((one) => one.status === status) && { status, members };
  }, { what: `${id} and its members are alike` });
  assert.deepEqual(state.members.map(({ role }) => role).sort(), ['backend', 'cache', 'primary']);
  assert.equal(sql(instance, `SELECT count(*) FROM sandboxes WHERE parent_id = '${id}'`).trim(), '2');
  if (state.status !== 'running') return;
  for (const { role } of MEMBERS) {
    assert.equal(await inMember(id, role, 'cat /volumes/kept 2>/dev/null || true'), isNew ? '' : `${id}\n`);
    await until(async () => (await ok(api.request('GET', `/v1/sandboxes/${id}/processes`, { query: { member: role } }))).json.processes.filter(({ start, status }) => start === role && status === 'running').length === 1, { what: `the ${role} runs once` });
  }
}
async function keepInMembers(id) {
  for (const { role } of MEMBERS) await inMember(id, role, `echo ${id} > /volumes/kept; sync`);
}
async function wakeMembers(id, options) {
  const { status } = await api.get(id);
  if (status !== 'running') await api.life(id, status === 'paused' ? 'resume' : 'start');
  await assertMembers(id, options);
}
const OF_MEMBERS = {
  create: { before: null, after: 'running', act: (id) => api.request('POST', '/v1/sandboxes', { json: { id, members: MEMBERS } }), check: (id) => assertMembers(id, { isNew: true }), again: async (id) => { await ok(api.ensure({ id, members: MEMBERS })); await wakeMembers(id, { isNew: true }); } },
  start: { before: 'stopped', after: 'running', failed: 'error', again: wakeMembers },
  stop: { before: 'running', after: 'stopped', again: wakeMembers },
  pause: { before: 'running', after: 'paused', again: wakeMembers },
  resume: { before: 'paused', after: 'running', again: wakeMembers },
  reset: { before: 'running', after: 'running', also: 'stopped', check: () => {}, again: async (id) => { await ok(api.verb(id, 'reset')); await wakeMembers(id, { isNew: true }); } },
  delete: { before: 'running', after: 'deleted', also: 'stopped', act: (id) => api.request('DELETE', `/v1/sandboxes/${id}`), again: async (id) => { await ok(api.ensure({ id, members: MEMBERS })); await wakeMembers(id); } },
  purge: { before: 'running', after: null, also: ['stopped', 'deleted'], again: async (id) => { if (await stateOf(id)) await api.purge(id); } },
  snapshot: { before: 'running', after: 'running', act: (id) => api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} }), again: async (id) => { await wakeMembers(id); await dropSnapshots(id); } },
  fork: { before: 'running', after: 'running', act: (id) => api.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} }), check: purgeForks, again: async (id) => { await wakeMembers(id); await purgeForks(id); } },
};
/** Points that each passes several times, and how many go before: it is cut short in the middle. */
const MEMBER_POINTS = {
  create: [['run.driver_started', 1], ['run.row_written', 2], ['build.begun', 2]],
  start: [['run.driver_started', 1], ['build.begun', 1]],
  stop: [['end.driver_stopped', 1], ['kill.reaped', 1]],
  pause: [['pause.freezer_written', 1]],
  resume: [['pause.freezer_written', 1]],
  reset: [['end.driver_stopped', 1], ['reset.cleaned', 0], ['run.driver_started', 1]],
  delete: [['end.driver_stopped', 1], ['kill.groups_removed', 2], ['delete.row_deleted', 0]],
  purge: [['end.link_closed', 1], ['purge.marked', 0], ['purge.rows_deleted', 0]],
  snapshot: [['snapshot.frozen', 0]],
  fork: [['snapshot.placed', 0], ['run.driver_started', 1]],
};

async function cutMembers(operation, id, point, skip) {
  if (operation.before) await keepInMembers(id);
  if (operation.before === 'stopped') await api.life(id, 'stop');
  if (operation.before === 'paused') await api.life(id, 'pause');
  points.arm(point, 'crash', { skip });
  const answer = await operation.act(id).catch(() => null);
  const died = await recover(point);
  const isAcknowledged = answer !== null && answer.status < 300;
  const allowed = isAcknowledged ? [operation.after] : [operation.before, operation.after, operation.failed, operation.also].flat();
  const state = await stateOf(id);
  assert.ok(allowed.map(died === 'keeper' ? afterKeeper : (same) => same).includes(state), `${id} is ${state}, ${isAcknowledged ? 'acknowledged' : 'not acknowledged'}, ${died} died`);
  await assertWitness(died);
  if (['running', 'stopped', 'paused'].includes(state)) await operation.check(id);
  await operation.again(id);
}

for (const [name, list] of Object.entries(MEMBER_POINTS)) {
  const operation = { act: (id) => api.verb(id, name), check: assertMembers, ...OF_MEMBERS[name] };
  for (const [point, skip] of list.filter(([each]) => !ONLY || each === ONLY || ONLY === 'members')) {
    test(`${name} of a sandbox with members, cut short at ${point}`, async () => {
      const id = await prepare(operation.before && 'running', { members: MEMBERS });
      try {
        await cutMembers(operation, id, point, skip);
      } finally {
        points.disarm(point);
        await api.verb(id, 'purge').catch(() => {});
        api.purged.add(id);
      }
      await assertNothingRemains(instance, known);
    });
  }
}

// --- pools: what waits is the pool's or somebody's, whoever dies when ---

const rowsOf = (query) => sql(instance, query).split('\n').filter(Boolean);
const setPool = (json) => ok(api.request('PATCH', '/v1/templates/pooled', { json }));
/** What waits has its member with it, and nothing else belongs to no owner. */
const untilPooled = (size) => until(async () => {
  const { pools } = (await api.request('GET', '/v1/pools')).json;
  const ready = pools.find(({ template }) => template === 'pooled')?.ready ?? 0;
  const rows = rowsOf('SELECT id FROM pooled');
  return ready === size && rows.length === size && rowsOf("SELECT id FROM sandboxes WHERE organization = '.pool' AND parent_id IS NULL").join() === rows.join()
    && rowsOf("SELECT parent_id FROM sandboxes WHERE organization = '.pool' AND parent_id IS NOT NULL").sort().join() === rows.join();
}, { what: `${size} wait` });
async function withPool(act) {
  await ok(api.request('PUT', '/v1/templates/pooled/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } }));
  await setPool({
    start: [{ name: 'app', command: 'echo "started ${WORD:-bare}" >> /workspace/log; exec sleep 3600' }], ready: { command: 'test -e /workspace/log' }, pool: { size: 0 },
    members: [{ role: 'cache', template: 'pooled', command: 'exec sleep 3600', health: { command: 'true' } }],
  });
  try {
    await act();
  } finally {
    await setPool({ pool: { size: 0 } });
    await untilPooled(0);
  }
  await ok(api.request('DELETE', '/v1/templates/pooled'));
  await assertNothingRemains(instance, known);
}
/** Of a pool nobody is told; those who have sandboxes are as after any death. */
async function recoverAll(point) {
  const died = await recover(point);
  await assertWitness(died);
  return died;
}
const POOL_POINTS = {
  fill: ['pool.row_added', 'pool.sandbox_made', 'pool.ready_written', 'build.groups_made', 'build.begun', 'build.link_sent'],
  drain: ['pool.drained', 'kill.reaped', 'kill.groups_removed', 'disk.let_go', 'disk.thrown_away'],
  claim: ['keeper.limits_set', 'keeper.disk_resized', 'claim.limits_set', 'claim.row_written', 'claim.committed', 'keeper.renamed', 'claim.applied'],
};

for (const point of POOL_POINTS.fill.filter((each) => !ONLY || each === ONLY)) {
  test(`the filling of a pool, cut short at ${point}`, () => withPool(async () => {
    points.arm(point);
    await setPool({ pool: { size: 2 } });
    await recoverAll(point);
    await untilPooled(2);
  }));
}

for (const point of POOL_POINTS.drain.filter((each) => !ONLY || each === ONLY)) {
  test(`the draining of a pool, cut short at ${point}`, () => withPool(async () => {
    await setPool({ pool: { size: 2 } });
    await untilPooled(2);
    points.arm(point);
    await setPool({ env: { OTHER: 'version' } });
    await recoverAll(point);
    await untilPooled(2);
  }));
}

/** Asks for all that a claim can give, so that a cut leaves something to be done of each. */
const claimBody = (word, more = {}) => ({
  template: 'pooled', name: `claimed-${word}`, project: 'claims', session: word, env: { WORD: word }, start_env: true, resources: { memory: '300Mi', disk: '500Mi' },
  network: { mode: 'none', secrets: ['claim-key'] }, ...more,
});
const claimOf = (word, key) => api.request('POST', '/v1/sandboxes', { json: claimBody(word), headers: { 'idempotency-key': key } });
async function withClaims(act) {
  const server = await httpServer();
  await ok(api.request('POST', '/v1/projects', { json: { name: 'claims' } }));
  await ok(api.request('PUT', '/v1/projects/claims/files', { query: { path: 'kept.txt' }, body: 'of the project' }));
  await ok(api.request('PUT', '/v1/secrets/claim-key', { json: { url: `http://127.0.0.1:${server.port}`, value: 'hidden', header: 'X-Key', prefix: '' } }));
  try {
    await withPool(async () => {
      await setPool({ pool: { size: 2 } });
      await untilPooled(2);
      await act(server);
    });
  } finally {
    server.close();
    await api.request('DELETE', '/v1/secrets/claim-key');
    await api.request('DELETE', '/v1/projects/claims');
  }
}
/** It is all that was asked for, whoever died while it was given away. */
async function assertClaimed(id, word, server) {
  assert.equal(await api.out(id, 'echo $WORD; hostname; cat /workspace/project_files/kept.txt'), `${word}\nclaimed-${word}\nof the project`);
  assert.equal((await api.stats(id)).memory.limit_bytes, 300 << 20);
  assert.equal((await api.get(id)).resources.disk, '500Mi');
  await until(async () => /\bstarted \S+\n$/.exec(await api.out(id, 'cat /workspace/log'))?.[0] === `started ${word}\n`, { what: 'its start command runs with its environment' });
  await until(async () => (await processes.list(id)).filter(({ start, status }) => start === 'app' && status === 'running').length === 1, { what: 'it runs once' });
  await api.out(id, 'wget -q -O - http://claim-key.internal/asked');
  assert.equal(server.heads.at(-1).headers['x-key'], 'hidden');
  await until(async () => (await api.get(id)).members.every(({ role, health }) => role === 'primary' || health === 'healthy'), { what: 'its member is healthy' });
  assert.deepEqual((await api.get(id)).members.map(({ role, status }) => [role, status]).sort(), [['cache', 'running'], ['primary', 'running']]);
}

for (const [point, action] of [...POOL_POINTS.claim.map((each) => [each, 'crash']), ['claim.row_written', 'fail']].filter(([each]) => !ONLY || each === ONLY)) {
  test(`a create that is given a waiting sandbox, ${action === 'fail' ? 'failed' : 'cut short'} at ${point}`, () => withClaims(async (server) => {
    const word = point.replace(/\W/g, '-').replace(/_/g, '-');
    points.arm(point, action);
    const answer = await claimOf(word, `${action}-${point}`).catch(() => null);
    const died = action === 'crash' ? await recoverAll(point) : 'nobody';
    if (action === 'fail') failed.add(point);
    assert.ok(!answer || answer.status >= 500, answer?.text);
    const taken = (await api.all()).filter(({ id }) => id !== witness.id);
    assert.ok(taken.length <= 1 && taken.every(({ status }) => status === (died === 'keeper' ? 'stopped' : 'running')));
    const { json: { id } } = await ok(claimOf(word, `${action}-${point}`));
    if (taken.length > 0) assert.equal(id, taken[0].id, 'the key names what was given');
    await assertClaimed(id, word, server);
    await untilPooled(2);
    assert.ok(!rowsOf('SELECT id FROM pooled').includes(id));
    assert.deepEqual((await api.all()).map((one) => one.id).sort(), [id, witness.id].sort());
    await api.purge(id);
  }));
}

for (const point of POOL_POINTS.claim.filter((each) => !ONLY || each === ONLY)) {
  test(`two creates at once that are given waiting sandboxes, cut short at ${point}`, () => withClaims(async (server) => {
    const claims = () => Promise.allSettled(['one', 'two'].map((word) => claimOf(word, `two-${point}-${word}`)));
    points.arm(point, 'crash', { skip: 1 });
    await claims();
    await recoverAll(point);
    const taken = (await api.all()).filter(({ id }) => id !== witness.id).map(({ id }) => id);
    const ids = (await claims()).map(({ value }) => value.json.id);
    assert.equal(new Set(ids).size, 2, 'each has its own');
    assert.ok(taken.every((id) => ids.includes(id)), `${taken} of ${ids}`);
    for (const [i, word] of ['one', 'two'].entries()) await assertClaimed(ids[i], word, server);
    await untilPooled(2);
    for (const id of ids) await api.purge(id);
  }));
}

test('the note that a sandbox ended by itself, cut short at settle.link_closed', { skip: ONLY && ONLY !== 'settle.link_closed' }, async () => {
  const id = await prepare('running');
  const init = await instance.initOf(id);
  points.arm('settle.link_closed');
  process.kill(init.pid, 'SIGKILL');
  assert.equal(await recover('settle.link_closed'), 'daemon');
  assert.equal(await stateOf(id), 'stopped');
  await assertKept(id);
  await api.purge(id);
  await assertNothingRemains(instance, known);
});

test('audit entries of calls that were answered are there in their order, once each, after all of that', { skip: ONLY }, async () => {
  const answer = await ok(api.request('GET', '/v1/audit/verify'));
  assert.equal(answer.json.ok, true, answer.text);
});

// --- the first start, and migrations ---

test('the first start and every migration, cut short before, within and after it, end with a whole database', { skip: ONLY && !/^migration|token/.test(ONLY) }, async () => {
  const fresh = new Instance('fail-points-migration', { build: FAIL_BUILD_DIR, user: null });
  const board = new FailPoints(fresh);
  const version = () => Number(sql(fresh, 'PRAGMA user_version'));
  const id = ulid();
  const dies = async (point) => {
    board.arm(point);
    await assert.rejects(fresh.start());
    assert.equal(fresh.daemon.how?.code, 99, `${point}: ${fresh.log().slice(-1000)}`);
    reached.add(point);
  };
  try {
    await fresh.start();
    const latest = version();
    await fresh.shutdown();
    for (const name of fs.readdirSync(path.join(fresh.dataDir, 'state'))) fs.rmSync(path.join(fresh.dataDir, 'state', name), { recursive: true });
    fs.rmSync(path.join(fresh.dataDir, 'token'));
    fs.rmSync(path.join(fresh.dataDir, 'workspaces/.generation'));
    const refuses = async (point) => {
      board.arm(point, 'fail');
      await assert.rejects(fresh.start());
      assert.ok(fresh.daemon.how?.code > 0 && fresh.daemon.how.code !== 99, `${point}: ${fresh.log().slice(-1000)}`);
      failed.add(point);
    };
    await refuses('daemon.token_written');
    await dies('daemon.token_written');
    await refuses('migration.applied');
    assert.equal(version(), 0);
    for (let from = 0; from < latest; from++) {
      for (const [point, expected] of [['migration.due', from], ['migration.applied', from], ['migration.committed', from + 1]]) {
        await dies(point);
        assert.equal(version(), expected, point);
        assert.equal(sql(fresh, 'PRAGMA integrity_check'), 'ok\n');
      }
      if (from === 0) {
        sql(fresh, `INSERT INTO workspaces VALUES ('${id}', 'default', 'admin', 7, 1);
          INSERT INTO sandboxes VALUES ('${id}', 'default', 'admin', NULL, 'stopped', 'host', 'native', 1000, 268435456, 1073741824, 256, '{}', '[]', '{"old":"yes"}', '{"mode":"none"}', 600, -1, 0, 1, 1, 1, 0, 'operator', 0, '', '')`);
      }
    }
    await fresh.start();
    assert.deepEqual((await fresh.api.get(id)).labels, { old: 'yes' });
    // It has no files, which is said; with a workspace, as old as that, it runs.
    assert.equal((await fresh.api.verb(id, 'start')).json.error.code, 'workspace_missing');
    fs.mkdirSync(path.join(fresh.dataDir, 'workspaces', id));
    assert.equal(await fresh.api.out(id, 'echo works'), 'works\n');
    assert.match(fs.readFileSync(path.join(fresh.dataDir, 'token'), 'utf8'), /^\S{20,}\n$/);
    await fresh.shutdown();
  } finally {
    fresh.destroy();
  }
});

// --- all of them ---

test('every point of the table is called once in the sources and was reached, and no other is called', { skip: ONLY }, () => {
  const table = points.rows().map(({ name, canFail }) => ({ name, canFail }));
  const byName = (list) => [...list].sort((a, b) => (a.name < b.name ? -1 : 1));
  assert.deepEqual(byName(calledPoints()), byName(table));
  assert.ok(table.length >= 40);
  assert.deepEqual(table.map(({ name }) => name).filter((name) => !reached.has(name)), [], 'points that no test died at');
  assert.deepEqual(table.filter(({ name, canFail }) => canFail && !failed.has(name)), [], 'points that can fail and never did');
});

test('after everything is purged nothing is left, and no process has complained', async () => {
  await api.purge(witness.id);
  api.purged.add(witness.id);
  await assertNothingRemains(instance, new Set());
  assert.deepEqual(instance.complaints(), []);
  await instance.shutdown();
  await until(() => {
    assert.deepEqual(instance.survivors(), []);
    assert.deepEqual(instance.cgroups(), []);
    assert.deepEqual(loopFiles(instance.dataDir), []);
    assert.deepEqual(proc.mountLines('self', [`${instance.dataDir}/`]), []);
    return true;
  }, { what: 'all is gone' });
});
