// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document as a judge: every answer of the daemon is as the document says, and so is every
// request that the daemon accepted. The client of the tests asks it (client.mjs); instance.mjs gives it the document.
import assert from 'node:assert/strict';
import Ajv from 'ajv/dist/2020.js';

const KEY = 'document';
/** Operations whose body is whatever a function, a model or a client of E2B wants, and routes with a query of that kind. */
const TAKES_ANY = new Set(['invokeFunction', 'callMcp', 'callCompatibly']);
const FREE_QUERY = /^\/e2b\/|\/invoke$/;
const FORMATS = { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/ };

let judge = null;

/** Takes the document that all requests of this process are measured by: `read` gives it, once. */
export async function load(read) {
  judge ??= new Judge(await read());
}

/** Fails if the beginning of an answer is not what the document says, or a request that was accepted should not have been. */
export function checkHead(method, path, request, answer) {
  judge?.checkHead(method, path, request, answer);
}

/** Fails if the body of an answer is not what the document says. */
export function checkBody(method, path, answer) {
  judge?.checkBody(method, path, answer);
}

/** Fails if an event of a stream is not what the document says. */
export function checkEvent(method, path, event) {
  judge?.checkEvent(method, path, event);
}

/** The events of a text/event-stream, which may end inside one. */
export function eventsOf(text) {
  return text.split('\n\n').slice(0, -1).map((block) => {
    const lines = block.split('\n').filter((line) => line && !line.startsWith(':')).map((line) => /^([a-z]+): ?(.*)$/s.exec(line) ?? assert.fail(`not an SSE line: ${line}`));
    const data = lines.filter(([, name]) => name === 'data').map(([, , value]) => value);
    const event = Object.fromEntries(lines.filter(([, name]) => name !== 'data').map(([, name, value]) => [name, value]));
    return data.length > 0 ? { ...event, data: JSON.parse(data.join('\n')) } : null;
  }).filter(Boolean);
}

const pointer = (...parts) => parts.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** In answers the document is taken at its word: what it does not name is not there. */
function closeObjects(schema) {
  if (Array.isArray(schema)) return schema.map(closeObjects);
  if (schema === null || typeof schema !== 'object') return schema;
  const closed = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closeObjects(value)]));
  if (typeof closed.properties === 'object' && closed.type && closed.additionalProperties === undefined) closed.unevaluatedProperties ??= false;
  return closed;
}

/** All schemas of answers, closed but for those of which another is made. */
function closeSchemas(schemas) {
  const bases = new Set(Object.values(schemas).flatMap((schema) => schema.allOf ?? []).map((base) => base.$ref?.split('/').at(-1)));
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, bases.has(name) ? schema : closeObjects(schema)]));
}

/** What a call of E2B's protocol is, follows with all its slashes; other parts of a path end at one. */
const patternOf = (route) => new RegExp(`^${route.replaceAll('.', '\\.').replaceAll('{call}', '(?<call>.+)').replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);

const isEmptyObject = (body) => String(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)).trim() === '{}';

/** A value of a query, a path or a header as the schema's type. */
const typed = ({ type }, value) => (type === 'integer' ? Number(value) : type === 'boolean' ? { true: true, false: false }[value] : String(value));

/** Whether a media type of the document takes that of a body. */
const takes = (documented, type) => documented === '*/*' || documented === type || documented === 'application/octet-stream';

export class Judge {
  constructor(document) {
    this.document = document;
    this.ajv = new Ajv({ strict: false, formats: FORMATS, validateFormats: true });
    this.ajv.addSchema({ ...document, components: { ...document.components, schemas: closeSchemas(document.components.schemas) } }, KEY);
    this.operations = Object.entries(document.paths).flatMap(([route, item]) =>
      Object.entries(item).map(([method, operation]) => ({ route, method, operation, pattern: patternOf(route) })));
    this.found = new Map();
    this.compiled = new Map();
  }

  find(method, path) {
    const key = `${method} ${path}`;
    if (!this.found.has(key)) {
      if (this.found.size > 10_000) this.found.clear();
      const fits = (one) => one.method === method.toLowerCase() && one.pattern.test(path);
      // /v1/sandboxes/ensure is also of the form /v1/sandboxes/{id}: the route with fewer variable parts is meant.
      const parts = (one) => one.route.split('{').length;
      this.found.set(key, this.operations.filter(fits).sort((a, b) => parts(a) - parts(b))[0] ?? null);
    }
    return this.found.get(key);
  }

  validate(place, value, what) {
    if (!this.compiled.has(place)) this.compiled.set(place, this.ajv.compile({ $ref: `${KEY}#${place}` }));
    const validator = this.compiled.get(place);
    if (validator(value)) return;
    const [first] = validator.errors;
    assert.fail(`${what} is not as the document says: ${first.instancePath || '/'} ${first.message} ${JSON.stringify(first.params)}: ${JSON.stringify(value).slice(0, 600)}`);
  }

  check(method, path, request, answer) {
    this.checkHead(method, path, request, answer);
    this.checkBody(method, path, answer);
  }

  checkHead(method, path, request, answer) {
    const [target, text] = path.split('?');
    const found = this.find(method, target);
    if (!found) return; // what is no route is refused by the daemon; that is for the tests to say
    const query = { ...Object.fromEntries(new URLSearchParams(text)), ...request.query };
    if (answer.status < 400) this.checkRequest(found, target, { ...request, query });
    this.checkStatus(found, answer);
  }

  /** What an operation says of a parameter: its schema's place in the document, by which values are judged. */
  checkParameters({ route, method, operation }, where, values, name) {
    operation.parameters.forEach((parameter, index) => {
      const value = values[where === 'header' ? parameter.name.toLowerCase() : parameter.name];
      if (parameter.in !== where) return;
      if (value === undefined) return assert.ok(!parameter.required, `${name} was accepted without ${parameter.name}`);
      // Bytes that are no text are the file's name, not the document's.
      if (!Buffer.isBuffer(value)) this.validate(pointer('paths', route, method, 'parameters', String(index), 'schema'), typed(parameter.schema, value), `${name}: ${where} parameter ${parameter.name}`);
    });
  }

  checkRequest(found, target, { json, query = {}, body, headers = {} }) {
    const { route, method, operation } = found;
    const name = `the request ${operation.operationId}`;
    const sent = Object.fromEntries(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]));
    this.checkParameters(found, 'path', Object.fromEntries(Object.entries(found.pattern.exec(target).groups ?? {}).map(([part, value]) => [part, decodeURIComponent(value)])), name);
    this.checkParameters(found, 'header', sent, name);
    this.checkParameters(found, 'query', query, name);
    if (!FREE_QUERY.test(route)) {
      const known = operation.parameters.filter((one) => one.in === 'query').map((one) => one.name);
      for (const parameter of Object.keys(query)) assert.ok(query[parameter] === undefined || known.includes(parameter), `${name} has the parameter ${parameter}, which the document does not name`);
    }
    if (json === undefined && body === undefined) assert.ok(!operation.requestBody?.required, `${name} was accepted without a body`);
    else this.checkRequestBody(found, json, body, sent['content-type'], name);
  }

  checkRequestBody({ route, method, operation }, json, body, header, name) {
    const known = Object.keys(operation.requestBody?.content ?? {});
    const type = json === undefined ? String(header ?? known[0]).split(';')[0].toLowerCase() : 'application/json';
    const isText = typeof body === 'string' || Buffer.isBuffer(body);
    if ((isText && body.length === 0) || (known.length === 0 && isEmptyObject(json ?? body))) return; // both say nothing
    assert.ok(known.length > 0, `${name} has a body, which the document does not name`);
    assert.ok(known.some((one) => takes(one, type)) || TAKES_ANY.has(operation.operationId), `${name} has a body of the type ${type}, which the document does not name`);
    if (!known.includes('application/json') || (json === undefined && !isText)) return;
    // A function takes any type of body with format=http.
    if (json === undefined && TAKES_ANY.has(operation.operationId)) return;
    this.validate(pointer('paths', route, method, 'requestBody', 'content', 'application/json', 'schema'), json === undefined ? JSON.parse(body) : json, name);
  }

  checkStatus({ operation }, answer) {
    assert.ok(operation.responses[answer.status] || answer.status >= 400, `the answer ${answer.status} of ${operation.operationId} is none that the document names`);
  }

  checkBody(verb, path, answer) {
    const found = this.find(verb, path.split('?')[0]);
    if (!found) return;
    const { route, method, operation } = found;
    const name = `the answer ${answer.status} of ${operation.operationId}`;
    const status = operation.responses[answer.status] ? String(answer.status) : 'default';
    const { content } = operation.responses[status];
    if (method === 'head' || answer.body.length === 0) return;
    const type = String(answer.headers['content-type']).split(';')[0];
    if (operation.operationId === 'invokeFunction' && !content?.[type]) return; // a function says what type its answer has
    assert.ok(content?.[type] ?? content?.['*/*'], `${name} is ${type}, which the document does not name`);
    if (type === 'application/json' && content[type]?.schema) {
      this.validate(pointer('paths', route, method, 'responses', status, 'content', type, 'schema'), answer.json, name);
    }
    if (type === 'text/event-stream') for (const event of eventsOf(String(answer.body))) this.checkEvent(verb, path, event);
  }

  /** By the name of an event, or by its topic: `port.*` is what the document says of `port.opened`, if that is not named. */
  checkEvent(verb, path, event) {
    const found = this.find(verb, path.split('?')[0]);
    if (!found) return;
    const { route, method, operation } = found;
    const events = operation.responses[200].content['text/event-stream']?.['x-events'] ?? assert.fail(`${operation.operationId}: the document names no events`);
    const key = [event.event, event.event.replace(/\..*/, '.*')].find((one) => one in events);
    assert.ok(key, `the event ${event.event} of ${operation.operationId} is none that the document names`);
    this.validate(pointer('paths', route, method, 'responses', '200', 'content', 'text/event-stream', 'x-events', key), event.data, `the event ${event.event} of ${operation.operationId}`);
  }
}
