/* SPDX-License-Identifier: Apache-2.0 */
/* What every handler is given: the engine and the few settings that answers depend on. */
#pragma once

#include "api/fields.h"
#include "auth/gate.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"
#include "http/server/server.h"
#include "model/access/caller.h"
#include "wire/agent.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct share_pool;

struct api {
	struct gate gate;
	struct audit_writer *audit_writer;
	struct idempotency_keys *idempotency_keys;
	struct secret_store *secret_store;
	struct backups *backups;
	const struct host_report *host_report;
	struct jobs *jobs;
	struct contexts *contexts;
	struct executions *executions;
	struct late_executions *late_executions;
	struct runtime_pool *runtime_pool;
	struct launches *launches;
	struct trace_export *traces; /* NULL: nobody collects them */
	struct projects *projects;
	struct event_bus *bus;
	bool audits_commands;	       /* as they are, not as a hash */
	struct engine *_Atomic engine; /* NULL until sandboxes can be served */
	pthread_mutex_t unready_lock;
	struct err unready; /* why it is NULL; under the lock */
	const char *preview_domain;
	const char *preview_scheme; /* "http" or "https" */
	unsigned preview_port;
	const char *driver;			 /* the name of the one that runs sandboxes */
	atomic_uint_fast64_t preview_generation; /* changes when somebody may no longer see one */
	int64_t login_life_ms;			 /* of a browser's session */
	uint64_t exec_output_max;		 /* bytes kept of each stream of a buffered exec */
	int spool_fd;				 /* a directory for files without a name */
	uint64_t spool_reserve;			 /* what they leave free on its disk */
	atomic_bool is_leaving;	     /* the daemon closes; its clients are not to blame */
	struct share_pool *packers;  /* archive downloads under way, by owner */
	json_t *openapi;	     /* the document, made once */
	void (*shutdown)(void *arg); /* ends daemon, keeper and sandboxes */
	void *shutdown_arg;
};

/* A query parameter, header or variable part of a path, for the OpenAPI document. */
struct api_parameter {
	const char *name;
	const char *schema; /* JSON */
	const char *doc;
	bool required;
};

#define API_HEARTBEAT_MS 15000 /* on streams that are otherwise quiet */

/* What the OpenAPI document says of a route; the `doc` member of struct route. */
struct api_doc {
	const char *id; /* operationId; operations.json describes it */
	const char *summary;
	const char *tag;
	const struct api_parameter *query;
	size_t query_count;
	const struct api_parameter *headers;
	size_t header_count;
	const struct fields *body; /* JSON body, or NULL */
	bool needs_body;	   /* it is refused without one, though no field is required */
	bool takes_any;		   /* its body is any JSON */
	const char *raw_body;	   /* types of a raw body, with spaces between, or NULL */
	int status;		   /* of success */
	const char *answer;	   /* schema name, media type, or NULL for an empty answer */
	const char *stream_answer; /* media types of answers to those who ask for them, or NULL */
	const char *also;	   /* further statuses of success: "206 304", or NULL */
	const char *also_answer;   /* their schema, if it is another */
};

/* The server's `admit`: api->gate. */
int api_admit(void *context, const struct credential *credential, const struct route *route,
	struct principal *ret_principal, struct err *err) must_check;

/* Who asks, for the use cases in src/core. */
struct caller api_caller(const struct request *req);
struct caller api_caller_of(const struct principal *principal);

/* The owner that a request acts for. */
struct owner api_owner(const struct request *req);

/* The sandbox that the path names, or the member of it that ?member= names; kept until the request is over. */
int api_sandbox(struct request *req, struct api *api, struct sandbox **ret_sandbox, struct err *err)
	must_check;

/*
 * The id of the sandbox that the query's parameter `sandbox` names: an id as it is, since the sandbox may be gone, a name
 * as the owner's sandbox that has it. *ret_id is id, or NULL without the parameter.
 */
int api_query_sandbox(const struct request *req, struct api *api, char id[ID_LEN + 1],
	const char **ret_id, struct err *err) must_check;

/* The port that the path names. */
int api_port(const struct request *req, uint16_t *ret_port, struct err *err) must_check;

/* Where the preview of a port is: "http://s-<id>-<port>.<domain>:<port>/". */
#define API_PREVIEW_URL_MAX 256
void api_preview_url(const struct api *api, const char *sandbox_id, uint16_t port,
	char url[API_PREVIEW_URL_MAX]);

/* Whether the daemon can serve sandboxes yet; ERR_UNAVAILABLE with the reason if not. */
int api_check_ready(struct api *api, struct err *err) must_check;

/* Says why sandboxes cannot be served yet. */
void api_set_unready(struct api *api, const struct err *why);

/* A whole number from the query; the default if it is absent. */
int api_query_number(const struct request *req, const char *name, uint64_t min, uint64_t max,
	uint64_t default_value, uint64_t *ret_value, struct err *err) must_check;
/* A time of the query, as answers have them, by the clock of the database; 0 if it is absent. */
int api_query_time(const struct request *req, const struct api *api, const char *name,
	int64_t *ret_stored_ms, struct err *err) must_check;
int api_query_boolean(const struct request *req, const char *name, bool *ret_value, struct err *err)
	must_check;

/* Where the client wants to go on with a log: Last-Event-ID, or the parameter `from`; *ret_given if it said so. */
int api_query_from(const struct request *req, uint64_t *ret_from, bool *ret_given, struct err *err)
	must_check;

/* A time of the wall clock in ms as text; null for 0, which is never. */
json_t *api_time_to_json(int64_t wall_ms);

/* The same for a time by the clock of the database (store_clock.h). */
json_t *api_stored_time_to_json(const struct api *api, int64_t stored_ms);

/* ["read","run"]. */
json_t *api_scopes_to_json(unsigned scopes);

/* The number of "SIGINT", "INT" or 2; 0 if it is no signal. */
int api_signal_parse(const json_t *value);

/* The parameter mode: permission bits in octal, as chmod takes them; AGENT_MODE_KEEP if it is absent. */
int api_query_mode(const struct request *req, uint32_t *ret_mode, struct err *err) must_check;

/* The path parameter of a file request, in its plain form. */
int api_query_path(const struct request *req, char path[AGENT_PATH_MAX], struct err *err)
	must_check;
