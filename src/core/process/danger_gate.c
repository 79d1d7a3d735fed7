/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/danger_gate.h"

#include "base/clock.h"
#include "base/format.h"
#include "core/engine/event_bus.h"
#include "core/engine/sandbox_state.h"
#include "store/access/store_quota.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#define CODE_LIFE_MS (10ll * 60 * 1000) /* a code is good for this long, at most twice that */
#define REASONS_MAX  200

static danger_set judge(const struct danger_question *question)
{
	danger_set found;

	if (question->code)
		return danger_of_code(question->language, question->code);
	if (!question->argv)
		return 0;
	found = danger_of_argv(question->argv);
	if (question->input)
		found |= danger_of_input(question->argv, question->input, question->input_len);
	return found;
}

static void add_text(EVP_MD_CTX *sum, const char *text, size_t len)
{
	uint64_t size = len; /* before it, so that no two lists of texts are alike */

	EVP_DigestUpdate(sum, &size, sizeof(size));
	EVP_DigestUpdate(sum, text, len);
}

/* Of what is to be run, and for whom, but not where: one without a sandbox gets another one each time. */
static void hash(const struct danger_question *question, uint8_t ret_hash[EVP_MAX_MD_SIZE],
	unsigned *ret_len)
{
	EVP_MD_CTX *sum = EVP_MD_CTX_new();

	if (!sum || !EVP_DigestInit_ex(sum, EVP_sha256(), NULL))
		abort();
	add_text(sum, question->owner->organization, strlen(question->owner->organization));
	add_text(sum, question->owner->user, strlen(question->owner->user));
	if (question->code)
		add_text(sum, question->code, strlen(question->code));
	for (size_t i = 0; question->argv && question->argv[i]; i++)
		add_text(sum, question->argv[i], strlen(question->argv[i]));
	if (question->input)
		add_text(sum, question->input, question->input_len);
	EVP_DigestFinal_ex(sum, ret_hash, ret_len);
	EVP_MD_CTX_free(sum);
}

static void make_code(const struct engine *engine, const struct danger_question *question,
	int64_t period, char code[DANGER_CODE_LEN + 1])
{
	uint8_t text[EVP_MAX_MD_SIZE + sizeof(period)], mac[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	hash(question, text, &len);
	memcpy(text + len, &period, sizeof(period));
	if (!HMAC(EVP_sha256(), engine->confirm_key, sizeof(engine->confirm_key), text,
		    len + sizeof(period), mac, &len))
		abort();
	for (size_t i = 0; i < DANGER_CODE_LEN / 2; i++)
		snprintf(code + 2 * i, 3, "%02x", mac[i]);
}

/* The code of this time, and whether the one that came is it, or that of the time before. */
static bool is_confirmed(const struct engine *engine, const struct danger_question *question,
	char code[DANGER_CODE_LEN + 1])
{
	int64_t period = (int64_t)(clock_steady_ms() / CODE_LIFE_MS);
	char before[DANGER_CODE_LEN + 1];

	make_code(engine, question, period, code);
	make_code(engine, question, period - 1, before);
	return question->is_confirmed ||
	       (question->confirm && (strcmp(question->confirm, code) == 0 ||
					     strcmp(question->confirm, before) == 0));
}

static void publish(struct engine *engine, const struct danger_question *question, danger_set flags,
	const char *type)
{
	char now[CLOCK_TEXT_LEN];
	auto_free char *text = NULL;
	json_t *event;

	clock_format(clock_wall_ms(), now);
	event = json_pack("{s:o, s:o, s:s}", "sandbox",
		question->sandbox ? json_string(question->sandbox) : json_null(), "flags",
		danger_to_json(flags), "at", now);
	text = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	event_bus_publish(engine->config.bus, question->owner,
		question->sandbox ? question->sandbox : "", type, text);
}

static void print_reason(void *arg, const char *name, const char *reason)
{
	char *text = arg;
	size_t len = strlen(text);

	format_append(text, REASONS_MAX, len, "%s%s (%s)", len ? ", " : "", name, reason);
}

static int hold(danger_set flags, const char *code, struct err *err)
{
	char reasons[REASONS_MAX] = "", remedy[sizeof(err->remedy)];

	danger_each(flags, print_reason, reasons);
	snprintf(remedy, sizeof(remedy),
		"if it is meant, send the same request with \"confirm\": \"%s\"", code);
	return err_explain(err, ERR_CONFLICT, "confirmation_required", remedy,
		"it looks dangerous: %s", reasons);
}

static int refuse(danger_set flags, struct err *err)
{
	char reasons[REASONS_MAX] = "";

	danger_each(flags, print_reason, reasons);
	return err_explain(err, ERR_DENIED, "command_refused",
		"do it in another way, or ask an administrator to change dangerous_commands of "
		"your quota",
		"it looks dangerous, and such commands are refused here: %s", reasons);
}

int danger_gate_ask(struct engine *engine, const struct danger_question *question,
	struct danger_verdict *ret_verdict, struct err *err)
{
	struct danger_verdict verdict = {.flags = judge(question)};
	enum danger_policy policy = DANGER_FLAG;
	char code[DANGER_CODE_LEN + 1];
	int r = 0;

	if (verdict.flags)
		r = store_quota_danger(engine->config.store, question->owner, &policy, err);
	if (r < 0)
		return r;
	if (policy == DANGER_REFUSE) {
		publish(engine, question, verdict.flags, "command.refused");
		r = refuse(verdict.flags, err);
	} else if (policy == DANGER_CONFIRM && !is_confirmed(engine, question, code)) {
		publish(engine, question, verdict.flags, "command.held");
		memcpy(verdict.code, code, sizeof(code));
		r = hold(verdict.flags, code, err);
	} else if (verdict.flags) {
		publish(engine, question, verdict.flags, "command.flagged");
	}
	*ret_verdict = verdict;
	return r;
}
