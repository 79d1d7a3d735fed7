// SPDX-License-Identifier: Apache-2.0
// Packages that a sandbox has beside its template, by real pip and npm. Tests that need a network say so where there is
// none, and are skipped; the others install small packages from a server of their own.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { commandLine, speaks } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { ownerApi } from './lib/owners.mjs';
import { packageServer } from './lib/packages.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const server = await packageServer();
const { instance, api, finish } = await suite('dependencies', { args: server.args });

const path = (id) => `/v1/sandboxes/${id}/dependencies`;
const get = async (id, who = api) => (await who.request('GET', path(id))).json;
const post = (id, json, who = api) => who.request('POST', path(id), { json });
const stored = () => sql(instance, 'SELECT id FROM builders').split('\n').filter(Boolean);

/** Waits until a request for packages is over: how it stands. */
async function settled(id, who = api) {
  let found;
  await until(async () => !['queued', 'running'].includes((found = await get(id, who)).status), { what: `packages of ${id}` });
  return found;
}

async function add(id, json, who = api) {
  const answer = await post(id, json, who);
  assert.equal(answer.status, 202, answer.text);
  return settled(id, who);
}

const PYTHON = 'python3 -c "import tiny_one; print(tiny_one.word)"';
const NODE = 'node -e "console.log(require(\'tiny-two\').word)"';
const out = async (id, command, more = {}) => {
  const { stdout, stderr } = await api.exec(id, { command, ...more });
  return (stdout + stderr).trim();
};

let first;

test('packages of Python and Node are installed, and commands of all kinds find them', async () => {
  ({ id: first } = await api.create());
  assert.deepEqual(await get(first), { requested: { python: [], node: [] }, installed: { python: {}, node: {} }, status: 'none', error: null, job: null });
  const done = await add(first, { python: ['tiny-one'], node: ['tiny-two'] });
  assert.deepEqual([done.status, done.error], ['succeeded', null]);
  assert.deepEqual(done.requested, { python: ['tiny-one'], node: ['tiny-two'] });
  assert.deepEqual(done.installed, { python: { 'tiny-one': '1.1.0' }, node: { 'tiny-two': '2.1.0' } });
  assert.equal(await out(first, PYTHON), 'one 1.1.0');
  assert.equal(await out(first, NODE), 'two 2.1.0');
  assert.equal(await out(first, 'tiny-one-tool; tiny-two-tool'), 'one 1.1.0\ntwo 2.1.0');
  assert.equal(await out(first, 'tiny-two-tool', { user: 'root' }), 'two 2.1.0');
  assert.match(await out(first, 'touch /opt/dependencies/x', { user: 'root' }), /Read-only/);
});

test('builders are in no list, and nothing of them stays', async () => {
  assert.deepEqual((await api.request('GET', '/v1/sandboxes')).json.sandboxes.map(({ id }) => id), [first]);
  assert.deepEqual(stored(), []);
});

test('packages are there again after a stop, a reset, and in a fork', async () => {
  await api.verb(first, 'stop');
  assert.equal(await out(first, PYTHON), 'one 1.1.0');
  await api.verb(first, 'reset');
  assert.equal(await out(first, NODE), 'two 2.1.0');
  const { json } = await api.request('POST', `/v1/sandboxes/${first}/fork`, { json: {} });
  const [{ id }] = json.sandboxes;
  api.made.add(id);
  assert.equal(await out(id, PYTHON), 'one 1.1.0');
  assert.equal((await get(id)).status, 'succeeded');
  await api.purge(id);
});

test('the next sandbox with the same packages has them from the cache, without a network: by a request, and from its first moment on', async () => {
  await server.unasked(async () => {
    const { id } = await api.create({ network: { mode: 'none' } });
    const { status, json } = await post(id, { node: ['tiny-two'], python: ['tiny-one'] });
    assert.deepEqual([status, json.status, json.job], [202, 'succeeded', null]);
    assert.equal(await out(id, PYTHON), 'one 1.1.0');
    const made = await api.create({ network: { mode: 'none' }, dependencies: { python: ['tiny-one'], node: ['tiny-two'] }, start: 'tiny-one-tool > /workspace/started; sleep 1000' });
    assert.deepEqual([(await get(made.id)).status, (await get(made.id)).job], ['succeeded', null]);
    await until(async () => (await out(made.id, 'cat /workspace/started')) === 'one 1.1.0', { what: 'the start command has them' });
    await api.purge(id);
    await api.purge(made.id);
  });
});

test('a request adds to what there is, a later version counts, and what was there stays if it fails', async () => {
  const { id } = await api.create();
  await add(id, { python: ['tiny-one==1.0.0'] });
  assert.equal(await out(id, PYTHON), 'one 1.0.0');
  const more = await add(id, { node: ['tiny-two@^2.0.0'] });
  assert.deepEqual(more.installed, { python: { 'tiny-one': '1.0.0' }, node: { 'tiny-two': '2.1.0' } });
  assert.equal(await out(id, 'grep -c " /opt/dependencies " /proc/self/mountinfo'), '1', 'what was shown before is gone');
  const failed = await add(id, { python: ['no-such-package-here'] });
  assert.equal(failed.status, 'failed');
  assert.match(failed.error, /^pip: .*No matching distribution found for no-such-package-here/);
  assert.deepEqual(failed.installed, more.installed);
  assert.equal(await out(id, PYTHON), 'one 1.0.0');
  const last = await add(id, { python: ['Tiny_One'] });
  assert.deepEqual([last.status, last.requested, last.installed.python], ['succeeded', { python: ['Tiny_One'], node: ['tiny-two@^2.0.0'] }, { 'tiny-one': '1.1.0' }]);
  assert.equal(await out(id, PYTHON), 'one 1.1.0');
  await api.purge(id);
});

test('two requests at a time both come to be', async () => {
  const { id } = await api.create();
  const answers = await Promise.all([post(id, { python: ['tiny-one==1.0.0'] }), post(id, { node: ['tiny-two@2.0.0'] })]);
  assert.deepEqual(answers.map(({ status }) => status), [202, 202]);
  for (const { json: { job } } of answers) await until(async () => !['queued', 'running'].includes((await api.request('GET', `/v1/jobs/${job}`)).json.state), { what: 'the job is over' });
  const { installed } = await settled(id);
  assert.deepEqual(installed, { python: { 'tiny-one': '1.0.0' }, node: { 'tiny-two': '2.0.0' } });
  await api.purge(id);
});

test('options, addresses, paths and nonsense are refused, and change nothing', async () => {
  const { id } = await api.create();
  const bad = { python: ['--index-url=http://x', '-r/etc/passwd', 'a @ http://x/a.whl', './a', '/a', 'git+https://x/a', 'a;b$(x)', 'a ==', '', ' a', 'a\nb', 'a#b', 'a'.repeat(201)], node: ['--registry=http://x', 'file:/a', '../a', '/a', 'http://x/a.tgz', 'git+ssh://x/a', 'user/repository', 'a@npm:b', 'a@file:/b', '@a', '@a/', '', 'a b', 'a@-g', '.a'] };
  for (const [language, texts] of Object.entries(bad)) {
    for (const text of texts) {
      const answer = await post(id, { [language]: [text] });
      assertError(answer, [400], /^field /);
      assert.match(answer.json.error.message, new RegExp(`field ${language} `), text);
      assertError(await api.request('POST', '/v1/sandboxes', { json: { dependencies: { [language]: [text] } } }), [400]);
    }
  }
  assertError(await post(id, {}), [400], /^field /);
  assertError(await post(id, { ruby: ['a'] }), [400]);
  assertError(await post(id, { python: 'a' }), [400]);
  assertError(await post(id, { python: Array.from({ length: 129 }, (_, i) => `a${i}`) }), [400]);
  assert.equal((await get(id)).status, 'none');
  await api.purge(id);
});

const MANIFEST = JSON.stringify({ name: 'app', version: '1.0.0', dependencies: { 'tiny-two': '^2.0.0' }, scripts: { postinstall: 'false', prepare: 'false' } });
const LOCK = server.lock('2.0.0');
const BY_FILES = { requirements: '# what the project needs\ntiny-one==1.0.0 ; python_version >= "3"\n', package_json: MANIFEST, package_lock: LOCK };
const FROM_FILES = { python: { 'tiny-one': '1.0.0' }, node: { 'tiny-two': '2.0.0' } };
const sha256 = (text) => `sha256:${crypto.createHash('sha256').update(text).digest('hex')}`;
const keptFiles = () => sql(instance, 'SELECT sha256 FROM dependency_files ORDER BY sha256').split('\n').filter(Boolean);

test('a requirements.txt and a lock file are installed as they say, also on top of packages that are named', async () => {
  const { id } = await api.create();
  const done = await add(id, BY_FILES);
  assert.deepEqual([done.status, done.error], ['succeeded', null]);
  assert.deepEqual(done.installed, FROM_FILES);
  assert.deepEqual(done.requested, { python: [], node: [], requirements: sha256(BY_FILES.requirements), package_json: sha256(MANIFEST), package_lock: sha256(LOCK) });
  assert.equal(await out(id, `${PYTHON}; ${NODE}`), 'one 1.0.0\ntwo 2.0.0');
  const more = await add(id, { node: ['held-package'] });
  assert.deepEqual([more.status, more.installed.node, more.requested.package_lock], ['succeeded', { 'tiny-two': '2.0.0', 'held-package': '1.0.0' }, sha256(LOCK)]);
  const newer = await add(id, { requirements: 'tiny-one' });
  assert.deepEqual([newer.installed.python, newer.requested.requirements], [{ 'tiny-one': '1.1.0' }, sha256('tiny-one')]);
  await api.verb(id, 'stop');
  assert.equal(await out(id, `${PYTHON}; ${NODE}`), 'one 1.1.0\ntwo 2.0.0');
  await api.purge(id);
});

test('the same files are installed once: the next sandbox has them at once, and others do not', async () => {
  await server.unasked(async () => {
    const { id } = await api.create({ network: { mode: 'none' } });
    const { json } = await post(id, BY_FILES);
    assert.deepEqual([json.status, json.job, json.installed], ['succeeded', null, FROM_FILES]);
    const made = await api.create({ network: { mode: 'none' }, dependencies: BY_FILES });
    assert.deepEqual([(await get(made.id)).status, (await get(made.id)).job], ['succeeded', null]);
    assert.equal(await out(made.id, NODE), 'two 2.0.0');
    await api.purge(made.id);
    await api.purge(id);
  });
  const { id } = await api.create();
  const other = await post(id, { ...BY_FILES, requirements: `${BY_FILES.requirements}\n` });
  assert.notEqual(other.json.job, null, 'one byte more is another file');
  assert.equal((await settled(id)).status, 'succeeded');
  await api.purge(id);
});

test('files of the sandbox itself name packages', async () => {
  const { id } = await api.create({ network: { mode: 'none' } });
  for (const [name, text] of [['requirements.txt', BY_FILES.requirements], ['app/package.json', MANIFEST], ['app/package-lock.json', LOCK]]) await api.put(id, `/workspace/${name}`, text);
  const { json } = await post(id, { requirements_path: '/workspace/requirements.txt', package_path: '/workspace/app/' });
  assert.deepEqual([json.status, json.job, json.installed], ['succeeded', null, FROM_FILES], 'the same content is in the cache');
  await api.exec(id, { command: 'ln -s /dev/zero endless; mkfifo pipe; truncate -s 3M big; printf "a\\0b" > nul; : > empty' });
  for (const [path, status] of [['endless', 400], ['pipe', 400], ['big', 413], ['nul', 400], ['empty', 400], ['missing', 404], ['app', 400]]) {
    assertError(await post(id, { requirements_path: `/workspace/${path}` }), [status], new RegExp(path));
  }
  assertError(await post(id, { requirements_path: 'requirements.txt' }), [400]);
  assertError(await post(id, { requirements_path: '/workspace/../etc/passwd' }), [400]);
  assertError(await post(id, { requirements_path: '/workspace/requirements.txt', requirements: 'tiny-one' }), [400], /do not go together/);
  assertError(await post(id, { package_path: '/workspace' }), [404], /package\.json/);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { dependencies: { requirements_path: '/workspace/requirements.txt' } } }), [400]);
  await api.purge(id);
});

test('a file that is wrong fails in the words of pip or npm, and what was there stays', async () => {
  const { id } = await api.create();
  await add(id, BY_FILES);
  const wrong = [
    [{ requirements: 'no-such-package-here\n' }, /^pip: .*No matching distribution/],
    [{ requirements: '-r other.txt\n' }, /^pip: .*other\.txt/],
    [{ requirements: '$(touch /tmp/x)\n' }, /^pip: .*Invalid requirement/],
    [{ package_json: MANIFEST, package_lock: '{' }, /^npm: /],
    [{ package_json: '[]nonsense', package_lock: LOCK }, /^npm: .*JSON/],
    [{ package_json: JSON.stringify({ dependencies: { 'held-package': '1.0.0' } }), package_lock: LOCK }, /^npm: .*(in sync|Missing)/],
  ];
  for (const [body, words] of wrong) {
    const failed = await add(id, body);
    assert.equal(failed.status, 'failed', JSON.stringify(body));
    assert.match(failed.error, words);
    assert.deepEqual(failed.installed, FROM_FILES);
  }
  const narrow = await api.create({ network: { mode: 'allowlist', allow: ['other.example'] } });
  const refused = await add(narrow.id, { requirements: 'http://refused.example/tiny-1.0.tar.gz\n' });
  assert.match(refused.error, /^pip: exit code 1 \(the network refused refused\.example(:80)?; the rule refused\.example(:80)? would allow it\): .*\.\.\.$/);
  const [job] = (await api.request('GET', '/v1/jobs', { query: { target: narrow.id } })).json.jobs;
  assert.equal(job.progress, 'pip installs requirements.txt');
  assert.match(job.error.remediation, new RegExp(`^sandlot egress ${narrow.id} --allow refused\\.example(:80)?, then try again; read the log of the build: sandlot job log ${job.id}$`));
  await api.purge(narrow.id);
  assertError(await post(id, { package_json: MANIFEST }), [400], /package_lock is missing/);
  assertError(await post(id, { package_lock: LOCK }), [400], /package_json is missing/);
  assertError(await post(id, { requirements: '' }), [400], /^field requirements/);
  assert.equal(await out(id, `${PYTHON}; ${NODE}`), 'one 1.0.0\ntwo 2.0.0');
  await api.purge(id);
});

test('the text of a file stays as long as a sandbox has it: packages come again without the cache', async () => {
  const { sandlot } = commandLine(instance);
  const { id } = await api.create();
  await add(id, { requirements: 'tiny-one==1.0.0' });
  sql(instance, 'UPDATE dependency_files SET used_at = 1');
  for (const args of [['template', 'prune', '--build-cache'], ['template', 'prune']]) assert.equal((await sandlot(args)).code, 0);
  assert.deepEqual(keptFiles(), [sha256('tiny-one==1.0.0')], 'those that no sandbox has are gone');
  const again = await add(id, { node: ['tiny-two@2.0.0'] });
  assert.deepEqual([again.status, again.installed], ['succeeded', FROM_FILES]);
  await api.purge(id);
});

test('packages, their cache and their jobs are an owner\'s own', async () => {
  const other = await ownerApi(api, 'acme', 'ann');
  const reader = await ownerApi(api, 'default', 'admin', ['read', 'manage']);
  assertError(await other.request('GET', path(first)), [404]);
  assertError(await post(first, { python: ['tiny-one'] }, other), [404]);
  assertError(await post(first, { python: ['tiny-one'] }, reader), [403]);
  assertError(await reader.request('POST', '/v1/sandboxes', { json: { dependencies: { python: ['tiny-one'] } } }), [403]);
  const { id } = await other.create();
  const answer = await post(id, { python: ['tiny-one'], node: ['tiny-two'] }, other);
  assert.notEqual(answer.json.job, null);
  assertError(await api.request('GET', `/v1/jobs/${answer.json.job}`), [404]);
  assert.equal((await settled(id, other)).status, 'succeeded');
  await other.purge(id);
});

test('a job can be cancelled, and one of a sandbox that is removed ends; no builder stays', async () => {
  await server.hold(async (held) => {
    const { id } = await api.create();
    const { json } = await post(id, { node: ['tiny-two@2.0.0', 'held-package'] });
    await held();
    assert.equal((await api.request('POST', `/v1/jobs/${json.job}/cancel`)).status, 200);
    assert.equal((await settled(id)).status, 'cancelled');
    assert.equal(await out(id, 'echo usable'), 'usable');
    const again = (await post(id, { node: ['held-package'] })).json;
    await held();
    await api.purge(id);
    await until(async () => (await api.request('GET', `/v1/jobs/${again.job}`)).json.state === 'cancelled', { what: 'the job ends with its sandbox' });
    await until(() => stored().length === 0, { what: 'the builders are gone' });
  });
});

test('a daemon that is killed in the middle goes on with the job', async () => {
  const { id } = await api.create();
  let job;
  await server.hold(async (held) => {
    ({ job } = (await post(id, { node: ['held-package'] })).json);
    await held();
    await instance.crash();
  });
  await instance.start();
  const done = await settled(id);
  assert.deepEqual([done.status, done.job, done.installed.node], ['succeeded', job, { 'held-package': '1.0.0' }]);
  assert.equal(await out(id, 'node -p "require(\'held-package\').word"'), 'held 1.0.0');
  assert.deepEqual(stored(), []);
  await api.purge(id);
});

test('the command line installs, shows and waits', async () => {
  const { ok, sandlot, json, created } = commandLine(instance);
  const { id } = await api.create();
  assert.match(await ok(['deps', id, '--python', 'tiny-one', '--node', 'tiny-two']), /^python +tiny-one +1\.1\.0\nnode +tiny-two +2\.1\.0$/m);
  assert.match(await ok(['deps', id]), /^node +tiny-two +2\.1\.0$/m);
  speaks({ ...(await sandlot(['deps', id, '--node', 'no-such-package-here'])), stdout: '' }, /npm: .*404[^]*→ read the log of the build: sandlot job log \w{26}\n/);
  assert.equal((await json(['deps', id, '-o', 'json'])).status, 'failed');
  assert.equal(await ok(['run', '--python', 'tiny-one', '--node', 'tiny-two', '--', 'sh', '-c', 'tiny-one-tool; tiny-two-tool']), 'one 1.1.0\ntwo 2.1.0\n');
  const failed = await sandlot(['create', '--name', 'no-packages', '--node', 'no-such-package-here']);
  const [left] = failed.stdout.split('\n');
  assert.equal(failed.code, 4, failed.stderr);
  assert.match(failed.stderr, /npm installs 1 package$/m);
  assert.match(failed.stderr, new RegExp(`the sandbox stays: try again with "sandlot deps ${left} ...", or remove it with "sandlot rm --purge ${left}"`));
  await api.purge(left);
  const made = await created('--python', 'tiny-one==1.0.0');
  assert.equal(await out(made, PYTHON), 'one 1.0.0');
  await api.purge(made);
  await api.purge(id);
});

test('the command line takes files of this machine and of the sandbox', async (t) => {
  const { ok, sandlot, created } = commandLine(instance);
  const dir = fs.mkdtempSync(join(os.tmpdir(), 'sandlot-deps-'));
  t.after(() => fs.rmSync(dir, { recursive: true }));
  for (const [name, text] of [['requirements.txt', BY_FILES.requirements], ['package.json', MANIFEST]]) fs.writeFileSync(join(dir, name), text);
  const { id } = await api.create();
  const missing = await sandlot(['deps', id, '--lock', dir]);
  speaks({ ...missing, stdout: '' }, /package-lock\.json/);
  fs.writeFileSync(join(dir, 'package-lock.json'), LOCK);
  assert.match(await ok(['deps', id, '-r', join(dir, 'requirements.txt'), '--lock', dir]), /^python +tiny-one +1\.0\.0\nnode +tiny-two +2\.0\.0$/m);
  assert.equal(await ok(['run', '-r', join(dir, 'requirements.txt'), '--', 'tiny-one-tool']), 'one 1.0.0\n');
  await api.put(id, '/workspace/list', 'tiny-one==1.1.0');
  assert.match(await ok(['deps', id, '-r', ':/workspace/list']), /^python +tiny-one +1\.1\.0$/m);
  speaks({ ...(await sandlot(['create', '-r', ':/workspace/list'])), stdout: '' }, /has no files/);
  fs.writeFileSync(join(dir, 'big'), Buffer.alloc(1100000, 'a'));
  speaks({ ...(await sandlot(['deps', id, '-r', join(dir, 'big')])), stdout: '' }, /more than 1 MiB/);
  const made = await created('--lock', dir);
  assert.equal(await out(made, NODE), 'two 2.0.0');
  await api.purge(made);
  await api.purge(id);
});

test('a layer in use outlives its place in the cache; one that is gone is made anew', async () => {
  const { sandlot } = commandLine(instance);
  for (const args of [['template', 'prune', '--build-cache'], ['template', 'prune']]) assert.equal((await sandlot(args)).code, 0);
  await api.verb(first, 'stop');
  assert.equal(await out(first, PYTHON), 'one 1.1.0');
  const { id } = await api.create();
  const again = await post(id, { python: ['tiny-one'], node: ['tiny-two'] });
  assert.notEqual(again.json.job, null);
  assert.equal((await settled(id)).status, 'succeeded');
  await api.purge(id);
});

finish();
test('the server ends', () => server.close());
