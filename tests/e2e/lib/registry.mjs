// SPDX-License-Identifier: Apache-2.0
// The registries that this machine's npm and pip use, and what a sandbox has to be told so that it reaches them: they
// may be at addresses that are not public, behind certificates of their own.
import dns from 'node:dns/promises';
import fs from 'node:fs';
import { execFileSync } from 'node:child_process';

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** What a program of this machine prints, or null if it fails. */
function output(file, ...args) {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 20_000, cwd: '/tmp' }).trim();
  } catch {
    return null;
  }
}

/** Rules for servers; null if one is not found. */
async function rulesFor(hosts) {
  const found = await Promise.all([...new Set(hosts)].map(async (host) => [host, await dns.resolve4(host).catch(() => [])]));
  if (found.some(([, addresses]) => addresses.length === 0)) return null;
  return found.flatMap(([host, addresses]) => [host, ...addresses]).map((target) => `${target}:443`);
}

/** {network, env} of a sandbox that installs packages, or null if there is no registry. */
export async function registryAccess() {
  const npm = output('npm', 'config', 'get', 'registry');
  const pip = output('/usr/bin/python3', '-c', 'from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)');
  if (!npm || !pip || !output('npm', 'view', 'left-pad', 'version', '--fetch-retries=0', '--fetch-timeout=8000')) return null;
  const allow = await rulesFor([new URL(npm).hostname, ...pip.split(' ')]);
  return allow && { network: { mode: 'allowlist', allow }, env: { npm_config_registry: npm, ...(fs.existsSync(CERTIFICATES) && { NODE_EXTRA_CA_CERTS: CERTIFICATES }) } };
}
