// SPDX-License-Identifier: Apache-2.0
// Functions: handlers that are kept under a name, in versions, and called by it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { commandLine } from './lib/cli.mjs';
import { assertError } from './lib/client.mjs';
import { ownerApi } from './lib/owners.mjs';
import { suite } from './lib/suite.mjs';
import { until } from './lib/wait.mjs';

const { instance, api, finish } = await suite('functions');

const tryPut = (name, body, as = api) => as.request('PUT', `/v1/functions/${name}`, { json: body });
const invoke = (name, event, options = {}, as = api) => as.request('POST', `/v1/functions/${name}/invoke`, { json: event, ...options });

async function put(name, body, as = api) {
  const answer = await tryPut(name, body, as);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

async function result(name, event, options = {}) {
  const answer = await invoke(name, event, options);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

// Handlers in the shapes that the documentation of AWS Lambda teaches.
const PYTHON = {
  plain: ['def handler(event, context):\n    return {"message": "Hello {} {}!".format(event["first_name"], event["last_name"])}', { first_name: 'Ada', last_name: 'Lovelace' }, { message: 'Hello Ada Lovelace!' }],
  'lambda_function.lambda_handler': ['import json\nimport os\nimport logging\nlogger = logging.getLogger()\nlogger.setLevel("INFO")\ndef lambda_handler(event, context):\n    logger.info("event %s", event)\n    return {"statusCode": 200, "body": json.dumps({"id": context.aws_request_id, "arn": context.invoked_function_arn, "left": context.get_remaining_time_in_millis() > 0})}', {}, null],
  'orders.records': ['import json\nimport os\nimport urllib.parse\n\nBUCKETS = {}\n\ndef records(event, context):\n    seen = []\n    for record in event["Records"]:\n        bucket = record["s3"]["bucket"]["name"]\n        key = urllib.parse.unquote_plus(record["s3"]["object"]["key"], encoding="utf-8")\n        BUCKETS.setdefault(bucket, []).append(key)\n        seen.append(f"{bucket}/{key}")\n    return {"seen": seen, "region": os.environ.get("AWS_REGION"), "log": [context.log_group_name, context.log_stream_name], "memory": int(context.memory_limit_in_mb) > 0}',
    { Records: [{ s3: { bucket: { name: 'in' }, object: { key: 'a+b%2Fc.txt' } } }] }, { seen: ['in/a b/c.txt'], region: 'local', log: ['/aws/lambda/records', /^\d{4}\/\d\d\/\d\d\/\[1\][0-9a-z]{26}$/], memory: true }],
  'app.proxy': ['import json\n\nclass NotFound(Exception):\n    pass\n\ndef proxy(event, context):\n    try:\n        body = json.loads(event["body"] or "{}")\n        method = event["requestContext"]["http"]["method"] if "http" in event["requestContext"] else event["httpMethod"]\n        if method != "POST":\n            raise NotFound(method)\n        return {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": json.dumps({"item": body["id"], "path": event["pathParameters"]})}\n    except NotFound as error:\n        return {"statusCode": 404, "body": str(error)}',
    { httpMethod: 'POST', requestContext: {}, pathParameters: { id: '7' }, body: '{"id": 7}' }, { statusCode: 200, headers: { 'Content-Type': 'application/json' }, body: '{"item": 7, "path": {"id": "7"}}' }],
  'index.main': ['import asyncio\nasync def fetch(n):\n    await asyncio.sleep(0)\n    return n * n\nasync def work(ns):\n    return await asyncio.gather(*[fetch(n) for n in ns])\ndef main(event, context):\n    return asyncio.run(work(event))', [1, 2, 3], [1, 4, 9]],
};
const JAVASCRIPT = {
  async: ['exports.handler = async (event) => { const total = event.items.reduce((sum, item) => sum + item.price, 0); return { total }; };', { items: [{ price: 1 }, { price: 2 }] }, { total: 3 }],
  module: ['export const handler = async (event, context) => {\n  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));\n  await wait(1);\n  return { name: context.functionName, left: context.getRemainingTimeInMillis() > 0 };\n};', {}, { name: 'module', left: true }],
  imported: ['import { createHash } from "node:crypto";\nimport path from "node:path";\n\nlet calls = 0;\n\nexport const handler = async (event, context) => {\n  context.callbackWaitsForEmptyEventLoop = false;\n  calls += 1;\n  console.log("EVENT\\n" + JSON.stringify(event, null, 2));\n  const digest = createHash("sha256").update(event.text).digest("hex").slice(0, 8);\n  return { statusCode: 200, body: JSON.stringify({ digest, name: path.basename(event.file), calls, version: context.functionVersion, memory: Number(context.memoryLimitInMB) > 0 }) };\n};', { text: 'abc', file: '/a/b.txt' }, { statusCode: 200, body: '{"digest":"ba7816bf","name":"b.txt","calls":1,"version":"1","memory":true}' }],
  proxy: ['exports.handler = async (event) => {\n  const body = JSON.parse(event.body ?? "{}");\n  const { name = "World" } = event.queryStringParameters ?? {};\n  const headers = { "Content-Type": "application/json" };\n  switch (`${event.httpMethod} ${event.resource}`) {\n    case "POST /": return { statusCode: 201, headers, body: JSON.stringify({ hello: name, day: body.day }) };\n    default: throw new Error(`Unsupported route: "${event.resource}"`);\n  }\n};', { httpMethod: 'POST', resource: '/', queryStringParameters: { name: 'Ada' }, body: '{"day":"Monday"}' }, { statusCode: 201, headers: { 'Content-Type': 'application/json' }, body: '{"hello":"Ada","day":"Monday"}' }],
  callback: ['exports.handler = function (event, context, callback) {\n  setTimeout(() => callback(null, { statusCode: 200, key: event.key }), 1);\n};', { key: 'value' }, { statusCode: 200, key: 'value' }],
  promise: ['const fs = require("fs");\nexports.handler = (event) => new Promise((resolve, reject) => fs.readFile(event.file, "utf8", (error, text) => (error ? reject(error) : resolve(text.length > 0))));', { file: '/etc/passwd' }, true],
};

test('handlers in the shapes of AWS Lambda run unchanged, in Python and Node', async () => {
  for (const [handler, [code, event, expected]] of Object.entries(PYTHON)) {
    const name = handler.replace(/.*\./, '');
    await put(name, { language: 'python', code, ...(handler === 'plain' ? {} : { handler }) });
    const got = await result(name, event);
    if (got?.log) got.log[1] = got.log[1].replace(expected.log[1], () => (expected.log[1] = 'a stream'));
    if (expected) assert.deepEqual(got, expected);
    else assert.deepEqual([got.statusCode, JSON.parse(got.body).arn, JSON.parse(got.body).left], [200, 'arn:aws:lambda:local:0:function:lambda_handler', true]);
  }
  for (const [name, [code, event, expected]] of Object.entries(JAVASCRIPT)) {
    await put(name, { language: 'javascript', code });
    assert.deepEqual(await result(name, event), expected);
  }
});

test('who calls back, or succeeds by its context, is answered when nothing is left to wait for, as AWS Lambda does', async () => {
  const cases = {
    waits: ['exports.handler = (event, context, callback) => { callback(null, "called back"); setTimeout(() => console.log("later"), 50); };', 'called back', 'later\n'],
    does_not: ['exports.handler = (event, context, callback) => { context.callbackWaitsForEmptyEventLoop = false; callback(null, "at once"); setTimeout(() => console.log("later"), 3600000); };', 'at once', ''],
    succeeds: ['exports.handler = (event, context) => { setTimeout(() => context.succeed({ n: event.n }), 5); setTimeout(() => console.log("later"), 3600000); };', { n: 1 }, ''],
    never: ['exports.handler = (event, context, callback) => { setTimeout(() => console.log("worked"), 5); };', null, 'worked\n'],
    wrapped: ['const inner = (event, context, callback) => setTimeout(() => callback(null, event.n + 1), 5);\nexports.handler = (...all) => { inner(...all); };', 2, ''],
    waiting: ['const db = await (async () => 7)();\nexports.handler = async () => db;', 7, ''],
    streams: ['const { pipeline } = require("stream/promises");\nconst { Readable } = require("stream");\nexports.handler = awslambda.streamifyResponse(async (event, out) => { await pipeline(Readable.from(["one ", "two"]), out); });', 'one two', ''],
    pipes: ['exports.handler = awslambda.streamifyResponse(async (event, out) => { setTimeout(() => { out.write("late"); out.end(); }, 20); });', 'late', ''],
    words: ['const package = { n: 3 };\nexports.handler = async () => await (package.n);', 3, ''],
    answers: ['exports.handler = awslambda.streamifyResponse(async (event, out, context) => {\n  out = awslambda.HttpResponseStream.from(out, { statusCode: 201, headers: { "X-Mine": context.functionName } });\n  out.write("<p>");\n  out.end();\n});',
      { statusCode: 201, headers: { 'X-Mine': 'answers' }, body: '<p>', isBase64Encoded: false }, ''],
  };
  for (const [name, [code, expected, stdout]] of Object.entries(cases)) {
    await put(name, { language: 'javascript', code, timeout_ms: 30000 });
    const answer = await invoke(name, { n: 1 });
    assert.deepEqual([answer.status, answer.json], [200, expected], `${name}: ${answer.text}`);
    assert.equal((await api.request('GET', `/v1/executions/${answer.headers['sandlot-execution']}`)).json.stdout, stdout, name);
  }
  for (const code of ['exports.handler = (event, context, callback) => callback("refused");', 'exports.handler = (event, context) => context.fail("refused");', 'exports.handler = async () => { throw "refused"; };']) {
    await put('refuses', { language: 'javascript', code });
    assertError(await invoke('refuses', {}), 502, /Error: refused$/);
  }
  await put('overflows', { language: 'javascript', code: 'exports.handler = awslambda.streamifyResponse(async (event, out) => { for (;;) await new Promise((done) => out.write("x".repeat(65536), done)); });', timeout_ms: 30000 });
  assertError(await invoke('overflows', {}), 502, /TooLarge/);
});

test('a handler of Python is found wherever the outermost level defines it', async () => {
  const cases = ['try:\n    import fastest as json\n    def handler(event): return json.dumps(event or "called")\nexcept ImportError:\n    def handler(event): return event or "called"',
    'from typing import Callable\ndef work(event, context): return event or "called"\nhandler: Callable = work', 'import os\nif os.name == "posix":\n    async def handler(event): return event or "called"\nelse:\n    handler = None',
    'with open("/dev/null") as nothing:\n    from operator import itemgetter\n    class Handler:\n        def __call__(self, event, context): return event or "called"\n    handler = Handler()'];
  for (const code of cases) {
    const answer = await api.request('POST', '/v1/executions', { json: { language: 'python', code } });
    assert.deepEqual([answer.json.status, answer.json.result], ['succeeded', 'called'], code);
    await put('found', { language: 'python', code });
    assert.equal(await result('found', 'event'), 'event', code);
  }
});

test('a handler finds the environment, the context and the logging of AWS Lambda', async () => {
  const seen = async (name, body, event) => {
    await put(name, { ...body, resources: { memory: '256Mi' }, env: { TABLE_NAME: 'orders', AWS_DEFAULT_REGION: 'eu-central-1' } });
    const answer = await invoke(name, event);
    assert.equal(answer.status, 200, answer.text);
    return [answer.json, (await api.request('GET', `/v1/executions/${answer.headers['sandlot-execution']}`)).json];
  };
  const environment = (name, id) => ({
    AWS_LAMBDA_FUNCTION_NAME: name, AWS_LAMBDA_FUNCTION_VERSION: '1', AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256', AWS_REGION: 'local', AWS_DEFAULT_REGION: 'eu-central-1',
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${name}`, AWS_LAMBDA_LOG_STREAM_NAME: `${new Date().toISOString().slice(0, 10).replaceAll('-', '/')}/[1]${id}`,
    LAMBDA_TASK_ROOT: '/workspace', AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand', TABLE_NAME: 'orders',
  });
  const names = JSON.stringify(Object.keys(environment('', '')));
  const [python, ran] = await seen('inventory', { language: 'python', handler: 'app.lambda_handler', code: `import json
import logging
import os

TABLE = os.environ["TABLE_NAME"]
ENVIRONMENT = {name: os.environ.get(name) for name in ${names}}
logger = logging.getLogger()
logger.setLevel(logging.INFO)
logger.debug("too little to be told")
logger.info("cold start of %s", os.environ["AWS_LAMBDA_FUNCTION_NAME"])

def lambda_handler(event, context):
    logger.info("event: %s", json.dumps(event))
    logging.getLogger("orders.store").warning("table %s is almost full", TABLE)
    try:
        event["items"][1]
    except IndexError:
        logger.exception("no second item")
    logger.handlers[0].setFormatter(logging.Formatter('{"level": "%(levelname)s", "id": "%(aws_request_id)s", "text": "%(message)s"}'))
    logger.error("in a format of its own")
    print("remaining:", context.get_remaining_time_in_millis() > 0)
    return {"environment": ENVIRONMENT, "handler": os.environ["_HANDLER"], "request": context.aws_request_id, "log": [context.log_group_name, context.log_stream_name],
            "identity": [context.identity.cognito_identity_id, context.identity.cognito_identity_pool_id], "client": context.client_context, "memory": context.memory_limit_in_mb}
` }, { items: ['one'] });
  assert.deepEqual(python, { environment: environment('inventory', ran.id), handler: 'app.lambda_handler', request: ran.id, identity: [null, null], client: null, memory: '256',
    log: [python.environment.AWS_LAMBDA_LOG_GROUP_NAME, python.environment.AWS_LAMBDA_LOG_STREAM_NAME] });
  const lines = ran.stdout.replace(/\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\t/g, '\tTIME\t').replaceAll(ran.id, 'ID');
  assert.equal(lines, '[INFO]\tTIME\tID\tcold start of inventory\n[INFO]\tTIME\tID\tevent: {"items": ["one"]}\n[WARNING]\tTIME\tID\ttable orders is almost full\n' +
    '[ERROR]\tTIME\tID\tno second item\nTraceback (most recent call last):\n  File "main.py", line 16, in lambda_handler\nIndexError: list index out of range\n' +
    '{"level": "ERROR", "id": "ID", "text": "in a format of its own"}\nremaining: True\n');
  assert.equal(ran.stderr, '');
  const [node, called] = await seen('orders', { language: 'javascript', code: `const table = process.env.TABLE_NAME;
const names = ${names};
const environment = Object.fromEntries(names.map((name) => [name, process.env[name]]));

export const handler = async (event, context) => {
  console.log('log stream', context.logStreamName === process.env.AWS_LAMBDA_LOG_STREAM_NAME);
  return { environment, table, request: context.awsRequestId, group: context.logGroupName, none: context.identity === undefined && context.clientContext === undefined, handler: process.env._HANDLER };
};
` }, {});
  assert.deepEqual(node, { environment: environment('orders', called.id), table: 'orders', request: called.id, group: '/aws/lambda/orders', none: true, handler: 'handler' });
  assert.equal(called.stdout, 'log stream true\n');
  const [, own] = await seen('own', { language: 'python', code: 'import logging\nlogging.basicConfig(level=logging.INFO, format="own: %(message)s")\nlogging.info("told")\ndef handler(event, context): logging.getLogger("x").info("again")' }, {});
  assert.deepEqual([own.stdout, own.stderr], ['', 'own: told\nown: again\n'], 'who sets up logging has it so');
  const [, silent] = await seen('loaded', { language: 'python', imports: ['logging'], code: 'import logging\nlogging.getLogger().setLevel("INFO")\ndef handler(event, context): logging.info("told")' }, {});
  assert.match(silent.stdout, /^\[INFO\]\t\S+Z\t[0-9a-z]{26}\ttold\n$/);
});

test('each put is a version that stays as it is; a call takes the last, or the one that is named', async () => {
  for (const n of [1, 2, 3]) {
    const version = await put('versions', { language: 'python', code: `def handler(e, c): return [${n}, c.function_version, e]`, env: { N: String(n) } });
    assert.deepEqual([version.version, version.name, version.env], [n, 'versions', { N: String(n) }]);
  }
  assert.deepEqual(await result('versions', 'x'), [3, '3', 'x']);
  assert.deepEqual(await result('versions', null, { query: { version: '1' } }), [1, '1', null]);
  assert.deepEqual(await result('versions', 0, { query: { version: '$LATEST' } }), [3, '3', 0]);
  assertError(await invoke('versions', {}, { query: { version: '4' } }), 404, /version 4/);
  assertError(await invoke('versions', {}, { query: { version: 'x' } }), 400, /version/);
  const listed = (await api.request('GET', '/v1/functions/versions/versions')).json.functions;
  assert.deepEqual(listed.map((one) => [one.version, one.code]), [[3, undefined], [2, undefined], [1, undefined]]);
  assert.match((await api.request('GET', '/v1/functions/versions', { query: { version: '2' } })).json.code, /\[2,/);
  assert.ok((await api.request('GET', '/v1/functions')).json.functions.some((one) => one.name === 'versions' && one.version === 3));
  assert.equal((await api.request('DELETE', '/v1/functions/versions')).status, 204);
  assertError(await invoke('versions', {}), 404, /no function versions/);
  assertError(await api.request('DELETE', '/v1/functions/versions'), 404, /no function/);
});

test('a handler that fails is 502, one that takes too long 504, and the execution has the rest', async () => {
  await put('fails', { language: 'python', code: 'def handler(e):\n    print("about to")\n    raise ValueError("wrong " + e)', timeout_ms: 20000 });
  const failed = await invoke('fails', 'input');
  assertError(failed, 502, /ValueError: wrong input/);
  assert.equal(failed.json.error.code, 'function_failed');
  const execution = (await api.request('GET', `/v1/executions/${failed.headers['sandlot-execution']}`)).json;
  assert.deepEqual([execution.status, execution.function, execution.version, execution.stdout, execution.sandbox_id], ['failed', 'fails', 1, 'about to\n', null]);
  assert.match(execution.error.traceback, /line 3, in handler/);
  await put('slow', { language: 'javascript', code: 'exports.handler = () => new Promise((r) => setTimeout(r, 3600000));', timeout_ms: 300 });
  const late = await invoke('slow', {});
  assertError(late, 504, /300 ms/);
  assert.equal(late.json.error.code, 'function_timeout');
  await put('missing', { language: 'python', code: 'x = 1' });
  assertError(await invoke('missing', {}), 502, /handler/);
  const retried = (await api.request('POST', `/v1/executions/${execution.id}/retry`)).json;
  assert.deepEqual([retried.status, retried.function, retried.error.message], ['failed', 'fails', 'wrong input']);
  assert.notEqual(retried.id, execution.id);
});

test('more calls at once than its concurrency are 429, and room is there again afterwards', async () => {
  await put('single', { language: 'shell', code: 'handler() { read -r line; case $line in *wait*) exec sleep 3600 ;; *) echo done > "$RESULT" ;; esac; }', concurrency: 1 });
  const running = await invoke('single', 'wait', { query: { async: 'true' } });
  assert.deepEqual([running.status, running.json.function], [202, 'single']);
  const refused = await invoke('single', 'quick');
  assertError(refused, 429, /calls of the function single/);
  assert.equal(refused.json.error.code, 'too_many_invocations');
  await api.request('POST', `/v1/executions/${running.json.id}/cancel`);
  assert.equal(await result('single', 'quick'), 'done');
});

test('a retry of a call is one of its calls at once; it goes on when the function is gone', async () => {
  await put('again', { language: 'python', code: 'import time\ndef handler(event):\n    while event == "wait": time.sleep(60)\n    return event', concurrency: 1 });
  const retry = (execution, query = {}) => api.request('POST', `/v1/executions/${execution}/retry`, { query });
  const done = (await invoke('again', 'quick')).headers['sandlot-execution'];
  assert.equal((await retry(done)).json.result, 'quick');
  const running = await invoke('again', 'wait', { query: { async: 'true' } });
  assert.equal(running.status, 202);
  const refused = await retry(done);
  assertError(refused, 429, /calls of the function again/);
  assert.equal(refused.json.error.code, 'too_many_invocations');
  await api.request('POST', `/v1/executions/${running.json.id}/cancel`);
  const waits = await retry(running.json.id, { async: 'true' });
  assert.equal(waits.status, 202, waits.text);
  assertError(await invoke('again', 'quick'), 429, /calls of the function again/);
  await api.request('POST', `/v1/executions/${waits.json.id}/cancel`);
  await api.request('DELETE', '/v1/functions/again');
  assert.equal((await retry(done)).json.result, 'quick');
});

test('with format=http a request becomes an event and the result the answer', async () => {
  await put('web', { language: 'python', code: 'import base64\ndef handler(event, context):\n    if event["queryStringParameters"] and "bad" in event["queryStringParameters"]: return "no answer"\n    text = base64.b64decode(event["body"]).hex() if event["isBase64Encoded"] else event["body"]\n    seen = [event["httpMethod"], event["path"], event["headers"].get("X-Mine") or event["headers"].get("x-mine"), event["queryStringParameters"], text, any(k.lower() == "authorization" for k in event["headers"])]\n    return {"statusCode": 201, "headers": {"Content-Type": "text/html", "X-Own": "yes", "Set-Cookie": "stolen=1", "Connection": "close"}, "body": base64.b64encode(repr(seen).encode()).decode(), "isBase64Encoded": True}' });
  // Such an answer is whatever the function says, and no document can name it: not by api.request.
  const call = async ({ query, body, headers }) => {
    const answer = await fetch(`http://127.0.0.1:${api.port}/v1/functions/web/invoke?${new URLSearchParams(query)}`, { method: 'POST', body, headers: { authorization: `Bearer ${api.token}`, ...headers } });
    const text = await answer.text();
    return { status: answer.status, headers: Object.fromEntries(answer.headers), text, json: answer.status < 400 ? null : JSON.parse(text) };
  };
  const text = await call({ query: { format: 'http', name: 'Ada' }, body: 'hello', headers: { 'content-type': 'text/plain', 'x-mine': 'm' } });
  assert.deepEqual([text.status, text.headers['content-type'], text.headers['x-own'], text.headers['set-cookie'], text.headers['content-security-policy']], [201, 'text/html', 'yes', undefined, 'sandbox']);
  assert.equal(text.text, "['POST', '/v1/functions/web/invoke', 'm', {'name': 'Ada'}, 'hello', False]");
  const bytes = await call({ query: { format: 'http' }, body: Buffer.from([0xff, 0x00]), headers: { 'content-type': 'application/octet-stream' } });
  assert.match(bytes.text, /None, None, 'ff00', False/);
  assertError(await call({ query: { format: 'http', bad: '1' } }), 502, /statusCode/);
  assertError(await call({ query: { format: 'odd' } }), 400, /format/);
  assertError(await call({ query: { name: 'x' } }), 400, /parameter name/);
  assertError(await call({ body: '{bad', headers: { 'content-type': 'application/json' } }), 400, /JSON/);
});

test('both versions of the payload of API Gateway tell the whole request, and take each shape of an answer', async () => {
  await put('echo', { language: 'javascript', code: 'export const handler = async (event) => event.headers["x-answer"] ? JSON.parse(event.headers["x-answer"]) : event;' });
  const send = (format, query, { headers = {}, body } = {}) => fetch(`http://127.0.0.1:${api.port}/v1/functions/echo/invoke?format=${format}&${query}`, {
    method: 'POST', body, headers: { authorization: `Bearer ${api.token}`, 'user-agent': 'a test', 'x-api-key': api.token, cookie: 'secret=1', 'content-type': 'text/plain', ...headers } });
  const told = async (format, ...rest) => {
    const answer = await send(format, ...rest);
    const execution = (await api.request('GET', `/v1/executions/${answer.headers.get('sandlot-execution')}`)).json;
    return execution.result;
  };
  const host = `127.0.0.1:${api.port}`;
  const first = await told('http', 'tag=a&tag=b%20c&one=1', { body: 'text', headers: { 'x-mine': 'm' } });
  assert.deepEqual([first.version, first.httpMethod, first.resource, first.path, first.body, first.isBase64Encoded, first.pathParameters, first.stageVariables],
    ['1.0', 'POST', '/', '/v1/functions/echo/invoke', 'text', false, null, null]);
  assert.deepEqual([first.queryStringParameters, first.multiValueQueryStringParameters], [{ tag: 'b c', one: '1' }, { tag: ['a', 'b c'], one: ['1'] }]);
  assert.deepEqual([first.headers['x-mine'], first.multiValueHeaders['x-mine']], ['m', ['m']]);
  const { requestContext: about } = first;
  assert.deepEqual([about.identity, about.httpMethod, about.path, about.resourcePath, about.stage, about.protocol, about.domainName], [{ sourceIp: '127.0.0.1', userAgent: 'a test' }, 'POST', first.path, '/', '$default', 'HTTP/1.1', host]);
  assert.match(about.requestTime, /^\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000$/);
  assert.ok(about.requestId && Number.isInteger(about.requestTimeEpoch));
  const second = await told('http-2.0', 'tag=a&tag=b%20c&one=%26', { body: Buffer.from([0xff]) });
  assert.deepEqual([second.version, second.routeKey, second.rawPath, second.rawQueryString, second.queryStringParameters, second.body, second.isBase64Encoded],
    ['2.0', '$default', '/v1/functions/echo/invoke', 'tag=a&tag=b%20c&one=%26', { tag: 'a,b c', one: '&' }, '/w==', true]);
  assert.deepEqual([second.requestContext.http, second.requestContext.stage, second.requestContext.domainName],
    [{ method: 'POST', path: second.rawPath, protocol: 'HTTP/1.1', sourceIp: '127.0.0.1', userAgent: 'a test' }, '$default', host]);
  const bare = await told('http-2.0', '');
  assert.deepEqual(['body' in bare, 'queryStringParameters' in bare, 'httpMethod' in bare, bare.isBase64Encoded], [false, false, false, false]);
  assert.equal((await told('http', '')).queryStringParameters, null);
  for (const event of [first, second]) assert.doesNotMatch(JSON.stringify(event), new RegExp(`${api.token}|secret=1`));
  const answers = async (format, wanted) => {
    const answer = await send(format, '', { headers: { 'x-answer': JSON.stringify(wanted) } });
    return [answer.status, answer.headers.get('content-type'), answer.headers.get('x-list'), await answer.text()];
  };
  assert.deepEqual(await answers('http', { statusCode: 202, multiValueHeaders: { 'X-List': ['a', 'b'], 'Content-Type': ['text/plain'], 'X-Odd': [1, {}] }, body: 'many' }), [202, 'text/plain', 'a, b', 'many']);
  assert.deepEqual(await answers('http-2.0', { hello: 'Ada' }), [200, 'application/json', null, '{"hello":"Ada"}']);
  assert.deepEqual(await answers('http-2.0', 'text alone'), [200, 'application/json', null, '"text alone"']);
  assert.deepEqual(await answers('http-2.0', { statusCode: 404, headers: { 'x-list': 'one' } }), [404, 'application/json', 'one', '']);
  assert.deepEqual(await answers('http', { statusCode: 200, headers: { 'X-List': 5 } }), [200, 'application/json', '5', '']);
  assert.deepEqual(await answers('http', { statusCode: 200, multiValueHeaders: { 'X-List': [1.5, true, {}] } }), [200, 'application/json', '1.5, true', '']);
  const named = await send('http', '', { headers: { 'x-request-id': 'asked', 'x-answer': '{"statusCode":200,"headers":{"X-Request-ID":"made up"}}' } });
  assert.equal(named.headers.get('x-request-id'), 'asked', 'it stays what the log has');
  assertError(await api.request('POST', '/v1/functions/echo/invoke', { query: { format: 'http-3.0' } }), 400, /format must be json, http or http-2\.0/);
  assert.match((await (await send('http', 'format=json')).json()).error.message, /format is given twice/);
  const elsewhere = await fetch(`http://127.0.0.1:${api.port}/v1/functions?limit=1&limit=2`, { headers: { authorization: `Bearer ${api.token}` } });
  assert.deepEqual([elsewhere.status, (await elsewhere.json()).error.message], [400, 'the query parameter limit is given twice']);
});

test('numbers come back with all their digits: from a call, its execution, its stream, and in both languages', async () => {
  const numbers = [0.1 + 0.2, 1700000000.123456, 1 / 3, 5e-324, 1.7976931348623157e308, -0.1, 9007199254740991];
  await put('echoes', { language: 'python', code: 'def handler(event, context): return event' });
  await put('echoes-js', { language: 'javascript', code: 'exports.handler = async (event) => event;' });
  for (const name of ['echoes', 'echoes-js']) {
    const called = await invoke(name, numbers);
    assert.deepEqual(called.json, numbers);
    assert.equal((await invoke(name, [0.1, -19.99, 1e-7])).text, '[0.1,-19.99,1e-7]', 'and with no more than they have');
    assert.deepEqual((await api.request('GET', `/v1/executions/${called.headers['sandlot-execution']}`)).json.result, numbers);
    const stream = await api.stream('POST', `/v1/functions/${name}/invoke`, { json: numbers });
    for await (const { event, data } of stream.events()) if (event === 'result') assert.deepEqual(data.result, numbers);
  }
});

test('bad input names the field; functions belong to their owner', async () => {
  assertError(await tryPut('bad', { language: 'cobol', code: '1' }), 400, /language/);
  assertError(await tryPut('bad', { language: 'python' }), 400, /code/);
  assertError(await tryPut('bad', { language: 'python', code: '1', imports: ['../evil'] }), 400, /imports/);
  assertError(await tryPut('bad', { language: 'python', code: '1', concurrency: 0 }), 400, /concurrency/);
  assertError(await tryPut('bad', { language: 'python', code: '1', resources: { memory: 1 } }), 400, /memory/);
  assertError(await tryPut('a%20b', { language: 'python', code: '1' }), 400, /name of a function/);
  const eve = await ownerApi(api, 'other', 'eve');
  await put('mine', { language: 'shell', code: 'handler() { echo hers > "$RESULT"; }' }, eve);
  await put('mine', { language: 'shell', code: 'handler() { echo ours > "$RESULT"; }' });
  assert.equal((await invoke('mine', {}, {}, eve)).json, 'hers');
  assert.equal(await result('mine', {}), 'ours');
  assertError(await invoke('web', {}, {}, eve), 404, /no function web/);
});

test('calls are listed and counted by function, and by time', async () => {
  await put('counted', { language: 'shell', code: 'handler() { [ "$1" = 1 ] || exit 1; }' });
  for (const event of [1, 1, 2]) await invoke('counted', event);
  const { stats } = (await api.request('GET', '/v1/executions/stats', { query: { function: 'counted' } })).json;
  assert.deepEqual(stats.map((one) => [one.sandbox_id, one.function, one.count, one.failures]), [[null, 'counted', 3, 1]]);
  assert.ok(stats[0].p50_ms > 0 && stats[0].p95_ms >= stats[0].p50_ms);
  const list = async (query) => (await api.request('GET', '/v1/executions', { query })).json.executions.length;
  assert.deepEqual([await list({ function: 'counted' }), await list({ function: 'counted', status: 'failed' })], [3, 1]);
  assert.deepEqual([await list({ function: 'counted', since: '2020-01-01T00:00:00Z' }), await list({ function: 'counted', until: '2020-01-01T00:00:00Z' })], [3, 0]);
  assertError(await api.request('GET', '/v1/executions', { query: { since: 'yesterday' } }), 400, /since/);
});

test('the command line deploys, calls, lists, shows logs and removes', async () => {
  const { sandlot } = commandLine(instance);
  const file = path.join(instance.home, 'hello.py');
  fs.writeFileSync(file, 'import os\ndef handler(event, context):\n    print("to the log")\n    return {"hello": event["name"], "x": os.environ["X"]}');
  const deployed = await sandlot(['fn', 'deploy', 'hello', file, '-e', 'X=y', '-m', '128Mi', '-T', '10s', '--import', 'json']);
  assert.deepEqual([deployed.code, deployed.stderr], [0, 'sandlot: hello is version 1\n']);
  const called = await sandlot(['fn', 'invoke', 'hello', '--event', '{"name": "Ada"}']);
  assert.deepEqual([called.code, JSON.parse(called.stdout)], [0, { hello: 'Ada', x: 'y' }]);
  const failed = await sandlot(['fn', 'invoke', 'hello']);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /KeyError/);
  assert.match((await sandlot(['fn', 'ls'])).stdout, /hello +1 +python/);
  const logs = (await sandlot(['fn', 'logs', 'hello'])).stdout;
  assert.match(logs, /succeeded\nto the log\n[^]*failed\nto the log\n[^]*KeyError/);
  assert.equal((await sandlot(['fn', 'rm', 'hello'])).stdout, 'hello\n');
  assert.equal((await sandlot(['fn', 'rm', 'hello'])).code, 3);
});

test('a daemon that was killed has the functions still', async () => {
  await put('kept', { language: 'shell', code: 'handler() { echo 5 > "$RESULT"; }' });
  await instance.crash();
  await instance.start();
  assert.equal(await result('kept', {}), 5);
  await until(() => !fs.readdirSync(path.join(instance.dataDir, 'sandboxes')).some((name) => /^[0-9a-z]{26}$/.test(name)), { what: 'the sandboxes of calls are gone' });
});

finish();
