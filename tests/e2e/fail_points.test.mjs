// SPDX-License-Identifier: Apache-2.0
// Every fail point (src/base/fail_point.h): an operation is cut in two there by the death of the process that does
// it. Afterwards what was acknowledged is there, what was not is there as a whole or not at all, nothing is left of
// what is not, and the operation works. Here are those of calls; fail_points_starts, _members, _pools and _migrations
// have the others, and lib/fail_point_lists.mjs says which is where.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { sql } from './lib/database.mjs';
import { chosen, CRASHED, CRASHES, FAILED, FAILURES, ONLY } from './lib/fail_point_lists.mjs';
import { AGENT, afterKeeper, failPointSuite, ok } from './lib/fail_point_suite.mjs';
import { calledPoints } from './lib/fail_points.mjs';
import { busybox, image, layoutArchive, registryServer } from './lib/images.mjs';
import * as proc from './lib/proc.mjs';
import { loopFiles } from './lib/remains.mjs';
import { bringRedis } from './lib/services.mjs';
import { tar } from './lib/tar.mjs';
import { until } from './lib/wait.mjs';

const images = {};
const registry = await registryServer(images);
after(() => { registry.server.close(); registry.server.closeAllConnections(); });
const suite = await failPointSuite('fail-points', ['--registry-plain', registry.host]);
const { instance, api, points, processes, witness } = suite;

// --- what the operations have in common ---

/** A disk that was left frozen would take none. */
async function assertWrites(id) {
  if ((await api.get(id)).status === 'paused') await api.life(id, 'resume');
  await api.put(id, `${AGENT}/written`, id);
  await api.out(id, 'sync');
}
async function assertCopy(snapshot, id) {
  const copy = await api.create({ snapshot });
  assert.equal((await api.read(copy.id, `${AGENT}/kept`)).toString(), id);
  await api.purge(copy.id);
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
}, { what: `${named(id)} is settled` });
/** The same for the one who asked, whom the death of the daemon cuts off. */
async function settledOrCut(id) {
  const { error } = await until(async () => {
    const { status, json, error } = await api.request('GET', `/v1/templates/${named(id)}`).catch((thrown) => ({ error: thrown }));
    return error ? { error } : status === 404 ? {} : ['ready', 'error'].includes(json.status) && {};
  }, { what: `${named(id)} is settled` });
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
  const [{ id: snapshot }] = await suite.snapshotsOf(id);
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
  'create on a kept workspace': { before: 'deleted', after: 'running', act: (id) => api.request('POST', '/v1/sandboxes', { json: { id } }), again: async (id) => { await ok(api.ensure({ id })); await suite.assertKept(id); } },
  start: { before: 'stopped', after: 'running', failed: 'error', act: (id) => api.verb(id, 'start'), again: async (id) => { await ok(api.verb(id, 'start')); await suite.assertKept(id); } },
  'start within a quota': {
    before: 'stopped', after: 'running', failed: 'error',
    prepare: () => ok(api.request('PUT', '/v1/quotas/default/admin', { json: { running: 2 } })),
    act: (id) => api.verb(id, 'start'),
    again: async (id) => { await ok(api.verb(id, 'start')); await suite.assertKept(id); await ok(api.request('DELETE', '/v1/quotas/default/admin')); },
  },
  // Its disk has left its place by then, and is mounted anew.
  'start after long': {
    before: 'stopped', after: 'running', failed: 'error',
    prepare: (id) => until(() => !loopFiles(instance.dataDir).includes(`workspaces/${id}.img`), { what: 'its disk has left' }),
    act: (id) => api.verb(id, 'start'), again: async (id) => { await ok(api.verb(id, 'start')); await suite.assertKept(id); },
  },
  stop: { before: 'running', after: 'stopped', act: (id) => api.verb(id, 'stop'), again: async (id) => { await suite.assertKept(id); await ok(api.verb(id, 'stop')); } },
  pause: { before: 'running', after: 'paused', act: (id) => api.verb(id, 'pause'), again: async (id) => { await suite.assertKept(id); await ok(api.verb(id, 'pause')); await suite.assertKept(id); } },
  resume: { before: 'paused', after: 'running', act: (id) => api.verb(id, 'resume'), again: (id) => suite.assertKept(id) },
  // Its files are emptied or not, but a reset that was cut short claims to run only if it was begun in vain.
  reset: { before: 'running', after: 'running', failed: 'stopped', also: 'stopped', act: (id) => api.verb(id, 'reset'), again: (id) => ok(api.verb(id, 'reset')) },
  'reset of a stopped one': { before: 'stopped', after: 'stopped', prepare: (id) => OPERATIONS['start after long'].prepare(id), act: (id) => api.verb(id, 'reset'), again: (id) => ok(api.verb(id, 'reset')) },
  delete: { before: 'running', after: 'deleted', also: 'stopped', act: (id) => api.request('DELETE', `/v1/sandboxes/${id}`), again: async (id) => { await ok(api.ensure({ id })); await suite.assertKept(id); await api.remove(id); } },
  // Once it has begun to take files away, a purge is carried through; what is still there before that is whole.
  purge: { before: 'running', after: null, also: ['stopped', 'deleted'], act: (id) => api.verb(id, 'purge'), check: (id) => suite.assertKept(id), again: async (id) => { if (await suite.stateOf(id)) await api.purge(id); } },
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
    again: async (id) => assert.equal(await suite.stateOf(id), null),
  },
  'purge of a kept workspace': {
    before: 'deleted', after: null,
    prepare: (id) => until(() => !loopFiles(instance.dataDir).includes(`workspaces/${id}.img`), { what: 'its disk has left' }),
    act: (id) => api.verb(id, 'purge'), again: async (id) => { if (await suite.stateOf(id)) await api.purge(id); },
  },
  // What is kept of it is whole, and the sandbox goes on: its disk is not left frozen.
  snapshot: {
    before: 'running', after: 'running', act: (id) => api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} }),
    check: async (id, isAcknowledged) => {
      await assertWrites(id);
      const list = await suite.snapshotsOf(id);
      if (isAcknowledged) assert.equal(list.length, 1);
      for (const one of list) await assertCopy(one.id, id);
    },
    again: async (id) => {
      const { json } = await ok(OPERATIONS.snapshot.act(id));
      await assertCopy(json.id, id);
      await suite.dropSnapshots(id);
    },
  },
  'removal of a snapshot': {
    before: 'running', after: 'running', prepare: (id) => ok(OPERATIONS.snapshot.act(id)),
    act: async (id) => api.request('DELETE', `/v1/snapshots/${(await suite.snapshotsOf(id))[0].id}`),
    check: async (id) => { for (const one of await suite.snapshotsOf(id)) await assertCopy(one.id, id); },
    again: (id) => suite.dropSnapshots(id),
  },
  // It has the files of before or those of the snapshot, never half of either.
  restore: {
    before: 'running', after: 'running', also: 'stopped', prepare: (id) => ok(OPERATIONS.snapshot.act(id)),
    act: async (id) => {
      await api.put(id, `${AGENT}/newer`, 'than the snapshot');
      return api.request('POST', `/v1/sandboxes/${id}/restore`, { json: { snapshot: (await suite.snapshotsOf(id))[0].id } });
    },
    check: async (id, isAcknowledged) => {
      await suite.assertKept(id);
      if (isAcknowledged) assert.equal(await api.exists(id, `${AGENT}/newer`), false);
    },
    again: async (id) => {
      await ok(OPERATIONS.restore.act(id));
      assert.equal(await api.exists(id, `${AGENT}/newer`), false);
      await suite.assertKept(id);
      await suite.dropSnapshots(id);
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
      const [{ id: snapshot }] = await suite.snapshotsOf(id);
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
    check: async (id) => { await assertWrites(id); await suite.purgeForks(id); },
    again: async (id) => {
      const { json } = await ok(OPERATIONS.fork.act(id));
      assert.equal((await api.read(json.sandboxes[0].id, `${AGENT}/kept`)).toString(), id);
      await suite.purgeForks(id);
      assert.deepEqual(await suite.snapshotsOf(id), []);
    },
  },
  change: {
    before: 'running', after: 'running', act: change,
    check: async (id, isAcknowledged) => {
      const { labels, resources } = await api.get(id);
      assert.equal(labels.changed === id, resources.disk === '128Mi', 'all of it or nothing');
      if (isAcknowledged) assert.equal(labels.changed, id);
    },
    again: async (id) => { await ok(change(id)); await suite.assertKept(id); },
  },
  // The next daemon begins the launch anew; of a member that its sandbox did not name yet nothing is left.
  'launch that adds a member': {
    before: 'running', after: 'running',
    prepare: async (id) => { await bringRedis(api); await api.put(id, '/workspace/app/index.html', id); },
    act: (id) => api.request('POST', `/v1/sandboxes/${id}/launch`, { json: { services: ['redis'] }, headers: { accept: 'text/event-stream' } }),
    check: async (id) => {
      const find = async () => (await ok(api.request('GET', '/v1/launches', { query: { sandbox: id } }))).json.launches;
      await until(async () => (await find()).every(({ status }) => status !== 'running'), { what: 'the launch is over' });
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

/** Does the operation with the point armed; what is true afterwards is checked. */
async function cut(name, point, action = 'crash') {
  const operation = OPERATIONS[name];
  const id = await suite.prepare(operation.before);
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
  const died = action === 'crash' ? await suite.recover(point) : 'nobody';
  assert.ok(points.actedPid(point), `${point} is reached`);
  const isAcknowledged = answer !== null && answer.status < 300;
  if (!isAcknowledged && answer) assert.ok([500, 502, 503, 507].includes(answer.status), `${answer.status} ${answer.text}`);
  const allowed = isAcknowledged ? [operation.after].flat() : [operation.before, operation.after, operation.failed, operation.also].flat();
  const state = await suite.stateOf(id);
  assert.ok(allowed.map(died === 'keeper' ? afterKeeper : (same) => same).includes(state), `${id} is ${state}, ${isAcknowledged ? 'acknowledged' : `not acknowledged (${answer?.status})`}, ${died} died`);
  await suite.assertWitness(died);
  if (['running', 'stopped', 'paused'].includes(state) || (operation.before === null && operation.after === null)) await operation.check?.(id, isAcknowledged, answer);
  await operation.again(id);
}

for (const [name, list] of Object.entries(CRASHES)) {
  for (const point of chosen(list, name)) {
    test(`${name}, cut short at ${point}`, async () => {
      await cut(name, point);
      await suite.assertNothingRemains();
    });
  }
}

for (const [name, list] of Object.entries(FAILURES)) {
  for (const point of chosen(list, name)) {
    test(`${name}, failed at ${point}`, async () => {
      await cut(name, point, 'fail');
      await suite.assertNothingRemains();
    });
  }
}

test('every point of the table is called once in the sources and is in the lists, and no other is called', { skip: ONLY }, () => {
  const table = points.rows().map(({ name, canFail }) => ({ name, canFail }));
  const byName = (list) => [...list].sort((a, b) => (a.name < b.name ? -1 : 1));
  assert.deepEqual(byName(calledPoints()), byName(table));
  assert.ok(table.length >= 40);
  assert.deepEqual(table.map(({ name }) => name).filter((name) => !CRASHED.has(name)), [], 'points that no test dies at');
  assert.deepEqual(table.filter(({ name, canFail }) => canFail && !FAILED.has(name)), [], 'points that can fail and never do');
});

suite.finish();
