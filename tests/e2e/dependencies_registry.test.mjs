// SPDX-License-Identifier: Apache-2.0
// Packages of the registries that this machine's pip and npm use, with E2E_FULL. They need a network; without one the
// test says so and is skipped. dependencies.test.mjs does the same with a server of its own.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { registryAccess } from './lib/registry.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const NODE = ['left-pad', 'is-odd', 'ms', 'semver', 'chalk', 'commander', 'debug', 'express', 'lodash', 'uuid', 'yargs', 'glob', 'rimraf', 'mkdirp', 'minimist', 'async', 'dayjs', 'axios', 'ws', 'zod'];
const PYTHON = ['requests', 'PyYAML', 'six>=1.10,<2'];

if (!process.env.E2E_FULL) {
  test('20 packages of npm and some of pip are installed once, then they are there without a network', { skip: 'with E2E_FULL' });
} else {
  const { api, finish } = await suite('dependencies_registry');

  test('20 packages of npm and some of pip are installed once, then they are there without a network', async (t) => {
    const access = await registryAccess('npm', 'pip');
    if (!access) return t.skip('not proven: no registry can be reached from this machine');
    const { id } = await api.create(access);
    const path = (one) => `/v1/sandboxes/${one}/dependencies`;
    assert.equal((await api.request('POST', path(id), { json: { python: PYTHON, node: NODE } })).status, 202);
    let found;
    await until(async () => !['queued', 'running'].includes((found = (await api.request('GET', path(id))).json).status), { what: 'the packages', timeout_ms: 600_000 });
    assert.deepEqual([found.status, found.error], ['succeeded', null]);
    for (const name of NODE) assert.match(found.installed.node[name], /^\d+\.\d+\.\d+/, name);
    assert.ok(Object.keys(found.installed.node).length > 60, 'with what they need');
    assert.match(found.installed.python.requests, /^2\./);
    const look = { command: 'python3 -c "import requests, yaml, six; print(requests.get.__name__, yaml.safe_load(\'a: 7\'))" && node -e "console.log(require(\'left-pad\')(7, 3, 0), typeof require(\'express\')())" && semver 1.2.3' };
    const expected = "get {'a': 7}\n007 function\n1.2.3\n";
    assert.equal((await api.exec(id, look)).stdout, expected);
    const second = await api.create({ network: { mode: 'none' }, env: access.env, dependencies: { python: PYTHON, node: NODE } });
    assert.equal((await api.exec(second.id, look)).stdout, expected);
    assert.deepEqual((await api.request('GET', path(second.id))).json.installed, found.installed);
    await api.purge(id);
    await api.purge(second.id);
  });

  finish();
}
