// SPDX-License-Identifier: Apache-2.0
// Fail points (fail_points.test.mjs) of the first start of a daemon and of every migration of its database.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sql } from './lib/database.mjs';
import { FIRST_START, MIGRATION_POINTS } from './lib/fail_point_lists.mjs';
import { FAIL_BUILD_DIR, FailPoints } from './lib/fail_points.mjs';
import { Instance } from './lib/instance.mjs';
import { ulid } from './lib/values.mjs';

test('the first start and every migration, cut short before, within and after it, end with a whole database', async () => {
  const fresh = new Instance('fail-points-migration', { build: FAIL_BUILD_DIR, user: null });
  process.on('exit', () => fresh.destroy());
  const board = new FailPoints(fresh);
  const version = () => Number(sql(fresh, 'PRAGMA user_version'));
  const id = ulid();
  const dies = async (point) => {
    board.arm(point);
    await assert.rejects(fresh.start());
    assert.equal(fresh.daemon.how?.code, 99, `${point}: ${fresh.log().slice(-1000)}`);
  };
  try {
    await fresh.start();
    const latest = version();
    await fresh.shutdown();
    for (const name of fs.readdirSync(path.join(fresh.dataDir, 'state'))) fs.rmSync(path.join(fresh.dataDir, 'state', name), { recursive: true });
    fs.rmSync(path.join(fresh.dataDir, 'token'));
    fs.rmSync(path.join(fresh.dataDir, 'workspaces/.generation'));
    const refuses = async (point) => {
      board.arm(point, 'fail');
      await assert.rejects(fresh.start());
      assert.ok(fresh.daemon.how?.code > 0 && fresh.daemon.how.code !== 99, `${point}: ${fresh.log().slice(-1000)}`);
    };
    await refuses(FIRST_START.token);
    await dies(FIRST_START.token);
    await refuses(FIRST_START.migration);
    assert.equal(version(), 0);
    for (let from = 0; from < latest; from++) {
      for (const point of MIGRATION_POINTS) {
        await dies(point);
        assert.equal(version(), point === 'migration.committed' ? from + 1 : from, point);
        assert.equal(sql(fresh, 'PRAGMA integrity_check'), 'ok\n');
      }
      if (from === 0) {
        sql(fresh, `INSERT INTO workspaces VALUES ('${id}', 'default', 'admin', 7, 1);
          INSERT INTO sandboxes VALUES ('${id}', 'default', 'admin', NULL, 'stopped', 'host', 'native', 1000, 268435456, 1073741824, 256, '{}', '[]', '{"old":"yes"}', '{"mode":"none"}', 600, -1, 0, 1, 1, 1, 0, 'operator', 0, '', '')`);
      }
    }
    await fresh.start();
    assert.deepEqual((await fresh.api.get(id)).labels, { old: 'yes' });
    // It has no files, which is said; with a workspace, as old as that, it runs.
    assert.equal((await fresh.api.verb(id, 'start')).json.error.code, 'workspace_missing');
    fs.mkdirSync(path.join(fresh.dataDir, 'workspaces', id));
    assert.equal(await fresh.api.out(id, 'echo works'), 'works\n');
    assert.match(fs.readFileSync(path.join(fresh.dataDir, 'token'), 'utf8'), /^\S{20,}\n$/);
    await fresh.shutdown();
  } finally {
    fresh.destroy();
  }
});
