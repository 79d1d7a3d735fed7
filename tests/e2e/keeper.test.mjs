// SPDX-License-Identifier: Apache-2.0
// A keeper that ends, hangs or cannot start: the daemon leaves or says so, and nobody waits for it.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { Instance, program } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { compile } from './lib/programs.mjs';
import { ulid } from './lib/values.mjs';
import { until } from './lib/wait.mjs';

/** A daemon whose own copy of the programs stands beside it, with a keeper that is played. */
function withFakeKeeper(name) {
  const at = new Instance(name);
  after(() => at.destroy());
  at.daemonFile = at.copyPrograms();
  compile('fake_keeper', path.join(at.home, 'sandlot-keeper'));
  return at;
}

/** Starts a daemon without expecting that it becomes ready. */
function launch(at) {
  const child = at.spawnDaemon([], fs.openSync(at.logFile, 'a'));
  const daemon = { pid: child.pid, start: proc.processInfo(child.pid)?.start, child };
  child.on('exit', (code, signal) => { daemon.how = { code, signal }; });
  at.daemon = daemon;
  return daemon;
}

const readiness = (api) => api.request('GET', '/readyz', { token: null });

test('a keeper that ends while the daemon starts makes the daemon leave with status 1, whenever that is', async () => {
  const at = withFakeKeeper('keeper-start');
  for (let requests = 0; requests < 6; requests++) {
    fs.writeFileSync(path.join(at.home, 'requests'), `${requests}\n`);
    const daemon = launch(at);
    await until(() => daemon.how, { what: `it leaves when its keeper ends after ${requests} requests\n${at.log().slice(-1000)}` });
    assert.deepEqual(daemon.how, { code: 1, signal: null });
    assert.match(at.log(), /the keeper (is gone|ended while sandlotd started)/);
    fs.truncateSync(at.logFile, 0);
  }
  // What a supervisor does cures it.
  fs.copyFileSync(program('sandlot-keeper'), path.join(at.home, 'sandlot-keeper'));
  await at.start();
  await at.shutdown();
});

test('a keeper of another version is told, and ended by shutdown, after which the next start brings its own', async () => {
  const at = withFakeKeeper('keeper-version');
  at.args.push('--keeper-timeout', '10'); // the least, which is for one that says nothing
  fs.writeFileSync(path.join(at.home, 'requests'), '1000 1\n');
  const daemon = launch(at);
  await until(() => /Sandboxes cannot be served yet: the running keeper speaks version \d+, not \d+\.\nWhat to do: end the old one with `sandlot shutdown`, then start again\./.test(at.log()), { what: `the banner\n${at.log()}` });
  const old = proc.allProcesses().filter((info) => proc.cmdline(info.pid).includes(`sandlot-keeper ${at.dataDir} `));
  assert.equal(old.length, 1);
  await until(() => daemon.how || fs.statSync(path.join(at.home, 'asked')).size >= 8, { what: 'the daemon has asked it several times' });
  assert.equal(daemon.how, undefined, `the daemon stays as long as that keeper answers\n${at.log().slice(-1000)}`);
  const ended = spawnSync(program('sandlot'), ['shutdown'], { env: at.environment({ SANDLOT_DATA_DIR: at.dataDir }), encoding: 'utf8' });
  assert.equal(ended.status, 0, ended.stderr);
  await until(() => daemon.how, { what: 'the daemon ends' });
  await until(() => !proc.isAlive(old[0]), { what: 'the keeper has ended with it' });
  fs.copyFileSync(program('sandlot-keeper'), path.join(at.home, 'sandlot-keeper'));
  await at.start();
  await at.shutdown();
});

test('a keeper whose daemon was killed before it was ready ends with the instance of its test', { skip: process.env.E2E_USER && 'needs cgroups' }, async () => {
  const at = new Instance('keeper-unknown');
  after(() => at.destroy());
  const keepers = () => proc.allProcesses().filter(({ pid, comm, state }) => comm === 'sandlot-keeper' && state !== 'Z' && proc.cmdline(pid).includes(` ${at.dataDir} `));
  const groups = () => [...new Set(keepers().flatMap(({ pid }) => proc.descriptorTargets(pid)).filter((target) => target.startsWith('/sys/fs/cgroup/')))];
  const daemon = launch(at);
  const left = await until(() => groups().length > 0 && groups(), { what: 'there is a keeper with cgroups' });
  process.kill(daemon.pid, 'SIGKILL');
  at.destroy();
  await until(() => keepers().length === 0, { what: 'it has ended' });
  await until(() => {
    for (const group of left.flatMap((root) => [root, ...proc.cgroupDirs(root)]).reverse()) proc.quiet(() => fs.rmdirSync(group));
    return left.every((root) => !fs.existsSync(root));
  }, { what: 'its cgroups are removed' });
});

test('a keeper waits for what the one before it has left, which may take long on a busy host', async () => {
  const at = new Instance('keeper-lock');
  after(() => at.destroy());
  await at.start();
  await at.shutdown();
  const lock = path.join(at.dataDir, 'run/keeper.lock');
  // As children of a keeper that was killed do for a moment.
  const holder = spawn('flock', [lock, 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] });
  const holders = () => proc.allProcesses().filter((info) => info.comm === 'sandlot-keeper' && proc.descriptorTargets(info.pid).includes(lock));
  try {
    await until(() => proc.descriptorTargets(holder.pid).includes(lock), { what: 'the lock is held' });
    const starting = at.start();
    await Promise.race([starting, until(() => holders().length === 1, { what: `a keeper has opened the lock\n${at.log().slice(-1000)}` })]);
    holder.stdin.end();
    await starting;
  } finally {
    holder.kill();
  }
  await at.shutdown();
});

test('a keeper that cannot start says why, and the daemon passes it on', async () => {
  const at = new Instance('keeper-refuses');
  after(() => at.destroy());
  await at.start();
  await at.shutdown();
  fs.rmSync(path.join(at.dataDir, 'trash'), { recursive: true });
  fs.writeFileSync(path.join(at.dataDir, 'trash'), 'in the way');
  fs.rmSync(path.join(at.dataDir, 'run/api.addr'), { force: true });
  fs.truncateSync(at.logFile, 0);
  const daemon = launch(at);
  const file = path.join(at.dataDir, 'run/api.addr');
  const address = await until(() => /:(\d+)\n$/.exec(fs.readFileSync(file, 'utf8')), { what: 'an address' });
  at.api.port = Number(address[1]);
  const answer = await until(async () => { const got = await readiness(at.api); return got.text !== 'starting\n' && got; }, { what: 'a reason' });
  assert.equal(answer.status, 503);
  assert.match(answer.text, /the keeper cannot start: .*trash/);
  const error = assertError(await at.api.request('POST', '/v1/sandboxes', { json: {} }), 503, /trash/);
  assert.equal(error.retryable, true);
  const banner = await until(() => /^Sandlot .* serves [^]*\n\n  (\S+sandlot) doctor\n\n/m.exec(at.log()), { what: `the banner\n${at.log()}` });
  assert.match(banner[0], /^Sandboxes cannot be served yet: the keeper cannot start: .*trash.*\.$/m);
  assert.doesNotMatch(at.log(), /Try, in another terminal/, 'it offers nothing that cannot work');
  // What it offers instead does: it names the same reason, and does not blame the token.
  const doctor = spawnSync(banner[1], ['doctor'], { env: at.environment({ SANDLOT_DATA_DIR: at.dataDir }), encoding: 'utf8' });
  assert.match(doctor.stdout, /^FAIL ready: .*the keeper cannot start: .*trash/m);
  assert.match(doctor.stdout, /^ok +token: accepted$/m);
  const run = await commandLine(at).sandlot(['run', '--', 'true']);
  assert.deepEqual([run.code, run.stdout], [75, '']);
  assert.match(run.stderr, /^sandlot: .*the keeper cannot start: .*trash/m);
  process.kill(daemon.pid, 'SIGTERM');
  await until(() => daemon.how, { what: 'it ends' });
});

test('a keeper that hangs is told by /readyz, fails requests with 503, and is used again when it goes on', async () => {
  const at = new Instance('keeper-hangs');
  after(() => at.destroy());
  await at.start();
  const { api } = at;
  const { id } = await api.create();
  const other = ulid();
  process.kill(at.keeper.pid, 'SIGSTOP');
  try {
    // This one waits already when nobody knows yet.
    const early = api.request('POST', '/v1/sandboxes', { json: { id: other } });
    const answer = await until(async () => { const got = await readiness(api); return got.status === 503 && got; }, { what: '/readyz tells' });
    assert.match(answer.text, /the keeper .*does not answer/);
    for (const refused of [await early, await api.request('POST', '/v1/sandboxes', { json: {} }), await api.verb(id, 'stop'), await api.request('GET', `/v1/sandboxes/${id}/stats`)]) {
      const error = assertError(refused, 503, /keeper/);
      assert.equal(error.retryable, true);
      assert.ok(Number(refused.headers['retry-after']) > 0, 'Retry-After');
    }
    const doctor = await commandLine(at).sandlot(['doctor']);
    assert.match(doctor.stdout, /^FAIL ready: .*the keeper .*does not answer/m);
    assert.match(doctor.stdout, /^ok +token: accepted$/m, 'the token is not to blame');
    assert.equal(at.daemon.how, undefined, 'it stays');
  } finally {
    process.kill(at.keeper.pid, 'SIGCONT');
  }
  await until(async () => (await readiness(api)).status === 200, { what: '/readyz recovers' });
  // The stop that was refused did not happen, and what was refused under an id does not stay in its way.
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  await until(async () => (await api.request('POST', '/v1/sandboxes', { json: { id: other } })).status === 201, { what: 'the create that was refused can be repeated' });
  assert.equal(await api.out(other, 'echo works'), 'works\n');
  await until(async () => at.sandboxInits().length === 2, { what: 'two sandboxes and no more' });
  await at.shutdown();
});

/** A sandbox with a file and a process, of a keeper that is stopped then. */
async function hang(at) {
  const { id } = await at.api.create();
  await at.api.out(id, 'echo kept > /workspace/outputs/file');
  assert.equal((await at.api.tryExec(id, { argv: ['sleep', '600'], background: true })).status, 201);
  process.kill(at.keeper.pid, 'SIGSTOP');
  return { id, keeper: at.keeper };
}

/** The keeper was replaced: the sandbox is stopped, says why, and goes on from its files. */
async function assertReplaced(at, { id, keeper }) {
  assert.ok(!proc.isAlive(keeper), 'the keeper that hung has ended');
  assert.notEqual(at.keeper.pid, keeper.pid);
  assert.match(at.log(), new RegExp(`the keeper \\(process ${keeper.pid}\\) does not answer: it is killed`));
  const { status, termination } = await at.api.get(id);
  assert.deepEqual([status, termination.reason], ['stopped', 'agent_lost']);
  assert.notEqual(termination.detail, '');
  const { json: processes } = await at.api.request('GET', `/v1/sandboxes/${id}/processes`);
  assert.deepEqual(processes.processes.map((one) => one.status), ['exited']);
  assert.equal(await at.api.out(id, 'cat /workspace/outputs/file'), 'kept\n');
  assert.equal(at.sandboxInits().length, 1);
}

const root = { skip: process.env.E2E_USER && 'the keeper of an ordinary user is not replaced' };

test('a keeper that hangs when the daemon starts is replaced', root, async () => {
  const at = new Instance('keeper-replaced');
  after(() => at.destroy());
  await at.start();
  const before = await hang(at);
  await at.crash();
  await at.start();
  await assertReplaced(at, before);
  await at.shutdown();
});

test('a keeper that hangs for longer than --keeper-timeout makes the daemon leave, and its next start replaces the keeper', root, async () => {
  const at = new Instance('keeper-given-up', { args: ['--keeper-timeout', '10'] });
  after(() => at.destroy());
  await at.start();
  const before = await hang(at);
  await until(() => at.daemon.how, { what: 'the daemon leaves' });
  assert.deepEqual(at.daemon.how, { code: 1, signal: null });
  assert.match(at.log(), /the keeper has not answered for \d+ s, and is given up/);
  await at.start();
  await assertReplaced(at, before);
  await at.shutdown();
});

test('a create during the death of the keeper is 503 and may be repeated', async () => {
  const at = new Instance('keeper-dies');
  after(() => at.destroy());
  await at.start();
  const answers = [];
  const churn = Array.from({ length: 6 }, async () => {
    for (;;) {
      const answer = await at.api.request('POST', '/v1/sandboxes', { json: {} });
      answers.push(answer);
      if (answer.status !== 201) return;
    }
  });
  await until(() => answers.length >= 6, { what: 'some were made' });
  process.kill(at.keeper.pid, 'SIGKILL');
  await Promise.allSettled(churn);
  for (const answer of answers.filter((one) => one.status !== 201)) {
    const error = assertError(answer, 503);
    assert.equal(error.retryable, true);
  }
  await until(() => at.daemon.how, { what: 'the daemon leaves' });
  // A keeper that was killed accepts connections until the kernel has ended it: the next daemon may meet it yet.
  await at.startSupervised();
  await at.shutdown();
});

test('a keeper that is killed is told by the log, by commands and by doctor', async () => {
  const at = new Instance('keeper-killed');
  after(() => at.destroy());
  await at.start();
  const { sandlot } = commandLine(at);
  // By the daemon's own socket, as its owner asks.
  const env = { SANDLOT_DATA_DIR: at.dataDir };
  assert.equal((await sandlot(['ls'], { env })).code, 0);
  process.kill(at.keeper.pid, 'SIGKILL');
  const { code } = await until(() => at.daemon.how, { what: 'the daemon leaves' });
  assert.equal(code, 1);
  assert.match(at.log(), /the keeper is gone/);
  const refused = await sandlot(['ls'], { env });
  assert.equal(refused.code, 75);
  assert.match(refused.stderr, /not running.*start it with "\/.*\/sandlotd/s);
  const doctor = await sandlot(['doctor'], { env });
  assert.equal(doctor.code, 1);
  assert.match(doctor.stdout + doctor.stderr, /not running/);
  assert.doesNotMatch(doctor.stdout + doctor.stderr, /token is wrong|wrong token/i);
  await at.startSupervised();
  await at.shutdown();
});

test('when the host runs out of memory, daemon and keeper go last; sandboxes have nothing of that', async () => {
  const at = new Instance('keeper-oom');
  after(() => at.destroy());
  const score = (pid) => Number(fs.readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
  // A container may have lost the right to lower it; then nothing changes.
  const isPermitted = !at.account && spawnSync('sh', ['-c', 'echo -900 > /proc/self/oom_score_adj']).status === 0;
  const lowest = isPermitted ? -900 : score(process.pid);
  await at.start();
  assert.deepEqual([score(at.daemon.pid), score(at.keeper.pid)], [lowest, lowest]);
  const { id } = await at.api.create();
  assert.equal(score((await at.initOf(id)).pid), Math.max(0, lowest));
  assert.ok(Number(await at.api.out(id, 'cat /proc/self/oom_score_adj')) >= 0);
  for (const options of [{ user: 'root' }, { user: 'root', isolate: at.hasCgroups }]) {
    const { stdout } = await at.api.exec(id, { command: 'for s in -900 -1; do echo $s > /proc/self/oom_score_adj; done; cat /proc/self/oom_score_adj', ...options });
    assert.ok(Number(stdout) >= 0, `root inside lowered it to ${stdout}`);
  }
  await at.shutdown();
});
