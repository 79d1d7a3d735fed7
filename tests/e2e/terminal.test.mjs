// SPDX-License-Identifier: Apache-2.0
// Terminals: a real PTY over a WebSocket, with real programs on it, that is left and come back to.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { Processes, hostProcesses, untilRunning } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { CTRL, Terminal, refusedTerminal, terminalPath } from './lib/terminal.mjs';
import { MI } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';
import { nextEvent, openWebSocket } from './lib/websocket.mjs';

const { instance, api, finish } = await suite('terminal');
const { id } = await api.create();
const ps = new Processes(api);
const gone = (words) => untilRunning(instance, words, 0);

/** A shell that waits at its prompt. */
async function shell(query, options) {
  const terminal = await Terminal.open(api, id, query, options);
  await terminal.prompt();
  return terminal;
}

/** Types exit and waits for the end. */
async function leave(terminal) {
  terminal.line('exit 0');
  await terminal.untilExit();
  await terminal.untilClosed();
}

// A shell and what runs in it -----------------------------------------------------------------

test('a terminal is a login shell on a PTY of its own, and a process like others', async () => {
  const terminal = await shell();
  assert.equal(terminal.from, 0);
  await terminal.run('tty', /^\/dev\/pts\/\d+\r$/m);
  await terminal.run('shopt -q login_shell && echo lo""gin', /^login\r$/m);
  await terminal.run('id -u; pwd', /^1000\r\n\/workspace\r$/m);
  await terminal.run('echo "T=$TERM"', /^T=(?!dumb\b)[a-z]/m);
  await terminal.run('test -t 0 && test -t 1 && test -t 2 && echo all""three', /^allthree\r$/m);
  const process = await ps.get(id, terminal.process);
  assert.equal(process.pid, terminal.pid);
  assert.deepEqual(process.argv, ['/bin/bash', '-l']);
  assert.equal(process.command, null);
  assert.equal(process.pty, true);
  assert.equal(process.background, true);
  assert.equal(process.status, 'running');
  await leave(terminal);
});

test('the query says as whom and where, and how large', async () => {
  const terminal = await shell({ user: 'root', cwd: '/usr', cols: 101, rows: 33 });
  await terminal.run('id -u; pwd; stty size', /^0\r\n\/usr\r\n33 101\r$/m);
  await leave(terminal);
});

test('the exit code is told, and then the connection is closed with 1000', async () => {
  const terminal = await shell();
  terminal.line('exit 7');
  const exit = await terminal.untilExit();
  assert.equal(exit.exit_code, 7);
  assert.equal(exit.termination.reason, 'exited');
  assert.equal((await terminal.untilClosed()).code, 1000);
  const record = await ps.get(id, terminal.process);
  assert.deepEqual(exit.termination, record.termination);
  assert.equal(record.output_bytes, terminal.position, 'every byte was shown');
});

test('a resize changes the size and tells the program on the terminal', async () => {
  const terminal = await shell({ cols: 80, rows: 24 });
  await terminal.run('stty size', /^24 80\r$/m);
  terminal.line(`sh -c "trap 'stty size' WINCH; echo re''ady; while :; do sleep 0.05; done"`);
  await terminal.expect(/^ready\r$/m);
  terminal.control({ type: 'resize', cols: 100, rows: 30 });
  await terminal.expect(/^30 100\r$/m);
  assert.equal((await ps.resize(id, terminal.process, { cols: 1000, rows: 1 })).status, 204);
  await terminal.expect(/^1 1000\r$/m);
  assert.equal((await ps.resize(id, terminal.process, { cols: 80, rows: 24 })).status, 204);
  await terminal.expect(/^24 80\r$/m);
  terminal.type(CTRL.C);
  await terminal.prompt();
  await leave(terminal);
});

test('Ctrl-C interrupts the program in the foreground, not the shell', async () => {
  const terminal = await shell();
  terminal.line('sleep 6501');
  await untilRunning(instance, 'sleep 6501');
  terminal.type(CTRL.C);
  await terminal.expect(/\^C/);
  await terminal.prompt();
  await gone('sleep 6501');
  await terminal.run('echo "code=$?"', /^code=130\r$/m);
  await leave(terminal);
});

test('Ctrl-D at the prompt is the end', async () => {
  const terminal = await shell();
  terminal.type(CTRL.D);
  assert.equal((await terminal.untilExit()).exit_code, 0);
  assert.equal((await terminal.untilClosed()).code, 1000);
});

test('job control works: Ctrl-Z, jobs, bg, fg', async () => {
  const terminal = await shell();
  terminal.line('sleep 6502');
  await untilRunning(instance, 'sleep 6502');
  terminal.type(CTRL.Z);
  await terminal.expect(/Stopped/);
  await terminal.prompt();
  await until(() => hostProcesses(instance, 'sleep 6502')[0]?.state === 'T', { what: 'it is stopped' });
  await terminal.run('jobs', /\[1\]\+\s+Stopped\s+sleep 6502/);
  await terminal.run('bg', /sleep 6502 &/);
  await until(() => hostProcesses(instance, 'sleep 6502')[0]?.state === 'S', { what: 'it goes on' });
  terminal.line('fg');
  await terminal.expect(/^sleep 6502\r$/m);
  terminal.type(CTRL.C);
  await terminal.prompt();
  await gone('sleep 6502');
  await leave(terminal);
});

test('a python REPL reads, prints and is left with Ctrl-D', async () => {
  const terminal = await shell();
  terminal.line('python3');
  await terminal.expect(/>>> $/);
  terminal.line('6 * 7 + 1000');
  await terminal.expect(/^1042\r\n.*>>> $/ms);
  terminal.line('import sys; sys.stdout.isatty()');
  await terminal.expect(/^True\r\n.*>>> $/ms);
  terminal.type(CTRL.D);
  await terminal.prompt();
  await leave(terminal);
});

test('vim edits, as a script and on the full screen', async () => {
  const terminal = await shell();
  await terminal.run("vim -u NONE -es -c 'normal ihello from ex' -c 'wq! /tmp/ex.txt'; echo vim''code=$?", /^vimcode=0\r$/m);
  assert.equal((await api.read(id, '/tmp/ex.txt')).toString(), 'hello from ex\n');
  terminal.line('vim -u NONE /tmp/full.txt');
  await terminal.expect(/(~[^~]*){15}/);
  assert.match(terminal.text, /\x1b\[\d+;\d+H/, 'it moves the cursor');
  terminal.type('ihello žluť\x0f:wq\r'); // Ctrl-O: one command from within insert mode, without an Escape to wait for
  await terminal.prompt();
  assert.equal((await api.read(id, '/tmp/full.txt')).toString(), 'hello žluť\n');
  await leave(terminal);
});

test('top shows the processes of the sandbox', async () => {
  const terminal = await shell();
  const [shown] = await terminal.run('top -b -n1 | cat; echo to""pped', /load average[^]*^topped\r$/m);
  assert.match(shown, /PID/);
  assert.match(shown, /\bbash\b/);
  await leave(terminal);
});

test('UTF-8 is typed and shown, also when a character comes in pieces', async () => {
  const terminal = await shell();
  await terminal.run("echo žluťoučký 😀 | sed 's/l/L/'", /^žLuťoučký 😀\r$/m);
  const bytes = Buffer.from("echo 'é😀' | tr -d x | rev\r");
  for (const byte of bytes) terminal.socket.send(Buffer.from([byte]));
  await terminal.expect(/^😀é\r$/m);
  await terminal.prompt();
  await leave(terminal);
});

test('a long paste arrives whole', async () => {
  const terminal = await shell();
  terminal.line("stty -echo -icanon; head -c 60000 | sha256sum; stty sane");
  await terminal.expect(/\n/);
  await until(() => hostProcesses(instance, 'head -c 60000').length === 1, { what: 'it reads' });
  for (let i = 0; i < 6; i++) terminal.type('0123456789'.repeat(1000));
  await terminal.expect(/[0-9a-f]{64}/);
  assert.ok(terminal.text.includes(crypto.createHash('sha256').update('0123456789'.repeat(6000)).digest('hex')), terminal.text.slice(-300));
  await terminal.prompt();
  await leave(terminal);
});

test('ten terminals at once keep what is typed and shown apart', async () => {
  const terminals = await Promise.all(Array.from({ length: 10 }, () => shell()));
  assert.equal(new Set(terminals.map((terminal) => terminal.process)).size, 10);
  await Promise.all(terminals.map(async (terminal, i) => {
    await terminal.run(`mine=${i}`, /mine/);
    for (let n = 0; n < 5; n++) await terminal.run(`echo "<$mine:$((${n}+100))>"`, new RegExp(`^<${i}:${n + 100}>\\r$`, 'm'));
  }));
  for (const [i, terminal] of terminals.entries()) {
    assert.ok(terminals.every((_, other) => other === i || !terminal.text.includes(`<${other}:100>`)));
  }
  await Promise.all(terminals.map(leave));
});

test('a terminal wakes a stopped sandbox', async () => {
  const own = await api.create();
  await api.life(own.id, 'stop');
  const terminal = await Terminal.open(api, own.id);
  await terminal.prompt();
  await terminal.run('echo a""wake', /^awake\r$/m);
  await api.purge(own.id);
});

// Going away and coming back ------------------------------------------------------------------

test('a cut connection leaves the shell running, and it is attached to again without a gap', async () => {
  const first = await shell();
  await first.run('word=kept; echo on""e', /^one\r$/m);
  await first.drop();
  assert.equal((await ps.get(id, first.process)).status, 'running');
  const second = await Terminal.open(api, id, { process: first.process, from: first.position });
  assert.equal(second.process, first.process);
  assert.equal(second.pid, first.pid);
  assert.equal(second.from, first.position);
  await second.run('echo "<$word>"', /^<kept>\r$/m);
  const third = await Terminal.open(api, id, { process: first.process });
  assert.equal(third.from, 0, 'a short past is shown from its beginning');
  await third.untilPosition(second.position);
  assert.deepEqual(third.bytes, Buffer.concat([first.bytes, second.bytes]));
  third.drop();
  await leave(second);
});

test('questions to the terminal are asked once: they are not in what is sent again', async () => {
  const first = await shell();
  await first.run("printf 'a\\033[6nb\\033[>c\\033]11;?\\007c\\033[31md\\n'; echo do''ne", /^done\r$/m);
  const asked = Buffer.from('a\x1b[6nb\x1b[>c\x1b]11;?\x07c\x1b[31md');
  assert.ok(first.bytes.includes(asked), 'the program asks');
  await first.drop();
  const second = await Terminal.open(api, id, { process: first.process });
  await second.untilPosition(first.position);
  const told = Buffer.from(asked.toString('latin1').replace(/\x1b\[6n|\x1b\[>c|\x1b\]11;\?\x07/g, (question) => '\0'.repeat(question.length)), 'latin1');
  assert.ok(second.bytes.includes(told), JSON.stringify(second.bytes.toString('latin1')));
  assert.equal(second.bytes.length, first.bytes.length, 'the bytes are as many as before');
  await second.run("printf 'x\\033[6n\\n'; echo mo''re", /^more\r$/m);
  assert.ok(second.bytes.includes('x\x1b[6n'), 'what is asked now is passed on');
  await leave(second);
});

test('of a long past its end is shown, without questions, and with the modes that were set before', async () => {
  const first = await shell();
  // 300,000 bytes of questions without a line that begins: the window begins inside one of them.
  const program = "import sys; sys.stdout.write('\\x1b[?1049h\\x1b[?1002;1006h\\x1b[?25l\\x1b[?2004h' + '\\x1b[6n' * 75000 + '\\x1b[?2004l' + 'do' + 'ne'); sys.stdout.flush(); input()";
  first.line(`exec python3 -c "${program}"`);
  await first.expect(/done$/);
  await first.drop();
  const second = await Terminal.open(api, id, { process: first.process });
  await second.untilPosition(first.position);
  assert.ok(second.from > 0 && first.position - second.from <= 256 * 1024, `from ${second.from}`);
  assert.ok(!second.bytes.includes('\x1b[6n'));
  assert.match(second.bytes.toString('latin1'), /^[\x1b[6n]{0,3}\0+\x1b\[\?2004ldone$/);
  assert.equal(second.modes, '\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1006h\x1b[?1002h');
  const third = await Terminal.open(api, id, { process: first.process, from: second.from });
  assert.equal(third.modes, undefined, 'who comes back knows them');
  await third.drop();
  second.line('');
  await second.untilExit();
});

test('what a program asks before anybody is attached is asked of the first who is, and of no other', async () => {
  const asks = await ps.start(id, { command: "stty raw -echo; printf '\\033[6n'; head -c 3 | tr 'RST' 'xyz'; sleep 600", pty: true, cols: 80, rows: 24 });
  await ps.untilOutput(id, asks.id, '\x1b[6n');
  const first = await Terminal.open(api, id, { process: asks.id, from: 0 });
  await until(() => first.bytes.includes('\x1b[6n'), { what: 'the question' });
  first.type('RST');
  await until(() => first.bytes.includes('xyz'), { what: 'the answer was read' });
  const second = await Terminal.open(api, id, { process: asks.id, from: 0 });
  await second.untilPosition(first.position);
  assert.ok(!second.bytes.includes('\x1b[6n'));
  for (const terminal of [first, second]) await terminal.drop();
  await ps.kill(id, asks.id);
});

test('a connection that is closed in good order leaves the shell running too', async () => {
  const terminal = await shell();
  terminal.line('sleep 6503');
  await untilRunning(instance, 'sleep 6503');
  const close = await within('the closing handshake', terminal.socket.close(1000));
  assert.equal(close.code, 1000);
  assert.equal(terminal.exit, null);
  assert.equal((await ps.get(id, terminal.process)).status, 'running');
  assert.equal(hostProcesses(instance, 'sleep 6503').length, 1);
  await ps.kill(id, terminal.process);
  await gone('sleep 6503');
});

test('of a long past the last 256 KiB are shown, and all that is kept if asked for', async () => {
  const first = await shell();
  first.line('seq 1 150000; echo do""ne');
  await first.expect(/^done\r$/m);
  await first.prompt();
  const end = first.position;
  assert.ok(end > MI, `${end}`);
  const recent = await Terminal.open(api, id, { process: first.process });
  await recent.untilPosition(end);
  assert.ok(end - recent.from <= 256 * 1024 && end - recent.from > 64 * 1024, `from ${recent.from} of ${end}`);
  assert.deepEqual(recent.bytes, first.bytes.subarray(recent.from));
  const whole = await Terminal.open(api, id, { process: first.process, from: 0 });
  await whole.untilPosition(end);
  assert.deepEqual(whole.bytes, first.bytes);
  recent.drop();
  whole.drop();
  await leave(first);
});

test('two clients on one terminal see the same bytes and both may type', async () => {
  const first = await shell();
  const second = await Terminal.open(api, id, { process: first.process, from: 0 });
  await first.run('echo from""first', /^fromfirst\r$/m);
  await second.expect(/^fromfirst\r$/m);
  await second.prompt();
  second.line('echo from""second');
  await first.expect(/^fromsecond\r$/m);
  first.line('exit 3');
  for (const terminal of [first, second]) {
    assert.equal((await terminal.untilExit()).exit_code, 3);
    assert.equal((await terminal.untilClosed()).code, 1000);
  }
  assert.deepEqual(second.bytes, first.bytes);
});

test('a terminal that has ended is replayed with its exit', async () => {
  const first = await shell();
  first.line('exit 5');
  await first.untilExit();
  for (const query of [{}, { from: 0 }, { from: 3 }, { from: first.position }]) {
    const again = await Terminal.open(api, id, { process: first.process, ...query });
    assert.equal((await again.untilExit()).exit_code, 5);
    assert.equal((await again.untilClosed()).code, 1000);
    assert.deepEqual(again.bytes, first.bytes.subarray(query.from ?? 0));
  }
});

// Other processes with a terminal -------------------------------------------------------------

test('a background command may have a terminal, which HTTP reads, writes and resizes', async () => {
  const process = await ps.start(id, { command: 'stty size; cat; echo end; exit 2', pty: true, cols: 90, rows: 20 });
  assert.equal(process.pty, true);
  await ps.untilOutput(id, process.id, '20 90\r\n');
  await ps.write(id, process.id, 'typed\n');
  await ps.untilOutput(id, process.id, 'typed\r\ntyped\r\n');
  const terminal = await Terminal.open(api, id, { process: process.id, from: 0 });
  await ps.closeStdin(id, process.id); // types an end of file
  const record = await within('its end', ps.wait(id, process.id));
  assert.equal(record.exit_code, 2);
  const seen = await ps.read(id, process.id);
  assert.equal(seen.stderr.length, 0, 'a terminal has one output');
  assert.match(seen.stdout.toString(), /^20 90\r\ntyped\r\ntyped\r\n.*end\r\n$/s);
  await terminal.untilExit();
  assert.deepEqual(terminal.bytes, seen.stdout, 'a terminal and the event stream show the same');
});

test('a signal sent over the terminal reaches the process', async () => {
  const process = await ps.start(id, { command: "trap 'echo got USR1' USR1; echo ready; while :; do sleep 0.02; done", pty: true });
  const terminal = await Terminal.open(api, id, { process: process.id, from: 0 });
  await terminal.expect(/ready/);
  terminal.control({ type: 'signal', signal: 'SIGUSR1' });
  await terminal.expect(/got USR1/);
  terminal.control({ type: 'signal', signal: 'SIGKILL' });
  const exit = await terminal.untilExit();
  assert.equal(exit.exit_code, 137);
  assert.equal(exit.termination.signal, 'SIGKILL');
});

test('a process without a terminal is not attached to, nor one that does not exist', async () => {
  const { id: p } = await ps.start(id, { argv: ['sleep', '6504'] });
  assert.equal(assertError(await refusedTerminal(api, id, { process: p }), 409).code, 'not_a_terminal');
  assert.equal(assertError(await refusedTerminal(api, id, { process: 'p999999' }), 404).code, 'process_not_found');
  assert.equal(assertError(await refusedTerminal(api, '0'.repeat(26), {}), 404).code, 'sandbox_not_found');
  await ps.kill(id, p);
});

// Refusals ------------------------------------------------------------------------------------

test('a bad query is 400, names itself, and starts nothing', async () => {
  const before = (await ps.list(id)).length;
  for (const [query, field] of [
    [{ cols: 0 }, /cols/], [{ cols: 1001 }, /cols/], [{ cols: 'x' }, /cols/], [{ cols: -1 }, /cols/], [{ cols: '' }, /cols/],
    [{ rows: 0 }, /rows/], [{ rows: 1001 }, /rows/], [{ rows: '2.5' }, /rows/],
    [{ user: '-1' }, /user/], [{ user: '' }, /user/], [{ cwd: 'relative' }, /cwd/], [{ cwd: '/no/such/dir' }, /cwd|\/no\/such\/dir/],
  ]) assertError(await refusedTerminal(api, id, query), 400, field);
  assert.equal((await ps.list(id, { status: 'running' })).filter((process) => process.pty).length, 0);
  assert.ok((await ps.list(id)).length <= before + 1, 'nothing was started that ran');
  const terminal = await shell();
  for (const from of ['-1', 'x', '1.5', '999999999']) assertError(await refusedTerminal(api, id, { process: terminal.process, from }), 400, /from/);
  await leave(terminal);
});

test('who has no token, comes from another page or asks for another host is refused', async () => {
  assertError(await refusedTerminal(api, id, {}, { token: null }), 401);
  assertError(await refusedTerminal(api, id, {}, { token: 'wrong' }), 401);
  for (const origin of ['http://evil.example', 'null', `https://127.0.0.1:${api.port}`, `http://127.0.0.1:${api.port + 1}`]) {
    assertError(await refusedTerminal(api, id, {}, { headers: { origin } }), 403);
  }
  assertError(await refusedTerminal(api, id, {}, { headers: { host: 'evil.example' } }), 421);
  const own = await Terminal.open(api, id, {}, { headers: { origin: `http://127.0.0.1:${api.port}` } });
  await own.prompt();
  await leave(own);
});

test('what is no handshake of a WebSocket is refused', async () => {
  assertError(await api.request('GET', terminalPath(id), { query: { cols: 80, rows: 24 } }), [400, 426]);
  for (const headers of [
    { upgrade: undefined, connection: undefined }, { upgrade: 'h2c' }, { 'sec-websocket-version': '8' }, { 'sec-websocket-version': undefined },
    { 'sec-websocket-key': undefined }, { 'sec-websocket-key': 'short' },
  ]) assertError(await refusedTerminal(api, id, {}, { headers }), [400, 426]);
  assertError(await refusedTerminal(api, id, {}, { protocol: 'pty.v2' }), [400, 426]);
  const { answer } = await openWebSocket(api, `/v1/sandboxes/${id}/exec`, {});
  assertError(answer, [400, 404, 405, 426]);
  assertError(await api.request('POST', terminalPath(id)), [400, 404, 405, 426]);
  const plain = await Terminal.open(api, id, {}, { protocol: null });
  await plain.prompt();
  await leave(plain);
});

test('a text message that is not understood closes the connection with 1008, and the shell goes on', async () => {
  const first = await shell();
  for (const message of [
    '{"type":"nope"}', 'not json', '', '[]', '{}', '5', '{"type":"resize"}', '{"type":"resize","cols":0,"rows":5}', '{"type":"resize","cols":80,"rows":1001}',
    '{"type":"resize","cols":"80","rows":24}', '{"type":"signal"}', '{"type":"signal","signal":"SIGFOO"}',
  ]) {
    const terminal = await Terminal.open(api, id, { process: first.process });
    terminal.control(message);
    assert.equal((await terminal.untilClosed()).code, 1008, message);
  }
  await first.run('echo still""here; stty size', /^stillhere\r\n24 80\r$/m);
  await leave(first);
});

test('a message that is too large or a frame that breaks the protocol closes the connection alone', async () => {
  const first = await shell();
  const attach = () => Terminal.open(api, id, { process: first.process });
  const large = await attach();
  large.socket.send(Buffer.alloc(70_000, 'x'));
  assert.equal((await large.untilClosed()).code, 1009);
  for (const breakIt of [
    (socket) => socket.frame(2, Buffer.from('x'), { masked: false }),
    (socket) => socket.frame(3, Buffer.from('x')),
    (socket) => socket.frame(0, Buffer.from('x')),
    (socket) => socket.frame(9, Buffer.alloc(126)),
    (socket) => socket.frame(9, Buffer.from('x'), { final: false }),
    (socket) => socket.frame(1, Buffer.from([0xff, 0xfe])),
  ]) {
    const terminal = await attach();
    breakIt(terminal.socket);
    assert.ok([1002, 1003, 1007, 1008].includes((await terminal.untilClosed()).code), `${breakIt}: ${terminal.over.code}`);
  }
  await first.run('echo still""here', /^stillhere\r$/m);
  await leave(first);
});

test('fragments are put together, and a ping is answered', async () => {
  const terminal = await shell();
  terminal.socket.frame(2, Buffer.from('echo fra'), { final: false });
  const pong = nextEvent(terminal.socket, 'pong');
  terminal.socket.ping('are you there');
  assert.equal(String((await pong)[0]), 'are you there');
  terminal.socket.frame(0, Buffer.from('gm""ents\r'));
  await terminal.expect(/^fragments\r$/m);
  await terminal.prompt();
  await leave(terminal);
});

// Ends from outside ---------------------------------------------------------------------------

test('a kill of the shell is told to all who are attached', async () => {
  const first = await shell();
  const second = await Terminal.open(api, id, { process: first.process });
  first.line('sleep 6505');
  await untilRunning(instance, 'sleep 6505');
  await ps.kill(id, first.process);
  for (const terminal of [first, second]) {
    assert.equal((await terminal.untilExit()).termination.reason, 'killed');
    assert.equal((await terminal.untilClosed()).code, 1000);
  }
  await gone('sleep 6505');
});

test('shells end with their sandbox and say so', async () => {
  const own = await api.create();
  const terminals = await Promise.all(Array.from({ length: 3 }, () => Terminal.open(api, own.id)));
  for (const terminal of terminals) await terminal.prompt();
  await api.life(own.id, 'stop');
  for (const terminal of terminals) {
    const exit = await terminal.untilExit();
    assert.equal(exit.termination.reason, 'operator');
    assert.equal((await terminal.untilClosed()).code, 1000);
  }
  const replay = await Terminal.open(api, own.id, { process: terminals[0].process });
  assert.equal((await replay.untilExit()).termination.reason, 'operator');
  assert.equal((await api.get(own.id)).status, 'stopped', 'a look back wakes nobody');
  await api.purge(own.id);
});

finish();
