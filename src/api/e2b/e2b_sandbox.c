/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control API of E2B: sandboxes. A timeout of E2B is the lifetime of a sandbox, counted from now; of one that is to be
 * paused by its timeout it is the idle timeout, and the other one has none. So which of both it is can be seen in it.
 */
#include "api/e2b/e2b_call.h"
#include "api/sandbox/sandbox_body.h"
#include "auth/bound_token.h"
#include "base/clock.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_request.h"
#include "core/sandbox/sandbox_stats.h"
#include "http/principal.h"
#include "store/store_clock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT_S 300
#define TIMEOUT_MAX_S	  (365 * 86400)
#define LIST_MAX	  100
#define SANDBOX		  "/v1/sandboxes/%s"

/* --- how a sandbox is told --- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* "512Mi" or a number of bytes, in MiB. */
static json_int_t mebibytes(const json_t *size)
{
	const char *text = json_string_value(size);
	char *unit = NULL;
	double number = text ? strtod(text, &unit) : json_number_value(size);

	if (unit && *unit == 'G')
		return (json_int_t)(number * 1024);
	if (unit && *unit == 'M')
		return (json_int_t)number;
	if (unit && *unit == 'K')
		return (json_int_t)(number / 1024);
	return (json_int_t)(number / (1 << 20));
}

static const char *state_of(const json_t *sandbox)
{
	const char *status = text_of(sandbox, "status");

	return strcmp(status, "running") == 0 || strcmp(status, "creating") == 0 ? "running"
										 : "paused";
}

/* Where names of ports of sandboxes lie, for getHost(). */
static json_t *domain_of(const struct api *api)
{
	bool is_usual = api->preview_port == (strcmp(api->preview_scheme, "https") == 0 ? 443 : 80);

	return is_usual ? json_string(api->preview_domain)
			: json_sprintf("%s:%u", api->preview_domain, api->preview_port);
}

/* The token for calls into the sandbox; without a token of ours behind the request there is none. */
static json_t *access_token(const struct request *req, const char *id)
{
	const struct api *api = request_context(req);
	auto_free char *path = mem_printf(E2B_DATA_PATH "%s", id);
	char token[SECRET_TEXT_MAX];
	struct err ignored;

	if (bound_token_make(api->gate.store, api->gate.bound_key, request_principal(req)->token_id,
		    path, token, &ignored) < 0)
		return json_null();
	return json_string(token);
}

/* What a client needs to use it. */
static json_t *handle_of(const struct request *req, const json_t *sandbox)
{
	const char *id = text_of(sandbox, "id");
	json_t *token = access_token(req, id);

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:O, s:o}", "sandboxID", id, "templateID",
		text_of(sandbox, "template"), "clientID", "sandlot", "envdVersion",
		E2B_ENVD_VERSION, "envdAccessToken", token, "trafficAccessToken", token, "domain",
		domain_of(request_context(req)));
}

static json_t *time_or(const json_t *sandbox, const char *name, const char *otherwise)
{
	json_t *time = json_object_get(sandbox, name);

	return json_is_string(time) ? json_incref(time) : json_string(text_of(sandbox, otherwise));
}

/* As it is listed. One that has no end ends, for a client that must know, in a year. */
static json_t *item_of(const json_t *sandbox)
{
	const json_t *resources = json_object_get(sandbox, "resources");
	const json_t *ends = json_object_get(sandbox, "expires_at");
	double cpu = json_number_value(json_object_get(resources, "cpu"));

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:I, s:I, s:O, s:s}", "sandboxID",
		text_of(sandbox, "id"), "templateID", text_of(sandbox, "template"), "clientID",
		"sandlot", "envdVersion", E2B_ENVD_VERSION, "startedAt",
		time_or(sandbox, "started_at", "created_at"), "endAt",
		json_is_string(ends)
			? json_incref((json_t *)ends)
			: api_time_to_json(clock_wall_ms() + (int64_t)TIMEOUT_MAX_S * 1000),
		"cpuCount", cpu < 1 ? 1 : (int)cpu, "memoryMB",
		mebibytes(json_object_get(resources, "memory")), "diskSizeMB",
		mebibytes(json_object_get(resources, "disk")), "metadata",
		json_object_get(sandbox, "labels"), "state", state_of(sandbox));
}

/* --- create --- */

static void set_timeout(const struct e2b_call *call, json_t *create)
{
	json_int_t timeout = e2b_call_number(call->body, "timeout");
	bool pauses = json_is_true(json_object_get(call->body, "autoPause"));

	if (timeout < 0)
		timeout = TIMEOUT_DEFAULT_S;
	json_object_set_new(create, pauses ? "idle_timeout_s" : "lifetime_s",
		json_integer(timeout > 0 ? timeout : 1));
	json_object_set_new(create, pauses ? "lifetime_s" : "idle_timeout_s", json_null());
}

/* Which names may be reached. What E2B can refuse by address alone is not to be had. */
static int set_network(const struct e2b_call *call, json_t *create, struct err *err)
{
	json_t *network = json_object_get(call->body, "network");
	json_t *allow = json_object_get(network, "allowOut");
	const json_t *deny = json_object_get(network, "denyOut"),
		     *internet = json_object_get(call->body, "allow_internet_access");
	const char *denied = json_string_value(json_array_get(deny, 0));
	bool denies_all = json_is_false(internet) || (json_array_size(deny) == 1 && denied &&
							     strcmp(denied, "0.0.0.0/0") == 0);

	if ((json_array_size(deny) > 0 && !denies_all) || json_object_get(network, "rules") ||
		json_object_get(network, "egressProxy"))
		return err_set(err, ERR_INVALID,
			"network takes allowOut, and denyOut with 0.0.0.0/0 alone");
	if (json_array_size(allow) > 0)
		json_object_set_new(create, "network",
			json_pack("{s:s, s:O}", "mode", "allowlist", "allow", allow));
	else if (denies_all)
		json_object_set_new(create, "network", json_pack("{s:s}", "mode", "none"));
	json_object_set_new(create, "private",
		json_boolean(json_is_false(json_object_get(network, "allowPublicTraffic"))));
	return 0;
}

/* Any port of E2B's sandboxes is open to all; here those are that programs usually take. */
static void set_ports(json_t *create)
{
	static const int usual[] = {3000, 3001, 4000, 4173, 5000, 5173, 8000, 8080, 8888};
	json_t *ports = json_array();

	for (size_t i = 0; i < array_len(usual); i++)
		json_array_append_new(ports, json_integer(usual[i]));
	json_object_set_new(create, "ports", ports);
}

static int check_create(const struct e2b_call *call, struct err *err)
{
	static const char *const unknown[] = {"volumeMounts", "mcp", "iam"};

	for (size_t i = 0; i < array_len(unknown); i++) {
		const json_t *value = json_object_get(call->body, unknown[i]);

		if (json_array_size(value) > 0 || json_object_size(value) > 0)
			return err_set(err, ERR_INVALID, "%s is not supported here", unknown[i]);
	}
	return 0;
}

/* The templates that clients name by themselves mean the usual one. */
static bool is_usual_template(const char *name)
{
	return !name || strcmp(name, "base") == 0 || strcmp(name, "code-interpreter-v1") == 0;
}

static int ask_create(struct request *req, struct e2b_call *call, struct err *err)
{
	const char *template_name = e2b_call_text(call, "templateID");
	json_t *metadata = json_object_get(call->body, "metadata");
	json_t *env = json_object_get(call->body, "envVars");
	json_t *create = json_object();
	int r = check_create(call, err);

	if (r == 0)
		r = set_network(call, create, err);
	if (r < 0) {
		json_decref(create);
		return r;
	}
	if (!is_usual_template(template_name))
		json_object_set_new(create, "template", json_string(template_name));
	if (json_object_size(metadata) > 0)
		json_object_set(create, "labels", metadata);
	env = json_is_object(env) ? json_copy(env) : json_object();
	json_object_set_new(env, "E2B_SANDBOX", json_string("true"));
	json_object_set_new(create, "env", env);
	set_timeout(call, create);
	set_ports(create);
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "POST", .body = create},
		err, "/v1/sandboxes");
}

static void answer_handle(struct request *req, void *arg, int status, json_t *body)
{
	const struct e2b_call *call = arg;

	if (status >= 300) {
		e2b_call_answer_error(req, status, body);
		return;
	}
	if (status == 200 && call->was_resumed)
		status = 201;
	request_answer_json(req, status, handle_of(req, body));
	json_decref(body);
}

/* --- lists --- */

static int hex(char digit)
{
	return isdigit((unsigned char)digit) ? digit - '0'
					     : tolower((unsigned char)digit) - 'a' + 10;
}

/* Decodes a part of a form twice over, in place: clients encode what they put in it once more. */
static void decode(char *text, bool is_form)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '%' && isxdigit((unsigned char)text[1]) &&
			isxdigit((unsigned char)text[2])) {
			*to++ = (char)(hex(text[1]) << 4 | hex(text[2]));
			text += 2;
		} else {
			*to++ = *text == '+' && is_form ? ' ' : *text;
		}
	}
	*to = '\0';
}

/* "k=v&k2=v2" as an object. */
static json_t *read_metadata(const char *form)
{
	auto_free char *copy = mem_strdup(form);
	json_t *metadata = json_object();
	char *rest = copy, *pair;

	while ((pair = strsep(&rest, "&"))) {
		char *value = strchr(pair, '=');

		if (!value)
			continue;
		*value++ = '\0';
		decode(pair, true);
		decode(pair, false);
		decode(value, true);
		decode(value, false);
		json_object_set_new(metadata, pair, json_string(value));
	}
	return metadata;
}

/* The API looks for one label, and the rest is left out of its answer. */
static int ask_list(struct request *req, struct e2b_call *call, struct err *err)
{
	const char *metadata = request_query(req, "metadata"),
		   *token = request_query(req, "nextToken"), *limit = request_query(req, "limit");
	auto_free char *cursor = e2b_call_escape(token ? token : "");
	int count = limit ? atoi(limit) : LIST_MAX;

	call->states = request_query(req, "state");
	if (metadata && metadata[0])
		call->filter = read_metadata(metadata);
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
		"/v1/sandboxes?limit=%d%s%s",
		count < 1	   ? 1
		: count > LIST_MAX ? LIST_MAX
				   : count,
		token ? "&cursor=" : "", cursor);
}

static bool is_listed(const struct e2b_call *call, const json_t *sandbox)
{
	const json_t *labels = json_object_get(sandbox, "labels");
	const char *name;
	json_t *value;

	if (call->states && !strstr(call->states, state_of(sandbox)))
		return false;
	json_object_foreach(call->filter, name, value)
	{
		if (!json_equal(json_object_get(labels, name), value))
			return false;
	}
	return true;
}

static void answer_list(struct request *req, void *arg, int status, json_t *body)
{
	const struct e2b_call *call = arg;
	const char *next = json_string_value(json_object_get(body, "next_cursor"));
	json_t *items, *sandbox;
	size_t i;

	if (status >= 300) {
		e2b_call_answer_error(req, status, body);
		return;
	}
	items = json_array();
	json_array_foreach(json_object_get(body, "sandboxes"), i, sandbox)
	{
		if (is_listed(call, sandbox))
			json_array_append_new(items, item_of(sandbox));
	}
	if (next)
		request_answer_header(req, "X-Next-Token", next);
	request_answer_json(req, 200, items);
	json_decref(body);
}

/* --- one --- */

static int ask_get(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(
		req, call, &(struct e2b_request){.method = "GET"}, err, SANDBOX, call->id);
}

static void answer_detail(struct request *req, void *arg, int status, json_t *body)
{
	json_t *detail;

	(void)arg;
	if (status >= 300) {
		e2b_call_answer_error(req, status, body);
		return;
	}
	detail = item_of(body);
	json_object_set_new(detail, "envdAccessToken", access_token(req, text_of(body, "id")));
	json_object_set_new(detail, "domain", domain_of(request_context(req)));
	request_answer_json(req, 200, detail);
	json_decref(body);
}

static int ask_kill(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "POST"}, err,
		SANDBOX "/purge", call->id);
}

static void answer_empty(struct request *req, void *arg, int status, json_t *body)
{
	(void)arg;
	if (status >= 300) {
		e2b_call_answer_error(req, status, body);
		return;
	}
	json_decref(body);
	request_answer_empty(req, 204);
}

/* --- time --- */

static bool is_paused_by_timeout(const struct sandbox_record *record)
{
	return record->idle_timeout_s != SANDBOX_NO_LIMIT;
}

/* Gives it that many seconds from now on; a client that connects never takes any away. */
static int change_timeout(struct request *req, struct sandbox *sandbox, int64_t timeout_s,
	bool only_extends, struct err *err)
{
	const struct api *api = request_context(req);
	struct caller caller = api_caller(req);
	struct sandbox_change change = {0};
	struct sandbox_record record;
	int64_t age_ms;

	sandbox_read(sandbox, &record);
	age_ms = store_clock_ms(api->gate.store) - record.created_at_ms;
	if (is_paused_by_timeout(&record))
		change.idle_timeout_s = timeout_s;
	else
		change.lifetime_s = (age_ms + 999) / 1000 + timeout_s;
	if (only_extends &&
		(change.idle_timeout_s ? change.idle_timeout_s <= record.idle_timeout_s
				       : record.lifetime_s != SANDBOX_NO_LIMIT &&
						 change.lifetime_s <= record.lifetime_s))
		change = (struct sandbox_change){0};
	sandbox_record_fini(&record);
	if (!change.idle_timeout_s && !change.lifetime_s)
		return 0;
	return sandbox_request_change(sandbox, &caller, &change, err);
}

static int64_t timeout_of(const struct e2b_call *call, const char *name)
{
	json_int_t timeout = e2b_call_number(call->body, name);

	return timeout < 0		 ? TIMEOUT_DEFAULT_S
	       : timeout == 0		 ? 1
	       : timeout > TIMEOUT_MAX_S ? TIMEOUT_MAX_S
					 : timeout;
}

static int handle_timeout(struct request *req, void *context, struct err *err)
{
	const struct e2b_call *call = request_redirect_arg(req);
	bool is_refresh = strstr(call->row->path, "refreshes");
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0)
		r = change_timeout(req, sandbox,
			timeout_of(call, is_refresh ? "duration" : "timeout"), is_refresh, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

static int ask_timeout(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "PATCH", .handle = handle_timeout}, err, SANDBOX,
		call->id);
}

/* --- pause and connect --- */

/* A paused one has no end: its files wait until somebody connects. */
static int handle_pause(struct request *req, void *context, struct err *err)
{
	struct sandbox_change forever = {.lifetime_s = SANDBOX_NO_LIMIT};
	struct caller caller = api_caller(req);
	struct sandbox_record record;
	struct sandbox *sandbox;
	bool is_running;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	is_running = record.status == SANDBOX_RUNNING;
	sandbox_record_fini(&record);
	if (!is_running)
		return err_set(err, ERR_CONFLICT, "the sandbox is paused already");
	r = sandbox_pause(sandbox, err);
	if (r == 0)
		r = sandbox_request_change(sandbox, &caller, &forever, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

static int ask_pause(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "POST", .handle = handle_pause}, err,
		SANDBOX "/pause", call->id);
}

static int wake(struct sandbox *sandbox, bool *ret_resumed, struct err *err)
{
	struct sandbox_record record;
	enum sandbox_status status;

	sandbox_read(sandbox, &record);
	status = record.status;
	sandbox_record_fini(&record);
	*ret_resumed = status != SANDBOX_RUNNING;
	if (status == SANDBOX_RUNNING)
		return 0;
	return status == SANDBOX_PAUSED ? sandbox_resume(sandbox, err)
					: sandbox_start(sandbox, err);
}

static int handle_connect(struct request *req, void *context, struct err *err)
{
	struct e2b_call *call = request_redirect_arg(req);
	struct sandbox_record record;
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0)
		r = wake(sandbox, &call->was_resumed, err);
	if (r == 0)
		r = change_timeout(req, sandbox, timeout_of(call, "timeout"), true, err);
	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	request_answer_json(req, 200, sandbox_to_json(context, &record));
	sandbox_record_fini(&record);
	return 0;
}

static int ask_connect(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "POST", .handle = handle_connect}, err,
		SANDBOX "/resume", call->id);
}

/* --- figures --- */

static int handle_metrics(struct request *req, void *context, struct err *err)
{
	struct sandbox_stats stats;
	struct sandbox *sandbox;
	struct stats_point points[STATS_FINE];
	double cores, used = 0;
	size_t count;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0)
		r = sandbox_stats_read(sandbox, &stats, err);
	if (r < 0)
		return r;
	cores = (double)stats.limits.cpu_millis / 1000;
	count = sandbox_stats_history(sandbox, false, 0, points, array_len(points));
	if (count > 0 && cores > 0)
		used = (double)points[count - 1].cpu * 100 / cores;
	request_answer_json(req, 200,
		json_pack("[{s:o, s:I, s:i, s:f, s:I, s:I, s:I, s:I, s:I}]", "timestamp",
			api_time_to_json(clock_wall_ms()), "timestampUnix",
			(json_int_t)(clock_wall_ms() / 1000), "cpuCount",
			cores < 1 ? 1 : (int)cores, "cpuUsedPct", used, "memUsed",
			(json_int_t)stats.memory_bytes, "memTotal",
			(json_int_t)stats.limits.memory_bytes, "memCache", (json_int_t)0,
			"diskUsed", (json_int_t)stats.disk_bytes, "diskTotal",
			(json_int_t)stats.limits.disk_bytes));
	return 0;
}

static int ask_metrics(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "GET", .handle = handle_metrics}, err,
		SANDBOX "/stats", call->id);
}

static void answer_as_is(struct request *req, void *arg, int status, json_t *body)
{
	(void)arg;
	if (status >= 300)
		e2b_call_answer_error(req, status, body);
	else
		request_answer_json(req, status, body);
}

const struct e2b_row e2b_sandbox_rows[] = {
	{"POST", "/sandboxes", ask_create, answer_handle},
	{"GET", "/sandboxes", ask_list, answer_list},
	{"GET", "/sandboxes/{id}", ask_get, answer_detail},
	{"DELETE", "/sandboxes/{id}", ask_kill, answer_empty},
	{"POST", "/sandboxes/{id}/timeout", ask_timeout, answer_empty},
	{"POST", "/sandboxes/{id}/refreshes", ask_timeout, answer_empty},
	{"POST", "/sandboxes/{id}/pause", ask_pause, answer_empty},
	{"POST", "/sandboxes/{id}/connect", ask_connect, answer_handle},
	{"POST", "/sandboxes/{id}/resume", ask_connect, answer_handle},
	{"GET", "/sandboxes/{id}/metrics", ask_metrics, answer_as_is},
};
const size_t e2b_sandbox_count = array_len(e2b_sandbox_rows);
