// SPDX-License-Identifier: Apache-2.0
// Signed tokens of a configured issuer, against the real daemon. What is refused in detail is in
// tests/unit/test_jwt.c; here it is proven that the daemon asks, and what it does with the answer.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { assertError, raw } from './lib/client.mjs';
import { apiOf } from './lib/owners.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { within } from './lib/wait.mjs';

const { instance, api: admin, finish } = await suite('jwt');
const ISSUER = 'https://id.example';
const AUDIENCE = 'sandlot';
const keysFile = path.join(instance.home, 'keys.json');

const secret = crypto.randomBytes(32);
const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
const ed = crypto.generateKeyPairSync('ed25519');
const JWKS = {
  keys: [
    { kty: 'oct', kid: 'h', k: secret.toString('base64url') },
    { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'r', alg: 'RS256', use: 'sig' },
    { ...ed.publicKey.export({ format: 'jwk' }), kid: 'e' },
  ],
};
const SIGN = {
  HS256: (text) => crypto.createHmac('sha256', secret).update(text).digest(),
  RS256: (text) => crypto.sign('sha256', text, rsa.privateKey),
  EdDSA: (text) => crypto.sign(null, text, ed.privateKey),
  none: () => Buffer.alloc(0),
};
const part = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const now = () => Math.floor(Date.now() / 1000);
const claims = (more = {}) => ({ iss: ISSUER, aud: AUDIENCE, exp: now() + 600, org: 'acme', sub: 'alice', scope: 'openid read run files manage', ...more });

function sign(payload, header = { alg: 'HS256', kid: 'h' }, how = SIGN[header.alg]) {
  const text = `${part(header)}.${part(payload)}`;
  return `${text}.${how(Buffer.from(text)).toString('base64url')}`;
}

/** As the daemon's owner would: root, or the ordinary user who starts it. */
function writeKeys(text, mode) {
  fs.writeFileSync(keysFile, text);
  fs.chmodSync(keysFile, mode);
  if (instance.account) fs.chownSync(keysFile, instance.account.uid, instance.account.gid);
}
const settings = (more = []) => ['--jwt-issuer', ISSUER, '--jwt-audience', AUDIENCE, '--jwt-keys', keysFile, ...more];
const status = async (token) => (await admin.request('GET', '/v1/sandboxes', { token })).status;

test('without an issuer no signed token is taken', async () => {
  assert.equal(await status(sign(claims())), 401);
});

test('the daemon refuses keys that others can change, secrets that they can read, and what are no keys', async () => {
  const refused = async (args = settings()) => {
    const { code, said } = await instance.refusal([...args, '--data-dir', path.join(instance.home, 'other')]);
    assert.notEqual(code, 0);
    assert.ok(!said.includes(secret.toString('base64url')));
    return said;
  };
  writeKeys(JSON.stringify(JWKS), 0o644);
  assert.match(await refused(), /secret/);
  fs.chmodSync(keysFile, 0o620);
  assert.match(await refused(), /write/);
  writeKeys('{"keys":[{"kty":"oct","k":"c2hvcnQ"}]}', 0o600);
  assert.match(await refused(), /key 1/);
  fs.rmSync(keysFile);
  assert.match(await refused(), /keys\.json/);
  assert.match(await refused(['--jwt-issuer', ISSUER]), /jwt-audience/);
});

test('with an issuer the daemon starts, from a file that only its owner can read', async () => {
  writeKeys(JSON.stringify(JWKS), 0o600);
  await instance.terminate();
  await instance.start(settings());
  assert.equal((await admin.request('GET', '/v1/sandboxes')).status, 200, 'our own tokens are good as before');
});

test('each algorithm is taken, and the claims are the owner', async () => {
  for (const header of [{ alg: 'HS256', kid: 'h' }, { alg: 'RS256', kid: 'r', typ: 'JWT' }, { alg: 'EdDSA', kid: 'e' }]) {
    const api = apiOf(admin, sign(claims(), header));
    const made = await api.create();
    assert.deepEqual([made.owner.organization, made.owner.user], ['acme', 'alice']);
    assert.equal((await admin.request('GET', '/v1/sandboxes', { token: null, headers: { 'x-api-key': api.token } })).status, 200);
    await purgeAll(api);
    api.agent.destroy();
  }
});

test('an owner is kept apart from others, and the same by whichever key', async () => {
  const alice = apiOf(admin, sign(claims()));
  const bob = apiOf(admin, sign(claims({ sub: 'bob' })));
  const { id } = await alice.create();
  assertError(await bob.request('GET', `/v1/sandboxes/${id}`), 404);
  assertError(await admin.request('GET', `/v1/sandboxes/${id}`), 404);
  assert.equal((await admin.request('GET', `/v1/sandboxes/${id}`, { token: sign(claims(), { alg: 'EdDSA', kid: 'e' }) })).status, 200);
  await purgeAll(alice);
  for (const api of [alice, bob]) api.agent.destroy();
});

test('scopes are those of the claim, and administration is not among them', async () => {
  const ask = (scope, method, route, json) => admin.request(method, route, { token: sign(claims({ scope })), json });
  assertError(await ask('read', 'POST', '/v1/sandboxes', {}), 403);
  assertError(await ask('openid', 'GET', '/v1/sandboxes'), 403);
  assertError(await ask(undefined, 'GET', '/v1/sandboxes'), 403);
  assertError(await ask('admin', 'GET', '/v1/sandboxes'), 403);
  assertError(await ask('admin read run files manage', 'POST', '/v1/shutdown'), 403);
  assertError(await ask('admin read run files manage', 'POST', '/v1/tokens', {}), 403);
  assert.equal((await ask(['read'], 'GET', '/v1/sandboxes')).status, 200);
});

test('what is forged, stale or meant for others is 401', async () => {
  const pem = rsa.publicKey.export({ format: 'pem', type: 'spki' });
  const hmacWith = (key) => (text) => crypto.createHmac('sha256', key).update(text).digest();
  const good = sign(claims());
  const refused = {
    'alg none': sign(claims(), { alg: 'none' }),
    'alg none with a kid': sign(claims(), { alg: 'none', kid: 'h' }),
    'RS256 turned into HS256 with the public key': sign(claims(), { alg: 'HS256', kid: 'r' }, hmacWith(pem)),
    'the same without a kid': sign(claims(), { alg: 'HS256' }, hmacWith(pem)),
    'a kid that is a path': sign(claims(), { alg: 'HS256', kid: '../../dev/null' }, hmacWith('')),
    'no kid among three keys': sign(claims(), { alg: 'HS256' }),
    'no exp': sign(claims({ exp: undefined })),
    'an exp of yesterday': sign(claims({ exp: now() - 86_400 })),
    'an nbf of tomorrow': sign(claims({ nbf: now() + 86_400 })),
    'another audience': sign(claims({ aud: 'other' })),
    'another issuer': sign(claims({ iss: 'https://evil.example' })),
    'a claim twice': sign(`{"iss":"${ISSUER}","aud":"${AUDIENCE}","exp":${now() + 60},"org":"acme","sub":"alice","sub":"admin"}`),
    'a user that is no name': sign(claims({ sub: '../admin' })),
    'no organization': sign(claims({ org: undefined })),
    'another key': sign(claims(), { alg: 'HS256', kid: 'h' }, hmacWith(crypto.randomBytes(32))),
    'a changed claim': good.replace(/\.[^.]*\./, `.${part(claims({ sub: 'bob' }))}.`),
    'no signature': good.slice(0, good.lastIndexOf('.') + 1),
    'too long': sign(claims({ filler: 'x'.repeat(6000) })),
  };
  for (const [what, token] of Object.entries(refused)) assert.equal(await status(token), 401, what);
  assert.equal(await status(good), 200);
});

test('a token of a megabyte does no harm', async () => {
  const answer = await raw(admin.port, `GET /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nAuthorization: Bearer eyJ${'A'.repeat(1 << 20)}\r\n\r\n`);
  assert.ok([0, 400, 401, 431].includes(answer.status), answer.text.slice(0, 200)); // 0: cut without a word
  assert.ok(answer.closed);
  assert.equal((await admin.request('GET', '/v1/sandboxes')).status, 200);
});

test('a stream ends when the signed token does', async () => {
  const alice = apiOf(admin, sign(claims()));
  const { id } = await alice.create();
  const short = sign(claims({ exp: now() - 50 })); // with the minute that clocks may differ, ten seconds
  await within('the stream ends', new Promise((resolve, reject) => {
    admin.open('GET', `/v1/sandboxes/${id}/events`, { token: short, agent: new http.Agent() }, (error, response) => {
      if (error) return resolve();
      if (response.statusCode !== 200) return reject(new Error(`${response.statusCode}`));
      response.resume();
      response.on('close', resolve);
      response.on('error', resolve);
    });
  }));
  await purgeAll(alice);
  alice.agent.destroy();
});

test('neither secret nor signed token is in a log or the database', () => {
  for (const needle of [secret, secret.toString('base64url'), secret.toString('hex'), part({ alg: 'HS256', kid: 'h' })]) {
    for (const name of [...instance.stateFiles(), instance.logFile]) assert.ok(!fs.readFileSync(name).includes(needle), name);
  }
});

finish();
