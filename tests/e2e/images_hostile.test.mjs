// SPDX-License-Identifier: Apache-2.0
// Images that are made to harm (F12, F18, U05 to U07), and snapshots, forks and exports of a sandbox that moves its
// files about meanwhile (F19): what comes of them stays inside, or is refused, and the host is as it was.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive, sha256 } from './lib/images.mjs';
import { suite } from './lib/suite.mjs';
import { pax, tar } from './lib/tar.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('images_hostile');
const canary = fs.mkdtempSync(path.join(os.tmpdir(), 'canary-'));
fs.chmodSync(canary, 0o777);
after(() => fs.rmSync(canary, { recursive: true }));

const base = busybox();
const put = (name, body) => api.request('PUT', `/v1/templates/${name}/archive`, { body, headers: { 'content-type': 'application/x-tar' } });
const layers = () => fs.readdirSync(path.join(instance.dataDir, 'layers')).filter((name) => !name.startsWith('.')).sort();

/** What a sandbox of an image says, or the refusal of its creation. */
async function tryImage(name, archive, command, more = {}) {
  const made = await put(name, archive);
  if (made.status !== 200) return { refused: assertError(made, 400) };
  const created = await api.request('POST', '/v1/sandboxes', { json: { template: name, ...more } });
  if (created.status !== 201) return { refused: assertError(created, [400, 409, 422]) };
  const answer = await api.exec(created.json.id, { command, user: 'root', cwd: '/' });
  await api.purge(created.json.id);
  return answer;
}

// What sandboxes mount something over has to be a directory. All else is looked up from inside.
const MOUNTED = ['dev', 'proc', 'sys', 'workspace'];
for (const name of [...MOUNTED, 'etc', 'tmp', 'opt']) {
  test(`F12: an image whose /${name} is a link out is refused, or shows nothing of the host and writes nothing there`, async () => {
    fs.writeFileSync(path.join(canary, 'seen'), 'host');
    for (const target of [canary, '/proc/self/root']) {
      const items = [...base.filter((item) => !item.name.startsWith(name)), { name, type: 'symlink', target }];
      const { refused, stdout } = await tryImage('linked', layoutArchive(image([items])), `echo up; cat /${name}/seen; echo x > /${name}/written; ls /dev/null /proc/self/status /workspace`);
      assert.equal(refused?.code, MOUNTED.includes(name) ? 'invalid_root' : undefined, target);
      if (refused) assert.ok(refused.message.includes(`at /${name}, which is no directory`), refused.message);
      else assert.doesNotMatch(stdout, /^up\n(.|\n)*host/);
      assert.deepEqual(fs.readdirSync(canary), ['seen'], target);
    }
  });
}

test('F12: a file in the place of a directory is told as well', async () => {
  const { refused } = await tryImage('linked', layoutArchive(image([[...base, { name: 'dev', data: 'x' }]])), 'true');
  assert.equal(refused.code, 'invalid_root');
});

/** The attributes of a file, as root of the host sees them. */
const attributesOf = (file) => execFileSync('python3', ['-c', 'import os, sys; print(" ".join(sorted(os.listxattr(sys.argv[1], follow_symlinks=False))))', file], { encoding: 'utf8' }).trim();

test('F18: attributes that mean something to the host are left out and that is told, others stay', async () => {
  const items = [
    pax({ 'SCHILY.xattr.trusted.overlay.opaque': 'y', 'SCHILY.xattr.trusted.overlay.redirect': '/etc', 'SCHILY.xattr.user.kept': 'yes' }), { name: 'srv' },
    pax({ 'SCHILY.xattr.security.capability': '\x01\x00\x00\x02\xff', 'SCHILY.xattr.security.ima': 'x', 'SCHILY.xattr.user.overlay.opaque': 'y', 'SCHILY.xattr.user.kept': 'yes' }), { name: 'srv/tool', data: 'x', mode: 0o755 },
  ];
  const made = await put('attributes', layoutArchive(image([base, [{ name: 'srv' }, { name: 'srv/below', data: 'x' }], items])));
  assert.equal(made.status, 200, made.text);
  assert.deepEqual(made.json.left_out, { attributes: 2, devices: 0 });
  assert.equal((await put('plain', layoutArchive(image([base])))).json.left_out, null);
  const place = execFileSync('find', [path.join(instance.dataDir, 'layers'), '-path', '*/srv/tool'], { encoding: 'utf8' }).trim();
  assert.match(place, /srv\/tool$/, 'the layer is there');
  assert.deepEqual([attributesOf(place), attributesOf(path.dirname(place))], ['user.kept', 'user.kept']);
  const { id } = await api.create({ template: 'attributes' });
  assert.equal(await api.out(id, 'ls /srv'), 'below\ntool\n', 'nothing is hidden');
  await api.purge(id);
});

test('U05: what lies about itself is refused, and nothing of it stays', async () => {
  const lies = {
    'a diff id that is another': (one) => { one.config.rootfs.diff_ids[1] = sha256('x'); },
    'a diff id that is a path': (one) => { one.config.rootfs.diff_ids[1] = 'sha256:../../../../etc/passwd'; },
    'a digest that is a path': (one) => { one.manifest.layers[1].digest = 'sha256:../../../../../../etc/passwd'; },
    'a digest of another kind': (one) => { one.manifest.layers[1].digest = 'md5:d41d8cd98f00b204e9800998ecf8427e'; },
    'a size that is too small': (one) => { one.manifest.layers[1].size -= 1; },
    'a size that is too large': (one) => { one.manifest.layers[1].size += 1; },
    'a size below zero': (one) => { one.manifest.layers[1].size = -1; },
    'fewer diff ids than layers': (one) => { one.config.rootfs.diff_ids.pop(); },
    'a hundred thousand layers': (one) => { one.manifest.layers = Array(100_000).fill(one.manifest.layers[1]); one.config.rootfs.diff_ids = Array(100_000).fill(one.config.rootfs.diff_ids[1]); },
  };
  for (const [what, lie] of Object.entries(lies)) {
    const before = layers();
    const made = image([base, [{ name: 'v', data: what }]]);
    const one = { manifest: made.manifest, config: JSON.parse(made.blobs.get(made.manifest.config.digest)) };
    lie(one);
    const config = Buffer.from(JSON.stringify(one.config));
    Object.assign(made.manifest.config, { digest: sha256(config), size: config.length });
    made.blobs.set(sha256(config), config);
    made.manifestBlob = Buffer.from(JSON.stringify(made.manifest));
    assertError(await put('liar', layoutArchive(made)), [400, 413]);
    assert.equal((await api.request('GET', '/v1/templates/liar')).status, 404, what);
    assert.deepEqual(layers().filter((name) => !before.includes(name) && name !== sha256(tar(base)).slice(7)), [], what);
  }
});

test('U05: an index that names itself, and one of indexes without an end, are refused', async () => {
  const INDEX = 'application/vnd.oci.image.index.v1+json';
  const made = image([base]);
  let [digest, size] = [sha256(made.manifestBlob), made.manifestBlob.length];
  let mediaType = made.manifest.mediaType;
  for (let depth = 0; depth < 50; depth++) {
    const index = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [{ mediaType, digest, size }], annotations: { depth: `${depth}` } }));
    [digest, size, mediaType] = [sha256(index), index.length, INDEX];
    made.blobs.set(digest, index);
  }
  made.manifestBlob = made.blobs.get(digest);
  assertError(await put('deep', layoutArchive(made)), 400);
});

test('U06: a config that no sandbox could have is refused, or does not harm', async () => {
  const marker = path.join(canary, 'marker');
  const configs = {
    'a user beyond the range': { User: '4294967295' },
    'a user below zero': { User: '-1' },
    'a user with a line end': { User: 'root\nevil:x:0:0::/:/bin/sh' },
    'a user that is a path': { User: '../../etc/passwd' },
    'a variable with a NUL': { Env: ['A=b\0c'] },
    'a variable without a name': { Env: ['=x'] },
    'a variable that is none': { Env: ['no sign of equality'] },
    'a directory that is a descriptor': { WorkingDir: '/proc/self/fd/8' },
    'a directory with dots': { WorkingDir: '/../../../../..' },
    'a directory that is not absolute': { WorkingDir: 'proc/self/cwd' },
    'a volume over /proc': { Volumes: { '/proc': {}, '/dev': {}, '/sys': {}, '/': {}, '/workspace': {}, '/etc/../..': {} } },
    'a volume of dots': { Volumes: { '../../../../../../tmp': {}, [canary]: {} } },
    'ports without sense': { ExposedPorts: { '99999/tcp': {}, '-1': {}, 'x': {}, '0/tcp': {} } },
    'labels that other programs obey': { Labels: { 'io.katacontainers.config.hypervisor.path': '/bin/sh', 'run.oci.hooks.stdin': marker, 'sandlot.network': 'internet', 'devices': '/dev/sda' } },
    'a program that is none': { Entrypoint: ['/bin/sh', '-c', `echo x > ${marker}`], Cmd: ['\n'] },
  };
  for (const [what, config] of Object.entries(configs)) {
    const answer = await tryImage('config', layoutArchive(image([base], { config })), 'echo up; id -u; ls /dev/null; pwd');
    if (answer.refused) assert.ok(answer.refused.message.length > 10, what);
    else assert.match(answer.stdout, /^up\n0\n\/dev\/null\n/, `${what}: ${answer.stdout}${answer.stderr}`);
    assert.deepEqual(fs.readdirSync(canary), ['seen'], what);
  }
});

test('U06: a variable with a line end is one variable', async () => {
  const answer = await tryImage('lines', layoutArchive(image([base], { config: { Env: ['A=one\nPATH=/evil\nB=two', 'PATH=/bin'] } })), 'echo "$PATH"; echo "${B-none}"');
  if (answer.refused) return;
  assert.equal(answer.stdout, '/bin\nnone\n');
});

test('U07: a layer of very many whiteouts and opaque directories is unpacked, and hides what they name', async () => {
  const count = process.env.E2E_FULL ? 100_000 : 10_000;
  const many = (make) => Array.from({ length: count }, (_, i) => make(i)).flat();
  const files = [{ name: 'srv' }, ...many((i) => (i % 10 ? { name: `srv/f${i}`, data: '' } : [{ name: `srv/d${i}` }, { name: `srv/d${i}/below`, data: '' }]))];
  const whiteouts = many((i) => (i % 10 ? { name: `srv/.wh.f${i}`, data: '' } : { name: `srv/d${i}/.wh..wh..opq`, data: '' }));
  const made = await put('many', layoutArchive(image([base, files, whiteouts])));
  assert.equal(made.status, 200, made.text);
  const { id } = await api.create({ template: 'many' });
  assert.equal(await api.out(id, 'ls /srv | wc -l; find /srv -name below | wc -l'), `${count / 10}\n0\n`);
  await api.purge(id);
});

test('F19: snapshots, forks and exports of a sandbox that moves directories and links about are whole, and lead nowhere', async (t) => {
  assert.equal((await put('racing', layoutArchive(image([[...base, ...['mv', 'ln'].map((name) => ({ name: `bin/${name}`, type: 'symlink', target: 'busybox' }))]])))).status, 200);
  const { id, walls } = await api.create({ template: 'racing' });
  if (walls.disk !== 'ext4_image') return t.skip(`disks here are of the kind ${walls.disk}`);
  const cwd = '/workspace/agent_workspace';
  const race = `mkdir one; echo whole > one/file; ln -s ${canary} link; while :; do mv one two; ln -sfn /etc link; mv two one; ln -sfn ${canary} link; done`;
  assert.equal((await api.tryExec(id, { command: race, cwd, background: true })).status, 201);
  await until(async () => (await api.exec(id, { command: 'readlink link', cwd })).exit_code === 0, { what: 'it moves files about' });
  const before = fs.readdirSync(canary);
  for (let round = 0; round < 4; round++) {
    const taken = await api.request('POST', `/v1/sandboxes/${id}/snapshots`, { json: {} });
    assert.equal(taken.status, 201, taken.text);
    const file = path.join(instance.dataDir, 'snapshots', `${taken.json.id}.img`);
    const { status, stdout } = spawnSync('e2fsck', ['-fn', file], { encoding: 'utf8' });
    assert.equal(status, 0, stdout);
    const { json: { sandboxes: [fork] } } = await api.request('POST', `/v1/sandboxes/${id}/fork`, { json: {} });
    const restored = await api.create({ snapshot: taken.json.id });
    for (const copy of [fork.id, restored.id]) {
      const said = await api.out(copy, { command: 'ls -d one two 2>/dev/null; cat one/file two/file 2>/dev/null; readlink link; true', cwd });
      assert.match(said, new RegExp(`^(one|two)\nwhole\n((/etc|${canary})\n)?$`)); // ln removes a link before it makes the next
      await api.purge(copy);
    }
    assert.ok([200, 409, 503].includes((await api.request('GET', `/v1/sandboxes/${id}/changes`)).status));
    const made = await api.request('POST', '/v1/templates', { json: { name: 'raced', snapshot: taken.json.id } });
    assert.equal(made.status, 202, made.text);
    await until(async () => (await api.request('GET', '/v1/templates/raced')).json.status === 'ready', { what: 'a template of the snapshot' });
    const exported = await api.request('GET', '/v1/templates/raced/archive');
    assert.deepEqual([exported.status, exported.text.length > 1e5], [200, true]);
    assert.equal((await api.request('DELETE', '/v1/templates/raced')).status, 204);
    assert.equal((await api.request('DELETE', `/v1/snapshots/${taken.json.id}`)).status, 204);
    assert.deepEqual(fs.readdirSync(canary), before);
  }
  await api.purge(id);
});

finish();
