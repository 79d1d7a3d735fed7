/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox is, apart from anything that runs: the row in the database, the states it can be in
 * and which verb leads from which to which.
 */
#pragma once

#include "base/err.h"
#include "model/access/owner.h"
#include "model/id.h"
#include "model/process/termination.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_NAME_MAX 41 /* the name that a person gave a sandbox: with NUL */
#define SANDBOX_TEMPLATE_MAX                                                                       \
	256 /* the name of a template, or the reference of an image: with NUL */

enum sandbox_status {
	SANDBOX_CREATING,
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,
	SANDBOX_STOPPED,
	SANDBOX_ERROR,
	SANDBOX_STATUS_COUNT,
};

enum sandbox_verb {
	SANDBOX_START,
	SANDBOX_STOP,
	SANDBOX_PAUSE,
	SANDBOX_RESUME,
	SANDBOX_RESET,
	SANDBOX_USE, /* exec, files: needs it running, wakes it if it is stopped */
	SANDBOX_VERB_COUNT,
};

struct resources {
	uint64_t cpu_millis;
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t pids;
};

#define SANDBOX_NO_LIMIT (-1) /* idle_timeout_s, lifetime_s: never */

/* A row of the table `sandboxes`. The JSON members are owned and never NULL. */
struct sandbox_record {
	char id[ID_LEN + 1];
	enum sandbox_status status;
	struct owner owner;
	char name[SANDBOX_NAME_MAX];  /* empty: none; unique among those of its owner */
	char project[MODEL_NAME_MAX]; /* its name; empty: none */
	char session[MODEL_NAME_MAX]; /* empty: none; one sandbox for each project and session */
	char parent[ID_LEN +
		    1]; /* of a member (model/sandbox/member_spec.h): its sandbox; else empty */
	char role[16];	/* of a member */
	char template_name[SANDBOX_TEMPLATE_MAX];
	char driver[16];
	struct resources resources;
	bool is_on_kept; /* in no row: when it was inserted, its workspace was there already */
	char snapshot[ID_LEN + 1]; /* in no row: whose files a new one gets; empty: none */
	bool takes_snapshot;	   /* likewise: nobody else wants them */
	/* likewise, of a draft: the idempotency key that has set its id aside, which therefore may be another; borrowed */
	const char *reserved_by;
	/* It waits in a pool, or is a member of one that does: others go first. Not in the row. */
	bool is_waiting;
	bool restarts_start; /* likewise: start commands that run already begin anew, with its env */
	json_t *env;	     /* object of strings */
	json_t *ports;	     /* array, see model/sandbox/sandbox_port.h */
	json_t *labels;	     /* object of strings */
	json_t *network;     /* {"mode": ..., "allow": [...]} */
	/* what it took of the template, if that is made of an image, else {}: {"stack": ..., "version": ...,
	 * "reference": ..., "digest": ..., "env": {...}, "user": ..., "workdir": ..., "command": [...]} */
	json_t *image;
	/* that brings its image; empty once it was made, and of one that waited for none */
	char job[ID_LEN + 1];
	/* packages beside its template, else {}: {"requested": {...}, "shown": {...} (model/template/dependency_set.h), "layer": ...,
	 * "base": ..., "installed": {"python": {name: version}, "node": {...}}, "job": ..., "error": ...} */
	json_t *dependencies;
	json_t *start; /* array of {"name": ..., "command": ..., "cwd": ..., "env": {...}, "restart": ...} */
	json_t *members; /* array (model/sandbox/member_spec.h); of a member its own entry alone */
	int64_t idle_timeout_s;
	int64_t lifetime_s;
	bool is_private;
	int64_t created_at_ms;
	int64_t started_at_ms; /* 0: never */
	int64_t last_active_at_ms;
	int64_t expires_at_ms;	/* 0: never */
	struct termination end; /* the last, also while it runs again */
	char error_message[320];
};

/* Sets the JSON members to empty values; everything else is zero. */
void sandbox_record_init(struct sandbox_record *record);
void sandbox_record_fini(struct sandbox_record *record);

/* A copy that shares nothing with the original. */
void sandbox_record_copy(struct sandbox_record *to, const struct sandbox_record *from);

bool sandbox_record_is_of(const struct sandbox_record *record, const struct owner *owner);

const char *sandbox_status_name(enum sandbox_status status);
int sandbox_status_parse(const char *name, enum sandbox_status *ret_status) must_check;

/* Nobody's, or somebody else's: the two are told apart by nothing. Returns -ENOENT. */
int sandbox_not_found(const char *id, struct err *err);

/* Whether a verb may be applied in a state: 0 (do it), 1 (nothing to do), or an error: ERR_UNAVAILABLE while it is
 * being created, else ERR_CONFLICT. */
int sandbox_verb_check(const struct sandbox_record *record, enum sandbox_verb verb, struct err *err)
	must_check;

/* Names: organization, user, project, template. 1-63 characters of a-z A-Z 0-9 . _ -, first a letter or
 * digit. */
bool model_name_is_valid(const char *name);

/* Names of sandboxes: 1-40 characters of a-z 0-9 -, first a letter. What could be an id is no name, so a text
 * in the place of an id means one of the two, never both. */
bool sandbox_name_is_valid(const char *name);
