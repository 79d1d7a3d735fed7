// SPDX-License-Identifier: Apache-2.0
// Packs the files of a directory into console.bin, as they are and compressed, and lists them in console_assets.c
// (src/api/console_assets.h). The same files give the same bytes. Usage: web_pack.mjs FROM TO
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

const [from, to] = process.argv.slice(2);
const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
const INCOMPRESSIBLE = ['.png', '.woff2'];
const HASHED = /^\/assets\/.*-[\w-]{8}\.\w+$/; // as Vite names what it builds

const names = fs.readdirSync(from, { recursive: true, withFileTypes: true });
const files = names.filter((one) => one.isFile()).map((one) => `/${path.relative(from, path.join(one.parentPath ?? one.path, one.name))}`)
  .filter((name) => !name.includes('/.')).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

const parts = [];
let offset = 0;
function put(bytes) {
  const row = `{${offset}, ${bytes.length}}`;
  parts.push(bytes);
  offset += bytes.length;
  return row;
}

const worth = (packed, plain) => (packed.length < plain.length * 0.95 ? put(packed) : '{0, 0}');
const rows = files.map((name) => {
  const extension = path.extname(name);
  const type = TYPES[extension];
  if (!type || !/^[\w./-]+$/.test(name)) throw new Error(`${name}: files of this kind are not served`);
  const plain = fs.readFileSync(path.join(from, name));
  const etag = crypto.createHash('sha256').update(plain).digest('hex').slice(0, 32);
  const forms = [put(plain)];
  if (!INCOMPRESSIBLE.includes(extension)) {
    const gzip = zlib.gzipSync(plain, { level: 9 });
    gzip[9] = 3; // the system that packed it, of which there is but one
    forms.push(worth(gzip, plain), worth(zlib.brotliCompressSync(plain, { params: { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: plain.length } }), plain));
  }
  return `\t{"${name}", "${type}", "${etag}", ${HASHED.test(name)}, {${forms.join(', ')}}},\n`;
});

fs.mkdirSync(to, { recursive: true });
fs.writeFileSync(path.join(to, 'console.bin'), Buffer.concat(parts));
fs.writeFileSync(path.join(to, 'console_assets.c'), `/* Made by scripts/web_pack.mjs. */
#include "api/console_assets.h"
__asm__(".pushsection .rodata\\n.global console_bytes\\nconsole_bytes:\\n.incbin \\"console.bin\\"\\n.popsection");
const struct console_asset console_assets[] = {
${rows.join('')}};
const size_t console_asset_count = sizeof(console_assets) / sizeof(console_assets[0]);
const char console_absence[] = "";
`);
