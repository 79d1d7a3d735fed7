// SPDX-License-Identifier: Apache-2.0
// A real package manager behind an allowlist of one name: the registry that npm on this machine uses. It
// needs a network; without one the test says so and is skipped.
import assert from 'node:assert/strict';
import dns from 'node:dns/promises';
import fs from 'node:fs';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { suite } from './lib/suite.mjs';

const { api, finish } = await suite('egress_npm');
const PACKAGE = 'is-odd';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

function registry() {
  try {
    return new URL(execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim());
  } catch {
    return null;
  }
}

async function isReachable(url) {
  try {
    execFileSync('npm', ['view', PACKAGE, 'version', '--fetch-retries=0', '--fetch-timeout=8000'], { stdio: 'ignore', timeout: 20_000 });
    return (await dns.resolve4(url.hostname)).length > 0;
  } catch {
    return false;
  }
}

test('npm installs through an allowlist of one name, with the proxy and without, and nothing else is reached', async (t) => {
  const url = registry();
  if (!url || !(await isReachable(url))) return t.skip('not proven: no registry of npm can be reached from this machine');
  const target = `${url.hostname}:${url.port || (url.protocol === 'https:' ? 443 : 80)}`;
  // Where the registry is a mirror on a private network, its addresses need rules too.
  const addresses = (await dns.resolve4(url.hostname)).map((address) => `${address}:${target.split(':')[1]}`);
  const env = { npm_config_registry: url.href, npm_config_fetch_retries: '0', npm_config_update_notifier: 'false', npm_config_audit: 'false', npm_config_fund: 'false' };
  if (fs.existsSync(CERTIFICATES)) env.NODE_EXTRA_CA_CERTS = CERTIFICATES;
  const { id } = await api.create({ network: { mode: 'allowlist', allow: [target, ...addresses] }, env, resources: { memory: '1Gi', cpu: 2 } });
  const install = (name, extra = {}) => api.exec(id, { command: `mkdir -p /tmp/${name} && cd /tmp/${name} && npm init -y >/dev/null && npm install --cache /tmp/cache-${name} ${PACKAGE} && node -p "require('${PACKAGE}')(3)"`, env: extra, timeout_ms: 120_000 });
  const proxied = await install('proxied');
  assert.equal(proxied.exit_code, 0, proxied.stderr);
  assert.match(proxied.stdout, /true\s*$/);
  const plain = await install('plain', { http_proxy: '', https_proxy: '', HTTP_PROXY: '', HTTPS_PROXY: '' });
  assert.equal(plain.exit_code, 0, plain.stderr);
  const report = (await api.request('GET', `/v1/sandboxes/${id}/network`)).json;
  assert.deepEqual(report.reached, [target]);
  const other = await api.exec(id, { command: 'npm view is-even version --registry https://registry.example.org/', timeout_ms: 60_000 });
  assert.notEqual(other.exit_code, 0);
});

finish();
