// SPDX-License-Identifier: Apache-2.0
// TLS on both listeners: that everything passes through it as it does without, that certificates are exchanged under
// open connections, and what becomes of clients that are slow, plain, rude or many.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';

import { authority, lend } from './lib/certificates.mjs';
import { commandLine } from './lib/cli.mjs';
import { Instance } from './lib/instance.mjs';
import { Previews } from './lib/preview.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { Terminal } from './lib/terminal.mjs';
import { until, within } from './lib/wait.mjs';

const ca = authority();
process.on('exit', ca.remove);
const NAMES = ['IP:127.0.0.1', 'DNS:localhost', 'DNS:*.preview.localhost'];
const issue = (subject, options) => ca.issue(subject, NAMES, options);
const first = issue('first');
const files = { certificate: ca.inside('certificate.pem'), key: ca.inside('key.pem') };

/** Puts a certificate where the daemon looks for it. */
function install({ certificate, key }) {
  fs.copyFileSync(certificate, files.certificate);
  fs.copyFileSync(key, files.key);
  lend(files.key);
}

install(first);
const withTls = ['--tls-certificate', files.certificate, '--tls-key', files.key];
const { instance, api, finish } = await suite('tls', { args: withTls, tls: { ca: ca.pem } });
const { sandlot, start, ok } = commandLine(instance);

const APP = `
const http = require('http'), crypto = require('crypto');
const server = http.createServer((req, res) => {
  if (req.url === '/echo') {
    const hash = crypto.createHash('sha256'); let bytes = 0;
    req.on('data', (d) => { hash.update(d); bytes += d.length; });
    req.on('end', () => res.end(JSON.stringify({ bytes, sha: hash.digest('hex'), headers: req.headers })));
  } else if (req.url === '/big') {
    const block = Buffer.alloc(65536, 'b'); let left = ${32 << 20};
    const more = () => { while (left > 0) { left -= block.length; if (!res.write(block)) return res.once('drain', more); } res.end(); };
    more();
  } else res.end('hello');
});
server.on('upgrade', (req, socket) => {
  const accept = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
  socket.pipe(socket);
});
server.listen(3000, '127.0.0.1');
`;

const sandbox = await api.create({ ports: [3000] });
const { id } = sandbox;
const previews = new Previews(api, sandbox);
await api.put(id, '/tmp/app.js', APP);
await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { argv: ['node', '/tmp/app.js'], background: true } });
await until(async () => (await previews.request(3000, '/')).text === 'hello', { what: 'the app answers' });

const sha = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');
const descriptors = () => proc.descriptorNames(instance.daemon.pid).length;

/** A TLS connection to a listener; options: those of node's. */
async function dial(port = api.port, options = {}) {
  const socket = tls.connect({ host: '127.0.0.1', port, ca: ca.pem, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

/** All that comes until the connection ends. */
function drain(socket) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

const readyz = (fields = '') => `GET /readyz HTTP/1.1\r\nHost: localhost:${api.port}\r\n${fields}\r\n`;

async function answers(socket) {
  socket.write(readyz());
  const [chunk] = await within('an answer', once(socket, 'data'));
  return chunk.toString();
}

async function refusesHandshake(options) {
  const socket = tls.connect({ host: '127.0.0.1', port: api.port, ca: ca.pem, ...options });
  const [error] = await once(socket, 'error');
  return error.message;
}

// What is said about it -----------------------------------------------------------------------------

test('all addresses that are given out say https', async () => {
  assert.match(sandbox.previews['3000'], /^https:\/\/s-/);
  assert.match(fs.readFileSync(path.join(instance.dataDir, 'run/api.addr'), 'utf8'), /^https:\/\/127\.0\.0\.1:\d+ sha256\/\/[\w+/]{43}=\n$/);
  const link = await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: {} });
  assert.match(link.json.url, /^https:\/\/s-/);
  const opened = await previews.request(3000, `/${new URL(link.json.url).search}`, { token: false });
  assert.equal(opened.status, 302);
  const [cookie] = opened.headers['set-cookie'];
  assert.match(cookie, /^__Host-sandlot_preview=slp_[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/, 'which no neighbouring name can set');
  const [pair] = cookie.split(';');
  assert.equal((await previews.request(3000, '/', { token: false, headers: { cookie: pair } })).text, 'hello');
  assert.ok(!JSON.stringify((await previews.request(3000, '/echo', { token: false, headers: { cookie: pair } })).json).includes('slp_'), 'it does not reach the app');
  assert.equal((await previews.request(3000, '/', { token: false, headers: { cookie: pair.replace('__Host-', '') } })).status, 401);
  assert.match(instance.log(), /serves https:\/\//);
});

test('an app learns that its visitors came by https, and the browser that this name is always so', async () => {
  const answer = await previews.request(3000, '/echo', { headers: { 'x-forwarded-proto': 'http', origin: `https://${previews.host(3000)}` } });
  assert.equal(answer.json.headers['x-forwarded-proto'], 'https');
  assert.equal(answer.json.headers['x-forwarded-for'], '127.0.0.1');
  assert.equal(answer.json.headers.origin, 'http://localhost:3000');
  assert.equal(answer.headers['strict-transport-security'], 'max-age=86400');
});

test('a page of the same origin is one that came by https', async () => {
  const ask = (origin) => api.request('GET', '/v1/sandboxes', { headers: { origin } });
  assert.equal((await ask(`https://127.0.0.1:${api.port}`)).status, 200);
  assert.equal((await ask(`http://127.0.0.1:${api.port}`)).status, 403);
  const link = await api.request('POST', `/v1/sandboxes/${id}/ports/3000/links`, { json: {} });
  const [cookie] = (await previews.request(3000, `/${new URL(link.json.url).search}`, { token: false })).headers['set-cookie'];
  const visit = (scheme) => previews.request(3000, '/', { token: false, headers: { cookie: cookie.split(';')[0], origin: `${scheme}://${previews.host(3000)}` } });
  assert.equal((await visit('https')).status, 200);
  assert.equal((await visit('http')).status, 403);
});

test('the audit log names the address of the client, and not the relay', async () => {
  const made = await api.request('POST', '/v1/sandboxes', { json: {}, agent: api.newAgent({ localAddress: '127.0.0.9' }) });
  assert.equal(made.status, 201);
  const entry = await until(async () => {
    const { entries } = (await api.request('GET', '/v1/audit', { query: { limit: 100 } })).json;
    return entries.find((each) => each.action === 'sandbox.create' && each.from === '127.0.0.9');
  }, { what: 'the entry' });
  assert.equal(entry.object, made.json.id);
});

// What is spoken -------------------------------------------------------------------------------------

test('TLS 1.2 and 1.3 are spoken with HTTP/1.1, and nothing older', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    const socket = await dial(api.port, { minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] });
    assert.equal(socket.getProtocol(), version);
    assert.equal(socket.alpnProtocol, 'http/1.1');
    assert.match(await answers(socket), /^HTTP\/1\.1 200/);
    socket.destroy();
  }
  assert.match(await refusesHandshake({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }), /protocol version|unsupported protocol/);
  assert.match(await refusesHandshake({ ALPNProtocols: ['h2'] }), /no application protocol/);
});

test('a client that has not heard of the authority does not go on', async () => {
  assert.match(await refusesHandshake({ ca: [] }), /self-signed|unable to (get|verify)/);
});

test('renegotiation is refused', async () => {
  const socket = await dial(api.port, { maxVersion: 'TLSv1.2' });
  const refused = new Promise((resolve) => { socket.on('error', resolve); socket.on('close', () => resolve()); });
  socket.renegotiate({ rejectUnauthorized: false }, (error) => { if (error) socket.destroy(error); });
  socket.write(readyz());
  const error = await within('an end of it', refused);
  assert.match(String(error?.message), /renegotiation/i);
});

test('who speaks plain HTTP is told so, on both listeners', async () => {
  for (const port of [api.port, previews.port]) {
    const socket = net.connect(port, '127.0.0.1');
    socket.write(readyz());
    assert.match(await drain(socket), /^HTTP\/1\.1 400 .*"https_only"/s);
  }
});

test('garbage instead of a handshake ends the connection', async () => {
  for (const bytes of [crypto.randomBytes(5000), Buffer.alloc(70_000, 0x16), Buffer.from([0x16, 3, 1, 0xff, 0xff]), Buffer.from('\0')]) {
    const socket = net.connect(api.port, '127.0.0.1');
    socket.end(bytes);
    await within(`an end after ${bytes.length} bytes`, drain(socket).catch(() => ''));
  }
  const honest = await dial();
  assert.match(await answers(honest), /200/);
  honest.destroy();
});

// Which server is meant ------------------------------------------------------------------------------

/** An answer of known length, once all of it is there. */
function parse(text) {
  const [head, body = ''] = text.split('\r\n\r\n');
  const field = (name) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1];
  return body.length >= Number(field('content-length')) && { status: Number(head.split(' ')[1]), type: field('content-type'), body };
}

/** The answers to requests on one TLS connection, whose handshake asks for a server, or ('') for none. */
async function ask(port, servername, requests) {
  const socket = await dial(port, { servername, checkServerIdentity: () => undefined });
  let text;
  socket.on('data', (chunk) => { text += chunk; });
  const answers = [];
  for (const [host, more = ''] of requests) {
    text = '';
    socket.write(`GET ${port === api.port ? '/readyz' : '/'} HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${api.token}\r\n${more}\r\n`);
    answers.push(await until(() => parse(text), { what: `an answer for ${host}` }));
  }
  socket.destroy();
  return answers;
}

test('a request for another server than the handshake asked for is 421, each one of a connection, on both listeners', async () => {
  const [own] = previews.host(3000).split(':');
  const statuses = async (...args) => (await ask(...args)).map(({ status }) => status);
  assert.deepEqual(await statuses(api.port, 'localhost', [[`localhost:${api.port}`], [`LOCALHOST:${api.port}`], [`127.0.0.1:${api.port}`]]), [200, 200, 421]);
  assert.deepEqual(await statuses(api.port, 'other.test', [[`localhost:${api.port}`]]), [421]);
  assert.deepEqual(await statuses(previews.port, own, [[previews.host(3000)], [previews.host(3000).toUpperCase()], [previews.host(3001)]]), [200, 200, 421]);
  assert.deepEqual(await statuses(previews.port, own.toUpperCase(), [[previews.host(3000)]]), [200]);
  assert.deepEqual(await statuses(previews.port, 'localhost', [[previews.host(3000)]]), [421]);
  // Who has only an address asks for none.
  assert.deepEqual(await statuses(api.port, '', [[`localhost:${api.port}`], [`127.0.0.1:${api.port}`]]), [200, 200]);
  assert.deepEqual(await statuses(previews.port, '', [[previews.host(3000)]]), [200]);
});

test('it says so in JSON, and to browsers with a page', async () => {
  for (const [port, host] of [[api.port, `localhost:${api.port}`], [previews.port, previews.host(3000)]]) {
    const [{ status, type, body }] = await ask(port, 'other.test', [[host]]);
    assert.deepEqual([status, type], [421, 'application/json']);
    assert.equal(JSON.parse(body).error.code, 'server_name_mismatch');
  }
  const [{ type, body }] = await ask(previews.port, 'other.test', [[previews.host(3000), 'Accept: text/html\r\n']]);
  assert.match(type, /^text\/html/);
  assert.match(body, /This connection is for another name/);
});

// What passes ---------------------------------------------------------------------------------------

test('files pass in both directions, byte for byte', async () => {
  const bytes = crypto.randomBytes(32 << 20);
  await api.put(id, '/workspace/big', bytes);
  assert.equal(sha(await api.read(id, '/workspace/big')), sha(bytes));
  await api.exec(id, 'rm /workspace/big');
});

test('bodies pass through a preview in both directions', async () => {
  const bytes = crypto.randomBytes(32 << 20);
  const sent = await previews.request(3000, '/echo', { method: 'POST', body: bytes });
  assert.deepEqual([sent.json.bytes, sent.json.sha], [bytes.length, sha(bytes)]);
  const got = await previews.request(3000, '/big');
  assert.equal(got.body.length, 32 << 20);
});

test('a client that reads slowly slows the app down and gets all of it', async () => {
  const socket = await dial(previews.port, { servername: previews.host(3000).split(':')[0] });
  socket.pause();
  socket.write(`GET /big HTTP/1.1\r\nHost: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\nConnection: close\r\n\r\n`);
  const memory = () => Number(proc.statusField(instance.daemon.pid, 'VmRSS').split(' ')[0]);
  await until(() => socket.readableLength > 0, { what: 'the answer begins' });
  const before = memory();
  let last = -1;
  await until(() => { const now = socket.bytesRead; const still = now === last; last = now; return still; }, { every: 300, what: 'it stands still' });
  assert.ok(socket.bytesRead < 16 << 20, `the app was held back: ${socket.bytesRead}`);
  assert.ok(memory() - before < 8 << 10, `the daemon holds little: ${memory() - before} KiB more`);
  let bytes = 0;
  socket.on('data', (chunk) => { bytes += chunk.length; });
  socket.resume();
  await within('the rest', once(socket, 'close'));
  assert.ok(bytes >= 32 << 20, `all came: ${bytes}`);
});

test('a terminal, and what is typed and shown in it', async () => {
  const terminal = await Terminal.open(api, id);
  terminal.line('echo $((6*7))-shown');
  await until(() => terminal.text.includes('42-shown'), { what: 'the echo' });
  terminal.line('head -c 3000000 /dev/zero | base64 -w 0; echo; echo all-$((1+1))');
  await until(() => terminal.text.includes('all-2'), { what: 'four megabytes' });
  terminal.line('exit');
  assert.equal((await terminal.closed).code, 1000);
});

test('a WebSocket through a preview', async () => {
  const socket = await dial(previews.port, { servername: previews.host(3000).split(':')[0] });
  socket.write(`GET /ws HTTP/1.1\r\nHost: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${crypto.randomBytes(16).toString('base64')}\r\n\r\n`);
  let seen = '';
  socket.on('data', (chunk) => { seen += chunk.toString('latin1'); });
  await until(() => /^HTTP\/1\.1 101 .*\r\n\r\n/s.test(seen), { what: 'the upgrade' });
  socket.write('\x81\x05hello');
  await until(() => seen.endsWith('\x81\x05hello'), { what: 'the echo' });
  socket.destroy();
});

test('events come as they happen, and a client that leaves ends its command', async () => {
  const stream = await api.execStream(id, 'echo one; sleep 1; echo two; sleep 3600.5');
  const seen = [];
  for await (const event of stream.events()) {
    seen.push(event.event);
    if (JSON.stringify(event.data).includes('two')) break;
  }
  assert.ok(seen.length >= 3, JSON.stringify(seen));
  stream.close();
  await until(async () => !(await api.processes(id)).some((line) => line.includes('3600.5')), { what: 'the command ends' });
});

// How it ends ---------------------------------------------------------------------------------------

test('an answer that closes the connection ends with close_notify, so that nobody takes a cut for an end', () => {
  const script = `
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
sock = context.wrap_socket(socket.create_connection(('127.0.0.1', int(sys.argv[1]))), server_hostname='localhost', suppress_ragged_eofs=False)
sock.sendall(b'GET /readyz HTTP/1.1\\r\\nHost: localhost:%d\\r\\nConnection: close\\r\\n\\r\\n' % int(sys.argv[1]))
answer = b''
while True:
    part = sock.recv(65536)
    if not part: break
    answer += part
print(answer.decode())
`;
  assert.match(execFileSync('python3', ['-c', script, String(api.port), ca.file]).toString(), /^HTTP\/1\.1 200/);
});

test('a client that only ends its sending counts as gone, as without TLS', async () => {
  const socket = await dial(api.port, { allowHalfOpen: true });
  const ended = drain(socket);
  socket.write(`POST /v1/sandboxes/${id}/exec HTTP/1.1\r\nHost: localhost:${api.port}\r\nAuthorization: Bearer ${api.token}\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{"command":"sleep 3600.25"} `);
  await until(async () => (await api.processes(id)).some((line) => line.includes('3600.25')), { what: 'the command runs' });
  socket.end();
  await until(async () => !(await api.processes(id)).some((line) => line.includes('3600.25')), { what: 'the command ends' });
  await within('the connection ends', ended);
});

test('a client that stops in the middle of a handshake is cut, and so is one that says nothing', async () => {
  const silent = net.connect(api.port, '127.0.0.1');
  const half = net.connect(previews.port, '127.0.0.1');
  const ends = [silent, half].map((socket) => drain(socket).catch(() => ''));
  half.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0]));
  await within('both are cut', Promise.all(ends));
});

test('a client that sends its headers byte by byte is cut', async () => {
  const socket = await dial();
  const ended = drain(socket).catch(() => '');
  const bytes = [...readyz(`X-Long: ${'a'.repeat(1000)}\r\n`)];
  const timer = setInterval(() => { if (bytes.length && socket.writable) socket.write(bytes.shift()); }, 500);
  await within('it is cut', ended);
  clearInterval(timer);
});

test('two hundred connections are served at once and leave nothing', async () => {
  api.disconnect();
  let before = 0;
  await until(() => { const now = descriptors(); const still = now === before; before = now; return still; }, { every: 200, what: 'nothing comes or goes' });
  const plain = Array.from({ length: 200 }, (_, i) => net.connect(i % 2 ? api.port : previews.port, '127.0.0.1'));
  const sockets = await Promise.all(plain.map((socket) => dial(0, { socket })));
  assert.ok(descriptors() >= before + 600 - 50, 'they are all there');
  const texts = await Promise.all(sockets.map((socket, i) => {
    if (i % 2) return answers(socket);
    socket.write(`GET / HTTP/1.1\r\nHost: ${previews.host(3000)}\r\nX-API-Key: ${api.token}\r\n\r\n`);
    return once(socket, 'data').then(([chunk]) => chunk.toString());
  }));
  assert.ok(texts.every((text) => text.startsWith('HTTP/1.1 200')), texts.find((text) => !text.startsWith('HTTP/1.1 200')));
  for (const socket of sockets) socket.on('error', () => {});
  sockets.forEach((socket, i) => (i % 3 ? socket.end() : plain[i].resetAndDestroy()));
  await until(() => descriptors() <= before, { what: 'the descriptors are back' });
});

// Other clients --------------------------------------------------------------------------------------

test('curl and openssl get along with it', () => {
  const run = (file, args, input) => execFileSync(file, args, { input, stdio: ['pipe', 'pipe', 'pipe'] }).toString();
  const name = `s-${id}-3000.preview.localhost`;
  assert.equal(run('curl', ['-sS', '--cacert', ca.file, '--resolve', `${name}:${previews.port}:127.0.0.1`, '-H', `X-API-Key: ${api.token}`, `https://${name}:${previews.port}/`]), 'hello');
  const said = run('openssl', ['s_client', '-connect', `127.0.0.1:${api.port}`, '-servername', 'localhost', '-CAfile', ca.file, '-verify_return_error', '-quiet'], readyz('Connection: close\r\n'));
  assert.match(said, /^HTTP\/1\.1 200/);
});

test('the command line knows the daemon of its machine by its socket, and others by their authority', async () => {
  const local = { env: { SANDLOT_DATA_DIR: instance.dataDir } };
  assert.equal(await ok(['exec', id, '--', 'echo', 'by socket'], local), 'by socket\n');
  const url = { SANDLOT_URL: `https://localhost:${api.port}`, SANDLOT_TOKEN: api.token };
  assert.equal(await ok(['exec', id, '--', 'echo', 'by name'], { env: { ...url, SANDLOT_CA_FILE: ca.file } }), 'by name\n');
  assert.equal(await ok(['--ca-file', ca.file, 'exec', id, '--', 'echo', 'by option'], { env: url }), 'by option\n');
  const stranger = await sandlot(['ls'], { env: url });
  assert.notEqual(stranger.code, 0);
  assert.match(stranger.stderr, /certificate of the daemon at https:\/\/localhost:\d+ cannot be trusted.*--ca-file or SANDLOT_CA_FILE/s);
  const wrong = await sandlot(['ls'], { env: { ...url, SANDLOT_CA_FILE: '/nowhere' } });
  assert.match(wrong.stderr, /\/nowhere cannot be used/);
  assert.match(await ok(['open', id, '3000'], local), /^https:\/\/s-/);
});

// New certificates -----------------------------------------------------------------------------------

const subject = async (port) => {
  const socket = await dial(port);
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
};

async function reload(message) {
  const from = instance.log().length;
  process.kill(instance.daemon.pid, 'SIGHUP');
  await until(() => message.test(instance.log().slice(from)), { what: `the log says ${message}` });
}

test('SIGHUP shows new clients the new certificate, and open connections go on', async () => {
  const open = await dial();
  const terminal = await Terminal.open(api, id);
  assert.match(await answers(open), /200/);
  install(issue('second', { key: ['-newkey', 'rsa:2048', '-nodes'] }));
  await reload(/read again.*read again/s);
  assert.deepEqual([await subject(api.port), await subject(previews.port)], ['second', 'second']);
  assert.equal(open.getPeerCertificate().subject.CN, 'first');
  assert.match(await answers(open), /200/);
  open.destroy();
  terminal.line('echo still-$((1+1)); exit');
  await until(() => terminal.text.includes('still-2'), { what: 'the terminal goes on' });
  assert.equal((await terminal.closed).code, 1000);
  await until(() => fs.readFileSync(path.join(instance.dataDir, 'run/api.addr'), 'utf8').includes('sha256'));
  assert.equal(await ok(['exec', id, '--', 'echo', 'new key'], { env: { SANDLOT_DATA_DIR: instance.dataDir } }), 'new key\n');
});

test('a command that lasts goes on when the daemon has a new key', async () => {
  const child = start(['port-forward', id, '0:3000'], { env: { SANDLOT_DATA_DIR: instance.dataDir } });
  const [, port] = await until(() => /^127\.0\.0\.1:(\d+) -> port 3000$/m.exec(child.shown()), { what: 'it listens' });
  const visit = () => fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(10_000) }).then((answer) => answer.text()).catch((error) => `${error.cause ?? error}; ${child.said}`);
  assert.equal(await visit(), 'hello');
  install(issue('another'));
  await reload(/read again.*read again/s);
  await until(async () => (await visit()) === 'hello', { what: 'a connection with the new key' });
  child.kill('SIGTERM');
  await child.result;
  install(issue('second'));
  await reload(/read again.*read again/s);
});

test('a new certificate that cannot be used is named with the reason, and the old one stays', async () => {
  const third = issue('third');
  const bad = [
    [() => fs.writeFileSync(files.certificate, 'no certificate'), /the certificate in use stays: .*certificate\.pem does not hold a certificate/],
    [() => fs.copyFileSync(third.certificate, files.certificate), /key\.pem is not that of the certificate in .*certificate\.pem/],
    [() => fs.rmSync(files.key), /open the key in .*key\.pem: No such file/],
    [() => { install(third); fs.chmodSync(files.key, 0o644); }, /key\.pem is open to others \(mode 644\).*chmod 640/],
  ];
  for (const [spoil, message] of bad) {
    spoil();
    await reload(message);
    assert.deepEqual([await subject(api.port), await subject(previews.port)], ['second', 'second']);
  }
  install(third);
  await reload(/read again.*read again/s);
  assert.equal(await subject(api.port), 'third');
});

test('a certificate that is about to expire is complained about', async () => {
  install(issue('brief', { days: 3 }));
  await reload(/certificate\.pem expires in [23] days/);
  install(first);
  await reload(/read again.*read again/s);
});

// What is refused at the start -----------------------------------------------------------------------

async function startRefused(args) {
  const other = new Instance('tls-refused', { args });
  try {
    return await other.refusal([]);
  } finally {
    await until(() => !proc.allProcesses().some((info) => info.comm === 'sandlot-keeper' && proc.cmdline(info.pid).includes(other.dataDir)), { what: 'no keeper is left' });
    other.destroy();
  }
}

test('plain HTTP is refused on an address that others reach, unless it was allowed', async () => {
  const api = await startRefused(['--api-bind', '0.0.0.0:0']);
  assert.notEqual(api.code, 0);
  assert.match(api.said, /api-bind 0\.0\.0\.0:0 is not a loopback address.*tls-certificate.*allow-plain/s);
  assert.match((await startRefused(['--preview-bind', '[::]:0'])).said, /preview-bind \[::\]:0 is not a loopback address/);
  const allowed = new Instance('tls-plain', { args: ['--api-bind', '0.0.0.0:0', '--allow-plain'] });
  try {
    await allowed.start();
    await allowed.shutdown();
  } finally {
    allowed.destroy();
  }
});

test('certificates that cannot be used are refused with the reason', async () => {
  const spare = issue('spare');
  const pair = (certificate, key) => startRefused(['--tls-certificate', certificate, '--tls-key', key]);
  assert.match((await startRefused(['--tls-certificate', spare.certificate])).said, /tls-certificate and tls-key are set together/);
  assert.match((await startRefused(['--preview-tls-key', spare.key])).said, /preview-tls-certificate and preview-tls-key are set together/);
  assert.match((await pair('/nowhere.pem', spare.key)).said, /open the certificate in \/nowhere\.pem/);
  assert.match((await pair(spare.certificate, first.key)).said, /is not that of the certificate/);
  fs.chmodSync(spare.key, 0o600);
  fs.chownSync(spare.key, 0, 0);
  assert.match((await pair(spare.certificate, spare.key)).said, /the key in .*spare\.key cannot be read by the user that sandlotd becomes.*chmod 640/s);
});

test('previews may have a certificate of their own, and listen where others reach them', async () => {
  const own = ca.issue('own', ['IP:127.0.0.1']);
  const other = new Instance('tls-own', { args: ['--preview-bind', '0.0.0.0:0', '--preview-tls-certificate', own.certificate, '--preview-tls-key', own.key] });
  try {
    await other.start();
    const made = await other.api.create({ ports: [3000] });
    const { port } = new URL(made.previews['3000']);
    assert.equal(await subject(Number(port)), 'own');
    await other.shutdown();
  } finally {
    other.destroy();
  }
});

finish();
