// SPDX-License-Identifier: Apache-2.0
// Owners with tokens of their own, beside the administrator of an instance.
import assert from 'node:assert/strict';

import { Api } from './client.mjs';

export const ORDINARY = ['read', 'run', 'files', 'manage'];

/** A token as the administrator makes it: the document of the answer. */
export async function makeToken(admin, body) {
  const answer = await admin.request('POST', '/v1/tokens', { json: body });
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}

/** The API as seen by another token. `made` keeps apart what each owner made. */
export function apiOf(admin, token) {
  return new Api({ host: admin.host, port: admin.port, token, secrets: admin.secrets, tls: admin.tls });
}

export async function ownerApi(admin, organization, user, scopes = ORDINARY) {
  const { token } = await makeToken(admin, { organization, user, scopes });
  return apiOf(admin, token);
}
