// SPDX-License-Identifier: Apache-2.0
// Apps with packages of the npm registry that this machine uses. They are installed once, outside of any sandbox, into
// an archive below the build directory, so that the tests of previews need no network of sandboxes.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

import { BUILD_DIR, REPOSITORY } from './instance.mjs';

const INSTALL_MS = 240_000;
const run = promisify(execFile); // it may take minutes, in which connections that the daemon closes are to be noticed
const sources = (name) => path.join(REPOSITORY, 'tests/e2e/apps', name);

/** The archive of an app's packages, made if it is not there; throws if there is no registry. */
async function packagesOf(name) {
  const manifest = path.join(sources(name), 'package.json');
  const digest = crypto.createHash('sha256').update(fs.readFileSync(manifest)).digest('hex').slice(0, 12);
  const cache = path.join(BUILD_DIR, 'frameworks');
  const archive = path.join(cache, `${name}-${digest}.tar`);
  if (fs.existsSync(archive)) return archive;
  fs.mkdirSync(cache, { recursive: true });
  const dir = fs.mkdtempSync(path.join(cache, `${name}-`));
  try {
    fs.copyFileSync(manifest, path.join(dir, 'package.json'));
    await run('npm', ['install', '--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-timeout=20000'], { cwd: dir, timeout: INSTALL_MS });
    await run('tar', ['-C', dir, '-cf', `${archive}.part`, 'node_modules']);
    fs.renameSync(`${archive}.part`, archive);
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
  return archive;
}

/** The same, or null with the reason told to the test, which is skipped. */
export async function installed(t, name) {
  try {
    return await packagesOf(name);
  } catch (error) {
    t.skip(`not proven: the packages of ${name} cannot be installed: ${String(error.stderr ?? error.message).trim().split('\n').at(-1)}`);
    return null;
  }
}

/** Puts an app and its packages into a directory of a sandbox. */
export async function putApp(api, id, name, archive, dir) {
  for (const body of [fs.createReadStream(archive, { highWaterMark: 1 << 20 }), execFileSync('tar', ['-C', sources(name), '-cf', '-', '.'])]) {
    const answer = await api.request('PUT', `/v1/sandboxes/${id}/files/archive`, { query: { path: dir }, body, headers: { 'content-type': 'application/x-tar' } });
    assert.ok(answer.status < 300, answer.text);
  }
}
