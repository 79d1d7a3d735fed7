// SPDX-License-Identifier: Apache-2.0
// Jobs outlast the request that asked for them; their log can be followed and resumed. And the stream of all events.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError, parseEvents } from './lib/client.mjs';
import { ownerApi } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('jobs');
const { ok, json, sandlot, start } = commandLine(instance);
const NOBODY = '01arz3ndektsv4rrffq69g5fav';
const backupFile = (name) => path.join(instance.dataDir, 'state/backups', name);

afterEach(() => (instance.daemon.how || api.made.size === 0 ? undefined : purgeAll(api)));

/** An event stream: { events, close }. */
const follow = (target, { headers, ...options } = {}, who = api) => new Promise((resolve, reject) => {
  const request = who.open('GET', target, { headers: { accept: 'text/event-stream', ...headers }, agent: who.newAgent(), ...options }, (error, response) =>
    (error ? reject(error) : resolve({ response, events: parseEvents(response), close: () => request.destroy() })));
});

const next = async (stream) => (await within('an event', stream.events.next())).value;

async function nextOf(stream, type) {
  for (;;) {
    const event = await next(stream);
    if (event.event === type) return event;
  }
}

async function backUp() {
  const answer = await api.request('POST', '/v1/backups');
  assert.equal(answer.status, 202, answer.text);
  assert.equal(answer.headers.location, `/v1/jobs/${answer.json.id}`);
  return answer.json;
}

const job = async (id) => (await api.request('GET', `/v1/jobs/${id}`)).json;
const over = (id) => until(async () => !['queued', 'running'].includes((await job(id)).state), { what: 'the job is over' });

test('a backup on demand is a job, whose log says what came of it, from any place on', async () => {
  const { id, kind, state } = await backUp();
  assert.equal(kind, 'backup');
  assert.ok(['queued', 'running', 'succeeded'].includes(state));
  const stream = await follow(`/v1/jobs/${id}/log`);
  const line = await next(stream);
  const end = await next(stream);
  assert.equal(line.event, 'stdout');
  assert.equal(end.event, 'end');
  assert.deepEqual(await within('the end of the stream', stream.events.next()), { done: true, value: undefined });
  assert.equal(end.data.state, 'succeeded');
  assert.equal(end.data.error, null);
  assert.equal(end.data.tries, 1);
  const name = end.data.result.backup;
  assert.match(line.data.data, new RegExp(`^wrote ${name}, \\S+ [KM]iB\n$`));
  assert.equal(fs.statSync(backupFile(name)).size, end.data.done_bytes);
  assert.equal(end.data.total_bytes, end.data.done_bytes);
  assert.deepEqual(await job(id), end.data);
  assert.ok((await api.request('GET', '/v1/backups')).json.backups.some((one) => one.name === name));

  const rest = await follow(`/v1/jobs/${id}/log`, { headers: { 'last-event-id': line.id } });
  assert.equal((await next(rest)).event, 'end');
  assert.equal((await api.request('GET', `/v1/jobs/${id}/log`, { headers: { 'last-event-id': end.id } })).status, 204);
  assertError(await api.request('GET', `/v1/jobs/${id}/log`, { query: { from: '1000000' } }), 400, /beyond the log/);
  assertError(await api.request('GET', `/v1/jobs/${id}/log`, { headers: { 'last-event-id': 'x' } }), 400);
});

test('jobs are listed, the newest first, by filter and in pages; one that is over cannot be cancelled any more', async () => {
  const first = await backUp();
  await over(first.id);
  const second = await backUp();
  await over(second.id);
  const { jobs } = (await api.request('GET', '/v1/jobs')).json;
  assert.deepEqual(jobs.slice(0, 2).map((one) => one.id), [second.id, first.id]);
  const page = (await api.request('GET', '/v1/jobs', { query: { limit: 1, state: 'succeeded', kind: 'backup' } })).json;
  assert.deepEqual(page.jobs.map((one) => one.id), [second.id]);
  assert.equal((await api.request('GET', '/v1/jobs', { query: { limit: 1, cursor: page.next_cursor } })).json.jobs[0].id, first.id);
  assert.deepEqual((await api.request('GET', '/v1/jobs', { query: { kind: 'none' } })).json, { jobs: [], next_cursor: null });
  assertError(await api.request('GET', '/v1/jobs', { query: { state: 'done' } }), 400);
  const cancelled = await api.request('POST', `/v1/jobs/${first.id}/cancel`);
  assert.equal(cancelled.status, 200);
  assert.equal(cancelled.json.state, 'succeeded');
  for (const [method, rest] of [['GET', ''], ['GET', '/log'], ['POST', '/cancel']]) assertError(await api.request(method, `/v1/jobs/${NOBODY}${rest}`), 404, /no job/);
});

test('what is asked for at the same time is done once, and both are told of the same job', async () => {
  const ids = (await Promise.all(Array.from({ length: 8 }, backUp))).map((one) => one.id);
  for (const id of new Set(ids)) await over(id);
  assert.ok(new Set(ids).size < 8, 'none was joined');
});

test('jobs and their logs are there after the daemon was killed', async () => {
  const { id } = await backUp();
  await over(id);
  const before = await job(id);
  await instance.crash();
  await instance.start();
  assert.deepEqual(await job(id), before);
  const stream = await follow(`/v1/jobs/${id}/log`);
  assert.match((await next(stream)).data.data, /^wrote /);
  assert.equal((await next(stream)).event, 'end');
});

test('the command line writes a backup, and lists, shows, follows and cancels jobs', async () => {
  const said = await ok(['backup']);
  assert.match(said, /^wrote \S+\.db, \S+ [KM]iB\n$/);
  const id = (await ok(['backup', '-d'])).trim();
  await over(id);
  assert.match(await ok(['job', 'log', id]), /^wrote /);
  assert.equal((await json(['job', 'show', id])).id, id);
  assert.match(await ok(['job', 'ls']), new RegExp(`^ID +KIND[^\n]*\n${id} +backup +- +succeeded +written `));
  assert.equal((await json(['job', 'ls', '-o', 'json'])).jobs[0].id, id);
  assert.equal(await ok(['job', 'cancel', id]), `${id} succeeded\n`);
  assert.notEqual((await sandlot(['job', 'show', 'x'])).code, 0);
  assert.match((await sandlot(['job', 'forget', id])).stderr, /job can do cancel ID, log ID, ls and show ID/);
});

// --- all events ---

test('one stream tells of all sandboxes and jobs of an owner, and of nobody else\'s', async () => {
  const other = await ownerApi(api, 'other', 'user');
  const [mine, theirs] = [await follow('/v1/events'), await follow('/v1/events', {}, other)];
  for (const stream of [mine, theirs]) assert.deepEqual((await next(stream)).data, { topics: null });
  const [one, two] = [await api.create(), await api.create()];
  const foreign = await other.create();
  assert.equal((await nextOf(mine, 'sandbox.running')).data.sandbox, one.id);
  assert.equal((await nextOf(mine, 'sandbox.running')).data.sandbox, two.id);
  const { id } = await backUp();
  assert.equal((await nextOf(mine, 'job.queued')).data.job, id);
  assert.equal((await nextOf(mine, 'job.succeeded')).data.job, id);
  await api.life(one.id, 'stop');
  const stopped = await nextOf(mine, 'sandbox.stopped');
  assert.equal(stopped.data.sandbox, one.id);
  assert.ok(Number(stopped.id) > 0);
  await other.life(foreign.id, 'stop');
  for (const type of ['sandbox.running', 'sandbox.stopped']) {
    const event = await next(theirs);
    assert.deepEqual([event.event, event.data.sandbox], [type, foreign.id]);
  }
  mine.close();
  theirs.close();
  await purgeAll(other);
});

test('topics choose what is told, and none but the known ones', async () => {
  const stream = await follow('/v1/events', { query: { topics: 'job,network' } });
  assert.deepEqual((await next(stream)).data, { topics: 'job,network' });
  await api.create();
  const { id } = await backUp();
  const event = await next(stream);
  assert.deepEqual([event.event, event.data.job], ['job.queued', id]);
  await over(id);
  stream.close();
  for (const topics of ['', 'jobs', 'job,', 'job,"}']) assertError(await api.request('GET', '/v1/events', { query: { topics } }), 400, /topics/);
});

test('the command line follows events of all, and of one', async () => {
  const { id } = await api.create();
  const all = start(['events', '-f', '--topics', 'sandbox', '-o', 'json']);
  const single = start(['events', '-f', id]);
  await until(() => all.shown().includes('"following"') && single.shown().includes('status'), { what: 'both follow' });
  await api.life(id, 'stop');
  await until(() => all.shown().includes('sandbox.stopped') && single.shown().includes('sandbox.stopped'), { what: 'both heard' });
  const last = JSON.parse(all.shown().trim().split('\n').at(-1));
  assert.deepEqual([last.event, last.sandbox], ['sandbox.stopped', id]);
  assert.match(single.shown(), new RegExp(`^sandbox\\.stopped +${id} \\{`, 'm'));
  for (const child of [all, single]) child.kill('SIGINT');
  await Promise.all([all.result, single.result]);
});

finish();
