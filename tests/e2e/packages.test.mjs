// SPDX-License-Identifier: Apache-2.0
// Real packages: a Debian made of them, names of the catalogue without any image registry, and apt, pip and npm in builds
// and in running sandboxes. All of it needs the mirrors that this machine's own programs use; where these cannot be
// reached a test says so and is skipped. The whole catalogue is built with E2E_FULL.
import assert from 'node:assert/strict';
import dns from 'node:dns/promises';
import fs from 'node:fs';
import path from 'node:path';
import { execFile, execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { assertError } from './lib/client.mjs';
import { BUILD_DIR, REPOSITORY } from './lib/instance.mjs';
import { Launches } from './lib/launches.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const FULL = process.env.E2E_FULL;
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const LONG = { timeout_ms: 900_000 };

/** What a program of this machine prints, or null if it fails. */
function output(file, ...args) {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000, cwd: '/tmp' }).trim();
  } catch {
    return null;
  }
}

const answers = (url) => output('curl', '-sfIL', '-m', '10', '--retry', '2', '--retry-all-errors', url) !== null;
/** Where a server is now, as rules: registries may be at addresses that no sandbox reaches unless it is told. */
async function rulesFor(...urls) {
  const rules = await Promise.all(urls.map(async (text) => {
    const url = new URL(text);
    const port = url.port || (url.protocol === 'https:' ? 443 : 80);
    return (await dns.resolve4(url.hostname)).map((address) => `${address}:${port}`);
  }));
  return [...new Set(rules.flat())];
}

const apt = (output('apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Release: bookworm') ?? '').split('\n')[0].replace(/\/$/, '');
const pip = output('python3', '-m', 'pip', 'config', 'get', 'global.index-url') ?? output('/usr/bin/python3', '-c', 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)') ?? '';
const npm = (output('npm', 'config', 'get', 'registry') ?? '').replace(/\/$/, '');
const go = (output('go', 'env', 'GOPROXY') || 'https://proxy.golang.org').split(/[,|]/)[0].replace(/\/$/, '');
const MODULE = `${go}/github.com/kluctl/go-embed-python/@v/v0.0.0-3.12.3-20240415-1.info`;
const why = !output('mmdebstrap', '--version') ? 'mmdebstrap is not installed' : !apt || !answers(`${apt}/dists/bookworm/InRelease`) ? 'no archive of apt can be reached' : !pip || !answers(`${pip.replace(/\/$/, '')}/six/`) ? 'no index of pip can be reached' : null;
const skip = why ? `not proven: ${why} from this machine` : false;

// Nothing listens there: a registry that cannot be reached.
const args = ['--registry', '127.0.0.1:9', '--registry-allow', '127.0.0.1:9', '--pip-index', pip, '--npm-registry', npm, '--go-proxy', go];
if (fs.existsSync(CERTIFICATES)) args.push('--package-ca', CERTIFICATES);
const { instance, api, finish } = await suite('packages', { args });

async function built(name) {
  let found;
  await until(async () => (found = (await api.request('GET', `/v1/templates/${name}`)).json).status !== 'building', { what: `${name} is built`, ...LONG });
  return found;
}

async function make(json) {
  const answer = await api.request('POST', '/v1/templates', { json });
  assert.equal(answer.status, 202, answer.text);
  const made = await built(json.name);
  assert.deepEqual([made.status, made.error], ['ready', null], await logOf(json.name));
  return made;
}

/** Has a name of the catalogue made. */
async function bring(name) {
  assert.equal((await api.request('POST', `/v1/templates/${name}/build`, { json: {} })).status, 202);
  const made = await built(name);
  assert.deepEqual([made.status, made.error, made.source], ['ready', null, 'catalogue'], await logOf(name));
  return made;
}

async function logOf(name) {
  const { text } = await api.request('GET', `/v1/templates/${name}/log`, { headers: { accept: 'text/event-stream' } });
  return text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)).data ?? '').join('');
}

/** A sandbox that reaches the mirrors, with certificates for them. */
async function open(template, more = {}) {
  const { id } = await api.create({ template, network: { mode: 'internet', allow: await rulesFor(apt, pip, npm) }, ...more });
  if (fs.existsSync(CERTIFICATES)) await api.put(id, '/tmp/ca.crt', fs.readFileSync(CERTIFICATES));
  return id;
}
const trusting = { PIP_CERT: '/tmp/ca.crt', NODE_EXTRA_CA_CERTS: '/tmp/ca.crt' };
const root = (command) => ({ command, user: 'root', env: { ...trusting, DEBIAN_FRONTEND: 'noninteractive', PIP_INDEX_URL: pip, NPM_CONFIG_REGISTRY: npm }, timeout_ms: 600_000 });

test('a bootstrap that cannot be is refused before anything is done', async () => {
  for (const bootstrap of [{}, { suite: '' }, { suite: 'Bookworm' }, { suite: '../x' }, { suite: '-x' }, { suite: 'bookworm', packages: ['-o'] }, { suite: 'bookworm', mirror: 'x' }]) assertError(await api.request('POST', '/v1/templates', { json: { name: 'bad', bootstrap } }), [400]);
  assertError(await api.request('GET', '/v1/templates/bad'), [404]);
});

test('where no registry can be reached, a name of the catalogue is made of Debian\'s packages', { skip }, async () => {
  const made = await bring('python-basic');
  assert.deepEqual([made.version, made.image, made.user], [1, null, null]);
  const log = await logOf('python-basic');
  assert.match(log, /^python:3.11-slim cannot be had: read from 127.0.0.1:9: /m);
  assert.match(log, /^so it is made of Debian's packages$/m);
  assert.match(log, /^deb \S+ bookworm main/m);
});

test('it is a Debian as dpkg knows it, with nothing of the host', { skip }, async () => {
  const { id } = await api.create({ template: 'python-basic', network: { mode: 'none' } });
  const { stdout, stderr } = await api.exec(id, root('id -u; cat /etc/debian_version; dpkg --audit; dpkg --verify | grep -vE " (/usr/share/(doc|info|man|locale)/|/var/lib/apt/lists/partial)"; python -V; cat /usr/sbin/policy-rc.d | tail -n 1; ls /var/lib/sandlot-bootstrap /tmp/sandlot-ca.crt 2>/dev/null; getent passwd _apt | cut -d: -f1'));
  assert.match(stdout, /^0\n12\.\d+\nPython 3\.11\.\d+\nexit 101\n_apt\n$/, stderr);
  await api.purge(id);
});

test('a recipe installs a package of PyPI on it, and another build takes the Debian from the cache', { skip }, async () => {
  await make({ name: 'with-six', recipe: { from: 'python-basic', pip: ['six==1.16.0'] } });
  const { id } = await api.create({ template: 'with-six', network: { mode: 'none' } });
  assert.equal(await api.out(id, { command: 'python3 -c "import six; print(six.__version__)"' }), '1.16.0\n');
  await api.purge(id);
  await make({ name: 'plain', bootstrap: { suite: 'bookworm' } });
  assert.match(await logOf('plain'), /of the suite bookworm, from its packages\ntaken from the cache$/m);
});

test('apt-get and pip install into a running sandbox, as its root', { skip }, async () => {
  const id = await open('python-basic');
  const installed = await api.exec(id, root('apt-get update && apt-get install -y --no-install-recommends hello && hello; dpkg --audit'));
  assert.match(installed.stdout, /Hello, world!\n$/, installed.stderr);
  assert.deepEqual(installed.termination.denied, []);
  const six = await api.exec(id, root('pip install --quiet six && python3 -c "import six; print(six.__name__)"'));
  assert.equal(six.stdout, 'six\n', six.stderr);
  const users = await api.exec(id, root('useradd --create-home app && groupadd people && id -u app'));
  assert.deepEqual([users.exit_code, users.stdout], [0, '1000\n'], users.stderr);
  await api.purge(id);
});

test('who is not root in an image installs with pip into the home directory, and finds it', { skip }, async () => {
  const id = await open('python-basic');
  const six = await api.exec(id, { ...root('pip install --quiet pyflakes && pyflakes --version && python3 -c "import pyflakes; print(pyflakes.__file__)"'), user: '1000' });
  assert.match(six.stdout, /^\d+\.\d+[^]*\/\.local\/lib\/python3\.11\/site-packages\/pyflakes/, six.stderr);
  await api.purge(id);
});

test('past the disk limit of the sandbox apt-get fails and says that there is no space, and the sandbox goes on', { skip }, async () => {
  const id = await open('python-basic', { resources: { disk: '8Mi' } });
  // Once apt and its helper for HTTP both waited here until the test was ended; whose fault that was is open. It is tried again.
  const full = await api.exec(id, root('for try in 1 2 3; do timeout 60 apt-get update; code=$?; [ $code = 124 ] || break; done; exit $code'));
  assert.notEqual(full.exit_code, 0);
  assert.match(full.stdout + full.stderr, /No space left on device/);
  assert.equal(full.termination.reason, 'disk_full');
  assert.equal(await api.out(id, { command: 'rm -rf /var/lib/apt/lists/*; echo more > /more && cat /more', user: 'root' }), 'more\n');
  await api.purge(id);
});

const full = (name, body) => test(name, { skip: skip || (!FULL && 'only with E2E_FULL') }, body);

full('python3.11 has its packages and tools', async () => {
  await bring('python3.11');
  const { id } = await api.create({ template: 'python3.11', network: { mode: 'none' } });
  assert.match(await api.out(id, { command: 'python3 -c "import numpy, pandas, requests; print(int(numpy.arange(5).sum()), pandas.DataFrame({\'a\': [1, 2]}).a.sum())"; for p in git curl wget vim; do command -v $p; done', timeout_ms: 120_000 }), /^10 3\n\/usr\/bin\/git\n\/usr\/bin\/curl\n\/usr\/bin\/wget\n\/usr\/bin\/vim\n$/);
  await api.purge(id);
});

test('Python 3.12 that can be had nowhere says what to do', { skip }, async () => {
  await instance.crash();
  await instance.start(['--go-proxy', 'http://127.0.0.1:9']);
  assert.equal((await api.request('POST', '/v1/templates/python3.12/build', { json: {} })).status, 202);
  const failed = await built('python3.12');
  assert.equal(failed.status, 'error');
  assert.match(failed.error, /^step 3 \(install Python 3\.12\): exit code 1 \([^)]*\): no Python 3\.12 from http:\/\/127\.0\.0\.1:9 either \| curl: \(7\) /);
  assert.match(await logOf('python3.12'), /^its base: step 3 of 3: install Python 3\.12$/m);
  assert.match(await logOf('python3.12'), /--go-proxy.*--registry-mirror.*template import.*\nno Python 3\.12 from http:\/\/127\.0\.0\.1:9 either\n/);
  await instance.crash();
  await instance.start();
});

full('python3.12 is made without an image, under both of its names, and has its packages, tools, pip and environments', async (t) => {
  if (!answers(MODULE)) return t.skip(`not proven: no proxy of Go modules can be reached from this machine`);
  await bring('python312');
  const log = await logOf('python312');
  assert.match(log, /^python:3.12-slim cannot be had: read from 127.0.0.1:9: /m);
  const { id } = await api.create({ template: 'python312', network: { mode: 'none' } });
  assert.match(await api.out(id, { command: 'python3 -V; python3 -c "import ssl, sqlite3, ctypes, lzma, numpy, pandas, requests; print(int(numpy.arange(5).sum()), pandas.DataFrame({\'a\': [1, 2]}).a.sum())"; for p in git curl wget vim; do command -v $p; done; python3 -m venv /tmp/v && /tmp/v/bin/pip --version && /tmp/v/bin/python -c "import sys; print(sys.prefix)"; find /usr/local/lib/python3.12/__pycache__ -name "os.*.pyc" | wc -l', timeout_ms: 120_000 }), /^Python 3\.12\.\d+\n10 3\n\/usr\/bin\/git\n\/usr\/bin\/curl\n\/usr\/bin\/wget\n\/usr\/bin\/vim\npip .*\(python 3\.12\)\n\/tmp\/v\n[1-9]/);
  await api.purge(id);
  const reaching = await open('python312');
  const installed = await api.exec(reaching, root('pip install --quiet six && python3 -c "import six; print(six.__name__)"'));
  assert.equal(installed.stdout, 'six\n', installed.stderr);
  await api.purge(reaching);
});

full('node20 is Node 20 with npm and TypeScript, and npm installs into it', async () => {
  await bring('node20');
  const id = await open('node20');
  assert.match(await api.out(id, { command: 'node -v; echo "const a: number = 6; console.log(a * 7)" > /tmp/a.ts && tsc /tmp/a.ts && node /tmp/a.js', timeout_ms: 120_000 }), /^v20\.\d+\.\d+\n42\n$/);
  const installed = await api.exec(id, root('npm install -g --no-audit --no-fund is-odd && NODE_PATH=$(npm root -g) node -p "require(\'is-odd\')(3)"'));
  assert.match(installed.stdout, /true\n$/, installed.stderr);
  await api.purge(id);
  const made = await make({ name: 'with-odd', recipe: { from: 'node20', npm: ['is-odd'] } });
  assert.equal(made.source, 'recipe');
});

const API = `import os
import psycopg, redis
from fastapi import FastAPI
app = FastAPI()
cache = redis.Redis.from_url(os.environ["REDIS_URL"])
def ask(text, fetch=False):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as c:
        return c.execute(text).fetchall() if fetch else c.execute(text) and None
ask("create table if not exists notes (text text)")
@app.get("/health")
def health():
    return "ok"
@app.get("/add")
def add():
    ask("insert into notes values ('kept')")
    return cache.incr("adds")
@app.get("/notes")
def notes():
    return ask("select text from notes", True)
`;

full('a launch makes the templates of its services, and FastAPI keeps a row in PostgreSQL and counts in Redis', async () => {
  const launches = new Launches(api);
  const { id } = await launches.project({ 'backend/requirements.txt': 'fastapi\nuvicorn\npsycopg[binary]\nredis\n', 'backend/main.py': API, 'frontend/index.html': 'notes' });
  const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { network: { mode: 'internet', allow: await rulesFor(pip) }, env: { PIP_INDEX_URL: pip, PIP_CERT: '/workspace/ca.crt' }, resources: { memory: '1Gi', disk: '4Gi' } } });
  assert.equal(made.status, 201, made.text);
  if (fs.existsSync(CERTIFICATES)) await api.put(made.json.id, '/workspace/ca.crt', fs.readFileSync(CERTIFICATES));
  const begun = await launches.begin({ project: id, timeouts: { install_s: 600, backend_s: 120 } });
  const launched = await launches.ended(begun.id, LONG);
  launches.assertRuns(launched);
  assert.match((await api.request('GET', `/v1/launches/${begun.id}/events`)).text, /postgres15: the template is made first[^]*redis7: the template is made first/);
  assert.equal(await launches.page(launched), 'notes');
  assert.equal(await launches.page(launched, '/add', 8000), '1');
  assert.equal(await launches.page(launched, '/notes', 8000), '[["kept"]]');
  await launches.remove(launched, id);
});

full('postgres15 and redis7 made of packages are members with nothing said but their roles', async () => {
  assert.deepEqual((await bring('postgres15')).ports, [5432]);
  assert.deepEqual((await bring('redis7')).ports, [6379]);
  const { id } = await api.create({ members: [{ role: 'database', template: 'postgres15' }, { role: 'cache', template: 'redis7' }] });
  const healthy = () => until(async () => (await api.get(id)).members.every((one) => one.role === 'primary' || one.health === 'healthy'), { what: 'both are healthy', ...LONG });
  await healthy();
  assert.match(await api.out(id, { command: 'psql -At -c "show server_version" -c "create table kept as select 42"; redis-cli -u $REDIS_URL set a 1; redis-cli -u $REDIS_URL info server' }), /^15\.[^]*OK\n[^]*redis_version:7/);
  await api.life(id, 'stop');
  await api.life(id, 'start');
  await healthy();
  assert.equal(await api.out(id, { command: 'psql -At -c "select * from kept"; redis-cli -u $REDIS_URL get a' }), '42\n1\n');
  await api.purge(id);
  assert.match(await follow('docs/members.md', 'sandlot create --name store --member'), /database healthy/);
  await api.purge('store');
});

full('a bootstrap installs the packages that it is asked for', async () => {
  await make({ name: 'tools', bootstrap: { suite: 'bookworm', packages: ['hello'] } });
  const { id } = await api.create({ template: 'tools', network: { mode: 'none' } });
  assert.equal(await api.out(id, { command: 'hello' }), 'Hello, world!\n');
  await api.purge(id);
});

/** What the block of a guide says that begins so. */
async function follow(guide, begin) {
  const text = fs.readFileSync(path.join(REPOSITORY, guide), 'utf8');
  const commands = text.split(/```sh(?: no-run)?\n/).find((block) => block.startsWith(begin)).split('```')[0];
  const env = instance.environment({ SANDLOT_URL: `http://127.0.0.1:${api.port}`, SANDLOT_TOKEN: api.token, PATH: `${BUILD_DIR}:${process.env.PATH}` });
  return (await promisify(execFile)('bash', ['-ec', commands], { env, timeout: LONG.timeout_ms })).stdout;
}

full('what docs/templates.md prints of a Debian without an image works', async () => {
  assert.match(await follow('docs/templates.md', 'sandlot template create deb --bootstrap'), /^12\.\d+$/m);
});

finish();
