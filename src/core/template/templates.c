/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/templates.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_state.h"
#include "core/template/build/apt_sources.h"
#include "core/template/image/registry_auth.h"
#include "core/template/template_catalogue.h"
#include "model/access/owner.h"
#include "model/template/template.h"
#include "store/access/store_quota.h"
#include "store/store_clock.h"
#include "store/template/store_template.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PART_KEPT_S 86400
#define CA_MAX	    (1u << 20)

/* What is being written of an owner's layers. */
struct growth {
	struct owner owner;
	int64_t bytes;
	struct growth *next;
};

struct templates {
	struct templates_config config;
	struct blob_store *blobs;
	struct layer_installs installs;
	struct engine *_Atomic engine; /* NULL before it is there */
	pthread_mutex_t asking; /* held while a job and the row of its template come together */
	pthread_mutex_t lock;
	unsigned builds; /* that are under way; under the lock, as what follows */
	unsigned uses;	 /* the same, and creates */
	int64_t using_since_ms;
	struct growth *growths;
};

static int remove_blob(void *arg, const struct digest *digest, uint64_t size)
{
	struct err ignored;

	(void)size;
	(void)!blob_store_remove(arg, digest, &ignored);
	return 0;
}

/*
 * An image that is unpacked needs its blobs no more, and one whose pull failed is better fetched from
 * where it broke off: parts stay for a while.
 */
static void empty_blobs(struct templates *templates)
{
	struct err err;

	if (blob_store_walk(templates->blobs, remove_blob, templates->blobs, &err) < 0)
		log_warning("%s", err.message);
	blob_store_sweep(templates->blobs, clock_wall_ms() / 1000 - PART_KEPT_S);
}

int templates_open(const struct templates_config *config, int blobs_fd,
	struct templates **ret_templates, struct err *err)
{
	struct templates *templates = mem_new(sizeof(*templates));
	int r = blob_store_open(blobs_fd, &templates->blobs, err);

	if (r < 0) {
		free(templates);
		return r;
	}
	templates->config = *config;
	blob_store_set_reserve(templates->blobs, config->disk_reserve);
	layer_installs_init(&templates->installs);
	pthread_mutex_init(&templates->asking, NULL);
	pthread_mutex_init(&templates->lock, NULL);
	empty_blobs(templates);
	*ret_templates = templates;
	return 0;
}

void templates_close(struct templates *templates)
{
	if (!templates)
		return;
	blob_store_close(templates->blobs);
	layer_installs_fini(&templates->installs);
	pthread_mutex_destroy(&templates->asking);
	pthread_mutex_destroy(&templates->lock);
	free(templates);
}

/* Whether a list with commas has a name. */
static bool is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n == len && strncmp(list, name, n) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

void templates_attach(struct templates *templates, struct engine *engine)
{
	atomic_store(&templates->engine, engine);
}

int64_t templates_layer_retention_s(const struct templates *templates)
{
	return templates->config.layer_retention_s;
}

bool templates_are_attached(void *context)
{
	struct templates *templates = context;

	return atomic_load(&templates->engine);
}

const char *templates_mirror(const struct templates *templates, const char *kind)
{
	const struct templates_config *config = &templates->config;

	return strcmp(kind, "apt") == 0	  ? config->apt_mirror
	       : strcmp(kind, "pip") == 0 ? config->pip_index
	       : strcmp(kind, "npm") == 0 ? config->npm_registry
	       : strcmp(kind, "go") == 0  ? config->go_proxy
					  : config->apk_mirror;
}

json_t *templates_apt_sources(const struct templates *templates, const char *suite)
{
	const char *mirror = templates->config.apt_mirror;

	return mirror ? json_pack("[o]", json_sprintf("deb %s %s main", mirror, suite))
		      : apt_sources_of_host("/etc/apt", suite);
}

int templates_package_ca(const struct templates *templates, char **ret_text, struct err *err)
{
	const char *path = templates->config.package_ca;
	struct buf content = BUF_INIT(CA_MAX);
	auto_fd int fd = -1;
	char piece[4096];
	ssize_t n;

	*ret_text = NULL;
	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	while ((n = fd < 0 ? -1 : read(fd, piece, sizeof(piece))) > 0)
		buf_append(&content, piece, (size_t)n);
	if (n < 0 || content.failed) {
		buf_fini(&content);
		return err_explain(err, ERR_UNAVAILABLE, "package_ca",
			"the file must be readable for the user of the daemon",
			"cannot read the certificates of --package-ca, %.200s", path);
	}
	*ret_text = buf_take_str(&content);
	return 0;
}

bool templates_offers(const struct engine *engine, const char *name)
{
	return template_is_offered(engine->config.defaults.templates, name);
}

struct engine *templates_engine(struct templates *templates)
{
	return atomic_load(&templates->engine);
}

struct blob_store *templates_blobs(struct templates *templates)
{
	return templates->blobs;
}

struct layer_installs *templates_installs(struct templates *templates)
{
	return &templates->installs;
}

/* --- for builds --- */

int templates_begin(struct engine *engine, struct err *err)
{
	struct templates *templates = engine->config.templates;
	int r = capability_need(engine_driver(engine), DRIVER_LAYERS, err);

	if (r == 0)
		r = disk_reserve_check(engine, err);
	if (r < 0)
		return r;
	templates_begin_use(engine);
	pthread_mutex_lock(&templates->lock);
	templates->builds++;
	pthread_mutex_unlock(&templates->lock);
	return 0;
}

void templates_begin_use(struct engine *engine)
{
	struct templates *templates = engine->config.templates;

	if (!templates)
		return;
	pthread_mutex_lock(&templates->lock);
	if (templates->uses++ == 0)
		templates->using_since_ms = store_clock_ms(engine_store(engine));
	pthread_mutex_unlock(&templates->lock);
}

void templates_end_use(struct engine *engine)
{
	struct templates *templates = engine->config.templates;

	if (!templates)
		return;
	pthread_mutex_lock(&templates->lock);
	templates->uses--;
	pthread_mutex_unlock(&templates->lock);
}

int64_t templates_using_since_ms(struct engine *engine)
{
	struct templates *templates = engine->config.templates;
	int64_t since_ms = store_clock_ms(engine_store(engine));

	pthread_mutex_lock(&templates->lock);
	if (templates->uses > 0 && templates->using_since_ms < since_ms)
		since_ms = templates->using_since_ms;
	pthread_mutex_unlock(&templates->lock);
	return since_ms;
}

void templates_sweep_parts(struct engine *engine)
{
	struct templates *templates = engine->config.templates;

	pthread_mutex_lock(&templates->lock);
	if (templates->builds == 0)
		blob_store_sweep(templates->blobs, INT64_MAX);
	pthread_mutex_unlock(&templates->lock);
}

void templates_count_growth(struct engine *engine, const struct owner *owner, int64_t bytes)
{
	struct templates *templates = engine->config.templates;
	struct growth **at = &templates->growths, *growth;

	pthread_mutex_lock(&templates->lock);
	while (*at && !owner_equals(&(*at)->owner, owner))
		at = &(*at)->next;
	if (!*at) {
		*at = mem_new(sizeof(**at));
		(*at)->owner = *owner;
	}
	growth = *at;
	growth->bytes += bytes;
	if (growth->bytes <= 0) {
		*at = growth->next;
		free(growth);
	}
	pthread_mutex_unlock(&templates->lock);
}

int templates_check_quota(
	struct engine *engine, const struct owner *owner, uint64_t bytes, struct err *err)
{
	struct templates *templates = engine->config.templates;
	const struct growth *growth;

	pthread_mutex_lock(&templates->lock);
	for (growth = templates->growths; growth; growth = growth->next) {
		if (owner_equals(&growth->owner, owner) &&
			(uint64_t)growth->bytes < UINT64_MAX - bytes)
			bytes += (uint64_t)growth->bytes;
	}
	pthread_mutex_unlock(&templates->lock);
	return store_quota_check_more(engine_store(engine), owner, QUOTA_IMAGES, bytes, err);
}

void templates_end(struct engine *engine)
{
	struct templates *templates = engine->config.templates;

	pthread_mutex_lock(&templates->lock);
	if (--templates->builds == 0)
		empty_blobs(templates);
	pthread_mutex_unlock(&templates->lock);
	templates_end_use(engine);
}

int templates_parse(const struct engine *engine, const char *text,
	struct image_reference *ret_reference, struct err *err)
{
	const struct templates_config *config = &engine->config.templates->config;
	const struct image_defaults defaults = {
		.registry = config->registry, .prefix = config->registry_prefix};

	int r = image_reference_parse(text, &defaults, ret_reference, err);

	if (r == 0 && !ret_reference->registry[0])
		return err_explain(err, ERR_UNAVAILABLE, "no_registry",
			"name one: registry.example/name:tag, or start sandlotd with --registry",
			"no registry is set for images whose name has none");
	return r;
}

int templates_open_registry(const struct engine *engine, const char *host,
	struct registry_settings *settings, struct registry **ret_registry, struct err *err)
{
	const struct templates_config *config = &engine->config.templates->config;
	auto_(registry_auth_fini) struct registry_auth auth = {0};
	int r = config->auth_file ? registry_auth_read(config->auth_file, host, &auth, err) : 0;

	if (r < 0)
		return r;
	settings->host = host;
	settings->is_plain = is_listed(config->plain, host);
	settings->ca_file = config->ca_file;
	settings->user = auth.user;
	settings->password = auth.password;
	settings->stall_s = config->stall_s;
	return registry_open(settings, ret_registry, err);
}

bool templates_allow_host(const struct engine *engine, const char *host)
{
	const struct templates_config *config = &engine->config.templates->config;

	return is_listed(config->plain, host) || is_listed(config->allowed, host) ||
	       registry_mirror_is(config->mirrors, host);
}

bool templates_mirror_of(const struct engine *engine, const char *registry, unsigned number,
	struct registry_mirror *ret_mirror)
{
	const struct templates_config *config = &engine->config.templates->config;

	return registry_mirror_get(config->mirrors, config->registry, registry, number, ret_mirror);
}

bool templates_short_name(const struct engine *engine, unsigned number, struct short_name *ret_name)
{
	return short_name_get(engine->config.templates->config.short_names, number, ret_name);
}

json_t *templates_implied_source(const struct engine *engine, const char *name)
{
	struct short_name set;

	if (image_reference_is_explicit(name))
		return json_pack("{s:s}", "image", name);
	if (short_name_find(engine->config.templates->config.short_names, name, &set))
		return json_pack("{s:s}", "image", set.image);
	return template_catalogue_source(name);
}

int templates_keep(struct engine *engine, const struct owner *owner, const char *name,
	int (*change)(struct template_record *record, bool is_new, void *arg, struct err *err),
	void *arg, struct err *err)
{
	struct templates *templates = engine->config.templates;
	int r;

	pthread_mutex_lock(&templates->asking);
	r = store_template_change(engine_store(engine), owner, name, change, arg, err);
	pthread_mutex_unlock(&templates->asking);
	return r;
}

void templates_lock_asking(struct engine *engine)
{
	pthread_mutex_lock(&engine->config.templates->asking);
}

void templates_unlock_asking(struct engine *engine)
{
	pthread_mutex_unlock(&engine->config.templates->asking);
}
