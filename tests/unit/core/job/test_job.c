/* SPDX-License-Identifier: Apache-2.0 */
#include "core/job/job.h"

#include "core/output/output_cursor.h"
#include "core_fixture.h"
#include "store/work/store_job.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define RESERVE 1000

static atomic_ullong free_bytes = UINT64_MAX;

uint64_t __wrap_fd_free_bytes(int fd);

uint64_t __wrap_fd_free_bytes(int fd)
{
	(void)fd;
	return atomic_load(&free_bytes);
}

/* What a job of the test does is decided by its input; it waits until it is let go. */
struct play {
	struct world *world;
	struct jobs *jobs;
	int dir_fd;
	sem_t begun, go_on;
	atomic_int runs;
	struct job_kind kinds[4];
};

static bool says(const struct job *job, const char *word)
{
	return json_object_get(job_record(job)->input, word) != NULL;
}

static int run(struct job *job, void *context, struct err *err)
{
	struct play *play = context;

	atomic_fetch_add(&play->runs, 1);
	job_log(job, "try %u", job_record(job)->tries);
	job_progress(job, 1, 2, "half of %s", job_record(job)->target);
	sem_post(&play->begun);
	while ((says(job, "waits") || says(job, "waits_and_fails")) && !job_must_stop(job)) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 10000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (sem_timedwait(&play->go_on, &until) == 0)
			break;
	}
	if (job_must_stop(job) && !says(job, "deaf"))
		return -ECANCELED;
	if (says(job, "fails") || says(job, "waits_and_fails"))
		return err_explain(err, ERR_NO_SPACE, "full", "free some", "the disk is full");
	job_set_result(job, "made", json_integer(1));
	return 0;
}

static void open_jobs(struct play *play)
{
	struct err err = {0};
	struct jobs_config config = {.store = play->world->store,
		.bus = play->world->bus,
		.dir_fd = play->dir_fd,
		.kinds = play->kinds,
		.kind_count = play->kinds[2].name ? 3 : 2,
		.max_running = 4,
		.history = 2,
		.log_bytes = 1u << 20,
		.disk_reserve = RESERVE};

	if (jobs_open(&config, &play->jobs, &err) < 0)
		fail_msg("%s", err.message);
}

static int setup_play(void **state)
{
	struct play *play = mem_new(sizeof(*play));
	char path[96];

	if (world_setup_closed((void **)&play->world) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/jobs", play->world->dir);
	if (mkdir(path, 0700) < 0)
		return -1;
	play->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sem_init(&play->begun, 0, 0);
	sem_init(&play->go_on, 0, 0);
	play->kinds[0] = (struct job_kind){
		.name = "retry", .on_restart = JOB_RESTART_RETRY, .run = run, .context = play};
	play->kinds[1] = (struct job_kind){.name = "lose",
		.on_restart = JOB_RESTART_LOSE,
		.max_running = 1,
		.run = run,
		.context = play};
	open_jobs(play);
	*state = play;
	return 0;
}

static int teardown_play(void **state)
{
	struct play *play = *state;
	struct world *world = play->world;

	jobs_close(play->jobs);
	close(play->dir_fd);
	sem_destroy(&play->begun);
	sem_destroy(&play->go_on);
	free(play);
	return world_teardown((void **)&world);
}

/* --- helpers --- */

static int submit(struct play *play, const struct owner *owner, const char *kind, const char *key,
	const char *word, struct job_record *ret_record, bool *ret_is_joined, struct err *err)
{
	json_auto_t *input = word ? json_pack("{s:b}", word, 1) : json_object();

	return job_submit(play->jobs, owner,
		&(struct job_request){.kind = kind, .target = "it", .key = key, .input = input},
		ret_record, ret_is_joined, err);
}

/* Adds one, whose id is the same text until the next call. */
static const char *must_submit(
	struct play *play, const char *kind, const char *key, const char *word)
{
	static char ids[4][ID_LEN + 1];
	static unsigned next;
	char *id = ids[next++ % array_len(ids)];
	struct job_record record;
	struct err err = {0};
	bool is_joined;

	if (submit(play, &world_owner, kind, key, word, &record, &is_joined, &err) < 0)
		fail_msg("%s", err.message);
	memcpy(id, record.id, sizeof(record.id));
	job_record_fini(&record);
	return id;
}

static struct job_record read_job(struct play *play, const char *id)
{
	struct job_record record;
	struct err err = {0};

	if (job_get(play->jobs, &world_owner, id, &record, &err) < 0)
		fail_msg("%s", err.message);
	job_record_fini(&record); /* what is not JSON stays */
	return record;
}

static void notice(void *arg)
{
	sem_post(arg);
}

/* Waits until a job is in a state. */
static struct job_record await(struct play *play, const char *id, enum job_state state)
{
	struct job_follower *follower;
	struct job_record record;
	struct err err;
	sem_t changed;

	sem_init(&changed, 0, 0);
	assert_int_equal(
		job_follow(play->jobs, &world_owner, id, notice, &changed, &follower, &err), 0);
	for (;;) {
		job_follower_read(follower, &record);
		job_record_fini(&record);
		if (record.state == state)
			break;
		world_await(&changed);
	}
	job_unfollow(follower);
	sem_destroy(&changed);
	return record;
}

static void assert_log(struct play *play, const char *id, const char *expected)
{
	struct job_follower *follower;
	struct output_cursor *cursor;
	struct output_piece piece;
	char text[512];
	size_t len = 0;
	struct err err;
	sem_t unused;

	sem_init(&unused, 0, 0);
	assert_int_equal(
		job_follow(play->jobs, &world_owner, id, notice, &unused, &follower, &err), 0);
	cursor = output_cursor_new(job_follower_log(follower), 0);
	/* Lines that were written at other times are pieces of their own. */
	do {
		output_cursor_read(cursor, text + len, sizeof(text) - 1 - len, &piece);
		len += piece.next - piece.offset;
	} while (piece.next > piece.offset);
	text[len] = '\0';
	assert_string_equal(text, expected);
	output_cursor_free(cursor);
	job_unfollow(follower);
	sem_destroy(&unused);
}

/* The daemon dies while the job runs: what it would have written at its end is not there. */
static void restart(struct play *play)
{
	jobs_close(play->jobs);
	open_jobs(play);
}

/* --- cases --- */

static void a_job_runs_and_says_what_came_of_it(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "retry", NULL, NULL);
	struct job_record record = await(play, id, JOB_SUCCEEDED);
	struct err err;

	assert_string_equal(record.kind, "retry");
	assert_string_equal(record.target, "it");
	assert_string_equal(record.progress, "half of it");
	assert_int_equal(record.done_bytes, 1);
	assert_int_equal(record.total_bytes, 2);
	assert_int_equal(record.tries, 1);
	assert_true(record.created_at_ms > 0 && record.started_at_ms > 0 && record.ended_at_ms > 0);
	assert_log(play, id, "try 1\n");
	assert_int_equal(store_job_get(play->world->store, NULL, id, &record, &err), 0);
	assert_int_equal(json_integer_value(json_object_get(record.result, "made")), 1);
	job_record_fini(&record);
}

static void a_failure_is_its_error(void **state)
{
	struct play *play = *state;
	struct job_record record =
		await(play, must_submit(play, "retry", NULL, "fails"), JOB_FAILED);

	assert_string_equal(record.error_code, "full");
	assert_string_equal(record.error_message, "the disk is full");
	assert_string_equal(record.error_remedy, "free some");
	assert_log(play, record.id, "try 1\nfailed: the disk is full\n");
}

static void the_same_request_joins_the_job_that_is_not_over(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "retry", "key", "waits");
	struct job_record record;
	struct err err;
	bool is_joined;

	world_await(&play->begun);
	assert_int_equal(
		submit(play, &world_owner, "retry", "key", "waits", &record, &is_joined, &err), 0);
	assert_true(is_joined);
	assert_string_equal(record.id, id);
	job_record_fini(&record);
	assert_int_equal(
		submit(play, &world_stranger, "retry", "key", NULL, &record, &is_joined, &err), 0);
	assert_false(is_joined);
	job_record_fini(&record);
	sem_post(&play->go_on);
	await(play, id, JOB_SUCCEEDED);
	assert_string_not_equal(must_submit(play, "retry", "key", NULL), id);
}

static void one_that_runs_is_cancelled_when_it_looks(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "retry", NULL, "waits");
	struct job_record record;
	struct err err;

	world_await(&play->begun);
	assert_int_equal(job_cancel(play->jobs, &world_stranger, id, &record, &err), -ENOENT);
	assert_int_equal(job_cancel(play->jobs, &world_owner, id, &record, &err), 0);
	assert_true(record.is_cancelling);
	job_record_fini(&record);
	await(play, id, JOB_CANCELLED);
	assert_int_equal(job_cancel(play->jobs, &world_owner, id, &record, &err), 0);
	assert_int_equal(record.state, JOB_CANCELLED);
	job_record_fini(&record);
}

static void one_that_waits_for_its_turn_is_cancelled_at_once(void **state)
{
	struct play *play = *state;
	const char *first = must_submit(play, "lose", NULL, "waits");
	const char *second = must_submit(play, "lose", NULL, NULL);
	struct job_record record;
	struct err err;

	world_await(&play->begun);
	assert_int_equal(read_job(play, second).state, JOB_QUEUED);
	assert_int_equal(job_cancel(play->jobs, &world_owner, second, &record, &err), 0);
	assert_int_equal(record.state, JOB_CANCELLED);
	job_record_fini(&record);
	sem_post(&play->go_on);
	await(play, first, JOB_SUCCEEDED);
	assert_int_equal(atomic_load(&play->runs), 1);
}

static void of_a_kind_with_a_limit_the_next_begins_when_one_ends(void **state)
{
	struct play *play = *state;
	const char *first = must_submit(play, "lose", NULL, "waits");
	const char *second = must_submit(play, "lose", NULL, NULL);

	world_await(&play->begun);
	sem_post(&play->go_on);
	await(play, first, JOB_SUCCEEDED);
	await(play, second, JOB_SUCCEEDED);
}

static void an_owner_runs_half_of_what_may_run(void **state)
{
	struct play *play = *state;
	const char *ids[3];
	struct job_record record;
	struct err err;
	bool is_joined;

	for (size_t i = 0; i < array_len(ids); i++)
		ids[i] = must_submit(play, "retry", NULL, "waits");
	world_await(&play->begun);
	world_await(&play->begun);
	assert_int_equal(read_job(play, ids[2]).state, JOB_QUEUED);
	assert_int_equal(
		submit(play, &world_stranger, "retry", NULL, NULL, &record, &is_joined, &err), 0);
	assert_int_equal(record.state, JOB_RUNNING);
	job_record_fini(&record);
	for (size_t i = 0; i < array_len(ids); i++)
		sem_post(&play->go_on);
	for (size_t i = 0; i < array_len(ids); i++)
		await(play, ids[i], JOB_SUCCEEDED);
}

static void a_log_does_not_grow_below_the_reserve_and_says_so_after(void **state)
{
	struct play *play = *state;
	const char *id;

	atomic_store(&free_bytes, RESERVE - 1);
	id = must_submit(play, "retry", NULL, "waits_and_fails");
	world_await(&play->begun);
	assert_log(play, id, "");
	atomic_store(&free_bytes, RESERVE);
	sem_post(&play->go_on);
	await(play, id, JOB_FAILED);
	assert_log(play, id,
		"1 lines are missing here: the disk was full\nfailed: the disk is full\n");
	atomic_store(&free_bytes, UINT64_MAX);
}

static void after_a_restart_one_begins_anew_and_its_log_goes_on(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "retry", NULL, "waits");

	world_await(&play->begun);
	restart(play);
	world_await(&play->begun);
	sem_post(&play->go_on);
	assert_int_equal(await(play, id, JOB_SUCCEEDED).tries, 2);
	assert_log(play, id, "try 1\nthe daemon was restarted: the job begins anew\ntry 2\n");
}

static void after_a_restart_one_that_cannot_go_on_is_lost_and_says_so(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "lose", NULL, "waits");
	const char *queued = must_submit(play, "lose", NULL, NULL);
	struct job_record record;

	world_await(&play->begun);
	restart(play);
	record = read_job(play, id);
	assert_int_equal(record.state, JOB_LOST);
	assert_string_equal(record.error_code, "job_lost");
	assert_true(record.ended_at_ms > 0);
	/* What had not begun has lost nothing. */
	await(play, queued, JOB_SUCCEEDED);
}

static void a_cancel_survives_a_restart(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "retry", NULL, "waits");
	struct job_record record;
	struct err err;

	world_await(&play->begun);
	jobs_close(play->jobs);
	assert_int_equal(store_job_get(play->world->store, NULL, id, &record, &err), 0);
	assert_int_equal(record.state, JOB_RUNNING);
	record.is_cancelling = true;
	assert_int_equal(store_job_update(play->world->store, &record, &err), 0);
	job_record_fini(&record);
	open_jobs(play);
	assert_int_equal(read_job(play, id).state, JOB_CANCELLED);
	assert_int_equal(atomic_load(&play->runs), 1);
}

static void a_kind_that_is_not_known_any_more_is_lost(void **state)
{
	struct play *play = *state;
	const char *id;

	jobs_close(play->jobs);
	play->kinds[2] = play->kinds[0];
	play->kinds[2].name = "old";
	open_jobs(play);
	id = must_submit(play, "old", NULL, "waits");
	world_await(&play->begun);
	jobs_close(play->jobs);
	play->kinds[2].name = NULL;
	open_jobs(play);
	assert_int_equal(read_job(play, id).state, JOB_LOST);
}

static void the_oldest_that_are_over_are_forgotten_with_their_logs(void **state)
{
	struct play *play = *state;
	char first[ID_LEN + 1];
	struct job_record record;
	struct err err;

	memcpy(first, must_submit(play, "retry", NULL, NULL), sizeof(first));
	await(play, first, JOB_SUCCEEDED);
	for (int i = 0; i < 3; i++)
		await(play, must_submit(play, "retry", NULL, NULL), JOB_SUCCEEDED);
	assert_int_equal(job_get(play->jobs, &world_owner, first, &record, &err), -ENOENT);
	assert_int_equal(faccessat(play->dir_fd, first, F_OK, 0), -1);
}

static void note_type(void *arg, const struct event *event)
{
	char *text = arg;

	strcat(strcat(text, event->type), " ");
}

static void changes_are_published_to_its_owner(void **state)
{
	struct play *play = *state;
	char own[256] = "", foreign[256] = "";
	struct event_bus *bus = play->world->bus;
	struct event_follower *first = event_bus_follow(
		bus, &(struct event_filter){.owner = &world_owner}, note_type, own);
	struct event_follower *second = event_bus_follow(
		bus, &(struct event_filter){.owner = &world_stranger}, note_type, foreign);

	await(play, must_submit(play, "retry", NULL, NULL), JOB_SUCCEEDED);
	event_bus_leave(bus, first);
	event_bus_leave(bus, second);
	assert_string_equal(own, "job.queued job.running job.progress job.succeeded ");
	assert_string_equal(foreign, "");
}

static bool count(const struct job_record *record, void *arg)
{
	(void)record;
	++*(int *)arg;
	return true;
}

static void lists_are_of_an_owner_and_by_filter(void **state)
{
	struct play *play = *state;
	int seen = 0;
	struct err err;

	await(play, must_submit(play, "retry", NULL, NULL), JOB_SUCCEEDED);
	await(play, must_submit(play, "lose", NULL, "fails"), JOB_FAILED);
#define LISTED(owner, expected, ...)                                                               \
	seen = 0;                                                                                  \
	assert_int_equal(                                                                          \
		job_list(play->jobs, owner, &(struct job_filter){.limit = 8, __VA_ARGS__}, count,  \
			&seen, &err),                                                              \
		0);                                                                                \
	assert_int_equal(seen, expected)
	LISTED(&world_owner, 2, .target = "it");
	LISTED(&world_owner, 1, .state = "failed");
	LISTED(&world_owner, 1, .kind = "retry");
	LISTED(&world_stranger, 0, .target = NULL);
#undef LISTED
	assert_int_equal(
		job_list(play->jobs, &world_owner,
			&(struct job_filter){.limit = 8, .state = "done"}, count, &seen, &err),
		-EINVAL);
}

static atomic_bool is_kind_ready;

static bool kind_is_ready(void *context)
{
	(void)context;
	return atomic_load(&is_kind_ready);
}

static void a_kind_that_is_not_ready_yet_waits_until_it_is(void **state)
{
	struct play *play = *state;
	const char *id;

	jobs_close(play->jobs);
	play->kinds[2] = (struct job_kind){.name = "later",
		.on_restart = JOB_RESTART_RETRY,
		.is_ready = kind_is_ready,
		.run = run,
		.context = play};
	open_jobs(play);
	id = must_submit(play, "later", NULL, NULL);
	await(play, must_submit(play, "retry", NULL, NULL), JOB_SUCCEEDED);
	assert_int_equal(read_job(play, id).state, JOB_QUEUED);
	atomic_store(&is_kind_ready, true);
	jobs_look(play->jobs);
	await(play, id, JOB_SUCCEEDED);
}

static void the_end_is_told_with_the_kind_of_its_error_also_after_a_restart(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "retry", NULL, "waits_and_fails");
	struct err err = {0};

	world_await(&play->begun);
	assert_int_equal(job_end(play->jobs, &world_owner, id, &err), 1);
	sem_post(&play->go_on);
	await(play, id, JOB_FAILED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(job_end(play->jobs, &world_owner, id, &err), -ENOSPC);
		assert_int_equal(err.kind, ERR_NO_SPACE);
		assert_string_equal(err.message, "the disk is full");
		restart(play);
	}
	assert_int_equal(job_end(play->jobs, &world_stranger, id, &err), -ENOENT);
	id = must_submit(play, "retry", NULL, NULL);
	await(play, id, JOB_SUCCEEDED);
	assert_int_equal(job_end(play->jobs, &world_owner, id, &err), 0);
}

static void the_end_of_the_daemon_is_told_to_who_asks_for_that_of_a_job(void **state)
{
	struct play *play = *state;
	const char *id = must_submit(play, "retry", NULL, "waits");
	struct err err = {0};

	world_await(&play->begun);
	jobs_stop(play->jobs);
	assert_true(job_end(play->jobs, &world_owner, id, &err) < 0);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
}

static atomic_int ends;

static void note_end(struct job *job, void *context)
{
	(void)context;
	assert_false(job_state_is_active(job_record(job)->state));
	atomic_fetch_add(&ends, 1);
}

static void its_kind_is_told_of_the_end_once_but_not_when_the_daemon_leaves(void **state)
{
	struct play *play = *state;
	struct job_record record;
	const char *first, *second;
	struct err err;

	jobs_close(play->jobs);
	play->kinds[2] = (struct job_kind){.name = "told",
		.on_restart = JOB_RESTART_RETRY,
		.max_running = 1,
		.run = run,
		.ended = note_end,
		.context = play};
	open_jobs(play);
	atomic_store(&ends, 0);
	first = must_submit(play, "told", NULL, "waits");
	world_await(&play->begun);
	/* One that is queued never gets a thread. */
	second = must_submit(play, "told", NULL, NULL);
	assert_int_equal(job_cancel(play->jobs, &world_owner, second, &record, &err), 0);
	job_record_fini(&record);
	assert_int_equal(atomic_load(&ends), 1);
	restart(play);
	assert_int_equal(atomic_load(&ends), 1);
	world_await(&play->begun);
	sem_post(&play->go_on);
	await(play, first, JOB_SUCCEEDED);
	jobs_close(play->jobs);
	assert_int_equal(atomic_load(&ends), 2);
	open_jobs(play);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_play, teardown_play)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_job_runs_and_says_what_came_of_it),
		CASE(a_failure_is_its_error),
		CASE(the_same_request_joins_the_job_that_is_not_over),
		CASE(one_that_runs_is_cancelled_when_it_looks),
		CASE(one_that_waits_for_its_turn_is_cancelled_at_once),
		CASE(of_a_kind_with_a_limit_the_next_begins_when_one_ends),
		CASE(an_owner_runs_half_of_what_may_run),
		CASE(a_log_does_not_grow_below_the_reserve_and_says_so_after),
		CASE(after_a_restart_one_begins_anew_and_its_log_goes_on),
		CASE(after_a_restart_one_that_cannot_go_on_is_lost_and_says_so),
		CASE(a_cancel_survives_a_restart),
		CASE(a_kind_that_is_not_known_any_more_is_lost),
		CASE(the_oldest_that_are_over_are_forgotten_with_their_logs),
		CASE(changes_are_published_to_its_owner),
		CASE(lists_are_of_an_owner_and_by_filter),
		CASE(a_kind_that_is_not_ready_yet_waits_until_it_is),
		CASE(the_end_is_told_with_the_kind_of_its_error_also_after_a_restart),
		CASE(the_end_of_the_daemon_is_told_to_who_asks_for_that_of_a_job),
		CASE(its_kind_is_told_of_the_end_once_but_not_when_the_daemon_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
