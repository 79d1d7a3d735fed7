// SPDX-License-Identifier: Apache-2.0
// The services of an app: what it is seen to use becomes members of its sandbox before the app starts.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { Launches } from './lib/launches.mjs';
import { bringPostgres, bringRedis } from './lib/services.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('launch-services', { width: 4 });
const launches = new Launches(api);

/** A backend that keeps rows in its database and counts in its cache, with the programs that the host has as clients. */
const BACKEND = `const { execFileSync } = require('node:child_process');
const row = (statement) => execFileSync('psql', [process.env.DATABASE_URL, '-Atqc', statement], { encoding: 'utf8' }).trim();
const count = () => execFileSync('redis-cli', ['-u', process.env.REDIS_URL, 'incr', 'visits'], { encoding: 'utf8' }).trim();
row('create table if not exists notes (text text)');
require('node:http').createServer((request, response) => {
  if (request.url === '/add') row("insert into notes values ('kept')");
  response.end(request.url === '/count' ? count() : row('select count(*) from notes'));
}).listen(process.env.PORT, '127.0.0.1');
`;
const STACK = {
  'backend/package.json': '{"scripts":{"start":"node server.js"}}', 'backend/server.js': BACKEND, 'backend/.env.example': 'DATABASE_URL=postgres://user:password@db/app\nREDIS_URL=redis://cache\n',
  'frontend/index.html': '<h1>notes</h1>',
};
/** Members that are sandboxes of their own; the parts of the app run in the one that has them. */
const services = async (id) => (await api.get(id)).members.filter((one) => one.id !== id);
const members = async (id) => Object.fromEntries((await api.get(id)).members.map((one) => [one.role, one]));
const log = async ({ id }) => (await api.request('GET', `/v1/launches/${id}/events`)).text;

test('an app with a database and a cache beside it: both parts run, and rows last over relaunch and wake', async () => {
  await bringRedis(api);
  await bringPostgres(api);
  const { id } = await launches.project(STACK);
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.deepEqual(launched.detection.services.map(({ name }) => name).sort(), ['postgres', 'redis']);
  assert.deepEqual(launched.detection.parts.map(({ role, directory }) => [role, directory]), [['backend', 'backend'], ['frontend', 'frontend']]);
  const made = await members(launched.sandbox_id);
  assert.deepEqual([made.database.template, made.database.health, made.cache.template, made.cache.health], ['postgres15', 'healthy', 'redis7', 'healthy']);
  const env = (await api.read(launched.sandbox_id, '/workspace/app/backend/.env')).toString();
  assert.match(env, /\nDATABASE_URL=postgresql:\/\/postgres:[0-9a-f]{32}@127\.0\.0\.1:5432\/postgres\n/);
  assert.match(env, /\nREDIS_URL=redis:\/\/127\.0\.0\.1:6379\/0\n/);
  assert.equal(await launches.page(launched), '<h1>notes</h1>');
  const ask = (at) => launches.page(launched, at, 3000);
  await ask('/add');
  assert.equal(await ask('/'), '1');
  assert.equal(await ask('/count'), '1');

  const again = await launches.launch({ project: id });
  launches.assertRuns(again);
  assert.equal(again.sandbox_id, launched.sandbox_id);
  assert.equal((await members(again.sandbox_id)).database.id, made.database.id, 'a relaunch keeps its members');
  assert.equal(await ask('/'), '1');
  assert.match(await log(again), /the member database is there/);

  assert.equal((await api.verb(launched.sandbox_id, 'stop')).status, 200);
  await until(async () => await ask('/') === '1', { what: 'the app after its sandbox woke' });
  await launches.remove(launched, id);
});

test('a sandbox without members gets one when its app begins to need it, and kill -9 leaves it there', async () => {
  const { id } = await launches.project({ 'server.js': `require('node:http').createServer((q, s) => s.end('plain')).listen(process.env.PORT);\n` });
  const plain = await launches.launch({ project: id });
  launches.assertRuns(plain);
  assert.equal((await services(plain.sandbox_id)).length, 0);
  await launches.upload(id, { 'server.js': `const c = require('node:child_process');\nrequire('node:http').createServer((q, s) => s.end(c.execFileSync('redis-cli', ['-u', process.env.REDIS_URL, q.url === '/' ? 'incr' : 'get', 'n']))).listen(process.env.PORT);\n` });
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.equal(launched.sandbox_id, plain.sandbox_id);
  assert.match(launched.detection.services[0].evidence[0].why, /asks for its address/);
  const before = Number(await launches.page(launched));
  assert.ok(before > 0);
  await instance.crash();
  await instance.start();
  await until(async () => (await members(launched.sandbox_id)).cache.health === 'healthy', { what: 'the cache is healthy again' });
  assert.equal(Number(await launches.page(launched)), before + 1);
  await launches.remove(launched, id);
});

test('what somebody says of services goes before what is seen', async () => {
  const none = { 'index.html': 'page', '.env.example': 'REDIS_URL=redis://x\n' };
  for (const [files, body] of [[none, { services: [] }], [{ ...none, 'sandlot.json': '{"services": []}' }, {}], [none, { env: { REDIS_URL: 'redis://elsewhere.test:6379' } }]]) {
    const { id } = await launches.project(files);
    const launched = await launches.launch({ project: id, ...body });
    launches.assertRuns(launched);
    assert.equal((await services(launched.sandbox_id)).length, 0);
    await launches.remove(launched, id);
  }
  // An address of this machine is served as it is written.
  const { id } = await launches.project({ 'server.js': `require('node:http').createServer((q, s) => s.end(process.env.REDIS_URL)).listen(process.env.PORT);\n`, '.env': 'REDIS_URL=redis://:my%20own@localhost:6379/0\n' });
  const launched = await launches.launch({ project: id });
  launches.assertRuns(launched);
  assert.equal(await launches.page(launched), 'redis://:my%20own@localhost:6379/0');
  assert.match(await api.out(launched.sandbox_id, { command: 'REDISCLI_AUTH="my own" redis-cli ping; redis-cli ping' }), /^PONG\nNOAUTH/);
  await launches.remove(launched, id);
  assertError(await api.request('POST', '/v1/launches', { json: { project: 'x', services: ['oracle'] } }), 400, /services must name postgres and redis/);
});

test('a service that does not come up is the reason, with its last lines', async () => {
  const { id } = await launches.project({ 'server.js': 'process.env.REDIS_URL;\n', 'sandlot.json': '{"services": ["redis"]}' });
  const blocker = await api.request('POST', `/v1/projects/${id}/sandboxes`, { json: { members: [{ role: 'cache', port: 6379, command: 'echo it is broken; exit 3' }] } });
  assert.equal(blocker.status, 201, blocker.text);
  const broken = await launches.launch({ project: id });
  assert.deepEqual([broken.status, broken.error.stage, broken.error.code], ['failed', 'LaunchBackend', 'service_failed'], JSON.stringify(broken.error));
  assert.match(broken.error.lines.join('\n'), /it is broken/);
  await launches.remove(broken, id);
});

test('a template that is made first is told of as it is made, and why it cannot be', async () => {
  assert.equal((await api.request('DELETE', '/v1/templates/redis7')).status, 204);
  await instance.terminate();
  await instance.start(['--registry', '127.0.0.1:9', '--registry-plain', '127.0.0.1:9', '--apt-mirror', 'http://127.0.0.1:9/debian']);
  const { id } = await launches.project({ 'index.html': 'page', 'sandlot.json': '{"services": ["redis"]}' });
  const launched = await launches.launch({ project: id });
  assert.deepEqual([launched.status, launched.error.stage, launched.error.code], ['failed', 'GenerateEnvVars', 'service_failed'], JSON.stringify(launched.error));
  assert.match(launched.error.message, /the template redis7 of a service cannot be made: ./);
  assert.match(launched.error.remediation, /"services": \[\]/);
  assert.match(await log(launched), /redis7: the template is made first[^]*"log":"redis7: (?!the template is made)/);
  assert.equal((await services(launched.sandbox_id)).length, 0);
  await launches.remove(launched, id);
});

finish();
