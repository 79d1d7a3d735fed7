// SPDX-License-Identifier: Apache-2.0
// The programs of tests/e2e/programs, which stand beside or inside of a daemon: built when a test needs one.
import { execFileSync } from 'node:child_process';
import path from 'node:path';

import { REPOSITORY } from './instance.mjs';

/** Compiles programs/<name>.c to a file; with `flags` also to a library. */
export function compile(name, file, flags = []) {
  const source = path.join(REPOSITORY, `tests/e2e/programs/${name}.c`);
  execFileSync('gcc', ['-std=gnu17', '-D_GNU_SOURCE', '-O1', '-I', path.join(REPOSITORY, 'src'), ...flags, '-o', file, source], { stdio: ['ignore', 'ignore', 'inherit'] });
  return file;
}
