/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/peer.h"

#include "cli/remote/curl_auto.h"
#include "cli/remote/hint.h"
#include "cli/remote/local_daemon.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS 10000L
#define LOCAL_URL	   "http://localhost" /* as the daemon is called on its socket */
#define PLAIN_LINE_MAX	   200

/* By number, not by spelling: "127.example.org" is a name like any other. */
static bool is_loopback_host(const char *host)
{
	struct in_addr address;

	if (inet_pton(AF_INET, host, &address) == 1)
		return ntohl(address.s_addr) >> 24 == 127;
	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* http or https, a host, no user name: nothing else is an address of the daemon. */
static int set_url(struct peer *peer, const char *url, struct err *err)
{
	auto_(curl_auto_url) CURLU *parsed = curl_url();
	auto_(curl_auto_text) char *scheme = NULL;
	auto_(curl_auto_text) char *host = NULL;
	auto_(curl_auto_text) char *user = NULL;
	size_t len = strlen(url);

	if (!parsed)
		abort();
	if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
		curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
		curl_url_get(parsed, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
		(strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) || strpbrk(url, "?#"))
		return err_explain(err, ERR_INVALID, NULL,
			"give one such as http://127.0.0.1:9090 with --url or SANDLOT_URL",
			"\"%s\" is not an address of a daemon", url);
	if (curl_url_get(parsed, CURLUPART_USER, &user, 0) == CURLUE_OK)
		return err_explain(err, ERR_INVALID, NULL, "put the token into SANDLOT_TOKEN",
			"the address of the daemon must not carry a user or password");
	while (len > 0 && url[len - 1] == '/')
		len--;
	peer->url = mem_printf("%.*s", (int)len, url);
	peer->is_loopback = is_loopback_host(host);
	peer->has_tls = strcmp(scheme, "https") == 0;
	return 0;
}

static char *copy(const char *text)
{
	return text && text[0] ? mem_strdup(text) : NULL;
}

int peer_init(
	struct peer *peer, const struct peer_address *address, const char *token, struct err *err)
{
	int r;

	*peer = (struct peer){0};
	r = set_url(peer, address->data_dir ? LOCAL_URL : address->url, err);
	if (r < 0)
		return r;
	peer->data_dir = copy(address->data_dir);
	peer->socket = peer->data_dir ? local_daemon_socket(peer->data_dir) : NULL;
	peer->name = peer->socket ? mem_printf("unix:%s", peer->socket) : mem_strdup(peer->url);
	peer->ca_file = copy(address->ca_file);
	return credential_find(token, peer->data_dir, &peer->credential, err);
}

void peer_copy(struct peer *peer, const struct peer *from)
{
	*peer = *from;
	peer->url = mem_strdup(from->url);
	peer->name = mem_strdup(from->name);
	peer->data_dir = copy(from->data_dir);
	peer->socket = copy(from->socket);
	peer->ca_file = copy(from->ca_file);
}

void peer_fini(struct peer *peer)
{
	credential_fini(&peer->credential);
	free(peer->url);
	free(peer->name);
	free(peer->data_dir);
	free(peer->socket);
	free(peer->ca_file);
}

int peer_check(const struct peer *peer, struct err *err)
{
	return peer->data_dir ? local_daemon_check(peer->data_dir, err) : 0;
}

char *peer_path(const struct peer *peer, const char *path)
{
	static const char sandboxes[] = "/v1/sandboxes/";
	bool is_below = strncmp(path, sandboxes, strlen(sandboxes)) == 0 &&
			strchr(path + strlen(sandboxes), '/');

	if (!peer->member || !is_below)
		return mem_strdup(path);
	return mem_printf("%s%smember=%s", path, strchr(path, '?') ? "&" : "?", peer->member);
}

void peer_set_address(const struct peer *peer, void *easy, const char *path)
{
	auto_free char *whole = peer_path(peer, path);
	auto_free char *url = mem_printf("%s%s", peer->url, whole);

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	if (peer->socket)
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, peer->socket);
	if (peer->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, peer->ca_file);
	/* http_proxy is meant for the world outside; it would get the token of the local daemon. */
	if (peer->is_loopback)
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

void *peer_handle(const struct peer *peer)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		abort();
	peer_set_address(peer, easy, "/");
	return easy;
}

void peer_authorization(const struct peer *peer, char *line, size_t size)
{
	line[0] = '\0';
	if (peer->credential.token[0])
		snprintf(line, size, "Authorization: Bearer %s\r\n", peer->credential.token);
}

int peer_failure(const struct peer *peer, int curl_code, const char *detail, struct err *err)
{
	switch (curl_code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		if (peer->data_dir)
			return local_daemon_explain(peer->data_dir, err);
		return err_explain(err, ERR_UNAVAILABLE, "unreachable", LOCAL_DAEMON_START,
			"cannot reach the daemon at %s: is it running?", peer->name);
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(
			err, ERR_TIMEOUT, "the daemon at %s did not answer in time", peer->name);
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE:
		return err_explain(err, ERR_UNAVAILABLE, "connection_lost", NULL,
			"the daemon at %s closed the connection before the end", peer->name);
	case CURLE_PEER_FAILED_VERIFICATION:
		return err_explain(err, ERR_DENIED, "untrusted_certificate",
			"use the name it is made out for; tell who signed it with --ca-file or "
			"SANDLOT_CA_FILE",
			"the certificate of the daemon at %s cannot be trusted: %s", peer->name,
			detail);
	case CURLE_SSL_CACERT_BADFILE:
		return err_explain(err, ERR_INVALID, "bad_ca_file",
			"--ca-file or SANDLOT_CA_FILE names a file with certificates, as PEM",
			"%s cannot be used: %s", peer->ca_file ? peer->ca_file : "the CA file",
			detail);
	case CURLE_SSL_CONNECT_ERROR:
		return err_explain(err, ERR_UNAVAILABLE, "no_tls",
			"if it speaks plain HTTP, use http:// in the address",
			"no TLS connection with the daemon at %s: %s", peer->name, detail);
	default:
		return err_set(err, ERR_INTERNAL, "request to %s: %s", peer->name,
			detail[0] ? detail : curl_easy_strerror((CURLcode)curl_code));
	}
}

static const char *member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static enum err_kind kind_of_status(long status)
{
	for (int kind = ERR_NONE + 1; kind < ERR_KIND_COUNT; kind++) {
		if (err_class((enum err_kind)kind)->http_status == status)
			return (enum err_kind)kind;
	}
	if (status == 502)
		return ERR_UNAVAILABLE;
	return status >= 500 ? ERR_INTERNAL : ERR_INVALID;
}

static int refused_token(const struct peer *peer, const char *message, struct err *err)
{
	if (!peer->credential.token[0])
		return err_explain(err, ERR_UNAUTHENTICATED, NULL,
			"set SANDLOT_TOKEN, or read <data-dir>/token as the user who runs sandlotd "
			"(sudo sandlot ...)",
			"the daemon at %s asks for a token and none was found (%s)", peer->name,
			peer->credential.origin);
	return err_explain(err, ERR_UNAUTHENTICATED, NULL,
		"the daemon keeps its own in <data-dir>/token: set SANDLOT_TOKEN or "
		"SANDLOT_DATA_DIR to "
		"match",
		"the daemon at %s refused the token from %s%s%s", peer->name,
		peer->credential.origin, message[0] ? ": " : "", message);
}

/* The first line of an answer that is no document, if a terminal can show it: /readyz answers so. */
static void read_line(const char *text, size_t len, char line[PLAIN_LINE_MAX])
{
	size_t n = 0;

	while (n < len && n < PLAIN_LINE_MAX - 1 && text[n] >= ' ' && text[n] <= '~')
		n++;
	if (n < len && text[n] != '\n')
		n = 0;
	memcpy(line, text, n);
	line[n] = '\0';
}

int peer_refusal(
	const struct peer *peer, long status, const char *text, size_t len, struct err *err)
{
	json_auto_t *document = json_loadb(text, len, 0, NULL);
	const json_t *error = json_object_get(document, "error");
	enum err_kind kind = kind_of_status(status);
	const char *request_id = member(error, "request_id");
	const char *message = member(error, "message");
	char line[PLAIN_LINE_MAX];
	char hint[sizeof(err->remedy)], said[sizeof(err->message)];

	if (status < 400)
		return err_explain(err, ERR_INVALID, "redirected",
			"give the final address with --url",
			"%s answers with a redirect (%ld), which is not followed", peer->name,
			status);
	if (status == 401)
		return refused_token(peer, message, err);
	read_line(text, len, line);
	if (!document && line[0] && status == 503)
		return err_set(err, kind, "%s", line);
	if (!message[0])
		return err_explain(err, kind, NULL, "is another program listening there?",
			"%s answered with status %ld and no explanation", peer->name, status);
	hint_from_remedy(member(error, "remediation"), hint, sizeof(hint));
	hint_from_message(message, said, sizeof(said));
	if (peer->sandbox_name[0]) {
		hint_replace(said, sizeof(said), peer->sandbox_id, peer->sandbox_name);
		hint_replace(hint, sizeof(hint), peer->sandbox_id, peer->sandbox_name);
		hint_replace(hint, sizeof(hint), "ID", peer->sandbox_name);
	}
	return err_explain(err, kind, member(error, "code")[0] ? member(error, "code") : NULL, hint,
		"%s%s%s%s", said, kind == ERR_INTERNAL && request_id[0] ? " (request " : "",
		kind == ERR_INTERNAL ? request_id : "",
		kind == ERR_INTERNAL && request_id[0] ? ")" : "");
}
