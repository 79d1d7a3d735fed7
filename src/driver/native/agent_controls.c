/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/agent_controls.h"

#include "base/fd.h"
#include "model/id.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct control {
	char id[ID_LEN + 1];
	int fd;
	uint64_t number;
	struct driver_egress_sockets egress;
};

static const struct driver_egress_sockets no_egress = {-1, -1, -1, false};

static int compare(const void *one, const void *other)
{
	return strcmp(((const struct control *)one)->id, ((const struct control *)other)->id);
}

/* The lock is held. */
static struct control *find(const struct agent_controls *controls, const char *id)
{
	struct control key = {.fd = -1}, *const * found;

	snprintf(key.id, sizeof(key.id), "%s", id);
	found = tfind(&key, &controls->tree, compare);
	return found ? *found : NULL;
}

static void close_sockets(struct control *control)
{
	fd_close(control->fd);
	fd_close(control->egress.proxy_fd);
	fd_close(control->egress.dns_fd);
	fd_close(control->egress.dns_stream_fd);
}

static void free_control(void *arg)
{
	struct control *control = arg;

	close_sockets(control);
	free(control);
}

void agent_controls_init(struct agent_controls *controls)
{
	*controls = (struct agent_controls){.tree = NULL};
	pthread_mutex_init(&controls->lock, NULL);
}

void agent_controls_fini(struct agent_controls *controls)
{
	tdestroy(controls->tree, free_control);
	pthread_mutex_destroy(&controls->lock);
}

uint64_t agent_controls_set(struct agent_controls *controls, const char *id, int fd,
	const struct driver_egress_sockets *egress)
{
	struct control *control;
	uint64_t number;

	pthread_mutex_lock(&controls->lock);
	control = find(controls, id);
	if (!control) {
		control = mem_new(sizeof(*control));
		control->fd = -1;
		control->egress = no_egress;
		snprintf(control->id, sizeof(control->id), "%s", id);
		if (!tsearch(control, &controls->tree, compare))
			abort();
	}
	close_sockets(control);
	control->fd = fd;
	control->egress = *egress;
	number = control->number = ++controls->last;
	pthread_mutex_unlock(&controls->lock);
	return number;
}

bool agent_controls_take_egress(
	struct agent_controls *controls, const char *id, struct driver_egress_sockets *ret_egress)
{
	struct control *control;
	bool has_some;

	pthread_mutex_lock(&controls->lock);
	control = find(controls, id);
	has_some = control && control->egress.proxy_fd >= 0;
	if (has_some) {
		*ret_egress = control->egress;
		control->egress = no_egress;
	}
	pthread_mutex_unlock(&controls->lock);
	return has_some;
}

void agent_controls_drop(struct agent_controls *controls, const char *id)
{
	struct control *control;

	pthread_mutex_lock(&controls->lock);
	control = find(controls, id);
	if (control) {
		tdelete(control, &controls->tree, compare);
		free_control(control);
	}
	pthread_mutex_unlock(&controls->lock);
}

int agent_controls_send(struct agent_controls *controls, const char *id, uint64_t link_number,
	const struct agent_control *message, int fd)
{
	const struct control *control;
	ssize_t n = -ENOENT;

	pthread_mutex_lock(&controls->lock);
	control = find(controls, id);
	if (control && link_number != AGENT_CONTROLS_ANY && link_number != control->number)
		n = -ESTALE;
	else if (control)
		n = fdpass_send(control->fd, message, sizeof(*message), &fd, 1, MSG_DONTWAIT);
	pthread_mutex_unlock(&controls->lock);
	return n < 0 ? (int)n : 0;
}
