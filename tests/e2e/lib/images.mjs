// SPDX-License-Identifier: Apache-2.0
// Images that are made here, as archives, and a registry that serves them, honestly or not.
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

import { httpServer } from './outside.mjs';
import { tar } from './tar.mjs';

export const sha256 = (data) => `sha256:${crypto.createHash('sha256').update(data).digest('hex')}`;

const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };
export const architecture = ARCHITECTURES[process.arch];
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';

/** Programs for an image that has none of its own: busybox, which is static. */
export const busybox = () => [
  { name: 'bin' },
  { name: 'bin/busybox', data: fs.readFileSync('/bin/busybox'), mode: 0o755 },
  ...['sh', 'cat', 'ls', 'id', 'env', 'stat', 'mkdir', 'rm', 'touch', 'find', 'echo', 'test', 'readlink', 'sleep'].map((name) => ({ name: `bin/${name}`, type: 'symlink', target: 'busybox' })),
  { name: 'etc' },
  { name: 'etc/passwd', data: 'root:x:0:0:root:/root:/bin/sh\n' },
];

/** The host's Python for an image: the interpreter, its libraries, and the modules that these names need. */
export function python(modules = ['json', 'traceback', 'resource', 'asyncio', 'ast']) {
  const list = `import os, sys, ${modules.join(', ')}\nprint("\\n".join({os.path.realpath(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)}))`;
  const files = execFileSync('/usr/bin/python3', ['-S', '-c', list], { encoding: 'utf8' }).trim().split('\n');
  const program = fs.realpathSync('/usr/bin/python3');
  const libraries = [program, ...files.filter((name) => name.endsWith('.so'))].flatMap((name) =>
    [...execFileSync('ldd', [name], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)].map(([, library]) => library));
  return [...new Set([program, ...files, ...libraries, '/usr/lib/python3.11/site.py', '/usr/lib/python3.11/_sitebuiltins.py'])].filter((name) => fs.existsSync(name)).map((name) => ({ name: name.slice(1), data: fs.readFileSync(name), mode: 0o755 }))
    .concat([{ name: 'bin/python3', type: 'symlink', target: program }]);
}

/**
 * An image of layers, each a list of items for tar(). Its blobs by digest, its manifest and its config; with
 * `compress` its layers are wrapped by that function.
 */
export function image(layers, { config = {}, compress = zlib.gzipSync } = {}) {
  const blobs = new Map();
  const keep = (data) => {
    const digest = sha256(data);
    blobs.set(digest, data);
    return { digest, size: data.length };
  };
  const tars = layers.map((layer) => (Buffer.isBuffer(layer) ? layer : tar(layer)));
  const packed = tars.map((data) => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', ...keep(compress(data)) }));
  const configBlob = keep(Buffer.from(JSON.stringify({ architecture, os: 'linux', config, rootfs: { type: 'layers', diff_ids: tars.map(sha256) } })));
  const manifest = { schemaVersion: 2, mediaType: MANIFEST, config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...configBlob }, layers: packed };
  return { blobs, manifest, tars, manifestBlob: Buffer.from(JSON.stringify(manifest)) };
}

/** The files of an OCI layout, as items for tar(). */
export function layoutItems({ blobs, manifestBlob }, tag = 'latest') {
  const index = { schemaVersion: 2, mediaType: INDEX, manifests: [{ mediaType: MANIFEST, digest: sha256(manifestBlob), size: manifestBlob.length, annotations: { 'org.opencontainers.image.ref.name': tag } }] };
  return [
    { name: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' },
    { name: 'index.json', data: JSON.stringify(index) },
    ...[...blobs, [sha256(manifestBlob), manifestBlob]].map(([digest, data]) => ({ name: `blobs/sha256/${digest.slice(7)}`, data })),
  ];
}

/** An OCI layout as a tar. */
export const layoutArchive = (made, tag) => tar(layoutItems(made, tag));

/** An OCI layout as a directory: the directory. */
export function layoutDirectory(dir, made, tag) {
  for (const { name, data } of layoutItems(made, tag)) {
    fs.mkdirSync(path.join(dir, path.dirname(name)), { recursive: true });
    fs.writeFileSync(path.join(dir, name), data);
  }
  return dir;
}

/**
 * A registry on a port of its own. `images` has them by "name:tag". What it was asked is in `asked`; `answer` may
 * answer a request itself (true) before the registry does.
 */
export async function registryServer(images, { answer } = {}) {
  const asked = [];
  const server = await httpServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://registry');
    asked.push({ method: request.method, path: pathname, headers: request.headers });
    if (answer?.(request, response, pathname)) return;
    const [, name, kind, version] = pathname.match(/^\/v2\/(.*)\/(manifests|blobs)\/([^/]+)$/) ?? [];
    const ours = Object.entries(images).filter(([key]) => key.startsWith(`${name}:`));
    const document = kind === 'manifests' && ours.find(([key, one]) => key === `${name}:${version}` || sha256(one.manifestBlob) === version)?.[1].manifestBlob;
    const blob = kind === 'blobs' && ours.map(([, one]) => one.blobs.get(version)).find(Boolean);
    if (!document && !blob) return response.writeHead(404).end('{"errors":[]}');
    if (document) return response.writeHead(200, { 'content-type': MANIFEST, 'content-length': document.length }).end(document);
    const [, from] = request.headers.range?.match(/^bytes=(\d+)-$/) ?? [];
    if (!from) return response.writeHead(200, { 'content-length': blob.length }).end(blob);
    return response.writeHead(206, { 'content-range': `bytes ${from}-${blob.length - 1}/${blob.length}` }).end(blob.subarray(Number(from)));
  });
  return { server, asked, host: `127.0.0.1:${server.port ?? server.address().port}`, close: () => server.close() };
}
