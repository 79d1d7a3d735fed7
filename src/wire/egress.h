/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the network of a sandbox looks like from inside, for those who make it (the keeper), serve
 * it (egress) and tell programs of it (core). All addresses are from the range that is set aside
 * for benchmarks, which no network routes: no rule of a user can mean them.
 */
#pragma once

#define EGRESS_OWN_ADDRESS    0xc6120001u /* 198.18.0.1, on lo: the source of what goes out */
#define EGRESS_STAND_IN_FIRST 0xc6120400u /* 198.18.4.0: from here on addresses stand for names */
#define EGRESS_STAND_IN_COUNT 0x0001fc00u /* up to 198.19.255.255 */
/*
 * The same for IPv6, from a private network of Sandlot: fd73:616e:646c:6f74::1, and names below
 * ::0:0/96 of it.
 */
#define EGRESS_OWN_V6                                                                              \
	{                                                                                          \
		0xfd, 0x73, 0x61, 0x6e, 0x64, 0x6c, 0x6f, 0x74, 0, 0, 0, 0, 0, 0, 0, 1             \
	}
#define EGRESS_STAND_IN_V6                                                                         \
	{                                                                                          \
		0xfd, 0x73, 0x61, 0x6e, 0x64, 0x6c, 0x6f, 0x74, 0, 0, 0, 4                         \
	}
#define EGRESS_STAND_IN_V6_LEN 96    /* the rest is the address of IPv4 */
#define EGRESS_PROXY_PORT      61080 /* above those that the kernel gives out by itself */
#define EGRESS_DNS_PORT	       53
