// SPDX-License-Identifier: Apache-2.0
// nginx as an operator puts it before the daemon: TLS ends there, on a port of its own; Host stays as it is, sockets and
// streams of events are passed on. docs/console.md has the same lines.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { until } from './wait.mjs';

const freePort = () => new Promise((resolve, reject) => {
  const server = net.createServer().on('error', reject).listen(0, '127.0.0.1', () => { const { port } = server.address(); server.close(() => resolve(port)); });
});

/** A proxy that is told where the daemon is when that has a port: start(port). `files`: { certificate, key }. */
export async function tlsProxy({ certificate, key }) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'nginx-'));
  const port = await freePort();
  let child;
  const start = async (daemon) => {
    fs.writeFileSync(path.join(home, 'nginx.conf'), `
daemon off;
user root;
pid ${home}/nginx.pid;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${home}/${name};`).join(' ')}
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};
    client_max_body_size 0;
    location / {
      proxy_pass http://127.0.0.1:${daemon};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`);
    child = spawn('/usr/sbin/nginx', ['-p', home, '-c', `${home}/nginx.conf`, '-e', `${home}/error.log`], { stdio: 'ignore' });
    await until(() => {
      if (child.exitCode !== null) throw new Error(`nginx ended: ${fs.readFileSync(`${home}/error.log`, 'utf8')}`);
      return new Promise((resolve, reject) => { const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); }).on('error', reject); });
    }, { what: 'nginx listens' });
  };
  const close = async () => {
    if (child && child.exitCode === null) await new Promise((resolve) => { child.on('exit', resolve); child.kill('SIGTERM'); });
    fs.rmSync(home, { recursive: true, force: true });
  };
  return { port, start, close };
}
