// SPDX-License-Identifier: Apache-2.0
// What every file of tests shares: a daemon of its own, a baseline of what the machine holds, and at
// the end the proof that all of it is back.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';

import { Instance } from './instance.mjs';
import * as proc from './proc.mjs';
import { eachLimit, until } from './wait.mjs';

/**
 * Starts the daemon of a file of tests and takes the baseline. Call finish() at the end of the file. Options: those of
 * Instance, and width, of how many sandboxes the tests of the file use at once, where that is many.
 */
export async function suite(name, { width = 16, ...options } = {}) {
  const instance = new Instance(name, options);
  after(() => instance.destroy());
  process.on('exit', () => instance.destroy());
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1)); // runs the handler above
  try {
    await instance.start();
    await warmUp(instance.api, width);
    await steady(instance);
    await settle(instance);
    if (options.args?.includes('--pool')) await filled(instance.api);
    const baseline = await steady(instance);
    return { instance, api: instance.api, baseline, finish: () => finish(instance, baseline) };
  } catch (error) {
    console.error(instance.log().slice(-3000));
    instance.destroy(); // an error here ends the process without its exit handlers
    throw error;
  }
}

/**
 * Uses every part once and as widely as the tests will, so that what is pooled (threads, connections
 * to the keeper, user namespaces of slots) has its final size before it is counted. Whether the calls
 * succeed is for the tests to say.
 */
async function warmUp(api, width) {
  const ids = (await Promise.all(Array.from({ length: width }, () => api.create()))).map((sandbox) => sandbox.id);
  const one = async (id) => {
    await api.tryExec(id, 'true');
    await api.tryPut(id, '/tmp/warm', 'warm');
    await api.files('GET', id, '/tmp/warm');
    await api.verb(id, 'stop');
    await api.tryExec(id, 'true');
    await api.verb(id, 'purge');
  };
  await Promise.all(ids.map(one));
}

/** Until one sandbox is built ahead, where that is done at all: it counts among what there is. */
export async function settle(instance) {
  const spares = () => proc.entries(path.join(instance.dataDir, 'spares'));
  for (let i = 0; i < 6 || (i < 60 && spares().length > 0 && !spares().some((name) => name.startsWith('ahead-'))); i++) {
    await instance.api.purge((await instance.api.create()).id);
    await new Promise((resolve) => { setTimeout(resolve, 100); }); // for what is made ahead of that
  }
}

/** Until what pools keep waiting is there: it is of the baseline, and there again at the end. */
const filled = (api) => until(async () => (await api.request('GET', '/v1/pools')).json.pools.every(({ ready, size, warming }) => ready === size && warming === 0), { what: 'all pools are full' });

/** What the keeper keeps of a few uid ranges that nobody runs in, a mount or a user namespace: ahead.test.mjs counts them. */
const isKept = (name) => /\/lowers\/(root|usr|layers)-\d+ |^user:\[/.test(name);

/**
 * Those that serve requests leave after ten seconds without any, which is not waited for here: flood.test.mjs does that,
 * and one that hangs in a request keeps the daemon from ending in the last test of the file.
 */
const threadsOf = (pid) => proc.threadNames(pid).filter((name) => name !== 'http-worker');

/**
 * Everything that must not grow, as numbers (and names, for the message when it did). namesOf gives those of descriptors:
 * what each socket is has to be read in tables of the whole host.
 */
export function census(instance, namesOf = proc.descriptorNames) {
  const { daemon, keeper, dataDir, api } = instance;
  const sandboxes = instance.sandboxProcesses();
  const words = [dataDir, ...api.made, ...api.purged];
  const all = [daemon.pid, keeper.pid, ...sandboxes.map((info) => info.pid)];
  return {
    'processes of sandboxes': sandboxes.map((info) => `${info.pid} ${info.comm} ${info.state} ${proc.cmdline(info.pid)}`),
    'descriptors of the daemon': namesOf(daemon.pid),
    'descriptors of the keeper': namesOf(keeper.pid).filter((name) => !isKept(name)),
    'threads of the daemon': threadsOf(daemon.pid),
    'threads of the keeper': threadsOf(keeper.pid),
    'mounts on the host': proc.mountLines('self', words),
    // All of its own are below the data directory; the rest are those that the host had when it began, also for other tests.
    'mounts of the keeper': proc.mountLines(keeper.pid, words).filter((line) => !isKept(line)),
    'mounts of the daemon': proc.mountLines(daemon.pid, words),
    'namespaces': [...new Set([...proc.namespacesOf(all), ...[...proc.namespacesOf([], [daemon.pid, keeper.pid])].filter((name) => !isKept(name))])],
    'cgroups': instance.cgroups(),
    'entries in sandboxes/': proc.stored(path.join(dataDir, 'sandboxes')),
    'entries in workspaces/': proc.stored(path.join(dataDir, 'workspaces')),
  };
}

/**
 * A census that was the same several times in a row, with no connection of ours open. Threads do not
 * count: an idle pool may shrink for a while, and growth is all that is looked for later.
 */
export async function steady(instance) {
  instance.api.disconnect();
  let last = '';
  let times = 0;
  return until(() => {
    const now = census(instance, times < 5 ? proc.descriptorTargets : proc.descriptorNames);
    const counts = JSON.stringify(Object.entries(now).filter(([name]) => !name.startsWith('threads')).map(([, list]) => list.length));
    times = counts === last ? times + 1 : 0;
    last = counts;
    return times > 5 ? now : null;
  }, { every: 60, what: 'the daemon comes to rest' });
}

/** What the census has more of than the baseline. */
export function growth(baseline, now) {
  const grown = {};
  for (const [name, list] of Object.entries(now)) {
    const before = baseline[name].length;
    if (list.length <= before) continue;
    const known = [...baseline[name]];
    const extra = list.filter((item) => {
      const at = known.indexOf(item);
      if (at >= 0) known.splice(at, 1);
      return at < 0;
    });
    grown[name] = { before, now: list.length, new: extra.slice(0, 20) };
  }
  return grown;
}

/** Purges all that any test of the file has left, deleted sandboxes with a workspace too. */
export async function purgeAll(api) {
  const live = (await api.all()).map((sandbox) => sandbox.id);
  await eachLimit([...new Set([...live, ...api.made])], 8, async (id) => {
    const answer = await api.verb(id, 'purge');
    assert.ok([200, 204, 404].includes(answer.status), `purge ${id}: ${answer.status} ${answer.text}`);
    api.made.delete(id);
    api.purged.add(id);
  });
  assert.deepEqual((await api.all()).map((sandbox) => sandbox.id), [], 'a purged sandbox is not listed');
}

function finish(instance, baseline) {
  test('after everything is purged nothing is left: processes, descriptors, threads, mounts, namespaces, cgroups, directories', async () => {
    await purgeAll(instance.api);
    await until(() => {
      instance.api.disconnect();
      const grown = growth(baseline, census(instance));
      assert.deepEqual(grown, {});
      return true;
    }, { every: 100, what: 'back to the baseline' });
  });

  test('daemon and keeper have neither crashed nor complained', () => {
    assert.equal(instance.daemon.how, undefined, `the daemon ended: ${JSON.stringify(instance.daemon.how)}\n${instance.log().slice(-3000)}`);
    assert.ok(proc.isAlive(instance.keeper), `the keeper is gone\n${instance.log().slice(-3000)}`);
    assert.deepEqual(instance.complaints(), []);
  });

  test('shutdown ends daemon, keeper and sandboxes and leaves neither process, mount nor cgroup', async () => {
    const { id } = await instance.api.create();
    await instance.api.exec(id, 'setsid sleep 3600 >/dev/null 2>&1 &');
    assert.ok(instance.sandboxProcesses().length > 0);
    await instance.shutdown();
    const words = [instance.dataDir, ...instance.api.made, ...instance.api.purged];
    await until(() => {
      assert.deepEqual(instance.survivors(), []);
      assert.deepEqual(proc.mountLines('self', words), []);
      assert.deepEqual(instance.cgroups(), []);
      return true;
    }, { what: 'all is gone' });
    assert.deepEqual(instance.complaints(), []);
  });
}
