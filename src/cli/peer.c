/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/peer.h"

#include "cli/curl_auto.h"
#include "cli/note.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS 10000L

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
	r = set_url(peer, address->url, err);
	if (r < 0)
		return r;
	peer->ca_file = copy(address->ca_file);
	peer->pin = copy(address->pin);
	peer->note_path = copy(address->note_path);
	return credential_find(
		token, peer->is_loopback && !address->is_guess, &peer->credential, err);
}

void peer_copy(struct peer *peer, const struct peer *from)
{
	*peer = *from;
	peer->url = mem_strdup(from->url);
	peer->ca_file = copy(from->ca_file);
	peer->pin = copy(from->pin);
	peer->note_path = copy(from->note_path);
}

void peer_fini(struct peer *peer)
{
	credential_fini(&peer->credential);
	free(peer->url);
	free(peer->ca_file);
	free(peer->pin);
	free(peer->note_path);
}

/*
 * By whom the daemon's certificate must be signed; or, if we were told its key, that it has this one, or the one that it
 * has written down since: a command may last longer than a certificate.
 */
static void set_trust(const struct peer *peer, CURL *easy)
{
	const char *pin = peer->pin;
	struct note note;

	if (peer->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, peer->ca_file);
	if (!pin)
		return;
	if (peer->note_path && note_read(peer->note_path, &note) > 0 && note.pin[0])
		pin = note.pin;
	curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, pin);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
}

void peer_set_address(const struct peer *peer, void *easy, const char *path)
{
	auto_free char *url = mem_printf("%s%s", peer->url, path);

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	set_trust(peer, easy);
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
		return err_explain(err, ERR_UNAVAILABLE, "unreachable",
			"start it with \"sandlotd\" or \"make run\"",
			"cannot reach the daemon at %s: is it running?", peer->url);
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(
			err, ERR_TIMEOUT, "the daemon at %s did not answer in time", peer->url);
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE:
		return err_explain(err, ERR_UNAVAILABLE, "connection_lost", NULL,
			"the daemon at %s closed the connection before the end", peer->url);
	case CURLE_PEER_FAILED_VERIFICATION:
		return err_explain(err, ERR_DENIED, "untrusted_certificate",
			"use the name it is made out for; tell who signed it with --ca-file or "
			"SANDLOT_CA_FILE",
			"the certificate of the daemon at %s cannot be trusted: %s", peer->url,
			detail);
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		return err_explain(err, ERR_DENIED, "untrusted_certificate", NULL,
			"what answers at %s is not the daemon that wrote this address down",
			peer->url);
	case CURLE_SSL_CACERT_BADFILE:
		return err_explain(err, ERR_INVALID, "bad_ca_file",
			"--ca-file or SANDLOT_CA_FILE names a file with certificates, as PEM",
			"%s cannot be used: %s", peer->ca_file ? peer->ca_file : "the CA file",
			detail);
	case CURLE_SSL_CONNECT_ERROR:
		return err_explain(err, ERR_UNAVAILABLE, "no_tls",
			"if it speaks plain HTTP, use http:// in the address",
			"no TLS connection with the daemon at %s: %s", peer->url, detail);
	default:
		return err_set(err, ERR_INTERNAL, "request to %s: %s", peer->url,
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
			"the daemon at %s asks for a token and none was found (%s)", peer->url,
			peer->credential.origin);
	return err_explain(err, ERR_UNAUTHENTICATED, NULL,
		"the daemon keeps its own in <data-dir>/token: set SANDLOT_TOKEN or "
		"SANDLOT_DATA_DIR to "
		"match",
		"the daemon at %s refused the token from %s%s%s", peer->url,
		peer->credential.origin, message[0] ? ": " : "", message);
}

int peer_refusal(
	const struct peer *peer, long status, const char *text, size_t len, struct err *err)
{
	json_auto_t *document = json_loadb(text, len, 0, NULL);
	const json_t *error = json_object_get(document, "error");
	enum err_kind kind = kind_of_status(status);
	const char *request_id = member(error, "request_id");
	const char *message = member(error, "message");

	if (status < 400)
		return err_explain(err, ERR_INVALID, "redirected",
			"give the final address with --url",
			"%s answers with a redirect (%ld), which is not followed", peer->url,
			status);
	if (status == 401)
		return refused_token(peer, message, err);
	if (!message[0])
		return err_explain(err, kind, NULL, "is another program listening there?",
			"%s answered with status %ld and no explanation", peer->url, status);
	return err_explain(err, kind, member(error, "code")[0] ? member(error, "code") : NULL,
		member(error, "remediation"), "%s%s%s%s", message,
		kind == ERR_INTERNAL && request_id[0] ? " (request " : "",
		kind == ERR_INTERNAL ? request_id : "",
		kind == ERR_INTERNAL && request_id[0] ? ")" : "");
}
