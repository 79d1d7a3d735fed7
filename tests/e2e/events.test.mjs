// SPDX-License-Identifier: Apache-2.0
// The one event stream of a tab: topics, one sandbox or all, resumed where it was left, and honest about what was missed.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError, parseEvents } from './lib/client.mjs';
import { ownerApi } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('events', { width: 3 });
const { start } = commandLine(instance);
const streams = [];

afterEach(async () => {
  for (const one of streams.splice(0)) one.close();
  if (!instance.daemon.how && api.made.size > 0) await purgeAll(api);
});

/** An event stream: { events, close }. */
const follow = (query, { last, who = api } = {}) => new Promise((resolve, reject) => {
  const headers = { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': String(last) }) };
  const request = who.open('GET', '/v1/events', { query, headers, agent: who.newAgent() }, (error, response) => {
    if (error) return reject(error);
    const stream = { response, events: parseEvents(response), close: () => request.destroy() };
    streams.push(stream);
    return resolve(stream);
  });
});

const next = async (stream) => (await within('an event', stream.events.next())).value;

async function nextOf(stream, type, fits = () => true) {
  for (;;) {
    const event = await next(stream);
    if (event.event === type && fits(event.data)) return event;
  }
}

test('who comes back goes on after the last event they saw', async () => {
  const stream = await follow({ topics: 'sandbox' });
  const greeting = await next(stream);
  assert.equal(greeting.event, 'following');
  assert.ok(Number(greeting.id) > 0);
  const { id } = await api.create();
  const seen = await nextOf(stream, 'sandbox.running');
  stream.close();
  await api.life(id, 'stop');
  await api.life(id, 'start');
  const again = await follow({ topics: 'sandbox' }, { last: seen.id });
  assert.deepEqual((await next(again)).event, 'following');
  const told = [];
  while (told.at(-1) !== 'sandbox.running') told.push((await next(again)).event);
  assert.ok(told.includes('sandbox.stopped') && !told.includes('missed'), told.join(' '));
  await api.life(id, 'stop');
  assert.ok(Number((await nextOf(again, 'sandbox.stopped')).id) > Number(seen.id));
  // From the first event on: the same as a parameter.
  const from = await follow({ topics: 'sandbox', from: greeting.id });
  assert.equal((await nextOf(from, 'sandbox.running')).id, seen.id);
});

test('whoever was away for too long is told so, also after a restart of the daemon', async () => {
  const stream = await follow({});
  const { id: last } = await next(stream);
  stream.close();
  const old = await follow({}, { last: 1 });
  await next(old);
  const missed = await next(old);
  assert.deepEqual([missed.event, missed.data], ['missed', { count: null, since: 1 }]);
  await instance.terminate();
  await instance.start();
  const again = await follow({}, { last });
  assert.equal((await next(again)).event, 'following');
  assert.deepEqual((await next(again)).data, { count: null, since: Number(last) });
  const { id } = await api.create();
  assert.equal((await nextOf(again, 'sandbox.running')).data.sandbox, id);
  assertError(await api.request('GET', '/v1/events', { headers: { 'last-event-id': 'x' } }), 400);
});

test('processes are told of if their topic is named: those that are kept, with how they ended', async () => {
  const { id } = await api.create();
  const [named, plain] = [await follow({ topics: 'process,sandbox' }), await follow({})];
  for (const stream of [named, plain]) await next(stream);
  await api.tryExec(id, { command: 'exit 3', background: true });
  const { data: started } = await nextOf(named, 'process.started');
  assert.deepEqual([started.sandbox, started.process, started.background, started.terminal], [id, 'p1', true, false]);
  const { data: exited } = await nextOf(named, 'process.exited');
  assert.deepEqual([exited.process, exited.exit_code, exited.reason], ['p1', 3, 'exited']);
  await api.life(id, 'stop');
  const told = [];
  while (told.at(-1) !== 'sandbox.stopped') told.push((await next(plain)).event);
  assert.ok(!told.some((one) => one.startsWith('process.')), told.join(' '));
});

test('commands that look dangerous are told of, with the rules that they fit', async () => {
  const { id } = await api.create();
  const stream = await follow({ topics: 'command' });
  await next(stream);
  await api.tryExec(id, { command: 'xmrig --version; true' });
  const { data } = await nextOf(stream, 'command.flagged');
  assert.deepEqual([data.sandbox, data.flags], [id, ['miner']]);
});

test('samples of what runs come to all who follow, and to nobody else; the past is kept for charts', async () => {
  const other = await ownerApi(api, 'other', 'user');
  const { id } = await api.create();
  const stopped = await api.create();
  await api.life(stopped.id, 'stop');
  const mine = [await follow({ topics: 'stats' }), await follow({ topics: 'stats', sandbox: id })];
  const theirs = await follow({ topics: 'stats,sandbox' }, { who: other });
  for (const stream of [...mine, theirs]) await next(stream);
  for (const stream of mine) {
    const { data } = await nextOf(stream, 'stats.sample');
    assert.equal(data.sandbox, id);
    assert.ok(data.memory_bytes > 0 && data.cpu >= 0 && data.disk_bytes >= 0 && data.pids > 0, JSON.stringify(data));
  }
  const foreign = await other.create();
  assert.equal((await nextOf(theirs, 'stats.sample')).data.sandbox, foreign.id);
  assert.equal((await api.get(stopped.id)).status, 'stopped');
  const history = async (window) => (await api.request('GET', `/v1/sandboxes/${id}/stats/history`, { query: { window } })).json;
  const { step_s: step, points } = await until(async () => { const one = await history('hour'); return one.points.length > 0 && one; }, { what: 'a step of ten seconds is over' });
  assert.equal(step, 10);
  assert.ok(points[0].memory_bytes > 0 && Date.parse(points[0].at) % 10_000 === 0, JSON.stringify(points));
  assert.equal((await history('day')).step_s, 300);
  assertError(await api.request('GET', `/v1/sandboxes/${id}/stats/history`, { query: { window: 'year' } }), 400);
  assertError(await other.request('GET', `/v1/sandboxes/${id}/stats/history`), 404);
  await purgeAll(other);
  other.agent.destroy();
});

test('of one sandbox come its own events, executions and ports, and nothing of another', async () => {
  const [one, two] = [await api.create({ name: 'one' }), await api.create()];
  const stream = await follow({ sandbox: 'one' });
  await next(stream);
  await api.life(two.id, 'stop');
  const run = (id) => api.request('POST', `/v1/sandboxes/${id}/executions`, { json: { language: 'shell', code: 'true' } });
  await run(two.id);
  const { json: execution } = await run(one.id);
  const told = await nextOf(stream, 'execution.succeeded');
  assert.deepEqual([told.data.execution, told.data.sandbox], [execution.id, one.id]);
  await api.tryExec(one.id, { command: 'python3 -m http.server 8000', background: true });
  assert.equal((await nextOf(stream, 'port.opened')).data.port, 8000);
  await api.life(one.id, 'stop');
  const { data } = await nextOf(stream, 'sandbox.stopped');
  assert.equal(data.sandbox, one.id);
  assertError(await api.request('GET', '/v1/events', { query: { sandbox: 'nobody' } }), 404);
  const other = await ownerApi(api, 'other', 'user');
  assertError(await other.request('GET', '/v1/events', { query: { sandbox: one.id } }), 404);
  other.agent.destroy();
});

test('a client that did not read and left has what it missed when it comes back', async () => {
  const { id } = await api.create();
  const stream = await follow({ topics: 'sandbox' });
  const first = await next(stream);
  stream.response.pause();
  stream.response.socket.pause();
  // Nothing is dropped here: so few events fit into what the daemon and the kernel hold for it.
  for (let i = 0; i < 3; i++) for (const verb of ['pause', 'resume']) await api.life(id, verb);
  stream.close();
  const again = await follow({ topics: 'sandbox' }, { last: first.id });
  await next(again);
  const told = [];
  while (told.filter((one) => one === 'sandbox.running').length < 3) told.push((await next(again)).event);
  assert.deepEqual(told, Array(3).fill(['sandbox.paused', 'sandbox.running']).flat());
});

test('the command line follows topics of one sandbox', async () => {
  const { id } = await api.create();
  const child = start(['events', '-f', '--topics', 'process', '-o', 'json', id]);
  await until(() => child.shown().includes('following'), { what: 'it follows' });
  await api.tryExec(id, { command: 'true', background: true });
  await until(() => child.shown().includes('"process.exited"'), { what: 'it tells of the end' });
  child.kill('SIGINT');
  await child.result;
});

finish();
