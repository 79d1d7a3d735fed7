// SPDX-License-Identifier: Apache-2.0
// What holds for every route: health, tokens, Host and Origin, errors, and HTTP that is not HTTP.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';

import { assertError, raw } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('api');
const NOBODY = '01arz3ndektsv4rrffq69g5fav';

const requestLines = (...lines) => `${lines.join('\r\n')}\r\n\r\n`;
const authorized = (line, ...more) => requestLines(line, `Host: 127.0.0.1:${api.port}`, `Authorization: Bearer ${api.token}`, ...more);

test('the liveness check answers ok without a token', async () => {
  const answer = await api.request('GET', '/healthz', { token: null });
  assert.equal(answer.status, 200);
  assert.equal(answer.text.trim(), 'ok');
});

test('the readiness check answers ready without a token', async () => {
  const answer = await api.request('GET', '/readyz', { token: null });
  assert.equal(answer.status, 200);
  assert.equal(answer.text.trim(), 'ready');
});

test('the token file belongs to one user alone and the data directory is closed to others', () => {
  assert.equal(fs.statSync(path.join(instance.dataDir, 'token')).mode & 0o777, 0o600);
  assert.equal(fs.statSync(instance.dataDir).mode & 0o007, 0, 'no other user can enter the data directory');
});

test('the daemon has dropped root and every capability, and the keeper is another process', () => {
  const uids = proc.statusField(instance.daemon.pid, 'Uid').split(/\s+/).map(Number);
  assert.ok(uids.every((uid) => uid !== 0), `uids of the daemon: ${uids}`);
  assert.ok(proc.statusField(instance.daemon.pid, 'Gid').split(/\s+/).every((gid) => gid !== '0'));
  assert.equal(proc.statusField(instance.daemon.pid, 'CapEff'), '0000000000000000');
  assert.equal(proc.statusField(instance.daemon.pid, 'CapPrm'), '0000000000000000');
  assert.ok(!proc.statusField(instance.daemon.pid, 'Groups').split(/\s+/).includes('0'), 'no group of root');
  assert.match(proc.statusField(instance.keeper.pid, 'Uid'), /^0\s/);
});

test('the keeper is single-threaded and holds no network socket', () => {
  assert.equal(proc.threads(instance.keeper.pid), 1);
  const inodes = new Set(proc.descriptorTargets(instance.keeper.pid).map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]).filter(Boolean));
  // Of its own network namespace, in which there is none, and of ours.
  for (const file of ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((table) => [`/proc/${instance.keeper.pid}/net/${table}`, `/proc/self/net/${table}`])) {
    for (const line of fs.readFileSync(file, 'utf8').split('\n').slice(1)) {
      const inode = line.trim().split(/\s+/)[9];
      assert.ok(!inodes.has(inode), `the keeper holds a socket of ${file}`);
    }
  }
});

test('the token appears in no command line, environment or log', () => {
  const secret = api.token;
  assert.ok(secret.length >= 32, 'a token is long');
  for (const info of [instance.daemon, instance.keeper, ...instance.sandboxProcesses()]) {
    assert.ok(!proc.cmdline(info.pid).includes(secret));
    assert.ok(!proc.environ(info.pid).join('\n').includes(secret));
  }
  assert.ok(!instance.log().includes(secret));
});

test('the database keeps only a hash of the token', async () => {
  await api.create();
  const files = instance.stateFiles();
  assert.ok(files.some((name) => name.endsWith('/sandlot.db')), files.join());
  for (const name of files) assert.ok(!fs.readFileSync(name).includes(api.token.slice(-20)), `${name} holds the token`);
});

test('a request without a token is 401, and the answer says how to send one', async () => {
  for (const [method, route] of [['GET', '/v1/sandboxes'], ['POST', '/v1/sandboxes'], ['GET', `/v1/sandboxes/${NOBODY}`], ['DELETE', `/v1/sandboxes/${NOBODY}`], ['POST', '/v1/shutdown']]) {
    const answer = await api.request(method, route, { token: null });
    assertError(answer, 401);
    assert.ok(answer.headers['www-authenticate'], `${method} ${route} has WWW-Authenticate`);
  }
});

test('a wrong, cut, lengthened or empty token is 401', async () => {
  const good = api.token;
  for (const token of ['nonsense', good.slice(0, -1), `${good}x`, good.slice(0, 10), '', good.toUpperCase() === good ? good.toLowerCase() : good.toUpperCase()]) {
    assertError(await api.request('GET', '/v1/sandboxes', { token }), 401);
    assertError(await api.request('GET', '/v1/sandboxes', { token: null, headers: { 'x-api-key': token } }), 401);
  }
});

test('a wrong scheme is 401', async () => {
  for (const authorization of [`Basic ${Buffer.from(`x:${api.token}`).toString('base64')}`, api.token, `Token ${api.token}`]) {
    assertError(await api.request('GET', '/v1/sandboxes', { token: null, headers: { authorization } }), 401);
  }
});

test('a token in the query is not a token', async () => {
  assertError(await api.request('GET', '/v1/sandboxes', { token: null, query: { token: api.token, access_token: api.token } }), [400, 401]);
});

test('the token works as Bearer and as X-API-Key', async () => {
  assert.equal((await api.request('GET', '/v1/sandboxes')).status, 200);
  assert.equal((await api.request('GET', '/v1/sandboxes', { token: null, headers: { 'x-api-key': api.token } })).status, 200);
  assert.equal((await api.request('GET', '/v1/sandboxes', { token: null, headers: { authorization: `bearer ${api.token}` } })).status, 200, 'the scheme has no case');
});

test('a request without a token creates nothing', async () => {
  const before = (await api.all()).length;
  assertError(await api.request('POST', '/v1/sandboxes', { token: null, json: {} }), 401);
  assert.equal((await api.all()).length, before);
});

test('a foreign Host is 421 on every route', async () => {
  for (const host of ['evil.com', `evil.com:${api.port}`, '127.0.0.1.nip.io', `127.0.0.1.nip.io:${api.port}`, `127.0.0.1:${api.port + 1}`, 'localhost.evil.com', `a@127.0.0.1:${api.port}`]) {
    for (const route of ['/v1/sandboxes', '/healthz', '/openapi.json']) {
      assertError(await api.request('GET', route, { headers: { host } }), [421, 400]);
    }
  }
});

test('the own names are taken as Host', async () => {
  for (const host of [`127.0.0.1:${api.port}`, `localhost:${api.port}`, `LOCALHOST:${api.port}`]) {
    assert.equal((await api.request('GET', '/v1/sandboxes', { headers: { host } })).status, 200, host);
  }
});

test('no Host, two Hosts, an empty one or an absolute target that differs are refused', async () => {
  const own = `Host: 127.0.0.1:${api.port}`;
  const bearer = `Authorization: Bearer ${api.token}`;
  for (const lines of [
    ['GET /v1/sandboxes HTTP/1.1', bearer],
    ['GET /v1/sandboxes HTTP/1.1', 'Host:', bearer],
    ['GET /v1/sandboxes HTTP/1.1', own, 'Host: evil.com', bearer],
    ['GET /v1/sandboxes HTTP/1.1', 'Host: evil.com', own, bearer],
    ['GET http://evil.com/v1/sandboxes HTTP/1.1', own, bearer],
  ]) {
    const answer = await raw(api.port, requestLines(...lines, 'Connection: close'));
    assert.ok([400, 404, 421].includes(answer.status), `${lines.join(' | ')} -> ${answer.text.slice(0, 200)}`);
  }
});

test('a foreign Origin is 403 and changes nothing', async () => {
  const before = (await api.all()).length;
  const taken = [];
  for (const headers of [
    ...['http://evil.com', 'null', `https://127.0.0.1:${api.port}`, `http://127.0.0.1:${api.port + 1}`, `http://evil.com:${api.port}`].map((origin) => ({ origin })),
    { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' },
  ]) {
    const answer = await api.request('POST', '/v1/sandboxes', { json: {}, headers });
    if (answer.status !== 403) taken.push(`${JSON.stringify(headers)}: ${answer.status}`);
    if (answer.status === 201) await api.purge(answer.json.id);
  }
  assert.deepEqual(taken, []);
  assert.equal((await api.all()).length, before);
});

test('a page of another origin may not even read, follow or ask first', async () => {
  const { id } = await api.create();
  const origin = 'http://evil.example';
  for (const route of ['/v1/sandboxes', `/v1/sandboxes/${id}/events`, `/v1/sandboxes/${id}/terminal`, '/openapi.json', '/healthz']) {
    assertError(await api.request('GET', route, { headers: { origin } }), 403);
    const asked = await api.request('OPTIONS', route, { token: null, headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' } });
    assertError(asked, 403);
    assert.deepEqual(Object.keys(asked.headers).filter((name) => name.startsWith('access-control-')), []);
  }
});

test('without a token there is nothing behind odd methods and well-known paths', async () => {
  for (const method of ['OPTIONS', 'TRACE', 'CONNECT', 'PROPFIND', 'PUT', 'get']) {
    const answer = await raw(api.port, requestLines(`${method} /v1/sandboxes HTTP/1.1`, `Host: 127.0.0.1:${api.port}`, 'X-Secret: echo', 'Content-Length: 0', 'Connection: close'));
    assert.ok([400, 401, 405].includes(answer.status), `${method}: ${answer.text}`);
    assert.doesNotMatch(answer.text, /echo|sandboxes"/);
  }
  for (const route of ['/metrics', '/debug', '/v1/tokens/../sandboxes', '/.git/config', '/openapi.yaml']) {
    assertError(await api.request('GET', route, { token: null }), [401, 404]);
  }
});

test('a GET changes nothing', async () => {
  const { id } = await api.create();
  for (const verb of ['start', 'stop', 'pause', 'resume', 'reset', 'purge', 'exec']) assertError(await api.request('GET', `/v1/sandboxes/${id}/${verb}`), 405);
  assert.equal((await api.get(id)).status, 'running');
});

test('the own Origin is taken, and no CORS header is given', async () => {
  const { id } = await api.create();
  const answer = await api.request('PATCH', `/v1/sandboxes/${id}`, { json: { labels: { a: 'b' } }, headers: { origin: `http://127.0.0.1:${api.port}`, 'sec-fetch-site': 'same-origin' } });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers['access-control-allow-origin'], undefined);
});

test('a form or plain text is 415 and changes nothing', async () => {
  const before = (await api.all()).length;
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/xml']) {
    assertError(await api.request('POST', '/v1/sandboxes', { body: '{}', headers: { 'content-type': type } }), 415);
  }
  assertError(await api.request('POST', '/v1/sandboxes', { body: '{}', headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } }), [400, 415]);
  assert.equal((await api.all()).length, before);
});

test('a content type with parameters or other case is still JSON', async () => {
  for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset=UTF-8']) {
    const answer = await api.request('POST', '/v1/sandboxes', { body: '{}', headers: { 'content-type': type } });
    assert.equal(answer.status, 201, `${type}: ${answer.text}`);
  }
});

test('an unknown route is 404 route_not_found', async () => {
  for (const route of ['/v1/nothing', '/v1', '/v1/sandboxes/', `/v1/sandboxes/${NOBODY}/nothing`, '/v2/sandboxes', '//v1/sandboxes', '/v1/../v1/sandboxes', '/v1/sandboxes%2f']) {
    const answer = await api.request('GET', route);
    assert.equal(assertError(answer, 404).code, 'route_not_found', route);
  }
});

test('a wrong method is 405 and names the right ones', async () => {
  const cases = [
    ['PUT', '/v1/sandboxes', ['GET', 'POST']], ['DELETE', '/v1/sandboxes', ['GET', 'POST']],
    ['GET', '/v1/sandboxes/ensure', null], ['POST', `/v1/sandboxes/${NOBODY}`, ['DELETE', 'GET', 'PATCH']],
    ['GET', `/v1/sandboxes/${NOBODY}/exec`, ['POST']], ['GET', `/v1/sandboxes/${NOBODY}/stop`, ['POST']],
    ['POST', `/v1/sandboxes/${NOBODY}/files`, ['DELETE', 'GET', 'PUT']], ['POST', '/healthz', ['GET']],
    ['GET', '/v1/shutdown', ['POST']], ['TRACE', '/v1/sandboxes', ['GET', 'POST']], ['BREW', '/v1/sandboxes', ['GET', 'POST']],
  ];
  for (const [method, route, allowed] of cases) {
    if (allowed === null) continue; // GET /v1/sandboxes/ensure may read as the sandbox "ensure"
    const line = await raw(api.port, authorized(`${method} ${route} HTTP/1.1`, 'Content-Length: 0', 'Connection: close'));
    assert.equal(line.status, 405, `${method} ${route}: ${line.text.slice(0, 200)}`);
    const allow = /^allow: *(.*)$/im.exec(line.text)?.[1] ?? '';
    for (const name of allowed) assert.ok(allow.split(/, */).map((word) => word.trim()).includes(name), `${method} ${route} allows ${name}: "${allow}"`);
  }
});

test('the error document has its five fields whatever went wrong', async () => {
  // The shape itself is checked for every error answer, in lib/client.mjs.
  const { id } = await api.create();
  const answers = await Promise.all([
    api.request('GET', '/v1/sandboxes', { token: null }), api.request('GET', '/nowhere'), api.request('DELETE', '/v1/sandboxes'),
    api.request('GET', `/v1/sandboxes/${NOBODY}`), api.request('POST', '/v1/sandboxes', { json: { nonsense: 1 } }),
    api.request('POST', '/v1/sandboxes', { json: { id } }), api.request('GET', '/v1/sandboxes', { headers: { host: 'evil.com' } }),
    api.request('POST', '/v1/sandboxes', { body: '{', headers: { 'content-type': 'application/json' } }),
  ]);
  assert.deepEqual(answers.map((answer) => answer.status), [401, 404, 405, 404, 400, 409, 421, 400]);
  for (const answer of answers) assertError(answer, answer.status);
  assert.equal(answers[3].json.error.code, 'sandbox_not_found');
  assert.ok(answers.every((answer) => answer.json.error.retryable === false));
});

test('a request id is echoed, also in errors, and made when there is none', async () => {
  const sent = 'abc-123_XYZ.9';
  const fine = await api.request('GET', '/v1/sandboxes', { headers: { 'x-request-id': sent } });
  assert.equal(fine.headers['x-request-id'], sent);
  const wrong = await api.request('GET', `/v1/sandboxes/${NOBODY}`, { headers: { 'x-request-id': sent } });
  assert.equal(wrong.headers['x-request-id'], sent);
  assert.equal(wrong.json.error.request_id, sent);
  const first = await api.request('GET', '/v1/sandboxes');
  const second = await api.request('GET', '/v1/sandboxes');
  assert.ok(first.headers['x-request-id']);
  assert.notEqual(first.headers['x-request-id'], second.headers['x-request-id']);
});

test('a request id that is too long or not plain is not echoed as it is', async () => {
  for (const bad of ['x'.repeat(5000), 'a"b<script>', 'tab\there', 'a\u00ffb']) {
    const answer = await api.request('GET', `/v1/sandboxes/${NOBODY}`, { headers: { 'x-request-id': bad } });
    assert.ok([404, 400, 431].includes(answer.status));
    assert.notEqual(answer.headers['x-request-id'], bad);
  }
});

test('an error names neither files of the host nor the database', async () => {
  const { id } = await api.create();
  const answers = [
    await api.request('GET', `/v1/sandboxes/${id}/files`, { query: { path: '/no/such/file' } }),
    await api.request('GET', `/v1/sandboxes/${id}/files`, { query: { path: '/etc' } }),
    await api.request('POST', '/v1/sandboxes', { json: { id } }),
    await api.request('POST', '/v1/sandboxes', { json: { template: 'no-such-template' } }),
  ];
  for (const answer of answers) {
    assert.ok(answer.status >= 400, answer.text);
    assert.doesNotMatch(answer.text, /SQLITE|INSERT|SELECT|UNIQUE|\.c:\d+|\/tmp\/sandlot/i);
  }
});

test('a foreign and a random id get the same answer', async () => {
  const { id } = await api.create();
  await api.purge(id);
  const gone = await api.request('GET', `/v1/sandboxes/${id}`);
  const never = await api.request('GET', `/v1/sandboxes/${NOBODY}`);
  const plain = (answer, name) => ({ status: answer.status, ...answer.json.error, message: answer.json.error.message.replaceAll(name, 'ID'), request_id: '' });
  assert.deepEqual(plain(gone, id), plain(never, NOBODY));
});

const create = (headers, body) => `POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nAuthorization: Bearer ${api.token}\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${body}`;
const BROKEN = {
  'length and chunks': create('Content-Length: 2\r\nTransfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'),
  'two lengths': create('Content-Length: 2\r\nContent-Length: 3', '{} '),
  'a length of +2': create('Content-Length: +2', '{}'),
  'a length of -1': create('Content-Length: -1', '{}'),
  'a length of 0x2': create('Content-Length: 0x2', '{}'),
  'a length of 30 digits': create(`Content-Length: ${'9'.repeat(30)}`, '{}'),
  'a space before the colon': create('Content-Length : 2', '{}'),
  'a NUL in a header': create('X-A: a\0b\r\nContent-Length: 2', '{}'),
  'a folded header': create('X-A: a\r\n b\r\nContent-Length: 2', '{}'),
  'a bare LF': create('X-A: a\nX-B: b\r\nContent-Length: 2', '{}'),
  'a line that begins with NUL': create('Content-Length: 2\r\n\0X-A: a', '{}'),
  'a NUL in the target': `GET /healthz\0 HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\n\r\n`,
  'padding before chunked': create('Transfer-Encoding:  chunked ', '2\r\n{}\r\n0\r\n\r\n'),
  'chunked twice': create('Transfer-Encoding: chunked, chunked', '2\r\n{}\r\n0\r\n\r\n'),
  'a chunk without its line end': create('Transfer-Encoding: chunked', '2\r\n{}XX0\r\n\r\n'),
  'a bad chunk size': create('Transfer-Encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'),
  'a chunk size of 2^64': create('Transfer-Encoding: chunked', '10000000000000002\r\n{}\r\n0\r\n\r\n'),
  'an unknown transfer encoding': create('Transfer-Encoding: gzip', '{}'),
  'what is no HTTP at all': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n',
  'a bad version': `GET /healthz HTTP/9.9\r\nHost: 127.0.0.1:${api.port}\r\n\r\n`,
  'a request without a target': `GET\r\nHost: 127.0.0.1:${api.port}\r\n\r\n`,
};

for (const [name, bytes] of Object.entries(BROKEN)) {
  test(`${name} is refused, the connection closed and nothing carried out`, async () => {
    const before = (await api.all()).length;
    const answer = await raw(api.port, Buffer.from(bytes, 'latin1'));
    const statuses = [...answer.text.matchAll(/^HTTP\/1\.[01] (\d{3})/gm)].map((match) => Number(match[1]));
    assert.ok(statuses.every((status) => status >= 400), answer.text.slice(0, 300));
    assert.ok(answer.closed, 'the connection is closed');
    assert.equal((await api.all()).length, before, 'nothing was created');
  });
}

test('a request line or header that is too long is refused', async () => {
  const line = await raw(api.port, authorized(`GET /v1/sandboxes?x=${'a'.repeat(65536)} HTTP/1.1`));
  assert.ok([0, 400, 413, 414, 431].includes(line.status), line.text.slice(0, 200));
  const header = await raw(api.port, authorized('GET /v1/sandboxes HTTP/1.1', `X-Long: ${'a'.repeat(1024 * 1024)}`));
  assert.ok([0, 400, 413, 431].includes(header.status), header.text.slice(0, 200));
  const many = await raw(api.port, authorized('GET /v1/sandboxes HTTP/1.1', ...Array.from({ length: 5000 }, (_, i) => `X-H${i}: v`)));
  assert.ok([0, 400, 413, 431].includes(many.status), many.text.slice(0, 200));
});

test('a JSON body over one MiB is 413, announced or not', async () => {
  const before = (await api.all()).length;
  const huge = JSON.stringify({ labels: { a: 'x'.repeat(1200 * 1024) } });
  assertError(await api.request('POST', '/v1/sandboxes', { body: huge, headers: { 'content-type': 'application/json' } }), 413);
  const announced = await raw(api.port, authorized('POST /v1/sandboxes HTTP/1.1', 'Content-Type: application/json', `Content-Length: ${10 * 2 ** 30}`));
  assert.equal(announced.status, 413, announced.text.slice(0, 200));
  async function* endless() {
    yield '{"labels":{"a":"';
    for (let i = 0; i < 64; i++) yield 'x'.repeat(64 * 1024);
    yield '"}}';
  }
  const chunked = await api.request('POST', '/v1/sandboxes', { body: endless(), headers: { 'content-type': 'application/json' } }).catch((error) => error);
  if (chunked instanceof Error) assert.match(chunked.code ?? chunked.message, /ECONNRESET|EPIPE|socket hang up|cut short/);
  else assertError(chunked, 413);
  assert.equal((await api.all()).length, before);
});

test('a big body does not skip the check of the token', async () => {
  const huge = JSON.stringify({ labels: { a: 'x'.repeat(1200 * 1024) } });
  const answer = await api.request('POST', '/v1/sandboxes', { token: null, body: huge, headers: { 'content-type': 'application/json' } }).catch((error) => error);
  if (answer instanceof Error) assert.match(answer.code ?? answer.message, /ECONNRESET|EPIPE|socket hang up/);
  else assertError(answer, 401);
});

test('several requests on one connection are answered in order', async () => {
  const two = authorized('GET /healthz HTTP/1.1') + authorized('GET /readyz HTTP/1.1') + authorized('GET /healthz HTTP/1.1', 'Connection: close');
  const answer = await raw(api.port, two);
  assert.equal(answer.answers, 3, answer.text);
  assert.deepEqual(answer.text.match(/ok|ready/g).filter((word) => word !== 'close'), ['ok', 'ready', 'ok']);
});

test('clients that vanish at every stage of a request do no harm', async () => {
  const whole = authorized('POST /v1/sandboxes HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 20') + '{"ports":[3000]     ';
  for (let length = 1; length < whole.length; length += 17) {
    await raw(api.port, whole.slice(0, length), { end: true });
  }
  assert.equal((await api.request('GET', '/healthz', { token: null })).status, 200);
});

test('two hundred silent connections keep nobody else waiting', async () => {
  const silent = Array.from({ length: 200 }, () => net.connect(api.port, '127.0.0.1'));
  await Promise.all(silent.map(async (socket) => {
    await once(socket, 'connect');
    socket.write('GET /v1/sandboxes HTTP/1.1\r\nHost: ');
  }));
  for (let i = 0; i < 20; i++) assert.equal((await api.request('GET', '/v1/sandboxes')).status, 200);
  assert.ok(silent.every((socket) => !socket.closed), 'not proven: they were cut before the others were served');
  for (const socket of silent) socket.destroy();
});

test('an empty object is a body that says nothing, where a route takes no fields', async () => {
  const { id } = await api.create();
  for (const verb of ['pause', 'resume']) {
    assertError(await api.request('POST', `/v1/sandboxes/${id}/${verb}`, { json: { field: 1 } }), 400);
    assert.equal((await api.request('POST', `/v1/sandboxes/${id}/${verb}`, { body: '{}', headers: { 'content-type': 'application/json' } })).status, 200);
  }
  await api.purge(id);
});

finish();

test('the address file names no daemon after its end, so that no token is sent to a stranger on that port', () => {
  const address = proc.quiet(() => fs.readFileSync(path.join(instance.dataDir, 'run/api.addr'), 'utf8'), '');
  assert.equal(address, '');
});
