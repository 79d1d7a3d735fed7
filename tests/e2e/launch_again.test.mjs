// SPDX-License-Identifier: Apache-2.0
// Launches of an app that was launched before, and of one with more files than its own: what is kept, and what is done.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { sql, sqlWhileStopped } from './lib/database.mjs';
import { commandLine } from './lib/cli.mjs';
import { program } from './lib/instance.mjs';
import { Launches } from './lib/launches.mjs';
import { Terminal } from './lib/pseudo_terminal.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('launch_again', { width: 2 });
const { urlEnv, start, ok, crash } = commandLine(instance);
const launches = new Launches(api);
const SERVER = (text) => `require('node:http').createServer((q, s) => s.end(${JSON.stringify(text)} + process.pid)).listen(process.env.PORT, '127.0.0.1');\n`;

/** What the stages of a launch said. */
async function said({ id }) {
  const { text } = await api.request('GET', `/v1/launches/${id}/events`);
  return [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data]) => JSON.parse(data).log).filter(Boolean);
}

async function launch(id, body = {}) {
  const launched = await launches.launch({ project: id, ...body });
  launches.assertRuns(launched);
  return launched;
}

test('values that were put into .env of the copy survive launches, and what is kept or changed is told', async () => {
  const { id } = await launches.project({ 'server.js': SERVER('x'), '.env': 'GREETING=one\nMODE=project\n' });
  const first = await launch(id);
  const read = async () => (await api.read(first.sandbox_id, '/workspace/app/.env')).toString();
  const text = await read();
  assert.match(text, /^GREETING=one\nMODE=project\n#.*\nPORT=3000\n/);
  await api.put(first.sandbox_id, '/workspace/app/.env', `${text.replace('MODE=project', 'MODE=copy').replace('PORT=3000', 'PORT=3100')}ADDED=1\n`);
  await launches.upload(id, { '.env': 'GREETING=two\nMODE=project\n' });
  const second = await launch(id);
  const lines = await said(second);
  for (const line of ['MODE of .env is kept as it is in the copy; the project says otherwise', 'ADDED of .env is kept as it is in the copy', 'GREETING of .env is changed']) {
    assert.ok(lines.includes(line), `${line}: ${lines.join('\n')}`);
  }
  assert.match(await read(), /^GREETING=two\nMODE=copy\nPORT=3100\nADDED=1\n#/);
  assert.match(second.preview_url, /-3100\./, 'the port that was put there');
  assert.match(await launches.page(second), /^x/);
  const before = await read();
  await launch(id);
  assert.equal(await read(), before, 'a third launch keeps them as well');
  // Of a launch that ends before the file is written nothing is lost either.
  const failed = await launches.launch({ project: id, timeouts: { backend_s: 1 }, backend: { command: 'exec sleep 60' } });
  assert.equal(failed.status, 'failed');
  assert.match(await read(), /^GREETING=two\nMODE=copy\n/);
  await launches.remove(first, id);
});

test('a launch again checks and starts only the parts that have changed, and leaves the processes of the others', async () => {
  const { id } = await launches.project({ 'api/server.js': SERVER('api '), 'web/server.js': SERVER('web '), 'web/notes.txt': 'x' });
  const first = await launch(id);
  const shown = async () => Promise.all([3001, 3000].map((port) => launches.page(first, '/', port)));
  const stages = ({ stages: all }) => all.slice(5).map(({ status }) => status).join(' ');
  assert.equal(stages(first), 'complete complete complete');
  const [api1, web1] = await shown();
  const same = await launch(id);
  assert.deepEqual([stages(same), await shown()], ['skipped skipped skipped', [api1, web1]], 'nothing has changed');
  assert.ok((await said(same)).includes('backend runs already, and nothing that it has loaded has changed'));
  assert.deepEqual([same.backend_port, same.frontend_port, same.preview_url], [first.backend_port, first.frontend_port, first.preview_url]);

  await launches.upload(id, { 'api/server.js': SERVER('api, edited ') });
  assert.equal(stages(await launch(id)), 'complete complete skipped');
  const [api2, web2] = await shown();
  assert.match(api2, /^api, edited /);
  assert.equal(web2, web1, 'the process of the part that is as it was');

  await api.put(first.sandbox_id, '/workspace/app/web/server.js', SERVER('web, edited in the copy '));
  assert.equal(stages(await launch(id)), 'complete skipped complete');
  const [api3, web3] = await shown();
  assert.deepEqual([api3, /^web, edited in the copy /.test(web3)], [api2, true], web3);

  await launch(id, { env: { MORE: '1' } });
  const changed = await shown();
  assert.notEqual(changed[0], api3, 'another environment');
  const again = await api.request('POST', `/v1/launches/${same.id}/retry`, { json: { from: 'LaunchFrontend' } });
  launches.assertRuns(await launches.ended(again.json.id));
  assert.notEqual((await shown())[1], changed[1], 'a stage that somebody names is run');

  // What a launch that failed has copied is not taken for what runs.
  await launches.upload(id, { 'api/server.js': SERVER('never '), 'web/server.js': 'let a = = 1;' });
  assert.equal((await launches.launch({ project: id })).error.stage, 'SyntaxCheck');
  await launches.upload(id, { 'web/server.js': SERVER('web ') });
  launches.assertRuns(await launches.launch({ project: id }));
  const [api5, web5] = await shown();
  assert.deepEqual([/^never /.test(api5), /^web /.test(web5)], [true, true], `${api5} ${web5}`);
  await api.life(first.sandbox_id, 'stop');
  const [api6, web6] = await shown(); // which wakes it
  launches.assertRuns(await launches.launch({ project: id }));
  assert.deepEqual(await shown(), [api6, web6], 'after a wake nothing is started anew either');
  await launches.remove(first, id);
});

test('the command line follows a launch over a restart of the daemon, begins at a stage, and leaves one to itself at Ctrl-C', async () => {
  const home = fs.mkdtempSync(path.join(instance.home, 'followed-'));
  fs.writeFileSync(path.join(home, 'server.js'), `console.log('up'); const wait = setInterval(() => { if (!require('node:fs').existsSync('/tmp/go')) return; clearInterval(wait); ${SERVER('followed ').trim()} }, 50);\n`);
  const begin = (...args) => start(['launch', '--project', 'followed', '-v', ...args, home]);
  const starts = (child) => until(() => /LaunchBackend|exec node/.test(child.said), { what: 'its backend is started' });
  const child = begin('--backend-timeout', '2m');
  await starts(child);
  await crash();
  const [sandbox] = (await api.request('GET', '/v1/sandboxes', { query: { project: 'followed' } })).json.sandboxes;
  await api.exec(sandbox.id, 'touch /tmp/go');
  const followed = await child.result;
  assert.deepEqual([followed.code, /^http\S+-3000\./.test(child.shown())], [0, true], child.said);

  const again = begin('--from', 'SyntaxCheck');
  assert.equal((await again.result).code, 0, again.said);
  assert.match(again.said, /SyntaxCheck +complete[^]*LaunchBackend +complete/);
  const wrong = begin('--from', 'Nothing');
  assert.equal((await wrong.result).code, 2, wrong.said);
  assert.match(wrong.said, /from must be the name of a stage/);

  await api.exec(sandbox.id, 'rm /tmp/go');
  const left = begin('--from', 'LaunchBackend', '--backend-timeout', '2m');
  await starts(left);
  left.kill('SIGINT');
  assert.equal((await left.result).code, 130, left.said);
  const [, id] = /goes on without us; "sandlot job cancel ([0-9a-z]{26})" ends it/.exec(left.said) ?? [];
  assert.equal((await api.request('GET', `/v1/launches/${id}`)).json.status, 'running', left.said);
  await ok(['job', 'cancel', id]);
  assert.equal((await launches.ended(id)).status, 'cancelled');
  await launches.remove({ sandbox_id: sandbox.id }, 'followed');
});

test('files that installing makes do not crowd out those of the app', async () => {
  const { id } = await launches.project({ 'server.js': SERVER('all '), 'node_modules/one.js': '', 'tools/pyvenv.cfg': '', 'tools/python.py': '' });
  // Rows alone are enough, since none of these files is copied: to upload so many would take long.
  await sqlWhileStopped(instance, `INSERT INTO project_files (id, project, path, bytes, sha256, type, executable, uploader, created_at)
    WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 20100)
    SELECT 'many' || n, project, 'node_modules/more/' || n || '.js', bytes, sha256, type, executable, uploader, created_at FROM many, project_files WHERE path = 'node_modules/one.js'`);
  const launched = await launch(id);
  assert.match(await launches.page(launched), /^all /, 'its name comes after theirs');
  assert.deepEqual(launched.findings.filter(({ rule }) => rule === 'made_files').map(({ file, fix }) => [file, fix]), [['node_modules', 'left out of the copy'], ['tools', 'left out of the copy']]);
  assert.equal((await api.exec(launched.sandbox_id, 'ls /workspace/app')).stdout, 'server.js\n');
  sql(instance, "DELETE FROM project_files WHERE id LIKE 'many%'");
  await launches.remove(launched, id);
});

test('on a terminal the stage that runs is drawn with its time and last words, and nothing of that is left', async () => {
  const home = fs.mkdtempSync(path.join(instance.home, 'drawn-'));
  // It answers when it has been seen.
  fs.writeFileSync(path.join(home, 'server.js'), `console.log('up'); const wait = setInterval(() => { if (!require('node:fs').existsSync('/tmp/go')) return; clearInterval(wait); ${SERVER('drawn ').trim()} }, 50);\n`);
  const terminal = new Terminal([program('sandlot'), 'launch', '--project', 'drawn', home], { cols: 60, env: instance.environment({ TERM: 'xterm-256color', ...urlEnv() }) });
  after(() => terminal.end());
  await terminal.expect(/\r\x1b\[Ksandlot: LaunchBackend +running +\d+\.\d s {2}exec node/);
  await terminal.expect(/\r\x1b\[Ksandlot: LaunchBackend +running +[1-9]\d*\.\d s/); // its time goes on while it says nothing
  const [sandbox] = (await api.request('GET', '/v1/sandboxes', { query: { project: 'drawn' } })).json.sandboxes;
  await api.exec(sandbox.id, 'touch /tmp/go');
  assert.equal(await terminal.exit(), 0, terminal.text);
  const drawn = terminal.text.split(/\r?\n/).map((line) => line.split('\r\x1b[K').at(-1)).filter(Boolean);
  assert.deepEqual(drawn.filter((line) => / running /.test(line)), []);
  assert.match(drawn.join('\n'), /sandlot: LaunchBackend +complete +\d+\.\d s\n/);
  assert.ok(terminal.text.split(/[\r\n]/).every((line) => line.replace('\x1b[K', '').length < 60 || !/ running /.test(line)), 'no line that is drawn wraps');
  await launches.remove({ sandbox_id: sandbox.id }, 'drawn');
});

finish();
