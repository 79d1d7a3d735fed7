// SPDX-License-Identifier: Apache-2.0
// What removed sandboxes leave: it is told, shown, found by a piece of its id, pruned, and purged when its time is over.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';

import { commandLine, speaks } from './lib/cli.mjs';
import { Instance, program } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { Terminal } from './lib/pseudo_terminal.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('cli-removed');
const { urlEnv, sandlot, ok, json, created } = commandLine(instance);
const open = [];
after(() => { for (const terminal of open) terminal.end(); });

const removed = async () => (await json(['ls', '--removed', '-o', 'json'])).sandboxes.map(({ id }) => id);
const workspaces = (of = instance) => proc.stored(path.join(of.dataDir, 'workspaces')).map((name) => name.replace(/\.img$/, ''));

test('rm says that the workspace stays, and ls --removed shows it', async () => {
  const id = await created('--name', 'web');
  const result = await sandlot(['rm', id]);
  assert.equal(result.stdout, `${id}\n`);
  assert.match(result.stderr, /the workspace stays.*sandlot ls --removed.*sandlot purge/);
  assert.deepEqual(await removed(), [id]);
  assert.match(await ok(['ls', '--removed']), new RegExp(`${id} +web +\\S+ \\S+ +\\d+s +\\d+s`));
  assert.equal(await ok(['ls', '--removed', '-q']), `${id}\n`);
  assert.doesNotMatch(await ok(['ls', '-q']), new RegExp(id));
  const quiet = await sandlot(['purge', 'web']);
  assert.deepEqual([quiet.code, quiet.stdout, quiet.stderr], [0, `${id}\n`, ''], 'once');
  assert.deepEqual(await removed(), []);
  speaks(await sandlot(['ls', '--removed', '--label', 'a=b']), /no filter goes with/);
});

test('purge takes a piece of the id of a sandbox that was removed', async () => {
  const id = await created();
  await ok(['rm', id]);
  assert.equal(await ok(['purge', id.slice(0, 25)]), `${id}\n`);
  assert.equal(workspaces().includes(id), false);
  speaks(await sandlot(['purge', id.slice(0, 25)]), /there is no sandbox/);
});

test('a sandbox that was removed is told as such, not as one that never was', async () => {
  const id = await created('--name', 'was-here');
  await ok(['rm', id]);
  for (const args of [['exec', 'was-here', '--', 'true'], ['logs', 'was-here'], ['inspect', id.slice(0, 25)]]) {
    const result = await sandlot(args);
    speaks(result, /the sandbox "\S+" was removed\n.*sandlot ls --removed/);
    assert.equal(result.code, 3);
  }
  await ok(['purge', id]);
  speaks(await sandlot(['exec', 'was-here', '--', 'true']), /there is no sandbox/);
});

test('a workspace that is taken up again is no longer removed', async () => {
  const id = await created();
  await ok(['rm', id]);
  await created('--id', id);
  assert.deepEqual(await removed(), []);
  const gone = await sandlot(['rm', '--purge', id]);
  assert.doesNotMatch(gone.stderr, /stays/);
  assert.deepEqual(await removed(), []);
});

test('prune asks, and purges all that removed sandboxes left', async () => {
  const ids = [await created(), await created()];
  const kept = await created();
  await ok(['rm', ...ids]);
  speaks(await sandlot(['prune']), /nobody is there to ask[^]*--force/);
  assert.equal(await ok(['prune', '--force', '--older-than', '1d']), '');
  assert.deepEqual((await removed()).sort(), [...ids].sort());
  const terminal = new Terminal([program('sandlot'), 'prune'], { env: instance.environment(urlEnv()) });
  open.push(terminal);
  await terminal.expect(/Purge the workspaces of 2 removed sandboxes.*\[y\/N\]/);
  terminal.type('n\r');
  assert.notEqual(await terminal.exit(), 0);
  assert.equal((await removed()).length, 2);
  assert.deepEqual((await ok(['prune', '--force'])).trim().split('\n').sort(), [...ids].sort());
  assert.deepEqual(await removed(), []);
  assert.deepEqual(workspaces().filter((name) => ids.includes(name)), []);
  assert.equal((await api.get(kept)).status, 'running');
  assert.equal(await ok(['prune', '--force']), '');
});

test('rm --all asks, and removes all', async () => {
  const ids = [await created(), await created()];
  speaks(await sandlot(['rm', '--all']), /nobody is there to ask[^]*--force/);
  speaks(await sandlot(['rm', '--all', ids[0]]), /--all goes with no id/);
  speaks(await sandlot(['rm']), /no sandbox to remove/);
  const gone = (await ok(['rm', '--all', '--purge', '--force'])).trim().split('\n');
  for (const id of ids) assert.ok(gone.includes(id));
  assert.equal(await ok(['ls', '-q']), '');
});

test('what is removed is somebody\'s own', async () => {
  const id = await created();
  await ok(['rm', id]);
  const { json: token } = await api.request('POST', '/v1/tokens', { json: { organization: 'elsewhere', user: 'eve' } });
  const foreign = await api.request('GET', '/v1/sandboxes?removed=true', { token: token.token });
  assert.deepEqual(foreign.json, { sandboxes: [], next_cursor: null });
  assert.equal((await api.request('GET', '/v1/sandboxes?removed=perhaps')).status, 400);
  await ok(['purge', id]);
});

test('a workspace is purged when its time is over, and none that is in use', async () => {
  const second = new Instance('cli-retention');
  try {
    await second.start(['--workspace-retention', '1s']);
    const gone = await second.api.create();
    const used = await second.api.create();
    for (const { id } of [gone, used]) await second.api.request('DELETE', `/v1/sandboxes/${id}`);
    await second.api.create({ id: used.id });
    await until(() => !workspaces(second).includes(gone.id), { what: 'the workspace is purged' });
    assert.equal((await second.api.get(used.id)).status, 'running');
    assert.deepEqual(workspaces(second), [used.id]);
  } finally {
    second.destroy();
  }
});

finish();
