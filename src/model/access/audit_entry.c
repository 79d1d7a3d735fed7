/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/audit_entry.h"

#include "base/buf.h"
#include "base/format.h"
#include "base/number.h"

#include <assert.h>
#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

static_assert(AUDIT_HASH_LEN == SHA256_DIGEST_LENGTH, "the chain is made with SHA-256");

void audit_mark_format(const struct audit_mark *mark, char text[AUDIT_MARK_TEXT])
{
	size_t len = format_append(text, AUDIT_MARK_TEXT, 0, "%lld:", (long long)mark->sequence);

	for (size_t i = 0; i < AUDIT_HASH_LEN; i++)
		len = format_append(text, AUDIT_MARK_TEXT, len, "%02x", mark->hash[i]);
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

int audit_mark_parse(const char *text, struct audit_mark *ret_mark)
{
	const char *hex = strchr(text, ':');
	struct audit_mark mark;
	char number[24];
	uint64_t sequence;

	if (!hex || hex - text >= (ptrdiff_t)sizeof(number) ||
		strlen(hex + 1) != 2 * AUDIT_HASH_LEN)
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s", (int)(hex - text), text);
	if (number_parse(number, 0, INT64_MAX, &sequence) < 0)
		return -EINVAL;
	mark.sequence = (int64_t)sequence;
	hex++;
	for (size_t i = 0; i < AUDIT_HASH_LEN; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		mark.hash[i] = (uint8_t)(high << 4 | low);
	}
	*ret_mark = mark;
	return 0;
}

/* With its length before it: no two entries have the same bytes, whatever their texts hold. */
static void add_text(struct buf *form, const char *text)
{
	buf_printf(form, "%zu:%s,", strlen(text), text);
}

static void add_number(struct buf *form, int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)number);
	add_text(form, text);
}

void audit_entry_hash(const struct audit_entry *entry, const uint8_t before[AUDIT_HASH_LEN],
	uint8_t ret_hash[AUDIT_HASH_LEN])
{
	auto_(buf_fini) struct buf form = BUF_INIT(4096);

	buf_append(&form, before, AUDIT_HASH_LEN);
	add_number(&form, entry->sequence);
	add_number(&form, entry->at_ms);
	add_text(&form, entry->owner.organization);
	add_text(&form, entry->owner.user);
	add_text(&form, entry->token_id);
	add_text(&form, entry->action);
	add_text(&form, entry->object);
	add_number(&form, entry->status);
	add_text(&form, entry->code);
	add_text(&form, entry->peer);
	add_text(&form, entry->request_id);
	add_text(&form, entry->detail);
	assert(!form.failed);
	SHA256(form.data, form.len, ret_hash);
}
