// SPDX-License-Identifier: Apache-2.0
// Certificates for servers of the tests, signed by an authority that exists for one run.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { accountOf } from './account.mjs';

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });

/** Lets the daemon's user read a file, and others not. */
export function lend(file) {
  const { uid, gid } = process.env.E2E_USER ? accountOf(process.env.E2E_USER) : { ...accountOf('sandlot'), uid: 0 };
  fs.chownSync(file, uid, gid);
  fs.chmodSync(file, 0o640);
}

/** An authority in a directory of its own; `file` is its certificate, for whoever is to trust it. */
export function authority() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sandlot-ca-'));
  const inside = (name) => path.join(directory, name);
  const file = inside('ca.pem');
  fs.chmodSync(directory, 0o755);
  openssl('req', '-x509', ...EC, '-days', '2', '-subj', '/CN=tests', '-keyout', inside('ca.key'), '-out', file);

  /** Files { certificate, key } as an operator has them, for these names and addresses: ['DNS:a.test', 'IP:127.0.0.1']. */
  function issue(subject, names, { days = 30, key = EC } = {}) {
    const files = { certificate: inside(`${subject}.pem`), key: inside(`${subject}.key`) };
    openssl('req', '-x509', ...key, '-CA', file, '-CAkey', inside('ca.key'), '-days', String(days), '-subj', `/CN=${subject}`,
      '-addext', `subjectAltName=${names.join(',')}`, '-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', files.key, '-out', files.certificate);
    lend(files.key);
    return files;
  }

  /** { key, cert } of a server. */
  function sign(names) {
    const { certificate, key } = issue(names.join('-').replace(/[^a-z0-9]/gi, '-').slice(0, 60), names);
    return { key: fs.readFileSync(key), cert: fs.readFileSync(certificate) };
  }

  return { file, pem: fs.readFileSync(file, 'utf8'), inside, issue, sign, remove: () => fs.rmSync(directory, { recursive: true, force: true }) };
}
