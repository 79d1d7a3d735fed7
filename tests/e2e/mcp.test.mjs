// SPDX-License-Identifier: Apache-2.0
// The door for models: both eras of the Model Context Protocol, the real client over HTTP and over `sandlot mcp`, every tool,
// and that a tool may no more than its route.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import readline from 'node:readline';
import { test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { program } from './lib/instance.mjs';
import { makeToken, ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('mcp');
const Ajv = createRequire(import.meta.url)('ajv/dist/2020.js').default;
const origin = `http://${api.host}:${api.port}`;
const url = `${origin}/mcp`;

const post = (message, { token = api.token, headers = {}, raw } = {}) => fetch(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...(token ? { authorization: `Bearer ${token}` } : {}), ...headers },
  body: raw ?? JSON.stringify(message),
});
const ask = async (method, params = {}, options) => (await post({ jsonrpc: '2.0', id: 1, method, params }, options)).json();
const call = async (name, args = {}, options) => (await ask('tools/call', { name, arguments: args }, options)).result;
const done = async (name, args, options) => {
  const result = await call(name, args, options);
  assert.notEqual(result.isError, true, `${name}: ${result.content[0].text}`);
  return result.structuredContent;
};

const META = 'io.modelcontextprotocol/';
const modern = (method, params = {}, headers = {}) => post(
  { jsonrpc: '2.0', id: 'a', method, params: { ...params, _meta: { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} } } },
  { headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(params.name ? { 'mcp-name': params.name } : {}), ...headers } });

test('the client of the protocol lists tools and works in a sandbox with them', async () => {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${api.token}` } } }));
  assert.equal(client.getServerVersion().name, 'sandlot');
  const { tools } = await client.listTools();
  assert.ok(tools.some(({ name }) => name === 'exec'));
  const made = await client.callTool({ name: 'sandbox_create', arguments: { name: 'by-client' } });
  assert.equal(made.structuredContent.status, 'running');
  const ran = await client.callTool({ name: 'exec', arguments: { sandbox: 'by-client', command: 'echo $((6*7))' } });
  assert.equal(ran.structuredContent.stdout, '42\n');
  await client.callTool({ name: 'sandbox_delete', arguments: { sandbox: 'by-client' } });
  await assert.rejects(client.callTool({ name: 'nonsense', arguments: {} }), /-32602/);
  await client.close();
  assert.deepEqual((await api.request('GET', '/v1/sandboxes')).json.sandboxes, []);
});

test('sandlot mcp carries messages on standard input and output, several at once', async () => {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command: program('sandlot'), args: ['mcp'], env: { ...process.env, SANDLOT_URL: origin, SANDLOT_TOKEN: api.token } }));
  const { id } = (await client.callTool({ name: 'sandbox_create', arguments: {} })).structuredContent;
  // The first ends only by what the second does.
  const waits = client.callTool({ name: 'exec', arguments: { sandbox: id, command: 'mkfifo f; cat f' } });
  await client.callTool({ name: 'exec', arguments: { sandbox: id, command: 'until [ -p f ]; do sleep 0.05; done; echo through > f' } });
  assert.equal((await waits).structuredContent.stdout, 'through\n');
  await client.callTool({ name: 'sandbox_delete', arguments: { sandbox: id } });
  await client.close();
});

test('a line that is no message is answered, and the next one works', async () => {
  const child = spawn(program('sandlot'), ['mcp'], { env: { ...process.env, SANDLOT_URL: origin, SANDLOT_TOKEN: api.token }, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  child.stdin.write('{not json\n\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  assert.equal(JSON.parse((await lines.next()).value).error.code, -32700);
  child.stdin.end('{"jsonrpc":"2.0","id":7,"method":"ping"}\n');
  assert.deepEqual(JSON.parse((await lines.next()).value), { jsonrpc: '2.0', id: 7, result: {} });
  assert.equal(await new Promise((resolve) => { child.on('close', resolve); }), 0);
});

test('initialize takes the version of the client if it is spoken, else names the newest', async () => {
  const version = async (protocolVersion) => (await ask('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 't', version: '1' } })).result.protocolVersion;
  assert.equal(await version('2025-06-18'), '2025-06-18');
  assert.equal(await version('2024-11-05'), '2024-11-05');
  assert.equal(await version('1999-01-01'), '2025-11-25');
});

test('every tool has a schema that a validator takes, and hints', async () => {
  const { tools } = (await ask('tools/list')).result;
  const ajv = new Ajv({ strict: false, validateFormats: false });
  assert.equal(new Set(tools.map(({ name }) => name)).size, tools.length);
  for (const tool of tools) {
    assert.match(tool.name, /^[a-z_]{1,64}$/);
    assert.ok(tool.description.length > 20, tool.name);
    ajv.compile(tool.inputSchema);
    assert.equal(tool.inputSchema.additionalProperties, false);
    for (const [name, property] of Object.entries(tool.inputSchema.properties)) assert.ok(property.description, `${tool.name}.${name}`);
    for (const name of tool.inputSchema.required) assert.ok(tool.inputSchema.properties[name], `${tool.name}.${name}`);
    assert.equal(typeof tool.annotations.readOnlyHint, 'boolean');
  }
});

test('commands, processes, files, code and copies through tools', async () => {
  const { id } = await done('sandbox_create', { name: 'tools', env: { A: 'b' } });
  assert.equal((await done('sandbox_get', { sandbox: 'tools' })).id, id);
  assert.deepEqual((await done('sandbox_list', { status: 'running' })).sandboxes.map((one) => one.id), [id]);

  const failed = await call('exec', { sandbox: 'tools', command: 'echo out; echo err >&2; exit 3' });
  assert.equal(failed.isError, true);
  assert.equal(failed.structuredContent.exit_code, 3);
  assert.match(failed.content[0].text, /out[^]*err/);

  const { process } = await done('process_start', { sandbox: 'tools', command: 'echo begun; exec sleep 1000' });
  const silent = await done('process_start', { sandbox: 'tools', command: 'exec sleep 1000' });
  assert.equal((await done('process_output', { sandbox: 'tools', process: silent.process.id })).output, '');
  await done('process_kill', { sandbox: 'tools', process: silent.process.id });
  let output = '';
  for (let i = 0; i < 200 && !output.includes('begun'); i++) ({ output } = await done('process_output', { sandbox: 'tools', process: process.id }));
  assert.equal(output, 'begun\n');
  assert.equal((await done('process_list', { sandbox: 'tools' })).processes.find((one) => one.id === process.id).status, 'running');
  await done('process_kill', { sandbox: 'tools', process: process.id });

  const text = 'ü'.repeat(40000);
  await done('file_write', { sandbox: 'tools', path: '/workspace/a b/ü.txt', content: text });
  let read = '';
  for (let offset = 0, more = true; more;) {
    const part = await done('file_read', { sandbox: 'tools', path: '/workspace/a b/ü.txt', offset });
    read += part.content;
    offset = part.next_offset;
    more = part.truncated;
  }
  assert.equal(read, text);
  await done('file_write', { sandbox: 'tools', path: '/workspace/bytes', content_base64: Buffer.from([0, 255, 1]).toString('base64') });
  assert.deepEqual(Buffer.from((await done('file_read', { sandbox: 'tools', path: '/workspace/bytes' })).content_base64, 'base64'), Buffer.from([0, 255, 1]));
  await done('file_move', { sandbox: 'tools', from: '/workspace/bytes', to: '/workspace/moved' });
  assert.ok((await done('file_list', { sandbox: 'tools', path: '/workspace' })).entries.some(({ name }) => name === 'moved'));
  await done('file_delete', { sandbox: 'tools', path: '/workspace/a b', recursive: true });
  assert.equal((await call('file_read', { sandbox: 'tools', path: '/workspace/a b/ü.txt' })).isError, true);

  assert.equal((await done('run_code', { sandbox: 'tools', language: 'python', code: 'def handler(event):\n  return event["a"] * 2', event: { a: 21 } })).result, 42);
  const broken = await call('run_code', { sandbox: 'tools', language: 'python', code: '1/0' });
  assert.equal(broken.isError, true);
  assert.equal(broken.structuredContent.error.type, 'ZeroDivisionError');
  assert.equal((await done('run_code_once', { language: 'shell', code: 'echo once' })).stdout, 'once\n');

  const snapshot = await done('snapshot_create', { sandbox: 'tools' });
  await done('exec', { sandbox: 'tools', command: 'rm /workspace/moved' });
  assert.deepEqual((await done('sandbox_changes', { sandbox: 'tools', since: snapshot.id })).changes.map(({ kind }) => kind), ['deleted']);
  await done('sandbox_restore', { sandbox: 'tools', snapshot: snapshot.id });
  await done('exec', { sandbox: 'tools', command: 'test -f /workspace/moved' });
  const { sandboxes: [copy] } = await done('sandbox_fork', { sandbox: 'tools', count: 1 });
  await done('sandbox_stop', { sandbox: copy.id });
  await done('sandbox_delete', { sandbox: copy.id });
  assert.match((await done('preview_url', { sandbox: 'tools', port: 3000 })).url, /^http/);
  await done('sandbox_delete', { sandbox: 'tools' });
  await api.request('DELETE', `/v1/snapshots/${snapshot.id}`);
});

test('pictures among results are shown as pictures', async () => {
  const { content, structuredContent } = await call('run_code_once', { language: 'python', code: [
    'import base64',
    'class P:',
    '  def _repr_png_(self): return base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")',
    'display(P())'].join('\n') });
  assert.equal(structuredContent.status, 'succeeded', JSON.stringify(structuredContent));
  const [picture] = content.filter(({ type }) => type === 'image');
  assert.equal(picture.mimeType, 'image/png');
  assert.ok(Buffer.from(picture.data, 'base64').subarray(1, 4).equals(Buffer.from('PNG')));
  assert.doesNotMatch(content[0].text, /iVBOR/);
});

test('long output is cut in its middle, at characters', async () => {
  const { id } = await api.create();
  const nul = await call('exec', { sandbox: id, command: 'printf "x\\0y"; exit 3' });
  assert.deepEqual([nul.isError, nul.structuredContent.exit_code, nul.structuredContent.stdout], [true, 3, 'x\0y']);
  await done('file_write', { sandbox: id, path: '/tmp/run', content: 'x', mode: '0755' });
  assert.equal((await call('exec', { sandbox: id, command: 'stat -c %a /tmp/run' })).structuredContent.stdout, '755\n');
  const { structuredContent } = await call('exec', { sandbox: id, command: 'python3 -c \'print("b" + "ü" * 200000 + "e")\'' });
  assert.match(structuredContent.stdout, /^bü+\n\[\.\.\. [\d.]+ [KM]iB left out \.\.\.\]\nü+e\n$/);
  assert.ok(Buffer.byteLength(structuredContent.stdout) < 64 << 10);
  await api.purge(id);
});

test('arguments that are wrong, missing or unknown are told to the model, and change nothing', async () => {
  const text = async (name, args) => {
    const result = await call(name, args);
    assert.equal(result.isError, true, name);
    return result.content[0].text;
  };
  assert.match(await text('exec', { command: 'true' }), /argument sandbox/);
  assert.match(await text('exec', { sandbox: ['a'], command: 'true' }), /argument sandbox/);
  assert.match(await text('exec', { sandbox: 'nowhere', command: 'true', nonsense: 1 }), /no argument nonsense/);
  assert.match(await text('exec', { sandbox: 'nowhere', command: 'true', background: true }), /no argument background/);
  assert.match(await text('exec', { sandbox: 'nowhere', [`x${'ü'.repeat(60)}`]: 1 }), /no argument xü+\?/); // cut in the middle of a character
  assert.match(await text('exec', { sandbox: 'nowhere', command: 'true' }), /nowhere\nlist yours with sandbox_list$/);
  assert.match(await text('sandbox_create', { name: 'NOT A NAME' }), /name/);
  assert.match(await text('sandbox_get', { sandbox: '../../tokens' }), /./);
  assert.match(await text('file_write', { sandbox: 'nowhere', path: '/a' }), /./);
  assert.match(await text('file_read', { sandbox: 'a'.repeat(9000), path: '/a' }), /./);
  assert.match(await text('exec', { sandbox: 'nowhere', '': 1 }), /no argument/);
  assert.match(await text('file_write', { sandbox: 'nowhere', path: '/a', content: 'x', mode: 'garbage' }), /./);
  assert.equal((await call('sandbox_list', { status: null, limit: 1 })).isError, false);
  assert.equal((await api.request('GET', '/v1/sandboxes')).json.sandboxes.length, 0);
});

test('a tool needs the scope of its route and sees only what is its owner\'s', async () => {
  const { id } = await api.create();
  const reader = await makeToken(api, { organization: 'acme', user: 'alice', scopes: ['read'] });
  const denied = await call('sandbox_create', {}, { token: reader.token });
  assert.equal(denied.isError, true);
  assert.match(denied.content[0].text, /scope/);
  const { entries } = (await api.request('GET', '/v1/audit?organization=acme&user=alice&limit=5')).json;
  assert.ok(entries.some((entry) => entry.action === 'sandbox.create' && entry.code === 'missing_scope'), JSON.stringify(entries));
  const other = await ownerApi(api, 'acme', 'bob');
  for (const [name, args] of [['sandbox_get', {}], ['exec', { command: 'id' }], ['file_read', { path: '/etc/passwd' }], ['file_write', { path: '/tmp/a', content: 'x' }], ['process_output', { process: 'p1' }], ['sandbox_delete', {}]]) {
    const result = await call(name, { sandbox: id, ...args }, { token: other.token });
    assert.equal(result.isError, true, name);
    assert.match(result.content[0].text, /no sandbox|not found|there is no/i, name);
  }
  assert.equal((await api.request('GET', `/v1/sandboxes/${id}`)).status, 200);
  await api.purge(id);
});

test('what tools do stands in the audit log as what it is, failures too', async () => {
  const { id } = await api.create();
  await call('exec', { sandbox: id, command: 'true' });
  await call('file_write', { sandbox: id, path: '/tmp/noted', content: 'x' });
  await call('file_move', { sandbox: id, from: '/tmp/nothing', to: '/tmp/b' });
  const { entries } = (await api.request('GET', `/v1/audit?object=${id}&limit=50`)).json;
  const of = (action) => entries.find((entry) => entry.action === action);
  assert.equal(of('exec.run').status, 200);
  assert.match(of('file.write').detail, /path=\/tmp\/noted/);
  assert.equal(of('file.move').status, 404);
  await api.purge(id);
});

test('strangers are refused with a challenge, other methods with 405, pages of other origins with 403', async () => {
  const stranger = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, { token: null });
  assert.equal(stranger.status, 401);
  assert.match(stranger.headers.get('www-authenticate'), /^Bearer/);
  for (const method of ['GET', 'DELETE']) assert.equal((await fetch(url, { method, headers: { authorization: `Bearer ${api.token}` } })).status, 405);
  assert.equal((await post({ jsonrpc: '2.0', id: 1, method: 'ping' }, { headers: { origin: 'https://evil.test' } })).status, 403);
  for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server']) assert.equal((await fetch(origin + path)).status, 404);
});

test('messages that are none', async () => {
  const code = async (raw, status) => {
    const answer = await post(null, { raw });
    assert.equal(answer.status, status, raw);
    return (await answer.json()).error.code;
  };
  assert.equal(await code('{', 400), -32700);
  assert.equal(await code('{"a":1,"a":2}', 400), -32700);
  assert.equal(await code('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400), -32600);
  assert.equal(await code('{"jsonrpc":"2.0","id":null,"method":"ping"}', 400), -32600);
  assert.equal(await code('{"jsonrpc":"2.0","id":1}', 400), -32600);
  assert.equal(await code(`{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(200)}${']'.repeat(200)}}`, 400), -32700);
  assert.equal((await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })).status, 202);
  assert.equal((await ask('nonsense')).error.code, -32601);
  assert.equal((await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, { headers: { 'mcp-protocol-version': '1999-01-01' } })).status, 400);
});

test('the era without sessions: discover, lists, calls, and headers that must agree', async () => {
  const discovered = (await (await modern('server/discover')).json()).result;
  assert.equal(discovered.resultType, 'complete');
  assert.ok(discovered.supportedVersions.includes('2026-07-28'));
  const listed = (await (await modern('tools/list')).json()).result;
  assert.equal(listed.cacheScope, 'private');
  assert.ok(listed.tools.length > 20);
  const called = (await (await modern('tools/call', { name: 'run_code_once', arguments: { language: 'shell', code: 'echo $((6*7))' } })).json()).result;
  assert.equal(called.resultType, 'complete');
  assert.equal(called.structuredContent.stdout, '42\n');
  assert.equal((await modern('tools/call', { name: 'sandbox_list', arguments: {} }, { 'mcp-name': `=?base64?${Buffer.from('sandbox_list').toString('base64')}?=` })).status, 200);
  const wrong = async (answer, status, code) => {
    assert.equal(answer.status, status);
    assert.equal((await answer.json()).error.code, code);
  };
  await wrong(await modern('tools/call', { name: 'sandbox_list' }, { 'mcp-name': 'exec' }), 400, -32020);
  await wrong(await modern('tools/list', {}, { 'mcp-method': 'tools/call' }), 400, -32020);
  await wrong(await modern('nonsense'), 404, -32601);
  await wrong(await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, { headers: { 'mcp-protocol-version': '2026-07-28' } }), 400, -32602);
  const unknown = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: { [`${META}protocolVersion`]: '2031-01-01', [`${META}clientCapabilities`]: {} } } }, { headers: { 'mcp-protocol-version': '2031-01-01', 'mcp-method': 'tools/list' } });
  assert.equal(unknown.status, 400);
  assert.ok((await unknown.json()).error.data.supported.includes('2026-07-28'));
});

finish();
