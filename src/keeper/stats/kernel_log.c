/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stats/kernel_log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048
#define LINES_MAX      4096 /* in one reading: the kernel may write faster than we read */
#define NAME_MAX_BYTES 24

int kernel_log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* The number after a key, searched from `from` on. */
static int read_after(const char *from, const char *key, unsigned long *ret_number)
{
	const char *at = strstr(from, key);
	char *end;

	if (!at)
		return -EINVAL;
	at += strlen(key);
	*ret_number = strtoul(at, &end, 10);
	return end == at ? -EINVAL : 0;
}

/*
 * "3,949,4072414091,-;Memory cgroup out of memory: Killed process ...": finds the text of such a
 * record.
 */
static const char *find_message(const char *line)
{
	static const char *const heads[] = {
		"Memory cgroup out of memory: Killed process ", "Out of memory: Killed process "};
	const char *text = strchr(line, ';');

	for (size_t i = 0; text && i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (strncmp(text + 1, heads[i], strlen(heads[i])) == 0)
			return text + 1;
	}
	return NULL;
}

/*
 * "...Killed process 123 (NAME) total-vm:1kB, anon-rss:2kB, ..., UID:1001000 pgtables:...": the
 * name may hold any character, so its end is searched from behind.
 */
int kernel_log_parse(const char *line, uint32_t *ret_uid, char victim[KERNEL_LOG_VICTIM_MAX])
{
	const char *killed = find_message(line);
	const char *name = killed ? strchr(killed, '(') : NULL;
	const char *end = NULL;
	unsigned long uid, kib;
	char plain[NAME_MAX_BYTES];
	size_t len = 0;

	for (const char *at = name; at && (at = strstr(at, ") total-vm:")); at++)
		end = at;
	if (!end || read_after(end, " UID:", &uid) < 0 || read_after(end, " anon-rss:", &kib) < 0)
		return -EINVAL;
	for (name++; name < end && len < sizeof(plain) - 1; name++)
		plain[len++] = isgraph((unsigned char)*name) ? *name : '?';
	plain[len] = '\0';
	snprintf(victim, KERNEL_LOG_VICTIM_MAX, "%s (%lu MiB)", plain, kib / 1024);
	*ret_uid = (uint32_t)uid;
	return 0;
}

void kernel_log_read(int fd,
	void (*each)(void *arg, uint32_t uid, const char victim[KERNEL_LOG_VICTIM_MAX]), void *arg)
{
	char line[LINE_MAX_BYTES], victim[KERNEL_LOG_VICTIM_MAX];

	for (int i = 0; fd >= 0 && i < LINES_MAX; i++) {
		ssize_t n = read(fd, line, sizeof(line) - 1);
		uint32_t uid;

		/* EPIPE: some were overwritten before we read them; the next is the oldest left. */
		if (n < 0 && (errno == EPIPE || errno == EINTR || errno == EINVAL))
			continue;
		if (n <= 0)
			return;
		line[n] = '\0';
		if (kernel_log_parse(line, &uid, victim) == 0)
			each(arg, uid, victim);
	}
}
