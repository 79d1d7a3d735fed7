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
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000, cwd: '/tmp' }).trim();
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

const registries = {
  /** Its hosts, or null: npm asks for a package as the sandbox will. */
  npm() {
    const url = output('npm', 'config', 'get', 'registry');
    return url && output('npm', 'view', 'left-pad', 'version', '--fetch-retries=2', '--fetch-timeout=8000') && { hosts: [new URL(url).hostname], env: { npm_config_registry: url } };
  },
  pip() {
    const [url, ...hosts] = (output('/usr/bin/python3', '-c', 'from pip._internal.models.index import PyPI; print(PyPI.simple_url, PyPI.netloc, PyPI.file_storage_domain)') ?? '').split(' ');
    return url && output('curl', '-sfL', '-m', '10', '--retry', '2', '--retry-all-errors', '-o', '/dev/null', '-w', 'it is there', `${url.replace(/\/$/, '')}/six/`) && { hosts, env: {} };
  },
};

/** {network, env} of a sandbox that installs packages of all these kinds (npm, pip), or null if one cannot be had. */
export async function registryAccess(...kinds) {
  const found = kinds.map((kind) => registries[kind]());
  const allow = found.every(Boolean) && await rulesFor(found.flatMap(({ hosts }) => hosts));
  return allow && { network: { mode: 'allowlist', allow }, env: Object.assign({}, ...found.map(({ env }) => env), fs.existsSync(CERTIFICATES) && { NODE_EXTRA_CA_CERTS: CERTIFICATES }) };
}

/** Where pip looks for packages. */
export const pipIndex = () => output('/usr/bin/python3', '-c', 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)');

/** Whether the packages of Debian in the template of the host have these modules of Python. */
export const debianHas = (modules) => output('/usr/bin/python3', '-I', '-c', `import ${modules.join(', ')}; print("all")`) === 'all';
