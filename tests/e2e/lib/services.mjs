// SPDX-License-Identifier: Apache-2.0
// PostgreSQL and Redis of the host's packages as images, so that templates of the catalogue's names can be had without a
// network. What runs them is the catalogue's own program.
import { execFileSync } from 'node:child_process';
import assert from 'node:assert/strict';
import fs from 'node:fs';

import { busybox, image, layoutArchive } from './images.mjs';

const PG = 'usr/lib/postgresql/15';
const program = (name) => ({ name: `bin/${name}`, mode: 0o755, data: fs.readFileSync(new URL(`../../../src/core/template/${name}.sh`, import.meta.url)) });
const TOOLS = ['mktemp', 'mv', 'sed', 'printf', 'sha256sum'].map((name) => ({ name: `bin/${name}`, type: 'symlink', target: 'busybox' }));
const USER = { name: 'etc/passwd', data: 'root:x:0:0:root:/root:/bin/sh\nservice:x:1000:1000::/tmp:/bin/sh\n' };

/** Files of the host with the libraries that its programs need. */
function layer(programs, more = []) {
  const libraries = programs.flatMap((one) => execFileSync('ldd', [`/${one}`], { encoding: 'utf8' }).match(/\/\S+(?= \(0x)/g));
  const names = [...new Set([...programs, ...more, ...libraries.map((one) => one.slice(1))])];
  return execFileSync('tar', ['-C', '/', '-chf', '-', ...names], { maxBuffer: 1 << 30 });
}

async function put(api, name, layers, config) {
  const body = layoutArchive(image([busybox(), ...layers], { config, compress: (data) => data }));
  const answer = await api.request('PUT', `/v1/templates/${name}/archive`, { body, headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
}

const bring = (api, name, layers, start, port) => put(api, name, [[...TOOLS, USER, program(start)], ...layers],
  { Cmd: [`/bin/${start}`], User: '1000', ExposedPorts: { [`${port}/tcp`]: {} }, Env: ['PATH=/bin:/usr/bin'] });

export const bringRedis = (api) => bring(api, 'redis7', [layer(['usr/bin/redis-server'])], 'start_redis', 6379);
export const bringPostgres = (api) => bring(api, 'postgres15', [layer(['postgres', 'initdb'].map((one) => `${PG}/bin/${one}`),
  [`${PG}/lib/plpgsql.so`, `${PG}/lib/dict_snowball.so`, 'usr/share/postgresql/15', 'usr/share/zoneinfo/UTC', 'usr/lib/locale/C.utf8'])], 'start_postgres', 5432);
/** An image with the clients of both. */
export const bringClients = (api, name) => put(api, name, [[...TOOLS, USER], layer([`${PG}/bin/psql`, 'usr/bin/redis-cli'])], { User: '1000', Env: [`PATH=/bin:/usr/bin:/${PG}/bin`] });
