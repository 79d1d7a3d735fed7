/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the DNS questions of a sandbox. If the policy does not know a name, the answer is that it
 * does not exist, and nothing about it leaves this machine, so that no message can be hidden in a
 * name. A known name is looked up first, and answered with a fake address (fake_address.h) of the
 * type in the question. Other types of records are refused.
 */
#include "base/fd.h"
#include "base/share_pool.h"
#include "egress/egress_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUESTIONS_AT_A_TIME 32
#define ASKS_MAX	    64 /* of one sandbox, that wait for an answer */
#define STREAMS_MAX	    16
#define LENGTH_LEN	    2 /* before each message over TCP */

/* Where a question came from. */
struct asker {
	struct sockaddr_in peer;   /* over UDP */
	struct in_addr server;	   /* the server that it was sent to */
	struct dns_stream *stream; /* over TCP; else NULL */
};

/* A question that waits for its answer. */
struct dns_ask {
	struct sandbox_egress *sandbox;
	struct dns_ask *next, **at;
	struct asker asker;
	struct dns_question question;
	struct lookup *lookup;
};

/* A client over TCP. One question at a time. */
struct dns_stream {
	struct sandbox_egress *sandbox;
	struct dns_stream *next, **at;
	struct source source;
	struct share *share; /* its place among the connections */
	struct dns_ask *ask;
	uint8_t data[LENGTH_LEN + DNS_MESSAGE_MAX];
	size_t len;
};

/* --- answering --- */

static void send_datagram(
	struct sandbox_egress *sandbox, const struct asker *asker, const uint8_t *data, size_t len)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = {0};
	struct in_pktinfo info = {.ipi_spec_dst = asker->server};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr message = {.msg_name = (void *)&asker->peer,
		.msg_namelen = sizeof(asker->peer),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};

	control.header.cmsg_level = IPPROTO_IP;
	control.header.cmsg_type = IP_PKTINFO;
	control.header.cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(&control.header), &info, sizeof(info));
	(void)!sendmsg(sandbox->dns.fd, &message, MSG_NOSIGNAL);
}

static void reply(struct sandbox_egress *sandbox, const struct asker *asker,
	const struct dns_question *question, enum dns_code code, const struct address *address)
{
	uint8_t data[LENGTH_LEN + DNS_MESSAGE_MAX];
	size_t len =
		dns_answer_write(question, code, address, FAKE_ADDRESS_TTL_S, data + LENGTH_LEN);

	if (!asker->stream) {
		send_datagram(sandbox, asker, data + LENGTH_LEN, len);
		return;
	}
	data[0] = (uint8_t)(len >> 8);
	data[1] = (uint8_t)len;
	(void)!send(asker->stream->source.fd, data, LENGTH_LEN + len, MSG_NOSIGNAL);
}

/* Answers with a fake address for the name, of the type in the question. */
static void reply_found(struct sandbox_egress *sandbox, const struct asker *asker,
	const struct dns_question *question)
{
	struct address fake_address = fake_address_for(&sandbox->fake_addresses, question->name);

	if (question->type == DNS_TYPE_AAAA)
		fake_address = fake_address_as_v6(fake_address);
	/* Without IPv6 in the sandbox, an AAAA answer only says that the name exists. */
	reply(sandbox, asker, question, DNS_OK,
		question->type == DNS_TYPE_A || sandbox->has_v6 ? &fake_address : NULL);
}

static void end_ask(struct dns_ask *ask)
{
	*ask->at = ask->next;
	if (ask->next)
		ask->next->at = ask->at;
	ask->sandbox->ask_count--;
	if (ask->asker.stream)
		ask->asker.stream->ask = NULL;
	lookup_cancel(ask->lookup);
	free(ask);
}

static void read_stream(void *arg);

static void on_addresses(void *arg, int result, const struct dns_addresses *addresses)
{
	struct dns_ask *ask = arg;
	struct dns_stream *stream = ask->asker.stream;

	(void)addresses;
	ask->lookup = NULL;
	sandbox_egress_note_lookup(ask->sandbox, ask->question.name, result);
	if (result == 0)
		reply_found(ask->sandbox, &ask->asker, &ask->question);
	else
		reply(ask->sandbox, &ask->asker, &ask->question,
			result == -ENOENT ? DNS_NO_SUCH_NAME : DNS_SERVER_FAILURE, NULL);
	end_ask(ask);
	if (stream)
		read_stream(stream);
}

static void look_up(struct sandbox_egress *sandbox, const struct asker *asker,
	const struct dns_question *question)
{
	struct dns_ask *ask;
	struct dns_addresses addresses;
	int r;

	if (sandbox->ask_count == ASKS_MAX) {
		reply(sandbox, asker, question, DNS_SERVER_FAILURE, NULL);
		return;
	}
	ask = mem_new(sizeof(*ask));
	*ask = (struct dns_ask){.sandbox = sandbox,
		.asker = *asker,
		.question = *question,
		.next = sandbox->asks,
		.at = &sandbox->asks};
	if (ask->next)
		ask->next->at = &ask->next;
	sandbox->asks = ask;
	sandbox->ask_count++;
	if (asker->stream)
		asker->stream->ask = ask;
	r = resolver_ask(sandbox->worker->resolver, question->name, &addresses, &sandbox->asker,
		on_addresses, ask, &ask->lookup);
	if (r == 0)
		return;
	if (r == 1)
		reply_found(sandbox, asker, question);
	else
		reply(sandbox, asker, question, DNS_SERVER_FAILURE, NULL);
	end_ask(ask);
}

/* Its own host name too: programs look that up at their start, and it is nobody else's business. */
static bool is_local(const struct sandbox_egress *sandbox, const char *name)
{
	const char *last = strrchr(name, '.');

	return strcmp(last ? last + 1 : name, "localhost") == 0 ||
	       strcmp(name, sandbox->hostname) == 0;
}

static void answer(struct sandbox_egress *sandbox, const struct asker *asker,
	const struct dns_question *question)
{
	if (question->type != DNS_TYPE_A && question->type != DNS_TYPE_AAAA) {
		reply(sandbox, asker, question, DNS_REFUSED, NULL);
	} else if (!question->name[0]) {
		reply(sandbox, asker, question, DNS_NO_SUCH_NAME, NULL);
	} else if (is_local(sandbox, question->name)) {
		struct address loopback = {in6addr_loopback};

		if (question->type == DNS_TYPE_A)
			loopback = address_from_v4((struct in_addr){htonl(INADDR_LOOPBACK)});
		reply(sandbox, asker, question, DNS_OK, &loopback);
	} else if (sandbox_egress_serves_name(sandbox, question->name)) {
		reply_found(sandbox, asker, question);
	} else if (!policy_knows_name(sandbox->policy, question->name)) {
		sandbox_egress_deny(sandbox, question->name, question->name, EGRESS_NOT_ALLOWED);
		reply(sandbox, asker, question, DNS_NO_SUCH_NAME, NULL);
	} else {
		look_up(sandbox, asker, question);
	}
}

/* --- UDP --- */

/* One datagram; 0 if there is none, or -errno. */
static int read_datagram(struct sandbox_egress *sandbox)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control;
	uint8_t data[DNS_MESSAGE_MAX];
	struct iovec iov = {.iov_base = data, .iov_len = sizeof(data)};
	struct asker asker = {0};
	struct msghdr message = {.msg_name = &asker.peer,
		.msg_namelen = sizeof(asker.peer),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sandbox->dns.fd, &message, 0);
	struct dns_question question;

	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&asker.server, CMSG_DATA(c) + offsetof(struct in_pktinfo, ipi_addr),
				sizeof(asker.server));
	}
	if (dns_question_read(data, (size_t)n, &question) == 0)
		answer(sandbox, &asker, &question);
	return 1;
}

void dns_service_read(void *arg)
{
	struct sandbox_egress *sandbox = arg;

	for (int i = 0; i < QUESTIONS_AT_A_TIME; i++) {
		int r = read_datagram(sandbox);

		if (r == -EAGAIN)
			return;
	}
	egress_thread_requeue(sandbox->worker->thread, &sandbox->dns);
}

/* --- TCP --- */

static void end_stream(struct dns_stream *stream)
{
	struct egress_thread *thread = stream->sandbox->worker->thread;

	if (stream->ask)
		end_ask(stream->ask);
	*stream->at = stream->next;
	if (stream->next)
		stream->next->at = stream->at;
	stream->sandbox->dns_stream_count--;
	share_give_back(stream->share);
	egress_thread_remove(thread, &stream->source);
	egress_thread_discard(thread, stream);
}

/* Takes one question off the front, if it is whole. False: it is not, or will never be. */
static bool take_question(struct dns_stream *stream, bool *ret_bad)
{
	size_t len = (size_t)stream->data[0] << 8 | stream->data[1];
	struct asker asker = {.stream = stream};
	struct dns_question question;

	*ret_bad = stream->len >= LENGTH_LEN && len > DNS_MESSAGE_MAX;
	if (*ret_bad || stream->len < LENGTH_LEN || stream->len < LENGTH_LEN + len)
		return false;
	*ret_bad = dns_question_read(stream->data + LENGTH_LEN, len, &question) < 0;
	if (*ret_bad)
		return false;
	stream->len -= LENGTH_LEN + len;
	memmove(stream->data, stream->data + LENGTH_LEN + len, stream->len);
	answer(stream->sandbox, &asker, &question);
	return true;
}

static void read_stream(void *arg)
{
	struct dns_stream *stream = arg;
	bool is_bad = false;

	while (!stream->ask) {
		ssize_t n;

		if (take_question(stream, &is_bad))
			continue;
		n = is_bad ? 0
			   : recv(stream->source.fd, stream->data + stream->len,
				     sizeof(stream->data) - stream->len, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			end_stream(stream);
			return;
		}
		stream->len += (size_t)n;
	}
}

void dns_service_serve(struct sandbox_egress *sandbox, int fd)
{
	struct dns_stream *stream;
	struct share *share;

	if (sandbox->dns_stream_count == STREAMS_MAX ||
		share_pool_take(sandbox->worker->egress->connections, sandbox->owner_key,
			sandbox->is_operators, &share) < 0) {
		close(fd);
		return;
	}
	stream = mem_new(sizeof(*stream));
	stream->share = share;
	stream->sandbox = sandbox;
	stream->source = (struct source){.fd = fd, .ready = read_stream, .owner = stream};
	stream->next = sandbox->dns_streams;
	stream->at = &sandbox->dns_streams;
	if (stream->next)
		stream->next->at = &stream->next;
	sandbox->dns_streams = stream;
	sandbox->dns_stream_count++;
	if (egress_thread_add(sandbox->worker->thread, &stream->source) < 0)
		end_stream(stream);
}

void dns_service_accept(void *arg)
{
	struct sandbox_egress *sandbox = arg;

	for (;;) {
		int fd = accept4(sandbox->dns_stream.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		dns_service_serve(sandbox, fd);
	}
}

void dns_service_close(struct sandbox_egress *sandbox)
{
	while (sandbox->dns_streams)
		end_stream(sandbox->dns_streams);
	while (sandbox->asks)
		end_ask(sandbox->asks);
}
