/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/link_names.h"

#include <stdlib.h>

#define SIZE_MIN 64

struct link_name {
	dev_t device;
	ino_t inode;
	char *name; /* NULL: a free place */
};

void link_names_fini(struct link_names *names)
{
	for (size_t i = 0; i < names->size; i++)
		free(names->places[i].name);
	free(names->places);
}

static struct link_name *find_place(const struct link_names *names, dev_t device, ino_t inode)
{
	size_t at = (size_t)(inode * 0x9e3779b97f4a7c15u) & (names->size - 1);

	while (names->places[at].name &&
		(names->places[at].inode != inode || names->places[at].device != device))
		at = (at + 1) & (names->size - 1);
	return &names->places[at];
}

static void grow(struct link_names *names)
{
	struct link_names bigger = {
		.count = names->count, .size = names->size ? names->size * 2 : SIZE_MIN};

	bigger.places = mem_new(bigger.size * sizeof(bigger.places[0]));
	for (size_t i = 0; i < names->size; i++) {
		struct link_name *link = &names->places[i];

		if (link->name)
			*find_place(&bigger, link->device, link->inode) = *link;
	}
	free(names->places);
	*names = bigger;
}

const char *link_names_meet(struct link_names *names, const struct stat *stat, const char *name)
{
	struct link_name *place;

	if (stat->st_nlink < 2)
		return NULL;
	if (names->count * 2 >= names->size && names->count < LINK_NAMES_MAX)
		grow(names);
	place = find_place(names, stat->st_dev, stat->st_ino);
	if (place->name)
		return place->name;
	if (names->count < LINK_NAMES_MAX) {
		*place = (struct link_name){
			.device = stat->st_dev, .inode = stat->st_ino, .name = mem_strdup(name)};
		names->count++;
	}
	return NULL;
}
