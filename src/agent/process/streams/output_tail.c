/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/streams/output_tail.h"

#include <ctype.h>
#include <string.h>

static const char *const disk_words[] = {"no space left on device", "disk quota exceeded", "enospc",
	"edquot", "disk is full", "disk full", NULL};
static const char *const network_words[] = {"temporary failure in name resolution",
	"temporary failure resolving", "could not resolve", "couldn't resolve",
	"name or service not known", "network is unreachable", "bad address", "no such host",
	"enetunreach", "eai_again", "enotfound", NULL};

void output_tail_add(struct output_tail *tail, const uint8_t *data, size_t len)
{
	size_t kept = tail->len;

	if (len > OUTPUT_TAIL_BYTES) {
		data += len - OUTPUT_TAIL_BYTES;
		len = OUTPUT_TAIL_BYTES;
	}
	if (kept + len > OUTPUT_TAIL_BYTES)
		kept = OUTPUT_TAIL_BYTES - len;
	memmove(tail->bytes, tail->bytes + tail->len - kept, kept);
	memcpy(tail->bytes + kept, data, len);
	tail->len = kept + len;
}

static bool is_at(const struct output_tail *tail, size_t at, const char *word)
{
	for (size_t i = 0; word[i]; i++) {
		if (at + i >= tail->len || tolower(tail->bytes[at + i]) != word[i])
			return false;
	}
	return true;
}

static bool has_any(const struct output_tail *tail, const char *const words[])
{
	for (size_t at = 0; at < tail->len; at++) {
		for (size_t i = 0; words[i]; i++) {
			if (is_at(tail, at, words[i]))
				return true;
		}
	}
	return false;
}

bool output_tail_tells_full_disk(const struct output_tail *tail)
{
	return has_any(tail, disk_words);
}

bool output_tail_tells_no_network(const struct output_tail *tail)
{
	return has_any(tail, network_words);
}
