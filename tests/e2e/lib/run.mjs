// SPDX-License-Identifier: Apache-2.0
// Runs files of tests, and tells which took longest and which tests failed. Debian's node (18) has no flag for the
// timeout of a file, so the runner is started from here: run.mjs TAP_FILE FILE...; E2E_JOBS, E2E_TIMEOUT_MS of a file,
// E2E_TEST_MS of a test (test_limit.cjs) and E2E_NAMES (a pattern) say how. Files that took longest begin first, so
// that none of them runs alone at the end: seconds.json says how long each took, and E2E_RECORD=1 writes what this run
// has measured into it.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from 'node:test';
import { spec as Spec, tap } from 'node:test/reporters';

const [tapFile, ...files] = process.argv.slice(2);
const SLOWEST = 12;
const SECONDS = new URL('seconds.json', import.meta.url);
const REASON = 400; // characters of an error in the list of failures
/** More than twice as many as the two processors that this is tuned for: most files wait for most of their time. */
const JOBS = Number(process.env.E2E_JOBS || 5);
const FILE_MS = Number(process.env.E2E_TIMEOUT_MS || 900_000);

const seconds = JSON.parse(fs.readFileSync(SECONDS, 'utf8'));
// One that was never measured is guessed by its size: a kilobyte of tests took about a second.
const secondsOf = (file) => seconds[path.basename(file)] ?? fs.statSync(file).size / 1000;

// Half as long as its file: whichever test hangs, the file comes to its end.
process.env.E2E_TEST_MS ||= String(FILE_MS / 2);
process.env.NODE_OPTIONS = `--require=${fileURLToPath(new URL('test_limit.cjs', import.meta.url))}`;
const events = run({
  files: files.map((file) => path.resolve(file)).sort((a, b) => secondsOf(b) - secondsOf(a)),
  concurrency: JOBS,
  timeout: FILE_MS,
  testNamePatterns: process.env.E2E_NAMES,
});

const spent = new Map();
// Files are told of one after the other: a test that a library defines belongs to the file that was told of last.
let current = '';
let running = null; // a test that has begun and is not over
events.on('test:dequeue', ({ name, file }) => { if (name !== file) running ??= name; });
const count = ({ nesting, name, file, details }) => {
  if (file?.endsWith('.test.mjs')) current = path.basename(file);
  if (nesting === 0 && name !== file) running = null;
  if (nesting === 0) spent.set(current, (spent.get(current) ?? 0) + details.duration_ms);
};
events.on('test:pass', count);
const failed = [];
events.on('test:fail', (data) => {
  count(data);
  if (data.todo !== undefined) return;
  process.exitCode = 1;
  // A suite fails with what is in it.
  if (data.details.error?.failureType === 'subtestsFailed') return;
  const { error } = data.details;
  const why = String((error?.cause ?? error)?.message ?? error).replace(/\s+/g, ' ').slice(0, REASON);
  // Of a file whose time was over, what it was at is what matters.
  const during = data.name === data.file && running ? `, in this test: ${running}` : '';
  failed.push(`${current}: ${data.name}: ${why}${during}`);
  if (data.name === data.file) running = null;
});
events.compose(tap).pipe(fs.createWriteStream(tapFile));
events.compose(new Spec()).pipe(process.stdout);

process.on('exit', () => {
  if (process.env.E2E_RECORD) {
    const measured = Object.entries({ ...seconds, ...Object.fromEntries([...spent].map(([file, ms]) => [file, Math.round(ms / 1000)])) });
    fs.writeFileSync(SECONDS, `${JSON.stringify(Object.fromEntries(measured.sort()), null, 1)}\n`);
  }
  const slowest = [...spent].sort((a, b) => b[1] - a[1]).slice(0, SLOWEST);
  if (slowest.length > 1) console.log('slowest files:');
  for (const [file, ms] of slowest.length > 1 ? slowest : []) console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`);
  for (const name of failed) console.log(`failed: ${name}`);
});
