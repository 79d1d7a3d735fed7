// SPDX-License-Identifier: Apache-2.0
// Projects that are launched, and what their previews show.
import assert from 'node:assert/strict';

import { Previews } from './preview.mjs';
import { until } from './wait.mjs';

export class Launches {
  constructor(api) {
    this.api = api;
    this.count = 0;
  }

  /** A new project with these files. */
  async project(files) {
    const made = await this.api.request('POST', '/v1/projects', { json: { name: `app-${++this.count}` } });
    assert.equal(made.status, 201, made.text);
    await this.upload(made.json.id, files);
    return made.json;
  }

  async upload(id, files) {
    for (const [name, text] of Object.entries(files)) {
      const put = await this.api.request('PUT', `/v1/projects/${id}/files`, { query: { path: name }, body: text, headers: { 'content-type': 'application/octet-stream' } });
      assert.ok(put.status < 300, put.text);
    }
  }

  async begin(body, headers = {}) {
    const begun = await this.api.request('POST', '/v1/launches', { json: body, headers });
    assert.equal(begun.status, 202, begun.text);
    return begun.json;
  }

  async ended(id, patience = { timeout_ms: 180_000 }) {
    let found;
    await until(async () => (found = (await this.api.request('GET', `/v1/launches/${id}`)).json).status !== 'running', { what: 'the end of the launch', ...patience });
    return found;
  }

  /** Launches and waits for the end. */
  async launch(body, headers) {
    return this.ended((await this.begin(body, headers)).id);
  }

  assertRuns(launched) {
    assert.equal(launched.status, 'succeeded', JSON.stringify(launched.error ?? launched.stages));
  }

  /** What the preview of a launch shows, or that of another port of its sandbox. */
  async page(launched, at = '/', port = Number(/-(\d+)\./.exec(launched.preview_url)[1])) {
    const previews = new Previews(this.api, await this.api.get(launched.sandbox_id));
    return (await previews.request(port, at)).text;
  }

  async remove(launched, id) {
    await this.api.purge(launched.sandbox_id);
    if (id) assert.equal((await this.api.request('DELETE', `/v1/projects/${id}`)).status, 204);
  }
}
