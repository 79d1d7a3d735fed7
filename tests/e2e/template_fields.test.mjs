// SPDX-License-Identifier: Apache-2.0
// What a template says beside its layers: the skeleton of workspaces, the profile, users, volumes, its own program,
// and which version a sandbox has after its next start.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { busybox, image, layoutArchive } from './lib/images.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('template_fields');
const { sandlot, ok } = commandLine(instance);

const base = busybox();
const users = [
  { name: 'etc' },
  { name: 'etc/passwd', data: 'root:x:0:0:root:/root:/bin/sh\nbroken\napp:x:123:124:App:/srv/app:/bin/sh\nfar:x:99999:1::/:/bin/sh\nlast:x:77:7:::' },
  { name: 'etc/group', data: 'root:x:0:\napp:x:124:\nteam:x:300:app' },
];
const skeleton = [{ name: 'opt' }, { name: 'opt/sandbox-skel' }, { name: 'opt/sandbox-skel/README', data: 'seeded\n' }, { name: 'opt/sandbox-skel/bin' }, { name: 'opt/sandbox-skel/bin/tool', data: '#!/bin/sh\n', mode: 0o755 }, { name: 'opt/sandbox-skel/link', type: 'symlink', target: 'README' }];

async function put(name, layers, config = {}, who = api) {
  const answer = await who.request('PUT', `/v1/templates/${name}/archive`, { body: layoutArchive(image(layers, { config })), headers: { 'content-type': 'application/x-tar' } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}
const patch = (name, json, who = api) => who.request('PATCH', `/v1/templates/${name}`, { json });
const verb = async (id, what) => {
  const answer = await api.request('POST', `/v1/sandboxes/${id}/${what}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};
const coldStart = async (id) => { await verb(id, 'stop'); return verb(id, 'start'); };

async function run(template, command, more = {}) {
  const { id } = await api.create({ template, ...more });
  const stdout = await api.out(id, { command });
  await api.purge(id);
  return stdout;
}

test('commands of an image run as the user that it names, in the home and group of its own files', async () => {
  await put('named', [base, users], { User: 'app' });
  assert.equal(await run('named', 'id -u; id -g; echo $HOME $USER; touch /workspace/mine && echo may write; stat -c %u:%g /workspace /workspace/outputs'), '123\n124\n/srv/app app\nmay write\n123:124\n123:124\n');
  for (const [user, shown] of [['app:team', '123:300'], ['123', '123:124'], ['4242', '4242:4242'], ['123:7', '123:7'], ['last', '77:7'], ['root', '0:0'], ['', '123:124']]) {
    assert.equal((await patch('named', { user })).status, 200);
    assert.equal(await run('named', 'echo $(id -u):$(id -g)'), `${shown}\n`, user);
  }
});

test('groups that the image puts its user into are its too, in every kind of command', async () => {
  const more = [{ name: 'etc' }, { name: 'etc/group', data: 'root:x:0:\napp:x:124:\nteam:x:300:app\nothers:x:301:someone\nstaff:x:302:root,app\n' }, { name: 'srv' }, { name: 'srv/shared', mode: 0o770, gid: 300 }];
  await put('grouped', [base, users, more], { User: 'app' });
  const { id } = await api.create({ template: 'grouped', start: [{ name: 'who', command: 'id -G > /workspace/started; exec sleep 1000' }] });
  assert.equal(await api.out(id, { command: 'id -G; touch /srv/shared/mine && stat -c %u:%g /srv/shared/mine' }), '124 300 302\n123:124\n');
  assert.equal(await api.out(id, { command: 'id -G', isolate: true }), '124 300 302\n', 'an isolated one');
  assert.equal(await api.out(id, { command: 'id -G', user: '123' }), '124 300 302\n', 'named by its number');
  assert.equal(await api.out(id, { command: 'id -G', user: '4242' }), '4242\n', 'another user has none of them');
  assert.equal(await api.out(id, { command: 'id -G', user: 'root' }), '0\n');
  await until(async () => (await api.exec(id, { command: 'cat /workspace/started' })).stdout === '124 300 302\n', { what: 'the start command has run as that user' });
  await coldStart(id);
  assert.equal(await api.out(id, { command: 'id -G' }), '124 300 302\n', 'after a start');
  await api.purge(id);
  await patch('grouped', { user: 'app:team' });
  assert.equal(await run('grouped', 'id -G'), '300\n', 'who names a group is in that one alone');
  await patch('grouped', { user: 'root' });
  assert.equal(await run('grouped', 'id -G'), '0 302\n');
});

test('a user that the image does not have is an error that names it, and nothing of the sandbox stays', async () => {
  await put('nobody', [base, users], { User: 'ghost' });
  for (const [user, pattern] of [['ghost', /ghost.*\/etc\/passwd/], ['app:ghosts', /app:ghosts.*\/etc\/group/], ['broken', /broken/], ['far', /far/]]) {
    await patch('nobody', { user });
    const { code, message } = assertError(await api.request('POST', '/v1/sandboxes', { json: { template: 'nobody' } }), 422);
    assert.equal(code, 'user_not_found');
    assert.match(message, pattern);
  }
  assert.deepEqual((await api.request('GET', '/v1/sandboxes', { query: { template: 'nobody' } })).json.sandboxes, []);
});

test('volumes and the working directory of an image are there, and its user may write to them', async () => {
  await put('volumes', [base, users, [{ name: 'old', mode: 0o700, uid: 5 }]], { User: 'app', WorkingDir: '/srv/deep/er', Volumes: { '/data': {}, '/var/lib/app/db': {}, '/old': {}, '/proc/none': {}, relative: {} } });
  assert.equal(await run('volumes', 'pwd; touch here /data/x /var/lib/app/db/y; stat -Lc %u:%a /data /var/lib/app/db /old'), '/srv/deep/er\n123:755\n123:755\n5:700\n');
  const { id } = await api.create({ template: 'volumes' });
  await api.out(id, { command: 'rm -r /data', user: 'root' });
  await verb(id, 'reset');
  assert.equal(await api.out(id, 'touch /data/again; pwd'), '/srv/deep/er\n', 'a reset makes them again');
  await api.purge(id);
});

test('a new workspace is seeded once from the skeleton of its template, a kept one never', async () => {
  await put('seeded', [base, users, skeleton, [{ name: 'other' }, { name: 'other/file', data: 'x' }]], { User: 'app' });
  const { id } = await api.create({ template: 'seeded' });
  assert.equal(await api.out(id, 'cat README; stat -c %u:%g:%a README bin bin/tool; readlink link; echo mine > README; rm link'), 'seeded\n123:124:644\n123:124:755\n123:124:755\nREADME\n');
  await coldStart(id);
  assert.equal(await api.out(id, 'cat README; ls link 2>/dev/null || echo gone'), 'mine\ngone\n');
  await verb(id, 'reset');
  assert.equal(await api.out(id, 'cat README'), 'mine\n');
  assert.equal((await api.request('DELETE', `/v1/sandboxes/${id}`)).status, 204);
  await api.create({ id, template: 'seeded' });
  assert.equal(await api.out(id, 'cat README; ls link 2>/dev/null || echo gone'), 'mine\ngone\n', 'a kept workspace');
  await api.purge(id);
  for (const [where, files] of [['/other', 'file'], ['', ''], ['/nowhere', ''], ['/etc/passwd', '']]) {
    assert.equal((await patch('seeded', { skeleton: where })).json.skeleton, where);
    assert.equal(await run('seeded', 'ls /workspace | while read n; do test -d $n || echo -n $n; done'), files, where);
  }
});

test('a skeleton that does not fit the disk limit fails the create, and leaves nothing', async () => {
  await put('fat', [base, [{ name: 'opt' }, { name: 'opt/sandbox-skel' }, { name: 'opt/sandbox-skel/fat', data: Buffer.alloc(40 << 20, 'x') }]]);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { template: 'fat', resources: { disk: '16Mi' } } }), 507);
  assert.deepEqual((await api.request('GET', '/v1/sandboxes', { query: { template: 'fat' } })).json.sandboxes, []);
  assert.equal(await run('fat', 'stat -c %s /workspace/fat', { resources: { disk: '100Mi' } }), `${40 << 20}\n`);
});

test('who takes up a workspace with another template may write to it', async () => {
  const { id } = await api.create({ template: 'named' });
  await api.out(id, 'echo theirs > /workspace/note');
  await api.request('DELETE', `/v1/sandboxes/${id}`);
  await api.create({ id });
  assert.equal(await api.out(id, 'cat note; echo ours > other; stat -c %u other'), 'theirs\n1000\n');
  await api.purge(id);
});

test('a template says which system calls are open: strict is less than default, browser is for the operator to offer', async () => {
  const program = path.join(instance.dataDir, '..', 'profile_calls');
  execFileSync('cc', ['-static', '-O1', '-o', program, path.join(import.meta.dirname, 'programs/profile_calls.c')]);
  const made = await put('guarded', [base, [{ name: 'bin/calls', data: fs.readFileSync(program), mode: 0o755 }]]);
  assert.equal(made.security, 'default');
  const tries = async (id) => Object.fromEntries((await api.out(id, '/bin/calls')).trim().split('\n').map((line) => line.split(' ')));
  const { id, ...plain } = await api.create({ template: 'guarded' });
  assert.deepEqual([plain.security, plain.walls.seccomp], ['default', 'default']);
  const open = { tcp: '0', udp: '0', unix: '0', raw: '1', netlink: '0', vmsplice: '0', random: '0', read: '0', namespace: '1', trace: '0' };
  assert.deepEqual(await tries(id), open);
  assert.equal((await patch('guarded', { security: 'strict' })).json.security, 'strict');
  const started = await coldStart(id);
  assert.deepEqual([started.security, started.walls.seccomp, started.upgradable], ['strict', 'strict', false]);
  assert.deepEqual(await tries(id), { ...open, netlink: '1', vmsplice: '1', random: '1', read: '1', trace: '1' });
  const { termination } = await api.exec(id, '/bin/calls; false');
  assert.equal(termination.profile, 'strict');
  await api.purge(id);
  assert.equal(assertError(await patch('guarded', { security: 'browser' }), 400).code, 'template_not_offered');
  assertError(await patch('guarded', { security: 'none' }), 400);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { template: 'guarded', security: 'default' } }), 400);
  const alice = await ownerApi(api, 'acme', 'alice');
  await put('own', [base], {}, alice);
  assert.equal((await patch('own', { security: 'strict' }, alice)).json.security, 'strict');
});

test('a sandbox gets the newest version with its next start, and what it has installed stays', async () => {
  const version = (text, more = []) => put('rolling', [base, users, [{ name: 'lib' }, { name: 'lib/v', data: text }, ...more]], { Env: [`V=${text}`] });
  await version('one', [{ name: 'lib/gone', data: 'x' }, { name: 'lib/edited', data: 'original' }, { name: 'tree' }, { name: 'tree/a', data: '1' }]);
  const { id } = await api.create({ template: 'rolling' });
  await api.out(id, 'echo tool > /lib/installed; echo edited > /lib/edited; rm /lib/gone; mkdir /tree/own; echo work > /workspace/w');
  const made = await version('two', [{ name: 'lib/gone', data: 'back' }, { name: 'lib/new', data: 'n' }, { name: 'lib/edited', data: 'changed' }, { name: 'tree', type: 'symlink', target: 'lib' }]);
  assert.equal(made.version, 2);
  assert.equal((await api.get(id)).upgradable, true);
  assert.equal(await api.out(id, 'cat /lib/v; echo $V'), 'oneone\n', 'while it runs it keeps its version');
  const after = await coldStart(id);
  assert.deepEqual([after.upgradable, after.error_message], [false, null]);
  assert.equal(await api.out(id, 'cat /lib/v; echo $V; cat /lib/installed /lib/edited /lib/new; echo; ls /lib/gone 2>/dev/null || echo gone; cat w; ls /tree'), 'twotwo\ntool\nedited\nn\ngone\nwork\nown\n');
  await patch('rolling', { pinned: true });
  assert.equal((await coldStart(id)).upgradable, true, 'of one that is pinned only a reset does it');
  assert.equal((await verb(id, 'reset')).upgradable, false);
  assert.equal(await api.out(id, 'ls /lib | while read n; do echo $n; done'), 'edited\ngone\nnew\nv\n');
  await api.purge(id);
});

test('a newest version that cannot be started is told, and the one before is started', async () => {
  await put('fragile', [base, users], { User: 'app', Env: ['V=good'] });
  const { id } = await api.create({ template: 'fragile' });
  await put('fragile', [base, users], { User: 'ghost', Env: ['V=bad'] });
  const after = await coldStart(id);
  assert.deepEqual([after.status, after.upgradable], ['running', true]);
  assert.match(after.error_message, /newest version.*ghost/);
  assert.equal(await api.out(id, 'id -u; echo $V'), '123\ngood\n');
  await put('fragile', [base, users], { User: 'app:team', Env: ['V=best'] });
  assert.deepEqual([(await coldStart(id)).error_message, await api.out(id, 'id -g; echo $V')], [null, '300\nbest\n']);
  await api.purge(id);
});

test('defaults are taken away again, and packages of a recipe are shown', async () => {
  await put('plain', [base], {});
  await ok(['template', 'create', 'fields', '--from', 'plain', '--run', 'true', '--user', '1234', '--workdir', '/tmp', '--memory', '300Mi', '--ready', 'true', '--network', 'none', '--pinned']);
  const shown = async () => (await api.request('GET', '/v1/templates/fields')).json;
  const set = await shown();
  assert.deepEqual([set.user, set.workdir, set.resources, set.ready, set.network, set.pinned, set.packages], ['1234', '/tmp', { memory: '300Mi' }, { command: 'true' }, { mode: 'none' }, true, {}]);
  assert.equal(await run('fields', 'id -u; pwd'), '1234\n/tmp\n');
  await ok(['template', 'update', 'fields', ...['ready', 'network', 'user', 'workdir', 'resources', 'pinned'].flatMap((what) => ['--unset', what])]);
  const unset = await shown();
  assert.deepEqual([unset.user, unset.workdir, unset.ready, unset.network, unset.pinned, unset.version], [null, null, null, null, false, set.version + 1]);
  assert.equal(await run('fields', 'id -u; pwd'), '0\n/workspace\n');
  assert.match((await sandlot(['template', 'update', 'fields', '--unset', 'nothing'])).stderr, /--unset takes the name.*not nothing/);
  assertError(await patch('fields', { ready: {} }), 400, /either command or port/);
  assert.equal((await api.request('POST', '/v1/templates', { json: { name: 'listed', recipe: { from: 'plain', pip: ['six'], npm: [] } } })).status, 202);
  assert.deepEqual((await api.request('GET', '/v1/templates/listed')).json.packages, { pip: ['six'] });
  await until(async () => (await api.request('GET', '/v1/templates/listed')).json.status !== 'building', { what: 'the build ends' });
  for (const name of ['fields', 'listed', 'plain']) assert.equal((await api.request('DELETE', `/v1/templates/${name}`)).status, 204);
});

test('a template of the operator that is shared is used by everybody, and changed by administrators alone', async () => {
  const archive = { body: layoutArchive(image([base, [{ name: 'v', data: 'operator' }]])), headers: { 'content-type': 'application/x-tar' } };
  const alice = await ownerApi(api, 'acme', 'shared');
  const other = await ownerApi(api, 'ops', 'second', ['read', 'run', 'files', 'manage', 'admin']);
  const at = '/v1/templates/common';

  for (const answer of [await alice.request('PUT', `${at}/archive`, { query: { shared: true }, ...archive }), await alice.request('POST', '/v1/templates', { json: { name: 'common', image: 'a:1', shared: true } })]) assert.equal(assertError(answer, 403).code, 'missing_scope');
  assert.equal((await alice.request('GET', at)).status, 404);
  assert.equal((await api.request('PUT', `${at}/archive`, { query: { shared: true }, ...archive })).json.shared, true);
  assert.deepEqual((await alice.request('GET', '/v1/templates')).json.templates.filter((one) => one.name === 'common').map((one) => one.shared), [true]);

  const { id } = await alice.create({ template: 'common' });
  assert.equal(await alice.out(id, 'cat /v'), 'operator');
  for (const [method, path, json] of [['PATCH', at, { env: { A: 'b' } }], ['DELETE', at], ['POST', `${at}/build`, {}], ['POST', `${at}/cancel`], ['GET', `${at}/log`]]) assert.equal(assertError(await alice.request(method, path, json && { json }), 403).code, 'template_shared', `${method} ${path}`);
  const used = assertError(await api.request('DELETE', at), 409);
  assert.equal(used.code, 'template_in_use');

  // Any administrator changes it: its sandboxes get the new version with their next start.
  assert.deepEqual([(await patch('common', { env: { MODE: 'new' } }, other)).json.version, (await api.request('GET', at)).json.env.MODE], [2, 'new']);
  assert.equal((await alice.request('GET', `/v1/sandboxes/${id}`)).json.upgradable, true);

  // One of the same name of one's own goes before it, and does not keep it from being removed.
  await put('common', [base, [{ name: 'v', data: 'own' }]], {}, alice);
  assert.deepEqual([(await alice.request('GET', at)).json.shared, (await api.request('GET', at)).json.shared], [false, true]);
  assert.equal((await api.request('DELETE', at)).status, 204);
  assert.equal((await api.request('GET', at)).status, 404);
  await alice.purge(id);
  assert.equal((await alice.request('DELETE', at)).status, 204);
});

test('a shared template is built by a job of who asked for it, and is the base of templates of others', async () => {
  const alice = await ownerApi(api, 'acme', 'builder');
  await put('seed', [base], {});
  await ok(['template', 'create', 'tools', '--from', 'seed', '--run', 'echo tool > /tool', '--shared']);
  assert.equal((await alice.request('GET', '/v1/templates/tools')).json.shared, true);
  assert.equal((await api.request('GET', '/v1/templates/tools/log', { query: { follow: false } })).status, 200);
  const { id } = await alice.create({ template: 'tools' });
  assert.equal(await alice.out(id, 'cat /tool'), 'tool\n');
  await alice.purge(id);
  assert.equal((await alice.request('POST', '/v1/templates', { json: { name: 'mine', recipe: { from: 'tools', run: ['echo mine >> /tool'] } } })).status, 202);
  await until(async () => (await alice.request('GET', '/v1/templates/mine')).json.status === 'ready', { what: 'mine is built' });
  assert.equal((await api.request('POST', '/v1/templates/tools/build', { json: { no_cache: true } })).status, 202);
  await until(async () => (await api.request('GET', '/v1/templates/tools')).json.status === 'ready', { what: 'tools is built again' });
  for (const [who, name] of [[alice, 'mine'], [api, 'tools'], [api, 'seed']]) assert.equal((await who.request('DELETE', `/v1/templates/${name}`)).status, 204);
});

test('without a command the program of the image is run, also as a start command', async () => {
  const config = { Entrypoint: ['sh', '-c', 'echo "$0" "$@" "$WHO"; id -u'], Cmd: ["it's", 'a  "word"'], User: 'app', Env: ['WHO=me', 'PATH=/bin'] };
  await put('program', [base, users], config);
  assert.equal(await ok(['run', '-t', 'program']), 'it\'s a  "word" me\n123\n');
  assert.equal(await ok(['run', '-t', 'program', '-u', 'app', '--', 'id', '-u']), '123\n');
  const { id, start } = await api.create({ template: 'program' });
  assert.deepEqual(start, [], 'a create starts it only if the template says so');
  assert.equal((await api.exec(id, {})).stdout, 'it\'s a  "word" me\n123\n');
  assertError(await api.tryExec(id, { argv: ['sh'], command: 'sh' }), 400);
  await api.purge(id);
  const host = await api.create();
  assertError(await api.tryExec(host.id, {}), 400);
  await api.purge(host.id);
  assert.notEqual((await sandlot(['run', '-t', 'host'])).code, 0);
  const server = (text) => ({ Entrypoint: ['sh', '-c', `echo ${text} > /tmp/started; exec sleep 1000`] });
  const tmp = [{ name: 'tmp', mode: 0o1777 }];
  await put('service', [base, tmp], server("'one'"));
  assert.equal((await patch('service', { start_image: true })).json.start_image, true);
  const served = await api.create({ template: 'service' });
  assert.deepEqual(served.start.map(({ name }) => name), ['image']);
  const started = (text) => until(async () => (await api.exec(served.id, 'cat /tmp/started')).stdout === `${text}\n`, { what: `it runs ${text}` });
  await started('one');
  await put('service', [base, tmp], server('two'));
  await coldStart(served.id);
  await started('two');
  await api.purge(served.id);
  const other = await api.create({ template: 'service', start: 'exec sleep 2000' });
  assert.deepEqual(other.start.map(({ command }) => command), ['exec sleep 2000'], 'what a create says goes before');
  await api.purge(other.id);
});

finish();
