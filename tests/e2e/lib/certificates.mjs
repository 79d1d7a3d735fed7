// SPDX-License-Identifier: Apache-2.0
// Certificates for servers of the tests, signed by an authority that exists for one run.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** An authority in a directory of its own; `file` is its certificate, for whoever is to trust it. */
export function authority() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-ca-'));
  const file = path.join(directory, 'ca.pem');
  const key = path.join(directory, 'ca.key');
  const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  fs.chmodSync(directory, 0o755);
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=tests', '-keyout', key, '-out', file);
  return {
    file,
    /** { key, cert } of a server, for these names and addresses: ['DNS:a.test', 'IP:127.0.0.1']. */
    sign(names) {
      const own = path.join(directory, `${names.join('-').replace(/[^a-z0-9]/gi, '-')}`);
      openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=server', '-keyout', `${own}.key`, '-out', `${own}.csr`);
      fs.writeFileSync(`${own}.ext`, `subjectAltName=${names.join(',')}\n`);
      openssl('x509', '-req', '-in', `${own}.csr`, '-CA', file, '-CAkey', key, '-CAcreateserial', '-days', '2', '-extfile', `${own}.ext`, '-out', `${own}.pem`);
      return { key: fs.readFileSync(`${own}.key`), cert: fs.readFileSync(`${own}.pem`) };
    },
    remove: () => fs.rmSync(directory, { recursive: true, force: true }),
  };
}
