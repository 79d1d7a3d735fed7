/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller asks of a sandbox, in plain values: every way into the daemon fills the same structs,
 * and a struct of zeros asks for the defaults. All texts are borrowed.
 *
 * The checks here say whether values can be right at all. What only the daemon can tell (templates,
 * secrets, the operator's limits, scopes) is checked in core/sandbox/sandbox_request.c.
 */
#pragma once

#include "model/access/secret_record.h"
#include "model/sandbox/member_spec.h"
#include "model/sandbox/sandbox_port.h"
#include "model/sandbox/sandbox_record.h"
#include "model/sandbox/start_spec.h"
#include "model/template/dependency_set.h"
#include "model/text_map.h"

#define SPEC_ENV_MAX	       256
#define SPEC_ENV_VALUE_MAX     (128 * 1024 - 256) /* the kernel's limit for one string, less a name */
#define SPEC_LABELS_MAX	       64
#define SPEC_LABEL_MAX	       256 /* bytes of a value */
#define SPEC_ALLOW_MAX	       256
#define SPEC_STARTS_MAX	       8
#define SPEC_START_ENV_MAX     64
#define SPEC_START_COMMAND_MAX (16 * 1024) /* bytes */
#define SPEC_YEAR_S	       (366 * 86400)

#define SPEC_CPU_MIN_MILLIS  10
#define SPEC_CPU_MAX_CORES   1024
#define SPEC_MEMORY_MIN	     (16 << 20)
#define SPEC_MEMORY_MAX	     (1ll << 50)
#define SPEC_DISK_MIN	     (1 << 20)
#define SPEC_DISK_MAX	     (1ll << 50)
#define SPEC_PIDS_MIN	     4
#define SPEC_PIDS_MAX	     (4 << 20)
#define SPEC_BANDWIDTH_MIN   1024
#define SPEC_BANDWIDTH_MAX   (1ll << 40)
#define SPEC_CONNECTIONS_MAX 65536

enum choice {
	CHOICE_UNSET, /* not given: the default, or as it was */
	CHOICE_NO,
	CHOICE_YES,
};

/* What a sandbox may reach. Without a mode: an allowlist if `allow` is given, else as the operator
 * has set for the template. */
struct network_spec {
	const char *mode; /* one of network_modes, or NULL */
	struct text_list allow, secrets;
	uint64_t bandwidth;   /* bytes a second; 0: the operator's */
	uint64_t connections; /* 0: the operator's */
};

struct port_spec {
	uint16_t number;
	enum choice is_public; /* unset: what the sandbox's is_private says */
	bool keeps_prefix;
};

struct sandbox_spec {
	const char *id; /* NULL: a new one is chosen */
	const char *
		reserved_by; /* the idempotency key that the id was set aside for; NULL: the caller chose it */
	int64_t tried_at_ms;	   /* if not 0: what was made of this id since then is the answer */
	const char *name;	   /* NULL: none */
	const char *template_name; /* NULL: host */
	enum choice waits; /* for an image that is not there; no: the sandbox is told of before */
	const char *snapshot;	    /* whose files and settings it starts with; NULL: none */
	const char *project;	    /* by name or id; NULL: none */
	const char *session;	    /* NULL: none */
	struct resources resources; /* a member of 0: the default */
	struct text_map env, labels;
	const struct port_spec *ports;
	size_t port_count;
	struct network_spec network;
	int64_t idle_timeout_s; /* 0: the default; SANDBOX_NO_LIMIT: never */
	int64_t lifetime_s;	/* 0, SANDBOX_NO_LIMIT: never */
	enum choice is_private; /* unset: yes */
	const struct start_spec *starts;
	size_t start_count;
	bool restarts_start; /* with its env, if it was made before it was asked for */
	struct dependency_spec dependencies;
	const struct member_spec *members; /* NULL: those that its template gives */
	size_t member_count;
};

/* A change of a sandbox. What is not given stays. */
struct sandbox_change {
	const char *name;		    /* NULL: stays; empty: none */
	int64_t idle_timeout_s, lifetime_s; /* 0: stays; SANDBOX_NO_LIMIT: never */
	struct resources resources;	    /* a member of 0: stays */
	struct text_map labels;
	const struct port_spec *ports; /* NULL: they stay */
	size_t port_count;
	enum choice is_private;
	const struct network_spec *network; /* NULL: stays */
	const struct start_spec *starts;    /* NULL: they stay */
	size_t start_count;
};

/* A sandbox in which a template is built (core/template/build/build_sandbox.h). */
struct sandbox_builder_spec {
	const char *template_name;
	const json_t *image; /* what it starts from, as of sandbox_record; NULL: the host's files */
	const json_t *network;	    /* as of sandbox_record; NULL: that of the template */
	const json_t *allow;	    /* rules beside those of its network; NULL: none */
	struct resources resources; /* 0: the usual */
};

/* 0, or ERR_INVALID that names the field. */
int sandbox_spec_check(const struct sandbox_spec *spec, struct err *err) must_check;
int sandbox_spec_check_change(const struct sandbox_change *change, struct err *err) must_check;

/* What is wrong with a name or value, after "has"; NULL if nothing is. */
const char *sandbox_spec_check_env(const char *name, size_t value_len);
const char *sandbox_spec_check_label(const char *key, const char *value);

/* 0, or ERR_INVALID that names the field. */
int sandbox_spec_check_env_map(const char *field, struct text_map env, size_t max, struct err *err)
	must_check;

/* As the record keeps them; new. */
json_t *sandbox_spec_ports_to_json(const struct port_spec *ports, size_t count);
json_t *sandbox_spec_starts_to_json(const struct start_spec *starts, size_t count);
