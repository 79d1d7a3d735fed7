/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench: how fast sandboxes are on this machine, seen from a client: every number includes HTTP.
 * The "http" row is the floor, a request that does nothing. One round before the first is not
 * counted.
 */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/remote/removal.h"
#include "cli/terminal/interrupt.h"
#include "cli/text/table.h"

#include <errno.h>
#include <string.h>

#define ROUNDS_DEFAULT 30
#define ROUNDS_MAX     10000

struct bench_values {
	struct option_number rounds;
	const char *template;
};

static const struct option options[] = {
	{OPTION_NUMBER, 'n', "rounds", "N", "how often; 30 unless told",
		offsetof(struct bench_values, rounds)},
	{OPTION_TEXT, 0, "template", "NAME", "what the sandboxes start from",
		offsetof(struct bench_values, template)},
	{OPTION_END},
};

struct bench {
	struct client *client;
	struct create_spec spec;
	char id[RESOLVE_ID_LEN + 1]; /* "" while there is no sandbox */
};

static int do_http(struct bench *b, struct err *err)
{
	struct client_call call = {.method = "GET", .path = "/healthz"};
	char text[64];
	ssize_t n;
	int r = client_open(b->client, &call, err);

	if (r < 0)
		return r;
	do {
		n = client_read(b->client, text, sizeof(text), err);
	} while (n > 0);
	client_close(b->client);
	return (int)n;
}

static int do_create(struct bench *b, struct err *err)
{
	json_auto_t *made = NULL;
	int r = create_spec_send(b->client, &b->spec, b->id, &made, err);

	return r < 0 ? r : create_spec_await(b->client, &made, err);
}

static int do_exec(struct bench *b, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/exec", b->id);
	json_auto_t *body = json_pack("{s:[s]}", "argv", "true");

	return client_json(b->client,
		&(struct client_call){.method = "POST", .path = path, .body = body}, NULL, err);
}

static int do_post(struct bench *b, const char *verb, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/%s", b->id, verb);

	return client_json(
		b->client, &(struct client_call){.method = "POST", .path = path}, NULL, err);
}

static int do_stop(struct bench *b, struct err *err)
{
	return do_post(b, "stop", err);
}

static int do_start(struct bench *b, struct err *err)
{
	return do_post(b, "start", err);
}

static int do_remove(struct bench *b, struct err *err)
{
	int r = removal_run(b->client, b->id, true, err);

	if (r == 0)
		b->id[0] = '\0';
	return r;
}

struct step {
	const char *name;
	int (*run)(struct bench *b, struct err *err);
};

static const struct step steps[] = {
	{"http", do_http},
	{"create", do_create},
	{"exec true", do_exec},
	{"stop", do_stop},
	{"start", do_start},
	{"delete+purge", do_remove},
};

#define STEPS array_len(steps)

/* Times one round; samples_us has room for STEPS numbers. */
static int one_round(struct bench *b, uint64_t *samples_us, struct err *err)
{
	for (size_t i = 0; i < STEPS; i++) {
		uint64_t begin_us = clock_steady_us();
		int r = steps[i].run(b, err);

		if (r < 0) {
			err_prefix(err, "%s", steps[i].name);
			return r;
		}
		samples_us[i] = clock_steady_us() - begin_us;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Nearest rank: with 30 rounds p99 is the slowest. */
static double percentile_ms(const uint64_t *sorted_us, size_t count, unsigned percent)
{
	size_t rank = (count * percent + 99) / 100;

	return (double)sorted_us[rank > 0 ? rank - 1 : 0] / 1000;
}

static void report(struct cli *cli, const uint64_t *samples_us, size_t rounds)
{
	auto_(table_fini) struct table table = TABLE_INIT(5);
	auto_free uint64_t *column = mem_new(rounds * sizeof(*column));
	json_auto_t *results = json_object();
	json_auto_t *document =
		json_pack("{s:i, s:O}", "rounds", (int)rounds, "milliseconds", results);
	static const char *const heading[] = {"STEP", "MEDIAN ms", "P99 ms", "MIN ms", "MAX ms"};

	table_add_row(&table, heading);
	for (size_t s = 0; s < STEPS; s++) {
		double median, p99, min, max;

		for (size_t i = 0; i < rounds; i++)
			column[i] = samples_us[i * STEPS + s];
		qsort(column, rounds, sizeof(*column), compare);
		median = percentile_ms(column, rounds, 50);
		p99 = percentile_ms(column, rounds, 99);
		min = percentile_ms(column, rounds, 0);
		max = percentile_ms(column, rounds, 100);
		table_add(&table, "%s", steps[s].name);
		table_add(&table, "%.2f", median);
		table_add(&table, "%.2f", p99);
		table_add(&table, "%.2f", min);
		table_add(&table, "%.2f", max);
		json_object_set_new(results, steps[s].name,
			json_pack("{s:f, s:f, s:f, s:f}", "median", median, "p99", p99, "min", min,
				"max", max));
	}
	if (cli_wants_json(cli))
		cli_print_json(document);
	else
		table_print(&table, stdout);
}

/* A round that broke off, or was broken off, leaves no sandbox behind. */
static void clean_up(struct bench *b)
{
	struct err err;

	interrupt_watch(client_interrupt(b->client), false);
	if (b->id[0] && do_remove(b, &err) < 0)
		cli_complain(&err, b->id);
}

static int measure(struct bench *b, size_t rounds, uint64_t *samples_us, struct err *err)
{
	uint64_t warm_up[STEPS];
	int r = one_round(b, warm_up, err);

	for (size_t i = 0; r == 0 && i < rounds; i++) {
		r = one_round(b, samples_us + i * STEPS, err);
		/* Between two rounds there is no sandbox: the place to notice a signal. */
		interrupt_watch(client_interrupt(b->client), true);
		if (r == 0)
			r = do_http(b, err);
		interrupt_watch(client_interrupt(b->client), false);
	}
	clean_up(b);
	return r;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct bench_values *v = values;
	size_t rounds = v->rounds.is_set ? (size_t)v->rounds.value : ROUNDS_DEFAULT;
	struct bench bench = {.spec.template = v->template};
	auto_free uint64_t *samples_us = NULL;
	int r;

	(void)argc, (void)argv;
	if (rounds < 1 || rounds > ROUNDS_MAX)
		return err_set(err, ERR_INVALID, "--rounds goes from 1 to %d", ROUNDS_MAX);
	samples_us = mem_new(rounds * STEPS * sizeof(*samples_us));
	r = cli_connect(cli, &bench.client, err);
	if (r == 0)
		r = interrupt_hold(client_interrupt(bench.client), err);
	if (r == 0)
		r = measure(&bench, rounds, samples_us, err);
	if (r < 0)
		return r;
	report(cli, samples_us, rounds);
	return 0;
}

const struct command cmd_bench = {
	.name = "bench",
	.operands = "",
	.summary = "measure how fast sandboxes are on this machine",
	.details =
		"Makes, uses, stops, starts and removes sandboxes one after another. Every number\n"
		"includes the HTTP request; the row \"http\" is a request that does nothing.\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct bench_values),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
