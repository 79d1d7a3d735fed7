/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world for the tests of src/core: an engine on a real store in a temporary directory, with a
 * driver, and agents behind it, that are played here. The store can be told to fail (its functions
 * are wrapped by the linker, see meson.build), and so can every function of the driver.
 *
 * The teardown asserts what must hold after any test: no descriptor stays, and the driver was never
 * called twice at a time for one sandbox.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/sandbox/sandbox.h"
#include "deadline.h"
#include "driver/driver.h"
#include "store/store.h"
#include "wire/frame.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What the wall clock is ahead of the machine's (it is wrapped by the linker, see meson.build). */
extern atomic_llong world_wall_shift_ms;

/* When that is over, and waiting for a semaphore until then. */
struct timespec world_deadline(void);
void world_await(sem_t *sem);

/* --- the driver --- */

enum fake_op {
	FAKE_START,
	FAKE_ADOPT,
	FAKE_STOP,
	FAKE_FREEZE,
	FAKE_RESIZE,
	FAKE_CLEAN,
	FAKE_CHECK_DISK,
	FAKE_LIST,
	FAKE_IS_STORED,
	FAKE_OP_COUNT,
};

#define FAKE_CAPABILITIES                                                                          \
	(DRIVER_BIT(DRIVER_FREEZE) | DRIVER_BIT(DRIVER_DISK_LIMIT) |                               \
		DRIVER_BIT(DRIVER_LIVE_RESIZE) | DRIVER_BIT(DRIVER_EGRESS_POLICY) |                \
		DRIVER_BIT(DRIVER_ADOPT))

enum fake_agent {
	FAKE_AGENT_SERVES, /* says hello, and ends when it is asked to */
	FAKE_AGENT_MANUAL, /* a new one says hello; the test plays the rest over fake_peer() */
	FAKE_AGENT_DIES,   /* ends before it said hello */
	FAKE_AGENT_LIES,   /* says hello in another version */
};

/* One sandbox, as the driver knows it. */
struct virtual_proc {
	struct virtual_proc *next;
	char id[ID_LEN + 1];
	bool running, frozen;
	bool is_planted; /* the engine did not start it */
	uint64_t disk_bytes, growth_bytes;
	uint64_t memory_bytes;	       /* what it holds */
	bool has_layer, has_workspace; /* directories */
	bool dead;		       /* ended by itself, with wait_status */
	int wait_status;
	int peer; /* the agent's end of its link, or -1 */
	uint64_t link_number;
	bool served;
	pthread_t server;
	bool busy; /* a function of the driver is at work on it */
};

struct fake_driver {
	struct driver base;
	pthread_mutex_t lock; /* what follows */
	struct virtual_proc *machines;
	enum fake_agent agent;	 /* of those that are started from now on */
	int fail[FAKE_OP_COUNT]; /* that many calls fail from now on */
	bool is_in_trouble;	 /* it serves nobody, and says so */
	bool tells_late;	 /* it does not say so yet */
	unsigned calls[FAKE_OP_COUNT];
	unsigned parts;	       /* all that clean was asked for, together */
	unsigned overlaps;     /* calls for a sandbox while another was under way */
	unsigned shutdowns;    /* agents that were asked to end */
	unsigned starts_twice; /* starts of one that ran already */
	uint64_t links;	       /* how many there were */
	int channel_taker;     /* a pipe that gets the agent's ends of channels; -1: nobody */
	const char *step;      /* what starts report as their progress, or NULL */
	const char *failed;    /* the id of one whose disk failed, or NULL */
	/* whom the sandbox that was started last is of: organization/user/project/session */
	char started_for[4 * MODEL_NAME_MAX];
	struct driver_stats stats;
	atomic_ullong used_bytes; /* on every disk */
	struct err cause;	  /* what stop says about a build that failed */
	int exit_peer; /* it reads its end when the last way out that was opened is closed */
	/* Called at the beginning of each function, without the lock. */
	void (*hook)(enum fake_op op, const char *id, void *arg);
	void *hook_arg;
};

void fake_init(struct fake_driver *driver);
void fake_fini(struct fake_driver *driver);

/* Copies what is known of a sandbox; false if nothing is. */
bool fake_look(struct fake_driver *driver, const char *id, struct virtual_proc *ret_machine);

/* Makes one that the engine does not know of. */
void fake_plant(struct fake_driver *driver, const char *id, bool running);

/* Takes the workspace of one that does not run away, as when its file system is not mounted. */
void fake_lose_workspace(struct fake_driver *driver, const char *id);

/* The agent's end of the link of a sandbox; it stays the driver's. */
int fake_peer(struct fake_driver *driver, const char *id);

/* Ends a sandbox from inside, with a wait status. */
void fake_crash(struct fake_driver *driver, const char *id, int wait_status);

void fake_set_agent(struct fake_driver *driver, enum fake_agent agent);
void fake_set_hook(struct fake_driver *driver,
	void (*hook)(enum fake_op op, const char *id, void *arg), void *arg);
void fake_fail(struct fake_driver *driver, enum fake_op op, int count);
void fake_set_trouble(struct fake_driver *driver, bool is_in_trouble);
void fake_set_memory(struct fake_driver *driver, const char *id, uint64_t bytes);
unsigned fake_calls(struct fake_driver *driver, enum fake_op op);

/* --- the store's failures --- */

enum store_op {
	STORE_INSERT,
	STORE_UPDATE,
	STORE_DELETE,
	STORE_TOUCH,
	STORE_FIND,
	STORE_WORKSPACE_DELETE,
	STORE_PROCESS_INSERT,
	STORE_PROCESS_UPDATE,
	STORE_OP_COUNT,
};

struct store_script {
	atomic_int fail[STORE_OP_COUNT]; /* that many calls fail from now on */
	atomic_int calls[STORE_OP_COUNT];
	/* Called before each one, and after each that was done; without a lock. */
	void (*_Atomic before)(enum store_op op, const char *id);
	void (*_Atomic after)(enum store_op op, const char *id);
};

extern struct store_script store_script;

/* --- the world --- */

struct world {
	char dir[64];
	char database[96];
	struct store *store;
	struct event_bus *bus;
	struct fake_driver driver;
	struct engine_config config; /* may be changed before world_open */
	struct engine *engine;	     /* NULL until world_open */
	int logs_fd, unfinished_fd, baselines_fd;
	int fds_before;
};

int world_setup(void **state);	      /* all of it */
int world_setup_closed(void **state); /* without the engine */
int world_teardown(void **state);

void world_open(struct world *world);
void world_close(struct world *world); /* the engine only, as when the daemon ends */

extern const struct owner world_owner; /* whom drafts belong to */
extern const struct owner world_stranger;

/* A draft; the caller ends it. An empty id or project is none. */
void world_draft(struct sandbox_record *draft, const char *id, const char *project);

/* An id that is the same each time: 26 times the letter. */
const char *world_id(char letter);

/* Creates one that must come up. The caller drops it. */
struct sandbox *world_create(struct world *world, const char *id);
enum sandbox_status world_status(struct sandbox *sandbox);

/* Whether the row is there, and what it says. */
bool world_row(struct world *world, const char *id, struct sandbox_record *ret_record);
bool world_has_row(struct world *world, const char *id);
bool world_has_workspace(struct world *world, const char *id);

/* What the row and the driver say of a sandbox must be the same thing. */
void world_assert_agree(struct world *world, const char *id);

/* --- events --- */

struct listener {
	struct engine *engine;
	struct subscription *subscription;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char types[64][32]; /* all so far, in order */
	uint64_t sequences[64];
	size_t count;
	size_t taken;
};

void world_listener_open(struct listener *listener, struct engine *engine, const char *id);
void listener_close(struct listener *listener);

/* Waits until an event of that type came, after those that were waited for before. */
void listener_wait(struct listener *listener, const char *type);

/* --- frames, as an agent reads and writes them --- */

struct wire_frame {
	uint16_t kind;
	uint32_t id, len;
	uint8_t payload[2048]; /* its beginning */
};

/* The next frame; false at the end of the link. Fails the test when none comes. */
bool wire_read(int fd, struct wire_frame *ret_frame);

/* The next frame must be of that kind. */
void wire_expect(int fd, uint16_t kind, struct wire_frame *ret_frame);
void wire_write(int fd, uint16_t kind, uint32_t id, const void *payload, size_t len);

/* What an agent answers to AGENT_ATTACH: the processes it has. */
void wire_hello(int fd, uint32_t version, const uint32_t *ids, uint32_t count);
