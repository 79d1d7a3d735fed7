// SPDX-License-Identifier: Apache-2.0
// What the host's /proc and cgroup trees say about one instance of the daemon. Nothing here is asked
// of the daemon itself: these are the outside effects that the tests assert.
import fs from 'node:fs';
import path from 'node:path';

const NAMESPACES = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'];

/** fn(), or fallback when the process or file has just gone. */
export function quiet(fn, fallback) {
  try {
    return fn();
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'ENOTDIR', 'EINVAL', 'ENODEV'].includes(error.code)) return fallback;
    throw error;
  }
}

const statBytes = Buffer.alloc(4096);

/** One read of a file that is short, into the same bytes each time: whoever looks at all processes does it a thousand times. */
function readStat(pid) {
  const fd = fs.openSync(`/proc/${pid}/stat`);
  try {
    return statBytes.latin1Slice(0, fs.readSync(fd, statBytes));
  } finally {
    fs.closeSync(fd);
  }
}

/** { pid, ppid, comm, state, start } of a process, or null when it is gone. */
export function processInfo(pid) {
  const stat = quiet(() => readStat(pid), null);
  if (!stat) return null;
  const close = stat.lastIndexOf(')');
  const rest = stat.slice(close + 2).split(' ', 20);
  return { pid, comm: stat.slice(stat.indexOf('(') + 1, close), state: rest[0], ppid: Number(rest[1]), start: rest[19] };
}

/** True while this very process (not a later one with its number) is there and not a zombie. */
export function isAlive({ pid, start }) {
  const now = processInfo(pid);
  return now !== null && now.start === start && now.state !== 'Z' && now.state !== 'X';
}

export function allProcesses() {
  return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map((name) => processInfo(Number(name))).filter(Boolean);
}

/** The descendants of the given pids. */
export function descendants(roots) {
  const all = allProcesses();
  const found = new Map();
  let frontier = new Set(roots);
  while (frontier.size) {
    const next = new Set();
    for (const info of all) {
      if (frontier.has(info.ppid) && !found.has(info.pid) && !roots.includes(info.pid)) {
        found.set(info.pid, info);
        next.add(info.pid);
      }
    }
    frontier = next;
  }
  return [...found.values()];
}

export const cmdline = (pid) => quiet(() => fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').join(' ').trim(), '');
export const environ = (pid) => quiet(() => fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0'), []);
export const descriptors = (pid) => quiet(() => fs.readdirSync(`/proc/${pid}/fd`), []);
export const descriptorTargets = (pid) => descriptors(pid).map((fd) => quiet(() => fs.readlinkSync(`/proc/${pid}/fd/${fd}`), '')).filter(Boolean);
/** The same with sockets told apart, for messages: "socket:[5] tcp 0100007F:8AE2 state 01". */
export function descriptorNames(pid) {
  const sockets = new Map();
  for (const table of ['tcp', 'tcp6', 'unix']) {
    for (const line of quiet(() => fs.readFileSync(`/proc/${pid}/net/${table}`, 'latin1'), '').split('\n').slice(1)) {
      const words = line.trim().split(/\s+/);
      if (table === 'unix') sockets.set(words[6], `unix type ${words[4]} ${words[7] ?? ''}`);
      else sockets.set(words[9], `${table} peer ${words[2]} state ${words[3]}`);
    }
  }
  return descriptorTargets(pid).map((target) => {
    const kind = sockets.get(/^socket:\[(\d+)\]$/.exec(target)?.[1]);
    return kind ? `${target} ${kind}` : target;
  });
}

export const threads = (pid) => quiet(() => fs.readdirSync(`/proc/${pid}/task`).length, 0);
/** What the threads of a process are called: those that have no name of their own, as the process. */
export const threadNames = (pid) => quiet(() => fs.readdirSync(`/proc/${pid}/task`), [])
  .map((tid) => quiet(() => fs.readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trim(), '')).filter(Boolean);
export const namespace = (pid, kind) => quiet(() => fs.readlinkSync(`/proc/${pid}/ns/${kind}`), '');

/** A field of /proc/PID/status, as text. */
export function statusField(pid, name) {
  const text = quiet(() => fs.readFileSync(`/proc/${pid}/status`, 'latin1'), '');
  return new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(text)?.[1] ?? '';
}

/** Resident memory in bytes. */
export const residentBytes = (pid) => Number(/^(\d+)/.exec(statusField(pid, 'VmRSS'))?.[1] ?? 0) * 1024;

/** Whether the process is PID 1 of a PID namespace below the host's. */
export function isSandboxInit(pid) {
  const ids = statusField(pid, 'NSpid').split(/\s+/);
  return ids.length > 1 && ids.at(-1) === '1';
}

/** Distinct namespaces (inode names) among the processes, and those held open by descriptors of `holders`. */
export function namespacesOf(pids, holders = []) {
  const found = new Set();
  for (const pid of pids) for (const kind of NAMESPACES) found.add(namespace(pid, kind));
  for (const pid of holders) for (const target of descriptorTargets(pid)) if (NAMESPACES.includes(/^([a-z]+):\[\d+\]$/.exec(target)?.[1])) found.add(target);
  found.delete('');
  return found;
}

export function mountLines(pid, words) {
  const lines = quiet(() => fs.readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n').filter(Boolean), []);
  return words ? lines.filter((line) => words.some((word) => line.includes(word))) : lines;
}

/** All cgroup directories below /sys/fs/cgroup, in every hierarchy. */
export function cgroupDirs(root = '/sys/fs/cgroup') {
  const found = [];
  const walk = (dir) => {
    for (const entry of quiet(() => fs.readdirSync(dir, { withFileTypes: true }), [])) {
      if (!entry.isDirectory()) continue;
      const full = path.join(dir, entry.name);
      found.push(full);
      walk(full);
    }
  };
  walk(root);
  return found;
}

/** The parts of a process's cgroup paths, in every hierarchy. */
export const groupsOf = (pid) => quiet(() => fs.readFileSync(`/proc/${pid}/cgroup`, 'utf8'), '').split(/[/\n]/);

/** Those of them that carry our prefix ("sandlot-..."). */
export const cgroupNames = (pid) => new Set(groupsOf(pid).filter((part) => part.startsWith('sandlot')));

/** What is stored in sandboxes/ or workspaces/: entries named after an id, also when they are spread over buckets. */
export function stored(dir) {
  const isId = (name) => /[0-9a-z]{26}/.test(name);
  return entries(dir).flatMap((name) => (isId(name) ? [name] : entries(path.join(dir, name)).filter(isId)));
}

export const entries = (dir) => quiet(() => fs.readdirSync(dir).sort(), []);
