/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function finds the way of a request, from top to bottom: address, sandbox, permission, state, port. Who may
 * not see a preview learns nothing of it, not even whether it is there, and wakes nobody.
 */
#include "api/previews.h"

#include "api/preview_pages.h"
#include "base/clock.h"
#include "base/number.h"
#include "core/preview.h"
#include "model/preview_name.h"
#include "proxy/proxy.h"
#include "proxy/rewrite.h"

#include <errno.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SECRET_MAX  128
#define COOKIES_MAX 8
#define FIELDS_MAX  (16u * 1024)
#define HOLD_MS	    30000 /* how long a request waits for an app that is starting */
#define YOUNG_MS    60000 /* a sandbox whose app may still be starting */
#define FAILURES    16
#define FAILURE_MS  2000 /* how long a failed start is answered without another try */
#define GOOD_MS                                                                                    \
	5000 /* how long a way is good for more requests: then the token may be gone, or the link */

struct failure {
	char id[ID_LEN + 1];
	uint64_t at_ms;
	char message[320];
};

struct previews {
	struct previews_config config;
	struct proxy *proxy;

	pthread_mutex_t lock;
	struct failure failures[FAILURES];
	size_t next_failure;
};

/* What a request asks for. */
struct goal {
	char id[ID_LEN + 1];
	uint16_t port;
	size_t prefix_len; /* of the target, in the form with a path */
	bool is_by_path;
};

/* --- address --- */

/* What follows a prefix must not make another word of it. */
static bool is_cut(char byte)
{
	return byte == '\0' || byte == '/' || byte == '?';
}

/* Reads "<id>" and more; the rest, or NULL. */
static const char *read_id(const char *path, char id[ID_LEN + 1])
{
	if (strnlen(path, ID_LEN) < ID_LEN)
		return NULL;
	memcpy(id, path, ID_LEN);
	id[ID_LEN] = '\0';
	return id_is_valid(id) ? path + ID_LEN : NULL;
}

static const char *skip(const char *path, const char *word)
{
	return path && strncmp(path, word, strlen(word)) == 0 ? path + strlen(word) : NULL;
}

/* "/v1/sandboxes/<id>/preview/<port>", and the older "/api/sandbox/sessions/<id>/preview" of the first port. */
static int parse_path(const char *target, struct goal *goal)
{
	const char *rest = skip(target, "/v1/sandboxes/");
	bool has_port = rest != NULL;
	uint64_t port = 0;
	char text[8];

	if (!rest)
		rest = skip(target, "/api/sandbox/sessions/");
	rest = rest ? skip(read_id(rest, goal->id), has_port ? "/preview/" : "/preview") : NULL;
	if (!rest)
		return -ENOENT;
	if (has_port) {
		size_t len = strspn(rest, "0123456789");

		if (len == 0 || len > 5 || rest[0] == '0')
			return -EINVAL;
		memcpy(text, rest, len);
		text[len] = '\0';
		if (number_parse(text, 1, 65535, &port) < 0)
			return -EINVAL;
		rest += len;
	}
	if (!is_cut(*rest))
		return -EINVAL;
	goal->port = (uint16_t)port;
	goal->prefix_len = (size_t)(rest - target);
	goal->is_by_path = true;
	return 0;
}

/* A page below a path asks for things at the root, as pages do: where it came from says whose they are. */
static int parse_referer(const char *referer, struct goal *goal)
{
	const char *path = referer ? strstr(referer, "://") : NULL;
	int r;

	path = path ? strchr(path + 3, '/') : NULL;
	r = path ? parse_path(path, goal) : -ENOENT;
	goal->prefix_len = 0;
	return r;
}

static bool is_own_host(const struct previews *previews, const char *host)
{
	const struct listener *listener = previews->config.listener;
	char own[LISTENER_HOST_MAX + 8];

	snprintf(own, sizeof(own), "%s:%u", listener->host, listener->port);
	if (strcasecmp(host, own) == 0 ||
		preview_name_is_domain(host, previews->config.api->preview_domain))
		return true;
	snprintf(own, sizeof(own), "localhost:%u", listener->port);
	return strcasecmp(host, own) == 0;
}

static int find_goal(
	const struct previews *previews, const struct proxy_visit *visit, struct goal *goal)
{
	int r = preview_name_parse(
		visit->host, previews->config.api->preview_domain, goal->id, &goal->port);

	if (r != -ENOENT || !is_own_host(previews, visit->host))
		return r;
	r = parse_path(visit->target, goal);
	return r == -ENOENT ? parse_referer(visit->referer, goal) : r;
}

/* --- permission --- */

static bool has_port(const struct sandbox_record *record, uint16_t port)
{
	json_t *item;
	size_t i;

	json_array_foreach(record->ports, i, item)
	{
		if (json_integer_value(item) == port)
			return true;
	}
	return false;
}

/* A link that was shown, and the secret that showed it. */
struct shown_link {
	struct slice secret;
	struct preview_link link;
};

/* The secret of a link in the query of a target, at NULL if there is none. */
static struct slice query_secret(const char *target)
{
	for (const char *at = strchr(target, '?'); at; at = strchr(at + 1, '&')) {
		const char *secret = skip(at + 1, REWRITE_LINK);

		if (secret)
			return (struct slice){secret, strcspn(secret, "&#")};
	}
	return (struct slice){0};
}

static bool is_link_of(struct previews *previews, const struct goal *goal, struct slice secret,
	struct shown_link *ret_shown)
{
	struct preview_link *link = &ret_shown->link;
	unsigned char hash[32];
	struct err err;

	if (secret.len == 0 || secret.len > SECRET_MAX)
		return false;
	ret_shown->secret = secret;
	SHA256((const unsigned char *)secret.at, secret.len, hash);
	return store_preview_link_get(previews->config.store, hash, link, &err) == 0 &&
	       strcmp(link->sandbox_id, goal->id) == 0 && link->port == goal->port;
}

/* An app on a neighbouring name may have put a cookie of this name in front of ours: all of them are tried. */
static bool has_link_cookie(struct previews *previews, const struct proxy_visit *visit,
	const struct goal *goal, struct shown_link *ret_shown)
{
	struct slice header = {visit->cookie, visit->cookie ? strlen(visit->cookie) : 0}, secret;
	unsigned tries = 0;

	while (tries++ < COOKIES_MAX && rewrite_cookie(&header, REWRITE_COOKIE, &secret)) {
		if (is_link_of(previews, goal, secret, ret_shown))
			return true;
	}
	return false;
}

static bool is_own_origin(const char *origin, const char *host)
{
	const char *name = origin ? strstr(origin, "://") : NULL;

	return !origin || (name && strcasecmp(name + 3, host) == 0);
}

/* The token of a request, or NULL. */
static const char *shown_token(const struct proxy_visit *visit)
{
	if (visit->api_key && strncmp(visit->api_key, "slt_", 4) == 0)
		return visit->api_key;
	if (visit->authorization && strncasecmp(visit->authorization, "Bearer slt_", 11) == 0)
		return visit->authorization + 7;
	return NULL;
}

static bool is_owner(struct previews *previews, const char *token,
	const struct sandbox_record *record, struct principal *ret_principal)
{
	static const struct route looking = {
		.method = "GET", .path = "a preview", .scope = SCOPE_READ};
	struct err err;

	return gate_admit(&previews->config.api->gate, &(struct credential){.token = token},
		       &looking, ret_principal, &err) == 0 &&
	       strcmp(ret_principal->organization, record->owner.organization) == 0 &&
	       strcmp(ret_principal->user, record->owner.user) == 0;
}

/*
 * A link was opened: it becomes a cookie of this name alone, and leaves the address. The answer must lead nowhere
 * else: to a browser, two slashes in front of a path make a host of it.
 */
static void answer_link(const struct proxy_visit *visit, const struct goal *goal,
	const struct shown_link *shown, struct proxy_way *way)
{
	const char *target = visit->target;
	const char *from = shown->secret.at - strlen(REWRITE_LINK);
	const char *after = shown->secret.at + shown->secret.len;
	int64_t left_s = (shown->link.expires_at_ms - clock_wall_ms()) / 1000;
	const char *begin = target + strspn(target, "/\\");

	if (*after == '&')
		after++;
	else
		from--; /* the separator before it */
	way->kind = PROXY_ANSWER;
	way->status = 302;
	way->type = "text/plain";
	way->fields = BUF_INIT(FIELDS_MAX);
	buf_printf(&way->fields, "Location: /%.*s%s\r\n", (int)(from - begin), begin, after);
	buf_printf(&way->fields,
		"Set-Cookie: " REWRITE_COOKIE
		"=%.*s; Path=%.*s; Max-Age=%lld; HttpOnly; SameSite=Lax\r\n",
		(int)shown->secret.len, shown->secret.at,
		goal->prefix_len ? (int)goal->prefix_len : 1, target,
		(long long)(left_s > 0 ? left_s : 0));
}

static void refuse_foreign(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(&(struct preview_page){.status = 403,
				 .code = "foreign_origin",
				 .title = "Not from there",
				 .message = "A page of another origin may not use this preview."},
		visit, way);
}

static void refuse_stranger(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(
		&(struct preview_page){.status = 401,
			.code = "preview_private",
			.title = "This preview is private",
			.message = "It opens with a link from its owner, or with a token.",
			.remediation = "Its owner makes a link with: sandlot open ID PORT"},
		visit, way);
}

/* Who came in with a secret stays until that expires (0: never), or is revoked. */
static void grant(struct slice secret, int64_t expires_at_ms, struct proxy_way *way)
{
	int64_t left_ms = expires_at_ms - clock_wall_ms();

	way->ends_ms = expires_at_ms == 0
			       ? UINT64_MAX
			       : clock_steady_ms() + (uint64_t)(left_ms > 0 ? left_ms : 0);
	SHA256((const unsigned char *)secret.at, secret.len, way->grant);
}

/* Whether it may be seen; else, or if that is an answer already, the way says what to tell. */
static bool may_enter(struct previews *previews, const struct proxy_visit *visit,
	const struct goal *goal, const struct sandbox_record *record, struct proxy_way *way)
{
	const char *token = shown_token(visit);
	struct shown_link shown;
	struct principal principal;

	if (!record || !has_port(record, goal->port)) {
		refuse_stranger(visit, way);
		return false;
	}
	if (is_link_of(previews, goal, query_secret(visit->target), &shown)) {
		answer_link(visit, goal, &shown, way);
		return false;
	}
	way->ends_ms = UINT64_MAX;
	if (!record->is_private)
		return true;
	if (token && is_owner(previews, token, record, &principal)) {
		grant((struct slice){token, strlen(token)}, principal.expires_at_ms, way);
		return true;
	}
	if (!has_link_cookie(previews, visit, goal, &shown)) {
		refuse_stranger(visit, way);
		return false;
	}
	if (visit->is_foreign || !is_own_origin(visit->origin, visit->host)) {
		refuse_foreign(visit, way);
		return false;
	}
	grant(shown.secret, shown.link.expires_at_ms, way);
	return true;
}

/* Whether what opened a way still does: that it is public, or the link or the token. */
static bool is_open(
	struct previews *previews, const struct sandbox_record *record, const struct proxy_way *way)
{
	struct store *store = previews->config.store;
	struct preview_link link;
	struct token_record token;
	struct err err;

	if (!has_port(record, way->port))
		return false;
	return !record->is_private || store_preview_link_get(store, way->grant, &link, &err) == 0 ||
	       store_token_find(store, way->grant, clock_wall_ms(), &token, &err) == 0;
}

static bool is_granted(void *context, const struct proxy_way *way)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct err err;
	bool is_so;

	if (!engine || sandbox_get(engine, NULL, way->key, &sandbox, &err) < 0)
		return false;
	sandbox_read(sandbox, &record);
	is_so = is_open(previews, &record, way);
	sandbox_record_fini(&record);
	return is_so;
}

/* --- state --- */

static bool recent_failure(struct previews *previews, const char *id, char message[320])
{
	bool found = false;

	pthread_mutex_lock(&previews->lock);
	for (size_t i = 0; i < FAILURES && !found; i++) {
		const struct failure *failure = &previews->failures[i];

		found = strcmp(failure->id, id) == 0 &&
			clock_steady_ms() - failure->at_ms < FAILURE_MS;
		if (found)
			memcpy(message, failure->message, sizeof(failure->message));
	}
	pthread_mutex_unlock(&previews->lock);
	return found;
}

static void note_failure(struct previews *previews, const char *id, const char *message)
{
	struct failure *failure;

	pthread_mutex_lock(&previews->lock);
	failure = &previews->failures[previews->next_failure++ % FAILURES];
	failure->at_ms = clock_steady_ms();
	snprintf(failure->id, sizeof(failure->id), "%s", id);
	snprintf(failure->message, sizeof(failure->message), "%s", message);
	pthread_mutex_unlock(&previews->lock);
}

static void wake(void *context, const char *key)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct err err;

	if (!engine)
		return;
	if (sandbox_get(engine, NULL, key, &sandbox, &err) < 0 || preview_wake(sandbox, &err) < 0)
		note_failure(previews, key, err.message);
}

/* What browsers and crawlers ask for by themselves is no reason to start anything. */
static bool is_idle_curiosity(const struct proxy_visit *visit)
{
	return strcmp(visit->method, "HEAD") == 0 || strcmp(visit->target, "/favicon.ico") == 0 ||
	       strcmp(visit->target, "/robots.txt") == 0;
}

static void lead_to_sleeping(struct previews *previews, const struct proxy_visit *visit,
	const struct sandbox_record *record, struct proxy_way *way)
{
	char message[320];

	memcpy(way->key, record->id, sizeof(record->id));
	if (recent_failure(previews, record->id, message))
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "wake_failed",
					 .title = "The sandbox does not start",
					 .message = message},
			visit, way);
	else if (is_idle_curiosity(visit))
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "sandbox_asleep",
					 .title = "The sandbox sleeps",
					 .message = "This request does not wake it."},
			visit, way);
	else if (visit->is_page) {
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "starting",
					 .title = "Starting the sandbox",
					 .message = "It was asleep. This page reloads by itself.",
					 .reloads = true},
			visit, way);
		way->also_wakes = true;
	} else {
		way->kind = PROXY_WAKE;
	}
}

static void lead_to_running(struct sandbox *sandbox, const struct proxy_visit *visit,
	const struct goal *goal, const struct sandbox_record *record, struct proxy_way *way)
{
	bool is_young = clock_wall_ms() - record->started_at_ms < YOUNG_MS;
	struct err err;

	way->port = goal->port;
	way->prefix_len = goal->prefix_len;
	way->is_confined = goal->is_by_path;
	if (!goal->is_by_path)
		way->good_until_ms = clock_steady_ms() + GOOD_MS;
	if (way->ends_ms && way->ends_ms < way->good_until_ms)
		way->good_until_ms = way->ends_ms;
	memcpy(way->key, record->id, sizeof(record->id));
	if (preview_connect(sandbox, goal->port, &way->fd, &err) == 0)
		way->kind = PROXY_GO;
	else if (strcmp(err.code, "port_closed") == 0 && is_young && visit->is_page)
		preview_page_put(
			&(struct preview_page){.status = 503,
				.code = "app_starting",
				.title = "Waiting for the app",
				.message = "The sandbox runs; nothing answers on this port yet. "
					   "This page reloads by itself.",
				.reloads = true},
			visit, way);
	else if (visit->waited_ms < HOLD_MS &&
		 ((strcmp(err.code, "port_closed") == 0 && is_young) ||
			 strcmp(err.code, "port_busy") == 0))
		way->kind = PROXY_LATER;
	else
		preview_page_put(&(struct preview_page){.status = 502,
					 .code = err.code,
					 .title = "Nothing answers on this port",
					 .message = err.message,
					 .remediation = err.remedy},
			visit, way);
}

static void lead(struct previews *previews, struct sandbox *sandbox,
	const struct proxy_visit *visit, const struct goal *goal,
	const struct sandbox_record *record, struct proxy_way *way)
{
	switch (record->status) {
	case SANDBOX_RUNNING:
		lead_to_running(sandbox, visit, goal, record, way);
		break;
	case SANDBOX_ERROR:
		preview_page_put(&(struct preview_page){.status = 502,
					 .code = "sandbox_error",
					 .title = "The sandbox is in error",
					 .message = record->error_message,
					 .remediation = "start it again: sandlot start ID"},
			visit, way);
		break;
	default:
		lead_to_sleeping(previews, visit, record, way);
	}
}

static void find(void *context, const struct proxy_visit *visit, struct proxy_way *way)
{
	struct previews *previews = context;
	struct api *api = previews->config.api;
	struct engine *engine = atomic_load(&api->engine);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct goal goal = {0};
	struct err err;
	int r = find_goal(previews, visit, &goal);

	way->generation = atomic_load(&api->preview_generation);
	if (r < 0 || !engine) {
		preview_page_put(
			&(struct preview_page){.status = r < 0 ? 421 : 503,
				.code = r < 0 ? "no_preview_of_that_name" : "starting",
				.title = r < 0 ? "No preview has this name" : "Sandlot is starting",
				.message =
					"Previews are at s-<id>-<port> below the preview domain.",
				.reloads = r == 0},
			visit, way);
		return;
	}
	if (sandbox_get(engine, NULL, goal.id, &sandbox, &err) < 0) {
		may_enter(previews, visit, &goal, NULL, way);
		return;
	}
	sandbox_read(sandbox, &record);
	if (goal.port == 0)
		goal.port = (uint16_t)json_integer_value(json_array_get(record.ports, 0));
	if (may_enter(previews, visit, &goal, &record, way))
		lead(previews, sandbox, visit, &goal, &record, way);
	sandbox_record_fini(&record);
}

static void used(void *context, const char *key)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);

	if (engine)
		engine_note_use(engine, key);
}

/* --- life --- */

int previews_open(
	const struct previews_config *config, struct previews **ret_previews, struct err *err)
{
	struct previews *previews = mem_new(sizeof(*previews));
	struct proxy_config proxy = {.listen_fd = config->listener->fd,
		.scheme = "http",
		.threads = config->threads,
		.max_workers = config->max_workers,
		.max_connections = config->max_connections,
		.context = previews,
		.generation = &config->api->preview_generation,
		.find = find,
		.wake = wake,
		.is_granted = is_granted,
		.used = used};
	int r;

	previews->config = *config;
	pthread_mutex_init(&previews->lock, NULL);
	r = proxy_open(&proxy, &previews->proxy, err);
	if (r < 0) {
		previews_close(previews);
		return r;
	}
	*ret_previews = previews;
	return 0;
}

void previews_close(struct previews *previews)
{
	if (!previews)
		return;
	proxy_close(previews->proxy);
	pthread_mutex_destroy(&previews->lock);
	free(previews);
}
