// SPDX-License-Identifier: Apache-2.0
// Writes src/api/schema.ts: the types of what the API answers, made of the schemas that the daemon's OpenAPI document
// has (src/api/schemas.json of the daemon). It runs before each build, so the two are never apart; tsc (npm run check)
// says where the console asks for what is no longer there.
import fs from 'node:fs';

const schemas = JSON.parse(fs.readFileSync(new URL('../../src/api/schemas.json', import.meta.url), 'utf8'));
const PRIMITIVES = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null', array: 'unknown[]', object: 'Record<string, unknown>' };

const isName = (key) => /^[A-Za-z_]\w*$/.test(key);
const comment = (text, indent) => (text ? `${indent}/** ${text.replaceAll('*/', '* /').replaceAll('\n', ' ')} */\n` : '');
const listOf = (type) => (/[|&]/.test(type) ? `(${type})[]` : `${type}[]`);

/** The TypeScript of a schema; indent is that of the line it stands on. */
function typeOf(schema, indent = '') {
  if (!schema || Object.keys(schema).length === 0) return 'unknown';
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const members = schema.oneOf ?? schema.anyOf;
  const parts = members?.map((member) => typeOf({ ...without(schema), ...member }, indent)) ?? schema.allOf?.map((member) => typeOf(member, indent)) ?? [];
  if (members) return parts.join(' | ');
  if (schema.properties || schema.allOf) {
    if (schema.properties) parts.push(objectOf(schema, indent));
    const whole = parts.join(' & ');
    return [].concat(schema.type ?? []).includes('null') ? `${whole} | null` : whole;
  }
  const types = [].concat(schema.type ?? []);
  return types.map((type) => {
    if (type === 'array' && schema.items) return listOf(typeOf(schema.items, indent));
    if (type === 'object' && typeof schema.additionalProperties === 'object') return `Record<string, ${typeOf(schema.additionalProperties, indent)}>`;
    return PRIMITIVES[type];
  }).join(' | ') || 'unknown';
}

/** What alternatives of a schema share with it. */
function without({ oneOf, anyOf, description, ...rest }) {
  return rest;
}

function objectOf(schema, indent) {
  const inner = `${indent}  `;
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(([key, value]) =>
    `${comment(value.description, inner)}${inner}${isName(key) ? key : JSON.stringify(key)}${required.has(key) ? '' : '?'}: ${typeOf(value, inner)};\n`);
  return `{\n${lines.join('')}${indent}}`;
}

const out = ['// Made by scripts/api_types.mjs of the daemon\'s schemas: do not edit.\n'];
for (const [name, schema] of Object.entries(schemas)) out.push(`${comment(schema.description, '')}export type ${name} = ${typeOf(schema)};\n`);
const target = new URL('../src/api/schema.ts', import.meta.url);
const text = out.join('\n');
fs.mkdirSync(new URL('.', target), { recursive: true });
if (!fs.existsSync(target) || fs.readFileSync(target, 'utf8') !== text) fs.writeFileSync(target, text);
