/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes sandboxes run. A driver knows nothing of HTTP, policy or the database; it gets what a
 * sandbox is, and returns a link to the agent inside, which is the same program with every driver.
 *
 * All functions block. start may take minutes; all others are to answer within seconds. Any thread
 * may call them. For one sandbox they are called one at a time, but for stats, usage, isolated,
 * dial, open_channel and open_egress_sockets, which any number of threads may call meanwhile.
 */
#pragma once

#include "base/err.h"
#include "model/sandbox/sandbox_record.h"
#include "model/template/template.h"
#include "wire/wall.h"

struct driver;

/*
 * What not every driver can do. A driver says what it can in driver.capabilities; the functions
 * of what it cannot may be NULL. core/engine/capability.h refuses a request that needs more.
 */
enum driver_capability {
	DRIVER_FREEZE,	      /* freeze */
	DRIVER_DISK_LIMIT,    /* start bounds what a sandbox writes by resources.disk_bytes */
	DRIVER_LIVE_RESIZE,   /* set_limits, resize */
	DRIVER_EGRESS_POLICY, /* open_egress_sockets: the daemon judges every connection out */
	DRIVER_ISOLATED_EXEC, /* isolated */
	DRIVER_ADOPT,	      /* adopt: sandboxes outlive the daemon, and the next takes them up */
	DRIVER_LAYERS,	      /* write_layer and what follows it: the daemon fetches images */
	DRIVER_SNAPSHOTS,     /* take_snapshot and what follows it */
	DRIVER_PROJECT_FILES, /* show_project */
	DRIVER_MEMBERS,	      /* start joins a sandbox to another: spec.joins */
	DRIVER_CAPABILITY_COUNT,
};

#define DRIVER_BIT(capability) (1u << (capability))

/* What people call it. */
const char *driver_capability_name(enum driver_capability capability);

enum driver_network {
	DRIVER_NETWORK_NONE,   /* a loopback alone */
	DRIVER_NETWORK_JUDGED, /* its egress sockets will be opened */
};

/* An image by the name and the digest of its manifest. */
struct driver_image {
	const char *reference; /* "" if it came as an archive */
	const char *digest;    /* "sha256:..."; "" if that is not known */
};

/* Something that a sandbox sees beside its own files. */
struct driver_mount {
	const char *source; /* what the driver resolves: a path of its host, the name of a volume */
	const char *place;  /* absolute, inside */
	bool is_read_only;
};

/*
 * What a sandbox is. All of it is borrowed, and the JSON objects hold strings. A driver that lists
 * sandboxes to others (containers, pods) labels them with the whole owner: organization, user,
 * project, session. What a driver needs beside this (uid ranges, names of pods) it finds by itself.
 * What it cannot do of this it refuses, as core/engine/capability.h does.
 *
 * Where a sandbox starts from: its stack of layers, which the daemon made of the image, with
 * DRIVER_LAYERS; without one, the files of the template.
 */
struct driver_spec {
	const char *id;
	const char *hostname;
	const char *template_name; /* of model/template/template.h, if it has no stack */
	const char *stack;	   /* of layers, that it starts from; "": the host's files */
	enum template_profile profile;
	struct driver_image image; /* what the stack was made of; both "" for none */
	const struct driver_mount *mounts;
	size_t mount_count;
	const struct owner *owner;
	const char *project; /* "" for none, as session */
	const char *session;
	const json_t *labels; /* of the owner's own; NULL for none, as env */
	const json_t *env;    /* what every command gets; the daemon gives it to each */
	enum driver_network network;
	/* Of a member: the running sandbox that it joins, else NULL. It shares network, workspace and
	 * disk with that one, has no disk limit of its own, and ends with it. Its files, which a number
	 * from 1 to DRIVER_MEMBERS_MAX names, are cleaned with those of that one. */
	const char *joins;
	unsigned member;
	bool has_volumes; /* it has a durable directory at DRIVER_VOLUMES_PLACE; every member has one */
	bool has_files; /* it was started before: ERR_CONFLICT, workspace_missing, if its workspace is gone */
	struct resources resources;
};

/* A link to the agent of a running sandbox. */
struct driver_link {
	int fd;		 /* the receiver's own; blocking */
	uint64_t number; /* no other link of this driver had it: names this run of the sandbox */
};

struct driver_stats {
	uint64_t cpu_us;
	uint64_t memory_bytes;
	uint64_t memory_held_bytes; /* of that, without files that the kernel could read again */
	uint64_t memory_peak_bytes;
	uint64_t memory_limit_bytes;
	uint64_t pids;
	uint64_t pids_limit;
	uint64_t oom_kills;
	/* the last process that the kernel killed because memory ran out; may be empty */
	char oom_victim[48];
};

struct driver_usage {
	uint64_t bytes;
	uint64_t files;
	uint64_t files_limit; /* 0: the disk is not limited, in bytes neither */
};

/* The egress sockets of a sandbox. They are non-blocking and the receiver's own; -1: not there. */
struct driver_egress_sockets {
	/* listens (wire/egress.h); an accepted socket's own address is the destination */
	int proxy_fd;
	int dns_fd;	     /* UDP, with IP_PKTINFO */
	int dns_stream_fd;   /* listens */
	bool is_transparent; /* all TCP comes to proxy_fd, also of programs that use no proxy */
};

/*
 * How a sandbox ended. One that dies by itself closes its link before its death can be seen, so a
 * stop cannot always tell whether it came first: it tells the wait status in either case.
 */
struct driver_end {
	bool ended;		  /* there was one, and what follows is known of its end */
	int wait_status;	  /* of its first process; SIGKILL if the stop ended it */
	struct err cause;	  /* why it could not be built; kind ERR_NONE if it could */
	struct driver_stats last; /* what it had used, if it was dead already */
};

/*
 * A start that takes long says how far it is: in a few words what it does now ("pulling layer 3 of
 * 7"), and how much of all is done in thousandths, or -1 if that is not known. Called on
 * the thread that called start or another, never after start returned; it does not block.
 */
struct driver_progress {
	void (*report)(void *arg, const char *step, int permille);
	void *arg;
};

/* Volumes go with SYSTEM and SCRATCH together, and with the workspace. */
#define DRIVER_PART_SYSTEM    1u /* the writable system layer, and those of its members */
#define DRIVER_PART_SCRATCH   2u /* agent_workspace and outputs */
#define DRIVER_PART_ALL	      4u /* every directory but the workspace and volumes */
#define DRIVER_PART_WORKSPACE 8u

/* Files that read_tree sends. */
enum driver_tree {
	DRIVER_TREE_SYSTEM, /* what a sandbox has changed of what it was started from, by its id */
	DRIVER_TREE_WORKSPACE,	     /* of a sandbox, by its id */
	DRIVER_TREE_LAYER,	     /* a layer, by its name */
	DRIVER_TREE_SNAPSHOT_SYSTEM, /* of a snapshot, by its id, as the first two */
	DRIVER_TREE_SNAPSHOT_WORKSPACE,
	DRIVER_TREE_CHANGES, /* of read_changes: of a sandbox */
	DRIVER_TREE_SNAPSHOT_CHANGES,
};

#define DRIVER_LAYER_PLACE   "/opt/dependencies"	/* of show_layer */
#define DRIVER_PROJECT_PLACE "/workspace/project_files" /* of show_project */

#define DRIVER_VOLUMES_PLACE "/volumes"
#define DRIVER_MEMBERS_MAX   8

#define DRIVER_PAGE	    64
#define DRIVER_LOCATION_MAX 128 /* of locate, with NUL */

/* Names of layers and stacks are hexadecimal digits. */
#define DRIVER_LAYER_NAME_LEN 64
#define DRIVER_LAYER_PAGE     24

/* The code of an error: the disk has to be checked first. */
#define DRIVER_UNCHECKED "disk_unchecked"

/* The code of an error: a stack has the layer. */
#define DRIVER_LAYER_IN_USE "layer_in_use"

/* The codes of an error of dial: nothing listens; what listens takes no connection at present. */
#define DRIVER_PORT_CLOSED "port_closed"
#define DRIVER_PORT_BUSY   "port_busy"

/* What a snapshot is taken for. */
enum driver_copy {
	DRIVER_COPY_KEPT,
	DRIVER_COPY_TEMPORARY,
	DRIVER_COPY_NEXT, /* temporary, and the next load takes it, for a new sandbox */
};

struct driver_ops {
	const char *name;

	/* Starts the sandbox and returns a link (wire/agent.h); the agent's hello says that it is
	 * up, with exactly these walls. A start that takes long reports its progress.
	 * ERR_CONFLICT if it runs already. */
	int (*start)(struct driver *driver, const struct driver_spec *spec,
		const struct driver_progress *progress, struct driver_link *ret_link,
		struct walls *ret_walls, struct err *err);

	/* Returns a new link to a running sandbox; ERR_NOT_FOUND if it does not run. */
	int (*adopt)(struct driver *driver, const char *id, struct driver_link *ret_link,
		struct walls *ret_walls, struct err *err);

	/* Prepares an isolated command: the agent's next AGENT_EXEC of this process number, with
	 * AGENT_EXEC_ISOLATED, runs in it. */
	int (*isolated)(struct driver *driver, const char *id, uint32_t process, struct err *err);

	/* Opens a stream of bytes to the agent of a running sandbox, for one purpose, which its
	 * first frame says (wire/agent.h); that has at most AGENT_CHANNEL_FIRST_MAX bytes. Waits
	 * for no sandbox; where agents are reached over a network (driver/remote), for that, and
	 * core/preview/port_watch.c, which calls this on the event loop, is to ask from a thread
	 * before there is such a driver. The stream is blocking. ERR_CONFLICT if this is not the
	 * link of the sandbox any more: another owner may have its id by now. */
	int (*open_channel)(struct driver *driver, const char *id, uint64_t link_number,
		const void *first, size_t len, int *ret_fd, struct err *err);

	/* Ends the sandbox, whatever state it is in, and returns when none of its processes
	 * runs. */
	int (*stop)(
		struct driver *driver, const char *id, struct driver_end *ret_end, struct err *err);

	int (*freeze)(struct driver *driver, const char *id, bool freeze, struct err *err);
	int (*stats)(struct driver *driver, const char *id, struct driver_stats *ret_stats,
		struct err *err);
	int (*usage)(struct driver *driver, const char *id, struct driver_usage *ret_usage,
		struct err *err);

	/* Changes memory, processor and process limits of a running sandbox. On a failure some may be
	 * the new ones. ERR_CONFLICT "memory_in_use" if it uses more memory than that. One in the
	 * background gets a small part of the processors where these are short, until it is set
	 * again. */
	int (*set_limits)(struct driver *driver, const char *id, const struct resources *resources,
		bool is_background, struct err *err);

	/* Gives a running sandbox another host name. NULL: it gets it with its next start. */
	int (*set_hostname)(
		struct driver *driver, const char *id, const char *hostname, struct err *err);

	/* Changes the disk limit of a running sandbox, or removes it where disks have none. With
	 * growth_bytes the disk gets at most that much beyond what it uses now. */
	int (*resize)(struct driver *driver, const char *id, uint64_t disk_bytes,
		uint64_t growth_bytes, struct err *err);

	/* Lists running sandboxes whose disk failed and takes no more writes: how many, at most
	 * DRIVER_PAGE. NULL: none. */
	int (*list_failed)(
		struct driver *driver, char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err);

	/* Empties or removes parts (DRIVER_PART_*) of a sandbox that does not run. */
	int (*clean)(struct driver *driver, const char *id, unsigned parts, struct err *err);

	/* Has a disk that cannot be mounted before (DRIVER_UNCHECKED) checked, and repaired if
	 * need be; its sandbox does not run. 0: it can be mounted now. ERR_CONFLICT,
	 * disk_damaged: it cannot be repaired. NULL: disks need no check. */
	int (*check_disk)(struct driver *driver, const char *id, struct err *err);

	/* Lists ids in order after `after`, at most DRIVER_PAGE: of running sandboxes, or of
	 * those that have files on disk. */
	int (*list)(struct driver *driver, bool stored, const char *after,
		char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err);

	/* Whether a sandbox has files on disk: 1 or 0. */
	int (*is_stored)(struct driver *driver, const char *id, struct err *err);

	/* For an operator who looks at files without a sandbox: where they are or whose, in words
	 * of the driver ("uid range 17", "volume s-01..."). ERR_NOT_FOUND if that is not known.
	 * NULL: there is nothing to tell. */
	int (*locate)(struct driver *driver, const char *id, char ret_text[DRIVER_LOCATION_MAX],
		struct err *err);

	/* Returns the egress sockets of a running sandbox, the same each time; no packet leaves
	 * it before the first call. */
	int (*open_egress_sockets)(struct driver *driver, const char *id,
		struct driver_egress_sockets *ret_sockets, struct err *err);

	/* Connects to a port on the loopback of a running sandbox, IPv4 first, and returns the
	 * stream, which is non-blocking. Fails as driver_explain_port() says if nothing listens
	 * there, or if no connection is taken within timeout_ms (0: at once). */
	int (*dial)(struct driver *driver, const char *id, uint16_t port, int timeout_ms,
		int *ret_fd, struct err *err);

	/* Begins to write a layer of an image, by name (64 hexadecimal digits): *ret_stream takes
	 * it (wire/layer.h). In the place of one that was not committed; -EEXIST if there is one.
	 * One thread at a time for a layer. */
	int (*write_layer)(
		struct driver *driver, const char *layer, int *ret_stream, struct err *err);
	int (*commit_layer)(struct driver *driver, const char *layer, struct err *err);
	/* Removes one, committed or not; ERR_CONFLICT, DRIVER_LAYER_IN_USE, while a stack has it. */
	int (*drop_layer)(struct driver *driver, const char *layer, struct err *err);

	/* Lists committed layers, or stacks, in order after a name ("": from the first), at most
	 * DRIVER_LAYER_PAGE: how many. */
	int (*list_layers)(struct driver *driver, bool stacks, const char *after,
		char names[DRIVER_LAYER_PAGE][DRIVER_LAYER_NAME_LEN + 1], struct err *err);

	/* Sends files with their content, or only names and times, over *ret_stream, which is
	 * blocking (wire/layer.h). Those of a sandbox that runs may change meanwhile.
	 * ERR_NOT_FOUND; DRIVER_UNCHECKED as start. */
	int (*read_tree)(struct driver *driver, enum driver_tree tree, const char *name,
		bool has_content, int *ret_stream, struct err *err);

	/* Sends the names of what a sandbox or a snapshot has changed (DRIVER_TREE_*CHANGES), with
	 * what it hides, beside what it was started from: a stack, "" the host's files. Else as
	 * read_tree. With DRIVER_LAYERS. */
	int (*read_changes)(struct driver *driver, enum driver_tree tree, const char *name,
		const char *stack, int *ret_stream, struct err *err);

	/* Shows a running sandbox what a layer has at DRIVER_LAYER_PLACE, there and read-only, in
	 * the place of what was shown before. It stays until the sandbox stops. */
	int (*show_layer)(
		struct driver *driver, const char *id, const char *layer, struct err *err);

	/* Shows a running sandbox the files of a project, by its id, at DRIVER_PROJECT_PLACE, read-only and without a
	 * copy: what comes and goes later is seen too. It stays until the sandbox stops. */
	int (*show_project)(
		struct driver *driver, const char *id, const char *project, struct err *err);

	/* Makes a stack of layers, the uppermost first, by name; no error if it is there. */
	int (*stack_layers)(struct driver *driver, const char *stack, const char *const layers[],
		size_t count, struct err *err);
	/* Removes one that no sandbox has, but not its layers. */
	int (*drop_stack)(struct driver *driver, const char *stack, struct err *err);

	/* Keeps a copy of all files of a sandbox, running or not, under the id of a new snapshot; its
	 * writers wait meanwhile. *ret_bytes is what that takes of the host's disk. The copy outlives
	 * the sandbox and, unless it is temporary, a moment later a failure of power, too; one that
	 * comes before takes the whole copy. A failure leaves nothing. */
	int (*take_snapshot)(struct driver *driver, const char *id, const char *snapshot,
		enum driver_copy copy, uint64_t *ret_bytes, struct err *err);
	/* Gives a sandbox that does not run the files of a snapshot, in the place of all that it has;
	 * with `takes` the snapshot may be used up. On failure it has those. ERR_CONFLICT,
	 * snapshot_missing: there is no such snapshot. */
	int (*load_snapshot)(struct driver *driver, const char *id, const char *snapshot,
		bool takes, struct err *err);
	/* Lists the ids of snapshots in order after one, at most DRIVER_PAGE: how many. */
	int (*list_snapshots)(struct driver *driver, const char *after,
		char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err);
	/* Removes one; no error if there is none. */
	int (*drop_snapshot)(struct driver *driver, const char *snapshot, struct err *err);

	/* Whether the driver can serve now: 0, or ERR_UNAVAILABLE with the reason. Does not
	 * block. NULL: it always can. */
	int (*check)(struct driver *driver, struct err *err);

	/* A descriptor that can be read once the driver is lost for good, so that only a new
	 * daemon can serve sandboxes again. NULL: that does not happen. */
	int (*gone_fd)(struct driver *driver);

	/* Ends all sandboxes and the driver's own helpers. */
	int (*shutdown)(struct driver *driver, struct err *err);

	void (*close)(struct driver *driver);
};

/* Embedded first in each driver's own struct. */
struct driver {
	const struct driver_ops *ops;
	unsigned capabilities; /* DRIVER_BIT */
};

static inline bool driver_can(const struct driver *driver, enum driver_capability capability)
{
	return driver->capabilities & DRIVER_BIT(capability);
}

/* Explains a failed connection to a port by its -errno: -ETIMEDOUT means busy, all else closed. */
int driver_explain_port(const char *id, uint16_t port, int negative_errno, struct err *err);

/* For a start that wants to report its progress; nothing happens if nobody listens. */
static inline void driver_report(
	const struct driver_progress *progress, const char *step, int permille)
{
	if (progress && progress->report)
		progress->report(progress->arg, step, permille);
}

static inline int driver_gone_fd(struct driver *driver)
{
	return driver->ops->gone_fd ? driver->ops->gone_fd(driver) : -1;
}

static inline int driver_check(struct driver *driver, struct err *err)
{
	return driver->ops->check ? driver->ops->check(driver, err) : 0;
}

/* The code of a call's error if the driver served nobody then. check() may tell that a moment later. */
#define DRIVER_SERVES_NOBODY "keeper_unavailable"

/* Gives a running sandbox the name that its owner gave it. Nothing happens for "", or where it comes with the next start. */
int driver_give_name(struct driver *driver, const char *id, const char *name, struct err *err)
	must_check;
