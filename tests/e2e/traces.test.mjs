// SPDX-License-Identifier: Apache-2.0
// Traces of requests and launches, as a collector gets them (OTLP over HTTP).
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { Instance } from './lib/instance.mjs';
import { Launches } from './lib/launches.mjs';
import { httpServer } from './lib/outside.mjs';
import { until } from './lib/wait.mjs';

const STAGES = ['DetectEntryPoint', 'MaterializeFiles', 'GenerateEnvVars', 'InstallDependencies', 'PostInstallChecks', 'SyntaxCheck', 'LaunchBackend', 'LaunchFrontend'];
const TRACE = 'a'.repeat(32), SENDER = 'b'.repeat(16);
const posts = [];
let answer = (response) => response.setHeader('content-type', 'application/json').end('{}');
const collector = await httpServer((request, response) => {
  let text = '';
  request.on('data', (data) => { text += data; });
  request.on('end', () => { posts.push({ path: request.url, type: request.headers['content-type'], text }); answer(response); });
});
const port = collector.port ?? collector.address().port;
const instance = new Instance('traces', { args: ['--otlp-endpoint', `http://127.0.0.1:${port}`] });
after(() => { instance.destroy(); collector.close(); collector.closeAllConnections?.(); });
process.on('exit', () => instance.destroy());
await instance.start();
const { api } = instance;
const launches = new Launches(api);

const spans = () => posts.flatMap(({ text }) => JSON.parse(text).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
const of = (trace) => spans().filter(({ traceId }) => traceId === trace);
const attributes = (span) => Object.fromEntries(span.attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));
const figure = async (outcome) => Number(new RegExp(`^sandlot_trace_spans_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm').exec((await api.request('GET', '/metrics')).text)[1]);

test('a request is a span below that of its sender; one without is the root of its own; one that is not sampled is none', async () => {
  const asked = await api.request('GET', '/v1/sandboxes/nothing-here', { headers: { traceparent: `00-${TRACE}-${SENDER}-01`, 'x-request-id': 'asked-by-a-test' } });
  assert.equal(asked.status, 404);
  const unsampled = 'd'.repeat(32);
  await api.request('GET', '/v1/version', { headers: { traceparent: `00-${unsampled}-${SENDER}-00` } });
  const own = (await api.request('GET', '/v1/version')).headers.traceparent.split('-')[1];
  await until(() => of(TRACE).length > 0 && of(own).length > 0, { what: 'the collector has both' });
  const [span] = of(TRACE);
  assert.deepEqual([span.parentSpanId, span.kind, span.name], [SENDER, 2, 'GET /v1/sandboxes/{id}']);
  assert.equal(asked.headers.traceparent, `00-${TRACE}-${span.spanId}-01`, 'the answer passes it on');
  assert.deepEqual(attributes(span), { 'http.request.method': 'GET', 'http.route': '/v1/sandboxes/{id}', 'http.response.status_code': 404, 'sandlot.request_id': 'asked-by-a-test', 'error.type': 'sandbox_not_found' });
  assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
  assert.ok(Math.abs(Number(BigInt(span.endTimeUnixNano) / 1_000_000n) - Date.now()) < 600_000);
  assert.equal(of(own)[0].parentSpanId, '');
  assert.deepEqual(of(unsampled), []);
  assert.ok(posts.every(({ path, type }) => path === '/v1/traces' && type === 'application/json'));
  assert.deepEqual(JSON.parse(posts[0].text).resourceSpans[0].resource.attributes[0], { key: 'service.name', value: { stringValue: 'sandlotd' } });
});

test('a launch is one trace below the request for it, with a span for each stage', async () => {
  const trace = 'c'.repeat(32);
  const { id } = await launches.project({ 'server.js': `require('node:http').createServer((q, s) => s.end('x')).listen(process.env.PORT);\n` });
  const launched = await launches.launch({ project: id }, { traceparent: `00-${trace}-${SENDER}-01` });
  launches.assertRuns(launched);
  await until(() => of(trace).some(({ name }) => name === 'launch'), { what: 'the collector has the launch' });
  const found = of(trace), request = found.find(({ kind }) => kind === 2), whole = found.find(({ name }) => name === 'launch');
  assert.deepEqual([request.name, request.parentSpanId], ['POST /v1/launches', SENDER]);
  assert.equal(whole.parentSpanId, request.spanId);
  const about = attributes(whole);
  assert.deepEqual([about['sandlot.launch.id'], about['sandlot.sandbox.id'], about['sandlot.project'], about['sandlot.backend']], [launched.id, launched.sandbox_id, id, 'node']);
  const stages = found.filter(({ parentSpanId }) => parentSpanId === whole.spanId);
  assert.deepEqual(stages.map(({ name }) => name), STAGES);
  for (const [i, stage] of stages.entries()) {
    assert.equal(attributes(stage)['sandlot.stage.status'], launched.stages[i].status);
    assert.ok(BigInt(stage.startTimeUnixNano) >= BigInt(whole.startTimeUnixNano) && BigInt(stage.endTimeUnixNano) <= BigInt(whole.endTimeUnixNano));
  }
  await launches.remove(launched, id);
});

test('a launch that failed says where and why', async () => {
  const trace = 'e'.repeat(32);
  const { id } = await launches.project({ 'server.js': 'let a = = 1;\n' });
  const launched = await launches.launch({ project: id }, { traceparent: `00-${trace}-${SENDER}-01` });
  assert.equal(launched.status, 'failed');
  await until(() => of(trace).some(({ name }) => name === 'launch'), { what: 'the collector has the launch' });
  const failed = of(trace).filter(({ status }) => status.code === 2);
  assert.deepEqual(failed.map(({ name }) => name), ['SyntaxCheck', 'launch']);
  for (const span of failed) {
    assert.equal(attributes(span)['error.type'], 'syntax_error');
    assert.match(span.status.message, /server\.js:1/);
  }
  await launches.remove(launched, id);
});

test('a collector that takes nothing drops spans, which are counted, and no request waits for it', async () => {
  const held = [];
  answer = (response) => held.push(response);
  const before = await figure('dropped');
  for (let i = 0; i < 20; i++) assert.equal((await api.request('GET', '/v1/version')).status, 200);
  await until(async () => await figure('dropped') > before, { what: 'spans are dropped' });
  answer = (response) => response.end('{}');
  for (const response of held) response.destroy();
  const sent = await figure('sent');
  await until(async () => { await api.request('GET', '/v1/version'); return await figure('sent') > sent; }, { what: 'spans are sent again' });
  assert.match(instance.log(), /the collector of traces takes nothing: .*\n[^]*the collector of traces takes spans again/);
});

test('the end of the daemon sends what is left; an endpoint that is no address is refused', async () => {
  const last = 'f'.repeat(32);
  await api.request('GET', '/v1/version', { headers: { traceparent: `00-${last}-${SENDER}-01` } });
  await instance.shutdown();
  assert.equal(of(last).length, 1);
  const wrong = new Instance('traces-wrong', { args: ['--otlp-endpoint', 'collector:4318'] });
  try {
    await assert.rejects(wrong.start());
    assert.match(wrong.log(), /--otlp-endpoint wants an address such as http:/);
  } finally {
    wrong.destroy();
  }
});
