/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/foreign_words.h"

#include "base/mem.h"

#include <string.h>

struct word {
	const char *theirs, *ours;
};

static const struct word commands[] = {
	{"build", "template build"},
	{"connect", "shell"},
	{"destroy", "rm"},
	{"download", "cp"},
	{"image", "template"},
	{"images", "template ls"},
	{"import", "template import"},
	{"info", "inspect"},
	{"metrics", "stats"},
	{"network", "egress"},
	{"port", "ports"},
	{"pull", "template pull"},
	{"rename", "update --name"},
	{"rmi", "template rm"},
	{"ssh", "shell"},
	{"status", "ls"},
	{"terminate", "rm"},
	{"top", "stats"},
	{"unpause", "resume"},
	{"upload", "cp"},
};

#define FILES_GO "\"sandlot cp\" copies files in and out, and --project shows those of a project"

static const struct word options[] = {
	{"hostname", "--name is the host name too"},
	{"image", "-t starts from an image or template"},
	{"label-file", "-l sets one label, and may be repeated"},
	{"mount", FILES_GO},
	{"publish", "-p gives a port a preview, and \"sandlot port-forward\" makes it a port here"},
	{"v", FILES_GO},
	{"volume", FILES_GO},
};

/* Of those in the way of most who type one where a program stands. */
static const char *const images[] = {
	"alpine", "busybox", "debian", "fedora", "golang", "nginx", "postgres", "redis", "ubuntu"};

static const char *find(const struct word *words, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i].theirs, name) == 0)
			return words[i].ours;
	}
	return NULL;
}

const char *foreign_command(const char *name)
{
	return find(commands, array_len(commands), name);
}

const char *foreign_option(const char *name)
{
	return find(options, array_len(options), name);
}

bool foreign_is_image(const char *name)
{
	const char *tag = strchr(name, ':');

	for (size_t i = 0; i < array_len(images); i++) {
		if (strcmp(images[i], name) == 0)
			return true;
	}
	return tag && tag != name && tag[1] && !strchr(name, ' ');
}
