// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document as a judge: every answer of the daemon is as the document says, and so is every
// request that the daemon accepted. The client of the tests asks it (client.mjs); instance.mjs gives it the document.
import assert from 'node:assert/strict';
import Ajv from 'ajv/dist/2020.js';

const KEY = 'document';
const FORMATS = { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/ };

let judge = null;

/** Takes the document that all requests of this process are measured by. */
export function load(document) {
  judge ??= new Judge(document);
}

/** Fails if an answer is not what the document says, or a request that was accepted should not have been. */
export function check(method, path, request, answer) {
  judge?.check(method, path, request, answer);
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

export class Judge {
  constructor(document) {
    this.document = document;
    this.ajv = new Ajv({ strict: false, formats: FORMATS, validateFormats: true });
    this.ajv.addSchema({ ...document, components: { ...document.components, schemas: closeSchemas(document.components.schemas) } }, KEY);
    this.operations = Object.entries(document.paths).flatMap(([route, item]) =>
      Object.entries(item).map(([method, operation]) => ({ route, method, operation, pattern: new RegExp(`^${route.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`) })));
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
    const found = this.find(method, path.split('?')[0]);
    if (!found) return; // what is no route is refused by the daemon; that is for the tests to say
    if (answer.status < 400) this.checkRequest(found, request);
    this.checkAnswer(found, answer);
  }

  checkRequest({ route, method, operation }, { json, query = {}, body }) {
    const name = `the request ${operation.operationId}`;
    for (const [parameter, value] of Object.entries(query).filter(([, one]) => one !== undefined)) {
      const index = operation.parameters.findIndex((one) => one.in === 'query' && one.name === parameter);
      assert.ok(index >= 0, `${name} has the parameter ${parameter}, which the document does not name`);
      const { type } = operation.parameters[index].schema;
      const typed = type === 'integer' ? Number(value) : type === 'boolean' ? { true: true, false: false }[value] : String(value);
      this.validate(pointer('paths', route, method, 'parameters', String(index), 'schema'), typed, `${name}: parameter ${parameter}`);
    }
    for (const parameter of operation.parameters.filter((one) => one.required && one.in === 'query')) {
      assert.ok(query[parameter.name] !== undefined, `${name} was accepted without ${parameter.name}`);
    }
    if (json !== undefined) {
      assert.ok(operation.requestBody, `${name} has a body`);
      this.validate(pointer('paths', route, method, 'requestBody', 'content', 'application/json', 'schema'), json, name);
    } else if (body === undefined) {
      assert.ok(!operation.requestBody?.required, `${name} was accepted without a body`);
    }
  }

  checkAnswer({ route, method, operation }, answer) {
    const name = `the answer ${answer.status} of ${operation.operationId}`;
    const status = operation.responses[answer.status] ? String(answer.status) : 'default';
    const { content } = operation.responses[status];
    assert.ok(status !== 'default' || answer.status >= 400, `${name} is none that the document names`);
    if (method === 'head' || answer.body.length === 0) return;
    const type = String(answer.headers['content-type']).split(';')[0];
    assert.ok(content?.[type] ?? content?.['*/*'], `${name} is ${type}, which the document does not name`);
    if (type === 'application/json' && content[type]?.schema) {
      this.validate(pointer('paths', route, method, 'responses', status, 'content', type, 'schema'), answer.json, name);
    }
  }
}
