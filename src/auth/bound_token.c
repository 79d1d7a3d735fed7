/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/bound_token.h"

#include "base/buf.h"
#include "base/format.h"
#include "store/store.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#define MAC_LEN	       32
#define BOUND_PATH_MAX 256

/* How long the first segments of a path are; 0 if it has fewer, or they are too long. */
static size_t bound_len(const char *path)
{
	size_t len = 0;

	for (int i = 0; i < BOUND_TOKEN_SEGMENTS; i++) {
		if (path[len] != '/')
			return 0;
		len += 1 + strcspn(path + len + 1, "/");
	}
	return len <= BOUND_PATH_MAX ? len : 0;
}

/* A token of so many bytes of a path. */
static void format(const unsigned char key[BOUND_TOKEN_KEY_LEN], const char *token_id,
	const unsigned char hash[SECRET_HASH_LEN], const char *path, size_t path_len,
	char text[SECRET_TEXT_MAX])
{
	auto_(buf_fini) struct buf bound = BUF_INIT(SECRET_HASH_LEN + BOUND_PATH_MAX);
	unsigned char mac[EVP_MAX_MD_SIZE];
	size_t len = format_append(text, SECRET_TEXT_MAX, 0, BOUND_TOKEN_PREFIX "%s_", token_id);

	buf_append(&bound, hash, SECRET_HASH_LEN);
	buf_append(&bound, path, path_len);
	if (!HMAC(EVP_sha256(), key, BOUND_TOKEN_KEY_LEN, bound.data, bound.len, mac, NULL))
		abort();
	for (int i = 0; i < MAC_LEN; i++)
		len = format_append(text, SECRET_TEXT_MAX, len, "%02x", mac[i]);
}

int bound_token_make(struct store *store, const unsigned char key[BOUND_TOKEN_KEY_LEN],
	const char *token_id, const char *path, char text[SECRET_TEXT_MAX], struct err *err)
{
	unsigned char hash[SECRET_HASH_LEN];
	int r = store_token_hash(store, token_id, hash, err);

	if (r == 0)
		format(key, token_id, hash, path, bound_len(path), text);
	return r;
}

bool bound_token_is(const char *text)
{
	return strncmp(text, BOUND_TOKEN_PREFIX, strlen(BOUND_TOKEN_PREFIX)) == 0;
}

int bound_token_read(struct store *store, const unsigned char key[BOUND_TOKEN_KEY_LEN],
	const char *text, const char *path, unsigned char ret_hash[SECRET_HASH_LEN],
	struct err *err)
{
	const char *id = text + strlen(BOUND_TOKEN_PREFIX), *end = strchr(id, '_');
	size_t path_len = path ? bound_len(path) : 0, len = end ? (size_t)(end - id) : 0;
	unsigned char hash[SECRET_HASH_LEN];
	char token_id[TOKEN_ID_MAX], good[SECRET_TEXT_MAX];
	struct err ignored;

	if (path_len > 0 && len > 0 && len < sizeof(token_id)) {
		memcpy(token_id, id, len);
		token_id[len] = '\0';
		if (store_token_hash(store, token_id, hash, &ignored) == 0) {
			format(key, token_id, hash, path, path_len, good);
			if (strlen(good) == strlen(text) &&
				CRYPTO_memcmp(good, text, strlen(good)) == 0) {
				memcpy(ret_hash, hash, sizeof(hash));
				return 0;
			}
		}
	}
	return err_set(err, ERR_UNAUTHENTICATED, "the token is not valid here");
}
