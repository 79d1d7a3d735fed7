// SPDX-License-Identifier: Apache-2.0
// Terminals from the command line: a person at a real pseudo-terminal, in front of shell, exec -it and attach.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { Instance, program } from './lib/instance.mjs';
import { suite } from './lib/suite.mjs';
import { Terminal } from './lib/pseudo_terminal.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-terminal');
const { urlEnv, sandlot, ok, created, crash } = commandLine(instance);
const CTRL_C = '\x03';
const DETACH = '\x10\x11';
const SIGTERM = 15;
const ECHO = 0o10; // of the local flags of a terminal

const open = [];
after(() => { for (const terminal of open) terminal.end(); });

function sit(args, options = {}) {
  const env = instance.environment({ TERM: 'xterm-256color', ...urlEnv(), ...options.env });
  const terminal = new Terminal([program('sandlot'), ...args], { ...options, env });
  open.push(terminal);
  return terminal;
}

/** A shell that has answered. */
async function shell(id, ...options) {
  const terminal = sit(['shell', ...options, id]);
  await terminal.run('echo re""ady', /[\r\n]ready/);
  return terminal;
}

/** Ended with this code, and the terminal is as it was. */
async function left(terminal, code) {
  assert.equal(await terminal.exit(), code, terminal.text.slice(-500));
  assert.deepEqual(terminal.after, terminal.before, 'the state of the terminal is restored');
}

async function detach(terminal) {
  terminal.type(DETACH);
  const [, name] = await terminal.expect(/sandlot attach [0-9a-z]+ (p\d+)/);
  await left(terminal, 0);
  return name;
}

test('shell runs commands and passes the exit code on', async () => {
  const id = await created();
  const terminal = await shell(id);
  assert.notDeepEqual(await terminal.state(), terminal.before, 'the terminal is raw');
  await terminal.run('echo $((6 * 7)); tty; id -un', /[\r\n]42\r\n\/dev\/pts\/\d+\r\nsandbox\r/);
  terminal.type('exit 3\r');
  await left(terminal, 3);
});

test('a shell that ends by itself, by its end of input or by a signal gives that code', async () => {
  const id = await created();
  const zero = await shell(id);
  zero.type('\x04');
  await left(zero, 0);
  const killed = await shell(id);
  killed.type('kill -9 $$\r');
  await left(killed, 137);
});

test('shell has the user and the directory that it was asked for', async () => {
  const id = await created();
  const terminal = await shell(id, '-u', 'root', '-C', '/usr');
  await terminal.run('echo "$(id -u):$PWD"', /[\r\n]0:\/usr\r/);
  terminal.type('exit\r');
  await left(terminal, 0);
});

test('Ctrl-C interrupts what runs there, not the shell and not the client', async () => {
  const id = await created();
  const terminal = await shell(id);
  terminal.type('sleep 7361; echo st=$?\r');
  await until(async () => (await api.processes(id)).includes('sleep 7361'), { what: 'it sleeps' });
  terminal.type(CTRL_C);
  await until(async () => !(await api.processes(id)).includes('sleep 7361'), { what: 'it is interrupted' });
  await terminal.run('echo st""ill', /[\r\n]still/);
  terminal.type('exit 0\r');
  await left(terminal, 0);
});

test('Ctrl-C stops output that never ends', async () => {
  const id = await created();
  const terminal = await shell(id);
  terminal.type('yes 0123456789\r');
  await terminal.expect(/[\r\n]0123456789\r\n0123456789/);
  terminal.type(CTRL_C);
  await terminal.run('echo ba""ck', /[\r\n]back/);
  terminal.type('exit 0\r');
  await left(terminal, 0);
});

test('the window has the size of the terminal, also when that changes', async () => {
  const id = await created();
  const terminal = sit(['shell', id], { cols: 97, rows: 31 });
  await terminal.run('stty size', /[\r\n]31 97\r/);
  terminal.type('trap "stty size" WINCH; echo tra""pped\r');
  await terminal.expect(/[\r\n]trapped/);
  terminal.resize(132, 43);
  await terminal.run('true', /43 132\r/);
  terminal.type('exit 0\r');
  await left(terminal, 0);
});

test('what is typed and shown may be any UTF-8 and any byte', async () => {
  const id = await created();
  const terminal = await shell(id);
  await terminal.run('echo žlu""ťoučký kůň 日本 🐎', /[\r\n]žluťoučký kůň 日本 🐎\r/);
  await terminal.run('printf "\\377\\376\\n" | od -An -tx1', /ff fe 0a/);
  terminal.type('od -An -tx1 -N3; echo\r');
  terminal.type('\x1b[A\r');
  await terminal.expect(/1b 5b 41/);
  terminal.type('exit 0\r');
  await left(terminal, 0);
});

test('a long output arrives whole', async () => {
  const id = await created();
  const terminal = await shell(id);
  await terminal.run('stty -opost; seq 1 200000; stty opost; echo do""ne', /[\r\n]done/);
  const numbers = [...terminal.text.matchAll(/(?<=\n)(\d+)(?=\n)/g)].map(([, n]) => Number(n));
  assert.deepEqual(numbers.slice(-199_000), Array.from({ length: 199_000 }, (_, i) => i + 1001));
  terminal.type('exit 0\r');
  await left(terminal, 0);
});

test('vim and top start, show themselves and quit', async () => {
  const id = await created();
  const editor = sit(['exec', '-it', id, 'vim', '-u', 'NONE', '/tmp/file']);
  await editor.expect(/~/);
  editor.type('itext from vim\x1b:wq\r');
  await left(editor, 0);
  assert.equal((await api.read(id, '/tmp/file')).toString(), 'text from vim\n');
  const top = sit(['exec', '-it', id, 'top']);
  await top.expect(/PID/);
  top.type('q');
  await left(top, 0);
});

test('exec -it gives the program a terminal of the right size and kind, and its exit code', async () => {
  const id = await created();
  const terminal = sit(['exec', '-it', '-e', 'K=v', id, '--', 'sh', '-c', 'stty size; echo $TERM $K; exit 5'], { cols: 101, rows: 22 });
  await terminal.expect(/22 101\r\nxterm-256color v\r/);
  await left(terminal, 5);
});

test('exec -it shows output from before it was attached, and only once', async () => {
  const id = await created();
  const terminal = sit(['exec', '-it', id, '--', 'sh', '-c', 'seq 1 1000; read x; exit 4']);
  await terminal.expect(/[\r\n]1000\r/);
  terminal.type('\r');
  await left(terminal, 4);
  assert.equal(terminal.text.match(/^500\r$/gm).length, 1);
});

test('detaching leaves the shell running, and attach shows it with what it printed', async () => {
  const id = await created();
  const first = await shell(id);
  await first.run('variable=kept; echo se""t', /[\r\n]set/);
  const name = await detach(first);
  assert.equal(await ok(['ps', '-q', id]), `${name}\n`);
  const second = sit(['attach', id, name]);
  await second.expect(/[\r\n]set/);
  await second.run('echo $variable', /[\r\n]kept/);
  second.type('exit 9\r');
  await left(second, 9);
  assert.equal((await sandlot(['wait', id, name])).code, 9);
});

test('what leads back to a shell is said with the name that was given', async () => {
  const { id } = await api.create({ name: 'desk' });
  const terminal = await shell('desk');
  const name = await detach(terminal);
  assert.match(terminal.text, new RegExp(`go back to it with: sandlot attach desk ${name}\\r\n`));
  await ok(['rm', '--purge', id]);
});

test('the keys to detach may come apart, and a Ctrl-P alone goes to the shell', async () => {
  const id = await created();
  const terminal = await shell(id);
  await terminal.run('echo bef""ore', /[\r\n]before/);
  terminal.type('\x10');
  await terminal.expect(/echo bef""ore/);
  terminal.type('\r');
  await terminal.expect(/[\r\n]before/);
  terminal.type('\x10');
  terminal.type('\x11');
  await terminal.expect(/sandlot attach/);
  await left(terminal, 0);
});

test('two terminals on one shell see the same', async () => {
  const id = await created();
  const first = await shell(id);
  const [name] = (await ok(['ps', '-q', id])).split('\n');
  const second = sit(['attach', id, name]);
  await second.expect(/[\r\n]ready/);
  await second.run('echo from the sec""ond', /[\r\n]from the second/);
  await first.expect(/[\r\n]from the second/);
  await detach(second);
  first.type('exit 0\r');
  await left(first, 0);
});

test('leaving a full-screen program gives the screen back as it was', async () => {
  const id = await created();
  const terminal = await shell(id);
  terminal.type("printf '\\033[?1049h\\033[?1000h\\033[?2004h\\033[?25l'; echo fu\"\"ll; sleep 600\r");
  await terminal.expect(/\?25lfull/);
  terminal.type(DETACH);
  await terminal.expect(/\x1b\[\?1000l\x1b\[\?2004l\x1b\[\?25h\x1b\[\?1049l/);
  await terminal.expect(/sandlot attach/);
  await left(terminal, 0);
});

test('attach to a full-screen program that has written much enters its screen, and leaving gives the own one back', async () => {
  const id = await created();
  const name = (await ok(['exec', '-dt', id, '--', 'python3', '-c', "print('\\x1b[?1049h\\x1b[?1000h' + 'x' * 300000 + 'en' + 'd', end='', flush=True); input()"])).trim();
  await until(async () => (await api.request('GET', `/v1/sandboxes/${id}/processes/${name}`)).json.process.output_bytes > 300_000, { what: 'all is written' });
  const terminal = sit(['attach', id, name]);
  await terminal.expect(/\x1b\[\?1049h\x1b\[\?1000hx[^]*xend/);
  terminal.type(DETACH);
  await terminal.expect(/\x1b\[\?1000l\x1b\[\?1049l/);
  await left(terminal, 0);
});

test('the log of a daemon on a terminal is for people', async (t) => {
  const at = new Instance('log-terminal');
  t.after(() => at.destroy());
  const terminal = new Terminal([at.daemonFile, '--data-dir', at.dataDir, '--api-bind', '127.0.0.1:0', ...at.usual], { env: at.environment({}), cols: 200 });
  open.push(terminal);
  await terminal.expect(/\d\d:\d\d:\d\d {2}\S/);
  await until(() => fs.existsSync(path.join(at.dataDir, 'run/api.addr')), { what: 'it serves' });
  terminal.type(CTRL_C);
  assert.equal(await terminal.exit(), 0, terminal.text.slice(-1000));
  assert.doesNotMatch(terminal.text, /^\{/m);
  await at.start();
  assert.match(at.log(), /^\{"time":/m, 'in a file it is for programs');
  await at.shutdown();
});

test('attach to a terminal whose process has ended shows the end', async () => {
  const id = await created();
  const name = (await ok(['exec', '-dt', id, '-c', 'echo last words; exit 6'])).trim();
  await sandlot(['wait', id, name]);
  const terminal = sit(['attach', id, name]);
  await terminal.expect(/last words/);
  await left(terminal, 6);
});

test('the daemon killed and started again under a shell: it is the same shell, nothing lost or doubled', async () => {
  const id = await created();
  const terminal = await shell(id);
  await terminal.run('variable=kept; echo se""t', /[\r\n]set/);
  terminal.type('for i in $(seq 1 100); do echo n$i; sleep 0.03; done; echo fin""ished\r');
  await terminal.expect(/[\r\n]n20\r/);
  await crash(() => terminal.expect(/connection is lost/));
  await terminal.expect(/connection is back/);
  await terminal.expect(/[\r\n]finished/);
  assert.deepEqual([...terminal.text.matchAll(/^n(\d+)\r$/gm)].map(([, n]) => Number(n)), Array.from({ length: 100 }, (_, i) => i + 1));
  await terminal.run('echo $variable', /[\r\n]kept/);
  terminal.type('exit 2\r');
  await left(terminal, 2);
});

test('what is typed while the connection is lost arrives when it is back', async () => {
  const id = await created();
  const terminal = await shell(id);
  await crash(async () => {
    await terminal.expect(/connection is lost/);
    terminal.type('echo typed mean""while\r');
  });
  await terminal.expect(/[\r\n]typed meanwhile/);
  terminal.type('exit 0\r');
  await left(terminal, 0);
});

test('Ctrl-C gives up on a connection that is lost, and says how to go back', async () => {
  const id = await created();
  const terminal = await shell(id);
  await crash(async () => {
    await terminal.expect(/connection is lost/);
    terminal.type(CTRL_C);
    await terminal.expect(/sandlot attach/);
    await left(terminal, 75);
  });
  const [name] = (await ok(['ps', '-q', id])).split('\n');
  await ok(['kill', id, name]);
});

test('a signal to the client restores the terminal and leaves the shell running', async () => {
  const id = await created();
  const terminal = await shell(id);
  terminal.signal(SIGTERM);
  await left(terminal, 128 + SIGTERM);
  const [name] = (await ok(['ps', '-q', id])).split('\n');
  assert.match(name, /^p\d+$/);
  const again = sit(['attach', id, name]);
  await again.run('echo st""ill', /[\r\n]still/);
  again.hangup();
  assert.equal(await again.exit(), 129);
  assert.equal(await ok(['ps', '-q', id]), `${name}\n`, 'a closed window leaves it running too');
  await ok(['kill', id, name]);
});

test('a sandbox that is stopped or removed ends the shell and restores the terminal', async () => {
  for (const verb of ['stop', 'rm']) {
    const id = await created();
    const terminal = await shell(id);
    await ok([verb, id]);
    assert.notEqual(await terminal.exit(), 0);
    assert.deepEqual(terminal.after, terminal.before);
  }
});

test('shell wakes a stopped sandbox', async () => {
  const id = await created();
  await ok(['stop', id]);
  const terminal = await shell(id);
  terminal.type('exit 0\r');
  await left(terminal, 0);
});

test('errors look as they do without a terminal and leave it as it was', async () => {
  const id = await created();
  const nobody = '01arz3ndektsv4rrffq69g5fav';
  for (const [args, words, env] of [
    [['shell', nobody], new RegExp(nobody)], [['attach', id, 'p9999'], /p9999/], [['shell', '-C', '/no/such/dir', id], /no\/such\/dir/], [['shell', '-u', 'nobody-there', id], /nobody-there|user/],
    [['shell', id], /token/i, { SANDLOT_TOKEN: 'wrong' }], [['shell', id], /cannot reach/, { SANDLOT_URL: 'http://127.0.0.1:1' }],
  ]) {
    const terminal = sit(args, { env });
    await terminal.expect(words);
    const code = await terminal.exit();
    assert.ok(code > 0 && code < 128, `${args}: ${code}`);
    assert.deepEqual(terminal.after, terminal.before);
  }
});

test('a secret that is typed is not shown, and the terminal is as it was, also after a signal', async () => {
  const server = ['--server', 'https://api.example.com'];
  const typed = sit(['secret', 'set', 'typed', ...server]);
  await typed.expect(/type the secret/);
  await until(async () => !((await typed.state())[3] & ECHO), { what: 'nothing is shown any more' });
  typed.type('canary-value\r');
  await typed.expect(/typed\.internal is https:\/\/api\.example\.com/);
  await left(typed, 0);
  assert.doesNotMatch(typed.text, /canary/);
  assert.match(await ok(['secret', 'ls']), /^typed +https:/m);
  for (const [name, leave] of [['interrupted', (one) => one.type(CTRL_C)], ['terminated', (one) => one.signal(SIGTERM)], ['nothing', (one) => one.type('\r')]]) {
    const one = sit(['secret', 'set', name, ...server]);
    await one.expect(/type the secret/);
    await until(async () => !((await one.state())[3] & ECHO), { what: 'nothing is shown any more' });
    leave(one);
    assert.notEqual(await one.exit(), 0, name);
    assert.deepEqual(one.after, one.before, name);
  }
  assert.doesNotMatch(await ok(['secret', 'ls']), /interrupted|terminated|nothing/);
});

test('stats is live on a terminal until Ctrl-C', async () => {
  const id = await created();
  const terminal = sit(['stats', id]);
  await until(() => terminal.text.split(id).length > 2, { what: 'it is shown twice' });
  terminal.type(CTRL_C);
  await left(terminal, 130);
});

test('purge asks about a sandbox that exists, not about what a removed one left, nor with --force or -y', async () => {
  const id = await created('--name', 'precious');
  const terminal = sit(['purge', 'precious']);
  await terminal.expect(/Remove the sandbox precious, which is running, with all its files\? \[y\/N\] /);
  terminal.type('\r');
  await terminal.expect(/nothing was done/);
  assert.notEqual(await terminal.exit(), 0);
  assert.equal((await api.get(id)).status, 'running');
  const yes = sit(['purge', id]);
  await yes.expect(/Remove the sandbox precious/);
  yes.type('y\r');
  await left(yes, 0);
  assert.equal(yes.text.split(id).length, 2, `once: ${yes.text}`);
  for (const option of ['--force', '-y']) await left(sit(['purge', option, await created()]), 0);
  const gone = await created();
  await ok(['rm', gone]);
  await left(sit(['purge', gone]), 0);
  assert.equal((await ok(['ls', '--removed', '-q'])).includes(gone), false);
});

test('rm --all asks how many, and does nothing unless it is answered yes', async () => {
  const id = await created();
  const count = (await ok(['ls', '-q'])).trim().split('\n').length;
  for (const answer of ['n\r', '\r']) {
    const terminal = sit(['rm', '--all']);
    await terminal.expect(new RegExp(`Remove ${count} sandboxes\\? \\[y/N\\] `));
    terminal.type(answer);
    await terminal.expect(/nothing was done/);
    assert.notEqual(await terminal.exit(), 0);
  }
  assert.match(await ok(['ls', '-q']), new RegExp(id));
  const terminal = sit(['rm', '--all', '--purge']);
  await terminal.expect(new RegExp(`Remove ${count} sandboxes with all their files\\? \\[y/N\\] `));
  terminal.type('y\r');
  await left(terminal, 0);
  assert.equal(await ok(['ls', '-q']), '');
});

finish();
