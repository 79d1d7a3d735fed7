/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/upgrade.h"

#include "base/number.h"
#include "cli/remote/credential.h"
#include "cli/remote/curl_auto.h"
#include "cli/remote/peer.h"
#include "cli/text/base64.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#define GUID	   "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_BYTES  16
#define ACCEPT_LEN 28

/* What an answer must say, and what was seen of it. */
struct head {
	const char *accept;
	const char *protocol;
	int upgrades;
	int connections;
	int accepts;
	int protocols;
	bool is_wrong;
	size_t body_len;
};

/* The Host header, and the path below which the daemon lives (behind a proxy it may have one). */
static void add_target(struct buf *request, const char *url, const char *path)
{
	auto_(curl_auto_url) CURLU *parsed = curl_url();
	auto_(curl_auto_text) char *host = NULL;
	auto_(curl_auto_text) char *port = NULL;
	auto_(curl_auto_text) char *base = NULL;
	size_t base_len;

	/* The address was parsed before, when the client was made. */
	if (!parsed || curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
		curl_url_get(parsed, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
		curl_url_get(parsed, CURLUPART_PATH, &base, 0) != CURLUE_OK)
		abort();
	base_len = strlen(base);
	if (base_len > 0 && base[base_len - 1] == '/')
		base_len--;
	buf_printf(request, "GET %.*s%s HTTP/1.1\r\nHost: %s", (int)base_len, base, path, host);
	if (curl_url_get(parsed, CURLUPART_PORT, &port, 0) == CURLUE_OK)
		buf_printf(request, ":%s", port);
	buf_append_str(request, "\r\n");
}

int upgrade_request(const struct client *client, const char *path, const char *protocol,
	char ret_key[UPGRADE_KEY_LEN + 1], struct buf *request, struct err *err)
{
	auto_(buf_fini) struct buf key = BUF_INIT(UPGRADE_KEY_LEN);
	auto_free char *whole = peer_path(client_peer(client), path);
	char authorization[CREDENTIAL_MAX + 64];
	uint8_t random[KEY_BYTES];

	if (getrandom(random, sizeof(random), 0) != sizeof(random) ||
		base64_encode(random, sizeof(random), &key) < 0)
		return err_set(err, ERR_INTERNAL, "no random numbers");
	memcpy(ret_key, key.data, UPGRADE_KEY_LEN);
	ret_key[UPGRADE_KEY_LEN] = '\0';
	add_target(request, client_peer(client)->url, whole);
	peer_authorization(client_peer(client), authorization, sizeof(authorization));
	buf_append_str(request, authorization);
	explicit_bzero(authorization, sizeof(authorization));
	buf_printf(request,
		"User-Agent: sandlot/" SANDLOT_VERSION "\r\n"
		"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		ret_key, protocol);
	if (request->failed)
		return err_set(err, ERR_TOO_LARGE, "the request is too long");
	return 0;
}

static void expected_accept(const char *key, char text[ACCEPT_LEN + 1])
{
	auto_(buf_fini) struct buf encoded = BUF_INIT(ACCEPT_LEN);
	char joined[UPGRADE_KEY_LEN + sizeof(GUID)];
	uint8_t digest[SHA_DIGEST_LENGTH];

	snprintf(joined, sizeof(joined), "%s%s", key, GUID);
	SHA1((const uint8_t *)joined, strlen(joined), digest);
	if (base64_encode(digest, sizeof(digest), &encoded) < 0)
		abort();
	memcpy(text, encoded.data, ACCEPT_LEN);
	text[ACCEPT_LEN] = '\0';
}

/* "keep-alive, Upgrade" has the word "upgrade". */
static bool has_word(const char *list, const char *word)
{
	while (*list) {
		size_t len;

		list += strspn(list, ", \t");
		len = strcspn(list, ", \t");
		if (len == strlen(word) && strncasecmp(list, word, len) == 0)
			return true;
		list += len;
	}
	return false;
}

static void read_header(struct head *head, const char *name, const char *value)
{
	uint64_t number;

	if (strcasecmp(name, "upgrade") == 0) {
		head->upgrades++;
		head->is_wrong |= strcasecmp(value, "websocket") != 0;
	} else if (strcasecmp(name, "connection") == 0) {
		head->connections++;
		head->is_wrong |= !has_word(value, "upgrade");
	} else if (strcasecmp(name, "sec-websocket-accept") == 0) {
		head->accepts++;
		head->is_wrong |= strcmp(value, head->accept) != 0;
	} else if (strcasecmp(name, "sec-websocket-protocol") == 0) {
		head->protocols++;
		head->is_wrong |= strcmp(value, head->protocol) != 0;
	} else if (strcasecmp(name, "sec-websocket-extensions") == 0) {
		head->is_wrong = true; /* none was offered */
	} else if (strcasecmp(name, "content-length") == 0 &&
		   number_parse(value, 0, SIZE_MAX / 2, &number) == 0) {
		head->body_len = (size_t)number;
	}
}

/* The header lines of text, which is cut up: 0, or -EPROTO. */
static int read_headers(char *text, struct head *head)
{
	char *rest = text;

	while (*rest) {
		char *line = rest;
		char *end = strstr(rest, "\r\n");
		char *colon;
		char *value;

		if (!end)
			return -EPROTO;
		*end = '\0';
		rest = end + 2;
		colon = strchr(line, ':');
		if (!colon || colon == line || line[0] == ' ' || line[0] == '\t')
			return -EPROTO;
		*colon = '\0';
		value = colon + 1 + strspn(colon + 1, " \t");
		while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
			*--end = '\0';
		read_header(head, line, value);
	}
	return 0;
}

static int read_status(const char *line, long *ret)
{
	if (strncmp(line, "HTTP/1.1 ", 9) != 0 || strspn(line + 9, "0123456789") != 3 ||
		(line[12] != ' ' && line[12] != '\r'))
		return -EPROTO;
	*ret = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
	return 0;
}

int upgrade_parse(const char *bytes, size_t len, const char *key, const char *protocol,
	struct upgrade_answer *ret)
{
	const char *end = memmem(bytes, len, "\r\n\r\n", 4);
	char accept[ACCEPT_LEN + 1];
	struct head head = {.accept = accept, .protocol = protocol};
	auto_free char *text = NULL;
	long status;

	if (!end)
		return len < UPGRADE_HEAD_MAX ? UPGRADE_MORE : -EPROTO;
	text = mem_printf("%.*s", (int)(end + 2 - bytes), bytes);
	expected_accept(key, accept);
	/* A NUL byte inside would hide what is behind it. */
	if (strlen(text) != (size_t)(end + 2 - bytes) || read_status(text, &status) < 0 ||
		read_headers(strstr(text, "\r\n") + 2, &head) < 0 ||
		(status < 200 && status != 101))
		return -EPROTO;
	if (status == 101 && (head.is_wrong || head.upgrades != 1 || head.connections != 1 ||
				     head.accepts != 1 || head.protocols != 1))
		return -EPROTO;
	/* A plain page is no refusal that could be shown. */
	if (status >= 200 && status < 300)
		return -EPROTO;
	*ret = (struct upgrade_answer){
		.status = status,
		.head_len = (size_t)(end + 4 - bytes),
		.body_len = head.body_len,
	};
	return status == 101 ? UPGRADE_DONE : UPGRADE_REFUSED;
}
