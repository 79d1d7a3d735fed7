/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandlotd and the agent say to each other.
 *
 * With a keeper, over five sockets, all unix stream or seqpacket sockets:
 *
 *   lifeline  keeper <-> agent, SOCK_SEQPACKET, descriptor AGENT_LIFELINE_FD. The keeper sends one
 *             byte AGENT_LINK with two descriptors: the agent's ends of a new link and a new control
 *             socket, which replace those it had; or AGENT_BIND with a cpu_set_t behind it, to which
 *             commands that start from now on are bound, or with nothing: they are bound to none.
 *             An end of file on the lifeline means that the keeper is gone: exit.
 *   control   daemon -> agent, SOCK_SEQPACKET, struct agent_control with one descriptor each. Only
 *             where the daemon can pass descriptors; all other sockets carry bytes alone.
 *   link      daemon <-> agent, SOCK_STREAM, frames of the kinds below. An end of file means that
 *             the daemon is gone: go on, keep what was not acknowledged, wait for the next link.
 *   channel   daemon <-> one helper process of the agent, SOCK_STREAM, one for each request. Its
 *             first frame, AGENT_FILE or AGENT_PORTS, says what it is for, and is there, whole,
 *             when the agent gets its end over the control socket.
 *   isolated  agent <-> isolated init, SOCK_STREAM, one for each isolated command: see
 *             AGENT_EXEC_ISOLATED.
 *
 * An agent that is started as an ordinary container's first process has no lifeline, control or
 * isolated sockets: with the arguments AGENT_LISTEN and a port or a path, and the secret of the
 * sandbox as AGENT_SECRET in its environment, it listens for links and channels, which begin as
 * wire/proof.h says. A new link replaces the one before. SIGTERM from outside ends it.
 *
 * Each side closes a link on which it receives a frame that it cannot parse.
 *
 * Processes are named by 32-bit ids that the daemon chooses and never uses twice for one sandbox.
 * Every output byte of a process has an offset, counted over its streams together in the order
 * in which the agent read them. The agent sends at most AGENT_OUTPUT_WINDOW bytes beyond what was
 * acknowledged and then stops reading the command's pipes, so a slow reader slows the command
 * instead of growing the memory of a program. Standard input has the same window in the other direction.
 *
 * Each command runs in a control group of its own, below the sandbox's, whose directory is descriptor
 * AGENT_GROUP_FD. All descendants of the command are in it, however often they fork or make sessions: so
 * a signal can reach the whole tree, and the agent knows how many are left when the command has ended.
 */
#pragma once

#include <stdint.h>

#define AGENT_VERSION	  11
#define AGENT_LIFELINE_FD 3
#define AGENT_GROUP_FD	  4 /* the sandbox's directory on the v2 cgroup tree; not open if none */
#define AGENT_MEMINFO_FD  5 /* the file that is /proc/meminfo inside; the agent writes it */
#define AGENT_STAT_FD	  6 /* likewise /proc/stat */
#define AGENT_OOM_FD	  7 /* the agent's oom_score_adj, which it could not open by itself */
#define AGENT_WORK_FD	  8 /* `tasks` of the group whose memory is limited; not if it is in it */
#define AGENT_DENIALS_FD  9 /* listener of the seccomp filter; not there if the keeper has none */
#define AGENT_FDS_END	  10
#define AGENT_CPUS	  "CPUS" /* environment variable: processors that commands are bound to */
#define AGENT_LISTEN                                                                               \
	"listen" /* argument: no keeper started it, and the next says where it listens */
#define AGENT_SECRET "SANDLOT_AGENT_SECRET" /* its environment: see wire/proof.h */
#define AGENT_LINK   'L'
#define AGENT_BIND   'B' /* beside the link: see the lifeline */
#define AGENT_ISOLATED_INIT                                                                        \
	"isolated-init" /* argument: it is PID 1 of an isolated command, with its socket as lifeline */
#define AGENT_GROUPS_MAX	64	       /* that a user is in besides its own */
#define AGENT_DOWN_MAX		(1280u * 1024) /* payload of a frame to the agent */
#define AGENT_CHANNEL_FIRST_MAX (32u * 1024)   /* the first frame of a channel, with its header */
#define AGENT_UP_MAX		(128u * 1024)  /* payload of a frame from the agent */
#define AGENT_OUTPUT_WINDOW	(1024u * 1024)
#define AGENT_OUTPUT_CHUNK                                                                         \
	(64u * 1024 - 25) /* most bytes in one AGENT_OUTPUT: with its heads it is 64 KiB */
#define AGENT_STDIN_WINDOW  (64u * 1024)
#define AGENT_ARGS_MAX	    4096 /* arguments, and environment strings, of one command */
#define AGENT_PATH_MAX	    4096 /* with its NUL */
#define AGENT_PROCESSES_MAX 4096 /* alive or not yet forgotten, in one sandbox */
#define AGENT_DENIED_MAX    16	 /* different system calls in one AGENT_EXITED */
#define AGENT_PORTS_MAX	    128	 /* listeners in one answer to AGENT_PORTS */
#define AGENT_NAME_MAX	    15	 /* bytes of a program's name, as the kernel keeps it */

enum agent_msg {
	/* daemon -> agent */
	AGENT_ATTACH = 1,  /* first frame of each link: u32 version. Answered by AGENT_HELLO */
	AGENT_EXEC,	   /* id: struct of agent_exec fields, see below */
	AGENT_STDIN,	   /* id: bytes */
	AGENT_STDIN_CLOSE, /* id: empty; end of file for the command once all bytes are written */
	AGENT_SIGNAL,	   /* id: u32 signal, u8 whole tree (else the main process only) */
	AGENT_RESIZE,	   /* id: u16 columns, u16 rows; of a command with a terminal */
	AGENT_ACK,	   /* id: u64 offset up to which output was taken */
	AGENT_FORGET,	   /* id: empty; its exit was recorded: drop all but its group, which can be
			      signalled for as long as a process is in it */
	AGENT_FILE,	   /* of a channel; id 0: u8 enum agent_file_op, then its arguments */
	AGENT_SHUTDOWN, /* u32 grace in ms: SIGTERM to all, wait, exit (the kernel kills the rest) */
	AGENT_PORTS, /* of a channel; id 0: u64 digest of the listeners that the daemon knows of, 0
			   for none */
	AGENT_USAGE, /* id: empty; answered by AGENT_USED while the agent has the id */

	/* agent -> daemon */
	AGENT_HELLO = 64, /* u32 version, u32 count, count times u32 id: processes it still has */
	AGENT_STARTED,	  /* id: u32 pid as seen in the sandbox; repeated on each new link */
	AGENT_FAILED, /* id: u8 enum agent_stage, u32 errno: it never ran; no other frame follows */
	AGENT_OUTPUT, /* id: u64 offset of its first byte, u8 1 stdout, 2 stderr or 3 result, u32
			 ms since the agent read them (a daemon may have been away meanwhile), bytes */
	AGENT_STDIN_ACK, /* id: u64 bytes of standard input the command's pipe has taken, u64 bytes
			    that came from the daemon; repeated on each new link */
	AGENT_SURVIVORS, /* id: u32 how many processes its group still has after the main process
			    ended. Before AGENT_EXITED if there are any, and again on each new link;
			    0 when the last is gone, and then the id is forgotten */
	AGENT_EXITED, /* id: struct of agent_exited fields, see below. After all AGENT_OUTPUT of the
			    id; repeated on each new link until AGENT_FORGET */
	AGENT_USED,   /* id: u64 cpu us of its group so far; 0 where commands have no groups */
};

enum agent_control_kind {
	AGENT_CONTROL_CHANNEL = 1, /* the agent's end of a channel */
	AGENT_CONTROL_ISOLATED,	   /* the socket of an isolated command: AGENT_EXEC_ISOLATED */
};

struct agent_control {
	uint32_t kind; /* enum agent_control_kind */
	uint32_t
		number; /* ISOLATED: the id of the AGENT_EXEC that it is for, which comes after it */
};

/*
 * AGENT_EXITED: u32 wait status, u64 end offset, u64 cpu us of its group, u64 peak memory bytes (of the
 * largest process that was waited for), u64 duration us, u32 times the kernel killed a process of the
 * sandbox for want of memory while it ran, u32 times the kernel refused a fork at the limit of processes
 * while it ran, u32 flags (AGENT_EXITED_*), u32 count, count times (u32 number of a system call that the
 * seccomp filter refused to it, u32 how often); the first AGENT_DENIED_MAX different ones.
 */
#define AGENT_EXITED_DISK_FULL                                                                     \
	1u /* it failed, a file system it could write to has no room left, and it met that itself */
#define AGENT_EXITED_DISK_WAS_FULL 2u /* the same, but nothing says that it met that */
#define AGENT_EXITED_NO_NETWORK	   4u /* it failed, and said that it could not reach the network */

/*
 * AGENT_EXEC: u32 flags (AGENT_EXEC_*), u32 uid, u32 gid, u16 columns, u16 rows, str cwd,
 * u32 argc, str * argc, u32 envc, str * envc ("NAME=value"), u32 count, u32 * count: the groups that it
 * is in besides, at most AGENT_GROUPS_MAX. The command gets just this environment,
 * its own session and process group, no descriptor but 0-2, default signal handling. argv[0]
 * without a slash is looked up in the PATH of that environment.
 * Standard input is /dev/null unless AGENT_EXEC_STDIN. With AGENT_EXEC_PTY all three are a terminal of
 * columns x rows, which is the session's controlling one; its output is all stdout, AGENT_STDIN is what
 * is typed, and AGENT_STDIN_CLOSE types an end of file (^D). The exit of the main process is the exit:
 * what its pipes hold at that moment is still sent, a child that keeps them open is not waited for.
 */
#define AGENT_EXEC_STDIN 1u
#define AGENT_EXEC_PTY	 2u

/*
 * With AGENT_EXEC_RESULT, which goes with neither a terminal nor AGENT_EXEC_ISOLATED, descriptor 3 is a third pipe,
 * for what the command wants to say apart from its output. What it wrote to stdout and stderr before it
 * wrote a byte there has lower offsets than that byte.
 */
#define AGENT_EXEC_RESULT 8u

/*
 * With AGENT_EXEC_ISOLATED the control socket has brought a descriptor for this id before: the socket of an
 * isolated command that the keeper built, with a pid, mount and ipc namespace below the sandbox's. The command starts there, and all
 * its descendants end with it. The keeper has sent a struct err of kind ERR_NONE on the socket, with the
 * listener of the isolated command's filter beside it (if there is one). Then the agent and the isolated
 * init, which is PID 1 there, talk:
 *   agent  u32 length, the payload of AGENT_EXEC; with the first byte the descriptors 0, 1, 2 of the
 *          command and cgroup.threads of its group (if it has one)
 *   init   u32 enum agent_stage, u32 errno: it failed there, and that is the end; or 0, 0 with a pidfd
 *   agent  one byte, when it knows the pid
 *   init   u32 wait status, u64 peak memory bytes, when the command and all its descendants have ended
 */
#define AGENT_EXEC_ISOLATED 4u

enum agent_stage { AGENT_STAGE_SETUP = 1, AGENT_STAGE_CWD, AGENT_STAGE_EXEC };

/*
 * File requests. Each runs in a child process of its own, so that a slow disk, a FIFO or a hostile
 * tree never holds up PID 1. It runs as root of the sandbox. Paths are absolute, resolved with
 * openat2(RESOLVE_NO_MAGICLINKS) from "/". What it creates belongs to the owner of the nearest
 * parent directory that existed; where that is root and all users may enter it, to the user whom
 * commands of this sandbox run as, whose id stands behind the op: u8 op, u32 uid, arguments.
 *
 * Every answer on the channel is a struct agent_file_answer, packed in the order of its fields as
 * little-endian numbers, followed by target_len bytes of a symbolic link's target.
 *
 *  op       arguments                                   conversation on the channel
 *  STAT     str path                                    answer (of the link itself, not its target)
 *  READ     str path                                    answer; daemon: u64 offset, u64 length (or just
 *                                                       closes); then exactly length bytes. Only regular
 *                                                       files: others are EISDIR or EINVAL. A file that
 *                                                       shrank meanwhile ends the channel early.
 *  WRITE    str path, u32 mode (or AGENT_MODE_KEEP),    answer of the file that is there now (ENOENT is
 *           u64 size (or AGENT_SIZE_UNKNOWN)            no failure: errnum 0, kind AGENT_FILE_NONE);
 *                                                       daemon: chunks (u32 length, bytes), the last of
 *                                                       length 0; then a second answer, once the new
 *                                                       content has replaced the old at a single instant.
 *                                                       An end of file before the last chunk changes
 *                                                       nothing. Parents are created. A symbolic link at
 *                                                       the path is followed. A replaced file keeps owner
 *                                                       and mode unless a mode is given (new: 0644).
 *  LIST     str path, u32 depth (>= 1), u32 limit,      answer of the directory; then up to limit entries
 *           str after (relative path of the last entry  in byte order of the components of their relative
 *           of the page before, or "")                  path: u8 1, str relative path, answer; then u8 0,
 *                                                       u8 whether more entries exist. Memory is bounded by
 *                                                       limit, never by the directory. Symbolic links are
 *                                                       listed, not followed.
 *  MKDIR    str path, u32 mode                          answer; parents are created, an existing directory
 *                                                       is fine (flag EXISTED), anything else is EEXIST
 *  MOVE     str from, str to, u8 replace                answer of the moved thing; without replace an
 *                                                       existing `to` is EEXIST
 *  REMOVE   str path, u8 recursive                      answer; a directory without recursive is EISDIR if it
 *                                                       has entries. Never follows a link, never leaves a
 *                                                       mount, iterative however deep the tree is. "/" and
 *                                                       mount points are EBUSY.
 *  PACK     str path                                    answer; then the tree below it (or the one file) as
 *                                                       items, each directory before what is in it, names
 *                                                       relative; then a whole item AGENT_ITEM_END. An item:
 *                                                       u8 enum agent_item, u32 mode, u32 uid, u32 gid,
 *                                                       u64 mtime in ns, u64 size, str name, str target;
 *                                                       then for a file exactly size bytes (padded with
 *                                                       zeros if it shrank). Other kinds are left out.
 *  UNPACK   str path                                    answer of the directory, which is created if need be;
 *                                                       daemon: items as above (uid, gid ignored); after
 *                                                       AGENT_ITEM_END a second answer. Names are relative,
 *                                                       without "..", resolved with RESOLVE_BENEATH and no
 *                                                       symbolic link below the directory; a name that meets
 *                                                       one is refused (ELOOP). Existing files are replaced.
 *                                                       setuid, setgid and sticky bits are dropped. On the
 *                                                       first failure: the second answer with errnum set and
 *                                                       the offending name as target; what was written stays.
 *  WATCH    str path, u8 recursive                      answer of the directory or file; then changes as they
 *                                                       happen, until the daemon closes: u8 enum agent_change,
 *                                                       u8 enum agent_file_kind, str path relative to the
 *                                                       watched one ("" is itself), str to (of AGENT_MOVED).
 *                                                       After AGENT_CHANGE_LOST or AGENT_CHANGE_GONE the
 *                                                       sender may have missed some, or is at its end.
 *  PREPARE  str path of the workspace, str user         answer of the workspace, which the user owns now unless
 *           ("name", "1000", or both with ":group"),    that is root, as those directories that were missing
 *           str skeleton ("" for none), str             (flag EXISTED: nothing had to be done, and there is no
 *           directories, each in a line; behind a +     skeleton); u8 enum agent_user_fault, u32 uid, u32 gid,
 *           those that are to be in /volumes            u8 whether the skeleton is a directory, str home of the
 *                                                       user ("" if nothing says it), u32 count, u32 * count:
 *                                                       groups that the user is in besides. Where the user is
 *                                                       not found, nothing was changed.
 */
enum agent_file_op {
	AGENT_FILE_STAT = 1,
	AGENT_FILE_READ,
	AGENT_FILE_WRITE,
	AGENT_FILE_LIST,
	AGENT_FILE_MKDIR,
	AGENT_FILE_MOVE,
	AGENT_FILE_REMOVE,
	AGENT_FILE_PACK,
	AGENT_FILE_UNPACK,
	AGENT_FILE_WATCH,
	AGENT_FILE_PREPARE,
};

#define AGENT_DIRS_MAX (16u * 1024) /* bytes of the directories of PREPARE */

enum agent_user_fault { AGENT_USER_FOUND, AGENT_USER_UNKNOWN, AGENT_GROUP_UNKNOWN };

enum agent_change {
	AGENT_CREATED = 1,
	AGENT_MODIFIED, /* written to and closed, or its metadata changed */
	AGENT_DELETED,
	AGENT_MOVED,	   /* within the watched tree; into it is created, out of it deleted */
	AGENT_CHANGE_LOST, /* the kernel's queue overflowed: look at the tree again */
	AGENT_CHANGE_GONE, /* the watched directory or file is gone; nothing follows */
};

enum agent_file_kind {
	AGENT_FILE_NONE,
	AGENT_FILE_REGULAR,
	AGENT_FILE_DIRECTORY,
	AGENT_FILE_SYMLINK,
	AGENT_FILE_OTHER,
};

enum agent_item {
	AGENT_ITEM_END,
	AGENT_ITEM_FILE,
	AGENT_ITEM_DIRECTORY,
	AGENT_ITEM_SYMLINK,
	AGENT_ITEM_HARDLINK, /* target: name of an earlier item */
};

/*
 * AGENT_PORTS: a helper tells on the channel which TCP sockets listen in the sandbox, and ends: u64 digest
 * (never 0), u8 whether that is another than the daemon's, which is all if it is not; else u8 whether there
 * are more than it tells, u32 count (at most AGENT_PORTS_MAX), count times, with ports and then addresses
 * ascending and no two the same: 16 bytes address (of IPv4 as ::ffff:a.b.c.d), u32 port, u32 pid of the
 * first process that holds it (0: none was found), u32 id of the command that process came of (0: of none),
 * str its name (at most AGENT_NAME_MAX bytes, any). Nothing at all if no helper could be started.
 */

#define AGENT_MODE_KEEP	   UINT32_MAX
#define AGENT_SIZE_UNKNOWN UINT64_MAX
#define AGENT_FILE_EXISTED 1u /* flag: it was there before */

struct agent_file_answer {
	uint32_t errnum; /* 0, or why it failed; then all else but the target is 0 */
	uint8_t kind;	 /* enum agent_file_kind */
	uint8_t flags;	 /* AGENT_FILE_EXISTED */
	uint16_t target_len;
	uint32_t mode; /* permission bits */
	uint32_t uid;
	uint32_t gid;
	uint64_t size;
	uint64_t mtime_ns;
	uint64_t
		ctime_ns; /* when its content, its name or anything else of it last changed: nobody can set that */
	uint64_t inode;
};

#define AGENT_FILE_ANSWER_LEN 52
