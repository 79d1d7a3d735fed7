/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/own_address.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

static bool is_ours(const char *text)
{
	struct address address;

	assert_int_equal(address_parse(text, &address), 0);
	return own_address_is(address);
}

static void give_lo(const char *text)
{
	auto_fd int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo:1"};
	struct sockaddr_in address = {.sin_family = AF_INET};

	assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
	memcpy(&request.ifr_addr, &address, sizeof(address));
	assert_int_equal(ioctl(sock, SIOCSIFADDR, &request), 0);
}

static void raise_lo(void)
{
	auto_fd int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	assert_int_equal(ioctl(sock, SIOCSIFFLAGS, &request), 0);
}

static void an_address_is_ours_when_this_machine_has_it(void **state)
{
	(void)state;
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	raise_lo();
	assert_true(is_ours("127.0.0.1"));
	assert_true(is_ours("::1"));
	assert_false(is_ours("93.184.216.34"));
	assert_false(is_ours("2606:2800:220:1::1"));
	give_lo("93.184.216.34");
	assert_true(is_ours("93.184.216.34"));
	assert_true(is_ours("64:ff9b::93.184.216.34"));
	assert_false(is_ours("151.101.1.1"));
	assert_false(is_ours("64:ff9b::151.101.1.1"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_ours_when_this_machine_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
