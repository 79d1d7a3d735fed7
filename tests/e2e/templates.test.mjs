// SPDX-License-Identifier: Apache-2.0
// Templates made of images: brought from a registry or an archive, unpacked, stacked, and started from.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { once } from 'node:events';
import path from 'node:path';
import zlib from 'node:zlib';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive, layoutDirectory, registryServer, sha256 } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { tar } from './lib/tar.mjs';
import { until } from './lib/wait.mjs';

const images = {};
let trick; // answers in the place of the registry
const registry = await registryServer(images, { answer: (...request) => trick?.(...request) });
const real = await realRegistry();
const { instance, api, finish } = await suite('templates', { args: ['--registry', registry.host, '--registry-prefix', '', '--registry-plain', `${registry.host},${real.host}`, '--registry-stall', '2'] });
const { sandlot, ok } = commandLine(instance);

/** Debian's registry, on a port of its own. */
async function realRegistry() {
  const dir = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'registry-'));
  const place = net.createServer().listen(0, '127.0.0.1');
  await once(place, 'listening');
  const { port } = place.address();
  place.close();
  await once(place, 'close');
  fs.writeFileSync(path.join(dir, 'config.yml'), `version: 0.1\nstorage: {filesystem: {rootdirectory: ${dir}/store}}\nhttp: {addr: "127.0.0.1:${port}"}\n`);
  const child = spawn('docker-registry', ['serve', path.join(dir, 'config.yml')], { stdio: 'ignore' });
  process.on('exit', () => { child.kill('SIGKILL'); fs.rmSync(dir, { recursive: true, force: true }); });
  return { host: `127.0.0.1:${port}`, dir, child };
}

const base = busybox();
const put = (name, body, { query, who = api } = {}) => who.request('PUT', `/v1/templates/${name}/archive`, { query, body, headers: { 'content-type': 'application/x-tar' } });
const layersDir = () => path.join(instance.dataDir, 'layers');
const layers = () => fs.readdirSync(layersDir()).filter((name) => !name.startsWith('.'));

const ask = (json, who = api) => who.request('POST', '/v1/templates', { json });
const jobOf = async (id) => (await api.request('GET', `/v1/jobs/${id}`)).json;

/** Waits for the build of a template: the template. */
async function built(name, who = api) {
  let found;
  await until(async () => (found = (await who.request('GET', `/v1/templates/${name}`)).json).status !== 'building', { what: `${name} is built` });
  return found;
}

/** Asks for a template and waits for it. */
async function make(json, who = api) {
  const answer = await ask(json, who);
  assert.equal(answer.status, 202, answer.text);
  return built(json.name, who);
}

async function run(template, command, more = {}) {
  const { id } = await api.create({ template, ...more });
  const answer = await api.exec(id, { command });
  await api.purge(id);
  return answer;
}

test('an archive becomes a template, and its environment, user and directory are those of its commands', async () => {
  const made = image([base, [{ name: 'srv' }, { name: 'srv/a', data: 'hello\n', uid: 7, mode: 0o640 }]], { config: { Env: ['FOO=bar', 'PATH=/bin'], WorkingDir: '/srv', User: '7:7', Cmd: ['sh'], ExposedPorts: { '8080/tcp': {} } } });
  const { status, json } = await put('app', layoutArchive(made));
  assert.equal(status, 200);
  assert.deepEqual([json.name, json.version, json.status, json.source, json.env.FOO, json.workdir, json.user, json.command, json.ports], ['app', 1, 'ready', 'archive', 'bar', '/srv', '7:7', ['sh'], [8080]]);
  const { stdout } = await run('app', 'pwd; id -u; echo $FOO $MORE; cat a; stat -c %u:%a a', { env: { MORE: 'yes' } });
  assert.equal(stdout, '/srv\n7\nbar yes\nhello\n7:640\n');
});

test('what is put outside of the workspace belongs to the user who runs commands there', async () => {
  const { id } = await api.create({ template: 'app' });
  await api.put(id, '/tmp/new/file', 'x');
  await api.request('POST', `/v1/sandboxes/${id}/files/mkdir`, { json: { path: '/opt/dir/sub' } });
  await api.request('PUT', `/v1/sandboxes/${id}/files/archive`, { query: { path: '/tmp/tree' }, body: tar([{ name: 'd' }, { name: 'd/file', data: 'x' }]), headers: { 'content-type': 'application/x-tar' } });
  const paths = '/tmp/new /tmp/new/file /opt/dir /opt/dir/sub /tmp/tree /tmp/tree/d /tmp/tree/d/file';
  assert.equal((await api.exec(id, { command: `stat -c %u ${paths} | sort -u; echo y >> /tmp/new/file && cat /tmp/new/file` })).stdout, '7\nxy\n');
  await api.purge(id);
  assert.equal((await put('rooted', layoutArchive(image([base, [{ name: 'deep/down/file', data: 'x' }]])))).status, 200);
  const root = await api.create({ template: 'rooted' });
  await api.put(root.id, '/tmp/new/file', 'x');
  assert.equal((await api.exec(root.id, { command: 'stat -c %u /tmp/new/file /deep /deep/down' })).stdout, '0\n0\n0\n');
  await api.purge(root.id);
});

test('layers stack: files are replaced, whiteouts hide, opaque directories hide all below', async () => {
  const made = image([
    base,
    [{ name: 'd' }, { name: 'd/kept', data: 'old' }, { name: 'd/gone', data: 'x' }, { name: 'o' }, { name: 'o/below', data: 'x' }, { name: 'one', data: '1' }, { name: 'two', type: 'hardlink', target: 'one' }],
    [{ name: 'd/kept', data: 'new' }, { name: 'd/.wh.gone', data: '' }, { name: 'o/.wh..wh..opq', data: '' }, { name: 'o/above', data: 'x' }, { name: 'link', type: 'symlink', target: '/d/kept' }],
  ]);
  assert.equal((await put('stacked', layoutArchive(made))).status, 200);
  const { stdout } = await run('stacked', 'cat /d/kept /link; ls /d /o; stat -c %h /one /two');
  assert.equal(stdout, 'newnew/d:\nkept\n\n/o:\nabove\n2\n2\n');
});

test('root of a sandbox writes its system, and no other sandbox or later one sees it', async () => {
  const one = await api.create({ template: 'app' });
  const other = await api.create({ template: 'app' });
  assert.equal((await api.exec(one.id, { command: 'echo changed > /bin/new; rm /srv/a; id -u', user: 'root' })).stdout, '0\n');
  assert.equal((await api.exec(other.id, { command: 'ls /bin/new; cat /srv/a' })).stdout, 'hello\n');
  await api.request('POST', `/v1/sandboxes/${one.id}/stop`);
  assert.equal((await api.exec(one.id, { command: 'cat /bin/new; ls /srv', user: 'root' })).stdout, 'changed\n');
  for (const { id } of [one, other]) await api.purge(id);
});

test('what no sandbox could use is left out: devices, attributes of the host', async () => {
  const made = image([base, [{ name: 'null', type: 'char', major: 1, minor: 3 }, { name: 'disk', type: 'block', major: 8 }, { name: 'pipe', type: 'fifo' }]]);
  assert.equal((await put('devices', layoutArchive(made))).status, 200);
  assert.equal((await run('devices', 'ls /null /disk 2>/dev/null; test -p /pipe && echo pipe')).stdout, 'pipe\n');
});

for (const [what, items, code] of [
  ['leaves the layer', [{ name: '../../evil', data: 'x' }], 'invalid_layer'],
  ['goes through a link that an earlier entry made', [{ name: 'x', type: 'symlink', target: '/' }, { name: 'x/evil', data: 'x' }], 'invalid_layer'],
  ['is a hard link out', [{ name: 'evil', type: 'hardlink', target: '../../../etc/passwd' }], 'invalid_layer'],
  ['is a hard link to nothing', [{ name: 'evil', type: 'hardlink', target: 'nothing' }], 'invalid_layer'],
  ['belongs to a user that no sandbox has', [{ name: 'evil', data: 'x', uid: 70000 }], 'invalid_layer'],
  ['hides the root', [{ name: '.wh...', data: '' }], 'invalid_layer'],
]) {
  test(`an image with an entry that ${what} is refused, and nothing of it stays`, async () => {
    const before = layers();
    assert.equal(assertError(await put('evil', layoutArchive(image([base, items]))), 400).code, code);
    assert.equal((await api.request('GET', '/v1/templates/evil')).status, 404);
    const stray = layers().filter((name) => !before.includes(name) && name !== sha256(tar(base)).slice(7));
    assert.deepEqual(stray, []);
  });
}

test('a bomb is refused', async () => {
  const bomb = zlib.gzipSync(Buffer.alloc(600 << 20), { level: 9 });
  const made = image([base, Buffer.alloc(1024)]);
  const diff = sha256(Buffer.alloc(600 << 20));
  const config = JSON.parse(made.blobs.get(made.manifest.config.digest));
  config.rootfs.diff_ids[1] = diff;
  const text = Buffer.from(JSON.stringify(config));
  made.blobs.set(sha256(text), text);
  made.blobs.set(sha256(bomb), bomb);
  Object.assign(made.manifest.config, { digest: sha256(text), size: text.length });
  Object.assign(made.manifest.layers[1], { digest: sha256(bomb), size: bomb.length });
  made.manifestBlob = Buffer.from(JSON.stringify(made.manifest));
  assertError(await put('bomb', layoutArchive(made)), [400, 413]);
});

test('an image is fetched by its reference, once; a name without a registry has the default one', async () => {
  images['team/app:v1'] = image([base, [{ name: 'v', data: '1' }]]);
  const reference = `${registry.host}/team/app:v1`;
  assert.equal((await run(reference, 'cat /v')).stdout, '1');
  const asked = registry.asked.length;
  assert.equal((await run(reference, 'cat /v')).stdout, '1');
  assert.equal(registry.asked.length, asked, 'it is not fetched again');
  assert.equal((await run('team/app:v1', 'cat /v')).stdout, '1');
  assert.equal((await api.create({ template: reference })).template, reference);
});

test('a template keeps the version that it was made of until it is pulled again; sandboxes keep theirs', async () => {
  images['team/moving:latest'] = image([base, [{ name: 'v', data: '1' }]]);
  const pull = () => make({ name: 'moving', image: 'team/moving' });
  const json = await pull();
  assert.deepEqual([json.status, json.version, json.digest, json.image], ['ready', 1, sha256(images['team/moving:latest'].manifestBlob), `${registry.host}/team/moving:latest`]);
  const { id } = await api.create({ template: 'moving' });
  images['team/moving:latest'] = image([base, [{ name: 'v', data: '2' }]]);
  assert.equal((await pull()).version, 2);
  assert.equal((await pull()).version, 2, 'the same image is the same version');
  assert.equal((await api.exec(id, { command: 'cat /v' })).stdout, '1');
  assert.equal((await run('moving', 'cat /v')).stdout, '2');
  assert.equal(assertError(await api.request('DELETE', '/v1/templates/moving'), 409).code, 'template_in_use');
  await api.purge(id);
  assert.equal((await api.request('DELETE', '/v1/templates/moving')).status, 204);
  assert.equal((await api.request('GET', '/v1/templates/moving')).status, 404);
});

test('an index gives the image for this machine, and names what there is if there is none', async () => {
  const made = image([base, [{ name: 'v', data: 'index' }]]);
  const entry = (architecture, digest) => ({ mediaType: made.manifest.mediaType, digest, size: 1, platform: { os: 'linux', architecture } });
  const index = (...manifests) => Buffer.from(JSON.stringify({ schemaVersion: 2, manifests }));
  const serve = (document) => { trick = (request, response, at) => at === '/v2/multi/manifests/v1' && response.end(document); };
  images['multi:real'] = made;
  serve(index(entry('s390x', sha256('x')), entry(process.arch === 'x64' ? 'amd64' : 'arm64', sha256(made.manifestBlob))));
  assert.equal((await run('multi:v1', 'cat /v')).stdout, 'index');
  serve(index(entry('s390x', sha256('x'))));
  const refused = await make({ name: 'multi', image: 'multi:v1' });
  assert.deepEqual([refused.status, refused.version], ['error', 0]);
  assert.match(refused.error, /s390x/);
  assert.match(assertError(await api.request('POST', '/v1/sandboxes', { json: { template: 'multi' } }), 409).message, /s390x/);
  trick = undefined;
});

const hostile = {
  'a manifest that is another than the digest says': { reference: () => `hostile@${sha256('x')}`, answer: (request, response, at) => at.includes('/manifests/') && response.end(images['hostile:v1'].manifestBlob), code: 'digest_mismatch' },
  'a layer that is another than the manifest says': { answer: (request, response, at) => at.endsWith(images['hostile:v1'].manifest.layers[1].digest) && response.end(Buffer.alloc(images['hostile:v1'].manifest.layers[1].size)), code: 'digest_mismatch' },
  'a layer without an end': { answer: (request, response, at) => { if (!at.endsWith(images['hostile:v1'].manifest.layers[1].digest)) return false; const flood = () => { while (response.write(Buffer.alloc(65536))); }; response.on('drain', flood); flood(); return true; }, code: 'blob_too_large' },
  'a layer that is cut short, again and again': { answer: (request, response, at) => at.endsWith(images['hostile:v1'].manifest.layers[1].digest) && response.writeHead(200, { 'content-length': 1 }).end('x'), code: 'digest_mismatch' },
  'a manifest of a gibibyte': { answer: (request, response, at) => { if (!at.includes('/manifests/')) return false; const flood = () => { while (response.write(Buffer.alloc(65536, ' '))); }; response.on('drain', flood); flood(); return true; }, code: 'image_document_too_large' },
  'redirects in a circle': { answer: (request, response) => response.writeHead(302, { location: request.url }).end() || true, code: 'registry_unreachable' },
  'a redirect to a place inside': { answer: (request, response, at) => at.includes('/blobs/') && (response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end() || true), code: 'registry_address' },
  'nothing but 401': { answer: (request, response) => response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${registry.host}/token",service="x"` }).end() || true, code: 'registry_denied' },
  'a byte now and then, without an end': {
    answer: (request, response, at) => {
      const { digest, size } = images['hostile:v1'].manifest.layers[1];
      if (!at.endsWith(digest)) return false;
      response.writeHead(200, { 'content-length': size });
      const timer = setInterval(() => response.write('x'), 200);
      response.on('close', () => clearInterval(timer));
      return true;
    },
    code: 'registry_stalled',
  },
  'no answer at all': { answer: () => true, code: 'registry_stalled' },
};
for (const [what, { reference = () => 'hostile:v1', answer, code }] of Object.entries(hostile)) {
  test(`a registry that sends ${what} is refused, and the image is not there`, async () => {
    images['hostile:v1'] = image([base, [{ name: 'v', data: `${what}${'.'.repeat(4000)}` }]], { compress: (data) => data });
    trick = answer;
    const made = await make({ name: 'hostile', image: reference() });
    assert.deepEqual([made.status, made.version], ['error', 0]);
    assert.equal((await jobOf(made.job)).error.code, code, made.error);
    assertError(await api.request('POST', '/v1/sandboxes', { json: { template: 'hostile' } }), 409);
    trick = undefined;
    assert.equal((await api.request('DELETE', '/v1/templates/hostile')).status, 204);
  });
}

test('a transfer that breaks off goes on where it was', async () => {
  const made = image([base, [{ name: 'big', data: Buffer.alloc(1 << 20, 'abc') }]], { compress: (data) => data });
  const { digest } = made.manifest.layers[1];
  const data = made.blobs.get(digest);
  images['broken:v1'] = made;
  const ranges = [];
  trick = (request, response, at) => {
    if (!at.endsWith(digest)) return false;
    ranges.push(request.headers.range);
    if (ranges.length > 1) return false;
    response.writeHead(200, { 'content-length': data.length });
    response.write(data.subarray(0, 600_000), () => response.destroy());
    return true;
  };
  assert.equal((await run('broken:v1', 'stat -c %s /big')).stdout, `${1 << 20}\n`);
  trick = undefined;
  assert.equal(ranges.length, 2);
  assert.match(ranges[1], /^bytes=[1-9]\d*-$/);
});

test('a pull that failed goes on where it was when it is asked for again, and what was kept is checked', async () => {
  const made = image([base, [{ name: 'big', data: Buffer.alloc(1 << 20, 'def') }]], { compress: (data) => data });
  const { digest } = made.manifest.layers[1];
  const data = made.blobs.get(digest);
  images['again:v1'] = made;
  for (const [what, first] of [['honest', data], ['false', Buffer.alloc(data.length, '?')]]) {
    const ranges = [];
    trick = (request, response, at) => {
      if (!at.endsWith(digest)) return false;
      ranges.push(request.headers.range);
      if (ranges.length > 1) return response.writeHead(502).end() && true;
      response.writeHead(200, { 'content-length': data.length });
      response.write(first.subarray(0, 600_000), () => response.destroy());
      return true;
    };
    const failed = await make({ name: `again-${what}`, image: 'again:v1' });
    assert.deepEqual([failed.status, failed.version], ['error', 0]);
    assert.match(failed.error, /answers 502/);
    trick = (request, response, at) => { if (at.endsWith(digest)) ranges.push(request.headers.range); return false; };
    assert.equal((await api.request('POST', `/v1/templates/again-${what}/build`, { json: {} })).status, 202);
    const done = await built(`again-${what}`);
    assert.deepEqual([done.status, done.error], ['ready', null], what);
    assert.equal((await run(`again-${what}`, 'stat -c %s /big; head -c 3 /big')).stdout, `${1 << 20}\ndef`);
    assert.equal(ranges[2], 'bytes=600000-', 'the rest was asked for');
    assert.deepEqual(ranges.slice(3), what === 'honest' ? [] : [undefined], 'what was wrong is fetched whole');
    trick = undefined;
    // The layer goes, so that the next has to fetch it too.
    assert.equal((await api.request('DELETE', `/v1/templates/again-${what}`)).status, 204);
    assert.equal((await api.request('POST', '/v1/templates/prune', { json: {} })).status, 200);
  }
});

test('a registry that knows no ranges sends all of a layer again', async () => {
  const made = image([base, [{ name: 'big', data: Buffer.alloc(1 << 20, 'ghi') }]], { compress: (data) => data });
  const { digest } = made.manifest.layers[1];
  const data = made.blobs.get(digest);
  let asked = 0;
  images['whole:v1'] = made;
  trick = (request, response, at) => {
    if (!at.endsWith(digest)) return false;
    response.writeHead(200, { 'content-length': data.length });
    if (++asked > 1) return response.end(data) && true;
    response.write(data.subarray(0, 600_000), () => response.destroy());
    return true;
  };
  assert.equal((await run('whole:v1', 'stat -c %s /big')).stdout, `${1 << 20}\n`);
  trick = undefined;
  assert.equal(asked, 2);
});

test('who names the digest of a layer that only another owner brought gets it only by having it', async () => {
  const secret = [{ name: 'secret', data: 'only of alice' }];
  const alice = await ownerApi(api, 'acme', 'alice');
  const bob = await ownerApi(api, 'acme', 'bob');
  assert.equal((await put('private', layoutArchive(image([base, secret])), { who: alice })).status, 200);
  const forged = image([base, secret]);
  const fake = zlib.gzipSync(tar([{ name: 'guess', data: 'x' }]));
  forged.blobs.set(sha256(fake), fake);
  Object.assign(forged.manifest.layers[1], { digest: sha256(fake), size: fake.length });
  forged.manifestBlob = Buffer.from(JSON.stringify(forged.manifest));
  assert.equal(assertError(await put('private', layoutArchive(forged), { who: bob }), 400).code, 'digest_mismatch');
  assert.equal((await bob.request('GET', '/v1/templates/private')).status, 404);
  assertError(await bob.request('POST', '/v1/sandboxes', { json: { template: 'private' } }), 400);
  assert.equal((await put('private', layoutArchive(image([base, secret])), { who: bob })).status, 200, 'who has it may use it');
});

test('four names that want the same image at once all get it, and each layer is fetched once', async () => {
  const wanted = images['twice:v1'] = image([base, [{ name: 'v', data: 'twice' }], [{ name: 'w', data: Buffer.alloc(3 << 20, 'x') }]]);
  const before = registry.asked.length;
  const answers = await Promise.all([1, 2, 3, 4].map((n) => make({ name: `twice${n}`, image: 'twice:v1' })));
  assert.deepEqual(answers.map(({ status }) => status), ['ready', 'ready', 'ready', 'ready']);
  assert.equal((await run('twice4', 'cat /v')).stdout, 'twice');
  const fetched = registry.asked.slice(before).map((one) => one.path.split('/').at(-1)).filter((name) => wanted.manifest.layers.slice(1).some(({ digest }) => digest === name));
  assert.deepEqual(fetched.sort(), wanted.manifest.layers.slice(1).map(({ digest }) => digest).sort());
});

/** A layer that the registry holds back until it is told. */
function heldBack(name, files) {
  const made = image([base, ...files], { compress: (data) => data });
  const held = [];
  let isOpen = false;
  images[name] = made;
  trick = (request, response, at) => {
    if (isOpen || !at.endsWith(made.manifest.layers[1].digest)) return false;
    const data = made.blobs.get(made.manifest.layers[1].digest);
    response.writeHead(200, { 'content-length': data.length });
    response.write(data.subarray(0, data.length / 2));
    held.push(() => response.end(data.subarray(data.length / 2)));
    return true;
  };
  return { made, isAsked: () => held.length > 0, asked: () => held.length, release: () => { isOpen = true; trick = undefined; held.splice(0).forEach((go) => go()); } };
}

test('a build is a job that tells how far each layer is; the same request joins it, another is refused, the version before is used', async () => {
  images['held:v1'] = image([base, [{ name: 'v', data: 'old' }]]);
  assert.equal((await make({ name: 'held', image: 'held:v1' })).version, 1);
  const gate = heldBack('held:v2', [[{ name: 'v', data: 'new' }, { name: 'w', data: Buffer.alloc(300_000, 'x') }]]);
  const first = await ask({ name: 'held', image: 'held:v2' });
  assert.deepEqual([first.status, first.json.status, first.json.version], [202, 'building', 1]);
  await until(gate.isAsked, { what: 'the layer is asked for' });
  // All that came is told, also what came just before the pause.
  await until(async () => (await jobOf(first.json.job)).result.layers?.some(({ done_bytes, total_bytes }) => done_bytes === Math.floor(total_bytes / 2)), { what: 'half a layer is told' });
  const told = await jobOf(first.json.job);
  assert.deepEqual([told.kind, told.target, told.state, told.result.layers.length], ['template', 'held', 'running', 2]);
  assert.equal((await ask({ name: 'held', image: 'held:v2' })).json.job, first.json.job, 'the same joins');
  assert.equal(assertError(await ask({ name: 'held', image: 'held:v1' }), 409).code, 'template_building');
  assert.equal((await run('held', 'cat /v')).stdout, 'old');
  gate.release();
  const done = await built('held');
  assert.deepEqual([done.status, done.version, done.error], ['ready', 2, null]);
  assert.equal((await run('held', 'cat /v')).stdout, 'new');
  const log = await api.request('GET', '/v1/templates/held/log', { query: { follow: 'false' } });
  assert.match(log.text, /fetching .*held:v2/);
  assert.match(log.text, /event: end/);
});

test('a build is cancelled, and done again when it is asked for; what cannot change is not done twice', async () => {
  const gate = heldBack('stopped:v1', [[{ name: 'v', data: 'late' }, { name: 'w', data: Buffer.alloc(300_000, 'y') }]]);
  const { json } = await ask({ name: 'stopped', image: 'stopped:v1' });
  await until(gate.isAsked, { what: 'the layer is asked for' });
  assert.equal((await api.request('POST', '/v1/templates/stopped/cancel')).status, 200);
  const cancelled = await built('stopped');
  assert.deepEqual([cancelled.status, cancelled.version, cancelled.error], ['error', 0, 'its build was cancelled']);
  assert.equal((await jobOf(json.job)).state, 'cancelled');
  gate.release();
  assert.equal((await api.request('POST', '/v1/templates/stopped/build', { json: { no_cache: true } })).status, 202);
  assert.equal((await built('stopped')).status, 'ready');
  assert.equal((await run('stopped', 'cat /v')).stdout, 'late');
  const pinned = { name: 'pinned', image: `stopped@${sha256(gate.made.manifestBlob)}` };
  assert.equal((await make(pinned)).version, 1);
  const again = await ask(pinned);
  assert.deepEqual([again.status, again.json.status, again.json.version], [202, 'ready', 1]);
  assertError(await api.request('POST', '/v1/templates/app/build', { json: {} }), 409);
  assertError(await api.request('GET', '/v1/templates/app/log'), 404);
});

test('one that is removed while it is built does not come back', async () => {
  const gate = heldBack('unwanted:v1', [[{ name: 'w', data: Buffer.alloc(300_000, 'z') }]]);
  const { json } = await ask({ name: 'unwanted', image: 'unwanted:v1' });
  await until(gate.isAsked, { what: 'the layer is asked for' });
  assert.equal((await api.request('DELETE', '/v1/templates/unwanted')).status, 204);
  await until(async () => (await jobOf(json.job)).state === 'cancelled', { what: 'its build ends' });
  gate.release();
  assert.equal((await api.request('GET', '/v1/templates/unwanted')).status, 404);
});

test('a file of the server becomes a template, for who may have that', async () => {
  const file = path.join(instance.dataDir, '..', 'on-server.tar');
  fs.writeFileSync(file, layoutArchive(image([base, [{ name: 'v', data: 'file' }]])));
  fs.chmodSync(path.dirname(file), 0o755);
  const made = await make({ name: 'file', archive_path: file });
  assert.deepEqual([made.status, made.source, made.error], ['ready', 'archive_path', null]);
  assert.equal((await run('file', 'cat /v')).stdout, 'file');
  assert.equal((await make({ name: 'file', archive_path: '/nowhere' })).status, 'error');
  assert.equal((await run('file', 'cat /v')).stdout, 'file', 'the version before it stays');
  assert.equal((await make({ name: 'file', archive_path: path.dirname(file) })).status, 'error');
  const alice = await ownerApi(api, 'acme', 'alice2');
  assertError(await ask({ name: 'file', archive_path: file }, alice), 403);
  for (const json of [{ name: 'file', archive_path: 'relative' }, { name: 'file', archive_path: file, image: 'a' }]) assertError(await ask(json), 400);
});

test('a directory that is an OCI layout becomes a template: one of the server, and one that the command line sends', async () => {
  const dir = path.join(instance.dataDir, '..', 'on-server-layout');
  const made = image([base, [{ name: 'v', data: 'directory' }]]);
  layoutDirectory(dir, made);
  fs.writeFileSync(path.join(dir, 'blobs/sha256/unread'), 'what is not of the image is not looked at');
  fs.chmodSync(path.dirname(dir), 0o755);
  assert.deepEqual([(await make({ name: 'dir', archive_path: dir })).error, (await run('dir', 'cat /v')).stdout], [null, 'directory']);
  await ok(['template', 'import', 'sent', dir]);
  assert.equal((await run('sent', 'cat /v')).stdout, 'directory');
  assert.match((await sandlot(['template', 'import', 'sent', path.dirname(dir)])).stderr, /no image.*index\.json/);
  for (const name of ['dir', 'sent']) assert.equal((await api.request('DELETE', `/v1/templates/${name}`)).status, 204);

  // U05: what lies about itself, and what leads elsewhere.
  const layer = path.join(dir, 'blobs/sha256', made.manifest.layers[1].digest.slice(7));
  const secret = path.join(path.dirname(dir), 'secret');
  fs.writeFileSync(secret, fs.readFileSync(layer));
  for (const [what, lie, pattern] of [
    ['other bytes than its name says', () => fs.writeFileSync(layer, 'other'), /digest|content/],
    ['a link out of it', () => fs.symlinkSync(secret, layer), /symbolic links/],
    ['a pipe', () => execFileSync('mkfifo', [layer]), /no ordinary file/],
    ['no file', () => {}, /No such file/],
    ['a link to its files', () => { fs.renameSync(path.join(dir, 'blobs'), path.join(dir, 'real')); fs.symlinkSync('real', path.join(dir, 'blobs')); }, /symbolic links/],
    ['no index', () => fs.rmSync(path.join(dir, 'index.json')), /index\.json/],
  ]) {
    fs.rmSync(layer, { force: true });
    lie();
    const { status, error } = await make({ name: 'lying', archive_path: dir });
    assert.equal(status, 'error', what);
    assert.match(error, pattern, what);
  }
  assert.equal((await api.request('DELETE', '/v1/templates/lying')).status, 204);
});

test('what skopeo writes as docker save does is imported, with all its layers and its config', async () => {
  const dir = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'saved-'));
  try {
    // A layer that occurs twice is a link in such an archive.
    layoutDirectory(path.join(dir, 'layout'), image([base, [{ name: 'v', data: 'one' }], [{ name: '.wh.v' }], [{ name: 'v', data: 'one' }]], { config: { Env: ['WHO=saved'], Cmd: ['cat', '/v'] } }), 'v1');
    execFileSync('skopeo', ['copy', '--quiet', `oci:${dir}/layout:v1`, `docker-archive:${dir}/saved.tar:saved:v1`]);
    await ok(['template', 'import', 'saved', path.join(dir, 'saved.tar')]);
    assert.equal((await run('saved', 'cat /v; echo " $WHO"')).stdout, 'one saved\n');
    assert.deepEqual((await api.request('GET', '/v1/templates/saved')).json.command, ['cat', '/v']);
    // A tag that it has not names those that it has, and so does none where there are several; compressed archives are taken too.
    const { stderr } = await sandlot(['template', 'import', 'saved', path.join(dir, 'saved.tar'), '--tag', 'saved:v2']);
    assert.match(stderr, /the archive has no image saved:v2, but (\S+)\n.*--tag/);
    execFileSync('gzip', [path.join(dir, 'saved.tar')]);
    await ok(['template', 'import', 'saved', path.join(dir, 'saved.tar.gz'), '--tag', /but (\S+)/.exec(stderr)[1]]);
    execFileSync('umoci', ['tag', '--image', `${dir}/layout:v1`, 'v2']);
    assert.match((await sandlot(['template', 'import', 'saved', path.join(dir, 'layout')])).stderr, /the archive has several images: v1, v2\n.*choose one with --tag/);
    await ok(['template', 'import', 'saved', path.join(dir, 'layout'), '--tag', 'v2']);
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
  assert.equal((await api.request('DELETE', '/v1/templates/saved')).status, 204);
});

test('a name of the catalogue is there to be used, is fetched at first use, and is a template of its own then', async () => {
  images['redis:7'] = image([base, [{ name: 'v', data: 'redis' }]]);
  const listed = async () => Object.fromEntries((await api.request('GET', '/v1/templates')).json.templates.map((one) => [one.name, one.status]));
  assert.equal((await listed()).redis7, 'available');
  const before = (await api.request('GET', '/v1/templates/redis7')).json;
  assert.deepEqual([before.status, before.version, before.image, before.shared], ['available', 0, 'redis:7', true]);
  assert.equal((await run('redis7', 'cat /v')).stdout, 'redis');
  const after = (await api.request('GET', '/v1/templates/redis7')).json;
  assert.deepEqual([after.status, after.version, after.image, after.shared], ['ready', 1, `${registry.host}/redis:7`, false]);
  assert.deepEqual([(await listed()).redis7, (await listed()).debian12], ['ready', 'available']);
  assert.equal((await api.request('DELETE', '/v1/templates/redis7')).status, 204);
  assertError(await api.request('DELETE', '/v1/templates/redis7'), 404);
  assert.equal(assertError(await api.request('DELETE', '/v1/templates/host'), 409).code, 'template_built_in');
  assert.equal((await listed()).redis7, 'available');
});

const patch = (name, json, who = api) => who.request('PATCH', `/v1/templates/${name}`, { json });

test('a template has defaults for its sandboxes, which go before the image and after what a create says', async () => {
  images['defaults:v1'] = image([base, [{ name: 'srv' }]], { config: { Env: ['A=image', 'B=image'], WorkingDir: '/srv', User: '7', ExposedPorts: { '8080/tcp': {}, '53/udp': {} } } });
  const made = await make({ name: 'defaults', image: 'defaults:v1', env: { B: 'template', C: 'template' }, workdir: '/bin', user: '9', resources: { memory: '256Mi', pids: 77 }, network: { mode: 'none' }, ready: { port: 8080 }, pool: { size: 2 }, languages: ['sh'] });
  assert.deepEqual([made.env, made.workdir, made.user, made.ports, made.resources, made.network, made.ready, made.pool, made.languages], [{ A: 'image', B: 'template', C: 'template' }, '/bin', '9', [8080], { memory: '256Mi', pids: 77 }, { mode: 'none' }, { port: 8080 }, { size: 2 }, ['sh']]);
  const plain = await api.create({ template: 'defaults' });
  assert.deepEqual([plain.resources.memory, plain.resources.pids, plain.network.mode, plain.ports, plain.upgradable], ['256Mi', 77, 'none', [8080], false]);
  assert.equal((await api.exec(plain.id, { command: 'pwd; id -u; echo $A $B $C' })).stdout, '/bin\n9\nimage template template\n');
  const own = await api.create({ template: 'defaults', resources: { memory: '128Mi' }, env: { C: 'own' }, network: { mode: 'internet' }, ports: [3000] });
  assert.deepEqual([own.resources.memory, own.resources.pids, own.network.mode, own.ports], ['128Mi', 77, 'internet', [3000]]);
  assert.equal((await api.exec(own.id, { command: 'echo $A $B $C' })).stdout, 'image template own\n');
  await api.purge(own.id);
  const changed = await patch('defaults', { env: { D: 'new' }, start: 'exec sleep 1000', ports: [4000] });
  assert.deepEqual([changed.status, changed.json.version, changed.json.env, changed.json.ports, changed.json.resources.pids], [200, 2, { A: 'image', B: 'image', D: 'new' }, [4000], 77]);
  assert.equal((await patch('defaults', { env: { D: 'new' } })).json.version, 2, 'what is the same is no new version');
  assert.equal((await api.get(plain.id)).upgradable, true);
  assert.equal((await api.exec(plain.id, { command: 'echo $B' })).stdout, 'template\n', 'it keeps its version');
  assert.match(assertError(await api.request('DELETE', '/v1/templates/defaults'), 409).message, new RegExp(plain.id));
  assert.equal((await api.request('POST', `/v1/sandboxes/${plain.id}/reset`)).json.upgradable, false);
  assert.equal((await api.exec(plain.id, { command: 'echo $B $D' })).stdout, 'image new\n');
  const later = await api.create({ template: 'defaults' });
  await until(async () => (await api.tryExec(later.id, { command: 'cat /proc/*/cmdline' })).json.stdout.includes('sleep\u00001000'), { what: 'the start command of the template runs' });
  await api.purge(plain.id);
  await api.purge(later.id);
  assert.equal((await patch('defaults', { pool: { size: 0 } })).status, 200, 'those that wait for a create go');
});

test('defaults that no sandbox could have are refused, and change nothing', async () => {
  for (const json of [{ env: { '=': 'x' } }, { user: 'a b' }, { workdir: 'relative' }, { ready: {} }, { ready: { port: 1, command: 'x' } }, { pool: { size: -1 } }, { ports: [0] }, { resources: { memory: 1 } }, { network: { mode: 'all' } }, { network: { secrets: ['x'] } }, { image: 'x' }, { more: 1 }]) {
    assertError(await patch('defaults', json), 400);
  }
  assert.equal((await api.request('GET', '/v1/templates/defaults')).json.version, 2);
  assertError(await patch('nothing', { env: {} }), 404);
  const alice = await ownerApi(api, 'acme', 'alice3');
  assertError(await patch('defaults', { env: {} }, alice), 404);
  assertError(await ask({ name: 'reach', image: 'defaults:v1', network: { allow: ['10.0.0.1'] } }, alice), 403);
});

test('bad names and references are refused', async () => {
  for (const json of [{ name: 'host', image: 'a' }, { name: 'Upper', image: 'a' }, { name: 'a/b', image: 'a' }, { name: 'x' }, { name: 'x', image: 'UPPER' }, { name: 'x', image: '--privileged' }, { name: 'x', image: 'a b' }, { name: 'x', image: 'a', more: 1 }]) {
    assertError(await api.request('POST', '/v1/templates', { json }), 400);
  }
  for (const template of ['--privileged', 'a;b', 'nowhere', 'a\nb', '']) assertError(await api.request('POST', '/v1/sandboxes', { json: { template } }), 400);
  assert.equal(assertError(await api.request('POST', '/v1/sandboxes', { json: { template: 'none/such:v1' } }), 404).code, 'image_not_found');
  assert.equal(assertError(await api.request('POST', '/v1/sandboxes', { json: { template: '127.0.0.1:1/x:v1' } }), 403).code, 'registry_address');
  assertError(await put('broken', Buffer.from('no tar at all')), 400);
});

test('the command line pulls, imports, lists, shows and removes', async () => {
  const file = path.join(instance.dataDir, '..', 'image.tar');
  fs.writeFileSync(file, layoutArchive(image([base, [{ name: 'v', data: 'cli' }]]), 'v9'));
  await ok(['template', 'import', 'cli', file, '--tag', 'v9']);
  await ok(['template', 'pull', 'cli2', 'team/app:v1']);
  assert.match(await ok(['template', 'log', 'cli2']), /fetching .*team\/app:v1\n(.*\n)*cli2 is ready, version 1\n/);
  await ok(['template', 'build', 'cli2', '--no-cache']);
  await ok(['template', 'update', 'cli2', '--memory', '200Mi', '-e', 'X=y', '--workdir', '/bin']);
  assert.equal(await ok(['run', '-t', 'cli2', '--', 'sh', '-c', 'pwd; echo $X']), '/bin\ny\n');
  await ok(['template', 'pull', 'cli3', 'team/app:v1', '--detach']);
  assert.equal((await built('cli3')).status, 'ready');
  await ok(['template', 'cancel', 'cli3']);
  assert.match((await sandlot(['template', 'pull', 'cli4', 'none/such:v1'])).stderr, /none\/such/);
  assert.match(await ok(['template', 'ls']), /host .*\n(.*\n)*cli .*archive\n(.*\n)*cli2 .*team\/app:v1/);
  assert.equal(JSON.parse(await ok(['template', 'show', 'cli'])).name, 'cli');
  assert.equal(await ok(['run', '-t', 'cli', '--', 'cat', '/v']), 'cli');
  await ok(['template', 'rm', 'cli', 'cli2', 'cli3', 'cli4']);
  for (const args of [['template'], ['template', 'pull', 'x'], ['template', 'show', '../x'], ['template', 'import', 'x', '/nowhere']]) assert.notEqual((await sandlot(args)).code, 0);
});

/** What a tree has, below the places where a sandbox has mounts or files of its own. */
function treeOf(root) {
  const lines = [];
  const walk = (at) => {
    for (const name of fs.readdirSync(path.join(root, at)).sort()) {
      const here = path.join(at, name);
      const stat = fs.lstatSync(path.join(root, here));
      lines.push([here, (stat.mode & 0o7777).toString(8), stat.uid, stat.gid, stat.isDirectory() ? 'd' : stat.isSymbolicLink() ? `l${fs.readlinkSync(path.join(root, here))}` : `f${stat.size}`, stat.isSymbolicLink() ? '' : Math.floor(stat.mtimeMs / 1000)].join(' '));
      if (stat.isDirectory()) walk(here);
    }
  };
  walk('/srv');
  return lines;
}

const INSIDE = `find /srv -mindepth 1 | while read f; do if [ -L "$f" ]; then echo "$f $(stat -c '%a %u %g' "$f") l$(readlink "$f") "; elif [ -d "$f" ]; then echo "$f $(stat -c '%a %u %g d %Y' "$f")"; else echo "$f $(stat -c '%a %u %g f%s %Y' "$f")"; fi; done`;

test('a real registry serves what another program pushed, and the tree is the one that umoci unpacks', async () => {
  const layout = path.join(real.dir, 'layout');
  const from = path.join(real.dir, 'from');
  fs.mkdirSync(path.join(from, 'deep/er'), { recursive: true });
  fs.writeFileSync(path.join(from, 'deep/er/file'), 'content', { mode: 0o640 });
  fs.writeFileSync(path.join(from, 'sticky'), '');
  fs.chmodSync(path.join(from, 'sticky'), 0o4755);
  fs.symlinkSync('../nowhere', path.join(from, 'deep/link'));
  fs.writeFileSync(path.join(from, 'gone'), 'x');
  fs.utimesSync(path.join(from, 'deep'), 1000, 1000);
  const bin = path.join(real.dir, 'bin');
  fs.mkdirSync(bin);
  fs.copyFileSync('/bin/busybox', path.join(bin, 'busybox'));
  fs.chmodSync(path.join(bin, 'busybox'), 0o755);
  for (const name of ['sh', 'find', 'stat', 'readlink']) fs.symlinkSync('busybox', path.join(bin, name));
  const umoci = (...args) => execFileSync('umoci', args, { stdio: 'pipe' });
  umoci('init', '--layout', layout);
  umoci('new', '--image', `${layout}:v1`);
  umoci('insert', '--image', `${layout}:v1`, bin, '/bin');
  umoci('insert', '--image', `${layout}:v1`, from, '/srv');
  umoci('insert', '--image', `${layout}:v1`, '--whiteout', '/srv/gone');
  umoci('unpack', '--image', `${layout}:v1`, path.join(real.dir, 'bundle'));
  await until(() => fs.existsSync('/proc/net/tcp') && new Promise((resolve) => { net.connect(Number(real.host.split(':')[1]), '127.0.0.1').on('connect', function connected() { this.destroy(); resolve(true); }).on('error', () => resolve(false)); }), { what: 'the registry listens' });
  execFileSync('skopeo', ['copy', '--dest-tls-verify=false', `oci:${layout}:v1`, `docker://${real.host}/team/real:v1`], { stdio: 'pipe' });
  const { stdout } = await run(`${real.host}/team/real:v1`, INSIDE);
  assert.deepEqual(stdout.trim().split('\n').map((line) => line.trimEnd()).sort(), treeOf(path.join(real.dir, 'bundle/rootfs')).map((line) => line.trimEnd()).sort());
});

test('a daemon that is killed in the middle of a build goes on with it', async () => {
  const gate = heldBack('killed:v1', [[{ name: 'v', data: 'after' }, { name: 'w', data: Buffer.alloc(300_000, 'k') }]]);
  const { json } = await ask({ name: 'killed', image: 'killed:v1' });
  await until(gate.isAsked, { what: 'the layer is asked for' });
  await instance.crash();
  gate.release();
  await instance.start();
  const done = await built('killed');
  assert.deepEqual([done.status, done.version, done.job], ['ready', 1, json.job]);
  assert.equal((await jobOf(json.job)).tries, 2);
  assert.equal((await run('killed', 'cat /v')).stdout, 'after');
});

test('the outside world closes', () => {
  registry.server.close();
  registry.server.closeAllConnections();
  real.child.kill();
});

finish();
