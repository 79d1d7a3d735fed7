// SPDX-License-Identifier: Apache-2.0
// Contexts from the command line: context, run-code --context, and a person at a terminal in front of repl.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { program } from './lib/instance.mjs';
import { Terminal } from './lib/pseudo_terminal.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('repl');
const { urlEnv, sandlot, ok, created } = commandLine(instance);
const CTRL_C = '\x03';
const CTRL_D = '\x04';
const UP = '\x1b[A';
const SIGTERM = 15;
const PIXEL = 'iVBORw0KGgo=';

const id = await created();
const home = path.join(instance.home, 'person');
const figures = path.join(instance.home, 'figures');
fs.mkdirSync(home);
fs.mkdirSync(figures);
const open = [];
after(() => { for (const terminal of open) terminal.end(); });

const contexts = async () => (await api.request('GET', `/v1/sandboxes/${id}/contexts`)).json.contexts;

/** A REPL that shows its prompt. */
async function sit(args = [id], prompt = />>> /) {
  const env = instance.environment({ ...urlEnv(), TERM: 'xterm-256color', HOME: home, XDG_STATE_HOME: '' });
  const terminal = new Terminal([program('sandlot'), 'repl', '--save', figures, ...args], { env });
  open.push(terminal);
  await terminal.expect(prompt);
  return terminal;
}

async function left(terminal, code = 0) {
  assert.equal(await terminal.exit(), code, terminal.text.slice(-500));
  assert.deepEqual(terminal.after, terminal.before, 'the state of the terminal is restored');
}

const running = () => until(async () => (await contexts()).some((one) => one.status === 'busy'), { what: 'it runs' });

// Without a terminal ----------------------------------------------------------------------------

test('context makes, lists, restarts and removes; run-code --context finds what is defined there', async () => {
  const context = (await ok(['context', 'create', id, '-l', 'python', '-e', 'MINE=yes', '-w', '/tmp', '--idle-timeout', '30m'])).trim();
  const run = (code) => sandlot(['run-code', '--context', context, '-', id], { input: code });
  assert.deepEqual((({ code, stdout, stderr }) => [code, stdout, stderr])(await run('import os\ntotal = 40')), [0, '', '']);
  assert.equal((await run('[total + 2, os.environ["MINE"], os.getcwd()]')).stdout, "[42, 'yes', '/tmp']\n");
  assert.match(await ok(['context', 'ls', id]), new RegExp(`^ID +LANGUAGE +STATUS +STATE +USED +REASON\n${context} +python +idle +kept`));
  assert.equal(await ok(['context', 'ls', '-q', id]), `${context}\n`);
  const [listed] = JSON.parse(await ok(['context', 'ls', id, '-o', 'json']));
  assert.deepEqual([listed.id, listed.idle_timeout_s], [context, 1800]);
  const short = context.slice(0, -1);
  assert.equal(await ok(['context', 'interrupt', id, short]), `${context} idle, state kept\n`);
  assert.match(await ok(['context', 'restart', id, short]), new RegExp(`^${context} idle`));
  const gone = await run('total');
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /NameError/);
  assert.equal(await ok(['context', 'rm', id, short]), `${context}\n`);
  assert.equal(await ok(['context', 'ls', '-q', id]), '');
  assert.match((await run('1')).stderr, new RegExp(context));
  assert.match((await sandlot(['context', 'walk', id])).stderr, /context can do create/);
  assert.match((await sandlot(['run-code', '-l', 'python', '--context', context, '-'], { input: '1' })).stderr, /--context needs the sandbox/);
});

test('repl takes its input from a pipe too, in both languages, and leaves nothing behind', async () => {
  const run = await sandlot(['repl', id], { input: 'def f(n):\n    return n + 1\n\nf(41)\nprint("said")\nNone\nx = {\n"a": 1}\nx' });
  assert.deepEqual([run.code, run.stdout, run.stderr], [0, "42\nsaid\n{'a': 1}\n", '']);
  const node = await sandlot(['repl', id, '-l', 'javascript', '-e', 'MINE=yes', '-w', '/tmp'], { input: 'const f = (n) => {\n\n  return n + 1;\n};\nf(41)\n[process.env.MINE, process.cwd()].join()\n' });
  assert.deepEqual([node.code, node.stdout, node.stderr], [0, '42\nyes,/tmp\n', '']);
  const failed = await sandlot(['repl', id], { input: '1 / 0' });
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /^Traceback \(most recent call last\):\n {2}File "cell 1", line 1, in <module>\n[^]*\nZeroDivisionError: division by zero\n$/);
  assert.equal((await sandlot(['repl', id], { input: 'exit()\n1 / 0\n' })).code, 0);
  assert.deepEqual(await contexts(), []);
});

test('repl says what does not go together', async () => {
  for (const [args, message] of [[['repl', id, '-t', 'host'], /--template does not go with a sandbox/], [['repl', '--context', 'x'], /--context needs the sandbox/],
    [['repl', id, '--context', 'x', '-l', 'python'], /of a new context/], [['repl', id, '--context', 'nothere'], /nothere/], [['repl', 'nothere'], /nothere/]]) {
    const refused = await sandlot(args, { input: '1' });
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, message);
  }
});

// At a terminal -----------------------------------------------------------------------------------

test('values are shown, blocks and brackets go on, magic works, and an error ends nothing', async () => {
  const terminal = await sit();
  await terminal.run('40 + 2', /[\r\n]42\r\n>>> /);
  await terminal.run('def f(n):', /\.\.\. /);
  await terminal.run('    return n * 2', /\.\.\. /);
  await terminal.run('', />>> /);
  await terminal.run('f(', /\.\.\. /);
  await terminal.run('21)', /[\r\n]42\r\n>>> /);
  await terminal.run("text = 'größer'; len(text)", /[\r\n]6\r\n>>> /);
  await terminal.run('1 / 0', /ZeroDivisionError: division by zero\r\n>>> /);
  await terminal.run('!echo $((6 * 7))', /[\r\n]42\r\n>>> /);
  await terminal.run('%pip --version', /[\r\n]pip [^\r]*\r\n[^]*>>> /);
  await terminal.run('input()', /Error[^]*>>> /);
  await terminal.run('f(_ if False else 4)', /[\r\n]8\r\n>>> /);
  terminal.type(CTRL_D);
  await left(terminal);
  assert.deepEqual(await contexts(), []);
});

test('figures are saved under numbers that are free, and their paths are printed', async () => {
  fs.writeFileSync(path.join(figures, 'figure-1.png'), 'mine');
  const terminal = await sit();
  await terminal.run(`display({"image/png": "${PIXEL}", "text/plain": "<Figure>"}, raw=True)`, /saved [^\r]*figure-2\.png\r\n>>> /);
  await terminal.run('display({"image/svg+xml": "<svg/>"}, raw=True)', /saved [^\r]*figure-3\.svg\r\n>>> /);
  terminal.type('exit\r');
  await left(terminal);
  assert.deepEqual(['figure-1.png', 'figure-3.svg'].map((name) => fs.readFileSync(path.join(figures, name), 'utf8')), ['mine', '<svg/>']);
  assert.equal(fs.readFileSync(path.join(figures, 'figure-2.png')).toString('base64'), PIXEL);
});

test('Ctrl-C forgets what is typed, and ends what runs, also what prints without end; the state is kept', async () => {
  const terminal = await sit();
  await terminal.run('mine = 5', />>> /);
  terminal.type('never (');
  await terminal.expect(/never \(/);
  terminal.type(CTRL_C);
  await terminal.expect(/interrupted\r\n>>> /);
  for (const code of ['import time; time.sleep(3600)', 'while True: print("y" * 1000)\r']) {
    terminal.type(`${code}\r`);
    await running();
    terminal.type(CTRL_C);
    await terminal.expect(/KeyboardInterrupt[^]*>>> /);
  }
  await terminal.run('mine', /[\r\n]5\r\n>>> /);
  await terminal.run('import os; os._exit(3)', /what was defined is lost[^]*>>> /);
  await terminal.run('"mine" in globals()', /[\r\n]False\r\n>>> /);
  terminal.type(CTRL_D);
  await left(terminal);
});

test('what was typed is there the next time, for nobody else', async () => {
  const first = await sit();
  await first.run('9 * 9', /[\r\n]81\r\n>>> /);
  first.type(CTRL_D);
  await left(first);
  const file = path.join(home, '.local/state/sandlot/python_history');
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  assert.equal(fs.statSync(path.dirname(file)).mode & 0o777, 0o700);
  const second = await sit();
  second.type(UP);
  await second.expect(/9 \* 9/);
  await second.run('', /[\r\n]81\r\n>>> /);
  second.type(CTRL_D);
  await left(second);
});

test('a context that was there before stays; one made here goes also with a signal', async () => {
  const context = (await ok(['context', 'create', id, '-l', 'javascript'])).trim();
  const terminal = await sit([id, '--context', context], /[\r\n]> /);
  await terminal.run('let kept = 7;', /> /);
  await terminal.run('`one', /\.\.\. /);
  await terminal.run('two`.length', /[\r\n]7\r\n> /);
  terminal.type(CTRL_D);
  await left(terminal);
  assert.equal((await sandlot(['run-code', '--context', context, '-', id], { input: 'kept' })).stdout, '7\n');
  await ok(['context', 'rm', id, context]);
  const waiting = await sit();
  assert.equal((await contexts()).length, 1);
  waiting.signal(SIGTERM);
  await left(waiting, 128 + SIGTERM);
  const busy = await sit();
  busy.type('import time; time.sleep(3600)\r');
  await running();
  busy.signal(SIGTERM);
  await left(busy, 128 + SIGTERM);
  assert.deepEqual(await contexts(), []);
});

test('without a sandbox it makes one, which is gone afterwards', async () => {
  const before = (await api.all()).map((one) => one.id);
  const terminal = await sit([]);
  const [made] = (await api.all()).map((one) => one.id).filter((one) => !before.includes(one));
  assert.ok(made);
  await terminal.run('import os; os.getcwd()', /[\r\n]'\/workspace'\r\n>>> /);
  terminal.type(CTRL_D);
  await left(terminal);
  assert.equal((await api.request('GET', `/v1/sandboxes/${made}`)).status, 404);
});

finish();
