/* SPDX-License-Identifier: Apache-2.0 */
/* Tries what the profiles of seccomp differ in, and says how each try went: 0, or errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAY(what, call) (errno = 0, printf("%s %d\n", what, (call) < 0 ? errno : 0))

int main(void)
{
	SAY("tcp", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	SAY("udp", socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP));
	SAY("unix", socket(AF_UNIX, SOCK_SEQPACKET, 0));
	SAY("raw", socket(AF_INET, SOCK_RAW, IPPROTO_TCP));
	SAY("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
	SAY("vmsplice", syscall(SYS_vmsplice, 1, NULL, 0, 0) < 0 && errno != EPERM ? 0 : -1);
	SAY("random", personality(ADDR_NO_RANDOMIZE));
	SAY("read", syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0));
	SAY("namespace", unshare(0x10000000));
	SAY("trace", ptrace(PTRACE_TRACEME, 0, 0, 0));
	return 0;
}
