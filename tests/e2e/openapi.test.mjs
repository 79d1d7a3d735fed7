// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document is true: what it lists exists, and what the interface promises is listed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import Ajv from 'ajv/dist/2020.js';

import { eventsOf, Judge } from './lib/document.mjs';
import { REPOSITORY } from './lib/instance.mjs';
import { suite } from './lib/suite.mjs';

const { api, finish } = await suite('openapi');
const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];
const NOBODY = '01arz3ndektsv4rrffq69g5fav';

const document = (await api.request('GET', '/openapi.json')).json;
const operations = Object.entries(document.paths ?? {}).flatMap(([route, item]) =>
  Object.entries(item).filter(([method]) => METHODS.includes(method)).map(([method, operation]) => ({ route, method, operation, item })));

/** Follows "#/components/..." references. */
function resolve(node) {
  while (node?.$ref) node = node.$ref.slice(2).split('/').reduce((at, key) => at?.[key.replaceAll('~1', '/')], document);
  return node;
}

test('the document is OpenAPI 3.1 with a title, a version and JSON as its type', async () => {
  const answer = await api.request('GET', '/openapi.json');
  assert.equal(answer.status, 200);
  assert.match(answer.headers['content-type'], /^application\/json/);
  assert.match(document.openapi, /^3\.1\.\d+$/);
  assert.ok(document.info.title);
  assert.match(document.info.version, /^\d+\.\d+\.\d+/);
});

test('every operation has a summary, responses with descriptions, and an id of its own', () => {
  assert.ok(operations.length >= 25, `${operations.length} operations`);
  const ids = new Set();
  for (const { route, method, operation } of operations) {
    const name = `${method} ${route}`;
    assert.ok(operation.summary?.length > 3, `${name} has a summary`);
    assert.ok(Object.keys(operation.responses ?? {}).length > 0, `${name} has responses`);
    for (const [status, response] of Object.entries(operation.responses)) {
      assert.match(status, /^([1-5]\d\d|default)$/, name);
      assert.ok(resolve(response)?.description, `${name} describes ${status}`);
    }
    assert.ok(Object.keys(operation.responses).some((status) => /^[123]/.test(status)), `${name} says what success is`);
    if (operation.operationId !== undefined) {
      assert.ok(!ids.has(operation.operationId), `${operation.operationId} is used once`);
      ids.add(operation.operationId);
    }
  }
});

test('every tag says what it gathers, and none gathers nothing', () => {
  const used = new Set(operations.flatMap(({ operation }) => operation.tags));
  assert.deepEqual(document.tags.map(({ name }) => name).sort(), [...used].sort());
  for (const { name, description } of document.tags) assert.match(description, /^[A-Z].{20,}\.$/, name);
});

test('every variable part of a path is a declared parameter', () => {
  for (const { route, method, operation, item } of operations) {
    const declared = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve).filter((parameter) => parameter.in === 'path');
    const names = [...route.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
    assert.deepEqual(declared.map((parameter) => parameter.name).sort(), names.sort(), `${method} ${route}`);
    for (const parameter of declared) assert.equal(parameter.required, true, `${method} ${route} ${parameter.name}`);
  }
});

test('every reference in the document leads somewhere', () => {
  const walk = (node, at) => {
    if (node === null || typeof node !== 'object') return;
    if (typeof node.$ref === 'string') assert.ok(resolve(node), `${at}: ${node.$ref}`);
    for (const [key, value] of Object.entries(node)) walk(value, `${at}/${key}`);
  };
  walk(document, '#');
});

test('every promised route of sandboxes, exec, files and stats is listed', () => {
  const listed = new Set(operations.map(({ route, method }) => `${method.toUpperCase()} ${route.replaceAll(/\{[^}]+\}/g, '{}')}`));
  const one = '/v1/sandboxes/{}';
  const promised = [
    'GET /healthz', 'GET /readyz', 'GET /openapi.json', 'POST /v1/shutdown',
    'GET /v1/sandboxes', 'POST /v1/sandboxes', 'POST /v1/sandboxes/ensure', `GET ${one}`, `PATCH ${one}`, `DELETE ${one}`,
    ...['start', 'stop', 'pause', 'resume', 'reset', 'purge', 'exec'].map((verb) => `POST ${one}/${verb}`), `GET ${one}/stats`,
    ...['GET', 'PUT', 'DELETE', 'HEAD'].map((method) => `${method} ${one}/files`), `GET ${one}/files/list`, `GET ${one}/files/stat`,
    `POST ${one}/files/mkdir`, `POST ${one}/files/move`, `GET ${one}/files/watch`, `GET ${one}/files/archive`, `PUT ${one}/files/archive`,
  ];
  assert.deepEqual(promised.filter((name) => !listed.has(name)), []);
});

test('every listed operation exists, and none of them answers without a token but the public ones', async () => {
  const open = new Set(['/healthz', '/readyz', '/openapi.json', '/docs', '/']);
  for (const { route, method, operation } of operations) {
    const target = route.replaceAll('{id}', NOBODY).replaceAll(/\{[^}]+\}/g, '1');
    const name = `${method} ${route}`;
    const stranger = await api.request(method.toUpperCase(), target, { token: null });
    if (!open.has(route) && name !== 'post /v1/login') assert.equal(stranger.status, 401, `${name} without a token: ${stranger.text}`);
    if (['/v1/shutdown', '/v1/events'].includes(route) || stranger.status === 200) continue; // it would work, or never end
    const answer = await api.request(method.toUpperCase(), target, { json: operation.requestBody ? {} : undefined });
    if (method !== 'head' && answer.status >= 400) assert.notEqual(answer.json.error?.code, 'route_not_found', name);
    assert.ok(![401, 405, 500, 501].includes(answer.status), `${name}: ${answer.status} ${answer.text}`);
  }
});

test('an empty object is a body that says nothing, for every operation that takes none', async () => {
  // The handshake of a WebSocket has none, whatever it says.
  const taking = operations.filter(({ route, operation }) => !operation.requestBody && !operation.responses[101] && !['/v1/shutdown', '/v1/events'].includes(route));
  assert.ok(taking.length >= 100, `${taking.length} operations`);
  const code = ({ json }) => json.error?.code ?? json.code; // which other doors have at the top
  for (const { route, method } of taking) {
    const target = route.replaceAll('{id}', NOBODY).replaceAll(/\{[^}]+\}/g, '1');
    const [without, empty] = [await api.request(method.toUpperCase(), target), await api.request(method.toUpperCase(), target, { json: {} })];
    assert.equal(empty.status, without.status, `${method} ${route}: ${empty.text}`);
    if (method !== 'head' && empty.status >= 400) assert.equal(code(empty), code(without), `${method} ${route}`);
  }
});

/** Bodies that fit a schema but for a field that nobody knows, which is at each of its depths in turn. */
function* withStranger(schema) {
  const found = resolve(schema), { properties = {}, required = [] } = found;
  const known = Object.fromEntries(required.map((name) => [name, sample(properties[name])]));
  if (found.additionalProperties === false) yield { ...known, stranger: 1 };
  for (const [name, one] of Object.entries(properties)) {
    for (const kind of [one, ...(resolve(one).oneOf ?? [])].map(resolve)) {
      if (kind.properties) for (const below of withStranger(kind)) yield { ...known, [name]: below };
      const items = kind.items && [kind.items, ...(resolve(kind.items).oneOf ?? [])].map(resolve).filter((entry) => entry.properties);
      for (const entry of items ?? []) for (const below of withStranger(entry)) yield { ...known, [name]: [below] };
    }
  }
}

function sample(schema) {
  const { examples, example, enum: choices, default: usual } = resolve(schema);
  return examples?.[0] ?? example ?? usual ?? choices?.[0] ?? 'x';
}

test('a field that nobody knows is refused by its name, at every depth of every body', async () => {
  const { id } = await api.create();
  let deepest = 0, tried = 0;
  for (const { route, method, operation } of operations) {
    const schema = operation.requestBody?.content['application/json']?.schema;
    if (!schema || /\{(?!id\})/.test(route)) continue;
    for (const json of withStranger(schema)) {
      const answer = await api.request(method.toUpperCase(), route.replace('{id}', id), { json });
      assert.equal(answer.status, 400, `${method} ${route} ${JSON.stringify(json)}: ${answer.text}`);
      assert.match(answer.json.error.message, /stranger|with more than/, `${method} ${route} ${JSON.stringify(json)}`);
      deepest = Math.max(deepest, JSON.stringify(json).split('{').length);
      tried++;
    }
  }
  assert.ok(tried > 40 && deepest > 2, `${tried} bodies, ${deepest} deep`);
  await api.purge(id);
});

test('an operation on a sandbox that does not exist is 404 sandbox_not_found', async () => {
  for (const { route, method, operation } of operations.filter((one) => one.route.startsWith('/v1/sandboxes/{id}'))) {
    const target = route.replaceAll('{id}', NOBODY).replaceAll(/\{[^}]+\}/g, '1');
    const json = { exec: { command: 'true' }, mkdir: { path: '/tmp/x' }, move: { from: '/tmp/x', to: '/tmp/y' } }[route.split('/').at(-1)] ?? {};
    const query = operation.parameters?.some((one) => one.in === 'query' && one.name === 'path') ? { path: '/tmp/x' } : {};
    const raw = method === 'put' ? { body: 'x', headers: { 'content-type': 'application/octet-stream' } } : operation.requestBody ? { json } : {};
    const answer = await api.request(method.toUpperCase(), target, { query, ...raw });
    assert.equal(answer.status, 404, `${method} ${route}: ${answer.text}`);
    if (method !== 'head') assert.equal(answer.json.error.code, 'sandbox_not_found', `${method} ${route}`);
  }
});

test('the document describes every field of a sandbox and of its creation', async () => {
  const created = await api.create();
  const post = operations.find(({ route, method }) => route === '/v1/sandboxes' && method === 'post').operation;
  const body = resolve(resolve(post.requestBody).content['application/json'].schema);
  for (const field of ['id', 'template', 'project', 'resources', 'env', 'ports', 'labels', 'network', 'idle_timeout_s', 'lifetime_s', 'private', 'members']) {
    assert.ok(body.properties?.[field], `the request has ${field}`);
  }
  const answer = resolve(resolve(post.responses['201']).content['application/json'].schema);
  assert.deepEqual(Object.keys(created).filter((field) => !answer.properties?.[field]), []);
});

// Words for people ----------------------------------------------------------------------------

/** Calls back for each field of a schema: its schema, and where it stands. */
function eachField(schema, at, visit) {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    visit(field, `${at}.${name}`);
    eachField(field, `${at}.${name}`, visit);
  }
  if (schema.items) eachField(schema.items, `${at}[]`, visit);
  for (const one of [...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) eachField(one, at, visit);
}

function eachFieldOfAll(visit) {
  for (const [name, schema] of Object.entries(document.components.schemas)) eachField(schema, name, visit);
  for (const { operation } of operations) {
    for (const media of Object.values(operation.requestBody?.content ?? {})) eachField(media.schema, operation.operationId, visit);
  }
}

/** One that consists of fields needs no example of its own. */
const isComposed = (field) => [field, field.items, field.items?.oneOf?.[0]].some((one) => one?.$ref || one?.properties);

test('operations have ids that read as calls, and a description', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  for (const id of ids) assert.match(id, /^[a-z]+[A-Z]?[A-Za-z]*$/);
  for (const wanted of ['createSandbox', 'listSandboxes', 'execCommand', 'readFile', 'writeFile', 'openTerminal']) assert.ok(ids.includes(wanted), wanted);
  // operations.json has no row for one whose description is its summary.
  const bare = operations.map(({ operation }) => operation).filter(({ description, summary }) => !(description?.length > 20) || description.replace(/\.$/, '') === summary);
  assert.deepEqual(bare.map(({ operationId }) => operationId), []);
});

test('every schema has a description of its own', () => {
  const schemas = Object.entries(document.components.schemas);
  assert.ok(schemas.length >= 80, String(schemas.length));
  assert.deepEqual(schemas.filter(([, { description }]) => !(description?.length > 10)).map(([name]) => name), []);
  const texts = schemas.map(([, { description }]) => description);
  assert.deepEqual(texts.filter((text, at) => texts.indexOf(text) !== at), []);
});

test('every field and every parameter has a description', () => {
  const missing = [];
  eachFieldOfAll((field, at) => { if (!field.description && !resolve(field).description) missing.push(at); });
  for (const { operation } of operations) for (const one of operation.parameters) if (!one.description) missing.push(`${operation.operationId}?${one.name}`);
  assert.deepEqual(missing, []);
});

test('every field, parameter, body and answer has an example that fits', () => {
  const missing = [];
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'examples');
  const compiled = new Map();
  const check = (schema, example, at) => {
    const text = JSON.stringify(schema).replaceAll('"#/', '"examples#/');
    const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text));
    compiled.set(text, validate);
    if (!validate(example)) missing.push(`${at}: ${JSON.stringify(example)} ${validate.errors[0].instancePath} ${validate.errors[0].message}`);
  };
  eachFieldOfAll((field, at) => {
    if (!isComposed(field) && !field.examples?.length) missing.push(`${at} has none`);
    for (const example of field.examples ?? []) check(field, example, at);
  });
  for (const { operation } of operations) {
    for (const one of operation.parameters) {
      if (one.example === undefined) missing.push(`${operation.operationId}?${one.name} has none`);
      else check(one.schema, one.example, `${operation.operationId}?${one.name}`);
    }
    for (const [at, part] of [['body', operation.requestBody], ...Object.entries(operation.responses)]) {
      for (const [type, media] of Object.entries(part?.content ?? {})) {
        const name = `${operation.operationId} ${at} ${type}`;
        if (operation.operationId === 'getOpenapi' && at === '200') continue; // it is the document
        if (media.example === undefined) missing.push(`${name} has none`);
        else if (type === 'application/json') check(media.schema, media.example, name);
      }
    }
  }
  assert.deepEqual(missing, []);
});

test('the document names servers, idempotency keys, streams of exec, and what a list holds', () => {
  assert.ok(document.servers.length > 0);
  const by = Object.fromEntries(operations.map(({ operation }) => [operation.operationId, operation]));
  assert.ok(by.createSandbox.parameters.some((one) => one.in === 'header' && one.name === 'Idempotency-Key'));
  assert.ok(by.execCommand.responses['200'].content['text/event-stream']);
  assert.equal(by.execCommand.requestBody.required, true);
  assert.equal(by.createSandbox.requestBody.required, false);
  const walk = (node, at) => {
    if (node === null || typeof node !== 'object') return;
    if (node.type === 'array') assert.ok(node.items, `${at} says what it holds`);
    for (const [key, value] of Object.entries(node)) walk(value, `${at}/${key}`);
  };
  walk(document, '#');
  const sandbox = document.components.schemas.Sandbox.properties;
  assert.ok(resolve(sandbox.ports.items).oneOf, 'a port of a sandbox is a number, or an object');
});

test('every list is an array under the name of what it holds, with next_cursor beside it', () => {
  const lists = operations.filter(({ method, operation }) => method === 'get' && /^list[A-Z]/.test(operation.operationId));
  assert.ok(lists.length > 20, `${lists.length} lists`);
  for (const { route, operation } of lists) {
    const schema = resolve(operation.responses['200'].content['application/json'].schema);
    assert.ok(Object.values(schema.properties).some((one) => [resolve(one).type].flat().includes('array')), `${route} has a list`);
    assert.ok(schema.required.includes('next_cursor'), `${route} has next_cursor`);
  }
});

test('the document says of which events each stream consists, and its examples are such events', () => {
  const judge = new Judge(document);
  const streams = operations.filter(({ operation }) => operation.responses[200]?.content?.['text/event-stream']);
  assert.ok(streams.length >= 16, `${streams.length} streams`);
  for (const { route, method, operation } of streams) {
    const media = operation.responses[200].content['text/event-stream'];
    assert.ok(Object.keys(media['x-events'] ?? {}).length > 0, `${operation.operationId} names its events`);
    const events = eventsOf(media.example);
    assert.ok(events.length > 0, operation.operationId);
    for (const event of events) judge.checkEvent(method, route.replaceAll('{id}', NOBODY).replaceAll(/\{[^}]+\}/g, '1'), event);
  }
});

test('the JSON that guides print is as the document says', () => {
  const judge = new Judge(document);
  const body = (id) => {
    const { route, method } = operations.find(({ operation }) => operation.operationId === id);
    return `/paths/${route.replaceAll('/', '~1')}/${method}/requestBody/content/application~1json/schema`;
  };
  // Each by the first of its keys.
  const places = { error: '/components/schemas/Error', requested: '/components/schemas/Dependencies', start: body('createSandbox'), backend: body('createLaunch'), mcpServers: null /* settings of clients of MCP */ };
  const seen = new Set();
  for (const name of ['README.md', ...fs.readdirSync(path.join(REPOSITORY, 'docs')).filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`)]) {
    for (const [, text] of fs.readFileSync(path.join(REPOSITORY, name), 'utf8').matchAll(/^```json\n([^]*?)^```/gm)) {
      const value = JSON.parse(text), [key] = Object.keys(value);
      assert.ok(key in places, `${name}: what is {"${key}": ...}?`);
      seen.add(key);
      if (places[key]) judge.validate(places[key], value, name);
    }
  }
  assert.deepEqual([...seen].sort(), Object.keys(places).sort());
});

test('the judge of all tests sees an answer and a request that are not as the document says', async () => {
  const judge = new Judge(document);
  const { id } = await api.create();
  const fake = (json, status = 200) => ({ status, headers: { 'content-type': 'application/json' }, body: Buffer.from('{}'), json });
  const sandbox = await api.get(id);
  const path = `/v1/sandboxes/${id}`;
  judge.check('GET', path, {}, fake(sandbox));
  assert.throws(() => judge.check('GET', path, {}, fake({ ...sandbox, status: 'gone' })), /status/);
  assert.throws(() => judge.check('GET', path, {}, fake({ ...sandbox, surprise: 1 })), /surprise/);
  assert.throws(() => judge.check('GET', path, {}, fake(sandbox, 299)), /none that the document names/);
  assert.throws(() => judge.check('PATCH', path, { json: { surprise: 1 } }, fake(sandbox)), /surprise/);
  assert.throws(() => judge.check('GET', path, { query: { surprise: 1 } }, fake(sandbox)), /surprise/);
  assert.throws(() => judge.check('POST', `${path}/exec`, {}, fake({})), /without a body/);
  assert.throws(() => judge.check('POST', `${path}/exec`, { body: '{"command": 5}', headers: { 'Content-Type': 'application/json' } }, fake({})), /command/);
  assert.throws(() => judge.check('GET', `${path}?surprise=1`, {}, fake(sandbox)), /surprise/);
  assert.throws(() => judge.check('GET', '/v1/sandboxes/Not%20a%20name', {}, fake(sandbox)), /path parameter id/);
  assert.throws(() => judge.check('PUT', `${path}/files/archive`, { query: { path: '/tmp' } }, fake({ entries: 1, bytes: 1 })), /without a body/);
  assert.throws(() => judge.check('POST', '/v1/sandboxes', { headers: { 'Idempotency-Key': 'x'.repeat(256) } }, fake(sandbox, 201)), /Idempotency-Key/);
  assert.throws(() => judge.checkHead('GET', `${path}/files/watch`, {}, { status: 200, headers: {} }), /without path/);
  assert.throws(() => judge.check('POST', `${path}/pause`, { body: 'x' }, fake(sandbox)), /has a body/);
  const output = `${path}/processes/p1/output`;
  judge.checkEvent('GET', output, { event: 'stdout', data: { data: 'x', at: sandbox.created_at } });
  assert.throws(() => judge.checkEvent('GET', output, { event: 'surprise', data: {} }), /none that the document names/);
  assert.throws(() => judge.checkEvent('GET', output, { event: 'stdout', data: { text: 'x' } }), /the event stdout of followProcessOutput is not as/);
  assert.throws(() => judge.checkEvent('GET', '/v1/events', { event: 'sandbox.running', data: { sandbox: id, status: 'running' } }), /sandbox.running of followEvents is not as/);
  const listed = { sandboxID: id, templateID: 'host', clientID: 'sandlot', envdVersion: '1', startedAt: sandbox.created_at, endAt: sandbox.created_at, cpuCount: 1, memoryMB: 1, diskSizeMB: 1, metadata: {}, state: 'running' };
  judge.check('GET', '/e2b/v2/sandboxes', { query: { limit: 1 } }, fake([listed]));
  assert.throws(() => judge.check('GET', '/e2b/v2/sandboxes', {}, fake([{ ...listed, state: 'gone' }])), /readCompatibly/);
});

finish();
