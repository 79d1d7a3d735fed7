/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens: which are taken, and the ways in which others are not. */
#include "auth/jwt.h"

#include "auth/base64url.h"
#include "base/buf.h"
#include "model/access/scope.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW_S  1000000ll
#define NOW_MS (NOW_S * 1000)
#define ISSUER "https://id.example"
#define US     "sandlot"
#define GOOD                                                                                       \
	"\"iss\":\"" ISSUER "\",\"aud\":\"" US                                                     \
	"\",\"exp\":1000300,\"org\":\"acme\",\"sub\":\"alice\",\"scope\":\"openid read run\""

static const unsigned char secret[32] = "0123456789abcdef0123456789abcde";

struct world {
	EVP_PKEY *rsa, *ed;
	struct jwk_set *keys;
	struct jwt_issuer issuer;
	char *rsa_pem; /* its public half, as an attacker has it too */
};

static char *encode(const void *data, size_t len)
{
	char *text = mem_new((len + 2) / 3 * 4 + 1);

	EVP_EncodeBlock((unsigned char *)text, data, (int)len);
	for (char *c = text; *c; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
	text[strcspn(text, "=")] = '\0';
	return text;
}

static char *number_of(EVP_PKEY *key, const char *name)
{
	unsigned char data[1024];
	BIGNUM *number = NULL;
	char *text;

	assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
	text = encode(data, (size_t)BN_bn2bin(number, data));
	BN_free(number);
	return text;
}

static char *jwks_of(const struct world *world)
{
	auto_free char *n = number_of(world->rsa, OSSL_PKEY_PARAM_RSA_N);
	auto_free char *e = number_of(world->rsa, OSSL_PKEY_PARAM_RSA_E);
	auto_free char *k = encode(secret, sizeof(secret));
	auto_free char *x = NULL;
	unsigned char raw[32];
	size_t len = sizeof(raw);

	assert_int_equal(EVP_PKEY_get_raw_public_key(world->ed, raw, &len), 1);
	x = encode(raw, len);
	return mem_printf(
		"{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"use\":\"sig\",\"n\":\"%s\","
		"\"e\":\"%s\"},{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"e\",\"alg\":"
		"\"EdDSA\",\"x\":\"%s\"},{\"kty\":\"oct\",\"kid\":\"h\",\"k\":\"%s\"}]}",
		n, e, x, k);
}

static int setup(void **state)
{
	struct world *world = mem_new(sizeof(*world));
	auto_free char *jwks = NULL;
	BIO *bio = BIO_new(BIO_s_mem());
	struct err err = {0};
	char *data;
	long len;

	world->rsa = EVP_RSA_gen(2048);
	world->ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	assert_int_equal(PEM_write_bio_PUBKEY(bio, world->rsa), 1);
	len = BIO_get_mem_data(bio, &data);
	world->rsa_pem = mem_new((size_t)len + 1);
	memcpy(world->rsa_pem, data, (size_t)len);
	BIO_free(bio);
	jwks = jwks_of(world);
	if (jwk_set_parse(jwks, strlen(jwks), &world->keys, &err) < 0)
		fail_msg("%s", err.message);
	world->issuer = (struct jwt_issuer){world->keys, ISSUER, US, "org", "sub", "scope"};
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	EVP_PKEY_free(world->rsa);
	EVP_PKEY_free(world->ed);
	jwk_set_free(world->keys);
	free(world->rsa_pem);
	free(world);
	return 0;
}

static char *sign_with(EVP_PKEY *key, const EVP_MD *digest, const char *text)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned char data[1024];
	size_t len = sizeof(data);

	assert_int_equal(EVP_DigestSignInit(context, NULL, digest, NULL, key), 1);
	assert_int_equal(
		EVP_DigestSign(context, data, &len, (const unsigned char *)text, strlen(text)), 1);
	EVP_MD_CTX_free(context);
	return encode(data, len);
}

static char *hmac_with(const void *key, size_t key_len, const char *text)
{
	unsigned char data[64];
	unsigned len;

	HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, strlen(text), data,
		&len);
	return encode(data, len);
}

static char *unsigned_text(const char *header, const char *claims)
{
	auto_free char *a = encode(header, strlen(header));
	auto_free char *b = encode(claims, strlen(claims));

	return mem_printf("%s.%s", a, b);
}

/* Signed as the world's key of that name does. */
static char *make(const struct world *world, char kid, const char *header, const char *claims)
{
	auto_free char *text = unsigned_text(header, claims);
	auto_free char *signature = kid == 'r'	 ? sign_with(world->rsa, EVP_sha256(), text)
				    : kid == 'e' ? sign_with(world->ed, NULL, text)
						 : hmac_with(secret, sizeof(secret), text);

	return mem_printf("%s.%s", text, signature);
}

static int verify(const struct world *world, const char *text, struct principal *ret)
{
	struct err err = {0};
	int r = jwt_verify(&world->issuer, text, NOW_MS, ret, &err);

	if (r < 0)
		assert_int_equal(err.kind, ERR_UNAUTHENTICATED);
	return r;
}

static const char hs[] = "{\"alg\":\"HS256\",\"kid\":\"h\"}";

/* Whether claims are taken, signed well. */
static bool takes(const struct world *world, const char *claims)
{
	auto_free char *text = make(world, 'h', hs, claims);
	struct principal who;

	return verify(world, text, &who) == 0;
}

static bool takes_header(const struct world *world, char kid, const char *header)
{
	auto_free char *text = make(world, kid, header, "{" GOOD "}");
	struct principal who;

	return verify(world, text, &who) == 0;
}

static void all_three_algorithms_are_taken_and_the_claims_say_who_asks(void **state)
{
	const struct world *world = *state;
	struct principal who = {0};
	auto_free char *text = make(world, 'h', hs, "{" GOOD "}");

	assert_true(jwt_is(text));
	assert_false(jwt_is("slt_0123"));
	assert_int_equal(verify(world, text, &who), 0);
	assert_string_equal(who.organization, "acme");
	assert_string_equal(who.user, "alice");
	assert_string_equal(who.token_id, "");
	assert_int_equal(who.scopes, SCOPE_READ | SCOPE_RUN);
	assert_int_equal(who.expires_at_ms, (1000300 + JWT_SKEW_S) * 1000ll);
	assert_true(takes_header(world, 'r', "{\"alg\":\"RS256\",\"kid\":\"r\",\"typ\":\"JWT\"}"));
	assert_true(takes_header(world, 'e', "{\"alg\":\"EdDSA\",\"kid\":\"e\"}"));
}

static void scopes_come_as_a_list_too_and_never_include_admin(void **state)
{
	const struct world *world = *state;
	static const struct {
		const char *claim;
		unsigned scopes;
	} cases[] = {
		{"\"scope\":[\"files\",\"manage\",7,\"x\"]", SCOPE_FILES | SCOPE_MANAGE},
		{"\"scope\":\"admin read\"", SCOPE_READ},
		{"\"scope\":[\"admin\"]", 0},
		{"\"scope\":{\"read\":true}", 0},
		{"\"other\":\"read\"", 0},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		auto_free char *claims = mem_printf("{\"iss\":\"" ISSUER "\",\"aud\":\"" US
						    "\",\"exp\":1000300,\"org\":\"acme\",\"sub\":"
						    "\"alice\",%s}",
			cases[i].claim);
		auto_free char *text = make(world, 'h', hs, claims);
		struct principal who = {0};

		assert_int_equal(verify(world, text, &who), 0);
		assert_int_equal(who.scopes, cases[i].scopes);
	}
}

static void what_is_not_signed_is_refused(void **state)
{
	static const char *const headers[] = {"{\"alg\":\"none\"}", "{\"alg\":\"None\"}",
		"{\"alg\":\"none\",\"kid\":\"h\"}", "{\"alg\":\"\",\"kid\":\"h\"}",
		"{\"kid\":\"h\"}", "{\"alg\":null,\"kid\":\"h\"}", hs};
	const struct world *world = *state;
	struct principal who;

	for (size_t i = 0; i < array_len(headers); i++) {
		auto_free char *text = unsigned_text(headers[i], "{" GOOD "}");
		auto_free char *empty = mem_printf("%s.", text);
		auto_free char *some = mem_printf("%s.AAAA", text);

		assert_true(verify(world, text, &who) < 0);
		assert_true(verify(world, empty, &who) < 0);
		assert_true(verify(world, some, &who) < 0);
		assert_false(takes_header(world, 'h', headers[i]) && headers[i] != hs);
	}
}

/* The public key is public: as a secret of HMAC it would let anybody sign. */
static void a_public_key_does_not_serve_as_a_secret(void **state)
{
	const struct world *world = *state;
	static const char *const headers[] = {"{\"alg\":\"HS256\",\"kid\":\"r\"}",
		"{\"alg\":\"HS256\",\"kid\":\"e\"}", "{\"alg\":\"RS256\",\"kid\":\"r\"}"};
	struct principal who;

	for (size_t i = 0; i < array_len(headers); i++) {
		auto_free char *text = unsigned_text(headers[i], "{" GOOD "}");
		auto_free char *signature = hmac_with(world->rsa_pem, strlen(world->rsa_pem), text);
		auto_free char *whole = mem_printf("%s.%s", text, signature);

		assert_true(verify(world, whole, &who) < 0);
	}
}

static void the_algorithm_is_that_of_the_key(void **state)
{
	const struct world *world = *state;

	assert_false(takes_header(world, 'r', "{\"alg\":\"HS256\",\"kid\":\"r\"}"));
	assert_false(takes_header(world, 'r', "{\"alg\":\"RS512\",\"kid\":\"r\"}"));
	assert_false(takes_header(world, 'r', "{\"alg\":\"PS256\",\"kid\":\"r\"}"));
	assert_false(takes_header(world, 'h', "{\"alg\":\"RS256\",\"kid\":\"h\"}"));
	assert_false(takes_header(world, 'h', "{\"alg\":\"hs256\",\"kid\":\"h\"}"));
	assert_false(takes_header(world, 'h', "{\"alg\":\"EdDSA\",\"kid\":\"e\"}"));
}

static void kid_is_a_name_and_nothing_more(void **state)
{
	const struct world *world = *state;

	assert_false(takes_header(world, 'h', "{\"alg\":\"HS256\"}")); /* which of three? */
	assert_false(takes_header(world, 'h', "{\"alg\":\"HS256\",\"kid\":\"\"}"));
	assert_false(takes_header(world, 'h', "{\"alg\":\"HS256\",\"kid\":\"../../h\"}"));
	assert_false(takes_header(world, 'h', "{\"alg\":\"HS256\",\"kid\":\"/dev/null\"}"));
	assert_false(takes_header(world, 'h', "{\"alg\":\"HS256\",\"kid\":7}"));
	assert_false(takes_header(world, 'h', "{\"alg\":\"HS256\",\"kid\":\"h\",\"kid\":\"h\"}"));
}

static void a_key_that_the_token_brings_along_is_not_used(void **state)
{
	const struct world *world = *state;
	auto_free char *k = encode(secret, sizeof(secret));
	auto_free char *header = mem_printf(
		"{\"alg\":\"HS256\",\"jwk\":{\"kty\":\"oct\",\"k\":\"%s\"},\"jku\":\"file:///x\"}",
		k);

	assert_false(takes_header(world, 'h', header));
	assert_false(takes_header(
		world, 'h', "{\"alg\":\"HS256\",\"kid\":\"h\",\"crit\":[\"b64\"],\"b64\":false}"));
}

static void claims_must_say_from_whom_for_whom_and_until_when(void **state)
{
	static const char *const good[] = {
		"{" GOOD "}",
		"{" GOOD ",\"nbf\":1000000}",
		"{" GOOD ",\"nbf\":1000060}",
		"{\"iss\":\"" ISSUER "\",\"aud\":[\"x\",\"" US
		"\"],\"exp\":999941,\"org\":\"acme\",\"sub\":\"alice\"}",
		"{\"iss\":\"" ISSUER "\",\"aud\":\"" US
		"\",\"exp\":1000300.5,\"org\":\"acme\",\"sub\":\"alice\"}",
	};
	static const char *const bad[] = {
		"{}",
		"[]",
		"",
		"{" GOOD ",\"exp\":2000000}",  /* twice */
		"{" GOOD ",\"sub\":\"root\"}", /* twice */
		"{" GOOD ",\"nbf\":1000061}",
		"{" GOOD ",\"nbf\":\"1\"}",
		"{\"iss\":\"x\",\"aud\":\"" US "\",\"exp\":1000300,\"org\":\"a\",\"sub\":\"b\"}",
		"{\"aud\":\"" US "\",\"exp\":1000300,\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER
		"\",\"aud\":\"x\",\"exp\":1000300,\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER "\",\"aud\":[],\"exp\":1000300,\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER "\",\"exp\":1000300,\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "\",\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER "\",\"aud\":\"" US
		"\",\"exp\":999940,\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER "\",\"aud\":\"" US
		"\",\"exp\":\"1000300\",\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER "\",\"aud\":\"" US
		"\",\"exp\":1e300,\"org\":\"a\",\"sub\":\"b\"}",
		"{\"iss\":\"" ISSUER "\",\"aud\":\"" US
		"\",\"exp\":-1,\"org\":\"a\",\"sub\":\"b\"}",
	};

	for (size_t i = 0; i < array_len(good); i++)
		if (!takes(*state, good[i]))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < array_len(bad); i++)
		if (takes(*state, bad[i]))
			fail_msg("taken: %s", bad[i]);
}

static void an_owner_must_have_a_plain_name(void **state)
{
	static const char *const bad[] = {"\"org\":\"acme\"", "\"org\":\"acme\",\"sub\":\"\"",
		"\"org\":\"acme\",\"sub\":\"a/../b\"", "\"org\":\"acme\",\"sub\":\"a b\"",
		"\"org\":\"acme\",\"sub\":7", "\"org\":\"\",\"sub\":\"alice\"", "\"sub\":\"alice\"",
		"\"org\":\"acme\",\"sub\":\"a\\u0000b\"", "\"org\":[\"acme\"],\"sub\":\"alice\""};

	for (size_t i = 0; i < array_len(bad); i++) {
		auto_free char *claims = mem_printf(
			"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "\",\"exp\":1000300,%s}", bad[i]);

		if (takes(*state, claims))
			fail_msg("taken: %s", bad[i]);
	}
}

static void a_text_that_was_changed_anywhere_is_refused(void **state)
{
	const struct world *world = *state;
	struct principal who;

	for (const char *kid = "rhe"; *kid; kid++) {
		const char *header = *kid == 'r'   ? "{\"alg\":\"RS256\",\"kid\":\"r\"}"
				     : *kid == 'e' ? "{\"alg\":\"EdDSA\",\"kid\":\"e\"}"
						   : hs;
		auto_free char *text = make(world, *kid, header, "{" GOOD "}");
		size_t len = strlen(text);

		assert_int_equal(verify(world, text, &who), 0);
		for (size_t i = 0; i < len; i++) {
			char before = text[i];

			text[i] = before == 'A' ? 'B' : 'A';
			if (verify(world, text, &who) == 0)
				fail_msg("taken with another byte %zu", i);
			text[i] = before;
		}
		for (size_t i = 0; i < len; i += 7) {
			auto_free char *cut = mem_printf("%.*s", (int)i, text);

			assert_true(verify(world, cut, &who) < 0);
		}
	}
}

static void a_text_of_another_form_or_too_long_is_refused(void **state)
{
	const struct world *world = *state;
	auto_free char *text = make(world, 'h', hs, "{" GOOD "}");
	auto_free char *more = mem_printf("%s.AAAA", text);
	auto_free char *padded = mem_printf("%s=", text);
	auto_free char *spaced = mem_printf("%s ", text);
	auto_free char *huge = mem_new(1 << 20);
	struct principal who;

	memset(huge, 'A', (1 << 20) - 1);
	memcpy(huge, "eyJ.", 4);
	huge[1000] = '.';
	assert_true(verify(world, "", &who) < 0);
	assert_true(verify(world, ".", &who) < 0);
	assert_true(verify(world, "..", &who) < 0);
	assert_true(verify(world, "eyJ", &who) < 0);
	assert_true(verify(world, more, &who) < 0);
	assert_true(verify(world, padded, &who) < 0);
	assert_true(verify(world, spaced, &who) < 0);
	assert_true(verify(world, huge, &who) < 0);
}

/* --- keys --- */

static int parse(const char *text, struct jwk_set **set)
{
	struct err err = {0};
	int r = jwk_set_parse(text, strlen(text), set, &err);

	if (r < 0)
		assert_int_equal(err.kind, ERR_INVALID);
	return r;
}

static void a_public_key_as_pem_is_taken_without_a_name(void **state)
{
	const struct world *world = *state;
	struct world other = *world;
	struct jwk_set *set = NULL;

	assert_int_equal(parse(world->rsa_pem, &set), 0);
	assert_false(jwk_set_has_secret(set));
	assert_true(jwk_set_has_secret(world->keys));
	other.issuer.keys = set;
	assert_true(takes_header(&other, 'r', "{\"alg\":\"RS256\"}"));
	assert_false(takes_header(&other, 'h', "{\"alg\":\"HS256\"}"));
	assert_false(takes_header(&other, 'r', "{\"alg\":\"RS256\",\"kid\":\"r\"}"));
	jwk_set_free(set);
}

static void keys_that_are_weak_or_not_ours_to_use_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"{\"keys\":[]}",
		"{\"keys\":{}}",
		"{\"keys\":[7]}",
		"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}",
		"{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2hvcnQ\"}]}",
		"{\"keys\":[{\"kty\":\"oct\"}]}",
		"{\"keys\":[{\"kty\":\"oct\",\"alg\":\"none\",\"k\":"
		"\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}]}",
		"{\"keys\":[{\"kty\":\"RSA\",\"alg\":\"HS256\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
		"{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
		"{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}]}",
		"{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":"
		"\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}]}",
		"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
	};
	static const char twice[] =
		"{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":"
		"\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"},{\"kty\":\"oct\",\"kid\":\"a\","
		"\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}]}";
	struct jwk_set *set = NULL;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		if (parse(bad[i], &set) == 0)
			fail_msg("taken: %s", bad[i]);
	assert_true(parse(twice, &set) < 0);
	assert_null(set);
}

static void base64url_has_one_spelling(void **state)
{
	uint8_t data[16];

	(void)state;
	assert_int_equal(base64url_decode("", 0, data), 0);
	assert_int_equal(base64url_decode("_-8", 3, data), 2);
	assert_memory_equal(data, "\xff\xef", 2);
	assert_int_equal(base64url_decode("AA", 2, data), 1);
	assert_int_equal(base64url_decode("AB", 2, data), -EINVAL); /* bits left over */
	assert_int_equal(base64url_decode("A", 1, data), -EINVAL);
	assert_int_equal(base64url_decode("AA==", 4, data), -EINVAL);
	assert_int_equal(base64url_decode("A A", 3, data), -EINVAL);
	assert_int_equal(base64url_decode("+/8", 3, data), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_three_algorithms_are_taken_and_the_claims_say_who_asks),
		cmocka_unit_test(scopes_come_as_a_list_too_and_never_include_admin),
		cmocka_unit_test(what_is_not_signed_is_refused),
		cmocka_unit_test(a_public_key_does_not_serve_as_a_secret),
		cmocka_unit_test(the_algorithm_is_that_of_the_key),
		cmocka_unit_test(kid_is_a_name_and_nothing_more),
		cmocka_unit_test(a_key_that_the_token_brings_along_is_not_used),
		cmocka_unit_test(claims_must_say_from_whom_for_whom_and_until_when),
		cmocka_unit_test(an_owner_must_have_a_plain_name),
		cmocka_unit_test(a_text_that_was_changed_anywhere_is_refused),
		cmocka_unit_test(a_text_of_another_form_or_too_long_is_refused),
		cmocka_unit_test(a_public_key_as_pem_is_taken_without_a_name),
		cmocka_unit_test(keys_that_are_weak_or_not_ours_to_use_are_refused),
		cmocka_unit_test(base64url_has_one_spelling),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
