// SPDX-License-Identifier: Apache-2.0
// Previews of sandboxes with a start command: they wake with their app, and say what is wrong with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sql } from './lib/database.mjs';
import { ownerApi } from './lib/owners.mjs';
import { Previews } from './lib/preview.mjs';
import { Processes, hostProcesses } from './lib/processes.mjs';
import { suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('start-previews');
const ps = new Processes(api);

/** SQL after which a sandbox and what it started are not young any more. */
const age = (id, ms = 100_000) => ['processes', 'sandboxes'].map((table) => `UPDATE ${table} SET started_at = started_at - ${ms} WHERE ${table === 'processes' ? 'sandbox' : 'id'} = '${id}';`).join('');
async function grow(id, ms) {
  await instance.terminate();
  sql(instance, age(id, ms));
  await instance.start();
  return new Previews(api, await api.get(id));
}

/** An app that says whose it is, and how often it was started. */
const app = (says, port = 3000) => `echo started >>/workspace/starts; exec node -e 'require("http").createServer((q, r) => r.end("${says}")).listen(${port})'`;
const starts = async (id) => (await api.read(id, '/workspace/starts')).toString().split('\n').length - 1;
const make = async (start, body = {}, owner = api) => {
  const sandbox = await owner.create({ start, ports: [3000], ...body });
  return { id: sandbox.id, previews: new Previews(owner, sandbox) };
};
const start = async (id) => (await api.get(id)).start[0];
const untilStatus = (id, status) => until(async () => (await start(id)).status === status, { what: `its start command is ${status}` });

/** The same answer in both forms: its status and code, and the page of a browser. */
async function bothForms(previews, options) {
  const answer = await previews.request(3000, '/', options);
  const page = await previews.request(3000, '/', { ...options, headers: { accept: 'text/html' } });
  assert.equal(page.status, answer.status);
  assert.match(page.headers['content-type'], /^text\/html/);
  return { status: answer.status, error: answer.json.error, html: page.text };
}

test('a request wakes it and is answered by its app', async () => {
  const { id, previews } = await make(app('mine'));
  assert.equal((await previews.request(3000, '/')).text, 'mine', 'the first one waits for the app to listen');
  await api.life(id, 'stop');
  assert.equal((await previews.request(3000, '/')).text, 'mine');
  assert.equal(await starts(id), 2);
  await api.life(id, 'stop');
  const page = () => previews.request(3000, '/', { headers: { accept: 'text/html' } });
  assert.match((await page()).text, /http-equiv=refresh/);
  await until(async () => (await page()).text === 'mine', { what: 'the page that reloads becomes the app' });
});

test('one that stops when idle wakes with its app, for each of two owners their own', async () => {
  const ann = await ownerApi(api, 'acme', 'ann');
  const [one, two] = await Promise.all([make(app('one'), { idle_timeout_s: 1 }), make(app('two'), { idle_timeout_s: 1 }, ann)]);
  await until(async () => (await api.get(one.id)).status === 'stopped' && (await ann.get(two.id)).status === 'stopped', { what: 'both are idle' });
  const answers = await Promise.all([one, two].map(({ previews }) => previews.request(3000, '/')));
  assert.deepEqual(answers.map((answer) => answer.text), ['one', 'two']);
  assert.equal((await new Previews(api, await ann.get(two.id)).request(3000, '/')).status, 401, 'nobody else gets in');
  await ann.purge(two.id);
});

test('1,000 requests at one that sleeps start it and its app once', async () => {
  const { id, previews } = await make(app('many'));
  await api.life(id, 'stop');
  const answers = await Promise.all(Array.from({ length: 1000 }, () => previews.request(3000, '/')));
  assert.deepEqual([...new Set(answers.map((answer) => `${answer.status} ${answer.text}`))], ['200 many']);
  assert.deepEqual((await ps.list(id)).map((record) => record.status), ['exited', 'running'], 'that of its creation, and one for all of them');
});

test('a crashed app is said so, with what it wrote last, as text', async () => {
  const { id, previews } = await make('printf "\\033[31m<b>oh no</b>\\033[0m \\"x\\"\\001\\377 end\\n" >&2; exit 9');
  await until(async () => (await start(id)).restarts >= 2 && (await start(id)).status === 'waiting', { what: 'it loops' });
  const { status, error, html } = await bothForms(previews);
  assert.deepEqual([status, error.code, error.output], [502, 'app_crashed', '<b>oh no</b> "x"? end\n']);
  assert.match(error.message, /The start command main ended with status 9\. Restarts so far: \d+; the next try is in \d+ s\./);
  assert.match(html, /The app crashed.*<pre>&lt;b>oh no&lt;\/b> &quot;x&quot;\? end\n<\/pre>/s);
  assert.doesNotMatch(html, /<b>/);
  assert.equal((await previews.request(3000, '/', { token: false })).status, 401, 'strangers learn nothing');
  await api.patch(id, { private: false });
  const open = await bothForms(previews, { token: false });
  assert.deepEqual([open.error.code, open.error.output], ['app_crashed', undefined]);
  assert.doesNotMatch(open.html, /oh no/, 'what it wrote is not for everybody');
});

test('an app that cannot be run at all says why to those who may know', async () => {
  const { id, previews } = await make([{ name: 'web', command: 'true', cwd: '/workspace/<app>' }]);
  await untilStatus(id, 'waiting');
  const { status, error, html } = await bothForms(previews);
  assert.deepEqual([status, error.code], [502, 'app_not_run']);
  assert.match(error.message, /^The start command web cannot be run: the directory \/workspace\/<app> cannot be entered: No such file or directory\. Restarts so far: \d+; the next try is in \d+ s\.$/);
  assert.match(html, /The app cannot be run.*\/workspace\/&lt;app>/s);
  await api.patch(id, { private: false });
  const open = await bothForms(previews, { token: false });
  assert.match(open.error.message, /^The start command web cannot be run\. Restarts/);
  assert.deepEqual([error.remediation, open.error.remediation], ['make that directory, or name another', null]);
  assert.doesNotMatch(open.html, /workspace/);
});

test('one that has done its part does not speak for the app that is still starting', async () => {
  const { id, previews } = await make([{ name: 'setup', command: 'true' },
    { name: 'web', command: `while [ ! -e /workspace/ready ]; do sleep 0.1; done; ${app('late')}` }]);
  await untilStatus(id, 'exited');
  assert.match((await previews.request(3000, '/', { headers: { accept: 'text/html' } })).text, /Waiting for the app/);
  const answer = previews.request(3000, '/');
  await api.put(id, '/workspace/ready', '');
  assert.equal((await answer).text, 'late');
});

test('one that ended, and one that was ended, are told apart', async () => {
  const ended = await make('echo bye');
  await untilStatus(ended.id, 'exited');
  assert.equal((await bothForms(ended.previews)).error.code, 'app_exited');
  const killed = await make(app('x'));
  assert.equal((await killed.previews.request(3000, '/')).text, 'x');
  await ps.kill(killed.id, (await start(killed.id)).process);
  await untilStatus(killed.id, 'killed');
  const { status, error, html } = await bothForms(killed.previews);
  assert.deepEqual([status, error.code], [502, 'app_killed']);
  assert.match(html, /The app was ended/);
});

test('without a start command, what listens elsewhere is named too, at once for a browser', async () => {
  const { id, previews } = await make([]);
  await ps.start(id, app('x', 5173));
  await until(async () => /The sandbox listens on 5173\./.test((await previews.request(3000, '/', { headers: { accept: 'text/html' } })).text), { what: 'the page that waits says so' });
  const { error } = await bothForms(await grow(id));
  assert.deepEqual([error.code, error.listening], ['port_closed', [5173]]);
});

test('where nothing is starting a request does not wait, and where somebody has just started something it does', async () => {
  const { id } = await make([]);
  const previews = await grow(id, 10_000);
  const said = await within('that nothing listens', previews.request(3000, '/'), 15_000);
  assert.deepEqual([said.status, said.json.error.code], [502, 'port_closed']);
  await ps.start(id, `while [ ! -e /workspace/ready ]; do sleep 0.1; done; ${app('by hand')}`);
  const waits = previews.request(3000, '/');
  assert.match((await previews.request(3000, '/', { headers: { accept: 'text/html' } })).text, /Waiting for the app/);
  await api.put(id, '/workspace/ready', '');
  assert.equal((await waits).text, 'by hand');
  const settled = await make(app('aside', 3001));
  const wrong = await within('that it listens elsewhere', (await grow(settled.id, 31_000)).request(3000, '/'), 15_000);
  assert.deepEqual([wrong.status, wrong.json.error.code], [502, 'wrong_port']);
});

test('many who ask at once all hear that nothing answers', async () => {
  const { id } = await make([]);
  const previews = await grow(id);
  const answers = await Promise.all(Array.from({ length: 200 }, () => previews.request(3000, '/')));
  assert.deepEqual([...new Set(answers.map((answer) => answer.json.error.code))], ['port_closed']);
});

test('an app that listens elsewhere, and a sandbox in error, are told apart', async () => {
  const elsewhere = await make(app('elsewhere', 3001));
  const broken = await make('true');
  await until(() => hostProcesses(instance, 'node -e require("http").createServer((q, r) => r.end("elsewhere")).listen(3001)').length === 1, { what: 'the app runs' });
  await api.life(broken.id, 'stop');
  const young = await elsewhere.previews.request(3000, '/', { headers: { accept: 'text/html' } });
  assert.match(young.text, /Waiting for the app/, 'it may still come');
  await instance.terminate();
  sql(instance, age(elsewhere.id) + `UPDATE sandboxes SET status = 'error', error_message = 'no <room>' WHERE id = '${broken.id}'`);
  await instance.start();
  const previews = new Previews(api, await api.get(elsewhere.id));
  const wrong = await bothForms(previews);
  assert.deepEqual([wrong.status, wrong.error.code], [502, 'wrong_port']);
  assert.match(wrong.error.message, /The start command main runs, but nothing answers on port 3000.*\. The sandbox listens on 3001\.$/);
  assert.deepEqual(wrong.error.listening, [3001]);
  assert.match(wrong.error.remediation, new RegExp(`listen on port 3000, or open .*: sandlot open ${elsewhere.id} 3001$`));
  assert.match(wrong.html, /The app does not listen on this port.*The sandbox listens on 3001\./s);
  await api.patch(elsewhere.id, { ports: [3000, 3001] });
  const { error } = await bothForms(previews);
  assert.match(error.remediation, new RegExp(`sandlot open ${elsewhere.id} 3001$`));
  await api.patch(elsewhere.id, { private: false });
  const open = await bothForms(previews, { token: false });
  assert.equal(open.error.code, 'wrong_port');
  assert.doesNotMatch(JSON.stringify(open), /3001/, 'what listens inside is not for everybody');
  const failed = await bothForms(new Previews(api, await api.get(broken.id)));
  assert.deepEqual([failed.status, failed.error.code, failed.error.message], [502, 'sandbox_error', 'no <room>']);
  assert.match(failed.html, /The sandbox is in error.*no &lt;room>/s);
  assert.equal(failed.error.remediation, `Start it again: sandlot start ${broken.id}`);
});

finish();
