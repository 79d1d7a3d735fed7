// SPDX-License-Identifier: Apache-2.0
// What is different when an ordinary user starts the daemon, and which tests say so by asserting what
// only root can have. They are left out of a run without root; rootless.test.mjs asserts what holds
// in their place, and that SECURITY.md has a row for each difference.
//
// As a program it prints the pattern of names for node's test runner: all but those below.
import { fileURLToPath } from 'node:url';

/** A test is named as a whole, or by a part that a family of tests has in common. */
export const DIFFERENCES = [
  {
    what: 'keeper', // daemon and keeper are the same user
    tests: ['the daemon has dropped root and every capability, and the keeper is another process'],
  },
  {
    what: 'memory', // an ordinary user may lack it unless the operator says otherwise
    tests: ['where a wall is missing every build is refused, with its name and what to do', 'unless the operator allowed it by name; then the sandbox says so'],
  },
  {
    what: 'isolate',
    isSolvedByCgroups: true,
    tests: [
      /two isolated commands of \w+ can neither see nor signal nor trace each other/,
      /is told as ever, in every form/,
      'it sees its own processes and nobody else',
      'its /tmp is empty, its own, and gone with it',
      'its /tmp has a limit of bytes and of files',
      'it can write to the workspace and to nothing else of the disk, as root too',
      'it shares no memory, queue or semaphore with others',
      'terminals of others are not in its /dev/pts',
      'what is masked, the view of its machine, limits, users, network and name are those of the sandbox',
      'limits of shared memory are those of the sandbox, and nobody sets them, as root neither',
      'nobody in it meddles with its PID 1, and nobody outside with what it holds',
      'all that it started ends with it',
      'a directory that it cannot enter is the same error as ever',
      'input, output, environment and a large argument reach it',
      'one in the background is fed, signalled and killed',
      'a terminal works in it',
      'what the profile refuses is refused there, and told',
      'its profile is that of the sandbox',
      '/proc tells nothing of neighbours or their devices, in an isolated command either',
      'memory and processes count against the sandbox',
      'it is paused and resumed with its sandbox, outlives the daemon, and ends with the sandbox',
      'a stop gives it the time to end by itself',
      'a sandbox that spoils the places of a cell only spoils its own',
      'while a cell is built nobody inside sees anything of the host',
      'many at a time',
      'sandlot exec --isolate does it, plain, with -i and with -d',
      'whoever listens is found: children, root, and those in a cell',
    ],
  },
  {
    what: 'PID 1', // on v1 only root can move it into a group of its own
    tests: ['R11 memory that belongs to no process does not end the sandbox, however harmless its processes make themselves look'],
  },
  {
    what: 'kernel objects',
    tests: ['R05 what one sandbox takes is not missing to another: what the kernel counts for each user'],
  },
  {
    what: 'disk',
    tests: [
      'all that a sandbox writes counts against one limit, for root too',
      'what others write does not count, and theirs is not full',
      'the number of files is limited, and one that has none left starts again',
      'the figures tell what is used, of how much, and whether it is enforced',
      'a PATCH changes the limit at once, of a running, paused or stopped sandbox',
      'a full sandbox stops, starts, resets and runs commands',
      'what is deleted inside comes back to the host',
      'the workspace stays on its disk over stop, delete, crash of the daemon and death of the keeper',
      'a kill of the keeper in the middle of many creates and deletes leaves no loop device',
      'a hundred lives leave as many loop devices and mounts as there were',
      'one that starts while its disk is still being unmounted waits for it',
      'helpers of the keeper have neither its listener nor its lock, do not end it, and are replaced when they end',
      'limits can be off; workspaces from then stay as they are, and new ones get theirs',
      'without loop devices nothing is built, unless that wall may be missing or no limits are wanted',
      'an image that a crash of the host left behind unclean is mended by its journal',
      'a command that fails on a full disk ends as disk_full',
      'statistics have every field and plausible numbers',
      'a create takes over the one that was built ahead, and the next is begun',
      'a group that was made before its sandbox had an id says whose it is from then on',
      'who asks for something else gets that',
      'a workspace that was kept comes with its create, not another',
      'it is on no list and no request reaches it',
      'it outlives the daemon, and the next daemon takes it',
      'many creates at once each get one of their own',
    ],
  },
  {
    what: 'memory',
    isSolvedByCgroups: true,
    tests: [
      'a command that takes more memory than the limit is ended, sandbox and daemon live on',
      /eats more memory than there is ends as oom, and the sandbox goes on/,
      'of two commands only the one that ran out of memory is told as oom',
      'R02 memory of every kind stops at the limit, and the host does not notice',
    ],
  },
  {
    what: 'processor',
    isSolvedByCgroups: true,
    tests: ['the CPU limit holds', 'R10 eighty slow listings of one sandbox keep waiting neither others, nor its owner elsewhere, nor its end'],
  },
  {
    what: 'processes',
    isSolvedByCgroups: true,
    tests: ['a command that fails for want of processes ends as pids_limit'],
  },
  {
    what: 'pause',
    isSolvedByCgroups: true,
    tests: [
      'start and stop, pause and resume may be repeated',
      'the answer of each life cycle call is the sandbox in its new state',
      'pause freezes every process, resume lets it go on',
      'exec and files on a paused sandbox are 409 and leave it paused',
      'a paused sandbox can be stopped, deleted, purged',
      'reset of a stopped sandbox leaves it stopped, and of a paused one ends in a state that it names',
      'stop, start, pause, resume, reset, rm and purge do what they say',
      'a paused sandbox tells of its processes and freezes them',
      'the token, labels, timeouts, environment and order of rows survive a crash',
      'a pause that was cut in two by a crash is finished or undone, and its processes live on',
      'two crashes while a sandbox is paused neither wake nor harm its processes',
      'a sandbox that floods its agent with refused calls can be paused, resumed and used',
      'a paused one goes on',
      'an archive that is refused is answered when its half file is gone, not before',
      'ports of a paused sandbox are not known, and do not close',
      'it runs once after each start: by hand, by use, and after a reset; a pause leaves it as it is',
      'while it is paused nothing is run again; that is made up for when it goes on',
    ],
  },
  {
    what: 'commands', // each has a cgroup of its own, where there are any
    isSolvedByCgroups: true,
    tests: [
      'kill --main-only spares what it started; ps shows that and kill ends it',
      'what a failed one leaves behind is ended before it is run again',
      'two hundred starts and kills of whole trees leave nothing behind either',
      'a process that wrote nothing, and one whose output was answered, have an empty output',
      'a signal reaches the main process alone, or with kill_tree all that it started',
      'SIGKILL takes the tree along unless told otherwise',
      'kill ends the process and all it started before it answers',
      'kill with kill_tree=false ends the main process alone, and a second kill what it left',
      'a daemon that a foreground command left lives on, is listed, and can be ended',
      'survivors that end by themselves are no longer counted',
      'a timeout ends what daemonised itself too, in foreground and background',
      'a timeout with kill_tree false ends the main process alone',
      'an exec ends when its main process ends although an orphan holds its output',
      /a client that goes away ends its \S+ command with its tree/,
      'bad bodies and queries are 400, name their field, and change nothing',
      'a timeout is kept by whichever daemon is there when it is due, and by the next if none is',
      'a daemon that a foreground command left is listed after a crash and can be ended',
      'the processor time of a command is that of all it started',
      'whoever left its session is known by the process it came of, also when that has ended',
      'counts are exact, over threads, children and sessions',
      'R09 a timeout ends all that a command became: deaf, stopped, forked twice, in another session',
    ],
  },
  {
    what: 'view',
    isSolvedByCgroups: true,
    tests: [
      '/proc/meminfo, free, top, python and node tell the memory of the sandbox',
      'control groups tell the limits, where programs look for them',
      'every group that /proc/self/cgroup names lies below a mount that shows it',
      'no file of a control group can be written, nor a group made, moved or removed, also as root',
      'nothing of another sandbox is visible in the control groups or in /sys',
      'the files are read-only, as is all of /sys',
      'memory that a process allocates is used at the next look',
      'a program that keeps the files open sees them change',
      'many readers at once all read whole files',
      "/proc/stat counts the time of the sandbox, and boot is the host's",
      'the view is the same after stop and start, pause and resume, and a crash of the daemon',
    ],
  },
];

const escaped = (name) => `^${name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}$`;

/** The pattern that all tests match but those that only root, or only who has cgroups, can pass. */
export function pattern(hasCgroups) {
  const left = DIFFERENCES.filter(({ isSolvedByCgroups }) => !(hasCgroups && isSolvedByCgroups));
  const names = left.flatMap(({ tests }) => tests).map((name) => (name instanceof RegExp ? `.*${name.source}` : escaped(name)));
  // A test runs if what it is part of matches, and all are part of the root.
  return `/^(?!<root>$|${names.join('|')})/`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(pattern(Boolean(process.env.E2E_DELEGATED)));
