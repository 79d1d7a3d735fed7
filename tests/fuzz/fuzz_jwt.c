/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signed tokens: the input as it is; and, as two lines, header and claims that are signed here, so that
 * what comes behind the signature is reached too.
 */
#include "auth/jwt.h"

#include "model/access/scope.h"
#include "model/sandbox/sandbox_record.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_MS 1000000000ll

static const char keys_text[] =
	"{\"keys\":[{\"kty\":\"oct\",\"kid\":\"h\",\"k\":"
	"\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"},{\"kty\":\"OKP\",\"kid\":\"e\","
	"\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
static const char secret[] = "0123456789abcdef0123456789abcdef";

/* What is let in is somebody with a name, for a time that is not over, and never an administrator. */
static void verify(const struct jwt_issuer *issuer, const char *text)
{
	struct principal who = {0};
	struct err err = {0};

	if (jwt_verify(issuer, text, NOW_MS, &who, &err) < 0) {
		assert(err.kind == ERR_UNAUTHENTICATED && err.message[0]);
		assert(!who.user[0] && !who.scopes);
		return;
	}
	assert(model_name_is_valid(who.organization) && model_name_is_valid(who.user));
	assert(who.expires_at_ms > NOW_MS && !(who.scopes & SCOPE_ADMIN));
}

static size_t encode(const void *data, size_t len, char *text)
{
	size_t n = (size_t)EVP_EncodeBlock((unsigned char *)text, data, (int)len);

	for (size_t i = 0; i < n; i++)
		text[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
	while (n > 0 && text[n - 1] == '=')
		n--;
	text[n] = '\0';
	return n;
}

static void sign_and_verify(const struct jwt_issuer *issuer, const uint8_t *data, size_t size)
{
	const uint8_t *line = memchr(data, '\n', size);
	size_t header_len = line ? (size_t)(line - data) : 0, len;
	unsigned char mac[64];
	unsigned mac_len;
	char *text;

	if (!line)
		return;
	text = mem_new(size * 2 + 256);
	len = encode(data, header_len, text);
	text[len++] = '.';
	len += encode(line + 1, size - header_len - 1, text + len);
	HMAC(EVP_sha256(), secret, sizeof(secret) - 1, (unsigned char *)text, len, mac, &mac_len);
	text[len++] = '.';
	encode(mac, mac_len, text + len);
	verify(issuer, text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jwt_issuer issuer = {NULL, "https://id.example", "sandlot", "org", "sub", "scope"};
	struct jwk_set *keys = NULL;
	char *text = mem_new(size + 1);
	struct err err;

	if (jwk_set_parse(keys_text, sizeof(keys_text) - 1, &keys, &err) < 0)
		abort();
	issuer.keys = keys;
	if (size > 0)
		memcpy(text, data, size);
	verify(&issuer, text);
	sign_and_verify(&issuer, data, size);
	free(text);
	jwk_set_free(keys);
	return 0;
}
