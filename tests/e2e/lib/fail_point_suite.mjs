// SPDX-License-Identifier: Apache-2.0
// What the tests of fail points share: a daemon of the build that `make` keeps beside the ordinary one for this, a
// sandbox that no operation touches, and what is true of all after a death.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { sql } from './database.mjs';
import { FAIL_BUILD_DIR, FailPoints } from './fail_points.mjs';
import { Instance } from './instance.mjs';
import { Processes } from './processes.mjs';
import * as proc from './proc.mjs';
import { assertNothingRemains, loopFiles } from './remains.mjs';
import { MI, ulid } from './values.mjs';
import { until } from './wait.mjs';

export const AGENT = '/workspace/agent_workspace';

export const ok = async (promise) => {
  const answer = await promise;
  assert.ok([200, 201, 204].includes(answer.status), `${answer.status} ${answer.text}`);
  return answer;
};

/** With the keeper all sandboxes end. */
export const afterKeeper = (state) => (['running', 'paused'].includes(state) ? 'stopped' : state);

/** Starts the daemon of a file and its witness. Call finish() at the end of the file. */
export async function failPointSuite(name, args = []) {
  // Started by root in every run: an ordinary user's daemon has neither disks of its own nor, without cgroups, pauses.
  const instance = new Instance(name, { build: FAIL_BUILD_DIR, args: ['--disk-reserve', '32Mi', '--pool-reserve', '0', ...args], user: null });
  instance.mountDisk(1024 * MI); // on which disks are images, so that the points of images are passed
  after(() => instance.destroy());
  process.on('exit', () => instance.destroy());
  const made = new FailPointSuite(instance);
  await instance.start();
  await made.begin();
  return made;
}

class FailPointSuite {
  constructor(instance) {
    this.instance = instance;
    this.points = new FailPoints(instance);
    this.api = instance.api;
    this.processes = new Processes(this.api);
    /** The sandboxes that may be there after a test. */
    this.known = new Set();
  }

  async begin() {
    /** One that no operation touches: what a fault does to others. */
    this.witness = await this.api.create({ labels: { role: 'witness' } });
    await this.api.put(this.witness.id, `${AGENT}/kept`, 'of the witness');
    this.known.add(this.witness.id);
  }

  /** A sandbox of the operation's own, in a state: null (there is none), deleted, running, stopped or paused. */
  async prepare(state, body = {}) {
    const { api, processes } = this;
    const id = ulid();
    if (state === null) return id;
    await api.create({ id, ...body });
    await api.put(id, `${AGENT}/kept`, id);
    if (state === 'deleted') await processes.wait(id, (await processes.start(id, 'echo kept with the workspace')).id);
    if (state === 'deleted') await api.remove(id);
    else if (state !== 'running') await api.life(id, state === 'paused' ? 'pause' : 'stop');
    return id;
  }

  /** Its status, `deleted` if only the workspace is there, null if nothing is. */
  async stateOf(id) {
    const answer = await this.api.request('GET', `/v1/sandboxes/${id}`);
    if (answer.status === 200) return answer.json.status;
    assert.equal(answer.status, 404, answer.text);
    return sql(this.instance, `SELECT id FROM workspaces WHERE id = '${id}'`) === '' ? null : 'deleted';
  }

  async assertKept(id) {
    if ((await this.api.get(id)).status === 'paused') await this.api.life(id, 'resume');
    assert.equal((await this.api.read(id, `${AGENT}/kept`)).toString(), id);
  }

  async snapshotsOf(id) {
    return (await this.api.request('GET', '/v1/snapshots', { query: { sandbox: id } })).json.snapshots;
  }

  async dropSnapshots(id) {
    for (const one of await this.snapshotsOf(id)) await ok(this.api.request('DELETE', `/v1/snapshots/${one.id}`));
  }

  async purgeForks(id) {
    for (const one of await this.api.all()) {
      if (one.id !== id && one.id !== this.witness.id) await this.api.purge(one.id);
    }
  }

  /** Who acted at the point, and starts again what is dead of daemon and keeper. */
  async recover(point) {
    const { instance } = this;
    const pid = await until(() => this.points.actedPid(point), { what: `${point} is reached` });
    if (pid === instance.daemon.pid) {
      assert.deepEqual(await until(() => instance.daemon.how, { what: 'the daemon dies' }), { code: 99, signal: null });
      await instance.startSupervised();
      return 'daemon';
    }
    if (pid !== instance.keeper.pid) return 'child';
    await until(() => !proc.isAlive(instance.keeper), { what: 'the keeper dies' });
    await until(() => instance.daemon.how, { what: 'the daemon leaves because its keeper has' });
    await instance.startSupervised();
    return 'keeper';
  }

  async assertWitness(died) {
    const expected = died === 'keeper' ? 'stopped' : 'running';
    assert.equal((await this.api.get(this.witness.id)).status, expected);
    assert.equal((await this.api.read(this.witness.id, `${AGENT}/kept`)).toString(), 'of the witness');
  }

  assertNothingRemains(unlisted) {
    return assertNothingRemains(this.instance, this.known, unlisted);
  }

  finish() {
    const { api, instance, witness } = this;
    test('audit entries of calls that were answered are there in their order, once each, after all of that', async () => {
      const answer = await ok(api.request('GET', '/v1/audit/verify'));
      assert.equal(answer.json.ok, true, answer.text);
    });

    test('after everything is purged nothing is left, and no process has complained', async () => {
      await api.purge(witness.id);
      api.purged.add(witness.id);
      await assertNothingRemains(instance, new Set());
      assert.deepEqual(instance.complaints(), []);
      await instance.shutdown();
      await until(() => {
        assert.deepEqual(instance.survivors(), []);
        assert.deepEqual(instance.cgroups(), []);
        assert.deepEqual(loopFiles(instance.dataDir), []);
        assert.deepEqual(proc.mountLines('self', [`${instance.dataDir}/`]), []);
        return true;
      }, { what: 'all is gone' });
    });
  }
}
