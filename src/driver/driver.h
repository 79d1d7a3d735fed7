/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sandboxes are made to run. A driver knows nothing of owners, HTTP or the database; it gets ids
 * and limits, and gives back a link to the agent inside. All functions block, none takes long, and
 * they may be called from any thread (for one sandbox, from one at a time).
 */
#pragma once

#include "base/err.h"
#include "model/sandbox_record.h"
#include "model/template.h"
#include "wire/wall.h"

struct driver;

struct driver_spec {
	const char *id;
	const char *hostname;
	uint32_t slot;	    /* uid range */
	uint32_t next_slot; /* the one that a new sandbox after this will probably have */
	enum template_profile profile;
	bool leads_out; /* its exits will be opened */
	struct resources resources;
};

struct driver_stats {
	uint64_t cpu_us;
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes;
	uint64_t memory_limit_bytes;
	uint64_t pids;
	uint64_t pids_limit;
	uint64_t oom_kills;
	char oom_victim[48]; /* the last process that was killed for want of memory; may be empty */
};

struct driver_usage {
	uint64_t bytes;
	uint64_t files;
	uint64_t files_limit; /* 0: the disk is not limited, in bytes neither */
};

/* The way out of a sandbox. The sockets are non-blocking and the receiver's own; -1: not there. */
struct driver_exits {
	int proxy_fd; /* listens (wire/egress.h); an accepted socket's own address is the goal */
	int dns_fd;   /* UDP, with IP_PKTINFO */
	int dns_stream_fd;   /* listens */
	bool is_transparent; /* all TCP comes to proxy_fd, not only who asks for a proxy */
};

/* How a sandbox had ended before it was stopped. */
struct driver_end {
	bool ended;		  /* it was dead already */
	int wait_status;	  /* of its first process */
	struct err cause;	  /* why it could not be built; kind ERR_NONE if it could */
	struct driver_stats last; /* what it had used, if it was dead already */
};

#define DRIVER_PART_SYSTEM    1u /* the writable system layer */
#define DRIVER_PART_SCRATCH   2u /* agent_workspace and outputs */
#define DRIVER_PART_ALL	      4u /* every directory but the workspace */
#define DRIVER_PART_WORKSPACE 8u

#define DRIVER_PAGE 64

struct driver_ops {
	const char *name;

	/* Starts it and returns a link (wire/agent.h) at once; the agent's hello says when it is up, and
	 * that it is up with just these walls. */
	int (*start)(struct driver *driver, const struct driver_spec *spec, int *ret_link,
		struct walls *ret_walls, struct err *err);

	/* A new link to one that runs; ERR_NOT_FOUND if it does not. */
	int (*adopt)(struct driver *driver, const char *id, int *ret_link, struct walls *ret_walls,
		struct err *err);

	/* A cell for one isolated command in it: *ret_sock goes with AGENT_EXEC_CELL. NULL: none. */
	int (*cell)(struct driver *driver, const char *id, int *ret_sock, struct err *err);

	/* Ends it, whatever state it is in, and returns when nothing of it is left running. */
	int (*stop)(
		struct driver *driver, const char *id, struct driver_end *ret_end, struct err *err);

	int (*freeze)(struct driver *driver, const char *id, bool freeze, struct err *err);
	int (*stats)(struct driver *driver, const char *id, struct driver_stats *ret_stats,
		struct err *err);
	int (*usage)(struct driver *driver, const char *id, struct driver_usage *ret_usage,
		struct err *err);

	/* Changes the disk limit of one that runs, or takes it away where disks have none. */
	int (*resize)(struct driver *driver, const char *id, uint64_t disk_bytes, struct err *err);

	/* Empties or removes parts (DRIVER_PART_*) of one that does not run. */
	int (*clean)(struct driver *driver, const char *id, uint32_t slot, unsigned parts,
		struct err *err);

	/* Ids in order after `after`, at most DRIVER_PAGE: what it runs, or what it has on disk. */
	int (*list)(struct driver *driver, bool stored, const char *after,
		char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err);

	/* The way out of one that runs, the same each time; nothing leads out before the first call. */
	int (*open_exits)(struct driver *driver, const char *id, struct driver_exits *ret_exits,
		struct err *err);

	/*
	 * A TCP socket in the network of one that runs, not connected: its loopback is the sandbox's. For IPv6,
	 * and for IPv4 as ::ffff:127.0.0.1.
	 */
	int (*open_socket)(struct driver *driver, const char *id, int *ret_fd, struct err *err);

	/* Ends all sandboxes and the driver's own helpers. */
	int (*shutdown)(struct driver *driver, struct err *err);

	void (*close)(struct driver *driver);
};

/* Embedded first in each driver's own struct. */
struct driver {
	const struct driver_ops *ops;
};
