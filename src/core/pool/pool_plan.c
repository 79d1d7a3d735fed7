/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool_plan.h"

#include "base/buf.h"
#include "core/engine/sandbox_state.h"
#include "core/sandbox/member_draft.h"
#include "core/sandbox/sandbox_request.h"
#include "core/template/template_options.h"
#include "core/template/templates.h"
#include "core/template/templates_request.h"
#include "model/access/owner.h"
#include "model/template/template.h"
#include "store/template/store_template.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PLANS_MAX  256
#define STAMP_TEXT (256 * 1024)

/* --- stamps --- */

/* What this program is; another one makes other sandboxes. */
static void add_program(struct buf *text)
{
	struct stat st = {0};

	(void)!stat("/proc/self/exe", &st);
	buf_printf(text, "%s %lld %lld.%ld %lld\n", SANDLOT_VERSION, (long long)st.st_size,
		(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ino);
}

/* What every sandbox gets that asks for nothing else. */
static void add_settings(struct buf *text, const struct engine_config *config)
{
	const struct sandbox_defaults *usual = &config->defaults;
	const struct resources *r = &usual->resources;

	buf_printf(text, "%s %llu %llu %llu %llu\n%s\n%s\n", config->driver->ops->name,
		(unsigned long long)r->cpu_millis, (unsigned long long)r->memory_bytes,
		(unsigned long long)r->disk_bytes, (unsigned long long)r->pids,
		usual->network.modes ? usual->network.modes : "",
		usual->network.rules ? usual->network.rules : "");
	buf_printf(text, "%u %llu\n", config->sandbox_network_limits.connections,
		(unsigned long long)config->sandbox_network_limits.bandwidth);
	buf_printf(text, "%d %s\n", config->limits_disk,
		config->allow_missing ? config->allow_missing : "");
}

static void add_json(struct buf *text, const json_t *value)
{
	auto_free char *dump = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	buf_printf(text, "%s\n", dump ? dump : "");
}

/* The options of a template, but for the size of its pool, and for its members: others may have been asked for. */
static void add_options(struct buf *text, const json_t *image)
{
	json_auto_t *options = json_copy(json_object_get(image, "options"));

	json_object_del(options, "pool");
	json_object_del(options, "members");
	add_json(text, options);
}

void pool_plan_stamp(const struct engine *engine, const struct owner *owner,
	const struct sandbox_record *draft, char ret_stamp[STORE_POOL_STAMP_LEN + 1])
{
	const json_t *image = draft->image;
	const char *stack = json_string_value(json_object_get(image, "stack"));
	json_auto_t *members = member_draft_key(draft->members);
	struct buf text = BUF_INIT(STAMP_TEXT);
	unsigned char digest[SHA256_DIGEST_LENGTH];

	add_program(&text);
	add_settings(&text, &engine->config);
	buf_printf(&text, "%s/%s %s %lld %s\n", owner->organization, owner->user,
		draft->template_name,
		(long long)json_integer_value(json_object_get(image, "version")),
		stack ? stack : "");
	add_options(&text, image);
	add_json(&text, members);
	SHA256(text.data, text.len, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(ret_stamp + 2 * i, 3, "%02x", digest[i]);
	buf_fini(&text);
}

/* --- what the operator sets --- */

/* The next of a list "name=size": 1, 0 at its end, or -EINVAL. */
static int next_set(const char **list, struct pool_plan *ret_plan)
{
	size_t len = strcspn(*list, ","), name = strcspn(*list, "=,");
	char size[8];
	int end = 0;

	if (!len)
		return 0;
	*ret_plan = (struct pool_plan){0};
	if (name == len || name >= sizeof(ret_plan->template_name) ||
		len - name - 1 >= sizeof(size))
		return -EINVAL;
	memcpy(ret_plan->template_name, *list, name);
	snprintf(size, sizeof(size), "%.*s", (int)(len - name - 1), *list + name + 1);
	if (!template_find(ret_plan->template_name) || size[0] < '0' || size[0] > '9' ||
		sscanf(size, "%u%n", &ret_plan->size, &end) != 1 || size[end] ||
		ret_plan->size > TEMPLATE_POOL_MAX)
		return -EINVAL;
	*list += len + ((*list)[len] == ',');
	return 1;
}

int pool_plan_check(const char *setting, struct err *err)
{
	struct pool_plan plan;
	int r;

	while ((r = next_set(&setting, &plan)) > 0)
		;
	return r < 0 ? err_set(err, ERR_INVALID,
			       "pool is a list of template=size, such as host=4,browser=2, of "
			       "templates that need no image, and sizes up to %d",
			       TEMPLATE_POOL_MAX)
		     : 0;
}

/* --- all --- */

struct plans {
	struct engine *engine;
	struct pool_plan *plans;
	size_t count;
};

static bool is_operators(const struct owner *owner)
{
	return !owner->organization[0] || owner_is_operator(owner);
}

void pool_plan_explain(
	const struct engine *engine, const struct pool_plan *plan, char ret_text[POOL_PLAN_TEXT])
{
	unsigned max = engine->config.pool_max;

	ret_text[0] = '\0';
	if (plan->size < plan->asked)
		snprintf(ret_text, POOL_PLAN_TEXT,
			"its template asks for %u, and there is room for %u: all pools together "
			"have "
			"%u at most (--pool-max)%s",
			plan->asked, plan->size, max,
			is_operators(&plan->owner) ? ""
						   : ", and those of one owner a quarter of that");
}

/* How many more sandboxes those of an owner may have. */
static unsigned left_for(const struct plans *plans, const struct owner *owner)
{
	unsigned max = plans->engine->config.pool_max, all = 0, own = 0, left, left_own;

	for (size_t i = 0; i < plans->count; i++) {
		all += plans->plans[i].size;
		if (owner_equals(&plans->plans[i].owner, owner))
			own += plans->plans[i].size;
	}
	left = all < max ? max - all : 0;
	left_own = is_operators(owner) ? left : own < max / 4 ? max / 4 - own : 0;
	return left < left_own ? left : left_own;
}

int pool_plan_draft(struct engine *engine, const struct pool_plan *plan, const json_t *image,
	struct sandbox_record *ret_draft, char ret_stamp[STORE_POOL_STAMP_LEN + 1], struct err *err)
{
	int r = sandbox_request_draft_pooled(
		engine, &plan->owner, plan->template_name, image, ret_draft, err);

	if (r == 0)
		pool_plan_stamp(engine, &plan->owner, ret_draft, ret_stamp);
	return r;
}

static void add(struct plans *plans, const struct pool_plan *plan, const json_t *image)
{
	struct pool_plan *place = &plans->plans[plans->count];
	unsigned left = left_for(plans, &plan->owner);
	struct sandbox_record draft;
	struct err ignored;

	if (plan->size == 0 || plans->count == PLANS_MAX)
		return;
	*place = *plan;
	place->asked = plan->size;
	if (place->size > left)
		place->size = left;
	if (pool_plan_draft(plans->engine, plan, image, &draft, place->stamp, &ignored) == 0)
		sandbox_record_fini(&draft);
	else /* the template of a member is not there: a stamp that no sandbox has */
		snprintf(place->stamp, sizeof(place->stamp), "unavailable %zu", plans->count);
	plans->count++;
}

static bool add_template(const struct template_record *record, void *arg)
{
	json_auto_t *image = NULL;
	struct pool_plan plan = {.owner = record->owner};
	json_int_t size = json_integer_value(json_object_get(
		json_object_get(json_object_get(record->image, "options"), "pool"), "size"));

	if (record->version == 0 || size <= 0 || strlen(record->name) >= sizeof(plan.template_name))
		return true;
	plan.size = (unsigned)size;
	snprintf(plan.template_name, sizeof(plan.template_name), "%s", record->name);
	image = templates_image_of(record);
	add(arg, &plan, image);
	return true;
}

int pool_plan_read(
	struct engine *engine, struct pool_plan **ret_plans, size_t *ret_count, struct err *err)
{
	struct plans plans = {.engine = engine};
	const char *setting = engine->config.pool;
	json_auto_t *nothing = json_object();
	struct pool_plan plan;
	int r = 0;

	plans.plans = mem_new(PLANS_MAX * sizeof(*plans.plans));
	while (setting && next_set(&setting, &plan) > 0) {
		if (templates_offers(engine, plan.template_name))
			add(&plans, &plan, nothing);
	}
	if (engine->config.templates)
		r = store_template_pools(engine_store(engine), add_template, &plans, err);
	if (r < 0) {
		free(plans.plans);
		return r;
	}
	*ret_plans = plans.plans;
	*ret_count = plans.count;
	return 0;
}

int pool_plan_image(
	struct engine *engine, const struct pool_plan *plan, json_t **ret_image, struct err *err)
{
	if (!template_find(plan->template_name))
		return templates_look(engine, &plan->owner, plan->template_name, ret_image, err);
	*ret_image = json_object();
	return 0;
}
