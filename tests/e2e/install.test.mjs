// SPDX-License-Identifier: Apache-2.0
// `make install` builds what it installs, and nothing else.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { BUILD_DIR, REPOSITORY } from './lib/instance.mjs';

test('make install builds no tests', () => {
  const plan = execFileSync('make', ['-n', 'install', `BUILD=${path.resolve(BUILD_DIR)}`, 'DESTDIR=/nowhere'], { cwd: REPOSITORY, encoding: 'utf8' });
  const builds = [...plan.matchAll(/^ninja -C (\S+) *(.*)$/gm)];
  assert.notEqual(builds.length, 0, plan);
  for (const [line, dir, targets] of builds) {
    assert.notEqual(targets, '', `"${line}" builds everything`);
    const commands = execFileSync('ninja', ['-C', dir, '-t', 'commands', ...targets.split(' ')], { encoding: 'utf8', maxBuffer: 2 ** 28 });
    assert.doesNotMatch(commands, /tests\/unit|tests\/fuzz/);
  }
});
