/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a sandbox, and answers of the network to a question of ours. */
#include "egress/dns/dns_message.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct address address = address_from_v4((struct in_addr){0x01020304});
	uint8_t *copy = mem_new(size ? size : 1); /* so that a read past its end is seen */
	uint8_t out[DNS_MESSAGE_MAX];
	struct dns_addresses addresses;
	struct dns_question question;
	char name[EGRESS_NAME_MAX];

	memcpy(copy, data, size);
	if (dns_question_read(copy, size, &question) == 0) {
		size_t len = dns_answer_write(&question, DNS_OK, &address, 1, out);

		assert(len <= DNS_MESSAGE_MAX);
		if (question.name[0])
			assert(egress_name_read(question.name, strlen(question.name), name) == 0);
		if (question.name[0] &&
			(question.type == DNS_TYPE_A || question.type == DNS_TYPE_AAAA)) {
			assert(dns_answer_read(out, len, question.id, question.name, question.type,
				       &addresses) == 0);
			assert(addresses.count == 1 && address_equals(addresses.list[0], address));
		}
	}
	if (dns_answer_read(copy, size, 7, "a.test", DNS_TYPE_A, &addresses) == 0 ||
		dns_answer_read(copy, size, 7, "a.test", DNS_TYPE_AAAA, &addresses) == 0)
		assert(addresses.count <= DNS_ADDRESSES_MAX);
	free(copy);
	return 0;
}
