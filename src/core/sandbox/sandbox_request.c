/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/sandbox_request.h"

#include "base/clock.h"
#include "base/format.h"
#include "core/dependency/dependencies.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/project/project_defaults.h"
#include "core/sandbox/member.h"
#include "core/sandbox/member_draft.h"
#include "core/sandbox/orphan.h"
#include "core/template/template_options.h"
#include "core/template/templates.h"
#include "core/template/templates_request.h"
#include "egress/secret/secret_cache.h"
#include "model/access/owner.h"
#include "model/sandbox/egress_rule.h"
#include "store/sandbox/store_snapshot.h"
#include "store/template/store_build.h"
#include "store/template/store_layer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- policy --- */

/*
 * Start commands are commands: who gives some needs the scope that runs them, beside that of the request. None at
 * all, which ends those that there are, needs no more than stopping does.
 */
static int check_starts(const struct caller *caller, size_t count, struct err *err)
{
	if (count == 0 || scope_allows(caller->scopes, SCOPE_RUN))
		return 0;
	return err_explain(err, ERR_DENIED, "missing_scope",
		"use a token that has it, or leave `start` out",
		"the token has not the scope run, which start commands need");
}

/* Packages bring programs: as for start commands. */
static int check_dependencies(const struct engine *engine, const struct caller *caller,
	const struct dependency_spec *spec, struct err *err)
{
	int r;

	if (dependency_spec_is_empty(spec))
		return 0;
	if (!scope_allows(caller->scopes, SCOPE_RUN))
		return err_explain(err, ERR_DENIED, "missing_scope",
			"use a token that has it, or leave `dependencies` out",
			"the token has not the scope run, which packages need");
	r = dependency_set_check(spec, err);
	return r < 0 ? r : capability_need(engine->config.driver, DRIVER_LAYERS, err);
}

/* What members run are commands, too. */
static int check_members(
	const struct caller *caller, const struct sandbox_spec *spec, struct err *err)
{
	if (spec->member_count == 0)
		return 0;
	if (!scope_allows(caller->scopes, SCOPE_RUN))
		return err_explain(err, ERR_DENIED, "missing_scope",
			"use a token that has it, or leave `members` out",
			"the token has not the scope run, which members need");
	if (spec->snapshot)
		return err_explain(err, ERR_INVALID, "invalid_field", "leave one of them out",
			"field members does not go with snapshot");
	return 0;
}

/* Addresses of this machine and of private networks are not everybody's to hand out. */
static int check_reach(const struct caller *caller, struct text_list allow, struct err *err)
{
	struct egress_rule rule;

	if (caller->scopes & SCOPE_ADMIN)
		return 0;
	for (size_t i = 0; i < allow.count; i++) {
		if (egress_rule_parse(allow.texts[i], &rule) < 0 || !egress_rule_is_public(&rule))
			return err_explain(err, ERR_DENIED, "private_rule",
				"use a token with the scope admin",
				"the rule %s holds addresses that are not public", allow.texts[i]);
	}
	return 0;
}

/* They may be removed later; but one that is not there now is a mistake. */
static int check_secrets(const struct engine *engine, const struct caller *caller,
	struct text_list names, struct err *err)
{
	struct secret_cache *cache = engine->config.secret_cache;

	for (size_t i = 0; i < names.count; i++) {
		const struct secret_cache_secret *secret =
			cache ? secret_cache_find(cache, &caller->owner, names.texts[i]) : NULL;

		if (!secret)
			return err_explain(err, ERR_INVALID, "secret_not_found",
				"set it with PUT /v1/secrets/{name}, or sandlot secret set",
				"there is no secret %s", names.texts[i]);
		secret_cache_secret_unref(secret);
	}
	return 0;
}

static int check_limits(
	const struct engine *engine, const struct network_spec *network, struct err *err)
{
	struct sandbox_egress_limits most = sandbox_network_limits(engine);
	char asked[FORMAT_SIZE_LEN], allowed[FORMAT_SIZE_LEN];

	if (network->connections > most.connections)
		return err_explain(err, ERR_INVALID, "invalid_field",
			"ask for less, or start sandlotd with a higher --connections",
			"field network.connections is %" PRIu64 ", but the operator allows %u",
			network->connections, most.connections);
	format_size(network->bandwidth, asked);
	format_size(most.bandwidth, allowed);
	if (most.bandwidth > 0 && network->bandwidth > most.bandwidth)
		return err_explain(err, ERR_INVALID, "invalid_field",
			"ask for less, or start sandlotd with a higher --bandwidth",
			"field network.bandwidth is %s a second, but the operator allows %s", asked,
			allowed);
	return 0;
}

/* Whether this caller may have such a network, and there are such secrets and such limits. */
static int check_network(const struct engine *engine, const struct caller *caller,
	const struct network_spec *network, struct err *err)
{
	int r = check_reach(caller, network->allow, err);

	if (r == 0)
		r = check_secrets(engine, caller, network->secrets, err);
	return r < 0 ? r : check_limits(engine, network, err);
}

int sandbox_request_check_template(const struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, bool runs_more, struct err *err)
{
	int r = check_starts(caller, spec->start_count + runs_more, err);

	return r < 0 ? r : check_network(engine, caller, &spec->network, err);
}

/* --- defaults --- */

/* What is not said is as the operator says for the template. */
static json_t *make_network(
	const struct engine *engine, const struct network_spec *spec, const char *template_name)
{
	const struct network_default *settings = &engine->config.defaults.network;
	/* Who names what is allowed means that alone. */
	const char *mode =
		spec->allow.texts ? "allowlist" : network_default_mode(settings, template_name);
	json_t *network = json_pack("{s:s}", "mode", spec->mode ? spec->mode : mode);
	json_t *allow = spec->allow.texts ? text_list_to_json(spec->allow)
					  : network_default_rules(settings, template_name);

	if (allow)
		json_object_set_new(network, "allow", allow);
	if (spec->secrets.texts)
		json_object_set_new(network, "secrets", text_list_to_json(spec->secrets));
	if (spec->bandwidth)
		json_object_set_new(
			network, "bandwidth", json_integer((json_int_t)spec->bandwidth));
	if (spec->connections)
		json_object_set_new(
			network, "connections", json_integer((json_int_t)spec->connections));
	return network;
}

static uint64_t value_or(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static void fill_resources(
	const struct resources *asked, const struct resources *usual, struct resources *resources)
{
	resources->cpu_millis = value_or(asked->cpu_millis, usual->cpu_millis);
	resources->memory_bytes = value_or(asked->memory_bytes, usual->memory_bytes);
	resources->disk_bytes = value_or(asked->disk_bytes, usual->disk_bytes);
	resources->pids = value_or(asked->pids, usual->pids);
}

static const char *template_of(const struct sandbox_spec *spec)
{
	return spec->template_name ? spec->template_name : "host";
}

/* Takes over the new value. */
static void replace(json_t **place, json_t *value)
{
	json_decref(*place);
	*place = value;
}

static void copy_text(char *place, size_t size, const char *text)
{
	snprintf(place, size, "%s", text ? text : "");
}

/* What a request does not say of its network is as its template says. */
static struct network_spec network_of(
	const struct sandbox_spec *spec, const json_t *image, const char *texts[])
{
	struct network_spec network = spec->network, usual;

	if (network.mode || network.allow.texts || !template_options_network(image, texts, &usual))
		return network;
	network.mode = usual.mode;
	network.allow = usual.allow;
	return network;
}

/* `image` has the defaults of its template; NULL: it has none. */
static void make_draft(const struct engine *engine, const struct owner *owner,
	const struct sandbox_spec *spec, const json_t *image, struct sandbox_record *ret_draft)
{
	const char *texts[SPEC_ALLOW_MAX];
	struct network_spec network = network_of(spec, image, texts);
	const struct sandbox_defaults *usual = &engine->config.defaults;
	const struct driver *driver = engine->config.driver;
	struct sandbox_record draft;

	sandbox_record_init(&draft);
	draft.owner = *owner;
	fill_resources(&spec->resources, &usual->resources, &draft.resources);
	/* Without a limit that would be enforced, only a request that asks for one is refused. */
	if (!spec->resources.disk_bytes && !driver_can(driver, DRIVER_DISK_LIMIT))
		draft.resources.disk_bytes = 0;
	copy_text(draft.id, sizeof(draft.id), spec->id);
	copy_text(draft.name, sizeof(draft.name), spec->name);
	copy_text(draft.project, sizeof(draft.project), spec->project);
	copy_text(draft.session, sizeof(draft.session), spec->session);
	copy_text(draft.template_name, sizeof(draft.template_name), template_of(spec));
	copy_text(draft.driver, sizeof(draft.driver), driver->ops->name);
	draft.idle_timeout_s = spec->idle_timeout_s ? spec->idle_timeout_s : usual->idle_timeout_s;
	draft.lifetime_s = spec->lifetime_s ? spec->lifetime_s : SANDBOX_NO_LIMIT;
	draft.is_private = spec->is_private != CHOICE_NO;
	replace(&draft.env, text_map_to_json(spec->env));
	replace(&draft.ports, sandbox_spec_ports_to_json(spec->ports, spec->port_count));
	replace(&draft.labels, text_map_to_json(spec->labels));
	replace(&draft.network, make_network(engine, &network, draft.template_name));
	replace(&draft.start, sandbox_spec_starts_to_json(spec->starts, spec->start_count));
	draft.reserved_by = spec->reserved_by;
	draft.restarts_start = spec->restarts_start;
	template_options_fill_draft(image, spec, &draft);
	*ret_draft = draft;
}

static bool says_anything(const struct network_spec *network)
{
	return network->mode || network->allow.texts || network->secrets.texts ||
	       network->bandwidth || network->connections;
}

/* What is asked for goes before what the sandbox of the snapshot had. */
static void override(
	const struct engine *engine, const struct sandbox_spec *spec, struct sandbox_record *draft)
{
	json_t *env = text_map_to_json(spec->env);

	copy_text(draft->id, sizeof(draft->id), spec->id);
	copy_text(draft->name, sizeof(draft->name), spec->name);
	copy_text(draft->project, sizeof(draft->project), spec->project);
	copy_text(draft->session, sizeof(draft->session), spec->session);
	fill_resources(&spec->resources, &draft->resources, &draft->resources);
	json_object_update(draft->env, env);
	json_decref(env);
	if (spec->labels.count > 0)
		replace(&draft->labels, text_map_to_json(spec->labels));
	if (spec->port_count > 0)
		replace(&draft->ports, sandbox_spec_ports_to_json(spec->ports, spec->port_count));
	if (spec->start_count > 0)
		replace(&draft->start,
			sandbox_spec_starts_to_json(spec->starts, spec->start_count));
	if (says_anything(&spec->network))
		replace(&draft->network,
			make_network(engine, &spec->network, draft->template_name));
	if (spec->idle_timeout_s)
		draft->idle_timeout_s = spec->idle_timeout_s;
	if (spec->lifetime_s)
		draft->lifetime_s = spec->lifetime_s;
	if (spec->is_private != CHOICE_UNSET)
		draft->is_private = spec->is_private == CHOICE_YES;
}

static int prepare_from_snapshot(struct engine *engine, const struct owner *owner,
	const struct sandbox_spec *spec, struct sandbox_record *ret_draft, struct err *err)
{
	struct snapshot_record snapshot;
	int r = capability_need(engine->config.driver, DRIVER_SNAPSHOTS, err);

	if (r == 0 && spec->template_name)
		r = err_explain(err, ERR_INVALID, "invalid_field", "leave one of them out",
			"field template does not go with snapshot, which has one");
	if (r == 0)
		r = store_snapshot_get(engine->config.store, owner, spec->snapshot, &snapshot, err);
	if (r < 0)
		return r;
	r = disk_reserve_check_more(engine, snapshot.bytes, err);
	if (r == 0) {
		snapshot_record_draft(&snapshot, engine->config.driver->ops->name, ret_draft);
		override(engine, spec, ret_draft);
		r = dependencies_fill_draft(engine, &spec->dependencies, ret_draft, err);
		if (r < 0)
			sandbox_record_fini(ret_draft);
	}
	snapshot_record_fini(&snapshot);
	return r;
}

/* One that waits for the template of a member waits for that job; it is not told of before. */
static int add_members(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, const json_t *image, struct sandbox_record *draft,
	struct err *err)
{
	char job[ID_LEN + 1];
	int r = 0;

	if (spec->member_count > 0)
		r = member_draft(engine, &caller->owner, spec, draft, job, err);
	else if (!spec->members)
		r = member_draft_usual(engine, &caller->owner, spec, image, draft, job, err);
	if (r < 0)
		return r;
	if (json_array_size(draft->members) == 0 && r == 0)
		return 0;
	if (spec->waits == CHOICE_NO && (r == 1 || draft->job[0]))
		return err_explain(err, ERR_INVALID, "members_wait",
			"leave out `wait`, or build the templates first",
			"field wait: a sandbox with members waits for the templates of all");
	if (r == 1)
		memcpy(draft->job, job, sizeof(job));
	return 0;
}

/* The record of what is asked for, if this caller may have it; with a job if its image is not there. */
static int prepare(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_record *ret_draft, struct err *err)
{
	char job[ID_LEN + 1];
	json_auto_t *image = NULL;
	int r = sandbox_spec_check(spec, err);

	if (r == 0)
		r = check_starts(caller, spec->start_count, err);
	if (r == 0)
		r = check_dependencies(engine, caller, &spec->dependencies, err);
	if (r == 0)
		r = check_members(caller, spec, err);
	if (r == 0)
		r = check_network(engine, caller, &spec->network, err);
	if (r == 0 && spec->snapshot)
		return prepare_from_snapshot(engine, &caller->owner, spec, ret_draft, err);
	if (r == 0)
		r = templates_resolve(engine, &caller->owner, template_of(spec), &image, job, err);
	if (r < 0)
		return r;
	make_draft(engine, &caller->owner, spec, image, ret_draft);
	/* 1: there is no image yet. */
	if (r == 0)
		replace(&ret_draft->image, json_incref(image));
	memcpy(ret_draft->job, job, sizeof(job));
	r = dependencies_fill_draft(engine, &spec->dependencies, ret_draft, err);
	if (r == 0)
		r = add_members(engine, caller, spec, image, ret_draft, err);
	if (r < 0)
		sandbox_record_fini(ret_draft);
	return r;
}

/* --- the requests --- */

/* What an earlier try that was cut short has made, if it came so far. */
static int find_made(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox **ret_sandbox)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct err ignored;

	if (!spec->tried_at_ms || !spec->id ||
		sandbox_get(engine, &caller->owner, spec->id, &sandbox, &ignored) < 0)
		return -ENOENT;
	sandbox_read(sandbox, &record);
	sandbox_record_fini(&record);
	if (record.created_at_ms < spec->tried_at_ms)
		return -ENOENT;
	*ret_sandbox = take_ptr(&sandbox);
	return 0;
}

/* Whether the caller is to wait for the image first; says for which job. */
static bool must_wait(const struct sandbox_spec *spec, const struct sandbox_record *draft,
	struct sandbox_request_result *result)
{
	if (!draft->job[0] || spec->waits == CHOICE_NO)
		return false;
	memcpy(result->job, draft->job, sizeof(result->job));
	return true;
}

static int create(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
{
	struct sandbox_record draft;
	bool waits;
	int r = prepare(engine, caller, spec, &draft, err);

	if (r < 0)
		return r;
	if (find_made(engine, caller, spec, &ret_result->sandbox) < 0)
		r = must_wait(spec, &draft, ret_result)
			    ? 1
			    : sandbox_create(engine, &draft, &ret_result->sandbox, err);
	waits = draft.job[0];
	sandbox_record_fini(&draft);
	/* One that waits for its image gets them with its first start. */
	if (r == 0 && !waits)
		dependencies_complete(ret_result->sandbox, &spec->dependencies);
	return r;
}

/* Noted before it is made: a daemon that finds it removes it. */
static int make_passing(struct engine *engine, struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct err ignored;
	int r;

	draft->idle_timeout_s = SANDBOX_NO_LIMIT;
	id_new(clock_wall_ms(), draft->id);
	r = store_builder_add(engine->config.store, draft->id, err);
	if (r == 0) {
		r = sandbox_create(engine, draft, ret_sandbox, err);
		if (r < 0)
			(void)!store_builder_delete(engine->config.store, draft->id, &ignored);
	}
	return r;
}

static int create_passing(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
{
	struct sandbox_record draft;
	int r = prepare(engine, caller, spec, &draft, err);

	if (r < 0)
		return r;
	if (must_wait(spec, &draft, ret_result)) {
		sandbox_record_fini(&draft);
		return 1;
	}
	r = make_passing(engine, &draft, &ret_result->sandbox, err);
	sandbox_record_fini(&draft);
	if (r == 0)
		dependencies_complete(ret_result->sandbox, &spec->dependencies);
	return r;
}

static int ensure(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
{
	struct sandbox_record draft;
	bool waits;
	int r = prepare(engine, caller, spec, &draft, err);

	if (r < 0)
		return r;
	r = must_wait(spec, &draft, ret_result)
		    ? 1
		    : sandbox_ensure(
			      engine, &draft, &ret_result->sandbox, &ret_result->is_created, err);
	waits = draft.job[0];
	sandbox_record_fini(&draft);
	/* One that waits for its image gets them with its first start. */
	if (r == 0 && !waits)
		dependencies_complete(ret_result->sandbox, &spec->dependencies);
	return r;
}

/* The image stays from the look at its template on until the row says that it is used. */
static int use_image(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec,
	int (*make)(struct engine *engine, const struct caller *caller,
		const struct sandbox_spec *spec, struct sandbox_request_result *ret_result,
		struct err *err),
	struct sandbox_request_result *ret_result, struct err *err)
{
	auto_free struct project_defaults *defaults = mem_new(sizeof(*defaults));
	int r;

	r = project_defaults_fill(engine->config.projects, &caller->owner, spec, defaults, err);
	if (r < 0)
		return r;
	spec = &defaults->spec;
	templates_begin_use(engine);
	r = make(engine, caller, spec, ret_result, err);
	/* Its template was removed, and then its layers, between two looks at it: the next look has it fetched anew. */
	if (r < 0 && strcmp(err->code, STORE_IMAGE_MISSING) == 0)
		r = make(engine, caller, spec, ret_result, err);
	templates_end_use(engine);
	project_defaults_fini(defaults);
	return r;
}

int sandbox_request_create(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
{
	return use_image(engine, caller, spec, create, ret_result, err);
}

int sandbox_request_create_passing(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
{
	return use_image(engine, caller, spec, create_passing, ret_result, err);
}

int sandbox_request_ensure(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
{
	return use_image(engine, caller, spec, ensure, ret_result, err);
}

int sandbox_request_adopt(struct engine *engine, const struct owner *owner, const char *id,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_spec spec = {.id = id};
	struct sandbox_record draft;
	int r;

	make_draft(engine, owner, &spec, NULL, &draft);
	r = orphan_adopt(engine, &draft, ret_sandbox, err);
	sandbox_record_fini(&draft);
	return r;
}

/* A sandbox of a template that is nobody's yet. */
static void draft_unowned(const struct engine *engine, const struct sandbox_spec *spec,
	const json_t *image, struct sandbox_record *ret_draft)
{
	make_draft(engine, &owner_pool, spec, image, ret_draft);
	replace(&ret_draft->image, json_deep_copy(image));
}

int sandbox_request_draft_pooled(struct engine *engine, const struct owner *owner,
	const char *template_name, const json_t *image, struct sandbox_record *ret_draft,
	struct err *err)
{
	struct sandbox_spec spec = {
		.template_name = template_name, .idle_timeout_s = SANDBOX_NO_LIMIT};
	int r;

	draft_unowned(engine, &spec, image, ret_draft);
	ret_draft->is_waiting = true;
	r = member_draft_usual(engine, owner, &spec, image, ret_draft, NULL, err);
	if (r < 0)
		sandbox_record_fini(ret_draft);
	return r;
}

int sandbox_request_add_members(struct sandbox *sandbox, const struct caller *caller,
	const struct member_spec *members, size_t count, char ret_job[ID_LEN + 1], struct err *err)
{
	const struct sandbox_spec spec = {.members = members, .member_count = count};
	int r = member_spec_check(members, count, err);

	if (r == 0)
		r = check_members(caller, &spec, err);
	if (r < 0)
		return r;
	templates_begin_use(sandbox->engine);
	r = member_join(sandbox, &spec, ret_job, err);
	templates_end_use(sandbox->engine);
	return r;
}

int sandbox_request_create_waiting(struct engine *engine, const struct owner *viewer,
	const char *template_name, struct sandbox **ret_sandbox, struct err *err)
{
	const struct sandbox_spec spec = {.template_name = template_name};
	json_t *image = NULL;
	struct sandbox_record draft;
	char job[ID_LEN + 1];
	int r;

	templates_begin_use(engine);
	r = template_find(template_name)
		    ? templates_resolve(engine, viewer, template_name, &image, job, err)
		    : templates_look(engine, viewer, template_name, &image, err);
	if (r == 0 && json_object_get(json_object_get(image, "options"), "members"))
		r = err_set(err, ERR_CONFLICT, "template %s gives its sandboxes members",
			template_name);
	if (r == 0) {
		draft_unowned(engine, &spec, image, &draft);
		r = make_passing(engine, &draft, ret_sandbox, err);
		sandbox_record_fini(&draft);
	}
	templates_end_use(engine);
	json_decref(image);
	return r;
}

/* --- builders --- */

/* Rules of the operator's own go behind those that the network has. */
static void add_rules(json_t *network, const json_t *rules)
{
	json_t *allow = json_object_get(network, "allow");

	if (json_array_size(rules) == 0)
		return;
	if (!allow) {
		allow = json_array();
		json_object_set_new(network, "allow", allow);
	}
	json_array_extend(allow, (json_t *)rules);
}

int sandbox_request_create_builder(struct engine *engine, const struct owner *owner,
	const struct sandbox_builder_spec *builder, struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_spec spec = {.template_name = builder->template_name,
		.resources = builder->resources,
		.idle_timeout_s = SANDBOX_NO_LIMIT};
	struct sandbox_record draft;
	struct err ignored;
	int r;

	make_draft(engine, owner, &spec, NULL, &draft);
	id_new(clock_wall_ms(), draft.id);
	if (builder->image)
		replace(&draft.image, json_deep_copy(builder->image));
	if (builder->network)
		replace(&draft.network, json_deep_copy(builder->network));
	add_rules(draft.network, builder->allow);
	r = store_builder_add(engine->config.store, draft.id, err);
	if (r == 0) {
		r = sandbox_create(engine, &draft, ret_sandbox, err);
		if (r < 0)
			(void)!store_builder_delete(engine->config.store, draft.id, &ignored);
	}
	sandbox_record_fini(&draft);
	return r;
}

int sandbox_request_purge_builder(struct engine *engine, const char *id, struct err *err)
{
	int r = sandbox_purge(engine, NULL, id, err);

	return r < 0 ? r : store_builder_delete(engine->config.store, id, err);
}

/* --- changes --- */

struct change {
	const struct engine *engine;
	const struct sandbox_change *asked;
};

static void apply_change(struct sandbox_record *record, void *arg)
{
	const struct change *change = arg;
	const struct sandbox_change *asked = change->asked;

	if (asked->name)
		copy_text(record->name, sizeof(record->name), asked->name);
	if (asked->idle_timeout_s)
		record->idle_timeout_s = asked->idle_timeout_s;
	if (asked->lifetime_s)
		record->lifetime_s = asked->lifetime_s;
	record->expires_at_ms = record->lifetime_s == SANDBOX_NO_LIMIT
					? 0
					: record->created_at_ms + record->lifetime_s * 1000;
	fill_resources(&asked->resources, &record->resources, &record->resources);
	if (asked->labels.pairs)
		replace(&record->labels, text_map_to_json(asked->labels));
	if (asked->ports)
		replace(&record->ports,
			sandbox_spec_ports_to_json(asked->ports, asked->port_count));
	if (asked->network)
		replace(&record->network,
			make_network(change->engine, asked->network, record->template_name));
	if (asked->starts)
		replace(&record->start,
			sandbox_spec_starts_to_json(asked->starts, asked->start_count));
	if (asked->is_private != CHOICE_UNSET)
		record->is_private = asked->is_private == CHOICE_YES;
}

int sandbox_request_change(struct sandbox *sandbox, const struct caller *caller,
	const struct sandbox_change *asked, struct err *err)
{
	struct change change = {sandbox->engine, asked};
	int r = sandbox_spec_check_change(asked, err);

	if (r == 0)
		r = check_starts(caller, asked->start_count, err);
	if (r == 0 && asked->network)
		r = check_network(sandbox->engine, caller, asked->network, err);
	if (r == 0)
		r = sandbox_change(sandbox, apply_change, &change, err);
	if (r == 0 && (asked->ports || asked->is_private != CHOICE_UNSET))
		engine_note_unshared(sandbox->engine);
	return r;
}

struct port_change {
	const struct sandbox_port_change *asked;
	struct sandbox_port port; /* as it is then */
	bool is_done;
};

static void apply_port_change(struct sandbox_record *record, void *arg)
{
	struct port_change *change = arg;
	const struct sandbox_port_change *asked = change->asked;
	json_auto_t *members = json_object();

	if (asked->is_public != CHOICE_UNSET)
		json_object_set_new(
			members, "public", json_boolean(asked->is_public == CHOICE_YES));
	if (asked->keeps_prefix != CHOICE_UNSET)
		json_object_set_new(members, "prefix",
			json_string(asked->keeps_prefix == CHOICE_YES ? "keep" : "strip"));
	change->is_done = sandbox_port_change(record->ports, asked->number, members) &&
			  sandbox_port_find(record, asked->number, &change->port);
}

int sandbox_request_change_port(struct sandbox *sandbox, const struct sandbox_port_change *asked,
	struct sandbox_port *ret_port, struct err *err)
{
	struct port_change change = {.asked = asked};
	int r = sandbox_change(sandbox, apply_port_change, &change, err);

	if (r < 0)
		return r;
	if (!change.is_done)
		return err_explain(err, ERR_CONFLICT, "too_many_ports",
			"take away some that are not needed: PATCH /v1/sandboxes/{id} with `ports`",
			"sandbox %s has %d ports with previews, and may not have more", sandbox->id,
			SANDBOX_PORTS_MAX);
	engine_note_unshared(sandbox->engine);
	*ret_port = change.port;
	return 0;
}

/* --- lists --- */

static int check_filter(const struct sandbox_filter *filter, struct err *err)
{
	enum sandbox_status status;

	if (filter->status && sandbox_status_parse(filter->status, &status) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter status must be creating, running, paused, stopped or error");
	if (filter->after && !id_is_valid(filter->after))
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter cursor must be the next_cursor of the page before");
	return 0;
}

int sandbox_request_list(struct engine *engine, const struct caller *caller,
	const struct sandbox_filter *filter,
	bool (*each)(const struct sandbox_record *record, void *arg), void *arg, struct err *err)
{
	struct store_filter rows = {.owner = &caller->owner,
		.status = filter->status,
		.template_name = filter->template_name,
		.project = filter->project,
		.session = filter->session,
		.label_key = filter->label.name,
		.label_value = filter->label.value,
		.after = filter->after,
		.limit = filter->limit};
	int r = check_filter(filter, err);

	return r < 0 ? r : store_sandbox_list(engine->config.store, &rows, each, arg, err);
}

int sandbox_request_list_removed(struct engine *engine, const struct caller *caller,
	const struct sandbox_filter *filter,
	bool (*each)(const struct workspace_record *record, void *arg), void *arg, struct err *err)
{
	int r = check_filter(filter, err);

	if (r < 0)
		return r;
	if (filter->status || filter->template_name || filter->project || filter->session ||
		filter->label.name)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter removed goes with no other filter");
	return store_workspace_list(
		engine->config.store, &caller->owner, filter->after, filter->limit, each, arg, err);
}
