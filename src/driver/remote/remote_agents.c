/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/remote/remote_agents.h"

#include "base/clock.h"
#include "base/fd.h"
#include "driver/remote/agent_stream.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STREAM_MS  5000 /* for a connection to an agent that runs, and its proof */
#define RETRY_MS   20
#define ERRNUM_MAX 4095

struct agent {
	char id[ID_LEN + 1];
	struct proof_secret secret;
	uint64_t number;
};

static int compare(const void *one, const void *other)
{
	return strcmp(((const struct agent *)one)->id, ((const struct agent *)other)->id);
}

/* The lock is held. */
static struct agent *find(const struct remote_agents *agents, const char *id)
{
	struct agent key, *const *found;

	snprintf(key.id, sizeof(key.id), "%s", id);
	found = tfind(&key, &agents->tree, compare);
	return found ? *found : NULL;
}

static void free_agent(void *arg)
{
	explicit_bzero(arg, sizeof(struct agent));
	free(arg);
}

void remote_agents_init(struct remote_agents *agents, remote_agents_connect *connect, void *arg)
{
	*agents = (struct remote_agents){.connect = connect, .arg = arg};
	pthread_mutex_init(&agents->lock, NULL);
}

void remote_agents_fini(struct remote_agents *agents)
{
	tdestroy(agents->tree, free_agent);
	pthread_mutex_destroy(&agents->lock);
}

/* The number of the new link. */
static uint64_t note(
	struct remote_agents *agents, const char *id, const struct proof_secret *secret)
{
	struct agent *agent;
	uint64_t number;

	pthread_mutex_lock(&agents->lock);
	agent = find(agents, id);
	if (!agent) {
		agent = mem_new(sizeof(*agent));
		snprintf(agent->id, sizeof(agent->id), "%s", id);
		if (!tsearch(agent, &agents->tree, compare))
			abort();
	}
	agent->secret = *secret;
	number = agent->number = ++agents->last;
	pthread_mutex_unlock(&agents->lock);
	return number;
}

void remote_agents_drop(struct remote_agents *agents, const char *id)
{
	struct agent *agent;

	pthread_mutex_lock(&agents->lock);
	agent = find(agents, id);
	if (agent) {
		tdelete(agent, &agents->tree, compare);
		free_agent(agent);
	}
	pthread_mutex_unlock(&agents->lock);
}

static int explain(int r, const char *id, struct err *err)
{
	if (r == -EACCES || r == -EPROTO)
		return err_set(err, ERR_DENIED,
			"what answers for sandbox %s is not its agent: it does not know the "
			"secret of the sandbox",
			id);
	if (r == -ETIMEDOUT)
		return err_set(
			err, ERR_TIMEOUT, "the agent of sandbox %s does not answer in time", id);
	if (r == -ECONNREFUSED || r == -ECONNRESET || r == -ENOENT)
		return err_set(err, ERR_UNAVAILABLE,
			"the agent of sandbox %s takes no connection: %s", id, strerror(-r));
	return err_from(err, r, "reach the agent of sandbox %s", id);
}

static int set_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

/* A proven stream. 0 or -errno. */
static int open_stream(struct remote_agents *agents, const char *id,
	const struct proof_secret *secret, const struct proof_claim *claim, uint64_t deadline_ms,
	int *ret_fd)
{
	auto_fd int fd = -1;
	int r = agents->connect(agents->arg, id, deadline_ms, &fd);

	if (r == 0)
		r = agent_stream_prove(fd, secret, claim, deadline_ms);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

int remote_agents_meet(struct remote_agents *agents, const char *id,
	const struct proof_secret *secret, int wait_ms, struct driver_link *ret_link,
	struct err *err)
{
	const struct proof_claim claim = {.purpose = PROOF_LINK};
	uint64_t deadline_ms = clock_steady_ms() + (uint64_t)wait_ms;
	int fd = -1, r;

	for (;;) {
		r = open_stream(agents, id, secret, &claim, deadline_ms, &fd);
		if (r == 0)
			r = set_blocking(fd);
		if (r == 0)
			break;
		fd_close(take_fd(&fd));
		/* A proxy of the engine may take connections before the agent does, and end them. */
		if (r == -EACCES || r == -EPROTO || clock_steady_ms() + RETRY_MS >= deadline_ms)
			return explain(r, id, err);
		poll(NULL, 0, RETRY_MS);
	}
	*ret_link = (struct driver_link){fd, note(agents, id, secret)};
	return 0;
}

/* What is known of a running sandbox. */
static int look_up(struct remote_agents *agents, const char *id, const uint64_t *link_number,
	struct proof_secret *ret_secret, struct err *err)
{
	const struct agent *agent;
	int r = 0;

	pthread_mutex_lock(&agents->lock);
	agent = find(agents, id);
	if (!agent)
		r = err_set(err, ERR_NOT_FOUND, "sandbox %s does not run", id);
	else if (link_number && *link_number != agent->number)
		r = err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", id);
	else
		*ret_secret = agent->secret;
	pthread_mutex_unlock(&agents->lock);
	return r;
}

int remote_agents_open_channel(struct remote_agents *agents, const char *id, uint64_t link_number,
	const void *first, size_t len, int *ret_fd, struct err *err)
{
	const struct proof_claim claim = {.purpose = PROOF_CHANNEL};
	uint64_t deadline_ms = clock_steady_ms() + STREAM_MS;
	struct proof_secret secret;
	auto_fd int fd = -1;
	int r = look_up(agents, id, &link_number, &secret, err);

	if (r < 0)
		return r;
	if (len > AGENT_CHANNEL_FIRST_MAX)
		return err_set(err, ERR_TOO_LARGE, "a channel begins with at most %u bytes",
			AGENT_CHANNEL_FIRST_MAX);
	r = open_stream(agents, id, &secret, &claim, deadline_ms, &fd);
	if (r == 0)
		r = agent_stream_write(fd, first, len, deadline_ms);
	if (r == 0)
		r = set_blocking(fd);
	if (r < 0)
		return explain(r, id, err);
	*ret_fd = take_fd(&fd);
	return 0;
}

int remote_agents_dial(struct remote_agents *agents, const char *id, uint16_t port, int timeout_ms,
	int *ret_fd, struct err *err)
{
	const struct proof_claim claim = {
		.purpose = PROOF_DIAL, .port = port, .wait_ms = (uint32_t)timeout_ms};
	uint64_t deadline_ms = clock_steady_ms() + STREAM_MS;
	struct proof_secret secret;
	uint8_t result[4];
	uint32_t errnum;
	auto_fd int fd = -1;
	int r = look_up(agents, id, NULL, &secret, err);

	if (r < 0)
		return r;
	r = open_stream(agents, id, &secret, &claim, deadline_ms, &fd);
	/* How long the port takes is beside what the network does. */
	if (r == 0)
		r = agent_stream_read(
			fd, result, sizeof(result), deadline_ms + (uint64_t)timeout_ms);
	if (r < 0)
		return explain(r, id, err);
	errnum = unpack_u32(&UNPACK_INIT(result, sizeof(result)));
	if (errnum != 0)
		return driver_explain_port(
			id, port, errnum <= ERRNUM_MAX ? -(int)errnum : -EPROTO, err);
	*ret_fd = take_fd(&fd);
	return 0;
}
