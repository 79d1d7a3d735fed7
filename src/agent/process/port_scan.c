/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/port_scan.h"

#include "agent/machine/dirents.h"
#include "agent/machine/pid_walk.h"
#include "base/fd.h"
#include "wire/egress.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_LEN	(32u * 1024)
#define LINE_MAX_LEN	512
#define STATE_LISTEN	0x0a
#define DESCRIPTORS_MAX 100000 /* looked at; the rest of the sockets then have no known process */

struct scan {
	struct scanned_port all[AGENT_PORTS_MAX];
	size_t count;
	bool is_cut; /* there are more */
};

/* --- sockets --- */

/* Parses a number of so many digits at most, followed by `end`; returns what follows, or NULL. */
static const char *take_number(
	const char *text, int base, size_t digits, char end, unsigned long long *ret_number)
{
	char *behind;

	if (!text || !isxdigit((unsigned char)text[0]))
		return NULL;
	*ret_number = strtoull(text, &behind, base);
	return *behind == end && (size_t)(behind - text) <= digits ? behind + 1 : NULL;
}

/* Groups of eight digits, each a 32-bit word of the address as this machine would print it. */
static const char *take_address(const char *text, uint8_t address[16])
{
	static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	size_t digits = text ? strspn(text, "0123456789ABCDEF") : 0;
	uint8_t *to = address + 16 - digits / 2;

	if ((digits != 8 && digits != 32) || text[digits] != ':')
		return NULL;
	memcpy(address, v4_prefix, sizeof(v4_prefix));
	for (size_t at = 0; at < digits; at += 8) {
		char group[9] = "";
		uint32_t word;

		memcpy(group, text + at, 8);
		word = (uint32_t)strtoul(group, NULL, 16);
		memcpy(to + at / 2, &word, sizeof(word));
	}
	return text + digits + 1;
}

static const char *skip_words(const char *text, size_t count)
{
	for (; text && count > 0; count--) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	return text;
}

bool port_scan_parse(const char *line, struct scanned_port *ret_port)
{
	struct scanned_port port = {0};
	unsigned long long number = 0, state = 0, inode = 0;
	const char *at = skip_words(line + strspn(line, " "), 1); /* behind "12:" */

	at = take_address(at, port.address);
	at = take_number(at, 16, 4, ' ', &number);
	at = skip_words(at, 1); /* the other side's */
	at = take_number(at, 16, 2, ' ', &state);
	at = skip_words(at, 5); /* queues, timer, retransmits, uid, timeout */
	at = take_number(at, 10, 20, ' ', &inode);
	if (!at || state != STATE_LISTEN || number == 0)
		return false;
	port.number = (uint16_t)number;
	port.inode = inode;
	*ret_port = port;
	return true;
}

static bool is_same_place(const struct scanned_port *a, const struct scanned_port *b)
{
	return a->number == b->number && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* Several sockets may share an address (SO_REUSEPORT): the first stands for all. */
static void add(struct scan *list, const struct scanned_port *port)
{
	for (size_t i = 0; i < list->count; i++) {
		if (is_same_place(&list->all[i], port))
			return;
	}
	if (list->count < AGENT_PORTS_MAX)
		list->all[list->count++] = *port;
	else
		list->is_cut = true;
}

/* Parses the whole lines of text; returns how many bytes they are. */
static size_t take_lines(struct scan *list, char *text)
{
	char *line = text, *end;
	struct scanned_port port;

	for (; !list->is_cut && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (port_scan_parse(line, &port))
			add(list, &port);
	}
	return (size_t)(line - text);
}

static void read_sockets(struct scan *list, const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_free char *text = mem_new(LINE_MAX_LEN + CHUNK_LEN + 1);
	size_t kept = 0;
	ssize_t n;

	while (!list->is_cut && kept < LINE_MAX_LEN && (n = read(fd, text + kept, CHUNK_LEN)) > 0) {
		size_t len = kept + (size_t)n, taken;

		text[len] = '\0';
		taken = take_lines(list, text);
		kept = len - taken;
		memmove(text, text + taken, kept);
	}
}

static int compare_places(const void *a, const void *b)
{
	const struct scanned_port *left = a, *right = b;

	if (left->number != right->number)
		return left->number < right->number ? -1 : 1;
	return memcmp(left->address, right->address, sizeof(left->address));
}

static void mix(uint64_t *digest, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		*digest = (*digest ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
}

/* Never 0. A sandbox that makes two lists with one digest only deceives clients of this sandbox. */
static uint64_t digest_of(const struct scan *list)
{
	uint64_t digest = 0xcbf29ce484222325u;

	for (size_t i = 0; i < list->count; i++) {
		const struct scanned_port *port = &list->all[i];

		mix(&digest, port->address, sizeof(port->address));
		mix(&digest, &port->number, sizeof(port->number));
		mix(&digest, &port->inode, sizeof(port->inode));
	}
	mix(&digest, &list->is_cut, sizeof(list->is_cut));
	return digest ? digest : 1;
}

/* --- which process holds them --- */

struct search {
	struct scan *list;
	const struct process_table *processes;
	size_t missing; /* sockets whose process was not found */
	size_t descriptors_left;
};

static void read_name(int process_fd, char name[AGENT_NAME_MAX + 1])
{
	char text[64];
	ssize_t len = fd_read_file(process_fd, "comm", text, sizeof(text));

	/* With a newline at its end; there may be others in it. */
	len = len > 0 ? len - 1 : 0;
	len = len < AGENT_NAME_MAX ? len : AGENT_NAME_MAX;
	memcpy(name, text, (size_t)len);
	name[len] = '\0';
}

static void note_holder(struct search *search, int process_fd, pid_t pid, uint64_t inode)
{
	for (size_t i = 0; i < search->list->count; i++) {
		struct scanned_port *port = &search->list->all[i];

		if (port->inode != inode || port->pid)
			continue;
		port->pid = pid;
		read_name(process_fd, port->name);
		search->missing--;
	}
}

static void look_at_descriptor(
	struct search *search, int process_fd, pid_t pid, int dir, const char *name)
{
	static const char prefix[] = "socket:[";
	char target[64] = "";
	unsigned long long inode;

	if (readlinkat(dir, name, target, sizeof(target) - 1) > 0 &&
		strncmp(target, prefix, strlen(prefix)) == 0 &&
		take_number(target + strlen(prefix), 10, 20, ']', &inode))
		note_holder(search, process_fd, pid, inode);
}

static void look_at_descriptors(struct search *search, int process_fd, pid_t pid)
{
	auto_fd int dir = openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *entries = mem_new(DIRENTS_LEN);
	struct dirents dirents;
	const char *name;

	if (dir < 0)
		return;
	dirents_begin(&dirents, dir, entries);
	while (search->missing > 0 && search->descriptors_left > 0 &&
		dirents_next(&dirents, &name) > 0) {
		search->descriptors_left--;
		look_at_descriptor(search, process_fd, pid, dir, name);
	}
}

/* Changing these may make a process dumpable (fs.suid_dumpable), which this one must not be. */
static void see_files_as(uid_t uid, gid_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	prctl(PR_SET_DUMPABLE, 0);
}

/*
 * Root of a sandbox has no power over processes of other users; only those users may look at their
 * descriptors.
 */
static void look_at_process(struct search *search, const struct pid_walk *walk)
{
	auto_fd int process_fd =
		openat(walk->proc_fd, walk->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat stat;

	if (process_fd < 0 || fstat(process_fd, &stat) < 0)
		return;
	see_files_as(stat.st_uid, stat.st_gid);
	look_at_descriptors(search, process_fd, walk->pid);
	see_files_as(geteuid(), getegid());
}

static void find_holders(struct search *search)
{
	struct pid_walk walk;

	pid_walk_open(&walk);
	while (search->missing > 0 && search->descriptors_left > 0 && pid_walk_next(&walk))
		look_at_process(search, &walk);
	pid_walk_close(&walk);
	for (size_t i = 0; i < search->list->count; i++) {
		struct scanned_port *port = &search->list->all[i];

		if (port->pid)
			port->process = process_of_process(search->processes, port->pid);
	}
}

/* --- answering --- */

/*
 * The daemon's own sockets in this namespace, through which the sandbox reaches the network: no
 * process here holds them.
 */
static bool is_exit(const struct scanned_port *port)
{
	return !port->pid && (port->number == EGRESS_PROXY_PORT || port->number == EGRESS_DNS_PORT);
}

/* Who asks is a child of the agent, whose descriptors it may not be able to see. */
static bool is_own(const struct scanned_port *port, uint16_t own_port)
{
	return own_port && port->number == own_port && (!port->pid || port->pid == getppid());
}

static void drop_ours(struct scan *list, uint16_t own_port)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (!is_exit(&list->all[i]) && !is_own(&list->all[i], own_port))
			list->all[kept++] = list->all[i];
	}
	list->count = kept;
}

static void put(struct helper_io *helper_io, const struct scanned_port *port)
{
	helper_io_put(helper_io, port->address, sizeof(port->address));
	helper_io_put_u32(helper_io, port->number);
	helper_io_put_u32(helper_io, (uint32_t)port->pid);
	helper_io_put_u32(helper_io, port->process);
	helper_io_put_str(helper_io, port->name);
}

void port_scan_serve(struct helper_io *helper_io, const void *arg)
{
	const struct port_scan_query *query = arg;
	auto_free struct scan *list = mem_new(sizeof(*list));
	uint64_t digest;

	read_sockets(list, "/proc/net/tcp");
	read_sockets(list, "/proc/net/tcp6");
	qsort(list->all, list->count, sizeof(list->all[0]), compare_places);
	digest = digest_of(list);
	helper_io_put_u64(helper_io, digest);
	helper_io_put_u8(helper_io, digest != query->known);
	if (digest == query->known)
		return;
	find_holders(&(struct search){.list = list,
		.processes = query->processes,
		.missing = list->count,
		.descriptors_left = DESCRIPTORS_MAX});
	drop_ours(list, query->own_port);
	helper_io_put_u8(helper_io, list->is_cut);
	helper_io_put_u32(helper_io, (uint32_t)list->count);
	for (size_t i = 0; i < list->count; i++)
		put(helper_io, &list->all[i]);
}
