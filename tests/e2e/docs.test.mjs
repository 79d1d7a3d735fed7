// SPDX-License-Identifier: Apache-2.0
// README.md and the guides are true: every command in them is run as it is printed, every flag, file and link in them
// exists. The `sh` blocks of a document run in order in one shell, on a fresh machine of their own (own_machine.sh).
//
// A block marked `sh foreground` runs in a first terminal, and stays there; the next are typed into a second one, in the
// same directory. Before one marked `sh ctrl-c`, and before another of the first terminal, somebody types Ctrl-C there.
// `sh terminal` runs on a terminal where somebody types exit; `sh full` needs E2E_FULL; `sh network` fetches packages, and
// has a test of its own with the network of the host, README.md's always and the guides' with E2E_FULL; `sh no-run` is left
// out, for a reason that is given below (NOT_RUN).
// Images come from a registry of the machine, and its ssh and the server of examples lead to itself. ADDRESS, from which
// README clones, is a directory beside the reader, and the clone's build is the one that is tested; with E2E_FULL it is built.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';

import { commandLine } from './lib/cli.mjs';
import { runOnOwnMachine } from './lib/docs_machine.mjs';
import { BUILD_DIR, Instance, program, REPOSITORY } from './lib/instance.mjs';
import { DEADLINE_MS } from './lib/wait.mjs';

const execute = promisify(execFile);
const GUIDES = fs.readdirSync(path.join(REPOSITORY, 'docs')).filter((name) => name.endsWith('.md')).sort().map((name) => `docs/${name}`);
const DOCUMENTS = ['README.md', ...GUIDES];
const read = (name) => fs.readFileSync(path.join(REPOSITORY, name), 'utf8');

const FULL = Boolean(process.env.E2E_FULL);
/** Why a block is not run, by its document and first line. */
const NOT_RUN = {
  'docs/templates.md: sandlot template create deb --bootstrap bookworm --apt git,curl': 'fetches a Debian; packages.test.mjs runs it as it is printed, with E2E_FULL',
};
/** The kinds of blocks that run on a machine of their own, and how one is written into a script. */
const KINDS = {
  sh: (text) => text,
  'sh terminal': (text) => atTerminal(text),
  'sh foreground': (text) => `foreground '${text.replaceAll("'", `'\\''`)}'`,
  'sh ctrl-c': (text) => `ctrl_c\n${text}`,
  'sh full': (text) => (FULL ? text : ':'),
};

/** What the commands of a document have to say, where their exit statuses do not tell whether they did what it promises. */
const SAYS = { 'docs/rootless.md': /^sandbox$[^]* running +host +1 +256Mi /m };

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

/** The first terminal: its keys come through a pipe, and what it shows goes to the log of the daemon. */
const FIRST_TERMINAL = `
first=
trap '[ -z "$first" ] || "$DAEMON_PROGRAMS/sandlot" shutdown' EXIT # while the daemon there is alive
ctrl_c() {
  [ -n "$first" ] || return 0
  printf '\\003' >&9
  wait $first || true
  exec 9>&-
  first=
}
foreground() {
  ctrl_c
  rm -f ~/keys && mkfifo ~/keys
  ( [ -n "\${AS_USER:-}" ] || export SANDLOT_DATA_DIR=$DAEMON_DATA_DIR # see own_machine.sh
    exec script --quiet --flush --command "set -e; $1" --append "$DAEMON_LOG" ) < ~/keys > /dev/null &
  first=$!
  exec 9<> ~/keys # both, so that nothing breaks when the other end is closed
  until "$DAEMON_PROGRAMS/sandlot" ls > /dev/null 2>&1; do kill -0 $first || return 1; sleep 0.05; done
  cd "$(readlink /proc/$(pgrep -P $first)/cwd)"
}
`;

/** One shell script of all blocks; it ends at the first command that fails, and names its line in the document. */
function scriptOf(document) {
  const head = `set -eE\ntrap 'echo "${document}: block at line $block: exit status $?: $BASH_COMMAND" >&2' ERR\n${FIRST_TERMINAL}`;
  const told = blocks(document).filter(({ info }) => KINDS[info]).map(({ line, info, text }) => `block=${line}\n${KINDS[info](text)}\n`);
  return `${head}${told.join('')}`;
}

/** What the machine of a guide has beside what all have. */
function machineOf(document) {
  const env = { ...(document !== 'README.md' && { INSTALLED: '1' }), ...(/python:3\.12-slim|postgres15/.test(read(document)) && { WITH_REGISTRY: '1' }) };
  if (document === 'README.md') return { clones: true, isWhole: FULL, builds: FULL, env };
  if (document === 'docs/rootless.md') return { user: 'sandlot-rootless', env };
  if (FULL && document === 'docs/speed.md') return { isWhole: true, env: { ...env, BENCH_ARGS: '--quick --only d' } };
  return { env };
}

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

/** Runs what README and guides do with packages of the network. */
async function followNetwork(t) {
  const { args, why } = await reachPackages();
  if (why) return t.skip(`not proven: no index of packages can be reached from a sandbox: ${why}`);
  const instance = new Instance('docs', { args });
  await instance.start();
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-e2e-docs-'));
  try {
    const env = instance.environment({ SANDLOT_DATA_DIR: instance.dataDir, PATH: `${BUILD_DIR}:${process.env.PATH}`, HOME: dir });
    for (const document of process.env.E2E_FULL ? DOCUMENTS : ['README.md']) {
      const text = blocks(document).filter(({ info }) => info === 'sh network').map((block) => block.text).join('\n');
      const commands = KEEP_REMOVED + text.replaceAll('sandlot create', ['sandlot create', ...TRUSTS].join(' '));
      const running = execute('bash', ['-ec', commands], { cwd: dir, env, timeout: 6 * DEADLINE_MS, maxBuffer: 1 << 26 });
      running.child.stdin.end();
      await running.catch((error) => assert.fail(`${document}: ${error.message}\n${error.stdout}`));
    }
    assert.equal(fs.existsSync(path.join(dir, 'figure.png')), false, 'the example tidies up');
    assert.equal(fs.readFileSync(path.join(dir, 'removed/figure.png')).subarray(1, 4).toString(), 'PNG');
  } finally {
    instance.api.disconnect(); // pip may have taken longer than the daemon keeps a silent connection
    await instance.shutdown();
    instance.destroy();
    fs.rmSync(dir, { recursive: true });
  }
}

// DOCS_ONLY names one, and DOCS_SHOW shows what its commands said: for whoever writes a guide. They wait more than they
// compute, and know nothing of each other. What waits for the network begins first.
describe('the commands run as they are printed', { concurrency: Number(process.env.DOCS_JOBS ?? 2), timeout: 7 * DEADLINE_MS }, () => {
  if (!process.env.DOCS_ONLY) test('with packages of the network', followNetwork);
  for (const document of DOCUMENTS.filter((name) => name === (process.env.DOCS_ONLY ?? name))) {
    test(`of ${document}`, async () => {
      const kinds = blocks(document).map(({ info }) => info);
      assert.deepEqual(kinds.filter((kind) => ![...Object.keys(KINDS), 'sh no-run', 'sh network', 'json', 'text', 'ini'].includes(kind)), [], 'the kinds of blocks are known');
      if (!kinds.some((kind) => KINDS[kind])) return;
      if (FULL && kinds.includes('sh full')) execFileSync(path.join(REPOSITORY, 'scripts/deps.sh'), ['bench']);
      const { code, signal, said, logged, cgroups } = await runOnOwnMachine(scriptOf(document), machineOf(document));
      if (process.env.DOCS_SHOW) console.log(said);
      assert.equal(code, 0, `${document}: ${signal ?? code}\n${said.slice(-4000)}\nlog of the daemon:\n${logged}`);
      assert.match(said, SAYS[document] ?? /^/);
      assert.deepEqual(cgroups, [], 'the keeper left no cgroup');
    });
  }
});

test('a block that is not run has a reason', () => {
  const found = DOCUMENTS.flatMap((document) => blocks(document).filter(({ info }) => info === 'sh no-run').map(({ text }) => `${document}: ${text.split('\n')[0]}`));
  assert.deepEqual(found.sort(), Object.keys(NOT_RUN).sort());
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
