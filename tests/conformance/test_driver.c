/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every driver must do (src/driver/driver.h). The argument is the name of the driver. Tests of
 * a capability run if the driver declares it; those that run commands, if agents are behind its
 * links.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/template/image/tree_stream.h"
#include "model/id.h"
#include "subject.h"
#include "wire/agent.h"
#include "wire/frame.h"
#include "wire/layer.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct subject *subject;
static struct driver *driver;
static uint64_t last_link; /* the number of the link that was made last */

/* --- helpers --- */

static void new_id(char id[ID_LEN + 1])
{
	id_new(clock_wall_ms(), id);
}

/* Starts a sandbox that must come up; its link, attached. */
static int must_start_as(const struct driver_spec *spec)
{
	struct driver_link link = {.fd = -1};
	struct walls walls;
	struct err err = {0};

	if (driver->ops->start(driver, spec, NULL, &link, &walls, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(link.fd >= 0);
	assert_int_not_equal(link.number, last_link);
	last_link = link.number;
	assert_int_equal(subject_greet(link.fd), 0);
	return link.fd;
}

static int must_start(const char *id)
{
	struct driver_spec spec = subject_spec(id);

	return must_start_as(&spec);
}

static void must_stop(const char *id)
{
	struct err err = {0};

	if (driver->ops->stop(driver, id, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

static void must_clean(const char *id, unsigned parts)
{
	struct err err = {0};

	if (driver->ops->clean(driver, id, parts, &err) < 0)
		fail_msg("%s", err.message);
}

/* Ends it, and removes all that it had. */
static void discard(const char *id, int link)
{
	fd_close(link);
	must_stop(id);
	must_clean(id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE);
}

static bool is_listed(bool stored, const char *id)
{
	char ids[DRIVER_PAGE][ID_LEN + 1], after[ID_LEN + 1] = "";
	struct err err;
	int count;

	do {
		count = driver->ops->list(driver, stored, after, ids, &err);
		assert_true(count >= 0 && count <= DRIVER_PAGE);
		for (int i = 0; i < count; i++) {
			assert_true(strcmp(ids[i], after) > 0); /* in order, none twice */
			if (strcmp(ids[i], id) == 0)
				return true;
			memcpy(after, ids[i], sizeof(after));
		}
	} while (count == DRIVER_PAGE);
	return false;
}

/* What the list says must be what a question about one sandbox says. */
static bool is_stored(const char *id)
{
	struct err err;
	int r = driver->ops->is_stored(driver, id, &err);

	assert_int_equal(r, is_listed(true, id));
	return r;
}

static void assert_not_found(int r, const struct err *err)
{
	assert_true(r < 0);
	assert_int_equal(err->kind, ERR_NOT_FOUND);
}

static void must_print(int link, uint32_t number, const char *line, const char *expected)
{
	int status;
	const char *output = subject_run(link, number, line, &status);

	assert_string_equal(output, expected);
	assert_int_equal(status, 0);
}

#define NEEDS(capability)                                                                          \
	do {                                                                                       \
		if (!driver_can(driver, capability))                                               \
			skip();                                                                    \
	} while (0)

#define NEEDS_AGENT                                                                                \
	do {                                                                                       \
		if (!subject->has_agent)                                                           \
			skip();                                                                    \
	} while (0)

/* Has the agent look at a path, over a channel. */
static void must_stat(const char *id, const char *path)
{
	struct buf first = BUF_INIT(256);
	uint8_t answer[AGENT_FILE_ANSWER_LEN];
	struct unpack in = UNPACK_INIT(answer, sizeof(answer));
	struct err err = {0};
	int fd = -1;

	frame_put_header(&first, AGENT_FILE, 0, (uint32_t)(1 + 4 + 4 + strlen(path)));
	pack_u8(&first, AGENT_FILE_STAT);
	pack_u32(&first, 0);
	pack_str(&first, path);
	if (driver->ops->open_channel(driver, id, last_link, first.data, first.len, &fd, &err) < 0)
		fail_msg("%s", err.message);
	buf_fini(&first);
	assert_int_equal(fd_set_timeout(fd, SUBJECT_PATIENCE_MS), 0);
	assert_int_equal(fd_read_full(fd, answer, sizeof(answer)), 0);
	assert_int_equal(unpack_u32(&in), 0);
	assert_int_equal(unpack_u8(&in), AGENT_FILE_DIRECTORY);
	close(fd);
}

/* --- what it says of itself --- */

static void it_has_every_function_that_it_must_have(void **state)
{
	const struct driver_ops *ops = driver->ops;

	(void)state;
	assert_string_equal(ops->name, subject->name);
	assert_true(driver->capabilities < DRIVER_BIT(DRIVER_CAPABILITY_COUNT));
	assert_true(ops->start && ops->stop && ops->stats && ops->usage && ops->clean &&
		    ops->list && ops->is_stored && ops->dial && ops->open_channel);
	assert_true(ops->shutdown && ops->close);
}

static void it_has_the_functions_of_its_capabilities(void **state)
{
	const struct driver_ops *ops = driver->ops;

	(void)state;
	assert_true(!driver_can(driver, DRIVER_FREEZE) || ops->freeze);
	assert_true(!driver_can(driver, DRIVER_LIVE_RESIZE) || (ops->resize && ops->set_limits));
	assert_true(
		!driver_can(driver, DRIVER_LIVE_RESIZE) || driver_can(driver, DRIVER_DISK_LIMIT));
	assert_true(!driver_can(driver, DRIVER_EGRESS_POLICY) || ops->open_egress_sockets);
	assert_true(!driver_can(driver, DRIVER_ISOLATED_EXEC) || ops->isolated);
	assert_true(!driver_can(driver, DRIVER_ADOPT) || ops->adopt);
	assert_true(!driver_can(driver, DRIVER_LAYERS) ||
		    (ops->write_layer && ops->commit_layer && ops->drop_layer && ops->list_layers &&
			    ops->read_tree && ops->read_changes && ops->show_layer &&
			    ops->stack_layers && ops->drop_stack));
}

static void one_that_serves_says_so(void **state)
{
	struct pollfd gone = {.fd = driver_gone_fd(driver), .events = POLLIN};
	struct err err = {0};

	(void)state;
	assert_int_equal(driver_check(driver, &err), 0);
	assert_int_equal(poll(&gone, 1, 0), 0);
}

/* --- a sandbox that there is not --- */

static void what_does_not_run_is_not_found(void **state)
{
	struct driver_egress_sockets sockets;
	struct driver_stats stats;
	char id[ID_LEN + 1];
	struct driver_link link = {.fd = -1};
	struct walls walls;
	struct err err = {0};
	int fd = -1;

	(void)state;
	new_id(id);
	assert_not_found(driver->ops->open_channel(driver, id, last_link, "", 0, &fd, &err), &err);
	assert_not_found(driver->ops->stats(driver, id, &stats, &err), &err);
	assert_not_found(driver->ops->dial(driver, id, 80, 100, &fd, &err), &err);
	if (driver_can(driver, DRIVER_ADOPT))
		assert_not_found(driver->ops->adopt(driver, id, &link, &walls, &err), &err);
	if (driver_can(driver, DRIVER_FREEZE))
		assert_not_found(driver->ops->freeze(driver, id, true, &err), &err);
	if (driver_can(driver, DRIVER_LIVE_RESIZE))
		assert_not_found(driver->ops->resize(driver, id, SUBJECT_DISK, 0, &err), &err);
	if (driver_can(driver, DRIVER_EGRESS_POLICY))
		assert_not_found(
			driver->ops->open_egress_sockets(driver, id, &sockets, &err), &err);
	assert_true(fd == -1 && link.fd == -1);
	assert_false(is_listed(false, id));
	assert_false(is_stored(id));
}

/* A daemon that died in the middle does the same again: both succeed when there is nothing to do. */
static void ending_and_removing_nothing_is_fine(void **state)
{
	struct driver_end end = {.ended = true};
	char id[ID_LEN + 1];
	struct err err = {0};

	(void)state;
	new_id(id);
	assert_int_equal(driver->ops->stop(driver, id, &end, &err), 0);
	assert_false(end.ended);
	must_clean(id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE);
	must_clean(id, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH);
}

/* --- start and stop --- */

static void a_started_sandbox_is_listed_until_it_is_stopped(void **state)
{
	char id[ID_LEN + 1];
	int link;

	(void)state;
	new_id(id);
	link = must_start(id);
	assert_true(is_listed(false, id));
	assert_true(is_stored(id));
	must_stop(id);
	assert_false(is_listed(false, id));
	assert_true(is_stored(id));
	subject_expect_end(link);
	discard(id, link);
	assert_false(is_stored(id));
}

struct steps {
	unsigned count;
	bool is_over;
};

static void note_step(void *arg, const char *step, int permille)
{
	struct steps *steps = arg;

	assert_false(steps->is_over);
	assert_true(step[0] && permille >= -1 && permille <= 1000);
	steps->count++;
}

/* A start may take long, and says how far it is while it lasts. */
static void progress_is_told_until_a_start_returns(void **state)
{
	struct steps steps = {0};
	const struct driver_progress progress = {note_step, &steps};
	struct driver_spec spec;
	struct driver_link link = {.fd = -1};
	struct walls walls;
	char id[ID_LEN + 1];
	struct err err = {0};

	(void)state;
	new_id(id);
	spec = subject_spec(id);
	assert_int_equal(driver->ops->start(driver, &spec, &progress, &link, &walls, &err), 0);
	steps.is_over = true;
	assert_int_equal(steps.count, subject->steps);
	last_link = link.number;
	assert_int_equal(subject_greet(link.fd), 0);
	discard(id, link.fd);
}

static void what_a_driver_cannot_mount_is_refused(void **state)
{
	static const struct driver_mount mount = {"/nonexistent/source", "/mnt", true};
	struct driver_spec spec;
	struct driver_link link = {.fd = -1};
	struct walls walls;
	char id[ID_LEN + 1];
	struct err err = {0};

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	spec = subject_spec(id);
	spec.mounts = &mount;
	spec.mount_count = 1;
	assert_true(driver->ops->start(driver, &spec, NULL, &link, &walls, &err) < 0);
	assert_int_equal(link.fd, -1);
	assert_non_null(strstr(err.message, "/nonexistent/source"));
	assert_false(is_listed(false, id));
}

/* A disk that is whole is not listed as failed, and a check of it changes nothing. */
static void a_whole_disk_has_not_failed_and_needs_no_repair(void **state)
{
	char id[ID_LEN + 1], ids[DRIVER_PAGE][ID_LEN + 1];
	struct err err = {0};
	int link, count;

	(void)state;
	new_id(id);
	link = must_start(id);
	count = driver->ops->list_failed ? driver->ops->list_failed(driver, ids, &err) : 0;
	assert_true(count >= 0 && count <= DRIVER_PAGE);
	for (int i = 0; i < count; i++)
		assert_string_not_equal(ids[i], id);
	if (subject->has_agent)
		must_print(link, 1, "echo kept > /var/tmp/file", "");
	close(link);
	must_stop(id);
	if (driver->ops->check_disk)
		assert_int_equal(driver->ops->check_disk(driver, id, &err), 0);
	link = must_start(id);
	if (subject->has_agent)
		must_print(link, 1, "cat /var/tmp/file", "kept\n");
	discard(id, link);
}

/* What an operator is told of files without a sandbox is one line. */
static void files_are_located_in_words(void **state)
{
	char id[ID_LEN + 1], text[DRIVER_LOCATION_MAX] = "";
	struct err err = {0};
	int link;

	(void)state;
	if (!driver->ops->locate)
		skip();
	new_id(id);
	assert_not_found(driver->ops->locate(driver, id, text, &err), &err);
	assert_string_equal(text, "");
	link = must_start(id);
	close(link);
	must_stop(id);
	assert_int_equal(driver->ops->locate(driver, id, text, &err), 0);
	assert_true(text[0] && !strchr(text, '\n'));
	must_clean(id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE);
}

static void a_second_start_is_refused_and_the_first_runs_on(void **state)
{
	char id[ID_LEN + 1];
	struct driver_spec spec;
	struct pollfd ended;
	struct driver_link second = {.fd = -1};
	struct walls walls;
	struct err err = {0};
	int link;

	(void)state;
	new_id(id);
	spec = subject_spec(id);
	link = must_start(id);
	assert_int_equal(driver->ops->start(driver, &spec, NULL, &second, &walls, &err), -EEXIST);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_int_equal(second.fd, -1);
	assert_true(is_listed(false, id));
	ended = (struct pollfd){.fd = link, .events = POLLIN};
	assert_int_equal(poll(&ended, 1, 0), 0);
	discard(id, link);
}

static void what_runs_cannot_be_cleaned(void **state)
{
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	new_id(id);
	link = must_start(id);
	assert_true(driver->ops->clean(driver, id, DRIVER_PART_WORKSPACE, &err) < 0);
	assert_true(is_listed(false, id));
	discard(id, link);
}

static void several_are_listed_in_order(void **state)
{
	char ids[3][ID_LEN + 1];
	int links[3];

	(void)state;
	for (size_t i = 0; i < array_len(ids); i++) {
		new_id(ids[i]);
		links[i] = must_start(ids[i]);
	}
	for (size_t i = 0; i < array_len(ids); i++)
		assert_true(is_listed(false, ids[i]));
	must_stop(ids[1]);
	assert_true(is_listed(false, ids[0]));
	assert_false(is_listed(false, ids[1]));
	assert_true(is_listed(false, ids[2]));
	for (size_t i = 0; i < array_len(ids); i++)
		discard(ids[i], links[i]);
}

static void channels_are_side_by_side_and_of_one_run_of_a_sandbox(void **state)
{
	char id[ID_LEN + 1];
	uint64_t before;
	struct err err = {0};
	int link, fd = -1;

	(void)state;
	new_id(id);
	link = must_start(id);
	for (int i = 0; i < 20 && subject->has_agent; i++)
		must_stat(id, i % 2 ? "/" : "/workspace");
	close(link);
	must_stop(id);
	before = last_link;
	assert_true(driver->ops->open_channel(driver, id, before, "", 0, &fd, &err) < 0);
	link = must_start(id);
	assert_true(driver->ops->open_channel(driver, id, before, "", 0, &fd, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_int_equal(fd, -1);
	if (subject->has_agent)
		must_stat(id, "/");
	discard(id, link);
}

static void stop_tells_how_one_had_ended_by_itself(void **state)
{
	static const uint8_t no_grace[4];
	struct driver_end end = {0};
	struct buf frame = BUF_INIT(64);
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	frame_put(&frame, AGENT_SHUTDOWN, 0, no_grace, sizeof(no_grace));
	assert_int_equal(fd_write_full(link, frame.data, frame.len), 0);
	buf_fini(&frame);
	subject_expect_end(link);
	/* Its end may be seen by us before it is by the driver. */
	for (uint64_t until = clock_steady_ms() + SUBJECT_PATIENCE_MS; !end.ended;) {
		struct driver_stats stats;

		assert_true(clock_steady_ms() < until);
		if (driver->ops->stats(driver, id, &stats, &err) == 0)
			continue;
		assert_int_equal(driver->ops->stop(driver, id, &end, &err), 0);
	}
	assert_true(WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == 0);
	assert_int_equal(end.cause.kind, ERR_NONE);
	discard(id, link);
}

/* --- what is inside --- */

static void a_sandbox_is_what_its_spec_says(void **state)
{
	struct driver_stats stats;
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	must_print(link, 1, "uname -n; id -u; pwd", "box\n0\n/\n");
	assert_int_equal(driver->ops->stats(driver, id, &stats, &err), 0);
	if (subject->has_limits) {
		assert_int_equal(stats.memory_limit_bytes, SUBJECT_MEMORY);
		assert_int_equal(stats.pids_limit, SUBJECT_PIDS);
		assert_true(stats.memory_bytes > 0 && stats.pids > 0 && stats.cpu_us > 0);
	}
	discard(id, link);
}

static void a_workspace_outlives_a_stop_and_a_delete_but_no_purge(void **state)
{
	static const char look[] = "cat /workspace/outputs/file /var/tmp/file 2>/dev/null; :";
	char id[ID_LEN + 1];
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	must_print(link, 1, "echo one > /workspace/outputs/file; echo two > /var/tmp/file", "");
	close(link);
	must_stop(id);
	link = must_start(id);
	must_print(link, 1, look, "one\ntwo\n");
	close(link);
	must_stop(id);
	must_clean(id, DRIVER_PART_ALL);
	assert_true(is_stored(id));
	link = must_start(id);
	must_print(link, 1, look, "one\n");
	discard(id, link);
	link = must_start(id);
	must_print(link, 1, look, "");
	discard(id, link);
}

/* Its files belong to it whatever daemon starts it, and whoever was started meanwhile. */
static void files_stay_the_sandbox_s_own_over_a_new_daemon(void **state)
{
	static const char look[] = "stat -c '%u %g' /workspace/outputs/file /workspace/outputs";
	char ids[3][ID_LEN + 1];
	int links[3];

	(void)state;
	NEEDS_AGENT;
	for (size_t i = 0; i < array_len(ids); i++) {
		new_id(ids[i]);
		links[i] = must_start(ids[i]);
		must_print(links[i], 1, "echo x > /workspace/outputs/file", "");
		close(links[i]);
		must_stop(ids[i]);
	}
	discard(ids[0], -1);
	subject->close(driver);
	driver = subject->open();
	assert_false(is_stored(ids[0]));
	assert_true(is_stored(ids[1]) && is_stored(ids[2]));
	links[0] = must_start(ids[0]);
	for (size_t i = 1; i < array_len(ids); i++) {
		links[i] = must_start(ids[i]);
		must_print(links[i], 1, look, "0 0\n1000 1000\n");
	}
	for (size_t i = 0; i < array_len(ids); i++)
		discard(ids[i], links[i]);
}

static void a_reset_empties_system_and_scratch(void **state)
{
	char id[ID_LEN + 1];
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	must_print(link, 1, "echo x | tee /workspace/outputs/file > /var/tmp/file", "");
	close(link);
	must_stop(id);
	must_clean(id, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH);
	link = must_start(id);
	must_print(link, 1, "cat /workspace/outputs/file /var/tmp/file 2>/dev/null; :", "");
	discard(id, link);
}

/* --- capabilities --- */

/* What a tree is told to be: a line for each entry, and the content of files. */
struct told {
	struct buf text;
	uint64_t inodes;
};

static int tell_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	static const char *const kinds[] = {[LAYER_FILE] = "file",
		[LAYER_DIRECTORY] = "dir",
		[LAYER_SYMLINK] = "symlink",
		[LAYER_HARDLINK] = "hardlink",
		[LAYER_FIFO] = "fifo",
		[LAYER_WHITEOUT] = "whiteout",
		[LAYER_OPAQUE] = "opaque"};
	struct told *told = arg;
	char line[256];

	(void)err;
	told->inodes += entry->inode > 0;
	snprintf(line, sizeof(line), "%s %s %s %o %u:%u %zu\n", kinds[entry->kind], entry->path,
		entry->target, (unsigned)entry->mode, entry->uid, entry->gid, entry->xattr_count);
	buf_append(&told->text, line, strlen(line));
	return 0;
}

static int tell_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct told *told = arg;
	char line[64];

	(void)err;
	snprintf(line, sizeof(line), "%llu+%zu ", (unsigned long long)offset, len);
	buf_append(&told->text, line, strlen(line));
	buf_append(&told->text, data, len < 16 ? len : 16);
	return 0;
}

static void must_tell(
	enum driver_tree tree, const char *name, bool has_content, const char *const expected[])
{
	struct told told = {.text = BUF_INIT(1 << 20)};
	const struct layer_sink sink = {tell_entry, tell_content, &told};
	struct err err = {0};

	if (tree_stream_run(driver, tree, name, has_content, &sink, &err) < 0)
		fail_msg("%s", err.message);
	buf_append(&told.text, "", 1);
	for (; *expected; expected++) {
		if (!strstr((const char *)told.text.data, *expected))
			fail_msg("%s is not in %s", *expected, (const char *)told.text.data);
	}
	assert_int_equal(told.inodes > 0, !has_content);
	buf_fini(&told.text);
}

static void what_a_sandbox_has_written_can_be_read(void **state)
{
	static const char line[] =
		"cd /var/tmp; echo hello > a; ln a b; ln -s /etc/passwd c; mkfifo d;"
		"chown 7:8 a; chmod 4711 a; mkdir 'e f'; truncate -s 1M s; echo x >> s;"
		"rm /etc/hostname; printf in > /workspace/outputs/o";
	static const char *const system[] = {"file var/tmp/a  4711 7:8 0\n0+6 hello\n",
		"hardlink var/tmp/b var/tmp/a ", "symlink var/tmp/c /etc/passwd 777 0:0",
		"fifo var/tmp/d ", "dir var/tmp/e f  755 0:0", "file var/tmp/s ", "1048576+2 x\n",
		"whiteout etc/hostname ", NULL};
	static const char *const names[] = {"file var/tmp/a ", "hardlink var/tmp/b ", NULL};
	static const char *const workspace[] = {"file outputs/o  644 0:0 0\n0+2 in", NULL};
	const struct layer_sink none = {tell_entry, tell_content, NULL};
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_LAYERS);
	new_id(id);
	link = must_start(id);
	must_print(link, 1, line, "");
	must_tell(DRIVER_TREE_SYSTEM, id, false, names); /* also while it runs */
	close(link);
	must_stop(id);
	must_tell(DRIVER_TREE_SYSTEM, id, true, system);
	must_tell(DRIVER_TREE_SYSTEM, id, false, names);
	must_tell(DRIVER_TREE_WORKSPACE, id, true, workspace);
	link = must_start(id); /* no reader keeps its disk */
	discard(id, link);
	assert_not_found(tree_stream_run(driver, DRIVER_TREE_SYSTEM, id, true, &none, &err), &err);
	assert_not_found(tree_stream_run(driver, DRIVER_TREE_LAYER,
				 "0000000000000000000000000000000000000000000000000000000000000000",
				 true, &none, &err),
		&err);
}

#define FROZEN_MS 300

static void pack_layer_item(
	struct buf *out, enum layer_item kind, const char *name, uint32_t mode, const char *content)
{
	pack_u8(out, (uint8_t)kind);
	pack_u32(out, mode);
	pack_u32(out, 0);
	pack_u32(out, 0);
	pack_u64(out, 0);
	pack_u64(out, strlen(content));
	pack_str(out, name);
	pack_str(out, "");
	pack_u32(out, 0);
	if (kind != LAYER_ITEM_FILE)
		return;
	pack_u64(out, 0);
	pack_u32(out, (uint32_t)strlen(content));
	buf_append(out, content, strlen(content));
	pack_u64(out, 0);
	pack_u32(out, 0);
}

/* Writes a layer with one file. */
static void must_write_layer(const char *layer, const char *name, const char *content)
{
	struct buf items = BUF_INIT(4096);
	struct err err = {0};
	uint32_t failure = 1;
	int stream;

	pack_layer_item(&items, LAYER_ITEM_FILE, name, 0644, content);
	pack_layer_item(&items, LAYER_ITEM_END, "", 0, "");
	if (driver->ops->write_layer(driver, layer, &stream, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(fd_write_full(stream, items.data, items.len), 0);
	assert_int_equal(fd_set_timeout(stream, SUBJECT_PATIENCE_MS), 0);
	assert_int_equal(fd_read_full(stream, &failure, sizeof(failure)), 0);
	assert_int_equal(failure, 0);
	close(stream);
	buf_fini(&items);
	if (driver->ops->commit_layer(driver, layer, &err) < 0)
		fail_msg("%s", err.message);
}

static void a_layer_is_shown_to_a_running_sandbox(void **state)
{
	static const char *const layers[] = {
		"1111111111111111111111111111111111111111111111111111111111111111",
		"2222222222222222222222222222222222222222222222222222222222222222"};
	static const char look[] = "cd /opt/dependencies; stat -c '%n %U %a' *; cat *;"
				   "touch x 2>/dev/null && echo written; :";
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_LAYERS);
	new_id(id);
	must_write_layer(layers[0], "opt/dependencies/a", "one\n");
	must_write_layer(layers[1], "opt/dependencies/b", "two\n");
	assert_not_found(driver->ops->show_layer(driver, id, layers[0], &err), &err);
	link = must_start(id);
	must_print(link, 1, "ls /opt/dependencies", "");
	assert_int_equal(driver->ops->show_layer(driver, id, layers[0], &err), 0);
	must_print(link, 2, look, "a root 644\none\n");
	assert_int_equal(driver->ops->show_layer(driver, id, layers[1], &err), 0);
	must_print(link, 3, look, "b root 644\ntwo\n");
	close(link);
	must_stop(id);
	link = must_start(id);
	must_print(link, 1, "ls /opt/dependencies", "");
	/* A link in the way is not followed. */
	must_print(link, 2, "mv /opt /o; ln -s /o /opt", "");
	assert_true(driver->ops->show_layer(driver, id, layers[0], &err) < 0);
	discard(id, link);
	for (size_t i = 0; i < array_len(layers); i++)
		assert_int_equal(driver->ops->drop_layer(driver, layers[i], &err), 0);
}

/* Writes a layer and stops before its commit. */
static void must_leave_layer(const char *layer)
{
	struct err err = {0};
	int stream;

	if (driver->ops->write_layer(driver, layer, &stream, &err) < 0)
		fail_msg("%s", err.message);
	close(stream);
}

/* These layers are there in this order and no others, and this stack (NULL: none). */
static void assert_layers(const char *const layers[], int count, const char *stack)
{
	char names[DRIVER_LAYER_PAGE][DRIVER_LAYER_NAME_LEN + 1];
	struct err err = {0};

	assert_int_equal(driver->ops->list_layers(driver, false, "", names, &err), count);
	for (int i = 0; i < count; i++)
		assert_string_equal(names[i], layers[i]);
	if (count > 0)
		assert_int_equal(
			driver->ops->list_layers(driver, false, layers[0], names, &err), count - 1);
	assert_int_equal(driver->ops->list_layers(driver, true, "", names, &err), stack ? 1 : 0);
	if (stack)
		assert_string_equal(names[0], stack);
}

static void a_sandbox_starts_from_a_stack_of_layers(void **state)
{
	static const char *const layers[] = {
		"3333333333333333333333333333333333333333333333333333333333333333",
		"4444444444444444444444444444444444444444444444444444444444444444"};
	static const char stack[] =
		"5555555555555555555555555555555555555555555555555555555555555555";
	struct driver_spec spec;
	char id[ID_LEN + 1];
	struct err err = {0};
	int fd = -1;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_LAYERS);
	must_leave_layer(layers[0]); /* what was left half written is replaced */
	must_write_layer(layers[0], "upper/a", "one\n");
	must_write_layer(layers[1], "lower/b", "two\n");
	assert_int_equal(driver->ops->write_layer(driver, layers[1], &fd, &err), -EEXIST);
	assert_int_equal(fd, -1);
	assert_int_equal(driver->ops->stack_layers(driver, stack, layers, 2, &err), 0);
	assert_int_equal(driver->ops->stack_layers(driver, stack, layers, 2, &err), 0);
	for (int run = 0; run < 2; run++) {
		new_id(id);
		spec = subject_spec(id);
		spec.stack = stack;
		fd = must_start_as(&spec);
		must_stat(id, "/upper");
		must_stat(id, "/lower");
		must_stat(id, "/workspace");
		discard(id, fd);
	}
	assert_layers(layers, 2, stack);
	assert_int_equal(driver->ops->drop_layer(driver, layers[1], &err), -EEXIST);
	assert_string_equal(err.code, DRIVER_LAYER_IN_USE);
	assert_int_equal(driver->ops->drop_stack(driver, stack, &err), 0);
	for (size_t i = 0; i < array_len(layers); i++)
		assert_int_equal(driver->ops->drop_layer(driver, layers[i], &err), 0);
	assert_layers(NULL, 0, NULL);
	/* It is gone, and so its name can be written again. */
	must_leave_layer(layers[1]);
	assert_int_equal(driver->ops->drop_layer(driver, layers[1], &err), 0);
}

static void a_frozen_sandbox_uses_no_processor(void **state)
{
	uint64_t begun_ms;
	struct driver_stats before, after;
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS(DRIVER_FREEZE);
	new_id(id);
	link = must_start(id);
	if (subject->has_agent) {
		subject_begin(link, 1, "echo busy; while :; do :; done");
		subject_await_output(link, 1, "busy");
	}
	assert_int_equal(driver->ops->freeze(driver, id, true, &err), 0);
	assert_int_equal(driver->ops->freeze(driver, id, true, &err), 0);
	begun_ms = clock_steady_ms();
	assert_int_equal(driver->ops->stats(driver, id, &before, &err), 0);
	do
		assert_int_equal(driver->ops->stats(driver, id, &after, &err), 0);
	while (clock_steady_ms() < begun_ms + FROZEN_MS);
	/* What it used last may be counted a little later; a loop would have used it all. */
	assert_true(after.cpu_us - before.cpu_us < FROZEN_MS * 1000 / 10);
	assert_int_equal(driver->ops->freeze(driver, id, false, &err), 0);
	if (subject->has_agent)
		must_print(link, 2, "echo thawed", "thawed\n");
	/* One that is frozen can be ended. */
	assert_int_equal(driver->ops->freeze(driver, id, true, &err), 0);
	discard(id, link);
}

static void a_disk_takes_as_much_as_its_limit(void **state)
{
	static const char fill[] = "head -c 24m /dev/zero > /var/tmp/fill && echo whole";
	struct driver_usage usage;
	char id[ID_LEN + 1];
	struct err err = {0};
	int link, status;

	(void)state;
	NEEDS(DRIVER_DISK_LIMIT);
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	assert_non_null(strstr(subject_run(link, 1, fill, &status), "No space left"));
	assert_int_equal(driver->ops->usage(driver, id, &usage, &err), 0);
	assert_true(usage.bytes > SUBJECT_DISK / 2 && usage.bytes <= SUBJECT_DISK);
	assert_true(usage.files > 0 && usage.files_limit > 0);
	if (driver_can(driver, DRIVER_LIVE_RESIZE)) {
		assert_int_equal(driver->ops->resize(driver, id, 3 * SUBJECT_DISK, 0, &err), 0);
		assert_int_equal(driver->ops->set_limits(driver, id,
					 &(struct resources){.cpu_millis = 2000,
						 .memory_bytes = 512u << 20,
						 .pids = 200},
					 false, &err),
			0);
		must_print(link, 2, fill, "whole\n");
	}
	discard(id, link);
}

/* Another daemon takes it up: its processes run on, and the old link is dead. */
static void an_adopted_sandbox_goes_on(void **state)
{
	struct driver_spec spec;
	char id[ID_LEN + 1];
	struct driver_link link = {.fd = -1};
	struct walls walls;
	struct err err = {0};
	int old;

	(void)state;
	NEEDS(DRIVER_ADOPT);
	new_id(id);
	spec = subject_spec(id);
	old = must_start_as(&spec);
	if (subject->has_agent) {
		subject_begin(old, 1, "echo begun; exec sleep 1000");
		subject_await_output(old, 1, "begun");
	}
	subject->close(driver);
	driver = subject->open();
	assert_true(is_listed(false, id));
	assert_int_equal(driver->ops->adopt(driver, id, &link, &walls, &err), 0);
	subject_expect_end(old);
	close(old);
	last_link = link.number;
	if (subject->has_agent) {
		assert_int_equal(subject_greet(link.fd), 1);
		must_print(link.fd, 2, "echo here", "here\n");
		must_stat(id, "/etc");
	}
	discard(id, link.fd);
}

/* Prepared for one process; another that is not isolated sees the sandbox's processes. */
static void an_isolated_command_sees_itself_alone(void **state)
{
	static const char line[] = "echo $$";
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS(DRIVER_ISOLATED_EXEC);
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	assert_int_equal(driver->ops->isolated(driver, id, 7, &err), 0);
	assert_int_equal(driver->ops->isolated(driver, id, 6, &err), 0);
	for (uint32_t number = 6; number <= 7; number++) {
		subject_begin_as(link, number, AGENT_EXEC_ISOLATED, line);
		subject_await_output(link, number, "2\n");
	}
	discard(id, link);
}

/* --- network --- */

static const char listen_line[] =
	"exec /usr/bin/python3 -c '\n"
	"import socket, sys\n"
	"s = socket.create_server((sys.argv[1], 8000), family=int(sys.argv[2]))\n"
	"print(\"ready\", flush=True)\n"
	"while True:\n"
	"  c = s.accept()[0]\n"
	"  c.sendall(b\"hello \" + c.recv(100))\n"
	"  c.close()\n"
	"' %s %d";

static void must_answer(const char *id)
{
	char text[32] = "";
	struct pollfd stream = {.fd = -1, .events = POLLIN};
	struct err err = {0};

	if (driver->ops->dial(driver, id, 8000, SUBJECT_PATIENCE_MS, &stream.fd, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(send(stream.fd, "you", 3, MSG_NOSIGNAL), 3);
	assert_true(fcntl(stream.fd, F_GETFL) & O_NONBLOCK);
	for (size_t at = 0; at < strlen("hello you");) {
		ssize_t n;

		assert_int_equal(poll(&stream, 1, SUBJECT_PATIENCE_MS), 1);
		n = recv(stream.fd, text + at, sizeof(text) - 1 - at, 0);
		assert_true(n > 0);
		at += (size_t)n;
	}
	assert_string_equal(text, "hello you");
	close(stream.fd);
}

static void a_port_is_dialled_on_either_loopback(void **state)
{
	static const struct {
		const char *address;
		int family;
	} loopbacks[] = {{"127.0.0.1", AF_INET}, {"::1", AF_INET6}};
	char id[ID_LEN + 1], line[sizeof(listen_line) + 32];
	struct err err = {0};

	(void)state;
	NEEDS_AGENT;
	for (size_t i = 0; i < array_len(loopbacks); i++) {
		int link, fd = -1;

		new_id(id);
		link = must_start(id);
		assert_true(driver->ops->dial(driver, id, 8000, 100, &fd, &err) < 0);
		assert_string_equal(err.code, DRIVER_PORT_CLOSED);
		assert_int_equal(fd, -1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(
			line, sizeof(line), listen_line, loopbacks[i].address, loopbacks[i].family);
#pragma GCC diagnostic pop
		subject_begin(link, 1, line);
		subject_await_output(link, 1, "ready");
		must_answer(id);
		must_answer(id);
		discard(id, link);
	}
}

/* Starts a member; its link, attached. */
static int must_join(const char *id, const char *primary, unsigned number)
{
	struct driver_spec spec = subject_spec(id);

	spec.hostname = "member";
	spec.joins = primary;
	spec.member = number;
	spec.resources.disk_bytes = 0;
	spec.resources.pids = SUBJECT_PIDS / 2;
	return must_start_as(&spec);
}

static void a_member_shares_network_and_workspace_alone(void **state)
{
	static const char look[] = "cat /volumes/file /var/tmp/file 2>/dev/null; :";
	char id[ID_LEN + 1], member[ID_LEN + 1], line[sizeof(listen_line) + 32];
	struct driver_stats stats;
	struct err err = {0};
	int link, joined;

	(void)state;
	NEEDS(DRIVER_MEMBERS);
	NEEDS_AGENT;
	new_id(id);
	new_id(member);
	link = must_start(id);
	must_print(link, 1,
		"echo one > /workspace/outputs/file; chown 1000:1000 /workspace/outputs/file", "");
	joined = must_join(member, id, 1);
	assert_true(is_listed(false, member));
	assert_false(is_stored(member));
	must_print(joined, 1,
		"uname -n; cat /workspace/outputs/file; stat -c %u /workspace/outputs/file; "
		"ls -d /proc/[0-9]* | wc -l | grep -cx '[1-5]'; touch /volumes/file /var/tmp/file",
		"member\none\n1000\n1\n");
	assert_int_equal(driver->ops->stats(driver, member, &stats, &err), 0);
	assert_int_equal(stats.pids_limit, SUBJECT_PIDS / 2);
	/* Neither sees the files of the other's system. */
	must_print(link, 2, "ls /volumes /var/tmp/file 2>/dev/null; :", "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(line, sizeof(line), listen_line, "127.0.0.1", AF_INET);
#pragma GCC diagnostic pop
	subject_begin(joined, 2, line);
	subject_await_output(joined, 2, "ready");
	must_answer(id);
	must_answer(member);
	must_print(joined, 3, "echo one > /volumes/file; echo two > /var/tmp/file", "");
	/* It ends alone, */
	fd_close(joined);
	must_stop(member);
	must_print(link, 3, "echo here", "here\n");
	/* has its files again, */
	joined = must_join(member, id, 1);
	must_print(joined, 1, look, "one\ntwo\n");
	/* and ends with its sandbox, before a stop of that returns. */
	fd_close(link);
	must_stop(id);
	subject_expect_end(joined);
	fd_close(joined);
	must_stop(member);
	assert_false(is_listed(false, member));
	/* A delete keeps what is durable, a reset does not. */
	must_clean(id, DRIVER_PART_ALL);
	link = must_start(id);
	joined = must_join(member, id, 1);
	must_print(joined, 1, look, "one\n");
	fd_close(joined);
	fd_close(link);
	must_stop(id);
	must_stop(member);
	must_clean(id, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH);
	link = must_start(id);
	joined = must_join(member, id, 1);
	must_print(joined, 1, look, "");
	fd_close(joined);
	must_stop(member);
	discard(id, link);
}

static void a_member_joins_only_what_runs(void **state)
{
	char id[ID_LEN + 1], primary[ID_LEN + 1];
	struct driver_spec spec;
	struct driver_link link = {.fd = -1};
	struct walls walls;
	struct err err = {0};

	(void)state;
	NEEDS(DRIVER_MEMBERS);
	new_id(id);
	new_id(primary);
	spec = subject_spec(id);
	spec.joins = primary;
	spec.member = 1;
	spec.resources.disk_bytes = 0;
	assert_true(driver->ops->start(driver, &spec, NULL, &link, &walls, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_false(is_listed(false, id));
}

static void close_sockets(const struct driver_egress_sockets *sockets)
{
	fd_close(sockets->proxy_fd);
	fd_close(sockets->dns_fd);
	fd_close(sockets->dns_stream_fd);
}

/* A connection to anywhere ends at the daemon's socket, which sees where it was to go. */
static void every_connection_out_comes_to_the_daemon(void **state)
{
	struct driver_egress_sockets sockets, again;
	struct sockaddr_storage to;
	struct pollfd proxy = {.events = POLLIN};
	socklen_t len = sizeof(to);
	char id[ID_LEN + 1];
	struct driver_spec spec;
	struct err err = {0};
	int link, conn;

	(void)state;
	NEEDS(DRIVER_EGRESS_POLICY);
	NEEDS_AGENT;
	new_id(id);
	spec = subject_spec(id);
	spec.network = DRIVER_NETWORK_JUDGED;
	link = must_start_as(&spec);
	assert_int_equal(driver->ops->open_egress_sockets(driver, id, &sockets, &err), 0);
	assert_int_equal(driver->ops->open_egress_sockets(driver, id, &again, &err), 0);
	close_sockets(&again);
	if (!sockets.is_transparent)
		fail_msg("not proven: the kernel leads no connection to the socket");
	subject_begin(link, 1, "exec /bin/bash -c 'exec 3<>/dev/tcp/192.0.2.7/81; cat <&3'");
	proxy.fd = sockets.proxy_fd;
	assert_int_equal(poll(&proxy, 1, SUBJECT_PATIENCE_MS), 1);
	conn = accept4(sockets.proxy_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(conn >= 0);
	assert_int_equal(getsockname(conn, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(ntohs(to.ss_family == AF_INET ? ((struct sockaddr_in *)&to)->sin_port
						       : ((struct sockaddr_in6 *)&to)->sin6_port),
		81);
	close(conn);
	close_sockets(&sockets);
	discard(id, link);
}

/* --- the end --- */

/* The last test: nothing can be started afterwards. */
static void a_shutdown_ends_what_runs(void **state)
{
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	new_id(id);
	link = must_start(id);
	if (driver->ops->shutdown(driver, &err) < 0)
		fail_msg("%s", err.message);
	subject_expect_end(link);
	close(link);
}

static int begin(void **state)
{
	(void)state;
	subject->begin();
	driver = subject->open();
	return 0;
}

static int finish(void **state)
{
	(void)state;
	if (driver)
		subject->close(driver);
	subject->finish();
	return 0;
}

int main(int argc, char *argv[])
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_every_function_that_it_must_have),
		cmocka_unit_test(it_has_the_functions_of_its_capabilities),
		cmocka_unit_test(one_that_serves_says_so),
		cmocka_unit_test(what_does_not_run_is_not_found),
		cmocka_unit_test(ending_and_removing_nothing_is_fine),
		cmocka_unit_test(a_started_sandbox_is_listed_until_it_is_stopped),
		cmocka_unit_test(progress_is_told_until_a_start_returns),
		cmocka_unit_test(what_a_driver_cannot_mount_is_refused),
		cmocka_unit_test(a_whole_disk_has_not_failed_and_needs_no_repair),
		cmocka_unit_test(files_are_located_in_words),
		cmocka_unit_test(a_second_start_is_refused_and_the_first_runs_on),
		cmocka_unit_test(what_runs_cannot_be_cleaned),
		cmocka_unit_test(several_are_listed_in_order),
		cmocka_unit_test(channels_are_side_by_side_and_of_one_run_of_a_sandbox),
		cmocka_unit_test(stop_tells_how_one_had_ended_by_itself),
		cmocka_unit_test(a_sandbox_is_what_its_spec_says),
		cmocka_unit_test(a_workspace_outlives_a_stop_and_a_delete_but_no_purge),
		cmocka_unit_test(files_stay_the_sandbox_s_own_over_a_new_daemon),
		cmocka_unit_test(a_reset_empties_system_and_scratch),
		cmocka_unit_test(what_a_sandbox_has_written_can_be_read),
		cmocka_unit_test(a_layer_is_shown_to_a_running_sandbox),
		cmocka_unit_test(a_sandbox_starts_from_a_stack_of_layers),
		cmocka_unit_test(a_frozen_sandbox_uses_no_processor),
		cmocka_unit_test(a_disk_takes_as_much_as_its_limit),
		cmocka_unit_test(an_adopted_sandbox_goes_on),
		cmocka_unit_test(an_isolated_command_sees_itself_alone),
		cmocka_unit_test(a_port_is_dialled_on_either_loopback),
		cmocka_unit_test(a_member_shares_network_and_workspace_alone),
		cmocka_unit_test(a_member_joins_only_what_runs),
		cmocka_unit_test(every_connection_out_comes_to_the_daemon),
		cmocka_unit_test(a_shutdown_ends_what_runs),
	};

	subject = argc == 2 ? subject_find(argv[1]) : NULL;
	if (!subject) {
		fprintf(stderr, "usage: %s DRIVER\n", argv[0]);
		return 2;
	}
	log_open("test", LOG_ERROR);
	return cmocka_run_group_tests(tests, begin, finish);
}
