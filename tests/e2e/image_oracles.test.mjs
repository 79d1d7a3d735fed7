// SPDX-License-Identifier: Apache-2.0
// Images that other programs made, from Debian's docker-registry with TLS and a password: the tree in a sandbox, and the
// one that our export carries, are those that umoci unpacks; skopeo reads what we export.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { authority, lend } from './lib/certificates.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const USER = 'reader';
const PASSWORD = 'pass word:1';
const program = (file, ...args) => execFileSync(file, args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });
const ca = authority();
const real = await realRegistry();
const authFile = ca.inside('auth.json');
fs.writeFileSync(authFile, JSON.stringify({ auths: { [real.host]: { auth: Buffer.from(`${USER}:${PASSWORD}`).toString('base64') } } }));
lend(authFile);
const { api, finish } = await suite('image-oracles', { args: ['--registry-allow', real.host, '--registry-ca', ca.file, '--registry-auth', authFile] });

const python = (...args) => program('/usr/bin/python3', '-c', ...args);
const umoci = (...args) => program('umoci', ...args);
const skopeo = (...args) => program('skopeo', ...args);
/** Where buildah is; it is not on every machine that has the rest. */
const buildah = (process.env.BUILDAH ?? '') || (() => { try { return program('sh', '-c', 'command -v buildah').trim(); } catch { return null; } })();

/** Debian's registry, on a port of its own, with a certificate of our authority and one user. */
async function realRegistry() {
  const dir = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'registry-'));
  const place = net.createServer().listen(0, '127.0.0.1');
  await once(place, 'listening');
  const { port } = place.address();
  place.close();
  await once(place, 'close');
  const { certificate, key } = ca.issue('registry', ['IP:127.0.0.1']);
  // The C library of Debian knows bcrypt, the one form that the registry reads.
  const hash = program('perl', '-e', 'print crypt($ARGV[0], q($2b$05$abcdefghijklmnopqrstuu))', PASSWORD);
  fs.writeFileSync(path.join(dir, 'users'), `${USER}:${hash}\n`);
  fs.writeFileSync(path.join(dir, 'config.yml'), `version: 0.1\nstorage: {filesystem: {rootdirectory: ${dir}/store}}\nauth: {htpasswd: {realm: tests, path: ${dir}/users}}\nhttp: {addr: "127.0.0.1:${port}", tls: {certificate: "${certificate}", key: "${key}"}}\n`);
  fs.mkdirSync(path.join(dir, 'certs'));
  fs.copyFileSync(ca.file, path.join(dir, 'certs/ca.crt'));
  const child = spawn('docker-registry', ['serve', path.join(dir, 'config.yml')], { stdio: 'ignore' });
  process.on('exit', () => { child.kill('SIGKILL'); fs.rmSync(dir, { recursive: true, force: true }); });
  await until(() => new Promise((resolve) => { net.connect(port, '127.0.0.1').on('connect', function connected() { this.destroy(); resolve(true); }).on('error', () => resolve(false)); }), { what: 'the registry listens' });
  return { host: `127.0.0.1:${port}`, dir, child };
}

/** The programs that look at a tree from inside. */
function putBusybox(dir) {
  fs.mkdirSync(dir, { recursive: true });
  fs.copyFileSync('/bin/busybox', path.join(dir, 'busybox'));
  fs.chmodSync(path.join(dir, 'busybox'), 0o755);
  for (const name of ['sh', 'find', 'stat', 'readlink', 'cat', 'sort', 'sha256sum', 'id']) fs.symlinkSync('busybox', path.join(dir, name));
}

/** All that a layer can carry, below one directory. */
function putTree(dir) {
  fs.mkdirSync(path.join(dir, 'deep/er'), { recursive: true });
  fs.mkdirSync(path.join(dir, 'opaque/below'), { recursive: true });
  fs.mkdirSync(path.join(dir, 'becomes-file'));
  fs.mkdirSync(path.join(dir, 'sticky'));
  const file = (name, data, mode, [uid, gid] = [0, 0]) => {
    fs.writeFileSync(path.join(dir, name), data);
    fs.chownSync(path.join(dir, name), uid, gid);
    fs.chmodSync(path.join(dir, name), mode);
  };
  fs.chmodSync(path.join(dir, 'sticky'), 0o1777);
  file('setuid', 'x', 0o4755);
  file('setgid', 'x', 0o2711, [12, 34]);
  file('private', 'p', 0o600, [1000, 1001]);
  file('empty', '', 0o444);
  file('gone', 'x', 0o644);
  file('becomes-link', 'x', 0o644);
  file('opaque/old', 'x', 0o644);
  file('opaque/below/old', 'x', 0o644);
  file('deep/er/one', 'linked', 0o640, [5, 6]);
  fs.linkSync(path.join(dir, 'deep/er/one'), path.join(dir, 'deep/two'));
  fs.linkSync(path.join(dir, 'deep/er/one'), path.join(dir, 'three'));
  fs.symlinkSync('../nowhere', path.join(dir, 'deep/dangling'));
  fs.symlinkSync('/etc/shadow', path.join(dir, 'absolute'));
  program('mkfifo', path.join(dir, 'fifo'));
  file('ü ñ\\n', 'a name', 0o644);
  const attribute = (name, key, value) => python('import os, sys; os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))', path.join(dir, name), key, value);
  attribute('private', 'user.note', '6b657074');
  attribute('deep', 'user.binary', '0001ff');
  attribute('setgid', 'trusted.note', '00');
  program('setcap', 'cap_net_raw+ep', path.join(dir, 'setuid'));
  fs.chmodSync(path.join(dir, 'setuid'), 0o4755);
  let seconds = 1_000_000_000;
  for (const name of program('find', dir, '-depth').trim().split('\n')) program('touch', '-h', '-d', `@${seconds += 1001}`, name);
}

/** A tar with a file that is mostly a hole, in the one form of such that umoci reads: its name. */
function sparseLayer() {
  const dir = path.join(real.dir, 'sparse');
  fs.mkdirSync(path.join(dir, 'srv'), { recursive: true });
  const hole = fs.openSync(path.join(dir, 'srv/sparse'), 'w');
  fs.writeSync(hole, 'begin', 0);
  fs.writeSync(hole, 'middle', 3 << 20);
  fs.ftruncateSync(hole, 8 << 20);
  fs.closeSync(hole);
  program('tar', '--sparse', '--format=posix', '-C', dir, '-cf', `${dir}.tar`, 'srv/sparse');
  return `${dir}.tar`;
}

/** Each name below /srv of a tree: kind, mode, owner, size or target, time, names of one file, and attributes. */
function treeOf(root) {
  const names = program('find', root, '-mindepth', '1', '-printf', '%P\\0').split('\0').filter((name) => name.startsWith('srv/')).sort();
  const inodes = new Map();
  const attributes = JSON.parse(python('import json, os, sys; print(json.dumps({name: [[key, os.getxattr(os.path.join(sys.argv[1], name), key, follow_symlinks=False).hex()] for key in sorted(os.listxattr(os.path.join(sys.argv[1], name), follow_symlinks=False)) if key.startswith("user.")] for name in sys.argv[2:]}))', root, ...names));
  return names.map((name) => {
    const file = path.join(root, name);
    const st = fs.lstatSync(file);
    const kind = st.isDirectory() ? 'directory' : st.isSymbolicLink() ? `link to ${fs.readlinkSync(file)}` : st.isFIFO() ? 'fifo' : `file of ${st.size}`;
    const first = st.isDirectory() ? '' : inodes.get(st.ino) ?? (inodes.set(st.ino, name), name);
    return [name, kind, (st.mode & 0o7777).toString(8), `${st.uid}:${st.gid}`, Math.floor(st.mtimeMs / 1000), first, JSON.stringify(attributes[name])].join(' | ');
  });
}

const INSIDE = 'cd / && find srv -mindepth 1 | sort | while IFS= read -r f; do if [ -L "$f" ]; then echo "$f|$(readlink "$f")"; else echo "$f|$(stat -c "%a %u:%g %F %Y" "$f")"; fi; done; stat -c %h /srv/three; id -u';
const credentials = `${USER}:${PASSWORD}`;

async function pull(name, image) {
  const answer = await api.request('POST', '/v1/templates', { json: { name, image } });
  assert.equal(answer.status, 202, answer.text);
  let made;
  await until(async () => (made = (await api.request('GET', `/v1/templates/${name}`)).json).status !== 'building', { what: `${name} is there` });
  assert.deepEqual([made.status, made.error], ['ready', null]);
  return made;
}

async function look(template, command = INSIDE) {
  const { id } = await api.create({ template });
  const { stdout, stderr } = await api.exec(id, { command, user: 'root' });
  assert.equal(stderr, '');
  await api.purge(id);
  return stdout;
}

/** What a program of this machine says of a tree, in the words of INSIDE. */
function seen(root) {
  return treeOf(root).map((line) => line.split(' | ')).map(([name, kind, mode, owner, time]) => {
    if (kind.startsWith('link to ')) return `${name}|${kind.slice(8)}`;
    const word = kind === 'directory' || kind === 'fifo' ? kind : kind === 'file of 0' ? 'regular empty file' : 'regular file';
    return `${name}|${mode} ${owner} ${word} ${time}`;
  });
}

/** Writes a template as others read it: the directory of the layout. */
async function exported(name) {
  const layout = path.join(real.dir, `exported-${name}`);
  const answer = await api.request('GET', `/v1/templates/${name}/archive`, { raw: true });
  assert.equal(answer.status, 200);
  fs.mkdirSync(layout);
  fs.writeFileSync(`${layout}.tar`, answer.body);
  program('tar', '-xf', `${layout}.tar`, '-C', layout);
  return layout;
}

test('an image of umoci has the tree that umoci unpacks, inside and in our export', async () => {
  const [layout, bin, from, later] = ['layout', 'bin', 'from', 'later'].map((name) => path.join(real.dir, name));
  putBusybox(bin);
  putTree(from);
  fs.mkdirSync(later);
  fs.writeFileSync(path.join(later, 'new'), 'new', { mode: 0o644 });
  umoci('init', '--layout', layout);
  umoci('new', '--image', `${layout}:v1`);
  umoci('insert', '--image', `${layout}:v1`, bin, '/bin');
  umoci('insert', '--image', `${layout}:v1`, from, '/srv');
  umoci('insert', '--image', `${layout}:v1`, '--whiteout', '/srv/gone');
  umoci('insert', '--image', `${layout}:v1`, '--opaque', later, '/srv/opaque');
  umoci('insert', '--image', `${layout}:v1`, '--whiteout', '/srv/becomes-file');
  umoci('insert', '--image', `${layout}:v1`, path.join(later, 'new'), '/srv/becomes-file');
  umoci('raw', 'add-layer', '--image', `${layout}:v1`, sparseLayer());
  umoci('unpack', '--image', `${layout}:v1`, path.join(real.dir, 'bundle'));
  skopeo('copy', '--dest-cert-dir', path.join(real.dir, 'certs'), '--dest-creds', credentials, `oci:${layout}:v1`, `docker://${real.host}/team/umoci:v1`);
  const root = path.join(real.dir, 'bundle/rootfs');
  const made = await pull('by-umoci', `${real.host}/team/umoci:v1`);
  assert.equal(made.left_out.attributes, 2, 'the capability and the trusted attribute are told');
  const lines = (await look('by-umoci')).trim().split('\n');
  const [uid, links] = [lines.pop(), lines.pop()];
  assert.deepEqual(lines.sort(), seen(root).sort());
  assert.deepEqual([uid, links], ['0', '3']);
  const [blocks, digest] = (await look('by-umoci', 'stat -c %b /srv/sparse; sha256sum < /srv/sparse')).split('\n');
  assert.ok(Number(blocks) < 100, `the hole is one: ${blocks} blocks`);
  assert.equal(digest.split(' ')[0], program('sha256sum', path.join(root, 'srv/sparse')).split(' ')[0]);
  assert.equal(fs.existsSync(path.join(root, 'srv/gone')), false);
  assert.deepEqual(fs.readdirSync(path.join(root, 'srv/opaque')), ['new']);
  const ours = await exported('by-umoci');
  const [{ annotations }] = JSON.parse(fs.readFileSync(path.join(ours, 'index.json'))).manifests;
  const tag = annotations?.['org.opencontainers.image.ref.name'] ?? 'latest';
  umoci('unpack', '--image', `${ours}:${tag}`, path.join(real.dir, 'again'));
  assert.deepEqual(treeOf(path.join(real.dir, 'again/rootfs')), treeOf(root));
  skopeo('copy', '--dest-cert-dir', path.join(real.dir, 'certs'), '--dest-creds', credentials, `oci:${ours}:${tag}`, `docker://${real.host}/team/back:v1`);
  await pull('back', `${real.host}/team/back:v1`);
  assert.deepEqual((await look('back')).trim().split('\n').slice(0, -2).sort(), lines);
});

test('images of buildah, in both formats and compressions, run with their config', { skip: buildah ? false : 'not proven: buildah is not installed (its place may be named by BUILDAH)' }, async () => {
  const state = path.join(real.dir, 'buildah');
  const policy = path.join(real.dir, 'policy.json');
  fs.writeFileSync(policy, '{"default": [{"type": "insecureAcceptAnything"}]}');
  const run = (...args) => program(buildah, '--storage-driver', 'vfs', '--root', `${state}/root`, '--runroot', `${state}/run`, ...args).trim();
  const bin = path.join(real.dir, 'buildah-bin');
  const tree = path.join(real.dir, 'buildah-tree');
  putBusybox(bin);
  putTree(tree);
  for (const [name, format, compression] of [['oci-gzip', 'oci', 'gzip'], ['docker-gzip', 'docker', 'gzip'], ['oci-zstd', 'oci', 'zstd']]) {
    const container = run('from', 'scratch');
    run('copy', container, bin, '/bin');
    run('copy', container, tree, '/srv');
    run('config', '--env', 'PATH=/bin', '--env', 'WHO=buildah', '--workingdir', '/srv', '--user', '1000:1001', '--port', '8080', '--entrypoint', '["/bin/sh", "-c"]', '--cmd', 'id', container);
    run('commit', '--signature-policy', policy, '--format', format, container, `localhost/${name}:v1`);
    run('push', '--signature-policy', policy, '--cert-dir', path.join(real.dir, 'certs'), '--creds', credentials, '--format', format, '--compression-format', compression, '--remove-signatures', `localhost/${name}:v1`, `docker://${real.host}/team/${name}:v1`);
    const made = await pull(name, `${real.host}/team/${name}:v1`);
    assert.deepEqual([made.env.WHO, made.user, made.workdir, made.ports, made.entrypoint], ['buildah', '1000:1001', '/srv', [8080], ['/bin/sh', '-c']], name);
    const layout = path.join(real.dir, `layout-${name}`);
    skopeo('copy', '--src-cert-dir', path.join(real.dir, 'certs'), '--src-creds', credentials, `docker://${real.host}/team/${name}:v1`, `oci:${layout}:v1`);
    if (compression === 'gzip') { // Debian's umoci reads no zstd
      umoci('unpack', '--image', `${layout}:v1`, path.join(real.dir, `bundle-${name}`));
      assert.deepEqual((await look(name)).trim().split('\n').slice(0, -2).sort(), seen(path.join(real.dir, `bundle-${name}/rootfs`)).sort(), name);
    }
    assert.equal((await look(name, 'cat /srv/deep/er/one; stat -c %h /srv/three; echo $WHO')).replace(/\d+\n/, 'N\n'), 'linkedN\nbuildah\n', name);
    run('rm', container);
  }
});

test('who has no password for the registry is told so', async () => {
  fs.writeFileSync(authFile, '{"auths": {}}');
  const answer = await api.request('POST', '/v1/sandboxes', { json: { template: `${real.host}/team/none:v1` } });
  assert.equal(answer.status, 403, answer.text);
  assert.equal(answer.json.error.code, 'registry_denied');
});

test('the registry ends', () => {
  real.child.kill();
  ca.remove();
});

finish();
