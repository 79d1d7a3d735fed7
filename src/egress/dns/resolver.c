/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns/resolver.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/share_pool.h"
#include "model/access/authority.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVERS_MAX   4
#define SANDBOX_MAX   128 /* under way at a time of one sandbox */
#define CACHE_MAX     512
#define CACHE_LEAST_S 5
#define CACHE_MOST_S  300
#define ATTEMPTS      4 /* together, over all servers */
#define ATTEMPT_MS    1500
#define RESOLV_CONF   "/etc/resolv.conf"
#define CONF_MAX      8192
#define FRESH_MS      5000 /* how long what was read of it holds, and what was seen of routes */
#define DNS_PORT      53
#define FAR_ADDRESS   0x08080808 /* a public address, only to look for a route */

struct lookup {
	struct source source; /* of the attempt that is under way */
	struct resolver *resolver;
	struct lookup *next, **at;
	char name[EGRESS_NAME_MAX];
	uint16_t id;
	uint16_t type;	/* A or AAAA: what is asked for now */
	bool is_second; /* the name has none of the other */
	unsigned attempt;
	uint64_t deadline_ms;
	struct resolver_asker *asker;
	struct share *share;
	resolver_answer_fn answer;
	void *arg;
};

struct remembered {
	char name[EGRESS_NAME_MAX];
	struct dns_addresses addresses;
	uint64_t until_ms;
};

struct resolver {
	struct egress_thread *thread;
	struct share_pool *shares; /* of look-ups */
	struct authority servers[SERVERS_MAX];
	bool has_v4; /* the machine has a way to the internet of IPv4 */
	size_t server_count;
	bool follows_conf; /* the servers are those of the file */
	uint64_t looked_ms;
	struct lookup *lookups;
	struct remembered cache[CACHE_MAX];
};

/* --- servers --- */

/* An address, with a port if it stands in brackets or is of IPv4. */
static void add_server(struct resolver *resolver, const char *text)
{
	struct authority server = {.port = DNS_PORT};

	if (resolver->server_count == SERVERS_MAX ||
		(address_parse(text, &server.address) < 0 &&
			authority_read(text, strlen(text), DNS_PORT, &server) < 0) ||
		server.name[0])
		return;
	resolver->servers[resolver->server_count++] = server;
}

static void read_conf(struct resolver *resolver)
{
	char text[CONF_MAX], *rest = text, *line;

	if (fd_read_file(AT_FDCWD, RESOLV_CONF, text, sizeof(text)) < 0)
		return;
	resolver->server_count = 0;
	while ((line = strsep(&rest, "\n"))) {
		char *at, *word = strtok_r(line, " \t\r", &at), *value;

		if (word && strcmp(word, "nameserver") == 0 &&
			(value = strtok_r(NULL, " \t\r", &at)))
			add_server(resolver, value);
	}
}

/* Whether there is a route to the IPv4 internet; no packet is sent. */
static bool has_route_v4(void)
{
	struct sockaddr_in far = {.sin_family = AF_INET,
		.sin_port = htons(DNS_PORT),
		.sin_addr.s_addr = htonl(FAR_ADDRESS)};
	auto_fd int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return sock >= 0 && connect(sock, (const struct sockaddr *)&far, sizeof(far)) == 0;
}

static void look_around(struct resolver *resolver)
{
	resolver->looked_ms = clock_steady_ms();
	resolver->has_v4 = has_route_v4();
	if (resolver->follows_conf)
		read_conf(resolver);
}

static void look_around_again(struct resolver *resolver)
{
	if (clock_steady_ms() - resolver->looked_ms >= FRESH_MS)
		look_around(resolver);
}

int resolver_open(struct egress_thread *thread, const char *servers, struct share_pool *lookups,
	struct resolver **ret_resolver, struct err *err)
{
	struct resolver *resolver = mem_new(sizeof(*resolver));
	auto_free char *copy = mem_strdup(servers);
	char *rest = copy, *server;

	resolver->thread = thread;
	resolver->shares = lookups;
	resolver->follows_conf = servers[0] == '\0';
	look_around(resolver);
	while (!resolver->follows_conf && (server = strsep(&rest, ",")))
		add_server(resolver, server);
	if (!resolver->follows_conf && resolver->server_count == 0) {
		free(resolver);
		return err_set(err, ERR_INVALID, "no address of a name server in \"%s\"", servers);
	}
	*ret_resolver = resolver;
	return 0;
}

/* --- what is remembered --- */

static struct remembered *place_for(struct resolver *resolver, const char *name)
{
	uint32_t hash = 2166136261u;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	return &resolver->cache[hash % CACHE_MAX];
}

static bool recall(struct resolver *resolver, const char *name, struct dns_addresses *ret_addresses)
{
	const struct remembered *place = place_for(resolver, name);

	if (strcmp(place->name, name) != 0 || clock_steady_ms() >= place->until_ms)
		return false;
	*ret_addresses = place->addresses;
	return true;
}

static void remember(
	struct resolver *resolver, const char *name, const struct dns_addresses *addresses)
{
	struct remembered *place = place_for(resolver, name);
	uint32_t ttl_s = addresses->ttl_s;

	if (ttl_s < CACHE_LEAST_S)
		ttl_s = CACHE_LEAST_S;
	if (ttl_s > CACHE_MOST_S)
		ttl_s = CACHE_MOST_S;
	snprintf(place->name, sizeof(place->name), "%s", name);
	place->addresses = *addresses;
	place->until_ms = clock_steady_ms() + ttl_s * 1000ull;
}

/* --- questions --- */

static void end_lookup(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;

	*lookup->at = lookup->next;
	if (lookup->next)
		lookup->next->at = lookup->at;
	lookup->asker->count--;
	share_give_back(lookup->share);
	egress_thread_wait_for_time(resolver->thread, false);
	egress_thread_remove(resolver->thread, &lookup->source);
	egress_thread_discard(resolver->thread, lookup);
}

void lookup_cancel(struct lookup *lookup)
{
	if (lookup)
		end_lookup(lookup);
}

static void finish(struct lookup *lookup, int result, const struct dns_addresses *addresses)
{
	resolver_answer_fn answer = lookup->answer;
	void *arg = lookup->arg;

	end_lookup(lookup);
	answer(arg, result, addresses);
}

static void on_reply(void *arg);

/*
 * Sends the question from a port of its own: an attacker who forges an answer must guess port and
 * id.
 */
static int send_question(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	const struct authority *server =
		&resolver->servers[lookup->attempt % resolver->server_count];
	struct sockaddr_storage peer;
	socklen_t peer_len = address_to_socket(server->address, server->port, &peer);
	uint8_t message[DNS_MESSAGE_MAX];
	size_t len;
	int r;

	egress_thread_remove(resolver->thread, &lookup->source);
	if (getrandom(&lookup->id, sizeof(lookup->id), 0) != sizeof(lookup->id))
		return -EAGAIN;
	len = dns_question_write(lookup->id, lookup->name, lookup->type, message);
	lookup->source = (struct source){
		.fd = socket(peer.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
		.ready = on_reply,
		.owner = lookup};
	if (lookup->source.fd < 0)
		return -errno;
	r = egress_thread_add(resolver->thread, &lookup->source);
	if (r < 0)
		return r;
	lookup->deadline_ms = clock_steady_ms() + ATTEMPT_MS;
	lookup->attempt++;
	/* A question that cannot be sent counts as lost: the next attempt follows in time. */
	if (connect(lookup->source.fd, (const struct sockaddr *)&peer, peer_len) == 0)
		(void)!send(lookup->source.fd, message, len, 0);
	return 0;
}

static void try_again(struct lookup *lookup, int result)
{
	if (lookup->attempt < ATTEMPTS)
		result = send_question(lookup);
	if (result < 0)
		finish(lookup, result, NULL);
}

/* The name exists, but has no address of the preferred type. */
static void ask_for_other(struct lookup *lookup)
{
	int r;

	lookup->is_second = true;
	lookup->type = lookup->type == DNS_TYPE_A ? DNS_TYPE_AAAA : DNS_TYPE_A;
	lookup->attempt = 0;
	r = send_question(lookup);
	if (r < 0)
		finish(lookup, r, NULL);
}

static void on_reply(void *arg)
{
	struct lookup *lookup = arg;
	uint8_t message[DNS_MESSAGE_MAX];
	ssize_t n = recv(lookup->source.fd, message, sizeof(message), 0);
	struct dns_addresses addresses;
	int r;

	if (n < 0) {
		/* No server listens there, so the next attempt need not wait. */
		if (errno == ECONNREFUSED)
			try_again(lookup, -EHOSTUNREACH);
		return;
	}
	r = dns_answer_read(message, (size_t)n, lookup->id, lookup->name, lookup->type, &addresses);
	if (r == -EBADMSG) {
		egress_thread_requeue(lookup->resolver->thread, &lookup->source);
	} else if (r == -EAGAIN) {
		try_again(lookup, -EHOSTUNREACH);
	} else if (r == 0 && addresses.count > 0) {
		remember(lookup->resolver, lookup->name, &addresses);
		finish(lookup, 0, &addresses);
	} else if (r == 0 && !lookup->is_second) {
		ask_for_other(lookup);
	} else {
		finish(lookup, -ENOENT, NULL);
	}
}

int resolver_ask(struct resolver *resolver, const char *name, struct dns_addresses *ret_addresses,
	struct resolver_asker *asker, resolver_answer_fn answer, void *arg,
	struct lookup **ret_lookup)
{
	struct lookup *lookup;
	struct share *share;
	int r;

	if (recall(resolver, name, ret_addresses))
		return 1;
	look_around_again(resolver);
	if (resolver->server_count == 0)
		return -EHOSTUNREACH;
	if (asker->count == SANDBOX_MAX ||
		share_pool_take(resolver->shares, asker->owner, asker->is_operator, &share) < 0)
		return -EAGAIN;
	lookup = mem_new(sizeof(*lookup));
	*lookup = (struct lookup){.source = {.fd = -1},
		.resolver = resolver,
		.type = resolver->has_v4 ? DNS_TYPE_A : DNS_TYPE_AAAA,
		.asker = asker,
		.share = share,
		.answer = answer,
		.arg = arg};
	snprintf(lookup->name, sizeof(lookup->name), "%s", name);
	lookup->next = resolver->lookups;
	lookup->at = &resolver->lookups;
	if (lookup->next)
		lookup->next->at = &lookup->next;
	resolver->lookups = lookup;
	asker->count++;
	egress_thread_wait_for_time(resolver->thread, true);
	r = send_question(lookup);
	if (r < 0) {
		end_lookup(lookup);
		return r;
	}
	*ret_lookup = lookup;
	return 0;
}

void resolver_tick(struct resolver *resolver, uint64_t now_ms)
{
	struct lookup *next;

	/* An answer may cancel others, but only those of the same asker, which has one at a time. */
	for (struct lookup *lookup = resolver->lookups; lookup; lookup = next) {
		next = lookup->next;
		if (now_ms >= lookup->deadline_ms)
			try_again(lookup, -ETIMEDOUT);
	}
}

void resolver_close(struct resolver *resolver)
{
	if (!resolver)
		return;
	while (resolver->lookups)
		end_lookup(resolver->lookups);
	free(resolver);
}
