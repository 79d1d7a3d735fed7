// SPDX-License-Identifier: Apache-2.0
// What files of projects are taken for and which are taken at all, that uploads of any size and kind are not held in the
// daemon's memory, and which template the sandboxes of a project have.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';

const { instance, api, finish } = await suite('project_files', { width: 2 });
const MI = 1 << 20;
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

async function project(name) {
  const made = await api.request('POST', '/v1/projects', { json: { name } });
  assert.equal(made.status, 201, made.text);
  return made.json.id;
}

const remove = async (id) => assert.equal((await api.request('DELETE', `/v1/projects/${id}`)).status, 204);
const put = (id, path, body) => api.request('PUT', `/v1/projects/${id}/files`, { query: { path }, body, headers: { 'content-type': 'application/octet-stream' } });
const archive = (id, body) => api.request('PUT', `/v1/projects/${id}/archive`, { body, headers: { 'content-type': 'application/x-tar' } });
const files = async (id) => (await api.request('GET', `/v1/projects/${id}/files`)).json.files;

/** The pieces of a form with files. */
function* form(list) {
  for (const [name, pieces] of list) {
    yield Buffer.from(`--cut\r\nContent-Disposition: form-data; name="files"; filename="${name}"\r\nContent-Type: text/plain\r\n\r\n`);
    yield* pieces;
    yield Buffer.from('\r\n');
  }
  yield Buffer.from('--cut--\r\n');
}
const upload = (id, list) => api.request('POST', `/v1/projects/${id}/files`, { body: form(list), headers: { 'content-type': 'multipart/form-data; boundary=cut' } });

/** The type by what is in a file; where that says little, by the end of its name. */
const TYPES = [
  ['photo.txt', PNG, 'image/png'], ['photo', GIF, 'image/gif'], ['archive.png', zlib.gzipSync('x'), 'application/gzip'],
  ['program', fs.readFileSync('/bin/true').subarray(0, 20000), /^application\/x-(pie-)?(executable|sharedlib)$/],
  ['run', '#!/bin/sh\necho\n', 'text/x-shellscript'], ['notes.png', 'only words\n', 'text/plain'],
  ['page.txt', '<!doctype html><title>a</title>', 'text/html'], ['a.json', '{"a": 1}', 'application/json'], ['a.ts', 'const a: number = 1;\n', 'text/x-typescript'],
  ['a.vue', '<template><p>a</p></template>\n', 'text/x-vue'], ['empty.py', '', 'text/x-python'], ['bytes.bin', Buffer.from([0, 1, 2, 255, 254]), 'application/octet-stream'],
];

test('the type of a file is what it holds, and what its name says where that is not enough', async () => {
  const id = await project('types');
  for (const [name, content, type] of TYPES) {
    const { json } = await put(id, name, content);
    if (type instanceof RegExp) assert.match(json.mime_type, type, name);
    else assert.equal(json.mime_type, type, name);
  }
  await remove(id);
});

/** How far the memory of the daemon has grown at most while `work` goes on. */
async function growth(work) {
  const { pid } = instance.daemon;
  const peak = () => Number(proc.statusField(pid, 'VmHWM').split(' ')[0]) * 1024;
  fs.writeFileSync(`/proc/${pid}/clear_refs`, '5'); // the peak is what it has now
  const before = peak();
  await work();
  return peak() - before;
}

/** So many bytes in pieces that are never the same. */
function* pieces(bytes, seed) {
  for (let i = 0; i < bytes / MI; i++) {
    const piece = Buffer.alloc(MI, `${seed} ${i} `);
    yield piece;
  }
}

test('large uploads, raw, as a form and as an archive, go to the disk and not into memory', async () => {
  const id = await project('large');
  const LARGE = 128 * MI;
  const grown = {
    raw: await growth(async () => assert.equal((await put(id, 'raw', pieces(LARGE, 'raw'))).status, 201)),
    form: await growth(async () => assert.equal((await upload(id, [['one', pieces(LARGE / 2, 'one')], ['two', pieces(LARGE / 2, 'two')]])).status, 201)),
    archive: await growth(async () => assert.equal((await archive(id, tar([{ name: 'in/archive', data: Buffer.concat([...pieces(LARGE, 'archive')]) }]))).status, 200)),
  };
  assert.deepEqual((await files(id)).map(({ path, size }) => [path, size]), [['in/archive', LARGE], ['one', LARGE / 2], ['raw', LARGE], ['two', LARGE / 2]]);
  for (const [how, bytes] of Object.entries(grown)) assert.ok(bytes < LARGE / 4, `${how}: ${Math.round(bytes / MI)} MiB more`);
  await remove(id);
});

test('sandboxes start from the template that their project names, unless they name one', async () => {
  const put = await api.request('PUT', '/v1/templates/small/archive', { body: layoutArchive(image([busybox()])), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(put.status, 200, put.text);
  const id = await project('small');
  const defaults = (environment) => api.request('PATCH', `/v1/projects/${id}`, { json: { defaults: { environment_type: environment } } });
  const create = async (body) => (await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: body })).json;
  assert.equal((await defaults('small')).status, 200);
  const first = await create({});
  const other = await create({ session: 'other', template: 'host' });
  assert.deepEqual([first.template, other.template], ['small', 'host']);
  assert.equal((await api.exec(first.id, 'test -e /bin/bash')).exit_code, 1, 'it has nothing but what the image has');
  assert.equal((await defaults('host')).status, 200);
  const later = await create({ session: 'later' });
  assert.equal(later.template, 'host');
  await api.life(first.id, 'stop');
  assert.equal((await api.life(first.id, 'start')).template, 'small', 'what a sandbox is made of stays');
  for (const one of [first, other, later]) await api.purge(one.id);
  await remove(id);
  assert.equal((await api.request('DELETE', '/v1/templates/small')).status, 204);
});

test('types that the operator does not allow are refused with the reason, however they come, and nothing of them is left', async () => {
  await instance.terminate();
  await instance.start(['--project-types', 'text/*,image/png']);
  const id = await project('allowed');
  assert.equal((await put(id, 'photo.gif', PNG)).json.mime_type, 'image/png', 'by content');
  const check = (answer) => {
    assert.equal(assertError(answer, 415).code, 'file_type_refused');
    assert.match(answer.json.error.message, /bad\.png is image\/gif, and of files only text\/\*,image\/png are taken/);
    assert.match(answer.json.error.remediation ?? answer.text, /--project-types/);
  };
  check(await put(id, 'bad.png', GIF));
  check(await upload(id, [['good.txt', [Buffer.from('good')]], ['bad.png', [GIF]]]));
  check(await archive(id, tar([{ name: 'good.txt', data: 'good' }, { name: 'bad.png', data: GIF }])));
  assert.deepEqual((await files(id)).map(({ path }) => path), ['photo.gif']);
  assert.equal((await put(id, 'good.txt', 'good')).status, 201);
  await remove(id);
});

finish();
