// SPDX-License-Identifier: Apache-2.0
// The files of the console, as the daemon serves them: to anybody, compressed, cached, and unable to run what is not theirs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { assertError } from './lib/client.mjs';
import { REPOSITORY } from './lib/instance.mjs';
import { suite } from './lib/suite.mjs';

const { api, finish } = await suite('console_assets', { width: 1 });
const get = (route, headers = {}, method = 'GET') => api.request(method, route, { token: null, headers });
const HTML = { accept: 'text/html,application/xhtml+xml' };
const index = await get('/', HTML);
const script = /src="(\/assets\/[^"]+\.js)"/.exec(index.text)?.[1];

test('the console is at /, for anybody, and is asked for again each time', () => {
  assert.equal(index.status, 200);
  assert.ok(script, `the console is not built in: ${index.text}`);
  assert.equal(index.headers['content-type'], 'text/html; charset=utf-8');
  assert.equal(index.headers['cache-control'], 'no-cache');
  assert.equal(index.headers['x-content-type-options'], 'nosniff');
  assert.equal(index.headers['cross-origin-opener-policy'], 'same-origin');
  assert.equal(index.headers['referrer-policy'], 'no-referrer');
});

test('no script runs that is not a file of ours, and nobody frames it', () => {
  const policy = Object.fromEntries(index.headers['content-security-policy'].split('; ').map((one) => [one.split(' ')[0], one.split(' ').slice(1).join(' ')]));
  assert.equal(policy['default-src'], "'none'");
  assert.equal(policy['script-src'], "'self'");
  assert.equal(policy['style-src'], "'self' 'unsafe-inline'");
  assert.equal(policy['connect-src'], "'self'");
  assert.equal(policy['frame-ancestors'], "'none'");
  assert.equal(policy['base-uri'], "'none'");
  assert.doesNotMatch(index.text, /<script(?![^>]*src=)/);
});

test('every page of the console is the same file, but only for browsers, and never below the API', async () => {
  for (const route of ['/sandboxes', '/sandboxes/01k9zq3v5h7n2m4p6r8t0w1x3y?tab=files', '/login', '/templates/a%20b']) {
    const page = await get(route, HTML);
    assert.equal(page.status, 200, route);
    assert.equal(page.text, index.text, route);
  }
  for (const [route, headers] of [['/sandboxes', {}], ['/sandboxes', { accept: 'application/json' }], ['/v1/nonsense', HTML], ['/v1/sandboxes/x/nonsense', HTML], ['/assets/nonsense.js', HTML], ['/docs/nonsense.js', HTML]]) {
    assert.equal(assertError(await get(route, headers), 404).code, 'route_not_found', route);
  }
  assertError(await api.request('POST', '/sandboxes', { token: null, json: {} }), 404);
  assertError(await get('/v1/sandboxes', HTML), 401);
  for (const route of ['/../etc/passwd', '/assets/../../etc/passwd', '/assets/%2e%2e/%2e%2e/etc/passwd']) {
    const answer = await get(route);
    assert.ok(answer.status >= 400 && !answer.text.includes('root:'), `${route}: ${answer.status}`);
  }
});

test('a file whose name has its hash is kept for ever; each form has a tag of its own', async () => {
  const plain = await get(script);
  assert.equal(plain.status, 200);
  assert.equal(plain.headers['content-type'], 'text/javascript; charset=utf-8');
  assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable');
  assert.equal(plain.headers.vary, 'Accept-Encoding');
  const tags = new Set([plain.headers.etag]);
  for (const [accepted, coding, unpack] of [['gzip, deflate', 'gzip', zlib.gunzipSync], ['gzip, deflate, br, zstd', 'br', zlib.brotliDecompressSync], ['br;q=0, gzip;q=0.5', 'gzip', zlib.gunzipSync]]) {
    const packed = await get(script, { 'accept-encoding': accepted });
    assert.equal(packed.headers['content-encoding'], coding, accepted);
    assert.deepEqual(unpack(packed.body), plain.body, accepted);
    assert.ok(packed.body.length < plain.body.length / 2);
    tags.add(packed.headers.etag);
  }
  assert.equal(tags.size, 3);
  const known = await get(script, { 'if-none-match': plain.headers.etag });
  assert.equal(known.status, 304);
  assert.equal(known.body.length, 0);
  assert.equal((await get(script, { 'if-none-match': '"other"' })).status, 200);
  const head = await get(script, {}, 'HEAD');
  assert.equal(Number(head.headers['content-length']), plain.body.length);
  assert.equal(head.body.length, 0);
});

test('what a browser needs for its first page is below 150 KiB', async () => {
  const files = ['/', ...[...index.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((one) => one[1])];
  let total = 0;
  for (const file of files) total += (await get(file, { ...HTML, 'accept-encoding': 'gzip' })).body.length;
  assert.ok(total < 150 * 1024, `${total} bytes in ${files.join(' ')}`);
});

test('the documentation of the API is at /docs, and loads nothing from elsewhere', async () => {
  const page = await get('/docs', HTML);
  assert.equal(page.status, 200);
  assert.equal((await get('/docs/', HTML)).text, page.text);
  assert.match(page.headers['content-security-policy'], /script-src 'self';/);
  assert.doesNotMatch(page.text, /(?:src|href)="(?:https?:)?\/\//);
  for (const [, file] of page.text.matchAll(/(?:src|href)="([^"#]+\.(?:js|css))"/g)) assert.equal((await get(new URL(file, 'http://x/docs/').pathname)).status, 200, file);
});

test('the same files are packed into the same bytes, and without npm the build says so', () => {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'pack-'));
  const pack = (name) => {
    execFileSync('node', [path.join(REPOSITORY, 'scripts/web_pack.mjs'), path.join(REPOSITORY, 'web/docs'), path.join(home, name)]);
    return ['console.bin', 'console_assets.c'].map((file) => fs.readFileSync(path.join(home, name, file)).toString('latin1'));
  };
  assert.deepEqual(pack('a'), pack('b'));
  execFileSync(path.join(REPOSITORY, 'scripts/web.sh'), [path.join(home, 'c')], { env: { ...process.env, WEB_OFFLINE: '1' }, stdio: 'pipe' });
  assert.match(fs.readFileSync(path.join(home, 'c/console_assets.c'), 'utf8'), /console_absence\[\] = "npm was not to be asked"/);
  fs.rmSync(home, { recursive: true });
});

finish();
