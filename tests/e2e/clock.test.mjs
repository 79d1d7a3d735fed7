// SPDX-License-Identifier: Apache-2.0
// Steps of the wall clock, of one daemon alone: a library that is loaded before all others tells it another time.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { Instance } from './lib/instance.mjs';
import { compile } from './lib/programs.mjs';
import { until } from './lib/wait.mjs';

const DAY_S = 86_400;
const at = new Instance('clock');
after(() => at.destroy());
const { api } = at;
const file = path.join(at.home, 'step');
// A sanitizer wants to be the first library itself.
const { ASAN_OPTIONS: sanitizer = '' } = process.env;
at.wrapper = ['env', `ASAN_OPTIONS=${sanitizer}:verify_asan_link_order=0`, `LD_PRELOAD=${compile('clock_step', path.join(at.home, 'clock_step.so'), ['-shared', '-fPIC'])}`, `CLOCK_STEP_FILE=${file}`];

/** Sets the daemon's clock, by seconds from the machine's; in one write, so that no half a number is read. */
const set = (seconds) => { fs.writeFileSync(`${file}.new`, String(seconds)); fs.renameSync(`${file}.new`, file); };
/** How far a time lies from that of the daemon's clock, in seconds. */
const age = (text, step) => Date.now() / 1000 + step - Date.parse(text) / 1000;

/** The reaper has been through all rows: one that is idle at once has been stopped. */
async function round() {
  const { id } = await api.create({ idle_timeout_s: 1 });
  await until(async () => (await api.get(id)).status === 'stopped', { what: 'the reaper makes its round' });
  await api.purge(id);
}

test('the clock of the daemon steps by days, and nothing ends, waits or is repeated', async () => {
  set(0);
  await at.start(['--quota-user', 'creates_per_minute=600']);
  const marker = '/workspace/agent_workspace/runs';
  const { id } = await api.create({ idle_timeout_s: 3600, lifetime_s: 7200, start: `echo run >> ${marker}` });
  const ran = () => until(async () => (await api.get(id)).start[0].status === 'exited', { what: 'the start command has ended' });
  await ran();
  for (const step of [30 * DAY_S, -30 * DAY_S, 400 * DAY_S]) {
    set(step);
    await round();
    await round();
    const row = await api.get(id);
    assert.equal(row.status, 'running', JSON.stringify(row.termination));
    await until(async () => Math.abs(age((await api.get(id)).created_at, step)) < 600, { what: 'times are shown as the clock is set now' });
    const { expires_at: end, created_at: begin } = await api.get(id);
    assert.equal(Date.parse(end) - Date.parse(begin), 7_200_000);
    await at.crash();
    await at.start();
    assert.equal((await api.get(id)).status, 'running');
    await ran();
    assert.equal((await api.read(id, marker)).toString(), 'run\n', 'the start command ran once');
  }
  // A day in a moment of the machine's: what is set to end does so in its own time.
  const short = await api.create({ lifetime_s: 1 });
  set(0);
  await until(async () => (await api.request('GET', `/v1/sandboxes/${short.id}`)).status === 404, { what: 'a lifetime ends though the clock was set back' });
  await at.shutdown();
});
