/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of FIPS 180-4 (as NIST publishes them) and of RFC 4231. */
#include "base/sha256.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_digits(const uint8_t digest[SHA256_LEN], const char *expected)
{
	char text[2 * SHA256_LEN + 1];

	for (size_t i = 0; i < SHA256_LEN; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, expected);
}

static void digests_are_those_of_the_standard(void **state)
{
	static const struct {
		const char *text, *digest;
	} vectors[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnop"
		 "qklmnopqrlmnopqrsmnopqrstnopqrstu",
			"cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	};
	uint8_t digest[SHA256_LEN];
	struct sha256 sha256;

	(void)state;
	for (size_t i = 0; i < array_len(vectors); i++) {
		sha256_init(&sha256);
		sha256_add(&sha256, vectors[i].text, strlen(vectors[i].text));
		sha256_end(&sha256, digest);
		assert_digits(digest, vectors[i].digest);
	}
}

/* A million times "a", in pieces of every length up to more than two blocks. */
static void a_long_text_in_pieces_is_one_text(void **state)
{
	char piece[150];
	uint8_t digest[SHA256_LEN];
	struct sha256 sha256;
	size_t left = 1000000;

	(void)state;
	memset(piece, 'a', sizeof(piece));
	sha256_init(&sha256);
	for (size_t len = 1; left > 0; len = len % sizeof(piece) + 1) {
		size_t n = len < left ? len : left;

		sha256_add(&sha256, piece, n);
		left -= n;
	}
	sha256_end(&sha256, digest);
	assert_digits(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void macs_are_those_of_rfc_4231(void **state)
{
	static const struct {
		size_t key_len;
		const char *key; /* NULL: 0x0b, 0xaa, or 1, 2, 3 ... as the first byte says */
		uint8_t first;
		const char *text; /* NULL: fifty times a byte */
		uint8_t byte;
		const char *mac;
	} vectors[] = {
		{20, NULL, 0x0b, "Hi There", 0,
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{4, "Jefe", 0, "what do ya want for nothing?", 0,
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{20, NULL, 0xaa, NULL, 0xdd,
			"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{25, NULL, 1, NULL, 0xcd,
			"82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
		{131, NULL, 0xaa, "Test Using Larger Than Block-Size Key - Hash Key First", 0,
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
		{131, NULL, 0xaa,
			"This is a test using a larger than block-size key and a larger than "
			"block-size data. The key needs to be hashed before being used by the "
			"HMAC algorithm.",
			0, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
	};

	(void)state;
	for (size_t i = 0; i < array_len(vectors); i++) {
		uint8_t key[131], text[200], mac[SHA256_LEN];
		size_t len = vectors[i].text ? strlen(vectors[i].text) : 50;
		struct sha256_hmac hmac;

		for (size_t j = 0; j < vectors[i].key_len; j++)
			key[j] = vectors[i].key
					 ? (uint8_t)vectors[i].key[j]
					 : (uint8_t)(vectors[i].first == 1 ? j + 1
									   : vectors[i].first);
		memset(text, vectors[i].byte, sizeof(text));
		if (vectors[i].text)
			memcpy(text, vectors[i].text, len);
		sha256_hmac_init(&hmac, key, vectors[i].key_len);
		sha256_hmac_add(&hmac, text, len / 2);
		sha256_hmac_add(&hmac, text + len / 2, len - len / 2);
		sha256_hmac_end(&hmac, mac);
		assert_digits(mac, vectors[i].mac);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_those_of_the_standard),
		cmocka_unit_test(a_long_text_in_pieces_is_one_text),
		cmocka_unit_test(macs_are_those_of_rfc_4231),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
