/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/unfinished.h"

#include "base/log.h"
#include "core/engine/sandbox_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const words[] = {
	[UNFINISHED_CREATE] = "create",
	[UNFINISHED_RECREATE] = "recreate",
	[UNFINISHED_DELETE] = "delete",
	[UNFINISHED_PURGE] = "purge",
};

/*
 * A mark is a symbolic link to a word. Each is one more name of a link that stays, made when it is
 * missing: a name costs a fraction of what an inode does, which ext4 has to look for when many were
 * deleted just now. A file system without hard links gets a link of its own.
 */
static int add_name(int dirfd, const char *id, const char *word)
{
	char lasting[16];

	snprintf(lasting, sizeof(lasting), ".%s", word);
	if (linkat(dirfd, lasting, dirfd, id, 0) == 0)
		return 0;
	if (errno == ENOENT && symlinkat(word, dirfd, lasting) == 0 &&
		linkat(dirfd, lasting, dirfd, id, 0) == 0)
		return 0;
	return symlinkat(word, dirfd, id);
}

int unfinished_mark(struct engine *engine, const char *id, enum unfinished what, struct err *err)
{
	int dirfd = engine->config.unfinished_fd, r = add_name(dirfd, id, words[what]);

	if (r < 0 && errno == EEXIST) {
		unfinished_clear(engine, id);
		r = add_name(dirfd, id, words[what]);
	}
	if (r < 0)
		return err_sys(err, "mark sandbox %s as unfinished", id);
	return 0;
}

void unfinished_clear(struct engine *engine, const char *id)
{
	if (unlinkat(engine->config.unfinished_fd, id, 0) < 0 && errno != ENOENT)
		log_error("the mark that sandbox %s is unfinished stays: %s", id, strerror(errno));
}

int unfinished_read(
	struct engine *engine, const char *id, enum unfinished *ret_what, struct err *err)
{
	char word[16];
	ssize_t n = readlinkat(engine->config.unfinished_fd, id, word, sizeof(word) - 1);

	*ret_what = UNFINISHED_NOTHING;
	if (n < 0)
		return errno == ENOENT ? 0 : err_sys(err, "read the mark of sandbox %s", id);
	word[n] = '\0';
	for (size_t i = UNFINISHED_CREATE; i < array_len(words); i++) {
		if (strcmp(words[i], word) == 0)
			*ret_what = (enum unfinished)i;
	}
	return 0;
}

int unfinished_each(struct engine *engine,
	int (*each)(struct engine *engine, const char *id, enum unfinished what, struct err *err),
	struct err *err)
{
	int own = openat(engine->config.unfinished_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;
	int r = 0;

	if (!dir)
		return err_sys(err, "list unfinished sandboxes");
	while (r == 0 && (entry = readdir(dir))) {
		char id[ID_LEN + 1];
		enum unfinished what;

		if (!id_is_valid(entry->d_name))
			continue;
		snprintf(id, sizeof(id), "%s", entry->d_name);
		r = unfinished_read(engine, id, &what, err);
		if (r == 0)
			r = each(engine, id, what, err);
	}
	closedir(dir);
	return r;
}
