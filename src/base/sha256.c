/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

static const uint32_t constants[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
	0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
	0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
	0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, unsigned bits)
{
	return word >> bits | word << (32 - bits);
}

static void spread(const uint8_t block[SHA256_BLOCK], uint32_t words[64])
{
	for (size_t i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
			   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = words[i - 15], b = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
			   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* The names are those of FIPS 180-4, section 6.2.2. */
static void take_block(uint32_t state[8], const uint8_t block[SHA256_BLOCK])
{
	uint32_t words[64];
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

	spread(block, words);
	for (size_t i = 0; i < 64; i++) {
		uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
			      ((e & f) ^ (~e & g)) + constants[i] + words[i];
		uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
			      ((a & b) ^ (a & c) ^ (b & c));

		h = g;
		g = f;
		f = e;
		e = d + t1;
		d = c;
		c = b;
		b = a;
		a = t1 + t2;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void sha256_init(struct sha256 *sha256)
{
	*sha256 = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *sha256, const void *data, size_t len)
{
	const uint8_t *at = data;

	while (len > 0) {
		size_t used = sha256->len % SHA256_BLOCK;
		size_t n = SHA256_BLOCK - used < len ? SHA256_BLOCK - used : len;

		memcpy(sha256->block + used, at, n);
		sha256->len += n;
		if (used + n == SHA256_BLOCK)
			take_block(sha256->state, sha256->block);
		at += n;
		len -= n;
	}
}

void sha256_end(struct sha256 *sha256, uint8_t ret_digest[SHA256_LEN])
{
	static const uint8_t padding[SHA256_BLOCK] = {0x80};
	uint64_t bits = sha256->len * 8;
	size_t used = sha256->len % SHA256_BLOCK;
	uint8_t length[8];

	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(sha256, padding, (used < 56 ? 56 : 120) - used);
	sha256_add(sha256, length, sizeof(length));
	for (size_t i = 0; i < SHA256_LEN; i++)
		ret_digest[i] = (uint8_t)(sha256->state[i / 4] >> (24 - 8 * (i % 4)));
}

static void add_pad(struct sha256 *sha256, const uint8_t key[SHA256_BLOCK], uint8_t pad)
{
	uint8_t block[SHA256_BLOCK];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = key[i] ^ pad;
	sha256_add(sha256, block, sizeof(block));
	explicit_bzero(block, sizeof(block));
}

void sha256_hmac_init(struct sha256_hmac *hmac, const void *key, size_t len)
{
	*hmac = (struct sha256_hmac){.key = {0}};
	if (len > SHA256_BLOCK) {
		sha256_init(&hmac->inner);
		sha256_add(&hmac->inner, key, len);
		sha256_end(&hmac->inner, hmac->key);
	} else if (len > 0) {
		memcpy(hmac->key, key, len);
	}
	sha256_init(&hmac->inner);
	add_pad(&hmac->inner, hmac->key, 0x36);
}

void sha256_hmac_add(struct sha256_hmac *hmac, const void *data, size_t len)
{
	sha256_add(&hmac->inner, data, len);
}

void sha256_hmac_end(struct sha256_hmac *hmac, uint8_t ret_mac[SHA256_LEN])
{
	uint8_t digest[SHA256_LEN];
	struct sha256 outer;

	sha256_end(&hmac->inner, digest);
	sha256_init(&outer);
	add_pad(&outer, hmac->key, 0x5c);
	sha256_add(&outer, digest, sizeof(digest));
	sha256_end(&outer, ret_mac);
	explicit_bzero(hmac, sizeof(*hmac));
	explicit_bzero(&outer, sizeof(outer));
}
