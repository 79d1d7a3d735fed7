/* SPDX-License-Identifier: Apache-2.0 */
#include "http/head_rules.h"

#include "base/number.h"

#include <string.h>
#include <strings.h>

static bool is_control(unsigned char byte)
{
	return byte < 0x20 || byte == 0x7f;
}

bool head_rules_is_request_line(const char *line, size_t len)
{
	unsigned spaces = 0;

	for (size_t i = 0; i < len; i++) {
		if (is_control((unsigned char)line[i]))
			return false;
		if (line[i] != ' ')
			continue;
		if (i == 0 || i + 1 == len || line[i + 1] == ' ')
			return false;
		spaces++;
	}
	return spaces == 2;
}

bool head_rules_is_version(unsigned major, unsigned minor)
{
	return major == 1 && minor <= 1;
}

bool head_rules_is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)name[i];

		if (byte <= ' ' || byte >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", byte))
			return false;
	}
	return len > 0;
}

bool head_rules_is_value(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (is_control((unsigned char)value[i]) && value[i] != '\t')
			return false;
	}
	return true;
}

static bool is_like(const char *name, size_t len, const char *text)
{
	return len == strlen(text) && strncasecmp(name, text, len) == 0;
}

size_t head_rules_value_len(const char *name, size_t name_len, const char *value, size_t len)
{
	if (is_like(name, name_len, "Transfer-Encoding") ||
		is_like(name, name_len, "Content-Length"))
		return len;
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	return len;
}

bool head_rules_is_host(const char *host, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)host[i];

		if (byte <= ' ' || byte >= 0x7f || strchr("/\\@?#,\"<>", byte))
			return false;
	}
	return len > 0 && len < HEAD_RULES_HOST_MAX;
}

const char *head_rules_framing_fault(const struct head_framing *framing)
{
	uint64_t size;

	if (framing->coding_count + framing->length_count > 1)
		return "the body's length is ambiguous";
	if (framing->coding && strcasecmp(framing->coding, "chunked") != 0)
		return "no transfer coding is known but chunked";
	if (framing->coding && framing->is_old)
		return "HTTP/1.0 knows no transfer coding";
	if (framing->length && number_parse(framing->length, 0, UINT64_MAX - 1, &size) < 0)
		return "Content-Length is not a number";
	return NULL;
}
