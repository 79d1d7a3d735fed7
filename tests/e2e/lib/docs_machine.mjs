// SPDX-License-Identifier: Apache-2.0
// The fresh machine on which the commands of a guide are run: what is in it, and who sits at it. own_machine.sh starts it.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { accountOf, Delegation } from './account.mjs';
import { BUILD_DIR, REPOSITORY } from './instance.mjs';
import { DEADLINE_MS, until } from './wait.mjs';

const LIB = path.join(REPOSITORY, 'tests/e2e/lib');
/** What there is in place of programs that need more than this machine: see the scripts. */
const STAND_INS = { systemctl: 'systemctl.sh', 'systemd-run': 'systemd-run.sh', ssh: 'ssh.sh', sudo: 'ssh.sh' };

/** origin/: the repository, with what its first directory has, or everything; and a hook that gives a clone of it the build. */
function makeOrigin(dir, { isWhole, builds }) {
  const git = (...args) => execFileSync('git', ['-c', 'user.name=docs', '-c', 'user.email=docs@localhost', '-C', path.join(dir, 'origin'), ...args], { stdio: 'pipe' });
  const files = execFileSync('git', ['-C', REPOSITORY, 'ls-files', '-z', ...(isWhole ? [] : ['README.md', 'Makefile', 'scripts'])], { encoding: 'utf8' }).split('\0').filter((name) => fs.existsSync(path.join(REPOSITORY, name)));
  for (const name of files.filter(Boolean)) fs.cpSync(path.join(REPOSITORY, name), path.join(dir, 'origin', name));
  git('init', '--quiet', '--initial-branch', 'main');
  git('add', '.');
  git('commit', '--quiet', '--message', 'a release');
  fs.mkdirSync(path.join(dir, 'template/hooks'), { recursive: true });
  if (!builds) fs.writeFileSync(path.join(dir, 'template/hooks/post-checkout'), `#!/bin/sh\nln -sfn '${BUILD_DIR}' build\n`, { mode: 0o755 });
  return git;
}

/**
 * The directory that own_machine.sh wants. The reader begins in work/: a clone of the project that is one commit behind,
 * with the programs built; or, if the guide clones it, an empty directory beside ADDRESS.
 */
function makeMachine(script, { clones, ...origin }) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-e2e-docs-'));
  fs.chmodSync(dir, 0o755);
  for (const name of ['etc', 'etc.work', 'local', 'local.work', 'dpkg', 'dpkg.work', 'tree', 'tree.work', 'lib', 'bin', 'home', 'origin', 'work']) fs.mkdirSync(path.join(dir, name));
  for (const [name, file] of Object.entries(STAND_INS)) fs.symlinkSync(path.join(LIB, file), path.join(dir, 'bin', name));
  const git = makeOrigin(dir, origin);
  if (clones) {
    fs.symlinkSync('../origin', path.join(dir, 'work/ADDRESS'));
  } else {
    execFileSync('git', ['clone', '--quiet', '--template', path.join(dir, 'template'), path.join(dir, 'origin'), path.join(dir, 'work')]);
    git('commit', '--quiet', '--allow-empty', '--message', 'the next release');
  }
  fs.writeFileSync(path.join(dir, 'home/.curlrc'), 'fail-with-body\n'); // an error of the API is an error of the command
  fs.writeFileSync(path.join(dir, 'script'), script);
  return dir;
}

/** The cgroups of a keeper, which are named after its data directory (make_tag in src/keeper/main.c). */
function cgroupsOf(dataDir) {
  let hash = 14695981039346656037n;
  for (const byte of Buffer.from(dataDir)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 1099511628211n);
  const name = `sandlot-${BigInt.asUintN(32, hash ^ (hash >> 32n)).toString(16).padStart(8, '0')}`;
  const root = '/sys/fs/cgroup';
  return [root, ...fs.readdirSync(root).map((entry) => path.join(root, entry))].map((dir) => path.join(dir, name)).filter((dir) => fs.existsSync(dir));
}

function run(dir, more) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SANDLOT_|NODE_TEST)/.test(name)));
  const args = ['--mount', '--net', '--pid', '--fork', '--mount-proc', '--kill-child', path.join(LIB, 'own_machine.sh'), dir, path.join(dir, 'script'), BUILD_DIR];
  const child = spawn('unshare', args, { env: { ...env, ...more }, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { said += chunk; });
  const timer = setTimeout(() => { said += '\n(it did not end in time)'; child.kill('SIGKILL'); }, 5 * DEADLINE_MS);
  return new Promise((resolve) => {
    child.on('close', (code, signal) => { clearTimeout(timer); resolve({ code, signal, said }); });
  });
}

/**
 * Runs a script on a machine of its own, and says how that ended: { code, signal, said, logged, cgroups: what is left }.
 * clones: it clones the project and starts it, so there is neither before; isWhole: all files are in what it clones;
 * builds: and not the programs. user: whose machine it is if not root's. env: of own_machine.sh.
 */
export async function runOnOwnMachine(script, { clones = false, isWhole = false, builds = false, user = null, env = {} }) {
  const dir = makeMachine(script, { clones, isWhole, builds });
  const account = user && accountOf(user);
  const delegation = account && new Delegation(path.basename(dir), account);
  const more = account ? { AS_USER: account.become.join(' '), OWNER: `${account.uid}:${account.gid}`, DELEGATED: delegation.dirs.join(' '), REPOSITORY } : {};
  try {
    const ended = await run(dir, { ...env, ...more, ...(clones && { GIT_TEMPLATE_DIR: path.join(dir, 'template') }), ...((clones || user) && { STARTS_ITSELF: '1' }) });
    const log = path.join(dir, 'daemon.log');
    if (delegation) await until(() => { delegation.remove(); return true; }, { what: 'the groups of the user are empty' });
    return { ...ended, logged: fs.existsSync(log) ? fs.readFileSync(log, 'utf8').slice(-2000) : '', cgroups: [...cgroupsOf(path.join(dir, 'lib/sandlot')), ...(delegation?.dirs ?? []).filter((each) => fs.existsSync(each))] };
  } finally {
    execFileSync('rm', ['-rf', dir]);
  }
}
