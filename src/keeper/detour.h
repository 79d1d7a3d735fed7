/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings every TCP connection that leaves a network namespace to one listening socket in it.
 *
 * lo gets an address and a route that makes all others local, so that nothing can leave; a rule of
 * nf_tables gives what goes to a foreign address to the listener (TPROXY), whatever its port. There is
 * no address translation and so no connection tracking, which would cost memory for each connection
 * and could be filled up: the accepted socket's own address is the one that was asked for.
 * Another rule refuses the rest at once: a program that sends UDP or ICMP outside gets EPERM, or
 * ENETUNREACH if it pings over IPv6. DNS questions pass, to whatever server of IPv4 they are sent. But
 * for that IPv6 is treated alike, where the kernel has it.
 *
 * Spoken to the kernel as netlink messages of our own: the keeper links no library and starts no
 * program.
 */
#pragma once

#include "base/err.h"

/*
 * In the calling thread's network namespace, which must have a lo that is up, and where a listener with
 * IP_TRANSPARENT will be bound to EGRESS_PROXY_PORT: of IPv6 if that leads there too, ret_has_v6. On
 * failure there is no way out.
 */
int detour_make(bool *ret_has_v6, struct err *err) must_check;
