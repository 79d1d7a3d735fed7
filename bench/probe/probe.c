/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe: the clock of the bench. A script tells it on standard input what to time; the timed part runs
 * here, so that an interpreter's own cost helps or hurts no contender. Commands and answers are
 * lines of fields separated by tabs:
 *
 *   target ADDRESS HEADER...     -> ok NUMBER            ("127.0.0.1:80" or "unix:/path")
 *   http NUMBER REQUEST...       -> ok NS STATUS,... ID BODY    requests one after the other
 *   drain NUMBER REQUEST...      -> ok NS STATUS BYTES   the last answer is counted, not kept
 *   batch NUMBER CLIENTS REQUEST...  -> ok WALL_NS FAILURES NS,... ID,... BODY   in parallel
 *   keys NUMBER COUNT REQUEST    -> ok NS,...            each key typed until it is shown
 *   spawn ARGV...                -> ok NS EXIT_STATUS    from before vfork until it is reaped
 *
 * or "error TEXT". A REQUEST is "METHOD PATH [BODY]"; "{id}" in a path becomes the id in the answer to
 * the first request of the line. BODY is the last answer's (of batch: the first failed one's). A REQUEST
 * of batch may be several with a byte 30 between them: one after the other, timed together. In spawn,
 * "{n}" in an argument becomes a number that has not been used before.
 */
#include "http.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TARGETS_MAX 8
#define CLIENTS_MAX 64
#define FIELDS_MAX  20000
#define ID_MAX	    80
#define PATH_LEN    1024
#define BODY_SHOWN  2000
#define CHAIN_BREAK "\x1e"
#define KEY_MS	    5000 /* a key that is not shown within this never will be */
#define PROMPT_MS   300	 /* a shell that was quiet for so long waits for keys */
#define LINE_KEYS   40	 /* then the line is emptied, before it wraps */

extern char **environ;

static struct http_target targets[TARGETS_MAX];
static struct http_client clients[TARGETS_MAX]; /* the kept connection of each target */
static int target_count;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what, int r)
{
	printf("error\t%s: %s\n", what, strerror(-r));
}

/* One field, in one line. */
static void print_body(const struct http_client *client)
{
	const char *body = client->answer + client->body_start;

	for (size_t i = 0; i < client->body_len && i < BODY_SHOWN; i++)
		putchar((unsigned char)body[i] < ' ' ? ' ' : body[i]);
}

/* Replaces the first "{name}" of text. */
static void expand(const char *text, const char *name, const char *value, char *ret, size_t len)
{
	const char *at = strstr(text, name);

	if (at)
		snprintf(ret, len, "%.*s%s%s", (int)(at - text), text, value, at + strlen(name));
	else
		snprintf(ret, len, "%s", text);
}

struct request {
	char method[16], path[PATH_LEN];
	const char *body;
};

static int parse_request(const char *text, const char *id, struct request *ret_request)
{
	char template[PATH_LEN];
	int body = 0;

	if (sscanf(text, "%15s %1023s %n", ret_request->method, template, &body) < 2)
		return -EINVAL;
	expand(template, "{id}", id, ret_request->path, sizeof(ret_request->path));
	ret_request->body = text + body;
	return 0;
}

static int call(struct http_client *client, const char *text, const char *id)
{
	struct request request;
	int r = parse_request(text, id, &request);

	return r < 0 ? r : http_call(client, request.method, request.path, request.body);
}

static void do_target(char **fields, int count)
{
	struct http_target *target = &targets[target_count];

	size_t len = 0;

	if (count < 2 || target_count == TARGETS_MAX)
		return fail("target", -EINVAL);
	snprintf(target->address, sizeof(target->address), "%s", fields[1]);
	for (int i = 2; i < count && len < sizeof(target->header); i++)
		len += (size_t)snprintf(target->header + len, sizeof(target->header) - len, "%s%s",
			fields[i], fields[i][0] ? "\r\n" : "");
	if (len >= sizeof(target->header))
		return fail("target", -EMSGSIZE);
	http_init(&clients[target_count], target);
	printf("ok\t%d\n", target_count++);
}

static struct http_client *find_client(const char *number)
{
	int n = atoi(number);

	return n >= 0 && n < target_count ? &clients[n] : NULL;
}

static void do_http(char **fields, int count)
{
	struct http_client *client = count > 2 ? find_client(fields[1]) : NULL;
	int statuses[16], n = 0;
	char id[ID_MAX] = "";
	uint64_t start;

	if (!client || count - 2 > 16)
		return fail("http", -EINVAL);
	start = now_ns();
	for (int i = 2; i < count; i++) {
		int r = call(client, fields[i], id);

		if (r < 0)
			return fail(fields[i], r);
		if (n == 0)
			http_find_id(client, id, sizeof(id));
		statuses[n++] = client->status;
	}
	start = now_ns() - start;
	printf("ok\t%llu\t", (unsigned long long)start);
	for (int i = 0; i < n; i++)
		printf("%s%d", i ? "," : "", statuses[i]);
	printf("\t%s\t", id);
	print_body(client);
	putchar('\n');
}

static void do_drain(char **fields, int count)
{
	struct http_client *client = count > 2 ? find_client(fields[1]) : NULL;
	uint64_t start = now_ns(), bytes = 0;
	char id[ID_MAX] = "";
	struct request last;
	int r = 0;

	if (!client)
		return fail("drain", -EINVAL);
	for (int i = 2; i < count - 1 && r == 0; i++) {
		r = call(client, fields[i], id);
		if (r == 0 && i == 2)
			http_find_id(client, id, sizeof(id));
	}
	if (r == 0)
		r = parse_request(fields[count - 1], id, &last);
	if (r == 0)
		r = http_drain(client, last.method, last.path, last.body, &bytes);
	if (r < 0)
		return fail(fields[count - 1], r);
	printf("ok\t%llu\t%d\t%llu\n", (unsigned long long)(now_ns() - start), client->status,
		(unsigned long long)bytes);
}

/* One key from the moment it is typed until it is shown; -errno. */
static int64_t time_key(struct terminal *terminal)
{
	uint64_t start = now_ns();
	int r = terminal_type(terminal, 'x');

	if (r == 0)
		r = terminal_expect(terminal, 'x', KEY_MS);
	return r < 0 ? r : (int64_t)(now_ns() - start);
}

static int clear_line(struct terminal *terminal)
{
	const char kill_line = 'U' & 31;
	int r = terminal_type(terminal, kill_line);

	return r < 0 ? r : terminal_settle(terminal, 20);
}

static void do_keys(char **fields, int count)
{
	struct http_client *client = count == 4 ? find_client(fields[1]) : NULL;
	int keys = count == 4 ? atoi(fields[2]) : 0, r;
	struct terminal terminal;
	struct request request;
	int64_t *ns;

	if (!client || keys < 1 || parse_request(fields[3], "", &request) < 0)
		return fail("keys", -EINVAL);
	r = terminal_open(&terminal, client->target, request.method, request.path, request.body);
	if (r < 0)
		return fail(fields[3], r);
	ns = calloc((size_t)keys, sizeof(*ns));
	if (!ns)
		abort();
	r = terminal_settle(&terminal, PROMPT_MS);
	for (int i = 0; i < keys && r == 0; i++) {
		usleep(1000); /* whoever types is slower than a shell */
		ns[i] = time_key(&terminal);
		r = ns[i] < 0 ? (int)ns[i] : 0;
		if (r == 0 && i % LINE_KEYS == LINE_KEYS - 1)
			r = clear_line(&terminal);
	}
	terminal_close(&terminal);
	if (r < 0) {
		fail("a key", r);
	} else {
		printf("ok\t");
		for (int i = 0; i < keys; i++)
			printf("%s%lld", i ? "," : "", (long long)ns[i]);
		putchar('\n');
	}
	free(ns);
}

struct sample {
	uint64_t ns;
	int status; /* -errno if there was no answer */
	char id[ID_MAX];
};

struct batch {
	char **requests;
	int count;
	struct sample *samples;
	atomic_int next;
	atomic_int failures;
	pthread_barrier_t barrier;
	struct http_client failed; /* keeps the first failed answer */
	const struct http_target *target;
};

static void keep_failure(struct batch *batch, const struct http_client *client)
{
	if (atomic_fetch_add(&batch->failures, 1) > 0 || client->status == 0)
		return;
	memcpy(batch->failed.answer, client->answer + client->body_start, client->body_len);
	batch->failed.body_len = client->body_len;
}

/* All requests of a chain, up to the first that fails. */
static int call_chain(struct http_client *client, char *chain)
{
	char id[ID_MAX] = "", *text;
	bool is_first = true;
	int r = 0;

	while ((text = strsep(&chain, CHAIN_BREAK))) {
		r = call(client, text, id);
		if (r < 0 || client->status >= 400)
			break;
		if (is_first)
			http_find_id(client, id, sizeof(id));
		is_first = false;
	}
	return r;
}

static void *run_client(void *arg)
{
	struct batch *batch = arg;
	struct http_client client;
	int i;

	http_init(&client, batch->target);
	(void)!http_connect(&client);
	pthread_barrier_wait(&batch->barrier);
	while ((i = atomic_fetch_add(&batch->next, 1)) < batch->count) {
		struct sample *sample = &batch->samples[i];
		uint64_t start = now_ns();
		int r;

		client.status = 0;
		r = call_chain(&client, batch->requests[i]);
		sample->ns = now_ns() - start;
		sample->status = r < 0 ? r : client.status;
		if (r < 0 || client.status >= 400)
			keep_failure(batch, &client);
		else
			http_find_id(&client, sample->id, sizeof(sample->id));
	}
	http_fini(&client);
	return NULL;
}

static void do_batch(char **fields, int count)
{
	struct http_client *client = count > 3 ? find_client(fields[1]) : NULL;
	int parallel = count > 3 ? atoi(fields[2]) : 0;
	struct batch batch = {.requests = fields + 3, .count = count - 3};
	pthread_t threads[CLIENTS_MAX];
	uint64_t wall;

	if (!client || parallel < 1 || parallel > CLIENTS_MAX)
		return fail("batch", -EINVAL);
	batch.target = client->target;
	batch.samples = calloc((size_t)batch.count, sizeof(*batch.samples));
	http_init(&batch.failed, batch.target);
	pthread_barrier_init(&batch.barrier, NULL, (unsigned)parallel + 1);
	for (int i = 0; i < parallel; i++) {
		if (!batch.samples || pthread_create(&threads[i], NULL, run_client, &batch) != 0)
			abort();
	}
	pthread_barrier_wait(&batch.barrier);
	wall = now_ns();
	for (int i = 0; i < parallel; i++)
		pthread_join(threads[i], NULL);
	wall = now_ns() - wall;
	printf("ok\t%llu\t%d\t", (unsigned long long)wall, atomic_load(&batch.failures));
	for (int i = 0; i < batch.count; i++)
		printf("%s%llu", i ? "," : "", (unsigned long long)batch.samples[i].ns);
	putchar('\t');
	for (int i = 0; i < batch.count; i++)
		printf("%s%s", i ? "," : "", batch.samples[i].id);
	putchar('\t');
	print_body(&batch.failed);
	putchar('\n');
	pthread_barrier_destroy(&batch.barrier);
	http_fini(&batch.failed);
	free(batch.samples);
}

static void do_spawn(char **fields, int count)
{
	static unsigned used;
	static char space[64][PATH_LEN];
	char number[16], *argv[65] = {0};
	posix_spawn_file_actions_t actions;
	uint64_t start;
	int status = 0, r;
	pid_t pid;

	if (count < 2 || count > 65)
		return fail("spawn", -EINVAL);
	snprintf(number, sizeof(number), "%u", ++used);
	for (int i = 1; i < count; i++) {
		expand(fields[i], "{n}", number, space[i - 1], sizeof(space[0]));
		argv[i - 1] = space[i - 1];
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	start = now_ns();
	/* glibc makes it a vfork. */
	r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	if (r == 0) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	start = now_ns() - start;
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return fail(argv[0], -r);
	printf("ok\t%llu\t%d\n", (unsigned long long)start,
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static const struct {
	const char *name;
	void (*run)(char **fields, int count);
} commands[] = {
	{"target", do_target},
	{"http", do_http},
	{"drain", do_drain},
	{"batch", do_batch},
	{"keys", do_keys},
	{"spawn", do_spawn},
};

int main(void)
{
	static char *fields[FIELDS_MAX];
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&line, &size, stdin)) > 0) {
		char *rest = line;
		int count = 0;
		size_t i;

		line[len - 1] = '\0';
		while (rest && count < FIELDS_MAX)
			fields[count++] = strsep(&rest, "\t");
		for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
			if (strcmp(commands[i].name, fields[0]) == 0)
				break;
		}
		if (i < sizeof(commands) / sizeof(commands[0]))
			commands[i].run(fields, count);
		else
			fail(fields[0], -ENOSYS);
		fflush(stdout);
	}
	free(line);
	return 0;
}
