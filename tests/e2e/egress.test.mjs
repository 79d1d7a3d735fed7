// SPDX-License-Identifier: Apache-2.0
// The way out of a sandbox: what is reached, what is refused, and what a program inside sees of it.
import assert from 'node:assert/strict';
import os from 'node:os';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { clientHello, echoServer, httpServer, nameServer, tcpServer } from './lib/outside.mjs';
import { Instance } from './lib/instance.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Previews } from './lib/preview.mjs';
import { startApp } from './lib/preview_app.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const names = await nameServer();
const { instance, api, finish } = await suite('egress', { args: ['--resolver', `127.0.0.1:${names.port}`, '--connections', '1000', '--bandwidth', '512Gi'] });
const web = await httpServer();
const echo = await echoServer();
names.names = { 'ok.test': '127.0.0.1', 'sub.ok.test': '127.0.0.1', 'echo.test': '127.0.0.1', 'meta.test': '169.254.169.254', 'lan.test': '10.0.0.5', 'two.test': ['10.0.0.5', '127.0.0.1'], 'ok.test.evil.test': '127.0.0.1', 'evil.test': '127.0.0.1', 'xn--k-bja.test': '127.0.0.1' };

const here = (server) => `127.0.0.1:${server.port}`;
const policy = (allow, mode = 'allowlist') => ({ network: { mode, allow } });
const python = (id, code, env = {}) => api.exec(id, { argv: ['python3', '-c', code], env, timeout_ms: 120_000 });
const network = async (id) => (await api.request('GET', `/v1/sandboxes/${id}/network`)).json;
const denials = async (id) => Object.fromEntries((await network(id)).denials.map((denial) => [denial.target, denial]));
const NO_PROXY = { http_proxy: '', https_proxy: '', HTTP_PROXY: '', HTTPS_PROXY: '' };

/** What a program sees that connects, sends and reads; it knows nothing of proxies. */
const DIAL = `
import socket, sys
def dial(host, port, send=b'hello', timeout=60):
    try:
        s = socket.create_connection((host, port), timeout)
        s.sendall(send)
        s.shutdown(socket.SHUT_WR)
        data = b''
        while True:
            more = s.recv(65536)
            if not more: return 'read ' + data.decode('latin1')
            data += more
    except OSError as e:
        return type(e).__name__ + ' ' + str(e)
`;
const dial = async (id, host, port, send = 'hello') => (await python(id, `${DIAL}\nprint(dial(${JSON.stringify(host)}, ${port}, ${JSON.stringify(send)}.encode('latin1')))`)).stdout.trim();

test('a program that knows nothing of proxies reaches a name that is allowed', async () => {
  const { id } = await api.create(policy([`echo.test:${echo.port}`, here(echo)]));
  assert.equal(await dial(id, 'echo.test', echo.port), 'read hello');
  const report = await network(id);
  assert.equal(report.transparent, true, 'not proven without nf_tables');
  assert.deepEqual(report.reached, [`echo.test:${echo.port}`, here(echo)]);
  assert.equal(report.connections, 1);
  assert.ok(report.tx_bytes >= 5 && report.rx_bytes >= 5, JSON.stringify(report));
  const stats = await api.stats(id);
  assert.equal(stats.network.rx_bytes, report.rx_bytes);
});

test('what is not on the allowlist is reached by no way: name, other port, raw address, IPv6, mapped, relay', async () => {
  const before = web.heads.length;
  const served = echo.served;
  const { id } = await api.create(policy([`ok.test:${echo.port}`]));
  for (const [host, port] of [['evil.test', echo.port], ['ok.test', web.port], ['ok.test.evil.test', echo.port], ['93.184.216.34', 80], ['93.184.216.34', 853], ['10.0.0.5', 80], ['169.254.169.254', 80], ['::1.2.3.4', 80], ['2001:db8::1', 443], ['::ffff:93.184.216.34', 80], ['fe80::1', 80]]) {
    const seen = await dial(id, host, port);
    assert.doesNotMatch(seen, /^read /, `${host}:${port}: ${seen}`);
  }
  assert.equal(web.heads.length, before);
  assert.equal(echo.served, served, 'ok.test stands for a loopback address that no rule names');
  const refused = await denials(id);
  assert.equal(refused['evil.test'].rule, 'evil.test');
  assert.equal(refused['93.184.216.34:80'].rule, '93.184.216.34:80');
  assert.equal(refused[`ok.test:${web.port}`].reason, 'not_allowed');
});

test('an address that is not public is refused whatever name leads there, until a rule holds it', async () => {
  const { id } = await api.create(policy([], 'internet'));
  for (const name of ['ok.test', 'meta.test', 'lan.test']) assert.doesNotMatch(await dial(id, name, web.port), /^read /, name);
  const refused = await denials(id);
  assert.equal(refused[`meta.test:${web.port}`].reason, 'private_address');
  assert.equal(refused[`meta.test:${web.port}`].rule, `169.254.169.254:${web.port}`);
  for (const address of ['127.0.0.1', '10.0.0.5', '169.254.169.254', '100.64.0.1', '192.168.1.1', '168.63.129.16', '198.18.0.9', '240.0.0.1']) {
    assert.doesNotMatch(await dial(id, address, web.port), /^read /, address);
  }
  await api.patch(id, policy([here(echo)], 'internet'));
  assert.equal(await dial(id, 'ok.test', echo.port), 'read hello');
  assert.equal(await dial(id, 'two.test', echo.port), 'read hello', 'an address that is refused does not spoil the next');
});

test('a refusal that a new rule allows leaves the list; the others and the counter stay', async () => {
  const { id } = await api.create(policy([`ok.test:${echo.port}`]));
  for (const [host, port] of [['evil.test', 80], ['two.test', 80], ['ok.test', web.port], ['ok.test', echo.port], ['93.184.216.34', 80]]) await dial(id, host, port);
  const before = await network(id);
  assert.deepEqual(before.denials.map(({ target }) => target).sort(), ['93.184.216.34:80', 'evil.test', `ok.test:${echo.port}`, `ok.test:${web.port}`, 'two.test'].sort());
  await api.patch(id, policy(['ok.test', 'two.test:443', here(echo)]));
  const after = await network(id);
  assert.deepEqual(after.denials.map(({ target }) => target).sort(), ['93.184.216.34:80', 'evil.test']);
  assert.equal(after.denied, before.denied);
  assert.equal(await dial(id, 'ok.test', echo.port), 'read hello');
  await api.patch(id, policy([], 'internet'));
  assert.deepEqual((await network(id)).denials, []);
});

test('a name that is allowed and cannot be looked up is told: in the network of the sandbox, by a failed command, by the command line', async () => {
  names.names['mute.test'] = null;
  const { id, name } = await api.create({ name: 'lost', ...policy(['typo.test', 'mute.test', 'late.test']) });
  const failed = async () => Object.fromEntries((await network(id)).failed_lookups.map((one) => [one.name, one.cause]));
  const look = (host) => api.exec(id, { argv: ['getent', 'hosts', host], timeout_ms: 120_000 });
  assert.equal((await look('typo.test')).termination.detail, 'the name typo.test does not exist, say the name servers');
  for (const host of ['mute.test', 'late.test']) assert.notEqual((await look(host)).exit_code, 0);
  await until(async () => (await failed())['mute.test'], { what: 'the daemon gave up too' });
  assert.deepEqual(await failed(), { 'typo.test': 'no_such_name', 'mute.test': 'no_answer', 'late.test': 'no_such_name' });
  const { ok } = commandLine(instance);
  assert.match(await ok(['egress', name]), /NOT FOUND +TIMES +WHY\n(.*\n)*typo\.test +\d+ +the name servers know no such name\n/);
  // Nothing was refused, and no rule would help.
  const report = await network(id);
  assert.deepEqual([report.denied, report.denials], [0, []]);
  names.names['late.test'] = '127.0.0.1';
  await until(async () => (await look('late.test')).exit_code === 0, { what: 'the name is found' });
  assert.deepEqual(Object.keys(await failed()).sort(), ['mute.test', 'typo.test'], 'what is found is no news any more');
  assert.equal((await look('evil.test')).termination.detail.startsWith('the network refused evil.test'), true, 'a refusal is told first');
  // Programs that ask the proxy have no name looked up themselves.
  await api.patch(id, policy(['*.lost.test']));
  const proxied = await api.exec(id, 'curl -sS --max-time 60 https://proxied.lost.test/');
  assert.equal(proxied.termination.detail, 'the name proxied.lost.test does not exist, say the name servers');
});

test('a program that looks up the host name of its sandbox finds itself, and nobody outside is asked', async () => {
  const { id } = await api.create({ name: 'myself', ...policy([], 'internet') });
  const own = () => python(id, 'import socket; print(socket.gethostname(), socket.gethostbyname(socket.gethostname()))');
  assert.equal((await own()).stdout, 'myself 127.0.0.1\n');
  assert.equal((await api.patch(id, { name: 'another' })).status, 200);
  assert.equal((await own()).stdout, 'another 127.0.0.1\n');
  assert.deepEqual((await network(id)).failed_lookups, []);
  assert.deepEqual(names.asked.filter((name) => ['myself', 'another'].includes(name)), []);
});

test('the daemon itself cannot be reached from inside', async () => {
  const { id } = await api.create(policy([], 'internet'));
  names.names['daemon.test'] = '127.0.0.1';
  for (const host of ['127.0.0.1', 'daemon.test', '0.0.0.0', 'localhost']) assert.doesNotMatch(await dial(id, host, api.port), /^read /, host);
  const result = await api.exec(id, `curl -s --noproxy '' -o /dev/null -w '%{http_code}' -x http://127.0.0.1:61080 http://127.0.0.1:${api.port}/healthz`);
  assert.equal(result.stdout, '403');
});

test('a server that has only IPv6 is reached by its name, over either version inside, and judged by its address', async () => {
  const six = await echoServer('::1');
  names.names['six.test'] = '::1';
  names.names['mapped.test'] = '::ffff:7f00:1';
  names.names['both.test'] = ['127.0.0.1', '::1'];
  const { id } = await api.create(policy(['six.test', 'mapped.test', 'both.test', `[::1]:${six.port}`]));
  assert.equal(await dial(id, 'six.test', six.port), 'read hello');
  const { stdout } = await python(id, `
import socket
for family in (socket.AF_INET, socket.AF_INET6):
    s = socket.socket(family); s.settimeout(60)
    where = socket.getaddrinfo('six.test', ${six.port}, family, socket.SOCK_STREAM)[0][4]
    s.connect(where); s.sendall(b'x'); print(where[0].split(':')[0].split('.')[0], s.recv(1).decode())
`);
  assert.equal(stdout, '198 x\nfd73 x\n');
  assert.doesNotMatch(await dial(id, 'mapped.test', echo.port), /^read/, 'an address of IPv4 is judged as one, whatever it is dressed as');
  assert.equal((await denials(id))[`mapped.test:${echo.port}`].rule, `127.0.0.1:${echo.port}`);
  await api.patch(id, policy(['six.test']));
  assert.doesNotMatch(await dial(id, 'six.test', six.port), /^read/);
  assert.equal((await denials(id))[`six.test:${six.port}`].rule, `[::1]:${six.port}`);
  six.close();
});

test('an address of IPv6 that a program names is judged like one of IPv4', async (t) => {
  const own = Object.values(os.networkInterfaces()).flat().find((one) => one.family === 'IPv6' && !one.internal && !one.address.startsWith('fe80'))?.address;
  const { id } = await api.create(policy(['2001:db8::/32']));
  assert.doesNotMatch(await dial(id, '2606:4700::1111', 443), /^read/);
  assert.equal((await denials(id))['[2606:4700::1111]:443'].rule, '[2606:4700::1111]:443');
  if (!own) return t.skip('not proven: this machine has no address of IPv6 but its loopback');
  const six = await echoServer(own);
  assert.doesNotMatch(await dial(id, own, six.port), /^read/);
  await api.patch(id, policy([`[${own}]:${six.port}`]));
  assert.equal(await dial(id, own, six.port), 'read hello');
  await api.patch(id, policy([`${own}/64`]));
  assert.equal(await dial(id, own, six.port), 'read hello');
  await api.patch(id, policy([], 'internet'));
  if (/^f[cd]/.test(own)) assert.doesNotMatch(await dial(id, own, six.port), /^read/, 'a private one is no part of the internet');
  assert.doesNotMatch(await dial(id, '::1', api.port), /^read/);
  six.close();
});

// As on a kernel that was booted without IPv6, there are no such sockets for this daemon and all that it starts.
const WITHOUT_IPV6 = `
import ctypes, errno, os, platform, struct, sys
op = lambda code, jt, jf, k: struct.pack('HBBI', code, jt, jf, k)
number = {'x86_64': 41, 'aarch64': 198}[platform.machine()]
code = op(0x20, 0, 0, 0) + op(0x15, 0, 3, number) + op(0x20, 0, 0, 16) + op(0x15, 0, 1, 10) + op(6, 0, 0, 0x50000 | errno.EAFNOSUPPORT) + op(6, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxQ', 6, ctypes.addressof(text))
assert ctypes.CDLL(None).prctl(22, 2, ctypes.c_char_p(program)) == 0
os.execv(sys.argv[1], sys.argv[1:])`;

test('on a host without IPv6 egress and previews work over IPv4', async () => {
  const old = new Instance('no-ipv6', { args: ['--resolver', `127.0.0.1:${names.port}`], wrapper: ['python3', '-c', WITHOUT_IPV6], user: null });
  try {
    await old.start();
    const sandbox = await old.api.create({ network: { mode: 'allowlist', allow: ['ok.test', here(web)] }, ports: [3000] });
    assert.match(await old.api.out(sandbox.id, "python3 -c \"import socket\ntry: socket.socket(socket.AF_INET6)\nexcept OSError as e: print(e)\""), /not supported/);
    for (const env of [{}, NO_PROXY]) assert.match(await old.api.out(sandbox.id, { command: `curl -sS -m 15 http://ok.test:${web.port}/`, env }), /^GET \//);
    const previews = new Previews(old.api, sandbox);
    await startApp(old.api, sandbox.id, { port: 3000 });
    await until(async () => (await previews.request(3000, '/')).text === 'hello', { what: 'the app answers' });
    await old.shutdown();
  } finally {
    old.destroy();
  }
});

test('mode none has nothing but lo: no address, no DNS, no proxy, no listener', async () => {
  const asked = names.asked.length;
  const { id } = await api.create({ network: { mode: 'none' } });
  assert.match(await dial(id, '93.184.216.34', 80), /unreachable/i);
  assert.match(await dial(id, 'ok.test', 80), /^gaierror/);
  assert.match(await dial(id, '127.0.0.1', 61080), /refused/i);
  assert.equal((await api.out(id, 'echo "[$http_proxy$HTTPS_PROXY]"')).trim(), '[]');
  assert.equal(names.asked.length, asked);
  assert.equal((await network(id)).transparent, false);
});

test('UDP and ICMP go nowhere, and a program is told at once, in every mode and also as root', async () => {
  const program = `
import socket
V4, V6 = socket.AF_INET, socket.AF_INET6
PING = {V4: (socket.IPPROTO_ICMP, 8), V6: (socket.IPPROTO_ICMPV6, 128)}
def send(family, host, port, connects):
    protocol, kind = (0, 8) if port else PING[family]
    s = socket.socket(family, socket.SOCK_DGRAM, protocol)
    goal = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)[0][4]
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.settimeout(60)
    message = bytes([kind]) + bytes(7)
    if connects: s.connect(goal); s.send(message)
    else: s.sendto(message, goal)
    return s.recv(99)
for family, host, port in ((V4, '93.184.216.34', 443), (V4, '93.184.216.34', 123), (V4, '224.0.0.251', 5353), (V4, '255.255.255.255', 67), (V4, '93.184.216.34', 0),
        (V6, '2001:db8::1', 443), (V6, '2606:4700::1111', 53), (V6, '::ffff:93.184.216.34', 443), (V6, 'ff02::1%lo', 5353), (V6, 'fe80::1%lo', 9),
        (V6, '2606:4700::1111', 0), (V6, 'ff02::1%lo', 0), (V6, 'fe80::1%lo', 0)):
    for connects in (False, True):
        try: print(host, port, connects, 'answered', send(family, host, port, connects))
        except PermissionError: pass
        except OSError as e: e.strerror == 'Network is unreachable' or print(host, port, connects, e)
for family, kind, protocol in ((V4, socket.SOCK_RAW, 1), (V6, socket.SOCK_RAW, 58), (V4, socket.SOCK_RAW, 255), (V4, socket.SOCK_DGRAM, 136), (V4, socket.SOCK_STREAM, 132)):
    try: print('opened', socket.socket(family, kind, protocol))
    except PermissionError: pass
for family, host in ((V4, '127.0.0.1'), (V6, '::1')):
    a = socket.socket(family, socket.SOCK_DGRAM); a.bind((host, 0)); a.settimeout(60)
    a.sendto(b'own', a.getsockname()); print(a.recv(9).decode(), len(send(family, host, 0, False)))
`;
  for (const mode of ['none', 'allowlist', 'internet']) {
    const { id } = await api.create({ network: { mode } });
    for (const user of ['root', 'sandbox']) {
      const { stdout, stderr } = await api.exec(id, { argv: ['python3', '-c', program], user, timeout_ms: 60_000 });
      assert.equal(stdout, 'own 8\nown 8\n', `${mode} as ${user}: ${stderr}`);
    }
  }
});

test('names are answered by the daemon, whichever server is asked and however', async () => {
  const { id } = await api.create(policy(['ok.test', '*.ok.test']));
  const ask = `
import socket, struct, sys
def query(name, kind, stream=False, server='127.0.0.1'):
    q = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l for l in name) + b'\\0' + struct.pack('>2H', kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
    s.settimeout(60)
    s.connect((server, 53))
    s.sendall(struct.pack('>H', len(q)) + q if stream else q)
    r = s.recv(2000)
    if stream: r = r[2:]
    return 'code %d answers %d' % (r[3] & 15, struct.unpack('>H', r[6:8])[0]) + (' ' + '.'.join(map(str, r[-4:])) if r[7] else '')
`;
  const run = async (calls) => (await python(id, `${ask}\n${calls.map((call) => `print(query(${call}))`).join('\n')}`)).stdout.trim().split('\n');
  const [a, again, sub, stream, far, farStream, aaaa, mx, evil, odd, dotted] = await run([
    "[b'ok', b'test'], 1", "[b'OK', b'TEST'], 1", "[b'sub', b'ok', b'test'], 1", "[b'ok', b'test'], 1, True", "[b'ok', b'test'], 1, False, '8.8.8.8'", "[b'ok', b'test'], 1, True, '8.8.8.8'",
    "[b'ok', b'test'], 28", "[b'ok', b'test'], 15", "[b'evil', b'test'], 1", "[b'evil\\0', b'ok', b'test'], 1", "[b'evil.ok', b'test'], 1",
  ]);
  assert.match(a, /^code 0 answers 1 198\.1[89]\./);
  for (const same of [again, stream, far, farStream]) assert.equal(same, a);
  assert.match(sub, /^code 0 answers 1/);
  assert.notEqual(sub, a);
  assert.match(aaaa, /^code 0 answers 1/);
  assert.equal(mx, 'code 5 answers 0');
  for (const none of [evil, odd, dotted]) assert.equal(none, 'code 3 answers 0');
});

test('no message can be hidden in names: the outside hears of none that is not allowed', async () => {
  const { id } = await api.create(policy(['ok.test']));
  await python(id, `
import socket
import os
for i in range(20):
    long = '.'.join('secret%d' % i + os.urandom(20).hex() for _ in range(3))
    for name in ('secret%d.evil.test' % i, long + '.evil.test', long + '.ok.test', 'secret%d.ok.test.evil.test' % i):
        try: socket.getaddrinfo(name, 80)
        except OSError: pass
`);
  assert.deepEqual(names.asked.filter((name) => /secret/.test(name)), []);
  const report = await network(id);
  assert.ok(report.denied >= 20, JSON.stringify(report));
  assert.ok(report.denials.some((denial) => denial.target === 'secret19.evil.test'));
});

test('proxy: CONNECT and plain requests are judged alike, and a refusal says what would allow it', async () => {
  const { id } = await api.create(policy([`ok.test:${web.port}`, here(web)]));
  const url = `http://ok.test:${web.port}/a?b=c`;
  assert.equal(await api.out(id, `curl -sS ${url}`), `GET /a?b=c ok.test:${web.port}\n`);
  assert.equal(await api.out(id, `curl -sS -p ${url}`), `GET /a?b=c ok.test:${web.port}\n`);
  assert.equal(await api.out(id, `curl -sS --noproxy '*' ${url}`), `GET /a?b=c ok.test:${web.port}\n`);
  const posted = await api.out(id, `head -c 300000 /dev/zero | curl -sS --data-binary @- ${url}`);
  assert.match(posted, /^POST/);
  const head = web.heads.at(-1).headers;
  assert.equal(head['proxy-connection'], undefined);
  assert.equal(head.connection, 'close');
  const refused = await api.exec(id, 'curl -sS http://evil.test:81/');
  assert.match(refused.stdout, /evil\.test:81 is not allowed .*rule would allow it: evil\.test:81/);
  for (const wrong of ['user@ok.test', 'OK.TEST..', '0x7f000001', '2130706433', '[::1]']) {
    const result = await api.exec(id, `printf 'CONNECT ${wrong}:${web.port} HTTP/1.1\\r\\n\\r\\n' | timeout 60 python3 -c "
import socket,sys
s=socket.create_connection(('127.0.0.1',61080)); s.sendall(sys.stdin.buffer.read()); print(s.recv(200).decode())"`);
    assert.match(result.stdout, /^HTTP\/1\.1 40[03] /, wrong);
  }
});

test('TLS that asks for another name than was allowed is cut before a byte of it is sent', async () => {
  const heard = [];
  const tls = await tcpServer((socket) => socket.on('data', (data) => { heard.push(data); socket.end('tls'); }));
  const { id } = await api.create(policy(['ok.test', here(tls)]));
  const spell = (hello) => [...hello].map((byte) => `\\u00${byte.toString(16).padStart(2, '0')}`).join('');
  const say = (host, hello) => python(id, `${DIAL}\nprint(dial(${JSON.stringify(host)}, ${tls.port}, "${spell(hello)}".encode('latin1')))`).then((result) => result.stdout.trim());
  assert.equal(await say('ok.test', clientHello('ok.test')), 'read tls');
  assert.equal(await say('ok.test', clientHello('OK.test')), 'read tls', 'names are the same in capitals');
  const before = heard.length;
  assert.doesNotMatch(await say('ok.test', clientHello('evil.test')), /^read tls/);
  const split = clientHello('evil.test');
  split.writeUInt16BE(20, 3); // the rest would be in another record
  assert.doesNotMatch(await say('ok.test', split), /^read tls/);
  assert.equal(heard.length, before);
  assert.equal((await denials(id))[`ok.test:${tls.port}`].reason, 'other_name');
  tls.close();
});

test('an empty allowlist allows nothing; without one the mode is the default', async () => {
  const { id } = await api.create(policy([]));
  assert.doesNotMatch(await dial(id, 'ok.test', echo.port), /^read /);
  const created = await api.create({ network: { allow: ['ok.test'] } });
  assert.equal(created.network.mode, 'allowlist');
  assert.equal((await api.create()).network.mode, 'internet');
});

test('a change of policy acts at once: open connections are cut, others stay, and what was none has a way out', async () => {
  const { id } = await api.create(policy(['ok.test', 'echo.test', here(echo)]));
  const program = `
import socket, sys
def open(name):
    s = socket.create_connection((name, ${echo.port}), 8); s.sendall(b'x'); s.recv(1); return s
kept, lost = open('echo.test'), open('ok.test')
print('open', flush=True)
try: print('lost', lost.recv(1) or 'end')
except OSError as e: print('lost', type(e).__name__)
kept.sendall(b'y'); print('kept', kept.recv(1).decode(), flush=True)
`;
  const stream = await api.execStream(id, { argv: ['python3', '-u', '-c', program], timeout_ms: 120_000 });
  let text = '';
  for await (const event of stream.events()) {
    text += event.data?.data ?? event.data?.text ?? '';
    if (/^open\n$/.test(text)) {
      await api.patch(id, { labels: { unrelated: 'change' } });
      assert.equal((await network(id)).open_connections, 2);
      await api.patch(id, policy(['echo.test', here(echo)]));
    }
  }
  assert.match(text, /^open\nlost (ConnectionResetError|end)\nkept y\n$/);
  await api.patch(id, { network: { mode: 'none' } });
  assert.doesNotMatch(await dial(id, 'echo.test', echo.port), /^read /);
  const { id: closed } = await api.create({ network: { mode: 'none' } });
  await api.patch(closed, policy(['echo.test', here(echo)]));
  assert.equal(await dial(closed, 'echo.test', echo.port), 'read hello');
});

test('a refusal is an event with the rule that would allow it', async () => {
  const { id } = await api.create(policy([]));
  const events = [];
  const request = api.open('GET', `/v1/sandboxes/${id}/events`, {}, (error, response) => {
    if (!error) response.on('data', (chunk) => events.push(chunk.toString()));
  });
  request.on('error', () => {});
  await until(() => events.join('').includes('event: status'), { what: 'the stream is open' });
  await dial(id, '93.184.216.34', 8443);
  const text = await until(() => /event: network\.denied\ndata: (.*)\n/.exec(events.join('')), { what: 'the event' });
  const event = JSON.parse(text[1]);
  assert.equal(event.target, '93.184.216.34:8443');
  assert.equal(event.rule, '93.184.216.34:8443');
  assert.equal(event.reason, 'not_allowed');
  request.destroy();
});

test('bytes arrive whole, both ways at once, however many', async () => {
  const { id } = await api.create(policy(['echo.test', here(echo)]));
  const { stdout, stderr } = await python(id, `
import socket, threading, hashlib, os
s = socket.create_connection(('echo.test', ${echo.port}), 20)
block, sent, got, n = os.urandom(1 << 20), hashlib.sha256(), hashlib.sha256(), 0
def write():
    for i in range(64): s.sendall(block); sent.update(block)
    s.shutdown(socket.SHUT_WR)
t = threading.Thread(target=write); t.start()
while True:
    data = s.recv(1 << 18)
    if not data: break
    got.update(data); n += len(data)
t.join(); print(n, sent.digest() == got.digest())
`);
  assert.equal(stdout, `${64 << 20} True\n`, stderr);
});

test('a reader that does not read costs no memory, and its writer waits', async () => {
  const flood = await tcpServer((socket) => { const block = Buffer.alloc(1 << 20); const push = () => { while (socket.write(block)); }; socket.on('drain', push); push(); });
  const { id } = await api.create(policy(['ok.test', here(flood)]));
  const started = await api.tryExec(id, { argv: ['python3', '-c', `import socket, time
s = [socket.create_connection(('ok.test', ${flood.port}), 20) for i in range(20)]
time.sleep(600)`], background: true });
  await until(() => flood.served === 20, { what: 'all are connected' });
  let last = -1;
  await until(async () => {
    const now = (await network(id)).rx_bytes;
    const rests = now === last;
    last = now;
    return rests;
  }, { every: 300, what: 'all writers wait' });
  assert.ok(last < 20 * (32 << 20), `${last} bytes were taken in`);
  assert.equal(started.status, 201, started.text);
  await api.purge(id);
  flood.close();
  for (const socket of flood.sockets) socket.destroy();
});

test('more connections than allowed are refused; those that are open go on', async () => {
  const { id } = await api.create({ network: { mode: 'allowlist', allow: ['echo.test', here(echo)], connections: 3 } });
  const { stdout } = await python(id, `
import socket
kept = []
for i in range(6):
    try:
        one = socket.create_connection(('echo.test', ${echo.port}), 8)
        one.sendall(b'x')
        if one.recv(1): kept.append(one)
    except OSError: pass
for one in kept: one.sendall(b'y')
print(len(kept), all(one.recv(1) == b'y' for one in kept))
`);
  assert.equal(stdout, '3 True\n');
  assert.equal((await network(id)).denials[0].reason, 'too_many_connections');
});

test('no sandbox has more connections or bandwidth than the operator allows', async () => {
  const { id } = await api.create({ network: { mode: 'internet', connections: 1000, bandwidth: '512Gi' } });
  for (const [name, asked, allowed] of [['connections', 1001, 1000], ['bandwidth', '600Gi', '512 GiB']]) {
    const network = { mode: 'internet', [name]: asked };
    for (const answer of [await api.request('POST', '/v1/sandboxes', { json: { network } }), await api.patch(id, { network })]) {
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.json.error.message, new RegExp(`network\\.${name} is ${parseInt(asked)}\\b.* allows ${allowed}$`));
    }
  }
  assert.equal((await api.request('GET', `/v1/sandboxes/${id}`)).json.network.connections, 1000);
});

test('a sandbox that waits for very many names keeps no other from finding one', async () => {
  names.names['mute.test'] = null;
  const { id } = await api.create({ network: { mode: 'internet', connections: 1000 } });
  const others = [];
  for (let i = 0; i < Math.min(4, os.availableParallelism()); i++) others.push((await api.create(policy([`*.ok.test:${web.port}`, here(web)]))).id);
  // Its sockets stay open while it sleeps: each waits for an answer of its own.
  const crowd = await api.tryExec(id, { argv: ['python3', '-c', `import socket, time
held = []
for i in range(600):
    try:
        s = socket.create_connection(('127.0.0.1', 61080), 20)
        s.sendall(b'CONNECT mute.test:80 HTTP/1.1\\r\\n\\r\\n')
        held.append(s)
    except OSError: pass # more than it may have
open('/tmp/sent', 'w').close()
time.sleep(600)`], background: true });
  assert.equal(crowd.status, 201);
  await until(async () => (await api.exec(id, 'test -e /tmp/sent')).exit_code === 0, { what: 'all names are asked for' });
  for (const i of others.keys()) names.names[`fresh${i}.ok.test`] = '127.0.0.1'; // which nobody remembers
  const found = await Promise.all(others.map((other, i) => api.exec(other, `curl -sS -m 15 http://fresh${i}.ok.test:${web.port}/`)));
  for (const { stdout, stderr } of found) assert.match(stdout, /^GET \//, stderr);
  await api.purge(id);
});

test('bandwidth is limited: a transfer takes no less than its share of time', async () => {
  const bytes = 2 << 20;
  const { id } = await api.create({ network: { mode: 'allowlist', allow: ['ok.test', here(echo)], bandwidth: '4Mi' } });
  const { stdout } = await python(id, `${DIAL}
import time
t = time.monotonic(); r = dial('ok.test', ${echo.port}, b'x' * ${bytes}, 30); print(len(r) - 5, time.monotonic() - t > 0.5)
`);
  assert.equal(stdout, `${bytes} True\n`, '2 MiB out and in at 4 MiB/s, less the burst');
});

test('a daemon that dies cuts what was open; clients wait in the queue, and the next serves them', async () => {
  const { id } = await api.create(policy(['echo.test', here(echo)]));
  const started = await api.tryExec(id, { argv: ['python3', '-c', `import socket, time
while True:
    try:
        s = socket.create_connection(('127.0.0.1', 61080), 30)
        s.settimeout(60)
        s.sendall(b'CONNECT echo.test:${echo.port} HTTP/1.1\\r\\n\\r\\n')
        head = s.recv(1000)
        s.sendall(b'z'); got = s.recv(1)
        open('/tmp/rounds', 'a').write(got.decode())
    except OSError as e:
        open('/tmp/errors', 'a').write(repr(e))
    time.sleep(0.05)
`], background: true });
  assert.equal(started.status, 201, started.text);
  await until(async () => (await api.exec(id, 'cat /tmp/rounds')).stdout.length > 2, { what: 'rounds before' });
  const { port } = api;
  await instance.crash();
  await instance.start(['--api-bind', `127.0.0.1:${port}`]);
  const before = (await api.exec(id, 'cat /tmp/rounds')).stdout.length;
  await until(async () => (await api.exec(id, 'cat /tmp/rounds')).stdout.length > before + 2, { what: 'rounds after' });
  assert.equal(await dial(id, 'echo.test', echo.port), 'read hello');
  assert.equal(await dial(id, '93.184.216.34', 80).then((seen) => /^read /.test(seen)), false);
});

test('two sandboxes never meet, on the same port and with the same name', async () => {
  const [a, b] = await Promise.all([api.create(policy([], 'internet')), api.create(policy([], 'internet'))]);
  await api.tryExec(a.id, { command: 'cd /tmp && echo a > who && python3 -m http.server 8000', background: true });
  await until(async () => (await api.exec(a.id, 'curl -s 127.0.0.1:8000/who')).stdout === 'a\n', { what: 'the server of a' });
  for (const address of ['127.0.0.1', '198.18.0.1', '0.0.0.0', '198.18.4.0']) {
    assert.doesNotMatch(await dial(b.id, address, 8000, 'GET /who HTTP/1.0\r\n\r\n'), /^read/, address);
  }
});

test('only an administrator opens addresses that are not public', async () => {
  const alice = await ownerApi(api, 'acme', 'alice');
  for (const rule of ['127.0.0.1:9090', '10.0.0.0/8', '169.254.169.254', '0.0.0.0/0', '[::1]:80']) {
    const answer = await alice.request('POST', '/v1/sandboxes', { json: policy([rule]) });
    assert.equal(answer.status, 403, `${rule}: ${answer.text}`);
    assert.equal(answer.json.error.code, 'private_rule');
  }
  const { id } = await alice.create(policy(['ok.test', '93.184.216.34']));
  assert.equal((await alice.patch(id, policy(['ok.test', '192.168.0.0/16']))).status, 403);
  assert.equal((await alice.patch(id, policy(['ok.test']))).status, 200);
  assert.equal((await api.request('GET', `/v1/sandboxes/${id}/network`)).status, 404);
  await alice.purge(id);
  alice.disconnect();
});

/** The rules with which a server of this machine is reached again: its name is not enough. */
const learnedOf = (server) => [here(server), `echo.test:${server.port}`];

test('sandlot egress shows, changes and learns', async () => {
  const { ok, created } = commandLine(instance);
  const id = await created('--network', 'internet', '--allow', here(echo));
  assert.equal(await dial(id, 'echo.test', echo.port), 'read hello');
  await dial(id, 'lan.test', 81);
  assert.deepEqual((await ok(['egress', id, '--learn'])).trim().split('\n').sort(), learnedOf(echo));
  const shown = await ok(['egress', id]);
  assert.match(shown, /^mode +internet$/m);
  assert.match(shown, new RegExp(`^reached +echo\\.test:${echo.port}\n +${here(echo)}$`, 'm'));
  assert.match(shown, /^lan\.test:81 +[12] +private_address +10\.0\.0\.5:81$/m);
  const rules = (await ok(['egress', id, '--learn'])).trim().split('\n').flatMap((rule) => ['--set', rule]);
  const changed = await ok(['egress', id, '--mode', 'allowlist', ...rules]);
  assert.match(changed, /^mode +allowlist$/m);
  assert.equal(await dial(id, 'echo.test', echo.port), 'read hello');
  assert.doesNotMatch(await dial(id, 'ok.test', echo.port), /^read /);
});

test('what was learned survives a stop, a crash and a start of the daemon, and goes with the sandbox', async () => {
  const { ok, created, crash } = commandLine(instance);
  const id = await created('--network', 'internet', '--allow', here(echo));
  const learned = async () => (await ok(['egress', id, '--learn'])).trim().split('\n').sort();
  assert.equal(await dial(id, 'echo.test', echo.port), 'read hello');
  await ok(['stop', id]);
  assert.deepEqual(await learned(), learnedOf(echo));
  await crash();
  assert.deepEqual(await learned(), learnedOf(echo));
  assert.equal(await dial(id, 'echo.test', echo.port), 'read hello');
  assert.deepEqual(await learned(), learnedOf(echo), 'and no rule comes twice');
  await ok(['rm', id]);
  await created('--id', id);
  assert.deepEqual(await learned(), ['']);
});

test('a server inside is not reached from outside, nor by what goes outside on its port', async () => {
  const { id } = await api.create(policy([], 'internet'));
  await api.tryExec(id, { command: 'cd /tmp && python3 -m http.server 8000 --bind 0.0.0.0', background: true });
  await until(async () => (await api.exec(id, 'curl -s -o /dev/null 127.0.0.1:8000')).exit_code === 0, { what: 'the server inside' });
  assert.notEqual((await fetch('http://127.0.0.1:8000/').catch(() => null))?.headers.get('server')?.startsWith('SimpleHTTP'), true);
  assert.doesNotMatch(await dial(id, '93.184.216.34', 8000, 'GET / HTTP/1.0\r\n\r\n'), /SimpleHTTP/, 'what goes outside does not end inside');
});

test('git clones over plain HTTP from a server that is allowed', async () => {
  const files = new Map();
  const { id: source } = await api.create({ network: { mode: 'none' } });
  const list = await api.out(source, `cd /tmp && git init -q repo && cd repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git update-server-info && cd .git && find . -type f -printf '%P\\n'`);
  for (const name of list.trim().split('\n')) files.set(`/repo.git/${name}`, (await api.files('GET', source, `/tmp/repo/.git/${name}`)).body);
  const server = await httpServer((request, response) => {
    const body = files.get(request.url.split('?')[0]);
    response.writeHead(body ? 200 : 404).end(body);
  });
  const { id } = await api.create(policy(['git.test', here(server)]));
  names.names['git.test'] = '127.0.0.1';
  assert.equal((await api.out(id, `cd /tmp && git clone -q http://git.test:${server.port}/repo.git && git -C repo log --format=%s`)).trim(), 'one');
  const without = await api.exec(id, { command: `cd /tmp && git clone -q http://git.test:${server.port}/repo.git again && git -C again log --format=%s`, env: NO_PROXY });
  assert.equal(without.stdout.trim(), 'one', without.stderr);
  server.close();
});

test('a command that fails at a name with a private address says so', async () => {
  const { id } = await api.create({ network: { mode: 'internet' } });
  const inner = await api.exec(id, 'curl -fsS --max-time 20 http://lan.test:81/');
  assert.match(inner.termination.detail, /^the network refused lan\.test:81 \(the name resolves to a private address\); the rule 10\.0\.0\.5:81 would allow it: /);
  await api.purge(id);
});

test('the outside world closes', () => {
  for (const server of [web, echo]) {
    server.close();
    server.closeAllConnections?.();
    for (const socket of server.sockets ?? []) socket.destroy();
  }
  names.close();
});

test('a command that fails says what the network refused it, and the rule that would allow it', async () => {
  const { id } = await api.create({ network: { mode: 'allowlist', allow: ['allowed.example'] } });
  const failed = await api.exec(id, 'curl -sS --max-time 20 https://refused.example/');
  assert.notEqual(failed.exit_code, 0);
  assert.match(failed.termination.detail, /^the network refused refused\.example(:443)?; the rule refused\.example(:443)? would allow it: sandlot egress \S+ --allow refused\.example(:443)?$/);
  const [label, tail] = ['l'.repeat(60), 'example'];
  for (const host of [`${label}.${tail}`, [label, label, label, tail].join('.')]) {
    const { termination } = await api.exec(id, `curl -sS --max-time 20 https://${host}/`);
    // A rule that is cut would allow something else, or nothing.
    const whole = host.length < 100 ? new RegExp(` --allow ${host}(:443)?$`) : new RegExp(`^the network refused ${host}(:443)?; sandlot egress ${id} has the rule that would allow it$`);
    assert.match(termination.detail, whole);
  }
  const other = await api.exec(id, 'exit 3');
  assert.equal(other.termination.detail, null, 'what was refused before it ran is not told again');
  const fine = await api.exec(id, 'curl -sS --max-time 20 https://refused.example/ || true');
  assert.equal(fine.termination.detail, null, 'a command that succeeds has nothing to explain');
  const { process } = (await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { command: 'curl -sS --max-time 20 https://other.example/', background: true } })).json;
  const ended = (await api.request('GET', `/v1/sandboxes/${id}/processes/${process.id}/wait`)).json.process;
  assert.match(ended.termination.detail, /refused other\.example/);
});

finish();
