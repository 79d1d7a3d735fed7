// SPDX-License-Identifier: Apache-2.0
// The door for programs of E2B: its real client libraries, with nothing set but the two addresses and a key.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { test } from 'node:test';

import { Sandbox as CodeSandbox } from '@e2b/code-interpreter';
import { AuthenticationError, CommandExitError, FileNotFoundError, FileType, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError } from 'e2b';

import { makeToken } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { api, finish } = await suite('e2b');
const apiUrl = `http://${api.host}:${api.port}/e2b`;
const probe = await api.create({ ports: [3000] });
const previewPort = Number(new URL(probe.previews['3000']).port);
await api.request('POST', `/v1/sandboxes/${probe.id}/purge`);
const sandboxUrl = `http://127.0.0.1:${previewPort}`;
const key = (await api.request('POST', '/v1/tokens', { json: { name: 'e2b', e2b: true } })).json.token;
const options = { apiUrl, sandboxUrl, apiKey: key };
const shared = await Sandbox.create(options);
const raw = (path, { headers = {}, body, method = 'POST', port = 49983, id = shared.sandboxId, token = shared.envdAccessToken } = {}) =>
  fetch(`${sandboxUrl}${path}`, { method, body, headers: { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': `${port}`, ...(token ? { 'X-Access-Token': token } : {}), ...headers } });

test('a key has the form that every client takes', () => {
  assert.match(key, /^e2b_[0-9a-f]+$/);
});

test('answers of the door are as the OpenAPI document says', async () => {
  // The client of these tests looks at each (lib/document.mjs).
  const id = shared.sandboxId, envd = `/e2b/data/${id}/envd`, code = `/e2b/data/${id}/interpreter`;
  const unary = (route, json) => api.request('POST', `${envd}/${route}`, { json });
  await shared.files.write('/workspace/judged.txt', 'text');
  for (const route of ['/e2b/sandboxes', '/e2b/v2/sandboxes', `/e2b/sandboxes/${id}`, `/e2b/sandboxes/${id}/metrics`, `${envd}/health`, `${code}/contexts`, `${code}/health`]) {
    const answer = await api.request('GET', route);
    assert.ok([200, 204].includes(answer.status), `${route}: ${answer.status} ${answer.text}`);
  }
  const handle = await shared.commands.run('sleep 600', { background: true, timeoutMs: 0 });
  for (const [route, json] of [['process.Process/List', {}], ['filesystem.Filesystem/Stat', { path: '/workspace/judged.txt' }], ['filesystem.Filesystem/ListDir', { path: '/workspace', depth: 1 }], ['filesystem.Filesystem/MakeDir', { path: '/workspace/judged' }], ['filesystem.Filesystem/Remove', { path: '/workspace/judged' }]]) {
    const answer = await unary(route, json);
    assert.equal(answer.status, 200, `${route}: ${answer.text}`);
  }
  assert.equal((await unary('filesystem.Filesystem/Stat', { path: '/workspace/nothing' })).json.code, 'not_found');
  assert.equal((await api.request('GET', `${envd}/files`, { query: { path: '/workspace/judged.txt' } })).text, 'text');
  const context = await api.request('POST', `${code}/contexts`, { json: { language: 'python' } });
  assert.equal(context.status, 200, context.text);
  await api.request('DELETE', `${code}/contexts/${context.json.id}`);
  assert.equal((await api.request('GET', '/e2b/sandboxes/nothing')).status, 404);
  await handle.kill();
});

test('a command gives its output as it comes, its exit code, and takes input', async () => {
  const seen = [];
  const result = await shared.commands.run('echo out; echo err >&2; printf "%s" "$GREETING"', { envs: { GREETING: 'grüße' }, onStdout: (data) => { seen.push(data); } });
  assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, 'out\ngrüße', 'err\n']);
  assert.equal(seen.join(''), 'out\ngrüße');
  await assert.rejects(shared.commands.run('exit 3'), (error) => error instanceof CommandExitError && error.exitCode === 3);
  const reader = await shared.commands.run('read line; echo "got $line"; cat | tr a-z A-Z', { background: true, stdin: true });
  await shared.commands.sendStdin(reader.pid, 'hello\nrest');
  await shared.commands.closeStdin(reader.pid);
  assert.equal((await reader.wait()).stdout, 'got hello\nREST');
  assert.equal((await shared.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n');
  assert.equal((await shared.commands.run('id -u', { user: 'root' })).stdout, '0\n');
});

test('a command in the background is listed, followed by another client, and killed', async () => {
  const handle = await shared.commands.run('while read x; do echo "<$x>"; done', { background: true, stdin: true, timeoutMs: 0 });
  assert.ok((await shared.commands.list()).some(({ pid }) => pid === handle.pid));
  const other = await Sandbox.connect(shared.sandboxId, options);
  const heard = [];
  const follower = await other.commands.connect(handle.pid, { onStdout: (data) => { heard.push(data); } });
  await shared.commands.sendStdin(handle.pid, 'one\n');
  await until(() => heard.join('').includes('<one>'), { what: 'the other client hears it' });
  assert.equal(await shared.commands.kill(handle.pid), true);
  await assert.rejects(handle.wait(), CommandExitError);
  await assert.rejects(follower.wait(), CommandExitError);
  assert.equal(await shared.commands.kill(handle.pid), false);
});

test('a command that takes too long is ended', async () => {
  await assert.rejects(shared.commands.run('sleep 1000', { timeoutMs: 1000 }), TimeoutError);
  await until(async () => !(await shared.commands.list()).some(({ args }) => args.includes('sleep 1000')), { what: 'it is over inside too' });
});

test('a terminal shows what is typed, and has a size', async () => {
  let shown = '';
  const terminal = await shared.pty.create({ cols: 80, rows: 24, onData: (data) => { shown += Buffer.from(data).toString(); }, timeoutMs: 0 });
  await shared.pty.resize(terminal.pid, { cols: 101, rows: 30 });
  await shared.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; echo done-$((6*7))\n'));
  await until(() => shown.includes('30 101') && shown.includes('done-42'), { what: 'the terminal answers' });
  assert.equal(await shared.pty.kill(terminal.pid), true);
});

test('files are written, read, listed, renamed and removed', async () => {
  const { files } = shared;
  const written = await files.write('notes/ä.txt', 'grüße');
  assert.equal(written.path, '/workspace/notes/ä.txt');
  assert.equal(await files.read('notes/ä.txt'), 'grüße');
  const bytes = new Uint8Array(300000).map((_, i) => i * 7);
  await files.write('/tmp/bytes', bytes.buffer, { useOctetStream: true });
  assert.deepEqual(await files.read('/tmp/bytes', { format: 'bytes' }), bytes);
  await files.write([{ path: '/tmp/many/1', data: 'a' }, { path: '/tmp/many/2', data: 'b' }]);
  assert.deepEqual((await files.list('/tmp/many')).map(({ name, type }) => [name, type]), [['1', FileType.FILE], ['2', FileType.FILE]]);
  assert.equal(await files.makeDir('/tmp/dir/deep'), true);
  assert.equal(await files.makeDir('/tmp/dir/deep'), false);
  assert.deepEqual((await files.list('/tmp/dir', { depth: 2 })).map(({ path, type }) => [path, type]), [['/tmp/dir/deep', FileType.DIR]]);
  assert.equal((await files.rename('/tmp/many/1', '/tmp/many/3')).path, '/tmp/many/3');
  assert.equal(await files.exists('/tmp/many/1'), false);
  const info = await files.getInfo('/tmp/many/3');
  assert.deepEqual([info.name, info.type, info.size, info.permissions], ['3', FileType.FILE, 1, '-rw-r--r--']);
  await files.remove('/tmp/many');
  assert.equal(await files.exists('/tmp/many'), false);
  await assert.rejects(files.read('/tmp/none'), FileNotFoundError);
  await assert.rejects(files.list('/tmp/none'), FileNotFoundError);
  await assert.rejects(files.read('/tmp'), SandboxError);
});

test('changes of files are told', async () => {
  await shared.files.makeDir('/tmp/watched');
  const seen = [];
  const watch = await shared.files.watchDir('/tmp/watched', ({ name, type }) => { seen.push(`${type} ${name}`); }, { recursive: true });
  await shared.files.write('/tmp/watched/a', 'x');
  await shared.files.rename('/tmp/watched/a', '/tmp/watched/b');
  await shared.files.remove('/tmp/watched/b');
  await until(() => seen.includes('remove b'), { what: 'the removal is told' });
  assert.ok(seen.some((one) => one === 'rename a'), seen.join());
  await watch.stop();
});

test('sandboxes are listed by metadata and page, told about, given time, and killed', async () => {
  const made = await Promise.all([1, 2, 3].map((n) => Sandbox.create({ ...options, timeoutMs: 60000, metadata: { run: 'a b&c=d', n: `${n}` }, envs: { FROM: 'create' } })));
  const list = async (query, more = {}) => {
    const pages = Sandbox.list({ ...options, query, ...more });
    const all = [];
    while (pages.hasNext) all.push(...await pages.nextItems());
    return all;
  };
  assert.equal((await list({ metadata: { run: 'a b&c=d' } })).length, 3);
  assert.deepEqual((await list({ metadata: { run: 'a b&c=d', n: '2' } }, { limit: 2 })).map(({ sandboxId }) => sandboxId), [made[1].sandboxId]);
  assert.deepEqual(await list({ metadata: { run: 'other' } }), []);
  assert.equal((await made[0].commands.run('echo $FROM')).stdout, 'create\n');
  const before = await made[0].getInfo();
  assert.deepEqual([before.sandboxId, before.metadata.n, before.state], [made[0].sandboxId, '1', 'running']);
  await made[0].setTimeout(3600000);
  const { endAt } = await made[0].getInfo();
  assert.ok(endAt - before.endAt > 3000000, `${before.endAt} ${endAt}`);
  assert.equal((await made[0].getMetrics()).length, 1);
  assert.equal(await made[0].isRunning(), true);
  for (const one of made) assert.equal(await one.kill(), true);
  assert.equal(await made[0].isRunning(), false);
  assert.equal(await Sandbox.kill(made[0].sandboxId, options), false);
  await assert.rejects(Sandbox.getInfo(made[0].sandboxId, options), SandboxNotFoundError);
  await assert.rejects(Sandbox.connect(made[0].sandboxId, options), SandboxNotFoundError);
});

test('a paused sandbox keeps what it has until somebody connects', async () => {
  const sandbox = await Sandbox.create(options);
  const counting = await sandbox.commands.run('cat', { background: true, stdin: true, timeoutMs: 0 });
  await sandbox.files.write('kept', 'yes');
  assert.equal(await sandbox.pause(), true);
  assert.equal(await sandbox.pause(), false);
  assert.equal((await Sandbox.getInfo(sandbox.sandboxId, options)).state, 'paused');
  assert.equal(await sandbox.isRunning(), false);
  const again = await Sandbox.connect(sandbox.sandboxId, options);
  assert.equal(await again.files.read('kept'), 'yes');
  assert.ok((await again.commands.list()).some(({ pid }) => pid === counting.pid));
  assert.equal(await again.kill(), true);
});

test('code keeps its variables, shows what it makes, and fails with its traceback', async () => {
  const sandbox = await CodeSandbox.create(options);
  const printed = [];
  await sandbox.runCode('x = 41; name = "grüße"');
  const run = await sandbox.runCode('print(name)\nx + 1', { onStdout: ({ line }) => { printed.push(line); } });
  assert.equal(run.text, '42');
  assert.deepEqual(run.logs.stdout.join(''), 'grüße\n');
  assert.equal(printed.join(''), 'grüße\n');
  const failed = await sandbox.runCode('1 / 0');
  assert.equal(failed.error.name, 'ZeroDivisionError');
  assert.match(failed.error.traceback, /ZeroDivisionError/);
  const context = await sandbox.createCodeContext({ language: 'python' });
  assert.equal((await sandbox.runCode('x', { context })).error.name, 'NameError');
  assert.ok((await sandbox.listCodeContexts()).some(({ id }) => id === context.id));
  await sandbox.removeCodeContext(context);
  assert.equal((await sandbox.runCode('console.log(6 * 7)', { language: 'js' })).logs.stdout.join('').trim(), '42');
  assert.equal((await sandbox.runCode('echo $((6*7))', { language: 'bash' })).logs.stdout.join('').trim(), '42');
  await sandbox.kill();
});

test('a port of a sandbox has the host name that the client says', async () => {
  await shared.commands.run('mkdir -p www && echo page > www/index.html');
  const server = await shared.commands.run('exec python3 -m http.server 8000 --directory www', { background: true, timeoutMs: 0 });
  const host = shared.getHost(8000);
  assert.match(host, new RegExp(`^8000-${shared.sandboxId}\\.`));
  const answer = await until(async () => {
    const [answer] = await once(http.get({ host: '127.0.0.1', port: previewPort, headers: { host } }), 'response');
    const text = (await answer.toArray()).join('');
    return answer.statusCode === 200 && text;
  }, { what: 'the page is served' });
  assert.equal(answer, 'page\n');
  await server.kill();
});

test('a wrong key, a foreign sandbox and a token for another sandbox are refused', async () => {
  await assert.rejects(Sandbox.create({ ...options, apiKey: `e2b_${'0'.repeat(64)}` }), AuthenticationError);
  // Some of its clients read these two fields, and nothing else.
  for (const [path, method] of [['/v2/sandboxes', 'POST'], ['/sandboxes', 'GET'], ['/sandboxes/x', 'DELETE'], ['/data/x/envd/files', 'POST']]) {
    const { code, message } = await (await fetch(`${apiUrl}${path}`, { method, headers: { 'X-API-Key': `e2b_${'0'.repeat(64)}` } })).json();
    assert.deepEqual([code, typeof message], [401, 'string'], path);
  }
  const { status } = await fetch(`${apiUrl}/v2/sandboxes`, { headers: { 'X-API-Key': key, Authorization: 'Bearer of-another-service' } });
  assert.equal(status, 200, 'what older clients send beside the key does not count');
  const token = (await makeToken(api, { user: 'other', e2b: true })).token;
  const theirs = { ...options, apiKey: token };
  const pages = Sandbox.list(theirs);
  assert.deepEqual(await pages.nextItems(), []);
  await assert.rejects(Sandbox.connect(shared.sandboxId, theirs), SandboxNotFoundError);
  assert.equal(await Sandbox.kill(shared.sandboxId, theirs), false);
  const own = await Sandbox.create(theirs);
  const stat = (options) => raw('/filesystem.Filesystem/Stat', { body: '{"path":"/"}', headers: { 'content-type': 'application/json' }, ...options });
  assert.equal((await stat({})).status, 200);
  assert.equal((await stat({ token: own.envdAccessToken })).status, 401);
  assert.equal((await stat({ token: null })).status, 401);
  assert.equal((await stat({ token: key })).status, 200);
  assert.equal((await api.request('GET', '/v1/sandboxes', { token: shared.envdAccessToken })).status, 401);
  assert.equal((await stat({ id: '0'.repeat(26) })).status, 502);
  await own.kill();
});

test('a key that may only look can do no more by this door', async () => {
  const { token } = await makeToken(api, { user: 'admin', scopes: ['read'], e2b: true });
  const looking = { ...options, apiKey: token };
  assert.equal((await Sandbox.getInfo(shared.sandboxId, looking)).sandboxId, shared.sandboxId);
  await assert.rejects(Sandbox.create(looking), SandboxError);
  const { envdAccessToken } = await (await fetch(`${apiUrl}/sandboxes/${shared.sandboxId}`, { headers: { 'X-API-Key': token } })).json();
  const envelope = (message) => { const text = Buffer.from(JSON.stringify(message)); const head = Buffer.alloc(5); head.writeUInt32BE(text.length, 1); return Buffer.concat([head, text]); };
  const start = await raw('/process.Process/Start', { token: envdAccessToken, headers: { 'content-type': 'application/connect+json' }, body: envelope({ process: { cmd: 'true' } }) });
  assert.match(await start.text(), /permission_denied/);
  assert.equal((await raw('/files?path=/tmp/x', { token: envdAccessToken, headers: { 'content-type': 'application/octet-stream' }, body: 'x' })).status, 403);
});

test('what is no envelope is refused, and so is too much of it', async () => {
  const start = async (body) => (await raw('/process.Process/Start', { headers: { 'content-type': 'application/connect+json' }, body })).text();
  const head = (flags, length) => { const bytes = Buffer.alloc(5); bytes[0] = flags; bytes.writeUInt32BE(length, 1); return bytes; };
  assert.match(await start(Buffer.concat([head(1, 2), Buffer.from('{}')])), /invalid_argument/);
  assert.match(await start(head(0, 0xffffffff)), /invalid_argument/);
  assert.match(await start(Buffer.from('abc')), /invalid_argument/);
  assert.match(await start(Buffer.concat([head(0, 4), Buffer.from('[{}]')])), /invalid_argument/);
  assert.match(await start(Buffer.concat([head(0, 2), Buffer.from('{}')])), /invalid_argument/);
  assert.equal((await raw('/process.Process/Start', { headers: { 'content-type': 'application/connect+json' }, body: Buffer.alloc(2 << 20) })).status, 413);
  assert.equal((await raw('/process.Process/Nothing', { headers: { 'content-type': 'application/json' }, body: '{}' })).status, 404);
});

test('what was asked is in the audit log as what it did', async () => {
  const { json } = await api.request('GET', '/v1/audit?limit=1000');
  const actions = new Set(json.entries.map(({ action }) => action));
  for (const action of ['sandbox.create', 'sandbox.purge', 'file.upload']) assert.ok(actions.has(action), `${action} in ${[...actions]}`);
});

test('the shared sandbox ends', async () => {
  assert.equal(await shared.kill(), true);
});

finish();
