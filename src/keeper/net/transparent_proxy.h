/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings every TCP connection that leaves a network namespace to one listening socket in it.
 *
 * lo gets an address and a route that makes all others local, so that no packet can leave; a rule
 * of nf_tables gives connections to foreign addresses to the listener (TPROXY), whatever their
 * port. There is no address translation and so no connection tracking, which would cost memory for
 * each connection and could be filled up: the accepted socket's own address is the destination of
 * the client. Another rule refuses the rest at once: a program that sends UDP or ICMP outside gets
 * EPERM, or ENETUNREACH if it pings over IPv6. DNS questions pass, to any server of IPv4. Apart
 * from that IPv6 is treated alike, where the kernel has it.
 *
 * The keeper writes its own netlink messages: it links no library and starts no program.
 */
#pragma once

#include "base/err.h"

/*
 * Works in the calling thread's network namespace, which must have a lo that is up, and where a
 * listener with IP_TRANSPARENT will be bound to EGRESS_PROXY_PORT: one of IPv6 if *ret_has_v6. On
 * failure there is no egress.
 */
int transparent_proxy_make(bool *ret_has_v6, struct err *err) must_check;
