/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandlotd asks of the keeper: fixed structs over SOCK_SEQPACKET, one request at a time on
 * each connection, answered in order; the descriptors named below travel beside the answer.
 *
 * The keeper trusts only the peer's uid: it checks every field against its range, and no field is a
 * path. A request names a sandbox by its id, which the keeper only uses as the name of one
 * directory entry or cgroup.
 */
#pragma once

#include "base/err.h"
#include "base/log.h"
#include "wire/agent.h"
#include "wire/wall.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A keeper starts agents of its own build, so a new version of their frames is one of its own too. */
#define KEEPER_VERSION	    (2600 + AGENT_VERSION)
#define KEEPER_ID_LEN	    26 /* a lower-case ULID */
#define KEEPER_HOSTNAME_MAX 64
#define KEEPER_LIST_MAX	    64
#define KEEPER_SPARES_MAX   64
#define KEEPER_SLOT_COUNT   32000 /* uid ranges of 65536, the first at KEEPER_UID_FIRST */
#define KEEPER_SLOT_UNKNOWN UINT32_MAX
#define KEEPER_UID_FIRST    1000000u
#define KEEPER_UID_COUNT    65536u
#define KEEPER_MEMBERS_MAX  8 /* of a sandbox */

/* Whether a text begins with the id of a sandbox, followed by `end` or nothing. */
static inline bool keeper_is_id(const char *text, char end)
{
	return strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == KEEPER_ID_LEN &&
	       (text[KEEPER_ID_LEN] == '\0' || text[KEEPER_ID_LEN] == end);
}

/* Environment variable of the keeper: walls that may be missing, a number of bits (wire/wall.h). */
#define KEEPER_ALLOW_MISSING "ALLOW_MISSING"

enum keeper_kind {
	KEEPER_HELLO = 1, /* asks for the version, and may say how much is logged */
	KEEPER_BUILD, /* start it, with its directories; the answer carries the daemon's ends of a link
			     and of a control socket (wire/agent.h), and then the egress sockets if they
			     are open already.
			     It comes before the agent is ready: AGENT_HELLO on the link says that, and
			     an end of file that it failed, for which KILL then gives the reason */
	KEEPER_ADOPT,	      /* the same, the first two new, to a running agent */
	KEEPER_ISOLATED_EXEC, /* builds an isolated command in it; the answer carries the agent's end of the
			     socket to its init (wire/agent.h) before the isolated command is built */
	KEEPER_KILL, /* kill everything in it and wait until it is gone, but for its cgroups; an
			     unknown id is fine. wait_status, err and stats tell how it had ended before */
	KEEPER_FREEZE,
	KEEPER_THAW,
	KEEPER_STATS,
	KEEPER_USAGE,  /* bytes and files on disk; answered by a child, then the connection ends */
	KEEPER_LIST,   /* ids of sandboxes in its table, after `id` */
	KEEPER_STORED, /* ids that have directories on disk, after `id`, and their uid ranges */
	KEEPER_CLEAN, /* empty parts of a stopped sandbox: KEEPER_PART_*; then the connection ends */
	KEEPER_LIMIT,  /* give a running sandbox limits.memory_bytes, cpu_millis and pids, and the
			      weight that is_background says; refused if it holds more memory */
	KEEPER_RENAME, /* give a running sandbox another host name */
	KEEPER_RESIZE, /* give a running sandbox limits.disk_bytes, or with 0 a disk without a limit;
			      with growth_bytes no more than that beyond what is in use now */
	KEEPER_SHUTDOWN,       /* kill all sandboxes and exit */
	KEEPER_EGRESS_SOCKETS, /* the answer carries the sockets of enum keeper_egress_socket, which
			      are opened by the first such request */
	KEEPER_SOCKET,	       /* the answer carries a TCP socket in its network, not connected */
	KEEPER_OWNER, /* the uid range that its files belong to; answered by a child, then the
			     connection ends */
	KEEPER_CHECK, /* the answer carries the image of a stopped sandbox, open for reading and
			      writing, for the daemon's e2fsck, if its disk may not be mounted before; locked
			      until it is closed. Else count is 0. Answered by a child, then the
			      connection ends */
	KEEPER_FAILED, /* ids of running sandboxes whose disk failed, so that ext4 takes no more writes */
	KEEPER_SPARES, /* how many networks and disks without an owner the keeper has ready; 0 and 0
			      before the first such request */
	KEEPER_LAYER_WRITE, /* begins a layer of an image; the answer carries the daemon's end of the stream
			      to its writer (wire/layer.h). Answered by a child, then the connection ends */
	KEEPER_LAYER_COMMIT, /* the layer is whole: stacks may have it */
	KEEPER_LAYER_DROP,   /* remove a layer, whole or not; refused (KEEPER_LAYER_IN_USE) while a
			      stack has it */
	KEEPER_LAYER_LIST,   /* names of layers, or with is_stack of stacks, after `layer` */
	KEEPER_TREE_READ, /* the answer carries the daemon's end of the stream from a reader of files
			      (wire/layer.h). Answered by a child, then the connection ends */
	KEEPER_LAYER_SHOW, /* show a running sandbox what a layer has at KEEPER_LAYER_PLACE, there
			      and read-only. Answered by a child, then the connection ends */
	KEEPER_PROJECT_SHOW, /* show a running sandbox the files of a project at KEEPER_PROJECT_PLACE, there and
			      read-only. Answered by a child, then the connection ends */
	KEEPER_STACK_ADD, /* the next layer of a stack that is being made, from the uppermost down */
	KEEPER_STACK_COMMIT, /* the stack is whole: sandboxes may start from it */
	KEEPER_STACK_DROP,   /* remove a stack that no sandbox has */
	/* These are answered by a child, and then the connection ends; so is PLACE, by the keeper: */
	KEEPER_SNAPSHOT_TAKE, /* copy the disk of a sandbox, running or not; stats.disk_bytes is the size */
	KEEPER_SNAPSHOT_DROP, /* remove a snapshot */
	KEEPER_SNAPSHOT_LIST, /* ids of snapshots, after `snapshot` */
	KEEPER_SNAPSHOT_COPY, /* copy a snapshot for a sandbox in this uid range, which does not run;
				 of one that is temporary: take it */
	KEEPER_SNAPSHOT_PLACE, /* make that copy its disk, in the place of the one that it has */
	/* These two have no answer: */
	KEEPER_PREBUILD, /* build a sandbox without an owner in this uid range, and hold it for a
				 BUILD with the same range, profile and limits; unless a
				 sandbox runs in the range, or the disk pool is empty */
	KEEPER_DROP,	 /* end the sandbox without an owner in this uid range, if there is one */
};

/* The code of an error: the disk has to be checked (KEEPER_CHECK) before it can be mounted. */
#define KEEPER_UNCHECKED "disk_unchecked"

/* The code of an error: a stack has the layer. */
#define KEEPER_LAYER_IN_USE "layer_in_use"

#define KEEPER_PART_SYSTEM    1u /* the writable system layer: emptied */
#define KEEPER_PART_SCRATCH   2u /* agent_workspace and outputs: emptied */
#define KEEPER_PART_WORKSPACE 4u /* the whole workspace: removed */
#define KEEPER_PART_LAYER_DIR 8u /* the directory of the system layer: removed */

/* Which seccomp filter a sandbox has. Its template says which. */
enum keeper_profile {
	KEEPER_PROFILE_DEFAULT,
	KEEPER_PROFILE_BROWSER, /* may make the namespaces that a browser's own sandbox needs */
	KEEPER_PROFILE_STRICT, /* looks into no other process, and has TCP, UDP and unix sockets alone */
	KEEPER_PROFILE_COUNT,
};

/* How many descriptors every answer with a link has: the link and the control socket. */
#define KEEPER_LINK_FD_COUNT 2

/* The descriptors of KEEPER_EGRESS_SOCKETS, in this order; all are non-blocking and bound to every address. */
enum keeper_egress_socket {
	KEEPER_EGRESS_PROXY, /* listens on EGRESS_PROXY_PORT; an accepted socket's own address is the
				       destination of the client */
	KEEPER_EGRESS_DNS,   /* UDP, with IP_PKTINFO */
	KEEPER_EGRESS_DNS_STREAM, /* the same over TCP */
	KEEPER_EGRESS_SOCKET_COUNT,
};

/* The files that TREE_READ means. */
enum keeper_tree {
	KEEPER_TREE_SYSTEM,    /* what sandbox `id` has changed of what it was started from */
	KEEPER_TREE_WORKSPACE, /* of sandbox `id` */
	KEEPER_TREE_LAYER,     /* `layer`, of an image */
	KEEPER_TREE_CHANGES, /* names of SYSTEM beside those of `stack`, which it was started from */
	KEEPER_TREE_COUNT,
};

/* The name of a layer of an image, or of a stack of them: 64 hexadecimal digits. */
#define KEEPER_DIGEST_LEN  64
#define KEEPER_DIGESTS_MAX 24 /* of LAYER_LIST */

/* Where a sandbox sees a layer that is not part of what it started from. */
#define KEEPER_LAYER_PLACE "opt/dependencies"

/* Where the daemon keeps the files of a project, below the data directory, and where a sandbox sees them. */
#define KEEPER_PROJECT_FILES "state/projects/%s/files"
#define KEEPER_PROJECT_PLACE "workspace/project_files"
/* Where a sandbox with has_volumes, and every member, sees its durable directory. */
#define KEEPER_VOLUMES_PLACE "volumes"

/* The uid range of those who write layers; no sandbox has it. */
#define KEEPER_LAYER_SLOT (KEEPER_SLOT_COUNT - 1)

struct keeper_limits {
	uint64_t memory_bytes;
	uint64_t cpu_millis; /* thousandths of a core */
	uint64_t pids;
	uint64_t disk_bytes; /* 0: none */
};

struct keeper_request {
	uint32_t kind; /* enum keeper_kind */
	uint32_t slot; /* BUILD, CLEAN, PREBUILD, DROP, TREE_READ: which uid range */
	uint32_t parts;
	uint32_t profile;     /* BUILD, PREBUILD: enum keeper_profile */
	uint32_t leads_out;   /* BUILD, PREBUILD: it needs egress sockets */
	uint32_t has_files;   /* BUILD: it was built before; without its workspace it is refused */
	uint32_t has_volumes; /* BUILD, PREBUILD: it has a durable directory beside its workspace */
	uint32_t member; /* BUILD of a member: which one, from 1 on; its directories are named so */
	uint32_t spare_networks; /* SPARES: at most KEEPER_SPARES_MAX */
	uint32_t spare_disks;
	char id[KEEPER_ID_LEN + 1]; /* for LIST and STORED: list what sorts after it */
	/* BUILD of a member: the running sandbox whose network, uid range, disk and workspace it
	 * shares, and with which it ends; else "" */
	char primary[KEEPER_ID_LEN + 1];
	/* SNAPSHOT_*. TREE_READ: whose files, instead of those of sandbox `id`; or "" */
	char snapshot[KEEPER_ID_LEN + 1];
	char project[KEEPER_ID_LEN + 1]; /* PROJECT_SHOW */
	char hostname[KEEPER_HOSTNAME_MAX];
	char layer[KEEPER_DIGEST_LEN +
		   1]; /* LAYER_*, STACK_ADD, TREE_READ; LAYER_LIST: "" or a name */
	/* STACK_*; BUILD, TREE_READ: what it starts from, "": the host */
	char stack[KEEPER_DIGEST_LEN + 1];
	uint32_t index;		/* STACK_ADD: 0 is the uppermost */
	uint32_t tree;		/* TREE_READ: enum keeper_tree */
	uint32_t has_content;	/* TREE_READ: else names and times alone */
	uint32_t is_stack;	/* LAYER_LIST */
	uint32_t is_temporary;	/* SNAPSHOT_TAKE: it need not come to the host's disk; COPY */
	uint32_t is_background; /* LIMIT: others go first where processors are short */
	struct keeper_limits limits;
	uint64_t growth_bytes; /* RESIZE; 0: as much as its limit allows */
	uint32_t
		log_least; /* HELLO: one more than what is logged at least (enum log_level); 0: as before */
	struct log_subject subject; /* what the daemon does it for; both empty: nobody's request */
	uint32_t is_next;	    /* SNAPSHOT_TAKE: a new sandbox takes it next, as it is */
};

/*
 * The length of a SHUTDOWN, and of a HELLO that only asks: what follows is not sent, and is 0. All versions since 22
 * take requests of this length, so that a daemon can ask a keeper of another release for its version, and end it.
 * So what a version adds stands at the end of the struct.
 */
#define KEEPER_REQUEST_LEAST offsetof(struct keeper_request, log_least)
_Static_assert(KEEPER_REQUEST_LEAST == 408, "keepers of other releases could not be ended");

static inline size_t keeper_request_size(const struct keeper_request *request)
{
	bool is_for_all = request->kind == KEEPER_SHUTDOWN ||
			  (request->kind == KEEPER_HELLO && request->log_least == 0);

	return is_for_all ? KEEPER_REQUEST_LEAST : sizeof(*request);
}

struct keeper_stats {
	uint64_t memory_bytes;
	uint64_t memory_cache_bytes; /* of that, pages of files */
	uint64_t memory_peak_bytes;
	uint64_t memory_limit_bytes;
	uint64_t cpu_us;
	uint64_t pids;
	uint64_t pids_limit;
	uint64_t oom_kills;
	uint64_t disk_bytes;
	uint64_t disk_files;
	uint64_t disk_files_limit; /* 0: the disk has no limit, of bytes neither */
	/* the last process that the kernel killed because memory ran out; or empty */
	char oom_victim[48];
};

struct keeper_answer {
	int32_t result; /* 0, or -errno with err filled in */
	uint32_t version;
	uint32_t count;	     /* how many of ids or digests. CHECK: of descriptors */
	int32_t wait_status; /* KILL: how PID 1 had ended, if it had before; else -1 */
	/* Where egress sockets come along: all TCP comes there, also of programs that use no proxy */
	uint32_t is_transparent;
	/* OWNER: which uid range. BUILD: where a sandbox without an owner is held after it.
	 * KEEPER_SLOT_COUNT: none */
	uint32_t slot;
	struct keeper_stats stats;
	struct walls walls; /* BUILD, ADOPT: what it has or will have; else its build fails */
	struct err err;
	union {
		char ids[KEEPER_LIST_MAX]
			[KEEPER_ID_LEN + 1]; /* LIST, STORED, FAILED, SNAPSHOT_LIST */
		char digests[KEEPER_DIGESTS_MAX][KEEPER_DIGEST_LEN + 1]; /* LAYER_LIST */
	};
	/* STORED: the uid range of each; KEEPER_SLOT_COUNT: its files are still root's;
	 * KEEPER_SLOT_UNKNOWN: OWNER finds out, which takes longer */
	uint32_t slots[KEEPER_LIST_MAX];
};
