// SPDX-License-Identifier: Apache-2.0
// sandlot run: a sandbox for one command, of which nothing is left.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { commandLine, speaks } from './lib/cli.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { program } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { Terminal } from './lib/pseudo_terminal.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-run');
const { urlEnv, start, sandlot, ok, json } = commandLine(instance);
const DETACH = '\x10\x11';
const SIGHUP = 1;

const open = [];
after(() => { for (const terminal of open) terminal.end(); });

function sit(args) {
  const terminal = new Terminal([program('sandlot'), ...args], { env: instance.environment({ TERM: 'xterm-256color', ...urlEnv() }) });
  open.push(terminal);
  return terminal;
}

const workspaces = () => proc.stored(path.join(instance.dataDir, 'workspaces')).length;
const before = workspaces();
const nothingLeft = () => until(async () => (await api.all()).length === 0 && workspaces() === before, { what: 'nothing is left' });

test('run takes --rm, which it does in any case, and refuses it beside what leaves the sandbox', async () => {
  assert.equal(await ok(['run', '--rm', '--', 'echo', 'gone']), 'gone\n');
  await nothingLeft();
  for (const leaves of ['-d', '-k']) speaks(await sandlot(['run', '--rm', leaves, '--', 'true']), /--rm does not go with them/);
});

test('what a sandbox that is gone should have reached is an option of the next run', async () => {
  const fetches = (host) => ['python3', '-c', `import urllib.request as u; u.urlopen("http://${host}")`];
  const none = await sandlot(['run', '--network', 'none', '--', ...fetches('refused.example')]);
  assert.match(none.stderr, /mode none; to change that: sandlot run --network internet \.\.\.$/m);
  const listed = await sandlot(['run', '--allow', 'other.example', '--', ...fetches('refused.example')]);
  assert.match(listed.stderr, /sandlot run --network allowlist --allow refused\.example(:80)? \.\.\.$/m);
  const wide = await sandlot(['run', '--network', 'internet', '--', ...fetches('10.255.255.1')], { input: 'open' });
  assert.match(wide.stderr, /sandlot run --network internet --allow 10\.255\.255\.1(:80)? \.\.\.$/m);
  for (const { stderr } of [none, listed, wide]) assert.doesNotMatch(stderr, /sandlot egress/);
  const kept = await sandlot(['run', '-k', '--network', 'none', '--', ...fetches('refused.example')]);
  assert.match(kept.stderr, /sandlot egress \S+ --mode internet/);
  await ok(['rm', '--purge', /kept (\S+)/.exec(kept.stderr)[1]]);
});

test('a limit that a sandbox that is gone had is an option of the next run', async () => {
  const forks = await sandlot(['run', '--pids', '20', '--', 'sh', '-c', 'for i in $(seq 60); do sleep 600 & done; exit 3']);
  assert.match(forks.stderr, /the limit of processes, 20, was hit .*; to change it: sandlot run --pids N \.\.\.$/m);
  const eats = await sandlot(['run', '--memory', '64Mi', '--', 'python3', '-c', 'x = b"x" * (300 << 20)']);
  assert.match(eats.stderr, /at a limit of 64 MiB; to change it: sandlot run --memory SIZE \.\.\.$/m);
  const late = await sandlot(['run', '-T', '300ms', '--', 'sleep', '600']);
  assert.match(late.stderr, /timeout \(to give it longer: exec -T TIME\): its timeout of 300 ms was over$/m);
  for (const { stderr } of [forks, eats, late]) assert.doesNotMatch(stderr, /sandlot update/);
});

test('run -it gives a command of an image the terminal too', async () => {
  const archive = path.join(instance.home, 'small.tar');
  fs.writeFileSync(archive, layoutArchive(image([busybox()], { config: { Env: ['PATH=/bin', 'WHO=image'], User: '1234' } })));
  await ok(['template', 'import', 'small', archive]);
  const terminal = sit(['run', '-it', '-t', 'small', '--', 'sh']);
  terminal.type('echo "<$WHO $(id -u)>"; test -t 0 && echo is""atty\r');
  await terminal.expect(/<image 1234>\r\nisatty/);
  terminal.type('exit 4\r');
  assert.equal(await terminal.exit(), 4);
  await nothingLeft();
  await ok(['template', 'rm', 'small']);
});

test('in an image a user who is not root finds what pip and npm install into the home directory', async () => {
  const archive = path.join(instance.home, 'user.tar');
  const files = [{ name: 'etc/passwd', data: 'root:x:0:0:root:/root:/bin/sh\napp:x:1234:1234::/home/app:/bin/sh\n' }, { name: 'home' }, { name: 'home/app', uid: 1234, gid: 1234 }];
  fs.writeFileSync(archive, layoutArchive(image([[...busybox().filter(({ name }) => name !== 'etc/passwd'), ...files]], { config: { Env: ['PATH=/bin', 'NPM_CONFIG_PREFIX=/srv/npm'], User: 'app' } })));
  await ok(['template', 'import', 'user', archive]);
  const shown = 'echo "$PATH $PIP_BREAK_SYSTEM_PACKAGES $NPM_CONFIG_PREFIX<$npm_config_prefix>"';
  assert.equal(await ok(['run', '-t', 'user', '--', 'sh', '-c', shown]), '/bin:/home/app/.local/bin 1 /srv/npm<>\n');
  assert.equal(await ok(['run', '-t', 'user', '-u', 'root', '--', 'sh', '-c', shown]), '/bin  /srv/npm<>\n');
  await ok(['template', 'rm', 'user']);
});

test('run -it gives a command the terminal, and removes its sandbox when it ends', async () => {
  const terminal = sit(['run', '-it', '-t', 'host', '--', 'bash', '--norc']);
  await terminal.run('echo $((6 * 7)); tty', /[\r\n]42\r\n\/dev\/pts\/\d+\r/);
  assert.equal((await api.all()).length, 1);
  terminal.type('exit 3\r');
  assert.equal(await terminal.exit(), 3);
  await nothingLeft();
});

test('run -it without a command is a shell', async () => {
  const terminal = sit(['run', '-ti', '-w', '/usr']);
  await terminal.run('echo "at:$PWD"', /[\r\n]at:\/usr\r/);
  terminal.type('exit\r');
  assert.equal(await terminal.exit(), 0);
  await nothingLeft();
});

test('a window that is closed leaves nothing of run -it', async () => {
  const terminal = sit(['run', '-it', '--', 'bash', '--norc']);
  await terminal.run('echo re""ady', /[\r\n]ready/);
  terminal.signal(SIGHUP);
  assert.equal(await terminal.exit(), 128 + SIGHUP);
  await nothingLeft();
});

test('the keys to detach keep the sandbox of run -it, and say so', async () => {
  const terminal = sit(['run', '-it', '--', 'bash', '--norc']);
  await terminal.run('echo re""ady', /[\r\n]ready/);
  terminal.type(DETACH);
  const [, id] = await terminal.expect(/kept ([0-9a-z]{26})/);
  assert.equal(await terminal.exit(), 0);
  assert.equal((await api.get(id)).status, 'running');
  await ok(['rm', '--purge', id]);
  await nothingLeft();
});

test('run -it needs a terminal', async () => {
  speaks(await sandlot(['run', '-it', '--', 'true']), /terminal/);
  await nothingLeft();
});

test('run -d prints the sandbox of a command that goes on', async () => {
  const result = await sandlot(['run', '-d', '--', 'sh', '-c', 'echo up; exec sleep 600']);
  assert.equal(result.code, 0, result.stderr);
  const id = result.stdout.trim();
  assert.match(id, /^[0-9a-z]{26}$/);
  assert.match(result.stderr, new RegExp(`sandlot rm --purge ${id}`));
  const [process] = (await json(['ps', '-o', 'json', id])).processes;
  assert.equal(process.status, 'running');
  assert.equal(await ok(['logs', id, process.id]), 'up\n');
  await ok(['rm', '--purge', id]);
  await nothingLeft();
});

test('run -d says how to remove what has a name by that', async () => {
  const result = await sandlot(['run', '-d', '--name', 'night', '--', 'sleep', '600']);
  assert.equal(result.stderr, 'sandlot: it runs on; remove it with: sandlot rm --purge night\n');
  await ok(['rm', '--purge', 'night']);
  await nothingLeft();
});

test('a command that cannot be started leaves nothing of run -d', async () => {
  const result = await sandlot(['run', '-d', '-w', '/no/such/directory', '--', 'true']);
  assert.notEqual(result.code, 0);
  await nothingLeft();
});

test('standard input has no bound, and comes as it is typed', async () => {
  const bytes = Buffer.alloc(5 * 2 ** 20, 'sandlot\n');
  const result = await sandlot(['run', '--', 'wc', '-c'], { input: bytes });
  assert.equal(result.code, 0, result.stderr);
  assert.equal(result.stdout, `${bytes.length}\n`);
  const child = start(['run', '--', 'sed', '-u', 's/^/got /'], { input: 'open' });
  child.stdin.write('one\n');
  await until(() => child.shown() === 'got one\n', { what: 'the first line came before the end of input' });
  child.stdin.end('two\n');
  assert.equal((await child.result).stdout, 'got one\ngot two\n');
  await nothingLeft();
});

test('a reader that leaves ends the command, and nothing is left', async () => {
  const child = start(['run', '--', 'sh', '-c', 'while echo line; do :; done'], { input: 'open' });
  await until(() => child.shown().length > 0, { what: 'it writes' });
  child.stdout.destroy();
  child.stdin.end();
  assert.notEqual((await child.result).code, 0);
  await nothingLeft();
});

finish();
