/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/spares.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/directory.h"
#include "keeper/shelf.h"
#include "keeper/trash.h"

#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define SPARES	 16
#define QUIET_MS 100 /* without a create, before they are made up to their number */

static unsigned count(const struct spares *spares)
{
	DIR *list = directory_list(spares->ready_fd);
	unsigned found = 0;

	while (directory_next(list))
		found++;
	directory_end(list);
	return found;
}

bool spares_are_enough(const struct spares *spares)
{
	return count(spares) >= SPARES;
}

bool spares_find(const struct spares *spares, char name[static DISK_IMAGE_NAME_MAX])
{
	DIR *list = directory_list(spares->ready_fd);
	const struct dirent *entry;
	bool is_found = false;

	while (!is_found && (entry = directory_next(list))) {
		auto_fd int mount = shelf_open_mount(spares->ready_fd, entry->d_name);

		is_found = mount >= 0;
		snprintf(name, DISK_IMAGE_NAME_MAX, "%s", entry->d_name);
	}
	directory_end(list);
	return is_found;
}

/* Counted and placed under a lock: several of our children make them. */
int spares_put(const struct spares *spares, int mount_fd, const char *name, struct err *err)
{
	auto_fd int door = directory_open(spares->ready_fd, ".");

	if (door < 0 || flock(door, LOCK_EX) < 0)
		return err_sys(err, "lock the spare disks");
	if (spares_are_enough(spares))
		return err_set(err, ERR_CONFLICT, "there are enough spare disks");
	return shelf_put_mount(spares->ready_fd, name, mount_fd, err);
}

/* --- the stocker --- */

/* Named first and mounted then: who finds the mount finds the name. */
static int add(const struct spares *spares, const char *name, struct err *err)
{
	int spares_fd = spares->storage->spares_fd, r;
	auto_fd int file = -1, mount = -1;

	if ((r = disk_image_make(spares->storage, &file, &mount, err)) < 0 ||
		(r = disk_image_link(file, spares_fd, name, err)) < 0)
		return r;
	r = spares_put(spares, mount, name, err);
	if (r < 0)
		unlinkat(spares_fd, name, 0);
	return r;
}

/* Waits until it is needed: while there are enough, whoever is being built is not disturbed. */
static bool await_need(const struct spares *spares, int pokes)
{
	struct pollfd poked = {.fd = pokes, .events = POLLIN};
	char bytes[64];
	bool goes_on;

	do
		goes_on = read(pokes, bytes, sizeof(bytes)) > 0;
	while (goes_on && count(spares) >= SPARES / 2 && poll(&poked, 1, QUIET_MS) > 0);
	return goes_on;
}

static void run_stocker(const void *arg, int pokes)
{
	const struct spares *spares = arg;
	char name[DISK_IMAGE_NAME_MAX];
	unsigned made = 0;
	struct err err;

	while (await_need(spares, pokes)) {
		while (!spares_are_enough(spares)) {
			snprintf(name, sizeof(name), "%d-%u", getpid(), ++made);
			if (add(spares, name, &err) == 0)
				continue;
			if (err.kind != ERR_CONFLICT)
				log_warning("no spare disk: %s", err.message);
			break;
		}
	}
}

void spares_fill_up(const struct spares *spares)
{
	crew_poke(&spares->stocker);
}

void spares_start(struct spares *spares)
{
	crew_join(spares->crew, &spares->stocker);
}

/* --- at the start of the keeper --- */

/* Those of a keeper before us, which nobody has mounted any more. */
static void remove_old(const struct storage *storage)
{
	DIR *list = directory_list(storage->spares_fd);
	const struct dirent *entry;
	struct err err;

	while ((entry = directory_next(list))) {
		if (trash_discard(storage, storage->spares_fd, entry->d_name, &err) < 0)
			log_warning("an old spare disk stays: %s", err.message);
	}
	directory_end(list);
}

int spares_open(struct spares *spares, const struct storage *storage, int shelf_fd,
	struct crew *crew, struct err *err)
{
	int r;

	*spares = (struct spares){.storage = storage,
		.crew = crew,
		.stocker = {.name = "stocker", .work = run_stocker, .arg = spares}};
	r = shelf_open_section(shelf_fd, "spares", &spares->ready_fd, err);
	if (r < 0)
		return r;
	crew_lend(crew, spares->ready_fd);
	remove_old(storage);
	return 0;
}
