/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes as many as it can get of one kind of thing, prints how many that were, and with a second argument
 * "hold" keeps them until it is killed. It stops by itself at a number that no limit should let it reach.
 */
#include "attack.h"

#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <time.h>

#define MANY	 10000000ul
#define MEBIBYTE (1ul << 20)

static void no_limit_of_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static unsigned long count_while(long (*take)(unsigned long i))
{
	unsigned long i = 0;

	while (i < MANY && take(i) >= 0)
		i++;
	return i;
}

static long take_pty(unsigned long i)
{
	(void)i;
	return open("/dev/ptmx", O_RDWR | O_NOCTTY);
}

static long take_inotify(unsigned long i)
{
	(void)i;
	return inotify_init1(0);
}

static long take_epoll(unsigned long i)
{
	(void)i;
	return epoll_create1(0);
}

static long take_timer(unsigned long i)
{
	timer_t timer;

	(void)i;
	return timer_create(CLOCK_MONOTONIC, NULL, &timer);
}

static long take_shm(unsigned long i)
{
	(void)i;
	return shmget(IPC_PRIVATE, 4096, 0600);
}

static long take_sem(unsigned long i)
{
	(void)i;
	return semget(IPC_PRIVATE, 1, 0600);
}

static long take_sems(unsigned long i)
{
	(void)i;
	return semget(IPC_PRIVATE, 1000, 0600);
}

static long take_msg(unsigned long i)
{
	(void)i;
	return msgget(IPC_PRIVATE, 0600);
}

static long take_mq(unsigned long i)
{
	char name[32];

	snprintf(name, sizeof(name), "/q%lu-%d", i, (int)getpid());
	return mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
}

static long take_mapping(unsigned long i)
{
	/* Alternating protections, so that the kernel cannot join them. */
	return mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0) == MAP_FAILED
		       ? -1
		       : 0;
}

static long take_signal(unsigned long i)
{
	(void)i;
	return sigqueue(getpid(), SIGRTMIN, (union sigval){0});
}

static long take_fork(unsigned long i)
{
	pid_t parent = getpid(), pid = fork();

	(void)i;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* It may have ended before it could be told. */
		if (getppid() == parent)
			pause();
		_exit(0);
	}
	return pid;
}

static long take_lock(unsigned long i)
{
	return mlock(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		       65536) < 0 ||
			       i > MANY
		       ? -1
		       : 0;
}

static long take_key(unsigned long i)
{
	char name[32];

	snprintf(name, sizeof(name), "k%lu", i);
	return syscall(SYS_add_key, "user", name, "x", 1, -4);
}

/* A socket, and a flow as the tracking of connections counts: a packet to another port each time. */
static long take_flow(unsigned long i)
{
	static int sender = -1;
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(1 + i % 65000)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	if (sender < 0)
		sender = socket(AF_INET, SOCK_DGRAM, 0);
	(void)!sendto(sender, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	return socket(AF_INET, SOCK_DGRAM, 0);
}

static long take_aio(unsigned long i)
{
	unsigned long context = 0;

	(void)i;
	return syscall(SYS_io_setup, 1024, &context);
}

/* Of memory, a mebibyte at a time. */

static long fill(void *at)
{
	if (at == MAP_FAILED)
		return -1;
	memset(at, 1, MEBIBYTE);
	return 0;
}

static long take_anonymous(unsigned long i)
{
	(void)i;
	return fill(
		mmap(NULL, MEBIBYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static long take_shared(unsigned long i)
{
	(void)i;
	return fill(
		mmap(NULL, MEBIBYTE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

static long take_memfd(unsigned long i)
{
	static char block[MEBIBYTE];
	int fd = memfd_create("x", 0);

	(void)i;
	return fd < 0 ? -1 : write(fd, block, sizeof(block)) - (long)sizeof(block);
}

static long write_into(const char *dir, unsigned long i, size_t size)
{
	static char block[MEBIBYTE];
	char path[96];
	long r;
	int fd;

	snprintf(path, sizeof(path), "%s/f%d-%lu", dir, (int)getpid(), i);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	if (fd < 0)
		return -1;
	r = size ? write(fd, block, size) - (long)size : 0;
	close(fd);
	return r;
}

static long take_tmpfs(unsigned long i)
{
	return write_into("/dev/shm", i, MEBIBYTE);
}

static long take_tmpfs_inode(unsigned long i)
{
	return write_into("/dev/shm", i, 0);
}

/* Memory that outlives its process. */
static long take_sysv_memory(unsigned long i)
{
	int id = shmget(IPC_PRIVATE, MEBIBYTE, 0600);
	void *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	(void)i;
	if (at == (void *)-1)
		return -1;
	memset(at, 1, MEBIBYTE);
	return shmdt(at);
}

static long take_pipe(unsigned long i)
{
	static char block[65536];
	int fds[2];

	(void)i;
	if (pipe2(fds, O_NONBLOCK) < 0)
		return -1;
	fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
	while (write(fds[1], block, sizeof(block)) > 0)
		;
	return 0;
}

static long take_unix_buffer(unsigned long i)
{
	static char block[65536];
	int fds[2];

	(void)i;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
		return -1;
	while (write(fds[1], block, sizeof(block)) > 0)
		;
	return 0;
}

static long take_tcp_buffer(unsigned long i)
{
	static int listener = -1;
	static char block[65536];
	static struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t len = sizeof(address);
	int one = 8 << 20, sock;

	(void)i;
	if (listener < 0) {
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		listener = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(listener, (struct sockaddr *)&address, len) < 0 ||
			listen(listener, 64) < 0 ||
			getsockname(listener, (struct sockaddr *)&address, &len) < 0)
			return -1;
	}
	sock = socket(AF_INET, SOCK_STREAM, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&address, len) < 0 ||
		accept(listener, NULL, NULL) < 0)
		return -1;
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &one, sizeof(one));
	while (send(sock, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	return 0;
}

static const struct {
	const char *name;
	long (*take)(unsigned long i);
} kinds[] = {
	{"ptys", take_pty},
	{"inotify", take_inotify},
	{"epoll", take_epoll},
	{"timers", take_timer},
	{"signals", take_signal},
	{"shm", take_shm},
	{"sem", take_sem},
	{"sems", take_sems},
	{"msg", take_msg},
	{"mq", take_mq},
	{"mappings", take_mapping},
	{"forks", take_fork},
	{"locked", take_lock},
	{"keys", take_key},
	{"flows", take_flow},
	{"aio", take_aio},
	{"anonymous", take_anonymous},
	{"shared", take_shared},
	{"memfd", take_memfd},
	{"tmpfs", take_tmpfs},
	{"tmpfs-inodes", take_tmpfs_inode},
	{"sysv-memory", take_sysv_memory},
	{"pipes", take_pipe},
	{"unix-buffers", take_unix_buffer},
	{"tcp-buffers", take_tcp_buffer},
};

int main(int argc, char *argv[])
{
	sigset_t set;

	no_limit_of_descriptors();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; argc > 1 && i < COUNT(kinds); i++) {
		if (strcmp(kinds[i].name, argv[1]) != 0)
			continue;
		tell_count(kinds[i].name, count_while(kinds[i].take));
		if (argc > 2)
			pause();
		return 0;
	}
	return 2;
}
