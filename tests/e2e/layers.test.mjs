// SPDX-License-Identifier: Apache-2.0
// Layers of images: who uses them keeps them, what nothing uses goes, and what an owner brings in is counted.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { busybox, image, layoutArchive, registryServer, sha256 } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { until } from './lib/wait.mjs';

const images = {};
const registry = await registryServer(images);
const { instance, api, finish } = await suite('layers', { args: ['--registry', registry.host, '--registry-prefix', '', '--registry-plain', registry.host, '--layer-retention', 'never'] });
const { sandlot, ok } = commandLine(instance);

const base = busybox();
const BASE = sha256(tar(base)).slice(7);
/** The name of a layer of items. */
const named = (items) => sha256(tar(items)).slice(7);
const own = (text) => [{ name: 'own' }, { name: 'own/text', data: text }];
const layersDir = () => path.join(instance.dataDir, 'layers');
const layers = () => fs.readdirSync(layersDir()).filter((name) => !name.startsWith('.'));
const stacks = () => fs.readdirSync(path.join(layersDir(), '.stacks'));

/** A stack that has a layer. */
const stackOf = (name) => stacks().find((one) => {
  const dir = path.join(layersDir(), '.stacks', one);
  return fs.readdirSync(dir).some((link) => fs.readlinkSync(path.join(dir, link)).endsWith(name));
});

async function put(name, items, who = api) {
  const answer = await who.request('PUT', `/v1/templates/${name}/archive`, { body: layoutArchive(image([base, ...items])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

async function remove(name, who = api) {
  const answer = await who.request('DELETE', `/v1/templates/${name}`);
  assert.equal(answer.status, 204, answer.text);
}

async function prune(json) {
  const answer = await api.request('POST', '/v1/templates/prune', { json });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
const names = ({ removed }, kind = 'layer') => removed.filter((one) => one.kind === kind).map((one) => one.name.slice(7));

test('what nothing uses is removed, and told with what it took; what is used stays', async () => {
  const kept = own('kept');
  const gone = own('gone'.repeat(100000));
  await put('kept', [kept]);
  const { disk_bytes: size } = await put('gone', [gone]);
  assert.ok(size > fs.statSync('/bin/busybox').size + 400000 && size < fs.statSync('/bin/busybox').size + 600000, `${size} bytes on disk`);
  await remove('gone');
  const before = layers();
  const dry = await prune({ dry_run: true });
  assert.deepEqual([dry.dry_run, dry.layers, dry.stacks, names(dry)], [true, 1, 1, [named(gone)]]);
  assert.ok(dry.bytes >= 400000 && dry.bytes < 500000, `${dry.bytes} bytes`);
  assert.deepEqual(layers(), before, 'only told');
  const done = await prune();
  assert.deepEqual({ ...done, dry_run: true }, dry);
  assert.deepEqual(layers().sort(), [BASE, named(kept)].sort());
  assert.equal(stacks().length, 1);
  assert.deepEqual(await prune(), { dry_run: false, layers: 0, stacks: 0, bytes: 0, removed: [] });
  const { id } = await api.create({ template: 'kept' });
  assert.equal((await api.exec(id, { command: 'cat /own/text' })).stdout, 'kept');
  await api.purge(id);
  await remove('kept');
  await prune();
});

test('a layer that two owners brought stays when one of them removes it', async () => {
  const shared = own('shared');
  const alice = await ownerApi(api, 'acme', 'alice');
  const bob = await ownerApi(api, 'other', 'bob');
  await put('app', [shared], alice);
  await put('app', [shared], bob);
  await remove('app', alice);
  assert.deepEqual(names(await prune()), []);
  const { id } = await bob.create({ template: 'app' });
  assert.equal((await bob.exec(id, { command: 'cat /own/text' })).stdout, 'shared');
  await bob.purge(id);
  await remove('app', bob);
  assert.deepEqual(names(await prune()).sort(), [BASE, named(shared)].sort());
});

test('a stopped sandbox keeps the layers of its version, also when its template has none of them any more', async () => {
  await put('app', [own('one')]);
  // Else it would take the newest version when it starts.
  assert.equal((await api.request('PATCH', '/v1/templates/app', { json: { pinned: true } })).status, 200);
  const { id } = await api.create({ template: 'app' });
  await api.life(id, 'stop');
  await put('app', [own('two')]);
  assert.deepEqual(names(await prune()), []);
  assert.equal((await api.exec(id, { command: 'cat /own/text' })).stdout, 'one');
  await api.purge(id);
  assert.deepEqual(names(await prune()), [named(own('one'))]);
  await remove('app');
  assert.deepEqual(names(await prune()).sort(), [BASE, named(own('two'))].sort());
});

test('a snapshot keeps its layers, and a workspace that was left does not', async () => {
  await put('app', [own('snapped')]);
  const { id } = await api.create({ template: 'app' });
  const taken = await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
  await api.remove(id);
  await remove('app');
  if (taken.status === 201) { // disks of some runs have none
    assert.deepEqual(names(await prune()), []);
    const copy = await api.create({ snapshot: taken.json.id });
    assert.equal((await api.exec(copy.id, { command: 'cat /own/text' })).stdout, 'snapped');
    await api.purge(copy.id);
    assert.equal((await api.request('DELETE', `/v1/snapshots/${taken.json.id}`)).status, 204);
  }
  assert.deepEqual(names(await prune()).sort(), [BASE, named(own('snapped'))].sort());
  await api.purge(id);
});

test('the cache of builds keeps the layers of its steps until it is cleared', async () => {
  await put('base', []);
  const made = await api.request('POST', '/v1/templates', { json: { name: 'built', recipe: { from: 'base', run: ['echo built > /built'] } } });
  assert.equal(made.status, 202, made.text);
  await until(async () => (await api.request('GET', '/v1/templates/built')).json.status !== 'building', { what: 'it is built' });
  assert.equal((await api.request('GET', '/v1/templates/built')).json.status, 'ready');
  await remove('built');
  assert.deepEqual(names(await prune()), [], 'the step is in the cache');
  await api.request('DELETE', '/v1/build-cache');
  assert.equal(names(await prune()).length, 1);
  await remove('base');
  await prune();
});

test('an image that was pruned is fetched again when it is needed', async () => {
  images['app:1'] = image([base, own('fetched')]);
  const run = async () => {
    const { id } = await api.create({ template: `${registry.host}/app:1` });
    const { stdout } = await api.exec(id, { command: 'cat /own/text' });
    await api.purge(id);
    return stdout;
  };
  const fetched = () => registry.asked.filter((one) => one.path.includes('/blobs/')).length;
  assert.equal(await run(), 'fetched');
  const once = fetched();
  assert.equal(await run(), 'fetched');
  assert.equal(fetched(), once, 'it is there');
  assert.equal(names(await prune()).length, 2);
  assert.equal(await run(), 'fetched');
  assert.equal(fetched(), 2 * once);
});

test('creates that race with prunes start or are fetched anew, and none fails', async () => {
  images['race:1'] = image([base, own('raced')]);
  const template = `${registry.host}/race:1`;
  let over = false;
  const pruning = (async () => {
    while (!over) {
      await prune(); // it has no name of its own, so it is forgotten
    }
  })();
  for (let i = 0; i < 8; i++) { // each is fetched at least once, and pruned before the next
    const { id } = await api.create({ template });
    assert.equal((await api.exec(id, { command: 'cat /own/text' })).stdout, 'raced');
    await api.purge(id);
  }
  over = true;
  await pruning;
});

test('layers that were not used for the time of the setting go by themselves, used ones stay', async () => {
  await put('stays', [own('stays')]);
  await put('goes', [own('goes')]);
  await remove('goes');
  await instance.terminate();
  sql(instance, 'UPDATE layer_files SET used_at = 1');
  await instance.start(['--layer-retention', '1h']);
  await until(() => !layers().includes(named(own('goes'))), { what: 'the layer is collected' });
  assert.ok(layers().includes(named(own('stays'))));
  // On a disk with less free than its reserve nothing that is unused is worth keeping.
  await put('goes', [own('goes')]);
  await remove('goes');
  await instance.terminate();
  await instance.start(['--disk-reserve', `${Math.ceil((await fs.promises.statfs(instance.dataDir)).bavail * 4096 / 2 ** 30) + 64}Gi`], { isReady: false });
  await until(() => !layers().includes(named(own('goes'))), { what: 'the layer is collected' });
  assert.ok(layers().includes(named(own('stays'))));
  await instance.terminate();
  await instance.start();
});

test('layers that the database knows nothing of stay until they are asked for', async () => {
  await put('lost', [own('lost')]);
  const name = named(own('lost'));
  const stack = stackOf(name);
  await remove('lost');
  sql(instance, `DELETE FROM layers WHERE diff_id = '${name}'; DELETE FROM layer_files WHERE name IN ('${name}', '${stack}')`);
  assert.ok(!names(await prune()).includes(name));
  assert.ok(layers().includes(name));
  const found = (await prune({ dry_run: true, orphans: true })).removed.filter((one) => one.orphan).map((one) => [one.kind, one.name.slice(7)]);
  assert.ok(found.some(([kind, one]) => kind === 'stack' && one === stack));
  const { stdout, stderr } = await sandlot(['template', 'prune', '--orphans']);
  assert.match(stdout, new RegExp(`sha256:${name}\t.*\torphan`));
  assert.match(stderr, /1 layer removed, 0\.0 MiB/);
  assert.ok(!layers().includes(name) && !stacks().includes(stack));
});

test('what an owner brings in is counted, and refused before it is written', async () => {
  const carol = await ownerApi(api, 'acme', 'carol');
  const quota = (images) => api.request('PUT', '/v1/quotas/acme/carol', { json: { images } });
  const used = async () => (await api.request('GET', '/v1/quotas/acme/carol')).json.used.images;
  const size = fs.statSync('/bin/busybox').size;
  assert.equal((await quota('100Mi')).status, 200);
  await put('first', [own('x')], carol);
  const before = await used();
  assert.match(before, /^\d/);
  assert.equal((await quota(size + 200000)).status, 200);
  const big = own(Buffer.alloc(400000, 'x').toString());
  const answer = await carol.request('PUT', '/v1/templates/second/archive', { body: layoutArchive(image([base, big])), headers: { 'content-type': 'application/x-tar' } });
  assert.match(assertError(answer, 429).message, /quota images of user carol is used up/);
  assert.equal(await used(), before, 'nothing of it is counted');
  assert.ok(!layers().includes(named(big)), 'nothing of it stays');
  // From a registry the sizes are known before anything is fetched.
  const random = [{ name: 'random', data: (await import('node:crypto')).randomBytes(400000) }];
  images['big:1'] = image([base, random]);
  const asked = registry.asked.length;
  await carol.request('POST', '/v1/templates', { json: { name: 'third', image: `${registry.host}/big:1` } });
  await until(async () => (await carol.request('GET', '/v1/templates/third')).json.status !== 'building', { what: 'its end' });
  assert.match((await carol.request('GET', '/v1/templates/third')).json.error, /quota images/);
  assert.ok(!registry.asked.slice(asked).some((one) => one.path.endsWith(images['big:1'].manifest.layers[1].digest)), 'its layer was not asked for');
  await remove('first', carol);
  await prune();
  assert.equal(await used(), '0');
  await api.request('DELETE', '/v1/quotas/acme/carol');
});

/** The host's Python with as much of its library as compiling the rest needs, and no byte code. */
function python() {
  const list = (command, ...args) => execFileSync(command, args, { encoding: 'utf8' }).trim().split('\n');
  const files = new Set([
    ...list('/usr/bin/python3', '-I', '-c', 'import compileall, json, re, sys, sysconfig; sysconfig.get_paths(); print("\\n".join(sorted(m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None))))'),
    ...list('ldd', '/usr/bin/python3').flatMap((line) => line.match(/\/\S+/) ?? []),
  ]);
  const item = (file, name = file) => ({ name: name.slice(1), data: fs.readFileSync(file), mode: 0o755, mtime: Math.floor(fs.statSync(file).mtimeMs / 1000) });
  return [item('/usr/bin/python3'), ...[...files].map((file) => item(file))];
}

test('the library of Python is compiled once, into a layer of its own', async () => {
  const items = python();
  const before = layers();
  await put('python', [items]);
  const made = layers().filter((name) => !before.includes(name) && ![BASE, named(items)].includes(name));
  assert.equal(made.length, 1, 'one layer more than the image has');
  const { id } = await api.create({ template: 'python' });
  const loaded = (await api.exec(id, { argv: ['python3', '-v', '-c', 'import json'] })).stderr;
  assert.match(loaded, /code object from '\/usr\/lib\/python3[^']*\/json\/__pycache__\/__init__\./);
  assert.doesNotMatch(loaded, /# wrote /, 'nothing is compiled again');
  await api.purge(id);
  const count = layers().length;
  await put('again', [items]);
  assert.equal(layers().length, count, 'the layer is taken from the cache');
  const compiled = [{ name: made[0], data: '' }, ...items, { name: 'usr/lib/python3.99/os.py', data: '' }, { name: 'usr/lib/python3.99/__pycache__/os.cpython-399.pyc', data: '' }];
  await put('compiled', [compiled]);
  assert.equal(layers().length, count + 1, 'one with byte code stays as it is');
  for (const name of ['python', 'again', 'compiled']) await remove(name);
  await api.request('DELETE', '/v1/build-cache');
  await prune();
});

test('files of snapshots and layers without a row are listed as orphans, and purged by their names', async () => {
  const name = named(own('orphan'));
  await put('orphan', [own('orphan')]);
  const { id } = await api.create({ template: 'orphan' });
  const taken = await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
  await api.purge(id);
  await remove('orphan');
  const stack = stackOf(name);
  sql(instance, `DELETE FROM snapshots; DELETE FROM layers WHERE diff_id = '${name}'; DELETE FROM layer_files WHERE name IN ('${name}', '${stack}')`);
  const expected = [...(taken.status === 201 ? [['snapshot', taken.json.id]] : []), ['stack', stack], ['layer', name]];
  const { json } = await api.request('GET', '/v1/orphans');
  assert.deepEqual(json.orphans.map((one) => [one.kind, one.id]), expected);
  const paged = [];
  for (let cursor; cursor !== null;) {
    const page = (await api.request('GET', '/v1/orphans', { query: { limit: 1, ...(cursor && { cursor }) } })).json;
    paged.push(...page.orphans);
    cursor = page.next_cursor;
  }
  assert.deepEqual(paged, json.orphans);
  assert.match((await sandlot(['ls', '--orphans'])).stdout, new RegExp(`${name} +layer`));
  assert.equal(assertError(await api.request('DELETE', `/v1/orphans/${name}`), 409).code, 'layer_in_use');
  for (const [, one] of expected) await ok(['purge', '--orphan', one]);
  assert.deepEqual((await api.request('GET', '/v1/orphans')).json.orphans, []);
  assert.ok(!layers().includes(name) && !stacks().includes(stack));
  assertError(await api.request('DELETE', `/v1/orphans/${BASE}`), 404);
  assert.ok(layers().includes(BASE), 'what has a row is no orphan');
  await prune();
});

test('the outside world closes', () => {
  registry.server.close();
  registry.server.closeAllConnections();
});

finish();
