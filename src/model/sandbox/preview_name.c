/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/preview_name.h"

#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The length of a host without its port. */
static size_t name_len(const char *host)
{
	size_t len = strlen(host);
	const char *colon = strrchr(host, ':');

	if (colon && host[0] != '[' && colon[1] &&
		strspn(colon + 1, "0123456789") == strlen(colon + 1))
		len = (size_t)(colon - host);
	return len;
}

int preview_name_is_domain(const char *host, const char *domain)
{
	size_t len = name_len(host);

	return len == strlen(domain) && strncasecmp(host, domain, len) == 0;
}

static int parse_port(const char *text, uint16_t *ret_port)
{
	uint64_t port;

	if (text[0] == '0' || strspn(text, "0123456789") != strlen(text) ||
		number_parse(text, 1, 65535, &port) < 0)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

/* A label of small letters and digits, cut in two at a dash. */
static int read_label(char *label, char ret_id[ID_LEN + 1], uint16_t *ret_port)
{
	const char *id, *port;
	char *dash;

	if (label[0] == 's' && label[1] == '-') {
		id = label + 2;
		dash = strchr(id, '-');
		port = dash ? dash + 1 : NULL;
	} else {
		port = label;
		dash = strchr(port, '-');
		id = dash ? dash + 1 : NULL;
	}
	if (!dash)
		return -EINVAL;
	*dash = '\0';
	if (!id_is_valid(id) || parse_port(port, ret_port) < 0)
		return -EINVAL;
	memcpy(ret_id, id, ID_LEN + 1);
	return 0;
}

/* What stands below the domain, in small letters. */
static int cut_label(const char *host, const char *domain, char label[PREVIEW_NAME_LABEL_MAX])
{
	size_t len = name_len(host), domain_len = strlen(domain), label_len;

	if (len <= domain_len + 1 || host[len - domain_len - 1] != '.' ||
		strncasecmp(host + len - domain_len, domain, domain_len) != 0)
		return -ENOENT;
	label_len = len - domain_len - 1;
	if (label_len >= PREVIEW_NAME_LABEL_MAX)
		return -EINVAL;
	for (size_t i = 0; i < label_len; i++) {
		char byte = host[i];

		label[i] = byte >= 'A' && byte <= 'Z' ? (char)(byte + 'a' - 'A') : byte;
	}
	label[label_len] = '\0';
	return 0;
}

int preview_name_parse(
	const char *host, const char *domain, char ret_id[ID_LEN + 1], uint16_t *ret_port)
{
	char label[PREVIEW_NAME_LABEL_MAX];
	int r = cut_label(host, domain, label);

	return r < 0 ? r : read_label(label, ret_id, ret_port);
}

int preview_name_parse_frame(
	const char *host, const char *domain, char ret_label[PREVIEW_NAME_LABEL_MAX])
{
	char label[PREVIEW_NAME_LABEL_MAX];
	int r = cut_label(host, domain, label);

	if (r < 0)
		return r;
	if (strncmp(label, "f-", 2) != 0 || !label[2] ||
		label[2 + strspn(label + 2, "0123456789abcdefghijklmnopqrstuvwxyz")])
		return -EINVAL;
	memcpy(ret_label, label, sizeof(label));
	return 0;
}

void preview_name_format(const char *id, unsigned port, const char *domain, char *name, size_t size)
{
	snprintf(name, size, "s-%s-%u.%s", id, port, domain);
}
