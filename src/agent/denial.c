/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/denial.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>

bool denial_receive(int listener_fd, struct denial *ret_denial)
{
	struct seccomp_notif notif = {0};

	if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &notif) < 0)
		return false;
	*ret_denial = (struct denial){
		.id = notif.id, .thread = (pid_t)notif.pid, .number = (uint32_t)notif.data.nr};
	return true;
}

bool denial_answer(int listener_fd, const struct denial *denial)
{
	struct seccomp_notif_resp resp = {.id = denial->id, .error = -EPERM};

	return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &resp) == 0;
}

void denial_note(struct denial_list *list, uint32_t number)
{
	uint32_t i = 0;

	while (i < list->count && list->calls[i].number != number)
		i++;
	if (i == AGENT_DENIED_MAX)
		return;
	if (i == list->count)
		list->calls[list->count++].number = number;
	if (list->calls[i].times < UINT32_MAX)
		list->calls[i].times++;
}
