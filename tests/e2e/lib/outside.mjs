// SPDX-License-Identifier: Apache-2.0
// An internet for the tests of egress: name servers and servers on the loopback of the host.
import dgram from 'node:dgram';
import http from 'node:http';
import net from 'node:net';
import { once } from 'node:events';

/** The sixteen bytes of an address of IPv6. */
function addressBytes(text) {
  const [left, right] = text.split('::').map((part) => (part ? part.split(':') : []));
  const groups = right === undefined ? left : [...left, ...Array(8 - left.length - right.length).fill('0'), ...right];
  return groups.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]);
}

/** A name server that knows `names` ({ name: address, several, or null for no answer at all }) and remembers what it was asked. */
export async function nameServer(names = {}) {
  const socket = dgram.createSocket('udp4');
  const server = { names, asked: [], port: 0, close: () => socket.close() };
  socket.on('message', (message, peer) => {
    const labels = [];
    let at = 12;
    while (message[at] > 0) {
      labels.push(message.subarray(at + 1, at + 1 + message[at]).toString('latin1'));
      at += 1 + message[at];
    }
    const name = labels.join('.');
    const question = message.subarray(12, at + 5);
    server.asked.push(name);
    const found = server.names[name];
    if (found === null) return;
    const type = question.readUInt16BE(question.length - 4);
    const addresses = found === undefined ? [] : [found].flat().filter((address) => (type === 28 ? address.includes(':') : type === 1 && !address.includes(':')));
    const header = Buffer.from([message[0], message[1], 0x81, found === undefined ? 0x83 : 0x80, 0, 1, 0, addresses.length, 0, 0, 0, 0]);
    const records = addresses.map((address) => {
      const bytes = type === 28 ? addressBytes(address) : address.split('.').map(Number);
      return Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 1, 0, bytes.length, ...bytes]);
    });
    socket.send(Buffer.concat([header, question, ...records]), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  server.port = socket.address().port;
  return server;
}

/** A TCP server; `serve` gets each connection. Counts them. */
export async function tcpServer(serve, address = '127.0.0.1') {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    server.served++;
    server.sockets.add(socket);
    socket.on('close', () => server.sockets.delete(socket));
    socket.on('error', () => {});
    serve(socket);
  });
  server.served = 0;
  server.sockets = new Set();
  server.listen(0, address);
  await once(server, 'listening');
  server.port = server.address().port;
  return server;
}

export const echoServer = (address) => tcpServer((socket) => socket.pipe(socket), address);

/** An HTTP server that answers with what it was asked, and remembers the heads. */
export async function httpServer(serve, address = '127.0.0.1') {
  const server = http.createServer((request, response) => {
    server.heads.push({ method: request.method, url: request.url, headers: request.headers });
    if (serve) serve(request, response);
    else response.end(`${request.method} ${request.url} ${request.headers.host}\n`);
  });
  server.heads = [];
  server.listen(0, address);
  await once(server, 'listening');
  server.port = server.address().port;
  return server;
}

/** The first message of TLS, asking for a name; enough of one for whoever only reads the name. */
export function clientHello(name) {
  const host = Buffer.from(name, 'latin1');
  const u16 = (n) => Buffer.from([n >> 8, n & 255]);
  const names = Buffer.concat([Buffer.from([0]), u16(host.length), host]);
  const extension = Buffer.concat([u16(0), u16(names.length + 2), u16(names.length), names]);
  const body = Buffer.concat([u16(0x0303), Buffer.alloc(32), Buffer.from([0]), u16(2), u16(0x1301), Buffer.from([1, 0]), u16(extension.length), extension]);
  const message = Buffer.concat([Buffer.from([1, 0]), u16(body.length), body]);
  return Buffer.concat([Buffer.from([22, 3, 1]), u16(message.length), message]);
}
