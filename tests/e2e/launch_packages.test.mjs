// SPDX-License-Identifier: Apache-2.0
// Packages of apps that are launched: installed once, and copied from a layer by the next launch of the same owner, by
// real pip and npm with packages of a server of our own. Also why installing fails.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Launches } from './lib/launches.mjs';
import { ownerApi } from './lib/owners.mjs';
import { packageServer } from './lib/packages.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const server = await packageServer();
const { api, finish } = await suite('launch_packages', { args: server.args });
const NODE_APP = (lock) => ({
  'package.json': JSON.stringify({ name: 'app', version: '1.0.0', scripts: { start: 'node server.js' }, dependencies: { 'tiny-two': '^2.0.0' } }),
  'package-lock.json': lock,
  'server.js': "require('node:http').createServer((q, s) => s.end(require('tiny-two').word)).listen(process.env.PORT, '127.0.0.1');\n",
});
const PYTHON_APP = {
  'requirements.txt': 'tiny-one==1.0.0\n',
  'main.py': 'import os, tiny_one\nfrom http.server import BaseHTTPRequestHandler, HTTPServer\nclass H(BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200); self.end_headers(); self.wfile.write(tiny_one.word.encode())\nHTTPServer(("127.0.0.1", int(os.environ["PORT"])), H).serve_forever()\n',
};

const launches = new Launches(api);
// pip and npm of a sandbox are told of the server by variables, as builders are by the daemon's settings.
const [index, registry] = ['--pip-index', '--npm-registry'].map((name) => server.args[server.args.indexOf(name) + 1]);
const ENV = { PIP_INDEX_URL: index, PIP_TRUSTED_HOST: new URL(index).host, npm_config_registry: registry };

/** A new project whose sandboxes know the server. */
async function project(who, files) {
  const made = await who.project(files);
  const changed = await who.api.request('PATCH', `/v1/projects/${made.id}`, { json: { defaults: { environment_config: { env_vars: ENV } } } });
  assert.equal(changed.status, 200, changed.text);
  return made;
}

/** A launch of files in a project and sandbox of their own, with what its stages said. */
async function launch(files, who = launches) {
  const { id } = await project(who, files);
  const launched = await who.launch({ project: id });
  who.assertRuns(launched);
  const { text } = await who.api.request('GET', `/v1/launches/${launched.id}/events`);
  return { ...launched, project: id, said: text };
}

/** Until no layer is being made any more. */
async function idle(who) {
  await until(async () => (await who.request('GET', '/v1/jobs', { query: { kind: 'dependencies' } })).json.jobs.every(({ status, state }) => !['queued', 'running'].includes(status ?? state)), { what: 'the layer' });
}

const COPIED = /are copied from a layer that an earlier launch made/;

test('a second launch with the same lock file copies the packages, without a registry, and has them for itself', async () => {
  const files = NODE_APP(server.lock('2.0.0'));
  const first = await launch(files);
  assert.doesNotMatch(first.said, COPIED);
  assert.match(first.said, /a layer of the packages of backend is made when this launch is over/);
  await idle(api);
  let second;
  await server.unasked(async () => { second = await launch(files); });
  assert.match(second.said, COPIED);
  assert.equal(await launches.page(second), 'two 2.0.0');
  await api.put(second.sandbox_id, '/workspace/app/node_modules/tiny-two/main.js', "exports.word = 'changed';\n");
  // Nobody notes what is edited there, so the stage is named that runs in any case.
  const again = await launches.ended((await api.request('POST', `/v1/launches/${second.id}/retry`, { json: { from: 'LaunchBackend' } })).json.id);
  launches.assertRuns(again);
  assert.equal(await launches.page(again), 'changed', 'the copy is its own');
  const third = await launch(files);
  assert.equal(await launches.page(third), 'two 2.0.0', 'and of nobody else');
  const other = await launch(NODE_APP(server.lock('2.1.0')));
  assert.doesNotMatch(other.said, COPIED);
  assert.equal(await launches.page(other), 'two 2.1.0', 'another lock file has other packages');
  await idle(api);
  for (const one of [first, second, third, other]) await launches.remove(one, one.project);
});

test('packages of Python are copied into the environment of the app, with their programs', async () => {
  const first = await launch(PYTHON_APP);
  assert.equal(await launches.page(first), 'one 1.0.0');
  await idle(api);
  let second;
  await server.unasked(async () => { second = await launch(PYTHON_APP); });
  assert.match(second.said, COPIED);
  assert.equal(await launches.page(second), 'one 1.0.0');
  const { stdout } = await api.exec(second.sandbox_id, { command: '.venv/bin/tiny-one-tool; .venv/bin/python3 -m pip list | grep tiny', cwd: '/workspace/app' });
  assert.match(stdout, /^one 1\.0\.0\ntiny-one +1\.0\.0\n$/);
  for (const one of [first, second]) await launches.remove(one, one.project);
});

test('what one owner installed is not given to another', async () => {
  const mallory = new Launches(await ownerApi(api, 'mallory', 'm'));
  const launched = await launch(NODE_APP(server.lock('2.0.0')), mallory);
  assert.doesNotMatch(launched.said, COPIED);
  await idle(mallory.api);
  await mallory.remove(launched, launched.project);
});

/** Each is installed in its sandbox, and the launch says why no layer is made of it. */
const ALONE = [
  ['without a lock file', (files) => { delete files['package-lock.json']; }, /not shared: there is no package-lock\.json/],
  ['with scripts of its own', (files) => { files['package.json'] = files['package.json'].replace('"scripts":{', '"scripts":{"postinstall":"true",'); }, /not shared: package\.json has scripts/],
  ['with an .npmrc', (files) => { files['.npmrc'] = 'fund=false\n'; }, /not shared: there is an \.npmrc/],
];
for (const [name, change, said] of ALONE) {
  test(`an app ${name} has its packages installed in its own sandbox`, async () => {
    const files = NODE_APP(server.lock('2.0.0'));
    change(files);
    const launched = await launch(files);
    assert.match(launched.said, said);
    assert.doesNotMatch(launched.said, COPIED);
    await launches.remove(launched, launched.project);
  });
}

test('a sandbox with packages of its own keeps them, and the app has its packages installed', async () => {
  const { id } = await project(launches, NODE_APP(server.lock('2.0.0')));
  const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { dependencies: { python: ['tiny-one'] } } });
  assert.equal(made.status, 201, made.text);
  await idle(api);
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.match((await api.request('GET', `/v1/launches/${launched.id}/events`)).text, /no shared layer is used: the sandbox has packages of its own/);
  assert.equal((await api.exec(made.json.id, { command: 'python3 -c "import tiny_one; print(tiny_one.word)"' })).stdout, 'one 1.1.0\n');
  await launches.remove(launched, id);
});

const SERVE = 'class H(BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200); self.end_headers(); self.wfile.write(word.encode())\nHTTPServer(("127.0.0.1", int(os.environ["PORT"])), H).serve_forever()\n';
const PYTHON = (imports, word) => `import os\n${imports}\nfrom http.server import BaseHTTPRequestHandler, HTTPServer\nword = ${word}\n${SERVE}`;
const BUILD = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n';

test('what pyproject.toml needs is installed, also of an app that cannot be built as a package', async () => {
  const launched = await launch({
    'pyproject.toml': `${BUILD}[project]\nname = "app"\nversion = "1"\ndependencies = ["tiny-one==1.0.0"]\n`,
    'main.py': PYTHON('import tiny_one', 'tiny_one.word'), 'alpha/__init__.py': '', 'beta/__init__.py': '',
  });
  assert.equal(await launches.page(launched), 'one 1.0.0');
  assert.match(launched.said, /the app itself is not installed as a package: it runs from its files/);
  await launches.remove(launched, launched.project);
});

test('an app that is a package is known by its name from where it is, so a launch after an edit shows it', async () => {
  const { id } = await launches.project({
    'pyproject.toml': `${BUILD}[project]\nname = "shop"\nversion = "1"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n`,
    'main.py': PYTHON('from shop.words import word', 'word'), 'src/shop/__init__.py': '', 'src/shop/words.py': 'word = "first"\n',
  });
  // Its build backend is that of the template. (pip reads this as it is meant, not as it is written: "no" is "off".)
  const changed = await api.request('PATCH', `/v1/projects/${id}`, { json: { defaults: { environment_config: { env_vars: { PIP_NO_BUILD_ISOLATION: 'no' } } } } });
  assert.equal(changed.status, 200, changed.text);
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.equal(await launches.page(launched), 'first');
  await launches.upload(id, { 'src/shop/words.py': 'word = "second"\n' });
  const again = await launches.launch({ project: id });
  launches.assertRuns(again);
  assert.equal(await launches.page(again), 'second');
  await launches.remove(launched, id);
});

test('where Poetry is missing pip installs what it would, by ranges of pip', async () => {
  const launched = await launch({
    'pyproject.toml': '[tool.poetry]\nname = "app"\npackage-mode = false\n[tool.poetry.dependencies]\npython = "^3.9"\ntiny-one = "~1.0"\nleft-behind = { version = "*", optional = true }\n',
    'poetry.lock': '', 'main.py': PYTHON('import tiny_one', 'tiny_one.word'),
  });
  assert.equal(launched.detection.runtimes[0].package_manager, 'poetry');
  assert.equal(await launches.page(launched), 'one 1.0.0', 'not 1.1.0');
  await launches.remove(launched, launched.project);
});

/** What installs packages by which lock file, and how it is called; the program notes that in the place of packages. */
const INSTALLERS = [
  ['pnpm', 'pnpm-lock.yaml', 'node_modules', ['pnpm install']],
  ['yarn', 'yarn.lock', 'node_modules', ['yarn install']],
  ['bun', 'bun.lock', 'node_modules', ['bun install']],
  ['uv', 'uv.lock', '.venv', ['uv sync']],
  ['poetry', 'poetry.lock', '.venv', ['poetry install --no-root', 'poetry install --only-root']],
  ['pipenv', 'Pipfile.lock', '.venv', ['pipenv install --system']],
];

test('each lock file has its own program install the packages; one of npm that is missing is had by its name', async () => {
  const { id } = await api.create({ env: { PATH: '/workspace/bin:/usr/bin:/bin' } });
  const program = (name) => api.out(id, { command: `mkdir -p /workspace/bin && cat > /workspace/bin/${name} && chmod 755 /workspace/bin/${name}`,
    stdin: '#!/bin/sh\n[ -d .venv ] && place=.venv/calls || place=node_modules/calls\nmkdir -p "$(dirname $place)"\necho "$(basename "$0") $*" >> $place\n' });
  for (const name of [...INSTALLERS.map(([one]) => one), 'npx']) await program(name);
  const run = async (manager, lock, place, calls) => {
    const isNode = place === 'node_modules';
    await api.exec(id, 'rm -rf /workspace/app');
    const files = { [lock]: '', ...(isNode ? { 'package.json': '{"dependencies":{"left":"1"}}', 'server.js': "require('node:http').createServer((q, s) => s.end()).listen(process.env.PORT);\n" }
      : { [manager === 'pipenv' ? 'Pipfile' : 'pyproject.toml']: '', 'main.py': PYTHON('', '"up"') }) };
    for (const [name, text] of Object.entries(files)) await api.put(id, `/workspace/app/${name}`, text);
    const begun = await api.request('POST', `/v1/sandboxes/${id}/launch`, { json: {} });
    const launched = await launches.ended(begun.json.id);
    launches.assertRuns(launched);
    assert.equal(launched.detection.runtimes[0].package_manager, manager);
    assert.deepEqual((await api.out(id, `cat /workspace/app/${place}/calls`)).trim().split('\n'), calls);
  };
  for (const one of INSTALLERS) await run(...one);
  await api.out(id, 'rm /workspace/bin/pnpm');
  await run('pnpm', 'pnpm-lock.yaml', 'node_modules', ['npx --yes pnpm install']);
  await api.purge(id);
});

test('where no index of Python can be reached the packages of the template serve, and what it lacks is named', async () => {
  const files = { 'requirements.txt': 'six>=1.10\n', 'main.py': PYTHON('import six', 'f"six {six.PY3}"') };
  const { id } = await launches.project(files);
  const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { network: { mode: 'none' } } });
  assert.equal(made.status, 201, made.text);
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.equal(await launches.page(launched), 'six True');
  assert.match((await api.request('GET', `/v1/launches/${launched.id}/events`)).text, /already satisfied: six/);
  await launches.upload(id, { 'requirements.txt': 'six>=1.10\nleft-behind==1.0\n' });
  const missing = await launches.launch({ project: id });
  assert.deepEqual([missing.status, missing.error?.stage], ['failed', 'InstallDependencies'], JSON.stringify(missing.error));
  assert.match(missing.error.message + missing.error.lines.join('\n'), /left-behind==1\.0/);
  await launches.remove(launched, id);
});

test('packages of a project are those of its sandboxes at every start', async () => {
  const { id } = await launches.project({ 'a.txt': 'a' });
  const defaults = (packages) => api.request('PATCH', `/v1/projects/${id}`, { json: { defaults: { environment_config: { packages } } } });
  const sandbox = (await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: {} })).json.id;
  const word = async () => (await api.exec(sandbox, 'python3 -c "import tiny_one; print(tiny_one.word)"')).stdout.trim();
  assert.equal(await word(), '');
  for (const [packages, expected] of [[['tiny-one==1.0.0'], 'one 1.0.0'], [['tiny-one==1.1.0'], 'one 1.1.0']]) {
    assert.equal((await defaults(packages)).status, 200);
    await api.life(sandbox, 'stop');
    await api.life(sandbox, 'start');
    await until(async () => await word() === expected, { what: expected });
  }
  await api.purge(sandbox);
  assert.equal((await api.request('DELETE', `/v1/projects/${id}`)).status, 204);
});

test('a refused connection is the cause only if the program that failed says so', async () => {
  const LOOK = "require('node:https').get('https://updates.test/', () => {}).on('error', () => {})";
  const cases = [
    [`node -e "${LOOK}"; exec sleep 600`, { timeouts: { install_s: 20 } }, 'install_timeout', /took longer than 20 s; meanwhile the network policy refused updates\.test/],
    [`node -e "${LOOK}"; echo connect ECONNREFUSED; exit 1`, {}, 'network_refused', /refused updates\.test/],
    [`node -e "${LOOK}"; echo a script has failed; exit 1`, {}, 'failed', /its program failed; meanwhile/],
  ];
  // Beside each other: the first has as long as node needs to begin on a crowded machine.
  await Promise.all(cases.map(async ([install, more, code, message]) => {
    const { id } = await launches.project({ 'server.js': 'setInterval(() => {}, 1000);\n' });
    const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { network: { mode: 'allowlist', allow: ['nowhere.test:443'] } } });
    assert.equal(made.status, 201, made.text);
    const launched = await launches.launch({ project: id, backend: { install }, ...more });
    assert.deepEqual([launched.error?.stage, launched.error?.code], ['InstallDependencies', code], JSON.stringify(launched.error));
    assert.match(launched.error.message, message);
    await launches.remove(launched, id);
  }));
});

test('packages are installed again when a file changes that requirements.txt names', async () => {
  const { id } = await project(launches, { 'requirements.txt': '-r more/base.txt\n', 'more/base.txt': '# none\n', 'main.py': PYTHON_APP['main.py'].replace('tiny_one.word', '"none"').replace(', tiny_one', '') });
  const first = await launches.launch({ project: id });
  launches.assertRuns(first);
  await launches.upload(id, { 'more/base.txt': PYTHON_APP['requirements.txt'], 'main.py': PYTHON_APP['main.py'] });
  const second = await launches.launch({ project: id });
  launches.assertRuns(second);
  assert.equal(second.stages[3].status, 'complete');
  await launches.remove(first, id);
});

finish();
test('the server ends', () => server.close());
