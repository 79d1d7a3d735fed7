// SPDX-License-Identifier: Apache-2.0
// Real programs behind an allowlist of one name: npm with the registry of this machine, apt with its sources.
// They need a network; without one a test says so and is skipped. A whole Vite app is built with E2E_FULL. And what a sandbox may reach that does not
// say so itself, which this daemon has settings for.
import assert from 'node:assert/strict';
import dns from 'node:dns/promises';
import fs from 'node:fs';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { suite } from './lib/suite.mjs';

const { instance, api, finish } = await suite('egress_programs', { args: ['--templates', 'host,browser', '--network', 'allowlist,browser=none', '--allow', '93.184.216.34:81,browser=10.0.0.5'] });
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const NO_PROXY = { http_proxy: '', https_proxy: '', HTTP_PROXY: '', HTTPS_PROXY: '' };

/** What a program on this machine prints, or null if it fails. */
function output(file, ...args) {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000, cwd: '/tmp' }).trim();
  } catch {
    return null;
  }
}

/** The one rule for a URL; where its server is on a private network, its addresses need rules too. */
async function rulesFor(text) {
  const url = new URL(text);
  const port = url.port || (url.protocol === 'https:' ? 443 : 80);
  const addresses = await dns.resolve4(url.hostname).catch(() => []);
  return addresses.length ? { target: `${url.hostname}:${port}`, allow: [`${url.hostname}:${port}`, ...addresses.map((address) => `${address}:${port}`)] } : null;
}

const reached = async (id) => (await api.request('GET', `/v1/sandboxes/${id}/network`)).json.reached;

test('npm installs packages through an allowlist of one name, with the proxy and without, and nothing else is reached', async (t) => {
  const registry = output('npm', 'config', 'get', 'registry');
  const rules = registry && output('npm', 'view', 'vite', 'version', '--fetch-retries=2', '--fetch-timeout=8000') && (await rulesFor(registry));
  if (!rules) return t.skip('not proven: no registry of npm can be reached from this machine');
  const env = { npm_config_registry: registry, npm_config_fetch_retries: '4', npm_config_fetch_retry_mintimeout: '1000', npm_config_update_notifier: 'false', npm_config_audit: 'false', npm_config_fund: 'false' };
  if (fs.existsSync(CERTIFICATES)) env.NODE_EXTRA_CA_CERTS = CERTIFICATES;
  const { id } = await api.create({ network: { mode: 'allowlist', allow: rules.allow }, env, resources: { memory: '2Gi', cpu: 2 } });
  await api.put(id, '/workspace/package.json', JSON.stringify({ name: 'app', private: true, type: 'module', devDependencies: process.env.E2E_FULL ? { vite: '^5' } : { 'left-pad': '1.3.0' } }));
  await api.put(id, '/workspace/index.html', '<!doctype html><script type="module" src="/main.js"></script>');
  await api.put(id, '/workspace/main.js', "document.title = 'built';\n");
  const installed = await api.exec(id, { command: 'npm install --cache /tmp/cache', timeout_ms: 300_000 });
  assert.equal(installed.exit_code, 0, installed.stderr);
  if (process.env.E2E_FULL) {
    const built = await api.exec(id, { command: 'npx vite build && grep -l built dist/assets/*.js', timeout_ms: 300_000 });
    assert.equal(built.exit_code, 0, built.stderr);
    assert.match(built.stdout, /dist\/assets\/.*\.js\s*$/);
  }
  const plain = await api.exec(id, { command: 'mkdir /tmp/plain && cd /tmp/plain && npm init -y >/dev/null && npm install --cache /tmp/other is-odd && node -p "require(\'is-odd\')(3)"', env: NO_PROXY, timeout_ms: 300_000 });
  assert.match(plain.stdout, /true\s*$/, plain.stderr);
  assert.deepEqual((await reached(id)).filter((rule) => !rules.allow.includes(rule) || rule === rules.target), [rules.target]);
  const other = await api.exec(id, { command: 'npm view is-even version --fetch-retries=0 --registry https://registry.example.org/', timeout_ms: 300_000 });
  assert.notEqual(other.exit_code, 0);
});

test('apt reads an archive and downloads a package through an allowlist of one name', async (t) => {
  const targets = output('apt-get', 'indextargets', '--format', '$(REPO_URI)|$(RELEASE)|$(COMPONENT)', 'Created-By: Packages') ?? '';
  const [uri, suite, component] = targets.split('\n')[0].split('|');
  const rules = uri && (await rulesFor(uri));
  if (!rules || output('curl', '-sfI', '-m', '10', '--retry', '2', '--retry-all-errors', `${uri.replace(/\/$/, '')}/dists/${suite}/InRelease`) === null) return t.skip('not proven: no archive of apt can be reached from this machine');
  const { id } = await api.create({ network: { mode: 'allowlist', allow: rules.allow } });
  await api.put(id, '/tmp/sources.list', `deb ${uri} ${suite} ${component}\n`);
  const apt = 'apt-get -o Dir::State=/tmp/state -o Dir::State::status=/tmp/status -o Dir::Cache=/tmp/cache -o Dir::Etc=/tmp -o Dir::Etc::SourceList=/tmp/sources.list -o Dir::Etc::SourceParts=- -o Dir::Etc::TrustedParts=/usr/share/keyrings/ -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o Acquire::Retries=4';
  const command = `mkdir -p /tmp/state/lists/partial /tmp/cache/archives/partial && touch /tmp/status && cd /tmp && ${apt} update && ${apt} download hostname && dpkg-deb --field hostname_*.deb Package`;
  const result = await api.exec(id, { command, timeout_ms: 300_000 });
  assert.equal(result.exit_code, 0, `${result.stdout}${result.stderr}`);
  assert.match(result.stdout, /^hostname$/m);
  assert.deepEqual((await reached(id)).filter((rule) => !rules.allow.includes(rule) || rule === rules.target), [rules.target]);
});

test('what a sandbox does not say itself, the settings say for its template, and else for all', async () => {
  const network = async (body) => (await api.create(body)).network;
  assert.deepEqual(await network({}), { mode: 'allowlist', allow: ['93.184.216.34:81'] });
  assert.deepEqual(await network({ template: 'browser' }), { mode: 'none', allow: ['10.0.0.5'] });
  assert.deepEqual(await network({ network: { mode: 'internet' } }), { mode: 'internet', allow: ['93.184.216.34:81'] });
  assert.deepEqual(await network({ network: { allow: ['a.test'] } }), { mode: 'allowlist', allow: ['a.test'] });
  assert.deepEqual(await network({ network: { allow: [] } }), { mode: 'allowlist', allow: [] }, 'an empty list is a list');
  const { id } = await api.create({ template: 'browser', network: { mode: 'internet' } });
  assert.deepEqual((await api.patch(id, { network: { bandwidth: 4096 } })).json.network, { mode: 'none', allow: ['10.0.0.5'], bandwidth: 4096 });
  for (const [args, words] of [[['--network', 'some'], /none, allowlist or internet/], [['--network', 'none,nobody=none'], /no template "nobody"/], [['--allow', 'no name'], /no name, address or network/]]) {
    assert.match((await instance.refusal(args)).said, words);
  }
});

finish();
