/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/connection/client_hello.h"

#include <errno.h>

#define RECORD_HANDSHAKE     22
#define RECORD_HEADER_LEN    5
#define MESSAGE_CLIENT_HELLO 1
#define MESSAGE_HEADER_LEN   4
#define EXTENSION_NAME	     0
#define NAME_IS_HOST	     0

/* Bytes that are read from the front. Once a read was too short, all reads after it are. */
struct span {
	const uint8_t *at;
	size_t len;
	bool is_short;
};

static struct span take(struct span *from, size_t len)
{
	struct span taken = {.at = from->at, .len = len};

	if (from->is_short || from->len < len) {
		from->is_short = true;
		return (struct span){.is_short = true};
	}
	from->at += len;
	from->len -= len;
	return taken;
}

static size_t take_number(struct span *from, size_t bytes)
{
	struct span taken = take(from, bytes);
	size_t number = 0;

	for (size_t i = 0; i < taken.len; i++)
		number = number << 8 | taken.at[i];
	return number;
}

/* A field with its length before it. */
static struct span take_field(struct span *from, size_t length_bytes)
{
	return take(from, take_number(from, length_bytes));
}

static int read_names(struct span extension, char ret_name[EGRESS_NAME_MAX])
{
	struct span list = take_field(&extension, 2);

	while (list.len > 0) {
		size_t kind = take_number(&list, 1);
		struct span name = take_field(&list, 2);

		if (list.is_short)
			break;
		if (kind == NAME_IS_HOST)
			return egress_name_read((const char *)name.at, name.len, ret_name) < 0
				       ? -EBADMSG
				       : 1;
	}
	return -EBADMSG;
}

static int read_hello(struct span hello, char ret_name[EGRESS_NAME_MAX])
{
	struct span extensions;

	take(&hello, 2 + 32);  /* version, random */
	take_field(&hello, 1); /* session */
	take_field(&hello, 2); /* ciphers */
	take_field(&hello, 1); /* compression */
	if (hello.is_short)
		return -EBADMSG;
	if (hello.len == 0)
		return 0;
	extensions = take_field(&hello, 2);
	while (!extensions.is_short && extensions.len > 0) {
		size_t kind = take_number(&extensions, 2);
		struct span extension = take_field(&extensions, 2);

		if (!extensions.is_short && kind == EXTENSION_NAME)
			return read_names(extension, ret_name);
	}
	return hello.is_short || extensions.is_short ? -EBADMSG : 0;
}

int client_hello_read(const uint8_t *data, size_t len, char ret_name[EGRESS_NAME_MAX])
{
	struct span record = {.at = data, .len = len}, message;
	size_t record_len, message_len;

	if (len < 1)
		return -EAGAIN;
	if (data[0] != RECORD_HANDSHAKE)
		return 0;
	take(&record, 3); /* kind, version */
	record_len = take_number(&record, 2);
	if (record.is_short)
		return -EAGAIN;
	if (record_len < MESSAGE_HEADER_LEN || record_len > CLIENT_HELLO_MAX - RECORD_HEADER_LEN)
		return -EBADMSG;
	message = take(&record, record_len);
	if (record.is_short)
		return -EAGAIN;
	if (take_number(&message, 1) != MESSAGE_CLIENT_HELLO)
		return -EBADMSG;
	message_len = take_number(&message, 3);
	/* No honest client spreads a ClientHello over several records. */
	if (message_len > message.len)
		return -EBADMSG;
	return read_hello(take(&message, message_len), ret_name);
}
