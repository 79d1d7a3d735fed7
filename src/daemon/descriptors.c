/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/descriptors.h"

#include "base/format.h"
#include "base/log.h"

#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* What is there in any case: files, sockets and timers of the daemon, a few of each thread, connections that are
 * about to end, and pipes that wait for their next use. */
#define BASE	       256
#define EACH_CORE      8
#define EACH_WORKER    2
#define PIPES_FOR_EACH 8 /* connections out of sandboxes there is one for bytes that wait */
#define TLS_CROWD      1024
#define PROCESSES_MAX  16384
#define RUNNING_MAX    16384
#define TEXT_MAX       512

/* One kind of what needs descriptors. */
struct kind {
	const char *name;
	unsigned wanted;
	unsigned least;
	unsigned cost;	  /* descriptors of one */
	unsigned percent; /* of those that are left when all kinds have the least */
	unsigned *place;
};

enum { KINDS = 9 };

static void list_kinds(const struct settings *settings, unsigned cores,
	struct descriptor_plan *plan, struct kind kinds[KINDS])
{
	bool has_tls = settings->tls_certificate[0];
	bool has_preview_tls = has_tls || settings->preview_tls_certificate[0];
	unsigned tls_threads = (has_tls + has_preview_tls) * (cores < 16 ? cores : 16);
	unsigned egress = (unsigned)settings->egress_connections;
	const struct kind all[KINDS] = {
		/* A socket, and a helper's or a file that is read; with TLS, two more to where it ends. */
		{"api connections", (unsigned)settings->api_connections, 48, has_tls ? 4 : 2, 18,
			&plan->api_connections},
		{"preview connections", (unsigned)settings->preview_connections, 48,
			has_preview_tls ? 4 : 2, 24, &plan->preview_connections},
		{"egress connections", egress, 48, 2, 9, &plan->egress_connections},
		{"egress pipes", (egress + PIPES_FOR_EACH - 1) / PIPES_FOR_EACH, 16, 2, 2,
			&plan->egress_pipes},
		{"look-ups", (unsigned)settings->egress_lookups, 16, 1, 3, &plan->egress_lookups},
		{"archive downloads", (unsigned)settings->archive_downloads, 4, 3, 1,
			&plan->archive_downloads},
		/* Beside those that are connections still; each keeps two sockets until its client has all. */
		{"tls connections that end, a thread", has_preview_tls ? TLS_CROWD : 0, 8,
			2 * tls_threads, 5, &plan->tls_crowd},
		{"processes", PROCESSES_MAX, 64, 2, 8, &plan->processes},
		/* Link and control socket; of one with a network the listener of TCP and two sockets for DNS. */
		{"running sandboxes", RUNNING_MAX, 16, 5, 30, &plan->running},
	};

	for (size_t i = 0; i < KINDS; i++) {
		kinds[i] = all[i];
		if (kinds[i].least > kinds[i].wanted)
			kinds[i].least = kinds[i].wanted;
	}
}

int descriptors_plan(const struct settings *settings, uint64_t limit, unsigned cores,
	struct descriptor_plan *ret_plan, struct err *err)
{
	uint64_t fixed = BASE + EACH_CORE * cores + EACH_WORKER * settings->workers;
	uint64_t least = fixed, needed = fixed;
	struct descriptor_plan plan = {0};
	struct kind kinds[KINDS];

	list_kinds(settings, cores, &plan, kinds);
	for (size_t i = 0; i < KINDS; i++) {
		least += (uint64_t)kinds[i].least * kinds[i].cost;
		needed += (uint64_t)kinds[i].wanted * kinds[i].cost;
	}
	if (limit < least)
		return err_explain(err, ERR_UNAVAILABLE, "too_few_descriptors",
			"raise it: LimitNOFILE= of the service, or ulimit -n",
			"sandlotd may have %llu open files (RLIMIT_NOFILE), and needs at least "
			"%llu",
			(unsigned long long)limit, (unsigned long long)least);
	for (size_t i = 0; i < KINDS; i++) {
		uint64_t share = (limit - least) / 100 * kinds[i].percent;
		uint64_t all = kinds[i].least + (kinds[i].cost ? share / kinds[i].cost : 0);

		*kinds[i].place = all < kinds[i].wanted ? (unsigned)all : kinds[i].wanted;
	}
	plan.needed = needed > UINT_MAX ? UINT_MAX : (unsigned)needed;
	*ret_plan = plan;
	return 0;
}

static void tell(const struct settings *settings, unsigned cores, struct descriptor_plan *plan,
	uint64_t limit)
{
	struct kind kinds[KINDS];
	char text[TEXT_MAX] = "";
	bool has_all = true;

	list_kinds(settings, cores, plan, kinds);
	for (size_t i = 0, len = 0; i < KINDS; i++) {
		unsigned number = *kinds[i].place;

		if (kinds[i].wanted > 0)
			len = format_append(text, sizeof(text), len, "%s%s %u", len ? ", " : "",
				kinds[i].name, number);
		has_all &= number == kinds[i].wanted;
	}
	log_debug("limits within %llu open files: %s", (unsigned long long)limit, text);
	if (!has_all)
		log_warning(
			"%llu open files are allowed, fewer than full load may need (%u): harmless "
			"for few sandboxes; else raise it (ulimit -n)",
			(unsigned long long)limit, plan->needed);
}

int descriptors_open(
	const struct settings *settings, struct descriptor_plan *ret_plan, struct err *err)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned cores = online > 0 ? (unsigned)online : 1;
	struct rlimit limit;
	int r;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_sys(err, "ask for the limit of open files");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_sys(err, "raise the limit of open files");
	r = descriptors_plan(settings, limit.rlim_cur, cores, ret_plan, err);
	if (r == 0)
		tell(settings, cores, ret_plan, limit.rlim_cur);
	return r;
}
