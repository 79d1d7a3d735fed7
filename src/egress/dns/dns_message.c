/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns/dns_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define HEADER_LEN    12
#define CLASS_IN      1
#define FLAG_RESPONSE 0x8000
#define FLAG_CUT      0x0200
#define FLAG_RECURSE  0x0100 /* asked for */
#define FLAG_RECURSES 0x0080 /* available */
#define OPCODE_MASK   0x7800
#define POINTER_BITS  0xc0
#define NAME_TEXT_MAX 256

static uint16_t get_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)get_u16(at) << 16 | get_u16(at + 2);
}

static uint8_t *put_u16(uint8_t *at, unsigned value)
{
	*at++ = (uint8_t)(value >> 8);
	*at++ = (uint8_t)value;
	return at;
}

static uint8_t *put_header(uint8_t *out, uint16_t id, unsigned flags, unsigned answers)
{
	out = put_u16(out, id);
	out = put_u16(out, flags);
	out = put_u16(out, 1);
	out = put_u16(out, answers);
	memset(out, 0, 4);
	return out + 4;
}

/*
 * Reads the labels at data[at] as text with dots between them. The text may hold any byte; a dot
 * inside a label becomes NUL, so that the name is not valid. Pointers are refused: a question needs
 * none. Returns where the name ends, or 0.
 */
static size_t read_labels(
	const uint8_t *data, size_t len, size_t at, char text[NAME_TEXT_MAX], size_t *ret_text_len)
{
	size_t text_len = 0;

	while (at < len && data[at] > 0) {
		size_t label_len = data[at];

		if (label_len >= POINTER_BITS || at + 1 + label_len >= len ||
			text_len + label_len + 1 > NAME_TEXT_MAX - 1)
			return 0;
		if (text_len > 0)
			text[text_len++] = '.';
		for (size_t i = 0; i < label_len; i++) {
			uint8_t byte = data[at + 1 + i];

			text[text_len++] = byte == '.' ? '\0' : (char)byte;
		}
		at += 1 + label_len;
	}
	*ret_text_len = text_len;
	return at < len ? at + 1 : 0;
}

int dns_question_read(const uint8_t *data, size_t len, struct dns_question *ret_question)
{
	struct dns_question question = {0};
	char text[NAME_TEXT_MAX];
	size_t end, text_len;

	if (len < HEADER_LEN || get_u16(data + 4) != 1)
		return -EBADMSG;
	question.id = get_u16(data);
	question.flags = get_u16(data + 2);
	if (question.flags & (FLAG_RESPONSE | OPCODE_MASK))
		return -EBADMSG;
	end = read_labels(data, len, HEADER_LEN, text, &text_len);
	if (end == 0 || end + 4 > len || get_u16(data + end + 2) != CLASS_IN)
		return -EBADMSG;
	question.type = get_u16(data + end);
	question.wire_len = end + 4 - HEADER_LEN;
	if (question.wire_len > sizeof(question.wire))
		return -EBADMSG;
	memcpy(question.wire, data + HEADER_LEN, question.wire_len);
	if (egress_name_read(text, text_len, question.name) < 0)
		question.name[0] = '\0';
	*ret_question = question;
	return 0;
}

/* The length of an address in a record. An IPv4 address is the end of struct address. */
static size_t data_len_of(uint16_t type)
{
	return type == DNS_TYPE_A ? sizeof(struct in_addr) : sizeof(struct in6_addr);
}

size_t dns_answer_write(const struct dns_question *question, enum dns_code code,
	const struct address *address, uint32_t ttl_s, uint8_t out[DNS_MESSAGE_MAX])
{
	unsigned flags = FLAG_RESPONSE | (question->flags & FLAG_RECURSE) | FLAG_RECURSES | code;
	uint8_t *at = put_header(out, question->id, flags, address ? 1 : 0);

	memcpy(at, question->wire, question->wire_len);
	at += question->wire_len;
	if (address) {
		at = put_u16(at, POINTER_BITS << 8 | HEADER_LEN); /* the name: as in the question */
		at = put_u16(at, question->type);
		at = put_u16(at, CLASS_IN);
		at = put_u16(at, ttl_s >> 16);
		at = put_u16(at, ttl_s & 0xffff);
		at = put_u16(at, (unsigned)data_len_of(question->type));
		memcpy(at,
			(const uint8_t *)address + sizeof(*address) - data_len_of(question->type),
			data_len_of(question->type));
		at += data_len_of(question->type);
	}
	return (size_t)(at - out);
}

size_t dns_question_write(
	uint16_t id, const char *name, uint16_t type, uint8_t out[DNS_MESSAGE_MAX])
{
	uint8_t *at = put_header(out, id, FLAG_RECURSE, 0);

	for (;;) {
		size_t label_len = strcspn(name, ".");

		*at++ = (uint8_t)label_len;
		memcpy(at, name, label_len);
		at += label_len;
		if (!name[label_len])
			break;
		name += label_len + 1;
	}
	*at++ = 0;
	at = put_u16(at, type);
	at = put_u16(at, CLASS_IN);
	return (size_t)(at - out);
}

/* Where the name at `at` ends, by labels or with a pointer; 0 if it does not. */
static size_t skip_name(const uint8_t *data, size_t len, size_t at)
{
	while (at < len) {
		if (data[at] == 0)
			return at + 1;
		if (data[at] >= POINTER_BITS)
			return at + 2 <= len ? at + 2 : 0;
		at += 1 + (size_t)data[at];
	}
	return 0;
}

static struct address read_address(const uint8_t *data, uint16_t type)
{
	struct address address;
	struct in_addr v4;

	if (type == DNS_TYPE_A) {
		memcpy(&v4, data, sizeof(v4));
		return address_from_v4(v4);
	}
	memcpy(&address, data, sizeof(address));
	return address;
}

/* Takes the addresses from all records and skips records of other types, such as CNAME. */
static int read_records(const uint8_t *data, size_t len, size_t at, unsigned count, uint16_t type,
	struct dns_addresses *addresses)
{
	while (count-- > 0) {
		size_t record = skip_name(data, len, at), data_len;

		if (record == 0 || record + 10 > len)
			return -EBADMSG;
		data_len = get_u16(data + record + 8);
		at = record + 10 + data_len;
		if (at > len)
			return -EBADMSG;
		if (get_u16(data + record) != type || get_u16(data + record + 2) != CLASS_IN ||
			data_len != data_len_of(type))
			continue;
		if (get_u32(data + record + 4) < addresses->ttl_s)
			addresses->ttl_s = get_u32(data + record + 4);
		if (addresses->count < DNS_ADDRESSES_MAX)
			addresses->list[addresses->count++] =
				read_address(data + record + 10, type);
	}
	return 0;
}

int dns_answer_read(const uint8_t *data, size_t len, uint16_t id, const char *name, uint16_t type,
	struct dns_addresses *ret_addresses)
{
	struct dns_addresses addresses = {.ttl_s = UINT32_MAX};
	char text[NAME_TEXT_MAX], asked[EGRESS_NAME_MAX];
	size_t end, text_len;
	int r;

	if (len < HEADER_LEN || get_u16(data) != id || !(get_u16(data + 2) & FLAG_RESPONSE) ||
		get_u16(data + 4) != 1)
		return -EBADMSG;
	end = read_labels(data, len, HEADER_LEN, text, &text_len);
	if (end == 0 || end + 4 > len || get_u16(data + end) != type ||
		egress_name_read(text, text_len, asked) < 0 || strcmp(asked, name) != 0)
		return -EBADMSG;
	if ((get_u16(data + 2) & 0xf) == DNS_NO_SUCH_NAME)
		return -ENOENT;
	if ((get_u16(data + 2) & 0xf) != DNS_OK)
		return -EAGAIN;
	r = read_records(data, len, end + 4, get_u16(data + 6), type, &addresses);
	/* A truncated answer still has whole records at its beginning. */
	if (r < 0 && !((get_u16(data + 2) & FLAG_CUT) && addresses.count > 0))
		return r;
	*ret_addresses = addresses;
	return 0;
}
