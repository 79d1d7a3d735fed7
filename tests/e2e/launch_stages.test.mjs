// SPDX-License-Identifier: Apache-2.0
// What each stage of a launch does beyond the usual: fixes in the copy alone, what parts are told, checks that fail or
// take too long, and where a launch can be stopped, tried again and begun.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { installed } from './lib/framework.mjs';
import { REPOSITORY } from './lib/instance.mjs';
import { Launches } from './lib/launches.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const FULL = Boolean(process.env.E2E_FULL);
const { instance, api, finish } = await suite('launch_stages', { width: 4 });
const { sandlot } = commandLine(instance);
const launches = new Launches(api);
const APP = '/workspace/app';
const SERVER = (text) => `require('node:http').createServer((q, s) => s.end(${JSON.stringify(text)} + q.url)).listen(process.env.PORT, '127.0.0.1');\n`;
const NODE = (scripts, more) => JSON.stringify({ scripts, ...more });
const log = async ({ id }) => (await api.request('GET', `/v1/launches/${id}/events`)).text;
const stageOf = (launched, name) => launched.stages.find(({ stage }) => stage === name).status;
const content = async (project, name) => (await api.request('GET', `/v1/projects/${project}/files/${encodeURIComponent(name)}`)).text;

async function running(id, stage) {
  await until(async () => stageOf((await api.request('GET', `/v1/launches/${id}`)).json, stage) === 'running', { what: `${stage} runs` });
}

test('fixes are made in the copy that runs: a script with Windows line ends starts the app, packages that were uploaded are left out', async () => {
  const script = '#!/bin/sh\r\nset -e\r\nexec node server.js\r\n';
  const { id } = await launches.project({ 'package.json': NODE({ start: './run.sh' }), 'server.js': SERVER('ran '), 'node_modules/left/index.js': 'left' });
  const put = await api.request('PUT', `/v1/projects/${id}/files`, { query: { path: 'run.sh', executable: true }, body: script, headers: { 'content-type': 'application/octet-stream' } });
  assert.equal(put.status, 201, put.text);
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.equal(await launches.page(launched), 'ran /');
  assert.deepEqual(launched.findings.filter(({ rule }) => ['line_ends', 'made_files'].includes(rule)).map(({ rule, file }) => [rule, file]).sort(), [['line_ends', 'run.sh'], ['made_files', 'node_modules']]);
  assert.match(await log(launched), /fixed in the copy: run\.sh/);
  assert.equal((await api.read(launched.sandbox_id, `${APP}/run.sh`)).toString(), script.replaceAll('\r', ''));
  assert.equal((await api.exec(launched.sandbox_id, `test -e ${APP}/node_modules/left`)).exit_code, 1);
  assert.equal(await content(id, 'run.sh'), script, 'the project is as it was');
  assert.equal(await content(id, 'node_modules/left/index.js'), 'left');
  await launches.remove(launched, id);
});

test('files may have names as options have, and words in any language come through without colours', async () => {
  const server = `console.error("\x1b[31mgrün ➜ 日本\x1b[0m: Error: Cannot find module 'größe'"); process.exit(1);\n`;
  const names = ['-x.txt', '--checkpoint=1', '-dir/ü "q.txt', 'sp ace'];
  const { id } = await launches.project({ 'server.js': server, ...Object.fromEntries(names.map((name) => [name, `in ${name}`])) });
  const launched = await launches.launch({ project: id, backend: { install: "printf '\\033[1m✓\\033[0m né\\n'" } });
  assert.deepEqual([launched.error?.stage, launched.error?.code, launched.error?.message], ['LaunchBackend', 'missing_module', 'a module is missing: größe'], JSON.stringify(launched.error));
  assert.deepEqual(launched.error.lines, ["grün ➜ 日本: Error: Cannot find module 'größe'"]);
  assert.match(await log(launched), /"log":"✓ né"/);
  for (const name of names) assert.equal((await api.read(launched.sandbox_id, `${APP}/${name}`)).toString(), `in ${name}`);
  await launches.upload(id, { [names[0]]: 'changed' });
  await api.request('DELETE', `/v1/projects/${id}/files/${encodeURIComponent(names[1])}`);
  await launches.launch({ project: id });
  assert.equal((await api.read(launched.sandbox_id, `${APP}/${names[0]}`)).toString(), 'changed');
  assert.equal((await api.exec(launched.sandbox_id, `test -e ${APP}/${names[1]}`)).exit_code, 1);
  await launches.remove(launched, id);
});

test('a config is made for Vite that has no overlay, and the one that was uploaded stays as it is', async (t) => {
  const archive = await installed(t, 'vite');
  if (!archive) return;
  const sources = path.join(REPOSITORY, 'tests/e2e/apps/vite');
  const config = 'export default { define: { OWN: 7 } };\n';
  const { id } = await launches.project({ ...Object.fromEntries(fs.readdirSync(sources).map((name) => [name, fs.readFileSync(path.join(sources, name))])), 'vite.config.js': config });
  const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { resources: { memory: '2Gi', disk: '4Gi' } } });
  const put = await api.request('PUT', `/v1/sandboxes/${made.json.id}/files/archive`, { query: { path: APP }, body: fs.createReadStream(archive, { highWaterMark: 1 << 20 }), headers: { 'content-type': 'application/x-tar' } });
  assert.ok(put.status < 300, put.text);
  const launched = await launches.launch({ project: id, frontend: { install: 'test -x node_modules/.bin/vite' } });
  launches.assertRuns(launched);
  assert.match((await api.get(launched.sandbox_id)).start[0].command, /--config \.sandlot\/vite\.config\.mjs$/);
  const client = await launches.page(launched, '/@vite/client');
  assert.match(client, /(?:enableOverlay|overlay)\w* = false/i);
  assert.match(await launches.page(launched, '/@vite/env') + client, /"?OWN"?: 7/, 'what its own config says holds too');
  assert.equal(await content(id, 'vite.config.js'), config);
  assert.equal((await api.read(launched.sandbox_id, `${APP}/vite.config.js`)).toString(), config);
  await launches.remove(launched, id);
});

/** In the place of Vite: says what it was started with, and by whom. */
const PROGRAM = `#!/usr/bin/env node
const above = (pid) => pid === 1 ? [] : [require('fs').readFileSync('/proc/' + pid + '/cmdline', 'utf8'), ...above(+/PPid:\\s+(\\d+)/.exec(require('fs').readFileSync('/proc/' + pid + '/status', 'utf8'))[1])];
const said = JSON.stringify({ argv: process.argv.slice(2), env: process.env, above: above(process.ppid) });
require('http').createServer((q, s) => s.end(said)).listen(process.argv[process.argv.indexOf('--port') + 1], '127.0.0.1');
`;

test('a development server is started without npm, and told what npm would; with it if its package.json asks npm for more', async () => {
  const cases = [['', 'node_modules', {}], ['apps/web/', '../../node_modules', {}], ['', 'node_modules', { config: { level: '2' } }]];
  for (const [dir, packages, more] of cases) {
    const { id } = await launches.project({ [`${dir}package.json`]: NODE({ dev: 'vite --mode x' }, { name: 'shop', version: '1.2.3', devDependencies: { vite: '7' }, ...more }), [`${dir}index.html`]: '', [`${dir}program`]: PROGRAM });
    const frontend = { install: `mkdir -p ${packages}/.bin && cp program ${packages}/.bin/vite && chmod +x ${packages}/.bin/vite`, ...(dir && { directory: dir.slice(0, -1) }) };
    const launched = await launches.launch({ project: id, frontend });
    launches.assertRuns(launched);
    const { argv, env, above } = JSON.parse(await launches.page(launched));
    const byNpm = Boolean(more.config);
    assert.deepEqual(argv.slice(0, 9), ['--mode', 'x', '--host', '127.0.0.1', '--port', '5173', '--strictPort', '--base', '/']);
    assert.equal(launched.detection.parts[0].command, `exec ${byNpm ? 'npm run dev --' : 'vite --mode x'} --host 127.0.0.1 --port 5173 --strictPort --base /`);
    assert.equal(above.some((line) => /\bnpm\b/.test(line)), byNpm, JSON.stringify(above));
    const told = { npm_package_name: 'shop', npm_package_version: '1.2.3', npm_package_json: `${APP}/${dir}package.json`, npm_lifecycle_event: 'dev', npm_lifecycle_script: env.npm_lifecycle_script, INIT_CWD: `${APP}/${dir}`.slice(0, -1) };
    assert.deepEqual(Object.fromEntries(Object.keys(told).map((name) => [name, env[name]])), told);
    assert.match(env.npm_lifecycle_script, /^vite --mode x/);
    assert.equal((await api.exec(launched.sandbox_id, { command: 'command -v vite', env: { PATH: env.PATH } })).exit_code, 0, 'programs of the packages are found by name');
    await launches.remove(launched, id);
  }
});

test('both parts are told where the backend is, and the preview where the page is', async () => {
  const TELL = "require('node:http').createServer((q, s) => s.end(['PORT', 'BACKEND_PORT', 'HOST', 'CORS_ORIGINS'].map((name) => process.env[name]).join(' '))).listen(process.env.PORT, '127.0.0.1');\n";
  const { id } = await launches.project({ 'backend/server.js': TELL, 'frontend/server.js': TELL });
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  const [backend, frontend] = launched.detection.parts.map(({ port }) => port);
  assert.notEqual(backend, frontend);
  const origin = launched.preview_url.replace(/\/$/, '');
  assert.equal(await launches.page(launched, '/', frontend), `${frontend} ${backend} 127.0.0.1 ${origin}`);
  assert.equal(await launches.page(launched, '/', backend), `${backend} ${backend} 127.0.0.1 ${origin}`);
  await launches.remove(launched, id);
});

test('what installs packages is told the variables of the request, but not to leave some out', async () => {
  const { id } = await launches.project({ 'server.js': "require('node:http').createServer((q, s) => s.end(process.env.NODE_ENV)).listen(process.env.PORT, '127.0.0.1');\n" });
  const launched = await launches.launch({ project: id, env: { REGISTRY: 'a b', NODE_ENV: 'production' }, backend: { install: 'echo "$REGISTRY:$NODE_ENV" > told' } });
  launches.assertRuns(launched);
  assert.equal((await api.read(launched.sandbox_id, `${APP}/told`)).toString(), 'a b:\n');
  assert.equal(await launches.page(launched), 'production');
  await launches.remove(launched, id);
});

test('a backend is up when /health says so, whatever / says', async () => {
  const { id } = await launches.project({ 'server.js': "require('node:http').createServer((q, s) => { s.statusCode = q.url === '/health' ? 200 : 500; s.end(); }).listen(process.env.PORT, '127.0.0.1');\n" });
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.match(await log(launched), /port 3000 answers with status 200/);
  await launches.remove(launched, id);
});

/** A sandbox whose files are launched where they are, with a program of its own in the place of another. */
async function withProgram(name, script, files) {
  const { id } = await api.create({ env: { PATH: '/workspace/bin:/usr/bin:/bin' } });
  await api.out(id, { command: `mkdir -p /workspace/bin && cat > /workspace/bin/${name} && chmod 755 /workspace/bin/${name}`, stdin: script });
  for (const [file, text] of Object.entries(files)) await api.put(id, `${APP}/${file}`, text);
  return id;
}

async function launchIn(id, body = {}) {
  const begun = await api.request('POST', `/v1/sandboxes/${id}/launch`, { json: body });
  assert.equal(begun.status, 202, begun.text);
  return launches.ended(begun.json.id);
}

test('an installer that installs nothing is noticed, and the next launch installs anew', async () => {
  const files = { 'package.json': NODE(undefined, { dependencies: { left: '1' } }), 'server.js': SERVER('x') };
  const id = await withProgram('npm', '#!/bin/sh\nmkdir -p node_modules\nif [ -e /tmp/mended ]; then mkdir node_modules/left; fi\n', files);
  for (let i = 0; i < 2; i++) {
    const launched = await launchIn(id);
    assert.deepEqual([launched.status, launched.error?.stage, launched.error?.code], ['failed', 'PostInstallChecks', 'install_incomplete'], JSON.stringify(launched.error));
    assert.match(launched.error.message, /node_modules is empty/);
  }
  await api.exec(id, 'touch /tmp/mended');
  const launched = await launchIn(id);
  launches.assertRuns(launched);
  assert.equal(stageOf(launched, 'InstallDependencies'), 'complete');
  await api.purge(id);
});

test('an environment of Python in which pip does not work is noticed', async () => {
  // Modules of the app go before those of Python: this one is pip to whoever starts it here.
  const { id } = await launches.project({ 'requirements.txt': 'six\n', 'main.py': 'x = 1\n', 'pip.py': 'import sys\nprint("it is broken")\nsys.exit("list" in sys.argv)\n' });
  const launched = await launches.launch({ project: id });
  assert.deepEqual([launched.status, launched.error?.stage, launched.error?.code], ['failed', 'PostInstallChecks', 'install_incomplete'], JSON.stringify(launched.error));
  assert.match(launched.error.message, /pip list fails/);
  await launches.remove(launched, id);
});

test('types that do not fit are told, and the app runs', async () => {
  const files = { 'package.json': NODE({ start: 'node server.js' }), 'tsconfig.json': '{}', 'server.js': SERVER('typed ') };
  const { id } = await api.create();
  for (const [file, text] of Object.entries(files)) await api.put(id, `${APP}/${file}`, text);
  const tsc = (script, name = 'tsc') => api.out(id, { command: `mkdir -p ${APP}/node_modules/.bin && cat > ${APP}/node_modules/.bin/${name} && chmod 755 ${APP}/node_modules/.bin/${name}`, stdin: script });
  await tsc('#!/bin/sh\necho "$*"\necho "server.ts(2,7): error TS2322: not assignable"\nexit 2\n');
  const launched = await launchIn(id);
  launches.assertRuns(launched);
  const said = await log(launched);
  assert.match(said, /"log":"--noEmit"[^]*server\.ts\(2,7\): error TS2322[^]*tsc found errors; the app is started all the same/);
  /** Launches again with another file, as checks of what was checked are skipped. */
  const again = async (word) => {
    await api.put(id, `${APP}/server.js`, SERVER(word));
    const launched = await launchIn(id);
    launches.assertRuns(launched);
    assert.equal(stageOf(launched, 'SyntaxCheck'), 'complete');
    return log(launched);
  };
  await tsc('#!/bin/sh\n');
  assert.doesNotMatch(await again('fits '), /tsc found/);
  // A tsconfig.json that only refers to others has nothing to be looked at by itself: the scripts say by what it is built.
  for (const [script, program, said] of [['tsc -b && vite build', 'tsc', 'tsc -b --noEmit'], ['vue-tsc -b && vite build', 'vue-tsc', 'vue-tsc -b --noEmit'], ['nottsc -b; tsc --bundle', 'tsc', 'tsc --noEmit']]) {
    await api.put(id, `${APP}/package.json`, NODE({ start: 'node server.js', build: script }));
    await tsc(`#!/bin/sh\necho "${program} $*"\n`, program);
    assert.ok((await again(`${script} `)).includes(`"log":"${said}"`), script);
  }
  if (FULL) { // it is given a minute
    await api.put(id, `${APP}/package.json`, NODE({ start: 'node server.js' }));
    await tsc('#!/bin/sh\nexec sleep 600\n');
    const slow = await again('slow ');
    assert.match(slow, /tsc took longer than 60 s/);
    assert.doesNotMatch(slow, /tsc found/);
  }
  await api.purge(id);
});

/** What TypeScript is parsed by, and what it says of the line that is wrong. */
const PARSERS = [['typescript', 'typescript', /Expression expected/], ['esbuild', '@esbuild esbuild', /Unexpected "="/]];

test('an entry file of TypeScript is parsed by what the app has for it, also without a tsconfig.json', async (t) => {
  const archive = await installed(t, 'typescript');
  if (!archive) return;
  const { id } = await api.create({ resources: { memory: '1Gi', disk: '1Gi' } });
  const put = await api.request('PUT', `/v1/sandboxes/${id}/files/archive`, { query: { path: APP }, body: fs.createReadStream(archive, { highWaterMark: 1 << 20 }), headers: { 'content-type': 'application/x-tar' } });
  assert.ok(put.status < 300, put.text);
  await api.put(id, `${APP}/package.json`, NODE({ start: 'node run.js' }));
  await api.put(id, `${APP}/run.js`, SERVER('typed '));
  const run = (text) => api.put(id, `${APP}/server.ts`, text).then(() => launchIn(id, { backend: { entry: 'server.ts', command: 'exec node run.js' } }));
  await api.out(id, `mv ${APP}/node_modules ${APP}/.parsers; mkdir ${APP}/node_modules`);
  for (const [name, packages, what] of PARSERS) {
    await api.out(id, `cd ${APP} && rm -rf node_modules && mkdir node_modules && for one in ${packages}; do mv .parsers/$one node_modules/; done`);
    const failed = await run('enum Kind { A }\nlet b: number = = Kind.A;\n');
    assert.deepEqual([failed.error?.stage, failed.error?.code], ['SyntaxCheck', 'syntax_error'], `${name}: ${JSON.stringify(failed.error ?? failed.stages)}`);
    assert.match(failed.error.message, /server\.ts:2\b/);
    assert.match(failed.error.message, what);
    const launched = await run(`enum Kind { A }\nclass Held { constructor(@Inject() private kind: Kind) {} } // ${name}\n`);
    launches.assertRuns(launched);
    assert.equal(stageOf(launched, 'SyntaxCheck'), 'complete');
  }
  await api.out(id, `rm -rf ${APP}/node_modules && mkdir ${APP}/node_modules`);
  const unparsed = await run('let b = = 3;\n');
  launches.assertRuns(unparsed);
  // A node that knows TypeScript parses it itself.
  if (stageOf(unparsed, 'SyntaxCheck') === 'skipped') assert.match(await log(unparsed), /nothing here can parse server\.ts/);
  await api.purge(id);
});

test('a launch is cancelled while it installs, and retried from there', async () => {
  const { id } = await launches.project({ 'server.js': SERVER('installed ') });
  const begun = await launches.begin({ project: id, backend: { install: '[ -e /tmp/go ] || { echo waiting; exec sleep 601; }' } });
  await running(begun.id, 'InstallDependencies');
  await until(async () => (await api.exec(begun.sandbox_id, 'pgrep -f "sleep 60[1]"')).exit_code === 0, { what: 'its program runs' });
  assert.equal((await api.request('POST', `/v1/launches/${begun.id}/cancel`)).status, 200);
  const cancelled = await launches.ended(begun.id);
  assert.deepEqual([cancelled.status, stageOf(cancelled, 'LaunchBackend'), cancelled.preview_url], ['cancelled', 'pending', null]);
  await until(async () => (await api.exec(begun.sandbox_id, 'pgrep -f "sleep 60[1]"')).exit_code !== 0, { what: 'its program is gone' });
  await api.exec(begun.sandbox_id, 'touch /tmp/go');
  const again = await api.request('POST', `/v1/launches/${begun.id}/retry`, { json: { from: 'InstallDependencies' } });
  assert.equal(again.status, 202, again.text);
  const launched = await launches.ended(again.json.id);
  launches.assertRuns(launched);
  assert.equal(stageOf(launched, 'InstallDependencies'), 'complete');
  assert.equal(await launches.page(launched), 'installed /');
  await launches.remove(launched, id);
});

test('a reset keeps the app and what it was given, and the app comes back', async () => {
  const { id } = await launches.project({ 'server.js': SERVER('kept ') });
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  await api.put(launched.sandbox_id, `${APP}/own.txt`, 'own');
  await api.out(launched.sandbox_id, { command: 'touch /opt/mark', user: 'root' });
  await api.life(launched.sandbox_id, 'reset');
  assert.equal((await api.exec(launched.sandbox_id, 'test -e /opt/mark')).exit_code, 1, 'it was reset');
  assert.equal(await api.out(launched.sandbox_id, `cat ${APP}/own.txt`), 'own');
  await until(async () => await launches.page(launched) === 'kept /', { what: 'the app after the reset' });
  await launches.remove(launched, id);
});

test('a sandbox alone is launched with its own files, or with those of its project if it has any', async () => {
  const { id } = await launches.project({ 'server.js': SERVER('of the project ') });
  const sandbox = (await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: {} })).json.id;
  await api.put(sandbox, `${APP}/server.js`, SERVER('of the sandbox '));
  const own = await launches.launch({ sandbox });
  launches.assertRuns(own);
  assert.deepEqual([own.project, own.sandbox_id, stageOf(own, 'MaterializeFiles')], [null, sandbox, 'skipped']);
  assert.equal(await launches.page(own), 'of the sandbox /');
  const of = await launchIn(sandbox);
  launches.assertRuns(of);
  assert.deepEqual([of.project, stageOf(of, 'MaterializeFiles')], [id, 'complete']);
  assert.equal(await launches.page(of), 'of the project /');
  await launches.remove(of, id);
});

test('a part that a request says false of is left out, and what is said otherwise is told beside what was found', async () => {
  const { id } = await launches.project({ 'backend/server.js': SERVER('backend '), 'frontend/index.html': '<p>page</p>', 'sandlot.json': '{"backend": {"port": 4100}}\n' });
  const detected = (await api.request('GET', `/v1/projects/${id}/detection`)).json;
  assert.deepEqual(detected.overrides, [{ what: 'backend.port', said: 4100, found: 3000, source: 'sandlot.json' }]);
  assert.deepEqual(detected.parts.map(({ role, port }) => [role, port]), [['backend', 4100], ['frontend', 8080]]);
  const both = await launches.launch({ project: id });
  launches.assertRuns(both);
  assert.match(both.preview_url, /-8080\./);
  const launched = await launches.launch({ project: id, frontend: false });
  launches.assertRuns(launched);
  assert.equal(stageOf(launched, 'LaunchFrontend'), 'skipped');
  assert.equal(await launches.page(launched), 'backend /', 'the preview is what is left');
  assert.deepEqual((await api.get(launched.sandbox_id)).start.map(({ name }) => name), ['backend'], 'the page that ran is ended');
  assert.deepEqual(launched.detection.overrides.at(-1), { what: 'frontend', said: false, found: 'static', source: 'request' });
  const page = await launches.launch({ project: id, backend: false });
  launches.assertRuns(page);
  assert.match(await launches.page(page), /page/);
  const none = await launches.launch({ project: id, backend: false, frontend: false });
  assert.deepEqual([none.error?.stage, none.error?.code], ['DetectEntryPoint', 'no_entry_point'], JSON.stringify(none.error));
  assert.match(none.error.message, /nothing is left to be started/);
  assert.match(none.error.remediation, /leave out one part at most/);
  assertError(await api.request('POST', '/v1/launches', { json: { project: id, frontend: true } }), 400, /frontend must be an object, or false/);
  const dir = fs.mkdtempSync(path.join(instance.home, 'only-'));
  for (const part of ['backend', 'frontend']) fs.mkdirSync(path.join(dir, part));
  for (const [name, text] of [['backend/server.js', SERVER('by name ')], ['frontend/index.html', '<p>page</p>'], ['sandlot.json', '{"prot": 1}']]) fs.writeFileSync(path.join(dir, name), text);
  const { code, stdout, stderr } = await sandlot(['launch', '--project', 'only', '--only', 'backend', dir]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /-3000\./);
  assert.match(stderr, /^sandlot: sandlot\.json:1: prot is no key/m);
  assert.equal((await sandlot(['launch', '--only', 'both', dir])).code, 2);
  const [only] = (await api.request('GET', '/v1/sandboxes', { query: { project: 'only' } })).json.sandboxes;
  assert.deepEqual((await api.get(only.id)).start.map(({ name }) => name), ['backend']);
  await launches.remove({ sandbox_id: only.id }, 'only');
  await launches.remove(page, id);
});

test('what is wrong in sandlot.json is said with its line: an error stops the launch, a key that nothing knows is told', async () => {
  const { id } = await launches.project({ 'server.js': SERVER('x'), 'sandlot.json': '{\n  "backend": {"prot": 4100}\n}\n' });
  const validate = async () => (await api.request('POST', `/v1/projects/${id}/validate`)).json;
  const settings = ({ findings }) => findings.filter(({ rule }) => rule === 'settings').map(({ severity, file, line, message }) => [severity, file, line, message]);
  const message = 'backend.prot is no key, and is not followed: there are directory, framework, entry, command, install and port';
  assert.deepEqual(settings(await validate()), [['warning', 'sandlot.json', 2, message]]);
  const told = await launches.launch({ project: id });
  launches.assertRuns(told);
  assert.ok((await log(told)).includes(`warning: sandlot.json:2: ${message}`));
  await launches.upload(id, { 'sandlot.json': '{\n  "backend": {"port": 4100},\n}\n' });
  const report = await validate();
  assert.deepEqual([report.valid, ...settings(report)[0].slice(0, 3)], [false, 'error', 'sandlot.json', 3]);
  const failed = await launches.launch({ project: id });
  assert.deepEqual([failed.error?.stage, failed.error?.code], ['DetectEntryPoint', 'invalid_settings'], JSON.stringify(failed.error));
  assert.match(failed.error.message, /^sandlot\.json:3: it is no JSON: /);
  assert.equal((await api.request('GET', `/v1/projects/${id}/detection`)).json.parts.length, 1, 'what was found is told all the same');
  await launches.remove(failed, id);
});

test('launches are asked for by how they went, and half and 19 of 20 are told of how long stages took', async () => {
  const { id } = await launches.project({ 'index.html': 'page' });
  const all = [];
  for (let i = 0; i < 3; i++) all.push(await launches.launch({ project: id }));
  await api.request('DELETE', `/v1/projects/${id}/files/index.html`);
  await launches.upload(id, { 'notes.txt': 'nothing' });
  const failed = await launches.launch({ project: id });
  const list = async (query) => (await api.request('GET', '/v1/launches', { query: { project: id, ...query } })).json.launches.map((one) => one.id);
  assert.deepEqual(await list({ status: 'failed' }), [failed.id]);
  assert.deepEqual(await list({ status: 'succeeded' }), all.map((one) => one.id).reverse());
  for (const status of ['running', 'cancelled']) assert.deepEqual(await list({ status }), []);
  const stats = (await api.request('GET', '/v1/launches/stats', { query: { project: id } })).json;
  assert.deepEqual([stats.launches, stats.succeeded, stats.failed, stats.success_rate, stats.causes], [4, 3, 1, 0.75, { [failed.error.code]: 1 }]);
  for (const { stage, completed, p50_ms, p95_ms } of stats.stages) {
    const took = [...all, failed].flatMap(({ stages }) => stages.filter((one) => one.stage === stage && one.status === 'complete').map((one) => one.duration_ms)).sort((a, b) => a - b);
    const at = (part) => took[Math.floor((took.length - 1) * part)] ?? null;
    assert.deepEqual([completed, p50_ms, p95_ms], [took.length, at(0.5), at(0.95)], stage);
  }
  assert.deepEqual(stats.stages.filter(({ failed: count }) => count > 0).map(({ stage }) => stage), ['DetectEntryPoint']);
  await launches.remove(failed, id);
});

test('how long installing and a page may take are settings', async () => {
  await instance.terminate();
  await instance.start(['--launch-install-timeout', '1s', '--launch-frontend-timeout', '2s']);
  const { id } = await launches.project({ 'frontend/server.js': 'setInterval(() => {}, 1000);\n' });
  const slow = await launches.launch({ project: id, frontend: { install: 'exec sleep 600' } });
  assert.deepEqual([slow.error?.stage, slow.error?.code], ['InstallDependencies', 'install_timeout'], JSON.stringify(slow.error));
  assert.match(slow.error.message, /longer than 1 s/);
  const deaf = await launches.launch({ project: id });
  assert.deepEqual([deaf.error?.stage, deaf.error?.code], ['LaunchFrontend', 'not_ready'], JSON.stringify(deaf.error));
  assert.match(deaf.error.message, /within 2 s/);
  await launches.remove(deaf, id);
});

finish();
