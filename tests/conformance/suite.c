/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include "base/clock.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/frame.h"
#include "wire/pack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct subject *subject;
struct driver *driver;
uint64_t last_link;

void new_id(char id[ID_LEN + 1])
{
	id_new(clock_wall_ms(), id);
}

/* Starts a sandbox that must come up; its link, attached. */
int must_start_as(const struct driver_spec *spec)
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

int must_start(const char *id)
{
	struct driver_spec spec = subject_spec(id);

	return must_start_as(&spec);
}

void must_stop(const char *id)
{
	struct err err = {0};

	if (driver->ops->stop(driver, id, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

void must_clean(const char *id, unsigned parts)
{
	struct err err = {0};

	if (driver->ops->clean(driver, id, parts, &err) < 0)
		fail_msg("%s", err.message);
}

/* Ends it, and removes all that it had. */
void discard(const char *id, int link)
{
	fd_close(link);
	must_stop(id);
	must_clean(id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE);
}

bool is_listed(bool stored, const char *id)
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
bool is_stored(const char *id)
{
	struct err err;
	int r = driver->ops->is_stored(driver, id, &err);

	assert_int_equal(r, is_listed(true, id));
	return r;
}

void assert_not_found(int r, const struct err *err)
{
	assert_true(r < 0);
	assert_int_equal(err->kind, ERR_NOT_FOUND);
}

void must_print(int link, uint32_t number, const char *line, const char *expected)
{
	int status;
	const char *output = subject_run(link, number, line, &status);

	assert_string_equal(output, expected);
	assert_int_equal(status, 0);
}

/* Has the agent look at a path, over a channel. */
void must_stat(const char *id, const char *path)
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
