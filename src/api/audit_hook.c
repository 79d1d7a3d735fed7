/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit_hook.h"

#include "api/text.h"
#include "base/format.h"
#include "core/audit/audit_writer.h"

#include <openssl/evp.h>
#include <stdio.h>

/* Members of a query or body that tell what was done, and are no place for secrets. */
static const char *const telling[] = {"path", "from", "to", "signal", "process", "user", "cwd"};

static void copy(char *to, size_t size, const char *from)
{
	/* What does not fit loses its end, but no half of a character stays. */
	if (snprintf(to, size, "%s", from) >= (int)size)
		to[size - 1 - format_unfinished(to, size - 1)] = '\0';
}

/* "01k9..." or "01k9.../p3": from the path, unless the handler knew better. */
static void name_object(const struct request *req, struct audit_entry *entry)
{
	const char *id = request_param(req, "id"), *process = request_param(req, "process");
	char object[sizeof(entry->object) * 2];

	if (request_object(req)[0] || !id)
		copy(entry->object, sizeof(entry->object), request_object(req));
	else {
		snprintf(object, sizeof(object), "%.80s%s%.40s", id, process ? "/" : "",
			process ? process : "");
		copy(entry->object, sizeof(entry->object), object);
	}
}

static const char *find_value(const struct request *req, const char *name)
{
	const char *value = request_query(req, name);

	return value ? value : json_string_value(json_object_get(request_body(req), name));
}

static void describe(const struct request *req, struct audit_entry *entry)
{
	auto_(buf_fini) struct buf text = BUF_INIT(64 << 10);
	auto_free char *joined = NULL;

	buf_append_str(&text, request_detail(req));
	for (size_t i = 0; i < array_len(telling); i++) {
		const char *value = find_value(req, telling[i]);

		if (value)
			buf_printf(&text, "%s%s=%s", text.len ? " " : "", telling[i], value);
	}
	if (request_answer_header_of(req, "Sandlot-Flags"))
		buf_printf(&text, "%sflags=%s", text.len ? " " : "",
			request_answer_header_of(req, "Sandlot-Flags"));
	joined = buf_take_str(&text);
	copy(entry->detail, sizeof(entry->detail), joined);
}

static void fill(const struct request *req, struct audit_entry *entry)
{
	const struct principal *principal = request_principal(req);

	memcpy(entry->owner.organization, principal->organization, MODEL_NAME_MAX);
	memcpy(entry->owner.user, principal->user, MODEL_NAME_MAX);
	copy(entry->token_id, sizeof(entry->token_id), principal->token_id);
	copy(entry->code, sizeof(entry->code), request_error_code(req));
	copy(entry->peer, sizeof(entry->peer), request_peer(req));
	copy(entry->request_id, sizeof(entry->request_id), request_id(req));
	entry->status = request_status(req);
}

void audit_hook_account(void *context, const struct request *req)
{
	struct api *api = context;
	struct audit_entry entry = {0};

	fill(req, &entry);
	copy(entry.action, sizeof(entry.action), request_action(req));
	name_object(req, &entry);
	describe(req, &entry);
	audit_writer_put(api->audit_writer, &entry);
}

/* Nothing of what a stranger asked for is written down: it may be anything. */
void audit_hook_refused(void *context, const struct request *req)
{
	struct api *api = context;
	struct audit_entry entry = {.action = "authenticate"};

	fill(req, &entry);
	audit_writer_put_bounded(api->audit_writer, &entry);
}

static void describe_hash(struct request *req, const char *const *argv)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	char text[16 + 2 * EVP_MAX_MD_SIZE];
	EVP_MD_CTX *sum = EVP_MD_CTX_new();
	unsigned size = 0;
	size_t len;

	if (!sum || !EVP_DigestInit_ex(sum, EVP_sha256(), NULL))
		abort();
	/* With its NUL, so that ("a b") and ("a", "b") differ. */
	for (; *argv; argv++)
		EVP_DigestUpdate(sum, *argv, strlen(*argv) + 1);
	EVP_DigestFinal_ex(sum, hash, &size);
	EVP_MD_CTX_free(sum);
	len = format_append(text, sizeof(text), 0, "argv=sha256:");
	for (unsigned i = 0; i < size; i++)
		len = format_append(text, sizeof(text), len, "%02x", hash[i]);
	request_set_detail(req, text);
}

static void describe_text(struct request *req, const char *const *argv)
{
	auto_(buf_fini) struct buf text = BUF_INIT(AUDIT_DETAIL_MAX * 2);
	auto_free char *joined = NULL;

	buf_append_str(&text, "argv=");
	for (; *argv; argv++)
		buf_printf(&text, "%s%.*s", text.len > 5 ? " " : "", AUDIT_DETAIL_MAX, *argv);
	joined = buf_take_str(&text);
	request_set_detail(req, joined);
}

void audit_hook_command(const struct api *api, struct request *req, const char *const *argv)
{
	if (api->audits_commands)
		describe_text(req, argv);
	else
		describe_hash(req, argv);
}
