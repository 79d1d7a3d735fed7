// SPDX-License-Identifier: Apache-2.0
// Archives in and out, honest and hostile.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { assertError } from './lib/client.mjs';
import { IS_SANITIZED } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { pax, tar } from './lib/tar.mjs';
import { MI, ulid } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('archives');
const { id } = await api.create();
const AGENT = '/workspace/agent_workspace';
const fresh = () => `${AGENT}/${ulid()}`;
const out = async (command, user) => (await api.out(id, { command, user })).trim();

/** Runs the host's tar over the bytes. */
function hostTar(args, input) {
  const result = spawnSync('tar', args, { input, maxBuffer: 256 * MI });
  assert.equal(result.status, 0, result.stderr.toString());
  return result.stdout;
}

async function unpacked(dir, archive, type) {
  const answer = await api.putArchive(id, dir, archive, type);
  assert.ok([200, 201, 204].includes(answer.status), `${answer.status} ${answer.text}`);
}

test('a tar goes in: files, directories, modes, links, long names', async () => {
  const dir = fresh();
  const long = `${'d'.repeat(60)}/${'e'.repeat(60)}/${'f'.repeat(200)}`;
  await unpacked(dir, tar([
    { name: 'a/' }, { name: 'a/file', data: 'content', mode: 0o640 }, { name: 'tool', data: '#!/bin/sh\necho hi\n', mode: 0o755 }, { name: 'empty', data: '' },
    { name: 'no/parent/entry', data: 'x' }, { name: 'a/link', type: 'symlink', target: 'file' }, { name: 'hard', type: 'hardlink', target: 'a/file' },
    pax({ path: long }), { name: 'short', data: 'long name' }, pax({ path: 'ž☃' }), { name: 'x', data: 'unicode' },
  ]));
  assert.equal(await out(`cd ${dir} && cat a/file a/link hard no/parent/entry && ./tool && cat ${long} ž☃`), 'contentcontentcontentxhi\nlong nameunicode');
  assert.equal(await out(`cd ${dir} && stat -c %a a/file tool && readlink a/link && stat -c %h hard`), '640\n755\nfile\n2');
  assert.equal(await out(`find ${dir} ! -user sandbox | wc -l`), '0', 'everything belongs to the user');
  assert.equal(await out(`stat -c %Y ${dir}/a/file`), '1700000000', 'times are kept');
});

test('a gzip-compressed tar goes in whatever its content type says', async () => {
  for (const type of ['application/gzip', 'application/x-tar', 'application/octet-stream', 'application/x-gtar']) {
    const dir = fresh();
    await unpacked(dir, zlib.gzipSync(tar([{ name: 'f', data: type }])), type);
    assert.equal((await api.read(id, `${dir}/f`)).toString(), type);
  }
});

test('what the tar program makes goes in whole', async () => {
  const source = fs.mkdtempSync(path.join(instance.home, 'source-'));
  fs.mkdirSync(path.join(source, 'deep/er'), { recursive: true });
  fs.writeFileSync(path.join(source, 'deep/er/blob'), crypto.randomBytes(500_000));
  fs.writeFileSync(path.join(source, 'naïve name\nwith newline'), 'x');
  fs.symlinkSync('deep/er/blob', path.join(source, 'link'));
  for (const format of ['gnu', 'ustar', 'pax']) {
    for (const zip of [[], ['-z']]) {
      const dir = fresh();
      await unpacked(dir, hostTar(['-C', source, `--format=${format}`, ...zip, '-cf', '-', '.']));
      const sum = crypto.createHash('sha256').update(fs.readFileSync(path.join(source, 'deep/er/blob'))).digest('hex');
      assert.equal(await out(`sha256sum < ${dir}/link | cut -d' ' -f1`), sum, `${format} ${zip}`);
    }
  }
});

test('an archive goes into an existing directory, replaces files and keeps the others', async () => {
  const dir = fresh();
  await api.put(id, `${dir}/old`, 'old');
  await api.put(id, `${dir}/both`, 'old');
  await unpacked(dir, tar([{ name: 'both', data: 'new' }, { name: 'new', data: 'new' }]));
  assert.equal(await out(`cd ${dir} && cat old both new`), 'oldnewnew');
});

test('an empty archive is fine', async () => {
  const dir = fresh();
  await unpacked(dir, tar([]));
  assert.equal((await api.stat(id, dir)).type, 'dir');
});

test('two thousand small files go in and out', async () => {
  const dir = fresh();
  await unpacked(dir, tar(Array.from({ length: 2000 }, (_, i) => ({ name: `d${i % 20}/file-${i}`, data: `content ${i}` }))));
  assert.equal(await out(`find ${dir} -type f | wc -l`), '2000');
  const answer = await api.getArchive(id, dir);
  const listed = hostTar(['-tf', '-'], answer.body).toString().trim().split('\n').filter((name) => !name.endsWith('/'));
  assert.equal(listed.length, 2000);
});

test('a tar comes out that the tar program reads, with modes, links and times', async () => {
  const dir = fresh();
  const blob = crypto.randomBytes(400_000);
  await api.put(id, `${dir}/sub/blob`, blob);
  await out(`cd ${dir} && echo hello > file && chmod 750 file && touch -d @1600000000 file && ln -s sub/blob link && ln -s /etc/passwd out && ln file hard && mkfifo fifo && mkdir empty && echo x > ${'n'.repeat(200)} && printf x > "$(printf 'ž\\nx')"`);
  const answer = await api.getArchive(id, dir);
  assert.equal(answer.status, 200, answer.text.slice(0, 300));
  assert.match(answer.headers['content-type'], /tar/);
  const target = fs.mkdtempSync(path.join(instance.home, 'out-'));
  hostTar(['-C', target, '-xf', '-'], answer.body);
  assert.ok(fs.readFileSync(path.join(target, 'sub/blob')).equals(blob));
  assert.equal(fs.readFileSync(path.join(target, 'file'), 'utf8'), 'hello\n');
  assert.equal(fs.statSync(path.join(target, 'file')).mode & 0o777, 0o750);
  assert.equal(Math.floor(fs.statSync(path.join(target, 'file')).mtimeMs / 1000), 1600000000);
  assert.equal(fs.readlinkSync(path.join(target, 'link')), 'sub/blob');
  assert.equal(fs.readlinkSync(path.join(target, 'out')), '/etc/passwd', 'a link is a link, not what it points to');
  assert.equal(fs.readFileSync(path.join(target, 'hard'), 'utf8'), 'hello\n');
  assert.ok(fs.statSync(path.join(target, 'empty')).isDirectory());
  assert.ok(fs.existsSync(path.join(target, 'n'.repeat(200))));
  assert.ok(fs.existsSync(path.join(target, 'ž\nx')));
  for (const name of hostTar(['-tf', '-'], answer.body).toString().split('\n')) assert.ok(!name.startsWith('/') && !name.startsWith('..'), name);
});

test('what comes out goes in again and is the same', async () => {
  const dir = fresh();
  await api.put(id, `${dir}/a/b`, crypto.randomBytes(70_000), { query: { mode: '600' } });
  await out(`cd ${dir} && ln -s b a/l && mkdir -p c/d && echo x > 'sp ace'`);
  const copy = fresh();
  await unpacked(copy, (await api.getArchive(id, dir)).body);
  assert.equal(await out(`diff -r ${dir} ${copy} && cd ${copy} && stat -c %a a/b && readlink a/l && test -d c/d && echo same`), '600\nb\nsame');
});

test('a single file can be packed', async () => {
  const dir = fresh();
  await api.put(id, `${dir}/only`, 'one file');
  const answer = await api.getArchive(id, `${dir}/only`);
  assert.equal(answer.status, 200);
  assert.deepEqual(hostTar(['-tf', '-'], answer.body).toString().trim().split('\n').map((name) => path.basename(name)), ['only']);
});

test('packing something that is not there is 404, unpacking onto a file 400 or 409', async () => {
  assertError(await api.getArchive(id, `${fresh()}/none`), 404);
  const dir = fresh();
  await api.put(id, `${dir}/file`, 'x');
  assertError(await api.putArchive(id, `${dir}/file`, tar([{ name: 'x', data: 'x' }])), [400, 409]);
  assert.equal((await api.read(id, `${dir}/file`)).toString(), 'x');
});

test('a directory that is packed while it changes still makes a readable archive', async () => {
  const dir = fresh();
  await api.mkdir(id, dir);
  const churn = await api.execStream(id, { argv: ['python3', '-c', `
import os, random
os.chdir("${dir}"); print("up", flush=True)
while True:
    name = "f%d" % random.randrange(30)
    if random.random() < 0.5:
        open(name, "w").write("x" * random.randrange(200000))
    elif os.path.exists(name): os.remove(name)`] });
  for await (const event of churn.events()) if (event.event === 'stdout') break;
  for (let i = 0; i < 10; i++) {
    const answer = await api.getArchive(id, dir);
    assert.equal(answer.status, 200);
    hostTar(['-tf', '-'], answer.body);
  }
  churn.close();
});

// Hostile archives ----------------------------------------------------------------------------

const outside = '/workspace/outputs/outside';

/** Nothing that the archive wanted is outside of the target. */
async function nothingOutside(dir, name) {
  assert.equal(await api.exists(id, outside), false, `${name}: written outside`);
  for (const file of ['/tmp/outside', '/outside', '/etc/outside', `${path.dirname(dir)}/outside`, `${AGENT}/outside`, '/workspace/outside']) assert.equal(await api.exists(id, file), false, `${name}: ${file}`);
  assert.match((await api.read(id, '/etc/passwd')).toString(), /^root:x?:0:0/m, name);
  assert.equal(fs.existsSync('/tmp/outside'), false, `${name}: on the host`);
  const special = await out(`test -d ${dir} || exit 0; find ${dir} \\( -type b -o -type c -o -type p -o -perm /7000 \\) -print`, 'root');
  assert.equal(special, '', `${name}: devices, pipes or setuid bits`);
}

const up = '../'.repeat(12);
const HOSTILE = {
  'a name that climbs': [{ name: '../outside', data: 'evil' }],
  'a name that climbs far': [{ name: `${up}tmp/outside`, data: 'evil' }],
  'a name that climbs in the middle': [{ name: 'a/' }, { name: 'a/../../outside', data: 'evil' }],
  'a directory that climbs': [{ name: '../outside/' }],
  'a pax name that climbs': [pax({ path: '../outside' }), { name: 'x', data: 'evil' }],
  'an absolute name': [{ name: '/tmp/outside', data: 'evil' }],
  'a file through a link': [{ name: 'l', type: 'symlink', target: '/tmp' }, { name: 'l/outside', data: 'evil' }],
  'a file through a relative link': [{ name: 'l', type: 'symlink', target: '..' }, { name: 'l/outside', data: 'evil' }],
  'a file through two links': [{ name: 'a', type: 'symlink', target: '.' }, { name: 'a/b', type: 'symlink', target: '../..' }, { name: 'b/outside', data: 'evil' }],
  'a directory through a link': [{ name: 'l', type: 'symlink', target: '/etc' }, { name: 'l/outside/' }],
  'a file over a link to a system file': [{ name: 'l', type: 'symlink', target: '/etc/passwd' }, { name: 'l', data: 'evil' }, { name: 'l', type: 'symlink', target: '/etc/passwd' }],
  'a hard link to a system file': [{ name: 'h', type: 'hardlink', target: '/etc/passwd' }, { name: 'h', data: 'evil' }],
  'a hard link that climbs': [{ name: 'h', type: 'hardlink', target: `${up}etc/passwd` }],
  'a hard link through a link': [{ name: 'l', type: 'symlink', target: '/etc' }, { name: 'h', type: 'hardlink', target: 'l/passwd' }],
  'a pax hard link that climbs': [pax({ linkpath: '../../../../etc/passwd' }), { name: 'h', type: 'hardlink', target: 'x' }],
  'a hard link, then a file through it as a directory': [{ name: 'd', type: 'symlink', target: '.' }, { name: 'h', type: 'hardlink', target: 'd' }, { name: 'h/../../outside', data: 'evil' }],
  'a hard link to nothing': [{ name: 'h', type: 'hardlink', target: 'none' }],
  'a character device': [{ name: 'dev', type: 'char', major: 1, minor: 1 }],
  'a block device': [{ name: 'dev', type: 'block', major: 7, minor: 0 }],
};

for (const [name, items] of Object.entries(HOSTILE)) {
  test(`${name} is refused and nothing appears outside`, async () => {
    const dir = `${AGENT}/${ulid()}/inner`;
    const answer = await api.putArchive(id, dir, tar(items));
    assertError(answer, 400);
    await nothingOutside(dir, name);
  });
}

test('links are kept as they are, wherever they lead, and nothing is written through them', async () => {
  const dir = fresh();
  const links = { abs: '/etc/passwd', up: `${up}etc/passwd`, none: 'not/there', self: 'self' };
  await unpacked(dir, tar([...Object.entries(links).map(([name, target]) => ({ name, type: 'symlink', target })), pax({ linkpath: '../../../../etc/passwd' }), { name: 'long', type: 'symlink', target: 'x' }]));
  assert.equal(await out(`cd ${dir} && readlink ${Object.keys(links).join(' ')} long`), [...Object.values(links), '../../../../etc/passwd'].join('\n'));
  await nothingOutside(dir, 'links');
});

test('a FIFO in an archive is refused or left out', async () => {
  const dir = fresh();
  const answer = await api.putArchive(id, dir, tar([{ name: 'fifo', type: 'fifo' }, { name: 'f', data: 'x' }]));
  if (answer.status >= 300) assertError(answer, 400);
  await nothingOutside(dir, 'fifo');
});

test('a dot, an empty name or a name twice do no harm', async () => {
  const dir = fresh();
  const answer = await api.putArchive(id, dir, tar([{ name: './' }, { name: './a', data: '1' }, { name: 'a', data: '2' }, { name: './/a//', data: undefined }, { name: 'b/./c', data: '3' }]));
  assert.ok(answer.status < 500, answer.text);
  await nothingOutside(dir, 'dots');
});

test('setuid, setgid and sticky bits are dropped', async () => {
  const dir = fresh();
  await unpacked(dir, tar([{ name: 's', data: 'x', mode: 0o6755 }, { name: 'd/', mode: 0o7777 }]));
  assert.equal(await out(`stat -c %a ${dir}/s`), '755');
  await nothingOutside(dir, 'setuid');
});

test('an owner in the archive means nothing', async () => {
  const dir = fresh();
  await unpacked(dir, tar([{ name: 'f', data: 'x', uid: 0, gid: 0 }, { name: 'g', data: 'x', uid: 65534, gid: 65534 }]));
  assert.equal(await out(`stat -c %u:%g ${dir}/f ${dir}/g | sort -u`), '1000:1000');
});

test('links that a program planted in the target are not followed', async () => {
  const dir = fresh();
  await out(`mkdir ${dir} && ln -s /tmp ${dir}/sub && ln -s /workspace/outputs/outside ${dir}/file`);
  const through = await api.putArchive(id, dir, tar([{ name: 'sub/outside', data: 'evil' }]));
  assert.ok(through.status === 400 || through.status === 409 || through.status < 300, through.text);
  await api.putArchive(id, dir, tar([{ name: 'file', data: 'evil' }]));
  await nothingOutside(dir, 'planted links');
});

test('what is no archive, cut short or damaged is 400', async () => {
  const good = tar([{ name: 'f', data: 'x'.repeat(5000) }, { name: 'g', data: 'y' }]);
  const damaged = Buffer.from(good);
  damaged[100] ^= 0xff;
  const gzip = zlib.gzipSync(tar([{ name: 'f', data: crypto.randomBytes(50_000) }]));
  const cases = { 'random bytes': crypto.randomBytes(5000), text: Buffer.from('hello'), 'cut in a file': good.subarray(0, 3000), 'a wrong checksum': damaged, 'cut gzip': gzip.subarray(0, 20_000), 'a zip': Buffer.from('PK\x03\x04'), 'a lie about the size': tar([{ name: 'f', data: 'x', size: 10_000_000 }]) };
  for (const [name, bytes] of Object.entries(cases)) {
    const dir = fresh();
    const answer = await api.putArchive(id, dir, bytes);
    assert.equal(answer.status, 400, `${name}: ${answer.status} ${answer.text}`);
    if (await api.exists(id, `${dir}/f`)) assert.equal((await api.stat(id, `${dir}/f`)).size, 5000, `${name}: no partial file`);
  }
});

test('a gzip bomb is stopped while the daemon stays small', async () => {
  const own = await api.create({ resources: { disk: '64Mi', memory: '128Mi' } });
  const bomb = zlib.gzipSync(tar([{ name: 'zeros', data: Buffer.alloc(160 * MI) }]));
  const before = proc.residentBytes(instance.daemon.pid);
  let peak = 0;
  const watch = setInterval(() => { peak = Math.max(peak, proc.residentBytes(instance.daemon.pid)); }, 20);
  await api.request('PUT', `/v1/sandboxes/${own.id}/files/archive`, { query: { path: `${AGENT}/bomb` }, body: bomb, headers: { 'content-type': 'application/gzip' } });
  clearInterval(watch);
  assert.ok(peak - before < (IS_SANITIZED ? 192 : 32) * MI, `the daemon grew by ${(peak - before) / MI} MiB`);
  assert.equal(await api.out(own.id, 'echo alive'), 'alive\n');
  await api.purge(own.id);
});

/** Sparse entries in the form of pax 1.0: what the file holds, at these places of a size of its own. */
function sparse(name, realSize, pieces) {
  const map = Buffer.from(`${[pieces.length, ...pieces.flatMap(([offset, data]) => [offset, data.length])].join('\n')}\n`);
  const data = Buffer.concat([map, Buffer.alloc((512 - (map.length % 512)) % 512), ...pieces.map(([, bytes]) => Buffer.from(bytes))]);
  return [pax({ 'GNU.sparse.major': 1, 'GNU.sparse.minor': 0, 'GNU.sparse.name': name, 'GNU.sparse.realsize': realSize }), { name: `GNUSparseFile.0/${name}`, data }];
}

test('a sparse file goes in with its holes', async () => {
  const dir = fresh();
  await unpacked(dir, tar(sparse('holes', 100_000, [[90_000, 'hello'], [99_995, 'world']])));
  assert.equal(await out(`cd ${dir} && stat -c %s holes && tail -c 5 holes && dd if=holes bs=1 skip=90000 count=5 2>/dev/null`), '100000\nworldhello');
});

const BOMBS = {
  'zeros under gzip': () => zlib.gzipSync(tar([{ name: 'zeros', data: Buffer.alloc(300 * MI) }])),
  'a hole of gigabytes': () => tar(sparse('hole', 4 * 1024 * MI, [[4 * 1024 * MI - 1, 'x']])),
  'entries without end that unpack to nothing': () => Buffer.concat(Array(150).fill(zlib.gzipSync(Buffer.alloc(4 * MI, tar([{ name: './' }]).subarray(0, 512))))),
  'more bytes than the disk has': () => tar([pax({ size: 2 ** 50 }), { name: 'huge', data: 'x' }]),
};

for (const [name, bomb] of Object.entries(BOMBS)) {
  test(`${name}: a bomb is 413, and nothing of the file stays`, async () => {
    const dir = fresh();
    const answer = await api.putArchive(id, dir, bomb());
    assert.equal(assertError(answer, 413).code, 'archive_too_large');
    assert.equal(await out(`find ${dir} -type f | wc -l`), '0');
  });
}

test('what cannot be a size is 400', async () => {
  for (const size of ['-1', '9223372036854775808', '0x10', '']) {
    const dir = fresh();
    const answer = await api.putArchive(id, dir, tar([pax({ size }), { name: 'f', data: 'x' }]));
    assert.ok([400, 413].includes(answer.status) || (answer.status === 200 && (await api.stat(id, `${dir}/f`)).size === 1), `${size}: ${answer.status} ${answer.text}`);
    await nothingOutside(dir, `size ${size}`);
  }
});

test('unpacking happens inside: in the namespaces of the sandbox, with no right of the host', async () => {
  const init = await instance.initOf(id);
  const bytes = tar([{ name: 'f', data: Buffer.alloc(8 * MI) }]);
  let go;
  const gate = new Promise((resolve) => { go = resolve; });
  async function* slowly() {
    yield bytes.subarray(0, 4 * MI);
    await gate;
    yield bytes.subarray(4 * MI);
  }
  const dir = fresh();
  const upload = api.putArchive(id, dir, slowly());
  const helper = await until(() => proc.descendants([init.pid])[0], { what: 'the helper' });
  for (const kind of ['user', 'mnt', 'pid', 'net']) assert.equal(proc.namespace(helper.pid, kind), proc.namespace(init.pid, kind), kind);
  assert.ok(proc.statusField(helper.pid, 'Uid').split(/\s+/).every((uid) => Number(uid) >= 1000), 'not root of the host');
  assert.equal(proc.statusField(helper.pid, 'Seccomp'), '2');
  assert.ok(!proc.descriptorTargets(instance.daemon.pid).some((target) => /\/workspaces\/(?!\.generation$)/.test(target) || target.includes('/sandboxes/')), 'the daemon has no file of a sandbox open');
  go();
  assert.equal((await upload).status, 200);
  assert.equal((await api.stat(id, `${dir}/f`)).size, 8 * MI);
});

test('an archive that is refused is answered when its half file is gone, not before', async () => {
  const { id: own } = await api.create();
  let end;
  const gate = new Promise((resolve) => { end = resolve; });
  async function* half() {
    yield tar([{ name: 'half', data: Buffer.alloc(4 * MI) }]).subarray(0, 2 * MI);
    await gate;
  }
  const dir = fresh();
  let isAnswered = false;
  const upload = api.putArchive(own, dir, half()).finally(() => { isAnswered = true; });
  await until(() => api.exists(own, `${dir}/half`), { what: 'half of the file is there' });
  await api.life(own, 'pause'); // so that nobody can remove it
  end();
  for (let i = 0; i < 50; i++) assert.equal((await api.get(own)).status, 'paused'); // time enough for an answer that does not wait
  assert.equal(isAnswered, false);
  await api.life(own, 'resume');
  assert.equal(assertError(await upload, 400).code, 'invalid_archive');
  assert.equal(await api.exists(own, `${dir}/half`), false);
  await api.purge(own);
});

test('an upload that is cut at each tenth leaves whole files or none', async () => {
  const bytes = tar(Array.from({ length: 10 }, (_, i) => ({ name: `f${i}`, data: crypto.randomBytes(50_000) })));
  for (let tenth = 1; tenth < 10; tenth++) {
    const dir = fresh();
    async function* cut() {
      yield bytes.subarray(0, Math.floor((bytes.length * tenth) / 10));
      throw new Error('the client gives up');
    }
    await assert.rejects(api.putArchive(id, dir, cut()));
    const sizes = await until(async () => {
      const found = (await out(`test -d ${dir} && find ${dir} -type f -printf '%s\\n' || true`)).split('\n').filter(Boolean);
      return found.every((size) => size === '50000') ? found : null;
    }, { what: `no half file after ${tenth}/10` });
    assert.ok(sizes.length <= tenth);
    assert.equal(await out(`find ${AGENT} -name '.*' | wc -l`), '0', 'no temporary file');
  }
});

test('programs of the sandbox have no part in unpacking', async () => {
  const own = await api.create({ env: { PATH: '/opt/bin:/usr/local/bin:/usr/bin:/bin' } });
  await api.out(own.id, { command: 'mkdir -p /opt/bin; for p in tar gzip gunzip xz zstd bzip2; do printf "#!/bin/sh\\ntouch /tmp/trojan\\n" > /opt/bin/$p; chmod 755 /opt/bin/$p; cp /opt/bin/$p /usr/local/bin/$p 2>/dev/null; done; true', user: 'root' });
  const answer = await api.request('PUT', `/v1/sandboxes/${own.id}/files/archive`, { query: { path: `${AGENT}/x` }, body: zlib.gzipSync(tar([{ name: 'f', data: 'x' }])), headers: { 'content-type': 'application/gzip' } });
  assert.ok(answer.status < 300, answer.text);
  assert.equal((await api.request('GET', `/v1/sandboxes/${own.id}/files/archive`, { query: { path: AGENT } })).status, 200);
  assert.equal(await api.exists(own.id, '/tmp/trojan'), false);
  await api.purge(own.id);
});

test('an archive whose upload breaks off leaves no partial file', async () => {
  const dir = fresh();
  const bytes = tar([{ name: 'f', data: crypto.randomBytes(600_000) }]);
  async function* broken() {
    yield bytes.subarray(0, 300_000);
    throw new Error('the client gives up');
  }
  await assert.rejects(api.putArchive(id, dir, broken()));
  await until(async () => !(await api.exists(id, `${dir}/f`)), { what: 'no partial file' });
  assert.equal(await out('echo fine'), 'fine');
});

finish();
