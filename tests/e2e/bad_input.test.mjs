// SPDX-License-Identifier: Apache-2.0
// Bad input of every kind: it is refused with 400, names the field, and changes nothing.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import * as proc from './lib/proc.mjs';
import { suite } from './lib/suite.mjs';
import { ulid } from './lib/values.mjs';

const { instance, api, finish } = await suite('bad_input');
const sandbox = await api.create({ labels: { original: 'yes' }, ports: [3000] });

/** All that bad input could have changed. */
async function world() {
  const rows = (await api.all()).map(({ last_active_at: _, ...rest }) => rest);
  return {
    rows,
    processes: instance.sandboxInits().length,
    directories: ['sandboxes', 'workspaces'].map((dir) => proc.stored(path.join(instance.dataDir, dir))),
  };
}

const before = await world();

async function unchanged(what) {
  assert.deepEqual(await world(), before, `${what} changed something`);
}

/**
 * Sends each wrong value with call(value); all must be 400 with the field in the message (a number
 * beyond 64 bits may already be refused as JSON). Reports every value that was not.
 */
async function allRefused(field, values, call) {
  const problems = [];
  for (const value of values) {
    const answer = await call(value);
    const shown = `${JSON.stringify(value).slice(0, 60)}: ${answer.status} ${answer.text.slice(0, 160)}`;
    const wanted = field === 'template' && typeof value === 'string' ? [400, 404] : [400]; // a well-formed name may also be "not found"
    if (answer.status === 201) await api.purge(answer.json.id);
    if (!wanted.includes(answer.status)) problems.push(shown);
    else if (value !== 2 ** 63 && !assertError(answer, wanted).message.includes(field)) problems.push(`not named: ${shown}`);
  }
  assert.deepEqual(problems, [], field);
}

const post = (route, body, type = 'application/json') => api.request('POST', route, { body, headers: { 'content-type': type } });
const EXEC = `/v1/sandboxes/${sandbox.id}/exec`;

// Bodies that are no JSON object --------------------------------------------------------------

const deep = (open, close, depth) => open.repeat(depth) + close.repeat(depth);
const NOT_AN_OBJECT = {
  'an array': '[]', 'a string': '"x"', 'a number': '5', 'null': 'null', 'true': 'true', 'half an object': '{', 'two objects': '{}{}', 'text after the object': '{} x',
  'a comma too much': '{"labels":{},}', 'single quotes': "{'labels':{}}", 'a comment': '{/* */}', 'no quotes': '{labels:{}}', 'NaN': '{"idle_timeout_s":NaN}', 'Infinity': '{"idle_timeout_s":Infinity}',
  'a number beyond a double': '{"idle_timeout_s":1e999}', 'a hex number': '{"idle_timeout_s":0x10}', 'a leading zero': '{"idle_timeout_s":010}', 'a plus sign': '{"idle_timeout_s":+5}',
  'a byte order mark': '\ufeff{}', 'only blanks': '   ', 'a lone surrogate': '{"labels":{"a":"\\ud800"}}', 'a NUL escape': '{"labels":{"a":"x\\u0000y"}}', 'a NUL in a key': '{"labels":{"a\\u0000b":"x"}}',
  'a raw control character': '{"labels":{"a":"x\ny"}}', 'a bad escape': '{"labels":{"a":"\\x41"}}',
  'duplicate keys': '{"private":true,"private":false}', 'duplicate keys below': '{"labels":{"a":"1","a":"2"}}',
  'a deep array': `{"ports":${deep('[', ']', 100_000)}}`, 'deep objects': `{"labels":${deep('{"a":', '}', 50_000).replace('}', '1}')}}`, 'depth 200': `{"ports":${deep('[', ']', 200)}}`,
};

for (const [name, body] of Object.entries(NOT_AN_OBJECT)) {
  test(`${name} as a body is 400 in create, ensure, exec and patch`, async () => {
    for (const [method, route] of [['POST', '/v1/sandboxes'], ['POST', '/v1/sandboxes/ensure'], ['POST', EXEC], ['PATCH', `/v1/sandboxes/${sandbox.id}`]]) {
      assertError(await api.request(method, route, { body, headers: { 'content-type': 'application/json' } }), 400);
    }
    await unchanged(name);
  });
}

test('bytes that are not UTF-8 are 400', async () => {
  for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc3], [0x80]]) {
    const body = Buffer.concat([Buffer.from('{"labels":{"a":"'), Buffer.from(bytes), Buffer.from('"}}')]);
    assertError(await post('/v1/sandboxes', body), 400);
    assertError(await post(EXEC, Buffer.concat([Buffer.from('{"command":"'), Buffer.from(bytes), Buffer.from('"}')])), 400);
  }
  await unchanged('bad UTF-8');
});

test('UTF-16 is 400 or 415', async () => {
  assertError(await post('/v1/sandboxes', Buffer.from('{}', 'utf16le')), [400, 415]);
  assertError(await post('/v1/sandboxes', '{}', 'application/json; charset=utf-16'), [400, 415]);
  await unchanged('UTF-16');
});

// Fields of create ----------------------------------------------------------------------------

const everyType = { 'a string': 'x', 'a number': 5, 'a fraction': 0.5, 'true': true, 'an array': [], 'an object': {}, 'an array of objects': [{}] };
const without = (...names) => Object.entries(everyType).filter(([name]) => !names.includes(name)).map(([, value]) => value);

const CREATE = {
  id: [...without('a string'), '', 'x', 'A'.repeat(26), ulid().toUpperCase(), `${ulid()}x`, '../'.repeat(8) + 'ab', `${ulid().slice(0, 25)}\n`, 'x'.repeat(100_000)],
  template: [...without('a string'), '', 'no-such-template', '../host', 'host\n', '--privileged', 'a;b', 'x'.repeat(100_000)],
  project: [...without('a string'), '', 'x'.repeat(10_000), 'a\nb'],
  resources: [...without('an object'), 'lots', null],
  env: [...without('an object'), { A: 1 }, { A: null }, { A: ['x'] }, { '': 'x' }, { 'A=B': 'x' }, { 'A\nB': 'x' }, { 'A B': 'x' }],
  ports: [...without('an array'), [0], [65536], [-1], [1.5], ['3000'], ['02280'], ['+80'], [null], [true], [[3000]], Array.from({ length: 2000 }, (_, i) => i + 1)],
  labels: [...without('an object'), { a: 1 }, { a: null }, { a: {} }, { '': 'x' }, { 'a\nb': 'x' }, { a: 'x'.repeat(100_000) }, Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${i}`, 'v']))],
  network: [...without('an object'), { mode: 'everything' }, { mode: 5 }, { mode: null }, { mode: 'none', bogus: 1 }, { mode: 'allowlist', allow: 'example.com' }, { mode: 'allowlist', allow: [5] }, { mode: 'allowlist', allow: [''] }, { mode: 'allowlist', allow: ['bad host!'] }],
  idle_timeout_s: [...without('a number'), '60', -1, 1.5, 1e18, 2 ** 63],
  lifetime_s: [...without('a number'), '60', -1, 1.5, 1e18, 2 ** 63],
  private: [...without('true'), 'true', 0, 1, null],
  members: [...without('an array', 'an array of objects'), {}, 'x', [5], ['x'], [{ bogus: 1 }]],
};

for (const [field, values] of Object.entries(CREATE)) {
  test(`wrong values of ${field} are 400 and name it`, async () => {
    await allRefused(field, values, (value) => api.request('POST', '/v1/sandboxes', { json: { [field]: value } }));
    await unchanged(field);
  });
}

test('a refusal says which entry was wrong, and what it may be', async () => {
  const told = async (json) => assertError(await api.request('POST', '/v1/sandboxes', { json }), 400);
  for (const [json, message] of [
    [{ network: { mode: 'everything' } }, 'field network.mode must be none, allowlist or internet: "everything"'],
    [{ network: { allow: ['ok.example', 'https://index.example/simple'] } }, 'field network.allow has a URL: leave out https:// and the path: "https://index.example/simple"'],
    [{ network: { allow: ['ok.example', 'bad host!'] } }, 'field network.allow has an entry that is no name, address or network, with or without :port: "bad host!"'],
    [{ env: { GOOD: 'x', '1BAD': 'told to nobody' } }, 'field env has a name that is not letters, digits and _ (up to 128, no digit first): "1BAD"'],
    [{ labels: { 'a b': 'x' } }, 'field labels has a key that is not 1 to 63 of a-z A-Z 0-9 . _ / -: "a b"'],
    [{ resources: { cpu: 2000 } }, 'field resources.cpu must be from 0.01 to 1024'],
    [{ resources: { cpu: 0.001 } }, 'field resources.cpu must be from 0.01 to 1024'],
    [{ resources: { memory: '2Pi' } }, 'field resources.memory must be from 16 MiB to 1 PiB'],
    [{ resources: { disk: '2Pi' } }, 'field resources.disk must be from 1 MiB to 1 PiB'],
    [{ network: { mode: 'none', allow: ['ok.example'] } }, 'field network.allow does not go with the mode none, which reaches nothing'],
  ]) assert.equal((await told(json)).message, message);
  assert.match((await told({ name: 'Web App' })).message, /^field name must be like "web" .*: "Web App"$/);
  assert.equal(assertError(await api.request('POST', '/v1/sandboxs/x'), 404).message, 'no such route: POST /v1/sandboxs/x');
  const cut = (await told({ env: { [`a${'é'.repeat(80)}`]: 'x' } })).message;
  assert.ok(cut.endsWith('é"...'), cut);
});

const RESOURCES = {
  cpu: ['1', 'x', 0, -1, 1e308, null, true, [], {}, 0.00001],
  memory: [0, -1, 1, '', '0', '-1Gi', '1gb', '1GB', 'Gi', '1.2.3Gi', ' 1Gi', '1Gi ', '+1Gi', '0x10Mi', '1KiB', 2 ** 63, '9223372036854775808', '18446744073709551616', '99999999999Gi', '1Ki', null, true, [], {}, 1.5],
  disk: [0, -1, '', 'x', 2 ** 63, '99999999999Gi', null, true, [], {}],
  pids: [0, -1, 1.5, '64', null, true, [], {}, 2 ** 31, 2 ** 63],
  bogus: [1],
};

for (const [field, values] of Object.entries(RESOURCES)) {
  test(`wrong values of resources.${field} are 400 and name it`, async () => {
    await allRefused(field, values, (value) => api.request('POST', '/v1/sandboxes', { json: { resources: { [field]: value } } }));
    await unchanged(`resources.${field}`);
  });
}

test('unknown fields are 400 and named, also those that only the daemon may set', async () => {
  for (const field of ['bogus', 'owner', 'driver', 'privileged', 'hostPath', 'status', 'created_at', 'organization', 'user', 'Id', 'ID', ' id', 'image', '__proto__', 'a'.repeat(5000)]) {
    for (const route of ['/v1/sandboxes', '/v1/sandboxes/ensure']) {
      const body = `{${JSON.stringify(field)}:"x"}`;
      const error = assertError(await post(route, body), 400);
      if (field.length < 100) assert.ok(error.message.includes(field), `${field}: ${error.message}`);
    }
  }
  await unchanged('unknown fields');
});

test('of an unknown field that is nearly one, or is one of resources, it is said which was meant', async () => {
  for (const [body, meant] of [['{"memory":"512Mi"}', 'resources.memory'], ['{"lables":{}}', 'labels'], ['{"resources":{"memroy":1}}', 'resources.memory']]) {
    assert.match(assertError(await post('/v1/sandboxes', body), 400).remediation, new RegExp(`^did you mean ${meant.replace('.', '\\.')}\\? `), body);
  }
});

test('an allowlist takes names, wildcards, addresses and networks, and nothing that cannot be one', async () => {
  for (const entry of ['example.com', '*.example.com', '10.1.2.3', '10.0.0.0/8', '2001:db8::/32', 'example.com:443']) {
    const answer = await api.request('POST', '/v1/sandboxes', { json: { network: { mode: 'allowlist', allow: [entry] } } });
    assert.equal(answer.status, 201, `${entry}: ${answer.text}`);
    await api.purge(answer.json.id);
  }
  const wrong = ['10.0.0.0/99', '10.0.0.0/-1', '300.1.1.1/8', 'a..b', '-x.com', 'x.com:0', 'x.com:65536', '*.*', 'http://x.com', 'x.com/path', 'a'.repeat(300)];
  await allRefused('network', wrong, (entry) => api.request('POST', '/v1/sandboxes', { json: { network: { mode: 'allowlist', allow: [entry] } } }));
  await unchanged('allowlists');
});

test('one bad field among good ones spoils the whole', async () => {
  const id = ulid();
  assertError(await api.request('POST', '/v1/sandboxes', { json: { id, labels: { a: 'b' }, ports: [3000, 65536] } }), 400);
  assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404);
  await unchanged('a mixture');
});

test('NUL, newline and equals sign cannot enter the environment of a sandbox', async () => {
  for (const body of ['{"env":{"A\\u0000":"x"}}', '{"env":{"A":"x\\u0000y"}}']) assertError(await post('/v1/sandboxes', body), 400, /NUL/);
  await unchanged('NUL in env');
});

test('an environment or body that is too large is 400 or 413', async () => {
  assertError(await api.request('POST', '/v1/sandboxes', { json: { env: { A: 'x'.repeat(1024 * 1024) } } }), [400, 413]);
  assertError(await api.request('POST', '/v1/sandboxes', { json: { env: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`K${i}`, 'v'])) } }), [400, 413]);
  await unchanged('a large environment');
});

test('odd but right values are taken', async () => {
  const made = [];
  for (const body of [{ labels: { a: '' } }, { labels: {} }, { env: {} }, { ports: [] }, { ports: [1, 65535] }, { members: [] }, { resources: {} }, { resources: { cpu: 0.1 } }, { resources: { memory: '64Mi' } }, { network: { mode: 'none' } }, { env: { _x1: 'ok', PATH: '/usr/bin:/bin' } }, { private: false }, { lifetime_s: null }, { labels: { 'a.b-c_d': '☃ 😀 <img onerror=x>' } }]) {
    const answer = await api.request('POST', '/v1/sandboxes', { json: body });
    assert.equal(answer.status, 201, `${JSON.stringify(body)}: ${answer.text}`);
    made.push(answer.json.id);
  }
  for (const id of made) await api.purge(id);
  await unchanged('good values, purged');
});

// Exec ----------------------------------------------------------------------------------------

const EXEC_FIELDS = {
  command: [...without('a string'), null],
  argv: [...without('an array'), [], [5], [null], [['x']], ['true', 5], Array.from({ length: 100_000 }, () => 'x')],
  cwd: [...without('a string'), '', 'relative', './x', '../x', `/${'a'.repeat(5000)}`, '/no/such/directory'],
  env: [...without('an object'), { A: 1 }, { A: null }, { '': 'x' }, { 'A=B': 'x' }, { 'A\nB': 'x' }, [['A', 'B']]],
  user: [...without('a string', 'a number'), '', ' ', 'no such user', '-1', '4294967296', '0x0', 'root\n', ' 0', '00'],
  stdin: [5, true, [], {}],
  timeout_ms: [...without('a number'), '100', -1, 1.5, 1e18, 2 ** 63],
};

for (const [field, values] of Object.entries(EXEC_FIELDS)) {
  test(`wrong values of ${field} in exec are 400 and name it, and nothing runs`, async () => {
    const command = field === 'argv' ? {} : { command: 'touch /workspace/outputs/ran' };
    await allRefused(field, values, (value) => api.tryExec(sandbox.id, { ...command, [field]: value }));
    assert.equal(await api.exists(sandbox.id, '/workspace/outputs/ran'), false);
    await unchanged(field);
  });
}

test('unknown fields of exec are 400', async () => {
  for (const field of ['bogus', 'cmd', 'args', 'Command', 'privileged', 'uid']) {
    const answer = await api.tryExec(sandbox.id, { command: 'touch /workspace/outputs/ran', [field]: 'x' });
    assert.ok(assertError(answer, 400).message.includes(field));
  }
  assert.equal(await api.exists(sandbox.id, '/workspace/outputs/ran'), false);
});

test('a NUL in command, argv, cwd, env or user is 400', async () => {
  for (const body of ['{"command":"touch /workspace/outputs/ran\\u0000"}', '{"argv":["touch","/workspace/outputs/ran\\u0000x"]}', '{"command":"true","cwd":"/tmp\\u0000"}', '{"command":"true","env":{"A":"\\u0000"}}', '{"command":"true","user":"root\\u0000"}']) {
    assertError(await post(EXEC, body), 400);
  }
  assert.equal(await api.exists(sandbox.id, '/workspace/outputs/ran'), false);
});

test('an exec without a body is 400', async () => {
  assertError(await api.request('POST', EXEC), 400);
});

// Patch and the verbs -------------------------------------------------------------------------

test('wrong values in PATCH are 400, name the field and change nothing', async () => {
  for (const field of ['ports', 'labels', 'network', 'idle_timeout_s', 'lifetime_s', 'private']) {
    await allRefused(field, CREATE[field], (value) => api.patch(sandbox.id, { [field]: value }));
  }
  await unchanged('PATCH');
});

test('unknown and fixed fields in PATCH are 400', async () => {
  for (const field of ['bogus', 'id', 'template', 'owner', 'status', 'driver', 'created_at', 'termination', 'previews']) {
    assert.ok(assertError(await api.patch(sandbox.id, { [field]: 'x' }), 400).message.includes(field), field);
  }
  await unchanged('fixed fields');
});

test('a body that a life cycle call does not know is 400', async () => {
  for (const verb of ['start', 'stop', 'pause', 'resume', 'reset', 'purge']) {
    const { id } = await api.create();
    assertError(await api.request('POST', `/v1/sandboxes/${id}/${verb}`, { json: { bogus: true } }), 400);
    assert.equal((await api.get(id)).status, 'running', verb);
    await api.purge(id);
  }
});

test('wrong bodies of mkdir and move are 400', async () => {
  for (const body of [{}, { path: 5 }, { path: null }, { path: [] }, { path: '/tmp/x', bogus: 1 }]) {
    assertError(await api.request('POST', `/v1/sandboxes/${sandbox.id}/files/mkdir`, { json: body }), 400, /path|bogus/);
  }
  for (const body of [{}, { from: '/tmp/x' }, { to: '/tmp/x' }, { from: 1, to: 2 }, { from: '/tmp/x', to: '/tmp/y', bogus: 1 }]) {
    assertError(await api.request('POST', `/v1/sandboxes/${sandbox.id}/files/move`, { json: body }), 400, /from|to|bogus/);
  }
  assert.equal(await api.exists(sandbox.id, '/tmp/x'), false);
});

test('repeated and unreadable query parameters are 400', async () => {
  const files = `/v1/sandboxes/${sandbox.id}/files`;
  for (const route of [`${files}?path=/etc/passwd&path=/etc/group`, `${files}?path=/etc/passwd%00`, `/v1/sandboxes?limit=1&limit=2`, `/v1/sandboxes?status=%ff`]) {
    assertError(await api.request('GET', route), 400);
  }
});

test('unknown query parameters are 400 and named, on every route', async () => {
  const { paths } = (await api.request('GET', '/openapi.json')).json;
  const problems = [];
  for (const [route, methods] of Object.entries(paths)) {
    // The query of a function is a part of its event, and that of a call of E2B is of E2B's protocol.
    if (route.endsWith('/invoke') || route.startsWith('/e2b/')) continue;
    const target = route.replace('{id}', sandbox.id).replace('{process}', 'p1').replace(/\{\w+\}/g, 'x');
    for (const method of Object.keys(methods).filter((name) => ['get', 'put', 'post', 'patch', 'delete'].includes(name))) {
      const answer = await api.request(method.toUpperCase(), `${target}?bogus=1`);
      if (answer.status !== 400 || answer.json.error.code !== 'unknown_parameter' || !answer.json.error.message.includes('bogus')) problems.push(`${method} ${target}: ${answer.status} ${answer.text}`);
    }
  }
  assert.deepEqual(problems, []);
  await unchanged('unknown query parameters');
});

test('text that tries to be more than text is given back as data', async () => {
  const label = '<img src=x onerror=alert(1)>\u001b[31m"\\';
  const { id, labels } = await api.create({ labels: { x: label.replace('\u001b', '') } });
  assert.equal(labels.x, label.replace('\u001b', ''));
  await api.purge(id);
  const answer = await api.request('GET', `/v1/sandboxes/${encodeURIComponent('<script>')}`);
  assert.ok([400, 404].includes(answer.status));
  assert.equal(answer.headers['x-content-type-options'], 'nosniff');
});

finish();
