/* SPDX-License-Identifier: Apache-2.0 */
#include "core/secret/seal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>

#define NONCE_LEN 12
#define TAG_LEN	  16

static void free_cipher(EVP_CIPHER_CTX **cipher)
{
	EVP_CIPHER_CTX_free(*cipher);
}

int seal_close(const uint8_t key[SEAL_KEY_LEN], const struct buf *label, const char *text,
	size_t len, struct buf *out)
{
	auto_(free_cipher) EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	auto_free uint8_t *sealed = mem_new(len + SEAL_OVERHEAD);
	uint8_t *body = sealed + NONCE_LEN;
	int n;

	if (getrandom(sealed, NONCE_LEN, 0) != NONCE_LEN)
		return -EIO;
	if (!cipher || EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, sealed) != 1 ||
		EVP_EncryptUpdate(cipher, NULL, &n, label->data, (int)label->len) != 1 ||
		EVP_EncryptUpdate(cipher, body, &n, (const uint8_t *)text, (int)len) != 1 ||
		EVP_EncryptFinal_ex(cipher, body + len, &n) != 1 ||
		EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_LEN, body + len) != 1)
		return -EIO;
	return buf_append(out, sealed, len + SEAL_OVERHEAD);
}

int seal_open(const uint8_t key[SEAL_KEY_LEN], const struct buf *label, const uint8_t *sealed,
	size_t len, char **ret_text)
{
	auto_(free_cipher) EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	size_t text_len = len - SEAL_OVERHEAD;
	const uint8_t *body = sealed + NONCE_LEN;
	char *text;
	int n;

	if (len < SEAL_OVERHEAD)
		return -EBADMSG;
	text = mem_new(text_len + 1);
	if (!cipher || EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, sealed) != 1 ||
		EVP_DecryptUpdate(cipher, NULL, &n, label->data, (int)label->len) != 1 ||
		EVP_DecryptUpdate(cipher, (uint8_t *)text, &n, body, (int)text_len) != 1 ||
		EVP_CIPHER_CTX_ctrl(
			cipher, EVP_CTRL_GCM_SET_TAG, TAG_LEN, (void *)(body + text_len)) != 1 ||
		EVP_DecryptFinal_ex(cipher, (uint8_t *)text + text_len, &n) != 1) {
		explicit_bzero(text, text_len);
		free(text);
		return -EBADMSG;
	}
	*ret_text = text;
	return 0;
}
