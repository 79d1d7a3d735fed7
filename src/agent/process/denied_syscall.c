/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/denied_syscall.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>

bool denied_syscall_receive(int listener_fd, struct denied_syscall *ret_denial)
{
	struct seccomp_notif notif = {0};

	if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &notif) < 0)
		return false;
	*ret_denial = (struct denied_syscall){
		.id = notif.id, .thread = (pid_t)notif.pid, .number = (uint32_t)notif.data.nr};
	return true;
}

bool denied_syscall_answer(int listener_fd, const struct denied_syscall *denied_syscall)
{
	struct seccomp_notif_resp resp = {.id = denied_syscall->id, .error = -EPERM};

	return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &resp) == 0;
}

void denied_syscall_note(struct denied_syscall_list *list, uint32_t number)
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
