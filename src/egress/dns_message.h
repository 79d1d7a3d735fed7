/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The little of DNS that is spoken here: a question for one name, and its answer with addresses. Both
 * sides of it come from strangers: the questions from a sandbox, the answers from the network.
 */
#pragma once

#include "model/egress_rule.h"

#define DNS_MESSAGE_MAX	  1232 /* what passes everywhere in one piece */
#define DNS_ADDRESSES_MAX 8

#define DNS_TYPE_A    1
#define DNS_TYPE_AAAA 28

enum dns_code {
	DNS_OK = 0,
	DNS_FORMAT_ERROR = 1,
	DNS_SERVER_FAILURE = 2,
	DNS_NO_SUCH_NAME = 3,
	DNS_REFUSED = 5,
};

struct dns_question {
	uint16_t id;
	uint16_t type;
	uint16_t flags;		    /* as they came */
	char name[EGRESS_NAME_MAX]; /* empty if it is no name that could be allowed */
	uint8_t wire[256 + 4];	    /* the question as it came, to be sent back */
	size_t wire_len;
};

/* Reads a question; -EBADMSG for what is none, and is best left without an answer. */
int dns_question_read(const uint8_t *data, size_t len, struct dns_question *ret_question)
	must_check;

/* Writes the answer to it: no address but with a code, or one of the kind that was asked for. Returns its length. */
size_t dns_answer_write(const struct dns_question *question, enum dns_code code,
	const struct address *address, uint32_t ttl_s, uint8_t out[DNS_MESSAGE_MAX]);

/* Writes a question for the addresses of a name (as egress_name_read leaves it), of type A or AAAA. Returns its length. */
size_t dns_question_write(
	uint16_t id, const char *name, uint16_t type, uint8_t out[DNS_MESSAGE_MAX]);

struct dns_addresses {
	struct address list[DNS_ADDRESSES_MAX];
	size_t count;
	uint32_t ttl_s; /* the least of all */
};

/*
 * Reads the answer to a question that was written with this id, name and type. 0 with the addresses, of which
 * there may be none; -ENOENT if there is no such name; -EAGAIN if the server could not tell; -EBADMSG
 * if it is no answer to it.
 */
int dns_answer_read(const uint8_t *data, size_t len, uint16_t id, const char *name, uint16_t type,
	struct dns_addresses *ret_addresses) must_check;
