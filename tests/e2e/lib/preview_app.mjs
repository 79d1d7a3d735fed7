// SPDX-License-Identifier: Apache-2.0
// Apps that run in sandboxes and are looked at through previews.
import assert from 'node:assert/strict';

// Shows what it got, and answers in most of the ways there are. Arguments: its port, and what it says otherwise.
const APP = `
const http = require('http'), crypto = require('crypto'), listeners = [];
const server = http.createServer((req, res) => {
  const url = new URL(req.url, 'http://x');
  if (url.pathname.endsWith('/echo')) {
    const hash = crypto.createHash('sha256'); let bytes = 0;
    req.on('data', (d) => { hash.update(d); bytes += d.length; });
    req.on('end', () => { res.setHeader('content-type', 'application/json'); res.end(JSON.stringify({ bytes, sha: hash.digest('hex'), headers: req.headers, raw: req.rawHeaders, url: req.url, method: req.method, trailers: req.trailers })); });
  } else if (url.pathname === '/big') {
    const n = Number(url.searchParams.get('n')); res.writeHead(200, { 'content-length': n });
    const block = Buffer.alloc(65536, 'b'); let left = n;
    const more = () => { while (left > 0) { const part = block.subarray(0, Math.min(left, block.length)); left -= part.length; if (!res.write(part)) return res.once('drain', more); } res.end(); };
    more();
  } else if (url.pathname === '/chunks') {
    res.setHeader('Trailer', 'X-Sum'); res.write('one'); setTimeout(() => { res.write('two'); res.addTrailers({ 'X-Sum': '42' }); res.end(); }, 50);
  } else if (url.pathname === '/events') {
    res.writeHead(200, { 'content-type': 'text/event-stream' }); res.write('data: first\\n\\n');
    req.on('close', () => { server.left = true; });
  } else if (url.pathname === '/ticks') { res.writeHead(200, { 'content-type': 'text/event-stream' }); res.write(': open\\n\\n'); listeners.push(res);
  } else if (url.pathname === '/tick') { for (const one of listeners) one.write('data: tick\\n\\n'); res.end();
  } else if (url.pathname === '/dribble') { let i = 0; const timer = setInterval(() => { res.write('abcdef'[i++]); if (i === 6) { clearInterval(timer); res.end(); } }, 20);
  } else if (url.pathname === '/tear') { res.writeHead(200, { 'content-length': 10 }); res.write('half'); setTimeout(() => res.socket.resetAndDestroy(), 20);
  } else if (url.pathname === '/left') { res.end(String(!!server.left));
  } else if (url.pathname === '/headers') {
    res.writeHead(200, { 'set-cookie': ['a=1; Domain=localhost; Path=/x', 'sandlot_preview=stolen', 'b=2; HttpOnly'], 'strict-transport-security': 'max-age=99', 'clear-site-data': '"*"', 'alt-svc': 'h3=":443"', 'service-worker-allowed': '/', 'x-accel-redirect': '/etc/passwd', 'x-mine': 'kept', 'access-control-allow-origin': 'http://localhost:3000' });
    res.end();
  } else if (url.pathname === '/moved') { res.writeHead(302, { location: 'http://localhost:3000/there?x=1' }); res.end();
  } else if (url.pathname === '/home') { res.writeHead(302, { location: '/there' }); res.end();
  } else if (url.pathname === '/away') { res.writeHead(302, { location: 'http://169.254.169.254/latest' }); res.end();
  } else if (url.pathname === '/nothing') { res.writeHead(204); res.end();
  } else res.end(process.argv[3]);
});
server.on('upgrade', (req, socket) => {
  const accept = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Protocol: ' + (req.headers['sec-websocket-protocol'] || 'none') + '\\r\\nX-Origin: ' + req.headers.origin + '\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
  socket.pipe(socket);
});
server.listen(Number(process.argv[2]), '127.0.0.1');
`;

// Answers each connection on port 3001 with the bytes of /tmp/answer, once it has read a head; then waits, or closes.
const LIAR = `
import socket, time, os
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 3001)); s.listen(64)
while True:
    c, _ = s.accept()
    c.recv(65536)
    try: c.sendall(open('/tmp/answer', 'rb').read())
    except OSError: pass
    if not os.path.exists('/tmp/keep'): c.close()
`;

/** Starts a command that stays. */
export async function background(api, id, argv) {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/exec`, { json: { argv, background: true } });
  assert.equal(answer.status, 201, answer.text);
}

export async function startApp(api, id, { port = 3000, name = 'hello' } = {}) {
  await api.put(id, '/tmp/app.js', APP);
  await background(api, id, ['node', '/tmp/app.js', String(port), name]);
}

/** The bytes that the liar answers with, from now on. */
export async function sayAs(api, id, bytes) {
  await api.put(id, '/tmp/answer', Buffer.from(bytes, 'latin1'));
}

export async function startLiar(api, id) {
  await api.put(id, '/tmp/liar.py', LIAR);
  await sayAs(api, id, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await background(api, id, ['python3', '/tmp/liar.py']);
}
