// SPDX-License-Identifier: Apache-2.0
// What ends tests that hang (lib/test_limit.cjs): each is named, and what comes after it runs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'hanging-'));
after(() => fs.rmSync(dir, { recursive: true }));

/** Runs a file of tests with that text, as scripts/e2e.sh does; what is said of it. */
function runFile(text, env) {
  const file = path.join(dir, 'hanging.test.mjs');
  fs.writeFileSync(file, `import { test } from 'node:test';\n${text}`);
  const { NODE_TEST_CONTEXT, E2E_RECORD, E2E_NAMES, ...rest } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(new URL('lib/run.mjs', import.meta.url)), path.join(dir, 'tap'), file],
    { encoding: 'utf8', env: { ...rest, ...env } });
  return { status, said: stdout + stderr };
}

test('a test that hangs fails with its name, and what comes after it runs', () => {
  const { status, said } = runFile(`
    setInterval(() => {}, 1000);
    test('hangs', () => new Promise(() => {}));
    test('is given longer', { timeout: 100_000 }, () => new Promise((resolve) => { setTimeout(resolve, 3000); }));
    test('comes after it', () => {});
    test('holds one that hangs', (t) => t.test('within', () => new Promise(() => {})));
  `, { E2E_TEST_MS: '1500', E2E_PATIENCE: '0.02' });
  assert.equal(status, 1, said);
  assert.match(said, /^failed: hanging\.test\.mjs: hangs: (Error: )?test timed out after 1500ms$/m);
  assert.match(said, /^failed: hanging\.test\.mjs: holds one that hangs: (Error: )?test timed out after 1500ms$/m);
  assert.match(said, /✔ is given longer/);
  assert.match(said, /✔ comes after it/);
});

test('a file whose time is over is named with the test that it was at', () => {
  const { said } = runFile("setInterval(() => {}, 1000); test('passes', () => {}); test('hangs', () => new Promise(() => {}));", { E2E_TIMEOUT_MS: '8000', E2E_TEST_MS: '60000' });
  assert.match(said, /^failed: hanging\.test\.mjs: .*timed out after 8000ms, in this test: hangs$/m);
});

test('a process that stays although its tests are over is ended, and its file fails', () => {
  const { status, said } = runFile("setInterval(() => {}, 1000); test('passes', () => {});", { E2E_PATIENCE: '0.02' });
  assert.equal(status, 1, said);
  assert.match(said, /✔ passes/);
  assert.match(said, /stays although its tests are over: .*Timeout/);
  assert.match(said, /^failed: .*hanging\.test\.mjs: .*test failed$/m);
});

test('programs that tests start know nothing of that', () => {
  const { status, said } = runFile(`
    import { execFileSync } from 'node:child_process';
    test('asks', () => console.log('options:', execFileSync('sh', ['-c', 'echo "[$NODE_OPTIONS]"'], { encoding: 'utf8' })));
  `);
  assert.equal(status, 0, said);
  assert.match(said, /options: \[\]/);
});
