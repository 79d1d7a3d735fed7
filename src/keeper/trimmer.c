/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/trimmer.h"

#include "base/fd.h"
#include "keeper/directory.h"
#include "keeper/image.h"
#include "keeper/shelf.h"

#include <unistd.h>

#define EVERY_S 3

static void trim(const struct trimmer *trimmer, const char *id)
{
	auto_fd int root = shelf_open_mount(trimmer->mounted_fd, id);
	auto_fd int home = -1;
	struct err ignored;

	if (root < 0 || disk_image_open_home(root, &home, &ignored) < 0)
		return;
	image_go_direct(home);
	disk_image_give_back(trimmer->storage, id, home);
}

static void run_trimmer(const void *arg, int pokes)
{
	const struct trimmer *trimmer = arg;

	(void)pokes;
	for (;;) {
		DIR *list = directory_list(trimmer->mounted_fd);
		const struct dirent *entry;

		while ((entry = directory_next(list)))
			trim(trimmer, entry->d_name);
		directory_end(list);
		sleep(EVERY_S);
	}
}

void trimmer_start(
	struct trimmer *trimmer, const struct storage *storage, int mounted_fd, struct crew *crew)
{
	*trimmer = (struct trimmer){.storage = storage,
		.mounted_fd = mounted_fd,
		.member = {.name = "trimmer", .work = run_trimmer, .arg = trimmer}};
	crew_join(crew, &trimmer->member);
}
