// SPDX-License-Identifier: Apache-2.0
// What is done to a daemon while clients use it. Each fault ends by itself; then the supervisor has what it needs to
// bring the daemon back.
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import * as proc from '../e2e/lib/proc.mjs';
import { fillDisk } from '../e2e/lib/small_disk.mjs';

const KI = 1024;

const kill = (pid, signal) => proc.quiet(() => process.kill(pid, signal));

/** Stops a process for a while, unless it ends meanwhile. */
async function suspend(info, ms) {
  if (!proc.isAlive(info)) return;
  kill(info.pid, 'SIGSTOP');
  await delay(ms);
  if (proc.isAlive(info)) kill(info.pid, 'SIGCONT');
}

/** The first process of one that runs, and its sandbox, which its cgroups name; null if there is none. */
function pickAgent(world, random) {
  const inits = world.instance.sandboxInits().sort((a, b) => a.pid - b.pid);
  if (inits.length === 0) return null;
  const info = random.pick(inits);
  return { info, ids: [...world.model.sandboxes.keys()].filter((id) => proc.groupsOf(info.pid).some((part) => part.includes(id))) };
}

export const FAULTS = {
  'kill the daemon': (world) => {
    kill(world.instance.daemon.pid, 'SIGKILL');
  },
  'kill the keeper': (world) => {
    world.model.loseAll();
    kill(world.instance.keeper.pid, 'SIGKILL');
  },
  'kill the daemon and the keeper': (world) => {
    world.model.loseAll();
    kill(world.instance.daemon.pid, 'SIGKILL');
    kill(world.instance.keeper.pid, 'SIGKILL');
  },
  'kill an agent': (world, random) => {
    const agent = pickAgent(world, random);
    if (!agent) return;
    // Groups of those that were built ahead are not named after a sandbox: it may be any.
    if (agent.ids.length === 1) world.model.sandboxes.get(agent.ids[0]).lose();
    else world.model.loseAll();
    kill(agent.info.pid, 'SIGKILL');
  },
  'stop the daemon for a while': (world, random) => suspend(world.instance.daemon, random.integer(100, 1000)),
  'stop the keeper for a while': (world, random) => suspend(world.instance.keeper, random.integer(100, 1000)),
  'stop an agent for a while': async (world, random) => {
    const agent = pickAgent(world, random);
    if (agent) await suspend(agent.info, random.integer(100, 1000));
  },
  'fill the disk for a while': async (world, random) => {
    const filler = path.join(world.instance.dataDir, 'filler');
    const left = random.pick([0, 0, 64 * KI, 1024 * KI, 16 * 1024 * KI]);
    const end = world.now() + random.integer(300, 2500);
    world.model.fillDisk();
    do {
      fillDisk(filler, left); // again, because what others free is to be taken too
      await delay(100);
    } while (world.now() < end);
    fs.rmSync(filler);
  },
};
