// SPDX-License-Identifier: Apache-2.0
// Launches: from the files of a project to an app that answers through its preview, and why some do not get there.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { sql } from './lib/database.mjs';
import { installed } from './lib/framework.mjs';
import { REPOSITORY } from './lib/instance.mjs';
import { Previews } from './lib/preview.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('launches', { width: 4 });
const { sandlot, ok } = commandLine(instance);
const STAGES = ['DetectEntryPoint', 'MaterializeFiles', 'GenerateEnvVars', 'InstallDependencies', 'PostInstallChecks', 'SyntaxCheck', 'LaunchBackend', 'LaunchFrontend'];
const NODE_SERVER = (text) => `require('node:http').createServer((req, res) => res.end(${JSON.stringify(text)} + req.url)).listen(process.env.PORT, '127.0.0.1');\n`;
let projects = 0;

/** A new project with these files. */
async function project(files) {
  const made = await api.request('POST', '/v1/projects', { json: { name: `app-${++projects}` } });
  assert.equal(made.status, 201, made.text);
  await upload(made.json.id, files);
  return made.json;
}

async function upload(id, files) {
  for (const [name, text] of Object.entries(files)) {
    const put = await api.request('PUT', `/v1/projects/${id}/files`, { query: { path: name }, body: text, headers: { 'content-type': 'application/octet-stream' } });
    assert.ok(put.status < 300, put.text);
  }
}

/** Launches and waits for the end. */
async function launch(body, where = '/v1/launches') {
  const begun = await api.request('POST', where, { json: body });
  assert.equal(begun.status, 202, begun.text);
  assert.equal(begun.headers.location, `/v1/launches/${begun.json.id}`);
  assert.deepEqual(begun.json.stages.map(({ stage }) => stage), STAGES);
  return ended(begun.json.id);
}

async function ended(id) {
  let found;
  await until(async () => (found = (await api.request('GET', `/v1/launches/${id}`)).json).status !== 'running', { what: 'the end of the launch' });
  return found;
}

const statuses = ({ stages }) => stages.map(({ status }) => status).join(' ');
const assertRuns = (launched) => assert.equal(launched.status, 'succeeded', JSON.stringify(launched.error ?? launched.stages));

/** What the preview of a launch shows. */
async function page(launched, at = '/') {
  const port = Number(/-(\d+)\./.exec(launched.preview_url)[1]);
  const previews = new Previews(api, (await api.request('GET', `/v1/sandboxes/${launched.sandbox_id}`)).json);
  return (await previews.request(port, at)).text;
}

async function remove(launched, id) {
  await api.purge(launched.sandbox_id);
  if (id) assert.equal((await api.request('DELETE', `/v1/projects/${id}`)).status, 204);
}

test('a static page becomes a preview, and its sandbox is the project\'s', async () => {
  const { id } = await project({ 'index.html': '<h1>hello</h1>' });
  const launched = await launch({ project: id });
  assertRuns(launched);
  assert.equal(statuses(launched), 'complete complete complete skipped skipped skipped skipped complete');
  assert.match(launched.preview_url, /^http:\/\/s-[0-9a-z]{26}-8080\./);
  assert.match(await page(launched), /<h1>hello<\/h1>/);
  const sandboxes = (await api.request('GET', '/v1/sandboxes', { query: { project: id } })).json.sandboxes;
  assert.deepEqual(sandboxes.map((sandbox) => sandbox.id), [launched.sandbox_id]);
  await remove(launched, id);
});

test('a server without packages is told its port, sleeps and wakes, and a relaunch shows what changed', async () => {
  const { id } = await project({ 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': NODE_SERVER('first '), '.env': 'GREETING=mine\n' });
  const launched = await launch({ project: id });
  assertRuns(launched);
  assert.equal(await page(launched, '/a'), 'first /a');
  const env = (await api.read(launched.sandbox_id, '/workspace/app/.env')).toString();
  assert.match(env, /^GREETING=mine\n/);
  assert.match(env, /\nPORT=3000\n/);
  assert.match(env, new RegExp(`\\nCORS_ORIGINS=http://s-${launched.sandbox_id}-3000\\.`));
  assert.equal((await api.verb(launched.sandbox_id, 'stop')).status, 200);
  await until(async () => (await page(launched, '/b')) === 'first /b', { what: 'the app after its sandbox woke' });
  await upload(id, { 'server.js': NODE_SERVER('second ') });
  const again = await launch({ project: id });
  assertRuns(again);
  assert.equal(again.sandbox_id, launched.sandbox_id);
  assert.equal(await page(again, '/'), 'second /');
  await remove(launched, id);
});

test('an app that takes no notice of PORT is looked for where its code says', async () => {
  const { id } = await project({ 'server.js': NODE_SERVER('mine ').replace('process.env.PORT', '4321'), '.env': 'PORT=5000\n' });
  const launched = await launch({ project: id });
  assertRuns(launched);
  assert.match(launched.preview_url, /-4321\./);
  assert.equal(await page(launched), 'mine /');
  assert.deepEqual((await api.get(launched.sandbox_id)).members.map(({ role, port, health }) => [role, port, health]), [['primary', null, 'none'], ['backend', 4321, 'healthy']]);
  const finding = launched.findings.find(({ rule }) => rule === 'port');
  assert.deepEqual([finding.file, finding.line, finding.fix], ['server.js', 1, 'its preview is at that port']);
  await remove(launched, id);
});

test('stages come as events, and who comes back goes on where it was', async () => {
  const { id } = await project({ 'server.js': NODE_SERVER('x') });
  const response = await api.request('POST', '/v1/launches', { json: { project: id }, headers: { accept: 'text/event-stream' } });
  assert.equal(response.status, 200);
  const events = response.text.split('\n\n').filter((text) => text.startsWith('id:') || text.includes('\nevent:') || text.startsWith('event:')).map((text) => {
    const field = (name) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(text)?.[1];
    return { id: field('id'), event: field('event'), data: JSON.parse(field('data')) };
  });
  assert.equal(events.at(-1).event, 'end');
  assertRuns(events.at(-1).data);
  const over = events.filter(({ data }) => data.stage && ['complete', 'skipped'].includes(data.status));
  assert.deepEqual(over.map(({ data }) => data.stage), STAGES);
  assert.ok(over.every(({ data }) => Number.isInteger(data.duration_ms)));
  assert.ok(events.some(({ data }) => data.stage === 'LaunchBackend' && /node/.test(data.log ?? '')));
  const launched = events.at(-1).data;
  const rest = await api.request('GET', `/v1/launches/${launched.id}/events`, { headers: { 'last-event-id': events.at(-2).id } });
  assert.match(rest.text, /event: ?end/);
  assert.doesNotMatch(rest.text, /event: ?stage/);
  await remove(launched, id);
});

test('a Python app is started with what the template has', async () => {
  const app = 'import os\nfrom http.server import BaseHTTPRequestHandler, HTTPServer\nclass H(BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200); self.end_headers(); self.wfile.write(b"python")\nHTTPServer(("127.0.0.1", int(os.environ["PORT"])), H).serve_forever()\n';
  const { id } = await project({ 'backend/main.py': app, 'frontend/index.html': 'page' });
  const launched = await launch({ project: id });
  assertRuns(launched);
  assert.deepEqual(launched.detection.parts.map(({ role, directory, framework, port }) => [role, directory, framework, port]), [['backend', 'backend', 'python', 8000], ['frontend', 'frontend', 'static', 8080]]);
  assert.equal(await page(launched), 'page', 'the preview is the frontend');
  const said = (await api.exec(launched.sandbox_id, 'python3 --version')).stdout.trim();
  assert.deepEqual(launched.versions, { sandlot: (await api.request('GET', '/v1/version')).json.version, template: (await api.get(launched.sandbox_id)).template, python: said.replace('Python ', '') });
  const shown = (await api.get(launched.sandbox_id)).members;
  assert.deepEqual(shown.map(({ id, role, port, status, health }) => [id, role, port, status, health]), [['primary', null, 'none'], ['backend', 8000, 'healthy'], ['frontend', 8080, 'healthy']].map(([role, port, health]) => [launched.sandbox_id, role, port, 'running', health]));
  assert.match((await api.request('POST', `/v1/sandboxes/${launched.sandbox_id}/exec`, { query: { member: 'backend' }, json: { command: 'ls /workspace/app' } })).json.stdout, /^backend\n/, 'a part is in the sandbox itself');
  await api.verb(launched.sandbox_id, 'stop');
  assert.deepEqual((await api.get(launched.sandbox_id)).members.map(({ status }) => status), ['stopped', 'stopped', 'stopped']);
  assert.ok(launched.findings.some(({ rule, severity }) => rule === 'requirements' && severity === 'warning'));
  await remove(launched, id);
});

test('the files of a sandbox without a project are launched where they are, and a retry begins at a stage', async () => {
  const { id } = await api.create();
  await api.put(id, '/workspace/app/server.js', NODE_SERVER('own '));
  const launched = await launch({}, `/v1/sandboxes/${id}/launch`);
  assertRuns(launched);
  assert.equal(await page(launched), 'own /');
  const begun = await api.request('POST', `/v1/launches/${launched.id}/retry`, { json: { from: 'LaunchBackend' } });
  assert.equal(begun.status, 202, begun.text);
  const again = await ended(begun.json.id);
  assertRuns(again);
  assert.equal(again.stages[5].status, 'skipped');
  assert.deepEqual(again.versions, launched.versions);
  assertError(await api.request('POST', `/v1/launches/${launched.id}/retry`, { json: { from: 'Nothing' } }), 400, /must be the name of a stage/);
  assertError(await api.request('GET', '/v1/launches', { query: { status: 'over' } }), 400, /status must be running/);
  assertError(await api.request('GET', '/v1/launches', { query: { failed_stage: 'Nothing' } }), 400, /failed_stage/);
  await api.purge(id);
});

/** Sat out by some, beside the others: a program must have begun by then, also on a crowded machine. */
const SOON_S = 15;

/** Each fails for a reason that the answer names, with what its program said: files, stage, code, message, request, a line. */
const FAILURES = [
  ['a module that is missing', { 'server.js': 'require("left-behind");' }, 'LaunchBackend', 'missing_module', /left-behind/, {}, /Cannot find module 'left-behind'/],
  ['a syntax error', { 'server.js': 'let a = 1;\nlet b = = 2;\n' }, 'SyntaxCheck', 'syntax_error', /server\.js:2/, {}, /let b = = 2/],
  ['a syntax error of Python', { 'main.py': 'import os\ndef f(:\n' }, 'SyntaxCheck', 'syntax_error', /main\.py:2/, {}, /def f\(:/],
  ['no way to start it', { 'package.json': '{"scripts":{"test":"true"}}' }, 'DetectEntryPoint', 'missing_script', /start or dev/],
  ['no app at all', { 'notes.txt': 'nothing' }, 'DetectEntryPoint', 'no_entry_point', /nothing was found/],
  ['another port than PORT', { 'server.js': 'require("node:http").createServer((q, s) => s.end()).listen(4560 + 7, "127.0.0.1");' }, 'LaunchBackend', 'bound_elsewhere', /4567, not on 3000/, { timeouts: { backend_s: SOON_S } }],
  ['a module of Python that is missing', { 'main.py': 'import left_behind\n' }, 'LaunchBackend', 'missing_module', /left_behind/, {}, /No module named 'left_behind'/],
  ['a syntax error of a module', { 'server.mjs': 'let a = 1;\nlet b = = 2;\n' }, 'SyntaxCheck', 'syntax_error', /server\.mjs:2/, {}, /let b = = 2/],
  ['an address that previews do not reach', { 'server.js': 'require("node:http").createServer((q, s) => s.end()).listen(process.env.PORT, "127.0.0.2");' }, 'LaunchBackend', 'bound_elsewhere', /3000, but at an address .*: 127\.0\.0\.2/, { timeouts: { backend_s: SOON_S } }],
  ['packages that take too long', { 'server.js': NODE_SERVER('x') }, 'InstallDependencies', 'install_timeout', /took longer than 15 s/, { backend: { install: 'echo begun; exec sleep 600' }, timeouts: { install_s: SOON_S } }, /^begun$/],
  ['an app that only says 500', { 'server.js': 'require("node:http").createServer((q, s) => { s.statusCode = 500; s.end(); }).listen(process.env.PORT, "127.0.0.1", () => console.log("it listens"));' }, 'LaunchBackend', 'app_error', /port 3000, but with status 500/, { timeouts: { backend_s: SOON_S } }, /^it listens$/],
  ['an exception', { 'server.js': 'throw new Error("API_KEY is missing");' }, 'LaunchBackend', 'exited', /exit code 1: Error: API_KEY is missing$/, {}, /API_KEY/],
  ['nothing where it connects to', { 'server.js': 'require("node:net").connect(4999, "127.0.0.1");' }, 'LaunchBackend', 'connection_refused', /takes connections at: 127\.0\.0\.1:4999/, {}, /ECONNREFUSED/],
  ['an app that only fails', { 'server.js': 'console.log("last words"); process.exit(3)' }, 'LaunchBackend', 'exited', /exit code 3/, {}, /^last words$/],
];

describe('a launch that fails', { concurrency: 4 }, () => {
  for (const [name, files, stage, code, message, more, line] of FAILURES) {
    test(`a launch says why it failed: ${name}`, async () => {
      const { id } = await project(files);
      const launched = await launch({ project: id, ...more });
      assert.equal(launched.status, 'failed');
      assert.deepEqual([launched.error.stage, launched.error.code], [stage, code], JSON.stringify(launched.error));
      assert.match(launched.error.message, message);
      assert.ok(launched.error.remediation.length > 3, 'what to try');
      assert.equal(launched.preview_url, null);
      if (line) assert.ok(launched.error.lines?.some((one) => line.test(one)), JSON.stringify(launched.error.lines));
      const sandbox = (await api.request('GET', `/v1/sandboxes/${launched.sandbox_id}`)).json;
      assert.deepEqual(sandbox.start ?? [], [], 'what failed is not tried for ever');
      await remove(launched, id);
    });
  }
});

test('a launch says why it failed: it used all of its memory', async () => {
  const { id } = await project({ 'server.js': 'const all = []; for (;;) all.push(Buffer.alloc(1e6, 1));' });
  const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { resources: { memory: '100Mi' } } });
  assert.equal(made.status, 201, made.text);
  const launched = await launch({ project: id });
  assert.deepEqual([launched.error?.stage, launched.error?.code, launched.error?.remediation], ['LaunchBackend', 'out_of_memory', 'give the sandbox more memory'], JSON.stringify(launched.error));
  await remove(launched, id);
});

test('a launch says why it failed: another process has the port, or the network policy refuses the registry', async () => {
  const { id } = await project({ 'package.json': '{"scripts":{"start":"node server.js"},"dependencies":{"left-pad":"1.3.0"}}', 'server.js': NODE_SERVER('x') });
  const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { network: { mode: 'allowlist', allow: ['nowhere.test:443'] }, env: { npm_config_registry: 'https://registry.test/' } } });
  assert.equal(made.status, 201, made.text);
  const refused = await launch({ project: id });
  assert.deepEqual([refused.error?.stage, refused.error?.code], ['InstallDependencies', 'network_refused'], JSON.stringify(refused.error));
  assert.match(refused.error.message, /registry\.test(:443)?; the rule that would allow it: registry\.test:443/);
  assert.equal(refused.error.remediation, `sandlot egress ${made.json.id} --allow registry.test:443, then launch again`);
  await upload(id, { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': 'fetch("https://elsewhere.test/").catch(() => require("left-behind"));' });
  const missing = await launch({ project: id });
  assert.deepEqual([missing.error?.stage, missing.error?.code], ['LaunchBackend', 'missing_module'], 'what was refused besides is not the cause');
  await upload(id, { 'server.js': NODE_SERVER('x') });
  await api.exec(made.json.id, { command: `node -e 'require("node:http").createServer((q, s) => s.end()).listen(3000, "127.0.0.1", () => console.log("up"))' & sleep 0.5; true` });
  await api.request('POST', `/v1/sandboxes/${made.json.id}/exec`, { json: { argv: ['node', '-e', 'require("node:http").createServer((q, s) => s.end()).listen(3000, "127.0.0.1")'], background: true } });
  await until(async () => (await api.request('GET', `/v1/sandboxes/${made.json.id}/ports`)).json.ports?.some(({ port }) => port === 3000), { what: 'the other server' });
  const taken = await launch({ project: id });
  assert.deepEqual([taken.error?.stage, taken.error?.code], ['LaunchBackend', 'port_in_use'], JSON.stringify(taken.error));
  await remove(taken, id);
});

test('what the network policy refused is the reason only where the app has missed it', async () => {
  const CALL = (host, then) => `require('node:https').get('https://${host}/', () => {}).on('error', (error) => { ${then} });\n`;
  const cases = [
    ['process.exit(3);', 'exited', /^it ended with exit code 3$/],
    [CALL('collector.test', 'process.exit(3)'), 'exited', /exit code 3; meanwhile the network policy refused collector\.test/],
    [CALL('needed.test', 'console.error("cannot reach needed.test"); process.exit(3)'), 'network_refused', /refused needed\.test/],
    [CALL('collector.test', 'require("left-behind")'), 'missing_module', /left-behind/],
  ];
  for (const [text, code, message] of cases) {
    const { id } = await project({ 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': text });
    const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { network: { mode: 'allowlist', allow: ['nowhere.test:443'] } } });
    assert.equal(made.status, 201, made.text);
    const launched = await launch({ project: id });
    assert.deepEqual([launched.error?.stage, launched.error?.code], ['LaunchBackend', code], JSON.stringify(launched.error));
    assert.match(launched.error.message, message);
    await remove(launched, id);
  }
});

test('a launch goes on when its daemon is killed in the middle, and one whose job is lost says so and can be tried again', async () => {
  const { id } = await project({ 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': `const go = setInterval(() => { if (!require('node:fs').existsSync('/tmp/go')) return; clearInterval(go); ${NODE_SERVER('went on ').trim()} }, 50);\n` });
  const begun = (await api.request('POST', '/v1/launches', { json: { project: id, timeouts: { backend_s: 120 } } })).json;
  await until(async () => (await api.request('GET', `/v1/launches/${begun.id}`)).json.stages.at(-2).status === 'running', { what: 'the backend to be awaited' });
  await instance.crash();
  await instance.start();
  await api.exec(begun.sandbox_id, 'touch /tmp/go');
  const launched = await ended(begun.id);
  assertRuns(launched);
  assert.equal(await page(launched), 'went on /');
  const job = (await api.request('GET', `/v1/jobs/${begun.id}`)).json;
  assert.deepEqual([job.state, job.tries], ['succeeded', 2]);
  // One whose job is not known any more has ended, and can be tried again.
  await instance.terminate();
  sql(instance, `DELETE FROM jobs WHERE id = '${begun.id}'; UPDATE launches SET status = 'running', ended_at = 0 WHERE id = '${begun.id}'`);
  await instance.start();
  const lost = (await api.request('GET', '/v1/launches', { query: { project: id } })).json.launches[0];
  assert.deepEqual([lost.status, lost.error.code], ['failed', 'lost'], JSON.stringify(lost));
  assert.match(lost.error.message, /the daemon ended/);
  assertRuns(await ended((await api.request('POST', `/v1/launches/${lost.id}/retry`)).json.id));
  await remove(launched, id);
});

test('a launch can be cancelled, and statistics tell how launches went', async () => {
  const { id } = await project({ 'package.json': '{"scripts":{"start":"sleep 60"}}' });
  const begun = (await api.request('POST', '/v1/launches', { json: { project: id } })).json;
  const joined = (await api.request('POST', '/v1/launches', { json: { project: id } })).json;
  assert.equal(joined.id, begun.id, 'a sandbox has one launch at a time');
  await until(async () => (await api.request('GET', `/v1/launches/${begun.id}`)).json.stages.at(-2).status === 'running', { what: 'the backend to be awaited' });
  assert.equal((await api.request('POST', `/v1/launches/${begun.id}/cancel`)).status, 200);
  const launched = await ended(begun.id);
  assert.equal(launched.status, 'cancelled');
  const stats = (await api.request('GET', '/v1/launches/stats', { query: { project: id } })).json;
  assert.deepEqual([stats.launches, stats.cancelled, stats.success_rate], [1, 1, null]);
  const all = (await api.request('GET', '/v1/launches/stats')).json;
  assert.deepEqual(Object.values(all.causes), Object.values(all.causes).sort((a, b) => b - a), 'the most frequent cause comes first');
  assert.ok(all.causes.syntax_error >= 2 && all.stages.every(({ stage }, i) => stage === STAGES[i]));
  const failed = (await api.request('GET', '/v1/launches', { query: { failed_stage: 'SyntaxCheck', limit: 1 } })).json;
  assert.equal(failed.launches[0].error.code, 'syntax_error');
  assert.ok(failed.next_cursor);
  await remove(launched, id);
});

test('launches are asked for by time, and the command line lists them, in lines and together', async () => {
  const list = async (query) => (await api.request('GET', '/v1/launches', { query: { limit: 1000, ...query } })).json.launches;
  const all = await list({});
  assert.ok(all.length > 3);
  const since = all[2].created_at;
  assert.deepEqual((await list({ since })).map(({ id }) => id), all.filter(({ created_at: at }) => at >= since.replace(/\.\d+/, '.000')).map(({ id }) => id));
  assert.deepEqual(await list({ since: '2100-01-01T00:00:00Z', days: 1 }), []);
  assert.equal((await api.request('GET', '/v1/launches/stats', { query: { since: '2100-01-01T00:00:00Z' } })).json.launches, 0);
  for (const route of ['/v1/launches', '/v1/launches/stats']) assertError(await api.request('GET', route, { query: { since: 'yesterday' } }), 400);
  const lines = (await ok(['launches', '--since', '1h', '--lines'])).trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ id, status }) => [id, status]), all.map(({ id, status }) => [id, status]));
  const shown = await ok(['launches', '--failed-stage', 'SyntaxCheck']);
  assert.match(shown, /^ID +PROJECT +SANDBOX +STATUS +FAILED IN +CAUSE +AGE\n/);
  assert.ok(shown.trim().split('\n').slice(1).every((line) => /failed +SyntaxCheck +syntax_error/.test(line)), shown);
  const named = await project({ 'index.html': '<p>' });
  const launched = await launch({ project: named.id });
  assert.match(await ok(['launches', '--project', named.name]), new RegExp(`^${launched.id} +${named.name} +${launched.sandbox_id} `, 'm'));
  await remove(launched, named.id);
  assert.match(await ok(['launches', '--stats']), /cancelled.*\nSTAGE +COMPLETED[^]*LaunchFrontend[^]*syntax_error: \d/);
  assert.equal((await sandlot(['launches', '--stats', '--lines'])).code, 2);
});

test('a report says what would be fixed, and what was detected with why', async () => {
  const { id } = await project({
    'package.json': '{"scripts":{"dev":"vite"},"dependencies":{"pg":"8"},"devDependencies":{"vite":"8"}}',
    'vite.config.js': 'export default {}\n', 'run.sh': '#!/bin/sh\r\necho hi\r\n', 'src/main.js': 'fetch("http://localhost:8000/api");\n', 'node_modules/x/index.js': '',
  });
  const report = (await api.request('POST', `/v1/projects/${id}/validate`)).json;
  assert.equal(report.valid, true);
  const found = Object.fromEntries(report.findings.map((finding) => [finding.rule, finding]));
  assert.deepEqual([found.line_ends.file, found.line_ends.line], ['run.sh', 1]);
  assert.match(found.line_ends.diff, /^-#!\/bin\/sh\\r\n\+#!\/bin\/sh\n$/);
  assert.deepEqual([found.localhost_url.file, found.localhost_url.line], ['src/main.js', 1]);
  assert.equal(found.made_files.file, 'node_modules');
  const vite = report.findings.filter(({ rule }) => rule === 'vite_config');
  assert.deepEqual(vite.map(({ fix }) => /^started with (--\w+|a config)/.exec(fix)?.[1]), ['--host', '--port', '--base', 'a config']);
  assert.match(vite.at(-1).diff, /^\+import \{ mergeConfig \} from 'vite';\n\+import own from '\.\.\/vite\.config\.js';\n\+[^]*overlay: false/);
  const detected = (await api.request('GET', `/v1/projects/${id}/detection`)).json;
  assert.deepEqual(detected.frameworks.map(({ name, evidence }) => [name, evidence[0].file]), [['vite', 'package.json']]);
  assert.deepEqual(detected.services.map(({ name }) => name), ['postgres']);
  assert.equal((await api.request('DELETE', `/v1/projects/${id}`)).status, 204);
});

/** Each rule, made on purpose: files, and what is found of it: severity, file, line, and whether the copy is mended. */
const PAGE = { 'index.html': '<p>page</p>' };
const VITE = '{"devDependencies":{"vite":"8"}}';
const RULES = [
  ['settings', { ...PAGE, 'sandlot.json': '{\n' }, 'error', 'sandlot.json', 2, false],
  ['settings', { ...PAGE, 'sandlot.json': '{"prot": 1}' }, 'warning', 'sandlot.json', 1, false],
  ['start_script', { 'package.json': '{"scripts":{"test":"true"}}' }, 'error', 'package.json', null, false],
  ['requirements', { 'main.py': 'x = 1\n' }, 'warning', 'requirements.txt', null, false],
  ['vite_config', { 'package.json': VITE, 'vite.config.js': 'export default { server: { port: 1, hmr: false }, base: "/" };\n' }, 'info', 'vite.config.js', null, true],
  ['vite_config', { 'package.json': VITE, 'vite.config.js': 'module.exports = { server: { host: true, port: 1 }, base: "/" };\n' }, 'info', 'vite.config.js', 2, true],
  ['polling', { ...PAGE, '.env': 'A=1\nCHOKIDAR_USEPOLLING=true\n' }, 'info', '.env', 2, false],
  ['port', { 'server.js': '// a server\nrequire("node:http").createServer().listen(4000);\n' }, 'warning', 'server.js', 2, true],
  ['localhost_url', { ...PAGE, 'src/main.js': '// a page\nfetch("http://localhost:8000/");\n' }, 'warning', 'src/main.js', 2, false],
  ['localhost_url', { ...PAGE, '.env': 'A=1\nVITE_API=http://localhost:8000\n' }, 'warning', '.env', 2, false],
  ['lock_file', { 'package.json': '{"scripts":{"start":"true"},"dependencies":{"a":"1"}}', 'package-lock.json': '{"packages":{"":{}}}' }, 'warning', 'package-lock.json', null, true],
  ['lock_file', { 'main.py': '', Pipfile: '[packages]\nflask = "*"\n', 'Pipfile.lock': '{"default":{}}' }, 'warning', 'Pipfile.lock', null, false],
  ['line_ends', { ...PAGE, 'run.sh': 'set -e\r\n' }, 'warning', 'run.sh', 1, true],
  ['made_files', { ...PAGE, 'node_modules/a/index.js': '', 'node_modules/b.js': '' }, 'warning', 'node_modules', null, true],
  ['made_files', { ...PAGE, 'tools/env/pyvenv.cfg': '', 'tools/env/lib/a.py': '' }, 'warning', 'tools/env', null, true],
  ['secret', { ...PAGE, 'config.js': `// keys\nconst key = "AKIA${'A'.repeat(16)}";\n` }, 'warning', 'config.js', 2, false],
];

test('each rule of the report is met on purpose, with its severity, file and line, and leaves the upload as it is', async () => {
  for (const [rule, files, severity, file, line, isMended] of RULES) {
    const { id } = await project(files);
    const report = (await api.request('POST', `/v1/projects/${id}/validate`)).json;
    const found = report.findings.filter((one) => one.rule === rule);
    assert.deepEqual(found.map((one) => [one.severity, one.file, one.line, one.fix !== null]), [[severity, file, line, isMended]], `${rule} ${Object.keys(files)}: ${JSON.stringify(report.findings)}`);
    assert.equal(report.valid, severity !== 'error', rule);
    for (const [name, text] of Object.entries(files)) assert.equal((await api.request('GET', `/v1/projects/${id}/files/${encodeURIComponent(name)}`)).text, text);
    assert.equal((await api.request('DELETE', `/v1/projects/${id}`)).status, 204);
  }
});

test('by path an app that knows nothing of it sees requests without, and a first port of the user\'s own has the number in the path', async () => {
  const home = fs.mkdtempSync(path.join(instance.home, 'by-path-'));
  fs.writeFileSync(path.join(home, 'server.js'), NODE_SERVER('own '));
  fs.writeFileSync(path.join(home, '.env'), 'PORT=3456\n');
  const byPath = await sandlot(['launch', '--project', 'by-path', '--preview', 'path', home]);
  assert.match(byPath.stderr, /port 3456 is private, and browsers [^]*"sandlot open --public [0-9a-z]{26} 3456" makes it public/);
  const url = new URL(byPath.stdout.trim());
  const [sandbox] = (await api.request('GET', '/v1/sandboxes', { query: { project: 'by-path' } })).json.sandboxes;
  assert.equal(url.pathname, `/api/sandbox/sessions/${sandbox.id}/preview/`);
  const previews = new Previews(api, sandbox);
  const env = (await api.read(sandbox.id, '/workspace/app/.env')).toString();
  assert.match(env, new RegExp(`CORS_ORIGINS=http://s-${sandbox.id}-3456\\.`), 'of the port that .env says');
  assert.equal((await previews.request(3456, `${url.pathname}a`, { host: url.host })).text, 'own /a');
  assert.equal((await previews.request(3456, '/b')).text, 'own /b', 'its name leads there as well');
  assert.match(byPath.stderr, new RegExp(`the app runs in the sandbox ${sandbox.id}$`, 'm'));
  const meant = await sandlot(['egress', 'by-path']);
  assert.equal(meant.code, 3);
  assert.match(meant.stderr, new RegExp(`there is no sandbox with the name "by-path"[^]*the sandbox of the project by-path is ${sandbox.id}$`, 'm'));
  const second = await ok(['create', '--project', 'by-path', '--session', 'more', '-p', '8080']);
  const launched = await launch({ project: 'by-path', sandbox: second.trim(), preview: 'path' });
  assertRuns(launched);
  assert.equal(new URL(launched.preview_url).pathname, `/v1/sandboxes/${second.trim()}/preview/3456/`);
  assertError(await api.request('POST', '/v1/launches', { json: { project: 'by-path', preview: 'nowhere' } }), 400);
  await api.purge(second.trim());
  await remove({ sandbox_id: sandbox.id }, 'by-path');
});

test('a Vite app is launched with the packages that are there', async (t) => {
  const archive = await installed(t, 'vite');
  if (!archive) return;
  const sources = path.join(REPOSITORY, 'tests/e2e/apps/vite');
  const { id } = await project(Object.fromEntries(fs.readdirSync(sources).map((name) => [name, fs.readFileSync(path.join(sources, name))])));
  const made = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { resources: { memory: '2Gi', disk: '4Gi' } } });
  const put = await api.request('PUT', `/v1/sandboxes/${made.json.id}/files/archive`, { query: { path: '/workspace/app' }, body: fs.createReadStream(archive, { highWaterMark: 1 << 20 }), headers: { 'content-type': 'application/x-tar' } });
  assert.ok(put.status < 300, put.text);
  const launched = await launch({ project: id, frontend: { install: 'test -x node_modules/.bin/vite' } });
  assertRuns(launched);
  assert.match(await page(launched), /\/@vite\/client/);
  assert.match(launched.versions.vite, /^\d+\.\d+\.\d+/);
  const again = await launch({ project: id, frontend: { install: 'test -x node_modules/.bin/vite' } });
  assert.equal(again.stages[3].status, 'skipped', 'what is installed is not installed again');
  await remove(launched, id);
});

test('how many launches are kept is a setting', async () => {
  const { id } = await project({ 'index.html': 'page' });
  const [first, second] = [await launch({ project: id }), await launch({ project: id })];
  await instance.terminate();
  await instance.start(['--launch-history', '1']);
  const third = await launch({ project: id });
  assert.deepEqual((await api.request('GET', '/v1/launches', { query: { project: id } })).json.launches.map((one) => one.id), [third.id]);
  for (const gone of [first, second]) assert.equal((await api.request('GET', `/v1/launches/${gone.id}`)).status, 404);
  assert.match((await api.request('GET', `/v1/launches/${third.id}/events`)).text, /LaunchFrontend/);
  await remove(third, id);
});

test('how long an app has to answer is a setting', async () => {
  await instance.terminate();
  await instance.start(['--launch-backend-timeout', '1s']);
  const { id } = await project({ 'server.js': 'setInterval(() => {}, 1000);\n' });
  const launched = await ended((await api.request('POST', '/v1/launches', { json: { project: id } })).json.id);
  assert.deepEqual([launched.status, launched.error.stage], ['failed', 'LaunchBackend']);
  assert.match(launched.error.message, /\b1 s\b/);
  await remove(launched, id);
});

finish();
