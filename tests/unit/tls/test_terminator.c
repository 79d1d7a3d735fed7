/* SPDX-License-Identifier: Apache-2.0 */
/* A client that speaks TLS on one side of the terminator, and the plain side of it on the other. */
#include "tls/terminator.h"

#include "base/fd.h"
#include "deadline.h"
#include "fd_count.h"
#include "tls_fixture.h"

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LINGERING  1500
#define CROWD_MAX  1024 /* of the one thread, as the tests set it; half of it is for one source */
#define SOURCE_MAX 512

struct stage {
	struct tls_files files;
	struct certificate *certificate;
	struct terminator *terminator;
	SSL_CTX *context;
};

/* Both ends of a TCP connection; the near one is what would have been accepted. */
static void connect_pair(int *ret_near, int *ret_far)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	*ret_far = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(*ret_far, (struct sockaddr *)&address, len), 0);
	*ret_near = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(*ret_near >= 0);
	close(listener);
	assert_int_equal(fd_set_timeout(*ret_far, DEADLINE_MS), 0);
}

struct wrapped {
	int far; /* the client's socket */
	SSL *ssl;
	int plain; /* what serves it */
	struct tls_peer *tls_peer;
};

static void wrap_of(struct stage *stage, uint64_t source, struct wrapped *ret)
{
	int near;

	connect_pair(&near, &ret->far);
	assert_int_equal(
		terminator_wrap(stage->terminator, near, source, &ret->plain, &ret->tls_peer), 0);
	ret->ssl = SSL_new(stage->context);
	SSL_set_fd(ret->ssl, ret->far);
}

static void wrap(struct stage *stage, struct wrapped *ret)
{
	wrap_of(stage, 1, ret);
}

static void open_client(struct stage *stage, struct wrapped *ret)
{
	wrap(stage, ret);
	assert_int_equal(SSL_connect(ret->ssl), 1);
}

static void close_client(struct wrapped *client)
{
	SSL_free(client->ssl);
	close(client->far);
	close(client->plain);
	tls_peer_unref(client->tls_peer);
}

static int setup(void **state)
{
	struct stage *stage = mem_new(sizeof(*stage));
	struct rlimit limit;
	struct err err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	signal(SIGPIPE, SIG_IGN);
	tls_files_make(&stage->files, "test");
	assert_int_equal(
		certificate_open(stage->files.chain, stage->files.key, &stage->certificate, &err),
		0);
	assert_int_equal(
		terminator_open(stage->certificate, 1, CROWD_MAX, &stage->terminator, &err), 0);
	stage->context = SSL_CTX_new(TLS_client_method());
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	terminator_close(stage->terminator);
	certificate_close(stage->certificate);
	SSL_CTX_free(stage->context);
	tls_files_remove(&stage->files);
	free(stage);
	return 0;
}

/* Reads from the plain side, which does not block; 0 at its end. */
static ssize_t receive(int plain, void *data, size_t size)
{
	struct pollfd in = {.fd = plain, .events = POLLIN};

	assert_int_equal(poll(&in, 1, DEADLINE_MS), 1);
	return recv(plain, data, size, 0);
}

static void bytes_pass_both_ways_and_are_counted(void **state)
{
	struct wrapped client;
	char text[16];

	open_client(*state, &client);
	assert_int_equal(SSL_write(client.ssl, "hello", 5), 5);
	assert_int_equal(receive(client.plain, text, sizeof(text)), 5);
	assert_memory_equal(text, "hello", 5);
	assert_int_equal(atomic_load(&client.tls_peer->bytes), 5);
	assert_int_equal(send(client.plain, "world!", 6, 0), 6);
	assert_int_equal(SSL_read(client.ssl, text, sizeof(text)), 6);
	assert_memory_equal(text, "world!", 6);
	close_client(&client);
}

/* Asks for a server, resuming a session if there is one (NULL: none), and gives the session. */
static void ask_for(struct stage *stage, const char *name, int version, SSL_SESSION **session)
{
	struct wrapped client;
	char text[16];

	wrap(stage, &client);
	SSL_set_min_proto_version(client.ssl, version);
	SSL_set_max_proto_version(client.ssl, version);
	if (name)
		SSL_set_tlsext_host_name(client.ssl, name);
	if (*session)
		SSL_set_session(client.ssl, *session);
	assert_int_equal(SSL_connect(client.ssl), 1);
	assert_int_equal(SSL_session_reused(client.ssl), *session != NULL);
	assert_int_equal(SSL_write(client.ssl, "ask", 3), 3);
	assert_int_equal(receive(client.plain, text, sizeof(text)), 3);
	assert_int_equal(send(client.plain, "answer", 6, 0), 6);
	assert_int_equal(SSL_read(client.ssl, text, sizeof(text)), 6);
	assert_true(tls_peer_allows_host(client.tls_peer, name ? name : "any.test"));
	assert_int_equal(tls_peer_allows_host(client.tls_peer, "other.test"), !name);
	SSL_SESSION_free(*session);
	*session = SSL_get1_session(client.ssl);
	SSL_shutdown(client.ssl);
	close_client(&client);
}

static void the_server_that_a_client_asked_for_is_known_also_when_it_resumes(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	static const char *const names[] = {"a.test", NULL};

	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < 2; j++) {
			SSL_SESSION *session = NULL;

			ask_for(*state, names[j], versions[i], &session);
			ask_for(*state, names[j], versions[i], &session);
			SSL_SESSION_free(session);
		}
	}
}

static void the_end_of_a_client_passes_and_it_still_hears_the_answer(void **state)
{
	struct wrapped client;
	char text[16];

	open_client(*state, &client);
	assert_int_equal(SSL_write(client.ssl, "ask", 3), 3);
	assert_int_equal(SSL_shutdown(client.ssl), 0);
	assert_int_equal(receive(client.plain, text, 3), 3);
	assert_int_equal(receive(client.plain, text, sizeof(text)), 0);
	assert_int_equal(send(client.plain, "answer", 6, 0), 6);
	shutdown(client.plain, SHUT_RDWR);
	assert_int_equal(SSL_read(client.ssl, text, sizeof(text)), 6);
	assert_int_equal(SSL_read(client.ssl, text, sizeof(text)), 0);
	assert_int_equal(
		SSL_get_shutdown(client.ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
	close_client(&client);
}

/* More than all buffers hold, from a server that is gone by then. */
static void what_was_said_before_the_end_arrives_though_the_client_is_slow(void **state)
{
	static char block[65536];
	struct wrapped client;
	size_t sent = 0, got = 0;
	ssize_t n;

	open_client(*state, &client);
	/* Whoever is not served before the end of the handshake is cut: that end must have come. */
	assert_int_equal(SSL_write(client.ssl, "ask", 3), 3);
	assert_int_equal(receive(client.plain, block, sizeof(block)), 3);
	while ((n = send(client.plain, block, sizeof(block), 0)) > 0 && sent < (64u << 20))
		sent += (size_t)n;
	assert_true(sent > 0 && sent < (64u << 20)); /* it is held back */
	close(client.plain);
	client.plain = -1;
	while ((n = SSL_read(client.ssl, block, sizeof(block))) > 0)
		got += (size_t)n;
	assert_int_equal(got, sent);
	assert_int_equal(SSL_get_error(client.ssl, 0), SSL_ERROR_ZERO_RETURN);
	close_client(&client);
}

static void a_server_that_does_not_read_holds_its_client_back(void **state)
{
	static char block[65536];
	struct wrapped client;
	size_t sent = 0, got = 0;
	ssize_t n;

	open_client(*state, &client);
	assert_int_equal(fd_set_nonblocking(client.far), 0);
	for (int quiet = 0; quiet < 10 && sent < (256u << 20);) {
		n = SSL_write(client.ssl, block, sizeof(block));
		quiet = n > 0 ? 0 : quiet + 1;
		sent += n > 0 ? (size_t)n : 0;
		if (n <= 0)
			poll(NULL, 0, 20);
	}
	assert_true(sent < (256u << 20));
	while (got < sent) {
		n = receive(client.plain, block, sizeof(block));
		assert_true(n > 0);
		got += (size_t)n;
	}
	close_client(&client);
}

/* The plain side ends when the client does, whatever state it is in. */
static void a_client_that_vanishes_ends_the_plain_side(void **state)
{
	struct linger now = {.l_onoff = 1};
	struct wrapped client;
	char text[16];

	open_client(*state, &client);
	setsockopt(client.far, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(client.far);
	assert_true(receive(client.plain, text, sizeof(text)) <= 0);
	client.far = -1;
	close_client(&client);

	wrap(*state, &client);
	close(client.far);
	assert_true(receive(client.plain, text, sizeof(text)) <= 0);
	client.far = -1;
	close_client(&client);
}

static void whoever_is_not_wanted_is_cut_before_its_handshake(void **state)
{
	struct wrapped client;
	char text[16];

	wrap(*state, &client);
	close(client.plain);
	client.plain = -1;
	assert_int_equal(recv(client.far, text, sizeof(text), 0), 0);
	close_client(&client);
}

static void what_is_no_handshake_ends_both_sides(void **state)
{
	static const char plain[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	struct wrapped client;
	char text[1024] = "";

	wrap(*state, &client);
	assert_int_equal(send(client.far, plain, sizeof(plain) - 1, 0), sizeof(plain) - 1);
	assert_true(recv(client.far, text, sizeof(text) - 1, MSG_WAITALL) > 0);
	assert_non_null(strstr(text, "https_only"));
	assert_int_equal(receive(client.plain, text, sizeof(text)), 0);
	close_client(&client);

	wrap(*state, &client);
	assert_int_equal(
		send(client.far, "\x16\x03\x01\xff\xff\x00\x00\x00\x00\x00\x00", 11, 0), 11);
	assert_int_equal(receive(client.plain, text, sizeof(text)), 0);
	close_client(&client);
}

/* Clients whose server is done, and who do not leave: only so many are kept. */
static void those_who_linger_are_bounded(void **state)
{
	static struct wrapped clients[LINGERING];
	int before = count_fds(), most = before + LINGERING + 2 * CROWD_MAX;

	for (size_t i = 0; i < LINGERING; i++) {
		open_client(*state, &clients[i]);
		close(clients[i].plain);
		clients[i].plain = -1;
	}
	for (int i = 0; i < 50 && count_fds() > most; i++)
		poll(NULL, 0, 20);
	assert_in_range(count_fds(), before, most);
	for (size_t i = 0; i < LINGERING; i++)
		close_client(&clients[i]);
}

/* Of a client that has not begun its handshake yet. */
static bool is_cut(struct wrapped *client)
{
	return SSL_connect(client->ssl) != 1;
}

/* Where too many clients do not even begin theirs, those that came first give way: of a source, and of all. */
static void unfinished_handshakes_are_bounded(void **state)
{
	static struct wrapped silent[CROWD_MAX + 4];
	struct wrapped served;
	size_t count = 0;

	open_client(*state, &served);
	for (; count < SOURCE_MAX + 2; count++)
		wrap_of(*state, 1, &silent[count]);
	assert_true(is_cut(&silent[0]) && is_cut(&silent[1]));
	assert_false(is_cut(&silent[2]));
	for (; count < CROWD_MAX + 4; count++)
		wrap_of(*state, count, &silent[count]);
	assert_true(is_cut(&silent[3]));
	assert_false(is_cut(&silent[4]) || is_cut(&silent[count - 1]));
	assert_int_equal(SSL_write(served.ssl, "hello", 5), 5);
	assert_int_equal(receive(served.plain, (char[8]){0}, 8), 5);
	close_client(&served);
	while (count > 0)
		close_client(&silent[--count]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(bytes_pass_both_ways_and_are_counted),
		TEST(the_server_that_a_client_asked_for_is_known_also_when_it_resumes),
		TEST(the_end_of_a_client_passes_and_it_still_hears_the_answer),
		TEST(what_was_said_before_the_end_arrives_though_the_client_is_slow),
		TEST(a_server_that_does_not_read_holds_its_client_back),
		TEST(a_client_that_vanishes_ends_the_plain_side),
		TEST(whoever_is_not_wanted_is_cut_before_its_handshake),
		TEST(what_is_no_handshake_ends_both_sides),
		TEST(those_who_linger_are_bounded),
		TEST(unfinished_handshakes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
