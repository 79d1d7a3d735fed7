/* SPDX-License-Identifier: Apache-2.0 */
/* The native driver (src/driver/native) and a keeper that is played. */
#include "driver/native/keeper_client.h"
#include "driver/native/native.h"

#include "base/fd.h"
#include "deadline.h"
#include "wire/fdpass.h"
#include "wire/keeper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CONNECTIONS_MAX 16
#define ANSWERS_TO_OPEN 4 /* two to hello, one to what is made ahead, one to the watch */

struct fake_keeper {
	char dir[64];
	struct sockaddr_un address;
	struct pollfd fds[2 + CONNECTIONS_MAX]; /* the listener, wake_fd, connections */
	nfds_t count;
	int wake_fd;
	atomic_int left;       /* how many requests it answers before it ends */
	atomic_bool is_silent; /* it answers nothing, until it is woken */
	int link[2],
		control[2]; /* both ends of what it gives to who asks for a link; 0: it gives none */
	int egress[KEEPER_EGRESS_SOCKET_COUNT]; /* what it gives with the link; 0: nothing */
	atomic_int asked_for_egress;
	struct err why; /* its answer, if it is one */
	pthread_t thread;
};

static bool answer(struct fake_keeper *keeper, int conn)
{
	struct keeper_answer answer = {.version = KEEPER_VERSION,
		.wait_status = -1,
		.result = keeper->why.kind ? -EIO : 0,
		.err = keeper->why};
	int fds[] = {keeper->link[0], keeper->control[0], keeper->egress[0], keeper->egress[1],
		keeper->egress[2]};
	size_t link_fds = keeper->egress[0] ? array_len(fds) : KEEPER_LINK_FD_COUNT;
	struct keeper_request request;

	if (recv(conn, &request, sizeof(request), 0) <= 0)
		return false;
	answer.is_transparent = keeper->egress[0] > 0;
	if (request.kind == KEEPER_EGRESS_SOCKETS) {
		atomic_fetch_add(&keeper->asked_for_egress, 1);
		return fdpass_send(conn, &answer, sizeof(answer), keeper->egress,
			       array_len(keeper->egress), 0) > 0;
	}
	return fdpass_send(conn, &answer, sizeof(answer), fds,
		       request.kind == KEEPER_ADOPT ? link_fds : 0, 0) > 0;
}

/* As the kernel does it for a process that ends. */
static void *serve(void *arg)
{
	struct fake_keeper *keeper = arg;
	uint64_t ignored;

	while (atomic_load(&keeper->left) > 0) {
		bool is_silent = atomic_load(&keeper->is_silent);

		poll(keeper->fds, is_silent ? 2 : keeper->count, -1);
		if (keeper->fds[1].revents)
			(void)!read(keeper->wake_fd, &ignored, sizeof(ignored));
		if (atomic_load(&keeper->is_silent))
			continue;
		for (nfds_t i = 2; i < keeper->count && atomic_load(&keeper->left) > 0; i++) {
			if (!keeper->fds[i].revents)
				continue;
			if (answer(keeper, keeper->fds[i].fd))
				atomic_fetch_sub(&keeper->left, 1);
			else
				fd_close(take_fd(&keeper->fds[i].fd));
		}
		if (keeper->fds[0].revents && keeper->count < array_len(keeper->fds))
			keeper->fds[keeper->count++] = (struct pollfd){
				.fd = accept(keeper->fds[0].fd, NULL, NULL), .events = POLLIN};
	}
	for (nfds_t i = 0; i < keeper->count; i++) {
		if (i != 1)
			fd_close(take_fd(&keeper->fds[i].fd));
	}
	return NULL;
}

static void start(struct fake_keeper *keeper, int answers)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	keeper->address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(keeper->dir, sizeof(keeper->dir), "/tmp/sandlot-native-XXXXXX");
	assert_non_null(mkdtemp(keeper->dir));
	snprintf(keeper->address.sun_path, sizeof(keeper->address.sun_path), "%.60s/run",
		keeper->dir);
	assert_int_equal(mkdir(keeper->address.sun_path, 0700), 0);
	snprintf(keeper->address.sun_path, sizeof(keeper->address.sun_path),
		"%.60s/run/keeper.sock", keeper->dir);
	assert_int_equal(
		bind(listener, (struct sockaddr *)&keeper->address, sizeof(keeper->address)), 0);
	assert_int_equal(listen(listener, 8), 0);
	keeper->wake_fd = eventfd(0, EFD_CLOEXEC);
	keeper->fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	keeper->fds[1] = (struct pollfd){.fd = keeper->wake_fd, .events = POLLIN};
	keeper->count = 2;
	atomic_store(&keeper->left, answers);
	assert_int_equal(pthread_create(&keeper->thread, NULL, serve, keeper), 0);
}

static void wake(struct fake_keeper *keeper)
{
	(void)!write(keeper->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

static void finish(struct fake_keeper *keeper)
{
	atomic_store(&keeper->is_silent, false);
	atomic_store(&keeper->left, 0);
	wake(keeper);
	pthread_join(keeper->thread, NULL);
	close(keeper->wake_fd);
	unlink(keeper->address.sun_path);
	*strrchr(keeper->address.sun_path, '/') = '\0';
	rmdir(keeper->address.sun_path);
	rmdir(keeper->dir);
}

static int open_native(const char *data_dir, struct driver **ret_driver, struct err *err)
{
	const struct driver_config config = {.data_dir = data_dir, .limits_disk = true};

	return native_open(&config, ret_driver, err);
}

static void assert_gone(struct driver *driver)
{
	struct pollfd gone = {.fd = driver_gone_fd(driver), .events = POLLIN};
	struct err err;

	assert_int_equal(poll(&gone, 1, DEADLINE_MS), 1);
	assert_true(driver_check(driver, &err) < 0);
	assert_string_equal(err.code, "keeper_unavailable");
	assert_true(err.retry_after_s > 0);
}

static void without_a_keeper_there_is_none(void **state)
{
	struct driver *driver;
	struct err err;

	(void)state;
	assert_int_equal(keeper_client_probe("/nonexistent/keeper.sock"), -ENOENT);
	assert_true(open_native("/nonexistent", &driver, &err) < 0);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
}

/* Before its first answer, after it, and so on: it is never taken for one that lives. */
static void a_keeper_that_ends_at_any_moment_is_noticed(void **state)
{
	(void)state;
	for (int answers = 0; answers < 6; answers++) {
		struct fake_keeper keeper = {0};
		char ids[DRIVER_PAGE][ID_LEN + 1];
		struct driver *driver = NULL;
		struct err err;

		start(&keeper, answers);
		if (open_native(keeper.dir, &driver, &err) < 0) {
			assert_int_equal(err.kind, ERR_UNAVAILABLE);
			assert_true(answers < ANSWERS_TO_OPEN);
			finish(&keeper);
			continue;
		}
		while (driver->ops->list(driver, false, "", ids, &err) == 0)
			;
		assert_int_equal(err.kind, ERR_UNAVAILABLE);
		assert_gone(driver);
		driver->ops->close(driver);
		finish(&keeper);
	}
}

static void one_that_cannot_start_says_why(void **state)
{
	struct fake_keeper keeper = {0};
	struct driver *driver;
	struct err err;

	(void)state;
	err_explain(&keeper.why, ERR_INTERNAL, "no_cgroups", "mount them", "there are no cgroups");
	start(&keeper, 1);
	assert_true(open_native(keeper.dir, &driver, &err) < 0);
	assert_string_equal(err.code, DRIVER_CANNOT_START);
	assert_string_equal(err.message, "the keeper cannot start: there are no cgroups");
	assert_string_equal(err.remedy, "mount them");
	finish(&keeper);
}

static void one_that_hangs_fails_calls_until_it_goes_on(void **state)
{
	struct fake_keeper keeper = {0};
	char ids[DRIVER_PAGE][ID_LEN + 1];
	struct driver *driver = NULL;
	struct pollfd gone;
	struct err err = {0};
	int r = -1;

	(void)state;
	start(&keeper, 1000000);
	assert_int_equal(open_native(keeper.dir, &driver, &err), 0);
	assert_int_equal(driver->ops->list(driver, false, "", ids, &err), 0);
	atomic_store(&keeper.is_silent, true);
	wake(&keeper);
	/* This one waits when it begins to hang, or may still be answered; the last one does not even begin. */
	while (driver->ops->list(driver, false, "", ids, &err) == 0)
		;
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_string_equal(err.message, "the keeper runs but does not answer");
	assert_true(err.retry_after_s > 0);
	assert_true(driver_check(driver, &err) < 0);
	assert_true(driver->ops->list(driver, false, "", ids, &err) < 0);
	gone = (struct pollfd){.fd = driver_gone_fd(driver), .events = POLLIN};
	assert_int_equal(poll(&gone, 1, 0), 0);
	atomic_store(&keeper.is_silent, false);
	wake(&keeper);
	for (int i = 0; i < DEADLINE_MS / 10 && r < 0; i++) {
		r = driver_check(driver, &err);
		usleep(r < 0 ? 10000 : 0);
	}
	assert_int_equal(r, 0);
	assert_int_equal(driver->ops->list(driver, false, "", ids, &err), 0);
	driver->ops->close(driver);
	finish(&keeper);
}

/* Puts as many descriptors on their way to nobody as the kernel lets a user have there. */
static int fill(int pair[2])
{
	struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
	int sent = 0;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	while (sent < 1000 && fdpass_send(pair[0], "", 1, &pair[1], 1, MSG_DONTWAIT) > 0)
		sent++;
	return sent;
}

/* In a process without rights, which is bound by what its user has on the way. */
static void open_channels(void)
{
	static const char id[] = "01arz3ndektsv4rrffq69g5fav";
	struct fake_keeper keeper = {0};
	struct driver *driver = NULL;
	struct driver_link link;
	struct walls walls;
	struct err err = {0};
	int pair[2], fd = -1, r;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, keeper.link), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, keeper.control), 0);
	start(&keeper, 1000000);
	assert_int_equal(open_native(keeper.dir, &driver, &err), 0);
	assert_int_equal(driver->ops->adopt(driver, id, &link, &walls, &err), 0);
	assert_in_range(fill(pair), 1, 999);
	r = driver->ops->open_channel(driver, id, link.number, "", 1, &fd, &err);
	assert_true(r < 0);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(send(link.fd, "x", 1, 0), 1);
	assert_int_equal(recv(keeper.link[1], &byte, 1, 0), 1);
	close(pair[0]);
	close(pair[1]);
	/* The kernel looks for what nobody can receive any more a little later. */
	for (int i = 0; i < DEADLINE_MS / 10 && r < 0; i++) {
		r = driver->ops->open_channel(driver, id, link.number, "", 1, &fd, &err);
		usleep(r < 0 ? 10000 : 0);
	}
	assert_int_equal(r, 0);
	driver->ops->close(driver);
	finish(&keeper);
}

static void too_many_descriptors_on_the_way_end_no_link(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		open_channels();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void close_egress(const struct driver_egress_sockets *sockets)
{
	close(sockets->proxy_fd);
	close(sockets->dns_fd);
	close(sockets->dns_stream_fd);
}

/* A first command waits for no second request; whoever asks again gets them from the keeper. */
static void egress_sockets_come_with_the_link(void **state)
{
	static const char id[] = "01234567890123456789abcdef";
	struct fake_keeper keeper = {0};
	struct driver_egress_sockets sockets;
	struct driver_link link;
	struct driver *driver;
	struct walls walls;
	struct stat given, taken;
	struct err err;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, keeper.link), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper.control), 0);
	for (size_t i = 0; i < array_len(keeper.egress); i++)
		keeper.egress[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	start(&keeper, INT_MAX);
	assert_int_equal(open_native(keeper.dir, &driver, &err), 0);
	assert_int_equal(driver->ops->adopt(driver, id, &link, &walls, &err), 0);
	assert_int_equal(driver->ops->open_egress_sockets(driver, id, &sockets, &err), 0);
	assert_int_equal(atomic_load(&keeper.asked_for_egress), 0);
	assert_true(sockets.is_transparent);
	assert_int_equal(fstat(keeper.egress[KEEPER_EGRESS_PROXY], &given), 0);
	assert_int_equal(fstat(sockets.proxy_fd, &taken), 0);
	assert_int_equal(given.st_ino, taken.st_ino);
	close_egress(&sockets);
	assert_int_equal(driver->ops->open_egress_sockets(driver, id, &sockets, &err), 0);
	assert_int_equal(atomic_load(&keeper.asked_for_egress), 1);
	close_egress(&sockets);
	close(link.fd);
	driver->ops->close(driver);
	finish(&keeper);
	for (size_t i = 0; i < array_len(keeper.egress); i++)
		close(keeper.egress[i]);
	for (size_t i = 0; i < 2; i++) {
		close(keeper.link[i]);
		close(keeper.control[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_keeper_there_is_none),
		cmocka_unit_test(a_keeper_that_ends_at_any_moment_is_noticed),
		cmocka_unit_test(one_that_cannot_start_says_why),
		cmocka_unit_test(one_that_hangs_fails_calls_until_it_goes_on),
		cmocka_unit_test(too_many_descriptors_on_the_way_end_no_link),
		cmocka_unit_test(egress_sockets_come_with_the_link),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
