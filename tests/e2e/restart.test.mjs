// SPDX-License-Identifier: Apache-2.0
// Crashes and restarts: what was acknowledged stays, what ran runs on, nothing leaks.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { assertError } from './lib/client.mjs';
import { Instance } from './lib/instance.mjs';
import * as proc from './lib/proc.mjs';
import { purgeAll, suite } from './lib/suite.mjs';
import { assertSandbox, quoted, ulid } from './lib/values.mjs';
import { until, within } from './lib/wait.mjs';

const { instance, api, finish } = await suite('restart');
const AGENT = '/workspace/agent_workspace';

const leaveRunning = (id, command) => api.out(id, { command: `setsid sh -c ${quoted(command)} </dev/null >/dev/null 2>&1 &` });
const inits = () => instance.sandboxInits();
const withMarker = (marker) => instance.sandboxProcesses().filter((info) => proc.cmdline(info.pid).includes(marker));

/** Rows and reality agree: each running row has its init, works, and has its directories. */
async function consistent() {
  const rows = await api.all();
  for (const row of rows) {
    assertSandbox(row);
    assert.ok(['running', 'stopped'].includes(row.status), `${row.id} is ${row.status}: ${row.error_message}`);
  }
  const running = rows.filter((row) => row.status === 'running');
  await until(() => inits().length === running.length, { what: `${running.length} running rows, ${inits().length} sandboxes` });
  for (const row of running) assert.equal(await api.out(row.id, 'echo works'), 'works\n');
  const known = rows.map((row) => row.id);
  await until(() => {
    for (const dir of ['sandboxes', 'workspaces']) {
      const strange = proc.stored(path.join(instance.dataDir, dir)).filter((name) => !known.some((id) => name.includes(id)));
      assert.deepEqual(strange, [], `${dir}/ without a row`);
    }
    return true;
  }, { what: 'no directory without a row' });
  return rows;
}

test('a crash of the daemon stops no process of a sandbox', async () => {
  const { id } = await api.create({ labels: { keep: 'me' } });
  await api.put(id, `${AGENT}/file`, 'before the crash');
  await leaveRunning(id, `exec python3 -c "
import os, time
n = 0
while True:
    n += 1
    open('${AGENT}/next', 'w').write(str(n))
    os.rename('${AGENT}/next', '${AGENT}/ticks')
    time.sleep(0.01)"`);
  const read = async () => Number((await api.read(id, `${AGENT}/ticks`)).toString() || 0);
  await until(async () => (await read()) > 3, { what: 'it ticks' });
  const [ticker] = withMarker('time.sleep(0.01)');
  const init = await instance.initOf(id);
  const cpu = () => fs.readFileSync(`/proc/${ticker.pid}/stat`, 'latin1').split(') ').at(-1).split(' ').slice(11, 13).join();
  await instance.crash();
  const switches = () => Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${ticker.pid}/status`, 'latin1'))[1]);
  const then = switches();
  await until(() => proc.isAlive(ticker) && switches() > then + 5, { what: `it goes on without a daemon (cpu ${cpu()})` });
  assert.ok(proc.isAlive(init));
  assert.ok(proc.isAlive(instance.keeper), 'the keeper outlives the daemon');
  const keeper = instance.keeper.pid;
  await instance.start();
  assert.equal(instance.keeper.pid, keeper, 'the keeper is taken over, not replaced');
  const row = await api.get(id);
  assert.equal(row.status, 'running');
  assert.deepEqual(row.labels, { keep: 'me' });
  assert.equal((await instance.initOf(id)).pid, init.pid, 'it is the same sandbox');
  const now = await read();
  await until(async () => (await read()) > now, { what: 'it still ticks' });
  assert.equal((await api.read(id, `${AGENT}/file`)).toString(), 'before the crash');
  await api.purge(id);
});

test('the token, labels, timeouts, environment and order of rows survive a crash', async () => {
  const { token } = api;
  const made = [];
  for (let i = 0; i < 5; i++) made.push((await api.create({ labels: { n: String(i) }, env: { N: String(i) }, idle_timeout_s: 100 + i, ports: [3000 + i, { port: 8080, public: true, prefix: 'keep' }] })).id);
  await api.life(made[1], 'stop');
  await api.life(made[2], 'pause');
  await api.patch(made[3], { labels: { n: 'changed' } });
  await api.remove(made[4]);
  const before = await api.all();
  await instance.crash();
  await instance.start();
  assert.equal(api.token, token);
  const plain = (rows) => rows.map(({ last_active_at: _, previews: __, ...rest }) => rest);
  const after = await api.all();
  assert.deepEqual(plain(after), plain(before));
  assert.equal((await api.get(made[2])).status, 'paused');
  await api.life(made[2], 'resume');
  assert.equal(await api.out(made[2], 'echo $N'), '2\n');
  assert.equal(await api.out(made[1], 'echo $N'), '1\n');
  await purgeAll(api);
});

test('SIGTERM ends the daemon cleanly and sandboxes go on', async () => {
  const { id } = await api.create();
  await leaveRunning(id, 'exec sleep 5821');
  await until(() => withMarker('sleep 5821').length === 1, { what: 'it runs' });
  const [sleeper] = withMarker('sleep 5821');
  await instance.terminate();
  assert.ok(proc.isAlive(sleeper));
  await instance.start();
  assert.ok(proc.isAlive(sleeper));
  assert.ok((await api.processes(id)).some((line) => line.includes('sleep 5821')));
  await api.purge(id);
});

test('SIGTERM under load ends within seconds and keeps the sandboxes', async () => {
  const { id } = await api.create();
  const calls = Array.from({ length: 10 }, () => api.tryExec(id, 'sleep 600').catch((error) => error));
  const streams = await Promise.all(Array.from({ length: 5 }, () => api.execStream(id, 'echo up; sleep 600')));
  for (const stream of streams) {
    stream.response.on('error', () => {});
    await stream.events().next();
  }
  const init = await instance.initOf(id);
  await instance.terminate();
  await within('the clients hear of it', Promise.all(calls));
  assert.ok(proc.isAlive(init));
  await instance.start();
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  await api.purge(id);
});

test('a daemon that comes back many times adopts the same sandboxes each time', async () => {
  const ids = (await Promise.all(Array.from({ length: 5 }, () => api.create()))).map((row) => row.id);
  const first = (await Promise.all(ids.map((id) => instance.initOf(id)))).map((info) => info.pid);
  for (let round = 0; round < 4; round++) {
    await (round % 2 ? instance.terminate() : instance.crash());
    await instance.start();
    for (const id of ids) assert.equal(await api.out(id, 'echo works'), 'works\n');
  }
  assert.deepEqual((await Promise.all(ids.map((id) => instance.initOf(id)))).map((info) => info.pid), first);
  await purgeAll(api);
});

for (const [name, count] of [['early', 2], ['in the middle', 15], ['late', 32]]) {
  test(`a crash in a storm of creates (${name}) loses no acknowledged sandbox and leaves no half one`, async () => {
    const acknowledged = [];
    let crashed;
    const storm = Array.from({ length: 40 }, async () => {
      try {
        const answer = await api.request('POST', '/v1/sandboxes', { json: { labels: { storm: name } } });
        if (answer.status !== 201) return;
        acknowledged.push(answer.json.id);
        if (acknowledged.length === count) crashed = instance.crash();
      } catch (error) {
        assert.match(error.code ?? error.message, /ECONNRESET|ECONNREFUSED|EPIPE|socket hang up|cut short/);
      }
    });
    await Promise.all(storm);
    await crashed;
    await instance.start();
    const rows = await consistent();
    const ids = rows.map((row) => row.id);
    for (const id of acknowledged) assert.ok(ids.includes(id), `${id} was acknowledged`);
    await purgeAll(api);
    await until(() => inits().length === 0, { what: 'no sandbox is left' });
    await consistent();
  });
}

test('a crash in a storm of every kind of call leaves rows and reality equal', async () => {
  const ids = (await Promise.all(Array.from({ length: 12 }, () => api.create()))).map((row) => row.id);
  let answered = 0;
  let crashed;
  const verbs = ['stop', 'start', 'reset', 'pause', 'resume', 'purge', 'delete', 'exec', 'put'];
  await Promise.all(Array.from({ length: 90 }, async (_, i) => {
    const id = ids[i % ids.length];
    const verb = verbs[(i * 7) % verbs.length];
    try {
      if (verb === 'delete') await api.request('DELETE', `/v1/sandboxes/${id}`);
      else if (verb === 'exec') await api.tryExec(id, 'true');
      else if (verb === 'put') await api.tryPut(id, `${AGENT}/f`, 'x'.repeat(100_000));
      else await api.verb(id, verb);
      if (++answered === 25) crashed = instance.crash();
    } catch (error) {
      assert.match(error.code ?? error.message, /ECONNRESET|ECONNREFUSED|EPIPE|socket hang up|cut short/);
    }
  }));
  await crashed;
  await instance.start();
  for (const row of await api.all()) if (row.status === 'paused') await api.life(row.id, 'resume');
  const rows = await api.all();
  for (const row of rows) assert.equal(await api.out(row.id, 'echo works'), 'works\n', `${row.id} ${row.status}`);
  await purgeAll(api);
});

test('a partial upload of before the crash is not there after it', async () => {
  const { id } = await api.create();
  await api.mkdir(id, `${AGENT}/up`);
  const pending = api.tryPut(id, `${AGENT}/up/file`, (async function* parts() {
    yield Buffer.alloc(500_000);
    await instance.crash();
    yield Buffer.alloc(500_000);
  })(), { headers: { 'content-length': 1_000_000 } });
  await assert.rejects(pending);
  await instance.start();
  await until(async () => {
    assert.deepEqual((await api.listFiles(id, `${AGENT}/up`)).entries, []);
    return true;
  }, { what: 'nothing of it is left' });
  await api.purge(id);
});

test('a sandbox whose init is killed is found stopped with a record, and the next exec wakes it', async () => {
  const { id } = await api.create();
  await api.put(id, `${AGENT}/file`, 'kept');
  const init = await instance.initOf(id);
  process.kill(init.pid, 'SIGKILL');
  const row = await until(async () => {
    const now = await api.get(id);
    return ['stopped', 'error'].includes(now.status) && now;
  }, { what: 'the daemon notices' });
  assertSandbox(row);
  assert.ok(row.termination?.reason, JSON.stringify(row));
  assert.notEqual(row.termination.reason, 'operator', 'it was not a call that stopped it');
  assert.equal(await api.out(id, `cat ${AGENT}/file`), 'kept');
  assert.equal((await api.get(id)).status, 'running');
  await api.purge(id);
});

test('an exec whose init is killed is answered', async () => {
  const { id } = await api.create();
  const running = api.tryExec(id, 'touch /tmp/up; sleep 600');
  await until(() => api.exists(id, '/tmp/up'), { what: 'it runs' });
  process.kill((await instance.initOf(id)).pid, 'SIGKILL');
  const answer = await within('the answer', running);
  if (answer.status === 200) assert.notEqual(answer.json.exit_code, 0);
  else assert.ok([409, 500, 502, 503].includes(answer.status), `${answer.status} ${answer.text}`);
  await api.purge(id);
});

test('a sandbox whose init is stopped by the host holds up nobody else and can be purged', async () => {
  const [stuck, fine] = [await api.create(), await api.create()];
  const init = await instance.initOf(stuck.id);
  process.kill(init.pid, 'SIGSTOP');
  const pending = api.tryExec(stuck.id, { command: 'true', timeout_ms: 1000 }).catch((error) => error);
  assert.equal(await within('the other sandbox', api.out(fine.id, 'echo works')), 'works\n');
  assert.equal((await within('a third one', api.create())).status, 'running');
  await within('purge', api.purge(stuck.id));
  assert.equal(proc.isAlive(init), false);
  await within('the pending call', pending);
  await purgeAll(api);
});

test('an init that died while no daemon was there is a stopped row afterwards', async () => {
  const { id } = await api.create();
  const { id: other } = await api.create();
  const init = await instance.initOf(id);
  await instance.crash();
  process.kill(init.pid, 'SIGKILL');
  await instance.start();
  const row = await until(async () => {
    const now = await api.get(id);
    return now.status !== 'running' && now;
  }, { what: 'the row is not running' });
  assert.ok(['stopped', 'error'].includes(row.status));
  assert.equal((await api.get(other)).status, 'running');
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  await purgeAll(api);
});

test('an agent that does not answer holds up neither the start of the daemon nor the other sandboxes', async () => {
  const [stuck, fine] = [await api.create(), await api.create()];
  const init = await instance.initOf(stuck.id);
  await instance.crash();
  process.kill(init.pid, 'SIGSTOP');
  const said = instance.log().length;
  await instance.start();
  assert.equal(await api.out(fine.id, 'echo works'), 'works\n');
  assert.doesNotMatch(instance.log().slice(said), /did not answer/, 'nobody has waited for it until its time was over');
  await within('purge', purgeAll(api));
  assert.equal(proc.isAlive(init), false);
});

test('a pause that was cut in two by a crash is finished or undone, and its processes live on', async () => {
  const { id } = await api.create();
  const init = await instance.initOf(id);
  const [freezer] = instance.cgroups().filter((dir) => dir.includes(id) && fs.existsSync(path.join(dir, 'cgroup.freeze')));
  assert.ok(freezer, 'not proven: no cgroup with a freezer was found');
  await instance.crash();
  fs.writeFileSync(path.join(freezer, 'cgroup.freeze'), '1');
  await instance.start();
  const { status } = await api.get(id);
  assert.ok(['paused', 'running'].includes(status), status);
  if (status === 'paused') await api.life(id, 'resume');
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  assert.equal((await instance.initOf(id)).pid, init.pid, 'it is the same sandbox');
  await api.purge(id);
});

test('a second daemon on the same data directory refuses and says why, and the first goes on', async () => {
  const { id } = await api.create();
  const { code, said } = await instance.refusal([]);
  assert.ok(code > 0, `${code}`);
  assert.match(said, /already|in use|another|locked/i);
  assert.equal(await api.out(id, 'echo works'), 'works\n');
  assert.match(fs.readFileSync(path.join(instance.dataDir, 'run/api.addr'), 'utf8'), new RegExp(`:${api.port}\n`));
  await api.purge(id);
});

for (const [args, word] of [[['--no-such-flag'], /no-such-flag/], [['--api-bind', 'nonsense'], /api-bind|nonsense/], [['--api-bind', '127.0.0.1:99999'], /api-bind|99999/], [['--idle-timeout', '-5'], /idle-timeout|-5/], [['--data-dir'], /data-dir/], [['surplus'], /surplus|argument/]]) {
  test(`the daemon refuses "${args.join(' ')}", names it and leaves no keeper behind`, async () => {
    const other = new Instance('settings');
    try {
      const { code, said } = await other.refusal(args);
      assert.ok(code > 0, `${code}`);
      assert.match(said, word);
      const left = proc.allProcesses().filter((info) => info.comm === 'sandlot-keeper' && proc.isAlive(info) && proc.cmdline(info.pid).includes(other.dataDir));
      for (const info of left) other.seen.set(info.pid, info.start);
      assert.deepEqual(left, []);
    } finally {
      for (const info of proc.allProcesses()) if (info.comm === 'sandlot-keeper' && proc.cmdline(info.pid).includes(other.dataDir)) other.seen.set(info.pid, info.start);
      other.destroy();
    }
  });
}

test('when the keeper dies its sandboxes end, and each can be woken again', async () => {
  await purgeAll(api);
  const ids = (await Promise.all(Array.from({ length: 3 }, () => api.create()))).map((row) => row.id);
  for (const id of ids) await api.put(id, `${AGENT}/file`, id);
  const old = inits();
  assert.equal(old.length, 3);
  process.kill(instance.keeper.pid, 'SIGKILL');
  await until(() => old.every((info) => !proc.isAlive(info)), { what: 'no sandbox outlives the keeper' });
  // The daemon may start a new keeper by itself, or end so that its supervisor starts both.
  const ready = await until(async () => {
    if (instance.daemon.how) return 'ended';
    const answer = await api.request('GET', '/readyz', { token: null }).catch(() => null);
    return answer?.status === 200 && proc.allProcesses().some((info) => info.comm === 'sandlot-keeper' && proc.isAlive(info) && (info.ppid === instance.daemon.pid || proc.environ(info.pid).includes(instance.marker))) && 'ready';
  }, { what: 'the daemon is ready again or has ended' });
  if (ready === 'ended') await instance.startSupervised();
  else instance.keeper = instance.findKeeper();
  for (const id of ids) {
    assert.equal(await until(async () => (await api.exec(id, `cat ${AGENT}/file`)).stdout, { what: `${id} wakes` }), id);
  }
  await purgeAll(api);
});

test('a workspace of a deleted sandbox survives restarts and comes back', async () => {
  const id = ulid();
  await api.create({ id });
  await api.put(id, `${AGENT}/file`, 'long ago');
  await api.remove(id);
  await instance.crash();
  await instance.start();
  assertError(await api.request('GET', `/v1/sandboxes/${id}`), 404);
  await api.create({ id });
  assert.equal((await api.read(id, `${AGENT}/file`)).toString(), 'long ago');
  await api.purge(id);
});

finish();
