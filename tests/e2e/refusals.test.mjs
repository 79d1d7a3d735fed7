// SPDX-License-Identifier: Apache-2.0
// With what status the daemon refuses to start, and whether systemd then tries again: it does where another start may
// find the host changed, and does not where an operator has to act first.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { sql } from './lib/database.mjs';
import { Instance, REPOSITORY } from './lib/instance.mjs';
import { echoServer } from './lib/outside.mjs';

const unit = fs.readFileSync(path.join(REPOSITORY, 'data/sandlot.service.in'), 'utf8');
const [, listed] = /^RestartPreventExitStatus=([\d ]+)$/m.exec(unit);
const final = new Set(listed.split(' ').map(Number));

const instance = new Instance('refusals');
const { dataDir } = instance;
const database = path.join(dataDir, 'state/sandlot.db');
after(() => instance.destroy());
await instance.start();
const { id } = await instance.api.create();

/** What it does to the files of the database is undone afterwards. */
const withDatabase = (spoil) => async (refuse) => {
  const state = path.join(dataDir, 'state');
  const copy = path.join(instance.home, 'copy');
  fs.cpSync(state, copy, { recursive: true, preserveTimestamps: true });
  const { uid, gid } = fs.statSync(database);
  spoil();
  await refuse();
  for (const name of fs.readdirSync(state).filter((file) => file.startsWith('sandlot.db'))) fs.rmSync(path.join(state, name));
  fs.copyFileSync(path.join(copy, 'sandlot.db'), database);
  fs.chownSync(database, uid, gid);
  fs.rmSync(copy, { recursive: true });
};
const withMode = (file, mode) => async (refuse) => {
  const before = fs.statSync(file).mode & 0o777;
  fs.chmodSync(file, mode);
  await refuse();
  fs.chmodSync(file, before);
};

const taken = await echoServer();
const cases = [
  { what: 'a setting is wrong', args: ['--workers', 'many'], code: 2, said: /workers/ },
  { what: 'the address is no address', args: ['--api-bind', 'nowhere'], code: 2, said: /nowhere/ },
  ...['--api-bind', '--preview-bind'].map((flag) => ({ what: `another program has the address of ${flag}`, args: [flag, `127.0.0.1:${taken.port}`], code: 4, said: new RegExp(`cannot listen on 127\\.0\\.0\\.1:${taken.port}: [^]*choose another address with ${flag}[^]*SANDLOT_DATA_DIR, SANDLOT_API_BIND and SANDLOT_PREVIEW_BIND`) })),
  { what: 'another daemon runs', runs: true, code: 4, said: /another sandlotd runs[^]*SANDLOT_DATA_DIR, SANDLOT_API_BIND and SANDLOT_PREVIEW_BIND/ },
  { what: 'the database is gone, and workspaces are there', around: withDatabase(() => fs.rmSync(database)), code: 4, said: /missing or empty/ },
  { what: 'the database is damaged', around: withDatabase(() => fs.writeFileSync(database, 'no database '.repeat(1000))), code: 65, said: /is damaged/ },
  { what: 'the database is of a newer version', around: withDatabase(() => sql(instance, 'PRAGMA user_version = 100000')), code: 65, said: /this program knows/ },
  { what: 'others can read the token', around: withMode(path.join(dataDir, 'token'), 0o644), code: 77, said: /token/ },
  { what: 'it may open too few files', wrapper: ['prlimit', '--nofile=256:256'], code: 75, said: /open files/, again: true },
];
for (const { what, args = [], runs = false, around = (refuse) => refuse(), wrapper = [], code, said, again = false } of cases) {
  test(`${what}: status ${code}, and systemd ${again ? 'tries again' : 'waits for an operator'}`, async () => {
    if (runs !== !instance.daemon.how) await (runs ? instance.start() : instance.terminate());
    instance.wrapper = wrapper;
    await around(async () => {
      const refusal = await instance.refusal(args);
      assert.deepEqual([refusal.code, refusal.signal], [code, null], refusal.said);
      assert.match(refusal.said, said);
    });
    instance.wrapper = [];
    assert.equal(final.has(code), !again);
  });
}

test('the statuses of a keeper that ended and of a fault of the machine are tried again', () => {
  for (const code of [1, 70, 74, 75]) assert.ok(!final.has(code), `${code}`);
});

test('after all these the sandbox is there', async () => {
  if (instance.daemon.how) await instance.start();
  assert.equal(await instance.api.out(id, 'echo well'), 'well\n');
  await instance.shutdown();
  taken.close();
});
