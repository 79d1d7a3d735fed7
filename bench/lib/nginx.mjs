// SPDX-License-Identifier: Apache-2.0
// A private nginx that stores (PUT, dav module: temporary file, then rename) and serves (sendfile) one
// directory on the disk of the sandboxes.
import { mkdirSync, writeFileSync } from 'node:fs'
import { startService, waitFor, freePort, logTail } from './host.mjs'

export async function startNginx(undo, scratch) {
  const dir = `${scratch}/nginx`
  const port = await freePort()
  mkdirSync(`${dir}/files`, { recursive: true })
  writeFileSync(`${dir}/nginx.conf`, `
daemon off;
user root;
worker_processes auto;
pid ${dir}/nginx.pid;
error_log ${dir}/error.log;
events {}
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`).join(' ')}
  server {
    listen 127.0.0.1:${port};
    root ${dir}/files;
    dav_methods PUT DELETE;
  }
}
`)
  const service = startService(undo, 'nginx', ['/usr/sbin/nginx', '-p', dir, '-c', `${dir}/nginx.conf`, '-e', `${dir}/error.log`], `${scratch}/nginx.log`)
  const url = `http://127.0.0.1:${port}`
  await waitFor('nginx', async () => {
    if (service.ended !== null) throw new Error(`nginx ended (${service.ended}):\n${logTail(service.log)}\n${logTail(`${dir}/error.log`)}`)
    try { await (await fetch(url)).text(); return true } catch { return false }
  })
  return { url, files: `${dir}/files` }
}
