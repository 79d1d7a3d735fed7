/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandlotd asks of the keeper: fixed structs over SOCK_SEQPACKET, one request at a time on each
 * connection, answered in order; the descriptors named below travel beside the answer.
 *
 * The keeper believes nothing but the peer's uid: every field is checked against its range, and no
 * field is a path. A sandbox is named by its id, which the keeper only ever uses as the name of one
 * directory entry or cgroup.
 */
#pragma once

#include "base/err.h"
#include "wire/wall.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define KEEPER_VERSION	    7
#define KEEPER_ID_LEN	    26 /* a lower-case ULID */
#define KEEPER_HOSTNAME_MAX 64
#define KEEPER_LIST_MAX	    64
#define KEEPER_SLOT_COUNT   32000 /* uid ranges of 65536, the first at KEEPER_UID_FIRST */
#define KEEPER_UID_FIRST    1000000u
#define KEEPER_UID_COUNT    65536u

/* Whether a text begins with the id of a sandbox, and `end` or nothing follows. */
static inline bool keeper_is_id(const char *text, char end)
{
	return strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == KEEPER_ID_LEN &&
	       (text[KEEPER_ID_LEN] == '\0' || text[KEEPER_ID_LEN] == end);
}

/* Environment variable of the keeper: walls that may be missing, a number of bits (wire/wall.h). */
#define KEEPER_ALLOW_MISSING "ALLOW_MISSING"

enum keeper_kind {
	KEEPER_HELLO = 1, /* who are you? */
	KEEPER_BUILD, /* start it, with its directories; the answer carries the daemon's end of a link.
			     It comes before the agent is ready: AGENT_HELLO on the link says that, and
			     an end of file that it failed, for which KILL then gives the reason */
	KEEPER_ADOPT, /* a new link to a running agent */
	KEEPER_CELL,  /* a cell in it for one command; the answer carries the agent's end of the
			     cell's socket (wire/agent.h) before the cell is built */
	KEEPER_KILL,  /* kill everything in it, wait until it is gone, remove its cgroups; an
			     unknown id is fine. wait_status, err and stats tell how it had ended before */
	KEEPER_FREEZE,
	KEEPER_THAW,
	KEEPER_STATS,
	KEEPER_USAGE,  /* bytes and files on disk; answered by a child, then the connection ends */
	KEEPER_LIST,   /* ids of what it holds, from `after` on */
	KEEPER_STORED, /* ids that have directories on disk, from `after` on */
	KEEPER_CLEAN, /* empty parts of a stopped sandbox: KEEPER_PART_*; then the connection ends */
	KEEPER_RESIZE, /* give a running sandbox limits.disk_bytes, or with 0 a disk without a limit */
	KEEPER_SHUTDOWN, /* kill all sandboxes and exit */
	KEEPER_EXITS,	 /* the answer carries the sockets of the way out, KEEPER_EXIT_*, which is
			      made when it is first asked for */
	KEEPER_SOCKET,	 /* the answer carries a TCP socket in its network, not connected */
};

#define KEEPER_PART_SYSTEM    1u /* the writable system layer: emptied */
#define KEEPER_PART_SCRATCH   2u /* agent_workspace and outputs: emptied */
#define KEEPER_PART_WORKSPACE 4u /* the whole workspace: removed */
#define KEEPER_PART_LAYER_DIR 8u /* the directory of the system layer: removed */

/* What the system calls of a sandbox are judged by. Its template says which. */
enum keeper_profile {
	KEEPER_PROFILE_DEFAULT,
	KEEPER_PROFILE_BROWSER, /* may make the namespaces that a browser's own sandbox is made of */
	KEEPER_PROFILE_COUNT,
};

/* The descriptors of KEEPER_EXITS, in this order; all are non-blocking and bound to every address. */
enum keeper_exit {
	KEEPER_EXIT_PROXY, /* listens on EGRESS_PROXY_PORT; an accepted socket's own address is the
				       one that was asked for */
	KEEPER_EXIT_DNS,   /* UDP, with IP_PKTINFO */
	KEEPER_EXIT_DNS_STREAM, /* the same over TCP */
	KEEPER_EXIT_COUNT,
};

struct keeper_limits {
	uint64_t memory_bytes;
	uint64_t cpu_millis; /* thousandths of a core */
	uint64_t pids;
	uint64_t disk_bytes; /* 0: none. In HELLO: whether builds are going to have one */
};

struct keeper_request {
	uint32_t kind;	    /* enum keeper_kind */
	uint32_t slot;	    /* BUILD, CLEAN: which uid range */
	uint32_t next_slot; /* BUILD: the one that is likely to be next, to be built ahead */
	uint32_t parts;
	uint32_t profile;	    /* BUILD: enum keeper_profile */
	uint32_t leads_out;	    /* BUILD: EXITS will be asked for */
	char id[KEEPER_ID_LEN + 1]; /* for LIST and STORED: list what sorts after it */
	char hostname[KEEPER_HOSTNAME_MAX];
	struct keeper_limits limits;
};

struct keeper_stats {
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes;
	uint64_t memory_limit_bytes;
	uint64_t cpu_us;
	uint64_t pids;
	uint64_t pids_limit;
	uint64_t oom_kills;
	uint64_t disk_bytes;
	uint64_t disk_files;
	uint64_t disk_files_limit; /* 0: the disk has no limit, of bytes neither */
	char oom_victim[48]; /* the last process killed for want of memory, for people; or empty */
};

struct keeper_answer {
	int32_t result; /* 0, or -errno with err filled in */
	uint32_t version;
	uint32_t count;		 /* LIST, STORED: how many of ids */
	int32_t wait_status;	 /* KILL: how PID 1 had ended, if it had before; else -1 */
	uint32_t is_transparent; /* EXITS: all TCP comes there, not only who asks for a proxy */
	struct keeper_stats stats;
	struct walls
		walls; /* BUILD, ADOPT: what it was or is being built with; it fails otherwise */
	struct err err;
	char ids[KEEPER_LIST_MAX][KEEPER_ID_LEN + 1];
};
