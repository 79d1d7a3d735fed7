/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the questions of a sandbox. A name that the policy does not know is no name: nothing about it
 * leaves this machine, so that no message can be hidden in it. One that is known is looked up first, and
 * answered with an address that stands for it (stand_in.h), whichever kind it has outside. Other kinds of
 * records are refused.
 */
#include "base/fd.h"
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

/* Who asked. */
struct asker {
	struct sockaddr_in peer;   /* over UDP */
	struct in_addr server;	   /* whom it believes to ask */
	struct dns_stream *stream; /* over TCP; else NULL */
};

/* A question that waits for its answer. */
struct dns_ask {
	struct sluice *sluice;
	struct dns_ask *next, **at;
	struct asker asker;
	struct dns_question question;
	struct lookup *lookup;
};

/* A client over TCP. One question at a time. */
struct dns_stream {
	struct sluice *sluice;
	struct dns_stream *next, **at;
	struct source source;
	struct dns_ask *ask;
	uint8_t data[LENGTH_LEN + DNS_MESSAGE_MAX];
	size_t len;
};

/* --- answering --- */

static void send_datagram(
	struct sluice *sluice, const struct asker *asker, const uint8_t *data, size_t len)
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
	(void)!sendmsg(sluice->dns.fd, &message, MSG_NOSIGNAL);
}

static void reply(struct sluice *sluice, const struct asker *asker,
	const struct dns_question *question, enum dns_code code, const struct address *address)
{
	uint8_t data[LENGTH_LEN + DNS_MESSAGE_MAX];
	size_t len = dns_answer_write(question, code, address, STAND_IN_TTL_S, data + LENGTH_LEN);

	if (!asker->stream) {
		send_datagram(sluice, asker, data + LENGTH_LEN, len);
		return;
	}
	data[0] = (uint8_t)(len >> 8);
	data[1] = (uint8_t)len;
	(void)!send(asker->stream->source.fd, data, LENGTH_LEN + len, MSG_NOSIGNAL);
}

/* An address that stands for the name, of the kind that was asked for. */
static void reply_found(
	struct sluice *sluice, const struct asker *asker, const struct dns_question *question)
{
	struct address stand_in = stand_in_for(&sluice->stand_ins, question->name);

	if (question->type == DNS_TYPE_AAAA)
		stand_in = stand_in_as_v6(stand_in);
	/* Where IPv6 does not lead out, that the name exists is all that is told. */
	reply(sluice, asker, question, DNS_OK,
		question->type == DNS_TYPE_A || sluice->has_v6 ? &stand_in : NULL);
}

static void end_ask(struct dns_ask *ask)
{
	*ask->at = ask->next;
	if (ask->next)
		ask->next->at = ask->at;
	ask->sluice->ask_count--;
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
	if (result == 0)
		reply_found(ask->sluice, &ask->asker, &ask->question);
	else
		reply(ask->sluice, &ask->asker, &ask->question,
			result == -ENOENT ? DNS_NO_SUCH_NAME : DNS_SERVER_FAILURE, NULL);
	end_ask(ask);
	if (stream)
		read_stream(stream);
}

static void look_up(
	struct sluice *sluice, const struct asker *asker, const struct dns_question *question)
{
	struct dns_ask *ask;
	struct dns_addresses addresses;
	int r;

	if (sluice->ask_count == ASKS_MAX) {
		reply(sluice, asker, question, DNS_SERVER_FAILURE, NULL);
		return;
	}
	ask = mem_new(sizeof(*ask));
	*ask = (struct dns_ask){.sluice = sluice,
		.asker = *asker,
		.question = *question,
		.next = sluice->asks,
		.at = &sluice->asks};
	if (ask->next)
		ask->next->at = &ask->next;
	sluice->asks = ask;
	sluice->ask_count++;
	if (asker->stream)
		asker->stream->ask = ask;
	r = resolver_ask(sluice->station->resolver, question->name, &addresses,
		&sluice->lookup_count, on_addresses, ask, &ask->lookup);
	if (r == 0)
		return;
	if (r == 1)
		reply_found(sluice, asker, question);
	else
		reply(sluice, asker, question, DNS_SERVER_FAILURE, NULL);
	end_ask(ask);
}

static bool is_localhost(const char *name)
{
	const char *last = strrchr(name, '.');

	return strcmp(last ? last + 1 : name, "localhost") == 0;
}

static void answer(
	struct sluice *sluice, const struct asker *asker, const struct dns_question *question)
{
	if (question->type != DNS_TYPE_A && question->type != DNS_TYPE_AAAA) {
		reply(sluice, asker, question, DNS_REFUSED, NULL);
	} else if (!question->name[0]) {
		reply(sluice, asker, question, DNS_NO_SUCH_NAME, NULL);
	} else if (is_localhost(question->name)) {
		struct address loopback = {in6addr_loopback};

		if (question->type == DNS_TYPE_A)
			loopback = address_from_v4((struct in_addr){htonl(INADDR_LOOPBACK)});
		reply(sluice, asker, question, DNS_OK, &loopback);
	} else if (sluice_serves_name(sluice, question->name)) {
		reply_found(sluice, asker, question);
	} else if (!policy_knows_name(sluice->policy, question->name)) {
		sluice_deny(sluice, question->name, question->name, EGRESS_NOT_ALLOWED);
		reply(sluice, asker, question, DNS_NO_SUCH_NAME, NULL);
	} else {
		look_up(sluice, asker, question);
	}
}

/* --- UDP --- */

/* One datagram; 0 if there is none, or -errno. */
static int read_datagram(struct sluice *sluice)
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
	ssize_t n = recvmsg(sluice->dns.fd, &message, 0);
	struct dns_question question;

	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&asker.server, CMSG_DATA(c) + offsetof(struct in_pktinfo, ipi_addr),
				sizeof(asker.server));
	}
	if (dns_question_read(data, (size_t)n, &question) == 0)
		answer(sluice, &asker, &question);
	return 1;
}

void dns_service_read(void *arg)
{
	struct sluice *sluice = arg;

	for (int i = 0; i < QUESTIONS_AT_A_TIME; i++) {
		int r = read_datagram(sluice);

		if (r == -EAGAIN)
			return;
	}
	dispatcher_requeue(sluice->station->dispatcher, &sluice->dns);
}

/* --- TCP --- */

static void end_stream(struct dns_stream *stream)
{
	struct dispatcher *dispatcher = stream->sluice->station->dispatcher;

	if (stream->ask)
		end_ask(stream->ask);
	*stream->at = stream->next;
	if (stream->next)
		stream->next->at = stream->at;
	stream->sluice->dns_stream_count--;
	dispatcher_remove(dispatcher, &stream->source);
	dispatcher_discard(dispatcher, stream);
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
	answer(stream->sluice, &asker, &question);
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

void dns_service_serve(struct sluice *sluice, int fd)
{
	struct dns_stream *stream;

	if (sluice->dns_stream_count == STREAMS_MAX) {
		close(fd);
		return;
	}
	stream = mem_new(sizeof(*stream));
	stream->sluice = sluice;
	stream->source = (struct source){.fd = fd, .ready = read_stream, .owner = stream};
	stream->next = sluice->dns_streams;
	stream->at = &sluice->dns_streams;
	if (stream->next)
		stream->next->at = &stream->next;
	sluice->dns_streams = stream;
	sluice->dns_stream_count++;
	if (dispatcher_add(sluice->station->dispatcher, &stream->source) < 0)
		end_stream(stream);
}

void dns_service_accept(void *arg)
{
	struct sluice *sluice = arg;

	for (;;) {
		int fd = accept4(sluice->dns_stream.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		dns_service_serve(sluice, fd);
	}
}

void dns_service_close(struct sluice *sluice)
{
	while (sluice->dns_streams)
		end_stream(sluice->dns_streams);
	while (sluice->asks)
		end_ask(sluice->asks);
}
