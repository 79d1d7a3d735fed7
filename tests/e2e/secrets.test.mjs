// SPDX-License-Identifier: Apache-2.0
// Secrets that requests are given on their way out: who gets them, who never does, and what passes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { once } from 'node:events';
import { test } from 'node:test';

import { authority } from './lib/certificates.mjs';
import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { httpServer, nameServer, tcpServer } from './lib/outside.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Processes } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const KEY = 'sk-canary-5f1c9b7e42d84c0f';
const ca = authority();
process.env.SSL_CERT_FILE = ca.file; // whom the daemon trusts
const names = await nameServer();
const { instance, api, finish } = await suite('secrets', { args: ['--resolver', `127.0.0.1:${names.port}`] });
const ps = new Processes(api);
const certificate = ca.sign(['DNS:api.test', 'DNS:*.wild.test']);

/** A server over TLS that answers with `serve`, or what it was asked; it remembers all heads. */
async function tlsServer(serve, identity = certificate) {
  const server = https.createServer(identity, (request, response) => {
    server.heads.push({ method: request.method, url: request.url, headers: request.headers, raw: request.rawHeaders, socket: request.socket });
    if (serve) serve(request, response);
    else response.end(`${request.method} ${request.url} ${request.headers.host}\n`);
  });
  server.heads = [];
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.port = server.address().port;
  return server;
}

const model = await tlsServer((request, response) => {
  if (request.url.startsWith('/v1/stream')) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: one\n\n');
    model.stream = response;
    return;
  }
  if (request.url.startsWith('/v1/move')) return response.writeHead(302, { location: `https://evil.test:${model.port}/` }).end();
  let bytes = 0;
  request.on('data', (chunk) => { bytes += chunk.length; });
  request.on('end', () => response.end(`${request.method} ${request.url} ${request.headers.host} ${bytes}\n`));
});
names.names = { 'api.test': '127.0.0.1', 'evil.test': '127.0.0.1', 'plain.test': '127.0.0.1', 'a.wild.test': '127.0.0.1' };

const set = (name, body, who = api) => who.request('PUT', `/v1/secrets/${name}`, { json: { value: KEY, ...body } });
const using = (secrets, rest = {}) => ({ network: { mode: 'none', secrets, ...rest } });
const url = (server, at = '') => `https://api.test:${server.port}${at}`;
const last = (server) => server.heads.at(-1);
const NO_PROXY = { http_proxy: '', HTTP_PROXY: '' };
/** Sends bytes as they are to model.internal, and gives back all that comes. */
const raw = async (id, bytes, port = 80) => (await api.exec(id, { argv: ['python3', '-c', `
import socket, sys
s = socket.create_connection(('model.internal', ${port}), 8)
s.settimeout(60)
s.sendall(sys.stdin.buffer.read())
data = b''
try:
    while True:
        more = s.recv(65536)
        if not more: break
        data += more
except OSError as e: data += b' ' + type(e).__name__.encode()
print(data.decode('latin1'))`], stdin: bytes, timeout_ms: 120_000 })).stdout;

assert.equal((await set('model', { url: url(model, '/v1') })).status, 200);

test('a sandbox without a network reaches the one server, and the key is added on the way', async () => {
  const { id } = await api.create(using(['model']));
  for (const env of [{}, NO_PROXY]) {
    const { stdout, stderr } = await api.exec(id, { command: 'curl -sS http://model.internal/chat?a=b', env });
    assert.equal(stdout, `GET /v1/chat?a=b api.test:${model.port} 0\n`, stderr);
    assert.equal(last(model).headers.authorization, `Bearer ${KEY}`);
  }
  const tunnelled = await api.exec(id, 'curl -sS -p http://model.internal/chat');
  assert.match(tunnelled.stdout, /^GET \/v1\/chat/, tunnelled.stderr);
  for (const other of ['http://api.test/', `https://api.test:${model.port}/`, 'http://evil.test/', 'http://other.internal/', 'http://model.internal:81/', 'https://model.internal/']) {
    assert.notEqual((await api.exec(id, `curl -sS -f -m 8 ${other}`)).exit_code, 0, other);
  }
});

test('nothing inside knows the key: environment, files, processes, what the API says of the sandbox', async () => {
  const { id } = await api.create(using(['model']));
  await api.exec(id, 'curl -sS http://model.internal/');
  const found = await api.exec(id, { command: `grep -rlsI ${KEY.slice(3)} /etc /home /tmp /workspace /run /proc/[0-9]*/environ 2>/dev/null | grep -v /proc/self; env`, user: 'root' });
  assert.doesNotMatch(found.stdout.replace(/.*_=.*/g, ''), new RegExp(KEY), found.stdout);
  api.secrets.push(KEY); // which no answer may contain from here on
  await api.get(id);
  await api.request('GET', `/v1/sandboxes/${id}/network`);
  await api.request('GET', '/v1/audit', { query: { limit: 1000 } });
  const { json } = await api.request('GET', '/v1/secrets');
  assert.deepEqual(Object.keys(json.secrets[0]).sort(), ['changed_at', 'header', 'name', 'prefix', 'url']);
  api.secrets.pop();
});

test('on the machine it is sealed: not in the database, the logs, or any command line; the key of it is private', async () => {
  const holders = [];
  const walk = (directory) => {
    for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
      const file = path.join(directory, entry.name);
      if (entry.isDirectory()) walk(file);
      else if (entry.isFile() && fs.readFileSync(file).includes(KEY)) holders.push(file);
    }
  };
  walk(path.join(instance.dataDir, 'state'));
  assert.deepEqual(holders, []);
  assert.ok(!instance.log().includes(KEY));
  assert.equal(fs.statSync(path.join(instance.dataDir, 'state/secrets.key')).mode & 0o777, 0o600);
  for (const pid of [instance.daemon.pid, instance.keeper.pid]) {
    for (const file of ['cmdline', 'environ']) assert.ok(!fs.readFileSync(`/proc/${pid}/${file}`).includes(KEY));
  }
});

test('what the sandbox sends in that field is replaced, in whatever spelling and however often', async () => {
  const { id } = await api.create(using(['model']));
  await api.exec(id, "curl -sS -H 'Authorization: Bearer own' -H 'AUTHORIZATION: x' -H 'X-Keep: y' http://model.internal/");
  const { raw: fields } = last(model);
  const values = fields.filter((_, i) => i % 2 === 1 && fields[i - 1].toLowerCase() === 'authorization');
  assert.deepEqual(values, [`Bearer ${KEY}`]);
  assert.equal(last(model).headers['x-keep'], 'y');
});

test('another field, another prefix', async () => {
  assert.equal((await set('other', { url: url(model), header: 'x-api-key' })).status, 200);
  assert.equal((await set('basic', { url: url(model), prefix: 'Basic ' })).status, 200);
  const { id } = await api.create(using(['other', 'basic']));
  await api.exec(id, "curl -sS -H 'Authorization: own' http://other.internal/");
  assert.equal(last(model).headers['x-api-key'], KEY);
  assert.equal(last(model).headers.authorization, 'own', 'other fields are its own business');
  await api.exec(id, 'curl -sS http://basic.internal/');
  assert.equal(last(model).headers.authorization, `Basic ${KEY}`);
});

test('a server that is plain HTTP gets it by its own name too, also from programs that know no proxy; others on the same address do not', async () => {
  const plain = await httpServer();
  assert.equal((await set('plain', { url: `http://plain.test:${plain.port}` })).status, 200);
  const { id } = await api.create(using(['plain'], { mode: 'allowlist', allow: ['evil.test', `127.0.0.1:${plain.port}`] }));
  for (const env of [{}, NO_PROXY]) {
    await api.exec(id, { command: `curl -sS http://plain.test:${plain.port}/x`, env });
    assert.equal(last(plain).headers.authorization, `Bearer ${KEY}`);
    await api.exec(id, { command: `curl -sS http://evil.test:${plain.port}/x`, env });
    assert.equal(last(plain).headers.host, `evil.test:${plain.port}`);
    assert.equal(last(plain).headers.authorization, undefined);
    await api.exec(id, { command: `curl -sS -H 'Host: plain.test:${plain.port}' http://evil.test:${plain.port}/x`, env });
    assert.equal(last(plain).headers.authorization, undefined, 'a Host that lies gets nothing');
  }
  plain.close();
});

test('the certificate must be good for the name: signed by somebody trusted, for that host', async () => {
  const strangers = authority();
  const forged = await tlsServer(null, strangers.sign(['DNS:api.test']));
  const elsewhere = await tlsServer(null, ca.sign(['DNS:evil.test']));
  const notTls = await tcpServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
  for (const [name, server] of [['forged', forged], ['elsewhere', elsewhere], ['nottls', notTls]]) {
    assert.equal((await set(name, { url: url(server) })).status, 200);
    const { id } = await api.create(using([name]));
    const { stdout } = await api.exec(id, `curl -sS -w '%{http_code}' http://${name}.internal/`);
    assert.match(stdout, /is not trusted: .*502$/s, name);
    assert.deepEqual(server.heads ?? [], []);
  }
  assert.equal((await set('wild', { url: `https://a.wild.test:${model.port}` })).status, 200);
  const { id } = await api.create(using(['wild']));
  assert.match(await api.out(id, 'curl -sS http://wild.internal/'), /^GET \//);
  for (const server of [forged, elsewhere, notTls]) server.close();
  strangers.remove();
});

test('SIGHUP reads again who may sign the certificates of servers', async () => {
  const strangers = authority();
  const server = await tlsServer(null, strangers.sign(['DNS:api.test']));
  assert.equal((await set('renewed', { url: url(server) })).status, 200);
  const { id } = await api.create(using(['renewed', 'model']));
  const ask = async (name) => (await api.exec(id, `curl -sS -o /dev/null -w '%{http_code}' http://${name}.internal/`)).stdout;
  const trust = (...pems) => {
    fs.writeFileSync(ca.file, pems.join(''));
    process.kill(instance.daemon.pid, 'SIGHUP');
  };
  assert.equal(await ask('renewed'), '502');
  trust(ca.pem, strangers.pem);
  await until(async () => (await ask('renewed')) === '200', { what: 'the new one is trusted' });
  assert.equal(await ask('model'), '200');
  trust(ca.pem);
  await until(async () => (await ask('renewed')) === '502', { what: 'it is not trusted any more' });
  assert.equal(await ask('model'), '200');
  server.close();
  strangers.remove();
});

test('an answer streams as it comes, and a large body goes through whole, with a length and in chunks', async () => {
  const { id } = await api.create(using(['model']));
  const { events } = await api.execStream(id, { command: 'curl -sSN http://model.internal/stream', timeout_ms: 120_000 });
  let text = '';
  for await (const event of events()) {
    text += event.data?.data ?? event.data?.text ?? '';
    if (text === 'data: one\n\n' && model.stream) {
      const { stream } = model;
      model.stream = null;
      stream.write('data: two\n\n', () => stream.end());
    }
  }
  assert.match(text, /^data: one\n\ndata: two\n\n/);
  const bytes = 40 << 20;
  assert.match(await api.out(id, `head -c ${bytes} /dev/zero | curl -sS --data-binary @- http://model.internal/up`), new RegExp(` ${bytes}\n$`));
  assert.match(await api.out(id, `head -c ${bytes} /dev/zero | curl -sS -T - http://model.internal/up`), new RegExp(`^PUT .* ${bytes}\n$`));
  assert.equal(last(model).headers['transfer-encoding'], 'chunked');
});

test('a connection is kept: many requests, one after the other or at once, over one to the server, each with the key', async () => {
  const { id } = await api.create(using(['model']));
  const before = model.heads.length;
  await api.exec(id, { command: 'curl -sS http://model.internal/1 http://model.internal/2 http://model.internal/3', env: NO_PROXY });
  const seen = model.heads.slice(before);
  assert.deepEqual(seen.map((head) => head.url), ['/v1/1', '/v1/2', '/v1/3']);
  assert.equal(new Set(seen.map((head) => head.socket)).size, 1);
  const piped = await raw(id, 'GET /4 HTTP/1.1\r\nHost: model.internal\r\n\r\nGET /5 HTTP/1.1\r\nHost: model.internal\r\nAuthorization: own\r\nConnection: close\r\n\r\n');
  assert.equal(piped.match(/HTTP\/1\.1 200/g).length, 2, piped);
  assert.ok(model.heads.slice(before).every((head) => head.headers.authorization === `Bearer ${KEY}`));
});

test('a program that asks the proxy for one server after the other gets each answer', async () => {
  const other = await httpServer();
  const { id } = await api.create(using(['model'], { mode: 'allowlist', allow: ['evil.test', `127.0.0.1:${other.port}`] }));
  const { stdout, stderr } = await api.exec(id, `curl -sS http://model.internal/1 http://evil.test:${other.port}/2 http://model.internal/3`);
  assert.equal(stdout, `GET /v1/1 api.test:${model.port} 0\nGET /2 evil.test:${other.port}\nGET /v1/3 api.test:${model.port} 0\n`, stderr);
  assert.equal(last(other).headers.authorization, undefined);
  other.close();
});

test('a redirect is not followed', async () => {
  const { id } = await api.create(using(['model']));
  const before = model.heads.length;
  assert.match((await api.exec(id, 'curl -sS -i http://model.internal/move')).stdout, /^HTTP\/1\.1 302/);
  assert.equal(model.heads.length, before + 1);
});

test('a hostile client gets the key sent nowhere else: other hosts, steps in paths, smuggled requests, garbage', async () => {
  const { id } = await api.create(using(['model']));
  const before = model.heads.length;
  const head = (first, ...fields) => [first, ...fields, '', ''].join('\r\n');
  const OWN = 'Host: model.internal';
  const attempts = {
    'absolute form of another host': [head(`GET http://evil.test:${model.port}/ HTTP/1.1`, OWN), /^HTTP\/1\.1 421/],
    'another Host': [head('GET / HTTP/1.1', 'Host: evil.test'), /^HTTP\/1\.1 421/],
    'another port': [head('GET / HTTP/1.1', 'Host: model.internal:8080'), /^HTTP\/1\.1 421/],
    'two Hosts': [head('GET / HTTP/1.1', OWN, 'Host: evil.test'), /^HTTP\/1\.1 421/],
    'no Host': [head('GET / HTTP/1.1'), /^HTTP\/1\.1 4/],
    'a user in the authority': [head('GET http://model.internal@evil.test/ HTTP/1.1', OWN), /^HTTP\/1\.1 4/],
    'CONNECT inside': [head('CONNECT evil.test:443 HTTP/1.1', OWN), /^HTTP\/1\.1 4/],
    'CONNECT of a path, with a body that is the next request': [head('CONNECT / HTTP/1.1', OWN, 'Content-Length: 64'), /^HTTP\/1\.1 405/],
    'TRACE, which shows the request': [head('TRACE / HTTP/1.1', OWN), /^HTTP\/1\.1 405/],
    'chunks and another coding': [`${head('POST / HTTP/1.1', OWN, 'Transfer-Encoding: chunked', 'Transfer-Encoding: x')}0\r\n\r\n`, /^HTTP\/1\.1 400/],
    'steps': [head('GET /../admin HTTP/1.1', OWN), /^HTTP\/1\.1 400/],
    'encoded steps': [head('GET /a/%2e%2E/%2e%2e/admin HTTP/1.1', OWN), /^HTTP\/1\.1 400/],
    'steps behind an encoded slash': [head('GET /a%2f..%2fadmin HTTP/1.1', OWN), /^HTTP\/1\.1 400/],
    'length and chunks': [`${head('POST / HTTP/1.1', OWN, 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n`, /^HTTP\/1\.1 400/],
    'two lengths': [`${head('POST / HTTP/1.1', OWN, 'Content-Length: 5', 'Content-Length: 6')}hello`, /^HTTP\/1\.1 400/],
    'a folded line': [head('GET / HTTP/1.1', OWN, 'X: a', ' Authorization: b'), /^HTTP\/1\.1 400/],
    'a bare line feed': [`GET / HTTP/1.1\r\n${OWN}\nX: y\r\n\r\n`, /^HTTP\/1\.1 400/],
    'a space before the colon': [head('GET / HTTP/1.1', OWN, 'Authorization : x'), /^HTTP\/1\.1 400/],
    'a huge head': [head('GET / HTTP/1.1', OWN, `X: ${'x'.repeat(60_000)}`), /^HTTP\/1\.1 431/],
    'another protocol': ['SSH-2.0-OpenSSH_9.2\r\n', /^(HTTP\/1\.1 400| ?\n?$| \w+Error)/],
    'HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^HTTP\/1\.1 (400|505)/],
  };
  for (const [what, [bytes, expected]] of Object.entries(attempts)) {
    if (what === 'another protocol') continue; // has no end of its own
    assert.match(await raw(id, bytes), expected, what);
  }
  const noise = await api.exec(id, `head -c 200000 /dev/urandom | timeout 90 python3 -c "
import socket,sys
s=socket.create_connection(('model.internal',80)); s.settimeout(60)
try:
    s.sendall(sys.stdin.buffer.read()); s.shutdown(1)
    while s.recv(65536): pass
except OSError: pass"`);
  assert.equal(noise.exit_code, 0, noise.stderr);
  assert.equal(model.heads.length, before, JSON.stringify(model.heads.slice(before).map((one) => one.url)));
  const body = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
  const honest = await raw(id, `${head('POST /honest HTTP/1.1', OWN, `Content-Length: ${body.length}`, 'Connection: close')}${body}`);
  assert.match(honest, new RegExp(` ${body.length}\n`));
  assert.deepEqual(model.heads.slice(before).map((one) => one.url), ['/v1/honest']);
});

test('a server whose name leads nowhere is named', async () => {
  assert.equal((await set('lost', { url: 'http://nowhere.test:80' })).status, 200);
  const { id } = await api.create(using(['lost']));
  assert.equal(await api.out(id, 'curl -sS http://lost.internal/'), 'sandlot: the name nowhere.test cannot be resolved\n');
});

test('a hostile server: answers that are none, two lengths, a body that never ends, an end in the middle', async () => {
  const replies = {
    garbage: 'hello\r\n\r\n',
    lengths: 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    switching: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
    nothing: '',
  };
  for (const [name, reply] of Object.entries(replies)) {
    const server = await tcpServer((socket) => socket.once('data', () => socket.end(reply)));
    assert.equal((await set(name, { url: `http://plain.test:${server.port}` })).status, 200);
    const { id } = await api.create(using([name]));
    const { stdout } = await api.exec(id, `curl -sS -m 8 -o /dev/null -w '%{http_code}' http://${name}.internal/`);
    assert.equal(stdout, '502', name);
    server.close();
  }
  const short = await tcpServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')));
  assert.equal((await set('short', { url: `http://plain.test:${short.port}` })).status, 200);
  const { id } = await api.create(using(['short']));
  assert.notEqual((await api.exec(id, 'curl -sS -m 8 http://short.internal/')).exit_code, 0, 'half an answer is not taken for a whole one');
  short.close();
  const endless = await tcpServer((socket) => { socket.write('HTTP/1.1 200 OK\r\n\r\n'); const push = () => { while (socket.write(Buffer.alloc(1 << 16))); }; socket.on('drain', push); push(); });
  assert.equal((await set('endless', { url: `http://plain.test:${endless.port}` })).status, 200);
  const { id: slow } = await api.create(using(['endless']));
  await api.tryExec(slow, { argv: ['python3', '-c', `import socket, time
s = socket.create_connection(('endless.internal', 80), 20)
s.sendall(b'GET / HTTP/1.1\\r\\nHost: endless.internal\\r\\n\\r\\n')
time.sleep(600)`], background: true });
  let before = -1;
  await until(async () => {
    const now = (await api.request('GET', `/v1/sandboxes/${slow}/network`)).json.rx_bytes;
    const rests = now > 0 && now === before;
    before = now;
    return rests;
  }, { every: 300, what: 'the server waits for its reader' });
  assert.ok(before < 32 << 20, `${before} bytes were taken in`);
  await api.purge(slow);
  endless.close();
  for (const socket of endless.sockets) socket.destroy();
});

test('a client that leaves before it was answered is gone for the server too', async () => {
  const silent = await tcpServer((socket) => socket.once('data', () => socket.write('HTTP/1.1 100 Continue\r\n\r\n')));
  assert.equal((await set('silent', { url: `http://plain.test:${silent.port}` })).status, 200);
  const { id } = await api.create(using(['silent']));
  // Something stays unread, so that closing tears the connection.
  const left = await api.exec(id, { argv: ['python3', '-c', `import socket
s = socket.create_connection(('silent.internal', 80), 20)
s.sendall(b'GET / HTTP/1.1\\r\\nHost: silent.internal\\r\\n\\r\\n')
s.recv(1)`], timeout_ms: 120_000 });
  assert.equal(left.exit_code, 0, left.stderr);
  assert.equal(silent.served, 1);
  await until(() => silent.sockets.size === 0, { what: 'the server is left alone' });
  silent.close();
});

test('another value acts on the next request, also on a kept connection; another server asks for a new one; none is none', async () => {
  assert.equal((await set('turn', { url: url(model) })).status, 200);
  const { id } = await api.create(using(['turn']));
  const process = await ps.start(id, { argv: ['python3', '-u', '-c', `
import http.client, sys
c = http.client.HTTPConnection('turn.internal', timeout=60)
for line in sys.stdin:
    try:
        c.request('GET', '/' + line.strip()); r = c.getresponse(); r.read(); print(line.strip(), r.status)
    except Exception as e: print(line.strip(), type(e).__name__)
`], stdin_open: true });
  const say = async (line) => {
    const written = await api.request('POST', ps.path(id, process.id, '/stdin'), { json: { data: `${line}\n` } });
    assert.equal(written.status, 204, written.text);
    const pattern = new RegExp(`${line} (\\w+)\n`);
    return until(async () => pattern.exec((await ps.read(id, process.id, { follow: false })).stdout)?.[1], { what: `an answer to ${line}` });
  };
  assert.equal(await say('first'), '200');
  assert.equal((await set('turn', { url: url(model), value: 'another-value' })).status, 200);
  assert.equal(await say('second'), '200');
  assert.equal(last(model).headers.authorization, 'Bearer another-value');
  assert.equal(last(model).socket, model.heads.at(-2).socket, 'on the same connection');
  const server = await tlsServer();
  assert.equal((await set('turn', { url: url(server) })).status, 200);
  assert.equal(await say('third'), '421');
  assert.equal(await say('fourth'), '200');
  assert.equal(last(server).url, '/fourth');
  assert.equal((await api.request('DELETE', '/v1/secrets/turn')).status, 204);
  assert.equal(await say('fifth'), '421');
  assert.notEqual(await say('sixth'), '200');
  assert.equal(server.heads.length, 1);
  server.close();
  await api.purge(id);
});

test('a change of policy takes a secret away at once, and gives one', async () => {
  const { id } = await api.create(using(['model']));
  const open = await api.tryExec(id, { command: 'curl -sSN http://model.internal/stream > /tmp/seen; echo $? > /tmp/end', background: true });
  assert.equal(open.status, 201);
  await until(async () => (await api.exec(id, 'cat /tmp/seen')).stdout.includes('one'), { what: 'the stream is open' });
  await api.patch(id, { network: { mode: 'none' } });
  await until(async () => /^[1-9]/.test((await api.exec(id, 'cat /tmp/end')).stdout), { what: 'the stream is cut' });
  assert.notEqual((await api.exec(id, 'curl -sS -m 8 http://model.internal/')).exit_code, 0);
  await api.patch(id, { network: { mode: 'none', secrets: ['model'] } });
  assert.match(await api.out(id, 'curl -sS http://model.internal/'), /^GET/);
});

test('they outlive the daemon, and one whose row was changed does not open', async () => {
  const { id } = await api.create(using(['model', 'other']));
  const { port } = api;
  await instance.crash();
  const { DatabaseSync } = await import('node:sqlite').catch(() => ({}));
  const database = path.join(instance.dataDir, 'state/sandlot.db');
  const statement = `UPDATE secrets SET url = 'https://evil.test:${model.port}' WHERE name = 'other'`;
  if (DatabaseSync) new DatabaseSync(database).exec(statement);
  else (await import('node:child_process')).execFileSync('sqlite3', [database, statement]);
  await instance.start(['--api-bind', `127.0.0.1:${port}`]);
  assert.match(await api.out(id, 'curl -sS http://model.internal/'), /^GET/);
  const before = model.heads.length;
  assert.notEqual((await api.exec(id, 'curl -sS -f -m 8 http://other.internal/')).exit_code, 0);
  assert.equal(model.heads.length, before);
  assert.match(instance.log(), /the secret other of default\/admin does not open/);
  assert.equal((await set('other', { url: url(model) })).status, 200);
  assert.match(await api.out(id, 'curl -sS http://other.internal/'), /^GET/);
});

test('each owner has secrets of their own, and nobody uses those of others', async () => {
  const alice = await ownerApi(api, 'acme', 'alice');
  const bob = await ownerApi(api, 'acme', 'bob');
  assert.equal(assertError(await alice.request('POST', '/v1/sandboxes', { json: using(['model']) }), 400).code, 'secret_not_found');
  assert.equal((await set('mine', { url: 'https://api.test' }, alice)).status, 200);
  assert.equal(assertError(await bob.request('POST', '/v1/sandboxes', { json: using(['mine']) }), 400).code, 'secret_not_found');
  assert.equal(assertError(await bob.request('DELETE', '/v1/secrets/mine'), 404).code, 'secret_not_found');
  assert.deepEqual((await bob.request('GET', '/v1/secrets')).json.secrets, []);
  assert.deepEqual((await alice.request('GET', '/v1/secrets')).json.secrets.map((one) => one.name), ['mine']);
  alice.disconnect();
  bob.disconnect();
});

test('only a server that an administrator named may have an address that is not public', async () => {
  const alice = await ownerApi(api, 'acme', 'alice');
  assert.equal(assertError(await set('lan', { url: 'http://10.0.0.5:8000' }, alice), 403).code, 'private_address');
  const plain = await httpServer();
  assert.equal((await set('lan', { url: `http://plain.test:${plain.port}` }, alice)).status, 200, 'what a name leads to is not known yet');
  const { id } = await alice.create(using(['lan']));
  assert.match((await alice.exec(id, 'curl -sS http://lan.internal/')).stdout, /not allowed \(private_address\)/);
  assert.equal(plain.heads.length, 0);
  plain.close();
  await alice.purge(id);
  alice.disconnect();
});

test('what cannot be a secret is refused by name, without showing it', async () => {
  const good = { value: 'v', url: 'https://api.test' };
  const bad = {
    value: ['', 'a\r\nX: y', 'a\nb', 'a\0b', 'é', ' a', 'a ', 'x'.repeat(8193), 7, null],
    url: ['', 'ftp://api.test', 'api.test', 'https://', 'https://u@api.test', 'https://api.test?x', 'https://api.test#x', 'https://api.test/a/../b', 'https://api.test:0', 'https://api.test:70000', 'https://0x7f.1', 'https://a b', 'https://api.test\r\nX: y'],
    header: ['', 'a b', 'a:', 'Host', 'content-length', 'Transfer-Encoding', 'connection', 'x\r\ny', 'x'.repeat(64)],
    prefix: ['a\nb', ' x', 'x'.repeat(32)],
    unknown: [1],
  };
  for (const [field, values] of Object.entries(bad)) {
    for (const value of values) {
      const answer = await api.request('PUT', '/v1/secrets/bad', { json: { ...good, [field]: value } });
      assert.equal(answer.status, 400, `${field} ${JSON.stringify(value)}: ${answer.text}`);
      if (!JSON.stringify(value).includes('u0000')) assert.match(answer.json.error.message, new RegExp(field));
      assert.doesNotMatch(answer.json.error.message, /X: y/);
    }
  }
  const broken = await api.request('PUT', '/v1/secrets/bad', { body: `{"value":"${KEY}\\q"}`, headers: { 'content-type': 'application/json' } });
  assert.equal(broken.status, 400);
  assert.ok(!broken.text.includes(KEY), broken.text);
  for (const name of ['UP', 'a.b', '-a', 'a-', 'a_b', 'x'.repeat(64), '%0a']) {
    assert.equal((await set(name, good)).status, 400, name);
  }
  assert.ok((await api.request('GET', '/v1/secrets')).json.secrets.every((one) => one.name !== 'bad'));
  for (const secrets of [['UP'], ['nosuch'], [7], Array(17).fill('model'), 'model']) {
    assert.equal((await api.request('POST', '/v1/sandboxes', { json: using(secrets) })).status, 400, JSON.stringify(secrets));
  }
});

test('sandlot secret sets from standard input, lists and removes; create and egress take --secret', async () => {
  const { ok, sandlot, created } = commandLine(instance);
  assert.equal((await sandlot(['secret', 'set', 'cli', '--server', url(model)], { input: `${KEY}\n` })).code, 0);
  assert.match(await ok(['secret', 'ls']), new RegExp(`^cli +https://api\\.test:${model.port} +Authorization`, 'm'));
  const id = await created('--network', 'none', '--secret', 'cli');
  assert.match(await api.out(id, 'curl -sS http://cli.internal/'), /^GET/);
  assert.equal(last(model).headers.authorization, `Bearer ${KEY}`, 'without the end of the line');
  assert.match(await ok(['egress', id]), /^mode +none\nsecrets +cli$/m);
  const changed = await ok(['egress', id, '--secret', 'model']);
  assert.match(changed, /^mode +none\nsecrets +cli\n +model$/m, 'it adds, and what is not named stays');
  assert.equal(await ok(['secret', 'rm', 'cli']), 'cli\n');
  const none = await sandlot(['secret', 'set', 'cli', '--server', url(model)], { input: '' });
  assert.match(none.stderr, /standard input/);
  assert.match((await sandlot(['secret', 'set', 'cli'], { input: 'x' })).stderr, /--server/);
});

test('the outside world closes', () => {
  model.close();
  model.closeAllConnections();
  names.close();
  ca.remove();
});

finish();
