/* SPDX-License-Identifier: Apache-2.0 */
/* What Prometheus asks for, in its text format. It names no owner and no sandbox: their number has no bound. */
#include "api/handlers.h"
#include "base/fd.h"
#include "base/share_pool.h"
#include "core/pool/pool.h"
#include "http/server/answer_stats.h"
#include "store/store_count.h"
#include "trace/trace_export.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define METRICS_MAX (256u << 10)

/* The two lines before the values of a metric. */
static void begin(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP sandlot_%s %s\n# TYPE sandlot_%s %s\n", name, help, name, type);
}

static void put(struct buf *out, const char *name, const char *type, const char *help, double value)
{
	begin(out, name, type, help);
	buf_printf(out, "sandlot_%s %.17g\n", name, value);
}

/* --- the server --- */

static void put_times(struct buf *out, const struct answer_stats *stats)
{
	uint64_t count = 0;

	begin(out, "http_request_duration_seconds", "histogram",
		"Time from the head of a request until its answer begins.");
	for (unsigned i = 0; i < ANSWER_STATS_BUCKETS; i++) {
		count += atomic_load(&stats->buckets[i]);
		if (i < ANSWER_STATS_BUCKETS - 1)
			buf_printf(out,
				"sandlot_http_request_duration_seconds_bucket{le=\"%g\"} %" PRIu64
				"\n",
				(double)answer_stats_bounds_us[i] / 1e6, count);
	}
	buf_printf(out,
		"sandlot_http_request_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64
		"\nsandlot_http_request_duration_seconds_sum %.6f"
		"\nsandlot_http_request_duration_seconds_count %" PRIu64 "\n",
		count, (double)atomic_load(&stats->total_us) / 1e6, count);
}

static void put_server(struct buf *out, const struct request *req)
{
	unsigned connections;
	const struct answer_stats *stats = request_server_stats(req, &connections);

	begin(out, "http_requests_total", "counter", "Answers, by the class of their status.");
	for (unsigned i = 0; i < ANSWER_STATS_CLASSES; i++)
		buf_printf(out, "sandlot_http_requests_total{code=\"%uxx\"} %" PRIuFAST64 "\n",
			i + 1, atomic_load(&stats->answers[i]));
	put_times(out, stats);
	put(out, "http_connections", "gauge", "Connections of clients of the API.", connections);
}

/* --- sandboxes and jobs --- */

struct states {
	struct buf *out;
	const char *name;
};

static void put_state(const char *state, int64_t count, void *arg)
{
	const struct states *states = arg;

	buf_printf(
		states->out, "sandlot_%s{state=\"%s\"} %" PRId64 "\n", states->name, state, count);
}

static int put_states(struct buf *out, struct store *store, enum store_count_kind kind,
	const char *name, const char *help, struct err *err)
{
	struct states states = {out, name};

	begin(out, name, "gauge", help);
	return store_count_read(store, kind, put_state, &states, err);
}

/* One line for each pool. A template has a name of few characters, none of which needs escaping. */
static void put_pool(
	struct buf *out, const struct pool_state *state, const char *name, double value)
{
	const struct owner *owner = &state->plan.owner;

	buf_printf(out, "sandlot_%s{template=\"%s\",organization=\"%s\",user=\"%s\"} %.17g\n", name,
		state->plan.template_name, owner->organization, owner->user, value);
}

static void put_pools(struct buf *out, struct engine *engine)
{
	auto_free struct pool_state *states = NULL;
	struct pool_totals totals;
	size_t count = pools_read(engine, &states, &totals);

	begin(out, "pool_size", "gauge", "Sandboxes that are to wait, by pool.");
	for (size_t i = 0; i < count; i++)
		put_pool(out, &states[i], "pool_size", states[i].plan.size);
	begin(out, "pool_ready", "gauge", "Sandboxes that wait for a create, by pool.");
	for (size_t i = 0; i < count; i++)
		put_pool(out, &states[i], "pool_ready", states[i].ready);
	begin(out, "pool_hits_total", "counter", "Creates that were given one, by pool.");
	for (size_t i = 0; i < count; i++)
		put_pool(out, &states[i], "pool_hits_total", (double)states[i].hits);
	begin(out, "pool_misses_total", "counter", "Creates that found none ready, by pool.");
	for (size_t i = 0; i < count; i++)
		put_pool(out, &states[i], "pool_misses_total", (double)states[i].misses);
}

static void put_engine(struct buf *out, const struct api *api)
{
	struct engine_stats stats = {0};

	put(out, "ready", "gauge", "Whether sandboxes can be served.", api->engine != NULL);
	if (!api->engine)
		return;
	engine_measure(api->engine, &stats);
	put(out, "running_places_used", "gauge", "Sandboxes that run or are paused.",
		stats.running);
	put(out, "process_places_used", "gauge", "Kept processes that run.", stats.processes);
	put(out, "egress_denials_total", "counter", "Connections of sandboxes that were refused.",
		(double)stats.denials);
	put(out, "archive_downloads", "gauge", "Archives that are being packed.",
		share_pool_used(api->packers));
	put_pools(out, api->engine);
}

static void put_traces(struct buf *out, struct trace_export *traces)
{
	struct trace_export_stats stats = {0};

	if (!traces)
		return;
	trace_export_read(traces, &stats);
	begin(out, "trace_spans_total", "counter", "Spans of traces, by what became of them.");
	buf_printf(out,
		"sandlot_trace_spans_total{outcome=\"sent\"} %" PRIu64
		"\nsandlot_trace_spans_total{outcome=\"dropped\"} %" PRIu64 "\n",
		stats.sent, stats.dropped);
}

/* --- the host, and the daemon itself --- */

/* A line of /proc/meminfo in bytes; 0 if there is none. */
static double meminfo(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtod(line + strlen(name), NULL) * 1024 : 0;
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count > 3 ? count - 3 : 0; /* without itself and the two names of directories */
}

static void put_host(struct buf *out, const struct api *api)
{
	char text[4096] = "", statm[128] = "";
	struct statvfs disk;
	unsigned long pages = 0;

	if (fd_read_file(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) > 0) {
		put(out, "host_memory_bytes", "gauge", "Memory of the host.",
			meminfo(text, "MemTotal:"));
		put(out, "host_memory_available_bytes", "gauge",
			"Memory of the host that can be had without swapping.",
			meminfo(text, "MemAvailable:"));
	}
	if (fstatvfs(api->spool_fd, &disk) == 0) {
		put(out, "data_disk_bytes", "gauge", "The disk of the data directory.",
			(double)disk.f_blocks * (double)disk.f_frsize);
		put(out, "data_disk_free_bytes", "gauge", "What is free of it.",
			(double)disk.f_bavail * (double)disk.f_frsize);
	}
	if (fd_read_file(AT_FDCWD, "/proc/self/statm", statm, sizeof(statm)) > 0 &&
		sscanf(statm, "%*u %lu", &pages) == 1)
		put(out, "resident_memory_bytes", "gauge", "Memory of the daemon.",
			(double)pages * (double)sysconf(_SC_PAGESIZE));
	put(out, "open_descriptors", "gauge", "Descriptors of the daemon.", count_descriptors());
}

HANDLER(metrics_read)
{
	struct api *api = context;
	struct buf out = BUF_INIT(METRICS_MAX);
	auto_free char *text = NULL;
	int r;

	begin(&out, "build_info", "gauge", "The version of the daemon, and its driver.");
	buf_printf(&out, "sandlot_build_info{version=\"" SANDLOT_VERSION "\",driver=\"%s\"} 1\n",
		api->driver);
	put_server(&out, req);
	r = put_states(&out, api->gate.store, STORE_COUNT_SANDBOXES, "sandboxes",
		"Sandboxes, by their status.", err);
	if (r == 0)
		r = put_states(&out, api->gate.store, STORE_COUNT_JOBS, "jobs",
			"Jobs that are remembered.", err);
	put_engine(&out, api);
	put_traces(&out, api->traces);
	put_host(&out, api);
	text = buf_take_str(&out);
	if (r == 0)
		request_answer_text(req, 200, "text/plain; version=0.0.4; charset=utf-8", text);
	return r;
}
