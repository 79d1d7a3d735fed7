// SPDX-License-Identifier: Apache-2.0
// Commands that look dangerous: flagged, held until they are confirmed, or refused, wherever they start.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { commandLine } from './lib/cli.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('dangerous');
const { ok, sandlot } = commandLine(instance);

/** Looks dangerous, and does nothing: the sandbox has no such program as this xmrig. */
const MINER = 'xmrig --version; true';
const ME = '/v1/quotas/default/admin', ORGANIZATION = '/v1/quotas/default';

const policy = async (dangerous_commands, path = ME) => {
  const answer = await api.request('PUT', path, { json: { dangerous_commands } });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.dangerous_commands, dangerous_commands);
};
const exec = (id, json, headers = {}) => api.request('POST', `/v1/sandboxes/${id}/exec`, { json, headers });
const audited = async (action) => (await api.request('GET', '/v1/audit', { query: { limit: 100 } })).json.entries.find((one) => one.action === action);
const { id } = await api.create();

test('a command that looks dangerous runs and is flagged: in the answer, its record, the events and the audit log', async () => {
  const answer = await exec(id, { command: MINER });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual([answer.json.exit_code, answer.json.flags], [0, ['miner']]);
  assert.equal(answer.headers['sandlot-flags'], 'miner');
  const entry = await audited('exec.run');
  assert.match(entry.detail, /flags=miner/);

  const background = await exec(id, { command: MINER, background: true });
  assert.deepEqual(background.json.process.flags, ['miner']);
  const { json } = await api.request('GET', `/v1/sandboxes/${id}/processes/${background.json.process.id}`);
  assert.deepEqual(json.process.flags, ['miner']);
  const plain = await exec(id, { command: 'echo "xmrig"' });
  assert.equal(plain.json.flags, undefined);
});

test('what a shell reads counts, and so does code that is run for a result', async () => {
  const read = await exec(id, { argv: ['sh'], stdin: `${MINER}\n` });
  assert.deepEqual(read.json.flags, ['miner']);
  const run = await api.request('POST', `/v1/sandboxes/${id}/executions`, { json: { language: 'python', code: 'import os\nos.system("xmrig --version")\n' } });
  assert.equal(run.status, 200, run.text);
  assert.deepEqual(run.json.flags, ['miner']);
  const kept = await api.request('GET', `/v1/executions/${run.json.id}`);
  assert.deepEqual(kept.json.flags, ['miner']);
});

test('with the policy confirm it is held until its code comes with it; another command has another code', async () => {
  await policy('confirm');
  const held = await exec(id, { command: `${MINER}; echo ran` });
  const error = assertError(held, 409, /looks dangerous: miner \(mines a cryptocurrency\)/);
  assert.equal(error.code, 'confirmation_required');
  assert.match(error.confirm, /^[0-9a-f]{12}$/);
  assert.ok(error.remediation.includes(error.confirm), error.remediation);
  assert.equal((await audited('exec.run')).code, 'confirmation_required');

  assertError(await exec(id, { command: MINER, confirm: error.confirm }), 409);
  assertError(await exec(id, { command: `${MINER}; echo ran`, confirm: '000000000000' }), 409);
  const confirmed = await exec(id, { command: `${MINER}; echo ran`, confirm: error.confirm });
  assert.deepEqual([confirmed.status, confirmed.json.stdout, confirmed.json.flags], [200, 'ran\n', ['miner']]);
  assert.equal((await exec(id, { command: 'true' })).status, 200);
});

test('the same for code, also without a sandbox; a retry is not asked about again', async () => {
  const json = { language: 'shell', code: MINER };
  const error = assertError(await api.request('POST', '/v1/executions', { json }), 409);
  assert.equal(error.code, 'confirmation_required');
  const made = await api.request('POST', '/v1/executions', { json: { ...json, confirm: error.confirm } });
  assert.deepEqual([made.status, made.json.flags], [200, ['miner']]);
  const again = await api.request('POST', `/v1/executions/${made.json.id}/retry`);
  assert.equal(again.status, 200, again.text);
});

test('the command line says what it is, takes the code, or yes for an answer', async () => {
  const held = await sandlot(['exec', id, '-c', MINER]);
  assert.equal(held.code, 4, held.stderr);
  const [, code] = /--confirm "([0-9a-f]+)"/.exec(held.stderr) ?? [];
  assert.ok(code, held.stderr);
  const confirmed = await sandlot(['exec', '--confirm', code, id, '-c', MINER]);
  assert.equal(confirmed.code, 0, confirmed.stderr);
  assert.match(confirmed.stderr, /looks dangerous: miner/);
  await ok(['exec', '-y', id, '-c', MINER]);
  await ok(['exec', '-y', '-d', id, '-c', MINER]);
});

test('with the policy refuse it does not run, whoever of user and organization is stricter', async () => {
  await policy('refuse', ORGANIZATION);
  await policy('flag');
  const error = assertError(await exec(id, { command: MINER }), 403, /such commands are refused here/);
  assert.equal(error.code, 'command_refused');
  assertError(await api.request('POST', `/v1/sandboxes/${id}/executions`, { json: { language: 'shell', code: MINER } }), 403);
  const { id: started } = await api.create({ start: [{ name: 'app', command: MINER }] });
  const command = await until(async () => {
    const { json } = await api.request('GET', `/v1/sandboxes/${started}`);
    return json.start?.find((one) => one.name === 'app' && one.last_error);
  }, { what: 'the start command is refused' });
  assert.match(command.last_error, /looks dangerous/);
  const { id: primary } = await api.create({ members: [{ role: 'cache', port: 6379, command: MINER }] });
  const member = await until(async () => (await api.get(primary)).members.find(({ role, error_message: why }) => role === 'cache' && why), { what: 'the command of the member is refused' });
  assert.match(member.error_message, /looks dangerous: miner|such commands are refused/);
  const { id: project } = (await api.request('POST', '/v1/projects', { json: { name: 'launched' } })).json;
  await api.request('PUT', `/v1/projects/${project}/files`, { query: { path: 'index.html' }, body: 'page', headers: { 'content-type': 'text/html' } });
  for (const [part, stage] of [[{ install: MINER }, 'InstallDependencies'], [{ command: MINER }, 'LaunchFrontend']]) {
    const { json: begun } = await api.request('POST', '/v1/launches', { json: { project, frontend: part } });
    const launched = await until(async () => { const { json } = await api.request('GET', `/v1/launches/${begun.id}`); return json.status !== 'running' && json; }, { what: 'the end of the launch' });
    assert.deepEqual([launched.error?.stage, launched.error?.code], [stage, 'command_refused'], JSON.stringify(launched.error));
    assert.match(launched.error.message, /looks dangerous.*miner/);
    assert.match(launched.error.remediation, /administrator/);
  }
  await api.request('DELETE', ORGANIZATION);
  await api.request('DELETE', ME);
  assert.equal((await exec(id, { command: MINER })).status, 200);
});

test('quotas show the policy', async () => {
  const stdout = await ok(['quota', 'set', 'acme', 'dangerous_commands=refuse']);
  assert.match(stdout, /acme\s+dangerous_commands\s+refuse/);
  assertError(await api.request('PUT', '/v1/quotas/acme', { json: { dangerous_commands: 'allow' } }), 400);
});

finish();
