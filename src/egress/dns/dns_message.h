/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the part of DNS that egress needs: a question for one name, and its answer with
 * addresses. Both are hostile input: sandboxes send the questions, the network sends the answers.
 */
#pragma once

#include "model/sandbox/egress_rule.h"

#define DNS_MESSAGE_MAX	  1232 /* fits into one packet on any network */
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
	char name[EGRESS_NAME_MAX]; /* empty if no rule could allow that name */
	uint8_t wire[256 + 4];	    /* the question as it came, to be sent back */
	size_t wire_len;
};

/* Reads a question; -EBADMSG if it is not one, and should get no answer. */
int dns_question_read(const uint8_t *data, size_t len, struct dns_question *ret_question)
	must_check;

/*
 * Writes the answer: a code without an address, or one address of the type in the question. Returns
 * its length.
 */
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
 * Reads the answer to a question that was written with this id, name and type. 0: there are
 * addresses, or none of that type. -ENOENT: the name does not exist. -EAGAIN: the server failed.
 * -EBADMSG: this is not an answer to that question.
 */
int dns_answer_read(const uint8_t *data, size_t len, uint16_t id, const char *name, uint16_t type,
	struct dns_addresses *ret_addresses) must_check;
