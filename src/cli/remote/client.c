/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/format.h"
#include "cli/remote/peer.h"
#include "cli/terminal/input/question.h"
#include "cli/terminal/interrupt.h"
#include "cli/text/note.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define READ_AHEAD_MAX	   (512u * 1024) /* when to pause the transfer */
#define DOCUMENT_MAX	   (64u * 1024 * 1024)
#define ERROR_DOCUMENT_MAX (64u * 1024)
#define POLL_MS		   60000
#define DRAIN_MS	   100

struct client {
	CURLM *multi;
	CURL *easy;
	struct peer peer;

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
	bool means_all;
	char confirmation[32]; /* the code that would confirm what was refused last, or "" */
	struct buf incoming;
	size_t taken; /* bytes of incoming that were read already */
	char detail[CURL_ERROR_SIZE];

	struct interrupt interrupt;
	int wake_fd;
	int wake_ms;
};

const char *client_url(const struct client *client)
{
	return client->peer.name;
}

const struct peer *client_peer(const struct client *client)
{
	return &client->peer;
}

struct interrupt *client_interrupt(struct client *client)
{
	return &client->interrupt;
}

static struct client *allocate(void)
{
	struct client *client = mem_new(sizeof(*client));

	client->incoming = BUF_INIT(READ_AHEAD_MAX + CURL_MAX_WRITE_SIZE);
	client->interrupt = INTERRUPT_NONE;
	client->wake_fd = client->wake_ms = -1;
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

int client_new(
	const struct peer_address *address, const char *token, struct client **ret, struct err *err)
{
	auto_(client_freep) struct client *client = allocate();
	int r;

	r = peer_init(&client->peer, address, token, err);
	if (r < 0)
		return r;
	/* Without TLS there is no reason to wake OpenSSL up: it costs more than the request. */
	if (curl_global_init(client->peer.has_tls ? CURL_GLOBAL_SSL : CURL_GLOBAL_NOTHING) !=
		CURLE_OK)
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
	peer_copy(&client->peer, &from->peer);
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
	buf_fini(&client->incoming);
	interrupt_fini(&client->interrupt);
	peer_fini(&client->peer);
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
	if (client->peer.credential.token[0])
		add_header(client, "Authorization: Bearer %s", client->peer.credential.token);
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
		client->body = json_dumps(call->body, JSON_COMPACT | JSON_ENCODE_ANY);
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

static void prepare(struct client *client, const struct client_call *call)
{
	CURL *easy = client->easy;

	curl_easy_reset(easy);
	peer_set_address(&client->peer, easy, call->path);
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

static int transfer_error(const struct client *client, struct err *err)
{
	return peer_failure(&client->peer, client->result, client->detail, err);
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
	r = interrupt_check(&client->interrupt, err);
	if (r < 0)
		return r;
	if (client->has_head != had_head || client->incoming.len - client->taken != before)
		return 0;
	if (interrupt_fd(&client->interrupt) >= 0)
		extra[extra_count++] = (struct curl_waitfd){
			.fd = interrupt_fd(&client->interrupt), .events = CURL_WAIT_POLLIN};
	if (client->wake_fd >= 0)
		extra[extra_count++] =
			(struct curl_waitfd){.fd = client->wake_fd, .events = CURL_WAIT_POLLIN};
	if (curl_multi_poll(client->multi, extra, extra_count, poll_ms, NULL) != CURLM_OK)
		return err_set(err, ERR_INTERNAL, "libcurl failed");
	return 0;
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
		if (buf_append(ret, chunk, (size_t)n) < 0) {
			char most[FORMAT_SIZE_LEN];

			format_size(ret->max, most);
			return err_set(err, ERR_TOO_LARGE, "the answer of %s is larger than %s",
				client->peer.name, most);
		}
	}
}

static void note_confirmation(struct client *client, const struct buf *document)
{
	json_auto_t *answer = json_loadb((const char *)document->data, document->len, 0, NULL);
	const char *code =
		json_string_value(json_object_get(json_object_get(answer, "error"), "confirm"));

	snprintf(client->confirmation, sizeof(client->confirmation), "%s", code ? code : "");
}

/* What the daemon says of a command that looks dangerous, and yet runs. */
static void tell_flags(const struct client *client)
{
	struct curl_header *header;

	if (curl_easy_header(client->easy, "Sandlot-Flags", 0, CURLH_HEADER, -1, &header) ==
		CURLHE_OK)
		cli_note("this looks dangerous: %.200s", header->value);
}

void client_mean_all(struct client *client)
{
	client->means_all = true;
}

void client_mean_sandbox(struct client *client, const char *id, const char *name)
{
	struct peer *peer = &client->peer;

	snprintf(peer->sandbox_id, sizeof(peer->sandbox_id), "%s", id);
	snprintf(peer->sandbox_name, sizeof(peer->sandbox_name), "%s", name);
}

void client_mean_member(struct client *client, const char *role)
{
	client->peer.member = role;
}

/* Sends a request again that must be confirmed, if that is what the user wants. */
static int confirm(struct client *client, const struct client_call *call, int r, struct err *err)
{
	struct client_call again = *call;
	json_auto_t *body = NULL;
	struct err unwanted;

	if (!client->confirmation[0] || !call->body || json_object_get(call->body, "confirm"))
		return r;
	if (!client->means_all) {
		if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
			return r;
		cli_note("%s", err->message);
		r = question_ask("Run it?", &unwanted);
		if (r < 0) {
			*err = unwanted;
			return r;
		}
	}
	body = json_copy((json_t *)call->body);
	json_object_set_new(body, "confirm", json_string(client->confirmation));
	again.body = body;
	return client_open(client, &again, err);
}

int client_open(struct client *client, const struct client_call *call, struct err *err)
{
	auto_(buf_fini) struct buf document = BUF_INIT(ERROR_DOCUMENT_MAX);
	int r;

	client_close(client);
	r = peer_check(&client->peer, err);
	if (r < 0)
		return r;
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
	client->confirmation[0] = '\0';
	if (client->status < 300) {
		tell_flags(client);
		return 0;
	}
	/* Whatever of the document can be had; the status alone says enough. */
	if (read_whole(client, &document, err) < 0 && client->interrupt.signal) {
		r = -EINTR;
		goto fail;
	}
	note_confirmation(client, &document);
	r = peer_refusal(
		&client->peer, client->status, (const char *)document.data, document.len, err);
	client_close(client);
	return confirm(client, call, r, err);
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
		document = json_loadb(
			(const char *)text.data, text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
		if (!document)
			return err_explain(err, ERR_INTERNAL, NULL,
				"is another program listening there?",
				"%s answered with something that is not JSON", client->peer.name);
	}
	*ret = document;
	return 0;
}
