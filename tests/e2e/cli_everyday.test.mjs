// SPDX-License-Identifier: Apache-2.0
// What a person meets on the first day with the command line client.
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

import { commandLine, speaks } from './lib/cli.mjs';
import { Instance, program } from './lib/instance.mjs';
import { Terminal } from './lib/pseudo_terminal.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-everyday');
const { urlEnv, start, sandlot, ok, json, created } = commandLine(instance);
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-e2e-home-'));
after(() => fs.rmSync(home, { recursive: true, force: true }));

test('a mistyped command names the one that was meant', async () => {
  speaks(await sandlot(['stpo', 'x']), /did you mean "stop"\?/);
  speaks(await sandlot(['inspct']), /did you mean "inspect"\?/);
  speaks(await sandlot(['port']), /did you mean "ports"\?/);
  const far = await sandlot(['xylophone']);
  speaks(far, /there is no command/);
  assert.doesNotMatch(far.stderr, /did you mean/);
});

test('a mistyped option names the one that was meant, and what is in a wrong place where it belongs', async () => {
  speaks(await sandlot(['create', '--memroy', '1Gi']), /unknown option --memroy\n.*did you mean "--memory"\? see "sandlot create --help"/);
  speaks(await sandlot(['--verson']), /did you mean "--version"\? see "sandlot --help"/);
  assert.doesNotMatch((await sandlot(['ls', '--xylophone'])).stderr, /did you mean/);
  speaks(await sandlot(['create', 'extra']), /too many arguments\n.*--name NAME.*-t NAME/);
  speaks(await sandlot(['open', '59999']), /there is no sandbox.*\n.*sandlot open SANDBOX 59999/);
  speaks(await sandlot(['run']), /there is no command to run\n.*sandlot run -it/);
  assert.match(await ok(['-v']), /^sandlot \d+\.\d+\.\d+\n$/);
});

test('a word of another program leads to ours', async () => {
  const id = await created();
  for (const [args, hint] of [
    [['images'], /did you mean "template ls"/],
    [['ssh', id], /did you mean "shell"/],
    [['run', '--image', 'ubuntu', '--', 'true'], /unknown option --image\n +→ -t starts from an image or template; see "sandlot run --help"/],
    [['run', '-v', '/tmp:/tmp', '--', 'true'], /unknown option -v\n +→ "sandlot cp" copies files in and out/],
    [['create', '-p', '8080:80'], /name the port inside alone; "sandlot port-forward ID 8080:80"/],
    [['ps'], /sandlot ps \[OPTION\.\.\.\] SANDBOX; "sandlot ls" lists sandboxes/],
    [['create', '--memory', '1Mi'], /^sandlot: --memory must be from 16 MiB/],
    [['egress', id, '--allow', 'no rule'], /^sandlot: --allow has an entry that is no name/],
  ]) {
    const { code, stderr } = await sandlot(args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, hint);
  }
  const image = await sandlot(['run', 'ubuntu:24.04', 'bash']);
  assert.equal(image.code, 127);
  assert.match(image.stderr, /"ubuntu:24\.04" was taken as the name of a program; to start from an image: sandlot run -t ubuntu:24\.04 -- bash\n$/);
  assert.doesNotMatch((await sandlot(['run', 'no-such-program'])).stderr, /image/);
  await ok(['purge', id]);
});

test('a mistyped template names the one that was meant', async () => {
  for (const args of [['create', '-t', 'hots'], ['run', '-t', 'hots', '--', 'true']]) speaks(await sandlot(args), /did you mean the template "host"\?/);
  assert.doesNotMatch((await sandlot(['create', '--memory', '1Mi', '-t', 'host'])).stderr, /did you mean/);
});

test('a size without a unit and a name that cannot be one are told by their options', async () => {
  const id = await created();
  speaks(await sandlot(['update', '--memory', '512', id]), /--memory: 512 was read as 512 bytes.*\n.*Mi or Gi/);
  for (const args of [['update', '--name', 'a b', id], ['create', '--name', 'a b']]) speaks(await sandlot(args), /--name: "a b" cannot be the name of a sandbox\n.*40 small letters, digits and hyphens, with a letter first/);
  await ok(['update', '--memory', String(64 << 20), '--name', 'a-b', id]);
  await ok(['purge', 'a-b']);
});

test('a whole line as the name of a program gets a hint, and no other', async () => {
  const id = await created();
  const line = await sandlot(['exec', id, '--', 'ls -la']);
  assert.deepEqual([line.code, /"ls -la" was taken as the name of one program; -c 'ls -la' runs it/.test(line.stderr)], [127, true], line.stderr);
  for (const args of [['no-such-program'], ['sh', '-c', 'exit 127']]) assert.doesNotMatch((await sandlot(['exec', id, '--', ...args])).stderr, /-c '/);
  await ok(['purge', id]);
});

test('list and delete are other names of ls and rm', async () => {
  const id = await created();
  assert.match(await ok(['list', '-q']), new RegExp(id));
  await ok(['delete', '--purge', id]);
  assert.doesNotMatch(await ok(['list', '-q']), new RegExp(id));
});

test('help tells what exit codes mean, and they are true', async () => {
  const text = await ok(['help', 'exit-codes']);
  for (const code of ['0', '2', '3', '4', '70', '74', '75', '77', '124', '127']) assert.match(text, new RegExp(`^ +${code} +\\S`, 'm'));
  assert.equal((await sandlot(['inspect', 'zzzz'])).code, 3);
  assert.equal((await sandlot(['ls', '--no-such-option'])).code, 2);
  assert.equal((await sandlot(['ls'], { env: { ...urlEnv(), SANDLOT_TOKEN: 'wrong' } })).code, 77);
  assert.equal((await sandlot(['ls'], { env: { ...urlEnv(), SANDLOT_URL: 'http://127.0.0.1:1' } })).code, 75);
});

test('the guide has the exit codes that help has', async () => {
  const text = await ok(['help', 'exit-codes']);
  const guide = fs.readFileSync(path.join(import.meta.dirname, '../../docs/processes.md'), 'utf8').split('## Exit codes')[1].split('\n## ')[0];
  const told = [...text.matchAll(/^ +(\d+)(?:\+n)? {2,}\S/gm)].map(([, code]) => code);
  const rows = [...guide.matchAll(/^\| ([\d, ]+) \|/gm)].flatMap(([, codes]) => codes.split(', '));
  const prose = [...guide.split('| code |')[0].matchAll(/\b(\d+)(?:\+n)?\b/g)].map(([, code]) => code);
  assert.deepEqual([...rows, ...prose].sort(), told.sort());
  assert.ok(told.length >= 12, text);
});

/** A server that answers everything with this, in the place of a daemon. */
async function standIn(status, body) {
  const server = http.createServer((request, response) => { request.resume(); response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)); });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { env: { ...urlEnv(), SANDLOT_URL: `http://127.0.0.1:${server.address().port}` }, close: () => { server.closeAllConnections(); server.close(); } };
}

test('a failure inside the daemon is 70, a full disk is 74: of the host, and of this machine', async () => {
  const error = (code, message) => ({ error: { code, message, retryable: false, remediation: null, request_id: 'r' } });
  for (const [status, body, code] of [[500, error('internal', 'a bug'), 70], [507, error('disk_full', 'no room'), 74], [200, { nothing: 1 }, 70]]) {
    const server = await standIn(status, body);
    try {
      const result = await sandlot(['ls'], { env: server.env });
      assert.equal(result.code, code, `${status}: ${result.code} ${result.stderr}`);
      if (status !== 200) speaks(result, new RegExp(body.error.message));
    } finally {
      server.close();
    }
  }
  const child = spawn('sh', ['-c', '"$0" ls -o json >/dev/full', program('sandlot')], { env: instance.environment(urlEnv()), stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => { said += chunk; });
  const code = await new Promise((resolve) => { child.on('close', resolve); });
  assert.equal(code, 74, said);
  assert.match(said, /No space left on device/);
});

test('a wrong address is named as it was given, not another', async () => {
  for (const url of ['http://127.0.0.1:1', 'http://localhost:1/', 'http://no-such-host.invalid:9090']) {
    const result = await sandlot(['ls'], { env: { ...urlEnv(), SANDLOT_URL: url } });
    speaks(result, new RegExp(url.replace(/\/$/, '').replaceAll('.', '\\.')));
    assert.match(result.stderr, /start it with "make run" or "systemctl start sandlot"; one elsewhere is named by --url or SANDLOT_URL/);
    assert.doesNotMatch(result.stderr, new RegExp(`:${api.port}|:9090(?<!invalid:9090)|api\\.sock`));
  }
});

test('a time without a unit counts seconds, and limits may be never', async () => {
  const id = await created('--idle-timeout', 'never', '--lifetime', 'never');
  assert.equal((await api.get(id)).idle_timeout_s, null);
  assert.equal((await api.get(id)).lifetime_s, null);
  const result = await json(['exec', '-o', 'json', '-T', '60', id, '--', 'echo', 'in time']);
  assert.equal(result.stdout, 'in time\n');
  assert.equal((await sandlot(['exec', '-T', '1', id, '--', 'sleep', '600'])).code, 124);
});

test('a local file that is missing is told as not found', async () => {
  const id = await created();
  const missing = await sandlot(['cp', path.join(home, 'nothing.txt'), `${id}:`]);
  speaks(missing, /nothing\.txt.*No such file/);
  assert.equal(missing.code, 3);
  const launched = await sandlot(['launch', path.join(home, 'nodir')]);
  speaks(launched, /nodir.*No such file[^]*name the directory of the app/);
  assert.equal(launched.code, 3);
});

test('hints name commands, not routes', async () => {
  const id = await created();
  await ok(['pause', id]);
  const paused = await sandlot(['exec', id, 'true']);
  speaks(paused, /is paused[^]*sandlot resume ID/);
  await ok(['resume', id]);
  const gone = await sandlot(['inspect', '0'.repeat(26)]);
  speaks(gone, /sandlot ls/);
  const process = await sandlot(['logs', id, 'p99']);
  speaks(process, /sandlot ps -a ID/);
  for (const result of [paused, gone, process]) assert.doesNotMatch(result.stderr, /\/v1\//);
});

test('quotas are shown as sizes that people read', async () => {
  await ok(['quota', 'set', 'huge', `memory=${100 * 2 ** 40 + 3 * 2 ** 20}`, 'disk=2Gi']);
  const table = await ok(['quota', 'show', 'huge']);
  assert.match(table, /memory +100 TiB/);
  assert.match(table, /disk +2 GiB/);
  assert.doesNotMatch(table, /\d{6}/);
  await ok(['quota', 'rm', 'huge']);
});

test('restart ends all processes and keeps the files', async () => {
  const id = await created('--start', 'sleep 600');
  await api.put(id, '/workspace/kept', 'x');
  await ok(['exec', '-d', id, '--', 'sleep', '601']);
  assert.equal(await ok(['restart', id]), `${id}\n`);
  assert.equal((await api.get(id)).status, 'running');
  assert.equal(await api.exists(id, '/workspace/kept'), true);
  assert.equal((await sandlot(['exec', id, '--', 'pgrep', '-f', 'sleep 601'])).code, 1);
});

test('open says that nothing listens yet, and nothing once something does', async () => {
  const id = await created('-p', '3000');
  const early = await sandlot(['open', id]);
  assert.deepEqual([early.code, early.stderr], [0, 'sandlot: nothing that a preview reaches listens on port 3000 yet\n']);
  await ok(['exec', '-d', id, '--', 'python3', '-m', 'http.server', '3000']);
  await until(async () => /3000/.test(await ok(['ports', id])), { what: 'it listens' });
  assert.equal((await sandlot(['open', id])).stderr, '');
  // A start command gets a moment; this one listens later than the first look.
  const started = await created('-p', '3000', '--start', `sleep 0.4; exec python3 -S -c "import socket, time; s = socket.create_server(('0.0.0.0', 3000)); time.sleep(600)"`);
  assert.equal((await sandlot(['open', started])).stderr, '');
  await ok(['purge', id, started]);
});

test('open needs no port when there is only one', async () => {
  const one = await created('-p', '3000');
  assert.match(await ok(['open', one]), /^http\S*3000\S*\n$/);
  assert.match(await ok(['open', '--frame', 'https://app.example', one]), /^http:\/\/f-[0-9a-z]{52}\.\S+\n$/);
  const none = await created();
  const nothing = await sandlot(['open', none]);
  speaks(nothing, /no port with a preview, and nothing listens/);
  assert.equal(nothing.code, 3);
  assert.equal((await api.tryExec(none, { command: 'python3 -m http.server 4321', background: true })).status, 201);
  await until(async () => /4321/.test(await ok(['ports', none])), { what: 'it listens' });
  const undeclared = await sandlot(['open', none]);
  assert.equal(undeclared.code, 0, undeclared.stderr);
  assert.match(undeclared.stdout, /^http\S*4321\S*\n$/);
  const two = await created('-p', '3000', '-p', '4000');
  speaks(await sandlot(['open', two]), /several ports: 3000 4000/);
});

test('a completion works in a bash at a terminal, and zsh and fish can read theirs', async (t) => {
  const { name } = await api.create({ name: 'completed-name' });
  fs.writeFileSync(path.join(home, 'completion.bash'), await ok(['completion', 'bash']));
  const env = instance.environment({ ...urlEnv(), TERM: 'dumb', HOME: home, PATH: `${path.dirname(program('sandlot'))}:${process.env.PATH}` });
  const terminal = new Terminal(['bash', '--norc', '--noprofile'], { env, cols: 200 });
  t.after(() => terminal.end());
  terminal.type(`source ${home}/completion.bash; PS1='> '; echo re""ady\r`);
  await terminal.expect(/[\r\n]ready\r?\n> /);
  terminal.type('sandlot insp\t');
  await terminal.expect(/sandlot inspect /);
  terminal.type('comp\t');
  await terminal.expect(new RegExp(name));
  terminal.type(' >/dev/null && echo wor""ked\r');
  await terminal.expect(/[\r\n]worked/);
  await api.purge(name);
  for (const shell of ['zsh', 'fish']) {
    const file = path.join(home, `completion.${shell}`);
    fs.writeFileSync(file, await ok(['completion', shell]));
    const read = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
    assert.equal(read.error, undefined, `not proven: ${shell} is not installed (scripts/deps.sh test)`);
    assert.deepEqual([read.status, read.stderr], [0, '']);
  }
});

test('completion installs itself for the shell of the user', async () => {
  const env = { ...urlEnv(), HOME: home, SHELL: '/usr/bin/bash', XDG_DATA_HOME: '', XDG_CONFIG_HOME: '' };
  const file = path.join(home, '.local/share/bash-completion/completions/sandlot');
  assert.equal(await ok(['completion'], { env }), `${file}\n`);
  assert.equal(fs.readFileSync(file, 'utf8'), await ok(['completion', 'bash'], { env }));
  await ok(['completion'], { env }); // once more does no harm
  assert.deepEqual(fs.readdirSync(path.dirname(file)), ['sandlot']);
  await ok(['completion', '--install', 'fish'], { env });
  const zsh = path.join(home, '.local/share/zsh/site-functions/_sandlot');
  const installed = await sandlot(['completion', '--install', 'zsh'], { env });
  assert.equal(installed.stdout, `${zsh}\n`);
  assert.match(installed.stderr, /fpath=\(~\/\.local\/share\/zsh\/site-functions \$fpath\)/);
  assert.match(fs.readFileSync(zsh, 'utf8'), /^#compdef sandlot\n/);
  assert.match(fs.readFileSync(path.join(home, '.config/fish/completions/sandlot.fish'), 'utf8'), /complete -c sandlot/);
  speaks(await sandlot(['completion'], { env: { ...env, SHELL: '/bin/tcsh' } }), /bash fish zsh, not for "tcsh"/);
});

test('ls shows ports and how start commands fare', async () => {
  const id = await created('-p', '3000', '-p', '8080:public', '--start', 'sleep 600');
  await until(async () => (await api.get(id)).start[0].status === 'running', { what: 'the start command runs' });
  const table = await ok(['ls']);
  assert.match(table.split('\n')[0], /PORTS +START/);
  assert.match(table, new RegExp(`${id}.* 3000,8080\\* +running `));
  await ok(['stop', id]);
  assert.match(await ok(['ls']), new RegExp(`${id}.* 3000,8080\\* +- `));
  assert.match(table, new RegExp(`${id} +- +running +host +[\\d.]+ +\\S+`));
  assert.match(await ok(['ls']), new RegExp(`${id} +- +stopped +host +- +- +3000`), 'limits that nothing enforces are not shown');
});

test('ls -w and stats -w show what there is again and again', async () => {
  const id = await created();
  for (const command of ['ls', 'stats']) {
    const child = start([command, '-w']);
    await until(() => child.shown().split(id).length > 3, { what: `${command} shows it three times` });
    child.kill('SIGINT');
    assert.equal((await child.result).code, 130);
  }
});

test('exec -d --keep-awake keeps the sandbox awake, and inspect says why', async () => {
  const id = await created();
  const name = (await ok(['exec', '-d', '--keep-awake', id, '--', 'sleep', '600'])).trim();
  assert.match(await ok(['inspect', id]), new RegExp(`^awake_because +.*${name}`, 'm'));
  await ok(['kill', id, name]);
  await until(async () => !new RegExp(`^awake_because +.*${name}`, 'm').test(await ok(['inspect', id])), { what: 'it is no reason any more' });
});

test('in a directory that only root may enter the banner prints commands that work', async (t) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-e2e-clone-'));
  fs.chmodSync(dir, 0o700);
  for (const name of ['sandlotd', 'sandlot-keeper', 'sandlot-agent', 'sandlot']) fs.copyFileSync(program(name), path.join(dir, name));
  const hidden = new Instance('hidden', { build: dir });
  t.after(() => { hidden.destroy(); fs.rmSync(dir, { recursive: true, force: true }); });
  await hidden.start();
  const text = await until(() => /Try, in another terminal:\n([^]*?)\n\n/.exec(hidden.log())?.[1], { what: 'the banner' });
  assert.match(text, new RegExp(`^  ${dir}/sandlot run -- python3`, 'm'));
  const { stdout } = await promisify(execFile)('bash', ['-ec', text], { cwd: '/', env: hidden.environment() });
  assert.match(stdout, /^42\n[0-9a-z]{26}\nID /);
  await hidden.shutdown();
});

test('stats tells per cent of a core', async () => {
  const busy = await created('--cpu', '1');
  const idle = await created('--name', 'calm');
  await ok(['exec', '-d', busy, '--', 'sh', '-c', 'while :; do :; done']);
  const percent = async (id) => Number(new RegExp(`${id} +\\S+ +(\\S+)`).exec(await ok(['stats', id]))[1]);
  await until(async () => await percent(busy) > 5, { what: 'the busy one is seen to be busy' });
  assert.ok(await percent(idle) < 5);
  assert.match(await ok(['stats', 'calm']), new RegExp(`^${idle} +calm +`, 'm'));
  assert.match((await ok(['stats'])).split('\n')[0], /ID +NAME +CPU% +CPU-TIME/);
});

test('a limit that the machine cannot reach is told', async () => {
  const result = await sandlot(['create', '--cpu', '1000', '--memory', '100Ti']);
  assert.equal(result.code, 0, result.stderr);
  api.made.add(result.stdout.trim());
  assert.match(result.stderr, /a limit of 1000 cores limits nothing: the machine has \d+\n/);
  assert.match(result.stderr, /a memory limit of 100 TiB limits nothing: the machine has \S+ [GT]iB\n/);
  assert.equal((await sandlot(['inspect', await created('--cpu', '1', '--memory', '128Mi')])).stderr, '');
  assert.equal('warnings' in await api.get(await created('--memory', '128Mi')), false);
});

test('update changes what is named and keeps the rest', async () => {
  const id = await created('--label', 'team=web', '--label', 'old=1', '--idle-timeout', '99', '--disk', '200Mi');
  assert.equal(await ok(['update', '--label', 'stage=test', '--remove-label', 'old', '--idle-timeout', 'never', '--disk', '300Mi', id]), `${id}\n`);
  const sandbox = await api.get(id);
  assert.deepEqual(sandbox.labels, { team: 'web', stage: 'test' });
  assert.equal(sandbox.idle_timeout_s, null);
  assert.equal(sandbox.resources.disk, '300Mi');
  speaks(await sandlot(['update', id]), /nothing to change/);
});

test('update changes the limits of a sandbox that runs', async () => {
  const id = await created('--cpu', '0.5', '--memory', '128Mi', '--pids', '100');
  const held = (await ok(['exec', '-d', id, '--', 'python3', '-c', 'import time; block = bytearray(64 << 20); print("has it", flush=True); time.sleep(600)'])).trim();
  await until(async () => /has it/.test(await ok(['logs', id, held])), { what: 'it holds memory' });
  const meminfo = async () => Number(/MemTotal: +(\d+)/.exec(await ok(['exec', id, '--', 'cat', '/proc/meminfo']))[1]);
  await ok(['update', '--cpu', '2', '--memory', '256Mi', '--pids', '200', id]);
  const { resources } = await api.get(id);
  assert.deepEqual([resources.cpu, resources.memory, resources.pids], [2, '256Mi', 200]);
  await until(async () => await meminfo() === 256 * 1024, { what: 'the sandbox sees its memory' });
  assert.equal((await ok(['exec', id, '--', 'nproc'])).trim(), `${Math.min(2, os.availableParallelism())}`);
  assert.match(await ok(['exec', id, '--', 'python3', '-c', 'print(len(bytearray(160 << 20)))']), /^167772160$/m);
  const refused = await sandlot(['update', '--memory', '32Mi', id]);
  speaks(refused, /uses \S+ MiB of memory, which is more than 32 MiB/);
  assert.equal(refused.code, 4);
  assert.equal((await api.get(id)).resources.memory, '256Mi');
  assert.equal((await json(['ps', '-o', 'json', id])).processes.length, 1, 'nobody was killed');
  await ok(['kill', id, held]);
  await ok(['update', '--memory', '64Mi', id]);
  assert.notEqual((await sandlot(['exec', id, '--', 'python3', '-c', 'bytearray(160 << 20)'])).code, 0);
});

test('egress adds, sets and removes rules, and keeps the mode', async () => {
  const id = await created('--network', 'internet');
  const policy = async () => { const { mode, allow } = (await json(['egress', id, '-o', 'json'])).policy; return { mode, allow }; };
  await ok(['egress', id, '--allow', '10.1.2.3']);
  assert.deepEqual(await policy(), { mode: 'internet', allow: ['10.1.2.3'] });
  await ok(['egress', id, '--allow', 'example.com', '--allow', '10.1.2.3']);
  assert.deepEqual(await policy(), { mode: 'internet', allow: ['10.1.2.3', 'example.com'] });
  await ok(['egress', id, '--mode', 'allowlist', '--remove', '10.1.2.3']);
  assert.deepEqual(await policy(), { mode: 'allowlist', allow: ['example.com'] });
  await ok(['egress', id, '--set', 'a.example.com', '--set', 'b.example.com']);
  assert.deepEqual(await policy(), { mode: 'allowlist', allow: ['a.example.com', 'b.example.com'] });
  const missing = await sandlot(['egress', id, '--remove', 'c.example.com']);
  speaks(missing, /there is no rule or secret "c\.example\.com"/);
  assert.equal(missing.code, 3);
  await ok(['egress', id, '--mode', 'none']);
  assert.match((await sandlot(['egress', id, '--allow', 'c.example.com'])).stderr, /mode was none and is allowlist/);
  assert.deepEqual(await policy(), { mode: 'allowlist', allow: ['a.example.com', 'b.example.com', 'c.example.com'] });
});

test('the hint below refused connections can be followed as it stands', async () => {
  const id = await created('--network', 'allowlist', '--allow', 'kept.example.com');
  await sandlot(['exec', id, '--', 'python3', '-c', 'import socket; socket.create_connection(("refused.example.com", 443))']);
  const table = await ok(['egress', id]);
  const [, rule] = /refused\.example\.com\S* +\d+ +\S.*? {2,}(\S+)/.exec(table) ?? assert.fail(table);
  const [, hint] = /sandlot (egress .* --allow) RULE/.exec(table) ?? assert.fail(table);
  await ok([...hint.split(' '), rule]);
  assert.deepEqual((await json(['egress', id, '-o', 'json'])).policy.allow, ['kept.example.com', rule]);
});

test('version tells that of the client and of the daemon', async () => {
  assert.match(await ok(['version']), /^client  \S+\ndaemon  \S+ at http:\S+\n$/);
});

/** The sources of the programs below src: { name, text }, in which texts that C joins are joined. */
const sources = () => {
  const root = path.join(import.meta.dirname, '../../src');
  return fs.readdirSync(root, { recursive: true }).filter((name) => name.endsWith('.c')).map((name) => ({ name, text: fs.readFileSync(path.join(root, name), 'utf8').replace(/"\s*\n\s*"/g, '') }));
};

test('a hint names a command for every route that a remedy of the daemon names, and is whole', () => {
  const all = sources();
  const unescape = (text) => text.replace(/\\(.)/g, '$1');
  const rows = [...all.find(({ name }) => name === 'cli/remote/hint.c').text.matchAll(/\{"((?:[^"\\]|\\.)+)",\s*"((?:[^"\\]|\\.)+)"\}/g)].map(([, route, command]) => [unescape(route), unescape(command)]);
  assert.ok(rows.length >= 25, String(rows));
  // As hint_from_remedy does it: the first row that begins there.
  const hintOf = (remedy) => {
    let hint = '';
    for (let at = 0; at < remedy.length;) {
      const row = rows.find(([route]) => remedy.startsWith(route, at));
      hint += row ? row[1] : remedy[at];
      at += row ? row[0].length : 1;
    }
    return hint;
  };
  const found = all.filter(({ name }) => !/^(cli|daemon)|sandbox_body|openapi|mcp_tool|routes\.c/.test(name)).flatMap(({ name, text }) => [...text.matchAll(/"((?:[^"\\]|\\.)*\b(?:GET|POST|PUT|PATCH|DELETE) (?:\/|\.\.\.)(?:[^"\\]|\\.)*)"/g)].map(([, remedy]) => ({ name, remedy: unescape(remedy) })));
  assert.ok(found.length >= 25, String(found.length));
  for (const { name, remedy } of found) {
    const hint = hintOf(remedy);
    assert.doesNotMatch(hint, /[{}]|\/v1|\b(?:GET|POST|PUT|PATCH|DELETE) |"\/|the header/, `${name}: ${remedy} -> ${hint}`);
  }
});

test('messages say sizes as people read them', () => {
  // Frames of E2B's protocol are counted to the byte.
  const raw = sources().filter(({ name }) => name !== 'api/e2b/e2b_connect.c').flatMap(({ name, text }) => [...text.matchAll(/"(?:[^"\\]|\\.)*%(?:z|l|ll)[ud](?: more)? bytes(?:[^"\\]|\\.)*"/g)].map(([message]) => `${name}: ${message}`));
  assert.deepEqual(raw, []);
});

finish();
