/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/jwk.h"

#include "auth/base64url.h"
#include "http/server/request/body.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <string.h>

#define SECRET_MIN   32 /* as long as the hash: RFC 7518, 3.2 */
#define SECRET_MAX   1024
#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192

enum kind { HS256, RS256, EDDSA };

static const char *const algorithms[] = {"HS256", "RS256", "EdDSA"};

struct jwk {
	char kid[JWK_KID_MAX]; /* empty: it has no name */
	enum kind kind;
	EVP_PKEY *public; /* of RS256 and EdDSA */
	uint8_t *secret;  /* of HS256 */
	size_t secret_len;
};

struct jwk_set {
	size_t count;
	struct jwk keys[JWK_KEYS_MAX];
};

void jwk_set_free(struct jwk_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++) {
		EVP_PKEY_free(set->keys[i].public);
		if (set->keys[i].secret)
			OPENSSL_cleanse(set->keys[i].secret, set->keys[i].secret_len);
		free(set->keys[i].secret);
	}
	free(set);
}

static void free_set(struct jwk_set **set)
{
	jwk_set_free(*set);
}

/* The bytes of a member in base64url; NULL if it is not there or no such text. */
static uint8_t *decode_member(const json_t *object, const char *name, size_t *ret_len)
{
	const json_t *value = json_object_get(object, name);
	size_t len = json_string_length(value);
	auto_free uint8_t *data = NULL;
	ssize_t size;

	if (!json_is_string(value) || len == 0)
		return NULL;
	data = mem_new(base64url_size(len));
	size = base64url_decode(json_string_value(value), len, data);
	if (size <= 0)
		return NULL;
	*ret_len = (size_t)size;
	return take_ptr(&data);
}

static int read_secret(const json_t *object, struct jwk *key, struct err *err)
{
	key->secret = decode_member(object, "k", &key->secret_len);
	if (!key->secret || key->secret_len < SECRET_MIN || key->secret_len > SECRET_MAX)
		return err_set(err, ERR_INVALID, "a secret must have from %d to %d bytes",
			SECRET_MIN, SECRET_MAX);
	return 0;
}

static EVP_PKEY *make_rsa(const BIGNUM *n, const BIGNUM *e)
{
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;

	if (build && context && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) &&
		OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) &&
		(params = OSSL_PARAM_BLD_to_param(build)) && EVP_PKEY_fromdata_init(context) == 1)
		EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(build);
	EVP_PKEY_CTX_free(context);
	return key;
}

static int check_rsa(const EVP_PKEY *key, struct err *err)
{
	int bits = key ? EVP_PKEY_get_bits(key) : 0;

	if (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX)
		return err_set(err, ERR_INVALID, "an RSA key must have from %d to %d bits",
			RSA_BITS_MIN, RSA_BITS_MAX);
	return 0;
}

static int read_rsa(const json_t *object, struct jwk *key, struct err *err)
{
	size_t n_len = 0, e_len = 0;
	auto_free uint8_t *n = decode_member(object, "n", &n_len);
	auto_free uint8_t *e = decode_member(object, "e", &e_len);
	BIGNUM *modulus, *exponent;

	if (!n || !e || n_len > RSA_BITS_MAX / 8 || e_len > 8)
		return err_set(err, ERR_INVALID, "an RSA key must have n and e");
	modulus = BN_bin2bn(n, (int)n_len, NULL);
	exponent = BN_bin2bn(e, (int)e_len, NULL);
	if (modulus && exponent && BN_is_odd(modulus) && BN_is_odd(exponent) &&
		!BN_is_one(exponent))
		key->public = make_rsa(modulus, exponent);
	BN_free(modulus);
	BN_free(exponent);
	return check_rsa(key->public, err);
}

static int read_ed25519(const json_t *object, struct jwk *key, struct err *err)
{
	const char *curve = json_string_value(json_object_get(object, "crv"));
	size_t len = 0;
	auto_free uint8_t *x = decode_member(object, "x", &len);

	if (curve && strcmp(curve, "Ed25519") == 0 && x)
		key->public = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x, len);
	if (!key->public)
		return err_set(err, ERR_INVALID, "an OKP key must be of Ed25519, with x");
	return 0;
}

static const struct {
	const char *type;
	enum kind kind;
	int (*read)(const json_t *object, struct jwk *key, struct err *err);
} types[] = {
	{"oct", HS256, read_secret},
	{"RSA", RS256, read_rsa},
	{"OKP", EDDSA, read_ed25519},
};

static int read_kid(
	const struct jwk_set *set, const json_t *object, struct jwk *key, struct err *err)
{
	const json_t *kid = json_object_get(object, "kid");

	if (!kid)
		return 0;
	if (!json_is_string(kid) || json_string_length(kid) == 0 ||
		json_string_length(kid) >= JWK_KID_MAX)
		return err_set(
			err, ERR_INVALID, "kid must be a text of up to %d bytes", JWK_KID_MAX - 1);
	memcpy(key->kid, json_string_value(kid), json_string_length(kid) + 1);
	for (const struct jwk *other = set->keys; other < key; other++) {
		if (strcmp(other->kid, key->kid) == 0)
			return err_set(err, ERR_INVALID, "two keys have the kid %s", key->kid);
	}
	return 0;
}

static int read_key(struct jwk_set *set, const json_t *object, struct err *err)
{
	const char *type = json_string_value(json_object_get(object, "kty"));
	const json_t *algorithm = json_object_get(object, "alg");
	struct jwk *key = &set->keys[set->count++];
	size_t i = 0;
	int r;

	while (i < array_len(types) && !(type && strcmp(types[i].type, type) == 0))
		i++;
	if (i == array_len(types))
		return err_set(err, ERR_INVALID, "kty must be oct, RSA or OKP");
	key->kind = types[i].kind;
	if (algorithm && (!json_is_string(algorithm) ||
				 strcmp(json_string_value(algorithm), jwk_algorithm(key)) != 0))
		return err_set(err, ERR_INVALID, "alg of a key of type %s must be %s", type,
			jwk_algorithm(key));
	r = read_kid(set, object, key, err);
	return r < 0 ? r : types[i].read(object, key, err);
}

static int read_set(struct jwk_set *set, const char *text, size_t len, struct err *err)
{
	json_auto_t *document = NULL;
	const json_t *keys, *object;
	size_t i;
	int r = body_parse(text, len, &document, err);

	if (r < 0)
		return r;
	keys = json_object_get(document, "keys");
	if (json_array_size(keys) < 1 || json_array_size(keys) > JWK_KEYS_MAX)
		return err_set(err, ERR_INVALID, "keys must be a list of 1 to %d", JWK_KEYS_MAX);
	json_array_foreach((json_t *)keys, i, object)
	{
		r = read_key(set, object, err);
		if (r < 0) {
			err_prefix(err, "key %zu", i + 1);
			return r;
		}
	}
	return 0;
}

static int read_pem(struct jwk_set *set, const char *text, size_t len, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(text, (int)len);
	struct jwk *key = &set->keys[set->count++];

	key->public = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL) : NULL;
	BIO_free(bio);
	if (!key->public)
		return err_set(err, ERR_INVALID, "it holds no public key");
	key->kind = EVP_PKEY_is_a(key->public, "ED25519") ? EDDSA : RS256;
	if (key->kind == EDDSA)
		return 0;
	if (!EVP_PKEY_is_a(key->public, "RSA"))
		return err_set(err, ERR_INVALID, "the public key must be of RSA or Ed25519");
	return check_rsa(key->public, err);
}

int jwk_set_parse(const char *text, size_t len, struct jwk_set **ret_set, struct err *err)
{
	auto_(free_set) struct jwk_set *set = mem_new(sizeof(*set));
	int r;

	if (len > JWK_FILE_MAX)
		return err_set(err, ERR_INVALID, "it is larger than %u bytes", JWK_FILE_MAX);
	if (memmem(text, len, "-----BEGIN ", 11))
		r = read_pem(set, text, len, err);
	else
		r = read_set(set, text, len, err);
	if (r < 0)
		return r;
	*ret_set = take_ptr(&set);
	return 0;
}

bool jwk_set_has_secret(const struct jwk_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		if (set->keys[i].secret)
			return true;
	}
	return false;
}

const struct jwk *jwk_set_find(const struct jwk_set *set, const char *kid)
{
	if (!kid)
		return set->count == 1 ? &set->keys[0] : NULL;
	for (size_t i = 0; i < set->count; i++) {
		if (set->keys[i].kid[0] && strcmp(set->keys[i].kid, kid) == 0)
			return &set->keys[i];
	}
	return NULL;
}

const char *jwk_algorithm(const struct jwk *key)
{
	return algorithms[key->kind];
}

static bool verify_hmac(const struct jwk *key, const void *data, size_t len,
	const uint8_t *signature, size_t signature_len)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned mac_len = 0;

	return HMAC(EVP_sha256(), key->secret, (int)key->secret_len, data, len, mac, &mac_len) &&
	       signature_len == mac_len && CRYPTO_memcmp(mac, signature, mac_len) == 0;
}

/* RSA is PKCS #1 v1.5 with SHA-256, which is what a context does that is told nothing else. */
bool jwk_verify(const struct jwk *key, const void *data, size_t len, const uint8_t *signature,
	size_t signature_len)
{
	const EVP_MD *digest = key->kind == RS256 ? EVP_sha256() : NULL;
	EVP_MD_CTX *context;
	bool good;

	if (key->kind == HS256)
		return verify_hmac(key, data, len, signature, signature_len);
	context = EVP_MD_CTX_new();
	good = context && EVP_DigestVerifyInit(context, NULL, digest, NULL, key->public) == 1 &&
	       EVP_DigestVerify(context, signature, signature_len, data, len) == 1;
	EVP_MD_CTX_free(context);
	return good;
}
