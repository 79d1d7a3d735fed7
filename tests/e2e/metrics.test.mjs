// SPDX-License-Identifier: Apache-2.0
// What can be seen of a daemon from outside: figures for Prometheus, a search in kept output, logs that name their request.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { ownerApi } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('metrics', { width: 2, args: ['--log-level', 'debug'] });
const { sandlot } = commandLine(instance);

/** The figures: { 'name{label="x"}': value }. */
async function figures() {
  const answer = await api.request('GET', '/metrics');
  assert.equal(answer.status, 200, answer.text);
  assert.match(answer.headers['content-type'], /^text\/plain; version=0\.0\.4/);
  const lines = answer.text.trimEnd().split('\n');
  for (const line of lines) assert.match(line, /^(# (HELP|TYPE) sandlot_\w+ \S.*|sandlot_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[\d.e+]+)$/);
  return Object.fromEntries(lines.filter((line) => !line.startsWith('#')).map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

test('an operator sees what the daemon does; others see nothing', async () => {
  const alice = await ownerApi(api, 'acme', 'alice');
  assert.equal(assertError(await alice.request('GET', '/metrics'), 403).code, 'missing_scope');
  assertError(await api.request('GET', '/metrics', { token: null }), 401);
  alice.agent.destroy();
  const before = await figures();
  const { id } = await api.create();
  await api.tryExec(id, { command: 'sleep 3600', background: true });
  await api.tryExec(id, 'true');
  const now = await figures();
  assert.equal(now['sandlot_sandboxes{state="running"}'] - (before['sandlot_sandboxes{state="running"}'] ?? 0), 1);
  assert.equal(now.sandlot_running_places_used - before.sandlot_running_places_used, 1);
  assert.equal(now.sandlot_process_places_used - before.sandlot_process_places_used, 1);
  assert.ok(now['sandlot_http_requests_total{code="2xx"}'] >= before['sandlot_http_requests_total{code="2xx"}'] + 3);
  assert.ok(now.sandlot_http_request_duration_seconds_count > before.sandlot_http_request_duration_seconds_count);
  assert.equal(now['sandlot_http_request_duration_seconds_bucket{le="+Inf"}'], now.sandlot_http_request_duration_seconds_count);
  assert.ok(now.sandlot_host_memory_available_bytes > 0 && now.sandlot_host_memory_available_bytes <= now.sandlot_host_memory_bytes);
  assert.ok(now.sandlot_data_disk_free_bytes <= now.sandlot_data_disk_bytes);
  assert.ok(now.sandlot_resident_memory_bytes > 1e6 && now.sandlot_open_descriptors > 3 && now.sandlot_http_connections > 0);
  assert.equal(now.sandlot_ready, 1);
  assert.ok(Object.keys(now).some((one) => one.startsWith('sandlot_build_info{version=')));
  await purgeAll(api);
});

test('refused connections of sandboxes are counted', async () => {
  const before = (await figures()).sandlot_egress_denials_total;
  const { id } = await api.create({ network: { mode: 'allowlist', allow: ['example.test'] } });
  await api.tryExec(id, 'python3 -c "import socket; socket.create_connection((\'192.0.2.1\', 80), 5)"');
  await until(async () => (await figures()).sandlot_egress_denials_total > before, { what: 'the denial is counted' });
  await purgeAll(api);
});

test('kept output is searched over all processes, for a text as it is', async () => {
  const { id } = await api.create();
  const run = async (command) => { await api.tryExec(id, { command, background: true }); };
  await run("printf 'one\\nneedle [a] here\\nthree\\n'; printf 'a \\033[31mNeedle\\033[0m of stderr' >&2");
  await run('seq 1 50000; echo needle at the end; head -c 9000 /dev/zero | tr "\\0" x; echo');
  await run('while :; do echo tick; sleep 1; done');
  const search = async (query) => {
    const answer = await api.request('GET', `/v1/sandboxes/${id}/output/search`, { query });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const found = await until(async () => { const one = await search({ q: 'needle' }); return one.matches.length === 2 && one; }, { what: 'both lines are there' });
  assert.deepEqual(found.matches.map((one) => [one.process, one.stream, one.offset, one.line]), [['p1', 'stdout', 4, 'needle [a] here'], ['p2', 'stdout', found.matches[1].offset, 'needle at the end']]);
  assert.ok(found.matches.every((one) => Date.parse(one.at) <= Date.now()));
  assert.equal(found.truncated, false);
  assert.ok(found.scanned_bytes > 250_000);
  assert.deepEqual((await search({ q: 'needle', ignore_case: true })).matches.map((one) => one.line), ['needle [a] here', 'a Needle of stderr', 'needle at the end']);
  assert.deepEqual((await search({ q: '[a]' })).matches.map((one) => one.process), ['p1']);
  assert.deepEqual((await search({ q: 'needle', process: 'p2' })).matches.map((one) => one.process), ['p2']);
  assert.deepEqual((await search({ q: '.*' })).matches, []);
  const few = await search({ q: '1', limit: 3 });
  assert.deepEqual([few.matches.length, few.truncated], [3, true]);
  assert.ok((await search({ q: 'xxx' })).matches.every((one) => one.line.length <= 512));
  assert.ok((await search({ q: 'tick' })).matches.length > 0);
  await api.life(id, 'stop');
  assert.equal((await search({ q: 'needle' })).matches.length, 2);
  assert.equal((await api.get(id)).status, 'stopped');
  for (const query of [{}, { q: '' }, { q: 'a\nb' }, { q: 'x'.repeat(257) }, { q: 'x', limit: 0 }]) assertError(await api.request('GET', `/v1/sandboxes/${id}/output/search`, { query }), 400);
  assertError(await api.request('GET', `/v1/sandboxes/${id}/output/search`, { query: { q: 'x', process: 'nobody' } }), 404);
  await purgeAll(api);
});

test('every line that is logged for a request names it, and its trace, which the answer passes on', async () => {
  const trace = 'a'.repeat(32);
  const parent = `00-${trace}-${'b'.repeat(16)}-01`;
  const answer = await api.request('GET', '/v1/version', { headers: { 'x-request-id': 'my-request', traceparent: parent } });
  assert.match(answer.headers.traceparent, new RegExp(`^00-${trace}-(?!b{16})[0-9a-f]{16}-01$`));
  const lines = await until(() => {
    const own = instance.log().split('\n').filter((line) => line.includes('"request_id":"my-request"'));
    return own.length > 0 && own.map((line) => JSON.parse(line));
  }, { what: 'the request is in the log' });
  assert.ok(lines.every((line) => line.trace_id === trace && line.program === 'sandlotd'));
  assert.match(lines.at(-1).message, /^GET \/v1\/version: 200 after [\d.]+ ms$/);
  for (const traceparent of ['x', `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`, `00-${trace}-${'0'.repeat(16)}-01`, `01${parent.slice(2)}`, `${parent}-x`, parent.toUpperCase()]) {
    const other = await api.request('GET', '/v1/version', { headers: { traceparent } });
    assert.deepEqual([other.status, other.headers.traceparent], [200, undefined], traceparent);
  }
});

test('lines of the keeper, and of a job, name the request that they are for', async () => {
  const trace = 'c'.repeat(32);
  const headers = { 'x-request-id': 'for-the-keeper', traceparent: `00-${trace}-${'d'.repeat(16)}-01` };
  const { json } = await api.request('POST', '/v1/sandboxes', { json: {}, headers });
  assert.equal((await api.request('POST', `/v1/sandboxes/${json.id}/purge`, { headers: { ...headers, 'x-request-id': 'its.end_2' } })).status, 204);
  const lines = () => instance.log().split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  const own = async (request_id, word) => {
    const line = await until(() => lines().find((one) => one.program === 'sandlot-keeper' && one.message.startsWith(`${word} ${json.id} `)), { what: `the keeper logs ${word}` });
    assert.deepEqual([line.request_id, line.trace_id], [request_id, trace]);
  };
  await own('for-the-keeper', 'build');
  await own('its.end_2', 'kill');
  const begun = await api.request('POST', '/v1/templates', { json: { name: 'nowhere', image: '127.0.0.1:1/none:1' }, headers: { 'x-request-id': 'of-a-job' } });
  assert.equal(begun.status, 202, begun.text);
  await until(() => lines().find((one) => one.request_id === 'of-a-job' && /^the job \w+ \(\w+\) failed: /.test(one.message)), { what: 'the job says that it failed' });
  await api.request('DELETE', '/v1/templates/nowhere');
});

test('the command line says where the log of the daemon is if there is no journal of it', async () => {
  const { code, stderr } = await sandlot(['logs', '--daemon', '-n', '1'], { env: { PATH: '/nonexistent' } });
  assert.notEqual(code, 0);
  assert.match(stderr, /journalctl/);
});

finish();
