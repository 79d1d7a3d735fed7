// SPDX-License-Identifier: Apache-2.0
// What a sandbox has added, changed and deleted, since its creation and since a snapshot; checkpoints and undo.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { ulid } from './lib/values.mjs';

const { instance, api, finish } = await suite('changes');
const { ok, sandlot } = commandLine(instance);

const sample = await api.create();
const ofImages = { skip: sample.walls.disk === 'ext4_image' ? false : `disks here are of the kind ${sample.walls.disk}` };
await api.purge(sample.id);

const AGENT = '/workspace/agent_workspace';
const sh = (id, command, user = 'root') => api.out(id, { command, user });
const LETTERS = { added: 'A', modified: 'M', deleted: 'D' };

async function page(id, query = {}) {
  const answer = await api.request('GET', `/v1/sandboxes/${id}/changes`, { query });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/** "A path", "M path", "D path" of all pages. */
async function diff(id, query = {}) {
  const lines = [];
  let cursor;
  do {
    const { changes, next_cursor } = await page(id, cursor ? { ...query, cursor } : query);
    for (const one of changes) lines.push(`${LETTERS[one.kind]} ${one.path ?? Buffer.from(one.path_base64, 'base64').toString('latin1')}`);
    cursor = next_cursor;
  } while (cursor);
  return lines;
}

async function take(id) {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.id;
}

const drop = async (id) => assert.equal((await api.request('DELETE', `/v1/snapshots/${id}`)).status, 204);

test('a new sandbox has changed nothing', async () => {
  const { id } = await api.create();
  assert.deepEqual(await page(id), { changes: [], next_cursor: null });
  await api.life(id, 'stop');
  assert.deepEqual(await diff(id), []);
  await api.purge(id);
});

test('what was added, changed and deleted since the creation is told with its size, running or not', async () => {
  const { id } = await api.create();
  await sh(id, `set -e
    echo new > /etc/made; mkdir -p /opt/deep/er; printf 12345 > /opt/deep/er/file; ln -s nowhere /opt/link
    echo more >> /etc/passwd; rm /etc/shells; rm -rf /etc/profile.d
    rm -rf /opt/sandlot/bin; mkdir /opt/sandlot/bin; echo own > /opt/sandlot/bin/own
    chmod 1755 /home; mkdir -p ${AGENT}/sub; echo hello > ${AGENT}/sub/file; touch /tmp/scratch
    echo gone > ${AGENT}/brief; rm ${AGENT}/brief`);
  const expected = ['A /etc/made', 'M /etc/passwd', 'D /etc/profile.d', 'D /etc/shells', 'M /home', 'A /opt/deep', 'A /opt/deep/er', 'A /opt/deep/er/file', 'A /opt/link',
    // The new directory hides all that the old one had.
    'D /opt/sandlot/bin/apt', 'D /opt/sandlot/bin/apt-get', 'D /opt/sandlot/bin/df', 'A /opt/sandlot/bin/own',
    'A /tmp/scratch', `A ${AGENT}/sub`, `A ${AGENT}/sub/file`];
  const lines = await diff(id);
  assert.deepEqual(lines, expected);
  const before = await api.create();
  const { changes } = await page(id);
  const size = (path) => changes.find((one) => one.path === path).size;
  assert.equal(size('/opt/deep/er/file'), 5);
  assert.equal(size(`${AGENT}/sub/file`), 6);
  assert.equal(size('/etc/shells'), Number(await sh(before.id, 'stat -c %s /etc/shells')));
  await api.life(id, 'stop');
  assert.deepEqual(await diff(id), lines);
  assert.equal((await api.get(id)).status, 'stopped');
  await sh(id, 'true');
  assert.deepEqual(await diff(id), lines);
  for (const one of [id, before.id]) await api.purge(one);
});

test('since a snapshot, only what differs from it is told', ofImages, async () => {
  const { id } = await api.create();
  await sh(id, `set -e; cd ${AGENT}; echo one > kept; echo two > changed; echo three > removed; mkdir tree; echo x > tree/x; echo y > tree/y
    mkdir empty; echo same > touched-not; echo mine > /etc/mine; rm /etc/shells; echo line >> /etc/passwd; rm -rf /opt/sandlot/bin`);
  const snapshot = await take(id);
  assert.deepEqual(await diff(id, { since: snapshot }), []);
  await sh(id, `set -e; cd ${AGENT}; echo 2 > changed; rm removed; rm -r tree; chmod 700 empty; echo four > new; ln kept linked
    rm /etc/mine; echo back > /etc/shells; mkdir /opt/sandlot/bin; echo own > /opt/sandlot/bin/own; echo apt > /opt/sandlot/bin/apt; rm /etc/passwd; echo x > /etc/other`);
  const expected = ['D /etc/mine', 'A /etc/other', 'D /etc/passwd', 'A /etc/shells', 'A /opt/sandlot/bin', 'A /opt/sandlot/bin/apt', 'A /opt/sandlot/bin/own',
    `M ${AGENT}/changed`, `M ${AGENT}/empty`, `M ${AGENT}/kept`, `A ${AGENT}/linked`, `A ${AGENT}/new`, `D ${AGENT}/removed`, `D ${AGENT}/tree`];
  assert.deepEqual(await diff(id, { since: snapshot }), expected);
  await api.life(id, 'stop');
  assert.deepEqual(await diff(id, { since: snapshot }), expected);
  assert.equal((await api.request('POST', `/v1/sandboxes/${id}/restore`, { json: { snapshot } })).status, 200);
  assert.deepEqual(await diff(id, { since: snapshot }), []);
  // A copy has other uids on the disk, and the same files.
  const copy = await api.create({ snapshot });
  assert.deepEqual(await diff(copy.id, { since: snapshot }), []);
  await sh(copy.id, `echo more >> ${AGENT}/kept`);
  assert.deepEqual(await diff(copy.id, { since: snapshot }), [`M ${AGENT}/kept`]);
  await drop(snapshot);
  assertError(await api.request('GET', `/v1/sandboxes/${id}/changes`, { query: { since: snapshot } }), 404);
  for (const one of [id, copy.id]) await api.purge(one);
});

const baselines = () => proc.entries(path.join(instance.dataDir, 'state/baselines')).sort();
const hasBaseline = (id) => baselines().some((name) => name.startsWith(id));

test('of a fork and of a sandbox of a snapshot, what it began with is no change, and what it lost is one', ofImages, async () => {
  const source = await api.create();
  await sh(source.id, `set -e; cd ${AGENT}; echo one > kept; echo two > changed; echo three > removed; mkdir tree empty; echo x > tree/x; ln kept linked
    echo mine > /etc/mine; echo line >> /etc/passwd; rm /etc/shells; rm -rf /opt/sandlot/bin`);
  const snapshot = await take(source.id);
  const copy = await api.create({ snapshot });
  const second = await api.create({ snapshot });
  const { json: { sandboxes } } = await api.request('POST', `/v1/sandboxes/${source.id}/fork`, { json: { count: 2 } });
  const all = [copy.id, second.id, ...sandboxes.map((one) => one.id)];
  for (const id of all) assert.deepEqual(await diff(id), [], id);
  const expected = ['D /etc/mine', 'M /etc/passwd', 'A /etc/shells', 'A /opt/sandlot/bin', 'A /opt/sandlot/bin/own', `M ${AGENT}/changed`, `D ${AGENT}/empty`, `A ${AGENT}/new`, `D ${AGENT}/removed`, `A ${AGENT}/tree/y`];
  for (const id of all) {
    await sh(id, `set -e; cd ${AGENT}; echo 2 > changed; rm removed; rmdir empty; echo four > new; echo y > tree/y
      rm /etc/mine; echo line >> /etc/passwd; echo back > /etc/shells; mkdir /opt/sandlot/bin; echo own > /opt/sandlot/bin/own`);
    const lines = (await diff(id)).filter((line) => line !== `M ${AGENT}/tree`);
    assert.deepEqual(lines, expected, id);
  }
  // Who else has the same files, and whether the daemon was away, makes no difference.
  await drop(snapshot);
  await api.purge(source.id);
  await instance.crash();
  await instance.start();
  for (const id of all) assert.deepEqual((await diff(id)).filter((line) => line !== `M ${AGENT}/tree`), expected, id);
  assert.ok(all.every(hasBaseline) && !hasBaseline(snapshot));
  // A purge takes the list along, a delete keeps that of the workspace.
  await api.remove(second.id);
  assert.equal((await api.ensure({ id: second.id })).status, 201);
  assert.deepEqual((await diff(second.id)).filter((line) => line !== `M ${AGENT}/tree`), expected.filter((line) => line.includes(AGENT)));
  for (const id of all) await api.purge(id);
  assert.deepEqual(baselines(), []);
});

test('files of a skeleton are no changes, but what becomes of them is', async () => {
  const base = busybox();
  base.push({ name: 'opt/sandbox-skel' }, { name: 'opt/sandbox-skel/agent_workspace' }, ...['notes', 'readme'].map((name) => ({ name: `opt/sandbox-skel/agent_workspace/${name}`, data: `${name}\n` })));
  const made = await api.request('PUT', '/v1/templates/seeded/archive', { body: layoutArchive(image([base])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(made.status, 200, made.text);
  const { id } = await api.create({ template: 'seeded' });
  assert.equal(await sh(id, `ls ${AGENT}`), 'notes\nreadme\n');
  assert.deepEqual(await diff(id), []);
  await sh(id, `cd ${AGENT}; rm readme; echo more >> notes; echo new > own`);
  assert.deepEqual(await diff(id), [`M ${AGENT}/notes`, `A ${AGENT}/own`, `D ${AGENT}/readme`]);
  await api.purge(id);
  assert.deepEqual(baselines(), []);
  assert.equal((await api.request('DELETE', '/v1/templates/seeded')).status, 204);
});

test('a list of what a sandbox began with that is not whole, or nobody\'s, is as none', ofImages, async () => {
  const source = await api.create();
  await sh(source.id, `echo one > ${AGENT}/one`);
  const snapshot = await take(source.id);
  const { id } = await api.create({ snapshot });
  assert.deepEqual(await diff(id), []);
  const file = path.join(instance.dataDir, 'state/baselines', `${id}.workspace`);
  fs.truncateSync(file, fs.statSync(file).size - 1);
  assert.deepEqual(await diff(id), [`A ${AGENT}/one`]);
  for (const name of [`${ulid()}.workspace`, '7.new', 'else']) fs.writeFileSync(path.join(instance.dataDir, 'state/baselines', name), '');
  await instance.crash();
  await instance.start();
  assert.ok(baselines().every((name) => name.startsWith(id) || name.startsWith(snapshot)), baselines().join());
  await drop(snapshot);
  for (const one of [id, source.id]) await api.purge(one);
  assert.deepEqual(baselines(), []);
});

test('names may be any bytes, and pages are whole together', async () => {
  const { id } = await api.create();
  await sh(id, `cd ${AGENT}; touch "$(printf 'bad\\377name')" "$(printf 'two\\nlines')" 'a b' 'quote"' -- -rf; mkdir a; touch a/b a-b; for i in $(seq 40); do touch a/f$i; done`, 'sandbox');
  const all = await diff(id);
  assert.ok(all.includes(`A ${AGENT}/bad\xffname`) && all.includes(`A ${AGENT}/two\nlines`));
  assert.equal(all.length, 48);
  assert.deepEqual(await diff(id, { limit: 7 }), all);
  assert.deepEqual(await diff(id, { limit: 1 }), all);
  const stdout = await ok(['diff', id]);
  assert.ok(stdout.includes(`A ${AGENT}/a/b\n`) && stdout.includes(`A base64:${Buffer.from(`${AGENT}/bad\xffname`, 'latin1').toString('base64')}\n`), stdout);
  assert.equal(stdout.split('\n').length, all.length + 1);
  await api.purge(id);
});

test('what makes no sense is refused', async () => {
  const { id } = await api.create();
  for (const words of [['show', 'nosuch'], ['restore', id, 'nosuch']]) assert.match((await sandlot(['snapshot', ...words])).stderr, /there is no snapshot whose id begins or ends with "nosuch"/);
  for (const query of [{ limit: 0 }, { limit: 10001 }, { cursor: 'x' }, { cursor: '00' }, { since: '../x' }]) assertError(await api.request('GET', `/v1/sandboxes/${id}/changes`, { query }), 400);
  assertError(await api.request('GET', `/v1/sandboxes/${id}/changes`, { query: { since: ulid() } }), 404);
  const stranger = await ownerApi(api, 'strangers', 'eve');
  assertError(await stranger.request('GET', `/v1/sandboxes/${id}/changes`), 404);
  await api.purge(id);
});

// Checkpoints.

const checkpoints = async (id) => (await api.request('GET', '/v1/snapshots', { query: { sandbox: id } })).json.snapshots.filter((one) => one.checkpoint).map((one) => one.id);

async function tryOut(id, command, body = {}) {
  const answer = await api.tryExec(id, { command, user: 'root', checkpoint: true, ...body });
  assert.ok(answer.status < 300, answer.text);
  return answer;
}

test('a command with a checkpoint can be undone, and the one before it too', ofImages, async () => {
  const { id } = await api.create();
  const first = (await tryOut(id, `echo one > ${AGENT}/state; echo one > /etc/state`)).json.checkpoint;
  const second = (await tryOut(id, `echo two > ${AGENT}/state; rm /etc/state`)).json.checkpoint;
  const third = (await tryOut(id, `rm -rf ${AGENT}/state`)).json.checkpoint;
  // Nothing has changed since: the next command needs no other.
  const idle = await tryOut(id, 'true');
  const fourth = idle.json.checkpoint;
  assert.equal((await tryOut(id, 'true')).json.checkpoint, fourth);
  assert.equal(idle.headers.get?.('sandlot-checkpoint') ?? idle.headers['sandlot-checkpoint'], fourth);
  assert.deepEqual(await checkpoints(id), [first, second, third, fourth]);
  const undo = () => api.request('POST', `/v1/sandboxes/${id}/undo`);
  const look = () => sh(id, `cat ${AGENT}/state /etc/state 2>/dev/null || true`);
  assert.equal((await undo()).status, 200);
  assert.equal(await look(), '');
  assert.equal((await undo()).json.status, 'running');
  assert.equal(await look(), 'two\n');
  assert.equal(await ok(['undo', id]), `${id}\n`);
  assert.equal(await look(), 'one\none\n');
  assert.equal((await undo()).status, 200);
  assert.equal(await look(), '');
  assert.deepEqual(await checkpoints(id), []);
  assert.equal(assertError(await undo(), 409).code, 'no_checkpoint');
  // The other forms of a command.
  const background = await tryOut(id, `echo back > ${AGENT}/state`, { background: true });
  assert.deepEqual(await checkpoints(id), [background.json.checkpoint]);
  await ok(['exec', '--checkpoint', id, '--', 'sh', '-c', `echo line > ${AGENT}/more`]);
  await ok(['undo', id]);
  assert.equal(await sh(id, `ls ${AGENT}`), 'state\n');
  await api.purge(id);
  assert.deepEqual(await checkpoints(id), []);
});

test('a sandbox keeps the last ten checkpoints, which go with a purge and not before', ofImages, async () => {
  const { id } = await api.create();
  const made = [];
  for (let i = 0; i < 12; i++) made.push((await tryOut(id, `echo ${i} > ${AGENT}/n`)).json.checkpoint);
  assert.deepEqual(await checkpoints(id), made.slice(2));
  const { json } = await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
  await api.remove(id);
  assert.deepEqual(await checkpoints(id), made.slice(2));
  await api.purge(id);
  assert.deepEqual(proc.entries(path.join(instance.dataDir, 'snapshots')), [`${json.id}.img`]);
  await drop(json.id);
});

test('a snapshot becomes a template, with the changes as a layer and the workspace as a skeleton', ofImages, async () => {
  const put = (name, body) => api.request('PUT', `/v1/templates/${name}/archive`, { body, headers: { 'content-type': 'application/x-tar' } });
  const base = busybox();
  base.push({ name: 'etc/kept', data: 'kept\n' }, { name: 'etc/removed', data: 'removed\n' });
  assert.equal((await put('origin', layoutArchive(image([base], { config: { Env: ['COLOUR=red'] } })))).status, 200);
  const { id } = await api.create({ template: 'origin' });
  await sh(id, `echo new > /etc/new; rm /etc/removed; echo secret > /tmp/left; echo notes > ${AGENT}/notes`);
  assert.deepEqual((await diff(id)).filter((line) => !line.includes('/tmp')), ['A /etc/new', 'D /etc/removed', `A ${AGENT}/notes`]);
  const snapshot = await take(id);
  await api.purge(id);
  await ok(['template', 'create', 'derived', '--snapshot', snapshot]);
  const { json: made } = await api.request('GET', '/v1/templates/derived');
  assert.deepEqual([made.status, made.source], ['ready', 'snapshot']);
  await drop(snapshot);
  const copy = await api.create({ template: 'derived' });
  assert.equal(await sh(copy.id, 'cat /etc/new /etc/kept /opt/sandbox-skel/agent_workspace/notes /workspace/agent_workspace/notes; ls /etc/removed /tmp/left 2>/dev/null; echo $COLOUR'), 'new\nkept\nnotes\nnotes\nred\n');
  assert.deepEqual((await diff(copy.id)).filter((line) => line.includes('/etc/')), []);
  await api.purge(copy.id);
  const layout = await api.request('GET', '/v1/templates/derived/archive');
  assert.equal(layout.status, 200);
  for (const name of ['derived', 'origin']) assert.equal((await api.request('DELETE', `/v1/templates/${name}`)).status, 204);
  // What cannot become one.
  const host = await api.create();
  const other = await take(host.id);
  assert.equal(assertError(await api.request('POST', '/v1/templates', { json: { name: 'derived', snapshot: other } }), 400).code, 'no_image');
  assertError(await api.request('POST', '/v1/templates', { json: { name: 'derived', snapshot: ulid() } }), 404);
  assertError(await api.request('POST', '/v1/templates', { json: { name: 'derived', snapshot: 'x'.repeat(25) } }), 400);
  assertError(await api.request('POST', '/v1/templates', { json: { name: 'derived', snapshot: other, image: 'a' } }), 400);
  await drop(other);
  await api.purge(host.id);
});

finish();
