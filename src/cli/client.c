/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/credential.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define READ_AHEAD_MAX	   (512u * 1024) /* when to pause the transfer */
#define DOCUMENT_MAX	   (64u * 1024 * 1024)
#define ERROR_DOCUMENT_MAX (64u * 1024)
#define CONNECT_TIMEOUT_MS 10000L
#define POLL_MS		   60000
#define DRAIN_MS	   100

struct client {
	CURLM *multi;
	CURL *easy;
	char *url, *ca_file, *pin; /* the last two may be NULL */
	struct credential credential;
	bool is_loopback;

	/* The request under way. */
	bool is_open;
	bool has_head;
	bool is_done;
	bool is_paused;
	CURLcode result;
	long status;
	struct curl_slist *headers;
	char *body;
	const struct client_source *source;
	struct err source_err;
	struct buf incoming;
	size_t taken; /* bytes of incoming that were read already */
	char detail[CURL_ERROR_SIZE];

	int signal_fd;
	bool watches_signals;
	int signal;

	int wake_fd;
	int wake_ms;
};

const char *client_url(const struct client *client)
{
	return client->url;
}

int client_signal(const struct client *client)
{
	return client->signal;
}

/* By number, not by spelling: "127.example.org" is a name like any other. */
static bool is_loopback_host(const char *host)
{
	struct in_addr address;

	if (inet_pton(AF_INET, host, &address) == 1)
		return ntohl(address.s_addr) >> 24 == 127;
	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

static void url_cleanup(CURLU **urlp)
{
	curl_url_cleanup(*urlp);
}

static void curl_freep(char **textp)
{
	curl_free(*textp);
}

/* http or https, a host, no user name: nothing else is an address of the daemon. */
static int check_url(struct client *client, const char *url, bool *ret_tls, struct err *err)
{
	auto_(url_cleanup) CURLU *parsed = curl_url();
	auto_(curl_freep) char *scheme = NULL;
	auto_(curl_freep) char *host = NULL;
	auto_(curl_freep) char *user = NULL;
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
	client->url = mem_printf("%.*s", (int)len, url);
	client->is_loopback = is_loopback_host(host);
	*ret_tls = strcmp(scheme, "https") == 0;
	return 0;
}

static struct client *allocate(void)
{
	struct client *client = mem_new(sizeof(*client));

	client->incoming = BUF_INIT(READ_AHEAD_MAX + CURL_MAX_WRITE_SIZE);
	client->signal_fd = client->wake_fd = client->wake_ms = -1;
	return client;
}

static int open_handles(struct client *client, struct err *err)
{
	client->multi = curl_multi_init();
	client->easy = curl_easy_init();
	if (!client->multi || !client->easy)
		return err_set(err, ERR_INTERNAL, "cannot start libcurl");
	return 0;
}

static char *copy(const char *text)
{
	return text && text[0] ? mem_strdup(text) : NULL;
}

int client_new(const struct client_address *address, const char *token, struct client **ret,
	struct err *err)
{
	auto_(client_freep) struct client *client = allocate();
	bool tls;
	int r;

	r = check_url(client, address->url, &tls, err);
	if (r < 0)
		return r;
	client->ca_file = copy(address->ca_file);
	client->pin = copy(address->pin);
	r = credential_find(
		token, client->is_loopback && !address->is_guess, &client->credential, err);
	if (r < 0)
		return r;
	/* Without TLS there is no reason to wake OpenSSL up: it costs more than the request. */
	if (curl_global_init(tls ? CURL_GLOBAL_SSL : CURL_GLOBAL_NOTHING) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "cannot start libcurl");
	r = open_handles(client, err);
	if (r < 0)
		return r;
	*ret = take_ptr(&client);
	return 0;
}

int client_clone(const struct client *from, struct client **ret, struct err *err)
{
	auto_(client_freep) struct client *client = allocate();
	int r = open_handles(client, err);

	if (r < 0)
		return r;
	client->url = mem_strdup(from->url);
	client->ca_file = copy(from->ca_file);
	client->pin = copy(from->pin);
	client->credential = from->credential;
	client->is_loopback = from->is_loopback;
	*ret = take_ptr(&client);
	return 0;
}

void client_free(struct client *client)
{
	if (!client)
		return;
	client_close(client);
	curl_easy_cleanup(client->easy);
	curl_multi_cleanup(client->multi);
	credential_fini(&client->credential);
	buf_fini(&client->incoming);
	fd_close(client->signal_fd);
	free(client->url);
	free(client->ca_file);
	free(client->pin);
	free(client);
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct client *client = arg;
	size_t len = size * count;

	if (client->incoming.len - client->taken >= READ_AHEAD_MAX) {
		client->is_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (client->taken > 0) {
		buf_consume(&client->incoming, client->taken);
		client->taken = 0;
	}
	return buf_append(&client->incoming, data, len) < 0 ? 0 : len;
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
	struct client *client = arg;
	size_t len = size * count;
	long status = 0;

	/* The empty line ends a head; that of a 1xx answer is followed by the real one. */
	if (len <= 2 && (line[0] == '\r' || line[0] == '\n')) {
		curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
		client->has_head = status >= 200;
	}
	return len;
}

static size_t on_source(char *data, size_t size, size_t count, void *arg)
{
	struct client *client = arg;
	ssize_t n =
		client->source->read(client->source->arg, data, size * count, &client->source_err);

	return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

static void add_header(struct client *client, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void add_header(struct client *client, const char *fmt, ...)
{
	char line[CREDENTIAL_MAX + 64];
	struct curl_slist *list;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	list = curl_slist_append(client->headers, line);
	explicit_bzero(line, sizeof(line));
	if (!list)
		abort();
	client->headers = list;
}

static void add_idempotency_key(struct client *client)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return;
	add_header(client, "Idempotency-Key: %016llx%016llx", (unsigned long long)random[0],
		(unsigned long long)random[1]);
}

static void set_headers(struct client *client, const struct client_call *call)
{
	add_header(client, "Accept: %s", call->accept ? call->accept : "application/json");
	if (client->credential.token[0])
		add_header(client, "Authorization: Bearer %s", client->credential.token);
	if (call->body)
		add_header(client, "Content-Type: application/json");
	if (call->source)
		add_header(client, "Content-Type: %s", call->source->type);
	if (call->is_create)
		add_idempotency_key(client);
	/* Waiting for "100 Continue" would cost a large upload up to a second. */
	add_header(client, "Expect:");
	curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, client->headers);
}

static void set_body(struct client *client, const struct client_call *call)
{
	CURL *easy = client->easy;

	if (call->source) {
		client->source = call->source;
		curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_source);
		curl_easy_setopt(easy, CURLOPT_READDATA, client);
		curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->source->size);
	} else if (call->body) {
		client->body = json_dumps(call->body, JSON_COMPACT);
		if (!client->body)
			abort();
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, client->body);
		curl_easy_setopt(
			easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(client->body));
	} else if (strcmp(call->method, "POST") == 0) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L);
	}
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
}

/* By whom the daemon's certificate must be signed; or, if we were told its key, that it has this one. */
static void set_trust(const struct client *client, CURL *easy)
{
	if (client->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
	if (!client->pin)
		return;
	curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, client->pin);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
}

/* What all that goes to the daemon has in common. */
static void set_address(const struct client *client, CURL *easy, const char *path)
{
	auto_free char *url = mem_printf("%s%s", client->url, path);

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	set_trust(client, easy);
	/* http_proxy is meant for the world outside; it would get the token of the local daemon. */
	if (client->is_loopback)
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

void *client_handle(const struct client *client)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		abort();
	set_address(client, easy, "/");
	return easy;
}

void client_authorization(const struct client *client, char *line, size_t size)
{
	line[0] = '\0';
	if (client->credential.token[0])
		snprintf(line, size, "Authorization: Bearer %s\r\n", client->credential.token);
}

static void prepare(struct client *client, const struct client_call *call)
{
	CURL *easy = client->easy;

	curl_easy_reset(easy);
	set_address(client, easy, call->path);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "sandlot/" SANDLOT_VERSION);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->detail);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
	set_headers(client, call);
	set_body(client, call);
}

void client_close(struct client *client)
{
	if (client->is_open)
		curl_multi_remove_handle(client->multi, client->easy);
	curl_slist_free_all(client->headers);
	free(client->body);
	client->is_open = false;
	client->has_head = false;
	client->is_done = false;
	client->is_paused = false;
	client->result = CURLE_OK;
	client->status = 0;
	client->headers = NULL;
	client->body = NULL;
	client->source = NULL;
	client->source_err = (struct err){0};
	client->incoming.len = 0;
	client->incoming.failed = false;
	client->taken = 0;
	client->wake_fd = client->wake_ms = -1;
	client->detail[0] = '\0';
}

int client_failure(const struct client *client, int curl_code, const char *detail, struct err *err)
{
	switch (curl_code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		return err_explain(err, ERR_UNAVAILABLE, "unreachable",
			"start it with \"sandlotd\" or \"make run\"",
			"cannot reach the daemon at %s: is it running?", client->url);
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(
			err, ERR_TIMEOUT, "the daemon at %s did not answer in time", client->url);
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE:
		return err_explain(err, ERR_UNAVAILABLE, "connection_lost", NULL,
			"the daemon at %s closed the connection before the end", client->url);
	case CURLE_PEER_FAILED_VERIFICATION:
		return err_explain(err, ERR_DENIED, "untrusted_certificate",
			"use the name it is made out for; tell who signed it with --ca-file or "
			"SANDLOT_CA_FILE",
			"the certificate of the daemon at %s cannot be trusted: %s", client->url,
			detail);
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		return err_explain(err, ERR_DENIED, "untrusted_certificate", NULL,
			"what answers at %s is not the daemon that wrote this address down",
			client->url);
	case CURLE_SSL_CACERT_BADFILE:
		return err_explain(err, ERR_INVALID, "bad_ca_file",
			"--ca-file or SANDLOT_CA_FILE names a file with certificates, as PEM",
			"%s cannot be used: %s", client->ca_file ? client->ca_file : "the CA file",
			detail);
	case CURLE_SSL_CONNECT_ERROR:
		return err_explain(err, ERR_UNAVAILABLE, "no_tls",
			"if it speaks plain HTTP, use http:// in the address",
			"no TLS connection with the daemon at %s: %s", client->url, detail);
	default:
		return err_set(err, ERR_INTERNAL, "request to %s: %s", client->url,
			detail[0] ? detail : curl_easy_strerror((CURLcode)curl_code));
	}
}

static int transfer_error(const struct client *client, struct err *err)
{
	return client_failure(client, client->result, client->detail, err);
}

int client_check_signal(struct client *client, struct err *err)
{
	struct signalfd_siginfo info;

	if (!client->watches_signals ||
		read(client->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	client->signal = (int)info.ssi_signo;
	err_explain(err, ERR_UNAVAILABLE, "interrupted", NULL, "interrupted");
	return -EINTR;
}

int client_signal_fd(const struct client *client)
{
	return client->watches_signals ? client->signal_fd : -1;
}

int client_wait(struct client *client, int fd, short events, int wait_ms, struct err *err)
{
	struct pollfd fds[2] = {
		{.fd = fd, .events = events},
		{.fd = client_signal_fd(client), .events = POLLIN},
	};
	uint64_t deadline_ms = clock_steady_ms() + (uint64_t)wait_ms;
	int r;

	for (;;) {
		uint64_t now_ms = clock_steady_ms();

		if (now_ms >= deadline_ms)
			return 0;
		if (poll(fds, 2, (int)(deadline_ms - now_ms)) <= 0)
			continue;
		r = client_check_signal(client, err);
		if (r < 0)
			return r;
		if (fds[0].revents)
			return 1;
	}
}

void client_wake(struct client *client, int fd, int wait_ms)
{
	client->wake_fd = fd;
	client->wake_ms = wait_ms;
}

/* Moves the transfer on; waits if there is nothing to do. */
static int pump(struct client *client, int poll_ms, struct err *err)
{
	struct curl_waitfd extra[2];
	unsigned extra_count = 0;
	size_t before = client->incoming.len - client->taken;
	bool had_head = client->has_head;
	int running = 0;
	CURLMsg *message;
	int left;
	int r;

	if (curl_multi_perform(client->multi, &running) != CURLM_OK)
		return err_set(err, ERR_INTERNAL, "libcurl failed");
	message = curl_multi_info_read(client->multi, &left);
	if (message && message->msg == CURLMSG_DONE) {
		client->is_done = true;
		client->result = message->data.result;
		return 0;
	}
	/* Output that never pauses must not keep the signal waiting. */
	r = client_check_signal(client, err);
	if (r < 0)
		return r;
	if (client->has_head != had_head || client->incoming.len - client->taken != before)
		return 0;
	if (client->watches_signals)
		extra[extra_count++] =
			(struct curl_waitfd){.fd = client->signal_fd, .events = CURL_WAIT_POLLIN};
	if (client->wake_fd >= 0)
		extra[extra_count++] =
			(struct curl_waitfd){.fd = client->wake_fd, .events = CURL_WAIT_POLLIN};
	if (curl_multi_poll(client->multi, extra, extra_count, poll_ms, NULL) != CURLM_OK)
		return err_set(err, ERR_INTERNAL, "libcurl failed");
	return 0;
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

static int refused_token(const struct client *client, const char *message, struct err *err)
{
	if (!client->credential.token[0])
		return err_explain(err, ERR_UNAUTHENTICATED, NULL,
			"set SANDLOT_TOKEN, or read <data-dir>/token as the user who runs sandlotd "
			"(sudo sandlot ...)",
			"the daemon at %s asks for a token and none was found (%s)", client->url,
			client->credential.origin);
	return err_explain(err, ERR_UNAUTHENTICATED, NULL,
		"the daemon keeps its own in <data-dir>/token: set SANDLOT_TOKEN or "
		"SANDLOT_DATA_DIR to "
		"match",
		"the daemon at %s refused the token from %s%s%s", client->url,
		client->credential.origin, message[0] ? ": " : "", message);
}

int client_refusal(
	const struct client *client, long status, const char *text, size_t len, struct err *err)
{
	json_auto_t *document = json_loadb(text, len, 0, NULL);
	const json_t *error = json_object_get(document, "error");
	enum err_kind kind = kind_of_status(status);
	const char *request_id = member(error, "request_id");
	const char *message = member(error, "message");

	if (status < 400)
		return err_explain(err, ERR_INVALID, "redirected",
			"give the final address with --url",
			"%s answers with a redirect (%ld), which is not followed", client->url,
			status);
	if (status == 401)
		return refused_token(client, message, err);
	if (!message[0])
		return err_explain(err, kind, NULL, "is another program listening there?",
			"%s answered with status %ld and no explanation", client->url, status);
	return err_explain(err, kind, member(error, "code")[0] ? member(error, "code") : NULL,
		member(error, "remediation"), "%s%s%s%s", message,
		kind == ERR_INTERNAL && request_id[0] ? " (request " : "",
		kind == ERR_INTERNAL ? request_id : "",
		kind == ERR_INTERNAL && request_id[0] ? ")" : "");
}

/* Reads the rest of the answer; past max it fails. */
static int read_whole(struct client *client, struct buf *ret, struct err *err)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = client_read(client, chunk, sizeof(chunk), err);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return 0;
		if (buf_append(ret, chunk, (size_t)n) < 0)
			return err_set(err, ERR_TOO_LARGE,
				"the answer of %s is larger than %zu bytes", client->url, ret->max);
	}
}

int client_open(struct client *client, const struct client_call *call, struct err *err)
{
	auto_(buf_fini) struct buf document = BUF_INIT(ERROR_DOCUMENT_MAX);
	int r;

	client_close(client);
	prepare(client, call);
	if (curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
		return err_set(err, ERR_INTERNAL, "libcurl failed");
	client->is_open = true;
	while (!client->has_head && !client->is_done) {
		r = pump(client, POLL_MS, err);
		if (r < 0)
			goto fail;
	}
	if (!client->has_head && client->source_err.kind != ERR_NONE) {
		*err = client->source_err;
		r = -err_class(err->kind)->errnum;
		goto fail;
	}
	if (!client->has_head) {
		r = transfer_error(client, err);
		goto fail;
	}
	curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &client->status);
	if (client->status < 300)
		return 0;
	/* Whatever of the document can be had; the status alone says enough. */
	if (read_whole(client, &document, err) < 0 && client->signal) {
		r = -EINTR;
		goto fail;
	}
	r = client_refusal(client, client->status, (const char *)document.data, document.len, err);
fail:
	client_close(client);
	return r;
}

long client_status(const struct client *client)
{
	return client->status;
}

int64_t client_size(const struct client *client)
{
	curl_off_t size = -1;

	curl_easy_getinfo(client->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
	return size;
}

static bool is_readable(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&in, 1, 0) > 0;
}

ssize_t client_read(struct client *client, void *data, size_t size, struct err *err)
{
	int wait_ms = client->wake_ms >= 0 ? client->wake_ms : POLL_MS;
	uint64_t deadline_ms = clock_steady_ms() + (uint64_t)wait_ms;
	size_t len;

	while (client->incoming.len == client->taken && !client->is_done) {
		int r;

		if (client->is_paused) {
			client->is_paused = false;
			curl_easy_pause(client->easy, CURLPAUSE_CONT);
		}
		r = pump(client, wait_ms, err);
		if (r < 0)
			return r;
		if (client->incoming.len > client->taken || client->is_done)
			break;
		if (is_readable(client->wake_fd) ||
			(client->wake_ms >= 0 && clock_steady_ms() >= deadline_ms))
			return CLIENT_WOKEN;
	}
	len = client->incoming.len - client->taken;
	if (len == 0) {
		if (client->source_err.kind != ERR_NONE) {
			*err = client->source_err;
			return -err_class(err->kind)->errnum;
		}
		return client->result == CURLE_OK ? 0 : transfer_error(client, err);
	}
	if (len > size)
		len = size;
	memcpy(data, client->incoming.data + client->taken, len);
	client->taken += len;
	return (ssize_t)len;
}

void client_drain(struct client *client)
{
	uint64_t deadline_ms = clock_steady_ms() + DRAIN_MS;
	struct err ignored;

	client->wake_fd = client->wake_ms = -1;
	while (!client->is_done) {
		uint64_t now_ms = clock_steady_ms();

		client->taken = client->incoming.len;
		if (now_ms >= deadline_ms ||
			pump(client, (int)(deadline_ms - now_ms), &ignored) < 0)
			return;
	}
}

int client_json(
	struct client *client, const struct client_call *call, json_t **ret, struct err *err)
{
	auto_(buf_fini) struct buf text = BUF_INIT(DOCUMENT_MAX);
	json_t *document = NULL;
	int r = client_open(client, call, err);

	if (r < 0)
		return r;
	r = read_whole(client, &text, err);
	client_close(client);
	if (r < 0)
		return r;
	if (!ret)
		return 0;
	if (text.len > 0) {
		document = json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL, NULL);
		if (!document)
			return err_explain(err, ERR_INTERNAL, NULL,
				"is another program listening there?",
				"%s answered with something that is not JSON", client->url);
	}
	*ret = document;
	return 0;
}

int client_hold_signals(struct client *client, struct err *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < array_len(signals); i++) {
		struct sigaction now;

		/* What nohup or a shell's "&" made us ignore stays ignored; a blocked signal would
		 * be queued all the same. */
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&set, signals[i]);
	}
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, "hold signals");
	client->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (client->signal_fd < 0)
		return err_sys(err, "hold signals");
	return 0;
}

void client_watch_signals(struct client *client, bool watch)
{
	client->watches_signals = watch && client->signal_fd >= 0;
}
