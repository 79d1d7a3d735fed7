// SPDX-License-Identifier: Apache-2.0
// Registries as they are met: with TLS of one's own, passwords and tokens, mirrors, and images of other tools.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import zlib from 'node:zlib';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { authority, lend } from './lib/certificates.mjs';
import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { architecture, busybox, image, layoutArchive, registryServer, sha256 } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const USER = 'someone';
const PASSWORD = 'pass:word';
const DOCKER = 'application/vnd.docker.distribution.manifest.v2+json';
const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const base = busybox();

/** Puts TLS in front of a registry. */
async function withTls(inner, files) {
  const server = https.createServer(files, (request, response) => inner.server.emit('request', request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { ...inner, tls: server, host: `127.0.0.1:${server.address().port}` };
}

const ca = authority();
const images = {};
const copies = {}; // what the mirror has
let onMirror; // answers in the place of the mirror
let demand = 'token';
const authorization = (user, password) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
const tokens = [];

/** Demands a password or a token of every request; a token is good for five. */
function guard(request, response, at) {
  const given = request.headers.authorization ?? '';
  if (at === '/token') {
    const scope = new URL(request.url, 'http://x').searchParams.get('scope');
    if (given !== authorization(USER, PASSWORD)) return response.writeHead(401).end() && true;
    tokens.push({ value: `token-${tokens.length}`, uses: 5, scope });
    return response.writeHead(200).end(JSON.stringify({ token: tokens.at(-1).value })) && true;
  }
  const token = tokens.find(({ value, uses }) => given === `Bearer ${value}` && uses > 0);
  if (demand === 'token' && token) {
    token.uses--;
    return false;
  }
  if (demand === 'password' && given === authorization(USER, PASSWORD)) return false;
  const name = at.match(/^\/v2\/(.*)\/(manifests|blobs)\//)?.[1];
  const challenge = demand === 'token' ? `Bearer realm="https://${guarded.host}/token",service="registry",scope="repository:${name}:pull"` : 'Basic realm="registry"';
  return response.writeHead(401, { 'www-authenticate': challenge }).end() && true;
}

const guarded = await withTls(await registryServer(images, { answer: guard }), ca.sign(['IP:127.0.0.1']));
const origin = await registryServer(images);
const mirror = await registryServer(copies, { answer: (...args) => onMirror?.(...args) });
const authFile = ca.inside('auth.json');
fs.writeFileSync(authFile, JSON.stringify({ auths: { [`https://${guarded.host}/v1/`]: { auth: Buffer.from(`${USER}:${PASSWORD}`).toString('base64') } } }));
lend(authFile);
const { instance, api, finish } = await suite('registries', {
  args: ['--registry', origin.host, '--registry-prefix', '', '--registry-plain', `${origin.host},${mirror.host}`, '--registry-allow', guarded.host, '--registry-ca', ca.file, '--registry-auth', authFile,
    '--registry-mirror', `${mirror.host}/cache`, '--short-names', `tool=team/tool:v1,python3.12=team/own:v1`, '--registry-stall', '2'],
});

async function run(template, command = 'cat /v') {
  const { id } = await api.create({ template });
  const { stdout } = await api.exec(id, { command });
  await api.purge(id);
  return stdout;
}

/** The log of the job that fetches an image. */
async function logOf(target) {
  const [job] = (await api.request('GET', '/v1/jobs', { query: { target } })).json.jobs;
  await until(async () => (await api.request('GET', `/v1/jobs/${job.id}`)).json.ended_at, { what: 'the job is over' });
  return (await api.request('GET', `/v1/jobs/${job.id}/log`, { query: { follow: 'false' } })).text;
}

const failure = async (template) => assertError(await api.request('POST', '/v1/sandboxes', { json: { template } }), [400, 403, 404, 413, 503]);

test('a registry with TLS of its own authority demands a token, which is asked for with the password and again when it is used up', async () => {
  images['private/app:v1'] = image([base, ...Array.from({ length: 5 }, (_, i) => [{ name: `part${i}`, data: `${i}` }]), [{ name: 'v', data: 'by token' }]]);
  assert.equal(await run(`${guarded.host}/private/app:v1`), 'by token');
  assert.ok(tokens.length >= 2, 'one was used up');
  assert.equal(tokens[0].scope, 'repository:private/app:pull');
});

test('a registry that demands a password gets it; without TLS that is known nothing is sent', async () => {
  demand = 'password';
  images['private/basic:v1'] = image([base, [{ name: 'v', data: 'by password' }]]);
  assert.equal(await run(`${guarded.host}/private/basic:v1`), 'by password');
  const other = authority();
  const impostor = await withTls(await registryServer(images), other.sign(['IP:127.0.0.1']));
  await instance.terminate();
  await instance.start(['--registry-allow', impostor.host]);
  const unreachable = await failure(`${impostor.host}/private/basic:v1`);
  assert.equal(unreachable.code, 'registry_unreachable');
  assert.match(unreachable.remediation, /--registry-mirror.*sandlot template import/, 'the ways past a registry are told');
  // Try again later, says the command line, by its words as by its exit code; whether a job asked, or a create at once.
  const { sandlot } = commandLine(instance);
  for (const args of [['template', 'pull', 'never', `${impostor.host}/private/never:v1`], ['run', '-t', `${impostor.host}/private/other:v1`, '--', 'true'], ['run', '-t', `${impostor.host}/private/other:v1`, '--', 'true']]) {
    const { code, stderr } = await sandlot(args);
    assert.equal(code, 75, `${args}: ${stderr}`);
    assert.match(stderr, /^sandlot: .*read from .*\n {2}→ .*--registry-mirror/s, args.join(' '));
  }
  assert.deepEqual(impostor.asked, []);
  for (const one of [impostor.tls, impostor.server]) one.close();
  other.remove();
  await instance.terminate();
  await instance.start();
});

test('where no registry is reached, the template that needs none is named', async () => {
  await instance.terminate();
  await instance.start(['--registry', '127.0.0.1:9', '--registry-allow', '127.0.0.1:9']);
  assert.match((await failure('postgres:15')).remediation, /^use the template postgres15, /);
  const { stderr } = await commandLine(instance).sandlot(['run', '-t', 'redis:7', '--', 'true']);
  assert.match(stderr, /→ use the template redis7, /);
  assert.doesNotMatch((await failure('mysql:8')).remediation, /use the template/);
  await instance.terminate();
  await instance.start();
});

test('a password that is wrong is told as a denial, after few requests', async () => {
  demand = 'token';
  images['private/denied:v1'] = image([base]);
  fs.writeFileSync(authFile, JSON.stringify({ auths: { [guarded.host]: { username: USER, password: 'wrong' } } }));
  const before = guarded.asked.length;
  assert.equal((await failure(`${guarded.host}/private/denied:v1`)).code, 'registry_denied');
  assert.ok(guarded.asked.length - before <= 3, `${guarded.asked.length - before} requests`);
});

test("images as Docker and other tools make them: a list of platforms, Docker's media types, zstd", async () => {
  const zstd = (data) => execFileSync('zstd', ['-q', '-c'], { input: data, maxBuffer: 64 << 20 });
  const docker = image([base, [{ name: 'v', data: 'docker' }]]);
  docker.manifest.mediaType = DOCKER;
  docker.manifest.config.mediaType = 'application/vnd.docker.container.image.v1+json';
  docker.manifest.layers.forEach((layer) => { layer.mediaType = 'application/vnd.docker.image.rootfs.diff.tar.gzip'; });
  docker.manifestBlob = Buffer.from(JSON.stringify(docker.manifest));
  images['kinds/docker:real'] = docker;
  const list = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: DOCKER_LIST, manifests: ['s390x', architecture].map((name, i) => ({ mediaType: DOCKER, digest: i ? sha256(docker.manifestBlob) : sha256('x'), size: 1, platform: { os: 'linux', architecture: name } })) }));
  images['kinds/docker:v1'] = { blobs: new Map(), manifestBlob: list };
  assert.equal(await run('kinds/docker:v1'), 'docker');
  images['kinds/zstd:v1'] = image([base, [{ name: 'v', data: 'zstd' }]], { compress: zstd });
  assert.equal(await run('kinds/zstd:v1'), 'zstd');
});

test('layers are fetched side by side', async () => {
  const many = image([base, ...Array.from({ length: 3 }, (_, i) => [{ name: `big${i}`, data: Buffer.alloc(200_000, `${i}`) }])], { compress: (data) => data });
  const digests = many.manifest.layers.slice(1).map(({ digest }) => digest);
  const held = [];
  copies['cache/wide:v1'] = many;
  onMirror = (request, response, at) => {
    if (!digests.some((digest) => at.endsWith(digest))) return false;
    held.push(() => response.end(many.blobs.get(at.split('/').at(-1))));
    return true;
  };
  const running = run('wide:v1', 'ls -d /big*');
  // None is answered before all are asked for: one after the other would wait for ever.
  await until(() => held.length === digests.length, { what: 'all layers are asked for' });
  held.forEach((go) => go());
  assert.equal(await running, '/big0\n/big1\n/big2\n');
  onMirror = undefined;
});

test('a mirror is asked first, with its prefix, and the registry only for what it has not', async () => {
  copies['cache/mirrored:v1'] = image([base, [{ name: 'v', data: 'of the mirror' }]]);
  const asked = origin.asked.length;
  assert.equal(await run('mirrored:v1'), 'of the mirror');
  assert.equal(origin.asked.length, asked, 'the registry was not asked');
  images['only/there:v1'] = image([base, [{ name: 'v', data: 'of the registry' }]]);
  assert.equal(await run('only/there:v1'), 'of the registry');
  const log = await logOf('only/there:v1');
  assert.match(log, new RegExp(`fetching ${mirror.host}/cache/only/there:v1`));
  assert.match(log, /the mirror .* has no image/);
  assert.match(log, new RegExp(`fetching ${origin.host}/only/there:v1`));
});

for (const [what, answer, pattern] of [
  ['lies about a layer', (request, response, at) => at.includes('/blobs/') && response.end(Buffer.alloc(images['fooled:v1'].blobs.get(at.split('/').at(-1)).length)), /the mirror .*: the content of/],
  ['sends another image than the digest says', (request, response, at) => at.includes('/manifests/') && response.end(images['fooled:v1'].manifestBlob.toString().replace(' ', '  ').concat(' ')), /the mirror .* sends/],
  ['says nothing', () => true, /the mirror .* has sent nothing/],
  ['breaks off in the middle of a layer that is not the right one', (request, response, at) => { if (!at.includes('/blobs/')) return false; response.writeHead(200, { 'content-length': 900 }); response.write(Buffer.alloc(500), () => response.destroy()); return true; }, /the mirror /],
]) {
  test(`a mirror that ${what} costs time and nothing else`, async () => {
    const honest = image([base, [{ name: 'v', data: what }, { name: 'w', data: Buffer.alloc(3000, what) }]], { compress: (data) => data });
    images['fooled:v1'] = honest;
    copies['cache/fooled:v1'] = honest;
    onMirror = answer;
    const reference = `fooled@${sha256(honest.manifestBlob)}`;
    assert.equal(await run(reference), what);
    assert.match(await logOf(reference), pattern);
    onMirror = undefined;
  });
}

test('short names of the operator are there for all, before those of the program', async () => {
  images['team/tool:v1'] = image([base, [{ name: 'v', data: 'tool' }]]);
  images['team/own:v1'] = image([base, [{ name: 'v', data: 'own' }]]);
  const listed = (await api.request('GET', '/v1/templates')).json.templates.filter(({ name }) => ['tool', 'python3.12'].includes(name));
  assert.deepEqual(listed.map(({ name, status, image: of }) => [name, status, of]).sort(), [['python3.12', 'available', 'team/own:v1'], ['tool', 'available', 'team/tool:v1']]);
  assert.equal((await api.request('GET', '/v1/templates/tool')).json.status, 'available');
  assert.equal(await run('tool'), 'tool');
  assert.equal(await run('python3.12'), 'own');
  assert.equal((await api.request('GET', '/v1/templates/tool')).json.image, `${origin.host}/team/tool:v1`);
});

test('settings of another form are refused when the daemon starts', async () => {
  for (const args of [['--registry-mirror', 'https://mirror.example'], ['--registry-mirror', 'a.example=b'], ['--short-names', 'py'], ['--short-names', 'host=x:1'], ['--short-names', 'py=UPPER']]) {
    const { code, said } = await instance.refusal(args);
    assert.notEqual(code, 0);
    assert.match(said, /registry-mirror|short-names/);
  }
});

test('a layer whose names lead out, or that swells, is refused whoever sends it', async () => {
  images['evil/out:v1'] = image([base, [{ name: '../../evil', data: 'x' }]]);
  assert.equal((await failure('evil/out:v1')).code, 'invalid_layer');
  const bomb = image([base, Buffer.alloc(1024)]);
  const swollen = Buffer.alloc(400 << 20);
  const packed = zlib.gzipSync(swollen, { level: 9 });
  const config = JSON.parse(bomb.blobs.get(bomb.manifest.config.digest));
  config.rootfs.diff_ids[1] = sha256(swollen);
  const text = Buffer.from(JSON.stringify(config));
  for (const data of [packed, text]) bomb.blobs.set(sha256(data), data);
  Object.assign(bomb.manifest.config, { digest: sha256(text), size: text.length });
  Object.assign(bomb.manifest.layers[1], { digest: sha256(packed), size: packed.length });
  bomb.manifestBlob = Buffer.from(JSON.stringify(bomb.manifest));
  images['evil/bomb:v1'] = bomb;
  assert.ok(['invalid_layer', 'layer_too_large', 'too_large'].includes((await failure('evil/bomb:v1')).code));
  assert.deepEqual(fs.readdirSync(path.join(instance.dataDir, 'state/blobs')).filter((name) => !name.includes('part')), [], 'no blob stays');
});

/** The same image as a registry and an archive would have it that name a layer, but have no content of it. */
function withoutLayer(made, index) {
  const blobs = new Map(made.blobs);
  blobs.delete(made.manifest.layers[index].digest);
  return { ...made, blobs };
}

/** Every way by which an owner could name what another has. */
async function assertNotTaken(thief, name, made, index) {
  copies[`${name}:v1`] = withoutLayer(made, index);
  assertError(await thief.request('POST', '/v1/sandboxes', { json: { template: `${mirror.host}/${name}:v1` } }), [400, 404, 409, 422, 502, 503]);
  const archive = await thief.request('PUT', '/v1/templates/taken/archive', { body: layoutArchive(withoutLayer(made, index)), headers: { 'content-type': 'application/x-tar' } });
  assertError(archive, [400, 404, 409, 422]);
  const { json: { templates } } = await thief.request('GET', '/v1/templates');
  assert.deepEqual(templates.filter(({ status, source }) => status === 'ready' && source !== 'host'), []);
}

test('U08: who names the digest of a layer that another owner alone has gets nothing of it', async () => {
  const owner = await ownerApi(api, 'keepers', 'ann');
  const thief = await ownerApi(api, 'thieves', 'eve');
  const made = image([base, [{ name: 'v', data: 'of ann alone' }]]);
  copies['ann/private:v1'] = made;
  const { id } = await owner.create({ template: `${mirror.host}/ann/private:v1` });
  await assertNotTaken(thief, 'eve/rest', made, 1);
  await owner.purge(id);
});

test('U08: nor while that owner still fetches the rest of the image', async () => {
  const owner = await ownerApi(api, 'keepers', 'bob');
  const thief = await ownerApi(api, 'thieves', 'mallory');
  const made = image([base, [{ name: 'v', data: 'of bob alone' }], [{ name: 'slow', data: 'slow' }]]);
  const [, own, slow] = made.manifest.layers.map(({ digest }) => digest);
  const held = [];
  copies['bob/private:v1'] = made;
  onMirror = (request, response, at) => at.endsWith(`bob/private/blobs/${slow}`) && held.push(() => response.end(made.blobs.get(slow))) > 0;
  const coming = owner.create({ template: `${mirror.host}/bob/private:v1` });
  await until(() => held.length > 0 && fs.existsSync(path.join(instance.dataDir, 'state/blobs', own.slice(7))), { what: 'one layer is there, the other is awaited' });
  await assertNotTaken(thief, 'mallory/early', made, 1);
  held.forEach((go) => go());
  onMirror = undefined;
  const { id } = await coming;
  assert.equal(await owner.out(id, 'cat /v'), 'of bob alone');
  await owner.purge(id);
});

test('the registries close', () => {
  for (const { server, tls } of [guarded, origin, mirror]) {
    for (const one of [server, tls]) {
      one?.close();
      one?.closeAllConnections();
    }
  }
  ca.remove();
});

finish();
