// SPDX-License-Identifier: Apache-2.0
// Every command of the client that takes --member means the member, not its sandbox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { busybox, image, registryServer } from './lib/images.mjs';
import { Terminal } from './lib/pseudo_terminal.mjs';
import { program } from './lib/instance.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const registry = await registryServer({ 'library/side:v1': image([busybox()], { config: { Cmd: ['sleep', '3600'] } }) });
after(() => { registry.server.close(); registry.server.closeAllConnections(); });
const { instance, api, finish } = await suite('cli-members', { args: ['--registry-plain', registry.host] });
const { start, sandlot, ok } = commandLine(instance);

const { id } = await api.create({ name: 'shop', members: [{ role: 'cache', command: 'exec sleep 3600', resources: { memory: '96Mi' } }] });
const OF = ['--member', 'cache'];
const dir = fs.mkdtempSync(path.join(instance.home, 'files-'));

test('exec in a member, waited for, with input, and in the background; ps, wait and kill know its processes', async () => {
  assert.equal(await ok(['exec', ...OF, id, 'uname', '-n']), 'cache\n');
  assert.equal(await ok(['exec', '-i', ...OF, id, 'sh', '-c', 'cat; uname -n'], { input: 'typed\n' }), 'typed\ncache\n');
  const name = (await ok(['exec', '-d', ...OF, id, 'sleep', '3601'])).trim();
  assert.match(await ok(['ps', ...OF, id]), /sleep 3600\n(.*\n)*.*sleep 3601\n/);
  assert.doesNotMatch(await ok(['ps', id]), /sleep/);
  const waits = start(['wait', ...OF, id, name]);
  assert.equal(await ok(['kill', ...OF, id, name]), `${name}\n`);
  assert.equal((await waits.result).code, 137);
  const none = await sandlot(['ps', '--member', 'database', id]);
  assert.deepEqual([none.code, /has no member database/.test(none.stderr)], [3, true], none.stderr);
});

test('files are copied into a member and out of it, and watched there', async () => {
  fs.writeFileSync(path.join(dir, 'in'), 'content');
  await ok(['cp', ...OF, path.join(dir, 'in'), `${id}:/volumes/in`]);
  assert.equal(await ok(['exec', ...OF, id, 'cat', '/volumes/in']), 'content');
  assert.notEqual((await sandlot(['exec', id, 'cat', '/volumes/in'])).code, 0, 'the sandbox has no such file');
  await ok(['cp', ...OF, `${id}:/volumes`, path.join(dir, 'out')]);
  assert.equal(fs.readFileSync(path.join(dir, 'out/in'), 'utf8'), 'content');
  const none = await sandlot(['cp', '--member', 'database', `${id}:/volumes/in`, dir]);
  assert.match(none.stderr, /has no member database/);
  const watch = start(['watch', ...OF, id, '/volumes']);
  await until(async () => {
    await ok(['exec', ...OF, id, 'touch', '/volumes/new']);
    return /\/volumes\/new/.test(watch.shown());
  }, { what: 'the change is told' });
  watch.kill('SIGTERM');
  await watch.result;
});

test('stats are those of the member, with the disk of its sandbox; inspect shows a line for each value of a member', async () => {
  const stats = JSON.parse(await ok(['stats', '-o', 'json', ...OF, id]))[id];
  assert.deepEqual([stats.memory.limit_bytes >> 20, stats.disk.limit_bytes], [96, (await api.stats(id)).disk.limit_bytes]);
  assert.match(await ok(['stats', ...OF]), /96 MiB/);
  assert.notEqual((await sandlot(['stats', '--since', '10m', ...OF, id])).code, 0);
  const shown = await ok(['inspect', id]);
  assert.match(shown, /^members\.cache\.status +running$/m);
  assert.match(shown, /^members\.primary\.template +host$/m);
});

test('create waits for templates of members that are not there yet, and says so', async () => {
  const { code, stdout, stderr } = await sandlot(['create', '--member', `cache=${registry.host}/library/side:v1`]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /templates of its members are not there yet/);
  const made = await api.get(stdout.trim());
  assert.deepEqual(made.members.map(({ role, status }) => `${role} ${status}`).sort(), ['cache running', 'primary running']);
  await api.purge(made.id);
  for (const { name } of (await api.request('GET', '/v1/templates')).json.templates.filter(({ version }) => version > 0)) {
    if (name !== 'host') assert.equal((await api.request('DELETE', `/v1/templates/${encodeURIComponent(name)}`)).status, 204);
  }
  await api.request('POST', '/v1/templates/prune', { json: {} });
});

test('a shell in a member, and a way back to it after it was left', async () => {
  const sit = (args) => new Terminal([program('sandlot'), ...args], { env: instance.environment({ SANDLOT_URL: `http://127.0.0.1:${api.port}`, SANDLOT_TOKEN: api.token, TERM: 'xterm' }) });
  const shell = sit(['shell', ...OF, id]);
  await shell.run('echo re""ady; uname -n', /[\r\n]ready\r\ncache\r/);
  shell.type('\x10\x11');
  const [, name] = await shell.expect(/sandlot attach --member cache [0-9a-z]{26} (p\d+)/);
  assert.equal(await shell.exit(), 0);
  const back = sit(['attach', ...OF, id, name]);
  await back.run('echo a""gain; uname -n', /[\r\n]again\r\ncache\r/);
  back.type('exit 5\r');
  assert.equal(await back.exit(), 5);
});

finish();
