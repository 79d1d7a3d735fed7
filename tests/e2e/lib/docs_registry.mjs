// SPDX-License-Identifier: Apache-2.0
// The registry of the machine on which guides are run: it has the images that they name, with programs that say what
// the real ones say. Writes its address to the file that it is given.
import fs from 'node:fs';

import { busybox, image, registryServer } from './images.mjs';

const python = [...busybox(), { name: 'bin/python3', data: '#!/bin/sh\necho Python 3.12.0\n', mode: 0o755 }];
/** One whose program takes connections, and has programs that ask it whether it does. */
const server = (port, ...programs) => image([[...busybox(), ...programs]], { config: { Env: ['PATH=/bin'], Cmd: ['sh', '-c', `while :; do busybox nc -l -p ${port} < /dev/null > /dev/null; done`] } });
const { host } = await registryServer({
  'library/python:3.12-slim': image([python], { config: { Env: ['PATH=/bin'] } }),
  'library/node:20-slim': image([busybox()], { config: { Env: ['PATH=/bin'] } }),
  'library/postgres:15': server(5432, { name: 'bin/pg_isready', data: '#!/bin/sh\nexec busybox nc 127.0.0.1 5432 < /dev/null\n', mode: 0o755 }),
  'library/redis:7': server(6379),
});
fs.writeFileSync(process.argv[2], host);
