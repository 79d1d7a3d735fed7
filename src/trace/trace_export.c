/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_export.h"

#include "base/log.h"
#include "base/mem.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define BATCH	   128
#define GATHER_MS  300	/* after the first span of a batch */
#define RETRY_MS   1000 /* between two tries to send one */
#define TIMEOUT_MS 3000 /* of a try */

struct trace_export {
	char *url;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct trace_span *queue; /* a ring; under the lock, as what follows */
	size_t first, count;
	bool is_closing;
	atomic_uint_fast64_t sent, dropped;
	struct trace_span *batch; /* of the thread */
	bool is_failing; /* likewise: the collector took nothing last time, which was logged */
};

/* --- spans --- */

static void new_id(char *text, size_t len)
{
	unsigned char bytes[TRACE_ID_LEN / 2];

	do {
		if (getrandom(bytes, len / 2, 0) != (ssize_t)len / 2)
			abort();
		for (size_t i = 0; i < len / 2; i++)
			snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	} while (strspn(text, "0") == len); /* which would be none */
}

bool trace_is_sampled(const char *traceparent)
{
	return !traceparent[0] ||
	       (strlen(traceparent) == TRACE_PARENT_LEN &&
		       strtoul(traceparent + TRACE_PARENT_LEN - 2, NULL, 16) & 1);
}

void trace_span_init(struct trace_span *span, const char *traceparent)
{
	*span = (struct trace_span){.kind = TRACE_INTERNAL};
	new_id(span->id, TRACE_SPAN_LEN);
	if (strlen(traceparent) != TRACE_PARENT_LEN) {
		new_id(span->trace, TRACE_ID_LEN);
		return;
	}
	memcpy(span->trace, traceparent + 3, TRACE_ID_LEN);
	memcpy(span->parent, traceparent + 3 + TRACE_ID_LEN + 1, TRACE_SPAN_LEN);
}

void trace_span_format(const struct trace_span *span, char traceparent[TRACE_PARENT_LEN + 1])
{
	snprintf(traceparent, TRACE_PARENT_LEN + 1, "00-%s-%s-01", span->trace, span->id);
}

void trace_span_name(struct trace_span *span, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(span->name, sizeof(span->name), format, args);
	va_end(args);
}

static struct trace_attribute *add_attribute(struct trace_span *span, const char *name)
{
	struct trace_attribute *attribute = &span->attributes[span->attribute_count];

	if (span->attribute_count == TRACE_ATTRIBUTES_MAX)
		return NULL;
	span->attribute_count++;
	*attribute = (struct trace_attribute){.name = name};
	return attribute;
}

void trace_span_set(struct trace_span *span, const char *name, const char *text)
{
	struct trace_attribute *attribute = text[0] ? add_attribute(span, name) : NULL;

	if (attribute)
		snprintf(attribute->text, sizeof(attribute->text), "%s", text);
}

void trace_span_set_number(struct trace_span *span, const char *name, int64_t number)
{
	struct trace_attribute *attribute = add_attribute(span, name);

	if (attribute)
		attribute->number = number;
}

/* --- as JSON --- */

static json_t *time_to_json(int64_t us)
{
	return json_sprintf(
		"%" PRId64 "000", us); /* nanoseconds do not fit into a number of JSON */
}

static json_t *attribute_to_json(const struct trace_attribute *attribute)
{
	if (attribute->text[0])
		return json_pack("{s:s, s:{s:s}}", "key", attribute->name, "value", "stringValue",
			attribute->text);
	return json_pack("{s:s, s:{s:o}}", "key", attribute->name, "value", "intValue",
		json_sprintf("%" PRId64, attribute->number));
}

/* NULL, and left out, if a text is not UTF-8. */
static json_t *span_to_json(const struct trace_span *span)
{
	json_t *list = json_array();
	json_t *status = span->is_failed
				 ? json_pack("{s:i, s:s}", "code", 2, "message", span->message)
				 : json_object();

	for (unsigned i = 0; i < span->attribute_count; i++)
		(void)json_array_append_new(list, attribute_to_json(&span->attributes[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o}", "traceId", span->trace,
		"spanId", span->id, "parentSpanId", span->parent, "name", span->name, "kind",
		(int)span->kind, "startTimeUnixNano", time_to_json(span->begun_us),
		"endTimeUnixNano", time_to_json(span->ended_us), "attributes", list, "status",
		status);
}

static char *batch_to_text(const struct trace_span *spans, size_t count)
{
	json_t *list = json_array();
	json_auto_t *document = NULL;

	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(list, span_to_json(&spans[i]));
	document = json_pack("{s:[{s:{s:[{s:s, s:{s:s}}, {s:s, s:{s:s}}]}, s:[{s:{s:s}, s:o}]}]}",
		"resourceSpans", "resource", "attributes", "key", "service.name", "value",
		"stringValue", "sandlotd", "key", "service.version", "value", "stringValue",
		SANDLOT_VERSION, "scopeSpans", "scope", "name", "sandlot", "spans", list);
	return document ? json_dumps(document, JSON_COMPACT) : NULL;
}

/* --- sending --- */

static size_t ignore_body(char *data, size_t size, size_t count, void *arg)
{
	(void)data;
	(void)arg;
	return size * count;
}

/* Whether the collector took it; *ret_is_over: it said that it never will. */
static bool post(struct trace_export *export, const char *text, bool *ret_is_over,
	char detail[CURL_ERROR_SIZE])
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	CURL *easy = curl_easy_init();
	long status = 0;
	CURLcode result;

	if (!easy || !headers)
		abort();
	detail[0] = '\0';
	curl_easy_setopt(easy, CURLOPT_URL, export->url);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, detail);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore_body);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "sandlot/" SANDLOT_VERSION);
	result = curl_easy_perform(easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(easy);
	curl_slist_free_all(headers);
	*ret_is_over = result == CURLE_OK && status != 429 && status < 500;
	if (result == CURLE_OK)
		snprintf(detail, CURL_ERROR_SIZE, "it answers with status %ld", status);
	return result == CURLE_OK && status >= 200 && status < 300;
}

/* Waits until the close, until there are so many spans, or for so long. The lock is held. */
static void wait_for(struct trace_export *export, size_t count, unsigned ms)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!export->is_closing && export->count < count && r == 0)
		r = pthread_cond_timedwait(&export->changed, &export->lock, &until);
}

/* Whether to try again makes sense: not at the end. */
static bool pause_before_retry(struct trace_export *export)
{
	bool is_closing;

	pthread_mutex_lock(&export->lock);
	wait_for(export, SIZE_MAX, RETRY_MS);
	is_closing = export->is_closing;
	pthread_mutex_unlock(&export->lock);
	return !is_closing;
}

/* Whether the collector has them. */
static bool send_batch(struct trace_export *export, size_t count)
{
	auto_free char *text = batch_to_text(export->batch, count);
	char detail[CURL_ERROR_SIZE];
	bool is_over = false;
	bool is_sent = text && post(export, text, &is_over, detail);

	if (text && !is_sent && !is_over && pause_before_retry(export))
		is_sent = post(export, text, &is_over, detail);
	atomic_fetch_add(is_sent ? &export->sent : &export->dropped, count);
	if (!is_sent && !export->is_failing)
		log_warning(
			"the collector of traces takes nothing: %s", text ? detail : "no memory");
	if (is_sent && export->is_failing)
		log_info("the collector of traces takes spans again");
	export->is_failing = !is_sent;
	return is_sent;
}

/* Moves spans out of the queue, once there are some and others had time to come. */
static size_t take_batch(struct trace_export *export, bool *ret_is_closing)
{
	size_t count;

	pthread_mutex_lock(&export->lock);
	while (export->count == 0 && !export->is_closing)
		pthread_cond_wait(&export->changed, &export->lock);
	wait_for(export, BATCH, GATHER_MS);
	*ret_is_closing = export->is_closing;
	count = export->count < BATCH ? export->count : BATCH;
	for (size_t i = 0; i < count; i++)
		export->batch[i] = export->queue[(export->first + i) % TRACE_EXPORT_QUEUE];
	export->first = (export->first + count) % TRACE_EXPORT_QUEUE;
	export->count -= count;
	pthread_mutex_unlock(&export->lock);
	return count;
}

static void *run(void *arg)
{
	struct trace_export *export = arg;
	bool is_closing = false, goes_on = true;

	pthread_setname_np(pthread_self(), "traces");
	while (goes_on) {
		size_t count = take_batch(export, &is_closing);

		goes_on = count > 0 || !is_closing;
		/* One that does not take a batch at the end is not asked to take another. */
		if (count > 0 && !send_batch(export, count))
			goes_on = !is_closing;
	}
	return NULL;
}

/* --- the queue --- */

int trace_export_open(const char *endpoint, struct trace_export **ret_export, struct err *err)
{
	struct trace_export *export;
	pthread_condattr_t steady;
	size_t len = strlen(endpoint);

	if (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0)
		return err_explain(err, ERR_INVALID, "invalid_setting", NULL,
			"--otlp-endpoint wants an address such as http://127.0.0.1:4318");
	while (len > 0 && endpoint[len - 1] == '/')
		len--;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "libcurl cannot be used");
	export = mem_new(sizeof(*export));
	export->url = mem_printf("%.*s/v1/traces", (int)len, endpoint);
	export->queue = mem_new(TRACE_EXPORT_QUEUE * sizeof(*export->queue));
	export->batch = mem_new(BATCH * sizeof(*export->batch));
	pthread_mutex_init(&export->lock, NULL);
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(&export->changed, &steady);
	pthread_condattr_destroy(&steady);
	if (pthread_create(&export->thread, NULL, run, export) != 0)
		abort();
	*ret_export = export;
	return 0;
}

void trace_export_close(struct trace_export *export)
{
	if (!export)
		return;
	pthread_mutex_lock(&export->lock);
	export->is_closing = true;
	pthread_cond_broadcast(&export->changed);
	pthread_mutex_unlock(&export->lock);
	pthread_join(export->thread, NULL);
	if (export->count > 0)
		log_warning("%zu spans of traces were not sent", export->count);
	pthread_mutex_destroy(&export->lock);
	pthread_cond_destroy(&export->changed);
	free(export->queue);
	free(export->batch);
	free(export->url);
	free(export);
}

void trace_export_add(struct trace_export *export, const struct trace_span *span)
{
	if (!export)
		return;
	pthread_mutex_lock(&export->lock);
	if (export->count == TRACE_EXPORT_QUEUE || export->is_closing) {
		atomic_fetch_add(&export->dropped, 1);
	} else {
		export->queue[(export->first + export->count) % TRACE_EXPORT_QUEUE] = *span;
		if (export->count++ == 0 || export->count == BATCH)
			pthread_cond_signal(&export->changed);
	}
	pthread_mutex_unlock(&export->lock);
}

void trace_export_read(struct trace_export *export, struct trace_export_stats *ret_stats)
{
	*ret_stats = (struct trace_export_stats){
		.sent = atomic_load(&export->sent), .dropped = atomic_load(&export->dropped)};
}
