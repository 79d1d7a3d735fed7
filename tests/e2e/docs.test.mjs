// SPDX-License-Identifier: Apache-2.0
// README.md and the guides are true: every command in them is run as it is printed, every flag, file and link in them
// exists. The `sh` blocks of a document run in order in one shell, on a fresh machine of their own (own_machine.sh).
//
// A block marked `sh no-run` is left out, for a reason that is given below (NOT_RUN). One marked `sh terminal` runs on a
// terminal where somebody types exit; one marked `sh network` fetches packages, and has a test of its own with the
// network of the host. Images come from a registry of that machine, and its ssh and the server of examples lead to itself.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { BUILD_DIR, Instance, program, REPOSITORY } from './lib/instance.mjs';
import { DEADLINE_MS } from './lib/wait.mjs';

const LIB = path.join(REPOSITORY, 'tests/e2e/lib');
const GUIDES = fs.readdirSync(path.join(REPOSITORY, 'docs')).filter((name) => name.endsWith('.md')).sort().map((name) => `docs/${name}`);
const DOCUMENTS = ['README.md', ...GUIDES];
const read = (name) => fs.readFileSync(path.join(REPOSITORY, name), 'utf8');

/** Why a block is not run, by its document and first line. */
const NOT_RUN = {
  'README.md: apt-get install -y git make curl': 'installs packages of the host, clones and builds',
  'docs/rootless.md: make run': 'builds, and stays in the foreground; rootless.test.mjs starts such a daemon',
  'docs/rootless.md: systemd-run --user --scope -p Delegate=yes build/sandlotd': "needs a user's systemd",
  'docs/templates.md: sandlot template create deb --bootstrap bookworm --apt git,curl': 'fetches a Debian; packages.test.mjs runs it as it is printed, with E2E_FULL',
  'docs/members.md: sandlot create --name store --member database=postgres15': 'makes a PostgreSQL of packages; packages.test.mjs runs it as it is printed, with E2E_FULL',
  'docs/speed.md: make bench': 'installs Docker and nginx, and measures for many minutes',
};

/** The fenced blocks of a document: { line, info, text }, where line is the number of the first line of text. */
function blocks(document) {
  const found = [];
  let open = null;
  read(document).split('\n').forEach((line, index) => {
    if (!line.startsWith('```')) return open?.text.push(line);
    if (open) found.push({ ...open, text: open.text.join('\n') });
    open = open ? null : { line: index + 2, info: line.slice(3), text: [] };
  });
  assert.equal(open, null, `${document}: a block is not closed`);
  return found;
}

/** Text without its fenced blocks. */
const prose = (document) => read(document).replace(/^```[^]*?^```/gm, '');

/** The same commands on a terminal, with somebody who types `exit`. It has a shell of its own, which knows the variables of the reader's. */
const atTerminal = (text) => `(for name in $(compgen -v | grep '^[a-z]'); do export "$name"; done; script --quiet --return --command '${text.replaceAll("'", `'\\''`)}' /dev/null <<< 'echo typed; exit')`;

/** One shell script of all blocks; it ends at the first command that fails, and names its line in the document. */
function scriptOf(document) {
  const head = `set -eE\ntrap 'echo "${document}: block at line $block: exit status $?: $BASH_COMMAND" >&2' ERR\n`;
  return head + blocks(document).filter(({ info }) => ['sh', 'sh terminal'].includes(info)).map(({ line, info, text }) => `block=${line}\n${info === 'sh' ? text : atTerminal(text)}\n`).join('');
}

/** work/: a clone that is one commit behind, with what its first directory has and the programs built. */
function makeClone(dir) {
  const [origin, work] = ['origin', 'work'].map((name) => path.join(dir, name));
  const git = (...args) => execFileSync('git', ['-c', 'user.name=docs', '-c', 'user.email=docs@localhost', '-C', dir, ...args], { stdio: 'pipe' });
  fs.mkdirSync(origin);
  for (const name of ['README.md', 'Makefile']) fs.copyFileSync(path.join(REPOSITORY, name), path.join(origin, name));
  fs.cpSync(path.join(REPOSITORY, 'scripts'), path.join(origin, 'scripts'), { recursive: true });
  git('init', '--quiet', '--initial-branch', 'main', origin);
  git('-C', origin, 'add', '.');
  git('-C', origin, 'commit', '--quiet', '--message', 'a release');
  git('clone', '--quiet', origin, work);
  git('-C', origin, 'commit', '--quiet', '--allow-empty', '--message', 'the next release');
  fs.symlinkSync(BUILD_DIR, path.join(work, 'build'));
}

/** The directory that own_machine.sh wants, with what a clone of the project has in its first directory. */
function makeMachine(script) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-e2e-docs-'));
  fs.chmodSync(dir, 0o755);
  for (const name of ['etc', 'etc.work', 'local', 'local.work', 'lib', 'bin', 'home']) fs.mkdirSync(path.join(dir, name));
  for (const [name, script] of [['systemctl', 'systemctl.sh'], ['ssh', 'ssh.sh'], ['sudo', 'ssh.sh']]) fs.symlinkSync(path.join(LIB, script), path.join(dir, 'bin', name));
  makeClone(dir);
  fs.writeFileSync(path.join(dir, 'home/.curlrc'), 'fail-with-body\n'); // an error of the API is an error of the command
  fs.writeFileSync(path.join(dir, 'script'), script);
  return dir;
}

function run(dir, more = {}) {
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

/** The cgroups of a keeper, which are named after its data directory (make_tag in src/keeper/main.c). */
function cgroupsOf(dataDir) {
  let hash = 14695981039346656037n;
  for (const byte of Buffer.from(dataDir)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 1099511628211n);
  const name = `sandlot-${BigInt.asUintN(32, hash ^ (hash >> 32n)).toString(16).padStart(8, '0')}`;
  const root = '/sys/fs/cgroup';
  return [root, ...fs.readdirSync(root).map((entry) => path.join(root, entry))].map((dir) => path.join(dir, name)).filter((dir) => fs.existsSync(dir));
}

// DOCS_ONLY names one, and DOCS_SHOW shows what its commands said: for whoever writes a guide.
for (const document of DOCUMENTS.filter((name) => name === (process.env.DOCS_ONLY ?? name))) {
  test(`the commands of ${document} run as they are printed`, async () => {
    const kinds = blocks(document).map(({ info }) => info);
    assert.deepEqual(kinds.filter((kind) => !['sh', 'sh no-run', 'sh terminal', 'sh network', 'json', 'text', 'ini'].includes(kind)), [], 'the kinds of blocks are known');
    if (!kinds.includes('sh')) return;
    const dir = makeMachine(scriptOf(document));
    try {
      const { code, signal, said } = await run(dir, { ...(document !== 'README.md' && { INSTALLED: '1' }), ...(/python:3\.12-slim/.test(read(document)) && { WITH_REGISTRY: '1' }) });
      if (process.env.DOCS_SHOW) console.log(said);
      const log = path.join(dir, 'daemon.log');
      const logged = fs.existsSync(log) ? fs.readFileSync(log, 'utf8').slice(-2000) : '';
      assert.equal(code, 0, `${document}: ${signal ?? code}\n${said.slice(-4000)}\nlog of the daemon:\n${logged}`);
      assert.deepEqual(cgroupsOf(path.join(dir, 'lib/sandlot')), [], 'the keeper left no cgroup');
    } finally {
      execFileSync('rm', ['-rf', dir]);
    }
  });
}

test('a block that is not run has a reason', () => {
  const found = DOCUMENTS.flatMap((document) => blocks(document).filter(({ info }) => info === 'sh no-run').map(({ text }) => `${document}: ${text.split('\n')[0]}`));
  assert.deepEqual(found.sort(), Object.keys(NOT_RUN).sort());
});

/** What npm is told about certificates where the host's own is told it too: Node has a list of its own. */
const TRUSTS = process.env.NODE_EXTRA_CA_CERTS ? ['-e', `NODE_EXTRA_CA_CERTS=${process.env.NODE_EXTRA_CA_CERTS}`] : [];

/** What an example removes at its end is looked at after it. */
const KEEP_REMOVED = 'rm() { mkdir -p removed; cp -t removed -- "$@"; command rm -- "$@"; }\n';

/** How a daemon is started so that its sandboxes reach the indexes of packages, or why they cannot: { args, why }. */
async function reachPackages() {
  const probe = new Instance('docs');
  await probe.start();
  try {
    const { sandlot } = commandLine(probe);
    const python = ['pip', 'download', '--quiet', '--no-deps', '--dest', '/tmp', 'six'], node = ['npm', 'view', '--silent', 'left-pad', 'version'];
    const rules = [], options = () => ['--network', 'internet', ...rules.flatMap((rule) => ['--allow', rule])];
    for (const fetches of [python, node]) {
      const run = () => sandlot(['run', ...options(), ...TRUSTS, '--', ...fetches]);
      let result = await run();
      // Where the names of an index lead to a private network, its addresses need a rule.
      const [, address] = /the rule ([\d.]+:443) would allow it/.exec(result.stderr) ?? [];
      if (address) {
        rules.push(address);
        result = await run();
      }
      if (result.code !== 0) return { why: `${fetches.join(' ')}: ${result.stderr.slice(-300)}` };
    }
    return { args: rules.length ? options() : [] };
  } finally {
    await probe.shutdown();
    probe.destroy();
  }
}

test('what README and guides do with packages of the network works as it is printed', async (t) => {
  const { args, why } = await reachPackages();
  if (why) return t.skip(`not proven: no index of packages can be reached from a sandbox: ${why}`);
  const instance = new Instance('docs', { args });
  await instance.start();
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-e2e-docs-'));
  try {
    const env = instance.environment({ SANDLOT_DATA_DIR: instance.dataDir, PATH: `${BUILD_DIR}:${process.env.PATH}`, HOME: dir });
    for (const document of DOCUMENTS) {
      const text = blocks(document).filter(({ info }) => info === 'sh network').map((block) => block.text).join('\n');
      const { status, stdout, stderr } = spawnSync('bash', ['-ec', KEEP_REMOVED + text.replaceAll('sandlot create', ['sandlot create', ...TRUSTS].join(' '))], { cwd: dir, env, encoding: 'utf8', timeout: 10 * DEADLINE_MS });
      assert.equal(status, 0, `${document}: ${stdout}${stderr}`);
    }
    assert.equal(fs.existsSync(path.join(dir, 'figure.png')), false, 'the example tidies up');
    assert.equal(fs.readFileSync(path.join(dir, 'removed/figure.png')).subarray(1, 4).toString(), 'PNG');
  } finally {
    instance.api.disconnect(); // pip may have taken longer than the daemon keeps a silent connection
    await instance.shutdown();
    instance.destroy();
    fs.rmSync(dir, { recursive: true });
  }
});

test('every flag and every command that README and guides name exists', () => {
  const help = (name, ...args) => execFileSync(program(name), args, { encoding: 'utf8' });
  const commands = new Set(help('sandlot', 'completion', 'bash').match(/[a-z][a-z-]+/g));
  const subjects = fs.readdirSync(path.join(REPOSITORY, 'src/cli/commands'), { recursive: true }).filter((file) => file.endsWith('.c')).flatMap((file) => [...read(`src/cli/commands/${file}`).matchAll(/\.name = "([a-z-]+)"/g)].map(([, name]) => name));
  const known = [help('sandlotd', '--help'), help('sandlot', '--help'), ...subjects.map((name) => help('sandlot', 'help', name))].join('\n');
  const flags = new Set([...known.matchAll(/--[a-z][a-z-]+/g)].map(([flag]) => flag));
  for (const document of DOCUMENTS) {
    for (const [, text] of prose(document).matchAll(/`([^`]+)`/g)) {
      const [, command] = /^(?:build\/)?sandlot ([a-z-]+)/.exec(text) ?? [];
      if (command) assert.ok(commands.has(command), `${document}: sandlot ${command}`);
      if (!/^(--|(build\/)?sandlotd? )/.test(text)) continue;
      for (const [flag] of text.matchAll(/--[a-z][a-z-]+/g)) assert.ok(flags.has(flag), `${document}: ${flag} is in no help`);
    }
  }
});

/** The name by which GitHub and others address a heading. */
const anchor = (heading) => heading.trim().toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-');

test('every link leads to a file and a heading that exist', () => {
  for (const document of [...DOCUMENTS, 'ARCHITECTURE.md', 'SECURITY.md', 'CHANGES.md']) {
    for (const [, target] of prose(document).matchAll(/\]\(([^)]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file, heading] = target.split('#');
      const name = file ? path.join(path.dirname(document), file) : document;
      assert.ok(fs.existsSync(path.join(REPOSITORY, name)), `${document}: ${target}`);
      if (heading) assert.ok([...read(name).matchAll(/^#+ (.*)$/gm)].some(([, text]) => anchor(text) === heading), `${document}: ${target}`);
    }
  }
});

test('every guide is linked from README.md, which has at most 180 lines', () => {
  const readme = read('README.md');
  for (const guide of GUIDES) assert.ok(readme.includes(`(${guide}`), guide);
  assert.ok(readme.trimEnd().split('\n').length <= 180);
});
test('ARCHITECTURE.md has less than 300 lines of 100 columns, and every path in it exists', () => {
  const lines = read('ARCHITECTURE.md').trimEnd().split('\n');
  assert.ok(lines.length < 300, `${lines.length} lines`);
  assert.deepEqual(lines.filter((line) => [...line].length > 100), []);
  const missing = [];
  for (const [, text] of prose('ARCHITECTURE.md').matchAll(/`([^`\s]+)`/g)) {
    // A path has a slash and ends in a name or a slash. Names in <> stand for others; those below are not of the tree.
    if (!/^[\w.-]+(\/[\w.-]+)*\/?(\.\[ch\])?$/.test(text) || !/\/|\.(c|h|mjs|sh|S|json|md)$/.test(text)) continue;
    if (/^(run|state|workspaces|snapshots|sandboxes|spares|templates|layers|trash|shredder)\//.test(text)) continue;
    const names = text.endsWith('.[ch]') ? [text.replace('.[ch]', '.c'), text.replace('.[ch]', '.h')] : [text];
    for (const name of names) if (!['', 'src/'].some((root) => fs.existsSync(path.join(REPOSITORY, root + name)))) missing.push(name);
  }
  assert.deepEqual(missing, []);
});
