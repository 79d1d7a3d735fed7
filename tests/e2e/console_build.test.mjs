// SPDX-License-Identifier: Apache-2.0
// The console is built with the node that Debian 12 has, and comes out as it does with the one of this machine.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { REPOSITORY } from './lib/instance.mjs';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'console-build-'));
after(() => fs.rmSync(home, { recursive: true, force: true }));

/** Every file below a directory, with the hash of what is in it. */
const files = (dir) => Object.fromEntries(fs.readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  .map((one) => path.join(one.parentPath ?? one.path, one.name)).sort()
  .map((file) => [path.relative(dir, file), crypto.createHash('sha256').update(fs.readFileSync(file)).digest('hex')]));

/** node 18: this one, or that which npm has. */
function node18() {
  if (process.versions.node.startsWith('18.')) return process.execPath;
  const dir = path.join(home, 'node');
  fs.cpSync(path.join(REPOSITORY, 'tests/e2e/node18'), dir, { recursive: true });
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir, stdio: 'pipe' });
  const [made] = fs.readdirSync(path.join(dir, 'node_modules')).filter((name) => name.startsWith('node-linux-'));
  return path.join(dir, 'node_modules', made, 'bin/node');
}

/** Builds the console in a directory of its own with a node: what came out. */
function build(name, node) {
  const root = path.join(home, name);
  const web = path.join(root, 'web');
  const kept = (source) => !['node_modules', 'dist', '.pack'].includes(path.basename(source));
  fs.cpSync(path.join(REPOSITORY, 'web'), web, { recursive: true, filter: kept });
  fs.mkdirSync(path.join(root, 'src/api'), { recursive: true });
  fs.copyFileSync(path.join(REPOSITORY, 'src/api/schemas.json'), path.join(root, 'src/api/schemas.json'));
  fs.symlinkSync(path.join(REPOSITORY, 'web/node_modules'), path.join(web, 'node_modules'));
  for (const args of [['scripts/api_types.mjs'], ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'error'], ['scripts/docs_page.mjs']]) execFileSync(node, args, { cwd: web, stdio: 'pipe', env: { ...process.env, PATH: `${path.dirname(node)}:${process.env.PATH}` } });
  return files(path.join(web, 'dist'));
}

test('what node 18 builds is what this machine’s node builds, file by file', () => {
  const old = node18();
  assert.match(execFileSync(old, ['--version'], { encoding: 'utf8' }), /^v18\./);
  const made = build('old', old);
  assert.ok(made['index.html'] && Object.keys(made).some((file) => /^assets\/index-.*\.js$/.test(file)) && made['docs/index.html'], Object.keys(made).join());
  assert.deepEqual(made, build('new', process.execPath));
});
