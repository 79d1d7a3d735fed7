/* SPDX-License-Identifier: Apache-2.0 */
#include "image/registry.h"

#include "base/fd.h"
#include "base/format.h"
#include "image/bearer_challenge.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define URL_MAX	      2048
#define TOKEN_MAX     (32u << 10)
#define TOKEN_DOC_MAX (256u << 10)
#define REDIRECTS_MAX 5
#define TRIES_MAX     5 /* of a transfer that breaks off and had brought something */
#define CONNECT_S     30
#define ERROR_BODY    512

#define ACCEPT_MANIFEST                                                                            \
	"Accept: application/vnd.oci.image.index.v1+json, "                                        \
	"application/vnd.docker.distribution.manifest.list.v2+json, "                              \
	"application/vnd.oci.image.manifest.v1+json, "                                             \
	"application/vnd.docker.distribution.manifest.v2+json"

struct registry {
	char *host;
	char *ca_file;
	char *user;
	char *password;
	struct registry_settings settings;
	pthread_mutex_t lock;
	char token[TOKEN_MAX]; /* under the lock; empty: none yet */
};

/* One request, with all redirects. */
struct transfer {
	struct registry *registry;
	CURL *easy;
	/* What a body of a good answer goes to: 0, or -errno with sink_err set. */
	int (*sink)(struct transfer *transfer, const void *data, size_t len);
	void *arg;
	void (*tick)(struct transfer
			*transfer); /* about each second, also while nothing comes; may be NULL */
	uint64_t offset;	    /* bytes that were asked to be left out */
	bool is_restarted;
	long status;
	char challenge[3 * BEARER_TEXT_MAX];
	char detail[CURL_ERROR_SIZE];
	struct err sink_err;
	bool is_address_refused;
};

static void curl_freep(CURL **easy)
{
	curl_easy_cleanup(*easy);
}

static void slist_freep(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

int registry_open(
	const struct registry_settings *settings, struct registry **ret_registry, struct err *err)
{
	struct registry *registry;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "cannot start libcurl");
	registry = mem_new(sizeof(*registry));
	registry->settings = *settings;
	registry->host = copy(settings->host);
	registry->ca_file = copy(settings->ca_file);
	registry->user = copy(settings->user);
	registry->password = copy(settings->password);
	pthread_mutex_init(&registry->lock, NULL);
	*ret_registry = registry;
	return 0;
}

void registry_close(struct registry *registry)
{
	if (!registry)
		return;
	if (registry->password)
		explicit_bzero(registry->password, strlen(registry->password));
	explicit_bzero(registry->token, sizeof(registry->token));
	free(registry->host);
	free(registry->ca_file);
	free(registry->user);
	free(registry->password);
	pthread_mutex_destroy(&registry->lock);
	free(registry);
}

void registry_closep(struct registry **registry)
{
	registry_close(*registry);
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	size_t len = size * count;
	long status = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	/* The text of a refusal is not wanted; curl drops that of a redirect by itself. */
	if (status >= 300)
		return len;
	/* A server that knows no ranges sends all of it. */
	if (transfer->offset > 0 && status != 206)
		transfer->is_restarted = true;
	return transfer->sink(transfer, data, len) < 0 ? 0 : len;
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
	static const char name[] = "www-authenticate:";
	struct transfer *transfer = arg;
	size_t len = size * count, skip = sizeof(name) - 1;

	if (len > skip && strncasecmp(line, name, skip) == 0 &&
		len - skip < sizeof(transfer->challenge)) {
		memcpy(transfer->challenge, line + skip, len - skip);
		transfer->challenge[len - skip] = '\0';
		transfer->challenge[strcspn(transfer->challenge, "\r\n")] = '\0';
	}
	return len;
}

/* The host of the URL that is asked now: after a redirect it is another one than at first. */
static void read_host(const struct transfer *transfer, char host[IMAGE_REFERENCE_MAX])
{
	const char *url = NULL, *start;

	host[0] = '\0';
	curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url);
	start = url ? strstr(url, "://") : NULL;
	if (start)
		snprintf(host, IMAGE_REFERENCE_MAX, "%.*s", (int)strcspn(start + 3, "/?#"),
			start + 3);
}

/* Judges the address that is really dialled, whatever name led to it. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *transfer = arg;
	const struct registry_settings *settings = &transfer->registry->settings;
	char host[IMAGE_REFERENCE_MAX];

	(void)purpose;
	read_host(transfer, host);
	if (settings->may_dial && !settings->may_dial(settings->arg, host, &address->addr)) {
		transfer->is_address_refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int on_progress(
	void *arg, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t up_now)
{
	struct transfer *transfer = arg;
	const struct registry_settings *settings = &transfer->registry->settings;

	if (transfer->tick)
		transfer->tick(transfer);
	(void)total, (void)now, (void)up, (void)up_now;
	return settings->is_cancelled && settings->is_cancelled(settings->arg);
}

static void set_options(struct transfer *transfer, const char *url)
{
	const struct registry *registry = transfer->registry;
	CURL *easy = transfer->easy;

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->detail);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
	curl_easy_setopt(
		easy, CURLOPT_PROTOCOLS_STR, registry->settings.is_plain ? "http,https" : "https");
	curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
		registry->settings.is_plain ? "http,https" : "https");
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT,
		(long)(registry->settings.connect_s ? registry->settings.connect_s : CONNECT_S));
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)REGISTRY_SPEED_MIN);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)registry->settings.stall_s);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(easy, CURLOPT_XFERINFODATA, transfer);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "sandlot/" SANDLOT_VERSION);
	if (registry->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, registry->ca_file);
	if (transfer->offset > 0) {
		char range[32];

		/* With CURLOPT_RESUME_FROM curl would refuse a server that sends all of it. */
		snprintf(range, sizeof(range), "%llu-", (unsigned long long)transfer->offset);
		curl_easy_setopt(easy, CURLOPT_RANGE, range);
	}
}

static void set_basic(struct transfer *transfer)
{
	const struct registry *registry = transfer->registry;

	if (!registry->user)
		return;
	curl_easy_setopt(transfer->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	curl_easy_setopt(transfer->easy, CURLOPT_USERNAME, registry->user);
	curl_easy_setopt(
		transfer->easy, CURLOPT_PASSWORD, registry->password ? registry->password : "");
}

/* Whether there is a token, which then goes with the request. Curl sends it to no other host. */
static bool set_token(struct transfer *transfer)
{
	struct registry *registry = transfer->registry;
	bool has_token;

	pthread_mutex_lock(&registry->lock);
	has_token = registry->token[0] != '\0';
	if (has_token) {
		curl_easy_setopt(transfer->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		curl_easy_setopt(transfer->easy, CURLOPT_XOAUTH2_BEARER, registry->token);
	}
	pthread_mutex_unlock(&registry->lock);
	return has_token;
}

static int explain_failure(struct transfer *transfer, CURLcode code, struct err *err)
{
	const struct registry *registry = transfer->registry;

	if (transfer->sink_err.kind != ERR_NONE) {
		*err = transfer->sink_err;
		return -err_class(err->kind)->errnum;
	}
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return err_explain(err, ERR_CONFLICT, "cancelled", NULL,
			"reading from %s was cancelled", registry->host);
	if (transfer->is_address_refused)
		return err_explain(err, ERR_DENIED, "registry_address",
			"the operator can allow this registry by its name",
			"%s, or a place that it redirects to, is at an address that images are not "
			"read from",
			registry->host);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_explain(err, ERR_TIMEOUT, "registry_stalled", "try again later",
			"%s has sent nothing, or hardly anything, for %u seconds", registry->host,
			registry->settings.stall_s);
	return err_explain(err, ERR_UNAVAILABLE, "registry_unreachable",
		"check the registry's name, and whether this host reaches it; an operator can name "
		"a "
		"mirror with --registry-mirror, and \"sandlot template import\" takes an archive "
		"of "
		"docker save or skopeo",
		"read from %s: %s", registry->host,
		transfer->detail[0] ? transfer->detail : curl_easy_strerror(code));
}

static int explain_status(const struct transfer *transfer, const char *what, struct err *err)
{
	const char *host = transfer->registry->host;

	switch (transfer->status) {
	case 401:
	case 403:
		return err_explain(err, ERR_DENIED, "registry_denied",
			"give the registry's user name and password, if it has such an image",
			"%s refuses to show %s", host, what);
	case 404:
		return err_explain(err, ERR_NOT_FOUND, "image_not_found",
			"check the image's name and tag", "%s has no %s", host, what);
	case 429:
		return err_explain(err, ERR_RATE, "registry_rate", "try again later, or log in",
			"%s refuses %s: too many requests", host, what);
	default:
		return err_explain(err, ERR_UNAVAILABLE, "registry_failed", "try again later",
			"%s answers %ld for %s", host, transfer->status, what);
	}
}

static int perform(struct transfer *transfer, struct err *err)
{
	CURLcode code = curl_easy_perform(transfer->easy);

	if (code != CURLE_OK)
		return explain_failure(transfer, code, err);
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &transfer->status);
	return 0;
}

static int sink_buf(struct transfer *transfer, const void *data, size_t len)
{
	char most[FORMAT_SIZE_LEN];

	if (buf_append(transfer->arg, data, len) == 0)
		return 0;
	format_size(((struct buf *)transfer->arg)->max, most);
	return err_explain(&transfer->sink_err, ERR_TOO_LARGE, "image_document_too_large", NULL,
		"%s sends a document of more than %s", transfer->registry->host, most);
}

/* The address of a token for the challenge; -EMSGSIZE if it is too long. */
static int token_url(CURL *easy, const struct bearer_challenge *challenge, char url[URL_MAX])
{
	struct buf text = BUF_INIT(URL_MAX - 1);
	char *service = curl_easy_escape(easy, challenge->service, 0);
	char *scope = curl_easy_escape(easy, challenge->scope, 0);
	bool has_query = strchr(challenge->realm, '?') != NULL;
	int r;

	buf_printf(&text, "%s%cservice=%s", challenge->realm, has_query ? '&' : '?',
		service ? service : "");
	if (challenge->scope[0])
		buf_printf(&text, "&scope=%s", scope ? scope : "");
	r = text.failed ? -EMSGSIZE : 0;
	if (r == 0) {
		memcpy(url, text.data, text.len);
		url[text.len] = '\0';
	}
	curl_free(service);
	curl_free(scope);
	buf_fini(&text);
	return r;
}

static int keep_token(struct registry *registry, const struct buf *document, struct err *err)
{
	json_t *json = json_loadb((const char *)document->data, document->len, 0, NULL);
	const char *token = json_string_value(json_object_get(json, "token"));
	int r = 0;

	if (!token)
		token = json_string_value(json_object_get(json, "access_token"));
	if (!token || !token[0] || strlen(token) >= TOKEN_MAX || strpbrk(token, "\r\n"))
		r = err_explain(err, ERR_DENIED, "registry_denied", NULL,
			"the token server of %s gives no token", registry->host);
	if (r == 0) {
		pthread_mutex_lock(&registry->lock);
		snprintf(registry->token, sizeof(registry->token), "%s", token);
		pthread_mutex_unlock(&registry->lock);
	}
	json_decref(json);
	return r;
}

static int fetch_token(
	struct registry *registry, const struct bearer_challenge *challenge, struct err *err)
{
	struct buf document = BUF_INIT(TOKEN_DOC_MAX);
	auto_(curl_freep) CURL *easy = curl_easy_init();
	struct transfer transfer = {
		.registry = registry, .easy = easy, .sink = sink_buf, .arg = &document};
	char url[URL_MAX];
	int r;

	if (!easy || token_url(easy, challenge, url) < 0)
		return err_set(err, ERR_DENIED, "%s names a token server that cannot be asked",
			registry->host);
	set_options(&transfer, url);
	set_basic(&transfer);
	r = perform(&transfer, err);
	if (r == 0 && transfer.status != 200)
		r = explain_status(&transfer, "a token", err);
	if (r == 0)
		r = keep_token(registry, &document, err);
	buf_fini(&document);
	return r;
}

/* After a 401: 0 if it is worth asking again. */
static int answer_challenge(struct transfer *transfer, const char *what, struct err *err)
{
	struct bearer_challenge challenge;
	int r = bearer_challenge_parse(transfer->challenge, &challenge);

	if (r == 0)
		return fetch_token(transfer->registry, &challenge, err);
	if (r == -ENOENT && transfer->registry->user) {
		set_basic(transfer);
		return 0;
	}
	return explain_status(transfer, what, err);
}

/* Sends the request, and once more with what the registry demands. */
static int request(struct transfer *transfer, const char *path, const char *accept,
	const char *what, struct err *err)
{
	auto_(slist_freep) struct curl_slist *headers = NULL;
	char url[URL_MAX];
	int r;

	snprintf(url, sizeof(url), "%s://%s/v2/%s",
		transfer->registry->settings.is_plain ? "http" : "https", transfer->registry->host,
		path);
	set_options(transfer, url);
	if (accept) {
		headers = curl_slist_append(NULL, accept);
		curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, headers);
	}
	set_token(transfer);
	r = perform(transfer, err);
	if (r == 0 && transfer->status == 401) {
		r = answer_challenge(transfer, what, err);
		if (r < 0)
			return r;
		set_token(transfer);
		r = perform(transfer, err);
	}
	if (r == 0 && transfer->status != 200 && transfer->status != 206)
		r = explain_status(transfer, what, err);
	return r;
}

int registry_fetch_manifest(struct registry *registry, const char *repository, const char *version,
	struct buf *document, struct digest *ret_digest, struct err *err)
{
	auto_(curl_freep) CURL *easy = curl_easy_init();
	struct transfer transfer = {
		.registry = registry, .easy = easy, .sink = sink_buf, .arg = document};
	char path[URL_MAX], what[URL_MAX];
	struct digest wanted;
	int r;

	if (!easy)
		return err_set(err, ERR_UNAVAILABLE, "cannot start a transfer");
	snprintf(path, sizeof(path), "%s/manifests/%s", repository, version);
	snprintf(what, sizeof(what), "image %s:%s", repository, version);
	r = request(&transfer, path, ACCEPT_MANIFEST, what, err);
	if (r < 0)
		return r;
	digest_of(document->data, document->len, ret_digest);
	if (digest_parse(version, &wanted, NULL) == 0 && !digest_equals(&wanted, ret_digest))
		return err_explain(err, ERR_INVALID, "digest_mismatch",
			"the source is damaged or lies; try another one",
			"%s sends %s when it is asked for %s", registry->host, ret_digest->text,
			wanted.text);
	return 0;
}

struct blob_sink {
	struct blob_writer *writer;
	const struct registry_progress *progress;
};

static void tell_blob(struct transfer *transfer)
{
	struct blob_sink *sink = transfer->arg;

	if (sink->progress)
		sink->progress->moved(sink->progress->arg, blob_writer_length(sink->writer));
}

static int sink_blob(struct transfer *transfer, const void *data, size_t len)
{
	struct blob_sink *sink = transfer->arg;
	int r = 0;

	if (transfer->is_restarted) {
		transfer->is_restarted = false;
		transfer->offset = 0;
		r = blob_writer_restart(sink->writer, &transfer->sink_err);
	}
	if (r == 0)
		r = blob_writer_add(sink->writer, data, len, &transfer->sink_err);
	if (r == 0)
		tell_blob(transfer);
	return r;
}

static int fetch_rest(struct registry *registry, const char *repository,
	const struct image_blob *blob, struct blob_sink *sink, struct err *err)
{
	auto_(curl_freep) CURL *easy = curl_easy_init();
	struct transfer transfer = {.registry = registry,
		.easy = easy,
		.sink = sink_blob,
		.tick = tell_blob,
		.arg = sink,
		.offset = blob_writer_length(sink->writer)};
	char path[URL_MAX];

	if (!easy)
		return err_set(err, ERR_UNAVAILABLE, "cannot start a transfer");
	if (transfer.offset == blob->size)
		return 0;
	snprintf(path, sizeof(path), "%s/blobs/%s", repository, blob->digest.text);
	return request(&transfer, path, NULL, blob->digest.text, err);
}

/* A connection that breaks off is taken up again as long as each one brings something. */
static int fetch_all(struct registry *registry, const char *repository,
	const struct image_blob *blob, struct blob_sink *sink, struct err *err)
{
	for (int tries = 1;; tries++) {
		uint64_t before = blob_writer_length(sink->writer);
		int r = fetch_rest(registry, repository, blob, sink, err);

		if (r >= 0 && blob_writer_length(sink->writer) == blob->size)
			return 0;
		if (r >= 0 && blob_writer_length(sink->writer) == before) {
			char sent[FORMAT_SIZE_LEN], whole[FORMAT_SIZE_LEN];

			format_size(before, sent);
			format_size(blob->size, whole);
			return err_explain(err, ERR_INVALID, "digest_mismatch",
				"the source is damaged or lies; try another one",
				"%s sends only %s of %s, which has %s", registry->host, sent,
				blob->digest.text, whole);
		}
		if (r < 0 && (err->kind != ERR_UNAVAILABLE || tries == TRIES_MAX ||
				     blob_writer_length(sink->writer) == before))
			return r;
	}
}

/* Fetches what is missing of a blob; *ret_is_resumed if some of it was there. */
static int fetch_blob(struct registry *registry, const char *repository,
	const struct image_blob *blob, struct blob_store *store,
	const struct registry_progress *progress, bool *ret_is_resumed, struct err *err)
{
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	struct blob_sink sink;
	struct digest digest;
	int r = blob_writer_open(store, &blob->digest, blob->size, &writer, err);

	if (r < 0)
		return r;
	*ret_is_resumed = blob_writer_length(writer) > 0;
	sink = (struct blob_sink){.writer = writer, .progress = progress};
	r = fetch_all(registry, repository, blob, &sink, err);
	return r < 0 ? r : blob_writer_commit(writer, &digest, err);
}

int registry_fetch_blob(struct registry *registry, const char *repository,
	const struct image_blob *blob, struct blob_store *store,
	const struct registry_progress *progress, struct err *err)
{
	bool is_resumed = false;
	int r;

	/* One that is there may be another owner's, who alone was given its content. */
	r = fetch_blob(registry, repository, blob, store, progress, &is_resumed, err);
	/* The part that was there may have come from another source, which lied; it is gone now. */
	if (r < 0 && is_resumed && strcmp(err->code, "digest_mismatch") == 0)
		r = fetch_blob(registry, repository, blob, store, progress, &is_resumed, err);
	return r;
}
